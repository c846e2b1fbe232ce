/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of memory with holes: packed in the channel's memory if possible, else on the way there. */
#include "libmrmpi/p2p/payload/payload.h"
#include "libmrmpi/p2p/request/state.h"

struct holes {
    const struct mr_payload *payload;
    size_t offset;
};

static void pack_holes(void *to, size_t len, const void *arg)
{
    const struct holes *h = arg;

    mr_type_pack(h->payload->buf, h->payload->count, h->payload->type, h->offset, to, len);
}

int mr_payload_packed(const struct mr_payload *p, struct mr_hdr *hdr, size_t at, size_t len)
{
    return mr_vc_send_made(p->vc, hdr, len, mr_pt2pt.scratch, pack_holes, &(struct holes){p, at});
}
