#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Several hosts send to a host with a bus slower than its cable (the DDR model): classes have their shares of the bus
within two points, idle shares are used by the others, and the total is at least 93 percent of the bus's rate. TAP.
paced.py [--short]
"""
import os, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import share

POINTS = 2.0
BUS = 1677.0  # 10^6 bytes a second with headers, that the model's bus takes in
WHOLE = 0.93  # of it: what is left free, and what packets beside reads leave
SHORT = 2  # cases of make check

CASES = [  # shares; [(class, size, window, jobs)]
    ([70, 30], [(0, "1M", 4, 1), (1, "8K", 64, 1)]),
    ([50, 30, 20], [(0, "64K", 16, 1), (2, "1M", 4, 1)]),
    ([70, 30], [(0, "64K", 16, 2), (1, "64K", 16, 2)]),
    ([90, 10], [(0, "1M", 4, 1), (1, "64K", 16, 1)]),
    ([90, 10], [(0, "1M", 4, 2), (1, "1M", 4, 2)]),
    ([50, 30, 20], [(0, "1M", 4, 1), (1, "64K", 16, 1), (2, "1M", 4, 1)]),
    ([50, 30, 20], [(0, "8K", 64, 1), (1, "8K", 64, 1), (2, "64K", 16, 1)]),
    ([90, 10], [(1, "1M", 4, 2)]),
]


def policy(shares):
    classes = "".join(f"  - {{name: c{i}, share: {s}}}\n" for i, s in enumerate(shares))
    return f"version: 1\nmtu: 2048\nclasses:\n{classes}jobs: {{default: c0}}\n"


def main():
    cases, bad = CASES[:SHORT] if "--short" in sys.argv[1:] else CASES, 0
    for n, (shares, loads) in enumerate(cases, 1):
        case = share.Case(policy=policy(shares), loads=[(f"c{c}", *rest) for c, *rest in loads], model="ddr-connectx",
                          senders=sum(jobs for *_, jobs in loads), time_us=9000, settle_us=4000)
        active = sum(shares[c] for c, *_ in loads)
        what = f"{'/'.join(map(str, shares))}, " + ", ".join(f"c{c} {jobs} x {size}" for c, size, _, jobs in loads)
        try:
            r = share.measure(case)
            got = {c: r["classes"][f"c{c}"]["wire"] for c, *_ in loads}
            near = all(abs(got[c] - 100.0 * shares[c] / active) <= POINTS for c in got) and r["mbytes_per_s"] >= WHOLE * BUS
            said = ", ".join(f"c{c} {g:.2f}" for c, g in got.items()) + f" of {r['mbytes_per_s']:.0f} MB/s"
        except RuntimeError as e:
            near, said = False, str(e).splitlines()[0]
        bad += not near
        print(f"{'ok' if near else 'not ok'} {n} - {what} (simulated: {said})", flush=True)
    print(f"1..{len(cases)}")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
