#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks doc/behaviours.md and doc/reliability.md. Every test that they name must exist in the
named file and be registered. Every item of the lists that the project is measured by must have a
row. A row without tests must give its reason."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WANTED = ['U%d' % n for n in range(1, 92)]
for letter, last in (('A', 15), ('B', 10), ('C', 9), ('D', 8), ('E', 9), ('F', 10), ('G', 5),
                     ('S', 19), ('T', 44)):
    WANTED += ['%s%d' % (letter, n) for n in range(1, last + 1)]


def sources():
    """Name -> text, of everything under test/: by file name, all that have it, and by
    FOLDER/FILE."""
    found = {}
    for folder, _, names in os.walk(os.path.join(ROOT, 'test')):
        for name in names:
            if name.endswith(('.c', '.sh', '.py')):
                with open(os.path.join(folder, name), encoding='utf-8') as f:
                    text = f.read()
                found[name] = found.get(name, '') + text
                found[os.path.join(os.path.basename(folder), name)] = text
    return found


def cases(root):
    """Names of the guest's cases, which are files."""
    return set(os.listdir(os.path.join(root, 'test', 'guest', 'cases')))


def check_test(files, guest, file, name):
    if file == 'guest':
        if any(case in (name, name + '.sh') for case in guest):
            return None
        return 'there is no guest case %s' % name
    if file not in files:
        return 'there is no file %s under test/' % file
    text = files[file]
    if file.endswith('.sh'):
        return None if 'check "' + name in text else '%s has no case "%s"' % (file, name)
    if file.endswith('.py'):
        if name in ('every example',):
            if 'for name, blocks in sources()' in text:
                return None
            return '%s has no loop over all examples' % file
        if not re.search(r'^def %s\(' % re.escape(name), text, re.M):
            return '%s has no function %s' % (file, name)
        if len(re.findall(r'\b%s\b' % re.escape(name), text)) > 1:
            return None
        return '%s never runs %s' % (file, name)
    if not re.search(r'^static (?:void|int|bool)\s+%s\s*\(' % re.escape(name), text, re.M):
        return '%s has no function %s' % (file, name)
    if len(re.findall(r'\b%s\b' % re.escape(name), text)) < 2:
        return '%s never runs %s' % (file, name)
    return None


def check_row(files, guest, items, tests):
    """-> (errors, number of tests named)"""
    wrong, count = [], 0
    if tests.startswith('does not apply: '):
        return ([] if len(tests) > 30 else ['%s: no reason is given' % items]), 0
    for part in tests.split('; '):
        file, colon, names = part.partition(': ')
        if not colon:
            wrong.append("%s: '%s' is not 'file: test, test'" % (items, part))
            continue
        for name in names.split(', '):
            why = check_test(files, guest, file.strip('`'), name.strip('` '))
            count += 1
            if why:
                wrong.append('%s: %s' % (items, why))
    return wrong, count


def check_document(name, files, guest):
    """-> (items with a row, errors, number of tests named)"""
    seen, wrong, count = set(), [], 0
    with open(os.path.join(ROOT, 'doc', name), encoding='utf-8') as f:
        for line in f:
            cells = [c.strip() for c in line.strip().strip('|').split('|')]
            if not line.startswith('|') or len(cells) != 3 or cells[0] in ('Item', '---'):
                continue
            seen.update(cells[0].split(', '))
            more, n = check_row(files, guest, cells[0], cells[2])
            wrong += ['doc/%s: %s' % (name, w) for w in more]
            count += n
    return seen, wrong, count


def main():
    files, guest = sources(), cases(ROOT)
    seen, wrong, count = check_document('behaviours.md', files, guest)
    wrong += ['doc/behaviours.md: %s has no row' % item for item in WANTED if item not in seen]
    promises, more, n = check_document('reliability.md', files, guest)
    wrong += more
    for w in wrong:
        print(w)
    print('%d items, %d promises, %d tests named' % (len(seen), len(promises), count + n))
    return 1 if wrong or not promises else 0


if __name__ == '__main__':
    sys.exit(main())
