/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy modes: means to move the bytes of a large message from one rank of a node to another.
 *
 * The fastest mode depends on the machine (shared caches, copies by the kernel), on the length, and on other work of
 * the two cores: a core that sends and receives at the same time copies twice as much if both ranks copy each byte.
 * None of this is known beforehand. So the receiver, which chooses, has a learner (base/learn.h) for each size and
 * load. At first each mode is tried. A new size begins with the knowledge of the nearest known size.
 *
 * A few messages are received at a time, so that they end in turn: the time from one end to the next is the time of a
 * message. With more than one, MR_COPY_FEW in a row are one sample, and only behind as many of the same mode, since
 * data of the later ones is worked off while the earlier ones are waited for. The first pushed messages do not count:
 * the pool has to be in the caches.
 *
 * Messages begin with reads: a read copies each byte once and needs no memory. The pool's pages cost time when they are
 * made. The least gain that the learner takes is one part in MR_LEARN_GAIN, so pushes are tried when messages have
 * taken MR_LEARN_GAIN times as long as making the pages would: then that gain would have paid for the pages.
 *
 * Pure: one struct for all peers of a process on its node; no packets, and the times are given.
 */
#ifndef MRMPI_COPY_MODE_H
#define MRMPI_COPY_MODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/learn.h"

/* Ways of the learner. */
enum mr_copy_mode {
    MR_COPY_PUSH,  /* both copy, piece by piece, through shared memory */
    MR_COPY_READ,  /* the receiver copies from the sender's memory */
    MR_COPY_SPLIT, /* the receiver so the back half, the sender into its memory the front half */
    MR_COPY_MODES
};

enum mr_copy_load {
    MR_LOAD_ONE,    /* a single message */
    MR_LOAD_STREAM, /* others come in, too, or one behind the other */
    MR_LOAD_BOTH,   /* this rank has large messages for ranks of the node at the same time */
    MR_LOADS
};

#define MR_COPY_SIZES 8          /* up to 32 KiB, 64 KiB, ... 2 MiB, more */
#define MR_COPY_FEW   3          /* messages of a peer that are received at a time */
#define MR_COPY_WARM  (3u << 20) /* bytes pushed before it counts: then a pool (shm_pool.h) is in the caches */

struct mr_copy_modes {
    struct mr_learn cell[MR_LOADS][MR_COPY_SIZES];
    uint64_t last_end_ns, last_ns; /* end and time of the message before; */
    const struct mr_learn *last;   /* its cell, */
    enum mr_copy_mode last_mode;   /* its mode, */
    unsigned in_row;               /* and the number of equal ones in a row: */
    uint64_t sum_ns, sum_len;      /* sums of the next sample */
    uint64_t pushed;               /* bytes so far, until enough */
    uint64_t spent_ns;             /* in all messages so far, until pushes are tried */
    unsigned refused;              /* modes that are impossible: bits */
    uint8_t offered[MR_LOADS];     /* cells whose learner knows that pushes are possible: bits */
};

/* A message's mode, and the cell of its sample. */
struct mr_copy_choice {
    enum mr_copy_mode mode;
    enum mr_copy_load load;
    uint64_t begin_ns;
    size_t len;
};

static inline unsigned mr_copy_mode_size(size_t len)
{
    unsigned size = 0;

    for (len = (len - 1) >> 15; len && size < MR_COPY_SIZES - 1; len >>= 1)
        size++;
    return size;
}

/*
 * The mode of the next message received. pool_ns: the time for pages of the pool that do not exist yet. Fills in c,
 * except begin_ns, which the caller sets at the beginning.
 */
enum mr_copy_mode mr_copy_mode_choose(struct mr_copy_modes *w, struct mr_copy_choice *c, size_t len,
                                      enum mr_copy_load load, uint64_t pool_ns);
/* True if a message that begins now comes right behind the one before, which need no longer be under way. */
bool mr_copy_mode_follows(const struct mr_copy_modes *w, uint64_t now_ns);
/* All of its bytes are there. */
void mr_copy_mode_ended(struct mr_copy_modes *w, const struct mr_copy_choice *c, uint64_t now_ns);
/* The mode is impossible: no longer chosen, unless there is no other. */
void mr_copy_mode_refuse(struct mr_copy_modes *w, enum mr_copy_mode mode);
/* The costs of modes, in words. False: nothing is known yet. */
bool mr_copy_mode_describe(const struct mr_learn *cell, char *line, size_t size);
extern const char *const mr_copy_mode_names[MR_COPY_MODES + 1]; /* the last is NULL */

#endif
