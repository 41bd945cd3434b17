# SPDX-License-Identifier: BSD-3-Clause
# As a user starts it: a process for each end, each with NICs of its own.
. "$(dirname "$0")/../nic.sh"

stream=(-t tag_bw -s 8,64k,1M -n 12 -w 1 -O 4 -f -V -v)

check "virtio - virtio: a stream, every byte" both virtio0 virtio1 "${stream[@]}"
check "e1000e - e1000e: a stream, every byte" both e1000e0 e1000e1 "${stream[@]}"
check "vmxnet3 - vmxnet3: a stream, every byte" both vmxnet3-0 vmxnet3-1 "${stream[@]}"
check "virtio - e1000e: ping-pong, every byte" both virtio2 e1000e2 -t tag_lat -s 8,4k,1M -n 8 -w 1 -f -V -v
check "two rails of two kinds of NIC: puts, every byte" both "virtio0 e1000e0" "virtio1 e1000e1" -t put_bw -s 1M -n 8 -w 1 -O 4 -f -V -v
tap_end
