# SPDX-License-Identifier: BSD-3-Clause
"""Lanes over memif sockets with ports of Weft's own, beside net_memif and the bare port."""

import os
import random
from functools import partial

from bench_run import bandwidth, csv_rows, free_port, mean_latency_ns, pair, rate
from bench_trials import at_least, at_most_more, report

KIB, MIB = 1024, 1024 * 1024

OWN, PMD, BARE = "Weft's own port", 'net_memif', 'bare port'


def own(b, test, size):
    """As Bench.weft(), with a port of Weft's own at both ends."""
    port, path = free_port(), os.path.join(b.dir, 'own.%08x' % random.getrandbits(32))
    # The rings' length is that of Bench.memif().
    envs = [{'WEFT_LANES': 'dpdk:%s,role=%s,rsize=8,bsize=9216,mtu=9000' % (path, role)}
            for role in ('server', 'client')]
    ends = [[b.perf] + b.eal(core, []) + ['--', '-p', str(port)] for core in (b.a, b.b)]
    ends[1] += ['-t', test, '-s', str(size), '-n', str(b.iters(test, size)), '-f', '-v',
                '127.0.0.1']
    return csv_rows(pair(*ends, *envs, timeout=60))[-1]


def m_memif(b):
    """memif lanes with ports of Weft's own: 8 B within 40 ns of the bare port, 64 KiB and 1 MiB
    1.05 x the bare port"""
    for test, size, value, unit, compare in (
            ('lat', 8, mean_latency_ns, 'ns', (at_most_more, 40, 'near')),
            ('bw', 8, rate, 'M/s', (report, None, None)),
            ('bw', 64 * KIB, bandwidth, 'MiB/s', (at_least, 1.05, 'near')),
            ('bw', MIB, bandwidth, 'MiB/s', (at_least, 1.05, 'near'))):
        b.alternate('%s tag_%s, one memif lane, frames of 9000, by the kind of port'
                    % ('8 B' if size == 8 else '%d KiB' % (size // KIB), test), {
                        OWN: partial(own, b, 'tag_' + test, size),
                        PMD: partial(b.weft, 'tag_' + test, size),
                        BARE: partial(b.weft, 'raw_' + test, size),
                    }, value, unit, [
                        (OWN, BARE, *compare),
                        (OWN, PMD, report, None, None)])


MEASURES = {'memif': m_memif}
