/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From policy to tables: a pure function, no fabric and no file needed.
 *
 * Lanes: every class has `lanes` virtual lanes for bulk, all in the low-priority table, with weights in proportion to
 * the class's share. A class with priority 1-3 has one more for its small and control messages, in the high-priority
 * table. When there are too few lanes for that, the least important classes share one; when there are none left, small
 * messages go with the bulk. A level between small and bulk has a lane in the low-priority table, which counts as one
 * more of its class: its messages neither go ahead of other classes nor wait behind the bulk of their own. Lanes that
 * small messages leave are given to these levels, those of the most important class first; a level that gets none goes
 * with the bulk of its class. The default class's bulk is service level 0 on VL 0, so that traffic which knows nothing
 * of all this (IPoIB, other MPIs, the subnet's own) has the default class's share.
 */
#ifndef FABRICD_COMPILE_H
#define FABRICD_COMPILE_H

#include "fabricd/policy.h"

#define TABLE_ENTRIES_MAX 64
#define SLS               16

struct vlarb {
    uint8_t vl, weight; /* units of 64 bytes */
};

/* What the fabric can do. Zero: not known, the checks that need it are left out. */
struct fabric_caps {
    unsigned vls;               /* data VLs that every port can have */
    unsigned low_cap, high_cap; /* entries of the arbitration tables */
    unsigned mtu;               /* the largest of any link */
    unsigned rate_mbps;         /* data rate of the slowest link: 4X DDR is 16000 */
    unsigned hops;              /* links of the longest path that was seen */
    unsigned ca_ports;          /* adapters' ports: each takes 2^lmc LIDs */
    const char *routing_engine; /* opensm's setting, NULL: its default */
    unsigned sm_sl;
};

struct class_levels {
    uint8_t sl_small, vl_small;
    uint8_t num_medium;
    uint8_t sl_medium[FD_MEDIUM_MAX], vl_medium[FD_MEDIUM_MAX];
    uint8_t num_lanes;
    uint8_t sl_bulk[FD_LANES_MAX], vl_bulk[FD_LANES_MAX];
    uint8_t num_low; /* lanes in the low-priority table, all alike: those for bulk, then those of the levels between */
    uint8_t vl_low[FD_LANES_MAX + FD_MEDIUM_MAX];
    bool own_small_lane; /* nobody else is on vl_small */
    double share;        /* percent that the tables really give */
};

struct qos_tables {
    uint8_t sl2vl[SLS];
    unsigned num_low, num_high;
    struct vlarb low[TABLE_ENTRIES_MAX], high[TABLE_ENTRIES_MAX];
    uint8_t high_limit;
    uint8_t lmc;
    uint8_t vls;         /* data VLs in operation */
    uint8_t op_vls_code; /* the same as PortInfo tells it: 1..5 */
    unsigned num_classes;
    struct class_levels classes[POLICY_CLASSES_MAX];
};

/* False with errors in d if the policy does not fit the fabric; t is then not to be used. */
bool policy_compile(const struct policy *p, const struct fabric_caps *caps, struct qos_tables *t, struct diag *d);

/* What the tables say, in opensm's notation: "0:64,1:192" and "0,1,2". */
void tables_vlarb_text(struct text *out, const struct vlarb *e, unsigned n);
void tables_sl2vl_text(struct text *out, const uint8_t sl2vl[SLS]);
/* The classes with their levels, lanes and shares, one line each, as YAML under `indent`. */
void tables_classes_text(struct text *out, const struct policy *p, const struct qos_tables *t, const char *indent);
/* The whole plan, as YAML. */
void tables_plan_text(struct text *out, const struct policy *p, const struct qos_tables *t);

bool tables_equal(const struct qos_tables *a, const struct qos_tables *b);

#endif
