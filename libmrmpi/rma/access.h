/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An operation of the origin under way: origin.c finds its kind and its target, send.c cuts and sends it, or applies it
 * to reachable memory.
 */
#ifndef MRMPI_RMA_ACCESS_H
#define MRMPI_RMA_ACCESS_H

#include "libmrmpi/rma/internal.h"

/* Bytes accumulated at a time in reachable memory. */
#define MR_NEAR_PART (32u << 10)

struct mr_rma_access {
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
size_t mr_access_room(const struct mr_rma_access *o, size_t unit);
bool mr_access_fits(const struct mr_rma_access *o, size_t bytes); /* one packet, one piece */
/* Parts of an operation (mr_pieces_fn, with the operation as arg). */
enum mr_err mr_access_put(const struct mr_pieces *p, size_t offset, void *arg);
enum mr_err mr_access_get(const struct mr_pieces *p, size_t offset, void *arg);
enum mr_err mr_access_accumulate(const struct mr_pieces *p, size_t offset, void *arg);
enum mr_err mr_access_accumulate_near(const struct mr_pieces *p, size_t offset, void *arg);
/* An operation with len bytes of its own data, and a result. */
enum mr_err mr_access_ask(const struct mr_pieces *p, size_t offset, size_t len, const void *data,
                          struct mr_rma_access *o);
/* All of its data, in one piece in the window, by a message. */
enum mr_err mr_access_long(struct mr_rma_access *o, size_t bytes);

/* mr_direct_again_fn */
enum mr_err mr_access_again(struct mr_rma_peer *p, struct mr_rma_job *j, void *buf, size_t len, uint64_t addr,
                            bool write);

#endif
