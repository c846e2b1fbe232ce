/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Subchannels that break, and are opened anew.
 *
 * A subchannel breaks when a request on one of its links fails, when its port goes down, or when the peer reports a
 * break of its end. Its links are drained; when all posts have come back, the subchannel is closed, and its generation
 * ends. Unconfirmed packets go over other subchannels, with their numbers: the peer drops duplicates. Stripes to be
 * read are read over others. A written stripe may have landed, or may land later: the stripe waits until the peer's end
 * of that generation is gone too, then asks whether it has landed.
 *
 * Both ends send "broken" and "gone" in packets of the virtual channel, which go over other subchannels. Without any, a
 * request to connect with a later generation means the same (handshake.c).
 *
 * A closed subchannel is opened again after a pause, which doubles with each failure in a row.
 */
#include "libmrmpi/conn/questions.h"
#include "libmrmpi/conn/peer/guard.h"

#include <errno.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/conn/reliable/loss.h"
#include "libmrmpi/verbs/verbs.h"

#define PAUSE_NS     10000000ull /* before a broken subchannel is opened again */
#define PAUSE_MAX_NS 10000000000ull
#define STEADY       10 /* a subchannel open for this number of pauses has not flapped */
#define POLLS_MIN    10 /* least number of polls before patience ends */

/* ---- breaking ---------------------------------------------------------------------------------------------------- */

static bool has_open_sub(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (p->sub[i].state == MR_SUB_OPEN)
            return true;
    return false;
}

static void set_isolated(struct mr_peer *p, uint64_t since_ns)
{
    if (!p->connect->isolated_ns != !since_ns)
        mr_peers.num_isolated += since_ns ? 1u : -1u;
    p->connect->isolated_ns = p->connect->counted_ns = since_ns;
    p->connect->waited_ns = 0;
}

static void drain_links(struct mr_sub *sub)
{
    for (unsigned l = 0; l < sub->num_links; l++)
        if (sub->link[l].state != MR_LINK_CLOSED)
            sub->link[l].ops->drain(&sub->link[l]);
}

void mr_sub_break(struct mr_sub *sub)
{
    struct mr_peer *p = sub->peer;

    if (sub->state != MR_SUB_OPEN && sub->state != MR_SUB_OPENING)
        return;
    sub->state = MR_SUB_BROKEN;
    mr_sub_set_up(sub, false);
    mr_sub_prefer(p);
    sub->connect->news.broken = true;
    sub->connect->news.broken_generation = sub->generation;
    mr_stat_add(MR_STAT_BROKEN, 1);
    mr_rail_add(sub->rail, MR_RAIL_BROKEN, 1);
    mr_peer_tell_noted(sub, MR_RECORD_BREAK, 0);
    drain_links(sub);
    mr_peer_tell_broken(sub);
    if (p->up && !p->error && !has_open_sub(p))
        set_isolated(p, mr_clock_ns());
    mr_peer_due(p);
}

void mr_recovery_loses(struct mr_sub *sub)
{
    struct mr_trust *t = mr_way_trust(sub);
    uint64_t now = mr_clock_ns();

    if (sub->connect->opened_ns)
        mr_trust_steady(t, now - sub->connect->opened_ns);
    mr_trust_failed(t, now);
}

void mr_sub_close(struct mr_sub *sub)
{
    struct mr_peer *p = sub->peer;

    sub->state = MR_SUB_BROKEN;
    drain_links(sub);
    if (p->up && !p->error && p->connect->wanted && !has_open_sub(p)) /* subchannels in use have broken before */
        set_isolated(p, mr_clock_ns());
    mr_peer_due(p);
}

void mr_recovery_unopen(struct mr_sub *sub)
{
    uint8_t generation = sub->generation;

    if (mr_sub_unopen(sub)) {
        sub->connect->news.gone = true;
        sub->connect->news.gone_generation = generation;
        mr_peer_due(sub->peer);
    }
    mr_ration_recount(sub->peer);
}

/*
 * The peer's end has gone. This is expected if we had reported that nothing of ours is under way. The peer's own report
 * may come later, because it is a packet, which waits for the packets before; "gone" may be in a request to connect. A
 * subchannel being opened has carried nothing. If already connected, the peer has given up the handshake that we have
 * answered; if not, its answer is about a later handshake (connect_subs in handshake.c).
 */
static void end_generation(struct mr_sub *sub)
{
    if (sub->state == MR_SUB_OPENING && sub->link[0].state == MR_LINK_OPEN)
        mr_recovery_unopen(sub);
    else if (sub->state == MR_SUB_OPEN && sub->connect->told && mr_sub_retires(sub))
        mr_sub_close(sub);
    else if (sub->state != MR_SUB_OPENING)
        mr_sub_break(sub);
}

void mr_sub_gone(struct mr_sub *sub, uint8_t generation)
{
    if (!mr_is_later((uint8_t)(generation + 1), sub->peer_from))
        return;
    sub->peer_from = (uint8_t)(generation + 1);
    mr_probe_drop(sub);
    if (!mr_is_later(sub->generation, generation))
        end_generation(sub);
    mr_peer_due(sub->peer);
}

void mr_recovery_opened(struct mr_sub *sub)
{
    sub->connect->opened_ns = mr_clock_ns();
    mr_rail_add(sub->rail, MR_RAIL_OPENED, 1);
    mr_peer_tell_noted(sub, MR_RECORD_OPEN, 0);
    mr_probe_drop(sub);
    mr_peer_tell_opened(sub);
    mr_questions_soon(sub->peer->connect);
    set_isolated(sub->peer, 0);
}

void mr_recovery_connected(struct mr_peer *p)
{
    if (!has_open_sub(p))
        set_isolated(p, mr_clock_ns());
    mr_peer_due(p);
}

/* ---- links report ------------------------------------------------------------------------------------------------ */

static void describe_failure(const struct mr_link *l, const struct mr_wc *wc)
{
    const struct mr_sub *sub = l->owner;
    const struct mr_peer *p = sub->peer;
    const char *cause = !mr_rail_is_active(sub->rail) ? "the port here is down"
                        : wc->error == -EHOSTUNREACH  ? "its host, its process or a link on the way is gone"
                        : wc->error == -ENOBUFS       ? "it takes no packets any more"
                        : wc->error == -EACCES        ? "memory there was given back while a transfer was under way"
                        : wc->error == -EFAULT        ? "memory was unmapped while a transfer was under way"
                        : wc->flushed                 ? "the connection broke while it served the peer"
                                                      : "the port here is going down; if not, see the device's log";
    char name[MR_SUB_NAME];

    mr_log(MR_LOG_WARN, "rank %d on %s, %s, service level %u: %s; likely %s", p->rank, p->address->host,
           mr_sub_name(sub, name), l->sl, wc->status, cause);
}

static void link_failed(struct mr_link *l, const struct mr_wc *wc)
{
    struct mr_sub *sub = l->owner;

    if (sub->peer->error) {
        l->ops->drain(l);
        return;
    }
    describe_failure(l, wc);
    sub->refused |= wc->error == -EACCES; /* that may be (net/stripe/moves.c), or ends the peer, too */
    mr_sub_break(sub);
    if (wc->error == -EHOSTUNREACH)
        mr_keepalive_all(sub->peer);                    /* finds other dead subchannels now, not one after the other */
    if (wc->error == -EFAULT || wc->error == -EMSGSIZE) /* would be the same over any other link */
        mr_peer_lost(sub->peer, wc->error);
}

static uint64_t pause_ns(const struct mr_sub *sub)
{
    uint64_t pause = PAUSE_NS << (sub->connect->failures < 10 ? sub->connect->failures : 10);

    return pause < PAUSE_MAX_NS ? pause : PAUSE_MAX_NS;
}

void mr_recovery_later(struct mr_sub *sub)
{
    uint64_t now = mr_clock_ns();

    if (sub->connect->opened_ns && now - sub->connect->opened_ns > STEADY * pause_ns(sub))
        sub->connect->failures = 0;
    sub->connect->opened_ns = 0;
    sub->connect->retry_ns = now + pause_ns(sub);
    sub->connect->failures++;
    mr_peer_due(sub->peer);
}

void mr_recovery_ask_again(struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs && p->connect->questions; i++)
        p->connect->questions[i].answered = false;
    mr_peer_due(p);
}

static void link_drained(struct mr_link *l)
{
    struct mr_sub *sub = l->owner;
    struct mr_peer *p = sub->peer;
    unsigned again = mr_window_link_lost(&p->out, l->index);

    mr_channel_waiting += again;
    mr_stat_add(MR_STAT_RESENT, again);
    mr_rail_add(sub->rail, MR_RAIL_RESENT, again);
    if (again)
        mr_peer_tell_noted(sub, MR_RECORD_RESENT, again);
    mr_peer_backlog(p);
    for (unsigned i = 0; i < sub->num_links; i++)
        if (sub->link[i].state != MR_LINK_CLOSED)
            return;
    mr_sub_forget_links(sub);
    sub->state = MR_SUB_CLOSED;
    mr_rail_add(sub->rail, MR_RAIL_CLOSED, 1);
    mr_peer_tell_noted(sub, MR_RECORD_CLOSE, 0);
    if (mr_sub_retires(sub))
        sub->connect->retry_ns = sub->connect->failures = 0; /* not the subchannel's fault */
    else
        mr_recovery_later(sub);
    sub->connect->news.gone = true;
    sub->connect->news.gone_generation = sub->generation;
    if (!p->error)
        mr_peer_tell_drained(sub);
    sub->generation++;
    mr_ration_recount(p);
    mr_peer_due(p); /* tells the peer, and opens subchannels wanted again meanwhile */
}

static bool link_left(struct mr_link *l, struct mr_qp *qp)
{
    return !mr_sub_retires(l->owner) && mr_probe_keep(l->owner, qp);
}

/* confirmed: see mr_connect_init() */
struct mr_link_events mr_recovery_events = {
    .left = link_left,
    .failed = link_failed,
    .drained = link_drained,
};

/* ---- control messages -------------------------------------------------------------------------------------------- */

static bool send_sub_control(struct mr_sub *sub, enum mr_control kind, uint8_t generation)
{
    struct mr_hdr hdr = {.kind = kind, .rank = sub->lossy, .tag = mr_sub_tag(sub, generation)};

    return !mr_vc_send_control(sub->peer->vc, &hdr, NULL, 0);
}

/* The peer is told of our end after draining, or now if that generation is over here, or never existed. */
static void take_broken(struct mr_sub *sub, uint8_t generation)
{
    bool over = mr_is_later(sub->generation, generation);

    if (!over && sub->state != MR_SUB_CLOSED) {
        mr_sub_break(sub);
        return;
    }
    if (!over)
        sub->generation = (uint8_t)(generation + 1);
    if (!sub->connect->news.gone || mr_is_later(generation, sub->connect->news.gone_generation))
        sub->connect->news.gone_generation = generation;
    sub->connect->news.gone = true;
    mr_peer_due(sub->peer);
}

void mr_recovery_control(struct mr_peer *p, const struct mr_hdr *hdr)
{
    uint32_t tag = (uint32_t)hdr->tag;
    struct mr_sub *sub = mr_sub_tagged(p, tag);

    if (!sub || p->error)
        return;
    switch (hdr->kind) {
    case MR_CONTROL_BROKEN:
        if (hdr->rank && sub->state == MR_SUB_OPEN)
            mr_recovery_loses(sub);
        if (hdr->rank)
            mr_way_told(sub);
        take_broken(sub, mr_tag_generation(tag));
        break;
    case MR_CONTROL_GONE:
        mr_sub_gone(sub, mr_tag_generation(tag));
        break;
    default:
        mr_log(MR_LOG_WARN, "rank %d on %s sent a control message of kind %u, which this version does not know",
               p->rank, p->address->host, hdr->kind);
    }
}

static void send_news(struct mr_sub *sub)
{
    struct mr_sub_news *n = &sub->connect->news;

    if (n->broken && send_sub_control(sub, MR_CONTROL_BROKEN, n->broken_generation))
        n->broken = false;
    if (n->gone && send_sub_control(sub, MR_CONTROL_GONE, n->gone_generation))
        n->gone = false;
}

/* ---- pending work ------------------------------------------------------------------------------------------------ */

static bool guards_answer(struct mr_peer *p, uint64_t now_ns, uint64_t pause_ns)
{
    bool heard = false;

    if (p->connect->guarded_ns && now_ns - p->connect->guarded_ns < pause_ns)
        return false;
    mr_guard_ask(p, now_ns, p->connect->guarded_ns, &heard);
    heard &= p->connect->guarded_ns >= p->connect->isolated_ns;
    p->connect->guarded_ns = now_ns;
    return heard;
}

/*
 * True when the patience with this peer is over. Time in which this rank does not poll counts little: the rank may have
 * computed, or been stopped, and messages of the meantime are unread. A peer with an answering adapter is not lost: its
 * process computes, and will answer the requests to connect at its next call of MPI.
 */
static bool has_given_up(struct mr_peer *p, uint64_t now_ns)
{
    uint64_t patience = mr_patience_ns(p), passed = now_ns - p->connect->counted_ns;

    if (!p->connect->isolated_ns)
        return false;
    p->connect->counted_ns = now_ns;
    p->connect->waited_ns += passed < patience / POLLS_MIN ? passed : patience / POLLS_MIN;
    if (guards_answer(p, now_ns, patience / POLLS_MIN))
        p->connect->waited_ns = 0;
    if (p->connect->waited_ns < patience)
        return false;
    if (p->guest_run)
        mr_peer_lost(p, -ENETDOWN); /* the channel stream goes on, and says so */
    else
        mr_peer_give_up(p, "no rail has led there");
    return true;
}

/*
 * A subchannel that flaps, or loses packets, stays closed longer. While none is open, connect.c opens all that answer.
 */
static bool is_due(const struct mr_sub *sub, uint64_t now_ns)
{
    return !sub->peer->connect->isolated_ns && now_ns >= sub->connect->retry_ns &&
           (!sub->lossy || mr_way_is_worth(sub, now_ns));
}

/* True while something is to be said or done later. */
static bool recover_sub(struct mr_sub *sub, uint64_t now_ns, mr_begin_fn *begin)
{
    const struct mr_rail *rail = sub->rail;
    bool more;

    send_news(sub);
    if (sub->peer->connect->isolated_ns && !rail->down)
        mr_probe_ask(sub, now_ns);
    more = mr_peer_tell_due(sub);
    if (sub->connect->news.broken || sub->connect->news.gone || sub->state == MR_SUB_BROKEN)
        more = true;
    if (!mr_sub_is_wanted(sub) && !(sub->spare && mr_sub_is_current(sub) && mr_peer_lacks_pkeys(sub->peer)))
        return more;
    if (sub->state != MR_SUB_CLOSED || rail->down || rail->dev->fatal || !mr_sub_pkey(sub, 0))
        return more; /* an event of the port tells when it can be opened */
    if (is_due(sub, now_ns))
        begin(sub->peer, sub);
    return more || sub->state == MR_SUB_CLOSED;
}

bool mr_recovery_poll(struct mr_peer *p, uint64_t now_ns, mr_begin_fn *begin)
{
    bool more;

    if (p->error || !p->up || has_given_up(p, now_ns))
        return false;
    if (p->connect->isolated_ns && !p->connect->rescue)
        mr_cm_abandon(&p->cm); /* about one subchannel: all ways count now */
    more = p->connect->isolated_ns;
    for (unsigned i = 0; i < p->num_subs; i++)
        more |= recover_sub(&p->sub[i], now_ns, begin);
    return more;
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

/* The subchannel may lead to the peer again. */
static void sub_may_open(struct mr_sub *sub)
{
    mr_cm_resume(&sub->peer->cm, mr_clock_ns()); /* may be opened, ... */
    if (sub->peer->connect->isolated_ns) {       /* ... or opened again: at once, if nothing else is */
        sub->peer->connect->round_ns = 0;
        if (sub->peer->connect->rescue)
            mr_cm_abandon(&sub->peer->cm);
    }
    mr_peer_due(sub->peer);
}

static void sub_rail_changed(struct mr_sub *sub)
{
    if (sub->rail->down || sub->rail->dev->fatal) {
        sub->lossy = false;
        *mr_way_trust(sub) = (struct mr_trust){0};
        mr_sub_break(sub);
        if (sub->rail->dev->fatal)
            mr_probe_drop(sub);
        return;
    }
    sub_may_open(sub);
}

void mr_recovery_rail_changed(struct mr_rail *rail)
{
    for (int r = 0; r < mr_peers_end(); r++) {
        struct mr_peer *p = mr_peers.peer[r];

        for (unsigned i = 0; p && !p->error && i < p->num_subs; i++)
            if (p->sub[i].rail == rail)
                sub_rail_changed(&p->sub[i]);
        if (p && rail->dev->fatal)
            mr_guard_rail_lost(p, rail->index);
    }
}

/* Peers' knowledge of the rail is outdated: its subchannels are opened anew, and the request carries its new place. */
void mr_recovery_rail_moved(struct mr_rail *rail)
{
    for (int r = 0; r < mr_peers_end(); r++) {
        struct mr_peer *p = mr_peers.peer[r];

        for (unsigned i = 0; p && !p->error && i < p->num_subs; i++)
            if (p->sub[i].rail == rail)
                mr_sub_break(&p->sub[i]);
    }
}

/*
 * Queue pairs whose index now has another key, or none, are given up: the adapters drop their packets. So are those
 * between two ends that are now both limited members. Subchannels closed for want of a common partition may be opened
 * now.
 */
static void sub_keys_changed(struct mr_sub *sub, uint32_t moved)
{
    bool open = sub->state == MR_SUB_OPEN || sub->state == MR_SUB_OPENING;

    if (open && !mr_sub_keeps_pkey(sub, moved)) {
        if (!mr_sub_pkey(sub, 0))
            mr_sub_tell_keyless(sub);
        mr_sub_break(sub);
    } else if (sub->state == MR_SUB_CLOSED && !sub->rail->down && mr_sub_pkey(sub, 0)) {
        sub->connect->retry_ns = 0;
        sub->connect->failures = 0;
        sub_may_open(sub);
    }
}

void mr_recovery_rail_keys(struct mr_rail *rail, uint32_t moved)
{
    rail->keyless_told = false;
    for (int r = 0; r < mr_peers_end(); r++) {
        struct mr_peer *p = mr_peers.peer[r];

        for (unsigned i = 0; p && !p->error && i < p->num_subs; i++)
            if (p->sub[i].rail == rail)
                sub_keys_changed(&p->sub[i], moved);
        if (p && !p->error && moved)
            mr_guard_keys(p, rail->index);
    }
}
