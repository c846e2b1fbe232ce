#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Two faults of all kinds, at each pair of ports of two hosts, under operations of all kinds (mixed.c), with default
settings: if any way is whole, even from one rail to the other, each operation is over soon. Faults are given by time
before the job begins, so figures, which are simulated, repeat.

  mixed.py          the choice for `make check`
  mixed.py --all    every cell
  mixed.py PATTERN  the cells whose names match, with the job's output

A cell's name: MODEL/LINKS/RANKS/FIRST/RAIL/SECOND/HOST/RAIL/GAP. The first fault is one of h1's ports, the second one,
GAP ms later, of HOST's. A further /SEED: other packets are lost.
"""
import copy, os, re, sys

from fabric import BUILD, ROOT, Fabric
from table import run_table

BOOT_MS = 1024000  # what clocks say at time 0 of the fabric
FIRST_MS = 10
DEAD_MS = 15       # an adapter that dies is back after so long
SOON_MS = 20
LOSSY_MS = 400     # only ways that lose packets are left, one in ten: adapters wait for acknowledgements again and again
PATIENCE = 1       # seconds; where no way is left the peer is lost so much and 20 s later at most
TOLD_MS = (PATIENCE + 20) * 1000
WORDS = {"down": "down", "silent": "loss=1", "oneway": "loss_out=1", "lossy": "loss=0.1", "corrupt": "corrupt=0.1"}
KINDS = (*WORDS, "dead")
LOSES = ("lossy", "corrupt")
SHORT = {"hdr/auto/2/down/1/oneway/h2/0/5", "hdr/auto/2/silent/0/silent/h2/1/5", "sdr-pcix/auto/2/dead/0/down/h2/1/5",
         "hdr/auto/2/dead/0/down/h1/1/40", "sdr-pcix/auto/2/dead/1/silent/h1/0/40", "hdr/auto/2/down/0/lossy/h2/1/5",
         "hdr/auto/2/down/0/lossy/h1/1/5", "hdr/auto/2/lossy/0/corrupt/h2/1/40", "hdr/auto/2/dead/0/dead/h1/1/5",
         "hdr/uc/2/dead/0/down/h1/1/40", "hdr/auto/2/down/0/silent/h1/1/5",
         "sdr-pcix/auto/4/oneway/0/down/h2/1/5",
         "hdr/auto/2/oneway/0/dead/h1/1/40", "hdr/auto/2/lossy/1/oneway/h1/0/5", "sdr-pcix/auto/4/oneway/1/corrupt/h2/0/40",
         "sdr-pcix/auto/4/corrupt/1/oneway/h2/1/5", "sdr-pcix/auto/4/lossy/1/silent/h2/0/5",
         "sdr-pcix/auto/4/corrupt/1/corrupt/h2/0/5",
         "sdr-pcix/rc,ud/2/oneway/0/lossy/h1/1/40", "sdr-pcix/uc/2/lossy/1/oneway/h2/0/5",
         "sdr-pcix/rc,ud/2/dead/0/lossy/h1/1/5", "sdr-pcix/rc,ud/2/silent/1/corrupt/h2/0/40"}
SEEDS = (("sdr-pcix/auto/4/silent/1/corrupt/h2/0/5", 4), ("sdr-pcix/auto/4/silent/1/corrupt/h2/0/5", 122),
         ("hdr/uc/4/silent/1/corrupt/h2/0/5", 15))
SHORT.add("sdr-pcix/auto/4/silent/1/corrupt/h2/0/5/122")


class Fault:
    def __init__(self, kind, host, rail, at):
        self.kind, self.host, self.rail, self.at = kind, host, rail, at
        self.end = at + DEAD_MS if kind == "dead" else float("inf")

    def words(self):
        """of `simfab fault`"""
        adapter = f'"{self.host} mlx5_{self.rail}"'
        if self.kind == "dead":
            return f"node {adapter} die at={self.at}ms for={DEAD_MS}ms"
        return f"link {adapter} 1 {WORDS[self.kind]} at={self.at}ms"


class Cell:
    def __init__(self, model, links, ranks, first, rail, second, host, other, gap):
        self.name = f"{model}/{links}/{ranks}/{first}/{rail}/{second}/{host}/{other}/{gap}"
        self.model, self.links, self.ranks, self.gap, self.seed = model, links, ranks, gap, None
        self.faults = [Fault(first, "h1", rail, FIRST_MS), Fault(second, host, other, FIRST_MS + gap)]

    def with_seed(self, seed):
        other = copy.copy(self)
        other.name, other.seed = f"{self.name}/{seed}", seed
        return other

    def ways(self, at, counts):
        """So many ways are without faults that count, at a time."""
        bad = {(f.host, f.rail) for f in self.faults if f.at <= at < f.end and counts(f)}
        return sum(("h1", a) not in bad and ("h2", b) not in bad for a in (0, 1) for b in (0, 1))

    def most(self, began):
        """How long an operation may take that began then; None: no way is left for ever, and all are told so."""
        last = max(f.at for f in self.faults)
        ends = [f.end for f in self.faults if f.end < float("inf")]
        if self.ways(last, lambda f: True):
            return SOON_MS
        if self.ways(last + 10 * DEAD_MS, lambda f: True):
            return max(max(ends) - began, 0) + SOON_MS  # until the adapter is back no way is whole
        if self.ways(last + 10 * DEAD_MS, lambda f: f.kind not in LOSES):
            return LOSSY_MS
        return None

    def run(self):
        with Fabric(os.path.join(ROOT, "etc/topologies/two-hosts-two-rails.net"),
                    os.path.join(ROOT, "etc/models", self.model + ".yaml"), self.seed) as fabric:
            for f in self.faults:
                fabric.fault(f.words())
            env = {} if self.links == "auto" else {"MRMPI_LINKS": self.links}
            if self.most(0) is None:
                env["MRMPI_PATIENCE"] = str(PATIENCE)
            rc, self.out = fabric.job(self.ranks, [os.path.join(BUILD, "tests/mpi/mixed"), str(FIRST_MS + self.gap + 60)],
                                      env, 120)
        took = [(float(m[1]), float(m[2]) - BOOT_MS, m[3]) for m in
                re.finditer(r"^rank \d+ longest ([\d.]+) at ([\d.]+) of (\w+)", self.out, re.M)]
        told = [float(t) - BOOT_MS - FIRST_MS - self.gap for t in
                re.findall(r"was told at ([\d.]+) class 101$", self.out, re.M)]
        if self.most(0) is None:
            return len(told) == self.ranks and max(told) < TOLD_MS, \
                f"{len(told)} of {self.ranks} told, after {max(told, default=0):.0f} ms"
        if len(took) < self.ranks or rc:
            return False, f"exit status {rc}"
        ms, at, kind = max(took, key=lambda t: t[0] - self.most(t[1]))
        most = self.most(at)
        return ms < most, f"{ms:.3f} of {most:.3g} ms, {kind} at {at:.1f} ms"


def table():
    for model, links, ranks in (("hdr", "auto", 2), ("sdr-pcix", "auto", 2), ("sdr-pcix", "auto", 4), ("hdr", "uc", 2),
                                ("hdr", "uc", 4), ("hdr", "ring", 2), ("hdr", "rc,ud", 2), ("sdr-pcix", "uc", 2),
                                ("sdr-pcix", "rc,ud", 2)):
        for gap in (5, 40):
            for first in KINDS:
                for rail in (0, 1):
                    for second in KINDS:
                        for host in ("h1", "h2"):
                            for other in (0, 1):
                                yield Cell(model, links, ranks, first, rail, second, host, other, gap)


def cells():
    """Losses are by chance: where a second fault meets the mending of the first, some seeds are worse than others."""
    for cell in table():
        yield cell
        for name, seed in SEEDS:
            if name == cell.name:
                yield cell.with_seed(seed)


if __name__ == "__main__":
    sys.exit(run_table(sys.argv[1:], cells(), SHORT))
