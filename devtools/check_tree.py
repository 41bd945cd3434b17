# SPDX-License-Identifier: BSD-3-Clause
"""Functions of the checks of the sources: the files of the tree, the file of an include, the
symbols that an object defines and uses, and lists of exceptions."""

import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The folders in which an include FOLDER/FILE.h is searched, as in the build.
INCLUDE_PATH = ('lib', 'drivers', 'drivers/dpdk', 'app', '')


def files(root, *suffixes):
    """Paths of the tree's files: those of git, or all files where there is no git."""
    try:
        out = subprocess.run(['git', '-C', root, 'ls-files', '-co', '--exclude-standard'],
                             capture_output=True,
                             text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        out = [os.path.relpath(os.path.join(where, name), root)
               for where, _, names in os.walk(root) for name in names]
    return sorted(p for p in set(out) if p.endswith(suffixes)
                  and os.path.isfile(os.path.join(root, p)))


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as f:
        return f.read()


def resolve(root, path, name):
    """The tree's file for #include "name" in this file, or None: a generated header, or a header of
    the system."""
    for folder in (os.path.dirname(path), *INCLUDE_PATH):
        found = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(os.path.join(root, found)):
            return found
    return None


def includes(root, path):
    """(line, name, file) of each include of a file of the tree."""
    for line, text in enumerate(read(root, path).split('\n'), 1):
        m = re.match(r'\s*#\s*include\s+"([^"]+)"', text)
        found = resolve(root, path, m.group(1)) if m else None
        if found:
            yield line, m.group(1), found


class Objects:
    """Symbols of a build's objects, by source. A source that several targets compile counts once,
    as the library has it."""

    def __init__(self, root, build):
        with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as f:
            commands = json.load(f)
        self.sources = {}  # object -> source
        seen = set()
        for entry in sorted(commands, key=lambda e: (not e['output'].startswith('libweft'),
                                                     e['output'].startswith('test/'))):
            source = os.path.relpath(os.path.join(entry['directory'], entry['file']), root)
            output = os.path.join(entry['directory'], entry['output'])
            if os.path.exists(output) and source not in seen:
                self.sources[output] = source
                seen.add(source)
        self.defined = {}  # source -> names of external symbols
        self.wanted = {}   # source -> undefined names
        self._read()

    def _read(self):
        if not self.sources:
            return
        out = subprocess.run(['nm', '-P', *self.sources], capture_output=True, text=True,
                             check=True).stdout
        source = None
        for row in out.splitlines():
            if row.endswith(':'):
                source = self.sources[row[:-1]]
                self.defined.setdefault(source, set())
                self.wanted.setdefault(source, set())
                continue
            word = row.split()
            if len(self.sources) == 1 and source is None:
                source = next(iter(self.sources.values()))
                self.defined[source], self.wanted[source] = set(), set()
            if len(word) > 1 and word[1] in 'Uw':
                self.wanted[source].add(word[0])
            elif len(word) > 1 and word[1] in 'TDBRVWC':
                self.defined[source].add(word[0])

    def uses(self, of):
        """(user, symbol, definer) among sources for which of() is true."""
        home = {name: source for source, names in self.defined.items() if of(source)
                for name in names}
        for source in sorted(self.wanted):
            if of(source):
                for name in sorted(self.wanted[source]):
                    if name in home and home[name] != source:
                        yield source, name, home[name]


class Exceptions:
    """A frozen list, one key a line, with its reason behind " -- " where one is wanted: it only
    gets shorter. What it lists is let through; what it lists and what is not found any more is an
    error."""

    def __init__(self, path, reasons=False):
        self.path = path
        self.left = set()
        self.used = set()
        if not os.path.exists(path):
            return
        with open(path, encoding='utf-8') as f:
            lines = [line.strip() for line in f if line.strip() and not line.startswith('#')]
        for line in lines:
            key, _, reason = line.partition(' -- ')
            if reasons and not reason:
                die('%s gives no reason for %s' % (os.path.basename(path), key))
            self.left.add(key)

    def allows(self, key):
        if key in self.left:
            self.used.add(key)
        return key in self.left

    def stale(self):
        return sorted(self.left - self.used)


def report(findings, exceptions, what):
    """findings: (key, sentence). Prints those without exception, and exceptions without finding;
    the exit code."""
    bad = 0
    for key, sentence in findings:
        if not exceptions.allows(key):
            print(sentence)
            bad += 1
    stale = exceptions.stale()
    for key in stale:
        print('%s: no longer needed, take it out: %s' % (os.path.basename(exceptions.path), key))
    print('%s, %d exceptions, %d wrong' % (what, len(exceptions.used), bad + len(stale)))
    return 1 if bad or stale else 0


def die(text):
    sys.exit('%s: %s' % (os.path.basename(sys.argv[0]), text))
