/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends from the program's memory: see lend.h. */
#include "libmrmpi/p2p/rndv/lend.h"

#include "libmrmpi/p2p/rndv/rndv.h"

#define LOANS_MOST 255u

enum mr_burst_way mr_lend_way(struct mr_vc *vc, const void *buf, size_t bytes, const struct mr_type *type)
{
    if (bytes < MR_LEND_LEAST || !type->contiguous || !vc->lends)
        return MR_BURST_COPY;
    return mr_burst_alone(&mr_pt2pt.burst, mr_plain(buf, type), bytes);
}

int mr_lend(struct mr_request *req, struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_vc_lender lender = {.buf = mr_plain(req->send_buf, req->type),
                                  .len = req->count * req->type->size,
                                  .answers = req->way == MR_BURST_ANSWER && !req->loans,
                                  .cookie = req};
    int lent;

    if (req->loans == LOANS_MOST)
        return mr_vc_send(vc, hdr, payload, len);
    lent = mr_net_lend(vc, hdr, payload, len, &lender);
    if (lent <= 0)
        return lent;
    req->loans++;
    return 0;
}
