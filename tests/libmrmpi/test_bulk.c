/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages over links that the test makes up: what the weights of subchannels learn from, with a clock of the
 * test's own. A stripe that is longer than the port's longest message is posted in parts, and those that find no room
 * come later: its time counts from the first of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/bulk/zcopy.h"
#include "libmrmpi/peer/peer.h"
#include "libmrmpi/view/view.h"
#include "libmrmpi/memory/odp.h"
#include "libmrmpi/verbs/post.h"
#include "libmrmpi/verbs/verbs.h"
#include "tests/check.h"

enum { SUBS = 2, PART = 64 << 10, LEN = 1 << 20 };

struct mr_peers mr_peers;

uint32_t mr_spread_narrow(const struct mr_peer *p, enum mr_policy_class c, uint32_t set)
{
    return set;
}

static void set_policies(void)
{
    char what[MR_POLICY_TEXT];

    for (unsigned c = 0; c < MR_POLICY_CLASSES; c++)
        ck_assert(mr_policy_parse(mr_policy_standard(c), c, &mr_peers.policy[c], what, sizeof what));
}
struct mr_verbs mr_verbs;

static uint64_t now_ns;
static unsigned room[SUBS];   /* parts that a link still takes */
static unsigned posted[SUBS]; /* parts */
static uint64_t longest;      /* of them */
static unsigned medium_room, medium_posted;
static struct mr_tx *last[SUBS];
static int sent;

/* ---- what the room calls ---- */

uint64_t mr_clock_ns(void)
{
    return now_ns;
}

void mr_tx_done(struct mr_tx *tx, const struct mr_wc *wc)
{
}

uint32_t mr_memory_lkey(const struct mr_memory *m, const struct mr_rail *rail)
{
    return 1;
}

uint32_t mr_memory_rkey(const struct mr_memory *m, const struct mr_rail *rail)
{
    return 1;
}

static void put_sent(void *cookie, int error)
{
    ck_assert_int_eq(error, 0);
    sent++;
}

static void read_done(void *cookie, int error)
{
    ck_assert_int_eq(error, 0);
    sent++;
}

static void put_landed(int world_rank, uint64_t rreq, int error)
{
    ck_abort();
}

struct mr_channel_up mr_channel_up = {.put_sent = put_sent, .read_done = read_done, .put_landed = put_landed};

void mr_view_weights(struct mr_peer *p)
{
}

void mr_view_record_part(const struct mr_sub *sub, const struct mr_view_part *part)
{
    ck_abort(); /* nothing is recorded */
}

void mr_view_record_moved(const struct mr_sub *sub, uint64_t len, bool read)
{
    ck_abort();
}

void mr_peer_backlog(struct mr_peer *p)
{
}

void mr_peer_lost(struct mr_peer *p, int error)
{
    ck_abort();
}

int32_t mr_sub_tag(const struct mr_sub *sub, uint8_t generation)
{
    ck_abort();
}

struct mr_sub *mr_sub_tagged(struct mr_peer *p, uint32_t tag)
{
    ck_abort();
}

void mr_sub_break(struct mr_sub *sub)
{
    ck_abort();
}

static bool on_demand, cannot_pin;

static int add(void *addr, size_t len, enum mr_access access, struct mr_memory *out)
{
    return cannot_pin ? -ENOMEM : 0;
}

static void take_away(struct mr_memory *m)
{
}

static int take_part(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx)
{
    unsigned i = (unsigned)((struct mr_sub *)l->owner - mr_peers.peer[1]->sub);

    if (l != &mr_peers.peer[1]->sub[i].link[0]) {
        if (!medium_room)
            return -EAGAIN;
        medium_room--;
        medium_posted++;
        return 0;
    }
    if (!room[i])
        return -EAGAIN;
    ck_assert_uint_le(part->len, PART);
    longest = part->len > longest ? part->len : longest;
    room[i]--;
    posted[i]++;
    if (tx)
        last[i] = tx;
    return 0;
}

/* ---- large messages as datagrams: none here ---- */

bool mr_zcopy_can(const struct mr_peer *p, uint64_t len)
{
    ck_abort();
}

int mr_zcopy_open(struct mr_bulk_region *r, struct mr_peer *p, struct mr_remote *out)
{
    ck_abort();
}

void mr_zcopy_close(struct mr_bulk_region *r)
{
    ck_abort();
}

int mr_zcopy_begin(struct mr_put *put)
{
    ck_abort();
}

/* ---- links that lose writes: none here ---- */

int mr_track_open(struct mr_bulk_region *r, uint64_t len, struct mr_remote *out)
{
    ck_abort();
}

void mr_track_close(struct mr_bulk_region *r)
{
    ck_abort();
}

int mr_track_begin(struct mr_put *put)
{
    ck_abort();
}

void mr_track_landed(uint32_t imm)
{
    ck_abort();
}

void mr_budget_need(struct mr_peer *p)
{
    ck_abort();
}

static struct mr_reg everything; /* registered on demand, if there is that */
bool mr_odp_comes_first(void)
{
    return false;
}

struct mr_reg *mr_odp_get(const void *addr, size_t len, enum mr_access access, bool pinning_failed)
{
    return on_demand && pinning_failed == cannot_pin ? &everything : NULL;
}

bool mr_odp_owns(const struct mr_reg *r)
{
    return r == &everything;
}

const char *mr_sub_name(const struct mr_sub *sub, char out[MR_SUB_NAME])
{
    return "test";
}

static const struct mr_link_ops ops = {.write = take_part, .read = take_part};

/* ---- a peer with two rails ---- */

static struct mr_peer *make_peer(void)
{
    static struct mr_address address;
    static const struct mr_regcache_backend backend = {.add = add, .remove = take_away};
    struct mr_bulk_peer *b = calloc(1, sizeof *b);
    struct mr_peer *p = &b->base;

    setenv("MRMPI_STRIPE_MIN", "16K", 1);
    ck_assert_int_eq(mr_config_init(), 0);
    mr_regcache_init(&mr_bulk.regs, &backend, 0, false);
    set_policies();
    mr_peers.peer = calloc(2, sizeof *mr_peers.peer);
    mr_peers.peer[1] = p;
    mr_verbs.num_rails = SUBS;
    p->address = &address;
    p->rank = 1;
    p->up = true;
    p->num_subs = p->num_now = SUBS;
    p->rdma = (1u << SUBS) - 1;
    p->sub = p->now = calloc(SUBS, sizeof *p->sub);
    p->load = calloc(SUBS, sizeof *p->load);
    b->sub = calloc(SUBS, sizeof *b->sub);
    b->stripe_turn.due = calloc(SUBS, sizeof(uint64_t));
    for (unsigned i = 0; i < SUBS; i++) {
        struct mr_sub *s = &p->sub[i];

        mr_verbs.rail[i].max_msg = PART;
        mr_verbs.rail[i].index = i;
        s->peer = p;
        s->rail = &mr_verbs.rail[i];
        s->remote_rail = (uint8_t)i;
        s->state = MR_SUB_OPEN;
        b->sub[i].waiting_end = &b->sub[i].waiting;
        s->num_links = 2;
        s->link = calloc(2, sizeof *s->link);
        s->link[0] =
            (struct mr_link){.ops = &ops, .kind = MR_LINK_RC, .owner = s, .rail = s->rail, .state = MR_LINK_OPEN};
        for (unsigned l = 0; l < MR_LEVELS; l++)
            s->level[l] = &s->link[0];
        p->load[i] = (struct mr_load){.weight = MR_WEIGHT_MAX, .up = true};
    }
    return p;
}

static void put(struct mr_peer *p, void *buf)
{
    const struct mr_remote to = {.addr = 0x1000, .len = LEN, .num_keys = SUBS, .token = 3};

    ck_assert_int_eq(mr_bulk_put(p, buf, LEN, &to, p), 0);
}

static void complete(unsigned i)
{
    const struct mr_wc good = {.status = "success"};

    last[i]->wr.done(&last[i]->wr, &good);
}

/*
 * Both rails carry 512 KiB in 1 ms. The first one's link has room for one part at first, and for the rest when half of
 * that time is over: it would look twice as fast if its clock began then.
 */
START_TEST(time_counts_from_the_first_part)
{
    struct mr_peer *p = make_peer();
    void *buf = malloc(LEN);

    for (int round = 0; round < 8; round++) {
        uint64_t begin = now_ns += 1000000;

        memset(posted, 0, sizeof posted);
        room[0] = 1;
        room[1] = LEN / PART;
        put(p, buf);
        ck_assert_uint_eq(posted[0], 1);
        now_ns = begin + 500000;
        room[0] = LEN / PART;
        ck_assert(!mr_stripes_resume(p));
        ck_assert_uint_eq(posted[0] + posted[1], LEN / PART);
        now_ns = begin + 1000000;
        complete(0);
        complete(1);
        ck_assert_int_eq(sent, round + 1);
        ck_assert_uint_eq(p->load[0].weight, MR_WEIGHT_MAX);
        ck_assert_uint_eq(p->load[1].weight, MR_WEIGHT_MAX);
    }
    free(buf);
}
END_TEST

static void put_bytes(struct mr_peer *p, void *buf, size_t len)
{
    const struct mr_remote to = {.addr = 0x1000, .len = LEN, .num_keys = SUBS, .token = 3};

    ck_assert_int_eq(mr_bulk_put(p, buf, len, &to, p), 0);
}

/* At first, or where it cannot be pinned; it is no business of the cache then. */
START_TEST(memory_may_be_on_demand)
{
    struct mr_peer *p = make_peer();
    void *buf = malloc(LEN);

    for (unsigned i = 0; i < 4; i++) {
        on_demand = i & 1;
        cannot_pin = i & 2;
        room[0] = room[1] = LEN / PART;
        memset(posted, 0, sizeof posted);
        memset(mr_stats, 0, sizeof mr_stats);
        if (cannot_pin && !on_demand) {
            struct mr_remote r = {.len = LEN, .num_keys = SUBS};

            ck_assert_int_eq(mr_bulk_put(p, buf, LEN, &r, NULL), -ENOMEM);
            continue;
        }
        put(p, buf);
        ck_assert_uint_eq(mr_stats[MR_STAT_REG_MISSES], !on_demand || cannot_pin);
        ck_assert_uint_eq(mr_bulk.regs.entries, !on_demand);
        complete(0);
        complete(1);
        ck_assert_uint_eq(mr_bulk.regs.entries, 0);
    }
    on_demand = cannot_pin = false;
    free(buf);
}
END_TEST

/* Medium messages have links of their own, for which those of the large ones that wait are no obstacle. */
START_TEST(medium_messages_pass_large_ones)
{
    struct mr_peer *p = make_peer();
    void *buf = malloc(LEN);

    for (unsigned l = 0; l < MR_LEVELS; l++)
        mr_peers.qos.level[l].max = l ? PART : 8192;
    for (unsigned i = 0; i < SUBS; i++)
        p->sub[i].link[1] = p->sub[i].link[0], p->sub[i].level[1] = &p->sub[i].link[1];
    room[0] = room[1] = medium_room = 0;
    put_bytes(p, buf, LEN); /* one stripe on each subchannel */
    ck_assert_uint_eq(posted[0] + posted[1] + medium_posted, 0);
    medium_room = 1;
    put_bytes(p, buf, PART);
    ck_assert_uint_eq(medium_posted, 1); /* at once */
    put_bytes(p, buf, PART);
    put_bytes(p, buf, PART + 1); /* is large */
    put_bytes(p, buf, PART);
    ck_assert_uint_eq(medium_posted, 1);
    medium_room = 2; /* and when they have waited themselves */
    ck_assert(mr_stripes_resume(p));
    ck_assert_uint_eq(medium_posted, 3);
    ck_assert_uint_eq(posted[0] + posted[1], 0);
    room[0] = room[1] = 100;
    put_bytes(p, buf, PART);
    ck_assert(mr_stripes_resume(p)); /* a medium one that waits holds up no large one, either */
    ck_assert_uint_eq(posted[0] + posted[1], LEN / PART + 2);
    ck_assert_uint_eq(medium_posted, 3);
    put_bytes(p, buf, LEN);
    ck_assert(mr_stripes_resume(p));
    ck_assert_uint_eq(posted[0] + posted[1], 2 * LEN / PART + 2);
    medium_room = 100;
    ck_assert(!mr_stripes_resume(p));
    put_bytes(p, buf, LEN); /* the list is whole */
    ck_assert_uint_eq(posted[0] + posted[1], 3 * LEN / PART + 2);
    room[0] = room[1] = 0;
    put_bytes(p, buf, LEN);
    ck_assert(mr_stripes_resume(p));
    room[0] = room[1] = 100;
    ck_assert(!mr_stripes_resume(p));
    ck_assert_uint_eq(posted[0] + posted[1], 4 * LEN / PART + 2);
    free(buf);
}
END_TEST

/* Of the rail with a rate pieces are read, as its bucket fills; the other one has no limit, and neither have writes. */
START_TEST(reads_are_paced)
{
    struct mr_peer *p = make_peer();
    const struct mr_remote from = {.addr = 0x1000, .len = LEN, .num_keys = SUBS, .token = 3};
    void *buf = malloc(LEN);
    unsigned before;

    room[0] = room[1] = 1000;
    put(p, buf);
    before = posted[0];
    ck_assert_uint_eq(posted[0] + posted[1], LEN / PART);
    memset(posted, 0, sizeof posted);
    mr_pace_set(&mr_peers.pace[0], 1000000000, 0, now_ns);
    mr_peers.paced = true;
    longest = 0;
    ck_assert_int_eq(mr_bulk_read(p, buf, LEN, (struct mr_vc_part){.len = LEN}, &from, p), 0);
    ck_assert_uint_eq(posted[0], 1);
    ck_assert_uint_eq(posted[1], before);
    ck_assert(mr_stripes_resume(p)); /* no time has passed */
    ck_assert_uint_eq(posted[0], 1);
    ck_assert(mr_peers.pace[0].waited);
    longest = 0;
    for (unsigned i = 1; i < LEN / 2 / MR_PACE_PIECE; i++) {
        now_ns += MR_PACE_PIECE; /* a byte takes 1 ns */
        ck_assert_int_eq(mr_stripes_resume(p), i + 1 < LEN / 2 / MR_PACE_PIECE);
        ck_assert_uint_eq(posted[0], i + 1);
    }
    ck_assert_uint_eq(longest, MR_PACE_PIECE);
    ck_assert_uint_eq(mr_peers.paced_parts, LEN / 2 / MR_PACE_PIECE);
    ck_assert_int_eq(sent, 0);
    complete(0);
    complete(1);
    ck_assert_int_eq(sent, 1);
    longest = 0;
    put(p, buf); /* writes wait for nothing */
    ck_assert_uint_eq(longest, PART);
    mr_peers.paced = false;
    free(buf);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");

    tcase_add_test(t, memory_may_be_on_demand);
    tcase_add_test(t, time_counts_from_the_first_part);
    tcase_add_test(t, medium_messages_pass_large_ones);
    tcase_add_test(t, reads_are_paced);
    return check_run(t, NULL);
}
