#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check-behaviours.py [--write]: the tables of doc/behaviours.md, from the tags in the tests.

A tag is a comment of its own, right above a test of a C file, a function of a Python file or a
check "..." of a shell script. A guest's case, which is a file, has its tags anywhere:

    /* @behaviour U5: two senders, two wildcard receives: each gets one whole message */
    /* @behaviour U3, U12 */

An item has one tag with a sentence, and any number without. Several tags may be in one comment, a
line each. A sentence that ends with "; does not apply: REASON" needs no test below it.

The document has places for ranges of items: <!-- behaviours: A1-A15, B1-B10 --> up to <!-- end
behaviours -->. An error is a place that differs from the tags, an item without a tag or without a
sentence, a tag without a test, and a test that never runs. --write rewrites the places.
"""

import argparse
import os
import re
import sys

import check_tree

PAGE = os.path.join('doc', 'behaviours.md')
# The lists by which the project is measured.
WANTED = ['U%d' % n for n in range(1, 92)]
for letter, last in (('A', 15), ('B', 10), ('C', 9), ('D', 8), ('E', 9), ('F', 10), ('G', 5),
                     ('S', 19), ('T', 44)):
    WANTED += ['%s%d' % (letter, n) for n in range(1, last + 1)]

ITEM = r'[A-Z]\d+[a-z]?'
TAG = re.compile(r'@behaviour ((?:%s)(?:, (?:%s))*)(?:: (.*))?$' % (ITEM, ITEM))
NONE = '; does not apply: '
PLACE = re.compile(r'(<!-- behaviours: (.*?) -->\n).*?(<!-- end behaviours -->)', re.S)
HEAD = '| Item | Behaviour | Tests, or why it does not apply |\n|---|---|---|\n'

COMMENT = {'.c': re.compile(r'^[ \t]*/\*(?:(?!\*/).)*?@behaviour.*?\*/\n', re.S | re.M),
           '.sh': re.compile(r'(?:^[ \t]*#.*\n)+', re.M),
           '.py': re.compile(r'(?:^[ \t]*#.*\n)+', re.M)}
TEST = {'.c': re.compile(r'static (?:void|int|bool)\s+(\w+)\s*\('),
        '.sh': re.compile(r'.*?\bcheck "([^"]*)"'),
        '.py': re.compile(r'def (\w+)\(')}


def key(item):
    letter, number, more = re.fullmatch(r'([A-Z])(\d+)([a-z]?)', item).groups()
    return letter, int(number), more


def tags(comment):
    """(items, sentence or None) of each tag of a comment. A line without a tag continues the
    sentence above it, an empty line ends it."""
    found, more = [], False
    for line in comment.split('\n'):
        line = re.sub(r'^[ \t]*(?:/\*|\*/|\*|#)?[ \t]*|[ \t]*(?:\*/)?[ \t]*$', '', line)
        m = TAG.match(line)
        if m:
            found.append([m.group(1).split(', '), m.group(2)])
        elif '@behaviour' in line:
            found.append([[], line])
        elif line and more:
            found[-1][1] += ' ' + line
        more = bool(found and line and found[-1][1])
    return found


def runs(kind, text, name):
    """Whether the file mentions the test once more, in its list of tests."""
    return kind == '.sh' or len(re.findall(r'\b%s\b' % re.escape(name), text)) > 1


def shown(path):
    """As the document names the file: below test/, without the suites' folders."""
    return re.sub(r'^test/(?:unit/|sim/|proc/)?', '', path)


class Items:
    def __init__(self):
        self.sentences, self.tests, self.wrong = {}, {}, []

    def sentence(self, at, items, text):
        if len(items) != 1:
            self.wrong.append('%s: a sentence is about one item' % at)
        for item in items:
            if item in self.sentences:
                self.wrong.append('%s: %s has another sentence in %s'
                                  % (at, item, self.sentences[item][1]))
            self.sentences[item] = (text, at)

    def read(self, path, text):
        kind = os.path.splitext(path)[1]
        for m in COMMENT[kind].finditer(text):
            at = '%s:%d' % (path, text.count('\n', 0, m.start()) + 1)
            found = tags(m.group())
            if not found:
                continue
            test = TEST[kind].match(text, m.end())
            name = test.group(1) if test else None
            if path.startswith('test/guest/cases'):
                name = ''
            elif name and not runs(kind, text, name):
                self.wrong.append('%s: %s never runs' % (at, name))
            for items, sentence in found:
                self.add(at, path, name, items, sentence)

    def add(self, at, path, name, items, sentence):
        if not items:
            self.wrong.append('%s: no tag: %s' % (at, sentence))
            return
        if sentence is not None:
            self.sentence(at, items, sentence)
            if NONE in sentence:
                return
        if name is None:
            self.wrong.append('%s: there is no test right below the tag' % at)
            return
        for item in items:
            self.tests.setdefault(item, {}).setdefault(path, []).append(name)

    def row(self, item):
        sentence, at = self.sentences.get(item, ('', ''))
        if NONE in sentence:
            sentence, reason = sentence.split(NONE)
            return '| %s | %s | does not apply: %s |\n' % (item, sentence, reason)
        files = self.tests.get(item, {})
        # The file with the sentence is first.
        order = sorted(files, key=lambda p: (not at.startswith(p + ':'), p))
        tests = '; '.join(shown(p) + (': ' + ', '.join(files[p]) if files[p][0] else '')
                          for p in order)
        return '| %s | %s | %s |\n' % (item, sentence, tests)


def members(items, ranges):
    """The items of 'A1-A15, B1-B10', in order."""
    for part in ranges.split(', '):
        first, _, last = part.partition('-')
        yield from sorted((i for i in items if key(first) <= key(i) <= key(last or first)), key=key)


def document(text, found):
    """(the document with its places rewritten, the items in it)"""
    have, there = set(found.sentences) | set(found.tests), []

    def place(m):
        items = list(members(have, m.group(2)))
        there.extend(items)
        return m.group(1) + HEAD + ''.join(map(found.row, items)) + m.group(3)
    return PLACE.sub(place, text), there


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--root', default=check_tree.HERE)
    p.add_argument('--write', action='store_true', help='rewrite the tables of the document')
    o = p.parse_args()

    found = Items()
    for path in check_tree.files(o.root, '.c', '.sh', '.py'):
        if path.startswith('test/'):
            found.read(path, check_tree.read(o.root, path))
    page = check_tree.read(o.root, PAGE)
    new, there = document(page, found)
    wrong = found.wrong
    wrong += ['%s has no sentence, in any tag' % i for i in found.tests if i not in found.sentences]
    wrong += ['%s has no test' % i for i, (s, _) in found.sentences.items()
              if NONE not in s and i not in found.tests]
    wrong += ['%s has no tag' % i for i in WANTED if i not in found.sentences]
    wrong += ['%s has %d places in %s' % (i, there.count(i), PAGE)
              for i in sorted(found.sentences, key=key) if there.count(i) != 1]
    if new != page and o.write:
        with open(os.path.join(o.root, PAGE), 'w', encoding='utf-8') as f:
            f.write(new)
    elif new != page:
        wrong.append('%s differs from the tags: devtools/check-behaviours.py --write' % PAGE)
    for w in wrong:
        print(w)
    tests = {(path, name) for files in found.tests.values() for path in files
             for name in files[path]}
    print('%d items, %d tests with tags' % (len(found.sentences), len(tests)))
    return 1 if wrong or not tests else 0


if __name__ == '__main__':
    sys.exit(main())
