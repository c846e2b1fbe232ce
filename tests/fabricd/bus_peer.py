#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Tools for tests/fabricd/dbus.sh on its bus, beside busctl:

  same XML        are the interfaces that fabricd introspects those of this file?
  members XML MAN does the manual name every member of this file?
  jobs JOB        signals of this job's object, a line each
  polkit UID      be polkit, and let this user do everything
  flood N         N calls, a hundred at once; then the count of each kind of answer
  error METHOD SIGNATURE ARG...  call a method of the manager: the name of its error and the message; a list of
                  texts is one argument with commas, a dictionary is empty
  leave N         N times: a call, and away before fabricd can identify the caller
"""
import asyncio, collections, re, sys
import xml.etree.ElementTree as tree
from dbus_next import BusType, Message, MessageType, SignatureTree, Variant
from dbus_next.aio import MessageBus
from dbus_next.service import ServiceInterface, method

NAME, PATH, MANAGER, JOB = "org.mrmpi.Fabric1", "/org/mrmpi/Fabric1", "org.mrmpi.Fabric1.Manager", "org.mrmpi.Fabric1.Job"


async def connect():
    return await MessageBus(bus_type=BusType.SYSTEM).connect()


def call(path, interface, member, signature="", *body):
    return Message(destination=NAME, path=path, interface=interface, member=member, signature=signature, body=list(body))


def members(interface):
    """{(kind, name): what there is to say of it}"""
    out = {}
    for m in interface:
        if m.tag == "annotation":
            continue
        changes = [a.get("value") for a in m.iter("annotation") if a.get("name").endswith("EmitsChangedSignal")]
        out[m.tag, m.get("name")] = (m.get("type"), m.get("access"), changes or ["true"] * (m.tag == "property"),
                                     [(a.get("name"), a.get("type"), a.get("direction")) for a in m.iter("arg")])
    return out


def interfaces(root):
    return {i.get("name"): members(i) for i in root.iter("interface") if i.get("name").startswith(NAME)}


async def same(xml):
    bus = await connect()
    found = {}
    job = (await bus.call(call(PATH, MANAGER, "RegisterJob", "ssua{sv}", "to be introspected", "", 0, {}))).body[0]
    for path in PATH, job:
        answer = await bus.call(call(path, "org.freedesktop.DBus.Introspectable", "Introspect"))
        found |= interfaces(tree.fromstring(answer.body[0]))
    await bus.call(call(job, JOB, "End"))
    shipped = interfaces(tree.parse(xml).getroot())
    for name in {**found, **shipped}:
        a, b = found.get(name, {}), shipped.get(name, {})
        for m in {**a, **b}:
            if a.get(m) != b.get(m):
                print(f"{name}: {m}: fabricd has {a.get(m)}, {xml} has {b.get(m)}")
    return 0 if found and found == shipped else 1


def in_manual(xml, man):
    with open(man) as f:
        text = f.read()
    missing = [f"{i}.{m}" for i, all in interfaces(tree.parse(xml).getroot()).items() for _, m in all
               if not re.search(rf'^\.B[RI]*.*\b{m}\b', text, re.M)]
    for m in missing:
        print(f"{man} does not describe {m}")
    return 1 if missing else 0


async def jobs(job):
    bus = await connect()

    def show(m):
        if m.message_type == MessageType.SIGNAL and m.path.startswith(PATH):
            told = {"JobNew": [""], "JobJoined": m.body, "JobLeft": m.body}.get(m.member) or [sorted(m.body[1])]
            print(m.member, m.path, *told, flush=True)

    bus.add_message_handler(show)
    await bus.call(Message(destination="org.freedesktop.DBus", path="/org/freedesktop/DBus", interface="org.freedesktop.DBus",
                           member="AddMatch", signature="s", body=[f"type='signal',sender='{NAME}'"]))
    print("ready", flush=True)
    await bus.wait_for_disconnect()


async def polkit(uid):
    class Authority(ServiceInterface):
        @method()
        async def CheckAuthorization(self, subject: "(sa{sv})", action: "s", details: "a{ss}", flags: "u",
                                     cancel: "s") -> "(bba{ss})":
            kind, what = subject
            answer = await bus.call(Message(destination="org.freedesktop.DBus", path="/org/freedesktop/DBus",
                                            interface="org.freedesktop.DBus", member="GetConnectionUnixUser", signature="s",
                                            body=[what["name"].value]))
            print(kind, action, answer.body[0], flush=True)
            return [answer.body[0] == int(uid), False, {}]

    bus = await connect()
    bus.export("/org/freedesktop/PolicyKit1/Authority", Authority("org.freedesktop.PolicyKit1.Authority"))
    await bus.request_name("org.freedesktop.PolicyKit1")
    print("ready", flush=True)
    await bus.wait_for_disconnect()


async def flood(n):
    bus = await connect()
    answers = []
    while len(answers) < int(n):
        answers += await asyncio.gather(*[bus.call(call(PATH, MANAGER, "RegisterJob", "ssua{sv}", "x", "", 0, {}))
                                          for _ in range(100)])  # dbus_next cannot wait for a full socket
    for kind, count in collections.Counter(a.error_name or "done" for a in answers).items():
        print(kind, count)


async def error(member, signature="", *args):
    bus = await connect()
    read = {"s": str, "b": lambda a: a == "true", "as": lambda a: a.split(","), "a{sv}": lambda a: {}}
    body = [read.get(kind.signature, int)(a) for kind, a in zip(SignatureTree(signature).types, args)]
    answer = await bus.call(call(PATH, MANAGER, member, signature, *body))
    print(answer.error_name or "none", *answer.body)


async def leave(n):
    for _ in range(int(n)):
        bus = await connect()
        await bus.send(call(PATH, MANAGER, "ListJobs"))
        bus.disconnect()


def main():
    what, args = sys.argv[1], sys.argv[2:]
    if what == "members":
        return in_manual(*args)
    return asyncio.run({"same": same, "jobs": jobs, "polkit": polkit, "flood": flood, "error": error,
                        "leave": leave}[what](*args))


sys.exit(main())
