# SPDX-License-Identifier: BSD-3-Clause
# The ground that all other cases stand on: the kernel's RoCE devices carry data between two
# programs that are not ours.
. "$(dirname "$0")/../lib.sh"

pingpong() { # PATH_MTU
	local pid rc=0
	ibv_rc_pingpong -d rxe0b -g "$(gid rxe0b)" -m "$1" -n 50 -p 18515 >"$dir/server" 2>&1 &
	pid=$!
	wait_for 20 listening 18515 || rc=1
	ibv_rc_pingpong -d rxe0a -g "$(gid rxe0a)" -m "$1" -n 50 -p 18515 127.0.0.1 || rc=1
	wait $pid || rc=1
	cat "$dir/server"
	return $rc
}

check "two RoCE devices on a veth pair can be made" rail 0
check "each has a RoCE v2 GID of its IPv4 address" eval 'gid rxe0a && gid rxe0b'
check "the kernel's stack carries data between them" pingpong 4096
check "and does so without retries" test "$(counter rxe0a retry_exceeded_err)" = 0
tap_end
