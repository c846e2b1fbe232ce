#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""bench/figures without a fabric: terms, claims, jobs and points, by hand. Prints TAP."""
import glob, os, sys, tomllib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "bench/figures"))
import jobs, render, terms

CURVES = {"one": {1024.0: 100.0, 1048576.0: 800.0}, "two": {1024.0: 99.0, 1048576.0: 1600.0}, "none": {}, "bars": {"IS A": 5.0}}
results = []


def check(text, got, wanted):
    results.append(got == wanted)
    print(f"{'ok' if got == wanted else 'not ok'} {len(results)} - {text}")
    if got != wanted:
        print(f"# got {got!r}, wanted {wanted!r}")


def fails(kind, function, *args):
    try:
        function(*args)
    except kind:
        return True
    return False


for what, wanted in (("one 1M", 800.0), ("one peak", 800.0), ("two least", 99.0), ("two 1K..1M", 849.5), ("bars IS A", 5.0), ("two peak 1..2K", 99.0), ("two least 1K..1M", 99.0), ("two peak 1K..1M", 1600.0),
                     (7, 7.0)):
    check(f"term {what}", terms.term(what, CURVES), wanted)
check("a place that was not measured", fails(terms.Missing, terms.term, "one 2K", CURVES), True)
check("a curve that was not measured", fails(terms.Missing, terms.term, "none peak", CURVES), True)
check("a curve that there is not is a mistake", fails(KeyError, terms.term, "three 1K", CURVES), True)
for value, target, wanted in ((1.95, ">= 1.95", True), (1.94, ">= 1.95", False), (0.53, "<= 0.53", True), (1.0, "> 1", False),
                              (0.99, "1 +- 0.01", True), (1.02, "1 +- 0.01", False)):
    check(f"{value} {target}", terms.meets(value, target), wanted)
check("a target that cannot be read is a mistake", fails(ValueError, terms.meets, 1, "about 1"), True)

claim = terms.judge({"of": "two 1M", "to": "one 1M", "paper": 1.949, "target": ">= 1.95"}, CURVES)
check("a claim: its value", claim["value"], 2.0)
check("a claim: beside the paper's", round(claim["ratio"], 3), 1.026)
check("a claim: met", claim["met"], True)
check("a claim with a difference", terms.judge({"of": "one 1M", "minus": "one 1K", "to": 7}, CURVES)["value"], 100.0)
claim = terms.judge({"of": "none 1M", "to": "one 1M", "target": "> 0"}, CURVES)
check("a claim on what was not measured is neither met nor missed", (claim["value"], claim["met"]), (None, None))

KNOWN = {"MRMPI_RNDV", "MRMPI_ADAPTIVE"}.__contains__
curve = {"env": {}, "either": [{"MRMPI_POLICY_LARGE": "even"}, {"MRMPI_ADAPTIVE": "no"}]}
check("the first setting that the library has", jobs.choose(curve, KNOWN)["env"], {"MRMPI_ADAPTIVE": "no"})
check("a setting that it has not is told",
      jobs.unknown_settings(jobs.choose({**curve, "either": curve["either"][:1]}, KNOWN), KNOWN), ["MRMPI_POLICY_LARGE"])
curve = {"model": "hdr", "topology": "x", "program": "streams", "args": "-o one:{x}", "at": [4, 8], "line": "one"}
check("one job for all x", [j["argv"] for _, j in jobs.expand(curve)], [["-o", "one:4", "one:8"]])
check("its points", jobs.points(curve, [(None, "noise 4 9 9\none 4 1.5 3\none 8 2.5 3\n")]), {4.0: 1.5, 8.0: 2.5})
check("of another column", jobs.points({**curve, "column": 4}, [(None, "one 4 1.5 3\n")]), {4.0: 3.0})
curve = {"model": "hdr", "topology": "x", "args": "{x}", "pick": "^us ([0-9.]+)",
         "cases": {"IS A": "is A 2", "16": {"x": "go", "ranks": 32, "scale": 10}}}
check("a job for each case", [(x, j["argv"], j.get("ranks")) for x, j in jobs.expand(curve)],
      [("IS A", ["is", "A", "2"], None), (16.0, ["go"], 32)])
check("their points", jobs.points(curve, [("IS A", "us 3\nus 4\n"), (16.0, "us 5\n")]), {"IS A": 4.0, 16.0: 50.0})
check("output without the number is a mistake", fails(ValueError, jobs.points, curve, [("IS A", "nothing")]), True)
# what is drawn
check("each size has its label at its place", render.ticks({}, [1024.0, 1048576.0, 4194304.0]), '"1K" 1024.0, "1M" 1048576.0, "4M" 4194304.0')
long = render.ticks({"x": "ms"}, [10.0 * i for i in range(1, 42)])
check("a long series has some labels, and the last", (long.count(","), long.split(", ")[-1]), (13, '"410" 410.0'))
# jobs beside the measured one
curve = {"model": "hdr", "topology": "x", "program": "contend", "policy": "version: 1", "class": "a", "args": "latency:8",
         "background": [{"args": "load:one:{x}:4", "ranks": 4, "class": "b"}, {"args": "", "program": "kernels", "tool": ""}]}
(_, job), = jobs.expand(curve)
check("jobs in the background run its program unless they say another", [b["program"] for b in job["background"]], ["contend", "kernels"])
check("and are built", jobs.programs(job), {"contend", "kernels"})
check("the policy belongs to the fabric", jobs.fabric_key(job) == jobs.fabric_key({**job, "policy": "version: 2"}), False)
check("the class to the job", (job["class"], jobs.fabric_key(job) == jobs.fabric_key({**job, "class": "b"})), ("a", True))
curve |= {"pick": "x", "cases": {"small": "64", "none": {"x": "", "class": "b"}}}
check("what is beside it can depend on x", [j["background"][0]["argv"] for _, j in jobs.expand(curve)], [["load:one:64:4"], ["load:one::4"]])
check("a script builds nothing", jobs.programs({"script": "a.py", "program": "contend"}), set())
# what the descriptions of the tree say of their own curves and settings
for path in sorted(glob.glob(os.path.join(os.path.dirname(jobs.__file__), "*.toml"))):
    with open(path, "rb") as f:
        paper = tomllib.load(f)
    wrong = []
    for figure in paper["figure"]:
        named = {c["name"] for c in figure["curve"]}
        wrong += [c["use"] for c in figure["curve"] if c.get("use", "") not in {"", *paper["settings"]}]
        layers = [paper["defaults"], figure, *figure["curve"], *paper["settings"].values()]
        wrong += [l["policy"] for l in layers if l.get("policy", "") not in {"", *paper.get("policies", {})}]
        for c in figure.get("claim", []):
            wrong += [c[k] for k in ("of", "to", "minus") if isinstance(c.get(k), str) and c[k].split()[0] not in named]
            wrong += [c["what"]] if c["kind"] not in render.KINDS or not c["says"] or not c["section"] else []
            if "target" in c:
                terms.meets(1, c["target"])
    check(f"{os.path.basename(path)}: claims and curves name what there is", wrong, [])
print(f"1..{len(results)}")
sys.exit(not all(results))
