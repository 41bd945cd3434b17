# SPDX-License-Identifier: BSD-3-Clause
"""This build against another one, for bench.py: the cost of a change without congestion."""

import os

from bench_rails import Rails
from bench_run import TrialError, bandwidth, mean_latency_ns, rate
from bench_shm import Shm
from bench_trials import at_least, at_most

KIB, MIB = 1024, 1024 * 1024
LATENCY = ('tag_lat', 8, mean_latency_ns, 'ns')
RATE = ('tag_bw', 8, rate, 'M/s')


def stream(size):
    return ('tag_bw', size, bandwidth, 'MiB/s')


def streams(*sizes):
    return [stream(size) for size in sizes]


def title(port, test, size):
    if test == 'tag_lat':
        return '%d B latency, %s (half round trip)' % (size, port)
    if size < KIB:
        return '%d B message rate, %s' % (size, port)
    return '%d KiB bandwidth, %s' % (size // KIB, port)


def compare(b, port, run, other, cases):
    """run(test, size, perf): one run of that weft-perf over this kind of port."""
    for test, size, figure, unit in cases:
        wanted = (at_most, 1.03) if test == 'tag_lat' else (at_least, 0.97)
        b.alternate(title(port, test, size), {
            'this build': lambda t=test, s=size: run(t, s, b.perf),
            'the other': lambda t=test, s=size: run(t, s, other),
        }, figure, unit, [('this build', 'the other', *wanted, None)])


def m_against(b):
    """this build against another one (--against BUILD) over memif, shm, virtio and af_packet: 8 B
    latency 1.03 x, 8 B rate and 1 KiB to 1 MiB bandwidth 0.97 x; only when named"""
    other = os.path.join(b.args.against or '', 'app/weft-perf')
    if not b.args.against or not os.access(other, os.X_OK):
        raise TrialError('--against names no build: no program %s' % other)
    compare(b, 'one memif lane', lambda t, s, perf: b.weft(t, s, perf=perf), other,
            [LATENCY, RATE] + streams(KIB, 4 * KIB, 32 * KIB, 64 * KIB, MIB))
    compare(b, 'shared memory', lambda t, s, perf: Shm(b).weft(t, s, perf), other,
            [LATENCY, RATE] + streams(KIB, 4 * KIB))
    # A buffer that never changes stays in the receiver's cache: only native reads profit from that,
    # and no program sends it. With -V the sender writes each message, and the receiver reads it.
    compare(b, 'shared memory, each byte written and compared',
            lambda t, s, perf: Shm(b).weft(t, s, perf, ['-V']), other,
            streams(32 * KIB, 64 * KIB, MIB))
    compare(b, 'net_vhost to net_virtio_user', b.virtio, other,
            [LATENCY] + streams(4 * KIB, 64 * KIB, MIB))
    with Rails(b, rates=(None, None)) as rails:
        def over_veth(test, size, perf):
            return rails.weft(test, size, [0], ['-n', str(b.iters(test, size, 0.03))], perf=perf)
        compare(b, 'af_packet over a veth', over_veth, other,
                [LATENCY, RATE] + streams(4 * KIB, 64 * KIB, MIB))
