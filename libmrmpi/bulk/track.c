/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages over links that lose writes (UC): zero-copy as in M. Koop, R. Kumar, D. Panda, "Can Software
 * Reliability Outperform Hardware Reliability on High Performance Interconnects?", ICS 2008, section 6.3.
 *
 * The sender writes the message in rounds, the first of which has all of it. Each write carries a notification that
 * tells the round and the run of blocks that it brings (bulk/blocks.h). When all writes of a round have left, the
 * sender says WRITTEN (the paper's FIN) by a word of the virtual channel, which is reliable. The receiver says LANDED
 * (ACK) when all is there, and does not wait for WRITTEN: its rank may leave MPI then. A sender from whose adapter some
 * write is not back cannot end with that; its WRITTEN then says so, and LANDED is said again. If nothing has come for some round-trip times, it answers MISSING (NACK) with the
 * blocks that are not there, and those are what the next round has. LANDED ends the send; the receive ends when the
 * last block comes.
 *
 * What was missing may still come: WRITTEN may have overtaken it. It is then written twice, and the second write must
 * not come when the receive is over. So from MISSING on only writes of the new round count. A block is written again
 * over the same link, which keeps order: once the later write is there, the earlier one is there or will never be. If
 * the link's subchannel has broken, over another one, after the queue pairs of both ends are gone (peer/recovery.c).
 *
 * Writes are long while none is lost, and get shorter with what is lost: a packet that is lost costs the whole write.
 * They carry the message's token and serial number with them in words, so that a word that comes late finds nothing.
 */
#include "libmrmpi/bulk/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"

#define CATCHES (1u << MR_RUN_INDEX_BITS)

#define WRITE_SHIFT_MAX 20  /* the longest write: 1 MB */
#define WRITES_MAX      256 /* of the first round, about: each takes a receive buffer of the peer */
#define RUNS_MAX        256 /* that a word names */
/* Rounds in a row in which the first write over a link did not come until it is given up. What is under way is not
   older, so that rounds can be told apart by MR_RUN_ROUND_BITS bits. */
#define FRUITLESS_MAX 20

/*
 * How long a receiver waits for what is late, after all has left the sender: half of the round-trip time of packets,
 * which contains that of their queues, within these bounds; twice as long for each time that it was too early (hasty).
 */
#define HOLD_MIN_NS   50000ull
#define HOLD_FIRST_NS 200000ull
#define HOLD_MOST_NS  1000000ull
#define HOLD_MAX_NS   10000000ull
#define HASTY_MAX     8

/* Words, after those of peer/recovery.c. tag: the round; sreq: the sender's number for the message. */
enum track_control {
    CONTROL_WRITTEN = MR_CONTROL_BULK, /* ctx, rreq: token and serial number of the receive; rank: 1 if LANDED came early */
    CONTROL_LANDED,  /* ctx, rreq: the same */
    CONTROL_MISSING, /* payload: struct missing_run; rank: 1 if another word says more */
};

struct missing_run {
    uint16_t first, num;
};

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

/* A receive that is open. */
struct mr_catch {
    struct region *region;
    struct mr_peer *peer;
    struct mr_catch *next, **at; /* among those of its peer that wait for what is late; at NULL: it is not */
    struct mr_blocks have;
    uint32_t index, serial;
    uint8_t round;
    bool late;       /* something of the round before has come in this one */
    uint64_t cookie; /* at: the sender's number for the message */
    uint64_t due_ns; /* at: when what is missing is asked for */
};

struct mr_catches {
    struct mr_catch *entry[CATCHES];
    uint32_t landed[CATCHES]; /* serial numbers of the last ones of which LANDED was said */
    unsigned num;
    uint32_t next, serial; /* the one that was given last */
};

uint64_t mr_track_hold(const struct mr_peer *p)
{
    uint64_t ns = p->out.rtt.srtt_ns ? p->out.rtt.srtt_ns / 2 : HOLD_FIRST_NS;

    ns = (ns < HOLD_MIN_NS ? HOLD_MIN_NS : ns > HOLD_MOST_NS ? HOLD_MOST_NS : ns) << mr_bulk_of(p)->hasty;
    return ns < HOLD_MAX_NS ? ns : HOLD_MAX_NS;
}

int mr_track_open(struct region *r, uint64_t len, struct mr_remote *out)
{
    struct mr_catches *all = mr_bulk.catches ? mr_bulk.catches : (mr_bulk.catches = calloc(1, sizeof *mr_bulk.catches));
    struct mr_catch *c;

    if (!all)
        return -ENOMEM;
    if (all->num == CATCHES)
        return -EAGAIN;
    c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    if (mr_blocks_init(&c->have, (uint32_t)((len - 1) >> mr_block_shift(len)) + 1, false)) {
        free(c);
        return -ENOMEM;
    }
    do
        all->next = (all->next + 1) % CATCHES;
    while (all->entry[all->next]);
    if (!++all->serial)
        all->serial++;
    all->entry[all->next] = c;
    all->num++;
    c->region = r;
    c->peer = mr_peers.peer[r->rank];
    out->token = c->index = all->next;
    out->serial = c->serial = all->serial;
    r->caught = c;
    return 0;
}

static void stop_waiting(struct mr_catch *c)
{
    if (!c->at)
        return;
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    c->at = NULL;
    mr_bulk.num_catching--;
}

void mr_track_close(struct region *r)
{
    struct mr_catch *c = r->caught;

    stop_waiting(c);
    mr_bulk.catches->entry[c->index] = NULL;
    mr_bulk.catches->num--;
    mr_blocks_free(&c->have);
    free(c);
}

static void say_landed(struct mr_peer *p, uint32_t token, uint64_t serial)
{
    struct mr_hdr hdr = {.kind = CONTROL_LANDED, .ctx = token, .rreq = serial};

    mr_bulk_say(p, &hdr, NULL, 0);
}

/* The end of c: its owner closes the region. */
static void all_landed(struct mr_catch *c)
{
    struct region *r = c->region;

    say_landed(c->peer, c->index, c->serial);
    mr_bulk.catches->landed[c->index] = c->serial;
    stop_waiting(c);
    mr_channel_up.put_landed(r->rank, r->base.rreq, 0);
}

void mr_track_landed(uint32_t imm)
{
    struct mr_catch *c = mr_bulk.catches ? mr_bulk.catches->entry[mr_run_index(imm)] : NULL;

    if (!c)
        return;
    if (mr_run_round(imm) != c->round % MR_RUN_ROUNDS) { /* it was not lost */
        mr_bulk_of(c->peer)->hasty += !c->late && mr_bulk_of(c->peer)->hasty < HASTY_MAX;
        c->late = true;
        return;
    }
    mr_blocks_add(&c->have, mr_run_of(imm));
    if (c->have.count == c->have.num)
        all_landed(c);
    else if (c->at)
        c->due_ns = mr_clock_ns() + mr_track_hold(c->peer);
}

static bool has_said_landed(const struct mr_hdr *written)
{
    return mr_bulk.catches && written->ctx < CATCHES && mr_bulk.catches->landed[written->ctx] == written->rreq;
}

static void on_written(struct mr_peer *p, const struct mr_hdr *hdr)
{
    struct mr_catch *c = mr_bulk.catches && hdr->ctx < CATCHES ? mr_bulk.catches->entry[hdr->ctx] : NULL;

    if (!c || c->serial != hdr->rreq || c->peer != p) {
        if (hdr->rank || !has_said_landed(hdr))
            say_landed(p, hdr->ctx, hdr->rreq);
        return;
    }
    if (c->at || c->round != (uint8_t)hdr->tag)
        return; /* it says this once in each round */
    if (c->round && !c->late && mr_bulk_of(p)->hasty)
        mr_bulk_of(p)->hasty--;
    c->cookie = hdr->sreq;
    c->due_ns = mr_clock_ns() + mr_track_hold(p);
    c->next = mr_bulk_of(p)->catching;
    if (c->next)
        c->next->at = &c->next;
    c->at = &mr_bulk_of(p)->catching;
    mr_bulk_of(p)->catching = c;
    mr_bulk.num_catching++;
    mr_peer_watch(p);
}

/* As many runs as fit into a word, of those from block *at on. */
static size_t list_missing(const struct mr_blocks *have, uint32_t *at, struct missing_run *run, size_t most)
{
    size_t n = 0;

    for (; n < most; n++) {
        uint32_t first = mr_blocks_find(have, *at, false);

        *at = mr_blocks_find(have, first, true);
        if (first == have->num)
            break;
        run[n] = (struct missing_run){(uint16_t)first, (uint16_t)(*at - first)};
    }
    return n;
}

static void say_missing(struct mr_catch *c)
{
    struct mr_peer *p = c->peer;
    struct missing_run run[RUNS_MAX];
    size_t most = mr_channel_up.eager_max(p->vc) / sizeof run[0];
    uint32_t at = 0;

    stop_waiting(c);
    c->round++;
    c->late = false;
    do {
        size_t n = list_missing(&c->have, &at, run, most < RUNS_MAX ? most : RUNS_MAX);
        struct mr_hdr hdr = {.kind = CONTROL_MISSING, .sreq = c->cookie, .tag = c->round};

        hdr.rank = mr_blocks_find(&c->have, at, false) < c->have.num;
        mr_bulk_say(p, &hdr, run, n * sizeof run[0]);
    } while (mr_blocks_find(&c->have, at, false) < c->have.num && !p->error);
}

void mr_track_poll(struct mr_peer *p, uint64_t now_ns)
{
    struct mr_catch *next;

    for (struct mr_catch *c = mr_bulk_of(p)->catching; c && !p->error; c = next) {
        next = c->next;
        if (c->due_ns <= now_ns)
            say_missing(c);
    }
}

/* ---- sender ------------------------------------------------------------------------------------------------------ */

static unsigned log2_up(uint64_t n)
{
    return n > 1 ? 64 - (unsigned)__builtin_clzll(n - 1) : 0;
}

static void put_end(struct mr_put *put)
{
    for (unsigned i = 0; i < put->num; i++)
        mr_bulk_of(put->peer)->num_unconfirmed -= mr_bulk_of(put->peer)->num_unconfirmed && put->stripe[i].state == STRIPE_UNCONFIRMED;
    mr_blocks_free(&put->track->todo);
    free(put->track);
}

static void stripe_cut(const struct mr_stripe_op *s, const struct mr_link *l, struct mr_bulk_part *part)
{
    const struct mr_put *put = s->put;
    const struct mr_track *t = put->track;
    unsigned block = t->block_shift, shift = mr_bulk_of(put->peer)->write_shift,
             least = t->round ? 0 : block + log2_up(t->todo.num / WRITES_MAX);
    uint64_t from = s->offset >> block, to = (s->offset + s->len - 1) >> block, end;
    struct mr_run run;

    shift = shift < least ? least : shift;
    shift = shift < block ? block : shift;
    while (shift > block && 1ull << shift > l->rail->max_msg)
        shift--;
    run = mr_blocks_run(&t->todo, (uint32_t)from, (uint32_t)to + 1, 1u << (shift - block));
    part->at = (uint64_t)run.first << block;
    end = (uint64_t)(run.first + run.num) << block;
    part->len = (end < s->offset + s->len ? end : s->offset + s->len) - part->at;
    part->taken = run.num;
    part->imm = mr_run_imm(put->remote.token, run, t->round);
    part->last = s->left == run.num;
}

static void stripe_posted(struct mr_stripe_op *s, const struct mr_bulk_part *part)
{
    struct mr_track *t = s->put->track;
    struct mr_run run = {(uint32_t)(part->at >> t->block_shift), (uint32_t)part->taken};

    mr_blocks_remove(&t->todo, run);
    t->written += run.num;
    mr_stat_add(MR_STAT_REWRITTEN, t->round > 0);
    mr_rail_add(s->sub->rail, MR_RAIL_RESENT, t->round > 0);
    if (s->probed)
        return;
    s->probed = true;
    s->probe = run.first;
}

static void stripe_written(struct mr_stripe_op *s)
{
    struct mr_put *put = s->put;
    struct mr_track *t = put->track;
    struct mr_hdr hdr = {.kind = CONTROL_WRITTEN,
                         .tag = t->round,
                         .ctx = put->remote.token,
                         .rreq = put->remote.serial,
                         .rank = t->early,
                         .sreq = (uintptr_t)put};

    s->state = STRIPE_WRITTEN;
    if (t->asked || t->todo.count)
        return;
    for (unsigned i = 0; i < put->num; i++)
        if (put->stripe[i].state != STRIPE_WRITTEN)
            return;
    t->asked = true;
    mr_bulk_say(put->peer, &hdr, NULL, 0);
}

static const struct mr_track_ops ops = {
    .cut = stripe_cut, .posted = stripe_posted, .written = stripe_written, .end = put_end};

int mr_track_begin(struct mr_put *put)
{
    uint64_t len = put->remote.len;
    struct mr_track *t = calloc(1, sizeof *t);

    if (!t)
        return -ENOMEM;
    t->ops = &ops;
    t->block_shift = (uint8_t)mr_block_shift(len);
    if (mr_blocks_init(&t->todo, (uint32_t)((len - 1) >> t->block_shift) + 1, true)) {
        free(t);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < put->num; i++) {
        struct mr_stripe_op *s = &put->stripe[i];

        s->left = ((s->offset + s->len - 1) >> t->block_shift) - (s->offset >> t->block_shift) + 1;
    }
    if (!mr_bulk_of(put->peer)->write_shift)
        mr_bulk_of(put->peer)->write_shift = WRITE_SHIFT_MAX;
    put->track = t;
    return 0;
}

static struct mr_put *find_put(const struct mr_peer *p, uint64_t cookie)
{
    for (struct mr_put *put = mr_bulk_of(p)->puts; put; put = put->next)
        if ((uintptr_t)put == cookie && put->track && put->track->asked)
            return put;
    return NULL;
}

static struct mr_put *find_landed(const struct mr_peer *p, uint32_t token, uint64_t serial)
{
    for (struct mr_put *put = mr_bulk_of(p)->puts; put; put = put->next)
        if (put->track && put->remote.token == token && put->remote.serial == serial)
            return put;
    return NULL;
}

/* One round has ended, and so much of it was lost. */
static void adapt(struct mr_put *put, uint32_t lost)
{
    struct mr_peer *p = put->peer;

    if (put->track->written)
        mr_bulk_of(p)->write_shift = (uint8_t)mr_run_adapt(mr_bulk_of(p)->write_shift, lost, put->track->written, WRITE_SHIFT_MAX);
    put->track->written = 0;
}

static void on_landed(struct mr_peer *p, const struct mr_hdr *hdr)
{
    struct mr_put *put = find_landed(p, hdr->ctx, hdr->rreq);

    if (!put)
        return; /* known already */
    put->track->early = !put->track->asked;
    if (put->track->early)
        return;
    adapt(put, 0);
    mr_bulk_finish(put);
}

/* A link over which nothing has come for many rounds is of no use, though its adapter has nothing to say. */
static bool is_fruitless(struct mr_stripe_op *s, bool came)
{
    if (!s->probed)
        return false;
    s->probed = false;
    s->fruitless = came ? 0 : (uint8_t)(s->fruitless + 1);
    return s->fruitless >= FRUITLESS_MAX;
}

static void restart(struct mr_stripe_op *s)
{
    const struct mr_track *t = s->put->track;
    bool usable = s->state == STRIPE_WRITTEN && s->sub->state == MR_SUB_OPEN;
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
    s->state = STRIPE_WAITS;
    s->measured = false;
    mr_stripe_start(s, 0);
}

/* What is orphaned, or will be, is written when its subchannel has broken at both ends. */
static void on_missing(struct mr_put *put, const struct mr_hdr *hdr, const struct missing_run *run, size_t n)
{
    struct mr_track *t = put->track;

    for (size_t i = 0; i < n; i++)
        mr_blocks_add(&t->todo, (struct mr_run){run[i].first, run[i].num});
    if (hdr->rank)
        return;
    adapt(put, t->todo.count);
    t->asked = false;
    t->round = (uint8_t)hdr->tag;
    for (unsigned i = 0; i < put->num; i++) {
        struct mr_stripe_op *s = &put->stripe[i];
        uint64_t to = (s->offset + s->len - 1) >> t->block_shift;

        s->left = 0;
        for (uint32_t at = (uint32_t)(s->offset >> t->block_shift);
             (at = mr_blocks_find(&t->todo, at, true)) <= to && at < t->todo.num; at++)
            s->left++;
    }
    for (unsigned i = 0; i < put->num; i++)
        restart(&put->stripe[i]);
}

bool mr_track_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_put *put;

    if (hdr->kind < CONTROL_WRITTEN || hdr->kind > CONTROL_MISSING)
        return false;
    if (hdr->kind == CONTROL_WRITTEN || hdr->kind == CONTROL_LANDED) {
        (hdr->kind == CONTROL_WRITTEN ? on_written : on_landed)(p, hdr);
        return true;
    }
    put = find_put(p, hdr->sreq);
    if (!put)
        mr_log(MR_LOG_WARN, "rank %d on %s told of a message that it was not asked about", p->rank, p->address->host);
    else
        on_missing(put, hdr, payload, len / sizeof(struct missing_run));
    return true;
}
