/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node area of a communicator whose ranks share a node: memory through which its blocking collectives go without
 * messages. Two rings (ring.h): pieces of few KiB, each an operation, and long pieces, of which an operation may have
 * many. Long pieces lie in chunks of their writer's pool (channel/shm_pool.h), which serves its messages and all areas:
 * the pages are made once. While no chunk is free, because messages are not received, they lie in slots of the area.
 *
 * All members make the area together, led by coll/: rank 0 makes the memory and announces its place, the others open
 * it, and all have the area or none. Waiting here runs the progress engine. Functions that return enum mr_err give an
 * error when the area is out of order: the area then stays so, for all members.
 */
#ifndef MRMPI_NODE_AREA_H
#define MRMPI_NODE_AREA_H

#include "libmrmpi/base/copier.h"
#include "libmrmpi/base/reader.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/coll/node/ring.h"

enum { MR_NODE_RANKS_MAX = 128 };

/* The place of rank 0's memory. */
struct mr_node_site {
    int32_t pid, fd; /* fd -1: rank 0 failed */
};

struct mr_node {
    struct mr_node_ring small, bulk;
    int ranks, me;
    bool crowded;     /* more ranks than cores on this node, as all members agree: waiters soon sleep */
    bool full;        /* of full size, of which a process has few */
    const int *world; /* [ranks]: the group's */
    struct mr_group *group;
    struct mr_shm_chunks chunks; /* of this rank's pool, for its long pieces */
    struct mr_reader reader;     /* of those: all ranks */
    uint64_t in_chunks;          /* the last piece there */
    unsigned calls;              /* operations so far */
    uint64_t started;            /* the operation under way: its first piece in the small ring */
    uint64_t *broken; /* shared: 0, or the first operation (as `started`) for which the area is out of order; a bit says
                         that a process is missing (wait.c) */
    const struct mr_comm *whole; /* the communicator of the operations; may have members elsewhere */
    enum mr_err failed;          /* this rank's data of the next operation is not there: it writes a notice instead */
    struct mr_copier copier;     /* into this rank's slots */
    bool cached;                 /* the slot under way is written without streaming, whatever the times say */
    void *base;
    size_t bytes;
    struct mr_node *next; /* of those closed before others have read all of their chunks */
};

/* By rank 0; the second when all have opened the memory. */
struct mr_node_site mr_node_create(int ranks);
void mr_node_created(struct mr_node_site s);
/* By all: NULL without success. */
struct mr_node *mr_node_open(struct mr_node_site s, const struct mr_comm *c);
/* A member's vote, n or NULL: the least of all holds for all. 0: no area. */
int mr_node_vote(const struct mr_node *n);
void mr_node_agreed(struct mr_node *n, int least);
void mr_node_close(struct mr_node *n); /* NULL is fine */

/* Waits until the rank's piece is there, or its second half. */
enum mr_err mr_node_await(struct mr_node *n, const struct mr_node_line *line, uint64_t piece, int rank);
/* Until this rank may write the piece of the small ring. */
enum mr_err mr_node_await_room(struct mr_node *n, uint64_t piece);
/*
 * Where this rank writes so many bytes of a long piece, to be published next; NULL: there is no room yet. The second
 * waits for room.
 */
char *mr_node_try_long(struct mr_node *n, uint64_t piece, size_t bytes);
enum mr_err mr_node_begin_long(struct mr_node *n, uint64_t piece, size_t bytes, char **to);
/* Where so many bytes of a rank's long piece are. NULL: the rank has written an impossible place. */
char *mr_node_long(const struct mr_node *n, int rank, uint64_t piece, size_t bytes);
/* The same, once the piece is there; for an impossible place the area is out of order. */
enum mr_err mr_node_await_long(struct mr_node *n, int rank, uint64_t piece, size_t bytes, char **at);
/* Wakes ranks that may sleep until something is published or done. */
void mr_node_wake(const struct mr_node *n);
/*
 * The members disagree on this operation: no rank shall wait for ever. Members in earlier operations continue: all
 * their data will come.
 */
void mr_node_break(struct mr_node *n);
/* Begins an operation: MR_SUCCESS, or the error left by mr_node_break. */
enum mr_err mr_node_begin(struct mr_node *n);

#endif
