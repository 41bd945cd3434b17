#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weft-bind over a sysfs and a dpdk-devbind.py of the test's own: what it says, what it does, what
# it refuses.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
bind=$(dirname "$0")/../../devtools/weft-bind.py
nic=0000:00:06.0
at=$dir/sys/bus/pci/devices/$nic

# fake PROGRAM BODY: stands before the real one, and writes down how it was called.
mkdir -p "$dir/bin"
fake() {
	printf '#!/bin/bash\necho "%s $*" >>"%s/calls"\n%s\n' "$1" "$dir" "$2" >"$dir/bin/$1"
	chmod +x "$dir/bin/$1"
}
# shellcheck disable=SC2016
fake dpdk-devbind.py '[ "$1" != "${1#--bind=}" ] || exit 0
rm -f '"$dir"'/sys/bus/pci/devices/$2/driver
mkdir -p '"$dir"'/sys/bus/pci/drivers/${1#--bind=}
ln -s ../../drivers/${1#--bind=} '"$dir"'/sys/bus/pci/devices/$2/driver'
# shellcheck disable=SC2016
fake modprobe '[ "$1" != -R ] || echo virtio_pci'
# shellcheck disable=SC2016
fake modinfo \
	'[ "$1 $2" != "-F parm" ] || cat '"$dir"'/parm 2>/dev/null
[ "$1" != -n ] || { [ -e '"$dir"'/modules/$2 ] && echo there; }'
fake ip 'cat '"$dir"'/ip-$3 2>/dev/null; exit 0'
# shellcheck disable=SC2016
fake weft-info 'echo "  lane             dpdk:'$nic',ip=10.0.0.5/24,gw=10.0.0.1,mtu=9001"'

# machine DRIVER: a NIC with this driver, and nothing that could take it yet.
machine() {
	rm -rf "$dir/sys" "$dir/run" "$dir/modules" "$dir/parm" "$dir"/ip-* "$dir/calls"
	mkdir -p "$at/net/ens6" "$dir/sys/class/net" "$dir/sys/bus/pci/drivers/$1" \
		"$dir/sys/kernel/iommu_groups" "$dir/modules"
	ln -s "../../bus/pci/devices/$nic/net/ens6" "$dir/sys/class/net/ens6"
	ln -s "../.." "$at/net/ens6/device"
	ln -s "../../drivers/$1" "$at/driver"
	echo 0 >"$at/numa_node"
	mkdir -p "$dir/sys/devices/system/node/node0/hugepages/hugepages-2048kB"
	echo 0 >"$dir/sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages"
	head -c 64 /dev/zero >"$at/config"
}
iommu() { mkdir -p "$at/iommu_group" "$dir/sys/kernel/iommu_groups/1"; }
modules() { for module; do : >"$dir/modules/$module"; done; }
intx() { printf '\1' | dd of="$at/config" bs=1 seek=61 conv=notrunc 2>/dev/null; }
noiommu() {
	mkdir -p "$dir/sys/module/vfio/parameters" &&
		echo N >"$dir/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
}

# ends CODE ARGS...: weft-bind ends with this code.
ends() {
	local code=$1 rc=0
	shift
	PATH=$dir/bin:$PATH timeout 20 python3 "$bind" --root "$dir" "$@" >"$dir/client.out" \
		2>"$dir/client.err" </dev/null || rc=$?
	[ $rc = "$code" ] || {
		echo "exit code $rc, not $code"
		cat "$dir/client.out" "$dir/client.err"
		return 1
	}
}
out() {
	grep -qE -- "$1" "$dir/client.out" || { echo "no '$1' in:"
	cat "$dir/client.out"
	return 1
	}
}
refused() {
	grep -qE -- "^weft-bind: .*$1" "$dir/client.err" || { echo "no '$1' in:"
	cat "$dir/client.err"
	return 1
	}
}
driver_is() { [ "$(basename "$(readlink "$at/driver")")" = "$1" ]; }

says_first() {
	machine ena && iommu && modules vfio-pci && ends 2 ens6 && driver_is ena || return 1
	out "ens6 \($nic, driver ena\) will be taken from the kernel and given to vfio-pci: behind an IOMMU" &&
		out "lane +dpdk:$nic,ip=10.0.0.5/24,gw=10.0.0.1,mtu=9001" &&
			out "dpdk-devbind.py --bind=vfio-pci $nic" &&
		out "undo: weft-bind --undo $nic" && out "echo 512 > .*/node0/.*nr_hugepages" &&
			out "nothing was done: add --yes" &&
		! grep -qE "devbind|link set" "$dir/calls"
}
there_and_back() {
	machine ena && iommu && modules vfio-pci && ends 0 --yes ens6 && driver_is vfio-pci ||
		return 1
	grep -q "ip link set dev ens6 down" "$dir/calls" &&
		grep -q "modprobe vfio-pci" "$dir/calls" || return 1
	rm -rf "$at/net"
	ends 0 --yes $nic && out "is DPDK's already" && ends 0 --undo --yes $nic && driver_is ena &&
		out "ena's again" &&
		ends 0 --undo --yes $nic && out "is the kernel's"
}
without_record() {
	machine vfio-pci && ends 0 --undo --yes 00:06.0 && driver_is virtio_pci
}
without_iommu() {
	machine ena && modules vfio-pci && noiommu && ends 0 --yes ens6 && driver_is vfio-pci &&
		out "no-IOMMU mode" &&
		[ "$(cat "$dir/sys/module/vfio/parameters/enable_unsafe_noiommu_mode")" = Y ]
}
noiommu_of_a_module() {
	machine ena && modules vfio-pci &&
		echo "enable_unsafe_noiommu_mode:Enable UNSAFE" >"$dir/parm" && ends 2 ens6 &&
			out "enable_unsafe_noiommu_mode"
}
by_uio() {
	machine virtio-pci && modules vfio-pci uio_pci_generic && intx && ends 0 --yes ens6 &&
		driver_is uio_pci_generic
}
by_igb_uio() {
	machine ena && modules uio_pci_generic igb_uio && ends 0 --yes ens6 && driver_is igb_uio &&
		grep -q "modprobe igb_uio wc_activate=1" "$dir/calls"
}
by_nothing() {
	machine ena && modules vfio-pci uio_pci_generic && ends 1 --yes ens6 && driver_is ena &&
		refused "no driver of this kernel .*CONFIG_VFIO_NOIOMMU"
}
default_route() {
	machine ena && iommu && modules vfio-pci &&
		echo "default via 10.0.0.1 dev ens6 proto dhcp" >"$dir/ip-show" &&
			: >"$dir/ip-route" &&
		cp "$dir/ip-show" "$dir/ip-route" && ends 1 --yes ens6 && driver_is ena &&
			refused "default route goes over it.*--force" &&
		ends 0 --yes --force ens6 && driver_is vfio-pci &&
			out "WARNING: the machine's default route"
}
# DHCP gives the second NIC a default route, too, of a worse metric: it is not the machine's.
second_default_route() {
	machine ena && iommu && modules vfio-pci && : >"$dir/ip-show" &&
		printf 'default via 10.0.0.1 dev %s metric %s\n' ens5 100 ens6 200 \
			>"$dir/ip-route" &&
		ends 0 --yes ens6 && driver_is vfio-pci
}
ssh_comes_in() {
	machine ena && iommu && modules vfio-pci &&
		echo "2: ens6 inet 10.0.0.5/24 brd 10.0.0.255" >"$dir/ip-show" || return 1
	SSH_CONNECTION="192.0.2.9 51000 10.0.0.5 22" ends 1 --yes ens6 && driver_is ena &&
		refused "ssh connection comes in over it \(10.0.0.5\)"
}
bond_member() {
	machine ena && iommu && modules vfio-pci && mkdir -p "$dir/sys/class/net/bond0" &&
		ln -s ../../../../../../class/net/bond0 "$at/net/ens6/master" || return 1
	ends 1 --yes ens6 && refused "member of bond0"
}
bifurcated() {
	machine mlx5_core && ends 1 --yes ens6 && refused "must stay with mlx5_core: .*'dpdk:$nic'"
}
devbind_fails() {
	machine ena && iommu && modules vfio-pci && cp "$dir/bin/dpdk-devbind.py" "$dir/kept" ||
		return 1
	printf '#!/bin/bash\necho "Error: bind failed for %s"\nexit 1\n' $nic \
		>"$dir/bin/dpdk-devbind.py"
	ends 1 --yes ens6 && refused "devbind.py .*Error: bind failed"
	local rc=$?
	printf '#!/bin/bash\nexit 0\n' >"$dir/bin/dpdk-devbind.py"
	[ $rc = 0 ] && ends 1 --yes ens6 && refused "has ena and not vfio-pci"
	rc=$?
	cp "$dir/kept" "$dir/bin/dpdk-devbind.py"
	return $rc
}
strangers() {
	machine ena && ends 1 nosuch0 &&
		refused "neither a PCI address .* nor a network interface" && ends 1 0000:00:1f.7 &&
			refused "no PCI device" &&
		ends 1 ../ens6 && refused "neither" && mkdir -p "$dir/sys/class/net/veth9" &&
			ends 1 veth9 && refused "virtual interface" &&
		ends 2 && ends 2 --driver '../x y' ens6
}

check "what is about to be done is said, and nothing done without a yes" says_first
check "bound, and given back to the driver it had" there_and_back
check "given back to the driver that the kernel would choose, when nobody wrote it down" \
	without_record
check "without an IOMMU: no-IOMMU mode, said" without_iommu
check "no-IOMMU mode of a module that is not loaded yet" noiommu_of_a_module
check "without no-IOMMU mode: uio_pci_generic where the NIC has a legacy interrupt" by_uio
check "igb_uio where it is installed and nothing else will do" by_igb_uio
check "no driver will do: what to change is said" by_nothing
# The one that is named is not the one that counts.
second_interface() {
	machine ena && iommu && modules vfio-pci && mkdir -p "$at/net/ens6d1" &&
		ln -s "../../bus/pci/devices/$nic/net/ens6d1" "$dir/sys/class/net/ens6d1" &&
		: >"$dir/ip-show" && echo "default via 10.0.0.1 dev ens6d1" >"$dir/ip-route" &&
		ends 1 --yes ens6 && driver_is ena &&
			refused "ens6, ens6d1 .*default route goes over it \(ens6d1\)" &&
		ends 1 --yes $nic && ends 0 --yes --force ens6 && driver_is vfio-pci &&
			grep -q "link set dev ens6d1 down" "$dir/calls" &&
		grep -q "link set dev ens6 down" "$dir/calls"
}

check "every interface of the NIC is looked at" second_interface
check "the default route's interface is refused, --force takes it" default_route
check "a default route of a worse metric does not hold the interface" second_default_route
check "the interface of the ssh connection is refused" ssh_comes_in
check "a member of a bond is refused" bond_member
check "a NIC that DPDK drives beside the kernel is left to it" bifurcated
check "devbind's failure is shown, and silence is not taken for success" devbind_fails
check "names that are no NIC" strangers
tap_end
