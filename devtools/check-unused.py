#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check-unused.py [--root DIR] --build DIR [--list]: each external symbol of lib/, drivers/ and
app/ must be used by another object of the library or of a program; otherwise it must be static, or
be removed. Each static inline function, macro and declaration of a function must be named somewhere
else. devtools/unused.exceptions has the symbols that only tests use, each with its reason."""

import argparse
import os
import re
import sys

import check_tree

PARTS = ('lib/', 'drivers/', 'app/', 'provider/')
PUBLIC = ('lib/weft.h', 'lib/weft_listen.h', 'lib/weft_msg.h', 'lib/weft_plan.h',
          'lib/weft_rma.h', 'lib/weft_version.h', 'lib/lane.h')


def public(root):
    text = ''.join(check_tree.read(root, p) for p in PUBLIC
                   if os.path.exists(os.path.join(root, p)))
    return set(re.findall(r'\bweft_\w+(?=\()', text))


def check_symbols(root, build):
    objects = check_tree.Objects(root, build)
    # libfabric calls the provider's, Wireshark the plugin's; sys/sdt.h defines the last one
    api = public(root) | {'main', 'fi_prov_ini', 'plugin_register', 'plugin_describe',
                          'plugin_version', 'plugin_want_major', 'plugin_want_minor',
                          '_.stapsdt.base'}
    own = [s for s in objects.defined if s.startswith(PARTS)]
    by_product = set().union(*(names for source, names in objects.wanted.items()
                               if source.startswith(PARTS)))
    by_tests = set()  # by their sources, since not every build has their objects
    for path in check_tree.files(root, '.c', '.h'):
        if not path.startswith(PARTS):
            by_tests.update(re.findall(r'\w+', check_tree.read(root, path)))
    for source in sorted(own):
        for name in sorted(objects.defined[source] - by_product - api):
            if name in by_tests:
                yield 'tests %s %s' % (source, name), '%s: tests alone use %s' % (source, name)
            else:
                yield 'unused %s %s' % (source, name), \
                    '%s: no other object uses %s' % (source, name)


def words(root):
    """Word -> number of its occurrences in all sources."""
    count = {}
    for path in check_tree.files(root, '.c', '.h'):
        text = re.sub(r'/\*.*?\*/', '', check_tree.read(root, path), flags=re.S)
        for word in re.findall(r'\w+', text):
            count[word] = count.get(word, 0) + 1
    return count


def check_headers(root):
    count = words(root)
    for path in check_tree.files(root, '.h'):
        if not path.startswith(PARTS) or path in PUBLIC:
            continue
        text = check_tree.read(root, path)
        guard = re.search(r'^#ifndef (\w+)\n#define \1\b', text, re.M)
        names = re.findall(r'^static inline [\w \n*]*?(\w+)\(', text, re.M)
        names += [n for n in re.findall(r'^\s*#\s*define (\w+)', text, re.M) if not guard
                  or n != guard.group(1)]
        text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
        names += re.findall(r'^(?!static|#|\s|\})[\w \n*]*?\b(\w+)\([^;{]*\);', text, re.M)
        for name in sorted(set(names)):
            if count.get(name, 0) < 2:
                yield 'unused %s %s' % (path, name), '%s: %s is used nowhere' % (path, name)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--root', default=check_tree.HERE)
    p.add_argument('--build', required=True)
    p.add_argument('--list', action='store_true')
    o = p.parse_args()

    findings = list(check_symbols(o.root, o.build)) + list(check_headers(o.root))
    if o.list:
        for key, _ in findings:
            print(key)
        return 0
    listed = os.path.join(o.root, 'devtools', 'unused.exceptions')
    return check_tree.report(findings, check_tree.Exceptions(listed, True),
                             'external names')


if __name__ == '__main__':
    sys.exit(main())
