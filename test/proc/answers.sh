#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Processes without raw lanes answer weft-info on a socket of their own. These use shared memory,
# without an EAL's telemetry.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
reconnect=$build/test/proc/proc_reconnect
[ -x "$reconnect" ] || { echo "there is no proc_reconnect in this build"; exit 77; }
folder=/tmp/weft-$(id -u)

# cat_server: weft-cat over shared memory, which sleeps while no message arrives.
cat_server() {
	: >"$dir/server.err"
	timeout -k 10 100 "$cat" -p "$port" -L shm -l -d >/dev/null 2>"$dir/server.err" &
	server_pid=$!
	until_said "$dir/server.err" "waiting for a client" $server_pid
}

# during COMMAND...: two connected processes that sleep.
during() {
	local rc=0
	new_pair 0
	rm -f "$dir/stream"
	mkfifo "$dir/stream"
	cat_server || return 1
	timeout -k 10 100 "$cat" -p "$port" -L shm -s 127.0.0.1 <"$dir/stream" 2>"$dir/client.err" &
	client_pid=$!
	exec 9>"$dir/stream"
	echo something >&9
	pid=$(program_pid $server_pid)
	for _ in $(seq 200); do
		"$info" --show endpoints --pid "$pid" >"$dir/endpoints" 2>&1
		! grep -q ': up, 1 of 1 lanes up' "$dir/endpoints" || break
		sleep 0.1
	done
	"$@" || rc=1
	exec 9>&-
	wait $client_pid || rc=1
	server_code || rc=1
	return $rc
}

everything_is_shown() {
	local what
	for what in lanes endpoints thresholds counters paths; do
		"$info" --show $what --pid "$pid" >"$dir/show" || return 1
		cat "$dir/show"
		grep -qE "^process $pid, worker [0-9a-f]{16}\$" "$dir/show" || return 1
		[ $what = paths ] || [ "$(wc -l <"$dir/show")" -ge 2 ] || return 1
	done
	"$info" --metrics --pid "$pid" >"$dir/metrics" || return 1
	grep -qE '^weft_lane_rx_messages_total\{pid="'"$pid"'".*,lane="shm:host"\} [1-9]' \
		"$dir/metrics" || return 1
	[ "$(grep -c "^weft_build_info" "$dir/metrics")" = 1 ] || return 1
	"$info" --live --once --pid "$pid" >"$dir/live" || return 1
	grep -qE "^ *$pid +[0-9a-f]{8} +shm:host +- +- " "$dir/live"
}

# The helper thread wakes a worker that sleeps, so the answer does not wait for a message.
sleeping_worker_answers_at_once() {
	python3 - "$folder" "$pid" <<'PYTHON'
import glob, json, socket, struct, sys, time
for path in glob.glob(sys.argv[1] + "/answers-*"):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(2)  # another process may be stopped
    try:
        s.connect(path)
    except (ConnectionRefusedError, BlockingIOError, TimeoutError):
        continue
    creds = s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    if struct.unpack("3i", creds)[0] != int(sys.argv[2]):
        continue
    s.recv(65536)
    took = []
    for _ in range(50):
        begun = time.monotonic()
        s.send(b"/weft/counters,,ep.,all")
        answer = json.loads(s.recv(65536))
        took.append(time.monotonic() - begun)
        assert answer["/weft/counters"]["ep/open"] == 1, answer
    print("median %.1f ms" % (sorted(took)[25] * 1e3))
    sys.exit(sorted(took)[25] > 0.25)
sys.exit("no socket of process " + sys.argv[2])
PYTHON
}

capture_is_commanded() {
	"$info" --capture "start,$dir/c.pcapng" --pid "$pid" || return 1
	echo "something more" >&9
	"$info" --capture --pid "$pid" | grep -q 'captures *1' || return 1
	"$info" --capture stop --pid "$pid" || return 1
	[ -s "$dir/c.pcapng" ] || return 1
	! "$info" --capture stop --pid "$pid" 2>"$dir/info.err" || return 1
	sentence "$dir/info.err" 'no capture is running'
}

# One client more than allowed, commands of random bytes, and a client that reads nothing. The
# next client is served when there is room, and the worker continues.
hostile_clients() {
	python3 - "$folder" "$pid" <<'PYTHON' || return 1
import glob, json, random, socket, struct, sys
def connect():
    for path in glob.glob(sys.argv[1] + "/answers-*"):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(20)
        try:
            s.connect(path)
        except ConnectionRefusedError:
            continue
        if struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0] == \
                int(sys.argv[2]):
            return s
    sys.exit("no socket")
many = [connect() for _ in range(16)]
for s in many:
    assert b"max_output_len" in s.recv(65536)
late = connect()
late.settimeout(0.3)
try:
    late.recv(65536)
    sys.exit("a client too many is served")
except TimeoutError:
    pass
many.pop().close()
late.settimeout(20)
assert b"max_output_len" in late.recv(65536)
random.seed(1)
for i in range(500):
    command = random.randbytes(random.randrange(1, 2000))
    if i % 2:
        command = b"/weft/" + random.choice([b"counters", b"help", b"lanes", b"paths"]) + \
            b"," * (i % 5) + command[:50]
    late.send(command)
    json.loads(late.recv(65536))
silent = many.pop()
try:
    for i in range(100000):
        silent.send(b"/weft/help", socket.MSG_DONTWAIT)
except (BlockingIOError, BrokenPipeError, ConnectionResetError):
    pass
late.send(b"/weft/workers")
assert len(json.loads(late.recv(65536))["/weft/workers"]) == 1
PYTHON
	"$info" --show counters --pid "$pid" >"$dir/show"
}

# A killed process leaves its socket, and weft-info removes it.
dead_sockets_are_removed() {
	local before after
	new_pair 0
	before=$(find "$folder" -name 'answers-*' 2>/dev/null | wc -l)
	"$reconnect" server "$dir/address" 2>"$dir/server.err" &
	server_pid=$!
	until_exists "$dir/address" $server_pid || return 1
	"$info" --show lanes --pid $server_pid | grep -q 'shm:host up' || return 1
	kill -9 $server_pid
	wait $server_pid 2>/dev/null
	! "$info" --show lanes --pid $server_pid 2>"$dir/info.err" || return 1
	sentence "$dir/info.err" 'no process of that id responds' || return 1
	server_pid=
	after=$(find "$folder" -name 'answers-*' 2>/dev/null | wc -l)
	echo "$before sockets before, $after after"
	[ "$after" -le "$before" ]
}

other_user_is_refused() {
	[ "$(stat -c %a "$folder")" = 700 ] || return 1
	chmod 755 "$folder"
	python3 - "$folder" <<'PYTHON'
import glob, os, socket, sys
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
for path in glob.glob(sys.argv[1] + "/answers-*"):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    try:
        s.connect(path)
        assert not s.recv(65536), "it has an answer"
    except (PermissionError, ConnectionRefusedError, ConnectionResetError):
        pass
PYTHON
	local rc=$?
	chmod 700 "$folder"
	return $rc
}

export WEFT_LANES=shm
check "a process without raw lanes: metrics, live view, all that is shown" \
	during everything_is_shown
check "its worker sleeps, and answers at once" during sleeping_worker_answers_at_once
check "its messages are captured by command" during capture_is_commanded
check "too many clients, nonsense, a client that does not read" during hostile_clients
check "sockets of dead processes are removed" dead_sockets_are_removed
if [ "$(id -u)" = 0 ]; then
	check "a process of another user has no answer" during other_user_is_refused
else
	skip "a process of another user has no answer" "not root"
fi
tap_end
