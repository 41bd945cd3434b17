# SPDX-License-Identifier: BSD-3-Clause
#
# For tests over the kernel's network: namespaces of their own, veths between them. A test sources
# this after lib.sh; exits with 77 where that can't be had.
# shellcheck shell=bash disable=SC2034,SC2154 # used and set by the test and lib.sh

[ "$(id -u)" = 0 ] || { echo "network namespaces need root"; exit 77; }
command -v ip >/dev/null || { echo "ip(8) is not installed (iproute2)"; exit 77; }

ns=("weft-$$-a" "weft-$$-b" "weft-$$-r")
untidy() {
	local name
	for name in "${ns[@]}"; do ip netns del "$name" 2>/dev/null; done
	tidy
}
trap untidy EXIT
# shellcheck disable=SC2016 # for the inner shell
guard sh -c 'for name; do ip netns del "$name"; done' sh "${ns[@]}"
for name in "${ns[@]}"; do
	ip netns add "$name" 2>/dev/null || {
		echo "no network namespace can be made here"
		exit 77
	}
done

# link NAME MTU [ADDRESS PREFIX [SIDE SIDE]]: a veth of this name in both namespaces. The kernel
# reports that an end is up as much as a second after both ends are.
link() {
	local side sides=("${4:-0}" "${5:-1}") i n
	ip -n "${ns[${sides[0]}]}" link add name "$1" mtu "$2" type veth peer name "$1" mtu \
		"$2" netns "${ns[${sides[1]}]}" ||
		return 1
	for i in 0 1; do
		side=${sides[$i]}
		[ -z "${3:-}" ] || ip -n "${ns[$side]}" addr add "$3.$((i + 1))/24" dev "$1" ||
			return 1
		ip -n "${ns[$side]}" link set dev "$1" up || return 1
	done
	for i in 0 1; do
		for ((n = 0; n < 100; n++)); do
			ip -n "${ns[${sides[$i]}]}" -o link show dev "$1" | grep -q "state UP" &&
				break
			sleep 0.05
		done
	done
}

server_run=(ip netns exec "${ns[0]}")
client_run=(ip netns exec "${ns[1]}")
host=10.99.7.1

# A link for the programs' TCP connection.
link ctl 1500 10.99.7 >"$dir/ip.log" 2>&1 || {
	cat "$dir/ip.log"
	echo "no veth can be made here"
	exit 77
}

free_port() { port=$((20000 + RANDOM % 12000)); }
