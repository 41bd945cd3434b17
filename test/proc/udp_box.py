#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""udp_box.py NETNS-A NETNS-B NAME LOSS DUPLICATES DISORDER [SEED]

Makes a TAP interface NAME in both network namespaces and carries frames between them, with these
shares of IPv4 frames lost, doubled, and sent behind the next eight. Prints "ready"; at the end of
its standard input prints what it did. A TAP interface has no offloads: the kernel cuts large
messages and fills checksums before its frames come here.

A line "loss 0.2" of standard input changes the loss, and "delay 5 20" delays each frame by a random
time of 5 to 20 ms, in order. A line "set" is printed when a change is in force."""

import collections
import ctypes
import fcntl
import os
import random
import select
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 2, 0x1000
BEHIND = 8


def open_tap(netns, name):
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open("/run/netns/" + netns, os.O_RDONLY)
    if libc.setns(there, 0):
        raise OSError(ctypes.get_errno(), "setns")
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    libc.setns(home, 0)
    os.close(there)
    os.close(home)
    return tap


def write(tap, frame):
    try:
        os.write(tap, frame)
    except OSError:
        pass  # the interface is down, or its queue is full: the frame is lost


class Way:
    """Frames of one direction, those that come late: [frames to wait for, frame], and those that
    are delayed: (time, frame)."""

    def __init__(self, rates, rng, counts, to):
        self.late, self.rng, self.counts = [], rng, counts
        self.loss, self.duplicates, self.disorder = rates
        self.delay, self.delayed, self.to = None, collections.deque(), to

    def send(self, frame):
        if not self.delay and not self.delayed:
            write(self.to, frame)
            return
        at = time.monotonic() + self.rng.uniform(*self.delay or (0, 0))
        if self.delayed:
            at = max(at, self.delayed[-1][0])
        self.delayed.append((at, frame))

    def due(self):
        """Sends what is due. Returns seconds until the next frame is; None = there is none."""
        while self.delayed:
            left = self.delayed[0][0] - time.monotonic()
            if left > 0:
                return left
            write(self.to, self.delayed.popleft()[1])
        return None

    def carry(self, frame):
        self.counts["frames"] += 1
        if frame[12:14] == b"\x08\x00" and frame[23] == 17:
            if self.rng.random() < self.loss:
                self.counts["lost"] += 1
                return
            if self.rng.random() < self.disorder:
                self.counts["disordered"] += 1
                self.late.append([BEHIND, frame])
                return
            if self.rng.random() < self.duplicates:
                self.counts["doubled"] += 1
                self.send(frame)
        self.send(frame)
        for entry in self.late:
            entry[0] -= 1
        while self.late and self.late[0][0] <= 0:
            self.send(self.late.pop(0)[1])


def change(ways, lines):
    for line in lines.split("\n")[:-1]:
        what, *values = line.split()
        for way in ways:
            if what == "loss":
                way.loss = float(values[0])
            else:
                way.delay = [float(x) / 1000 for x in values]
        print("set", line, flush=True)


def main():
    rates = [float(x) for x in sys.argv[4:7]]
    rng = random.Random(int(sys.argv[7]) if len(sys.argv) > 7 else 1)
    counts = {"frames": 0, "lost": 0, "doubled": 0, "disordered": 0}
    taps = [open_tap(netns, sys.argv[3]) for netns in sys.argv[1:3]]
    ways = {tap: Way(rates, rng, counts, taps[1 - i]) for i, tap in enumerate(taps)}
    print("ready", flush=True)
    while True:
        waits = [w for w in (way.due() for way in ways.values()) if w is not None]
        for fd in select.select(taps + [0], [], [], min(waits, default=None))[0]:
            if fd == 0:
                lines = os.read(0, 64).decode()
                change(ways.values(), lines)
                if not lines:
                    print(" ".join(f"{n} {what}" for what, n in counts.items()))
                    return
                continue
            for _ in range(64):
                try:
                    frame = os.read(fd, 65536)
                except OSError:  # empty, or the interface is down
                    break
                ways[fd].carry(frame)


if __name__ == "__main__":
    main()
