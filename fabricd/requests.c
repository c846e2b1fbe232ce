/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers the requests of clients: see requests.h. */
#include "fabricd/requests.h"
#include "fabricd/daemon.h"
#include "fabricd/disjoint.h"
#include "fabricd/apply/history.h"
#include "fabricd/jobs/jobs_text.h"
#include "fabricd/metrics.h"
#include "fabricd/proto/message.h"
#include "fabricd/jobs/orders.h"
#include "fabricd/proto/ratio.h"
#include "fabricd/status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ASKING_MAX 64    /* places, by one client */
#define PAGE       65536 /* bytes of a list: room in a socket whose owner does not read yet */

static bool is_our_rail(const struct daemon *d, const struct fd_where *m)
{
    for (unsigned i = 0; i < d->rails.n; i++)
        if (d->rails.rail[i].port == m->port && !strcmp(d->rails.rail[i].device, m->device))
            return d->rails.rail[i].infiniband;
    return false;
}

/* Anybody may ask: every host of the subnet can get the same facts. */
static void on_where(struct daemon *d, struct client *c, const struct fd_where *m)
{
    int rc = -EBUSY;
    if (c->asking < ASKING_MAX) {
        c->asking++; /* the answer may come at once */
        rc = is_our_rail(d, m) ? sa_ask(d->sa, m->device, m->port, m->guid, (struct sa_asker){c->id, m->h.seq})
                               : -ENODEV;
        if (rc)
            c->asking--;
    }
    if (rc)
        server_send_place(c, m->h.seq, &(struct sa_place){.guid = m->guid, .status = rc});
}

/* Begins a task, or tells the reason why not. */
static int begin_apply(struct daemon *d, struct client *c, uint32_t seq, const struct policy_file *f)
{
    struct text why = {0};
    c->task_seq = seq;
    int rc = daemon_apply(d, f, c->id, &why);
    if (why.len)
        server_send_text(c, seq, why.s, why.len);
    text_free(&why);
    return rc;
}

/* A policy of len bytes with the lock that follows. */
static void take_texts(struct policy_file *f, const void *text, size_t len, size_t lock_len)
{
    f->text = text;
    f->len = len - lock_len;
    f->lock = f->text + f->len;
    f->lock_len = lock_len;
}

static int on_apply(struct daemon *d, struct client *c, const struct fd_apply *m, size_t len)
{
    struct policy_file f = {.name = m->name};
    if (!server_is_privileged(c))
        return -EACCES;
    take_texts(&f, m + 1, len - sizeof(*m), m->lock_length);
    if (m->h.type != FD_DIFF)
        return begin_apply(d, c, m->h.seq, &f);
    c->task_seq = m->h.seq;
    return daemon_diff(d, &f, c->id);
}

static int on_policy_change(struct daemon *d, struct client *c, const struct fd_change *m, size_t len)
{
    struct policy_file f = {.name = m->name, .flags = m->flags, .generation = m->generation, .uid = c->cred.uid};
    if (!server_is_privileged(c))
        return -EACCES;
    take_texts(&f, m + 1, len - sizeof(*m), m->lock_length);
    return begin_apply(d, c, m->h.seq, &f);
}

/* From the state directory, which is root's. */
static int on_history(struct daemon *d, struct client *c, const struct fd_header *h)
{
    struct text t = {0};
    int rc = 0;
    if (!server_is_privileged(c))
        return -EACCES;
    if (h->type == FD_HISTORY)
        history_text(&d->conf, &t);
    else
        rc = history_show(&d->conf, ((const struct fd_show *)h)->generation, &t);
    server_send_text(c, h->seq, text_str(&t), t.len);
    text_free(&t);
    return rc;
}

static int on_verify(struct daemon *d, struct client *c, const struct fd_header *h)
{
    if (!server_is_privileged(c))
        return -EACCES;
    c->task_seq = h->seq;
    return daemon_verify(d, c->id);
}

/* The small ratio that an order gives; "": none is given. */
static void ratio_of(const struct fd_job *m, char out[FD_RATIO_MAX])
{
    struct ratio r = {m->ratio_small, m->ratio_large};
    memset(out, 0, FD_RATIO_MAX);
    if (m->flags & FD_JOB_RATIO && r.large)
        ratio_text(&r, out);
    else if (m->flags & FD_JOB_RATIO)
        memcpy(out, RATIO_NONE, sizeof(RATIO_NONE));
}

/* In the form of struct job. */
static uint32_t run_of_message(const struct fd_job *m)
{
    return m->flags & FD_JOB_RUN ? m->run + 1 : 0;
}

static int on_job_set(struct daemon *d, struct client *c, const struct fd_job *m)
{
    struct job job = {.uid = m->uid};
    struct text why = {0};
    if (!server_is_privileged(c))
        return -EACCES;
    memcpy(job.id, m->job, sizeof(job.id));
    memcpy(job.class_name, m->class_name, sizeof(job.class_name));
    memcpy(job.account, m->account, sizeof(job.account));
    memcpy(job.name, m->name, sizeof(job.name));
    memcpy(job.qos, m->qos, sizeof(job.qos));
    memcpy(job.partition, m->partition, sizeof(job.partition));
    memcpy(job.wish, m->wish, sizeof(job.wish));
    memcpy(job.cgroup, m->cgroup, sizeof(job.cgroup));
    job.lease_s = m->lease_s;
    job.run = run_of_message(m);
    ratio_of(m, job.small_ratio);
    int rc = m->flags & FD_JOB_RENEW ? orders_job_renew(d, &job, c->cred.uid, &why)
                                     : orders_job_set(d, &job, c->cred.uid, &why);
    if (why.len)
        server_send_text(c, m->h.seq, why.s, why.len);
    text_free(&why);
    return rc == -EBADR ? -EINVAL : rc;
}

/* With another class or alone. uid: the permitted user. */
static int give_ratio(struct daemon *d, const struct fd_job *m, uint32_t uid)
{
    char ratio[FD_RATIO_MAX];
    ratio_of(m, ratio);
    return *ratio ? orders_job_ratio(d, m->job, ratio, uid) : 0;
}

static int on_job_give(struct daemon *d, struct client *c, const struct fd_job *m)
{
    struct text why = {0};
    if (!server_is_privileged(c))
        return -EACCES;
    int rc = m->flags & FD_JOB_SAME ? 0 : orders_job_give(d, m->job, m->class_name, c->cred.uid, &why);
    if (!rc)
        rc = give_ratio(d, m, FD_UID_ANY);
    if (why.len)
        server_send_text(c, m->h.seq, why.s, why.len);
    text_free(&why);
    return rc;
}

static int on_job_choose(struct daemon *d, struct client *c, const struct fd_job *m)
{
    struct text why = {0};
    uint32_t uid = server_is_privileged(c) ? FD_UID_ANY : c->cred.uid;
    int rc = m->flags & FD_JOB_SAME ? 0 : orders_job_choose(d, m->job, m->wish, uid, &why);
    if (!rc)
        rc = give_ratio(d, m, uid);
    if (why.len)
        server_send_text(c, m->h.seq, why.s, why.len);
    text_free(&why);
    return rc;
}

static int on_job_del(struct daemon *d, struct client *c, const struct fd_job *m)
{
    return server_is_privileged(c) ? orders_job_end(d, m->job, run_of_message(m), c->cred.uid) : -EACCES;
}

/* 0: a task has begun, which answers. */
static int on_join(struct daemon *d, struct client *c, const struct fd_join *m, size_t len)
{
    struct job job = {.uid = m->job.uid, .lease_s = m->job.lease_s, .run = run_of_message(&m->job)};
    struct text why = {0}, hosts = {0};
    if (!server_is_privileged(c))
        return -EACCES;
    c->task_seq = m->job.h.seq;
    memcpy(job.id, m->job.job, sizeof(job.id));
    memcpy(job.class_name, m->job.class_name, sizeof(job.class_name));
    memcpy(job.account, m->job.account, sizeof(job.account));
    memcpy(job.name, m->job.name, sizeof(job.name));
    memcpy(job.qos, m->job.qos, sizeof(job.qos));
    memcpy(job.partition, m->job.partition, sizeof(job.partition));
    memcpy(job.wish, m->job.wish, sizeof(job.wish));
    text_put(&hosts, (const char *)(m + 1), len - sizeof(*m));
    int rc = daemon_join(d, &job, text_str(&hosts), c->id, &why);
    if (why.len)
        server_send_text(c, m->job.h.seq, why.s, why.len);
    if (rc == 1)
        server_send_done(c, m->job.h.seq, 0);
    text_free(&why);
    text_free(&hosts);
    return rc == 1 ? 0 : rc;
}

static int on_leave(struct daemon *d, struct client *c, const struct fd_job *m)
{
    if (!server_is_privileged(c))
        return -EACCES;
    c->task_seq = m->h.seq;
    return daemon_leave(d, m->job, run_of_message(m), c->id);
}

static int on_forget(struct daemon *d, struct client *c, const struct fd_class *m)
{
    struct text t = {0};
    if (!server_is_privileged(c))
        return -EACCES;
    c->task_seq = m->h.seq;
    int rc = daemon_forget(d, m->class_name, c->id, &t);
    if (t.len)
        server_send_text(c, m->h.seq, text_str(&t), t.len);
    text_free(&t);
    return rc;
}

static int on_rail(struct daemon *d, struct client *c, const struct fd_rail_order *m)
{
    struct text t = {0};
    int rc;
    if (m->h.type == FD_RAIL_SHOW)
        rc = rail_health_show(&d->health, &d->rails, m, &t);
    else if (server_is_privileged(c))
        rc = daemon_rail_drain(d, m, m->h.type == FD_RAIL_DRAIN);
    else
        rc = -EACCES;
    if (t.len)
        server_send_text(c, m->h.seq, t.s, t.len);
    text_free(&t);
    return rc;
}

static void answer_status(struct daemon *d, struct client *c, struct text *out)
{
    struct text reading = {0};
    readers_text(d, &reading);
    struct status_view v = {.clients = server_num_clients(d->server),
                            .on_paths = disjoint_clients(d),
                            .reading = &reading,
                            .jobs_of = server_is_privileged(c) ? FD_UID_ANY : c->cred.uid};
    status_text(d, &v, out);
    text_free(&reading);
}

/* One page; the client asks for the next, from the end of this page. last NULL: there is none. */
static void send_page(struct client *c, uint32_t seq, struct text *t, const char *last)
{
    struct fd_more more = {.h = message_header(FD_MORE, sizeof(more), seq)};
    server_send_text(c, seq, text_str(t), t->len);
    text_free(t);
    if (last) {
        snprintf(more.after, sizeof(more.after), "%s", last);
        server_send(c, &more, sizeof(more));
    }
    server_send_done(c, seq, 0);
}

static void answer_joins(struct daemon *d, struct client *c, const struct fd_job *m)
{
    struct text t = {0};
    if (!server_is_privileged(c)) {
        server_send_done(c, m->h.seq, -EACCES);
        return;
    }
    const char *last = joins_text(&d->joins, m->job, PAGE, &t);
    if (!t.len && !*m->job)
        text_printf(&t, "[]\n");
    send_page(c, m->h.seq, &t, last);
}

static void answer_jobs(struct daemon *d, struct client *c, const struct fd_job *m)
{
    struct text t = {0};
    const char *last = jobs_text(&t, d, "", server_is_privileged(c) ? FD_UID_ANY : c->cred.uid, m->job, PAGE);
    send_page(c, m->h.seq, &t, last);
}

static void answer_text(struct daemon *d, struct client *c, const struct fd_header *h)
{
    struct text t = {0};
    if (h->type == FD_STATUS)
        answer_status(d, c, &t);
    else if (h->type == FD_METRICS)
        metrics_text(d, server_is_privileged(c), &t);
    else if (h->type == FD_LOCK)
        lock_text(&t, &d->current.lock);
    else
        rails_text(&t, &d->rails, "");
    server_send_text(c, h->seq, text_str(&t), t.len);
    text_free(&t);
    server_send_done(c, h->seq, 0);
}

static void answer_name(struct daemon *d, struct client *c, const struct fd_name *m)
{
    struct fd_name answer = *m;
    answer.h = message_header(FD_NAMED, sizeof(answer), m->h.seq);
    names_answer(&d->names, c->id, c->cred.uid, &answer);
    server_send(c, &answer, sizeof(answer));
}

/* The user on whom the answer depends. FD_UID_ANY: on none. */
static uint32_t user_of_request(const struct daemon *d, const struct client *c, const struct fd_header *h)
{
    const struct fd_job *m = (const struct fd_job *)h;
    const struct job *job = NULL;
    if (h->type == FD_HELLO)
        return c->cred.uid;
    if ((h->type == FD_JOB_SET || h->type == FD_JOIN) && m->uid != FD_UID_ANY)
        return m->uid;
    if (h->type == FD_JOB_SET || h->type == FD_JOB_CHOOSE || h->type == FD_JOB_GIVE)
        job = jobs_find(&d->jobs, m->job);
    return job ? job->uid : FD_UID_ANY;
}

/* Nothing more is going to be known of it soon. */
static bool is_known(void *arg, struct client *c, const void *msg)
{
    const struct daemon *d = arg;
    uint32_t uid = user_of_request(d, c, msg);
    return uid == FD_UID_ANY || !d->users || users_get(d->users, uid)->tried;
}

void requests_user_known(void *arg, uid_t uid)
{
    struct daemon *d = arg;
    orders_user_known(d, uid);
    server_go_on(d->server, is_known, d);
    if (d->listener)
        d->listener->user(d->listener_arg);
    subscribers_publish(d);
}

static void on_message(void *arg, struct client *c, const void *msg, size_t len)
{
    struct daemon *d = arg;
    const struct fd_header *h = msg;
    int rc = message_check(msg, len);
    if (rc) {
        server_send_done(c, len >= sizeof(*h) ? h->seq : 0, rc);
        c->drop = true;
        return;
    }
    if (!is_known(d, c, msg) && server_hold(c, msg, len))
        return;
    switch (h->type) {
    case FD_HELLO:
        subscribers_on_hello(d, c, msg);
        return;
    case FD_WHERE:
        on_where(d, c, msg);
        return;
    case FD_PATHS:
        disjoint_on_paths(d, c, msg);
        return;
    case FD_PATHS_SHOW:
        disjoint_on_show(d, c, msg);
        return;
    case FD_READS:
        readers_on_reads(d, c, msg);
        return;
    case FD_NAME:
        answer_name(d, c, msg);
        return;
    case FD_SEEN:
        daemon_rail_hint(d, msg, c->cred.uid);
        return;
    case FD_RAIL_DRAIN:
    case FD_RAIL_UNDRAIN:
    case FD_RAIL_SHOW:
        server_send_done(c, h->seq, on_rail(d, c, msg));
        return;
    case FD_APPLY:
    case FD_DIFF:
        rc = on_apply(d, c, msg, len);
        break;
    case FD_CHANGE:
        rc = on_policy_change(d, c, msg, len);
        break;
    case FD_HISTORY:
    case FD_SHOW:
        server_send_done(c, h->seq, on_history(d, c, h));
        return;
    case FD_VERIFY:
        rc = on_verify(d, c, h);
        break;
    case FD_JOB_SET:
        rc = on_job_set(d, c, msg);
        break;
    case FD_JOB_DEL:
        rc = on_job_del(d, c, msg);
        break;
    case FD_JOB_GIVE:
        rc = on_job_give(d, c, msg);
        break;
    case FD_JOB_CHOOSE:
        rc = on_job_choose(d, c, msg);
        break;
    case FD_FORGET:
        rc = on_forget(d, c, msg);
        break;
    case FD_JOIN:
        rc = on_join(d, c, msg, len);
        break;
    case FD_LEAVE:
        rc = on_leave(d, c, msg);
        break;
    case FD_JOIN_LIST:
        answer_joins(d, c, msg);
        return;
    case FD_JOB_LIST:
        answer_jobs(d, c, msg);
        return;
    default:
        answer_text(d, c, h);
        return;
    }
    bool of_job = h->type == FD_JOB_SET || h->type == FD_JOB_GIVE || h->type == FD_JOB_DEL || h->type == FD_JOB_CHOOSE;
    if (rc || of_job)
        server_send_done(c, h->seq, rc); /* a task's end is told by server_done */
    if (!rc && of_job)
        subscribers_publish(d);
}

static void on_left(void *arg, const struct client *c)
{
    struct daemon *d = arg;
    const struct job *job = subscribers_job(d, c);
    if (job && job->lease_s)
        jobs_seen(&d->jobs, job->id, orders_now_us());
    if (c->subscriber.subscribed)
        readers_divide_soon(arg);
    names_left(&d->names, c->id);
}

const struct server_events requests_events = {.message = on_message, .left = on_left};
