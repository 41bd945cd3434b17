#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
A stream of weft-perf over real ports through a congested link: two network namespaces, a bridge in
a third one between them, and a token bucket behind the bridge (tbf: 200 Mb/s, 40 kB of queue). One
line for each run: MB/s of messages, frames that the link dropped, MB/s of the TCP flow.

It needs root. The processes have high priority (autogroup -20), since otherwise no comparison would
be possible on a machine with other work.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time

from bench_run import TrialError, free_port

RATE, QUEUE, BURST = '200mbit', 40000, 3200
SETTLE = 1.0  # s until the carried bytes count

# The TCP flow: a sender whose socket is always full, and a receiver that counts.
TCP = r"""
import socket, sys, time
alg, until, port = sys.argv[1], time.time() + float(sys.argv[2]), int(sys.argv[3])
if alg == '-':
    listener = socket.socket()
    listener.bind(('10.77.0.2', port))
    listener.listen(1)
    s, n, at = listener.accept()[0], 0, 0
    while got := len(s.recv(65536)):
        n += got
        if time.time() - at > 0.05:
            at = time.time()
            print(at, n, flush=True)
else:
    s = socket.socket()
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, alg.encode())
    s.connect(('10.77.0.2', port))
    while time.time() < until:
        s.send(bytes(65536))
"""


def run(cmd, check=True):
    done = subprocess.run(cmd.split(), capture_output=True, text=True)
    if check and done.returncode:
        raise TrialError('%s: %s' % (cmd, done.stderr.strip()))
    return done.stdout


def make_ends(ns, mtu, address):
    """Namespaces a, b and r: interfaces w0 of a and b are veths to ra and rb of r. Interface ctl
    leads from a to b."""
    for name in ns.values():
        run('ip netns add ' + name)
    run('ip -n %s link add ctl type veth peer name ctl netns %s' % (ns['a'], ns['b']))
    for i, s in enumerate('ab', 1):
        run('ip -n %s link add w0 mtu %d type veth peer name r%s mtu %d netns %s'
            % (ns[s], mtu, s, mtu, ns['r']))
        run('ip -n %s link set r%s up' % (ns['r'], s))
        run('ip -n %s addr add %s/24 dev w0' % (ns[s], address % i))
        run('ip -n %s addr add 10.99.0.%d/24 dev ctl' % (ns[s], i))
        for link in ('lo', 'w0', 'ctl'):
            run('ip -n %s link set %s up' % (ns[s], link))


class Choke:
    """The namespaces: a and b for the ends, r for the bridge between them."""

    def __init__(self, mtu):
        self.mtu = mtu
        self.ns = {s: 'choke%x-%s' % (os.getpid(), s) for s in 'abr'}

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        r = self.ns['r']
        make_ends(self.ns, self.mtu, '10.77.0.%d')
        run('ip -n %s link add br0 type bridge' % r)
        run('ip -n %s link set br0 up' % r)
        for s in 'ab':
            run('ip -n %s link set r%s master br0' % (r, s))
        run('tc -n %s qdisc add dev rb root tbf rate %s burst %d limit %d'
            % (r, RATE, BURST, QUEUE))
        time.sleep(0.3)

    def __exit__(self, *exc):
        for ns in self.ns.values():
            run('ip netns del ' + ns, check=False)

    def start(self, side, cmd, env=None):
        """Starts a process on its core, if that is available, in a session of its own."""
        return subprocess.Popen(['ip', 'netns', 'exec', self.ns[side], 'bash', '-c',
                                 'echo -20 > /proc/self/autogroup; exec "$@"', 'x'] + cmd,
                                env={**os.environ, **(env or {})}, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def weft(self, build, cc, side, port, extra):
        core = 'ab'.index(side)
        vdev = ('net_af_packet0,iface=w0,qdisc_bypass=0,blocksz=16384,framesz=16384,framecnt=256')
        env = {'WEFT_CC': cc,
               'WEFT_LANES': 'dpdk:0,ip=10.88.0.%d/24,mtu=%d' % (core + 1, self.mtu)}
        return self.start(side, [build + '/app/weft-perf', '--in-memory', '--no-pci',
                                 '--log-level=error', '-l', str(core), '--vdev=' + vdev, '--',
                                 '-p', str(port)] + extra, env)

    def link(self):
        """Frames that the token bucket has let through, and dropped."""
        text = run('tc -s -n %s qdisc show dev rb' % self.ns['r'])
        sent, dropped = re.search(r'Sent \d+ bytes (\d+) pkt \(dropped (\d+),', text).groups()
        return int(sent), int(dropped)


class Lines(threading.Thread):
    """What a process prints, with the time of each line."""

    def __init__(self, proc):
        super().__init__(daemon=True)
        self.proc, self.lines = proc, []
        self.start()

    def run(self):
        for line in self.proc.stdout:
            self.lines.append((time.time(), line))

    def end(self):
        if self.proc.poll() is None:
            os.killpg(self.proc.pid, signal.SIGKILL)
        self.proc.wait()
        self.join(timeout=5)
        return self.lines


def bandwidth(lines, begin, end):
    """Mean of weft-perf's lines, one each second, MB/s."""
    heads = [line.strip().split(',') for _, line in lines if 'overall_bw' in line]
    rows = [line.split(',') for at, line in lines
            if begin + 0.5 < at < end + 0.3 and line[:1].isdigit()]
    if not heads:
        raise TrialError('no figure: ' + ''.join(line for _, line in lines[-3:]))
    at = heads[0].index('avg_bw')
    return sum(float(r[at]) for r in rows) / max(len(rows), 1) * 1.048576


def tcp_bandwidth(lines, begin, end):
    seen = [[float(x) for x in line.split()] for _, line in lines if len(line.split()) == 2]
    seen = [(at, n) for at, n in seen if begin <= at <= end]
    return (seen[-1][1] - seen[0][1]) / (end - begin) / 1e6 if len(seen) > 1 else 0


def trial(choke, o, cc):
    port, procs = free_port(), []
    try:
        procs.append(Lines(choke.weft(o.build, cc, 'b', port, [])))
        if o.beside:
            for side, alg in (('b', '-'), ('a', o.beside)):
                procs.append(Lines(choke.start(side, ['python3', '-c', TCP, alg, '60', '5999'])))
                time.sleep(0.3)
        time.sleep(0.5)
        client = Lines(choke.weft(o.build, cc, 'a', port,
                                  ['-t', 'tag_bw', '-s', '65536', '-n', '10000000', '-w', '8', '-v',
                                   '10.99.0.2']))
        procs.append(client)
        time.sleep(SETTLE)
        begin, before = time.time(), choke.link()
        time.sleep(o.seconds)
        end, after = time.time(), choke.link()
    finally:
        ended = [p.end() for p in reversed(procs)]
    sent, dropped = (a - b for a, b in zip(after, before))
    text = '%-6s %6.2f MB/s, dropped %5.2f %% of %d' % (
        cc, bandwidth(client.lines, begin, end), 100 * dropped / max(sent + dropped, 1),
        sent + dropped)
    if o.beside:
        text += ', %s %6.2f MB/s' % (o.beside, tcp_bandwidth(ended[2], begin, end))
    print(text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('cc', nargs='*', default=['fixed', 'delay'], help='values of WEFT_CC')
    parser.add_argument('--beside', metavar='ALG', help='also run a TCP flow: cubic, bbr')
    parser.add_argument('--seconds', type=float, default=3, help='that count (3)')
    parser.add_argument('--runs', type=int, default=3, help='of each, alternating (3)')
    parser.add_argument('--mtu', type=int, default=1500)
    parser.add_argument('--build', default='build')
    o = parser.parse_args()
    if o.seconds < 2:
        parser.error('--seconds: at least 2, for weft-perf prints a line each second')
    try:
        with Choke(o.mtu) as choke:
            for _ in range(o.runs):
                for cc in o.cc:
                    trial(choke, o, cc)
    except TrialError as err:
        sys.exit('bench_choke: %s' % err)


if __name__ == '__main__':
    main()
