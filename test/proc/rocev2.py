#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocev2.py BUILD: weft-dump and tshark read the same from packets of RoCE v2. The capture is of
rdma_rxe over veth, 401 packets cut at 100 bytes, while 5 % of what one end sent was lost
(test/guest/cases/65-packets.sh, which also makes the captures of a lane with three queue pairs,
of a receiver without buffers, and of answers that come after a timeout). Prints TAP."""

import collections
import json
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True

import tap  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
DUMP = os.path.join(sys.argv[1], 'app', 'weft-dump')
FILE = os.path.join(ROOT, 'test', 'data', 'rocev2.pcapng')
LANE = os.path.join(ROOT, 'test', 'data', 'rocev2_lane.pcapng')
RNR = os.path.join(ROOT, 'test', 'data', 'rocev2_rnr.pcapng')
LATE = os.path.join(ROOT, 'test', 'data', 'rocev2_late.pcapng')
RESPONSES = range(13, 19)
RNR_NAK, NAK = 1, 3


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL).stdout


def by_tshark(name=FILE):
    """Source, opcode, QP, PSN, kind and code of the answer, of each packet."""
    fields = ['ip.src', 'infiniband.bth.opcode', 'infiniband.bth.destqp', 'infiniband.bth.psn',
              'infiniband.aeth.syndrome.opcode', 'infiniband.aeth.syndrome.error_code']
    text = output('tshark', '-r', name, '-T', 'fields', '-E', 'separator=,',
                  *[part for field in fields for part in ('-e', field)])
    packets = [line.split(',') for line in text.splitlines()]
    return [(p[0], int(p[1], 0), int(p[2], 0), int(p[3], 0), *(int(x, 0) if x else None
                                                              for x in p[4:6]))
            for p in packets]


def each_packet_is_read_alike():
    theirs = by_tshark()
    ours = [json.loads(line) for line in output(DUMP, '-F', '-j', FILE).splitlines()]
    assert len(ours) == len(theirs) == 401, (len(ours), len(theirs))
    for frame, packet in zip(ours, theirs):
        roce = frame['roce']
        assert (roce['opcode'], roce['qp'], roce['psn']) == packet[1:4], (frame, packet)
        assert ('answer' in roce) == (packet[4] is not None), (frame, packet)
        if packet[4] == NAK:
            assert roce['answer'] == 'NAK PSN sequence' and packet[5] == 0, (frame, packet)


def faults_are_counted_alike():
    naks, again, requests, highest = [collections.Counter() for _ in range(4)]
    for source, opcode, qp, psn, answer, _ in by_tshark():
        key = source, qp
        naks[key] += answer == NAK
        if opcode >> 5 or opcode in RESPONSES:
            continue
        requests[key] += 1
        again[key] += psn <= highest[key]
        highest[key] = max(psn, highest[key])
    flows = json.loads(output(DUMP, '-j', FILE))['roce_flows']
    for flow in flows:
        key = flow['from'], flow['to_qp']
        assert flow['naks_sequence'] == naks[key], (flow, naks)
        assert flow['sent_again'] == again[key], (flow, again)
        assert flow['requests'] == requests[key], (flow, requests)
    assert sum(naks.values()) > 2 and sum(again.values()) > 5, (naks, again)
    assert {flow['from_qp'] for flow in flows} == {0x13}, flows


def the_report_names_the_connection():
    lines = output(DUMP, FILE).splitlines()
    assert 'v0b: RoCE 10.0.0.2 QP 0x13 and 10.0.0.1 QP 0x13; from 10.0.0.1 ' in lines[0], lines[0]
    assert '8 NAKs for a wrong PSN; since 0.307 s after the first frame; to do: look for packet ' \
        'loss' in lines[0], lines[0]
    assert any(line.startswith('1 connection of RoCE v2: 401 packets') for line in lines), lines


def each_queue_pair_has_the_name_of_its_lane():
    flows = json.loads(output(DUMP, '-j', LANE))['roce_flows']
    of_lane = [flow for flow in flows if flow['requests']]
    assert {flow['to_qp'] for flow in of_lane} == {0x13, 0x14, 0x15}, flows
    workers = {flow['from']: flow['from_worker'] for flow in of_lane if flow['to_qp'] == 0x13}
    assert len(of_lane) == 6 and len(set(workers.values())) == 2, flows
    for flow in of_lane:
        assert flow['lane'] == 0, flow
        assert flow['from_worker'] == workers[flow['from']], (flow, workers)
        assert flow['to_worker'] == workers[flow['to']], (flow, workers)
    # Those of datagrams belong to no lane.
    assert len(flows) == 8 and sum('lane' in flow for flow in flows) == 6, flows


def a_receiver_without_buffers_is_named():
    refused = sum(packet[4] == RNR_NAK for packet in by_tshark(RNR))
    assert refused > 1, refused
    line = output(DUMP, RNR).splitlines()[0]
    assert 'from 10.0.0.1 ' in line and f', {refused} RNR NAKs (wait 0.64 ms), ' in line, line
    assert 'to do: let the receiver post more receive buffers' in line, line
    # A request that met no buffer had not arrived.
    assert 'requests sent again, ' in line and 'had arrived' not in line, line


def duplicates_are_counted_as_the_responder_does():
    """It accepts the PSN that it expects. No packet of this capture takes several PSNs."""
    expected, arrived = {}, collections.Counter()
    for source, opcode, qp, psn, *_ in by_tshark(LATE):
        if opcode >> 5 or opcode in RESPONSES:
            continue
        key = source, qp
        arrived[key] += psn < expected.setdefault(key, psn)
        expected[key] += psn == expected[key]
    flows = json.loads(output(DUMP, '-j', LATE))['roce_flows']
    for flow in flows:
        key = flow['from'], flow['to_qp']
        assert flow['arrived_before'] == arrived[key], (flow, arrived)
    assert sum(flow['naks_sequence'] for flow in flows) > 1 and sum(arrived.values()) > 50, flows


if not shutil.which('tshark'):
    print('there is no tshark')
    sys.exit(77)
tap.run([each_packet_is_read_alike, faults_are_counted_alike, the_report_names_the_connection,
         each_queue_pair_has_the_name_of_its_lane, a_receiver_without_buffers_is_named,
         duplicates_are_counted_as_the_responder_does])
