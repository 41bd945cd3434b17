#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A program with more rights than its user takes no file, module or EAL argument from the
# environment.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || { echo "needs root, to make a program with set-user-id"; exit 77; }
[ -x "$build/test/proc/proc_secure" ] || { echo "there is no DPDK in this build"; exit 77; }

# A folder that other users reach and cannot write to: the EAL takes modules from no other. lib.sh
# removes it.
rm -rf "$dir"
dir=$(mktemp -d /var/lib/weft-proc.XXXXXX) || exit 77
chmod 755 "$dir"
cp "$build/test/proc/proc_secure" "$dir/plain"
cp "$build/test/proc/proc_secure" "$dir/raised"
cp "$build/test/proc/libproc_secure_module.so" "$dir/module.so"
chmod 755 "$dir/plain" "$dir/module.so"
chmod 4755 "$dir/raised"
eal="--no-huge -m 64 --no-pci --no-telemetry -d $dir/module.so"

# as_user PROGRAM [VARIABLE=VALUE...]
as_user() {
	local program=$1
	shift
	(cd / && timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups \
		env "$@" "$dir/$program" "${arguments[@]}" 2>&1)
}
arguments=()

[ "$(as_user raised | grep -c 'worker: ')" = 1 ] ||
	{ echo "files with set-user-id do not run in this folder"; exit 77; }

# Without more rights the variables work, so the cases below can fail.
control() {
	as_user plain WEFT_EAL_ARGS="$eal" | tee "$dir/out"
	grep -q 'module runs as user 65534' "$dir/out"
}

module() {
	as_user raised WEFT_EAL_ARGS="$eal" | tee "$dir/out"
	! grep -q 'module runs' "$dir/out" &&
		grep -q 'WEFT_EAL_ARGS is ignored: this program has more rights' "$dir/out"
}

# file VARIABLE [SUFFIX]: a file of root keeps its content, and no file is made.
file() {
	echo mine >"$dir/file"
	chmod 600 "$dir/file"
	mkdir -p "$dir/empty"
	as_user raised "$1=$dir/file$2" "WEFT_LANES=shm" | tee "$dir/out"
	as_user raised "$1=$dir/empty/new$2" "WEFT_LANES=shm" >/dev/null
	[ "$(cat "$dir/file")" = mine ] && [ -z "$(ls "$dir/empty")" ] &&
		grep -q "$1 is ignored" "$dir/out"
}

# More variables than a log limit has lines: each one is reported.
each_is_reported() {
	local name names="CONFIG EAL_ARGS PORTS DUMPCAP SWITCH LOG_FILE CAPTURE RECORDER_FILE"
	# shellcheck disable=SC2086 # one word each
	as_user raised $(printf 'WEFT_%s=/nowhere ' $names) WEFT_LANES=shm | tee "$dir/out"
	for name in $names; do
		grep -q "WEFT_$name is ignored" "$dir/out" || return 1
	done
}

# A file that the user names or has in its home sets nothing. Control: for the user itself it does.
configuration_file() {
	local program
	mkdir -p "$dir/home/.config" "$dir/made"
	echo "WEFT_LOG_FILE=$dir/made/%p" >"$dir/home/.config/weft.conf"
	cp "$dir/home/.config/weft.conf" "$dir/named.conf"
	chmod 755 "$dir/home" "$dir/home/.config"
	chmod 644 "$dir/home/.config/weft.conf" "$dir/named.conf"
	chmod 777 "$dir/made"
	for program in plain raised; do
		rm -f "$dir"/made/*
		as_user $program WEFT_LANES=shm WEFT_CONFIG= HOME="$dir/home"
		as_user $program WEFT_LANES=shm WEFT_CONFIG="$dir/named.conf" HOME=/
		find "$dir/made" -type f | wc -l >"$dir/$program.made"
	done
	[ "$(cat "$dir/plain.made")" = 2 ] && [ "$(cat "$dir/raised.made")" = 0 ]
}

# The EAL makes its files in XDG_RUNTIME_DIR, with the program's rights.
runtime_folder() {
	local program
	arguments=(set "--no-huge -m 64 --no-pci --vdev=net_null0")
	for program in plain raised; do
		rm -rf "$dir/$program.runtime"
		mkdir -m 777 "$dir/$program.runtime"
		as_user $program XDG_RUNTIME_DIR="$dir/$program.runtime"
		ls -la "$dir/$program.runtime"
	done
	arguments=()
	[ -d "$dir/plain.runtime/dpdk" ] && [ -z "$(ls "$dir/raised.runtime")" ]
}

# The user expects sealed frames: plain ones only by the user's own word.
job_key() {
	local why="WEFT_JOB_KEY is set, and a program with more rights"
	head -c 32 /dev/urandom >"$dir/key"
	chown 65534 "$dir/key"
	chmod 600 "$dir/key"
	as_user plain WEFT_JOB_KEY="$dir/key" WEFT_LANES=shm | tee "$dir/out"
	grep -qE 'worker: success|can.t seal frames' "$dir/out" || return 1
	as_user raised WEFT_JOB_KEY="$dir/key" WEFT_LANES=shm | tee "$dir/out"
	grep -q "$why" "$dir/out" && ! grep -q 'worker: success' "$dir/out" || return 1
	as_user raised WEFT_JOB_KEY="$dir/key" WEFT_SEAL=off WEFT_LANES=shm | tee "$dir/out"
	grep -q 'WEFT_JOB_KEY is ignored' "$dir/out" || return 1
	grep -q 'worker: success' "$dir/out" || return 1
	as_user raised WEFT_JOB_KEY= WEFT_LANES=shm | grep -q 'worker: success'
}

eal_arguments() {
	# shellcheck disable=SC2206 # one word each
	arguments=($eal)
	as_user plain | tee "$dir/out"
	grep -q 'module runs as user 65534' "$dir/out" || return 1
	as_user raised | tee "$dir/out"
	arguments=()
	! grep -q 'module runs' "$dir/out" && grep -q 'arguments for the EAL are refused' "$dir/out"
}

check "control: WEFT_EAL_ARGS loads a module for the user itself" control
# @behaviour S20: a program with more rights than its user takes no file, module or EAL argument
# from the environment
check "WEFT_EAL_ARGS loads no module with the program's rights" module
# @behaviour S20
check "WEFT_CAPTURE writes no file with the program's rights" file WEFT_CAPTURE
# @behaviour S20
check "WEFT_LOG_FILE writes no file with the program's rights" file WEFT_LOG_FILE
# @behaviour S20
check "WEFT_RECORDER_FILE names no file" file WEFT_RECORDER_FILE
check "each ignored variable is reported" each_is_reported
check "the user's configuration files set nothing" configuration_file
# @behaviour S20
check "XDG_RUNTIME_DIR does not choose the EAL's folder" runtime_folder
check "without its user's job key it sends no plain frames" job_key
# @behaviour S20
check "Weft's programs refuse EAL arguments" eal_arguments
tap_end
