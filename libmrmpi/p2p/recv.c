/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives: posting, meeting messages, and keeping messages without a receive. */
#include "libmrmpi/base/copy.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/p2p/internal.h"
#include "libmrmpi/p2p/progress/progress.h"

/* ---- meeting ----------------------------------------------------------------------------------------------------- */

/* If it cannot be sent, the channel has failed and its upcall ends the peer's requests. */
static __attribute__((noinline)) void acknowledge(struct mr_vc *vc, const struct mr_hdr *hdr)
{
    struct mr_hdr ack = {.kind = MR_PKT_ACK, .sreq = hdr->sreq};

    mr_vc_send(vc, &ack, NULL, 0);
}

static __attribute__((noinline)) void take_poison(struct mr_request *req, const struct mr_hdr *hdr)
{
    req->status.error = (enum mr_err)hdr->sreq;
    mr_error_detail("rank %d has met an error in this operation: %s", hdr->rank, mr_err_text(req->status.error));
}

/* An eager message of so many bytes is in this buffer now. */
static inline void filled(struct mr_vc *vc, void *buf, size_t len)
{
    mr_flow_consume(vc, len);
    if (unlikely(len >= MR_MODEL_PAGE)) /* no threshold is less */
        mr_burst_filled(&mr_pt2pt.burst, buf, len);
}

static inline void eager_taken(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr)
{
    filled(vc, req->recv_buf, hdr->len);
    if (unlikely(hdr->flags & (MR_FLAG_POISON | MR_FLAG_ACK))) {
        if (hdr->flags & MR_FLAG_POISON)
            take_poison(req, hdr);
        if (hdr->flags & MR_FLAG_ACK)
            acknowledge(vc, hdr);
    }
    mr_request_end(req);
}

void mr_recv_fill(struct mr_request *req, size_t at, const void *payload, size_t len)
{
    size_t wanted = at < req->status.bytes ? req->status.bytes - at : 0;

    if (wanted > len)
        wanted = len;
    if (req->type->contiguous && wanted)
        mr_copy_in((char *)mr_data_at(req->recv_buf, req->type) + at, payload, wanted);
    else if (wanted)
        mr_type_unpack(req->recv_buf, req->count, req->type, at, payload, wanted);
}

void mr_recv_taken(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr)
{
    eager_taken(req, vc, hdr);
}

static inline void take_eager(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload)
{
    size_t bytes = req->status.bytes;

    if (likely(req->type->contiguous)) {
        if (bytes)
            mr_copy_in(mr_data_at(req->recv_buf, req->type), payload, bytes);
    } else if (bytes) {
        mr_type_unpack(req->recv_buf, req->count, req->type, 0, payload, bytes);
    }
    eager_taken(req, vc, hdr);
}

/* True if this number of bytes ends with a piece of an element, which proves that the types do not match. */
static __attribute__((noinline)) bool has_piece(const struct mr_type *type, size_t bytes)
{
    size_t grain = mr_config.check_args ? mr_type_grain(type) : 0;

    return grain > 1 && bytes % grain;
}

/*
 * The message has another length than the receive's buffer: it may be too long, or end with a piece of an element. Or
 * the receive was announced, perhaps for no such message.
 */
static void __attribute__((noinline)) odd_length(struct mr_request *req, const struct mr_hdr *hdr, size_t room)
{
    if (req->proto && (hdr->kind == MR_PKT_EAGER || hdr->len != room))
        mr_rtr_void(req);
    if (hdr->len > room && req->given_up) {
        req->status.bytes = room;
        return;
    }
    if (hdr->len > room) {
        req->status.bytes = room;
        req->status.error = MR_ERR_TRUNCATE;
        mr_error_detail("message of %llu bytes from rank %d, tag %d, but room for %zu only",
                        (unsigned long long)hdr->len, hdr->rank, hdr->tag, room);
        return;
    }
    if (!has_piece(req->type, hdr->len))
        return;
    req->status.error = MR_ERR_TYPE;
    mr_error_detail("message of %llu bytes from rank %d, tag %d, for a type whose elements have %zu",
                    (unsigned long long)hdr->len, hdr->rank, hdr->tag, mr_type_grain(req->type));
}

void mr_recv_meet(struct mr_request *req, const struct mr_hdr *hdr)
{
    size_t room = req->count * req->type->size;

    req->status.source = hdr->rank;
    req->status.tag = hdr->tag;
    req->status.bytes = hdr->len;
    if ((hdr->len ^ room) | (uintptr_t)req->proto)
        odd_length(req, hdr, room);
}

void mr_recv_match(struct mr_request *req, struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    mr_recv_meet(req, hdr);
    if (hdr->kind == MR_PKT_EAGER)
        take_eager(req, vc, hdr, payload);
    else
        mr_rndv_accept(req, vc, hdr, payload, len);
}

/* A kept message, in its place. */
static void match_kept(struct mr_request *req, struct mr_message *m)
{
    size_t at = 0;

    if (!m->retained || m->retained->len == m->len) {
        mr_recv_match(req, m->vc, &m->hdr, m->retained ? m->retained->payload : m->own, m->len);
        mr_message_free(m);
        return;
    }
    mr_recv_meet(req, &m->hdr); /* eager, in parts */
    for (const struct mr_retained *retained = m->retained; retained; retained = retained->next) {
        mr_recv_fill(req, at, retained->payload, retained->len);
        at += retained->len;
    }
    if (at < m->len)
        mr_recv_fill(req, at, m->own + at, m->len - at);
    mr_recv_taken(req, m->vc, &m->hdr);
    mr_message_free(m);
}

void mr_recv_arrived(struct mr_message *m)
{
    struct mr_match_entry *e = mr_match_take(&mr_pt2pt.posted, m->hdr.ctx, m->hdr.rank, m->hdr.tag);

    if (e)
        match_kept(e->owner, m);
    else
        mr_message_insert(m);
}

/* The peer is lost, or its program has called MPI_Finalize; all its earlier messages have come. */
static bool sends_no_more(int world_rank, uint32_t ctx)
{
    struct mr_vc *vc = mr_vc_known_peer(world_rank);

    return vc && (mr_vc_lost(vc) || (mr_flow_of(vc)->parts && ctx != MR_CTX_FINALIZE));
}

/*
 * The process can send to itself until it blocks, or from another thread. So a receive from any source ends with an
 * error only while the process waits for it, and nothing else could end the wait; a test never ends the receive.
 */
static bool may_hear_itself(bool blocked)
{
    return !blocked || mr_threaded || !mr_channel_self.drained();
}

static bool anybody_left(struct mr_comm *comm, uint32_t ctx, bool blocked)
{
    for (int r = 0; r < comm->num_peers; r++) {
        bool itself = r == comm->rank && !mr_comm_is_inter(comm);

        if ((!itself || may_hear_itself(blocked)) && !sends_no_more(mr_comm_world_rank(comm, r), ctx))
            return true;
    }
    return false;
}

static bool never_comes(struct mr_comm *comm, int src, uint32_t ctx, bool blocked, bool waited)
{
    if (src == MR_ANY_SOURCE)
        return !anybody_left(comm, ctx, blocked) || (waited && mr_config.recover && mr_comm_unacked(comm));
    return src >= 0 && sends_no_more(mr_comm_world_rank(comm, src), ctx);
}

/* Earlier messages of a lost peer can be received; no more will come. From any source: until the last peer is lost. */
enum mr_err mr_recv_fate(struct mr_comm *comm, int src, uint32_t ctx, bool blocked, bool waited)
{
    if (!mr_pt2pt.ended)
        return MR_SUCCESS;
    if (comm->fault == MR_ERR_REVOKED && ctx != MR_CTX_FINALIZE)
        return MR_ERR_REVOKED;
    return never_comes(comm, src, ctx, blocked, waited) ? MR_ERR_PROC_FAILED : MR_SUCCESS;
}

/* ---- taking ------------------------------------------------------------------------------------------------------ */

/* Messages taken out of rings in a row before a poll of everything else. */
#define TAKEN_MOST 16
/*
 * A blocking receive polls its sender's ring this often, in less than a microsecond, before it is posted, unless a
 * message cannot be taken so.
 */
#define TAKE_POLLS 64

/*
 * The next message of a rank of this node may be taken directly out of its ring, if it is the wanted message, as long
 * as no earlier message is kept. The caller must check whether a posted receive is meant. Returns its sender's channel,
 * or NULL.
 */
static inline struct mr_vc *taken_from(const struct mr_type *type, int src, const struct mr_comm *comm)
{
    struct mr_vc *vc;

    if (!mr_match_empty(&mr_pt2pt.unexpected) || src < 0 || !type->contiguous || ++mr_pt2pt.num_taken % TAKEN_MOST == 0)
        return NULL;
    vc = mr_vc_known_peer(mr_comm_world_rank(comm, src));
    return vc && mr_shm_reaches(vc) ? vc : NULL;
}

/*
 * Messages that a receive would take go to posted receives that take them, too: a program that posts many receives
 * while the messages come has the first of them queued, and the others take theirs without a request. This check reads
 * a line that the sender is about to write, so some receives pass between two checks, and messages of more than a line
 * are left to waiting receives. False: more messages for the posted receives are to come.
 */
#define SERVED_MOST  40 /* bytes */
#define SERVED_EVERY 4
static __attribute__((noinline)) bool serve_posted(struct mr_vc *vc, int src, int tag, uint32_t ctx)
{
    const void *payload;
    struct mr_hdr hdr;

    for (int i = 0; i < TAKEN_MOST; i++) {
        struct mr_match_entry *e;

        payload = mr_shm_peek(vc, src, tag, ctx, &hdr);
        if (!payload || payload == MR_PEEK_OTHER)
            break;
        e = mr_match_take(&mr_pt2pt.posted, ctx, src, hdr.tag);
        if (!e)
            return true;
        mr_flow_note(vc, hdr.note);
        mr_recv_match(e->owner, vc, &hdr, payload, hdr.len);
        mr_shm_taken(vc);
        if (mr_match_empty(&mr_pt2pt.posted))
            return true;
    }
    return false;
}

/* NOTHING has come, or something OTHER than a message that only needs to be copied: then nothing has happened. */
enum take { NOTHING, OTHER, TAKEN };
static inline enum take take_next_packet(struct mr_vc *vc, void *buf, size_t room, const struct mr_type *type, int src,
                                         int tag, uint32_t ctx, struct mr_status *status)
{
    const void *payload;
    struct mr_hdr hdr;

    payload = mr_shm_peek(vc, src, tag, ctx, &hdr);
    if (!payload)
        return NOTHING;
    if (payload == MR_PEEK_OTHER || (hdr.len != room && (hdr.len > room || has_piece(type, hdr.len))))
        return OTHER;
    mr_flow_note(vc, hdr.note);
    if (hdr.len)
        mr_copy_in(mr_data_at(buf, type), payload, hdr.len);
    filled(vc, buf, hdr.len);
    *status = (struct mr_status){.source = src, .tag = hdr.tag, .bytes = hdr.len};
    mr_shm_taken(vc);
    return TAKEN;
}

/*
 * The receive takes a message that has come, or is posted. 0 or MR_ERR_NO_MEM. In both callers: too much for registers.
 */
static inline __attribute__((always_inline)) enum mr_err post_receive(struct mr_request *req, void *buf, size_t count,
                                                                      int src, int tag, struct mr_comm *comm,
                                                                      uint32_t ctx, bool waited)
{
    struct mr_message *m;

    req->recv_buf = buf;
    req->count = count;
    req->peer = src;
    req->tag = tag;
    req->ctx = ctx;
    if (src == MR_PROC_NULL) {
        req->status.error = mr_no_peer_fate(comm, ctx);
        mr_request_complete(req);
        return MR_SUCCESS;
    }
    m = mr_match_empty(&mr_pt2pt.unexpected) ? NULL : mr_message_find(src, tag, ctx);
    if (m && likely(comm->fault != MR_ERR_REVOKED)) {
        mr_match_remove_quad(&mr_pt2pt.unexpected, &m->match);
        match_kept(req, m);
        return MR_SUCCESS;
    }
    if (unlikely(mr_pt2pt.ended != NULL) && (req->status.error = mr_recv_fate(comm, src, ctx, false, waited))) {
        mr_request_complete(req);
        return MR_SUCCESS;
    }
    req->match.owner = req;
    return mr_match_insert(&mr_pt2pt.posted, &req->match, ctx, src, tag) ? MR_ERR_NO_MEM : MR_SUCCESS;
}

enum mr_err mr_irecv(void *buf, size_t count, struct mr_type *type, int src, int tag, struct mr_comm *comm,
                     uint32_t ctx, struct mr_request **out)
{
    struct mr_request *req = mr_request_start(MR_REQ_RECV, comm, type);

    *out = req;
    if (!req)
        return MR_ERR_NO_MEM;
    if (likely(!post_receive(req, buf, count, src, tag, comm, ctx, false)))
        return MR_SUCCESS;
    req->refs = 1;
    mr_request_put(req);
    *out = NULL;
    return MR_ERR_NO_MEM;
}

/* The request lives here: no other code knows it once complete, and the caller holds communicator and type. */
enum mr_err mr_recv(void *buf, size_t count, struct mr_type *type, int src, int tag, struct mr_comm *comm, uint32_t ctx,
                    struct mr_status *status)
{
    struct mr_vc *vc = mr_match_empty(&mr_pt2pt.posted) ? taken_from(type, src, comm) : NULL;
    struct mr_request req;
    struct mr_status taken;
    enum mr_err err;

    for (int i = 0; vc && i < TAKE_POLLS; i++) {
        enum take got = take_next_packet(vc, buf, count * type->size, type, src, tag, ctx, status ? status : &taken);

        if (got == TAKEN)
            return MR_SUCCESS;
        if (got == OTHER)
            break;
    }
    mr_request_prepare(&req, MR_REQ_RECV, comm);
    req.refs = 2; /* never freed: the protocol drops one */
    req.type = type;
    err = post_receive(&req, buf, count, src, tag, comm, ctx, true);
    if (err)
        return err;
    err = mr_wait_here(&req);
    if (status)
        *status = req.status;
    return err;
}

bool mr_irecv_now(void *buf, size_t count, struct mr_type *type, int src, int tag, struct mr_comm *comm, uint32_t ctx,
                  struct mr_status *status)
{
    bool first = mr_match_empty(&mr_pt2pt.posted);
    size_t room = count * type->size;
    struct mr_vc *vc;

    if (!first && room > SERVED_MOST)
        return false;
    vc = taken_from(type, src, comm);
    if (!vc || (!first && (mr_pt2pt.num_taken % SERVED_EVERY || !serve_posted(vc, src, tag, ctx))))
        return false;
    return take_next_packet(vc, buf, room, type, src, tag, ctx, status) == TAKEN;
}

enum mr_err mr_imrecv(void *buf, size_t count, struct mr_type *type, struct mr_message *m, struct mr_request **out)
{
    struct mr_request *req = mr_request_start(MR_REQ_RECV, NULL, type);

    *out = req;
    if (!req)
        return MR_ERR_NO_MEM;
    req->recv_buf = buf;
    req->count = count;
    req->peer = MR_PROC_NULL;
    if (m == mr_message_no_proc) {
        mr_request_complete(req);
        return MR_SUCCESS;
    }
    req->peer = m->hdr.rank;
    req->tag = m->hdr.tag;
    req->ctx = m->hdr.ctx;
    match_kept(req, m);
    return MR_SUCCESS;
}

void mr_recv_announce(struct mr_request *req, uint8_t nth, size_t all)
{
    if (!req->match.queue) /* its message has come */
        return;
    req->nth = nth;
    mr_rtr_announce(req, all);
}

bool mr_pt2pt_keep(struct mr_comm *comm, int peer, const void *buf, size_t len, bool filled)
{
    struct mr_vc *vc = mr_vc_known_peer(mr_comm_world_rank(comm, peer));
    struct mr_region *region;
    struct mr_remote remote;

    if (!vc || !(mr_vc_caps(vc, len) & MR_VC_WRITE_BACK) || !mr_burst_whole(&mr_pt2pt.burst, buf, len, filled))
        return false;
    if (mr_pt2pt.burst.is_registered(buf, len))
        return true;
    if (mr_vc_advertise(vc, (void *)buf, len, filled ? MR_VC_PUT : MR_VC_READ_ONCE, &region, &remote))
        return false;
    mr_vc_withdraw(region);
    return true;
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

void mr_recv_end(struct mr_request *req, enum mr_err err)
{
    if (req->proto) { /* announced */
        mr_rndv_finish(req->proto, err);
        return;
    }
    mr_match_remove(&mr_pt2pt.posted, &req->match);
    req->status.error = err;
    mr_request_complete(req);
}

static void fail_if_never(struct mr_match_entry *e, void *arg)
{
    struct mr_request *req = e->owner;
    /* The program has no handle: it waits in a blocking function. */
    enum mr_err err = mr_recv_fate(req->comm, req->peer, req->ctx, false, !req->handle && !req->given_up);

    if (err)
        mr_recv_end(req, err);
}

void mr_recv_peer_lost(void)
{
    mr_match_each(&mr_pt2pt.posted, fail_if_never, NULL);
}

/* The posted receive of a receive's or a send-receive's request; NULL: none. */
static struct mr_request *posted_receive(struct mr_request *req)
{
    if (req->kind == MR_REQ_SENDRECV && !req->complete)
        req = req->receive;
    return req->kind == MR_REQ_RECV && !req->complete && req->match.queue ? req : NULL;
}

bool mr_never_ends(struct mr_request *req)
{
    struct mr_request *posted = mr_pt2pt.ended ? posted_receive(req) : NULL;

    return posted && mr_recv_fate(posted->comm, posted->peer, posted->ctx, true, !posted->handle);
}

void mr_end_unheard(struct mr_request *req)
{
    mr_recv_end(posted_receive(req), MR_ERR_PROC_FAILED);
}

int mr_recv_end_awaited(void)
{
    struct mr_request *req = mr_threaded ? NULL : mr_progress_awaited;

    if (!req || !mr_never_ends(req))
        return 0;
    mr_end_unheard(req);
    return 1;
}
