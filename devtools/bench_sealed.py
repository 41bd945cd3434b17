# SPDX-License-Identifier: BSD-3-Clause
"""Sealed lanes, beside plain ones with a checksum, and beside plain lanes through WireGuard."""

import contextlib
import os
import shutil
import subprocess
from functools import partial

from bench_rails import Rails
from bench_run import TrialError, bandwidth, csv_rows, free_port, mean_latency_ns, pair, rate
from bench_trials import at_least, at_most_more, report

KIB, MIB = 1024, 1024 * 1024

CRC, SEALED, AUTH = 'plain, CRC-32C', 'sealed, encrypt', 'sealed, auth'


def modes(b):
    """Environments of the variants. The key is a file of this run."""
    key = os.path.join(b.dir, 'job-key')
    with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), 'wb') as f:
        f.write(os.urandom(32))
    return {CRC: {'WEFT_CSUM': 'crc32c'},
            SEALED: {'WEFT_JOB_KEY': key, 'WEFT_SEAL': 'encrypt'},
            AUTH: {'WEFT_JOB_KEY': key, 'WEFT_SEAL': 'auth'}}


def compare(b, where, run, test, size, target=0.95, also=None):
    """run(test, size, env): one run. Both sealed variants against the plain one. also: variables of
    all three."""
    variants = {name: partial(run, test, size, env={**env, **(also or {})})
                for name, env in modes(b).items()}
    if test == 'tag_lat':
        b.alternate('8 B half round trip, ' + where, variants, mean_latency_ns, 'ns',
                    [(SEALED, CRC, at_most_more, 80, None), (AUTH, CRC, report, None, None)])
    elif size == 8:
        b.alternate('8 B message rate, ' + where, variants, rate, 'M/s',
                    [(SEALED, CRC, at_least, 0.85, None), (AUTH, CRC, report, None, None)])
    else:
        b.alternate('%d KiB bandwidth, %s' % (size // KIB, where), variants, bandwidth, 'MiB/s',
                    [(SEALED, CRC, at_least, target, None), (AUTH, CRC, report, None, None)])


def over_rail(rails, test, size, env):
    """net_af_packet on the first rail."""
    cmds, envs = rails.commands([0], free_port())
    out = pair(cmds[0], cmds[1] + ['-t', test, '-s', str(size), '-D', '1', '-f', '-v',
                                   '10.99.0.1'],
               {**envs[0], **env}, {**envs[1], **env}, timeout=60)
    return csv_rows(out)[-1]


def over_sockets(rails, test, size, interface, env):
    """Lanes over UDP sockets of this interface."""
    port, sides = free_port(), []
    for side in (0, 1):
        core = (rails.b.a, rails.b.b)[side]
        sides.append(['ip', 'netns', 'exec', rails.ns[side], 'taskset', '-c', str(core),
                      rails.b.perf, '-p', str(port)])
    env = {'WEFT_LANES': 'udp:' + interface, **env}
    out = pair(sides[0], sides[1] + ['-t', test, '-s', str(size), '-D', '1', '-f', '-v',
                                     '10.99.0.1'], env, env, timeout=60)
    return csv_rows(out)[-1]


@contextlib.contextmanager
def wireguard(rails):
    """An interface wg0 in both namespaces, whose tunnel goes over the first rail."""
    if not shutil.which('wg'):
        raise TrialError('there is no wg: install wireguard-tools')
    wg = ['wg']
    private = [subprocess.run(wg + ['genkey'], capture_output=True, check=True).stdout
               for _ in (0, 1)]
    public = [subprocess.run(wg + ['pubkey'], input=k, capture_output=True, check=True)
              .stdout.decode().strip() for k in private]
    for side, ns in enumerate(rails.ns):
        there = ['ip', 'netns', 'exec', ns]
        rails.run('ip -n %s link add wg0 type wireguard' % ns)
        subprocess.run(there + wg + ['set', 'wg0', 'listen-port', '51820', 'private-key',
                                     '/dev/stdin', 'peer', public[1 - side], 'allowed-ips',
                                     '10.78.0.0/24', 'endpoint',
                                     '10.77.0.%d:51820' % (2 - side)],
                       input=private[side], check=True)
        # 80 bytes of a packet are the tunnel's, with IPv6 outside.
        rails.run('ip -n %s link set wg0 mtu %d up' % (ns, rails.mtu - 80))
        rails.run('ip -n %s addr add 10.78.0.%d/24 dev wg0' % (ns, side + 1))
    yield


def beside_wireguard(b, rails):
    tunnel = 'plain, through WireGuard'
    with wireguard(rails):
        mode = modes(b)
        for test, size, value, unit in (('tag_lat', 8, mean_latency_ns, 'ns'),
                                        ('tag_bw', MIB, bandwidth, 'MiB/s')):
            b.alternate('%s %s, UDP sockets over one veth, MTU 9000, beside WireGuard'
                        % ('8 B' if size == 8 else '1 MiB', test), {
                            **{n: partial(over_sockets, rails, test, size, 'rail0', env)
                               for n, env in mode.items()},
                            tunnel: partial(over_sockets, rails, test, size, 'wg0', {}),
                        }, value, unit, [(SEALED, tunnel, report, None, None),
                                         (AUTH, tunnel, report, None, None),
                                         (CRC, tunnel, report, None, None)])


def m_sealed(b):
    """sealed lanes against plain ones with CRC-32C, over memif and one veth: 8 B + 80 ns, 0.85 x of
    the rate, 0.95 x of the bandwidth; over UDP sockets beside WireGuard, if the kernel has it"""
    def memif(test, size, env):
        return b.weft(test, size, env=env)

    for test, size in (('tag_lat', 8), ('tag_bw', 8), ('tag_bw', 64 * KIB), ('tag_bw', MIB)):
        compare(b, 'one memif lane, frames of 9000', memif, test, size)
    with Rails(b, (None, None)) as rails:
        for test, size in (('tag_lat', 8), ('tag_bw', 64 * KIB), ('tag_bw', MIB)):
            compare(b, 'one veth, net_af_packet, MTU 9000', partial(over_rail, rails), test, size)
        try:
            beside_wireguard(b, rails)
        except TrialError as err:
            b.record('WireGuard', text='Not measured: %s\n' % err)
            print('\nbeside WireGuard: not measured: %s' % err)


def m_sealed_aesni(b):
    """sealed lanes over memif as on a processor without VAES; the processor of this run may have
    none, and then the measure sealed has the same figures"""
    library = os.path.abspath(os.path.join(b.args.build, 'devtools', 'libaesni_only.so'))
    if not os.path.exists(library):
        raise TrialError('there is no %s: this build cannot seal' % library)

    def memif(test, size, env):
        return b.weft(test, size, env=env)

    for test, size in (('tag_lat', 8), ('tag_bw', 8), ('tag_bw', 64 * KIB), ('tag_bw', MIB)):
        compare(b, 'one memif lane, frames of 9000, AES-NI without VAES', memif, test, size,
                also={'LD_PRELOAD': library})


MEASURES = {'sealed': m_sealed, 'sealed-aesni': m_sealed_aesni}
