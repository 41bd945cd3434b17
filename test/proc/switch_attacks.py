# SPDX-License-Identifier: BSD-3-Clause
"""switch_attacks.py BUILD: what a local user does to stop weft-switch, or its other users.

Each case starts a switch, attacks it as one user or several, and measures what another user sees.
"""

import array
import contextlib
import ctypes
import fcntl
import mmap
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from tap import run

GRANT = struct.Struct('<IHHiIHHHHIIBB6sI108s24s256s')
F_ADD_SEALS, F_SEAL_SHRINK = 1033, 2
MIB = 1 << 20
libc = ctypes.CDLL(None, use_errno=True)
build = os.path.abspath(sys.argv[1])


class Refused(Exception):
    pass


# ---- the switch -----------------------------------------------------------------------------


class Switch:
    def __init__(self, *options):
        self.folder = tempfile.mkdtemp(prefix='weft-switch.', dir='/tmp')
        os.chmod(self.folder, 0o755)
        self.path = os.path.join(self.folder, 'sock')
        self.err = open(os.path.join(self.folder, 'err'), 'w+')
        self.program = subprocess.Popen(
            [os.environ.get('WEFT_TEST_SWITCH', build + '/app/weft-switch'), '--no-huge', '-m',
             '64', '--no-pci', '--no-shconf', '--', '-p', self.path, '-M', '666', '-S', '50',
             *options, 'none'], stdout=subprocess.PIPE, stderr=self.err, text=True)
        if ' ports at ' not in self.program.stdout.readline():
            raise RuntimeError('weft-switch did not start')

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.program.kill()
        self.program.communicate()
        subprocess.run(['rm', '-rf', self.folder], check=True)

    def log(self):
        self.err.flush()
        return open(self.err.name).read()

    def resident(self):
        """Bytes of shared memory that the switch has touched."""
        text = open('/proc/%d/status' % self.program.pid).read()
        return int(re.search(r'RssShmem:\s+(\d+)', text).group(1)) * 1024


# ---- a client -------------------------------------------------------------------------------


def message(sock, kind, body=b'', *fds):
    data = (struct.pack('<H', kind) + body).ljust(128, b'\0')
    anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else []
    sock.sendmsg([data], anc)


def answer(sock, kind):
    got = sock.recv(128)
    if len(got) != 128 or struct.unpack_from('<H', got)[0] != kind:
        raise Refused(got[6:].split(b'\0')[0].decode(errors='replace'))


def connect(path):
    """It blocks as Weft's client does: where the queue is full, it waits for its turn."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        s.setsockopt(socket.SOL_SOCKET, option, struct.pack('ll', 30, 0))
    s.connect(path)
    return s


class Port:
    """A grant, and by join() a memif port that sends frames to itself."""

    def __init__(self, path):
        self.grant = connect(path)
        f = GRANT.unpack(self.grant.recv(4096))
        if f[3]:
            raise Refused(f[-1].split(b'\0')[0].decode())
        self.number, self.log2, self.mac, self.bsize = f[5], f[12], f[13], f[14]
        self.memif, self.secret = f[15].split(b'\0')[0].decode(), f[16]
        self.slots = 1 << self.log2
        self.ring = 128 + self.slots * 16
        self.size = -(-(2 * self.ring + 2 * self.slots * self.bsize) // 4096) * 4096
        self.head = 0

    def init(self):
        self.sock = connect(self.memif)
        answer(self.sock, 2)
        message(self.sock, 3, struct.pack('<HIB24s32s', 0x200, self.number, 0, self.secret,
                                          b'attack'))
        answer(self.sock, 1)

    def region(self, size=None, file_size=None):
        size = size or self.size
        self.fd = os.memfd_create('attack', os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, file_size or size)
        fcntl.fcntl(self.fd, F_ADD_SEALS, F_SEAL_SHRINK)
        self.mem = mmap.mmap(self.fd, size)
        message(self.sock, 4, struct.pack('<HQ', 0, size), self.fd)
        answer(self.sock, 1)

    def rings(self):
        self.events = [os.eventfd(0), os.eventfd(0)]
        for ring in range(2):
            at = ring * self.ring
            struct.pack_into('<IH', self.mem, at, 0x3E31F20, 0)
            for i in range(self.slots):
                struct.pack_into('<HHIII', self.mem, at + 128 + 16 * i, 0, 0, self.bsize,
                                 2 * self.ring + (ring * self.slots + i) * self.bsize, 0)
            message(self.sock, 5, struct.pack('<HHHIBH', 1 - ring, 0, 0, at, self.log2, 0),
                    self.events[ring])
            answer(self.sock, 1)
        self.out_head, self.out_tail, self.in_head, self.in_tail = (
            ctypes.c_uint16.from_buffer(self.mem, at)
            for at in (6, 64, self.ring + 6, self.ring + 64))
        self.in_head.value = self.slots
        message(self.sock, 6, b'attack')
        answer(self.sock, 7)

    def join(self, **region):
        self.init()
        self.region(**region)
        self.rings()
        return self

    def send(self, frame):
        slot = self.head % self.slots
        at = 2 * self.ring + slot * self.bsize
        self.mem[at:at + len(frame)] = frame
        struct.pack_into('<I', self.mem, 128 + 16 * slot + 4, len(frame))
        self.head = (self.head + 1) & 0xffff
        self.out_head.value = self.head

    def ping(self, patience=20):
        """Seconds until a frame to itself has come."""
        tail = self.in_tail.value
        self.in_head.value = (tail + self.slots) & 0xffff
        begin = time.monotonic()
        self.send((self.mac + self.mac + b'\x88\xb5').ljust(64, b'\0'))
        while self.in_tail.value == tail:
            if time.monotonic() - begin > patience:
                raise TimeoutError('no frame in %d s' % patience)
            time.sleep(0.0002)
        return time.monotonic() - begin

    def pings(self, seconds):
        end = time.monotonic() + seconds
        times = []
        while time.monotonic() < end:
            times.append(self.ping())
            time.sleep(0.002)
        return sorted(times)


# ---- users ----------------------------------------------------------------------------------


def become(uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


@contextlib.contextmanager
def user(uid, action, namespace=None):
    """A process of that user runs something, reports a line, and stays until the block ends."""
    report, child_end = os.pipe()
    mapped, go = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            become(uid)
            if namespace:
                if libc.unshare(0x10000000):
                    raise OSError(ctypes.get_errno(), 'unshare')
                os.write(mapped[1], b'x')
                os.read(go[0], 1)
                become(namespace[1])
            line = action() or 'ok'
        except BaseException as e:  # the parent fails for it
            line = 'failed: %s %s' % (type(e).__name__, e)
            if os.environ.get('WEFT_TEST_TRACE'):
                traceback.print_exc()
        os.write(child_end, line.encode() + b'\n')
        signal.pause()
        os._exit(0)
    if namespace:
        os.read(mapped[0], 1)
        for kind in ('uid', 'gid'):
            with open('/proc/%d/%s_map' % (pid, kind), 'w') as f:
                f.write('0 %d 1000' % namespace[0])
        os.write(go[1], b'x')
    for fd in (child_end, *mapped, *go):
        os.close(fd)
    try:
        with os.fdopen(report) as f:
            yield f.readline().strip()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def in_background(uid, action):
    """The same, without waiting for its report."""
    pid = os.fork()
    if pid:
        return pid
    try:
        become(uid)
        action()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def lingering(kept=[]):
    """A TCP socket with data that its peer does not read: its last close() waits for a day."""
    server, s = socket.socket(), socket.socket()
    server.bind(('127.0.0.1', 0))
    server.listen()
    kept.append(server)
    s.connect(server.getsockname())
    s.setblocking(False)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 86400))
    with contextlib.suppress(BlockingIOError):
        while True:
            s.send(bytes(1 << 16))
    return s


def take_ports(path, joined, kept):
    """As many as the switch gives."""
    try:
        while len(kept) < 64:
            port = Port(path)
            kept.append(port.join() if joined else port)
    except Refused:
        pass
    return str(len(kept))


# ---- cases ----------------------------------------------------------------------------------


def beside(switch, uid, attack, seconds=4):
    """The pings of another user's port before and under an attack, medians and longest."""
    port = Port(switch.path).join()
    before = port.pings(1)
    pid = in_background(uid, attack)
    try:
        time.sleep(0.3)
        under = port.pings(seconds)
        with user(2003, lambda: str(Port(switch.path).join().ping() < 20)) as line:
            served = line == 'True'
        if os.waitpid(pid, os.WNOHANG)[0]:
            raise RuntimeError('the attack has ended')
    finally:
        end(pid)
    for name, t in (('before', before), ('under attack', under)):
        print('# %s: n %d median %.2f ms p99 %.2f ms longest %.2f ms' % (
            name, len(t), t[len(t) // 2] * 1e3, t[len(t) * 99 // 100] * 1e3, t[-1] * 1e3))
    return before, under, served


def lingering_flood():
    """2900 descriptors behind a socket whose close() lingers, then another such socket."""
    with Switch('-n', '8') as switch:
        memif = switch.path + '.memif'

        def send(*fds):
            s = connect(memif)
            try:
                answer(s, 2)
                message(s, 1, b'', *fds)
                time.sleep(0.005)
            except (Refused, OSError):
                return False
            return True

        def send_slow():
            s = lingering()
            memif_socket = connect(memif)
            answer(memif_socket, 2)
            try:
                message(memif_socket, 1, b'', s.fileno())
            except PermissionError:  # since Linux 6.16 the switch lets none be sent
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 0, 0))
            s.close()
            return memif_socket

        def attack():
            null = os.open('/dev/null', os.O_RDONLY)
            kept1.append(send_slow())
            time.sleep(0.1)
            for _ in range(12):
                send(*[null] * 253)
            time.sleep(0.2)
            kept1.append(send_slow())
            signal.pause()

        _, _, served = beside(switch, 2001, attack)
        return served


def fill_counter(event):
    """ULLONG_MAX, which write() does not reach but the kernel's own completions do."""
    ctx = fill_counter.ctx
    if not ctx.value and libc.syscall(206, 4, ctypes.byref(ctx)):
        raise OSError(ctypes.get_errno(), 'io_setup')
    os.eventfd_write(event, (1 << 64) - 2)
    buf = ctypes.create_string_buffer(8)
    zero = os.open('/dev/zero', os.O_RDONLY)
    # data, key, rw_flags, opcode (pread), prio, fd, buf, nbytes, offset, reserved, flags, resfd
    cb = ctypes.create_string_buffer(struct.pack(
        '<QIiHhIQQqQII', 0, 0, 0, 0, 0, zero, ctypes.addressof(buf), 8, 0, 0, 1, event))
    one = (ctypes.c_void_p * 1)(ctypes.addressof(cb))
    if libc.syscall(209, ctx, ctypes.c_long(1), one) != 1:
        raise OSError(ctypes.get_errno(), 'io_submit')
    done = ctypes.create_string_buffer(32)
    libc.syscall(208, ctx, ctypes.c_long(1), ctypes.c_long(1), done, None)
    os.close(zero)


fill_counter.ctx = ctypes.c_ulong(0)


def eventfd_at_its_end():
    """Emptied within 10 ms, it would block each wake-up without being noticed."""
    with Switch('-n', '8') as switch:
        def attack():
            port = Port(switch.path).join()
            port.sock.setblocking(False)
            for n in range(40):
                fill_counter(port.events[1])
                port.ping()
                time.sleep(0.01)
                with contextlib.suppress(BlockingIOError):
                    if port.sock.recv(128) == b'':
                        return 'ended in round %d' % n
                os.eventfd_read(port.events[1])
            return 'never ended'

        with user(2001, attack) as line:
            print('#', line)
            log = switch.log()
        with user(2001, lambda: Port(switch.path) and 'granted') as again:
            print('#', again)
        return line.startswith('ended in round') and 'eventfd' in log and 'Refused' in again


def memory_without_pages():
    """A region of 512 MiB; and a small one in a file of 64 MiB."""
    def attack(path, **region):
        try:
            Port(path).join(**region)
        except Refused as e:
            return 'refused: %s' % e
        return 'taken'

    with Switch('-n', '8') as switch:
        with user(2001, lambda: attack(switch.path, size=512 * MIB)) as line:
            print('#', line)
            large = 'refused' in line
        with user(2001, lambda: attack(switch.path, file_size=64 * MIB)) as line:
            print('#', line)
            return large and 'refused' in line


def pages_are_there():
    """No page is made by a fault of the forwarder, and none can be cut out."""
    with Switch('-n', '8') as switch:
        def attack():
            port = Port(switch.path).join()
            there = os.fstat(port.fd).st_blocks * 512
            try:
                libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long,
                                           ctypes.c_long]
                cut = libc.fallocate(port.fd, 3, 0, port.size) == 0
            finally:
                pass
            return '%d of %d bytes there, hole cut: %s' % (there, port.size, cut)

        with user(2001, attack) as line:
            print('#', line)
            n = re.match(r'(\d+) of (\d+) bytes there, hole cut: False', line)
            return bool(n) and int(n[1]) >= int(n[2])


def ports_for_newcomers():
    """Two users take all they can; the next two have a port each."""
    with Switch('-n', '16') as switch:
        with user(2001, lambda: take_ports(switch.path, True, kept1)) as first, \
                user(2002, lambda: take_ports(switch.path, True, kept2)) as second, \
                user(2003, lambda: take_ports(switch.path, True, kept3)) as third, \
                user(2004, lambda: take_ports(switch.path, True, kept4)) as fourth:
            print('# ports of four users:', first, second, third, fourth)
            return first == '12' and second == third == fourth == '1'


kept1, kept2, kept3, kept4 = [], [], [], []


def namespaces_count_for_their_owner():
    """A user with more user ids in its namespaces has no more ports by them."""
    with Switch('-n', '8') as switch:
        kept = []
        with user(2001, lambda: take_ports(switch.path, True, kept)) as own, \
                user(2001, lambda: take_ports(switch.path, True, kept),
                     namespace=(300000, 5)) as inside, \
                user(2001, lambda: take_ports(switch.path, True, kept),
                     namespace=(300000, 6)) as inside2, \
                user(2002, lambda: take_ports(switch.path, True, kept)) as other:
            print('# ports: the user %s, in namespaces %s %s; another user %s' % (
                own, inside, inside2, other))
            return own == '6' and inside == inside2 == '0' and other == '1'


def idle_grants_return():
    """A grant that is not followed by a memif connection, or by half of one."""
    with Switch('-n', '4', '-u', '4') as switch:
        def half_way():
            kept = []
            try:
                while True:
                    kept.append(Port(switch.path))
                    kept[-1].init()
            except Refused:
                kept1.extend(kept)
            return str(len(kept))

        with user(2001, half_way) as taken:
            begin = time.monotonic()
            while time.monotonic() - begin < 30:
                with user(2002, lambda: 'port %d' % Port(switch.path).join().number) as line:
                    if line.startswith('port'):
                        break
                time.sleep(0.2)
            print('# %s grants; %s after %.1f s' % (taken, line, time.monotonic() - begin))
            return taken == '4' and line.startswith('port')


def connects_and_lines():
    """Connections as fast as they come, and secrets that are wrong: others are served."""
    with Switch('-n', '8') as switch:
        def attack():
            while True:
                with contextlib.suppress(OSError, Refused):
                    connect(switch.path).close()
                    connect(switch.path + '.memif').close()

        pids = [in_background(2001, attack) for _ in range(2)]
        try:
            time.sleep(2)
            begin = time.monotonic()
            with user(2002, lambda: 'port %d' % Port(switch.path).join().number) as line:
                took = time.monotonic() - begin
        finally:
            for pid in pids:
                end(pid)
        print('# %s in %.2f s; %d lines' % (line, took, switch.log().count('\n')))
        return line.startswith('port') and switch.log().count('\n') < 50


def lines_are_few():
    """An eventfd that is full, again and again."""
    with Switch('-n', '8', '-S', '0') as switch:
        def attack():
            n = 0
            stop = time.monotonic() + 3
            while time.monotonic() < stop:
                with contextlib.suppress(OSError, Refused):
                    port = Port(switch.path).join()
                    os.eventfd_write(port.events[1], (1 << 64) - 2)
                    port.send((port.mac + port.mac + b'\x88\xb5').ljust(64, b'\0'))
                    port.sock.recv(128)
                    n += 1
            return '%d times' % n

        with user(2001, attack) as line:
            lines = switch.log().count('\n')
            print('# %s, %d lines' % (line, lines))
            return 1 <= lines <= 9


def checked(case):
    def test():
        if not case():
            raise AssertionError('see the figures above')

    test.__name__ = case.__name__
    return test


if os.geteuid() != 0:
    print('1..0 # SKIP only root can become other users')
    sys.exit(0)
run([checked(c) for c in (
    lingering_flood,
    eventfd_at_its_end,
    memory_without_pages,
    pages_are_there,
    ports_for_newcomers,
    namespaces_count_for_their_owner,
    idle_grants_return,
    connects_and_lines,
    lines_are_few,
) if len(sys.argv) < 3 or sys.argv[2] in c.__name__])
