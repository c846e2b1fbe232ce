/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sender of a call, from the bus: the bus has the sender from the kernel, not from the message. The answer takes a
 * round trip to the bus, and one more to polkit for unprivileged senders; the loop continues meanwhile.
 */
#include "fabricd/dbus/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASKED_MOST     4096u               /* calls that wait for the identity of their senders */
#define POLKIT_USEC    UINT64_C(120000000) /* somebody types a password there */
#define POLKIT_MAY_ASK 1u                  /* flag of CheckAuthorization: the user may be asked */

struct asked {
    struct asked *next, **before;
    struct dbus *b;
    sd_bus_message *m;
    sd_bus_slot *slot; /* of the awaited answer */
    sender_call *call;
    const char *action; /* of polkit; NULL: everybody may */
    uint32_t uid;
};

static void drop(struct asked *a)
{
    *a->before = a->next;
    if (a->next)
        a->next->before = a->before;
    a->b->num_asked--;
    sd_bus_slot_unref(a->slot);
    sd_bus_message_unref(a->m);
    free(a);
}

void sender_forget(struct dbus *b)
{
    while (b->asked)
        drop(b->asked);
}

/* The call is made, or refused, and its caller told. */
static void make_call(struct asked *a, bool may)
{
    sd_bus_error err = SD_BUS_ERROR_NULL;
    int rc;
    if (a->action && !may)
        rc = sd_bus_error_setf(&err, SD_BUS_ERROR_ACCESS_DENIED, "only root may do this to %s",
                               !strcmp(a->action, DBUS_JOBS_ACTION)     ? "jobs"
                               : !strcmp(a->action, DBUS_POLICY_ACTION) ? "the policy"
                                                                        : "partitions of jobs");
    else
        rc = a->call(a->b, a->m, a->uid, may, &err);
    if (rc < 0)
        sd_bus_reply_method_errno(a->m, rc, &err);
    sd_bus_error_free(&err);
    drop(a);
}

static int on_polkit(sd_bus_message *answer, void *arg, sd_bus_error *err)
{
    int allowed = 0, challenge = 0;
    if (!sd_bus_message_is_method_error(answer, NULL) && sd_bus_message_enter_container(answer, 'r', "bba{ss}") > 0)
        sd_bus_message_read(answer, "bb", &allowed, &challenge);
    make_call(arg, allowed > 0);
    return 1;
}

/* False: the question failed. */
static bool ask_polkit(struct asked *a)
{
    uint32_t flags = sd_bus_message_get_allow_interactive_authorization(a->m) > 0 ? POLKIT_MAY_ASK : 0;
    sd_bus_message *q = NULL;
    int rc = sd_bus_message_new_method_call(a->b->bus, &q, "org.freedesktop.PolicyKit1",
                                            "/org/freedesktop/PolicyKit1/Authority",
                                            "org.freedesktop.PolicyKit1.Authority", "CheckAuthorization");
    if (rc >= 0)
        rc = sd_bus_message_append(q, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
                                   sd_bus_message_get_sender(a->m), a->action, 0, flags, "");
    if (rc >= 0) {
        a->slot = sd_bus_slot_unref(a->slot);
        rc = sd_bus_call_async(a->b->bus, &a->slot, q, on_polkit, a, POLKIT_USEC);
    }
    sd_bus_message_unref(q);
    return rc >= 0;
}

static int on_uid(sd_bus_message *answer, void *arg, sd_bus_error *err)
{
    struct asked *a = arg;
    if (sd_bus_message_is_method_error(answer, NULL) || sd_bus_message_read(answer, "u", &a->uid) <= 0) {
        drop(a); /* the sender has left the bus */
        return 1;
    }
    bool may = !a->uid || a->uid == geteuid();
    if (may || !a->action || !ask_polkit(a))
        make_call(a, may);
    return 1;
}

int sender_ask(struct dbus *b, sd_bus_message *m, const char *action, sender_call *call, sd_bus_error *err)
{
    struct asked *a = b->num_asked < ASKED_MOST ? calloc(1, sizeof(*a)) : NULL;
    if (!a)
        return sd_bus_error_setf(err, SD_BUS_ERROR_LIMITS_EXCEEDED, "too many calls wait for an answer; try again");
    *a = (struct asked){.next = b->asked, .before = &b->asked, .b = b, .call = call, .action = action};
    a->m = sd_bus_message_ref(m);
    if (a->next)
        a->next->before = &a->next;
    b->asked = a;
    b->num_asked++;
    int rc = sd_bus_call_method_async(b->bus, &a->slot, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                      "org.freedesktop.DBus", "GetConnectionUnixUser", on_uid, a, "s",
                                      sd_bus_message_get_sender(m));
    if (rc < 0) {
        drop(a);
        return rc;
    }
    return 1;
}
