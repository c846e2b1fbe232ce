/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Acknowledgements. Packets after a gap are noted in a set indexed by the low bits of their numbers, of which an ACK
 * shows the first 64. Packets further ahead are not noted: the peer learns of them when the gap is closed.
 */
#include "libmrmpi/conn/reliable/ack.h"

#include <string.h>

#define WORDS       (MR_ACK_EARLY / 64)
#define SEQ_BITS    27
#define SEQ_MASK    ((1u << SEQ_BITS) - 1)
#define FLIGHT_MOST 32767u

void mr_ack_init(struct mr_ack *a, uint32_t seq, uint64_t delay_ns, unsigned every, unsigned flight)
{
    *a = (struct mr_ack){.cum = seq, .furthest = seq - 1, .delay_ns = delay_ns, .due_ns = UINT64_MAX};
    a->every = every ? every : 1;
    a->flight = a->told = flight ? flight : 1;
}

/* ---- the set of early packets ------------------------------------------------------------------------------------ */

static uint64_t *early_word(struct mr_ack *a, uint32_t seq)
{
    return &a->early[seq / 64 % WORDS];
}

/* True if it was there already; one that is too far ahead to be noted counts as new. */
static bool note_early(struct mr_ack *a, uint32_t seq)
{
    uint64_t *word = early_word(a, seq), bit = 1ull << seq % 64;
    bool known;

    if (seq - a->cum >= MR_ACK_EARLY)
        return false;
    known = *word & bit;
    *word |= bit;
    return known;
}

static void move_to(struct mr_ack *a, uint32_t expected)
{
    if (expected - a->cum >= MR_ACK_EARLY) {
        memset(a->early, 0, sizeof a->early);
        a->cum = expected;
    }
    for (; a->cum != expected; a->cum++)
        *early_word(a, a->cum) &= ~(1ull << a->cum % 64);
}

static uint64_t early_after(struct mr_ack *a, uint32_t seq)
{
    uint64_t low = *early_word(a, seq) >> seq % 64;

    return seq % 64 ? low | *early_word(a, seq + 64) << (64 - seq % 64) : low;
}

/* 0: nothing ahead is known. No window is longer than FLIGHT_MOST: anything further away was long ago. */
static uint32_t furthest_ahead(const struct mr_ack *a)
{
    uint32_t ahead = a->furthest - a->cum;

    return ahead <= FLIGHT_MOST ? ahead : 0;
}

/* ---- when -------------------------------------------------------------------------------------------------------- */

static void due_by(struct mr_ack *a, uint64_t ns)
{
    if (ns < a->due_ns)
        a->due_ns = ns;
}

static void due_hastily(struct mr_ack *a, uint64_t now_ns)
{
    due_by(a, now_ns > a->hasty_ns ? now_ns : a->hasty_ns);
}

void mr_ack_arrived(struct mr_ack *a, uint32_t seq, uint32_t expected, bool lossy, uint64_t now_ns)
{
    uint32_t ahead = seq - a->cum, moved = expected - a->cum;
    bool early = ahead && ahead < 0x80000000u, again = ahead >= 0x80000000u;

    if (moved && moved < 0x80000000u)
        move_to(a, expected);
    else if (early)
        again = note_early(a, seq);
    if (!lossy)
        return;
    if (early && ahead > furthest_ahead(a))
        a->furthest = seq;
    if (++a->owed >= a->every)
        due_by(a, now_ns);
    else if (again || early)
        due_hastily(a, now_ns);
    else
        due_by(a, now_ns ? now_ns + a->delay_ns : MR_ACK_LATER);
}

void mr_ack_set_flight(struct mr_ack *a, unsigned every, unsigned flight, uint64_t now_ns)
{
    a->every = every < 1 ? 1 : every;
    a->flight = flight < 1 ? 1 : flight > FLIGHT_MOST ? FLIGHT_MOST : flight;
    if (a->flight > 2 * a->told)
        due_by(a, now_ns);
}

struct mr_ack_msg mr_ack_take(struct mr_ack *a, uint64_t now_ns)
{
    struct mr_ack_msg ack = {.cum = a->cum, .flight = a->flight, .sack = early_after(a, a->cum + 1)};

    a->told = a->flight;
    a->owed = 0;
    a->hasty_ns = now_ns + a->delay_ns / MR_ACK_APART;
    a->due_ns = UINT64_MAX;
    if (furthest_ahead(a) > MR_ACK_NAMED)
        a->due_ns = now_ns + a->delay_ns; /* has come, but the ACK has no room for it */
    return ack;
}

/* ---- on the wire ------------------------------------------------------------------------------------------------- */

/* A limit of packets in flight as five bits: powers of two and the numbers halfway between, 1, 2, 3, 4, 6, 8, 12, ...
 */
static uint32_t flight_of_code(unsigned code)
{
    uint32_t flight = (2u | (code & 1)) << (code >> 1) >> 1;

    return flight < FLIGHT_MOST ? flight : FLIGHT_MOST;
}

/* The next that is not more. */
static unsigned code_of_flight(uint32_t flight)
{
    unsigned log = flight ? 31 - (unsigned)__builtin_clz(flight) : 0;

    if (log > 15)
        return 31;
    return 2 * log + (log ? flight >> (log - 1) & 1 : 0);
}

size_t mr_ack_encode(const struct mr_ack_msg *ack, void *out)
{
    uint32_t header = (ack->cum & SEQ_MASK) | (uint32_t)code_of_flight(ack->flight) << SEQ_BITS;

    memcpy(out, &header, sizeof header);
    if (!ack->sack)
        return MR_ACK_WIRE_MIN;
    memcpy((char *)out + sizeof header, &ack->sack, sizeof ack->sack);
    return MR_ACK_WIRE_MAX;
}

size_t mr_ack_decode(const void *data, size_t len, bool long_form, uint32_t base, struct mr_ack_msg *ack)
{
    size_t size = long_form ? MR_ACK_WIRE_MAX : MR_ACK_WIRE_MIN;
    uint32_t header, ahead;

    if (len < size)
        return 0;
    memcpy(&header, data, sizeof header);
    ahead = (header - base) & SEQ_MASK;
    if (ahead > SEQ_MASK / 2)
        ahead -= SEQ_MASK + 1; /* it is before base */
    ack->cum = base + ahead;
    ack->flight = flight_of_code(header >> SEQ_BITS);
    ack->sack = 0;
    if (long_form)
        memcpy(&ack->sack, (const char *)data + sizeof header, sizeof ack->sack);
    return size;
}
