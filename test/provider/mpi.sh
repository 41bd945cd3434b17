#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# MPI programs of 4 ranks on this host over libfabric's provider: every kind of communication, hpcc
# with its own verification, a rank that computes and one that dies, an ordinary user, and what the
# provider says when something is wrong.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/../proc/lib.sh"
# shellcheck source=test/provider/hpcc.sh
. "$(dirname "$0")/hpcc.sh"

ranks=$build/test/provider/mpi_ranks
[ -x "$ranks" ] || { echo "there is no mpi_ranks in this build"; exit 77; }
for program in mpirun fi_info hpcc; do
	command -v $program >/dev/null || { echo "there is no $program here"; exit 77; }
done
for variable in "${!FI_@}" "${!OMPI_@}" "${!PMIX_@}" "${!SLURM_@}"; do
	unset "$variable"
done

# What any user can read and run.
public=$(mktemp -d /tmp/weft-mpi.XXXXXX)
trap 'rm -rf "$public"; tidy' EXIT
chmod 755 "$public"
mkdir "$public/provider"
cp -L "$build/libweft.so.0" "$public/"
cp -L "$build/provider/libweft-fi.so" "$public/provider/"
cp "$ranks" "$public/mpi_ranks"
chmod -R a+rX "$public"

# Open MPI 5 has other sentences, and windows under pml ob1 only.
version=$(mpirun --version | sed -n '1s/.* //p')
old=true
[ "${version%%.*}" -lt 5 ] || old=false

# Nothing but this is what a user has to say.
weft=(-x "FI_PROVIDER_PATH=$public/provider" --mca pml cm --mca mtl ofi
	--mca opal_common_ofi_provider_include weft)
# There are more ranks than cores, and root may run the test.
run=(timeout -k 10 200 mpirun --oversubscribe --bind-to none --mca orte_tmpdir_base "$dir")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# mpi RANKS PROGRAM...: over Weft; what it says is in mpi.out and mpi.err.
mpi() {
	local n=$1
	shift
	"${run[@]}" -n "$n" "${weft[@]}" "${more[@]}" "$@" >"$dir/mpi.out" 2>"$dir/mpi.err"
}
more=()

show() {
	tail -n 8 "$dir/mpi.out" "$dir/mpi.err"
	return 1
}

# all_right WHAT: 4 ranks, no errors, and not a word on standard error.
all_right() {
	mpi 4 "$public/mpi_ranks" "$1" || show || return 1
	grep -q "^$1: 4 ranks, 0 errors$" "$dir/mpi.out" || show || return 1
	[ ! -s "$dir/mpi.err" ] || show
}

# many_unexpected: 10 to 10^6 messages that nothing receives yet, with little credit and with much.
many_unexpected() {
	local n rc=0
	for n in 10 1000 100000; do
		more=(-x WEFT_UNEXP_LIMIT=64k)
		all_right unexpected$n || rc=1
	done
	more=()
	mpi 2 "$public/mpi_ranks" unexpected1000000 || rc=1
	grep -q "2 ranks, 0 errors$" "$dir/mpi.out" || rc=1
	[ $rc = 0 ] || show
}

# little_memory: the error names the variable.
little_memory() {
	local rc=1
	more=(-x WEFT_UNEXP_LIMIT=64k -x WEFT_UNEXP_MEMORY=1m)
	mpi 2 "$public/mpi_ranks" unexpected100000 || rc=0
	more=()
	[ $rc = 0 ] && grep -q WEFT_UNEXP_MEMORY "$dir/mpi.err" || show
}

thread_all_right() {
	more=(--mca mtl_ofi_data_progress auto)
	all_right p2p
	local rc=$?
	more=()
	return $rc
}

# Windows on memory that peers read and write by the provider's remote memory and atomics.
remote_memory() {
	local rc before=("${weft[@]}")
	if $old; then
		more=(--mca osc rdma --mca osc_rdma_btls ofi --mca btl "ofi,self")
	else # as weft-mpirun --rma
		weft=("${weft[@]:0:2}" --mca opal_common_ofi_provider_include weft)
		more=(--mca pml ob1 --mca btl "self,ofi" --mca btl_ofi_mode 2 --mca osc rdma)
	fi
	all_right rma
	rc=$?
	weft=("${before[@]}")
	more=()
	return $rc
}

# no_pml: MPI has no provider.
no_pml() {
	grep -qE "PML cm cannot be selected|able to be opened in the pml framework" "$dir/mpi.err"
}

# The provider is what carries it: without it there is no way to start.
nothing_else() {
	weft[1]="FI_PROVIDER_PATH=$dir/nowhere"
	local rc=0
	mpi 2 "$public/mpi_ranks" p2p && rc=1
	weft[1]="FI_PROVIDER_PATH=$public/provider"
	[ $rc = 0 ] && no_pml
}

hpcc_verified() {
	cp "$(dirname "$0")/hpccinf.txt" "$dir/"
	(cd "$dir" && mpi 4 hpcc) || show || return 1
	hpcc_report_right "$dir/hpccoutf.txt"
}

# The others end, with a sentence, and nothing is left. Where one of them has aborted before mpirun
# has seen the end of the first (a busy machine), mpirun names that one.
dies() {
	local rc=0
	mpi 4 "$public/mpi_ranks" die || rc=$?
	cat "$dir/mpi.err" "$dir/mpi.out"
	[ $rc != 0 ] && [ $rc != 124 ] || return 1
	grep -qE "exited on signal 9|has ended without closing the connection" "$dir/mpi.err" \
		"$dir/mpi.out" || return 1
	! pgrep -f "$public/mpi_ranks" >/dev/null && all_right p2p
}

# The same in MPI_Init(), when the provider is there.
dies_early() {
	local rc=0
	mpi 4 "$public/mpi_ranks" die-early || rc=$?
	cat "$dir/mpi.err" "$dir/mpi.out"
	[ $rc != 0 ] && [ $rc != 124 ] || return 1
	cat "$dir/mpi.err" "$dir/mpi.out" | tr '\n' ' ' | grep -q "exited on signal 9" || return 1
	! pgrep -f "$public/mpi_ranks" >/dev/null
}

# wrapped: as it is installed: weft-mpirun finds the provider, and carries our variables.
wrapped() {
	local place libs rc=0 run=(timeout -k 10 100 "$public/bin/weft-mpirun" --oversubscribe
		--bind-to none --mca orte_tmpdir_base "$dir")
	mkdir -p "$public/bin"
	cp "$build/weft-mpirun" "$public/bin/" && chmod 755 "$public/bin/weft-mpirun"
	place=$(sed -n "s/^dir='\(.*\)'$/\1/p" "$public/bin/weft-mpirun")
	libs=$(realpath -m "$public/bin/$place")
	mkdir -p "$libs"
	"${run[@]}" -n 2 "$public/mpi_ranks" coll >"$dir/mpi.out" 2>"$dir/mpi.err" && rc=1
	cat "$dir/mpi.err"
	grep -q "^weft-mpirun: there is no libweft-fi.so in $libs\. A build that" "$dir/mpi.err" ||
		return 1
	cp "$public/provider/libweft-fi.so" "$libs/"
	env -u LD_LIBRARY_PATH "${run[@]}" -n 2 "$public/mpi_ranks" coll >"$dir/mpi.out" \
		2>"$dir/mpi.err" && rc=1
	cat "$dir/mpi.err"
	grep -q "can't be loaded: there is no libweft.so.0: " "$dir/mpi.err" || return 1
	cp "$public/libweft.so.0" "$libs/.."
	LINES_OF=$'one\nFI_NOBODY=two' "${run[@]}" -n 4 "$public/mpi_ranks" coll >"$dir/mpi.out" \
		2>"$dir/mpi.err" || rc=1
	cat "$dir/mpi.err"
	grep -q "^coll: 4 ranks, 0 errors$" "$dir/mpi.out" || return 1
	! grep -q FI_NOBODY "$dir/mpi.err" || return 1
	FI_WEFT_PROGRESS=often "${run[@]}" -n 2 "$public/mpi_ranks" coll >"$dir/mpi.out" \
		2>"$dir/mpi.err" && rc=1
	cat "$dir/mpi.err"
	grep -q "^weft: FI_WEFT_PROGRESS=often" "$dir/mpi.err" && [ $rc = 0 ]
}

# by_variables: what weft-mpirun --env prints does for any launcher.
by_variables() {
	(
		eval "$(FI_PROVIDER_PATH=$public/provider "$public/bin/weft-mpirun" --env)"
		"${run[@]}" -n 2 "$public/mpi_ranks" coll >"$dir/mpi.out" 2>"$dir/mpi.err"
	) || show || return 1
	grep -q "^coll: 2 ranks, 0 errors$" "$dir/mpi.out"
}

# two_jobs: at the same time on one host. Each mpirun has a session folder of its own: Open MPI
# 4.1's may fail, with every transport, if another one removes their common folder.
two_jobs() {
	local rc=0 pid
	mkdir "$dir/other"
	"${run[@]/%"$dir"/$dir/other}" -n 2 "${weft[@]}" "$public/mpi_ranks" p2p \
		>"$dir/other.out" 2>&1 &
	pid=$!
	mpi 2 "$public/mpi_ranks" coll || rc=1
	wait $pid || rc=1
	cat "$dir/other.out" "$dir/mpi.out" "$dir/mpi.err"
	[ $rc = 0 ] && grep -q " 0 errors" "$dir/other.out" && grep -q " 0 errors" "$dir/mpi.out"
}

ordinary_user() {
	local home=$public/home
	mkdir -p "$home" && chown 65534:65534 "$home"
	run=(setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$home" timeout -k 10 120
		mpirun --oversubscribe --bind-to none --mca orte_tmpdir_base "$home")
	(cd "$home" && all_right p2p && all_right coll)
}

# in_container: namespaces of its own of every kind, and little memory that may be locked.
in_container() {
	local rc=0 before=("${run[@]}")
	# shellcheck disable=SC2016 # for the other shell
	run=(unshare --user --map-root-user --mount --pid --net --ipc --fork --mount-proc sh -c
		'ip link set lo up; ulimit -l 64; ulimit -n 256; exec "$@"' sh "${run[@]}")
	all_right p2p && all_right coll || rc=1
	run=("${before[@]}")
	return $rc
}

# One line for the job, not one for each rank, and the job runs.
misspelt() {
	more=(-x FI_WEFT_LANE=shm)
	mpi 4 "$public/mpi_ranks" coll
	local rc=$?
	more=()
	cat "$dir/mpi.err"
	[ $rc = 0 ] && [ "$(wc -l <"$dir/mpi.err")" = 1 ] &&
		grep -q "^weft: FI_WEFT_LANE is no variable" "$dir/mpi.err"
}

wrong_value() {
	more=(-x FI_WEFT_PROGRESS=often)
	local rc=0
	mpi 2 "$public/mpi_ranks" coll && rc=1
	more=()
	cat "$dir/mpi.err"
	[ $rc = 0 ] && grep -q "^weft: FI_WEFT_PROGRESS=often is not understood" "$dir/mpi.err"
}

# other_version: rank 0 has one version of the provider, rank 1 another: one sentence.
other_version() {
	# It looks for Weft's library two folders up, as in the build.
	mkdir -p "$public/other/provider"
	cp -L "$build/test/provider/libweft-fi.so" "$public/other/provider/"
	chmod -R a+rX "$public/other"
	# Not with mpirun's colon: that of Open MPI 5.0.7 ends with SIGSEGV.
	cat >"$public/by_rank" <<-END
		#!/bin/sh
		[ "\$OMPI_COMM_WORLD_RANK" != 2 ] || export FI_PROVIDER_PATH=$public/other/provider
		exec $public/mpi_ranks coll
	END
	chmod 755 "$public/by_rank"
	local rc=0
	mpi 3 "$public/by_rank" || rc=$?
	cat "$dir/mpi.err"
	[ $rc != 0 ] && [ $rc != 124 ] && [ "$(grep -c '^weft: ' "$dir/mpi.err")" = 1 ] &&
		grep -q "^weft: a rank's address comes from another version" "$dir/mpi.err"
}

# unfit: hints that can't be served end as with no provider, and the log says which.
unfit() {
	more=(-x FI_WEFT_PROGRESS=manual --mca mtl_ofi_data_progress auto -x FI_LOG_LEVEL=info
		-x FI_LOG_PROV=weft)
	local rc=0
	mpi 2 "$public/mpi_ranks" coll && rc=1
	more=()
	grep -a "not offered" "$dir/mpi.err"
	[ $rc = 0 ] && no_pml &&
		grep -aq "not offered: .*FI_WEFT_PROGRESS is manual" "$dir/mpi.err"
}

# no_lane: a sentence that names what there is none of.
no_lane() {
	more=(-x WEFT_LANES=dpdk:nothere)
	local rc=0
	mpi 2 "$public/mpi_ranks" coll && rc=1
	more=()
	cat "$dir/mpi.err"
	[ $rc = 0 ] && grep -q "dpdk:nothere" "$dir/mpi.err"
}

# fi_info lists the provider, quickly when it alone is requested, and prints nothing else.
listed() {
	FI_PROVIDER=weft FI_PROVIDER_PATH=$public/provider fi_info -p weft >"$dir/info" \
		2>"$dir/info.err" || return 1
	cat "$dir/info" "$dir/info.err"
	[ ! -s "$dir/info.err" ] && grep -q "^provider: weft" "$dir/info"
}

# Without Weft's library libfabric does not find the provider, and all others are there.
no_library() {
	mkdir -p "$dir/alone/provider"
	cp "$public/provider/libweft-fi.so" "$dir/alone/provider/"
	env -u LD_LIBRARY_PATH FI_PROVIDER_PATH="$dir/alone/provider" fi_info -l \
		>"$dir/info" 2>"$dir/info.err"
	cat "$dir/info" "$dir/info.err"
	! grep -q "^weft:" "$dir/info" && grep -q "^tcp:" "$dir/info"
}

check "fi_info lists the provider and prints nothing else" listed
check "without Weft's library there is no provider, and the others are there" no_library
check "weft-mpirun, as it is installed" wrapped
check "what weft-mpirun --env prints" by_variables
check "messages from one to another" all_right p2p
slow check "the same with a thread for progress" thread_all_right
# @behaviour E1
slow check "many messages before their receives" many_unexpected
# @behaviour E1
check "messages that fill the memory for them" little_memory
check "it is the provider that carries them" nothing_else
check "collectives" all_right coll
check "threads" all_right threads
if $old; then
	check "windows" all_right rma
else
	skip "windows" "Open MPI $version has none under pml cm"
fi
check "windows by remote memory and atomics" remote_memory
check "a rank that computes" all_right compute
check "a rank that dies" dies
check "a rank that dies in MPI_Init()" dies_early
check "two jobs at a time" two_jobs
slow check "hpcc, verified" hpcc_verified
check "a misspelt variable is named once" misspelt
check "a wrong value is named" wrong_value
check "no such lane" no_lane
check "hints that can't be served" unfit
check "ranks of two versions" other_version
if unshare --user --net true 2>/dev/null; then
	slow check "an unprivileged container" in_container
else
	skip "an unprivileged container" "no user namespaces"
fi
if [ "$(id -u)" = 0 ]; then
	check "an ordinary user" ordinary_user
else
	skip "an ordinary user" "these tests run as one"
fi
tap_end
