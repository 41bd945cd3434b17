# SPDX-License-Identifier: BSD-3-Clause
"""packages.py: the recipes of packages agree with the build, and with each other.

devtools/check-debian.sh and devtools/check-rpm.sh make packages of them. Spack is not here:
stand-ins for its classes run the recipe, and the arguments of each set of variants are checked.
"""

import glob
import itertools
import os
import re
import sys
import types

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


class Folder(str):
    """A folder of Spack: prefix.lib is the folder lib in it."""

    def __getattr__(self, name):
        return Folder(self + '/' + name)


class Recipe:
    """Spack's recipe, run with stand-ins for the calls and the class that it uses."""

    def __init__(self):
        self.variants, self.depends = {}, []
        package = types.ModuleType('spack.package')
        package.version = package.license = package.conflicts = lambda *args, **kwargs: None
        package.variant = lambda name, default, description: self.variants.update({name: default})
        package.depends_on = lambda spec, type='link', when='': self.depends.append(
            (spec, type, when))
        meson = types.ModuleType('spack_repo.builtin.build_systems.meson')
        meson.MesonPackage = type('MesonPackage', (), {})
        sys.modules.update({'spack': types.ModuleType('spack'), 'spack.package': package,
                            'spack_repo': types.ModuleType('spack_repo'),
                            'spack_repo.builtin': types.ModuleType('builtin'),
                            'spack_repo.builtin.build_systems': types.ModuleType('systems'),
                            meson.__name__: meson})
        space = {}
        exec(compile(read(RECIPE), RECIPE, 'exec'), space)
        self.package = space['Weft']

    def args(self, chosen):
        """What meson gets with these variants. A variant that the recipe lacks is an error."""
        def satisfies(condition):
            assert condition[0] == '+' and condition[1:] in self.variants, condition
            return condition[1:] in chosen
        package = self.package()
        package.prefix = Folder('/spack/weft')
        package.spec = types.SimpleNamespace(satisfies=satisfies)
        return package.meson_args()


def the_recipe_leaves_no_feature_to_the_build():
    """Headers of the system must not decide what Spack builds. Each value must be legal."""
    options = dict(re.findall(r"^option\('(\w+)', type: '(\w+)'", read('meson_options.txt'), re.M))
    features = {name for name, kind in options.items() if kind == 'feature'}
    recipe = Recipe()
    assert recipe.variants, 'the recipe has no variants'
    for chosen in itertools.product(*((name, None) for name in recipe.variants)):
        args = dict(arg[2:].split('=') for arg in recipe.args(chosen) if arg.startswith('-D'))
        same(features, set(args) & features)
        for name, value in args.items():
            if name in recipe.variants:
                assert value == ('enabled' if name in chosen else 'disabled'), (name, value)
            legal = {'feature': ('enabled', 'disabled'), 'boolean': ('true', 'false')}
            assert value in legal.get(options[name], (value,)), (name, value)


# The names of what the build looks for, in Debian, in Fedora, and in Spack, if it has a recipe.
LIBRARIES = {
    'IPSec_MB': ('libipsec-mb-dev', 'intel-ipsec-mb-devel', None),
    'libcrypto': ('libssl-dev', 'openssl-devel', None),
    'libdpdk': ('libdpdk-dev', 'dpdk-devel', 'dpdk'),
    'libfabric': ('libfabric-dev', 'libfabric-devel', 'libfabric'),
    'libibverbs': ('libibverbs-dev', 'rdma-core-devel', 'rdma-core'),
    'libmicrohttpd': ('libmicrohttpd-dev', 'libmicrohttpd-devel', 'libmicrohttpd'),
    'libpcap': ('libpcap-dev', 'libpcap-devel', 'libpcap'),
    'libssl': ('libssl-dev', 'openssl-devel', None),
    'sys/sdt.h': ('systemtap-sdt-dev', 'systemtap-sdt-devel', None),
    'wireshark': ('libwireshark-dev', 'wireshark-devel', None),
}


def each_packaging_requires_what_the_build_uses():
    """What the build uses where it is found must be required, with the least version."""
    text = read('meson.build') + read('app/meson.build')
    looked = re.findall(r"(?:[^_]dependency|find_library|has_header)\('([\w./-]+)'"
                        r"(?:, version: '>=([\d.]+)')?", text)
    looked = dict(one for one in looked if one[0] not in ('threads', 'rt', 'm', 'rte_bus_vdev'))
    same(set(looked), set(LIBRARIES))
    control = read('debian/control').split('\n\n')[0]
    debian = dict(re.findall(r'^[ \w-]*?:? +([\w.+-]+)(?: \(>= ([\d.]+)\))?(?: \[amd64\])?,?$',
                             control, re.M))
    rpm = dict(re.findall(r'^BuildRequires: +(\S+)(?: >= (\S+))?$', read(SPEC), re.M))
    spack = dict((spec + '@').split('@')[:2] for spec, _, _ in Recipe().depends)
    for name, least in looked.items():
        for found, package in zip((debian, rpm, spack), LIBRARIES[name]):
            if package:
                assert package in found, 'the build uses %s; %s is not required' % (name, package)
                assert found[package].rstrip(':') == least, (package, found[package], least)


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


run([the_version_is_that_of_the_build, options_are_those_of_the_build,
     the_recipe_leaves_no_feature_to_the_build, each_packaging_requires_what_the_build_uses,
     both_packagings_have_the_same_files])
