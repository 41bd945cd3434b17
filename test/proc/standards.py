#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""standards.py: the installed headers compile without a warning as C99 to C17 and C++11 to
C++20, and WEFT_INIT() does where the language has designated initialisers. Prints TAP."""

import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import tap  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
LIB = os.path.join(ROOT, 'lib')
HEADERS = ['weft.h', 'weft_listen.h', 'weft_msg.h', 'weft_plan.h', 'weft_rma.h', 'weft_version.h']
C = ['c99', 'c11', 'c17']
CXX = ['c++11', 'c++14', 'c++17', 'c++20']
WARNINGS = ['-Wall', '-Wextra', '-Wpedantic', '-Wshadow', '-Werror']

# Macros without arguments, with one, with an anonymous member; as a variable and as an argument.
INIT = '''
static uint64_t imm_of(const struct weft_op_params *p)
{
	return p->imm + p->size;
}

int main(void)
{
	struct weft_worker_params none = WEFT_INIT(struct weft_worker_params);
	struct weft_listener_params port = WEFT_INIT(struct weft_listener_params, .port = 7);
	struct weft_op_params imm = WEFT_INIT(struct weft_op_params, .flags = WEFT_OP_F_IMM);

	imm.imm = 5;
	if (none.size != sizeof(none) || port.port != 7 || imm_of(&imm) != 5 + sizeof(imm))
		return 1;
	return WEFT_VERSION < WEFT_VERSION_NUMBER(0, 1, 0);
}
'''


def compile_with(standard, text, link=False):
    """Compiles the text; with link, runs the program as well."""
    cxx = standard.startswith('c++')
    # C has this exception for designated initialisers by itself; g++ 12 lacks it.
    extra = ['-Wno-missing-field-initializers'] if cxx else []
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'out')
        done = subprocess.run(
            ['c++' if cxx else 'cc', '-std=' + standard, *WARNINGS, *extra, '-I', LIB,
             '-x', 'c++' if cxx else 'c', '-', '-o', out, *([] if link else ['-c'])],
            input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
            check=False)
        assert done.returncode == 0, '%s: %s' % (standard, done.stdout)
        if link:
            subprocess.run([out], timeout=60, check=True)


def each_header_alone_in_each_standard():
    for standard in C + CXX:
        for header in HEADERS:
            compile_with(standard, '#include "%s"\nint weft_used;\n' % header)


def initialisers_in_c_and_in_cxx20():
    text = '#include "weft.h"\n#include "weft_listen.h"\n' + INIT
    for standard in C + ['c++20']:
        compile_with(standard, text, link=True)


def a_header_that_is_not_clean_is_found():
    try:
        compile_with('c99', '#include "weft.h"\nstruct s { union { int a; }; };\n')
    except AssertionError:
        return
    raise AssertionError('an anonymous union passed as C99')


if not shutil.which('c++'):
    print('1..0 # SKIP there is no C++ compiler (c++)')
    sys.exit(77)
tap.run([
    each_header_alone_in_each_standard,
    initialisers_in_c_and_in_cxx20,
    a_header_that_is_not_clean_is_found,
])
