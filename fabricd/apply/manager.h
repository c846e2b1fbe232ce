/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread for slow work, one task after the other, so that the socket is always answered: putting a policy in force,
 * and reading the tables of the whole fabric.
 *
 * The main thread owns the policy in force; a task gets a copy, and returns events through a queue: lines and counts of
 * progress, and one outcome at the end. manager_fd() is readable while events wait.
 */
#ifndef FABRICD_MANAGER_H
#define FABRICD_MANAGER_H

#include "fabricd/policy/compile.h"
#include "fabricd/base/conf.h"
#include "fabricd/fabric/planes.h"
#include "fabricd/proto/proto.h"

#include <limits.h>

/* A present or former policy in force. */
struct in_force {
    bool valid;
    struct policy policy;
    struct policy_lock lock; /* also without a policy: levels given out */
    struct qos_tables tables;
    struct plane_tables planes; /* tables of planes that differ */
    struct text text;           /* the text of its file */
};
/* The tables of its policy and lock. False with errors in d. */
bool in_force_compile(struct in_force *f, struct diag *d);
bool in_force_same_tables(const struct in_force *a, const struct in_force *b);
void in_force_copy(struct in_force *to, const struct in_force *from);
void in_force_free(struct in_force *f);

enum task_kind {
    TASK_APPLY,   /* put a policy in force */
    TASK_DIFF,    /* the changes of an APPLY */
    TASK_VERIFY,  /* compare the ports with the policy in force */
    TASK_FOLLOW,  /* take over the policy of the subnet's manager */
    TASK_FORGET,  /* set a class's service levels free */
    TASK_MEMBERS, /* bring the hosts of jobs into their partitions, or out of them */
};

struct task {
    struct task *next;
    enum task_kind kind;
    uint64_t client;         /* the client waiting for the outcome; 0: only the log */
    bool patient;            /* VERIFY: look again until the ports agree, or time is up */
    bool may_repair;         /* VERIFY: lost tables may be mended */
    uint32_t uid;            /* of the client */
    uint32_t flags;          /* APPLY, DIFF: FD_CHANGE_ */
    uint64_t rollback;       /* APPLY: with FD_CHANGE_ROLLBACK the generation */
    bool logged;             /* its lines also go to the log */
    char name[PATH_MAX];     /* APPLY, DIFF, FOLLOW: the name of the file; FORGET: the class */
    struct text text;        /* APPLY, DIFF, FOLLOW: the new policy */
    struct text lock_text;   /* the lock beside the file; may be empty */
    struct in_force current; /* the present policy in force */
    uint64_t generation;     /* of current */
    unsigned ports;          /* of the last whole look; 0: none */
    struct host_keys jobs;   /* hosts of running jobs with their partitions, as of the beginning */
    uint64_t join;           /* MEMBERS: the serial of the job's join; 0: none waits */
    uint64_t joined;         /* the serial of the last join in jobs */
};

enum manager_event_kind { EVENT_PROGRESS, EVENT_COUNT, EVENT_OUTCOME };

struct manager_event {
    struct manager_event *next;
    enum manager_event_kind kind;
    enum task_kind task;
    bool logged;
    uint64_t client;
    uint64_t join, joined; /* of the task */
    struct text unknown;   /* MEMBERS: hosts of jobs that no subnet of this host has, with a space around each */
    struct text text;      /* a line of progress; or the differences that the last look found */
    /* EVENT_COUNT */
    enum fd_counted what;
    unsigned done, of;
    /* EVENT_OUTCOME */
    int status;    /* 0 or a negative errno */
    int ended;     /* APPLY: 0 or an enum fd_ended, more precise than status */
    bool looked;   /* the fields below describe the fabric now */
    bool verified; /* everything agrees with the policy in force (the new policy after a good APPLY) */
    unsigned nodes, ports, differences;
    struct text planes; /* the planes of this host, if it manages */
    unsigned num_planes;
    struct plane plane[VERIFY_SUBNETS_MAX]; /* the same; config is not told */
    struct text found;       /* the result of the last look, a YAML document for programs; empty: no look */
    bool manages;            /* opensm runs here, and is ours */
    bool unfinished;         /* an interrupted change could not be brought to its end: to be tried again */
    bool disturbed;          /* the attempt has disturbed opensm */
    bool repaired;           /* losses of ports or of opensm's file were mended, or could not be: see verified */
    struct fabric_caps caps; /* abilities of the ports, and those of each plane that was read as a whole */
    unsigned num_seen;
    struct lock_plane seen[LOCK_PLANES_MAX];
    bool changed; /* the next two are in force from now on, and kept unless status says why not */
    struct in_force next_in_force;
    uint64_t generation;
};

struct manager;

/* Runs a task in the thread from begin to end, within the time of the configuration. Fills the outcome in. */
typedef void manager_work(struct manager *m, const struct conf *conf, struct task *t, struct manager_event *out);

struct manager *manager_start(const struct conf *conf, manager_work *work);
/* Ends a running task at its next step and waits for it. */
void manager_stop(struct manager *m);
int manager_fd(const struct manager *m);
/* Takes the task over. The one before must have had its outcome. */
void manager_submit(struct manager *m, struct task *t);
void task_free(struct task *t);
/* The oldest event, or NULL. Free it with manager_event_free. */
struct manager_event *manager_next_event(struct manager *m);
void manager_event_free(struct manager_event *e);

#define ROLLING_BACK "rolling back" /* begins the line after the reason */

/* For the thread itself: a line of progress; a pause, false if the daemon is to end. */
void manager_say(struct manager *m, const struct task *t, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool manager_pause(struct manager *m, unsigned ms);
/* of: 0 if not known. */
void manager_count(struct manager *m, const struct task *t, enum fd_counted what, unsigned done, unsigned of);
/* For the manager's thread. */
struct sm_verdicts *manager_verdicts(struct manager *m);

#endif
