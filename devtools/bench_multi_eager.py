# SPDX-License-Identifier: BSD-3-Clause
"""The gain of multi-eager: ping-pongs of up to 256 KiB in four settings, their latency and their
memory.

  rendezvous    small eager, and rendezvous for all that does not fit into one frame
  big eager     frames of 60000 bytes, about the largest that a datagram can be, and rendezvous
  beyond: one large eager
                size, whose buffers must all be that large
  multi-eager   eager fragments of 9000 bytes over all lanes
  UCX           tcp and posix

Settings take turns; every run makes all sizes. Memory is the peak (VmHWM, --no-huge) of the server
after 256 KiB, which receives.
"""

import os
import statistics
import subprocess

from bench_report import quartiles
from bench_run import Others, TrialError, csv_rows, free_port, pair

KIB = 1024
SIZES = [16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB]
NO_HUGE = ['--no-huge', '--no-shconf', '-m', '1024']

SETTINGS = {
    'rendezvous': {'mtu': 9000, 'bsize': 9216, 'env': {'WEFT_MULTI_EAGER_LIMIT': '0'}},
    'big eager': {'mtu': 60000, 'bsize': 61440,
                  'env': {'WEFT_MULTI_EAGER_LIMIT': '0', 'WEFT_RNDV_THRESH': '60000'}},
    'multi-eager': {'mtu': 9000, 'bsize': 9216, 'env': {'WEFT_MULTI_EAGER_LIMIT': '256k'}},
}


def weft_run(bench, setting, lanes, unexpected):
    """Rows of all sizes."""
    conf = SETTINGS[setting]
    port = free_port()
    srv, cli = ([v.replace('bsize=9216', 'bsize=%d' % conf['bsize']) for v in side]
                for side in bench.memif(lanes))
    env = {'WEFT_LANES': ';'.join('dpdk:%d,mtu=%d' % (i, conf['mtu']) for i in range(lanes)),
           **conf['env']}
    test = ['-t', 'tag_lat', '-s', ','.join(str(s) for s in SIZES), '-n', '1000', '-f', '-v']
    out = pair([bench.perf] + bench.eal(bench.a, srv, NO_HUGE) + ['--', '-p', str(port)],
               [bench.perf] + bench.eal(bench.b, cli, NO_HUGE) + ['--', '-p', str(port)] + test
               + (['-U'] if unexpected else []) + ['127.0.0.1'], env, env, timeout=60)
    return csv_rows(out)


def ucx_run(bench, tls):
    return [{'size': s, 'p50_lat': bench.ucx(tls, 'tag_lat', s)['50.0_percentile_lat']}
            for s in SIZES]


def collect(bench):
    """{(setting, lanes, receives, state): {'us': {size: [..]}, 'mib': [..]}}, and what went
    wrong."""
    got, notes = {}, []
    others = Others()
    runs = [((s, n, u), lambda s=s, n=n, u=u: weft_run(bench, s, n, u == 'unexpected'))
            for u in ('expected', 'unexpected') for n in (1, 2) for s in SETTINGS]
    runs += [(('UCX ' + tls, 1, 'expected'), lambda tls=tls: ucx_run(bench, tls + ',self'))
             for tls in ('tcp', 'posix')]
    for trial in range(bench.args.trials):
        for key, run in runs if trial % 2 == 0 else runs[::-1]:
            try:
                state, rows = bench.trial(run, others)
            except TrialError as err:
                notes.append('%s, %s lanes, %s, failed: %s' % (*key, err))
                continue
            if state not in ('near', 'far'):
                notes.append('%s, %s lanes, %s: a trial dropped: %s' % (*key, state))
                continue
            g = got.setdefault((*key, state), {'us': {s: [] for s in SIZES}, 'mib': []})
            for row in rows:
                g['us'][int(row['size'])].append(float(row['p50_lat']))
            if 'peer_hwm_kb' in rows[-1]:
                g['mib'].append(float(rows[-1]['peer_hwm_kb']) / KIB)
    order = [key for key, _ in runs]
    return dict(sorted(got.items(),
                       key=lambda kv: (kv[0][3] != 'near', order.index(kv[0][:3])))), notes


HEAD = ['setting', 'lanes', 'receives', 'cores',
        'trials'] + ['%d KiB' % (s // KIB) for s in SIZES] + ['server, MiB']


def table_rows(got):
    rows = []
    for (setting, lanes, receives, state), g in got.items():
        cells = ['%.1f [%.1f .. %.1f]' % (q[1], q[0], q[2])
                 for q in (quartiles(g['us'][s]) for s in SIZES)]
        rows.append([setting, '' if setting.startswith('UCX') else str(lanes), receives, state,
                     str(len(g['us'][SIZES[0]])),
                     *cells, '%.1f' % statistics.median(g['mib']) if g['mib'] else ''])
    return rows


def draw(got, path):
    """Latency over size, expected receives, by gnuplot, in the state of the cores that most trials
    had."""
    seen = [key[3] for key, g in got.items() for _ in g['us'][SIZES[0]]]
    state = max(set(seen), key=seen.count)
    script = ['set terminal svg size 1100,520 dynamic font "Helvetica,14" background "white"',
              "set output '%s'" % path, 'set logscale x 2', 'set logscale y 10',
              'set key bottom right Left reverse',
              'set grid xtics ytics lc rgb "#E4E4E4"', 'set border 3',
              'set xlabel "message size, KiB"',
              'set ylabel "half round trip, us (median, quartiles)"', 'set xrange [14:300]',
              'set xtics (16, 32, 64, 128, 256) nomirror', 'set ytics nomirror',
              'set multiplot layout 1,2']
    colours = {'rendezvous': '#0072B2', 'big eager': '#E69F00', 'multi-eager': '#009E73',
               'UCX tcp': '#CC79A7',
               'UCX posix': '#7F7F7F'}
    for lanes in (1, 2):
        plots = []
        for i, ((setting, n, receives, of), g) in enumerate(got.items()):
            if of != state or receives != 'expected' or (n != lanes
                                                         and not setting.startswith('UCX')):
                continue
            script.append('$d%d_%d << EOD' % (lanes, i))
            for s in SIZES:
                q = quartiles(g['us'][s])
                script.append('%g %g %g %g' % (s / KIB, q[1], q[0], q[2]))
            script.append('EOD')
            plots.append('$d%d_%d using 1:2:3:4 with yerrorlines lw 2 pt 7 ps 0.6 lc rgb "%s" '
                         'title "%s"'
                         % (lanes, i, colours[setting], setting))
        script.append('set title "%s, cores %s"'
                      % ('one lane' if lanes == 1 else 'two lanes', state))
        if plots:
            script.append('plot ' + ', \\\n  '.join(plots))
    try:
        subprocess.run(['gnuplot'], input='\n'.join(script) + '\n', text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as err:
        raise TrialError('no picture: %s' % err) from None


def measure(bench):
    title = ('Ping-pongs up to 256 KiB over memif in four settings, half round trips in us: '
             'median and quartiles')
    print('\n%s, %d trials' % (title, bench.args.trials))
    got, notes = collect(bench)
    record = bench.record(title, values=[[*k, v] for k, v in got.items()])
    record['tables'] = [(HEAD, table_rows(got))]
    for row in [HEAD] + table_rows(got):
        print('  ' + ' | '.join(row))
    for note in sorted(set(notes)):
        bench.note('%s (%d times)' % (note, notes.count(note)))
    if not got:
        return
    os.makedirs(bench.args.out, exist_ok=True)
    path = os.path.join(bench.args.out, 'multi-eager.svg')
    draw(got, path)
    print('  picture: ' + path)
