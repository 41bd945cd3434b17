#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""unseal.py CAPTURE KEYFILE: opens every sealed frame of a capture, with the job key alone.

An independent reader of doc/sealing.md and doc/wire.md, with the package cryptography. The ends
must make their keys without X25519 (WEFT_SEAL_DH=n). It prints the number of frames of each type.
It also prints the number of connections by their exchange: 2, or 3 for the further lanes of an
endpoint, whose keys follow from those of its first lane. It fails if a frame does not open, if a
number comes twice, or if a frame behind the handshake is plain. Exit code 77: the package is not
there.
"""

import collections
import hashlib
import os
import sys

from pcapng_edit import Capture

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'unit', 'seal'))
import vectors  # noqa: E402

NAMES = {1: 'HELLO', 2: 'HELLO_ACK', 3: 'PROBE', 4: 'PROBE_ACK', 5: 'READY', 6: 'READY_ACK',
         7: 'DATA', 8: 'ACK', 9: 'RESET', 10: 'BYE', 11: 'BYE_ACK', 12: 'HELLO_RETRY',
         13: 'CHALLENGE', 14: 'CHALLENGE_ACK', 15: 'PART', 16: 'ALIVE', 17: 'GONE'}
PLAIN = (1, 2, 9, 12, 13)
LANE, HEADER = 42, 42  # the lane header in a frame with IPv4 and without a tag; its length
AUTH = 1


def number(data, at, size):
    return int.from_bytes(data[at:at + size], 'little')


class Job:
    """The keys of all connections, from the hellos of the capture."""

    def __init__(self, key):
        self.roots = {}
        self.job = self.add(key)
        self.hellos, self.keys, self.exchanges = {}, {}, collections.Counter()

    def add(self, key):
        """A key of exchanges, by its id: the job key, or the exporter secret of a connection."""
        root = vectors.extract(bytes(32), key)
        key_id = vectors.expand(root, b'weft key id 1', 8)
        self.roots[key_id] = root
        return key_id

    def check(self, version, kind, answered, body):
        """@return the root of its keys"""
        assert body[74] in (2, 3), 'exchange %d: this reader has 2 and 3 only' % body[74]
        assert body[80:88] in self.roots, 'another job key'
        assert (body[74] == 2) == (body[80:88] == self.job), 'the key of another exchange'
        root = self.roots[body[80:88]]
        mac_key = vectors.expand(root, b'weft hello mac 1', 32)
        assert body[136:152] == vectors.hello_mac(mac_key, version, kind, answered, body)
        return root

    def hello(self, version, body):
        self.check(version, 1, bytes(16), body)
        # The connection that the sender gives itself.
        self.hellos[number(body, 0, 4)] = body

    def ack(self, version, to, body):
        """Of the connection @to of the initiator."""
        hello = self.hellos[to]
        root = self.check(version, 2, hello[136:152], body)
        both = hashlib.sha256(vectors.hello_hash(version, 1, hello) +
                              vectors.hello_hash(version, 2, body)).digest()
        token = number(hello, 4, 4)
        if (to, token) not in self.keys:
            self.exchanges[body[74]] += 1
        self.add(vectors.expand(root, b'weft exporter 1' + both, 32))
        back = vectors.expand(root, b'weft responder 1' + both, 32)
        self.keys[to, token] = (back, hello[72])
        self.keys[number(body, 0, 4), number(body, 4, 4)] = \
            (vectors.expand(root, b'weft initiator 1' + both, 32), hello[72])


def opened(secret, mode, lane):
    """The frame's plain body."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    head, rest = lane[:HEADER + 8], lane[HEADER + 8:]
    key = vectors.expand(secret, b'weft frame key 1', 20)
    nonce = key[16:] + head[HEADER:][::-1]
    if mode == AUTH:
        AESGCM(key[:16]).decrypt(nonce, rest[-16:], head + rest[:-16])
        return rest[:-16]
    return AESGCM(key[:16]).decrypt(nonce, rest, head)


def read(capture, job):
    count, seen, messages = collections.Counter(), set(), 0
    for r in Capture(capture).records:
        if r.data[12:14] != b'\x08\x00' or r.data[LANE:LANE + 2] != b'Wf':
            continue
        lane = r.data[LANE:]
        version, kind, flags, length = lane[2], lane[3], number(lane, 4, 2), number(lane, 6, 2)
        if not flags & 0x20:
            assert kind in PLAIN, 'a plain %s' % NAMES[kind]
            if kind == 1:
                job.hello(version, lane[HEADER:length])
            elif kind == 2:
                job.ack(version, number(lane, 8, 4), lane[HEADER:length])
            continue
        to = number(lane, 8, 4), number(lane, 12, 4)
        secret, mode = job.keys[to]
        body = opened(secret, mode, lane[:length + 16])
        assert (to, lane[HEADER:HEADER + 8], r.way) not in seen, 'a number comes twice'
        seen.add((to, lane[HEADER:HEADER + 8], r.way))
        count[NAMES[kind]] += 1
        at = 0
        while kind == 7 and not flags & 0x12 and at < len(body):
            at += 4 + number(body, at, 2)
            messages += 1
        assert kind != 7 or flags & 0x12 or at == len(body), 'messages do not fill a body'
    return count, messages


def main():
    try:
        import cryptography  # noqa: F401
    except ImportError:
        print('the package cryptography is not installed')
        return 77
    with open(sys.argv[2], 'rb') as f:
        job = Job(f.read())
    count, messages = read(sys.argv[1], job)
    print(', '.join('%s %d' % item for item in sorted(count.items())), '; messages', messages)
    print(', '.join('exchange %d: %d' % item for item in sorted(job.exchanges.items())))
    return 0 if count['DATA'] > 0 and count['ACK'] > 0 and messages > 0 else 1


if __name__ == '__main__':
    sys.exit(main())
