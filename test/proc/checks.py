#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The checks of the sources (devtools/check-*): each rule finds what it is there for in a small
tree. Prints TAP."""

import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import tap  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')


def check(script, tree, *arguments):
    """A check of devtools on a tree of these files: (exit code, output)."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in tree.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), 'w', encoding='utf-8') as f:
                f.write(text)
        if '--build' in arguments:
            build(root, [p for p in tree if p.endswith('.c')])
        done = subprocess.run([os.path.join(ROOT, 'devtools', script), '--root', root,
                               *(a.replace('ROOT', root) for a in arguments)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, check=False)
        assert 'Traceback' not in done.stdout, done.stdout
        return done.returncode, done.stdout


def build(root, sources):
    """Objects and compile_commands.json, as meson has them."""
    os.mkdir(os.path.join(root, 'build'))
    commands = []
    for source in sources:
        name = source.replace('/', '_') + '.o'
        subprocess.run(['cc', '-Ilib', '-c', source, '-o', 'build/' + name], cwd=root, check=True)
        commands.append({'directory': os.path.join(root, 'build'), 'file': '../' + source,
                         'output': name,
                         'command': 'cc -I../lib -c ../%s -o %s' % (source, name)})
    with open(os.path.join(root, 'build', 'compile_commands.json'), 'w', encoding='utf-8') as f:
        json.dump(commands, f)


def good(script, tree, *arguments):
    code, out = check(script, tree, *arguments)
    assert code == 0, out


def bad(sentence, script, tree, *arguments):
    code, out = check(script, tree, *arguments)
    assert code == 1 and sentence in out, 'exit %d, wanted: %s\n%s' % (code, sentence, out)
    assert '0 wrong' not in out, out


# ---- layers -----------------------------------------------------------------------------------

LAYERS = 'check-layers.py'


def layered(path, name, **others):
    """A tree in which one file includes one header."""
    tree = {'lib/base/log.h': '', 'lib/core/worker.h': '', 'lib/msg/msg.h': '',
            'lib/msg/credit.h': '', 'lib/lane.h': '',
            'lib/weft.h': '', 'drivers/dpdk/engine/conn.h': '', 'drivers/dpdk/port/port.h': '',
            'drivers/dpdk/frame/parse.h': '',
            'drivers/dpdk/compat.h': '', 'app/common/cli.h': '', 'app/perf/flow.h': '',
            'lib/base/text.h': '',
            'app/meson.build': "ports = [\n  'lib/base/log.c',\n]\napp_shared = {\n  '': "
                               "['lib/base/text.c'],\n"
                               "  'weft-perf': ports,\n}\n"}
    tree.update(others)
    tree[path] = '#include "%s"\n' % name
    return tree


def includes_run_down():
    for path, name in (('lib/msg/send.c', 'core/worker.h'), ('lib/msg/send.c', 'msg/credit.h'),
                       ('lib/core/a.c', 'base/log.h'),
                       ('drivers/dpdk/engine/rx.c', 'frame/parse.h'),
                       ('drivers/dpdk/port/a.c', 'compat.h'),
                       ('drivers/dpdk/port/a.c', 'base/log.h'), ('drivers/roce/roce.c', 'lane.h'),
                       ('app/perf/a.c', 'common/cli.h'), ('app/cat/a.c', 'lib/base/text.h'),
                       ('app/perf/a.c', 'lib/base/log.h'), ('app/cat/a.c', 'weft.h')):
        good(LAYERS, layered(path, name))
    for path, name, why in (
            ('lib/base/log.c', 'core/worker.h',
             'lib/base/log.c:1: lib/base/ may not see lib/core/worker.h'),
            ('lib/core/a.h', 'msg/msg.h', 'lib/core/ may not see lib/msg/msg.h'),
            ('drivers/dpdk/port/a.c', 'engine/conn.h',
             'drivers/dpdk/port/ may not see drivers/dpdk/engine/conn.h'),
            ('drivers/dpdk/engine/a.c', 'port/port.h',
             'drivers/dpdk/engine/ may not see drivers/dpdk/port/port.h'),
            ('drivers/roce/a.c', 'core/worker.h', 'drivers/roce/ may not see lib/core/worker.h'),
            ('drivers/dpdk/engine/a.c', 'msg/msg.h',
             'drivers/dpdk/engine/ may not see lib/msg/msg.h'),
            ('app/common/a.c', 'perf/flow.h', 'app/common/ may not see app/perf/flow.h'),
            ('app/cat/a.c', 'perf/flow.h', 'app/cat/ may not see app/perf/flow.h'),
            ('app/cat/a.c', 'lib/base/log.h',
             'lib/base/log.h is neither public nor of the objects'),
            ('lib/tag/a.c', 'am/am.h', 'lib/tag/ may not see lib/am/am.h')):
        bad(why, LAYERS, layered(path, name, **{'lib/am/am.h': ''}))


def other_folders_have_one_header():
    bad("lib/msg/credit.h is lib/msg/'s own; others include lib/msg/msg.h", LAYERS,
        layered('lib/tag/a.c', 'msg/credit.h'))
    good(LAYERS, layered('lib/tag/a.c', 'msg/msg.h'))


def includes_name_their_folder():
    bad('includes are written FOLDER/FILE.h', LAYERS, layered('lib/msg/a.c', 'credit.h'))


def a_folder_of_no_layer_is_told():
    bad('drivers/new/a.c: its folder is in no list', LAYERS, layered('drivers/new/a.c', 'lane.h'))


CALLS_UP = {'lib/base/a.c': 'void above(void);\nvoid below(void) { above(); }\n'
                            'void last(void) {}\n',
            'lib/core/b.c': 'void last(void);\nvoid above(void) { last(); }\n'}


def symbols_run_down():
    bad('lib/base/a.c: lib/base/ may not use above of lib/core/b.c', LAYERS, CALLS_UP, '--build',
        'ROOT/build')
    good(LAYERS, {'lib/base/a.c': 'void below(void) {}\n',
                  'lib/core/b.c': 'void below(void);\nvoid above(void) { below(); }\n'}, '--build',
                  'ROOT/build')


def circle(size):
    return {'lib/rndv/f%d.c' % i: 'void f%d(void);\nvoid f%d(void) { f%d(); }\n'
            % ((i + 1) % size, i, (i + 1) % size)
            for i in range(size)}


def circles_are_small():
    good(LAYERS, circle(7), '--build', 'ROOT/build')
    bad('lib/rndv/: a circle of 8 files, of at most 7: f0.c', LAYERS, circle(8), '--build',
        'ROOT/build')


def unit_circle(size):
    tree = {'lib/rndv/f%d.h' % i: '' for i in range(size)}
    for i in range(size):
        tree['lib/rndv/f%d.c' % i] = '#include "rndv/f%d.h"\nvoid f%d(void) {}\n' % (
            (i + 1) % size, i)
    return tree


def circles_of_units_count_includes():
    good(LAYERS, unit_circle(7), '--build', 'ROOT/build')
    bad('lib/rndv/: a circle of 8 units, of at most 7: f0 f1', LAYERS, unit_circle(8), '--build',
        'ROOT/build')


def files_are_short():
    good(LAYERS, {'lib/base/a.c': '\n' * 800})
    bad('lib/base/a.c: 801 lines, of at most 800', LAYERS, {'lib/base/a.c': '\n' * 801})
    bad('test/a.py: 801 lines', LAYERS, {'lib/base/a.c': '', 'test/a.py': '\n' * 801})


def exceptions_only_get_fewer():
    listed = 'devtools/layers.exceptions'
    good(LAYERS, {**CALLS_UP, listed: '# why\n\nsymbol lib/base/a.c lib/core/b.c\n'}, '--build',
         'ROOT/build')
    bad('layers.exceptions: no longer needed, take it out: length lib/base/a.c', LAYERS,
        {'lib/base/a.c': '', listed: 'length lib/base/a.c\n'})


def a_build_without_the_objects_is_told():
    code, out = check(LAYERS, {'lib/base/a.c': '', 'other/a.c': ''}, '--build', 'ROOT/other')
    assert code == 1 and 'other is no build folder' in out, out
    code, out = check(LAYERS, {'other/a.c': ''})
    assert code == 1 and 'has no sources' in out, out


# ---- what is external -------------------------------------------------------------------------

UNUSED = 'check-unused.py'
USED = {'lib/base/a.c': '#include "base/a.h"\nint used(void) { return A; }\n',
        'lib/base/a.h': '#ifndef A_H\n#define A_H\n#define A 1\nint used(void);\n#endif\n',
        'app/perf/perf.c': 'int used(void);\nint main(void) { return used(); }\n'}


def unused(sentence, **files):
    bad(sentence, UNUSED,
        {**USED, **{k.replace('__', '/').replace('_dot_', '.'): v for k, v in files.items()}},
        '--build', 'ROOT/build')


def what_is_external_is_used():
    good(UNUSED, USED, '--build', 'ROOT/build')
    unused('lib/base/b.c: no other object uses alone',
           lib__base__b_dot_c='int alone(void) { return 1; }\n')
    unused('lib/base/b.c: no other object uses table',
           lib__base__b_dot_c='int table[2] = {1, 2};\n')
    unused('lib/base/b.h: B is used nowhere', lib__base__b_dot_h='#define B 1\n')
    unused('lib/base/b.h: b is used nowhere',
           lib__base__b_dot_h='/* b() */\nint b(int a,\n\tint c);\n')
    unused('lib/base/b.h: b is used nowhere',
           lib__base__b_dot_h='static inline int b(void)\n{\n\treturn 1;\n}\n')
    good(UNUSED, {**USED, 'lib/weft.h': 'int weft_do(void);\n',
                  'lib/do.c': 'int weft_do(void) { return 1; }\n'},
         '--build', 'ROOT/build')


def what_tests_alone_use_has_a_reason():
    tree = {**USED, 'lib/base/b.c': 'int b(void) { return 1; }\n',
            'test/unit/b.c': 'int b(void);\nint c(void) { return b(); }\n'}
    bad('lib/base/b.c: tests alone use b', UNUSED, tree, '--build', 'ROOT/build')
    tree['devtools/unused.exceptions'] = 'tests lib/base/b.c b -- why\n'
    good(UNUSED, tree, '--build', 'ROOT/build')
    tree['devtools/unused.exceptions'] = 'tests lib/base/b.c b\n'
    code, out = check(UNUSED, tree, '--build', 'ROOT/build')
    assert code == 1 and 'gives no reason for tests lib/base/b.c b' in out, out


# ---- headers ----------------------------------------------------------------------------------

HEADERS = 'check-headers.py'


def headers_compile_alone():
    tree = {'lib/base/a.c': '', 'lib/base/a.h': '#include <stdint.h>\nuint32_t a(void);\n'}
    good(HEADERS, tree, '--build', 'ROOT/build')
    bad('lib/base/b.h does not compile alone', HEADERS,
        {**tree, 'lib/base/b.h': 'uint32_t b(void);\n'}, '--build',
        'ROOT/build')
    good(HEADERS, {**tree, 'lib/base/b.h': '#include "base/a.h"\n'}, '--build', 'ROOT/build')
    # The build has done it where a source includes the header before all else.
    tree['lib/base/b.h'] = 'uint32_t b(void);\n'
    for source, count in (('#include <stdint.h>\n#include "base/b.h"\n', 0),
                          ('/* b */\n\n#include "base/a.h"\n#include "base/b.h"\n', 1)):
        code, out = check(HEADERS, {**tree, 'lib/base/b.c': source}, '--build', 'ROOT/build')
        assert code == 1 and '2 headers, %d first in a source' % count in out, out
        assert 'lib/base/b.h does not compile alone' in out, out


def headers_declare_what_their_source_defines():
    tree = {'lib/base/a.c': '#include "base/a.h"\nint a(void)\n{\n\treturn 0;\n}\n',
            'lib/base/a.h': '/* int b(void); */\nint a(void);\n',
            'lib/base/b.c': '#include "base/a.h"\nint b(void);\nint b(void)\n{\n\treturn a();\n}\n'}
    good(HEADERS, tree, '--build', 'ROOT/build')
    tree['lib/base/a.h'] += 'int *c(int x);\nint\nb(void);\n'
    bad('lib/base/a.h declares b(), which lib/base/b.c defines', HEADERS, tree, '--build',
        'ROOT/build')
    # An installed header is the interface of many sources.
    good(HEADERS, {**tree, 'lib/meson.build': "public_headers += files(\n  'a.h',\n)\n"},
         '--build', 'ROOT/build')


# ---- one dialect ------------------------------------------------------------------------------

STYLE = 'check-style.py'
SPDX = 'SPDX-License-Identifier: BSD-3-Clause'


def styled(name, text):
    """A tree with one file, whose first line is right."""
    return {name: {'c': '/* %s */\n', 'h': '/* %s */\n', 'md': ''}.get(name.split('.')[-1],
                                                                       '# %s\n').replace('%s', SPDX)
            + text}


def files_name_their_licence():
    good(STYLE, {'lib/a.c': '/* %s */\n' % SPDX, 'doc/a.md': 'a\n', 'LICENSE': 'a\n'})
    for name in ('lib/a.c', 'devtools/a', 'test/a.sh'):
        bad(name + ': its first lines do not contain SPDX', STYLE, {name: 'a\n'})


def lines_end():
    word = 'a' * 98
    for name in ('lib/a.c', 'devtools/a.sh', 'test/a.py', 'test/meson.build', 'doc/a.md'):
        mark = '' if name.endswith('.md') else '#'
        good(STYLE, styled(name, '%s%s b\n' % (mark, word[len(mark):])))
        bad(name + ':', STYLE, styled(name, '%s%s bc\n' % (mark, word)))
        bad('blanks at the end of the line', STYLE, styled(name, 'a \n'))
        bad('a file ends with one newline', STYLE, styled(name, 'a\n\n'))
        bad('a file ends with one newline', STYLE, styled(name, 'a'))
    good(STYLE, styled('test/a.py', '# https://a/%s\n' % word))
    good(STYLE, styled('test/a.sh', 'grep "%s bc" &&\n\techo\n' % word))
    bad('test/a.sh:2: 115 columns', STYLE, styled('test/a.sh', 'grep "%s" "bc" || b\n' % word))
    bad('lib/a.c:2: 105 columns', STYLE, styled('lib/a.c', '\t\tx = 1;' + 'y' * 78 + ' = 1;\n'))
    for text in ('| %s b |', '    %s bc', '```\n%s bc\n```', 'a [b](%s) c'):
        good(STYLE, styled('doc/a.md', text % word + '\n'))


def c_is_of_one_dialect():
    for text, why in (('int a(void *p)\n{\n\tif (p &&\n\t    p == NULL)\n\t\treturn 1;\n\treturn '
                       '0;\n}\n',
                       'lib/a.c:4: a condition tests a pointer by !p'),
                      ('// a\n', 'lib/a.c:2: comments are /* */'),
                      ('typedef struct a {\n\tint a;\n} b;\n', 'structs have no typedef'),
                      ('_Static_assert(1, "a");\n', 'static_assert()'),
                      ('int a(void)\n{\n\tstrcpy(b, c);\n}\n',
                       'lib/a.c:4: strcpy() knows no bound'),
                      ('extern int other;\n', 'a header declares other'),
                      ('/* TO' 'DO: a */\n', 'lib/a.c:2: something is not done'),
                      ('int a(void)\n{\n%s}\n' % ('\ta();\n' * 61),
                       'lib/a.c:3: a() has 61 lines, of at most 60')):
        bad(why, STYLE, styled('lib/a.c', text))
    good(STYLE, styled('lib/a.c', '/* x == NULL, // and strcpy() */\nbool a(void '
                                  '*p)\n{\n%s\treturn p == NULL;\n}\n' %
                       ('\ta("// todo");\n' * 59)))
    good(STYLE, styled('lib/a.h', '#ifndef A_H\n#define A_H\n#endif /* A_H */\n'))
    good(STYLE, styled('lib/a.c', '/* lib/a.c, a.c and weft_a() */\nint weft_a;\n'))
    bad('lib/a.c:2: there is no file b.c', STYLE, styled('lib/a.c', '/* as b.c does */\n'))
    bad('there is no function weft_b()', STYLE, styled('lib/a.c', '/* as weft_b() does */\n'))
    bad('lib/a.h: no guard', STYLE, styled('lib/a.h', '#ifndef A_H\n#define A_H\n#endif\n'))


def a_folder_has_a_map():
    def tree(where, header, about, *sources):
        guard = header.upper().replace('.', '_')
        text = '/* %s */\n/**\n * @file %s\n%s */\n#ifndef %s\n#define %s\n#endif /* %s */\n'
        return {'%s/%s' % (where, header): text % (SPDX, header, about, guard, guard, guard),
                **{'%s/%s' % (where, name): '/* %s */\n' % SPDX for name in sources}}

    for where, header in (('lib/msg', 'msg.h'), ('drivers/dpdk/engine', 'engine.h'),
                          ('drivers/dpdk/port', 'port.h'), ('drivers/dpdk/port/memif', 'memif.h'),
                          ('drivers/roce', 'roce.h')):
        why = '%s/b.c: the first comment of %s/%s does not list it' % (where, where, header)
        short = where.split('/')[-1]
        for about in (' *\ta.c  one\n *\tb.c  two\n', ' *\ta, b  both\n',
                      ' *\t%s/a.c, %s/b.c   both\n' % (short, short),
                      ' *\ta, c.h,  some\n *\tb         and one\n'):
            good(STYLE, {**tree(where, header, about, 'a.c', 'b.c'),
                         where + '/c.h': '/* %s */\n#ifndef C_H\n#define C_H\n'
                                         '#endif /* C_H */\n' % SPDX})
        # Prose, the right column and longer names are no line of the map.
        for about in (' *\ta.c  one\n', ' * As b.c does.\n *\ta.c  one\n',
                      ' *\ta.c  before b.c\n', ' *\ta  one\n *\tb_c  two\n'):
            bad(why, STYLE, tree(where, header, about, 'a.c', 'b.c'))
    bad('lib/msg/b.c: the first comment of lib/msg/msg.h', STYLE, styled('lib/msg/b.c', ''))
    good(STYLE, styled('lib/base/b.c', ''))


# ---- behaviours -------------------------------------------------------------------------------

BEHAVIOURS = 'check-behaviours.py'
LISTS = {'A': 15, 'B': 10, 'C': 9, 'D': 8, 'E': 9, 'F': 10, 'G': 5, 'S': 19, 'T': 44, 'U': 91}
ROW = '| %s | %s | %s |\n'


def words(text):
    """Exit code and output of check-words.py on one header, where no word may be left."""
    return check('check-words.py', {'devtools/words.limit': '#\n#\n0\n', 'lib/base/a.h': text})


def comments_of_declarations_are_read_alone():
    code, out = words('/** Open the port. @return the same number */\nint port_open(void);\n'
                      'struct port {\n\tint fd; /**< its descriptor */\n};\n')
    assert code == 0, out
    for beginning in ('/** The same', '/**\n * The same', '/** Its lane is up', '/** They end',
                      '/** Is it open'):
        code, out = words('/** Open a port. */\nint port_open(void);\n%s, later. */\n'
                          'int port_late(void);\n' % beginning)
        assert code == 1 and ' 1 to be replaced' in out, '%s\n%s' % (beginning, out)
    code, out = words('/** A peer who sends. */\nint peer;\n')
    assert code == 1 and 'who' in out, out


def tagged(tags, item='X1', row='', sources=None):
    """A tree whose tests have these tags of one item more than the lists, and its document."""
    lists = ''.join('/* @behaviour %s%d: s; does not apply: r */\n' % (letter, n)
                    for letter, last in LISTS.items() for n in range(1, last + 1))
    page = ''
    for letter, last in LISTS.items():
        page += '<!-- behaviours: %s1-%s%d -->\n%s<!-- end behaviours -->\n' % (
            letter, letter, last, head_of_rows() + ''.join(
                ROW % (letter + str(n), 's', 'does not apply: r') for n in range(1, last + 1)))
    page += '<!-- behaviours: %s -->\n%s<!-- end behaviours -->\n' % (item, head_of_rows() + row)
    tree = {'test/unit/msg/lists.c': lists, 'doc/behaviours.md': page,
            'test/unit/msg/a.c': tags + 'static void one(void **state)\n{\n}\nT(one)\n'}
    tree.update(sources or {})
    return tree


def head_of_rows():
    return '| Item | Behaviour | Tests, or why it does not apply |\n|---|---|---|\n'


def a_behaviour_has_a_tag_a_test_and_a_row():
    row = ROW % ('X1', 'it works, always', 'msg/a.c: one')
    good(BEHAVIOURS, tagged('/* @behaviour X1: it works, always */\n', row=row))
    good(BEHAVIOURS, tagged('/*\n * @behaviour X1: it works,\n * always\n */\n', row=row))
    more = {'test/proc/b.sh': '# @behaviour X1\n\tcheck "two" true\n',
            'test/proc/c.py': '# A word.\n# @behaviour X1\ndef three():\n    pass\n\n\nthree()\n',
            'test/guest/cases/20-four.sh': '# SPDX\n#\n# @behaviour X1\n#\n# More.\n'}
    good(BEHAVIOURS, tagged('/* @behaviour X1: it works, always */\n', sources=more, row=ROW % (
        'X1', 'it works, always', 'msg/a.c: one; guest/cases/20-four.sh; b.sh: two; c.py: three')))
    bad('doc/behaviours.md differs', BEHAVIOURS, tagged('/* @behaviour X1: it works */\n', row=row))
    bad('doc/behaviours.md differs', BEHAVIOURS,
        tagged('/* @behaviour X1: it works, always */\n', row=row, sources={
            'test/proc/b.sh': more['test/proc/b.sh']}))


def wrong_tags_are_found():
    for tags, sentence in (
            ('/* @behaviour X1 */\n', 'X1 has no sentence'),
            ('/* @behaviour X1: a */\nstatic int x;\n', 'there is no test right below the tag'),
            ('/* @behaviour X1: a */\n/* @behaviour X1: b */\n', 'X1 has another sentence'),
            ('/* @behaviour X1, X2: a */\n', 'a sentence is about one item'),
            ('/* @behaviour works: a */\n', 'no tag: @behaviour works'),
            ('/* @behaviour X2: a */\n', 'X2 has 0 places'),
            ('/* @behaviour X1: a */\nstatic void two(void **state)\n{\n}\n', 'two never runs')):
        bad(sentence, BEHAVIOURS, tagged(tags))
    tree = tagged('/* @behaviour X1: a */\n')
    tree['test/unit/msg/lists.c'] = tree['test/unit/msg/lists.c'].replace('@behaviour U7:', 'U7:')
    bad('U7 has no tag', BEHAVIOURS, tree)


tap.run([includes_run_down, other_folders_have_one_header, includes_name_their_folder,
         a_folder_of_no_layer_is_told,
         symbols_run_down, circles_are_small, circles_of_units_count_includes, files_are_short,
         exceptions_only_get_fewer,
         a_build_without_the_objects_is_told, what_is_external_is_used,
         what_tests_alone_use_has_a_reason,
         headers_compile_alone, headers_declare_what_their_source_defines,
         files_name_their_licence, lines_end, c_is_of_one_dialect,
         a_folder_has_a_map, comments_of_declarations_are_read_alone,
         a_behaviour_has_a_tag_a_test_and_a_row, wrong_tags_are_found])
