#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""slurmd's Prolog for Weft: root runs it on each node of a job before the job's first process.

It checks that the node's weft-switch accepts connections, and creates the job's key. Where it
fails, Slurm drains the node and starts the job elsewhere.

The key is derived from a secret that all nodes have, in the folder of this script, and from the
job's number. So each node derives the same key, and no key crosses the network.
"""

import hmac
import os
import socket
import stat
import sys

SWITCH = '/run/weft/switch.sock'
KEYS = '/run/weft/jobs'
SECRET = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'job-keys.secret')


def check_switch():
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(5)
        try:
            s.connect(SWITCH)
        except OSError as e:
            sys.exit('weft-switch does not answer at %s: %s' % (SWITCH, e.strerror or e))


def read_secret():
    with open(SECRET, 'rb') as f:
        st = os.fstat(f.fileno())
        if st.st_uid != 0 or stat.S_IMODE(st.st_mode) & 0o077:
            sys.exit('%s must be of root, and mode 600' % SECRET)
        secret = f.read(4096)
    if len(secret) < 32:
        sys.exit('%s must have at least 32 bytes' % SECRET)
    return secret


def make_key():
    job, user = os.environ['SLURM_JOB_ID'], int(os.environ['SLURM_JOB_UID'])
    label = 'weft slurm job key 1|%s|%s|%d' % (os.environ.get('SLURM_CLUSTER_NAME', ''), job, user)
    key = hmac.digest(read_secret(), label.encode(), 'sha256')
    path = os.path.join(KEYS, '%d.key' % int(job))
    os.makedirs(KEYS, mode=0o755, exist_ok=True)
    if os.path.lexists(path):  # of an earlier run of a job that was requeued
        os.unlink(path)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    os.write(fd, key)
    os.fchown(fd, user, -1)
    os.close(fd)


check_switch()
make_key()
