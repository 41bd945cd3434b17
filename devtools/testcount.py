#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts tests and prints the summary that ends devtools/test.sh.

testcount.py meson LABEL TESTLOG.JSON RECORDS NAME...
                                                adds the tests of one `meson test` run of the
                                                programs NAME... to RECORDS
testcount.py check NAME RC LOG RECORDS          adds one check: exit code 0 passed, 77 skipped,
                                                else failed
testcount.py names BUILDDIR SUITE...            prints the tests of these suites: -SUITE leaves
                                                out those of a suite, +SUITE those of no such one
testcount.py targets BUILDDIR SUITE...          prints the ninja targets that these tests need
testcount.py sets BUILDDIR                      prints each test after its set: presubmit, merge
                                                (CI runs both) or nightly
testcount.py sum RECORDS                        prints skips, failures and the last line

A test program that prints TAP (cmocka does) counts once per test in it; any other program counts
once. A program that dies, times out, leaks, or ends before its plan is complete counts as a further
failure, and so does one that the run has not begun. RECORDS has one JSON object per line.
"""

import itertools
import json
import os
import re
import subprocess
import sys

TAP = re.compile(r'^\s*(not )?ok\b\s*(\d+)?\s*(?:-\s*)?([^#]*?)\s*(?:#\s*(SKIP|TODO)\b:?\s*(.*))?$')
PLAN = re.compile(r'^\s*1\.\.(\d+)\s*(?:#\s*SKIP\b\s*(.*))?$', re.I)
TAIL = 40


def tail(text, lines=TAIL):
    return '\n'.join(text.rstrip().splitlines()[-lines:])


def last_words(lines):
    for line in reversed(lines):
        line = line.strip().lstrip('#').strip()
        if line:
            return line
    return 'no reason given'


def record(out, name, result, why=''):
    out.write(json.dumps({'name': name, 'result': result, 'why': why}) + '\n')


def count_program(out, name, entry):
    stdout = entry.get('stdout') or ''
    stderr = entry.get('stderr') or ''
    rc = entry.get('returncode', 0)
    lines = stdout.splitlines()
    planned = seen = failed = 0
    said = []
    for at, line in enumerate(lines):
        plan = PLAN.match(line)
        tap = TAP.match(line)
        if plan:
            planned += int(plan.group(1))
        elif tap:
            seen += 1
            test = '%s: %s' % (name, tap.group(3) or tap.group(5) or tap.group(2) or seen)
            if tap.group(4) == 'SKIP':
                why = tap.group(5) if tap.group(3) and tap.group(5) else last_words(said)
                record(out, test, 'skipped', why)
            elif tap.group(1):
                failed += 1
                # cmocka prints the reason after the line, in comments.
                why = list(itertools.takewhile(lambda s: s.startswith('#'), lines[at + 1:]))
                record(out, test, 'failed', '\n'.join(said[-20:] + why) + '\n' + tail(stderr, 20))
            else:
                record(out, test, 'passed')
            said = []
        else:
            said.append(line)
    log = tail(stdout) + '\n' + tail(stderr)
    if entry.get('result') == 'TIMEOUT':
        record(out, name, 'failed', 'took longer than it may\n' + log)
    elif entry.get('result') == 'INTERRUPT':
        record(out, name, 'failed', 'was ended at the time limit of its step or of the run\n' + log)
    elif rc == 77 and not seen:
        record(out, name, 'skipped', last_words((stderr + '\n' + stdout).splitlines()))
    elif seen < planned or (rc != 0 and not failed):
        how = 'ended'
        if rc:
            how = 'died of signal %d' % -rc if rc < 0 else 'ended with exit code %d' % rc
        if planned:
            how += ' after %d of %d tests' % (seen, planned)
        record(out, name, 'failed', how + '\n' + log)
    elif not seen:
        record(out, name, 'passed' if rc == 0 else 'failed', '' if rc == 0 else log)


def add_meson(label, path, records, names):
    entries = []
    if os.path.exists(path):
        with open(path) as log:
            # The last line of a run that was killed may lack its end.
            entries = [json.loads(line) for line in log if line.endswith('}\n')]
    missing = list(names)
    with open(records, 'a') as out:
        for entry in entries:
            # "weft:unit / name", or just "name" when there is one suite only.
            suite, _, name = entry['name'].rpartition(' / ')
            suite = suite.split(':')[-1] + '/' if suite else ''
            count_program(out, '%s %s%s' % (label, suite, name), entry)
            if name in missing:
                missing.remove(name)
        for name in missing:
            record(out, '%s %s' % (label, name), 'failed',
                   'did not run: the time of its step or of the run was over, or meson failed')


def add_check(name, rc, log, records):
    with open(log, errors='replace') as f:
        text = f.read()
    with open(records, 'a') as out:
        if rc == 0:
            record(out, name, 'passed')
        elif rc == 77:
            record(out, name, 'skipped', last_words(text.splitlines()))
        else:
            record(out, name, 'failed', 'ended with exit code %d\n%s' % (rc, tail(text)))


def introspect(build, what):
    out = subprocess.run(['meson', 'introspect', build, '--' + what], check=True,
                         stdout=subprocess.PIPE).stdout
    return json.loads(out)


def labels(test):
    return {label.split(':')[-1] for label in test['suite']}


def tests_of(build, suites):
    without = {s[1:] for s in suites if s.startswith('-')}
    needed = {s[1:] for s in suites if s.startswith('+')}
    chosen = set(suites) - {'-' + s for s in without} - {'+' + s for s in needed}
    for test in introspect(build, 'tests'):
        own = labels(test)
        if own & chosen and not own & without and needed <= own:
            yield test


def targets(build, suites):
    """The files that a test runs or reads are in the build folder."""
    files = {t['id']: t['filename'] for t in introspect(build, 'targets')}
    wanted = set()
    for test in tests_of(build, suites):
        for name in itertools.chain.from_iterable(files.get(i, []) for i in test['depends']):
            wanted.add(os.path.relpath(name, os.path.abspath(build)))
    print('\n'.join(sorted(wanted)))


def sets(build):
    lines = []
    for test in introspect(build, 'tests'):
        own = labels(test)
        set_ = 'merge'
        if 'nightly' in own:
            set_ = 'nightly'
        elif own & {'unit', 'sim'}:
            set_ = 'presubmit'
        lines.append((('presubmit', 'merge', 'nightly').index(set_), set_,
                      test['suite'][0].split(':')[-1], test['name']))
    for _, set_, suite, name in sorted(lines):
        print('%-9s %s / %s' % (set_, suite, name))


def summary(records):
    with open(records) as f:
        all_records = [json.loads(line) for line in f]
    by = {'passed': [], 'failed': [], 'skipped': []}
    for r in all_records:
        by[r['result']].append(r)
    if by['skipped']:
        print('\nSkipped:')
        reasons = {}
        for r in by['skipped']:
            reasons.setdefault(r['why'], []).append(r['name'])
        for why, names in reasons.items():
            for name in names:
                print('  %s: %s' % (name, why))
    if by['failed']:
        print('\nFailed:')
        for r in by['failed']:
            print('  ' + r['name'])
            for line in r['why'].splitlines():
                if line.strip():
                    print('      ' + line)
    print('\n%d passed, %d failed, %d skipped'
          % (len(by['passed']), len(by['failed']), len(by['skipped'])))
    return 1 if by['failed'] or not by['passed'] else 0


def main(argv):
    if len(argv) > 5 and argv[1] == 'meson':
        add_meson(argv[2], argv[3], argv[4], argv[5:])
        return 0
    if len(argv) == 6 and argv[1] == 'check':
        add_check(argv[2], int(argv[3]), argv[4], argv[5])
        return 0
    if len(argv) > 3 and argv[1] == 'targets':
        targets(argv[2], argv[3:])
        return 0
    if len(argv) > 3 and argv[1] == 'names':
        for test in tests_of(argv[2], argv[3:]):
            print(test['name'])
        return 0
    if len(argv) == 3 and argv[1] == 'sets':
        sets(argv[2])
        return 0
    if len(argv) == 3 and argv[1] == 'sum':
        return summary(argv[2])
    sys.stderr.write(__doc__)
    return 2


if __name__ == '__main__':
    sys.exit(main(sys.argv))
