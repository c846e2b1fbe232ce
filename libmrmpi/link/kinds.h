/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which kinds of links a rank may use, and whether it relies on the adapter for what they send (MRMPI_LINKS,
 * MRMPI_RELIABLE). These are the six combinations of M. Koop, R. Kumar, D. Panda, "Can Software Reliability Outperform
 * Hardware Reliability on High Performance Interconnects?", ICS 2008, section 5: RC, UC, UD, each native or reliable.
 * Pure.
 */
#ifndef MRMPI_KINDS_H
#define MRMPI_KINDS_H

#include <stdbool.h>
#include <stdint.h>

/* As MRMPI_LINKS names them, and in messages of connecting. */
enum mr_link_kind { MR_LINK_RC, MR_LINK_UC, MR_LINK_UD, MR_LINK_RING, MR_LINK_KINDS };

struct mr_kinds {
    unsigned num;
    uint8_t kind[MR_LINK_KINDS]; /* in the order of preference */
    bool native[MR_LINK_KINDS];  /* by kind: packets are not acknowledged by the peer */
    bool unsafe;                 /* a native one loses packets */
};

const char *mr_link_kind_name(enum mr_link_kind kind);
/*
 * links: comma list of rc, uc, ud, ring; or auto: rc, and where there are many ranks, more than connections to them, ud
 * for the others, if it may be acknowledged. reliable: auto, yes, no. False: *why is the variable that is wrong.
 */
bool mr_kinds_parse(const char *links, const char *reliable, bool many, struct mr_kinds *out, const char **why);
bool mr_kinds_have(const struct mr_kinds *k, enum mr_link_kind kind);
/* For who has to say what MRMPI_LINKS may be. */
#define MR_LINKS_FORM "auto, or a comma list of rc, uc, ud and ring, each at most once"

/* How packets go through a ring (link/ring.h; MRMPI_RING_DESIGN). */
enum mr_ring_design { MR_RING_BASIC, MR_RING_PIGGYBACK, MR_RING_PIPELINED, MR_RING_ZEROCOPY, MR_RING_DESIGNS };

const char *mr_ring_design_name(enum mr_ring_design design);
/* False: it is none of them. */
bool mr_ring_design_parse(const char *text, enum mr_ring_design *out);

#endif
