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
tidy_hosts() {
	[ ${#switch_pid[@]} = 0 ] || kill -KILL "${switch_pid[@]}" 2>/dev/null
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
${hosts[0]}) netns=${ns[0]} ;;
${hosts[1]}) netns=${ns[1]} ;;
*) exit 1 ;;
esac
export WEFT_SWITCH=$dir/\$1.sock
exec ip netns exec \$netns unshare --uts bash -c "hostname \$1; \${*:2}"
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

check "ranks without rights on two hosts" without_rights
check "ranks of a host over shared memory, hosts over the switches" shared_memory_within
check "all over the switches" switch_alone
check "one address for all ranks of a host" one_address
check "a rank of the other host dies" dies
tap_end
