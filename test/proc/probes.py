#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""probes.py BUILD: the library's USDT probes are those of doc/capture.md, with these arguments; the
scripts for bpftrace use no others; and gdb stops at them in a real run, where they have the values
of the run. Prints TAP."""

import collections
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import tap  # noqa: E402
from memif_pair import Server  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv[1])
LIBRARY = os.path.join(BUILD, 'libweft.so')
SCRIPTS = sorted(glob.glob(os.path.join(ROOT, 'examples', 'bpftrace', '*.bt')))


def probes_of(library):
    """Name -> numbers of arguments that its places have."""
    notes = subprocess.run(['readelf', '-n', '-W', library], stdout=subprocess.PIPE, text=True,
                           stderr=subprocess.DEVNULL, check=True).stdout
    found = collections.defaultdict(set)
    for name, arguments in re.findall(
            r'Provider: weft\n\s+Name: (\w+)\n\s+Location.*\n\s+Arguments: ?(.*)\n', notes):
        found[name].add(len(re.findall(r'-?[1248]f?@', arguments)))
    return dict(found)


def documented():
    with open(os.path.join(ROOT, 'doc', 'capture.md'), encoding='utf-8') as f:
        table = re.search('<!-- probes -->(.*)<!-- end probes -->', f.read(), re.S).group(1)
    rows = re.findall(r'^\| (\w+) \| .*? \| (.*) \|$', table, re.M)[1:]
    return {name: len(re.sub(r'\(.*?\)', '', arguments).split(',')) for name, arguments in rows}


if not probes_of(LIBRARY):
    print('this build has no probes: sys/sdt.h was not there (systemtap-sdt-dev)')
    sys.exit(77)


# @behaviour T51: the library has USDT probes where messages and lanes change their state
def the_library_has_the_documented_probes():
    assert probes_of(LIBRARY) == {name: {n} for name, n in documented().items()}, \
        probes_of(LIBRARY)


# @behaviour T51
def scripts_use_probes_that_exist():
    used = set()
    assert len(SCRIPTS) == 3, SCRIPTS
    for script in SCRIPTS:
        with open(script, encoding='utf-8') as f:
            text = f.read()
        parts = re.findall(r'usdt:\*:weft:(\w+)(.*?)^}', text, re.S | re.M)
        assert parts, script
        for name, body in parts:
            used.add(name)
            assert name in documented(), (script, name)
            for number in re.findall(r'\barg(\d)\b', body):
                assert int(number) < documented()[name], (script, name, number)
    assert used == set(documented()), used


COMMANDS = '''
set pagination off
set confirm off
set breakpoint pending off
handle SIGPIPE nostop noprint pass
break main
run
'''
STOP = '''
break -probe-stap weft:%s
commands
silent
printf "PROBE %s %s\\n"%s
continue
end
'''
# What of the arguments is printed.
SHOWN = {'post': '%d %d %d', 'post_recv': '%d', 'match': '%d', 'complete': '%d %d',
         'lane_up': '%d %s', 'lane_down': '%d %s %s', 'retransmit': '%s',
         'window_limit': '%s %d'}
ARGUMENTS = {'post': '$_probe_arg0 != 0, $_probe_arg1, $_probe_arg4',
             'post_recv': '$_probe_arg4', 'match': '$_probe_arg3',
             'complete': '(int)$_probe_arg1, $_probe_arg3',
             'lane_up': '$_probe_arg1, (char *)$_probe_arg2',
             'lane_down': '$_probe_arg1, (char *)$_probe_arg2, (char *)$_probe_arg3',
             'retransmit': '(char *)$_probe_arg1',
             'window_limit': '(char *)$_probe_arg1, $_probe_arg2'}


def under_gdb(folder, *arguments, settings=()):
    """The lines of probes of a weft-perf client."""
    script = os.path.join(folder, 'script')
    with open(script, 'w', encoding='utf-8') as f:
        f.write(COMMANDS)
        for name, shown in SHOWN.items():
            f.write(STOP % (name, name, shown, ', ' + ARGUMENTS[name]))
        f.write('continue\n')
    server = Server(BUILD, folder)
    try:
        done = server.client(*settings, *arguments,
                             wrapper=['gdb', '-batch', '-nx', '-x', script, '--args'])
        out, _ = done.communicate(timeout=200)
    finally:
        server.close()
    assert 'exited normally' in out, out[-2000:]
    lines = collections.defaultdict(list)
    for name, rest in re.findall(r'^PROBE (\w+) (.*)$', out, re.M):
        lines[name].append(rest)
    return lines


def can_trace():
    if not shutil.which('gdb'):
        return False
    done = subprocess.run(['gdb', '-batch', '-nx', '-ex', 'run', '--args', '/bin/true'],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=100)
    return 'exited normally' in done.stdout


# @behaviour T51
def a_tracer_stops_at_them_with_the_values_of_the_run():
    if not can_trace():
        print('# gdb is not installed, or may not trace')
        return
    with tempfile.TemporaryDirectory(prefix='weft-probes.') as folder:
        lines = under_gdb(folder, '-t', 'tag_lat', '-s', '24', '-n', '10', '-f')
        # Short messages: their sends end inside the call, and have no request.
        assert lines['post'].count('0 0 24') >= 10, lines['post']
        assert lines['post_recv'].count('24') >= 10, lines['post_recv']
        assert lines['match'].count('24') >= 10, lines['match']
        assert lines['complete'].count('0 24') >= 10, lines['complete']
        assert any(line.startswith('0 dpdk:0') for line in lines['lane_up']), lines['lane_up']
        assert any(line.endswith('the endpoint ends') for line in lines['lane_down']), \
            lines['lane_down']
        lines = under_gdb(folder, '-t', 'tag_bw', '-s', '1M', '-n', '6', '-f',
                          settings=['-S', 'WINDOW=16k'])
        # Large messages have requests, and the window is full.
        assert lines['post'].count('1 0 1048576') >= 6, lines['post']
        assert lines['complete'].count('0 1048576') >= 6, lines['complete']
        assert any(re.fullmatch(r'window \d+', line) for line in lines['window_limit']), \
            lines['window_limit']


def can_bpf():
    """bpftrace as root, on a kernel that takes its programs and has probes of user memory."""
    if not shutil.which('bpftrace') or os.geteuid() != 0:
        return False
    done = subprocess.run(['bpftrace', '-e', 'BEGIN { printf("runs"); exit(); }'], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
    return 'runs' in done.stdout


def under_bpftrace(folder, script, *arguments):
    """What a script prints about a weft-perf client that runs, until it is interrupted."""
    server, path = Server(BUILD, folder), os.path.join(folder, 'out')
    client = server.client(*arguments, '-n', '1000000000', '-f')
    try:
        time.sleep(2)
        with open(path, 'w', encoding='utf-8') as out:
            trace = subprocess.Popen(
                ['bpftrace', '-p', str(client.pid),
                 os.path.join(ROOT, 'examples', 'bpftrace', script)],
                stdout=out, stderr=subprocess.STDOUT)
        try:
            time.sleep(8)
            trace.send_signal(signal.SIGINT)
            trace.wait(60)
        finally:
            trace.kill()
    finally:
        client.kill()
        client.communicate()
        server.close()
    with open(path, encoding='utf-8') as f:
        return f.read()


SMALL = ['-t', 'tag_bw', '-s', '1M', '-S', 'WINDOW=16k']


# @behaviour T51
def prints_values_of_a_process_that_runs(script, arguments, expected):
    def check():
        if not can_bpf():
            print('# bpftrace is not installed, this is not root, or the kernel refuses BPF')
            return
        with tempfile.TemporaryDirectory(prefix='weft-probes.') as folder:
            out = under_bpftrace(folder, script, *arguments)
            assert re.search(expected, out), out[-2000:]

    check.__name__ = script + ' prints values of a process that runs'
    return check


tap.run([the_library_has_the_documented_probes, scripts_use_probes_that_exist,
         a_tracer_stops_at_them_with_the_values_of_the_run,
         prints_values_of_a_process_that_runs('lanes.bt', SMALL,
                                              r'@window_full\[window\]: [1-9]'),
         tap.slow(prints_values_of_a_process_that_runs('latency.bt', SMALL,
                                                       r'@us\[0, over 64 KiB\]:')),
         tap.slow(prints_values_of_a_process_that_runs('receives.bt', ['-t', 'tag_lat', '-s', '24'],
                                                       r'@bytes:\s+\[16, 32\) +[1-9]'))])
