#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the code that a reader of lib/, and a processor, must go through.

    devtools/figures.py BUILDDIR [--messages N]

Prints the largest circle of files that use each other's symbols, the lines of the project's own
headers that a file of lib/ sees, and, by callgrind over test/unit/hop_bench (both ends of a memif
lane in one thread, 8 B messages), instructions, functions and files of a send and of a receive.
Code counts if it runs for nine of ten messages at least: functions that the compiler has not
inlined, and files, headers too, with lines that run as often. The table in
doc/results/2026-11-22-layout.md was made by this script. The counts of timers differ from run to
run, since they read the clock.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

OURS = re.compile(r'(?:^|/)((?:lib|drivers)/[\w/]+\.[ch])$')


def lib_objects(build):
    """The objects of the present build; the folder may also have objects of removed files."""
    out = subprocess.run(['ninja', '-C', build, '-t', 'query', 'libweft_lib.a'],
                         capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r'libweft_lib\.a\.p/\S+\.o', out)))


def uses(build, objects):
    """object -> the objects that define the symbols that it uses"""
    defined, taken = {}, collections.defaultdict(set)
    for o in objects:
        out = subprocess.run(['nm', os.path.join(build, o)], capture_output=True, text=True,
                             check=True).stdout
        for words in map(str.split, out.splitlines()):
            if len(words) == 2 and words[0] == 'U':
                taken[o].add(words[1])
            elif len(words) == 3 and words[1] in 'TDBRV':
                defined[words[2]] = o
    return {o: {defined[s] for s in taken[o] if s in defined} - {o} for o in objects}


def reached(graph, start):
    seen, todo = set(), [start]
    while todo:
        for other in graph[todo.pop()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def largest_circle(graph):
    reach = {o: reached(graph, o) for o in graph}
    return max(({o} | {p for p in reach[o] if o in reach[p]} for o in graph), key=len)


def lines_seen(build, objects):
    """Lines of the project's headers that each object of lib/ was compiled with."""
    out = subprocess.run(['ninja', '-C', build, '-t', 'deps'], capture_output=True, text=True,
                         check=True).stdout
    root = os.path.realpath(os.path.join(build, '..'))
    counts, sums, at = {}, [], None
    for line in out.splitlines():
        if line.startswith('libweft_lib.a.p/'):
            at = 0 if line.split(':')[0] in objects else None
        elif not line.strip():
            if at is not None:
                sums.append(at)
            at = None
        elif at is not None and line.endswith('.h'):
            path = os.path.realpath(os.path.join(build, line.strip()))
            if path.startswith(root + '/') and '/build' not in path[len(root):]:
                if path not in counts:
                    with open(path, encoding='utf-8') as f:
                        counts[path] = sum(1 for _ in f)
                at += counts[path]
    return sorted(sums)


class Profile:
    """One callgrind run of hop_bench, counted inside of the function `inside`."""

    def __init__(self, build, inside, trips):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'out')
            cmd = ['valgrind', '--tool=callgrind', '--callgrind-out-file=' + path,
                   '--toggle-collect=' + inside, os.path.join(build, 'test/unit/hop_bench'),
                   str(trips)]
            run = subprocess.run(cmd, capture_output=True, text=True)
            if run.returncode:
                sys.exit('%s\n%s%s' % (' '.join(cmd), run.stdout, run.stderr))
            with open(path, encoding='utf-8') as f:
                self.parse(f)

    def parse(self, lines):
        """callgrind's format: names are numbered, lines are relative to the line before."""
        names = {'n': {}, 'l': {}}
        self.calls, self.home = collections.Counter(), {}
        self.cost = collections.Counter()  # of (function, file, line)
        function = own = file = called = None
        at, inclusive = 0, False

        def name(kind, text):
            number, text = re.match(r'(\(\d+\))(?: (.*))?$', text).groups()
            return names[kind].setdefault(number, text)

        for key, equals, value in (line.rstrip('\n').partition('=') for line in lines):
            if key == 'fl':
                own = file = name('l', value)
            elif key in ('fi', 'fe'):
                file = name('l', value)
            elif key in ('cfi', 'cfl'):
                name('l', value)
            elif key == 'fn':
                function, file = name('n', value), own
                self.home[function] = own
            elif key == 'cfn':
                called = name('n', value)
            elif key == 'calls':
                self.calls[called] += int(value.split()[0])
                inclusive = True  # what was called has lines of its own
            elif not equals and re.match(r'[+\-*\d]\S* \d+$', key):
                where, n = key.split()
                at = at if where == '*' else at + int(where) if where[0] in '+-' else int(where)
                if not inclusive:
                    self.cost[function, file, at] += int(n)
                inclusive = False

    def often(self, messages, inside):
        """Functions, files and instructions of the project that messages have in common."""
        functions = {f for f, n in self.calls.items()
                     if n >= 0.9 * messages and OURS.search(self.home.get(f) or '')} | {inside}
        mine = [(OURS.search(file or ''), n) for (f, file, _), n in self.cost.items()
                if f in functions]
        return (functions, {m.group(1) for m, n in mine if m and n >= 0.9 * messages},
                sum(n for m, n in mine if m))


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('build')
    p.add_argument('--messages', type=int, default=200, help='round trips of each of the 15 rounds')
    p.add_argument('--names', action='store_true', help='print them all')
    o = p.parse_args()

    objects = lib_objects(o.build)
    graph = uses(o.build, objects)
    circle = largest_circle(graph)
    print('largest circle: %d of %d files of lib/' % (len(circle), len(graph)))
    seen = lines_seen(o.build, objects)
    print('lines that a file of lib/ sees: %d at p50, %d at most'
          % (seen[len(seen) // 2], seen[-1]))

    whole = Profile(o.build, 'over_one', o.messages)
    messages = whole.calls['weft_tag_send']
    ours = whole.often(messages, 'over_one')[2]
    print('instructions of an 8 B message: %.0f, with those of memif, DPDK and what is not done '
          'for each one %.0f (%d messages, %.2f calls of progress each)'
          % (ours / messages, sum(whole.cost.values()) / messages, messages,
             whole.calls['weft_worker_progress'] / messages))
    for what, inside in (('send', 'weft_tag_send'), ('receive', 'weft_worker_progress')):
        functions, files, _ = Profile(o.build, inside, o.messages).often(messages, inside)
        sources = [f for f in files if f.endswith('.c')]
        print('%s: %d functions in %d files and %d headers'
              % (what, len(functions), len(sources), len(files) - len(sources)))
        if o.names:
            print('  ' + ' '.join(sorted(functions)) + '\n  ' + ' '.join(sorted(files)))
    return 0


if __name__ == '__main__':
    sys.exit(main())
