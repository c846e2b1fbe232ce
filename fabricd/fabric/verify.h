/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ports of the fabric really have: every node is found and asked by directed-route packets from this host,
 * and every live port is compared with the tables that the policy wants.
 */
#ifndef FABRICD_FABRIC_VERIFY_H
#define FABRICD_FABRIC_VERIFY_H

#include "fabricd/policy/compile.h"
#include "fabricd/fabric/smp.h"

#define VERIFY_SUBNETS_MAX 8

struct look;
struct node;
struct port;
/* Called for each live port p, which is one of a switch's live ports; an adapter's is alone. */
typedef void verify_visit(void *arg, struct look *l, const struct node *n, const struct port *p,
                          const struct port *ports, unsigned live);

/* A plane (subnet), as it was seen from a port of this host. */
struct verify_plane {
    struct smp_port from;
    unsigned seen_from; /* index of the port from which it was looked at: this one, or one before that is in the same */
    int error;
    struct fabric_caps caps;
    unsigned nodes, ports, differences;
    unsigned other_sm_lid;
};

struct verify_options {
    bool high_limit; /* compare VLHighLimit (ibsim does not keep it) */
    struct smp_port
        whole[VERIFY_SUBNETS_MAX]; /* the whole subnet behind each; "" and 0: behind the first active port */
    unsigned num_whole;
    struct smp_port near[SMP_PORTS_MAX]; /* these ports of this host, and those at the other ends of their cables */
    unsigned num_near;
    const struct plane_tables *planes; /* what planes want that differ; NULL: none does */
    bool mend_pkeys;                   /* ports that differ in them are written to */
    const struct policy *policy;       /* whose partitions with members ports are to have; or NULL */
    unsigned stop_at;                  /* end the look when there are so many differences; 0: look at everything */
    verify_visit *visit;               /* or NULL */
    void *visit_arg;
};

#define VERIFY_DIFFERENCES_MAX 64 /* told in text; the rest are only counted */

struct verify_result {
    int error;               /* 0, or the negative errno that kept us from looking */
    unsigned nodes, ports;   /* seen; ports that are up */
    unsigned differences;    /* of a look that has ended early: so far, as all that follows */
    unsigned pkeys;          /* of the differences: memberships in partitions */
    bool vls_lag;            /* some port has fewer operational VLs than the tables use */
    bool unsettled;          /* some port is up but not Active yet, or nobody answered there */
    struct fabric_caps caps; /* the least of all ports; of MTU and path the most */
    unsigned num_planes;     /* one for each of the whole subnets */
    struct verify_plane plane[VERIFY_SUBNETS_MAX];
    unsigned ca_ports;      /* adapters' ports that are up, in the subnet that has most */
    unsigned asked;         /* this host's ports that were looked from */
    unsigned lmc, lmc_most; /* the least and the most of these */
    unsigned other_sm_lid;  /* where the master subnet manager is, if not at the port that was looked from */
    char without_table[96]; /* a port that has no arbitration table at all, or empty */
    struct text adapters;   /* with partitions to compare: adapters' ports, a line "0xGUID DESCRIPTION" each */
    struct text text;       /* the, one line each: node, port, table, expected, found */
    struct text list;       /* the same as a list in YAML, for programs */
};

/*
 * want NULL: only look; else what ports are to have, but for planes that differ. A port of a plane that is only looked
 * at nearby may have what any of the planes wants. The result is filled anew; free it with verify_result_free. True if
 * all is as wanted. */
bool verify_fabric(const struct verify_options *o, const struct qos_tables *want, struct verify_result *r);
/* A difference that is no port's: what (opensm, a plane) and how, a line without its end. */
void verify_note(struct verify_result *r, const char *what, const char *how);
void verify_result_free(struct verify_result *r);

#endif
