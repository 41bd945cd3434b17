# SPDX-License-Identifier: BSD-3-Clause
"""Two processes over shared memory: against a bare ring of lines, and against UCX."""

import os
import subprocess

from bench_run import (FIRST, TrialError, bandwidth, csv_rows, free_port, latency_ns, pair, rate,
                       tail)
from bench_trials import at_least, at_most, at_most_more

KIB, MIB = 1024, 1024 * 1024


class Shm:
    def __init__(self, bench):
        self.b = bench
        self.floor_exe = os.path.join(bench.args.build, 'devtools/shm_floor')

    def weft(self, test, size, perf=None, extra=()):
        """One run of weft-perf (or of perf, another build's), as an ordinary user could; the last
        CSV row."""
        common = [perf or self.b.perf, '-L', 'shm', '-p', str(free_port())]
        out = pair(common + ['-c', str(self.b.a)],
                   common + ['-c', str(self.b.b), '-t', test, '-s', str(size), '-f', '-v', '-n',
                             str(self.b.iters(test, size)), *extra, '127.0.0.1'], {}, {},
                   timeout=60)
        return csv_rows(out)[-1]

    def floor(self):
        done = subprocess.run(FIRST + [self.floor_exe, str(self.b.a), str(self.b.b), '400000'],
                              capture_output=True, text=True, start_new_session=True)
        if done.returncode:
            raise TrialError('shm_floor: ' + tail(done.stderr))
        return csv_rows(done.stdout)[-1]


def rate_target():
    """Of UCX's, which sends with a locked operation: it costs Intel's processors more."""
    with open('/proc/cpuinfo') as f:
        return 3 if 'GenuineIntel' in f.read() else 0.9


def at_most_when_slow(a, b, target):
    """There is no target where UCX itself takes at most 250 ns."""
    met, result, wanted = at_most(a, b, target)
    return met, result, wanted if b > 250 else ''


def m_shm(b):
    """shared memory: 8 B a bare ring + 80 ns, 0.8 x UCX where that takes over 250 ns; 3 x UCX's
    rate (AMD: 0.9); 64 KiB to 4 MiB 1 x UCX"""
    shm = Shm(b)
    ucx = 'posix,cma,self'
    b.alternate('8 B latency over shared memory (half round trip, median)', {
        'weft tag_lat': lambda: shm.weft('tag_lat', 8),
        'bare ring of lines': shm.floor,
        'UCX posix tag_lat': lambda: b.ucx(ucx, 'tag_lat', 8),
    }, latency_ns, 'ns', [
        ('weft tag_lat', 'bare ring of lines', at_most_more, 80, None),
        ('weft tag_lat', 'UCX posix tag_lat', at_most_when_slow, 0.8, None),
    ])
    b.alternate('8 B message rate over shared memory', {
        'weft tag_bw': lambda: shm.weft('tag_bw', 8),
        'UCX posix tag_bw': lambda: b.ucx(ucx, 'tag_bw', 8),
    }, rate, 'M/s', [('weft tag_bw', 'UCX posix tag_bw', at_least, rate_target(), None)])
    for size in (64 * KIB, MIB, 4 * MIB):
        b.alternate('%d KiB bandwidth over shared memory' % (size // KIB), {
            'weft tag_bw': lambda: shm.weft('tag_bw', size),
            'UCX posix and cma tag_bw': lambda: b.ucx(ucx, 'tag_bw', size),
        }, bandwidth, 'MiB/s', [
            ('weft tag_bw', 'UCX posix and cma tag_bw', at_least, 1, None)])
