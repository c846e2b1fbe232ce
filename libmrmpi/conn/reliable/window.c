/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send window: what is not on the path of every packet. A packet is in the ring from push to confirmation and, at
 * the same time, in at most one list: that of its link while it is in flight, that of packets to be sent again, or none
 * (never sent). Both lists are doubly linked, since an acknowledgement takes packets out of the middle.
 *
 * A native link confirms by counting, so a packet that an acknowledgement takes out of its list must leave no gap: each
 * packet bears its number among those posted on the link (turn), and the link how many of them are confirmed (passed).
 */
#include "libmrmpi/conn/reliable/loss.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 16
#define SLOTS_MOST  (1u << 30) /* half of the numbers and more stay unused, so that distances are unambiguous */
#define WORD_BITS   64

/* ---- life -------------------------------------------------------------------------------------------------------- */

void mr_window_init(struct mr_window *w, unsigned limit)
{
    *w = (struct mr_window){0};
    mr_window_set_limit(w, limit);
    mr_rtt_init(&w->rtt, MR_WINDOW_TIMEOUT_MIN_NS, MR_WINDOW_TIMEOUT_MAX_NS);
}

struct mr_kept *mr_window_free(struct mr_window *w)
{
    struct mr_kept *given = NULL, **end = &given;

    for (uint32_t seq = w->base; seq != w->next; seq++) {
        struct mr_kept *k = w->slot[seq & w->mask];

        if (!k)
            continue;
        *end = k;
        end = &k->next;
    }
    *end = NULL;
    free(w->slot);
    free(w->link);
    mr_window_init(w, w->limit);
    return given;
}

void mr_window_start(struct mr_window *w, uint32_t seq)
{
    w->base = w->fresh = w->next = seq;
}

int mr_window_reserve(struct mr_window *w, unsigned links)
{
    struct mr_window_link *more;

    if (links <= w->num_links)
        return 0;
    more = realloc(w->link, links * sizeof *more);
    if (!more)
        return -ENOMEM;
    memset(more + w->num_links, 0, (links - w->num_links) * sizeof *more);
    w->link = more;
    w->num_links = links;
    return 0;
}

static void renew_clear(struct mr_window *w)
{
    w->clear = w->limit < w->mask ? w->limit : w->mask;
}

void mr_window_set_limit(struct mr_window *w, unsigned limit)
{
    w->limit = limit < 1 ? 1 : limit > MR_WINDOW_LIMIT_MAX ? MR_WINDOW_LIMIT_MAX : limit;
    renew_clear(w);
}

/* ---- the ring ---------------------------------------------------------------------------------------------------- */

int mr_window_grow(struct mr_window *w)
{
    uint32_t slots = w->mask ? 2 * (w->mask + 1) : SLOTS_FIRST;
    struct mr_kept **slot;

    if (slots > SLOTS_MOST)
        return -ENOMEM;
    slot = malloc(slots * sizeof(struct mr_kept *));
    if (!slot)
        return -ENOMEM;
    for (uint32_t seq = w->base; seq != w->next; seq++)
        slot[seq & (slots - 1)] = w->slot[seq & w->mask];
    free(w->slot);
    w->slot = slot;
    w->mask = slots - 1;
    renew_clear(w);
    return 0;
}

int mr_window_make_room(struct mr_window *w, unsigned num)
{
    while (w->mask - (w->next - w->base) < num)
        if (mr_window_grow(w))
            return -ENOMEM;
    return 0;
}

/* Past all confirmed packets. The links stay in any case: they count their posts. */
void mr_window_advance(struct mr_window *w)
{
    while (w->base != w->fresh && !w->slot[w->base & w->mask])
        w->base++;
    if (w->base != w->next || w->mask < MR_WINDOW_SLOTS_KEEP)
        return;
    free(w->slot);
    w->slot = NULL;
    w->mask = w->clear = 0;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static void link_remove(struct mr_window *w, struct mr_kept *k)
{
    struct mr_window_link *l = &w->link[k->link];

    if (k->prev)
        k->prev->next = k->next;
    else
        l->head = k->next;
    if (k->next)
        k->next->prev = k->prev;
    else
        l->tail = k->prev;
}

static void again_remove(struct mr_window *w, struct mr_kept *k)
{
    if (k->prev)
        k->prev->next = k->next;
    else
        w->again = k->next;
    if (k->next)
        k->next->prev = k->prev;
    w->num_again--;
}

/* A packet that times out or is overtaken is old and belongs near the front. */
static void again_insert(struct mr_window *w, struct mr_kept *k)
{
    struct mr_kept *after = NULL, *before = w->again;

    while (before && before->seq - w->base < k->seq - w->base) {
        after = before;
        before = before->next;
    }
    k->prev = after;
    k->next = before;
    if (after)
        after->next = k;
    else
        w->again = k;
    if (before)
        before->prev = k;
    w->num_again++;
}

static void wait_again(struct mr_window *w, struct mr_kept *k)
{
    link_remove(w, k);
    k->state = MR_KEPT_WAITING;
    again_insert(w, k);
}

void mr_window_sent_again(struct mr_window *w, struct mr_kept *k)
{
    again_remove(w, k);
    if (k->tries < UINT8_MAX)
        k->tries++;
    k->blind = w->probing;
    w->resent++;
}

/* ---- confirmed --------------------------------------------------------------------------------------------------- */

struct given {
    struct mr_kept *first, **end;
};

static void give_confirmed(struct mr_window *w, struct mr_kept *k, struct given *given)
{
    w->slot[k->seq & w->mask] = NULL;
    k->state = MR_KEPT_DONE;
    w->bytes -= k->len;
    w->num--;
    k->next = NULL;
    *given->end = k;
    given->end = &k->next;
}

/* Several, or not the oldest in the window, or some that have gone. */
struct mr_kept *mr_window_confirmed_more(struct mr_window *w, unsigned link, unsigned n)
{
    struct mr_window_link *l = &w->link[link];
    struct given given = {.end = &given.first};
    struct mr_kept *k;

    if (w->lossy & 1ull << link)
        return NULL;
    if (n > l->posted - l->passed)
        n = l->posted - l->passed;
    l->passed += n;
    while ((k = l->head) && (int32_t)(k->turn - l->passed) < 0) {
        link_remove(w, k);
        give_confirmed(w, k, &given);
    }
    mr_window_advance(w);
    return given.first;
}

/* ---- the peer's ACK --------------------------------------------------------------------------------------------- */

struct news {
    struct given given;
    uint64_t once_ns;  /* sending of the newest packet that was sent once */
    uint64_t again_ns; /* sending of the newest that was sent more than once */
    uint32_t links;    /* lossy links with an acknowledged packet */
};

/*
 * True if the last of its posts has brought the packet. Certain if there was only one; probable if that is so long ago
 * that its acknowledgement should be here. Then earlier posts on that link should be here, too (RFC 8985, section 6.2,
 * step 2). It gives no sample of the round-trip time (Karn's rule). A peer that was away acknowledges the first post
 * when it is back, however long ago the others are: blind repetitions prove nothing about other packets. A packet
 * without a time was sent just now.
 */
static bool is_last_posting(const struct mr_window *w, const struct mr_kept *k, uint64_t now_ns)
{
    return k->tries == 1 ||
           (!k->blind && k->sent_ns && w->rtt.srtt_ns && now_ns >= k->sent_ns + w->rtt.srtt_ns + 2 * w->rtt.var_ns);
}

static void take_acked(struct mr_window *w, uint32_t seq, uint64_t now_ns, struct news *news)
{
    struct mr_kept *k = w->slot[seq & w->mask];

    if (!k)
        return;
    if (k->tries == 1 && k->sent_ns > news->once_ns)
        news->once_ns = k->sent_ns;
    if (k->tries > 1 && k->sent_ns > news->again_ns)
        news->again_ns = k->sent_ns;
    if (k->state == MR_KEPT_WAITING) {
        again_remove(w, k);
    } else {
        struct mr_window_link *l = &w->link[k->link];

        if (w->lossy & 1ull << k->link && is_last_posting(w, k, now_ns)) {
            if ((int32_t)(k->turn + 1 - l->passed) > 0)
                l->passed = k->turn + 1;
            l->overdue = l->answered = 0;
            if (k->sent_ns > l->proved_ns)
                l->proved_ns = k->sent_ns;
            news->links |= 1ull << k->link;
        }
        if (k->blind)
            l->overdue = l->answered = 0; /* for all that is known */
        link_remove(w, k);
    }
    give_confirmed(w, k, &news->given);
}

/*
 * A link brings its packets in order or nearly so; a packet that others have overtaken is lost. RFC 5681, section 3.2,
 * and RFC 9002, section 6.1.1, allow for three. Packets of other links tell nothing: they may be faster.
 */
static void find_gaps(struct mr_window *w, uint64_t links)
{
    for (; links; links &= links - 1) {
        struct mr_window_link *l = &w->link[__builtin_ctzll(links)];

        while (l->head && (int32_t)(l->passed - 1 - l->head->turn) >= MR_WINDOW_REORDER) {
            wait_again(w, l->head);
            w->gaps++;
        }
    }
}

/*
 * A packet sent before another was sent again may have come long ago, and its acknowledgement have waited for the other
 * one, which filled a gap. The sample would be the duration of the gap.
 */
static void take_sample(struct mr_window *w, const struct news *news, uint64_t now_ns, bool sample)
{
    if (sample && news->once_ns && news->once_ns >= news->again_ns)
        mr_rtt_sample(&w->rtt, now_ns > news->once_ns ? now_ns - news->once_ns : 0);
    else
        mr_rtt_heard(&w->rtt);
}

struct mr_kept *mr_window_acked(struct mr_window *w, uint32_t cum, uint64_t sack, uint64_t now_ns, bool sample)
{
    uint32_t flight = w->fresh - w->base, first = cum + 1;
    struct news news = {.given.end = &news.given.first};

    if (cum - w->base > flight) { /* before the window, or after it */
        uint32_t behind = w->base - cum;

        if (behind > WORD_BITS)
            return NULL;
        sack >>= behind - 1;
        cum = first = w->base;
    }
    if (sack && first - w->base + (WORD_BITS - 1 - (uint32_t)__builtin_clzll(sack)) >= flight)
        return NULL;
    w->probing = false;
    for (uint32_t seq = w->base; seq != cum; seq++)
        take_acked(w, seq, now_ns, &news);
    for (; sack; sack &= sack - 1)
        take_acked(w, first + (uint32_t)__builtin_ctzll(sack), now_ns, &news);
    if (!news.given.first)
        return NULL;
    w->rest_ns = 0;
    take_sample(w, &news, now_ns, sample);
    find_gaps(w, news.links);
    mr_window_advance(w);
    return news.given.first;
}

/* ---- lost links -------------------------------------------------------------------------------------------------- */

/* One pass over the ring, since a link may hold many packets in any order. */
static void again_rebuild(struct mr_window *w)
{
    struct mr_kept *last = NULL;

    w->again = NULL;
    w->num_again = 0;
    for (uint32_t seq = w->base; seq != w->fresh; seq++) {
        struct mr_kept *k = w->slot[seq & w->mask];

        if (!k || k->state != MR_KEPT_WAITING)
            continue;
        k->prev = last;
        k->next = NULL;
        if (last)
            last->next = k;
        else
            w->again = k;
        last = k;
        w->num_again++;
    }
}

unsigned mr_window_link_lost(struct mr_window *w, unsigned link)
{
    struct mr_window_link *l;
    unsigned n = 0;

    if (link >= w->num_links)
        return 0;
    l = &w->link[link];
    for (struct mr_kept *k = l->head; k; k = k->next) {
        k->state = MR_KEPT_WAITING;
        n++;
    }
    mr_rtt_forgive(&w->rtt, l->overdue);
    *l = (struct mr_window_link){0};
    w->lossy &= ~(1ull << link);
    if (n)
        again_rebuild(w);
    return n;
}

/* ---- time-outs --------------------------------------------------------------------------------------------------- */

/* Those without a time are the last ones on their links. */
void mr_window_check(struct mr_window *w, uint64_t now_ns)
{
    for (uint64_t set = w->lossy; set; set &= set - 1)
        for (struct mr_kept *k = w->link[__builtin_ctzll(set)].tail; k && !k->sent_ns; k = k->prev)
            k->sent_ns = now_ns;
}

/*
 * Only packets that an ACK can name can be overdue: those within WORD_BITS of base. The peer may have the others and
 * cannot report them before the gap is closed. The links' lists give the earliest next time-out in a few steps; if none
 * of the packets concerned can be overdue, there is a rest.
 */
static uint64_t earliest_sent(const struct mr_window *w)
{
    uint64_t earliest = UINT64_MAX;

    for (uint64_t set = w->lossy; set; set &= set - 1) {
        const struct mr_kept *k = w->link[__builtin_ctzll(set)].head;

        if (k && k->sent_ns < earliest)
            earliest = k->sent_ns;
    }
    return earliest;
}

uint64_t mr_window_deadline(const struct mr_window *w)
{
    uint64_t from = earliest_sent(w), deadline;

    if (from == UINT64_MAX)
        return from;
    if (w->probing && w->expired_ns > from)
        from = w->expired_ns;
    deadline = from + mr_rtt_timeout(&w->rtt);
    return deadline > w->rest_ns ? deadline : w->rest_ns;
}

/* Several at the same time count once. Losses before the link brought another packet prove nothing about it now. */
static void note_overdue(struct mr_window *w, const struct mr_kept *k, uint64_t now_ns)
{
    struct mr_window_link *l = &w->link[k->link];
    bool later = false;

    if (k->sent_ns <= l->proved_ns)
        return;
    if (!l->overdue) {
        l->overdue_ns = k->sent_ns;
        l->answers = l->answered = l->contradicted = 0;
    }
    for (unsigned i = 0; i < w->num_links; i++)
        later |= i != k->link && w->link[i].proved_ns >= k->sent_ns;
    if (l->counted_ns != now_ns) {
        l->overdue++;
        l->contradicted += later;
    }
    l->counted_ns = now_ns;
}

bool mr_window_link_silent(const struct mr_window *w, unsigned link)
{
    if (link >= w->num_links || w->link[link].overdue < MR_WINDOW_SILENT)
        return false;
    return w->link[link].answers >= MR_WINDOW_ANSWERS || w->link[link].contradicted >= MR_WINDOW_ANSWERS;
}

bool mr_window_link_doubtful(const struct mr_window *w, unsigned link)
{
    return link < w->num_links && w->link[link].overdue >= MR_WINDOW_DOUBTFUL;
}

void mr_window_answered(struct mr_window *w, unsigned link, uint64_t asked_ns)
{
    struct mr_window_link *l = link < w->num_links ? &w->link[link] : NULL;

    if (!l || l->overdue == l->answered || asked_ns <= l->overdue_ns)
        return;
    l->answers++;
    l->answered = l->overdue;
}

unsigned mr_window_expired(struct mr_window *w, uint64_t now_ns)
{
    unsigned n = 0, most = w->probing ? 1 : MR_WINDOW_BURST;
    uint64_t timeout = mr_rtt_timeout(&w->rtt), next_ns = now_ns + timeout;

    if (now_ns < mr_window_deadline(w))
        return 0;
    for (uint32_t seq = w->base; seq != w->fresh && seq - w->base <= WORD_BITS && n < most; seq++) {
        struct mr_kept *k = w->slot[seq & w->mask];

        if (!k || k->state != MR_KEPT_SENT || !(w->lossy & 1ull << k->link))
            continue;
        if (k->sent_ns + timeout <= now_ns) {
            note_overdue(w, k, now_ns);
            wait_again(w, k);
            n++;
        } else if (k->sent_ns + timeout < next_ns) {
            next_ns = k->sent_ns + timeout;
        }
    }
    if (!n) {
        w->rest_ns = next_ns;
        return 0;
    }
    w->probing = true;
    w->expired_ns = now_ns;
    w->timeouts++;
    mr_rtt_expired(&w->rtt);
    return n;
}
