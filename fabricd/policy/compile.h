/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From policy and lock to tables: a pure function. The same two texts give the same tables on every node and at any
 * time, independent of fabric, files and floating-point arithmetic.
 *
 * Bulk: every class has `lanes` virtual lanes in the low-priority table, with weights in proportion to the class's
 * share. All volume of a class goes there, so the share binds.
 *
 * Small and control messages of a class with a priority of 1 to 3 have a lane in the high-priority table. The class has
 * as many turns there as its priority, of one packet each. The ports' high limit is 1: after 4096 bytes of such packets
 * the low-priority table may send one. With too few lanes the least important classes share a lane; without any lane
 * left, small messages go with the bulk.
 *
 * A level between small and bulk has a lane in the low-priority table that may send one packet per round. The level is
 * not part of the class's share. Lanes unused by small messages go to these levels, those of the most important class
 * first; a level without a lane goes with the bulk of its class.
 *
 * Senders ration the traffic ahead of the bulk (num_ahead levels of a class).
 *
 * The default class's first lane of bulk is VL 0. Service level 0 and retired levels travel there or on another of its
 * lanes of bulk, so traffic without knowledge of policies has the default class's share.
 */
#ifndef FABRICD_COMPILE_H
#define FABRICD_COMPILE_H

#include "fabricd/policy/lock.h"

#define TABLE_ENTRIES_MAX 64

struct vlarb {
    uint8_t vl, weight; /* units of 64 bytes */
};

struct class_levels {
    uint8_t priority; /* as given, or as required by the goal */
    uint8_t sl_small, vl_small;
    uint8_t num_medium;
    uint8_t sl_medium[FD_MEDIUM_MAX], vl_medium[FD_MEDIUM_MAX];
    uint8_t num_lanes;
    uint8_t sl_bulk[FD_LANES_MAX], vl_bulk[FD_LANES_MAX];
    uint8_t num_ahead;   /* levels whose messages do not wait with the bulk: senders ration them */
    bool own_small_lane; /* no other class uses vl_small */
    double share;        /* percent that the tables really give */
};

struct qos_tables {
    uint8_t sl2vl[SLS];
    unsigned num_low, num_high;
    struct vlarb low[TABLE_ENTRIES_MAX], high[TABLE_ENTRIES_MAX];
    uint8_t high_limit;
    uint8_t lmc;
    uint8_t vls;               /* data VLs in operation */
    uint8_t op_vls_code;       /* the same as PortInfo tells it: 1..5 */
    unsigned oversubscription; /* of the fabric; 0: unknown. Ports do not use the value, ahead budgets do */
    unsigned num_classes;
    struct class_levels classes[POLICY_CLASSES_MAX];
};

/*
 * False with errors in d if the policy does not fit the lock's fabric, or the lock does not fit the policy (see
 * lock_next); t must not be used then.
 */
bool policy_compile(const struct policy *p, const struct policy_lock *lock, struct qos_tables *t, struct diag *d);

/* The tables of each plane of the lock; n 0: all planes have the common tables. */
struct plane_tables {
    unsigned n;
    uint64_t guid[LOCK_PLANES_MAX];
    struct qos_tables of[LOCK_PLANES_MAX];
};

/*
 * The tables for jobs and for planes without differences, and the tables of each plane that differs. A plane with fewer
 * lanes than the policy's vls gets the possible lanes, and at least one plane must have them all.
 */
bool policy_compile_planes(const struct policy *p, const struct policy_lock *lock, struct qos_tables *t,
                           struct plane_tables *planes, struct diag *d);
/* The tables of the plane with this port; common: of planes that do not differ. */
const struct qos_tables *tables_of_plane(const struct plane_tables *planes, const struct qos_tables *common,
                                         uint64_t guid);

/* Facts of the subnet known only during a look. They decide only whether the policy may be applied. */
struct subnet {
    unsigned ca_ports;          /* adapters' ports: each takes 2^lmc LIDs */
    const char *routing_engine; /* opensm's setting, NULL: its default */
    unsigned sm_sl;
};
bool policy_check_subnet(const struct policy *p, const struct subnet *s, struct diag *d);

/* The data of the largest packet in lanes of the high-priority table; 0: no such lanes. */
unsigned policy_high_bytes(const struct policy *p, const struct qos_tables *t);

/* The tables in opensm's notation: "0:64,1:192" and "0,1,2". */
void tables_vlarb_text(struct text *out, const struct vlarb *e, unsigned n);
void tables_sl2vl_text(struct text *out, const uint8_t sl2vl[SLS]);
/* The classes with their levels, lanes and shares, one line each, as YAML under `indent`. */
void tables_classes_text(struct text *out, const struct policy *p, const struct qos_tables *t, const char *indent);
/* The whole plan, as YAML. */
void tables_plan_text(struct text *out, const struct policy *p, const struct qos_tables *t);

/* The differences of planes, a line each under `indent`; nothing without differences. */
void tables_planes_text(struct text *out, const struct plane_tables *planes, const char *indent);

bool tables_equal(const struct qos_tables *a, const struct qos_tables *b);
bool tables_planes_equal(const struct plane_tables *a, const struct plane_tables *b);

#endif
