/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages as datagrams, the sender's side: what the receiver has cleared is posted from the program's memory. */
#include "libmrmpi/bulk/zcopy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/bulk/repair.h"
#include "libmrmpi/peer/view.h"

#define SIZE_LEAST 256 /* of a datagram that a peer may ask for */
#define SIZE_MOST  4096
#define ROUNDS     2 /* of MR_QP_RUN datagrams for each subchannel */

/* What was cleared in one word. */
struct mr_pour {
    struct mr_put *put;
    struct mr_sub *sub;
    struct mr_pour *next; /* in the peer's list, if listed: not all of it is posted */
    bool listed;
    uint32_t qpn, qkey;
    uint16_t turn;
    unsigned number;   /* of the datagram that comes next */
    unsigned run;      /* its place: in this run, */
    uint32_t block;    /* so many blocks from its beginning */
    unsigned posted;   /* runs of datagrams that have not left yet */
    unsigned num_runs; /* run == num_runs: nothing is left to be posted */
    uint64_t sent, begun_ns; /* bytes that were posted; begun_ns: if that is recorded (view.h) */
    struct mr_run runs[];
};

/* Some of its datagrams, which leave together. */
struct mr_gush {
    struct mr_link_run base;
    struct mr_pour *pour;
    struct mr_gush *next; /* of those that are free */
};

/* ---- life of a message ------------------------------------------------------------------------------------------- */

int mr_zcopy_begin(struct mr_put *put)
{
    uint32_t size = put->remote.token;

    if (size < SIZE_LEAST || size > SIZE_MOST || !put->remote.len)
        return -EPROTO;
    put->size = size;
    return 0;
}

/* The receiver has all of it, and the adapter touches none of it any more. */
static void finish_if_done(struct mr_put *put)
{
    if (put->landed && !put->pours)
        mr_bulk_finish(put);
}

static void pour_done(struct mr_pour *u)
{
    struct mr_put *put = u->put;
    struct mr_hdr hdr = {.kind = ZCOPY_WRITTEN, .ctx = put->remote.serial, .tag = u->turn, .rreq = u->qpn};

    mr_view_part(u->sub, (struct mr_view_part){.begun_ns = u->begun_ns, .len = u->sent, .of = put->remote.len});
    if (!put->landed)
        mr_bulk_say(put->peer, &hdr, NULL, 0);
    put->pours--;
    mr_bulk_sub_of(u->sub)->flows--;
    free(u);
    finish_if_done(put);
}

static bool all_posted(const struct mr_pour *u)
{
    return u->run == u->num_runs;
}

/* ---- posting ----------------------------------------------------------------------------------------------------- */

static void gush_done(struct mr_link_run *run)
{
    struct mr_gush *g = container_of(run, struct mr_gush, base);
    struct mr_pour *u = g->pour;

    g->next = mr_bulk.gushes;
    mr_bulk.gushes = g;
    if (!--u->posted && !u->listed)
        pour_done(u);
}

static struct mr_gush *take_gush(void)
{
    struct mr_gush *g = mr_bulk.gushes;

    if (!g)
        return calloc(1, sizeof *g);
    mr_bulk.gushes = g->next;
    return g;
}

static void count(struct mr_pour *u, uint64_t len)
{
    mr_rail_add(u->sub->rail, MR_RAIL_BYTES_WRITTEN, len);
    mr_view_moved(u->sub, len, false);
    if (!u->sent)
        u->begun_ns = mr_view_begin();
    mr_rail_add(u->sub->rail, MR_RAIL_STRIPES_WRITTEN, !u->sent);
    u->sent += len;
}

/* As many of the next datagrams as go in one piece. 0 or negative errno. */
static int post_some(struct mr_pour *u)
{
    struct mr_put *put = u->put;
    const struct mr_run *run = &u->runs[u->run];
    struct mr_link *l = u->sub->level[put->level];
    uint64_t at = (uint64_t)(run->first + u->block) * put->size, left = put->remote.len - at;
    uint32_t blocks = run->num - u->block < MR_QP_RUN ? run->num - u->block : MR_QP_RUN, bytes = blocks * put->size;
    struct mr_link_datagram d = {.data = {.data = put->local + at,
                                          .len = bytes < left ? bytes : (uint32_t)left,
                                          .lkey = mr_memory_lkey(&put->reg->memory, l->rail)},
                                 .size = put->size,
                                 .imm = mr_place_imm(u->turn, u->number),
                                 .qpn = u->qpn,
                                 .qkey = u->qkey};
    struct mr_gush *g = take_gush();
    ssize_t n;

    if (!g)
        return -EAGAIN;
    g->pour = u;
    g->base.done = gush_done;
    n = l->ops->run(l, &d, &g->base);
    if (n < 0) {
        g->next = mr_bulk.gushes;
        mr_bulk.gushes = g;
        return (int)n;
    }
    u->posted++;
    count(u, (uint64_t)n);
    blocks = (uint32_t)(((size_t)n + put->size - 1) / put->size);
    u->number += blocks;
    u->block += blocks;
    if (u->block == run->num) {
        u->run++;
        u->block = 0;
    }
    return 0;
}

/* False: there is no room now. What cannot go any more is lost, and the receiver will ask for it. */
static bool pour_some(struct mr_pour *u)
{
    int err = u->sub->state == MR_SUB_OPEN && !u->put->landed ? post_some(u) : -ENOTCONN;

    if (err && err != -EAGAIN)
        u->run = u->num_runs;
    return err != -EAGAIN;
}

/* One round over the subchannels. On each what was cleared first goes first: its places are posted in this order. */
static bool pour_round(struct mr_peer *p)
{
    struct mr_pour **at = &mr_bulk_of(p)->pouring, *u;
    uint64_t full = 0; /* set of subchannels */
    bool some = false;

    while ((u = *at)) {
        uint64_t bit = 1ull << (u->sub - p->sub);

        if (!(full & bit) && !all_posted(u))
            some |= pour_some(u);
        full |= bit;
        if (!all_posted(u)) {
            at = &u->next;
            continue;
        }
        *at = u->next;
        u->listed = false;
        if (!u->posted)
            pour_done(u);
    }
    return some;
}

/* No more than a few rounds before the network is looked at again: the next word may be for another subchannel. */
bool mr_zcopy_resume(struct mr_peer *p)
{
    _Static_assert(2 * MR_SUBS_MAX <= 64, "a set of subchannels of both sides");

    for (unsigned n = 0; n < ROUNDS && pour_round(p); n++)
        ;
    return mr_bulk_of(p)->pouring;
}

/* ---- what the receiver says -------------------------------------------------------------------------------------- */

static struct mr_put *find_put(const struct mr_peer *p, uint32_t serial)
{
    for (struct mr_put *put = mr_bulk_of(p)->puts; put; put = put->next)
        if (put->size && put->remote.serial == serial)
            return put;
    return NULL;
}

/* Is it one that can be meant? */
static bool is_sound(const struct mr_put *put, const struct mr_sub *sub, const struct mr_run *run, unsigned num)
{
    uint32_t blocks = mr_zcopy_blocks(put->remote.len, put->size);
    uint64_t sum = 0;

    for (unsigned i = 0; i < num; i++) {
        if (!run[i].num || run[i].num > blocks || run[i].first > blocks - run[i].num)
            return false;
        sum += run[i].num;
    }
    return num && sum < MR_REPAIR_MAX && sub && mr_link_kinds[sub->kind]->run;
}

static void on_clear(struct mr_peer *p, struct mr_put *put, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_sub *sub = mr_sub_tagged(p, (uint32_t)hdr->tag);
    struct zcopy_clear clear;
    struct mr_pour *u, **end = &mr_bulk_of(p)->pouring;
    size_t runs = len - sizeof clear;

    if (len < sizeof clear)
        return;
    memcpy(&clear, payload, sizeof clear);
    if (runs != clear.num_runs * sizeof u->runs[0])
        return;
    u = calloc(1, sizeof *u + runs);
    if (!u) {
        mr_peer_lost(p, -ENOMEM);
        return;
    }
    memcpy(u->runs, (const unsigned char *)payload + sizeof clear, runs);
    if (!is_sound(put, sub, u->runs, clear.num_runs)) {
        mr_log(MR_LOG_WARN, "rank %d on %s asks for parts of a large message that it does not have", p->rank,
               p->address->host);
        free(u);
        return;
    }
    u->put = put;
    u->sub = sub;
    u->qpn = clear.qpn;
    u->qkey = clear.qkey;
    u->turn = clear.turn;
    u->num_runs = clear.num_runs;
    put->pours++;
    mr_bulk_sub_of(sub)->flows++;
    while (*end)
        end = &(*end)->next;
    *end = u;
    u->listed = true;
    mr_peer_backlog(p);
}

/* The message could not be begun, and the receiver has heard that. */
static void refuse(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct zcopy_clear clear;
    struct mr_hdr answer = {.kind = ZCOPY_WRITTEN, .ctx = hdr->ctx};

    if (len < sizeof clear)
        return;
    memcpy(&clear, payload, sizeof clear);
    answer.tag = clear.turn;
    answer.rreq = clear.qpn;
    mr_bulk_say(p, &answer, NULL, 0);
}

/* It ends with the next look, and that is said as always. */
static void on_recall(struct mr_peer *p, const struct mr_put *put, const struct mr_hdr *hdr)
{
    for (struct mr_pour *u = mr_bulk_of(p)->pouring; u; u = u->next)
        if (u->put == put && u->qpn == hdr->rreq && u->turn == (uint16_t)hdr->tag)
            u->run = u->num_runs;
}

bool mr_zcopy_out_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_put *put;

    if (hdr->kind != ZCOPY_CLEAR && hdr->kind != ZCOPY_LANDED && hdr->kind != ZCOPY_RECALL)
        return false;
    put = find_put(p, hdr->ctx);
    if (!put && hdr->kind == ZCOPY_CLEAR)
        refuse(p, hdr, payload, len);
    if (!put)
        return true;
    if (hdr->kind == ZCOPY_CLEAR) {
        on_clear(p, put, hdr, payload, len);
        return true;
    }
    if (hdr->kind == ZCOPY_RECALL) {
        on_recall(p, put, hdr);
        return true;
    }
    put->landed = true;
    finish_if_done(put);
    if (mr_bulk_of(p)->pouring)
        mr_peer_backlog(p); /* what is left of it is not needed any more */
    return true;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

/* The peer is lost, and all that was posted has come back. */
void mr_zcopy_abandon(struct mr_peer *p)
{
    struct mr_pour *u;

    while ((u = mr_bulk_of(p)->pouring)) {
        mr_bulk_of(p)->pouring = u->next;
        u->put->pours--;
        mr_bulk_sub_of(u->sub)->flows--;
        free(u);
    }
}

void mr_zcopy_clear(void)
{
    struct mr_gush *g;

    while ((g = mr_bulk.gushes)) {
        mr_bulk.gushes = g->next;
        free(g);
    }
}
