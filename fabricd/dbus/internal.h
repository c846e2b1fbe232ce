/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations shared by the files of this folder. */
#ifndef FABRICD_DBUS_INTERNAL_H
#define FABRICD_DBUS_INTERNAL_H

#include "fabricd/daemon.h"

#include <systemd/sd-bus.h>

#define DBUS_NAME     "org.mrmpi.Fabric1"
#define DBUS_PATH     "/org/mrmpi/Fabric1"
#define DBUS_JOBS     DBUS_PATH "/job" /* and beneath, an object for each job, its id encoded by sd_bus_path_encode */
#define DBUS_MANAGER  "org.mrmpi.Fabric1.Manager"
#define DBUS_JOB      "org.mrmpi.Fabric1.Job"
#define DBUS_NO_JOB   "org.mrmpi.Fabric1.Error.NoSuchJob"
#define DBUS_NO_CLASS "org.mrmpi.Fabric1.Error.NoSuchClass"
#define DBUS_NOT_FREE "org.mrmpi.Fabric1.Error.MayNotChoose"
#define DBUS_UNKEPT   "org.mrmpi.Fabric1.Error.NotKept" /* the state directory does not take it, or is full */

/* Of changes of the policy, as fabricctl's exit statuses tell them apart. */
#define DBUS_NO_GENERATION   "org.mrmpi.Fabric1.Error.NoSuchGeneration"
#define DBUS_AT_WORK         "org.mrmpi.Fabric1.Error.AtWork"
#define DBUS_REFUSED         "org.mrmpi.Fabric1.Error.PolicyRefused"
#define DBUS_NOT_APPLIED     "org.mrmpi.Fabric1.Error.NotApplied"
#define DBUS_ROLLED_BACK     "org.mrmpi.Fabric1.Error.RolledBack"
#define DBUS_NOT_ROLLED_BACK "org.mrmpi.Fabric1.Error.RollbackFailed"

/* Of partitions of jobs: no such class, or the subnet is managed elsewhere; the ports have not got the change. */
#define DBUS_NO_PARTITION "org.mrmpi.Fabric1.Error.NoPartition"
#define DBUS_NOT_JOINED   "org.mrmpi.Fabric1.Error.NotJoined"

/* Polkit's names for actions otherwise of root only. */
#define DBUS_JOBS_ACTION       "org.mrmpi.fabric1.manage-jobs"
#define DBUS_POLICY_ACTION     "org.mrmpi.fabric1.manage-policy"
#define DBUS_PARTITIONS_ACTION "org.mrmpi.fabric1.manage-partitions"

struct dbus_told; /* manager_interface.c: the properties, as the bus knows them */

struct dbus {
    struct daemon *d;
    sd_bus *bus; /* NULL: there is none at present */
    sd_bus_slot *request;
    sd_event_source *retry;
    unsigned retry_s;
    int trouble; /* why there is no bus, as last logged */
    bool named;  /* the name is ours: signals are worth sending */
    struct dbus_told *told;
    struct asked *asked; /* sender.c: callers being looked up */
    unsigned num_asked;
    struct waiting *waiting; /* waiting.c */
    uint64_t last_asker;
    struct held *held; /* join_calls.c: calls that wait for the groups of a user */
};

/* sender.c */

/*
 * Executes a call of a known sender. may: root, the daemon's user, or a user whom polkit allows to give orders (if
 * asked: see sender_ask). 0 or positive: the call has replied; negative, with err or without: the caller gets the
 * error.
 */
typedef int sender_call(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err);

/*
 * Look the sender of a method call up, then call. action: others than root and the daemon's user get AccessDenied,
 * unless polkit, if there is one on the bus, allows them this action. NULL: everybody may call. For a handler of a
 * vtable to return.
 */
int sender_ask(struct dbus *b, sd_bus_message *m, const char *action, sender_call *call, sd_bus_error *err);
/* The bus is gone: nobody waits for these. */
void sender_forget(struct dbus *b);

/*
 * waiting.c: callers waiting for the end of a task. An added caller is the asker of a task of the daemon, and the task
 * replies.
 */
struct waiting;
/* 0, a negative errno or enum fd_ended. */
typedef void waiting_reply(struct dbus *b, struct waiting *w, int status);
struct waiting {
    struct waiting *next;
    uint64_t asker;
    sd_bus_message *m;
    waiting_reply *reply;
    struct text said;     /* the task's lines so far */
    char job[FD_JOB_MAX]; /* for reply */
};
/* NULL: no memory. */
struct waiting *waiting_add(struct dbus *b, sd_bus_message *m, waiting_reply *reply);
void waiting_said(struct dbus *b, uint64_t asker, const char *line, size_t len);
/* Replies, and forgets the caller. */
void waiting_done(struct dbus *b, uint64_t asker, int status);
/* The bus is gone: the tasks go on, and nobody waits for their ends. */
void waiting_forget(struct dbus *b);

/* reply.c: a list as the reply to a call. The caller appends its elements, of this type; *reply is NULL at first. */
int reply_list_begin(sd_bus_message *m, const char *element, sd_bus_message **reply);
/* rc: negative if the list has failed so far, and is not sent. Takes reply over, which may be NULL. */
int reply_list_send(struct dbus *b, sd_bus_message *reply, int rc);

/* manager_interface.c */
int manager_add(struct dbus *b);
/* Signals the changes since the last signal. True: the policy has changed, and the class of each job may have. */
bool manager_tell(struct dbus *b);
void manager_tell_job(struct dbus *b, const struct job *job, enum job_news news);
void manager_forget(struct dbus *b);

/* policy_calls.c: methods of the manager about generations of the policy. */
int policy_on_list(sd_bus_message *m, void *arg, sd_bus_error *err);
int policy_on_show(sd_bus_message *m, void *arg, sd_bus_error *err);
int policy_on_rollback(sd_bus_message *m, void *arg, sd_bus_error *err);

/* join_calls.c: methods of the manager about partitions of jobs. */
int join_on_join(sd_bus_message *m, void *arg, sd_bus_error *err);
int join_on_leave(sd_bus_message *m, void *arg, sd_bus_error *err);
int join_on_list(sd_bus_message *m, void *arg, sd_bus_error *err);
/* The groups of a user have become known. */
void join_user_known(struct dbus *b);
/* Signals a join, or (NULL) its end. */
void join_tell(struct dbus *b, const char *job, const struct join *join);
void join_forget(struct dbus *b);

/* job_interface.c */
int job_add(struct dbus *b);
char *job_path(const struct job *job); /* to be freed; NULL: no memory */
void job_tell(struct dbus *b, const struct job *job, enum job_news news);
/* The job's class by the policy in force and its source, "scheduler", "user" or "rule"; "" without a policy. */
const char *job_class(const struct daemon *d, const struct job *job, const char **source);

/* order.c. Negative results are in err, for the caller of the bus. */
int order_no_job(sd_bus_error *err, const char *id);
/* A text that came in, into a job's field: printable and not too long. */
int order_text(char *to, size_t size, const char *s, const char *what, bool may_be_empty, sd_bus_error *err);
int order_set(struct dbus *b, const struct job *job, uint32_t uid, sd_bus_error *err);
/* These reply to the call, too. */
int order_renew(struct dbus *b, sd_bus_message *m, const struct job *job, uint32_t uid, sd_bus_error *err);
int order_set_class(struct dbus *b, sd_bus_message *m, uint32_t uid, const char *id, const char *class_name,
                    sd_bus_error *err);
/* A user without permission for orders (FD_UID_ANY: with permission) asks for a class for one of his jobs. */
int order_choose(struct dbus *b, sd_bus_message *m, uint32_t uid, const char *id, const char *class_name,
                 sd_bus_error *err);
/* The same: his job may always have a smaller part. */
int order_ratio(struct dbus *b, sd_bus_message *m, uint32_t uid, const char *id, const char *small_ratio,
                sd_bus_error *err);
/* True for a ratio, or "none". */
int order_ratio_good(const char *small_ratio, bool may_be_empty, sd_bus_error *err);
/* The options of a call, into the fields of a job. */
int order_options(sd_bus_message *m, struct job *job, sd_bus_error *err);
int order_good_run(uint32_t run, sd_bus_error *err);
/* run: in the form of struct job. */
int order_end(struct dbus *b, sd_bus_message *m, uint32_t uid, const char *id, uint32_t run, sd_bus_error *err);

#endif
