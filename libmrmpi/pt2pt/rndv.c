/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers of more than one packet: the table of them, and the get, put and copy protocols (internal.h tells them).
 */
#include <errno.h>
#include <stdlib.h>
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

/* ---- the table --------------------------------------------------------------------------------------------------- */

static int grow_table(void)
{
    uint32_t size = mr_pt2pt.rndv_size ? mr_pt2pt.rndv_size * 2 : 64;
    struct mr_rndv **table = realloc(mr_pt2pt.rndv, size * sizeof(*table));
    uint32_t *spare;

    if (!table)
        return -ENOMEM;
    mr_pt2pt.rndv = table;
    spare = realloc(mr_pt2pt.rndv_free, size * sizeof(*spare));
    if (!spare)
        return -ENOMEM;
    mr_pt2pt.rndv_free = spare;
    mr_pt2pt.rndv_size = size;
    return 0;
}

static struct mr_rndv *take_slot(void)
{
    struct mr_rndv *r;

    if (mr_pt2pt.rndv_num_free)
        return mr_pt2pt.rndv[mr_pt2pt.rndv_free[--mr_pt2pt.rndv_num_free]];
    if (mr_pt2pt.rndv_used == mr_pt2pt.rndv_size && grow_table())
        return NULL;
    r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->index = mr_pt2pt.rndv_used;
    r->generation = 1;
    mr_pt2pt.rndv[mr_pt2pt.rndv_used++] = r;
    return r;
}

struct mr_rndv *mr_rndv_new(struct mr_request *req, struct mr_vc *vc, enum mr_rndv_state state)
{
    struct mr_rndv *r = take_slot();

    if (!r)
        return NULL;
    *r = (struct mr_rndv){.index = r->index, .generation = r->generation, .state = state, .req = req, .vc = vc};
    req->proto = r;
    mr_pt2pt.rndv_pending++;
    return r;
}

/* The oldest first: what began first ends first. */
static void activate(struct mr_rndv *r)
{
    r->next = NULL;
    r->prev = mr_pt2pt.active_last;
    if (r->prev)
        r->prev->next = r;
    else
        mr_pt2pt.active = r;
    mr_pt2pt.active_last = r;
}

static void deactivate(struct mr_rndv *r)
{
    if (!r->prev && mr_pt2pt.active != r)
        return;
    if (r->prev)
        r->prev->next = r->next;
    else
        mr_pt2pt.active = r->next;
    if (r->next)
        r->next->prev = r->prev;
    else
        mr_pt2pt.active_last = r->prev;
    r->next = r->prev = NULL;
}

void mr_rndv_drop(struct mr_rndv *r)
{
    deactivate(r);
    mr_head_uncount(r);
    if (r->region)
        mr_vc_unexpose(r->region);
    r->region = NULL;
    if (r->bounce)
        mr_tail_release(r);
    r->req->proto = NULL;
    r->req = NULL;
    r->state = MR_RNDV_FREE;
    r->generation++;
    mr_pt2pt.rndv_free[mr_pt2pt.rndv_num_free++] = r->index;
    mr_pt2pt.rndv_pending--;
}

void mr_rndv_table_free(void)
{
    for (uint32_t i = 0; i < mr_pt2pt.rndv_used; i++)
        free(mr_pt2pt.rndv[i]);
    free(mr_pt2pt.rndv);
    free(mr_pt2pt.rndv_free);
}

struct mr_rndv *mr_rndv_find(struct mr_vc *vc, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    struct mr_rndv *r = index < mr_pt2pt.rndv_used ? mr_pt2pt.rndv[index] : NULL;

    if (!r || r->state == MR_RNDV_FREE || r->generation != id >> 32 || r->vc != vc)
        return NULL;
    return r;
}

void mr_rndv_finish(struct mr_rndv *r, enum mr_err error)
{
    struct mr_request *req = r->req;

    if (r->state == MR_RNDV_TAIL) {
        mr_rndv_drop(r);
        mr_request_put(req);
        return;
    }
    if (error && !req->status.error)
        req->status.error = error;
    mr_rndv_drop(r);
    mr_request_complete(req);
}

static struct mr_hdr header(const struct mr_rndv *r, enum mr_packet kind, uint64_t len)
{
    struct mr_hdr hdr = {.kind = kind, .len = len};
    bool sender = r->req->kind == MR_REQ_SEND;

    hdr.sreq = sender ? mr_rndv_id(r) : r->peer_id;
    hdr.rreq = sender ? r->peer_id : mr_rndv_id(r);
    if (kind == MR_PKT_GO && r->shared)
        hdr.flags = MR_FLAG_GET;
    return hdr;
}

int mr_rndv_tell(struct mr_rndv *r, enum mr_packet kind, uint64_t len, const void *payload, size_t payload_len)
{
    struct mr_hdr hdr = header(r, kind, len);

    return mr_vc_send(r->vc, &hdr, payload, payload_len);
}

/* ---- sender ------------------------------------------------------------------------------------------------------ */

/* What the receiver may do by itself; a flag of RTS, or 0. Fills remote, which goes with it. */
static uint8_t open_for_reading(struct mr_rndv *r, unsigned caps, size_t len, struct mr_remote *remote)
{
    enum mr_vc_caps how = caps & MR_VC_GET ? MR_VC_GET : MR_VC_READ;

    if (!(caps & how) || (how == MR_VC_READ && !(caps & mr_pt2pt.reads_if)))
        return 0;
    if (mr_vc_expose(r->vc, mr_plain(r->req->send_buf, r->req->type), len, how, &r->region, remote))
        return 0;
    return how == MR_VC_GET ? MR_FLAG_GET : MR_FLAG_READ;
}

enum mr_err mr_rndv_offer(struct mr_request *req, struct mr_vc *vc, struct mr_hdr *hdr)
{
    bool short_one = hdr->len <= mr_vc_eager_max(vc); /* without credit: one packet of data when it is asked for */
    unsigned caps = req->type->contiguous && !short_one ? mr_vc_caps(vc, hdr->len) : 0;
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
        num += mr_head_divide(r, &remote[1]);
    hdr->rreq = r->head;
    if (caps & MR_VC_PUT)
        hdr->flags |= MR_FLAG_PUT;
    if (caps & MR_VC_DATAGRAMS)
        hdr->flags |= MR_FLAG_DATAGRAMS;
    mr_stat_add(MR_STAT_RNDV_SENT, 1);
    mr_stat_add(MR_STAT_NO_CREDIT, short_one);
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
    struct mr_hdr hdr = header(r, MR_PKT_DATA, r->done);

    hdr.flags = MR_VC_FLAG_BULK;
    if (req->type->contiguous)
        return mr_vc_send(r->vc, &hdr, (const char *)mr_plain(req->send_buf, req->type) + r->done, len);
    return mr_vc_send_made(r->vc, &hdr, len, mr_pt2pt.scratch, mr_holes_pack,
                           &(struct mr_holes){req->send_buf, req->count, req->type, r->done});
}

/* Small pieces, so that both sides copy at the same time; larger ones of a large message cost less. */
static size_t piece_of(const struct mr_rndv *r)
{
    size_t least = mr_vc_eager_max(r->vc), most = mr_vc_packet_max(r->vc), piece = r->total / PIECES;

    piece = piece < least ? least : piece & ~(size_t)63;
    piece = piece > most ? most : piece;
    return piece < MR_SCRATCH ? piece : MR_SCRATCH;
}

static int push_some(struct mr_rndv *r)
{
    size_t piece = piece_of(r);
    int n = 0;

    while (r->done < r->total && r->done - r->told < PUSH_WINDOW * piece &&
           !(mr_vc_all_waiting && mr_vc_waiting(r->vc))) {
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
        deactivate(r);
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
    activate(r);
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

/* Have the sender push the data in packets. */
static void ask_for_data(struct mr_rndv *r, enum mr_rndv_state state)
{
    r->state = state;
    r->shared = state == MR_RNDV_SHARING;
    r->done = r->told = r->head;
    r->tail = r->total;
    if (mr_rndv_tell(r, MR_PKT_GO, r->total, NULL, 0))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    else if (r->total <= r->done && !r->head_left)
        mr_rndv_finish(r, MR_SUCCESS);
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
        deactivate(r);
        ask_for_data(r, MR_RNDV_DRAINING);
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
        deactivate(r);
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

static bool expose_and_clear(struct mr_rndv *r, enum mr_vc_caps how)
{
    struct mr_request *req = r->req;

    if (mr_vc_expose(r->vc, mr_plain(req->recv_buf, req->type), r->total, how, &r->region, &r->remote))
        return false;
    mr_vc_expect(r->region, mr_rndv_id(r));
    r->state = MR_RNDV_LANDING;
    if (mr_rndv_tell(r, MR_PKT_CTS, r->total, &r->remote, sizeof(r->remote)))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    return true;
}

/* The sender can write, or send datagrams, into memory that is exposed for that; so can be done here, too. */
static bool put_all(struct mr_rndv *r, const struct mr_hdr *hdr)
{
    unsigned caps;

    if (!(hdr->flags & (MR_FLAG_PUT | MR_FLAG_DATAGRAMS)) || !r->req->type->contiguous || !r->total)
        return false;
    caps = mr_vc_caps(r->vc, r->total);
    if (hdr->flags & MR_FLAG_PUT && caps & MR_VC_PUT && expose_and_clear(r, MR_VC_PUT))
        return true;
    return hdr->flags & MR_FLAG_DATAGRAMS && caps & MR_VC_DATAGRAMS && expose_and_clear(r, MR_VC_DATAGRAMS);
}

/* With a core for each rank, and another rank to share with. */
static bool sharing_pays(struct mr_vc *vc)
{
    return !mr_shm_oversubscribed() && mr_vc_world_rank(vc) != mr_launch_info()->rank;
}

/* The first that sender, channel and both buffers can do. */
static void choose(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (hdr->flags & MR_FLAG_GET && len == sizeof(r->remote) && !mr_pt2pt.get_refused) {
        memcpy(&r->remote, payload, len);
        activate(r);
        if (r->total && sharing_pays(r->vc))
            ask_for_data(r, MR_RNDV_SHARING);
        else
            get_some(r);
        return;
    }
    if (mr_read_begin(r, hdr, payload, len))
        return;
    if (put_all(r, hdr))
        return;
    ask_for_data(r, MR_RNDV_DRAINING);
}

void mr_rndv_accept(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_rndv *r = mr_rndv_new(req, vc, MR_RNDV_GETTING);
    size_t come;

    if (!r) {
        if (hdr->rreq)
            mr_head_forget(vc, hdr);
        req->status.error = MR_ERR_NO_MEM;
        mr_request_complete(req);
        return;
    }
    r->peer_id = hdr->sreq;
    r->total = req->status.bytes;
    come = hdr->rreq ? mr_head_meet(r, hdr) : 0;
    choose(r, hdr, payload, len);
    if (come) /* copied while the channel reads; it is not over without that */
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
void mr_rndv_cancel(struct mr_rndv *r)
{
    struct mr_hdr hdr = header(r, MR_PKT_CANCEL, 0);

    if ((r->state != MR_RNDV_OFFERED && r->state != MR_RNDV_ACK) || r->cancelling)
        return;
    r->cancelling = true;
    hdr.rank = r->req->comm->rank;
    hdr.tag = r->req->tag;
    hdr.ctx = r->req->ctx;
    mr_vc_send(r->vc, &hdr, NULL, 0); /* if that fails the peer has, and the send ends with that */
}

void mr_rndv_recall(struct mr_request *req, struct mr_vc *vc)
{
    struct mr_rndv *r = mr_vc_lost(vc) ? NULL : mr_rndv_new(req, vc, MR_RNDV_ACK);

    if (!r)
        return;
    r->peer_id = req->eager_id;
    req->complete = false;
    req->refs++;
    mr_rndv_cancel(r);
}

static void on_cancel(struct mr_vc *vc, const struct mr_hdr *hdr)
{
    bool eager = hdr->rreq != 0;
    bool back = mr_recv_take_back(vc, hdr, eager ? hdr->rreq : hdr->sreq, eager);
    struct mr_hdr answer = {.kind = back ? MR_PKT_CANCELLED : MR_PKT_ACK, .sreq = hdr->sreq};

    if (back || eager)
        mr_vc_send(vc, &answer, NULL, 0);
}

static void on_cancelled(struct mr_rndv *r)
{
    if (!r->cancelling || (r->state != MR_RNDV_OFFERED && r->state != MR_RNDV_ACK))
        return;
    r->req->status.cancelled = true;
    mr_rndv_finish(r, MR_SUCCESS);
}

void mr_rndv_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    bool to_receiver = hdr->kind == MR_PKT_DATA || hdr->kind == MR_PKT_FAIL;
    struct mr_rndv *r;

    if (hdr->kind == MR_PKT_CANCEL) {
        on_cancel(vc, hdr);
        return;
    }
    if (hdr->kind == MR_PKT_GRANT) {
        mr_flow_granted(vc, hdr->len);
        return;
    }
    if (hdr->kind == MR_PKT_HEAD) {
        mr_head_packet(vc, hdr, payload, len);
        return;
    }
    r = mr_rndv_find(vc, to_receiver ? hdr->rreq : hdr->sreq);
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
        if (r->state == MR_RNDV_OFFERED || r->state == MR_RNDV_PUSHING || r->state == MR_RNDV_PUSHED ||
            r->state == MR_RNDV_TAIL)
            mr_rndv_finish(r, hdr->len ? MR_ERR_OTHER : MR_SUCCESS);
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
    case MR_PKT_CANCELLED:
        on_cancelled(r);
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
