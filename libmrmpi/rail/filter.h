/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completion filter: a message that was cut over several subchannels is one message to the protocol above. The
 * sender counts the completions of its stripes, the receiver counts the notifications (immediate data of the last write
 * of each stripe). Pure.
 *
 * A notification has 32 bits: the number of stripes of the message, and a token that names the receive it belongs to.
 * The token is an index into the receiver's table and the generation of that entry, so that a late or repeated
 * notification finds nothing.
 */
#ifndef MRMPI_FILTER_H
#define MRMPI_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#define MR_TOKEN_INDEX_BITS 20
#define MR_TOKEN_BITS       27
#define MR_STRIPES_MAX      32 /* what the other 5 bits can say */

/* ---- sender ---------------------------------------------------------------------------------------------------- */

struct mr_filter {
    unsigned open; /* stripes without a completion */
    int error;     /* the first one */
};

/* One stripe is done. True when it was the last. */
static inline bool mr_filter_done(struct mr_filter *f, int error)
{
    if (error && !f->error)
        f->error = error;
    return --f->open == 0;
}

/* ---- receiver -------------------------------------------------------------------------------------------------- */

struct mr_landing {
    void *owner; /* NULL: free */
    uint32_t next_free;
    uint8_t generation;
    uint8_t expected; /* stripes; 0: none has come yet */
    uint8_t arrived;
};

struct mr_landings {
    struct mr_landing *entry;
    uint32_t num, first_free; /* first_free == num: none is free */
};

/* A token for owner, or negative errno: -ENOMEM, -EAGAIN (a million are in use). */
int mr_landing_open(struct mr_landings *t, void *owner, uint32_t *token);
void mr_landing_close(struct mr_landings *t, uint32_t token);
void mr_landings_free(struct mr_landings *t);

static inline uint32_t mr_landing_imm(uint32_t token, unsigned stripes)
{
    return (token & ((1u << MR_TOKEN_BITS) - 1)) | (stripes - 1) << MR_TOKEN_BITS;
}

/*
 * A notification came. Returns the owner when it was the last of its message, and opens the entry for another; NULL
 * otherwise. *stray: it belongs to nothing that is open.
 */
void *mr_landing_arrived(struct mr_landings *t, uint32_t imm, bool *stray);

#endif
