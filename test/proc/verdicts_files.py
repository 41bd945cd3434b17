#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""verdicts_files.py BUILD: what weft-dump compares of files that begin, end or belong together in
other ways than usual: edits of the simulator's captures, whose hosts have clocks of their own.
Prints TAP."""

import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import pcapng_edit as edit  # noqa: E402
import tap  # noqa: E402

BUILD = sys.argv[1]
FOLDER = tempfile.TemporaryDirectory(prefix='weft-verdicts-files.')
WAIT = 12000000  # ns for which a busy host does not read its port


def pair(fault, seed):
    return edit.pair(BUILD, FOLDER.name, fault, seed)


def run(*captures):
    files = [c.write(os.path.join(FOLDER.name, '%c.pcapng' % (97 + i)))
             for i, c in enumerate(captures)]
    done = subprocess.run([os.path.join(BUILD, 'app', 'weft-dump'), '-j', *files], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, timeout=60)
    return json.loads(done.stdout), done.stderr


def named(*captures):
    return [f['class'] for f in run(*captures)[0]['anomalies']]


def files_are_related_to_any_other():
    a, b = pair('random_loss', 1000)
    edit.skew(b, 5)
    whole = run(a, b)[0]
    assert [f['class'] for f in whole['anomalies']] == ['random loss'], whole['anomalies']
    alone = pair('clean', 7)[0]
    report, errors = run(alone, a, b)
    keys = ('class', 'time', 'evidence')
    assert [[f[k] for k in keys] for f in report['anomalies']] == \
        [[f[k] for k in keys] for f in whole['anomalies']], report['anomalies']
    lacks = [t for t in report['not_judged'] if 'no frame of it' in t]
    assert len(lacks) == 1 and 'a.pcapng' in lacks[0], report['not_judged']
    assert 'no frame of' in errors and 'no frame connects' in errors, errors


def two_pairs_have_a_clock_each():
    both = [pair('clean', 7), pair('random_loss', 1000)]
    for _, b in both:
        edit.skew(b, 5)
    report, errors = run(*both[0], *both[1])
    assert [f['class'] for f in report['anomalies']] == ['random loss'], report['anomalies']
    assert not [t for t in report['not_judged'] if 'no frame of it' in t], report['not_judged']
    assert errors.count('no frame connects') == 1, errors


def a_capture_that_begins_while_frames_wait_has_no_gap():
    """Frames that were sent before it began come after its first ones."""
    a, b = pair('clean', 7)
    edit.one_clock(a, b)
    begin = a.records[len(a.records) // 2].time
    a.records = [r for r in a.records if r.time >= begin]
    for r in b.records:
        if r.way == edit.IN and begin - WAIT <= r.time < begin + WAIT:
            r.time = begin + WAIT
    b.records.sort(key=lambda r: r.time)
    assert 'capture with gaps' not in named(a, b), named(a, b)


def a_capture_that_ends_while_frames_wait_has_no_gap():
    """Its host reads and acknowledges them behind its end."""
    a, b = pair('clean', 7)
    edit.one_clock(a, b)
    end = b.records[len(b.records) // 2].time
    later = {r.key() for r in b.records if r.way == edit.OUT and r.time > end - WAIT}
    last = next(r for r in b.records if r.time > end)
    b.records = [r for r in b.records if r.time <= end - WAIT] + [last]
    last.data = bytes(12) + b'\x88\xcc' + bytes(46)  # of another protocol
    last.len, last.way = len(last.data), edit.OUT
    for r in a.records:
        if r.way == edit.IN and r.key() in later:
            r.time = max(r.time, end + WAIT)
    a.records.sort(key=lambda r: r.time)
    assert 'capture with gaps' not in named(a, b), named(a, b)


tap.run([files_are_related_to_any_other, two_pairs_have_a_clock_each,
         a_capture_that_begins_while_frames_wait_has_no_gap,
         a_capture_that_ends_while_frames_wait_has_no_gap])
