#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""options_page.py PAGE PROGRAM: print the manual page with the options of the program.

The program makes the list of options from its table (app/common/options.h). In the page the lines
from '.\\" OPTIONS' to '.\\" OPTIONS END' are replaced by that list. The lines between them that
follow '.\\" OPTION NAME' are added to the option --NAME.
"""

import re
import subprocess
import sys

MARKED = re.compile(r'^\.\\" OPTIONS(?! END).*?\n(.*?)^\.\\" OPTIONS END\n', re.M | re.S)


def page_with(page, options):
    """The page with this list of options. Raises ValueError if they do not fit."""
    marked = MARKED.findall(page)
    if len(marked) != 1:
        raise ValueError('%d places for the options, not 1' % len(marked))
    parts = re.split(r'^\.\\" OPTION ([a-z-]+)\n', marked[0], flags=re.M)
    details = dict(zip(parts[1::2], parts[2::2]))
    if 2 * len(details) + 1 != len(parts):
        raise ValueError('an option has details twice')
    items = re.split(r'^(?=\.It|\.El)', options, flags=re.M)
    for i, item in enumerate(items):
        name = re.match(r'\.It .*?Fl -([a-z-]+)', item)
        if name:
            items[i] += details.pop(name.group(1), '')
    if details:
        raise ValueError('there is no option --' + ', --'.join(details))
    return MARKED.sub(lambda _: ''.join(items), page)


def main():
    with open(sys.argv[1], encoding='utf-8') as f:
        page = f.read()
    options = subprocess.run([sys.argv[2], '--print-options', 'manual'], stdout=subprocess.PIPE,
                             encoding='utf-8', check=True).stdout
    try:
        sys.stdout.write(page_with(page, options))
    except ValueError as e:
        sys.exit('%s: %s' % (sys.argv[1], e))


if __name__ == '__main__':
    main()
