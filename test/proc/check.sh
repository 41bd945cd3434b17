#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weft-info --check: two network namespaces with a fault between them, as an ordinary user. Both
# ends print the same verdict within three seconds.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

command -v setpriv >/dev/null || { echo "setpriv(1) is not installed (util-linux)"; exit 77; }
user=(setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --no-new-privs)
"${user[@]}" test -x "$info" || { echo "user 65534 may not read the build"; exit 77; }
link rail 9000 10.99.1 || exit 1
peer=$(dirname "$0")/check_peer.py

# start_check PORT: the end that listens.
start_check() {
	: >"$dir/server.err"
	timeout -k 5 60 "${server_run[@]}" "${user[@]}" "$info" --check -l -p "$1" \
		>"$dir/server.out" 2>"$dir/server.err" &
	server_pid=$!
	until_said "$dir/server.err" "waiting for" "$server_pid"
}

# checked HOST:PORT: the client's exit code; its time is bounded by that of all steps. (The limit of
# a quiet machine is 3 s.)
checked() {
	local begin end rc=0
	begin=$(date +%s%N)
	timeout -k 5 60 "${client_run[@]}" "${user[@]}" "$info" --check "$1" >"$dir/client.out" \
		2>"$dir/client.err" || rc=$?
	end=$(date +%s%N)
	cat "$dir/client.out" "$dir/client.err"
	echo "$(((end - begin) / 1000000)) ms"
	[ $(((end - begin) / 1000000)) -lt "$(stretch 3000)" ] || return 99
	return $rc
}

# verdict CODE PATTERN [HOST]: both ends end with this code, and a verdict or remedy like this.
verdict() {
	local rc=0 other=0
	free_port
	start_check "$port" || return 1
	checked "${3:-$host}:$port" || rc=$?
	wait "$server_pid" || other=$?
	server_pid=
	cat "$dir/server.out"
	[ $rc = "$1" ] && [ $other = "$1" ] || { echo "exit codes $rc and $other"; return 1; }
	grep -qE "^(verdict|remedy): .*($2)" "$dir/client.out" &&
		grep -qE "^(verdict|remedy): .*($2)" "$dir/server.out"
}

# drop NAMESPACE CHAIN RULE: a firewall.
drop() {
	ip netns exec "${ns[$1]}" nft "add table inet weft
		add chain inet weft c { type filter hook $2 priority 0; }
		add rule inet weft c $3 drop"
}
accept() { ip netns exec "${ns[$1]}" nft delete table inet weft; }

well() {
	verdict 0 "all is well: 2 rails" || return 1
	grep -q "rail - rail: UDP out yes, in yes; ARP resolved" "$dir/client.out"
}

one_way() {
	drop 0 input "iifname rail meta l4proto udp" || return 1
	local rc=0
	verdict 1 "\(rail, 10.99.1.2\) to .* \(rail, 10.99.1.1\) does not arrive" || rc=1
	accept 0
	return $rc
}

other_way() {
	drop 1 input "iifname rail meta l4proto udp" || return 1
	local rc=0
	verdict 1 "\(rail, 10.99.1.1\) to .* \(rail, 10.99.1.2\) does not arrive" || rc=1
	accept 1
	return $rc
}

both_ways() {
	local rc=0
	drop 0 input "iifname rail meta l4proto udp" &&
		drop 1 input "iifname rail meta l4proto udp" || return 1
	verdict 1 "arrives in neither direction" || rc=1
	accept 0
	accept 1
	return $rc
}

other_mtu() {
	local rc=0
	ip -n "${ns[1]}" link set rail mtu 1500
	verdict 1 "ip link set dev rail mtu (1500|9000)" || rc=1
	ip -n "${ns[1]}" link set rail mtu 9000
	return $rc
}

# The interfaces agree, and what is between them does not carry as much.
smaller_between() {
	local rc=0
	drop 0 input "iifname rail meta l4proto udp meta length > 1500" || return 1
	verdict 1 "between has a smaller MTU" || rc=1
	accept 0
	return $rc
}

no_arp() {
	local rc=0
	ip -n "${ns[0]}" link set rail arp off
	ip -n "${ns[0]}" neigh flush dev rail
	ip -n "${ns[1]}" neigh flush dev rail
	verdict 1 "no host answers ARP between rail" || rc=1
	ip -n "${ns[0]}" link set rail arp on
	return $rc
}

# The addresses of rail are in two subnets, so it is no pair; ctl is the pair that explains most.
other_subnet() {
	local rc=0
	ip -n "${ns[1]}" addr flush dev rail
	ip -n "${ns[1]}" addr add 10.97.1.2/24 dev rail
	# TCP goes over ctl, whose UDP is dropped: no pair works.
	drop 0 input "iifname ctl meta l4proto udp" && drop 1 input "iifname ctl meta l4proto udp"
	verdict 1 "arrives in neither direction" || rc=1
	accept 0
	accept 1
	ip -n "${ns[1]}" addr flush dev rail
	ip -n "${ns[1]}" addr add 10.99.1.2/24 dev rail
	return $rc
}

# One rail works, and the other one has addresses of two subnets.
wrong_subnet() {
	local rc=0
	ip -n "${ns[1]}" addr flush dev rail
	ip -n "${ns[1]}" addr add 10.97.1.2/24 dev rail
	verdict 1 "10\.9[79]\.1\.[12]/24: other subnets, and no route .* over 1 other rail" || rc=1
	ip -n "${ns[1]}" addr flush dev rail
	ip -n "${ns[1]}" addr add 10.99.1.2/24 dev rail
	return $rc
}

nothing_there() {
	local rc=0
	free_port
	checked "$host:$port" || rc=$?
	[ $rc = 1 ] && grep -q "no process listens on TCP port $port" "$dir/client.out"
}

dropped_port() {
	local rc=0
	drop 0 input "meta l4proto tcp" || return 1
	free_port
	checked "$host:$port" || rc=$?
	accept 0
	[ $rc = 1 ] && grep -q "no answer from $host" "$dir/client.out"
}

# other_version KIND: of the peer.
other_version() {
	local rc=0
	free_port
	: >"$dir/server.out"
	ip netns exec "${ns[0]}" python3 "$peer" "$port" "$1" >"$dir/server.out" 2>&1 &
	server_pid=$!
	until_said "$dir/server.out" listens "$server_pid" || return 1
	checked "$host:$port" || rc=$?
	wait "$server_pid"
	server_pid=
	[ $rc = 1 ] && grep -q "^verdict: Weft .* here, 9.9.9 at other" "$dir/client.out"
}

# Each kind of wrong bytes ends with a verdict, in time; nothing of them is printed.
hostile_server() {
	local kind rc kinds="garbage endless silent ends control ifaces pairs"
	free_port
	: >"$dir/server.out"
	ip netns exec "${ns[0]}" python3 "$peer" "$port" "${kinds// /,}" >"$dir/server.out" 2>&1 &
	server_pid=$!
	until_said "$dir/server.out" listens "$server_pid" || return 1
	for kind in $kinds; do
		rc=0
		checked "$host:$port" || rc=$?
		[ $rc = 1 ] || { echo "$kind: exit code $rc"; return 1; }
		grep -q "^verdict: the \(program\|exchange\)" "$dir/client.out" || return 1
		! grep -q "$(printf '\033')" "$dir/client.out" || return 1
	done
	wait "$server_pid"
	server_pid=
}

# The end that listens serves the next one after each of them.
hostile_clients() {
	local rc=0
	free_port
	start_check "$port" || return 1
	ip netns exec "${ns[1]}" python3 "$peer" "$port" garbage,silent,ends,control,ifaces "$host"
	checked "$host:$port" || rc=$?
	wait "$server_pid" || rc=$?
	server_pid=
	[ $rc = 0 ] && ! grep -q "$(printf '\033')" "$dir/server.out"
}

# Silent connections do not keep a client from its check, whichever came first.
silent_crowd() {
	local rc=0 crowd
	free_port
	start_check "$port" || return 1
	: >"$dir/crowd"
	ip netns exec "${ns[1]}" python3 "$peer" "$port" crowd "$host" >"$dir/crowd" 2>&1 &
	crowd=$!
	until_said "$dir/crowd" connected "$crowd" || rc=$?
	checked "$host:$port" || rc=$?
	kill "$crowd"
	wait "$crowd" 2>/dev/null
	wait "$server_pid" || rc=$?
	server_pid=
	return $rc
}

# A name with two addresses, of which the first does not answer.
second_address() {
	local rc=0 etc=/etc/netns/${ns[1]} found
	mkdir -p "$etc" || return 1
	printf '10.99.1.3 two.test\n10.99.1.1 two.test\n' >"$etc/hosts"
	printf 'multi on\n' >"$etc/host.conf"
	found=$(ip netns exec "${ns[1]}" getent ahostsv4 two.test | awk '/STREAM/ { print $1 }' |
		xargs)
	if [ "$found" = "10.99.1.3 10.99.1.1" ]; then
		verdict 0 "all is well" two.test || rc=$?
	else
		echo "the addresses are $found"
		rc=1
	fi
	rm -r "$etc"
	return $rc
}

check "all is well" well
check "silent connections beside it" silent_crowd
check "an address that does not answer before one that does" second_address
if command -v nft >/dev/null && drop 2 input "meta l4proto udp" 2>/dev/null; then
	check "UDP blocked at the end that listens" one_way
	slow check "UDP blocked at the other end" other_way
	check "UDP blocked both ways" both_ways
	check "long frames are dropped between" smaller_between
	slow check "another subnet, and UDP is dropped" other_subnet
	check "TCP is dropped" dropped_port
else
	skip "firewalls" "no nft(8) here, or a kernel without it"
fi
slow check "a rail with addresses of two subnets" wrong_subnet
check "the MTUs differ" other_mtu
check "no reply to ARP" no_arp
check "no process listens" nothing_there
check "another version" other_version version
slow check "a peer on a busy host, whose second text is late" other_version late
check "wrong bytes from the end that listens" hostile_server
check "wrong bytes from clients" hostile_clients
tap_end
