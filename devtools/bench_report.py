#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bench_report.py --check|--write: the table of doc/performance.md, from doc/results/.

Results as Markdown. A record of bench.py has a title, tables of figures, comparisons, and notes; a
file of results has a place for each measurement between two comments, and only the places of the
measurements of this run are rewritten:

    <!-- bench:lat --> ... <!-- end bench:lat -->

The place bench:summary of doc/performance.md has all comparisons of doc/results/ with a target. Of
a comparison that several files have, the newest file's is there. --check fails when the place
differs from the results.
"""

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, 'doc', 'performance.md')
RESULTS = os.path.join(ROOT, 'doc', 'results')

COMPARISONS = ['comparison', 'cores', 'result', 'wanted', '']


def quartiles(values):
    """First quartile, median, third quartile."""
    return statistics.quantiles(values, n=4,
                                method='inclusive') if len(values) > 1 else [values[0]] * 3


def number(x):
    return '%.0f' % x if abs(x) >= 999.95 else '%.4g' % x


def spread(values, unit):
    q = [number(x) for x in quartiles(values)]
    return 'median %9s  [%s .. %s] %s, %d trials' % (q[1], q[0], q[2], unit, len(values))


def figures_row(name, unit, state, values):
    q = [number(x) for x in quartiles(values)]
    return ['%s, %s' % (name, unit) if unit else name, state, q[1], '%s .. %s' % (q[0], q[2]),
            str(len(values))]


FIGURES = ['', 'cores', 'median', 'quartiles', 'trials']
HEAD = ['measure', 'comparison', 'medians', 'cores', 'result', 'wanted', '', '']


def verdict(v):
    """The verdict of a comparison: v has met, enough, and target, None without a target."""
    if v['target'] is None:
        return ''
    text = 'met' if v['met'] else '**not met**'
    return text if v['enough'] else text + ', too few trials'


def table(head, rows):
    return ['| %s |' % ' | '.join(row) for row in [head, ['---'] * len(head)] + rows]


def render(record):
    lines = ['**%s**' % record['title'], '']
    lines += ['    ' + line if line else ''
              for line in record.get('text', '').strip('\n').splitlines()]
    lines += [''] * ('text' in record)
    for head, rows in record['tables']:
        if rows:
            lines += table(head, rows) + ['']
    rows = [[v['what'], v.get('state', ''), v['result'], v['wanted'], verdict(v)]
            for v in record['verdicts']]
    if rows:
        lines += table(COMPARISONS, rows) + ['']
    for note in record['notes']:
        lines.append('* %s' % note)
    return lines + [''] * bool(record['notes'])


def first(pattern, text):
    found = re.search(pattern, text, re.MULTILINE)
    return found.group(1).strip() if found else '?'


def output(*cmd):
    try:
        return subprocess.run(cmd, capture_output=True, text=True).stdout
    except OSError:
        return ''


def cpu():
    with open('/proc/cpuinfo') as f:
        return first(r'^model name\s*:(.*)$', f.read())


def cpu_name():
    """As a part of a file's name."""
    return re.sub(r'\W+', '-', re.sub(r'\((R|TM)\)', '', cpu())).strip('-').lower()


def version(build, program):
    text = output(os.path.join(build, 'app', program), '--version')
    return 'Weft ' + first(r'^version (.*)$', text)


def machine(build):
    """What figures depend on, in a few words each."""
    weft = output(os.path.join(build, 'app/weft-info'), '-v')
    return [version(build, 'weft-info'), '%d cores of %s' % (os.cpu_count(), cpu()),
            'Linux ' + platform.release(),
            'DPDK ' + first(r'DPDK (\d[\w.]*)', weft),
            'UCX ' + first(r'ersion:? (\d[\d.]*)', output('ucx_info', '-v'))]


def block(name, body):
    return '<!-- bench:%s -->\n%s\n<!-- end bench:%s -->' % (name, body.strip('\n'), name)


def put(text, name, body):
    """The text with a new body at the place of this name, which is made at the end when there is
    none."""
    place = re.compile(r'<!-- bench:%s -->.*?<!-- end bench:%s -->' % (name, name), re.DOTALL)
    if place.search(text):
        return place.sub(lambda _: block(name, body), text)
    return text.rstrip('\n') + '\n\n## %s\n\n%s\n' % (name, block(name, body))


def blocks(text):
    """(measure, lines) of each place of a file of results."""
    for name, body in re.findall(r'<!-- bench:([\w-]+) -->(.*?)<!-- end bench:', text, re.DOTALL):
        yield name, body.splitlines()


def cells(line):
    return [c.strip() for c in line.strip().strip('|').split('|')] if line.startswith('|') else []


def targets(lines):
    """(title, comparison, cores, result, wanted, verdict, medians) of each comparison with a
    target; medians: {(variant, cores): 'median unit'} of the table above it."""
    title, head, medians = '', None, {}
    for line in lines:
        row = cells(line)
        if line.startswith('**'):
            title, medians = line.strip('*'), {}
        elif not row:
            head = None
        elif head is None:
            head = row
        elif head == FIGURES and row[0] != '---':
            name, comma, unit = row[0].rpartition(', ')
            medians[name if comma else unit, row[1]] = '%s %s' % (row[2], unit if comma else '')
        elif head == COMPARISONS and len(row) == len(head) and 'met' in row[-1]:
            yield (title, *row, medians)


def both(comparison, cores, medians):
    """The medians of 'A against B', as far as the tables have them."""
    found = [medians.get((name, cores), '').strip() for name in comparison.split(' against ')]
    return ', '.join(found) if all(found) else ''


def summary(folder):
    """All comparisons of the folder's files that are met or not, and when each was made."""
    rows, made = {}, {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith('.md'):
            continue
        with open(os.path.join(folder, name), encoding='utf-8') as f:
            text = f.read()
        for measure, lines in blocks(text):
            when = [line for line in lines if re.match(r'20\d\d-\d\d-\d\d ', line)]
            for title, what, cores, result, wanted, met, medians in targets(lines):
                mark = made.setdefault((name, when[-1] if when else ''), len(made) + 1)
                rows[measure, title, what, cores] = [
                    measure, '%s: %s' % (title, what), both(what, cores, medians), cores, result,
                    wanted, met, '[%d]' % mark]
    used = {row[-1] for row in rows.values()}
    notes = ['* [%d] [%s](results/%s): %s' % (mark, name, name, when)
             for (name, when), mark in made.items() if '[%d]' % mark in used]
    return '\n'.join(table(HEAD, list(rows.values())) + [''] + notes)


def merge(path, records, where):
    """Writes records into a file of results; where: a line about when and on what they were
    made."""
    text = '# Benchmarks of %s\n' % where.split()[0]
    if os.path.exists(path):
        with open(path, encoding='utf-8') as f:
            text = f.read()
    for name in dict.fromkeys(r['measure'] for r in records):
        lines = []
        for record in records:
            if record['measure'] == name:
                lines += render(record)
        text = put(text, name, '\n'.join(lines + [where]))
    with open(path + '.new', 'w', encoding='utf-8') as f:
        f.write(text)
    os.replace(path + '.new', path)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--folder', default=RESULTS)
    parser.add_argument('--page', default=PAGE)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument('--check', action='store_true')
    what.add_argument('--write', action='store_true')
    args = parser.parse_args()
    with open(args.page, encoding='utf-8') as f:
        text = f.read()
    new = put(text, 'summary', summary(args.folder))
    if new == text:
        print('%s is that of %s' % (args.page, args.folder))
        return 0
    if args.check:
        print('%s differs from %s: devtools/bench_report.py --write' % (args.page, args.folder))
        return 1
    with open(args.page, 'w', encoding='utf-8') as f:
        f.write(new)
    return 0


if __name__ == '__main__':
    sys.exit(main())
