#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""vectors.py: computes the vectors of doc/sealing.md with Python's own hashes and, where it is
there, the package cryptography. The schedule here is written from the document, not from the C
code. It prints name and value; exchange.c, greeting.c and sealed.c of this folder compare with the
same values.
"""

import hashlib
import hmac


def extract(salt, key):
    return hmac.new(salt, key, hashlib.sha256).digest()


def expand(prk, info, length):
    out, block, count = b'', b'', 1
    while len(out) < length:
        block = hmac.new(prk, block + info + bytes([count]), hashlib.sha256).digest()
        out += block
        count += 1
    return out[:length]


def hello_hash(version, kind, body):
    """Cookie, proof and MAC count as zero."""
    body = body[:64] + bytes(8) + body[72:120] + bytes(32) + body[152:]
    return hashlib.sha256(bytes([version, kind]) + body).digest()


def hello_mac(key, version, kind, answered, body):
    body = body[:64] + bytes(8) + body[72:136] + bytes(16) + body[152:]
    return hmac.new(key, bytes([version, kind]) + answered + body, hashlib.sha256).digest()[:16]


def schedule(key=bytes(range(32)), exchange=2, lane=0):
    """Exchange 2 or 3 of two fixed hellos."""
    root = extract(bytes(32), key)
    key_id = expand(root, b'weft key id 1', 8)
    mac_key = expand(root, b'weft hello mac 1', 32)
    sealed = bytes([2, 1, exchange, lane]) + bytes(4) + key_id
    hello = bytes(0x40 + i for i in range(72)) + sealed + b'\xa1' * 32 + bytes(32)
    mac = hello_mac(mac_key, 3, 1, bytes(16), hello)
    hello = hello[:136] + mac
    ack = bytes((0x90 + i) & 0xff for i in range(72)) + sealed + b'\xb2' * 32 + bytes(32)
    ack_mac = hello_mac(mac_key, 3, 2, mac, ack)
    ack = ack[:136] + ack_mac
    both = hashlib.sha256(hello_hash(3, 1, hello) + hello_hash(3, 2, ack)).digest()
    return {
        'key id': key_id,
        'mac of HELLO': mac,
        'mac of HELLO_ACK': ack_mac,
        'initiator': expand(root, b'weft initiator 1' + both, 32),
        'responder': expand(root, b'weft responder 1' + both, 32),
        'exporter': expand(root, b'weft exporter 1' + both, 32),
    }


def frame(secret, slot, counter, generation, mode, header, body):
    """A sealed frame from its lane header on."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    for _ in range(generation):
        secret = expand(secret, b'weft next secret 1', 32)
    key = expand(secret, b'weft frame key 1', 20)
    flags = int.from_bytes(header[4:6], 'little') & ~0x60 | 0x20 | (generation & 1) << 6
    number = slot << 56 | counter
    head = header[:4] + flags.to_bytes(2, 'little') + header[6:] + number.to_bytes(8, 'little')
    nonce = key[16:] + number.to_bytes(8, 'big')
    if mode == 'encrypt':
        return head + AESGCM(key[:16]).encrypt(nonce, body, head)
    return head + body + AESGCM(key[:16]).encrypt(nonce, b'', head + body)


def greeting(key=bytes(range(32)), client=b'c' * 32, server=b's' * 32, text=bytes(range(200))):
    """The two messages of "Addresses by TCP"; names as in the Noise specification."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    def sha(data):
        return hashlib.sha256(data).digest()

    def mix(chain, data, count):
        out = expand(extract(chain, data), b'', 32 * count)
        return [out[i:i + 32] for i in range(0, len(out), 32)]

    def seal(k, ad, data):
        return AESGCM(k).encrypt(bytes(12), data, ad)

    client, server = (X25519PrivateKey.from_private_bytes(k) for k in (client, server))
    e, re = (k.public_key().public_bytes_raw() for k in (client, server))
    ck = h = b'Noise_NNpsk0_25519_AESGCM_SHA256'
    h = sha(h + b'weft listener 1')
    ck, temp, _ = mix(ck, expand(extract(bytes(32), key), b'weft listener psk 1', 32), 3)
    h = sha(sha(h + temp) + e)
    ck, k = mix(ck, e, 2)
    tag = seal(k, h, b'')
    request = e + tag
    h = sha(sha(h + tag) + re)
    ck, k = mix(ck, re, 2)
    ck, k = mix(ck, client.exchange(server.public_key()), 2)
    tag = seal(k, h, b'')
    h = sha(h + tag)
    return request, re + tag + seal(mix(ck, b'', 2)[1], h, text)


def main():
    values = schedule()
    try:
        secret, header = values['initiator'], bytes(range(42))
        body = bytes(i * 7 & 0xff for i in range(60))
        values['encrypt'] = frame(secret, 0, 0, 0, 'encrypt', header, body)
        values['auth'] = frame(secret, 0, 0, 0, 'auth', header, body)
        values['request'], values['answer'] = greeting()
        values['next key'] = frame(secret, 0, 2, 1, 'encrypt', header, body)
    except ImportError:
        pass
    # Lane 1 of the endpoint whose first lane has the keys above.
    for name, value in schedule(values['exporter'], 3, 1).items():
        values['lane 1: ' + name] = value
    for name, value in values.items():
        print('%-26s %s' % (name, value.hex()))


if __name__ == '__main__':
    main()
