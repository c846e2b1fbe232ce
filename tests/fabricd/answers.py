#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What fabricctl answers in JSON, against the schemas of its answers and the manual page.

  answers.py check KIND          the answer on standard input; KIND is outcome, look, check, status, "job list",
                                 "job show", "policy lock", "policy history", "policy show", "rail list" or top
  answers.py page PAGE           has fabricctl(1) every member of outcome, look, check and top?
"""
import json
import re
import sys

import jsonschema


def obj(required, optional=None, more=False):
    """An object: all of required, of optional any, and others only if more."""
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})},
            "additionalProperties": more}


def listed(item):
    return {"type": "array", "items": item}


text, count, flag = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
number = {"type": "number", "minimum": 0}
outcome = {"exit": {"type": "integer", "minimum": 0, "maximum": 5}, "messages": listed(text)}
place = obj({"node": text, "guid": {"type": "string", "pattern": "^0x[0-9a-f]{16}$"}, "port": count, "what": text})
look = {"nodes": count, "ports": count, "differences": count, "differ": listed(place)}
job = obj({"id": {}, "class": text}, more=True)  # an id of digits alone may be read as a number by YAML
job["properties"]["id"] = text
rail = obj({"device": text, "port": count, "state": text}, more=True)
status = obj({"fabricd": obj({"version": {}, "pid": count, "role": text, "clients": count}, more=True),
              "policy": obj({"generation": count, "state": text, "differences": count}, more=True),
              "rails": listed(rail), "jobs": listed(job)}, more=True)
rate = obj({"device": text, "port": count}, {"sent_mbytes_s": number, "received_mbytes_s": number})
ended = obj({"port": text, "opensm": text, "result": text},
            {"vls": count, "ports": count, "differences": count, "why": text})
schemas = {
    "outcome": obj(outcome, {"error": text}),
    "look": obj({**outcome, **look}, {"error": text}),
    "check": obj(outcome, {"error": text, "classes": count, "vls": count, "lmc": count}),
    "status": status,
    "job list": listed(job),
    "job show": obj({"job": text, "class": text}, more=True),
    "policy lock": {"type": "array", "items": text, "minItems": 1},
    "policy history": listed(obj({"generation": count, "at": text, "by": text, "policy": text, "result": text,
                                  "current": flag}, {"uid": count, "planes": listed(ended)})),
    "policy show": obj({"generation": count, "at": text, "by": text, "policy": text, "result": text, "text": text,
                        "lock": text}, {"uid": count, **look, "damaged": text, "planes": listed(ended)}),
    "rail list": listed(rail),
    "top": obj({"simulated": flag, "rates": listed(rate), "status": status}),
}


def members(schema):
    """The names of all members, also of objects in it, of those that the page tells."""
    for name, part in schema.get("properties", {}).items():
        yield name
        if name != "status":
            yield from members(part.get("items", part))


def main(what, name):
    if what == "page":
        with open(name, encoding="utf-8") as f:
            page = f.read()
        section = re.search(r"\.SH ANSWERS IN JSON\n(.*?)\n\.SH", page, re.S).group(1)
        told = set(re.findall(r"[a-z_]+", section))
        missing = {m for kind in ("outcome", "look", "check", "top") for m in members(schemas[kind])} - told
        sys.exit("not in the page: " + " ".join(sorted(missing)) if missing else 0)
    text = sys.stdin.read()
    for line in text.splitlines() or [""]:
        jsonschema.Draft7Validator.check_schema(schemas[name])
        jsonschema.Draft7Validator(schemas[name]).validate(json.loads(line))


if len(sys.argv) != 3:
    sys.exit(__doc__)
main(*sys.argv[1:])
