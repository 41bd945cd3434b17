#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check-words.py [--root DIR] [--files]: words in comments, texts, documents and manuals for which
the field has standard terms. Prints each word with its count and its replacement.

devtools/words.limit has the number of occurrences that the tree may have. It only falls: a change
that removes such words lowers the limit in the same commit. A tree above the limit fails.

Measured are the documents, the manual pages, the comments of C files, and the string constants of
C files from 12 characters on, which are log messages, errors and help texts. The comment of a
declaration also counts if it begins with "the same" or a pronoun.
"""

import argparse
import collections
import os
import re
import sys

import check_tree

# A part of the product is no person.
PERSONS = {
    'who': 'the peer, sender, caller or thread that',
    'whoever': 'any peer or caller that',
    'nobody': 'no peer, no thread',
    'somebody': 'a peer, a thread',
    'everybody': 'all peers',
    'himself': 'itself',
}

# Code and hosts do not speak.
SPEECH = {
    'told': 'notified, advertised, reported',
    'tell': 'report, notify',
    'tells': 'reports, indicates',
    'telling': 'reporting',
    'ask': 'request, query',
    'asks': 'requests',
    'asked': 'requested, outstanding',
    'asking': 'requesting',
    'say': 'send, report',
    'says': 'states, contains, means',
    'said': 'sent, reported, logged',
    'unasked': 'unrequested',
    'unsaid': 'unreported',
    'hears': 'receives',
    'heard': 'received',
    'believed': 'trusted, accepted',
}

IDIOM = {
    'anew': 'again',
    'in vain': 'without result',
    'so many': 'N, this number of',
    'so long': 'for this time',
    'so much': 'this amount of',
    'besides': 'also',
    'meanwhile': 'in the meantime',
    'heed': 'respect',
    'heeds': 'respects',
    'heeded': 'respected',
    'by now': 'now',
    'stands': 'is',
    'beside': 'next to, while',
    'patience': 'timeout',
    'stranger': 'unknown sender',
    'strangers': 'unknown senders',
    'crowd': 'load',
    'crowds': 'many peers',
    'crowded': 'loaded',
    'island': 'range',
    'islands': 'ranges',
    'gate': 'validation, receive filter',
    'torn': 'fragmented',
    'the way': 'the path',
    'every way': 'every path',
    'earlier life': 'earlier incarnation',
    'sign of life': 'valid frame',
    'must be looked at': 'must be polled',
    'looks at': 'checks',
    'look at': 'check',
    'looked at': 'checked',
    'its turn': 'in sequence',
    'in hand': 'being processed',
    'good-bye': 'BYE',
}

# The comment of a declaration is read alone: editors show it without its neighbours.
POINTS_ELSEWHERE = 'It, the same ...'
BEGINNING = re.compile(
    r'^/\*\*\s+(?:\*\s+)?(?:the\s+same|its|them|these|those|this|such|'
    r'(?:(?:are|do|does|has|have|is|was|were)\s+)?(?:it|they))\b', re.I | re.M)

WORDS = {**PERSONS, **SPEECH, **IDIOM}
PATTERN = re.compile(r'(?<![\w-])(%s)(?![\w-])' % '|'.join(
    sorted((w.replace(' ', r'\s+') for w in WORDS), key=len, reverse=True)), re.I)

FOLDERS = ('lib/', 'drivers/', 'app/', 'provider/', 'doc/')
ENDINGS = ('.c', '.h', '.md', '.1', '.7')
PAGES = ('README.md', 'CONTRIBUTING.md')
# The rules quote the words.
QUOTES = re.compile(r'<!-- words -->.*?<!-- end words -->', re.S)

COMMENT = re.compile(r'/\*.*?\*/', re.S)
STRING = re.compile(r'"((?:[^"\\\n]|\\.){12,})"')


def prose(path, text):
    """The parts of a file that a person reads."""
    if not path.endswith(('.c', '.h')):
        yield re.sub(r'```.*?```', '', QUOTES.sub('', text), flags=re.S)
        return
    # The star that begins a comment's line is no part of a phrase.
    for m in COMMENT.finditer(text):
        yield re.sub(r'\n\s*\*', '\n', m.group())
    for m in STRING.finditer(COMMENT.sub('', text)):
        yield m.group(1)


def measure(root):
    """(number of words, {word: count}, {path: count})"""
    words, by_word, by_file = 0, collections.Counter(), collections.Counter()
    for path in check_tree.files(root, *ENDINGS):
        if not path.startswith(FOLDERS) and path not in PAGES:
            continue
        text = check_tree.read(root, path)
        for part in prose(path, text):
            words += len(part.split())
            for m in PATTERN.finditer(part):
                by_word[re.sub(r'\s+', ' ', m.group(1).lower())] += 1
                by_file[path] += 1
        if path.endswith('.h'):
            pointing = len(BEGINNING.findall(text))
            by_word[POINTS_ELSEWHERE] += pointing
            by_file[path] += pointing
    return words, by_word, by_file


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--root', default=check_tree.HERE)
    p.add_argument('--files', action='store_true', help='the files with most of them, too')
    o = p.parse_args()

    limit = int(check_tree.read(o.root, os.path.join('devtools', 'words.limit')).split('\n')[2])
    words, by_word, by_file = measure(o.root)
    total = sum(by_word.values())
    if not words:
        print('no text was found below %s' % o.root)
        return 1
    for word, count in (+by_word).most_common():
        print('%6d  %-18s %s' % (
            count, word, WORDS.get(word, 'the noun, or the name of the other function')))
    if o.files:
        for path, count in (+by_file).most_common(40):
            print('%6d  %s' % (count, path))
    print('%d words, %d to be replaced (%.1f per 1000), of at most %d' % (
        words, total, 1000 * total / words, limit))
    if total < limit:
        print('lower devtools/words.limit to %d' % total)
    return int(total > limit)


if __name__ == '__main__':
    sys.exit(main())
