#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""wiredef.py: devtools/wiredef.py refuses what contradicts itself in lib/core/wire.def. What is
added there is in all outputs. devtools/check-wire.py compares doc/wire.md. Prints TAP."""

import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import tap  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
TEMPLATE = os.path.join(ROOT, 'app', 'dump', 'weft.lua.in')
HEADERS = ['wire_conn_def.h', 'wire_def.h', 'wire_frame_def.h', 'wire_roce_def.h',
           'wire_tap_def.h']


def read(*path):
    with open(os.path.join(ROOT, *path), encoding='utf-8') as f:
        return f.read()


DEF = read('lib', 'core', 'wire.def')


def run(*arguments, text=DEF, program='wiredef.py'):
    """(exit code, output) of the program with this description."""
    with tempfile.NamedTemporaryFile('w', suffix='.def') as f:
        f.write(text)
        f.flush()
        done = subprocess.run([sys.executable, os.path.join(ROOT, 'devtools', program),
                               '--def', f.name, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        assert 'Traceback' not in done.stdout, done.stdout
        return done.returncode, done.stdout


def document(*arguments, text=DEF):
    return run(*arguments, text=text, program='check-wire.py')


def changed(old, new):
    assert DEF.count(old) == 1, '%d times: %s' % (DEF.count(old), old)
    return DEF.replace(old, new)


SMALL = 'file a.h a_ A_\n'

# A description, the line of its error, and words of the reason.
WRONG = [
    (SMALL + 'frame X 1\nframe Y 1\n', 3, 'the number or the name of line 2'),
    (SMALL + 'frame X 1\nframe X 2\n', 3, 'the number or the name of line 2'),
    (SMALL + 'message X 32 both\n\ta d1\n', 2, '32 is not below 32'),
    (SMALL + 'message X 1 both\n\ta d1\n\tb d3\n', 4, 'numbers have 1, 2, 4 or 8 bytes'),
    (SMALL + 'struct x\n\ta d1\n\ta d2\n', 4, 'field a is there twice'),
    (SMALL + 'struct x\n\ta d1\nstruct x\n\tb d1\n', 4, 'struct a_x is there twice'),
    (SMALL + 'struct x\n\ta nosuch\n', 3, 'there is no struct nosuch'),
    (SMALL + 'struct x\n\ta y\nstruct y\n\tb x\n', 2, 'contains itself'),
    (SMALL + 'struct x\n\ta d4[]\n\tb d1\n', 3, 'an array of any length is last'),
    (SMALL + 'struct x aligned 8\n\ta d4\n', 2, '4 bytes are no multiple of 8'),
    (SMALL + 'struct x\n\ta d1 of NO_\n', 3, 'there is no enum and are no flags NO_'),
    (SMALL + 'flags F_\n\tB 8\nstruct x\n\ta x1 of F_\n', 3, 'bit 8 does not fit into a'),
    (SMALL + 'flags F_\n\tB 0\n\tC 0\n', 4, 'the number or the name of line 3'),
    (SMALL + 'enum e E_\n\tB 1\n\tB 2\n', 4, 'the number or the name of line 3'),
    (SMALL + 'enum e E_\n\tB one\n', 3, '"one" is no number'),
    (SMALL + 'struct x\n\trest bytes\n\ta d1\n', 4, 'no field may be here'),
    (SMALL + 'struct x\n\trest pieces\n', 3, '"pieces" is no rest'),
    (SMALL + 'struct x\n\trest items nosuch\n', 3, 'there is no struct nosuch'),
    (SMALL + 'struct x\n\trest records nosuch\n', 3, 'there are no records nosuch'),
    (SMALL + 'records r e E_\n\tA 1 nosuch\n', 3, 'there is no struct nosuch'),
    (SMALL + 'message X 1 both = nosuch\n', 2, 'there is no struct nosuch'),
    (SMALL + 'message X 1 both = x\n\ta d1\nstruct x\n\ta d1\n', 3, 'no field may be here'),
    (SMALL + 'frame X 1 nosuch\n', 2, 'there is no struct nosuch'),
    (SMALL + 'struct x\n\ta d1 or b\n', 3, '"or b" is not known behind a field'),
    (SMALL + 'struct\n', 2, 'words are missing'),
    (SMALL + 'thing x\n', 2, '"thing x" is no beginning'),
    (SMALL + 'const A many\n', 2, '"many" is no number'),
    ('struct x\n\ta d1\n', 1, 'in front of the first file'),
    ('\ta d1\n', 1, 'belongs to no struct'),
]


def what_contradicts_itself_is_refused_with_its_line():
    for text, line, reason in WRONG:
        code, out = run('a.h', text=text)
        wanted = 'line %d: ' % line
        assert code == 1 and wanted in out and reason in out, '%s%d: %s' % (text, code, out)


def an_error_is_found_also_in_the_whole_description():
    line = DEF[:DEF.index('message PUT_DONE')].count('\n') + 1
    code, out = run('wire_def.h', text=changed('message PUT_DONE 15', 'message PUT_DONE 14'))
    assert code == 1 and 'line %d: PUT_DONE has the number' % line in out, out


def headers_compile_and_assert_their_layout():
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, 'core'))
        for name in HEADERS:
            code, out = run(name)
            assert code == 0 and 'static_assert(sizeof' in out, out[:500]
            with open(os.path.join(folder, 'core', name), 'w', encoding='utf-8') as f:
                f.write(out)
        for name in HEADERS:
            command = ['cc', '-std=c11', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror', '-I',
                       folder, '-I', os.path.join(ROOT, 'lib'), '-fsyntax-only', '-x', 'c',
                       os.path.join(folder, 'core', name)]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False)
            assert done.returncode == 0, done.stdout


def a_field_of_another_size_does_not_compile_with_the_layout_of_before():
    before = run('wire_def.h')[1]
    after = run('wire_def.h', text=changed('\toperand  x8\n', '\toperand  x4\n'))[1]
    assert 'sizeof(struct weft_wire_amo) == 48' in before
    assert 'sizeof(struct weft_wire_amo) == 44' in after
    assert 'offsetof(struct weft_wire_amo, compare) == 20' in after


# @behaviour Y20
def what_is_added_is_everywhere():
    text = changed('message AMOV_REP 31 target = data -- the old values\n',
                   'flags WEFT_NEWS_F_\n\tGOOD 3 -- no harm\n'
                   'message NEWS 31 target ext -- what is new\n\tday d2 -- since the start\n'
                   '\thow x1 of WEFT_NEWS_F_\n\tpeer ref\n\trest bytes+1 words -- at least one\n')
    text = text.replace('frame GONE 17', 'frame EXTRA 18 part -- one more\nframe GONE 17')
    text = text.replace('\tRX_STATE 9 rx_state', '\tOTHER 10 boot\n\tRX_STATE 9 rx_state')
    code, header = run('wire_def.h', text=text)
    for part in ('WEFT_WIRE_NEWS = 31, /**< what is new */', 'struct weft_wire_news {',
                 'weft_le16 day; /**< since the start */', '#define WEFT_NEWS_F_GOOD 0x8u',
                 'sizeof(struct weft_wire_news) == 11', 'X(NEWS, news, 1, 0, 1)'):
        assert code == 0 and part in header, part
    assert 'WEFT_RECORD_OTHER = 10,' in run('wire_conn_def.h', text=text)[1]
    frames = run('wire_frame_def.h', text=text)[1]
    assert 'WEFT_FRAME_EXTRA = 18,' in frames and 'X(EXTRA, part, 1)' in frames
    shapes = run('wire_shapes.h', text=text)[1]
    for part in ('[31] = {.name = "news"', '.name = "peer_gen", .kind = DUMP_DEC, .size = 4, '
                 '.offset = 7}', '[18] = {.name = "part"', '[10] = {.name = "other"',
                 '[18] = "EXTRA"'):
        assert part in shapes, part
    lua = run('weft.lua', TEMPLATE, text=text)[1]
    for part in ('[31] = shape("news", "day d2 how x1 peer d4 peer_gen d4", "bytes")',
                 'NEWS = 31,', 'EXTRA = 18,', '[18] = shape("part"', '[10] = shape("other"'):
        assert part in lua, part
    with tempfile.NamedTemporaryFile('w+', suffix='.md') as f:
        f.write(''.join('<!-- wire.def: %s -->\n\n' % t for t in (
            'messages', 'frames', 'records wireup', 'fields NEWS')))
        f.flush()
        assert document('--write', f.name, text=text) == (0, '')
        f.seek(0)
        page = f.read()
    for part in ('| 31 | NEWS | target | 11 | at least one | what is new |',
                 '| 18 | EXTRA | part | one more |', '| 10 | OTHER | 4 bytes | |',
                 '| 2 | 1 | how | 0x8 GOOD: no harm |', '| 11 | | words | at least one |'):
        assert part in page, '%s\n%s' % (part, page)


# @behaviour Y20
def the_document_has_the_tables_of_the_description():
    code, out = document()
    assert code == 0, out


def a_document_with_other_tables_is_found_and_corrected():
    text = read('doc', 'wire.md')
    with tempfile.NamedTemporaryFile('w+', suffix='.md') as f:
        f.write(text.replace('| 0 | 8 | sreq |', '| 0 | 4 | sreq |', 1))
        f.flush()
        code, out = document(f.name)
        assert code == 1 and '| 0 | 4 | sreq |' in out and '--write' in out, out
        assert document('--write', f.name) == (0, '')
        f.seek(0)
        assert f.read() == text
        f.write('<!-- wire.def: fields NOSUCH -->\n\n')
        f.flush()
        code, out = document(f.name)
        assert code == 1 and 'there is no struct NOSUCH' in out, out


tap.run([
    what_contradicts_itself_is_refused_with_its_line,
    an_error_is_found_also_in_the_whole_description,
    headers_compile_and_assert_their_layout,
    a_field_of_another_size_does_not_compile_with_the_layout_of_before,
    what_is_added_is_everywhere,
    the_document_has_the_tables_of_the_description,
    a_document_with_other_tables_is_found_and_corrected,
])
