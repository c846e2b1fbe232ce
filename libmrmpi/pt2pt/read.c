/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The read protocol at the receiver: the sender's memory is registered for us, and the channel reads it. Bytes that come
 * as the head (head.c) are not read.
 */
#include <string.h>

#include "libmrmpi/base/copy.h"
#include "libmrmpi/pt2pt/flow.h"

/* Over when all that was asked for is there, and the head. A channel that cannot read has lost the peer. */
static void settle(struct mr_rndv *r, int error)
{
    if (r->read.open || (r->head_left && !error))
        return;
    if (!error)
        error = mr_rndv_tell(r, MR_PKT_FIN, 0, NULL, 0);
    mr_rndv_finish(r, error ? MR_ERR_PROC_FAILED : MR_SUCCESS);
}

void mr_read_done(void *cookie, int error)
{
    struct mr_read *read = cookie;

    if (!read->open)
        return;
    read->open = false;
    settle(read->of, error);
}

static bool start(struct mr_rndv *r)
{
    struct mr_request *req = r->req;
    struct mr_remote rest = r->remote;

    if (r->head >= r->total)
        return true;
    rest.addr += r->head;
    rest.len -= r->head;
    r->read = (struct mr_read){.of = r, .open = true};
    r->read.open = !mr_vc_read(r->vc, mr_plain(req->recv_buf, req->type), r->total,
                               (struct mr_vc_part){.at = r->head, .len = r->total - r->head}, &rest, &r->read);
    return r->read.open;
}

/* It is to be read if our memory can be registered, too. */
bool mr_read_begin(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (!(hdr->flags & MR_FLAG_READ) || len != sizeof(r->remote) || !r->req->type->contiguous || !r->total ||
        !(mr_vc_caps(r->vc, r->total) & MR_VC_READ))
        return false;
    memcpy(&r->remote, payload, len);
    if (r->remote.len < r->head)
        return false;
    r->state = MR_RNDV_READING;
    if (!start(r))
        return false;
    settle(r, 0);
    return true;
}

void mr_read_head(struct mr_rndv *r, size_t at, const void *payload, size_t len)
{
    struct mr_request *req = r->req;
    size_t room = at < r->total ? r->total - at : 0, wanted = len < room ? len : room;

    r->head_left -= (uint32_t)len;
    if (r->state == MR_RNDV_LANDING) /* all is written */
        return;
    if (req->type->contiguous)
        mr_copy_in((char *)mr_plain(req->recv_buf, req->type) + at, payload, wanted);
    else
        mr_type_unpack(req->recv_buf, req->count, req->type, at, payload, wanted);
    if (r->state == MR_RNDV_READING)
        settle(r, 0);
    else if (r->state == MR_RNDV_DRAINING && !r->head_left && r->total <= r->head)
        mr_rndv_finish(r, MR_SUCCESS);
}
