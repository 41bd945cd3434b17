# SPDX-License-Identifier: BSD-3-Clause
"""This build against another one, for bench.py: the cost of a change without congestion.

A ratio of medians that is 3 % worse is not met. What the other build does not have is named, and
its rows are left out."""

import os
from functools import partial

from bench_mpi import MIB_S, Mpi, figure, on_cores, size_name
from bench_mpi import WEFT as MPI_WEFT
from bench_rails import Rails
from bench_run import TrialError, bandwidth, mean_latency_ns, rate
from bench_shm import Shm
from bench_trials import at_least, at_most

KIB, MIB = 1024, 1024 * 1024
LATENCY = ('tag_lat', 8, mean_latency_ns, 'ns')
RATE = ('tag_bw', 8, rate, 'M/s')
SIZES = (KIB, 4 * KIB, 32 * KIB, 64 * KIB, MIB)
THIS, OTHER = 'this build', 'the other'


def streams(*sizes):
    return [('tag_bw', size, bandwidth, MIB_S) for size in sizes]


def title(port, test, size):
    if test == 'tag_lat':
        return '%d B latency, %s (half round trip)' % (size, port)
    if size < KIB:
        return '%d B message rate, %s' % (size, port)
    return '%d KiB bandwidth, %s' % (size // KIB, port)


def goal(test):
    return (at_most, 1.03) if test.endswith('lat') else (at_least, 0.97)


class Against:
    """The two builds."""

    def __init__(self, b):
        self.b, self.build = b, b.args.against or ''
        self.perf = os.path.join(self.build, 'app/weft-perf')
        if not self.build or not os.access(self.perf, os.X_OK):
            raise TrialError('--against names no build: no program %s' % self.perf)

    def compare(self, port, run, cases):
        """run(test, size, perf): one run of that weft-perf over this kind of port."""
        if not self.has(port, run):
            return
        for test, size, value, unit in cases:
            self.b.alternate(title(port, test, size), {
                THIS: partial(run, test, size, self.b.perf),
                OTHER: partial(run, test, size, self.perf),
            }, value, unit, [(THIS, OTHER, *goal(test), None)])

    def has(self, port, run):
        """Whether the other build, which may be older, has this kind of port and the options of
        such a run."""
        for _ in range(2):
            try:
                run('tag_lat', 8, self.perf)
                return True
            except TrialError as err:
                why = str(err).split(' | ')[0]
        print('\n' + port)
        self.b.record(port)
        self.b.note('not there in the other build: ' + why)
        return False


def m_memif(b):
    """this build against another one (--against) over memif: 8 B latency 1.03 x, 8 B rate and 1 KiB
    to 1 MiB bandwidth 0.97 x; only when named, as the next four"""
    Against(b).compare('one memif lane', lambda t, s, perf: b.weft(t, s, perf=perf),
                       [LATENCY, RATE] + streams(KIB, 2 * KIB, 4 * KIB, 8 * KIB, *SIZES[2:]))


def m_shm(b):
    """the same over shared memory"""
    against, shm = Against(b), Shm(b)
    against.compare('shared memory', shm.weft, [LATENCY, RATE] + streams(*SIZES[:2]))
    # A buffer that never changes stays in the receiver's cache: only native reads profit from that,
    # and no program sends it. With -V the sender writes each message, and the receiver reads it.
    against.compare('shared memory, each byte written and compared',
                    lambda t, s, perf: shm.weft(t, s, perf, ['-V']), streams(*SIZES[2:]))


def m_virtio(b):
    """the same over net_vhost to net_virtio_user"""
    Against(b).compare('net_vhost to net_virtio_user', b.virtio, [LATENCY, RATE] + streams(*SIZES))


def m_packet(b):
    """the same over net_af_packet on a veth"""
    against = Against(b)
    with Rails(b, rates=(None, None)) as rails:
        against.compare('af_packet over a veth', lambda t, s, perf: rails.weft(
            t, s, [0], ['-n', str(b.iters(t, s, 0.03))], perf=perf),
            [LATENCY, RATE] + streams(*SIZES))


def m_mpi(b):
    """the same between two MPI ranks of a host"""
    builds = {THIS: b.args.build, OTHER: Against(b).build}
    ranks = {name: Mpi(b, build) for name, build in builds.items()}
    where = '%s, two MPI ranks of a host'
    cases = [('lat:8', '8 B latency, half round trip', 'ns', 1000),
             ('rate:8', '8 B message rate', 'M/s', 1)]
    cases += [('bw:%d' % size, size_name(size) + ' bandwidth', MIB_S, 1) for size in SIZES]
    b.contest([figure(where % what, name, unit, [(THIS, OTHER, *goal(name.split(':')[0]), None)],
                      scale, **on_cores(name)) for name, what, unit, scale in cases],
              {name: partial(mpi.run, MPI_WEFT, [c[0] for c in cases])
               for name, mpi in ranks.items()})


MEASURES = {'against-memif': m_memif, 'against-shm': m_shm, 'against-virtio': m_virtio,
            'against-packet': m_packet, 'against-mpi': m_mpi}
