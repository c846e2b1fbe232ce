/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The address that a rank publishes by the launcher: how it can be reached, and what it wants of both ends of a
 * connection. Little endian, as in memory. Magic and version keep their places in all versions.
 */
#ifndef MRMPI_ADDRESS_H
#define MRMPI_ADDRESS_H

#include "libmrmpi/verbs/rail.h"

#define MR_ADDRESS_MAGIC   0x6d726364u /* "mrcd" */
#define MR_ADDRESS_VERSION 7

struct mr_address {
    uint32_t magic;
    uint16_t version, num_rails;
    uint8_t paths, all_pairs; /* route/pair.h */
    uint8_t kinds;            /* of links that it may use: set, bit i is enum mr_link_kind i */
    uint8_t pad;
    uint32_t eager_max; /* payload of the longest packet that it takes */
    char host[64];
    struct mr_rail_addr rail[MR_RAILS_MAX]; /* only num_rails of them travel */
};

/* Of a peer whose address has not come: nothing is known, magic is 0. */
extern struct mr_address mr_address_none;

static inline size_t mr_address_length(unsigned rails)
{
    return offsetof(struct mr_address, rail) + rails * sizeof(struct mr_rail_addr);
}

/* Checks an address of len bytes that came, and ends its strings. 0; -EPROTONOSUPPORT: another version; -EPROTO. */
int mr_address_check(struct mr_address *c, size_t len);

#endif
