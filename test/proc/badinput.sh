#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Wrong options, variables, ports and peers: each gives a message that names the thing, and its exit
# code.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

# refuses CODE PATTERN COMMAND...: the command ends with this code and says this.
refuses() {
	local code=$1 pattern=$2 rc=0
	shift 2
	timeout 60 "$@" >"$dir/client.out" 2>"$dir/client.err" </dev/null || rc=$?
	[ $rc = "$code" ] || { echo "exit code $rc, not $code"; return 1; }
	sentence "$dir/client.err" "$pattern"
}

# shows PATTERN COMMAND...: ends with 0, prints this, and says nothing on standard error.
shows() {
	local pattern=$1 rc=0
	shift
	timeout 60 "$@" >"$dir/client.out" 2>"$dir/client.err" </dev/null || rc=$?
	[ $rc = 0 ] && [ ! -s "$dir/client.err" ] && grep -qE -- "$pattern" "$dir/client.out"
}

eal=(--no-huge -m 512 --no-pci)
memif=(--vdev="net_memif0,role=server,id=0,socket-abstract=no,socket=$dir/alone")

for program in perf cat info; do
	binary=$build/app/weft-$program
	check "weft-$program --help" shows "usage: weft-$program" "$binary" --help
	check "weft-$program --help after --" shows "usage: weft-$program" "$binary" -l 0 -- --help
	check "weft-$program --version" shows "^version [0-9]" "$binary" --version
	# @behaviour X1: unknown and malformed options of the programs
	check "weft-$program: unknown option" refuses 2 "no option '--nonsense'" "$binary" \
		--nonsense
	# @behaviour X1
	check "weft-$program: unknown short option" refuses 2 "no option '-Q'" "$binary" -Q
	# @behaviour X2: unknown and malformed variables, of the environment and by -S
	check "weft-$program: malformed WEFT_ variable" refuses 2 "configuration" \
		env WEFT_PEER_TIMEOUT=soon "$binary" -d localhost
	# @behaviour X2
	check "weft-$program: unknown variable by -S" refuses 2 "no variable 'NONSENSE'" "$binary" \
		-S NONSENSE=1
	check "weft-$program: malformed value by -S" refuses 2 "PEER_TIMEOUT" "$binary" \
		-S PEER_TIMEOUT=soon
	check "weft-$program: -S without a value" refuses 2 "NAME=VALUE" "$binary" -S PEER_TIMEOUT
done

# capture_of_nothing: WEFT_CAPTURE where no lane writes it is reported, and no file appears.
capture_of_nothing() {
	WEFT_CAPTURE=$dir/nothing.pcapng timeout 60 "$info" "${eal[@]}" -- -d -L self \
		>"$dir/client.out" 2>"$dir/client.err" </dev/null || return 1
	grep -q "WEFT_CAPTURE: nothing is written (.*nothing.pcapng): there is no lane" \
		"$dir/client.err" && [ ! -e "$dir/nothing.pcapng" ]
}

# lanes_text WORDS LANES: what is wrong with the list stands in the log, whatever ports there are.
lanes_text() {
	local rc=0
	timeout 60 "$perf" "${eal[@]}" -- -L "$2" >"$dir/client.out" 2>"$dir/client.err" \
		</dev/null || rc=$?
	[ $rc = 2 ] && grep -qE -- "$1" "$dir/client.err"
}

check "WEFT_CAPTURE without a raw lane is told" capture_of_nothing
check "lanes that are named get their own sentence, without a port too" lanes_text \
	"no driver 'dkpd'; is 'dpdk' meant" dkpd:0
check "lanes separated by a comma: the sentence says what separates them" lanes_text \
	"lanes are separated by ';'" dpdk:0,dpdk:1
check "an unknown option: the numbers that every lane takes are named too" lanes_text \
	"unknown option 'foo' .*bw, lat, overhead, reg" dpdk:0,foo=1
check "weft-perf: a picture that is neither .svg nor .png" refuses 2 \
	"takes a file name that ends in .svg or .png" "$perf" --sweep --graph x.jpg
check "weft-perf: a picture of nothing" refuses 2 "needs --sweep" "$perf" --graph x.svg
check "weft-perf: a sweep of another test than it can" refuses 2 "no sweep of another -t" "$perf" \
	--sweep -t put_lat
check "weft-perf: a sweep of the table" refuses 2 "no sweep of another -t" "$perf" --sweep -t table
check "weft-perf: missing value" refuses 2 "'-s' needs a value" "$perf" -s
# @behaviour X1
check "weft-perf: malformed size" refuses 2 "-s takes a size .*'8x'" "$perf" -s 8x
check "weft-perf: range that ends before it begins" refuses 2 "ends before it begins" "$perf" -s 8:4
check "weft-perf: no iterations" refuses 2 "-n takes" "$perf" -n 0
check "weft-perf: endless duration" refuses 2 "-D takes" "$perf" -D inf
check "weft-perf: window out of range" refuses 2 "-O takes" "$perf" -O 100000
# @behaviour X1
check "weft-perf: unknown test, and those there are" refuses 2 \
	"no test 'tag_fast'; there are tag_lat.* put_lat.* cswap_lat" \
	"$perf" -t tag_fast
check "weft-perf: a test that is there twice" refuses 2 "tag_lat is there twice" "$perf" \
	-t tag_lat,put_bw,tag_lat
check "weft-perf: bare ports beside lanes" refuses 2 "raw_bw can.t be combined" "$perf" \
	-t tag_bw,raw_bw
check "weft-perf: a table beside tests" refuses 2 "table can.t be combined" "$perf" -t tag_bw,table
check "weft-perf: a flood beside tests" refuses 2 "tag_flood can.t be combined" "$perf" \
	-t tag_flood,tag_bw
check "weft-perf: several tests, one of which can't have the size" refuses 2 \
	"-s 0: put_bw takes at least 1 byte" \
	"$perf" -t tag_bw,put_bw -s 8,0
check "weft-perf: unexpected puts" refuses 2 "-U is for tagged messages: put_lat has no receives" \
	"$perf" -t put_lat -U
check "weft-perf: unexpected active messages" refuses 2 "-U is for tagged messages: am_bw" "$perf" \
	-U -t am_bw
check "weft-perf: atomic of 16 bytes" refuses 2 "-s 16: fadd_lat takes 4 or 8 bytes" "$perf" \
	-t fadd_lat -s 8,16
check "weft-perf: put without a byte to poll on" refuses 2 "-s 0: put_lat takes at least 1 byte" \
	"$perf" -t put_lat -s 0
check "weft-perf: two hosts" refuses 2 "only one host is possible" "$perf" a b
check "weft-perf: port out of range" refuses 2 "-p takes .*'70000'" "$perf" -p 70000
check "weft-perf: core that is not there" refuses 2 "core 1000" "$perf" "${eal[@]}" "${memif[@]}" \
	-- -c 1000
# @behaviour X1
check "weft-cat: neither -l nor a host" refuses 2 "name the host" "$cat"
check "weft-cat: block too large" refuses 2 "-b takes" "$cat" -l -b 1G
check "weft-info: nothing to show" refuses 2 "choose what to show" "$info"
check "weft-info: two commands" refuses 2 "choose one of --capture" "$info" --live --metrics
check "weft-info: an option of another command" refuses 2 "once is for --live" "$info" --metrics \
	--once
check "weft-info: --pid without a command" refuses 2 "pid is for --capture" "$info" -c --pid 1
check "weft-info: --pid with no number" refuses 2 "pid takes a number from 1" "$info" --live --pid x
check "weft-info: -l without --check" refuses 2 "-l and -p are for --check" "$info" -c -l
check "weft-info: --check without a host" refuses 2 "check takes either the HOST" "$info" --check
check "weft-info: a variable for a command that has none" refuses 2 "-S is for -c, -C and -d" \
	"$info" --live -S CC=delay
check "weft-info: a word that is no option" refuses 2 "'words' is no option" "$info" --live words
check "weft-info: a process without --pid" refuses 2 "a process is given as --pid 4711" "$info" \
	--why 4711
check "weft-switch: two uplinks" refuses 2 "name one uplink, not 2" "$build/app/weft-switch" a b
check "weft-switch: no such port number" refuses 2 "-n takes a number from 1 to 64" \
	"$build/app/weft-switch" -n 65
check "weft-switch: an address without a prefix" refuses 2 "-a takes IP/BITS" \
	"$build/app/weft-switch" -a 10.0.0.1
check "weft-info -c needs no EAL: all variables with help" shows "^WEFT_PEER_TIMEOUT=" "$info" -c
check "weft-info -C: only what was changed" shows "^WEFT_PEER_TIMEOUT=" env WEFT_PEER_TIMEOUT=7s \
	"$info" -C

full_disk() {
	local rc=0
	timeout 20 "$info" "$@" >/dev/full 2>"$dir/client.err" || rc=$?
	cat "$dir/client.err"
	[ $rc = 1 ] && grep -q "standard output: No space left" "$dir/client.err"
}
# no_port PATTERN COMMAND...: the device is named, and the exit code is 1.
no_port() {
	local rc=0
	timeout 60 "${@:2}" >"$dir/client.out" 2>"$dir/client.err" || rc=$?
	cat "$dir/client.err"
	[ $rc = 1 ] && grep -q "$1" "$dir/client.err" &&
		grep -q "weft-info: 1 of the devices that the EAL was given is no port" \
			"$dir/client.err"
}
# A lane needs frames of MTU 1280, and net_af_packet takes 66 bytes of each ring frame.
small_framesz() {
	local rc=0 port="net_af_packet0,iface=lo,framesz=112,blocksz=4096,framecnt=504"
	timeout 60 "$info" --no-huge -m 64 --no-pci --vdev="$port" -- -d -L dpdk:0 \
		>"$dir/client.out" 2>"$dir/client.err" || rc=$?
	cat "$dir/client.err"
	[ $rc = 2 ] &&
		grep -q "framesz= must be at least 1360, for an MTU of 1280" "$dir/client.err"
}
# A memif socket at which this user may not connect.
forbidden_socket() {
	local pid
	python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(sys.argv[1])
s.listen()
time.sleep(60)' "$dir/closed" &
	pid=$!
	until_exists "$dir/closed" $pid || return 1
	chmod 600 "$dir/closed"
	chmod 711 "$dir"
	timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups "$info" --no-huge -m 64 \
		--no-pci -- -d -L "dpdk:$dir/closed,role=client" >"$dir/client.out" 2>&1
	kill $pid
	cat "$dir/client.out"
	grep -q "this user may not connect to it" "$dir/client.out"
}
check "weft-info -c: a full disk is an error" full_disk -c
check "weft-info -v: a full disk is an error" full_disk -v
check "weft-info -d: a full disk is an error" full_disk --no-huge -m 64 --no-pci \
	--vdev=net_ring0 -- -d
check "weft-info -d: a NIC that is not there is an error" no_port "0000:ff:00.0" \
	"$info" --no-huge -m 64 -a 0000:ff:00.0 -- -d
if [ "$(id -u)" = 0 ]; then
	check "weft-info -d: a port of the kernel's needs rights that this process has not" \
		no_port "net_af_packet0 made no port: it needs root or CAP_NET_RAW" \
		setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$info" --no-huge -m 64 --no-pci --vdev=net_af_packet0,iface=lo -- -d
	check "weft-info -d: the remedy for a small framesz= is the least one" small_framesz
	check "a memif socket of another user: the rights are the reason" forbidden_socket
fi
# The log, behind DPDK's lines, has the reason.
named_lane() {
	local rc=0
	timeout 60 "$info" --no-huge -m 64 --no-pci --vdev=net_af_packet0,iface=nosuch -- \
		-d -L dpdk:0 >"$dir/client.out" 2>"$dir/client.err" || rc=$?
	cat "$dir/client.err"
	[ $rc = 1 ] &&
		grep -q "dpdk:0 cannot .*: --vdev=net_af_packet0 made no port" "$dir/client.err"
}
check "a named lane whose virtual port was not made: the argument is named" named_lane
check "weft-info -d: a virtual port that was not made is an error" no_port \
	"net_af_packet0 made no port" \
	"$info" --no-huge -m 64 --no-pci --vdev=net_af_packet0,iface=nosuch -- -d

profile() { printf '%b' "$1" >"$dir/lanes.ini"; }
profile '[lane a]\ndriver=dpdk\nbandwidth=25Gbps\nlatency=2us\nam_max=8k\n'
check "weft-info protocols: without lanes" refuses 2 "--lanes FILE" "$info" protocols
# @behaviour X12
check "weft-info protocols: no such file" refuses 2 "$dir/none.ini: No such file" \
	"$info" protocols --lanes "$dir/none.ini"
check "weft-info protocols: unknown operation, and those there are" refuses 2 \
	"--op 'dance': expected tag_send" \
	"$info" protocols --lanes "$dir/lanes.ini" --op dance
check "weft-info protocols: unknown format" refuses 2 \
	"--format 'xml': expected table, csv or text" \
	"$info" protocols --lanes "$dir/lanes.ini" --format xml
check "weft-info protocols: malformed size to explain" refuses 2 "--explain takes a size .*'9q'" \
	"$info" protocols --lanes "$dir/lanes.ini" --explain 9q
check "weft-info protocols: a picture where none can be written" refuses 1 \
	"--graph /no/where/x.svg: No such file or directory" \
	"$info" protocols --lanes "$dir/lanes.ini" --graph /no/where/x.svg
no_gnuplot() {
	refuses 1 "gnuplot is not installed" env PATH=/no/where "$info" protocols \
		--lanes "$dir/lanes.ini" --graph "$dir/new.svg" && [ ! -e "$dir/new.svg" ]
}
check "weft-info protocols: a picture without gnuplot, and no empty file" no_gnuplot
profile '[lane a]\ndriver=dpdk\nbandwidth=25\n'
# @behaviour X12
check "weft-info protocols: a profile with a missing unit" refuses 2 \
	"lanes.ini:3: bandwidth = '25': expected a rate with its unit" \
	"$info" protocols --lanes "$dir/lanes.ini"
profile '[model]\nbcopy_bw=5GBs\n'
# @behaviour X12
check "weft-info protocols: a profile without lanes" refuses 2 \
	"lanes.ini: there is no lane: expected" \
	"$info" protocols --lanes "$dir/lanes.ini"

unknown_variable() {
	timeout 20 env WEFT_PEER_TIMEOT=3s "$info" -C >"$dir/client.out" 2>"$dir/client.err" ||
		return 1
	grep -q "WEFT_PEER_TIMEOT.*WEFT_PEER_TIMEOUT" "$dir/client.err"
}
# @behaviour X2
check "an unknown WEFT_ variable is warned about with the nearest name" unknown_variable

check "weft-perf: EAL argument that is none" refuses 2 "EAL did not start" "$perf" --no-huge \
	--nonsense -- -t tag_lat
# @behaviour X3
check "weft-perf: no port at all" refuses 1 "no lane could be opened" "$perf" \
	"${eal[@]}" -- -L "-shm;-udp" -W 1 -p 1 localhost
nothing_else() {
	refuses 1 "no server listens" "$perf" -W 1 -p 1 127.0.0.1 &&
		[ "$(wc -l <"$dir/client.err")" = 1 ]
}
check "weft-perf: without a requested port not a line of DPDK's" nothing_else
check "weft-perf: lane list that is none" refuses 2 "does not start" "$perf" \
	"${eal[@]}" "${memif[@]}" -- -L "token:ring" localhost
# @behaviour X3: a missing port, no port at all, wrong lane options
check "weft-perf: port that is not there" refuses 1 "lane" "$perf" "${eal[@]}" "${memif[@]}" -- \
	-L dpdk:7 localhost
# @behaviour X3
check "weft-cat: port that is not there" refuses 1 "lane" "$cat" "${eal[@]}" "${memif[@]}" -- \
	-L dpdk:7 -l
# @behaviour X3
check "weft-perf: malformed lane option" refuses 2 "." "$perf" "${eal[@]}" "${memif[@]}" -- \
	-L dpdk:0,mtu=huge localhost
# @behaviour X9: the peer's program does not run, or is another one
check "weft-perf: no listener" refuses 1 \
	"no server listens on 127.0.0.1 port 1: .*: weft-perf without a host" \
	"$perf" "${eal[@]}" "${memif[@]}" -- -p 1 -W 0.2 127.0.0.1
# @behaviour X9
check "weft-perf: host that does not exist" refuses 1 "cannot resolve no.such.host.invalid" \
	"$perf" "${eal[@]}" "${memif[@]}" -- no.such.host.invalid
# @behaviour X9
check "weft-info: --check of a host that does not exist" refuses 2 \
	"check: cannot resolve no.such.host.invalid" "$info" --check no.such.host.invalid
# @behaviour X9
check "weft-cat: no listener" refuses 1 \
	"no server listens .* start it there first: weft-cat -l" "$cat" "${eal[@]}" \
	"${memif[@]}" -- -p 1 -W 0.2 127.0.0.1

port_taken() {
	new_pair 1
	start_server "$perf" || return 1
	refuses 1 "TCP port $port is in use" "$perf" "${eal[@]}" "${memif[@]}" -- -p "$port"
	local rc=$?
	kill -TERM "$(program_pid "$server_pid")"
	server_code
	return $rc
}
# @behaviour X9
check "weft-perf: TCP port taken" port_taken

# The server opens its lanes when the client comes: the client prints the server's reason.
relayed() {
	new_pair 1
	start_server "$perf" -L dpdk:7 || return 1
	refuses 3 "the server gave up: no lane could be opened: .*there is no DPDK port '7'" \
		"$perf" "${eal[@]}" -- -p "$port" -L shm 127.0.0.1 || return 1
	! server_code
}
check "weft-perf: why the server has no lane reaches the client" relayed

# A cat and a perf that meet part again, and the server goes on waiting for its own kind.
wrong_program() {
	new_pair 1
	start_server "$cat" -l || return 1
	refuses 1 "is weft-cat" "$perf" "${eal_client[@]}" -- -p "$port" 127.0.0.1 || return 1
	grep -q "refused .*: the program there is weft-perf" "$dir/server.err" || return 1
	client "$cat" </dev/null || return 1
	server_code
}
# @behaviour X9
check "weft-perf meets weft-cat" wrong_program

stranger() {
	new_pair 1
	start_server "$perf" || return 1
	exec 7<>"/dev/tcp/127.0.0.1/$port"
	printf 'GET / HTTP/1.1\r\n\r\n' >&7
	cat <&7 >/dev/null
	exec 7>&-
	client "$perf" -t tag_lat -n 10 || return 1
	server_code
}
# @behaviour X9
check "an unknown client on the TCP port is sent away" stranger

# A server that answers as one, and gives up with words that a terminal would obey.
hostile_words() {
	local i rc=0
	new_pair 1
	rm -f "$dir/hostile.out"
	timeout 60 python3 - <<-'END' >"$dir/hostile.out" &
		import socket, struct
		door = socket.create_server(('127.0.0.1', 0))
		print(door.getsockname()[1], flush=True)
		sock, _ = door.accept()
		hello = sock.recv(44, socket.MSG_WAITALL)
		text = b'no lane \033]0;owned\007\x9b2J\r'
		sock.sendall(hello + hello[:4] + struct.pack('<IIi', 6, 4 + len(text), 1) + text)
		sock.recv(1)
	END
	for ((i = 0; i < 100; i++)); do
		[ ! -s "$dir/hostile.out" ] || break
		sleep 0.05
	done
	port=$(cat "$dir/hostile.out")
	client "$1" </dev/null || rc=$?
	[ $rc != 0 ] && sentence "$dir/client.err" 'no lane \?\]0;owned\?\?2J\?' &&
		! LC_ALL=C grep -q '[^[:print:]]' "$dir/client.err"
}

# spoiled_key HOW PATTERN: the key of the server's memory comes spoiled; both ends say so and end.
spoiled_key() {
	local rc=0 i
	new_pair 1
	start_server "$perf" || return 1
	rm -f "$dir/tamper.out"
	timeout 60 python3 "$(dirname "$0")/tamper.py" "$port" "$1" >"$dir/tamper.out" 2>&1 &
	for ((i = 0; i < 100; i++)); do
		[ ! -s "$dir/tamper.out" ] || break
		sleep 0.05
	done
	port=$(cat "$dir/tamper.out")
	client "$perf" -t put_bw -s 4k -n 100 || rc=$?
	[ $rc = 3 ] || { echo "the client's exit code is $rc"; return 1; }
	sentence "$dir/client.err" "$2" || return 1
	server_code && return 1
	sentence "$dir/server.err" "the client gave up: .*$2"
}
if command -v python3 >/dev/null; then
	# @behaviour X14
	check "weft-perf: remote key with a wrong bit" spoiled_key flip \
		"remote key of [0-9]+ bytes cannot be used"
	# @behaviour X14
	check "weft-perf: remote key cut off" spoiled_key cut \
		"remote key of [0-9]+ bytes cannot be used"
	for program in perf cat; do
		# @behaviour T10
		check "weft-$program: a server's last words command no terminal" hostile_words \
			"$build/app/weft-$program"
	done
	# @behaviour X14
	check "weft-perf: remote key of 4 KiB" spoiled_key long "unexpected message"
else
	skip "weft-perf: spoiled remote keys" "there is no python3"
fi

# The peer's lanes lead somewhere else: nothing answers there. A connection that never came up
# leaves no file of the flight recorder.
no_answer() {
	local rc=0
	new_pair 1
	mkdir "$dir/recorded" || return 1
	export TMPDIR=$dir/recorded
	start_server "$perf" -S CONNECT_TIMEOUT=1s || return 1
	timeout 30 "$perf" "${eal[@]}" "${memif[@]}" -- -p "$port" -S CONNECT_TIMEOUT=1s 127.0.0.1 \
		>"$dir/client.out" 2>"$dir/client.err" || rc=$?
	server_code && return 1
	find "$dir/recorded" -name 'recorder-*' | grep . && return 1
	[ $rc != 0 ] && sentence "$dir/client.err" "lane|link|reach|connect"
}
# @behaviour X9
check "lanes that don't meet: a sentence within WEFT_CONNECT_TIMEOUT" no_answer
tap_end
