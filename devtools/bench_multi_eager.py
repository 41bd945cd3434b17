# SPDX-License-Identifier: BSD-3-Clause
"""What multi-eager is worth: ping-pongs of up to 256 KiB in four settings, their latency and their memory.

  rendezvous    small eager, and rendezvous for all that does not fit into one frame
  big eager     frames of 60000 bytes, about the largest that a datagram can be, and rendezvous beyond: one large eager
                size, whose buffers must all be that large
  multi-eager   eager fragments of 9000 bytes over all lanes
  UCX           tcp and posix

Settings take turns; every run makes all sizes. Memory is the peak (VmHWM, --no-huge) of the server after 256 KiB, which receives.
"""

import os
import statistics
import subprocess

KIB = 1024
SIZES = [16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB]
NO_HUGE = ['--no-huge', '--no-shconf', '-m', '1024']

SETTINGS = {
    'rendezvous': {'mtu': 9000, 'bsize': 9216, 'env': {'WEFT_MULTI_EAGER_LIMIT': '0'}},
    'big eager': {'mtu': 60000, 'bsize': 61440,
                  'env': {'WEFT_MULTI_EAGER_LIMIT': '0', 'WEFT_RNDV_THRESH': '60000'}},
    'multi-eager': {'mtu': 9000, 'bsize': 9216, 'env': {'WEFT_MULTI_EAGER_LIMIT': '256k'}},
}


def weft_run(bench, setting, lanes, unexpected, pair, csv_rows, free_port):
    """Rows of all sizes."""
    conf = SETTINGS[setting]
    port = free_port()
    srv, cli = ([v.replace('bsize=9216', 'bsize=%d' % conf['bsize']) for v in side]
                for side in bench.memif(lanes))
    env = {'WEFT_LANES': ';'.join('dpdk:%d,mtu=%d' % (i, conf['mtu']) for i in range(lanes)), **conf['env']}
    test = ['-t', 'tag_lat', '-s', ','.join(str(s) for s in SIZES), '-n', '1000', '-f', '-v']
    out = pair([bench.perf] + bench.eal(bench.a, srv, NO_HUGE) + ['--', '-p', str(port)],
               [bench.perf] + bench.eal(bench.b, cli, NO_HUGE) + ['--', '-p', str(port)] + test
               + (['-U'] if unexpected else []) + ['127.0.0.1'], env, env, timeout=60)
    return csv_rows(out)


def collect(bench, error, **kit):
    """{(setting, lanes, unexpected): {'us': {size: [..]}, 'mib': [..], 'protocol': {size: name}}}"""
    got = {}
    runs = [(s, n, u) for u in (False, True) for n in (1, 2) for s in SETTINGS]
    for trial in range(bench.args.trials):
        for key in runs if trial % 2 == 0 else runs[::-1]:
            try:
                rows = weft_run(bench, *key, **kit)
            except error as err:
                print('        %s failed: %s' % (key, err))
                continue
            g = got.setdefault(key, {'us': {s: [] for s in SIZES}, 'mib': [], 'protocol': {}})
            for row in rows:
                g['us'][int(row['size'])].append(float(row['p50_lat']))
                g['protocol'][int(row['size'])] = row['protocol']
            g['mib'].append(float(rows[-1]['peer_hwm_kb']) / KIB)
        for tls in ('tcp,self', 'posix,self'):
            g = got.setdefault(('UCX ' + tls.split(',')[0], 1, False), {'us': {s: [] for s in SIZES}, 'mib': [],
                                                                      'protocol': {}})
            for size in SIZES:
                g['us'][size].append(float(bench.ucx(tls, 'tag_lat', size)['50.0_percentile_lat']))
    return got


def quartiles(values):
    return statistics.quantiles(values, n=4, method='inclusive') if len(values) > 1 else [values[0]] * 3


def table(got):
    """Markdown."""
    lines = ['| setting | lanes | receives | ' + ' | '.join('%d KiB' % (s // KIB) for s in SIZES) + ' | server, MiB |',
             '|---|---|---|' + '---|' * (len(SIZES) + 1)]
    for (setting, lanes, unexpected), g in got.items():
        cells = []
        for s in SIZES:
            q = quartiles(g['us'][s])
            cells.append('%.1f [%.1f..%.1f]' % (q[1], q[0], q[2]))
        cells.append('%.1f' % statistics.median(g['mib']) if g['mib'] else '')
        lines.append('| %s | %s | %s | %s |' % (setting, '' if setting.startswith('UCX') else lanes,
                                                'unexpected' if unexpected else 'expected', ' | '.join(cells)))
    return '\n'.join(lines)


def draw(got, path):
    """Latency over size, expected receives, by gnuplot."""
    script = ['set terminal svg size 1100,520 dynamic font "Helvetica,14" background "white"',
              "set output '%s'" % path, 'set logscale x 2', 'set logscale y 10', 'set key bottom right Left reverse',
              'set grid xtics ytics lc rgb "#E4E4E4"', 'set border 3', 'set xlabel "message size, KiB"',
              'set ylabel "half round trip, us (median, quartiles)"', 'set xrange [14:300]',
              'set xtics (16, 32, 64, 128, 256) nomirror', 'set ytics nomirror', 'set multiplot layout 1,2']
    colours = {'rendezvous': '#0072B2', 'big eager': '#E69F00', 'multi-eager': '#009E73', 'UCX tcp': '#CC79A7',
               'UCX posix': '#7F7F7F'}
    for lanes in (1, 2):
        plots = []
        for i, ((setting, n, unexpected), g) in enumerate(got.items()):
            if unexpected or (n != lanes and not setting.startswith('UCX')):
                continue
            script.append('$d%d_%d << EOD' % (lanes, i))
            for s in SIZES:
                q = quartiles(g['us'][s])
                script.append('%g %g %g %g' % (s / KIB, q[1], q[0], q[2]))
            script.append('EOD')
            plots.append('$d%d_%d using 1:2:3:4 with yerrorlines lw 2 pt 7 ps 0.6 lc rgb "%s" title "%s"'
                         % (lanes, i, colours[setting], setting))
        script.append('set title "%s"' % ('one lane' if lanes == 1 else 'two lanes'))
        script.append('plot ' + ', \\\n  '.join(plots))
    subprocess.run(['gnuplot'], input='\n'.join(script) + '\n', text=True, check=True)


def measure(bench, error, **kit):
    print('\nPing-pongs up to 256 KiB over memif in four settings, half round trips in us, %d trials' % bench.args.trials)
    got = collect(bench, error, **kit)
    print(table(got))
    os.makedirs(bench.args.out, exist_ok=True)
    path = os.path.join(bench.args.out, 'multi-eager.svg')
    draw(got, path)
    print('picture: ' + path)
    bench.results.append({'title': 'multi-eager', 'verdicts': [],
                          'values': [{'setting': k[0], 'lanes': k[1], 'unexpected': k[2], **v} for k, v in got.items()]})
