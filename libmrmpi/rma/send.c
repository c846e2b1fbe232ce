/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending operations: packets, each whole in itself, and messages from memory to memory for long data in one piece. The
 * program waits while too much of it is under way.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/core/core.h"
#include "libmrmpi/rma/access.h"

/* Packets to a target that may wait in its channel, and results that it may owe; beyond, the program waits. */
#define WAITING_MOST 64u
#define AWAITED_MOST 256u
/* ---- packets ----------------------------------------------------------------------------------------------------- */

/* The contents of a packet. */
struct parcel {
    const struct mr_rma_access *o;
    const struct mr_pieces *p;
    size_t offset;    /* of its data in that of the operation */
    const void *data; /* NULL: packed from o->from */
    size_t len;
};

static void make_parcel(void *to, size_t len, const void *what)
{
    const struct parcel *parcel = what;
    const struct mr_rma_access *o = parcel->o;
    char *at = to;
    struct mr_rma_op op = {.addr = o->addr,
                           .bytes = parcel->p->bytes,
                           .pieces = (uint16_t)parcel->p->num,
                           .op = (uint8_t)o->code,
                           .basic = o->basic ? o->basic->basic : 0};

    memcpy(at, &op, sizeof(op));
    at += sizeof(op);
    memcpy(at, parcel->p->piece, op.pieces * sizeof(parcel->p->piece[0]));
    at += op.pieces * sizeof(parcel->p->piece[0]);
    if (!parcel->len)
        return;
    if (parcel->data)
        memcpy(at, parcel->data, parcel->len);
    else
        mr_type_pack(o->from->buf, o->from->count, o->from->type, parcel->offset, at, parcel->len);
}

static bool has_room(void *vc)
{
    return mr_vc_lost(vc) || mr_vc_waiting(vc) <= WAITING_MOST / 2;
}

static bool has_less_to_come(const struct mr_rma_peer *p, uint32_t goal)
{
    return p->awaited < goal;
}

static enum mr_err send_parcel(const struct mr_rma_access *o, const struct parcel *parcel, uint64_t id)
{
    size_t len = sizeof(struct mr_rma_op) + parcel->p->num * sizeof(parcel->p->piece[0]) + parcel->len;
    struct mr_hdr hdr = {.kind = MR_PKT_ABOVE,
                         .tag = (int)o->what,
                         .rank = o->w->comm->rank,
                         .ctx = o->w->comm->context,
                         .len = len,
                         .rreq = id};
    void *scratch = mr_rma_scratch(MR_SCRATCH_PACKET, len);
    int err = scratch ? mr_vc_send_made(o->vc, &hdr, len, scratch, make_parcel, parcel) : -ENOMEM;

    if (err == -ENOMEM)
        return mr_fail(MR_ERR_NO_MEM, "no memory for a packet to rank %d of the window", o->at->rank);
    if (err) {
        o->p->error = err;
        return mr_rma_lost(o->p);
    }
    if (!o->no_wait && mr_vc_waiting(o->vc) > WAITING_MOST)
        mr_progress_until(has_room, o->vc);
    return MR_SUCCESS;
}

/* The same for data counted by the target. */
static enum mr_err send_counted(const struct mr_rma_access *o, const struct parcel *parcel, uint64_t id)
{
    enum mr_err err;

    o->p->issued++;
    err = send_parcel(o, parcel, id);
    if (err)
        o->p->issued--;
    return err;
}

/* How much of its payload are pieces, and how much data may they have. */
size_t mr_access_room(const struct mr_rma_access *o, size_t unit)
{
    size_t room = mr_vc_eager_max(o->vc) - sizeof(struct mr_rma_op), pieces = mr_pieces_most(mr_vc_eager_max(o->vc));

    room -= pieces * sizeof(struct mr_rma_piece);
    return room / unit * unit;
}

bool mr_access_fits(const struct mr_rma_access *o, size_t bytes)
{
    return sizeof(struct mr_rma_op) + bytes <= mr_vc_eager_max(o->vc);
}

/* ---- parts of an operation, to any destination ------------------------------------------------------------------- */

enum mr_err mr_access_put(const struct mr_pieces *p, size_t offset, void *arg)
{
    struct mr_rma_access *o = arg;

    return send_counted(o, &(struct parcel){.o = o, .p = p, .offset = offset, .len = p->bytes}, 0);
}

/* For a result: the part of it that comes back. */
enum mr_err mr_access_ask(const struct mr_pieces *p, size_t offset, size_t len, const void *data,
                          struct mr_rma_access *o)
{
    const struct parcel parcel = {.o = o, .p = p, .offset = offset, .data = data, .len = len};
    uint64_t id;
    enum mr_err err = MR_SUCCESS;

    if (o->p->awaited >= AWAITED_MOST)
        err = mr_rma_await(o->p, has_less_to_come, AWAITED_MOST / 2);
    if (err)
        return err;
    id = mr_result_expect(o->p, o->job, o->result, offset, p->bytes);
    if (!id)
        return MR_ERR_NO_MEM;
    err = send_parcel(o, &parcel, id);
    if (err)
        mr_result_forget(o->p, id);
    return err;
}

enum mr_err mr_access_get(const struct mr_pieces *p, size_t offset, void *arg)
{
    return mr_access_ask(p, offset, 0, NULL, arg);
}

enum mr_err mr_access_accumulate(const struct mr_pieces *p, size_t offset, void *arg)
{
    struct mr_rma_access *o = arg;
    size_t len = o->code == MR_OP_NO_OP ? 0 : p->bytes;

    if (o->result)
        return mr_access_ask(p, offset, len, NULL, o);
    return send_counted(o, &(struct parcel){.o = o, .p = p, .offset = offset, .len = len}, 0);
}

/* The origin's data, from offset on, if usable in place: else NULL. */
static const char *data_in_place(const struct mr_rma_access *o, size_t offset, size_t bytes)
{
    const struct mr_win_target *t = &o->w->in->target[o->at->rank];
    const char *data = (const char *)o->from->buf + o->from->type->true_lb + offset;

    if (!o->from->type->contiguous || (data < t->local + t->size && data + bytes > t->local))
        return NULL;
    return data;
}

/* The same where memory is in reach. */
enum mr_err mr_access_accumulate_near(const struct mr_pieces *p, size_t offset, void *arg)
{
    struct mr_rma_access *o = arg;
    char *room = mr_rma_scratch(MR_SCRATCH_DATA, 2 * p->bytes), *old = room ? room + p->bytes : NULL;
    const char *data = room;
    enum mr_err err;

    if (!room)
        return mr_fail(MR_ERR_NO_MEM, "no memory to accumulate with");
    if (o->code != MR_OP_NO_OP && !(data = data_in_place(o, offset, p->bytes))) {
        mr_type_pack(o->from->buf, o->from->count, o->from->type, offset, room, p->bytes);
        data = room;
    }
    err =
        mr_rma_apply(o->w->in->target[o->at->rank].mutex, o->near, p, o->code, o->basic, data, o->result ? old : NULL);
    if (!err && o->result)
        mr_type_unpack(o->result->buf, o->result->count, o->result->type, offset, old, p->bytes);
    return err;
}

/* ---- long operations --------------------------------------------------------------------------------------------- */

/* A message of ours, to or from the program's memory. */
struct carrier {
    struct mr_rma_peer *p;
    struct mr_rma_job *job;
};

static void carried(struct mr_request *req, void *arg)
{
    struct carrier c = *(struct carrier *)arg;
    enum mr_err err = req->status.error;

    free(arg);
    mr_request_put(req);
    c.p->open--;
    if (err && !c.job)
        c.p->refused = err;
    mr_rma_job_part_done(c.job, err);
}

static int next_data_tag(struct mr_rma_peer *p, bool get)
{
    return (int)((2 * p->next_tag++ + get) & MR_TAG_UB);
}

/* The message is posted in any case, since the target has been told of it or will be. */
static enum mr_err carry(struct mr_rma_access *o, struct carrier *c, int tag)
{
    struct mr_comm *comm = o->w->comm;
    struct mr_request *req;
    enum mr_err err;

    if (o->what == MR_RMA_GET_LONG) {
        err = mr_irecv(o->result->buf, o->result->count, o->result->type, o->at->rank, tag, comm, comm->context, &req);
    } else {
        err = mr_isend(o->from->buf, o->from->count, o->from->type, o->at->rank, tag, comm, comm->context,
                       MR_SEND_STANDARD, &req);
        if (err && mr_isend_poison(err, o->at->rank, tag, comm, comm->context, &req) == MR_SUCCESS)
            mr_request_put(req);
    }
    if (err) {
        free(c);
        return err;
    }
    o->p->open++;
    if (o->job)
        o->job->parts++;
    if (req->complete) {
        carried(req, c);
        return MR_SUCCESS;
    }
    req->on_complete_arg = c;
    req->on_complete = carried;
    return MR_SUCCESS;
}

/* All of it is in one piece in the window. */
enum mr_err mr_access_long(struct mr_rma_access *o, size_t bytes)
{
    struct mr_pieces all = {.bytes = bytes};
    bool get = o->what == MR_RMA_GET_LONG;
    int tag = next_data_tag(o->p, get);
    struct carrier *c = malloc(sizeof(*c));
    enum mr_err err = MR_SUCCESS;

    if (!c)
        return mr_fail(MR_ERR_NO_MEM, "no memory for an operation on rank %d of the window", o->at->rank);
    *c = (struct carrier){.p = o->p, .job = o->job};
    if (get)
        err = carry(o, c, tag);
    if (!err && get)
        return send_parcel(o, &(struct parcel){.o = o, .p = &all}, (uint64_t)tag);
    if (!err)
        err = send_counted(o, &(struct parcel){.o = o, .p = &all}, (uint64_t)tag);
    if (err && !get)
        free(c);
    return err ? err : carry(o, c, tag);
}

/* In packets, so that the data may change after the return. */
static enum mr_err put_copied(struct mr_rma_access *o, size_t len)
{
    size_t most = mr_vc_eager_max(o->vc) - sizeof(struct mr_rma_op);
    struct mr_pieces part;
    enum mr_err err = MR_SUCCESS;

    o->what = MR_RMA_PUT;
    for (size_t at = 0; at < len && !err; at += part.bytes, o->addr += part.bytes) {
        part = (struct mr_pieces){.bytes = len - at < most ? len - at : most};
        err = mr_access_put(&part, at, o);
    }
    return err;
}

enum mr_err mr_access_again(struct mr_rma_peer *p, struct mr_rma_job *j, void *buf, size_t len, uint64_t addr,
                            bool write)
{
    struct mr_rma_data here = {.buf = buf, .count = len, .type = mr_type_byte};
    struct mr_rma_place at = {.rank = p->rank, .count = len, .type = mr_type_byte};
    struct mr_rma_access o = {.w = p->win,
                              .p = p,
                              .vc = mr_rma_vc(p->win, p->rank),
                              .job = j,
                              .what = write ? MR_RMA_PUT_LONG : MR_RMA_GET_LONG,
                              .from = &here,
                              .result = &here,
                              .at = &at,
                              .addr = addr,
                              .no_wait = true};

    return write && len <= MR_WRITER_MOST ? put_copied(&o, len) : mr_access_long(&o, len);
}
