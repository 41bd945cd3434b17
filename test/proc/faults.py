#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""faults.py BUILD [SEEDS [CLASS...]]: given the captures of two hosts alone, weft-dump names the
one fault that the simulator has put between them: its class, its lane or host, and its time. A few
seeds of each class; with SEEDS so many, and a table of what was named instead. Prints TAP."""

import collections
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import tap  # noqa: E402

BUILD = sys.argv[1]
DUMP = os.path.join(BUILD, 'app', 'weft-dump')
SIM = os.path.join(BUILD, 'test', 'sim', 'sim_faults')
NEAR = 10e6  # ns
CLASSES = ['clean', 'random_loss', 'burst_loss', 'queue_or_policer_loss', 'duplication',
           'reordering', 'corruption', 'delay_or_jitter', 'blackhole_one_way',
           'blackhole_both_ways', 'lane_down', 'path_mtu', 'moved_mac', 'stopped_peer',
           'slow_receiver']


def judged(fault, seed):
    """What weft-dump says of a run: 'right', or what is wrong."""
    with tempfile.TemporaryDirectory(prefix='weft-faults.') as folder:
        done = subprocess.run([SIM, '-k', fault, '-s', str(seed), '-n', '1'],
                              env=dict(os.environ, SIM_FAULTS=folder), check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout[-1500:]
        with open(os.path.join(folder, 'truth.json'), encoding='utf-8') as f:
            truth = json.load(f)
        files = [os.path.join(folder, name + '.pcapng') for name in 'ab']
        done = subprocess.run([DUMP, '-j', *files], check=False, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout)['anomalies']
    if truth['touched'] < 20:
        return 'few'
    if fault == 'clean':
        return 'right' if not found else 'named ' + found[0]['class']
    if not found:
        return 'nothing named'
    names = [a['class'].replace(' ', '_').lower() for a in found]
    if names != [fault]:
        return 'named ' + ' and '.join(names)
    one = found[0]
    if truth['of_host'] and not one['host'].endswith(truth['host'] + '.pcapng'):
        return 'the wrong host'
    if not truth['of_host']:
        lane = sorted(name.split()[0].split(':')[1] for name in one['lane'])
        if lane != truth['lane']:
            return 'lane %s instead of %s' % (lane, truth['lane'])
    if abs(one['time'] - truth['time']) > NEAR:
        return '%+.1f ms' % ((one['time'] - truth['time']) / 1e6)
    return 'right'


def runs(fault, seed, count):
    """What is said of so many runs whose fault has met at least 20 frames."""
    while count > 0:
        said = judged(fault, seed)
        seed += 1
        if said != 'few':
            count -= 1
            yield said


def weft_dump_names_the_fault(fault, seed, count):
    def check():
        wrong = [said for said in runs(fault, seed, count) if said != 'right']
        assert not wrong, wrong

    check.__name__ = fault
    return check


def table(seeds, classes):
    for fault in classes:
        said = collections.Counter(runs(fault, 1000, seeds))
        print('%-22s %3d of %d%s' % (fault, said.pop('right', 0), seeds,
                                     ''.join(', %d %s' % (n, s) for s, n in said.items())),
              flush=True)


if len(sys.argv) > 2:
    table(int(sys.argv[2]), sys.argv[3:] or CLASSES)
else:
    tap.run([weft_dump_names_the_fault(fault, 1, 2) for fault in CLASSES])
