/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages except read.c's (protocol.h): offers, handling of offers, put, and the sender of copy and shared.
 * Copies by receivers are in node_copy.c.
 */
#include <errno.h>
#include <string.h>

#include "libmrmpi/launch/launch.h"
#include "libmrmpi/p2p/rndv/node_copy.h"
#include "libmrmpi/p2p/rndv/stream.h"

#define PUSH_WINDOW 8  /* DATA packets under way */
#define RTR_REST    4  /* additional RTRs of a peer before RTR is relied on again, after it did not come */
#define POLL_MOST   64 /* transfers in one poll; the next poll goes on behind them */
#define PIECES      16 /* of a large message, at least, unless they would be shorter than eager messages */

/* ---- sender ------------------------------------------------------------------------------------------------------ */

/* The receiver's own means; a flag of RTS, or 0. Fills remote, which goes with it. */
static uint8_t open_for_reading(struct mr_rndv *r, unsigned caps, size_t len, struct mr_remote *remote)
{
    enum mr_vc_caps how = caps & MR_VC_GET ? MR_VC_GET : MR_VC_READ_ONCE;

    if (how != MR_VC_GET && (!(caps & MR_VC_READ) || !(caps & mr_rndvs.reads_if)))
        return 0;
    if (mr_vc_advertise(r->vc, mr_data_at(r->req->send_buf, r->req->type), len, how, &r->region, remote))
        return 0;
    return how == MR_VC_GET ? MR_FLAG_GET : MR_FLAG_READ;
}

static void count_open(struct mr_rndv *r)
{
    struct mr_stream *s = mr_stream_of(r->vc);

    if (!s)
        return;
    s->exchange.open++;
    r->offer.crosses = true;
}

/* Not all has been written, or nothing: the receiver says GO, or FIN. */
static void offer_again(struct mr_rndv *r)
{
    struct mr_hdr hdr = mr_rndv_header(r, MR_PKT_FAIL, 0);

    hdr.flags = MR_FLAG_AGAIN;
    r->state = MR_RNDV_OFFERED;
    if (mr_vc_send(r->vc, &hdr, NULL, 0))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
}

/* Writes to where the receiver wants it, from a byte on. */
static void put_data(struct mr_rndv *r, uint64_t rreq, size_t from, size_t len)
{
    char *buf = mr_data_at(r->req->send_buf, r->req->type);
    const struct mr_net_transfer rest = {.buf = buf + from, .size = len - from, .remote = &r->remote, .cookie = r};
    int err;

    r->peer_id = rreq;
    r->total = len;
    r->state = MR_RNDV_PUTTING;
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

/* Its receiver has said RTR before: the offer is only for the order of messages. */
static int write_now(struct mr_rndv *r, struct mr_hdr *hdr, uint64_t rreq)
{
    int err;

    hdr->flags |= MR_FLAG_RTR | MR_FLAG_PUT;
    mr_stat_add(MR_STAT_READY_SENT, 1);
    err = mr_vc_send(r->vc, hdr, NULL, 0);
    if (!err)
        put_data(r, rreq, 0, r->total);
    return err;
}

/* Whether the message can be written: all of it, from the program's memory. */
static bool heeds_rtr(const struct mr_rndv *r)
{
    return r->req->nth && !r->offer.bounce && mr_stream_of(r->vc);
}

enum mr_err mr_rndv_offer(struct mr_request *req, struct mr_vc *vc, struct mr_hdr *hdr, bool in_place)
{
    unsigned caps = req->type->contiguous && in_place ? mr_vc_caps(vc, hdr->len) : 0;
    struct mr_rndv *r = mr_rndv_new(req, vc, MR_RNDV_OFFERED);
    struct mr_remote remote[2]; /* the message, and its bounce buffer */
    unsigned num = 0;
    uint64_t rreq;
    int err;

    if (!r)
        return MR_ERR_NO_MEM;
    r->total = hdr->len;
    hdr->kind = MR_PKT_RTS;
    hdr->sreq = mr_rndv_id(r);
    mr_stat_add(MR_STAT_RNDV_SENT, 1);
    if (req->nth && mr_rtr_take(req, vc, &rreq, &r->remote) && caps & MR_VC_PUT) {
        err = write_now(r, hdr, rreq);
        goto sent;
    }
    hdr->flags |= open_for_reading(r, caps, hdr->len, remote);
    if (hdr->flags & (MR_FLAG_GET | MR_FLAG_READ))
        num = 1;
    if (hdr->flags & MR_FLAG_GET) {
        r->copy.counted = true;
        mr_rndvs.near.sends++;
    }
    if (hdr->flags & MR_FLAG_READ) {
        num += mr_prefix_divide(r, &remote[0], &remote[1]);
        count_open(r);
    }
    hdr->rreq = r->prefix.len;
    if (caps & MR_VC_PUT)
        hdr->flags |= MR_FLAG_PUT;
    if (caps & MR_VC_DATAGRAMS)
        hdr->flags |= MR_FLAG_DATAGRAMS;
    if (caps & MR_VC_PUT && heeds_rtr(r)) {
        hdr->flags |= MR_FLAG_RTR;
        mr_rtr_await(r);
    }
    mr_stat_add(MR_STAT_NO_CREDIT, !in_place && hdr->len <= mr_vc_eager_most(vc));
    err = mr_vc_send(vc, hdr, remote, num * sizeof(remote[0]));
    if (!err && r->prefix.len)
        err = mr_prefix_send(r);
sent:
    if (!err)
        return MR_SUCCESS;
    mr_error_detail("send to rank %d of the world: %s", mr_vc_world_rank(vc), strerror(-err));
    mr_rndv_drop(r);
    return err == -EIDRM ? MR_ERR_REVOKED : MR_ERR_PROC_FAILED;
}

static int push_piece(struct mr_rndv *r, size_t len)
{
    struct mr_request *req = r->req;
    struct mr_hdr hdr = mr_rndv_header(r, MR_PKT_DATA, r->done);

    hdr.flags = MR_VC_FLAG_BULK;
    hdr.ctx = r->total < UINT32_MAX ? (uint32_t)r->total : UINT32_MAX;
    if (req->type->contiguous)
        return mr_vc_send(r->vc, &hdr, (const char *)mr_data_at(req->send_buf, req->type) + r->done, len);
    return mr_vc_send_made(r->vc, &hdr, len, mr_pt2pt.scratch, mr_holes_pack,
                           &(struct mr_holes){req->send_buf, req->count, req->type, r->done});
}

/* Small pieces, so that both sides copy at the same time; larger pieces of a large message cost less. */
static size_t data_piece(const struct mr_rndv *r)
{
    size_t least = mr_vc_part_max(r->vc), most = mr_vc_packet_max(r->vc), piece = r->total / PIECES;

    if (least < mr_vc_eager_max(r->vc))
        most = least;
    piece = piece < least ? least : piece & ~(size_t)63;
    piece = piece > most ? most : piece;
    return piece < MR_SCRATCH ? piece : MR_SCRATCH;
}

/*
 * A program that has freed its request may learn of the message's end from the receiver's program, and free the memory,
 * before we do: the bytes that the receiver can read are left to the receiver then, which must not wait for DATA.
 */
static int leave_rest(struct mr_rndv *r)
{
    r->copy.left = true;
    r->state = MR_RNDV_PUSHED;
    mr_rndv_deactivate(r);
    if (mr_rndv_tell(r, MR_PKT_LEFT, 0, NULL, 0))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    return 1;
}

static int push_some(struct mr_rndv *r)
{
    size_t piece = data_piece(r);
    int n = 0;

    if (r->copy.shared && r->req->refs == 1)
        return leave_rest(r);
    while (r->done < r->total && r->done - r->told < PUSH_WINDOW * piece &&
           !(mr_channel_waiting && mr_vc_waiting(r->vc))) {
        size_t len = r->total - r->done < piece ? r->total - r->done : piece;

        if (push_piece(r, len)) {
            mr_rndv_finish(r, MR_ERR_PROC_FAILED);
            return 1;
        }
        r->done += len;
        n++;
    }
    if (r->done < r->total)
        return n;
    if (r->copy.shared) { /* the receiver may be reading the buffer still */
        r->state = MR_RNDV_PUSHED;
        mr_rndv_deactivate(r);
    } else {
        mr_rndv_finish(r, MR_SUCCESS);
    }
    return n;
}

/* The receiver cannot read the rest left to it: until it has the rest, it does not report the message as received. */
static void resume(struct mr_rndv *r)
{
    r->copy.left = r->copy.shared = false;
    r->state = MR_RNDV_PUSHING;
    mr_rndv_activate(r);
}

static void on_go(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_split_copy split;

    if (r->copy.left && !(hdr->flags & MR_FLAG_GET)) {
        resume(r);
        return;
    }
    if ((r->state != MR_RNDV_OFFERED && !(r->copy.claim && len == 0)) || hdr->len > r->total)
        return;
    mr_rndv_deactivate(r); /* the receiver cannot do its half */
    r->copy.claim = NULL;
    r->peer_id = hdr->rreq;
    r->total = hdr->len;
    if (r->rtr.awaited && r->req->crowded)
        mr_stream_of(r->vc)->announces = -RTR_REST;
    if (len == sizeof(split) && r->copy.counted) {
        memcpy(&split, payload, len);
        mr_node_copy_write(r, &split);
        return;
    }
    r->done = r->told = r->prefix.len;
    r->copy.shared = hdr->flags & MR_FLAG_GET;
    r->state = MR_RNDV_PUSHING;
    if (r->region && r->req->in_burst)
        mr_burst_taken(&mr_pt2pt.burst, false);
    mr_rndv_activate(r);
    push_some(r);
}

static void on_cts(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (r && hdr->kind == MR_PKT_RTR)
        mr_stat_add(MR_STAT_READY_SENT, 1);
    if (!r || r->state != MR_RNDV_OFFERED || len != sizeof(r->remote) || hdr->len > r->total ||
        !r->req->type->contiguous)
        return;
    memcpy(&r->remote, payload, len);
    put_data(r, hdr->rreq, hdr->kind == MR_PKT_RTR ? mr_rtr_prefix(r) : 0, hdr->len);
}

static void on_fin(struct mr_rndv *r, const struct mr_hdr *hdr)
{
    if (r->state != MR_RNDV_OFFERED && r->state != MR_RNDV_PUSHING && r->state != MR_RNDV_WRITING &&
        r->state != MR_RNDV_PUSHED && r->state != MR_RNDV_BOUNCE)
        return;
    if (r->state == MR_RNDV_OFFERED && r->req->in_burst)
        mr_burst_taken(&mr_pt2pt.burst, true);
    mr_rndv_finish(r, hdr->len ? MR_ERR_OTHER : MR_SUCCESS);
}

void mr_rndv_put_sent(void *cookie, int error)
{
    struct mr_rndv *r = cookie;

    if (r->state == MR_RNDV_PUTTING && error && mr_rndv_unrailed(r))
        offer_again(r);
    else if (r->state == MR_RNDV_PUTTING)
        mr_rndv_finish(r, error ? MR_ERR_PROC_FAILED : MR_SUCCESS);
}

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

static bool advertise_and_clear(struct mr_rndv *r, enum mr_vc_caps how)
{
    struct mr_request *req = r->req;

    if (mr_vc_advertise(r->vc, mr_data_at(req->recv_buf, req->type), r->total, how, &r->region, &r->remote))
        return false;
    mr_vc_expect(r->region, mr_rndv_id(r));
    r->state = MR_RNDV_LANDING;
    if (mr_rndv_tell(r, MR_PKT_CTS, r->total, &r->remote, sizeof(r->remote)))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    return true;
}

/* A matched receive (mr_imrecv) has no communicator: it is none of a window. */
static bool is_in_window(const struct mr_request *req)
{
    return req->comm && req->comm->of_window;
}

/* The sender can write, or send datagrams, into memory advertised for this; this rank can, too. */
static bool put_all(struct mr_rndv *r, const struct mr_hdr *hdr)
{
    unsigned caps;

    if (!(hdr->flags & (MR_FLAG_PUT | MR_FLAG_DATAGRAMS)) || !r->req->type->contiguous || !r->total)
        return false;
    caps = mr_vc_caps(r->vc, r->total);
    if (hdr->flags & MR_FLAG_PUT && caps & MR_VC_PUT && advertise_and_clear(r, MR_VC_PUT))
        return true;
    return hdr->flags & MR_FLAG_DATAGRAMS && caps & MR_VC_DATAGRAMS &&
           advertise_and_clear(r, is_in_window(r->req) ? MR_VC_DATAGRAMS_STAY : MR_VC_DATAGRAMS);
}

/*
 * The message crosses one of ours (exchange.h), has neither eager prefix nor bounce buffer, and all rails have keys for
 * both buffers.
 */
static bool write_back(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_stream *s = mr_flow_of(r->vc)->stream;
    unsigned caps = MR_VC_PUT | MR_VC_WRITE_BACK;
    struct mr_remote src;

    if (!s || !s->exchange.open || mr_rndvs.reads_if != MR_VC_READ_FIRST || !(hdr->flags & MR_FLAG_PUT) ||
        len != sizeof(src) || r->prefix.len || hdr->len <= mr_vc_eager_most(r->vc) || !r->req->type->contiguous ||
        !r->total || (mr_vc_caps(r->vc, r->total) & caps) != caps)
        return false;
    memcpy(&src, payload, sizeof(src));
    if (src.token || !mr_exchange_writes(&s->exchange, r->total, mr_rndvs.pending, mr_launch_info()->local_size > 1))
        return false;
    r->told_ns = mr_clock_ns();
    if (advertise_and_clear(r, MR_VC_WRITE_BACK))
        return true;
    r->told_ns = 0;
    return false;
}

/* Into memory not registered yet, and not worth it. */
static bool is_better_copied(struct mr_rndv *r, const struct mr_hdr *hdr)
{
    if (hdr->len > mr_vc_eager_most(r->vc))
        return mr_net_reaches(r->vc) && mr_net_copies(r->vc, mr_data_at(r->req->recv_buf, r->req->type), hdr->len);
    return hdr->flags & MR_FLAG_READ && /* could have come eagerly */
           !(hdr->flags & MR_FLAG_RTR && mr_pt2pt.burst.is_registered(r->req->recv_buf, hdr->len)) &&
           !mr_burst_offered(&mr_pt2pt.burst, r->req->recv_buf, hdr->len);
}

/* The first that sender, channel and both buffers can do. */
static void choose(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (mr_node_copy_begin(r, hdr, payload, len))
        return;
    if (!is_better_copied(r, hdr) &&
        (write_back(r, hdr, payload, len) || mr_read_begin(r, hdr, payload, len) || put_all(r, hdr)))
        return;
    mr_rndv_ask(r, MR_RNDV_DRAINING);
}

void mr_rndv_accept(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_rndv *r;
    uint64_t id;
    size_t come;

    if (hdr->flags & MR_FLAG_RTR)
        mr_rtr_heeded(vc, hdr->len);
    if (req->proto && mr_rtr_meet(req, hdr, (const uint8_t *)payload + len))
        return;
    r = mr_rndv_new(req, vc, MR_RNDV_GETTING);
    if (!r) {
        if (hdr->rreq)
            mr_prefix_forget(vc, hdr);
        req->status.error = MR_ERR_NO_MEM;
        mr_request_complete(req);
        return;
    }
    mr_rndvs.large_received++;
    id = mr_rndv_id(r);
    r->peer_id = hdr->sreq;
    r->total = req->status.bytes;
    come = hdr->rreq ? mr_prefix_meet(r, hdr) : 0;
    choose(r, hdr, payload, len);
    if (come && mr_rndv_find(vc, id)) /* copied while the channel reads; over already: the peer is lost */
        mr_read_prefix(r, 0, (const uint8_t *)payload + len, come);
}

void mr_rndv_put_landed(int world_rank, uint64_t rreq, int error)
{
    struct mr_vc *vc = mr_vc_get_peer(world_rank);
    struct mr_rndv *r = mr_rndv_find(vc, rreq);

    if (!r || r->state != MR_RNDV_LANDING)
        return;
    r->rtr.landed = true;
    if ((r->rtr.announced || (r->rtr.met && r->prefix.left)) && !error)
        return;
    if (r->told_ns)
        mr_exchange_landed(&mr_flow_of(vc)->stream->exchange, mr_clock_ns() - r->told_ns, r->total);
    mr_rndv_finish(r, error ? MR_ERR_PROC_FAILED : MR_SUCCESS);
}

static void say_all_is_there(struct mr_vc *vc, const struct mr_hdr *fail)
{
    struct mr_hdr fin = {.kind = MR_PKT_FIN, .sreq = fail->sreq, .rreq = fail->rreq};

    mr_vc_send(vc, &fin, NULL, 0); /* else the peer is lost */
}

/* The sender could not write all, or does not know; no write of it is under way. */
static void land_in_packets(struct mr_rndv *r, const struct mr_hdr *fail)
{
    if (r->rtr.landed) {
        say_all_is_there(r->vc, fail);
        return;
    }
    mr_vc_withdraw(r->region);
    r->region = NULL;
    r->told_ns = 0;
    r->peer_id = fail->sreq;
    mr_rndv_ask(r, MR_RNDV_DRAINING);
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

/* Packets for a transfer that is over or never was are dropped: a sender does not wait for the last CREDIT. */
void mr_rndv_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    bool to_receiver = hdr->kind == MR_PKT_DATA || hdr->kind == MR_PKT_FAIL || hdr->kind == MR_PKT_LEFT;
    struct mr_rndv *r;

    if (hdr->kind == MR_PKT_RTR)
        on_cts(mr_rtr_packet(vc, hdr, payload, len), hdr, payload, len);
    if (hdr->kind == MR_PKT_RTR_CANCEL)
        mr_rtr_forget(vc, hdr);
    if (hdr->kind == MR_PKT_RTR || hdr->kind == MR_PKT_RTR_CANCEL)
        return;
    r = mr_rndv_find(vc, to_receiver ? hdr->rreq : hdr->sreq);
    if (!r && hdr->kind == MR_PKT_FAIL && hdr->flags & MR_FLAG_AGAIN)
        say_all_is_there(vc, hdr);
    if (!r || (r->req->kind == MR_REQ_SEND) == to_receiver)
        return;
    switch (hdr->kind) {
    case MR_PKT_CTS:
        on_cts(r, hdr, payload, len);
        break;
    case MR_PKT_GO:
        on_go(r, hdr, payload, len);
        break;
    case MR_PKT_DATA:
        mr_node_copy_data(r, hdr, payload, len);
        break;
    case MR_PKT_LEFT:
        mr_node_copy_left(r);
        break;
    case MR_PKT_CREDIT:
        if ((r->state == MR_RNDV_PUSHING || r->copy.left) && hdr->len <= r->done && hdr->len > r->told)
            r->told = hdr->len; /* counts also if the rest is asked for later */
        break;
    case MR_PKT_FIN:
        on_fin(r, hdr);
        break;
    case MR_PKT_FRONT:
        mr_bounce_front(r);
        break;
    case MR_PKT_FAIL:
        if (r->state == MR_RNDV_LANDING && hdr->flags & MR_FLAG_AGAIN)
            land_in_packets(r, hdr);
        else if (r->state == MR_RNDV_LANDING)
            mr_rndv_finish(r, MR_ERR_PROC_FAILED);
        else if (r->state == MR_RNDV_SPLITTING)
            mr_node_copy_refused(r);
        break;
    case MR_PKT_ACK:
        if (r->state == MR_RNDV_ACK)
            mr_rndv_finish(r, MR_SUCCESS);
        break;
    }
}

/* A send without a receive is to end: the receiver gives it back. */
void mr_rndv_ask_back(struct mr_rndv *r)
{
    struct mr_hdr hdr = mr_rndv_header(r, MR_PKT_CANCEL, 0);

    if ((r->state != MR_RNDV_OFFERED && r->state != MR_RNDV_ACK) || r->offer.cancelling)
        return;
    r->offer.cancelling = true;
    hdr.rank = r->req->comm->rank;
    hdr.tag = r->req->tag;
    hdr.ctx = r->req->ctx;
    mr_vc_send(r->vc, &hdr, NULL, 0); /* if this fails the peer has, and the send ends with that error */
}

void mr_rndv_in_vain(struct mr_rndv *r)
{
    if (r->req->ctx == MR_CTX_FINALIZE)
        return;
    r->offer.vain = true;
    mr_rndv_ask_back(r);
}

void mr_rndv_peer_parts(struct mr_vc *vc)
{
    for (uint32_t i = 0; i < mr_rndvs.used; i++)
        if (mr_rndvs.table[i]->state != MR_RNDV_FREE && mr_rndvs.table[i]->vc == vc &&
            mr_rndvs.table[i]->req->kind == MR_REQ_SEND)
            mr_rndv_in_vain(mr_rndvs.table[i]);
}

/* The transfers before r go behind all others. */
static void rotate_active(struct mr_rndv *r)
{
    struct mr_rndv *first = mr_rndvs.active, *last = mr_rndvs.active_last;

    last->next = first;
    first->prev = last;
    mr_rndvs.active = r;
    mr_rndvs.active_last = r->prev;
    r->prev->next = NULL;
    r->prev = NULL;
}

/* With thousands of transfers in wait for room at one peer, a poll of all would cost more than the messages. */
int mr_rndv_progress(void)
{
    struct mr_rndv *r = mr_rndvs.active, *next;
    int n = 0;

    for (int polled = 0; r && polled < POLL_MOST; r = next, polled++) {
        next = r->next;
        if (r->state == MR_RNDV_PUSHING)
            n += push_some(r);
        else
            n += r->state == MR_RNDV_WRITING ? mr_node_copy_write_some(r) : mr_node_copy_progress(r);
    }
    if (r && r->prev)
        rotate_active(r);
    return n;
}

void mr_rndv_fail_peer(struct mr_vc *vc)
{
    for (uint32_t i = 0; i < mr_rndvs.used; i++)
        if (mr_rndvs.table[i]->state != MR_RNDV_FREE && mr_rndvs.table[i]->vc == vc)
            mr_rndv_finish(mr_rndvs.table[i], MR_ERR_PROC_FAILED);
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

static unsigned reads_wanted(void)
{
    const char *how = mr_config.rndv;

    if (!strcmp(how, "read"))
        return MR_VC_READ;
    if (!strcmp(how, "write"))
        return 0;
    if (strcmp(how, "auto"))
        mr_log(MR_LOG_WARN, "MRMPI_RNDV=%s: must be auto, write or read; auto it is", how);
    return MR_VC_READ_FIRST;
}

/* 0: learnt. */
static unsigned copy_mode_wanted(void)
{
    for (int i = 0; mr_copy_mode_names[i]; i++)
        if (!strcmp(mr_config.shm_copy, mr_copy_mode_names[i]))
            return i + 1;
    if (strcmp(mr_config.shm_copy, "auto"))
        mr_log(MR_LOG_WARN, "MRMPI_SHM_COPY=%s: must be auto, push, read or split; auto it is", mr_config.shm_copy);
    return 0;
}

void mr_rndv_init(void)
{
    mr_rndvs = (struct mr_rndvs){.reads_if = reads_wanted(), .near = {.forced = copy_mode_wanted()}};
}

bool mr_rndv_knows(const struct mr_vc *vc)
{
    for (uint32_t i = 0; mr_rndvs.pending && i < mr_rndvs.used; i++)
        if (mr_rndvs.table[i]->state && mr_rndvs.table[i]->vc == vc)
            return true;
    return false;
}

void mr_rndv_forget(struct mr_vc *vc)
{
    mr_bounce_forget(vc);
    mr_stream_drop(vc);
}

void mr_rndv_free(void)
{
    mr_rndv_table_free();
    mr_bounce_free_all();
    mr_streams_free();
    mr_rndvs = (struct mr_rndvs){0};
}
