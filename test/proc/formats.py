#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""formats.py BUILD: CSV, JSON and metrics of real runs have the fields of the tables of
doc/formats.md, with their types and units, and no others. Two processes are the lanes: a pair of
weft-perf over memif. Captures of faults are the simulator's. Prints TAP."""

import collections
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import tap  # noqa: E402
from memif_pair import ENV, Server  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv[1])
FOLDER = tempfile.TemporaryDirectory(prefix='weft-formats.')

# A field with such an end has that unit.
ENDS = {'_us': 'us', '_ns': 'ns', '_ms': 'ms', '_seconds': 's', '_bytes': 'bytes', '_kb': 'KiB',
        '_mb_s': 'MB/s', '_ppm': 'ppm', '_percent': '%', '_per_second': '/s', '_lat': 'us',
        '_bw': 'MiB/s', '_mr': 'messages/s'}

Field = collections.namedtuple('Field', 'type unit when')

# The tables omit the field version, which all others have: in CSV as the last column.
WITHOUT_VERSION = {'weft-info protocols --format csv, thresholds', 'weft-info --metrics'}


def program(name):
    return os.path.join(BUILD, 'app', name)


def path(name):
    return os.path.join(FOLDER.name, name)


# ---- the document

def tables():
    """Heading -> fields by name."""
    found, heading = {}, ''
    with open(os.path.join(ROOT, 'doc', 'formats.md'), encoding='utf-8') as f:
        for line in f:
            if line.startswith('#'):
                heading = line.strip('# \n')
            cells = [cell.strip() for cell in line.strip().strip('|').split('|')]
            if line.startswith('| ') and cells[0] != 'Field':
                assert len(cells) == 5, line
                fields = found.setdefault(heading, {})
                assert cells[0] not in fields, (heading, cells[0])
                fields[cells[0]] = Field(*cells[1:4])
    for heading in found.keys() - WITHOUT_VERSION:
        found[heading]['version'] = Field('integer', '', 'always')
    return found


TABLES = tables()
seen = collections.defaultdict(set)


def pattern_of(fields, name):
    """The row of the table for a field: its own, or one that ends with '*'."""
    if name in fields:
        return name
    return next((f for f in fields if f.endswith('.*') and
                 name.startswith(f[:-1])), None)


def type_of(value):
    return {bool: 'boolean', int: 'integer', float: 'number', str: 'text', list: 'list',
            dict: 'object'}[type(value)]


def check_type(what, field, value):
    kind = type_of(value)
    ok = field.type in (kind, 'any') or (field.type == 'number' and kind == 'integer')
    assert ok, '%s is %s, not %s: %r' % (what, kind, field.type, value)


def check_value(heading, fields, name, value):
    row = pattern_of(fields, name)
    assert row, '%s: unknown field %s' % (heading, name)
    seen[heading].add(row)
    check_type('%s: %s' % (heading, name), fields[row], value)
    if row.endswith('.*') and fields[row].type == 'any':
        return
    if isinstance(value, dict):
        check_object(heading, fields, name + '.', value)
    elif isinstance(value, list):
        check_list(heading, fields, name + '[]', value)


def check_list(heading, fields, name, items):
    for item in items:
        if isinstance(item, dict):
            check_object(heading, fields, name + '.', item)
        elif isinstance(item, list):
            check_list(heading, fields, name + '[]', item)
        else:
            check_value(heading, fields, name, item)


def check_object(heading, fields, prefix, value):
    for name, field in fields.items():
        rest = name[len(prefix):]
        if name.startswith(prefix) and field.when == 'always' and not re.search(r'[.\[*]', rest):
            assert rest in value, '%s: %s is missing in %r' % (heading, name, value)
    for key, item in value.items():
        check_value(heading, fields, prefix + key, item)


def check_json(heading, value, more=()):
    fields = dict(TABLES[heading])
    for other in more:
        fields = {**TABLES[other], **fields}
    check_object(heading, fields, '', value)


def number_of(text):
    for kind in int, float:
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def check_csv(heading, text):
    rows = list(csv.reader(io.StringIO(text)))
    fields = TABLES[heading]
    assert len(rows) > 1, text
    assert rows[0] == list(fields), (heading, [f for f in fields if f not in rows[0]],
                                     [f for f in rows[0] if f not in fields])
    for row in rows[1:]:
        assert len(row) == len(fields), (heading, row)
        for (name, field), cell in zip(fields.items(), row):
            if cell == '':
                assert field.when == 'some', '%s: %s is empty' % (heading, name)
                continue
            seen[heading].add(name)
            if field.type != 'text':
                check_type('%s: %s' % (heading, name), field, number_of(cell))
    return rows


def all_seen(*headings):
    """A field of the table that no run has is a field that does not exist."""
    for heading in headings:
        missing = [name for name, field in TABLES[heading].items()
                   if field.when != 'rare' and name not in seen[heading]]
        assert not missing, '%s: in no output: %s' % (heading, missing)


# ---- runs

def end_of(process, name):
    try:
        return process.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError('%s does not end' % name) from None


def perf(*arguments):
    server = Server(BUILD, FOLDER.name)
    try:
        client = server.client(*arguments)
        out, err = end_of(client, 'the client')
        assert client.returncode == 0, err
        end_of(server.process, 'the server')
    finally:
        server.close()
    return out


def dump(*arguments, code=0):
    done = subprocess.run([program('weft-dump'), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == code, '%s: exit %d\n%s' % (arguments, done.returncode, done.stderr)
    return done.stdout


def captures(fault, seed):
    """Of both hosts of the simulator."""
    folder = path(fault)
    os.mkdir(folder)
    sim = os.path.join(BUILD, 'test', 'sim', 'sim_faults')
    subprocess.run([sim, '-k', fault, '-s', str(seed), '-n', '1'], check=True,
                   env=dict(os.environ, SIM_FAULTS=folder), stdout=subprocess.DEVNULL)
    return [os.path.join(folder, name) for name in ('a.pcapng', 'b.pcapng')]


def cut_short(file, share):
    with open(file, 'rb') as f:
        data = f.read()
    name = path('cut.pcapng')
    with open(name, 'wb') as f:
        f.write(data[:int(len(data) * share) + 1])
    return name


LOSS = captures('random_loss', 5)
SLOW = captures('slow_receiver', 2)
STOPPED = captures('stopped_peer', 2)


# ---- cases

def units_are_those_of_the_names():
    for heading, fields in TABLES.items():
        for name, field in fields.items():
            last = re.split(r'[.\]]', name)[-1]
            ends = [ENDS[end] for end in ENDS if last.endswith(end) and field.type != 'text']
            if ends and not name.startswith('weft_'):
                assert any(field.unit.endswith(end) for end in ends), (heading, name, field.unit)
            assert field.when in ('always', 'some', 'rare'), (heading, name)


# @behaviour T50: CSV, JSON and metrics have the fields that doc/formats.md documents
def weft_perf_json():
    lines = [json.loads(line) for line in
             perf('-t', 'tag_lat,tag_bw,fadd_lat', '-s', '8', '-D', '1.3', '--json').splitlines()]
    for line in lines:
        check_json(line['type'], line, ['second'] if line['type'] == 'result' else [])
        assert line['version'] == 1, line
    for line in lines:  # units
        if line['type'] == 'result':
            assert 1e-9 < line['overall_seconds'] < 1, line
            rate = line['messages_per_second'] * line['size_bytes']
            assert abs(line['bytes_per_second'] - rate) <= 0.01 * rate + 1, line
            assert 1e6 < line['peak_bytes'] < 1e11, line
    all_seen('begin', 'second', 'result')


# @behaviour T50
def weft_perf_csv():
    rows = check_csv('weft-perf -v', perf('-t', 'tag_lat,tag_bw', '-s', '8', '-D', '1.3', '-v'))
    assert any(row[14] == '' for row in rows[1:]), 'no line of a second'
    check_csv('weft-perf --sweep -v', perf('--sweep', '-s', '64', '-n', '20', '-v'))
    all_seen('weft-perf -v', 'weft-perf --sweep -v')


# @behaviour T50
def weft_dump_json():
    for files, code in ((LOSS, 0), (SLOW, 0), (STOPPED, 0), ([cut_short(LOSS[0], 0.5), LOSS[1]], 4),
                        (LOSS[:1], 0)):
        report = json.loads(dump('-j', *files, code=code))
        check_json('weft-dump --json', report)
        assert report['version'] == 2
        for one in report['slowest']:
            check_json('weft-dump --messages --json', {'version': 2, **one})
        for one in report['observations']:
            check_json('weft-dump --json', {**report, 'anomalies': [one], 'observations': []})
    all_seen('weft-dump --json')


# @behaviour T50
def weft_dump_json_of_messages_and_frames():
    rows = []
    for files in LOSS, SLOW:
        rows += [json.loads(line) for line in dump('-m', '-j', *files).splitlines()]
    for row in rows:
        check_json('weft-dump --messages --json', row)
    lost = next(row for row in rows if row['lost'])
    one = json.loads(dump('-j', '--message', str(lost['message']), *LOSS))
    check_json('weft-dump --message N --json', one)
    check_json('weft-dump --messages --json', {'version': 2, **one['message']})
    # Times of a message: ns since 1970, and us between them.
    arrived = max(e['time'] for e in one['events'] if e['direction'] == 'in' and
                  e['event'] == 'bytes')
    assert abs((arrived - lost['time']) / 1e3 - lost['took_us']) < 0.01, (arrived, lost)
    for file in (LOSS[0], cut_frames(LOSS[0])):
        for line in dump('-F', '-j', file, code=0).splitlines():
            check_json('weft-dump --frames --json', json.loads(line))
    for line in dump('-F', '-j', wrong_frames(LOSS[0]), code=4).splitlines():
        check_json('weft-dump --frames --json', json.loads(line))
    all_seen('weft-dump --messages --json', 'weft-dump --message N --json',
             'weft-dump --frames --json')


def cut_frames(file):
    """The same frames with a snaplen of 100."""
    import pcapng_edit as edit
    capture = edit.Capture(file)
    for record in capture.records:
        record.data = record.data[:100]
    capture.write(path('snap.pcapng'))
    return path('snap.pcapng')


def wrong_frames(file):
    """The last byte of each frame is another one."""
    import pcapng_edit as edit
    capture = edit.Capture(file)
    for record in capture.records:
        record.data = record.data[:-1] + bytes([record.data[-1] ^ 0xff])
    capture.write(path('wrong.pcapng'))
    return path('wrong.pcapng')


# @behaviour T50
def weft_dump_csv():
    check_csv('weft-dump --csv', dump('--csv', *LOSS))
    check_csv('weft-dump --messages --csv', dump('-m', '--csv', *LOSS))
    dump('--points', path('points.csv'), *LOSS)
    with open(path('points.csv'), encoding='utf-8') as f:
        check_csv('weft-dump --points', f.read())
    all_seen('weft-dump --csv', 'weft-dump --messages --csv', 'weft-dump --points')


def check_thresholds(lines):
    fields = TABLES['weft-info protocols --format csv, thresholds']
    assert [line.split('=')[0] for line in lines] == list(fields), lines
    for line in lines:
        name, value = line.split('=')
        if value == 'none':
            assert fields[name].when == 'some', line
            continue
        seen['weft-info protocols --format csv, thresholds'].add(name)
        if fields[name].type != 'text':
            check_type(name, fields[name], number_of(value))


# @behaviour T50
def weft_info_protocols_csv():
    profile = os.path.join(ROOT, 'examples', 'profiles', 'roce-100g.ini')
    for op in 'tag_send', 'am_send', 'put', 'amo':
        done = subprocess.run([program('weft-info'), 'protocols', '--lanes', profile, '--format',
                               'csv', '--op', op], stdout=subprocess.PIPE, text=True, check=True,
                              timeout=60)
        rows, _, rest = done.stdout.partition('threshold')
        assert bool(rest) == (op in ('tag_send', 'am_send')), done.stdout
        rows = check_csv('weft-info protocols --format csv', rows)
        assert all(row[-1] == '1' for row in rows[1:]), rows
        if rest:
            check_thresholds(('threshold' + rest).splitlines())
    all_seen('weft-info protocols --format csv', 'weft-info protocols --format csv, thresholds')


def row_of_metric(name):
    rows = TABLES['weft-info --metrics']
    matches = [row for row in rows if re.fullmatch(row.replace('*', '.+'), name)]
    return max(matches, key=len) if matches else None


def check_metrics(text):
    types, names = {}, set()
    for line in text.splitlines():
        words = line.split(' ')
        if words[:2] == ['#', 'TYPE']:
            types[words[2]] = words[3]
        if line.startswith('#'):
            continue
        name, labels = re.match(r'(\w+)\{(.*)\} ', line).groups()
        labels = set(re.findall(r'(\w+)="', labels))
        row = row_of_metric(name)
        assert row, 'unknown metric ' + name
        seen['weft-info --metrics'].add(row)
        names.add(name)
        assert (types[name] == 'counter') == name.endswith('_total'), line
        if name.startswith('weft_roce_'):
            assert labels == {'host', 'device', 'port'}, line
            continue
        assert {'host', 'program', 'pid'} <= labels, line
        allowed = {'host', 'program', 'pid', 'job'} | {
            'build': {'version', 'metrics_version'}, 'worker': {'worker'},
            'lane': {'worker', 'lane'}, 'path': {'worker', 'lane', 'conn', 'path'},
            'switch': {'port', 'owner'}}[name.split('_')[1]]
        assert labels <= allowed, line
        assert not re.search('_(ns|us|ms)(_total)?$', name), 'times are in seconds: ' + name
    return names


def sysfs_of_a_device():
    """A folder for /sys/class: known counters of two ports, and one that nothing reads."""
    for port, value in (('1', 5), ('2', 0)):
        at = os.path.join(FOLDER.name, 'class/infiniband/mlx5_0/ports', port, 'hw_counters')
        os.makedirs(at, exist_ok=True)
        for name in 'out_of_sequence', 'rnr_nak_retry_err', 'np_cnp_sent', 'lifespan':
            with open(os.path.join(at, name), 'w', encoding='utf-8') as f:
                f.write('%d\n' % value)
    return os.path.join(FOLDER.name, 'class')


def metrics_of_a_device(pid):
    if subprocess.run(['unshare', '-m', 'true'], check=False).returncode:
        print('# mounts need root: no RoCE device')
        seen['weft-info --metrics'].add('weft_roce_*_total')
        return
    done = subprocess.run(
        ['unshare', '-m', 'sh', '-c',
         'mount --bind "$1" /sys/class && exec "$2" --metrics --pid "$3"', '-',
         sysfs_of_a_device(), program('weft-info'), str(pid)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV, check=False,
        timeout=60)
    assert {n for n in check_metrics(done.stdout) if n.startswith('weft_roce_')} == {
        'weft_roce_%s_total' % n
        for n in ('out_of_sequence', 'rnr_nak_retry_err', 'np_cnp_sent')}, done.stdout
    for port, value in (('1', 5), ('2', 0)):
        assert re.search(r'^weft_roce_np_cnp_sent_total\{host="[^"]+",device="mlx5_0",'
                         r'port="%s"\} %d$' % (port, value), done.stdout, re.M), done.stdout


# @behaviour T50
def weft_info_metrics():
    server = Server(BUILD, FOLDER.name)
    client = server.client('-t', 'tag_bw', '-s', '64k', '-n', '1000000000')
    names, end = set(), time.monotonic() + 60
    try:
        while 'weft_path_rtt_seconds' not in names and time.monotonic() < end:
            done = subprocess.run([program('weft-info'), '--metrics', '--pid', str(client.pid)],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=ENV, check=False, timeout=60)
            names |= check_metrics(done.stdout)
            time.sleep(0.2)
        metrics_of_a_device(client.pid)
    finally:
        client.kill()
        client.communicate()
        server.close()
    all_seen('weft-info --metrics')


def what_differs_is_noticed():
    """Else the cases above would pass whatever the programs print."""
    good = json.loads(dump('-m', '-j', *LOSS).splitlines()[0])
    lane = dict(good['lanes'][0])
    for bad in ({**good, 'new': 1}, {**good, 'size': 'x'}, {**good, 'lanes': [{**lane, 'x': 1}]},
                {k: v for k, v in good.items() if k != 'version'},
                {**good, 'lanes': [{'lane': 'x'}]}):
        try:
            check_json('weft-dump --messages --json', bad)
        except AssertionError:
            continue
        raise AssertionError('this passes: %r' % bad)
    text = dump('--csv', *LOSS)
    for bad in (text.replace('lost', 'gone', 1), re.sub(r',2\n', '\n', text),
                text.replace('from,to', 'to,from', 1)):
        try:
            check_csv('weft-dump --csv', bad)
        except AssertionError:
            continue
        raise AssertionError('this passes: ' + bad)


tap.run([units_are_those_of_the_names, weft_perf_json, weft_perf_csv, weft_dump_json,
         weft_dump_json_of_messages_and_frames, weft_dump_csv, weft_info_protocols_csv,
         weft_info_metrics, what_differs_is_noticed])
