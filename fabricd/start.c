/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon from start to end: the policy's files, timers, signals. See start.h. */
#include "fabricd/start.h"
#include "fabricd/disjoint.h"
#include "fabricd/base/clock.h"
#include "fabricd/apply/follow.h"
#include "fabricd/base/log.h"
#include "fabricd/server.h"
#include "fabricd/fabric/sms.h"
#include "fabricd/apply/store.h"
#include "fabricd/apply/work.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_AMISS_US 2000000u
#define PATHS_TICK_US 500000u
#define LOOK_PART     10 /* limit of looks: part of the time */

/* ---- the policy at start ---- */

static int apply_text(struct daemon *d, const char *name, const struct text *text, const struct text *lock)
{
    struct policy_file f = {
        .name = name, .text = text_str(text), .lock = text_str(lock), .len = text->len, .lock_len = lock->len};
    struct text why = {0};
    int rc = daemon_apply(d, &f, 0, &why);
    text_free(&why);
    return rc;
}

/* By hand, or by another daemon. A change that this daemon was killed in is finished or undone by the first look. */
static void warn_if_conf_differs(const struct daemon *d)
{
    struct sms sms;
    struct text why = {0};
    sms_find(&sms, &d->conf);
    if (!sms_read(&sms, &why) && sms_merge(&sms, &d->current.tables, &d->current.planes))
        log_warn("%s is not what the policy in force makes of it; fabricctl policy apply writes it anew",
                 sms.sm[0].opensm.config);
    text_free(&why);
    sms_free(&sms);
}

static void load_policy(struct daemon *d)
{
    struct text file = {0}, lock = {0};
    bool have_file = d->conf.policy[0] && !store_read_file(d->conf.policy, &file, &lock);
    if (d->conf.policy[0] && !have_file)
        log_error("%s cannot be read", d->conf.policy);
    struct store_intent intent;
    d->unfinished = store_intent(&d->conf, &intent) != -ENOENT;
    int rc = store_load(&d->conf, &d->current);
    if (!rc) {
        d->generation = d->current.lock.generation;
        if (have_file && d->manages &&
            (file.len != d->current.text.len || memcmp(text_str(&file), text_str(&d->current.text), file.len)))
            log_warn("%s differs from the policy in force; fabricctl policy apply (or SIGHUP) puts it in force",
                     d->conf.policy);
        warn_if_conf_differs(d);
        daemon_verify(d, 0);
    } else if (rc == -EINVAL || rc == -ENODATA) {
        d->refused = true;
        d->generation = d->current.lock.generation;
    } else if (have_file && d->manages) {
        apply_text(d, d->conf.policy, &file, &lock);
    } else if (have_file && store_adopt_file(&d->conf, &d->current, &file)) {
        d->generation = d->current.lock.generation;
        store_save(&d->conf, &d->current);
        warn_if_conf_differs(d);
        daemon_verify(d, 0);
    }
    if (rc && d->unfinished)
        daemon_verify(d, 0);
    text_free(&file);
    text_free(&lock);
}

static void on_place(void *arg, struct sa_asker who, const struct sa_place *place)
{
    struct daemon *d = arg;
    server_place(d->server, who, place);
}

/* ---- the files that this host follows ---- */

static int on_follow(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct daemon *d = arg;
    struct follow_news news;
    if (!follow_take(d->follow, &news))
        return 0;
    text_free(&d->follow_problem);
    d->follow_problem = news.problem;
    if (news.problem.len)
        log_event(LOG_FOLLOW_WAITS, SD_WARNING, "%s", news.problem.s);
    struct policy_file f = {.name = d->conf.policy,
                            .text = text_str(&news.policy),
                            .lock = text_str(&news.lock),
                            .len = news.policy.len,
                            .lock_len = news.lock.len};
    if (f.len && daemon_submit(d, TASK_FOLLOW, &f, 0))
        follow_again(d->follow);
    text_free(&news.policy);
    text_free(&news.lock);
    return 0;
}

static int start_follow(struct daemon *d)
{
    if (!d->conf.policy[0])
        return 0;
    d->follow = follow_start(d->conf.policy);
    if (!d->follow) {
        log_error("%s cannot be followed: %s", d->conf.policy, strerror(errno));
        return -errno;
    }
    return sd_event_add_io(d->event, NULL, follow_fd(d->follow), EPOLLIN, on_follow, d);
}

/* ---- timers and signals ---- */

/* Perhaps opensm is up by now. On other hosts the thread reads the file, whose server may not answer. */
static void try_again(struct daemon *d)
{
    struct sms sms;
    sms_find(&sms, &d->conf);
    d->manages = sms.n;
    if (d->manages)
        load_policy(d);
}

/* A look at a large fabric takes long, but may take only a small part of the time. */
static bool looks_too_often(const struct daemon *d)
{
    return clock_us() - d->looked_us < LOOK_PART * d->look_took_us;
}

static int on_verify_timer(sd_event_source *source, uint64_t usec, void *arg)
{
    struct daemon *d = arg;
    if (d->follow_failed)
        follow_again(d->follow);
    if (d->current.valid && looks_too_often(d))
        ;
    else if (d->current.valid || store_is_unpublished(&d->conf)) /* keep_publish */
        daemon_verify(d, 0);
    else if (d->wait)
        d->wait--;
    else if (d->conf.policy[0] && !d->refused && !d->task_runs && !d->unfinished)
        try_again(d);
    sd_event_source_set_time_relative(source, (uint64_t)d->conf.verify_interval_s * 1000000);
    return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/*
 * The manager often mends differences of a host at the same moment, and a host's own look takes few datagrams: the host
 * does not wait for its next look.
 */
static void look_if_amiss(struct daemon *d)
{
    bool amiss = d->current.valid && d->looked && !d->verified && !d->manages;
    if (amiss && d->conf.verify_interval_s && clock_us() - d->looked_us >= LOOK_AMISS_US)
        daemon_verify(d, 0);
}

static int on_rails_timer(sd_event_source *source, uint64_t usec, void *arg)
{
    struct daemon *d = arg;
    daemon_look_at_rails(d);
    look_if_amiss(d);
    daemon_go_on(d);
    daemon_end_joins(d);
    log_left_out();
    sd_event_source_set_time_relative(source, (uint64_t)d->conf.rails_interval_ms * 1000);
    return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_paths_timer(sd_event_source *source, uint64_t usec, void *arg)
{
    disjoint_tick(arg);
    sd_event_source_set_time_relative(source, PATHS_TICK_US);
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
    else if (!d->manages)
        follow_again(d->follow);
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
    if (rc >= 0)
        rc = sd_event_add_time_relative(d->event, NULL, CLOCK_MONOTONIC, PATHS_TICK_US, 0, on_paths_timer, d);
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
    *d = (struct daemon){.conf = *conf, .lock_fd = -1, .started_us = clock_us()};
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
        log_event(LOG_JOBS_DAMAGED, SD_ERR, "%s%u jobs are known, those that cannot be read are not",
                  text_str(&diag.out), d->jobs.n);
    text_free(&diag.out);
    if (!joins_open(&d->joins, conf->state, &diag))
        log_event(LOG_JOBS_DAMAGED, SD_ERR, "%s%u jobs of the cluster are known, those that cannot be read are not",
                  text_str(&diag.out), d->joins.n);
    text_free(&diag.out);
    rails_read(&d->rails);
    rc = rail_health_start(&d->health, conf->state, conf->rails_interval_ms);
    if (!rc)
        rc = sd_event_add_io(d->event, NULL, watch_fd(d->health.watch), EPOLLIN, daemon_on_watch, d);
    if (rc < 0) {
        log_error("cannot watch the rails' counters: %s", strerror(-rc));
        return rc;
    }
    rail_health_fill(&d->health, &d->rails);
    d->manager = manager_start(conf, work_run);
    if (!d->manager || sd_event_add_io(d->event, NULL, manager_fd(d->manager), EPOLLIN, daemon_on_manager, d) < 0) {
        log_error("cannot start the manager thread: %s", strerror(errno));
        return -EAGAIN;
    }
    d->sa = sa_start(d->event, on_place, d);
    d->paths = d->sa ? paths_start(d->sa, disjoint_told, disjoint_moved, d) : NULL;
    if (!d->paths)
        return -ENOMEM;
    d->server = server_start(d->event, &d->conf, path, events, d);
    if (!d->server)
        return -errno;
    struct sms sms;
    sms_find(&sms, &d->conf);
    d->manages = sms.n;
    load_policy(d);
    if (d->joins.n)
        daemon_members(d, "", 0); /* the daemon may have ended between an order and the ports */
    if (start_follow(d) < 0)
        return -EAGAIN;
    log_info("serving %s, %u rails, %s", path, d->rails.n,
             d->manages ? "managing this node's opensm" : "opensm is elsewhere");
    sd_notify(0, "READY=1");
    return 0;
}

void daemon_stop(struct daemon *d)
{
    sd_notify(0, "STOPPING=1");
    readers_stop(d);
    names_free(&d->names);
    if (d->server)
        server_stop(d->server);
    sa_stop(d->sa); /* then nothing calls paths any more */
    paths_stop(d->paths);
    rail_health_stop(&d->health);
    if (d->manager)
        manager_stop(d->manager);
    for (struct task *t = d->first_waiting, *next; t; t = next) {
        next = t->next;
        task_free(t);
    }
    follow_stop(d->follow);
    text_free(&d->follow_problem);
    jobs_close(&d->jobs);
    joins_close(&d->joins);
    text_free(&d->absent);
    in_force_free(&d->current);
    text_free(&d->difference_text);
    text_free(&d->planes);
    text_free(&d->said);
    text_free(&d->failure);
    sd_event_unref(d->event);
    if (d->lock_fd >= 0)
        close(d->lock_fd);
}
