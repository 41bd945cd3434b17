# SPDX-License-Identifier: BSD-3-Clause
# Each kind of NIC opens, and has its link after a moment.
. "$(dirname "$0")/../nic.sh"

kinds=(virtio0 e1000e0 82545em0 vmxnet3-0)
! has_nic igb0 || kinds+=(igb0)
give "${kinds[@]}" && allow "${kinds[@]}" && lanes "${kinds[@]}" || exit
"$info" "${eal[@]}" "${allowed[@]}" -- -d -L "$list" >"$dir/info" 2>"$dir/err"
rc=$?
cat "$dir/info" "$dir/err" >&2

# opened NAME: with the MTU that it starts with.
opened() {
	nic "$1" || return
	# The paragraph of its lane.
	awk -v device="$address" \
		'function tell() { if (mine) printf "%s", text; text = ""; mine = 0 }
		/^[^ ]/ { tell() }
		{ text = text $0 "\n" }
		$1 == "device" && $2 == device { mine = 1 }
		END { tell() }' "$dir/info" >"$dir/lane"
	cat "$dir/lane"
	[ -s "$dir/lane" ] || { cat "$dir/err"; return 1; }
}

has_link() {
	opened "$1" || return
	case $1 in
	# Their link comes a second or two after the start, and is waited for.
	e1000e* | 82545em*) grep -qE '^ *link +up after [0-9.]+ s' "$dir/lane" ;;
	*) grep -qiE '^ *link +up' "$dir/lane" ;;
	esac
}

check "weft-info ends well" test $rc = 0
for name in "${kinds[@]}"; do
	check "$name opens" opened "$name"
	check "$name has its link" has_link "$name"
done
tap_end
