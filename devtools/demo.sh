#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Installs what Weft needs, builds it, and shows its main job: two processes, two lanes.
#
#	devtools/demo.sh [--no-install]
#
# First a table of message sizes over two net_memif lanes between two processes: which protocol carries a size, how
# much of it goes over each lane, latency and bandwidth. Then a tar of this machine's /usr/share (and /usr/lib, if
# that alone is less than 200 MB) goes from one process to the other through weft-cat, and SHA-256 is compared at both
# ends. The exit code is 0 when all of it worked.
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "$0")/setup.sh"

for arg; do
	case $arg in
	--no-install) WEFT_NO_INSTALL=1 ;;
	-h | --help)
		sed -n '4,11s/^# \{0,1\}//p' "$0"
		exit 0
		;;
	*) weft_die "no option '$arg'; see --help" ;;
	esac
done

work=
pids=()
cleanup() {
	local pid
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || true
	done
	wait 2>/dev/null || true
	[ -z "$work" ] || rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

weft_install build demo
weft_hugepages
weft_say "build"
weft_compile "$weft_build"
"$weft_build/app/weft-info" -v

begin=$SECONDS
work=$(mktemp -d "${TMPDIR:-/tmp}/weft-demo.XXXXXX")

# The first and the last core of those this script may use; the same one twice on a machine with only one.
cores=$(taskset -cp $$ | sed 's/.*: //')
first=${cores%%[-,]*}
last=${cores##*[-,]}
[ "$first" != "$last" ] || weft_say "there is one core only: expect milliseconds where two cores need less than a microsecond"

export WEFT_LANES='dpdk:0,mtu=9000;dpdk:1,mtu=9000'
port=$((20000 + RANDOM % 10000))

# eal ROLE CORE: EAL's arguments of one end, two memif ports in it.
eal() {
	local role=$1 core=$2 i
	printf '%s\n' -l "$core" --in-memory --no-pci --log-level=error "${weft_huge[@]}"
	for i in 0 1; do
		printf '%s\n' --vdev \
			"net_memif$i,role=$role,id=0,socket-abstract=no,socket=$work/memif$i,rsize=10,bsize=9216"
	done
}
mapfile -t eal_server < <(eal server "$first")
mapfile -t eal_client < <(eal client "$last")

# perf TEST SIZES ITERATIONS: one run of weft-perf; CSV on standard output.
perf() {
	local rc=0
	port=$((port + 1))
	"$weft_build/app/weft-perf" "${eal_server[@]}" -- -p $port >"$work/server.log" 2>&1 &
	pids=($!)
	timeout 60 "$weft_build/app/weft-perf" "${eal_client[@]}" -- -p $port -t "$1" -s "$2" -n "$3" -f -v 127.0.0.1 \
		>"$work/client.csv" 2>"$work/client.log" || rc=$?
	wait "${pids[0]}" || [ $rc != 0 ] || rc=$?
	pids=()
	if [ $rc != 0 ]; then
		printf 'server:\n' >&2
		tail -n 5 "$work/server.log" >&2
		printf 'client:\n' >&2
		tail -n 5 "$work/client.log" >&2
		weft_die "weft-perf $1 failed with exit code $rc"
	fi
	cat "$work/client.csv"
}

weft_say "two processes, cores $first and $last, two net_memif lanes"
for part in 8:1k/50000 2k:64k/5000 128k:4M/300; do
	perf tag_lat "${part%/*}" "${part#*/}" >>"$work/lat.csv"
	perf tag_bw "${part%/*}" "${part#*/}" >>"$work/bw.csv"
done
