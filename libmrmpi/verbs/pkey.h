/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitions (IBTA volume 1, 10.9). A port has a table of P_Keys, in any order and with holes. The 15 low bits of a key
 * are the partition, the highest one is full membership; a partition of 0 is an empty entry. Two ports can talk in a
 * partition that both are members of, at least one as a full member. A queue pair has the index of one entry. The
 * adapter drops a packet whose key does not match that entry, without a word to the program. Pure.
 */
#ifndef MRMPI_VERBS_PKEY_H
#define MRMPI_VERBS_PKEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_PKEY_FULL      0x8000u
#define MR_PKEY_PARTITION 0x7fffu
#define MR_PKEY_DEFAULT   0xffffu /* of a port without a table: the default partition, as a full member */

#define MR_PARTITIONS_MAX 16 /* of a rail: each takes a queue pair, and a place in the rank's address */
#define MR_PKEYS_MAX (MR_PARTITIONS_MAX - 1) /* of a port that are used; the rail keeps one in reserve (rail.h) */

/* An entry of a port's table. */
struct mr_pkey {
    uint16_t key, index;
};

static inline uint16_t mr_pkey_partition(uint16_t key)
{
    return key & MR_PKEY_PARTITION;
}

/* Can a port with one key talk to a port with the other? */
static inline bool mr_pkey_match(uint16_t a, uint16_t b)
{
    return mr_pkey_partition(a) && mr_pkey_partition(a) == mr_pkey_partition(b) && ((a | b) & MR_PKEY_FULL);
}

/*
 * The partitions of a table of n keys, in the order in which they are chosen: the preferred one (0: none is), the
 * default one, then by number. So the order is the same at all ports, however the subnet manager has filled their
 * tables. A partition with a full and a limited key counts with the full one. Returns how many there are; those beyond
 * MR_PKEYS_MAX are not in out.
 */
unsigned mr_pkeys_of_table(const uint16_t *table, unsigned n, uint16_t preferred, struct mr_pkey out[MR_PKEYS_MAX]);

/*
 * The key of ours for a connection to a port with their keys: of the partitions in which both can talk, in the order of
 * ours, the turn-th, counted round. 0: there is none.
 */
uint16_t mr_pkey_choose(const uint16_t *ours, unsigned num_ours, const uint16_t *theirs, unsigned num_theirs,
                        unsigned turn);

/* "0x7fff (limited), 0x8011"; "none". Returns out. */
const char *mr_pkeys_text(const uint16_t *key, unsigned n, char *out, size_t size);

#endif
