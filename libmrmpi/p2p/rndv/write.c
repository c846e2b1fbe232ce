/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The write protocol: the receiver advertises its memory (CTS), and the channel writes there for the sender, or sends
 * datagrams that land there. Both sides are told by the channel. A message that crosses another one is written even if
 * it could be read (exchange.h).
 *
 *   sender    OFFERED -- CTS --> writes --> over
 *             writes, and no rail is left --> OFFERED once more: FAIL(AGAIN)
 *   receiver  advertises --> all is written: over
 *             FAIL(AGAIN): the copy protocol, or FIN if all is there
 */
#include <errno.h>
#include <string.h>

#include "libmrmpi/launch/launch.h"
#include "libmrmpi/p2p/rndv/protocols.h"
#include "libmrmpi/p2p/rndv/stream.h"

/* ---- sender ------------------------------------------------------------------------------------------------------ */

static void offer_writes(struct mr_rndv *r, struct mr_rndv_means *m)
{
    if (m->caps & MR_VC_PUT)
        m->hdr->flags |= MR_FLAG_PUT;
}

static void offer_datagrams(struct mr_rndv *r, struct mr_rndv_means *m)
{
    if (m->caps & MR_VC_DATAGRAMS)
        m->hdr->flags |= MR_FLAG_DATAGRAMS;
}

/* Not all has been written, or nothing: the receiver says GO, or FIN. */
static void offer_again(struct mr_rndv *r)
{
    struct mr_hdr hdr = mr_rndv_header(r, MR_PKT_FAIL, 0);

    hdr.flags = MR_FLAG_AGAIN;
    mr_rndv_reopen(r);
    if (mr_vc_send(r->vc, &hdr, NULL, 0))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
}

void mr_write_begin(struct mr_rndv *r, uint64_t rreq, size_t from, size_t len)
{
    char *buf = mr_data_at(r->req->send_buf, r->req->type);
    const struct mr_net_transfer rest = {.buf = buf + from, .size = len - from, .remote = &r->remote, .cookie = r};
    int err;

    r->peer_id = rreq;
    r->total = len;
    mr_rndv_begin(r, &mr_write_protocol);
    r->remote.addr += from;
    r->remote.len -= from;
    if (mr_rndv_unrailed(r)) {
        offer_again(r);
        return;
    }
    err = mr_net_begin_transfer(r->vc, &rest);
    if (err) {
        mr_error_detail("sending %llu bytes at %p to rank %d of the world: %s", (unsigned long long)len,
                        (const void *)buf, mr_vc_world_rank(r->vc), strerror(-err));
        mr_rndv_tell(r, MR_PKT_FAIL, -err, NULL, 0);
        mr_rndv_finish(r, err == -EFAULT ? MR_ERR_BUFFER : MR_ERR_PROC_FAILED);
    }
}

bool mr_write_allowed(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (len != sizeof(r->remote) || hdr->len > r->total || !r->req->type->contiguous)
        return false;
    memcpy(&r->remote, payload, len);
    return true;
}

static bool write_send(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (mr_write_allowed(r, hdr, payload, len))
        mr_write_begin(r, hdr->rreq, 0, hdr->len);
    return true;
}

static void write_sent(struct mr_rndv *r, int error)
{
    if (error && mr_rndv_unrailed(r))
        offer_again(r);
    else
        mr_rndv_finish(r, error ? MR_ERR_PROC_FAILED : MR_SUCCESS);
}

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

static bool advertise_and_clear(struct mr_rndv *r, enum mr_vc_caps how, const struct mr_protocol *by, uint64_t now)
{
    struct mr_request *req = r->req;

    if (mr_vc_advertise(r->vc, mr_data_at(req->recv_buf, req->type), r->total, how, &r->region, &r->remote))
        return false;
    mr_vc_expect(r->region, mr_rndv_id(r));
    mr_rndv_begin(r, by);
    r->landing.told_ns = now;
    if (mr_rndv_tell(r, MR_PKT_CTS, r->total, &r->remote, sizeof(r->remote)))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    return true;
}

static bool lands_here(const struct mr_rndv *r, unsigned caps)
{
    return r->req->type->contiguous && r->total && (mr_vc_caps(r->vc, r->total) & caps) == caps;
}

/* The sender can write into memory advertised for this. */
static bool write_recv(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    return lands_here(r, MR_VC_PUT) && advertise_and_clear(r, MR_VC_PUT, &mr_write_protocol, 0);
}

/* A matched receive (mr_imrecv) has no communicator: it is none of a window. */
static bool is_in_window(const struct mr_request *req)
{
    return req->comm && req->comm->of_window;
}

static bool write_recv_datagrams(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    return lands_here(r, MR_VC_DATAGRAMS) &&
           advertise_and_clear(r, is_in_window(r->req) ? MR_VC_DATAGRAMS_STAY : MR_VC_DATAGRAMS, &mr_datagrams_protocol,
                               0);
}

/*
 * The message crosses one of ours (exchange.h), has neither eager prefix nor bounce buffer, and all rails have keys for
 * both buffers.
 */
static bool write_recv_crossing(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_stream *s = mr_flow_of(r->vc)->stream;
    struct mr_remote src;

    if (!s || !s->exchange.open || mr_rndvs.reads_if != MR_VC_READ_FIRST || len != sizeof(src) || r->prefix.len ||
        hdr->len <= mr_vc_eager_most(r->vc) || !lands_here(r, MR_VC_PUT | MR_VC_WRITE_BACK))
        return false;
    memcpy(&src, payload, sizeof(src));
    if (src.token || !mr_exchange_writes(&s->exchange, r->total, mr_rndvs.pending, mr_launch_info()->local_size > 1))
        return false;
    return advertise_and_clear(r, MR_VC_WRITE_BACK, &mr_crossing_protocol, mr_clock_ns());
}

static void say_all_is_there(struct mr_vc *vc, const struct mr_hdr *fail)
{
    struct mr_hdr fin = {.kind = MR_PKT_FIN, .sreq = fail->sreq, .rreq = fail->rreq};

    mr_vc_send(vc, &fin, NULL, 0); /* else the peer is lost */
}

void mr_write_stale(struct mr_vc *vc, const struct mr_hdr *hdr)
{
    if (hdr->kind == MR_PKT_FAIL && hdr->flags & MR_FLAG_AGAIN)
        say_all_is_there(vc, hdr);
}

/* The sender could not write all, or does not know; no write of it is under way. */
static void land_in_packets(struct mr_rndv *r, const struct mr_hdr *fail)
{
    if (r->landing.landed) {
        say_all_is_there(r->vc, fail);
        return;
    }
    mr_vc_withdraw(r->region);
    r->region = NULL;
    r->peer_id = fail->sreq;
    mr_packets_ask(r);
}

void mr_write_packet(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (hdr->kind != MR_PKT_FAIL)
        return;
    if (hdr->flags & MR_FLAG_AGAIN && !r->landing.announced)
        land_in_packets(r, hdr);
    else
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
}

static void write_landed(struct mr_rndv *r, int error)
{
    if (r->landing.told_ns)
        mr_exchange_landed(&mr_flow_of(r->vc)->stream->exchange, mr_clock_ns() - r->landing.told_ns, r->total);
    mr_rndv_finish(r, error ? MR_ERR_PROC_FAILED : MR_SUCCESS);
}

const struct mr_protocol mr_write_protocol = {
    .name = "write",
    .stat = MR_STAT_BY_WRITE,
    .offer = offer_writes,
    .needs = MR_FLAG_PUT,
    .start_recv = write_recv,
    .answer = MR_PKT_CTS,
    .start_send = write_send,
    .packet = mr_write_packet,
    .sent = write_sent,
    .landed = write_landed,
};

const struct mr_protocol mr_crossing_protocol = {
    .name = "write, crossing",
    .stat = MR_STAT_BY_CROSSING,
    .needs = MR_FLAG_PUT,
    .start_recv = write_recv_crossing,
    .packet = mr_write_packet,
    .landed = write_landed,
};

const struct mr_protocol mr_datagrams_protocol = {
    .name = "datagrams",
    .stat = MR_STAT_BY_DATAGRAMS,
    .offer = offer_datagrams,
    .needs = MR_FLAG_DATAGRAMS,
    .start_recv = write_recv_datagrams,
    .packet = mr_write_packet,
    .landed = write_landed,
};
