/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Methods about generations of the policy. A rollback takes seconds: its caller waits (waiting.c), and gets the reply
 * when the manager's task has ended.
 */
#include "fabricd/apply/history.h"
#include "fabricd/dbus/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- questions ---- */

struct listing {
    sd_bus_message *reply;
    int rc;
};

static void append_generation(void *arg, const struct history_entry *e)
{
    struct listing *l = arg;
    if (l->rc >= 0)
        l->rc = sd_bus_message_append(l->reply, "(ttsussb)", e->generation, (uint64_t)e->at_s * 1000000, e->by, e->uid,
                                      e->policy, e->result, (int)e->current);
}

static int list_history_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    struct listing l = {0};
    l.rc = reply_list_begin(m, "(ttsussb)", &l.reply);
    if (l.rc >= 0)
        history_each(&b->d->conf, append_generation, &l);
    return reply_list_send(b, l.reply, l.rc);
}

int policy_on_list(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, DBUS_POLICY_ACTION, list_history_known, err);
}

static int on_show_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    struct text t = {0};
    uint64_t generation;
    int rc = sd_bus_message_read(m, "t", &generation);
    if (rc < 0)
        return rc;
    rc = history_show(&b->d->conf, generation, &t);
    if (rc == -ENOENT)
        rc = sd_bus_error_setf(err, DBUS_NO_GENERATION, "generation %" PRIu64 " is not kept", generation);
    else if (rc && rc != -EUCLEAN) /* the text of a damaged generation names the damage */
        rc = sd_bus_error_setf(err, DBUS_UNKEPT, "%s: %s", b->d->conf.state, strerror(-rc));
    else
        rc = sd_bus_reply_method_return(m, "s", text_str(&t));
    text_free(&t);
    return rc;
}

int policy_on_show(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, DBUS_POLICY_ACTION, on_show_known, err);
}

/* ---- changes ---- */

static const char *error_name(int status)
{
    switch (status) {
    case -EALREADY:
    case -EBUSY:
        return DBUS_AT_WORK;
    case -EINVAL:
    case -EPERM:
        return DBUS_REFUSED;
    case FD_ROLLED_BACK:
        return DBUS_ROLLED_BACK;
    case FD_ROLLBACK_FAILED:
        return DBUS_NOT_ROLLED_BACK;
    default:
        return DBUS_NOT_APPLIED;
    }
}

static void reply_rollback(struct dbus *b, struct waiting *w, int status)
{
    if (!status || status == FD_PLANE_MISSING)
        sd_bus_reply_method_return(w->m, "ts", b->d->generation, text_str(&w->said));
    else
        sd_bus_reply_method_errorf(w->m, error_name(status), "%s",
                                   w->said.len      ? w->said.s
                                   : status > -1000 ? strerror(-status)
                                                    : "rolled back");
}

static int on_rollback_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    int64_t generation;
    int partial;
    int rc = sd_bus_message_read(m, "xb", &generation, &partial);
    if (rc < 0)
        return rc;
    if (generation < -1)
        return sd_bus_error_setf(err, SD_BUS_ERROR_INVALID_ARGS,
                                 "generation is %" PRId64 "; allowed: a number of ListGenerations, 0: what was there "
                                 "before the first policy, -1: the policy before the present one",
                                 generation);
    struct waiting *w = waiting_add(b, m, reply_rollback);
    if (!w)
        return -ENOMEM;
    struct policy_file f = {.name = "rollback",
                            .text = "",
                            .lock = "",
                            .flags = FD_CHANGE_ROLLBACK | (partial ? FD_CHANGE_PARTIAL : 0),
                            .generation = generation < 0 ? FD_PREVIOUS : (uint64_t)generation,
                            .uid = uid};
    uint64_t asker = w->asker;
    rc = daemon_apply(b->d, &f, asker, &w->said);
    if (rc) /* else the task's end replies */
        waiting_done(b, asker, rc);
    return 1;
}

int policy_on_rollback(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, DBUS_POLICY_ACTION, on_rollback_known, err);
}
