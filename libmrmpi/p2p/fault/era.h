/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One agreement of a group whose members may fail meanwhile: the scheme "early returning agreement" (Herault and
 * others, 2015). Pure: the caller sends the messages, and tells of messages that came and of members that failed.
 *
 * Members form a binomial tree. Each adds the values of its children to its own and sends the sum up (UP); the root's
 * sum is the decision, and travels down (DOWN). A failed member's place is taken by its nearest living ancestor, or,
 * without one, by the living member of the lowest rank, the new root. A member that adopts another member asks (ASK)
 * for the other's value, and the other sends it, or the decision if that is known already. So a new root has heard from
 * every living member, directly or not, before it decides: a decision that any of them has wins.
 *
 * Two rules keep decisions of old and new roots apart. After UP a member takes DOWN only from the receiver of that UP,
 * until the receiver fails. And the next receiver has a higher level: it would not be the receiver unless all those of
 * lower levels had failed. A member takes nothing from lower levels, even if the news of their failure comes later.
 *
 * What the caller must promise: a member said to have failed has failed; members that live hear of it sooner or later;
 * messages between living members arrive in order; none of a member comes after the news of its failure (such a message
 * is ignored). A decided struct answers late members as long as it is kept.
 */
#ifndef MRMPI_P2P_FAULT_ERA_H
#define MRMPI_P2P_FAULT_ERA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mr_era_kind { MR_ERA_UP, MR_ERA_ASK, MR_ERA_DOWN };

/*
 * A value: of one member, of several, or the decision. On the wire as in memory, the list behind it. Failed members, by
 * ascending rank: rank * 2, + 1 if each of the members that the value comes from has acknowledged the failure.
 */
struct mr_era_value {
    uint64_t flags;  /* the values' bits, ANDed */
    uint32_t number; /* the largest */
    uint32_t num_failed;
    uint32_t failed[];
};

struct mr_era {
    int size, me;
    /* value: NULL for ASK. May fail silently if the receiver has failed. */
    void (*send)(void *arg, int to, enum mr_era_kind kind, const struct mr_era_value *value);
    void *arg;
    bool called, decided;
    int up_to;    /* the receiver of the last UP; -1: none was sent, or the receiver has failed */
    int level;    /* the highest of all receivers so far; 0: none */
    int asked_by; /* the asker to answer when the children have come; -1: none */
    int num_dead;
    struct mr_era_value *sum; /* of the values so far, or the decision; NULL: none */
    uint8_t *of;              /* [size] */
};

/* False: no memory. */
bool mr_era_init(struct mr_era *e, int size, int me);
void mr_era_free(struct mr_era *e);

static inline size_t mr_era_bytes(uint32_t num_failed)
{
    return sizeof(struct mr_era_value) + (size_t)num_failed * sizeof(uint32_t);
}
/* May these bytes from another process be a value of a group of that size? */
bool mr_era_is_value(const void *bytes, size_t len, int size);

/* This member takes part from now on; the failed members in the value are those known to it. False: no memory. */
bool mr_era_call(struct mr_era *e, const struct mr_era_value *own);
/* A message has come. value: NULL for ASK. False: no memory; the message is lost. */
bool mr_era_message(struct mr_era *e, int from, enum mr_era_kind kind, const struct mr_era_value *value);
bool mr_era_died(struct mr_era *e, int rank);

/* Of a decision: some failure was not acknowledged by all. */
bool mr_era_unacknowledged(const struct mr_era_value *v);
bool mr_era_has_failed(const struct mr_era_value *v, int rank);

#endif
