# SPDX-License-Identifier: BSD-3-Clause
"""A weft-perf that waits for a client over one memif lane, and its client."""

import os
import socket
import subprocess

ENV = {name: value for name, value in os.environ.items() if not name.startswith('WEFT_')}
ENV['WEFT_CONFIG'] = 'off'


class Server:
    number = 0

    def __init__(self, build, folder):
        Server.number += 1
        self.program = os.path.join(build, 'app', 'weft-perf')
        self.socket = os.path.join(folder, 'm%d' % self.number)
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            self.port = str(s.getsockname()[1])
        self.process = subprocess.Popen(
            self.command('server') + ['-p', self.port], stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, env=ENV)
        for line in self.process.stderr:
            if 'waiting for a client' in line:
                return
        self.close()
        raise AssertionError('the server did not start')

    def command(self, role):
        memif = 'net_memif0,role=%s,id=0,socket-abstract=no,socket=%s,bsize=9216' % (
            role, self.socket)
        return [self.program, '--no-huge', '-m', '512', '--no-pci',
                '--file-prefix=%s%d.%d' % (role, os.getpid(), self.number), '--vdev=' + memif,
                '--', '-L', 'dpdk:0,mtu=9000']

    def client(self, *arguments, wrapper=()):
        """The running process."""
        return subprocess.Popen(
            [*wrapper, *self.command('client'), '-p', self.port, *arguments, '127.0.0.1'],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=ENV)

    def close(self):
        self.process.kill()
        self.process.communicate()
