/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets posted from the program's memory: see zsend.h. */
#include "libmrmpi/p2p/payload/zsend.h"

#include "libmrmpi/net/net.h"
#include "libmrmpi/p2p/payload/payload.h"
#include "libmrmpi/p2p/request/state.h"

#define ZSENDS_MOST 255u

enum mr_send_protocol mr_zsend_protocol(struct mr_vc *vc, const void *buf, size_t bytes, const struct mr_type *type)
{
    if (bytes < MR_ZSEND_LEAST || !type->contiguous || !vc->zsends)
        return MR_BURST_COPY;
    return mr_burst_alone(&mr_pt2pt.burst, mr_data_at(buf, type), bytes);
}

int mr_payload_posted(const struct mr_payload *p, struct mr_hdr *hdr, size_t at, size_t len)
{
    struct mr_request *req = p->owner;
    const char *from = mr_data_at(p->buf, p->type);
    struct mr_vc_zsender zsender = {.buf = from,
                                    .len = req->count * req->type->size,
                                    .answers = req->protocol == MR_BURST_ANSWER && !req->zsends,
                                    .cookie = req};
    int posted;

    if (req->zsends == ZSENDS_MOST)
        return mr_payload_copied(p, hdr, at, len);
    posted = mr_net_zsend(p->vc, hdr, from + at, len, &zsender);
    if (posted <= 0)
        return posted;
    req->zsends++;
    return 0;
}
