# SPDX-License-Identifier: BSD-3-Clause
# As a user starts it: a process for each end, each with NICs of its own. Streams between two NICs
# of a kind, every byte compared, are the second half of each death (50-death, 55-death).
. "$(dirname "$0")/../nic.sh"

check "virtio - e1000e: ping-pong, every byte" both virtio2 e1000e2 -t tag_lat -s 8,4k,1M -n 4 \
	-w 1 -f -V -v
check "two rails of two kinds of NIC: puts, every byte" both "virtio0 e1000e0" "virtio1 e1000e1" \
	-t put_bw -s 1M -n 8 -w 1 -O 4 -f -V -v
tap_end
