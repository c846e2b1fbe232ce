# SPDX-License-Identifier: BSD-3-Clause
"""
What a description says of its curves, as numbers. Pure: curves in, claims judged out.

A curve is a dict from x (a number, or the name of a case) to y. A term names one number of a figure:

  "two 1M"        the curve `two` at 1 MiB; "IS A" style names of cases work, too
  "two peak"      its largest value ("two least": its smallest)
  "two 20..90"    the mean of its values there ("two peak 20..90": the largest of them, "least": the smallest)
  870             a number
"""
import re

UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


class Missing(Exception):
    """the curve was not measured, or not there"""


def number(text):
    m = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG]?)", str(text))
    return float(m[1]) * UNITS[m[2]] if m else None


def term(what, curves):
    if isinstance(what, (int, float)):
        return float(what)
    name, _, where = what.partition(" ")
    if name not in curves:
        raise KeyError(f"no curve is called {name}: {what}")
    points = curves[name]
    if not points:
        raise Missing(name)
    how, _, within = where.rpartition(" ") if ".." in where else (where, "", "")
    inside = list(points.values())
    if within:
        low, high = (number(w) for w in within.split("..", 1))
        inside = [y for x, y in points.items() if low <= x <= high]
        if not inside:
            raise Missing(what)
    if how in ("peak", "least"):
        return (max if how == "peak" else min)(inside)
    if within:
        return sum(inside) / len(inside)
    x = where if where in points else number(where)
    if x not in points:
        raise Missing(what)
    return points[x]


TARGETS = {">=": lambda v, t: v >= t, "<=": lambda v, t: v <= t, ">": lambda v, t: v > t, "<": lambda v, t: v < t}


def meets(value, target):
    """target: ">= 1.95", "1 +- 0.01" """
    op, _, rest = target.partition(" ")
    if op in TARGETS:
        return TARGETS[op](value, float(rest))
    middle, _, off = target.partition(" +- ")
    return abs(value - float(middle)) <= float(off) + 1e-9


def judge(claim, curves):
    """The claim with its value, the ratio to the paper's (if it gives one), and whether the target is met (None: no target)"""
    try:
        value = (term(claim["of"], curves) - term(claim.get("minus", 0), curves)) / term(claim.get("to", 1), curves)
    except Missing as e:
        return {**claim, "value": None, "missing": str(e), "met": None, "ratio": None}
    except ZeroDivisionError:
        return {**claim, "value": None, "missing": f"{claim['to']} is 0", "met": None, "ratio": None}
    paper = claim.get("paper")
    target = claim.get("target")
    return {**claim, "value": value, "ratio": value / paper if paper else None,
            "met": meets(value, target) if target else None}
