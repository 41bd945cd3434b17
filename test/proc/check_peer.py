#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_peer.py PORT KIND,KIND... [HOST]

A wrong other end of weft-info --check: connects to HOST, or listens and prints "listens". Each
connection has the next kind of fault. The kind "crowd" is eight silent connections at a time: it
prints "connected", and they end with the process."""

import socket
import sys
import time

GOOD = ("weft-check 1\nversion 9.9.9\nhost other\nnonce 0123456789abcdef\nuid 0\nkinds 4\n"
        "memlock 64\nhuge 0\niface eth0 ip 0a630101 24 mtu 1500 vlan 0 speed -1 port 9\n"
        "more words of a later version\nend\n")
IFACE = "iface eth%d ip 0a630101 24 mtu 1500 vlan 0 speed -1 port 9\n"
TEXT = {
    "garbage": bytes(range(256)) * 4 + b"\nend\n",
    "endless": b"weft-check 1\n" + b"host x\n" * 100000,
    "silent": b"",
    "ends": b"weft-check 1\nversion",
    "control": GOOD.replace("other", "a\033[2Jb").encode(),
    "ifaces": GOOD.replace("end\n", "".join(IFACE % i for i in range(20)) + "end\n").encode(),
    "pairs": GOOD.replace("9.9.9", "0.2.0").encode(),
    "version": GOOD.encode(),
    "late": GOOD.encode(),
}


def talk(s, kind):
    try:
        s.sendall(TEXT[kind])
        if kind in ("ends", "garbage"):
            return
        if kind in ("version", "late", "pairs"):
            s.recv(8192)
            # Its second text is expected within 3 s of the start, and 1 s is for probes.
            time.sleep(2.3 if kind == "late" else 0.5)
            s.sendall(b"pair 7 99 route 1 arp 1 small 1 large 1\nend\n" if kind == "pairs"
                      else b"end\n")
        s.settimeout(4)
        while s.recv(8192):
            pass
    except OSError:
        pass


def main():
    port, kinds = int(sys.argv[1]), sys.argv[2].split(",")
    if len(sys.argv) == 3:
        server = socket.create_server(("", port))
        print("listens", flush=True)
    if kinds == ["crowd"]:
        crowd = [socket.create_connection((sys.argv[3], port), 5) for _ in range(8)]
        print("connected", flush=True)
        time.sleep(60)
        sys.exit(len(crowd))
    for kind in kinds:
        if len(sys.argv) > 3:
            s = socket.create_connection((sys.argv[3], port), 5)
        else:
            s = server.accept()[0]
        talk(s, kind)
        s.close()


main()
