/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits of a pair of ranks: the limit of eager bytes of one rank for which the other has not found the receive yet.
 * Pure arithmetic, one struct for both directions of a pair: no packets, no clock.
 *
 * An eager message costs its payload and MR_CREDIT_EACH. Both sides count these bytes without end: the sender the bytes
 * spent, the receiver the bytes that have met their receives. The receiver tells its count - by the note, a byte that
 * goes with every packet anyway: the count in units, its last eight bits; - by a packet of its own (EAGER_CREDIT: the
 * count itself), when what it has not told is half the window. A pair that answers each other needs no such packets.
 * The note changes only when the receiver checks its count, some four times before such a packet would be due, so that
 * an ordinary message costs each side an addition and a comparison.
 *
 * A sender never waits for credit: without it, a message is offered (rendezvous) and its data stays where it is. So
 * ranks with different settings understand each other, and no progress depends on when a note or such a packet is sent.
 */
#ifndef MRMPI_CREDIT_H
#define MRMPI_CREDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_CREDIT_EACH   512u         /* size of the record of an unexpected message, about */
#define MR_CREDIT_UNIT   (16u << 10)  /* of the note */
#define MR_CREDIT_AHEAD  192u         /* units by which the note may be ahead of the peer's knowledge: less than 256 */
#define MR_CREDIT_LEAST  4096u        /* less is not worth a packet */
#define MR_CREDIT_MOST   (2u << 20)   /* more is sent at once, so that the note is never ambiguous */
#define MR_CREDIT_WINDOW (256u << 10) /* minimum of every peer, for any number of peers */

struct mr_credit {
    /* as sender */
    uint64_t used;  /* spent, and not known to be consumed */
    uint64_t acked; /* known to be consumed, in all */
    uint8_t noted;  /* the note as last seen */
    /* as receiver */
    uint32_t packets;  /* sent to the peer until the last check */
    uint64_t consumed; /* in all */
    uint64_t check_at; /* the count of the next check */
    uint64_t noting;   /* of consumed, as sent by the note since the last check */
    uint64_t told;     /* of consumed, as sent to the peer */
};

/* ---- sender ------------------------------------------------------------------------------------------------------ */

static inline bool mr_credit_allows(const struct mr_credit *c, size_t len, size_t window)
{
    return c->used + len + MR_CREDIT_EACH <= window;
}

static inline void mr_credit_spend(struct mr_credit *c, size_t len)
{
    c->used += len + MR_CREDIT_EACH;
}

/* The peer reports its total of consumed bytes. False: more than was sent; nothing changes. */
static inline bool mr_credit_returned(struct mr_credit *c, uint64_t total)
{
    if (total < c->acked)
        return true; /* of an older count */
    if (total - c->acked > c->used)
        return false;
    c->used -= total - c->acked;
    c->acked = total;
    return true;
}

/* A packet has brought another note than the last one. */
static inline bool mr_credit_noted(struct mr_credit *c, uint8_t note)
{
    uint64_t units = c->acked / MR_CREDIT_UNIT;

    c->noted = note;
    return mr_credit_returned(c, (units + (uint8_t)(note - (uint8_t)units)) * MR_CREDIT_UNIT);
}

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

/* A message has met its receive. True: it is time for mr_credit_check. */
static inline bool mr_credit_consume(struct mr_credit *c, size_t len)
{
    c->consumed += len + MR_CREDIT_EACH;
    return c->consumed >= c->check_at;
}

/*
 * Gives the note for the packets to come; packets: how many have been sent to the peer. True: a packet of credit is
 * due. If it has been sent, mr_credit_told.
 */
static inline bool mr_credit_check(struct mr_credit *c, uint32_t packets, size_t window, uint8_t *note)
{
    uint64_t patience = window / 2 < MR_CREDIT_MOST ? window / 2 : MR_CREDIT_MOST;
    uint64_t units = c->consumed / MR_CREDIT_UNIT;

    if (patience < MR_CREDIT_LEAST)
        patience = MR_CREDIT_LEAST;
    if (packets != c->packets && c->noting > c->told)
        c->told = c->noting; /* something has taken the note along */
    if (units > c->told / MR_CREDIT_UNIT + MR_CREDIT_AHEAD)
        units = c->told / MR_CREDIT_UNIT + MR_CREDIT_AHEAD;
    *note = (uint8_t)units;
    c->noting = units * MR_CREDIT_UNIT;
    c->packets = packets;
    c->check_at = c->consumed + patience / 4;
    return c->consumed - c->told >= patience;
}

static inline void mr_credit_told(struct mr_credit *c)
{
    c->told = c->consumed;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

/* The limit of one of several peers: most, or its part of the total. */
static inline size_t mr_credit_window(size_t most, size_t all, int peers)
{
    size_t part = peers > 1 ? all / (size_t)peers : all;

    if (part < MR_CREDIT_WINDOW)
        part = MR_CREDIT_WINDOW;
    return most < part ? most : part;
}

#endif
