#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weft-info --show paths: two real processes over UDP sockets, through a program that delays and
# drops their frames. Each change of the network changes what the line reports.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/proc/netns.sh
. "$(dirname "$0")/netns.sh"

if [ ! -e /dev/net/tun ] || ! command -v python3 >/dev/null; then
	echo "this needs /dev/net/tun and python3"
	exit 77
fi

# box LINE: changes the network; returns when the change is in force.
box() {
	echo "$1" >&8
	until_said "$dir/box.out" "^set $1\$" "$box_pid"
}

start_box() {
	local i
	mkfifo "$dir/box.in"
	python3 "$(dirname "$0")/udp_box.py" "${ns[0]}" "${ns[1]}" far 0 0 0 \
		<"$dir/box.in" >"$dir/box.out" 2>"$dir/box.err" &
	box_pid=$!
	exec 8>"$dir/box.in"
	until_said "$dir/box.out" ready $box_pid || return 1
	for i in 0 1; do
		ip -n "${ns[$i]}" addr add "10.99.8.$((i + 1))/24" dev far &&
			ip -n "${ns[$i]}" link set far up || return 1
	done
}

# path FIELD: of the client's path 0: base, now, noise or target in whole microseconds, all four of
# them, or cut. The words before each number are those that the user reads.
path() {
	"$info" --show paths --pid "$client" >"$dir/show" || return 1
	awk -v field="$1" '
		BEGIN {
			n = "[0-9.]+"
			text = "base " n " us, now " n ", noise " n ", target " n ", last cut by .*"
		}
		/path0/ && match($0, text) {
			line = substr($0, RSTART, RLENGTH)
			split(line, part, ", ")
			for (i = 1; i <= 4; i++) {
				split(part[i], word, " ")
				value[word[1]] = int(word[2])
			}
			sub(/.*last cut by /, "", line)
			sub(/["[:space:]]*$/, "", line)
			value["cut"] = line
			value["all"] = value["base"] " " value["now"] " " value["noise"]
			value["all"] = value["all"] " " value["target"]
		}
		END { print field in value ? value[field] : "-" }' "$dir/show"
}

# until_path FIELD is|least VALUE: for 30 s on a quiet machine.
until_path() {
	local i most got
	most=$(stretch 300 900)
	for ((i = 0; i < most; i++)); do
		got=$(path "$1") || return 1
		case $2 in
		is) [ "$got" != "$3" ] || return 0 ;;
		least) [ "$got" = - ] || [ "$got" -lt "$3" ] || return 0 ;;
		esac
		sleep 0.1
	done
	echo "$1 is $got, expected: $2 $3"
	cat "$dir/show"
	return 1
}

start_far_stream() {
	free_port
	eal_server=()
	eal_client=()
	lanes="udp:far,paths=1"
	start_box || { cat "$dir/box.err"; return 1; }
	box "delay 5 5" || return 1
	start_stream -b 16k || return 1
	client=$(program_pid "$(program_pid "$client_pid")")
}

# 5 ms each way: no round trip is shorter than 10 ms. The target is of the round trip: base, noise,
# and a queue of 16 us to 1 ms. It is of the last round's end, and the noise may be newer.
base_and_target() {
	local i most
	until_path base least 10000 || return 1
	most=$(stretch 100 300)
	for ((i = 0; i < most; i++)); do
		! target_range "$(path all)" || return 0
		sleep 0.1
	done
	cat "$dir/show"
	return 1
}

# target_range BASE NOW NOISE TARGET: of one line.
target_range() {
	local base now noise target
	read -r base now noise target <<<"$1"
	[ "$now" -ge 10000 ] && [ "$base" -lt 20000 ] &&
		[ "$target" -ge $((base + noise + 15)) ] &&
		[ "$target" -le $((base + noise + 1002)) ]
}

# The least round trip of 10 s is still the base.
delay_now() {
	box "delay 50 50" && until_path now least 100000 || return 1
	cat "$dir/show"
	[ "$(path base)" -lt 20000 ]
}

loss_without_queue() {
	box "delay 5 5" || return 1
	[ "$(path cut)" != "other loss" ] || { cat "$dir/show"; return 1; }
	box "loss 0.3" && until_path cut is "other loss"
}

# Some round trips succeed, so the connection survives.
heavy_loss() {
	box "loss 0.7" && until_path cut is timeouts
}

jitter() {
	local calm
	box "loss 0" || return 1
	calm=$(path noise)
	echo "noise before: $calm us"
	box "delay 5 60" && until_path noise least $((calm + 5000))
}

end_far_stream() {
	local rc=0
	box "delay 0 0" || return 1
	end_stream || rc=$?
	exec 8>&-
	wait "$box_pid"
	return $rc
}

# Both ends are captured while frames are lost. What weft-info prints at the end is kept. Frames are
# still in flight when the delay ends, so the last round trips are shorter.
captured() {
	rm -f "$dir/box.in"
	export WEFT_CAPTURE="$dir/cap-%p.pcapng,snaplen=128"
	start_far_stream || return 1
	unset WEFT_CAPTURE
	box "loss 0.02" && until_path base least 10000 || return 1
	sleep 2
	box "loss 0" && path all >"$dir/shown" && end_far_stream
}

states_and_losses() {
	captured || return 1
	"$build/app/weft-dump" --points "$dir/points" "$dir"/cap-*.pcapng &&
		"$build/app/weft-dump" --csv "$dir"/cap-*.pcapng >"$dir/lanes" || return 1
	python3 - "$dir/points" "$dir/lanes" "$dir/shown" <<-'END'
		import collections, csv, sys
		points = list(csv.DictReader(open(sys.argv[1])))
		lanes = list(csv.DictReader(open(sys.argv[2])))
		for what, field in ('lost', 'lost'), ('again', 'sent_again'):
		    assert sum(r['what'] == what for r in points) == \
		        sum(int(l[field]) for l in lanes) > 0, what
		values = collections.defaultdict(list)
		for r in points:
		    if r['value']:
		        values[r['what']].append(r['value'])
		print({what: (len(v), v[-3:]) for what, v in values.items()})
		base, _, noise, target = map(int, open(sys.argv[3]).read().split())
		whole = {what: [int(float('%.1f' % float(v))) for v in values[what]]
		         for what in ('base_us', 'noise_us', 'target_us', 'rtt_us', 'window_bytes')}
		assert all(len(v) >= 50 for v in whole.values())
		assert base in whole['base_us'], (base, whole['base_us'][-20:])
		assert min(whole['noise_us']) <= noise <= max(whole['noise_us'])
		assert min(whole['target_us']) <= target <= max(whole['target_us'])
		assert sorted(whole['rtt_us'])[len(whole['rtt_us']) // 4] >= 10000
		assert set(values['mode']) <= {'start', 'delay', 'share'}
	END
}

if start_far_stream >"$dir/start.log" 2>&1; then
	# @behaviour T49: `weft-info --show paths` prints base and current delay, noise, target
	# and the last cut of each path as the network has them
	check "base delay and target" base_and_target
	# @behaviour T49
	check "a longer delay is the current one, and not the base" delay_now
	# @behaviour T49
	check "30 % lost without a queue: the last cut is by other loss" loss_without_queue
	# @behaviour T49
	check "70 % lost: the last cut is by timeouts" heavy_loss
	# @behaviour T49
	check "jitter becomes noise" jitter
	check "every byte of the stream is right" end_far_stream
	if [ -x "$build/app/weft-dump" ]; then
		check "captures have the states of paths, and weft-dump each loss" states_and_losses
	fi
else
	sed "s/^/# /" "$dir/start.log"
	check "a stream through the box" false
fi
tap_end
