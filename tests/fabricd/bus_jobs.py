#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a scheduler's tool looks like: the jobs that fabricd knows, and then every change, a line each."""
import asyncio
from dbus_next import BusType
from dbus_next.aio import MessageBus


async def main():
    bus = await MessageBus(bus_type=BusType.SYSTEM).connect()
    path = "/org/mrmpi/Fabric1"
    fabric = bus.get_proxy_object("org.mrmpi.Fabric1", path, await bus.introspect("org.mrmpi.Fabric1", path))
    manager, properties = (fabric.get_interface(i) for i in ("org.mrmpi.Fabric1.Manager", "org.freedesktop.DBus.Properties"))
    manager.on_job_new(lambda id, job: print("new", id, job, flush=True))
    manager.on_job_removed(lambda id, job: print("removed", id, job, flush=True))
    properties.on_properties_changed(lambda i, new, gone: [print(k, v.value, flush=True) for k, v in new.items()])
    for id, job, klass, source, user, since in await manager.call_list_jobs():
        print("job", id, klass, source, user, flush=True)
    await bus.wait_for_disconnect()

asyncio.run(main())
