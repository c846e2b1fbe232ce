/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtual channels of this process, by world rank, made when first asked for. Here a packet gets its sequence
 * number on the way down, and order and uniqueness on the way up; which bytes go over which wire is the channel's
 * business. A channel is opened only if the job has a peer that it would reach: a job on one node opens no device.
 */
#include "libmrmpi/channel/vc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/channel/reorder.h"
#include "libmrmpi/channel/writer.h"

struct vc {
    struct mr_vc base;
    size_t packet_max;
    struct mr_reorder in;
};

static inline struct vc *vc_of(const struct mr_vc *vc)
{
    return (struct vc *)vc;
}

/* While other channels are busy the network is still looked at once in so many rounds. */
#define NET_EVERY 8

/* What a look at a cheap channel takes. */
struct look {
    void *const *pending; /* while this points to NULL there is nothing to do */
    int (*poll)(void);
};

static struct {
    const struct mr_launch *launch;
    struct mr_vc_upcalls up;
    const struct mr_channel_ops *open[3]; /* cheapest first */
    unsigned num_open, num_looks;
    struct look look[2];   /* at those but the network */
    int (*poll_net)(void); /* NULL: it is not open */
    unsigned busy_rounds;
} all;

/* ---- peers ------------------------------------------------------------------------------------------------------- */

struct mr_vc **mr_vcs; /* [launch->size] */

static __attribute__((noinline)) struct vc *make_vc(int rank)
{
    struct vc *v = calloc(1, sizeof *v);

    if (!v) {
        static struct vc none = {
            .base = {.rank = -1, .error = -ENOMEM}}; /* every send on it says so; made again next time */

        mr_log(MR_LOG_ERROR, "no memory for the virtual channel to rank %d", rank);
        return &none;
    }
    v->base.rank = rank;
    v->base.self = (uint32_t)all.launch->rank;
    for (unsigned i = 0; i < all.num_open && !v->base.ops; i++)
        if (all.open[i]->reaches(rank))
            v->base.ops = all.open[i];
    if (!v->base.ops)
        v->base.error = -EHOSTUNREACH;
    mr_vcs[rank] = &v->base;
    return v;
}

struct mr_vc *mr_vc_make(int world_rank)
{
    return mr_vcs[world_rank] ? mr_vcs[world_rank] : &make_vc(world_rank)->base;
}

static inline struct vc *get_vc(int world_rank)
{
    return vc_of(mr_vc_get_peer(world_rank));
}

static struct mr_vc *get_peer(int world_rank)
{
    return mr_vc_get_peer(world_rank);
}

size_t mr_vc_learn_sizes(struct mr_vc *vc)
{
    if (!vc->ops || vc->front.eager_max)
        return vc->front.eager_max;
    vc->front.eager_max = (uint32_t)vc->ops->eager_max(vc->rank);
    if (!vc->front.eager_max)
        return MR_EAGER_LEAST;
    vc->front.eager_most = vc->front.eager_max * (vc->ops->eager_packets ? vc->ops->eager_packets(vc->rank) : 1);
    vc_of(vc)->packet_max = vc->ops->packet_max ? vc->ops->packet_max(vc->rank) : vc->front.eager_max;
    return vc->front.eager_max;
}

unsigned mr_vc_rate(const struct mr_vc *vc, size_t len, uint32_t without, size_t *whole)
{
    return vc->ops && vc->ops->rate ? vc->ops->rate(vc->rank, len, without, whole) : 0;
}

size_t mr_vc_packet_max(struct mr_vc *vc)
{
    if (!vc_of(vc)->packet_max)
        mr_vc_learn_sizes(vc);
    return vc_of(vc)->packet_max ? vc_of(vc)->packet_max : MR_EAGER_LEAST;
}

unsigned mr_vc_caps(const struct mr_vc *vc, size_t len)
{
    return vc->ops ? vc->ops->caps(vc->rank, len) : 0;
}

/* ---- down -------------------------------------------------------------------------------------------------------- */

int mr_vc_reserve(struct mr_vc *vc, unsigned packets)
{
    if (vc->error)
        return vc->error;
    return vc->ops->reserve ? vc->ops->reserve(vc, packets) : 0;
}

int mr_vc_send_made(struct mr_vc *vc, struct mr_hdr *hdr, size_t len, void *scratch, mr_vc_make_fn *make,
                    const void *what)
{
    int err;

    if (vc->error)
        return vc->error;
    if (!vc->ops->send_made) {
        make(scratch, len, what);
        return mr_vc_send(vc, hdr, scratch, len);
    }
    hdr->note = vc->front.note;
    hdr->seq = vc->next_seq;
    hdr->src = vc->self;
    err = vc->ops->send_made(vc, hdr, len, scratch, make, what);
    if (!err)
        vc->next_seq++;
    return err;
}

unsigned mr_vc_waiting(struct mr_vc *vc)
{
    return !vc->error && vc->ops->waiting ? vc->ops->waiting(vc) : 0;
}

bool mr_vc_copies(const struct mr_vc *vc, const void *buf, size_t len)
{
    return vc->ops->copies && vc->ops->copies(vc, buf, len);
}

int mr_vc_advertise(struct mr_vc *vc, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                    struct mr_remote *out)
{
    int err;

    if (vc->error)
        return vc->error;
    if (!vc->ops->advertise)
        return -EOPNOTSUPP;
    err = vc->ops->advertise(vc, buf, len, how, region, out);
    if (!err)
        (*region)->channel = vc->ops;
    return err;
}

void mr_vc_withdraw(struct mr_region *region)
{
    if (region && region->channel->withdraw)
        region->channel->withdraw(region);
}

void mr_vc_expect(struct mr_region *region, uint64_t rreq)
{
    region->rreq = rreq;
}

int mr_vc_put(struct mr_vc *vc, const void *buf, size_t len, const struct mr_remote *dst, uint64_t rreq, void *cookie)
{
    if (vc->error)
        return vc->error;
    return vc->ops->put ? vc->ops->put(vc, buf, len, dst, rreq, cookie) : -EOPNOTSUPP;
}

int mr_vc_read(struct mr_vc *vc, void *buf, size_t size, struct mr_vc_part part, const struct mr_remote *src,
               void *cookie)
{
    if (vc->error)
        return vc->error;
    return vc->ops->read ? vc->ops->read(vc, buf, size, part, src, cookie) : -EOPNOTSUPP;
}

int mr_vc_move(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *remote, bool write,
               struct mr_vc_move *m)
{
    if (vc->error)
        return vc->error;
    return vc->ops->move ? vc->ops->move(vc, buf, len, remote, write, m) : -EOPNOTSUPP;
}

struct mr_vc_writer *mr_vc_writer_open(struct mr_vc *vc, const struct mr_remote *remote)
{
    return !vc->error && vc->ops->writer_open ? vc->ops->writer_open(vc, remote) : NULL;
}

int mr_vc_get(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *src, uint64_t offset)
{
    if (vc->error)
        return vc->error;
    return vc->ops->get ? vc->ops->get(vc, buf, len, src, offset) : -EOPNOTSUPP;
}

struct mr_claims *mr_vc_claims(struct mr_vc *vc, bool ours)
{
    return vc->ops->claims ? vc->ops->claims(vc, ours) : NULL;
}

static int send_control(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len)
{
    return mr_vc_send(vc, hdr, payload, len);
}

/* ---- up ---------------------------------------------------------------------------------------------------------- */

static void deliver_packet(struct vc *v, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (__builtin_expect(hdr->kind < MR_VC_KIND_CHANNEL, 1)) {
        all.up.deliver(&v->base, hdr, payload, len);
        return;
    }
    all.up.noted(&v->base, hdr->note); /* its sender counts on it */
    if (v->base.ops->control)
        v->base.ops->control(v->base.rank, hdr, payload, len);
}

static void deliver_held(struct vc *v)
{
    struct mr_held *h;

    while ((h = mr_reorder_pop(&v->in))) {
        mr_reorder_advance(&v->in);
        deliver_packet(v, &h->hdr, h->payload, h->len);
        mr_reorder_free(h);
    }
}

static void peer_failed(int world_rank, int error)
{
    struct vc *v = get_vc(world_rank);

    if (v->base.rank < 0 || v->base.error)
        return;
    v->base.error = error;
    all.up.failed(&v->base, error);
}

static void arrived_out_of_turn(struct vc *v, enum mr_order order, const struct mr_hdr *hdr, const void *payload,
                                size_t len)
{
    if (order == MR_ORDER_DUPLICATE) {
        mr_stat_add(MR_STAT_DUPLICATES, 1);
        return;
    }
    if (order == MR_ORDER_REFUSED) {
        mr_log(MR_LOG_ERROR, "refused packet %u of rank %d: packet %u is due, and it sends none so far ahead", hdr->seq,
               v->base.rank, v->in.expected);
        return;
    }
    mr_stat_add(MR_STAT_OUT_OF_ORDER, 1);
    if (mr_reorder_hold(&v->in, hdr, payload, len) < 0) {
        mr_log(MR_LOG_ERROR, "no memory to keep packet %u of rank %d until its turn", hdr->seq, v->base.rank);
        peer_failed(v->base.rank, -ENOMEM);
    }
}

static void packet_arrived(const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct vc *v;
    enum mr_order order;

    if (__builtin_expect(hdr->src >= (uint32_t)all.launch->size, 0)) {
        mr_log(MR_LOG_WARN, "dropped a packet from rank %u: the job has only %d", hdr->src, all.launch->size);
        return;
    }
    v = get_vc((int)hdr->src);
    if (__builtin_expect(v->base.rank < 0, 0))
        return; /* no memory for it, and that has been said */
    order = mr_reorder_classify(&v->in, hdr->seq);
    if (__builtin_expect(order != MR_ORDER_NEXT, 0)) {
        arrived_out_of_turn(v, order, hdr, payload, len);
        return;
    }
    mr_reorder_advance(&v->in);
    deliver_packet(v, hdr, payload, len);
    if (__builtin_expect(v->in.head != NULL, 0))
        deliver_held(v);
}

static void put_sent(void *cookie, int error)
{
    all.up.put_sent(cookie, error);
}

static void read_done(void *cookie, int error)
{
    all.up.read_done(cookie, error);
}

static void loan_ended(void *cookie)
{
    all.up.loan_ended(cookie);
}

static void put_landed(int world_rank, uint64_t rreq, int error)
{
    all.up.put_landed(mr_vc_get_peer(world_rank), rreq, error);
}

bool mr_vc_is_used(const struct mr_vc *vc)
{
    return vc->next_seq || vc_of(vc)->in.expected;
}

static uint32_t num_received(const struct mr_vc *vc)
{
    return vc_of(vc)->in.expected;
}

const void *mr_vc_peek(struct mr_vc *vc, int rank, int tag, uint32_t ctx, struct mr_hdr *hdr)
{
    const struct mr_reorder *in = &vc_of(vc)->in;
    const void *payload = vc->ops->peek(vc, rank, tag, ctx, hdr);

    if (!payload || payload == MR_PEEK_OTHER)
        return payload;
    return hdr->seq == in->expected && !in->head ? payload : MR_PEEK_OTHER;
}

void mr_vc_taken(struct mr_vc *vc)
{
    mr_reorder_advance(&vc_of(vc)->in);
    vc->ops->taken(vc);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static int open_channel(const struct mr_channel_ops *ops)
{
    static void *const always = &all;
    int err = ops->init ? ops->init(all.launch) : 0;

    if (err) {
        mr_log(MR_LOG_ERROR, "channel %s cannot be opened: %s", ops->name, strerror(-err));
        return err;
    }
    if (ops == &mr_channel_net)
        all.poll_net = ops->poll;
    else
        all.look[all.num_looks++] = (struct look){ops->pending ? ops->pending : &always, ops->poll};
    all.open[all.num_open++] = ops;
    return 0;
}

int mr_vc_init(const struct mr_launch *launch, const struct mr_vc_upcalls *up)
{
    int err;

    memset(&all, 0, sizeof all);
    all.launch = launch;
    all.up = *up;
    mr_channel_up = (struct mr_channel_up){.arrived = packet_arrived,
                                           .put_sent = put_sent,
                                           .read_done = read_done,
                                           .loan_ended = loan_ended,
                                           .put_landed = put_landed,
                                           .failed = peer_failed,
                                           .get = get_peer,
                                           .send = send_control,
                                           .received = num_received,
                                           .eager_max = mr_vc_eager_max};
    mr_vcs = calloc((size_t)launch->size, sizeof *mr_vcs);
    if (!mr_vcs)
        return -ENOMEM;
    err = open_channel(&mr_channel_self);
    if (!err && launch->local_size > 1)
        err = open_channel(&mr_channel_shm);
    if (!err && launch->num_nodes > 1)
        err = open_channel(&mr_channel_net);
    if (err)
        mr_vc_finalize();
    return err;
}

int mr_vc_ready(void)
{
    for (unsigned i = 0; i < all.num_open; i++) {
        int err = all.open[i]->ready ? all.open[i]->ready() : 0;

        if (err) {
            mr_log(err == -EOWNERDEAD ? MR_LOG_INFO : MR_LOG_ERROR, "channel %s cannot start: %s", all.open[i]->name,
                   strerror(-err));
            return err;
        }
    }
    return 0;
}

void mr_vc_finalize(void)
{
    while (all.num_open)
        if (all.open[--all.num_open]->finalize)
            all.open[all.num_open]->finalize();
    if (!mr_vcs)
        return;
    for (int r = 0; r < all.launch->size; r++) {
        if (!mr_vcs[r])
            continue;
        mr_reorder_clear(&vc_of(mr_vcs[r])->in);
        free(mr_vcs[r]);
    }
    free(mr_vcs);
    mr_vcs = NULL;
    memset(&all, 0, sizeof all);
}

/*
 * Looking at an idle network has a price (on a simulated fabric it lets time pass), so it is left out while the cheaper
 * channels have work.
 */
int mr_vc_poll(void)
{
    int done = 0;

    for (const struct look *l = all.look, *end = l + all.num_looks; l != end; l++)
        if (*l->pending)
            done += l->poll();
    if (all.poll_net && !(done && ++all.busy_rounds % NET_EVERY))
        done += all.poll_net();
    mr_channel_idle = done ? 0 : mr_channel_idle + 1;
    return done;
}

bool mr_vc_drained(void)
{
    for (unsigned i = 0; i < all.num_open; i++)
        if (all.open[i]->drained && !all.open[i]->drained())
            return false;
    return true;
}

bool mr_vc_lingers(void)
{
    for (unsigned i = 0; i < all.num_open; i++)
        if (all.open[i]->lingers && all.open[i]->lingers())
            return true;
    return false;
}

static void nothing_delivered(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
}

static void nothing_noted(struct mr_vc *vc, uint8_t note)
{
}

static void nothing_done(void *cookie, int error)
{
}

static void nothing_ended(void *cookie)
{
}

static void nothing_landed(struct mr_vc *vc, uint64_t rreq, int error)
{
}

static void nobody_failed(struct mr_vc *vc, int error)
{
}

void mr_vc_quiet(void)
{
    all.up = (struct mr_vc_upcalls){.deliver = nothing_delivered,
                                    .noted = nothing_noted,
                                    .put_sent = nothing_done,
                                    .read_done = nothing_done,
                                    .loan_ended = nothing_ended,
                                    .put_landed = nothing_landed,
                                    .failed = nobody_failed};
}
