#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs a command of this tree in a Debian with only its base system, like a new machine.
#
#	devtools/fresh.sh [--new] [--outside] SUITE COMMAND [ARGUMENT...]
#
#	SUITE	bookworm (Debian 12), trixie (13), ...; for example
#		devtools/fresh.sh trixie devtools/test.sh
#
# debootstrap makes the base system once, from the mirror that this machine's apt uses; --new makes
# it again. Each run has an overlay over it (a copy where the kernel has no overlays) with a clone
# of the committed tree, which is the command's working directory. The run shares this machine's
# kernel, network, /dev and hugepages. When the run ends or is interrupted, its processes, mounts
# and files are removed; the next run removes those of a killed run. The exit code is the command's.
# With --outside the command runs on this machine, in the same clone, and FRESH_ROOT is the
# root folder of the new system: autopkgtest enters a system itself.
#
# WEFT_FRESH_DIR: the folder of systems and packages (default /var/cache/weft-fresh).
# WEFT_FRESH_MIRROR: another mirror. WEFT_FRESH_LIMIT: seconds a command may take (default 7200).
# WEFT_FRESH_KEEP=1 keeps the run's files, and prints their folder.
set -euo pipefail

# In a mount namespace of its own mounts end with the last process, and no other process has them.
if [ -z "${WEFT_FRESH_INSIDE:-}" ] && [ "$(id -u)" = 0 ]; then
	WEFT_FRESH_INSIDE=1 exec unshare --mount --propagation private "${BASH_SOURCE[0]}" "$@"
fi

# shellcheck source=devtools/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

cache=${WEFT_FRESH_DIR:-/var/cache/weft-fresh}
limit=${WEFT_FRESH_LIMIT:-7200}
new=
outside=
run=
child=

# make_base SUITE: $cache/base/SUITE, once.
make_base() {
	local suite=$1 base=$cache/base/$1 log=$cache/$1.log source
	mkdir -p "$cache/base"
	exec 8>"$cache/base/$suite.lock"
	flock 8
	[ -z "$new" ] || rm -rf "$base"
	if [ ! -d "$base" ]; then
		weft_say "$suite: the base system, by debootstrap"
		rm -rf "$base.new"
		source=$(weft_mirror)
		# shellcheck disable=SC2086 # an empty one is debootstrap's own
		setpriv --pdeathsig TERM timeout -k 10 "$limit" \
			debootstrap --variant=minbase "$suite" "$base.new" $source \
			>"$log" 2>&1 </dev/null 8>&- &
		child=$!
		if ! wait $child; then
			child=
			tail -n 5 "$log" >&2
			rm -rf "$base.new"
			weft_die "debootstrap could not make $suite; its log is $log"
		fi
		child=
		prepare_base "$base.new"
		mv "$base.new" "$base"
	fi
	exec 8>&-
}

# prepare_base ROOT: sets this machine's apt options for the mirror; no daemon starts in the base;
# dpkg does not wait for the disk, since no run outlives the machine.
prepare_base() {
	apt-config dump Acquire | grep -iE '^Acquire::(https?|Check)' \
		>"$1/etc/apt/apt.conf.d/90machine" || true
	echo force-unsafe-io >"$1/etc/dpkg/dpkg.cfg.d/90machine"
	# Translated descriptions are as much as the list of packages.
	echo 'Acquire::Languages "none";' >>"$1/etc/apt/apt.conf.d/90machine"
	printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
	chmod 755 "$1/usr/sbin/policy-rc.d"
}

# kill_all NAME: ends every process whose root is the run of this name; the roots of other systems
# do not have the file with its name.
kill_all() {
	local name=$1 try pid left
	for try in 1 2 3 4 5 6 7 8 9 10; do
		left=
		for pid in /proc/[0-9]*; do
			if [ "$(cat "$pid/root/.weft-fresh" 2>/dev/null)" = "$name" ]; then
				kill -KILL "${pid#/proc/}" 2>/dev/null || true
				left=1
			fi
		done
		[ -n "$left" ] || return 0
		sleep 0.$try
	done
}

# remove RUN: its processes, mounts and files.
remove() {
	local dir=$1 at
	kill_all "${dir##*/}"
	for at in dev sys proc run .; do
		umount -l "$dir/root/$at" 2>/dev/null || true
	done
	if grep -q " $dir/root" /proc/self/mountinfo; then
		weft_say "$dir is still mounted, and is not removed"
	else
		rm -rf --one-file-system "$dir"
	fi
}

# sweep: removes the files of killed runs. A live run holds its lock.
sweep() {
	local dir
	for dir in "$cache"/run/*; do
		if [ ! -f "$dir/lock" ] || [ -f "$dir/keep" ]; then
			continue
		fi
		exec 8<"$dir/lock"
		if flock -n 8; then
			remove "$dir"
		fi
		exec 8<&-
	done
}

# save_packages SUITE: keeps downloaded packages for the next run.
# shellcheck disable=SC2317
save_packages() {
	mkdir -p "$cache/deb/$1"
	cp -nl "$run"/packages/*.deb "$cache/deb/$1/" 2>/dev/null || true
}

# shellcheck disable=SC2317 # a trap calls it
end_child() {
	local try
	trap '' INT TERM HUP
	# SIGTERM comes first, so that tests can undo their changes of this machine's network. It is
	# for the group, too: timeout forwards none that arrives just after its fork().
	for try in $child $child $child $child $child $child; do
		kill -TERM -- "-$try" 2>/dev/null || kill -TERM "$try" 2>/dev/null || break
		sleep 0.5
	done
}

# shellcheck disable=SC2317 # a trap calls it
cleanup() {
	end_child
	save_packages "$suite"
	if [ -n "${WEFT_FRESH_KEEP:-}" ]; then
		kill_all "${run##*/}"
		: >"$run/keep"
		weft_say "the run's files stay in $run; remove them when you no longer need them"
	else
		remove "$run"
	fi
}

# mount_root SUITE: $run/root, the system of this run.
mount_root() {
	local base=$cache/base/$1 root=$run/root at
	mkdir "$root" "$run/upper" "$run/work"
	if ! mount -t overlay overlay -o "lowerdir=$base,upperdir=$run/upper,workdir=$run/work" \
		"$root" 2>/dev/null; then
		weft_say "no overlay can be mounted here: the base system is copied"
		cp -a --reflink=auto "$base/." "$root/"
		mount --bind "$root" "$root"
	fi
	printf '%s\n' "${run##*/}" >"$root/.weft-fresh"
	for at in proc sys dev; do
		mount --rbind "/$at" "$root/$at"
	done
	mount -t tmpfs -o mode=755 tmpfs "$root/run"
	# Host names are resolved as on this machine.
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
	mkdir "$run/packages"
	cp -l "$cache/deb/$1"/*.deb "$run/packages/" 2>/dev/null || true
	mkdir -p "$run/packages/partial"
	mount --bind "$run/packages" "$root/var/cache/apt/archives"
}

# clone_tree: the committed tree, as from a server.
clone_tree() {
	local changed
	changed=$(git -C "$weft_root" status --porcelain -uno | wc -l)
	[ "$changed" = 0 ] ||
		weft_say "$changed changed files are not committed, and not in the clone"
	git clone -q --depth 1 "file://$weft_root" "$run/root/root/weft"
}

while [ $# -gt 0 ]; do
	case $1 in
	--new) new=1 ;;
	--outside) outside=1 ;;
	-h | --help) sed -n '4,/^$\|^[^#]/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
	-*) weft_die "no option '$1'; see --help" ;;
	*) break ;;
	esac
	shift
done
[ $# -ge 2 ] || weft_die "a suite of Debian and a command are needed; see --help"
[[ $1 =~ ^[a-z]+$ ]] || weft_die "'$1' is no suite of Debian's; bookworm and trixie are"
[[ $limit =~ ^[1-9][0-9]*$ ]] || weft_die "WEFT_FRESH_LIMIT=$limit is no number of seconds"
[ "$(id -u)" = 0 ] || weft_die "only root can make and enter another system"
suite=$1
shift

weft_install fresh
trap end_child EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
make_base "$suite"
mkdir -p "$cache/run"
# No other script sweeps while a run has its folder and not yet its lock.
exec 7>"$cache/lock"
flock 7
sweep
run=$(mktemp -d "$cache/run/$suite.XXXXXX")
exec 9>"$run/lock"
flock 9
exec 7>&-
trap cleanup EXIT
mount_root "$suite"
clone_tree

weft_say "$suite: $*"
begin=$SECONDS
rc=0
# The command ends with this script, and this script with the command. A terminal belongs to the
# foreground process group.
front=
[ ! -t 0 ] || front=--foreground
enter=(chroot "$run/root" sh -c 'cd /root/weft && exec "$@"' sh)
[ -z "$outside" ] || enter=(env "FRESH_ROOT=$run/root" --chdir="$run/root/root/weft")
env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
	TERM="${TERM:-dumb}" \
	setpriv --pdeathsig TERM timeout $front -k 10 "$limit" "${enter[@]}" "$@" <&0 9>&- &
child=$!
wait $child || rc=$?
child=
[ $rc != 124 ] || weft_say "$suite: ended after $limit s, WEFT_FRESH_LIMIT"
weft_say "$suite: exit code $rc after $((SECONDS - begin)) s"
exit $rc
