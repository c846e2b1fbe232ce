/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What takes time is done in one thread of its own, one task after the other, so that the socket is always answered:
 * putting a policy in force, and reading the tables of the whole fabric.
 *
 * The main thread owns the policy in force; a task gets a copy, and hands back events through a queue: lines of
 * progress, and at the end one outcome. manager_fd() is readable while events wait.
 */
#ifndef FABRICD_MANAGER_H
#define FABRICD_MANAGER_H

#include "fabricd/policy/compile.h"
#include "fabricd/base/conf.h"
#include "fabricd/fabric/planes.h"

#include <limits.h>

/* A policy that is or was in force. */
struct in_force {
    bool valid;
    struct policy policy;
    struct policy_lock lock; /* without a policy, too: levels that were given out */
    struct qos_tables tables;
    struct plane_tables planes; /* those of planes that differ */
    struct text text;           /* the file it came from */
};
/* The tables of its policy and lock. False with errors in d. */
bool in_force_compile(struct in_force *f, struct diag *d);
bool in_force_same_tables(const struct in_force *a, const struct in_force *b);
void in_force_copy(struct in_force *to, const struct in_force *from);
void in_force_free(struct in_force *f);

enum task_kind {
    TASK_APPLY,  /* put a policy in force */
    TASK_DIFF,   /* what that would change */
    TASK_VERIFY, /* have the ports what is in force? */
    TASK_FOLLOW, /* take over what the manager of the subnet has put in force */
    TASK_FORGET, /* set a class's service levels free */
};

struct task {
    struct task *next;
    enum task_kind kind;
    uint64_t client;         /* who wants to know; 0: only the log */
    bool patient;            /* VERIFY: look again until they have it, or time is up */
    bool may_repair;         /* VERIFY: what ports have lost may be mended */
    uint32_t uid;            /* of the client */
    uint32_t flags;          /* APPLY, DIFF: FD_CHANGE_ */
    uint64_t rollback;       /* APPLY: with FD_CHANGE_ROLLBACK the generation */
    bool logged;             /* its lines go to the log, too */
    char name[PATH_MAX];     /* APPLY, DIFF, FOLLOW: what the file is called; FORGET: the class */
    struct text text;        /* APPLY, DIFF, FOLLOW: the new policy */
    struct text lock_text;   /* and the lock that was beside it; may be empty */
    struct in_force current; /* what is in force now */
    uint64_t generation;     /* of that */
};

enum manager_event_kind { EVENT_PROGRESS, EVENT_OUTCOME };

struct manager_event {
    struct manager_event *next;
    enum manager_event_kind kind;
    enum task_kind task;
    bool logged;
    uint64_t client;
    struct text text; /* a line of progress; or the differences that the last look found */
    /* EVENT_OUTCOME */
    int status;    /* 0 or a negative errno */
    int ended;     /* APPLY: 0 or an enum fd_ended, which tells more than status */
    bool looked;   /* the fields below say what the fabric has now */
    bool verified; /* everything is as the policy in force (the new one after a good APPLY) wants it */
    unsigned nodes, ports, differences;
    struct text planes; /* and the planes of this host, where it manages */
    unsigned num_planes;
    struct plane plane[VERIFY_SUBNETS_MAX]; /* the same; config is not told */
    struct text found;       /* what the last look found, a document of YAML for programs; empty: there was none */
    bool manages;            /* opensm runs here, and is ours */
    bool unfinished;         /* an interrupted change could not be brought to its end: to be tried again */
    bool disturbed;          /* trying that has disturbed opensm */
    bool repaired;           /* what ports or opensm's file had lost was mended, or could not be: see verified */
    struct fabric_caps caps; /* what the ports can do, and those of each plane that was looked at as a whole */
    unsigned num_seen;
    struct lock_plane seen[LOCK_PLANES_MAX];
    bool changed; /* the next two are in force from now on, and kept unless status says why not */
    struct in_force next_in_force;
    uint64_t generation;
};

struct manager;

/* What the thread does with a task: from begin to end, as long as the configuration allows. Fills the outcome in. */
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

#define ROLLING_BACK "rolling back" /* begins the line after that which says why */

/* For the thread itself: a line of progress; a pause, false if the daemon is to end. */
void manager_say(struct manager *m, const struct task *t, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool manager_pause(struct manager *m, unsigned ms);

#endif
