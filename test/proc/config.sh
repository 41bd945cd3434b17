#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Configuration files: which ones a program reads, their precedence, the origins that weft-info
# prints, and files that must not stop a program.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

unset WEFT_CONFIG XDG_CONFIG_HOME
export HOME=$dir/home
user=$HOME/.config/weft.conf
mkdir -p "$HOME/.config"

# A real /etc/weft.conf, in a mount namespace where a copy of /etc takes its place.
system=no
if [ "$(id -u)" = 0 ] && cp -a /etc "$dir/etc" 2>/dev/null &&
	unshare -m mount --bind "$dir/etc" /etc 2>/dev/null; then
	system=yes
	rm -f "$dir/etc/weft.conf"
fi

# run COMMAND...: sees the /etc of this test. Output in $dir/out, messages in $dir/err.
run() {
	local rc=0
	if [ $system = yes ]; then
		# shellcheck disable=SC2016 # the inner shell expands them
		timeout 60 unshare -m sh -c 'mount --bind "$0" /etc && exec "$@"' "$dir/etc" "$@" \
			>"$dir/out" 2>"$dir/err" </dev/null || rc=$?
	else
		timeout 60 "$@" >"$dir/out" 2>"$dir/err" </dev/null || rc=$?
	fi
	cat "$dir/out" "$dir/err"
	return $rc
}

# prints LINE...: these lines are the whole output of weft-info -C, and there is no message.
prints() {
	printf '%s\n' "$@" | cmp - "$dir/out" && [ ! -s "$dir/err" ]
}

precedence() {
	echo 'WEFT_PATHS=2' >"$dir/named.conf"
	printf '%s\n' 'WEFT_PATHS=3' 'WEFT_UDP_PORT=1003' >"$user"
	run env WEFT_CONFIG="$dir/named.conf" WEFT_CSUM=udp "$info" -C -S MIN_LANES=2 || return 1
	prints "WEFT_CONFIG=$dir/named.conf  # environment" "WEFT_MIN_LANES=2  # program" \
		"WEFT_UDP_PORT=1003  # $user:2" "WEFT_PATHS=2  # $dir/named.conf:1" \
		"WEFT_CSUM=udp  # environment"
}

of_system() {
	printf '%s\n' 'WEFT_PATHS=4' 'WEFT_RX_BUFS=400' >"$dir/etc/weft.conf"
	echo 'WEFT_PATHS=3' >"$user"
	run "$info" -C && prints "WEFT_PATHS=3  # $user:1" "WEFT_RX_BUFS=400  # /etc/weft.conf:2"
	local rc=$?
	rm -f "$dir/etc/weft.conf"
	return $rc
}

xdg() {
	mkdir -p "$dir/xdg"
	echo 'WEFT_PATHS=5' >"$dir/xdg/weft.conf"
	run env XDG_CONFIG_HOME="$dir/xdg" "$info" -C &&
		prints "WEFT_PATHS=5  # $dir/xdg/weft.conf:1"
}

off() {
	echo 'WEFT_PATHS=nonsense' >"$user"
	run env WEFT_CONFIG=off "$info" -C && prints "WEFT_CONFIG=off  # environment"
}

# What weft-info prints is a file.
round_trip() {
	rm -f "$user"
	run env WEFT_EAL_ARGS="it's  #1" "$info" -c -A || return 1
	cp "$dir/out" "$user"
	chmod 644 "$user"
	run "$info" -C && prints "WEFT_EAL_ARGS='it'\\''s  #1'  # $user:$(
		grep -n ^WEFT_EAL_ARGS "$user" | cut -d: -f1)"
}

malformed() {
	printf '%s\n' '' 'WEFT_PEER_TIMEOUT=soon' >"$user"
	run "$info" -C
	[ $? = 2 ] && grep -q "error: $user:2: WEFT_PEER_TIMEOUT=soon is not understood" "$dir/err"
}

unknown() {
	printf '%s\n' 'WEFT_PEER_TIMEOT=1s' 'WEFT_PATHS=3' >"$user"
	run "$info" -C && grep -q "warning: $user:1: unknown variable WEFT_PEER_TIMEOT" \
		"$dir/err" && grep -q "^WEFT_PATHS=3" "$dir/out"
}

removed() {
	rm -f "$user"
	run env WEFT_ZCOPY_THRESH=1 "$info" -C || return 1
	[ ! -s "$dir/out" ] && [ "$(wc -l <"$dir/err")" = 1 ] &&
		grep -q "WEFT_ZCOPY_THRESH has no effect since Weft 0.2.0: .*WEFT_ZCOPY=n" \
			"$dir/err"
}

# hostile REASON: the user's file is ignored with this warning; as WEFT_CONFIG it is an error.
hostile() {
	run "$info" -C || return 1
	[ ! -s "$dir/out" ] && grep -q "warning: the configuration file $user is ignored: $1" \
		"$dir/err" || return 1
	run env WEFT_CONFIG="$user" HOME=/nonexistent "$info" -C
	[ $? = 2 ] && grep -q "error: WEFT_CONFIG=$user can't be used: $1" "$dir/err"
}

fifo() {
	rm -f "$user"
	mkfifo "$user"
	hostile "it is not a regular file"
}

folder() {
	rm -f "$user"
	mkdir "$user"
	hostile "it is not a regular file" || return 1
	rmdir "$user"
}

large() {
	truncate -s 1G "$user"
	hostile "it is longer than 64 KiB"
}

zeros() {
	rm -f "$user"
	printf 'WEFT_PATHS=3\nWEFT_\0PATHS=4' >"$user"
	hostile "it is not a text file: line 2 has a zero byte"
}

writable() {
	rm -f "$user"
	echo 'WEFT_PATHS=3' >"$user"
	chmod 666 "$user"
	hostile "other users can write it; remedy: chmod go-w"
}

link_of_other() {
	rm -f "$user"
	echo 'WEFT_PATHS=3' >"$dir/target"
	ln -s "$dir/target" "$user"
	run "$info" -C && grep -q "^WEFT_PATHS=3" "$dir/out" || return 1
	chown -h 65534 "$user"
	hostile "it is a symbolic link of another user"
}

no_newline() {
	rm -f "$user"
	printf 'WEFT_PATHS=3' >"$user"
	run "$info" -C && prints "WEFT_PATHS=3  # $user:1"
}

check "default, user's file, WEFT_CONFIG, environment, program" precedence
if [ $system = yes ]; then
	check "/etc/weft.conf comes before the user's file" of_system
else
	skip "/etc/weft.conf comes before the user's file" "needs root and a mount namespace"
fi
check "XDG_CONFIG_HOME replaces ~/.config" xdg
check "WEFT_CONFIG=off reads no file" off
check "the output of weft-info -c is a file" round_trip
check "a malformed value in a file: an error with file and line" malformed
check "an unknown variable in a file: a warning with file and line" unknown
check "a removed variable causes one warning" removed
check "a FIFO is ignored" fifo
check "a folder is ignored" folder
check "a file of 1 GB is ignored" large
check "a file with zero bytes is ignored" zeros
check "a file that others can write is ignored" writable
if [ "$(id -u)" = 0 ]; then
	check "a symbolic link of another user is ignored" link_of_other
else
	skip "a symbolic link of another user is ignored" "needs root"
fi
check "a last line without an end is read" no_newline
tap_end
