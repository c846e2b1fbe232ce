#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
One of two rails loses or corrupts some of its packets, from the beginning of the job, with default settings and no
fabricd: the job has the bandwidth of the healthy rail alone, at least, and no operation takes long. Faults are given by
time before the job begins, so figures, which are simulated, repeat.

  lossy.py          the choice for `make check`
  lossy.py all      every row
  lossy.py PATTERN  the rows whose names match, with what the job says

A row's name: MODEL/BYTES/FAULT/PERCENT.
"""
import fnmatch, os, re, sys

from fabric import BUILD, ROOT, Fabric

SOON_MS = 20
LEAST = 0.97  # of the bandwidth of the healthy rail alone
DEPTH = {8: 64, 65536: 8, 1 << 20: 4}
DURATION_MS = {8: 200, 65536: 700, 1 << 20: 400}  # a rail that breaks costs some milliseconds each time
ALONE_MS = 10  # nothing happens
SHORT = {"ddr-connectx/65536/loss/1"}


def measure(model, size, fault, ms):
    """Returns MB/s, the longest operation in ms, and what the job said."""
    with Fabric(os.path.join(ROOT, "etc/topologies/two-hosts-two-rails.net"),
                os.path.join(ROOT, "etc/models", model + ".yaml")) as fabric:
        if fault:
            fabric.fault(f'link "h1 mlx5_1" 1 {fault} at=0ms')
        rc, out = fabric.job(2, [os.path.join(BUILD, "tests/mpi/lossy"), str(size), str(DEPTH[size]), str(ms)],
                             {} if fault else {"MRMPI_RAILS_MAX": "1"}, 900)
    m = re.search(r"^rank 0: ([\d.]+) MB/s, longest ([\d.]+) ms", out, re.M)
    return (float(m[1]), float(m[2]), out) if m and not rc else (0.0, float("inf"), f"exit status {rc}\n{out}")


alone = {}


class Row:
    def __init__(self, model, size, kind, percent):
        self.name = f"{model}/{size}/{kind}/{percent:g}"
        self.model, self.size, self.fault = model, size, f"{kind}={percent / 100:g}"

    def run(self):
        key = self.model, self.size
        if key not in alone:
            alone[key] = measure(*key, None, ALONE_MS)[0]
        rate, longest, self.out = measure(*key, self.fault, DURATION_MS[self.size])
        part = rate / alone[key] if alone[key] else 0
        return part >= LEAST and longest < SOON_MS, \
            f"{rate:.1f} MB/s, {part:.3f} of the healthy rail alone; longest {longest:.3f} ms"


def rows():
    for model in ("hdr", "ddr-connectx"):
        for size in DEPTH:
            for kind in ("loss", "corrupt"):
                for percent in (0.01, 0.1, 1, 5):
                    yield Row(model, size, kind, percent)


def main(args):
    verbose = args and args[0] != "all"
    chosen = [r for r in rows() if (fnmatch.fnmatch(r.name, args[0]) if verbose else args or r.name in SHORT)]
    bad = 0
    for n, row in enumerate(chosen, 1):
        fine, what = row.run()
        bad += not fine
        print(f"{'ok' if fine else 'not ok'} {n} - {row.name}: {what}")
        if not fine or verbose:
            print("".join(f"# {line}\n" for line in row.out.splitlines()[0 if verbose else -12:]), end="")
        sys.stdout.flush()
    print(f"1..{len(chosen)}")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
