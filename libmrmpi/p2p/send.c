/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends. A short message is sent at once and its send is complete at the return; a long message is offered to the
 * receiver (rndv.c), and so is a short message without credit (flow.h).
 */
#include <errno.h>
#include <string.h>

#include "libmrmpi/p2p/internal.h"
#include "libmrmpi/p2p/payload/zsend.h"

static __attribute__((noinline)) enum mr_err send_error(struct mr_vc *vc, int error)
{
    if (error == -EIDRM)
        return mr_fail(MR_ERR_REVOKED, "the communicator has been revoked");
    mr_error_detail("send to rank %d of the world: %s", mr_vc_world_rank(vc), strerror(-error));
    return error == -ENOMEM ? MR_ERR_NO_MEM : MR_ERR_PROC_FAILED;
}

/*
 * One packet with the whole message, or a few (parts.c). owner: they may be posted from the program's memory; NULL: all
 * is copied. Inlined in each caller, so the header is made in place.
 */
static inline __attribute__((always_inline)) enum mr_err send_eager(struct mr_vc *vc, struct mr_hdr *hdr,
                                                                    const void *buf, size_t count, struct mr_type *type,
                                                                    struct mr_request *owner)
{
    struct mr_payload payload = {vc, buf, count, type, owner};
    int err;

    hdr->kind = MR_PKT_EAGER;
    mr_stat_add(MR_STAT_EAGER_SENT, 1);
    if (unlikely(hdr->len > MR_EAGER_LEAST && hdr->len > mr_vc_part_max(vc)))
        err = mr_parts_send(&payload, hdr);
    else
        err = mr_payload_send(&payload, hdr, 0, hdr->len);
    if (unlikely(err))
        return send_error(vc, err);
    mr_credit_spend(&mr_flow_of(vc)->credit, hdr->len);
    return MR_SUCCESS;
}

static inline struct mr_hdr header(struct mr_comm *comm, uint32_t ctx, int tag, size_t bytes)
{
    return (struct mr_hdr){.rank = comm->rank, .tag = tag, .ctx = ctx, .len = bytes};
}

static inline bool goes_eagerly(struct mr_vc *vc, size_t bytes)
{
    /* the first test alone for known peers */
    return (bytes <= vc->eager_most || bytes <= mr_vc_eager_most(vc)) && bytes <= MR_SCRATCH &&
           mr_flow_allows(vc, bytes);
}

/* The channel to the peer, if it exists and the message may take the fast path; NULL: the general path decides. */
static inline struct mr_vc *fast_path_vc(const struct mr_comm *comm, int dest, enum mr_send_mode mode)
{
    return dest == MR_PROC_NULL || mode == MR_SEND_SYNCHRONOUS ? NULL
                                                               : mr_vc_known_peer(mr_comm_world_rank(comm, dest));
}

/* True if the message is sent at once and whole, if the channel can: all conditions against this are checked here. */
static inline bool goes_short(struct mr_vc *vc, size_t bytes, const struct mr_type *type)
{
    return bytes < vc->fast_below && !mr_channel_waiting && type->contiguous &&
           mr_credit_allows(&mr_flow_of(vc)->credit, bytes, mr_pt2pt.window);
}

/* After vc->ops->send_short. */
static inline void count_short(struct mr_vc *vc, size_t bytes)
{
    vc->next_seq++;
    mr_credit_spend(&mr_flow_of(vc)->credit, bytes);
    mr_stat_add(MR_STAT_EAGER_SENT, 1);
}

/* An ACK of the receiver completes the send. */
static __attribute__((noinline)) enum mr_err send_synchronous(struct mr_vc *vc, struct mr_hdr *hdr,
                                                              struct mr_request *req)
{
    struct mr_rndv *r = mr_rndv_new(req, vc, MR_RNDV_ACK);
    enum mr_err err;

    if (!r)
        return MR_ERR_NO_MEM;
    hdr->flags = MR_FLAG_ACK;
    hdr->sreq = mr_rndv_id(r);
    err = send_eager(vc, hdr, req->send_buf, req->count, req->type, NULL);
    if (err)
        mr_rndv_drop(r);
    return err;
}

/* In place of a message: the error that prevents it. */
static enum mr_err send_poison(struct mr_vc *vc, struct mr_hdr *hdr, struct mr_request *req)
{
    hdr->flags = MR_FLAG_POISON;
    hdr->sreq = req->eager_id;
    req->eager_id = 0;
    req->status.error = send_eager(vc, hdr, NULL, 0, mr_type_byte, NULL);
    mr_request_complete(req);
    return MR_SUCCESS;
}

/* Allows a cancel: the next packet is the message, or its first. */
static inline void number_eager(struct mr_request *req, const struct mr_vc *vc)
{
    req->eager_id = mr_eager_id(mr_vc_packets(vc));
}

/* A message sent at once, whose send is complete then, or when it has left the program's memory. */
static enum mr_err send_now(struct mr_request *req, struct mr_vc *vc, struct mr_hdr *hdr)
{
    enum mr_err err;

    number_eager(req, vc);
    err = send_eager(vc, hdr, req->send_buf, req->count, req->type, req->protocol ? req : NULL);
    if (!err)
        mr_request_complete(req);
    return err;
}

static inline bool outruns_copies(struct mr_vc *vc, size_t bytes)
{
    unsigned caps = mr_vc_caps(vc, bytes);

    return caps & MR_VC_OUTRUNS && caps & mr_rndvs.reads_if;
}

/*
 * Of a nonblocking send, whose message is sent eagerly otherwise. Decides whether it may be sent zero-copy then, and
 * counts it, if it is the program's and outlasts the call.
 */
static bool is_better_read(struct mr_request *req, struct mr_vc *vc, size_t bytes)
{
    bool can_offer;

    if (bytes < MR_ZSEND_LEAST || req->waited || !req->type->contiguous)
        return false;
    can_offer = bytes >= mr_model.offer_at && outruns_copies(vc, bytes);
    if (!can_offer && !vc->zsends)
        return false;
    req->in_burst = true;
    req->protocol = mr_burst_join(&mr_pt2pt.burst, mr_data_at(req->send_buf, req->type), bytes, can_offer);
    if (req->protocol < MR_BURST_OFFER && !vc->zsends)
        req->protocol = MR_BURST_COPY;
    return req->protocol == MR_BURST_OFFER;
}

/*
 * For a message in new memory: its length weighed by the time of its copy, and by other messages beside it (alone.h).
 */
static size_t weighed_length(const struct mr_request *req, struct mr_vc *vc, size_t bytes)
{
    if (!(mr_vc_caps(vc, bytes) & MR_VC_ONE_OUTRUNS))
        return bytes;
    return mr_alone_weigh(&mr_pt2pt.alone, bytes, mr_burst_copies_as(&mr_pt2pt.burst, bytes), mr_rndvs.pending,
                          mr_rndvs.large_received, req->waited);
}

/*
 * Of a message not sent eagerly. It is copied, when requested, while its buffer is not worth registering; also if it
 * only lacked credit, as it would have been copied then.
 */
static bool goes_in_place(const struct mr_request *req, struct mr_vc *vc, size_t bytes)
{
    const void *buf = mr_data_at(req->send_buf, req->type);

    if (!req->type->contiguous || bytes <= mr_vc_eager_max(vc))
        return false;
    if (bytes > mr_vc_eager_most(vc))
        return !mr_net_reaches(vc) || !mr_net_copies(vc, buf, weighed_length(req, vc, bytes));
    return mr_burst_alone(&mr_pt2pt.burst, buf, bytes) != MR_BURST_COPY;
}

/*
 * Of a message for eager, with others: its receiver is likely to be ready, or will be soon, and then there is no copy.
 * Otherwise the message is sent zero-copy, if registered (mr_pt2pt_keep).
 */
static bool awaits_rtr(struct mr_request *req, struct mr_vc *vc, size_t bytes)
{
    if (!mr_pt2pt.burst.is_registered(mr_data_at(req->send_buf, req->type), bytes))
        return false;
    if (mr_rtr_comes(vc) && mr_vc_caps(vc, bytes) & MR_VC_PUT)
        return true;
    if (vc->zsends)
        req->protocol = MR_BURST_ZSEND;
    return false;
}

/* Of a send that waits for its receiver. */
static enum mr_err offered(enum mr_err err, struct mr_request *req, struct mr_vc *vc)
{
    if (unlikely(mr_flow_of(vc)->parts || req->comm->fault == MR_ERR_REVOKED) && !err && req->proto)
        mr_rndv_in_vain(req->proto);
    return err;
}

static enum mr_err send_request(struct mr_request *req, struct mr_vc *vc)
{
    size_t bytes = req->count * req->type->size;
    struct mr_hdr hdr = header(req->comm, req->ctx, req->tag, bytes);

    if (unlikely(req->mode == MR_SEND_POISON))
        return send_poison(vc, &hdr, req);
    if (!goes_eagerly(vc, bytes))
        return offered(mr_rndv_offer(req, vc, &hdr, goes_in_place(req, vc, bytes)), req, vc);
    if (req->crowded ? awaits_rtr(req, vc, bytes) : is_better_read(req, vc, bytes))
        return offered(mr_rndv_offer(req, vc, &hdr, true), req, vc);
    if (req->mode == MR_SEND_SYNCHRONOUS)
        return offered(send_synchronous(vc, &hdr, req), req, vc);
    return send_now(req, vc, &hdr);
}

/* Its turn has come: it is under way, or complete with an error. */
static void send_held(struct mr_request *req, struct mr_vc *vc)
{
    enum mr_err err = send_request(req, vc);

    if (!err)
        return;
    req->status.error = err;
    mr_request_complete(req);
}

int mr_send_progress(void)
{
    return mr_flow_release(send_held);
}

static enum mr_err send_or_hold(struct mr_request *req)
{
    struct mr_vc *vc = mr_vc_get_peer(mr_comm_world_rank(req->comm, req->peer));

    if (likely(!mr_channel_waiting) || !mr_flow_must_hold(vc))
        return send_request(req, vc);
    mr_flow_hold(vc, req);
    return MR_SUCCESS;
}

static inline __attribute__((always_inline)) void fill_send(struct mr_request *req, const void *buf, size_t count,
                                                            int dest, int tag, uint32_t ctx, enum mr_send_mode mode)
{
    req->send_buf = buf;
    req->count = count;
    req->peer = dest;
    req->tag = tag;
    req->ctx = ctx;
    req->mode = mode;
}

static struct mr_request *make_send(const void *buf, size_t count, struct mr_type *type, int dest, int tag,
                                    struct mr_comm *comm, uint32_t ctx, enum mr_send_mode mode)
{
    struct mr_request *req = mr_request_start(MR_REQ_SEND, comm, type);

    if (req)
        fill_send(req, buf, count, dest, tag, ctx, mode);
    return req;
}

/* A send whose first packets are still posted from its memory ends when they have left. */
static enum mr_err drop_failed(struct mr_request *req, enum mr_err err)
{
    req->refs = 1;
    req->ended = true;
    if (!req->zsends)
        mr_request_put(req);
    return err;
}

/* The program's, with nothing sent yet. */
static __attribute__((noinline)) enum mr_err start_persistent_send(struct mr_request *req, struct mr_request **out)
{
    enum mr_err err = MR_SUCCESS;

    if (req->peer != MR_PROC_NULL)
        err = send_or_hold(req);
    else if (!(err = mr_no_peer_fate(req->comm, req->ctx)))
        mr_request_complete(req);
    *out = err ? NULL : req;
    return err ? drop_failed(req, err) : MR_SUCCESS;
}

static __attribute__((noinline)) enum mr_err isend_any(const void *buf, size_t count, struct mr_type *type, int dest,
                                                       int tag, struct mr_comm *comm, uint32_t ctx,
                                                       enum mr_send_mode mode, struct mr_request **out)
{
    struct mr_request *req = make_send(buf, count, type, dest, tag, comm, ctx, mode);

    *out = NULL;
    return req ? start_persistent_send(req, out) : MR_ERR_NO_MEM;
}

enum mr_err mr_isend(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                     uint32_t ctx, enum mr_send_mode mode, struct mr_request **out)
{
    struct mr_vc *vc = fast_path_vc(comm, dest, mode);
    size_t bytes = count * type->size;
    struct mr_request *req;

    if (unlikely(!vc || !goes_short(vc, bytes, type) || !mr_pt2pt.free_requests))
        return isend_any(buf, count, type, dest, tag, comm, ctx, mode, out);
    req = mr_request_take(MR_REQ_SEND, comm, 1);
    req->type = mr_type_get(type);
    fill_send(req, buf, count, dest, tag, ctx, mode);
    number_eager(req, vc);
    *out = req;
    if (unlikely(!vc->ops->send_short(vc, mr_data_at(buf, type), bytes, comm->rank, tag, ctx))) {
        req->refs = 2; /* in flight */
        return start_persistent_send(req, out);
    }
    count_short(vc, bytes);
    req->complete = true; /* not waited for yet */
    return MR_SUCCESS;
}

enum mr_err mr_isend_nth(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                         uint32_t ctx, uint8_t nth, size_t all, struct mr_request **out)
{
    struct mr_request *req = make_send(buf, count, type, dest, tag, comm, ctx, MR_SEND_STANDARD);
    size_t bytes = count * type->size;

    *out = NULL;
    if (!req)
        return MR_ERR_NO_MEM;
    req->nth = nth;
    req->crowded = all && type->contiguous && mr_burst_delays(&mr_pt2pt.burst, mr_data_at(buf, type), bytes, all);
    return start_persistent_send(req, out);
}

bool mr_isend_now(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                  uint32_t ctx, uint64_t *id)
{
    struct mr_vc *vc = fast_path_vc(comm, dest, MR_SEND_STANDARD);
    size_t bytes = count * type->size;

    if (unlikely(!vc || !goes_short(vc, bytes, type)))
        return false;
    *id = mr_eager_id(mr_vc_packets(vc));
    if (unlikely(!vc->ops->send_short(vc, mr_data_at(buf, type), bytes, comm->rank, tag, ctx)))
        return false;
    count_short(vc, bytes);
    return true;
}

enum mr_err mr_isend_poison(enum mr_err why, int dest, int tag, struct mr_comm *comm, uint32_t ctx,
                            struct mr_request **out)
{
    struct mr_request *req = make_send(NULL, 0, mr_type_byte, dest, tag, comm, ctx, MR_SEND_POISON);

    *out = req;
    if (!req)
        return MR_ERR_NO_MEM;
    req->eager_id = why;
    return send_or_hold(req);
}

/* A blocking send is where a program that sends faster than its peer receives is held up. */
static bool relieved(void *vc)
{
    return !mr_flow_crowded(vc);
}

static void __attribute__((noinline)) wait_for_room(struct mr_vc *vc)
{
    if (relieved(vc))
        return;
    mr_stat_add(MR_STAT_SENDS_STALLED, 1);
    mr_progress_until(relieved, vc);
}

static __attribute__((noinline)) enum mr_err send_any(const void *buf, size_t count, struct mr_type *type, int dest,
                                                      int tag, struct mr_comm *comm, uint32_t ctx,
                                                      enum mr_send_mode mode)
{
    size_t bytes = count * type->size;
    enum mr_send_protocol protocol = MR_BURST_COPY;
    bool eager;
    struct mr_request *req;
    struct mr_vc *vc;
    enum mr_err err;

    if (dest == MR_PROC_NULL)
        return mr_no_peer_fate(comm, ctx);
    vc = mr_vc_get_peer(mr_comm_world_rank(comm, dest));
    eager = mode != MR_SEND_SYNCHRONOUS && goes_eagerly(vc, bytes) && !mr_flow_of(vc)->held;
    if (likely(eager && !(protocol = mr_zsend_protocol(vc, buf, bytes, type)))) {
        struct mr_hdr hdr = header(comm, ctx, tag, bytes);

        err = send_eager(vc, &hdr, buf, count, type, NULL);
        if (unlikely(mr_channel_waiting != 0))
            wait_for_room(vc);
        return err;
    }
    req = make_send(buf, count, type, dest, tag, comm, ctx, mode);
    if (!req)
        return MR_ERR_NO_MEM;
    req->waited = true;
    req->protocol = protocol;
    err = send_or_hold(req);
    if (err)
        return drop_failed(req, err);
    err = mr_wait(req);
    mr_request_put(req);
    return err;
}

enum mr_err mr_send(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                    uint32_t ctx, enum mr_send_mode mode)
{
    struct mr_vc *vc = fast_path_vc(comm, dest, mode);
    size_t bytes = count * type->size;

    if (likely(vc && goes_short(vc, bytes, type) &&
               vc->ops->send_short(vc, mr_data_at(buf, type), bytes, comm->rank, tag, ctx))) {
        count_short(vc, bytes);
        return MR_SUCCESS;
    }
    return send_any(buf, count, type, dest, tag, comm, ctx, mode);
}

bool mr_send_leaves(const struct mr_request *req)
{
    return req->held_by || (req->proto ? mr_rndv_leaves(req->proto) : req->zsends != 0);
}

bool mr_sends_wait(void)
{
    return mr_channel_waiting;
}
