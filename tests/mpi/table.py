# SPDX-License-Identifier: BSD-3-Clause
"""A table of rows, each of which is run by its name: what scripts of such tables have in common."""
import fnmatch, sys


def run_table(args, rows, short):
    """
    No args: the rows whose names are in short, for `make check`; "--all": every row; a pattern: the rows whose names
    match, with what the job says. A row has a name; run() returns whether it is fine, and what to say of it, and leaves
    what the job said in out. Prints TAP; returns an exit status.
    """
    verbose = bool(args) and args[0] != "--all"
    chosen = [r for r in rows if (fnmatch.fnmatch(r.name, args[0]) if verbose else args or r.name in short)]
    bad = 0
    for n, row in enumerate(chosen, 1):
        fine, what = row.run()
        bad += not fine
        print(f"{'ok' if fine else 'not ok'} {n} - {row.name}: {what}")
        if not fine or verbose:
            print("".join(f"# {line}\n" for line in row.out.splitlines()[0 if verbose else -12:]), end="")
        sys.stdout.flush()
    missing = set() if args else set(short) - {r.name for r in chosen}
    for name in missing:
        print(f"not ok - {name}: there is no such row")
    print(f"1..{len(chosen) + len(missing)}")
    return bad + len(missing) != 0 or not chosen
