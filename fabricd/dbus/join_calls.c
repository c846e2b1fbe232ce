/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Methods about partitions of jobs (jobs/joins.h). The hosts join when the manager's task has ended, and the caller
 * waits for that. The partition follows from the job's facts, once: a call about a user with unknown groups is kept
 * until the groups are known.
 */
#include "fabricd/dbus/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct held {
    struct held *next;
    sd_bus_message *m;
    uint32_t uid; /* of the sender */
};

/* ---- orders ---- */

static int read_hosts(sd_bus_message *m, struct text *hosts, sd_bus_error *err)
{
    const char *list;
    bool good = true;
    int rc = sd_bus_message_enter_container(m, 'a', "s");
    while (rc >= 0 && good && (rc = sd_bus_message_read(m, "s", &list)) > 0)
        good = hosts_expand(list, FD_HOSTS_MAX, hosts) && hosts->len <= FD_HOSTS_MAX;
    if (rc >= 0 && (!good || !hosts->len))
        return sd_bus_error_setf(err, SD_BUS_ERROR_INVALID_ARGS,
                                 "hosts: one or more; names of up to %d characters and ranges, as node[001-128,200]; "
                                 "in all up to %u characters",
                                 HOST_MAX - 1, FD_HOSTS_MAX);
    return rc < 0 ? rc : sd_bus_message_exit_container(m);
}

static int read_join(sd_bus_message *m, struct job *job, struct text *hosts, sd_bus_error *err)
{
    const char *id, *class_name;
    int rc = sd_bus_message_read(m, "ss", &id, &class_name);
    if (rc >= 0)
        rc = order_text(job->id, sizeof(job->id), id, "id", false, err);
    if (rc >= 0)
        rc = order_text(job->class_name, sizeof(job->class_name), class_name, "class", true, err);
    if (rc >= 0)
        rc = read_hosts(m, hosts, err);
    if (rc >= 0)
        rc = sd_bus_message_read(m, "u", &job->uid);
    if (rc >= 0)
        rc = order_options(m, job, err);
    if (rc >= 0 && (*job->cgroup || *job->small_ratio))
        rc = sd_bus_error_setf(err, SD_BUS_ERROR_INVALID_ARGS,
                               "allowed options: account, qos, partition, name, wish, lease, run");
    return rc;
}

static void reply_error(const struct waiting *w, int status)
{
    const char *name = status == -ENOENT ? DBUS_NO_JOB : status == -EINVAL ? DBUS_NO_PARTITION : DBUS_NOT_JOINED;
    sd_bus_reply_method_errorf(w->m, name, "%s",
                               w->said.len         ? w->said.s
                               : status == -ENOENT ? "no such job has joined"
                                                   : strerror(-status));
}

static void reply_join(struct dbus *b, struct waiting *w, int status)
{
    const struct join *join = joins_find(&b->d->joins, w->job);
    if (status < 0)
        reply_error(w, status);
    else
        sd_bus_reply_method_return(w->m, "qs", (uint16_t)(join ? join->pkey : 0), text_str(&w->said));
}

static void reply_leave(struct dbus *b, struct waiting *w, int status)
{
    if (status)
        reply_error(w, status);
    else
        sd_bus_reply_method_return(w->m, NULL);
}

static void begin_join(struct dbus *b, struct waiting *w, const struct job *job, const struct text *hosts)
{
    struct text why = {0};
    uint64_t asker = w->asker;
    memcpy(w->job, job->id, sizeof(w->job));
    int rc = daemon_join(b->d, job, hosts->s + 1, asker, &why); /* each begins with a space */
    waiting_said(b, asker, text_str(&why), why.len);
    text_free(&why);
    if (rc) /* else the task's end replies */
        waiting_done(b, asker, rc);
}

static bool hold(struct dbus *b, sd_bus_message *m, uint32_t uid)
{
    struct held *h = calloc(1, sizeof(*h));
    if (!h)
        return false;
    *h = (struct held){.next = b->held, .m = sd_bus_message_ref(m), .uid = uid};
    b->held = h;
    return true;
}

static int on_join_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    struct job job = {0};
    struct text hosts = {0};
    int rc = read_join(m, &job, &hosts, err);
    bool known = job.uid == FD_UID_ANY || !b->d->users || users_get(b->d->users, job.uid)->tried;
    if (rc >= 0 && !known) {
        rc = hold(b, m, uid) ? 1 : -ENOMEM;
    } else if (rc >= 0) {
        struct waiting *w = waiting_add(b, m, reply_join);
        if (w)
            begin_join(b, w, &job, &hosts);
        rc = w ? 1 : -ENOMEM;
    }
    text_free(&hosts);
    return rc;
}

int join_on_join(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, DBUS_PARTITIONS_ACTION, on_join_known, err);
}

void join_user_known(struct dbus *b)
{
    struct held *h = b->held, *next;
    b->held = NULL;
    for (; h; h = next) {
        sd_bus_error err = SD_BUS_ERROR_NULL;
        next = h->next;
        int rc = sd_bus_message_rewind(h->m, true);
        if (rc >= 0)
            rc = on_join_known(b, h->m, h->uid, true, &err);
        if (rc < 0)
            sd_bus_reply_method_errno(h->m, rc, &err);
        sd_bus_error_free(&err);
        sd_bus_message_unref(h->m);
        free(h);
    }
}

void join_forget(struct dbus *b)
{
    for (struct held *h = b->held, *next; h; h = next) {
        next = h->next;
        sd_bus_message_unref(h->m);
        free(h);
    }
    b->held = NULL;
}

static int on_leave_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    const char *id;
    int32_t run;
    int rc = sd_bus_message_read(m, "si", &id, &run);
    if (rc >= 0 && run < -1)
        rc = sd_bus_error_setf(err, SD_BUS_ERROR_INVALID_ARGS, "run is %d; allowed: 0 to %u, -1: any", run, FD_RUN_MAX);
    struct waiting *w = rc < 0 ? NULL : waiting_add(b, m, reply_leave);
    if (!w)
        return rc < 0 ? rc : -ENOMEM;
    uint64_t asker = w->asker;
    rc = daemon_leave(b->d, id, (uint32_t)(run + 1), asker);
    if (rc)
        waiting_done(b, asker, rc);
    return 1;
}

int join_on_leave(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, DBUS_PARTITIONS_ACTION, on_leave_known, err);
}

/* ---- questions and news ---- */

static int append_hosts(sd_bus_message *m, const char *hosts)
{
    size_t len;
    int rc = sd_bus_message_open_container(m, 'a', "s");
    for (const char *host, *p = hosts; rc >= 0 && (host = joins_next_host(&p, &len));) {
        char name[HOST_MAX];
        snprintf(name, sizeof(name), "%.*s", (int)len, host);
        rc = sd_bus_message_append(m, "s", name);
    }
    return rc < 0 ? rc : sd_bus_message_close_container(m);
}

static int append_join(sd_bus_message *m, const struct join *join)
{
    int rc = sd_bus_message_open_container(m, 'r', "siqtas");
    if (rc >= 0)
        rc = sd_bus_message_append(m, "siqt", join->job, (int32_t)join->run - 1, (uint16_t)join->pkey,
                                   join->until_s * 1000000);
    if (rc >= 0)
        rc = append_hosts(m, join->hosts);
    return rc < 0 ? rc : sd_bus_message_close_container(m);
}

static int list_joins_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    sd_bus_message *reply = NULL;
    int rc = reply_list_begin(m, "(siqtas)", &reply);
    for (unsigned i = 0; rc >= 0 && i < b->d->joins.n; i++)
        rc = append_join(reply, &b->d->joins.join[i]);
    return reply_list_send(b, reply, rc);
}

int join_on_list(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, DBUS_PARTITIONS_ACTION, list_joins_known, err);
}

void join_tell(struct dbus *b, const char *job, const struct join *join)
{
    sd_bus_message *m = NULL;
    if (!join) {
        sd_bus_emit_signal(b->bus, DBUS_PATH, DBUS_MANAGER, "JobLeft", "s", job);
        return;
    }
    int rc = sd_bus_message_new_signal(b->bus, &m, DBUS_PATH, DBUS_MANAGER, "JobJoined");
    if (rc >= 0)
        rc = sd_bus_message_append(m, "sq", job, (uint16_t)join->pkey);
    if (rc >= 0)
        rc = append_hosts(m, join->hosts);
    if (rc >= 0)
        sd_bus_send(b->bus, m, NULL);
    sd_bus_message_unref(m);
}
