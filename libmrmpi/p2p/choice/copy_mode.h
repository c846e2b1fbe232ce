/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy modes: how the bytes of a large message get from one rank of a node to another.
 *
 * Which is soonest depends on the machine (what its caches share, how the kernel copies), on the length, and on what
 * the two cores have to do besides: one that sends and receives at the same time copies twice as much when both ranks
 * copy each byte. None of that is known beforehand. So the receiver, who chooses, tries each mode on a few messages of
 * a size and a load, keeps the one that took the least time for a byte, and tries the others again: now and then, and
 * when that one takes longer than it did.
 *
 * A mode is kept for a run of messages. A few are received at a time, so that they end in turn: the time from one end
 * to the next is what a message takes. Where there is more than one, MR_COPY_MEAN in a row are one sample, and only
 * behind others that went the same mode, since data of the later ones is worked off while the earlier ones are waited
 * for. Of each mode the median of the last MR_COPY_SAMPLES samples counts, so that one that was late decides nothing;
 * those of an earlier trial are forgotten. At first each mode has two runs, of which the first warms memory and caches
 * (what is pushed takes more than one, once). A new size begins with what its neighbour knows.
 *
 * Pure: one struct for all peers of a process on its node; no packets, and the times are given.
 */
#ifndef MRMPI_COPY_MODE_H
#define MRMPI_COPY_MODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mr_copy_mode {
    MR_COPY_PUSH,  /* both copy, piece by piece, through memory that they share */
    MR_COPY_READ,  /* the receiver copies from the sender's memory */
    MR_COPY_SPLIT, /* the receiver so the back half, the sender into its memory the front half */
    MR_COPY_MODES
};

enum mr_copy_load {
    MR_LOAD_ONE,    /* one message */
    MR_LOAD_STREAM, /* others come in, too, or one behind the other */
    MR_LOAD_BOTH,   /* this rank has large messages for ranks of the node at the same time */
    MR_LOADS
};

#define MR_COPY_SAMPLES  3
#define MR_COPY_SIZES    8          /* up to 32 KiB, 64 KiB, ... 2 MiB, more */
#define MR_COPY_MEAN     4          /* messages of a sample where others are under way, */
#define MR_COPY_BEHIND   3          /* and so many before them, whose times do not count */
#define MR_COPY_ROUNDS   2          /* runs of each mode before the first choice */
#define MR_COPY_WARM     (3u << 20) /* bytes pushed before it counts: then a pool (shm_pool.h) is in the caches */
#define MR_COPY_RUN      64         /* messages of a run of the best mode, at first; */
#define MR_COPY_RUN_MOST 1024       /* twice as many each time that the others are found to be no better */
#define MR_COPY_FAR      128        /* messages until a mode is tried again that took half as long again, at first; */
#define MR_COPY_FAR_MOST 8192       /* four times as many each time */

struct mr_copy_cell {
    uint32_t ps[MR_COPY_MODES][MR_COPY_SAMPLES]; /* for a byte */
    uint8_t num[MR_COPY_MODES];                  /* samples that were taken, at most MR_COPY_SAMPLES */
    uint8_t next[MR_COPY_MODES];                 /* which of them is the oldest */
    uint8_t rounds[MR_COPY_MODES];               /* runs that have tried it */
    bool begun, trying, settled;                 /* a mode has been chosen */
    bool stale;                                  /* what is known of the mode that is tried is old */
    uint8_t now, best, turn; /* modes: of this run, of the last one that did not try, to be tried next */
    uint16_t left, run;      /* messages of this run, of the next one of the best mode */
    uint16_t far, far_next;  /* messages since a far mode was tried, and until the next one is */
    uint32_t settled_ps;     /* what the best took when it was chosen */
};

struct mr_copy_modes {
    struct mr_copy_cell cell[MR_LOADS][MR_COPY_SIZES];
    uint64_t last_end_ns, last_ns;   /* of the message before, what it took; */
    const struct mr_copy_cell *last; /* where it counted, */
    enum mr_copy_mode last_mode;     /* its mode, */
    unsigned in_row;                 /* and so many were alike in a row: */
    uint64_t sum_ns, sum_len;        /* of those that are the next sample */
    uint64_t pushed;                 /* bytes, until they are enough */
    unsigned refused;                /* modes that are out of the question: bits */
};

/* How a message goes, and where it counts. */
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

/* The way of the next message that is received. Fills in c, but for begin_ns, which the caller does when it begins. */
enum mr_copy_mode mr_copy_mode_choose(struct mr_copy_modes *w, struct mr_copy_choice *c, size_t len,
                                      enum mr_copy_load load);
/* A message that begins now comes right behind the one before, which need not be under way for that any more. */
bool mr_copy_mode_follows(const struct mr_copy_modes *w, uint64_t now_ns);
/* All of its bytes are there. */
void mr_copy_mode_ended(struct mr_copy_modes *w, const struct mr_copy_choice *c, uint64_t now_ns);
/* It cannot be gone: it is chosen no more, unless there is no other. */
void mr_copy_mode_refuse(struct mr_copy_modes *w, enum mr_copy_mode mode);
/* What is known of a mode: ps for a byte; 0: nothing yet. */
uint32_t mr_copy_mode_cost(const struct mr_copy_cell *cell, enum mr_copy_mode mode);
/* The same in words. False: nothing is known yet. */
bool mr_copy_mode_describe(const struct mr_copy_cell *cell, char *line, size_t size);
extern const char *const mr_copy_mode_names[MR_COPY_MODES + 1]; /* the last is NULL */

#endif
