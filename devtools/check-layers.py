#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check-layers.py [--root DIR] [--build DIR] [--list]: checks that the tree is laid out in layers.

Includes of the sources, and symbols of a build's objects, must run down the lists below. (A
function may be declared below and defined above, which no include shows.) These lists are the only
place that defines the order of the folders. Inside a folder circles of files, and of units,
must be small, and so must files. devtools/layers.exceptions has the exceptions; it only gets
shorter.

    --build DIR   also check the objects of this build
    --list        print violations as lines for the list of exceptions
"""

import argparse
import os
import re
import sys

import check_tree

# From below to above; folders of one line do not use each other. A subfolder that is not listed is
# a part of its listed folder.
LIB = [
    ['lib/base'],                       # uses no object of the library
    ['lib/core'],                       # configuration, wire formats, structs that all share
    ['lib/mem', 'lib/proto'],           # registrations; which protocol for which size
    ['lib/msg'],                        # requests, send queue, credit, flush, eager
    ['lib/rndv'],                       # data that is pulled
    ['lib/tag', 'lib/am', 'lib/rma'],   # the operations that programs call
    ['lib/wireup'],                     # connections
    ['lib/plan'],                       # the tables of weft-info; nothing else needs it
    ['lib'],                            # the top: context, worker, tables
]
DPDK = [
    # bytes in, bytes out, and the interface of a port; keys, and sealing of frames
    ['drivers/dpdk/frame', 'drivers/dpdk/seal'],
    ['drivers/dpdk/capture'],  # frames into files
    # ports of DPDK; a lane: connections, reliability; ports over sockets
    ['drivers/dpdk/port', 'drivers/dpdk/engine', 'drivers/dpdk/udp'],
    ['drivers/dpdk/memif'],  # ports over memif rings of Weft's own; claims by port/
    ['drivers/dpdk'],        # the driver's table
]
PROGRAMS = [
    ['app/common', 'app/link'],         # app/link: a bad link, for weft-wire and the simulator
    ['app/cat', 'app/dump', 'app/farewell', 'app/info', 'app/perf', 'app/switch',
     'app/wire'],
]
STACKS = [LIB, DPDK, PROGRAMS, [['drivers/self']], [['drivers/shm']], [['drivers/roce']],
          [['provider']]]

# Folders and files of other stacks that a stack may include.
API = ['lib/weft.h', 'lib/weft_listen.h', 'lib/weft_msg.h', 'lib/weft_plan.h', 'lib/weft_rma.h',
       'lib/weft_version.h']
LANE = ['lib/lane.h', 'lib/lane_attr.h', 'lib/lane_tap.h']
DRIVER = ['lib/weft.h', 'lib/base'] + LANE
SEES = {
    # the table of drivers
    'lib': ['drivers/self/self_lane.h', 'drivers/shm/shm_lane.h', 'drivers/self', 'drivers/shm',
            'drivers/dpdk', 'drivers/dpdk/capture', 'drivers/dpdk/seal/exchange.c',
            'drivers/roce'],
    'drivers/self': DRIVER,
    'drivers/roce': DRIVER,
    'drivers/shm': DRIVER,
    'drivers/dpdk': DRIVER,
    'drivers/dpdk/frame': DRIVER,
    'drivers/dpdk/seal': DRIVER,
    'drivers/dpdk/port': DRIVER,
    'drivers/dpdk/capture': DRIVER,
    'drivers/dpdk/engine': DRIVER,
    'drivers/dpdk/udp': DRIVER,
    'drivers/dpdk/memif': DRIVER,
    # as a program: the public interface, threads, TCP and the hash table
    'provider': API + ['lib/base/container.c', 'lib/base/container.h', 'lib/base/thread.c',
                       'lib/base/thread.h', 'lib/base/tcp.c', 'lib/base/tcp.h',
                       'lib/base/secret.c', 'lib/base/secret.h'],
}
# Seen from everywhere in its stack.
COMMON = API + LANE + ['drivers/dpdk/compat.h']

# Other folders include FOLDER/FOLDER.h only, but here: one purpose, one header.
MANY_HEADERS = ['lib/base', 'lib/core', 'drivers/dpdk/frame', 'drivers/dpdk/port',
                'drivers/dpdk/capture', 'drivers/dpdk/seal', 'app/common', 'app/link']

# Headers without a source of the same name that belong to the objects which programs share with the
# library.
# lane_opts.h: the limits of options. frame.h, wire.h, bytes.h: what is on the wire.
SHARED_HEADERS = ['drivers/dpdk/compat.h', 'drivers/dpdk/frame/farewell.h',
                  'drivers/dpdk/frame/frame.h', 'drivers/dpdk/frame/frame_port.h',
                  'drivers/dpdk/port/lane_opts.h',
                  'lib/base/bytes.h', 'lib/core/wire.h', 'lib/lane_tap.h']

CIRCLE = 7    # files that need each other, inside a folder
# Units that need each other: a unit is a source with its header, and also needs what it includes.
# The other folders have CIRCLE. A limit only falls: one that is too high is a finding.
UNITS = {'app/perf': 2, 'drivers/dpdk/engine': 4, 'drivers/dpdk/port': 3, 'drivers/roce': 3,
         'drivers/shm': 2, 'lib/msg': 5, 'lib/wireup': 5, 'provider': 3}
LENGTH = 800  # lines of a file

PARTS = ('lib/', 'drivers/', 'app/', 'provider/')
RANK = {name: (stack, rank) for stack in range(len(STACKS))
        for rank, line in enumerate(STACKS[stack]) for name in line}


def folder(path):
    """The listed folder that a file belongs to, or None."""
    where = os.path.dirname(path)
    while where and where not in RANK:
        where = os.path.dirname(where)
    return where if where in RANK else None


def seen(path, other):
    """Whether this file may use that one."""
    a, b = folder(path), folder(other)
    if a == b:
        return True
    if RANK[a][0] == RANK[b][0] and (RANK[b][1] < RANK[a][1] or other in COMMON):
        return True
    return other in SEES.get(a, []) or b in SEES.get(a, [])


def shared_objects(root):
    """Program or '' for all -> sources and headers of the library that app/meson.build links into
    programs."""
    try:
        text = check_tree.read(root, 'app/meson.build')
    except OSError:
        return {}
    names = {m.group(1): m.group(2) for m in re.finditer(r'^(\w+) = (\[[^\]]*\])', text, re.M)}
    table = re.search(r'^app_shared = \{(.*?)^\}', text, re.M | re.S)
    shared = {}
    part = r"(?:\w+|\[[^\]]*\])"
    for m in re.finditer(r"'([\w-]*)': (%s(?: \+ %s)*)" % (part, part),
                         table.group(1) if table else ''):
        text = re.sub(r'(?<!\S)\w+(?!\S)', lambda n: names.get(n.group(0), ''), m.group(2))
        sources = re.findall(r"'([^']+)'", text)
        shared[m.group(1)] = set(sources) | {s[:-2] + '.h' for s in sources} | set(SHARED_HEADERS)
    return shared


def program_sees(shared, path, other):
    folder = path.split('/')[1]
    # The linker takes files of app/common only into programs that use them.
    if folder == 'common' and any(other in files for files in shared.values()):
        return True
    name = 'weft-' + folder
    return other in API or other in shared.get('', ()) or other in shared.get(name, ())


def door(name):
    """The header of a folder that others include."""
    return '%s/%s.h' % (name, os.path.basename(name))


def open_to_others(a, b, header):
    """Whether folder a may include this header of folder b."""
    return header in COMMON or b in MANY_HEADERS or header in SEES.get(a, []) or header == door(b)


def check_includes(root, sources, shared):
    for path in sources:
        a = folder(path)
        if a is None:
            yield 'folder %s' % path, '%s: its folder is in no list of check-layers.py' % path
            continue
        for line, name, other in check_tree.includes(root, path):
            b = folder(other)
            key = 'include %s %s' % (path, other)
            at = '%s:%d: ' % (path, line)
            if b is None:
                yield key, at + 'includes %s, which is outside of all layers' % other
            elif path.startswith('app/') and not other.startswith('app/'):
                if not program_sees(shared, path, other):
                    yield key, at + '%s is neither public nor of the objects that ' \
                        'app/meson.build shares' % other
            elif not seen(path, other):
                yield key, at + '%s/ may not see %s' % (a, other)
            elif a != b and not open_to_others(a, b, other):
                yield 'header %s %s' % (path, other), at + \
                    "%s is %s/'s own; others include %s" % (other, b, door(b))
            if '/' not in name and os.path.dirname(path) == os.path.dirname(other) and \
                    a not in ('lib', 'drivers/dpdk') and os.path.dirname(a) != 'drivers':
                yield 'written %s %s' % (path, name), at + 'includes are written FOLDER/FILE.h'


def check_symbols(root, build, sources):
    if not os.path.exists(os.path.join(build, 'compile_commands.json')):
        check_tree.die('%s is no build folder' % build)
    objects = check_tree.Objects(root, build)
    own = {s for s in sources if s.endswith('.c') and folder(s)}
    # A build may leave drivers and programs out.
    absent = sorted(s for s in own if s.startswith('lib/') and s not in objects.defined)
    if absent:
        check_tree.die('%s is not built in %s' % (absent[0], build))
    found, edges = {}, {}
    for user, name, other in objects.uses(
            lambda s: s in own and not s.startswith(('app/', 'provider/'))):
        if folder(user) == folder(other):
            edges.setdefault(user, set()).add(other)
        elif not seen(user, other):
            found.setdefault((user, other), []).append(name)
    for (user, other), names in sorted(found.items()):
        yield 'symbol %s %s' % (user, other), '%s: %s/ may not use %s of %s' % (
            user, folder(user), ', '.join(names), other)
    for user, _, other in objects.uses(
            lambda s: s in own and s.startswith(('app/', 'provider/'))):
        if folder(user) == folder(other):
            edges.setdefault(user, set()).add(other)
        elif not seen(user, other):
            yield 'symbol %s %s' % (user, other), '%s: %s/ may not use %s' % (
                user, folder(user), other)
    for circle in circles(edges):
        if len(circle) > CIRCLE:
            where = folder(circle[0])
            yield 'circle %s' % where, '%s/: a circle of %d files, of at most %d: %s' % (
                where, len(circle), CIRCLE, ' '.join(os.path.relpath(c, where) for c in circle))
    yield from check_units(root, sources, edges)


def unit(path):
    return os.path.splitext(path)[0]


def check_units(root, sources, edges):
    """Circles of units, by includes and by the calls in @edges of sources."""
    needs = {}
    for user, others in edges.items():
        needs.setdefault(unit(user), set()).update(unit(o) for o in others)
    for path in sources:
        for _, _, other in check_tree.includes(root, path):
            if folder(other) and folder(other) == folder(path):
                needs.setdefault(unit(path), set()).add(unit(other))
    for name in needs:
        needs[name].discard(name)
    largest = {}
    for circle in circles(needs):
        where = folder(circle[0] + '.c')
        if len(circle) > len(largest.get(where, ())):
            largest[where] = circle
    for where, circle in sorted(largest.items()):
        most = UNITS.get(where, CIRCLE)
        if len(circle) > most:
            yield 'units %s' % where, '%s/: a circle of %d units, of at most %d: %s' % (
                where, len(circle), most, ' '.join(os.path.relpath(c, where) for c in circle))
    for where, most in UNITS.items():
        if root == check_tree.HERE and len(largest.get(where, ())) < most:
            yield 'units %s' % where, '%s/: its largest circle has %d units: lower UNITS' % (
                where, len(largest.get(where, ())))


def circles(edges):
    """Strongly connected components with more than one file (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(edges.get(v, ())):
            if w not in index:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == index[v]:
            at = stack.index(v)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for v in sorted(edges):
        if v not in index:
            visit(v)
    return found


def check_lengths(root):
    for path in check_tree.files(root, '.c', '.h', '.py', '.sh'):
        lines = check_tree.read(root, path).count('\n')
        if lines > LENGTH:
            yield 'length %s' % path, '%s: %d lines, of at most %d' % (path, lines, LENGTH)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--root', default=check_tree.HERE)
    p.add_argument('--build')
    p.add_argument('--list', action='store_true')
    o = p.parse_args()

    sources = [s for s in check_tree.files(o.root, '.c', '.h') if s.startswith(PARTS)]
    if not sources:
        check_tree.die('%s has no sources in %s' % (o.root, ', '.join(PARTS)))
    findings = list(check_includes(o.root, sources, shared_objects(o.root)))
    findings += check_lengths(o.root)
    if o.build:
        findings += check_symbols(o.root, o.build, sources)
    if o.list:
        for key in sorted({key for key, _ in findings}):
            print(key)
        return 0
    exceptions = check_tree.Exceptions(os.path.join(o.root, 'devtools', 'layers.exceptions'))
    if not o.build:  # what needs objects to be found
        exceptions.left = {k for k in exceptions.left
                           if not k.startswith(('symbol ', 'circle ', 'units '))}
    return check_tree.report(findings, exceptions, '%d files' % len(sources))


if __name__ == '__main__':
    sys.exit(main())
