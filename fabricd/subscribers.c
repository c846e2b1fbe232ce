/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells clients the daemon's state: see subscribers.h. */
#include "fabricd/subscribers.h"
#include "fabricd/base/clock.h"
#include "fabricd/daemon.h"
#include "fabricd/jobs/orders.h"
#include "fabricd/base/log.h"
#include "fabricd/server.h"
#include "fabricd/state.h"

#include <string.h>

static const struct job *believed(const struct daemon *d, const struct client *c, struct text *why)
{
    return claim_job(&c->subscriber.claim, &d->jobs, c->subscriber.job, c->cred.uid, why);
}

const struct job *subscribers_job(const struct daemon *d, const struct client *c)
{
    return c->subscriber.subscribed ? believed(d, c, NULL) : NULL;
}

/* By the policy in force, which must exist. job: NULL: of no job. */
static unsigned class_of(const struct daemon *d, const struct client *c, const struct job *job)
{
    const struct policy_class *class = job ? orders_class_of(d, job, NULL) : NULL;
    return class ? (unsigned)(class - d->current.policy.classes)
                 : seats_class_of_user(&d->current.policy, users_get(d->users, c->cred.uid));
}

/* Not everybody is to be told of each that comes. */
static unsigned power_of_two(unsigned n)
{
    unsigned p = 1;
    while (p < n)
        p *= 2;
    return p;
}

/* Counts the processes of jobs with a ratio, which share it. True if a count has changed. */
static bool count_of_jobs(struct daemon *d)
{
    bool changed = false;
    for (struct client *c = server_clients(d->server); c; c = c->next)
        if (c->subscriber.of_ratio)
            c->subscriber.of_ratio->processes = 0;
    for (struct client *c = server_clients(d->server); c; c = c->next)
        if (c->subscriber.of_ratio)
            c->subscriber.of_ratio->processes++;
    for (struct client *c = server_clients(d->server); c; c = c->next) {
        struct job *job = c->subscriber.of_ratio;
        if (!job || job->sharers == power_of_two(job->processes))
            continue;
        job->sharers = power_of_two(job->processes);
        changed = true;
    }
    return changed;
}

/* Looks up classes anew, and counts the sharers of each. True if a count has changed. */
static bool count_sharers(struct daemon *d)
{
    unsigned n[POLICY_CLASSES_MAX] = {0}, before[POLICY_CLASSES_MAX];
    for (struct client *c = server_clients(d->server); c; c = c->next) {
        struct subscriber *u = &c->subscriber;
        u->of_ratio = NULL;
        if (u->subscribed && d->current.valid) {
            const struct job *job = believed(d, c, NULL);
            u->of_ratio = job && *job->small_ratio ? (struct job *)job : NULL; /* the table is the daemon's */
            u->class_index = class_of(d, c, job);
            n[u->class_index]++;
        }
    }
    memcpy(before, d->sharers, sizeof(before));
    for (unsigned i = 0; i < POLICY_CLASSES_MAX; i++)
        d->sharers[i] = power_of_two(n[i]);
    bool of_jobs = count_of_jobs(d);
    return of_jobs || memcmp(before, d->sharers, sizeof(before)) != 0;
}

/* The job for the answer to a client; NULL: the daemon has no such job, or the client does not belong to it. */
static const struct job *job_asked_about(const struct daemon *d, const struct client *c)
{
    return c->subscriber.as_owner ? jobs_find(&d->jobs, c->subscriber.job) : believed(d, c, NULL);
}

int subscribers_class(const struct daemon *d, const struct client *c)
{
    return d->current.valid ? (int)class_of(d, c, job_asked_about(d, c)) : -1;
}

static void fill_state(const struct daemon *d, const struct client *c, struct fd_state_long *out)
{
    const struct subscriber *u = &c->subscriber;
    struct state_asker who = {.job = u->job,
                              .levels = u->levels,
                              .spread = u->spread,
                              .health = u->health,
                              .uid = c->cred.uid,
                              .since_us = u->since_us};
    const struct job *job = job_asked_about(d, c);
    if (d->current.valid) {
        const struct user *user = users_get(d->users, job ? job->uid : c->cred.uid);
        who.class_index = class_of(d, c, job);
        who.pkey = seats_partition(&d->current.policy, user, job, who.class_index)->pkey;
    }
    who.job_sharers = job && job->sharers ? job->sharers : 1;
    if (job)
        ratio_parse(job->small_ratio, &who.ratio);
    state_fill(d, &who, d->sharers, out);
}

/* Sends the client's state, and remembers its service levels. */
static void send_state(struct client *c)
{
    const struct fd_state *m = &c->subscriber.told.s;
    if (!m->status)
        c->subscriber.levels_told |= state_levels(m);
    server_send(c, m, m->h.length);
}

void subscribers_publish(struct daemon *d)
{
    count_sharers(d);
    for (struct client *c = server_clients(d->server); c; c = c->next) {
        struct fd_state_long m;
        if (!c->subscriber.subscribed)
            continue;
        fill_state(d, c, &m);
        m.s.changed = state_changes(&c->subscriber.told.s, &m.s);
        if (!m.s.changed)
            continue;
        c->subscriber.told = m;
        send_state(c);
    }
    readers_divide_soon(d);
    server_free_dropped(d->server);
}

bool subscribers_tell_paths(struct client *c)
{
    if (!c->subscriber.subscribed)
        return false;
    c->subscriber.told.s.h.seq = 0;
    c->subscriber.told.s.changed = FD_CHANGED_PATHS;
    send_state(c);
    return true;
}

void subscribers_tick(struct daemon *d)
{
    if (count_sharers(d)) /* some have left */
        subscribers_publish(d);
}

/* A process outside of jobs has the class of its user; a wrong claim is worth a line. */
static void look_at_claim(const struct daemon *d, struct client *c)
{
    struct subscriber *u = &c->subscriber;
    struct text why = {0};
    if (!*u->job || u->as_owner)
        return;
    claim_look(&u->claim, c->fd, &c->cred);
    if (!believed(d, c, &why) && why.len && !u->claim.told) {
        log_by_uid(c->cred.uid, SD_WARNING, "pid %d of uid %u says that it is of job %s, and is not: %s", c->cred.pid,
                   c->cred.uid, u->job, text_str(&why));
        u->claim.told = true;
    }
    text_free(&why);
}

void subscribers_on_hello(struct daemon *d, struct client *c, const struct fd_hello *m)
{
    struct subscriber *u = &c->subscriber;
    u->since_us = u->since_us ? u->since_us : clock_us();
    memcpy(u->job, m->job, sizeof(u->job));
    u->subscribed = m->flags & FD_HELLO_SUBSCRIBE;
    u->levels = m->flags & FD_HELLO_LEVELS;
    u->spread = m->flags & FD_HELLO_SPREAD;
    u->health = m->flags & FD_HELLO_HEALTH;
    u->as_owner = m->flags & FD_HELLO_OWNER && server_is_privileged(c);
    c->reader.paces = m->flags & FD_HELLO_PACE;
    look_at_claim(d, c);
    bool others = count_sharers(d);
    fill_state(d, c, &u->told);
    u->told.s.h.seq = m->h.seq;
    u->told.s.changed = m->flags & FD_HELLO_PLACES ? FD_CAN_PLACES : 0;
    u->told.s.changed |= m->flags & FD_HELLO_PATHS ? FD_CAN_PATHS : 0;
    if (m->flags & FD_HELLO_KNOWN && !job_asked_about(d, c))
        u->told.s.changed |= FD_NO_JOB;
    send_state(c);
    if (others)
        subscribers_publish(d);
    else
        readers_divide_soon(d);
}

unsigned subscribers_with_levels(const struct daemon *d, uint16_t levels)
{
    unsigned n = 0;
    for (const struct client *c = server_clients(d->server); c; c = c->next)
        n += (c->subscriber.levels_told & levels) != 0;
    return n;
}
