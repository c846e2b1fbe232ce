#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""OpenMetrics text 1.0, read strictly: what the specification does not allow is an error with its line.

  openmetrics.py check           the text on standard input is right
  openmetrics.py names           prints its families, a line each
  openmetrics.py value SAMPLE... prints the values of samples, given as NAME{LABEL="VALUE",...}, labels in any order
  openmetrics.py self            this parser refuses what is wrong
"""
import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r"[a-zA-Z_][a-zA-Z0-9_]*"
ESCAPED = r'(?:[^"\\\n]|\\["\\n])*'
NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?[iI]nf(?:inity)?|[nN]a[nN]"
SAMPLE = re.compile(rf'({NAME})(?:\{{((?:{LABEL}="{ESCAPED}"(?:,{LABEL}="{ESCAPED}")*)?)\}})? ({NUMBER})')
PAIR = re.compile(rf'({LABEL})="({ESCAPED})"')
SUFFIXES = {"gauge": [""], "counter": ["_total", "_created"], "info": ["_info"], "stateset": [""], "unknown": [""],
            "histogram": ["_bucket", "_count", "_sum", "_created"], "summary": ["", "_count", "_sum", "_created"]}
NOT_ESCAPED = re.compile(r"(?:[^\\]|\\[\\n\"])*")


class Wrong(Exception):
    """The text is no OpenMetrics."""


def unescape(s):
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], s)


def describe(families, current, line):
    """A line of TYPE, UNIT or HELP; the family that it is of."""
    m = re.fullmatch(rf"# (TYPE|UNIT|HELP) ({NAME}) (.*)", line, re.S)
    if not m:
        raise Wrong("neither a description nor a sample")
    what, name, value = m.groups()
    if name != current:
        if name in families:
            raise Wrong(f"{name} is described in two places")
        families[name] = {"samples": {}}
    family = families[name]
    if what in family:
        raise Wrong(f"a second {what} of {name}")
    if family["samples"]:
        raise Wrong(f"{what} of {name} after its samples")
    if what == "TYPE" and value not in SUFFIXES:
        raise Wrong(f"no type: {value}")
    if what == "UNIT" and not (value and name.endswith("_" + value)):
        raise Wrong(f"{name} does not end with its unit {value}")
    if what == "HELP" and not NOT_ESCAPED.fullmatch(value):
        raise Wrong(f"a lone backslash in the help of {name}")
    family[what] = value
    return name


def sample(families, current, line):
    m = SAMPLE.fullmatch(line)
    if not m:
        raise Wrong("not a sample")
    name, labels, number = m.groups()
    family = families.get(current)
    if family is None or name not in [current + s for s in SUFFIXES[family.get("TYPE", "unknown")]]:
        raise Wrong(f"{name} is no sample of the family {current}")
    pairs = PAIR.findall(labels or "")
    if len(dict(pairs)) != len(pairs):
        raise Wrong("a label twice")
    key = (name, frozenset((k, unescape(v)) for k, v in pairs))
    if key in family["samples"]:
        raise Wrong("a sample twice")
    value = float(number)
    if family.get("TYPE") == "counter" and not value >= 0:
        raise Wrong("a counter below zero")
    family["samples"][key] = value


def parse(data):
    """{family: {TYPE, UNIT, HELP, samples: {(name, labels): value}}}"""
    text = data.decode("utf-8")
    families, current = {}, None
    if not text.endswith("\n"):
        raise Wrong("the last line has no end")
    lines = text[:-1].split("\n")
    if lines[-1] != "# EOF":
        raise Wrong("the last line is not '# EOF'")
    for number, line in enumerate(lines[:-1], 1):
        try:
            if line == "# EOF":
                raise Wrong("the end in the middle")
            if line.startswith("#"):
                current = describe(families, current, line)
            else:
                sample(families, current, line)
        except Wrong as e:
            raise Wrong(f"line {number}: {e}: {line!r}") from e
    for name in families:
        for other, family in families.items():
            if other != name and name in [other + s for s in SUFFIXES[family.get("TYPE", "unknown")]]:
                raise Wrong(f"{name} is also a sample of {other}")
    return families


GOOD = b'# TYPE a_seconds gauge\n# UNIT a_seconds seconds\n# HELP a_seconds x\na_seconds{b="c\\"\\\\\\n"} 1.5e3\n# EOF\n'
BAD = [
    b"", b"# EOF", b"a 1\n# EOF\n", b"# TYPE a gauge\na 1\n", b"# TYPE a gauge\na 1\n# EOF\n\n", b"# TYPE a gauge\n\n# EOF\n",
    b"# TYPE a gauge\na 1\r\n# EOF\n", b"# TYPE a gauge\na  1\n# EOF\n", b"# TYPE a gauge\na 1 \n# EOF\n", b"# TYPE a gauge\na x\n# EOF\n",
    b"# TYPE a counter\na 1\n# EOF\n", b"# TYPE a counter\na_total -1\n# EOF\n", b"# TYPE a counter\na_total nan\n# EOF\n",
    b"# TYPE a gauge\n# TYPE a gauge\na 1\n# EOF\n", b"# TYPE a gauge\na 1\n# HELP a x\n# EOF\n", b"# TYPE a gage\na 1\n# EOF\n",
    b"# TYPE a gauge\n# UNIT a seconds\na 1\n# EOF\n", b"# TYPE a gauge\na 1\na 2\n# EOF\n", b"# a comment\n# EOF\n",
    b"# TYPE a gauge\n# TYPE b gauge\na 1\n# EOF\n", b"# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\n# EOF\n",
    b'# TYPE a gauge\na{b="c",b="d"} 1\n# EOF\n', b'# TYPE a gauge\na{b="c"d"} 1\n# EOF\n', b'# TYPE a gauge\na{b="\\t"} 1\n# EOF\n',
    b'# TYPE a gauge\na{b="c",} 1\n# EOF\n', b'# TYPE a gauge\na{b="c", d="e"} 1\n# EOF\n', b'# TYPE a gauge\na{b="c\nd"} 1\n# EOF\n',
    b'# TYPE a gauge\na{b:c="d"} 1\n# EOF\n', b'# TYPE a gauge\na{b="\xff"} 1\n# EOF\n', b"# TYPE a gauge\n# HELP a x\\y\na 1\n# EOF\n",
    b"# TYPE a counter\na_total 1\n# TYPE a_total gauge\na_total 2\n# EOF\n", b"# EOF\n# EOF\n",
]


def refuses_what_is_wrong():
    families = parse(GOOD)
    assert families["a_seconds"]["samples"] == {("a_seconds", frozenset({("b", 'c"\\\n')})): 1500.0}
    for text in BAD:
        try:
            parse(text)
        except (Wrong, UnicodeDecodeError):
            continue
        sys.exit(f"taken as right: {text!r}")


def value_of(families, asked):
    m = re.fullmatch(rf"({NAME})(?:\{{(.*)\}})?", asked, re.S)
    key = (m[1], frozenset((k, unescape(v)) for k, v in PAIR.findall(m[2] or "")))
    for family in families.values():
        if key in family["samples"]:
            return family["samples"][key]
    sys.exit(f"no sample {asked}")


def main(what, *args):
    if what == "self":
        refuses_what_is_wrong()
        return
    try:
        families = parse(sys.stdin.buffer.read())
    except (Wrong, UnicodeDecodeError) as e:
        sys.exit(str(e))
    if what == "names":
        print("\n".join(sorted(families)))
    elif what == "value":
        print(*(f"{value_of(families, asked):g}" for asked in args))


if len(sys.argv) < 2 or sys.argv[1] not in ("check", "names", "value", "self"):
    sys.exit(__doc__)
main(*sys.argv[1:])
