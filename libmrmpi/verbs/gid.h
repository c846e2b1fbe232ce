/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of an entry of a RoCE port's GID table, and the traffic class of a service level on Ethernet. Pure.
 *
 * A port has an entry for each address of its network interface and each version of RoCE. Both ends of a connection
 * must use the same version and the same family of addresses, so equally configured hosts choose alike: version 2 (over
 * UDP, routable) before version 1, then IPv4, IPv6, and IPv6 of the link's own scope last. MRMPI_ROCE_GID narrows the
 * choice.
 */
#ifndef MRMPI_VERBS_GID_H
#define MRMPI_VERBS_GID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of preference; bits of a wish. */
enum mr_gid_version { MR_GID_ROCE_V2 = 1, MR_GID_ROCE_V1 = 2 };
enum mr_gid_family { MR_GID_IPV4 = 1, MR_GID_IPV6 = 2, MR_GID_LINK_LOCAL = 4 };

struct mr_gid_wish {
    int index;        /* this entry and no other; -1: any */
    uint8_t versions; /* allowed MR_GID_ROCE_ bits */
    uint8_t families; /* MR_GID_IPV4 and further allowed bits */
};

struct mr_gid_entry {
    uint8_t gid[16];
    uint16_t index; /* in the port's table */
    uint8_t version;
};

/*
 * text: "" (any), an index, or words joined by "/": roce-v1, roce-v2, ipv4, ipv6 (link-local included). False: another
 * text.
 */
bool mr_gid_wish_parse(const char *text, struct mr_gid_wish *out);
/* The entry to use; NULL: none is as wished. */
const struct mr_gid_entry *mr_gid_choose(const struct mr_gid_wish *wish, const struct mr_gid_entry *table, size_t n);
enum mr_gid_family mr_gid_family(const uint8_t gid[16]);
/* The necessary common part of both ends, never 0: version and IPv4 or IPv6. */
uint8_t mr_gid_kind(const struct mr_gid_entry *e);

/*
 * The traffic class of RoCE packets on a service level: the class selector (RFC 2474) of that number, in the upper
 * three bits. Switches and adapters that trust DSCP map the selector to the priority of that number unless configured
 * otherwise. Ethernet has eight priorities: level 8 is 0 again.
 */
static inline uint8_t mr_roce_traffic_class(uint8_t sl)
{
    return (uint8_t)(sl << 5);
}

#endif
