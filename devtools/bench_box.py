#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Streams of weft-perf and of TCP between real processes through a box: two network namespaces, and
weft-wire in a third one between their veths, with a rate, a queue, delay, jitter and loss. One line
for each run, then the median and the quartiles of each kind of stream.

    devtools/bench_box.py --link rate=50M,queue=62k,delay=5ms cubic bbr udp:64k af_packet:1M

A stream is cubic, bbr, or LANE:SIZE[:CC]. It needs root. The box has a real-time priority: a box
that waits for a core would have jitter of its own.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time

from bench_choke import Lines, TCP, bandwidth, make_ends, run, tcp_bandwidth
from bench_run import TrialError, free_port

ADDRESS = '10.77.0.%d'
NO_OFFLOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'no_offloads.py')


class Box:
    """The namespaces: a and b for the ends, r for the box between them."""

    def __init__(self, o):
        self.build, self.mtu, self.sleep, self.wire = o.build, o.mtu, o.sleep, None
        self.first = o.first.split()
        self.ns = {s: 'box%x-%s' % (os.getpid(), s) for s in 'abr'}

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        make_ends(self.ns, self.mtu, ADDRESS)
        for ns in self.ns['a'], self.ns['b']:
            run('ip netns exec %s %s %s w0' % (ns, sys.executable, NO_OFFLOADS))
            for name in ('rmem', 'wmem'):
                run('ip netns exec %s sysctl -qw net.ipv4.tcp_%s=4096,1000000,30000000'
                    .replace(',', '\t') % (ns, name), check=False)
        vdev = '--vdev=net_af_packet%d,iface=r%s,qdisc_bypass=1,framecnt=512'
        self.wire = subprocess.Popen(
            ['ip', 'netns', 'exec', self.ns['r'], 'chrt', '-f', '50', self.build + '/app/weft-wire',
             '--no-huge', '-m', '256', '--no-pci', '--log-level=error',
             '--file-prefix=box%d' % os.getpid(), vdev % (0, 'a'), vdev % (1, 'b'), '--', '-n',
             '16k', '-S', str(self.sleep)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.answer()

    def answer(self):
        """The line about the way from a to b, of the two lines that weft-wire prints."""
        forth = ''
        for line in self.wire.stdout:
            if line.startswith('0 forth'):
                forth = line
            elif line.startswith('0 back'):
                return forth
        raise TrialError('weft-wire has ended')

    def command(self, text):
        self.wire.stdin.write(text + '\n')
        self.wire.stdin.flush()
        return self.answer()

    def counters(self):
        """Of the way from a to b."""
        forth = self.command('counters')
        return {what: int(n) for what, n in re.findall(r' ([a-z_]+) (\d+)', forth)}

    def __exit__(self, *exc):
        if self.wire:
            self.wire.kill()
            self.wire.wait()
        for ns in self.ns.values():
            run('ip netns del ' + ns, check=False)

    def start(self, side, cmd, env=None):
        return subprocess.Popen([*self.first, 'ip', 'netns', 'exec', self.ns[side]] + cmd,
                                env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                start_new_session=True)

    def tcp(self, alg, seconds):
        """Sender and receiver; the receiver has the figures."""
        ends, port = [], str(free_port())
        for side, what in (('b', '-'), ('a', alg)):
            ends.append(Lines(self.start(side, ['python3', '-c', TCP, what, str(seconds), port])))
            time.sleep(0.3)
        return ends

    def weft(self, lane, side, port, extra, env):
        eal, lanes = [], 'udp:w0,paths=1'
        if lane == 'af_packet':
            lanes = 'dpdk:0,ip=10.88.0.%d/24,mtu=%d' % ('ab'.index(side) + 1, self.mtu)
            eal = ['--no-pci', '--log-level=error', '--no-huge', '-m', '512',
                   '--file-prefix=box%d%s' % (os.getpid(), side),
                   '--vdev=net_af_packet0,iface=w0,qdisc_bypass=0,blocksz=16384,framesz=16384,'
                   'framecnt=256', '--']
        return Lines(self.start(side, [self.build + '/app/weft-perf', *eal, '-p', str(port), '-L',
                                       lanes] + extra, env))


def weft_args(o, name):
    """LANE:SIZE[:CC] as lane, arguments of the client, environment."""
    lane, size, cc = (name.split(':') + ['delay'])[:3]
    window = o.window or (8 if 'M' in size else 32)
    return lane, ['-t', 'tag_bw', '-s', size, '-n', '10000000', '-w', '2', '-O', str(window),
                  '--sleep', '-v', '10.99.0.2'], {'WEFT_CC': cc}


def start(box, o, name):
    """Starts a stream; returns its processes, first the one with the figures, and its meter."""
    life = o.settle + o.seconds + 5
    if ':' not in name:
        return box.tcp(name, life), tcp_bandwidth
    lane, extra, env = weft_args(o, name)
    port = free_port()
    server = box.weft(lane, 'b', port, ['--sleep'], env)
    time.sleep(0.7)
    return [box.weft(lane, 'a', port, extra, env), server], bandwidth


def trial(box, o, name):
    streams = []
    box.command('clear,' + o.link)
    try:
        for each in [o.beside] * bool(o.beside) + [name]:
            streams.append(start(box, o, each))
        time.sleep(o.settle)
        begin, before = time.time(), box.counters()
        time.sleep(o.seconds)
        end, after = time.time(), box.counters()
        time.sleep(0.4)
    finally:
        ended = [[p.end() for p in processes] for processes, _ in streams]
    came = after['rx'] - before.get('rx', 0)
    gone = sum(after[w] - before.get(w, 0) for w in after
               if w in ('queue_full', 'lost', 'lost_in_bursts', 'ring_full', 'no_mbuf'))
    figures = [8 * meter(lines[0], begin, end)
               for lines, (_, meter) in zip(ended, streams)]
    print('  %-14s %7.1f Mb/s%s, %d of %d frames dropped, load %s'
          % (name, figures[-1], ', %s %.1f' % (o.beside, figures[0]) if o.beside else '', gone,
             came, open('/proc/loadavg').read().split()[0]), flush=True)
    return figures


def show(name, runs, beside):
    text = '%-14s' % name
    for label, column in zip(('', ', ' + str(beside)), zip(*[r[::-1] for r in runs])):
        q = statistics.quantiles(column, n=4, method='inclusive') if len(column) > 1 else column * 3
        text += '%s %.1f (%.1f to %.1f)' % (label, q[1], q[0], q[2])
    print('%s Mb/s, n=%d' % (text, len(runs)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('stream', nargs='*', help='cubic, bbr, udp:64k, af_packet:1M:fixed, ...')
    parser.add_argument('--link', default='rate=50M', help="of weft-wire, for both directions")
    parser.add_argument('--beside', help='a stream that begins before, e.g. cubic')
    parser.add_argument('--settle', type=float, default=2, help='s before the bytes count (2)')
    parser.add_argument('--seconds', type=float, default=5, help='that count (5)')
    parser.add_argument('--runs', type=int, default=3, help='of each, in turn (3)')
    parser.add_argument('--window', type=int, help='messages in flight')
    parser.add_argument('--mtu', type=int, default=1500)
    parser.add_argument('--sleep', type=int, default=20, help='us that the box sleeps (20)')
    parser.add_argument('--first', default='nice -n -5',
                        help='before the command of each end: chrt -f 40 is a host without pauses')
    parser.add_argument('--build', default='build')
    o = parser.parse_args()
    results = {name: [] for name in o.stream}
    try:
        with Box(o) as box:
            print('%s%s' % (o.link, ', beside ' + o.beside if o.beside else ''))
            for _ in range(o.runs):
                for name in results:
                    results[name].append(trial(box, o, name))
    except TrialError as err:
        sys.exit('bench_box: %s' % err)
    finally:
        for name, runs in results.items():
            if runs:
                show(name, runs, o.beside)


if __name__ == '__main__':
    main()
