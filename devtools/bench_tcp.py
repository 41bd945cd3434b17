# SPDX-License-Identifier: BSD-3-Clause
"""TCP over the interfaces and queues of lanes over net_af_packet: iperf3, UCX tcp, libfabric tcp.

The bare port is no yardstick over such ports: it has no acknowledgements, so its receiver's ring
overflows, and it counts lost frames as sent. TCP is reliable like a lane, and the kernel supports
it better: veth passes segments of 64 KiB to TCP, and frames of the MTU to a packet socket.
"""

import json
from functools import partial

from bench_rails import Rails
from bench_run import TrialError, bandwidth, csv_rows, free_port, mean_latency_ns, pair, tail
from bench_trials import at_least, report

KIB, MIB = 1024, 1024 * 1024

CONTROLS = {'cubic': 'iperf3 Cubic', 'bbr': 'iperf3 BBR'}


def controls():
    """Congestion controls of iperf3 that this kernel has, with the names of their variants."""
    with open('/proc/sys/net/ipv4/tcp_available_congestion_control') as f:
        have = f.read().split()
    return {cc: name for cc, name in CONTROLS.items() if cc in have} or {have[0]: 'iperf3'}


def inside(rails, side, command):
    """The command in the namespace of this side, on the core of its weft-perf."""
    core = (rails.b.a, rails.b.b)[side]
    return ['ip', 'netns', 'exec', rails.ns[side], 'taskset', '-c', str(core)] + command


def iperf(rails, control, rail, seconds=3):
    """One stream over one rail, from the client to the server, without the first second."""
    port = ['-p', str(free_port())]
    out = pair(inside(rails, 0, ['iperf3', '-s', '-1'] + port),
               inside(rails, 1, ['iperf3', '-c', '10.77.%d.1' % rail, '-C', control, '-O', '1',
                                 '-t', str(seconds), '-J'] + port), {}, {}, timeout=60)
    end = json.loads(out)['end']
    return {'overall_bw': end['sum_received']['bits_per_second'] / 8 / MIB}


def iperf_sum(rails, control, count=2):
    """Each rail by itself: the sum."""
    return {'overall_bw': sum(bandwidth(iperf(rails, control, r)) for r in range(count))}


def ucx(rails, test, size, used, iters):
    """ucx_perftest over TCP on these rails."""
    port = free_port()
    env = {'UCX_TLS': 'tcp,self', 'UCX_LOG_LEVEL': 'error',
           'UCX_NET_DEVICES': ','.join('rail%d' % r for r in used)}
    command = ['ucx_perftest', '-p', str(port)]
    out = pair(inside(rails, 0, command),
               inside(rails, 1, command + ['10.99.0.1', '-t', test, '-s', str(size), '-n',
                                           str(iters), '-w', str(max(iters // 20, 10)), '-f',
                                           '-v']), env, env, timeout=60)
    return csv_rows(out)[-1]


def pingpong(rails, size, iters):
    """libfabric's fi_pingpong with reliable datagrams over tcp; half a round trip."""
    common = ['fi_pingpong', '-p', 'tcp;ofi_rxm', '-e', 'rdm', '-I', str(iters), '-S', str(size)]
    out = pair(inside(rails, 0, common), inside(rails, 1, common + ['10.77.0.1']), {}, {},
               timeout=60)
    head, row = '', None
    for line in out.splitlines():
        words = line.split()
        if 'usec/xfer' in words:
            head = words
        elif head and len(words) >= len(head):
            row = words
    if not row:
        raise TrialError('no figure in the output: ' + tail(out))
    return {'overall_lat': row[head.index('usec/xfer')]}


def shared(rails, size, used, iters):
    """The variants that a stream of weft-perf over these rails is compared with."""
    variants = {name + (', sum of rails' if len(used) > 1 else ''):
                partial(iperf_sum, rails, control, len(used))
                for control, name in controls().items()}
    variants['UCX tcp tag_bw'] = partial(ucx, rails, 'tag_bw', size, used, iters)
    return variants


def stream_measure(b, rates, title, nbytes):
    with Rails(b, rates) as rails:
        others = shared(rails, MIB, [0], nbytes // MIB)
        b.alternate('1024 KiB bandwidth, one veth, net_af_packet, MTU 9000, ' + title, {
            'weft tag_bw': partial(rails.stream, 'tag_bw', MIB, [0], nbytes), **others,
        }, bandwidth, 'MiB/s', [('weft tag_bw', name, report, None, None) for name in others],
            sort=not rates[0])


def m_tcp(b):
    """1 MiB tag_bw, and 8 B and 64 KiB tag_lat, over one veth: iperf3 (Cubic, BBR), UCX tcp and
    libfabric tcp over the same veth and queue"""
    stream_measure(b, (None, None), 'not shaped', 600 * MIB)
    stream_measure(b, (10**9, None), 'tbf 1 Gb/s, burst 1 ms', 300 * MIB)
    with Rails(b, (None, None)) as rails:
        for size, iters in ((8, 20000), (64 * KIB, 3000)):
            b.alternate('%s half round trip, one veth, net_af_packet, MTU 9000, not shaped'
                        % ('8 B' if size == 8 else '64 KiB'), {
                'weft tag_lat': partial(rails.weft, 'tag_lat', size, [0], ['-n', str(iters)]),
                'UCX tcp tag_lat': partial(ucx, rails, 'tag_lat', size, [0], iters),
                'libfabric tcp pingpong': partial(pingpong, rails, size, iters),
            }, mean_latency_ns, 'ns', [
                ('weft tag_lat', 'UCX tcp tag_lat', report, None, None),
                ('weft tag_lat', 'libfabric tcp pingpong', report, None, None),
            ])


def rails_measure(b, rates, sizes):
    """Streams over two shaped rails, against TCP on each of them."""
    with Rails(b, rates) as rails:
        for size in sizes:
            nbytes = 600 * MIB
            others = shared(rails, size, [0, 1], nbytes // size)
            first, *more = others
            b.alternate('%d KiB bandwidth, two veth rails behind tbf %g and %g Gb/s, burst 1 ms, '
                        'net_af_packet, MTU 9000'
                        % (size // KIB, rates[0] / 1e9, rates[1] / 1e9), {
                            'weft tag_bw, both rails':
                                partial(rails.stream, 'tag_bw', size, [0, 1], nbytes), **others,
                        }, bandwidth, 'MiB/s', [
                            ('weft tag_bw, both rails', first, at_least, 0.95, None),
                        ] + [('weft tag_bw, both rails', name, report, None, None)
                             for name in more], sort=False)


def m_rails(b):
    """256 KiB, 1 and 16 MiB tag_bw over two veth rails of 1 Gb/s: 0.95 x the sum of TCP on each"""
    rails_measure(b, (10**9, 10**9), (256 * KIB, MIB, 16 * MIB))


def m_unequal(b):
    """1 and 16 MiB tag_bw over rails of 1.5 and 0.5 Gb/s: 0.95 x the sum of TCP on each"""
    rails_measure(b, (1500 * 10**6, 500 * 10**6), (MIB, 16 * MIB))


def m_cut(b):
    """1 and 16 MiB tag_bw over two rails of 1 Gb/s, one cut to a quarter during the run: 0.9 x TCP
    over the remaining bandwidth, after 2 s"""
    rates = (10**9, 10**9)
    with Rails(b, rates) as rails, Rails(b, (rates[0], rates[1] // 4), name='cut') as then:
        control, name = next(iter(controls().items()))
        for size in (MIB, 16 * MIB):
            b.alternate('%d KiB bandwidth, two veth rails of 1 Gb/s, one cut to 0.25 Gb/s under '
                        'way; from 2 s after that'
                        % (size // KIB), {
                            'weft tag_bw, after the cut': partial(rails.cut, size),
                            name + ', sum of rails, as cut': partial(iperf_sum, then, control),
                        }, bandwidth, 'MiB/s', [
                            ('weft tag_bw, after the cut', name + ', sum of rails, as cut',
                             at_least, 0.9, None),
                        ], sort=False)


MEASURES = {'tcp': m_tcp, 'rails': m_rails, 'unequal': m_unequal, 'cut': m_cut}
