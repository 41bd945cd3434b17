# SPDX-License-Identifier: BSD-3-Clause
"""packages.py: the recipes of packages agree with the build, and with each other.

devtools/check-debian.sh and devtools/check-rpm.sh make packages of them. No program here runs
Spack's recipe: it is compiled, and its options are compared with those of the build.
"""

import ast
import glob
import os
import re

from tap import run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPEC, RECIPE, RULES = 'packaging/weft.spec', 'packaging/spack/package.py', 'debian/rules'


def read(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read()


def same(a, b):
    if a != b:
        raise AssertionError('%s, but %s' % (sorted(a ^ b), 'only one of both has them'))


def the_version_is_that_of_the_build():
    version = re.search(r"version: '([0-9.]+)'", read('meson.build')).group(1)
    for path, pattern in ((SPEC, r'^Version: +(\S+)$'), (SPEC, r'^\* .* - ([0-9.]+)-1$'),
                          ('debian/changelog', r'^weft \((\S+)\)')):
        found = re.search(pattern, read(path), re.M).group(1)
        assert found == version, '%s has %s, the build %s' % (path, found, version)


def options_are_those_of_the_build():
    known = set(re.findall(r"^option\('(\w+)'", read('meson_options.txt'), re.M))
    known |= {'werror', 'buildtype'}
    for path in (SPEC, RECIPE, RULES):
        text = read(path)
        used = set(re.findall(r'-D(\w+)=', text)) | set(re.findall(r'feature\("(\w+)"\)', text))
        assert len(used) >= 5 and used <= known, '%s has %s' % (path, sorted(used - known))


def variants_are_features():
    """Each feature of Spack's recipe is a variant, and reverse."""
    text = read(RECIPE)
    tree = ast.parse(text)
    package = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    assert len(package) == 1 and package[0].name == 'Weft'
    compile(tree, RECIPE, 'exec')
    same(set(re.findall(r'variant\("(\w+)"', text)), set(re.findall(r'feature\("(\w+)"\)', text)))
    for name in re.findall(r'when="\+(\w+)"|satisfies\("\+(\w+)"\)', text):
        assert 'variant("%s"' % ''.join(name) in text, name


def both_packagings_have_the_same_files():
    """Programs, completions and pages, which %files and debian/*.install name one by one."""
    debian = ''.join(read(p) for p in glob.glob('debian/*.install', root_dir=ROOT))
    spec = re.sub(r'%{_bindir}', '/usr/bin', read(SPEC).split('\n%files\n')[1])
    spec = spec.replace('%{_datadir}', '/usr/share').replace('%{_mandir}', '/usr/share/man')
    spec = spec.replace('%{_libdir}', '/usr/lib/*')
    found = []
    for text in (debian, spec):
        found.append(set(re.findall(r'usr/(bin/[\w-]+|share/bash-completion/completions/[\w-]+|'
                                    r'share/man/man1/[\w-]+|lib/\*/weft/[\w-]+)', text)))
        assert len(found[-1]) == 25, sorted(found[-1])
    same(*found)


run([the_version_is_that_of_the_build, options_are_those_of_the_build, variants_are_features,
     both_packagings_have_the_same_files])
