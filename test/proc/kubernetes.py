#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/kubernetes: the structure of the manifests, and that weft-switch accepts the options of
its container. No cluster is there to run them. Argument: the build folder. Prints TAP."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import tap  # noqa: E402

try:
    import yaml
except ImportError:
    print('there is no yaml for python3')
    sys.exit(77)

BUILD = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(HERE, '../../examples/kubernetes/weft.yaml')
NAME = re.compile(r'[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?')
API = {'DaemonSet': 'apps/v1', 'Pod': 'v1'}


def manifests():
    with open(FILE, encoding='utf-8') as f:
        return list(yaml.safe_load_all(f))


def pod_spec(manifest):
    spec = manifest['spec']
    return spec['template']['spec'] if manifest['kind'] == 'DaemonSet' else spec


def check_pod(spec):
    volumes = {v['name']: v for v in spec['volumes']}
    used = set()
    for container in spec['containers']:
        assert NAME.fullmatch(container['name']) and container['image']
        assert all(isinstance(a, str) for a in container['command'] + container.get('args', []))
        assert all(isinstance(e['value'], str) for e in container.get('env', []))
        for mount in container['volumeMounts']:
            assert mount['mountPath'].startswith('/'), mount
            used.add(mount['name'])
        requests, limits = (container['resources'][k] for k in ('requests', 'limits'))
        for name in set(requests) | set(limits):
            if name.startswith('hugepages-'):
                # Kubernetes requires equal values, and cpu or memory beside them.
                assert requests[name] == limits[name]
                assert 'cpu' in requests or 'memory' in requests
    assert used == set(volumes), (used, set(volumes))
    for volume in volumes.values():
        assert len(volume) == 2 and ('hostPath' in volume or 'emptyDir' in volume), volume


def structure():
    found = manifests()
    assert [m['kind'] for m in found] == ['DaemonSet', 'Pod']
    for manifest in found:
        assert manifest['apiVersion'] == API[manifest['kind']]
        assert NAME.fullmatch(manifest['metadata']['name'])
        check_pod(pod_spec(manifest))
    daemon = found[0]['spec']
    labels = daemon['template']['metadata']['labels']
    assert daemon['selector']['matchLabels'].items() <= labels.items()


def the_socket_is_shared():
    paths = set()
    for manifest in manifests():
        spec = pod_spec(manifest)
        host, = (v['hostPath']['path'] for v in spec['volumes'] if v['name'] == 'socket')
        inside, = (m['mountPath'] for c in spec['containers'] for m in c['volumeMounts']
                   if m['name'] == 'socket')
        paths |= {host, inside}
    assert paths == {'/run/weft'}, paths


def the_switch_accepts_its_options():
    container, = pod_spec(manifests()[0])['containers']
    args = container['args']
    own = args[args.index('--') + 1:]
    ports = own[own.index('-n') + 1]
    with tempfile.TemporaryDirectory() as folder:
        socket = os.path.join(folder, 'switch.sock')
        program = os.path.join(BUILD, 'app', container['command'][0])
        process = subprocess.Popen(
            [program, '--no-huge', '-m', '64', '--no-pci', '--no-shconf', '--', '-p', socket]
            + own + ['none'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        end = time.monotonic() + 60
        while not os.path.exists(socket) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        mode = os.stat(socket).st_mode & 0o777 if os.path.exists(socket) else None
        process.terminate()
        text = process.communicate(timeout=60)[0]
    assert mode == 0o666, text
    assert re.search(r'\b%s ports at' % ports, text), text


if not shutil.which(os.path.join(BUILD, 'app/weft-switch')):
    print('there is no weft-switch in this build')
    sys.exit(77)
tap.run([structure, the_socket_is_shared, the_switch_accepts_its_options])
