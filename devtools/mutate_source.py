# SPDX-License-Identifier: BSD-3-Clause
"""Mutations of C sources of this tree's style, for mutate.py: where they are, and how a source is
written that contains several of them as switches. A mutation changes one expression or removes one
statement:

    if (a < b)        ->  if ((mutant_if(7, !!(a <= b) != !!(a < b)) ? !!(a <= b) : !!(a < b)))
    x = f(y) + 1;     ->  { if (mutant(7)) { x = f(y) - 1; } else { x = f(y) + 1; } }
    return -EAGAIN;   ->  return mutant(7) ? (0) : (-EAGAIN);

The parser knows statements, not types, so the compiler decides which mutations are valid. A
function that the parser does not understand has no mutations."""

import collections
import re

TOKEN = re.compile(r'''
    (?P<space>\s+|/\*.*?\*/|//[^\n]*)
  | (?P<hash>\#(?:[^\n\\]|\\.)*)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<char>'(?:[^'\\\n]|\\.)*')
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<mark><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
''', re.S | re.X)

Token = collections.namedtuple('Token', 'kind text start end')

# A place is a range of the source that a mutation replaces. kind: cond, value (of return or of an
# initialisation), statement (with its semicolon).
Place = collections.namedtuple('Place', 'kind start end')
Mutation = collections.namedtuple('Mutation', 'path line function place old new change')

TYPES = {'const', 'static', 'struct', 'union', 'enum', 'unsigned', 'signed', 'int', 'char', 'long',
         'short', 'float', 'double', 'void', 'bool', 'volatile', 'register', '_Atomic', 'va_list',
         'FILE', 'extern'}
TYPE = re.compile(r'^\w+_t$')
# What only texts, performance or sanitizers show.
UNSEEN = re.compile(r'^(\w*assert|static_assert|\w*prefetch\w*|weft_(log|error|warn|info|debug)\w*|'
                    r'free|va_start|va_end|WEFT_UNUSED|sched_yield|rte_pause)$')
SWAPS = {
    '<': ('<=', '>'), '<=': ('<', '>'), '>': ('>=', '<'), '>=': ('>', '<'), '==': ('!=',),
    '!=': ('==',), '&&': ('||',), '||': ('&&',), '+': ('-',), '-': ('+',), '*': ('+',),
    '/': ('*',), '%': ('/',), '&': ('|',), '|': ('&',), '^': ('|',), '<<': ('>>',), '>>': ('<<',),
    '+=': ('-=', '='), '-=': ('+=', '='), '|=': ('&=', '='), '&=': ('|=', '='), '=': (),
    '++': ('--',), '--': ('++',), 'true': ('false',), 'false': ('true',),
}
BINARY = {'+', '-', '*', '&', '|', '<<', '>>', '/', '%', '^'}


class Unknown(Exception):
    """Source text that the parser does not know."""


def tokens(text):
    out = []
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        at = match.end()
        if match.lastgroup not in ('space', 'hash'):
            out.append(Token(match.lastgroup, match.group(), match.start(), match.end()))
    return out


class Parser:
    """Finds the places of one source. After parse(), places has (function, Place, its tokens)."""

    def __init__(self, text):
        self.t = tokens(text)
        self.i = 0
        self.function = ''
        self.places = []

    def text(self, ahead=0):
        return self.t[self.i + ahead].text if self.i + ahead < len(self.t) else ''

    def expect(self, text):
        if self.text() != text:
            raise Unknown('%s instead of %s' % (self.text(), text))
        self.i += 1

    def close(self, at):
        """The index of the bracket that closes that at index AT."""
        pairs = {'(': ')', '[': ']', '{': '}'}
        open_ = []
        for i in range(at, len(self.t)):
            text = self.t[i].text
            if self.t[i].kind != 'mark':
                continue
            if text in pairs:
                open_.append(pairs[text])
            elif text in (')', ']', '}'):
                if not open_ or open_.pop() != text:
                    raise Unknown('brackets')
                if not open_:
                    return i
        raise Unknown('an open bracket')

    def find(self, marks, at, end):
        """The first index from AT at which one of MARKS is outside of brackets; END = none."""
        while at < end:
            text = self.t[at].text
            if text in marks:
                return at
            at = self.close(at) + 1 if text in ('(', '[', '{') else at + 1
        return end

    def add(self, kind, first, last):
        """The tokens from FIRST to before LAST."""
        if first < last:
            self.places.append((self.function,
                                Place(kind, self.t[first].start, self.t[last - 1].end),
                                self.t[first:last]))

    def parse(self):
        while self.i < len(self.t):
            if self.text() != '{':
                self.i += 1
                continue
            end = self.close(self.i)
            before = len(self.places)
            if self.i > 0 and self.t[self.i - 1].text == ')':
                self.function = self.name_before(self.i - 1)
                try:
                    self.block()
                except Unknown:
                    del self.places[before:]
            self.i = end + 1
        return self.places

    def name_before(self, at):
        depth = 0
        while at > 0:
            depth += {')': 1, '(': -1}.get(self.t[at].text, 0)
            at -= 1
            if depth == 0:
                return self.t[at].text
        return ''

    def block(self):
        end = self.close(self.i)
        self.i += 1
        while self.i < end:
            self.statement()
        self.i = end + 1

    def bracketed(self, kind):
        """(EXPRESSION)"""
        end = self.close(self.i)
        if kind:
            self.add(kind, self.i + 1, end)
        self.i = end + 1

    def statement(self):
        word = self.text()
        if word == '{':
            self.block()
        elif word == ';':
            self.i += 1
        elif word in ('if', 'while', 'switch'):
            self.i += 1
            if self.text() in ('likely', 'unlikely'):
                raise Unknown(word)
            self.bracketed(None if word == 'switch' else 'cond')
            self.statement()
            if word == 'if' and self.text() == 'else':
                self.i += 1
                self.statement()
        elif word == 'for':
            self.loop()
        elif word == 'do':
            self.i += 1
            self.statement()
            self.expect('while')
            self.bracketed('cond')
            self.expect(';')
        elif word == 'else':
            raise Unknown(word)
        elif word in ('case', 'default'):
            self.i = self.find((':',), self.i, len(self.t)) + 1
        elif self.t[self.i].kind == 'word' and self.text(1) == ':':
            self.i += 2
        else:
            self.simple(word)

    def loop(self):
        self.i += 1
        end = self.close(self.i)
        first = self.find((';',), self.i + 1, end)
        second = self.find((';',), first + 1, end)
        if second == end:
            raise Unknown('for')
        self.add('cond', first + 1, second)
        self.i = end + 1
        self.statement()

    def simple(self, word):
        """A statement without others in it; or a macro that is the head of a loop."""
        if self.t[self.i].kind == 'word' and self.text(1) == '(':
            end = self.close(self.i + 1)
            if self.t[end + 1].kind == 'word' or self.t[end + 1].text == '{':
                self.i = end + 1
                self.statement()
                return
        end = self.find((';',), self.i, len(self.t))
        if end == len(self.t):
            raise Unknown('a statement without end')
        first, self.i = self.i, end + 1
        if word == 'return':
            self.add('value', first + 1, end)
        elif word in ('break', 'continue', 'goto'):
            return
        elif self.declares(first):
            self.initialisation(first, end)
        else:
            self.add('statement', first, end + 1)

    def declares(self, at):
        word = self.t[at]
        if word.kind != 'word':
            return False
        if word.text in TYPES or TYPE.match(word.text):
            return True
        return self.t[at + 1].kind == 'word'

    def initialisation(self, first, end):
        equals = self.find(('=',), first, end)
        if (equals < end and self.find((',',), first, end) == end and
                self.t[equals + 1].text != '{' and self.t[first].text != 'static'):
            self.add('value', equals + 1, end)


def changes(kind, found):
    """(index of the token or None, its replacement, description): the mutations of the tokens of a
    place. None: the whole."""
    if kind == 'cond':
        yield None, '!(%s)', 'negated'
    # (void)name; is for the compiler.
    if kind == 'statement' and [t.text for t in found[:3]] == ['(', 'void', ')']:
        return
    if kind == 'statement':
        yield None, '', 'removed'
    if kind == 'value' and found[0].text == '-' and found[1].text.startswith('E'):
        yield None, '0', 'success'
        return
    sizeof = 0
    for i, token in enumerate(found):
        before = found[i - 1] if i else None
        if token.text == 'sizeof':
            sizeof = i + 1
        if token.kind == 'number' and re.match(r'^(0[xX][0-9a-fA-F]+|\d+)[uUlL]*$', token.text):
            if before and before.text in ('<<', '>>') and token.text.startswith('0'):
                continue
            # The second argument is for the compiler.
            if before and before.text == ',' and '__builtin_expect' in (t.text for t in found[:i]):
                continue
            yield i, '(%s + 1)' % token.text, '%s -> %s + 1' % (token.text, token.text)
        elif token.text in SWAPS and token.kind in ('mark', 'word'):
            if token.text in BINARY and (before is None or not (
                    before.kind in ('word', 'number') or before.text in (')', ']')) or
                    before.text in ('return', 'sizeof') or sizeof == i):
                continue
            # (type *)x and (type)-x
            if token.text in BINARY and (before.text in ('void', 'char') or
                                         i + 1 < len(found) and found[i + 1].text == ')'):
                continue
            for new in SWAPS[token.text]:
                yield i, new, '%s -> %s' % (token.text, new)
        elif token.text == '!':
            yield i, '', '! removed'


def harmless(text):
    """May an expression be computed one more time? It changes nothing, and it reads only what any
    mutation of it reads: no call, no division, no place that a condition or an index guards."""
    found = tokens(text)
    marks = {t.text for t in found if t.kind == 'mark'}
    if marks & {'[', '/', '%', '?', '{', '++', '--', '='} or any(
            m.endswith('=') and m not in ('==', '!=', '<=', '>=') for m in marks):
        return False
    for before, token in zip([None] + found, found):
        if token.text == '(' and before and before.kind == 'word' and before.text != 'sizeof':
            return False
        if token.text == '->' and before.text == ')' or token.text == '*' and (
                before is None or before.kind == 'mark' and before.text != ')'):
            return False
    return not (marks & {'&&', '||'} and marks & {'->', '*'})


def switched(kind, number, old, new):
    """The text of a place with a switch. It has as many lines as before."""
    new = re.sub(r'/\*.*?\*/', ' ', new, flags=re.S).replace('\n', ' ')
    if kind == 'statement':
        return '{ if (mutant(%d)) { %s } else { %s } }' % (number, new, old)
    once = re.sub(r'/\*.*?\*/', ' ', old, flags=re.S).replace('\n', ' ')
    truth = '!!' if kind == 'cond' else ''
    on = 'mutant(%d)' % number
    if harmless(old) and harmless(new):
        on = 'mutant_if(%d, %s(%s) != %s(%s))' % (number, truth, new, truth, once)
    return '(%s ? %s(%s) : %s(%s))' % (on, truth, new, truth, old)


def mutations(path, text):
    """All mutations of a source."""
    out = []
    for function, place, found in Parser(text).parse():
        if any(t.kind == 'string' or UNSEEN.match(t.text) for t in found):
            continue
        old = text[place.start:place.end]
        line = text.count('\n', 0, place.start) + 1
        for index, new, what in changes(place.kind, found):
            at = line
            if index is None:
                new = new % old if '%s' in new else new
            else:
                token = found[index]
                at = text.count('\n', 0, token.start) + 1
                new = (text[place.start:token.start] + new + text[token.end:place.end])
            out.append(Mutation(path, at, function, place, old, new, what))
    return out


def write(text, chosen):
    """The source TEXT with the mutations CHOSEN, (number, Mutation) each, of different places."""
    for number, m in sorted(chosen, key=lambda c: -c[1].place.start):
        place = m.place
        text = text[:place.start] + switched(place.kind, number, m.old, m.new) + text[place.end:]
    return '#include "weft_mutant.h"\n#line 1\n' + text
