/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The common part of collectives that only move data: some ranks put their data into their slots, piece by piece, and
 * some ranks read the data there. Each collective names the ranks, and converts its user's buffer to pieces and back.
 */
#ifndef MRMPI_NODE_EXCHANGE_H
#define MRMPI_NODE_EXCHANGE_H

#include "libmrmpi/coll/node/area.h"

struct mr_node_exchange {
    bool writes;
    bool apart;      /* a writer has a block for each other rank, not one for all */
    size_t gives;    /* writers: bytes of a block */
    size_t expects;  /* readers: the same, of each source; an upper bound, if `amount` takes lengths */
    size_t grain;    /* pieces are cut at its multiples; 0: anywhere */
    int stride, num; /* readers read from ranks me - stride, me - 2 * stride, ... num of them, modulo the ranks */
    /* Writers: bytes [offset, + len) of the block for that rank (apart), or of the block for all. */
    void (*fill)(void *arg, int rank, size_t offset, size_t len, char *to);
    /* Readers: the same bytes of the block of that rank. */
    void (*take)(void *arg, int rank, size_t offset, size_t len, const char *from);
    /* Readers: bytes of the block of that rank, if all blocks fit a slot of the small ring. NULL: `expects`. */
    size_t (*amount)(void *arg, int rank);
    /* Local work of this rank between its writes and its reads, once. NULL: none */
    void (*meanwhile)(void *arg);
    void *arg;
};

/*
 * Writers put bytes [offset, + len) of a buffer of count elements into their piece. to: as for `fill`, or
 * mr_node_data() of a piece after mr_node_to_write().
 */
void mr_node_to_write(struct mr_node *n, struct mr_node_ring *r, uint64_t piece, size_t bytes);
void mr_node_put(struct mr_node *n, const void *buf, size_t count, const struct mr_type *t, size_t offset, char *to,
                 size_t len);

/*
 * By all ranks, after mr_node_begin(). An error of the data: amounts that do not match, as for messages, or a notice
 * of a writer (n->failed).
 */
enum mr_err mr_node_exchange(struct mr_node *n, const struct mr_node_exchange *x);

/*
 * Blocks of any lengths, each known to its two ranks only. A writer's blocks go as one piece if they fit a slot.
 * Otherwise its line says so, and all of its blocks go another way: the readers learn of it.
 */
struct mr_varied {
    bool writes;
    int only;        /* writers: the only rank with a block; negative: a block for each other rank */
    int stride, num; /* as above */
    size_t (*gives)(void *arg, int rank);   /* writers: bytes for that rank */
    size_t (*expects)(void *arg, int rank); /* readers: bytes from that rank at most */
    void (*fill)(void *arg, int rank, size_t offset, size_t len, char *to);
    void (*take)(void *arg, int rank, size_t offset, size_t len, const char *from);
    void (*meanwhile)(void *arg);
    void *arg;
};
/*
 * later: [n->ranks], false before; true: a writer to this rank, or this rank, whose blocks go another way. As
 * mr_node_exchange; blocks may be shorter than expected.
 */
enum mr_err mr_node_exchange_varied(struct mr_node *n, const struct mr_varied *x, bool *later);

/* The error of a received block for an operation that expects so much. */
enum mr_err mr_node_amount(int rank, uint64_t bytes, size_t expected);

#endif
