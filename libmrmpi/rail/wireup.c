/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting to peers on demand: rounds, in each of which subchannels are opened by an exchange of datagrams. */
#include "libmrmpi/rail/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"

#define WINDOW          4096           /* packets to one peer that may be under way */
#define REQUESTS_MAX    32             /* to connect, that nobody has answered yet */
#define TIMEOUT_MIN_NS  2000000ull     /* before a request is repeated */
#define SILENCE_NS      10000000000ull /* before it is said that a peer does not answer; doubles */
#define REOPEN_ATTEMPTS 4              /* of one round; another begins after a pause (mend.c) */

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
        err = mr_subs_make(p);
    if (!err)
        mr_budget_first(p, mr_net.our_kinds & p->card->kinds);
    if (!err && !p->num_subs) {
        explain_no_pair(p);
        err = -EHOSTUNREACH;
    }
    return err;
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
 * lately; -ENETDOWN: its ports are down; -EHOSTUNREACH: there is nothing here of what is asked for.
 */
static int can_answer(const struct mr_peer *p, const struct mr_cm_msg *req)
{
    int err = -EHOSTUNREACH;

    for (unsigned i = 0; i < p->num_subs; i++) {
        const struct mr_sub *sub = &p->sub[i];

        if (!find_in(req, sub))
            continue;
        if (sub->rail->down || sub->rail->dev->fatal) {
            err = err == -EAGAIN || (!p->up && may_come_back(sub->rail)) ? -EAGAIN : -ENETDOWN;
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
            mr_sub_unopen(sub); /* of an earlier round */
        if (wanted && sub->state == MR_SUB_CLOSED) {
            mr_ration_asked(p, sub->kind);
            err = mr_sub_open(sub, &mr_mend_events);
            failed = err ? err : failed;
        }
        if (wanted && sub->state == MR_SUB_OPENING)
            out->sub[out->num_subs++] = mr_sub_describe(sub);
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
            mr_sub_unopen(sub);
            err = -EHOSTUNREACH;
            continue;
        }
        if (mr_is_later(r->generation, sub->generation))
            sub->generation = r->generation; /* the later one counts at both ends */
        if (mr_is_later(r->turn, sub->turn) && (r->turn & 1) == sub->side)
            sub->turn = r->turn;
        err = mr_sub_connect(sub, &p->card->rail[sub->remote_rail], r, s ? s : r, c->local->psn, remote->psn);
        if (!err) {
            connected++;
            continue;
        }
        mr_log(MR_LOG_ERROR, "the queue pairs to rank %d on %s, %s, cannot be connected: %s", p->rank, p->card->host,
               mr_sub_name(sub, name), strerror(-err));
        mr_sub_unopen(sub);
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
        mr_ration_asked(p, sub->kind);
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
    mr_peer_backlog(p);
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

static void unopen_all(struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (p->sub[i].state == MR_SUB_OPENING)
            mr_sub_unopen(&p->sub[i]);
}

static void connect_failed(struct mr_cm_conn *c, int error)
{
    struct mr_peer *p = container_of(c, struct mr_peer, cm);

    unopen_all(p);
    if (p->up && p->reopening && c->rejected && c->reason == MR_CM_NO_RAIL) {
        p->reopening->absent = true;
        return;
    }
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

static void init_handshake(struct mr_peer *p)
{
    mr_cm_init(&p->cm, &cm_ops, mr_net.run, (uint32_t)mr_net.launch->rank, (uint32_t)p->rank,
               (uint64_t)mr_config.connect_timeout_ms * 1000000,
               mr_config.connect_retries ? (unsigned)mr_config.connect_retries + 1 : 0);
    if (!mr_net.connect_rtt.min_ns) {
        uint64_t max = (uint64_t)mr_config.connect_timeout_ms * 1000000;

        mr_rtt_init(&mr_net.connect_rtt, max < TIMEOUT_MIN_NS ? max : TIMEOUT_MIN_NS, max);
    }
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
    p->card = &mr_card_none;
    p->vc = mr_channel_up.get(rank);
    mr_window_init(&p->out, WINDOW);
    init_handshake(p);
    mr_net.peer[rank] = p;
    p->vc->data = p;
    return p;
}

struct mr_peer *mr_peer_of(uint32_t rank)
{
    if (rank >= (uint32_t)mr_net.launch->size || !mr_peer_is_remote((int)rank))
        return NULL;
    return mr_peer_get((int)rank);
}

bool mr_wireup_begin(struct mr_peer *p, struct mr_sub *sub)
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

void mr_wireup_connect(struct mr_peer *p)
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

    if (!(ours || foreign) || !mr_peer_is_remote((int)msg.from)) {
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

/* ---- peers that something is due for ------------------------------------------------------------------------------- */

void mr_peers_poll(void)
{
    struct mr_peer **at = &mr_net.mending, *p;
    uint64_t now = mr_clock_ns();

    mr_net.mend_due = false;
    while ((p = *at)) {
        bool more = mr_mend_poll(p, now, mr_wireup_begin);

        if (!p->error && p->up)
            more |= mr_change_poll(p, now, mr_wireup_begin);
        if (more) {
            at = &p->next_mending;
            continue;
        }
        p->mending = false;
        *at = p->next_mending;
    }
}
