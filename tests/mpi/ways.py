#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Ways between hosts fail, with default settings: the remaining ways are used soon, however silent the failure. Faults
are given by time before the job begins, so figures, which are simulated, repeat to the last digit.

  ways.py        the choice for `make check`
  ways.py --all  every row
  ways.py NAME   the rows whose name begins so, with the job's output
"""
import os, re, sys

from fabric import BUILD, ROOT, Fabric
from table import run_table

BOOT_MS = 1024000  # what clocks say at time 0 of the fabric
SOON_MS = 20
SHORT = {"silent/rc/8/out", "silent/rc/8/in", "silent/uc/1048576/out", "silent/ud/8/both", "silent/ring/8/both",
         "begins/auto/65536/0/h2/loss_out", "begins/ud/8/0/h1/loss", "begins/auto/8/0/h1/down",
         "loses/rc/8/0.1", "loses/rc/1048576/0.01", "taken/rc/1048576/sdr-pcix/alone", "taken/uc/8/hdr", "incast/rc/16/sdr-pcix",
         "crossed/rc/8", "crossed/uc/8",
         "crossed/ud/8", "mended/rc", "back/rc/4/50", "pauses/uc/1", "pauses/ud/2", "lost/ud/mute/feed",
         "lost/uc/cut/wait", "lossy/rc/65536", "lost/rc,ud/dead/wait", "ends/rc/0/h2",
         "ends/rc/1/h2", "ends/rc/0/h1", "computes/ud/8", "computes/uc/out/12000", "computes/uc/after"}


def topology(name):
    return os.path.join(ROOT, "etc/topologies", name + ".net")


RAILS, CABLES = topology("two-hosts-two-rails"), topology("two-switches-two-paths")
MANY = topology("eight-hosts-two-rails")


def words(links, more=()):
    return {**({"MRMPI_LINKS": links} if links else {}), **dict(more)}


class Row:
    def __init__(self, name, args, faults, links=None, ranks=2, seconds=60, net=RAILS, env=(), judge=None,
                 model="hdr", ppn=0, flows=()):
        self.name, self.args, self.faults, self.ranks = name, args, faults, ranks
        self.model, self.ppn, self.flows = model, ppn, flows
        self.env, self.seconds, self.net, self.judge = words(links, env), seconds, net, judge or soon()

    def run(self):
        with Fabric(self.net, os.path.join(ROOT, "etc/models", self.model + ".yaml")) as fabric:
            for f in self.flows:
                fabric.run("simfab", "flow", "add", *f)
            for f in self.faults:
                fabric.fault(f)
            self.rc, self.out = fabric.job(self.ranks, [os.path.join(BUILD, "tests/mpi/ways"), *map(str, self.args)],
                                           self.env, self.seconds, self.ppn)
        return self.judge(self)


def longest(row):
    m = re.search(r"^longest ([\d.]+) at ([\d.]+) slow ([\d.]+) rounds (\d+)$", row.out, re.M)
    return (float(m[1]), float(m[2]) - BOOT_MS, float(m[3]) - BOOT_MS) if m and not row.rc else None


def count(row, counter):
    return sum(map(int, re.findall(rf" {counter}=(\d+)", row.out)))


def soon(most=SOON_MS, back=0, breaks=False):
    """No operation takes longer; back: those under way when ports come back are over so soon after that. breaks: it is
    the fault that is got over."""
    def judge(row):
        got = longest(row)
        if not got:
            return False, f"exit status {row.rc}"
        took = got[0] if not back else got[1] + got[0] - back
        broken = count(row, "broken")
        return took < most and (broken or not breaks), f"{took:.3f} ms, {broken} broken"
    return judge


def steady():
    """Nothing breaks."""
    def judge(row):
        got = longest(row)
        return bool(got) and not count(row, "broken"), f"{got and got[0]} ms, {count(row, 'broken')} broken"
    return judge


def told(since_ms, most_ms, ranks):
    def judge(row):
        at = [float(t) - BOOT_MS - since_ms for t in re.findall(r"was told at ([\d.]+) class 101$", row.out, re.M)]
        return len(at) == ranks and max(at) < most_ms, f"{len(at)} of {ranks} told, after {max(at, default=0):.0f} ms"
    return judge


def make_rows(short):
    rows = []
    # Thousands of exchanges of 8 bytes fit into a millisecond: in `make check` fewer come before the fault and after it.
    brief = lambda size, ms: ms * 2 // 5 if short and size == 8 else ms
    # 1. one of two rails goes silent
    for links in ("rc", "uc", "ud", "rc,ud", "ring"):
        for size in (8, 65536, 1 << 20):
            rail = size == 8  # over one of the rails alone go all short messages: this one
            for way, fault in (("out", f'"h2 mlx5_{rail:d}" 1 loss_out=1'), ("in", f"leaf1 {3 + rail} loss_out=1"),
                               ("both", f'"h2 mlx5_{rail:d}" 1 loss=1')):
                rows.append(Row(f"silent/{links}/{size}/{way}", [size, brief(size, 25)],
                                [f"link {fault} at={brief(size, 10)}ms"], links, judge=soon(breaks=True)))
    # it loses some packets only: what is sent again is lost, too, and an adapter is told only once that it is missing.
    # Of ten in a hundred an operation may meet that twice
    for links in ("rc", "uc", "ud", "rc,ud", "ring"):
        for size in (8, 65536, 1 << 20):
            for loss in (0.01, 0.1):
                rows.append(Row(f"loses/{links}/{size}/{loss}", [size, brief(size, 25)],
                                [f'link "h1 mlx5_1" 1 loss={loss} at=1ms'], links,
                                judge=soon(SOON_MS if loss < 0.1 else 2 * SOON_MS)))
    # it is silent from the beginning, or its port goes down before the first message
    for links in (None, "uc", "ud", "rc,ud", "ring"):
        for size in (8, 65536):
            for rail in (0, 1):
                for end, way in (("h1", "loss"), ("h2", "loss"), ("h2", "loss_out")):
                    rows.append(Row(f"begins/{links or 'auto'}/{size}/{rail}/{end}/{way}",
                                    [size, brief(size, 25), 0, "begins"],
                                    [f'link "{end} mlx5_{rail}" 1 {way}=1 at=0ms'], links))
                for end in ("h1", "h2"):
                    rows.append(Row(f"begins/{links or 'auto'}/{size}/{rail}/{end}/down",
                                    [size, brief(size, 25), 20, "begins"],
                                    [f'link "{end} mlx5_{rail}" 1 down at=20ms'], links))
    # it goes silent while the job ends: ranks that wait in the launcher's fence can repair nothing
    for links in ("rc", "uc", "ud", "ring"):
        for messages in range(4):
            for end in ("h1", "h2"):
                rows.append(Row(f"ends/{links}/{messages}/{end}", [8, messages, 10, "ends"],
                                [f'link "{end} mlx5_0" 1 loss_out=1 at=20ms'], links, seconds=30))
    # a rail that is slow or congested is no silent one
    for model, rate in (("hdr", 22000), ("sdr-pcix", 800)):
        for links in ("rc", "uc", "ud"):
            flows = [("h1 mlx5_0", "h2 mlx5_0", f"rate={rate}"), ("h2 mlx5_0", "h1 mlx5_0", f"rate={rate}")]
            for size in (8, 1 << 20):
                for alone in ("", "/alone"):  # where there is one rail only its answers count all the same
                    rows.append(Row(f"taken/{links}/{size}/{model}{alone}", [size, brief(size, 30)], [], links,
                                    model=model, flows=flows, env={"MRMPI_RAILS_MAX": "1"} if alone else {},
                                    judge=steady()))
            for ppn in (2, 8):
                for alone in ("", "/alone"):
                    rows.append(Row(f"incast/{links}/{8 * ppn}/{model}{alone}", [1 << 20, 2, ppn, "incast"], [], links,
                                    8 * ppn, net=MANY, model=model, ppn=ppn, judge=steady(), seconds=120,
                                    env={"MRMPI_RAILS_MAX": "1"} if alone else {}))
    # nor is one whose peer computes: a thousand exchanges and pauses for each kind
    for links in ("rc", "uc", "ud", "rc,ud", "ring"):
        for seed in range(1, 6):
            rows.append(Row(f"pauses/{links}/{seed}", [300000, 200, seed, "pauses"], [], links, judge=steady(), seconds=120))
    # 2. both ends lose different rails
    for links in ("rc", "uc", "ud", "rc,ud", "ring"):
        for size in (8, 1 << 20):
            rows.append(Row(f"crossed/{links}/{size}", [size, brief(size, 20)],
                            [f'link "h1 mlx5_0" 1 down at={brief(size, 10)}ms',
                             f'link "h2 mlx5_1" 1 down at={brief(size, 15)}ms'], links))
        begin = brief(8, 10)
        rows.append(Row(f"mended/{links}", [8, begin + 20],
                        [f'link "h1 mlx5_0" 1 down at={begin}ms', f'link "h2 mlx5_1" 1 down at={begin + 5}ms',
                         f'link "h1 mlx5_0" 1 up at={begin + 12}ms'], links))
    # 3. all rails are out, one comes back
    for ranks in (2, 4):
        for out in (50, 300, 1000, 5000):
            for links in ("rc", "uc", "ud", "rc,ud", "ring"):
                faults = [f'link "h2 mlx5_{i}" 1 down at=3ms' for i in (0, 1)]
                faults.append(f'link "h2 mlx5_0" 1 up at={3 + out}ms')
                rows.append(Row(f"back/{links}/{ranks}/{out}",
                                [8, 13 + out], faults, links, ranks, judge=soon(back=3 + out)))
    # every cable loses: an adapter's time-out may have to end (1.07 s) until that is known, and none so long after it
    for size in (8, 65536):
        rows.append(Row(f"lossy/rc/{size}", [size, 200], ['link "*" loss=0.1 at=10ms'], "rc",
                        judge=soon(1200)))
    # 4. lost peers
    die = ['node "h2 mlx5_0" die at=40ms', 'node "h2 mlx5_1" die at=40ms']
    mute = ['link "h2 mlx5_0" 1 loss=1 at=40ms', 'link "h2 mlx5_1" 1 loss=1 at=40ms']
    cut = ['link leaf1 3 down at=40ms', 'link leaf1 5 down at=40ms']
    for name, faults, net in (("dead", die, RAILS), ("mute", mute, RAILS), ("cut", cut, CABLES)):
        for links in ("rc", "uc", "ud", "rc,ud", "ring"):
            # an adapter gives up after eight times its time-out; guards are asked at once
            most = 10000 if links in ("rc", "ring") else 4000
            env = {"MRMPI_PATIENCE": "1", **({"MRMPI_RC_PEERS": "0"} if links == "rc,ud" else {})}
            for how in ("wait", "feed"):
                rows.append(Row(f"lost/{links}/{name}/{how}", [how], faults, links, net=net, env=env,
                                judge=told(40, most, 2)))
    # but one that computes is not lost, whatever its patience, nor if all ways to it are out meanwhile for a while
    mute_for = lambda ms: [f'link "h2 mlx5_{i}" 1 loss=1 at=40ms for={ms}ms' for i in (0, 1)]
    for links in ("rc", "uc", "ud", "rc,ud"):
        for ranks in (2, 8):
            env = {"MRMPI_PATIENCE": "1", **({"MRMPI_RC_PEERS": "1"} if links == "rc,ud" else {})}
            rows.append(Row(f"computes/{links}/{ranks}", [64, 2, 6000, "computes"], [], links, ranks, env=env,
                            judge=steady()))
        for out in (1500, 12000):
            rows.append(Row(f"computes/{links}/out/{out}", [64, 1, 60000, "computes"], mute_for(out), links,
                            env={"MRMPI_PATIENCE": "20"}, judge=soon(70000), seconds=120))
        # all ways were out before that, while both waited: guards that found nothing answer when they are asked again
        rows.append(Row(f"computes/{links}/after", [64, 1, 60000, "computes", 9060], mute_for(9000), links,
                        env={"MRMPI_PATIENCE": "20"}, judge=soon(80000), seconds=120))
    return rows


sys.exit(run_table([a if a == "--all" else a + "*" for a in sys.argv[1:]], make_rows(not sys.argv[1:]), SHORT))
