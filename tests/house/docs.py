#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs.py links|names|columns PAGE...: faults of pages in Markdown, one a line; silent if there are none.

links    relative links without a page, or without a heading, at the other end
names    files, settings and functions of the library that the tree does not have
columns  lines of more than 100 columns outside of tables
"""
import os
import re
import subprocess
import sys


def prose(text):
    """The page without fenced blocks."""
    return re.sub(r'^```.*?^```', '', text, flags=re.S | re.M)


def anchors(page):
    """Headings as anchors, as GitHub and MkDocs make them."""
    heads = re.findall(r'^#+ +(.*?) *$', prose(open(page).read()), re.M)
    return {re.sub(r' ', '-', re.sub(r'[^\w\- ]', '', h.lower())) for h in heads}


def links(page):
    for target in re.findall(r'\]\(([^)\s]+)\)', prose(open(page).read())):
        if re.match(r'[a-z]+:', target):
            continue
        name, _, anchor = target.partition('#')
        path = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
        if not os.path.exists(path):
            yield f'no page {target}'
        elif anchor and anchor not in anchors(path):
            yield f'no heading {target}'


def names(page):
    text = prose(open(page).read())
    for name in sorted(set(re.findall(r'`([\w./-]+\.(?:c|h|def|sh|py|map))\b', text))):
        if not any(f == name or f.endswith('/' + name) for f in tree):
            yield f'no file {name}'
    for name in sorted(set(re.findall(r'\b(?:mr_|MRMPI_)\w+', text))):
        if name not in words and not name.endswith('_'):
            yield f'no name {name}'


def columns(page):
    fence = False
    for number, line in enumerate(open(page).read().splitlines(), 1):
        fence ^= line.startswith('```')
        if len(line) > 100 and not fence and not line.startswith('|'):
            yield f'line {number} has {len(line)} columns'


check = {'links': links, 'names': names, 'columns': columns}[sys.argv[1]]
tree = subprocess.run(['find', '.', '(', '-name', 'build', '-o', '-name', '.git', ')', '-prune', '-o', '-type', 'f',
                       '-print'], capture_output=True, text=True, check=True).stdout.split()
words = set()
if check is names:
    for f in tree:
        if not f.endswith('.md'):
            words.update(re.findall(r'\b(?:mr_|MRMPI_)\w+', open(f, errors='replace').read()))
for p in sys.argv[2:]:
    for fault in check(p):
        print(f'{p}: {fault}')
