# SPDX-License-Identifier: BSD-3-Clause
# A process is killed in the middle of a stream: the other end tells and ends, and the next process
# has the NIC as if nothing had been.
. "$(dirname "$0")/../nic.sh"

deaths client virtio0 virtio1
deaths server e1000e0 e1000e1
tap_end
