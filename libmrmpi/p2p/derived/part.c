/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitioned communication (MPI-4.0 chapter 4).
 *
 * The two sides may cut the data differently. The sender decides the pieces, each one or several of its partitions
 * (small ones together), and announces them once in a greeting sent by MPI_Psend_init: so greetings match in the order
 * of the initialisations, as the standard requires. In every round a piece is a message of its own, sent when its last
 * partition is ready; greeting and pieces use contexts of their own, the pieces with tags chosen by the sender, so
 * nothing else can match them. Rounds follow each other in order because messages of a pair do.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/core/core.h"
#include "libmrmpi/base/base.h"
#include "libmrmpi/p2p/derived/internal.h"

#define CTX_PIECES 0x80000000u
#define PIECE_MIN  4096 /* bytes below which partitions share a message */

struct greeting {
    uint64_t total, piece; /* bytes of all, of a piece (the last may be shorter) */
    uint32_t num_pieces, first_tag;
};

struct piece {
    struct mr_part *part;
    struct mr_request *req; /* under way */
    bool arrived;
    int unready;     /* sender: partitions still to come */
    char *unaligned; /* receiver: landing place if it does not begin and end with an element */
};

struct mr_part {
    struct mr_part *next, *prev; /* of freed operations */
    bool sender, greeted;
    struct mr_part_args a;
    struct mr_comm *comm; /* kept by the persistent request */
    size_t bytes;         /* of a partition */
    struct greeting g;
    struct mr_request *greeting; /* under way */
    enum mr_err error;           /* of the greeting */
    struct piece *pieces;
    uint8_t *ready; /* sender: by partition */
    /* the round */
    struct mr_request *round;
    uint32_t pending; /* pieces to come, plus one while they are being started */
    uint64_t seen;    /* bytes received */
};

static uint32_t next_tag;
static struct mr_part *forgotten; /* freed while their greetings are on their way */

static uint32_t take_tags(uint32_t n)
{
    uint32_t first = next_tag;

    if (n > MR_TAG_UB - first)
        first = 0;
    next_tag = first + n;
    return first;
}

int mr_part_count(const struct mr_part *p)
{
    return p->a.partitions;
}

bool mr_part_is_send(const struct mr_part *p)
{
    return p->sender;
}

static uint64_t piece_begin(const struct mr_part *p, uint64_t i)
{
    uint64_t at = i * p->g.piece;

    return at < p->g.total ? at : p->g.total;
}

/* ---- the end of a piece, and of a round -------------------------------------------------------------------------- */

static void round_ends(struct mr_part *p)
{
    struct mr_request *round = p->round;

    if (!p->sender && p->a.peer != MR_PROC_NULL) {
        round->status.source = p->a.peer;
        round->status.tag = p->a.tag;
        round->status.bytes = p->seen;
    }
    p->round = NULL;
    mr_request_complete(round);
    mr_request_put(round);
}

static void one_less(struct mr_part *p)
{
    if (--p->pending == 0)
        round_ends(p);
}

static void note_round_error(struct mr_part *p, enum mr_err err)
{
    if (err && !p->round->status.error)
        p->round->status.error = err;
}

static void piece_ends(struct piece *x)
{
    struct mr_part *p = x->part;

    note_round_error(p, x->req->status.error);
    if (!p->sender) {
        p->seen += x->req->status.bytes;
        if (x->unaligned)
            mr_type_unpack((void *)(uintptr_t)p->a.buf, p->a.count * (size_t)p->a.partitions, p->a.type,
                           piece_begin(p, (uint64_t)(x - p->pieces)), x->unaligned, x->req->status.bytes);
    }
    x->arrived = true;
    mr_request_put(x->req);
    x->req = NULL;
    one_less(p);
}

static void on_piece(struct mr_request *req, void *arg)
{
    piece_ends(arg);
}

static void track(struct piece *x, enum mr_err err)
{
    if (err) {
        x->req = NULL;
        x->arrived = true;
        note_round_error(x->part, err);
        one_less(x->part);
    } else if (x->req->complete) {
        piece_ends(x);
    } else {
        x->req->on_complete = on_piece;
        x->req->on_complete_arg = x;
    }
}

static void watch_greeting(struct mr_part *p, void (*greeted)(struct mr_request *, void *))
{
    if (p->greeting->complete) {
        greeted(p->greeting, p);
        return;
    }
    p->greeting->on_complete = greeted;
    p->greeting->on_complete_arg = p;
}

/* ---- sender ------------------------------------------------------------------------------------------------------ */

static int per_piece(const struct mr_part *p)
{
    return p->bytes ? (int)(p->g.piece / p->bytes) : p->a.partitions;
}

static int partitions_in(const struct mr_part *p, uint32_t i)
{
    int each = per_piece(p), from = (int)i * each;

    return p->a.partitions - from < each ? p->a.partitions - from : each;
}

static void send_piece(struct mr_part *p, uint32_t i)
{
    struct piece *x = &p->pieces[i];
    size_t first = (size_t)i * (size_t)per_piece(p) * p->a.count, n = (size_t)partitions_in(p, i) * p->a.count;

    track(x, mr_isend((const char *)p->a.buf + (ptrdiff_t)first * p->a.type->extent, n, p->a.type, p->a.peer,
                      (int)(p->g.first_tag + i), p->comm, p->comm->context | CTX_PIECES, MR_SEND_STANDARD, &x->req));
}

enum mr_err mr_part_ready(struct mr_part *p, int partition)
{
    uint32_t i = p->bytes ? (uint32_t)((uint64_t)partition * p->bytes / p->g.piece) : 0;

    if (!p->round || p->ready[partition])
        return mr_fail(MR_ERR_ARG, p->round ? "partition %d is ready already" : "the operation is not started: %d",
                       partition);
    p->ready[partition] = 1;
    if (--p->pieces[i].unready == 0)
        send_piece(p, i);
    return MR_SUCCESS;
}

static void on_greeted(struct mr_request *req, void *arg)
{
    struct mr_part *p = arg;

    p->greeting = NULL;
    p->error = req->status.error;
    mr_request_put(req);
}

/* It is short, but must wait where there is no room, or no credit with the receiver. */
static enum mr_err greet(struct mr_part *p)
{
    int each = p->bytes && p->bytes < PIECE_MIN ? (int)((PIECE_MIN + p->bytes - 1) / p->bytes) : 1;

    if (!p->bytes || each > p->a.partitions)
        each = p->a.partitions ? p->a.partitions : 1;
    p->g.total = p->bytes * (uint64_t)p->a.partitions;
    p->g.piece = p->bytes * (uint64_t)each;
    p->g.num_pieces = (uint32_t)((p->a.partitions + each - 1) / each);
    p->g.first_tag = take_tags(p->g.num_pieces);
    p->greeted = true;
    p->pieces = calloc((size_t)p->g.num_pieces + 1, sizeof(*p->pieces)); /* there may be none */
    p->ready = malloc((size_t)p->a.partitions + 1);
    if (!p->pieces || !p->ready)
        return MR_ERR_NO_MEM;
    enum mr_err err = mr_isend(&p->g, sizeof(p->g), mr_type_byte, p->a.peer, p->a.tag, p->comm,
                               p->comm->context | MR_CTX_GREETING, MR_SEND_STANDARD, &p->greeting);
    if (!err)
        watch_greeting(p, on_greeted);
    return err ? err : p->error;
}

static void start_sends(struct mr_part *p)
{
    memset(p->ready, 0, (size_t)p->a.partitions);
    for (uint32_t i = 0; i < p->g.num_pieces; i++) {
        p->pieces[i] = (struct piece){.part = p, .unready = partitions_in(p, i)};
        p->pending++;
    }
}

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

static void recv_piece(struct mr_part *p, uint32_t i)
{
    struct piece *x = &p->pieces[i];
    const struct mr_type *t = p->a.type;
    uint64_t room = p->bytes * (uint64_t)p->a.partitions, from = piece_begin(p, i), to = piece_begin(p, i + 1);
    struct mr_type *as = mr_type_byte;
    void *at = x->unaligned;
    size_t n;

    from = from < room ? from : room; /* more than there is room for ends as truncated */
    to = to < room ? to : room;
    n = to - from;
    if (n == 0) {
        at = NULL;
    } else if (t->contiguous) {
        at = (char *)p->a.buf + t->true_lb + from;
    } else if (from % t->size == 0 && to % t->size == 0) {
        at = (char *)(uintptr_t)p->a.buf + (ptrdiff_t)(from / t->size) * t->extent;
        n /= t->size;
        as = p->a.type;
    } else if (!at && !(at = x->unaligned = malloc(n))) {
        track(x, MR_ERR_NO_MEM);
        return;
    }
    track(x,
          mr_irecv(at, n, as, p->a.peer, (int)(p->g.first_tag + i), p->comm, p->comm->context | CTX_PIECES, &x->req));
}

static void start_recvs(struct mr_part *p)
{
    for (uint32_t i = 0; i < p->g.num_pieces; i++) {
        p->pieces[i] = (struct piece){.part = p, .unaligned = p->pieces[i].unaligned};
        p->pending++;
        recv_piece(p, i);
    }
}

static void on_greeting(struct mr_request *req, void *arg)
{
    struct mr_part *p = arg;

    p->greeting = NULL;
    p->error = req->status.error;
    if (!p->error && !(p->pieces = calloc((size_t)p->g.num_pieces + 1, sizeof(*p->pieces))))
        p->error = MR_ERR_NO_MEM;
    p->greeted = true;
    mr_request_put(req);
    if (!p->round) /* not started yet */
        return;
    if (p->error)
        note_round_error(p, p->error);
    else
        start_recvs(p);
    one_less(p);
}

static enum mr_err await_greeting(struct mr_part *p)
{
    enum mr_err err = mr_irecv(&p->g, sizeof(p->g), mr_type_byte, p->a.peer, p->a.tag, p->comm,
                               p->comm->context | MR_CTX_GREETING, &p->greeting);

    if (!err)
        watch_greeting(p, on_greeting);
    return err ? err : p->error;
}

bool mr_part_arrived(struct mr_part *p, int partition)
{
    uint64_t from = (uint64_t)partition * p->bytes, to = from + p->bytes;

    if (!p->round)
        return true;
    if (!p->greeted || !p->bytes || to > p->g.total)
        return false; /* the end of the round will tell */
    for (uint64_t i = from / p->g.piece; i < p->g.num_pieces && piece_begin(p, i) < to; i++)
        if (!p->pieces[i].arrived)
            return false;
    return true;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

enum mr_err mr_part_start(struct mr_part *p, struct mr_request **req)
{
    enum mr_err err = p->a.peer == MR_PROC_NULL ? mr_no_peer_fate(p->comm, p->comm->context) : p->error;

    *req = NULL;
    if (err)
        return err;
    p->round = mr_request_new(MR_REQ_PART, p->comm);
    if (!p->round)
        return MR_ERR_NO_MEM;
    *req = mr_request_get(p->round);
    p->seen = 0;
    p->pending = 1;
    if (p->sender) {
        start_sends(p);
        one_less(p);
    } else if (p->a.peer == MR_PROC_NULL) {
        one_less(p);
    } else if (p->greeted) {
        start_recvs(p);
        one_less(p);
    }
    return MR_SUCCESS;
}

enum mr_err mr_part_new(bool sender, const struct mr_part_args *args, struct mr_comm *comm, struct mr_request **req)
{
    struct mr_part *p = calloc(1, sizeof(*p));
    struct mr_request *r = p ? mr_request_new(MR_REQ_PERSISTENT_PART, comm) : NULL;
    enum mr_err err = MR_SUCCESS;

    *req = NULL;
    if (!r) {
        free(p);
        return MR_ERR_NO_MEM;
    }
    p->sender = sender;
    p->a = *args;
    p->comm = comm;
    p->bytes = args->count * args->type->size;
    mr_type_get(args->type);
    r->part = p;
    if (sender)
        err = greet(p);
    else if (args->peer != MR_PROC_NULL)
        err = await_greeting(p);
    if (err) {
        mr_part_free(p);
        mr_request_put(r);
        return err;
    }
    *req = r;
    return MR_SUCCESS;
}

/*
 * The program has freed it before its greeting came, or left. The greeting must not meet another operation: greetings
 * match in the order of the initialisations, started or not. So the greeting is awaited, and with it the communicator,
 * whose context must not be reused.
 */
static void on_forgotten_greeting(struct mr_request *req, void *arg)
{
    struct mr_part *p = arg;

    if (p->prev)
        p->prev->next = p->next;
    else
        forgotten = p->next;
    if (p->next)
        p->next->prev = p->prev;
    mr_request_put(req);
    free(p);
}

/*
 * Arrived greetings are polled, and peers get their turn while ours wait for room: a program that makes and frees
 * operations in a loop would pile them up.
 */
static void forget_part(struct mr_part *p)
{
    p->greeting->on_complete = on_forgotten_greeting;
    p->next = forgotten;
    if (forgotten)
        forgotten->prev = p;
    forgotten = p;
    mr_progress_some();
    if (mr_sends_wait())
        sched_yield();
}

/* No more greetings will be sent. */
void mr_part_finalize(void)
{
    while (forgotten) {
        struct mr_part *p = forgotten;

        forgotten = p->next;
        p->greeting->on_complete = NULL;
        if (!p->sender)
            mr_cancel(p->greeting);
        mr_request_put(p->greeting);
        free(p);
    }
}

void mr_part_free(struct mr_part *p)
{
    for (uint32_t i = 0; !p->sender && p->pieces && i < p->g.num_pieces; i++)
        free(p->pieces[i].unaligned);
    free(p->pieces);
    free(p->ready);
    mr_type_put(p->a.type);
    if (p->greeting)
        forget_part(p);
    else
        free(p);
}
