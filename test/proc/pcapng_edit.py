# SPDX-License-Identifier: BSD-3-Clause
"""Captures of one's own, edited: times, directions, losses, what a capture lacks. Little-endian
pcapng with times in ns, as weft writes it. Nothing here is random."""

import os
import struct
import subprocess

SECTION, INTERFACE, STATISTICS, PACKET = 0x0a0d0d0a, 1, 5, 6
IN, OUT = 1, 2


class Record:
    """A packet: what of it can be edited."""

    def __init__(self, body):
        self.iface, high, low, captured, self.len = struct.unpack_from('<IIIII', body)
        self.time = high << 32 | low
        self.data = body[20:20 + captured]
        at, self.way, self.dropped = 20 + (captured + 3) // 4 * 4, 0, 0
        self.damaged = False # by its checksum, as the flags of its block say
        while at + 4 <= len(body):
            code, size = struct.unpack_from('<HH', body, at)
            if code == 2:
                self.way = struct.unpack_from('<I', body, at + 4)[0] & 3
            if code == 0:
                break
            at += 4 + (size + 3) // 4 * 4

    def block(self):
        body = struct.pack('<IIIII', self.iface, self.time >> 32, self.time & 0xffffffff,
                           len(self.data), self.len) + self.data + bytes(-len(self.data) % 4)
        if self.way:
            body += struct.pack('<HHI', 2, 4, self.way | self.damaged << 24)
        if self.dropped:
            body += struct.pack('<HHQ', 4, 8, self.dropped)
        return block(PACKET, body + (bytes(4) if self.way or self.dropped else b''))

    def key(self):
        """The same at both ends of its lane, also if a router is between them."""
        return self.data[26:] if self.data[12:14] == b'\x08\x00' else None


def block(kind, body):
    size = 12 + len(body)
    return struct.pack('<II', kind, size) + body + struct.pack('<I', size)


class Capture:
    """Blocks before the packets, packets, and no statistics: they would be of the whole file.
    Notes are comments of statistics at the end: interface and text."""

    def __init__(self, path):
        self.head, self.records, self.notes = [], [], []
        with open(path, 'rb') as f:
            data = f.read()
        at = 0
        while at + 12 <= len(data):
            kind, size = struct.unpack_from('<II', data, at)
            body = data[at + 8:at + size - 4]
            if kind == PACKET:
                self.records.append(Record(body))
            elif kind != STATISTICS:
                self.head.append((kind, body))
            at += size

    def begin(self):
        return self.records[0].time

    def write(self, path, comment=None, closed=False, host=None):
        """With a comment a file of the flight recorder; host is the number of its system."""
        head = list(self.head)
        texts = {1: comment, 3: host and 'Linux, boot ' + host, 4: host and 'weft'}
        if comment:
            head[0] = (SECTION, head[0][1][:16] + b''.join(
                struct.pack('<HH', code, len(text)) + text.encode() + bytes(-len(text) % 4)
                for code, text in texts.items() if text) + bytes(4))
        with open(path, 'wb') as f:
            for kind, body in head:
                f.write(block(kind, body))
            for record in self.records:
                f.write(record.block())
            for iface, text in self.notes:
                time = self.records[-1].time
                f.write(block(STATISTICS, struct.pack('<IIIHH', iface, time >> 32,
                                                      time & 0xffffffff, 1, len(text)) +
                              text.encode() + bytes(-len(text) % 4) + bytes(4)))
            for iface in sorted({r.iface for r in self.records}) if closed else ():
                time = self.records[-1].time
                f.write(block(STATISTICS, struct.pack('<III', iface, time >> 32,
                                                      time & 0xffffffff)))
        return path


def pair(build, folder, fault, seed):
    """The captures of both hosts of a run in the simulator, which is made once in the folder."""
    own = os.path.join(folder, '%s-%d' % (fault, seed))
    if not os.path.exists(own):
        os.mkdir(own)
        subprocess.run([os.path.join(build, 'test', 'sim', 'sim_faults'), '-k', fault, '-s',
                        str(seed), '-n', '1'], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, SIM_FAULTS=own))
    return [Capture(os.path.join(own, name + '.pcapng')) for name in 'ab']


def skew(capture, seconds, ppm=0):
    begin = capture.begin()
    for r in capture.records:
        r.time += int(seconds * 1e9 + (r.time - begin) * ppm / 1e6)


def part(capture, from_share, to_share):
    n = len(capture.records)
    capture.records = capture.records[int(n * from_share):int(n * to_share)]


def lose_records(capture, every, tell):
    """Each N-th record is missing; with tell the next one says so (epb_dropcount)."""
    kept, gone = [], 0
    for number, r in enumerate(capture.records, 1):
        if number % every == 0:
            gone += 1
            continue
        r.dropped, gone = gone if tell else 0, 0
        kept.append(r)
    capture.records = kept


def without_directions(capture):
    for r in capture.records:
        r.way = 0


def cut(capture, snaplen):
    for r in capture.records:
        r.data = r.data[:snaplen]


def one_clock(a, b):
    """Sets b's clock to a's, as if both ways took equally long."""
    sent = [{r.key(): r.time for r in c.records if r.way == OUT and r.key()} for c in (a, b)]
    there = min(r.time - sent[0][r.key()] for r in b.records if r.way == IN and
                r.key() in sent[0])
    back = min(r.time - sent[1][r.key()] for r in a.records if r.way == IN and
               r.key() in sent[1])
    for r in b.records:
        r.time -= (there - back) // 2


def pauses(a, b, idle_us, burst, way_us=20):
    """Perfect times: each frame takes way_us, each host answers in 1 us, and the first one pauses
    after each burst of its frames. No host is slow in the result."""
    one_clock(a, b)
    came = {}
    for side, capture in enumerate((a, b)):
        for r in capture.records:
            if r.way == IN and r.key():
                came.setdefault((side, r.key()), r)
    sent = sorted([(r.time, side, r) for side, c in enumerate((a, b)) for r in c.records
                   if r.way == OUT], key=lambda e: e[0])
    now, number, before, last, result = a.begin(), 0, 0, 0, ([], [])
    for original, side, r in sent:
        quiet, before = original - before > 60000, original
        other = came.get((1 - side, r.key()))
        if other is None:
            continue
        now += 1000 if side == last else way_us * 1000 + 1000 # it answers what has come
        last = side
        if side == 0:
            number += 1
            if number >= burst and quiet: # the other host owes no acknowledgement then
                now, number = now + idle_us * 1000, 0
        r.time, other.time = now, now + way_us * 1000
        result[side].append(r)
        result[1 - side].append(other)
    for capture, records in zip((a, b), result):
        capture.records = sorted(records, key=lambda r: r.time)


def stops(a, b, from_share, every_ns, length_ns):
    """Host b does nothing for length_ns, again and again: it takes and sends all of that time at
    its end, and the other host has what it sends then later, too."""
    begin = b.begin() + int((b.records[-1].time - b.begin()) * from_share)
    moved = {}
    for r in b.records:
        phase = (r.time - begin) % every_ns
        if r.time < begin or phase >= length_ns:
            continue
        by = length_ns - phase
        if r.way == OUT and r.key():
            moved[r.key()] = by
        r.time += by
    last = {}
    for r in a.records:
        if r.way == IN: # in the order in which they came before
            r.time = max(r.time + moved.get(r.key(), 0), last.get(r.iface, 0))
            last[r.iface] = r.time
    for capture in (a, b):
        capture.records.sort(key=lambda r: r.time)


def ends(a, b, share, unwritten):
    """Host b's process ends: nothing comes from it any more, and its capture lacks the last
    records. Host a sends on."""
    n = int(len(b.records) * share)
    gone = {r.key() for r in b.records[n:] if r.way == OUT}
    a.records = [r for r in a.records if r.way == OUT or r.key() not in gone]
    b.records = b.records[:n - unwritten]


def slowed(capture, factor, begin):
    for r in capture.records:
        r.time = begin + (r.time - begin) * factor


def delayed(b, iface, share, length_ns):
    """From then on frames take longer to an interface of host b. Returns the first one's key."""
    begin = b.begin() + int((b.records[-1].time - b.begin()) * share)
    late = [r for r in b.records if r.way == IN and r.iface == iface and r.time >= begin]
    for r in late:
        r.time += length_ns
    b.records.sort(key=lambda r: r.time)
    return late[0].key()
