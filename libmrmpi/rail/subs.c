/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subchannels of a peer: one for each pair of rails (route/pair.h), path and kind of link. Each has a link for large
 * messages, and others for smaller ones where their service level differs.
 */
#include "libmrmpi/rail/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/rail/view.h"

const char *mr_sub_name(const struct mr_sub *sub, char out[MR_SUB_NAME])
{
    const struct mr_rail_addr *far = &sub->peer->card->rail[sub->remote_rail];

    snprintf(out, MR_SUB_NAME, "%s port %u to %s port %u, path %u", sub->rail->dev->name, sub->rail->port, far->device,
             far->port, sub->path);
    return out;
}

struct mr_sub *mr_sub_find(struct mr_peer *p, unsigned rail, unsigned remote, unsigned path, unsigned kind)
{
    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *s = &p->sub[i];

        if (s->rail->index == rail && s->remote_rail == remote && s->path == path && mr_sub_kind(s) == kind)
            return s;
    }
    return NULL;
}

int32_t mr_sub_tag(const struct mr_sub *sub, uint8_t generation)
{
    _Static_assert(MR_RAILS_MAX <= 8, "a rail's number has three bits");
    return (int32_t)(sub->rail->index | (uint32_t)sub->remote_rail << 3 | (uint32_t)(sub->path & 0x7f) << 6 |
                     (uint32_t)mr_sub_kind(sub) << 13 | (uint32_t)generation << 21);
}

/* Ours that the peer means. */
struct mr_sub *mr_sub_tagged(struct mr_peer *p, uint32_t tag)
{
    return mr_sub_find(p, tag >> 3 & 7, tag & 7, tag >> 6 & 0x7f, tag >> 13 & 0xff);
}

/* Large messages go by RDMA over links of one kind: reliable connections, or else unreliable ones. */
static void add_sub(struct mr_peer *p, const struct mr_pair *pair, unsigned ours, unsigned kind, unsigned twin,
                    unsigned lane)
{
    unsigned side = p->num_subs >= p->num_now;
    struct mr_sub *sub = &p->sub[p->num_subs++];
    unsigned place = (unsigned)(sub - p->sub) - side * p->num_now;

    sub->peer = p;
    sub->rail = &mr_verbs.rail[pair->rail[ours]];
    sub->remote_rail = pair->rail[!ours];
    sub->path = pair->path;
    sub->kind = (uint8_t)kind;
    sub->twin = (uint8_t)twin;
    sub->lane = (uint8_t)lane;
    sub->side = (uint8_t)side;
    sub->waiting_end = &sub->waiting;
    if (kind == p->bulk_kind && mr_link_kinds[kind]->write)
        p->rdma |= 1u << place;
    p->loads[side][place] =
        (struct mr_load){.weight = pair->weight, .small_weight = pair->small_weight, .until = &sub->rail->until};
}

/* How many pairs the rail has that has the fewest, here or there. */
static unsigned least_pairs(const struct mr_pair *pair, unsigned num)
{
    unsigned least = num;

    for (unsigned side = 0; side < 2; side++)
        for (unsigned i = 0; i < num; i++) {
            unsigned n = 0;

            for (unsigned k = 0; k < num; k++)
                n += pair[k].rail[side] == pair[i].rail[side];
            least = n < least ? n : least;
        }
    return least;
}

/* So many of each, that a class of several lanes uses them all on every rail: its share is divided among them there. */
static unsigned count_twins(const struct mr_pair *pair, unsigned num, unsigned num_kinds)
{
    unsigned lanes = mr_net.qos.level[MR_LEVEL_BULK].num_lanes, least = least_pairs(pair, num);
    unsigned twins = least ? (lanes + least - 1) / least : 1;

    while (twins > 1 && twins * num * num_kinds > MR_SUBS_MAX)
        twins--;
    return twins ? twins : 1;
}

/* The subchannels of a rail have the lanes in turn; where there are too few for all lanes, rails begin with others. */
static void add_kind(struct mr_peer *p, unsigned kind, const struct mr_pair *pair, unsigned num, unsigned ours,
                     unsigned twins)
{
    unsigned on_rail[MR_RAILS_MAX] = {0}, most = 0;

    for (unsigned i = 0; i < num; i++) {
        unsigned n = ++on_rail[pair[i].rail[ours]];

        most = n > most ? n : most;
    }
    for (unsigned r = 0; r < MR_RAILS_MAX; r++)
        on_rail[r] = r * most * twins;
    for (unsigned twin = 0; twin < twins; twin++)
        for (unsigned i = 0; i < num; i++)
            add_sub(p, &pair[i], ours, kind, twin, on_rail[pair[i].rail[ours]]++);
}

static void add_side(struct mr_peer *p, const struct mr_pair *pair, unsigned num, unsigned ours, unsigned twins)
{
    for (unsigned k = 0; k < mr_net.kinds.num; k++)
        if (p->card->kinds >> mr_net.kinds.kind[k] & 1)
            add_kind(p, mr_net.kinds.kind[k], pair, num, ours, twins);
}

/* Memory for so many subchannels on each side, and for those who choose among them. 0 or -ENOMEM. */
static int make_room(struct mr_peer *p, unsigned num)
{
    size_t n = num ? num : 1;
    uint64_t *due = calloc(3 * n, sizeof *due);

    p->packet_turn.due = due;
    p->loads[0] = calloc(2 * n, sizeof *p->loads[0]);
    p->sub = calloc(2 * n, sizeof *p->sub);
    if (!due || !p->loads[0] || !p->sub)
        return -ENOMEM;
    p->stripe_turn.due = due + n;
    p->inflow_turn.due = due + 2 * n;
    /* who has one message for each of many peers begins with another port at each */
    p->stripe_turn.next = (unsigned)(mr_net.launch->rank + p->rank) % (unsigned)n;
    p->loads[1] = p->loads[0] + n;
    p->num_now = num;
    p->now = p->sub;
    p->load = p->loads[0];
    return 0;
}

/* The lower rank is the first side at both ends. */
static unsigned our_side(const struct mr_peer *p)
{
    return mr_net.launch->rank > p->rank;
}

/* Returns how many pairs there are. */
static unsigned list_pairs(struct mr_peer *p, unsigned most, struct mr_pair pair[MR_SUBS_MAX], unsigned *left_out)
{
    struct mr_rail_addr near[MR_RAILS_MAX];
    struct mr_pair_side sides[2];
    unsigned ours = our_side(p), num;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        near[i] = mr_verbs.rail[i].addr;
    sides[ours] = (struct mr_pair_side){.rail = near,
                                        .num_rails = mr_verbs.num_rails,
                                        .paths = (unsigned)mr_config.paths,
                                        .all = !strcmp(mr_config.pairs, "all")};
    sides[!ours] = (struct mr_pair_side){
        .rail = p->card->rail, .num_rails = p->card->num_rails, .paths = p->card->paths, .all = p->card->all_pairs};
    num = mr_pair_match(&sides[0], &sides[1], pair, most, left_out);
    p->stripe_turn.kib_time = p->inflow_turn.kib_time = p->packet_turn.kib_time =
        mr_sched_kib_time(mr_pair_weigh_for(pair, num, sides, ours, mr_net.policy));
    p->packet_turn.uneven = false;
    for (unsigned i = 0; i < num; i++)
        p->packet_turn.uneven |= pair[i].small_weight < MR_WEIGHT_MAX;
    return num;
}

static void reweigh(struct mr_peer *p)
{
    unsigned kinds = (unsigned)__builtin_popcount(mr_net.our_kinds & p->card->kinds), left_out;
    struct mr_pair pair[MR_SUBS_MAX];
    unsigned num = list_pairs(p, MR_SUBS_MAX / kinds, pair, &left_out);

    for (unsigned side = 0; side < 2; side++)
        for (unsigned i = 0; i < p->num_now; i++) {
            p->loads[side][i].weight = pair[i % num].weight;
            p->loads[side][i].small_weight = pair[i % num].small_weight;
        }
    mr_peer_tell_reweighed(p);
    mr_sub_prefer(p);
}

void mr_peers_reweigh(void)
{
    for (int i = 0; i < mr_net.launch->size; i++)
        if (mr_net.peer[i] && mr_net.peer[i]->num_subs)
            reweigh(mr_net.peer[i]);
}

/* Ranks of a node, and peers on several nodes, begin with different rails. */
static void begin_turns(struct mr_peer *p, unsigned num)
{
    unsigned home = (unsigned)mr_net.launch->local_rank + (unsigned)mr_net.launch->node_of[p->rank];

    p->packet_turn.next = num ? home % num : 0;
    p->packet_turn.used = MR_SCHED_QUANTUM;
}

/* All pairs of rails, their paths and kinds of links, whether their ports are up or not. */
int mr_subs_make(struct mr_peer *p)
{
    struct mr_pair pair[MR_SUBS_MAX];
    unsigned left_out, kinds = mr_net.our_kinds & p->card->kinds, num_kinds = (unsigned)__builtin_popcount(kinds), num, twins;

    if (!num_kinds) {
        mr_log(MR_LOG_ERROR, "rank %d on %s: it uses no kind of link that is used here (MRMPI_LINKS)", p->rank,
               p->card->host);
        return -EHOSTUNREACH;
    }
    num = list_pairs(p, MR_SUBS_MAX / num_kinds, pair, &left_out);
    twins = count_twins(pair, num, num_kinds);
    if (make_room(p, num * num_kinds * twins))
        return -ENOMEM;
    begin_turns(p, num);
    p->bulk_kind = kinds >> MR_LINK_RC & 1     ? MR_LINK_RC
                   : kinds >> MR_LINK_RING & 1 ? MR_LINK_RING
                                               : MR_LINK_UC;
    for (unsigned side = 0; side < 2; side++)
        add_side(p, pair, num, our_side(p), twins);
    if (mr_steer_peer(p))
        return -ENOMEM;
    p->tracked = p->rdma && !mr_link_kinds[p->bulk_kind]->reliable && !mr_net.kinds.native[p->bulk_kind];
    if (left_out)
        mr_log(MR_LOG_WARN, "rank %d on %s: %u paths are used, %u more are not; MRMPI_PATHS asks for fewer", p->rank,
               p->card->host, num, left_out);
    return 0;
}

void mr_sub_prefer(struct mr_peer *p)
{
    uint32_t of_kind[MR_LINK_KINDS] = {0}, up = 0;
    bool found = false;

    for (unsigned i = 0; i < p->num_now; i++)
        if (p->load[i].up)
            of_kind[p->now[i].kind] |= 1u << i;
    p->spare = p->far = 0;
    for (unsigned k = 0; k < mr_net.kinds.num; k++) {
        uint32_t all = of_kind[mr_net.kinds.kind[k]], set = mr_spread_narrow(p, MR_POLICY_SMALL, all);

        of_kind[mr_net.kinds.kind[k]] = set;
        up |= all;
        p->spare |= found ? all : all & ~set;
        if (!found && mr_net.policy[MR_POLICY_SMALL].kind->where == MR_WHERE_NEAR)
            p->far = all & ~set;
        if (!found && set && (!mr_net.kinds.native[mr_net.kinds.kind[k]] || !mr_link_kinds[mr_net.kinds.kind[k]]->confirms))
            mr_peer_tell_lossy(p);
        found |= set != 0;
    }
    if (p->steer)
        p->spare = mr_steer_set(p, of_kind, up);
    mr_view_weights(p);
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static unsigned take_link_id(struct mr_peer *p)
{
    unsigned id = ~p->link_ids ? (unsigned)__builtin_ctzll(~p->link_ids) : MR_WINDOW_LINKS;

    if (id == MR_WINDOW_LINKS || mr_window_reserve(&p->out, id + 1))
        return MR_WINDOW_LINKS;
    p->link_ids |= 1ull << id;
    return id;
}

static void forget_link(struct mr_peer *p, struct mr_link *l)
{
    if (l->index < MR_WINDOW_LINKS)
        p->link_ids &= ~(1ull << l->index);
    l->index = MR_WINDOW_LINKS;
}

void mr_sub_forget_links(struct mr_sub *sub)
{
    for (unsigned l = 0; l < sub->num_links; l++)
        forget_link(sub->peer, &sub->link[l]);
}

static void close_link(struct mr_sub *sub, struct mr_link *l)
{
    if (l->state != MR_LINK_CLOSED)
        l->ops->close(l);
    forget_link(sub->peer, l);
}

/* Nothing was sent over them. */
static void close_links(struct mr_sub *sub)
{
    for (unsigned l = 0; l < sub->num_links; l++)
        close_link(sub, &sub->link[l]);
}

/* Are there places in the window for one link more than every closed subchannel needs? This one has its first. */
static bool has_spare_links(const struct mr_sub *sub)
{
    const struct mr_peer *p = sub->peer;
    unsigned left = MR_WINDOW_LINKS - (unsigned)__builtin_popcountll(p->link_ids), closed = 0;

    for (unsigned i = 0; i < p->num_subs; i++)
        closed += &p->sub[i] != sub && p->sub[i].state == MR_SUB_CLOSED;
    return left > closed;
}

/* Memory for so many links: few subchannels are ever opened of all that there might be. All are closed. 0 or -ENOMEM.
 */
static int make_links(struct mr_sub *sub, unsigned num)
{
    struct mr_link *links;

    if (num <= sub->num_links)
        return 0;
    links = calloc(num, sizeof *links);
    if (!links)
        return -ENOMEM;
    for (unsigned l = 0; l < num; l++)
        links[l].index = MR_WINDOW_LINKS;
    free(sub->link);
    sub->link = links;
    sub->num_links = num;
    for (unsigned l = 0; l < MR_LEVELS; l++)
        sub->level[l] = links;
    return 0;
}

/* Large messages go by RDMA over the subchannel. */
static bool has_rdma(const struct mr_sub *sub)
{
    return sub->kind == sub->peer->bulk_kind && mr_link_kinds[sub->kind]->write;
}

/*
 * Does this level want another link than the next larger messages? If its service level is another one. Packets that go
 * with the bulk do, too, where that goes by RDMA: requests of a queue pair begin in order, so that they would wait behind
 * all that is to be written, and behind reads when there are more than the adapters do at a time. Where small ones have a
 * level of their own, and there are many subchannels, these others have to do without.
 */
static bool wants_link(const struct mr_sub *sub, const uint8_t sl[MR_LEVELS], unsigned l)
{
    if (l == MR_LEVEL_PACKETS && has_rdma(sub))
        return sl[MR_LEVEL_SMALL] == sl[l] || mr_levels_have_room(sub->peer);
    return l == MR_LEVEL_BULK || sl[l] != sl[l + 1];
}

static unsigned count_links(const struct mr_sub *sub, const uint8_t sl[MR_LEVELS])
{
    unsigned n = 0;

    for (unsigned l = 0; l < MR_LEVELS; l++)
        n += wants_link(sub, sl, l);
    return n;
}

/*
 * Packets that share a lane with the bulk wait in the fabric as long as its buffers hold, before they are confirmed. For
 * short ones to have the share of their class meanwhile so many must be under way.
 */
static int open_link(struct mr_sub *sub, struct mr_link *link, const struct mr_link_events *events, bool bulk, bool deep)
{
    *link = (struct mr_link){.ops = mr_link_kinds[sub->kind],
                             .events = events,
                             .owner = sub,
                             .index = (uint8_t)take_link_id(sub->peer),
                             .bulk = bulk,
                             .deep = deep,
                             .native = mr_net.kinds.native[sub->kind]};
    return link->index < MR_WINDOW_LINKS ? link->ops->open(link, sub->rail) : -ENOSPC;
}

/* Links for a subchannel: for large messages, and for the levels that want their own. */
int mr_sub_open(struct mr_sub *sub, const struct mr_link_events *events)
{
    unsigned n = 0;
    uint8_t sl[MR_LEVELS];
    bool apart;

    mr_levels_of(sub, sl);
    if (make_links(sub, count_links(sub, sl)))
        return -ENOMEM;
    apart = sl[MR_LEVEL_SMALL] != sl[MR_LEVEL_BULK] || has_rdma(sub);
    for (unsigned l = MR_LEVELS; l-- > 0;) {
        int err;

        if (n && (!wants_link(sub, sl, l) || !has_spare_links(sub))) {
            sub->level[l] = sub->level[l + 1];
            sub->sl[l] = sub->sl[l + 1];
            continue;
        }
        err = open_link(sub, &sub->link[n], events, apart && l != MR_LEVEL_SMALL && l != MR_LEVEL_PACKETS,
                        l == MR_LEVEL_PACKETS && mr_net.ahead_limited);
        if (err && n && sl[l] == sl[l + 1]) { /* it can do without */
            forget_link(sub->peer, &sub->link[n]);
            sub->level[l] = sub->level[l + 1];
            sub->sl[l] = sub->sl[l + 1];
            continue;
        }
        if (err) {
            close_links(sub);
            return err;
        }
        sub->level[l] = &sub->link[n++];
        sub->sl[l] = sl[l];
    }
    sub->turn = (uint8_t)(sub->peer->turn + !mr_sub_is_current(sub));
    sub->closing = sub->told = sub->heard = false;
    sub->state = MR_SUB_OPENING;
    return 0;
}

/*
 * What was opened in a round that came to nothing. No packet was sent over it. If it was connected the peer may think
 * that it is open, and have sent: the generation is over, but what has arrived is taken in.
 */
void mr_sub_unopen(struct mr_sub *sub)
{
    if (sub->link[0].state == MR_LINK_OPEN) {
        for (unsigned l = 0; l < sub->num_links; l++)
            if (sub->link[l].state == MR_LINK_OPEN)
                sub->link[l].ops->leave(&sub->link[l]);
        sub->news.gone = true;
        sub->news.gone_generation = sub->generation++;
        mr_peer_due(sub->peer);
    }
    close_links(sub);
    sub->state = MR_SUB_CLOSED;
    mr_ration_recount(sub->peer);
}

static bool has_own_link(struct mr_link *const level[MR_LEVELS], unsigned l)
{
    return l == MR_LEVEL_BULK || level[l] != level[l + 1];
}

struct mr_cm_sub mr_sub_describe(const struct mr_sub *sub)
{
    struct mr_cm_sub s = {.rail = (uint8_t)sub->rail->index,
                          .remote = sub->remote_rail,
                          .path = sub->path,
                          .kind = mr_sub_kind(sub),
                          .turn = sub->turn,
                          .needed = sub->peer->needed,
                          .generation = sub->generation};

    for (unsigned l = 0; l < MR_LEVELS; l++) {
        s.level[l].qpn = sub->level[l]->qpn & 0xffffff;
        s.level[l].sl = sub->sl[l];
        s.own |= (uint8_t)(has_own_link(sub->level, l) << l);
    }
    return s;
}

static void close_unused_links(struct mr_sub *sub)
{
    for (unsigned i = 0; i < sub->num_links; i++) {
        bool used = false;

        for (unsigned l = 0; l < MR_LEVELS; l++)
            used |= sub->level[l] == &sub->link[i];
        if (!used && sub->link[i].state != MR_LINK_CLOSED)
            close_link(sub, &sub->link[i]);
    }
}

/*
 * The links that both sides have made. Messages of a level that one of them has none for go on that of the next larger
 * ones: those would crowd the lane of smaller ones, but not the other way round.
 */
int mr_sub_connect(struct mr_sub *sub, const struct mr_rail_addr *to, const struct mr_cm_sub *remote,
                       const struct mr_cm_sub *sls, uint32_t local_psn, uint32_t remote_psn)
{
    struct mr_link *made[MR_LEVELS];

    memcpy(made, sub->level, sizeof made);
    for (unsigned l = MR_LEVELS; l-- > 0;) {
        struct mr_link_end end = {.addr = to,
                                  .qpn = remote->level[l].qpn,
                                  .local_psn = local_psn,
                                  .remote_psn = remote_psn,
                                  .sl = sls->level[l].sl & 15,
                                  .path = sub->path};
        int err;

        if (l != MR_LEVEL_BULK && !(has_own_link(made, l) && remote->own >> l & 1)) {
            sub->level[l] = sub->level[l + 1];
            sub->sl[l] = sub->sl[l + 1];
            continue;
        }
        err = made[l]->ops->connect(made[l], &end);
        if (err)
            return err;
        sub->level[l] = made[l];
        sub->sl[l] = end.sl;
    }
    close_unused_links(sub);
    return 0;
}
