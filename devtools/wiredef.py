#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""wiredef.py: what lib/core/wire.def describes, in C and in Lua. The first comment there explains
the notation. The build calls this program; devtools/check-wire.py has the tables of doc/wire.md.

    wiredef.py [--def FILE] NAME_def.h|wire_shapes.h   prints this header
    wiredef.py [--def FILE] weft.lua TEMPLATE          prints the dissector"""

import os
import re
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEF = os.path.join(ROOT, 'lib', 'core', 'wire.def')
INTEGER = {1: 'uint8_t', 2: 'weft_le16', 4: 'weft_le32', 8: 'weft_le64'}
OTHERS = {'f': 4, 'ip': 4, 'mac': 6}  # bytes of what is no plain integer
RESTS = 'bytes bytes+1 text items records am_records message messages address'.split()
LISTS = ('items', 'records', 'am_records')  # those that name something
WORDS = {'file': 4, 'const': 3, 'enum': 3, 'flags': 2, 'struct': 2, 'message': 4, 'frame': 3,
         'records': 4}
IDS = 32  # message ids are below, on every lane


class Wrong(Exception):
    """An error: its line and the reason."""


class Item:
    """A line with its text, and the lines that belong to it."""

    def __init__(self, number, words, text):
        self.number, self.words, self.text, self.name = number, words, text, words[0]
        self.items, self.rest, self.of, self.struct, self.layout = [], None, None, None, None

    def wrong(self, reason):
        raise Wrong('line %d: %s' % (self.number, reason))

    def whole(self, word):
        return int(word, 0) if re.fullmatch(r'[1-9]\d*|0x[0-9a-f]+|0', word) else \
            self.wrong('"%s" is no number' % word)

    def after(self, word):
        """The word behind this one, or None."""
        at = self.words.index(word) + 1 if word in self.words else len(self.words)
        return self.words[at] if at < len(self.words) else None

    def add(self, item, end=1 << 32):
        """A value of an enum, a flag, a message, a frame: each name and number once."""
        item.value = item.whole(item.words[1 if item.name == item.words[0] else 2])
        if item.value >= end:
            item.wrong('%d is not below %d' % (item.value, end))
        for other in self.items:
            if item.value == other.value or item.name == other.name:
                item.wrong('%s has the number or the name of line %d' % (item.name, other.number))
        self.items.append(item)


def lines_of(text):
    last = Item(0, [''], '')
    for number, line in enumerate(text.split('\n'), 1):
        words = line.split()
        if not words or words[0].startswith('#'):
            continue
        at = words.index('--') if '--' in words else len(words)
        if at == 0:
            last.text = ' '.join([last.text] + words[1:]).strip()
            continue
        last = Item(number, words[:at], ' '.join(words[at + 1:]))
        last.inner = line[0].isspace()
        yield last


class Wire:
    """The description, checked. A struct's key is its name in C."""

    def __init__(self, text):
        self.files, self.structs, self.enums, self.flags, self.lists = [], {}, {}, {}, {}
        self.messages, self.frames = Item(0, ['id'], ''), Item(0, ['type'], '')
        outer = None
        for item in list(lines_of(text)):
            if item.inner:
                self.add_inner(outer, item)
            else:
                outer = item
                self.add_outer(item, item.words)
        self.enums['weft_frame_type'] = self.frames
        for s in self.structs.values():
            self.close(s)
        for s in self.structs.values():
            self.check(s)
        for i in self.messages.items + self.frames.items + [
                i for r in self.lists.values() for i in r.items]:
            if not i.layout and i.body:
                i.layout = self.find(i, i.body)
            i.rest = i.layout.rest if i.layout else None
            i.behind_ext = self.find(i, i.ext) if i.ext else None

    def add_outer(self, item, words):
        what = item.what = words[0]
        if what not in WORDS or len(words) < WORDS[what]:
            item.wrong('"%s" is no beginning, or words are missing' % ' '.join(words))
        item.name, item.body, item.ext = words[1], None, None
        if what == 'file':
            item.prefix, item.upper = words[2:4]
            self.files.append(item)
            return
        if not self.files:
            item.wrong('is in front of the first file')
        item.file = self.files[-1]
        item.file.items.append(item)
        if what in ('enum', 'flags', 'records'):
            table = {'enum': self.enums, 'flags': self.flags, 'records': self.lists}[what]
            if item.name in table:
                item.wrong('%s is there twice' % item.name)
            table[item.name] = item
            item.prefix = words[{'enum': 2, 'flags': 1, 'records': 3}[what]]
        elif what == 'const':
            item.whole(words[2])
        elif what == 'struct':
            self.add_struct(item, item.name)
        elif what == 'frame':
            self.frames.add(item, 256)
            item.body = words[3] if len(words) > 3 else None
        else:
            self.messages.add(item, IDS)
            item.sender, item.body = words[3], item.after('=')
            item.may_ext = any(re.match('ext(=|$)', w) for w in words)
            item.ext = next((w[4:] for w in words if w.startswith('ext=')), None)
            if not item.body:
                item.layout = item
                self.add_struct(item, item.name.lower())

    def add_struct(self, item, name):
        item.struct, item.size, item.shown = name, None, item.after('as') or name
        item.alone = 'shown' in item.words
        if self.structs.setdefault(item.file.prefix + name, item) is not item:
            item.wrong('struct %s%s is there twice' % (item.file.prefix, name))

    def add_inner(self, outer, item):
        if not outer or outer.what in ('file', 'const', 'frame'):
            item.wrong('belongs to no struct, message, enum, flags or records')
        if len(item.words) < 2 or outer.rest or outer.body:
            item.wrong('words are missing, or no field may be here')
        item.file = outer.file
        if outer.what not in ('struct', 'message'):
            item.ext, item.body = None, item.words[-1] if outer.what == 'records' else None
            outer.add(item)
        elif item.name == 'rest':
            outer.rest = item
        elif item.name != '.' and item.name in [i.name for i in outer.items]:
            item.wrong('field %s is there twice' % item.name)
        else:
            outer.items.append(item)

    def find(self, item, name):
        """A struct of the same file, or of another one."""
        for file in [item.file] + self.files:
            if file.prefix + name in self.structs:
                return self.structs[file.prefix + name]
        return item.wrong('there is no struct %s' % name)

    def close(self, s):
        """Offsets and sizes, of inner structs first."""
        if s.size is not None:
            return
        if hasattr(s, 'begun'):
            s.wrong('struct %s contains itself' % s.struct)
        s.begun, at = True, 0
        for f in s.items:
            m = re.fullmatch(r'((?:([dxbz])(\d+))|\w+)(?:\[(\d*)\])?', f.words[1]) or \
                f.wrong('"%s" is no kind' % f.words[1])
            f.kind, f.letter, f.array = m.group(1), m.group(2) or m.group(1), m.group(4)
            if m.group(2):
                f.one = int(m.group(3))
                if f.letter in 'dx' and f.one not in INTEGER:
                    f.wrong('numbers have 1, 2, 4 or 8 bytes')
            elif f.kind in OTHERS:
                f.one = OTHERS[f.kind]
            else:
                f.struct = self.find(f, f.kind)
                self.close(f.struct)
                f.one = f.struct.size
            if f.array == '' and f is not s.items[-1]:
                f.wrong('an array of any length is last')
            f.at, f.size = at, f.one * int(f.array or f.array != '')
            at += f.size
            if f.words[2:] and (f.words[2] != 'of' or len(f.words) != 4):
                f.wrong('"%s" is not known behind a field' % ' '.join(f.words[2:]))
            f.of = f.after('of')
        s.size = at
        if at % s.whole(s.after('aligned') or '1'):
            s.wrong('%d bytes are no multiple of %s' % (at, s.after('aligned')))

    def check(self, s):
        """What a struct names and another item defines."""
        for f in s.items:
            if f.of and f.of not in self.enums and f.of not in self.flags:
                f.wrong('there is no enum and are no flags %s' % f.of)
            for bit in self.flags[f.of].items if f.of in self.flags else []:
                if bit.value >= 8 * f.size:
                    bit.wrong('bit %d does not fit into %s' % (bit.value, f.name))
        if not s.rest:
            return
        rest, names = s.rest, s.rest.words[2:]
        rest.kind = rest.words[1]
        if rest.kind not in RESTS or (rest.kind in LISTS and not names):
            rest.wrong('"%s" is no rest' % ' '.join(rest.words[1:]))
        rest.list = names.pop(0) if rest.kind in LISTS else None
        if rest.kind == 'items':
            rest.layout, rest.list = self.find(rest, rest.list), None
        elif rest.list and rest.list not in self.lists:
            rest.wrong('there are no records %s' % rest.list)
        rest.title = ' '.join(names) or rest.kind

    def fields(self, s, base=0):
        """(name, offset, bytes, kind, of) of what tools print; kind z: bytes that they do not"""
        for f in s.items:
            if f.kind == 'ref':
                yield f.name, base + f.at, 4, 'd', None
                yield f.name + '_gen', base + f.at + 4, 4, 'd', None
            elif f.struct:
                yield from self.fields(f.struct, base + f.at)
            else:
                hidden = f.letter in 'zb' or f.array is not None
                yield f.name, base + f.at, f.size, 'z' if hidden else f.letter, f.of

    def words_of(self, of):
        """(value, name)"""
        return [(i.value, i.name) for i in self.enums[of].items] if of in self.enums else []

    def shapes(self):
        """name -> struct of all that tools print, items first"""
        found = {}
        for s in [i.layout for r in self.lists.values() for i in r.items] + \
                [m.behind_ext for m in self.messages.items] + \
                [i.layout for i in self.messages.items + self.frames.items] + \
                [s for s in self.structs.values() if s.alone]:
            for one in (s and s.rest and s.rest.layout, s):
                if one:
                    found.setdefault(label(one), one)
        return found


def read(source):
    with open(source, encoding='utf-8') as f:
        return Wire(f.read())


def label(s):
    return s.file.prefix[5:] + s.struct


# ---- C ------------------------------------------------------------------------------------------

HEAD = '/* SPDX-License-Identifier: BSD-3-Clause */\n/* Made from lib/core/wire.def by ' \
       'devtools/wiredef.py. Changes are made there. */\n'


def noted(code, text, indent='\t'):
    """Lines of code with its comment, behind it where there is room."""
    if not text or len(indent) * 8 + len(code) + len(text) + 9 <= 100 and code:
        return [indent + code + (' /**< %s */' % text if text else '')] if code else []
    body = textwrap.wrap(text, 96 - 8 * len(indent), break_long_words=False)
    around = ['%s/** %s */' % (indent, text)] if len(text) < 91 - 8 * len(indent) else \
        [indent + '/**'] + ['%s * %s' % (indent, t) for t in body] + [indent + ' */']
    return around + ([indent + code] if code else [])


def members(s):
    for f in s.items:
        array = '' if f.array is None else '[%s]' % f.array
        if f.name == '.':
            yield from members(f.struct)
            continue
        c = 'struct %s%s' % (f.struct.file.prefix, f.struct.struct) if f.struct else \
            INTEGER.get(f.one)
        if f.letter in ('b', 'mac') or not c:
            c, array = 'uint8_t', '[%d]' % f.one
        of = f.of and (f.of + '*' if f.of.endswith('_') else 'enum ' + f.of)
        yield from noted('%s %s%s;' % (c, f.name, array), ': '.join(filter(None, (
            of, f.text or '0' * (f.letter == 'z')))))


def c_enum(out, name, text, prefix, items, end):
    out += noted('', text, '') + ['enum %s {' % name]
    for i in items:
        out += noted('%s%s = %d,' % (prefix, i.name, i.value), i.text)
    out += ['\t%s%s,' % (prefix, end)] * bool(end) + ['};', '']


def c_struct(out, s):
    name, rest = s.file.prefix + s.struct, s.rest
    text = '%s: %s' % (s.name, s.text) if s.what == 'message' else s.text
    text = '. '.join(filter(None, (text, rest and 'Then: ' + (rest.text or rest.title))))
    out += noted('', text, '') + ['struct %s {' % name] + list(members(s))
    aligned = s.after('aligned')
    out += ['} __attribute__((packed%s));' % (', aligned(%s)' % aligned if aligned else ''),
            'static_assert(sizeof(struct %s) == %d, "wire.def");' % (name, s.size)]
    out += ['static_assert(offsetof(struct %s, %s) == %d, "wire.def");' % (name, f.name, f.at)
            for f in s.items if f.name != '.' and f.at] + ['']


def x_macro(out, text, name, rows):
    out += ['/** X(%s) */' % text, '#define %s(X) \\' % name] if rows else []
    out += ['\tX(%s)%s' % (', '.join(map(str, row)), ' \\' * (row is not rows[-1]))
            for row in rows] + [''] * bool(rows)


def c_header(wire, file):
    guard = 'WEFT_%s' % file.name.upper().replace('.', '_')
    others = {f.struct.file.name for s in file.items for f in s.items if s.struct and f.struct}
    out = [HEAD + '#ifndef %s\n#define %s\n\n#include <assert.h>\n#include <stddef.h>\n'
           % (guard, guard)]
    out += ['#include "base/bytes.h"']
    out += ['#include "core/%s"' % name for name in sorted(others - {file.name})] + ['']
    for group in (wire.messages, wire.frames):
        mine = [i for i in group.items if i.file is file]
        if mine:
            c_enum(out, file.prefix + group.name, '', file.upper, mine,
                   group.name.upper() + '_END')
    for item in file.items:
        if item.what == 'const':
            out += noted('#define %s%s %su' % (file.upper, item.name, item.words[2]), item.text,
                         '') + ['']
        elif item.what == 'flags':
            out += sum([noted('#define %s%s 0x%xu' % (item.name, bit.name, 1 << bit.value),
                              bit.text, '') for bit in item.items], []) + ['']
        elif item.what in ('enum', 'records'):
            c_enum(out, item.words[1 if item.what == 'enum' else 2], item.text, item.prefix,
                   item.items, item.after('end'))
        elif item.struct and item.items:
            c_struct(out, item)
    x_macro(out, 'id, struct, bytes behind it at least, records behind it, EXT in front',
            file.upper + 'MESSAGES',
            [(m.name, m.layout.struct, int(bool(m.rest) and m.rest.kind == 'bytes+1'),
              int(bool(m.rest) and m.rest.words[1:3] == ['records', 'msg']), int(m.may_ext))
             for m in wire.messages.items if m.file is file])
    x_macro(out, 'type, struct, bytes behind it at least', file.upper + 'BODIES',
            [(f.name, f.layout.struct, int(bool(f.rest) and f.rest.kind == 'bytes+1'))
             for f in wire.frames.items if f.file is file and f.layout and f.layout.items])
    return '\n'.join(out + ['#endif /* %s */\n' % guard])


# ---- tables of weft-dump and of the dissector ----------------------------------------------------

def groups(wire):
    """(name, [(number, printed name, layout)]) of all that is found by a number; records of
    messages before those of wire-up, which contain a message's struct"""
    for r in reversed(list(wire.lists.values())):
        yield 'records_' + r.name, [(i.value, i.name.lower(), i.layout) for i in r.items]
    yield 'messages', [(m.value, m.name.lower(), m.layout) for m in wire.messages.items]
    yield 'behind_ext', [(m.value, m.behind_ext.shown, m.behind_ext)
                         for m in wire.messages.items if m.behind_ext]
    yield 'frames', [(f.value, f.layout.shown if f.layout and f.layout.items else f.name.lower(),
                      f.layout) for f in wire.frames.items]


def c_shape(s, name):
    more, rest = '', s.rest if s else None
    if s and s.items:
        more = ', DUMP_FIELDS(fields_%s), .size = %d' % (label(s), s.size)
    if rest:
        more += ', .rest = DUMP_' + rest.kind.upper().replace('+1', '')
        more += ', .item = &shape_%s' % label(rest.layout) if rest.layout else ''
        more += ', DUMP_KNOWN(records_%s)' % rest.list if rest.list else ''
    return '{.name = "%s"%s}' % (name, more)


def c_shapes(wire):
    out, known = [HEAD + '/* Tables of dump/shapes.c. */\n'], wire.shapes()
    kinds = {'d': 'DEC', 'x': 'HEX', 'f': 'SINGLE', 'ip': 'IP', 'mac': 'MAC'}

    def array(title, rows):
        out.extend(['static const %s[] = {' % title] + ['\t%s,' % r for r in rows] + ['};', ''])

    for of in sorted({f.of for s in known.values() for f in s.items if wire.words_of(f.of)}):
        array('char *const words_' + of, ['[%d] = "%s"' % w for w in wire.words_of(of)])
    for name, s in known.items():
        if s.items:
            array('struct dump_field fields_' + name, [
                '{.name = "%s", .kind = DUMP_%s, .size = %d, .offset = %d%s}' % (
                    field, kinds[kind], size, at,
                    ', DUMP_WORDS(words_%s)' % of if wire.words_of(of) else '')
                for field, at, size, kind, of in wire.fields(s) if kind != 'z'])
    out += ['const char *const dump_frame_flags[DUMP_FLAGS] = {'] + \
        ['\t[%d] = "%s",' % (b.value, b.name) for b in wire.flags['WEFT_FRAME_F_'].items] + \
        ['};', '']
    inner = {s.rest.layout for s in known.values() if s.rest and s.rest.layout}
    out += ['static const struct dump_shape shape_%s = %s;\n' % (label(s), c_shape(s, s.shown))
            for s in known.values() if s in inner]
    for name, entries in groups(wire):
        array('struct dump_shape ' + name,
              ['[%d] = %s' % (n, c_shape(s, printed)) for n, printed, s in entries])
    out += ['const struct dump_shape dump_shape_%s = %s;' % (name, c_shape(s, s.shown))
            for name, s in known.items() if s.alone]
    return '\n'.join(out) + '\n'


def lua_shape(wire, s, name):
    text = ' '.join('%s %s' % (field, '-%d' % size if kind == 'z' else
                               kind if kind in OTHERS else kind + str(size))
                    for field, _, size, kind, _ in wire.fields(s)) if s else ''
    words, more, rest = textwrap.wrap(text, 78, break_on_hyphens=False) or [''], '', s and s.rest
    if rest:
        more = ', "%s"' % rest.kind.replace('+1', '')
        more += ', shapes.' + label(rest.layout) if rest.layout else ''
        more += ', "%s"' % rest.list if rest.list else ''
    return 'shape("%s", "%s"%s)' % (name, ' " ..\n\t\t"'.join(words), more)


def lua(wire, template):
    out, known = ['-- Made from lib/core/wire.def by devtools/wiredef.py.'], wire.shapes()

    def table(name, rows):
        out.extend(['%s = {' % name] + ['\t%s,' % r for r in rows] + ['}'])

    table('local const', ['%s%s = %s' % (f.upper[5:], c.name, c.words[2]) for f in wire.files
                          for c in f.items if c.what == 'const'])
    table('local frame', ['%s = %d' % (f.name, f.value) for f in wire.frames.items])
    table('local id', ['%s = %d' % (m.name, m.value) for m in wire.messages.items])
    for title, name in (('frame', 'WEFT_FRAME_F_'), ('record', 'WEFT_RECORD_F_')):
        table('local %s_flags' % title, ['{ name = "%s", bit = %d }' % (b.name, 1 << b.value)
                                         for b in wire.flags[name].items])
    out += ['local shapes, words = {}, {}']
    for of in sorted({f.of for s in known.values() for f in s.items if wire.words_of(f.of)}):
        table('words.' + of, ['[%d] = "%s"' % w for w in wire.words_of(of)])
    out += ['shapes.%s = %s' % (name, lua_shape(wire, s, s.shown)) for name, s in known.items()]
    for name, entries in groups(wire):
        table('local ' + name, ['[%d] = %s' % (n, lua_shape(wire, s, printed))
                                for n, printed, s in entries])
    table('local values', ['["weft.%s.%s"] = words.%s' % (s.shown, field, of)
                           for s in known.values() for field, _, _, _, of in wire.fields(s)
                           if wire.words_of(of)])
    with open(template, encoding='utf-8') as f:
        text = f.read()
    if text.count('-- @wire.def@\n') != 1:
        raise Wrong('%s has no line "-- @wire.def@"' % template)
    return text.replace('-- @wire.def@\n', '\n'.join(out) + '\n')


def main(words):
    source = words.pop(words.index('--def') + 1) if '--def' in words[:-1] else DEF
    words = [w for w in words if w != '--def'] + ['', '']
    try:
        wire = read(source)
        headers = {f.name: f for f in wire.files}
        if words[0] in headers:
            sys.stdout.write(c_header(wire, headers[words[0]]))
        elif words[0] == 'wire_shapes.h':
            sys.stdout.write(c_shapes(wire))
        elif words[0] == 'weft.lua' and words[1]:
            sys.stdout.write(lua(wire, words[1]))
        else:
            print(__doc__)
            return 2
        return 0
    except Wrong as e:
        print('%s: %s' % (source, e), file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
