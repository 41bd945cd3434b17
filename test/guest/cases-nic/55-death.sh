# SPDX-License-Identifier: BSD-3-Clause
# The same as in 50-death.sh, for the older kinds of NIC: a case has a time limit.
. "$(dirname "$0")/../nic.sh"

deaths client vmxnet3-0 vmxnet3-1
deaths server 82545em0 82545em1
tap_end
