#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Names that two files define. names.py [-t] [-x NAME] FOLDER...: the sources below the folders are one program or
library, without files called NAME.c or NAME.h, which are for another. Prints
each static function that is defined in more than one file, with all places; with -t each struct tag that begins with
mr_ instead. Several definitions in one file are alternatives of which one is compiled. Status 1: there are some.
"""
import collections, os, re, sys

NO_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.S)
ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")


def read_code(path):
    """The text with spaces in the place of comments, strings and attributes."""
    with open(path, encoding="utf-8") as source:
        text = source.read()
    for what in NO_CODE, ATTRIBUTE:
        text = what.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)
    return text


def closing(text, at):
    """Where the parenthesis at `at` ends."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if not depth:
            return i
    return len(text)


def functions(code):
    """Static functions that are defined: clang-format puts `static` into the first column."""
    for m in re.finditer(r"^static\b[^;{}()=#]*?\b(\w+)\s*\(", code, re.M):
        if code[closing(code, m.end() - 1) + 1 :].lstrip().startswith("{"):
            yield m.group(1), code.count("\n", 0, m.start()) + 1


def tags(code):
    for m in re.finditer(r"\bstruct (mr_\w+)\s*\{", code):
        yield m.group(1), code.count("\n", 0, m.start()) + 1


def main():
    args = sys.argv[1:]
    names = functions
    other = None
    if args[0] == "-t":
        names = tags
        args = args[1:]
    if args[0] == "-x":
        other = args[1]
        args = args[2:]
    places = collections.defaultdict(dict)
    for folder in args:
        for directory, _, files in sorted(os.walk(folder)):
            sources = (f for f in sorted(files) if f.endswith((".c", ".h")) and f[:-2] != other)
            for path in (os.path.join(directory, f) for f in sources):
                for name, line in names(read_code(path)):
                    places[name].setdefault(path, line)
    if not places:
        print("no names in", *args)
        return 2
    twice = {name: at for name, at in places.items() if len(at) > 1}
    for name, at in sorted(twice.items()):
        print(name, *(f"{path}:{line}" for path, line in at.items()))
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
