/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways that go silent: packets are lost, and no port and no adapter reports a failure for seconds. This file polls,
 * once per millisecond, each subchannel with something under way. If nothing was confirmed since the last poll, a
 * reliable link carries a write of no bytes. The peer's adapter confirms the write, and asks at once for anything lost
 * before. If nothing moves until the next poll, either, datagrams ask the peer's process over each way, in rounds.
 *
 * The evidence is of the way, that is, of two ports and a LID path:
 * - A way that brings no answer to a round, while others do, is in doubt. Rounds go on until the way answers, or is
 *   found silent, whether something is under way on it or not.
 * - From the second round on the doubt is shared: with the same way to other ranks of the peer's host, and, by names in
 *   the questions that go over other ways, with the peer (keepalive.c). Rounds asked by others count, except the last
 *   one.
 * - A way is silent after ROUNDS of them, and not before an answer would have come: conn/route/trip.h has the time of
 *   answers. Its subchannels break.
 * - A way that breaks since packets were lost, at either end, has lost packets for the same way to other ranks, too.
 *
 * A way that is slow or congested brings its answers late, but brings them. A peer that computes answers over no way,
 * and is asked less and less often. The adapter's own time-outs find the only way to a peer silent.
 *
 * Where a way loses only some packets, answers come. But an adapter is told once of a missing packet. If the repetition
 * is lost, too, nothing goes over that connection until its time-out. So questions go on the service level of a stuck
 * link. If several rounds of these are answered, and the link should have finished its traffic in the meantime
 * (least_carried), the way breaks as well.
 *
 * A round has several questions. Lost questions, while others of their round are answered, measure the loss of the way
 * (conn/route/trust.h). A stuck link on a lossy way breaks sooner, and with the link all ways with many losses, if a
 * way without losses is known: otherwise the next operation would stand still on the next lossy way.
 *
 * Where the first request to connect had to be repeated, a way may have been silent from the beginning: all ways are
 * asked as soon as there is a connection, and a way that never answers is silent, with or without traffic. A peer that
 * answers over no way for a while is no longer asked for this reason.
 *
 * Time is counted in polls. Time in which this process computes, without polls, proves nothing.
 */
#include "libmrmpi/conn/questions.h"
#include "libmrmpi/conn/internal.h"

#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/conn/reliable/loss.h"
#include "libmrmpi/verbs/verbs.h"

#define PAUSE_MAX_NS  64000000ull /* between two rounds without an answer, */
#define PAUSE_LOST_NS 8000000ull  /* and while no subchannel is open */
#define POLLS_NUDGE   1           /* without progress, until the adapter is asked, */
#define POLLS_HELD    2           /* and the process, for a stuck link, */
#define POLLS_LATE    1           /* sooner if its confirmations are late, not for the first time, */
#define POLLS_ASK     2           /* or for a whole subchannel */
#define LATE_PART     4           /* part of its rate that a moving link should have */
#define ROUNDS        6           /* rounds missed by a way, and answered by others, that make the way silent */
#define ROUNDS_HELD   3           /* with a question on the level of a stuck link */
#define ROUNDS_LOSES  2           /* the same if questions over the way have been lost, and others do not lose any */
#define QUESTIONS     4           /* in a round, over each way: some may be lost */
#define QUESTIONS_ALL 64          /* in a round, of all ranks to one */
#define TIMEOUTS      4           /* of the adapter, that a link of a lossy way may be stuck if no way is better */
#define PART          128         /* this as well: the part of its rate for the traffic under way */
#define PEERS_MOST    256         /* peers handled in one poll */

/* ---- movement of traffic under way ------------------------------------------------------------------------------- */

struct state {
    bool busy, moves;
};

static void poll_link(struct mr_link *l, const struct mr_window *w, struct state *s)
{
    bool reliable = mr_kind_is(l->kind, MR_IS_CONNECTED | MR_IS_RELIABLE);
    uint32_t seen = 0;

    if (l->state != MR_LINK_OPEN)
        return;
    if (reliable)
        seen += l->qp.finished;
    if (!l->native && l->index < w->num_links)
        seen += w->link[l->index].passed;
    if (seen != l->seen || !reliable || l->qp.room == l->qp.depth)
        l->stuck = 0;
    else
        l->stuck += l->stuck < UINT8_MAX;
    if (l->stuck == 1)
        l->owed = l->qp.depth - l->qp.room > l->qp.unsignaled_sends + l->qp.unsignaled_others;
    s->busy |= l->stuck || (!l->native && mr_window_link_busy(w, l->index));
    s->moves |= seen != l->seen;
    l->seen = seen;
}

/* A write of no bytes, even beside an earlier one: an adapter that has lost the first is told by the second. */
static void nudge(struct mr_link *l)
{
    if (!l->keepalive_sent)
        l->ops->keepalive(l);
    else if (mr_qp_has_unsignaled(&l->qp))
        mr_qp_write(&l->qp, NULL, 0, 0, 0, 0, NULL, NULL);
}

/* Large messages over links that lose writes are acknowledged as a whole, so their progress is unknown. */
static bool carries_large(const struct mr_sub *sub)
{
    const struct mr_peer *p = sub->peer;

    return p->num_large && !mr_kind_is(sub->kind, MR_IS_RELIABLE);
}

static bool is_watched(const struct mr_sub *sub)
{
    return sub->state == MR_SUB_OPEN && !sub->rail->down && sub->num_links;
}

/* A pair of rails that can be asked: a question takes no subchannel. */
static bool may_be_asked(const struct mr_sub *sub)
{
    return is_watched(sub) ||
           (mr_sub_is_current(sub) && sub->state != MR_SUB_OPEN && !sub->rail->down && mr_sub_pkey(sub, 0));
}

/* Bytes that this process has under way over the subchannel, at most. */
static uint64_t bytes_under_way(const struct mr_sub *sub)
{
    uint64_t packets = 0, kept = sub->peer->out.bytes;

    for (unsigned l = 0; l < sub->num_links; l++)
        if (mr_kind_is(sub->kind, MR_IS_CONNECTED))
            packets += (uint64_t)(sub->link[l].qp.depth - sub->link[l].qp.room) * mr_config.eager_max;
    return mr_peer_ask_queued(sub) + (packets < kept ? packets : kept);
}

static uint64_t sub_rate(const struct mr_sub *sub)
{
    uint32_t here = sub->rail->rate_mbps, there = sub->peer->address->rail[sub->remote_rail].rate_mbps;

    return here < there ? here : there;
}

/*
 * Bytes that this process has under way over the rail, to any peer, and bytes that peers may be reading or writing:
 * adapters send what is read beside this process's packets, and what is written beside their confirmations.
 */
static uint64_t bytes_of_rail(const struct mr_rail *rail)
{
    uint64_t bytes = mr_peers.offered;

    for (int r = 0; r < mr_peers_end(); r++) {
        const struct mr_peer *p = mr_peers.peer[r];

        for (unsigned i = 0; p && !p->error && i < p->num_subs; i++)
            if (p->sub[i].rail == rail && is_watched(&p->sub[i]))
                bytes += bytes_under_way(&p->sub[i]);
    }
    return bytes;
}

/*
 * True if a confirmation is late that a moving link would have had after one poll. A peer may lack buffers once, so the
 * process is asked at the second time.
 */
static bool is_late(const struct mr_sub *sub, const struct mr_link *l)
{
    return l->owed && l->stuck >= POLLS_LATE &&
           bytes_of_rail(sub->rail) <= sub_rate(sub) * (MR_CHECK_NS / 8000) / LATE_PART;
}

static void poll_late(struct mr_sub *sub, uint64_t now_ns)
{
    bool late = false;

    for (unsigned l = 0; l < sub->num_links && !late; l++)
        late = is_late(sub, &sub->link[l]);
    sub->connect->late = late && (sub->connect->late || mr_trust_late(mr_way_trust(sub), now_ns));
}

static bool is_stuck(const struct mr_sub *sub, const struct mr_link *l)
{
    return l->stuck >= POLLS_HELD || (sub->connect->late && l->owed && l->stuck >= POLLS_LATE);
}

/* 1 and the place of the longest stuck link, if stuck long enough to ask the process; else 0. */
static unsigned stuck_link(const struct mr_sub *sub)
{
    unsigned longest = 0;

    for (unsigned l = 0; is_watched(sub) && l < sub->num_links; l++)
        if (is_stuck(sub, &sub->link[l]) && (!longest || sub->link[l].stuck > sub->link[longest - 1].stuck))
            longest = l + 1;
    return longest;
}

/* The way is asked even without traffic: it has never answered. */
static bool must_prove(const struct mr_sub *sub)
{
    return sub->peer->connect->unproven && !mr_questions_of(sub)->proven;
}

/* True if something is under way on the subchannel, or on a link of it, and does not move. */
static bool poll_sub(struct mr_sub *sub, uint64_t now_ns)
{
    struct mr_questions *s = mr_questions_of(sub);
    struct state now = {false, false};

    if (s && !is_watched(sub))
        s->missed = s->own = 0;
    if (is_watched(sub))
        for (unsigned l = 0; l < sub->num_links; l++)
            poll_link(&sub->link[l], &sub->peer->out, &now);
    if (is_watched(sub))
        poll_late(sub, now_ns);
    for (unsigned l = 0; is_watched(sub) && l < sub->num_links; l++)
        if (sub->link[l].stuck >= POLLS_NUDGE && sub->link[l].ops->keepalive)
            nudge(&sub->link[l]);
    if (now.moves && !stuck_link(sub))
        mr_trust_moved(mr_way_trust(sub), MR_CHECK_NS, now_ns);
    if (now.moves || !is_watched(sub) || !(now.busy || carries_large(sub))) {
        sub->connect->polls = 0;
        if (s && now.moves && !must_prove(sub))
            s->missed = s->own = 0;
        return stuck_link(sub);
    }
    sub->connect->polls += sub->connect->polls < UINT8_MAX;
    return true;
}

/* ---- rounds of questions ----------------------------------------------------------------------------------------- */

/* Has an answer to this round come over the way of the subchannel (same), or over any other? */
static bool has_answer(const struct mr_sub *sub, bool same)
{
    const struct mr_peer *p = sub->peer;

    for (unsigned i = 0; i < p->num_subs; i++)
        if (may_be_asked(&p->sub[i]) && mr_questions_of(&p->sub[i])->answered &&
            mr_is_same_way(&p->sub[i], sub) == same)
            return true;
    return false;
}

/* loses: the way answers, but loses packets. */
static void break_way(const struct mr_sub *way, bool loses, const char *why)
{
    struct mr_peer *p = way->peer;
    char name[MR_SUB_NAME];
    bool first = true;

    mr_log(MR_LOG_WARN, "rank %d on %s, %s: %s", p->rank, p->address->host, mr_sub_name(way, name), why);
    for (unsigned i = 0; i < p->num_subs; i++)
        if (is_watched(&p->sub[i]) && mr_is_same_way(&p->sub[i], way)) {
            if (loses && first)
                mr_recovery_loses(&p->sub[i]);
            first = false;
            p->sub[i].lossy = loses;
            mr_sub_break(&p->sub[i]);
        }
    if (loses)
        mr_ways_lose(way, mr_clock_ns());
}

static struct mr_sub *first_of_way(const struct mr_sub *way)
{
    struct mr_peer *p = way->peer;
    unsigned i = 0;

    while (!may_be_asked(&p->sub[i]) || !mr_is_same_way(&p->sub[i], way))
        i++;
    return &p->sub[i];
}

/* How long an answer over the way may take. */
static uint64_t longest_trip(const struct mr_sub *way)
{
    const struct mr_peer *p = way->peer;
    uint64_t excess = 0;

    for (unsigned i = 0; i < p->num_subs; i++)
        if (may_be_asked(&p->sub[i]) && mr_questions_of(&p->sub[i])->trip.excess_ns > excess)
            excess = mr_questions_of(&p->sub[i])->trip.excess_ns;
    return mr_trip_most(&mr_questions_of(first_of_way(way))->trip, excess);
}

/*
 * The least bytes that the way has carried over a moving link. Adapters and switches serve a queue pair at least one
 * packet in the time of a question and its answer on the same service level: the link has this part of the rate.
 */
static uint64_t least_carried(const struct mr_sub *sub, uint64_t ns)
{
    uint64_t mbps = sub_rate(sub), trip = mr_questions_of(first_of_way(sub))->trip.mean_ns, parts;

    if (!mbps)
        return 0;
    parts = 1 + trip * mbps / (8000ull * (128u << sub->rail->addr.mtu));
    return ns * mbps / 8000 / (trip && parts < PART ? parts : PART);
}

/* ---- lossy ways -------------------------------------------------------------------------------------------------- */

/* Some pair of rails, open or not, brings answers and loses no packets, as far as is known. */
static bool has_well_way(const struct mr_peer *p, uint64_t now_ns)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (may_be_asked(&p->sub[i]) && mr_questions_of(&p->sub[i])->answered &&
            mr_way_value(&p->sub[i], now_ns) > MR_WAY_WELL)
            return true;
    return false;
}

static bool is_known_to_lose(const struct mr_sub *sub, uint64_t now_ns)
{
    return mr_way_value(sub, now_ns) < MR_WAY_WELL / 4;
}

/*
 * The link would have been done by now, if it moved. Where no way is better the time-outs of a lossy way's adapter are
 * sooner over than a handshake.
 */
static bool is_overdue(const struct mr_sub *sub, uint64_t now_ns)
{
    const struct mr_questions *s = mr_questions_of(sub);
    uint64_t held_ns = now_ns - s->held_ns;

    if (sub->lossy && held_ns < TIMEOUTS * MR_QP_LOSSY_NS && !has_well_way(sub->peer, now_ns))
        return false;
    return held_ns >= longest_trip(sub) && s->held_bytes >= bytes_of_rail(sub->rail);
}

/* The way has answered: checks for answers round after round on the level of a stuck link. */
static void judge_held(struct mr_sub *sub, uint64_t now_ns)
{
    struct mr_questions *s = mr_questions_of(sub);
    unsigned link = stuck_link(sub);
    uint64_t passed_ns;
    bool loses;

    if (!link || link != s->held_link)
        return;
    if (!mr_questions_of(first_of_way(sub))->on_level)
        return;
    if (!s->held) {
        s->held_ns = sub->peer->connect->round_ns;
        s->held_bytes = 0;
    }
    passed_ns = now_ns - sub->peer->connect->round_ns;
    s->held_bytes += least_carried(sub, passed_ns < 2 * MR_CHECK_NS ? passed_ns : 2 * MR_CHECK_NS);
    s->held += s->held < UINT8_MAX;
    loses = s->held >= ROUNDS_LOSES && is_known_to_lose(sub, now_ns) && has_well_way(sub->peer, now_ns);
    if (loses || (s->held >= ROUNDS_HELD && is_overdue(sub, now_ns)))
        break_way(sub, true, "it loses packets: it brings answers, but what is under way does not move any more");
}

/* A link of the subchannel was stuck at the last poll, and moves again. Was it since packets were lost? */
static void judge_freed(struct mr_sub *sub, uint64_t now_ns)
{
    const struct mr_questions *s = mr_questions_of(sub);
    uint64_t stood_ns = s->stood * MR_CHECK_NS + MR_CHECK_NS / 2;

    if (now_ns - sub->connect->opened_ns < stood_ns)
        return; /* the links of before stood still, and the subchannel was opened anew */
    if (!has_answer(sub, true) || least_carried(sub, stood_ns) < s->stood_bytes)
        return; /* may have been slow */
    mr_trust_stood(mr_way_trust(sub), stood_ns, now_ns);
    if (!mr_way_is_worth(sub, now_ns) && has_well_way(sub->peer, now_ns))
        break_way(sub, true, "it loses packets, and stands still most of the time");
}

static void poll_held(struct mr_sub *sub, uint64_t now_ns)
{
    struct mr_questions *s = mr_questions_of(sub);
    unsigned link = stuck_link(sub), before = s->held_link;

    if (link)
        s->stood = sub->link[link - 1].stuck;
    if (link == before)
        return;
    s->held_link = (uint8_t)link;
    s->held = 0;
    if (link)
        s->stood_bytes = sub->link[link - 1].owed ? bytes_of_rail(sub->rail) : UINT64_MAX;
    else if (is_watched(sub))
        judge_freed(sub, now_ns);
}

static bool allocate_questions(struct mr_peer *p)
{
    if (!p->connect->questions)
        p->connect->questions = calloc(p->num_subs, sizeof *p->connect->questions);
    return p->connect->questions;
}

/* Others have found the way in doubt: their rounds count, except the last one. */
static void add_doubt(struct mr_sub *sub, unsigned missed, uint64_t since_ns)
{
    struct mr_questions *s = mr_questions_of(sub);

    missed = missed < ROUNDS - 1 ? missed : ROUNDS - 1;
    if (!s->missed || since_ns < s->since_ns)
        s->since_ns = since_ns;
    s->missed = s->missed < missed ? (uint8_t)missed : s->missed;
}

/* The same way to all peers on the host is in doubt, whether the way is in use or not: all are asked. */
static void doubt_host(const struct mr_sub *way, unsigned missed, uint64_t since_ns)
{
    for (int r = 0; r < mr_peers_end(); r++) {
        struct mr_peer *p = mr_peers.peer[r];

        if (!p || !mr_peers_share_host(r, way->peer->rank) || !p->up || p->error)
            continue;
        for (unsigned i = 0; i < p->num_subs; i++)
            if (is_watched(&p->sub[i]) && mr_is_shared_way(&p->sub[i], way) && allocate_questions(p))
                add_doubt(&p->sub[i], missed, since_ns);
    }
}

/* The peer has asked, and not been answered, over a way that is in use here. */
static void take_doubt(struct mr_sub *sub, uint64_t now_ns)
{
    unsigned missed = sub->connect->doubted;

    sub->connect->doubted = 0;
    if (missed && is_watched(sub))
        doubt_host(sub, missed, now_ns - missed * MR_CHECK_NS);
}

static bool is_in_doubt(const struct mr_sub *sub)
{
    const struct mr_questions *s = mr_questions_of(sub);

    return s && s->missed && is_watched(sub);
}

static uint8_t usual_level(void)
{
    return mr_peers.qos.level[MR_LEVEL_SMALL].sl[0];
}

static void judge_answers(struct mr_sub *sub, uint64_t now_ns)
{
    struct mr_questions *s = mr_questions_of(sub), *way;

    if (!s->asked || !is_watched(sub))
        return;
    if (has_answer(sub, true)) {
        s->missed = s->own = 0;
        judge_held(sub, now_ns);
        return;
    }
    way = mr_questions_of(first_of_way(sub));
    if ((way->on_level && way->sl != usual_level()) || !has_answer(sub, false))
        return;
    if (!s->missed)
        s->since_ns = now_ns;
    s->missed += s->missed < UINT8_MAX;
    s->own += s->own < UINT8_MAX;
    if (s->own > 1) /* not a loss of single packets */
        s->held_link = s->held = 0;
    if (s->own == MR_ROUNDS_DOUBT)
        doubt_host(sub, s->missed, s->since_ns);
    if (s->missed >= ROUNDS && now_ns - s->since_ns >= longest_trip(sub))
        break_way(sub, false, "nothing comes or goes over it any more, while others bring answers");
}

/*
 * If a link of the way is stuck, that link's level, unless that level did not answer and no other question has since.
 */
static uint8_t level_to_ask(struct mr_sub *way)
{
    const struct mr_peer *p = way->peer;
    struct mr_questions *s = mr_questions_of(way);

    s->level_missed = !has_answer(way, true) && (s->level_missed || s->on_level);
    s->on_level = false;
    for (unsigned i = 0; i < p->num_subs && !s->level_missed; i++) {
        const struct mr_questions *q = mr_questions_of(&p->sub[i]);

        if (!is_watched(&p->sub[i]) || !mr_is_same_way(&p->sub[i], way) || !q->held_link)
            continue;
        s->on_level = true;
        return p->sub[i].link[q->held_link - 1].sl;
    }
    return usual_level();
}

/*
 * Pairs of rails without a subchannel are asked, too, if there is only one open way, or no open way answers, or an open
 * way loses packets: the other open ways may lose packets, too.
 */
static bool needs_unused_ways(const struct mr_peer *p, uint64_t now_ns)
{
    const struct mr_sub *one = NULL;
    bool several = false, answered = !p->connect->round_ns, loses = false;

    for (unsigned i = 0; i < p->num_subs; i++) {
        if (!is_watched(&p->sub[i]))
            continue;
        several |= one && !mr_is_same_way(&p->sub[i], one);
        one = &p->sub[i];
        answered |= mr_questions_of(&p->sub[i])->answered;
        loses |= mr_way_value(&p->sub[i], now_ns) < MR_WAY_WELL;
    }
    return !several || !answered || loses;
}

/* Few with many peers: all ranks may ask the same rank at a time, and datagrams without room are lost. */
static unsigned num_questions(bool answered)
{
    unsigned few = QUESTIONS_ALL / (unsigned)mr_peers.launch->size;

    if (!answered || !few) /* a peer that computes has to answer all of them later */
        return 1;
    return few < QUESTIONS ? few : QUESTIONS;
}

/* Sends this number of questions over each way. */
static void ask_ways(struct mr_peer *p, unsigned questions, uint64_t now_ns)
{
    bool unused = needs_unused_ways(p, now_ns);

    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_questions *s = mr_questions_of(&p->sub[i]);

        s->asked = unused ? may_be_asked(&p->sub[i]) : is_watched(&p->sub[i]);
        s->sl = s->asked && first_of_way(&p->sub[i]) == &p->sub[i] ? level_to_ask(&p->sub[i]) : 0;
    }
    for (unsigned i = 0; i < p->num_subs; i++) {
        mr_questions_of(&p->sub[i])->answered = false;
        if (!mr_questions_of(&p->sub[i])->asked || first_of_way(&p->sub[i]) != &p->sub[i])
            continue;
        for (unsigned n = 0; n < questions; n++)
            mr_keepalive_ask_on(&p->sub[i], mr_questions_of(&p->sub[i])->sl, now_ns);
    }
}

/* True if a way has never answered, of a peer whose ways are asked from the beginning. */
static bool lacks_proof(struct mr_peer *p)
{
    bool all = true;

    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_questions *s = mr_questions_of(&p->sub[i]);

        s->proven |= is_watched(&p->sub[i]) && has_answer(&p->sub[i], true);
        all &= s->proven || !is_watched(&p->sub[i]);
    }
    return !all;
}

static uint64_t next_pause_ns(const struct mr_connect_peer *c, bool answered)
{
    uint64_t most = c->isolated_ns ? PAUSE_LOST_NS : PAUSE_MAX_NS;

    if (answered)
        return MR_CHECK_NS;
    return 2 * c->round_pause_ns < most ? 2 * c->round_pause_ns : most;
}

/*
 * Traffic stands still. Ways with many losses break if another is better, because traffic would stand still there, too.
 */
static void leave_losing_ways(struct mr_peer *p, uint64_t now_ns)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (is_watched(&p->sub[i]) && mr_trust_loss(mr_way_trust(&p->sub[i]), now_ns) > MR_WAY_LOSES &&
            has_well_way(p, now_ns))
            break_way(&p->sub[i], true, "it loses packets, as questions over it show");
}

/* A round ends when the next begins. */
static void begin_ask_round(struct mr_peer *p, uint64_t now_ns)
{
    struct mr_connect_peer *c = p->connect;
    bool answered = !c->round_ns;

    if (now_ns - c->round_ns < c->round_pause_ns)
        return;
    for (unsigned i = 0; i < p->num_subs; i++)
        answered |= mr_questions_of(&p->sub[i])->answered;
    for (unsigned i = 0; i < p->num_subs && c->round_ns; i++)
        judge_answers(&p->sub[i], now_ns);
    leave_losing_ways(p, now_ns);
    c->unproven = c->unproven && lacks_proof(p) && c->round_pause_ns < PAUSE_MAX_NS;
    c->round_pause_ns = next_pause_ns(c, answered);
    ask_ways(p, num_questions(answered), now_ns);
    c->round_ns = now_ns;
}

/* Many peers may have had to be asked at the start, and few ever are again. */
static void free_questions(struct mr_peer *p)
{
    free(p->connect->questions);
    p->connect->questions = NULL;
    p->connect->round_ns = p->connect->round_pause_ns = 0;
}

/*
 * Something is under way, and all open ways lose packets, but there are others: questions go on, until one is left for
 * another one that loses none.
 */
static bool seeks_better_way(const struct mr_peer *p)
{
    bool open = false, others = false;

    for (unsigned i = 0; i < p->num_subs; i++) {
        bool watched = is_watched(&p->sub[i]);

        if (watched && p->sub[i].doubt <= MR_WEIGHT_MAX / 2)
            return false;
        open |= watched;
        others |= !watched && may_be_asked(&p->sub[i]);
    }
    return open && others && (p->num_large || p->out.num);
}

static bool watch_peer(struct mr_peer *p, uint64_t now_ns)
{
    bool stuck = false, proving = p->connect->unproven, ask = proving || seeks_better_way(p);

    for (unsigned i = 0; i < p->num_subs; i++) {
        stuck |= poll_sub(&p->sub[i], now_ns);
        take_doubt(&p->sub[i], now_ns);
        ask |= p->sub[i].connect->polls >= POLLS_ASK || stuck_link(&p->sub[i]) || is_in_doubt(&p->sub[i]);
    }
    if (p->connect->questions || ((p->connect->isolated_ns || ask) && allocate_questions(p)))
        for (unsigned i = 0; i < p->num_subs; i++)
            poll_held(&p->sub[i], now_ns);
    if ((p->connect->isolated_ns || ask) && p->connect->questions) {
        begin_ask_round(p, now_ns);
        for (unsigned i = 0; i < p->num_subs; i++)
            stuck |= p->connect->unproven || is_in_doubt(&p->sub[i]);
    } else {
        p->connect->round_ns = p->connect->round_pause_ns = 0;
    }
    mr_ways_weigh(p, now_ns);
    if (proving && !p->connect->unproven && !stuck)
        free_questions(p);
    return stuck;
}

/* ---- while no subchannel is open --------------------------------------------------------------------------------- */

void mr_silence_ask(struct mr_peer *p, uint64_t now_ns)
{
    if (!allocate_questions(p))
        return;
    p->connect->round_ns = 0;
    p->connect->round_pause_ns = MR_CHECK_NS;
    ask_ways(p, num_questions(true), now_ns);
    p->connect->round_ns = now_ns;
}

bool mr_silence_answered(const struct mr_sub *sub)
{
    return sub->peer->connect->questions && may_be_asked(sub) && has_answer(sub, true);
}

bool mr_silence_leads(const struct mr_sub *sub)
{
    return sub->peer->connect->round_ns && mr_silence_answered(sub);
}

bool mr_silence_heard(const struct mr_peer *p, uint64_t now_ns)
{
    uint64_t most = 0, trip;
    bool any = false, all = true;

    for (unsigned i = 0; p->connect->questions && i < p->num_subs; i++) {
        const struct mr_questions *s = mr_questions_of(&p->sub[i]);

        any |= mr_silence_answered(&p->sub[i]);
        all &= !s->asked || has_answer(&p->sub[i], true);
        trip = may_be_asked(&p->sub[i]) ? longest_trip(&p->sub[i]) : 0;
        most = trip > most ? trip : most;
    }
    return any && (all || now_ns - p->connect->round_ns >= (most < MR_CHECK_NS / 2 ? most : MR_CHECK_NS / 2));
}

/* ---- all peers --------------------------------------------------------------------------------------------------- */

void mr_silence_check(uint64_t now_ns)
{
    unsigned size = (unsigned)mr_peers_end(), most = size < PEERS_MOST ? size : PEERS_MOST;
    bool stuck = false;

    if (now_ns - mr_connect.silence_ns < MR_CHECK_NS)
        return;
    mr_connect.silence_ns = now_ns;
    for (unsigned n = 0; n < most; n++) {
        struct mr_peer *p = mr_peers.peer[mr_connect.silence_next];

        mr_connect.silence_next = (mr_connect.silence_next + 1) % size;
        if (p && p->up && !p->error)
            stuck |= watch_peer(p, now_ns);
    }
    if (size <= PEERS_MOST || stuck)
        mr_peers.doubtful = stuck;
}
