# SPDX-License-Identifier: BSD-3-Clause
"""Two processes over shared memory: against a bare ring of lines, and against UCX."""

import os
import subprocess

from bench_run import TrialError, bandwidth, csv_rows, free_port, latency_ns, pair, rate, tail

KIB, MIB = 1024, 1024 * 1024


class Shm:
    def __init__(self, bench):
        self.b = bench
        self.floor_exe = os.path.join(bench.args.build, 'devtools/shm_floor')

    def weft(self, test, size):
        """One run of weft-perf, as an ordinary user could; the last CSV row."""
        common = [self.b.perf, '-L', 'shm', '-p', str(free_port())]
        out = pair(common + ['-c', str(self.b.a)],
                   common + ['-c', str(self.b.b), '-t', test, '-s', str(size), '-f', '-v', '-n',
                             str(self.b.iters(test, size)), '127.0.0.1'], {}, {}, timeout=60)
        return csv_rows(out)[-1]

    def floor(self):
        done = subprocess.run([self.floor_exe, str(self.b.a), str(self.b.b), '400000'],
                              capture_output=True, text=True)
        if done.returncode:
            raise TrialError('shm_floor: ' + tail(done.stderr))
        return csv_rows(done.stdout)[-1]


def measure(b, at_least, at_most_more, report):
    shm = Shm(b)
    ucx = 'posix,cma,self'
    b.alternate('8 B latency over shared memory (half round trip, median)', {
        'weft tag_lat': lambda: shm.weft('tag_lat', 8),
        'bare ring of lines': shm.floor,
        'UCX posix tag_lat': lambda: b.ucx(ucx, 'tag_lat', 8),
    }, latency_ns, 'ns', [
        ('weft tag_lat', 'bare ring of lines', at_most_more, 80, None),
        ('weft tag_lat', 'UCX posix tag_lat', report, None, None),
    ])
    b.alternate('8 B message rate over shared memory', {
        'weft tag_bw': lambda: shm.weft('tag_bw', 8),
        'UCX posix tag_bw': lambda: b.ucx(ucx, 'tag_bw', 8),
    }, rate, 'M/s', [('weft tag_bw', 'UCX posix tag_bw', at_least, 3, None)])
    for size in (64 * KIB, MIB, 4 * MIB):
        b.alternate('%d KiB bandwidth over shared memory' % (size // KIB), {
            'weft tag_bw': lambda: shm.weft('tag_bw', size),
            'UCX posix and cma tag_bw': lambda: b.ucx(ucx, 'tag_bw', size),
        }, bandwidth, 'MiB/s', [
            ('weft tag_bw', 'UCX posix and cma tag_bw', at_least, 1, None)])
