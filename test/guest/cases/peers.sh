# SPDX-License-Identifier: BSD-3-Clause
#
# Memory of a process for each peer over RoCE. Not a test: run by name, test/guest/run.sh BUILDDIR
# roce peers. Its lines are in the log of the case.
. "$(dirname "$0")/../lib.sh"

rail 0 || exit
for peers in 4 16; do
	check "$peers peers send" \
		"$build/test/guest/roce_peers" roce:rxe0a roce:rxe0b $peers
	sed 's/^/# /' "$dir/check.log"
done
tap_end
