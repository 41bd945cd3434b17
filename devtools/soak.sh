#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Many seeds of mixed traffic over networks with faults, in virtual time, several at a time:
#
#	devtools/soak.sh [--seeds A:B] [--kind KIND] [--jobs N] [--messages N]
#
#	--seeds A:B    from A to B, inclusive (1:1000)
#	--kind KIND    clean, faulty, corrupt, pauses, wrap, small, break, lanes; any (default): the
#	               seed decides; calls: random calls instead of traffic
#	--jobs N       processes at a time (the number of cores)
#	--messages N   of each flow (60); calls (1000)
#
# For each seed that fails, dies or hangs it prints the one command that replays it. The exit code
# is 0 when there is none.
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "$0")/setup.sh"

soak=$weft_build/test/sim/sim_soak
chunk=20    # seeds of a process
limit=600   # seconds for one of them
seeds=1:1000
kind=any
jobs=$(nproc)
messages=0

usage() {
	sed -n '4,15s/^# \{0,1\}//p' "$0"
	exit "$1"
}

# run_chunk FIRST LAST: prints the failures. A process that dies is restarted after the seed at
# which it died.
run_chunk() {
	local from=$1 last=$2 rc done_ args out
	args=(--kind "$kind" --messages "$messages")
	while [ "$from" -le "$last" ]; do
		rc=0
		out=$(timeout -k 5 "$limit" "$soak" "${args[@]}" --seed "$from" \
			--seeds $((last - from + 1)) -v 2>&1) || rc=$?
		grep -E -A1 '^seed [0-9]+: ' <<<"$out" |
			grep -vE '^seed [0-9]+: .*: ok$|^--$|^sim_soak: ' || true
		[ $rc -gt 1 ] || { echo "through $from $last"; return 0; }
		done_=$(grep -cE '^seed [0-9]+: ' <<<"$out" || true)
		[ "$done_" = 0 ] || echo "through $from $((from + done_ - 1))"
		from=$((from + done_))
		if [ $rc = 124 ] || [ $rc = 137 ]; then
			echo "seed $from: not through after $limit s for $((done_ + 1)) seeds"
		else
			out=$(grep -vE '^seed |^  reproduce' <<<"$out" | tail -n 1)
			echo "seed $from: died (exit code $rc): $out"
		fi
		echo "  reproduce: $soak ${args[*]} --seeds 1 --seed $from"
		echo "through $from $from"
		from=$((from + 1))
	done
}

if [ "${1:-}" = --chunk ]; then
	shift
	kind=$3 messages=$4 limit=$5
	run_chunk "$1" "$2"
	exit
fi

while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage 0 ;;
	--seeds | --kind | --jobs | --messages) [ $# -gt 1 ] || usage 2 ;;
	*) usage 2 ;;
	esac
	case $1 in
	--seeds) seeds=$2 ;;
	--kind) kind=$2 ;;
	--jobs) jobs=$2 ;;
	--messages) messages=$2 ;;
	esac
	shift 2
done
[[ $seeds =~ ^[0-9]+:[0-9]+$ ]] || weft_die "--seeds needs two numbers, as 1:1000, not '$seeds'"
[[ $jobs =~ ^[1-9][0-9]*$ ]] || weft_die "--jobs needs a number, not '$jobs'"
[[ $messages =~ ^[0-9]+$ ]] || weft_die "--messages needs a number, not '$messages'"
first=${seeds%:*}
last=${seeds#*:}
[ "$first" -le "$last" ] || weft_die "--seeds $seeds has none: the first is beyond the last"
[ -x "$soak" ] || weft_die "there is no $soak; ninja -C $weft_build test/sim/sim_soak makes it"
"$soak" --kind "$kind" --seeds 0 >/dev/null || weft_die "there is no kind '$kind'; see -h"

begin=$SECONDS
# shellcheck disable=SC2016 # the shell that xargs starts expands it
for ((i = first; i <= last; i += chunk)); do
	echo "$i $((i + chunk - 1 < last ? i + chunk - 1 : last))"
done | xargs -P "$jobs" -L 1 bash -c \
	'WEFT_BUILD=$1 exec bash "$2" --chunk "$6" "$7" "$3" "$4" "$5"' soak \
	"$weft_build" "$0" "$kind" "$messages" "$limit" |
	awk '/^through / { n += $3 - $2 + 1; next } /^seed / { failed++ } { print; fflush() }
		END { printf "%d seeds, %d failed\n", n, failed; exit failed > 0 }' || rc=$?
weft_say "$((SECONDS - begin)) s"
exit "${rc:-0}"
