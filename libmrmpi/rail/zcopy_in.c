/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages as datagrams, the receiver's side: queue pairs are taken, cleared for the sender, and settled. */
#include "libmrmpi/rail/zcopy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/rail/repair.h"

#define RUNS_MAX 256 /* that a word names */
/*
 * Receives that are posted before the sender is cleared for all; it takes longer to come to the rest. Not so of
 * datagrams that are shorter, or come over more subchannels, than this: they come as fast as receives are posted.
 */
#define HEAD       16
#define HEAD_SIZE  2048
#define HEAD_PARTS 2

#define DATAGRAM_MAX 4096 /* bytes */
/* Intakes in a row of a subchannel to which nothing came though all was sent, until it is given up. */
#define FRUITLESS_MAX 20
/* What is late is waited for as long as mr_track_hold() says, or so many times the time between two datagrams. */
#define GAPS        8
#define GAPS_MAX_NS 20000000ull

static unsigned char *address(const struct mr_inflow *f, uint32_t block)
{
    return (unsigned char *)(uintptr_t)f->region->addr + (uint64_t)block * f->size;
}

/* ---- which subchannels, which blocks ----------------------------------------------------------------------------- */

/* What every subchannel for datagrams can carry; 0: there is none. */
static uint32_t datagram_size(const struct mr_peer *p)
{
    uint32_t size = 0;

    for (unsigned i = 0; i < p->num_now; i++) {
        const struct mr_sub *sub = &p->now[i];
        uint32_t mtu;

        if (!mr_link_kinds[sub->kind]->run)
            continue;
        mtu = mr_udp_mtu(&sub->rail->addr, &p->card->rail[sub->remote_rail]);
        size = !size || mtu < size ? mtu : size;
    }
    return size < DATAGRAM_MAX ? size : DATAGRAM_MAX;
}

static bool in_part(const struct mr_inflow *f, unsigned i, uint32_t *from, uint32_t *to)
{
    *from = (uint32_t)f->part[i].offset;
    *to = (uint32_t)(f->part[i].offset + f->part[i].len);
    return mr_blocks_find(&f->todo, *from, true) < *to;
}

static uint32_t usable_subs(const struct mr_inflow *f)
{
    uint32_t set = 0;

    for (unsigned i = 0; i < f->peer->num_now; i++)
        set |= (uint32_t)mr_inflow_usable(&f->peer->now[i], f->size) << i;
    return mr_spread_narrow(f->peer, MR_POLICY_LARGE, set);
}

/* May the policy have it there? A message that is not striped stays with its subchannel while that one works. */
static bool is_wanted(const struct mr_inflow *f, const struct mr_sub *sub)
{
    const struct mr_policy_kind *kind = mr_net.policy[MR_POLICY_LARGE].kind;
    uint32_t set;

    if (kind->stripes && kind->where == MR_WHERE_ALL)
        return true;
    set = usable_subs(f);
    if (!kind->stripes && f->parts == 1 && set >> f->part[0].sub & 1)
        return mr_sub_place(sub) == f->part[0].sub;
    return set >> mr_sub_place(sub) & 1;
}

/*
 * The blocks that this subchannel takes next lie in [*from, *to); *most of them. False: none. Its own part comes first;
 * then it helps the others, if there is enough left that this pays, or nobody else is at it.
 */
static bool choose_blocks(const struct mr_inflow *f, const struct mr_sub *sub, uint32_t *from, uint32_t *to,
                          uint32_t *most)
{
    *most = mr_pool_depth(sub->rail);
    if (!is_wanted(f, sub))
        return false;
    for (unsigned i = 0; i < f->parts; i++)
        if (f->part[i].sub == mr_sub_place(sub) && in_part(f, i, from, to))
            return true;
    if (f->intakes && (uint64_t)f->todo.count * f->size < 4 * mr_config.stripe_min)
        return false;
    *from = 0;
    *to = f->todo.num;
    if (f->intakes && *most > (f->todo.count + 1) / 2)
        *most = (f->todo.count + 1) / 2;
    return f->todo.count;
}

static void make_parts(struct mr_inflow *f)
{
    struct mr_peer *p = f->peer;
    struct mr_load some[MR_SUBS_MAX];
    uint32_t usable = usable_subs(f);

    for (unsigned i = 0; i < p->num_now; i++)
        some[i] = (struct mr_load){
            .up = usable >> i & 1, .weight = p->load[i].weight, .queued = p->now[i].flows * f->len};
    f->parts = mr_sched_plan(&mr_net.policy[MR_POLICY_LARGE], &p->inflow_turn, some, p->num_now, f->len,
                             mr_config.stripe_min, f->size, f->part);
    for (unsigned i = 0; i < f->parts; i++) {
        f->part[i].len = (f->part[i].len + f->size - 1) / f->size;
        f->part[i].offset /= f->size;
    }
}

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
    f->size = datagram_size(p);
    num = f->size ? mr_zcopy_blocks(r->len, f->size) : 0;
    if (!num || mr_blocks_init(&f->have, num, false) || mr_blocks_init(&f->todo, num, true)) {
        mr_blocks_free(&f->have);
        free(f);
        return num ? -ENOMEM : -EAGAIN;
    }
    if (!++mr_net.inflow_serial)
        mr_net.inflow_serial++;
    out->serial = f->serial = mr_net.inflow_serial;
    out->token = f->size;
    make_parts(f);
    f->next = p->inflows;
    f->at = &p->inflows;
    if (f->next)
        f->next->at = &f->next;
    p->inflows = f;
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
    in->peer->num_late++;
    mr_net.num_catching++;
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

static void move(const struct mr_intake *in, const struct mr_move *m, unsigned char *aside)
{
    const struct mr_inflow *f = in->inflow;
    unsigned char *from = m->from == MR_REPAIR_ASIDE ? aside : address(f, in->block[m->from]);
    unsigned char *to = m->to == MR_REPAIR_ASIDE ? aside : address(f, in->block[m->to]);
    /* what lies aside, or in a place, is as long as the place that it goes to; none is too long for where it lies */
    uint32_t len = m->to == MR_REPAIR_ASIDE ? mr_zcopy_bytes(f->len, f->size, in->block[m->from])
                                            : mr_zcopy_bytes(f->len, f->size, in->block[m->to]);

    memcpy(to, from, len);
}

/* All that came comes to its place. False: no memory for that, and so nothing is where it should be. */
static bool repair(struct mr_intake *in)
{
    struct mr_move *out = malloc(((size_t)in->num + in->num / 2 + 1) * sizeof *out);
    uint16_t *work = malloc(in->num * sizeof *work);
    unsigned char aside[DATAGRAM_MAX];
    unsigned moves = 0;

    if (out && work)
        moves = mr_repair_plan(in->lies, in->num, work, out);
    for (unsigned i = 0; i < moves; i++)
        move(in, &out[i], aside);
    mr_stat_add(MR_STAT_UD_MISPLACED, moves);
    free(out);
    free(work);
    return out && work;
}

/* True if all that was cleared is there. What is not has to be cleared again. */
static bool settle(struct mr_intake *in)
{
    struct mr_inflow *f = in->inflow;
    bool ordered = in->came == in->num;
    unsigned missing = 0;

    for (unsigned i = 0; ordered && i < in->num; i++)
        ordered = in->lies[i] == i;
    if (!ordered && !repair(in))
        memset(in->lies, 0xff, in->num * sizeof in->lies[0]);
    for (unsigned i = 0; i < in->num; i++) {
        bool there = in->lies[i] == i;

        mr_blocks_add(there ? &f->have : &f->todo, (struct mr_run){in->block[i], 1});
        missing += !there;
    }
    mr_stat_add(MR_STAT_UD_MISSING, missing);
    return !missing;
}

/* A path over which nothing has come for many rounds is of no use, though its adapters have nothing to say. */
static void judge(struct mr_intake *in)
{
    struct mr_sub *sub = in->sub;
    struct mr_peer *p = in->peer;
    char name[MR_SUB_NAME];

    if (in->came) {
        sub->fruitless = p->hasty = 0;
        return;
    }
    if (!in->written)
        return;
    p->hasty += p->hasty < 8;
    if (++sub->fruitless < FRUITLESS_MAX)
        return;
    sub->fruitless = 0;
    mr_log(MR_LOG_WARN, "rank %d on %s, %s: what is sent does not come any more", p->rank, p->card->host,
           mr_sub_name(sub, name));
    mr_sub_break(sub);
}

static void detach(struct mr_intake *in)
{
    for (struct mr_intake **at = in->inflow ? &in->inflow->intakes : NULL; at && *at; at = &(*at)->next)
        if (*at == in) {
            *at = in->next;
            break;
        }
    in->peer->num_intakes--;
    in->sub->flows--;
    if (!in->written)
        return;
    in->peer->num_late--;
    mr_net.num_catching--;
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
    return some && f->have.count < f->have.num && mr_inflow_usable(sub, f->size) && !(mr_net.starving && f->intakes);
}

/* None of its receives is posted any more. */
static void finish(struct mr_intake *in)
{
    struct mr_inflow *f = in->inflow;
    struct mr_pool_qp *q = in->q;
    struct mr_sub *sub = in->sub;
    bool clean, some = in->came;

    detach(in);
    clean = f && settle(in) && !in->stopped;
    if (f && !in->peer->error)
        judge(in);
    if (f)
        f->asleep |= in->recalled && !in->written;
    free(in->lies);
    free(in);
    if (!f || !goes_on(f, sub, some)) {
        mr_pool_give(q, clean);
        mr_net.serve_due = true;
    } else if (!mr_pool_again(q, clean) && !begin(f, sub, q)) {
        mr_pool_give(q, true);
        mr_net.serve_due = true;
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
        err = mr_pool_post(in->q, address(f, in->block[at]), bytes < f->len - offset ? bytes : f->len - offset, f->size,
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
    f->peer->num_intakes++;
    sub->flows++;
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

    if (!choose_blocks(f, sub, &from, &to, &most) || !(in = make_intake(f, sub, q, most)))
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

    if (!f->todo.count || !mr_inflow_usable(sub, f->size) || !choose_blocks(f, sub, &from, &to, &most))
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
    return (uint64_t)sub->fruitless << 40 | (uint64_t)mr_intakes_on(f, sub) << 32 | sub->flows;
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

bool mr_zcopy_in_word(struct mr_peer *p, const struct mr_hdr *hdr)
{
    if (hdr->kind != ZCOPY_WRITTEN)
        return false;
    for (struct mr_inflow *f = p->inflows; f; f = f->next) {
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
    for (struct mr_inflow *f = p->inflows; f; f = f->next)
        for (struct mr_intake *in = f->intakes; in; in = in->next)
            if (in->written && in->due_ns <= now_ns)
                mr_intake_stop(in);
}

/* ---- breaking ---------------------------------------------------------------------------------------------------- */

void mr_zcopy_sub_broken(struct mr_sub *sub)
{
    for (struct mr_inflow *f = sub->peer->inflows; f; f = f->next)
        for (struct mr_intake *in = f->intakes; in; in = in->next)
            if (in->sub == sub && !in->stopped) {
                mr_stat_add(MR_STAT_MOVED, 1);
                mr_rail_add(sub->rail, MR_RAIL_MOVED, 1);
                mr_intake_stop(in);
            }
}

void mr_zcopy_lost(struct mr_peer *p)
{
    for (struct mr_inflow *f = p->inflows; f; f = f->next)
        for (struct mr_intake *in = f->intakes; in; in = in->next)
            mr_intake_stop(in);
}

void mr_zcopy_free(struct mr_peer *p)
{
    struct mr_inflow *f;

    while ((f = p->inflows)) {
        struct mr_intake *in;

        while ((in = f->intakes)) {
            f->intakes = in->next;
            free(in->lies);
            free(in);
        }
        mr_zcopy_close(f->region);
    }
}
