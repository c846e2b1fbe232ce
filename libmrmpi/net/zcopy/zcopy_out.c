/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages as datagrams, the sender's side: cleared blocks are posted from the program's memory. */
#include "libmrmpi/net/zcopy/zcopy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/net/zcopy/repair.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/net/view/view.h"

#define SIZE_LEAST 256 /* of a datagram requested by a peer */
#define SIZE_MOST  4096
#define ROUNDS     2 /* of MR_QP_RUN datagrams for each subchannel */

/* The datagrams of a CLEAR. */
struct mr_dgram_send {
    struct mr_transfer *transfer;
    struct mr_sub *sub;
    struct mr_dgram_send *next; /* in the peer's dgram_sends, if listed: not all of it is posted */
    bool listed;
    uint32_t qpn, qkey;
    uint16_t turn;
    unsigned number;         /* of the next datagram */
    unsigned run;            /* its place: in this run, */
    uint32_t block;          /* blocks from its beginning */
    unsigned posted;         /* struct mr_dgram_post not left yet */
    unsigned num_runs;       /* run == num_runs: nothing is left to be posted */
    uint64_t sent, begun_ns; /* sent: bytes that were posted; begun_ns: for the record (view.h) */
    struct mr_block_run runs[];
};

/* Some of them, posted together as one work request list. */
struct mr_dgram_post {
    struct mr_link_run base;
    struct mr_dgram_send *send;
    struct mr_dgram_post *next; /* in mr_bulk.free_posts */
};

/* ---- life of a message ------------------------------------------------------------------------------------------- */

int mr_zcopy_begin(struct mr_transfer *transfer)
{
    uint32_t size = transfer->remote.token;

    if (size < SIZE_LEAST || size > SIZE_MOST || !transfer->remote.len)
        return -EPROTO;
    transfer->size = size;
    return 0;
}

/* The receiver has all of it, and the adapter no longer reads any. */
static void finish_if_done(struct mr_transfer *transfer)
{
    if (transfer->landed && !transfer->num_sends)
        mr_bulk_finish(transfer);
}

static void finish_send(struct mr_dgram_send *send)
{
    struct mr_transfer *transfer = send->transfer;
    struct mr_hdr hdr = {
        .kind = MR_ZCOPY_WRITTEN, .ctx = transfer->remote.serial, .tag = send->turn, .rreq = send->qpn};

    mr_view_part(send->sub,
                 (struct mr_view_part){.begun_ns = send->begun_ns, .len = send->sent, .of = transfer->remote.len});
    if (!transfer->landed)
        mr_bulk_send_control(transfer->peer, &hdr, NULL, 0);
    transfer->num_sends--;
    mr_bulk_sub_of(send->sub)->flows--;
    free(send);
    finish_if_done(transfer);
}

static bool all_posted(const struct mr_dgram_send *send)
{
    return send->run == send->num_runs;
}

/* ---- posting ----------------------------------------------------------------------------------------------------- */

static void datagrams_left(struct mr_link_run *run)
{
    struct mr_dgram_post *post = container_of(run, struct mr_dgram_post, base);
    struct mr_dgram_send *send = post->send;

    post->next = mr_bulk.free_posts;
    mr_bulk.free_posts = post;
    if (!--send->posted && !send->listed)
        finish_send(send);
}

static struct mr_dgram_post *take_post(void)
{
    struct mr_dgram_post *post = mr_bulk.free_posts;

    if (!post)
        return calloc(1, sizeof *post);
    mr_bulk.free_posts = post->next;
    return post;
}

static void count_posted(struct mr_dgram_send *send, uint64_t len)
{
    mr_rail_add(send->sub->rail, MR_RAIL_BYTES_WRITTEN, len);
    mr_view_moved(send->sub, len, false);
    if (!send->sent)
        send->begun_ns = mr_view_begin();
    mr_rail_add(send->sub->rail, MR_RAIL_STRIPES_WRITTEN, !send->sent);
    send->sent += len;
}

/* Posts as many of the next datagrams as go together. 0 or negative errno. */
static int post_datagrams(struct mr_dgram_send *send)
{
    struct mr_transfer *transfer = send->transfer;
    const struct mr_block_run *run = &send->runs[send->run];
    struct mr_link *l = send->sub->level[transfer->level];
    uint64_t at = (uint64_t)(run->first + send->block) * transfer->size, left = transfer->remote.len - at;
    uint32_t blocks = run->num - send->block < MR_QP_RUN ? run->num - send->block : MR_QP_RUN,
             bytes = blocks * transfer->size;
    struct mr_link_datagram d = {.data = {.data = transfer->local + at,
                                          .len = bytes < left ? bytes : (uint32_t)left,
                                          .lkey = mr_memory_lkey(&transfer->reg->memory, l->rail)},
                                 .size = transfer->size,
                                 .imm = mr_place_imm(send->turn, send->number),
                                 .qpn = send->qpn,
                                 .qkey = send->qkey};
    struct mr_dgram_post *post = take_post();
    ssize_t n;

    if (!post)
        return -EAGAIN;
    post->send = send;
    post->base.done = datagrams_left;
    n = l->ops->run(l, &d, &post->base);
    if (n < 0) {
        post->next = mr_bulk.free_posts;
        mr_bulk.free_posts = post;
        return (int)n;
    }
    send->posted++;
    count_posted(send, (uint64_t)n);
    blocks = (uint32_t)(((size_t)n + transfer->size - 1) / transfer->size);
    send->number += blocks;
    send->block += blocks;
    if (send->block == run->num) {
        send->run++;
        send->block = 0;
    }
    return 0;
}

/* False: there is no room now. Datagrams that cannot go any more are dropped: the receiver clears them again. */
static bool advance_send(struct mr_dgram_send *send)
{
    int err = send->sub->state == MR_SUB_OPEN && !send->transfer->landed ? post_datagrams(send) : -ENOTCONN;

    if (err && err != -EAGAIN)
        send->run = send->num_runs;
    return err != -EAGAIN;
}

/* One round over the subchannels. On each the first CLEAR goes first: receives are posted in this order, too. */
static bool post_round(struct mr_peer *p)
{
    struct mr_dgram_send **at = &mr_bulk_of(p)->dgram_sends, *send;
    uint64_t full = 0; /* set of subchannels */
    bool some = false;

    while ((send = *at)) {
        uint64_t bit = 1ull << (send->sub - p->sub);

        if (!(full & bit) && !all_posted(send))
            some |= advance_send(send);
        full |= bit;
        if (!all_posted(send)) {
            at = &send->next;
            continue;
        }
        *at = send->next;
        send->listed = false;
        if (!send->posted)
            finish_send(send);
    }
    return some;
}

/* Only a few rounds before the next poll, which may bring a CLEAR for another subchannel. */
bool mr_zcopy_resume(struct mr_peer *p)
{
    _Static_assert(2 * MR_SUBS_MAX <= 64, "a set of subchannels of both sides");

    for (unsigned n = 0; n < ROUNDS && post_round(p); n++)
        ;
    return mr_bulk_of(p)->dgram_sends;
}

/* ---- control messages -------------------------------------------------------------------------------------------- */

static struct mr_transfer *find_dgram_transfer(const struct mr_peer *p, uint32_t serial)
{
    for (struct mr_transfer *transfer = mr_bulk_of(p)->transfers; transfer; transfer = transfer->next)
        if (transfer->size && transfer->remote.serial == serial)
            return transfer;
    return NULL;
}

/* Do these runs and this subchannel make sense for the message? */
static bool is_valid_clear(const struct mr_transfer *transfer, const struct mr_sub *sub, const struct mr_block_run *run,
                           unsigned num)
{
    uint32_t blocks = mr_zcopy_blocks(transfer->remote.len, transfer->size);
    uint64_t sum = 0;

    for (unsigned i = 0; i < num; i++) {
        if (!run[i].num || run[i].num > blocks || run[i].first > blocks - run[i].num)
            return false;
        sum += run[i].num;
    }
    return num && sum < MR_REPAIR_MAX && sub && mr_kind_is(sub->kind, MR_IS_DATAGRAM);
}

static void handle_clear(struct mr_peer *p, struct mr_transfer *transfer, const struct mr_hdr *hdr, const void *payload,
                         size_t len)
{
    struct mr_sub *sub = mr_sub_tagged(p, (uint32_t)hdr->tag);
    struct mr_zcopy_clear clear;
    struct mr_dgram_send *send, **end = &mr_bulk_of(p)->dgram_sends;
    size_t runs = len - sizeof clear;

    if (len < sizeof clear)
        return;
    memcpy(&clear, payload, sizeof clear);
    if (runs != clear.num_runs * sizeof send->runs[0])
        return;
    send = calloc(1, sizeof *send + runs);
    if (!send) {
        mr_peer_lost(p, -ENOMEM);
        return;
    }
    memcpy(send->runs, (const unsigned char *)payload + sizeof clear, runs);
    if (!is_valid_clear(transfer, sub, send->runs, clear.num_runs)) {
        mr_log(MR_LOG_WARN, "rank %d on %s asks for parts of a large message that it does not have", p->rank,
               p->address->host);
        free(send);
        return;
    }
    send->transfer = transfer;
    send->sub = sub;
    send->qpn = clear.qpn;
    send->qkey = clear.qkey;
    send->turn = clear.turn;
    send->num_runs = clear.num_runs;
    transfer->num_sends++;
    mr_bulk_sub_of(sub)->flows++;
    while (*end)
        end = &(*end)->next;
    *end = send;
    send->listed = true;
    mr_peer_backlog(p);
}

/* The message was never begun here, and the receiver was told: WRITTEN ends its batch. */
static void refuse_clear(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_zcopy_clear clear;
    struct mr_hdr answer = {.kind = MR_ZCOPY_WRITTEN, .ctx = hdr->ctx};

    if (len < sizeof clear)
        return;
    memcpy(&clear, payload, sizeof clear);
    answer.tag = clear.turn;
    answer.rreq = clear.qpn;
    mr_bulk_send_control(p, &answer, NULL, 0);
}

/* It ends with the next post_round(), with WRITTEN as always. */
static void handle_recall(struct mr_peer *p, const struct mr_transfer *transfer, const struct mr_hdr *hdr)
{
    for (struct mr_dgram_send *send = mr_bulk_of(p)->dgram_sends; send; send = send->next)
        if (send->transfer == transfer && send->qpn == hdr->rreq && send->turn == (uint16_t)hdr->tag)
            send->run = send->num_runs;
}

bool mr_zcopy_out_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_transfer *transfer;

    if (hdr->kind != MR_ZCOPY_CLEAR && hdr->kind != MR_ZCOPY_LANDED && hdr->kind != MR_ZCOPY_RECALL)
        return false;
    transfer = find_dgram_transfer(p, hdr->ctx);
    if (!transfer && hdr->kind == MR_ZCOPY_CLEAR)
        refuse_clear(p, hdr, payload, len);
    if (!transfer)
        return true;
    if (hdr->kind == MR_ZCOPY_CLEAR) {
        handle_clear(p, transfer, hdr, payload, len);
        return true;
    }
    if (hdr->kind == MR_ZCOPY_RECALL) {
        handle_recall(p, transfer, hdr);
        return true;
    }
    transfer->landed = true;
    finish_if_done(transfer);
    if (mr_bulk_of(p)->dgram_sends)
        mr_peer_backlog(p); /* its remaining datagrams are dropped */
    return true;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

void mr_zcopy_peer_ended(struct mr_peer *p)
{
    struct mr_dgram_send *send;

    while ((send = mr_bulk_of(p)->dgram_sends)) {
        mr_bulk_of(p)->dgram_sends = send->next;
        send->transfer->num_sends--;
        mr_bulk_sub_of(send->sub)->flows--;
        free(send);
    }
}

void mr_zcopy_free_posts(void)
{
    struct mr_dgram_post *post;

    while ((post = mr_bulk.free_posts)) {
        mr_bulk.free_posts = post->next;
        free(post);
    }
}
