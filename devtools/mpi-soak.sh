#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# MPI programs over the provider on this host, for longer than the tests, compared with Open MPI's
# own shared memory (ob1, vader) as the reference: a failure there, too, is no fault of the
# provider. It prints a line for each step at the end; the exit code is 0 when no step failed with
# Weft alone.
#
#	devtools/mpi-soak.sh [--fabtests FOLDER] [--mpich FOLDER[:LIST]] [STEP...]
#
#	netpipe    NPopenmpi, with its integrity test
#	hpcc       2 and 4 ranks, with its verification
#	crowd      8 ranks, each kind of communication; ranks yield their core while they wait
#	fabtests   libfabric's own test programs, with its tcp;ofi_rxm as the reference
#	mpich      MPICH's own test programs, with the same reference: about an hour on an idle
#	           machine. LIST (pt2pt,rma) names some of its folders
#
# devtools/bench.sh (mpi) measures figures. A step that lacks a program names it. Debian has no
# package of fabtests: --fabtests names the folder of its programs (fi_rdm ...), else they are
# searched in PATH. Nor has Debian an MPICH over libfabric: --mpich names the folder test/mpi of its
# sources, configured with --with-mpi and built, as devtools/mpich.sh does. A program has at most
# WEFT_SOAK_LIMIT (300) seconds, a program of fabtests 60.
set -uo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "$0")/setup.sh"

limit=${WEFT_SOAK_LIMIT:-300}
unset WEFT_SOAK_LIMIT # ranks would report it as an unknown variable
tmp=$(mktemp -d "${TMPDIR:-/tmp}/weft-mpi-soak.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
start=$PWD
self=$(realpath "$0")
cd "$tmp" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export FI_PROVIDER_PATH=$weft_build/provider FI_WEFT_LANES=shm

# shellcheck disable=SC2034 # used by name, in over()
weft=(-x FI_PROVIDER_PATH --mca pml cm --mca mtl ofi --mca opal_common_ofi_provider_include weft)
# shellcheck disable=SC2034
vader=(--mca pml ob1 --mca btl "self,vader")
results=()
failed=0

usage() {
	sed -n '4,/^set/s/^# \{0,1\}//p' "$self"
	exit "$1"
}

# result STEP WHAT WEFT VADER: "ok", "failed" or "-"
result() {
	results+=("$(printf '%-8s %-34s %-8s %s' "$1" "$2" "$3" "$4")")
	weft_say "${results[-1]}"
	if [ "$3" = failed ] && [ "$4" != failed ]; then
		failed=$((failed + 1))
		tail -n 15 "$tmp/out"
	fi
}

lacks() {
	result "$1" "not run: there is no $2" - -
}

# over WHAT RANKS PROGRAM...: WHAT is the name of the array above
over() {
	local -n how=$1
	local n=$2
	shift 2
	timeout -k 10 "$limit" mpirun --oversubscribe --bind-to none -n "$n" "${how[@]}" \
		"${more[@]}" "$@" >"$tmp/out" 2>&1 </dev/null
}
more=()

# both STEP WHAT JUDGE RANKS PROGRAM...: JUDGE checks its output, $tmp/out
both() {
	local step=$1 what=$2 judge=$3 a=failed b=failed
	shift 3
	over vader "$@" && $judge && b=ok
	over weft "$@" && $judge && a=ok
	result "$step" "$what" $a $b
}

# ------------------------------------------------------------------ steps

integrity() {
	! grep -q "Integrity check failed" "$tmp/out" &&
		grep -q "Integrity check passed" "$tmp/out"
}

netpipe() {
	command -v NPopenmpi >/dev/null || { lacks netpipe "NPopenmpi (netpipe-openmpi)"; return; }
	both netpipe "NPopenmpi -i" integrity 2 NPopenmpi -i -u 1000000 -n 20 -o np
}

verified() {
	local out=$tmp/hpccoutf.txt
	grep -q '^Success=1' "$out" && ! grep -qE 'FAILED|^Found [1-9][0-9]* errors' "$out"
	local rc=$?
	rm -f "$out"
	return $rc
}

hpcc() {
	local ranks
	command -v hpcc >/dev/null || { lacks hpcc hpcc; return; }
	for ranks in 2 4; do
		sed "s/^2  *Qs\$/$((ranks / 2))            Qs/" \
			"$weft_root/test/provider/hpccinf.txt" >hpccinf.txt
		both hpcc "$ranks ranks" verified $ranks "$(command -v hpcc)"
	done
}

zero_errors() {
	grep -q ": 8 ranks, 0 errors" "$tmp/out"
}

crowd() {
	local what ranks=$weft_build/test/provider/mpi_ranks
	[ -x "$ranks" ] || { lacks crowd "mpi_ranks (meson compile)"; return; }
	more=(--mca mpi_yield_when_idle 1)
	for what in p2p coll threads rma compute; do
		both crowd "8 ranks, $what" zero_errors 8 "$ranks" $what
	done
	more=()
}

# The programs that need only offered features. doc/mpi.md, "fabtests", lists the needs of others.
fab_pairs=(
	"fi_av_xfer" "fi_bw -v" "fi_cq_data" "fi_msg_inject" "fi_multi_ep -v" "fi_multi_recv"
	"fi_rdm" "fi_rdm_atomic -o all -I 10" "fi_rdm_cntr_pingpong -I 50 -v"
	"fi_rdm_multi_client -C 5 -I 3" "fi_rdm_pingpong -I 50 -v" "fi_rdm_tagged_bw -I 20 -v"
	"fi_rdm_tagged_bw -I 20 -v -U" "fi_rdm_tagged_peek" "fi_rdm_tagged_pingpong -I 50 -v"
	"fi_rdm_rma_event" "fi_recv_cancel -V" "fi_resmgmt_test" "fi_rma_bw -o write -I 20 -v"
	"fi_rma_bw -o read -I 20" "fi_rma_bw -o writedata -I 20" "fi_unexpected_msg -I 10"
	"fi_unmap_mem"
)
fab_singles=("fi_cntr_test" "fi_cq_test" "fi_dom_test -n 3" "fi_eq_test" "fi_getinfo_test"
	"fi_mr_cache_evict" "fi_mr_test")
# Without an exchange of addresses: the client has a node and a service only.
fab_named=("fi_av_xfer" "fi_bw -v" "fi_cq_data" "fi_msg_inject" "fi_multi_recv" "fi_rdm"
	"fi_rdm_cntr_pingpong -I 50 -v" "fi_rdm_pingpong -I 50 -v" "fi_rdm_tagged_peek"
	"fi_rma_bw -o write -I 20 -v" "fi_unexpected_msg -I 10")
fab_dir=
fab_limit=$((limit < 60 ? limit : 60))

# fab_single PROVIDER PROGRAM...; fab_pair: the same at two ends, which find each other by TCP.
fab_single() {
	local provider=$1
	shift
	env FI_PROVIDER="${provider//;/,}" timeout -k 10 "$fab_limit" "$fab_dir$1" -p "$provider" \
		"${@:2}" >"$tmp/out" 2>&1 </dev/null
}

fab_pair() { fab_two -E "$@"; }
fab_by_name() { fab_two "" "$@"; }
fab_two() {
	local exchange=$1 provider=$2 port=$((20000 + RANDOM % 12000)) rc=0 pid
	shift 2
	# shellcheck disable=SC2086
	fab_single "$provider" "$@" $exchange -B "$port" &
	pid=$!
	sleep 1
	# shellcheck disable=SC2086
	env FI_PROVIDER="${provider//;/,}" timeout -k 10 "$fab_limit" "$fab_dir$1" -p "$provider" \
		"${@:2}" $exchange -P "$port" 127.0.0.1 >"$tmp/client" 2>&1 </dev/null || rc=1
	wait $pid || rc=1
	cat "$tmp/client" >>"$tmp/out"
	return $rc
}

# fab KIND PROGRAM...
fab() {
	local kind=$1 a=failed b=failed
	shift
	if ! command -v "$fab_dir$1" >/dev/null; then
		result fabtests "not run: there is no $1" - -
		return
	fi
	"$kind" "tcp;ofi_rxm" "$@" && b=ok
	"$kind" weft "$@" && a=ok
	result fabtests "$*" $a $b
}

fabtests() {
	local program
	command -v "${fab_dir}fi_rdm" >/dev/null ||
		{ lacks fabtests "fi_rdm (fabtests; --fabtests FOLDER)"; return; }
	for program in "${fab_singles[@]}"; do
		# shellcheck disable=SC2086
		fab fab_single $program
	done
	for program in "${fab_pairs[@]}"; do
		# shellcheck disable=SC2086
		fab fab_pair $program
	done
	for program in "${fab_named[@]}"; do
		# shellcheck disable=SC2086
		fab fab_by_name $program
	done
}

mpich_dir=
mpich_folders=(pt2pt rma datatype coll)

# mpich_list PROVIDER FOLDER LIST TAP: the programs of LIST by MPICH's own script.
mpich_list() {
	(cd "$mpich_dir/$2" &&
		env MPIR_CVAR_NOLOCAL=1 FI_PROVIDER="$1" MPITEST_TIMEOUT="$limit" \
			../runtests -srcdir=. -tests="$3" -tapfile="$4" >"$tmp/out" 2>&1 </dev/null)
}

# Lines of a list of tests whose program and number of ranks have failed: "not ok - ./NAME RANKS #".
mpich_failed() {
	awk 'NR == FNR { if ($1 == "not") { sub(".*/", "", $4); bad[$4 " " $5] = 1 } next }
		($1 " " $2) in bad' "$1" "$2"
}

mpich() {
	local folder list passed line
	[ -x "$mpich_dir/runtests" ] ||
		{ lacks mpich "runtests (MPICH's folder test/mpi; --mpich FOLDER)"; return; }
	for folder in "${mpich_folders[@]}"; do
		list=$mpich_dir/$folder/testlist
		mpich_list weft $folder "$list" "$tmp/weft.tap"
		passed=$(grep -c '^ok' "$tmp/weft.tap")
		mpich_failed "$tmp/weft.tap" "$list" >"$tmp/again"
		result mpich "$folder: $passed programs" "$([ "$passed" != 0 ] && echo ok ||
			echo failed)" -
		[ -s "$tmp/again" ] || continue
		mpich_list "tcp;ofi_rxm" $folder "$tmp/again" "$tmp/reference.tap"
		mpich_failed "$tmp/reference.tap" "$tmp/again" >"$tmp/both"
		while read -r line; do
			result mpich "$line" failed \
				"$(grep -qxF "$line" "$tmp/both" && echo failed || echo ok)"
		done <"$tmp/again"
	done
}

# ------------------------------------------------------------------

while :; do
	case ${1:-} in
	-h | --help) usage 0 ;;
	--fabtests)
		[ $# -gt 1 ] || usage 2
		fab_dir=$(cd "$start" && realpath "$2")/
		shift 2
		;;
	--mpich)
		[ $# -gt 1 ] || usage 2
		mpich_dir=$(cd "$start" && realpath "${2%%:*}")
		[[ $2 != *:?* ]] || IFS=, read -ra mpich_folders <<<"${2#*:}"
		shift 2
		;;
	*) break ;;
	esac
done
steps=("$@")
[ ${#steps[@]} -gt 0 ] || steps=(netpipe hpcc crowd fabtests mpich)
[ -f "$weft_build/provider/libweft-fi.so" ] || weft_die "there is no provider in $weft_build"
command -v mpirun >/dev/null || weft_die "there is no mpirun: devtools/setup.sh build mpi"
for step in "${steps[@]}"; do
	case $step in
	netpipe | hpcc | crowd | fabtests | mpich) $step ;;
	*) usage 2 ;;
	esac
done
echo
printf '%-8s %-34s %-8s %s\n' step what weft reference
printf '%s\n' "${results[@]}"
[ $failed = 0 ]
