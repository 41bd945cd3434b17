#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tamper.py SERVER-PORT flip|cut|long: prints its port, then stands between client and server on
their out-of-band connection, and spoils the remote keys that the server sends. What a side says at
its end comes late. Ends with the connection."""

import socket
import struct
import sys
import threading
import time

BYE, KEY = 6, 7  # OOB_BYE and OOB_KEY of app/common/oob.h


def spoil(body, how):
    if how == "flip":
        return body[:12] + bytes([body[12] ^ 0x10]) + body[13:]
    if how == "cut":
        return body[: len(body) // 2]
    return body + bytes(4096)


def read(sock, length):
    data = b""
    while len(data) < length:
        more = sock.recv(length - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def forward(source, sink, how):
    """Message by message: {magic, type, length} and the body, little-endian."""
    try:
        while True:
            magic, kind, length = struct.unpack("<III", read(source, 12))
            body = read(source, length)
            if how and kind == KEY:
                body = spoil(body, how)
            if kind == BYE:
                time.sleep(0.1)  # the end of the lanes is there before
            sink.sendall(struct.pack("<III", magic, kind, len(body)) + body)
    except (EOFError, OSError):
        for sock in (source, sink):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    client, _ = listener.accept()
    server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    threading.Thread(target=forward, args=(client, server, None), daemon=True).start()
    forward(server, client, sys.argv[2])


main()
