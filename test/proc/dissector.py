#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""dissector.py BUILD: Wireshark's dissector and weft-dump read the same from every frame, field by
field. Their tables are made from lib/core/wire.def; the code that reads frames by them is written
twice, in Lua and in C. Prints TAP."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
sys.dont_write_bytecode = True

import tap  # noqa: E402

BUILD = sys.argv[1]
DUMP = os.path.join(BUILD, 'app', 'weft-dump')
LUA = os.path.join(BUILD, 'app', 'weft.lua')
EACH = 6  # frames of a kind that are compared: PDML is slow

# Program, test, and what its capture has to hold.
TRAFFIC = [
    ('sys_message', 'every_size_over_4_lanes', 'eager frag rts pull data ats wireup credit'),
    ('sys_rma', 'random_puts_gets_and_atomics', 'put get get_data amo amo_rep rma_flush'),
    ('sys_path', 'the_mtu_shrinks_amid_messages', 'part probe'),
    ('lane_move', '', 'challenge'),
]
TRAFFIC_SLOW = [
    ('sys_message', 'all_datatypes_to_all_expected_sync_truncated', 'eager_sync frag_sync'),
    ('sys_rma', 'active_messages_come_once', 'am am_frag am_rts'),
    ('sys_failover', 'a_lost_link_is_left_at_once', 'wireup rx_state'),
]


def kind_of(frame):
    """What makes two frames alike: type and flags, and the first message."""
    if frame[:2] == b'\x57\x72':
        return 'record', frame[3], frame[4], frame[6]
    at = frame.find(b'\x57\x66', 14)
    if at not in (14, 18, 42, 46) or len(frame) < at + 48:
        return None
    kind, = struct.unpack_from('<H', frame, at + 3)
    return (kind, frame[at + 44:at + 47:2]) if frame[at + 3] == 7 else kind


def thinned(path):
    """Rewrites a capture of the simulator with a few frames of each kind."""
    with open(path, 'rb') as f:
        data = f.read()
    kept, off, seen = [], 0, {}
    while off < len(data):
        block, length = struct.unpack_from('<II', data, off)
        if block == 6:
            kind = kind_of(data[off + 28:off + 200])
            seen[kind] = seen.get(kind, 0) + 1
        if block != 6 or seen[kind] <= EACH:
            kept.append(data[off:off + length])
        off += length
    with open(path, 'wb') as f:
        f.write(b''.join(kept))


def walked(items, prefix):
    """(name, value) of all fields that JSON has, in the order of the bytes."""
    for name, value in items.items():
        if isinstance(value, list):
            for one in value:
                yield from walked(one, 'weft.%s.' % one['name'])
        elif name not in ('name', 'wrong') and not name.endswith('_name'):
            yield prefix + name, str(value)


def from_dump(path, *options):
    out = subprocess.run([DUMP, '-F', '-j', *options, path], stdout=subprocess.PIPE, check=False,
                         text=True).stdout
    frames = {}
    for line in out.splitlines():
        frame = json.loads(line)
        # Some tests of the simulator send messages that are none of the protocol's.
        if frame['kind'] in ('lane', 'record') and '"wrong"' not in line:
            frames[frame['number']] = list(walked(frame['weft'], 'weft.'))
    return frames


# What is not in the frame, or has another form there.
OWN = ('weft.flags.', 'weft.crc', 'weft.expert', 'weft.retransmission_of', 'weft.duplicate_of',
       'weft.message_', 'weft.stream', 'weft.missing', 'weft.answer_', 'weft.response_time')


def from_tshark(path):
    command = ['tshark', '-X', 'lua_script:' + LUA, '-r', path, '-T', 'pdml', '-J', 'frame weft']
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    frames, number, fields = {}, 0, []
    for packet in ElementTree.fromstring(done.stdout).iter('packet'):
        fields = []
        for field in packet.iter('field'):
            name, show = field.get('name'), field.get('show')
            if name == 'frame.number':
                number = int(show)
            elif name == '_ws.malformed':
                raise AssertionError('frame %d: %s' % (number, field.get('showname')))
            elif name.startswith('weft.') and not name.startswith(OWN):
                fields.append((name, show))
        frames[number] = fields
    return frames


def same(ours, theirs):
    if ours == theirs:
        return True
    try:  # singles: printed with other digits
        return abs(float(ours) - float(theirs)) <= 1e-5 * abs(float(ours))
    except ValueError:
        return False


def compare(path):
    """@return the names of all items there were"""
    ours, theirs = from_dump(path), from_tshark(path)
    names = set()
    assert ours, 'no frame in ' + path
    for number, fields in ours.items():
        other = theirs[number]
        assert [f[0] for f in fields] == [f[0] for f in other], \
            'frame %d:\n%s\n%s' % (number, [f for f in fields if f not in other],
                                   [f for f in other if f not in fields])
        for (name, a), (_, b) in zip(fields, other):
            assert same(a, b), 'frame %d: %s is %s and %s' % (number, name, a, b)
        names.update(f[0].split('.')[1] for f in fields)
    return names


# @behaviour Y20: `lib/core/wire.def` alone describes the wire: the structs, weft-dump, Wireshark's
# dissector and the tables of `doc/wire.md` are made from it, and both programs show the same fields
def the_dissector_and_weft_dump_read_the_same_fields(program, test, wanted):
    def check():
        with tempfile.TemporaryDirectory(prefix='weft-dissector.') as folder:
            path = os.path.join(folder, 'c.pcapng')
            command = [os.path.join(BUILD, 'test', 'sim', 'sim_' + program), '-k', test, '-n', '1',
                       '-w', path]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  check=False, text=True)
            assert done.returncode == 0 and os.path.exists(path), done.stdout[-2000:]
            thinned(path)
            names = compare(path)
            missing = set(wanted.split()) - names
            assert not missing, 'no %s in this traffic' % ' '.join(sorted(missing))

    check.__name__ = '%s %s' % (program, test)
    return check


def block(kind, body):
    body += bytes(-len(body) % 4)
    size = struct.pack('<I', len(body) + 12)
    return struct.pack('<I', kind) + size + body + size


def what_the_simulator_does_not_send():
    """EXT with an EAGER and with a FRAG in it, and an ECN block."""
    eager = struct.pack('<BBHHHQIQ', 2, 1, 7, 8, 0, 0x1122334455667788, 3, 4) + b'data'
    frag = struct.pack('<BBHHHQIQQQ', 4, 0, 7, 8, 0, 0, 3, 4, 100, 10) + b'piece'
    body = b''.join(struct.pack('<HBB', len(m), 19, 0) + m for m in (eager, frag))
    ecn = struct.pack('<HHBBHBBH', 2, 0, 0, 0, 5, 1, 0, 6)
    out = block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1))
    out += block(1, struct.pack('<HHI', 1, 0, 0))
    for flags, kind, rest in ((0, 7, body), (0x10, 8, ecn)):
        frame = ethernet(kind, flags, rest)
        out += block(6, struct.pack('<IIIII', 0, 0, 0, len(frame), len(frame)) + frame)
    with tempfile.NamedTemporaryFile(prefix='weft-dissector.') as file:
        file.write(out)
        file.flush()
        names = compare(file.name)
    assert {'ext', 'eager', 'frag', 'ecn'} <= names, names


def ethernet(kind, flags, rest):
    return bytes(12) + b'\x88\xb5' + struct.pack('<HBBHHIIIIHBBIIIH', 0x6657, 2, kind, flags,
                                                 42 + len(rest), 1, 2, 3, 4, 5, 0, 0, 6, 7, 8,
                                                 9) + rest


def withdrawn_credit_is_expert_information():
    """CREDIT with the record WINDOW, and without one."""
    credit = struct.pack('<QIII', 4096, 1, 2, 3)
    out = block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1))
    out += block(1, struct.pack('<HHI', 1, 0, 0))
    for rest in (credit, credit + struct.pack('<HHQ', 2, 8, 2048)):
        frame = ethernet(7, 0, struct.pack('<HBB', len(rest), 11, 0) + rest)
        out += block(6, struct.pack('<IIIII', 0, 0, 0, len(frame), len(frame)) + frame)
    with tempfile.NamedTemporaryFile(prefix='weft-dissector.') as file:
        file.write(out)
        file.flush()
        assert 'credit' in compare(file.name)
        rows = rows_of(file.name, '-Y', 'weft.expert.credit', '-e', 'frame.number', '-e',
                       'weft.window.window')
    assert rows == [['2', '2048']], rows


def lane_frame(way, seq, kind, message):
    """A DATA frame with one message."""
    body = struct.pack('<HBB', len(message), kind, 0) + message
    return bytes(12) + b'\x88\xb5' + struct.pack('<HBBHHIIIIHBBIIIH', 0x6657, 2, 7, 0,
                                                 42 + len(body), 1 + way, 2 + way, seq, 4, 5, 0,
                                                 0, seq, 7, 8, 9) + body


def wireup(way, kind, records=b''):
    """Of the workers 1 and 2, in the direction @way."""
    return struct.pack('<BBBBIQQIIIIHHHHQQ', kind, 3, 0, 0, 5, 1 + way, 2 - way, 0, 0, 0, 0, 0, 0,
                       len(records), 0, 6, 7) + records


def spent_credit_is_expert_information():
    """Bytes, and the number of messages that take none, over a wire-up and a CREDIT."""
    first = struct.pack('<QIII', 1000, 100, 3, 100)
    eager = struct.pack('<IQ', 0, 1)
    rts = struct.pack('<IQQIII', 0, 1, 500, 0, 0, 0)
    frames = [
        lane_frame(0, 1, 1, wireup(0, 1)),  # REQ
        lane_frame(1, 1, 1, wireup(1, 2, struct.pack('<HH', 4, len(first)) + first)),  # REP
        lane_frame(0, 2, 2, eager + bytes(8)),
        lane_frame(0, 3, 2, eager + bytes(600)),
        lane_frame(0, 4, 6, rts),  # 5: shorter than what was sent whole, and 400 bytes are left
        lane_frame(0, 5, 2, eager + bytes(8)),  # 6: the third of three
        lane_frame(0, 5, 2, eager + bytes(8)),  # a duplicate
        lane_frame(1, 2, 11, struct.pack('<QIII', 1200, 100, 5, 100)),  # CREDIT
        lane_frame(0, 6, 2, eager + bytes(8)),
        lane_frame(0, 7, 2, eager + bytes(400)),  # 10: 200 bytes are left
        lane_frame(0, 8, 2, struct.pack('<IQ', 99, 1)),  # 11: the last sequence, and the fifth
    ]
    out = block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1))
    out += block(1, struct.pack('<HHI', 1, 0, 0))
    for frame in frames:
        out += block(6, struct.pack('<IIIII', 0, 0, 0, len(frame), len(frame)) + frame)
    with tempfile.NamedTemporaryFile(prefix='weft-dissector.') as file:
        file.write(out)
        file.flush()
        assert {'wireup', 'eager', 'rts', 'credit'} <= compare(file.name)
        rows = rows_of(file.name, '-Y', 'weft.expert.credit_spent', '-e', 'frame.number')
    assert rows == [['5'], ['6'], ['10'], ['11']], rows


SEALED = [
    # Program, test, and kinds of frames that its capture has to hold.
    ('lane_sealed', 'every_mode_seals_all_frames', 'PROBE PROBE_ACK READY READY_ACK DATA ACK'),
    ('lane_sealed', 'parts_and_an_mtu_that_falls', 'PART PROBE'),
    ('lane_attack', 'a_replayed_hello_replaces_nothing', 'HELLO HELLO_ACK BYE BYE_ACK RESET'),
    ('lane_sealed', 'keys_are_replaced_when_old', 'PROBE PROBE_ACK DATA ACK'),
]
# What differs between a sealed frame and the plain one in it.
OF_SEAL = ('weft.flags', 'weft.length')


# @behaviour Y76: with the key log, weft-dump --decrypt writes the frames in sealed ones as plain
# frames, of every kind, which Wireshark's dissector and weft-dump read alike
def sealed_frames_are_dissected_after_decrypt(program, test, wanted):
    def check():
        with tempfile.TemporaryDirectory(prefix='weft-dissector.') as folder:
            sealed, plain, keys = (os.path.join(folder, n) for n in ('s.pcapng', 'p.pcapng', 'k'))
            done = subprocess.run([os.path.join(BUILD, 'test', 'sim', 'sim_' + program), '-k',
                                   test, '-n', '1', '-w', sealed],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                                  text=True, env=dict(os.environ, SIM_KEYLOG=keys))
            assert done.returncode == 0, done.stdout[-2000:]
            done = subprocess.run([DUMP, '--keylog', keys, '--decrypt', '--slice', plain, sealed],
                                  stderr=subprocess.PIPE, check=True, text=True)
            assert 'no key opens' not in done.stderr, done.stderr
            counts = [json.loads(subprocess.run([DUMP, '-j', *more], stdout=subprocess.PIPE,
                                                check=False).stdout)
                      for more in (['--keylog', keys, sealed], [plain], [sealed])]
            assert counts[2]['sealed'] > 10 and not counts[1]['sealed'], counts
            kinds = [{k[6:]: n for k, n in c['counts'].items() if k.startswith('frame ')}
                     for c in counts[:2]]
            assert kinds[0] == kinds[1], kinds
            missing = set(wanted.split()) - kinds[0].keys()
            assert not missing, (missing, kinds)
            read, written = from_dump(sealed, '--keylog', keys), from_dump(plain)
            assert read.keys() == written.keys()
            for number, fields in written.items():
                ours = [f for f in fields if f[0] not in OF_SEAL]
                assert ours == [f for f in read[number] if f[0] not in OF_SEAL], number
            thinned(plain)
            compare(plain)

    check.__name__ = 'sealed frames: ' + test
    return check


def complaints(path):
    done = subprocess.run(['tshark', '-X', 'lua_script:' + LUA, '-r', path, '-Y',
                           'weft.expert.wrong || _ws.malformed'], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=True, text=True)
    return done.stdout


# @behaviour Y29
def messages_of_shared_memory():
    """What two workers exchange over shm, as message records."""
    with tempfile.TemporaryDirectory(prefix='weft-dissector.') as folder:
        path = os.path.join(folder, 'c.pcapng')
        subprocess.run([os.path.join(BUILD, 'test', 'unit', 'test_shm_worker')], check=True,
                       env=dict(os.environ, WEFT_CAPTURE=path), stdout=subprocess.DEVNULL)
        thinned(path)
        names = compare(path)
        missing = {'record', 'wireup', 'eager', 'rts', 'ats', 'native', 'put'} - names
        assert not missing, 'no %s in this traffic' % ' '.join(sorted(missing))
        assert not complaints(path), complaints(path)


# @behaviour Y29
def messages_of_roce_lanes():
    """What two workers exchange over a RoCE lane, whose device is the tests' own, and a raw one."""
    with tempfile.TemporaryDirectory(prefix='weft-dissector.') as folder:
        path = os.path.join(folder, 'c.pcapng')
        subprocess.run([os.path.join(BUILD, 'test', 'sim', 'sim_sys_roce'), '-k',
                        'mixed_traffic_over_a_roce_and_a_raw_lane', '-s', '2', '-n', '1'],
                       check=True, env=dict(os.environ, SIM_CAPTURE=path),
                       stdout=subprocess.DEVNULL)
        done = subprocess.run([DUMP, '-j', path], stdout=subprocess.PIPE, check=True, text=True)
        report = json.loads(done.stdout)
        records = [f for lane in report['lanes'] for f in lane if f['records']]
        assert {f['from'].split(':')[0] for f in records} == {'roce'}, records
        assert any(not f['records'] for lane in report['lanes'] for f in lane), report['lanes']
        assert sum(f['frames'] for f in records) > 20, records
        assert any('reads' in f or 'writes' in f for f in records), records
        assert report['wrong'] == 0, report['wrong']
        # Both ends' records are in it, by one clock: each message is whole, and on time.
        for what in ('stray_pieces', 'messages_unfinished', 'messages_left'):
            assert report[what] == 0, (what, report[what])
        assert not report['anomalies'], report['anomalies']
        thinned(path)
        names = compare(path)
        missing = {'record', 'eager', 'native'} - names
        assert not missing, 'no %s in this traffic' % ' '.join(sorted(missing))
        assert not complaints(path), complaints(path)


# @behaviour Y29
def native_operations_of_lanes():
    """A write, an addition and a comparison, posted and done; and records that are none."""
    head, body = '<HBBBBHIIQQ', struct.pack('<QQQQII', 64, 0xaabb, 3, 4, 5, 6)
    out = block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1))
    out += block(1, struct.pack('<HHI', 162, 0, 0))
    records = [struct.pack(head, 0x7257, 1, kind, 0, 2, done, 4096, 1, 7, 8) + body
               for kind in (3, 4, 5) for done in (0, 1)]
    wrong = [struct.pack(head, 0x7257, 1, 9, 0, 2, 0, 40, 1, 7, 8) + body,
             struct.pack(head, 0x7257, 1, 1, 2, 2, 0, 99, 1, 7, 8) + body, b'Wr']
    for r in records + wrong:
        out += block(6, struct.pack('<IIIII', 0, 0, 0, len(r), len(r)) + r +
                     bytes(-len(r) % 4))
    with tempfile.NamedTemporaryFile(prefix='weft-dissector.') as file:
        file.write(out)
        file.flush()
        names = compare(file.name)
        assert {'record', 'native'} <= names, names
        assert len(complaints(file.name).splitlines()) == len(wrong), complaints(file.name)


def a_message_in_a_frame_of_roce():
    """As tcpdump has it of a network device with rxe: EAGER in a SEND with immediate data."""
    eager = struct.pack('<IQ', 0x1234, 8) + b'data'
    bth = struct.pack('>BBHII', 5, 0x40, 0xffff, 17, 1)
    payload = bth + struct.pack('>I', 2 << 25 | 3) + eager + bytes(4)
    udp = struct.pack('>HHHH', 50000, 4791, 8 + len(payload), 0)
    ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + len(udp) + len(payload), 0, 0, 64, 17, 0,
                     bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    frame = bytes(12) + b'\x08\x00' + ip + udp + payload
    out = block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1))
    out += block(1, struct.pack('<HHI', 1, 0, 0))
    out += block(6, struct.pack('<IIIII', 0, 0, 0, len(frame), len(frame)) + frame +
                 bytes(-len(frame) % 4))
    with tempfile.NamedTemporaryFile(prefix='weft-dissector.') as file:
        file.write(out)
        file.flush()
        done = subprocess.run(['tshark', '-X', 'lua_script:' + LUA, '-r', file.name, '-T', 'fields',
                               '-e', 'weft.eager.seq', '-e', 'weft.eager.tag', '-e',
                               'weft.eager.bytes', '-e', '_ws.malformed'], check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.stdout.split() == ['0x00001234', '0x0000000000000008', '4'], done.stdout


def readme_filter():
    with open(os.path.join(ROOT, 'README.md'), encoding='utf-8') as f:
        return re.search(r"tshark .*-r FILE -Y '([^']+)'", f.read()).group(1)


def colours_connections_and_flows():
    """Of a run with loss: the profile's colours, one number for each connection, tshark -z flow."""
    with tempfile.TemporaryDirectory(prefix='weft-dissector.') as folder:
        subprocess.run([os.path.join(BUILD, 'test', 'sim', 'sim_faults'), '-k', 'random_loss', '-s',
                        '5', '-n', '1'], check=True, env=dict(os.environ, SIM_FAULTS=folder),
                       stdout=subprocess.DEVNULL)
        path = os.path.join(folder, 'a.pcapng')
        profile = os.path.join(folder, 'wireshark', 'profiles', 'Weft')
        os.makedirs(profile)
        shutil.copy(os.path.join(ROOT, 'app', 'dump', 'weft.colorfilters'),
                    os.path.join(profile, 'colorfilters'))
        env = dict(os.environ, XDG_CONFIG_HOME=folder, HOME=folder)
        command = ['tshark', '-X', 'lua_script:' + LUA, '-r', path, '-c', '5500']
        done = subprocess.run([*command, '-C', 'Weft', '--color', '-T', 'fields', '-e',
                               'frame.coloring_rule.name', '-e', 'weft.stream'],
                              env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=True)
        assert 'olor' not in done.stderr, done.stderr
        rows = [re.sub('\x1b\\[[0-9;]*m', '', line).split('\t')
                for line in done.stdout.splitlines()]
        rules = {r[0] for r in rows}
        wanted = {'Weft ' + w for w in ('sent again', 'connects', 'wireup', 'acknowledges', 'data')}
        assert wanted <= rules, rules
        assert {r[1] for r in rows if len(r) > 1 and r[1]} == {'0', '1'}, 'not two connections'
        again = subprocess.run([*command, '-Y', readme_filter()], env=env, text=True,
                               stdout=subprocess.PIPE, check=True).stdout.splitlines()
        assert again and all('[' in line and 'RETX' in line for line in again), again[:3]
        flow = subprocess.run([*command, '-q', '-z', 'flow,any,standard'],
                              stdout=subprocess.PIPE, text=True, check=True, env=env).stdout
        assert 'HELLO' in flow and 'DATA' in flow, flow


def rows_of(path, *arguments):
    """The fields that -e names, of each frame that has passed -Y."""
    done = subprocess.run(['tshark', '-X', 'lua_script:' + LUA, '-r', path, '-T', 'fields',
                           *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=True, text=True)
    return [line.split('\t') for line in done.stdout.splitlines()]


def missing_frames_and_answers():
    """The receiver's capture shows where frames of a path are missing, and which PROBE no frame
    has answered."""
    with tempfile.TemporaryDirectory(prefix='weft-dissector.') as folder:
        subprocess.run([os.path.join(BUILD, 'test', 'sim', 'sim_faults'), '-k', 'random_loss', '-s',
                        '5', '-n', '1'], check=True, env=dict(os.environ, SIM_FAULTS=folder),
                       stdout=subprocess.DEVNULL)
        a, b = (os.path.join(folder, name + '.pcapng') for name in 'ab')
        report = json.loads(subprocess.run([DUMP, '-j', a, b], stdout=subprocess.PIPE,
                                           check=True).stdout)
        for path in (a, b):
            lost = sum(f['lost'] for lane in report['lanes'] for f in lane
                       if f['to_file'] == path)
            # Direction 1: frames that came in.
            missing = rows_of(path, '-Y', 'weft.missing && frame.packet_flags_direction == 1',
                              '-e', 'weft.missing')
            # Frames other than DATA are lost, too, and have no order of their own.
            noted = sum(int(r[0]) for r in missing)
            assert lost / 2 <= noted <= lost, (path, missing, lost)
            assert not rows_of(path, '-Y', 'weft.missing && frame.packet_flags_direction == 2',
                               '-e', 'weft.missing')
        assert sum(f['lost'] for lane in report['lanes'] for f in lane) > 20, report['lanes']
        asked = rows_of(a, '-2', '-Y', 'weft.type == 3', '-e', 'frame.number', '-e',
                        'weft.answer_in', '-e', 'weft.expert.unanswered')
        rows = rows_of(a, '-2', '-Y', 'weft.type == 4', '-e', 'frame.number', '-e',
                       'weft.answer_to', '-e', 'frame.time_relative', '-e', 'weft.response_time')
        answers = {row[0]: row[1] for row in rows}
        sent = dict(rows_of(a, '-Y', 'weft.type == 3', '-e', 'frame.number', '-e',
                            'frame.time_relative'))
        for _, question, time, response in rows:
            assert not question or \
                abs(float(time) - float(sent[question]) - float(response)) < 2e-9, rows
        assert asked and answers, (asked, answers)
        for number, answer, unanswered in asked:
            assert bool(answer) != bool(unanswered), asked
            assert not answer or answers[answer] == number, (asked, answers)


def the_build_makes_it_of_template_and_wire_def():
    """A change of either is a step of ninja, not a new configuration."""
    with open(os.path.join(BUILD, 'build.ninja'), encoding='utf-8') as f:
        edges = [line for line in f if line.startswith('build app/weft.lua:')]
    assert len(edges) == 1, edges
    for name in 'app/dump/weft.lua.in', 'lib/core/wire.def', 'devtools/wiredef.py':
        assert name in edges[0], (name, edges)


def a_filter_gives_what_all_fields_give():
    """Without a shown tree only the fields of filters are added: these have the same values."""
    names = ('weft.type', 'weft.flags.retx', 'weft.stream', 'weft.seq', 'weft.eager.tag',
             'weft.frag.offset', 'weft.credit.bytes', 'weft.retransmission_of',
             'weft.message_first', 'weft.message_frame', 'weft.sack.word', 'weft.crc')
    with tempfile.TemporaryDirectory(prefix='weft-dissector.') as folder:
        subprocess.run([os.path.join(BUILD, 'test', 'sim', 'sim_faults'), '-k', 'random_loss', '-s',
                        '5', '-n', '1'], check=True, env=dict(os.environ, SIM_FAULTS=folder),
                       stdout=subprocess.DEVNULL)
        path = os.path.join(folder, 'a.pcapng')
        done = subprocess.run(['tshark', '-X', 'lua_script:' + LUA, '-r', path, '-c', '1500', '-T',
                               'pdml', '-J', 'frame weft'], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=True)
        shown = {name: [] for name in names}
        for packet in ElementTree.fromstring(done.stdout).iter('packet'):
            of = {}
            for field in packet.iter('field'):
                of.setdefault(field.get('name'), []).append(field.get('show'))
            for name in names:
                if name in of:
                    shown[name].append(','.join(of[name]))
        for name in names:
            rows = [r[0] for r in rows_of(path, '-c', '1500', '-Y', name, '-e', name)]
            # The loss may begin later: then neither has a retransmission, or a SACK.
            assert rows or name in ('weft.retransmission_of', 'weft.sack.word'), name
            assert rows == shown[name], (name, rows[:3], shown[name][:3])


def main():
    try:
        subprocess.run(['tshark', '-v'], stdout=subprocess.DEVNULL, check=True)
    except FileNotFoundError:
        print('tshark is not installed')
        sys.exit(77)
    seal = os.path.exists(os.path.join(BUILD, 'test', 'sim', 'sim_lane_sealed'))
    tap.run([the_dissector_and_weft_dump_read_the_same_fields(*t) for t in TRAFFIC] +
            [tap.slow(the_dissector_and_weft_dump_read_the_same_fields(*t)) for t in TRAFFIC_SLOW] +
            [sealed_frames_are_dissected_after_decrypt(*t) for t in SEALED if seal] +
            [what_the_simulator_does_not_send, messages_of_shared_memory,
             messages_of_roce_lanes, native_operations_of_lanes, a_message_in_a_frame_of_roce,
             colours_connections_and_flows, missing_frames_and_answers,
             withdrawn_credit_is_expert_information, spent_credit_is_expert_information,
             the_build_makes_it_of_template_and_wire_def,
             tap.slow(a_filter_gives_what_all_fields_give)])


if __name__ == '__main__':
    main()
