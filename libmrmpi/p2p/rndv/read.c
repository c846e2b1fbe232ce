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

#include "libmrmpi/p2p/rndv/protocols.h"
#include "libmrmpi/p2p/rndv/stream.h"

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
        mr_packets_ask(r);
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
static bool read_recv(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_remote src[2] = {{.len = 0}};
    uint64_t front = hdr->len;

    if ((len != sizeof(src[0]) && len != sizeof(src)) || !r->req->type->contiguous || !r->total ||
        !(mr_vc_caps(r->vc, r->total) & MR_VC_READ))
        return false;
    memcpy(src, payload, len);
    if (r->prefix.len > hdr->len || src[0].len < r->prefix.len || src[1].len > hdr->len - r->prefix.len)
        return false;
    front -= src[1].len;
    src[0].addr += r->prefix.len;
    src[0].len -= r->prefix.len;
    mr_rndv_begin(r, &mr_read_protocol);
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

/* ---- sender ------------------------------------------------------------------------------------------------------ */

static void count_open(struct mr_rndv *r)
{
    struct mr_stream *s = mr_stream_of(r->vc);

    if (!s)
        return;
    s->exchange.open++;
    r->offer.crosses = true;
}

static void read_offer(struct mr_rndv *r, struct mr_rndv_means *m)
{
    if (m->caps & MR_VC_GET || !(m->caps & MR_VC_READ) || !(m->caps & mr_rndvs.reads_if) ||
        mr_vc_advertise(r->vc, mr_data_at(r->req->send_buf, r->req->type), r->total, MR_VC_READ_ONCE, &r->region,
                        &m->remote[0]))
        return;
    m->hdr->flags |= MR_FLAG_READ;
    m->num = 1 + mr_prefix_divide(r, &m->remote[0], &m->remote[1]);
    count_open(r);
}

/* FRONT: the program's send is complete, while the receiver reads the copy of the last bytes. */
static bool read_front(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (!r->offer.bounce)
        return true;
    mr_rndv_begin(r, &mr_read_protocol);
    mr_bounce_front(r);
    return true;
}

const struct mr_protocol mr_read_protocol = {
    .name = "read",
    .stat = MR_STAT_BY_READ,
    .offer = read_offer,
    .needs = MR_FLAG_READ,
    .start_recv = read_recv,
    .answer = MR_PKT_FRONT,
    .start_send = read_front,
    .prefix = settle_reads,
};
