# SPDX-License-Identifier: BSD-3-Clause
"""MPI ranks over Weft's provider against Open MPI's own transports: on one host, on two, and the
cost of start, memory and progress. The ranks run devtools/mpi_measure.c, and OSU's programs where
they are installed."""

import csv
import io
import os
import re
import shutil
import stat
import statistics
import subprocess
from functools import partial

from bench_rails import Rails
from bench_run import FIRST, TrialError, end, tail, whole
from bench_trials import Figure, at_least, at_most, floor, limit, more, report

KIB, MIB = 1024, 1024 * 1024
HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 60  # s a job may take
MIB_S = 'MiB/s'

WEFT = ['--mca', 'pml', 'cm', '--mca', 'mtl', 'ofi', '--mca', 'opal_common_ofi_provider_include',
        'weft']
THREAD = WEFT + ['--mca', 'mtl_ofi_data_progress', 'auto']
VADER = ['--mca', 'pml', 'ob1', '--mca', 'btl', 'self,vader']
TCP = ['--mca', 'pml', 'ob1', '--mca', 'btl', 'self,tcp', '--mca', 'btl_tcp_if_include', 'rail0']
TCP_LO = [*TCP[:-1], 'lo']
UCX = ['--mca', 'pml', 'ucx', '--mca', 'opal_common_ucx_tls', 'any', '--mca',
       'opal_common_ucx_devices', 'any', '-x', 'UCX_TLS=posix,cma,self']

# A rank, on its core: the first core is that of the even ranks.
RANK = """#!/bin/sh
%s
[ $((OMPI_COMM_WORLD_RANK %% 2)) = 0 ] && core=%d || core=%d
exec taskset -c $core "$@"
"""

# Runs a command on a host, a network namespace with that name. mpirun also starts its daemon by it.
ON = """#!/bin/bash
case $1 in
%s*) exit 1 ;;
esac
exec ip netns exec $1 unshare --uts bash -c "hostname $1; ${*:2}"
"""
HOST = """%s)
	export WEFT_EAL_ARGS='%s' WEFT_LANES='%s' ;;
"""


class Mpi:
    def __init__(self, bench, build=None):
        self.b = bench
        for program in ('mpicc', 'mpirun', 'taskset'):
            if shutil.which(program) is None:
                raise TrialError('there is no program %s: devtools/setup.sh build mpi' % program)
        build = os.path.abspath(build or bench.args.build)
        provider = os.path.join(build, 'provider')
        if not os.path.exists(os.path.join(provider, 'libweft-fi.so')):
            raise TrialError('no provider in %s: devtools/setup.sh build mpi' % build)
        self.env = {**{k: v for k, v in os.environ.items()
                       if not k.startswith(('OMPI_', 'FI_', 'UCX_', 'WEFT_'))},
                    'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1',
                    'FI_PROVIDER_PATH': provider}
        self.program = os.path.join(bench.dir, 'mpi_measure')
        done = subprocess.run(['mpicc', '-O2', '-D_GNU_SOURCE', os.path.join(HERE, 'mpi_measure.c'),
                               '-o', self.program], capture_output=True, text=True)
        if done.returncode:
            raise TrialError('mpicc: ' + tail(done.stderr))
        # A daemon of mpirun has a session of its own, and so do its ranks.
        first = 'echo -20 > /proc/self/autogroup' if FIRST else ''
        self.rank = self.script('rank', RANK % (first, bench.a, bench.b))

    def script(self, name, text):
        path = os.path.join(self.b.dir, name)
        with open(path, 'w') as f:
            f.write(text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def run(self, way, what, ranks=2, before=((), ())):
        """One job of mpi_measure: {what: row}."""
        out = self.job(way, [self.program, *what], ranks, before)
        return {row.pop('what'): {k: float(v) for k, v in row.items()}
                for row in csv.DictReader(io.StringIO(out))}

    def osu(self, way, programs, before=((), ())):
        """One job of each of these programs of OSU's, which measure all sizes."""
        rows = {}
        for program in programs:
            found = re.findall(r'^(\d+)\s+([\d.]+)$', self.job(way, [program], 2, before), re.M)
            rows.update(('%s:%s' % (program, size), {'value': float(value)})
                        for size, value in found)
        return rows

    def job(self, way, program, ranks, before):
        """The output of one job. before: the command that starts mpirun, and further arguments."""
        command = [*before[0], 'mpirun', *before[1], '-n', str(ranks), '--bind-to', 'none', '-x',
                   'FI_PROVIDER_PATH', *way, self.rank, *program]
        if ranks > os.cpu_count():
            command[command.index('-n'):0] = ['--oversubscribe']
        with open(os.path.join(self.b.dir, 'mpi.err'), 'w+') as err:
            job = subprocess.Popen(FIRST + command, env=self.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=err, text=True,
                                   start_new_session=True)
            try:
                out, _ = job.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                raise TrialError('no end after %d s: %s' % (LIMIT, tail(whole(err)))) from None
            finally:
                end(job)
            if job.returncode:
                raise TrialError('exit code %d: %s' % (job.returncode, tail(whole(err) or out)))
        return out

    def two_hosts(self, rails, which, udp=False):
        """The command that starts mpirun on two hosts with these rails, over net_af_packet or over
        UDP sockets."""
        names = rails.ns
        ports = [([], ';'.join('udp:rail%d' % r for r in which)) if udp else
                 rails.ports(side, which) for side in (0, 1)]
        on = self.script('on.' + '.'.join(map(str, [*which, udp])), ON % ''.join(
            HOST % (ns, ' '.join(eal), lanes) for ns, (eal, lanes) in zip(names, ports)))
        return [on, names[0]], ['--host', ','.join(n + ':1' for n in names), '--mca',
                                'plm_rsh_agent', on, '--mca', 'oob_tcp_if_include', 'ctl', '--mca',
                                'orte_tmpdir_base', self.b.dir]


def figure(title, what, unit, compare, scale=1, **more):
    return Figure(title, lambda row: row[what]['value'] * scale, unit, compare, **more)


def on_cores(what):
    """Figures for which the rank has measured the distance of the cores."""
    return {'lines': lambda row: (row[what]['before'], row[what]['after'])}


def size_name(size):
    return '%d KiB' % (size // KIB) if size >= KIB else '%d B' % size


# ---- measurements ---------------------------------------------------------------------------

def m_host(b):
    """two ranks of one host against vader: 8 B 1.5 x its time; 64 KiB and 4 MiB 1 x its
    bandwidth"""
    mpi = Mpi(b)
    what = ['lat:8', 'lat:%d' % (64 * KIB), 'rate:8', 'bw:%d' % (64 * KIB), 'bw:%d' % (4 * MIB)]
    ways = {'Weft': WEFT, "Open MPI's vader": VADER, 'UCX posix, cma': UCX}
    weft, vader, ucx = ways
    scale = [(weft, ucx, report, None, None)]
    b.contest([
        figure('8 B, half round trip, two ranks of a host', 'lat:8', 'ns',
               [(weft, vader, at_most, 1.5, None)] + scale, 1000, **on_cores('lat:8')),
        figure('64 KiB, half round trip, two ranks of a host', what[1], 'us',
               [(weft, vader, report, None, None)] + scale, **on_cores(what[1])),
        figure('8 B message rate, two ranks of a host', 'rate:8', 'M/s',
               [(weft, vader, report, None, None)] + scale, **on_cores('rate:8')),
        *(figure('%d KiB bandwidth, two ranks of a host' % (size // KIB), name, 'MiB/s',
                 [(weft, vader, at_least, 1, None)] + scale, **on_cores(name))
          for name, size in ((what[3], 64 * KIB), (what[4], 4 * MIB))),
    ], {name: partial(mpi.run, way, what) for name, way in ways.items()})


UDP = 'Weft, udp'


def network(b, mpi, rates, what, figures, names):
    """names: of each variant, and the rails that it has, or None for Open MPI's tcp."""
    with Rails(b, rates) as rails:
        b.contest(figures, {name: partial(mpi.run, TCP if which is None else WEFT, what,
                                          before=mpi.two_hosts(rails, which or [0], name == UDP))
                            for name, which in names.items()})


def m_hosts(b):
    """two hosts, veth and af_packet, against Open MPI's tcp: 8 B 0.8 x its time, windows of 8 B at
    2 M/s, bandwidth 1 x behind tbf; two rails 1.9 x of one"""
    mpi = Mpi(b)
    large, huge = 'bw:%d' % (64 * KIB), 'bw:%d' % (4 * MIB)
    sides = {'Weft': [0], "Open MPI's tcp": None}
    weft, tcp = sides
    where = ', two hosts, veth of MTU 9000, net_af_packet'
    network(b, mpi, (None, None), ['lat:8', 'rate:8', large, huge], [
        figure('8 B, half round trip' + where, 'lat:8', 'us', [(weft, tcp, at_most, 0.8, None)],
               **on_cores('lat:8')),
        figure('8 B message rate' + where, 'rate:8', 'M/s',
               [(weft, None, floor('M/s'), 2, None), (weft, tcp, report, None, None)],
               **on_cores('rate:8')),
        *(figure('%s bandwidth%s' % (size, where), name, 'MiB/s',
                 [(weft, tcp, report, None, None)], **on_cores(name))
          for name, size in ((large, '64 KiB'), (huge, '4 MiB')))], sides)
    network(b, mpi, (5 * 10**9, None), [huge], [
        figure('4 MiB bandwidth%s, tbf 5 Gb/s' % where, huge, 'MiB/s',
               [(weft, tcp, at_least, 1, None)], sort=False)], sides)
    network(b, mpi, (10**9, 10**9), [huge], [
        figure('4 MiB bandwidth%s, tbf 1 Gb/s a rail' % where, huge, 'MiB/s',
               [('Weft, two rails', 'Weft, one rail', at_least, 1.9, None)], sort=False)],
            {'Weft, two rails': [0, 1], 'Weft, one rail': [0]})


def m_reduce(b):
    """MPI_Allreduce of 8 B to 1 MiB, two hosts, one veth, udp and af_packet, against Open MPI's
    tcp: udp 1.2 x its time at each size"""
    mpi = Mpi(b)
    sizes = (8, KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 256 * KIB, MIB)
    sides = {'Weft': [0], UDP: [0], "Open MPI's tcp": None}
    weft, udp, tcp = sides
    what = ['allreduce:%d' % size for size in sizes]
    network(b, mpi, (None, None), what, [
        figure('MPI_Allreduce of %s, two hosts, veth of MTU 9000, net_af_packet and udp'
               % size_name(size), name, 'us',
               [(udp, tcp, at_most, 1.2, None), (weft, tcp, report, None, None)],
               **on_cores(name))
        for size, name in zip(sizes, what)], sides)


# Programs of OSU's, as this measure has them: a window of 64 messages, 8 of 1 MiB or more.
TABLE = {'lat': ('half round trip', 'us'), 'bw': ('bandwidth', 'MiB/s'),
         'bibw': ('bandwidth of both directions', 'MiB/s'), 'rate': ('message rate', 'M/s'),
         'allreduce': ('MPI_Allreduce', 'us'), 'alltoall': ('MPI_Alltoall', 'us')}
TABLE_SIZES = (8, KIB, 8 * KIB, 32 * KIB, 64 * KIB, MIB, 4 * MIB)
OSU = {'osu_latency': 'us', 'osu_bw': 'MB/s', 'osu_bibw': 'MB/s'}


def osu_programs(b):
    """Those that are installed. Fedora's have the prefix."""
    found = {p: unit for name, unit in OSU.items() for p in (name, 'mpitests-' + name)
             if shutil.which(p)}
    if not found:
        print()
        b.record("OSU's programs")
        b.note('not there: Debian has no package of them. The table is that of '
               'devtools/mpi_measure.c, which has the same loops')
    return found


def m_table(b):
    """latency, bandwidth, both directions, rate, allreduce, alltoall of 8 B to 4 MiB: on one host
    beside vader, UCX and tcp, on two hosts beside tcp; OSU's programs, if installed; no goals"""
    mpi, osu = Mpi(b), osu_programs(b)
    what = ['%s:%d' % (kind, size) for kind in TABLE for size in TABLE_SIZES]

    def figures(where, others):
        compare = [('Weft', other, report, None, None) for other in others]
        return [figure('%s, %s, %s' % (TABLE[kind][0], size_name(size), where),
                       '%s:%d' % (kind, size), TABLE[kind][1], compare,
                       **on_cores('%s:%d' % (kind, size)))
                for kind in TABLE for size in TABLE_SIZES], [
            figure('%s, %s, %s' % (name, size_name(size), where), '%s:%d' % (name, size), unit,
                   compare) for name, unit in osu.items() for size in TABLE_SIZES]

    ways = {'Weft': WEFT, "Open MPI's vader": VADER, 'UCX posix, cma': UCX,
            "Open MPI's tcp": TCP_LO}
    ours, osus = figures('two ranks of a host', list(ways)[1:])
    b.contest(ours, {name: partial(mpi.run, way, what) for name, way in ways.items()})
    if osus:
        b.contest(osus, {name: partial(mpi.osu, way, osu) for name, way in ways.items()})
    sides = {'Weft': [0], "Open MPI's tcp": None}
    network(b, mpi, (None, None), what,
            figures('two hosts, veth of MTU 9000, net_af_packet', list(sides)[1:])[0], sides)


def m_start(b):
    """MPI_Init and MPI_Finalize, and memory of a rank, with 2 to 16 ranks of a host: 100 ms with
    two, 30 MB"""
    mpi = Mpi(b)
    counts = (2, 4, 8, 16)
    ways = {'Weft': WEFT, "Open MPI's vader": VADER}
    names = {(way, n): '%s, %d ranks' % (way, n) for way in ways for n in counts}

    def beside(target=None, test=None, ranks=counts):
        weft, vader = ways
        return [(names[weft, n], None, test, target, None) for n in ranks if target] + [
            (names[weft, n], names[vader, n], report, None, None) for n in counts]

    kinds = (('MPI_Init()', 'init', 'ms', 1, beside(100, limit('ms'), (2,))),
             ('MPI_Finalize()', 'finalize', 'ms', 1, beside()),
             ('Memory of a rank that has met all others, resident', 'rss', 'MB', 1.024e-3,
              beside(30, limit('MB'))),
             ('The same, shared pages by part (PSS)', 'pss', 'MB', 1.024e-3, beside()),
             ('The same, private', 'private', 'MB', 1.024e-3, beside()))
    b.contest([figure(title, what, unit, compare, scale, sort=False)
               for title, what, unit, scale, compare in kinds],
              {names[way, n]: partial(mpi.run, ways[way], ['rss', 'pss', 'private'], n)
               for n in counts for way in ways})
    per_peer(b, names, counts)


def per_peer(b, names, counts):
    """From the medians: the memory that each further rank of the host adds to a rank."""
    few, many = counts[0], counts[-1]
    for r in (b.results[-3], b.results[-1]):
        got = {key: statistics.median(r['values'][name]['any']) for key, name in names.items()
               if 'any' in r['values'][name]}
        for way in dict.fromkeys(w for w, _ in got):
            if (way, few) in got and (way, many) in got:
                kib = (got[way, many] - got[way, few]) / (many - few) / 1.024e-3
                r['notes'].append('%s: %.0f KiB for each further peer' % (way, kib))
                print('        %s: %s' % (r['title'], r['notes'][-1]))


def m_overlap(b):
    """MPI_Isend() of 4 MiB and computing: 0.8 hidden with the progress thread; its cost at 8 B"""
    mpi = Mpi(b)
    name = 'overlap:%d' % (4 * MIB)
    ways = {'Weft, progress thread': THREAD, 'Weft': WEFT, "Open MPI's vader": VADER}
    thread, weft, _ = ways
    b.contest([
        figure('MPI_Isend() of 4 MiB, then computing as long: part that is hidden', name, '',
               [(thread, None, floor(''), 0.8, None)], **on_cores(name)),
        figure('8 B, half round trip, with and without the thread', 'lat:8', 'ns',
               [(thread, weft, more, None, None)], 1000, names=[thread, weft],
               **on_cores('lat:8')),
    ], {n: partial(mpi.run, way, [name, 'lat:8']) for n, way in ways.items()})


MEASURES = {'mpi-host': m_host, 'mpi-hosts': m_hosts, 'mpi-reduce': m_reduce, 'mpi-table': m_table,
            'mpi-start': m_start, 'mpi-overlap': m_overlap}
