#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""slices.py BUILD: a slice of captures has the frames that were selected and no others, with their
times, directions and comments; weft-dump and tshark read it. The captures are the simulator's.
Prints TAP."""

import collections
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import pcapng_edit as edit  # noqa: E402
import tap  # noqa: E402

BUILD = sys.argv[1]
DUMP = os.path.join(BUILD, 'app', 'weft-dump')
FOLDER = tempfile.TemporaryDirectory(prefix='weft-slices.')


def path(name):
    return os.path.join(FOLDER.name, name)


def dump(*arguments, code=0, stdin=None):
    done = subprocess.run([DUMP, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          input=stdin, check=False, timeout=60)
    assert done.returncode == code, '%s: exit %d\n%s' % (arguments, done.returncode, done.stderr)
    return done.stdout if code == 0 else done.stderr.decode()


def captures():
    sim = os.path.join(BUILD, 'test', 'sim', 'sim_faults')
    subprocess.run([sim, '-k', 'random_loss', '-s', '5', '-n', '1'], check=True,
                   env=dict(os.environ, SIM_FAULTS=FOLDER.name), stdout=subprocess.DEVNULL)
    return path('a.pcapng'), path('b.pcapng')


A, B = captures()


def sliced(*arguments):
    dump('--slice', path('s.pcapng'), *arguments)
    return edit.Capture(path('s.pcapng'))


def content(records):
    return collections.Counter((r.time, r.way, r.len, r.data) for r in records)


def everything_is_everything():
    assert content(sliced(A).records) == content(edit.Capture(A).records)
    assert stat.S_IMODE(os.stat(path('s.pcapng')).st_mode) == 0o600


def comments_stay():
    with open(A, 'rb') as f:
        before = f.read()
    sliced(A)
    with open(path('s.pcapng'), 'rb') as f:
        after = f.read()
    for word in (b', path 0', b', path 1'):
        assert before.count(word) == after.count(word), word
    assert b', path 0' in before


def a_time_selects_frames():
    whole = edit.Capture(A).records
    begin = whole[0].time
    for first, last in ((0, 0.003), (0.002, 0.004)):
        wanted = [r for r in whole if int(first * 1e9) <= r.time - begin <= int(last * 1e9)]
        assert 0 < len(wanted) < len(whole), len(wanted)
        assert content(sliced('--time', '%g-%g' % (first, last), A).records) == content(wanted)


def a_lane_selects_frames():
    whole = edit.Capture(A).records
    wanted = [r for r in whole if r.iface == 1]
    assert 0 < len(wanted) < len(whole)
    assert content(sliced('--lane', 'dpdk:a1', A).records) == content(wanted)
    assert not sliced('--lane', 'dpdk:a7', A).records


def a_filter_and_a_number_select_frames():
    whole = edit.Capture(A).records
    wanted = [r for r in whole[:500] if r.len <= 200]
    assert 0 < len(wanted) < 500
    assert content(sliced('-n', '500', '-f', 'less 200', A).records) == content(wanted)


def frames_of_both_hosts_are_in_one_order():
    out = sliced(A, B)
    assert len(out.records) == sum(len(edit.Capture(f).records) for f in (A, B))
    times = [r.time for r in out.records]
    assert times == sorted(times)
    # No frame arrives before it was sent: one clock, that of the first capture.
    sent = {}
    for r in out.records:
        if r.way == edit.OUT and r.key():
            sent.setdefault(r.key(), r.time)
    late = [r for r in out.records if r.way == edit.IN and r.key() in sent]
    assert len(late) > 1000 and all(r.time >= sent[r.key()] for r in late)
    names = [body for kind, body in out.head if kind == edit.INTERFACE]
    assert len(names) == 4, len(names)
    assert sum(b'a.pcapng' in n for n in names) == 2, names


def lost_message():
    rows = [json.loads(line) for line in dump('-m', '-j', A, B).splitlines()]
    return next(r for r in rows if r['lost'] and r['protocol'] == 'eager')


def frames_with_tag(file, tag):
    """The bytes of the frames in which a message with this tag is."""
    numbers = set()
    for line in dump('-F', '-j', file).splitlines():
        frame = json.loads(line)
        for m in frame.get('weft', {}).get('messages', ()):
            if int(str(m.get('tag', '-1')), 0) == tag:
                numbers.add(frame['number'])
    records = edit.Capture(file).records
    return [records[n - 1].data for n in sorted(numbers)]


def a_message_has_all_of_its_frames():
    message = lost_message()
    tag = int(message['what'].split()[1], 0)
    out = sliced('--message', str(message['message']), A, B)
    has = collections.Counter(r.data for r in out.records)
    wanted = collections.Counter(frames_with_tag(A, tag) + frames_with_tag(B, tag))
    assert sum(wanted.values()) >= 3, wanted # sent, lost, sent again, arrived
    assert not wanted - has, (wanted - has)
    # The rest are acknowledgements: few frames, of thousands.
    assert len(out.records) < 12, len(out.records)
    rows = [json.loads(line) for line in dump('-m', '-j', path('s.pcapng')).splitlines()]
    assert any(r['what'] == message['what'] and r['sent_again'] for r in rows), rows


def a_slice_goes_through_a_pipe():
    out = dump('--slice', '-', '--lane', 'dpdk:a0', A)
    sliced('--lane', 'dpdk:a0', A)
    with open(path('s.pcapng'), 'rb') as f:
        assert out == f.read()
    assert b'messages eager' in dump('-', stdin=out)


def tshark_reads_it():
    if not shutil.which('tshark'):
        return
    out = sliced('--message', str(lost_message()['message']), A, B)
    done = subprocess.run(['tshark', '-X', 'lua_script:' + os.path.join(BUILD, 'app', 'weft.lua'),
                           '-r', path('s.pcapng'), '-T', 'fields', '-e', 'weft.type',
                           '-e', 'weft.retransmission_of'],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(out.records) and all(lines), lines
    assert any(line.split('\t')[1:] not in ([''], []) for line in lines), lines


def what_makes_no_sense_is_refused():
    with open(A, 'rb') as f:
        before = f.read()
    assert 'it is one of the captures' in dump('--slice', A, A, code=1)
    os.symlink(A, path('link'))
    assert 'it is one of the captures' in dump('--slice', path('link'), A, code=1)
    with open(A, 'rb') as f:
        assert f.read() == before
    assert 'do not go with it' in dump('--slice', path('s'), '-F', A, code=2)
    assert '--lane selects frames for --slice' in dump('--lane', 'dpdk:a0', A, code=2)
    assert 'can be read only once' in dump('--slice', path('s'), '--message', '1', '-', code=2)
    assert 'there is no message 99999' in dump('--slice', path('s'), '--message', '99999', A,
                                               code=2)
    assert 'No such file' in dump('--slice', '/no/where/x', A, code=1)
    if os.path.exists('/dev/full'):
        assert 'No space left' in dump('--slice', '/dev/full', A, code=1)


tap.run([everything_is_everything, comments_stay, a_time_selects_frames, a_lane_selects_frames,
         a_filter_and_a_number_select_frames, frames_of_both_hosts_are_in_one_order,
         a_message_has_all_of_its_frames, a_slice_goes_through_a_pipe, tshark_reads_it,
         what_makes_no_sense_is_refused])
