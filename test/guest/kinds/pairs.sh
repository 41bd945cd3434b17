# SPDX-License-Identifier: BSD-3-Clause
#
# Emulated PCI NICs in pairs, for the kinds of guest that have some. The cases find them by name, in
# $nics: NAME=PCI-ADDRESS.
# shellcheck shell=bash disable=SC2034 # read by those who source this

nics=
devices=()
slot=4

# pair NAME MODEL NAME MODEL: two NICs on a hub of their own.
pair() {
	local hub=$slot
	while [ $# -gt 0 ]; do
		nics+="$1=0000:00:$(printf %02x $slot).0 "
		devices+=(-netdev "hubport,id=net-$1,hubid=$hub"
			-device "$2,id=nic-$1,netdev=net-$1,addr=$(printf 0x%x $slot),mac=52:54:00:00:00:$(printf %02x $slot)")
		slot=$((slot + 1))
		shift 2
	done
}
