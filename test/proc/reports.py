#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""reports.py BUILD: what weft-dump writes of captures can be read by those it is for: HTML and SVG
by parsers, CSV, JSON; text of peers is nothing but text there; what can't be read or written is
said. Pages are read by python's parser, which says what they would load or run; browser.py opens
them. Prints TAP."""

import collections
import csv
import html.parser
import io
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True

import pcapng_edit as edit  # noqa: E402
import tap  # noqa: E402
from crafted import block, hostile, option  # noqa: E402

BUILD = sys.argv[1]
DUMP = os.path.join(BUILD, 'app', 'weft-dump')
FOLDER = tempfile.TemporaryDirectory(prefix='weft-reports.')


def path(name):
    return os.path.join(FOLDER.name, name)


def dump(*arguments, code=0):
    done = subprocess.run([DUMP, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, timeout=60)
    assert done.returncode == code, '%s: exit %d\n%s' % (arguments, done.returncode, done.stderr)
    return done.stdout if code in (0, 4) and not done.stderr else done.stdout + done.stderr


def captures():
    sim = os.path.join(BUILD, 'test', 'sim', 'sim_faults')
    subprocess.run([sim, '-k', 'random_loss', '-s', '5', '-n', '1'], check=True,
                   env=dict(os.environ, SIM_FAULTS=FOLDER.name), stdout=subprocess.DEVNULL)
    return path('a.pcapng'), path('b.pcapng')


A, B = captures()


def sent_again(later, name):
    """A message that goes out again that many ns later, and has no answer."""
    out = block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1))
    out += block(1, struct.pack('<HHI', 1, 0, 0) + option(9, b'\x09'))
    eager = struct.pack('<HBBIQ', 20, 2, 0, 0, 5) + bytes(8)
    for order, (time, flags) in enumerate(((10**18, 0), (10**18 + later, 8))):
        frame = bytes(12) + b'\x88\xb5' + struct.pack(
            '<HBBHHIIIIHBBIIIH', 0x6657, 2, 7, flags, 42 + len(eager), 1, 2, 0, 0, 5, 0, 0, order,
            7, 8, 0xffff) + eager
        out += block(6, struct.pack('<IIIII', 0, time >> 32, time & 0xffffffff, len(frame),
                                    len(frame)) + frame + bytes(-len(frame) % 4) +
                     struct.pack('<HHI', 2, 4, 2))
    with open(path(name), 'wb') as f:
        f.write(out)
    return path(name)


def two_years():
    """2^56 ns: as much as a double takes for 2^56 + 1."""
    return sent_again(2**56, 'years.pcapng')


class Page(html.parser.HTMLParser):
    """What a page consists of, and that all of it is closed."""
    ALONE = {'meta', 'rect', 'line', 'polyline', 'input'}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.bad = [], {}, [], []
        self.attributes = []  # (tag, attributes, tags around it)
        self.titles = []
        self.feed(text)
        self.close()
        assert not self.open, self.open
        assert not self.bad, self.bad

    def handle_starttag(self, tag, attrs):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.attributes.append((tag, dict(attrs), list(self.open)))
        for name, value in attrs:
            if name in ('src', 'href', 'style') or name.startswith('on'):
                self.bad.append((tag, name, value))
        if tag not in self.ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.ALONE:
            self.open.pop()

    def handle_endtag(self, tag):
        if self.open[-1:] != [tag]:
            self.bad.append('</%s> in %s' % (tag, self.open[-2:]))
        else:
            self.open.pop()

    def handle_data(self, data):
        self.text.append(data)
        if self.open[-1:] == ['title']:
            self.titles.append(data)


def page_of(*files):
    assert 'weft-dump: %s is written\n' % path('r.html') in dump('--html', path('r.html'), *files)
    with open(path('r.html'), encoding='utf-8') as f:
        return Page(f.read())


def a_report_is_one_page_that_loads_nothing():
    page = page_of(A, B)
    text = ' '.join(page.text)
    assert page.tags['svg'] == 8, page.tags  # lanes, frames, paths, five messages
    assert 'script' not in page.tags and 'link' not in page.tags and 'img' not in page.tags
    assert 'random loss' in text and 'repaired after' in text, text[:2000]


def pictures_zoom_without_scripts():
    """Buttons before each picture; the styles make it larger where the button is pressed."""
    page = page_of(A, B)
    buttons = [a for tag, a, _ in page.attributes if tag == 'input']
    labels = [a['for'] for tag, a, _ in page.attributes if tag == 'label']
    assert len(buttons) == 5 * page.tags['svg'], len(buttons)
    assert {a['type'] for a in buttons} == {'radio'}
    assert labels == [a['id'] for a in buttons] and len(set(labels)) == len(labels)
    groups = {}
    for a in buttons:
        groups.setdefault(a['name'], []).append('checked' in a)
    assert len(groups) == page.tags['svg']
    assert all(g == [True, False, False, False, False] for g in groups.values()), groups
    style = next(t for t in page.text if '.v{' in t)
    for place, percent in enumerate((200, 400, 800, 1600), 2):
        assert '.p input:nth-of-type(%d):checked~.v svg{width:%d%%}' % (place, percent) in style
    for tag, attributes, around in page.attributes:
        if tag == 'svg':
            assert around[-2:] == ['div', 'div'], around


def pictures_have_their_values_under_the_mouse():
    page = page_of(A, B)
    frames = [t for t in page.titles if re.match(r'(bytes \d+\+\d+|announced|pull .*|end)', t)]
    time = r'-?\d+(\.\d+)? (us|ms|s)'
    whole = re.compile(r'(bytes \d+\+\d+|pull \d+\+\d+|announced|end)(, sent again)?, '
                       r'(sent|came) at %s(, came after %s)?(, lost)?' % (time, time))
    assert len(frames) > 30, len(frames)
    for text in frames:
        assert whole.fullmatch(text), text
    assert any('came after' in t for t in frames) and any('sent again' in t for t in frames)
    assert any(re.search('MB/s, round trip', t) for t in page.titles), page.titles[:5]


def times_and_sizes_are_readable():
    """Three digits and a unit, in tables and at axes."""
    page = page_of(A, B)
    times = [t for t in page.text if re.fullmatch(r'-?[\d.e+-]+ (us|ms|s)', t)]
    sizes = [t for t in page.text if re.fullmatch(r'[\d.e+-]+ (B|kB|MB|GB)', t)]
    assert len(times) > 20 and len(sizes) > 8, (times, sizes)
    for text in times + sizes:
        number = text.split()[0].lstrip('-')
        assert 'e' not in number and len(number.replace('.', '').lstrip('0')) <= 3, text
    assert {'us', 'ms'} <= {t.split()[1] for t in times}, times
    exact = [a['title'] for tag, a, _ in page.attributes if tag == 'td' and 'title' in a]
    assert any(re.fullmatch(r'\d+\.\d{3} us', t) for t in exact), exact
    assert any(re.fullmatch(r'\d+ bytes', t) for t in exact), exact
    # A second and more.
    years = [t for t in page_of(two_years()).text if re.fullmatch(r'[\d.e+]+ s', t)]
    assert years and not any('e' in t for t in years), years


def pictures_are_svg():
    for arguments in (('--message', '546'), ()):
        dump('--graph', path('g.svg'), *arguments, A, B)
        root = ElementTree.parse(path('g.svg')).getroot()
        names = [e.text for e in root.iter('{http://www.w3.org/2000/svg}text')]
        assert 'dpdk:a0' in names and 'dpdk:a1' in names, names


def a_trace_has_messages_lanes_and_faults():
    assert 'is written' in dump('--trace', path('t.json'), A, B)
    with open(path('t.json'), encoding='utf-8') as f:
        events = json.load(f)['traceEvents']
    begun = [e for e in events if e['ph'] == 'b' and 'args' in e]
    assert len(begun) == 840, len(begun)
    open_now, last = {}, {}
    for e in events: # each end has its beginning
        if e['ph'] == 'b':
            assert e['id'] not in open_now and e['id'] not in last, e
            open_now[e['id']] = e
        elif e['ph'] == 'e':
            first = open_now.pop(e['id'])
            assert first['name'] == e['name'] and first['ts'] <= e['ts'], (first, e)
            last[e['id']] = e['ts']
    assert not open_now and len(last) > 1000, len(last) # messages, and their lanes
    rows = {r['message']: r for r in (json.loads(line) for line in
                                      dump('-m', '-j', A, B).splitlines())}
    for e in begun:
        row = rows[e['args']['message']['message']]
        assert {'version': 2, **e['args']['message']} == row, (e, row)
        if row['complete'] and 'took_us' in row:
            assert last[e['id']] - e['ts'] >= row['took_us'] - 0.002, (e, row)
    names = {e['pid'] for e in events if e['ph'] == 'M' and e['name'] == 'process_name'}
    assert {e['pid'] for e in events} <= names, names
    rates = [e for e in events if e['ph'] == 'C' and 'MB/s' in e['args']]
    assert len({e['name'] for e in rates}) == 4 and any(e['args']['MB/s'] > 1 for e in rates)
    assert [e['name'] for e in events if e['ph'] == 'i'] == ['random loss']
    dump('--trace', path('t.json'), '--tag', '0x244', A, B)
    with open(path('t.json'), encoding='utf-8') as f:
        assert sum(e['ph'] == 'b' and 'args' in e for e in json.load(f)['traceEvents']) == 1
    dump('--trace', path('t.json'), hostile(path('hostile.pcapng')))
    with open(path('t.json'), encoding='utf-8') as f:
        json.load(f)


def csv_of_messages_and_of_lanes():
    rows = list(csv.DictReader(io.StringIO(dump('--messages', '--csv', A, B))))
    assert len(rows) == 840, len(rows)
    assert sum(int(r['lost']) for r in rows) > 0
    lanes = list(csv.DictReader(io.StringIO(dump('--csv', A, B))))
    assert len(lanes) == 4 and any(int(r['lost']) for r in lanes), lanes


def points_of(*files):
    dump('--points', path('p.csv'), *files)
    with open(path('p.csv'), encoding='utf-8') as f:
        return list(csv.DictReader(f))


def marks(text, kind):
    """The number of points of this kind in a report."""
    groups = re.findall('<g class="%s".*?</g>' % kind, text, re.S)
    return sum(d.count('M') for group in groups for d in re.findall('<path d="([^"]*)"', group))


def each_lost_and_repaired_frame_is_in_the_picture():
    rows = points_of(A, B)
    lanes = list(csv.DictReader(io.StringIO(dump('--csv', A, B))))
    page_of(A, B)
    with open(path('r.html'), encoding='utf-8') as f:
        text = f.read()
    for lane in lanes:
        mine = [r for r in rows if (r['from'], r['to']) == (lane['from'], lane['to'])]
        kinds = collections.Counter(r['what'] for r in mine)
        assert kinds['again'] == int(lane['sent_again']) and kinds['lost'] == int(lane['lost']), \
            (kinds, lane)
        assert kinds['sent'] > 100 and kinds['acknowledged'] > 100, kinds
        assert {r['each'] for r in mine if r['what'] in ('again', 'lost')} <= {'1'}, mine
    for kind, field in ('lost', 'lost'), ('again', 'sent_again'):
        wanted = sum(int(lane[field]) for lane in lanes)
        assert marks(text, kind) == wanted > 20, (kind, marks(text, kind), wanted)
    messages = {r['message']: r for r in (json.loads(line) for line in
                                          dump('-m', '-j', A, B).splitlines())}
    lost = [r for r in rows if r['what'] == 'lost' and r['message']]
    assert lost and all(messages[int(r['message'])]['sent_again'] for r in lost), lost
    # Under the mouse: number, time with its unit, message, path, and where the frame is.
    assert re.search(r'<title>lost: frame \d+, 0\.\d{6} s, message \d+, path \d+&#10;'
                     r'frame \d+ of [^<]*a\.pcapng</title>', text)


def filters_choose_messages():
    rows = [json.loads(line) for line in dump('-m', '-j', '--size', '8k-', A, B).splitlines()]
    assert rows and all(r['size'] >= 8192 for r in rows)
    rows = [json.loads(line) for line in dump('-m', '-j', '--tag', '0x244', A, B).splitlines()]
    assert [r['what'] for r in rows] == ['tag 0x244'], rows
    assert rows[0]['lanes'] and rows[0]['bytes'] == rows[0]['size'], rows
    early = dump('-m', '--time', '-0.01', A, B).count('\n')
    assert 0 < early < dump('-m', '--took', '0', A, B).count('\n')
    assert not dump('-m', '--peer', 'nobody', A, B)


def a_message_has_its_time_line():
    rows = [json.loads(line) for line in dump('-m', '-j', A, B).splitlines()]
    lost = next(r for r in rows if r['lost'] and r['lanes'][0]['lost'])
    one = json.loads(dump('-j', '--message', str(lost['message']), A, B))
    again = [e for e in one['events'] if e['again'] and e['direction'] == 'out']
    assert len(again) == one['message']['sent_again'] == lost['sent_again'] > 0, one
    assert 'again >' in dump('--message', str(lost['message']), A, B)
    assert 'messages have numbers 1 to 840' in dump('--message', '99999', A, B, code=2)


def a_time_line_ends_where_its_bar_does():
    out = dump('--message', '1', two_years())
    bars = [line.split('|')[1] for line in out.splitlines() if line.endswith('|')]
    assert [len(bar) for bar in bars] == [60] and bars[0][59] == 'R', out


def a_lane_without_acknowledgements_is_silent_since_its_first_frame():
    text = dump(sent_again(5 * 10**8, 'silent.pcapng'))
    assert '1 unacknowledged frames, and no acknowledgement in the last 500.00 ms\n' in text, text
    assert 'no acknowledgement' not in dump(sent_again(5 * 10**7, 'silent.pcapng'))


def one_hosts_capture_has_all_messages_too():
    for file in (A, B):
        assert dump('-m', file).count('\n') >= 840


def a_capture_that_begins_later_is_joined_by_pieces():
    """Without the frames that connect: the lanes are still those of one endpoint."""
    with open(A, 'rb') as f:
        data = f.read()
    off, kept, n = 0, [], 0
    while off < len(data):
        kind, length = struct.unpack_from('<II', data, off)
        n += kind == 6
        if kind != 6 or n > 2000:
            kept.append(data[off:off + length])
        off += length
    with open(path('late.pcapng'), 'wb') as f:
        f.write(b''.join(kept))
    late = json.loads(dump('-j', path('late.pcapng')))
    assert [c['lanes'] for c in late['conversations']] == [2, 2], late['conversations']
    assert late['messages'] > 300, late['messages']


def what_peers_say_is_text():
    file = hostile(path('hostile.pcapng'))
    page = page_of(file)
    assert 'script' not in page.tags, page.tags
    assert '<script>' in ''.join(page.text)
    dump('--graph', path('g.svg'), file)
    ElementTree.parse(path('g.svg'))
    for arguments in (('-m',), ('-m', '--csv'), ('--csv',), ('-j',), ()):
        out = dump(*arguments, file)
        assert '\x1b' not in out, out
    cell = next(csv.DictReader(io.StringIO(dump('--csv', file))))['from']
    assert cell.startswith("'="), cell


def with_counters(file, *readings):
    """The capture with what a RoCE device had counted, at these shares of its records."""
    capture = edit.Capture(file)
    at = {int(share * (len(capture.records) - 1)): text for share, text in readings}
    with open(path('device.pcapng'), 'wb') as f:
        for kind, body in capture.head:
            f.write(edit.block(kind, body))
        for number, record in enumerate(capture.records):
            f.write(record.block())
            if number in at:
                text = ('hw_counters ' + at[number]).encode()
                f.write(edit.block(edit.STATISTICS, struct.pack(
                    '<III', 0, record.time >> 32, record.time & 0xffffffff) + struct.pack(
                        '<HH', 1, len(text)) + text + bytes(-len(text) % 4) + bytes(4)))
    return path('device.pcapng')


def counters_of_roce_devices_are_named():
    file = with_counters(
        A, (0, 'mlx5_0 1/out_of_sequence=5 1/np_cnp_sent=1 1/rx_read_requests=3 2/np_cnp_sent=0'),
        (0.5, 'mlx5_0 1/out_of_sequence=7 1/np_cnp_sent=1 1/rx_read_requests=9 2/np_cnp_sent=0'),
        (1, 'mlx5_0 1/out_of_sequence=8 1/np_cnp_sent=4 1/rx_read_requests=9 2/np_cnp_sent=0'))
    whole = [r.time for r in edit.Capture(A).records]
    middle = whole[int(0.5 * (len(whole) - 1))]
    line = next(l for l in dump(file, B).splitlines() if 'RoCE device' in l)
    assert line == ('%s: RoCE device mlx5_0, port 1, all programs of its host: 3 packets out of '
                    'sequence, 3 CNPs sent; the first in the second before %.3f s after the first '
                    'frame' % (file, (middle - whole[0]) / 1e9)), line
    counters = json.loads(dump('-j', file, B))['captures'][0]['device_counters']
    assert [(c['port'], c['counter'], c['grown']) for c in counters] == [
        ('1', 'out_of_sequence', 3), ('1', 'np_cnp_sent', 3), ('1', 'rx_read_requests', 6)]
    assert counters[0]['since'] == middle, counters
    assert 'RoCE device mlx5_0' in ' '.join(page_of(file, B).text)
    # A device that is reset begins again; what is no counter is left out.
    file = with_counters(A, (0, 'x\x1b[2J 1/np_cnp_sent=50 1/=7 /np_cnp_sent=1 np=3 1/y=z'),
                         (0.5, 'x\x1b[2J 1/np_cnp_sent=2'), (1, 'x\x1b[2J 1/np_cnp_sent=3'))
    line = next(l for l in dump(file).splitlines() if 'RoCE device' in l)
    assert ': 1 CNPs sent;' in line and '\x1b' not in line, line
    assert 'RoCE device' not in dump(A, B)


def what_cannot_be_written_is_said():
    for option_name in ('--html', '--graph', '--points', '--trace'):
        assert 'No such file' in dump(option_name, '/no/where/x', A, code=1)
        if os.path.exists('/dev/full'):
            assert "can't be written: No space left" in dump(option_name, '/dev/full', A, code=1)
    assert 'takes a range' in dump('--size', '', A, code=2)
    assert 'takes a number' in dump('--tag', 'x', A, code=2)
    assert '--html reads' in dump('--html', path('r.html'), '-', code=2)


def what_is_cut_is_read_as_far_as_it_is_there():
    with open(A, 'rb') as f:
        data = f.read()
    with open(path('cut.pcapng'), 'wb') as f:
        f.write(data[:len(data) // 2 + 1])
    assert 'cut short' in dump(path('cut.pcapng'), code=4)
    assert dump('-m', path('cut.pcapng'), code=4).count('\n') > 300


def mix(value, more):
    value = (value ^ more) * 0x9e3779b97f4a7c15 & (1 << 64) - 1
    return value ^ value >> 29


def name_of_record(sender, receiver):
    """What weft-dump makes of connection 3 and lane 0 between two workers (app/dump/decode.c)."""
    value = 0x77
    for more in sender, receiver, 3 << 8:
        value = mix(value, more)
    return value


def a_record_is_none_of_a_frames_connection():
    """Anybody can name a connection as weft-dump names that of a record, which has no frame."""
    size = 15000000
    there, back = name_of_record(1, 2), name_of_record(2, 1)
    message = struct.pack('<HBB', 24, 3, 0) + bytes(24)
    frame = bytes(12) + b'\x88\xb5' + struct.pack(
        '<HBBHHIIIIHBBIIIH', 0x6657, 2, 7, 0, 42 + len(message), there & 0xffffffff, there >> 32,
        1, 0, back & 0xffff, 0, 0, 1, 1, 0, 0xffff) + message
    record = struct.pack('<HBBBBHIIQQ', 0x7257, 1, 1, 3, 0, 0, size, 3, 1, 2) + bytes(size)
    out = block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1))
    for link, name in ((1, b'dpdk:0'), (162, b'shm:x')):
        out += block(1, struct.pack('<HHI', link, 0, 0) + option(2, name) + option(0, b''))
    for number, (interface, data, way) in enumerate(((0, frame, 2), (1, record, 2),
                                                     (1, record, 1))):
        out += block(6, struct.pack('<IIIII', interface, 0, 1000 * number, len(data), len(data)) +
                     data + bytes(-len(data) % 4) + option(2, struct.pack('<I', way)) +
                     option(0, b''))
    with open(path('record.pcapng'), 'wb') as f:
        f.write(out)
    report = json.loads(dump('-j', path('record.pcapng')))
    assert report['records'] == 2, report['records']
    kinds = {(lane['from'].split(':')[0], lane['records'])
             for lanes in report['lanes'] for lane in lanes}
    assert kinds == {('dpdk', 0), ('shm', 1)}, kinds


tap.run([a_report_is_one_page_that_loads_nothing, pictures_zoom_without_scripts,
         pictures_have_their_values_under_the_mouse, times_and_sizes_are_readable,
         pictures_are_svg,
         a_trace_has_messages_lanes_and_faults, csv_of_messages_and_of_lanes,
         each_lost_and_repaired_frame_is_in_the_picture,
         filters_choose_messages, a_message_has_its_time_line,
         a_time_line_ends_where_its_bar_does,
         a_lane_without_acknowledgements_is_silent_since_its_first_frame,
         one_hosts_capture_has_all_messages_too, a_capture_that_begins_later_is_joined_by_pieces,
         what_peers_say_is_text,
         counters_of_roce_devices_are_named, what_cannot_be_written_is_said,
         what_is_cut_is_read_as_far_as_it_is_there, a_record_is_none_of_a_frames_connection])
