/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes in one piece, copied into the packet by the channel. */
#include "libmrmpi/p2p/payload/payload.h"
#include "libmrmpi/p2p/request/state.h"

int mr_payload_copied(const struct mr_payload *p, struct mr_hdr *hdr, size_t at, size_t len)
{
    return mr_vc_send(p->vc, hdr, (const char *)mr_data_at(p->buf, p->type) + at, len);
}
