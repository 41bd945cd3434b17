#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""options_page.py PAGE PROGRAM: print the manual page with the options of the program.

The program makes the list of options from its table (app/common/cli.h). In the page the lines
from '.\\" OPTIONS:' to '.\\" OPTIONS END' are replaced by that list, and those from '.\\" OPTIONS
COMMAND:' by the list of the program's COMMAND. The lines between them that follow
'.\\" OPTION NAME' are added to the option --NAME.
"""

import re
import subprocess
import sys

MARKED = re.compile(r'^\.\\" OPTIONS ?([a-z]*):.*?\n(.*?)^\.\\" OPTIONS END\n', re.M | re.S)


def with_details(marked, options):
    """The list of options with the details of the page. Raises ValueError if they do not fit."""
    parts = re.split(r'^\.\\" OPTION ([a-z-]+)\n', marked, flags=re.M)
    details = dict(zip(parts[1::2], parts[2::2]))
    if 2 * len(details) + 1 != len(parts):
        raise ValueError('an option has details twice')
    items = re.split(r'^(?=\.It|\.El|\.Ss)', options, flags=re.M)
    for i, item in enumerate(items):
        name = re.match(r'\.It .*?Fl -([a-z-]+)', item)
        if name:
            items[i] += details.pop(name.group(1), '')
    if details:
        raise ValueError('there is no option --' + ', --'.join(details))
    return ''.join(items)


def page_with(page, options_of):
    """The page with its lists of options; @options_of(command) prints one."""
    if not MARKED.search(page):
        raise ValueError('there is no place for the options')
    return MARKED.sub(lambda m: with_details(m.group(2), options_of(m.group(1))), page)


def main():
    with open(sys.argv[1], encoding='utf-8') as f:
        page = f.read()

    def options_of(command):
        words = [sys.argv[2]] + ([command] if command else []) + ['--print-options', 'manual']
        return subprocess.run(words, stdout=subprocess.PIPE, encoding='utf-8', check=True).stdout

    try:
        sys.stdout.write(page_with(page, options_of))
    except ValueError as e:
        sys.exit('%s: %s' % (sys.argv[1], e))


if __name__ == '__main__':
    main()
