/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules: the kinds of links that may take a message (MRMPI_RULES). Pure: from a text to a table, and from the table, a
 * message and its peer to a kind.
 *
 * A rule is "CONDITION ...: KIND,KIND". Rules are separated by semicolons or ends of lines; # begins a comment. The
 * first rule counts whose conditions hold and which has an open kind; among its kinds the first open kind. Without such
 * a rule, MRMPI_LINKS decides.
 *
 *     any                     every message: a condition that always holds
 *     control eager piece rdma  the kind of message (several, joined by |): a control packet; a short message; a piece
 *                             of a large message in packets; a large message that can go by RDMA
 *     size<=N <N >=N >N       bytes of the packet's payload, for rdma of the message; N may end in K, M, G
 *     count>=N                packets to and from the peer so far
 *     rate>=N                 packets per second to and from the peer
 *     class=NAME              the job's class, from fabricd
 */
#ifndef MRMPI_RULES_H
#define MRMPI_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/verbs/verbs.h"

#define MR_RULES_MAX   32
#define MR_RULES_SIZES 16 /* sizes at which rules differ */
#define MR_RULES_CLASS 32
#define MR_RULES_TEXT  8192 /* longest text */

enum mr_rule_use { MR_RULE_CONTROL, MR_RULE_EAGER, MR_RULE_PIECE, MR_RULE_RDMA, MR_RULE_USES };

struct mr_rule {
    uint8_t uses; /* set of enum mr_rule_use */
    uint8_t num_kinds;
    uint8_t kind[MR_LINK_KINDS];
    uint64_t size_min, size_max;
    uint32_t count_min, rate_min;
    char class_name[MR_RULES_CLASS]; /* "": any */
};

struct mr_rules {
    unsigned num, num_sizes;
    uint64_t size[MR_RULES_SIZES]; /* the longest messages of the size classes but the last one, ascending */
    struct mr_rule rule[MR_RULES_MAX];
};

/* The facts of a peer and of the job used by rules. */
struct mr_rules_peer {
    uint32_t count, rate;
    const char *class_name;
};

struct mr_rules_error {
    unsigned line, column; /* from 1 */
    char what[160];
};

/* False: *err has the place and the reason; *out has no rules. */
bool mr_rules_parse(const char *text, size_t len, struct mr_rules *out, struct mr_rules_error *err);

static inline unsigned mr_rules_size_class(const struct mr_rules *r, uint64_t len)
{
    unsigned c = 0;

    while (c < r->num_sizes && len > r->size[c])
        c++;
    return c;
}

/* The kind for a message of that size class, among the open kinds; MR_LINK_KINDS: no rule decides. */
unsigned mr_rules_pick(const struct mr_rules *r, enum mr_rule_use use, unsigned size_class,
                       const struct mr_rules_peer *peer, unsigned open);
/*
 * The rules that hold for the peer, whatever the message: set. While the set is unchanged, rules need not be asked
 * again.
 */
uint32_t mr_rules_holding(const struct mr_rules *r, const struct mr_rules_peer *peer);
/* Rule i in its original form, cut to size bytes with its end. */
void mr_rules_print(const struct mr_rules *r, unsigned i, char *out, size_t size);
/* Kinds named in rules: set. */
unsigned mr_rules_kinds(const struct mr_rules *r);
/*
 * The rules that MRMPI_LINKS (kinds, in order), MRMPI_RING_DESIGN (by_ring), MRMPI_RC_AFTER and nothing else amount to:
 * for mrrun --explain.
 */
void mr_rules_standard(const struct mr_kinds *kinds, bool by_ring, uint32_t rc_after, struct mr_rules *out);

#endif
