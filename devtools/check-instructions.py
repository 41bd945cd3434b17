#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check-instructions.py BUILDDIR [--lower]: instructions per message and memory, with ceilings.

callgrind counts what test/unit/hop_bench executes: both ends of a memif lane in one thread, memif,
DPDK and libc included. The measured functions are a message of 8 bytes that is alone in its frame,
one in a burst of 64, one of 64 KiB, and one that is alone in a sealed frame, if the build can seal:
822 of its instructions are AES-GCM. devtools/instructions.limit has the ceilings. A figure above
its ceiling fails. --lower writes ceilings that are above the measured figures by the slack
below, and never raises one.

Counts do not depend on the load of the machine. They depend on the compiler: the ceilings are those
of gcc 12 (Debian 12) with the release build, and other compilers skip the check. Valgrind emulates
one instruction set (AVX2) on each processor that has it. Acknowledgements and timers
read the clock, which runs on while valgrind computes. So a message of 64 KiB needs 125,000 to
130,000 on one machine, and its slack is the larger one. The least of up to three runs counts.

idle_end is the heap, in bytes, of one end of an idle endpoint with one memif lane: the average of
1,024 endpoints beyond the first 64, after a keepalive. Their tables have room for 2,048.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

LIMITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'instructions.limit')
TRIPS = 200
SLACK = {'hop_8': 1.05, 'burst_8': 1.05, 'long_64k': 1.10, 'sealed_8': 1.05}
TRIES = 3
# name in the file: function of hop_bench
CASES = {'hop_8': 'over_one', 'burst_8': 'bursts', 'long_64k': 'long_ones', 'sealed_8': 'over_one'}
SEALED = ('sealed_8',)
ENDPOINTS = 1088
SKIP = 77


def skipped(why):
    print(why)
    sys.exit(SKIP)


def check_compiler(build):
    program = os.path.join(build, 'test/unit/hop_bench')
    comment = subprocess.run(['readelf', '-p', '.comment', program], capture_output=True, text=True)
    with open(os.path.join(build, 'meson-info', 'intro-buildoptions.json'), encoding='utf-8') as f:
        options = {o['name']: o['value'] for o in json.load(f)}
    compiler = re.findall(r'GCC: .*? (\d+)\.[\d.]+$', comment.stdout, re.M)
    if '12' not in compiler:
        skipped('the ceilings are those of gcc 12; this build is by gcc %s' % compiler)
    if options['optimization'] != '3' or options['b_sanitize'] != 'none':
        skipped('the ceilings are those of a release build')
    if os.uname().machine != 'x86_64' or 'avx2' not in open('/proc/cpuinfo').read():
        skipped('the ceilings are those of x86_64 with AVX2')


def can_seal(build):
    with open(os.path.join(build, 'weft_build.h'), encoding='utf-8') as f:
        return '#define WEFT_HAVE_SEAL 1' in f.read()


def per_message(build, function, sealed):
    """Instructions in the function, for each call of weft_tag_send() there."""
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ)
        if sealed:
            env['WEFT_JOB_KEY'] = os.path.join(folder, 'key')
            with open(os.open(env['WEFT_JOB_KEY'], os.O_CREAT | os.O_WRONLY, 0o600), 'wb') as f:
                f.write(os.urandom(32))
        # hop_bench forks: the child measures, and its file has the larger number.
        path = os.path.join(folder, 'out.%p')
        cmd = ['valgrind', '--tool=callgrind', '--callgrind-out-file=' + path,
               '--toggle-collect=' + function, os.path.join(build, 'test/unit/hop_bench'),
               str(TRIPS)]
        run = subprocess.run(cmd, capture_output=True, text=True, env=env)
        if run.returncode:
            sys.exit('%s\n%s%s' % (' '.join(cmd), run.stdout, run.stderr))
        figures = []
        for name in os.listdir(folder):
            if name == 'key':
                continue
            with open(os.path.join(folder, name), encoding='utf-8') as f:
                text = f.read()
            total = re.search(r'^(?:summary|totals): (\d+)', text, re.M)
            number = re.search(r'^c?fn=(\(\d+\)) weft_tag_send$', text, re.M)
            if not total or not number:
                continue
            calls = re.findall(r'^cfn=%s.*\ncalls=(\d+)' % re.escape(number.group(1)), text, re.M)
            if calls:
                figures.append(int(total.group(1)) / sum(map(int, calls)))
        if len(figures) != 1:
            sys.exit('%s: %d processes sent messages, expected is 1' % (function, len(figures)))
        return figures[0]


def idle_end(build):
    cmd = [os.path.join(build, 'test/unit/hop_bench'), '-e', str(ENDPOINTS), '100']
    run = subprocess.run(cmd, capture_output=True, text=True)
    found = re.search(r'(\d+) B of heap', run.stdout)
    if run.returncode or not found:
        sys.exit('%s\n%s%s' % (' '.join(cmd), run.stdout, run.stderr))
    return int(found.group(1))


def read_limits():
    with open(LIMITS, encoding='utf-8') as f:
        lines = [line.split() for line in f if not line.startswith('#')]
    return {name: int(value) for name, value in lines}


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('build')
    p.add_argument('--lower', action='store_true', help='lower the ceilings to what is measured')
    o = p.parse_args()

    if subprocess.run(['which', 'valgrind'], capture_output=True).returncode:
        skipped('valgrind is not installed')
    check_compiler(o.build)
    limits = read_limits()
    wrong = 0
    for name, function in CASES.items():
        if name in SEALED and not can_seal(o.build):
            continue
        least = float('inf')
        for _ in range(TRIES):
            least = min(least, per_message(o.build, function, name in SEALED))
            if least <= limits[name]:
                break
        above = least > limits[name]
        wrong += above
        print('%s: %.0f instructions a message, at most %d%s'
              % (name, least, limits[name], ': TOO MANY' if above else ''))
        limits[name] = min(limits[name], int(least * SLACK[name]))
    heap = idle_end(o.build)
    wrong += heap > limits['idle_end']
    print('idle_end: %d B, at most %d%s'
          % (heap, limits['idle_end'], ': TOO MUCH' if heap > limits['idle_end'] else ''))
    limits['idle_end'] = min(limits['idle_end'], int(heap * 1.02))
    if o.lower and not wrong:
        with open(LIMITS, 'w', encoding='utf-8') as f:
            f.write('# SPDX-License-Identifier: BSD-3-Clause\n')
            f.writelines('%s %d\n' % item for item in limits.items())
    return wrong > 0


if __name__ == '__main__':
    sys.exit(main())
