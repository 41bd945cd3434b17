# SPDX-License-Identifier: BSD-3-Clause
"""switch_client.py SOCKET WHAT: a client of weft-switch that does what Weft's do not.

    idle       never takes a frame
    flood      sends frames to port 0, or whichever port is not its own, as fast as it can
    addresses  sends frames with others' addresses
    memory     descriptors that point outside of its memory, and an index outside of its ring
    unsealed   memory that it could make shorter; it must be refused
    shrunk     memory that is shorter than it says; it must be refused
"""

import array
import fcntl
import mmap
import os
import socket
import struct
import sys
import time

GRANT = struct.Struct('<IHHiIHHHHIIBB6sI108s24s256s')
LOG2, SLOTS, BSIZE = 6, 64, 2048
RING = 128 + SLOTS * 16
SIZE = 2 * RING + 2 * SLOTS * BSIZE
path, what = sys.argv[1:]


def ask():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(30)
    s.connect(path)
    f = GRANT.unpack(s.recv(4096))
    assert f[0] == 0x77536657 and f[3] == 0, f[-1]
    return s, f


def message(sock, kind, body=b'', fd=-1):
    data = (struct.pack('<H', kind) + body).ljust(128, b'\0')
    anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))] if fd >= 0 else []
    sock.sendmsg([data], anc)


def answer(sock, kind):
    got = sock.recv(128)
    if len(got) != 128 or struct.unpack_from('<H', got)[0] != kind:
        raise ConnectionError(got[6:].split(b'\0')[0].decode(errors='replace'))


def region():
    fd = os.memfd_create('client', os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, SIZE // 2 if what == 'shrunk' else SIZE)
    if what != 'unsealed':
        fcntl.fcntl(fd, 1033, 2)  # F_ADD_SEALS, F_SEAL_SHRINK
    return fd


def connect(grant):
    fd = region()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.settimeout(30)
    sock.connect(grant[15].split(b'\0')[0].decode())
    answer(sock, 2)
    message(sock, 3, struct.pack('<HIB24s32s', 0x200, grant[5], 0, grant[16], b'test'))
    answer(sock, 1)
    message(sock, 4, struct.pack('<HQ', 0, SIZE), fd)
    answer(sock, 1)
    mem = mmap.mmap(fd, SIZE)
    for ring in range(2):
        struct.pack_into('<I', mem, ring * RING, 0x3E31F20)
        for i in range(SLOTS):
            struct.pack_into('<HHIII', mem, ring * RING + 128 + 16 * i, 0, 0, BSIZE,
                             2 * RING + (ring * SLOTS + i) * BSIZE, 0)
        message(sock, 5, struct.pack('<HHHIBH', 1 - ring, 0, 0, ring * RING, LOG2, 0),
                os.eventfd(0))
        answer(sock, 1)
    struct.pack_into('<H', mem, RING + 6, SLOTS)  # room for what comes: never taken
    message(sock, 6, b'test')
    answer(sock, 7)
    return sock, mem


class Sender:
    def __init__(self, mem):
        self.mem, self.head = mem, 0

    def send(self, frame, **desc):
        end = time.monotonic() + 30
        while (self.head - struct.unpack_from('<H', self.mem, 64)[0]) & 0xffff >= SLOTS:
            assert time.monotonic() < end, 'the switch takes nothing any more'
            time.sleep(0)
        slot = self.head % SLOTS
        at = 2 * RING + slot * BSIZE
        self.mem[at:at + len(frame)] = frame
        struct.pack_into('<HHIII', self.mem, 128 + 16 * slot, desc.get('flags', 0),
                         desc.get('region', 0), desc.get('length', len(frame)),
                         desc.get('offset', at), 0)
        self.head = (self.head + 1) & 0xffff
        struct.pack_into('<H', self.mem, 6, self.head)


def frame(dst, src, ip=b'\xa9\xfe\x01\x01'):
    udp = struct.pack('>HHHH', 9338, 9338, 8, 0)
    packet = struct.pack('>BBHHHBBH', 0x45, 0, 28, 0, 0x4000, 64, 17, 0) + ip + bytes(4) + udp
    return dst + src + b'\x08\x00' + packet + bytes(60)


grant_sock, grant = ask()
own, mac = grant[5], grant[13]
others = [mac[:5] + bytes([1 + i]) for i in range(grant[6]) if i != own]
if what in ('unsealed', 'shrunk'):
    try:
        connect(grant)
    except ConnectionError as e:
        print('connected as it is asked for, and refused:', e, flush=True)
        sys.exit(0)
    sys.exit('it was not refused')
sock, mem = connect(grant)
print('connected as port', own, flush=True)
out = Sender(mem)
if what == 'idle':
    time.sleep(600)
elif what == 'flood':
    for _ in range(400):
        for dst in others:
            out.send(dst + mac + b'\x88\xb5' + bytes(1000))
elif what == 'addresses':
    for dst in others:
        out.send(frame(dst, others[0]))
        out.send(frame(dst, mac, b'\x0a\x00\x00\x01'))
        out.send(dst + mac + b'\x08\x06' + bytes(8) + others[0] + bytes(30))
elif what == 'memory':
    out.send(b'x' * 64, offset=SIZE - 8)
    out.send(b'x' * 64, offset=0xfffffff0)
    out.send(b'x' * 64, length=0xffffffff)
    out.send(b'x' * 64, region=7)
    out.send(b'x' * 64, flags=1)
    out.send(b'', length=0)
    time.sleep(0.2)
    struct.pack_into('<H', mem, 6, (out.head + 1000) & 0xffff)
time.sleep(0.3)
