# SPDX-License-Identifier: BSD-3-Clause
"""Does the automatic choice of protocols hold against measurement? weft-perf --sweep over two links, 1 B to 16 MiB with half steps."""

import csv
import io
import os

LIMIT = 10  # percent of loss beyond the spread
WANTED = 95  # percent of sizes


def judge(text):
    """(size, protocol, best, loss, spread) of each size, and the crossings' lines don't matter here."""
    points = {}
    for row in csv.DictReader(io.StringIO(text)):
        if not (row.get('size') or '').isdigit():
            continue
        p = points.setdefault(int(row['size']), {'loss': float(row['loss_percent']), 'spread': float(row['spread_percent'])})
        if row['chosen'] == '1':
            p['chosen'], p['us'], p['predicted'] = row['protocol'], float(row['measured_us']), float(row['predicted_us'])
        if row['best'] == '1':
            p['best'] = row['protocol']
    return points


def report(title, text):
    points = judge(text)
    bad = {s: p for s, p in points.items() if p['loss'] > LIMIT + p['spread']}
    good = 100.0 * (len(points) - len(bad)) / len(points) if points else 0
    print('\n%s' % title)
    last = None
    for size, p in sorted(points.items()):
        if p['chosen'] != last:
            print('  from %9d B  %s' % (size, p['chosen']))
            last = p['chosen']
    for size, p in sorted(bad.items()):
        print('  %9d B: %s takes %.1f %% more than %s, spread %.1f %%'
              % (size, p['chosen'], p['loss'], p['best'], p['spread']))
    print('  loses at most %d %% beyond the spread at %.1f %% of %d sizes, wanted %d %%: %s'
          % (LIMIT, good, len(points), WANTED, 'met' if good >= WANTED else 'NOT MET'))
    return {'title': title, 'values': {str(s): p for s, p in points.items()},
            'verdicts': [{'a': 'automatic choice', 'value': good, 'target': WANTED, 'met': good >= WANTED,
                          'enough': len(points) > 0}]}


def measure(bench, links, pair, free_port):
    """links: [(title, file name, function of a port giving (server, client, env, env, host))]"""
    os.makedirs(bench.args.out, exist_ok=True)
    for title, name, commands in links:
        server, client, env_server, env_client, host = commands(free_port())
        out = pair(server, client + ['--sweep', '-v', '--graph', os.path.join(bench.args.out, name), host],
                   env_server, env_client, timeout=280)
        bench.results.append(report('Sweep of all protocols, ' + title, out))
        print('  picture: ' + os.path.join(bench.args.out, name))
