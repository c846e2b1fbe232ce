/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtual channels of this process, by number (launch.h), made at their first use. A packet gets its sequence
 * number here on the way down (mr_vc_send), and order and uniqueness on the way up. A channel is opened only if the job
 * has a peer for it: a job on one node opens no device.
 */
#include "libmrmpi/channel/channel.h"

#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/reorder.h"
#include "libmrmpi/launch/launch.h"

/* While other channels are busy the network is still polled once in so many rounds. */
#define NET_EVERY 8

/* State of a poll of a cheap channel. */
struct poller {
    void *const *pending; /* while this points to NULL there is nothing to do */
    int (*poll)(void);
};

static struct {
    const struct mr_launch *launch;
    size_t vc_size;
    struct mr_vc *nowhere;                      /* mr_vc_nowhere */
    struct mr_vc *none;                         /* used if there is no memory for one: every send on it fails */
    const struct mr_channel_ops *far, *open[4]; /* open: cheapest first */
    int far_error;                              /* of opening far for guests */
    unsigned num_open, num_pollers;
    struct poller poller[3]; /* at all but the network */
    int end;                 /* of the numbers in mr_vcs */
    int (*poll_net)(void);   /* NULL: not open */
    unsigned busy_rounds;
} all;

struct mr_vc_upcalls mr_vc_up;

/* ---- peers ------------------------------------------------------------------------------------------------------- */

struct mr_vc **mr_vcs; /* [launch->size], one that leads nowhere, and guests */
bool mr_vc_unrung;

/* Channels for guests know no other numbers, and the others none of guests. */
static bool carries_for(const struct mr_channel_ops *ops, int number)
{
    return ops->guests == (number > all.launch->size) && ops->reaches(number);
}

struct mr_vc *mr_vc_make(int world_rank)
{
    struct mr_vc *vc = mr_vcs[world_rank];

    if (vc)
        return vc;
    vc = calloc(1, all.vc_size);
    if (!vc) {
        mr_log(MR_LOG_ERROR, "no memory for the virtual channel to rank %d", world_rank);
        return all.none; /* made again next time */
    }
    vc->rank = world_rank;
    vc->self = (uint32_t)all.launch->rank;
    for (unsigned i = 0; i < all.num_open && !vc->ops; i++)
        if (carries_for(all.open[i], world_rank))
            vc->ops = all.open[i];
    if (!vc->ops)
        vc->error = -EHOSTUNREACH;
    mr_vcs[world_rank] = vc;
    if (vc->ops && vc->ops->made)
        vc->ops->made(vc);
    return vc;
}

int mr_vc_meet(const struct mr_card *card)
{
    int number = mr_guest_number(card), end = mr_guest_end();
    struct mr_vc **more;

    if (number < all.end)
        return number;
    more = realloc(mr_vcs, (size_t)end * sizeof *mr_vcs);
    if (!more)
        return -ENOMEM;
    memset(more + all.end, 0, (size_t)(end - all.end) * sizeof *more);
    mr_vcs = more;
    all.end = end;
    return number;
}

void mr_vc_forget(int number)
{
    struct mr_vc *vc = mr_vcs[number];

    if (!vc)
        return;
    mr_reorder_clear(&vc->in);
    free(vc);
    mr_vcs[number] = NULL;
}

size_t mr_vc_learn_sizes(struct mr_vc *vc)
{
    if (vc->ops && !vc->eager_max)
        vc->ops->sizes(vc);
    return vc->ops && !vc->eager_max ? MR_EAGER_LEAST : vc->eager_max;
}

size_t mr_vc_packet_max(struct mr_vc *vc)
{
    if (!vc->packet_max)
        mr_vc_learn_sizes(vc);
    return vc->packet_max ? vc->packet_max : MR_EAGER_LEAST;
}

/* ---- down -------------------------------------------------------------------------------------------------------- */

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
    mr_vc_number(vc, hdr);
    err = vc->ops->send_made(vc, hdr, len, scratch, make, what);
    if (!err)
        vc->next_seq++;
    return err;
}

int mr_vc_send_control(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len)
{
    return mr_vc_send(vc, hdr, payload, len);
}

/* ---- up ---------------------------------------------------------------------------------------------------------- */

static void deliver_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (likely(hdr->kind < MR_VC_KIND_CHANNEL)) {
        mr_vc_up.deliver(vc, hdr, payload, len);
        return;
    }
    mr_vc_up.noted(vc, hdr->note);                       /* its sender depends on it */
    if (vc->rank > all.launch->size && all.far->control) /* may have come over the channel stream */
        all.far->control(vc->rank, hdr, payload, len);
    else if (vc->ops->control)
        vc->ops->control(vc->rank, hdr, payload, len);
}

static void deliver_held(struct mr_vc *vc)
{
    struct mr_held *h;

    while ((h = mr_reorder_pop(&vc->in))) {
        mr_reorder_advance(&vc->in);
        deliver_packet(vc, &h->hdr, h->payload, h->len);
        mr_reorder_free(h);
    }
}

void mr_vc_failed(int world_rank, int error)
{
    struct mr_vc *vc = mr_vc_get_peer(world_rank);

    if (vc->rank < 0 || vc->error)
        return;
    vc->error = error;
    mr_vc_up.failed(vc, error);
}

static void arrived_out_of_turn(struct mr_vc *vc, enum mr_reorder_case order, const struct mr_hdr *hdr,
                                const void *payload, size_t len)
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

static inline __attribute__((always_inline)) void take_packet(struct mr_vc *vc, const struct mr_hdr *hdr,
                                                              const void *payload, size_t len)
{
    enum mr_reorder_case order = mr_reorder_classify(&vc->in, hdr->seq);

    if (unlikely(order != MR_ORDER_NEXT)) {
        arrived_out_of_turn(vc, order, hdr, payload, len);
        return;
    }
    mr_reorder_advance(&vc->in);
    deliver_packet(vc, hdr, payload, len);
    if (unlikely(vc->in.head != NULL))
        deliver_held(vc);
}

void mr_vc_arrived_from(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_hdr known = *hdr;

    if (known.rank == MR_RANK_OF_SOURCE)
        known.rank = vc->rank;
    if (!vc->error)
        take_packet(vc, &known, payload, len);
}

static __attribute__((noinline)) void arrived_from_guest(const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_vc *vc = hdr->src < (uint32_t)all.end ? mr_vcs[hdr->src] : NULL;

    if (vc && vc != all.nowhere)
        mr_vc_arrived_from(vc, hdr, payload, len);
    else
        mr_log(MR_LOG_WARN, "dropped a packet from rank %u: the job has only %d", hdr->src, all.launch->size);
}

void mr_vc_arrived(const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_vc *vc;

    if (unlikely(hdr->src >= (uint32_t)all.launch->size)) {
        arrived_from_guest(hdr, payload, len);
        return;
    }
    vc = mr_vc_get_peer((int)hdr->src);
    if (unlikely(vc->rank < 0))
        return; /* no memory for it, already logged */
    take_packet(vc, hdr, payload, len);
}

uint32_t mr_vc_received(const struct mr_vc *vc)
{
    return vc->in.expected;
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
    if (ops == all.far)
        all.poll_net = ops->poll;
    else
        all.poller[all.num_pollers++] = (struct poller){ops->pending ? ops->pending : &always, ops->poll};
    all.open[all.num_open++] = ops;
    return 0;
}

int mr_vc_open_guests(const struct mr_channel_ops *ops)
{
    for (unsigned i = 0; i < all.num_open; i++)
        if (all.open[i] == ops)
            return 0;
    mr_vc_unrung = true;
    return open_channel(ops);
}

int mr_vc_open_far(void)
{
    const struct mr_guest_rails *rails = all.far ? all.far->rails : NULL;

    if (all.poll_net || all.far_error)
        return all.far_error;
    all.far_error = rails ? rails->begin(all.launch) : -EOPNOTSUPP;
    if (all.far_error) {
        mr_log(MR_LOG_INFO, "no rails lead to processes of other jobs, which are reached by TCP: %s",
               strerror(-all.far_error));
        return all.far_error;
    }
    all.poll_net = all.far->poll;
    all.open[all.num_open++] = all.far;
    return 0;
}

const struct mr_guest_rails *mr_vc_far(void)
{
    return all.poll_net ? all.far->rails : NULL;
}

void mr_vc_change(struct mr_vc *vc, const struct mr_channel_ops *ops)
{
    vc->ops = ops;
    vc->eager_max = vc->eager_most = vc->fast_below = vc->part = 0;
    vc->packet_max = 0;
    vc->zsends = false;
}

int mr_vc_init(const struct mr_launch *launch, const struct mr_vc_upcalls *up, const struct mr_channel_ops *far)
{
    int err;

    memset(&all, 0, sizeof all);
    all.launch = launch;
    all.end = launch->size + 1;
    mr_vc_unrung = launch->num_nodes > 1;
    all.far = far;
    all.vc_size = up->vc_size > sizeof(struct mr_vc) ? up->vc_size : sizeof(struct mr_vc);
    mr_vc_up = *up;
    mr_vcs = calloc((size_t)launch->size + 1, sizeof *mr_vcs);
    all.none = calloc(1, all.vc_size);
    all.nowhere = calloc(1, all.vc_size);
    err = mr_vcs && all.none && all.nowhere ? 0 : -ENOMEM;
    if (!err) {
        all.nowhere->rank = -1;
        all.nowhere->error = -EIDRM;
        mr_vcs[launch->size] = all.nowhere;
        all.none->rank = -1;
        all.none->error = -ENOMEM;
        err = open_channel(&mr_channel_self);
    }
    if (!err && launch->local_size > 1)
        err = open_channel(&mr_channel_shm);
    if (!err && launch->num_nodes > 1)
        err = open_channel(far);
    if (err)
        mr_vc_finalize();
    return err;
}

void mr_vc_finalize(void)
{
    while (all.num_open)
        if (all.open[--all.num_open]->finalize)
            all.open[all.num_open]->finalize();
    for (int r = 0; mr_vcs && r < all.end; r++) {
        if (!mr_vcs[r] || mr_vcs[r] == all.nowhere)
            continue;
        mr_reorder_clear(&mr_vcs[r]->in);
        free(mr_vcs[r]);
    }
    free(all.none);
    free(all.nowhere);
    free(mr_vcs);
    mr_vcs = NULL;
    memset(&all, 0, sizeof all);
}

/*
 * Polling an idle network has a price (on a simulated fabric it lets time pass), so it is skipped while the cheaper
 * channels have work.
 */
int mr_vc_poll(void)
{
    int done = 0;

    for (const struct poller *l = all.poller, *end = l + all.num_pollers; l != end; l++)
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

static void nothing_landed(int world_rank, uint64_t rreq, int error)
{
}

static void nobody_failed(struct mr_vc *vc, int error)
{
}

void mr_vc_quiet(void)
{
    mr_vc_up = (struct mr_vc_upcalls){.deliver = nothing_delivered,
                                      .noted = nothing_noted,
                                      .put_sent = nothing_done,
                                      .read_done = nothing_done,
                                      .zsend_done = nothing_ended,
                                      .put_landed = nothing_landed,
                                      .failed = nobody_failed};
}
