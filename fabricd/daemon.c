/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's state and what changes it: start, policy, rails, the manager's events. See daemon.h. */
#include "fabricd/daemon.h"
#include "fabricd/apply.h"
#include "fabricd/log.h"
#include "fabricd/opensm.h"
#include "fabricd/server.h"
#include "fabricd/store.h"
#include "fabricd/subscribers.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WAITING_MAX  32
#define PUT_OFF_MOST 6 /* 64 looks: an hour by default */

static uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* True if something has changed. */
static bool refresh_rails(struct daemon *d)
{
    struct rails now;
    rails_read(&now);
    if (rails_equal(&d->rails, &now))
        return false;
    struct text t = {0};
    rails_changes_text(&t, &d->rails, &now);
    log_info("%s", text_str(&t));
    text_free(&t);
    d->rails = now;
    return true;
}

static void tell_listener(const struct daemon *d)
{
    if (d->listener)
        d->listener->state(d->listener_arg);
}

/* Frees clients: for those who hold none. */
static void publish(struct daemon *d)
{
    subscribers_publish(d);
    tell_listener(d);
}

/* ---- tasks ---- */

/* One task runs at a time; the others wait here, each to be given the policy that is in force when it begins. */
static void start_next(struct daemon *d)
{
    struct task *t = d->first_waiting;
    if (!t || d->task_runs)
        return;
    d->first_waiting = t->next;
    d->num_waiting--;
    in_force_copy(&t->current, &d->current);
    if (t->kind == TASK_APPLY) {
        snprintf(d->applying, sizeof(d->applying), "%.*s", (int)sizeof(d->applying) - 1, t->name);
        log_info("putting the policy %s in force", t->name);
        tell_listener(d);
    }
    manager_submit(d->manager, t);
    d->task_runs = true;
}

static int submit(struct daemon *d, enum task_kind kind, const struct policy_file *f, uint64_t client)
{
    if (d->num_waiting == WAITING_MAX)
        return -EBUSY;
    struct task *t = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->kind = kind;
    t->client = client;
    if (f) {
        snprintf(t->name, sizeof(t->name), "%.*s", (int)sizeof(t->name) - 1, f->name);
        text_put(&t->text, f->text, f->len);
        text_put(&t->lock_text, f->lock, f->lock_len);
    }
    struct task **last = &d->first_waiting;
    while (*last)
        last = &(*last)->next;
    *last = t;
    d->num_waiting++;
    start_next(d);
    return 0;
}

int daemon_diff(struct daemon *d, const struct policy_file *f, uint64_t client)
{
    return submit(d, TASK_DIFF, f, client);
}

int daemon_apply(struct daemon *d, const struct policy_file *f, uint64_t client, struct text *why)
{
    int rc = store_reserve(&d->conf, f->len);
    if (!rc)
        return submit(d, TASK_APPLY, f, client);
    text_printf(why, "%s: %s: the policy could not be kept, so that nothing is changed", d->conf.state, strerror(-rc));
    log_error("%s", text_str(why));
    text_put(why, "\n", 1);
    return rc;
}

int daemon_verify(struct daemon *d, uint64_t client)
{
    if (!client && d->task_runs)
        return -EBUSY; /* the running task looks too */
    return submit(d, TASK_VERIFY, NULL, client);
}

/* The same file for the same fabric. What the ports can do may have changed the tables. */
static bool same_policy(const struct in_force *a, const struct in_force *b)
{
    return a->valid && b->valid && a->text.len == b->text.len &&
           !memcmp(text_str(&a->text), text_str(&b->text), a->text.len) && tables_equal(&a->tables, &b->tables);
}

static void take_look(struct daemon *d, struct manager_event *e)
{
    bool same = d->looked == e->looked && d->verified == e->verified && d->differences == e->differences;
    if (!e->looked && e->status != d->look_error)
        log_warn("the fabric cannot be looked at: %s", strerror(-e->status));
    d->look_error = e->looked ? 0 : e->status;
    d->looked = e->looked;
    d->verified = e->verified;
    d->nodes = e->nodes;
    d->ports = e->ports;
    d->differences = e->differences;
    d->looked_us = now_us();
    text_free(&d->difference_text);
    d->difference_text = e->text;
    e->text = (struct text){0};
    if (!same && d->current.valid && d->looked && !d->verified)
        log_warn("%u differences between the policy and the fabric:\n%s", d->differences,
                 text_str(&d->difference_text));
    else if (!same && d->verified)
        log_info("verified: %u ports of %u nodes have the policy's tables", d->ports, d->nodes);
}

/* The same policy once more; what the fabric can do may be something else now. 0, or that cannot be kept. */
static int keep_policy(struct daemon *d, const struct manager_event *e)
{
    log_info("policy in force: generation %" PRIu64 " as before", d->generation);
    if (lock_equal(&d->current.lock, &e->next_in_force.lock))
        return 0;
    d->current.lock = e->next_in_force.lock;
    d->current.tables = e->next_in_force.tables; /* ports have them; budgets may be others */
    return store_save_lock(&d->conf, &d->current);
}

static int keep_new(struct daemon *d, struct manager_event *e)
{
    in_force_free(&d->current);
    d->current = e->next_in_force;
    e->next_in_force = (struct in_force){0};
    int rc = store_save(&d->conf, &d->current, ++d->generation);
    log_info("policy in force: generation %" PRIu64, d->generation);
    return rc;
}

/* Ports have it. At the next start what was kept before would be in force again: that is no success. */
static void keep(struct daemon *d, struct manager_event *e)
{
    struct text t = {0};
    e->status = same_policy(&d->current, &e->next_in_force) ? keep_policy(d, e) : keep_new(d, e);
    if (!e->status)
        return;
    text_printf(&t, "%s: %s: the policy is in force, but could not be kept: apply it again when that is mended\n",
                d->conf.state, strerror(-e->status));
    server_progress(d->server, e->client, t.s, t.len);
    text_free(&t);
}

/*
 * A lock that does not know the fabric was made without one being seen: by hand, on a node that has been given a policy
 * alone, or when there were no locks. Now it has been seen. A fact that older locks
 * do not tell is taken alone: the others are those that the ports' tables were made with.
 */
static bool learn_fabric(struct daemon *d, const struct manager_event *e)
{
    struct policy_lock lock = d->current.lock;
    struct qos_tables tables;
    struct diag diag = {.file = "policy"};
    if (!d->current.valid || !e->looked || !e->caps.low_cap || !e->caps.mtu)
        return false;
    if (!lock_knows_fabric(&lock))
        lock.fabric = e->caps;
    else if (!lock.fabric.oversubscription)
        lock.fabric.oversubscription = e->caps.oversubscription;
    else
        return false;
    bool fits = policy_compile(&d->current.policy, &lock, &tables, &diag);
    if (fits) {
        d->current.tables = tables;
        d->current.lock = lock;
        store_save_lock(&d->conf, &d->current);
    } else {
        log_warn("the policy in force does not fit the fabric:\n%s", text_str(&diag.out));
    }
    text_free(&diag.out);
    return fits;
}

/* 0; -EILSEQ: the fabric differs; -ENOENT: from nothing, since no policy is in force. */
static int result_of(const struct daemon *d, const struct manager_event *e)
{
    if (e->status || e->task != TASK_VERIFY || e->verified)
        return e->status;
    return d->current.valid ? -EILSEQ : -ENOENT;
}

/* Each try disturbs the fabric: after one that ports did not take the next one comes later, and later still. */
static void put_off(struct daemon *d, bool failed)
{
    d->failed = failed ? d->failed + 1 : 0;
    d->wait = failed ? 1u << (d->failed < PUT_OFF_MOST ? d->failed : PUT_OFF_MOST) : 0;
}

static void on_outcome(struct daemon *d, struct manager_event *e)
{
    bool taken = !e->status;
    d->task_runs = false;
    if (e->task == TASK_DIFF) {
        server_done(d->server, e->client, e->status);
        return;
    }
    if (e->task == TASK_APPLY) {
        d->applying[0] = 0;
        store_release(&d->conf);
        if (taken) {
            put_off(d, false);
            keep(d, e);
        } else {
            log_error("the policy was not put in force: %s", strerror(-e->status));
            d->refused = e->status == -EINVAL;
            put_off(d, e->status == -ETIMEDOUT);
        }
    }
    /* What a failed apply saw was measured against the policy that was refused. */
    bool again = e->task == TASK_APPLY && !taken;
    if (e->task == TASK_VERIFY && !e->client && learn_fabric(d, e))
        again = true;
    if (!again)
        take_look(d, e);
    refresh_rails(d); /* a new LMC moves the LIDs: subscribers learn both at once */
    publish(d);
    server_done(d->server, e->client, result_of(d, e));
    if (again)
        daemon_verify(d, 0);
    sd_notifyf(0, "STATUS=generation %" PRIu64 ", %s", d->generation, d->verified ? "verified" : "not verified");
}

static int on_manager(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct daemon *d = arg;
    uint64_t count;
    if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
        return -errno;
    for (struct manager_event *e; (e = manager_next_event(d->manager));) {
        if (e->kind == EVENT_OUTCOME) {
            on_outcome(d, e);
            start_next(d);
        } else {
            if (e->task == TASK_APPLY)
                log_info("%s", text_str(&e->text));
            text_put(&e->text, "\n", 1);
            server_progress(d->server, e->client, e->text.s, e->text.len);
        }
        manager_event_free(e);
    }
    return 0;
}

/* ---- the policy at start ---- */

static int apply_text(struct daemon *d, const char *name, const struct text *text, const struct text *lock)
{
    struct policy_file f = {name, text_str(text), text_str(lock), text->len, lock->len};
    struct text why = {0};
    int rc = daemon_apply(d, &f, 0, &why);
    text_free(&why);
    return rc;
}

/* A daemon that was killed between writing opensm's file and seeing that the ports took it leaves that file behind. */
static void warn_if_conf_differs(const struct daemon *d)
{
    struct text have = {0}, want = {0};
    if (d->conf.manage && !text_read_file(&have, d->conf.opensm_config, OPENSM_CONF_MAX)) {
        opensm_conf_merge(text_str(&have), &d->current.tables, &want);
        if (strcmp(text_str(&have), text_str(&want)))
            log_warn("%s is not what the policy in force makes of it; fabricctl policy apply writes it anew",
                     d->conf.opensm_config);
    }
    text_free(&have);
    text_free(&want);
}

static void load_policy(struct daemon *d)
{
    struct text file = {0}, lock = {0};
    bool have_file = d->conf.policy[0] && !store_read_file(d->conf.policy, &file, &lock);
    if (d->conf.policy[0] && !have_file)
        log_error("%s cannot be read", d->conf.policy);
    int rc = store_load(&d->conf, &d->current);
    if (!rc) {
        if (!d->generation)
            d->generation = 1;
        if (have_file &&
            (file.len != d->current.text.len || memcmp(text_str(&file), text_str(&d->current.text), file.len)))
            log_warn("%s differs from the policy in force; fabricctl policy apply (or SIGHUP) puts it in force",
                     d->conf.policy);
        warn_if_conf_differs(d);
        daemon_verify(d, 0);
    } else if (rc == -EINVAL) {
        d->refused = true;
    } else if (have_file && d->conf.manage) {
        apply_text(d, d->conf.policy, &file, &lock);
    } else if (have_file && store_adopt_file(&d->conf, &d->current, &file)) {
        store_save(&d->conf, &d->current, ++d->generation);
        daemon_verify(d, 0);
    }
    text_free(&file);
    text_free(&lock);
}

static void on_place(void *arg, struct sa_asker who, const struct sa_place *place)
{
    struct daemon *d = arg;
    server_place(d->server, who, place);
}

/* ---- timers and signals ---- */

static int on_verify_timer(sd_event_source *source, uint64_t usec, void *arg)
{
    struct daemon *d = arg;
    if (d->current.valid)
        daemon_verify(d, 0);
    else if (d->wait)
        d->wait--;
    else if (d->conf.policy[0] && !d->refused && !d->task_runs)
        load_policy(d); /* perhaps opensm is up by now */
    sd_event_source_set_time_relative(source, (uint64_t)d->conf.verify_interval_s * 1000000);
    return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_rails_timer(sd_event_source *source, uint64_t usec, void *arg)
{
    struct daemon *d = arg;
    if (refresh_rails(d))
        publish(d);
    else
        subscribers_tick(d);
    sd_event_source_set_time_relative(source, (uint64_t)d->conf.rails_interval_ms * 1000);
    return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int apply_file(struct daemon *d, const char *path)
{
    struct text t = {0}, lock = {0};
    int rc = store_read_file(path, &t, &lock);
    if (rc)
        log_error("%s: %s", path, strerror(-rc));
    else
        rc = apply_text(d, path, &t, &lock);
    text_free(&t);
    text_free(&lock);
    return rc;
}

static int on_hup(sd_event_source *source, const struct signalfd_siginfo *si, void *arg)
{
    struct daemon *d = arg;
    if (!d->conf.policy[0])
        log_warn("SIGHUP: the configuration names no policy file; use fabricctl policy apply FILE");
    else if (apply_file(d, d->conf.policy) == -EBUSY)
        log_warn("SIGHUP: too many tasks are waiting; send it again later");
    return 0;
}

static int on_term(sd_event_source *source, const struct signalfd_siginfo *si, void *arg)
{
    return sd_event_exit(((struct daemon *)arg)->event, 0);
}

/* ---- start ---- */

static int start_loop(struct daemon *d)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    int rc = sigprocmask(SIG_BLOCK, &set, NULL) ? -errno : sd_event_default(&d->event);
    if (rc >= 0)
        rc = sd_event_add_signal(d->event, NULL, SIGTERM, on_term, d);
    if (rc >= 0)
        rc = sd_event_add_signal(d->event, NULL, SIGINT, on_term, d);
    if (rc >= 0)
        rc = sd_event_add_signal(d->event, NULL, SIGHUP, on_hup, d);
    if (rc >= 0)
        rc = sd_event_add_time_relative(d->event, NULL, CLOCK_MONOTONIC, (uint64_t)d->conf.rails_interval_ms * 1000, 0,
                                        on_rails_timer, d);
    if (rc >= 0 && d->conf.verify_interval_s)
        rc = sd_event_add_time_relative(d->event, NULL, CLOCK_MONOTONIC, (uint64_t)d->conf.verify_interval_s * 1000000,
                                        0, on_verify_timer, d);
    if (rc >= 0)
        rc = sd_event_set_watchdog(d->event, 1);
    if (rc < 0)
        log_error("event loop: %s", strerror(-rc));
    return rc < 0 ? rc : 0;
}

int daemon_start(struct daemon *d, const struct conf *conf, const struct server_events *events)
{
    struct diag diag = {0};
    char path[sizeof(conf->socket)];
    *d = (struct daemon){.conf = *conf, .lock_fd = -1, .started_us = now_us()};
    int rc = store_open(conf, &d->lock_fd);
    if (!rc)
        rc = start_loop(d); /* before the thread, which inherits the blocked signals */
    if (rc)
        return rc;
    if (!conf_expand_host(conf->socket, path, sizeof(path))) {
        log_error("socket %s: too long with the host's name", conf->socket);
        return -ENAMETOOLONG;
    }
    if (!jobs_open(&d->jobs, conf->state, &diag))
        log_error("%s%u jobs are known, those that cannot be read are not", text_str(&diag.out), d->jobs.n);
    text_free(&diag.out);
    rails_read(&d->rails);
    d->manager = manager_start(conf, apply_run);
    if (!d->manager || sd_event_add_io(d->event, NULL, manager_fd(d->manager), EPOLLIN, on_manager, d) < 0) {
        log_error("cannot start the manager thread: %s", strerror(errno));
        return -EAGAIN;
    }
    d->sa = sa_start(d->event, on_place, d);
    if (!d->sa)
        return -ENOMEM;
    d->server = server_start(d->event, &d->conf, path, events, d);
    if (!d->server)
        return -errno;
    d->generation = store_load_generation(&d->conf);
    load_policy(d);
    log_info("serving %s, %u rails, %s", path, d->rails.n,
             conf->manage ? "managing this node's opensm" : "opensm is elsewhere");
    sd_notify(0, "READY=1");
    return 0;
}

void daemon_stop(struct daemon *d)
{
    sd_notify(0, "STOPPING=1");
    readers_stop(d);
    if (d->server)
        server_stop(d->server);
    sa_stop(d->sa);
    if (d->manager)
        manager_stop(d->manager);
    for (struct task *t = d->first_waiting, *next; t; t = next) {
        next = t->next;
        task_free(t);
    }
    jobs_close(&d->jobs);
    in_force_free(&d->current);
    text_free(&d->difference_text);
    sd_event_unref(d->event);
    if (d->lock_fd >= 0)
        close(d->lock_fd);
}
