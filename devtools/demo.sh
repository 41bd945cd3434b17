#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Installs the packages that Weft needs, builds Weft, and runs its main job: two processes, two
# lanes.
#
#	devtools/demo.sh [--no-install]
#
# It first prints a table of message sizes over two net_memif lanes between two processes: the
# protocol of each size, the share of each lane, latency and bandwidth. Then a tar of this machine's
# /usr/share (and /usr/lib, if that alone is less than 200 MB) goes from one process to the other
# through weft-cat, and SHA-256 is compared at both ends. The exit code is 0 when all steps worked.
set -euo pipefail

# shellcheck source=devtools/setup.sh
. "$(dirname "$0")/setup.sh"

for arg; do
	case $arg in
	--no-install) WEFT_NO_INSTALL=1 ;;
	-h | --help)
		sed -n '4,/^$\|^[^#]/s/^# \{0,1\}//p' "$0"
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

# The first and the last core of those this script may use; the same one twice on a machine with
# only one.
cores=$(taskset -cp $$ | sed 's/.*: //')
first=${cores%%[-,]*}
last=${cores##*[-,]}
[ "$first" != "$last" ] ||
	weft_say "there is one core only: expect milliseconds where two cores need" \
		"less than a microsecond"

export WEFT_LANES='dpdk:0,mtu=9000;dpdk:1,mtu=9000'

# Sets port to a free port.
choose_port() {
	port=$((20000 + RANDOM % 12000))
	while (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
		port=$((20000 + RANDOM % 12000))
	done
}

# eal ROLE CORE: EAL's arguments of one end, two memif ports among them.
eal() {
	local i
	printf '%s\n' -l "$2" --no-pci --log-level=error "${weft_memory[@]}"
	for i in 0 1; do
		printf '%s\n' --vdev \
			"net_memif$i,role=$1,id=0,socket-abstract=no,socket=$work/memif$i,rsize=8,bsize=9216"
	done
}
mapfile -t eal_server < <(eal server "$first")
mapfile -t eal_client < <(eal client "$last")

# both_ended WHAT RC: waits for the server, and stops here if one of the two failed.
both_ended() {
	local what=$1 rc=$2 server_rc=0
	wait "${pids[0]}" || server_rc=$?
	pids=()
	if [ "$rc" != 0 ] || [ $server_rc != 0 ]; then
		sed 's/^/server: /' "$work/server.log" | tail -n 10 >&2
		sed 's/^/client: /' "$work/client.log" | tail -n 10 >&2
		weft_die "$what failed: exit codes $server_rc (server) and $rc (client)"
	fi
}

weft_say "two processes on cores $first and $last, two net_memif lanes"
choose_port
"$weft_build/app/weft-perf" "${eal_server[@]}" -- -p $port -B 127.0.0.1 \
	>"$work/server.log" 2>&1 </dev/null &
pids=($!)
rc=0
timeout 100 "$weft_build/app/weft-perf" "${eal_client[@]}" -- -p $port -W 10 -t table -s 8:4M \
	-D 0.3 127.0.0.1 \
	2>"$work/client.log" </dev/null || rc=$?
both_ended "the table" $rc

# ---- a directory tree -----------------------------------------------------------------------

size_mb() { du --apparent-size -smxc "$@" 2>/dev/null | tail -n 1 | cut -f 1; }
dirs=(usr/share)
[ "$(size_mb /usr/share)" -ge 220 ] || dirs+=(usr/lib)
size=$(size_mb "${dirs[@]/#//}")
weft_say "a tar of /${dirs[0]}${dirs[1]:+ and /${dirs[1]}} ($size MB) through weft-cat"

# The tar is copied to the sums as it passes, so nothing is written to disk, and files that change
# during the run do no harm.
mkfifo "$work/sent" "$work/received" "$work/out"
sha256sum <"$work/sent" >"$work/sent.sum" &
sums=($!)
sha256sum <"$work/received" >"$work/received.sum" &
sums+=($!)
choose_port
tee "$work/received" <"$work/out" | wc -c >"$work/received.bytes" &
sums+=($!)
"$weft_build/app/weft-cat" "${eal_server[@]}" -- -l -p $port -s 127.0.0.1 </dev/null >"$work/out" \
	2>"$work/server.log" &
pids=($!)
rc=0
carried=$SECONDS
{ tar -C / --one-file-system -cf - "${dirs[@]}" 2>"$work/tar.log" || true; } | tee "$work/sent" |
	timeout 100 "$weft_build/app/weft-cat" "${eal_client[@]}" -- -p $port -W 10 -s 127.0.0.1 \
		2>"$work/client.log" \
		>/dev/null || rc=$?
both_ended "weft-cat" $rc
wait "${sums[@]}"
cat "$work/client.log" >&2

bytes=$(<"$work/received.bytes")
read -r sent _ <"$work/sent.sum"
read -r received _ <"$work/received.sum"
printf 'sent      SHA-256 %s\nreceived  SHA-256 %s\n' "$sent" "$received"
[ "$sent" = "$received" ] || weft_die "the received bytes differ from the sent ones"
[ "$bytes" -ge 200000000 ] || weft_die "only $bytes bytes were available to send"
weft_say "the same at both ends: $bytes bytes in $((SECONDS - carried)) s;" \
	"the demo took $((SECONDS - begin)) s after the build"
