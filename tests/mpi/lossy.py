#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
One of two rails is sick, with default settings and no fabricd (tests/integration/rails_table.sh has one): the job has the
bandwidth of the healthy rail alone, at least, and no operation takes long. Faults are given by time before the job
begins, so figures, which are simulated, repeat.

  lossy.py          the choice for `make check`
  lossy.py --all    every row
  lossy.py PATTERN  the rows whose names match, with the job's output

A row's name: MODEL/BYTES/FAULT, with the percentage of packets if the rail loses or corrupts some: from the beginning of
the job, at the full width or, narrow-loss, at one lane. Other faults: narrow, the rail has trained at one lane; out, its
cable is pulled early; flaps, the cable is out for 1 ms in each second.
"""
import os, re, sys

from fabric import BUILD, ROOT, Fabric
from table import run_table

SOON_MS = 20
LEAST = 0.97  # of the bandwidth of the healthy rail alone
DEPTH = {8: 64, 65536: 8, 1 << 20: 4}
DURATION_MS = {8: 400, 65536: 700, 1 << 20: 400}  # a rail that breaks costs some milliseconds each time
NARROW_LOSS_MS = {**DURATION_MS, 8: 1000}         # 24 ms pass before the rail is left: few packets show few losses
SHORT_MS = 40  # in which a rail that is just slow, or gone, shows that
FLAPS_MS = {8: 200, 65536: 1300, 1 << 20: 1300}
ALONE_MS = 10  # nothing happens
OUT_MS, FLAP_MS = 16, 100  # out: about when the first message is measured
SHORT = {"ddr-connectx/65536/loss/1", "hdr/65536/out", "ddr-connectx/65536/narrow"}


def measure(model, size, faults, ms):
    """Returns MB/s, the longest operation in ms, and what the job said."""
    with Fabric(os.path.join(ROOT, "etc/topologies/two-hosts-two-rails.net"),
                os.path.join(ROOT, "etc/models", model + ".yaml")) as fabric:
        for fault in faults:
            fabric.fault(f'link "h1 mlx5_1" 1 {fault}')
        rc, out = fabric.job(2, [os.path.join(BUILD, "tests/mpi/lossy"), str(size), str(DEPTH[size]), str(ms)],
                             {} if faults else {"MRMPI_RAILS_MAX": "1"}, 900)
    m = re.search(r"^rank 0: ([\d.]+) MB/s, longest ([\d.]+) ms", out, re.M)
    return (float(m[1]), float(m[2]), out) if m and not rc else (0.0, float("inf"), f"exit status {rc}\n{out}")


alone = {}


class Row:
    def __init__(self, model, size, kind, faults, ms):
        self.name = f"{model}/{size}/{kind}"
        self.model, self.size, self.faults, self.ms = model, size, faults, ms

    def run(self):
        key = self.model, self.size
        if key not in alone:
            alone[key] = measure(*key, [], ALONE_MS)[0]
        rate, longest, self.out = measure(*key, self.faults, self.ms)
        part = rate / alone[key] if alone[key] else 0
        return part >= LEAST and longest < SOON_MS, \
            f"{rate:.1f} MB/s, {part:.3f} of the healthy rail alone; longest {longest:.3f} ms"


def rows():
    for model in ("hdr", "ddr-connectx"):
        for size, ms in DURATION_MS.items():
            for kind in ("loss", "corrupt"):
                for percent in (0.01, 0.1, 1, 5):
                    yield Row(model, size, f"{kind}/{percent:g}", [f"{kind}={percent / 100:g} at=0ms"], ms)
            for percent in (0.1, 1):
                yield Row(model, size, f"narrow-loss/{percent:g}",
                          ["width=1 at=0ms", f"loss={percent / 100:g} at=0ms"], NARROW_LOSS_MS[size])
            yield Row(model, size, "narrow", ["width=1 at=0ms"], SHORT_MS)
            yield Row(model, size, "out", [f"down at={OUT_MS}ms"], SHORT_MS)
            yield Row(model, size, "flaps", [f"down at={t}ms for=1ms" for t in range(FLAP_MS, 10000, 1000)], FLAPS_MS[size])


if __name__ == "__main__":
    sys.exit(run_table(sys.argv[1:], rows(), SHORT))
