/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One node and one port of the fabric: read by directed-route packets, and compared with the policy's tables. The
 * result counts and names differences. verify.c finds the ports.
 */
#ifndef FABRICD_FABRIC_PORTS_H
#define FABRICD_FABRIC_PORTS_H

#include "fabricd/fabric/verify.h"

enum { TYPE_CA = 1, TYPE_SWITCH = 2 };
enum { STATE_DOWN = 1, STATE_INIT = 2, STATE_ACTIVE = 4 };

struct node {
    struct smp_path path;
    uint64_t guid, port_guid; /* of the node, and of the port where the path arrives */
    uint8_t plane;            /* index of the port of this host whose whole subnet contains the node */
    uint16_t num_pkeys;       /* entries of the table of P_Keys */
    uint8_t type, num_ports;
    uint8_t entry; /* the port where the path arrives */
    char desc[65];
};

struct port {
    uint8_t num;
    uint16_t lid, sm_lid;
    uint8_t state, lmc, mtu_code, vl_cap, op_vls, high_limit, high_cap, low_cap;
    uint8_t width, speed, speed_ext; /* in PortInfo's codes */
    bool has_sm;                     /* IsSM of the capability mask (14.2.5.6): a subnet manager runs there */
};

/* The source and the object of a look. */
struct look {
    struct smp *smp;
    unsigned from;   /* index among the ports whose whole subnets are read */
    bool high_limit; /* compare VLHighLimit */
    const struct qos_tables *want;
    struct verify_result *r;
    struct verify_plane *plane; /* of r; NULL: only nearby ports are read */
    unsigned unreachable;       /* LIDs that led nowhere */
};

/* NodeInfo and NodeDescription of the node at the end of n->path; the others fields of n are set. As smp_get. */
int node_read(struct look *w, struct node *n);
/* PortInfo. As smp_get. */
int port_read(struct look *w, const struct node *n, unsigned num, struct port *p);

/* Everything but SL2VL; then the mapping of packets that come in by port in (an adapter's: 0) and go out by out. */
void port_compare(struct look *w, const struct node *n, const struct port *p);
void port_compare_sl2vl(struct look *w, const struct node *n, unsigned in, unsigned out);
/*
 * The partitions of p, at the port of an adapter. jobs: as of policy_is_member; NULL: not known here. mend: a table
 * with differences is written.
 */
void port_compare_pkeys(struct look *w, const struct node *n, const struct policy *p, const struct host_keys *jobs,
                        bool mend);
/* Every LID of an adapter's port leads there and back: a subnet that is being set up anew is not ready before. */
void port_compare_route(struct look *w, const struct node *n, const struct port *p);

/*
 * Asks ahead, in the same order, the questions whose answers these functions read: call them for the next ports, then
 * the functions themselves.
 */
void node_read_ahead(struct look *w, const struct smp_path *path);
void port_read_ahead(struct look *w, const struct node *n, unsigned num);
void port_compare_ahead(struct look *w, const struct node *n, const struct port *p);
void port_compare_sl2vl_ahead(struct look *w, const struct node *n, unsigned in, unsigned out);
void port_compare_pkeys_ahead(struct look *w, const struct node *n);
void port_compare_route_ahead(struct look *w, const struct port *p);

/* A difference, as a line of the result; rc is smp_get's. */
void port_differs(struct look *w, const struct node *n, unsigned port, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void port_no_answer(struct look *w, const struct node *n, unsigned port, const char *what, int rc);

#endif
