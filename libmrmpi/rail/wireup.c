/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting to peers on demand: subchannels for the pairs of rails (rail/pair.h), the exchange over datagrams. Each
 * subchannel has a link for large messages, and others for smaller ones where their service level differs.
 */
#include "libmrmpi/rail/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/rail/view.h"

#define REQUESTS_MAX    32             /* to connect, that nobody has answered yet */
#define TIMEOUT_MIN_NS  2000000ull     /* before a request is repeated */
#define SILENCE_NS      10000000000ull /* before it is said that a peer does not answer; doubles */
#define REOPEN_ATTEMPTS 4              /* of one round; another begins after a pause (mend.c) */

/* ---- subchannels ------------------------------------------------------------------------------------------------- */

const char *mr_sub_name(const struct mr_sub *sub, char out[MR_SUB_NAME])
{
    const struct mr_rail_addr *far = &sub->peer->card->rail[sub->remote_rail];

    snprintf(out, MR_SUB_NAME, "%s port %u to %s port %u, path %u", sub->rail->dev->name, sub->rail->port, far->device,
             far->port, sub->path);
    return out;
}

/* Large messages go by RDMA over links of one kind: reliable connections, or else unreliable ones. */
static void add_sub(struct mr_peer *p, const struct mr_pair *pair, unsigned ours, unsigned kind, unsigned twin)
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
    sub->side = (uint8_t)side;
    sub->waiting_end = &sub->waiting;
    if (kind == p->bulk_kind && mr_link_kinds[kind]->write)
        p->rdma |= 1u << place;
    p->loads[side][place] =
        (struct mr_load){.weight = pair->weight, .small_weight = pair->small_weight, .until = &sub->rail->until};
}

/* So many of each, that a class of several lanes uses them all. */
static unsigned count_twins(unsigned pairs, unsigned num_kinds)
{
    unsigned lanes = mr_net.qos.level[MR_LEVEL_BULK].num_lanes, twins = pairs ? (lanes + pairs - 1) / pairs : 1;

    while (twins > 1 && twins * pairs * num_kinds > MR_SUBS_MAX)
        twins--;
    return twins ? twins : 1;
}

static void add_side(struct mr_peer *p, const struct mr_pair *pair, unsigned num, unsigned ours, unsigned twins)
{
    for (unsigned k = 0; k < mr_net.kinds.num; k++)
        for (unsigned twin = 0; twin < twins && p->card->kinds >> mr_net.kinds.kind[k] & 1; twin++)
            for (unsigned i = 0; i < num; i++)
                add_sub(p, &pair[i], ours, mr_net.kinds.kind[k], twin);
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
    return num;
}

void mr_peer_reweigh(struct mr_peer *p)
{
    unsigned kinds = (unsigned)__builtin_popcount(mr_net.our_kinds & p->card->kinds), left_out;
    struct mr_pair pair[MR_SUBS_MAX];
    unsigned num = list_pairs(p, MR_SUBS_MAX / kinds, pair, &left_out);

    for (unsigned side = 0; side < 2; side++)
        for (unsigned i = 0; i < p->num_now; i++) {
            p->loads[side][i].weight = pair[i % num].weight;
            p->loads[side][i].small_weight = pair[i % num].small_weight;
        }
    mr_bulk_unmeasure(p);
    mr_sub_prefer(p);
}

/* Ranks of a node, and peers on several nodes, begin with different rails. */
static void begin_turns(struct mr_peer *p, unsigned num)
{
    unsigned home = (unsigned)mr_net.launch->local_rank + (unsigned)mr_net.launch->node_of[p->rank];

    p->packet_turn.next = num ? home % num : 0;
    p->packet_turn.used = MR_SCHED_QUANTUM;
}

/* All pairs of rails, their paths and kinds of links, whether their ports are up or not. */
static int make_subs(struct mr_peer *p)
{
    struct mr_pair pair[MR_SUBS_MAX];
    unsigned left_out, kinds = mr_net.our_kinds & p->card->kinds, num_kinds = (unsigned)__builtin_popcount(kinds), num, twins;

    if (!num_kinds) {
        mr_log(MR_LOG_ERROR, "rank %d on %s: it uses no kind of link that is used here (MRMPI_LINKS)", p->rank,
               p->card->host);
        return -EHOSTUNREACH;
    }
    num = list_pairs(p, MR_SUBS_MAX / num_kinds, pair, &left_out);
    twins = count_twins(num, num_kinds);
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
    mr_budget_first(p, (uint8_t)kinds);
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
            mr_rely_begin(p);
        found |= set != 0;
    }
    if (p->steer)
        p->spare = mr_steer_set(p, of_kind, up);
    mr_view_weights(p);
}

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

/*
 * Does this level want another link than the next larger messages? If its service level is another one. Small messages
 * and all control packets do, too, where large ones go by RDMA: requests of a queue pair begin in order, so that they
 * would wait behind all that is to be written, and behind reads when there are more than the adapters do at a time.
 */
static bool wants_link(const struct mr_sub *sub, const uint8_t sl[MR_LEVELS], unsigned l)
{
    return l == MR_LEVEL_BULK || sl[l] != sl[l + 1] ||
           (l == MR_LEVEL_SMALL && sub->kind == sub->peer->bulk_kind && mr_link_kinds[sub->kind]->write);
}

static unsigned count_links(const struct mr_sub *sub, const uint8_t sl[MR_LEVELS])
{
    unsigned n = 0;

    for (unsigned l = 0; l < MR_LEVELS; l++)
        n += wants_link(sub, sl, l);
    return n;
}

static int open_link(struct mr_sub *sub, struct mr_link *link, bool bulk)
{
    *link = (struct mr_link){.ops = mr_link_kinds[sub->kind],
                             .events = &mr_mend_events,
                             .owner = sub,
                             .index = (uint8_t)take_link_id(sub->peer),
                             .bulk = bulk,
                             .native = mr_net.kinds.native[sub->kind]};
    return link->index < MR_WINDOW_LINKS ? link->ops->open(link, sub->rail) : -ENOSPC;
}

/* Links for a subchannel: for large messages, and for the levels that want their own. */
static int open_sub(struct mr_sub *sub)
{
    unsigned n = 0;
    uint8_t sl[MR_LEVELS];
    bool apart;

    mr_change_levels(sub, sl);
    if (make_links(sub, count_links(sub, sl)))
        return -ENOMEM;
    apart = wants_link(sub, sl, MR_LEVEL_SMALL);
    for (unsigned l = MR_LEVELS; l-- > 0;) {
        int err;

        if (n && (!wants_link(sub, sl, l) || !has_spare_links(sub))) {
            sub->level[l] = sub->level[l + 1];
            sub->sl[l] = sub->sl[l + 1];
            continue;
        }
        err = open_link(sub, &sub->link[n], apart && l != MR_LEVEL_SMALL);
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
static void unopen_sub(struct mr_sub *sub)
{
    if (sub->link[0].state == MR_LINK_OPEN) {
        for (unsigned l = 0; l < sub->num_links; l++)
            if (sub->link[l].state == MR_LINK_OPEN)
                sub->link[l].ops->leave(&sub->link[l]);
        sub->news.gone = true;
        sub->news.gone_generation = sub->generation++;
        mr_mend(sub->peer);
    }
    close_links(sub);
    sub->state = MR_SUB_CLOSED;
    mr_budget_recount(sub->peer);
}

static void unopen_all(struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (p->sub[i].state == MR_SUB_OPENING)
            unopen_sub(&p->sub[i]);
}

static bool has_own_link(struct mr_link *const level[MR_LEVELS], unsigned l)
{
    return l == MR_LEVEL_BULK || level[l] != level[l + 1];
}

static struct mr_cm_sub describe_sub(const struct mr_sub *sub)
{
    struct mr_cm_sub s = {.rail = (uint8_t)sub->rail->index,
                          .remote = sub->remote_rail,
                          .path = sub->path,
                          .kind = mr_sub_kind(sub),
                          .turn = sub->turn,
                          .needed = sub->peer->homeless != NULL,
                          .generation = sub->generation};

    for (unsigned l = 0; l < MR_LEVELS; l++) {
        s.level[l].qpn = sub->level[l]->qpn & 0xffffff;
        s.level[l].sl = sub->sl[l];
        s.own |= (uint8_t)(has_own_link(sub->level, l) << l);
    }
    return s;
}

static uint32_t random_psn(void)
{
    uint32_t psn = 0;

    if (getrandom(&psn, sizeof psn, GRND_NONBLOCK) != sizeof psn)
        psn = (uint32_t)mr_clock_ns();
    return psn & 0xffffff;
}

/* "mlx5_0 port 1 (subnet fe80:0:0:1::), ..."; of RoCE the GID. */
static const char *describe_rails(const struct mr_rail_addr *const rail[], unsigned n, char *out, size_t size)
{
    size_t used = 0;

    snprintf(out, size, "none");
    for (unsigned i = 0; i < n && used < size; i++) {
        struct in6_addr gid = {{{0}}};
        char text[INET6_ADDRSTRLEN] = "";

        memcpy(&gid, rail[i]->gid, rail[i]->global ? 16 : 8);
        inet_ntop(AF_INET6, &gid, text, sizeof text);
        used += (size_t)snprintf(out + used, size - used, "%s%s port %u (%s %s)", i ? ", " : "", rail[i]->device,
                                 rail[i]->port, rail[i]->global ? "RoCE" : "subnet", text);
    }
    return out;
}

static void explain_no_pair(const struct mr_peer *p)
{
    const struct mr_rail_addr *ours[MR_RAILS_MAX], *theirs[MR_RAILS_MAX];
    char here[512], there[512];

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        ours[i] = &mr_verbs.rail[i].addr;
    for (unsigned i = 0; i < p->card->num_rails; i++)
        theirs[i] = &p->card->rail[i];
    mr_log(MR_LOG_ERROR,
           "no rail leads to rank %d on %s: no subnet is common (RoCE: no kind of GID). Here: %s. There: %s", p->rank,
           p->card->host, describe_rails(ours, mr_verbs.num_rails, here, sizeof here),
           describe_rails(theirs, p->card->num_rails, there, sizeof there));
}

static int meet_peer(struct mr_peer *p)
{
    int err = mr_peer_fetch_card(p);

    if (!err)
        err = make_subs(p);
    if (!err && !p->num_subs) {
        explain_no_pair(p);
        err = -EHOSTUNREACH;
    }
    return err;
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

/* What a message of the peer says of it, or one of ours. */
static const struct mr_cm_sub *find_in(const struct mr_cm_msg *m, const struct mr_sub *sub)
{
    bool ours = m->from == (uint32_t)mr_net.launch->rank;

    for (unsigned i = 0; i < m->num_subs; i++) {
        const struct mr_cm_sub *s = &m->sub[i];

        if (sub->rail->index == (ours ? s->rail : s->remote) && sub->remote_rail == (ours ? s->remote : s->rail) &&
            s->path == sub->path && s->kind == mr_sub_kind(sub))
            return s;
    }
    return NULL;
}

/* A request for queue pairs of a later generation says that the peer has given up those of before. */
static void learn_generations(struct mr_peer *p, const struct mr_cm_msg *req)
{
    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *sub = &p->sub[i];
        const struct mr_cm_sub *s = find_in(req, sub);

        if (!s || !mr_is_later(s->generation, sub->generation))
            continue;
        mr_sub_gone(sub, (uint8_t)(s->generation - 1));
        if (sub->state == MR_SUB_CLOSED || sub->state == MR_SUB_OPENING)
            sub->generation = s->generation;
    }
}

/*
 * Which subchannels a round is about: in the first one all of the side that is used, later the one whose turn it is, or
 * all of the other side; in an answer those asked for.
 */
static bool is_in_round(const struct mr_peer *p, const struct mr_sub *sub, const struct mr_cm_msg *req)
{
    if (req)
        return find_in(req, sub);
    if (p->up && p->reopening)
        return sub == p->reopening;
    return mr_sub_is_current(sub) != p->up && p->wanted >> sub->kind & 1;
}

/* A port that was up a moment ago comes back, perhaps. */
static bool may_come_back(const struct mr_rail *rail)
{
    uint64_t patience = (uint64_t)mr_config.patience * 1000000000;

    return !rail->dev->fatal && rail->down_ns && mr_clock_ns() - rail->down_ns < patience;
}

/*
 * 0; -EAGAIN: not now, what is asked for has not drained yet, or this is the first round and its ports went down
 * lately; -ENETDOWN: its ports are down.
 */
static int can_answer(const struct mr_peer *p, const struct mr_cm_msg *req)
{
    int err = -ENETDOWN;

    for (unsigned i = 0; i < p->num_subs; i++) {
        const struct mr_sub *sub = &p->sub[i];

        if (!find_in(req, sub))
            continue;
        if (sub->rail->down || sub->rail->dev->fatal) {
            err = !p->up && may_come_back(sub->rail) ? -EAGAIN : err;
            continue;
        }
        if (sub->state == MR_SUB_CLOSED || sub->state == MR_SUB_OPENING)
            return 0;
        err = -EAGAIN;
    }
    return err;
}

/* Kinds of links that the peer asks for and does not get. */
static uint8_t refused_kinds(struct mr_peer *p, const struct mr_cm_msg *req)
{
    bool asked = false, needed = false;

    for (unsigned i = 0; i < p->num_subs && mr_net.rationed; i++) {
        const struct mr_cm_sub *s = find_in(req, &p->sub[i]);

        asked |= s && mr_net.rationed >> p->sub[i].kind & 1;
        needed |= s && s->needed;
    }
    return asked && !mr_budget_grants(p, needed) ? mr_net.rationed : 0;
}

/* Nothing but what is refused was asked for. What else was is not to be had yet, and asked for again. */
static int refuse(const struct mr_peer *p, const struct mr_cm_msg *req, uint8_t refused)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (!(refused >> p->sub[i].kind & 1) && find_in(req, &p->sub[i]))
            return -EAGAIN;
    return -EDQUOT;
}

static int prepare(struct mr_cm_conn *c, const struct mr_cm_msg *req, struct mr_cm_msg *out)
{
    struct mr_peer *p = container_of(c, struct mr_peer, cm);
    uint8_t refused = 0;
    int failed = -ENETDOWN, err = p->error ? -ECONNREFUSED : p->sub ? 0 : meet_peer(p);

    if (err)
        return err;
    if (p->up)
        c->attempts_max = REOPEN_ATTEMPTS;
    if (req) {
        mr_where_learn(p, req);
        learn_generations(p, req);
        err = can_answer(p, req);
        if (err)
            return err; /* a round of ours that is under way is not touched */
        refused = refused_kinds(p, req);
    }
    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *sub = &p->sub[i];
        bool wanted = !sub->rail->down && is_in_round(p, sub, req) && !(refused >> sub->kind & 1);

        if (sub->state == MR_SUB_OPENING && (!wanted || sub->link[0].state == MR_LINK_OPEN))
            unopen_sub(sub); /* of an earlier round */
        if (wanted && sub->state == MR_SUB_CLOSED) {
            mr_budget_asked(p, sub->kind);
            err = open_sub(sub);
            failed = err ? err : failed;
        }
        if (wanted && sub->state == MR_SUB_OPENING)
            out->sub[out->num_subs++] = describe_sub(sub);
    }
    out->psn = random_psn();
    if (out->num_subs)
        return 0;
    if (refused)
        return refuse(p, req, refused);
    if (p->up)
        return failed;
    if (!req && failed == -ENETDOWN && mr_clock_ns() - c->begun_ns < (uint64_t)mr_config.patience * 1000000000)
        return -EAGAIN;
    mr_log(MR_LOG_ERROR, "no rail leads to rank %d on %s: %s", p->rank, p->card->host,
           failed == -ENETDOWN ? "the ports here are down" : strerror(-failed));
    return failed;
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
static int connect_sub(struct mr_sub *sub, const struct mr_rail_addr *to, const struct mr_cm_sub *remote,
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

/* It has left the connections that we asked for out of its answer. */
static bool has_refused(const struct mr_peer *p, const struct mr_cm_msg *remote)
{
    bool asked = false;

    for (unsigned i = 0; i < p->num_subs; i++) {
        const struct mr_sub *sub = &p->sub[i];

        if (sub->state != MR_SUB_OPENING || !(mr_net.rationed >> sub->kind & 1))
            continue;
        if (find_in(remote, sub))
            return false;
        asked = true;
    }
    return asked;
}

/* -EAGAIN: all that we asked for broke before the answer came. */
static int connect_all(struct mr_cm_conn *c, const struct mr_cm_msg *remote, const struct mr_cm_msg *sls)
{
    struct mr_peer *p = container_of(c, struct mr_peer, cm);
    bool refused = has_refused(p, remote);
    unsigned connected = 0;
    int err = -EAGAIN;
    char name[MR_SUB_NAME];

    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *sub = &p->sub[i];
        const struct mr_cm_sub *r = find_in(remote, sub), *s = find_in(sls, sub);

        if (sub->state != MR_SUB_OPENING)
            continue;
        if (!r) {
            unopen_sub(sub);
            err = -EHOSTUNREACH;
            continue;
        }
        if (mr_is_later(r->generation, sub->generation))
            sub->generation = r->generation; /* the later one counts at both ends */
        if (mr_is_later(r->turn, sub->turn) && (r->turn & 1) == sub->side)
            sub->turn = r->turn;
        err = connect_sub(sub, &p->card->rail[sub->remote_rail], r, s ? s : r, c->local->psn, remote->psn);
        if (!err) {
            connected++;
            continue;
        }
        mr_log(MR_LOG_ERROR, "the queue pairs to rank %d on %s, %s, cannot be connected: %s", p->rank, p->card->host,
               mr_sub_name(sub, name), strerror(-err));
        unopen_sub(sub);
    }
    if (refused)
        mr_budget_refused(p);
    return connected ? 0 : err;
}

/* ---- the exchange ------------------------------------------------------------------------------------------------ */

/*
 * In the first round over another pair of rails with each attempt, so that a dead one does not keep us from using those
 * that live. Later a datagram takes the way that is to be opened, and so shows that it works.
 */
static struct mr_sub *pick_way(struct mr_peer *p, const struct mr_cm_msg *msg, unsigned attempt)
{
    const struct mr_cm_sub *s = msg->sub;
    struct mr_sub *sub = msg->num_subs ? mr_sub_find(p, s->rail, s->remote, s->path, s->kind) : p->answering;

    return p->up && sub ? sub : &p->sub[attempt % p->num_subs];
}

static int transmit(struct mr_cm_conn *c, const struct mr_cm_msg *msg, unsigned attempt)
{
    struct mr_peer *p = container_of(c, struct mr_peer, cm);
    struct mr_sub *sub = p->num_subs ? pick_way(p, msg, attempt) : NULL;
    struct mr_cm_msg m = *msg;
    char name[MR_SUB_NAME];
    int err;

    if (!sub)
        return -EHOSTUNREACH;                         /* not even a rejection gets there */
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) /* they may have moved since the message was made */
        m.port[i] = (struct mr_cm_port){.lid = mr_verbs.rail[i].addr.lid, .lmc = mr_verbs.rail[i].addr.lmc};
    err = mr_ud_send(sub->rail, &p->card->rail[sub->remote_rail], mr_net.qos.level[MR_LEVEL_SMALL].sl[0], &m,
                     MR_CM_LENGTH(m.num_subs));
    p->answering = sub;
    if (attempt && err != -EAGAIN)
        mr_stat_add(MR_STAT_CONNECT_RETRIES, 1);
    if (err && err != -EAGAIN)
        mr_log(MR_LOG_WARN, "connecting to rank %d on %s: no datagram over %s: %s", p->rank, p->card->host,
               mr_sub_name(sub, name), strerror(-err));
    return err;
}

static void established(struct mr_cm_conn *c)
{
    struct mr_peer *p = container_of(c, struct mr_peer, cm);
    bool first = !p->up;
    unsigned opened = 0;
    uint8_t turn = p->turn;

    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *sub = &p->sub[i];

        if (sub->state != MR_SUB_OPENING)
            continue;
        sub->state = MR_SUB_OPEN;
        mr_budget_asked(p, sub->kind);
        if (mr_net.rationed >> sub->kind & 1)
            p->refusals = 0;
        p->loads[sub->side][mr_sub_place(sub)].up = !sub->rail->down;
        if (mr_is_later(sub->turn, turn))
            turn = sub->turn;
        mr_mend_opened(sub);
        opened++;
    }
    mr_change_opened(p, turn);
    mr_sub_prefer(p);
    mr_stat_add(p->up ? MR_STAT_REOPENED : MR_STAT_CONNECTS, 1);
    mr_log(MR_LOG_DEBUG, "%s rank %d on %s in %.1f ms, %u repetitions: %u subchannels, service levels %u and %u",
           p->up ? "again connected to" : "connected to", p->rank, p->card->host,
           (double)(mr_clock_ns() - c->begun_ns) / 1e6, c->attempts, opened, p->answering->sl[MR_LEVEL_SMALL],
           p->answering->sl[MR_LEVEL_BULK]);
    if (c->initiator && c->smooth)
        mr_rtt_sample(&mr_net.connect_rtt, mr_clock_ns() - c->begun_ns);
    p->up = true;
    mr_where_answered(p);
    if (first)
        mr_mend_connected(p);
    mr_rings_opened(p);
    mr_net_backlog(p);
}

static void explain_rejection(const struct mr_peer *p)
{
    const struct mr_cm_conn *c = &p->cm;

    if (c->reason == MR_CM_BAD_VERSION)
        mr_log(MR_LOG_ERROR,
               "rank %d on %s runs another version of mrmpi: it speaks version %u of connecting, this rank version %u; "
               "all ranks of a job need the same",
               p->rank, p->card->host, c->detail, MR_CM_VERSION);
    else
        mr_log(p->up && c->reason != MR_CM_GIVEN_UP ? MR_LOG_WARN : MR_LOG_ERROR,
               "rank %d on %s refuses to connect: %s%s%s%s", p->rank, p->card->host, mr_cm_reason_text(c->reason),
               c->detail ? " (" : "", c->detail ? strerror(c->detail) : "", c->detail ? ")" : "");
}

static void connect_failed(struct mr_cm_conn *c, int error)
{
    struct mr_peer *p = container_of(c, struct mr_peer, cm);

    unopen_all(p);
    if (c->rejected && (c->reason != MR_CM_ENOUGH || !p->up))
        explain_rejection(p);
    if (!p->up && error == -EAGAIN) { /* another round, when there is a port for it */
        mr_cm_again(c, c->attempts_max);
        mr_cm_start(c, ++mr_net.next_id, mr_clock_ns());
        return;
    }
    if (p->up && c->reason == MR_CM_GIVEN_UP) {
        mr_peer_lost(p, error);
        return;
    }
    if (p->up) {
        if (!p->reopening)
            mr_change_failed(p);
        else if (c->reason == MR_CM_ENOUGH && c->rejected)
            mr_budget_refused(p);
        else if (p->reopening->state == MR_SUB_CLOSED)
            mr_mend_later(p->reopening);
        return;
    }
    if (error == -ETIMEDOUT)
        mr_log(MR_LOG_ERROR,
               "rank %d on %s does not answer the request to connect (%u attempts): its process hangs, or "
               "no path leads there; it is given up because of MRMPI_CONNECT_RETRIES",
               p->rank, p->card->host, c->attempts);
    else if (!c->rejected)
        mr_log(MR_LOG_ERROR, "rank %d on %s cannot be connected to: %s", p->rank, p->card->host, strerror(-error));
    mr_peer_lost(p, error);
}

static const struct mr_cm_ops cm_ops = {
    .prepare = prepare,
    .connect = connect_all,
    .transmit = transmit,
    .established = established,
    .failed = connect_failed,
};

static void watch(struct mr_peer *p)
{
    if (p->connecting || !(p->queued || mr_cm_waiting(&p->cm)))
        return;
    p->connecting = true;
    p->next_connecting = NULL;
    *(mr_net.connecting ? mr_net.connecting_end : &mr_net.connecting) = p;
    mr_net.connecting_end = &p->next_connecting;
    mr_net.attentive = true;
}

void mr_wireup_init(struct mr_peer *p)
{
    mr_cm_init(&p->cm, &cm_ops, mr_net.run, (uint32_t)mr_net.launch->rank, (uint32_t)p->rank,
               (uint64_t)mr_config.connect_timeout_ms * 1000000,
               mr_config.connect_retries ? (unsigned)mr_config.connect_retries + 1 : 0);
    if (!mr_net.connect_rtt.min_ns) {
        uint64_t max = (uint64_t)mr_config.connect_timeout_ms * 1000000;

        mr_rtt_init(&mr_net.connect_rtt, max < TIMEOUT_MIN_NS ? max : TIMEOUT_MIN_NS, max);
    }
}

bool mr_peer_reopen(struct mr_peer *p, struct mr_sub *sub)
{
    if (mr_cm_waiting(&p->cm))
        return false;
    mr_cm_again(&p->cm, REOPEN_ATTEMPTS);
    p->cm.timeout_ns = mr_net.connect_rtt.max_ns;
    p->reopening = sub;
    mr_cm_start(&p->cm, ++mr_net.next_id, mr_clock_ns());
    watch(p);
    return true;
}

static void begin_round(struct mr_peer *p)
{
    p->queued = false;
    p->cm.timeout_ns = mr_rtt_timeout(&mr_net.connect_rtt);
    mr_cm_start(&p->cm, ++mr_net.next_id, mr_clock_ns());
}

/* Requests go out in order, and only so many at a time: those that have been repeated do not keep others from going. */
static unsigned num_requested(void)
{
    unsigned n = 0;

    for (const struct mr_peer *p = mr_net.connecting; p; p = p->next_connecting)
        n += !p->up && p->cm.state == MR_CM_REQ_SENT && !p->cm.attempts;
    return n;
}

void mr_peer_connect(struct mr_peer *p)
{
    if (p->cm.state != MR_CM_IDLE || p->queued)
        return;
    if (num_requested() < REQUESTS_MAX)
        begin_round(p);
    else
        p->queued = true;
    watch(p);
}

void mr_wireup_datagram(const void *data, size_t len)
{
    uint32_t self = (uint32_t)mr_net.launch->rank, size = (uint32_t)mr_net.launch->size;
    struct mr_cm_msg msg;
    bool ours = mr_cm_check(data, len, mr_net.run, self, size, &msg);
    bool foreign = !ours && mr_cm_check_foreign(data, len, mr_net.run, self, size, &msg);
    struct mr_peer *p;

    if (!(ours || foreign) || !mr_channel_net.reaches((int)msg.from)) {
        mr_log(MR_LOG_DEBUG, "dropped a datagram of %zu bytes that is not for us", len);
        return;
    }
    p = mr_peer_get((int)msg.from);
    if (!p)
        return;
    if (ours && p->sub)
        mr_where_learn(p, &msg);
    if (ours && (msg.type == MR_CM_ASK || msg.type == MR_CM_HERE))
        mr_ping_datagram(p, &msg);
    else if (ours)
        mr_cm_receive(&p->cm, &msg, mr_clock_ns());
    else
        mr_cm_receive_foreign(&p->cm, &msg);
    watch(p);
}

/* A peer that computes is waited for as long as the job lives. */
static void complain_of_silence(struct mr_peer *p, uint64_t now_ns)
{
    uint64_t waited = now_ns > p->cm.begun_ns ? now_ns - p->cm.begun_ns : 0; /* it may have begun just now */
    int err;

    if (p->up || p->error || p->cm.state != MR_CM_REQ_SENT || waited < (p->silence_ns ? 2 * p->silence_ns : SILENCE_NS))
        return;
    p->silence_ns = waited;
    err = mr_launch_failed();
    if (err) {
        mr_log(MR_LOG_ERROR, "rank %d on %s does not answer the request to connect, and the job ends: %s", p->rank,
               p->card->host, strerror(-err));
        mr_peer_lost(p, err);
        return;
    }
    mr_log(MR_LOG_WARN,
           "rank %d on %s has not answered the request to connect for %u s: it computes, its process hangs, or no path "
           "leads there; it is waited for",
           p->rank, p->card->host, (unsigned)(waited / 1000000000));
}

/* True while there is something to wait for. */
static bool tick_peer(struct mr_peer *p, uint64_t now_ns, unsigned *room)
{
    if (p->queued && p->cm.state != MR_CM_IDLE)
        p->queued = false; /* the peer was first */
    if (p->queued && *room) {
        --*room;
        begin_round(p);
    }
    mr_cm_tick(&p->cm, now_ns);
    if (p->cm.state == MR_CM_REQ_SENT)
        mr_where_ask(p, now_ns);
    complain_of_silence(p, now_ns);
    return p->queued || mr_cm_waiting(&p->cm);
}

void mr_wireup_tick(void)
{
    unsigned requested = num_requested(), room = requested < REQUESTS_MAX ? REQUESTS_MAX - requested : 0;
    struct mr_peer **at = &mr_net.connecting, *p;
    uint64_t now = mr_clock_ns();

    if (mr_net.num_fetching)
        mr_cards_poll();
    while ((p = *at)) {
        if (tick_peer(p, now, &room)) {
            at = &p->next_connecting;
            continue;
        }
        p->connecting = false;
        *at = p->next_connecting;
    }
    mr_net.connecting_end = at;
}
