#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mutate.py [OPTION...]: do the tests detect wrong code? Chooses random mutations of the engine, of
lib/msg, of lib/wireup and of the shared-memory driver, compiles all of them as switches into one
build of a copy of the tree, and runs unit and sim for each one until a test fails.

    --mutants N     number of mutations (100)
    --seed N        of the choice; printed (default: the time)
    --only N,...    only these mutations of the choice
    --pick REGEX    chooses among the mutations whose FILE:FUNCTION matches
    --jobs N        processes at a time (the number of cores)
    --skip REGEX    programs with such a name do not run
    --resume        continues the run that wrote DIR/results.json: kills stay, and a run of cases
                    that passed is not repeated unless its program has changed
    --folder DIR    the copy and its build (build-mutate beside the build)
    --goal PERCENT  the exit code is 1 where fewer are killed (85)
    --list          prints the choice and ends

A first run of each program records which mutations each of its cases reaches, and which of these
change a value there. Only these cases run later, the cheapest of all mutations first. A failure
counts when it comes back in a second run, and when the same cases pass without the mutation. A run
that takes ten times its processor time, or that sleeps without end, has detected the mutation as
well: such kills are counted apart. Time by the clock does not count, so other work on the machine
kills nothing. devtools/mutate.equivalent names the mutations that no test can detect, with the
reason; they are not chosen.

Results: one line for each mutation, then the survivors with file, line and change. DIR/results.json
has all of it. WEFT_MUTANT=N is mutation N in a program of DIR/src/build."""

import argparse
import concurrent.futures
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import mutate_run
import mutate_source

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ('drivers/dpdk/engine/', 'drivers/shm/', 'lib/msg/', 'lib/wireup/')
EQUIVALENT = os.path.join(ROOT, 'devtools/mutate.equivalent')


def run(command, **options):
    """The output of a command that must succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)
    if done.returncode != 0:
        sys.exit('%s failed:\n%s' % (shlex.join(command), done.stdout[-4000:]))
    return done.stdout


def read(path):
    with open(path, errors='surrogateescape') as f:
        return f.read()


def write(path, text):
    """Files that stay the same are not built again."""
    if os.path.exists(path) and read(path) == text:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', errors='surrogateescape') as f:
        f.write(text)


# ---- the choice -------------------------------------------------------------------------------


def equivalents():
    """{(path, line of the source without spaces at its ends, change)}"""
    out = set()
    if os.path.exists(EQUIVALENT):
        for line in read(EQUIVALENT).splitlines():
            parts = [p.strip() for p in line.split(' | ')]
            if line and not line.startswith('#') and len(parts) == 4:
                out.add(tuple(parts[:3]))
    return out


def source_line(texts, m):
    return texts[m.path].splitlines()[m.line - 1].strip()


def mutable(name):
    return name.startswith(FOLDERS) and name.endswith(('.c', '.h'))


def copy(src):
    """The tree as it is, except for the sources that are mutated."""
    names = run(['git', '-C', ROOT, 'ls-files', '-z', '--cached', '--others',
                 '--exclude-standard']).split('\0')
    for name in filter(None, names):
        path = os.path.join(ROOT, name)
        if not os.path.isfile(path):
            continue
        to = os.path.join(src, name)
        if os.path.exists(to) and (mutable(name) or read(to) == read(path)):
            continue
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copyfile(path, to)
        shutil.copymode(path, to)


def commands(build):
    """Source -> its compiler command without output."""
    out = {}
    for entry in json.loads(read(os.path.join(build, 'compile_commands.json'))):
        words = shlex.split(entry['command'])
        if os.path.basename(words[0]) == 'ccache':
            del words[0]
        for option in ('-o', '-MF', '-MQ'):
            at = words.index(option)
            del words[at:at + 2]
        name = os.path.relpath(os.path.join(entry['directory'], entry['file']),
                               os.path.dirname(build))
        out.setdefault(name, [w for w in words if w not in ('-MD', '-c', entry['file'])])
    return out


def compiles(path, text, build, known, verdicts):
    """A header is compiled alone. VERDICTS are those of earlier runs."""
    folder = os.path.dirname(path) + '/'
    words = known.get(path) or next(known[k] for k in sorted(known) if k.startswith(folder))
    key = hashlib.sha256((text + shlex.join(words)).encode(errors='replace')).hexdigest()
    if key not in verdicts:
        with tempfile.NamedTemporaryFile('w', suffix='.c', errors='surrogateescape') as f:
            f.write(text)
            f.flush()
            verdicts[key] = subprocess.run(words + ['-w', '-fsyntax-only', f.name], cwd=build,
                                           stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL).returncode == 0
    return verdicts[key]


def choose(options, texts, build):
    """At most one mutation for each place of the source."""
    everything = []
    for path, text in sorted(texts.items()):
        everything += mutate_source.mutations(path, text)
    known = commands(build)
    left_out = equivalents()
    cache = os.path.join(options.folder, 'compiles.json')
    verdicts = mutate_run.load(cache) if options.resume else {}
    random.Random(options.seed).shuffle(everything)
    taken, chosen = set(), []
    for m in everything:
        if len(chosen) == options.mutants:
            break
        key = (m.path, m.place)
        if options.pick and not re.search(options.pick, '%s:%s' % (m.path, m.function)):
            continue
        if key in taken or (m.path, source_line(texts, m), m.change) in left_out:
            continue
        if compiles(m.path, mutate_source.write(texts[m.path], [(0, m)]), build, known, verdicts):
            taken.add(key)
            chosen.append(m)
    mutate_run.save(cache, verdicts)
    print('%d of %d mutations, --seed %d' % (len(chosen), len(everything), options.seed))
    return chosen


def describe(texts, m):
    return '%s:%d %s(): %s: %s' % (m.path, m.line, m.function, m.change, source_line(texts, m))


# ---- the build --------------------------------------------------------------------------------


def configure(src, build, mutants):
    devtools = os.path.join(ROOT, 'devtools')
    write(os.path.join(src, 'lib/weft_mutant.h'), '#define WEFT_MUTANTS %d\n' % max(mutants, 1) +
          read(os.path.join(devtools, 'mutate_hook.h')))
    write(os.path.join(src, 'lib/weft_mutant.c'),
          read(os.path.join(devtools, 'mutate_hook.c')))
    listed = os.path.join(src, 'lib/meson.build')
    write(listed, read(os.path.join(ROOT, 'lib/meson.build')).replace(
        "lib_sources += files(\n", "lib_sources += files(\n  'weft_mutant.c',\n", 1))
    set_up(src, build)


def set_up(src, build):
    """A build folder of an earlier run reads meson.build files that have changed, for new tests."""
    if os.path.exists(os.path.join(build, 'build.ninja')):
        run(['ninja', '-C', build, 'build.ninja'])
    else:
        run(['meson', 'setup', build, src])


def introspect(build, what):
    return json.loads(run(['meson', 'introspect', build, '--' + what]))


def tests_of(build, skip):
    return [t for t in introspect(build, 'tests')
            if {s.split(':')[-1] for s in t['suite']} & {'unit', 'sim'} and
            not (skip and re.search(skip, t['name']))]


def compile_all(src, build, texts, chosen, tests):
    for path, text in texts.items():
        own = [(n, m) for n, m in enumerate(chosen) if m.path == path]
        write(os.path.join(src, path), mutate_source.write(text, own) if own else text)
    files = {t['id']: t['filename'] for t in introspect(build, 'targets')}
    needed = {name for test in tests for i in test['depends'] for name in files.get(i, [])}
    run(['ninja', '-C', build] + sorted(os.path.relpath(n, build) for n in needed))


# ---- the runs ---------------------------------------------------------------------------------


def parallel(jobs, function, items):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(function, i) for i in items]):
            done.result()


def measure_all(options, programs):
    """What each program reaches is kept in the folder until the program is another one."""
    begin = time.monotonic()
    path = os.path.join(options.folder, 'cover.json')
    known = mutate_run.load(path)

    def one(name):
        programs.measure(name, known.get(name))
        with programs.lock:
            mutate_run.save(path, programs.known())

    parallel(options.jobs, one, list(programs.tests))
    print('%d programs, %d cases, %d s of processors, %d s' % (
        len(programs.cpu), sum(map(len, programs.cases.values())),
        sum(programs.cpu.values()), time.monotonic() - begin), flush=True)


def run_all(options, programs, texts, chosen):
    measure_all(options, programs)
    path = os.path.join(options.folder, 'results.json')
    fates = {}
    for n, m in enumerate(chosen):
        what = {'what': describe(texts, m), 'old': m.old, 'new': m.new}
        before = mutate_run.load(path).get(str(n), {}) if options.resume else {}
        fates[n] = before if what.items() <= before.items() else what

    def report_one(n):
        with programs.lock:
            if fates[n]['fate'] != 'open':
                print('%d %s: %s [%s]' % (n, fates[n]['fate'], fates[n]['what'],
                                          fates[n]['killer']), flush=True)
            mutate_run.save(path, fates)

    judge = mutate_run.Judge(programs, fates, report_one)
    numbers = [n for n in options.only or range(len(chosen))
               if options.only or fates[n].get('fate') not in ('killed', 'time')]
    for part in judge.rounds(numbers):
        parallel(options.jobs, lambda p: judge.judge(*p), part)
    return {n: r for n, r in fates.items() if 'fate' in r}


def report(options, results):
    count = {}
    for r in results.values():
        count[r['fate']] = count.get(r['fate'], 0) + 1
    killed = count.get('killed', 0) + count.get('time', 0)
    for fate, title in (('survived', 'survived: no case that reaches it fails'),
                        ('same', 'survived: its value is the same in each case that reaches it'),
                        ('unreached', 'reached by no program of unit and sim'),
                        ('open', 'not judged to the end')):
        if count.get(fate):
            print('\n%s:' % title)
            for number, r in sorted(results.items()):
                if r['fate'] == fate:
                    print('  %d %s' % (number, r['what']))
                    print('      %s\n      -> %s' % (' '.join(r['old'].split()),
                                                    ' '.join(r['new'].split()) or '(nothing)'))
    share = 100 * killed / max(len(results), 1)
    print('\n%d of %d killed (%d %%), %d of them by their time; %d survived, %d unreached, '
          '%d not judged; --seed %d' % (
              killed, len(results), share, count.get('time', 0),
              count.get('survived', 0) + count.get('same', 0), count.get('unreached', 0),
              count.get('open', 0), options.seed))
    return 0 if share >= options.goal else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--mutants', type=int, default=100)
    parser.add_argument('--seed', type=int, default=int(time.time()))
    parser.add_argument('--only', type=lambda s: [int(n) for n in s.split(',')])
    parser.add_argument('--pick', metavar='REGEX')
    parser.add_argument('--jobs', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--folder', default=os.environ.get(
        'WEFT_BUILD', os.path.join(ROOT, 'build')) + '-mutate')
    parser.add_argument('--goal', type=int, default=85)
    parser.add_argument('--resume', action='store_true')
    parser.add_argument('--skip', metavar='REGEX')
    parser.add_argument('--list', action='store_true')
    options = parser.parse_args()

    src = os.path.join(os.path.abspath(options.folder), 'src')
    build = os.path.join(src, 'build')
    os.makedirs(src, exist_ok=True)
    copy(src)
    configure(src, build, options.mutants)
    texts = {p: read(os.path.join(ROOT, p)) for p in
             run(['git', '-C', ROOT, 'ls-files', '--'] + list(FOLDERS)).split()
             if mutable(p) and os.path.exists(os.path.join(ROOT, p))}
    chosen = choose(options, texts, build)
    if options.list:
        for number, m in enumerate(chosen):
            print('%d %s' % (number, describe(texts, m)))
        return 0
    tests = tests_of(build, options.skip)
    compile_all(src, build, texts, chosen, tests)
    programs = mutate_run.Programs(build, tests, len(chosen))
    return report(options, run_all(options, programs, texts, chosen))


if __name__ == '__main__':
    sys.exit(main())
