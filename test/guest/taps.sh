#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs in a network namespace of its own, whose root it is: a bridge, and on it taps with two
# queues, for frames of 9000 bytes. Then the command, if there is one.
#
#	unshare -rn test/guest/taps.sh TAP... [-- COMMAND...]
set -e
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 2>/dev/null || true
ip link add bridge mtu 9000 type bridge
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	ip tuntap add dev "$1" mode tap multi_queue
	ip link set dev "$1" mtu 9000 master bridge up
	shift
done
ip link set dev bridge up
shift || true
[ $# = 0 ] || exec "$@"
