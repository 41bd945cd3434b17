#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# MPI jobs in a Slurm cluster of four nodes, which are namespaces (devtools/cluster.sh): with
# weft-switch on each node, with UDP sockets over two rails, and with faults; NetPIPE and hpcc with
# their own verification. "short" as the second argument: 8 ranks over the switches, NetPIPE, and
# a rank that dies.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/../proc/lib.sh"
# shellcheck source=test/provider/hpcc.sh
. "$(dirname "$0")/hpcc.sh"

root=$(realpath "$(dirname "$0")/../..")
[ -x "$build/test/provider/mpi_ranks" ] || { echo "there is no mpi_ranks in this build"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "network namespaces need root"; exit 77; }
for program in slurmctld slurmd munged nsenter; do
	PATH=$PATH:/usr/sbin command -v $program >/dev/null ||
		{ echo "there is no $program here (slurmctld, slurmd, munge)"; exit 77; }
done

ranks=/run/build/test/provider/mpi_ranks
export WEFT_BUILD=$build WEFT_CLUSTER=$dir/cluster
chmod 755 "$dir" # the users' jobs read Slurm's configuration
cluster=("$root/devtools/cluster.sh")
trap '"${cluster[@]}" down; tidy' EXIT
guard "${cluster[@]}" down
"${cluster[@]}" up 4 >"$dir/up" 2>&1 || {
	cat "$dir/up"
	! grep -q "no namespaces for" "$dir/up" || exit 77
	exit 1
}

# job USER N MODE...: N ranks on four nodes, a job for each mode; none reports an error.
job() {
	local user=$1 n=$2 mode
	shift 2
	for mode in "$@"; do
		timeout -k 10 "$(stretch 60 300)" "${cluster[@]}" as "$user" env "${with[@]}" \
			srun -N 4 -n "$n" --overcommit "$ranks" "$mode" \
			>"$dir/$user.out" 2>"$dir/$user.err"
		tail -n 20 "$dir/$user.out" "$dir/$user.err"
		grep -q "^$mode: $n ranks, 0 errors$" "$dir/$user.out" || return 1
	done
}
with=()

# begin USER N MODE: in the background (job_pid), until its first round is over.
begin() {
	rm -f "$dir/$1.out"
	job "$@" &
	job_pid=$!
	until_said "$dir/$1.out" "first round" $job_pid
}

# remains NODE: what processes have left there, but not what each user's folder keeps. A killed
# process leaves names of sockets, which a later process of the user removes (doc/shm.md).
remains() {
	"${cluster[@]}" left "$1" |
		grep -v "recorder-\|switch.*memif$\|@weft/netdev\|/shm-[0-9a-f]*$\|/dpdk_telemetry"
}

over_the_switches() { # RANKS
	with=()
	job alice "$1" p2p coll
}

over_udp() {
	with=(WEFT_LANES="udp:rail1;udp:rail2")
	job alice 8 p2p
}

# A cable of two is cut for 3 s: no byte is wrong, no rank fails.
rail_dies() {
	with=(WEFT_LANES="udp:rail1;udp:rail2")
	begin alice 4 exchange12 || return 1
	"${cluster[@]}" rail 2 1 down
	sleep 3
	"${cluster[@]}" rail 2 1 up
	wait $job_pid
}

switch_restarts() {
	with=()
	begin alice 8 exchange12 || return 1
	"${cluster[@]}" switch 2 || return 1
	wait $job_pid
}

node_stops() {
	with=()
	begin alice 8 exchange12 || return 1
	"${cluster[@]}" pause 3 5
	wait $job_pid
}

# The job ends within seconds, no process or open socket of it remains, and the next job runs.
rank_is_killed() {
	local begin i node
	with=()
	begin alice 8 exchange300 || return 1
	begin=$SECONDS
	"${cluster[@]}" on 4 pkill -KILL -n -x mpi_ranks || return 1
	! wait $job_pid || { echo "the job ended well"; return 1; }
	[ $((SECONDS - begin)) -le "$(stretch 10)" ] ||
		{ echo "the job ended after $((SECONDS - begin)) s"; return 1; }
	grep -qE "task [0-9]+: Killed|wn4" "$dir/alice.err" ||
		{ echo "no message names the rank"; return 1; }
	for ((i = 0; i < 100; i++)); do
		if [ -z "$(for node in 1 2 3 4; do remains $node; done)" ]; then
			job alice 8 coll
			return
		fi
		sleep 0.1
	done
	for node in 1 2 3 4; do remains $node; done
	return 1
}

# NetPIPE between two nodes compares each message with what was sent.
netpipe() {
	local rc=0
	timeout -k 10 "$(stretch 100 300)" "${cluster[@]}" as alice srun -N 2 -n 2 \
		NPopenmpi -i -u 100000 -n 5 -o /dev/null >"$dir/netpipe.out" 2>&1 || rc=1
	tail -n 3 "$dir/netpipe.out"
	[ $rc = 0 ] && ! grep -q "check failed" "$dir/netpipe.out" &&
		grep -q "Integrity check passed" "$dir/netpipe.out"
}

check_netpipe() {
	local name="NetPIPE between two nodes, verified"
	if command -v NPopenmpi >/dev/null; then
		check "$name" netpipe
	else
		skip "$name" "there is no NPopenmpi (netpipe-openmpi)"
	fi
}

# hpcc with a rank on each node. Its first rank reads and writes in the user's folder.
hpcc_verified() {
	cp "$(dirname "$0")/hpccinf.txt" "$WEFT_CLUSTER/"
	"${cluster[@]}" as alice cp /run/cluster/hpccinf.txt . || return 1
	timeout -k 10 "$(stretch 100 400)" "${cluster[@]}" as alice srun -N 4 -n 4 \
		hpcc >"$dir/hpcc.out" 2>&1 || { tail -n 8 "$dir/hpcc.out"; return 1; }
	"${cluster[@]}" as alice cat hpccoutf.txt >"$dir/hpccoutf.txt" &&
		"${cluster[@]}" as alice rm hpccoutf.txt hpccinf.txt &&
		hpcc_report_right "$dir/hpccoutf.txt"
}

check_hpcc() {
	local name="hpcc between four nodes, verified"
	if command -v hpcc >/dev/null; then
		check "$name" hpcc_verified
	else
		skip "$name" "there is no hpcc"
	fi
}

all_to_all() {
	with=()
	job alice 16 alltoall
}

# Another user's job sends as fast as it can meanwhile.
two_users() {
	local rc=0
	with=()
	begin bob 4 exchange15 || return 1
	job alice 8 coll || rc=1
	wait $job_pid && return $rc
}

# ---- captures of all ranks ------------------------------------------------------------------

# captured FILE: a job of 16 ranks over UDP sockets on two rails, each rank with a capture. The
# report of weft-dump about all of them is in FILE.
captured() {
	local rc=0 captures=$WEFT_CLUSTER/captures
	mkdir -m 777 "$captures"
	cat >"$WEFT_CLUSTER/captured.sh" <<-'END'
		#!/bin/sh
		export WEFT_CAPTURE="/run/cluster/captures/$SLURM_PROCID.pcapng,snaplen=1600"
		exec "$@"
	END
	chmod 755 "$WEFT_CLUSTER/captured.sh"
	timeout -k 10 "$(stretch 100 400)" "${cluster[@]}" as alice env \
		WEFT_LANES="udp:rail1;udp:rail2" WEFT_RECORDER=off srun -N 4 -n 16 --overcommit \
		/run/cluster/captured.sh "$ranks" coll >"$dir/captured.out" 2>&1
	tail -n 3 "$dir/captured.out"
	grep -q "^coll: 16 ranks, 0 errors$" "$dir/captured.out" || rc=1
	"$build/app/weft-dump" -j "$captures"/*.pcapng >"$1" 2>/dev/null || rc=1
	rm -rf "$captures"
	return $rc
}

# The report has all ranks, and no fault of the network.
captures_of_ranks() {
	captured "$dir/clean" || return 1
	python3 - "$dir/clean" <<-'END'
		import json, re, sys
		report = json.load(open(sys.argv[1]))
		names = {c[k] for c in report['conversations'] for k in ('from', 'to')}
		found = {int(n) for n in re.findall(r'mpi_ranks-rank([0-9]+)-', ' '.join(names))}
		frames = [a for a in report['anomalies'] if 'lane' in a]
		print(names, frames, {a['class'] for a in report['anomalies']})
		assert len(report['captures']) == 16 and found == set(range(16))
		assert not frames
	END
}

# Frames that leave rail2 of node 2 are lost: that rail is named on several lanes, and others on
# less than half as many. Ranks that share two cores do not read their sockets to the end.
captures_name_a_rail() {
	local rc=0
	"${cluster[@]}" on 2 nft "add table netdev weft
		add chain netdev weft out { type filter hook egress device rail2 priority 0; }
		add rule netdev weft out udp length > 64 numgen random mod 20 0 counter drop" ||
		return 1
	captured "$dir/lossy" || rc=1
	"${cluster[@]}" on 2 nft list table netdev weft
	"${cluster[@]}" on 2 nft delete table netdev weft
	[ $rc = 0 ] && python3 - "$dir/lossy" <<-'END'
		import json, sys
		report = json.load(open(sys.argv[1]))
		where = [(a['class'], a['where']) for a in report['anomalies'] if 'lane' in a]
		print(where)
		there = [c for c, w in where if ' udp:rail2 10.98.2.2 > ' in w]
		assert there.count('random loss') >= 4
		assert 3 * len(there) > 2 * len(where)
	END
}

# ---- doc/slurm.md ---------------------------------------------------------------------------

# alice_runs ARGUMENT...: srun as that user, within a limit.
alice_runs() {
	timeout -k 10 "$(stretch 60 200)" "${cluster[@]}" as alice srun "$@"
}

# Slurm counts the switch's ports: 6 of 16 are granted while a job has 10, and 7 are not.
ports_are_counted() {
	local rc=0
	alice_runs -w wn2 --gres=weft_port:10 sh -c 'echo has ports; sleep 300' \
		>"$dir/ports.out" 2>&1 &
	until_said "$dir/ports.out" "has ports" $! || return 1
	alice_runs -w wn2 --gres=weft_port:6 true || rc=1
	! alice_runs -w wn2 --immediate=2 --gres=weft_port:7 true || rc=1
	"${cluster[@]}" as alice scancel --user=alice
	wait
	alice_runs -w wn2 --gres=weft_port:7 true || rc=1
	! alice_runs -w wn2 --gres=weft_port:17 true || rc=1
	return $rc
}

# key_files: mode, owner and hash of the job's key, once for each node.
key_files() {
	# shellcheck disable=SC2016 # for the tasks
	timeout -k 10 "$(stretch 60 200)" "${cluster[@]}" as alice env WEFT_SEAL=auth \
		srun -N 4 -n 4 sh -c \
		'echo $(stat -c "%a %U" "$WEFT_JOB_KEY") $(sha256sum <"$WEFT_JOB_KEY")'
}

# Sealed frames need the key, so ranks with WEFT_SEAL that finish have it.
jobs_have_keys() {
	local first second node i
	with=(WEFT_SEAL=auth)
	job alice 8 p2p || return 1
	first=$(key_files) || return 1
	second=$(key_files) || return 1
	echo "$first" "$second"
	[[ $(echo "$first" | sort | uniq -c) =~ ^\ *4\ 400\ alice ]] &&
		[ "$(echo "$second" | sort -u | wc -l)" = 1 ] &&
		[ "$(echo "$first" | sort -u)" != "$(echo "$second" | sort -u)" ] || return 1
	for node in 1 2 3 4; do
		for ((i = 0; i < 100; i++)); do
			[ -n "$("${cluster[@]}" on $node ls /run/weft/jobs)" ] || continue 2
			sleep 0.1
		done
		echo "node $node still has a key"
		return 1
	done
}

# sealed_job LAUNCHER START...: four ranks by weft-mpirun, which START runs.
sealed_job() {
	local launcher=$1 nodes=()
	shift
	[ $# -gt 0 ] || nodes=(-N 4 -n 4)
	timeout -k 10 "$(stretch 60 200)" "${cluster[@]}" as alice "$@" \
		env FI_PROVIDER_PATH=/run/build/provider sh /run/build/weft-mpirun \
		--launcher "$launcher" --seal "${nodes[@]}" "$ranks" p2p >"$dir/alice.out" 2>&1
	cat "$dir/alice.out"
	grep -q "^p2p: 4 ranks, 0 errors$" "$dir/alice.out"
}

# From outside of the job, in its allocation, and on its first node. The shell of salloc runs on a
# node of the job here. Open MPI starts the ranks of that node itself, without a task prolog.
keys_by_weft_mpirun() {
	sealed_job srun && sealed_job srun salloc -N 4 -n 4 && sealed_job mpirun salloc -N 4 -n 4
}

# Without its switch a node is drained, and takes jobs again afterwards.
prolog_drains() {
	local rc=0 i
	"${cluster[@]}" on 4 mv /run/weft/switch.sock /run/weft/moved
	timeout -k 5 20 "${cluster[@]}" as alice srun -w wn4 true && rc=1
	for ((i = 0; i < 100; i++)); do
		! "${cluster[@]}" on 1 sinfo -h -n wn4 -o %T | grep -q drained || break
		sleep 0.1
	done
	"${cluster[@]}" on 1 sinfo -h -n wn4 -o %T | grep -q drained || rc=1
	"${cluster[@]}" on 4 mv /run/weft/moved /run/weft/switch.sock
	"${cluster[@]}" as alice scancel --user=alice
	"${cluster[@]}" on 1 scontrol update NodeName=wn4 State=RESUME || rc=1
	alice_runs -w wn4 true || rc=1
	return $rc
}

# Each command of the document that a user of the cluster can run.
documented_commands() {
	local line n=0
	"${cluster[@]}" as alice srun -N 4 -n 4 ln -sf "$ranks" program || return 1
	while read -r line; do
		echo "$line"
		timeout -k 10 "$(stretch 60 200)" "${cluster[@]}" as alice sh -c "$line" \
			</dev/null || return 1
		n=$((n + 1))
	done < <(grep -E '^    (srun|WEFT_SEAL|munge|sinfo|scontrol show|grep)' \
		"$root/doc/slurm.md")
	[ $n -ge 6 ]
}

check_slurm() {
	check "Slurm counts the ports of a switch" ports_are_counted
	check "each job has a key of its own on all its nodes, until it ends" jobs_have_keys
	check "weft-mpirun and Slurm give all ranks of a job its key" keys_by_weft_mpirun
	check "a node without its switch is drained, and returns" prolog_drains
	check "the commands of doc/slurm.md" documented_commands
}

if [ "${2:-}" = short ]; then
	check "8 ranks of an ordinary user on four nodes, over the switches" over_the_switches 8
	check_netpipe
	check "a rank is killed: its job ends without a process left, the next runs" rank_is_killed
	check_slurm
	check "the nodes end without a process left" "${cluster[@]}" down
	tap_end
	exit
fi
check "16 ranks of an ordinary user on four nodes, over the switches" over_the_switches 16
check "an all-to-all of 16 ranks, each byte compared" all_to_all
check_netpipe
check_hpcc
check "8 ranks over UDP sockets on two rails" over_udp
check "captures of 16 ranks show each rank, and no fault of the network" captures_of_ranks
check "captures of 16 ranks name the rail and the host that lose frames" captures_name_a_rail
check "a rail dies and comes back" rail_dies
check "a switch is killed and started again" switch_restarts
check "a node stops for 5 s" node_stops
check "a rank is killed: its job ends without a process left, the next runs" rank_is_killed
check "two users' jobs at once" two_users
check_slurm
check "the nodes end without a process left" "${cluster[@]}" down
tap_end
