#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
What `fabricctl policy plan` predicts is what the wire gives: policies and loads made up from a seed, on each model, over
one cable and from several hosts to one. TAP. predict.py [--policies N] [--seed N] [--model M]... [--sizes S,S] [--first N]

Predicted and measured shares are within 2 points and, of the larger, 5 percent.
"""
import argparse, os, random, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import share

# what no sysfs tells: the fabric's MTU and tables; on PCI-X, which has no such files, what the bus was measured to carry
FABRIC = {"sdr-pcix": "mtu=2048,low=8,high=8,bus_read=876,bus_write=943", "ddr-connectx": "mtu=2048,low=8,high=8", "hdr": "mtu=4096,low=64,high=64"}
WINDOW = {"8K": 64, "64K": 16, "256K": 8, "1M": 4}
POINTS, PART = 2.0, 0.05


def make_policy(rng, sizes):
    """[(class, share, lanes, jobs, size)] and the policy's text but for the MTU"""
    n = rng.choice([2, 2, 3, 3, 4])
    cuts = sorted(rng.sample(range(1, 20), n - 1))
    shares = [5 * (b - a) for a, b in zip([0, *cuts], [*cuts, 20])]
    classes = []
    for i, s in enumerate(shares):
        classes.append({"name": f"c{i}", "share": s, "lanes": rng.choice([1, 1, 1, 2]) if n < 4 else 1, "small": "1K",
                        "priority": rng.choice(["high", "normal", "low"])})
    loads = [(c["name"], rng.choice(sizes), rng.choice([1, 2])) for c in classes]
    lines = [f"  - {{{', '.join(f'{k}: {v}' for k, v in c.items())}}}\n" for c in classes]
    return "classes:\n" + "".join(lines) + f"jobs: {{default: c{rng.randrange(n)}}}\n", loads


def compare(result):
    """[(class, predicted, measured)], whether all are near enough"""
    rows = [(c["name"], c["share"], result["classes"][c["name"]]["wire"]) for c in result["predicted"]["classes"]]
    near = all(abs(p - m) <= POINTS and abs(p - m) <= PART * max(p, m) for _, p, m in rows)
    return rows, near


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--policies", type=int, default=20)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--model", action="append")
    a.add_argument("--sizes", default="8K,64K,256K,1M")
    a.add_argument("--first", type=int, default=0)
    args = a.parse_args()
    rng, n, bad = random.Random(args.seed), 0, 0
    policies = [make_policy(rng, args.sizes.split(",")) for _ in range(args.policies)]
    for number, (text, loads) in list(enumerate(policies))[args.first:]:
        for model in args.model or FABRIC:
            for many in (False, True):
                mtu = FABRIC[model].split(",")[0].split("=")[1]
                streams = [(c, size, WINDOW[size], 1 if many else jobs) for c, size, jobs in loads]
                case = share.Case(policy=f"version: 1\nvls: 8\nmtu: {mtu}\n{text}", loads=streams, model=model,
                                  senders=len(streams) if many else 1, predict=FABRIC[model], seconds=100)
                n += 1
                what = f"policy {number} on {model}, {'many to one' if many else 'one cable'}"
                try:
                    result = share.measure(case)
                    rows, near = compare(result)
                    said = f"limit {result['predicted']['limit']}: " + ", ".join(f"{c} {p:.2f} {m:.2f}" for c, p, m in rows)
                except RuntimeError as e:
                    near, said = False, str(e)
                bad += not near
                print(f"{'ok' if near else 'not ok'} {n} - {what} ({said.splitlines()[0]})")
                if not near:
                    print("".join(f"# {line}\n" for line in (said + "\n" + case.policy).splitlines()), end="")
                    print(f"# loads: {streams}")
                sys.stdout.flush()
    print(f"1..{n}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
