/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The administrator's policy, as read from policy.yaml (mrmpi-policy(5)) and checked as far as it can be without
 * knowing the fabric. Plain data: copied by assignment, owns nothing.
 */
#ifndef FABRICD_POLICY_H
#define FABRICD_POLICY_H

#include "fabricd/policy/health.h"
#include "fabricd/policy/hosts.h"
#include "fabricd/policy/pattern.h"
#include "fabricd/proto/proto_state.h"
#include "fabricd/base/text.h"

#define POLICY_CLASSES_MAX 8 /* each has at least two of the 16 service levels */
#define POLICY_RULES_MAX   64
#define POLICY_CHOOSE_MAX  16
#define POLICY_PKEYS_MAX   32
#define POLICY_MEMBERS_MAX 32
#define POLICY_MEMBER_MAX  64

#define PRIORITY_LOW    0
#define PRIORITY_NORMAL 1
#define PRIORITY_HIGH   3

/* A partition: members are the ports of some hosts, else opensm's partition file decides. */
struct policy_partition {
    uint32_t pkey;                                       /* 15 bits; 0: none */
    uint32_t of_jobs;                                    /* hosts of its jobs are members while the jobs run */
    unsigned num_members;                                /* hosts that are always members */
    char members[POLICY_MEMBERS_MAX][POLICY_MEMBER_MAX]; /* patterns: hosts.h */
    struct place pkey_at, members_at;
};

struct policy_class {
    char name[FD_NAME_MAX];
    uint32_t share;                    /* percent of a busy link */
    uint32_t priority;                 /* 0: small messages wait with the bulk; 1-3: they go ahead, with this weight */
    bool has_priority;                 /* given in the file; else the compiler may choose the priority by the latency */
    uint32_t latency_ns;               /* the longest that a small message may wait in the fabric; 0: not given */
    uint32_t ratio_small, ratio_large; /* of a link, of the only class; 0: not given. Priority is then 0 */
    uint32_t lanes;                    /* virtual lanes for bulk */
    uint32_t paths;                    /* LID paths to a port that large messages may use */
    uint32_t small_max;                /* bytes */
    uint32_t jobs_max, user_jobs_max;  /* jobs on a host that may have the class by rules and wishes; 0: no limit */
    unsigned num_medium;               /* levels between small messages and bulk */
    uint32_t medium_max[FD_MEDIUM_MAX]; /* bytes, ascending */
    struct policy_partition partition;  /* of the class's jobs */
    struct fd_spread spread;            /* how messages go over rails; "": the library's own way */
    unsigned num_choose;
    struct pattern choose[POLICY_CHOOSE_MAX]; /* jobs that may ask for this class: one pattern must match */
    struct place at, name_at, share_at, medium_at, latency_at, ratio_at;
};

struct policy_rule {
    struct pattern of;
    unsigned class_index;
};

/* The partition of jobs that the pattern matches, whatever their class. */
struct policy_pkey {
    struct pattern of;
    struct policy_partition partition;
};

/* The reaction of the manager's host to ports or an opensm file that have lost the policy. */
enum policy_repair { REPAIR_YES, REPAIR_REPORT };

struct policy {
    uint32_t version;
    uint32_t vls; /* data virtual lanes that every port has in operation: 1, 2, 4, 8 or 15 */
    uint32_t mtu; /* bytes; 0: the fabric's */
    uint32_t lmc;
    uint32_t bulk_minimum;      /* percent of a link that bulk must keep, at most 50; 0: not given */
    struct health_rules health; /* of rails */
    int high_limit;             /* the port's raw limit, -1: not given */
    unsigned num_classes, num_rules, default_class;
    struct policy_class classes[POLICY_CLASSES_MAX];
    struct policy_rule rules[POLICY_RULES_MAX];
    unsigned num_pkeys;
    struct policy_pkey pkeys[POLICY_PKEYS_MAX];
    unsigned repair;       /* enum policy_repair */
    uint32_t repair_pause; /* seconds between repairs at least */
    struct place vls_at, lmc_at, limits_at, bad_at;
};

/* The format of policies (keys.h). */
struct keys;
extern const struct keys policy_keys;

/* False if there was an error; all errors and warnings are in d. */
bool policy_parse(struct policy *p, const char *text, size_t len, struct diag *d);

/* The class's index, or -1. */
int policy_class_by_name(const struct policy *p, const char *name);

/*
 * The class of a job by the rules: the class of the first rule whose patterns all match and whose class has room (NULL:
 * all have room), else the default class.
 */
unsigned policy_class_with_room(const struct policy *p, const struct pattern_job *job,
                                bool (*has_room)(void *arg, unsigned class_index), void *arg);
static inline unsigned policy_class_of(const struct policy *p, const struct pattern_job *job)
{
    return policy_class_with_room(p, job, NULL, NULL);
}

/* The partition of a job: that of the first of pkeys that matches, else the class's. */
const struct policy_partition *policy_partition_of(const struct policy *p, unsigned class_index,
                                                   const struct pattern_job *job);

/*
 * All partitions whose members the policy decides: the i-th; NULL: there are no more. Those with the same P_Key are one
 * partition, with the members of all.
 */
const struct policy_partition *policy_partition(const struct policy *p, unsigned i);
/* Its place in the policy, for people: "class 'urgent'". */
void policy_partition_name(const struct policy *p, const struct policy_partition *of, char out[64]);
/* The first one with this P_Key, or NULL. */
const struct policy_partition *policy_partition_by_key(const struct policy *p, unsigned pkey);
/* Hosts of jobs are members of the partition with this P_Key, which the policy alone does not name. */
bool policy_has_job_members(const struct policy *p, unsigned pkey);
static inline bool policy_has_members(const struct policy *p)
{
    return policy_partition(p, 0);
}
/*
 * Is the port of an adapter with this description, "HOST DEVICE", to be a member of the partition? jobs: the hosts of
 * running jobs; NULL: none run.
 */
bool policy_is_member(const struct policy *p, const struct host_keys *jobs, unsigned pkey, const char *description);

/* True if the job's user may ask for this class. */
bool policy_may_choose(const struct policy_class *c, const struct pattern_job *job);

#endif
