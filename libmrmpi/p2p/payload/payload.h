/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a message on their way into a packet: eager messages, eager prefixes, and large messages by copies. The
 * table (payloads.def) has a row for each way.
 */
#ifndef MRMPI_PAYLOAD_H
#define MRMPI_PAYLOAD_H

#include <errno.h>

#include "libmrmpi/channel/channel.h"
#include "libmrmpi/p2p/p2p.h"

/* The data of a message, as in the program's call. */
struct mr_payload {
    struct mr_vc *vc;
    const void *buf;
    size_t count;
    const struct mr_type *type;
    struct mr_request *owner; /* the send, if packets may be posted from its buffer (zsend.h); NULL: not */
};

/*
 * One packet with the bytes [at, at + len) of the packed message, at most as many as mr_vc_send takes. hdr may be
 * reused on return, and so may buf, unless there is an owner. Returns 0 or negative errno, as mr_vc_send.
 */
#define MR_PAYLOAD(way, can)                                                                                           \
    int mr_payload_##way(const struct mr_payload *p, struct mr_hdr *hdr, size_t at, size_t len);
#include "libmrmpi/p2p/payload/payloads.def"
#undef MR_PAYLOAD

/* By the first way that can. */
static inline int mr_payload_send(const struct mr_payload *p, struct mr_hdr *hdr, size_t at, size_t len)
{
#define MR_PAYLOAD(way, can)                                                                                           \
    if (can)                                                                                                           \
        return mr_payload_##way(p, hdr, at, len);
#include "libmrmpi/p2p/payload/payloads.def"
#undef MR_PAYLOAD
    return -EINVAL; /* the last row takes anything */
}

#endif
