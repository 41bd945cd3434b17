# SPDX-License-Identifier: BSD-3-Clause
"""Tests that are functions: run() runs them and prints TAP. With TEST_CASES=short it leaves out
the slow ones, which are of the nightly set; with TEST_CASES=slow it runs these alone."""

import os
import sys

CASES = os.environ.get('TEST_CASES')


def slow(test):
    test.slow = True
    return test


def run(tests):
    failed = 0
    if CASES in ('short', 'slow'):
        tests = [t for t in tests if getattr(t, 'slow', False) == (CASES == 'slow')]
    for number, test in enumerate(tests, 1):
        try:
            test()
            ok = True
        except Exception as err:  # noqa: BLE001 the test has failed, whatever it is
            print('# %s: %s' % (type(err).__name__, str(err).replace('\n', '\n# ')))
            ok = False
            failed += 1
        print('%s %d - %s' % ('ok' if ok else 'not ok', number, test.__name__.replace('_', ' ')),
              flush=True)
    print('1..%d' % len(tests))
    sys.exit(failed > 0)
