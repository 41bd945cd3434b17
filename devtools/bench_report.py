# SPDX-License-Identifier: BSD-3-Clause
"""Results as Markdown. A record of bench.py has a title, tables of figures, comparisons, and notes;
a document has a place for each measurement between two comments, and only the places of the
measurements of this run are rewritten:

    <!-- bench:lat --> ... <!-- end bench:lat -->

bench:summary holds all comparisons of the document that have a target.
"""

import os
import platform
import re
import statistics
import subprocess

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


def machine(build):
    """What figures depend on, in a few words each."""
    with open('/proc/cpuinfo') as f:
        cpu = first(r'^model name\s*:(.*)$', f.read())
    weft = output(os.path.join(build, 'app/weft-info'), '-v')
    return ['Weft ' + first(r'^version (.*)$', weft), '%d cores of %s' % (os.cpu_count(), cpu),
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


def summary(text):
    """All comparisons in the text that are met or not."""
    rows = []
    for name, body in re.findall(r'<!-- bench:([\w-]+) -->(.*?)<!-- end bench:', text, re.DOTALL):
        title, inside = '', False
        for line in body.splitlines() if name != 'summary' else []:
            cells = [c.strip()
                     for c in line.strip().strip('|').split('|')] if line.startswith('|') else []
            if line.startswith('**'):
                title = line.strip('*')
            if line == table(COMPARISONS, [])[0]:
                inside = True
            elif not cells:
                inside = False
            elif inside and len(cells) == len(COMPARISONS) and 'met' in cells[-1]:
                rows.append([name, '%s: %s' % (title, cells[0])] + cells[1:])
    return '\n'.join(table(['measure'] + COMPARISONS, rows))


def merge(path, records, where):
    """Writes records into the document; where: a line about when and on what they were made."""
    text = ''
    if os.path.exists(path):
        with open(path) as f:
            text = f.read()
    for name in dict.fromkeys(r['measure'] for r in records):
        lines = []
        for record in records:
            if record['measure'] == name:
                lines += render(record)
        text = put(text, name, '\n'.join(lines + [where]))
    if '<!-- bench:summary -->' in text:
        text = put(text, 'summary', summary(text))
    with open(path + '.new', 'w') as f:
        f.write(text)
    os.replace(path + '.new', path)
