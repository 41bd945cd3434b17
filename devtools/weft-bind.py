#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weft-bind: take a NIC from the kernel for DPDK, and give it back, by DPDK's own dpdk-devbind.py.

It prints its plan first, with the lane options that the kernel has now and loses by the binding,
and binds the NIC after a confirmation. It refuses a NIC over which this machine is reached.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys

PCI = re.compile(r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
# DPDK's drivers of these NICs work together with the kernel's.
BIFURCATED = ("mlx5_core", "mlx4_core", "mana")
DPDK_DRIVERS = ("vfio-pci", "uio_pci_generic", "igb_uio")
NOIOMMU = "module/vfio/parameters/enable_unsafe_noiommu_mode"


class Refused(Exception):
    """Ends the program with an error message."""


def say(text=""):
    print(text, flush=True)


def run(*command):
    """Output of a command; '' if the command fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def read(path):
    try:
        with open(path, encoding="ascii", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


def tool(name, package):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/bin")
    if not path:
        raise Refused(f"there is no {name} here: install it (Debian: apt-get install {package})")
    return path


class Nic:
    """One PCI function, by its address or by the name of its kernel interface."""

    def __init__(self, name, root):
        self.sys = os.path.join(root, "sys")
        self.state_dir = os.path.join(root, "run/weft-bind")
        self.interface = ""
        self.interfaces = []
        if PCI.match(name.lower()):
            self.pci = name.lower()
        elif re.match(r"^[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$", name.lower()):
            self.pci = "0000:" + name.lower()
        else:
            self.pci = self.pci_of(name)
        self.dir = f"{self.sys}/bus/pci/devices/{self.pci}"
        if not os.path.isdir(self.dir):
            raise Refused(f"there is no PCI device {self.pci} here; see lspci -D")
        self.driver = current_driver(self)
        # A function may have several interfaces (ports, or representors); binding removes all.
        self.interfaces = self.find_interfaces()
        if self.interface and self.interface not in self.interfaces:
            self.interfaces.insert(0, self.interface)
        if not self.interface and self.interfaces:
            self.interface = self.interfaces[0]

    def pci_of(self, name):
        where = f"{self.sys}/class/net/{name}"
        if "/" in name or name in ("", ".", "..") or not os.path.isdir(where):
            raise Refused(f"'{name}' is neither a PCI address (0000:00:06.0) nor a network "
                          f"interface here; see 'ip link' and "
                          "'weft-bind --status'")
        self.interface = name
        found = [p for p in os.path.realpath(where + "/device").split("/") if PCI.match(p)]
        if found:
            return found[-1]
        if os.path.exists(where + "/device"):
            raise Refused(f"{name} is not on PCI: on Azure's VMBus use driverctl, see "
                          f"doc/clouds.md")
        raise Refused(f"{name} is a virtual interface: there is no NIC to bind; "
                      f"--vdev=net_af_packet0,iface={name} uses it as it is")

    def find_interfaces(self):
        found = []
        for sub in ("/net",
                    *(f"/{d}/net" for d in sorted(os.listdir(self.dir)) if d.startswith("virtio"))):
            if os.path.isdir(self.dir + sub):
                found += sorted(os.listdir(self.dir + sub))
        return found

    def state(self):
        return os.path.join(self.state_dir, self.pci)

    def has_intx(self):
        try:
            with open(self.dir + "/config", "rb") as f:
                return f.read(64)[0x3D] != 0
        except (OSError, IndexError):
            return False

    def describe(self):
        names = ", ".join(self.interfaces) + " " if self.interfaces else ""
        driver = "driver " + self.driver if self.driver else "no driver"
        return f"{names}({self.pci}, {driver})"


def has_module(sys_dir, name):
    loaded = os.path.isdir(f"{sys_dir}/module/{name.replace('-', '_')}")
    return loaded or bool(run("modinfo", "-n", name))


def choose_driver(nic):
    """(driver, commands before binding, why)"""
    vfio = has_module(nic.sys, "vfio-pci")
    if vfio and os.path.exists(nic.dir + "/iommu_group") and \
            os.listdir(nic.sys + "/kernel/iommu_groups"):
        return "vfio-pci", [["modprobe", "vfio-pci"]], "behind an IOMMU"
    noiommu = os.path.exists(f"{nic.sys}/{NOIOMMU}") or \
        "enable_unsafe_noiommu_mode" in run("modinfo", "-F", "parm", "vfio")
    if vfio and noiommu:
        return ("vfio-pci", [["modprobe", "vfio-pci"], ["write", f"{nic.sys}/{NOIOMMU}", "Y"]],
                "without an IOMMU (no-IOMMU mode: the owner of the NIC can access all memory)")
    if has_module(nic.sys, "uio_pci_generic") and nic.has_intx():
        return ("uio_pci_generic", [["modprobe", "uio_pci_generic"]],
                "this kernel's vfio has no no-IOMMU mode and there is no IOMMU; the owner of the "
                "NIC can access all memory")
    if has_module(nic.sys, "igb_uio"):
        # ENA's low-latency queues are slow unless its memory is mapped write-combining.
        load = ["modprobe", "igb_uio"] + (["wc_activate=1"] if nic.driver == "ena" else [])
        return ("igb_uio", [load],
                "no IOMMU, no no-IOMMU mode, no legacy interrupt for uio_pci_generic")
    intx = "" if nic.has_intx() else ", the NIC has no legacy interrupt for uio_pci_generic"
    raise Refused(f"no driver of this kernel can give {nic.pci} to DPDK: there is no IOMMU for it, "
                  f"vfio has no no-IOMMU mode{intx}, and igb_uio is not installed: "
                  "use a kernel with CONFIG_VFIO_NOIOMMU, or install Debian's dpdk-kmods-dkms")


def default_over(name, routes):
    """Whether the default route with the lowest metric uses the interface. DHCP also gives further
    NICs a default route."""
    best = {}
    for line in routes.splitlines():
        device = re.search(r"(?<!\S)dev (\S+)", line)
        metric = re.search(r"(?<!\S)metric (\d+)", line)
        if device and line.startswith("default"):
            best.setdefault(int(metric.group(1)) if metric else 0, set()).add(device.group(1))
    return bool(best) and name in best[min(best)]


def in_the_way(nic):
    """The reasons for which this machine needs the NIC."""
    found = []
    for name in nic.interfaces:
        reasons = in_the_way_of(nic, name)
        several = len(nic.interfaces) > 1
        found += [f"{reason} ({name})" for reason in reasons] if several else reasons
    return found


def in_the_way_of(nic, name):
    found = []
    routes = ("route", "show", "default")
    if default_over(name, run("ip", "-o", *routes)) or \
            default_over(name, run("ip", "-o", "-6", *routes)):
        found.append("the machine's default route goes over it")
    # sudo removes SSH_CONNECTION, so the connections of the kernel are read, too.
    ssh = os.environ.get("SSH_CONNECTION", "").split()[2:3]
    for line in run("ss", "-Htn", "state", "established", "( sport = :22 )").splitlines():
        fields = line.split()
        if len(fields) > 2:
            host = fields[2].rsplit(":", 1)[0].split("%")[0].strip("[]")
            ssh.append(host.removeprefix("::ffff:"))
    own = re.findall(r"\binet6? ([^/\s]+)", run("ip", "-o", "address", "show", "dev", name))
    for address in sorted(set(ssh) & set(own)):
        found.append(f"an ssh connection comes in over it ({address})")
    net_dir = f"{nic.sys}/class/net/{name}"
    entries = os.listdir(net_dir) if os.path.isdir(net_dir) else []
    master_name = os.path.basename(os.path.realpath(f"{nic.sys}/class/net/{name}/master"))
    for up in sorted(e[6:] for e in entries if e.startswith("upper_")):
        if up != master_name:
            found.append(f"{up} uses it")
    master = os.path.realpath(f"{nic.sys}/class/net/{name}/master")
    if os.path.exists(f"{nic.sys}/class/net/{name}/master"):
        found.append(f"it is a member of {os.path.basename(master)}")
    return found


def hugepages_hint(nic):
    node = read(nic.dir + "/numa_node")
    node_dir = f"{nic.sys}/devices/system/node/node{node}/hugepages/hugepages-2048kB"
    where = f"{nic.sys}/kernel/mm/hugepages/hugepages-2048kB"
    if node.isdigit() and os.path.isdir(node_dir):
        where = node_dir
    free = read(where + "/free_hugepages")
    if not free.isdigit() or int(free) >= 64:
        return ""
    on_node = " on NUMA node " + node if where == node_dir else ""
    return f"hugepages: {free} of 2 MiB are free{on_node}; " \
        f"reserve some: echo 512 > {where}/nr_hugepages"


def lane_options(nic):
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "weft-info")
    info = beside if os.path.exists(beside) else shutil.which("weft-info")
    return "".join(run(info, "--lane-options", name) for name in nic.interfaces) if info else ""


def shown(command):
    if command[0] == "write":
        return f"echo {shlex.quote(command[2])} > {shlex.quote(command[1])}"
    return shlex.join(command)


def carry_out(commands):
    for command in commands:
        if command[0] == "write":
            try:
                with open(command[1], "w", encoding="ascii") as f:
                    f.write(command[2])
            except OSError as e:
                raise Refused(f"'{shown(command)}': {e.strerror}") from e
            continue
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False)
        except OSError as e:
            raise Refused(f"'{shown(command)}': {e.strerror}") from e
        if done.returncode:
            raise Refused(f"'{shown(command)}' failed: {done.stdout.strip() or done.returncode}")


def agreed(args, nic):
    if args.yes:
        return True
    if not sys.stdin.isatty():
        say(f"nothing was done: add --yes to do it ({nic.pci})")
        return False
    return input("do it? [y/N] ").strip().lower() in ("y", "yes")


def current_driver(nic):
    link = nic.dir + "/driver"
    return os.path.basename(os.path.realpath(link)) if os.path.exists(link) else ""


def bind(args, nic):
    if nic.driver in DPDK_DRIVERS:
        say(f"{nic.describe()} is DPDK's already; weft-bind --undo {nic.pci} returns it to the "
            f"kernel")
        return 0
    if nic.driver in BIFURCATED:
        raise Refused(f"{nic.describe()} must stay with {nic.driver}: DPDK's driver works with "
                      f"it; use the lane 'dpdk:{nic.pci}' and the EAL argument "
                      f"'-a {nic.pci}'")
    reasons = in_the_way(nic)
    if reasons and not args.force:
        raise Refused(f"{nic.describe()} is not bound: {', and '.join(reasons)}; use another NIC, "
                      f"or add --force on the machine's console")
    devbind = tool("dpdk-devbind.py", "dpdk")
    driver, commands, why = choose_driver(nic) if not args.driver else \
        (args.driver, [["modprobe", args.driver]], "as --driver requests")
    commands = [["ip", "link", "set", "dev", name, "down"] for name in nic.interfaces] + commands
    commands.append([devbind, f"--bind={driver}", nic.pci])
    say(f"{nic.describe()} will be taken from the kernel and given to {driver}: {why}")
    for reason in reasons:
        say(f"  WARNING: {reason}")
    options = lane_options(nic)
    if options:
        say("  save these lane options; the kernel loses them:")
        say("\n".join("    " + line for line in options.splitlines()))
    elif nic.interface:
        say(f"  weft-info was not found, so save address, gateway and MTU by hand: ip address show "
            f"dev {nic.interface}; ip route")
    say("  commands:")
    for command in commands:
        say("    " + shown(command))
    say(f"  undo: weft-bind --undo {nic.pci}")
    hint = hugepages_hint(nic)
    if hint:
        say("  " + hint)
    if not agreed(args, nic):
        return 2
    if nic.driver:
        os.makedirs(nic.state_dir, mode=0o755, exist_ok=True)
        with open(nic.state(), "w", encoding="ascii") as f:
            f.write(f"{nic.driver} {nic.interface}\n")
    carry_out(commands)
    if current_driver(nic) != driver:
        raise Refused(f"{nic.pci} has {current_driver(nic) or 'no driver'} and not {driver} now; "
                      f"see dmesg")
    say(f"{nic.pci} is {driver}'s now")
    return 0


def kernel_driver(nic):
    saved = read(nic.state()).split()
    if saved:
        return saved[0]
    names = [n for n in run("modprobe", "-R", read(nic.dir + "/modalias")).split()
             if n.replace("_", "-") not in DPDK_DRIVERS]
    if not names:
        raise Refused(f"the driver that {nic.pci} had is unknown: name it, as in weft-bind --undo "
                      f"--driver ena {nic.pci}")
    return names[0]


def undo(args, nic):
    if nic.driver and nic.driver not in DPDK_DRIVERS:
        say(f"{nic.describe()} is the kernel's")
        return 0
    driver = args.driver or kernel_driver(nic)
    devbind = tool("dpdk-devbind.py", "dpdk")
    commands = [["modprobe", driver], [devbind, f"--bind={driver}", nic.pci]]
    say(f"{nic.describe()} will be returned to the kernel's driver {driver}")
    for command in commands:
        say("    " + shown(command))
    if not agreed(args, nic):
        return 2
    carry_out(commands)
    if current_driver(nic) != driver:
        raise Refused(f"{nic.pci} has {current_driver(nic) or 'no driver'} and not {driver} now; "
                      f"see dmesg")
    if os.path.exists(nic.state()):
        os.unlink(nic.state())
    say(f"{nic.pci} is {driver}'s again; its interface needs an address again (DHCP, or ip address "
        f"add)")
    return 0


def main():
    parser = argparse.ArgumentParser(prog="weft-bind", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nic", nargs="?", metavar="IFNAME|PCI",
                        help="a kernel interface, or a PCI address")
    parser.add_argument("--undo", action="store_true",
                        help="give the NIC back to the kernel's driver")
    parser.add_argument("--status", action="store_true",
                        help="print which NIC has which driver (dpdk-devbind.py --status-dev net)")
    parser.add_argument("--yes", action="store_true", help="bind without confirmation")
    parser.add_argument("--force", action="store_true",
                        help="bind even if this machine is reached over the NIC")
    parser.add_argument("--driver", help="use this driver instead of the one that would be chosen")
    parser.add_argument("--root", default="/",
                        help="use sys and run below this folder (for tests)")
    args = parser.parse_args()
    try:
        if args.status:
            return subprocess.run([tool("dpdk-devbind.py", "dpdk"), "--status-dev", "net"],
                                  check=False).returncode
        if not args.nic:
            parser.error("name a NIC: a kernel interface, or a PCI address")
        if args.driver and not re.match(r"^[A-Za-z0-9_-]+$", args.driver):
            parser.error(f"'{args.driver}' is no driver's name")
        nic = Nic(args.nic, args.root)
        if args.yes and args.root == "/" and os.geteuid() != 0:
            raise Refused("only root can bind NICs: use sudo")
        return undo(args, nic) if args.undo else bind(args, nic)
    except Refused as e:
        print(f"weft-bind: {e}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, EOFError):
        return 130


if __name__ == "__main__":
    sys.exit(main())
