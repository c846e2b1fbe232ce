/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The LID paths between two ports, asked of the subnet administration: forwarding tables of the switches that the paths
 * cross and cables, read when a question first meets a switch and kept for half a minute (routes.h). A host of a fat
 * tree of two levels so reads tables of its own leaf, the spines, and the leaves of hosts that are asked for: at most
 * one question for each switch of the subnet, and one for all cables, however many hosts there are.
 *
 * All of it belongs to the main thread; nothing here waits. Questions and names are bounded.
 */
#ifndef FABRICD_FABRIC_PATHS_H
#define FABRICD_FABRIC_PATHS_H

#include "fabricd/base/text.h"
#include "fabricd/fabric/routes.h"
#include "fabricd/fabric/sa.h"

/* Through a port of this host: from and to are base LIDs of its subnet, with num LIDs each. */
struct paths_question {
    char device[FD_DEV_MAX];
    uint8_t port;
    uint16_t from, to;
    unsigned num;
};

struct paths;

/* pair: NULL unless status is 0. */
typedef void (*paths_told)(void *arg, struct sa_asker who, const struct paths_question *q, int status,
                           const struct routes_pair *pair);

/* NULL: no memory. sa is used until paths_stop. */
struct paths *paths_start(struct sa *sa, paths_told told, void *arg);
void paths_stop(struct paths *p);

/* 0: told follows, or has been called. Negative errno: it is not called; -EBUSY: too much is asked at a time. */
int paths_ask(struct paths *p, const struct paths_question *q, struct sa_asker who);

/*
 * The paths between two hosts as text (struct fd_ends), looked for in the subnet of that port of this host. status:
 * 0, and what there is to print in out; -ENOENT: the subnet lacks one of them, as out says; another negative errno.
 */
typedef void (*paths_shown)(void *arg, struct sa_asker who, int status, const struct text *out);
int paths_show(struct paths *p, const char *device, uint8_t port, const struct fd_ends *ends, struct sa_asker who,
               paths_shown shown, void *arg);

#endif
