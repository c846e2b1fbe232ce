/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages over links that lose writes: rounds of writes, and the receiver's confirmations and requests
 * (track.h).
 */
#include "libmrmpi/net/stripe/track.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/verbs.h"

#define RECVS_MAX (1u << MR_RUN_INDEX_BITS)

#define WRITE_SHIFT_MAX 20  /* the longest write: 1 MB */
#define WRITES_MAX      256 /* of the first round, about: each takes a receive buffer of the peer */
#define RUNS_MAX        256 /* of a MISSING message */
/* A link is given up after so many rounds in a row in which its first write did not arrive. So no write under way is
   older than that, and MR_RUN_ROUND_BITS bits tell rounds apart. */
#define FRUITLESS_MAX 20

/*
 * How long a receiver waits for late data, after all has left the sender: half of the round-trip time of packets, which
 * contains their queueing time, within these bounds. The time doubles with each spurious request.
 */
#define HOLD_MIN_NS   50000ull
#define HOLD_FIRST_NS 200000ull
#define HOLD_MOST_NS  1000000ull
#define HOLD_MAX_NS   10000000ull
#define SPURIOUS_MAX  8

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

/* A tracked receive. */
struct mr_track_recv {
    struct mr_bulk_region *region;
    struct mr_peer *peer;
    struct mr_track_recv *next, **at; /* in its peer's late_recvs; at NULL: it is not */
    struct mr_blocks have;
    uint32_t index, serial;
    uint8_t round;
    bool late;       /* a write of the round before has arrived in this one */
    uint64_t cookie; /* at: the sender's number for the message */
    uint64_t due_ns; /* at: when MISSING is sent */
};

struct mr_track_recvs {
    struct mr_track_recv *entry[RECVS_MAX];
    uint32_t landed[RECVS_MAX]; /* serial numbers of the last ones with LANDED sent */
    unsigned num;
    uint32_t next, serial; /* the last one given */
};

uint64_t mr_track_hold(const struct mr_peer *p)
{
    uint64_t ns = p->out.rtt.srtt_ns ? p->out.rtt.srtt_ns / 2 : HOLD_FIRST_NS;

    ns = (ns < HOLD_MIN_NS ? HOLD_MIN_NS : ns > HOLD_MOST_NS ? HOLD_MOST_NS : ns) << mr_bulk_of(p)->spurious;
    return ns < HOLD_MAX_NS ? ns : HOLD_MAX_NS;
}

int mr_track_open(struct mr_bulk_region *r, uint64_t len, struct mr_remote *out)
{
    struct mr_track_recvs *all;
    struct mr_track_recv *recv;

    if (!mr_bulk.tracked)
        mr_bulk.tracked = calloc(1, sizeof *mr_bulk.tracked);
    all = mr_bulk.tracked;
    if (!all)
        return -ENOMEM;
    if (all->num == RECVS_MAX)
        return -EAGAIN;
    recv = calloc(1, sizeof *recv);
    if (!recv)
        return -ENOMEM;
    if (mr_blocks_init(&recv->have, (uint32_t)((len - 1) >> mr_block_shift(len)) + 1, false)) {
        free(recv);
        return -ENOMEM;
    }
    do
        all->next = (all->next + 1) % RECVS_MAX;
    while (all->entry[all->next]);
    if (!++all->serial)
        all->serial++;
    all->entry[all->next] = recv;
    all->num++;
    recv->region = r;
    recv->peer = mr_peers.peer[r->rank];
    out->token = recv->index = all->next;
    out->serial = recv->serial = all->serial;
    r->tracked = recv;
    return 0;
}

static void unlist_late(struct mr_track_recv *recv)
{
    if (!recv->at)
        return;
    *recv->at = recv->next;
    if (recv->next)
        recv->next->at = recv->at;
    recv->at = NULL;
    mr_bulk.num_late--;
}

void mr_track_close(struct mr_bulk_region *r)
{
    struct mr_track_recv *recv = r->tracked;

    unlist_late(recv);
    mr_bulk.tracked->entry[recv->index] = NULL;
    mr_bulk.tracked->num--;
    mr_blocks_free(&recv->have);
    free(recv);
}

static void send_landed(struct mr_peer *p, uint32_t token, uint64_t serial)
{
    struct mr_hdr hdr = {.kind = MR_TRACK_LANDED, .ctx = token, .rreq = serial};

    mr_bulk_send_control(p, &hdr, NULL, 0);
}

/* The end of a receive: its owner closes the region. */
static void complete_tracked_recv(struct mr_track_recv *recv)
{
    struct mr_bulk_region *r = recv->region;

    send_landed(recv->peer, recv->index, recv->serial);
    mr_bulk.tracked->landed[recv->index] = recv->serial;
    unlist_late(recv);
    mr_vc_up.put_landed(r->rank, r->base.rreq, 0);
}

void mr_track_landed(uint32_t imm)
{
    struct mr_track_recv *recv = mr_bulk.tracked ? mr_bulk.tracked->entry[mr_run_index(imm)] : NULL;

    if (!recv)
        return;
    if (mr_run_round(imm) != recv->round % MR_RUN_ROUNDS) { /* of the round before: late, not lost */
        mr_bulk_of(recv->peer)->spurious += !recv->late && mr_bulk_of(recv->peer)->spurious < SPURIOUS_MAX;
        recv->late = true;
        return;
    }
    mr_blocks_add(&recv->have, mr_run_of(imm));
    if (recv->have.count == recv->have.num)
        complete_tracked_recv(recv);
    else if (recv->at)
        recv->due_ns = mr_clock_ns() + mr_track_hold(recv->peer);
}

static bool has_sent_landed(const struct mr_hdr *written)
{
    return mr_bulk.tracked && written->ctx < RECVS_MAX && mr_bulk.tracked->landed[written->ctx] == written->rreq;
}

static void handle_written(struct mr_peer *p, const struct mr_hdr *hdr)
{
    struct mr_track_recv *recv = mr_bulk.tracked && hdr->ctx < RECVS_MAX ? mr_bulk.tracked->entry[hdr->ctx] : NULL;

    if (!recv || recv->serial != hdr->rreq || recv->peer != p) {
        if (hdr->rank || !has_sent_landed(hdr))
            send_landed(p, hdr->ctx, hdr->rreq);
        return;
    }
    if (recv->at || recv->round != (uint8_t)hdr->tag)
        return; /* a second one, or of another round */
    if (recv->round && !recv->late && mr_bulk_of(p)->spurious)
        mr_bulk_of(p)->spurious--;
    recv->cookie = hdr->sreq;
    recv->due_ns = mr_clock_ns() + mr_track_hold(p);
    recv->next = mr_bulk_of(p)->late_recvs;
    if (recv->next)
        recv->next->at = &recv->next;
    recv->at = &mr_bulk_of(p)->late_recvs;
    mr_bulk_of(p)->late_recvs = recv;
    mr_bulk.num_late++;
    mr_peer_watch(p);
}

/* Lists missing runs from block *at on, most at most. */
static size_t list_missing(const struct mr_blocks *have, uint32_t *at, struct mr_missing_run *run, size_t most)
{
    size_t n = 0;

    for (; n < most; n++) {
        uint32_t first = mr_blocks_find(have, *at, false);

        *at = mr_blocks_find(have, first, true);
        if (first == have->num)
            break;
        run[n] = (struct mr_missing_run){(uint16_t)first, (uint16_t)(*at - first)};
    }
    return n;
}

static void send_missing(struct mr_track_recv *recv)
{
    struct mr_peer *p = recv->peer;
    struct mr_missing_run run[RUNS_MAX];
    size_t most = mr_vc_eager_max(p->vc) / sizeof run[0];
    uint32_t at = 0;

    unlist_late(recv);
    recv->round++;
    recv->late = false;
    do {
        size_t n = list_missing(&recv->have, &at, run, most < RUNS_MAX ? most : RUNS_MAX);
        struct mr_hdr hdr = {.kind = MR_TRACK_MISSING, .sreq = recv->cookie, .tag = recv->round};

        hdr.rank = mr_blocks_find(&recv->have, at, false) < recv->have.num;
        mr_bulk_send_control(p, &hdr, run, n * sizeof run[0]);
    } while (mr_blocks_find(&recv->have, at, false) < recv->have.num && !p->error);
}

void mr_track_poll(struct mr_peer *p, uint64_t now_ns)
{
    struct mr_track_recv *next;

    for (struct mr_track_recv *recv = mr_bulk_of(p)->late_recvs; recv && !p->error; recv = next) {
        next = recv->next;
        if (recv->due_ns <= now_ns)
            send_missing(recv);
    }
}

/* ---- sender ------------------------------------------------------------------------------------------------------ */

static unsigned log2_up(uint64_t n)
{
    return n > 1 ? 64 - (unsigned)__builtin_clzll(n - 1) : 0;
}

static void free_track(struct mr_transfer *transfer)
{
    for (unsigned i = 0; i < transfer->num; i++)
        mr_bulk_of(transfer->peer)->num_unconfirmed -=
            mr_bulk_of(transfer->peer)->num_unconfirmed && transfer->stripe[i].state == MR_STRIPE_UNCONFIRMED;
    mr_blocks_free(&transfer->track->todo);
    free(transfer->track);
}

static void choose_write(const struct mr_stripe_op *s, const struct mr_link *l, struct mr_bulk_part *part)
{
    const struct mr_transfer *transfer = s->transfer;
    const struct mr_track *t = transfer->track;
    unsigned block = t->block_shift, shift = mr_bulk_of(transfer->peer)->write_shift,
             least = t->round ? 0 : block + log2_up(t->todo.num / WRITES_MAX);
    uint64_t from = s->offset >> block, to = (s->offset + s->len - 1) >> block, end;
    struct mr_block_run run;

    shift = shift < least ? least : shift;
    shift = shift < block ? block : shift;
    while (shift > block && 1ull << shift > l->rail->max_msg)
        shift--;
    run = mr_blocks_run(&t->todo, (uint32_t)from, (uint32_t)to + 1, 1u << (shift - block));
    part->at = (uint64_t)run.first << block;
    end = (uint64_t)(run.first + run.num) << block;
    part->len = (end < s->offset + s->len ? end : s->offset + s->len) - part->at;
    part->taken = run.num;
    part->imm = mr_run_imm(transfer->remote.token, run, t->round);
    part->last = s->left == run.num;
}

static void note_write_posted(struct mr_stripe_op *s, const struct mr_bulk_part *part)
{
    struct mr_track *t = s->transfer->track;
    struct mr_block_run run = {(uint32_t)(part->at >> t->block_shift), (uint32_t)part->taken};

    mr_blocks_remove(&t->todo, run);
    t->written += run.num;
    mr_stat_add(MR_STAT_REWRITTEN, t->round > 0);
    mr_rail_add(s->sub->rail, MR_RAIL_RESENT, t->round > 0);
    if (s->probed)
        return;
    s->probed = true;
    s->probe = run.first;
}

static void note_stripe_written(struct mr_stripe_op *s)
{
    struct mr_transfer *transfer = s->transfer;
    struct mr_track *t = transfer->track;
    struct mr_hdr hdr = {.kind = MR_TRACK_WRITTEN,
                         .tag = t->round,
                         .ctx = transfer->remote.token,
                         .rreq = transfer->remote.serial,
                         .rank = t->early,
                         .sreq = (uintptr_t)transfer};

    s->state = MR_STRIPE_WRITTEN;
    if (t->asked || t->todo.count)
        return;
    for (unsigned i = 0; i < transfer->num; i++)
        if (transfer->stripe[i].state != MR_STRIPE_WRITTEN)
            return;
    t->asked = true;
    mr_bulk_send_control(transfer->peer, &hdr, NULL, 0);
}

static const struct mr_track_ops track_ops = {.choose_write = choose_write,
                                              .write_posted = note_write_posted,
                                              .stripe_written = note_stripe_written,
                                              .free = free_track};

int mr_track_begin(struct mr_transfer *transfer)
{
    uint64_t len = transfer->remote.len;
    struct mr_track *t = calloc(1, sizeof *t);

    if (!t)
        return -ENOMEM;
    t->ops = &track_ops;
    t->block_shift = (uint8_t)mr_block_shift(len);
    if (mr_blocks_init(&t->todo, (uint32_t)((len - 1) >> t->block_shift) + 1, true)) {
        free(t);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < transfer->num; i++) {
        struct mr_stripe_op *s = &transfer->stripe[i];

        s->left = ((s->offset + s->len - 1) >> t->block_shift) - (s->offset >> t->block_shift) + 1;
    }
    if (!mr_bulk_of(transfer->peer)->write_shift)
        mr_bulk_of(transfer->peer)->write_shift = WRITE_SHIFT_MAX;
    transfer->track = t;
    return 0;
}

static struct mr_transfer *find_asked_transfer(const struct mr_peer *p, uint64_t cookie)
{
    for (struct mr_transfer *transfer = mr_bulk_of(p)->transfers; transfer; transfer = transfer->next)
        if ((uintptr_t)transfer == cookie && transfer->track && transfer->track->asked)
            return transfer;
    return NULL;
}

static struct mr_transfer *find_landed_transfer(const struct mr_peer *p, uint32_t token, uint64_t serial)
{
    for (struct mr_transfer *transfer = mr_bulk_of(p)->transfers; transfer; transfer = transfer->next)
        if (transfer->track && transfer->remote.token == token && transfer->remote.serial == serial)
            return transfer;
    return NULL;
}

/* A round has ended with lost blocks: later writes are shorter or longer. */
static void adapt_writes(struct mr_transfer *transfer, uint32_t lost)
{
    struct mr_peer *p = transfer->peer;

    if (transfer->track->written)
        mr_bulk_of(p)->write_shift =
            (uint8_t)mr_run_adapt(mr_bulk_of(p)->write_shift, lost, transfer->track->written, WRITE_SHIFT_MAX);
    transfer->track->written = 0;
}

static void handle_landed(struct mr_peer *p, const struct mr_hdr *hdr)
{
    struct mr_transfer *transfer = find_landed_transfer(p, hdr->ctx, hdr->rreq);

    if (!transfer)
        return; /* already ended */
    transfer->track->early = !transfer->track->asked;
    if (transfer->track->early)
        return;
    adapt_writes(transfer, 0);
    mr_stripes_leave(transfer);
    mr_bulk_finish(transfer);
}

/* Nothing has arrived over this link for many rounds, though its adapter reports no error. */
static bool is_fruitless(struct mr_stripe_op *s, bool came)
{
    if (!s->probed)
        return false;
    s->probed = false;
    s->fruitless = came ? 0 : (uint8_t)(s->fruitless + 1);
    return s->fruitless >= FRUITLESS_MAX;
}

static void rewrite_stripe(struct mr_stripe_op *s)
{
    const struct mr_track *t = s->transfer->track;
    bool usable = s->state == MR_STRIPE_WRITTEN && s->sub->state == MR_SUB_OPEN;
    char name[MR_SUB_NAME];

    if (usable && is_fruitless(s, !mr_blocks_has(&t->todo, s->probe))) {
        mr_log(MR_LOG_WARN, "rank %d on %s, %s: what is written does not come any more", s->sub->peer->rank,
               s->sub->peer->address->host, mr_sub_name(s->sub, name));
        s->fruitless = 0;
        mr_sub_break(s->sub);
        return;
    }
    if (!usable || !s->left)
        return;
    s->state = MR_STRIPE_WAITS;
    s->measured = false;
    mr_stripe_start(s, 0);
}

/* Unconfirmed stripes, and those on a broken subchannel, are written after it is gone at both ends (moves.c). */
static void handle_missing(struct mr_transfer *transfer, const struct mr_hdr *hdr, const struct mr_missing_run *run,
                           size_t n)
{
    struct mr_track *t = transfer->track;

    for (size_t i = 0; i < n; i++)
        mr_blocks_add(&t->todo, (struct mr_block_run){run[i].first, run[i].num});
    if (hdr->rank)
        return;
    adapt_writes(transfer, t->todo.count);
    t->asked = false;
    t->round = (uint8_t)hdr->tag;
    for (unsigned i = 0; i < transfer->num; i++) {
        struct mr_stripe_op *s = &transfer->stripe[i];
        uint64_t to = (s->offset + s->len - 1) >> t->block_shift;

        s->left = 0;
        for (uint32_t at = (uint32_t)(s->offset >> t->block_shift);
             (at = mr_blocks_find(&t->todo, at, true)) <= to && at < t->todo.num; at++)
            s->left++;
    }
    for (unsigned i = 0; i < transfer->num; i++)
        rewrite_stripe(&transfer->stripe[i]);
}

bool mr_track_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_transfer *transfer;

    if (hdr->kind < MR_TRACK_WRITTEN || hdr->kind > MR_TRACK_MISSING)
        return false;
    if (hdr->kind == MR_TRACK_WRITTEN || hdr->kind == MR_TRACK_LANDED) {
        (hdr->kind == MR_TRACK_WRITTEN ? handle_written : handle_landed)(p, hdr);
        return true;
    }
    transfer = find_asked_transfer(p, hdr->sreq);
    if (!transfer)
        mr_log(MR_LOG_WARN, "rank %d on %s told of a message that it was not asked about", p->rank, p->address->host);
    else
        handle_missing(transfer, hdr, payload, len / sizeof(struct mr_missing_run));
    return true;
}
