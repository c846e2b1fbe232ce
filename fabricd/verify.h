/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ports of the fabric really have: every node is found and asked by directed-route packets from this host,
 * and every live port is compared with the tables that the policy wants.
 */
#ifndef FABRICD_VERIFY_H
#define FABRICD_VERIFY_H

#include "fabricd/compile.h"
#include "fabricd/smp.h"

struct verify_options {
    bool high_limit;    /* compare VLHighLimit (ibsim does not keep it) */
    bool near;          /* only this host's ports and those at the other ends of their cables */
    const char *device; /* NULL: the first active port; of near, all active ports */
    int port;
};

#define VERIFY_DIFFERENCES_MAX 64 /* told in text; the rest are only counted */

struct verify_result {
    int error;               /* 0, or the negative errno that kept us from looking */
    unsigned nodes, ports;   /* seen; ports that are up */
    unsigned differences;
    bool vls_lag;            /* some port has fewer operational VLs than the tables use */
    bool unsettled;          /* some port is up but not Active yet, or nobody answered there */
    struct fabric_caps caps; /* the least of all ports; of MTU and path the most */
    unsigned ca_ports;       /* adapters' ports that are up */
    unsigned lmc;            /* of the port that asked */
    struct text text;        /* the differences, one line each: node, port, table, expected, found */
};

/* want NULL: only look. The result is filled anew; free it with verify_result_free. True if all is as wanted. */
bool verify_fabric(const struct verify_options *o, const struct qos_tables *want, struct verify_result *r);
void verify_result_free(struct verify_result *r);

#endif
