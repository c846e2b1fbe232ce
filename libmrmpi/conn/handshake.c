/* SPDX-License-Identifier: BSD-3-Clause */
/* Handshakes: in each of them subchannels are opened by an exchange of datagrams (conn/cm/conn.h). */
#include "libmrmpi/conn/internal.h"
#include "libmrmpi/conn/peer/guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"

#define ANSWERS_MORE 8 /* beyond those of requests: the last repetitions last longest */

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

/* Without rails the messages of a guest go by TCP. */
static enum mr_log_level severity(const struct mr_peer *p)
{
    return p->guest_run && !p->up ? MR_LOG_INFO : MR_LOG_ERROR;
}

static void explain_no_pkey(const struct mr_peer *p)
{
    mr_log(severity(p),
           "no rail leads to rank %d on %s: no pair of ports shares a partition of which one of them is a full member. "
           "Ask for one in the partitions of the subnet manager (opensm: partitions.conf)",
           p->rank, p->address->host);
    for (unsigned i = 0; i < p->num_now + p->num_spare; i++) {
        p->sub[i].rail->keyless_told = false;
        if (p->sub[i].kind == p->sub[0].kind && !p->sub[i].path && !p->sub[i].copy)
            mr_sub_tell_keyless(&p->sub[i]);
    }
}

static void explain_no_pair(const struct mr_peer *p)
{
    const struct mr_rail_addr *ours[MR_RAILS_MAX], *theirs[MR_RAILS_MAX];
    char here[512], there[512];

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        ours[i] = &mr_verbs.rail[i].addr;
    for (unsigned i = 0; i < p->address->num_rails; i++)
        theirs[i] = &p->address->rail[i];
    mr_log(severity(p),
           "no rail leads to rank %d on %s: no subnet is common (RoCE: no kind of GID). Here: %s. There: %s", p->rank,
           p->address->host, describe_rails(ours, mr_verbs.num_rails, here, sizeof here),
           describe_rails(theirs, p->address->num_rails, there, sizeof there));
}

static int meet_peer(struct mr_peer *p)
{
    int err = mr_peer_fetch_address(p);

    if (!err)
        err = mr_subs_make(p);
    if (!err)
        mr_budget_first(p, mr_peers.our_kinds & p->address->kinds);
    if (!err && !p->num_subs) {
        explain_no_pair(p);
        err = -EHOSTUNREACH;
    }
    return err;
}

/* The description of a subchannel in a message of the peer, or of ours; NULL: it has none. */
static const struct mr_cm_sub *find_sub_in(const struct mr_cm_msg *m, const struct mr_sub *sub)
{
    bool ours = m == sub->peer->cm.local;

    for (unsigned i = 0; i < m->num_subs; i++) {
        const struct mr_cm_sub *s = &m->sub[i];

        if (sub->rail->index == (ours ? s->rail : s->remote) && sub->remote_rail == (ours ? s->remote : s->rail) &&
            s->path == sub->path && s->kind == mr_sub_kind(sub))
            return s;
    }
    return NULL;
}

/* A request with queue pairs of a later generation shows that the peer has given up earlier generations. */
static void learn_generations(struct mr_peer *p, const struct mr_cm_msg *req)
{
    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *sub = &p->sub[i];
        const struct mr_cm_sub *s = find_sub_in(req, sub);

        if (!s || !mr_is_later(s->generation, sub->generation))
            continue;
        mr_sub_gone(sub, (uint8_t)(s->generation - 1));
        if (sub->state == MR_SUB_CLOSED || sub->state == MR_SUB_OPENING)
            sub->generation = s->generation;
    }
}

/* The P_Key for opening the subchannel: a key that fits the peer's request, or our choice. 0: none. */
static uint16_t pkey_for(const struct mr_sub *sub, const struct mr_cm_msg *req)
{
    const struct mr_cm_sub *s = req ? find_sub_in(req, sub) : NULL;

    return s ? mr_sub_answer_pkey(sub, s->pkey) : mr_sub_pkey(sub, sub->connect->pkey_turn);
}

/* True if the way answers, and is not left out: of several answering ways, ways with more losses are left out. */
static bool is_rescue(const struct mr_peer *p, const struct mr_sub *sub)
{
    uint64_t now = mr_clock_ns();
    uint32_t value = mr_way_value(sub, now);

    if (!mr_sub_is_wanted(sub) || !mr_silence_answered(sub))
        return false;
    for (unsigned i = 0; i < p->num_subs; i++)
        if (mr_sub_is_wanted(&p->sub[i]) && mr_silence_answered(&p->sub[i]) &&
            value < mr_way_value(&p->sub[i], now) / 2)
            return false;
    return true;
}

/*
 * True if the handshake includes the subchannel. The first handshake includes all of the present epoch; a later
 * handshake one subchannel, or all of the next epoch; or, if no subchannel is open, all whose ways answer, spare ones
 * too; an answer the requested ones.
 */
static bool is_in_handshake(const struct mr_peer *p, const struct mr_sub *sub, const struct mr_cm_msg *req)
{
    if (req)
        return find_sub_in(req, sub);
    if (p->up && p->connect->rescue)
        return is_rescue(p, sub);
    if (p->up && p->connect->handshake_sub)
        return sub == p->connect->handshake_sub;
    return mr_sub_is_current(sub) != p->up && p->connect->wanted >> sub->kind & 1 &&
           (!sub->spare || sub->chosen || mr_peer_lacks_pkeys(p) ||
            (sub->path ? p->load[mr_sub_place(sub)].up : !p->num_spare));
}

/* A port that was up a moment ago comes back, perhaps. */
static bool may_come_back(const struct mr_rail *rail)
{
    uint64_t patience = (uint64_t)mr_config.patience * 1000000000;

    return !rail->dev->fatal && rail->down_ns && mr_clock_ns() - rail->down_ns < patience;
}

/*
 * Returns 0, or -EAGAIN: not now, because requested subchannels have not drained yet (of the next epoch: some of them),
 * or this is the first handshake and its ports went down lately; -ENETDOWN: its ports are down; -ENOKEY: they are not
 * in the requested partitions; -EHOSTUNREACH: no requested subchannel exists here.
 */
static int can_answer(const struct mr_peer *p, const struct mr_cm_msg *req)
{
    bool some = false;
    int err = -EHOSTUNREACH;

    for (unsigned i = 0; i < p->num_subs; i++) {
        const struct mr_sub *sub = &p->sub[i];

        if (!find_sub_in(req, sub))
            continue;
        if (sub->rail->down || sub->rail->dev->fatal) {
            err = err == -EAGAIN || (!p->up && may_come_back(sub->rail)) ? -EAGAIN : -ENETDOWN;
            continue;
        }
        if (!pkey_for(sub, req)) {
            err = err == -EAGAIN ? err : -ENOKEY;
            continue;
        }
        if (sub->state == MR_SUB_CLOSED || sub->state == MR_SUB_OPENING)
            some = true;
        else if (!mr_sub_is_current(sub))
            return -EAGAIN; /* the others would be opened one by one, and have the remaining links */
        else
            err = -EAGAIN;
    }
    return some ? 0 : err;
}

/* Kinds of links that the peer asks for and does not get. */
static uint8_t refused_kinds(struct mr_peer *p, const struct mr_cm_msg *req)
{
    bool asked = false, needed = false;

    for (unsigned i = 0; i < p->num_subs && mr_peers.rationed; i++) {
        const struct mr_cm_sub *s = find_sub_in(req, &p->sub[i]);

        asked |= s && mr_peers.rationed >> p->sub[i].kind & 1;
        needed |= s && s->needed;
    }
    return asked && !mr_budget_allows(p, needed) ? mr_peers.rationed : 0;
}

/* -EDQUOT: only refused subchannels were requested. -EAGAIN: others were, too, which are not ready yet. */
static int refuse_request(const struct mr_peer *p, const struct mr_cm_msg *req, uint8_t refused)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (!(refused >> p->sub[i].kind & 1) && find_sub_in(req, &p->sub[i]))
            return -EAGAIN;
    return -EDQUOT;
}

/*
 * The peer waits for nothing after its last message. After a loss, a repeated answer makes the peer repeat the message.
 */
static void hurry_answer(struct mr_cm_conn *c)
{
    c->timeout_ns = MR_RESCUE_NS;
    c->timeout_max_ns = 16 * mr_connect.connect_rtt.max_ns;
    c->attempts_max = MR_RESCUE_ATTEMPTS + ANSWERS_MORE;
}

static int prepare_message(struct mr_cm_conn *c, const struct mr_cm_msg *req, struct mr_cm_msg *out)
{
    struct mr_peer *p = container_of(c, struct mr_peer, cm);
    uint8_t refused = 0;
    bool keyless = false, down = false;
    int failed = -ENETDOWN, err = p->error ? -ECONNREFUSED : p->sub ? 0 : meet_peer(p);

    if (err)
        return err;
    if (p->up && !req && c->timeout_ns != MR_RESCUE_NS)
        c->attempts_max = MR_REOPEN_ATTEMPTS;
    if (req) {
        mr_where_learn(p, req);
        learn_generations(p, req);
        err = can_answer(p, req);
        if (err)
            return err; /* a handshake of ours that is under way is not touched */
        if (p->up && c->initiator && mr_cm_waiting(c) && !p->connect->handshake_sub)
            mr_epoch_failed(p); /* ours gives way */
        refused = refused_kinds(p, req);
        if (p->up)
            hurry_answer(c);
    }
    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *sub = &p->sub[i];
        bool meant = is_in_handshake(p, sub, req) && !(refused >> sub->kind & 1);
        uint16_t pkey = meant && !sub->rail->down ? pkey_for(sub, req) : 0;
        bool wanted = pkey;

        down |= meant && sub->rail->down;
        keyless |= meant && !sub->rail->down && !pkey;
        if (meant && !pkey && !sub->rail->down && !p->up && sub->state == MR_SUB_CLOSED)
            mr_sub_tell_keyless(sub);
        if (sub->state == MR_SUB_OPENING &&
            (!wanted || sub->link[0].state == MR_LINK_OPEN || mr_pkey_partition(sub->pkey) != mr_pkey_partition(pkey)))
            mr_recovery_unopen(sub); /* of an earlier handshake */
        if (wanted && sub->state == MR_SUB_CLOSED) {
            mr_ration_asked(p, sub->kind);
            sub->connect->told = sub->connect->heard = false;
            sub->pkey = pkey;
            err = mr_sub_open(sub, &mr_recovery_events);
            failed = err ? err : failed;
        }
        if (wanted && sub->state == MR_SUB_OPENING)
            out->sub[out->num_subs++] = mr_sub_describe(sub);
    }
    out->psn = random_psn();
    if (out->num_subs) {
        mr_guard_make(p, req, out);
        return 0;
    }
    if (refused)
        return refuse_request(p, req, refused);
    if (keyless && !down)
        failed = -ENOKEY;
    if (p->up)
        return failed;
    if (failed == -ENOKEY) {
        explain_no_pkey(p);
        return failed;
    }
    if (!req && failed == -ENETDOWN && mr_clock_ns() - c->begun_ns < (uint64_t)mr_config.patience * 1000000000)
        return -EAGAIN;
    mr_log(severity(p), "no rail leads to rank %d on %s: %s", p->rank, p->address->host,
           failed == -ENETDOWN ? "the ports here are down" : strerror(-failed));
    return failed;
}

/* True if the peer's answer leaves out connections that we requested. */
static bool has_refused(const struct mr_peer *p, const struct mr_cm_msg *remote)
{
    bool asked = false;

    for (unsigned i = 0; i < p->num_subs; i++) {
        const struct mr_sub *sub = &p->sub[i];

        if (sub->state != MR_SUB_OPENING || !(mr_peers.rationed >> sub->kind & 1))
            continue;
        if (find_sub_in(remote, sub))
            return false;
        asked = true;
    }
    return asked;
}

/* -EAGAIN: all that we asked for broke before the answer came. */
static int connect_subs(struct mr_cm_conn *c, const struct mr_cm_msg *remote, const struct mr_cm_msg *sls)
{
    struct mr_peer *p = container_of(c, struct mr_peer, cm);
    bool refused = has_refused(p, remote);
    unsigned connected = 0;
    int err = -EAGAIN;
    char name[MR_SUB_NAME];

    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *sub = &p->sub[i];
        const struct mr_cm_sub *r = find_sub_in(remote, sub), *s = find_sub_in(sls, sub);

        if (sub->state != MR_SUB_OPENING)
            continue;
        if (!r) {
            mr_recovery_unopen(sub);
            sub->connect->pkey_turn++;
            err = -EHOSTUNREACH;
            continue;
        }
        mr_sub_answer_pkey(sub, r->pkey); /* so its membership is known */
        if (mr_is_later(r->generation, sub->generation))
            sub->generation = r->generation; /* the later one counts at both ends */
        if (mr_is_later(r->epoch, sub->epoch) && (r->epoch & 1) == sub->parity)
            sub->epoch = r->epoch;
        err = mr_sub_connect(sub, &p->address->rail[sub->remote_rail], r, s ? s : r, c->local->psn, remote->psn);
        if (!err) {
            connected++;
            continue;
        }
        mr_log(MR_LOG_ERROR, "the queue pairs to rank %d on %s, %s, cannot be connected: %s", p->rank, p->address->host,
               mr_sub_name(sub, name), strerror(-err));
        mr_recovery_unopen(sub);
    }
    if (refused)
        mr_budget_refused(p);
    if (connected)
        mr_guard_connect(p, remote, sls);
    return connected ? 0 : err;
}

/* ---- the exchange ------------------------------------------------------------------------------------------------ */

static bool may_connect(const struct mr_sub *sub)
{
    return !sub->rail->down && mr_sub_pkey(sub, 0);
}

/* The way of the peer's last message; NULL: none, or not usable now. */
static struct mr_sub *way_it_came(struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (p->sub[i].rail == p->connect->came && p->sub[i].remote_rail == p->connect->came_from &&
            p->sub[i].path == p->connect->came_path)
            return may_connect(&p->sub[i]) ? &p->sub[i] : NULL;
    return NULL;
}

/*
 * A way for the first handshake: with each attempt another way with its local port up. An answer begins with the way of
 * the peer's message, which works.
 */
static struct mr_sub *pick_first_sub(struct mr_peer *p, const struct mr_cm_msg *msg, unsigned attempt)
{
    const struct mr_sub *came = msg->type == MR_CM_REQ ? NULL : way_it_came(p);
    unsigned i = came ? (unsigned)(came - p->sub) : 0, up = 0;

    for (unsigned k = 0; k < p->num_subs; k++)
        up += may_connect(&p->sub[k]);
    if (!up)
        return &p->sub[attempt % p->num_subs];
    for (attempt %= up; !may_connect(&p->sub[i % p->num_subs]) || attempt; i++)
        attempt -= may_connect(&p->sub[i % p->num_subs]);
    return &p->sub[i % p->num_subs];
}

static bool is_rtu_again(const struct mr_peer *p, const struct mr_cm_msg *msg)
{
    return msg->type == MR_CM_RTU && (p->cm.state == MR_CM_CONNECTED || msg->id != p->cm.id);
}

/*
 * The first handshake takes another pair of rails with each attempt, so that a dead pair does not block live pairs; so
 * does a handshake that seeks any way at all. Otherwise a datagram takes the path to be opened, which proves that the
 * path works. A repetition of a lost message goes over the next way: an RTU is only an answer, and only this rank can
 * choose another way for it.
 */
static struct mr_sub *pick_datagram_sub(struct mr_peer *p, const struct mr_cm_msg *msg, unsigned attempt)
{
    bool any = p->up && p->connect->isolated_ns && msg->num_subs;
    const struct mr_cm_sub *s = &msg->sub[any ? attempt % msg->num_subs : 0];
    bool answers = (any && !attempt && msg->type == MR_CM_REP) || (p->up && msg->type == MR_CM_REJ);
    struct mr_sub *came = answers ? way_it_came(p) : NULL;
    struct mr_sub *named = msg->num_subs ? mr_sub_find(p, s->rail, s->remote, s->path, s->kind) : NULL;
    struct mr_sub *sub = msg->num_subs ? named : p->connect->datagram_sub;

    if (came)
        return came;
    if (is_rtu_again(p, msg) && sub)
        return &p->sub[((unsigned)(sub - p->sub) + 1) % p->num_subs];
    return p->up && sub ? sub : pick_first_sub(p, msg, attempt);
}

/* turn: among the partitions usable over the way, counted from the partition of our next request. */
static int transmit_over(const struct mr_sub *sub, struct mr_cm_msg *m, unsigned turn)
{
    turn += sub->connect->pkey_turn;
    mr_where_say(m, sub, mr_sub_datagram_pkey(sub, turn));
    return mr_sub_datagram(sub, turn, mr_peers.qos.level[MR_LEVEL_SMALL].sl[0], m, MR_CM_LENGTH(m->num_subs));
}

/* True if the subchannel is the first of its way. Usable now. */
static bool begins_way(const struct mr_peer *p, const struct mr_sub *sub)
{
    for (const struct mr_sub *s = p->sub; s < sub; s++)
        if (mr_is_same_way(s, sub))
            return false;
    return may_connect(sub);
}

/* True if the peer answers over a way of the message. */
static bool names_living_way(struct mr_peer *p, const struct mr_cm_msg *msg)
{
    for (unsigned i = 0; i < msg->num_subs; i++) {
        const struct mr_cm_sub *s = &msg->sub[i];
        const struct mr_sub *sub = mr_sub_find(p, s->rail, s->remote, s->path, s->kind);

        if (sub && mr_silence_answered(sub))
            return true;
    }
    return false;
}

void mr_handshake_drop_vain(struct mr_peer *p)
{
    if (p->cm.local && !names_living_way(p, p->cm.local))
        mr_cm_abandon_answer(&p->cm);
}

void mr_handshake_yield(struct mr_peer *p, const struct mr_sub *to, uint64_t now_ns)
{
    if (!p->cm.local || !mr_silence_leads(to) || !mr_silence_heard(p, now_ns) || names_living_way(p, p->cm.local))
        return;
    mr_cm_abandon(&p->cm);
    mr_cm_abandon_answer(&p->cm);
}

/*
 * True for a lost message that seeks any way: its way may be dead, perhaps in one direction, or lose packets, and so
 * may others. The message then goes over all other ways at once. A message about a single, dead way does not, because
 * that way would be opened.
 */
static bool needs_all_ways(struct mr_peer *p, const struct mr_cm_msg *msg, unsigned attempt)
{
    if (is_rtu_again(p, msg))
        return true;
    return attempt &&
           ((!p->up && msg->type == MR_CM_REQ) || (p->up && p->connect->isolated_ns && names_living_way(p, msg)));
}

static void transmit_over_others(struct mr_peer *p, const struct mr_sub *sub, struct mr_cm_msg *m, unsigned turn)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (begins_way(p, &p->sub[i]) && !mr_is_same_way(&p->sub[i], sub))
            transmit_over(&p->sub[i], m, turn);
}

static int transmit_message(struct mr_cm_conn *c, const struct mr_cm_msg *msg, unsigned attempt)
{
    struct mr_peer *p = container_of(c, struct mr_peer, cm);
    struct mr_sub *sub = p->num_subs ? pick_datagram_sub(p, msg, attempt) : NULL;
    unsigned turn = p->up || !sub ? attempt : attempt / p->num_subs;
    struct mr_cm_msg m = *msg;
    char name[MR_SUB_NAME];
    int err;

    if (!sub)
        return -EHOSTUNREACH; /* not even a rejection gets there */
    err = transmit_over(sub, &m, turn);
    if (needs_all_ways(p, msg, attempt))
        transmit_over_others(p, sub, &m, turn);
    p->connect->datagram_sub = sub;
    p->connect->unproven |= attempt && !p->up && msg->type == MR_CM_REQ;
    if (attempt && err != -EAGAIN)
        mr_stat_add(MR_STAT_CONNECT_RETRIES, 1);
    if (err && err != -EAGAIN)
        mr_log(MR_LOG_WARN, "connecting to rank %d on %s: no datagram over %s: %s", p->rank, p->address->host,
               mr_sub_name(sub, name), strerror(-err));
    return err;
}

static void handshake_established(struct mr_cm_conn *c)
{
    struct mr_peer *p = container_of(c, struct mr_peer, cm);
    bool first = !p->up;
    unsigned opened = 0;
    uint8_t epoch = p->epoch;

    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *sub = &p->sub[i];

        if (sub->state != MR_SUB_OPENING)
            continue;
        sub->state = MR_SUB_OPEN;
        if (mr_sub_is_path(sub) && p->up && !p->connect->isolated_ns)
            mr_path_opened(sub);
        else if (sub->spare)
            mr_subs_use_spares(p);
        mr_ration_asked(p, sub->kind);
        if (mr_peers.rationed >> sub->kind & 1)
            p->connect->refusals = 0;
        mr_sub_set_up(sub, !sub->rail->down);
        if (mr_is_later(sub->epoch, epoch))
            epoch = sub->epoch;
        mr_recovery_opened(sub);
        opened++;
    }
    mr_epoch_opened(p, epoch);
    mr_sub_prefer(p);
    mr_stat_add(p->up ? MR_STAT_REOPENED : MR_STAT_CONNECTS, 1);
    mr_log(MR_LOG_DEBUG, "%s rank %d on %s in %.1f ms, %u repetitions: %u subchannels, service levels %u and %u",
           p->up ? "again connected to" : "connected to", p->rank, p->address->host,
           (double)(mr_clock_ns() - c->begun_ns) / 1e6, c->attempts, opened,
           mr_sub_sl(p->connect->datagram_sub, MR_LEVEL_SMALL), mr_sub_sl(p->connect->datagram_sub, MR_LEVEL_BULK));
    if (c->initiator && c->smooth)
        mr_rtt_sample(&mr_connect.connect_rtt, mr_clock_ns() - c->begun_ns);
    p->up = true;
    mr_sub_renew_fast(p);
    mr_where_answered(p);
    if (first)
        mr_recovery_connected(p);
    mr_peer_tell_established(p);
    mr_peer_backlog(p);
}

static void explain_rejection(const struct mr_peer *p)
{
    const struct mr_cm_conn *c = &p->cm;

    if (c->reason == MR_CM_BAD_VERSION)
        mr_log(MR_LOG_ERROR,
               "rank %d on %s runs another version of mrmpi: it speaks version %u of connecting, this rank version %u; "
               "all ranks of a job need the same",
               p->rank, p->address->host, c->detail, MR_CM_VERSION);
    else
        mr_log(p->up && c->reason != MR_CM_GIVEN_UP ? MR_LOG_WARN : severity(p),
               "rank %d on %s refuses to connect: %s%s%s%s", p->rank, p->address->host, mr_cm_reason_text(c->reason),
               c->detail ? " (" : "", c->detail ? strerror(c->detail) : "", c->detail ? ")" : "");
}

/* again: subchannels of the present epoch are tried again later. Our next request is in another partition, if any. */
static void unopen_subs(struct mr_peer *p, bool again)
{
    for (unsigned i = 0; i < p->num_subs; i++) {
        if (p->sub[i].state != MR_SUB_OPENING)
            continue;
        mr_recovery_unopen(&p->sub[i]);
        p->sub[i].connect->pkey_turn++;
        if (again && mr_sub_is_current(&p->sub[i]))
            mr_recovery_later(&p->sub[i]);
    }
}

/* The peer is in none of the partitions requested so far, but may be in others. */
static bool may_try_pkeys(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (p->sub[i].connect->pkey_turn && p->sub[i].connect->pkey_turn < mr_sub_num_pkeys(&p->sub[i]))
            return true;
    return false;
}

static void handshake_failed(struct mr_cm_conn *c, int error)
{
    struct mr_peer *p = container_of(c, struct mr_peer, cm);
    bool theirs = p->up && !c->initiator; /* the subchannels of our last handshake are not concerned */

    unopen_subs(p, theirs);
    if (p->error) /* already lost, and reported */
        return;
    if (!p->up)
        mr_guard_free(p);
    if (p->up && p->connect->rescue && c->reason != MR_CM_GIVEN_UP) {
        mr_recovery_ask_again(p);
        return;
    }
    if (p->up && !theirs && p->connect->handshake_sub && c->rejected && c->reason == MR_CM_NO_RAIL) {
        p->connect->handshake_sub->connect->absent = true;
        return;
    }
    if (!p->up && error == -ENOKEY && c->rejected && may_try_pkeys(p))
        error = -EAGAIN;
    else if (c->rejected && (c->reason != MR_CM_ENOUGH || !p->up))
        explain_rejection(p);
    if (!p->up && error == -EAGAIN) { /* another handshake, once a port is up */
        mr_cm_again(c, c->attempts_max);
        mr_cm_start(c, ++mr_connect.next_id, mr_clock_ns());
        return;
    }
    if (p->up && c->reason == MR_CM_GIVEN_UP) {
        mr_peer_lost(p, error);
        return;
    }
    if (theirs)
        return;
    if (p->up) {
        if (!p->connect->handshake_sub)
            mr_epoch_failed(p);
        else if (c->reason == MR_CM_ENOUGH && c->rejected)
            mr_budget_refused(p);
        else if (p->connect->handshake_sub->state == MR_SUB_CLOSED)
            mr_recovery_later(p->connect->handshake_sub);
        return;
    }
    if (error == -ETIMEDOUT)
        mr_log(severity(p),
               "rank %d on %s does not answer the request to connect (%u attempts): its process hangs, or "
               "no path leads there; it is given up because of MRMPI_CONNECT_RETRIES",
               p->rank, p->address->host, c->attempts);
    else if (!c->rejected && error != -ENOKEY)
        mr_log(severity(p), "rank %d on %s cannot be connected to: %s", p->rank, p->address->host, strerror(-error));
    mr_peer_lost(p, error);
}

const struct mr_cm_ops mr_handshake_ops = {
    .prepare = prepare_message,
    .connect = connect_subs,
    .transmit = transmit_message,
    .established = handshake_established,
    .failed = handshake_failed,
};
