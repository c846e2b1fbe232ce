/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The real tables of the fabric's ports: every node is found and asked by directed-route packets from this host, and
 * every live port is compared with the policy's tables.
 */
#ifndef FABRICD_FABRIC_VERIFY_H
#define FABRICD_FABRIC_VERIFY_H

#include "fabricd/policy/compile.h"
#include "fabricd/fabric/smp.h"

#define VERIFY_SUBNETS_MAX 8

struct look;
struct node;
struct port;
/* Called for each live port p, one of a switch's live ports; an adapter's port is alone. */
typedef void verify_visit(void *arg, struct look *l, const struct node *n, const struct port *p,
                          const struct port *ports, unsigned live);

#define VERIFY_SMS_MAX 8 /* the rest are not noted */

/* A port with a subnet manager. */
struct verify_sm {
    uint64_t guid;
    char node[65];        /* description of its node */
    struct smp_path path; /* from the port that the plane was read from */
};

/* A plane (subnet), as it was seen from a port of this host. */
struct verify_plane {
    struct smp_port from;
    unsigned seen_from; /* index of the first port from which the same plane was read: this port or an earlier one */
    int error;
    struct fabric_caps caps;
    unsigned nodes, ports, differences;
    unsigned other_sm_lid;
    struct verify_sm sm[VERIFY_SMS_MAX];
    unsigned num_sms;
};

struct verify_options {
    bool high_limit; /* compare VLHighLimit (ibsim does not keep it) */
    struct smp_port
        whole[VERIFY_SUBNETS_MAX]; /* the whole subnet behind each; "" and 0: behind the first active port */
    unsigned num_whole;
    struct smp_port near[SMP_PORTS_MAX]; /* these ports of this host, and the ports at the other ends of their cables */
    unsigned num_near;
    const struct plane_tables *planes; /* the tables of planes that differ; NULL: none differs */
    bool mend_pkeys;                   /* ports with other P_Keys are written */
    const struct policy *policy;       /* policy with the partitions and members for ports; or NULL */
    const struct host_keys *jobs;      /* hosts of running jobs, which are members, too; NULL: not known here */
    unsigned stop_at;                  /* end the look when there are so many differences; 0: look at everything */
    verify_visit *visit;               /* or NULL */
    void *visit_arg;
    void (*count)(void *arg, unsigned ports); /* after each live port, with their number so far; or NULL */
    void *count_arg;
};

#define VERIFY_DIFFERENCES_MAX 64 /* told in text; the rest are only counted */

struct verify_result {
    int error;               /* 0, or the negative errno that prevented the look */
    unsigned nodes, ports;   /* found nodes; active ports */
    unsigned differences;    /* of a look that has ended early: so far, like all fields below */
    unsigned pkeys;          /* of the differences: memberships in partitions */
    unsigned pkeys_lacking;  /* of these: members without the key */
    bool vls_lag;            /* some port has fewer operational VLs than the tables use */
    bool unsettled;          /* a port is up but not Active yet, or did not answer */
    struct fabric_caps caps; /* the least of all ports; of MTU and path the most */
    unsigned num_planes;     /* one for each of the whole subnets */
    struct verify_plane plane[VERIFY_SUBNETS_MAX];
    unsigned ca_ports;      /* adapters' active ports, in the subnet with most of them */
    unsigned asked;         /* this host's ports used for the look */
    unsigned lmc, lmc_most; /* the least and the most of these */
    unsigned other_sm_lid;  /* where the master subnet manager is, if not at the port that was looked from */
    char without_table[96]; /* a port that has no arbitration table at all, or empty */
    struct text adapters;   /* with partitions to compare: adapters' ports, a line "0xGUID DESCRIPTION" each */
    struct text text;       /* the differences, one line each: node, port, table, expected, found */
    struct text list;       /* the same as a list in YAML, for programs */
};

/*
 * want NULL: only look; else the tables for all ports except those of planes that differ. A port of a plane that is
 * read nearby only may have the tables of any plane. The result is filled anew; free it with verify_result_free. True
 * if all ports have their tables.
 */
bool verify_fabric(const struct verify_options *o, const struct qos_tables *want, struct verify_result *r);
/* A difference that belongs to no port: its object (opensm, a plane) and its text, a line without its end. */
void verify_note(struct verify_result *r, const char *what, const char *how);
void verify_result_free(struct verify_result *r);

#endif
