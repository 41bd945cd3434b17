# SPDX-License-Identifier: BSD-3-Clause
"""Captures that no program writes: pcapng by hand."""

import struct

HOSTILE = b'=<script>alert(1)</script>"&\x1b[2J\''


def block(kind, body):
    body += bytes(-len(body) % 4)
    size = struct.pack('<I', len(body) + 12)
    return struct.pack('<I', kind) + size + body + size


def option(code, data):
    return struct.pack('<HH', code, len(data)) + data + bytes(-len(data) % 4)


def hostile(path):
    """A capture whose interface has a name that is HTML, CSV and a command for terminals; times
    run backwards."""
    out = block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1))
    out += block(1, struct.pack('<HHI', 1, 0, 0) + option(9, b'\x09') +
                 option(2, HOSTILE.replace(b' ', b'')))
    eager = struct.pack('<HBBIQ', 20, 2, 0, 0, 5) + bytes(8)
    for seq, time in enumerate((3 * 10**18, 10**18, 0, 2**64 - 1, 10**18)):
        frame = bytes(12) + b'\x88\xb5' + struct.pack(
            '<HBBHHIIIIHBBIIIH', 0x6657, 2, 7, 0, 42 + len(eager), 1, 2, seq, 0, 5, 0, 0, seq, 7,
            8, 0xffff) + eager
        out += block(6, struct.pack('<IIIII', 0, time >> 32, time & 0xffffffff, len(frame),
                                    len(frame)) + frame + bytes(-len(frame) % 4) +
                     struct.pack('<HHI', 2, 4, 2))
    with open(path, 'wb') as f:
        f.write(out)
    return path
