/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The LID paths between two ports, from the subnet administration: cables, and forwarding tables of the switches on the
 * paths, read when a question first needs a switch and kept for half a minute (routes.h). In a fat tree of two levels,
 * a host reads the tables of its own leaf, of the spines, and of the leaves of asked hosts: at most one question per
 * switch of the subnet, and one for all cables, however many hosts there are.
 *
 * Forwarding tables change when the subnet manager sweeps. While somebody is interested in changes (paths_look), the
 * master's activity count is read now and then (sweeps.h). After a heavy sweep the known tables and cables are read
 * again, and a difference is reported.
 *
 * The main thread owns everything; nothing here waits. Questions and names are bounded.
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

/* Tables or cables of the subnet at this port of this host differ from those of earlier answers. */
typedef void (*paths_moved)(void *arg, const char *device, uint8_t port);

/* NULL: no memory. sa is used until paths_stop. */
struct paths *paths_start(struct sa *sa, paths_told told, paths_moved moved, void *arg);
void paths_stop(struct paths *p);

/* 0: told follows, or has been called. Negative errno: it is not called; -EBUSY: too much is asked at a time. */
int paths_ask(struct paths *p, const struct paths_question *q, struct sa_asker who);

/*
 * Looks for changes in the subnets of earlier questions; to be called more than once a second while anybody depends on
 * earlier answers. All hosts of a subnet together ask its manager at most some 100 times a second.
 */
void paths_look(struct paths *p);
/* Nobody depends on earlier answers: without looks, answers are kept for a second only. */
void paths_rest(struct paths *p);

/*
 * The paths between two hosts as text (struct fd_ends), in the subnet of this port of this host. status: 0, with the
 * text in out; -ENOENT: a host is missing, named in out; another negative errno.
 */
typedef void (*paths_shown)(void *arg, struct sa_asker who, int status, const struct text *out);
int paths_show(struct paths *p, const char *device, uint8_t port, const struct fd_ends *ends, struct sa_asker who,
               paths_shown shown, void *arg);

#endif
