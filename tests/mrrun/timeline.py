#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks a timeline of mrrun --rails-trace against the trace event format, and prints what is in it.

timeline.py FILE: one line "WORD NUMBER" for each kind of event; a line "WRONG: ..." and status 1 for what is not as it should be.
"""
import collections
import json
import sys

NEEDED = {  # fields of each phase, beside those that all have
    "M": ["args"], "X": ["ts", "dur"], "B": ["ts"], "E": ["ts"], "i": ["ts", "s"], "C": ["ts", "args"],
}
wrong = []


def check(good, what, event=None):
    if not good and len(wrong) < 20:
        wrong.append(f"{what}: {json.dumps(event)}" if event else what)


def check_fields(e):
    for key, kind in (("name", str), ("ph", str), ("pid", int), ("tid", int)):
        check(isinstance(e.get(key), kind), f"no {key}", e)
    phase = e.get("ph")
    check(phase in NEEDED, "unknown phase", e)
    for key in NEEDED.get(phase, []):
        check(key in e, f"no {key}", e)
    for key in ("ts", "dur"):
        check(key not in e or (isinstance(e[key], (int, float)) and e[key] >= 0), f"{key} is no time", e)
    if phase == "i":
        check(e.get("s") in ("g", "p", "t"), "scope of an instant", e)
    if phase == "C":
        check(e["args"] and all(isinstance(v, (int, float)) for v in e["args"].values()), "a counter is a number", e)


def check_track(events):
    """Times ascend; each beginning has its end; slices do not overlap."""
    open_slices, before, free = [], 0, 0
    for e in events:
        check(e["ts"] >= before, "time goes back on a track", e)
        before = e["ts"]
        if e["ph"] == "B":
            open_slices.append(e["name"])
        elif e["ph"] == "E":
            check(open_slices and open_slices.pop() == e["name"], "an end without its beginning", e)
        elif e["ph"] == "X":
            check(e["ts"] >= free - 0.0005, "slices overlap", e)
            free = e["ts"] + e["dur"]
    check(not open_slices, f"no end of {open_slices}")


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        doc = json.load(f)
    events, count = doc["traceEvents"], collections.Counter()
    check(isinstance(events, list), "traceEvents is no array")
    check(doc.get("displayTimeUnit") in ("ms", "ns"), "displayTimeUnit")
    named, tracks, last = set(), collections.defaultdict(list), {}
    for e in events:
        check_fields(e)
        if e["ph"] == "M":
            if e["name"] == "thread_name":
                named.add((e["pid"], e["tid"]))
            continue
        tracks[e["pid"], e["tid"]].append(e)
        if e["ph"] == "C" and e["name"].endswith(" bytes"):
            for key, value in e["args"].items():
                check(value >= last.get((e["pid"], e["name"], key), 0), "bytes become fewer", e)
                last[e["pid"], e["name"], key] = value
        if e["ph"] == "X" and "bytes" in e["args"]:
            a = e["args"]
            check(0 < a["bytes"] <= a["message"], "a part is longer than its message", e)
            count["broken" if a["broken"] else "parts"] += 1
            count["bytes_of_parts"] += 0 if a["broken"] else a["bytes"]
        count[{"C": "counters", "i": "instants", "B": "begun", "E": "ended", "X": "slices"}[e["ph"]]] += 1
        word = e["name"].split()[0]
        if e["ph"] in "iB":
            count[f"{e['ph']}.{word}"] += 1
        elif e["ph"] == "C" and word == "weight":
            count["weights"] += 1
            count["weights_changed"] += e["args"]["weight"] not in (0, 1024)
    for key, track in tracks.items():
        check(key in named, f"track {key} has no name")
        check_track(track)
    check(count["begun"] == count["ended"], "beginnings and ends")
    count["ranks"] = len({pid for pid, _ in tracks})
    count["dropped"] = sum(doc["otherData"]["dropped_events"].values())
    count["simulated"] = doc["otherData"]["clock"].startswith("simulated")
    count["most_of_a_rank"] = max((sum(len(t) for (p, _), t in tracks.items() if p == pid) for pid, _ in tracks), default=0)
    for word in sorted(count):
        print(word, int(count[word]))
    for line in wrong:
        print("WRONG:", line)
    return bool(wrong)


sys.exit(main())
