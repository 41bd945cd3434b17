#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What devtools' programs do with what they are not used to: programs that say nothing, wrong
arguments. Prints TAP."""

import argparse
import contextlib
import io
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
DEVTOOLS = os.path.join(ROOT, 'devtools')
sys.path.insert(0, DEVTOOLS)
sys.dont_write_bytecode = True

import mutate  # noqa: E402
import mutate_run  # noqa: E402
import mutate_source  # noqa: E402
import tap  # noqa: E402
import bench_against  # noqa: E402
import bench_mpi  # noqa: E402
import bench_run  # noqa: E402
from bench_run import TrialError, pair  # noqa: E402
from bench_trials import Figure, Trials, at_most, limit  # noqa: E402


# ---- trials -----------------------------------------------------------------------------------

SERVER = ['sleep', '20']


def no_line_of_a_trial_is_lost():
    seen = []
    client = ['sh', '-c',
              'printf "1\\n2\\n3\\n"; sleep 0.2; printf "4\\n5\\n"; echo nonsense >&2; printf 6']
    assert pair(SERVER, client, {}, {}, timeout=10, watch=seen.append) == '1\n2\n3\n4\n5\n6'
    assert seen == ['1\n', '2\n', '3\n', '4\n', '5\n', '6'], seen
    assert pair(SERVER, client, {}, {}, timeout=10) == ''.join(seen)


def priority_without_autogroups_is_reported():
    with tempfile.TemporaryDirectory() as folder:
        group, switch = os.path.join(folder, 'autogroup'), os.path.join(folder, 'switch')
        assert bench_run.go_first(group, switch) == 'the kernel has no autogroups'
        nowhere = os.path.join(folder, 'none/group')
        for value, place, why in (('0', group, 'sysctl'), ('1', nowhere, 'none/group')):
            with open(switch, 'w', encoding='utf-8') as f:
                f.write(value)
            reason = bench_run.go_first(place, switch)
            assert reason and why in reason, reason
            assert bench_run.FIRST == []
        assert bench_run.go_first(group, switch) is None and bench_run.FIRST
        bench_run.FIRST.clear()


def a_client_that_says_nothing_is_ended():
    begin = time.monotonic()
    try:
        pair(SERVER, ['sh', '-c', 'echo stuck >&2; sleep 20'], {}, {}, timeout=0.5,
             watch=lambda line: None)
        raise AssertionError('it has ended')
    except TrialError as err:
        assert 'no end after 0.5 s: stuck' in str(err), err
    assert time.monotonic() - begin < 8


def what_goes_wrong_in_between_is_told():
    def fails(line):
        raise TrialError('tc: no such device')

    try:
        pair(SERVER, ['sh', '-c', 'echo 1; echo 2'], {}, {}, timeout=10, watch=fails)
        raise AssertionError('nothing was told')
    except TrialError as err:
        assert str(err) == 'tc: no such device', err


class StillCores:
    """Near cores, as corestate sees them."""

    @staticmethod
    def named(ns):
        return 'near' if ns <= 90 else 'far'

    def state(self):
        return 40, self.named(40)


def trials_are_compared_within_a_state():
    """Each figure by what was measured around it; a program that fails thrice is left out, and the
    time is kept."""
    trials = Trials(argparse.Namespace(trials=3, seconds=2, busy=100), StillCores())
    states = {'ours': itertools.cycle(((40, 41), (150, 151), (40, 151))),
              'theirs': itertools.cycle(((40, 41), (150, 151)))}

    def run(name, factor):
        before, after = next(states[name])
        return {'value': factor * before, 'lines': (before, after)}

    def fails():
        raise TrialError('no such program')

    with contextlib.redirect_stdout(io.StringIO()) as out:
        trials.contest([
            Figure('sorted', lambda r: r['value'], 'ns',
                   [('ours', 'theirs', at_most, 1.5, 'near'),
                    ('ours', None, limit('ns'), 100, None)],
                   names=['ours', 'theirs'], lines=lambda r: r['lines']),
            Figure('not sorted', lambda r: r['value'], 'ns', [], sort=False),
        ], {'ours': lambda: run('ours', 2), 'theirs': lambda: run('theirs', 1), 'absent': fails})
    first, second = trials.results
    assert set(first['values']['ours']['near']) == {80}, first
    assert set(first['values']['ours']['far']) == {300}, first
    assert first['dropped']['ours']['changed'] > 0 == first['dropped']['theirs']['changed'], first
    assert [(v['state'], v['target'] and v['met'], v['result'], v['wanted'])
            for v in first['verdicts']] == [
        ('near', False, '2.00 x', 'at most 1.50 x'), ('far', None, '2.00 x', ''),
        ('near', True, '80 ns', 'at most 100 ns'),
        ('far', False, '300 ns', 'at most 100 ns')], first['verdicts']
    assert set(second['values']['ours']) == {'any'}, second
    assert second['errors']['absent'] == ['no such program'] * 3, second
    assert 'absent failed: no such program' in second['notes'], (second, out.getvalue())


class Builds(Trials):
    """Two builds: bench.Bench with rows that cost no time."""

    def __init__(self, folder, absent, factor):
        super().__init__(argparse.Namespace(trials=1, seconds=2, busy=100, against=folder),
                         StillCores())
        self.perf, self.factor, self.absent = 'ours', factor, absent
        os.mkdir(os.path.join(folder, 'app'))
        perf = os.path.join(folder, 'app/weft-perf')
        open(perf, 'w', encoding='utf-8').close()
        os.chmod(perf, 0o755)

    def weft(self, _test, _size, perf):
        if self.absent and perf != 'ours':
            raise TrialError(self.absent + ' | server: more')
        value = 1000 * (self.factor if perf == 'ours' else 1)
        return dict.fromkeys(('overall_lat', 'overall_mr', 'overall_bw'), value)

    virtio = weft


def builds_are_compared_row_by_row():
    def rows(measure, factor, absent=''):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            b = Builds(folder, absent, factor)
            measure(b)
            return b.results

    for measure, port, count in ((bench_against.m_memif, 'memif', 9),
                                 (bench_against.m_virtio, 'virtio_user', 7)):
        for factor, latency, bandwidth in ((1.04, False, True), (1.02, True, True),
                                           (0.98, True, True), (0.96, True, False)):
            got = rows(measure, factor)
            titles = ' / '.join(r['title'] for r in got)
            assert len(got) == count and titles.count(port) == count, titles
            for what in ('8 B latency', '8 B message rate', '1 KiB', '4 KiB', '32 KiB', '64 KiB',
                         '1024 KiB'):
                assert titles.count(what + (' bandwidth' if 'KiB' in what else '')), titles
            for row in got:
                verdict, = row['verdicts']
                assert verdict['met'] == (latency if 'latency' in row['title'] else bandwidth), row
    older, = rows(bench_against.m_virtio, 1, "there is no driver 'dpdk'")
    assert older['notes'] == ["not there in the other build: there is no driver 'dpdk'"], older
    try:
        rows(lambda b: setattr(b.args, 'against', '/nonexistent') or bench_against.m_memif(b), 1)
        raise AssertionError('a folder without a build was accepted')
    except TrialError as err:
        assert '/nonexistent/app/weft-perf' in str(err), err


class Ranks(bench_mpi.Mpi):
    """MPI jobs that cost no time; tcp takes twice the time."""

    def __init__(self, _bench):
        self.program = 'mpi_measure'

    def job(self, way, program, ranks, before):
        assert ranks == 2 and before == ((), ()), before
        factor = 2 if 'self,tcp' in way else 1
        if program[0] != self.program:
            return '# OSU MPI Latency Test\n# Size            Latency (us)\n' + ''.join(
                '%-10d%21.2f\n' % (1 << bits, factor * (1 + bits)) for bits in range(23))
        return 'what,value,before,after\n' + ''.join('%s,%g,40,41\n' % (what, factor)
                                                     for what in program[1:])


def the_table_of_mpi_has_all_transports_of_a_host():
    def table(programs):
        b = Trials(argparse.Namespace(trials=1, seconds=2, busy=100), StillCores())
        kept = bench_mpi.Mpi, bench_mpi.network, os.environ['PATH']
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            for name in programs:
                os.symlink('/bin/true', os.path.join(folder, name))
            try:
                bench_mpi.Mpi, bench_mpi.network = Ranks, lambda *_: None
                os.environ['PATH'] = folder
                bench_mpi.m_table(b)
            finally:
                bench_mpi.Mpi, bench_mpi.network, os.environ['PATH'] = kept
        return {r['title']: r for r in b.results}

    without = table([])
    assert any('not there' in note for note in without["OSU's programs"]['notes']), without
    rows = table(['mpitests-osu_latency'])
    assert "OSU's programs" not in rows and len(rows) == len(without) - 1 + 7, rows.keys()
    for title in ('half round trip, 8 B, two ranks of a host',
                  'bandwidth, 32 KiB, two ranks of a host',
                  'mpitests-osu_latency, 8 B, two ranks of a host'):
        results = {v['what'].split(' against ')[1]: v['result'] for v in rows[title]['verdicts']}
        assert results == {"Open MPI's vader": '1.00 x', 'UCX posix, cma': '1.00 x',
                           "Open MPI's tcp": '0.50 x'}, results


# ---- arguments --------------------------------------------------------------------------------

def refused(sentence, *command, **settings):
    """A script of devtools ends at once with this message on standard error, having done
    nothing."""
    with tempfile.TemporaryDirectory() as kept:
        # Were an argument taken, there would be no mirror to make a system from.
        env = dict(os.environ, WEFT_NO_INSTALL='1', WEFT_FRESH_INSIDE='1', WEFT_FRESH_DIR=kept,
                   WEFT_FRESH_MIRROR='file:///dev/null', **settings)
        done = subprocess.run([os.path.join(DEVTOOLS, command[0]), *command[1:]], env=env,
                              timeout=60, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        assert done.returncode == 1, (command, settings, done)
        assert done.stdout == '' and done.stderr.count('\n') == 1, (command, settings, done)
        assert sentence in done.stderr, (command, settings, done)
        assert os.listdir(kept) == [], (command, settings, os.listdir(kept))


def fresh_sh_refuses_what_it_does_not_know():
    refused("fresh.sh: no option '--frob'; see --help", 'fresh.sh', '--frob', 'trixie', 'true')
    refused('a suite of Debian and a command are needed', 'fresh.sh')
    refused('a suite of Debian and a command are needed', 'fresh.sh', '--new', 'trixie')
    for suite in ('', '../etc', 'Trixie', '13'):
        refused("'%s' is no suite of Debian's; bookworm and trixie are" % suite, 'fresh.sh', suite,
                'true')
    for limit in ('soon', '0', '-1', '10s', ' 5'):
        refused('WEFT_FRESH_LIMIT=%s is no number of seconds' % limit, 'fresh.sh', 'trixie', 'true',
                WEFT_FRESH_LIMIT=limit)


def appears(path, seconds):
    end = time.monotonic() + seconds
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.05)
    return os.path.exists(path)


def fresh_sh_ends_debootstrap():
    """SIGTERM also ends what makes the base system."""
    with tempfile.TemporaryDirectory() as folder:
        maker, began = os.path.join(folder, 'debootstrap'), os.path.join(folder, 'began')
        ended = os.path.join(folder, 'ended')
        with open(maker, 'w', encoding='utf-8') as f:
            f.write('#!/bin/sh\ntrap "touch %s; exit 1" TERM\ntouch %s\nsleep 60 & wait\n'
                    % (ended, began))
        os.chmod(maker, 0o755)
        env = dict(os.environ, WEFT_NO_INSTALL='1', WEFT_FRESH_INSIDE='1', WEFT_FRESH_DIR=folder,
                   PATH=folder + ':' + os.environ['PATH'])
        with subprocess.Popen([os.path.join(DEVTOOLS, 'fresh.sh'), 'trixie', 'true'], env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as fresh:
            assert appears(began, 30), 'debootstrap was not started'
            fresh.terminate()
            assert fresh.wait(30) == 143, fresh.returncode
        assert appears(ended, 10), 'debootstrap still runs'


def a_killed_test_is_guarded():
    with tempfile.TemporaryDirectory() as build:
        made = os.path.join(build, 'made')
        os.mkdir(os.path.join(build, 'app'))
        for name in ('perf', 'cat', 'info'):
            os.symlink('/bin/true', os.path.join(build, 'app', 'weft-' + name))
        subprocess.run(['bash', '-c', '. "$1" "$2"; guard touch "$3"; rmdir "$dir"; kill -KILL $$',
                        'bash', os.path.join(ROOT, 'test/proc/lib.sh'), build, made],
                       timeout=60, check=False)
        assert appears(made, 20), 'the guard did nothing'


def check_clean_sh_refuses_what_it_does_not_know():
    refused('a suite of Debian and a folder are needed', 'check-clean.sh', 'trixie')
    for test in ('frob', ''):
        refused("debian/tests has no test '%s'" % test, 'check-clean.sh', 'trixie', '/dev/null/x',
                test)


def bench_sh_refuses_what_it_does_not_know():
    refused("there is no build folder and no commit 'nonsense'", 'bench.sh', '--against',
            'nonsense')
    refused("there is no build folder and no commit 'HEAD:doc'", 'bench.sh', '--against=HEAD:doc')


def arm64_sh_refuses_what_it_does_not_know():
    refused("arm64.sh: no option '--frob'; see --help", 'arm64.sh', '--frob')
    refused('arm64.sh: -k needs a pattern', 'arm64.sh', '--here', '-k')
    refused("'Trixie' is no suite of Debian's", 'arm64.sh', 'Trixie')
    refused("arm64.sh: one suite of Debian, not 'bookworm' and 'trixie'", 'arm64.sh', 'bookworm',
            'trixie')
    refused("arm64.sh: --here runs on this machine's system, so 'trixie' has no meaning",
            'arm64.sh', '--here', 'trixie')


# ---- documents --------------------------------------------------------------------------------

# What stands for something else in a quoted sentence.
BLANKS = r"\.\.\.|NAME|ADDRESS(?::9338)?|HOST|\b13377\b|\b9338\b|dpdk:"


def sources():
    """Everything that programs may say: string literals, those on several lines put together."""
    text = ''
    for folder in ('lib', 'app', 'drivers/dpdk'):
        for where, _, names in sorted(os.walk(os.path.join(ROOT, folder))):
            for name in sorted(n for n in names if n.endswith('.c')):
                with open(os.path.join(where, name), encoding='utf-8') as f:
                    text += f.read()
    return re.sub(r'"\s*\n\s*"', '', text)


def clouds_md_quotes_what_programs_say():
    with open(os.path.join(ROOT, 'doc/clouds.md'), encoding='utf-8') as f:
        rows = re.findall(r'^\| (`.*?) \|', f.read().split('## When it does not connect')[1], re.M)
    said = sources()
    assert len(rows) >= 8, rows
    for sentence in (s for row in rows for s in re.findall(r'`([^`]*)`', row)):
        pieces = [p.strip(" '") for p in re.split(BLANKS, sentence)]
        assert max(map(len, pieces)) > 8, sentence
        for piece in pieces:
            for part in piece.split(': ') if piece not in said else []:
                assert part.strip() in said, '"%s" of "%s" is said by no program' % (part, sentence)


# What documents name that is not ours, or an example.
NOT_OURS = {'weft/lane.h', 'sys/queue.h', 'FOLDER/FILE.h', 'dpdk-devbind.py', 'out.svg'}
NAMES = r'(?<![\w./*%-])([\w-][\w./-]*\.(?:c|h|py|sh|md|svg|ini))(?![\w*])'


def files_of_the_tree():
    """Paths from the root."""
    found = [name for name in os.listdir(ROOT) if os.path.isfile(os.path.join(ROOT, name))]
    for top in ('app', 'devtools', 'doc', 'drivers', 'examples', 'lib', 'packaging', 'provider',
                'test'):
        for where, _, names in os.walk(os.path.join(ROOT, top)):
            found += [os.path.relpath(os.path.join(where, name), ROOT) for name in names]
    return found


def documents(tree):
    """(path, text) of each document. Records name the files and functions of their day."""
    for path in sorted(p for p in tree if p.endswith('.md') or p == 'doc/architecture.svg'):
        if not path.startswith('doc/results/'):
            with open(os.path.join(ROOT, path), encoding='utf-8') as f:
                yield path, f.read()


def documents_name_files_that_exist():
    """Each file named in backquotes, and in the picture of the architecture, by its path or the end
    of it."""
    tree = files_of_the_tree()
    ends = {path[at:] for path in tree for at in [0] + [m.end() for m in re.finditer('/', path)]}
    count = 0
    for path, text in documents(tree):
        if path.endswith('.svg'):
            names = re.findall(r'>[\d ]*([\w./-]+\.[ch])<', text)
        else:
            names = [n for quoted in re.findall(r'`([^`\n]+)`', text)
                     for n in re.findall(NAMES, quoted)]
        count += len(names)
        for name in names:
            assert name in ends or name in NOT_OURS, '%s names %s, which does not exist' % (path,
                                                                                            name)
    assert count > 150, count


# Functions of others that no source calls, and names that are reserved.
NO_CODE = {'PMIx_server_finalize', 'WEFT_SEAL_REKEY', 'WEFT_KEYLOG'}


def documents_name_functions_and_constants_that_exist():
    """Each NAME(), and each name of Weft's own in backquotes, is a word of the sources."""
    tree = files_of_the_tree()
    words, count = set(NO_CODE), 0
    for path in tree:
        if path.endswith(('.c', '.h', '.in', '.def', '.sh', '.py', 'meson.build')):
            with open(os.path.join(ROOT, path), encoding='utf-8') as f:
                words |= set(re.findall(r'\w+', f.read()))
    with open(os.path.join(ROOT, 'lib/core/config_table.c'), encoding='utf-8') as f:
        words |= {'WEFT_' + option for option in re.findall(r'"([A-Z_]+)"', f.read())}
    for path, text in documents(tree):
        if path == 'CHANGELOG.md':
            continue
        names = re.findall(r'\b([a-zA-Z_]\w+)\(\)', text) + [
            n for quoted in re.findall(r'`([^`\n]+)`', text)
            for n in re.findall(r'\b(?:(?:FI_)?WEFT|weft)_\w+(?<!_)\b', quoted)]
        count += len(names)
        for name in names:
            assert name in words, '%s names %s, which does not exist' % (path, name)
    assert count > 200, count


# ---- results ----------------------------------------------------------------------------------

RESULT = '''<!-- bench:lat -->
**8 B latency**

|  | cores | median | quartiles | trials |
| --- | --- | --- | --- | --- |
| weft, ns | near | %d | 1 .. 2 | 7 |
| bare, ns | near | 300 | 1 .. 2 | 7 |

| comparison | cores | result | wanted |  |
| --- | --- | --- | --- | --- |
| weft against bare | near | +%d ns | at most +200 ns | %s |
| weft against bare | far | +100 ns |  |  |

%s 10:00, Weft 1.
<!-- end bench:lat -->
'''
ROW = ('| lat | 8 B latency: weft against bare | %d ns, 300 ns | near | +%d ns | at most +200 ns '
       '| %s |')


def report(folder, *arguments):
    done = subprocess.run([os.path.join(DEVTOOLS, 'bench_report.py'), '--folder', folder, '--page',
                           os.path.join(folder, 'page'), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    assert 'Traceback' not in done.stdout, done.stdout
    return done.returncode


def the_page_of_figures_has_the_newest_results():
    with tempfile.TemporaryDirectory(prefix='weft-tools.') as folder:
        def write(name, text):
            with open(os.path.join(folder, name), 'w', encoding='utf-8') as f:
                f.write(text)

        def page():
            with open(os.path.join(folder, 'page'), encoding='utf-8') as f:
                return f.read()

        write('page', '# Page\n\n<!-- bench:summary -->\n<!-- end bench:summary -->\n\n'
              'The end.\n')
        write('2026-01-02-a.md', RESULT % (600, 300, '**not met**', '2026-01-02'))
        assert report(folder, '--check') == 1
        assert report(folder, '--write') == 0 and report(folder, '--check') == 0
        assert ROW % (600, 300, '**not met**') in page() and page().endswith('The end.\n'), page()
        assert '2026-01-02 10:00, Weft 1.' in page() and 'far' not in page(), page()
        # A newer file's row takes the place of the older one's; the order of names is that of days.
        write('2026-01-03-b.md', RESULT % (450, 150, 'met', '2026-01-03'))
        assert report(folder, '--check') == 1
        assert report(folder, '--write') == 0
        assert ROW % (450, 150, 'met') in page() and '600' not in page(), page()
        assert '2026-01-02' not in page(), page()


# ---- mutations --------------------------------------------------------------------------------

MUTATED = '''\
int calls;

int least(int a, int b)
{
	if (a < b)
		return a;
	return b;
}

int most(int a, int b)
{
	if (a > b)
		return a;
	return b;
}

int twice(int a)
{
	calls++;
	return a * 2;
}

int digits(int a)
{
	int n = 1;

	while (a > 9) {
		a = a / 10;
		n++;
	}
	return n;
}

int unused(int a)
{
	return a + 7;
}
'''
CASES = '''\
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
int least(int, int), most(int, int), twice(int), digits(int);
static int set;
static void ran(const char *name)
{
	FILE *f = fopen(getenv("RAN"), "a");

	fprintf(f, "%s ", name);
	fclose(f);
}
static void compared(void **state)
{
	(void)state;
	ran("compared");
	set = 1;
	assert_int_equal(least(1, 2), 1);
	assert_int_equal(most(1, 2), 2);
}
static void doubled(void **state)
{
	(void)state;
	ran("doubled");
	assert_int_equal(set, 1);
	assert_int_equal(twice(3), 6);
}
static void counted(void **state)
{
	(void)state;
	ran("counted");
	assert_int_equal(digits(120), 3);
}
int main(void)
{
	const struct CMUnitTest first[] = {cmocka_unit_test(compared), cmocka_unit_test(doubled)};
	const struct CMUnitTest second[] = {cmocka_unit_test(counted)};
	int failed = cmocka_run_group_tests(first, NULL, NULL);

	return failed + cmocka_run_group_tests(second, NULL, NULL);
}
'''
# A text of MUTATED and its change; what becomes of it; by what; a pattern of the cases that
# run.
MUTATIONS = [
    ('a < b', '< -> <=', 'same', '', ''),
    ('a > b', 'negated', 'killed', 'p: compared', '(compared ){3}'),
    # Alone the case fails without a mutation, too. A program that has failed may run on a little.
    ('a * 2', '* -> +', 'killed', 'p: doubled',
     '(doubled ){3}(compared doubled (counted )?){2}compared doubled counted '),
    ('calls++;', 'removed', 'survived', '', '(doubled ){3}compared doubled counted '),
    ('n++;', '++ -> --', 'killed', 'p: counted', '(counted ){3}'),
    ('a = a / 10;', 'removed', 'time', 'p: time', '(counted ){3}'),
    ('a + 7', '+ -> -', 'unreached', '', '')]


def mutated_programs(folder):
    def write(name, text):
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as f:
            f.write(text)
        return os.path.join(folder, name)

    everything = mutate_source.mutations('m.c', MUTATED)
    chosen = [next(m for m in everything if (m.old, m.change) == x[:2]) for x in MUTATIONS]
    with open(os.path.join(DEVTOOLS, 'mutate_hook.h'), encoding='utf-8') as f:
        write('weft_mutant.h', '#define WEFT_MUTANTS %d\n' % len(chosen) + f.read())
    program = os.path.join(folder, 'p')
    subprocess.run(['cc', '-I', folder, '-o', program, write('cases.c', CASES),
                    write('m.c', mutate_source.write(MUTATED, list(enumerate(chosen)))),
                    os.path.join(DEVTOOLS, 'mutate_hook.c'), '-lcmocka'], check=True)
    env = {'CMOCKA_MESSAGE_OUTPUT': 'TAP', 'RAN': os.path.join(folder, 'ran')}
    return mutate_run.Programs(folder, [{'name': 'p', 'cmd': [program], 'env': env}], len(chosen))


def cases_that_reach_a_mutation_judge_it():
    if subprocess.run(['cc', '-E', '-'], input='#include <cmocka.h>\n', text=True,
                      capture_output=True).returncode:
        return  # without cmocka there is neither unit nor sim
    with tempfile.TemporaryDirectory() as folder:
        programs = mutated_programs(folder)
        mutate_run.CPU_MORE = 1
        programs.measure('p')
        programs.measure('p', programs.known()['p'])
        fates = {}
        judge = mutate_run.Judge(programs, fates, lambda n: None)

        def ran(numbers):
            with open(os.path.join(folder, 'ran'), 'w+', encoding='utf-8') as f:
                for part in judge.rounds(numbers):
                    for n, runs in part:
                        judge.judge(n, runs)
                return f.read()

        for n, (_, _, fate, killer, cases) in enumerate(MUTATIONS):
            programs.alone.clear()
            seen = ran([n])
            assert re.fullmatch(cases, seen), (n, seen)
            assert (fates[n]['fate'], fates[n]['killer']) == (fate, killer), (n, fates[n])
        # What a mutation has survived is not repeated, until the program is another one.
        assert ran([3]) == '' and fates[3]['fate'] == 'survived', fates[3]
        programs.digest['p'] = 'another'
        assert ran([3]) != '' and fates[3]['fate'] == 'survived', fates[3]


def a_mutated_program_ends_whatever_it_does():
    def run(script):
        tests = [{'name': 'p', 'cmd': ['sh', '-c', script], 'env': {}}]
        programs = mutate_run.Programs('/', tests, 1)
        programs.clock['p'] = 0.1
        result, _, took = programs.run(mutate_run.Run(1, 'p', None), {})
        assert took < 15, took
        return result

    limits = mutate_run.DRAIN, mutate_run.LATE_MORE
    mutate_run.DRAIN, mutate_run.LATE_MORE = 1, 2
    try:
        assert run('setsid sleep 20 & exit 0') == 'ok'  # a process that keeps the pipe open
        assert run('while :; do sleep 0.1; done') == 'late'
        assert run('echo "not ok 1 - what"; sleep 20') == 'what'
    finally:
        mutate_run.DRAIN, mutate_run.LATE_MORE = limits


def a_resumed_run_of_mutations_has_the_new_programs():
    with tempfile.TemporaryDirectory() as src:
        build = os.path.join(src, 'build')

        def names_with(*tests):
            with open(os.path.join(src, 'meson.build'), 'w', encoding='utf-8') as f:
                f.write("project('p')\nyes = find_program('true')\n")
                f.writelines("test('%s', yes, suite: '%s')\n" % t for t in tests)
            mutate.set_up(src, build)
            return [t['name'] for t in mutate.tests_of(build, '^skipped')]

        assert names_with(('old', 'unit')) == ['old']
        assert names_with(('old', 'unit'), ('new', 'sim'), ('other', 'proc'),
                          ('skipped', 'sim')) == ['old', 'new']


def options_of_two_words_reach_meson_whole():
    with tempfile.TemporaryDirectory() as folder:
        meson = os.path.join(folder, 'meson')
        with open(meson, 'w', encoding='utf-8') as f:
            f.write('#!/bin/sh\nprintf "%s\\n" "$@" >"$0.log"\n')
        os.chmod(meson, 0o755)
        # A configured folder: its options are set again.
        open(os.path.join(folder, 'build.ninja'), 'w', encoding='utf-8').close()
        subprocess.run(['bash', '-c', '. "$1"; weft_configure "$2" -Dc_args="-g1 -O2" --werror',
                        'bash', os.path.join(DEVTOOLS, 'setup.sh'), folder], check=True,
                       env={**os.environ, 'WEFT_WERROR': '1',
                            'PATH': folder + ':' + os.environ['PATH']})
        with open(meson + '.log', encoding='utf-8') as f:
            assert f.read().split('\n')[:4] == ['configure', folder, '-Dwerror=true',
                                                '-Dc_args=-g1 -O2'], 'split'


TESTS = [no_line_of_a_trial_is_lost, a_client_that_says_nothing_is_ended,
         priority_without_autogroups_is_reported,
         what_goes_wrong_in_between_is_told, trials_are_compared_within_a_state,
         fresh_sh_refuses_what_it_does_not_know, check_clean_sh_refuses_what_it_does_not_know,
         builds_are_compared_row_by_row, the_table_of_mpi_has_all_transports_of_a_host,
         bench_sh_refuses_what_it_does_not_know,
         a_killed_test_is_guarded,
         arm64_sh_refuses_what_it_does_not_know, clouds_md_quotes_what_programs_say,
         documents_name_files_that_exist, documents_name_functions_and_constants_that_exist,
         the_page_of_figures_has_the_newest_results, cases_that_reach_a_mutation_judge_it,
         a_mutated_program_ends_whatever_it_does, a_resumed_run_of_mutations_has_the_new_programs,
         options_of_two_words_reach_meson_whole] + ([fresh_sh_ends_debootstrap]
                                                   if os.getuid() == 0 else [])


tap.run(TESTS)
