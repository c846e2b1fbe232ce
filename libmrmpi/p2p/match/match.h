/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching of receives and messages (MPI-3.1 section 3.5). A pure structure: no network, no requests.
 *
 * An entry stands under a key (context, source, tag), where source and tag may be the wildcards MR_ANY_SOURCE and
 * MR_ANY_TAG. Entries with the same key form a queue, in the order of insertion; queues are found by hashing, so the
 * time of an operation does not depend on the number of waiting entries.
 *
 * Posted receives have one entry each, under their key; an arriving message checks the (up to) four keys that match it
 * and takes the entry with the lowest stamp. Unexpected messages have four entries, one under each possible key of a
 * receive, so a receive checks exactly one queue, whose first entry arrived first.
 *
 * The caller owns the entries; the tables own only their queues.
 */
#ifndef MRMPI_MATCH_H
#define MRMPI_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mr_match_queue;

struct mr_match_entry {
    struct mr_match_entry *next, *prev;
    struct mr_match_queue *queue; /* NULL: in no table */
    uint64_t stamp;
    void *owner;
};

struct mr_match_table {
    struct mr_match_queue **buckets;
    uint32_t mask; /* number of buckets - 1 */
    uint32_t num_queues;
    uint32_t by_class[4]; /* entries by their key: no wildcard, any source, any tag, both; */
    uint32_t wild;        /* the sum of the last three */
    uint64_t stamp;
    /* the last emptied queue keeps its place: likely to be used again */
    struct mr_match_queue *empty;
    struct mr_match_queue *last;  /* where the last entry was inserted; NULL: that queue is gone */
    struct mr_match_queue *spare; /* free queues */
    struct mr_match_slab *slabs;
};

int mr_match_init(struct mr_match_table *t);
void mr_match_finalize(struct mr_match_table *t);

/* 0 or -ENOMEM. */
int mr_match_insert(struct mr_match_table *t, struct mr_match_entry *e, uint32_t ctx, int src, int tag);
void mr_match_remove(struct mr_match_table *t, struct mr_match_entry *e);
/* The oldest entry under exactly this key, NULL if none. */
struct mr_match_entry *mr_match_find(const struct mr_match_table *t, uint32_t ctx, int src, int tag);
/*
 * Removes and returns the oldest entry whose key, with its wildcards, takes a message (ctx, src, tag). NULL: none does.
 */
struct mr_match_entry *mr_match_take(struct mr_match_table *t, uint32_t ctx, int src, int tag);

/* The four entries of an unexpected message. */
struct mr_match_quad {
    struct mr_match_entry e[4];
};
int mr_match_insert_quad(struct mr_match_table *t, struct mr_match_quad *q, uint32_t ctx, int src, int tag,
                         void *owner);
void mr_match_remove_quad(struct mr_match_table *t, struct mr_match_quad *q);

/* Calls f for every entry under exactly this key, oldest first; f may remove its entry. */
void mr_match_each_at(struct mr_match_table *t, uint32_t ctx, int src, int tag,
                      void (*f)(struct mr_match_entry *e, void *arg), void *arg);
/* The same for every entry, oldest first within a key. */
void mr_match_each(struct mr_match_table *t, void (*f)(struct mr_match_entry *e, void *arg), void *arg);

static inline bool mr_match_empty(const struct mr_match_table *t)
{
    return t->num_queues == (t->empty != NULL);
}

#endif
