#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""browser.py BUILD: the report of weft-dump --html in a browser without a screen. It loads nothing
but the page, says nothing on its console (where an error, and what the page's policy forbids, would
be), and its pictures are there to see. Prints TAP."""

import http.server
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import zlib

sys.dont_write_bytecode = True

import tap  # noqa: E402
from crafted import hostile  # noqa: E402

BUILD = sys.argv[1]
FOLDER = tempfile.TemporaryDirectory(prefix='weft-browser.')
BROWSER = next(filter(None, map(shutil.which, ('chromium-headless-shell', 'chromium',
                                               'google-chrome'))), None)
if not BROWSER:
    print('no browser is installed: devtools/setup.sh test brings chromium-headless-shell')
    sys.exit(77)


def path(name):
    return os.path.join(FOLDER.name, name)


class Handler(http.server.SimpleHTTPRequestHandler):
    asked = []

    def __init__(self, *arguments):
        super().__init__(*arguments, directory=FOLDER.name)

    def log_message(self, *arguments):
        self.asked.append(self.path)


SERVER = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
threading.Thread(target=SERVER.serve_forever, daemon=True).start()


class Opened:
    """A page as the browser has it: DOM, console, what it has asked the server for, picture."""

    def __init__(self, name):
        Handler.asked.clear()
        done = subprocess.run(
            [BROWSER, '--headless', '--no-sandbox', '--disable-gpu', '--enable-logging=stderr',
             '--user-data-dir=' + path('profile'), '--window-size=1200,2600',
             '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
             '--screenshot=' + path('page.png'), '--dump-dom',
             'http://127.0.0.1:%d/%s' % (SERVER.server_port, name)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True, timeout=120)
        self.dom = done.stdout
        self.console = [line for line in done.stderr.splitlines() if 'CONSOLE' in line]
        self.asked = list(Handler.asked)


def unfiltered(kind, row, before, size):
    """A row of a PNG, whose bytes tell how they differ from the pixel before and the row above."""
    for i in range(len(row)):
        left = row[i - size] if i >= size else 0
        above = before[i]
        corner = before[i - size] if i >= size else 0
        if kind == 4:
            guess = left + above - corner
            near = min((abs(guess - left), 0, left), (abs(guess - above), 1, above),
                       (abs(guess - corner), 2, corner))[2]
        else:
            near = (0, left, above, (left + above) // 2)[kind]
        row[i] = (row[i] + near) & 0xff
    return row


def colours(file):
    """How many pixels of a PNG have which colour."""
    with open(file, 'rb') as f:
        data = f.read()
    off, packed, found = 8, b'', {}
    while off < len(data):
        size, kind = struct.unpack_from('>I4s', data, off)
        if kind == b'IHDR':
            width, _, depth, colour = struct.unpack_from('>IIBB', data, off + 8)
            assert depth == 8 and colour in (2, 6), (depth, colour)
            each = {2: 3, 6: 4}[colour]
        if kind == b'IDAT':
            packed += data[off + 8:off + 8 + size]
        off += size + 12
    raw, row = zlib.decompress(packed), bytearray(width * each)
    for at in range(0, len(raw), width * each + 1):
        row = unfiltered(raw[at], bytearray(raw[at + 1:at + 1 + width * each]), row, each)
        pixels = zip(*(row[i::each] for i in range(3)))
        for pixel in pixels:
            found[pixel] = found.get(pixel, 0) + 1
    return found


def report_of(*files):
    subprocess.run([os.path.join(BUILD, 'app', 'weft-dump'), '--html', path('r.html'), *files],
                   check=True, timeout=60)
    return Opened('r.html')


def what_a_page_loads_and_runs_is_noticed():
    """Else the cases below would pass whatever the report does."""
    with open(path('bad.html'), 'w', encoding='utf-8') as f:
        f.write('<!DOCTYPE html><title>x</title><img src="/x.png"><script>nosuch()</script>')
    page = Opened('bad.html')
    assert '/x.png' in page.asked and len(page.console) == 1, (page.asked, page.console)


def a_report_opens_by_itself():
    sim = os.path.join(BUILD, 'test', 'sim', 'sim_faults')
    subprocess.run([sim, '-k', 'random_loss', '-s', '5', '-n', '1'], check=True,
                   env=dict(os.environ, SIM_FAULTS=FOLDER.name), stdout=subprocess.DEVNULL)
    page = report_of(path('a.pcapng'), path('b.pcapng'))
    assert page.asked == ['/r.html'] and not page.console, (page.asked, page.console)
    # The browser has read it as it was meant: nothing was put elsewhere for want of an end.
    assert page.dom.count('<svg') == page.dom.count('</svg>') == 8
    assert re.search(r'<h2>What was wrong</h2>\s*<ul>\s*<li><b>random loss</b>', page.dom)
    seen = colours(path('page.png'))
    # Lines of bytes that came, and of those that were sent again; both are wide enough to have
    # pixels of nothing but their colour.
    assert seen.get((0x2b, 0x6c, 0xb0), 0) > 100 and seen.get((0xdd, 0x6b, 0x20), 0) > 20, \
        sorted((n, c) for c, n in seen.items())[-8:]


def a_pressed_button_makes_its_picture_larger():
    """The page as it is after a press: another button of the first picture is the checked one."""
    report_of(path('a.pcapng'), path('b.pcapng'))
    before = colours(path('page.png'))
    with open(path('r.html'), encoding='utf-8') as f:
        text = f.read()
    pressed = text.replace('id="z0-0" checked', 'id="z0-0"').replace('id="z0-2"',
                                                                    'id="z0-2" checked')
    assert pressed != text
    with open(path('z.html'), 'w', encoding='utf-8') as f:
        f.write(pressed)
    page = Opened('z.html')
    assert not page.console, page.console
    after = colours(path('page.png'))
    white = (0xff, 0xff, 0xff)
    # The page is longer, so less is below the first picture, and its curves are further apart.
    assert after[white] != before[white] and after != before


def names_of_peers_are_text():
    page = report_of(hostile(path('hostile.pcapng')))
    assert page.asked == ['/r.html'] and not page.console, (page.asked, page.console)
    assert '<script' not in page.dom and '&lt;script&gt;' in page.dom


tap.run([what_a_page_loads_and_runs_is_noticed, a_report_opens_by_itself,
         a_pressed_button_makes_its_picture_larger, names_of_peers_are_text])
