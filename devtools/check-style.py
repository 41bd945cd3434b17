#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check-style.py [--root DIR] [--list]: one dialect. The rules that clang-format does not check:

- every file names its licence in one of its first lines
- lines of at most 100 columns (a tab goes to the next column that is a multiple of 8): code,
  comments, scripts, build files, Markdown. Tables, blocks of code and links of Markdown cannot be
  broken, nor can a single word, or one that a script quotes
- no blank at the end of a line, no empty line at the end of a file, a newline there
- C: comments are /* */; conditions test pointers by p and !p; functions have at most 60 lines;
  structs have no typedef; headers have a guard that ends with its name; static_assert(); no
  function that writes without a bound; no .c file declares another file's functions
- files and functions that comments of C name exist
- the first comment of a folder's header is its map: each .c file of the folder is in the left
  column of an indented list there, as FILE.c, FOLDER/FILE.c or FILE
- threads of the product are started by lib/base/thread.c alone
- no marks for unfinished work

devtools/style.exceptions has the exceptions; it is empty.
"""

import argparse
import os
import re
import sys

import check_tree

COLUMNS = 100
FUNCTION = 60
LICENCE = 'SPDX-License-Identifier: BSD-3-Clause'

TEXT = ('.c', '.h', '.py', '.sh', '.md', 'meson.build', 'meson_options.txt', '.cross', '.ini',
        '.map', '.in', 'Makefile',
        'run')
NO_LICENCE = re.compile(r'(^|/)(LICENSE|corpus/.*)$|^debian/(changelog|copyright|source/format)$|'
                        r'\.(md|svg|png|bin|pcapng|csv|layout)$')

# Tables, blocks of code, links; titles of tables and the line below them are measured and printed.
MARKDOWN = re.compile(r'^ *\||^    |\]\(|^\*\*.*\*\*$|^20\d\d-\d\d-\d\d \d\d:\d\d, Weft ')

# One quoted word of a script, with the command before it and the operator behind it.
QUOTED = re.compile(r'''\s*(?:[\w-]+ )*(?:"[^"]*"|'[^']*')(?: ?(?:&&|\|\||;;|\\|\]|\)))*''')

UNBOUNDED = re.compile(r'\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|alloca|atoi|atol)\(')
TYPEDEF_OF_STRUCT = re.compile(r'^typedef (struct|union|enum)\b[^;(]*[{;]')
# Integers in the byte order of the wire are structs that are passed as integers are.
TYPEDEFS = ('lib/base/bytes.h',)
# Where the product's threads are started.
THREADS = 'lib/base/thread.c'
# Files of the kernel that comments name, and of an installation.
OTHERS = ('include/linux/sched.h', 'mm/userfaultfd.c', 'weft/lane.h')
# By the system, and in the table of drivers.
DECLARED = ('environ', 'weft_dpdk_driver', 'weft_roce_driver', 'weft_roce_ud_driver',
            'weft_udp_driver')

# Folders of sources that have a map, and those of them whose header is not FOLDER/FOLDER.h. The
# others are collections of small units, or have one file.
MAPPED = re.compile(r'(lib/(?!base/|core/)\w+|drivers/dpdk(/\w+)+|drivers/roce|provider)/[^/]+\.c$')


def width(line):
    return len(line.expandtabs(8))


def breakable(line):
    """Whether the line has more than one word after its indentation and marks."""
    return len(line.strip(' \t*#/-').split()) > 1


def check_lines(path, text):
    fence = False
    for number, line in enumerate(text.split('\n'), 1):
        at = '%s:%d: ' % (path, number)
        if line.rstrip() != line:
            yield 'blank %s' % path, at + 'blanks at the end of the line'
        if path.endswith('.md'):
            fence ^= line.startswith('```')
            if fence or MARKDOWN.search(line):
                continue
        if path.endswith('.sh') and QUOTED.fullmatch(line):
            continue
        if width(line) > COLUMNS and breakable(line):
            yield 'columns %s' % path, at + '%d columns, of at most %d' % (width(line), COLUMNS)
    if text and (not text.endswith('\n') or text.endswith('\n\n')):
        yield 'end %s' % path, '%s: a file ends with one newline' % path


def blanked(text):
    """The code without comments and quoted text; line ends stay."""
    def keep(m):
        if m.group()[0] == '"':
            return '""'
        return re.sub(r'[^\n]', ' ', m.group())
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', keep, text, flags=re.S)


def conditions(code):
    """(line, text) of the conditions of if () and while ()."""
    for m in re.finditer(r'\b(?:if|while) \(', code):
        depth, at = 1, m.end()
        while depth and at < len(code):
            depth += {'(': 1, ')': -1}.get(code[at], 0)
            at += 1
        yield code.count('\n', 0, m.start()) + 1, code[m.end():at]


def functions(code):
    """(first line, name, lines between the braces)"""
    begin, head = None, ''
    for number, line in enumerate(code.split('\n'), 1):
        if line == '{':
            begin = number
        elif line == '}' and begin:
            name = re.findall(r'(\w+)\(', head)
            yield begin, name[0] if name else '', number - begin - 1
            begin, head = None, ''
        elif begin is None:
            head = head + line if line.startswith(('\t', ' ')) else line


def check_c(path, text):
    code = blanked(text)
    product = path.startswith(('lib/', 'drivers/', 'app/', 'provider/'))
    for line, condition in conditions(code):
        if re.search(r'== NULL\b', condition):
            yield 'null %s' % path, '%s:%d: a condition tests a pointer by !p' % (path, line)
    for line, name, length in functions(code):
        if length > FUNCTION:
            yield 'function %s %s' % (path, name), '%s:%d: %s() has %d lines, of at most %d' % (
                path, line, name, length, FUNCTION)
    for number, line in enumerate(code.split('\n'), 1):
        at = '%s:%d: ' % (path, number)
        if '//' in line:
            yield 'comment %s' % path, at + 'comments are /* */'
        if '_Static_assert' in line:
            yield 'assert %s' % path, at + 'static_assert() of assert.h'
        if TYPEDEF_OF_STRUCT.match(line) and path not in TYPEDEFS:
            yield 'typedef %s' % path, at + 'structs have no typedef'
        m = UNBOUNDED.search(line)
        if m and product:
            yield 'unbounded %s' % path, at + '%s() knows no bound' % m.group(1)
        if product and 'pthread_create(' in line and path != THREADS:
            yield 'thread %s' % path, at + 'threads are started by weft_thread_start()'
        m = re.match(r'extern .*?(\w+)(?:\[\w*\])?(?: __attribute__.*|\(.*)?;', line)
        if m and product and path.endswith('.c') and m.group(1) not in DECLARED:
            yield 'extern %s' % path, at + 'a header declares %s' % m.group(1)
    if path.endswith('.h'):
        guard = re.search(r'^#ifndef (\w+_H)\n#define \1\n', text, re.M)
        if not guard or not text.rstrip().endswith('#endif /* %s */' % guard.group(1)):
            yield 'guard %s' % path, '%s: no guard #ifndef NAME_H ... #endif /* NAME_H */' % path


def check_names(root, paths):
    """Files, and functions of the library, that comments name."""
    texts = {p: check_tree.read(root, p) for p in paths if p.endswith(('.c', '.h'))}
    ends = {p.split('/', n)[-1] for p in paths for n in range(p.count('/') + 1)}
    words = set()
    for text in texts.values():
        words.update(re.findall(r'\w+', blanked(text)))
    for path, text in texts.items():
        for m in re.finditer(r'/\*.*?\*/', text, re.S):
            at = '%s:%d: ' % (path, text.count('\n', 0, m.start()) + 1)
            for name in re.findall(r'(?<![\w/.*])(?:[\w-]+/)*[\w-]+\.[ch]\b', m.group()):
                if name not in ends and name not in OTHERS:
                    yield 'name %s %s' % (path, name), at + 'there is no file %s' % name
            for name in re.findall(r'\b((?:weft|raw|roce)_\w+)\(\)', m.group()):
                if name not in words:
                    yield 'name %s %s' % (path, name), at + 'there is no function %s()' % name


def listed(text):
    """Names in the left column of the lists that a header's first comment has."""
    about = re.search(r'/\*\*\n.*?\*/', text, re.S)
    for line in about.group().split('\n') if about else ():
        m = re.match(r' \*(?:\t|  )\s*([\w./]+(?:, ?[\w./]+)*),?(?:\s{2,}|\t|$)', line)
        for name in re.findall(r'[\w./]+', m.group(1)) if m else ():
            yield name.split('/')[-1]


def check_maps(root, paths):
    """Every source of a folder is named in the folder's header."""
    maps = {}
    for path in filter(MAPPED.match, paths):
        where, name = os.path.split(path)
        header = '%s/%s.h' % (where, os.path.basename(where))
        if header not in maps:
            maps[header] = set(listed(check_tree.read(root, header) if header in paths else ''))
        if not maps[header] & {name, name[:-2]}:
            yield 'map %s' % path, '%s: the first comment of %s does not list it' % (path, header)


def check_file(path, text):
    if not NO_LICENCE.search(path) and LICENCE not in '\n'.join(text.split('\n')[:3]):
        yield 'licence %s' % path, '%s: its first lines do not contain %s' % (path, LICENCE)
    if path.endswith(TEXT):
        yield from check_lines(path, text)
        for number, line in enumerate(text.split('\n'), 1):
            if re.search(r'\b(TODO|FIXME|XXX)\b[: ]', line):
                yield 'undone %s' % path, '%s:%d: something is not done' % (path, number)
    if path.endswith(('.c', '.h')):
        yield from check_c(path, text)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--root', default=check_tree.HERE)
    p.add_argument('--list', action='store_true')
    o = p.parse_args()

    findings, files = [], check_tree.files(o.root, '')
    for path in files:
        if path.endswith(TEXT) or not NO_LICENCE.search(path):
            findings += check_file(path, check_tree.read(o.root, path))
    findings += check_names(o.root, files)
    findings += check_maps(o.root, files)
    if o.list:
        for key in sorted({key for key, _ in findings}):
            print(key)
        return 0
    listed = os.path.join(o.root, 'devtools', 'style.exceptions')
    return check_tree.report(findings, check_tree.Exceptions(listed),
                             '%d files' % len(files))


if __name__ == '__main__':
    sys.exit(main())
