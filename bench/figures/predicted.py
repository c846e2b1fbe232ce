#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
The predictions of `fabricctl policy plan` beside measurements: policies made up from a seed
(tests/fabricd/predict.py), of several jobs on a model's cable and from several hosts to one. predicted.py MODEL
POLICIES SEED

For each class of each policy, ascending by the prediction: "share NUMBER PREDICTED MEASURED", in percent; then "worst
POINTS" and "cases N".
"""
import os, random, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/fabricd"))
sys.dont_write_bytecode = True
import predict, share


def main():
    model, number, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng, rows = random.Random(seed), []
    for n in range(number):
        policy = predict.make_policy(rng, list(predict.WINDOW))
        for kind in ("cable", "many"):
            rows += predict.compare(share.measure(predict.case_of(kind, n, policy, model)))[0]
    rows = sorted((p, m) for _, p, m in rows)
    for i, (p, m) in enumerate(rows, 1):
        print(f"share {i} {p:.3f} {m:.3f}")
    print(f"worst {max(abs(p - m) for p, m in rows):.3f}\ncases {len(rows)}")


main()
