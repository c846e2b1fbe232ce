#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The policy's JSON schema against policies and against the manual page.

  schema.py check SCHEMA            is it a schema, with defaults that it allows itself?
  schema.py validate SCHEMA FILE... a line for each YAML file: "good", or "bad" and why; 1 if one is bad
  schema.py keys SCHEMA             its keys as lines "classes.share (1 to 100, required)", sorted
  schema.py page PAGE               the same of the section KEYS of the manual page
"""
import json
import re
import sys

import jsonschema
import yaml


def keys(schema, path=""):
    """Every key with its part of the schema; of lists, the items'."""
    for name, part in schema.get("properties", {}).items():
        yield path + name, part
        yield from keys(part.get("items", part), path + name + ".")


def check(schema):
    jsonschema.Draft7Validator.check_schema(schema)
    for path, part in keys(schema):
        if "default" in part:
            jsonschema.Draft7Validator(part).validate(part["default"])


def verdict(schema, file):
    with open(file, encoding="utf-8") as f:
        try:
            jsonschema.Draft7Validator(schema).validate(yaml.safe_load(f))
        except jsonschema.ValidationError as e:
            return f"bad {file}: {'/'.join(map(str, e.absolute_path)) or 'the file'}: {e.message}"
    return f"good {file}"


def validate(schema, files):
    verdicts = [verdict(schema, f) for f in files]
    print("\n".join(verdicts))
    sys.exit(any(v.startswith("bad") for v in verdicts))


def headings(page):
    """.TP, then .BR NAME " (allowed)"; keys of a mapping stand between .RS and .RE."""
    lines = re.sub(r"\\-", "-", re.search(r"\.SH KEYS\n(.*?)\n\.SH", page, re.S).group(1)).split("\n")
    path, last = [], ""
    for before, line in zip([""] + lines, lines):
        if line == ".RS":
            path.append(last)
        elif line == ".RE":
            path.pop()
        elif before == ".TP":
            m = re.fullmatch(r'\.BR (?:"([^"]*)"|(\S+)) " (\(.*\))"', line)
            if not m:
                sys.exit(f"not the heading of a key: {line}")
            last = m.group(1) or m.group(2)
            yield ".".join(path + [last]) + " " + m.group(3)


def main(what, file, *more):
    with open(file, encoding="utf-8") as f:
        text = f.read()
    if what == "page":
        print("\n".join(sorted(headings(text))))
        return
    schema = json.loads(text)
    if what == "check":
        check(schema)
    elif what == "validate":
        validate(schema, more)
    elif what == "keys":
        print("\n".join(sorted(p + " " + part["description"].split("\n")[-1] for p, part in keys(schema))))
    else:
        sys.exit(__doc__)


main(*sys.argv[1:])
