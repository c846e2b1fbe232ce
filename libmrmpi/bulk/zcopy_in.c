/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages as datagrams, the receiver's side: queue pairs are taken, cleared for the sender, and settled. */
#include "libmrmpi/bulk/zcopy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/bulk/repair.h"

#define RUNS_MAX 256 /* that a word names */
/*
 * Receives that are posted before the sender is cleared for all; it takes longer to come to the rest. Not so of
 * datagrams that are shorter, or come over more subchannels, than this: they come as fast as receives are posted.
 */
#define HEAD       16
#define HEAD_SIZE  2048
#define HEAD_PARTS 2

/* What is late is waited for as long as mr_track_hold() says, or so many times the time between two datagrams. */
#define GAPS        8
#define GAPS_MAX_NS 20000000ull

/* ---- life of a receive ------------------------------------------------------------------------------------------- */

int mr_zcopy_open(struct region *r, struct mr_peer *p, struct mr_remote *out)
{
    struct mr_inflow *f = calloc(1, sizeof *f);
    uint32_t num;

    if (!f)
        return -ENOMEM;
    f->region = r;
    f->peer = p;
    f->len = r->len;
    f->size = mr_inflow_datagram_size(p);
    num = f->size ? mr_zcopy_blocks(r->len, f->size) : 0;
    if (!num || mr_blocks_init(&f->have, num, false) || mr_blocks_init(&f->todo, num, true)) {
        mr_blocks_free(&f->have);
        free(f);
        return num ? -ENOMEM : -EAGAIN;
    }
    if (!++mr_bulk.inflow_serial)
        mr_bulk.inflow_serial++;
    out->serial = f->serial = mr_bulk.inflow_serial;
    out->token = f->size;
    mr_inflow_make_parts(f);
    f->next = mr_bulk_of(p)->inflows;
    f->at = &mr_bulk_of(p)->inflows;
    if (f->next)
        f->next->at = &f->next;
    mr_bulk_of(p)->inflows = f;
    r->inflow = f;
    mr_inflow_count(f); /* it is cleared from poll, after the receiver's answer has gone */
    return 0;
}

/* Something has come, or the sender says that all is written: on a slow path the next may take as long as those before.
 */
static void wait_for_more(struct mr_intake *in)
{
    uint64_t now = mr_clock_ns(), hold = mr_track_hold(in->peer),
             each = in->came ? (now - in->first_ns) / in->came * GAPS : 0;

    in->due_ns = now + (each < hold ? hold : each < GAPS_MAX_NS ? each : GAPS_MAX_NS);
}

/* All of it has left the sender. */
static void set_written(struct mr_intake *in)
{
    in->written = true;
    wait_for_more(in);
    mr_bulk_of(in->peer)->num_late++;
    mr_bulk.num_catching++;
    mr_peer_watch(in->peer);
}

void mr_intake_stop(struct mr_intake *in)
{
    if (in->stopped)
        return;
    in->stopped = true;
    mr_pool_stop(in->q);
}

/* Of one that has landed, or to which nothing was sent. */
void mr_zcopy_close(struct region *r)
{
    struct mr_inflow *f = r->inflow;

    for (struct mr_intake *in = f->intakes; in; in = in->next) {
        in->inflow = NULL;
        mr_intake_stop(in);
    }
    f->intakes = NULL;
    f->todo.count = 0;
    mr_inflow_count(f); /* no more */
    *f->at = f->next;
    if (f->next)
        f->next->at = f->at;
    mr_blocks_free(&f->have);
    mr_blocks_free(&f->todo);
    free(f);
}

/* ---- settling ---------------------------------------------------------------------------------------------------- */

static void detach(struct mr_intake *in)
{
    for (struct mr_intake **at = in->inflow ? &in->inflow->intakes : NULL; at && *at; at = &(*at)->next)
        if (*at == in) {
            *at = in->next;
            break;
        }
    in->peer->num_pending--;
    mr_bulk_sub_of(in->sub)->flows--;
    if (!in->written)
        return;
    mr_bulk_of(in->peer)->num_late--;
    mr_bulk.num_catching--;
}

/* The end of f: its owner closes the region. */
static void all_landed(struct mr_inflow *f)
{
    struct region *r = f->region;
    struct mr_hdr hdr = {.kind = ZCOPY_LANDED, .ctx = f->serial};

    mr_stat_add(MR_STAT_UD_ZCOPY, 1);
    mr_bulk_say(f->peer, &hdr, NULL, 0);
    mr_channel_up.put_landed(r->rank, r->base.rreq, 0);
}

static bool begin(struct mr_inflow *f, struct mr_sub *sub, struct mr_pool_qp *q);

/* It goes on with what is left, unless nothing came, or others wait and the message has another one. */
static bool goes_on(const struct mr_inflow *f, const struct mr_sub *sub, bool some)
{
    return some && f->have.count < f->have.num && mr_inflow_usable(sub, f->size) && !(mr_bulk.starving && f->intakes);
}

/* None of its receives is posted any more. */
static void finish(struct mr_intake *in)
{
    struct mr_inflow *f = in->inflow;
    struct mr_pool_qp *q = in->q;
    struct mr_sub *sub = in->sub;
    bool clean, some = in->came;

    detach(in);
    clean = f && mr_intake_settle(in) && !in->stopped;
    if (f && !in->peer->error)
        mr_intake_judge(in);
    if (f)
        f->asleep |= in->recalled && !in->written;
    free(in->lies);
    free(in);
    if (!f || !goes_on(f, sub, some)) {
        mr_pool_give(q, clean);
        mr_bulk.serve_due = true;
    } else if (!mr_pool_again(q, clean) && !begin(f, sub, q)) {
        mr_pool_give(q, true);
        mr_bulk.serve_due = true;
    }
    if (!f)
        return;
    if (f->have.count == f->have.num) {
        all_landed(f);
        return;
    }
    if (f->intakes)
        mr_inflow_feed(f);
    mr_inflow_count(f);
}

/* ---- up from the queue pairs ------------------------------------------------------------------------------------- */

static uint16_t number_of(const struct mr_intake *in, unsigned place, uint32_t imm, uint32_t len)
{
    const struct mr_inflow *f = in->inflow;
    unsigned number = mr_place_number(imm);

    if (mr_place_turn(imm) != in->q->turn || number >= in->num ||
        len != mr_zcopy_bytes(f->len, f->size, in->block[number])) {
        mr_stat_add(MR_STAT_UD_STRAY, 1);
        return MR_REPAIR_NONE;
    }
    /* the end of one that is too long for its place is lost */
    return len <= mr_zcopy_bytes(f->len, f->size, in->block[place]) ? (uint16_t)number : (uint16_t)MR_REPAIR_NONE;
}

static void arrived(struct mr_pool_qp *q, unsigned place, uint32_t imm, uint32_t len)
{
    struct mr_intake *in = q->owner;

    if (!in->came++)
        in->first_ns = in->peer->heard_ns = mr_clock_ns();
    if (in->inflow)
        in->lies[place] = number_of(in, place, imm, len);
    if (in->written)
        wait_for_more(in);
    if (in->came == in->num && !in->stopped)
        finish(in);
}

static void stopped(struct mr_pool_qp *q)
{
    struct mr_intake *in = q->owner;

    in->stopped = true;
    finish(in);
}

static const struct mr_pool_events events = {.arrived = arrived, .stopped = stopped};

/* ---- clearing ---------------------------------------------------------------------------------------------------- */

static void say_clear(const struct mr_intake *in, struct zcopy_clear *clear)
{
    struct mr_hdr hdr = {.kind = ZCOPY_CLEAR, .ctx = in->inflow->serial, .tag = mr_sub_tag(in->sub, 0)};

    mr_bulk_say(in->peer, &hdr, clear, sizeof *clear + clear->num_runs * sizeof clear->run[0]);
}

static void post_failed(struct mr_intake *in, int err)
{
    mr_log(MR_LOG_WARN, "rail %u: receives for a large message cannot be posted: %s", in->sub->rail->index,
           strerror(-err));
    set_written(in);
    mr_intake_stop(in);
}

/* Post the next places, most of them. False: all are, or it has failed. */
static bool post_places(struct mr_intake *in, unsigned most)
{
    const struct mr_inflow *f = in->inflow;
    uint32_t lkey = mr_memory_lkey(&f->region->reg->memory, in->sub->rail);
    unsigned at = in->q->posted, to = most < in->num - at ? at + most : in->num, end;

    for (; at < to && !in->stopped; at = end) {
        uint64_t offset = (uint64_t)in->block[at] * f->size, bytes;
        int err;

        for (end = at + 1; end < to && in->block[end] == in->block[end - 1] + 1; end++)
            ;
        bytes = (uint64_t)(end - at) * f->size;
        err = mr_pool_post(in->q, mr_inflow_address(f, in->block[at]), bytes < f->len - offset ? bytes : f->len - offset, f->size,
                           lkey);
        if (err)
            post_failed(in, err);
    }
    return at < in->num && !in->stopped;
}

/* The subchannels in turn, on each the queue pair that was cleared first: the sender goes in this order, too. */
static void post_rest(struct mr_inflow *f)
{
    uint32_t more;

    do {
        more = 0;
        for (struct mr_intake *in = f->intakes; in; in = in->next) {
            uint32_t bit = 1u << mr_sub_place(in->sub);

            if (!(more & bit) && post_places(in, HEAD))
                more |= bit;
        }
    } while (more);
}

static unsigned runs_of_word(const struct mr_peer *p)
{
    size_t n = (mr_channel_up.eager_max(p->vc) - sizeof(struct zcopy_clear)) / sizeof(struct mr_run);

    return n < RUNS_MAX ? (unsigned)n : RUNS_MAX;
}

/* Blocks to be cleared, from those of [from, to), as many as the word can name. */
static void collect(struct mr_inflow *f, uint32_t from, uint32_t to, struct mr_intake *in, unsigned most,
                    struct zcopy_clear *clear)
{
    unsigned runs = runs_of_word(f->peer);

    while (in->num < most && clear->num_runs < runs && (from = mr_blocks_find(&f->todo, from, true)) < to) {
        uint32_t end = mr_blocks_find(&f->todo, from, false), first = from;

        end = end < to ? end : to;
        end = end - from < most - in->num ? end : from + (most - in->num);
        for (; from < end; from++)
            in->block[in->num++] = from;
        clear->run[clear->num_runs++] = (struct mr_run){first, end - first};
        mr_blocks_remove(&f->todo, (struct mr_run){first, end - first});
    }
}

static struct mr_intake *make_intake(struct mr_inflow *f, struct mr_sub *sub, struct mr_pool_qp *q, uint32_t most)
{
    struct mr_intake *in = calloc(1, sizeof *in + most * sizeof in->block[0]), **end = &f->intakes;

    if (!in)
        return NULL;
    in->lies = malloc(most * sizeof in->lies[0]);
    if (!in->lies) {
        free(in);
        return NULL;
    }
    memset(in->lies, 0xff, most * sizeof in->lies[0]);
    in->q = q;
    in->peer = f->peer;
    in->inflow = f;
    in->sub = sub;
    while (*end)
        end = &(*end)->next;
    *end = in;
    f->peer->num_pending++;
    mr_bulk_sub_of(sub)->flows++;
    return in;
}

/*
 * Clear the sender for the next blocks, over this subchannel to this queue pair. False: there are none, or no memory.
 * The sender is cleared as soon as it cannot come to a place that is not posted yet: post_rest() follows.
 */
static bool begin(struct mr_inflow *f, struct mr_sub *sub, struct mr_pool_qp *q)
{
    union {
        struct zcopy_clear clear;
        unsigned char room[sizeof(struct zcopy_clear) + RUNS_MAX * sizeof(struct mr_run)];
    } word = {.clear = {.qpn = q->qpn, .qkey = q->qkey}};
    struct mr_intake *in;
    uint32_t from, to, most;

    if (!mr_inflow_choose_blocks(f, sub, &from, &to, &most) || !(in = make_intake(f, sub, q, most)))
        return false;
    collect(f, from, to, in, most, &word.clear);
    word.clear.turn = ++q->turn;
    q->owner = in;
    in->begun_ns = mr_clock_ns();
    post_places(in, f->size < HEAD_SIZE || f->parts > HEAD_PARTS ? in->num : HEAD);
    if (!in->stopped)
        say_clear(in, &word.clear);
    return true;
}

static bool feed_sub(struct mr_inflow *f, struct mr_sub *sub)
{
    struct mr_pool_qp *q;
    uint32_t from, to, most;

    if (!f->todo.count || !mr_inflow_usable(sub, f->size) || !mr_inflow_choose_blocks(f, sub, &from, &to, &most))
        return false;
    if (f->intakes && !mr_pool_prepare(sub->rail, 0))
        post_rest(f); /* to make a queue pair takes longer than the sender to come to what is not posted */
    if (!mr_inflow_may_take(f, sub))
        return false;
    q = mr_pool_take(sub->rail, &events, NULL);
    if (!q)
        return false;
    if (begin(f, sub, q))
        return true;
    mr_pool_give(q, true);
    return false;
}

/* Less goes first: over which something comes, that has the fewest of this message, or of all. */
static uint64_t cost_of(const struct mr_inflow *f, const struct mr_sub *sub)
{
    return (uint64_t)mr_bulk_sub_of(sub)->fruitless << 40 | (uint64_t)mr_intakes_on(f, sub) << 32 | mr_bulk_sub_of(sub)->flows;
}

void mr_inflow_feed(struct mr_inflow *f)
{
    struct mr_peer *p = f->peer;
    uint32_t tried = 0;

    while (f->todo.count && !p->error) {
        unsigned best = p->num_now;

        for (unsigned i = 0; i < p->num_now; i++)
            if (!(tried >> i & 1) && (best == p->num_now || cost_of(f, &p->now[i]) < cost_of(f, &p->now[best])))
                best = i;
        if (best == p->num_now)
            break;
        if (!feed_sub(f, &p->now[best]))
            tried |= 1u << best;
        mr_inflow_count(f);
    }
    post_rest(f);
}

/* ---- what the sender says, and time ------------------------------------------------------------------------------ */

bool mr_zcopy_in_control(struct mr_peer *p, const struct mr_hdr *hdr)
{
    if (hdr->kind != ZCOPY_WRITTEN)
        return false;
    for (struct mr_inflow *f = mr_bulk_of(p)->inflows; f; f = f->next) {
        f->asleep = false;
        for (struct mr_intake *in = f->serial == hdr->ctx ? f->intakes : NULL; in; in = in->next)
            if (in->q->qpn == hdr->rreq && in->q->turn == (uint16_t)hdr->tag && !in->written)
                set_written(in);
        mr_inflow_count(f);
    }
    return true;
}

void mr_zcopy_poll(struct mr_peer *p, uint64_t now_ns)
{
    for (struct mr_inflow *f = mr_bulk_of(p)->inflows; f; f = f->next)
        for (struct mr_intake *in = f->intakes; in; in = in->next)
            if (in->written && in->due_ns <= now_ns)
                mr_intake_stop(in);
}

/* ---- breaking ---------------------------------------------------------------------------------------------------- */

void mr_zcopy_sub_broken(struct mr_sub *sub)
{
    for (struct mr_inflow *f = mr_bulk_of(sub->peer)->inflows; f; f = f->next)
        for (struct mr_intake *in = f->intakes; in; in = in->next)
            if (in->sub == sub && !in->stopped) {
                mr_stat_add(MR_STAT_MOVED, 1);
                mr_rail_add(sub->rail, MR_RAIL_MOVED, 1);
                mr_intake_stop(in);
            }
}

void mr_zcopy_lost(struct mr_peer *p)
{
    for (struct mr_inflow *f = mr_bulk_of(p)->inflows; f; f = f->next)
        for (struct mr_intake *in = f->intakes; in; in = in->next)
            mr_intake_stop(in);
}

void mr_zcopy_free(struct mr_peer *p)
{
    struct mr_inflow *f;

    while ((f = mr_bulk_of(p)->inflows)) {
        struct mr_intake *in;

        while ((in = f->intakes)) {
            f->intakes = in->next;
            free(in->lies);
            free(in);
        }
        mr_zcopy_close(f->region);
    }
}
