#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""plugin.py BUILD: Wireshark's plugin and weft.lua show the same of the same packets. Both read the
wire by code of their own, so a difference is an error of one of them. Prints TAP."""

import functools
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import dissector as lua_test  # noqa: E402
import pcapng_edit as edit  # noqa: E402
import tap  # noqa: E402

BUILD = sys.argv[1]
PLUGIN = os.path.join(BUILD, 'app', 'weft.so')
NOBODY = 65534
# Another user reads it: not the folder of a run, which only its user can enter.
FOLDER = tempfile.TemporaryDirectory(prefix='weft-plugin.', dir='/tmp')
HOME = {False: os.path.join(FOLDER.name, 'lua'), True: os.path.join(FOLDER.name, 'plugin')}
SAMPLE = 20  # frames of a type
PACKETS = 1500  # of a long capture


def prepare():
    """Two homes: tshark loads plugins of a user's own, but not those of root."""
    printed = subprocess.run(['tshark', '-v'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             check=True, text=True).stdout
    version = re.search(r'\d+\.\d+', printed).group(0)
    epan = os.path.join(HOME[True], '.local', 'lib', 'wireshark', 'plugins', version, 'epan')
    os.makedirs(epan)
    os.makedirs(HOME[False], exist_ok=True)
    shutil.copy(PLUGIN, epan)
    shutil.copy(lua_test.LUA, HOME[False])
    for folder, _, names in os.walk(FOLDER.name):
        os.chmod(folder, 0o755)  # tshark runs as another user
        for name in names:
            os.chmod(os.path.join(folder, name), 0o644)


def tshark(plugin, *arguments):
    script = ['-X', 'lua_script:' + os.path.join(HOME[False], 'weft.lua')]
    command = ['tshark', *([] if plugin or arguments[0] == '-G' else script), *arguments]
    if os.getuid() == 0:
        ids = str(NOBODY)
        command = ['setpriv', '--reuid=' + ids, '--regid=' + ids, '--clear-groups', *command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True,
                          text=True, env=dict(os.environ, HOME=HOME[plugin]), cwd=FOLDER.name)
    assert 'rror' not in done.stderr, done.stderr
    # Wireshark adds an item for a script that reads fields of other protocols.
    return [line for line in done.stdout.splitlines() if '"_ws.lua.fake"' not in line]


def same(path, *arguments):
    lua, plugin = (tshark(which, '-r', path, *arguments) for which in (False, True))
    if lua == plugin:
        return '\n'.join(plugin)
    at = next((i for i, (a, b) in enumerate(zip(lua, plugin)) if a != b), len(lua))
    raise AssertionError('%s line %d of %s:\nLua    %s\nplugin %s' % (
        os.path.basename(path), at, arguments, lua[at - 3:at + 3], plugin[at - 3:at + 3]))


def compared(path, *arguments, packets=PACKETS):
    """Every field, expert information included, and the line of each packet. In the first of two
    passes (-2) there is no tree, and then a script does not know a packet's interface."""
    os.chmod(path, 0o644)
    fields = same(path, *arguments, '-T', 'json', '-J', 'frame weft', '-c', str(packets))
    assert '"weft"' in fields, path
    same(path, *arguments)
    return fields


def path_of(name):
    return os.path.join(FOLDER.name, name)


@functools.lru_cache(None)
def simulated(program, test):
    """A capture with a few frames of each kind."""
    path = path_of('%s %s.pcapng' % (program, test))
    subprocess.run([os.path.join(BUILD, 'test', 'sim', 'sim_' + program), '-k', test, '-n', '1',
                    '-w', path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lua_test.thinned(path)
    return path


def both_loaded_as_meant():
    for plugin in (False, True):
        loaded = [line for line in tshark(plugin, '-G', 'plugins') if line.startswith('weft.so')]
        assert bool(loaded) == plugin, loaded


# @behaviour Y95: Wireshark's plugin shows the fields, the lines of packets and the expert
# information that weft.lua shows, also of malformed frames
def traffic(program, test, wanted):
    def check():
        fields = compared(simulated(program, test))
        for name in wanted.split():
            assert '"weft.%s.' % name in fields or '"weft.expert.' in fields, name

    check.__name__ = '%s %s' % (program, test)
    return check


def faulty():
    """A run with loss, as captured by one host, and by both."""
    subprocess.run([os.path.join(BUILD, 'test', 'sim', 'sim_faults'), '-k', 'random_loss', '-s',
                    '5', '-n', '1'], check=True, env=dict(os.environ, SIM_FAULTS=FOLDER.name),
                   stdout=subprocess.DEVNULL)
    subprocess.run([lua_test.DUMP, '--slice', path_of('both.pcapng'), path_of('a.pcapng'),
                    path_of('b.pcapng')], check=True, stderr=subprocess.DEVNULL)
    os.chmod(path_of('a.pcapng'), 0o644)
    return path_of('a.pcapng'), path_of('both.pcapng')


def losses_of_both_hosts():
    path, both = faulty()
    compared(both)
    fields = compared(path, '-2')
    for name in ('stream', 'message_before', 'answer_in', 'response_time'):
        assert '"weft.%s"' % name in fields, name
    assert 'Retransmission' in same(path, '-2', '-q', '-z', 'expert')
    for name in ('weft.retransmission_of', 'weft.message_frame', 'weft.missing',
                 'weft.flags.retx == 1', 'weft.expert.credit_spent'):
        same(path, '-Y', name)


def written(name, linktype, frames, cut=None):
    out = lua_test.block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1))
    out += lua_test.block(1, struct.pack('<HHI', linktype, 0, 0))
    for frame in frames:
        there = frame[:cut]
        out += lua_test.block(6, struct.pack('<IIIII', 0, 0, 0, len(there), len(frame)) + there +
                              bytes(-len(there) % 4))
    with open(path_of(name), 'wb') as f:
        f.write(out)
    return path_of(name)


@functools.lru_cache(None)
def sample():
    """Frames of each kind of all traffic."""
    kinds = {}
    for program, test, _ in lua_test.TRAFFIC:
        for record in edit.Capture(simulated(program, test)).records:
            kind = lua_test.kind_of(record.data)
            frames = kinds.setdefault(kind[0] if isinstance(kind, tuple) else kind, [])
            if kind and len(frames) < SAMPLE:
                frames.append(record.data)
    return sum(kinds.values(), [])


def malformed_frames():
    """Bytes that are random, and lengths at their limits, behind the headers of the network."""
    rng = random.Random(1)
    frames = []
    for frame in sample():
        begin = frame.find(b'\x57\x66', 14) + 2
        for _ in range(4):
            changed = bytearray(frame)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(begin, min(len(changed), begin + 120))
                changed[at] = rng.choice((0, 1, 0x7f, 0xff, rng.randrange(256)))
            frames.append(bytes(changed))
    assert len(frames) > 300, len(frames)
    assert 'weft.expert' in compared(written('m.pcapng', 1, frames), packets=len(frames))


def frames_that_the_capture_has_cut():
    frames = sample()
    for cut in (84, 100, 150):
        compared(written('t.pcapng', 1, frames, cut))


def credit_that_is_spent():
    for test in (lua_test.spent_credit_is_expert_information,
                 lua_test.withdrawn_credit_is_expert_information,
                 lua_test.what_the_simulator_does_not_send):
        frames = frames_of(test)
        fields = compared(written('h.pcapng', 1, frames))
        assert test is not lua_test.spent_credit_is_expert_information or \
            fields.count('credit_spent') >= 4, fields


def frames_of(test):
    """The packets that a test of weft.lua writes by hand."""
    found, real = [], lua_test.block

    def kept(kind, body):
        if kind == 6:
            length, = struct.unpack_from('<I', body, 12)
            found.append(body[20:20 + length])
        return real(kind, body)

    lua_test.block = kept
    try:
        test()
    finally:
        lua_test.block = real
    return found


def message_records():
    path = path_of('shm.pcapng')
    subprocess.run([os.path.join(BUILD, 'test', 'unit', 'test_shm_worker')], check=True,
                   env=dict(os.environ, WEFT_CAPTURE=path), stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    lua_test.thinned(path)
    compared(path)
    records = frames_of(lua_test.native_operations_of_lanes)
    compared(written('native.pcapng', 162, records))
    compared(written('native.pcapng', 162, records, 40))


def messages_of_roce():
    frames = frames_of(lua_test.a_message_in_a_frame_of_roce)
    assert 'weft.eager.seq' in compared(written('roce.pcapng', 1, frames))


def main():
    if not os.path.exists(PLUGIN) or not shutil.which('tshark'):
        print('there is no plugin, or no tshark')
        sys.exit(77)
    prepare()
    tap.run([both_loaded_as_meant] + [traffic(*t) for t in lua_test.TRAFFIC] +
            [tap.slow(traffic(*t)) for t in lua_test.TRAFFIC_SLOW] +
            [losses_of_both_hosts, malformed_frames, tap.slow(frames_that_the_capture_has_cut),
             tap.slow(credit_that_is_spent), message_records, messages_of_roce])


if __name__ == '__main__':
    main()
