#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""debugging.py BUILD [write]: the commands of doc/capture.md do what the page shows, over
captures of the simulator. Numbers may be others; with "write" the page gets those of today.
Prints TAP."""

import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
sys.dont_write_bytecode = True

import tap  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
PAGE = os.path.join(ROOT, 'doc', 'capture.md')


def sim(program, *arguments, **env):
    done = subprocess.run([os.path.join(BUILD, 'test', 'sim', 'sim_' + program), *arguments,
                           '-n', '1'], check=False, text=True, env=dict(os.environ, **env),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-1500:]


def capture(what, folder):
    if what[0] == 'faults':
        sim('faults', '-k', what[1], '-s', what[2], SIM_FAULTS=folder)
    else:
        sim(what[0], '-k', what[1], '-w', os.path.join(folder, 'x.pcapng'))


def plain(line):
    """What of a line of output does not depend on the day."""
    line = re.sub(r'\b[0-9a-f]{16}\b', 'ID', line)
    line = re.sub(r'0x[0-9a-f]+|\d+(\.\d+)?', 'N', line)
    line = re.sub(r'N (us|ms|s)\b', 'N T', line)
    line = re.sub(r'by (timeout|acknowledgements)', 'by X', line)
    line = re.sub(r'[.=R]{20,}', 'BAR', line)
    return re.sub(r'\s+', ' ', line.replace('frames', 'frame')).strip()


def stories():
    """(first line, captures, commands with their lines) of each block of the page."""
    with open(PAGE, encoding='utf-8') as f:
        lines = f.read().split('\n')
    found, what = [], None
    for number, line in enumerate(lines):
        if line.startswith('<!-- capture: '):
            what = line.split()[2:-1]
            found.append((what, []))
        elif line.startswith('    $ '):
            found[-1][1].append((line[6:].split(), []))
        elif line.startswith('    ') and found and found[-1][1]:
            found[-1][1][-1][1].append((number, line[4:]))
    return lines, found


def shown(command, folder):
    assert command[0] == 'weft-dump', command
    done = subprocess.run([os.path.join(BUILD, 'app', 'weft-dump'), *command[1:]], cwd=folder,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode in (0, 4), done.stdout[-1500:]
    return done.stdout.split('\n')


def run(what, commands, page):
    """Every line of the page stands in the output, in this order; the page gets what is there."""
    with tempfile.TemporaryDirectory(prefix='weft-debugging.') as folder:
        capture(what, folder)
        for command, lines in commands:
            output = iter(shown(command, folder))
            for number, line in lines:
                if line == '...':
                    continue
                real = next((o for o in output if plain(o) == plain(line)), None)
                assert real is not None, '%s: no line as\n%s' % (' '.join(command), line)
                page[number] = '    ' + real


def story(what, commands, page):
    def check():
        run(what, commands, page)

    check.__name__ = ' '.join(what)
    return check


PAGE_LINES, STORIES = stories()
assert len(STORIES) == 6
if len(sys.argv) > 2:
    for one in STORIES:
        run(*one, PAGE_LINES)
    with open(PAGE, 'w', encoding='utf-8') as out:
        out.write('\n'.join(PAGE_LINES))
else:
    tap.run([story(*one, PAGE_LINES) for one in STORIES])
