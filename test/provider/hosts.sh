#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The MPI program on two hosts of one NIC each, which weft-switch owns on either: two network
# namespaces, each with a host name, an end of a veth, a switch and two of the four ranks.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/../proc/lib.sh"

switch=$build/app/weft-switch
ranks=$build/test/provider/mpi_ranks
for program in "$switch" "$ranks"; do
	[ -x "$program" ] || { echo "there is no ${program##*/} in this build"; exit 77; }
done
for program in mpirun unshare; do
	command -v $program >/dev/null || { echo "there is no $program here"; exit 77; }
done
for variable in "${!FI_@}" "${!OMPI_@}" "${!PMIX_@}" "${!SLURM_@}"; do
	unset "$variable"
done

# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/../proc/netns.sh"

hosts=("weft-host-a" "weft-host-b")
switch_pid=()
apart_pid=() # in the mount namespaces of the hosts, where they have one
tidy_hosts() {
	[ ${#switch_pid[@]} = 0 ] || kill -KILL "${switch_pid[@]}" 2>/dev/null
	[ ${#apart_pid[@]} = 0 ] || kill -KILL "${apart_pid[@]}" 2>/dev/null
	untidy
}
trap tidy_hosts EXIT

link rail 1500 || exit 1
for i in 0 1; do ip -n "${ns[i]}" link set lo up || exit 1; done
packet="blocksz=4096,framesz=2048,framecnt=512"

# on HOST COMMAND...: what runs there has that host's name, and finds that host's switch.
cat >"$dir/on" <<END
#!/bin/bash
case \$1 in
${hosts[0]}) netns=${ns[0]} apart=$dir/apart.0 ;;
${hosts[1]}) netns=${ns[1]} apart=$dir/apart.1 ;;
*) exit 1 ;;
esac
export WEFT_SWITCH=$dir/\$1.sock
enter=()
[ ! -s \$apart.pid ] || enter=(nsenter -t "\$(cat \$apart.pid)" -m -r -w)
exec "\${enter[@]}" ip netns exec \$netns unshare --uts bash -c "hostname \$1; \${*:2}"
END
chmod 755 "$dir/on"

export WEFT_EAL_ARGS="--no-huge -m 256 --no-pci"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
run=(timeout -k 10 200 "$dir/on" "${hosts[0]}" mpirun --oversubscribe --bind-to none
	--mca orte_tmpdir_base "$dir" --mca plm_rsh_agent "$dir/on"
	--mca oob_tcp_if_include ctl
	--host "${hosts[0]}:2,${hosts[1]}:2" -x "FI_PROVIDER_PATH=$build/provider" -x WEFT_EAL_ARGS
	--mca pml cm --mca mtl ofi --mca opal_common_ofi_provider_include weft)

# start_switches ARGS...: one on each host, with the veth's end as its uplink.
start_switches() {
	local i
	[ ${#switch_pid[@]} = 0 ] || kill -KILL "${switch_pid[@]}" # of a case that failed
	for i in 0 1; do
		: >"$dir/switch.$i"
		ip netns exec "${ns[i]}" "$switch" --no-huge -m 64 --no-pci --no-shconf \
			--vdev="net_af_packet0,iface=rail,$packet" -- \
			-p "$dir/${hosts[i]}.sock" -n 2 -S 50 "${@//HOST/$((i + 1))}" \
			>"$dir/switch.$i" 2>&1 &
		switch_pid[i]=$!
	done
	for i in 0 1; do
		until_said "$dir/switch.$i" "^weft-switch: .* ports at" "${switch_pid[i]}" ||
			{ cat "$dir/switch.$i"; return 1; }
	done
}

end_switches() {
	kill "${switch_pid[@]}"
	wait "${switch_pid[@]}"
	switch_pid=()
	cat "$dir/switch.0" "$dir/switch.1"
}

# carried BYTES: either uplink has brought so much at least. (Two of the messages of 1 MiB that
# ranks 1 and 2, and 3 and 0, send each other; how often frames are sent again is not asked.)
carried() {
	local i
	for i in 0 1; do
		awk -v least="$1" '/^uplink /{for (i = 1; i < NF; i++) if ($i == "rx_bytes")
			n = $(i + 1)} END {exit !(n >= least)}' "$dir/switch.$i" || return 1
	done
}

# job WHAT...: each without errors or a word on standard error.
more=()
job() {
	local what
	for what in "$@"; do
		"${run[@]}" "${more[@]}" "$ranks" "$what" >"$dir/mpi.out" 2>"$dir/mpi.err"
		cat "$dir/mpi.out" "$dir/mpi.err"
		grep -q "^$what: 4 ranks, 0 errors$" "$dir/mpi.out" || return 1
		[ ! -s "$dir/mpi.err" ] || return 1
	done
}

# Ranks 1 and 2, 3 and 0 are on different hosts: each sends the other 1 MiB several times.
shared_memory_within() {
	start_switches && job p2p coll && end_switches && carried 2000000
}

without_further_calls() {
	start_switches && job leave && end_switches
}

# lose HOST: every tenth frame that leaves its uplink, at random.
lose() {
	ip netns exec "${ns[$1]}" nft "add table netdev weft
		add chain netdev weft out { type filter hook egress device rail priority 0; }
		add rule netdev weft out numgen random mod 10 0 counter drop"
}

# Frames are lost, and their sender's thread repeats them.
without_further_calls_over_loss() {
	start_switches && lose 0 && lose 1 || return 1
	job leave
	local rc=$? i
	for i in 0 1; do
		ip netns exec "${ns[i]}" nft list table netdev weft
		ip netns exec "${ns[i]}" nft delete table netdev weft
	done
	end_switches
	return $rc
}

# within BYTES: so much at least went from a port to the other one of the same switch.
within() {
	awk -v least="$1" '
		function value(name,  i) {
			for (i = 1; i < NF; i++)
				if ($i == name)
					return $(i + 1)
		}
		/^uplink /{up += value("rx_bytes")}
		/^port /{to += value("tx_bytes")}
		END {print to - up; exit !(to - up >= least)}' "$dir/switch.0" "$dir/switch.1"
}

switch_alone() {
	start_switches || return 1
	more=(-x WEFT_LANES=dpdk)
	job p2p
	local rc=$?
	more=()
	end_switches
	[ $rc = 0 ] && carried 2000000 && within 3000000
}

one_address() {
	start_switches -1 -a 10.77.0.HOST/24 && job p2p && end_switches && carried 2000000
}

# A rank of the other host is killed: mpirun ends, with a sentence.
dies() {
	local rc=0
	start_switches || return 1
	"${run[@]}" "$ranks" die >"$dir/mpi.out" 2>"$dir/mpi.err" || rc=$?
	cat "$dir/mpi.err" "$dir/mpi.out"
	[ $rc != 0 ] && [ $rc != 124 ] || return 1
	# Its neighbour may be quicker than the launcher.
	grep -qE "signal 9|exited on signal|process has ended" "$dir/mpi.err" "$dir/mpi.out" ||
		return 1
	end_switches
}

# Ranks without rights, a switch, a port or lanes that are named: hosts over UDP sockets. (PMIx
# refuses ranks of another user than mpirun's. The agent needs root to enter the other namespace.)
without_rights() {
	local rc=0 user=(setpriv --bounding-set=-all --inh-caps=-all --no-new-privs)
	WEFT_EAL_ARGS='' timeout -k 10 200 "$dir/on" "${hosts[0]}" mpirun --oversubscribe \
		--bind-to none --mca orte_tmpdir_base "$dir" \
		--mca plm_rsh_agent "$dir/on" --mca oob_tcp_if_include ctl \
		--host "${hosts[0]}:2,${hosts[1]}:2" -x "FI_PROVIDER_PATH=$build/provider" \
		-x WEFT_SWITCH=off -x WEFT_LOG_LEVEL=info \
		--mca pml cm --mca mtl ofi --mca opal_common_ofi_provider_include weft \
		"${user[@]}" "$ranks" p2p >"$dir/mpi.out" 2>"$dir/mpi.err" || rc=$?
	tail -n 30 "$dir/mpi.err"
	cat "$dir/mpi.out"
	[ $rc = 0 ] && grep -q "^p2p: 4 ranks, 0 errors$" "$dir/mpi.out" &&
		grep -q "udp is used: no other lane" "$dir/mpi.err"
}

# sealed_job ARGUMENT...: two ranks, one on each host, by weft-mpirun.
sealed_job() {
	OMPI_MCA_plm_rsh_agent="$dir/on" PRTE_MCA_plm_ssh_agent="$dir/on" \
		WEFT_EAL_ARGS='' WEFT_LANES=udp:ctl WEFT_CAPTURE="$dir/frames.%p" \
		FI_PROVIDER_PATH=$build/provider \
		timeout -k 10 200 "$dir/on" "${hosts[0]}" sh "$build/weft-mpirun" "$@" \
		--oversubscribe --bind-to none --mca orte_tmpdir_base "$dir" \
		--mca oob_tcp_if_include ctl --host "${hosts[0]}:1,${hosts[1]}:1" \
		"$dir/rank" >"$dir/mpi.out" 2>"$dir/mpi.err"
}

# keys HOST: job keys there.
keys() { "$dir/on" "${hosts[$1]}" "ls -d /dev/shm/weft-job-* 2>/dev/null"; }

# frames PATTERN: each rank's capture, as weft-dump describes it, has such a line.
frames() {
	local file n=0
	for file in "$dir"/frames.*; do
		"$build/app/weft-dump" "$file" >"$dir/dump" || { cat "$dir/dump"; return 1; }
		grep -E -- "$1" "$dir/dump" || { cat "$dir/dump"; return 1; }
		n=$((n + 1))
	done
	[ $n = 2 ]
}

# Each host has a /dev/shm of its own, in which its rank finds the key.
sealed() {
	local i rc=0
	rm -f "$dir"/frames.*
	cat >"$dir/rank" <<-END
		#!/bin/sh
		stat -c "key %a %s" "\$WEFT_JOB_KEY"
		exec "$ranks" p2p
	END
	chmod 755 "$dir/rank"
	for i in 0 1; do
		: >"$dir/apart.$i"
		unshare --mount sh -c "mount -t tmpfs -o mode=1777 tmpfs /dev/shm && echo mounted &&
			exec sleep 1000" >"$dir/apart.$i" &
		apart_pid[i]=$!
		until_said "$dir/apart.$i" mounted "${apart_pid[i]}" || return 1
		echo "${apart_pid[i]}" >"$dir/apart.$i.pid"
	done
	sealed_job --seal || rc=$?
	cat "$dir/mpi.err" "$dir/mpi.out"
	[ $rc = 0 ] && grep -q "^p2p: 2 ranks, 0 errors$" "$dir/mpi.out" || return 1
	[ "$(grep -c "^key 600 32$" "$dir/mpi.out")" = 2 ] || return 1
	[ -z "$(keys 0)$(keys 1)" ] || { echo "a key is left"; return 1; }
	frames 'are sealed, and only their headers are known' || return 1
	! grep ' message ' "$dir/dump" || return 1
	# Plain frames would be seen.
	rm -f "$dir"/frames.*
	sealed_job --seal=off
	grep -q "^p2p: 2 ranks, 0 errors$" "$dir/mpi.out" && frames ' message eager$' || return 1
	# A host that has no place for the key.
	nsenter -t "${apart_pid[1]}" -m -r mount -o remount,ro /dev/shm || return 1
	rc=0
	sealed_job --seal || rc=$?
	cat "$dir/mpi.err"
	[ $rc != 0 ] && grep -q "${hosts[1]} took no job key, and the job is refused" \
		"$dir/mpi.err" && [ -z "$(keys 0)" ]
}

# A job of Hydra: a rank on each host, of which one is weft-perf's server. Each finds the key.
sealed_by_hydra() {
	local rc=0
	cat >"$dir/rank" <<-END
		#!/bin/sh
		stat -c "key %a %s" "\$WEFT_JOB_KEY"
		export WEFT_CAPTURE=$dir/frames.\$PMI_RANK
		[ "\$PMI_RANK" = 1 ] && exec "$perf" -p 7471
		until ip netns exec ${ns[1]} ss -ltn | grep -q :7471; do sleep 0.1; done
		exec "$perf" -p 7471 -t tag_lat -s 8,300k -n 50 -V 10.99.7.2
	END
	cat >"$dir/ssh" <<-END
		#!/bin/sh
		[ "\$1" != -x ] || shift
		exec "$dir/on" "\$@"
	END
	chmod 755 "$dir/rank" "$dir/ssh"
	rm -f "$dir"/frames.*
	HYDRA_LAUNCHER_EXEC="$dir/ssh" FI_PROVIDER_PATH=$build/provider WEFT_EAL_ARGS='' \
		WEFT_LANES=udp:ctl \
		timeout -k 10 100 "$dir/on" "${hosts[0]}" sh "$build/weft-mpirun" \
		--launcher "$(command -v mpiexec.hydra)" "$@" -n 2 -ppn 1 -iface ctl \
		-hosts "${hosts[0]},${hosts[1]}" "$dir/rank" >"$dir/mpi.out" 2>"$dir/mpi.err" ||
		rc=$?
	cat "$dir/mpi.err" "$dir/mpi.out"
	[ $rc = 0 ] && [ "$(grep -c "^key 600 32$" "$dir/mpi.out")" = 2 ] || return 1
	[ -z "$(keys 0)$(keys 1)" ] || { echo "a key is left"; return 1; }
	frames 'are sealed, and only their headers are known'
}

check "sealed frames, with a key that weft-mpirun hands to both hosts" sealed
nsenter -t "${apart_pid[1]}" -m -r mount -o remount,rw /dev/shm
if command -v mpiexec.hydra >/dev/null; then
	slow check "sealed frames, with a key for both hosts of a Hydra job" sealed_by_hydra --seal
fi
[ ${#apart_pid[@]} = 0 ] || kill "${apart_pid[@]}"
apart_pid=()
rm -f "$dir"/apart.*
check "ranks without rights on two hosts" without_rights
check "ranks of a host over shared memory, hosts over the switches" shared_memory_within
check "sends leave in their calls, for the other host" without_further_calls
if command -v nft >/dev/null && lose 0 2>/dev/null; then
	ip netns exec "${ns[0]}" nft delete table netdev weft
	slow check "lost frames of a rank without further calls" without_further_calls_over_loss
else
	skip "lost frames of a rank without further calls" "no nftables with egress hooks here"
fi
slow check "all over the switches" switch_alone
slow check "one address for all ranks of a host" one_address
check "a rank of the other host dies" dies
tap_end
