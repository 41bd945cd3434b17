# SPDX-License-Identifier: BSD-3-Clause
#
# What the cases in the guest share. A case sources this with the build folder in $1, makes its
# links, reports each behaviour with check, and ends with tap_end. Emulated time is slow and jumpy:
# assert on data, order and counters, never on speed.
# shellcheck shell=bash

[ -d /run/weft-guest ] || {
	echo "cases run inside the guest only: test/guest/run.sh BUILDDIR CASE"
	exit 2
}

# Nothing of the caller's environment shall decide what is tested.
for variable in "${!WEFT_@}"; do
	unset "$variable"
done

build=$1
dir=$(mktemp -d /tmp/weft-case.XXXXXX)
# To wait without a process: those are slow here. Nothing ever comes from it.
mkfifo "$dir/never" && exec 9<>"$dir/never"
tap=0
tap_failed=0

# check NAME COMMAND...: one behaviour; it passes when the command does. What went wrong is shown.
check() {
	local name=$1 begin end
	shift
	tap=$((tap + 1))
	read -r begin _ </proc/uptime
	if "$@" >"$dir/check.log" 2>&1; then
		echo "ok $tap - $name"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap - $name"
		tail -n 25 "$dir/check.log" | cut -c1-300 | tr -d '\0' | sed 's/^/# /'
	fi
	read -r end _ </proc/uptime
	begin=$((${end/./} - ${begin/./}))
	printf '# %d.%02d s\n' $((begin / 100)) $((begin % 100))
	{
		echo "---- $name"
		cat "$dir/check.log"
	} >&2
}

skip() {
	tap=$((tap + 1))
	echo "ok $tap - $1 # SKIP $2"
}

tap_end() {
	echo "1..$tap" >&2
	rm -rf "$dir"
	[ $tap_failed = 0 ]
}

# rail N [MTU]: a veth pair vNa - vNb with addresses 10.0.N.1 and 10.0.N.2, and a RoCE device on
# each: rxeNa, rxeNb. Path MTU is 4096 with an MTU of 4200, 1024 with 1500.
rail() {
	ip link add "v${1}a" mtu "${2:-4200}" type veth peer name "v${1}b" mtu "${2:-4200}" &&
		rail_up "$1"
}

# rail_up N: the rest, for a pair that is there.
rail_up() {
	local n=$1 end host=1
	for end in a b; do
		ip link set "v$n$end" up
		ip addr add "10.0.$n.$host/24" dev "v$n$end"
		# Both ends are in one kernel: it must not take its own address for local and go
		# through lo, nor answer for the other.
		sysctl -qw "net.ipv4.conf.v$n$end.accept_local=1" \
			"net.ipv4.conf.v$n$end.rp_filter=0" \
			"net.ipv4.conf.v$n$end.arp_ignore=1" "net.ipv4.conf.v$n$end.arp_announce=2"
		host=2
	done
	rdma link add "rxe${n}a" type rxe netdev "v${n}a" || return
	rdma link add "rxe${n}b" type rxe netdev "v${n}b"
}

# slow N RATE: both ends of rail N send at RATE Mbit/s from now on, and lose nothing. Asserting how
# rails share is possible only so: what an emulated device can do is the machine's.
slow() {
	local end
	for end in a b; do
		tc qdisc replace dev "v$1$end" root tbf rate "$2mbit" burst 16kb limit 16mb ||
			return
	done
}

# far N MS RATE: the same, and what is sent is MS ms under way.
far() {
	local end
	for end in a b; do
		tc qdisc replace dev "v$1$end" root netem delay "$2ms" rate "$3mbit" limit 10000 ||
			return
	done
}

# as_fast_as_it_is N: neither any more.
as_fast_as_it_is() {
	tc qdisc del dev "v${1}a" root && tc qdisc del dev "v${1}b" root
}

# gid DEVICE: index of its RoCE v2 GID of the IPv4 address.
gid() {
	local i type text
	for i in 0 1 2 3 4 5; do
		# The kernel has nothing to read for an index without a GID.
		read -r type 2>/dev/null <"/sys/class/infiniband/$1/ports/1/gid_attrs/types/$i" ||
			continue
		read -r text <"/sys/class/infiniband/$1/ports/1/gids/$i"
		case $type:$text in
		'RoCE v2':0000:0000:0000:0000:0000:ffff:*) echo "$i"; return ;;
		esac
	done
	return 1
}

# counter DEVICE NAME: one of the kernel's counters of the device.
counter() {
	local value
	read -r value <"/sys/class/infiniband/$1/ports/1/hw_counters/$2" && echo "$value"
}

# listening PORT: does a process wait for TCP connections?
listening() {
	[ -n "$(ss -Hltn "sport = :$1")" ]
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || { echo "waited in vain for: $*"; return 1; }
		read -rt 0.1 -u 9 || true
	done
}

# says FILE WORDS...: any of them. (No process; nor has counter one.)
says() {
	local text words
	mapfile -d '' -t text <"$1"
	shift
	for words; do
		[[ ${text[*]} != *"$words"* ]] || return 0
	done
	return 1
}

# ---- weft-perf between two processes

perf=$build/app/weft-perf
# shellcheck disable=SC2034
info=$build/app/weft-info
eal=(--no-huge -m 96 --no-pci --no-telemetry)
port=20000
# What runs each end (ip netns exec ...), its EAL's further arguments, and where the client finds
# the server.
server_run=()
client_run=()
server_eal=()
client_eal=()
host=127.0.0.1

# begin_server LANES ARGS...: in the background; sets server_pid. Its client may be begun at once,
# for it waits.
begin_server() {
	local lanes=$1
	shift
	port=$((port + 1))
	: >"$dir/server.err"
	timeout "${limit:-200}" "${server_run[@]}" "$perf" "${eal[@]}" --file-prefix=server \
		"${server_eal[@]}" -- -p $port -L "$lanes" "$@" \
		</dev/null >"$dir/server.out" 2>"$dir/server.err" &
	server_pid=$!
	[[ "${server_eal[*]}" != *af_packet* || "${client_eal[*]}" != *af_packet* ]] || apart
}

# apart: net_af_packet makes the number of its fanout group of those of its process and of its
# interface, by XOR. Two processes in one namespace whose numbers are neighbours may get the same
# one, and the second fails. At this distance they can't.
apart() {
	local i
	for ((i = 0; i < 64; i++)); do (:); done
}

# server_waits: until it waits for its client.
server_waits() {
	wait_for 60 says "$dir/server.err" 'waiting for a client' 'weft-perf: '
	says "$dir/server.err" 'waiting for a client' || { cat "$dir/server.err"; return 1; }
}

# server LANES ARGS...: the same, until it waits for its client.
server() {
	begin_server "$@" && server_waits
}

# client LANES ARGS...: to its end.
client() {
	local lanes=$1
	shift
	timeout "${limit:-200}" "${client_run[@]}" "$perf" "${eal[@]}" --file-prefix=client \
		"${client_eal[@]}" -- -p $port -W 60 -L "$lanes" "$@" "$host" \
		</dev/null >"$dir/client.out" 2>"$dir/client.err"
}

# perf_pair SERVER_LANES CLIENT_LANES CLIENT_ARGS...: a run that must end well at both ends.
perf_pair() {
	local lanes=$2 rc=0
	begin_server "$1"
	shift 2
	client "$lanes" "$@" || rc=$?
	# A client that did not come so far is not waited for.
	[ $rc = 0 ] || grep -q 'client of' "$dir/client.out" || kill "$server_pid" 2>/dev/null
	wait "$server_pid" || { echo "the server's exit code is $?"; cat "$dir/server.err"; rc=1; }
	[ $rc = 0 ] || {
		echo "the client's exit code is $rc"
		tail -n 15 "$dir/client.err" "$dir/client.out"
	}
	return $rc
}

# cat_end END LANES ARGS...: weft-cat, END is server or client; at the end it compares number and
# CRC of all bytes. What arrives is not kept.
cat_end() {
	local end=$1 lanes=$2
	local -n end_eal=$1_eal
	shift 2
	timeout "${limit:-200}" "$build/app/weft-cat" "${eal[@]}" --file-prefix="$end" \
		"${end_eal[@]}" -- -p "$port" -s -L "$lanes" "$@" >/dev/null 2>"$dir/$end.err"
}

# cell NAME: sets at, where the client's CSV has it; 1 when it has no such column.
cell() {
	local i names
	IFS=, read -ra names <"$dir/client.out"
	for i in "${!names[@]}"; do
		at=$i
		[ "${names[i]}" != "$1" ] || return 0
	done
	return 1
}

# column NAME [TEST]: the value in the last line of the client's CSV, or in the last of a test.
column() {
	local at wanted named value='' cells
	cell "$1" && wanted=$at && cell test && named=$at || return
	while IFS=, read -ra cells; do
		[ -n "${2:-}" ] && [ "${cells[named]}" != "$2" ] || value=${cells[wanted]}
	done <"$dir/client.out"
	echo "$value"
}

# all_right TEST COUNT: the client's CSV has so many rows of the test, and no byte was wrong.
all_right() {
	local at wrong named rows=0 bad=0 cells
	cell wrong && wrong=$at && cell test && named=$at || return
	while IFS=, read -ra cells; do
		[ "${cells[named]}" = "$1" ] || continue
		rows=$((rows + 1))
		[ "${cells[wrong]}" = 0 ] || bad=$((bad + 1))
	done <"$dir/client.out"
	echo "$1: $rows rows, wrong in $bad"
	[ $rows = "$2" ] && [ $bad = 0 ]
}

# share LANE [TEST]: percent of the bytes that went over it, of the client's last row (of that
# test).
share() {
	local lanes
	lanes=";$(column lanes "${2:-}")"
	[[ $lanes == *";$1="* ]] || { echo "no lane $1 in '$lanes'" >&2; return 1; }
	lanes=${lanes#*";$1="}
	echo "${lanes%%[.%]*}"
}

# never_empty DEVICE...: no receiver was ever not ready; credits see to that. Not for many reads in
# a guest short of memory: rdma_rxe says the same when it has no buffer for the answer to a read.
never_empty() {
	local device name value
	for device; do
		for name in send_rnr_err rcvd_rnr_err retry_rnr_exceeded_err; do
			value=$(counter "$device" $name)
			[ "$value" = 0 ] || { echo "$device: $name is $value"; return 1; }
		done
	done
}

# no_storms DEVICE...: requests sent again are few beside the packets. Some there may be, for the
# machine is emulated and stops now and then for longer than the time-out of 268 ms. A queue pair
# that fails in the middle of a run needs no counter: it is the run's exit code.
no_storms() {
	local device value sent
	for device; do
		value=$(counter "$device" completer_retry_err)
		sent=$(counter "$device" sent_pkts)
		echo "$device: $value retries, $(counter \
			"$device" retry_exceeded_err) of them given up, $sent packets"
		[ "$value" -le $((20 + sent / 10)) ] || return 1
	done
}

quiet_counters() { never_empty "$@" && no_storms "$@"; }
