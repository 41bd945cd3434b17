#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""udp_spoof.py NETWORK ADDRESS FIRST LAST: sends datagrams to these UDP ports of an IPv6 address
until its standard input ends. Each round comes from another address of the network (a /64), as a
host would send that forges its own. Every second datagram begins as a lane frame. Prints "sends",
and their number at the end."""

import ipaddress
import random
import select
import socket
import struct
import sys

IPV6_TRANSPARENT = 75  # any source address; needs CAP_NET_ADMIN


def payload(rng):
    if rng.random() < 0.5:
        return rng.randbytes(64)
    header = struct.pack('<HBBHHIIIIHBBIIIH', 0x6657, 2, 7, 0, 42 + 60, rng.getrandbits(32),
                         rng.getrandbits(32), rng.getrandbits(32), rng.getrandbits(32), 7, 0, 0,
                         0, 0, 0, 0xffff)
    return header + rng.randbytes(60)


def main():
    rng = random.Random(7)
    network = ipaddress.IPv6Network(sys.argv[1])
    ports = range(int(sys.argv[3]), int(sys.argv[4]) + 1)
    sent = 0
    print('sends', flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
            sock.bind((str(network[rng.getrandbits(63) + 1000]), rng.randint(1024, 65535)))
            for port in ports:
                try:
                    sock.sendto(payload(rng), (sys.argv[2], port))
                    sent += 1
                except OSError:
                    pass  # the sender's own queue is full
    print(sent, flush=True)


if __name__ == '__main__':
    main()
