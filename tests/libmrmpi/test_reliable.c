/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends of a virtual channel (window, acknowledgements, reorder queue) joined by links that lose, repeat, delay and
 * reorder packets, die and are replaced. In any case, each packet is delivered once and in order, memory is bounded,
 * and nothing is kept at the end. Time is simulated; a case repeats exactly from its seed. On failure the case and the
 * seed are printed; RELIABLE_SEED runs each case with this seed only.
 *
 * The second part gives the window arbitrary acknowledgements and checks all of its state after each step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/channel/reorder.h"
#include "libmrmpi/conn/reliable/ack.h"
#include "libmrmpi/conn/reliable/loss.h"
#include "tests/check.h"

#define US          1000ull
#define MS          1000000ull
#define TIMEOUT_MIN (1 * MS)
#define TIMEOUT_MAX (20 * MS)
#define MAX_LINKS   6
#define PATIENCE    (60000 * MS) /* without any delivery: a deadlock */
#define ROOM        512          /* packets of a native link in flight */
#define KEEP        3            /* windows kept by the sender: one in flight, the rest waiting */
#define HOLD_FACTOR 4
#define SEEDS       2

static uint64_t rng;
static const char *case_name;
static uint64_t case_seed;

#define REQUIRE(cond)                                                                                                  \
    do {                                                                                                               \
        if (!(cond))                                                                                                   \
            ck_abort_msg("%s, seed %llu, line %d: %s", case_name, (unsigned long long)case_seed, __LINE__, #cond);     \
    } while (0)

static uint64_t any(void) /* xorshift64*, S. Vigna */
{
    rng ^= rng >> 12;
    rng ^= rng << 25;
    rng ^= rng >> 27;
    return rng * 0x2545f4914f6cdd1dull;
}

static uint64_t below(uint64_t n)
{
    return (any() >> 11) % n;
}

static bool happens(double p)
{
    return (double)(any() >> 11) < p * 0x1p53;
}

/* ---- the case ---------------------------------------------------------------------------------------------------- */

struct scene {
    const char *name;
    unsigned packets[2]; /* sent by each end */
    unsigned limit;
    unsigned links;
    double native;   /* part of the links */
    double loss;     /* of lossy links, and so on */
    double twice;    /* packet comes twice */
    double reorder;  /* packet is late, and others of its link overtake it */
    double deaths;   /* per poll */
    double absences; /* per poll: the end does not look at the network for up to 30 ms */
    double overflow; /* of a lossy link's packets that come while the receiver was away: no buffer left */
    uint32_t first;  /* sequence number */
    bool no_resend;  /* nothing may be sent twice */
};

struct flying {
    uint64_t at;
    uint32_t seq;
    uint8_t link;
    bool native, numbered, lost, long_form;
    uint8_t word_len; /* 0: no word */
    unsigned char word[MR_ACK_WIRE_MAX];
    uint64_t id;
};

struct packet {
    struct mr_kept kept; /* first */
    uint64_t id;
};

/* Times of a native link's confirmations, for the packets posted there. */
struct confirms {
    uint64_t at[ROOM];
    unsigned head, num;
};

struct end {
    struct mr_window window;
    struct mr_ack ack;
    struct mr_reorder in;
    uint64_t pushed, delivered, duplicates, absences, words, given;
    unsigned held_most;
    uint64_t next_poll;
    bool away; /* does not look at the network for a while */
    struct confirms confirms[MAX_LINKS];
    bool waits;             /* looks again when something comes */
    bool usable[MAX_LINKS]; /* as this end believes */
    struct flying *heap;    /* to this end, by time */
    unsigned flying, room;
};

static struct link {
    bool up, native;
    uint64_t delay, last_at[2]; /* the latest arrival at an end: links are in order */
    uint64_t told_at[2];        /* time at which the end learns of the link's death; UINT64_MAX: known */
    uint64_t back_at;
} links[MAX_LINKS];

static const struct scene *scene;
static struct end end[2];
static uint64_t now, last_delivery;

/* ---- packets in flight ------------------------------------------------------------------------------------------- */

static void fly(struct end *to, const struct flying *f)
{
    unsigned i = to->flying++;

    if (to->flying > to->room) {
        to->room = to->room ? 2 * to->room : 1024;
        to->heap = realloc(to->heap, to->room * sizeof *to->heap);
        REQUIRE(to->heap != NULL);
    }
    for (; i && to->heap[(i - 1) / 2].at > f->at; i = (i - 1) / 2)
        to->heap[i] = to->heap[(i - 1) / 2];
    to->heap[i] = *f;
    if (to->waits && f->at < to->next_poll)
        to->next_poll = f->at;
}

static struct flying land(struct end *e)
{
    struct flying top = e->heap[0], last = e->heap[--e->flying];
    unsigned i = 0, child;

    while ((child = 2 * i + 1) < e->flying) {
        if (child + 1 < e->flying && e->heap[child + 1].at < e->heap[child].at)
            child++;
        if (e->heap[child].at >= last.at)
            break;
        e->heap[i] = e->heap[child];
        i = child;
    }
    e->heap[i] = last;
    return top;
}

/* Bytes go on a link from end e. */
static void transmit(int e, unsigned link, struct flying *f)
{
    struct link *l = &links[link];
    struct end *from = &end[e], *to = &end[!e];

    f->link = (uint8_t)link;
    f->native = l->native;
    f->lost = !l->up;
    f->at = now + l->delay + below(l->delay / 2 + 1);
    if (f->at <= l->last_at[!e])
        f->at = l->last_at[!e] + 1;
    if (!l->native && happens(scene->reorder))
        f->at += below(20 * l->delay);
    else
        l->last_at[!e] = f->at;
    if (l->native && f->numbered && l->up) {
        struct confirms *c = &from->confirms[link];

        REQUIRE(c->num < ROOM);
        c->at[(c->head + c->num++) % ROOM] = f->at + l->delay;
    }
    if (!l->native && happens(scene->loss))
        f->lost = true;
    if (f->lost)
        return;
    fly(to, f);
    if (!l->native && happens(scene->twice)) {
        f->at += below(10 * l->delay);
        fly(to, f);
    }
}

static void revive(struct link *l)
{
    *l = (struct link){.up = true, .native = happens(scene->native), .delay = 500 + below(5 * US)};
    l->told_at[0] = l->told_at[1] = UINT64_MAX;
    for (int e = 0; e < 2; e++)
        end[e].usable[l - links] = true;
}

/* Packets in flight are lost, and no further confirmations come. */
static void kill_link(unsigned link)
{
    struct link *l = &links[link];

    l->up = false;
    l->back_at = now + below(20 * MS);
    for (int e = 0; e < 2; e++) {
        struct confirms *c = &end[e].confirms[link];

        for (unsigned i = 0; i < end[e].flying; i++)
            if (end[e].heap[i].link == link && end[e].heap[i].at > now)
                end[e].heap[i].lost = true;
        while (c->num && c->at[(c->head + c->num - 1) % ROOM] > now)
            c->num--;
        l->told_at[e] = now + below(2 * MS);
    }
}

/* ---- an end ------------------------------------------------------------------------------------------------------ */

static void give_back(struct end *e, struct mr_kept *k)
{
    while (k) {
        struct mr_kept *next = k->next;

        REQUIRE(k->state == MR_KEPT_DONE);
        e->given++;
        free(k); /* detects a double free, by the allocator or the address sanitizer */
        k = next;
    }
}

static void deliver(struct end *e, uint64_t id)
{
    REQUIRE(id == e->delivered);
    e->delivered++;
    last_delivery = now;
}

static void receive(int i, const struct flying *f)
{
    struct end *e = &end[i];
    struct mr_hdr hdr = {.seq = f->seq};
    struct mr_held *h;

    if (f->word_len) {
        struct mr_ack_msg word;

        REQUIRE(mr_ack_decode(f->word, f->word_len, f->long_form, e->window.base, &word) == f->word_len);
        give_back(e, mr_window_acked(&e->window, word.cum, word.sack, now, !e->away));
        mr_window_set_limit(&e->window, word.flight);
    }
    if (!f->numbered)
        return;
    switch (mr_reorder_classify(&e->in, f->seq)) {
    case MR_ORDER_DUPLICATE:
        e->duplicates++;
        break;
    case MR_ORDER_REFUSED:
        REQUIRE(false);
        break;
    case MR_ORDER_EARLY:
        e->duplicates += mr_reorder_hold(&e->in, &hdr, &f->id, sizeof f->id) == 0;
        break;
    case MR_ORDER_NEXT:
        mr_reorder_advance(&e->in);
        deliver(e, f->id);
        while ((h = mr_reorder_pop(&e->in))) {
            uint64_t id;

            mr_reorder_advance(&e->in);
            memcpy(&id, h->payload, sizeof id);
            deliver(e, id);
            mr_reorder_free(h);
        }
    }
    if (e->in.num_held > e->held_most)
        e->held_most = e->in.num_held;
    mr_ack_arrived(&e->ack, f->seq, e->in.expected, !f->native, below(2) ? 0 : now);
}

static void look_at_network(int i)
{
    struct end *e = &end[i];

    while (e->flying && e->heap[0].at <= now) {
        struct flying f = land(e);

        if (!f.lost && !(e->away && !f.native && happens(scene->overflow)))
            receive(i, &f);
    }
    for (unsigned l = 0; l < scene->links; l++) {
        struct confirms *c = &e->confirms[l];
        unsigned n = 0;

        while (n < c->num && c->at[(c->head + n) % ROOM] <= now)
            n++;
        if (n && happens(0.8)) { /* completions come for several at a time */
            c->head += n;
            c->num -= n;
            give_back(e, mr_window_confirmed(&e->window, l, n));
        }
        if (now < links[l].told_at[i])
            continue;
        links[l].told_at[i] = UINT64_MAX;
        e->usable[l] = false;
        c->num = 0;
        mr_window_link_lost(&e->window, l);
    }
}

static int choose_link(struct end *e)
{
    unsigned start = (unsigned)below(scene->links);

    for (unsigned n = 0; n < scene->links; n++) {
        unsigned l = (start + n) % scene->links;

        if (e->usable[l] && e->confirms[l].num < ROOM && (links[l].up || links[l].told_at[e - end] != UINT64_MAX))
            return (int)l;
    }
    return -1;
}

static void add_word(struct end *e, struct flying *f)
{
    struct mr_ack_msg word = mr_ack_take(&e->ack, now);

    f->word_len = (uint8_t)mr_ack_encode(&word, f->word);
    f->long_form = f->word_len == MR_ACK_WIRE_MAX;
}

static void post(int i)
{
    struct end *e = &end[i];
    struct mr_kept *k;
    bool late = below(2); /* the clock is read afterwards */
    int link;

    while ((k = mr_window_ready(&e->window)) && (link = choose_link(e)) >= 0) {
        struct flying f = {.seq = k->seq, .numbered = true, .id = ((struct packet *)k)->id};

        if (mr_ack_owed(&e->ack))
            add_word(e, &f);
        transmit(i, (unsigned)link, &f);
        mr_window_sent(&e->window, k, (unsigned)link, links[link].native, late ? 0 : now);
    }
    if (now >= mr_ack_deadline(&e->ack) && (link = choose_link(e)) >= 0) {
        struct flying f = {.numbered = false};

        add_word(e, &f);
        e->words++;
        transmit(i, (unsigned)link, &f);
    }
}

static void make_packets(int i)
{
    struct end *e = &end[i];
    uint64_t most = KEEP * scene->limit;

    for (uint64_t n = below(16); n && e->pushed < scene->packets[i] && e->window.num < most; n--) {
        struct packet *p = malloc(sizeof *p);

        REQUIRE(p != NULL);
        p->id = e->pushed++;
        p->kept.len = sizeof *p;
        REQUIRE(mr_window_push(&e->window, &p->kept) == 0);
        REQUIRE(p->kept.seq == scene->first + (uint32_t)p->id);
    }
    REQUIRE(e->window.num <= most);
    REQUIRE(e->window.bytes == e->window.num * sizeof(struct packet));
    REQUIRE(e->window.num == e->pushed - e->given);
}

static bool idle(const struct end *e)
{
    return (e->pushed == scene->packets[e - end] || e->window.num == KEEP * scene->limit) &&
           !mr_window_ready(&e->window);
}

static void wait_for_something(struct end *e)
{
    uint64_t next = now + MS,
             due[] = {e->flying ? e->heap[0].at : next, mr_window_deadline(&e->window), mr_ack_deadline(&e->ack)};

    for (unsigned k = 0; k < 3; k++)
        next = due[k] < next ? due[k] : next;
    for (unsigned l = 0; l < scene->links; l++)
        if (e->confirms[l].num && e->confirms[l].at[e->confirms[l].head % ROOM] < next)
            next = e->confirms[l].at[e->confirms[l].head % ROOM];
    if (next > e->next_poll)
        e->next_poll = next;
    e->waits = true;
}

static void look_at_clock(struct end *e)
{
    mr_ack_check(&e->ack, now);
    mr_window_check(&e->window, now);
}

static void poll_end(int i)
{
    struct end *e = &end[i];

    look_at_network(i);
    look_at_clock(e);
    mr_window_expired(&e->window, now);
    make_packets(i);
    if (happens(0.01))
        mr_ack_set_flight(&e->ack, e->ack.every, scene->no_resend ? scene->limit : 1 + (unsigned)below(scene->limit),
                          now);
    post(i);
    look_at_clock(e);
    e->next_poll = now + 100 + below(900);
    e->waits = false;
    e->away = happens(scene->absences);
    if (e->away) {
        e->next_poll += below(30 * MS);
        e->absences++;
    } else if (idle(e) && happens(0.9)) {
        wait_for_something(e);
    }
}

static void tend_links(void)
{
    for (unsigned l = 0; l < scene->links; l++) {
        if (links[l].up && happens(scene->deaths))
            kill_link(l);
        if (!links[l].up && now >= links[l].back_at && links[l].told_at[0] == UINT64_MAX &&
            links[l].told_at[1] == UINT64_MAX)
            revive(&links[l]);
    }
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

static bool finished(void)
{
    for (int i = 0; i < 2; i++)
        if (end[i].delivered < scene->packets[!i] || end[i].window.num || end[i].pushed < scene->packets[i])
            return false;
    return true;
}

static void begin(void)
{
    memset(end, 0, sizeof end);
    memset(links, 0, sizeof links);
    now = last_delivery = 1000000;
    for (int i = 0; i < 2; i++) {
        mr_window_init(&end[i].window, scene->limit);
        mr_rtt_init(&end[i].window.rtt, TIMEOUT_MIN, TIMEOUT_MAX);
        mr_window_start(&end[i].window, scene->first);
        REQUIRE(mr_window_reserve(&end[i].window, scene->links) == 0);
        mr_ack_init(&end[i].ack, scene->first, mr_rtt_ack_delay(TIMEOUT_MIN), 32, scene->limit);
        end[i].in.expected = scene->first;
        end[i].next_poll = now + below(1000);
    }
    for (unsigned l = 0; l < scene->links; l++)
        revive(&links[l]);
}

static void check_end(struct end *e)
{
    struct mr_window *w = &e->window;

    REQUIRE(w->base == w->next && w->fresh == w->next && !w->bytes && !w->again && !w->num_again);
    REQUIRE(e->given == e->pushed);
    REQUIRE(!e->in.head && !e->in.num_held);
    REQUIRE(e->held_most < HOLD_FACTOR * scene->limit);
    REQUIRE(w->num_most <= KEEP * scene->limit);
    REQUIRE(mr_window_deadline(w) == UINT64_MAX);
    if (scene->no_resend) {
        REQUIRE(w->resent == 0 && w->timeouts == 0 && w->gaps == 0);
        REQUIRE(e->duplicates == 0);
    }
    REQUIRE(mr_window_free(w) == NULL);
    free(e->heap);
}

static void run(const struct scene *the_scene, uint64_t seed)
{
    scene = the_scene;
    case_name = scene->name;
    case_seed = seed;
    rng = (seed + 1) * 0x9e3779b97f4a7c15ull;
    begin();
    while (!finished()) {
        int i = end[1].next_poll < end[0].next_poll;

        now = end[i].next_poll;
        REQUIRE(now - last_delivery < PATIENCE);
        tend_links();
        poll_end(i);
    }
    if (getenv("RELIABLE_VERBOSE"))
        for (int i = 0; i < 2; i++)
            fprintf(stderr,
                    "%s %llu: end %d sent %llu in %.1f ms, rto %.2f ms, again %llu (%llu time-outs, %llu gaps), %llu "
                    "duplicates "
                    "came, %llu words, %llu absences, %u kept, %u held\n",
                    scene->name, (unsigned long long)seed, i, (unsigned long long)end[i].pushed, (double)now / 1e6,
                    (double)end[i].window.rtt.base_ns / 1e6, (unsigned long long)end[i].window.resent,
                    (unsigned long long)end[i].window.timeouts, (unsigned long long)end[i].window.gaps,
                    (unsigned long long)end[i].duplicates, (unsigned long long)end[i].words,
                    (unsigned long long)end[i].absences, end[i].window.num_most, end[i].held_most);
    check_end(&end[0]);
    check_end(&end[1]);
}

static const struct scene scenes[] = {
    {.name = "no loss, one lossy link", .packets = {300000, 300000}, .limit = 256, .links = 1, .no_resend = true},
    {.name = "no loss, mixed links",
     .packets = {200000, 200000},
     .limit = 256,
     .links = 5,
     .native = 0.5,
     .first = 0u - 1000,
     .no_resend = true},
    {.name = "no loss, one way, wide window",
     .packets = {200000, 0},
     .limit = MR_WINDOW_LIMIT_MAX,
     .links = 4,
     .native = 0.5,
     .no_resend = true},
    {.name = "native links only",
     .packets = {200000, 100000},
     .limit = 128,
     .links = 3,
     .native = 1,
     .no_resend = true},
    {.name = "native links that die",
     .packets = {100000, 100000},
     .limit = 128,
     .links = 3,
     .native = 1,
     .deaths = 0.0005,
     .first = 0u - 50000},
    {.name = "1 % loss", .packets = {200000, 200000}, .limit = 256, .links = 2, .loss = 0.01, .first = 0u - 100},
    {.name = "10 % loss, one way", .packets = {100000, 0}, .limit = 64, .links = 2, .loss = 0.1, .twice = 0.05},
    {.name = "50 % loss",
     .packets = {20000, 20000},
     .limit = 64,
     .links = 3,
     .loss = 0.5,
     .twice = 0.1,
     .reorder = 0.1,
     .first = 0u - 10000},
    {.name = "reordering and duplicates",
     .packets = {100000, 100000},
     .limit = 1024,
     .links = 4,
     .native = 0.3,
     .twice = 0.3,
     .reorder = 0.3},
    {.name = "window of one",
     .packets = {5000, 5000},
     .limit = 1,
     .links = 2,
     .native = 0.5,
     .loss = 0.1,
     .deaths = 0.0005},
    {.name = "everything",
     .packets = {60000, 60000},
     .limit = 300,
     .links = 6,
     .native = 0.4,
     .loss = 0.1,
     .twice = 0.05,
     .reorder = 0.05,
     .deaths = 0.0005,
     .absences = 0.001,
     .overflow = 0.3,
     .first = 0u - 30000},
    {.name = "everything, one way, wide window",
     .packets = {60000, 10},
     .limit = 1000,
     .links = 4,
     .native = 0.3,
     .loss = 0.2,
     .reorder = 0.02,
     .deaths = 0.0002,
     .absences = 0.0005,
     .overflow = 0.5,
     .first = 0u - 20000},
};

START_TEST(once_and_in_order)
{
    const char *seed = getenv("RELIABLE_SEED");

    if (seed)
        run(&scenes[_i], strtoull(seed, NULL, 0));
    else
        for (uint64_t s = 0; s < SEEDS; s++)
            run(&scenes[_i], s);
}
END_TEST

/*
 * A computing peer is probed: the first time-out repeats MR_WINDOW_BURST packets, and five more double it until 30 ms
 * are over. The window is full all the time.
 */
START_TEST(absent_peers_are_not_flooded)
{
    static const struct scene s = {
        .name = "absences", .packets = {200000, 200000}, .limit = 256, .links = 2, .absences = 0.001};
    uint64_t absences;

    run(&s, 1);
    absences = end[0].absences + end[1].absences;
    REQUIRE(absences > 20);
    REQUIRE(end[0].duplicates + end[1].duplicates <= (MR_WINDOW_BURST + 5) * absences);
}
END_TEST

/* ---- arbitrary acknowledgements ---------------------------------------------------------------------------------- */

#define FUZZ_STEPS 300000
#define FUZZ_KEEP  300

static struct mr_window window;
static bool is_kept[FUZZ_KEEP];
static struct packet pool[FUZZ_KEEP]; /* id: its own index */

static void check_given(struct mr_kept *k)
{
    for (; k; k = k->next) {
        struct packet *p = (struct packet *)k;

        REQUIRE(p == &pool[p->id] && is_kept[p->id] && k->state == MR_KEPT_DONE && k->tries > 0);
        is_kept[p->id] = false;
    }
}

static void check_lists(const struct mr_window *w, unsigned in_flight)
{
    const struct mr_kept *prev = NULL;
    unsigned n = 0;

    for (unsigned l = 0; l < w->num_links; l++) {
        prev = NULL;
        for (const struct mr_kept *k = w->link[l].head; k; prev = k, k = k->next) {
            REQUIRE(k->state == MR_KEPT_SENT && k->link == l && k->prev == prev && k->tries > 0);
            REQUIRE(!prev || (int32_t)(k->turn - prev->turn) > 0);
            REQUIRE((int32_t)(w->link[l].posted - k->turn) > 0);
            REQUIRE(w->lossy & 1u << l || (int32_t)(k->turn - w->link[l].passed) >= 0);
            n++;
        }
        REQUIRE(w->link[l].tail == prev);
    }
    REQUIRE(n == in_flight);
    n = 0;
    prev = NULL;
    for (const struct mr_kept *k = w->again; k; prev = k, k = k->next) {
        REQUIRE(k->state == MR_KEPT_WAITING && k->prev == prev && k->tries > 0);
        REQUIRE(k->seq - w->base < w->fresh - w->base);
        REQUIRE(!prev || k->seq - w->base > prev->seq - w->base);
        n++;
    }
    REQUIRE(n == w->num_again);
}

static void check_window(const struct mr_window *w)
{
    unsigned num = 0, in_flight = 0, again = 0, marked = 0;

    REQUIRE(w->fresh - w->base <= w->next - w->base);
    REQUIRE(w->base == w->next || w->next - w->base <= w->mask);
    for (uint32_t seq = w->base; seq != w->next; seq++) {
        const struct mr_kept *k = w->slot[seq & w->mask];

        REQUIRE(k || (seq != w->base && seq - w->base < w->fresh - w->base));
        if (!k)
            continue;
        REQUIRE(k->seq == seq && is_kept[((const struct packet *)k)->id]);
        REQUIRE(seq - w->base < w->fresh - w->base || (k->state == MR_KEPT_WAITING && k->tries == 0));
        num++;
        in_flight += k->state == MR_KEPT_SENT;
        again += k->state == MR_KEPT_WAITING && k->tries > 0;
    }
    for (unsigned i = 0; i < FUZZ_KEEP; i++)
        marked += is_kept[i];
    REQUIRE(num == w->num && num == marked && again == w->num_again && w->bytes == num * sizeof(struct packet));
    check_lists(w, in_flight);
}

static void fuzz_step(struct mr_window *w, const bool *native)
{
    unsigned l = (unsigned)below(4);
    struct mr_kept *k;

    switch (below(8)) {
    case 0:
    case 1:
        for (unsigned i = (unsigned)below(FUZZ_KEEP), n = 0; n < 8; n++, i = (i + 1) % FUZZ_KEEP)
            if (!is_kept[i]) {
                is_kept[i] = true;
                pool[i].kept.len = sizeof pool[i];
                REQUIRE(mr_window_push(w, &pool[i].kept) == 0);
            }
        return;
    case 2:
    case 3:
        for (uint64_t n = below(12); n && (k = mr_window_ready(w)); n--, l = (unsigned)below(4)) {
            REQUIRE(k->seq - w->base < w->limit);
            mr_window_sent(w, k, l, native[l], below(2) ? now : 0);
        }
        return;
    case 4:
        check_given(mr_window_confirmed(w, l, (unsigned)below(5)));
        return;
    case 5:
        if (below(4) == 0) /* anything at all */
            check_given(mr_window_acked(w, (uint32_t)any(), any(), any(), below(2)));
        else if (below(2))
            check_given(mr_window_acked(w, w->base + (uint32_t)below(8) - 4, any() & any() & any(), now, true));
        else /* something sensible */
            check_given(mr_window_acked(w, w->base + (uint32_t)below(3), below(2) ? 0 : 1ull << below(8), now, true));
        return;
    case 6:
        if (below(20) == 0)
            mr_window_link_lost(w, l);
        else if (below(20) == 0)
            mr_window_set_limit(w, (unsigned)below(200));
        return;
    default:
        now += below(2 * MS);
        mr_window_check(w, now);
        REQUIRE(mr_window_expired(w, now) <= MR_WINDOW_BURST);
        REQUIRE(mr_window_deadline(w) > now);
    }
}

START_TEST(any_acks)
{
    const bool native[4] = {_i & 1, true, false, false};

    case_name = "any words";
    case_seed = (uint64_t)_i;
    rng = (case_seed + 1) * 0x9e3779b97f4a7c15ull;
    now = MS;
    mr_window_init(&window, 50);
    mr_window_start(&window, 0u - 5000);
    REQUIRE(mr_window_reserve(&window, 4) == 0);
    for (unsigned i = 0; i < FUZZ_KEEP; i++)
        pool[i].id = i;
    for (unsigned n = 0; n < FUZZ_STEPS; n++) {
        fuzz_step(&window, native);
        if (n % 4 == 0)
            check_window(&window);
    }
    REQUIRE(window.next > 5000 && window.next < 0x80000000u); /* wrapped around */
    for (struct mr_kept *k = mr_window_free(&window); k; k = k->next) {
        REQUIRE(is_kept[((struct packet *)k)->id]);
        is_kept[((struct packet *)k)->id] = false;
    }
    for (unsigned i = 0; i < FUZZ_KEEP; i++)
        REQUIRE(!is_kept[i]);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("reliable");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, once_and_in_order, 0, sizeof scenes / sizeof *scenes);
    tcase_add_test(t, absent_peers_are_not_flooded);
    tcase_add_loop_test(t, any_acks, 0, 4);
    return check_run(t, NULL);
}
