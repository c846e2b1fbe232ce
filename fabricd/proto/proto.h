/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol of fabricd's UNIX socket (SOCK_SEQPACKET, default /run/fabricd/fabricd.sock). The MPI library asks for
 * the service levels of its job and for the rails of its host; fabricctl gives orders.
 *
 * Every packet is one message: a struct fd_header, then the body of its type, all little-endian and of the sizes given
 * here. A message of another magic or version, shorter than its type, longer than FD_MSG_MAX, or with a header.length
 * other than the packet's length, is an error: the daemon answers FD_DONE with -EPROTO and closes; a client does the
 * same with an answer. Text fields are zero-terminated within their size; the sender zeroes the rest.
 *
 *     The library:   FD_HELLO  ->  FD_STATE (same seq), then, if FD_HELLO_SUBSCRIBE, one FD_STATE with seq 0 whenever
 *                    a part of the state has changed (job's class, service levels, a rail). An FD_STATE always holds
 *                    the whole state, so a client needs only the last. A client that does not read is dropped and may
 *                    reconnect. The connection is closed when the daemon ends: go on with the last FD_STATE.
 *                    FD_WHERE  ->  FD_PLACE (same seq, later; others may come first): the present place of a port of
 *                    another host. Only to a daemon whose answer to the hello has FD_CAN_PLACES.
 *                    FD_PATHS  ->  FD_DISJOINT (same seq, later; others may come first): the LID paths to a port
 *                    without a common cable. Only to a daemon whose answer to the hello has FD_CAN_PATHS. After a
 *                    change of the subnet's forwarding, clients that have asked get an FD_STATE (FD_CHANGED_PATHS).
 *                    With FD_HELLO_PACE the daemon may send FD_PACE, with seq 0, whenever the rate of this client's
 *                    reads changes. To such a daemon the client reports its reads by FD_READS, without an answer.
 *                    With FD_HELLO_HEALTH each FD_STATE has a struct fd_health. To such a daemon the client may report
 *                    a failing rail by FD_SEEN, without an answer.
 *
 *                    FD_NAME  ->  FD_NAMED (same seq): names of services, also without FD_HELLO. A name ends with the
 *                    connection over which it came.
 *
 *     fabricctl:     a request  ->  any number of FD_TEXT, FD_FOUND after a look at the fabric, then one FD_DONE with
 *                    the result. With FD_CHANGE_COUNT any number of FD_COUNT may come before FD_DONE, a few in a
 *                    second; a client that has not read the former messages gets none.
 *
 * SO_PEERCRED alone identifies the sender. Anybody may say hello and read the status. uid 0 and the uid of the daemon
 * may apply a policy, set jobs and drain rails. The user of a job may choose among the classes that the policy offers.
 * Only the job's user is believed to have processes of the job.
 */
#ifndef FABRICD_PROTO_H
#define FABRICD_PROTO_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FD_MAGIC   0x64626166u /* "fabd" */
#define FD_VERSION 1u

#define FD_MSG_MAX     81920u /* longest message; only FD_APPLY comes near it */
#define FD_JOB_MAX     64u    /* job id, with the terminating zero */
#define FD_NAME_MAX    32u    /* class name */
#define FD_DEV_MAX     64u    /* device name, as from ibv_get_device_name() */
#define FD_RAILS_MAX   32u
#define FD_LANES_MAX   8u
#define FD_LEVELS_MAX  4u /* of one job: small, large, and those between */
#define FD_MEDIUM_MAX  (FD_LEVELS_MAX - 2u)
#define FD_POLICY_MAX  65536u    /* longest policy text */
#define FD_LOCK_MAX    4096u     /* longest text of a policy.lock */
#define FD_SPREAD_MAX  96u       /* how messages are spread over rails */
#define FD_CGROUP_MAX  256u      /* directory of a control group */
#define FD_RATIO_MAX   12u       /* "1000:1000", with the terminating zero */
#define FD_LEASE_MAX   31536000u /* seconds: a year */
#define FD_RUN_MAX     0x7fffffffu
#define FD_SERVICE_MAX 256u /* name of a service, and its value, with the terminating zero */
#define FD_PATHS_MAX   8u   /* LID paths with a number; a port may have more LIDs */

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the structs below are little-endian");

enum fd_type {
    FD_HELLO = 1,    /* struct fd_hello; from the library */
    FD_STATE = 2,    /* struct fd_state of proto_state.h; from the daemon */
    FD_WHERE = 3,    /* struct fd_where; from the library */
    FD_PLACE = 4,    /* struct fd_place; from the daemon */
    FD_PACE = 5,     /* struct fd_pace; from the daemon */
    FD_READS = 6,    /* struct fd_reads; from the library */
    FD_SEEN = 7,     /* struct fd_seen; from the library, not answered */
    FD_PATHS = 8,    /* struct fd_paths; from the library */
    FD_DISJOINT = 9, /* struct fd_disjoint; from the daemon */
    FD_NAME = 10,    /* struct fd_name; from the library */
    FD_NAMED = 11,   /* struct fd_name; from the daemon */

    FD_STATUS = 16,     /* header only: the daemon's state, as text */
    FD_VERIFY = 17,     /* header only: read the tables of every port now */
    FD_APPLY = 18,      /* struct fd_apply followed by the policy's text and the lock's */
    FD_JOB_SET = 19,    /* struct fd_job */
    FD_JOB_DEL = 20,    /* struct fd_job, only id and run are read */
    FD_JOB_LIST = 21,   /* struct fd_job, only the id is read: jobs after this job; empty: all */
    FD_RAIL_LIST = 22,  /* header only */
    FD_DIFF = 23,       /* as FD_APPLY without any change: the ports that apply would change, and how */
    FD_LOCK = 24,       /* header only: the text of the lock in force */
    FD_FORGET = 25,     /* struct fd_class: set free the service levels that the class no longer uses */
    FD_JOB_GIVE = 27,   /* struct fd_job, only id and class_name are read: another class, all else stays */
    FD_JOB_CHOOSE = 26, /* struct fd_job, only id and wish are read: its user asks for another class */

    FD_RAIL_DRAIN = 28,   /* struct fd_rail_order: jobs are to leave the rail */
    FD_RAIL_UNDRAIN = 29, /* struct fd_rail_order: jobs may use the rail again, and its health is judged anew */
    FD_RAIL_SHOW = 30,    /* struct fd_rail_order: the rail's health and history, as text */
    FD_CHANGE = 48,       /* struct fd_change and texts: FD_APPLY with more details */
    FD_HISTORY = 49,      /* header only: the generations, as text */
    FD_SHOW = 50,         /* struct fd_show: one generation, as text */
    FD_METRICS = 51,      /* header only: the daemon's state, as OpenMetrics text */
    FD_PATHS_SHOW = 52,   /* struct fd_ends: the paths between two hosts, as text */
    FD_JOIN = 53,         /* struct fd_join and names of hosts: they are members of the job's partition from now on */
    FD_LEAVE = 54,        /* struct fd_job, only id and run are read: they are not any more */
    FD_JOIN_LIST = 55,    /* struct fd_job, only the id is read: joined jobs after this job; empty: all */

    FD_TEXT = 32,  /* header, then text without a terminating zero; from the daemon */
    FD_DONE = 33,  /* struct fd_done; from the daemon */
    FD_MORE = 34,  /* struct fd_more; from the daemon, before FD_DONE: ask again for the jobs after this */
    FD_COUNT = 36, /* struct fd_count; from the daemon, before FD_DONE, with FD_CHANGE_COUNT */
    FD_FOUND = 35, /* as FD_TEXT, before FD_DONE: the result of a look at the fabric, parts of a YAML document */
};

struct fd_header {
    uint32_t magic;
    uint16_t version;
    uint16_t type;   /* enum fd_type */
    uint32_t length; /* of the whole message, header included */
    uint32_t seq; /* chosen by the sender of a question; repeated in the answer; 0 in an answer: without a question */
};

/* fd_hello.flags; a daemon ignores unknown flags */
#define FD_HELLO_SUBSCRIBE 1u
#define FD_HELLO_LEVELS    2u   /* levels between small and large may follow FD_STATE, else none follow */
#define FD_HELLO_SPREAD    8u   /* struct fd_spread may follow FD_STATE. Without the flag no spread follows. */
#define FD_HELLO_PLACES    4u   /* FD_WHERE may follow, if the answer says FD_CAN_PLACES */
#define FD_HELLO_OWNER     32u  /* the state for the job's owner; for clients that may give orders */
#define FD_HELLO_KNOWN     64u  /* the answer may have FD_NO_JOB. Without the flag it never has. */
#define FD_HELLO_PACE      16u  /* FD_PACE may come. Without the flag it never comes. */
#define FD_HELLO_HEALTH    128u /* struct fd_health may follow FD_STATE. Without the flag no health follows. */
#define FD_HELLO_PATHS     256u /* FD_PATHS may follow, if the answer says FD_CAN_PATHS */

struct fd_hello {
    struct fd_header h;
    uint32_t flags;
    uint32_t reserved;
    char job[FD_JOB_MAX]; /* $MRMPI_JOBID or the scheduler's id; empty: no job id known */
};

/* Asks for the place of the port with this GUID, in the subnet of a port of this host. For InfiniBand only. */
struct fd_where {
    struct fd_header h;
    char device[FD_DEV_MAX];
    uint8_t port; /* 1.. */
    uint8_t reserved[7];
    uint64_t guid; /* in the byte order of this struct, not as in a GID */
};

struct fd_place {
    struct fd_header h;
    uint64_t guid;  /* as asked */
    int32_t status; /* 0; -ENOENT: the subnet has no such port; other negative errno: unknown */
    uint16_t lid;   /* with status 0: the port has 2^lmc LIDs, from lid on */
    uint8_t lmc;
    uint8_t reserved;
};

/*
 * Asks for the LID paths from a port of this host to another port of its subnet that share no cable between switches,
 * in either direction. A path is the number of a LID of a port, counted from the base LID, the same at both ends.
 */
struct fd_paths {
    struct fd_header h;
    char device[FD_DEV_MAX];
    uint8_t port; /* 1.. */
    uint8_t lmc;  /* the far port has the 2^lmc LIDs from lid on */
    uint16_t lid;
    uint32_t reserved;
};

struct fd_disjoint {
    struct fd_header h;
    char device[FD_DEV_MAX]; /* as asked */
    uint8_t port;
    uint8_t num; /* with status 0: 1..FD_PATHS_MAX paths, and no more than the job's class may use */
    uint16_t lid;
    int32_t status;             /* 0; -EBUSY: ask again later; other negative errno: unknown */
    uint8_t path[FD_PATHS_MAX]; /* the first is 0, then ascending */
};

/* Names of services: each user has own ones, which all processes of the user on this host see. */
enum fd_name_what {
    FD_NAME_PUBLISH = 1, /* -EEXIST; -ENOSPC: too many */
    FD_NAME_FIND,        /* -ENOENT */
    FD_NAME_WITHDRAW,    /* -ENOENT; a name of the same job only */
};
struct fd_name {
    struct fd_header h;
    uint32_t what;  /* enum fd_name_what */
    int32_t status; /* of the answer: 0 or a negative errno */
    uint64_t job;   /* the same in all processes of the job, and no others */
    char name[FD_SERVICE_MAX];
    char value[FD_SERVICE_MAX]; /* to be published, or found */
};

/* Two hosts, each as "HOST" or "HOST DEVICE", the description of its node in the subnet. */
#define FD_END_MAX 72u
struct fd_ends {
    struct fd_header h;
    char from[FD_END_MAX], to[FD_END_MAX];
};

/*
 * The rate of this client's RDMA reads over each rail, in the order of the last FD_STATE, in 10^3 bytes of data per
 * second. 0: no limit, as before the first FD_PACE and after the end of the connection. FD_PACE_ALONE: no limit at
 * present, but processes of other classes may bring a limit. Reads under way cannot be taken back then, so the client
 * should keep few under way.
 */
#define FD_PACE_ALONE 0xffffffffu
struct fd_pace {
    struct fd_header h;
    uint32_t rate_kb[FD_RAILS_MAX];
};

/*
 * This client's reads over its busiest rail, in 10^3 bytes per second. FD_READS_ALL: the limit holds the client back.
 * The value begins with 0, and with 0 again when the first limit comes after a time without a limit. Sent after
 * changes, at most a few hundred times per second.
 */
#define FD_READS_ALL 0xffffffffu
struct fd_reads {
    struct fd_header h;
    uint32_t want_kb;
    uint32_t reserved;
};

/*
 * This client's observations of a rail of this host since the last FD_SEEN: a hint that affects only processes of the
 * same user (rail_health.h). Only to a daemon whose FD_STATE has struct fd_health, and at most once in FD_SEEN_S per
 * rail.
 */
#define FD_SEEN_S 10u
struct fd_seen {
    struct fd_header h;
    char device[FD_DEV_MAX];
    uint8_t port; /* 1.. */
    uint8_t reserved[7];
    uint32_t broken; /* connections over the rail that broke, or lost too much to be used, while the port was active */
    uint32_t resent; /* packets that were sent again over the rail */
};

/* A rail of this host. */
struct fd_rail_order {
    struct fd_header h;
    char device[FD_DEV_MAX];
    uint8_t port; /* 1.. */
    uint8_t reserved[7];
};

struct fd_apply {
    struct fd_header h;
    char name[252];       /* the sender's name of the file, for messages */
    uint32_t lock_length; /* bytes of the lock beside the file, at most FD_LOCK_MAX; 0: none */
    /* the policy's text follows, at most FD_POLICY_MAX bytes, and then the lock's; header.length has the sum */
};

struct fd_class {
    struct fd_header h;
    char class_name[FD_NAME_MAX];
};

#define FD_UID_ANY 0xffffffffu

/*
 * An empty text is not given. With an empty class_name the job has the wished class if the policy allows the wish, else
 * the class by the policy's rules. Both depend on the fields below and on the user's name.
 */
struct fd_job {
    struct fd_header h;
    uint32_t uid; /* owner: only this user's processes belong to the job; FD_UID_ANY: not given (FD_JOB_SET needs an
                     owner) */
    uint32_t flags;
    char job[FD_JOB_MAX];
    char class_name[FD_NAME_MAX];
    char account[FD_JOB_MAX];
    char name[FD_JOB_MAX]; /* the scheduler's job name */
    char qos[FD_JOB_MAX];
    char partition[FD_JOB_MAX];
    char wish[FD_NAME_MAX];     /* the class requested by the job's user */
    char cgroup[FD_CGROUP_MAX]; /* directory of the job's control group: contains the job's processes; the job ends with
                                   the group */
    uint32_t lease_s;           /* 1..FD_LEASE_MAX: the job ends after so long without a process; 0: not given */
    uint16_t ratio_small,
        ratio_large; /* with FD_JOB_RATIO: the small ratio of the job; 0, 0: the job loses its ratio */
    uint32_t run;    /* with FD_JOB_RUN, 0..FD_RUN_MAX: the run of the job, as a scheduler counts the runs of an id */
    uint32_t reserved;
};

/* fd_job.flags of FD_JOB_SET: the job exists, missing fields stay, class_name and wish are ignored. */
#define FD_JOB_RENEW 1u
#define FD_JOB_RATIO 2u /* also of FD_JOB_GIVE and FD_JOB_CHOOSE: ratio_small and ratio_large are read */
#define FD_JOB_SAME  4u /* of FD_JOB_GIVE and FD_JOB_CHOOSE: class_name and wish are ignored */
/*
 * run is given. Of FD_JOB_RENEW: -ENOENT if the job exists in another run. Of FD_JOB_DEL: -ENOENT if the job exists in
 * a later run. A job without a known run exists in every run.
 */
#define FD_JOB_RUN 8u

/* The class and partition of the job follow from the job's facts. Names of hosts follow, with a space between two. */
#define FD_HOSTS_MAX 65536u
struct fd_join {
    struct fd_job job; /* its header is that of the message; lease_s: the hosts leave after so long in any case */
};

struct fd_more {
    struct fd_header h;
    char after[FD_JOB_MAX];
};

/*
 * Puts a policy in force: struct fd_change, the policy's text, and the lock's text of lock_length bytes. With
 * FD_CHANGE_ROLLBACK there are no texts: the policy is that of a generation, 0 for the state before the first policy,
 * and FD_PREVIOUS for the policy before the present one.
 */
#define FD_CHANGE_PARTIAL  1u /* planes without a subnet manager are passed over */
#define FD_CHANGE_FORCE    2u /* although other hosts follow another policy */
#define FD_CHANGE_DRY      4u /* change nothing, report the changes */
#define FD_CHANGE_ROLLBACK 8u
#define FD_CHANGE_COUNT    16u /* FD_COUNT may come. Without the flag it never comes. */
#define FD_PREVIOUS        UINT64_MAX
struct fd_change {
    struct fd_header h;
    uint64_t generation;
    uint32_t flags;
    uint32_t lock_length;
    char name[240]; /* the sender's name of the file, for messages; not empty */
};

struct fd_show {
    struct fd_header h;
    uint64_t generation;
};

/* How far a change is that takes long. */
enum fd_counted {
    FD_PORTS_READ = 1,
    FD_PORTS_RIGHT = 2, /* ports that have the new tables */
    FD_BLOCKS_BACK = 3, /* blocks of tables that are again as before the first policy */
};
struct fd_count {
    struct fd_header h;
    uint32_t what; /* enum fd_counted; a client ignores others */
    uint32_t done;
    uint32_t of; /* at least done, or 0: their number is not known yet */
    uint32_t reserved;
};

/* Results of FD_APPLY and FD_CHANGE, beside errnos, with which nothing was changed. */
enum fd_ended {
    FD_ROLLED_BACK = -1001,     /* changed, then rolled back completely */
    FD_ROLLBACK_FAILED = -1002, /* it was changed, and could not be brought back yet */
    FD_PLANE_MISSING = -1003,   /* in force, except on a plane without a subnet manager */
};

struct fd_done {
    struct fd_header h;
    int32_t status; /* 0, a negative errno, or enum fd_ended */
    uint32_t reserved;
};

static_assert(sizeof(struct fd_header) == 16, "layout");
static_assert(sizeof(struct fd_hello) == 88, "layout");
static_assert(sizeof(struct fd_where) == 96, "layout");
static_assert(sizeof(struct fd_place) == 32, "layout");
static_assert(sizeof(struct fd_paths) == 88, "layout");
static_assert(sizeof(struct fd_disjoint) == 96, "layout");
static_assert(sizeof(struct fd_ends) == 160, "layout");
static_assert(sizeof(struct fd_pace) == 144, "layout");
static_assert(sizeof(struct fd_reads) == 24, "layout");
static_assert(sizeof(struct fd_seen) == 96, "layout");
static_assert(sizeof(struct fd_rail_order) == 88, "layout");
static_assert(sizeof(struct fd_apply) == 272, "layout");
static_assert(sizeof(struct fd_class) == 48, "layout");
static_assert(sizeof(struct fd_change) == 272, "layout");
static_assert(sizeof(struct fd_show) == 24, "layout");
static_assert(sizeof(struct fd_job) == 680, "layout");
static_assert(sizeof(struct fd_join) == 680, "layout");
static_assert(sizeof(struct fd_more) == 80, "layout");
static_assert(sizeof(struct fd_count) == 32, "layout");
static_assert(sizeof(struct fd_done) == 24, "layout");

#endif
