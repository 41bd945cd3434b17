#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A Slurm cluster on this machine. Each node is a set of namespaces: network, mount, UTS and PID,
# with a /tmp, a /dev/shm and a /run of its own. A node runs munged, slurmd and weft-switch; the
# first node also runs slurmctld. Root is required, and Debian's slurmctld, slurmd and munge.
#
#	devtools/cluster.sh up [NODES]              make the cluster; 4 nodes by default
#	devtools/cluster.sh as USER COMMAND...      run COMMAND on the first node; alice or bob
#	devtools/cluster.sh on NODE COMMAND...      run COMMAND on a node as root; 1, 2, ...
#	devtools/cluster.sh rail NODE RAIL up|down  cut a cable, or plug it in again
#	devtools/cluster.sh switch NODE             kill the node's weft-switch, and start another
#	devtools/cluster.sh pause NODE SECONDS      stop all processes of a node for this time
#	devtools/cluster.sh left NODE               list what Weft's processes have left on the node
#	devtools/cluster.sh down                    end everything, and remove the state folder
#
# A node has three interfaces: eth0 (10.98.0.NODE) for Slurm, rail1 (10.98.1.NODE) and rail2
# (10.98.2.NODE) with an MTU of 9000. weft-switch owns rail1; Slurm counts its ports, and runs the
# prolog and the epilog of examples/slurm (doc/slurm.md). In a node the build folder is
# /run/build. A job over the switches, and one over both rails by UDP sockets:
#
#	devtools/cluster.sh as alice srun -N 4 -n 16 /run/build/test/provider/mpi_ranks coll
#	devtools/cluster.sh as alice env WEFT_LANES='udp:rail1;udp:rail2' srun ...
#
# State and logs are in WEFT_CLUSTER (/var/lib/weft-cluster).
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "$0")/setup.sh"

self=$(realpath "$0")
state=${WEFT_CLUSTER:-/var/lib/weft-cluster}
users=(alice bob)
first_uid=22001
node_path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cpus=8 # of a node, as Slurm sees it: more than there are, since this is one machine

usage() {
	sed -n '4,/^set/s/^# \{0,1\}//p' "$self"
	exit "$1"
}

# inside NODE COMMAND...: as root, in the namespaces of a node or of the "fabric".
inside() {
	local pid
	pid=$(cat "$state/$1.pid" 2>/dev/null) || weft_die "there is no node $1: see 'up'"
	shift
	nsenter -t "$pid" -n -m -u -p env -i HOME=/root LC_ALL=C.UTF-8 PATH="$node_path" \
		SLURM_CONF=/run/cluster/slurm.conf "$@"
}

# daemon NODE NAME COMMAND...: in the background; what it prints is in NODE.NAME.log.
daemon() {
	local node=$1 log=$state/$1.$2.log
	shift 2
	inside "$node" setsid "$@" >>"$log" 2>&1 </dev/null &
	disown
}

# until_true SECONDS WHAT COMMAND...
until_true() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	while ! "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || weft_die "$what; the logs are in $state"
		sleep 0.1
	done
}

# ---- what runs in a node --------------------------------------------------------------------

# node_main NAME BUILD: process 1 of a node. It prepares the file systems, and then only collects
# the exit codes of orphans.
node_main() {
	local name=$1 from=$2 i file
	hostname "$name"
	mount -t sysfs sysfs /sys
	mount -t tmpfs -o mode=755 run /run
	mkdir -p /run/build /run/cluster /run/weft /run/munge /run/slurm /run/home
	# These folders may be in the /tmp that is hidden below.
	mount --bind "$from" /run/build
	mount --bind "$state" /run/cluster
	for file in passwd group hosts; do mount --bind /run/cluster/$file /etc/$file; done
	mount -t tmpfs -o mode=1777 tmp /tmp
	mount -t tmpfs -o mode=1777 shm /dev/shm
	for i in "${!users[@]}"; do
		mkdir -m 700 "/run/home/${users[i]}"
		chown $((first_uid + i)):$((first_uid + i)) "/run/home/${users[i]}"
	done
	ip link set lo up
	: >"/run/cluster/$name.ready"
	while :; do
		sleep 3600 &
		wait $!
	done
}

# holder NAME: the process whose namespaces are the node's; with it all processes of the node end.
holder() {
	local name=$1
	# shellcheck disable=SC2016 # for the inner shell
	setsid unshare --net --mount --uts --pid --fork --mount-proc --kill-child \
		"$self" node-main "$name" "$weft_build" >"$state/$name.log" 2>&1 </dev/null &
	local outer=$! inner=
	disown
	for _ in $(seq 100); do
		[ ! -e "$state/$name.ready" ] || break
		kill -0 $outer 2>/dev/null || weft_die "no namespaces for $name"
		sleep 0.05
	done
	inner=$(cat "/proc/$outer/task/$outer/children" 2>/dev/null || pgrep -P $outer)
	echo "${inner%% *}" >"$state/$name.pid"
}

# ---- up -------------------------------------------------------------------------------------

write_files() {
	local nodes=$1 i id
	cp /etc/passwd "$state/passwd"
	cp /etc/group "$state/group"
	for i in "${!users[@]}"; do
		id=$((first_uid + i))
		echo "${users[i]}:x:$id:$id::/run/home/${users[i]}:/bin/bash" >>"$state/passwd"
		echo "${users[i]}:x:$id:" >>"$state/group"
	done
	echo "127.0.0.1 localhost" >"$state/hosts"
	for ((i = 1; i <= nodes; i++)); do
		echo "10.98.0.$i wn$i" >>"$state/hosts"
	done
	(umask 077 && dd if=/dev/urandom of="$state/munge.key" bs=128 count=1 status=none)
	mkdir -m 755 "$state/weft"
	cp "$weft_root"/examples/slurm/*.{py,sh} "$state/weft/"
	(umask 077 && head -c 32 /dev/urandom >"$state/weft/job-keys.secret")
	cp "$weft_root/examples/slurm/gres.conf" "$state/gres.conf"
	# Nodes have no cgroup file system. slurmd starts without one under this plugin only.
	echo "CgroupPlugin=cgroup/v1" >"$state/cgroup.conf"
	cat >"$state/slurm.conf" <<-END
		ClusterName=weft
		SlurmctldHost=wn1(10.98.0.1)
		SlurmUser=root
		AuthType=auth/munge
		CryptoType=crypto/munge
		StateSaveLocation=/run/slurm/state
		SlurmdSpoolDir=/run/slurm/spool
		SlurmctldPidFile=/run/slurm/slurmctld.pid
		SlurmdPidFile=/run/slurm/slurmd.pid
		SlurmdParameters=config_overrides
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SwitchType=switch/none
		JobAcctGatherType=jobacct_gather/none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_CPU
		MpiDefault=pmix
		ReturnToService=2
		KillWait=2
		SlurmctldTimeout=60
		SlurmdTimeout=60
		NodeName=DEFAULT CPUs=$cpus Gres=weft_port:16 State=UNKNOWN
		NodeName=wn[1-$nodes] NodeAddr=10.98.0.[1-$nodes]
		PartitionName=all Nodes=ALL Default=YES OverSubscribe=YES State=UP
	END
	sed 's,/etc/slurm/,/run/cluster/,' "$weft_root/examples/slurm/slurm.conf" \
		>>"$state/slurm.conf"
}

# cable NODE INTERFACE NETWORK MTU: a veth from the node to the fabric's bridge of that network.
cable() {
	# The process number of the node is valid outside only.
	nsenter -t "$(cat "$state/fabric.pid")" -n ip link add name "n$1.$2" mtu "$4" type veth \
		peer name "$2" mtu "$4" netns "$(cat "$state/wn$1.pid")"
	inside fabric ip link set "n$1.$2" master "$2" up
	inside "wn$1" ip addr add "10.98.$3.$1/24" dev "$2"
	inside "wn$1" ip link set "$2" up
}

start_switch() {
	local packet=blocksz=36864,framesz=18432,framecnt=512
	daemon "wn$1" switch /run/build/app/weft-switch --no-huge -m 128 --no-pci --no-shconf \
		--vdev="net_af_packet0,iface=rail1,$packet" -- \
		-M 666 -n 16 -u 16 -S 50 -a "10.98.1.$((16 * $1))/24"
	until_true 30 "weft-switch of node $1 does not start" \
		inside "wn$1" test -S /run/weft/switch.sock
}

up() {
	local nodes=${1:-4} i bridge program
	[[ $nodes =~ ^[1-8]$ ]] || weft_die "1 to 8 nodes, not '$nodes'"
	[ "$(id -u)" = 0 ] || weft_die "namespaces with interfaces need root"
	PATH=$PATH:/usr/sbin
	for program in slurmctld slurmd munged nsenter unshare ip; do
		command -v $program >/dev/null ||
			{ echo "there is no $program here" >&2; exit 77; }
	done
	[ -x "$weft_build/app/weft-switch" ] || weft_die "there is no weft-switch in $weft_build"
	[ ! -e "$state" ] || weft_die "there is a cluster in $state: 'down' ends it"
	mkdir -m 755 "$state"
	trap up_failed EXIT
	write_files "$nodes"
	holder fabric
	for bridge in eth0 rail1 rail2; do
		inside fabric ip link add name $bridge type bridge
		[ $bridge = eth0 ] || inside fabric ip link set $bridge mtu 9000
		inside fabric ip link set $bridge up
	done
	for ((i = 1; i <= nodes; i++)); do
		holder "wn$i"
		cable $i eth0 0 1500
		cable $i rail1 1 9000
		cable $i rail2 2 9000
	done
	for ((i = 1; i <= nodes; i++)); do
		daemon wn$i munge munged --foreground --force --num-threads=2 \
			--key-file=/run/cluster/munge.key --socket=/run/munge/munge.socket.2 \
			--pid-file=/run/munge/pid --seed-file=/run/munge/seed
		start_switch $i
	done
	for ((i = 1; i <= nodes; i++)); do
		until_true 30 "munged of node $i does not start" \
			inside wn$i test -S /run/munge/munge.socket.2
		[ $i != 1 ] || daemon wn1 slurmctld slurmctld -D -c
		daemon wn$i slurmd slurmd -D -N wn$i
	done
	until_true 60 "the nodes are not idle" all_idle "$nodes"
	trap - EXIT
	inside wn1 sinfo
}

# Shows the ends of the logs, because down() removes them.
up_failed() {
	local log
	for log in "$state"/*.log; do
		[ ! -s "$log" ] || tail -n 5 "$log" | sed "s/^/${log##*/}: /" >&2
	done
	down
}

all_idle() {
	[ "$(inside wn1 sinfo -h -N -t idle -o %N | sort -u | wc -l)" = "$1" ]
}

# ---- the other commands ---------------------------------------------------------------------

# as USER COMMAND...: with what a job needs to choose Weft's provider. Ranks yield their core while
# they wait: Slurm was given more CPUs than there are, so the provider cannot detect this.
as() {
	local user=$1 i uid=
	shift
	for i in "${!users[@]}"; do
		[ "${users[i]}" != "$user" ] || uid=$((first_uid + i))
	done
	[ -n "$uid" ] || weft_die "the users are ${users[*]}, not '$user'"
	[ $# -gt 0 ] || usage 1
	inside wn1 setpriv --reuid "$uid" --regid "$uid" --clear-groups --no-new-privs \
		env HOME="/run/home/$user" USER="$user" \
		WEFT_EAL_ARGS="--no-huge -m 256 --no-pci" FI_PROVIDER_PATH=/run/build/provider \
		FI_WEFT_YIELD=20 OMPI_MCA_mpi_yield_when_idle=1 \
		OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_opal_common_ofi_provider_include=weft \
		sh -c 'cd && exec "$@"' sh "$@"
}

# pids NODE: the processes of a node but its first, as this shell numbers them.
pids() {
	local first ns pid
	first=$(cat "$state/wn$1.pid")
	ns=$(readlink "/proc/$first/ns/pid")
	for pid in /proc/[0-9]*; do
		pid=${pid#/proc/}
		[ "$pid" != "$first" ] || continue
		[ "$(readlink "/proc/$pid/ns/pid" 2>/dev/null)" != "$ns" ] || echo "$pid"
	done
}

restart_switch() {
	inside "wn$1" pkill -KILL -x weft-switch || weft_die "node $1 runs no weft-switch"
	until_true 10 "weft-switch of node $1 does not end" \
		sh -c "! nsenter -t $(cat "$state/wn$1.pid") -p -m pgrep -x weft-switch"
	inside "wn$1" rm -f /run/weft/switch.sock
	start_switch "$1"
}

# An nsenter outside the node stops itself when its child stops. It must go on as well, or its child
# remains as a zombie, and so does the node.
pause() {
	local stopped parents
	mapfile -t stopped < <(pids "$1")
	kill -STOP "${stopped[@]}" 2>/dev/null || true
	sleep "$2"
	kill -CONT "${stopped[@]}" 2>/dev/null || true
	mapfile -t parents < <(ps -o ppid= -p "$(IFS=,; echo "${stopped[*]}")" | sort -u)
	[ ${#parents[@]} = 0 ] || pgrep -x nsenter | grep -Fx "$(printf '%d\n' "${parents[@]}")" |
		xargs -r kill -CONT
}

# left NODE: files, abstract sockets and UDP ports of users' processes.
left() {
	# shellcheck disable=SC2016 # for the inner shell
	inside "wn$1" sh -c '
		find /tmp /dev/shm /run/home -mindepth 1 ! -type d \( -uid +22000 \) 2>/dev/null
		grep -o "@weft.*" /proc/net/unix
		ss -H -u -a -n | awk "{print \"udp\", \$4}"
		pgrep -a -u alice,bob
		true'
}

down() {
	local holder_pid name holders=() rc=0
	for name in "$state"/*.pid; do
		[ -e "$name" ] || continue
		holder_pid=$(cat "$name")
		[ -n "$holder_pid" ] || continue
		! kill -KILL "$holder_pid" 2>/dev/null || holders+=("$holder_pid")
	done
	for _ in $(seq 100); do
		[ ${#holders[@]} -gt 0 ] || break
		sleep 0.1
		for name in "${!holders[@]}"; do
			[ -e "/proc/${holders[name]}" ] || unset "holders[name]"
		done
	done
	if [ ${#holders[@]} -gt 0 ]; then
		echo "cluster.sh: a process of a node does not end: ${holders[*]}" >&2
		rc=1
	fi
	rm -rf "$state"
	return $rc
}

command=${1:-}
[ $# = 0 ] || shift
case $command in
up) up "$@" ;;
as) [ $# -ge 2 ] || usage 1; as "$@" ;;
on) [ $# -ge 2 ] || usage 1; node=$1; shift; inside "wn$node" "$@" ;;
rail)
	[ $# = 3 ] || usage 1
	inside fabric ip link set "n$1.rail$2" "$3"
	;;
switch) [ $# = 1 ] || usage 1; restart_switch "$1" ;;
pause) [ $# = 2 ] || usage 1; pause "$@" ;;
left) [ $# = 1 ] || usage 1; left "$1" ;;
down) down ;;
node-main) node_main "$@" ;;
-h | --help) usage 0 ;;
*) usage 1 >&2 ;;
esac
