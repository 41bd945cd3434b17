# SPDX-License-Identifier: BSD-3-Clause
"""switch_client.py SOCKET WHAT: a client of weft-switch that does what Weft's do not.

    idle       never takes a frame
    flood      sends frames to port 0, or whichever port is not its own, as fast as it can
    addresses  sends frames with others' addresses
    memory     descriptors that point outside of its memory, and an index outside of its ring
    long       a frame longer than the switch's MTU, for no port
    unsealed   memory that it could make shorter; it must be refused
    file       a file of the disk, which has no seals; it must be refused as unsealed
    shrunk     memory that is shorter than it says; it must be refused
    huge       memory of hugepages, out of which it could cut holes; it must be refused
    known      comes with the secret of a port that it gave back; it must be refused
    cookie     a ring that is none, with an eventfd; it must be refused
    many       rings with more entries than it was granted; it must be refused
    table      a table of farewells outside of its memory; it must be refused
    rubbish    a table of farewells of any bytes, and with others' addresses
    spare      descriptors that no message needs, and with a message that is none
    full       an eventfd that no process can write to: its connection must end
    lingering  a descriptor whose close lasts a minute; others are served in this time
"""

import array
import ctypes
import fcntl
import mmap
import os
import socket
import struct
import sys
import tempfile
import threading
import time

GRANT = struct.Struct('<IHHiIHHHHIIBB6sI108s24s256s')
HUGE = 2 << 20
path, what = sys.argv[1:]
LOG2 = 14 if what == 'many' else 6
SLOTS, BSIZE = 1 << LOG2, 16 if what == 'many' else 2048
RING = 128 + SLOTS * 16
SIZE = 2 * RING + 2 * SLOTS * BSIZE
kept = []


def ask():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20 if what == 'lingering' else 60)
    s.connect(path)
    f = GRANT.unpack(s.recv(4096))
    assert f[0] == 0x77536657 and f[3] == 0, f[-1]
    return s, f


def message(sock, kind, body=b'', *fds, length=128):
    data = (struct.pack('<H', kind) + body).ljust(length, b'\0')
    anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else []
    sock.sendmsg([data], anc)


def answer(sock, kind):
    got = sock.recv(128)
    if len(got) != 128 or struct.unpack_from('<H', got)[0] != kind:
        raise ConnectionError(got[6:].split(b'\0')[0].decode(errors='replace'))


def region():
    if what == 'file':
        f = tempfile.TemporaryFile(dir='/var/tmp')
        f.truncate(SIZE)
        return os.dup(f.fileno())
    huge = os.MFD_HUGETLB if what == 'huge' else 0
    fd = os.memfd_create('client', os.MFD_ALLOW_SEALING | huge)
    os.ftruncate(fd, HUGE if huge else SIZE // 2 if what == 'shrunk' else SIZE)
    if what != 'unsealed':
        fcntl.fcntl(fd, 1033, 2)  # F_ADD_SEALS, F_SEAL_SHRINK
    return fd


def index(mem, at):
    """Read and written whole, which struct's '<H' is not: the switch would see half of it."""
    return ctypes.c_uint16.from_buffer(mem, at)


def eventfd():
    fd = os.eventfd(0)
    if what == 'full':
        os.eventfd_write(fd, (1 << 64) - 2)
    return fd


def lingering():
    """A TCP socket with data that no process reads."""
    server = socket.create_server(('127.0.0.1', 0))
    s = socket.create_connection(server.getsockname())
    s.setblocking(False)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 60))
    try:
        while True:
            s.send(bytes(1 << 16))
    except BlockingIOError:
        kept.append(server)
        return s


def add_table(sock, offset, log2):
    message(sock, 5, struct.pack('<HHHIBH', 1, 1, 0, offset, log2, 0))
    answer(sock, 1)


# Its end, its begin, its alignment and its length are wrong, each by the least.
tables = [(SIZE - 124, 0), (SIZE + 4, 0), (2, 0), (0, 11)]


def rubbish(mac):
    other = mac[:5] + bytes([mac[5] % 2 + 1])
    frames = [frame(other, other)[:100], os.urandom(124), bytes([255] * 6) + mac + b'\x08\x06',
              b'']
    lengths = [100, 124, 20, 125]
    return b''.join(struct.pack('<I', n) + f.ljust(124, b'\0') for n, f in zip(lengths, frames))


def connect(grant):
    fd = region()
    if what == 'lingering':
        slow = lingering()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.settimeout(60)
    sock.connect(grant[15].split(b'\0')[0].decode())
    answer(sock, 2)
    message(sock, 3, struct.pack('<HIB24s32s', 0x200, grant[5], 0, grant[16], b'test'))
    answer(sock, 1)
    if what == 'lingering':
        message(sock, 1, b'', slow.fileno())
        # Whichever end closes it last waits: this thread must not.
        threading.Thread(target=slow.close, daemon=True).start()
    if what == 'spare':
        for _ in range(20):
            message(sock, 1, b'', fd, fd, fd)
    # Before the switch has it: from then on no other mapping may write.
    mem = mmap.mmap(fd, os.fstat(fd).st_size)
    message(sock, 4, struct.pack('<HQ', 0, SIZE), fd)
    answer(sock, 1)
    for ring in range(2):
        struct.pack_into('<I', mem, ring * RING, 0 if what == 'cookie' else 0x3E31F20)
        for i in range(SLOTS):
            struct.pack_into('<HHIII', mem, ring * RING + 128 + 16 * i, 0, 0, BSIZE,
                             2 * RING + (ring * SLOTS + i) * BSIZE, 0)
        message(sock, 5, struct.pack('<HHHIBH', 1 - ring, 0, 0, ring * RING, LOG2, 0),
                eventfd())
        answer(sock, 1)
    if what == 'table':
        add_table(sock, *tables.pop())
    elif what == 'rubbish':
        mem[2 * RING:2 * RING + 4 * 128] = rubbish(grant[13])
        add_table(sock, 2 * RING, 2)
    index(mem, RING + 6).value = SLOTS  # room for what comes: never taken
    message(sock, 6, b'test')
    answer(sock, 7)
    return sock, mem


class Sender:
    def __init__(self, mem):
        self.mem, self.head = mem, 0

    def send(self, frame, **desc):
        end = time.monotonic() + 60
        while (self.head - index(self.mem, 64).value) & 0xffff >= SLOTS:
            assert time.monotonic() < end, 'the switch takes nothing any more'
            time.sleep(0)
        slot = self.head % SLOTS
        at = 2 * RING + slot * BSIZE
        self.mem[at:at + len(frame)] = frame
        struct.pack_into('<HHIII', self.mem, 128 + 16 * slot, desc.get('flags', 0),
                         desc.get('region', 0), desc.get('length', len(frame)),
                         desc.get('offset', at), 0)
        self.head = (self.head + 1) & 0xffff
        index(self.mem, 6).value = self.head


def frame(dst, src, ip=b'\xa9\xfe\x01\x01'):
    udp = struct.pack('>HHHH', 9338, 9338, 8, 0)
    packet = struct.pack('>BBHHHBBH', 0x45, 0, 28, 0, 0x4000, 64, 17, 0) + ip + bytes(4) + udp
    return dst + src + b'\x08\x00' + packet + bytes(60)


grant_sock, grant = ask()
own, mac = grant[5], grant[13]
others = [mac[:5] + bytes([1 + i]) for i in range(grant[6]) if i != own]
if what == 'known':
    grant_sock.close()
# The switch may learn that a port was given back later than its last process comes again.
until = time.monotonic() + (60 if what == 'known' else 0)
while what in ('unsealed', 'file', 'shrunk', 'huge', 'known', 'cookie', 'many', 'table'):
    try:
        connect(grant)[0].close()
        if what == 'table':
            sys.exit('a table was not refused')
    except ConnectionError as e:
        if what == 'table' and tables:
            continue
        print('connected as it is asked for, and refused:', e, flush=True)
        sys.exit(0)
    if time.monotonic() > until:
        sys.exit('it was not refused')
    time.sleep(0.1)
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
elif what == 'long':
    out.send(b'\x02' + bytes(5) + mac + b'\x88\xb5' + bytes(50), length=9100)
elif what == 'spare':
    try:
        message(sock, 1, b'', sock.fileno(), length=64)
    except PermissionError:  # since Linux 6.16: none may be sent once the rings are there
        message(sock, 1, b'', length=64)
    assert sock.recv(128) == b'', 'the connection goes on'
elif what == 'full':
    out.send(mac + mac + b'\x88\xb5' + bytes(50))
    assert sock.recv(128) == b'', 'the connection goes on'
elif what == 'lingering':
    ask()
    print('another process was served', flush=True)
elif what == 'memory':
    out.send(b'x' * 64, offset=SIZE - 8)
    out.send(b'x' * 64, offset=0xfffffff0)
    out.send(b'x' * 64, length=0xffffffff)
    out.send(b'x' * 64, region=7)
    out.send(b'x' * 64, flags=1)
    out.send(b'', length=0)
    time.sleep(0.2)
    index(mem, 6).value = (out.head + 1000) & 0xffff
time.sleep(0.3)
