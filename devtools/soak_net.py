#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Streams between real processes for hours while the network under them has faults.

    devtools/soak_net.py [--seconds N] [--seed N] [--rate MBIT] [--out FILE.csv]

Two network namespaces have four veths: two rails of lanes over UDP sockets, whose processes are an
ordinary user's, and two rails of net_af_packet. Each veth has a rate (tc tbf) and loses one frame
of 1000 (nft). Three streams last from the begin to the end, and each byte is compared; a fourth
server gets one client after the other. At random times a link goes down, loses a twentieth of its
frames or has a smaller MTU, or a process is stopped.

Each ten seconds, or more often in a short run, the anonymous memory, the descriptors and the
threads of each process are read. The memory of the last tenth of the time is compared with that
of the sixth tenth (medians).
A run of less than ten minutes is not judged by growth.
The exit code is 0 if no stream failed and nothing grew. It needs root."""

import argparse
import csv
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get('WEFT_BUILD', os.path.join(ROOT, 'build'))
PERF = os.path.join(BUILD, 'app', 'weft-perf')
RAILS = ('udp0', 'udp1', 'pkt0', 'pkt1')
SLEEPS = '--sleep'  # tests of remote memory always poll
CLIENTS = (['-t', 'tag_lat', '-s', '4k', SLEEPS], ['-t', 'put_bw', '-s', '256k'],
           ['-t', 'am_bw', '-s', '1k', SLEEPS], ['-t', 'get_bw', '-s', '1M'])
# KiB of memory: pages that a rare event touches for the first time. Two hours with 530 faults had
# steps of up to 204 KiB in their second half.
SLACK = 256
LEAST = 600  # seconds: in a shorter run the paths and buffers of the begin count as growth
USER = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--bounding-set=-all',
        '--no-new-privs']


def run(*command, check=True):
    return subprocess.run(command, check=check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)


class Network:
    """The namespaces, their veths, and what spoils them."""

    def __init__(self, rate):
        self.spaces = [f'weft-soak-{os.getpid()}-{side}' for side in 'ab']
        for space in self.spaces:
            run('ip', 'netns', 'add', space)
        for number, link in enumerate(('ctl',) + RAILS):
            self.link(number, link)
            for space in self.spaces if link != 'ctl' else []:
                run('tc', '-n', space, 'qdisc', 'add', 'dev', link, 'root', 'tbf', 'rate',
                    f'{rate}mbit', 'burst', '32k', 'latency', '10ms')
        for space in self.spaces:
            self.lose(space, dict.fromkeys(RAILS, 1))

    def link(self, number, name):
        one, other = self.spaces
        run('ip', '-n', one, 'link', 'add', name, 'mtu', '9000', 'type', 'veth', 'peer', 'name',
            name, 'mtu', '9000', 'netns', other)
        for side, space in enumerate(self.spaces):
            run('ip', '-n', space, 'addr', 'add', f'10.97.{number}.{side + 1}/24', 'dev', name)
            run('ip', '-n', space, 'link', 'set', name, 'up')

    @staticmethod
    def lose(space, per_mille):
        rules = 'add table netdev soak; delete table netdev soak; add table netdev soak\n'
        for link, share in per_mille.items():
            rules += (f'add chain netdev soak {link} {{ type filter hook ingress device {link} '
                      f'priority 0; }}\nadd rule netdev soak {link} numgen random mod 1000 < '
                      f'{share} drop\n')
        subprocess.run(['ip', 'netns', 'exec', space, 'nft', '-f', '-'], input=rules, text=True,
                       check=True)

    def set(self, space, link, *what):
        run('ip', '-n', space, 'link', 'set', link, *what)

    def remove(self):
        for space in self.spaces:
            run('ip', 'netns', 'del', space, check=False)


class Stream:
    """A server and its clients. Without a time for the client it serves one after the other."""

    def __init__(self, network, name, number, lanes, test, eal, folder):
        self.network, self.name, self.lanes, self.test = network, name, lanes, test
        self.eal, self.port, self.folder = eal, str(21000 + number), folder
        self.clients = self.failed = 0
        self.server = self.start(0, ['-k'] if test is None else [], [])
        self.client = None

    def start(self, side, more, host):
        user = [] if self.eal else USER
        eal = [*self.eal, f'--file-prefix=soak{os.getpid()}{self.name}{side}', '--'] \
            if self.eal else []
        command = ['ip', 'netns', 'exec', self.network.spaces[side], *user, PERF, *eal, '-p',
                   self.port, '-L', self.lanes, '-S', 'PEER_TIMEOUT=60s', *more, *host]
        path = os.path.join(self.folder, f'{self.name}.{"server" if side == 0 else "client"}')
        with open(path, 'a', encoding='utf-8') as log:
            return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def begin(self, test, seconds):
        self.clients += 1
        self.client = self.start(1, [*test, '-V', '-f', '-W', '20', '-D',
                                     str(seconds)], ['10.97.0.1'])

    def ended(self, process, end):
        """Whether a process ended, and counts the end of one that failed."""
        code = process.poll()
        if code:
            self.failed += 1
            print(f'{self.name}: the {end} ended with code {code}', flush=True)
        return code is not None

    def processes(self):
        yield 'server', self.server.pid
        if self.test is not None:
            yield 'client', self.client.pid


def sample(pid):
    with open(f'/proc/{pid}/status', encoding='utf-8') as status:
        text = status.read()
    field = {name: int(value) for name, value in re.findall(r'^(\w+):\s+(\d+)', text, re.M)}
    return field['RssAnon'], len(os.listdir(f'/proc/{pid}/fd')), field['Threads']


class Faults:
    """One fault at a time; each has a begin, an end, and a pause behind it."""

    def __init__(self, network, streams, rng):
        self.network, self.streams, self.rng = network, streams, rng
        self.count, self.undo, self.at = {}, None, time.monotonic() + 10

    def turn(self):
        now = time.monotonic()
        if now < self.at:
            return
        if self.undo:
            self.undo()
            self.undo, self.at = None, now + self.rng.uniform(2, 20)
            return
        kind = self.rng.choice(('down', 'loss', 'mtu', 'stop'))
        self.count[kind] = self.count.get(kind, 0) + 1
        self.undo = getattr(self, kind)()
        self.at = now + self.rng.uniform(0.2, 5 if kind != 'stop' else 3)

    def down(self):
        space, link = self.rng.choice(self.network.spaces), self.rng.choice(RAILS)
        self.network.set(space, link, 'down')
        return lambda: self.network.set(space, link, 'up')

    def mtu(self):
        space, link = self.rng.choice(self.network.spaces), self.rng.choice(RAILS)
        self.network.set(space, link, 'mtu', str(self.rng.choice((1500, 4000))))
        return lambda: self.network.set(space, link, 'mtu', '9000')

    def loss(self):
        space, link = self.rng.choice(self.network.spaces), self.rng.choice(RAILS)
        normal = dict.fromkeys(RAILS, 1)
        self.network.lose(space, {**normal, link: 50})
        return lambda: self.network.lose(space, normal)

    def stop(self):
        _, pid = self.rng.choice(list(self.rng.choice(self.streams).processes()))
        os.kill(pid, signal.SIGSTOP)
        return lambda: os.kill(pid, signal.SIGCONT)


def streams_of(network, folder):
    packet = 'qdisc_bypass=0,blocksz=16384,framesz=16384,framecnt=256'
    eal = ['--no-huge', '-m', '512', '--no-pci', f'--vdev=net_af_packet0,iface=pkt0,{packet}',
           f'--vdev=net_af_packet1,iface=pkt1,{packet}']
    udp, raw = 'udp:udp0;udp:udp1', 'dpdk:0;dpdk:1'
    return [Stream(network, 'udp-tag', 0, udp, ['-t', 'tag_bw', '-s', '64k', SLEEPS], [],
                   folder),
            Stream(network, 'udp-am', 1, udp, ['-t', 'am_bw', '-s', '1M', SLEEPS], [], folder),
            Stream(network, 'packet-am', 2, raw, ['-t', 'am_bw', '-s', '4k', SLEEPS], eal,
                   folder),
            Stream(network, 'udp-turns', 3, udp, None, [], folder)]


def follow(streams, faults, seconds, rng, rows):
    begin, next_sample, next_client = time.monotonic(), 0, 0
    while (now := time.monotonic() - begin) < seconds:
        faults.turn()
        for stream in streams:
            stream.ended(stream.server, 'server')
            if stream.test is None and stream.ended(stream.client, 'client') and now > next_client:
                next_client = now + 8
                stream.begin(rng.choice(CLIENTS), rng.choice((1, 2)))
        if sum(stream.failed for stream in streams):
            return now
        if now >= next_sample:
            next_sample += min(10, seconds / 40)
            for stream in streams:
                for end, pid in stream.processes():
                    rows.append([round(now, 1), stream.name, end, *sample(pid)])
        time.sleep(0.05)
    return now


def growth(rows, seconds):
    grew = 0
    for key in sorted({(row[1], row[2]) for row in rows}):
        mine = [row for row in rows if (row[1], row[2]) == key]
        early = [row for row in mine if 0.5 <= row[0] / seconds < 0.6]
        late = [row for row in mine if row[0] / seconds >= 0.9]
        if not early or not late:
            print(f'{key[0]} {key[1]}: not judged, too short')
            grew = 1
            continue
        was, now = ([statistics.median(row[i] for row in part) for i in (3, 4, 5)]
                    for part in (early, late))
        worse = seconds >= LEAST and (now[0] > was[0] + SLACK or now[1] > was[1] or
                                      now[2] > was[2])
        grew |= worse
        print(f'{key[0]} {key[1]}: anonymous memory {was[0]:.0f} to {now[0]:.0f} KiB, descriptors '
              f'{was[1]:.0f} to {now[1]:.0f}, threads {was[2]:.0f} to {now[2]:.0f}'
              f'{"  GREW" if worse else ""}')
    return grew


def finish(streams, limit):
    """Waits for the ends of the streams."""
    deadline = time.monotonic() + limit
    for stream in streams:
        for end, process in (('client', stream.client), ('server', stream.server)):
            if end == 'server' and stream.test is None:
                process.terminate()
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                print(f'{stream.name}: the {end} has no end')
                stream.failed += 1
                process.kill()
            if stream.test is None and end == 'server':
                continue
            stream.ended(process, end)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seconds', type=int, default=7200)
    parser.add_argument('--seed', type=int, default=int(time.time()))
    parser.add_argument('--rate', type=int, default=50, help='Mb/s of each veth')
    parser.add_argument('--out', help='file of the samples')
    parser.add_argument('--logs', help='folder of the output of the processes')
    args = parser.parse_args()
    rng = random.Random(args.seed)
    folder = args.logs or os.path.join(BUILD, 'soak-net')
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o777)
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    network = Network(args.rate)
    streams, rows = [], []
    try:
        streams = streams_of(network, folder)
        for stream in streams:
            stream.begin(stream.test or CLIENTS[0], args.seconds if stream.test else 2)
        faults = Faults(network, streams, rng)
        print(f'{args.seconds} s, seed {args.seed}, {args.rate} Mb/s, output in {folder}',
              flush=True)
        took = follow(streams, faults, args.seconds, rng, rows)
        if faults.undo:
            faults.undo()
        finish(streams, 90)
    finally:
        for stream in streams:
            for process in (stream.server, stream.client):
                if process and process.poll() is None:
                    process.kill()
        network.remove()
    if args.out:
        with open(args.out, 'w', encoding='utf-8', newline='') as out:
            csv.writer(out).writerows(
                [['s', 'stream', 'end', 'anonymous_KiB', 'descriptors', 'threads'], *rows])
    failed = sum(stream.failed for stream in streams)
    print(f'{took:.0f} s; clients: {sum(stream.clients for stream in streams)}; faults: '
          f'{", ".join(f"{n} {kind}" for kind, n in sorted(faults.count.items()))}; '
          f'{failed} failed')
    return 1 if growth(rows, args.seconds) or failed else 0


if __name__ == '__main__':
    sys.exit(main())
