#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mutate.py [OPTION...]: do the tests detect wrong code? Chooses random mutations of the engine, of
lib/msg, of lib/wireup and of the shared-memory driver, compiles all of them as switches into one
build of a copy of the tree, and runs unit and sim for each one until a test fails.

    --mutants N     number of mutations (100)
    --seed N        of the choice; printed (default: the time)
    --only N,...    only these mutations of the choice
    --jobs N        processes at a time (the number of cores)
    --folder DIR    the copy and its build (build-mutate beside the build)
    --goal PERCENT  the exit code is 1 where fewer are killed (85)
    --list          prints the choice and ends

A first run of each program records which mutations it reaches; only these programs run later, the
fastest first. A failure counts when it comes back in a second run. A program that takes ten times
its processor time, or thirty times its time by the clock, has detected the mutation as well: such
kills are counted apart. devtools/mutate.equivalent names the mutations that no test can detect,
with the reason; they are not chosen.

Results: one line for each mutation, then the survivors with file, line and change. DIR/results.json
has all of it. WEFT_MUTANT=N is mutation N in a program of DIR/src/build."""

import argparse
import concurrent.futures
import json
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import mutate_source

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ('drivers/dpdk/engine/', 'drivers/shm/', 'lib/msg/', 'lib/wireup/')
EQUIVALENT = os.path.join(ROOT, 'devtools/mutate.equivalent')

HEADER = '''\
#ifndef WEFT_MUTANT_H
#define WEFT_MUTANT_H
extern int weft_mutant;
extern unsigned char *weft_mutant_reached;
static inline int mutant(int number)
{
	weft_mutant_reached[number] = 1;
	return weft_mutant == number;
}
#endif
'''

# The file is shared memory: it keeps what a program that is killed has reached, and its children.
SOURCE = '''\
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "weft_mutant.h"
static unsigned char none[%d];
int weft_mutant = -1;
unsigned char *weft_mutant_reached = none;
__attribute__((constructor(101))) static void weft_mutant_init(void)
{
	const char *number = getenv("WEFT_MUTANT"), *file = getenv("WEFT_MUTANT_REACHED");
	void *map;
	int fd;

	if (number)
		weft_mutant = atoi(number);
	if (!file)
		return;
	fd = open(file, O_RDWR | O_CLOEXEC);
	map = mmap(NULL, sizeof(none), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		abort();
	close(fd);
	weft_mutant_reached = map;
}
'''


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


def compiles(path, text, build, known):
    """A header is compiled alone."""
    folder = os.path.dirname(path) + '/'
    words = known.get(path) or next(known[k] for k in sorted(known) if k.startswith(folder))
    with tempfile.NamedTemporaryFile('w', suffix='.c', errors='surrogateescape') as f:
        f.write(text)
        f.flush()
        return subprocess.run(words + ['-w', '-fsyntax-only', f.name], cwd=build,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0


def choose(options, texts, build):
    """At most one mutation for each place of the source."""
    everything = []
    for path, text in sorted(texts.items()):
        everything += mutate_source.mutations(path, text)
    known = commands(build)
    left_out = equivalents()
    random.Random(options.seed).shuffle(everything)
    taken, chosen = set(), []
    for m in everything:
        if len(chosen) == options.mutants:
            break
        key = (m.path, m.place)
        if key in taken or (m.path, source_line(texts, m), m.change) in left_out:
            continue
        if compiles(m.path, mutate_source.write(texts[m.path], [(0, m)]), build, known):
            taken.add(key)
            chosen.append(m)
    print('%d of %d mutations, --seed %d' % (len(chosen), len(everything), options.seed))
    return chosen


def describe(texts, m):
    return '%s:%d %s(): %s: %s' % (m.path, m.line, m.function, m.change, source_line(texts, m))


# ---- the build --------------------------------------------------------------------------------


def configure(src, build, mutants):
    write(os.path.join(src, 'lib/weft_mutant.h'), HEADER)
    write(os.path.join(src, 'lib/weft_mutant.c'), SOURCE % max(mutants, 1))
    listed = os.path.join(src, 'lib/meson.build')
    write(listed, read(os.path.join(ROOT, 'lib/meson.build')).replace(
        "lib_sources += files(\n", "lib_sources += files(\n  'weft_mutant.c',\n", 1))
    if not os.path.exists(os.path.join(build, 'build.ninja')):
        run(['meson', 'setup', build, src])


def compile_all(src, build, texts, chosen):
    for path, text in texts.items():
        own = [(n, m) for n, m in enumerate(chosen) if m.path == path]
        write(os.path.join(src, path), mutate_source.write(text, own) if own else text)
    targets = run([sys.executable, os.path.join(ROOT, 'devtools/testcount.py'), 'targets', build,
                   'unit', 'sim']).split()
    run(['ninja', '-C', build] + targets)


# ---- the runs ---------------------------------------------------------------------------------


class Programs:
    """The test programs of a build, each with its times and what it reaches."""

    def __init__(self, build, mutants):
        self.build = build
        self.mutants = mutants
        self.lock = threading.Lock()
        self.tests = {}
        for test in json.loads(run(['meson', 'introspect', build, '--tests'])):
            if {s.split(':')[-1] for s in test['suite']} & {'unit', 'sim'}:
                self.tests[test['name']] = test
        self.cpu, self.clock, self.reached = {}, {}, {}

    def start(self, name, env, limit_cpu, folder):
        def limits():
            resource.setrlimit(resource.RLIMIT_CPU, (limit_cpu, limit_cpu + 5))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))

        test = self.tests[name]
        # Lines of a test's result come when it ends.
        words = ['stdbuf', '-oL'] + test['cmd']
        return subprocess.Popen(words, cwd=test.get('workdir') or self.build,
                                env={**os.environ, **test['env'], **env, 'TMPDIR': folder},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, start_new_session=True,
                                preexec_fn=limits)

    def run(self, name, env):
        """(result, processor time, time): the result is ok, time, or what failed."""
        limit_cpu = int(10 * self.cpu.get(name, 60) + 10)
        limit_clock = 30 * self.clock.get(name, 20) + 60
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix='weft-mutate.') as folder:
            p = self.start(name, env, limit_cpu, folder)
            failed = []
            late = threading.Timer(limit_clock, lambda: end_group(p.pid))
            late.start()
            for line in p.stdout:
                if line.startswith(b'not ok'):
                    failed.append(line.decode(errors='replace').split('-', 1)[-1].strip())
                    break
            if failed:
                end_group(p.pid)
            rest = threading.Thread(target=lambda: [None for _ in p.stdout])
            rest.start()
            _, status, used = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            end_group(p.pid)
            rest.join(10)
            p.stdout.close()
            late.cancel()
        took = time.monotonic() - begin
        cpu = used.ru_utime + used.ru_stime
        if failed:
            result = failed[0]
        elif p.returncode in (0, 77):
            result = 'ok'
        elif cpu >= limit_cpu or took >= limit_clock:
            result = 'time'
        else:
            result = 'exit code %d' % p.returncode
        return result, cpu, took

    def measure(self, name):
        with tempfile.NamedTemporaryFile(prefix='weft-mutate.') as f:
            f.write(bytes(self.mutants))
            f.flush()
            result, cpu, took = self.run(name, {'WEFT_MUTANT_REACHED': f.name})
            f.seek(0)
            seen = f.read()
        with self.lock:
            if result != 'ok':
                print('%s fails without a mutation (%s) and is left out' % (name, result))
                del self.tests[name]
                return
            self.cpu[name], self.clock[name] = cpu, took
            self.reached[name] = {n for n, byte in enumerate(seen) if byte}

    def reaching(self, number):
        return sorted((n for n in self.tests if number in self.reached[n]),
                      key=lambda n: self.cpu[n])


def end_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def try_mutant(programs, number):
    """What becomes of a mutation: (killed, time, survived, unreached; its killer; programs)."""
    names = programs.reaching(number)
    env = {'WEFT_MUTANT': str(number)}
    for i, name in enumerate(names):
        first = programs.run(name, env)[0]
        if first == 'ok':
            continue
        again = first if first == 'time' else programs.run(name, env)[0]
        if again != 'ok':
            fate = 'time' if again == 'time' else 'killed'
            return fate, '%s: %s' % (name, again), i + 1
    return ('survived' if names else 'unreached'), '', len(names)


def parallel(jobs, function, items):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(function, i) for i in items]):
            done.result()


def run_all(options, programs, texts, chosen):
    begin = time.monotonic()
    parallel(options.jobs, programs.measure, list(programs.tests))
    print('%d programs, %d s of processors, %d s' % (len(programs.tests),
                                                    sum(programs.cpu.values()),
                                                    time.monotonic() - begin), flush=True)
    results = {}

    def one(number):
        fate, killer, ran = try_mutant(programs, number)
        with programs.lock:
            results[number] = {'fate': fate, 'killer': killer, 'programs': ran,
                               'what': describe(texts, chosen[number]),
                               'old': chosen[number].old, 'new': chosen[number].new}
            print('%d %s: %s [%s]' % (number, fate, results[number]['what'],
                                      killer or '%d programs' % ran), flush=True)

    parallel(options.jobs, one, options.only or range(len(chosen)))
    return results


def report(options, results):
    count = {}
    for r in results.values():
        count[r['fate']] = count.get(r['fate'], 0) + 1
    killed = count.get('killed', 0) + count.get('time', 0)
    for fate, title in (('survived', 'survived: no program that reaches it fails'),
                        ('unreached', 'reached by no program of unit and sim')):
        if count.get(fate):
            print('\n%s:' % title)
            for number, r in sorted(results.items()):
                if r['fate'] == fate:
                    print('  %d %s' % (number, r['what']))
                    print('      %s\n      -> %s' % (' '.join(r['old'].split()),
                                                    ' '.join(r['new'].split()) or '(nothing)'))
    share = 100 * killed / max(len(results), 1)
    print('\n%d of %d killed (%d %%), %d of them by their time; %d survived, %d unreached; '
          '--seed %d' % (killed, len(results), share, count.get('time', 0),
                         count.get('survived', 0), count.get('unreached', 0), options.seed))
    return 0 if share >= options.goal else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--mutants', type=int, default=100)
    parser.add_argument('--seed', type=int, default=int(time.time()))
    parser.add_argument('--only', type=lambda s: [int(n) for n in s.split(',')])
    parser.add_argument('--jobs', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--folder', default=os.environ.get(
        'WEFT_BUILD', os.path.join(ROOT, 'build')) + '-mutate')
    parser.add_argument('--goal', type=int, default=85)
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
    compile_all(src, build, texts, chosen)
    results = run_all(options, Programs(build, len(chosen)), texts, chosen)
    write(os.path.join(options.folder, 'results.json'), json.dumps(results, indent=1))
    return report(options, results)


if __name__ == '__main__':
    sys.exit(main())
