#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The work of capture-corpus.sh: real runs with one fault each, and what weft-dump names.

Traffic, sizes and fault times follow from the number of the run. The truth about the network is
weft-wire's trace: a line for each frame that it lost, delayed or changed. A verdict about it is
true if it is in the family of what weft-wire did on that rail and way. Its time is right if it is
that of the first few frames which met the fault, within 20 ms. The truth about a host is when its
process was stopped, and when it waited for a core (run-queue wait of /proc/PID/schedstat, read 100
times a second): at least half of the named share of the time, or of the named silence. The share
in which a history shows no poll may exceed that wait, with the stops, by 20 % at most. Frames that
weft-wire's own receive rings have lost are losses, too: a verdict about them is no false alarm."""

import argparse
import collections
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

FEW = 4  # frames that the fault has met: below it nothing is expected
FEW_LATE = 10  # the same for delays, which are told by quantiles (doc/capture.md)
LOSS = {'random loss', 'burst loss', 'queue or policer loss'}
HOLE = {'blackhole one way', 'blackhole both ways', 'lane down'}
HOST = {'slow receiver', 'stopped peer'}
NEAR_S = 0.02
AFTER_S = 0.5  # from the begin of the fault, until a command writes the flight recorder's file
STOP = re.compile(r'silent for ([0-9.]+) ms')
PAUSED = re.compile(r'by its history it did not poll ([0-9.]+) % of ([0-9.]+) ms')
AGREES = 0.2  # of the wait: greatest difference from the share that a history has
RUNTIME = '/var/run/dpdk' # of root's processes: a folder for each prefix
BUSY = 400  # frames, from which on there is traffic
# The network is no process that waits for a core.
CALM = ('chrt', '-f', '1') if shutil.which('chrt') else ()

# kind: (classes that are right, link or action, way). Ways: forth is client to server.
KINDS = {
    'clean_request': (set(), None, None),
    'clean_stream': (set(), None, None),
    'clean_both_ways': (set(), None, None),
    'clean_busy': (set(), 'hogs', None),
    'clean_udp': (set(), None, None),
    'clean_mpi': (set(), None, None),
    'clean_mpi_udp': (set(), None, None),
    'loss_2': (LOSS, 'loss=2%', 'forth'),
    'loss_half': (LOSS, 'loss=0.5%', 'back'),
    'bursts': (LOSS | {'blackhole one way'}, 'bursts=4%:12', 'forth'),
    'shallow_queue': (LOSS, 'rate=40M,queue=6k', 'forth'),
    'policer': (LOSS, 'police=30M:12k', 'forth'),
    'duplication': ({'duplication'}, 'dup=5%', 'back'),
    'reordering': ({'reordering'}, 'reorder=10%:300us', 'forth'),
    'corruption': ({'corruption'}, 'corrupt=3%', 'forth'),
    'delay': ({'delay or jitter'}, 'delay=5ms', 'forth'),
    'jitter': ({'delay or jitter'}, 'delay=1ms,jitter=3ms', 'back'),
    'delay_udp': ({'delay or jitter'}, 'delay=5ms', 'forth'),
    'jitter_udp': ({'delay or jitter'}, 'delay=1ms,jitter=3ms', 'back'),
    'hole_forth': (HOLE, 'blackout=yes', 'forth'),
    'hole_back': (HOLE, 'blackout=yes', 'back'),
    'hole_both': (HOLE, 'blackout=yes', None),
    'hole_300ms': (HOLE, 'blackout=yes 0.3', 'forth'),
    'mtu': ({'path MTU'}, 'mtu=1350', 'forth'),
    'link_down': (HOLE, 'down', None),
    'stop_300ms': ({'stopped peer'}, 'stop 0.3', 'server'),
    'stop_client': ({'stopped peer'}, 'stop 0.3', 'client'),
    'hog_server': (HOST, 'hog', 'server'),
    'killed': ({'peer gone'}, 'kill', 'server'),
}
# What weft-wire's trace says of frames that meet the fault.
EVENT = {
    'loss_2': 'lost', 'loss_half': 'lost', 'bursts': 'lost_in_bursts',
    'shallow_queue': 'queue_full', 'policer': 'policed', 'duplication': 'duplicated',
    'reordering': 'reordered', 'corruption': 'corrupted', 'delay': 'delay', 'jitter': 'delay',
    'delay_udp': 'delay', 'jitter_udp': 'delay',
    'hole_forth': 'blackout', 'hole_back': 'blackout', 'hole_both': 'blackout',
    'hole_300ms': 'blackout', 'mtu': 'beyond_mtu',
}
TRAFFIC = [('-t', 'tag_lat', '-s', '1k'), ('-t', 'tag_bw', '-s', '16k'),
           ('-t', 'tag_bibw', '-s', '4k')]
# AGENT HOST COMMAND...: what runs there has that host's name.
AGENT = '''#!/bin/bash
case $1 in
weft-corpus-a) netns=%s ;;
weft-corpus-b) netns=%s ;;
*) exit 1 ;;
esac
exec ip netns exec $netns unshare --uts bash -c "hostname $1; ${*:2}"
'''
RANK = '''#!/bin/bash
side=$(hostname)
side=${side##*-}
echo $$ >%(folder)s/$side.pid
if [ -d %(folder)s/$side ]; then
	export TMPDIR=%(folder)s/$side WEFT_EAL_ARGS="$WEFT_EAL_ARGS --file-prefix=%(prefix)s-$side"
else
	export WEFT_CAPTURE=%(folder)s/$side.pcapng,snaplen=1600,ring=32M WEFT_RECORDER=off
fi
exec "$@"
'''
MPI = ('p2p', 'coll', 'alltoall')  # what mpi_ranks does, by the number of the run
OFFLOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'no_offloads.py')


def sh(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Network:
    """Namespaces a (client), b (server) and x (weft-wire): rails 0 and 1, and a link for TCP."""

    def __init__(self, build, folder, recorder):
        self.build, self.folder, self.recorder = build, folder, recorder
        self.name = {c: 'weft-corpus-%d-%s' % (os.getpid(), c) for c in 'abx'}
        for ns in self.name.values():
            sh('ip', 'netns', 'add', ns)
            sh('ip', 'netns', 'exec', ns, 'sysctl', '-qw', 'net.ipv6.conf.default.disable_ipv6=1')
        for rail in (0, 1):
            for side in 'ab':
                self.veth(side, 'rail%d' % rail, 'x', side + str(rail))
        self.veth('a', 'ctl', 'b', 'ctl')
        for side, end in (('a', 2), ('b', 1)):
            sh('ip', '-n', self.name[side], 'link', 'set', 'lo', 'up')
            for net, device in ((6, 'ctl'), (7, 'rail0'), (8, 'rail1')):
                sh('ip', '-n', self.name[side], 'addr', 'add', '10.99.%d.%d/24' % (net, end),
                   'dev', device)

    def veth(self, side, name, other, far):
        sh('ip', '-n', self.name[side], 'link', 'add', 'name', name, 'type', 'veth', 'peer',
           'name', far, 'netns', self.name[other])
        for ns, dev in ((self.name[side], name), (self.name[other], far)):
            sh('ip', '-n', ns, 'link', 'set', dev, 'up')
            sh('ip', 'netns', 'exec', ns, sys.executable, OFFLOADS, dev)

    def close(self):
        for ns in self.name.values():
            subprocess.run(['ip', 'netns', 'del', ns], check=False, stderr=subprocess.DEVNULL)
            shutil.rmtree(os.path.join(RUNTIME, ns), ignore_errors=True)

    def eal(self, devices, side=None):
        """A command for the flight recorder comes by telemetry, in the folder of the side."""
        packet = 'blocksz=4096,framesz=2048,framecnt=1024'
        telemetry = [] if self.recorder else ['--no-telemetry']
        prefix = ['--file-prefix=' + self.name[side]] if self.recorder and side else []
        return ['--no-huge', '-m', '256', '--no-pci', *telemetry, *prefix] + [
            '--vdev=net_af_packet%d,iface=%s,%s' % (i, dev, packet)
            for i, dev in enumerate(devices)]

    def start(self, side, program, devices, arguments, log, before=(), **kw):
        eal = [*self.eal(devices, side), '--'] if devices or self.recorder else []
        with open(os.path.join(self.folder, log), 'wb') as out:
            return subprocess.Popen(
                [*before, 'ip', 'netns', 'exec', self.name[side],
                 os.path.join(self.build, 'app', program), *eal, *arguments],
                stdout=out, stderr=out, **kw)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, 'w', encoding='ascii') as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

    def start_mpi(self, ranks, devices):
        """A job of two ranks, rank 0 on host a; each writes its process id, a.pid or b.pid."""
        agent = self.write('on', AGENT % (self.name['a'], self.name['b']))
        rank = self.write('rank', RANK % {'folder': self.folder,
                                           'prefix': self.name['a'].rsplit('-', 1)[0]})
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(('FI_', 'OMPI_', 'PMIX_', 'SLURM_'))}
        env.update(OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1',
                   FI_PROVIDER_PATH=os.path.join(self.build, 'provider'),
                   WEFT_CSUM='crc32c', WEFT_SWITCH='off',
                   WEFT_EAL_ARGS=' '.join(self.eal(devices)) if devices or self.recorder else '',
                   WEFT_LANES='dpdk:0;dpdk:1' if devices else 'udp:rail0;udp:rail1')
        names = ['FI_PROVIDER_PATH', *(k for k in env if k.startswith('WEFT_'))]
        with open(os.path.join(self.folder, 'client'), 'wb') as out:
            return subprocess.Popen(
                [agent, 'weft-corpus-a', 'mpirun', '--oversubscribe', '--bind-to', 'none', '--mca',
                 'orte_tmpdir_base', self.folder, '--mca', 'plm_rsh_agent', agent, '--mca',
                 'oob_tcp_if_include', 'ctl', '--host', 'weft-corpus-a:1,weft-corpus-b:1',
                 *(word for name in names for word in ('-x', name)), '--mca', 'pml', 'cm', '--mca',
                 'mtl', 'ofi', '--mca', 'opal_common_ofi_provider_include', 'weft', rank,
                 os.path.join(self.build, 'test', 'provider', 'mpi_ranks'), ranks],
                stdout=out, stderr=out, env=env)

    def until(self, log, text, seconds=20):
        end = time.time() + seconds
        while time.time() < end:
            with open(os.path.join(self.folder, log), 'rb') as f:
                if text.encode() in f.read():
                    return
            time.sleep(0.02)
        raise RuntimeError('%s: no "%s"' % (log, text))


class Waits(threading.Thread):
    """How long the thread of each process which moves messages, the first one, waits for a core."""

    def __init__(self, pids):
        super().__init__(daemon=True)
        self.pids, self.series, self.ended = pids, [], threading.Event()
        self.start()

    @staticmethod
    def of(pid):
        try:
            with open('/proc/%d/task/%d/schedstat' % (pid, pid), encoding='ascii') as f:
                return int(f.read().split()[1]) / 1e9
        except (OSError, IndexError):
            return None

    def run(self):
        try:
            os.sched_setscheduler(threading.get_native_id(), os.SCHED_FIFO, os.sched_param(1))
        except OSError:
            pass
        while not self.ended.wait(0.01):
            row = [self.of(pid) for pid in self.pids]
            if None in row:
                row = [w if w is not None else last
                       for w, last in zip(row, self.series[-1][1:] if self.series else row)]
            if None not in row:
                self.series.append([time.time(), *row])

    def stop(self):
        self.ended.set()
        self.join()
        return self.series


class Run:
    """One run: its processes, what is done to them, and the truth about it."""

    def __init__(self, network, kind, number):
        self.network, self.kind, self.number = network, kind, number
        self.right, self.action, self.way = KINDS[kind]
        self.truth = {'kind': kind, 'number': number, 'actions': []}
        self.hogs, self.waits, self.server, self.telemetry = [], None, None, {}
        self.recorded_at = float('inf') # files of the flight recorder have no later frame

    def note(self, what):
        self.truth['actions'].append((time.time(), what))

    def is_mpi(self):
        return 'mpi' in self.kind

    def lane(self, rail):
        return 'udp:rail%d' % rail if 'udp' in self.kind else 'dpdk:%d' % rail

    def traffic(self):
        if self.is_mpi():
            # A command for the flight recorder comes while the ranks run.
            return 'mpi', 'exchange4' if self.network and self.network.recorder else \
                MPI[self.number % 3]
        # One frame under way has none that can overtake it.
        fixed = {'clean_request': 0, 'clean_stream': 1, 'clean_both_ways': 2, 'mtu': 1,
                 'policer': 1, 'shallow_queue': 1, 'reordering': 1 + self.number % 2}
        return TRAFFIC[fixed.get(self.kind, (self.number + list(KINDS).index(self.kind)) % 3)]

    def begin(self):
        net = self.network
        self.wire = net.start('x', 'weft-wire', ['a0', 'b0', 'a1', 'b1'],
                              ['-S', '20', '-s', str(self.number + 1), '-t',
                               os.path.join(net.folder, 'trace')], 'wire',
                              before=CALM, stdin=subprocess.PIPE)
        net.until('wire', '1 back')
        if self.is_mpi():
            pids = self.begin_mpi()
        else:
            self.begin_perf()
            pids = [self.client.pid, self.server.pid]
        self.waits = Waits(pids)
        self.wait_for_traffic()
        if self.network.recorder:
            self.telemetry = {side: self.connect(side) for side in 'ab'}
        time.sleep(0.1 + 0.03 * (self.number % 10))

    def connect(self, side):
        """To the telemetry of a process. On a busy machine weft-info starts too late: a recorder
        has the last tenths of a second, and both files must have the same ones."""
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(10)
        s.connect(os.path.join(RUNTIME, self.network.name[side], 'dpdk_telemetry.v2'))
        s.recv(16384)
        return s

    def devices(self):
        return [] if 'udp' in self.kind else ['rail0', 'rail1']

    def begin_mpi(self):
        net, pids = self.network, []
        for c in 'ab':
            net.write(c + '.pid', '')
            if net.recorder:
                self.recorder_folder(c)
        self.client = net.start_mpi(self.traffic()[1], self.devices())
        for c in 'ab':
            net.until(c + '.pid', '\n', 60)
            with open(os.path.join(net.folder, c + '.pid'), encoding='ascii') as f:
                pids.append(int(f.read()))
        return pids

    def env_of(self, side):
        folder = self.network.folder
        if not self.network.recorder:
            return dict(os.environ, WEFT_CSUM='crc32c', WEFT_RECORDER='off',
                        WEFT_CAPTURE=os.path.join(folder, side + '.pcapng') +
                        ',snaplen=1600,ring=32M')
        return dict(os.environ, TMPDIR=self.recorder_folder(side))

    def recorder_folder(self, side):
        folder = os.path.join(self.network.folder, side)
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        return folder

    def begin_perf(self):
        net, port = self.network, str(21000 + self.number % 800 * 50 + list(KINDS).index(self.kind))
        env = {side: self.env_of(side) for side in 'ab'}
        common = ['-p', port, '-L', ';'.join(self.lane(rail) for rail in (0, 1))]
        self.server = net.start('b', 'weft-perf', self.devices(), common, 'server',
                                env=env['b'])
        net.until('server', 'waiting for a client')
        self.client = net.start('a', 'weft-perf', self.devices(), common + [
            *self.traffic(), '-D', '4', '-O', '4', '-w', '1', '10.99.6.1'], 'client',
            env=env['a'])

    def tell_wire(self, link):
        way = self.way + ' ' if self.way else ''
        self.wire.stdin.write(('0 %s%s\n' % (way, link)).encode())
        self.wire.stdin.flush()
        self.note(way + link)

    def hog(self):
        """Two on each core of the machine, so that processes wait."""
        self.note('hogs')
        for _ in range(2 * os.cpu_count()):
            self.hogs.append(subprocess.Popen([sys.executable, '-c', 'while True: pass']))

    def act(self):
        what = (self.action or '').split()
        process = self.client if self.way == 'client' else self.server
        if not what:
            return
        if what[0] in ('hog', 'hogs'):
            self.hog()
        elif what[0] == 'stop':
            process.send_signal(signal.SIGSTOP)
            self.note('SIGSTOP ' + self.way)
            time.sleep(float(what[1]))
            process.send_signal(signal.SIGCONT)
            self.note('SIGCONT ' + self.way)
        elif what[0] == 'kill':
            process.kill()
            self.note('SIGKILL ' + self.way)
        elif what[0] == 'down':
            sh('ip', '-n', self.network.name['b'], 'link', 'set', 'rail0', 'down')
            self.note('link down b rail0')
        else:
            self.tell_wire(what[0])
            if len(what) > 1:
                time.sleep(float(what[1]))
                self.tell_wire('clear')

    def recorded(self, side):
        """The first file of the flight recorder of this side."""
        files = glob.glob(os.path.join(self.network.folder, side, '*', 'recorder-*.pcapng'))
        return min(files, key=os.path.getmtime, default=None)

    def take_recorders(self):
        """The file that each process writes of itself; else, a command for it while the fault
        lasts, at both ends at once."""
        began = self.truth['actions'][0][0] if self.truth['actions'] else time.time()
        time.sleep(max(0, began + AFTER_S - time.time()))
        sides = [side for side, process in (('a', self.client), ('b', self.server))
                 if (process or self.client).poll() is None and not self.recorded(side)]
        for side in sides:
            self.telemetry[side].send(b'/weft/recorder')
        for side in sides:
            self.telemetry[side].recv(16384)
        self.recorded_at = time.time()

    def keep_recorders(self):
        for side in 'ab':
            if not self.recorded(side):
                raise RuntimeError('%s: no file of the flight recorder' % side)
            shutil.move(self.recorded(side), os.path.join(self.network.folder, side + '.pcapng'))

    def go(self):
        began = time.time()
        try:
            self.begin()
            self.act()
            if self.network.recorder:
                self.take_recorders()
            if self.action and self.client.poll() is not None and self.action != 'kill':
                raise RuntimeError('the client has ended before the fault')
            for _ in range(600):
                if self.client.poll() is not None:
                    break
                time.sleep(0.05)
            self.truth['waits'] = self.waits.stop()
            self.truth['codes'] = [p.poll() for p in (self.client, self.server) if p]
        finally:
            if self.waits:
                self.waits.stop()
            for s in self.telemetry.values():
                s.close()
            self.end()
        if self.network.recorder:
            self.keep_recorders()
        self.truth['met'] = self.met()
        self.truth['ring'] = self.ring_losses()
        self.truth['load'] = os.getloadavg()[0]
        self.truth['took'] = time.time() - began

    def counters(self):
        """Of weft-wire, by rail and way."""
        self.wire.stdin.write(b'counters\n')
        self.wire.stdin.flush()
        time.sleep(0.2)
        with open(os.path.join(self.network.folder, 'wire'), encoding='utf-8') as f:
            lines = [line.split() for line in f]
        return {(line[0], line[1]): dict(zip(line[5::2], map(int, line[6::2])))
                for line in lines if line[5:6] == ['rx']}

    def wait_for_traffic(self):
        """A fault that begins before the lanes are up would be another one."""
        for _ in range(100):
            if sum(c['rx'] for c in self.counters().values()) >= BUSY:
                return
        raise RuntimeError('no traffic')

    def met(self):
        """The times of the frames of the first rail that met the fault."""
        event, times = EVENT.get(self.kind), []
        with open(os.path.join(self.network.folder, 'trace'), encoding='ascii') as f:
            for line in f:
                when, pair, way, _, *what = line.split()
                if pair == '0' and self.way in (None, way) and event in what:
                    times.append(float(when))
        return [when for when in times if when < self.recorded_at]

    def ring_losses(self):
        """What the bridge's own rings have lost, by rail and way: no link has, and no host."""
        lost = collections.Counter()
        with open(os.path.join(self.network.folder, 'trace'), encoding='ascii') as f:
            for line in f:
                _, pair, way, _, *what = line.split()
                if what[:1] == ['ring_full']:
                    lost['%s %s' % (pair, way)] += int(what[1])
        return lost

    def met_few(self):
        """Did the fault meet too few frames to be named? Lossy lanes are used less."""
        few = FEW_LATE if self.kind.startswith(('delay', 'jitter')) else FEW
        return self.kind in EVENT and len(self.truth['met']) < few

    def end(self):
        for hog in self.hogs:
            hog.kill()
            hog.wait()
        for name in ('client', 'server', 'wire'):
            process = getattr(self, name, None)
            if process is None:
                continue
            for send in (None, signal.SIGTERM, signal.SIGKILL):
                if send is not None:
                    process.send_signal(send)
                try:
                    process.wait(1.5 if name == 'wire' else 6)
                    break
                except subprocess.TimeoutExpired:
                    if name == 'wire' and send is None:
                        process.stdin.close()
        if self.action == 'down':
            sh('ip', '-n', self.network.name['b'], 'link', 'set', 'rail0', 'up')


def analyse(build, files):
    done = subprocess.run([os.path.join(build, 'app', 'weft-dump'), '-j', *files], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)


def waited(truth, side, since, until):
    """Seconds in this time in which the process waited for a core."""
    column = 1 + 'ab'.index(side)
    before = [row[column] for row in truth['waits'] if row[0] <= since]
    until_then = [row[column] for row in truth['waits'] if row[0] >= until]
    if not truth['waits']:
        return 0
    return (until_then or [truth['waits'][-1][column]])[0] - \
        (before or [truth['waits'][0][column]])[-1]


def waiting(truth, side, since, until):
    """As waited(), by when it waited: the kernel adds a wait when it has ended."""
    column, seconds = 1 + 'ab'.index(side), 0
    for before, row in zip(truth['waits'], truth['waits'][1:]):
        begin = row[0] - (row[column] - before[column])
        seconds += max(0, min(row[0], until) - max(begin, since))
    return seconds


def share_of_waits(truth, side):
    if not truth['waits']:
        return 0
    since, until = truth['waits'][0][0], truth['waits'][-1][0]
    return waited(truth, side, since, until) / max(until - since, 0.1)


def stops_of(anomaly):
    """The silences that a verdict about a host names: begin and length, in seconds."""
    stops = [(s['time'] / 1e9, s['seconds']) for s in anomaly.get('stops', [])]
    return stops or [(anomaly['time'] / 1e9, float(m) / 1e3)
                     for m in STOP.findall(anomaly['evidence'])]


def was_stopped(truth, side, since, until):
    begin = None
    for when, what in truth['actions']:
        if what.startswith('SIG') and (what.split()[1] == 'client') == (side == 'a'):
            if what.startswith('SIGCONT') and begin < until and since < when:
                return True
            begin = when
    return begin is not None and begin < until


def stopped(truth, side, since, until):
    """Seconds in this time in which the process was stopped."""
    begin, seconds = None, 0
    for when, what in truth['actions']:
        if what.startswith('SIG') and (what.split()[1] == 'client') == (side == 'a'):
            if what.startswith('SIGCONT'):
                seconds += max(0, min(when, until) - max(begin, since))
            begin = when
    return seconds


def pauses_of(anomaly, truth):
    """The share of the time without polls by the history, and that of waits and stops."""
    found = PAUSED.search(anomaly['evidence'])
    if not found or not truth['waits']:
        return None
    side = os.path.basename(anomaly['host'])[0]
    begin = anomaly['time'] / 1e9
    end = begin + float(found[2]) / 1e3
    begin = max(begin, truth['waits'][0][0])
    if begin >= end:
        return None
    return float(found[1]) / 100, (waiting(truth, side, begin, end) +
                                   stopped(truth, side, begin, end)) / (end - begin)


def is_true_of_host(anomaly, truth):
    side = os.path.basename(anomaly['host'])[0]
    if anomaly['class'] == 'slow receiver':
        pauses = pauses_of(anomaly, truth)
        if pauses:
            return pauses[0] <= (1 + AGREES) * pauses[1]
        return share_of_waits(truth, side) >= anomaly.get('share', 1) / 2 or \
            was_stopped(truth, side, 0, time.time())
    known = truth['waits'][0][0] if truth['waits'] else time.time()
    return all(begin < known or was_stopped(truth, side, begin, begin + length) or
               waited(truth, side, begin - NEAR_S, begin + length + NEAR_S) >= length / 2
               for begin, length in stops_of(anomaly))


def lane_of(anomaly):
    return sorted({name.split()[0] for name in anomaly.get('lane', [])} - {'?'})


def way_of(anomaly):
    return {'a': 'forth', 'b': 'back'}.get(os.path.basename(anomaly.get('from_file', '?'))[:1])


def off_of(run, right):
    """Seconds from the fault to its named time; None: the fault has no time of its own."""
    truth = run.truth
    if not right or not truth['actions']:
        return None
    first = last = truth['actions'][0][0]
    times = [a['time'] / 1e9 for a in right]
    if run.kind in EVENT:
        first, last = truth['met'][0], truth['met'][:FEW][-1]
    elif 'hog' in run.action:
        return None  # it had waited for a core before
    elif 'stop' in run.action:
        times = [begin for a in right for begin, _ in stops_of(a)]
    return min((t - first if t < first else max(t - last, 0) for t in times), key=abs)


def is_of_stop(anomaly, truth):
    side = os.path.basename(anomaly['host'])[0]
    return any(was_stopped(truth, side, begin, begin + length)
               for begin, length in stops_of(anomaly))


def is_of_ring(run, anomaly):
    """Is it about frames that the bridge's own ring has lost, on this rail and way?"""
    places = {'%d %s' % (rail, way_of(anomaly)) for rail in (0, 1)
              if lane_of(anomaly) == [run.lane(rail)]}
    return anomaly['class'] in LOSS | HOLE and places & set(run.truth.get('ring', ()))


def judge(run, found):
    """What is right of the verdicts, and which ones are false alarms."""
    truth, named = run.truth, found['anomalies']
    right = [a for a in named if a['class'] in run.right and
             (a['class'] not in HOST or is_true_of_host(a, truth))]
    if (run.action or '').startswith('stop'):  # another silence names it by chance
        right = [a for a in right if is_of_stop(a, truth)]
    result = {'named': bool(right), 'alarms': [], 'host': []}
    if run.way in ('server', 'client'):
        side = 'b' if run.way == 'server' else 'a'
        right = [a for a in right if os.path.basename(a['host'])[0] == side]
        result['where'] = bool(right)
    elif run.right:
        right = [a for a in right if lane_of(a) == [run.lane(0)]]
        result['where'] = bool(right)
        if run.way:
            right = [a for a in right if way_of(a) == run.way or
                     a['class'] in ('blackhole both ways', 'lane down')]
        result['way'] = bool(right)
    off = off_of(run, right)
    if off is not None:
        result['off'], result['time'] = off, abs(off) <= NEAR_S
    result['few'] = run.met_few()
    result['first'] = bool(named) and named[0]['class'] in run.right
    pauses = [p for p in (pauses_of(a, truth) for a in named) if p]
    result['agrees'] = [abs(share - true) <= AGREES * true for share, true in pauses]
    for a in named:
        if a in right:
            continue
        if a['class'] == 'capture with gaps' and any(c['lost_by_writer']
                                                     for c in found['captures']):
            continue
        if a['class'] in HOST and is_true_of_host(a, truth):
            result['host'].append(a['class'])
        elif is_of_ring(run, a):
            result['host'].append('%s by the bridge' % a['class'])
        else:
            result['alarms'].append('%s (%s)' % (a['class'], a['evidence'][:60]))
    return result


def show(run, result):
    t = run.truth
    print('%-15s %d %-9s load %4.1f waits %s | %s%s%s | %s' % (
        run.kind, run.number, run.traffic()[1], t.get('load', -1),
        ' '.join('%s %.0f%%' % (n, 100 * share_of_waits(t, n)) for n in 'ab'),
        ('named' if result['named'] else 'met few' if result['few'] else
         'not named' if run.right else 'clean') +
        (', met %d' % len(t['met']) if run.kind in EVENT else ''),
        ''.join(', %s %s' % (k, 'right' if result[k] else 'wrong')
                for k in ('first', 'where', 'way', 'time') if k in result and result['named']),
        ', %+.0f ms' % (1e3 * result['off']) if 'off' in result else '',
        ', '.join(['FALSE ' + a for a in result['alarms']] + ['(true) ' + h
                                                              for h in result['host']]) or '-'),
          flush=True)


def table(results):
    few = sum(r['few'] for _, r in results)
    faults = [(run, r) for run, r in results if run.right and not r['few']]
    clean = [(run, r) for run, r in results if not run.right]
    named = [r for _, r in faults if r['named']]
    off = sorted(r['off'] for r in named if 'off' in r)
    print('\nruns whose fault met less than %d frames: %d, not counted below' % (FEW, few))
    print('faults named        %d of %d' % (len(named), len(faults)))
    print('in the first line   %d of %d' % (sum(r['first'] for r in named), len(named)))
    for key, text in (('where', 'rail or host right'), ('way', 'direction right'),
                      ('time', 'within 20 ms')):
        some = [r[key] for r in named if key in r]
        print('%-19s %d of %d' % (text, sum(some), len(some)))
    if off:
        early = sum(r['off'] < -NEAR_S for r in named if 'off' in r)
        print('time                median %.0f ms behind the frames that met the fault, before '
              'them in %d of %d' % (1e3 * off[len(off) // 2], early, len(off)))
    print('right in all        %d of %d' % (sum(r['named'] and all(
        r.get(key, True) for key in ('where', 'way', 'time')) for _, r in faults), len(faults)))
    for text, some in (('faulty', faults), ('clean', clean)):
        print('%-6s with a false alarm   %d of %d; with a true verdict about a busy host %d' % (
            text, sum(bool(r['alarms']) for _, r in some), len(some),
            sum(bool(r['host']) for _, r in some)))
    agrees = [one for _, r in results for one in r['agrees']]
    print('shares without polls within 20 %% of the waits: %d of %d' % (sum(agrees), len(agrees)))
    alarms = collections.Counter(a.split(' (')[0] for _, r in results for a in r['alarms'])
    print('false alarms        %s' % (dict(alarms) or 'none'))
    return 0 if results and not any(r['alarms'] for _, r in clean) else 1


def again(args):
    """Runs whose captures were kept, and what is named now."""
    for name in sorted(os.listdir(args.again)):
        kind, number = name.rsplit('-', 1)
        folder = os.path.join(args.again, name)
        if args.kinds and kind not in args.kinds:
            continue
        run = Run(None, kind, int(number))
        with open(os.path.join(folder, 'truth.json'), encoding='utf-8') as f:
            run.truth = json.load(f)
        result = judge(run, analyse(args.build, [os.path.join(folder, c + '.pcapng')
                                                 for c in 'ab']))
        show(run, result)
        yield run, result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('-o', '--output', help='keep captures and truth in this folder')
    parser.add_argument('-f', '--first', type=int, default=0, help='number of the first run')
    parser.add_argument('-r', '--recorder', action='store_true',
                        help="judge files of the flight recorder, with nothing configured")
    parser.add_argument('-a', '--again', help='judge the captures that -o has kept there')
    parser.add_argument('build')
    parser.add_argument('runs', type=int, nargs='?', default=1)
    parser.add_argument('kinds', nargs='*')
    args = parser.parse_args()
    if args.again:
        return table(list(again(args)))
    results, folder = [], tempfile.mkdtemp(prefix='weft-corpus.')
    network = Network(os.path.abspath(args.build), folder, args.recorder)
    try:
        for number in range(args.first, args.first + args.runs):
            for kind in args.kinds or KINDS:
                run = Run(network, kind, number)
                try:
                    run.go()
                    found = analyse(args.build, [os.path.join(folder, c + '.pcapng')
                                                 for c in 'ab'])
                except (RuntimeError, ValueError, OSError) as err:
                    print('%-15s %d no run: %s' % (kind, number, err), flush=True)
                    continue
                result = judge(run, found)
                show(run, result)
                results.append((run, result))
                if args.output:
                    keep = os.path.join(args.output, '%s-%d' % (kind, number))
                    os.makedirs(keep, exist_ok=True)
                    for c in 'ab':
                        shutil.move(os.path.join(folder, c + '.pcapng'), keep)
                    with open(os.path.join(keep, 'truth.json'), 'w', encoding='utf-8') as f:
                        json.dump(run.truth, f)
                for c in 'ab':
                    if os.path.exists(os.path.join(folder, c + '.pcapng')):
                        os.unlink(os.path.join(folder, c + '.pcapng'))
    finally:
        network.close()
        shutil.rmtree(folder, ignore_errors=True)
    return table(results)


sys.exit(main())
