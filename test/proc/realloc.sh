#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Programs whose allocator moves memory of which parts were sent: glibc's, by mremap(), and
# jemalloc.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

program=$build/test/proc/proc_realloc
jemalloc=$(ldconfig -p 2>/dev/null | sed -n 's/.*libjemalloc\.so\.2 .*=> //p' | head -n 1)

run() { # ALLOCATOR MODE
	LD_PRELOAD=$1 WEFT_LOG_LEVEL=error timeout 60 "$program" "$2"
}

check "realloc() moves a block of 64 MiB of which parts were sent, and copies nothing" run "" grow
check "blocks of random sizes, glibc" run "" random
if [ -n "$jemalloc" ]; then
	check "blocks of random sizes, jemalloc" run "$jemalloc" random
else
	skip "blocks of random sizes, jemalloc" "libjemalloc2 is not installed"
fi
tap_end
