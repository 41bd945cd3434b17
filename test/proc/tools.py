#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What devtools' programs do with what they are not used to: damaged captures, programs that say
nothing, wrong arguments. Prints TAP."""

import contextlib
import importlib.util
import io
import os
import re
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
DEVTOOLS = os.path.join(ROOT, 'devtools')
sys.path.insert(0, DEVTOOLS)
sys.dont_write_bytecode = True

import tap  # noqa: E402
from bench_run import TrialError, pair  # noqa: E402


def load(name):
    spec = importlib.util.spec_from_file_location(name.replace('-', '_'),
                                                  os.path.join(DEVTOOLS, name + '.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


decode = load('weft-decode')


# ---- captures ---------------------------------------------------------------------------------

def block(kind, body):
    body += bytes(-len(body) % 4)
    size = struct.pack('<I', len(body) + 12)
    return struct.pack('<I', kind) + size + body + size


def packet(frame):
    flags = struct.pack('<HHI', 2, 4, 2) + bytes(4)
    return block(6, struct.pack('<IIIII', 0, 0, 0, len(frame), len(frame)) + frame
                 + bytes(-len(frame) % 4) + flags)


def frame_version():
    """What the library speaks: the decoder has to keep up."""
    with open(os.path.join(ROOT, 'drivers/dpdk/frame/frame.h'), encoding='utf-8') as f:
        return int(re.search(r'#define WEFT_FRAME_VERSION (\d+)u', f.read()).group(1))


VERSION = frame_version()


def lane_frame(kind, body=b'', version=VERSION):
    """Over Weft's own ethertype, with CRC32C."""
    head = struct.pack('<HBBHHIIIIHBBIIIH', 0x6657, version, kind, 4, 42 + len(body), 1, 2, 3, 4, 5,
                       0, 0, 6, 7, 8, 0xffff)
    return bytes(12) + b'\x88\xb5' + head + body + struct.pack('<I', decode.crc32c(head + body))


def capture(*frames):
    return block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0,
                                         -1)) + block(1, struct.pack('<HHI', 1, 0, 0)) \
        + b''.join(packet(f) for f in frames)


def run(data):
    """weft-decode.py on these bytes: (exit code, output). Whatever it does not catch goes on."""
    out = io.StringIO()
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        sys.argv = ['weft-decode.py', file.name]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                decode.main()
                code = 0
            except SystemExit as end:
                code = end.code
    assert code in (0, 1), code
    return code, out.getvalue()


EAGER = struct.pack('<HBB', 16, 2, 0) + struct.pack('<IQ', 7, 8) + b'data'
RESET = struct.pack('<HBBII', 3, 1, 1, 5, 6)
GOOD = capture(lane_frame(7, EAGER), lane_frame(8), lane_frame(9, RESET))


def a_good_capture_is_read():
    code, out = run(GOOD)
    assert code == 0 and 'EAGER seq 7 tag 8 + 4 bytes' in out and out.count('\n') == 4, out


def a_reset_of_another_version_is_none_of_the_wrong():
    other = VERSION + 1
    code, out = run(capture(lane_frame(9, RESET, version=other)))
    assert code == 0 and 'RESET' in out and ' version %d' % other in out, out
    code, out = run(capture(lane_frame(8, version=other)))
    assert code == 1 and 'WRONG: magic 6657, version %d' % other in out, out


def what_a_peer_says_commands_no_terminal():
    hostile = '\033]0;owned\007\x9b2J\r\n\u202etxt \u20ac'
    for text in (hostile.encode(), hostile.encode('latin-1', 'replace')):
        line = decode.wireup_record(5, text)
        assert line.startswith('TEXT "?]0;owned?') and line.isprintable(), line
    name = b'\033]0;owned\007'
    data = bytearray(b'WEFT' + struct.pack('<BBHIIQQBBHQQ', 3, 0, 52 + len(name), 0, 0, 1, 0,
                                           len(name), 0, 0, 2, 3) + name)
    struct.pack_into('<I', data, 8, decode.crc32c(bytes(data)))
    line = decode.wireup_record(1, bytes(data))
    assert '"?]0;owned?"' in line and line.isprintable(), line


def a_capture_cut_short_anywhere_is_told():
    between = [28, len(capture()), len(capture(lane_frame(7, EAGER))),
               len(capture(lane_frame(7, EAGER), lane_frame(8)))]
    for size in range(len(GOOD)):
        code, out = run(GOOD[:size])
        assert code == (size not in between), (size, out)
        assert code == 0 or 'weft-decode: ' in out, (size, out)


def no_changed_byte_is_more_than_wrong():
    for at in range(len(GOOD)):
        for value in (0, 0xff, GOOD[at] ^ 1, GOOD[at] ^ 0x80):
            run(GOOD[:at] + bytes((value,)) + GOOD[at + 1:])


def packet_blocks_of_every_length_are_told():
    for size in range(12, 32, 4):
        short = struct.pack('<II', 6, size) + bytes(size - 12) + struct.pack('<I', size)
        code, out = run(capture() + short)
        assert code == 1 and 'a packet block of %d bytes' % size in out, out


def a_packet_longer_than_its_block_is_told():
    data = bytearray(capture(lane_frame(8)))
    struct.pack_into('<I', data, len(capture()) + 20, 1 << 20)
    code, out = run(bytes(data))
    assert code == 1 and 'a packet of 1048576 bytes in a block of' in out, out


def other_files_are_told():
    for data in (b'', b'#!/bin/sh\n', b'\xd4\xc3\xb2\xa1' + bytes(20), bytes(100)):
        code, out = run(data)
        assert code == 1 and 'no pcapng file' in out, out


# ---- trials -----------------------------------------------------------------------------------

SERVER = ['sleep', '20']


def no_line_of_a_trial_is_lost():
    seen = []
    client = ['sh', '-c',
              'printf "1\\n2\\n3\\n"; sleep 0.2; printf "4\\n5\\n"; echo nonsense >&2; printf 6']
    assert pair(SERVER, client, {}, {}, timeout=10, watch=seen.append) == '1\n2\n3\n4\n5\n6'
    assert seen == ['1\n', '2\n', '3\n', '4\n', '5\n', '6'], seen
    assert pair(SERVER, client, {}, {}, timeout=10) == ''.join(seen)


def a_client_that_says_nothing_is_ended():
    begin = time.monotonic()
    try:
        pair(SERVER, ['sh', '-c', 'echo stuck >&2; sleep 20'], {}, {}, timeout=0.5,
             watch=lambda line: None)
        raise AssertionError('it has ended')
    except TrialError as err:
        assert 'no end after 0.5 s: stuck' in str(err), err
    assert time.monotonic() - begin < 8


def what_goes_wrong_in_between_is_told():
    def fails(line):
        raise TrialError('tc: no such device')

    try:
        pair(SERVER, ['sh', '-c', 'echo 1; echo 2'], {}, {}, timeout=10, watch=fails)
        raise AssertionError('nothing was told')
    except TrialError as err:
        assert str(err) == 'tc: no such device', err


# ---- arguments --------------------------------------------------------------------------------

def refused(sentence, *command, **settings):
    """A script of devtools ends at once with this message on standard error, having done
    nothing."""
    with tempfile.TemporaryDirectory() as kept:
        # Were an argument taken, there would be no mirror to make a system from.
        env = dict(os.environ, WEFT_NO_INSTALL='1', WEFT_FRESH_INSIDE='1', WEFT_FRESH_DIR=kept,
                   WEFT_FRESH_MIRROR='file:///dev/null', **settings)
        done = subprocess.run([os.path.join(DEVTOOLS, command[0]), *command[1:]], env=env,
                              timeout=60, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        assert done.returncode == 1, (command, settings, done)
        assert done.stdout == '' and done.stderr.count('\n') == 1, (command, settings, done)
        assert sentence in done.stderr, (command, settings, done)
        assert os.listdir(kept) == [], (command, settings, os.listdir(kept))


def fresh_sh_refuses_what_it_does_not_know():
    refused("fresh.sh: no option '--frob'; see --help", 'fresh.sh', '--frob', 'trixie', 'true')
    refused('a suite of Debian and a command are needed', 'fresh.sh')
    refused('a suite of Debian and a command are needed', 'fresh.sh', '--new', 'trixie')
    for suite in ('', '../etc', 'Trixie', '13'):
        refused("'%s' is no suite of Debian's; bookworm and trixie are" % suite, 'fresh.sh', suite,
                'true')
    for limit in ('soon', '0', '-1', '10s', ' 5'):
        refused('WEFT_FRESH_LIMIT=%s is no number of seconds' % limit, 'fresh.sh', 'trixie', 'true',
                WEFT_FRESH_LIMIT=limit)


def arm64_sh_refuses_what_it_does_not_know():
    refused("arm64.sh: no option '--frob'; see --help", 'arm64.sh', '--frob')
    refused('arm64.sh: -k needs a pattern', 'arm64.sh', '--here', '-k')
    refused("'Trixie' is no suite of Debian's", 'arm64.sh', 'Trixie')
    refused("arm64.sh: one suite of Debian, not 'bookworm' and 'trixie'", 'arm64.sh', 'bookworm',
            'trixie')
    refused("arm64.sh: --here runs on this machine's system, so 'trixie' has no meaning",
            'arm64.sh', '--here', 'trixie')


# ---- documents --------------------------------------------------------------------------------

# What stands for something else in a quoted sentence.
BLANKS = r"\.\.\.|NAME|ADDRESS(?::9338)?|HOST|\b13377\b|\b9338\b|dpdk:"


def sources():
    """Everything that programs may say: string literals, those on several lines put together."""
    text = ''
    for folder in ('lib', 'app', 'drivers/dpdk'):
        for where, _, names in sorted(os.walk(os.path.join(ROOT, folder))):
            for name in sorted(n for n in names if n.endswith('.c')):
                with open(os.path.join(where, name), encoding='utf-8') as f:
                    text += f.read()
    return re.sub(r'"\s*\n\s*"', '', text)


def clouds_md_quotes_what_programs_say():
    with open(os.path.join(ROOT, 'doc/clouds.md'), encoding='utf-8') as f:
        rows = re.findall(r'^\| (`.*?) \|', f.read().split('## When it does not connect')[1], re.M)
    said = sources()
    assert len(rows) >= 8, rows
    for sentence in (s for row in rows for s in re.findall(r'`([^`]*)`', row)):
        pieces = [p.strip(" '") for p in re.split(BLANKS, sentence)]
        assert max(map(len, pieces)) > 8, sentence
        for piece in pieces:
            for part in piece.split(': ') if piece not in said else []:
                assert part.strip() in said, '"%s" of "%s" is said by no program' % (part, sentence)


# What documents name that is not ours, or an example.
NOT_OURS = {'weft/lane.h', 'sys/queue.h', 'FOLDER/FILE.h', 'dpdk-devbind.py', 'out.svg'}
NAMES = r'(?<![\w./*%-])([\w-][\w./-]*\.(?:c|h|py|sh|md|svg|ini))(?![\w*])'


def files_of_the_tree():
    """Paths from the root."""
    found = [name for name in os.listdir(ROOT) if os.path.isfile(os.path.join(ROOT, name))]
    for top in ('app', 'devtools', 'doc', 'drivers', 'examples', 'lib', 'test'):
        for where, _, names in os.walk(os.path.join(ROOT, top)):
            found += [os.path.relpath(os.path.join(where, name), ROOT) for name in names]
    return found


def documents_name_files_that_exist():
    """Each file named in backquotes, and in the picture of the architecture, by its path or the end
    of it."""
    tree = files_of_the_tree()
    ends = {path[at:] for path in tree for at in [0] + [m.end() for m in re.finditer('/', path)]}
    count = 0
    for path in sorted(p for p in tree if p.endswith('.md') or p == 'doc/architecture.svg'):
        with open(os.path.join(ROOT, path), encoding='utf-8') as f:
            text = f.read()
        if path.endswith('.svg'):
            names = re.findall(r'>[\d ]*([\w./-]+\.[ch])<', text)
        else:
            names = [n for quoted in re.findall(r'`([^`\n]+)`', text)
                     for n in re.findall(NAMES, quoted)]
        count += len(names)
        for name in names:
            assert name in ends or name in NOT_OURS, '%s names %s, which does not exist' % (path,
                                                                                            name)
    assert count > 150, count


TESTS = [a_good_capture_is_read, a_reset_of_another_version_is_none_of_the_wrong,
         what_a_peer_says_commands_no_terminal, a_capture_cut_short_anywhere_is_told,
         no_changed_byte_is_more_than_wrong, packet_blocks_of_every_length_are_told,
         a_packet_longer_than_its_block_is_told,
         other_files_are_told, no_line_of_a_trial_is_lost, a_client_that_says_nothing_is_ended,
         what_goes_wrong_in_between_is_told, fresh_sh_refuses_what_it_does_not_know,
         arm64_sh_refuses_what_it_does_not_know, clouds_md_quotes_what_programs_say,
         documents_name_files_that_exist]


tap.run(TESTS)
