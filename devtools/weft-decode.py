#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints a capture (WEFT_CAPTURE) of raw-DPDK lanes frame by frame.

Written from doc/wire.md and not from the headers, so that it also shows whether that page is enough
to read a frame. Whatever the page does not allow is an error: the exit code is 1 then.
"""

import argparse
import collections
import signal
import struct


class Wrong(Exception):
    """The bytes are not what doc/wire.md says."""


def shown(data):
    """Text of a peer, without what a terminal would take for a command."""
    return ''.join(c if c.isprintable() else '?' for c in data.decode('utf-8', 'replace'))


def need(ok, text):
    if not ok:
        raise Wrong(text)


# ---- pcapng -----------------------------------------------------------------------------------

def packets(data):
    """(interface, 'in' or 'out', bytes) of each enhanced packet block."""
    need(data[:4] == b'\x0a\x0d\x0d\x0a' and data[8:12] == b'\x4d\x3c\x2b\x1a',
         'no pcapng file, or one of another byte order')
    off = 0
    while off < len(data):
        need(off + 12 <= len(data), 'pcapng: cut short')
        kind, length = struct.unpack_from('<II', data, off)
        need(12 <= length <= len(data) - off and length % 4 == 0,
             'pcapng: a block of %d bytes' % length)
        if kind == 6:
            need(length >= 32, 'pcapng: a packet block of %d bytes' % length)
            iface, _, _, cap, _ = struct.unpack_from('<IIIII', data, off + 8)
            need(cap <= length - 32,
                 'pcapng: a packet of %d bytes in a block of %d' % (cap, length))
            options = data[off + 28 + (cap + 3) // 4 * 4:off + length - 4]
            yield iface, direction(options), data[off + 28:off + 28 + cap]
        off += length


def direction(options):
    off = 0
    while off + 4 <= len(options):
        code, length = struct.unpack_from('<HH', options, off)
        if code == 2:
            need(length == 4 and off + 8 <= len(options),
                 'pcapng: the flags of a packet have %d bytes' % length)
            return {1: 'in', 2: 'out'}.get(struct.unpack_from('<I', options, off + 4)[0] & 3, '?')
        off += 4 + (length + 3) // 4 * 4
    return '?'


# ---- lane frames ------------------------------------------------------------------------------

CRC = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
    CRC.append(n)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = CRC[(crc ^ byte) & 0xff] ^ crc >> 8
    return crc ^ 0xffffffff


TYPES = {1: 'HELLO', 2: 'HELLO_ACK', 3: 'PROBE', 4: 'PROBE_ACK', 5: 'READY', 6: 'READY_ACK',
         7: 'DATA', 8: 'ACK', 9: 'RESET',
         10: 'BYE', 11: 'BYE_ACK', 12: 'HELLO_RETRY', 13: 'CHALLENGE', 14: 'CHALLENGE_ACK',
         15: 'PART', 16: 'ALIVE'}
ACK_REQ, SACK, CRC32C, RETX, ECN = 1, 2, 4, 8, 16


def lane_frame(frame):
    """What follows Ethernet, VLAN tag, IPv4 and UDP; None for frames of others (ARP)."""
    off = 12
    ethertype, = struct.unpack_from('>H', frame, off)
    if ethertype == 0x8100:
        off += 4
        ethertype, = struct.unpack_from('>H', frame, off)
    off += 2
    if ethertype == 0x88b5:
        return frame[off:]
    if ethertype != 0x0800:
        return None
    need(frame[off] == 0x45 and frame[off + 9] == 17, 'IPv4 with options, or not UDP')
    words = struct.unpack_from('>10H', frame, off)
    total = sum(words)
    need((total & 0xffff) + (total >> 16) in (0xffff, 0x1fffe), 'the checksum of the IPv4 header')
    return frame[off + 28:off + words[1]]


def body_text(kind, body):
    if kind in (1, 2):
        need(len(body) >= 72, 'a hello of %d bytes' % len(body))
        v = struct.unpack_from('<IIQQQIIIHBBIHBxQQ', body)
        return 'conn %x token %08x worker %016x iface %016x peer_iface %016x first_seq %08x ' \
            'rx_frames %d rx_bufs %d frame_size %d csum %d paths %d features %x udp_port %d ' \
            'steer %d secret %016x cookie %016x' % v
    if kind in (3, 4):
        need(len(body) >= 4, 'a probe of %d bytes' % len(body))
        return 'id %d frame_size %d' % struct.unpack_from('<HH', body)
    if kind == 5:
        need(len(body) >= 4, 'READY of %d bytes' % len(body))
        size, paths = struct.unpack_from('<HH', body)
        need(len(body) >= 4 + 2 * paths, 'READY with %d paths in %d bytes' % (paths, len(body)))
        ports = struct.unpack_from('<%dH' % paths, body, 4)
        return 'frame_size %d ports %s' % (size, ' '.join(str(p) for p in ports))
    if kind == 9:
        need(len(body) >= 12, 'RESET of %d bytes' % len(body))
        return 'reason %d versions %d..%d echo_conn %x echo_token %08x' \
            % struct.unpack_from('<HBBII', body)
    if kind == 12:
        need(len(body) >= 8, 'HELLO_RETRY of %d bytes' % len(body))
        return 'cookie %016x' % struct.unpack_from('<Q', body)
    if kind in (13, 14):
        need(len(body) >= 16, 'a challenge of %d bytes' % len(body))
        return 'number %016x proof %016x' % struct.unpack_from('<QQ', body)
    if kind == 15:
        need(len(body) > 4, 'PART of %d bytes' % len(body))
        offset, total = struct.unpack_from('<HH', body)
        end = offset + len(body) - 4
        need(offset % 8 == 0 and (end == total or end % 8 == 0 and end < total),
             'bytes %d to %d of %d' % (offset, end, total))
        return 'bytes %d to %d of %d' % (offset, end, total)
    return ''


def lane(data):
    """The type of a lane frame, a line about its header, and (am_id, bytes) of its messages."""
    need(len(data) >= 42, 'a lane header of %d bytes' % len(data))
    (magic, version, kind, flags, length, dst, token, seq, ack, src, path, echo_path, order, ts,
     echo, hold) = struct.unpack_from('<HBBHHIIIIHBBIIIH', data)
    # A RESET is the same in all versions, and is how one tells another.
    need(magic == 0x6657 and (version == 2 or kind == 9),
         'magic %04x, version %d' % (magic, version))
    need(kind in TYPES, 'type %d' % kind)
    need(flags < 32, 'flags %x' % flags)
    need(42 <= length <= len(data), 'length %d of %d' % (length, len(data)))
    text = '%s to %x token %08x seq %08x ack %08x from %x path %d/%d order %d ts %08x' \
        % (TYPES[kind], dst, token, seq, ack, src, path, echo_path, order, ts)
    text += '' if version == 2 else ' version %d' % version
    text += '' if hold == 0xffff else ' echo %08x held %d ns' % (echo, hold * 64)
    text += ''.join(' ' + name for bit, name in ((1, 'ACK_REQ'), (8, 'RETX')) if flags & bit)
    if flags & CRC32C:
        got, = struct.unpack_from('<I', data, length)
        need(got == crc32c(data[:length]), 'CRC32C %08x' % got)
    need(kind in (7, 8) or flags & CRC32C, 'a %s without CRC32C' % TYPES[kind])
    off = 42
    if flags & SACK:
        words, zero = struct.unpack_from('<HH', data, off)
        need(1 <= words <= 16 and zero == 0, 'a SACK block of %d words' % words)
        text += ' SACK ' + ' '.join('%016x' % w
                                    for w in struct.unpack_from('<%dQ' % words, data, off + 4))
        off += 4 + 8 * words
    if flags & ECN:
        paths, zero = struct.unpack_from('<HH', data, off)
        need(1 <= paths <= 16 and zero == 0, 'an ECN block of %d paths' % paths)
        marks = struct.iter_unpack('<BBH', data[off + 4:off + 4 + 4 * paths])
        text += ' ECN' + ''.join(' path %d: %d' % (p, m) for p, _, m in marks)
        off += 4 + 4 * paths
    body = data[off:length]
    if kind != 7:
        return kind, text + ' | ' * bool(body) + body_text(kind, body), []
    messages, off = [], 0
    while off < len(body):
        need(off + 4 <= len(body), 'a message head cut short')
        size, am_id, zero = struct.unpack_from('<HBB', body, off)
        need(am_id < 32 and zero == 0 and off + 4 + size <= len(body),
             'message %d of %d bytes, flags %d' % (am_id, size, zero))
        messages.append((am_id, body[off + 4:off + 4 + size]))
        off += 4 + size
    return kind, text, messages


# ---- wire-up ----------------------------------------------------------------------------------

WIREUP = {1: 'REQ', 2: 'REP', 3: 'ATTACH', 4: 'ATTACHED', 5: 'CLOSE', 6: 'ERROR', 7: 'ACK',
          8: 'CLOSING'}


def records(data):
    off = 0
    while off < len(data):
        need(off + 4 <= len(data), 'a record cut short')
        kind, length = struct.unpack_from('<HH', data, off)
        need(off + 4 + length <= len(data), 'record %d of %d bytes' % (kind, length))
        yield kind, data[off + 4:off + 4 + length]
        off += 4 + length


def address(data):
    need(len(data) >= 52 and data[:4] == b'WEFT', 'an address without its magic')
    major, minor, length, crc, zero, worker, features, name_len, ifaces, pad, secret, host = \
        struct.unpack_from('<BBHIIQQBBHQQ', data, 4)
    need(length == len(data) and zero == 0 and pad == 0 and name_len <= 63 and ifaces <= 16,
         'the head of an address')
    need(crc == crc32c(data[:8] + bytes(4) + data[12:]), 'the crc of an address')
    off = 52 + name_len
    text = 'worker %016x secret %016x host %016x features %x "%s"' \
        % (worker, secret, host, features, shown(data[52:off]))
    for _ in range(ifaces):
        index, driver_len, addr_len, _, device, bits, bw, lat, *_ = \
            struct.unpack_from('<BBBBQI6f', data, off)
        sizes = struct.unpack_from('<3IBB', data, off + 40)
        driver = data[off + 56:off + 56 + driver_len]
        own = data[off + 56 + driver_len:off + 56 + driver_len + addr_len]
        text += '; iface %d %s device %016x features %x %.3g bytes/s %.3g s, %d %d %d bytes' \
            % (index, shown(driver), device, bits, bw, lat, *sizes[:3])
        if driver == b'dpdk':
            need(addr_len == 32 and own[0] == 1, 'the address of a raw lane')
            port, vlan, frame = struct.unpack_from('<HHH', own, 2)
            text += ' at %d.%d.%d.%d/%d:%d vlan %d frame %d mac %s' \
                % (*own[11:7:-1], own[12], port, vlan, frame, own[14:20].hex(':'))
        off += 56 + driver_len + addr_len
    need(off == len(data), 'the length of an address')
    return text


def wireup_record(kind, data):
    if kind == 1:
        return 'ADDRESS ' + address(data)
    if kind == 2:
        need(len(data) % 16 == 0, 'LANES of %d bytes' % len(data))
        return 'LANES ' + ', '.join('%d: %d to %d, %d bytes, %.3g bytes/s, %.3g s'
                                    % (e[0], e[1], e[2], *e[4:])
                                    for e in struct.iter_unpack('<BBBBIff', data))
    if kind == 3:
        return 'BOOT iface %d to %d, attempt %d' % struct.unpack('<BBH', data)
    if kind == 4:
        return 'CREDIT bytes %d seq %08x small %d am_seq %08x' % struct.unpack('<QIII', data)
    if kind == 5:
        return 'TEXT "%s"' % shown(data)
    if kind == 6:
        return 'EP_ADDR of lane %d, %d bytes' % (data[0], len(data) - 2)
    if kind == 7:
        return 'MODEL copies %.3g bytes/s' % struct.unpack('<fI', data)[0]
    if kind == 8:
        return 'NEXT_SN %d' % struct.unpack('<I', data)
    need(not kind & 0x8000, 'an unknown record %x that must be known' % kind)
    return 'record %d' % kind


def wireup(data):
    need(len(data) >= 64, 'a wire-up head of %d bytes' % len(data))
    (kind, major, minor, lane_no, sn, src, dst, si, sg, di, dg, status, epoch, total, offset,
     src_secret, dst_secret) = struct.unpack_from('<BBBBIQQIIIIHHHHQQ', data)
    need(kind in WIREUP and major == 3 and epoch == 0 and offset + len(data) - 64 <= total,
         'a wire-up head')
    text = 'WIREUP %s lane %d conn_sn %d from %016x to %016x src_ep %d,%d dst_ep %d,%d ' \
        'status %d secrets %016x %016x' \
        % (WIREUP[kind], lane_no, sn, src, dst, si, sg, di, dg, status, src_secret, dst_secret)
    if total != len(data) - 64:
        return text + ' bytes %d.. of %d' % (offset, total)
    return text + ''.join(' | ' + wireup_record(k, d) for k, d in records(data[64:]))


# ---- messages of endpoints --------------------------------------------------------------------

# id: name, fields of the head, what may follow. R: a reference (index, generation), written as one
# field.
MESSAGES = {
    2: ('EAGER', '<IQ', 'seq tag', 'payload'),
    3: ('EAGER_SYNC', '<IQII', 'seq tag req gen', 'payload'),
    4: ('FRAG', '<IQQQ', 'seq tag total offset', 'piece'),
    5: ('FRAG_SYNC', '<IQQQII', 'seq tag total offset req gen', 'piece'),
    6: ('RTS', '<IQQIII', 'seq tag total req gen flags', 'records'),
    7: ('RTR', '<IIIIQQI', 'sreq gen rreq gen offset length flags', 'records'),
    8: ('DATA', '<IIQ', 'rreq gen offset', 'piece'),
    9: ('ATS', '<III', 'sreq gen status', 'records'),
    10: ('SYNC_ACK', '<III', 'sreq gen status', 'records'),
    11: ('CREDIT', '<QIII', 'bytes seq small am_seq', 'records'),
    12: ('ABORT', '<IQIIQII', 'seq tag rreq gen total status flags', 'records'),
    13: ('PULL', '<IIIIQQI', 'sreq gen rreq gen offset length lane', 'records'),
    14: ('WITHDRAW', '<IQIII', 'seq tag sreq gen flags', 'records'),
    15: ('PUT_DONE', '<IIQQ', 'rreq gen offset length', 'records'),
    16: ('AM', '<IHH', 'seq id header_length', 'payload'),
    17: ('AM_RTS', '<IHHQIII', 'seq id header_length total req gen flags', 'payload'),
    18: ('AM_FRAG', '<IHHQQ', 'seq id header_length total offset', 'piece'),
    20: ('PUT', '<QQIII', 'key offset ref gen flags', 'piece'),
    21: ('GET', '<QQQQIII', 'key offset length local ref gen flags', 'nothing'),
    22: ('GET_DATA', '<IIQ', 'ref gen offset', 'piece'),
    23: ('AMO', '<QQQQIIBBHI', 'key offset operand compare ref gen op width flags number',
         'nothing'),
    24: ('AMO_REP', '<IIQ', 'ref gen value', 'nothing'),
    25: ('RMA_NAK', '<IIQHH', 'ref gen length status flags', 'nothing'),
    26: ('RMA_FLUSH', '<QI', 'count flags', 'nothing'),
    27: ('RMA_FLUSHED', '<QQQIII', 'count naks errors status first last', 'nothing'),
}


def keys_record(kind, data):
    if kind != 1:
        need(not kind & 0x8000, 'an unknown record %x that must be known' % kind)
        return 'record %d' % kind
    need(len(data) >= 8 and (len(data) - 8) % 10 == 0, 'KEYS of %d bytes' % len(data))
    return 'KEYS offset %d' % struct.unpack_from('<Q', data) + ''.join(
        ' lane %d key %016x' % (e[0], e[2]) for e in struct.iter_unpack('<BBQ', data[8:]))


def message(am_id, data):
    if am_id == 1:
        return wireup(data)
    need(am_id in MESSAGES, 'message id %d' % am_id)
    name, form, fields, then = MESSAGES[am_id]
    head = struct.calcsize(form)
    need(len(data) >= head, '%s of %d bytes' % (name, len(data)))
    values = struct.unpack_from(form, data)
    text = name + ''.join(',%x' % v if f == 'gen' else ' %s %x' % (f, v)
                          for f, v in zip(fields.split(), values))
    rest = data[head:]
    if then == 'records':
        return text + ''.join(' | ' + keys_record(k, d) for k, d in records(rest))
    need(then != 'nothing' or not rest, '%s with %d bytes too many' % (name, len(rest)))
    need(then != 'piece' or rest, '%s without a byte' % name)
    return text + (' + %d bytes' % len(rest) if rest else '')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('file', help='a pcapng file')
    parser.add_argument('-n', type=int, metavar='N', help='only the first N frames')
    parser.add_argument('-q', '--quiet', action='store_true',
                        help='only count the frames and messages of each kind')
    parser.add_argument('-x', '--hex', action='store_true',
                        help='the bytes of each frame as well, up to 160')
    args = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as in weft-decode.py FILE | head
    try:
        with open(args.file, 'rb') as f:
            data = f.read()
    except OSError as err:
        parser.exit(2, 'weft-decode: %s: %s\n' % (args.file, err.strerror))
    counts, wrong = collections.Counter(), 0
    try:
        for number, (iface, way, frame) in enumerate(packets(data), 1):
            if args.n and number > args.n:
                break
            try:
                inner = lane_frame(frame)
                if inner is None:
                    counts['not a lane frame'] += 1
                    continue
                kind, text, messages = lane(inner)
                lines = [text] + ['    ' + message(*m) for m in messages]
            except (Wrong, struct.error, IndexError, UnicodeDecodeError) as err:
                wrong += 1
                print('%d: WRONG: %s: %s' % (number, err, frame[:96].hex(' ')))
                continue
            counts['frame ' + TYPES[kind]] += 1
            for line in lines[1:]:
                counts['message '
                       + ' '.join(line.split()[:2 if line.split()[0] == 'WIREUP' else 1])] += 1
            if not args.quiet:
                print('%d: iface %d %-3s %d bytes %s'
                      % (number, iface, way, len(frame), '\n'.join(lines)))
                if args.hex:
                    print('    ' + frame[:160].hex(' '))
    except Wrong as err:
        parser.exit(1, 'weft-decode: %s: %s\n' % (args.file, err))
    if args.quiet:
        for what, count in sorted(counts.items()):
            print('%7d %s' % (count, what))
    if wrong:
        parser.exit(1,
                    'weft-decode: %s: %d frames are not as doc/wire.md says\n' % (args.file, wrong))


if __name__ == '__main__':
    main()
