# SPDX-License-Identifier: BSD-3-Clause
"""The cost of captures, and of the flight recorder."""

import glob
import json
import os
import subprocess
import tempfile
from functools import partial

from bench_run import TrialError, rate, tail
from bench_trials import Figure, at_least, limit

MESSAGES = 8000000  # half a second, 50 MB of a capture


def share_dropped(dump, file):
    """Percent of the frames that a capture lacks."""
    done = subprocess.run([dump, '-j', file], capture_output=True, text=True)
    if done.returncode:
        raise TrialError('weft-dump: ' + tail(done.stderr))
    report = json.loads(done.stdout)
    lost = sum(c['lost_by_writer'] for c in report['captures'])
    return 100 * lost / (report['frames'] + lost)


def captured(b):
    """A run in which both ends write the heads of all frames."""
    with tempfile.TemporaryDirectory(prefix='weft-bench.', dir='/dev/shm') as folder:
        row = b.weft('tag_bw', 8, iters=MESSAGES, env={
            'WEFT_CAPTURE': os.path.join(folder, '%p.pcapng,snaplen=128')})
        files = glob.glob(os.path.join(folder, '*.pcapng'))
        if len(files) != 2:
            raise TrialError('%d captures' % len(files))
        dump = os.path.join(b.args.build, 'app/weft-dump')
        return {**row, 'dropped': max(share_dropped(dump, f) for f in files)}


def m_capture(b):
    """8 B tag_bw while both ends capture heads into /dev/shm: 0.5 x without, 1 % dropped at most;
    the flight recorder: 0.97 x without"""
    run = partial(b.weft, 'tag_bw', 8, iters=MESSAGES)
    heads, usual = 'capture, snaplen=128', 'no capture'
    off = 'no capture, WEFT_RECORDER=off'
    b.contest([
        Figure('8 B message rate, one memif lane, frames of 9000, with and without a capture',
               rate, 'M/s', [(heads, usual, at_least, 0.5, None),
                             (usual, off, at_least, 0.97, None)]),
        Figure('Frames that the capture lacks', lambda row: row['dropped'], '%',
               [(heads, None, limit('%'), 1, None)], names=[heads]),
    ], {heads: partial(captured, b), usual: run,
        off: partial(run, env={'WEFT_RECORDER': 'off'})})
