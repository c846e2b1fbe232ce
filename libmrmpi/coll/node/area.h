/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node area of a communicator whose ranks share a node: memory through which its blocking collectives go without
 * messages. Two rings (ring.h): pieces of few KiB, each an operation, and long pieces, of which an operation may have
 * many.
 *
 * Making it is a conversation of all members, which coll/ leads: rank 0 makes the memory and says where it is, the
 * others open it, and all have it or none. What waits here runs the progress engine meanwhile. Functions that return
 * enum mr_err give an error when the area is out of order: then it stays so, for all members.
 */
#ifndef MRMPI_NODE_AREA_H
#define MRMPI_NODE_AREA_H

#include "libmrmpi/channel/shm_copy.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/coll/node/ring.h"

enum { MR_NODE_RANKS_MAX = 128 };

/* Where rank 0 has put it. */
struct mr_node_site {
    int32_t pid, fd; /* fd -1: it could not */
};

struct mr_node {
    struct mr_node_ring small, bulk;
    int ranks, me;
    bool crowded;     /* more ranks than cores on this node, as all members agree: waiters soon sleep */
    bool full;        /* of full size, of which a process has few */
    const int *world; /* [ranks]: the group's */
    unsigned calls;   /* operations so far */
    uint64_t started; /* the operation that is under way: its first piece in the small ring */
    uint64_t *broken; /* shared: 0, or the first operation (as `started`) for which the area is out of order; a bit
                         says that a process is missing (wait.c) */
    const struct mr_comm *whole; /* the communicator in whose operations it is used, if it has members elsewhere */
    enum mr_err failed; /* this rank's data of the next operation is not there: it writes a notice instead */
    struct mr_copier copier; /* into this rank's slots */
    bool plain;              /* the one that is written is not streamed, whatever the times say */
    void *base;
    size_t bytes;
};

/* By rank 0; and when all have opened it. */
struct mr_node_site mr_node_create(int ranks);
void mr_node_created(struct mr_node_site s);
/* By all: NULL if it cannot be. */
struct mr_node *mr_node_open(struct mr_node_site s, const struct mr_comm *c);
/* What a member says then, n or NULL: the least of all holds for all. 0: they have no area. */
int mr_node_vote(const struct mr_node *n);
void mr_node_agreed(struct mr_node *n, int least);
void mr_node_close(struct mr_node *n); /* NULL is fine */

/* Until that rank's piece is there, or its second half. */
enum mr_err mr_node_await(struct mr_node *n, const struct mr_node_line *line, uint64_t piece, int rank);
/* Until this rank may write the piece. */
enum mr_err mr_node_await_room(struct mr_node *n, struct mr_node_ring *r, uint64_t piece);
/* What has been published or is done: those who may sleep until it is are woken. */
void mr_node_wake(const struct mr_node *n);
/*
 * The members disagree on this operation: nobody shall wait for ever. Members that are in earlier ones still go on: all
 * that these need will come.
 */
void mr_node_break(struct mr_node *n);
/* An operation begins: MR_SUCCESS, or what mr_node_break has left. */
enum mr_err mr_node_begin(struct mr_node *n);

#endif
