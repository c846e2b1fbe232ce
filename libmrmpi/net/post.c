/* SPDX-License-Identifier: BSD-3-Clause */
/* The way down of a packet: the choice of subchannel and link, if there is room, and the peer's window otherwise. */
#include <errno.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/wire.h"
#include "libmrmpi/net/internal.h"

struct mr_net mr_net;

static int post_on_link(struct mr_peer *p, struct mr_link *l, struct mr_packet *k)
{
    int err;

    if (p->has_lossy_link)
        return mr_rely_send(p, l, k);
    err = l->ops->send(l, k);
    if (!err)
        mr_window_sent(&p->out, &k->kept, l->index, true, 0);
    return err;
}

/*
 * Returns true if the peer's rate limit allows another packet. If not, the packet waits with all others. With a pace,
 * only as much is under way as keeps a link busy: the pace may go down, and posts cannot be taken back.
 */
static bool peer_pace_lets(struct mr_pace *pace, const struct mr_link *l, size_t len)
{
    uint64_t now_ns;

    if (pace->bucket.rate && mr_kind_is(l->kind, MR_IS_CONNECTED) &&
        (l->qp.depth - l->qp.room) * (len + MR_AHEAD_WIRE) >= MR_PACE_UNDER_WAY)
        return false;
    if (pace->bucket.left > 0 || !mr_pace_limits(pace))
        return true;
    now_ns = mr_clock_ns();
    if (mr_pace_fill(pace, now_ns))
        return true;
    mr_net.pace_until_ns = now_ns + mr_pace_wait_ns(pace);
    return false;
}

/*
 * Posts on the link of its level, if the ahead budget, the peer's grant and the class's share of the adapter allow, and
 * the link has room; else on the link of packets sent with the bulk.
 */
static int post_by_level(struct mr_peer *p, struct mr_sub *sub, enum mr_level level, struct mr_packet *k)
{
    struct mr_link *behind = sub->level[MR_LEVEL_PACKETS];
    unsigned rail = sub->rail->index;
    int err = -EAGAIN;

    if (level == MR_LEVEL_BULK)
        return post_on_link(p, sub->level[level], k);
    /* the adapter's bucket first: it owes no more than its room, so it must be filled while others are empty */
    if (sub->level[level] != behind && mr_bucket_lets(&mr_net.adapter[rail], k->payload) &&
        (!p->granted || mr_bucket_lets(&p->granted[level], k->payload)) && mr_may_go_ahead(sub, level, k->payload)) {
        err = post_on_link(p, sub->level[level], k);
        if (!err) {
            mr_ahead_take(&mr_peers.ahead[rail][level], k->payload);
            mr_ahead_handle(&mr_net.adapter[rail], mr_net.message_ns[rail]);
        }
        if (!err && p->granted)
            mr_ahead_take(&p->granted[level], k->payload);
    }
    if (err != -EAGAIN || mr_link_is_deep_enough(behind, k->payload))
        return err;
    err = post_on_link(p, behind, k);
    if (!err && level != MR_LEVEL_PACKETS) {
        mr_ahead_handle(&mr_net.adapter[rail], mr_net.message_ns[rail]);
        mr_stat_add(MR_STAT_NET_BEHIND, 1);
    }
    return err;
}

/* The same, at the pace granted by the peer, if any. */
static int post_ahead(struct mr_peer *p, struct mr_sub *sub, enum mr_level level, struct mr_packet *k)
{
    int err;

    if (mr_net_of(p)->pace && !peer_pace_lets(mr_net_of(p)->pace, sub->level[MR_LEVEL_PACKETS], k->payload))
        return -EAGAIN;
    err = post_by_level(p, sub, level, k);
    if (!err && mr_net_of(p)->pace)
        mr_pace_take(mr_net_of(p)->pace, k->payload + MR_AHEAD_WIRE);
    return err;
}

/* With limits on traffic ahead of the bulk, or lossy links. */
static __attribute__((noinline)) int post_with_care(struct mr_peer *p, struct mr_sub *sub, enum mr_level level,
                                                    struct mr_packet *k)
{
    return mr_peers.ahead_limited ? post_ahead(p, sub, level, k) : post_on_link(p, sub->level[level], k);
}

/* A packet of a message cut into packets. */
static enum mr_level level_of_part(const struct mr_packet *k)
{
    unsigned flags = mr_wire_flags(k->data) & MR_VC_FLAGS_PREFIX;

    if (flags == MR_VC_FLAG_PART)
        return mr_fabric_level_of(&mr_peers.qos, (uint32_t)mr_wire_len(k->data));
    if (flags == MR_VC_FLAG_BULK)
        return mr_fabric_level_of_offered(&mr_peers.qos, mr_wire_whole(k->data));
    return MR_LEVEL_PACKETS;
}

/*
 * The second choice: with rules, the packet's properties decide the excluded subchannels, and at first all are
 * excluded, so the fast path knows nothing of rules. Otherwise, rails taken only if the near ones have no room. 0: no
 * second choice, or this was it.
 */
#define SECOND_CHOICE (1ull << 32)
static __attribute__((noinline)) uint64_t choose_others(const struct mr_peer *p, const struct mr_packet *k,
                                                        uint64_t excluded)
{
    enum mr_rule_use use = mr_wire_flags(k->data) & MR_VC_FLAG_BULK    ? MR_RULE_PIECE
                           : mr_wire_kind(k->data) == MR_VC_KIND_EAGER ? MR_RULE_EAGER
                                                                       : MR_RULE_CONTROL;

    if (excluded & SECOND_CHOICE || !(p->steer || p->excluded_far))
        return 0;
    return SECOND_CHOICE | (p->steer ? mr_steer_excluded(p, use, k->payload) : p->excluded & ~p->excluded_far);
}

/*
 * The link has no room, and no other link would be sooner; or its room is unknown before the next poll of its
 * completions. With limits, these may be the reason.
 */
static __attribute__((noinline)) bool waits_for(struct mr_peer *p, unsigned i, struct mr_link *l, uint32_t excluded,
                                                size_t len)
{
    if (!p->packet_turn.uneven || mr_peers.ahead_limited || p->has_lossy_link || !mr_kind_is(l->kind, MR_IS_CONNECTED))
        return false;
    return !mr_qp_is_full(&l->qp) || mr_sched_waits(&mr_peers.policy[MR_POLICY_SMALL], &p->packet_turn, p->load,
                                                    p->num_now, excluded, i, len, mr_link_under_way(l), mr_clock_ns());
}

/*
 * Excluded for a zero-copy packet: rails whose devices do not know the memory. If no other rail is open, the payload is
 * copied behind the header, and any rail will do.
 */
static __attribute__((noinline)) uint32_t excluded_for_zsend(const struct mr_peer *p, struct mr_packet *k)
{
    uint32_t without = 0;
    bool up = false;

    for (unsigned i = 0; i < p->num_now; i++) {
        bool known = mr_memory_is_on(k->zsend.memory, p->now[i].rail);

        without |= (uint32_t)!known << i;
        up |= known && p->load[i].up && !(p->excluded >> i & 1);
    }
    if (!up)
        mr_packet_settle(k);
    return up ? without : 0;
}

/* Over the subchannel in turn, among those with room. -EAGAIN: none has room. */
static int post_packet(struct mr_peer *p, struct mr_packet *k)
{
    enum mr_level level = MR_LEVEL_SMALL;
    uint64_t excluded = p->excluded;

    if (unlikely(k->zsend.from != NULL))
        excluded |= excluded_for_zsend(p, k);
    if (unlikely(mr_wire_flags(k->data) & (MR_VC_FLAG_BULK | MR_VC_FLAG_PART)))
        level = level_of_part(k);
    else if (k->payload > mr_peers.qos.level[MR_LEVEL_SMALL].max)
        level = mr_fabric_level_of(&mr_peers.qos, k->payload);
    for (;;) {
        unsigned i = mr_packet_turn(p, (uint32_t)excluded, k->payload);
        struct mr_link *l;
        int err;

        if (unlikely(i == p->num_now)) {
            excluded = choose_others(p, k, excluded);
            if (!excluded)
                return -EAGAIN;
            continue;
        }
        l = p->now[i].level[level];
        if (unlikely(mr_peers.ahead_limited || p->has_lossy_link))
            err = post_with_care(p, &p->now[i], level, k);
        else if (!(err = l->ops->send(l, k)))
            mr_window_sent(&p->out, &k->kept, l->index, true, 0);
        if (likely(!err)) {
            mr_packet_taken(p, i, k->payload);
            return 0;
        }
        if (err == -EAGAIN && waits_for(p, i, l, (uint32_t)excluded, k->payload))
            return err;
        if (err == -EAGAIN)
            excluded |= 1u << i;
        else
            mr_sub_break(&p->now[i]);
    }
}

/* Posts waiting packets, as far as there is room. */
void mr_net_push(struct mr_peer *p)
{
    struct mr_kept *k;

    while ((k = mr_window_ready(&p->out)) && !post_packet(p, (struct mr_packet *)k))
        mr_channel_waiting--;
    if (!k && mr_window_waiting(&p->out))
        mr_keepalive_unsignaled(p);
}

unsigned mr_net_waiting(struct mr_vc *vc)
{
    struct mr_peer *p = vc->data;

    return p ? mr_window_waiting(&p->out) : 0;
}

static int first_send(struct mr_vc *vc, struct mr_peer **out)
{
    struct mr_peer *p = mr_peer_get(mr_vc_world_rank(vc));

    if (!p)
        return -ENOMEM;
    mr_peer_connect(p);
    *out = p;
    return p->error;
}

int mr_net_reserve(struct mr_vc *vc, unsigned packets)
{
    struct mr_peer *p = vc->data;
    int err = vc->error;

    if (!err && !(p && p->up))
        err = first_send(vc, &p);
    if (!err)
        err = mr_packets_reserve(packets);
    return err ? err : mr_window_make_room(&p->out, packets);
}

/* Its number is that of the next packet. 0 or -ENOMEM: the packet is free again. */
static inline int number_packet(struct mr_peer *p, struct mr_packet *k)
{
    if (unlikely(mr_window_push(&p->out, &k->kept))) {
        mr_packet_free(k);
        return -ENOMEM;
    }
    mr_stat_add(MR_STAT_NET_SENT, 1);
    return 0;
}

/* At once, if it is its turn and there is room. */
static inline void post_in_turn(struct mr_peer *p, struct mr_packet *k)
{
    if (likely(p->up && mr_window_waiting(&p->out) == 1 && mr_window_ready(&p->out)) && !post_packet(p, k))
        return;
    mr_channel_waiting++;
    mr_peer_backlog(p);
}

/* The packet waits in the window until posted. */
static __attribute__((noinline)) int send_in_turn(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload,
                                                  size_t len)
{
    struct mr_peer *p = vc->data;
    struct mr_packet *k;

    if (unlikely(!p || !p->up)) {
        int err = first_send(vc, &p);

        if (err)
            return err;
    }
    k = mr_packet_make(hdr, payload, len);
    if (unlikely(!k || number_packet(p, k)))
        return -ENOMEM;
    post_in_turn(p, k);
    return 0;
}

/* Something has come since the last packet went: as take_turn. */
static __attribute__((noinline)) struct mr_link *take_again(struct mr_peer *p, size_t len)
{
    bool stays = mr_sched_stays(&p->packet_turn, p->load);
    unsigned last = stays ? p->packet_turn.home : mr_sched_last(&p->packet_turn, p->num_now);

    if (p->num_large || !(stays || mr_sched_takes_again(&p->packet_turn, p->load, last)))
        return NULL;
    p->arrived = mr_peers.arrived;
    mr_sched_take_again(&p->packet_turn, last, len);
    return p->small[last];
}

/* The least loaded link is wanted, or the processor is the slower one. */
static __attribute__((noinline)) struct mr_link *take_turn_of_least(struct mr_peer *p, size_t len)
{
    struct mr_sched *s = &p->packet_turn;

    if (!s->even)
        return NULL;
    s->answers = false;
    if (mr_sched_wants_time(&mr_peers.policy[MR_POLICY_SMALL], s, p->num_now, len))
        mr_net_tell_time(p, len);
    if (mr_sched_stays(s, p->load)) {
        mr_sched_stay(&mr_peers.policy[MR_POLICY_SMALL], s, p->load, p->num_now, len);
        return p->small[s->home];
    }
    if (!mr_sched_find_least(s, p->load))
        return NULL;
    mr_sched_note(s, len);
    return p->small[mr_sched_take_turn(s, p->num_now, len)];
}

/*
 * Of several even subchannels: the next in turn is cheap to find. It has had its turn, even if it has no room now.
 * NULL: the full choice is needed.
 */
static __attribute__((noinline)) struct mr_link *take_turn(struct mr_peer *p, size_t len)
{
    if (mr_peer_answers(p))
        return take_again(p, len);
    if (mr_sched_stays_on(&p->packet_turn, len))
        return p->small[p->packet_turn.home];
    if (unlikely(!mr_sched_is_turn(&p->packet_turn)))
        return take_turn_of_least(p, len);
    return p->small[mr_sched_take_turn(&p->packet_turn, p->num_now, len)];
}

/* A short packet has been posted on a link that confirms packets itself. Nothing waited before. */
static inline void note_short_posted(struct mr_peer *p, struct mr_packet *k, const struct mr_link *l)
{
    mr_window_post(&p->out, &k->kept, l->index);
    mr_stat_add(MR_STAT_NET_SENT, 1);
}

/* False: the packet is not posted, and free again. */
static __attribute__((noinline)) bool post_as_asked(struct mr_peer *p, struct mr_packet *k)
{
    unsigned len = k->payload, i = mr_packet_turn(p, p->excluded, len);
    struct mr_link *l = i < p->num_now ? p->now[i].level[MR_LEVEL_SMALL] : NULL;

    if (!l || l->ops->send(l, k)) {
        mr_packet_unmake_short(k);
        return false;
    }
    note_short_posted(p, k, l);
    mr_packet_taken(p, i, len);
    return true;
}

/* To a peer with vc->fast_below set: only the turn decides. */
bool mr_net_send_short(struct mr_vc *vc, const void *payload, size_t len, int rank, int tag, uint32_t ctx)
{
    struct mr_peer *p = vc->data;
    struct mr_packet *k = mr_window_is_full(&p->out) ? NULL : mr_packet_take_short();
    struct mr_link *l;
    struct mr_hdr *hdr;

    if (unlikely(!k))
        return false;
    hdr = (struct mr_hdr *)k->data; /* its first MR_WIRE_MIN bytes */
    hdr->kind = MR_VC_KIND_EAGER;
    hdr->flags = hdr->form = 0;
    mr_vc_number(vc, hdr);
    hdr->rank = rank;
    hdr->tag = tag;
    hdr->ctx = ctx;
    mr_packet_fill_short(k, MR_WIRE_MIN, payload, len);
    l = p->fast_link;
    if (unlikely(!l) && !(l = take_turn(p, k->payload)))
        return post_as_asked(p, k);
    if (unlikely(l->ops->send(l, k))) {
        mr_packet_unmake_short(k);
        return false;
    }
    note_short_posted(p, k, l);
    return true;
}

/* False: nothing has happened. */
static bool send_as_short(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_packet *k = mr_packet_take_short();
    struct mr_link *l;

    if (!k)
        return false;
    mr_packet_fill_short(k, mr_wire_put(hdr, mr_wire_form(hdr, len), k->data), payload, len);
    l = p->fast_link;
    if (unlikely(!l) && !(l = take_turn(p, k->payload)))
        return post_as_asked(p, k);
    if (l->ops->send(l, k)) {
        mr_packet_unmake_short(k);
        return false;
    }
    note_short_posted(p, k, l);
    return true;
}

/* A packet refused here takes the general path, which finds the reason. */
int mr_net_send(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_peer *p = vc->data;

    if (len < vc->fast_below && !(hdr->flags & MR_VC_FLAGS_PREFIX) && mr_window_is_clear(&p->out) &&
        send_as_short(p, hdr, payload, len))
        return 0;
    return send_in_turn(vc, hdr, payload, len);
}

/* The payload is made in the packet. A short payload is made elsewhere first: copying costs less than the check. */
int mr_net_send_made(struct mr_vc *vc, const struct mr_hdr *hdr, size_t len, void *scratch, mr_vc_make_fn *make,
                     const void *what)
{
    struct mr_peer *p = vc->data;
    struct mr_packet *k;

    if (len < vc->fast_below) {
        make(scratch, len, what);
        return mr_net_send(vc, hdr, scratch, len);
    }
    if (!p || !p->up) {
        int err = first_send(vc, &p);

        if (err)
            return err;
    }
    k = mr_packet_make(hdr, NULL, len);
    if (!k)
        return -ENOMEM;
    make(k->data + k->size - k->payload, len, what);
    if (number_packet(p, k))
        return -ENOMEM;
    post_in_turn(p, k);
    return 0;
}

/* ---- from where a payload lies ----------------------------------------------------------------------------------- */

static bool zsends_now(const struct mr_peer *p, const struct mr_vc_zsender *zsender)
{
    return p && p->up && !p->has_lossy_link &&
           (!zsender->answers || (mr_peer_answers(p) && mr_answers_zsend(&mr_net.answers, mr_peers.arrived)));
}

/* The packet is taken back, or goes to the peer, whatever becomes of the memory from now on. */
void mr_net_zsend_done(const struct mr_zsend_from *zsend)
{
    mr_bulk_give_back(zsend->memory);
    mr_answers_ended(&mr_net.answers, mr_peers.arrived);
    mr_vc_up.zsend_done(zsend->zsender);
}

/* Posts a packet whose payload stays in the program's memory. 1 or -ENOMEM: nothing has happened. */
static int post_uncopied(struct mr_peer *p, const struct mr_hdr *hdr, const struct mr_zsend_from *zsend, size_t len)
{
    struct mr_packet *k = mr_packet_make(hdr, NULL, len);

    if (!k || number_packet(p, k))
        return -ENOMEM;
    k->zsend = *zsend;
    mr_stat_add(MR_STAT_PACKETS_ZCOPY, 1);
    post_in_turn(p, k);
    return 1;
}

int mr_net_zsend(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len,
                 const struct mr_vc_zsender *zsender)
{
    struct mr_peer *p = vc->data;
    bool zsends = !vc->error && zsends_now(p, zsender);
    const struct mr_memory *memory = zsends ? mr_bulk_borrow(p, zsender->buf, zsender->len) : NULL;
    int posted;

    if (zsends && !memory) {
        mr_net.zsends_no_more = true; /* why has been said */
        mr_net_renew_shorts();
    }
    if (!memory)
        return mr_vc_send(vc, hdr, payload, len);
    mr_vc_number(vc, hdr);
    posted = post_uncopied(p, hdr,
                           &(struct mr_zsend_from){.memory = memory, .from = payload, .zsender = zsender->cookie}, len);
    if (posted < 0)
        mr_bulk_give_back(memory);
    else
        vc->next_seq++;
    return posted;
}
