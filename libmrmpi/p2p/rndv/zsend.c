/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends from the program's memory: see zsend.h. */
#include "libmrmpi/p2p/rndv/zsend.h"

#include "libmrmpi/p2p/rndv/rndv.h"

#define ZSENDS_MOST 255u

enum mr_send_protocol mr_zsend_protocol(struct mr_vc *vc, const void *buf, size_t bytes, const struct mr_type *type)
{
    if (bytes < MR_ZSEND_LEAST || !type->contiguous || !vc->zsends)
        return MR_BURST_COPY;
    return mr_burst_alone(&mr_pt2pt.burst, mr_data_at(buf, type), bytes);
}

int mr_zsend(struct mr_request *req, struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_vc_zsender zsender = {.buf = mr_data_at(req->send_buf, req->type),
                                    .len = req->count * req->type->size,
                                    .answers = req->protocol == MR_BURST_ANSWER && !req->zsends,
                                    .cookie = req};
    int posted;

    if (req->zsends == ZSENDS_MOST)
        return mr_vc_send(vc, hdr, payload, len);
    posted = mr_net_zsend(vc, hdr, payload, len, &zsender);
    if (posted <= 0)
        return posted;
    req->zsends++;
    return 0;
}
