/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers on other hosts: business cards, pairing of rails, connecting on demand, and losing a peer.
 *
 * Rail i of ours is paired with rail i of the peer as far as both have rails that can reach each other. For each LID
 * path of a pair there is a queue pair for small messages, and a second for bulk ones where their service level
 * differs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/rc.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/rail/net.h"

#define CARD_KEY     "mrmpi.card"
#define CARD_MAGIC   0x6d726364u /* "mrcd" */
#define CARD_VERSION 3

/* ---- cards ------------------------------------------------------------------------------------------------------- */

static size_t card_length(unsigned rails)
{
    return offsetof(struct mr_card, rail) + rails * sizeof(struct mr_rail_addr);
}

int mr_card_publish(void)
{
    struct mr_card card = {.magic = CARD_MAGIC, .version = CARD_VERSION, .num_rails = (uint16_t)mr_verbs.num_rails};

    if (*mr_net.launch->node_name) /* what the launcher calls it: parts of one machine may be hosts of their own */
        memcpy(card.host, mr_net.launch->node_name, strnlen(mr_net.launch->node_name, sizeof card.host - 1));
    else
        gethostname(card.host, sizeof card.host - 1);
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        card.rail[i] = mr_verbs.rail[i].addr;
    return mr_launch_put(CARD_KEY, &card, card_length(card.num_rails));
}

static int fetch_card(struct mr_peer *p)
{
    size_t len = 0;
    int err = mr_launch_get(p->rank, CARD_KEY, &p->card, sizeof p->card, &len);

    if (!err && (len < card_length(0) || p->card.magic != CARD_MAGIC || p->card.version != CARD_VERSION ||
                 p->card.num_rails > MR_RAILS_MAX || len != card_length(p->card.num_rails)))
        err = -EPROTO;
    if (err) {
        memset(&p->card, 0, sizeof p->card);
        mr_log(MR_LOG_ERROR, "rank %d has not published how it can be reached (%s)", p->rank, strerror(-err));
        return err;
    }
    p->card.host[sizeof p->card.host - 1] = 0;
    for (unsigned i = 0; i < p->card.num_rails; i++)
        p->card.rail[i].device[sizeof p->card.rail[i].device - 1] = 0;
    return 0;
}

/* ---- queue pairs ------------------------------------------------------------------------------------------------- */

/* Same link layer; on InfiniBand the same subnet, on Ethernet the same version of RoCE and family of addresses. */
static bool can_reach(const struct mr_rail_addr *a, const struct mr_rail_addr *b)
{
    return a->global == b->global && (a->global ? a->gid_kind == b->gid_kind : !memcmp(a->gid, b->gid, 8));
}

static unsigned paths_of(const struct mr_rail_addr *a, const struct mr_rail_addr *b)
{
    unsigned lmc = a->lmc < b->lmc ? a->lmc : b->lmc;
    unsigned want = mr_config.paths > 0 ? (unsigned)mr_config.paths : 1;

    return want < 1u << lmc ? want : 1u << lmc;
}

/* How many subchannels there can be, all pairs of rails and their paths; at least one, so that there is memory. */
static unsigned most_subs(const struct mr_peer *p)
{
    unsigned n = 0;

    for (unsigned i = 0; i < mr_verbs.num_rails && i < p->card.num_rails; i++)
        n += paths_of(&mr_verbs.rail[i].addr, &p->card.rail[i]);
    return n < 1 ? 1 : n < MR_SUBS_MAX ? n : MR_SUBS_MAX;
}

static void describe_failure(struct mr_qp *qp, const struct mr_wc *wc)
{
    const struct mr_sub *sub = qp->owner;
    const struct mr_peer *p = sub->peer;
    const char *cause = !mr_rail_is_active(sub->rail) ? "the port here is down"
                        : wc->error == -EHOSTUNREACH  ? "its host, its process or a link on the way is gone"
                        : wc->error == -ENOBUFS       ? "it takes no packets any more"
                        : wc->error == -EFAULT        ? "memory was unmapped while a transfer was under way"
                        : wc->flushed                 ? "the connection broke while it served the peer"
                                                      : "the port here is going down; if not, see the device's log";

    mr_log(MR_LOG_ERROR, "rank %d on %s, rail %u (%s port %u), path %u, service level %u: %s; likely %s", p->rank,
           p->card.host, sub->rail->index, sub->rail->dev->name, sub->rail->port, qp->path, qp->sl, wc->status, cause);
}

static void qp_failed(struct mr_qp *qp, const struct mr_wc *wc)
{
    struct mr_sub *sub = qp->owner;

    if (sub->peer->error)
        return;
    describe_failure(qp, wc);
    mr_peer_lost(sub->peer, wc->error);
}

/* What the port's rate promises, where weights may follow what is measured later; else all are equal. */
static uint32_t first_weight(const struct mr_rail *rail)
{
    uint32_t fastest = 0, weight;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        if (mr_verbs.rail[i].rate_mbps > fastest)
            fastest = mr_verbs.rail[i].rate_mbps;
    if (!mr_config.adaptive || !rail->rate_mbps)
        return MR_WEIGHT_MAX;
    weight = (uint32_t)((uint64_t)MR_WEIGHT_MAX * rail->rate_mbps / fastest);
    return weight < MR_WEIGHT_MIN ? MR_WEIGHT_MIN : weight;
}

static int make_sub(struct mr_peer *p, struct mr_rail *rail, unsigned path, struct mr_cm_sub *out)
{
    const struct mr_fabric_qos *qos = &mr_net.qos;
    struct mr_sub *sub = &p->sub[p->num_subs];
    uint8_t bulk = qos->num_lanes ? qos->sl_bulk[p->num_subs % qos->num_lanes] : qos->sl_small;
    unsigned levels = bulk == qos->sl_small ? 1 : 2;

    *sub = (struct mr_sub){.peer = p, .rail = rail, .remote_rail = (uint8_t)rail->index, .path = (uint8_t)path};
    sub->waiting_end = &sub->waiting;
    for (unsigned l = 0; l < levels; l++) {
        int err = mr_qp_create(rail, &sub->qp[l]);

        if (err) {
            mr_qp_destroy(&sub->qp[0]);
            return err;
        }
        sub->qp[l].owner = sub;
        sub->qp[l].failed = qp_failed;
    }
    sub->level[MR_LEVEL_SMALL] = &sub->qp[0];
    sub->level[MR_LEVEL_BULK] = &sub->qp[levels - 1];
    *out = (struct mr_cm_sub){.rail = (uint8_t)rail->index,
                              .path = (uint8_t)path,
                              .sl = {qos->sl_small, bulk},
                              .qpn = {sub->qp[0].qpn, sub->qp[levels - 1].qpn}};
    p->load[p->num_subs++] = (struct mr_load){.weight = first_weight(rail)};
    return 0;
}

static uint32_t random_psn(void)
{
    uint32_t psn = 0;

    if (getrandom(&psn, sizeof psn, GRND_NONBLOCK) != sizeof psn)
        psn = (uint32_t)mr_clock_ns();
    return psn & 0xffffff;
}

static int prepare(struct mr_cm_conn *c, struct mr_cm_msg *out)
{
    struct mr_peer *p = (struct mr_peer *)((char *)c - offsetof(struct mr_peer, cm));
    int err = fetch_card(p);

    if (err)
        return err;
    p->sub = calloc(most_subs(p), sizeof *p->sub);
    if (!p->sub)
        return -ENOMEM;
    err = -EHOSTUNREACH;
    for (unsigned i = 0; i < mr_verbs.num_rails && i < p->card.num_rails; i++) {
        struct mr_rail *rail = &mr_verbs.rail[i];

        if (rail->down || !can_reach(&rail->addr, &p->card.rail[i]))
            continue;
        for (unsigned path = 0; path < paths_of(&rail->addr, &p->card.rail[i]) && p->num_subs < MR_SUBS_MAX; path++) {
            int e = make_sub(p, rail, path, &out->sub[out->num_subs]);

            if (e)
                err = e;
            else
                out->num_subs++;
        }
    }
    out->psn = random_psn();
    if (out->num_subs)
        return 0;
    mr_log(
        MR_LOG_ERROR, "no rail leads to rank %d on %s: %s", p->rank, p->card.host,
        err == -EHOSTUNREACH
            ? "none of ours is up and, as its counterpart there, in the same subnet (RoCE: with a GID of the same kind)"
            : strerror(-err));
    return err;
}

static struct mr_sub *find_sub(struct mr_peer *p, const struct mr_cm_sub *s)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (p->sub[i].rail->index == s->rail && p->sub[i].path == s->path)
            return &p->sub[i];
    return NULL;
}

/*
 * One or two queue pairs, as many as both sides have made. A single one is on the level of large messages: those would
 * crowd the lane of small ones, but not the other way round.
 */
static int connect_sub(struct mr_sub *sub, const struct mr_rail_addr *to, const struct mr_cm_sub *remote,
                       const struct mr_cm_sub *sls, uint32_t local_psn, uint32_t remote_psn)
{
    bool two = sub->level[MR_LEVEL_BULK] != sub->level[MR_LEVEL_SMALL] && remote->qpn[1] != remote->qpn[0];
    int err;

    err = mr_qp_connect(sub->level[MR_LEVEL_SMALL], to, remote->qpn[0], local_psn, remote_psn,
                        sls->sl[two ? 0 : 1] & 15, sub->path);
    if (!err && two)
        err = mr_qp_connect(sub->level[MR_LEVEL_BULK], to, remote->qpn[1], local_psn, remote_psn, sls->sl[1] & 15,
                            sub->path);
    if (!two)
        sub->level[MR_LEVEL_BULK] = sub->level[MR_LEVEL_SMALL];
    return err;
}

static int connect_all(struct mr_cm_conn *c, const struct mr_cm_msg *remote, const struct mr_cm_msg *sls)
{
    struct mr_peer *p = (struct mr_peer *)((char *)c - offsetof(struct mr_peer, cm));
    unsigned connected = 0;
    int err = -EHOSTUNREACH;

    for (unsigned i = 0; i < remote->num_subs; i++) {
        const struct mr_cm_sub *r = &remote->sub[i], *s = r;
        struct mr_sub *sub = find_sub(p, r);

        for (unsigned k = 0; k < sls->num_subs; k++)
            if (sls->sub[k].rail == r->rail && sls->sub[k].path == r->path)
                s = &sls->sub[k];
        if (!sub || r->rail >= p->card.num_rails || p->load[sub - p->sub].up)
            continue;
        err = connect_sub(sub, &p->card.rail[r->rail], r, s, c->local.psn, remote->psn);
        if (err) {
            mr_log(MR_LOG_ERROR, "the queue pairs to rank %d on %s, rail %u, cannot be connected: %s", p->rank,
                   p->card.host, r->rail, strerror(-err));
            continue;
        }
        p->load[sub - p->sub].up = true;
        connected++;
    }
    return connected ? 0 : err;
}

/* ---- the exchange ------------------------------------------------------------------------------------------------ */

/* Another pair of rails with each attempt, so that a dead one does not keep us from using those that live. */
static void transmit(struct mr_cm_conn *c, const struct mr_cm_msg *msg, unsigned attempt)
{
    struct mr_peer *p = (struct mr_peer *)((char *)c - offsetof(struct mr_peer, cm));
    struct mr_sub *sub = &p->sub[attempt % p->num_subs];
    int err =
        mr_ud_send(sub->rail, &p->card.rail[sub->remote_rail], mr_net.qos.sl_small, msg, MR_CM_LENGTH(msg->num_subs));

    if (attempt)
        mr_stat_add(MR_STAT_CONNECT_RETRIES, 1);
    if (err && err != -EAGAIN)
        mr_log(MR_LOG_WARN, "connecting to rank %d on %s: no datagram on rail %u: %s", p->rank, p->card.host,
               sub->rail->index, strerror(-err));
}

static void established(struct mr_cm_conn *c)
{
    struct mr_peer *p = (struct mr_peer *)((char *)c - offsetof(struct mr_peer, cm));

    p->up = true;
    mr_stat_add(MR_STAT_CONNECTS, 1);
    mr_log(MR_LOG_DEBUG,
           "connected to rank %d on %s in %.1f ms, %u repetitions: %u subchannels, service levels %u and %u", p->rank,
           p->card.host, (double)(mr_clock_ns() - c->begun_ns) / 1e6, c->attempts, p->num_subs,
           p->sub[0].level[MR_LEVEL_SMALL]->sl, p->sub[0].level[MR_LEVEL_BULK]->sl);
    mr_net_backlog(p);
}

static void connect_failed(struct mr_cm_conn *c, int error)
{
    struct mr_peer *p = (struct mr_peer *)((char *)c - offsetof(struct mr_peer, cm));

    if (error == -ETIMEDOUT)
        mr_log(MR_LOG_ERROR,
               "rank %d on %s does not answer the request to connect (%u attempts): its process hangs, or "
               "no path leads there; MRMPI_CONNECT_RETRIES says how often to try",
               p->rank, p->card.host, c->attempts);
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
    if (p->connecting || !mr_cm_waiting(&p->cm))
        return;
    p->connecting = true;
    p->next_connecting = mr_net.connecting;
    mr_net.connecting = p;
}

struct mr_peer *mr_peer_get(int rank)
{
    struct mr_peer *p = mr_net.peer[rank];

    if (p)
        return p;
    p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->rank = rank;
    p->vc = mr_vc_get_peer(rank);
    p->pending_end = &p->pending;
    mr_cm_init(&p->cm, &cm_ops, mr_net.run, (uint32_t)mr_net.launch->rank, (uint32_t)rank,
               (uint64_t)mr_config.connect_timeout_ms * 1000000, (unsigned)mr_config.connect_retries + 1);
    mr_net.peer[rank] = p;
    mr_vc_set_channel_data(p->vc, p);
    return p;
}

void mr_peer_connect(struct mr_peer *p)
{
    if (p->cm.state != MR_CM_IDLE)
        return;
    mr_cm_start(&p->cm, ++mr_net.next_id, mr_clock_ns());
    watch(p);
}

void mr_peer_datagram(const void *data, size_t len)
{
    struct mr_cm_msg msg;
    struct mr_peer *p;

    if (!mr_cm_check(data, len, mr_net.run, (uint32_t)mr_net.launch->rank, (uint32_t)mr_net.launch->size, &msg) ||
        !mr_channel_net.reaches((int)msg.from)) {
        mr_log(MR_LOG_DEBUG, "dropped a datagram of %zu bytes that is not for us", len);
        return;
    }
    p = mr_peer_get((int)msg.from);
    if (!p)
        return;
    mr_cm_receive(&p->cm, &msg, mr_clock_ns());
    watch(p);
}

void mr_peers_tick(void)
{
    struct mr_peer **at = &mr_net.connecting, *p;
    uint64_t now = mr_clock_ns();

    while ((p = *at)) {
        mr_cm_tick(&p->cm, now);
        if (mr_cm_waiting(&p->cm)) {
            at = &p->next_connecting;
            continue;
        }
        p->connecting = false;
        *at = p->next_connecting;
    }
}

/* ---- losing a peer ----------------------------------------------------------------------------------------------- */

static void describe_isolation(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++) {
        const struct mr_rail *rail = p->sub[i].rail;

        if (rail->down && (!i || p->sub[i - 1].rail != rail))
            mr_log(MR_LOG_ERROR,
                   "rank %d on %s, rail %u (%s port %u): the port here is down, and no other rail is left", p->rank,
                   p->card.host, rail->index, rail->dev->name, rail->port);
    }
}

void mr_peer_lost(struct mr_peer *p, int error)
{
    if (p->error)
        return;
    if (error == -ENETDOWN)
        describe_isolation(p);
    p->error = error ? error : -EIO;
    p->up = false;
    for (unsigned i = 0; i < p->num_subs; i++) {
        p->load[i].up = false;
        mr_qp_abort(&p->sub[i].qp[0]);
        mr_qp_abort(&p->sub[i].qp[1]);
    }
    p->failing = true;
    p->next_failing = mr_net.failing;
    mr_net.failing = p;
}

static void drop_pending(struct mr_peer *p)
{
    while (p->pending)
        mr_net_pending_pop(p);
}

/* Said upwards when all that was under way has come back: nobody writes into the program's buffers after that. */
int mr_peers_report(void)
{
    struct mr_peer **at = &mr_net.failing, *p;
    int n = 0;

    while ((p = *at)) {
        drop_pending(p);
        mr_rc_put_abandon(p, p->error);
        if (p->puts) {
            at = &p->next_failing;
            continue;
        }
        *at = p->next_failing;
        p->failing = false;
        mr_vc_failed(p->rank, p->error);
        n++;
    }
    return n;
}

void mr_peers_rail_changed(struct mr_rail *rail)
{
    for (int r = 0; r < mr_net.launch->size; r++) {
        struct mr_peer *p = mr_net.peer[r];

        for (unsigned i = 0; p && !p->error && i < p->num_subs; i++) {
            if (p->sub[i].rail != rail)
                continue;
            if (rail->dev->fatal)
                mr_peer_lost(p, -EIO);
            else if (p->up && !p->sub[i].qp[0].error)
                p->load[i].up = !rail->down;
        }
    }
}

static bool cut_off(const struct mr_peer *p, uint64_t now_ns, uint64_t patience_ns)
{
    for (unsigned i = 0; i < p->num_subs; i++) {
        const struct mr_rail *rail = p->sub[i].rail;

        if (!rail->down || now_ns < rail->down_ns + patience_ns)
            return false;
    }
    return p->num_subs;
}

/*
 * A queue pair without work does not notice that its port is down, and who only waits for a message would wait for ever.
 * Nothing can come from the peer, who has given up by then if it had anything to send.
 */
void mr_peers_check_ports(uint64_t now_ns)
{
    /* 4.096 us times 2 to the timeout, for each attempt (InfiniBand volume 1, local ACK timeout); 0: it never gives up */
    uint64_t patience_ns = (4096ull << mr_config.rc_timeout) * ((unsigned)mr_config.rc_retry + 1);
    bool any = false;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        any |= mr_verbs.rail[i].down;
    if (!any || !mr_config.rc_timeout)
        return;
    for (int r = 0; r < mr_net.launch->size; r++) {
        struct mr_peer *p = mr_net.peer[r];

        if (p && p->up && !p->error && cut_off(p, now_ns, patience_ns))
            mr_peer_lost(p, -ENETDOWN);
    }
}

void mr_peers_free(void)
{
    for (int r = 0; mr_net.peer && r < mr_net.launch->size; r++) {
        struct mr_peer *p = mr_net.peer[r];

        if (!p)
            continue;
        for (unsigned i = 0; i < p->num_subs; i++) {
            mr_qp_destroy(&p->sub[i].qp[0]);
            mr_qp_destroy(&p->sub[i].qp[1]);
        }
        drop_pending(p);
        free(p->sub);
        free(p);
    }
    free(mr_net.peer);
    mr_net.peer = NULL;
}
