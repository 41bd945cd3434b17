#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""relay.py PORT FILE [AT]: the host on the path of a TCP connection. It prints its own port, passes
one connection to PORT of 127.0.0.1, and writes all bytes of both directions to FILE. AT: one bit of
this byte of the server's is changed."""

import select
import socket
import sys

to, path, change = int(sys.argv[1]), sys.argv[2], int((sys.argv + ['-1'])[3])
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
client = listener.accept()[0]
server = socket.create_connection(('127.0.0.1', to))
other = {client: server, server: client}
passed = 0
with open(path, 'wb') as out:
    while other:
        for s in select.select(list(other), [], [])[0]:
            data = bytearray(s.recv(65536))
            peer = server if s is client else client
            if not data:
                peer.shutdown(socket.SHUT_WR)
                del other[s]
                continue
            if s is server:
                if 0 <= change - passed < len(data):
                    data[change - passed] ^= 4
                passed += len(data)
            out.write(data)
            out.flush()
            peer.sendall(data)
