/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages as datagrams, the receiver's side: batches of receives are posted, cleared and settled. */
#include "libmrmpi/net/zcopy/zcopy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/net/zcopy/repair.h"
#include "libmrmpi/verbs/verbs.h"

#define RUNS_MAX 256 /* of a CLEAR */
/*
 * Receives posted before the whole batch is cleared: the rest is posted before the sender comes to it. Datagrams
 * shorter than HEAD_SIZE, or over more subchannels than HEAD_PARTS, arrive as fast as receives are posted: then the
 * whole batch is posted first.
 */
#define FIRST       16
#define FIRST_SIZE  2048
#define FIRST_PARTS 2

/* Late datagrams are waited for as long as mr_track_hold() says, or so many times the mean time between two. */
#define GAPS        8
#define GAPS_MAX_NS 20000000ull

/* ---- life of a receive ------------------------------------------------------------------------------------------- */

int mr_zcopy_open(struct mr_bulk_region *r, struct mr_peer *p, struct mr_remote *out)
{
    struct mr_dgram_recv *recv = calloc(1, sizeof *recv);
    uint32_t num;

    if (!recv)
        return -ENOMEM;
    recv->region = r;
    recv->peer = p;
    recv->len = r->len;
    recv->size = mr_zcopy_datagram_size(p);
    num = recv->size ? mr_zcopy_blocks(r->len, recv->size) : 0;
    if (!num || mr_blocks_init(&recv->have, num, false) || mr_blocks_init(&recv->todo, num, true)) {
        mr_blocks_free(&recv->have);
        free(recv);
        return num ? -ENOMEM : -EAGAIN;
    }
    if (!++mr_bulk.dgram_serial)
        mr_bulk.dgram_serial++;
    out->serial = recv->serial = mr_bulk.dgram_serial;
    out->token = recv->size;
    mr_dgram_recv_plan(recv);
    recv->next = mr_bulk_of(p)->dgram_recvs;
    recv->at = &mr_bulk_of(p)->dgram_recvs;
    if (recv->next)
        recv->next->at = &recv->next;
    mr_bulk_of(p)->dgram_recvs = recv;
    r->dgrams = recv;
    mr_dgram_recv_queue(recv); /* it is cleared from poll, after the answer to the sender has gone */
    return 0;
}

/* A datagram or WRITTEN has arrived: on a slow path the next datagram may take as long as those before. */
static void extend_wait(struct mr_dgram_batch *batch)
{
    uint64_t now = mr_clock_ns(), hold = mr_track_hold(batch->peer),
             each = batch->came ? (now - batch->first_ns) / batch->came * GAPS : 0;

    batch->due_ns = now + (each < hold ? hold : each < GAPS_MAX_NS ? each : GAPS_MAX_NS);
}

/* The whole batch has left the sender. */
static void set_batch_written(struct mr_dgram_batch *batch)
{
    batch->written = true;
    extend_wait(batch);
    mr_bulk_of(batch->peer)->num_late_batches++;
    mr_bulk.num_late++;
    mr_peer_watch(batch->peer);
}

void mr_dgram_batch_stop(struct mr_dgram_batch *batch)
{
    if (batch->stopped)
        return;
    batch->stopped = true;
    mr_ud_pool_stop(batch->q);
}

/* Of a landed message, or a message of which nothing was sent. */
void mr_zcopy_close(struct mr_bulk_region *r)
{
    struct mr_dgram_recv *recv = r->dgrams;

    for (struct mr_dgram_batch *batch = recv->batches; batch; batch = batch->next) {
        batch->recv = NULL;
        mr_dgram_batch_stop(batch);
    }
    recv->batches = NULL;
    recv->todo.count = 0;
    mr_dgram_recv_queue(recv); /* no more */
    *recv->at = recv->next;
    if (recv->next)
        recv->next->at = recv->at;
    mr_blocks_free(&recv->have);
    mr_blocks_free(&recv->todo);
    free(recv);
}

/* ---- settling ---------------------------------------------------------------------------------------------------- */

static void unlist_batch(struct mr_dgram_batch *batch)
{
    for (struct mr_dgram_batch **at = batch->recv ? &batch->recv->batches : NULL; at && *at; at = &(*at)->next)
        if (*at == batch) {
            *at = batch->next;
            break;
        }
    batch->peer->num_pending--;
    mr_bulk_sub_of(batch->sub)->flows--;
    if (!batch->written)
        return;
    mr_bulk_of(batch->peer)->num_late_batches--;
    mr_bulk.num_late--;
}

/* The end of a receive: its owner closes the region. */
static void complete_dgram_recv(struct mr_dgram_recv *recv)
{
    struct mr_bulk_region *r = recv->region;
    struct mr_hdr hdr = {.kind = MR_ZCOPY_LANDED, .ctx = recv->serial};

    mr_stat_add(MR_STAT_UD_ZCOPY, 1);
    mr_bulk_send_control(recv->peer, &hdr, NULL, 0);
    mr_vc_up.put_landed(r->rank, r->base.rreq, 0);
}

static bool clear_batch(struct mr_dgram_recv *recv, struct mr_sub *sub, struct mr_ud_pool_qp *q);

/*
 * True if its queue pair takes the next batch: not if nothing arrived there, or others wait and the message has another
 * queue pair.
 */
static bool keeps_qp(const struct mr_dgram_recv *recv, const struct mr_sub *sub, bool some)
{
    return some && recv->have.count < recv->have.num && mr_zcopy_sub_usable(sub, recv->size) &&
           !(mr_bulk.starving && recv->batches);
}

/* None of its receives is posted any more: settles the batch, and reuses its queue pair or gives it back. */
static void finish_batch(struct mr_dgram_batch *batch)
{
    struct mr_dgram_recv *recv = batch->recv;
    struct mr_ud_pool_qp *q = batch->q;
    struct mr_sub *sub = batch->sub;
    bool clean, some = batch->came;

    unlist_batch(batch);
    clean = recv && mr_dgram_batch_settle(batch) && !batch->stopped;
    if (recv && !batch->peer->error)
        mr_dgram_batch_judge(batch);
    if (recv)
        recv->asleep |= batch->recalled && !batch->written;
    free(batch->lies);
    free(batch);
    if (!recv || !keeps_qp(recv, sub, some)) {
        mr_ud_pool_give(q, clean);
        mr_bulk.serve_due = true;
    } else if (!mr_ud_pool_again(q, clean) && !clear_batch(recv, sub, q)) {
        mr_ud_pool_give(q, true);
        mr_bulk.serve_due = true;
    }
    if (!recv)
        return;
    if (recv->have.count == recv->have.num) {
        complete_dgram_recv(recv);
        return;
    }
    if (recv->batches)
        mr_dgram_recv_clear(recv);
    mr_dgram_recv_queue(recv);
}

/* ---- events of queue pairs --------------------------------------------------------------------------------------- */

static uint16_t datagram_number(const struct mr_dgram_batch *batch, unsigned place, uint32_t imm, uint32_t len)
{
    const struct mr_dgram_recv *recv = batch->recv;
    unsigned number = mr_place_number(imm);

    if (mr_place_turn(imm) != batch->q->turn || number >= batch->num ||
        len != mr_zcopy_bytes(recv->len, recv->size, batch->block[number])) {
        mr_stat_add(MR_STAT_UD_STRAY, 1);
        return MR_REPAIR_NONE;
    }
    /* of a datagram longer than its place the end is lost */
    return len <= mr_zcopy_bytes(recv->len, recv->size, batch->block[place]) ? (uint16_t)number
                                                                             : (uint16_t)MR_REPAIR_NONE;
}

static void datagram_arrived(struct mr_ud_pool_qp *q, unsigned place, uint32_t imm, uint32_t len)
{
    struct mr_dgram_batch *batch = q->owner;

    if (!batch->came++)
        batch->first_ns = batch->peer->heard_ns = mr_clock_ns();
    if (batch->recv)
        batch->lies[place] = datagram_number(batch, place, imm, len);
    if (batch->written)
        extend_wait(batch);
    if (batch->came == batch->num && !batch->stopped)
        finish_batch(batch);
}

static void qp_stopped(struct mr_ud_pool_qp *q)
{
    struct mr_dgram_batch *batch = q->owner;

    batch->stopped = true;
    finish_batch(batch);
}

static const struct mr_ud_pool_events pool_events = {.arrived = datagram_arrived, .stopped = qp_stopped};

/* ---- clearing ---------------------------------------------------------------------------------------------------- */

static void send_clear(const struct mr_dgram_batch *batch, struct mr_zcopy_clear *clear)
{
    struct mr_hdr hdr = {.kind = MR_ZCOPY_CLEAR, .ctx = batch->recv->serial, .tag = mr_sub_tag(batch->sub, 0)};

    mr_bulk_send_control(batch->peer, &hdr, clear, sizeof *clear + clear->num_runs * sizeof clear->run[0]);
}

static void fail_posting(struct mr_dgram_batch *batch, int err)
{
    mr_log(MR_LOG_WARN, "rail %u: receives for a large message cannot be posted: %s", batch->sub->rail->index,
           strerror(-err));
    set_batch_written(batch);
    mr_dgram_batch_stop(batch);
}

/* Posts the next receives, most at most. False: all are posted, or it has failed. */
static bool post_places(struct mr_dgram_batch *batch, unsigned most)
{
    const struct mr_dgram_recv *recv = batch->recv;
    uint32_t lkey = mr_memory_lkey(&recv->region->reg->memory, batch->sub->rail);
    unsigned at = batch->q->posted, to = most < batch->num - at ? at + most : batch->num, end;

    for (; at < to && !batch->stopped; at = end) {
        uint64_t offset = (uint64_t)batch->block[at] * recv->size, bytes;
        int err;

        for (end = at + 1; end < to && batch->block[end] == batch->block[end - 1] + 1; end++)
            ;
        bytes = (uint64_t)(end - at) * recv->size;
        err = mr_ud_pool_post(batch->q, mr_dgram_recv_address(recv, batch->block[at]),
                              bytes < recv->len - offset ? bytes : recv->len - offset, recv->size, lkey);
        if (err)
            fail_posting(batch, err);
    }
    return at < batch->num && !batch->stopped;
}

/* The subchannels in turn, on each the batch that was cleared first: the sender goes in this order, too. */
static void post_remaining(struct mr_dgram_recv *recv)
{
    uint32_t more;

    do {
        more = 0;
        for (struct mr_dgram_batch *batch = recv->batches; batch; batch = batch->next) {
            uint32_t bit = 1u << mr_sub_place(batch->sub);

            if (!(more & bit) && post_places(batch, FIRST))
                more |= bit;
        }
    } while (more);
}

static unsigned clear_runs_max(const struct mr_peer *p)
{
    size_t n = (mr_vc_eager_max(p->vc) - sizeof(struct mr_zcopy_clear)) / sizeof(struct mr_block_run);

    return n < RUNS_MAX ? (unsigned)n : RUNS_MAX;
}

/* Takes blocks of [from, to) from todo, as many as one CLEAR can name. */
static void collect_blocks(struct mr_dgram_recv *recv, uint32_t from, uint32_t to, struct mr_dgram_batch *batch,
                           unsigned most, struct mr_zcopy_clear *clear)
{
    unsigned runs = clear_runs_max(recv->peer);

    while (batch->num < most && clear->num_runs < runs && (from = mr_blocks_find(&recv->todo, from, true)) < to) {
        uint32_t end = mr_blocks_find(&recv->todo, from, false), first = from;

        end = end < to ? end : to;
        end = end - from < most - batch->num ? end : from + (most - batch->num);
        for (; from < end; from++)
            batch->block[batch->num++] = from;
        clear->run[clear->num_runs++] = (struct mr_block_run){first, end - first};
        mr_blocks_remove(&recv->todo, (struct mr_block_run){first, end - first});
    }
}

static struct mr_dgram_batch *make_batch(struct mr_dgram_recv *recv, struct mr_sub *sub, struct mr_ud_pool_qp *q,
                                         uint32_t most)
{
    struct mr_dgram_batch *batch = calloc(1, sizeof *batch + most * sizeof batch->block[0]), **end = &recv->batches;

    if (!batch)
        return NULL;
    batch->lies = malloc(most * sizeof batch->lies[0]);
    if (!batch->lies) {
        free(batch);
        return NULL;
    }
    memset(batch->lies, 0xff, most * sizeof batch->lies[0]);
    batch->q = q;
    batch->peer = recv->peer;
    batch->recv = recv;
    batch->sub = sub;
    while (*end)
        end = &(*end)->next;
    *end = batch;
    recv->peer->num_pending++;
    mr_bulk_sub_of(sub)->flows++;
    return batch;
}

/*
 * Clears the sender for the next blocks, over this subchannel to this queue pair. False: there are none, or no memory.
 * CLEAR goes as soon as the sender cannot overtake the posting; post_remaining() follows.
 */
static bool clear_batch(struct mr_dgram_recv *recv, struct mr_sub *sub, struct mr_ud_pool_qp *q)
{
    union {
        struct mr_zcopy_clear clear;
        unsigned char room[sizeof(struct mr_zcopy_clear) + RUNS_MAX * sizeof(struct mr_block_run)];
    } msg = {.clear = {.qpn = q->qpn, .qkey = q->qkey}};
    struct mr_dgram_batch *batch;
    uint32_t from, to, most;

    if (!mr_dgram_recv_choose(recv, sub, &from, &to, &most) || !(batch = make_batch(recv, sub, q, most)))
        return false;
    collect_blocks(recv, from, to, batch, most, &msg.clear);
    msg.clear.turn = ++q->turn;
    q->owner = batch;
    batch->begun_ns = mr_clock_ns();
    post_places(batch, recv->size < FIRST_SIZE || recv->parts > FIRST_PARTS ? batch->num : FIRST);
    if (!batch->stopped)
        send_clear(batch, &msg.clear);
    return true;
}

static bool clear_over_sub(struct mr_dgram_recv *recv, struct mr_sub *sub)
{
    struct mr_ud_pool_qp *q;
    uint32_t from, to, most;

    if (!recv->todo.count || !mr_zcopy_sub_usable(sub, recv->size) ||
        !mr_dgram_recv_choose(recv, sub, &from, &to, &most))
        return false;
    /* making a queue pair takes long: the sender would come to receives that are not posted */
    if (recv->batches && !mr_ud_pool_prepare(sub->rail, 0))
        post_remaining(recv);
    if (!mr_dgram_recv_may_take(recv, sub))
        return false;
    q = mr_ud_pool_take(sub->rail, sub->pkey, &pool_events, NULL);
    if (!q)
        return false;
    if (clear_batch(recv, sub, q))
        return true;
    mr_ud_pool_give(q, true);
    return false;
}

/* Less goes first: subchannels that work, then the fewest batches of this message, then the fewest of all. */
static uint64_t sub_cost(const struct mr_dgram_recv *recv, const struct mr_sub *sub)
{
    return (uint64_t)mr_bulk_sub_of(sub)->fruitless << 40 | (uint64_t)mr_dgram_batches_on(recv, sub) << 32 |
           mr_bulk_sub_of(sub)->flows;
}

void mr_dgram_recv_clear(struct mr_dgram_recv *recv)
{
    struct mr_peer *p = recv->peer;
    uint32_t tried = 0;

    while (recv->todo.count && !p->error) {
        unsigned best = p->num_now;

        for (unsigned i = 0; i < p->num_now; i++)
            if (!(tried >> i & 1) && (best == p->num_now || sub_cost(recv, &p->now[i]) < sub_cost(recv, &p->now[best])))
                best = i;
        if (best == p->num_now)
            break;
        if (!clear_over_sub(recv, &p->now[best]))
            tried |= 1u << best;
        mr_dgram_recv_queue(recv);
    }
    post_remaining(recv);
}

/* ---- control messages, and time ---------------------------------------------------------------------------------- */

bool mr_zcopy_in_control(struct mr_peer *p, const struct mr_hdr *hdr)
{
    if (hdr->kind != MR_ZCOPY_WRITTEN)
        return false;
    for (struct mr_dgram_recv *recv = mr_bulk_of(p)->dgram_recvs; recv; recv = recv->next) {
        recv->asleep = false;
        for (struct mr_dgram_batch *batch = recv->serial == hdr->ctx ? recv->batches : NULL; batch; batch = batch->next)
            if (batch->q->qpn == hdr->rreq && batch->q->turn == (uint16_t)hdr->tag && !batch->written)
                set_batch_written(batch);
        mr_dgram_recv_queue(recv);
    }
    return true;
}

void mr_zcopy_poll(struct mr_peer *p, uint64_t now_ns)
{
    for (struct mr_dgram_recv *recv = mr_bulk_of(p)->dgram_recvs; recv; recv = recv->next)
        for (struct mr_dgram_batch *batch = recv->batches; batch; batch = batch->next)
            if (batch->written && batch->due_ns <= now_ns)
                mr_dgram_batch_stop(batch);
}

/* ---- breaking ---------------------------------------------------------------------------------------------------- */

void mr_zcopy_sub_broken(struct mr_sub *sub)
{
    for (struct mr_dgram_recv *recv = mr_bulk_of(sub->peer)->dgram_recvs; recv; recv = recv->next)
        for (struct mr_dgram_batch *batch = recv->batches; batch; batch = batch->next)
            if (batch->sub == sub && !batch->stopped) {
                mr_stat_add(MR_STAT_MOVED, 1);
                mr_rail_add(sub->rail, MR_RAIL_MOVED, 1);
                mr_dgram_batch_stop(batch);
            }
}

void mr_zcopy_peer_lost(struct mr_peer *p)
{
    for (struct mr_dgram_recv *recv = mr_bulk_of(p)->dgram_recvs; recv; recv = recv->next)
        for (struct mr_dgram_batch *batch = recv->batches; batch; batch = batch->next)
            mr_dgram_batch_stop(batch);
}

void mr_zcopy_free_peer(struct mr_peer *p)
{
    struct mr_dgram_recv *recv;

    while ((recv = mr_bulk_of(p)->dgram_recvs)) {
        struct mr_dgram_batch *batch;

        while ((batch = recv->batches)) {
            recv->batches = batch->next;
            free(batch->lies);
            free(batch);
        }
        mr_zcopy_close(recv->region);
    }
}
