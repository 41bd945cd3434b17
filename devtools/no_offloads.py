#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
no_offloads.py LINK: the kernel makes the checksums of a network interface, and merges no segments.
A box between two veths then gets frames as a network has them. What the device does not know stays.
"""

import array
import fcntl
import socket
import struct
import sys

SIOCETHTOOL = 0x8946
# ETHTOOL_STXCSUM, STSO, SGSO, SGRO, SRXCSUM
COMMANDS = (0x17, 0x1f, 0x24, 0x2c, 0x15)


def main():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for command in COMMANDS:
            value = array.array('B', struct.pack('II', command, 0))
            request = struct.pack('16sP8x', sys.argv[1].encode(), value.buffer_info()[0])
            try:
                fcntl.ioctl(s, SIOCETHTOOL, request)
            except OSError as err:
                if command == COMMANDS[0]:
                    sys.exit('no_offloads: %s: %s' % (sys.argv[1], err))


main()
