/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The forwarding of a subnet's switches, and the LID paths between two ports that share no cable between switches.
 * Pure: forwarding tables and cables come from records of the subnet administration. Few switches may be known; a trace
 * that meets an unknown switch names it.
 *
 * A path is one of the 2^LMC LIDs of a port, the same number at both ends: packets there go to the far port's LID of
 * that number, packets back to the near port's. Two paths are disjoint if no direction of one shares the port of a
 * switch towards another switch with the same direction of the other. Ports towards adapters do not count: every path
 * uses them.
 */
#ifndef FABRICD_ROUTES_H
#define FABRICD_ROUTES_H

#include "fabricd/proto/proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROUTES_HOPS_MAX 64 /* as many as a directed route can have */

/* IBTA volume 1, 15.2.5.6 and 15.2.5.13: LinearForwardingTableRecord, LinkRecord */
#define ROUTES_TABLE_RECORD 72
#define ROUTES_LINK_RECORD  6

/* The forwarding table of a switch. */
struct routes_table {
    uint16_t lid;      /* of the switch */
    uint64_t read;     /* when */
    bool stale;        /* to be read again: not used in traces */
    unsigned num_lids; /* LIDs with a place in the table */
    uint8_t *out;      /* by LID, the port towards the LID */
};

/* One end of a cable, and the base LID at the other end. */
struct routes_cable {
    uint16_t lid, to;
    uint8_t port;
};

/* The known part of a subnet. Zero: nothing. */
struct routes {
    unsigned num_tables, room;
    struct routes_table *table; /* by LID */
    bool has_cables;            /* and need not read them again */
    uint64_t cables_read;
    unsigned num_cables;
    struct routes_cable *cable; /* by LID and port */
    bool changed;               /* a part differed from the part that it replaced; the owner clears this */
};

/* A switch on the way, and the port by which the packet leaves. */
struct routes_hop {
    uint16_t lid;
    uint8_t port;
};

struct route {
    unsigned num;
    struct routes_hop hop[ROUTES_HOPS_MAX]; /* the last port leads to the adapter */
};

enum routes_end {
    ROUTES_THERE,   /* the route is complete */
    ROUTES_NEEDS,   /* something has to be read first */
    ROUTES_NOWHERE, /* the tables lead to no port with this LID */
};

/* The missing part: all cables, or the table of a switch. */
#define ROUTES_CABLES 0 /* is no switch's LID */
typedef uint16_t routes_need;

void routes_free(struct routes *r);
size_t routes_memory(const struct routes *r); /* bytes */

/*
 * Takes a missing part: num records of size bytes each, of the switch with this LID (records of others are ignored), or
 * all cables. now: a time by the caller's clock, for routes_forget. 0, or -ENOMEM.
 */
int routes_take(struct routes *r, routes_need what, const uint8_t *record, size_t num, size_t size, uint64_t now);
/* All parts read before this time are missing from now on. Their contents are kept for the comparison (changed). */
void routes_forget(struct routes *r, uint64_t before);
/* Part i, below routes_parts, of all that was read once. True: the part is missing now, and *what names it. */
bool routes_stale(const struct routes *r, unsigned i, routes_need *what);
unsigned routes_parts(const struct routes *r);

/* By the last cables read: LIDs with several cables are switches, those with one cable are adapters' ports. */
struct routes_count {
    unsigned switches, adapters;
};
struct routes_count routes_count(const struct routes *r);

/* Traces from an adapter's port with base LID from to the LID to, a LID of the port with base LID to_base. */
enum routes_end routes_trace(const struct routes *r, uint16_t from, uint16_t to, uint16_t to_base, struct route *out,
                             routes_need *need);

/* All paths between two ports: there[i], back[i] are the routes of path i, complete if has[i]. */
struct routes_pair {
    unsigned num; /* at most FD_PATHS_MAX */
    bool has[FD_PATHS_MAX];
    struct route there[FD_PATHS_MAX], back[FD_PATHS_MAX];
};

/* from, to: base LIDs of the ports. ROUTES_NOWHERE: not even path 0 leads there. */
enum routes_end routes_pair(const struct routes *r, uint16_t from, uint16_t to, unsigned num, struct routes_pair *out,
                            routes_need *need);

/*
 * Paths in the order of their use: path 0, each path disjoint from all before, then the others. Returns the number of
 * disjoint paths, at least 1.
 */
unsigned routes_order(const struct routes_pair *p, uint8_t order[FD_PATHS_MAX]);

#endif
