#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check-wire.py [--def FILE] [--write] [DOCUMENT]: the tables of doc/wire.md are those of
lib/core/wire.def. --write changes the document.

A table stands behind a line "<!-- wire.def: TABLE [NAME] [FILE_def.h] -->". Tables: fields STRUCT
or MESSAGE, messages, frames, records LIST, values ENUM. FILE_def.h is the header of a struct whose
name is in several."""

import argparse
import difflib
import os
import re
import sys

sys.dont_write_bytecode = True

import wiredef  # noqa: E402


def names_of(s):
    return sum([names_of(f.struct) if f.name == '.' else [f.name] for f in s.items], [])


def described(wire, f):
    more = ''
    if f.of in wire.flags:
        more = '; '.join('0x%x %s%s' % (1 << b.value, b.name, ': ' + b.text if b.text else '')
                         for b in wire.flags[f.of].items)
    elif f.of and f.of != 'weft_frame_type':
        more = ', '.join('%d %s' % w for w in wire.words_of(f.of))
    elif not f.text:
        more = {'z': '0', 'ref': 'index (4), generation (4)'}.get(f.letter, '')
    return '; '.join(filter(None, (more, f.text)))


def field_rows(wire, s, base=0):
    for f in s.items:
        inner = f.struct if f.kind != 'ref' else None
        if inner and (f.name == '.' or not f.text):
            yield from field_rows(wire, inner, base + f.at)
        else:
            name = ', '.join(names_of(inner)) if inner else \
                '' if f.name.startswith('reserved') else f.name
            yield (base + f.at, f.size if f.array is None else '%d each' % f.one, name,
                   described(wire, f))


def doc_table(wire, mark, words):
    """(titles, how many are numbers, rows)"""
    name = words[1] if len(words) > 1 else ''
    if words[0] == 'fields':
        s = {m.name: m for m in wire.messages.items}.get(name) or wire.find(mark, name)
        rest = [(s.layout.size if s.layout else s.size, '', s.rest.title, s.rest.text
                 if s.rest.text != s.rest.title else '')] if s.rest else []
        return ('Offset', 'Bytes', 'Field', ''), 2, list(field_rows(wire, s.layout or s)) + rest
    if words[0] == 'messages':
        one_of = 'one of ' + ', '.join(m.name for m in wire.messages.items if m.may_ext)
        return ('Id', 'Name', 'From', 'Header', 'Then', ''), 1, [
            (m.value, m.name, m.sender, m.layout.size, '-' if not m.rest else
             one_of if m.rest.kind == 'message' else
             (m.rest.text or m.rest.title).partition('; ')[0], m.text)
            for m in wire.messages.items]
    if words[0] == 'frames':
        return ('Type', 'Name', 'Body', ''), 1, [(f.value, f.name, f.body or '-', f.text)
                                                 for f in wire.frames.items]
    if words[0] == 'records' and name in wire.lists:
        return ('Type', 'Name', 'Content', ''), 1, [
            (i.value, i.name, ', then '.join(filter(None, (
                '%d bytes' % i.layout.size if i.layout.size else '',
                i.rest.title if i.rest else ''))), i.text) for i in wire.lists[name].items]
    if words[0] == 'values' and name in wire.enums:
        return ('Value', 'Name', ''), 1, [(i.value, i.name, i.text)
                                          for i in wire.enums[name].items]
    return mark.wrong('the document has no such table: %s' % ' '.join(words))


def document(wire, text):
    def made(m):
        words = m.group(2).split()
        mark = wiredef.Item(text.count('\n', 0, m.start()) + 1, ['mark'], '')
        mark.file = next((f for f in wire.files if f.name == words[-1]), wire.files[0])
        titles, right, rows = doc_table(wire, mark, words)
        rows = [titles, ['---:' if i < right else '---' for i in range(len(titles))]] + rows
        lines = ['| %s |' % ' | '.join(map(str, r)).replace('|  |', '| |') for r in rows]
        lines[1] = lines[1].replace(' ', '')
        return '%s%s\n' % (m.group(1), '\n'.join(lines).replace('  |', ' |'))
    return re.sub(r'(<!-- wire\.def: ([^>]*) -->\n)(?:\|.*\n)*(?:<!-- end -->\n)?', made, text)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--def', dest='source', default=wiredef.DEF)
    p.add_argument('--write', action='store_true')
    p.add_argument('path', nargs='?', default=os.path.join(wiredef.ROOT, 'doc', 'wire.md'))
    o = p.parse_args()

    with open(o.path, encoding='utf-8') as f:
        text = f.read()
    try:
        want = document(wiredef.read(o.source), text)
    except wiredef.Wrong as err:
        print('%s or %s: %s' % (o.path, o.source, err))
        return 1
    if want == text:
        return 0
    if o.write:
        with open(o.path, 'w', encoding='utf-8') as f:
            f.write(want)
        return 0
    print('\n'.join(difflib.unified_diff(text.split('\n'), want.split('\n'), o.path, 'wire.def',
                                         n=0, lineterm='')))
    print('"devtools/check-wire.py --write" changes the document')
    return 1


if __name__ == '__main__':
    sys.exit(main())
