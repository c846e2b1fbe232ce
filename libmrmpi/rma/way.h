/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An operation of the origin under way: origin.c finds its kind and its target, send.c cuts and sends it, or applies it
 * to reachable memory.
 */
#ifndef MRMPI_RMA_WAY_H
#define MRMPI_RMA_WAY_H

#include "libmrmpi/rma/internal.h"

/* Bytes accumulated at a time in reachable memory. */
#define MR_NEAR_PART (32u << 10)

struct mr_rma_way {
    struct mr_win *w;
    struct mr_rma_peer *p;
    struct mr_vc *vc;
    struct mr_rma_job *job; /* NULL: the program has no request */
    enum mr_rma_what what;
    unsigned code; /* enum mr_op_id, or MR_PIECES_SWAP */
    struct mr_type *basic;
    const struct mr_rma_data *from, *result; /* NULL: there is none */
    const struct mr_rma_place *at;
    uint64_t addr;
    bool no_wait; /* executed from a poll */
    bool in_reach;
    char *near; /* then: its place */
};

/* ---- send.c ------------------------------------------------------------------------------------------------------ */

/* How many bytes of data a packet may have beside its pieces: a multiple of unit. */
size_t mr_way_room(const struct mr_rma_way *o, size_t unit);
bool mr_way_fits(const struct mr_rma_way *o, size_t bytes); /* one packet, one piece */
/* Parts of an operation (mr_pieces_fn, with the way as arg). */
enum mr_err mr_way_put(const struct mr_pieces *p, size_t offset, void *arg);
enum mr_err mr_way_get(const struct mr_pieces *p, size_t offset, void *arg);
enum mr_err mr_way_accumulate(const struct mr_pieces *p, size_t offset, void *arg);
enum mr_err mr_way_accumulate_near(const struct mr_pieces *p, size_t offset, void *arg);
/* An operation with len bytes of its own data, and a result. */
enum mr_err mr_way_ask(const struct mr_pieces *p, size_t offset, size_t len, const void *data, struct mr_rma_way *o);
/* All of its data, in one piece in the window, by a message. */
enum mr_err mr_way_long(struct mr_rma_way *o, size_t bytes);

/* mr_direct_again_fn */
enum mr_err mr_way_again(struct mr_rma_peer *p, struct mr_rma_job *j, void *buf, size_t len, uint64_t addr, bool write);

#endif
