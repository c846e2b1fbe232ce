/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shares: for each peer, the part of each rail by its weights, summed as they change: no walk over all peers. The
 * record: its counters are copied, not counted there, so counting costs the same with and without the record.
 */
#include "libmrmpi/net/view/view.h"

#include <stdlib.h>
#include <string.h>

#include "libmrmpi/launch/launch.h"
#include "libmrmpi/conn/conn.h"
#include "libmrmpi/verbs/verbs.h"

#define SAMPLE_NS 1000000
#define MILLION   1000000u

_Static_assert(MR_RECORD_RAILS == MR_RAILS_MAX, "a place for each rail");

/* A peer's part of the sums: parts of a million. */
struct mr_shares {
    uint32_t of[MR_RAILS_MAX];
    uint32_t leads; /* set of rails to the peer */
    uint32_t mark;  /* of all weights: differs if any weight differs */
};

/* Of all peers. Read by any thread. */
static uint64_t share_sum[MR_RAILS_MAX], share_peers[MR_RAILS_MAX];

static uint64_t sampled_ns, sampled[MR_RAILS_MAX][2];

static struct mr_record_event of_sub(const struct mr_sub *sub, enum mr_record_kind kind)
{
    return (struct mr_record_event){.ns = mr_clock_ns(),
                                    .kind = (uint8_t)kind,
                                    .peer = (uint32_t)sub->peer->rank,
                                    .rail = (uint8_t)sub->rail->index,
                                    .remote = sub->remote_rail,
                                    .link = sub->kind,
                                    .path = sub->path,
                                    .sl = mr_sub_sl(sub, MR_LEVEL_BULK),
                                    .variant = mr_sub_variant(sub)};
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

double mr_view_share(unsigned i)
{
    uint64_t peers = __atomic_load_n(&share_peers[i], __ATOMIC_RELAXED);

    return peers ? (double)__atomic_load_n(&share_sum[i], __ATOMIC_RELAXED) / MILLION / (double)peers : -1;
}

static void add_to_sum(uint64_t *sum, int64_t n)
{
    __atomic_store_n(sum, __atomic_load_n(sum, __ATOMIC_RELAXED) + (uint64_t)n, __ATOMIC_RELAXED);
}

/* A rail of ours without an open path to a peer counts there as long as another one has some: its part is 0. */
static void add_shares(const struct mr_shares *s, int sign)
{
    for (unsigned i = 0; i < MR_RAILS_MAX; i++)
        if (s->leads >> i & 1) {
            add_to_sum(&share_sum[i], sign * (int64_t)s->of[i]);
            add_to_sum(&share_peers[i], sign);
        }
}

/* Paths for large messages, according to the policy; without RDMA, paths for packets. */
static uint32_t subs_that_count(const struct mr_peer *p)
{
    uint32_t up = 0;

    for (unsigned i = 0; i < p->num_now; i++)
        up |= (uint32_t)p->load[i].up << i;
    return up & p->rdma ? mr_spread_narrow(p, MR_POLICY_LARGE, up & p->rdma) : up & ~p->excluded;
}

static struct mr_shares shares_of(const struct mr_peer *p)
{
    struct mr_shares s = {.leads = 0};
    uint32_t set = subs_that_count(p);
    uint64_t total = 0;

    for (unsigned i = 0; i < p->num_now; i++)
        total += set >> i & 1 ? mr_load_weight(&p->load[i]) : 0;
    for (unsigned i = 0; i < p->num_now; i++)
        s.mark = s.mark * 31 + (p->load[i].up && set >> i & 1 ? mr_load_weight(&p->load[i]) + 1 : p->load[i].up);
    for (unsigned i = 0; i < p->num_now && total; i++) {
        s.leads |= 1u << p->now[i].rail->index;
        if (set >> i & 1)
            s.of[p->now[i].rail->index] += (uint32_t)((uint64_t)mr_load_weight(&p->load[i]) * MILLION / total);
    }
    return s;
}

static void record_sub(const struct mr_sub *sub, enum mr_record_kind kind, uint64_t a)
{
    struct mr_record_event e = of_sub(sub, kind);

    e.a = a;
    mr_record_put(&e);
}

/* A closed subchannel has no weight. */
static void record_weights(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_now; i++)
        record_sub(&p->now[i], MR_RECORD_WEIGHT, p->load[i].up ? mr_load_weight(&p->load[i]) : 0);
}

void mr_view_weights(struct mr_peer *p)
{
    struct mr_shares now = shares_of(p);

    if (!p->shares)
        p->shares = calloc(1, sizeof *p->shares);
    if (!p->shares || p->shares->mark == now.mark)
        return;
    add_shares(p->shares, -1);
    *p->shares = now;
    add_shares(p->shares, 1);
    if (mr_record_events)
        record_weights(p);
}

/* None of its paths counts any more. */
static void forget_shares(struct mr_peer *p)
{
    if (p->shares)
        add_shares(p->shares, -1);
    free(p->shares);
    p->shares = NULL;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void note_sub(struct mr_sub *sub, enum mr_record_kind kind, uint64_t a)
{
    if (mr_record_events)
        record_sub(sub, kind, a);
}

void mr_view_record_port(const struct mr_rail *rail)
{
    struct mr_record_event e = {.ns = mr_clock_ns(),
                                .kind = rail->down ? MR_RECORD_PORT_DOWN : MR_RECORD_PORT_UP,
                                .rail = (uint8_t)rail->index,
                                .detail = rail->dev->fatal};

    mr_record_put(&e);
}

void mr_view_record_part(const struct mr_sub *sub, const struct mr_view_part *part)
{
    struct mr_record_event e = of_sub(sub, part->read ? MR_RECORD_READ : MR_RECORD_WRITE);

    if (!part->begun_ns)
        return;
    e.lasted_ns = e.ns - part->begun_ns;
    e.ns = part->begun_ns;
    e.a = part->len;
    e.b = part->of;
    e.detail = part->failed ? MR_RECORD_FAILED : 0;
    mr_record_put(&e);
}

void mr_view_record_moved(const struct mr_sub *sub, uint64_t len, bool read)
{
    struct mr_record_tally *t = mr_record_tally((unsigned)sub->peer->rank, sub->remote_rail);

    *(read ? &t->read : &t->written) += len;
}

/* ---- the record -------------------------------------------------------------------------------------------------- */

static uint64_t rail_bytes(unsigned i, bool in)
{
    return in ? mr_rail_counted(i, MR_RAIL_BYTES_RECEIVED) + mr_rail_counted(i, MR_RAIL_BYTES_READ)
              : mr_rail_counted(i, MR_RAIL_BYTES_SENT) + mr_rail_counted(i, MR_RAIL_BYTES_WRITTEN);
}

/* Without news nothing is written, so that a quiet rail does not push older entries out of the ring. */
static void sample_rail(unsigned i, uint64_t now_ns)
{
    struct mr_record_event e = {
        .ns = now_ns, .kind = MR_RECORD_BYTES, .rail = (uint8_t)i, .a = rail_bytes(i, false), .b = rail_bytes(i, true)};

    if (e.a == sampled[i][0] && e.b == sampled[i][1])
        return;
    sampled[i][0] = e.a;
    sampled[i][1] = e.b;
    mr_record_put(&e);
}

static void write_figures(uint64_t now_ns)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        struct mr_record_rail *r = &mr_record->rail[i];
        double share = mr_view_share(i);

        r->share_ppm = share < 0 ? ~0u : (uint32_t)(share * MILLION);
        r->is_down = mr_verbs.rail[i].down;
        for (unsigned s = 0; s < MR_RAIL_STAT_COUNT; s++)
            r->count[s] = mr_rail_counted(i, (enum mr_rail_stat)s);
        if (mr_record_events)
            sample_rail(i, now_ns);
    }
    for (unsigned s = 0; s < MR_STAT_COUNT; s++)
        mr_record->stat[s] = mr_stat_get((enum mr_stat)s);
    mr_record->updated_ns = sampled_ns = now_ns;
}

void mr_view_update(uint64_t now_ns)
{
    if (mr_record && now_ns - sampled_ns >= SAMPLE_NS)
        write_figures(now_ns);
}

static const struct mr_peer_events peer_events = {
    .noted = note_sub, .preferred = mr_view_weights, .lost = forget_shares, .freed = forget_shares};

void mr_view_init(void)
{
    mr_peer_subscribe(&peer_events);
}

void mr_view_open(const struct mr_launch *launch)
{
    mr_record_open((unsigned)launch->rank, (unsigned)launch->size, launch->node_name);
    mr_view_rails();
}

void mr_view_rails(void)
{
    if (!mr_record)
        return;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        const struct mr_rail *rail = &mr_verbs.rail[i];
        struct mr_record_rail *r = &mr_record->rail[i];

        memcpy(r->device, rail->dev->name, sizeof r->device - 1);
        r->port = rail->port;
        r->rate_mbps = rail->rate_mbps;
    }
    mr_record->num_rails = mr_verbs.num_rails;
    memset(sampled, 0, sizeof sampled);
    write_figures(mr_clock_ns());
}

void mr_view_close(void)
{
    if (mr_record) {
        write_figures(mr_clock_ns());
        mr_record->ended = 1;
    }
    mr_record_close();
}
