#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weft-info --lane-options: what the kernel knows of an interface, over veths with the addresses and
# routes that clouds give.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

on=(ip -n "${ns[0]}")

pci=0000:00:05.0

# on_bus DEVICE: the interface in a sysfs of the test's, on a bus.
on_bus() {
	rm -rf "$dir/net"
	mkdir -p "$dir/net" "$dir/bus/$1"
	mkdir "$dir/net/nic"
	ln -s "$dir/bus/$1" "$dir/net/nic/device"
	echo 00:0d:3a:00:00:01 >"$dir/net/nic/address"
	ip netns exec "${ns[0]}" cat /sys/class/net/nic/mtu >"$dir/net/nic/mtu"
	ip netns exec "${ns[0]}" unshare -m bash \
		-c 'mount --bind "$1" /sys/class/net && exec timeout 20 "$2" --lane-options nic' - \
		"$dir/net" "$info" >"$dir/client.out" 2>"$dir/client.err" || {
			cat "$dir/client.err"
			return 1
		}
}

# in_output PATTERN...: each stands in a line of what was printed.
in_output() {
	local pattern
	for pattern; do
		grep -qE -- "$pattern" "$dir/client.out" || {
			echo "no '$pattern' in:"
			cat "$dir/client.out"
			return 1
		}
	done
}

# says_virtual PATTERN...: the interface nic of the first namespace, which is a veth.
says_virtual() {
	timeout 20 ip netns exec "${ns[0]}" "$info" --lane-options nic >"$dir/client.out" \
		2>"$dir/client.err" && in_output "$@"
}

# says PATTERN...: the same interface, on a PCI bus of the test's.
says() {
	on_bus "$pci" && in_output "$@"
}

no_note() {
	says "lane" && ! grep -qE -- "$1" "$dir/client.out"
}

fresh() {
	ip -n "${ns[0]}" link del nic 2>/dev/null
	link nic "$1"
}

no_address() {
	fresh 1500 && says "lane +dpdk:$pci,mtu=1500" "it has no IPv4 address"
}

virtual() {
	says_virtual "device +none: virtual" "iface=nic\$" \
		"the kernel keeps a virtual interface" \
		"MAC address +[0-9a-f:]{17}"
}

# The kernel answers for its own addresses, and a frame of 9000 bytes needs a larger ring frame.
virtual_jumbo() {
	fresh 9000 && "${on[@]}" address add 10.1.2.3/20 dev nic &&
		says_virtual "lane +dpdk:0,mtu=9000\$" "iface=nic,framesz=9216,blocksz=36864" \
			"\(10.1.2.3/20\): for a lane that" || return 1
	# shellcheck disable=SC2046 # words
	ip netns exec "${ns[0]}" timeout 60 "$info" --no-huge -m 512 \
		$(awk '$1 == "EAL" { $1 = ""; print }' "$dir/client.out") -- \
		-d -L "$(awk '$1 == "lane" { print $2 }' "$dir/client.out")" \
		>"$dir/server.out" 2>"$dir/server.err" &&
		grep -q "frame  *9014 bytes" "$dir/server.out"
}

subnet() {
	fresh 9000 && "${on[@]}" address add 10.1.2.3/20 dev nic &&
		"${on[@]}" route add default via 10.1.0.1 dev nic &&
		says "lane +dpdk:$pci,ip=10.1.2.3/20,gw=10.1.0.1,mtu=9000" \
			"default route goes over it"
}

# As GCP gives it: /32, the gateway by a route of its own, the subnet behind it.
on_link() {
	fresh 1460 && "${on[@]}" address add 10.128.0.5/32 dev nic &&
		"${on[@]}" route add 10.128.0.1 dev nic scope link &&
		"${on[@]}" route add 10.128.0.0/20 via 10.128.0.1 dev nic &&
			says "lane +dpdk:$pci,ip=10.128.0.5/32,gw=10.128.0.1,mtu=1460" &&
		no_note "default route goes over it"
}

# A second NIC's default route stands in a table of its own.
policy() {
	fresh 9001 && "${on[@]}" address add 172.31.16.9/20 dev nic &&
		"${on[@]}" route add default via 172.31.16.1 dev nic table 10002 metric 5 &&
		"${on[@]}" route add 10.9.0.0/16 via 172.31.16.2 dev nic table 10002 &&
		says "ip=172.31.16.9/20,gw=172.31.16.1,mtu=9001" &&
			no_note "default route goes over it"
}

several() {
	fresh 1500 && "${on[@]}" address add 10.4.0.2/24 dev nic &&
		"${on[@]}" address add 10.4.0.77/24 dev nic &&
		says "lane +dpdk:$pci,ip=10.4.0.2/24,mtu=1500" \
			"or +dpdk:$pci,ip=10.4.0.77/24,mtu=1500" \
			"a lane has one: set it by ip=" "no route over it has a gateway"
}

several_hops() {
	fresh 1500 && link nic2 1500 && "${on[@]}" address add 10.5.0.2/24 dev nic &&
		"${on[@]}" address add 10.6.0.2/24 dev nic2 &&
		"${on[@]}" route add default nexthop via 10.6.0.1 dev nic2 nexthop via 10.5.0.1 \
			dev nic && says "ip=10.5.0.2/24,gw=10.5.0.1"
}

vlan_interface() {
	"${on[@]}" link add link nic2 name nic2.5 type vlan id 5 2>/dev/null || return 0
	timeout 20 ip netns exec "${ns[0]}" "$info" --lane-options nic2.5 >"$dir/client.out" 2>&1 &&
		grep -q "its lower interface is nic2: bind that one" "$dir/client.out"
}

# The lane takes what was printed, as it was printed.
is_taken() {
	local lane
	subnet || return 1
	lane=$(awk '$1 == "lane" { print $2 }' "$dir/client.out")
	lane=${lane%,mtu=*}
	timeout 60 "$info" --no-huge -m 512 --no-pci --vdev=net_ring0 -- -d -L "${lane/$pci/0}" \
		>"$dir/client.out" 2>"$dir/client.err" &&
		grep -qE "address +10\.1\.2\.3/20" "$dir/client.out"
}

vmbus() {
	local uuid=000d3a12-3456-000d-3a12-3456000d3a12
	fresh 1500 && "${on[@]}" address add 10.0.0.5/24 dev nic && on_bus $uuid || return 1
	cat "$dir/client.out"
	grep -qE "lane +dpdk:$uuid,ip=10.0.0.5/24" "$dir/client.out" &&
		grep -qE "EAL +-a $uuid" "$dir/client.out" &&
		grep -q "driverctl" "$dir/client.out"
}

other_bus() {
	fresh 1500 && on_bus 1-2:1.0 && grep -qE "lane +dpdk:0,mtu" "$dir/client.out" &&
		! grep -q -- "-a 1-2" "$dir/client.out"
}

# A name that no --vdev can have.
comma() {
	"${on[@]}" link add "a,b" type veth peer name "b,a" || return 1
	timeout 20 ip netns exec "${ns[0]}" "$info" --lane-options a,b >"$dir/client.out" \
		2>"$dir/client.err" || return 1
	cat "$dir/client.out"
	grep -q "no comma in a name" "$dir/client.out" && ! grep -q "iface=a,b" "$dir/client.out"
}

nobody() {
	local rc=0
	timeout 20 "$info" --lane-options "$1" >"$dir/client.out" 2>"$dir/client.err" || rc=$?
	[ $rc = 1 ] && sentence "$dir/client.err" "no network interface '$1'"
}

# What doc/clouds.md tells people to write opens a lane, on a port of the test's.
clouds() {
	local lane n=0
	for lane in $(grep -oE "dpdk:[0-9\$][^' \`\"]*,ip=[^' \`\"]*" \
		"$(dirname "$0")/../../doc/clouds.md" | sort -u); do
		n=$((n + 1))
		timeout 60 "$info" --no-huge -m 512 --no-pci --vdev=net_ring0 -- -d \
			-L "dpdk:0,${lane#*,}" >"$dir/client.out" 2>"$dir/client.err" ||
			{ echo "$lane"; return 1; }
	done
	[ $n -ge 4 ] || { echo "only $n lanes in doc/clouds.md"; return 1; }
}

check "the lanes of doc/clouds.md open" clouds
check "no address: what is missing is said" no_address
check "a virtual interface is named as such" virtual
check "a virtual interface of MTU 9000: what is printed opens a lane" virtual_jumbo
check "address, gateway and MTU of a subnet; the default route is warned of" subnet
check "/32 with a gateway on the link" on_link
check "a gateway in a table of its own" policy
check "several addresses: a line each" several
check "several next hops: the one over this interface" several_hops
check "a VLAN: the interface below is named" vlan_interface
check "a lane takes what is printed" is_taken
check "a VMBus device is named by its UUID" vmbus
check "another bus's is not" other_bus
check "a name with a comma is no part of a --vdev" comma
check "no such interface" nobody nosuch0
check "a name that is a path" nobody ../../etc
tap_end
