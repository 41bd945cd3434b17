# SPDX-License-Identifier: BSD-3-Clause
# RoCE lanes by their contract, without the protocol layer above them: test/guest/roce_*.c.
. "$(dirname "$0")/../lib.sh"

rail 0 || exit
"$build/test/guest/roce_lane" rxe0a rxe0b
