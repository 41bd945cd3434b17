#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# DPDK's telemetry socket: what a worker reports about itself while it works.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }

prefix=weft-telemetry-$$

# ask COMMAND...: the answers of the server's process, a line of JSON each. DPDK's socket has a
# listen queue of one: a connect() that meets it full waits for its turn, as dpdk-telemetry.py's
# does, and gives up after 20 s. (A Python socket with a time-out does not block, and gets EAGAIN at
# once: so the time-out is set for the kernel until there is a connection.)
ask() {
	python3 - "$prefix" "$@" <<'PYTHON'
import socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 20, 0))
print("connecting", file=sys.stderr, flush=True)
s.connect("/var/run/dpdk/%s/dpdk_telemetry.v2" % sys.argv[1])
s.settimeout(20)
s.recv(65536)
for command in sys.argv[2:]:
    s.send(command.encode())
    print(s.recv(1 << 20).decode())
PYTHON
}

# during COMMAND...: while a stream is on, with its server's process.
during() {
	local rc=0
	new_pair 2
	eal_server+=(--file-prefix="$prefix")
	eal_client+=(--file-prefix="$prefix-client")
	start_server "$perf" || return 1
	start_client -t tag_bw -s 4k -n 1000000000 -f -V || return 1
	"$@" || rc=$?
	# It would go on for hours: the server's end ends it.
	kill -TERM "$(program_pid "$server_pid")"
	wait $client_pid
	server_code
	return $rc
}

workers_are_listed() {
	ask /weft/workers | tee "$dir/answer"
	[ "$(grep -oE '[0-9a-f]{16} dpdk:[01] net_memif[01]' "$dir/answer" | wc -l)" = 2 ]
}

endpoints_are_told() {
	local i up='to weft-perf[^"]*: up, 2 of 2 lanes up, [0-9]+ bytes sent, [1-9][0-9]+ received'
	for ((i = 0; i < 100; i++)); do
		ask /weft/endpoints >"$dir/answer"
		! grep -qE "$up" "$dir/answer" || return 0
		sleep 0.1 # the stream has only begun
	done
	cat "$dir/answer"
	return 1
}

# Twice, and they go up: the worker answers anew each time. Those that say how much there is of
# something now may go down.
counters_go_up() {
	local id
	id=$(ask /weft/workers | grep -oE '[0-9a-f]{16}' | head -n 1)
	ask "/weft/counters,$id,dpdk" >"$dir/first" || return 1
	ask "/weft/counters,$id,ep" | tee "$dir/answer"
	sleep 0.3
	ask "/weft/counters,$id,dpdk" >"$dir/second" || return 1
	grep -q '"ep/open": *1[,}]' "$dir/answer" || return 1
	! grep -q '"dpdk' "$dir/answer" || return 1
	python3 - "$dir/first" "$dir/second" <<'PYTHON'
import json, re, sys
gauge = re.compile(r"/(rx/kept|tx/held|conn/count|conn\d+/path\d+/rtt_ns)$")
a, b = (json.load(open(f))["/weft/counters"] for f in sys.argv[1:])
counters = [k for k in a if not gauge.search(k)]
up = [k for k in counters if b.get(k, 0) > a[k]]
down = [k for k in counters if b.get(k, 0) < a[k]]
print("%d counters and %d gauges; %d counters have gone up, down: %s" %
      (len(counters), len(a) - len(counters), len(up), down))
sys.exit(not (len(up) > 5 and len(a) > len(counters) and not down))
PYTHON
}

# Many at once, as monitoring does it: no answer is mixed with another's. The process is stopped
# until all of them have begun to connect, so that its listen queue is full.
many_ask() {
	local i pids=() rc=0 pid server
	server=$(program_pid "$server_pid")
	kill -STOP "$server"
	for i in 1 2 3 4 5 6; do
		ask /weft/counters /weft/endpoints /weft/workers /weft/counters /weft/endpoints \
			>"$dir/many.$i" 2>"$dir/many.$i.err" &
		pids+=($!)
	done
	for i in 1 2 3 4 5 6; do until_said "$dir/many.$i.err" connecting || rc=1; done
	sleep 0.2
	kill -CONT "$server"
	for pid in "${pids[@]}"; do wait "$pid" || rc=1; done
	for i in 1 2 3 4 5 6; do
		tail -n 1 "$dir/many.$i.err"
		python3 - "$dir/many.$i" <<'PYTHON' || rc=1
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
ok = len(lines) == 5 and all("/weft/" in next(iter(l)) for l in lines)
ok = ok and all("ep/open" in l["/weft/counters"] for l in lines if "/weft/counters" in l)
ok = ok and all(len(l["/weft/endpoints"]) == 1 for l in lines if "/weft/endpoints" in l)
sys.exit(not ok)
PYTHON
	done
	return $rc
}

# The backlog of a stopped process is full, since the queries before
# wait in it. A query of another process takes no longer.
stopped_process_delays_no_query() {
	local i server client begin took rc=0
	client=$(program_pid "$(program_pid "$client_pid")")
	server=$(program_pid "$server_pid")
	kill -STOP "$server"
	for i in 1 2 3 4; do
		timeout 2 "$info" --metrics --pid "$server" >"$dir/out" 2>&1 && rc=1
		grep "process $server is stopped" "$dir/out" || [ $i -gt 1 ] || rc=1
	done
	begin=$(date +%s%N)
	"$info" --metrics --pid "$client" >"$dir/metrics" || rc=1
	took=$((($(date +%s%N) - begin) / 1000000))
	kill -CONT "$server"
	echo "the query of the client took $took ms"
	[ $rc = 0 ] && [ $took -lt "$(stretch 3000)" ]
}

unknown_worker() {
	ask /weft/counters,nobody | tee "$dir/answer"
	grep -q '"error": *"no worker, or more than one, has an id' "$dir/answer"
}

# Prometheus' text format: HELP and TYPE of each metric once, before its samples; labels; numbers.
metrics_are_well_formed() {
	local pid
	pid=$(program_pid "$server_pid")
	"$info" --metrics --pid "$pid" >"$dir/metrics" || return 1
	python3 - "$dir/metrics" "$pid" <<'PYTHON'
import re, sys
name = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
text = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*"'
sample = re.compile(r"^(%s)\{(%s(?:,%s)*)\} -?[0-9.e+-]+$" % (name, text, text))
seen, typed, bad, pids, helps, types = set(), None, 0, set(), set(), {}
# What the PMD counts: of each port, and of each queue.
pmd = re.compile(r"weft_lane_[rt]x_(good_(packets|bytes)|(missed_)?errors|mbuf_allocation_errors|"
                 r"q[0-9]+_?(packets|bytes|errors))_total")
for line in open(sys.argv[1]):
    words = line.split()
    if line.startswith("# HELP ") or line.startswith("# TYPE "):
        if words[1] == "TYPE":
            bad += words[2] in seen or words[3] not in ("counter", "gauge")
            seen.add(words[2])
            typed = words[2]
            types[typed] = line
        else:
            # Once, before the samples, in words of its own.
            said = line.split(" ", 3)[3]
            bad += words[2] in seen or words[2] in helps or not said.endswith(".\n")
            helps.add(words[2])
            if "port's PMD" in said and not pmd.fullmatch(words[2]) or "not know" in said:
                print("without help:", line)
                bad += 1
        continue
    match = sample.match(line)
    if not match or match.group(1) != typed:
        print("bad:", line)
        bad += 1
    else:
        pids.add(re.search(r'pid="(\d+)"', line).group(1))
    if types[typed].endswith(" counter\n") and not typed.endswith("_total"):
        print("no _total:", line)
        bad += 1
    if not re.search(r'host="[^"]+",program="[^"]+"', line):
        print("without host and program:", line)
        bad += 1
print(len(seen), bad, pids)
want = {"weft_lane_rx_frames_total", "weft_lane_tx_bytes_total", "weft_worker_ep_open",
        "weft_build_info", "weft_lane_drop_bad_csum_total"}
sys.exit(bad != 0 or pids != {sys.argv[2]} or not want <= seen or helps != seen)
PYTHON
}

# A process that says what it likes: what stands in its answers is text of a label, or part of a
# name, and never another line, another label, or a command for a terminal.
hostile_names_stay_labels() {
	local folder=/var/run/dpdk/$prefix-hostile pid rc=0
	mkdir -p "$folder" || return 1
	python3 - "$folder/dpdk_telemetry.v2" >"$dir/hostile" <<'PYTHON' &
import socket, sys
LANE = b'dpdk:a\\"b\\\\c}\x1b[2J\r\xff,pid=\\"1'
NAMES = (b'rx.frames', b'rx.frames\\"} 1\nweft_evil{pid=\\"1',
         b'conn1/path2/\\u001b[2J\x1b[2J', b'%n%s')
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(sys.argv[1])
s.listen(1)
print("ready", flush=True)
c = s.accept()[0]
c.send(b'{"version": "x", "pid": 1, "max_output_len": 16384}')
while True:
    command = c.recv(4096)
    if not command:
        break
    if command == b"/weft/workers":
        c.send(b'{"/weft/workers": ["1122334455667788 ' + LANE + b' dev\nice"]}')
        continue
    if command == b"/weft/process":
        c.send(b'{"/weft/process": {"version": "1\\"}\x1b[2J", "program": "a\\",pid=\\"1\n", '
               b'"job": "\xff"}}')
        continue
    # Counters of the lane; of the worker, once.
    of = LANE + b"." if b",1122334455667788,dpdk:" in command else b""
    names = NAMES if of or command.endswith(b",ep.,all") else ()
    c.send(b'{"/weft/counters": {' + b", ".join(b'"%s%s": %d' % (of, n, i + 1)
                                                for i, n in enumerate(names)) + b"}}")
PYTHON
	pid=$!
	until_said "$dir/hostile" ready && "$info" --metrics --pid $pid >"$dir/metrics" || rc=1
	wait $pid || rc=1
	rm -r "$folder"
	cat -v "$dir/metrics"
	python3 - "$dir/metrics" "$pid" <<'PYTHON' || rc=1
import re, sys
sample = re.compile(r'(weft_[a-zA-Z0-9_]+)\{pid="(\d+)",host="[^"]*",'
                    r'program="a\\",pid=\\"1\?",job="\?"'
                    r'(?:,version="1\\"}\?\[2J",metrics_version="1"|,worker="([0-9a-f]{16})")'
                    r'(?:,lane="((?:[^"\\\n]|\\[\\n"])*)")?(?:,conn="\d+",path="\d+")?\} [0-9.e+]+')
lanes, bad = set(), []
text = open(sys.argv[1], "rb").read().decode()  # UTF-8
lines = text.split("\n")
for line in lines[:-1]:
    if line.startswith(("# HELP weft_", "# TYPE weft_")):
        continue
    match = sample.fullmatch(line)
    if not match or match.group(2) != sys.argv[2] or match.group(1) == "weft_evil":
        bad.append(line)
    else:
        lanes.add(match.group(4))
print(bad, lanes)
wild = [c for c in text if c != "\n" and not c.isprintable()]
want = {None, r'dpdk:a\"b\\c}?[2J??,pid=\"1'}
sys.exit(bool(bad or wild or lines[-1] or lanes != want))
PYTHON
	return $rc
}

# Each lane of the process has a line, and something comes over one of them.
live_shows_rates() {
	local pid
	pid=$(program_pid "$server_pid")
	"$info" --live --once --pid "$pid" | tee "$dir/whole"
	sed '/slowest peers$/,$d' "$dir/whole" >"$dir/live"
	sed -n '/slowest peers$/,$p' "$dir/whole" >"$dir/peers"
	[ "$(grep -cE "^ *$pid +[0-9a-f]{8} +dpdk:[01] " "$dir/live")" = 2 ] || return 1
	grep -qE "^ *$pid .* endpoints 1, failed 0; unexpected messages" "$dir/live" || return 1
	awk -v pid="$pid" '$1 == pid { sum += $4 + $5 } END { exit !(sum > 0) }' "$dir/live"
}

# Shares of a worker's lanes make 100 %, and each end has the other one among its slowest peers.
live_shows_shares_and_peers() {
	local pid
	pid=$(program_pid "$server_pid")
	grep -E "^ *$pid +[0-9a-f]{8} +dpdk:[01] " "$dir/live" |
		awk '{ sum += $6 } END { exit !(sum > 99 && sum < 101) }' || return 1
	local row=" *$pid +[0-9a-f]{8} +dpdk:[01] +[0-9.-]+ +[0-9]+ +[0-9]+  169\.254\.[0-9.]+:"
	[ "$(grep -cE "^$row" "$dir/peers")" -ge 2 ]
}

# What --live draws on a terminal: each second the screen anew, with the same lines.
live_draws_on_a_terminal() {
	local pid
	pid=$(program_pid "$server_pid")
	python3 - "$info" "$pid" <<'PYTHON'
import os, pty, re, signal, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "--live", "--pid", sys.argv[2]])
seen, end = b"", time.time() + 30
while time.time() < end and seen.count(b"\x1b[H\x1b[2J") < 3:
    seen += os.read(fd, 65536)
os.kill(pid, signal.SIGTERM)
os.waitpid(pid, 0)
screens = seen.decode().split("\x1b[H\x1b[2J")[1:-1]
row = re.compile(r"(?m)^ *%s +[0-9a-f]{8} +dpdk:[01] .*[-\d]\r$" % sys.argv[2])
lanes = [len(row.findall(s.partition("slowest")[0])) for s in screens]
wide = max(len(l) for s in screens for l in s.split("\r\n"))
print(lanes, wide)
sys.exit(not (len(screens) >= 2 and all(n >= 1 for n in lanes) and wide <= 132))
PYTHON
}

# The worker's lanes, paths and thresholds, with parameters that name nothing.
what_is_in_use_is_told() {
	local id
	id=$(ask /weft/workers | grep -oE '[0-9a-f]{16}' | head -n 1)
	python3 - "$prefix" "$id" <<'PYTHON'
import json, re, socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 20, 0))
s.connect("/var/run/dpdk/%s/dpdk_telemetry.v2" % sys.argv[1])
s.settimeout(20)
s.recv(65536)

def ask(command):
    s.send(command.encode("latin1"))
    return next(iter(json.loads(s.recv(1 << 20)).values()))

bad = []
def fits(name, lines, pattern, least):
    wrong = [l for l in lines if not re.fullmatch(pattern, l)]
    print(name, len(lines), lines[:1], wrong[:1])
    if wrong or len(lines) < least:
        bad.append(name)

me = "," + sys.argv[2]
fits("lanes", ask("/weft/lanes" + me),
     r"(dpdk:[01] up, net_memif[01]|self up), .*GB/s.* at .*", 3)
fits("paths", ask("/weft/paths" + me),
     r"dpdk:[01] conn\d+/path\d+ rtt [0-9.]+ us \+- [0-9.]+, window \d+, "
     r"\d+ sent, \d+ resent(, bad|, in reserve)?, to 169\.254\..*", 2)
fits("help", ask("/weft/help" + me + ",tag."), r"tag\.[a-z_.]+: [A-Z].*\.", 20)
fits("help of lanes", ask("/weft/help" + me + ",dpdk:0.drop"), r"dpdk:0\.[a-z_.]+: [A-Z].*\.", 10)
lines = ask("/weft/thresholds" + me)
fits("thresholds", lines,
     r"set \d+, \d+ endpoints, [a-z_]+ from \d+ (to \d+|on): [a-z/-]+, lanes (0x[0-9a-f]+|0)", 4)
# The ranges of tagged messages leave no size out.
at = 0
ranges = [re.search(r" tag_send from (\d+) (?:to (\d+)|on)", l) for l in lines]
for low, high in (m.groups() for m in ranges if m):
    if int(low) != at:
        bad.append("gap at %d" % at)
    at = int(high) + 1 if high else None
if at is not None:
    bad.append("ends at %s" % at)
for what in ("lanes", "paths", "thresholds", "endpoints", "counters", "help"):
    for param in ("nobody", "x" * 900, "%s%n%n", '"\\', "\x01\xff", me[1:] + "0"):
        answer = ask("/weft/%s,%s" % (what, param))
        error = answer.get("error", "") if isinstance(answer, dict) else ""
        if not error.startswith("no worker, or more than one, has an id"):
            bad.append((what, param, answer))
    answer = ask("/weft/%s%s,%s" % (what, me, "%s,,," + "y" * 300))
    if answer is None or "error" in answer:
        bad.append((what, answer))
print("wrong:", bad)
sys.exit(bool(bad))
PYTHON
}

weft_info_shows_what_is_in_use() {
	local pid what
	pid=$(program_pid "$server_pid")
	for what in lanes endpoints paths thresholds counters; do
		"$info" --show $what --pid "$pid" >"$dir/show" || return 1
		grep -qE "^process $pid, worker [0-9a-f]{16}\$" "$dir/show" || return 1
		[ "$(wc -l <"$dir/show")" -ge 2 ] || return 1
	done
	"$info" --show nonsense --pid "$pid" 2>"$dir/info.err"
	[ $? = 2 ] || return 1
	sentence "$dir/info.err" "--show takes one of lanes, .*, not 'nonsense'"
}

captures_are_commanded() {
	local pid
	pid=$(program_pid "$server_pid")
	"$info" --capture "start,$dir/info.pcapng,snaplen=128" --pid "$pid" || return 1
	"$info" --capture --pid "$pid" | grep -q 'captures *1' || return 1
	"$info" --capture stop --pid "$pid" || return 1
	[ -s "$dir/info.pcapng" ] || return 1
	! "$info" --capture stop --pid "$pid" 2>"$dir/info.err" || return 1
	sentence "$dir/info.err" 'no capture is running' || return 1
	! "$info" --capture "start,/nowhere/x" --pid "$pid" 2>"$dir/info.err" || return 1
	sentence "$dir/info.err" "/nowhere/x can't be written" || return 1
	! "$info" --capture --pid 1 2>"$dir/info.err" || return 1
	sentence "$dir/info.err" 'no process of that id'
}

# The same over HTTP, on this host alone. promtool, where it is, has nothing to find fault with.
metrics_are_served() {
	local pid http=$((20000 + RANDOM % 12000)) served rc=0
	pid=$(program_pid "$server_pid")
	"$info" --metrics --listen "$http" --pid "$pid" 2>"$dir/listen.err" &
	served=$!
	until_said "$dir/listen.err" "metrics at" $served || {
		grep -q "no HTTP server" "$dir/listen.err"
		return
	}
	python3 - "$http" >"$dir/scraped" <<'PYTHON' || rc=1
import socket, sys, urllib.error, urllib.request
base = "http://127.0.0.1:%s" % sys.argv[1]
answer = urllib.request.urlopen(base + "/metrics", timeout=20)
assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers
print(answer.read().decode(), end="")
for request in (base + "/", urllib.request.Request(base + "/metrics", b"x" * 100000)):
    try:
        urllib.request.urlopen(request, timeout=20)
        sys.exit("%s has an answer" % request)
    except urllib.error.HTTPError as e:
        assert e.code == 404, e.code
# A client that sends nothing stops no other client.
silent = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
assert urllib.request.urlopen(base + "/metrics", timeout=20).status == 200
PYTHON
	kill -TERM $served
	wait $served
	[ $? = 143 ] || rc=1
	grep -q "^weft_build_info{pid=\"$pid\"" "$dir/scraped" || rc=1
	if command -v promtool >/dev/null; then
		promtool check metrics <"$dir/scraped" || rc=1
	fi
	return $rc
}

weft_info_shows_it() {
	metrics_are_well_formed && metrics_are_served && live_shows_rates &&
		live_shows_shares_and_peers &&
		live_draws_on_a_terminal && weft_info_shows_what_is_in_use &&
		captures_are_commanded
}

check "weft-info: metrics, live view, captures by command" during weft_info_shows_it
check "weft-info --metrics: names that a hostile process has chosen" hostile_names_stay_labels
check "the lanes of a worker are listed" during workers_are_listed
check "its endpoints are told" during endpoints_are_told
check "its counters go up" during counters_go_up
check "its lanes, paths and thresholds are told" during what_is_in_use_is_told
check "several ask at once" during many_ask
# @behaviour T52: a stopped process delays no query of another one, and weft-info names it
check "a stopped process is named, and delays no query" during stopped_process_delays_no_query
check "a worker that is not there: a sentence" during unknown_worker
tap_end
