/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies that are a list. */
#include "fabricd/dbus/internal.h"

int reply_list_begin(sd_bus_message *m, const char *element, sd_bus_message **reply)
{
    int rc = sd_bus_message_new_method_return(m, reply);
    return rc < 0 ? rc : sd_bus_message_open_container(*reply, 'a', element);
}

int reply_list_send(struct dbus *b, sd_bus_message *reply, int rc)
{
    if (rc >= 0)
        rc = sd_bus_message_close_container(reply);
    if (rc >= 0)
        rc = sd_bus_send(b->bus, reply, NULL);
    sd_bus_message_unref(reply);
    return rc;
}
