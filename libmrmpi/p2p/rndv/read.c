/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The read protocol at the receiver: the sender's memory is registered for us, and the channel reads it. Bytes of the
 * prefix (prefix.c) are not read; the last bytes are read from the sender's bounce buffer (bounce.c), last. If all
 * rails with keys fail, the sender is asked to send the bytes in packets, unless FRONT has returned the memory to its
 * program: the rest read after that, from the bounce buffer, has keys for all. The same holds if no rail leads to the
 * process of another job any more, which TCP still reaches; what FRONT has returned is an error then.
 */
#include <errno.h>
#include <string.h>

#include "libmrmpi/base/copy.h"
#include "libmrmpi/p2p/rndv/rndv.h"

enum { FRONT, BOUNCE };

/* Over when all requested reads have ended, and the prefix is there. A channel that cannot read has lost the peer. */
static void settle_reads(struct mr_rndv *r)
{
    bool reads = r->read.part[FRONT].open || r->read.part[BOUNCE].open;
    int err;

    if (reads || (r->prefix.left && !r->read.error)) {
        if (r->read.owes_front && !r->read.part[FRONT].open && !r->read.error) {
            r->read.owes_front = false;
            r->read.said_front = true;
            mr_rndv_tell(r, MR_PKT_FRONT, 0, NULL, 0); /* if that fails the sender waits for FIN */
        }
        return;
    }
    if (r->read.error && (r->read.error == -ENOKEY || mr_rndv_unrailed(r)) && !r->read.said_front) {
        mr_log(MR_LOG_INFO, "no rail with a key for a message of rank %d is left: its %llu bytes come in packets",
               mr_vc_world_rank(r->vc), (unsigned long long)r->total);
        r->read.error = 0;
        r->read.owes_front = false;
        mr_rndv_ask(r, MR_RNDV_DRAINING);
        return;
    }
    err = mr_rndv_tell(r, MR_PKT_FIN, (uint64_t)-r->read.error, NULL, 0);
    mr_rndv_finish(r, err || r->read.error ? MR_ERR_PROC_FAILED : MR_SUCCESS);
}

void mr_read_done(void *cookie, int error)
{
    struct mr_read *read = cookie;

    if (!read->open)
        return;
    read->open = false;
    if (error)
        read->of->read.error = error;
    settle_reads(read->of);
}

/* It is to be read if our memory can be registered, too. */
bool mr_read_begin(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_remote src[2] = {{.len = 0}};
    uint64_t front = hdr->len;

    if (!(hdr->flags & MR_FLAG_READ) || (len != sizeof(src[0]) && len != sizeof(src)) || !r->req->type->contiguous ||
        !r->total || !(mr_vc_caps(r->vc, r->total) & MR_VC_READ))
        return false;
    memcpy(src, payload, len);
    if (r->prefix.len > hdr->len || src[0].len < r->prefix.len || src[1].len > hdr->len - r->prefix.len)
        return false;
    front -= src[1].len;
    src[0].addr += r->prefix.len;
    src[0].len -= r->prefix.len;
    r->state = MR_RNDV_READING;
    r->read.owes_front = len == sizeof(src);
    for (int which = FRONT; which <= BOUNCE; which++) {
        struct mr_read *read = &r->read.part[which];
        uint64_t at = which == FRONT ? r->prefix.len : front, end = which == FRONT ? front : hdr->len;

        end = end < r->total ? end : r->total;
        if (at >= end)
            continue;
        read->of = r;
        const struct mr_net_transfer part = {.read = true,
                                             .buf = mr_data_at(r->req->recv_buf, r->req->type),
                                             .size = r->total,
                                             .part = {.at = at, .len = end - at},
                                             .remote = &src[which],
                                             .cookie = read};
        read->open = !mr_net_begin_transfer(r->vc, &part);
        if (read->open)
            continue;
        if (which == FRONT || !r->read.part[FRONT].open)
            return false;
        r->read.error = -EIO;
    }
    settle_reads(r);
    return true;
}

void mr_read_prefix(struct mr_rndv *r, size_t at, const void *payload, size_t len)
{
    struct mr_request *req = r->req;
    size_t room = at < r->total ? r->total - at : 0, wanted = len < room ? len : room;

    r->prefix.left -= (uint32_t)len;
    if (r->state == MR_RNDV_LANDING && !r->rtr.met) /* all is written */
        return;
    if (req->type->contiguous)
        mr_copy_in((char *)mr_data_at(req->recv_buf, req->type) + at, payload, wanted);
    else
        mr_type_unpack(req->recv_buf, req->count, req->type, at, payload, wanted);
    if (r->state == MR_RNDV_READING)
        settle_reads(r);
    else if (r->state == MR_RNDV_LANDING && r->rtr.landed && !r->prefix.left)
        mr_rndv_finish(r, MR_SUCCESS);
    else if (r->state == MR_RNDV_DRAINING && !r->prefix.left && r->total <= r->prefix.len)
        mr_rndv_finish(r, MR_SUCCESS);
}
