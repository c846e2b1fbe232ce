#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# trace_check.py FILE [COUNTERS]: is the trace what viewers take, are its times those of links, and does it say the same
# as `simfab status --counters`? Prints a summary, a line each; exits 1 with what is wrong.
import json
import re
import sys
from collections import defaultdict
from decimal import Decimal


def load(path):
    text = open(path, encoding="ascii").read()
    try:
        return json.loads(text, parse_float=Decimal), True
    except json.JSONDecodeError:  # the end is missing: viewers add it
        return json.loads(text + "]", parse_float=Decimal), False


def fail(text):
    print(text)
    sys.exit(1)


events, whole = load(sys.argv[1])
process, thread = {}, {}
for e in events:
    if e["ph"] == "M" and e["name"] == "process_name":
        process[e["pid"]] = e["args"]["name"]
    if e["ph"] == "M" and e["name"] == "thread_name":
        m = re.fullmatch(r"port (\d+)(?: VL (\d+))?", e["args"]["name"])
        thread[e["pid"], e["tid"]] = (process[e["pid"]], int(m[1]), m[2] and int(m[2]))

spans, sent, packets, waited = defaultdict(list), defaultdict(int), defaultdict(int), defaultdict(int)
kinds = defaultdict(int)
for e in events:
    if e["ph"] == "M" or e["pid"] == 0:
        continue
    node, port, vl = thread[e["pid"], e["tid"]]
    kinds[e["ph"] + " " + e.get("cat", e["name"].split()[0])] += 1
    if e["ph"] == "C" and any(v < 0 for v in e["args"].values()):
        fail(f"a counter below zero: {e}")
    if e["ph"] == "X" and e["dur"] < 0:
        fail(f"a span that ends before it begins: {e}")
    if e.get("cat") == "packet":
        if e["args"]["vl"] != vl:
            fail(f"lane {vl} carries a packet of another: {e}")
        spans[node, port].append((e["ts"], e["ts"] + e["dur"]))
        sent[node, port, vl] += e["args"]["bytes"]
        packets[node, port, vl] += 1
    elif e.get("cat") == "wait":
        waited[node, port, vl] += e["dur"]
for link, list_ in spans.items():
    list_.sort()
    for a, b in zip(list_, list_[1:]):
        if b[0] < a[1]:
            fail(f"two packets at once on {link}: {a} {b}")

if len(sys.argv) > 2:
    seen = 0
    for line in open(sys.argv[2]):
        m = re.match(r"(.*) (\d+) vl (\d+) xmit_data (\d+) xmit_pkts (\d+) .* xmit_wait_ns (\d+)", line)
        if not m:
            continue
        key = m[1], int(m[2]), int(m[3])
        if sent[key] != int(m[4]) or packets[key] != int(m[5]):
            fail(f"{line.rstrip()}: the trace has {sent[key]} bytes in {packets[key]} packets")
        if int(waited[key] * 1000) != int(m[6]):
            fail(f"{line.rstrip()}: in the trace it waits {waited[key] * 1000} ns")
        seen += packets[key]
    if seen != sum(packets.values()):
        fail(f"{sum(packets.values())} packets in the trace, {seen} in the counters")
print("end", "there" if whole else "missing")
print("packets", sum(packets.values()))
print("lanes", len({vl for _, _, vl in packets}))
print("links", " ".join(sorted({f"{n}:{p}" for n, p in spans})).replace(" mlx5_", "/"))
for k in sorted(kinds):
    print(k.lower(), kinds[k])
