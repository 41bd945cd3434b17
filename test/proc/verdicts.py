#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""verdicts.py BUILD: what weft-dump names in captures that are edited: what a capture does not have
is no fault, none hides another, any capture is read for what it has, and the verdict is the first
line. The captures are the simulator's, whose hosts have clocks of their own. Prints TAP."""

import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import pcapng_edit as edit  # noqa: E402
import tap  # noqa: E402

BUILD = sys.argv[1]
DUMP = os.path.join(BUILD, 'app', 'weft-dump')
FOLDER = tempfile.TemporaryDirectory(prefix='weft-verdicts.')


def path(name):
    return os.path.join(FOLDER.name, name)


def pair(fault='clean', seed=7):
    """The captures of both hosts of a run, read anew."""
    return edit.pair(BUILD, path(''), fault, seed)


def truth(fault, seed):
    with open(path('%s-%d/truth.json' % (fault, seed)), encoding='utf-8') as f:
        return json.load(f)


def dump(*arguments, code=0):
    done = subprocess.run([DUMP, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, timeout=60)
    assert done.returncode == code, '%s: exit %d\n%s' % (arguments, done.returncode, done.stderr)
    return done.stdout


def write(*captures):
    return [c.write(path('%c.pcapng' % (97 + i))) for i, c in enumerate(captures)]


def report(*captures):
    done = subprocess.run([DUMP, '-j', *write(*captures)], stdout=subprocess.PIPE, check=False)
    assert done.returncode in (0, 4), done.returncode # 4: changed frames
    return json.loads(done.stdout)


def named(*captures):
    return [a['class'] for a in report(*captures)['anomalies']]


def expect(faults, *captures):
    got = named(*captures)
    assert got == faults, got


def a_sender_that_pauses_makes_no_host_slow():
    for idle in (0, 100, 300, 1000):
        a, b = pair()
        edit.pauses(a, b, idle, 6)
        expect([], a, b)


def clocks_may_differ():
    for seconds, ppm in ((5, 0), (-5, 0), (86400, 0), (0, 50), (5, 500)):
        a, b = pair()
        edit.skew(b, seconds, ppm)
        expect([], a, b)


def captures_begin_and_end_at_other_times():
    for which in (0, 1):
        for begin, end in ((0.4, 1), (0, 0.6)):
            both = pair()
            edit.part(both[which], begin, end)
            expect([], *both)


def records_that_a_capture_lost_are_its_own_fault():
    for tell in (True, False):
        for which in (0, 1):
            both = pair()
            edit.lose_records(both[which], 50, tell)
            found = report(*both)['anomalies']
            assert [a['class'] for a in found] == ['capture with gaps'], found
            assert found[0]['host'].endswith('%c.pcapng' % (97 + which)), found


def loss_is_found_beside_the_gaps_of_a_capture():
    a, b = pair('random_loss', 1000)
    lane = truth('random_loss', 1000)
    edit.lose_records(b if lane['host'] == 'a' else a, 100, True)
    expect(['random loss', 'capture with gaps'], a, b)


def loss_and_slowness_are_both_named():
    a, b = pair('random_loss', 1000)
    edit.stops(a, b, 0.3, 3000000, 1200000)
    got = named(a, b)
    assert sorted(got) == ['random loss', 'slow receiver'], got


def random_loss_is_random_beside_a_host_that_seldom_polls():
    """Frames that wait there are those behind many others, and the lost ones never wait."""
    a, b = pair('random_loss', 1002)
    edit.stops(a, b, 0, 500000, 450000)
    assert named(a, b)[0] == 'random loss', named(a, b)


def lost_frames(*captures):
    text = next(f for f in report(*captures)['anomalies'] if f['class'].endswith(' loss'))
    return int(text['evidence'].split()[0])


def a_silence_hides_no_loss_while_the_ring_has_room():
    all_of_them = lost_frames(*pair('random_loss', 1000))
    a, b = pair('random_loss', 1000)
    edit.stops(a, b, 0, 3000000, 1200000)
    assert lost_frames(a, b) >= 0.9 * all_of_them > 20, (lost_frames(a, b), all_of_them)
    for capture in (a, b): # begun later: without the HELLO that has the length of the ring
        capture.records = [r for r in capture.records if len(r.data) < 47 or r.data[45] > 2]
    assert lost_frames(a, b) >= 0.9 * all_of_them, lost_frames(a, b)


def a_stop_is_a_share_of_the_time():
    a, b = pair()
    edit.stops(a, b, 0.5, 10**10, 9000000)
    found = report(a, b)
    assert [f['class'] for f in found['anomalies']] == ['stopped peer'], found['anomalies']
    assert found['anomalies'][0]['host'].endswith('b.pcapng')
    a, b = pair()
    edit.stops(a, b, 0.5, 10**10, 1500000)
    found = report(a, b)
    assert not found['anomalies'], found['anomalies']
    assert [f['class'] for f in found['observations']] == ['slow receiver'], found


def a_share_of_all_of_the_time_is_100_percent():
    a, b = pair()
    edit.stops(a, b, 0, 5000000, 4999900)
    assert dump('-s', '0', *write(a, b)).startswith('slow receiver, 100 %,')


def each_long_stop_has_a_time():
    a, b = pair()
    begin = a.begin()
    for c in (a, b):
        edit.slowed(c, 60, begin)
    edit.stops(a, b, 0.2, 1000000000, 150000000)
    found = [f for f in report(a, b)['anomalies'] if f['class'] == 'stopped peer']
    assert len(found) == 1 and found[0]['host'].endswith('b.pcapng'), found
    stops = found[0]['stops']
    assert len(stops) >= 2 and '%d more of 100 ms' % (len(stops) - 1) in found[0]['evidence'], found
    for one, other in zip(stops, stops[1:]):
        assert abs(other['time'] - one['time'] - 10**9) < 50000000, stops
    assert all(0.1 <= s['seconds'] < 0.2 for s in stops), stops
    assert found[0]['time'] in [s['time'] for s in stops], found


def two_frames_prove_corruption():
    for frames, faults in ((1, []), (2, ['corruption'])):
        a, b = pair()
        late = [r for r in b.records if r.way == edit.IN and r.iface == 0 and len(r.data) > 500]
        for r in late[20:20 + frames]:
            r.data = r.data[:-1] + bytes([r.data[-1] ^ 1])
        found = report(a, b)
        assert [f['class'] for f in found['anomalies']] == faults, found['anomalies']
        assert any(f['class'] == 'corruption' for f in found['observations']) == (not faults), found


def a_delay_is_found_beside_a_slow_host():
    a, b = pair()
    first = edit.delayed(b, 0, 0.5, 2000000)
    sent = next(r.time for r in a.records if r.way == edit.OUT and r.key() == first)
    edit.stops(a, b, 0, 3000000, 1200000)
    found = report(a, b)
    delays = [f for f in found['anomalies'] if f['class'] == 'delay or jitter']
    assert len(delays) == 1 and 'another lane or way is faster' in delays[0]['evidence'], found
    assert 'slow receiver' in [f['class'] for f in found['anomalies']], found
    assert abs(delays[0]['time'] - sent) < 5000000, (delays, sent)
    a, b = pair()
    edit.stops(a, b, 0.5, 3000000, 1200000)
    expect(['slow receiver'], a, b)


def a_floor_that_lasts_is_the_path_s():
    for delay_ns in (6000000, 0):
        a, b = pair()
        edit.one_clock(a, b)
        begin = a.begin()
        for c in (a, b): # some seconds, and no other lane
            edit.slowed(c, 60, begin)
            c.records = [r for r in c.records if r.iface == 0]
        first = edit.delayed(b, 0, 0.3, delay_ns)
        sent = next(r.time for r in a.records if r.way == edit.OUT and r.key() == first)
        edit.stops(a, b, 0, 200000000, 60000000)
        found = report(a, b)['anomalies']
        delays = [f for f in found if f['class'] == 'delay or jitter']
        assert 'slow receiver' in [f['class'] for f in found], found
        assert len(delays) == (delay_ns > 0), found
        assert not delays or 0 <= delays[0]['time'] - sent < 10**9, (delays, sent)


def a_process_that_is_killed_is_named():
    a, b = pair()
    edit.ends(a, b, 0.5, 300)
    files = [a.write(path('a.pcapng'), closed=True), b.write(path('b.pcapng'))]
    found = json.loads(dump('-j', *files))['anomalies']
    assert [f['class'] for f in found] == ['peer gone'], found
    assert found[0]['host'].endswith('b.pcapng') and 'killed' in found[0]['evidence'], found
    last = max(r.time for r in a.records if r.way == edit.IN)
    assert abs(found[0]['time'] - last) < 1000000, (found, last)
    # A file that was closed is a capture that was stopped: then 31 ms of silence are too few.
    b.write(path('b.pcapng'), closed=True)
    assert json.loads(dump('-j', *files))['anomalies'] == []


def frames_that_a_killed_process_has_not_written_are_no_fault():
    a, b = pair()
    begin = a.begin()
    for c in (a, b):
        edit.slowed(c, 60, begin)
    edit.ends(a, b, 0.5, 0)
    last = b.records[-1].time
    late = [r for r in b.records[:-5] if r.iface == 0 and r.time > last - 60000000]
    assert len(late) > 10, len(late)
    b.records = [r for r in b.records if r not in late]
    files = [a.write(path('a.pcapng'), closed=True), b.write(path('b.pcapng'))]
    found = json.loads(dump('-j', *files))
    classes = {f['class'] for f in found['anomalies']} # silences are longer, too
    assert classes <= {'peer gone', 'slow receiver'} and 'peer gone' in classes, classes
    seen = {f['class'] for f in found['observations']}
    assert seen & {'capture with gaps', 'blackhole one way', 'burst loss', 'random loss'}, seen


def one_capture_shows_that_the_peer_is_silent():
    a, b = pair()
    begin = a.begin()
    edit.ends(a, b, 0.5, 0)
    assert named(a) == [], named(a)
    edit.slowed(a, 10, begin)
    found = report(a)['anomalies']
    assert [f['class'] for f in found] == ['peer silent'], found
    assert 'all 2 lanes' in found[0]['evidence'], found
    a = pair()[0]
    edit.slowed(a, 10, begin)
    assert 'peer silent' not in named(a), named(a)


def directions_follow_from_addresses_and_times():
    for fault in ('random_loss', 'blackhole_one_way', 'corruption', 'clean'):
        whole = report(*pair(fault, 1000))['anomalies']
        for without in ((0,), (1,), (0, 1)):
            both = pair(fault, 1000)
            for i in without:
                edit.without_directions(both[i])
            found = report(*both)['anomalies']
            keys = ('class', 'where', 'time', 'evidence')
            assert [[f[k] for k in keys] for f in found] == \
                [[f[k] for k in keys] for f in whole], (fault, without, found)


def other(capture, old, new):
    """The frames of one host's lanes as those of another host: addresses and connections."""
    for r in capture.records:
        d = bytearray(r.data[:112])
        if d[12:14] != b'\x08\x00' or len(d) < 84:
            continue
        for at in (0, 6):
            if d[at:at + 6] == old[0]:
                d[at:at + 6] = new[0]
        for at in (26, 30):
            if d[at:at + 4] == old[1]:
                d[at:at + 4] = new[1]
        d[24:26] = b'\0\0'
        total = sum(struct.unpack('>10H', d[14:34]))
        total = (total & 0xffff) + (total >> 16)
        total = ~((total & 0xffff) + (total >> 16)) & 0xffff
        d[24:26] = struct.pack('>H', total)
        d[54:58] = struct.pack('<I', struct.unpack('<I', d[54:58])[0] ^ 0x5a5a5a5a)
        r.data = bytes(d)


def three_hosts_without_directions():
    a, b = pair('random_loss', 1000)
    a2, c = pair('clean', 7)
    first = next(r for r in c.records if r.way == edit.OUT and r.key())
    old = first.data[6:12], first.data[26:30]
    mine = next(r for r in a.records if r.way == edit.OUT and r.key() and
                r.iface == 0)
    for capture in (a2, c):
        by = a.begin() - (a2 if capture is a2 else c).begin()
        for r in capture.records:
            r.time += by
        other(capture, old, (b'\x02\x99\x00\x00\x00\x03', b'\x0a\x00\x00\x07'))
    theirs = next(r for r in a2.records if r.way == edit.OUT and r.key())
    for capture in (a2, c):
        other(capture, (theirs.data[6:12], theirs.data[26:30]),
              (mine.data[6:12], mine.data[26:30]))
        capture.records = [r for r in capture.records if r.key() and r.iface == 0]
    edit.cut(a, 112)
    edit.cut(b, 112)
    a.records = sorted(a.records + a2.records, key=lambda r: r.time)
    whole = named(a, b, c)
    assert whole == ['random loss'], whole
    for capture in (a, b, c):
        edit.without_directions(capture)
    expect(whole, a, b, c)


def short_frames_are_not_wrong():
    a, b = pair()
    for capture in (a, b):
        edit.cut(capture, 64)
    found = report(a, b)
    assert found['wrong'] == 0 and not found['anomalies'], found['wrong']
    assert any('64 bytes' in t and '84' in t for t in found['not_judged']), found['not_judged']


def what_cannot_be_judged_is_said():
    a, b = pair()
    one = dump('-s', '0', *write(a)).splitlines()
    assert one[0].startswith('not judged: what became of frames'), one[0]
    edit.without_directions(a)
    assert 'no fault' not in dump(*write(a))
    both = report(pair('clean', 7)[0], pair('random_loss', 1000)[1])
    assert any('no frame of it' in t for t in both['not_judged']), both['not_judged']
    none = dump('-f', 'port 1', *write(*pair()))
    assert none.startswith('not judged: anything'), none[:200]


def the_first_frames_of_a_recorder_may_lack_neighbours():
    """A progress call of 3 ms: all of its frames have the time of its begin, and the recorder has
    overwritten the first half of them."""
    a, b = pair()
    begin = b.records[len(b.records) // 2].time
    call = [r for r in b.records if begin <= r.time < begin + 3000000]
    assert len(call) > 40, len(call)
    for r in call:
        r.time = begin
    b.records = [r for r in b.records if r.time >= begin and r not in call[:len(call) // 2]]
    files = a.write(path('a.pcapng')), b.write(path('b.pcapng'), 'dpdk:0: no sign of 10.0.0.1')
    found = json.loads(dump('-j', *files))['anomalies']
    assert not {f['class'] for f in found} & {'capture with gaps', 'random loss', 'burst loss',
                                              'queue or policer loss'}, found


def recorders(*captures, hosts=('1' * 16, '2' * 16)):
    for c in captures:
        edit.cut(c, 112)
    done = subprocess.run([DUMP, '-j', *(
        c.write(path('%c.pcapng' % (97 + i)), 'a lane failed', host=hosts[i])
        for i, c in enumerate(captures))], stdout=subprocess.PIPE, check=False)
    assert done.returncode in (0, 4), done.returncode
    return json.loads(done.stdout)


def recorders_of_one_host_have_one_clock():
    """A progress call of 5 ms has the time of its begin: its frames come before they were sent."""
    for hosts, equal in ((('1' * 16, '1' * 16), True), (('1' * 16, '2' * 16), False)):
        a, b = pair()
        edit.one_clock(a, b)
        begin = b.records[len(b.records) // 2].time
        for r in b.records:
            r.time = begin if begin < r.time < begin + 5000000 else r.time
        clock = recorders(a, b, hosts=hosts)['captures'][1]['clock_us']
        assert (clock == 0) == equal, clock


def a_recorder_knows_which_frames_were_damaged():
    a, b = pair('corruption', 1000)
    expect(['corruption'], a, b)
    for mine, other in ((a, b), (b, a)):
        sent = {r.data[26:] for r in other.records if r.way == edit.OUT}
        for r in mine.records:
            r.damaged = r.way == edit.IN and r.key() is not None and r.key() not in sent
    found = [f for f in recorders(a, b)['anomalies'] if f['class'] == 'corruption']
    assert len(found) == 1, found
    both = recorders(b, hosts='1')['anomalies'] + recorders(a, hosts='1')['anomalies']
    assert [f['class'] for f in both] == ['corruption'], both


def a_receiver_alone_knows_which_frames_came_twice():
    """The other recorder has no frame of that time, or there is none."""
    expect(['duplication'], *pair('duplication', 1000))
    came = []
    for side in 0, 1:
        mine, other = pair('duplication', 1000)[side], pair('duplication', 1000)[1 - side]
        edit.part(other, 0, 0.02)
        alone = [f['class'] for f in recorders(mine, hosts='1')['anomalies']]
        both = [f['class'] for f in recorders(mine, other)['anomalies']]
        came.append((alone, both))
    assert sorted(came) == [([], []), (['duplication'], ['duplication'])], came


def frames_behind_the_end_of_a_recorder_are_not_lost():
    """Its last progress call takes a whole burst from one lane, and leaves the rest in its port."""
    a, b = pair()
    edit.one_clock(a, b)
    until = b.records[len(b.records) // 2].time
    rest = [r for r in b.records if r.time > until and r.way == edit.IN and r.iface == 0][:32]
    for r in rest:
        r.time = until + 15000000
    unsent = {r.key() for r in b.records if r.time > until and r.way == edit.OUT}
    a.records = [r for r in a.records if r.way == edit.OUT or r.key() not in unsent]
    b.records = [r for r in b.records if r.time <= until] + rest
    assert rest[-1].time < a.records[-1].time
    found = recorders(a, b, hosts=('1' * 16, '1' * 16))
    assert not {f['class'] for f in found['anomalies']} & {
        'random loss', 'burst loss', 'queue or policer loss', 'blackhole one way',
        'lane down', 'capture with gaps'}, found['anomalies']
    assert not any(f['class'].endswith('loss') for f in found['observations']), found


def frames_that_a_late_host_takes_are_no_gaps_of_a_recorder():
    """The recorder of their sender begins after them."""
    a, b = pair()
    edit.one_clock(a, b)
    begin = a.records[len(a.records) // 2].time
    a.records = [r for r in a.records if r.time >= begin]
    for r in b.records:
        if r.way == edit.IN and begin - 3000000 <= r.time < begin + 2000000:
            r.time = begin + 2000000
    b.records.sort(key=lambda r: r.time)
    found = recorders(a, b, hosts=('1' * 16, '1' * 16))['anomalies']
    assert 'capture with gaps' not in {f['class'] for f in found}, found


def a_recorder_that_begins_behind_the_change_shows_it():
    """A delay of one lane by its floor, beside the other lane; an MTU by what its search loses."""
    for longer in (0, 5000000):
        a, b = pair()
        edit.one_clock(a, b)
        for capture in (a, b): # a frame has left before the next one
            edit.slowed(capture, 10, a.begin())
        edit.delayed(b, 0, 0, longer)
        found = [f for f in recorders(a, b)['anomalies'] if f['class'] == 'delay or jitter']
        assert len(found) == (longer > 0), found
        assert not longer or 'dpdk:b0' in found[0]['where'], found
    a, b = pair()
    big = max(r.len for r in b.records)
    for r in b.records:
        r.search = r.way == edit.IN and r.iface == 0 and r.len >= big
    lost = {r.key() for r in b.records if r.search}
    assert len(lost) > 20, len(lost)
    b.records = [r for r in b.records if not r.search]
    found = recorders(a, b)['anomalies']
    assert 'random loss' not in {f['class'] for f in found}, found


def the_recorders_reason_is_printed():
    a = pair()[0].write(path('r.pcapng'), 'dpdk:0: no sign of 10.0.0.5 for 2.3 s, probed 3 times')
    assert 'r.pcapng was written because: dpdk:0: no sign' in dump(a)
    assert json.loads(dump('-j', a))['captures'][0]['comment'].startswith('dpdk:0: no sign')


def the_verdict_is_the_first_line():
    files = write(*pair('random_loss', 1000))
    lines = dump('-s', '0', *files).splitlines()
    lane = truth('random_loss', 1000)
    assert lines[0].startswith('random loss, '), lines[0]
    for name in lane['lane']:
        assert 'dpdk:' + name in lines[0], lines[0]
    assert lines[1].startswith('  since ') and lines[2].startswith('  to do: '), lines[:3]
    first = next(i for i, line in enumerate(lines) if ': clock ' in line)
    assert first <= 24, lines[:first]
    assert json.loads(dump('-j', *files))['version'] == 2


MAC_A, MAC_B, MAC_C = (b'\x02\0\0\0\0' + bytes([n]) for n in (1, 2, 3))
IP_A, IP_B, ROUTER = (b'\x0a\0\0' + bytes([n]) for n in (1, 2, 254))


def arp(op, src, sip, tip, vlan=0):
    tag = struct.pack('>HH', 0x8100, vlan) if vlan else b''
    return (b'\xff' * 6 if op == 1 else MAC_A) + src + tag + struct.pack(
        '>HHHBBH', 0x806, 1, 0x800, 6, 4, op) + src + sip + bytes(6) + tip


def ip_sum(data):
    total = sum(struct.unpack('>%dH' % (len(data) // 2), data))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    return struct.pack('>H', ~total & 0xffff)


def icmp(kind, code):
    quoted = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 60, 0, 0, 1, 17, 0, IP_A, IP_B) + \
        struct.pack('>HHHH', 20000, 20000, 40, 0)
    head = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 28 + len(quoted), 0, 0, 64, 1, 0, ROUTER, IP_A)
    head = head[:10] + ip_sum(head) + head[12:]
    text = bytes([kind, code]) + bytes(6) + quoted
    return MAC_A + MAC_C + b'\x08\0' + head + text[:2] + ip_sum(text) + text[4:]


IP6_A, IP6_B, ROUTER6 = (b'\xfd' + bytes(14) + bytes([n]) for n in (1, 2, 254))


def icmp6(text, src, dst, hops=255, src_mac=MAC_C, vlan=0):
    """A frame with the message @text, whose checksum is filled in."""
    total = ip_sum(src + dst + struct.pack('>II', len(text), 58) + text)
    tag = struct.pack('>HH', 0x8100, vlan) if vlan else b''
    return (MAC_A + src_mac + tag + b'\x86\xdd' +
            struct.pack('>IHBB', 6 << 28, len(text), 58, hops) + src + dst + text[:2] + total +
            text[4:])


def neighbour(answer, mac, src, dst, vlan=0):
    """A solicitation for the MAC address of @dst, or the advertisement of @src to @dst."""
    kind, flags, target, option = (136, 0x60, src, 2) if answer else (135, 0, dst, 1)
    text = bytes([kind, 0, 0, 0, flags, 0, 0, 0]) + target + bytes([option, 1]) + mac
    group = b'\xff\x02' + bytes(9) + b'\x01\xff' + dst[13:]
    return icmp6(text, src, dst if answer else group, src_mac=mac, vlan=vlan)


def error6(kind, code, mtu=0):
    quoted = struct.pack('>IHBB', 6 << 28, 40, 17, 64) + IP6_A + IP6_B + \
        struct.pack('>HHHH', 20000, 20000, 40, 0) + bytes(32)
    return icmp6(bytes([kind, code, 0, 0]) + struct.pack('>I', mtu) + quoted, ROUTER6, IP6_A, 64)


def crafted(frames, name='x.pcapng'):
    """What is named in a capture of these frames: direction, bytes, and their length if cut."""
    body = struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1)
    out = edit.block(edit.SECTION, body) + edit.block(edit.INTERFACE, struct.pack(
        '<HHIHHI', 1, 0, 0, 9, 1, 9) + bytes(4))
    for number, (way, data, *length) in enumerate(frames):
        out += edit.block(edit.PACKET, struct.pack(
            '<IIIII', 0, 0, 1000000 * (number + 1), len(data), *length or [len(data)]) + data +
            bytes(-len(data) % 4) + struct.pack('<HHIHH', 2, 4, way, 0, 0))
    with open(path(name), 'wb') as f:
        f.write(out)
    return json.loads(dump('-j', path(name)))['anomalies']


def other_protocols_name_faults():
    ask = (edit.OUT, arp(1, MAC_A, IP_A, IP_B))
    tagged = (edit.OUT, arp(1, MAC_A, IP_A, IP_B, 10))
    found = crafted([tagged, (edit.IN, arp(1, MAC_B, IP_B, IP_A, 20))] * 3)
    assert [f['class'] for f in found] == ['wrong VLAN'], found
    assert 'VLAN 10' in found[0]['evidence'] and 'VLAN 20' in found[0]['evidence'], found
    answers = [(edit.IN, arp(2, m, IP_B, IP_A)) for m in (MAC_B, MAC_C)]
    found = crafted([ask] + answers)
    assert [f['class'] for f in found] == ['two ARP answers'], found
    assert crafted([ask, answers[0], ask, answers[1]]) == []
    sent = (edit.OUT, cut_frame(1, IP_A, IP_B))
    for kind, code, name in ((11, 0, 'TTL'), (3, 13, 'firewall'), (3, 4, 'path MTU'),
                             (3, 3, 'unreachable')):
        found = crafted_cut([sent], (edit.IN, icmp(kind, code)))
        assert [f['class'] for f in found] == [name], (name, found)
        assert '10.0.0.254' in found[0]['evidence'], found
    # A host that has closed its connection has no port any more.
    bye = (edit.IN, cut_frame(10, IP_B, IP_A))
    assert crafted_cut([sent, bye], (edit.IN, icmp(3, 3))) == []
    assert [f['class'] for f in crafted_cut([sent, bye], (edit.IN, icmp(3, 13)))] == ['firewall']
    # Another process of that host has another port.
    other = [(edit.IN, cut_frame(kind, IP_B, IP_A, 9, 20001)) for kind in (8, 10)]
    assert crafted_cut([sent, bye, other[0]], (edit.IN, icmp(3, 3))) == []
    up = (edit.IN, cut_frame(8, IP_B, IP_A))
    found = crafted_cut([sent, up, other[1]], (edit.IN, icmp(3, 3)))
    assert [f['class'] for f in found] == ['unreachable'], found


# @behaviour Y96: what neighbour discovery and ICMPv6 show of a lane with IPv6 is named: two owners
# of an address, another VLAN, errors of routers
def neighbour_discovery_names_faults():
    ask = (edit.OUT, neighbour(False, MAC_A, IP6_A, IP6_B))
    answers = [(edit.IN, neighbour(True, m, IP6_B, IP6_A)) for m in (MAC_B, MAC_C)]
    found = crafted([ask] + answers)
    assert [f['class'] for f in found] == ['two advertisements'], found
    for text in ('02:00:00:00:00:02', '02:00:00:00:00:03', 'fd00::2'):
        assert text in found[0]['evidence'], found
    assert crafted([ask, answers[0], ask, answers[1]]) == []
    tagged = (edit.OUT, neighbour(False, MAC_A, IP6_A, IP6_B, 10))
    found = crafted([tagged, (edit.IN, neighbour(False, MAC_B, IP6_B, IP6_A, 20))] * 3)
    assert [f['class'] for f in found] == ['wrong VLAN'], found
    assert 'fd00::2 requests its address in VLAN 20' in found[0]['evidence'], found
    crafted([ask] * 4)
    assert 'neighbour solicitations from fd00::1 for fd00::2' in dump(path('x.pcapng'))
    crafted([ask] * 4 + answers[:1])
    assert 'no answer' not in dump(path('x.pcapng'))
    # What a host does not accept shows nothing: a router has forwarded it, or a bit is wrong.
    bad = bytearray(answers[1][1])
    bad[21] = 254
    assert crafted([ask, answers[0], (edit.IN, bytes(bad))]) == []
    bad = answers[1][1][:-1] + bytes([answers[1][1][-1] ^ 1])
    assert crafted([ask, answers[0], (edit.IN, bad)]) == []


# @behaviour Y96
def icmpv6_names_faults():
    sent = (edit.OUT, cut_frame(1, IP6_A, IP6_B))
    for kind, code, name in ((1, 0, 'unreachable'), (1, 1, 'firewall'), (1, 3, 'unreachable'),
                             (1, 4, 'unreachable'), (1, 5, 'firewall'), (2, 0, 'path MTU'),
                             (3, 0, 'TTL')):
        found = crafted_cut([sent], (edit.IN, error6(kind, code, 1400 if kind == 2 else 0)))
        assert [f['class'] for f in found] == [name], (kind, code, found)
        text = 'for fd00::1 > fd00::2, 1 times (ICMPv6 type %d, code %d)' % (kind, code)
        assert 'fd00::fe reports ' in found[0]['evidence'] and text in found[0]['evidence'], found
        assert ('MTU 1400' in found[0]['evidence']) == (kind == 2), found
    bye = (edit.IN, cut_frame(10, IP6_B, IP6_A))
    assert crafted_cut([sent, bye], (edit.IN, error6(1, 4))) == []
    # Errors about other hosts, parameter problems, and a wrong checksum name nothing.
    assert crafted_cut([(edit.OUT, cut_frame(1, IP6_A, ROUTER6))], (edit.IN, error6(1, 1))) == []
    assert crafted_cut([sent], (edit.IN, error6(4, 0))) == []
    bad = error6(1, 1)
    assert crafted_cut([sent], (edit.IN, bad[:-1] + bytes([bad[-1] ^ 1]))) == []
    text = dump(path('y.pcapng'))
    assert 'no answer to the last' not in text
    crafted_cut([sent] * 4, (edit.IN, error6(1, 1)))
    assert 'HELLO from fd00::1 to fd00::2' in dump(path('y.pcapng'))


def simulated(case):
    """The first lines about the frames of all ports of a case of lane_ip6."""
    subprocess.run([os.path.join(BUILD, 'test', 'sim', 'sim_lane_ip6'), '-k', case, '-s', '1', '-n',
                    '1', '-w', path('six.pcapng')], check=True, stdout=subprocess.DEVNULL)
    return dump('-s', '0', path('six.pcapng'), code=4) # bodies are no messages of the library


# @behaviour Y96
def simulated_lanes_with_ipv6_have_the_same_faults():
    text = simulated('packet_too_big_is_heeded')
    assert 'path MTU, ' in text and 'fd00::ee reports packet too big (MTU 1500) for ' \
        'fd00::a > fd00::b' in text, text
    assert 'neighbour discovery of IPv6' in text, text
    text = simulated('an_unrequested_advertisement')
    assert 'two advertisements, ' in text and 'solicitations for fd00::b' in text, text


def cut_frame(kind, source, target, conn=1, port=20000):
    """A frame of this type. It is cut, so that it needs no CRC32C."""
    hello = struct.pack('<HBBHHIIIIHBBIIIH', 0x6657, 2, kind, 4, 42 + 64, conn, 2, 0, 0, 5, 0, 0, 0,
                        7, 8, 0xffff) + bytes(64 + 4)
    udp = struct.pack('>HHHH', port, 20000, 8 + len(hello), 0) + hello
    if len(source) == 16:
        return (MAC_C + MAC_A + b'\x86\xdd' + struct.pack('>IHBB', 6 << 28, len(udp), 17, 64) +
                source + target + udp)[:120]
    ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 28 + len(hello), 0, 0, 64, 17, 0, source, target)
    ip = ip[:10] + ip_sum(ip) + ip[12:]
    return (MAC_C + MAC_A + b'\x08\0' + ip + udp)[:120]


def crafted_cut(cut, error):
    """As crafted(), with frames before @error that had more bytes."""
    return crafted([(way, data, 14 + (40 if data[12:14] == b'\x86\xdd' else 20) + 8 + 42 + 64 + 4)
                    for way, data in cut] + [error], 'y.pcapng')


def packet(time, way, data):
    return edit.Record(struct.pack('<IIIII', 0, time >> 32, time & 0xffffffff, len(data),
                                   len(data)) + data + bytes(-len(data) % 4) +
                       struct.pack('<HHI', 2, 4, way) + bytes(4))


def counters(file, time, text):
    text = ('hw_counters mlx5_0 ' + text).encode()
    file.write(edit.block(edit.STATISTICS, struct.pack(
        '<IIIHH', 0, time >> 32, time & 0xffffffff, 1, len(text)) + text +
        bytes(-len(text) % 4) + bytes(4)))


def the_first_lines_are_24_at_most():
    """With more of each kind than these lines have: faults, requests without an answer,
    observations, devices, what is not judged, and the reason of a flight recorder."""
    a, b = pair()
    long = [r for r in b.records if r.way == edit.IN and r.iface == 0 and len(r.data) > 500][20]
    long.data = long.data[:-1] + bytes([long.data[-1] ^ 1])
    edit.stops(a, b, 0.5, 10**10, 1500000)
    time = a.records[-1].time
    tagged = (edit.OUT, arp(1, MAC_A, IP_A, IP_B, 10))
    more = [tagged, (edit.IN, arp(1, MAC_B, IP_B, IP_A, 20)), (edit.OUT, arp(1, MAC_A, IP_A, IP_B))]
    more += [(edit.IN, arp(2, m, IP_B, IP_A)) for m in (MAC_B, MAC_C)]
    more += [(edit.OUT, arp(1, MAC_A, IP_A, IP_A[:3] + bytes([n]))) for n in (5, 6, 7, 8)] * 3
    more += [(edit.OUT, arp(1, MAC_A, IP_A, IP_B))]
    more += [(edit.IN, icmp(*k)) for k in ((11, 0), (3, 13), (3, 4), (3, 3), (3, 1))]
    a.records += [packet(time + 1000 * n, *frame) for n, frame in enumerate(more, 1)]
    for capture in (a, b):
        capture.records[100].data = capture.records[100].data[:64]
    files = a.write(path('a.pcapng'), 'dpdk:0: no sign of 10.0.0.5'), b.write(path('b.pcapng'))
    with open(files[0], 'ab') as f:
        for n in (1, 2):
            counters(f, time, ' '.join('%d/np_cnp_sent=%d' % (p, n) for p in (1, 2, 3)))
    lines = dump('-s', '0', *files, code=4).splitlines()
    lines = lines[:next(i for i, line in enumerate(lines) if ': clock ' in line)]
    assert len(lines) == 24, lines
    for text, number in (('  to do: ', 5), ('weaker faults: see', 1), ('no answer to', 2),
                         ('further unanswered', 1), ('RoCE device', 2), ('not judged', 2),
                         ('was written because', 1), ('observed: ', 0)):
        assert sum(text in line for line in lines) == number, (text, lines)
    found = json.loads(dump('-j', *files, code=4))
    assert len(found['anomalies']) > 5 and len(found['observations']) >= 2, found['observations']


def an_interrupt_prints_the_report():
    with open(write(pair()[0])[0], 'rb') as f:
        data = f.read()
    with subprocess.Popen([DUMP, '-'], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(data)
        process.stdin.flush()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        text = process.stdout.read().decode()
        process.stdin.close()
        assert process.wait(20) == 0, process.returncode
    assert 'messages eager' in text and 'slowest messages' in text, text[:500]


def intervals(*files):
    out = dump('--every', '0.005', *files)
    return [line for line in out.splitlines() if ' messages' in line and ' s): ' in line], out


def each_interval_is_reported():
    a, b = pair('random_loss', 1000)
    files = write(a, b)
    heads, out = intervals(*files)
    records = sorted(r.time for c in (a, b) for r in c.records)
    assert len(heads) >= 3, heads
    frames = sum(int(h.split('): ')[1].split(' frames')[0]) for h in heads)
    assert 0.8 * len(records) < frames <= len(records), (frames, len(records))
    assert out.count(' MB/s, ') >= 2 * len(heads), out[:2000]
    assert 'no fault' not in out and 'random loss, ' in out # the report of all follows
    assert 'fault: ' not in intervals(*write(*pair()))[1]


def a_new_fault_is_reported_once():
    ask = (edit.OUT, arp(1, MAC_A, IP_A, IP_B))
    answers = [(edit.IN, arp(2, m, IP_B, IP_A)) for m in (MAC_B, MAC_C)]
    crafted([ask] + answers + [ask] * 5)
    out = dump('--every', '0.002', path('x.pcapng'))
    assert out.count('fault: two ARP answers') == 1, out
    assert out.index('fault: two ARP') < out.index('two ARP answers, '), out


def a_silence_is_one_line():
    a = pair()[0]
    for r in a.records[len(a.records) // 2:]:
        r.time += 3 * 10**9
    out = dump('--every', '0.5', *write(a))
    assert re.search(r'no frame in [23]\.\d+ s', out), out[:1000]


def an_interval_is_printed_while_the_capture_goes_on():
    with open(write(pair()[0])[0], 'rb') as f:
        data = f.read()
    with subprocess.Popen([DUMP, '--every', '0.005', '-'], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        process.stdin.write(data)
        process.stdin.flush()
        assert b' frames, ' in process.stdout.readline()
        process.stdin.close()
        assert b'messages eager' in process.stdout.read() and process.wait(20) == 0


tap.run([a_sender_that_pauses_makes_no_host_slow, clocks_may_differ,
         captures_begin_and_end_at_other_times, records_that_a_capture_lost_are_its_own_fault,
         loss_is_found_beside_the_gaps_of_a_capture, loss_and_slowness_are_both_named,
         random_loss_is_random_beside_a_host_that_seldom_polls,
         a_silence_hides_no_loss_while_the_ring_has_room,
         a_stop_is_a_share_of_the_time, a_share_of_all_of_the_time_is_100_percent,
         each_long_stop_has_a_time, two_frames_prove_corruption,
         a_delay_is_found_beside_a_slow_host,
         a_floor_that_lasts_is_the_path_s, a_process_that_is_killed_is_named,
         frames_that_a_killed_process_has_not_written_are_no_fault,
         one_capture_shows_that_the_peer_is_silent, directions_follow_from_addresses_and_times,
         three_hosts_without_directions, short_frames_are_not_wrong, what_cannot_be_judged_is_said,
         the_first_frames_of_a_recorder_may_lack_neighbours,
         recorders_of_one_host_have_one_clock, a_receiver_alone_knows_which_frames_came_twice,
         a_recorder_knows_which_frames_were_damaged,
         frames_behind_the_end_of_a_recorder_are_not_lost,
         frames_that_a_late_host_takes_are_no_gaps_of_a_recorder,
         a_recorder_that_begins_behind_the_change_shows_it, the_recorders_reason_is_printed,
         the_verdict_is_the_first_line,
         other_protocols_name_faults, neighbour_discovery_names_faults, icmpv6_names_faults,
         simulated_lanes_with_ipv6_have_the_same_faults, the_first_lines_are_24_at_most,
         an_interrupt_prints_the_report,
         each_interval_is_reported, a_new_fault_is_reported_once, a_silence_is_one_line,
         an_interval_is_printed_while_the_capture_goes_on])
