/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kinds of links (kinds.def), their abilities, the kinds that a rank may use, and whether the rank relies on the
 * adapter for delivery (MRMPI_LINKS, MRMPI_RELIABLE). These are the six combinations of M. Koop, R. Kumar, D. Panda,
 * "Can Software Reliability Outperform Hardware Reliability on High Performance Interconnects?", ICS 2008, section 5:
 * RC, UC, UD, each native or reliable. Callers ask for traits, never for a kind by its enumerator. Pure.
 */
#ifndef MRMPI_KINDS_H
#define MRMPI_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As in messages of connecting. */
enum mr_link_kind {
#define MR_KIND(id, name, ops, traits, help) MR_LINK_##id,
#include "libmrmpi/verbs/link/kinds.def"
#undef MR_KIND
    MR_LINK_KINDS
};
_Static_assert(MR_LINK_KINDS <= 8, "sets of kinds are bytes on the wire");

enum mr_kind_traits {
    MR_IS_CONNECTED = 1,  /* needs a queue pair of its own at either end: struct mr_link has qp, not ud */
    MR_IS_RELIABLE = 2,   /* the adapter delivers every packet, once and in order, and confirms it */
    MR_IS_CONFIRMING = 4, /* confirmed() is called when packets have been sent, at least */
    MR_IS_RDMA = 8,       /* writes to the peer's memory, */
    MR_IS_READING = 16,   /* and reads from it */
    MR_IS_DATAGRAM = 32,  /* long packets go in parts of an MTU, and it has runs */
    MR_IS_RING = 64       /* short packets go into a ring, if the receiver has offered one (ring.h) */
};

/* The kinds of a set with all these traits. With constant traits an AND. */
static inline __attribute__((always_inline)) unsigned mr_kinds_that_are(unsigned set, unsigned traits)
{
    unsigned those = 0;

#define MR_KIND(id, name, ops, has, help) those |= (unsigned)(((has)&traits) == traits) << MR_LINK_##id;
#include "libmrmpi/verbs/link/kinds.def"
#undef MR_KIND
    return set & those;
}

/* MR_LINK_KINDS has no traits. */
static inline __attribute__((always_inline)) bool mr_kind_is(unsigned kind, unsigned traits)
{
    return mr_kinds_that_are(1u << kind, traits);
}

/*
 * True for a connection that may break at the peer's end alone, without a report of an adapter: its process has to be
 * asked.
 */
static inline bool mr_kind_breaks_unseen(unsigned kind)
{
    return mr_kind_is(kind, MR_IS_CONNECTED) && !mr_kind_is(kind, MR_IS_RELIABLE);
}

/*
 * The kind of the set for large messages by RDMA: the first with reads, too, else the first with writes. MR_LINK_KINDS:
 * none.
 */
static inline unsigned mr_kinds_bulk(unsigned set)
{
    unsigned rdma = mr_kinds_that_are(set, MR_IS_RDMA), reading = mr_kinds_that_are(rdma, MR_IS_READING);

    return !rdma ? MR_LINK_KINDS : (unsigned)__builtin_ctz(reading ? reading : rdma);
}

/* The same, or MR_LINK_KINDS if large messages go through its ring in packets (by_ring). */
static inline unsigned mr_kinds_by_rdma(unsigned set, bool by_ring)
{
    unsigned kind = mr_kinds_bulk(set);

    return by_ring && mr_kind_is(kind, MR_IS_RING) ? MR_LINK_KINDS : kind;
}

/* "unknown": no kind. */
const char *mr_kind_name(unsigned kind);
/* Its description in the user's words. */
const char *mr_kind_help(unsigned kind);
/* The kind of the first len bytes of the word, in any case of letters; MR_LINK_KINDS: none. */
unsigned mr_kind_by_name(const char *word, size_t len);
/* All names, as "rc, uc and ud"; last: "and" or "or". Returns out. */
#define MR_KINDS_TEXT 160
const char *mr_kinds_list(const char *last, char out[MR_KINDS_TEXT]);

struct mr_kinds {
    unsigned num;
    uint8_t kind[MR_LINK_KINDS]; /* in the order of preference */
    bool native[MR_LINK_KINDS];  /* by kind: packets are not acknowledged by the peer */
    bool unsafe;                 /* a native kind loses packets */
};

/* The meaning of MRMPI_LINKS=auto, and its meaning with many ranks, more than connections. */
#define MR_LINKS_AUTO      "rc"
#define MR_LINKS_AUTO_MANY "rc,ud"

/*
 * links: comma list of names, or auto; with many: MR_LINKS_AUTO_MANY, if datagrams may be acknowledged. reliable: auto,
 * yes, no. False: *why is the wrong variable.
 */
bool mr_kinds_parse(const char *links, const char *reliable, bool many, struct mr_kinds *out, const char **why);
/* The allowed values of the wrong variable, for the error message. Returns out. */
const char *mr_kinds_form(const char *why, char out[MR_KINDS_TEXT]);
bool mr_kinds_have(const struct mr_kinds *k, unsigned kind);
/* The kinds as a set: bit i is kind i. */
unsigned mr_kinds_set(const struct mr_kinds *k);

/* How packets go through a ring (verbs/link/ring.h; MRMPI_RING_DESIGN). */
enum mr_ring_design { MR_RING_BASIC, MR_RING_PIGGYBACK, MR_RING_PIPELINED, MR_RING_ZEROCOPY, MR_RING_DESIGNS };

const char *mr_ring_design_name(enum mr_ring_design design);
/* False: no design. */
bool mr_ring_design_parse(const char *text, enum mr_ring_design *out);
/* The longest payload of a packet that fits a slot. setting: MRMPI_RING_SIZE. */
size_t mr_ring_size(enum mr_ring_design design, size_t setting, size_t eager_max);

#endif
