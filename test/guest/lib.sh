# SPDX-License-Identifier: BSD-3-Clause
#
# What the cases in the guest share. A case sources this with the build folder in $1, makes its links, reports each behaviour with
# check, and ends with tap_end. Emulated time is slow and jumpy: assert on data, order and counters, never on speed.
# shellcheck shell=bash

[ -n "${WEFT_GUEST:-}" ] || { echo "cases run inside the guest only: test/guest/run.sh BUILDDIR CASE"; exit 2; }

build=$1
dir=$(mktemp -d /tmp/weft-case.XXXXXX)
tap=0
tap_failed=0

# check NAME COMMAND...: one behaviour; it passes when the command does. What went wrong is shown.
check() {
	local name=$1
	shift
	tap=$((tap + 1))
	if "$@" >"$dir/check.log" 2>&1; then
		echo "ok $tap - $name"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap - $name"
		tail -n 25 "$dir/check.log" | cut -c1-300 | tr -d '\0' | sed 's/^/# /'
	fi
	{
		echo "---- $name"
		cat "$dir/check.log"
	} >&2
}

skip() {
	tap=$((tap + 1))
	echo "ok $tap - $1 # SKIP $2"
}

tap_end() {
	echo "1..$tap" >&2
	rm -rf "$dir"
	[ $tap_failed = 0 ]
}

# rail N [MTU]: a veth pair vNa - vNb with addresses 10.0.N.1 and 10.0.N.2, and a RoCE device on each: rxeNa, rxeNb. Path MTU is 4096
# with an MTU of 4200, 1024 with 1500.
rail() {
	local n=$1 mtu=${2:-4200} end host=1
	ip link add "v${n}a" mtu "$mtu" type veth peer name "v${n}b" mtu "$mtu" || return
	for end in a b; do
		ip link set "v$n$end" up
		ip addr add "10.0.$n.$host/24" dev "v$n$end"
		# Both ends are in one kernel: it must not take its own address for local and go through lo, nor answer for the other.
		sysctl -qw "net.ipv4.conf.v$n$end.accept_local=1" "net.ipv4.conf.v$n$end.rp_filter=0" \
			"net.ipv4.conf.v$n$end.arp_ignore=1" "net.ipv4.conf.v$n$end.arp_announce=2"
		host=2
	done
	rdma link add "rxe${n}a" type rxe netdev "v${n}a" || return
	rdma link add "rxe${n}b" type rxe netdev "v${n}b"
}

# gid DEVICE: index of its RoCE v2 GID of the IPv4 address.
gid() {
	local i type
	for i in 0 1 2 3 4 5; do
		type=$(cat "/sys/class/infiniband/$1/ports/1/gid_attrs/types/$i" 2>/dev/null) || continue
		case $type:$(cat "/sys/class/infiniband/$1/ports/1/gids/$i") in
		'RoCE v2':0000:0000:0000:0000:0000:ffff:*) echo "$i"; return ;;
		esac
	done
	return 1
}

# counter DEVICE NAME: one of the kernel's counters of the device.
counter() {
	cat "/sys/class/infiniband/$1/ports/1/hw_counters/$2"
}

# listening PORT: does somebody wait for TCP connections?
listening() {
	[ -n "$(ss -Hltn "sport = :$1")" ]
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || { echo "waited in vain for: $*"; return 1; }
		sleep 0.1
	done
}
