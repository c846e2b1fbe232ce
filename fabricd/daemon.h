/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's state, in one place: the policy in force, jobs, rails, facts of the fabric. daemon.c changes the state,
 * and has subscribers.c inform clients after each change; requests.c, above, answers from it. The main thread owns
 * everything.
 */
#ifndef FABRICD_DAEMON_H
#define FABRICD_DAEMON_H

#include "fabricd/base/conf.h"
#include "fabricd/jobs/joins.h"
#include "fabricd/jobs/jobs.h"
#include "fabricd/apply/manager.h"
#include "fabricd/fabric/paths.h"
#include "fabricd/fabric/planes.h"
#include "fabricd/fabric/rail_health.h"
#include "fabricd/names.h"
#include "fabricd/readers.h"
#include "fabricd/fabric/sa.h"

#include <systemd/sd-event.h>

struct follow;
struct server;
struct server_events;

enum job_news { JOB_NEW, JOB_CHANGED, JOB_ENDED };

/* Hears of all changes, beside the clients of the socket (dbus/). */
struct daemon_listener {
    void (*job)(void *arg, const struct job *job, enum job_news news);
    void (*state)(void *arg); /* the policy in force, its state in the fabric, or a rail */
    void (*joined)(void *arg, const char *job, const struct join *join);   /* hosts of a job; NULL: they have left */
    void (*user)(void *arg);                                               /* groups of a user have become known */
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
    struct names names;
    unsigned sharers[POLICY_CLASSES_MAX]; /* of the ahead budget of a class: processes here, as powers of two */
    struct sa *sa;
    struct paths *paths; /* asks sa */
    unsigned reroutes;   /* seen while processes depended on LID paths */
    uint64_t rerouted_us;
    struct jobs jobs;
    struct joins joins;
    uint64_t joined;    /* the serial of the last join that the ports have */
    struct text absent; /* hosts of these that no subnet of this host has */
    bool members_due;   /* the last task for them has failed: to be tried again */
    unsigned members_tries;
    uint64_t members_us; /* the last try */
    struct users *users; /* NULL: nothing is known of any */
    struct rails rails;
    struct rail_health health;
    struct in_force current;
    uint64_t generation;
    bool manages;               /* opensm runs here, and is ours: as of the last task */
    struct follow *follow;      /* of the configured policy file, or NULL */
    struct text follow_problem; /* the reason why the file is not followed now, or empty */
    bool follow_failed;         /* its policy could not be put in force: to be tried again */
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
    uint32_t applying_uid; /* the user behind the apply; FD_UID_ANY: none */
    struct text said;      /* its last line, except lines about its rollback */
    bool rolls_back;
    struct text failure; /* the failure of the last attempt without a later success: members of YAML */
    uint64_t failed_us;
    char applying[256];               /* the policy being put in force, or empty */
    bool refused;                     /* the configured policy is wrong: trying again would not help */
    unsigned repairs, repairs_failed; /* of lost tables: all, and the last failures in a row */
    uint64_t repaired_us;
    bool unfinished; /* an interrupted change is to be brought to its end */
    unsigned unfinished_tries;
    uint64_t unfinished_us; /* the last try */
    unsigned failed, wait;  /* failed attempts in a row; looks until the next attempt */
};

/* For the loop: the manager's thread has events; the ports are to be looked at. */
int daemon_on_manager(sd_event_source *source, int fd, uint32_t events, void *arg);
void daemon_look_at_rails(struct daemon *d);
int daemon_on_watch(sd_event_source *source, int fd, uint32_t events, void *arg); /* there are readings of counters */

/* Orders and hints on rails (rail_health.h): clients are told. */
int daemon_rail_drain(struct daemon *d, const struct fd_rail_order *o, bool drain);
void daemon_rail_hint(struct daemon *d, const struct fd_seen *m, uint32_t uid);

/* A submitted policy: its text, the name of the file, and the lock beside it. */
struct policy_file {
    const char *name, *text, *lock;
    size_t len, lock_len;
    uint32_t flags;      /* FD_CHANGE_ */
    uint64_t generation; /* with FD_CHANGE_ROLLBACK */
    uint32_t uid;        /* of the client */
};

/*
 * Begins a task, or queues the task. The client hears of the task by server_progress and server_done, the listener by
 * said and done. -EBUSY: too many wait. -EPERM: this host takes its policy from a file; -EALREADY: another policy is
 * being put in force; why has details (a line).
 */
int daemon_apply(struct daemon *d, const struct policy_file *f, uint64_t client, struct text *why);
int daemon_submit(struct daemon *d, enum task_kind kind, const struct policy_file *f, uint64_t client); /* f or NULL */
int daemon_diff(struct daemon *d, const struct policy_file *f, uint64_t client);
int daemon_verify(struct daemon *d, uint64_t client);
/* The task that brings the hosts of joins into their partitions. job: that of a client that waits for it; else "". */
int daemon_members(struct daemon *d, const char *job, uint64_t client);
/*
 * The job's hosts join its partition (join.c): a task. 1: the partition has no job members; -ENODATA, -EINVAL, or they
 * could not be kept; why has the reason. daemon_leave: the job's hosts leave; -ENOENT: it has not joined, or it is in a
 * later run. daemon_end_joins: now and then, jobs whose time is over.
 */
int daemon_join(struct daemon *d, const struct job *job, const char *hosts, uint64_t client, struct text *why);
int daemon_leave(struct daemon *d, const char *id, uint32_t run, uint64_t client);
void daemon_end_joins(struct daemon *d);
/* Now and then: an interrupted change is tried again, and members that failed. */
void daemon_go_on(struct daemon *d);

/*
 * Sets free the unused service levels of a class: a task, after a check that nobody can use them. 0; -ENOENT: the class
 * has none; -EPERM: a job or a process on this host may still use them; -EBUSY: a policy is being put in force. out has
 * the reason.
 */
int daemon_forget(struct daemon *d, const char *class_name, uint64_t client, struct text *out);
/* The task alone. */
int daemon_forget_levels(struct daemon *d, const char *class_name, uint64_t client);

#endif
