# SPDX-License-Identifier: BSD-3-Clause
"""Two network namespaces with two shaped rails between them, and the streams over these."""

import os
import statistics
import subprocess

from bench_run import TrialError, csv_rows, free_port, pair, tail

MIB = 1024 * 1024


class Rails:
    """Two network namespaces, two veth rails between them behind a token bucket at both ends, and a
    veth for the programs' own TCP connection. A rate of None: not shaped."""

    def __init__(self, bench, rates=(10**9, 10**9), mtu=9000, burst=None, name=''):
        self.b = bench
        tag = '%x%s' % (os.getpid(), name)
        self.ns = ['weft-%s-%s' % (tag, side) for side in 'ab']
        self.burst = burst
        self.rates, self.mtu = rates, mtu

    @staticmethod
    def run(cmd):
        done = subprocess.run(cmd.split(), capture_output=True, text=True)
        if done.returncode:
            raise TrialError('%s: %s' % (cmd, tail(done.stderr)))

    def __enter__(self):
        try:
            for ns in self.ns:
                self.run('ip netns add ' + ns)
                self.run('ip -n %s link set lo up' % ns)
            for i, link in enumerate(('rail0', 'rail1', 'ctl')):
                self.run('ip -n %s link add %s type veth peer name %s netns %s'
                         % (self.ns[0], link, link, self.ns[1]))
                for side, ns in enumerate(self.ns):
                    if link == 'ctl':
                        self.run('ip -n %s addr add 10.99.0.%d/24 dev ctl' % (ns, side + 1))
                    else:
                        self.run('ip -n %s link set %s mtu %d' % (ns, link, self.mtu))
                        self.run('ip -n %s addr add 10.77.%d.%d/24 dev %s'
                                 % (ns, i, side + 1, link))
                        if self.rates[i]:
                            self.shape('add', ns, i, self.rates[i])
                    self.run('ip -n %s link set %s up' % (ns, link))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        for ns in self.ns:
            subprocess.run(['ip', 'netns', 'del', ns], stderr=subprocess.DEVNULL)

    def shape(self, what, ns, rail, rate):
        burst = self.burst or rate // 8 // 1000  # 1 ms of rate
        self.run('tc -n %s qdisc %s dev rail%d root tbf rate %dbit burst %d latency 20ms'
                 % (ns, what, rail, rate, max(burst, 16000)))

    def set_rate(self, rail, rate):
        """Both directions of a rail, while it is in use."""
        for ns in self.ns:
            self.shape('change', ns, rail, rate)

    def weft(self, test, size, rails, amount, watch=None, perf=None):
        """One run of weft-perf (or of perf, another build's); amount: options for its duration.
        watch(line): called with each line of the output as it arrives; with it the rows of every
        second are returned."""
        cmds, envs = self.commands(rails, free_port(), perf)
        out = pair(cmds[0], cmds[1] + ['-t', test, '-s', str(size), '-v'] + amount
                   + ([] if watch else ['-f'])
                   + ['10.99.0.1'], envs[0], envs[1], timeout=60, watch=watch)
        return csv_rows(out) if watch else csv_rows(out)[-1]

    def commands(self, rails, port, perf=None):
        """Command lines and environments of the two ends."""
        cmds, envs = [], []
        for side in (0, 1):
            eal, lanes = self.ports(side, rails)
            cmds.append(['ip', 'netns', 'exec', self.ns[side], perf or self.b.perf]
                        + eal + ['--', '-p', str(port)])
            envs.append({'WEFT_LANES': lanes})
        return cmds, envs

    def ports(self, side, rails):
        """EAL's arguments and the value of WEFT_LANES for lanes on these rails. Only frames that
        pass the queue of the kernel are shaped."""
        vdevs = ['net_af_packet%d,iface=rail%d,qdisc_bypass=%d,blocksz=16384,framesz=16384,'
                 'framecnt=256' % (n, r, not self.rates[r]) for n, r in enumerate(rails)]
        lanes = ('dpdk:%d,ip=10.88.%d.%d/24,mtu=%d' % (n, r, side + 1, self.mtu)
                 for n, r in enumerate(rails))
        return self.b.eal((self.b.a, self.b.b)[side], vdevs), ';'.join(lanes)

    def stream(self, test, size, rails, nbytes):
        return self.weft(test, size, rails, ['-n', str(max(nbytes // size, 8))])

    def cut(self, size, before=2, settle=2, after=3, divisor=4):
        """A stream over both rails; after some seconds the second one is cut. Returns the bandwidth
        after the time to settle."""
        seconds = 0

        def watch(line):
            nonlocal seconds
            if line[:1].isdigit():
                seconds += 1
                if seconds == before:
                    self.set_rate(1, self.rates[1] // divisor)

        # Messages that are in flight together end together. There must be few, or none of them may
        # end within a second. The run has a count instead of a time, since the number for a time
        # would be estimated from the rails before the cut.
        bits = sum(self.rates) * before + (self.rates[0] + self.rates[1] // divisor) * (settle
                                                                                        + after + 1)
        amount = ['-n', str(bits // 8 // size), '-O', str(max(4, min(32, 64 * MIB // size)))]
        try:
            rows = self.weft('tag_bw', size, [0, 1], amount, watch=watch)
        finally:
            self.set_rate(1, self.rates[1])
        # A row is a second. The second of the cut counts as settling; the last row is that of the
        # whole run.
        rows = rows[before + settle + 1:-1]
        if not rows:
            raise TrialError('the stream ended before it had settled')
        return {'overall_bw': statistics.mean(float(r['avg_bw']) for r in rows)}
