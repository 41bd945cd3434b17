#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# devtools/soak.sh over a stand-in for sim_soak whose seeds fail and die as requested: all seeds are
# run once, and each that failed has a command that replays it.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

soak=$(cd "$(dirname "$0")/../.." && pwd)/devtools/soak.sh

mkdir -p "$dir/build/test/sim"
cat >"$dir/build/test/sim/sim_soak" <<'END'
#!/bin/bash
rc=0
while [ $# -gt 0 ]; do
	case $1 in
	--seed) first=$2; shift ;;
	--seeds) n=$2; shift ;;
	--kind) kind=$2; shift ;;
	esac
	shift
done
[ "$kind" != none ] || exit 2
for ((i = first; i < first + n; i++)); do
	case $i in
	33 | 34) echo "sim: out of memory" >&2; kill -SEGV $$ ;;
	7 | 40)
		echo "seed $i: faulty: nodes: broken"
		echo "  reproduce: $0 --kind faulty --seeds 1 --seed $i"
		rc=1
		;;
	*) echo "seed $i: faulty: nodes: ok" ;;
	esac
	echo $i >>"$SOAK_RAN"
done
echo "sim_soak: any: $n seeds"
exit $rc
END
chmod +x "$dir/build/test/sim/sim_soak"
export SOAK_RAN=$dir/ran

run() { # CODE ARGS...
	local code=$1 rc=0
	shift
	: >"$dir/ran"
	WEFT_BUILD=$dir/build bash "$soak" "$@" >"$dir/client.out" 2>&1 || rc=$?
	cat "$dir/client.out"
	[ $rc = "$code" ]
}

failures_are_told() {
	run 1 --seeds 1:50 --jobs 3 || return 1
	[ "$(sort -n "$dir/ran")" = "$(seq 50 | grep -vxE '33|34')" ] &&
		[ "$(grep -c '^  reproduce: ' "$dir/client.out")" = 4 ] &&
		grep -A1 '^seed 7: faulty: nodes: broken$' "$dir/client.out" |
			grep -q 'reproduce: .* --seeds 1 --seed 7$' &&
		grep -A1 '^seed 33: died (exit code 139): ' "$dir/client.out" |
			grep -q "reproduce: $dir/build/test/sim/sim_soak .*--seeds 1 --seed 33$" &&
		grep -q '^seed 34: died ' "$dir/client.out" &&
		grep -q '^50 seeds, 4 failed$' "$dir/client.out"
}

nothing_failed() {
	run 0 --seeds 100:130 --kind faulty || return 1
	[ "$(sort -n "$dir/ran")" = "$(seq 100 130)" ] &&
		grep -q '^31 seeds, 0 failed$' "$dir/client.out"
}

refused() { # SENTENCE ARGS...
	local words=$1 rc=0
	shift
	WEFT_BUILD=$dir/build bash "$soak" "$@" >"$dir/client.out" 2>&1 || rc=$?
	cat "$dir/client.out"
	[ $rc -gt 0 ] && grep -qF -- "$words" "$dir/client.out" && [ ! -s "$dir/ran" ]
}

check "seeds that fail and die are told, with a command for each" failures_are_told
check "all is well" nothing_failed
: >"$dir/ran"
check "a range without seeds" refused "--seeds 5:3 has none: the first is beyond the last" \
	--seeds 5:3
check "a range that is none" refused "--seeds needs two numbers, as 1:1000, not '5'" --seeds 5
check "a kind that is none" refused "there is no kind 'none'" --kind none

tap_end
