#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check-headers.py [--root DIR] --build DIR: each header of lib/, drivers/, app/ and test/ compiles
alone, so that a file that includes it need not include others before. Each is compiled as the build
compiles a source of its folder, except for headers that a source of the build includes first: the
build has compiled them alone.

A header declares what the source of its own name defines. At most 5 % of the prototypes in headers
that are not installed may be of functions that another source defines."""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

import check_tree

PARTS = ('lib/', 'drivers/', 'app/', 'test/')
ELSEWHERE_MOST = 0.05
# A comment, or a prototype: it begins at the start of a line, and ends before any body or macro.
PROTOTYPE = re.compile(r'/\*.*?\*/|^(?!typedef|static|return)[A-Za-z_][\w \t*]*[ *\n]\**(\w+)\s*'
                       r'\([^;{}#]*\)[^;{}()#]*;', re.S | re.M)
FIRST = re.compile(r'(?:\s|/\*.*?\*/)*#include "([^"]+)"', re.S)


def first(root, source, words):
    """The header that this source includes first, or None."""
    named = FIRST.match(check_tree.read(root, source)) if source.endswith('.c') else None
    if not named or any(w.endswith('pch.h') for w in words):
        return None
    return check_tree.resolve(root, source, named.group(1))


def flags(root, build):
    """Folder -> (working directory, include path, standard and definitions) of a source there in
    the build; and the headers that are the first of one."""
    found = {}
    before_all = set()
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as f:
        commands = json.load(f)
    for entry in commands:
        source = os.path.relpath(os.path.join(entry['directory'], entry['file']), root)
        words = shlex.split(entry['command'])
        keep = []
        for word, after in zip(words, words[1:]):
            if word in ('-include', '-imacros', '-isystem'):
                keep += [word, after]
            elif word.startswith(('-I', '-D', '-std=', '-m', '-isystem', '-W')):
                keep.append(word)
        found.setdefault(os.path.dirname(source), (entry['directory'], keep))
        if os.path.isfile(os.path.join(root, source)):
            before_all.add(first(root, source, keep))
    return found, before_all


def above(folder):
    while folder:
        yield folder
        folder = os.path.dirname(folder)


def compiles(root, header, where, words):
    """None, or the errors of the compiler."""
    path = os.path.abspath(os.path.join(root, header))
    done = subprocess.run(['cc', *words, '-fsyntax-only', '-x', 'c', '-include', path, '/dev/null'],
                          cwd=where, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else None


def stem(path):
    return os.path.splitext(os.path.basename(path))[0]


def elsewhere(root, build, headers):
    """(number of prototypes, [(header, function, defining source)] of those declared elsewhere)."""
    home = {name: source
            for source, names in check_tree.Objects(root, build).defined.items()
            if not source.startswith('test/') for name in names}
    number, away = 0, []
    for header in headers:
        for m in PROTOTYPE.finditer(check_tree.read(root, header)):
            source = home.get(m.group(1))
            if source:
                number += 1
                if stem(source) != stem(header):
                    away.append((header, m.group(1), source))
    return number, away


def installed(root):
    """The headers that meson.build files install: an interface has one header for many sources."""
    text = ' '.join(check_tree.read(root, f) for f in check_tree.files(root, 'meson.build'))
    names = re.findall(r'(?:install_headers|public_headers \+= files)\(([^)]*)\)', text)
    return {os.path.basename(n) for part in names for n in re.findall(r"'([^']+\.h)'", part)}


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--root', default=check_tree.HERE)
    p.add_argument('--build', required=True)
    o = p.parse_args()

    by_folder, before_all = flags(o.root, o.build)
    headers = [h for h in check_tree.files(o.root, '.h') if h.startswith(PARTS)]
    if not headers:
        check_tree.die('%s has no headers' % o.root)
    # A build may leave drivers, programs and tests out.
    jobs = {h: next((by_folder[f] for f in above(os.path.dirname(h)) if f in by_folder), None)
            for h in headers}
    built = [h for h in headers if jobs[h] and h not in before_all]
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for header, said in zip(built, pool.map(lambda h: compiles(o.root, h, *jobs[h]), built)):
            if said:
                print('%s does not compile alone:\n%s' % (header, said))
                bad += 1
    own = [h for h in headers if not h.startswith('test/')
           and os.path.basename(h) not in installed(o.root)]
    number, away = elsewhere(o.root, o.build, own)
    if len(away) > ELSEWHERE_MOST * number:
        for row in away:
            print('%s declares %s(), which %s defines' % row)
        bad += 1
    print('%d prototypes, %d of functions that a source of another name defines'
          % (number, len(away)))
    print('%d headers, %d first in a source, %d of folders that are not built, %d wrong'
          % (len(headers), len(before_all & set(headers)), list(jobs.values()).count(None), bad))
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
