#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs every example of the manual pages' EXAMPLES, of --help and of README's "Usage examples", as
printed.

	examples.py BUILDDIR

Two weft-perf or weft-cat commands in a row are the two ends: the first one runs until the second
has ended. A weft-wire runs until the block has ended. What a "tar x" unpacks lands in another
directory and is compared with what was packed, byte by byte. Not run as printed: weft-bind, which
takes a NIC from the kernel (test/proc/bind.sh has it), is left out; measurements over localhost are
cut short (-D); NICs, paths and files of the reader's are replaced (NIC, OWN); a NIC needs root.
Prints TAP.
"""

import filecmp
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv[1])
PROGRAMS = os.path.join(BUILD, 'app')
# A NIC of the reader's: a veth in a network namespace of its own stands for it.
NIC = 'ens6'
WITH_NIC = ('mount -t sysfs sysfs /sys; ip link add %s type veth peer name p6; '
            'ip address add 10.0.0.5/24 dev %s; ip link set %s up; ' % (NIC, NIC, NIC))
# In the directory of the reader's that examples pack.
FILES = ['empty', 'file', 'large']
# What a reader has to replace by something of their own.
OWN = {'HOST': 'localhost', 'my.ini': os.path.join(ROOT, 'examples/profiles/ena-4.ini'),
       '/usr/local/share/doc/weft': os.path.join(ROOT, 'examples')}


def joined(text):
    """Commands of a block, with continued lines made one."""
    text = re.sub(r'\\e?\n\s*', ' ', text)
    text = re.sub(r'\|\n\s*', '| ', text)
    return [line.strip() for line in text.split('\n') if line.strip()]


def of_manual(page):
    with open(os.path.join(ROOT, 'doc/man', page)) as f:
        section = re.search(r'^\.Sh EXAMPLES\n(.*?)^\.Sh ', f.read(), re.M | re.S)
    return [joined(b)
            for b in re.findall(r'^\.Bd -literal.*?\n(.*?)^\.Ed', section.group(1), re.M | re.S)]


def of_help(program):
    text = subprocess.run([os.path.join(PROGRAMS, program), '--help'], capture_output=True,
                          text=True, check=True).stdout
    blocks = re.findall(r':\n((?:  (?:weft-|tar )\S.*\n?)+)', text)
    return [joined(b) for b in blocks]


def of_readme():
    with open(os.path.join(ROOT, 'README.md')) as f:
        text = f.read()
    run = re.search(r'^## Usage examples\n(.*?)^`weft-perf`', text, re.M | re.S).group(1)
    return [joined(b) for b in re.findall(r'((?:^    .*\n)+)', run, re.M)]


def is_end(command):
    return re.search(r'\bweft-(perf|cat)\b', command) and 'weft-cat --help' not in command


def serves(command):
    """It goes on until it is ended. @return what it prints when it is ready, or None"""
    return {'weft-wire': ' -> ', 'weft-switch': ' ports at '}.get(command.split()[0])


def wait_for(path, words, process):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with open(path) as f:
            if words in f.read():
                return True
        if process.poll() is not None:
            return False
        time.sleep(0.05)
    return False


def unpacks(command):
    return ' tar x' in command


def unpacked_wrong(directory):
    """@return what differs from what was packed, or None"""
    there = os.path.join(directory, 'there', 'dir')
    found = sorted(os.listdir(there)) if os.path.isdir(there) else None
    if found != FILES:
        return 'unpacked: %s, not %s' % (found, FILES)
    _, differ, unread = filecmp.cmpfiles(os.path.join(directory, 'dir'), there, FILES,
                                         shallow=False)
    return 'unpacked, and not the same: %s' % (differ + unread) if differ or unread else None


def start(command, env, directory, log):
    if unpacks(command):
        directory = os.path.join(directory, 'there')
    with open(log, 'w') as out:
        return subprocess.Popen(['bash', '-c', 'set -o pipefail; ' + command], env=env,
                                cwd=directory, stdin=subprocess.DEVNULL,
                                stdout=out, stderr=out, start_new_session=True)


def binds(command):
    """It takes a real NIC away from the kernel: test/proc/bind.sh runs it over a sysfs of its
    own."""
    return 'weft-bind' in command


def short(command):
    """The example measures for minutes; its start and its end are what is tested."""
    if 'weft-perf' in command and re.search(r'\s(localhost|127\.0\.0\.1)$', command):
        return re.sub(r'\s(\S+)$', r' -D 0.005 -w 1 \1', command)
    return command


def run_block(commands, directory):
    """@return what went wrong, or None"""
    running = []
    try:
        return run_commands(commands, directory, running)
    finally:
        for process in running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_commands(commands, directory, running):
    env = dict(os.environ, PATH=PROGRAMS + ':' + os.environ['PATH'])
    for name in [n for n in env if n.startswith('WEFT_') and n != 'WEFT_TEST_NO_HUGE']:
        del env[name]
    env['WEFT_CONFIG'] = 'off'
    server = None
    for number, command in enumerate(commands):
        for word, other in OWN.items():
            command = command.replace(word, other)
        log = os.path.join(directory, 'log%d' % number)
        if command.startswith('export '):
            name, value = command[7:].split('=', 1)
            env[name] = value
            continue
        if NIC in command:
            command = "unshare -nm bash -c '%s%s'" % (WITH_NIC, command)
        ready = serves(command)
        if command.startswith('weft-switch'):
            # Not the switch of this host.
            env['WEFT_SWITCH'] = os.path.join(directory, 'switch.sock')
            command += ' -p ' + env['WEFT_SWITCH']
        process = start(('exec ' if ready else '') + short(command), env, directory, log)
        running.append(process)
        if ready:
            if not wait_for(log, ready, process):
                return '%s\n%s' % (command, open(log).read())
            continue
        if is_end(command) and server is None:
            if not wait_for(log, 'waiting for a client', process):
                return '%s\n%s' % (command, open(log).read())
            server = (process, command, log)
            continue
        for p, c, l in [(process, command, log)] + ([server] if server and is_end(command) else []):
            try:
                code = p.wait(timeout=120)
            except subprocess.TimeoutExpired:
                code = 'none after 120 s'
            if code != 0:
                return '%s\nexit code %s\n%s' % (c, code, open(l).read())
        server = None if is_end(command) else server
    if server:
        return 'no other end for ' + server[1]
    return unpacked_wrong(directory) if any(unpacks(c) for c in commands) else None


def sources():
    for page in sorted(os.listdir(os.path.join(ROOT, 'doc/man'))):
        with open(os.path.join(ROOT, 'doc/man', page)) as f:
            if '.Sh EXAMPLES' in f.read():
                yield page, of_manual(page)
    for program in ('weft-perf', 'weft-cat', 'weft-info'):
        yield program + ' --help', of_help(program)
    yield 'README.md', of_readme()


# @behaviour T13: every example of the manuals, of `--help` and of README runs as printed; `tar x`
# unpacks the packed files
def main():
    number = bad = 0
    if not os.path.exists(os.path.join(PROGRAMS, 'weft-perf')):
        print('1..0 # SKIP there are no programs in this build')
        return 77
    for name, blocks in sources():
        for block in blocks:
            block = [c for c in block if not binds(c)]
            if os.geteuid() != 0 and any(NIC in c for c in block):
                number += 1
                print('ok %d - %s # SKIP it needs a NIC, and only root can make one (unshare -nm)'
                      % (number, name))
                continue
            directory = tempfile.mkdtemp(prefix='weft-examples.')
            for sub in ('dir', 'there'):
                os.mkdir(os.path.join(directory, sub))
            for file, size in zip(FILES, (0, 300000, 2500000)):
                with open(os.path.join(directory, 'dir', file), 'wb') as f:
                    f.write(os.urandom(size))
            wrong = run_block(block, directory)
            shutil.rmtree(directory)
            number += 1
            bad += wrong is not None
            print('%sok %d - %s: %s' % ('not ' if wrong else '', number, name, block[-1][:100]))
            for line in (wrong or '').split('\n')[:12]:
                if line:
                    print('# ' + line[:200])
            sys.stdout.flush()
    print('1..%d' % number)
    return 1 if bad or number < 5 else 0


sys.exit(main())
