/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The get, shared, put and copy protocols (protocol.h): what is offered, and what is done with an offer.
 *
 * Inside a node, while every rank has a core, both ranks copy: the sender pushes packets through chunks of its pool,
 * which stay in the caches. Between cores that share a cache that is twice as fast as one process_vm_readv. With more
 * ranks than cores the receiver reads it all: one copy costs the least processor time. If the kernel refuses, the
 * sender pushes all.
 */
#include <errno.h>
#include <string.h>

#include "libmrmpi/base/copy.h"
#include "libmrmpi/channel/shm.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/pt2pt/flow.h"

#define GET_CHUNK   (1u << 20) /* read at a time, so that other traffic goes on meanwhile */
#define PUSH_WINDOW 8          /* DATA packets under way */
#define PIECES      16         /* of a large message, at least, unless they would be shorter than eager messages */
#define SHARE_CHUNK (256u << 10)
#define SILENCE_MAX 256 /* looks without any DATA after which a sharing receiver reads by itself */

/* ---- sender ------------------------------------------------------------------------------------------------------ */

/* What the receiver may do by itself; a flag of RTS, or 0. Fills remote, which goes with it. */
static uint8_t open_for_reading(struct mr_rndv *r, unsigned caps, size_t len, struct mr_remote *remote)
{
    enum mr_vc_caps how = caps & MR_VC_GET ? MR_VC_GET : MR_VC_READ_ONCE;

    if (how != MR_VC_GET && (!(caps & MR_VC_READ) || !(caps & mr_pt2pt.reads_if)))
        return 0;
    if (mr_vc_advertise(r->vc, mr_plain(r->req->send_buf, r->req->type), len, how, &r->region, remote))
        return 0;
    return how == MR_VC_GET ? MR_FLAG_GET : MR_FLAG_READ;
}

enum mr_err mr_rndv_offer(struct mr_request *req, struct mr_vc *vc, struct mr_hdr *hdr, bool in_place)
{
    unsigned caps = req->type->contiguous && in_place ? mr_vc_caps(vc, hdr->len) : 0;
    struct mr_rndv *r = mr_rndv_new(req, vc, MR_RNDV_OFFERED);
    struct mr_remote remote[2]; /* the message, and its tail */
    unsigned num = 0;
    int err;

    if (!r)
        return MR_ERR_NO_MEM;
    r->total = hdr->len;
    hdr->kind = MR_PKT_RTS;
    hdr->sreq = mr_rndv_id(r);
    hdr->flags |= open_for_reading(r, caps, hdr->len, remote);
    if (hdr->flags & (MR_FLAG_GET | MR_FLAG_READ))
        num = 1;
    if (hdr->flags & MR_FLAG_READ)
        num += mr_head_divide(r, &remote[0], &remote[1]);
    hdr->rreq = r->head;
    if (caps & MR_VC_PUT)
        hdr->flags |= MR_FLAG_PUT;
    if (caps & MR_VC_DATAGRAMS)
        hdr->flags |= MR_FLAG_DATAGRAMS;
    mr_stat_add(MR_STAT_RNDV_SENT, 1);
    mr_stat_add(MR_STAT_NO_CREDIT, !in_place && hdr->len <= mr_vc_eager_most(vc));
    err = mr_vc_send(vc, hdr, remote, num * sizeof(remote[0]));
    if (!err && r->head)
        err = mr_head_send(r);
    if (!err)
        return MR_SUCCESS;
    mr_error_detail("send to rank %d of the world: %s", mr_vc_world_rank(vc), strerror(-err));
    mr_rndv_drop(r);
    return MR_ERR_PROC_FAILED;
}

static int push_piece(struct mr_rndv *r, size_t len)
{
    struct mr_request *req = r->req;
    struct mr_hdr hdr = mr_rndv_header(r, MR_PKT_DATA, r->done);

    hdr.flags = MR_VC_FLAG_BULK;
    if (req->type->contiguous)
        return mr_vc_send(r->vc, &hdr, (const char *)mr_plain(req->send_buf, req->type) + r->done, len);
    return mr_vc_send_made(r->vc, &hdr, len, mr_pt2pt.scratch, mr_holes_pack,
                           &(struct mr_holes){req->send_buf, req->count, req->type, r->done});
}

/* Small pieces, so that both sides copy at the same time; larger ones of a large message cost less. */
static size_t piece_of(const struct mr_rndv *r)
{
    size_t least = mr_vc_part_max(r->vc), most = mr_vc_packet_max(r->vc), piece = r->total / PIECES;

    if (least < mr_vc_eager_max(r->vc))
        most = least;
    piece = piece < least ? least : piece & ~(size_t)63;
    piece = piece > most ? most : piece;
    return piece < MR_SCRATCH ? piece : MR_SCRATCH;
}

static int push_some(struct mr_rndv *r)
{
    size_t piece = piece_of(r);
    int n = 0;

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
    if (r->shared) { /* the receiver may be reading the buffer still */
        r->state = MR_RNDV_PUSHED;
        mr_rndv_deactivate(r);
    } else {
        mr_rndv_finish(r, MR_SUCCESS);
    }
    return n;
}

static void on_go(struct mr_rndv *r, const struct mr_hdr *hdr)
{
    if (r->state != MR_RNDV_OFFERED || hdr->len > r->total)
        return;
    r->peer_id = hdr->rreq;
    r->total = hdr->len;
    r->done = r->told = r->head;
    r->shared = hdr->flags & MR_FLAG_GET;
    r->state = MR_RNDV_PUSHING;
    if (r->region && r->req->in_burst)
        mr_burst_taken(&mr_pt2pt.burst, false);
    mr_rndv_activate(r);
    push_some(r);
}

static void on_cts(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_request *req = r->req;
    int err;

    if (r->state != MR_RNDV_OFFERED || len != sizeof(r->remote) || hdr->len > r->total || !req->type->contiguous)
        return;
    memcpy(&r->remote, payload, len);
    r->peer_id = hdr->rreq;
    r->total = hdr->len;
    r->state = MR_RNDV_PUTTING;
    err = mr_vc_put(r->vc, mr_plain(req->send_buf, req->type), r->total, &r->remote, r->peer_id, r);
    if (err) {
        mr_rndv_tell(r, MR_PKT_FAIL, -err, NULL, 0);
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    }
}

static void on_fin(struct mr_rndv *r, const struct mr_hdr *hdr)
{
    if (r->state != MR_RNDV_OFFERED && r->state != MR_RNDV_PUSHING && r->state != MR_RNDV_PUSHED &&
        r->state != MR_RNDV_TAIL)
        return;
    if (r->state == MR_RNDV_OFFERED && r->req->in_burst)
        mr_burst_taken(&mr_pt2pt.burst, true);
    mr_rndv_finish(r, hdr->len ? MR_ERR_OTHER : MR_SUCCESS);
}

void mr_rndv_put_sent(void *cookie, int error)
{
    struct mr_rndv *r = cookie;

    if (r->state == MR_RNDV_PUTTING)
        mr_rndv_finish(r, error ? MR_ERR_PROC_FAILED : MR_SUCCESS);
}

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

/* All bytes are here. A sender whose memory was ours to read waits to hear it. */
static void received(struct mr_rndv *r)
{
    int err = r->shared ? mr_rndv_tell(r, MR_PKT_FIN, 0, NULL, 0) : 0;

    mr_rndv_finish(r, err ? MR_ERR_PROC_FAILED : MR_SUCCESS);
}

static void on_data(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_request *req = r->req;
    size_t wanted;

    if ((r->state != MR_RNDV_DRAINING && r->state != MR_RNDV_SHARING) || hdr->len != r->done || !len ||
        r->done >= r->total || len > r->total - r->done)
        return;
    wanted = len < r->tail - r->done ? len : r->tail - r->done;
    if (req->type->contiguous)
        mr_copy_in((char *)mr_plain(req->recv_buf, req->type) + r->done, payload, wanted);
    else
        mr_type_unpack(req->recv_buf, req->count, req->type, r->done, payload, wanted);
    r->done += len;
    mr_pt2pt.data_seen++;
    if (r->done >= r->tail) {
        received(r);
    } else if (r->done - r->told >= 2 * len) {
        r->told = r->done;
        if (mr_rndv_tell(r, MR_PKT_CREDIT, r->done, NULL, 0))
            mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    }
}

/* Read [offset, offset + len) of the peer's data into the buffer, through the scratch memory if that has holes. */
static int get_range(struct mr_rndv *r, uint64_t offset, size_t len)
{
    struct mr_request *req = r->req;
    int err;

    if (req->type->contiguous)
        return mr_vc_get(r->vc, (char *)mr_plain(req->recv_buf, req->type) + offset, len, &r->remote, offset);
    err = mr_vc_get(r->vc, mr_pt2pt.scratch, len, &r->remote, offset);
    if (!err)
        mr_type_unpack(req->recv_buf, req->count, req->type, offset, mr_pt2pt.scratch, len);
    return err;
}

static void get_failed(struct mr_rndv *r, int err)
{
    mr_error_detail("reading %llu bytes of rank %d: %s", (unsigned long long)r->total, mr_vc_world_rank(r->vc),
                    strerror(-err));
    mr_rndv_tell(r, MR_PKT_FIN, -err, NULL, 0);
    mr_rndv_finish(r, MR_ERR_OTHER);
}

static void note_refusal(void)
{
    if (!mr_pt2pt.get_refused)
        mr_log(MR_LOG_INFO, "the kernel refuses single copy between processes; large messages are copied twice");
    mr_pt2pt.get_refused = true;
}

static void get_some(struct mr_rndv *r)
{
    size_t most = r->req->type->contiguous ? GET_CHUNK : MR_SCRATCH;
    size_t len = r->total - r->done < most ? r->total - r->done : most;
    int err = len ? get_range(r, r->done, len) : 0;

    if (err == -EPERM) {
        note_refusal();
        mr_rndv_deactivate(r);
        mr_rndv_ask(r, MR_RNDV_DRAINING);
        return;
    }
    if (err) {
        get_failed(r, err);
        return;
    }
    r->done += len;
    if (r->done < r->total)
        return;
    err = mr_rndv_tell(r, MR_PKT_FIN, 0, NULL, 0);
    mr_rndv_finish(r, err ? MR_ERR_PROC_FAILED : MR_SUCCESS);
}

/*
 * The sender has been asked to push. While it does not, read the back of the message. Data of other messages counts as
 * a sign of life: a sender with many under way has yet to come to this one.
 */
static int share_some(struct mr_rndv *r)
{
    size_t len = r->tail - r->done < SHARE_CHUNK ? r->tail - r->done : SHARE_CHUNK;
    int err;

    if (r->data_seen != mr_pt2pt.data_seen) {
        r->data_seen = mr_pt2pt.data_seen;
        r->silence = 0;
    }
    if (r->silence++ < SILENCE_MAX)
        return 0;
    err = get_range(r, r->tail - len, len);
    if (err == -EPERM) {
        note_refusal();
        mr_rndv_deactivate(r);
        r->state = MR_RNDV_DRAINING;
        return 0;
    }
    if (err) {
        get_failed(r, err);
        return 1;
    }
    r->tail -= len;
    if (r->done >= r->tail)
        received(r);
    return 1;
}

static bool advertise_and_clear(struct mr_rndv *r, enum mr_vc_caps how)
{
    struct mr_request *req = r->req;

    if (mr_vc_advertise(r->vc, mr_plain(req->recv_buf, req->type), r->total, how, &r->region, &r->remote))
        return false;
    mr_vc_expect(r->region, mr_rndv_id(r));
    r->state = MR_RNDV_LANDING;
    if (mr_rndv_tell(r, MR_PKT_CTS, r->total, &r->remote, sizeof(r->remote)))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    return true;
}

/* The sender can write, or send datagrams, into memory that is advertised for that; so can be done here, too. */
static bool put_all(struct mr_rndv *r, const struct mr_hdr *hdr)
{
    unsigned caps;

    if (!(hdr->flags & (MR_FLAG_PUT | MR_FLAG_DATAGRAMS)) || !r->req->type->contiguous || !r->total)
        return false;
    caps = mr_vc_caps(r->vc, r->total);
    if (hdr->flags & MR_FLAG_PUT && caps & MR_VC_PUT && advertise_and_clear(r, MR_VC_PUT))
        return true;
    return hdr->flags & MR_FLAG_DATAGRAMS && caps & MR_VC_DATAGRAMS && advertise_and_clear(r, MR_VC_DATAGRAMS);
}

/* With a core for each rank, and another rank to share with. */
static bool sharing_pays(struct mr_vc *vc)
{
    return !mr_shm_oversubscribed() && mr_vc_world_rank(vc) != mr_launch_info()->rank;
}

/* Into memory that is not registered yet, and not worth it. */
static bool is_better_copied(struct mr_rndv *r, const struct mr_hdr *hdr)
{
    if (hdr->len > mr_vc_eager_most(r->vc))
        return mr_vc_copies(r->vc, mr_plain(r->req->recv_buf, r->req->type), hdr->len);
    return hdr->flags & MR_FLAG_READ && /* it could have come eagerly */
           !mr_burst_offered(&mr_pt2pt.burst, r->req->recv_buf, hdr->len);
}

/* The first that sender, channel and both buffers can do. */
static void choose(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (hdr->flags & MR_FLAG_GET && len == sizeof(r->remote) && !mr_pt2pt.get_refused) {
        memcpy(&r->remote, payload, len);
        mr_rndv_activate(r);
        if (r->total && sharing_pays(r->vc))
            mr_rndv_ask(r, MR_RNDV_SHARING);
        else
            get_some(r);
        return;
    }
    if (!is_better_copied(r, hdr) && (mr_read_begin(r, hdr, payload, len) || put_all(r, hdr)))
        return;
    mr_rndv_ask(r, MR_RNDV_DRAINING);
}

void mr_rndv_accept(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_rndv *r = mr_rndv_new(req, vc, MR_RNDV_GETTING);
    uint64_t id;
    size_t come;

    if (!r) {
        if (hdr->rreq)
            mr_head_forget(vc, hdr);
        req->status.error = MR_ERR_NO_MEM;
        mr_request_complete(req);
        return;
    }
    mr_pt2pt.large_received++;
    id = mr_rndv_id(r);
    r->peer_id = hdr->sreq;
    r->total = req->status.bytes;
    come = hdr->rreq ? mr_head_meet(r, hdr) : 0;
    choose(r, hdr, payload, len);
    if (come && mr_rndv_find(vc, id)) /* copied while the channel reads; over already: the peer is lost */
        mr_read_head(r, 0, (const uint8_t *)payload + len, come);
}

void mr_rndv_put_landed(struct mr_vc *vc, uint64_t rreq, int error)
{
    struct mr_rndv *r = mr_rndv_find(vc, rreq);

    if (r && r->state == MR_RNDV_LANDING)
        mr_rndv_finish(r, error ? MR_ERR_PROC_FAILED : MR_SUCCESS);
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

/* Packets that mean a transfer that is over or never was are dropped: a sender does not wait for the last CREDIT. */
void mr_rndv_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    bool to_receiver = hdr->kind == MR_PKT_DATA || hdr->kind == MR_PKT_FAIL;
    struct mr_rndv *r = mr_rndv_find(vc, to_receiver ? hdr->rreq : hdr->sreq);

    if (!r || (r->req->kind == MR_REQ_SEND) == to_receiver)
        return;
    switch (hdr->kind) {
    case MR_PKT_CTS:
        on_cts(r, hdr, payload, len);
        break;
    case MR_PKT_GO:
        on_go(r, hdr);
        break;
    case MR_PKT_DATA:
        on_data(r, hdr, payload, len);
        break;
    case MR_PKT_CREDIT:
        if (r->state == MR_RNDV_PUSHING && hdr->len <= r->done && hdr->len > r->told)
            r->told = hdr->len;
        break;
    case MR_PKT_FIN:
        on_fin(r, hdr);
        break;
    case MR_PKT_FRONT:
        mr_tail_front(r);
        break;
    case MR_PKT_FAIL:
        if (r->state == MR_RNDV_LANDING)
            mr_rndv_finish(r, MR_ERR_PROC_FAILED);
        break;
    case MR_PKT_ACK:
        if (r->state == MR_RNDV_ACK)
            mr_rndv_finish(r, MR_SUCCESS);
        break;
    }
}

int mr_rndv_progress(void)
{
    struct mr_rndv *r = mr_pt2pt.active, *next;
    int n = 0;

    for (; r; r = next) {
        next = r->next;
        if (r->state == MR_RNDV_GETTING) {
            get_some(r);
            n++;
        } else if (r->state == MR_RNDV_SHARING) {
            n += share_some(r);
        } else {
            n += push_some(r);
        }
    }
    return n;
}

void mr_rndv_fail_peer(struct mr_vc *vc)
{
    for (uint32_t i = 0; i < mr_pt2pt.rndv_used; i++)
        if (mr_pt2pt.rndv[i]->state != MR_RNDV_FREE && mr_pt2pt.rndv[i]->vc == vc)
            mr_rndv_finish(mr_pt2pt.rndv[i], MR_ERR_PROC_FAILED);
}
