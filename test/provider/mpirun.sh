#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What weft-mpirun hands to launchers: programs in their place print their version, arguments and
# environment.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/../proc/lib.sh"

for variable in "${!FI_@}" "${!HYDRA_@}" "${!I_MPI_@}" "${!LSB_@}" "${!OMPI_@}" "${!PBS_@}" \
	PE_HOSTFILE "${!PRTE_@}" "${!SLURM@}" "${!WEFT_@}"; do
	unset "$variable"
done
export WEFT_CONFIG=off
export FI_PROVIDER_PATH=$build/provider PATH=$dir/bin:$PATH
mkdir -p "$dir/bin"

# launcher NAME VERSION-TEXT
launcher() {
	cat >"$dir/bin/$1" <<-END
		#!/bin/sh
		[ "\$1" != --version ] || { echo '$2'; exit; }
		echo "ARGS \$*"
		env
	END
	chmod 755 "$dir/bin/$1"
}
launcher mpirun 'mpirun (Open MPI) 4.1.4'
launcher mpirun5 'mpirun (Open MPI) 5.0.7'
launcher mpiexec.hydra 'HYDRA build details: Version: 4.2.1'
launcher mpiexec.intel 'Intel(R) MPI Library for Linux* OS, Version 2021.12 Build 20240213'
launcher srun 'slurm 22.05.8'
launcher other 'other 1.0'

# with ARGUMENT...: runs it; output in out and err.
with() {
	sh "$build/weft-mpirun" "$@" >"$dir/out" 2>"$dir/err"
}

# has PATTERN...: each is a line.
has() {
	local pattern
	for pattern; do
		grep -qE "^$pattern$" "$dir/out" && continue
		echo "no line $pattern"
		cat "$dir/out" "$dir/err"
		return 1
	done
}

has_not() {
	! grep -E -e "$1" "$dir/out"
}

open_mpi_4() {
	with -n 2 ./program && has 'ARGS .*-n 2 ./program' 'OMPI_MCA_pml=cm' 'OMPI_MCA_mtl=ofi' \
		'OMPI_MCA_opal_common_ofi_provider_include=weft' \
		'ARGS (.* )?-x FI_PROVIDER_PATH .*' && has_not '^OMPI_MCA_osc' || return 1
	with --rma -n 2 ./program && has 'OMPI_MCA_pml=cm' 'OMPI_MCA_osc=rdma' \
		'OMPI_MCA_osc_rdma_btls=ofi' 'OMPI_MCA_btl=ofi,self'
}

open_mpi_5() {
	with --launcher mpirun5 -n 2 ./program && has 'OMPI_MCA_pml=cm' 'OMPI_MCA_mtl=ofi' ||
		return 1
	with --rma --launcher mpirun5 -n 2 ./program &&
		has 'OMPI_MCA_pml=ob1' 'OMPI_MCA_osc=rdma' \
		'OMPI_MCA_btl=self,ofi' 'OMPI_MCA_btl_ofi_mode=2' && has_not '^OMPI_MCA_mtl'
}

others() {
	with --launcher mpiexec.hydra -n 2 ./program &&
		has 'ARGS -n 2 ./program' 'FI_PROVIDER=weft' && has_not '^OMPI_' || return 1
	with --launcher srun -n 2 ./program &&
		has 'ARGS -n 2 ./program' 'FI_PROVIDER=weft' 'OMPI_MCA_pml=cm' || return 1
	with --launcher other -n 2 ./program && return 1
	grep -q "not a launcher that is known here" "$dir/err"
}

# A host's own lanes hold: the job's go by another name.
own_lanes() {
	WEFT_LANES=dpdk:0 WEFT_EAL_ARGS='--no-huge' WEFT_CC=fixed with -n 2 ./program || return 1
	has 'ARGS .*-x WEFT_CC .*' 'ARGS .*-x FI_WEFT_JOB_LANES .*' \
		'ARGS .*-x FI_WEFT_JOB_EAL_ARGS .*' 'FI_WEFT_JOB_LANES=dpdk:0' \
		'FI_WEFT_JOB_EAL_ARGS=--no-huge' && has_not '-x WEFT_(LANES|EAL_ARGS)'
}

# The provider of a build folder; or the folder in which it is missing.
its_place() {
	local FI_PROVIDER_PATH=
	with -n 2 ./program && has "FI_PROVIDER_PATH=$build/provider" || return 1
	mkdir "$dir/moved" && cp "$build/weft-mpirun" "$dir/moved" || return 1
	! sh "$dir/moved/weft-mpirun" -n 2 ./program >"$dir/out" 2>&1 &&
		grep -q "there is no libweft-fi.so in $dir/.*/libfabric" "$dir/out"
}

# The user's own values hold.
quick() {
	with --quick -n 2 ./program && has 'HWLOC_COMPONENTS=-x86' 'HWLOC_PLUGINS_PATH=.*' \
		'ARGS .*-x HWLOC_COMPONENTS .*' || return 1
	HWLOC_COMPONENTS=-cuda with --quick -n 2 ./program && has 'HWLOC_COMPONENTS=-cuda' ||
		return 1
	with -n 2 ./program && has_not HWLOC
}

shows() {
	with --show --rma --launcher mpirun5 -n 2 ./program || return 1
	cat "$dir/err"
	grep -q "is openmpi 5.0.7$" "$dir/err" && grep -q ": OMPI_MCA_pml=ob1$" "$dir/err" &&
		grep -q "mpirun5 .*-n 2 ./program$" "$dir/err" || return 1
	with -n 2 ./program && [ ! -s "$dir/err" ]
}

# A libfabric that is put first, unless the system's is newer.
lean() {
	local system
	system=$(ldd "$build/provider/libweft-fi.so" |
		sed -n 's/.*libfabric.so.1 => \([^ ]*\) .*/\1/p')
	mkdir -p "$dir/lean" "$dir/old"
	cp "$(readlink -f "$system")" "$dir/lean/libfabric.so.1.999.0"
	ln -s libfabric.so.1.999.0 "$dir/lean/libfabric.so.1"
	: >"$dir/old/libfabric.so.1.0.1"
	ln -s libfabric.so.1.0.1 "$dir/old/libfabric.so.1"
	with --libfabric "$dir/lean" -n 2 ./program && has 'ARGS .*-x LD_LIBRARY_PATH .*' \
		"LD_LIBRARY_PATH=$dir/lean.*" || return 1
	with --libfabric "$dir/old" -n 2 ./program && has_not '-x LD_LIBRARY_PATH' || return 1
	grep -q "is older than" "$dir/err" || return 1
	with --libfabric "$dir/nowhere" -n 2 ./program && return 1
	grep -q "no libfabric.so.1 in" "$dir/err"
}

# What a job finds: its key, and another host, which ssh reaches. There a folder has another place.
cat >"$dir/bin/job" <<END
#!/bin/sh
[ "\$1" != --version ] || { echo 'mpirun (Open MPI) 4.1.4'; exit; }
for what; do :; done
echo "\$WEFT_JOB_KEY" >$dir/key.name
stat -c '%a %s' "\$WEFT_JOB_KEY" >$dir/key.mode
stat -c %a "\${WEFT_JOB_KEY%/key}" >>$dir/key.mode
cat "\$WEFT_JOB_KEY" >$dir/key
case \$what in
there) "\$OMPI_MCA_plm_rsh_agent" -p 22 me@there cat "\$WEFT_JOB_KEY" >$dir/there || exit 9 ;;
names)
	"\$OMPI_MCA_plm_rsh_agent" me@there true &
	"\$OMPI_MCA_plm_rsh_agent" also@there cat "\$WEFT_JOB_KEY" >$dir/there || exit 9
	wait \$! || exit 8
	;;
pipes)
	bash -c '"\$OMPI_MCA_plm_rsh_agent" me@there true 9>&1 12>&1 >/dev/null' |
		timeout 20 cat || exit 9
	;;
wait)
	trap 'echo ended; exit 7' TERM
	echo \$\$ >$dir/job.pid
	while :; do sleep 0.1; done
	;;
interrupted) kill -INT \$\$ ;;
read) cat ;;
esac
env
exit 5
END
cat >"$dir/bin/ssh" <<END
#!/bin/sh
echo "\$*" | head -n 1 >>$dir/ssh.args
[ ! -e $dir/no.there ] || . $dir/no.there
while [ "\${1#*@}" != there ]; do shift; done
shift
exec sh -c "\$(echo "\$*" | sed 's,/dev/shm/weft-job-,$dir/far-,g')"
END
chmod 755 "$dir/bin/job" "$dir/bin/ssh"

# no_key: none is left, on no host. The last shell of a killed job takes up to a second.
no_key() {
	local i
	for ((i = 0; i < 100; i++)); do
		[ -e "$(dirname "$(cat "$dir/key.name")")" ] ||
			[ -n "$(find "$dir" -maxdepth 1 -name 'far-*')" ] || return 0
		sleep 0.1
	done
	echo "a key is left"
	return 1
}

# sealed ARGUMENT...: a job that gets a key; its own exit code is 5.
sealed() {
	local rc=0
	rm -f "$dir/key" "$dir/key.name" "$dir/key.mode" "$dir/there" "$dir/ssh.args"
	with --launcher job "$@" || rc=$?
	cat "$dir/err"
	echo "exit code $rc"
	[ $rc = 5 ] && no_key && [ "$(cat "$dir/key.mode")" = "600 32"$'\n'700 ]
}

job_key() {
	sealed --seal x && has 'WEFT_SEAL=encrypt' 'WEFT_JOB_KEY=/dev/shm/weft-job-.*/key' ||
		return 1
	cp "$dir/key" "$dir/first"
	sealed --seal=auth x && has 'WEFT_SEAL=auth' || return 1
	! cmp "$dir/key" "$dir/first" || return 1
	WEFT_SEAL=auth sealed x && has 'WEFT_SEAL=auth' || return 1
	echo "of its input" >"$dir/in"
	sealed --seal read <"$dir/in" && has 'of its input' || return 1
	mkdir "$dir/shared"
	sealed --seal --key-folder "$dir/shared" x &&
		has "WEFT_JOB_KEY=$dir/shared/.*/key"
}

# Without a choice, and with a key of the user's own, nothing is made.
no_job_key() {
	with -n 2 ./program && has_not '^WEFT_(SEAL|JOB_KEY)' || return 1
	with --seal=off -n 2 ./program && has 'WEFT_SEAL=off' && has_not '^WEFT_JOB_KEY' || return 1
	WEFT_JOB_KEY=/my/key with --seal -n 2 ./program && has 'WEFT_JOB_KEY=/my/key' \
		'WEFT_SEAL=encrypt' 'ARGS .*-x WEFT_JOB_KEY .*' || return 1
	with --seal --env && has "export WEFT_SEAL='encrypt'" && has_not 'WEFT_JOB_KEY' || return 1
	with --seal=none -n 2 ./program && return 1
	grep -q "it is --seal=encrypt, --seal=auth or --seal=off" "$dir/err"
}

# waiting: a job in the background (pid), until it runs.
waiting() {
	rm -f "$dir/key.name" "$dir/job.pid"
	sh "$build/weft-mpirun" --launcher job --seal wait >"$dir/out" 2>"$dir/err" &
	pid=$!
	until_exists "$dir/job.pid" "$pid"
}

# The launcher gets the signals of a job. Its end is that of the key, also after SIGKILL.
signals() {
	local rc=0 pid
	waiting || return 1
	kill -TERM "$pid"
	wait "$pid" || rc=$?
	[ $rc = 7 ] && has ended && no_key || return 1
	waiting || return 1
	kill -KILL "$pid"
	no_key
	rc=$?
	kill -TERM "$(cat "$dir/job.pid")"
	[ $rc = 0 ] || return 1
	rc=0
	with --launcher job --seal interrupted || rc=$?
	[ $rc = 130 ] && no_key
}

other_host() {
	sealed --seal there && cmp "$dir/key" "$dir/there" || return 1
	# The key has a connection of its own, and is in no argument.
	[ "$(grep -c '^-x -p 22 me@there ' "$dir/ssh.args")" = 2 ] &&
		[ "$(wc -l <"$dir/ssh.args")" = 2 ] || return 1
	# A launcher that waits until the agent's programs have closed its pipes, as Hydra does.
	sealed --seal pipes || return 1
}

# no_there SCRIPT PATTERN: ssh runs this first. The job is refused with a reason, and leaves no key.
no_there() {
	rm -f "$dir/key.name"
	echo "$1" >"$dir/no.there"
	with --launcher job --seal there && return 1
	rm "$dir/no.there"
	cat "$dir/err"
	grep -qE "me@there took no job key, and the job is refused: $2" "$dir/err" && no_key
}

no_other_host() {
	no_there "echo 'no such host' >&2; exit 255" "no such host" &&
		no_there "exit 254" "'ssh -x' ended with exit code 254 and no message" &&
		no_there "echo This account is not available; exit 1" \
			"it prints: This account is not available" &&
		no_there "head -c 20 >$dir/part && exec <$dir/part" \
			"of the 32 bytes of the key 20 have arrived" &&
		no_there "exec </dev/null" "of the 32 bytes of the key 0 have arrived"
}

# The host has two names. The second connection finds the folder of the first one, and no key yet.
two_names() {
	local rc=0
	cat >"$dir/no.there" <<-END
		exec 3<&0
		case \$* in
		*also@there*)
			until [ -n "\$(find $dir -maxdepth 1 -name 'far-*')" ]; do sleep 0.1; done
			;;
		*)
			if mkfifo $dir/slow 2>/dev/null; then
				{ sleep 1 && cat; } <&3 >$dir/slow &
				exec <$dir/slow
			fi
			;;
		esac
		exec 3<&-
	END
	sealed --seal names || rc=$?
	rm "$dir/no.there"
	[ $rc = 0 ] && cmp "$dir/key" "$dir/there"
}

# refused PATTERN ARGUMENT...: with a sentence, and without a launcher that has run.
refused() {
	local pattern=$1
	shift
	rm -f "$dir/key.name"
	! with "$@" || return 1
	cat "$dir/err"
	grep -q "^weft-mpirun: .*$pattern" "$dir/err" && [ ! -s "$dir/out" ] &&
		[ ! -e "$dir/key.name" ]
}

no_safe_way() {
	OMPI_MCA_plm_rsh_agent=/usr/bin/rsh refused "could read the job key: create one" \
		--launcher job --seal x || return 1
	OMPI_MCA_plm=slurm refused "only by ssh a job key goes" --launcher job --seal x || return 1
	HYDRA_LAUNCHER=sge refused "HYDRA_LAUNCHER=sge is set" --launcher mpiexec.hydra --seal x ||
		return 1
	refused "which then get no job key" --seal --mca plm_rsh_agent rsh x || return 1
	refused "an option chooses how daemons are started" --seal --mca plm slurm x || return 1
	refused "an option chooses how daemons are started" --launcher mpiexec.hydra --seal \
		-launcher rsh x || return 1
	SLURM_JOB_ID=0 SLURMD_NODENAME=a SLURM_JOB_NUM_NODES=2 refused \
		"ask the administrator for the prolog of doc/slurm.md" --launcher srun --seal x
}

# Schedulers that start Open MPI's daemons, unless ssh is chosen, or there is one host.
other_schedulers() {
	local how
	printf 'a\na\nb\n' >"$dir/nodes"
	printf 'a\na\n' >"$dir/node"
	printf 'a 2 q x\nb 2 q x\n' >"$dir/pe"
	printf 'a 2 q x\n' >"$dir/pe.one"
	for how in "job OMPI_MCA_plm=rsh" "mpirun5 PRTE_MCA_plm=ssh"; do
		PBS_JOBID=1 PBS_NODEFILE=$dir/nodes refused \
			"PBS (TM) starts Open MPI's daemons.*set ${how#* } where ssh reaches" \
			--launcher "${how% *}" --seal x || return 1
		LSB_JOBID=1 LSB_MCPU_HOSTS="a 2 b 2" refused "LSF starts.*set ${how#* } where" \
			--launcher "${how% *}" --seal x || return 1
	done
	JOB_ID=1 PE_HOSTFILE=$dir/pe refused "Grid Engine (qrsh) starts.*_disable_qrsh=1 where" \
		--launcher job --seal x || return 1
	PBS_JOBID=1 PBS_NODEFILE=$dir/nodes OMPI_MCA_plm=rsh sealed --seal x &&
		PBS_JOBID=1 PBS_NODEFILE=$dir/node sealed --seal x &&
		LSB_JOBID=1 LSB_MCPU_HOSTS="a 4" sealed --seal x &&
		JOB_ID=1 PE_HOSTFILE=$dir/pe.one sealed --seal x &&
		JOB_ID=1 PE_HOSTFILE=$dir/pe OMPI_MCA_plm_rsh_disable_qrsh=1 sealed --seal x
}

# What Slurm's own means may do is left to them.
with_slurm() {
	SLURM_JOB_ID=0 SLURMD_NODENAME=a SLURM_JOB_NUM_NODES=1 sealed --seal x || return 1
	SLURM_JOB_ID=0 with --seal -n 2 ./program && has 'WEFT_SEAL=encrypt' &&
		has_not '^WEFT_JOB_KEY' || return 1
	with --launcher srun --seal=auth -n 2 ./program && has 'WEFT_SEAL=auth' &&
		has_not '^WEFT_JOB_KEY'
}

other_launchers() {
	with --launcher mpirun5 --seal -n 2 ./program &&
		has 'PRTE_MCA_plm_ssh_agent=/dev/shm/weft-job-.*' \
		'PRTE_MCA_plm_ssh_no_tree_spawn=1' || return 1
	with --launcher mpiexec.hydra --seal -n 2 ./program && has 'HYDRA_LAUNCHER=ssh' \
		'HYDRA_LAUNCHER_EXEC=/dev/shm/weft-job-.*'
}

# By names of Intel MPI's own, with the user's own shell behind them.
intel_mpi() {
	with --launcher mpiexec.intel -n 2 ./program && has 'I_MPI_OFI_PROVIDER=weft' \
		'FI_PROVIDER=weft' && has_not '^I_MPI_HYDRA' || return 1
	with --launcher mpiexec.intel --seal -n 2 ./program && has 'I_MPI_HYDRA_BOOTSTRAP=ssh' \
		'I_MPI_HYDRA_BOOTSTRAP_EXEC=/dev/shm/weft-job-.*' && has_not '^HYDRA_' || return 1
	I_MPI_HYDRA_BOOTSTRAP=slurm refused "I_MPI_HYDRA_BOOTSTRAP=slurm is set" \
		--launcher mpiexec.intel --seal x || return 1
	I_MPI_HYDRA_BOOTSTRAP_EXEC=/usr/bin/rsh refused "I_MPI_HYDRA_BOOTSTRAP_EXEC is" \
		--launcher mpiexec.intel --seal x
}

check "a job key is the owner's alone, and ends with its job" job_key
check "no job key where none is requested" no_job_key
check "a job's signals, exit code and key" signals
check "another host gets the job key by ssh" other_host
check "another host that takes no key is named, with the reason" no_other_host
check "two names of one host" two_names
check "Intel MPI gets variables of its own" intel_mpi
check "a job is refused where a key has no safe way" no_safe_way
check "a job is refused where a scheduler starts its daemons" other_schedulers
check "a job key in Slurm" with_slurm
check "a job key with Open MPI 5 and Hydra" other_launchers
check "the provider is that of the place of weft-mpirun" its_place
check "Open MPI 4, with and without --rma" open_mpi_4
check "Open MPI 5, with and without --rma" open_mpi_5
check "Hydra, srun, and a launcher that is not known" others
check "a host's own lanes are not overridden" own_lanes
check "--quick" quick
check "--show" shows
check "a lean libfabric comes first, unless it is older" lean
tap_end
