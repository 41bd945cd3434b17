#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hostile.py KIND FILE RAIL...: the only way between two hosts, in the hands of an attacker.

A RAIL is two interfaces, SERVER,CLIENT, to which the two hosts are connected. The program forwards
each frame between them and attacks as KIND names:

    none       forwards only
    replay     repeats earlier frames, oldest and newest first, and reflects some to their sender
    reorder    forwards in a random order, and some frames after 4200 later ones
    truncate   cuts frames, with lengths that fit
    flip       changes one bit: each bit of the lane header, of the hellos, and others
    outer      changes a bit of the Ethernet, IP or UDP header; the frame itself follows
    splice     gives frames of one rail the connection and addresses of the other one
    earlier    sends frames of FILE, which an earlier run with "none" has recorded
    strip      clears the flag SEALED, with or without number and tag
    arp        answers ARP for both hosts, and changes features of hellos and bits of frames

A changed frame comes before the true one, and each twentieth takes its place. At SIGTERM the
program prints the number of its attacks, of forwarded frames, and of frames with readable TEXT.
"""

import pickle
import random
import select
import signal
import socket
import struct
import sys

from forge import ALL, HEADER, LANE, crc32c, ip_sum

TEXT = b'a line of a secret text'
HELLO, HELLO_ACK = 1, 2
CRC32C, SEALED = 0x04, 0x20
NUMBER, TAG = 8, 16
RCVBUFFORCE = 33  # of setsockopt()
LATE = 4200  # numbers: more than a replay window has
INSTEAD = 20
OWN = bytes.fromhex('025746540002')  # MAC address of the attacker


class Frame:
    """A frame of a lane, whose parts may be changed."""

    def __init__(self, data):
        self.data = bytearray(data)

    def is_lane(self):
        return self.data[12:14] == b'\x08\x00' and self.data[LANE:LANE + 2] == b'Wf'

    def kind(self):
        return self.data[LANE + 3] if self.is_lane() else None

    def flags(self):
        return struct.unpack_from('<H', self.data, LANE + 4)[0]

    def sealed(self):
        return self.is_lane() and self.flags() & SEALED

    def hello(self):
        return self.kind() in (HELLO, HELLO_ACK)

    def length(self):
        return struct.unpack_from('<H', self.data, LANE + 6)[0]

    def number(self):
        """(connection and slot, counter)"""
        conn, n = struct.unpack_from('<I', self.data, LANE + 8), struct.unpack_from(
            '<Q', self.data, LANE + HEADER)[0]
        return (conn, n >> 56), n & (1 << 56) - 1

    def copy(self):
        return Frame(self.data)

    def fix(self):
        """Lengths and checksums, as the lane header has the length."""
        plain = not self.flags() & SEALED
        length = self.length()
        whole = LANE + length + (4 if self.flags() & CRC32C and plain else 0 if plain else TAG)
        whole = min(whole, len(self.data))
        if plain and self.flags() & CRC32C and LANE + length + 4 <= len(self.data):
            self.data[LANE + length:LANE + length + 4] = \
                crc32c(bytes(self.data[LANE:LANE + length]))
        struct.pack_into('>H', self.data, 16, whole - 14)
        struct.pack_into('>H', self.data, 38, whole - 34)
        return self.fix_ip(whole)

    def fix_ip(self, whole=None):
        self.data[40:42] = bytes(2)  # of UDP: none
        self.data[24:26] = bytes(2)
        self.data[24:26] = struct.pack('>H', ip_sum(bytes(self.data[14:34])))
        del self.data[whole or len(self.data):]
        return self


class Box:
    def __init__(self, kind, path, rails):
        self.attack, self.path = getattr(self, kind), path
        self.sockets, self.by_file = [], {}
        for rail, names in enumerate(rails):
            for side, name in enumerate(names.split(',')):
                s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
                s.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, 64 << 20)
                s.bind((name, ALL))
                s.setblocking(False)
                self.by_file[s.fileno()] = (s, rail, side)
                self.sockets.append(s)
        self.attacks = self.forwarded = self.readable = self.turn = 0
        self.old, self.held, self.late, self.newest = [], [], [], {}
        self.random = random.Random(7)
        self.mac = {}
        self.ended = False
        if kind == 'earlier':
            with open(path, 'rb') as f:
                self.old = pickle.load(f)

    def send(self, rail, side, frame):
        try:
            self.sockets[2 * rail + side].send(frame.data)
        except OSError:
            pass  # too long, or the link is full: the frame is lost

    def bad(self, rail, side, frame):
        self.attacks += 1
        self.send(rail, side, frame)

    def instead(self):
        self.turn += 1
        return self.turn % INSTEAD == 0

    # ---- the attacks: @return true if the frame itself is to be sent, too

    def none(self, rail, side, frame):
        if frame.is_lane():
            self.old.append((rail, side, bytes(frame.data)))
        return True

    def replay(self, rail, side, frame):
        if not frame.is_lane():
            return True
        self.old.append((rail, side, bytes(frame.data)))
        self.send(rail, side, frame)
        self.turn += 1
        for n in (self.turn // 2, len(self.old) - 1 - self.turn % 50):
            to, before, data = self.old[n % len(self.old)]
            if Frame(data).sealed():
                self.bad(to, before, Frame(data))
            elif Frame(data).hello():
                self.send(to, before, Frame(data))
        if self.turn % 8 == 0:
            back = frame.copy()
            d = frame.data
            back.data[:12], back.data[26:34] = d[6:12] + d[:6], d[30:34] + d[26:30]
            back.data[34:38] = d[36:38] + d[34:36]
            self.send(rail, 1 - side, back.fix_ip())
        return False

    def reorder(self, rail, side, frame):
        self.turn += 1
        if frame.sealed() and self.turn % 50 == 0:
            self.late.append((rail, side, frame))
            return False
        if frame.sealed():
            conn, number = frame.number()
            old = [f for f in self.late if f[2].number()[0] == conn and
                   f[2].number()[1] + LATE < number]
            for late in old:
                self.late.remove(late)
                self.bad(*late)
        self.held.append((rail, side, frame))
        if len(self.held) >= 8:
            self.release()
        return False

    def release(self):
        self.random.shuffle(self.held)
        for held in self.held:
            self.send(*held)
        self.held = []

    def truncate(self, rail, side, frame):
        if not frame.sealed():
            return True
        cut = frame.copy()
        most = frame.length() - HEADER
        by = 1 + self.random.randrange(most)
        struct.pack_into('<H', cut.data, LANE + 6, frame.length() - by)
        self.bad(rail, side, cut.fix())
        return not self.instead()

    def flip(self, rail, side, frame):
        if not frame.sealed() and not frame.hello():
            return True
        end = 8 * (frame.length() if frame.hello() else len(frame.data) - LANE)
        self.turn += 1
        bits = [self.turn % (8 * (HEADER + NUMBER)), self.random.randrange(end)]
        if frame.hello():
            bits = [self.random.randrange(end) for _ in range(4)]
        for bit in bits:
            other = frame.copy()
            other.data[LANE + bit // 8] ^= 1 << bit % 8
            self.bad(rail, side, other.fix() if frame.hello() else other)
        return frame.hello() or self.turn % INSTEAD != 0

    def outer(self, rail, side, frame):
        if not frame.is_lane():
            return True
        other = frame.copy()
        bit = self.turn % (8 * LANE)
        self.turn += 1
        other.data[bit // 8] ^= 1 << bit % 8
        self.bad(rail, side, other.fix_ip())
        return True

    def splice(self, rail, side, frame):
        if not frame.sealed():
            return True
        self.newest[rail, side] = frame
        like = self.newest.get((1 - rail, side))
        if like:
            other = frame.copy()
            other.data[:12], other.data[26:38] = like.data[:12], like.data[26:38]
            other.data[LANE + 8:LANE + 16] = like.data[LANE + 8:LANE + 16]
            self.bad(1 - rail, side, other.fix_ip())
        return True

    def earlier(self, rail, side, frame):
        # Both ends answer some of these frames. Attacks on the answers would have answers again,
        # which fills the path with them: only the first ones are attacked.
        if not frame.sealed() and self.turn >= 200:
            return True
        for _ in range(5):
            to, before, data = self.old[self.turn % len(self.old)]
            self.turn += 1
            if Frame(data).hello():
                for _ in range(20):
                    self.bad(to, before, Frame(data))
            self.bad(to, before, Frame(data))
        return True

    def strip(self, rail, side, frame):
        if not frame.sealed():
            return True
        plain = frame.copy()
        struct.pack_into('<H', plain.data, LANE + 4, frame.flags() & 0x1f | CRC32C)
        self.turn += 1
        if self.turn & 1:
            del plain.data[LANE + HEADER:LANE + HEADER + NUMBER]
            struct.pack_into('<H', plain.data, LANE + 6, frame.length() - NUMBER)
        self.bad(rail, side, plain.fix())
        return self.turn % INSTEAD != 0

    def arp(self, rail, side, frame):
        d = frame.data
        if d[12:14] == b'\x08\x06':
            self.mac[rail, 1 - side] = bytes(d[6:12])
            if d[20:22] == b'\0\1' and d[28:32] != d[38:42] and d[28:32] != bytes(4):
                answer = d[6:12] + OWN + d[12:20] + b'\0\2' + OWN + d[38:42] + d[22:32] + bytes(18)
                self.send(rail, 1 - side, Frame(answer))
            return False
        if d[:6] != OWN or (rail, side) not in self.mac:
            return False
        d[:12] = self.mac[rail, side] + OWN
        self.turn += 1
        if frame.hello() and self.attacks < 5:
            d[LANE + HEADER + 48] ^= 1
            self.bad(rail, side, frame.fix())
            return False
        if frame.sealed() and self.turn % INSTEAD == 0:
            d[len(d) - 1 - self.turn % (frame.length() - HEADER)] ^= 4
            self.bad(rail, side, frame)
            return False
        return True

    # ---- forwarding

    def input(self, rail, side, data):
        frame = Frame(data)
        self.forwarded += 1
        self.readable += TEXT in data
        if self.attack(rail, 1 - side, frame):
            self.send(rail, 1 - side, frame)

    def run(self):
        poll = select.poll()
        for file in self.by_file:
            poll.register(file, select.POLLIN)
        while not self.ended:
            ready = poll.poll(1)
            if not ready:
                self.release()
            for file, _ in ready:
                s, rail, side = self.by_file[file]
                for _ in range(64):
                    try:
                        data, address = s.recvfrom(65536)
                    except BlockingIOError:
                        break
                    if address[2] != socket.PACKET_OUTGOING:
                        self.input(rail, side, data)
        if self.attack == self.none:
            with open(self.path, 'wb') as f:
                pickle.dump(self.old, f)


def main():
    box = Box(sys.argv[1], sys.argv[2], sys.argv[3:])

    def end(*_):
        box.ended = True

    signal.signal(signal.SIGTERM, end)
    print('listens', flush=True)
    box.run()
    print(box.attacks, box.forwarded, box.readable, flush=True)


if __name__ == '__main__':
    main()
