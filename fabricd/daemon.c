/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of the daemon's state: tasks, their results, rails. See daemon.h; start.c drives the changes. */
#include "fabricd/daemon.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/server.h"
#include "fabricd/subscribers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAITING_MAX     32
#define PUT_OFF_MOST    6 /* 64 looks */
#define UNFINISHED_US   1000000u
#define UNFINISHED_MOST 6 /* a minute */

/* True if something has changed. */
static bool refresh_rails(struct daemon *d)
{
    struct rails now;
    rails_read(&now);
    rail_health_fill(&d->health, &now);
    if (rails_equal(&d->rails, &now))
        return false;
    struct text t = {0};
    rails_changes_text(&t, &d->rails, &now);
    log_event(LOG_RAILS_CHANGED, SD_INFO, "%s", text_str(&t));
    text_free(&t);
    d->rails = now;
    return true;
}

static void tell_listener(const struct daemon *d)
{
    if (d->listener)
        d->listener->state(d->listener_arg);
}

/* Frees clients: only for callers that hold none. */
static void publish(struct daemon *d)
{
    subscribers_publish(d);
    tell_listener(d);
}

void daemon_look_at_rails(struct daemon *d)
{
    if (refresh_rails(d))
        publish(d);
    else
        subscribers_tick(d);
}

/* Each rail's changes have been logged: here the reasons are, too. */
static void health_changed(struct daemon *d)
{
    rail_health_fill(&d->health, &d->rails);
    publish(d);
}

int daemon_on_watch(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    static const struct health_rules standard;
    struct daemon *d = arg;
    bool changed = rail_health_take(&d->health, d->current.valid ? &d->current.policy.health : &standard);
    if (changed)
        health_changed(d);
    else
        rail_health_fill(&d->health, &d->rails);
    return 0;
}

int daemon_rail_drain(struct daemon *d, const struct fd_rail_order *o, bool drain)
{
    bool changed;
    int rc = rail_health_drain(&d->health, &d->rails, o, drain, &changed);
    if (changed)
        health_changed(d);
    return rc;
}

void daemon_rail_hint(struct daemon *d, const struct fd_seen *m, uint32_t uid)
{
    if (rail_health_hint(&d->health, &d->rails, m, uid))
        publish(d);
}

/* ---- tasks ---- */

/* Each repair disturbs opensm: after a repair without success the next comes later. */
static bool may_repair(const struct daemon *d)
{
    unsigned doubled = d->repairs_failed < PUT_OFF_MOST ? d->repairs_failed : PUT_OFF_MOST;
    uint64_t pause_us = (uint64_t)d->current.policy.repair_pause * 1000000 << doubled;
    return d->current.valid && d->current.policy.repair == REPAIR_YES &&
           (!d->repairs || clock_us() - d->repaired_us >= pause_us);
}

/* One task runs at a time; the others wait here, and each gets the policy in force at its beginning. */
static void start_next(struct daemon *d)
{
    struct task *t = d->first_waiting;
    if (!t || d->task_runs)
        return;
    d->first_waiting = t->next;
    d->num_waiting--;
    in_force_copy(&t->current, &d->current);
    t->generation = d->generation;
    t->ports = d->looked ? d->ports : 0;
    t->joined = d->joins.serial;
    joins_keys(&d->joins, &t->jobs);
    t->may_repair = t->kind == TASK_VERIFY && !t->client && may_repair(d);
    if (t->kind == TASK_APPLY) {
        text_free(&d->said);
        d->rolls_back = false;
        d->applying_uid = t->client ? t->uid : FD_UID_ANY;
        snprintf(d->applying, sizeof(d->applying), "%.*s", (int)sizeof(d->applying) - 1, t->name);
        log_info("putting the policy %s in force", t->name);
        tell_listener(d);
    }
    d->task_began_us = clock_us();
    manager_submit(d->manager, t);
    d->task_runs = true;
}

/* Takes t over. -EBUSY: too many wait; -ENOMEM: there is no t. */
static int submit_task(struct daemon *d, struct task *t)
{
    if (!t)
        return -ENOMEM;
    if (d->num_waiting >= WAITING_MAX && t->kind != TASK_MEMBERS) { /* many jobs may begin at once: answer_joined */
        task_free(t);
        return -EBUSY;
    }
    struct task **last = &d->first_waiting;
    while (*last)
        last = &(*last)->next;
    *last = t;
    d->num_waiting++;
    start_next(d);
    return 0;
}

/* name may be NULL. */
static struct task *new_task(enum task_kind kind, const char *name, uint64_t client)
{
    struct task *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->kind = kind;
    t->client = client;
    snprintf(t->name, sizeof(t->name), "%s", name ? name : "");
    return t;
}

int daemon_submit(struct daemon *d, enum task_kind kind, const struct policy_file *f, uint64_t client)
{
    struct task *t = new_task(kind, f ? f->name : NULL, client);
    if (t && f) {
        t->flags = f->flags;
        t->rollback = f->generation;
        t->uid = f->uid;
        text_put(&t->text, f->text, f->len);
        text_put(&t->lock_text, f->lock, f->lock_len);
    }
    return submit_task(d, t);
}

int daemon_diff(struct daemon *d, const struct policy_file *f, uint64_t client)
{
    return daemon_submit(d, TASK_DIFF, f, client);
}

/*
 * Two policies at once: the second would only wait, and its author would not know for what. Policies of the daemon
 * itself are waited for.
 */
static bool is_at_work(const struct daemon *d, struct text *why)
{
    const char *name = d->applying;
    for (const struct task *t = d->first_waiting; t && !*name; t = t->next)
        if (t->kind == TASK_APPLY)
            name = t->name;
    if (!*name)
        return false;
    text_printf(why, "%s is being put in force", name);
    if (*d->applying && d->applying_uid != FD_UID_ANY)
        text_printf(why, ", as uid %u has asked %" PRIu64 " s ago", d->applying_uid,
                    (clock_us() - d->task_began_us) / 1000000);
    if (!*d->applying || d->applying_uid != FD_UID_ANY) {
        text_printf(why, ": fabricctl status tells when that has ended; then apply again\n");
        return true;
    }
    text_printf(why, " by the daemon itself: waiting for the end of that\n");
    return false;
}

int daemon_apply(struct daemon *d, const struct policy_file *f, uint64_t client, struct text *why)
{
    if (client && d->follow && !d->conf.num_opensm) {
        text_printf(why, "this host follows %s: apply the policy on the host that runs opensm\n", d->conf.policy);
        return -EPERM;
    }
    if (f->flags & FD_CHANGE_DRY)
        return daemon_submit(d, TASK_DIFF, f, client);
    if (client && is_at_work(d, why))
        return -EALREADY;
    return daemon_submit(d, TASK_APPLY, f, client);
}

int daemon_verify(struct daemon *d, uint64_t client)
{
    if (!client && d->task_runs)
        return -EBUSY; /* the running task looks too */
    return daemon_submit(d, TASK_VERIFY, NULL, client);
}

int daemon_forget_levels(struct daemon *d, const char *class_name, uint64_t client)
{
    return submit_task(d, new_task(TASK_FORGET, class_name, client));
}

int daemon_members(struct daemon *d, const char *job, uint64_t client)
{
    struct task *t = new_task(TASK_MEMBERS, job, client);
    const struct join *join = joins_find(&d->joins, job);
    if (t)
        t->join = join ? join->serial : 0;
    return submit_task(d, t);
}

/*
 * Until the ports have the tables: a host hears of a policy when the manager's ports have it, and its own may be late.
 */
static void await_tables(struct daemon *d)
{
    struct task *t = new_task(TASK_VERIFY, NULL, 0);
    if (t)
        t->patient = true;
    submit_task(d, t);
}

static void take_look(struct daemon *d, struct manager_event *e)
{
    bool same =
        d->looked == e->looked && d->verified == (e->verified && !e->unfinished) && d->differences == e->differences;
    if (!e->looked && e->status != d->look_error)
        log_event(LOG_FABRIC_UNSEEN, SD_WARNING, "the fabric cannot be looked at: %s", smp_open_error(e->status));
    d->look_error = e->looked ? 0 : e->status;
    d->looked = e->looked;
    d->verified = e->verified && !e->unfinished;
    d->nodes = e->nodes;
    d->ports = e->ports;
    d->differences = e->differences;
    d->looked_us = clock_us();
    text_free(&d->difference_text);
    d->difference_text = e->text;
    e->text = (struct text){0};
    if (e->planes.len) {
        text_free(&d->planes);
        d->planes = e->planes;
        e->planes = (struct text){0};
        d->num_planes = e->num_planes;
        memcpy(d->plane, e->plane, sizeof(d->plane));
    }
    if (!same && d->current.valid && d->looked && !d->verified)
        log_event(LOG_FABRIC_DIFFERS, SD_WARNING, "%u differences between the policy and the fabric:\n%s",
                  d->differences, text_str(&d->difference_text));
    else if (!same && d->verified)
        log_event(LOG_FABRIC_VERIFIED, SD_INFO, "verified: %u ports of %u nodes have the policy's tables", d->ports,
                  d->nodes);
}

/* The policy that the task has put in force. */
static void take_over(struct daemon *d, struct manager_event *e)
{
    in_force_free(&d->current);
    d->current = e->next_in_force;
    d->generation = e->generation;
    if (d->current.valid)
        log_event(LOG_POLICY_IN_FORCE, SD_INFO, "policy in force: generation %" PRIu64, d->generation);
    e->next_in_force = (struct in_force){0};
}

/* 0; -EILSEQ: the fabric differs; -ENOENT: from nothing, since no policy is in force. */
static int result_of(const struct daemon *d, const struct manager_event *e)
{
    if (e->status || e->task != TASK_VERIFY || e->verified)
        return e->status;
    return d->current.valid ? -EILSEQ : -ENOENT;
}

/* Each try disturbs the fabric: after a try without success the next comes later, and later still. */
static void put_off(struct daemon *d, bool failed)
{
    d->failed = failed ? d->failed + 1 : 0;
    d->wait = failed ? 1u << (d->failed < PUT_OFF_MOST ? d->failed : PUT_OFF_MOST) : 0;
}

/* For the status. */
static void take_failure(struct daemon *d, const struct manager_event *e, const char *name)
{
    text_free(&d->failure);
    d->failed_us = clock_us();
    text_printf(&d->failure, "policy: ");
    text_yaml_string(&d->failure, name);
    text_printf(&d->failure, ", result: %s, why: ",
                e->ended == FD_ROLLED_BACK       ? "rolled back"
                : e->ended == FD_ROLLBACK_FAILED ? "rollback failed"
                : e->status == -EINVAL           ? "refused"
                                                 : "not applied");
    text_yaml_string(&d->failure, d->said.len ? d->said.s : strerror(-e->status));
}

/* A line for the client or the listener that asked for the task. */
static void tell_progress(const struct daemon *d, uint64_t asker, const char *line, size_t len)
{
    if (asker < DAEMON_LISTENER_ASKERS)
        server_progress(d->server, asker, line, len);
    else if (d->listener)
        d->listener->said(d->listener_arg, asker, line, len);
}

/* The client or the listener that asked for the task: 0, a negative errno or enum fd_ended. */
static void tell_done(const struct daemon *d, uint64_t asker, int status)
{
    if (asker < DAEMON_LISTENER_ASKERS)
        server_done(d->server, asker, status);
    else if (d->listener)
        d->listener->done(d->listener_arg, asker, status);
}

static void after_apply(struct daemon *d, const struct manager_event *e)
{
    struct text t = {0};
    char name[sizeof(d->applying)];
    memcpy(name, d->applying, sizeof(name));
    d->applying[0] = 0;
    if (e->changed && !e->next_in_force.valid) {
        static const char gone[] = "no policy is in force: opensm and the ports have what they had before the first\n";
        tell_progress(d, e->client, gone, strlen(gone));
        text_free(&d->failure);
        d->refused = true; /* by order: the configured file does not come into force by itself */
    } else if (e->changed) {
        text_free(&d->failure);
        text_printf(&t, "policy in force: generation %" PRIu64 "%s\n", e->generation,
                    e->generation == d->generation ? " as before" : "");
        tell_progress(d, e->client, t.s, t.len);
        text_free(&t);
    } else {
        log_event(LOG_POLICY_REFUSED, SD_ERR, "the policy was not put in force: %s", strerror(-e->status));
        take_failure(d, e, name);
        if (!e->client)
            d->refused = e->status == -EINVAL;
    }
    put_off(d, !e->changed && e->status == -ETIMEDOUT);
}

/* The files are handed on once, so a failure has to be tried again. */
static void after_follow(struct daemon *d, const struct manager_event *e)
{
    d->follow_failed = !e->changed && e->status;
    if (e->changed && !e->next_in_force.valid) {
        d->refused = true; /* by order */
        log_info("no policy is in force, by order on the host that manages the subnet: generation %" PRIu64,
                 e->generation);
    }
    if (!d->follow_failed)
        return;
    log_event(LOG_POLICY_REFUSED, SD_ERR, "the policy of %s was not put in force: %s", d->conf.policy,
              strerror(-e->status));
    text_free(&d->follow_problem);
    text_printf(&d->follow_problem, "%s could not be put in force: %s; the journal says why", d->conf.policy,
                strerror(-e->status));
}

/* True if the task saw the fabric, and compared it with the policy in force now. */
static bool has_looked(const struct daemon *d, const struct manager_event *e)
{
    switch (e->task) {
    case TASK_VERIFY:
        return true;
    case TASK_FORGET:
    case TASK_MEMBERS:
        return false;
    default: /* a failed APPLY measured against the policy that was refused */
        return e->changed;
    }
}

/* The findings, and the task's result. */
static void answer_task(struct daemon *d, const struct manager_event *e, int status)
{
    if (e->client < DAEMON_LISTENER_ASKERS)
        server_found(d->server, e->client, text_str(&e->found), e->found.len);
    tell_done(d, e->client, e->ended ? e->ended : status);
}

/*
 * After a change that was interrupted or could not be rolled back: soon again, and less often while trying disturbs
 * opensm.
 */
static void take_unfinished(struct daemon *d, const struct manager_event *e)
{
    if (e->unfinished && !d->unfinished)
        log_warn("a change of the policy is not finished: it is tried again until opensm and the ports agree with what "
                 "is in force");
    else if (!e->unfinished && d->unfinished)
        log_info("the interrupted change is finished: opensm and the ports agree with what is in force");
    d->unfinished = e->unfinished;
    d->verified = d->verified && !e->unfinished;
    d->unfinished_tries = e->unfinished && e->disturbed ? d->unfinished_tries + 1 : 0;
    d->unfinished_us = clock_us();
}

void daemon_go_on(struct daemon *d)
{
    unsigned tries = d->unfinished_tries < UNFINISHED_MOST ? d->unfinished_tries : UNFINISHED_MOST;
    if (d->unfinished && clock_us() - d->unfinished_us >= (UNFINISHED_US << tries))
        daemon_verify(d, 0);
    tries = d->members_tries < UNFINISHED_MOST ? d->members_tries : UNFINISHED_MOST;
    if (d->members_due && !d->task_runs && clock_us() - d->members_us >= (UNFINISHED_US << tries))
        daemon_members(d, "", 0);
}

static void take_repair(struct daemon *d, const struct manager_event *e)
{
    if (!e->repaired)
        return;
    d->repairs++;
    d->repairs_failed = e->verified ? 0 : d->repairs_failed + 1;
    d->repaired_us = clock_us();
}

static const struct join *join_by_serial(const struct daemon *d, uint64_t serial)
{
    for (unsigned i = 0; i < d->joins.n; i++)
        if (serial && d->joins.join[i].serial == serial)
            return &d->joins.join[i];
    return NULL;
}

/* The hosts of the job that the subnets do not have: a line for the client. True: there are such hosts. */
static bool tell_absent(const struct daemon *d, const struct join *join, uint64_t client)
{
    struct text line = {0};
    size_t len;
    for (const char *host, *p = join ? join->hosts : ""; (host = joins_next_host(&p, &len));) {
        char word[HOST_MAX + 2];
        snprintf(word, sizeof(word), " %.*s ", (int)len, host);
        if (strstr(text_str(&d->absent), word))
            text_printf(&line, "%s%.*s", line.len ? ", " : "no active port in a subnet of this host: ", (int)len, host);
    }
    bool is = line.len;
    text_printf(&line, "\n");
    if (is)
        tell_progress(d, client, line.s, line.len);
    text_free(&line);
    return is;
}

/* A job that does not get its partition does not keep a part of it. */
static int end_join(struct daemon *d, uint64_t serial, uint64_t client, int status)
{
    const struct join *join = join_by_serial(d, serial);
    char id[FD_JOB_MAX] = "";
    if (!status && tell_absent(d, join, client))
        status = -EHOSTUNREACH;
    if (!status && join && d->listener)
        d->listener->joined(d->listener_arg, join->job, join);
    if (!status || !join)
        return status;
    memcpy(id, join->job, sizeof(id));
    log_warn("job %s: its hosts have not got its partition: %s", id, strerror(-status));
    if (!joins_delete(&d->joins, id))
        daemon_members(d, "", 0);
    return status;
}

/* Several jobs that came while a task ran are served by one task. */
static void answer_joined(struct daemon *d)
{
    struct task *t;
    while (!d->task_runs && (t = d->first_waiting) && t->kind == TASK_MEMBERS && t->join && t->join <= d->joined) {
        d->first_waiting = t->next;
        d->num_waiting--;
        int status = end_join(d, t->join, t->client, 0);
        tell_done(d, t->client, status);
        task_free(t);
    }
}

/* A missing opensm costs little to try, other attempts disturb opensm. */
static void after_members(struct daemon *d, struct manager_event *e)
{
    d->members_due = e->status;
    d->members_tries = !e->status ? 0 : e->status == -ESRCH ? 2 : d->members_tries + 1;
    d->members_us = clock_us();
    if (!e->status) {
        d->joined = e->joined;
        text_free(&d->absent);
        d->absent = e->unknown;
        e->unknown = (struct text){0};
    }
    if (e->join)
        e->status = end_join(d, e->join, e->client, e->status);
}

static void on_outcome(struct daemon *d, struct manager_event *e)
{
    bool looked = has_looked(d, e), other_tables = false;
    d->task_runs = false;
    d->manages = e->manages;
    if (e->task == TASK_DIFF) {
        answer_task(d, e, e->status);
        return;
    }
    take_unfinished(d, e);
    take_repair(d, e);
    if (e->task == TASK_APPLY)
        after_apply(d, e);
    else if (e->task == TASK_FOLLOW)
        after_follow(d, e);
    else if (e->task == TASK_MEMBERS)
        after_members(d, e);
    if (e->changed) {
        other_tables = !in_force_same_tables(&d->current, &e->next_in_force);
        take_over(d, e);
    }
    if (looked)
        take_look(d, e);
    if (e->task == TASK_VERIFY && !e->repaired)
        d->look_took_us = clock_us() - d->task_began_us;
    refresh_rails(d); /* a new LMC moves the LIDs: subscribers learn both at once */
    publish(d);
    answer_task(d, e, result_of(d, e));
    if (e->task == TASK_FOLLOW && looked && !d->verified)
        await_tables(d);
    else if ((e->task == TASK_APPLY && !looked) || (e->task == TASK_FOLLOW && d->follow_failed) ||
             (e->task == TASK_FORGET && other_tables && d->current.valid))
        daemon_verify(d, 0);
    sd_notifyf(0, "STATUS=generation %" PRIu64 ", %s", d->generation, d->verified ? "verified" : "not verified");
}

/* The reason of a failure is the last line before the rollback. */
static void take_line(struct daemon *d, const struct text *line)
{
    d->rolls_back = d->rolls_back || !strncmp(text_str(line), ROLLING_BACK, strlen(ROLLING_BACK));
    if (d->rolls_back)
        return;
    text_free(&d->said);
    text_put(&d->said, text_str(line), strcspn(text_str(line), "\n"));
}

int daemon_on_manager(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct daemon *d = arg;
    uint64_t count;
    if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
        return -errno;
    for (struct manager_event *e; (e = manager_next_event(d->manager));) {
        if (e->kind == EVENT_OUTCOME) {
            on_outcome(d, e);
            answer_joined(d);
            start_next(d);
        } else if (e->kind == EVENT_COUNT) {
            server_count(d->server, e->client, e->what, e->done, e->of);
        } else {
            if (e->logged)
                log_info("%s", text_str(&e->text));
            if (e->task == TASK_APPLY)
                take_line(d, &e->text);
            text_put(&e->text, "\n", 1);
            tell_progress(d, e->client, e->text.s, e->text.len);
        }
        manager_event_free(e);
    }
    return 0;
}
