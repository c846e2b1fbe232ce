/* SPDX-License-Identifier: BSD-3-Clause */
/* The target: executes the requests of others on this process's part of a window. */
#include <string.h>

#include "libmrmpi/core/core.h"
#include "libmrmpi/rma/internal.h"

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Adjacent regions are one. */
static bool is_attached(const struct mr_win_state *s, uint64_t first, uint64_t end)
{
    size_t i = mr_win_region_at(s, first);

    if (i == s->num_regions || s->region[i].start > first)
        return false;
    while (s->region[i].end < end && i + 1 < s->num_regions && s->region[i + 1].start == s->region[i].end)
        i++;
    return s->region[i].end >= end;
}

bool mr_win_place(const struct mr_win *w, uint64_t addr, int64_t lo, int64_t hi, char **out)
{
    uint64_t first = addr + (uint64_t)lo, end = addr + (uint64_t)hi;
    bool dynamic = w->flavor == MR_WIN_DYNAMIC;

    if (lo > hi || (lo < 0 ? first > addr : first < addr) || end < first)
        return false;
    *out = (char *)(dynamic ? 0 : (uintptr_t)w->base) + addr;
    return dynamic ? is_attached(w->in, first, end) : end <= w->size;
}

/* A dynamic window's pieces may be in several regions. */
static bool are_attached(const struct mr_win *w, uint64_t addr, const struct mr_rma_piece *piece, unsigned num)
{
    char *mem;

    for (unsigned i = 0; i < num; i++)
        for (uint32_t k = 0; k < piece[i].count; k++) {
            int64_t at = piece[i].at + (int64_t)k * piece[i].stride;

            if (!mr_win_place(w, addr, at, at + (int64_t)piece[i].elem, &mem))
                return false;
        }
    return num > 0;
}

bool mr_win_place_pieces(const struct mr_win *w, uint64_t addr, const struct mr_rma_piece *piece, unsigned num,
                         int64_t lo, int64_t hi, char **out)
{
    return mr_win_place(w, addr, lo, hi, out) || (w->flavor == MR_WIN_DYNAMIC && are_attached(w, addr, piece, num));
}

enum mr_err mr_rma_apply(struct mr_rma_mutex *g, char *mem, const struct mr_pieces *p, unsigned op,
                         struct mr_type *basic, const void *in, void *old)
{
    void *scratch = mr_rma_scratch(MR_SCRATCH_COMBINE, MR_PIECES_SCRATCH(p->bytes));

    if (!scratch)
        return mr_fail(MR_ERR_NO_MEM, "no memory to accumulate %zu bytes with", p->bytes);
    if (g)
        mr_winmem_take(&g->holder);
    mr_pieces_apply(mem, p->piece, p->num, p->bytes, op, basic, in, old, scratch);
    if (g)
        mr_winmem_give(&g->holder);
    return MR_SUCCESS;
}

/* ---- packets ----------------------------------------------------------------------------------------------------- */

/* An operation as received. */
struct asked {
    struct mr_rma_op op;
    struct mr_pieces p;
    const char *data;
    char *mem;
    bool inside; /* the window, or the rest is not to be done */
};

static bool is_update(int what)
{
    return what == MR_RMA_ACC || what == MR_RMA_FETCH || what == MR_RMA_SWAP;
}

static size_t expected_bytes(const struct asked *a, int what)
{
    switch (what) {
    case MR_RMA_PUT:
    case MR_RMA_ACC:
        return a->p.bytes;
    case MR_RMA_FETCH:
        return a->op.op == MR_OP_NO_OP ? 0 : a->p.bytes;
    case MR_RMA_SWAP:
        return 2 * a->p.bytes;
    default:
        return 0;
    }
}

static bool makes_sense(const struct asked *a, int what)
{
    const struct mr_rma_op *op = &a->op;

    if (!is_update(what))
        return true;
    if (op->basic >= MR_NUM_BASICS || !mr_type_basic[op->basic].size || a->p.bytes % mr_type_basic[op->basic].size)
        return false;
    if (what == MR_RMA_SWAP)
        return true;
    return op->op == MR_OP_REPLACE || op->op == MR_OP_NO_OP ||
           (op->op < MR_OP_COUNT && mr_op_allows(&mr_op_builtin[op->op], &mr_type_basic[op->basic]));
}

/* False: the packet makes no sense. */
static bool read_op(const struct mr_win *w, const struct mr_hdr *hdr, const char *payload, size_t len, struct asked *a)
{
    size_t header = sizeof(a->op);
    int64_t lo, hi;

    if (len < header)
        return false;
    memcpy(&a->op, payload, sizeof(a->op));
    if (a->op.pieces > MR_PIECES_MAX || len < header + a->op.pieces * sizeof(a->p.piece[0]))
        return false;
    a->p.num = a->op.pieces;
    a->p.bytes = a->op.bytes;
    memcpy(a->p.piece, payload + header, a->p.num * sizeof(a->p.piece[0]));
    header += a->p.num * sizeof(a->p.piece[0]);
    if (!mr_pieces_span(a->p.piece, a->p.num, a->p.bytes, &lo, &hi))
        return false;
    a->data = payload + header;
    a->inside = mr_win_place_pieces(w, a->op.addr, a->p.piece, a->p.num, lo, hi, &a->mem);
    return (hdr->tag == MR_RMA_PUT_LONG || hdr->tag == MR_RMA_GET_LONG || a->p.bytes <= INT32_MAX) &&
           len - header == expected_bytes(a, hdr->tag) && makes_sense(a, hdr->tag);
}

/* For a place outside this process's part. The part of an abandoned window is empty (mr_win_abandon). */
static enum mr_err outside(const struct mr_win *w)
{
    return w->in->abandoned ? mr_comm_fault(w->comm) : MR_ERR_RMA_RANGE;
}

static void settle_debts(struct mr_rma_peer *p)
{
    if (!(p->owes_flushed || p->owes_unlock) || (int32_t)(p->done - p->due) < 0)
        return;
    if (p->owes_unlock)
        mr_lock_release(p);
    if (p->owes_flushed)
        mr_rma_tell(p, MR_RMA_FLUSHED, (struct mr_hdr){.sreq = p->due, .rreq = p->wrong});
    p->owes_unlock = p->owes_flushed = false;
    p->wrong = MR_SUCCESS;
}

static void count_done(struct mr_rma_peer *p, enum mr_err err)
{
    if (err)
        p->wrong = err;
    p->done++;
    settle_debts(p);
}

static void send_result(struct mr_rma_peer *p, uint64_t id, const char *data, size_t bytes)
{
    struct mr_vc *vc = mr_rma_vc(p->win, p->rank);
    size_t most = mr_vc_eager_max(vc);

    for (size_t at = 0; at < bytes;) {
        size_t len = bytes - at < most ? bytes - at : most;
        struct mr_hdr hdr = {.kind = MR_PKT_ABOVE,
                             .tag = MR_RMA_RESULT,
                             .rank = p->win->comm->rank,
                             .ctx = p->win->comm->context,
                             .len = len,
                             .sreq = at,
                             .rreq = id};

        if (mr_vc_send(vc, &hdr, data + at, len)) {
            mr_rma_tell(p, MR_RMA_REFUSED, (struct mr_hdr){.sreq = MR_ERR_NO_MEM, .rreq = id});
            return;
        }
        at += len;
    }
}

static void refuse_access(struct mr_rma_peer *p, uint64_t id, enum mr_err why)
{
    mr_rma_tell(p, MR_RMA_REFUSED, (struct mr_hdr){.sreq = why, .rreq = id});
}

static void serve_get(struct mr_rma_peer *p, uint64_t id, const struct asked *a)
{
    char *data = a->mem;

    if (a->p.num) {
        data = mr_rma_scratch(MR_SCRATCH_DATA, a->p.bytes);
        if (!data) {
            refuse_access(p, id, MR_ERR_NO_MEM);
            return;
        }
        mr_pieces_gather(a->mem, a->p.piece, a->p.num, a->p.bytes, data);
    }
    send_result(p, id, data, a->p.bytes);
}

static void serve_fetch(struct mr_rma_peer *p, uint64_t id, const struct asked *a, unsigned op)
{
    char *old = mr_rma_scratch(MR_SCRATCH_DATA, a->p.bytes);
    enum mr_err err = old ? mr_rma_apply(p->win->in->target[p->win->comm->rank].mutex, a->mem, &a->p, op,
                                         &mr_type_basic[a->op.basic], a->data, old)
                          : MR_ERR_NO_MEM;

    if (err)
        refuse_access(p, id, err);
    else
        send_result(p, id, old, a->p.bytes);
}

/* ---- long operations: a message carries the data ----------------------------------------------------------------- */

static void long_put_done(struct mr_request *req, void *arg)
{
    struct mr_rma_peer *p = arg;
    enum mr_err err = req->status.error;

    p->win->in->answering--;
    /* no memory is allocated for an operation outside the window */
    count_done(p, err == MR_ERR_TRUNCATE ? outside(p->win) : err);
    mr_request_put(req);
}

static void long_get_done(struct mr_request *req, void *arg)
{
    struct mr_rma_peer *p = arg;

    p->win->in->answering--;
    mr_request_put(req);
}

static void follow_request(struct mr_rma_peer *p, struct mr_request *req,
                           void (*done)(struct mr_request *req, void *arg))
{
    p->win->in->answering++;
    if (req->complete) {
        done(req, p);
        return;
    }
    req->on_complete_arg = p;
    req->on_complete = done;
}

static void serve_long_put(struct mr_rma_peer *p, int tag, const struct asked *a)
{
    struct mr_comm *c = p->win->comm;
    struct mr_request *req;
    enum mr_err err = mr_irecv(a->mem, a->inside ? a->p.bytes : 0, mr_type_byte, p->rank, tag, c, c->context, &req);

    if (err)
        count_done(p, err);
    else
        follow_request(p, req, long_put_done);
}

static void serve_long_get(struct mr_rma_peer *p, int tag, const struct asked *a)
{
    struct mr_comm *c = p->win->comm;
    struct mr_request *req;
    enum mr_err err = outside(p->win);

    if (a->inside)
        err = mr_isend(a->mem, a->p.bytes, mr_type_byte, p->rank, tag, c, c->context, MR_SEND_STANDARD, &req);
    if (err)
        err = mr_isend_poison(err, p->rank, tag, c, c->context, &req);
    if (!err)
        follow_request(p, req, long_get_done);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static void serve_op(struct mr_rma_peer *p, const struct mr_hdr *hdr, const struct asked *a)
{
    enum mr_err wrong = a->inside ? MR_SUCCESS : outside(p->win);
    int tag = (int)(hdr->rreq & MR_TAG_UB);

    switch (hdr->tag) {
    case MR_RMA_PUT:
        if (!wrong)
            mr_pieces_scatter(a->mem, a->p.piece, a->p.num, a->p.bytes, a->data);
        count_done(p, wrong);
        break;
    case MR_RMA_ACC:
        if (!wrong)
            wrong = mr_rma_apply(p->win->in->target[p->win->comm->rank].mutex, a->mem, &a->p, a->op.op,
                                 &mr_type_basic[a->op.basic], a->data, NULL);
        count_done(p, wrong);
        break;
    case MR_RMA_PUT_LONG:
        serve_long_put(p, tag, a);
        break;
    case MR_RMA_GET_LONG:
        serve_long_get(p, tag, a);
        break;
    default:
        if (wrong)
            refuse_access(p, hdr->rreq, wrong);
        else if (hdr->tag == MR_RMA_GET)
            serve_get(p, hdr->rreq, a);
        else
            serve_fetch(p, hdr->rreq, a, hdr->tag == MR_RMA_SWAP ? MR_PIECES_SWAP : a->op.op);
    }
}

static void op_packet(struct mr_rma_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct asked a;

    if (read_op(p->win, hdr, payload, len, &a))
        serve_op(p, hdr, &a);
    else
        mr_log(MR_LOG_ERROR, "dropped a damaged packet of rank %d of a window: kind %d, %zu bytes", p->rank, hdr->tag,
               len);
}

static void flush_asked(struct mr_rma_peer *p, const struct mr_hdr *hdr, bool unlocks)
{
    p->due = (uint32_t)hdr->sreq;
    p->owes_unlock |= unlocks;
    p->owes_flushed |= !unlocks || hdr->flags & 1;
    settle_debts(p);
}

void mr_target_packet(struct mr_rma_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    switch (hdr->tag) {
    case MR_RMA_PUT:
    case MR_RMA_ACC:
    case MR_RMA_FETCH:
    case MR_RMA_SWAP:
    case MR_RMA_GET:
    case MR_RMA_PUT_LONG:
    case MR_RMA_GET_LONG:
        op_packet(p, hdr, payload, len);
        break;
    case MR_RMA_KEYS:
        mr_direct_keys_asked(p, hdr);
        break;
    case MR_RMA_FLUSH:
        flush_asked(p, hdr, false);
        break;
    case MR_RMA_LOCK:
        mr_lock_ask(p, hdr);
        break;
    case MR_RMA_UNLOCK:
        flush_asked(p, hdr, true);
        break;
    case MR_RMA_SLOT:
        mr_lock_slot_asked(p);
        break;
    case MR_RMA_CLEAR:
        mr_lock_clear_asked(p, (uint32_t)hdr->sreq);
        break;
    case MR_RMA_WITHDRAW:
        mr_lock_withdraw(p, (uint32_t)hdr->sreq, hdr->flags & MR_RMA_DELEGATE);
        break;
    case MR_RMA_COMPLETE:
        p->complete_at = (uint32_t)hdr->sreq;
        p->completed = true;
        break;
    default:
        mr_log(MR_LOG_ERROR, "dropped a packet of rank %d of a window: kind %d is not known", p->rank, hdr->tag);
    }
}
