/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From policy and lock to tables: a pure function. The same two texts give the same tables on every node and at any
 * time; no fabric, file or floating-point number has a say in it.
 *
 * Bulk: every class has `lanes` virtual lanes in the low-priority table, with weights in proportion to the class's
 * share. All that a class sends in volume goes there, so the share binds.
 *
 * Small and control messages of a class with a priority of 1 to 3 have a lane in the high-priority table, in which the
 * class has as many turns as its priority, of one packet each. The ports' high limit is 1: after 4096 bytes of such
 * packets the low-priority table may send one. When there are too few lanes the least important classes share one; when
 * there are none left, small messages go with the bulk.
 *
 * A level between small and bulk has a lane in the low-priority table that may send one packet a round. It is not part
 * of the class's share. Lanes that small messages leave are given to these levels, those of the most important class
 * first; a level that gets none goes with the bulk of its class.
 *
 * What goes ahead of the bulk in this way (num_ahead levels of a class) is rationed by the senders.
 *
 * The default class's first lane of bulk is VL 0. Service level 0 and retired levels travel there or on another of its
 * lanes of bulk, so that traffic which knows nothing of all this has the default class's share.
 */
#ifndef FABRICD_COMPILE_H
#define FABRICD_COMPILE_H

#include "fabricd/policy/lock.h"

#define TABLE_ENTRIES_MAX 64

struct vlarb {
    uint8_t vl, weight; /* units of 64 bytes */
};

struct class_levels {
    uint8_t priority; /* as given, or as the goal needs it */
    uint8_t sl_small, vl_small;
    uint8_t num_medium;
    uint8_t sl_medium[FD_MEDIUM_MAX], vl_medium[FD_MEDIUM_MAX];
    uint8_t num_lanes;
    uint8_t sl_bulk[FD_LANES_MAX], vl_bulk[FD_LANES_MAX];
    uint8_t num_ahead;   /* levels whose messages do not wait with the bulk: senders ration them */
    bool own_small_lane; /* nobody else is on vl_small */
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
    unsigned oversubscription; /* of the fabric; 0: not known. Ports know nothing of it, ahead budgets do */
    unsigned num_classes;
    struct class_levels classes[POLICY_CLASSES_MAX];
};

/*
 * False with errors in d if the policy does not fit the lock's fabric, or the lock not the policy (see lock_next); t is
 * then not to be used.
 */
bool policy_compile(const struct policy *p, const struct policy_lock *lock, struct qos_tables *t, struct diag *d);

/* What the policy becomes on each plane of the lock; n 0: the tables are those of all. */
struct plane_tables {
    unsigned n;
    uint64_t guid[LOCK_PLANES_MAX];
    struct qos_tables of[LOCK_PLANES_MAX];
};

/*
 * The tables for what jobs are told and for planes that do not differ, and those of each plane that does. A plane with
 * fewer lanes than the policy's vls has those that it can, and one at least must have them all.
 */
bool policy_compile_planes(const struct policy *p, const struct policy_lock *lock, struct qos_tables *t,
                           struct plane_tables *planes, struct diag *d);
/* Of the plane that is known by this port; common: of planes that do not differ. */
const struct qos_tables *tables_of_plane(const struct plane_tables *planes, const struct qos_tables *common,
                                         uint64_t guid);

/* What is known of the subnet only while it is looked at, and decides nothing but whether the policy may be applied. */
struct subnet {
    unsigned ca_ports;          /* adapters' ports: each takes 2^lmc LIDs */
    const char *routing_engine; /* opensm's setting, NULL: its default */
    unsigned sm_sl;
};
bool policy_check_subnet(const struct policy *p, const struct subnet *s, struct diag *d);

/* The data of the largest packet in lanes of the high-priority table; 0: there are none. */
unsigned policy_high_bytes(const struct policy *p, const struct qos_tables *t);

/* What the tables say, in opensm's notation: "0:64,1:192" and "0,1,2". */
void tables_vlarb_text(struct text *out, const struct vlarb *e, unsigned n);
void tables_sl2vl_text(struct text *out, const uint8_t sl2vl[SLS]);
/* The classes with their levels, lanes and shares, one line each, as YAML under `indent`. */
void tables_classes_text(struct text *out, const struct policy *p, const struct qos_tables *t, const char *indent);
/* The whole plan, as YAML. */
void tables_plan_text(struct text *out, const struct policy *p, const struct qos_tables *t);

/* What planes have that differ, a line each under `indent`; nothing if none does. */
void tables_planes_text(struct text *out, const struct plane_tables *planes, const char *indent);

bool tables_equal(const struct qos_tables *a, const struct qos_tables *b);
bool tables_planes_equal(const struct plane_tables *a, const struct plane_tables *b);

#endif
