/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways: how the bytes of a large message get from one rank of a node to another.
 *
 * Which is soonest depends on the machine (what its caches share, how the kernel copies), on the length, and on what
 * the two cores have to do besides: one that sends and receives at the same time copies twice as much when both ranks
 * copy each byte. None of that is known beforehand. So the receiver, who chooses, tries each way on a few messages of a
 * size and a load, keeps the one that took the least time for a byte, and tries the others again: now and then, and
 * when that one takes longer than it did.
 *
 * A way is kept for a run of messages. A few are received at a time, so that they end in turn: the time from one end to
 * the next is what a message takes. Where there is more than one, MR_WAY_MEAN in a row are one sample, and only behind
 * others that went the same way, since data of the later ones is worked off while the earlier ones are waited for. Of
 * each way the median of the last MR_WAY_SAMPLES samples counts, so that one that was late decides nothing; those of an
 * earlier trial are forgotten. At first each way has two runs, of which the first warms memory and caches (what is
 * pushed takes more than one, once). A new size begins with what its neighbour knows.
 *
 * Pure: one struct for all peers of a process on its node; no packets, and the times are given.
 */
#ifndef MRMPI_WAY_H
#define MRMPI_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mr_way {
    MR_WAY_PUSH,   /* both copy, piece by piece, through memory that they share */
    MR_WAY_READ,   /* the receiver copies from the sender's memory */
    MR_WAY_HALVES, /* the receiver so the back half, the sender into its memory the front half */
    MR_WAYS
};

enum mr_way_load {
    MR_LOAD_ONE,    /* one message */
    MR_LOAD_STREAM, /* others come in, too, or one behind the other */
    MR_LOAD_BOTH,   /* this rank has large messages for ranks of the node at the same time */
    MR_LOADS
};

#define MR_WAY_SAMPLES  3
#define MR_WAY_SIZES    8    /* up to 32 KiB, 64 KiB, ... 2 MiB, more */
#define MR_WAY_MEAN     4    /* messages of a sample where others are under way, */
#define MR_WAY_BEHIND   3    /* and so many before them, whose times do not count */
#define MR_WAY_ROUNDS   2    /* runs of each way before the first choice */
#define MR_WAY_WARM     (3u << 20) /* bytes pushed before it counts: then a pool (shm_pool.h) is in the caches */
#define MR_WAY_RUN      64   /* messages of a run of the best way, at first; */
#define MR_WAY_RUN_MOST 1024 /* twice as many each time that the others are found to be no better */
#define MR_WAY_FAR      128  /* messages until a way is tried again that took half as long again, at first; */
#define MR_WAY_FAR_MOST 8192 /* four times as many each time */

struct mr_way_cell {
    uint32_t ps[MR_WAYS][MR_WAY_SAMPLES]; /* for a byte */
    uint8_t num[MR_WAYS];                 /* samples that were taken, at most MR_WAY_SAMPLES */
    uint8_t next[MR_WAYS];                /* which of them is the oldest */
    uint8_t rounds[MR_WAYS];              /* runs that have tried it */
    bool begun, trying, settled;          /* a way has been chosen */
    bool stale;                           /* what is known of the way that is tried is old */
    uint8_t now, best, turn;              /* ways: of this run, of the last one that did not try, to be tried next */
    uint16_t left, run;                   /* messages of this run, of the next one of the best way */
    uint16_t far, far_next;               /* messages since a far way was tried, and until the next one is */
    uint32_t settled_ps;                  /* what the best took when it was chosen */
};

struct mr_ways {
    struct mr_way_cell cell[MR_LOADS][MR_WAY_SIZES];
    uint64_t last_end_ns, last_ns;  /* of the message before, what it took; */
    const struct mr_way_cell *last; /* where it counted, */
    enum mr_way last_way;           /* its way, */
    unsigned in_row;                /* and so many were alike in a row: */
    uint64_t sum_ns, sum_len;       /* of those that are the next sample */
    uint64_t pushed;                /* bytes, until they are enough */
    unsigned refused;     /* ways that are out of the question: bits */
};

/* How a message goes, and where it counts. */
struct mr_way_choice {
    enum mr_way way;
    enum mr_way_load load;
    uint64_t begin_ns;
    size_t len;
};

static inline unsigned mr_way_size(size_t len)
{
    unsigned size = 0;

    for (len = (len - 1) >> 15; len && size < MR_WAY_SIZES - 1; len >>= 1)
        size++;
    return size;
}

/* The way of the next message that is received. Fills in c, but for begin_ns, which the caller does when it begins. */
enum mr_way mr_way_choose(struct mr_ways *w, struct mr_way_choice *c, size_t len, enum mr_way_load load);
/* A message that begins now comes right behind the one before, which need not be under way for that any more. */
bool mr_way_follows(const struct mr_ways *w, uint64_t now_ns);
/* All of its bytes are there. */
void mr_way_ended(struct mr_ways *w, const struct mr_way_choice *c, uint64_t now_ns);
/* It cannot be gone: it is chosen no more, unless there is no other. */
void mr_way_refuse(struct mr_ways *w, enum mr_way way);
/* What is known of a way: ps for a byte; 0: nothing yet. */
uint32_t mr_way_cost(const struct mr_way_cell *cell, enum mr_way way);
/* The same in words. False: nothing is known yet. */
bool mr_way_describe(const struct mr_way_cell *cell, char *line, size_t size);
extern const char *const mr_way_names[MR_WAYS + 1]; /* the last is NULL */

#endif
