#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""weft-dump on captures in which a host itself has lost frames: edits of the simulator's captures.
The argument is the build folder."""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pcapng_edit as edit  # noqa: E402
import tap  # noqa: E402

BUILD = sys.argv[1]
FOLDER = tempfile.TemporaryDirectory()


def lossy():
    """Two captures, and the one whose host did not get frames: interfaces of these frames."""
    a, b = edit.pair(BUILD, FOLDER.name, 'random_loss', 1000)
    found = {}
    for sender, receiver in ((a, b), (b, a)):
        came = {r.key() for r in receiver.records if r.way == edit.IN}
        found[len([r for r in sender.records if r.way == edit.OUT and r.key() not in came])] = (
            receiver, [r.iface for r in sender.records
                       if r.way == edit.OUT and r.key() not in came])
    receiver, ifaces = found[max(found)]
    return a, b, receiver, ifaces


def verdicts(a, b):
    files = [c.write(os.path.join(FOLDER.name, name + '-edited.pcapng'))
             for c, name in ((a, 'a'), (b, 'b'))]
    done = subprocess.run([os.path.join(BUILD, 'app', 'weft-dump'), '-j', *files],
                          stdout=subprocess.PIPE, check=True, timeout=60)
    return json.loads(done.stdout)['anomalies']


def what_a_full_buffer_lost_is_no_loss_of_the_network():
    a, b, receiver, ifaces = lossy()
    assert [f['class'] for f in verdicts(a, b)] == ['random loss'], verdicts(a, b)
    for iface in set(ifaces):
        receiver.notes.append((iface, 'missed %d: the receive buffer was full'
                               % ifaces.count(iface)))
    found = verdicts(a, b)
    assert [f['class'] for f in found] == ['full receive buffer'], found
    assert found[0]['host'].endswith('ab'[receiver is b] + '-edited.pcapng'), found
    lost = int(found[0]['evidence'].split()[0])
    assert len(ifaces) // 2 < lost <= len(ifaces), (found, len(ifaces))


def other_losses_are_still_of_the_network():
    a, b, receiver, ifaces = lossy()
    iface = max(set(ifaces), key=ifaces.count)
    receiver.notes.append((iface, 'missed %d: the receive buffer was full'
                           % (ifaces.count(iface) // 2)))
    found = {f['class'] for f in verdicts(a, b)}
    assert found == {'full receive buffer', 'random loss'}, found


tap.run([what_a_full_buffer_lost_is_no_loss_of_the_network,
         other_losses_are_still_of_the_network])
