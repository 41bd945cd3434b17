# SPDX-License-Identifier: BSD-3-Clause
"""Runs of test programs for mutate.py: what each case of a program reaches (mutate_hook.c records
it), and what becomes of a mutation when the cases that reach it run."""

import collections
import hashlib
import json
import os
import resource
import signal
import struct
import subprocess
import tempfile
import threading
import time

# struct cover of mutate_hook.c.
ROWS = 1024
HEAD = struct.Struct('=I%df' % ROWS)
REACHED, DIFFERS = 1, 2

# Cases of a program that take about the same processor time run together.
CLASSES = (0.1, 1, 10)
CPU_FACTOR, CPU_MORE = 10, 5
# A program that sleeps this long and uses no processor hangs; and no run takes longer by the clock
# than LONGEST, or than LATE_FACTOR times its time without a mutation and LATE_MORE.
ASLEEP = 60
LONGEST = 3600
LATE_FACTOR, LATE_MORE = 20, 300
DRAIN = 10  # s for the output of a program that has ended
TICK = os.sysconf('SC_CLK_TCK')

# A program with some of its cases (None: all), and their processor time without a mutation.
Run = collections.namedtuple('Run', 'cost name cases')


def read_cover(data, mutants):
    """(processor time of each case, {mutations reached outside of cases}, [{those of a case}, ...],
    {mutations whose place is reached, with the same value or another}). The third counts only
    mutations that change a value."""
    cases, *cpu = HEAD.unpack_from(data)
    seen = [data[at:at + mutants] for at in range(HEAD.size, HEAD.size + ROWS * mutants, mutants)]

    def those(row, bit):
        return {n for n, byte in enumerate(row) if byte & bit}

    reached = set().union(*(those(row, REACHED) for row in seen[:cases + 1]))
    return (cpu[1:cases + 1], those(seen[0], DIFFERS),
            [those(row, DIFFERS) for row in seen[1:cases + 1]], reached)


def processes(session):
    """(clock ticks, is one of them not asleep) of the processes of a session."""
    ticks, awake = 0, False
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/stat' % pid) as f:
                fields = f.read().rpartition(')')[2].split()
            if int(fields[3]) != session:
                continue
            states = []
            for thread in os.listdir('/proc/%s/task' % pid):
                with open('/proc/%s/task/%s/stat' % (pid, thread)) as f:
                    states.append(f.read().rpartition(')')[2].split()[0])
        except (OSError, ValueError):
            continue
        ticks += int(fields[11]) + int(fields[12])
        awake = awake or any(s in 'RD' for s in states)
    return ticks, awake


def end_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Watch(threading.Thread):
    """Ends a program that hangs. A machine with other work makes a program late, and does not let
    it sleep, so only time without a process that could run counts."""

    def __init__(self, pid, asleep, longest):
        super().__init__(daemon=True)
        self.pid, self.limit, self.longest = pid, asleep, longest
        self.done = threading.Event()
        self.hung = self.late = False

    def run(self):
        begin = last_awake = time.monotonic()
        before = -1
        while not self.done.wait(2):
            now = time.monotonic()
            ticks, awake = processes(self.pid)
            if awake or ticks > before + 2:
                last_awake = now
            before = ticks  # a thread that wakes now and then adds up to any number
            self.hung = now - last_awake > self.limit
            self.late = now - begin > self.longest
            if self.hung or self.late:
                end_group(self.pid)
                return


class Programs:
    """The test programs of a build, each with its times and what its cases reach."""

    def __init__(self, build, tests, mutants):
        self.build = build
        self.mutants = mutants
        self.lock = threading.Lock()
        self.tests = {t['name']: t for t in tests}
        self.digest = {}
        # Processor time of a program; its seconds; of each case; mutations outside of cases, of
        # each case, and of all.
        self.cpu, self.clock, self.cases = {}, {}, {}
        self.outside, self.inside, self.reached = {}, {}, {}
        self.alone = {}  # (program, cases) -> do they pass without a mutation?

    def start(self, run, env, folder):
        limit = self.limit(run)

        def limits():
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))

        test = self.tests[run.name]
        env = {**os.environ, **test['env'], **env, 'TMPDIR': folder}
        if run.cases is not None:
            env['WEFT_MUTANT_CASES'] = ','.join(map(str, run.cases))
        # Lines of a test's result come when it ends.
        return subprocess.Popen(['stdbuf', '-oL'] + test['cmd'], env=env,
                                cwd=test.get('workdir') or self.build,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, start_new_session=True,
                                preexec_fn=limits)

    def limit(self, run):
        return int(CPU_FACTOR * run.cost + CPU_MORE) if run.cost else 600

    def run(self, run, env):
        """(result, processor time, time): the result is ok, time, late, or what failed."""
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix='weft-mutate.') as folder:
            p = self.start(run, env, folder)
            clock = self.clock.get(run.name, 120)
            watch = Watch(p.pid, ASLEEP + 3 * clock,
                          min(LONGEST, LATE_MORE + LATE_FACTOR * clock))
            watch.start()
            failed = []

            def read():
                for line in p.stdout:
                    if line.startswith(b'not ok') and not failed:
                        failed.append(line.decode(errors='replace').split('-', 1)[-1].strip())
                        end_group(p.pid)

            reader = threading.Thread(target=read, daemon=True)
            reader.start()
            _, status, used = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            watch.done.set()
            end_group(p.pid)
            # A process of another session may keep the pipe open.
            reader.join(DRAIN)
            if not reader.is_alive():
                p.stdout.close()
        cpu = used.ru_utime + used.ru_stime
        if failed:
            result = failed[0]
        elif p.returncode in (0, 77):
            result = 'ok'
        elif (watch.hung or p.returncode == -signal.SIGXCPU or
              cpu >= self.limit(run) - 0.1):
            result = 'time'
        else:
            result = 'late' if watch.late else 'exit code %d' % p.returncode
        return result, cpu, time.monotonic() - begin

    def measure(self, name, known=None):
        """Runs all of a program, or takes over what was KNOWN of the same program."""
        with open(self.tests[name]['cmd'][0], 'rb') as f:
            self.digest[name] = hashlib.sha256(f.read()).hexdigest()[:16]
        if not known or known['digest'] != self.digest[name]:
            known = self.cover(name)
        if not known:
            return
        with self.lock:
            self.cpu[name], self.clock[name] = known['cpu'], known['clock']
            self.cases[name] = known['cases']
            self.outside[name] = set(known['outside'])
            self.inside[name] = [set(s) for s in known['inside']]
            self.reached[name] = set(known['reached'])

    def cover(self, name):
        size = HEAD.size + ROWS * self.mutants
        with tempfile.NamedTemporaryFile(prefix='weft-mutate.') as f:
            f.truncate(size)
            result, cpu, took = self.run(Run(0, name, None), {'WEFT_MUTANT_COVER': f.name})
            f.seek(0)
            cases, outside, inside, reached = read_cover(f.read(), self.mutants)
        if result == 'ok':
            return {'digest': self.digest[name], 'cpu': cpu, 'clock': took, 'cases': cases,
                    'outside': sorted(outside), 'inside': [sorted(s) for s in inside],
                    'reached': sorted(reached)}
        print('%s fails without a mutation (%s) and is left out' % (name, result), flush=True)
        return None

    def known(self):
        """What measure() takes over."""
        return {name: {'digest': self.digest[name], 'cpu': self.cpu[name],
                       'clock': self.clock[name], 'cases': self.cases[name],
                       'outside': sorted(self.outside[name]),
                       'inside': [sorted(s) for s in self.inside[name]],
                       'reached': sorted(self.reached[name])} for name in self.cpu}

    def reaching(self, number):
        """The runs for a mutation, the cheapest first."""
        out = []
        for name in self.cpu:
            if number in self.outside[name]:
                out.append(Run(self.cpu[name], name, None))
                continue
            before = self.cpu[name] - sum(self.cases[name])
            classes = {}
            for case, seen in enumerate(self.inside[name]):
                if number in seen:
                    cost = self.cases[name][case]
                    classes.setdefault(sum(cost > c for c in CLASSES), []).append(case)
            for cases in classes.values():
                cost = max(before, 0) + sum(self.cases[name][c] for c in cases)
                out.append(Run(cost, name, tuple(cases)))
        return sorted(out, key=lambda r: (r.cost, r.name, r.cases or ()))

    def label(self, run):
        """Names a run of this very program."""
        return ' '.join([run.name, self.digest[run.name], ','.join(map(str, run.cases or ['all']))])

    def passes(self, run):
        """Do these cases pass without a mutation?"""
        key = self.label(run)
        if key not in self.alone:
            self.alone[key] = self.run(run, {})[0] == 'ok'
        return self.alone[key]

    def fails(self, run, number):
        """Twice the same kind of failure with the mutation, none without: what failed, or ''. A
        program that fails alone for lack of the cases before runs as a whole."""
        env = {'WEFT_MUTANT': str(number)}
        if self.run(run, env)[0] in ('ok', 'late'):
            return ''
        again = self.run(run, env)[0]
        if again in ('ok', 'late'):
            return ''
        if self.passes(run):
            return '%s: %s' % (run.name, again)
        if run.cases is None:
            return ''
        return self.fails(Run(self.cpu[run.name], run.name, None), number)


class Judge:
    """What becomes of each mutation: open, killed, time (killed by its time), survived, same
    (survived: reached, and no case makes a difference to its value) or unreached."""

    def __init__(self, programs, fates, report):
        self.programs, self.fates, self.report = programs, fates, report

    def rounds(self, numbers):
        """The cheap runs of all mutations come first. Yields lists of (mutation, runs)."""
        todo = {n: self.programs.reaching(n) for n in numbers}
        for n, runs in todo.items():
            seen = set(self.fates.setdefault(n, {}).setdefault('passed', []))
            todo[n] = [r for r in runs if self.programs.label(r) not in seen]
            self.fates[n]['fate'] = 'open'
        for top in (0.3, 1, 3, 10, 30, float('inf')):
            part = []
            for n in numbers:
                if self.fates[n]['fate'] == 'open':
                    part.append((n, [r for r in todo[n] if r.cost <= top]))
                    todo[n] = [r for r in todo[n] if r.cost > top]
            yield [p for p in part if p[1]]
            for n in numbers:
                if self.fates[n]['fate'] == 'open' and not todo[n]:
                    self.settle(n)

    def settle(self, n):
        reached = any(n in r for r in self.programs.reached.values())
        fate = 'survived' if self.programs.reaching(n) else 'same' if reached else 'unreached'
        self.fates[n].update(fate=fate, killer='')
        self.report(n)

    def judge(self, n, runs):
        for run in runs:
            failed = self.programs.fails(run, n)
            if failed:
                fate = 'time' if failed.endswith(': time') else 'killed'
                self.fates[n].update(fate=fate, killer=failed)
                break
            self.fates[n]['passed'].append(self.programs.label(run))
        self.report(n)


def load(path):
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        return json.load(f)


def save(path, what):
    """A run that is ended leaves the old file or the new one."""
    with open(path + '.new', 'w') as f:
        json.dump(what, f, indent=1)
    os.replace(path + '.new', path)
