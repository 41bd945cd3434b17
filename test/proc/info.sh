#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weft-info protocols as a program: what it prints and draws from profile files, and what it says of
# bad ones. No port, no EAL, no root.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

profile=$dir/lanes.ini
cat >"$profile" <<'END'
[lane a]
driver = roce_rc
bandwidth = 100Gbps
latency = 2us
overhead = 75ns
reg_cost = 10us
reg_growth = 0.01ns
[lane b]
driver = roce_rc
bandwidth = 100Gbps
latency = 2us
[model]
bcopy_bw = 8GBs
END

# info_out ARGUMENTS: it ends well and says nothing on standard error.
info_out() {
	timeout 20 "$info" protocols "$@" >"$dir/client.out" 2>"$dir/client.err" </dev/null || {
		echo "exit code $?"
		return 1
	}
	[ ! -s "$dir/client.err" ]
}

has() {
	grep -qE -- "$1" "$dir/client.out" || { echo "nothing like '$1'"; return 1; }
}

# From 0 to inf without a gap, lanes and shares of one length, shares that sum to 1.
csv_rows() {
	awk -F, '
	NR == 1 { if ($0 != "min,max,protocol,lanes,shares,version") exit bad = 1; next }
	/^threshold/ { exit }
	{
		if (NF != 6 || $1 != next_min || $6 != 1) exit bad = 1
		n = split($5, share, "+"); if (split($4, lane, "+") != n) exit bad = 1
		sum = 0; for (i = 1; i <= n; i++) sum += share[i]
		if (sum < 0.999999 || sum > 1.000001) exit bad = 1
		last = $2; next_min = $2 == "inf" ? "none" : $2 + 1; rows++
	}
	BEGIN { next_min = 0 }
	END { exit bad || last != "inf" || rows < 2 }' "$dir/client.out"
}

# Two domains register 10 us and 0, both ends, four latencies, six overheads, 1 % for rendezvous;
# eager one registration.
csv_thresholds() {
	awk -F= '
	/^threshold\.(rma|am)\./ { v[$1] = $2; n++ }
	function near(name, want,   d) {
		d = v[name] - want; if (d < 0) d = -d
		return d <= 1e-9 * (want < 0 ? -want : want)
	}
	END {
		num = 0.99 * (2 * 10e-6 + 4 * 2e-6 + 3 * 150e-9) - 10e-6 - 150e-9
		den = 0.01e-9 + 1 / 8e9 - 0.99 * (2 * 0.01e-9 + 1 / 25e9)
		exit !(n == 10 && near("threshold.rma.num", num) &&
		       near("threshold.rma.den", den) &&
		       near("threshold.rma.quotient", num / den) &&
		       v["threshold.rma.rule"] == "crossing" &&
		       v["threshold.rma.bytes"] == int(num / den) + 1)
	}' "$dir/client.out"
}

csv() {
	info_out --lanes "$profile" --format csv && csv_rows && csv_thresholds
}

table() {
	info_out --lanes "$profile" && has '^\|.*eager/short' && has 'rndv/get.*' &&
		has '50% a \+ 50% b'
}

text() {
	info_out --lanes "$profile" --format text && has 'rndv/get' &&
		! grep -q '^+--' "$dir/client.out"
}

explain() {
	info_out --lanes "$profile" --explain 64k && has '64 KiB' && has 'RTS' && has 'register' &&
		has 'data on the wire'
}

graph() {
	local kind=$1 has_paths
	shift
	info_out --lanes "$profile" --graph "$dir/graph.$kind" "$@" && [ -s "$dir/graph.$kind" ] ||
		return 1
	case $kind in
	svg)
		has_paths='import sys, xml.dom.minidom as m
sys.exit(not m.parse(sys.argv[1]).getElementsByTagName("path"))'
		python3 -c "$has_paths" "$dir/graph.svg"
		;;
	png) [ "$(head -c 8 "$dir/graph.png" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] ;;
	esac
}

operation() {
	info_out --lanes "$profile" --op tag_send_sync && has 'rndv/get'
}

stdin_profile() {
	timeout 20 "$info" protocols --lanes - --format csv <"$profile" >"$dir/client.out" &&
		has '^0,'
}

# bad WHERE PATTERN: the profile on standard input is refused with exit code 2, its place and what
# was expected.
bad() {
	local rc=0
	cat >"$dir/bad.ini"
	timeout 20 "$info" protocols --lanes "$dir/bad.ini" >"$dir/client.out" \
		2>"$dir/client.err" || rc=$?
	if [ $rc != 2 ] || [ -s "$dir/client.out" ]; then echo "exit code $rc"; return 1; fi
	grep -qE -- "bad\.ini$1.*$2" "$dir/client.err" || { cat "$dir/client.err"; return 1; }
}

# refused NAME WHERE PATTERN LINES: a lane with these lines in place of its bandwidth.
refused() {
	printf '[lane a]\ndriver = dpdk\nlatency = 1us\n%b\n' "$4" >"$dir/lines"
	check "a profile: $1" bad_lines "$2" "$3"
}

bad_lines() {
	bad "$1" "$2" <"$dir/lines"
}

usage() {
	local pattern=$1 rc=0
	shift
	timeout 20 "$info" protocols "$@" >"$dir/client.out" 2>"$dir/client.err" </dev/null || rc=$?
	[ $rc = 2 ] && sentence "$dir/client.err" "$pattern"
}

check "a table" table
check "CSV: rows without a gap, and the closed form as computed by hand" csv
check "text" text
check "an explanation of one size" explain
check "another operation" operation
check "a profile on standard input" stdin_profile
if command -v gnuplot >/dev/null; then
	check "a picture, SVG" graph svg
	check "a picture, PNG" graph png
	check "a picture of one protocol that stays at one height" graph svg --op amo_fetch
fi
refused "unknown key" ":4:" "unknown key 'bandwith'.*'bandwidth' meant" 'bandwith = 25Gbps'
refused "rate without unit" ":4:" "bandwidth = '25'.*expected a rate with its unit" 'bandwidth = 25'
refused "time without unit" ":5:" "overhead = '75'.*expected a time with its unit" \
	'bandwidth = 1GBs\noverhead = 75'
refused "rate of zero" ":4:" "expected a rate" 'bandwidth = 0Gbps'
refused "negative rate" ":4:" "expected a rate" 'bandwidth = -1Gbps'
refused "absurd rate" ":4:" "expected a rate" 'bandwidth = 1e30Bs'
refused "rate that is no number" ":4:" "expected a rate" 'bandwidth = nanGbps'
refused "absurd fragment" ":5:" "expected bytes per fragment" 'bandwidth = 1GBs\nam_max = 1'
refused "no bandwidth" ":1:" "has no 'bandwidth'" ''
refused "key given twice" ":5:" "given twice" 'bandwidth = 1GBs\nbandwidth = 1GBs'
refused "two lanes of one name" ":5:" "lane a already, in line 1" 'bandwidth = 1GBs\n[lane a]'
refused "unknown section" ":5:" "unknown section" 'bandwidth = 1GBs\n[lanes]'
refused "unknown key of the model" ":6:" \
	"unknown key 'bcopy'" 'bandwidth = 1GBs\n[model]\nbcopy = 8GBs'
printf '# nothing\n' >"$dir/lines"
check "a profile: no lane" bad_lines ":" "there is no lane: expected"
check "a profile that is not there" usage "no.such.ini" --lanes "$dir/no.such.ini"
check "no profile" usage "give --lanes FILE"
check "a format that is none" usage "expected table, csv or text" --lanes "$profile" --format xml
check "an operation that is none" usage "expected tag_send" --lanes "$profile" --op send
check "a picture of another kind" usage "ends in .svg or .png" --lanes "$profile" --graph x.jpg
tap_end
