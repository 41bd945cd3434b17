#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures Weft against the bare port and against UCX. Called by devtools/bench.sh.

A measure has variants (A, B, ...) that take turns, so that what drifts drifts for all of them. Every trial is two processes
pinned to two cores. The time that a cache line takes between these cores is measured right before and right after; a trial
whose two times fall into different states (near, far) is dropped, and so is one during which other processes used the
machine; the others are sorted by state, and variants are compared only within a state. Printed are the median and the quartiles of each variant, and the ratio of the medians.
"""

import argparse
import contextlib
import csv
import io
import json
import os
import random
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import bench_multi_eager
import bench_sweep

KIB = 1024
MIB = 1024 * 1024


class TrialError(Exception):
    """A trial did not give a figure; the text says why."""


# ---- processes ------------------------------------------------------------------------------

def free_port():
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(('', port))
                return port
            except OSError:
                continue


def end(proc):
    """Ends a process that this script started, and its children."""
    if proc.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(proc.pid, signal.SIGTERM)
        try:
            proc.wait(timeout=3)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(proc.pid, signal.SIGKILL)
            proc.wait()


def pair(server, client, env_server, env_client, timeout, live=None):
    """Runs server and client; returns the client's output. live(client): called when both run; returns what it has read."""
    for cmd in (server, client):
        if shutil.which(cmd[0]) is None:
            raise TrialError('there is no program ' + cmd[0])
    with tempfile.TemporaryFile('w+') as server_out:
        srv = subprocess.Popen(server, env={**os.environ, **env_server}, stdin=subprocess.DEVNULL,
                               stdout=server_out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            time.sleep(0.15)
            cli = subprocess.Popen(client, env={**os.environ, **env_client}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
            try:
                begin = live(cli) if live else ''
                out, err = cli.communicate(timeout=timeout)
                out = begin + out
            except subprocess.TimeoutExpired:
                end(cli)
                out, err = cli.communicate()
                raise TrialError('no end after %g s: %s' % (timeout, tail(err))) from None
            if cli.returncode != 0:
                server_out.seek(0)
                raise TrialError('exit code %d: %s | server: %s'
                                 % (cli.returncode, tail(err or out), tail(server_out.read())))
            with contextlib.suppress(subprocess.TimeoutExpired):
                srv.wait(timeout=2)
            return out
        finally:
            end(srv)


def tail(text, lines=3):
    return ' / '.join((text or '').strip().splitlines()[-lines:])


def csv_rows(text):
    """Rows of the last CSV table in a program's output, as dictionaries."""
    lines = [line for line in text.splitlines() if ',' in line and not line.startswith('#')]
    heads = [i for i, line in enumerate(lines) if 'overall_lat' in line or line.startswith('messages,')]
    if not heads:
        raise TrialError('no CSV in the output: ' + tail(text))
    rows = list(csv.DictReader(io.StringIO('\n'.join(lines[heads[-1]:]))))
    if not rows:
        raise TrialError('no figure in the output: ' + tail(text))
    return rows


# ---- states of the two cores ----------------------------------------------------------------

class Cores:
    def __init__(self, program, a, b, limit):
        self.cmd = [program, '-c', '%d,%d' % (a, b), '-l', str(limit)]

    def state(self):
        out = subprocess.run(self.cmd, capture_output=True, text=True, check=True).stdout.split()
        return float(out[0]), out[1]


class Others:
    """How much of the machine processes other than the trial's used since the last call."""

    def __init__(self):
        self.last = self.read()

    @staticmethod
    def read():
        with open('/proc/stat') as f:
            ticks = [int(x) for x in f.readline().split()[1:9]]
        used = sum(getattr(resource.getrusage(who), field) for field in ('ru_utime', 'ru_stime')
                   for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
        hz = os.sysconf('SC_CLK_TCK')
        return sum(ticks) / hz, (ticks[3] + ticks[4]) / hz, used

    def part(self):
        now = self.read()
        total, idle, own = (n - l for n, l in zip(now, self.last))
        self.last = now
        return max(total - idle - own, 0) / total if total else 0


# ---- links ----------------------------------------------------------------------------------

class Bench:
    def __init__(self, args):
        self.args = args
        self.a, self.b = (int(c) for c in args.cores.split(','))
        self.cores = Cores(os.path.join(args.build, 'devtools/corestate'), self.a, self.b, args.near)
        self.perf = os.path.join(args.build, 'app/weft-perf')
        self.memory = args.memory.split()
        self.dir = tempfile.mkdtemp(prefix='weft-bench.')
        self.results = []

    def eal(self, core, vdevs, memory=None):
        cmd = ['-l', str(core), '--no-pci', '--log-level=error'] + (memory or self.memory)
        for vdev in vdevs:
            cmd += ['--vdev', vdev]
        return cmd

    def memif(self, lanes=1, rsize=8):
        """EAL vdev lists for server and client; rings of 2^rsize frames."""
        tag = '%08x' % random.getrandbits(32)
        return tuple(['net_memif%d,role=%s,id=0,socket-abstract=no,socket=%s/%s.%d,rsize=%d,bsize=9216'
                      % (i, role, self.dir, tag, i, rsize) for i in range(lanes)]
                     for role in ('server', 'client'))

    def weft(self, test, size, extra=(), lanes=1, env=None, iters=None, memory=None, rsize=8):
        """One run of weft-perf over memif lanes; the last CSV row."""
        port = free_port()
        srv, cli = self.memif(lanes, rsize)
        environ = {'WEFT_LANES': ';'.join('dpdk:%d,mtu=9000' % i for i in range(lanes)), **(env or {})}
        common = ['-p', str(port)]
        test_args = ['-t', test, '-s', str(size), '-n', str(iters or self.iters(test, size)), '-f', '-v']
        out = pair([self.perf] + self.eal(self.a, srv, memory) + ['--'] + common,
                   [self.perf] + self.eal(self.b, cli, memory) + ['--'] + common + test_args + list(extra)
                   + ['127.0.0.1'],
                   environ, environ, timeout=60)
        return csv_rows(out)[-1]

    def ucx(self, tls, test, size):
        port = free_port()
        env = {'UCX_TLS': tls, 'UCX_LOG_LEVEL': 'error'}
        iters = self.iters(test, size, 0.1 if tls.startswith('tcp') else 1)
        common = ['ucx_perftest', '-p', str(port), '-c']
        out = pair(common + [str(self.a)],
                   common + [str(self.b), '127.0.0.1', '-t', test, '-s', str(size), '-n', str(iters),
                             '-w', str(max(iters // 20, 10)), '-f', '-v'],
                   env, env, timeout=60)
        return csv_rows(out)[-1]

    @staticmethod
    def iters(test, size, scale=1.0):
        """Iterations that take some tenths of a second."""
        if test.endswith('lat'):
            return max(int(400000 * scale / (1 + size / 4096)), 200)
        return max(int(4000000 * scale / (1 + size / 512)), 100)

    # ---- alternating ----

    def alternate(self, title, variants, figure, unit, better, compare, note=''):
        """variants: {name: function giving a CSV row}; compare: [(numerator, denominator, test, target)]."""
        print('\n%s' % title)
        if note:
            print('  ' + note)
        got = {name: {} for name in variants}
        dropped = {name: {'state': 0, 'busy': 0} for name in variants}
        others = Others()
        errors = {name: [] for name in variants}
        begin = time.monotonic()
        want = self.args.trials

        def enough():
            states = [s for s in ('near', 'far') if any(s in g for g in got.values())]
            live = [n for n in variants if len(errors[n]) < 3]
            return states and all(len(got[n].get(s, [])) >= want for n in live for s in states)

        while time.monotonic() - begin < self.args.seconds and not enough():
            alive = False
            for name, run in variants.items():
                if len(errors[name]) >= 3:
                    continue
                alive = True
                before = self.cores.state()
                others.part()
                try:
                    value = figure(run())
                except (TrialError, KeyError, ValueError) as err:
                    errors[name].append(str(err) or repr(err))
                    continue
                busy = others.part()
                after = self.cores.state()
                if busy > self.args.busy / 100:
                    dropped[name]['busy'] += 1
                elif before[1] != after[1]:
                    dropped[name]['state'] += 1
                else:
                    got[name].setdefault(before[1], []).append(value)
            if not alive:
                break

        record = {'title': title, 'unit': unit, 'better': better, 'values': got, 'dropped': dropped,
                  'errors': errors, 'verdicts': []}
        for name in variants:
            for state in ('near', 'far'):
                if state in got[name]:
                    print('  %-4s  %-34s %s' % (state, name, spread(got[name][state], unit)))
            for why, text in (('state', 'the cores changed state'),
                              ('busy', 'other processes used more than %g %% of the machine' % self.args.busy)):
                if dropped[name][why]:
                    print('        %-34s %d trials dropped: %s' % (name, dropped[name][why], text))
            for text in errors[name]:
                print('        %-34s failed: %s' % (name, text))
        for a, b, what, target in compare:
            for state in ('near', 'far'):
                va, vb = got[a].get(state), got[b].get(state)
                if not va or not vb:
                    continue
                ma, mb = statistics.median(va), statistics.median(vb)
                value, ok, text = what(ma, mb, target)
                few = min(len(va), len(vb)) < want
                verdict = 'met' if ok else 'NOT MET'
                if few:
                    verdict += ' (only %d and %d trials)' % (len(va), len(vb))
                print('  %-4s  %s against %s: %s: %s' % (state, a, b, text, verdict))
                record['verdicts'].append({'state': state, 'a': a, 'b': b, 'value': value, 'target': target,
                                           'met': ok, 'enough': not few})
        sys.stdout.flush()
        self.results.append(record)


    def series(self, title, run, columns):
        """Trials of one thing that has a limit, not a rival. columns: [(name, unit, function of a row, limit of a row or
        None)]."""
        print('\n%s' % title)
        rows, errors = [], []
        while len(rows) < self.args.trials and len(errors) < 3:
            try:
                rows.append(run())
            except TrialError as err:
                errors.append(str(err))
                print('        failed: %s' % err)
        record = {'title': title, 'values': rows, 'errors': errors, 'verdicts': []}
        for name, unit, value, limit in columns if rows else ():
            values = [value(r) for r in rows]
            line = '  %-40s %s' % (name, spread(values, unit))
            if limit:
                bound = max(limit(r) for r in rows)
                ok = all(value(r) <= limit(r) for r in rows) and not errors
                line += ', wanted at most %.4g: %s' % (bound, 'met' if ok else 'NOT MET')
                record['verdicts'].append({'a': name, 'value': statistics.median(values), 'target': bound,
                                           'met': ok, 'enough': len(rows) >= self.args.trials})
            print(line)
        sys.stdout.flush()
        self.results.append(record)


def spread(values, unit):
    if len(values) > 1:
        q = statistics.quantiles(values, n=4, method='inclusive')
    else:
        q = [values[0]] * 3
    return 'median %10.4g  [%.4g .. %.4g] %s, %d trials' % (q[1], q[0], q[2], unit, len(values))


def at_least(a, b, target):
    return a / b, a / b >= target, '%.2f x, wanted at least %.2f x' % (a / b, target)


def at_most(a, b, target):
    return a / b, a / b <= target, '%.2f x, wanted at most %.2f x' % (a / b, target)


def at_most_more(a, b, target):
    return a - b, a - b <= target, '%+.0f ns, wanted at most %+.0f ns' % (a - b, target)


def report(a, b, target):
    return a / b, True, '%.2f x (for scale)' % (a / b)


# Figures of a row. Latency in ns, rate in messages/s, bandwidth in MiB/s.
def latency_ns(row):
    return float(row.get('50.0_percentile_lat') or row['p50_lat']) * 1000


def mean_latency_ns(row):
    return float(row['overall_lat']) * 1000


def rate(row):
    return float(row['overall_mr']) / 1e6


def bandwidth(row):
    return float(row['overall_bw'])


# ---- two shaped rails -----------------------------------------------------------------------

class Rails:
    """Two network namespaces, two veth rails between them behind a token bucket at both ends, and a veth for the programs'
    own TCP connection."""

    def __init__(self, bench, rates=(10**9, 10**9), mtu=9000, burst=None, name=''):
        self.b = bench
        tag = '%x%s' % (os.getpid(), name)
        self.ns = ['weft-%s-%s' % (tag, side) for side in 'ab']
        self.burst = burst
        self.rates, self.mtu = rates, mtu

    @staticmethod
    def run(cmd):
        done = subprocess.run(cmd.split(), capture_output=True, text=True)
        if done.returncode:
            raise TrialError('%s: %s' % (cmd, tail(done.stderr)))

    def __enter__(self):
        try:
            for ns in self.ns:
                self.run('ip netns add ' + ns)
                self.run('ip -n %s link set lo up' % ns)
            for i, link in enumerate(('rail0', 'rail1', 'ctl')):
                self.run('ip -n %s link add %s type veth peer name %s netns %s'
                         % (self.ns[0], link, link, self.ns[1]))
                for side, ns in enumerate(self.ns):
                    if link == 'ctl':
                        self.run('ip -n %s addr add 10.99.0.%d/24 dev ctl' % (ns, side + 1))
                    else:
                        self.run('ip -n %s link set %s mtu %d' % (ns, link, self.mtu))
                        self.shape('add', ns, i, self.rates[i])
                    self.run('ip -n %s link set %s up' % (ns, link))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        for ns in self.ns:
            subprocess.run(['ip', 'netns', 'del', ns], stderr=subprocess.DEVNULL)

    def shape(self, what, ns, rail, rate):
        burst = self.burst or rate // 8 // 1000  # 1 ms of rate
        self.run('tc -n %s qdisc %s dev rail%d root tbf rate %dbit burst %d latency 20ms'
                 % (ns, what, rail, rate, max(burst, 16000)))

    def set_rate(self, rail, rate):
        """Both directions of a rail, while it is in use."""
        for ns in self.ns:
            self.shape('change', ns, rail, rate)

    def weft(self, test, size, rails, amount, live=None):
        """One run; amount: options that say how long. live(client): called when it runs, returns what it has read of the
        output; the rows of every second are returned then."""
        cmds, envs = self.commands(rails, free_port())
        out = pair(cmds[0], cmds[1] + ['-t', test, '-s', str(size), '-v'] + amount + ([] if live else ['-f'])
                   + ['10.99.0.1'], envs[0], envs[1], timeout=60, live=live)
        return csv_rows(out) if live else csv_rows(out)[-1]

    def commands(self, rails, port):
        """Command lines and environments of the two ends."""
        cmds, envs = [], []
        for side, core in ((0, self.b.a), (1, self.b.b)):
            vdevs = ['net_af_packet%d,iface=rail%d,qdisc_bypass=0,blocksz=16384,framesz=16384,framecnt=256'
                     % (n, r) for n, r in enumerate(rails)]
            cmds.append(['ip', 'netns', 'exec', self.ns[side], self.b.perf] + self.b.eal(core, vdevs)
                        + ['--', '-p', str(port)])
            envs.append({'WEFT_LANES': ';'.join('dpdk:%d,ip=10.88.%d.%d/24,mtu=%d' % (n, r, side + 1, self.mtu)
                                                for n, r in enumerate(rails))})
        return cmds, envs

    def stream(self, test, size, rails, nbytes):
        return self.weft(test, size, rails, ['-n', str(max(nbytes // size, 8))])

    def each_alone(self, size, nbytes):
        """The bare port on each rail by itself: the sum."""
        return {'overall_bw': sum(bandwidth(self.stream('raw_bw', size, [r], nbytes * self.rates[r] // sum(self.rates)))
                                  for r in (0, 1))}

    def cut(self, size, before=2, settle=2, after=2, divisor=4):
        """A stream over both rails; after some seconds the second one is cut. What moves when it has had time to settle."""
        def live(client):
            lines = []
            while sum(line[:1].isdigit() for line in lines) < before:
                line = client.stdout.readline()
                if not line:
                    return ''.join(lines)
                lines.append(line)
            self.set_rate(1, self.rates[1] // divisor)
            return ''.join(lines)

        try:
            rows = self.weft('tag_bw', size, [0, 1], ['-D', str(before + settle + after + 1)], live=live)
        finally:
            self.set_rate(1, self.rates[1])
        # A row is a second; the one in which the cut fell counts to the settling.
        rows = rows[before + settle + 1:-1] or rows[-1:]
        return {'overall_bw': statistics.mean(float(r['avg_bw']) for r in rows)}


# ---- measures -------------------------------------------------------------------------------

def m_lat(b):
    """8 B tag_lat over one memif lane: bare port + 200 ns, 0.15 x UCX tcp"""
    b.alternate('8 B latency, one memif lane, frames of 9000 (half round trip)', {
        'weft tag_lat': lambda: b.weft('tag_lat', 8),
        'bare port raw_lat': lambda: b.weft('raw_lat', 8),
        'UCX tcp tag_lat': lambda: b.ucx('tcp,self', 'tag_lat', 8),
        'UCX posix tag_lat': lambda: b.ucx('posix,self', 'tag_lat', 8),
    }, mean_latency_ns, 'ns', 'less', [
        ('weft tag_lat', 'bare port raw_lat', at_most_more, 200),
        ('weft tag_lat', 'UCX tcp tag_lat', at_most, 0.15),
        ('weft tag_lat', 'UCX posix tag_lat', report, None),
    ])


def m_rate(b):
    """8 B tag_bw over one memif lane: 0.7 x UCX posix, 20 x UCX tcp"""
    b.alternate('8 B message rate, one memif lane, frames of 9000', {
        'weft tag_bw': lambda: b.weft('tag_bw', 8),
        'UCX posix tag_bw': lambda: b.ucx('posix,self', 'tag_bw', 8),
        'UCX tcp tag_bw': lambda: b.ucx('tcp,self', 'tag_bw', 8),
        'bare port raw_bw': lambda: b.weft('raw_bw', 8),
    }, rate, 'M/s', 'more', [
        ('weft tag_bw', 'UCX posix tag_bw', at_least, 0.7),
        ('weft tag_bw', 'UCX tcp tag_bw', at_least, 20),
        ('weft tag_bw', 'bare port raw_bw', report, None),
    ])


def m_bw(b):
    """64 KiB and 1 MiB tag_bw over one memif lane: 0.7 x the bare port"""
    for size in (64 * KIB, MIB):
        b.alternate('%d KiB bandwidth, one memif lane, frames of 9000' % (size // KIB), {
            'weft tag_bw': lambda: b.weft('tag_bw', size),
            'bare port raw_bw': lambda: b.weft('raw_bw', size),
            'UCX posix tag_bw': lambda: b.ucx('posix,self', 'tag_bw', size),
            'UCX tcp tag_bw': lambda: b.ucx('tcp,self', 'tag_bw', size),
        }, bandwidth, 'MiB/s', 'more', [
            ('weft tag_bw', 'bare port raw_bw', at_least, 0.7),
            ('weft tag_bw', 'UCX posix tag_bw', report, None),
            ('weft tag_bw', 'UCX tcp tag_bw', report, None),
        ])


def m_rails(b):
    """256 KiB, 1 and 16 MiB tag_bw over two veth rails of 1 Gb/s: 0.95 x the sum of the bare rails"""
    rails_measure(b, (10**9, 10**9), (256 * KIB, MIB, 16 * MIB))


def m_unequal(b):
    """1 and 16 MiB tag_bw over rails of 1.5 and 0.5 Gb/s: 0.95 x the sum of the bare rails"""
    rails_measure(b, (1500 * 10**6, 500 * 10**6), (MIB, 16 * MIB))


def rails_measure(b, rates, sizes):
    with Rails(b, rates) as rails:
        for size in sizes:
            nbytes = 300 * MIB
            b.alternate('%d KiB bandwidth, two veth rails behind tbf %g and %g Gb/s, burst 1 ms, net_af_packet, MTU 9000'
                        % (size // KIB, rates[0] / 1e9, rates[1] / 1e9), {
                            'weft tag_bw, both rails': lambda s=size, n=nbytes: rails.stream('tag_bw', s, [0, 1], n),
                            'bare ports raw_bw, sum': lambda s=size, n=nbytes: rails.each_alone(s, n // 2),
                        }, bandwidth, 'MiB/s', 'more', [
                            ('weft tag_bw, both rails', 'bare ports raw_bw, sum', at_least, 0.95),
                        ])


def m_cut(b):
    """1 and 16 MiB tag_bw over two rails of 1 Gb/s, one cut to a quarter under way: 0.9 x what is then there, after 2 s"""
    rates = (10**9, 10**9)
    with Rails(b, rates) as rails, Rails(b, (rates[0], rates[1] // 4), name='cut') as then:
        for size in (MIB, 16 * MIB):
            b.alternate('%d KiB bandwidth, two veth rails of 1 Gb/s, one cut to 0.25 Gb/s under way; from 2 s after that'
                        % (size // KIB), {
                            'weft tag_bw, after the cut': lambda s=size: rails.cut(s),
                            'bare ports raw_bw, sum, as cut': lambda s=size: then.each_alone(s, 100 * MIB),
                        }, bandwidth, 'MiB/s', 'more', [
                            ('weft tag_bw, after the cut', 'bare ports raw_bw, sum, as cut', at_least, 0.9),
                        ])


def m_striped_lat(b):
    """64 KiB multi-eager ping-pong over two rails of 1 Gb/s, tbf burst 16 kB: 0.65 x one rail"""
    with Rails(b, burst=16000) as rails:
        b.alternate('64 KiB latency, multi-eager, veth rails behind tbf 1 Gb/s, burst 16 kB (half round trip)', {
            'weft tag_lat, both rails': lambda: rails.weft('tag_lat', 64 * KIB, [0, 1], ['-n', '300']),
            'weft tag_lat, one rail': lambda: rails.weft('tag_lat', 64 * KIB, [0], ['-n', '300']),
        }, mean_latency_ns, 'ns', 'less', [
            ('weft tag_lat, both rails', 'weft tag_lat, one rail', at_most, 0.65),
        ])


def m_memory(b):
    """pre-posted 256 KiB ping-pong with --no-huge: at most 16 MiB above the same process idle"""
    b.series('Memory of a pre-posted 256 KiB ping-pong, --no-huge, one memif lane',
             lambda: b.weft('tag_lat', 256 * KIB, iters=3000,
                            memory=['--no-huge', '--no-shconf', '-m', '512']), [
                 ('client: peak above idle', 'KiB', lambda r: float(r['hwm_kb']) - float(r['idle_hwm_kb']),
                  lambda r: 16 * KIB),
                 ('server: peak above idle', 'KiB',
                  lambda r: float(r['peer_hwm_kb']) - float(r['peer_idle_hwm_kb']), lambda r: 16 * KIB),
                 ('client: idle', 'KiB', lambda r: float(r['idle_hwm_kb']), None),
                 ('server: idle', 'KiB', lambda r: float(r['peer_idle_hwm_kb']), None),
             ])


def m_flood(b):
    """unexpected floods, received late in reverse order: memory at most payload x 1.1 + 256 B per message"""
    # The port's rings are not memory for messages, but are touched for the first time by the flood: small ones.
    limit = 64 * MIB
    for count, size in ((100000, 8), (1000, 64 * KIB), (300, 256 * KIB)):
        b.series('Flood of %d unexpected messages of %d B, received late, in reverse tag order' % (count, size),
                 lambda s=size, n=count: b.weft('tag_flood', s, iters=n, rsize=6), [
                     ('receiver: growth', 'MiB', lambda r: float(r['growth_bytes']) / MIB,
                      lambda r: (min(float(r['payload_bytes']), limit) * 1.1
                                 + 256 * float(r['messages'])) / MIB),
                     ('a matched message behind it takes', 'us', lambda r: float(r['late_us']), None),
                     ('messages that came wrong', '', lambda r: float(r['wrong']), lambda r: 0),
                 ])


def m_soak(b):
    """simulator: 1 % loss + 1 % duplication + 5 % reordering, and 2 % corruption, 1000 seeds each"""
    print('\nSimulated network, mixed traffic, %d seeds each' % b.args.seeds)
    for kind, text in (('faulty', '1 % loss, 1 % duplication, 5 % reordering'), ('corrupt', '2 % corruption, crc32c')):
        begin = time.monotonic()
        done = subprocess.run([os.path.join(b.args.build, 'test/sim/sim_soak'), '--seeds', str(b.args.seeds),
                               '--kind', kind], capture_output=True, text=True)
        ok = done.returncode == 0
        print('  %s: %s (%.0f s): %s' % (text, tail(done.stdout + done.stderr, 3), time.monotonic() - begin,
                                         'met' if ok else 'NOT MET'))
        b.results.append({'title': 'soak ' + kind, 'output': done.stdout + done.stderr, 'verdicts': [
            {'a': kind, 'value': done.returncode, 'target': 0, 'met': ok, 'enough': True}]})


def m_select(b):
    """choosing a send's protocol: at most 20 ns for contiguous memory"""
    cmd = ['taskset', '-c', str(b.a), os.path.join(b.args.build, 'test/unit/select_bench')]
    print('\nChoosing the protocol of a send, four lanes: ns per look-up, median and quartiles of 15 rounds')
    run = subprocess.run(cmd, capture_output=True, text=True)
    if run.returncode:
        raise TrialError('select_bench: ' + tail(run.stderr))
    for line in run.stdout.splitlines():
        what, median, low, high = line.split(',')
        target = ''
        if what.startswith('contiguous'):
            target = '  (target: at most 20; %s)' % ('met' if float(median) <= 20 else 'MISSED')
        print('  %-34s %6s  %s .. %s%s' % (what, median, low, high, target))


def m_multi_eager(b):
    """what multi-eager is worth: ping-pongs up to 256 KiB in four settings, latency and memory"""
    bench_multi_eager.measure(b, TrialError, pair=pair, csv_rows=csv_rows, free_port=free_port)


def m_sweep(b):
    """the automatic choice against every forced protocol: loses at most 10 % beyond the spread at 95 % of sizes"""
    def memif(port):
        sides, env = b.memif(2), {'WEFT_LANES': 'dpdk:0,mtu=9000;dpdk:1,mtu=9000'}
        srv, cli = ([b.perf] + b.eal(core, vdevs) + ['--', '-p', str(port)]
                    for core, vdevs in zip((b.a, b.b), sides))
        return srv, cli, env, env, '127.0.0.1'

    def veth(port):
        cmds, envs = rails.commands([0, 1], port)
        return cmds[0], cmds[1], envs[0], envs[1], '10.99.0.1'

    with Rails(b) as rails:
        bench_sweep.measure(b, [('two memif lanes', 'sweep-memif.svg', memif),
                                ('two veth rails behind tbf 1 Gb/s', 'sweep-veth.svg', veth)], pair, free_port)


MEASURES = {'lat': m_lat, 'rate': m_rate, 'bw': m_bw, 'rails': m_rails, 'unequal': m_unequal,
            'cut': m_cut, 'striped-lat': m_striped_lat, 'memory': m_memory, 'flood': m_flood,
            'multi-eager': m_multi_eager, 'sweep': m_sweep, 'soak': m_soak, 'select': m_select}


def main():
    parser = argparse.ArgumentParser(prog='bench.sh', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog='measures:\n' + '\n'.join(
                                         '  %-12s %s' % (n, f.__doc__) for n, f in MEASURES.items()))
    parser.add_argument('measure', nargs='*', help='which ones (all)')
    parser.add_argument('--trials', type=int, default=7, help='trials per variant and state (7)')
    parser.add_argument('--seconds', type=float, default=150, help='longest time per comparison (150)')
    parser.add_argument('--cores', default='0,1', help='the two cores (0,1)')
    parser.add_argument('--near', type=float, default=90, help='ns a cache line may take between near cores (90)')
    parser.add_argument('--seeds', type=int, default=1000, help='seeds of the soak (1000)')
    parser.add_argument('--busy', type=float, default=5,
                        help='percent of the machine that others may use during a trial (5)')
    parser.add_argument('--out', default='bench-results', help='folder for the raw figures (bench-results)')
    parser.add_argument('--build', default='build', help=argparse.SUPPRESS)
    parser.add_argument('--memory', default='--in-memory', help=argparse.SUPPRESS)
    args = parser.parse_args()
    for name in args.measure:
        if name not in MEASURES:
            parser.error("no measure '%s'; there are %s" % (name, ', '.join(MEASURES)))

    bench = Bench(args)
    print('weft-bench: %s, cores %d and %d, a cache line takes %.0f ns between them now (%s)'
          % (time.strftime('%Y-%m-%d %H:%M:%S'), bench.a, bench.b, *bench.cores.state()))
    try:
        for name in args.measure or MEASURES:
            try:
                MEASURES[name](bench)
            except TrialError as err:
                print('  not measured: %s' % err)
    finally:
        os.makedirs(args.out, exist_ok=True)
        path = os.path.join(args.out, time.strftime('%Y%m%d-%H%M%S.json'))
        with open(path, 'w') as f:
            json.dump({'cores': args.cores, 'results': bench.results}, f, indent=1)
        print('\nraw figures: ' + path)
        with contextlib.suppress(OSError):
            os.rmdir(bench.dir)
    verdicts = [v for r in bench.results for v in r['verdicts'] if v['target'] is not None and v['enough']]
    print('%d comparisons met, %d not met' % (sum(v['met'] for v in verdicts),
                                              sum(not v['met'] for v in verdicts)))


if __name__ == '__main__':
    main()
