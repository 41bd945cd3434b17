#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""verdicts_recorder.py BUILD: what weft-dump names by the history of lanes. The files of the flight
recorder are the simulator's captures, some with a history that is written here. Prints TAP."""

import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import pcapng_edit as edit  # noqa: E402
import tap  # noqa: E402

BUILD = sys.argv[1]
FOLDER = tempfile.TemporaryDirectory(prefix='weft-verdicts-recorder.')
EACH = 1 << 24  # ns of a slot
SLOTS = 100


def pair(fault, seed):
    return edit.pair(BUILD, FOLDER.name, fault, seed)


def history(capture, slots):
    """Slots that end where the frames of the capture begin: counts, or None."""
    begin = capture.begin() - len(slots) * EACH
    words = ['-' if s is None else '/'.join(str(n) for n in s) for s in slots]
    capture.notes.append((0, 'history counts from %d each %d: %s' % (begin, EACH, ' '.join(words))))
    return begin


def verdicts(a, b):
    files = [c.write(os.path.join(FOLDER.name, name + '.pcapng'), 'a reason', host=number * 16)
             for c, name, number in ((a, 'a', '1'), (b, 'b', '2'))]
    done = subprocess.run([os.path.join(BUILD, 'app', 'weft-dump'), '-j', *files],
                          stdout=subprocess.PIPE, check=True, timeout=60)
    report = json.loads(done.stdout)
    return report['anomalies'] + report['observations']


def slot(late=0, stopped=0, frames=20):
    return frames, frames, 0, 0, 0, 0, 2, late, stopped


def a_stop_before_the_frames_is_named():
    a, b = pair('clean', 7)
    before, after = [slot()] * 40, [slot()] * 41
    begin = history(a, before + [None] * 18 + [slot(300000, 300000)] + after)
    found = verdicts(a, b)
    assert [f['class'] for f in found] == ['stopped peer'], found
    assert found[0]['host'].endswith('a.pcapng'), found
    assert 'silent for 300.000 ms' in found[0]['evidence'], found
    assert 0 <= found[0]['time'] + 300000000 - begin - 58 * EACH <= EACH, (found, begin)
    a, b = pair('clean', 7)  # nothing had been sent or had come before it
    history(a, [slot(frames=0)] * 40 + [None] * 18 + [slot(300000, 300000)] + after)
    assert not verdicts(a, b)


def a_process_that_waits_for_its_core_is_an_observation():
    a, b = pair('random_loss', 1000)
    begin = history(a, [slot(8000)] * SLOTS)
    found = verdicts(a, b)
    assert [f['class'] for f in found] == ['random loss', 'slow receiver'], found
    assert found[1]['host'].endswith('a.pcapng') and found[1]['time'] == begin, found
    assert abs(found[1]['share'] - 8000000 / EACH) < 0.001, found
    a, b = pair('random_loss', 1000)
    history(a, [slot(800)] * SLOTS)  # 4.8 %
    assert [f['class'] for f in verdicts(a, b)] == ['random loss']


def the_share_of_a_slow_host_is_that_of_its_history():
    a, b = pair('clean', 7)
    edit.stops(a, b, 0, 3000000, 1000000)
    history(b, [slot(12000)] * SLOTS)
    found = [f for f in verdicts(a, b) if f['host'].endswith('b.pcapng')]
    assert [f['class'] for f in found] == ['slow receiver'], found
    assert abs(found[0]['share'] - 12000000 / EACH) < 0.001, found
    assert 'answered late 3' in found[0]['evidence'], found


def a_file_that_is_older_shows_no_end():
    a, b = pair('clean', 7)
    edit.ends(a, b, 0.5, 0)
    last = max(i for i, r in enumerate(a.records) if r.way == edit.IN)
    a.records = a.records[:last + 40]
    for number, r in enumerate(a.records[last + 1:], 1):
        r.time += number * 5000000
    assert 'peer gone' not in [f['class'] for f in verdicts(a, b)], verdicts(a, b)


def a_peer_with_nothing_to_answer_is_not_silent():
    for pause, faults in ((0, []), (10**9, ['peer silent'])):
        a, b = pair('clean', 7)
        edit.ends(a, b, 0.5, 0)
        last = max(i for i, r in enumerate(a.records) if r.way == edit.IN)
        late = [r for r in a.records[last + 1:] if r.iface == 0 and len(r.data) > 100][:2]
        late[0].time += 10**9
        late[1].time = late[0].time + 1000 + pause
        a.records = a.records[:last + 1] + late
        file = a.write(os.path.join(FOLDER.name, 'a.pcapng'))
        done = subprocess.run([os.path.join(BUILD, 'app', 'weft-dump'), '-j', file],
                              stdout=subprocess.PIPE, check=True, timeout=60)
        found = [f['class'] for f in json.loads(done.stdout)['anomalies']]
        assert found == faults, (pause, found)


tap.run([a_stop_before_the_frames_is_named, a_process_that_waits_for_its_core_is_an_observation,
         the_share_of_a_slow_host_is_that_of_its_history, a_file_that_is_older_shows_no_end,
         a_peer_with_nothing_to_answer_is_not_silent])
