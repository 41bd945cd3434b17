# SPDX-License-Identifier: BSD-3-Clause
"""weft-switch: the latency that it adds to a memif hop, the rate of a core, the ports' shares."""

import csv
import io
import os
import subprocess
import sys
import tempfile

from bench_run import TrialError, pair, csv_rows, bandwidth, free_port, tail
from bench_trials import report

KIB, MIB = 1024, 1024 * 1024
SMALL = ['--no-huge', '-m', '64', '--no-pci', '--no-shconf']


class Switch:
    """A switch without an uplink, which polls on one of the two cores."""

    def __init__(self, bench, folder):
        self.b = bench
        self.socket = os.path.join(folder, 'sock')
        self.memif = os.path.join(folder, 'memif')
        self.program = None

    def __enter__(self):
        command = ['taskset', '-c', str(self.b.b),
                   os.path.join(self.b.args.build, 'app/weft-switch'),
                   *SMALL, '--', '-p', self.socket, '-n', '16', '-S', '0', 'none']
        self.program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if ' ports at ' not in self.program.stdout.readline():
            raise TrialError('weft-switch did not start')
        return self

    def __exit__(self, *what):
        self.program.terminate()
        self.program.communicate()

    def run(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise TrialError('%s: %s' % (os.path.basename(command[0]), tail(done.stderr)))
        return done.stdout

    def hop(self, kind, size):
        with_file = self.memif if kind == 'bare' else self.socket
        out = self.run(os.path.join(self.b.args.build, 'devtools/switch_hop'), '--no-huge', '-m',
                       '256', '--no-pci', '--no-shconf', '--log-level=error', '-l', str(self.b.a),
                       '--', kind, with_file, str(size), '20000')
        if kind == 'bare':
            os.unlink(self.memif)
        return next(csv.DictReader(io.StringIO(out[out.index('hop,'):])))

    def share(self, size):
        """What all forwarded, and the least part of a fair share that a fast port had."""
        here = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'switch_share.py')
        lines = self.run('taskset', '-c', str(self.b.a), sys.executable, here, '--bytes',
                         str(size), '--seconds', '1', self.socket).splitlines()
        total = next(line for line in lines if line.startswith('all,')).split(',')
        return {'frames': float(total[1].split()[1]), 'bytes': float(total[2].split()[1]),
                'worst': float(lines[-1].split(',')[1])}

    def perf(self, memory):
        """1 MiB from one process to another: over the switch, or over memif alone."""
        b, port = self.b, str(free_port())
        ends = [[b.perf, '--no-huge', '-m', '256', '--no-pci', '--no-shconf', '--',
                 '-L', 'dpdk', '-p', port] for _ in range(2)]
        env = {'WEFT_SWITCH': self.socket}
        if memory:
            env = {'WEFT_SWITCH': 'off', 'WEFT_LANES': 'dpdk:0,mtu=9000'}
            for end, role in zip(ends, ('server', 'client')):
                end.insert(1, '--vdev=net_memif0,role=%s,socket-abstract=no,rsize=8,bsize=9088,'
                           'socket=%s' % (role, self.memif))
                del end[end.index('-L'):end.index('-L') + 2]
        ends[1] += ['-t', 'tag_bw', '-s', '1M', '-f', '-v', '-D', '1', '127.0.0.1']
        return csv_rows(pair(*ends, env, env, timeout=60))[-1]


def m_switch(b):
    """weft-switch: what it adds to a memif hop, frames of a core, shares of 16 ports, 1 MiB"""
    with tempfile.TemporaryDirectory() as folder, Switch(b, folder) as s:
        for size in (60, 1514, 9014):
            b.alternate('one way of a frame of %d bytes between two ports of a thread' % size, {
                'over weft-switch': lambda size=size: s.hop('switch', size),
                'bare memif': lambda size=size: s.hop('bare', size),
            }, lambda row: float(row['one_way_ns']), 'ns', [
                ('over weft-switch', 'bare memif', report, None, None)])
        for size in (64, 1514, 9014):
            b.alternate('16 ports with full rings, one of them slow, frames of %d bytes' % size, {
                'frames forwarded': lambda size=size: s.share(size),
            }, lambda row: row['frames'] / 1e6, 'M/s', [])
            b.alternate('the same: least part of an equal share that one of the 15 had', {
                'worst of 15': lambda size=size: s.share(size),
            }, lambda row: row['worst'], '(wanted: 0.8)', [])
        b.alternate('1 MiB bandwidth between two processes', {
            'over weft-switch': lambda: s.perf(False),
            'bare memif': lambda: s.perf(True),
        }, bandwidth, 'MiB/s', [('over weft-switch', 'bare memif', report, None, None)])
