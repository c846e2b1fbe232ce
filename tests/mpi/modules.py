#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""modules.py THEIRS OURS: compare the procedures behind the generic names of two mpi_f08.mod, files of gfortran: for each
procedure of THEIRS, print what OURS has otherwise: names, types, ranks of arguments, which are optional. The last line
counts the procedures that both have."""
import gzip
import re
import sys


def symbols(path):
    """Number -> (name, properties): a module file is lists in brackets, one of which has all symbols, six items each."""
    with gzip.open(path, 'rt') as file:
        text = file.read()
    items = iter(re.findall(r"\(|\)|'(?:[^']|'')*'|[^\s()']+", text[text.index('\n'):]))

    def rest():
        found = []
        for item in items:
            if item == ')':
                break
            found.append(rest() if item == '(' else item.strip("'"))
        return found
    out = {}
    for part in rest():
        if isinstance(part, list) and len(part) > 5 and isinstance(part[5], list) and str(part[0]).isdigit():
            for i in range(0, len(part) - 5, 6):
                out[part[i]] = (part[i + 1], part[i + 5])
    return out


def procedures(path):
    known, out = symbols(path), {}

    def argument(number):
        name, what = known[number]
        flags, kind, shape = what[0], what[2], what[6]
        if flags[0] == 'PROCEDURE':
            kind = ['procedure']
        elif kind[0] == 'DERIVED':
            kind = [known[kind[1]][0].lower()]
        elif kind[0] in ('INTEGER', 'LOGICAL', 'REAL'):
            kind = kind[:2]
        else:
            kind = kind[:1]
        rank = 'any rank' if shape and shape[2] == 'ASSUMED_RANK' else f'rank {shape[0]}' if shape else 'scalar'
        return ' '.join([name, *kind, rank, 'optional' if 'OPTIONAL' in flags else '']).strip().lower()
    for name, what in known.values():
        if what[0][0] == 'PROCEDURE' and re.search(r'_f08(ts)?(_large)?$', name):
            out[name] = [argument(n) for n in what[5]]
    return out


theirs, ours = procedures(sys.argv[1]), procedures(sys.argv[2])
for procedure in sorted(theirs):
    if procedure not in ours:
        print(procedure, 'is missing')
        continue
    a, b = theirs[procedure], ours[procedure]
    for x, y in zip(a, b):
        if x != y:
            print(f'{procedure}: {x}; ours: {y}')
    if len(a) != len(b):
        print(f'{procedure}: {len(a)} arguments; ours: {len(b)}')
print(len(set(theirs) & set(ours)))
