#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures Weft against the bare port and against UCX. Called by devtools/bench.sh.

A measure has variants (A, B, ...) that take turns, so that what drifts drifts for all of them.
Every trial is two processes pinned to two cores. The time that a cache line takes between these
cores is measured right before and right after; a trial whose two times fall into different states
(near, far) is dropped, and so is one during which other processes used the machine; the others are
sorted by state, and variants are compared only within a state. Printed are the median and the
quartiles of each variant, and the ratio of the medians.
"""

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import bench_against
import bench_capture
import bench_memif
import bench_mpi
import bench_multi_eager
import bench_report
import bench_run
import bench_sealed
import bench_shm
import bench_switch
import bench_sweep
import bench_tcp
from bench_rails import Rails
from bench_run import (Cores, Others, TrialError, bandwidth, csv_rows, free_port, mean_latency_ns,
                       pair, rate, tail)
from bench_trials import Trials, at_least, at_most, at_most_more, report

KIB, MIB = 1024, 1024 * 1024


class Bench(Trials):
    def __init__(self, args):
        self.a, self.b = (int(c) for c in args.cores.split(','))
        super().__init__(args, Cores(os.path.join(args.build, 'devtools/corestate'), self.a,
                                     self.b, args.near))
        self.perf = os.path.join(args.build, 'app/weft-perf')
        self.memory = args.memory.split()
        self.dir = tempfile.mkdtemp(prefix='weft-bench.')

    def eal(self, core, vdevs, memory=None):
        cmd = ['-l', str(core), '--no-pci', '--log-level=error'] + (memory or self.memory)
        for vdev in vdevs:
            cmd += ['--vdev', vdev]
        return cmd

    def memif(self, lanes=1, rsize=8):
        """EAL vdev lists for server and client; rings of 2^rsize frames."""
        tag = '%08x' % random.getrandbits(32)
        return tuple(['net_memif%d,role=%s,id=0,socket-abstract=no,socket=%s/%s.%d,rsize=%d,'
                      'bsize=9216' % (i, role, self.dir, tag, i, rsize) for i in range(lanes)]
                     for role in ('server', 'client'))

    def weft(self, test, size, extra=(), lanes=1, env=None, iters=None, memory=None, rsize=8,
             perf=None):
        """One run of weft-perf (or of perf, another build's) over memif lanes; the last CSV row."""
        perf = perf or self.perf
        port = free_port()
        srv, cli = self.memif(lanes, rsize)
        environ = {'WEFT_LANES': ';'.join('dpdk:%d,mtu=9000' % i for i in range(lanes)),
                   **(env or {})}
        common = ['-p', str(port)]
        test_args = ['-t', test, '-s', str(size), '-n', str(iters or self.iters(test, size)), '-f',
                     '-v']
        out = pair([perf] + self.eal(self.a, srv, memory) + ['--'] + common,
                   [perf] + self.eal(self.b, cli, memory) + ['--'] + common + test_args
                   + list(extra) + ['127.0.0.1'],
                   environ, environ, timeout=60)
        return csv_rows(out)[-1]

    def virtio_sides(self):
        """Arguments for the EAL of the receiver, net_virtio_user with a ring of 256, and of the
        sender, net_vhost."""
        path = '%s/vhost.%08x' % (self.dir, random.getrandbits(32))
        # Each process maps the memory of the other, which must have files behind it.
        memory = self.memory + ['-m', '256'] + ([] if '--no-huge' in self.memory
                                                else ['--single-file-segments'])
        return (self.eal(self.a, ['net_virtio_user0,path=%s,server=1,queue_size=256' % path],
                         memory),
                self.eal(self.b, ['net_vhost0,iface=%s,client=1' % path], memory))

    def testpmd(self, seconds=8):
        """dpdk-testpmd over the same two ports: frames of 1514 in one direction, no copy to a user;
        as a CSV row."""
        sides = self.virtio_sides()
        # testpmd needs one lcore to forward and another to print; both are on one core of the
        # machine.
        rx, tx = (['timeout', '-s', 'INT', str(s), 'dpdk-testpmd',
                   '--lcores=0@%s,1@%s' % (eal[1], eal[1])] + eal[2:]
                  + ['--', '--total-num-mbufs=4096', '--nb-cores=1', '--auto-start',
                     '--stats-period=1',
                     '--forward-mode=' + mode] + more
                  for s, eal, mode, more in ((seconds, sides[0], 'rxonly', []),
                                             (seconds + 2, sides[1], 'txonly', ['--txpkts=1514'])))
        out = pair(tx, rx, {}, {}, timeout=60, codes=(0, 124))
        # The first and the last second are incomplete.
        bits = [int(b) for b in re.findall(r'Rx-bps:\s+(\d+)', out)][1:-1]
        if not any(bits):
            raise TrialError('dpdk-testpmd received nothing: ' + tail(out))
        return {'overall_bw': statistics.median(b for b in bits if b) / 8 / MIB}

    def virtio(self, test, size, perf=None, mtu=1500):
        """One run of weft-perf (or of perf, another build's), net_vhost at the client to
        net_virtio_user at the server; the last CSV row."""
        perf = perf or self.perf
        iters = 1500 if size >= MIB else self.iters(test, size, 0.2)
        port = free_port()
        env = {'WEFT_LANES': 'dpdk:0,mtu=%d' % mtu}
        srv, cli = self.virtio_sides()
        out = pair([perf] + srv + ['--', '-p', str(port)],
                   [perf] + cli
                   + ['--', '-p', str(port), '-W', '30', '-t', test, '-s', str(size), '-n',
                      str(iters), '-f', '-v', '127.0.0.1'], env, env, timeout=60)
        return csv_rows(out)[-1]

    def ucx(self, tls, test, size):
        port = free_port()
        env = {'UCX_TLS': tls, 'UCX_LOG_LEVEL': 'error'}
        iters = self.iters(test, size, 0.1 if tls.startswith('tcp') else 1)
        common = ['ucx_perftest', '-p', str(port), '-c']
        out = pair(common + [str(self.a)],
                   common + [str(self.b), '127.0.0.1', '-t', test, '-s', str(size), '-n',
                             str(iters),
                             '-w', str(max(iters // 20, 10)), '-f', '-v'],
                   env, env, timeout=60)
        return csv_rows(out)[-1]

    @staticmethod
    def iters(test, size, scale=1.0):
        """Iterations that take some tenths of a second."""
        if test.endswith('lat'):
            return max(int(400000 * scale / (1 + size / 4096)), 200)
        return max(int(4000000 * scale / (1 + size / 512)), 100)


# ---- measurements ---------------------------------------------------------------------------

def m_lat(b):
    """8 B tag_lat over one memif lane: bare port + 200 ns, 0.15 x UCX tcp"""
    b.alternate('8 B latency, one memif lane, frames of 9000 (half round trip)', {
        'weft tag_lat': lambda: b.weft('tag_lat', 8),
        'bare port raw_lat': lambda: b.weft('raw_lat', 8),
        'UCX tcp tag_lat': lambda: b.ucx('tcp,self', 'tag_lat', 8),
        'UCX posix tag_lat': lambda: b.ucx('posix,self', 'tag_lat', 8),
    }, mean_latency_ns, 'ns', [
        ('weft tag_lat', 'bare port raw_lat', at_most_more, 200, 'near'),
        ('weft tag_lat', 'UCX tcp tag_lat', at_most, 0.15, 'near'),
        ('weft tag_lat', 'UCX posix tag_lat', report, None, None),
    ])


def m_rate(b):
    """8 B tag_bw over one memif lane: 0.7 x UCX posix, 20 x UCX tcp"""
    b.alternate('8 B message rate, one memif lane, frames of 9000', {
        'weft tag_bw': lambda: b.weft('tag_bw', 8),
        'UCX posix tag_bw': lambda: b.ucx('posix,self', 'tag_bw', 8),
        'UCX tcp tag_bw': lambda: b.ucx('tcp,self', 'tag_bw', 8),
        'bare port raw_bw': lambda: b.weft('raw_bw', 8),
    }, rate, 'M/s', [
        ('weft tag_bw', 'UCX posix tag_bw', at_least, 0.7, 'near'),
        ('weft tag_bw', 'UCX tcp tag_bw', at_least, 20, 'near'),
        ('weft tag_bw', 'bare port raw_bw', report, None, None),
    ])


def m_bw(b):
    """64 KiB and 1 MiB tag_bw over one memif lane: 0.7 x the bare port"""
    for size in (64 * KIB, MIB):
        b.alternate('%d KiB bandwidth, one memif lane, frames of 9000' % (size // KIB), {
            'weft tag_bw': lambda: b.weft('tag_bw', size),
            'bare port raw_bw': lambda: b.weft('raw_bw', size),
            'UCX posix tag_bw': lambda: b.ucx('posix,self', 'tag_bw', size),
            'UCX tcp tag_bw': lambda: b.ucx('tcp,self', 'tag_bw', size),
        }, bandwidth, 'MiB/s', [
            ('weft tag_bw', 'bare port raw_bw', at_least, 0.7, 'near'),
            ('weft tag_bw', 'UCX posix tag_bw', report, None, None),
            ('weft tag_bw', 'UCX tcp tag_bw', report, None, None),
        ])


def m_virtio(b):
    """1 MiB tag_bw over net_virtio_user and net_vhost, frames of 1514: 0.7 x the bare port;
    frames of 9014: 0.8 x"""
    b.alternate('1024 KiB bandwidth, net_vhost to net_virtio_user, a ring of 256, frames of 1514', {
        'weft tag_bw': lambda: b.virtio('tag_bw', MIB),
        'bare port raw_bw': lambda: b.virtio('raw_bw', MIB),
        'dpdk-testpmd, whole frames': b.testpmd,
    }, bandwidth, 'MiB/s', [
        ('weft tag_bw', 'bare port raw_bw', at_least, 0.7, 'near'),
        ('weft tag_bw', 'dpdk-testpmd, whole frames', report, None, None),
    ])
    b.alternate('1024 KiB bandwidth, net_vhost to net_virtio_user, a ring of 256, frames of 9014', {
        'weft tag_bw': lambda: b.virtio('tag_bw', MIB, mtu=9000),
        'bare port raw_bw': lambda: b.virtio('raw_bw', MIB, mtu=9000),
    }, bandwidth, 'MiB/s', [
        ('weft tag_bw', 'bare port raw_bw', at_least, 0.8, 'near'),
    ])


def m_striped_lat(b):
    """64 KiB multi-eager ping-pong over two rails of 1 Gb/s, tbf burst 16 kB: 0.65 x one rail"""
    with Rails(b, burst=16000) as rails:
        b.alternate('64 KiB latency, multi-eager, veth rails behind tbf 1 Gb/s, burst 16 kB '
                    '(half round trip)', {
            'weft tag_lat, both rails': lambda: rails.weft('tag_lat', 64 * KIB, [0, 1],
                                                           ['-n', '300']),
            'weft tag_lat, one rail': lambda: rails.weft('tag_lat', 64 * KIB, [0], ['-n', '300']),
        }, mean_latency_ns, 'ns', [
            ('weft tag_lat, both rails', 'weft tag_lat, one rail', at_most, 0.65, None),
        ])


def m_memory(b):
    """pre-posted 256 KiB ping-pong with --no-huge: at most 16 MiB above the same process idle"""
    b.series('Memory of a pre-posted 256 KiB ping-pong, --no-huge, one memif lane',
             lambda: b.weft('tag_lat', 256 * KIB, iters=3000,
                            memory=['--no-huge', '--no-shconf', '-m', '512']), [
                 ('client: peak above idle', 'KiB',
                  lambda r: float(r['hwm_kb']) - float(r['idle_hwm_kb']),
                  lambda r: 16 * KIB),
                 ('server: peak above idle', 'KiB',
                  lambda r: float(r['peer_hwm_kb']) - float(r['peer_idle_hwm_kb']),
                  lambda r: 16 * KIB),
                 ('client: idle', 'KiB', lambda r: float(r['idle_hwm_kb']), None),
                 ('server: idle', 'KiB', lambda r: float(r['peer_idle_hwm_kb']), None),
             ])


def m_flood(b):
    """unexpected floods, received late in reverse order: memory at most payload x 1.1 + 256 B per
    message"""
    # The port's rings are no memory for messages, but the flood touches them for the first time, so
    # they are small.
    limit = 64 * MIB
    for count, size in ((100000, 8), (1000, 64 * KIB), (300, 256 * KIB)):
        b.series('Flood of %d unexpected messages of %d B, received late, in reverse tag order'
                 % (count, size),
                 lambda s=size, n=count: b.weft('tag_flood', s, iters=n, rsize=6), [
                     ('receiver: growth', 'MiB', lambda r: float(r['growth_bytes']) / MIB,
                      lambda r: (min(float(r['payload_bytes']), limit) * 1.1
                                 + 256 * float(r['messages'])) / MIB),
                     ('a matched message behind it takes', 'us', lambda r: float(r['late_us']),
                      None),
                     ('messages that came wrong', '', lambda r: float(r['wrong']), lambda r: 0),
                 ])


def m_soak(b):
    """simulator: 1 % loss + 1 % duplication + 5 % reordering, and 2 % corruption, 1000 seeds
    each"""
    print('\nSimulated network, mixed traffic, %d seeds each' % b.args.seeds)
    b.record('Simulated network, mixed traffic, %d seeds each' % b.args.seeds)
    kinds = {'faulty': '1 % loss, 1 % duplication, 5 % reordering',
             'corrupt': '2 % corruption, crc32c'}
    command = [os.path.join(b.args.build, 'test/sim/sim_soak'), '--seeds', str(b.args.seeds),
               '--kind']
    running = {kind: subprocess.Popen(command + [kind], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True) for kind in kinds}
    for kind, proc in running.items():
        out, _ = proc.communicate()
        b.verdict(kinds[kind], proc.returncode == 0, tail(out, 1), 'every byte right, every seed')


def m_select(b):
    """choosing a send's protocol: at most 20 ns for contiguous memory"""
    run = subprocess.run(['taskset', '-c', str(b.a),
                          os.path.join(b.args.build, 'test/unit/select_bench')],
                         capture_output=True, text=True)
    if run.returncode:
        raise TrialError('select_bench: ' + tail(run.stderr))
    print('\nChoosing the protocol of a send, four lanes')
    b.record('Choosing the protocol of a send, four lanes: ns per look-up, median and quartiles of '
             '15 rounds')
    for line in run.stdout.splitlines():
        what, median, low, high = line.split(',')
        b.verdict(what.replace('_', ' '), float(median) <= 20,
                  '%s ns [%s .. %s]' % (median, low, high),
                  'at most 20 ns' if what.startswith('contiguous') else '')


def m_multi_eager(b):
    """the gain of multi-eager: ping-pongs up to 256 KiB in four settings, latency and memory"""
    bench_multi_eager.measure(b)


def m_sweep(b):
    """the automatic choice against every forced protocol, two memif lanes: loses at most 10 %
    beyond the spread at 95 % of sizes"""
    sides, env = b.memif(2), {'WEFT_LANES': 'dpdk:0,mtu=9000;dpdk:1,mtu=9000'}
    port = free_port()
    srv, cli = ([b.perf] + b.eal(core, vdevs) + ['--', '-p', str(port)]
                for core, vdevs in zip((b.a, b.b), sides))
    bench_sweep.measure(b, 'two memif lanes', 'sweep-memif', (srv, cli, env, env, '127.0.0.1'))


def m_sweep_rails(b):
    """the same over two veth rails of 1 Gb/s"""
    with Rails(b) as rails:
        cmds, envs = rails.commands([0, 1], free_port())
        bench_sweep.measure(b, 'two veth rails behind tbf 1 Gb/s', 'sweep-rails',
                            (*cmds, *envs, '10.99.0.1'))


def m_table(b):
    """all sizes over two memif lanes, as weft-perf prints them: one run, no comparison"""
    port = free_port()
    env = {'WEFT_LANES': 'dpdk:0,mtu=9000;dpdk:1,mtu=9000'}
    srv, cli = ([b.perf] + b.eal(core, vdevs) + ['--', '-p', str(port)]
                for core, vdevs in zip((b.a, b.b), b.memif(2)))
    cli += ['-t', 'table', '-s', '8:4M', '-D', '0.3', '127.0.0.1']
    state, out = b.trial(lambda: pair(srv, cli, env, env, timeout=100), Others())
    state = {'changed': 'near, then far', 'busy': 'shared with others'}.get(state, state)
    b.record('One run over two memif lanes, cores %s' % state, text=out)
    print('\n' + out)


MEASURES = {'table': m_table, 'lat': m_lat, 'rate': m_rate, 'bw': m_bw,
            'shm': bench_shm.m_shm, **bench_mpi.MEASURES,
            'switch': bench_switch.m_switch, 'virtio': m_virtio, **bench_tcp.MEASURES,
            'striped-lat': m_striped_lat, 'memory': m_memory,
            'flood': m_flood, 'capture': bench_capture.m_capture, 'soak': m_soak,
            'multi-eager': m_multi_eager, 'sweep': m_sweep,
            'sweep-rails': m_sweep_rails, 'select': m_select, **bench_sealed.MEASURES,
            **bench_memif.MEASURES, **bench_against.MEASURES}

# Several by one name.
GROUPS = {'mpi': ['shm', *bench_mpi.MEASURES], 'against': list(bench_against.MEASURES)}
NAMED = {'sealed-aesni', *GROUPS['against']}  # they run only when named


def chosen(names):
    """The selected measurements, in this order."""
    return list(dict.fromkeys(m for n in names for m in GROUPS.get(n, [n])))


def options():
    parser = argparse.ArgumentParser(prog='bench.sh', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog='measures:\n' + '\n'.join(
                                         '  %-12s %s' % (n, ' '.join(f.__doc__.split()))
                                         for n, f in MEASURES.items())
                                     + ''.join('\n  %-12s all of %s' % (n, ', '.join(g))
                                               for n, g in GROUPS.items()))
    parser.add_argument('measure', nargs='*', help='which ones (with --against: against; else all '
                        'but against and sealed-aesni)')
    parser.add_argument('--trials', type=int, help='trials per variant and state (7)')
    parser.add_argument('--seconds', type=float,
                        help='longest time per comparison (80; of a group 40)')
    parser.add_argument('--cores', default='0,1', help='the two (0,1)')
    parser.add_argument('--near', type=float, default=90,
                        help='ns a cache line may take between near cores (90)')
    parser.add_argument('--seeds', type=int, default=1000, help='seeds of the soak (1000)')
    parser.add_argument('--busy', type=float, default=5,
                        help='percent of the machine that others may use during a trial (5)')
    parser.add_argument('--quick', action='store_true',
                        help='3 trials, at most 12 s for a comparison')
    parser.add_argument('--against', metavar='COMMIT',
                        help='another Weft for the measures of that name: its build folder, or a '
                        'commit, which is built in BUILD/against/COMMIT')
    parser.add_argument('--first', action='store_true',
                        help="trials go before the machine's other work (autogroup -20, root); "
                        'none is dropped for that work')
    parser.add_argument('--out', default='bench-results',
                        help='folder for the raw figures and the tables, files by date and '
                        'processor (bench-results)')
    parser.add_argument('--markdown', metavar='FILE',
                        help='write the tables into this file of doc/results/, each measure at its '
                        'place; then run devtools/bench_report.py --write')
    parser.add_argument('--strict', action='store_true',
                        help='exit code 1 when a comparison is not met, or none could be made')
    parser.add_argument('--replay', metavar='JSON',
                        help='with --markdown: the tables of these raw figures; measures nothing')
    parser.add_argument('--build', default='build', help=argparse.SUPPRESS)
    parser.add_argument('--memory', default='--in-memory', help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.measure = args.measure or (['against'] if args.against else
                                    [n for n in MEASURES if n not in NAMED])
    for name in args.measure:
        if name not in MEASURES and name not in GROUPS:
            parser.error("no measure '%s'; there are %s" % (name, ', '.join([*MEASURES, *GROUPS])))
    args.trials = args.trials or (3 if args.quick else 7)
    args.seconds = args.seconds or (12 if args.quick else
                                    40 if set(args.measure) <= set(GROUPS) else 80)
    args.measure = chosen(args.measure)
    if args.first:
        why = bench_run.go_first()
        if why:
            print('weft-bench: --first has no effect: ' + why, file=sys.stderr)
            args.first = False
        else:
            args.busy = 100
    if args.replay and not args.markdown:
        parser.error('--replay needs --markdown FILE')
    return args


def replay(args):
    with open(args.replay) as f:
        raw = json.load(f)
    bench_report.merge(args.markdown, [r for r in raw['results']
                                       if r['measure'] in args.measure], raw['where'])


def save(bench, where):
    os.makedirs(bench.args.out, exist_ok=True)
    path = os.path.join(bench.args.out, time.strftime('%Y%m%d-%H%M%S-') + bench_report.cpu_name()
                        + '.json')
    with open(path, 'w') as f:
        json.dump({'where': where, 'results': bench.results}, f, indent=1)
    print('\nraw figures: ' + path)
    tables = bench.args.markdown or path[:-len('json')] + 'md'
    bench_report.merge(tables, bench.results, where)
    print('tables: ' + tables)


def main():
    args = options()
    if args.replay:
        replay(args)
        return 0
    bench = Bench(args)
    line = bench.cores.state()
    where = ', '.join([time.strftime('%Y-%m-%d %H:%M'), *bench_report.machine(args.build),
                       *(['against ' + bench_report.version(args.against, 'weft-perf')]
                         if args.against else []), 'EAL with ' + args.memory,
                       *(['before other work (autogroup -20)'] if args.first else [])]) + '.'
    print('weft-bench: %s\ncores %d and %d; a cache line takes %.0f ns between them now (%s)'
          % (where, bench.a, bench.b, *line))
    try:
        for bench.measure in args.measure:
            name, begin = bench.measure, time.monotonic()
            try:
                MEASURES[name](bench)
            except TrialError as err:
                bench.record(name)
                bench.note('not measured: %s' % err)
            print('  (%s took %.0f s)' % (name, time.monotonic() - begin))
    finally:
        save(bench, where)
        shutil.rmtree(bench.dir, ignore_errors=True)
    verdicts = [v for r in bench.results for v in r['verdicts'] if v['target'] is not None
                and v['enough']]
    for r in bench.results:
        for v in r['verdicts']:
            if v['target'] is not None and not v['met']:
                print('NOT MET: %s: %s, %s: %s%s' % (r['title'], v['what'], v['state'], v['result'],
                                                     '' if v['enough'] else ' (too few trials)'))
    print('%d comparisons met, %d not met' % (sum(v['met'] for v in verdicts),
                                              sum(not v['met'] for v in verdicts)))
    return int(args.strict and not (verdicts and all(v['met'] for v in verdicts)))


if __name__ == '__main__':
    sys.exit(main())
