#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Modules that call each other in a circle. cycles.py DIRECTORY...: a module is an object file of these directories, and it
calls another if it wants a function that the other defines (as nm sees it), or names an inline one of the other's header.
Prints each circle, one a line; none: nothing. Sources without an object file that is as new as they are, or no object
files at all: "build first", and exit 2.
"""
import collections, glob, os, re, subprocess, sys

def calls(objects):
    """{object: objects whose functions it calls}"""
    table = subprocess.run(["nm", "-A", *objects], capture_output=True, text=True, check=True).stdout
    defined, wanted = {}, collections.defaultdict(set)
    for line in table.splitlines():
        where, rest = line.split(":", 1)
        *_, kind, name = rest.split()
        if kind == "T":
            defined[name] = where
        elif kind == "U":
            wanted[where].add(name)
    return {o: {defined[n] for n in wanted[o] if n in defined} - {o} for o in objects}

def source(obj):
    """build/obj/a/b.o is made of a/b.c; one whose source has gone does not count."""
    return obj.split("/obj/", 1)[-1][:-2] + ".c"

def read_code(path):
    """Without comments and strings."""
    with open(path, encoding="utf-8") as f:
        return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\])*"', "", f.read(), flags=re.S)

def inline_calls(objects):
    """The same by functions that nm does not see: those in the header that has a module's name."""
    owner = {}
    for o in objects:
        header = source(o)[:-2] + ".h"
        if os.path.exists(header):
            for name in re.findall(r"^static inline [^;(]*?(\w+)\(", read_code(header), re.M):
                owner[name] = o
    return {o: {owner[n] for n in re.findall(r"\w+", read_code(source(o))) if n in owner} - {o} for o in objects}

def circles(graph):
    """Strongly connected components of more than one (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(graph[v]):
            if w not in index:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == index[v]:
            at = stack.index(v)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for v in sorted(graph):
        if v not in index:
            visit(v)
    return found

def unbuilt(directory):
    """A source of the directory that the build there does not know in its present form, or None. A source that only a
    variant of the build has is none of this one's."""
    folder = source(os.path.join(directory, "x.o"))[:-3]
    for name in sorted(os.listdir(folder) if os.path.isdir(folder) else []):
        path, obj = os.path.join(folder, name), os.path.join(directory, name[:-2] + ".o")
        if not os.path.exists(obj) and glob.glob(obj.replace("/obj/", "/obj/*/", 1)):
            continue
        if name.endswith(".c") and (not os.path.exists(obj) or os.path.getmtime(obj) < os.path.getmtime(path)):
            return path
    return None

def build_first(why):
    print(f"cycles.py: {why}: build first (make all)", file=sys.stderr)
    return 2

def main():
    directories = [d for d in sys.argv[1:] if os.path.isdir(d)]
    for d in sys.argv[1:]:
        if not os.path.isdir(d):
            return build_first(f"{d} is missing")
    stale = [path for path in map(unbuilt, directories) if path]
    if stale:
        return build_first(f"{stale[0]} is newer than its object file")
    objects = [os.path.join(d, f) for d in directories for f in sorted(os.listdir(d)) if f.endswith(".o")]
    objects = [o for o in objects if os.path.exists(source(o))]
    sys.setrecursionlimit(10000)
    if not objects:
        return build_first("no object files")
    inline = inline_calls(objects)
    found = circles({o: to | inline[o] for o, to in calls(objects).items()})
    for c in found:
        print(" ".join(os.path.join(os.path.basename(os.path.dirname(o)), os.path.basename(o)[:-2]) for o in c))
    return 1 if found else 0

if __name__ == "__main__":
    sys.exit(main())
