/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address that a rank publishes by the launcher: its ports, and its wishes for both ends of a connection. Little
 * endian, as in memory. Magic and version keep their places in all versions.
 */
#ifndef MRMPI_ADDRESS_H
#define MRMPI_ADDRESS_H

#include "libmrmpi/verbs/verbs.h"

#define MR_ADDRESS_MAGIC   0x6d726364u /* "mrcd" */
#define MR_ADDRESS_VERSION 9

struct mr_address {
    uint32_t magic;
    uint16_t version, num_rails;
    uint8_t paths;          /* wanted LID paths; 0: the useful paths by fabricd */
    uint8_t all_pairs;      /* conn/route/pair.h */
    uint8_t kinds;          /* of allowed links: set, bit i is enum mr_link_kind i */
    uint8_t num_partitions; /* of all rails together */
    uint32_t eager_max;     /* payload of the longest accepted packet */
    char host[64];
    struct mr_rail_addr rail[MR_RAILS_MAX]; /* only num_rails of them travel; then num_partitions struct mr_partition */
};

/* The longest address. */
struct mr_address_long {
    struct mr_address address;
    struct mr_partition partition[MR_RAILS_MAX * MR_PARTITIONS_MAX];
};
_Static_assert(MR_RAILS_MAX *MR_PARTITIONS_MAX <= UINT8_MAX, "they can be counted");

/* For a peer whose address has not arrived: all unknown, magic is 0. */
extern struct mr_address mr_address_none;

static inline size_t mr_address_length(unsigned rails, unsigned partitions)
{
    return offsetof(struct mr_address, rail) + rails * sizeof(struct mr_rail_addr) +
           partitions * sizeof(struct mr_partition);
}

/* The partitions of its rails: rail by rail, each rail's in the order of its preference. */
static inline struct mr_partition *mr_address_partitions(const struct mr_address *a)
{
    return (struct mr_partition *)((uintptr_t)a + mr_address_length(a->num_rails, 0));
}

/* The partition of a rail with the number of this P_Key; NULL: unknown there. Of 0: its reserve, if still so. */
static inline struct mr_partition *mr_address_partition(const struct mr_address *a, unsigned rail, uint16_t key)
{
    struct mr_partition *p = mr_address_partitions(a);

    for (unsigned i = 0; i < a->num_partitions; i++)
        if (p[i].rail == rail && mr_pkey_partition(p[i].key) == mr_pkey_partition(key))
            return &p[i];
    return NULL;
}

/* The P_Keys of a rail, as far as is known, and 0 for its reserve. Returns how many. */
static inline unsigned mr_address_keys(const struct mr_address *a, unsigned rail, uint16_t out[MR_PARTITIONS_MAX])
{
    const struct mr_partition *p = mr_address_partitions(a);
    unsigned n = 0;

    for (unsigned i = 0; i < a->num_partitions && n < MR_PARTITIONS_MAX; i++)
        if (p[i].rail == rail)
            out[n++] = p[i].key;
    return n;
}

/* Checks a received address of len bytes, and ends its strings. 0; -EPROTONOSUPPORT: another version; -EPROTO. */
int mr_address_check(struct mr_address *c, size_t len);

#endif
