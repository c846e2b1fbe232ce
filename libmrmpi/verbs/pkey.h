/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitions (IBTA volume 1, 10.9). A port has a table of P_Keys, in any order and with holes. The 15 low bits of a key
 * are the partition, the highest bit is full membership; a partition of 0 is an empty entry. Two ports can talk in a
 * common partition if at least one is a full member. A queue pair has the index of one entry. The adapter drops a
 * packet whose key does not match that entry, without a report to the program. Pure.
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
#define MR_PKEYS_MAX      (MR_PARTITIONS_MAX - 1) /* of a port in use; the rail keeps one in reserve (rail.h) */

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
 * The partitions of a table of n keys, in the order of the choice: the preferred partition (0: none), the default
 * partition, then by number. The order is thus the same at all ports, however the subnet manager has filled their
 * tables. A partition with a full and a limited key counts with the full key. Returns their number; partitions beyond
 * MR_PKEYS_MAX are not in out.
 */
unsigned mr_pkeys_of_table(const uint16_t *table, unsigned n, uint16_t preferred, struct mr_pkey out[MR_PKEYS_MAX]);

/*
 * Our key for a connection to a port with their keys: among the partitions in which both can talk, in our order, number
 * turn, counted round. 0: there is none.
 */
uint16_t mr_pkey_choose(const uint16_t *ours, unsigned num_ours, const uint16_t *theirs, unsigned num_theirs,
                        unsigned turn);

/* "0x7fff (limited), 0x8011"; "none". Returns out. */
const char *mr_pkeys_text(const uint16_t *key, unsigned n, char *out, size_t size);

#endif
