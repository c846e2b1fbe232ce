#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
A share binds all traffic of a class: for any messages of two classes, on each model and MTU, with one job a class or
several, one lane or two, with levels for medium messages or without, over one rail or two, each class has its share of
the cable, or its demand if that is less, to 2 points. TAP. binds.py [--short] [--only TEXT]

The demand of a class is the throughput of its jobs alone. The other class has the rest: together they carry as much as
the better of them alone; over older adapters, whose time for each message may be used up first, they use all of that
time. (All bytes are those of the wire. The blocks of 64 bytes in which the tables count make packets of 8 bytes of
data weigh 1.9 times as much as they are: of a share of s percent they can use no more than s / 1.9, so less than that
counts as their demand.)

The same holds for programs that send in batches, and wait for each at both ends: to 1 point.
"""
import argparse, functools, os, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import share

POINTS, TOGETHER, BATCH_POINTS = 2.0, 0.96, 1.0
WINDOW = {"8": 512, "512": 256, "8K": 64, "64K": 16, "1M": 4}
TINY = 64 / 128  # 8 bytes of data and our header make 64 to 66 bytes on the wire, which count as two blocks


def window(sizes):
    return max(WINDOW[s] for s in sizes.split("+")) if "+" not in sizes else 32


def policy(gold, medium, lanes, mtu):
    more = f", lanes: {lanes}" if lanes > 1 else ""
    more += f", medium: [{medium}]" if medium else ""
    return (f"version: 1\nvls: 8\nmtu: {mtu}\nclasses:\n  - {{name: gold, share: {gold}{more}}}\n"
            f"  - {{name: tin, share: {100 - gold}}}\njobs: {{default: tin}}\n")


def case_of(model, mtu, gold, lanes, medium, rails, loads):
    lines = f"mtu: {mtu}" if model == "hdr" else ""
    return share.Case(policy=policy(gold, medium, lanes, mtu), loads=[(c, s, window(s), jobs) for c, s, jobs in loads],
                      model=model, model_lines=lines, rails=rails, seconds=200)


@functools.lru_cache(maxsize=None)
def alone(model, mtu, gold, lanes, medium, rails, load):
    r = share.measure(case_of(model, mtu, gold, lanes, medium, rails, [load]))
    return r["mbytes_per_s"]


def judge(setting, loads):
    """Whether it holds, and what was found"""
    r = share.measure(case_of(*setting, list(loads)))
    total, found, good = r["mbytes_per_s"], [], True
    wants = [alone(*setting, load) for load in loads]
    for (c, sizes, _), want in zip(loads, wants):
        has, limit = r["classes"][c], 100 * want / total
        entitled = has["share"] * TINY if sizes == "8" else has["share"]
        good &= has["wire"] >= min(entitled, limit) - POINTS
        found.append(f"{c} {sizes}: {has['wire']:.1f} of {has['share']:.0f} (wants {min(limit, 999):.0f})")
    # each has the part of the adapter's time that it is seen to use
    parts = sum(r["classes"][c]["mbytes_per_s"] / want for (c, _, _), want in zip(loads, wants))
    good &= total >= TOGETHER * max(wants) or (setting[0] != "hdr" and parts >= TOGETHER)
    return good, f"{'; '.join(found)}; {total:.0f} MB/s, alone {', '.join(f'{w:.0f}' for w in wants)}"


def cases(short):
    pairs = [("1M", "8K"), ("1M", "512"), ("64K", "8"), ("8K", "1M"), ("8+512+8K+64K+1M", "1M"), ("1M", "8+512+8K+64K+1M"), ("64K", "64K")]
    base = [(m, mtu) for m, mtus in (("hdr", (4096, 2048)), ("ddr-connectx", (2048,)), ("sdr-pcix", (2048,))) for mtu in mtus]
    if short:
        yield ("hdr", 4096, 90, 1, "", 1), (("gold", "1M", 1), ("tin", "8K", 1))
        yield ("ddr-connectx", 2048, 90, 1, "", 1), (("gold", "1M", 1), ("tin", "512", 1))
        yield ("hdr", 4096, 60, 2, "", 2), (("gold", "1M", 1), ("tin", "8K", 2))
        yield ("sdr-pcix", 2048, 60, 1, "", 1), (("gold", "8+512+8K+64K+1M", 1), ("tin", "1M", 1))
        yield ("sdr-pcix", 2048, 30, 1, "16K", 1), (("gold", "64K", 1), ("tin", "8", 1))
        return
    for model, mtu in base:
        for gold in (90, 60, 30):
            for a, b in pairs:
                yield (model, mtu, gold, 1, "", 1), (("gold", a, 1), ("tin", b, 1))
        for jobs in (2, 4):
            yield (model, mtu, 70, 1, "", 1), (("gold", "1M", jobs), ("tin", "8K", jobs))
            yield (model, mtu, 70, 1, "", 1), (("gold", "8K", 1), ("tin", "512", jobs))
        for a, b in (("1M", "1M"), ("1M", "8K"), ("64K", "8K")):
            yield (model, mtu, 60, 2, "", 1), (("gold", a, 1), ("tin", b, 1))
            yield (model, mtu, 60, 2, "", 2), (("gold", a, 1), ("tin", b, 1))
            yield (model, mtu, 60, 1, "16K", 1), (("gold", a, 1), ("tin", b, 1))
            yield (model, mtu, 60, 1, "16K, 256K", 2), (("gold", a, 1), ("tin", b, 1))
        yield (model, mtu, 60, 1, "16K", 1), (("gold", "8K", 1), ("tin", "1M", 1))


def batch_cases(short):
    if short:
        yield "hdr", (90, 10), "64K"
        yield "hdr", (70, 30), "1M"
        return
    for model in ("hdr", "ddr-connectx"):
        for shares in ((70, 30), (80, 20), (90, 10), (50, 30, 20)):
            for size in ("64K", "1M"):
                yield model, shares, size


def judge_batches(model, shares, size):
    names = [f"c{i}" for i in range(len(shares))]
    classes = "".join(f"  - {{name: {n}, share: {s}}}\n" for n, s in zip(names, shares))
    r = share.measure(share.Case(policy=f"version: 1\nclasses:\n{classes}jobs: {{default: {names[-1]}}}\n", model=model,
                                 loads=[(n, size, WINDOW[size], 1) for n in names], batches="both", seconds=200))
    good = all(abs(c["wire"] - c["share"]) <= BATCH_POINTS for c in r["classes"].values())
    return good, "; ".join(f"{c['wire']:.2f} of {c['share']:.0f}" for c in r["classes"].values())


def everything(short):
    for setting, loads in cases(short):
        model, mtu, gold, lanes, medium, rails = setting
        what = (f"{model} mtu {mtu}, {gold}:{100 - gold}" + (f", {lanes} lanes" if lanes > 1 else "") +
                (f", medium {medium}" if medium else "") + (f", {rails} rails" if rails > 1 else "") + ": " +
                " against ".join(f"{sizes}" + (f" x{jobs}" if jobs > 1 else "") for _, sizes, jobs in loads))
        yield what, functools.partial(judge, setting, loads)
    for model, shares, size in batch_cases(short):
        what = f"{model}, {':'.join(map(str, shares))}: batches of {WINDOW[size]} x {size}"
        yield what, functools.partial(judge_batches, model, shares, size)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--short", action="store_true")
    a.add_argument("--only", default="")
    args = a.parse_args()
    n = bad = 0
    for what, found_by in everything(args.short):
        if args.only and args.only not in what:
            continue
        n += 1
        try:
            good, found = found_by()
        except RuntimeError as e:
            good, found = False, str(e).replace("\n", "\n# ")
        bad += not good
        print(f"{'ok' if good else 'not ok'} {n} - {what}\n# {found} (simulated)", flush=True)
    print(f"1..{n}")
    return 1 if bad or not n else 0


if __name__ == "__main__":
    sys.exit(main())
