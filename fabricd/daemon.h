/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's state, in one place: the policy in force, jobs, rails, what is known of the fabric. daemon.c changes
 * it, and has subscribers.c tell clients after each change; requests.c, above, answers from it. Everything here
 * belongs to the main thread.
 */
#ifndef FABRICD_DAEMON_H
#define FABRICD_DAEMON_H

#include "fabricd/base/conf.h"
#include "fabricd/jobs/jobs.h"
#include "fabricd/apply/manager.h"
#include "fabricd/fabric/paths.h"
#include "fabricd/fabric/planes.h"
#include "fabricd/fabric/rail_health.h"
#include "fabricd/readers.h"
#include "fabricd/fabric/sa.h"

#include <systemd/sd-event.h>

struct follow;
struct server;
struct server_events;

enum job_news { JOB_NEW, JOB_CHANGED, JOB_ENDED };

/* Who is told of everything that changes, beside the clients of the socket (dbus/). */
struct daemon_listener {
    void (*job)(void *arg, const struct job *job, enum job_news news);
    void (*state)(void *arg); /* the policy in force, what the fabric has of it, or a rail */
    void (*said)(void *arg, uint64_t asker, const char *line, size_t len); /* progress of a task of the listener */
    void (*done)(void *arg, uint64_t asker, int status);                   /* 0, a negative errno or enum fd_ended */
};

/* The listener's tasks have askers from here on; clients of the socket have lower numbers. */
#define DAEMON_LISTENER_ASKERS (UINT64_C(1) << 63)

struct daemon {
    struct conf conf;
    sd_event *event;
    struct manager *manager;
    struct server *server;
    const struct daemon_listener *listener; /* or NULL */
    void *listener_arg;
    struct readers readers;
    unsigned sharers[POLICY_CLASSES_MAX]; /* of the ahead budget of a class: processes here, as powers of two */
    struct sa *sa;
    struct paths *paths; /* asks sa */
    struct jobs jobs;
    struct users *users; /* NULL: nothing is known of any */
    struct rails rails;
    struct rail_health health;
    struct in_force current;
    uint64_t generation;
    bool manages;               /* opensm runs here, and is ours: as of the last task */
    struct follow *follow;      /* of the configured policy file, or NULL */
    struct text follow_problem; /* why it is not followed now, or empty */
    bool follow_failed;         /* what it has could not be put in force: to be tried again */
    uint64_t started_us;        /* CLOCK_MONOTONIC */
    int lock_fd;

    bool task_runs;
    struct task *first_waiting;
    unsigned num_waiting;

    /* the last look at the fabric */
    bool looked, verified;
    int look_error; /* why there was nothing to see */
    unsigned nodes, ports, differences;
    struct text difference_text;
    struct text planes; /* of a host that manages: a line of YAML each */
    unsigned num_planes;
    struct plane plane[VERIFY_SUBNETS_MAX]; /* the same; config is not told */
    uint64_t looked_us;
    uint64_t task_began_us, look_took_us;
    uint32_t applying_uid; /* who has asked for that; FD_UID_ANY: nobody */
    struct text said;      /* the last line of that, but for how it is rolled back */
    bool rolls_back;
    struct text failure; /* how the last attempt failed that was not followed by a good one: members of YAML */
    uint64_t failed_us;
    char applying[256];               /* what is being put in force, or empty */
    bool refused;                     /* the configured policy is wrong: trying again would not help */
    unsigned repairs, repairs_failed; /* of what ports had lost: all, and the last ones in a row that did not help */
    uint64_t repaired_us;
    bool unfinished; /* an interrupted change is to be brought to its end */
    unsigned unfinished_tries;
    uint64_t unfinished_us; /* the last try */
    unsigned failed, wait;  /* times in a row that ports did not take it; looks until it is tried again */
};

/* For the loop: the manager's thread has events; the ports are to be looked at. */
int daemon_on_manager(sd_event_source *source, int fd, uint32_t events, void *arg);
void daemon_look_at_rails(struct daemon *d);
int daemon_on_watch(sd_event_source *source, int fd, uint32_t events, void *arg); /* there are readings of counters */

/* Orders and hints on rails (rail_health.h): clients are told. */
int daemon_rail_drain(struct daemon *d, const struct fd_rail_order *o, bool drain);
void daemon_rail_hint(struct daemon *d, const struct fd_seen *m, uint32_t uid);

/* A policy that somebody hands over: its text, what the file is called, and the lock beside it. */
struct policy_file {
    const char *name, *text, *lock;
    size_t len, lock_len;
    uint32_t flags;      /* FD_CHANGE_ */
    uint64_t generation; /* with FD_CHANGE_ROLLBACK */
    uint32_t uid;        /* of the client */
};

/*
 * Begin a task, or let it wait; the client hears of it by server_progress and server_done, the listener by said and
 * done. -EBUSY: too many wait. -EPERM:
 * this host takes its policy from a file; -EALREADY: another policy is being put in force; why says more (a line).
 */
int daemon_apply(struct daemon *d, const struct policy_file *f, uint64_t client, struct text *why);
int daemon_submit(struct daemon *d, enum task_kind kind, const struct policy_file *f, uint64_t client); /* f or NULL */
int daemon_diff(struct daemon *d, const struct policy_file *f, uint64_t client);
int daemon_verify(struct daemon *d, uint64_t client);
/* Now and then: an interrupted change is tried again. */
void daemon_go_on(struct daemon *d);

/*
 * Set free the service levels that a class no longer uses: a task, once it has been seen that nobody can use them. 0;
 * -ENOENT: it has none; -EPERM: a job or a process on this host may still use them; -EBUSY: a policy is being put in
 * force. out says why.
 */
int daemon_forget(struct daemon *d, const char *class_name, uint64_t client, struct text *out);
/* The task alone. */
int daemon_forget_levels(struct daemon *d, const char *class_name, uint64_t client);

#endif
