#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One program that drives many ports of weft-switch, all saturated, the last one slow.

Each port sends full rings of frames to the next port all the time. Rings are filled once, and only
indices move, so this program is no bottleneck. All ports except the last consume frames at once;
the last one consumes one full ring in --every seconds. The output is the share of each port in the
switch's work, relative to an equal share among the ports that are not slow: frames sent by it, and
frames received.

    switch_share.py [--ports N] [--bytes N] [--seconds S] [--at-least PART] SOCKET

Exit code: 0; 1 a port that is not slow had less than --at-least of its share.
"""

import argparse
import array
import ctypes
import fcntl
import mmap
import os
import socket
import struct
import sys
import time

GRANT = struct.Struct('<IHHiIHHHHIIBB6sI108s24s256s')
F_ADD_SEALS, F_SEAL_SHRINK = 1033, 2
MEMIF_COOKIE = 0x3E31F20


def message(sock, kind, body=b'', *fds):
    data = (struct.pack('<H', kind) + body).ljust(128, b'\0')
    anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else []
    sock.sendmsg([data], anc)


def answer(sock, kind):
    got = sock.recv(128)
    if len(got) != 128 or struct.unpack_from('<H', got)[0] != kind:
        raise ConnectionError(got[6:].split(b'\0')[0].decode(errors='replace'))


class Port:
    """A memif port of the switch, whose frames and buffers do not change."""

    def __init__(self, path):
        self.grant = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.grant.settimeout(60)
        self.grant.connect(path)
        f = GRANT.unpack(self.grant.recv(4096))
        if f[0] != 0x77536657 or f[3]:
            sys.exit('switch_share: ' + f[-1].split(b'\0')[0].decode())
        self.number, self.log2, self.mac, self.bsize = f[5], f[12], f[13], f[14]
        self.slots = 1 << self.log2
        self.ring = 128 + self.slots * 16
        self.size = 2 * self.ring + 2 * self.slots * self.bsize
        self.connect(f[15].split(b'\0')[0].decode(), f[16])
        self.sent = self.got = 0

    def connect(self, path, secret):
        fd = os.memfd_create('switch_share', os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, self.size)
        fcntl.fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(60)
        self.sock.connect(path)
        answer(self.sock, 2)
        message(self.sock, 3, struct.pack('<HIB24s32s', 0x200, self.number, 0, secret, b'share'))
        answer(self.sock, 1)
        # Mapped before the switch has it: from then on no other mapping may write.
        self.mem = mmap.mmap(fd, self.size)
        message(self.sock, 4, struct.pack('<HQ', 0, self.size), fd)
        answer(self.sock, 1)
        os.close(fd)
        for ring in range(2):
            at = ring * self.ring
            # This program polls and needs no wake-up.
            struct.pack_into('<IH', self.mem, at, MEMIF_COOKIE, 1)
            for i in range(self.slots):
                struct.pack_into('<HHIII', self.mem, at + 128 + 16 * i, 0, 0, self.bsize,
                                 self.buffer(ring, i), 0)
            message(self.sock, 5, struct.pack('<HHHIBH', 1 - ring, 0, 0, at, self.log2, 0),
                    os.eventfd(0))
            answer(self.sock, 1)
        # Written with one store, which struct's '<H' is not: the switch could read half of it.
        self.out_head, self.out_tail, self.in_head, self.in_tail = (
            ctypes.c_uint16.from_buffer(self.mem, at)
            for at in (6, 64, self.ring + 6, self.ring + 64))
        message(self.sock, 6, b'share')
        answer(self.sock, 7)

    def buffer(self, ring, slot):
        return 2 * self.ring + (ring * self.slots + slot) * self.bsize

    def fill(self, to, length):
        """Every slot of the sending ring has a frame for that port."""
        frame = (to.mac + self.mac + b'\x88\xb5').ljust(length, b'\0')
        for i in range(self.slots):
            at = self.buffer(0, i)
            self.mem[at:at + length] = frame
            struct.pack_into('<I', self.mem, 128 + 16 * i + 4, length)

    def send(self):
        tail = self.out_tail.value
        self.sent += (tail - self.last_out) & 0xffff
        self.last_out = tail
        self.out_head.value = (tail + self.slots) & 0xffff

    def take(self):
        tail = self.in_tail.value
        self.got += (tail - self.last_in) & 0xffff
        self.last_in = tail
        self.in_head.value = (tail + self.slots) & 0xffff

    def begin(self):
        self.sent = self.got = 0
        self.last_out, self.last_in = self.out_tail.value, self.in_tail.value


def drive(ports, seconds, every):
    slow = ports[-1]
    end = time.monotonic() + seconds
    next_take = 0
    while (now := time.monotonic()) < end:
        for p in ports[:-1]:
            p.send()
            p.take()
        slow.send()
        if now >= next_take:
            slow.take()
            next_take = now + every


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--ports', type=int, default=16)
    parser.add_argument('--bytes', type=int, default=1514)
    parser.add_argument('--seconds', type=float, default=2)
    parser.add_argument('--every', type=float, default=0.5)
    parser.add_argument('--at-least', type=float, default=0)
    parser.add_argument('socket')
    args = parser.parse_args()
    ports = [Port(args.socket) for _ in range(args.ports)]
    for i, p in enumerate(ports):
        p.begin()
        p.fill(ports[(i + 1) % len(ports)], args.bytes)
    drive(ports, args.seconds / 4, args.every)
    for p in ports:
        p.begin()
    begin = time.monotonic()
    drive(ports, args.seconds, args.every)
    took = time.monotonic() - begin
    fast = ports[:-1]
    sent, got = sum(p.sent for p in fast), sum(p.got for p in fast)
    if not sent or not got:
        sys.exit('switch_share: nothing was forwarded')
    print('port,taken_of_share,got_of_share')
    parts = [(p.sent * len(fast) / sent, p.got * len(fast) / got) for p in ports]
    for p, part in zip(ports, parts):
        print('%d%s,%.3f,%.3f' % (p.number, ' slow' if p is ports[-1] else '', *part))
    worst = min(min(part) for part in parts[:-1])
    frames = sum(p.sent for p in ports) / took
    print('all,frames_per_s %.0f,bytes_per_s %.0f' % (frames, frames * args.bytes))
    print('worst,%.3f' % worst)
    return worst < args.at_least


if __name__ == '__main__':
    sys.exit(main())
