# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a trial: two processes, the rows that they print, and the state of the machine."""

import contextlib
import csv
import io
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time


class TrialError(Exception):
    """A trial without a figure; the text is the reason."""


# ---- processes ------------------------------------------------------------------------------

FIRST = []  # the prefix of a command that has a session of its own


def go_first(file='/proc/self/autogroup', switch='/proc/sys/kernel/sched_autogroup_enabled'):
    """From now on, trials have priority over all other work of the machine. Returns what prevents
    it, or None."""
    try:
        with open(switch, encoding='utf-8') as f:
            if f.read().strip() != '1':
                return 'sysctl kernel.sched_autogroup_enabled is not 1'
        command = 'echo -20 > %s && exec "$@"' % file
        subprocess.run(['sh', '-c', command, 'sh', 'true'], check=True, capture_output=True,
                       text=True, start_new_session=True)
    except OSError:
        return 'the kernel has no autogroups'
    except subprocess.CalledProcessError as err:
        return err.stderr.strip() or 'the priority of an autogroup cannot be set'
    FIRST[:] = ['sh', '-c', command, 'sh']
    return None


def free_port():
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(('', port))
                return port
            except OSError:
                continue


def end(proc):
    """Ends a process that this script started, and its children."""
    if proc.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(proc.pid, signal.SIGTERM)
        try:
            proc.wait(timeout=3)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(proc.pid, signal.SIGKILL)
            proc.wait()


class Reader(threading.Thread):
    """Reads a process' output to its end, line by line, so that no line is lost. watch(line):
    called with each line."""

    def __init__(self, pipe, watch):
        super().__init__(daemon=True)
        self.pipe, self.watch = pipe, watch
        self.lines, self.error = [], None
        self.start()

    def run(self):
        for line in self.pipe:
            self.lines.append(line)
            if self.watch and not self.error:
                try:
                    self.watch(line)
                except Exception as err:  # text() raises it
                    self.error = err

    def text(self):
        """All of it; the process must have ended."""
        self.join(timeout=10)
        if self.error:
            raise self.error
        return ''.join(self.lines)


def pair(server, client, env_server, env_client, timeout, watch=None, codes=(0,)):
    """
    Runs server and client; returns the client's output. watch(line): called with each line of it as
    it comes. codes: what the client may exit with.
    """
    for cmd in (server, client):
        if shutil.which(cmd[0]) is None:
            raise TrialError('there is no program ' + cmd[0])
    with tempfile.TemporaryFile('w+') as server_out, tempfile.TemporaryFile('w+') as client_err:
        srv = subprocess.Popen(FIRST + server, env={**os.environ, **env_server},
                               stdin=subprocess.DEVNULL, stdout=server_out,
                               stderr=subprocess.STDOUT, start_new_session=True)
        try:
            time.sleep(0.15)
            cli = subprocess.Popen(FIRST + client, env={**os.environ, **env_client},
                                   stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=client_err, text=True,
                                   start_new_session=True)
            reader = Reader(cli.stdout, watch)
            try:
                cli.wait(timeout=timeout)
            except subprocess.TimeoutExpired:
                raise TrialError('no end after %g s: %s'
                                 % (timeout, tail(whole(client_err)))) from None
            finally:
                end(cli)
            out = reader.text()
            if cli.returncode not in codes:
                raise TrialError('exit code %d: %s | server: %s'
                                 % (cli.returncode, tail(whole(client_err) or out),
                                    tail(whole(server_out))))
            with contextlib.suppress(subprocess.TimeoutExpired):
                srv.wait(timeout=2)
            return out
        finally:
            end(srv)


def whole(file):
    file.seek(0)
    return file.read()


def tail(text, lines=3):
    return ' / '.join((text or '').strip().splitlines()[-lines:])


def csv_rows(text):
    """Rows of the last CSV table in a program's output, as dictionaries."""
    lines = [line for line in text.splitlines() if ',' in line and not line.startswith('#')]
    heads = [i for i, line in enumerate(lines) if 'overall_lat' in line
             or line.startswith('messages,')]
    if not heads:
        raise TrialError('no CSV in the output: ' + tail(text))
    rows = list(csv.DictReader(io.StringIO('\n'.join(lines[heads[-1]:]))))
    if not rows:
        raise TrialError('no figure in the output: ' + tail(text))
    return rows


# ---- states of the two cores ----------------------------------------------------------------

class Cores:
    def __init__(self, program, a, b, limit):
        self.cmd = [program, '-c', '%d,%d' % (a, b)]
        self.limit = limit

    def named(self, ns):
        return 'near' if ns <= self.limit else 'far'

    def state(self):
        out = subprocess.run(FIRST + self.cmd, capture_output=True, text=True, check=True,
                             start_new_session=True).stdout.split()
        return float(out[0]), self.named(float(out[0]))


class Others:
    """The share of the machine that processes other than the trial's used since the last call."""

    def __init__(self):
        self.last = self.read()

    @staticmethod
    def read():
        with open('/proc/stat') as f:
            ticks = [int(x) for x in f.readline().split()[1:9]]
        used = sum(getattr(resource.getrusage(who), field) for field in ('ru_utime', 'ru_stime')
                   for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
        hz = os.sysconf('SC_CLK_TCK')
        # Idle, waiting for disks, and interrupts: behind a shaper interrupts forward frames, mostly
        # the trial's own.
        return sum(ticks) / hz, sum(ticks[3:7]) / hz, used

    def part(self):
        now = self.read()
        total, idle, own = (n - l for n, l in zip(now, self.last))
        self.last = now
        return max(total - idle - own, 0) / total if total else 0


# ---- figures of a row: latency in ns, rate in millions of messages/s, bandwidth in MiB/s -----

def latency_ns(row):
    return float(row.get('50.0_percentile_lat') or row['p50_lat']) * 1000


def mean_latency_ns(row):
    return float(row['overall_lat']) * 1000


def rate(row):
    return float(row['overall_mr']) / 1e6


def bandwidth(row):
    return float(row['overall_bw'])
