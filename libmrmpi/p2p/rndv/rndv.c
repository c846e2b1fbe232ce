/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages: offers, the receiver's choice of a protocol, and the way of packets and reports to protocols. */
#include <errno.h>
#include <string.h>

#include "libmrmpi/p2p/rndv/protocols.h"
#include "libmrmpi/p2p/rndv/stream.h"

#define POLL_MOST 64 /* transfers in one poll; the next poll goes on behind them */

static const struct mr_protocol *const protocols[] = {
#define MR_PROTOCOL(descriptor) &descriptor,
#include "libmrmpi/p2p/rndv/protocols.def"
#undef MR_PROTOCOL
};
enum { PROTOCOLS = sizeof(protocols) / sizeof(protocols[0]) };

/* ---- sender ------------------------------------------------------------------------------------------------------ */

static int send_offer(struct mr_rndv *r, struct mr_hdr *hdr, unsigned caps)
{
    struct mr_rndv_means m = {.hdr = hdr, .caps = caps};
    int err;

    for (int i = 0; i < PROTOCOLS; i++)
        if (protocols[i]->offer)
            protocols[i]->offer(r, &m);
    hdr->rreq = r->prefix.len;
    err = mr_vc_send(r->vc, hdr, m.remote, m.num * sizeof(m.remote[0]));
    return err || !r->prefix.len ? err : mr_prefix_send(r);
}

enum mr_err mr_rndv_offer(struct mr_request *req, struct mr_vc *vc, struct mr_hdr *hdr, bool in_place)
{
    unsigned caps = req->type->contiguous && in_place ? mr_vc_caps(vc, hdr->len) : 0;
    struct mr_rndv *r = mr_rndv_new(req, vc, MR_RNDV_OFFERED);
    int err;

    if (!r)
        return MR_ERR_NO_MEM;
    r->total = hdr->len;
    hdr->kind = MR_PKT_RTS;
    hdr->sreq = mr_rndv_id(r);
    mr_stat_add(MR_STAT_RNDV_SENT, 1);
    if (!mr_ready_offer(r, hdr, caps, &err)) {
        mr_stat_add(MR_STAT_NO_CREDIT, !in_place && hdr->len <= mr_vc_eager_most(vc));
        err = send_offer(r, hdr, caps);
    }
    if (!err)
        return MR_SUCCESS;
    mr_rndv_drop(r);
    if (err == -EIDRM)
        return mr_fail(MR_ERR_REVOKED, "its operations end, here and on all ranks");
    return mr_fail(MR_ERR_PROC_FAILED, "send to rank %d of the world: %s", mr_vc_world_rank(vc), strerror(-err));
}

/* The receiver has chosen. */
static void start_sending(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    for (int i = 0; i < PROTOCOLS; i++) {
        const struct mr_protocol *p = protocols[i];

        if (p->start_send && p->answer == hdr->kind && p->start_send(r, hdr, payload, len))
            return;
    }
}

/* To a sender whose memory the receiver reads. */
static void on_fin(struct mr_rndv *r, const struct mr_hdr *hdr)
{
    if (r->state == MR_RNDV_ACK || mr_rndv_leaves(r))
        return;
    if (r->state == MR_RNDV_OFFERED && r->req->in_burst)
        mr_burst_taken(&mr_pt2pt.burst, true);
    mr_rndv_finish(r, hdr->len ? MR_ERR_OTHER : MR_SUCCESS);
}

bool mr_rndv_leaves(const struct mr_rndv *r)
{
    return r->state == MR_RNDV_MOVING && r->by->sent && mr_rndv_sends(r);
}

void mr_rndv_put_sent(void *cookie, int error)
{
    struct mr_rndv *r = cookie;

    if (r->state == MR_RNDV_MOVING && r->by->sent)
        r->by->sent(r, error);
}

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

/* The first that sender, channel and both buffers can do. */
static void start_receiving(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    for (int i = 0; i < PROTOCOLS; i++) {
        const struct mr_protocol *p = protocols[i];

        if (p->start_recv && (!p->needs || p->needs & hdr->flags) && p->start_recv(r, hdr, payload, len))
            return;
    }
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
    r = mr_rndv_new(req, vc, MR_RNDV_MOVING);
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
    start_receiving(r, hdr, payload, len);
    if (come && mr_rndv_find(vc, id)) /* copied while the channel reads; over already: the peer is lost */
        mr_prefix_copy(r, 0, (const uint8_t *)payload + len, come);
}

void mr_rndv_put_landed(int world_rank, uint64_t rreq, int error)
{
    struct mr_rndv *r = mr_rndv_find(mr_vc_get_peer(world_rank), rreq);

    if (r && r->state == MR_RNDV_MOVING && r->by->landed && !mr_rndv_sends(r))
        r->by->landed(r, error);
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static void pass_packet(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (hdr->kind == MR_PKT_FIN)
        on_fin(r, hdr);
    else if (r->state == MR_RNDV_OFFERED)
        start_sending(r, hdr, payload, len);
    else if (r->state == MR_RNDV_MOVING && r->by->packet)
        r->by->packet(r, hdr, payload, len);
    else if (r->state == MR_RNDV_ACK && hdr->kind == MR_PKT_ACK)
        mr_rndv_finish(r, MR_SUCCESS);
}

/* Packets for a transfer that is over or never was are dropped: a sender does not wait for the last CREDIT. */
void mr_rndv_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    bool to_receiver = hdr->kind == MR_PKT_DATA || hdr->kind == MR_PKT_FAIL || hdr->kind == MR_PKT_LEFT;
    struct mr_rndv *r = NULL;

    if (hdr->kind == MR_PKT_RTR)
        r = mr_rtr_packet(vc, hdr, payload, len);
    else if (hdr->kind == MR_PKT_RTR_CANCEL)
        mr_rtr_forget(vc, hdr);
    else
        r = mr_rndv_find(vc, to_receiver ? hdr->rreq : hdr->sreq);
    if (!r)
        mr_write_stale(vc, hdr);
    else if (mr_rndv_sends(r) != to_receiver)
        pass_packet(r, hdr, payload, len);
}

/* A send without a receive is to end: the receiver gives it back. */
void mr_rndv_ask_back(struct mr_rndv *r)
{
    struct mr_hdr hdr = mr_rndv_header(r, MR_PKT_CANCEL, 0);

    if (!mr_rndv_is_unmet(r) || r->offer.cancelling)
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
        if (mr_rndvs.table[i]->state != MR_RNDV_FREE && mr_rndvs.table[i]->vc == vc && mr_rndv_sends(mr_rndvs.table[i]))
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
        n += r->by->progress(r);
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
