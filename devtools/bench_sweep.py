# SPDX-License-Identifier: BSD-3-Clause
"""Does the automatic choice of protocols hold against measurement? weft-perf --sweep over two
links, 1 B to 16 MiB with half steps."""

import csv
import io
import os

from bench_run import TrialError, pair

LIMIT = 10  # percent of loss beyond the spread
WANTED = 95  # percent of sizes


def judge(text):
    """(size, protocol, best, loss, spread) of each size, and the crossings' lines don't matter
    here."""
    points = {}
    for row in csv.DictReader(io.StringIO(text)):
        if not (row.get('size') or '').isdigit():
            continue
        p = points.setdefault(int(row['size']), {'loss': float(row['loss_percent']),
                                                 'spread': float(row['spread_percent'])})
        if row['chosen'] == '1':
            p['chosen'] = row['protocol']
            p['us'], p['predicted'] = float(row['measured_us']), float(row['predicted_us'])
        if row['best'] == '1':
            p['best'] = row['protocol']
    return points


def report(bench, title, text):
    points = judge(text)
    if not points:
        raise TrialError('no figure in the output of --sweep')
    bad = {s: p for s, p in points.items() if p['loss'] > LIMIT + p['spread']}
    good = 100.0 * (len(points) - len(bad)) / len(points)
    print('\n%s' % title)
    record = bench.record(title, values={str(s): p for s, p in points.items()})
    ranges, last = [], None
    for size, p in sorted(points.items()):
        if p['chosen'] != last:
            ranges.append([str(size), p['chosen'], '%.4g' % p['us'], '%.4g' % p['predicted']])
            last = p['chosen']
            print('  from %9d B  %s' % (size, p['chosen']))
    record['tables'] = [(['from, B', 'chosen', 'measured there, us', 'predicted there, us'],
                         ranges)]
    for size, p in sorted(bad.items()):
        bench.note('%d B: %s takes %.1f %% more than %s, spread %.1f %%'
                   % (size, p['chosen'], p['loss'], p['best'], p['spread']))
    bench.verdict('sizes of %d at which the choice loses at most %d %% beyond the spread'
                  % (len(points), LIMIT),
                  good >= WANTED, '%.1f %%' % good, 'at least %d %%' % WANTED)


def measure(bench, title, name, ends):
    """ends: server and client command lines, their environments, the server's host. Leaves NAME.csv
    and NAME.png."""
    server, client, env_server, env_client, host = ends
    os.makedirs(bench.args.out, exist_ok=True)
    path = os.path.join(bench.args.out, name)
    out = pair(server, client + ['--sweep', '-v', '--graph', path + '.png', host], env_server,
               env_client, timeout=280)
    with open(path + '.csv', 'w') as f:
        f.write(out)
    report(bench, 'Sweep of all protocols, ' + title, out)
    print('  figures: %s.csv, picture: %s.png' % (path, path))
