# SPDX-License-Identifier: BSD-3-Clause
"""Trials of alternating programs, and comparisons of their medians with targets."""

import statistics
import sys
import time
from collections import namedtuple

from bench_report import FIGURES, figures_row, number, spread
from bench_run import Others, TrialError

STATES = ('near', 'far', 'any')
DROPPED = {'changed': 'the cores changed state', 'busy': 'other processes used the machine'}


# Comparisons of two medians with a target: whether it is met, the result, the target.
def at_least(a, b, target):
    return a / b >= target, '%.2f x' % (a / b), 'at least %.2f x' % target


def at_most(a, b, target):
    return a / b <= target, '%.2f x' % (a / b), 'at most %.2f x' % target


def at_most_more(a, b, target):
    return a - b <= target, more(a, b, None)[1], 'at most %+.0f ns' % target


def more(a, b, _):
    return True, '%+.0f ns' % (a - b), ''


def report(a, b, _):
    return True, '%.2f x' % (a / b), ''


def limit(unit):
    """A comparison of one median with a figure."""
    return lambda a, _, target: (a <= target, '%s %s' % (number(a), unit),
                                 'at most %s %s' % (number(target), unit))


def floor(unit):
    return lambda a, _, target: (a >= target, '%s %s' % (number(a), unit),
                                 'at least %s %s' % (number(target), unit))


class Figure(namedtuple('Figure', 'title value unit compare names lines sort')):
    """
    One of those that each trial gives.

    value(row); compare: [(numerator, denominator or None, test, target, state)]: the target holds
    in that state only, or in both when there is none. names: of the variants that have it, or all.
    lines(row): what a cache line took right before and right after it, ns, where a trial measures
    that itself. Without sort the cores' state does not matter.
    """

    def __new__(cls, title, value, unit, compare, names=None, lines=None, sort=True):
        return super().__new__(cls, title, value, unit, compare, names, lines, sort)


class Contest:
    """The results of the trials for one figure."""

    def __init__(self, figure, variants):
        self.figure = figure
        self.names = [n for n in variants if n in (figure.names or variants)]
        self.got = {name: {} for name in self.names}
        self.dropped = {name: dict.fromkeys(DROPPED, 0) for name in self.names}

    def add(self, name, state, row, cores):
        if name not in self.names:
            return
        value = self.figure.value(row)
        if state != 'busy' and self.figure.lines:
            before, after = (cores.named(ns) for ns in self.figure.lines(row))
            state = before if before == after else 'changed'
        if not self.figure.sort and state != 'busy':
            state = 'any'
        if state in DROPPED:
            self.dropped[name][state] += 1
        else:
            self.got[name].setdefault(state, []).append(value)

    def full(self, want, failed, late):
        """All variants in every state that occurred; in one of the states when time is short."""
        live = [n for n in self.names if n not in failed]
        full = [all(len(self.got[n].get(s, [])) >= want for n in live)
                for s in STATES if any(s in g for g in self.got.values())]
        return not live or bool(full and (any if late else all)(full))

    def rows(self):
        return [(name, state, self.got[name][state]) for name in self.names for state in STATES
                if state in self.got[name]]


class Trials:
    """Runs trials, and keeps their results: args has trials, seconds and busy."""

    def __init__(self, args, cores):
        self.args, self.cores = args, cores
        self.results = []
        self.measure = ''

    def trial(self, run, others):
        """Runs one trial: (state of the cores, what it returned), or a reason in the place of the
        state to drop it."""
        before = self.cores.state()
        others.part()
        value = run()
        busy = others.part()
        after = self.cores.state()
        if busy > self.args.busy / 100:
            return 'busy', value
        return (before[1] if before[1] == after[1] else 'changed'), value

    def alternate(self, title, variants, figure, unit, compare, sort=True):
        """variants: {name: function giving a row}; one figure of each trial."""
        print('\n%s' % title)
        self.contest([Figure(title, figure, unit, compare, sort=sort)], variants, quiet=True)

    def contest(self, figures, variants, quiet=False):
        """Variants alternate; each trial returns all of its figures."""
        contests = [Contest(f, variants) for f in figures]
        errors = {name: [] for name in variants}
        others = Others()
        begin = time.monotonic()

        def failed():
            return [n for n in variants if len(errors[n]) >= 3]

        def passed():
            return time.monotonic() - begin

        def enough():
            return all(c.full(self.args.trials, failed(), passed() > self.args.seconds / 2)
                       for c in contests)

        while passed() < self.args.seconds and not enough():
            for name in [n for n in variants if n not in failed()]:
                try:
                    state, row = self.trial(variants[name], others)
                    for c in contests:
                        c.add(name, state, row, self.cores)
                except (TrialError, KeyError, ValueError) as err:
                    errors[name].append(str(err) or repr(err))
        for c in contests:
            if not quiet:
                print('\n%s' % c.figure.title)
            self.tell(c, {n: errors[n] for n in c.names})
        sys.stdout.flush()

    def tell(self, contest, errors):
        f, rows = contest.figure, contest.rows()
        record = self.record(f.title, unit=f.unit, values=contest.got, dropped=contest.dropped,
                             errors=errors)
        record['tables'] = [(FIGURES, [figures_row(name, f.unit, state, values)
                                       for name, state, values in rows])]
        for name, state, values in rows:
            print('  %-4s  %-34s %s' % (state, name, spread(values, f.unit)))
        for name in contest.names:
            for why, text in DROPPED.items():
                if contest.dropped[name][why]:
                    self.note('%s: %d trials dropped: %s' % (name, contest.dropped[name][why],
                                                             text))
            for text in errors[name]:
                self.note('%s failed: %s' % (name, text))
        for comparison in f.compare:
            self.judge(contest.got, *comparison)

    def judge(self, got, a, b, what, target, only):
        for state in STATES:
            sides = [got[name].get(state) for name in (a, b) if name is not None]
            if all(sides):
                medians = [statistics.median(values) for values in sides]
                ok, result, wanted = what(medians[0], medians[-1], target)
                self.verdict(a + (' against ' + b if b else ''), ok, result,
                             wanted if only in (None, state) and target is not None else '',
                             state=state, enough=min(map(len, sides)) >= self.args.trials)

    def series(self, title, run, columns):
        """Trials of one program with a limit instead of a competitor. columns: [(name, unit,
        function of a row, limit of a row or None)]."""
        print('\n%s' % title)
        rows, errors = [], []
        while len(rows) < self.args.trials and len(errors) < 3:
            try:
                rows.append(run())
            except TrialError as err:
                errors.append(str(err))
        record = self.record(title, values=rows, errors=errors)
        figures = []
        for name, unit, value, limit in columns if rows else ():
            values = [value(r) for r in rows]
            figures.append(figures_row(name, unit, '', values))
            print('  %-40s %s' % (name, spread(values, unit)))
            if limit:
                ok = all(value(r) <= limit(r) for r in rows) and not errors
                self.verdict(name, ok, ('at most %s %s' % (number(max(values)), unit)).strip(),
                             ('at most %s %s'
                              % (number(max(limit(r) for r in rows)), unit)).strip(),
                             enough=len(rows) >= self.args.trials)
        record['tables'] = [(FIGURES, figures)]
        for text in errors:
            self.note('failed: %s' % text)
        sys.stdout.flush()

    # ---- records ----

    def record(self, title, **more):
        """Begins a record; verdicts and notes go to the last one."""
        self.results.append({'measure': self.measure, 'title': title, 'tables': [], 'verdicts': [],
                             'notes': [], **more})
        return self.results[-1]

    def verdict(self, what, met, result, wanted, state='', enough=True):
        """wanted: '' for a figure without a target."""
        v = {'what': what, 'state': state, 'result': result, 'wanted': wanted,
             'target': wanted or None, 'met': met,
             'enough': enough}
        self.results[-1]['verdicts'].append(v)
        text = 'for scale'
        if wanted:
            text = 'wanted %s: %s%s' % (wanted, 'met' if met else 'NOT MET',
                                        '' if enough else ' (too few trials)')
        print('  %-4s  %s: %s, %s' % (state, what, result, text))

    def note(self, text):
        self.results[-1]['notes'].append(text)
        print('        ' + text)
