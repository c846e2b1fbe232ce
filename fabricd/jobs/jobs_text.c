/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs for people: see jobs_text.h. */
#include "fabricd/jobs/jobs_text.h"
#include "fabricd/jobs/orders.h"

#include <search.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void put_pair(struct text *t, const char *key, const char *value)
{
    if (!*value)
        return;
    text_printf(t, ", %s: ", key);
    text_yaml_string(t, value);
}

/* The reason why the job does not have the requested class. */
static void put_note(struct text *t, const struct job *job, const struct policy *p, const struct user *user)
{
    char note[64 + FD_NAME_MAX] = "";
    if (p && *job->class_name && policy_class_by_name(p, job->class_name) < 0)
        snprintf(note, sizeof(note), "the policy in force has no class '%s'", job->class_name);
    else if (p && *job->wish && !*job->class_name && !seats_may_choose(job, p, user, job->wish))
        snprintf(note, sizeof(note), "the policy does not let it choose '%s'", job->wish);
    else if (p && job->full)
        snprintf(note, sizeof(note), "class '%s' was full", p->classes[job->full - 1].name);
    put_pair(t, "note", note);
}

static void put_utc_time(struct text *t, const char *key, time_t at)
{
    struct tm tm;
    char s[32];
    if (at && gmtime_r(&at, &tm) && strftime(s, sizeof(s), "%Y-%m-%dT%H:%M:%SZ", &tm))
        put_pair(t, key, s);
}

static void put_job_line(struct text *t, const struct daemon *d, const struct job *job, const char *indent)
{
    const struct policy *p = d->current.valid ? &d->current.policy : NULL;
    const struct user *user = users_get(d->users, job->uid);
    const char *source;
    const struct policy_class *c = orders_class_of(d, job, &source);
    text_printf(t, "%s- {id: ", indent);
    text_yaml_string(t, job->id);
    put_pair(t, "class", c ? c->name : job->class_name);
    put_pair(t, "source", source);
    put_utc_time(t, "since", job->since);
    if (job->uid != FD_UID_ANY) {
        text_printf(t, ", uid: %u", job->uid);
        if (user->name[strspn(user->name, "0123456789")])
            put_pair(t, "user", user->name);
    }
    put_pair(t, "account", job->account);
    put_pair(t, "qos", job->qos);
    put_pair(t, "partition", job->partition);
    put_pair(t, "name", job->name);
    put_pair(t, "cgroup", job->cgroup);
    if (*job->small_ratio) /* in quotes: 1:30 is a number of base 60 to some */
        text_printf(t, ", small_ratio: \"%s\"", job->small_ratio);
    if (job->lease_s)
        text_printf(t, ", lease: %u", job->lease_s);
    if (job->run > 1) /* most jobs have but the first */
        text_printf(t, ", run: %u", job->run - 1);
    put_note(t, job, p, user);
    text_put(t, "}\n", 2);
}

struct walk {
    struct text *out;
    const struct daemon *d;
    const char *indent, *after, *last;
    uint32_t uid;
    size_t most;
    bool more;
};

static void list_job(const void *node, VISIT which, void *arg)
{
    struct walk *w = arg;
    const struct job *job = *(const struct job *const *)node;
    if ((which != postorder && which != leaf) || w->more || strcmp(job->id, w->after) <= 0 ||
        (w->uid != FD_UID_ANY && w->uid != job->uid))
        return;
    if (w->out->len >= w->most) {
        w->more = true;
        return;
    }
    put_job_line(w->out, w->d, job, w->indent);
    w->last = job->id;
}

const char *jobs_text(struct text *out, const struct daemon *d, const char *indent, uint32_t uid, const char *after,
                      size_t most)
{
    struct walk w = {
        .out = out, .d = d, .indent = indent, .uid = uid, .after = after, .most = out->len + (most ? most : 1)};
    twalk_r(d->jobs.by_id, list_job, &w);
    return w.more ? w.last : NULL;
}
