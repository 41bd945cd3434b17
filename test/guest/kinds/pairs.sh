# SPDX-License-Identifier: BSD-3-Clause
#
# Emulated PCI NICs in pairs, for the kinds of guest that have some. The cases find them by name, in
# $nics: NAME=PCI-ADDRESS.
# shellcheck shell=bash disable=SC2034 # read by files that source this

nics=
devices=()
slot=4

# nic_at NETDEV NAME MODEL: one NIC, at the next address.
nic_at() {
	nics+="$2=0000:00:$(printf %02x $slot).0 "
	devices+=(-netdev "$1" -device "$3,id=nic-$2,netdev=net-$2,addr=$(printf 0x%x \
		$slot),mac=52:54:00:00:00:$(printf %02x $slot)")
	slot=$((slot + 1))
	# Its virtual functions lie 16 slots above it, in two slots.
	[ "$3" != igb ] || slot=$((slot + 1))
}

# pair NAME MODEL NAME MODEL: two NICs on a hub of their own.
pair() {
	local hub=$slot
	while [ $# -gt 0 ]; do
		nic_at "hubport,id=net-$1,hubid=$hub" "$1" "$2"
		shift 2
	done
}

# tap NAME TAP MODEL: a NIC with two queues on a tap that is there.
tap() {
	nic_at "tap,id=net-$1,ifname=$2,queues=2,script=no,downscript=no,vhost=off" "$1" "$3"
}
