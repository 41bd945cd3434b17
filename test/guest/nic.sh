# SPDX-License-Identifier: BSD-3-Clause
#
# What cases with emulated NICs share, beside lib.sh. NICs have names (test/guest/kinds).
# shellcheck shell=bash

# shellcheck source=test/guest/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

eal=(--no-telemetry)
allowed=()
address=
list=
pair=$build/test/guest/nic_pair
# By which PMDs get their NICs.
driver=uio_pci_generic

# nic NAME: sets address, that of the bus. (Without a process of its own: those are slow here.)
nic() {
	local all=" $weft_nics"
	[[ $all == *" $1="* ]] || { echo "this guest has no NIC '$1'" >&2; return 1; }
	all=${all#*" $1="}
	address=${all%% *}
}

has_nic() { [[ " $weft_nics" == *" $1="* ]]; }

# give NAME...: these NICs are for PMDs from now on.
give() {
	local name device
	for name; do
		nic "$name" || return
		device=/sys/bus/pci/devices/$address
		[ ! -e "/sys/bus/pci/drivers/$driver/$address" ] || continue
		echo "$driver" >"$device/driver_override"
		[ ! -e "$device/driver" ] || echo "$address" >"$device/driver/unbind"
		echo "$address" >/sys/bus/pci/drivers_probe
		[ -e "/sys/bus/pci/drivers/$driver/$address" ] || {
			echo "$driver does not take $name" >&2
			return 1
		}
	done
}

# allow NAME...: sets allowed, EAL's arguments for these NICs alone.
allow() {
	local name
	allowed=()
	for name; do
		nic "$name" || return
		allowed+=(-a "$address")
	done
}

# lanes NAME[,OPTIONS]...: sets list, as in WEFT_LANES.
lanes() {
	local one
	list=
	for one; do
		nic "${one%%,*}" || return
		list+="${list:+;}dpdk:$address"
		[[ $one != *,* ]] || list+=",${one#*,}"
	done
}

# both NAMES NAMES ARGS...: weft-perf over these NICs, a process for each end. NAMES are those of
# one end, each with its options.
both() {
	local one=$1 two=$2 server
	shift 2
	ends "$one" "$two" || return
	perf_pair "$server" "$list" --counters "$@" && whole
}

# whole: each frame came in one buffer, at both ends of the last run, and no byte was wrong.
whole() {
	[ "$(column wrong)" = 0 ] || { echo "wrong messages: $(column wrong)"; return 1; }
	! grep -hE 'rx\.chained|drop\.bad' "$dir/server.err" "$dir/client.err"
}

# ends NAMES NAMES: what the two processes are given: server_eal and server, client_eal and list.
ends() {
	local names
	# shellcheck disable=SC2086
	names=$(plain $1 $2) && give $names && allow $(plain $1) && server_eal=("${allowed[@]}") &&
		allow $(plain $2) && client_eal=("${allowed[@]}") && lanes $1 && server=$list &&
			lanes $2
}

# plain NAME[,OPTIONS]...: without the options.
plain() {
	local one
	for one; do
		echo "${one%%,*}"
	done
}

# pairs NAME...: lines of standard input, NAME|NIC,OPTIONS[ NIC,OPTIONS]|the same[|WHAT], are cases
# of nic_pair over these NICs. Each counts as a test.
pairs() {
	local name one two what rc=0 first
	give "$@" && allow "$@" || exit
	while IFS='|' read -r name one two what; do
		# shellcheck disable=SC2086
		lanes $one && first=$list && lanes $two || exit
		printf '%s|%s|%s%s\n' "$name" "$first" "$list" "${what:+|$what}"
	done >"$dir/cases"
	WEFT_EAL_ARGS="${eal[*]} ${allowed[*]}" "$pair" <"$dir/cases" >"$dir/pairs" || rc=$?
	adopt "$dir/pairs" "$(wc -l <"$dir/cases")" $rc
}

# adopt FILE COUNT CODE: the TAP of a program that should have reported COUNT cases.
adopt() {
	local line seen=0
	while read -r line; do
		case $line in
		"ok "* | "not ok "*)
			seen=$((seen + 1))
			tap=$((tap + 1))
			[[ $line != "not ok "* ]] || tap_failed=$((tap_failed + 1))
			echo "${line%%ok *}ok $tap - ${line#* - }"
			;;
		1..*) ;;
		*) echo "$line" ;;
		esac
	done <"$1"
	[ $seen = "$2" ] || check "all $2 cases are told of (exit code $3 after $seen)" false
}

# killed WHO NAMES NAMES: the client or the server.
killed() {
	local who=$1 one=$2 two=$3 rc=0 pid child
	ends "$one" "$two" && server "$server" || return
	client "$list" -t tag_bw -s 256k -n 1000000 -w 0 -V >"$dir/out" 2>&1 &
	pid=$!
	wait_for 60 says "$dir/client.out" $'\ntest ' || return
	wait_for 60 says "$dir/client.out" $'\ntag_bw ' || return
	if [ "$who" = client ]; then
		child=$(pgrep -P "$(pgrep -P $pid timeout)")
		kill -9 "$child"
		wait $pid
		wait "$server_pid" || rc=$?
		cat "$dir/server.err"
	else
		kill -9 "$(pgrep -P "$server_pid")"
		wait "$server_pid"
		wait $pid || rc=$?
		cat "$dir/client.err"
	fi
	[ $rc = 3 ] || { echo "the exit code of the other end is $rc"; return 1; }
}

# deaths WHO NAMES NAMES: and the next process has the NIC as if nothing had been.
deaths() {
	local who=$1 one=$2 two=$3
	check "$one - $two: a killed $who, the other end tells and ends" killed "$who" "$one" "$two"
	check "$one - $two: after the killed $who, every byte" both "$one" "$two" -t tag_bw \
		-s 8,64k,1M -n 8 -w 1 -O 4 -f -V -v
}
