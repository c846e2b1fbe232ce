/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtual channels of this process, by world rank, made when first asked for. Here a packet gets its sequence
 * number on the way down, and order and uniqueness on the way up; which bytes go over which wire is the channel's
 * business. A channel is opened only if the job has a peer that it would reach: a job on one node opens no device.
 */
#include "libmrmpi/rail/vc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/rail/reorder.h"
#include "libmrmpi/rail/view.h"

struct mr_vc {
    struct mr_vc_front front;
    int rank;
    int error; /* nonzero: the peer is lost */
    const struct mr_channel_ops *ops;
    size_t packet_max;
    uint32_t next_seq; /* of the next packet that we send */
    struct mr_reorder in;
    void *channel_data;
};

/* While other channels are busy the network is still looked at once in so many rounds. */
#define NET_EVERY 8

static struct {
    const struct mr_launch *launch;
    struct mr_vc_upcalls up;
    struct mr_vc **vc;                    /* [launch->size] */
    const struct mr_channel_ops *open[3]; /* cheapest first */
    unsigned num_open;
    unsigned busy_rounds;
} rail;

/* ---- life -------------------------------------------------------------------------------------------------------- */

static int open_channel(const struct mr_channel_ops *ops)
{
    int err = ops->init ? ops->init(rail.launch) : 0;

    if (err) {
        mr_log(MR_LOG_ERROR, "channel %s cannot be opened: %s", ops->name, strerror(-err));
        return err;
    }
    rail.open[rail.num_open++] = ops;
    return 0;
}

int mr_rail_init(const struct mr_launch *launch, const struct mr_vc_upcalls *up)
{
    int err;

    memset(&rail, 0, sizeof rail);
    rail.launch = launch;
    rail.up = *up;
    rail.vc = calloc((size_t)launch->size, sizeof *rail.vc);
    if (!rail.vc)
        return -ENOMEM;
    err = open_channel(&mr_channel_self);
    if (!err && launch->local_size > 1)
        err = open_channel(&mr_channel_shm);
    if (!err && launch->num_nodes > 1)
        err = open_channel(&mr_channel_net);
    if (err)
        mr_rail_finalize();
    else
        mr_view_open(launch);
    return err;
}

int mr_rail_ready(void)
{
    for (unsigned i = 0; i < rail.num_open; i++) {
        int err = rail.open[i]->ready ? rail.open[i]->ready() : 0;

        if (err) {
            mr_log(err == -EOWNERDEAD ? MR_LOG_INFO : MR_LOG_ERROR, "channel %s cannot start: %s", rail.open[i]->name,
                   strerror(-err));
            return err;
        }
    }
    return 0;
}

void mr_rail_finalize(void)
{
    mr_view_close();
    while (rail.num_open)
        if (rail.open[--rail.num_open]->finalize)
            rail.open[rail.num_open]->finalize();
    if (!rail.vc)
        return;
    for (int r = 0; r < rail.launch->size; r++) {
        if (!rail.vc[r])
            continue;
        mr_reorder_clear(&rail.vc[r]->in);
        free(rail.vc[r]);
    }
    free(rail.vc);
    memset(&rail, 0, sizeof rail);
}

/*
 * Looking at an idle network has a price (on a simulated fabric it lets time pass), so it is left out while the cheaper
 * channels have work.
 */
unsigned mr_rail_idle;

int mr_rail_poll(void)
{
    int done = 0;

    for (unsigned i = 0; i < rail.num_open; i++) {
        if (done && rail.open[i] == &mr_channel_net && ++rail.busy_rounds % NET_EVERY)
            break;
        done += rail.open[i]->poll();
    }
    mr_rail_idle = done ? 0 : mr_rail_idle + 1;
    return done;
}

bool mr_rail_drained(void)
{
    for (unsigned i = 0; i < rail.num_open; i++)
        if (rail.open[i]->drained && !rail.open[i]->drained())
            return false;
    return true;
}

bool mr_rail_lingers(void)
{
    for (unsigned i = 0; i < rail.num_open; i++)
        if (rail.open[i]->lingers && rail.open[i]->lingers())
            return true;
    return false;
}

static void nothing_delivered(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
}

static void nothing_done(void *cookie, int error)
{
}

static void nothing_landed(struct mr_vc *vc, uint64_t rreq, int error)
{
}

static void nobody_failed(struct mr_vc *vc, int error)
{
}

void mr_rail_quiet(void)
{
    rail.up = (struct mr_vc_upcalls){.deliver = nothing_delivered,
                                     .put_sent = nothing_done,
                                     .read_done = nothing_done,
                                     .put_landed = nothing_landed,
                                     .failed = nobody_failed};
}

/* ---- peers ------------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) struct mr_vc *make_vc(int rank)
{
    struct mr_vc *vc = calloc(1, sizeof *vc);

    if (!vc) {
        static struct mr_vc none = {.rank = -1, .error = -ENOMEM}; /* every send on it says so; made again next time */

        mr_log(MR_LOG_ERROR, "no memory for the virtual channel to rank %d", rank);
        return &none;
    }
    vc->rank = rank;
    for (unsigned i = 0; i < rail.num_open && !vc->ops; i++)
        if (rail.open[i]->reaches(rank))
            vc->ops = rail.open[i];
    if (!vc->ops)
        vc->error = -EHOSTUNREACH;
    rail.vc[rank] = vc;
    return vc;
}

struct mr_vc *mr_vc_get_peer(int world_rank)
{
    struct mr_vc *vc = rail.vc[world_rank];

    return vc ? vc : make_vc(world_rank);
}

int mr_vc_world_rank(const struct mr_vc *vc)
{
    return vc->rank;
}

size_t mr_vc_learn_sizes(struct mr_vc *vc)
{
    if (!vc->ops || vc->front.eager_max)
        return vc->front.eager_max;
    vc->front.eager_max = (uint32_t)vc->ops->eager_max(vc->rank);
    if (!vc->front.eager_max)
        return MR_EAGER_LEAST;
    vc->front.eager_most = vc->front.eager_max * (vc->ops->eager_packets ? vc->ops->eager_packets(vc->rank) : 1);
    vc->packet_max = vc->ops->packet_max ? vc->ops->packet_max(vc->rank) : vc->front.eager_max;
    return vc->front.eager_max;
}

bool mr_vc_eager_alone(const struct mr_vc *vc, size_t len, bool quiet)
{
    return vc->ops && vc->ops->eager_alone && vc->front.eager_max && vc->ops->eager_alone(vc->rank, len, quiet);
}

unsigned mr_vc_rate(const struct mr_vc *vc, size_t *whole)
{
    return vc->ops && vc->ops->rate ? vc->ops->rate(vc->rank, whole) : 0;
}

size_t mr_vc_packet_max(struct mr_vc *vc)
{
    if (!vc->packet_max)
        mr_vc_learn_sizes(vc);
    return vc->packet_max ? vc->packet_max : MR_EAGER_LEAST;
}

unsigned mr_vc_caps(const struct mr_vc *vc, size_t len)
{
    return vc->ops ? vc->ops->caps(vc->rank, len) : 0;
}

bool mr_vc_lost(const struct mr_vc *vc)
{
    return vc->error;
}

void *mr_vc_channel_data(const struct mr_vc *vc)
{
    return vc->channel_data;
}

void mr_vc_set_channel_data(struct mr_vc *vc, void *data)
{
    vc->channel_data = data;
}

/* ---- down -------------------------------------------------------------------------------------------------------- */

int mr_vc_send(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len)
{
    int err;

    if (__builtin_expect(vc->error, 0))
        return vc->error;
    hdr->note = vc->front.note;
    hdr->seq = vc->next_seq;
    hdr->src = (uint32_t)rail.launch->rank;
    err = vc->ops->send(vc, hdr, payload, len);
    if (!err)
        vc->next_seq++;
    return err;
}

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
    hdr->src = (uint32_t)rail.launch->rank;
    err = vc->ops->send_made(vc, hdr, len, scratch, make, what);
    if (!err)
        vc->next_seq++;
    return err;
}

uint32_t mr_vc_packets(const struct mr_vc *vc)
{
    return vc->next_seq;
}

uint32_t mr_vc_received(const struct mr_vc *vc)
{
    return vc->in.expected;
}

unsigned mr_vc_all_waiting; /* kept by the channels that have something to count, and by pt2pt/ */

unsigned mr_vc_waiting(struct mr_vc *vc)
{
    return !vc->error && vc->ops->waiting ? vc->ops->waiting(vc) : 0;
}

int mr_vc_expose(struct mr_vc *vc, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                 struct mr_remote *out)
{
    int err;

    if (vc->error)
        return vc->error;
    if (!vc->ops->expose)
        return -EOPNOTSUPP;
    err = vc->ops->expose(vc, buf, len, how, region, out);
    if (!err)
        (*region)->channel = vc->ops;
    return err;
}

void mr_vc_unexpose(struct mr_region *region)
{
    if (region && region->channel->unexpose)
        region->channel->unexpose(region);
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

int mr_vc_read(struct mr_vc *vc, void *buf, size_t size, struct mr_vc_part part, const struct mr_remote *src, void *cookie)
{
    if (vc->error)
        return vc->error;
    return vc->ops->read ? vc->ops->read(vc, buf, size, part, src, cookie) : -EOPNOTSUPP;
}

int mr_vc_get(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *src, uint64_t offset)
{
    if (vc->error)
        return vc->error;
    return vc->ops->get ? vc->ops->get(vc, buf, len, src, offset) : -EOPNOTSUPP;
}

/* ---- up ---------------------------------------------------------------------------------------------------------- */

static void deliver(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (__builtin_expect(hdr->kind < MR_VC_KIND_CHANNEL, 1))
        rail.up.deliver(vc, hdr, payload, len);
    else if (vc->ops->word)
        vc->ops->word(vc->rank, hdr, payload, len);
}

static void deliver_held(struct mr_vc *vc)
{
    struct mr_held *h;

    while ((h = mr_reorder_pop(&vc->in))) {
        mr_reorder_advance(&vc->in);
        deliver(vc, &h->hdr, h->payload, h->len);
        free(h);
    }
}

static void arrived_out_of_turn(struct mr_vc *vc, enum mr_order order, const struct mr_hdr *hdr, const void *payload,
                                size_t len)
{
    if (order == MR_ORDER_DUPLICATE) {
        mr_stat_add(MR_STAT_DUPLICATES, 1);
        return;
    }
    if (order == MR_ORDER_REFUSED) {
        mr_log(MR_LOG_ERROR, "refused packet %u of rank %d: packet %u is due, and it sends none so far ahead", hdr->seq,
               vc->rank, vc->in.expected);
        return;
    }
    mr_stat_add(MR_STAT_OUT_OF_ORDER, 1);
    if (mr_reorder_hold(&vc->in, hdr, payload, len) < 0) {
        mr_log(MR_LOG_ERROR, "no memory to keep packet %u of rank %d until its turn", hdr->seq, vc->rank);
        mr_vc_failed(vc->rank, -ENOMEM);
    }
}

void mr_vc_arrived(const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_vc *vc;
    enum mr_order order;

    if (__builtin_expect(hdr->src >= (uint32_t)rail.launch->size, 0)) {
        mr_log(MR_LOG_WARN, "dropped a packet from rank %u: the job has only %d", hdr->src, rail.launch->size);
        return;
    }
    vc = mr_vc_get_peer((int)hdr->src);
    if (__builtin_expect(vc->rank < 0, 0))
        return; /* no memory for it, and that has been said */
    order = mr_reorder_classify(&vc->in, hdr->seq);
    if (__builtin_expect(order != MR_ORDER_NEXT, 0)) {
        arrived_out_of_turn(vc, order, hdr, payload, len);
        return;
    }
    mr_reorder_advance(&vc->in);
    deliver(vc, hdr, payload, len);
    if (__builtin_expect(vc->in.head != NULL, 0))
        deliver_held(vc);
}

void mr_vc_put_sent(void *cookie, int error)
{
    rail.up.put_sent(cookie, error);
}

void mr_vc_read_done(void *cookie, int error)
{
    rail.up.read_done(cookie, error);
}

void mr_vc_put_landed(int world_rank, uint64_t rreq, int error)
{
    rail.up.put_landed(mr_vc_get_peer(world_rank), rreq, error);
}

void mr_vc_failed(int world_rank, int error)
{
    struct mr_vc *vc = mr_vc_get_peer(world_rank);

    if (vc->rank < 0 || vc->error)
        return;
    vc->error = error;
    rail.up.failed(vc, error);
}
