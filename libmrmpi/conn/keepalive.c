/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keepalive. A link without traffic never fails, so a rank that only waits would not learn of its peer's death. While
 * waiting, the rank asks the adapters of peers that have been silent for a second: a write of no bytes, which the other
 * adapter acknowledges by itself, however long the process there computes. Without an acknowledgement the link breaks
 * (recovery.c).
 *
 * The path of a message does nothing for this: the virtual channel counts the packets of a peer anyway.
 *
 * An adapter does not answer for an unreliable connection. If packets there time out again and again, the peer's
 * process is asked by a datagram, in the format of handshakes. If the process answers, and nothing comes over the
 * connection, the connection is broken (net/rely.c).
 *
 * Guests have no guards, but TCP. A guest's process is asked over its ways and by TCP: if TCP alone brings answers for
 * seconds, no way leads to the guest any more, though all ports are up, and TCP carries the packets from then on.
 */
#include "libmrmpi/conn/internal.h"
#include "libmrmpi/conn/questions.h"
#include "libmrmpi/conn/peer/guard.h"

#include <errno.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/conn/reliable/loss.h"

#define INTERVAL_NS 1000000000ull /* a peer is asked once in so long at most */
#define POLLS_MIN   10            /* least number of polls before patience ends */
#define QUESTIONS   4             /* at a time, over each way to a guest: some may be lost */

static bool ask_link(struct mr_sub *sub, unsigned level)
{
    struct mr_link *l = level < sub->num_links ? &sub->link[level] : NULL;

    if (!l || sub->state != MR_SUB_OPEN || mr_sub_retires(sub) || sub->rail->down || l->state != MR_LINK_OPEN ||
        !l->ops->keepalive || l->ops->keepalive(l))
        return false;
    mr_stat_add(MR_STAT_KEEPALIVES, 1);
    return true;
}

void mr_keepalive_all(struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs * MR_LEVELS; i++)
        ask_link(&p->sub[i / MR_LEVELS], i % MR_LEVELS);
}

void mr_keepalive_unsignaled(struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs * MR_LEVELS; i++) {
        const struct mr_sub *sub = &p->sub[i / MR_LEVELS];

        if (i % MR_LEVELS < sub->num_links && sub->link[i % MR_LEVELS].qp.unsignaled_sends)
            ask_link(&p->sub[i / MR_LEVELS], i % MR_LEVELS);
    }
}

bool mr_keepalive_confirm(struct mr_peer *p)
{
    if (p->error || !p->up || !p->out.num)
        return true;
    for (unsigned i = 0; i < p->num_subs; i++)
        for (unsigned l = 0; l < p->sub[i].num_links; l++) {
            struct mr_link *link = &p->sub[i].link[l];

            if (link->state == MR_LINK_OPEN && link->ops->flush && mr_window_link_busy(&p->out, link->index))
                link->ops->flush(link);
        }
    return false;
}

/* One link each time, in turn. False: no open link has an answering adapter. */
static bool ask_next_link(struct mr_peer *p)
{
    unsigned n = p->num_subs * MR_LEVELS;

    for (unsigned k = 0; k < n; k++) {
        unsigned i = p->connect->keepalive_next++ % n;

        if (ask_link(&p->sub[i / MR_LEVELS], i % MR_LEVELS)) {
            mr_costs_may_begin();
            return true;
        }
    }
    return false;
}

/* True if nothing has come from the peer since the last check: no packet, and no confirmation of ours. */
static bool peer_is_silent(struct mr_peer *p)
{
    uint32_t received = mr_vc_received(p->vc), confirmed = p->out.base;
    bool silent = received == p->connect->heard_received && confirmed == p->connect->heard_confirmed;

    p->connect->heard_received = received;
    p->connect->heard_confirmed = confirmed;
    return silent;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

/* Ways in doubt are named in questions over other ways: the peer asks over them as well, all ranks here. */
static void name_doubts(struct mr_cm_msg *m, const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs && m->num_subs <= MR_CM_DOUBTS_MAX; i++) {
        const struct mr_questions *s = mr_questions_of(&p->sub[i]);

        if (s && s->own >= MR_ROUNDS_DOUBT && p->sub[i].state == MR_SUB_OPEN)
            m->sub[m->num_subs++] = (struct mr_cm_sub){.rail = (uint8_t)p->sub[i].rail->index,
                                                       .remote = p->sub[i].remote_rail,
                                                       .path = p->sub[i].path,
                                                       .kind = mr_sub_kind(&p->sub[i]),
                                                       .generation = s->missed};
    }
}

static void take_doubts(struct mr_peer *p, const struct mr_cm_msg *m)
{
    for (unsigned i = 1; i < m->num_subs; i++) {
        const struct mr_cm_sub *s = &m->sub[i];
        struct mr_sub *sub = mr_sub_find(p, s->remote, s->rail, s->path, s->kind);

        if (sub && s->generation > sub->connect->doubted)
            sub->connect->doubted = s->generation;
    }
}

static int send_cm_question(const struct mr_sub *sub, enum mr_cm_type type, uint32_t id, uint8_t sl)
{
    struct mr_cm_sub way = {
        .rail = (uint8_t)sub->rail->index, .remote = sub->remote_rail, .path = sub->path, .kind = mr_sub_kind(sub)};
    struct mr_cm_msg m;

    way.loses = sub->lossy;
    way.level[0].sl = sl;
    mr_cm_make_question(&m, type, sub->peer->cm.job, sub->peer->cm.self, sub->peer->cm.peer, id, &way);
    if (sub->peer->error)
        m.reason = MR_CM_GIVEN_UP;
    m.unsent = sub->connect->unsent;
    if (type == MR_CM_ASK)
        name_doubts(&m, sub->peer);
    mr_where_say(&m, sub, mr_sub_datagram_pkey(sub, sub->connect->pkey_turn));
    return mr_sub_datagram(sub, sub->connect->pkey_turn, sl, &m, MR_CM_LENGTH(m.num_subs));
}

void mr_keepalive_ask(struct mr_sub *sub, uint64_t now_ns)
{
    mr_keepalive_ask_on(sub, mr_peers.qos.level[MR_LEVEL_SMALL].sl[0], now_ns);
}

void mr_keepalive_ask_on(struct mr_sub *sub, uint8_t sl, uint64_t now_ns)
{
    struct mr_questions *s = mr_questions_of(sub);

    if (send_cm_question(sub, MR_CM_ASK, sub->connect->question + 1, sl))
        return;
    sub->connect->question++;
    sub->connect->asked_ns = now_ns;
    if (s)
        s->asked_ns[sub->connect->question % MR_QUESTIONS_KEPT] = now_ns;
    mr_stat_add(MR_STAT_QUESTIONS, 1);
}

/*
 * Questions between the last answered question and this one are lost. They count if others of their round were answered
 * before the next round: then the peer's process was there to receive them. unsent: number of the peer's answers that
 * found no room.
 */
static unsigned count_lost(const struct mr_questions *s, uint32_t question, uint16_t unsent, uint64_t took_ns)
{
    uint64_t round_ns = s->asked_ns[question % MR_QUESTIONS_KEPT];
    unsigned lost = 0, none = (uint16_t)(unsent - s->unsent);

    for (uint32_t q = s->heard + 1; s->heard && q != question; q++) {
        uint64_t asked_ns = s->asked_ns[q % MR_QUESTIONS_KEPT];

        lost += (asked_ns == round_ns && took_ns < MR_CHECK_NS) || asked_ns == s->prompt_ns;
    }
    return lost > none ? lost - none : 0;
}

/* An answer to any of the last questions shows that the way is not silent (silence.c). */
static void note_question_answer(struct mr_sub *sub, uint32_t question, uint16_t unsent)
{
    struct mr_questions *s = mr_questions_of(sub);
    uint64_t now_ns = mr_clock_ns(), asked_ns = s->asked_ns[question % MR_QUESTIONS_KEPT], took_ns = now_ns - asked_ns;
    unsigned lost;

    s->answered = true;
    mr_trip_add(&s->trip, took_ns);
    if ((int32_t)(question - s->heard) <= 0) /* an earlier answer has come later */
        return;
    lost = question - s->heard < MR_QUESTIONS_KEPT ? count_lost(s, question, unsent, took_ns) : 0;
    mr_trust_tried(mr_way_trust(sub), lost + 1, lost, now_ns);
    s->heard = question;
    s->unsent = unsent;
    s->prompt_ns = took_ns < MR_CHECK_NS ? asked_ns : 0;
}

/* A late answer shows that the peer was away: the next question shows whether the peer is there. */
void mr_keepalive_datagram(struct mr_peer *p, const struct mr_cm_msg *msg)
{
    const struct mr_cm_sub *s = msg->sub;
    struct mr_sub *sub = mr_sub_find(p, s->remote, s->rail, s->path, s->kind);

    if (sub && msg->type == MR_CM_ASK) /* of a lost peer, too: the answer says so */
        sub->connect->unsent += send_cm_question(sub, MR_CM_HERE, msg->id, s->level[0].sl & 15) != 0;
    if (!sub || p->error)
        return;
    if (s->loses)
        mr_way_told(sub);
    if (msg->type == MR_CM_ASK) {
        take_doubts(p, msg);
        return;
    }
    if (msg->reason) {
        mr_log(MR_LOG_ERROR, "rank %d on %s does not answer any more: %s", p->rank, p->address->host,
               mr_cm_reason_text(msg->reason));
        mr_peer_lost(p, -ECONNREFUSED);
        return;
    }
    if (p->connect->questions && sub->connect->question - msg->id < MR_QUESTIONS_KEPT)
        note_question_answer(sub, msg->id, msg->unsent);
    mr_questions_soon(p->connect);
    if (p->connect->isolated_ns)
        mr_peer_due(p); /* recovery.c counts its time; it is to be opened */
    else
        p->connect->waited_ns = 0;
    if (msg->id != sub->connect->question || !sub->connect->asked_ns)
        return;
    for (unsigned l = 0; l < sub->num_links; l++)
        if (sub->link[l].state == MR_LINK_OPEN && mr_kind_breaks_unseen(sub->link[l].kind))
            mr_window_answered(&p->out, sub->link[l].index, sub->connect->asked_ns);
    sub->connect->asked_ns = 0;
}

/* ---- silent peers ------------------------------------------------------------------------------------------------ */

static uint64_t patience_ns(void)
{
    return (uint64_t)(mr_config.patience ? mr_config.patience : 1) * 1000000000;
}

static uint64_t poll_interval_ns(void)
{
    uint64_t part = patience_ns() / POLLS_MIN;

    return part < INTERVAL_NS ? part : INTERVAL_NS;
}

/* The peer's process, over one of its ways, in turn. */
static void ask_next_way(struct mr_peer *p, uint64_t now_ns)
{
    for (unsigned k = 0; k < p->num_subs; k++) {
        struct mr_sub *sub = &p->sub[p->connect->keepalive_next++ % p->num_subs];

        if (sub->state == MR_SUB_OPEN && !sub->rail->down) {
            mr_keepalive_ask(sub, now_ns);
            return;
        }
    }
}

/*
 * No adapter answers for the peer's links; guards may. The peer is lost if nothing comes from the peer, its process or
 * a guard during its patience. Time in which this rank does not poll counts little.
 */
static void judge_silent(struct mr_peer *p, uint64_t now_ns)
{
    uint64_t passed = now_ns - p->connect->counted_ns, most = patience_ns() / POLLS_MIN;
    bool heard;

    if (p->connect->isolated_ns) /* recovery.c counts */
        return;
    if (!mr_guard_ask(p, now_ns, p->connect->counted_ns, &heard) || heard || !p->connect->counted_ns)
        p->connect->waited_ns = 0;
    else
        p->connect->waited_ns += passed < most ? passed : most;
    p->connect->counted_ns = now_ns;
    if (p->connect->waited_ns)
        ask_next_way(p, now_ns);
    if (p->connect->waited_ns >= patience_ns())
        mr_peer_give_up(p, "neither its process nor an adapter of its host has answered");
}

static void ask_guest(struct mr_peer *p, uint64_t now_ns)
{
    for (unsigned i = 0; i < p->num_subs * QUESTIONS; i++) {
        struct mr_sub *sub = &p->sub[i / QUESTIONS];

        if (sub->state == MR_SUB_OPEN && !sub->rail->down)
            mr_keepalive_ask(sub, now_ns);
    }
    mr_stream_ask(p->vc);
}

/*
 * No adapter answers for the guest's links. An answer over any way begins the count anew (mr_keepalive_datagram); time
 * counts that ends with an answer by TCP. A guest that computes answers neither.
 */
static void judge_guest(struct mr_peer *p, uint64_t now_ns)
{
    uint64_t passed = now_ns - p->connect->counted_ns, most = poll_interval_ns();

    if (p->connect->isolated_ns) /* recovery.c counts */
        return;
    if (!p->connect->counted_ns)
        p->connect->waited_ns = 0;
    else if (mr_stream_answers(p->vc))
        p->connect->waited_ns += passed < most ? passed : most;
    p->connect->counted_ns = now_ns;
    if (p->connect->waited_ns < mr_patience_ns(p) || !p->connect->waited_ns)
        ask_guest(p, now_ns);
    else
        mr_peer_lost(p, -ENETDOWN); /* the channel stream goes on, and says so */
}

static void check_peer(struct mr_peer *p, uint64_t now_ns)
{
    if (!peer_is_silent(p))
        p->connect->counted_ns = p->connect->isolated_ns ? p->connect->counted_ns : 0;
    else if (ask_next_link(p))
        return;
    else if (p->guest_run)
        judge_guest(p, now_ns);
    else
        judge_silent(p, now_ns);
}

void mr_keepalive_silent(uint64_t now_ns)
{
    bool first = !mr_connect.keepalive_ns;

    if (now_ns - mr_connect.keepalive_ns < poll_interval_ns())
        return;
    mr_connect.keepalive_ns = now_ns;
    for (int r = 0; !first && r < mr_peers_end(); r++) {
        struct mr_peer *p = mr_peers.peer[r];

        if (p && p->up && !p->error)
            check_peer(p, now_ns);
    }
}
