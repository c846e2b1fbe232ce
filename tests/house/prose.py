#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""prose.py pages|headers|comments [FOLDER...]: words of prose by folder, and among 1,000 of them the two kinds of words
behind which plain subjects and objects hide: relative words, and pronouns. prose.py check: folders beyond the limits.

pages     Markdown, without code
headers   comments of .h
comments  comments of .c and .h
"""
import os
import re
import sys

RELATIVE = {'what', 'who', 'whose', 'those', 'which'}
PRONOUN = {'it', 'they', 'that', 'one', 'so'}
KINDS = {'pages': ('.md',), 'headers': ('.h',), 'comments': ('.c', '.h')}

# Most of 1,000 words. The higher limits are those of folders that are still to be rewritten; no limit is ever raised.
LIMITS = (
    ('pages', '.', 6, 30),
    ('comments', 'fabricd', 8, 33),
    ('comments', 'libmrmpi/api', 8, 33),
    ('comments', 'libmrmpi/base', 8, 38),
    ('comments', 'libmrmpi/coll', 8, 35),
    ('comments', 'libmrmpi/core', 8, 33),
    ('comments', 'libmrmpi/io', 8, 36),
    ('comments', 'libmrmpi/channel', 8, 36),
    ('comments', 'libmrmpi/conn', 8, 33),
    ('comments', 'libmrmpi/launch', 8, 33),
    ('comments', 'libmrmpi/net', 8, 36),
    ('comments', 'libmrmpi/p2p', 8, 40),
    ('comments', 'libmrmpi/rma', 8, 38),
    ('comments', 'libmrmpi/verbs', 8, 33),
    ('comments', 'libmrmpi', 8, 34),
    ('comments', 'simfab', 8, 30),
    ('comments', 'mrrun', 8, 30),
    ('comments', 'tests', 8, 33),
    ('comments', 'bench', 8, 33),
)


def files(top, extensions):
    if os.path.isfile(top):
        yield top
    for folder, below, names in os.walk(top):
        below[:] = sorted(d for d in below if d not in ('build', '.git', 'include'))
        yield from (os.path.join(folder, n) for n in sorted(names) if n.endswith(extensions))


def prose(name):
    """The page or the comments of a file, as words in lower case."""
    text = open(name, errors='replace').read()
    if name.endswith('.md'):
        text = re.sub(r'^```.*?^```|^(?: {4}|\t).*?$|`[^`]*`', ' ', text, flags=re.S | re.M)
    else:
        tokens = re.finditer(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', text, re.S)
        text = ' '.join(t.group(0) for t in tokens if t.group(0)[0] == '/')
    return re.findall(r"[a-z][a-z']*", text.lower())


def count(kind, top):
    """By folder: words, relative words, pronouns."""
    found = {}
    for name in files(top, KINDS[kind]):
        words = prose(name)
        folder = found.setdefault(os.path.dirname(name) or '.', [0, 0, 0])
        for i, n in enumerate((len(words), sum(w in RELATIVE for w in words), sum(w in PRONOUN for w in words))):
            folder[i] += n
    return found


def rates(counts):
    words = max(1, sum(c[0] for c in counts))
    return words, *(1000 * sum(c[i] for c in counts) / words for i in (1, 2))


if sys.argv[1] == 'check':
    for kind, top, relative, pronoun in LIMITS:
        words, *rate = rates(count(kind, top).values())
        if rate[0] > relative or rate[1] > pronoun:
            print(f'{kind} of {top}: {rate[0]:.1f} and {rate[1]:.1f} of 1,000 words, at most {relative} and {pronoun}:'
                  ' see CONTRIBUTING.md, "How it reads"')
else:
    everything = []
    for top in sys.argv[2:] or ['.']:
        for folder, counts in count(sys.argv[1], top).items():
            everything.append(counts)
            if counts[0]:
                print('%-44s %6d %6.1f %6.1f' % (folder, *rates([counts])))
    print('%-44s %6d %6.1f %6.1f' % ('total', *rates(everything)))
