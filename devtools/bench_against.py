# SPDX-License-Identifier: BSD-3-Clause
"""This build against another one, for bench.py: the cost of a change without congestion."""

import os

from bench_run import TrialError, bandwidth, mean_latency_ns, rate
from bench_trials import at_least, at_most

KIB = 1024
CASES = [  # title, test of weft-perf, size, figure of a row, unit
    ('8 B latency, one memif lane (half round trip)', 'tag_lat', 8, mean_latency_ns, 'ns'),
    ('8 B message rate, one memif lane', 'tag_bw', 8, rate, 'M/s'),
    ('4 KiB bandwidth, one memif lane', 'tag_bw', 4 * KIB, bandwidth, 'MiB/s'),
    ('64 KiB bandwidth, one memif lane', 'tag_bw', 64 * KIB, bandwidth, 'MiB/s'),
]


def m_against(b):
    """this build against another one (--against BUILD), one memif lane: 8 B latency 1.03 x, 8 B
    rate, 4 and 64 KiB bandwidth 0.97 x; only when named"""
    other = os.path.join(b.args.against or '', 'app/weft-perf')
    if not b.args.against or not os.access(other, os.X_OK):
        raise TrialError('--against names no build: no program %s' % other)
    for title, test, size, figure, unit in CASES:
        wanted = (at_most, 1.03) if test == 'tag_lat' else (at_least, 0.97)
        b.alternate(title, {
            'this build': lambda t=test, s=size: b.weft(t, s),
            'the other': lambda t=test, s=size: b.weft(t, s, perf=other),
        }, figure, unit, [('this build', 'the other', *wanted, None)])
