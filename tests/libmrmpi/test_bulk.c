/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages over links made by the test: the samples for the weights of subchannels, with a clock of the test. A
 * stripe longer than the port's longest message is posted in parts, and parts without room come later: its time counts
 * from the first part.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/model.h"
#include "libmrmpi/net/bulk/bulk.h"
#include "libmrmpi/net/net.h"
#include "libmrmpi/net/stripe/keys.h"
#include "libmrmpi/net/zcopy/zcopy.h"
#include "libmrmpi/conn/conn.h"
#include "libmrmpi/net/view/view.h"
#include "libmrmpi/verbs/memory/odp.h"
#include "libmrmpi/verbs/memory/watch.h"
#include "libmrmpi/verbs/post.h"
#include "libmrmpi/verbs/verbs.h"
#include "tests/check.h"
#include "libmrmpi/verbs/memory/use.h"
#include "libmrmpi/verbs/memory/memory.h"
#include "tests/stubs/stub.h"

enum { SUBS = 2, PART = 64 << 10, LEN = 1 << 20 };

struct mr_peers mr_peers;

static void set_policies(void)
{
    char what[MR_POLICY_TEXT];

    for (unsigned c = 0; c < MR_POLICY_CLASSES; c++)
        ck_assert(mr_policy_parse(mr_policy_standard(c), c, &mr_peers.policy[c], what, sizeof what));
}
struct mr_verbs mr_verbs;

static unsigned room[SUBS];   /* parts that a link still takes */
static unsigned posted[SUBS]; /* parts */
static uint64_t longest;      /* of them */
static unsigned medium_room, medium_posted;
static struct mr_tx *last[SUBS];
static int sent;

static struct mr_vc *vc_to(struct mr_peer *p)
{
    static struct mr_vc vc;

    vc.data = p;
    return &vc;
}

/* ---- functions called by the folder ---- */

uint32_t mr_memory_rkey(const struct mr_memory *m, const struct mr_rail *rail)
{
    return 1;
}

static void put_sent(void *cookie, int error)
{
    ck_assert_int_eq(error, 0);
    sent++;
}

static int read_error;

static void read_done(void *cookie, int error)
{
    ck_assert_int_eq(error, read_error);
    sent++;
}

static void put_landed(int world_rank, uint64_t rreq, int error)
{
    ck_abort();
}

int mr_vc_send_control(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len)
{
    ck_abort();
}

struct mr_vc_upcalls mr_vc_up = {.put_sent = put_sent, .read_done = read_done, .put_landed = put_landed};

void mr_view_record_part(const struct mr_sub *sub, const struct mr_view_part *part)
{
    ck_abort(); /* nothing is recorded */
}

void mr_view_record_moved(const struct mr_sub *sub, uint64_t len, bool read)
{
    ck_abort();
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

static unsigned added[SUBS]; /* registrations with each device */

static int add(void *addr, size_t len, enum mr_access access, uint32_t devices, struct mr_memory *m)
{
    if (cannot_pin)
        return -ENOMEM;
    for (unsigned i = 0; i < SUBS; i++)
        if (devices >> i & 1) {
            ck_assert_ptr_null(m->mr[i]);
            m->mr[i] = (struct ibv_mr *)m;
            added[i]++;
        }
    return 0;
}

static void take_away(struct mr_memory *m)
{
    memset(m, 0, sizeof *m);
}

int mr_memory_add(void *addr, size_t len, enum mr_access access, uint32_t devices, struct mr_memory *m)
{
    return add(addr, len, access, devices, m);
}

static unsigned alone_ended;

void mr_memory_deregister(struct mr_memory *m)
{
    take_away(m);
    alone_ended++;
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

int mr_zcopy_begin(struct mr_transfer *put)
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

int mr_track_begin(struct mr_transfer *put)
{
    ck_abort();
}

void mr_track_landed(uint32_t imm)
{
    ck_abort();
}

static struct mr_reg everything; /* registered on demand, if supported */
struct mr_reg *mr_odp_get(const void *addr, size_t len, enum mr_access access, bool pinning_failed)
{
    return on_demand && pinning_failed == cannot_pin ? &everything : NULL;
}

bool mr_odp_owns(const struct mr_reg *r)
{
    return r == &everything;
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
    ck_assert_int_eq(mr_model_init(NULL, 0), 0);
    mr_regcache_init(&mr_regs_own.cache, &backend, 0, false);
    memset(added, 0, sizeof added);
    read_error = 0;
    set_policies();
    mr_peers.peer = calloc(2, sizeof *mr_peers.peer);
    mr_peers.peer[1] = p;
    mr_verbs.num_rails = mr_verbs.num_devices = SUBS;
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
        mr_verbs.rail[i].index = mr_verbs.device[i].index = i;
        mr_verbs.rail[i].dev = &mr_verbs.device[i];
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

static int transfer_to(struct mr_peer *p, void *buf, size_t len, const struct mr_remote *remote, bool read)
{
    return mr_net_begin_transfer(
        vc_to(p), &(struct mr_net_transfer){.read = read, .buf = buf, .size = len, .remote = remote, .cookie = p});
}

static void put_bytes(struct mr_peer *p, void *buf, size_t len)
{
    const struct mr_remote to = {.addr = 0x1000, .len = LEN, .num_keys = SUBS, .token = 3};

    ck_assert_int_eq(transfer_to(p, buf, len, &to, false), 0);
}

static void put(struct mr_peer *p, void *buf)
{
    put_bytes(p, buf, LEN);
}

static void complete(unsigned i)
{
    const struct mr_wc good = {.status = "success"};

    last[i]->wr.done(&last[i]->wr, &good);
}

/*
 * Both rails carry 512 KiB in 1 ms. The first rail's link has room for one part at first, and for the rest after half
 * of the time: with its clock started then, the rail would look twice as fast.
 */
START_TEST(time_counts_from_the_first_part)
{
    struct mr_peer *p = make_peer();
    void *buf = malloc(LEN);

    for (int round = 0; round < 8; round++) {
        uint64_t begin = stub_clock_ns += 1000000;

        memset(posted, 0, sizeof posted);
        room[0] = 1;
        room[1] = LEN / PART;
        put(p, buf);
        ck_assert_uint_eq(posted[0], 1);
        stub_clock_ns = begin + 500000;
        room[0] = LEN / PART;
        ck_assert(!mr_stripes_resume(p));
        ck_assert_uint_eq(posted[0] + posted[1], LEN / PART);
        stub_clock_ns = begin + 1000000;
        complete(0);
        complete(1);
        ck_assert_int_eq(sent, round + 1);
        ck_assert_uint_eq(p->load[0].weight, MR_WEIGHT_MAX);
        ck_assert_uint_eq(p->load[1].weight, MR_WEIGHT_MAX);
    }
    free(buf);
}
END_TEST

/* At first, or for memory that cannot be pinned; then the cache does not apply. */
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

            ck_assert_int_eq(transfer_to(p, buf, LEN, &r, false), -ENOMEM);
            continue;
        }
        put(p, buf);
        ck_assert_uint_eq(mr_stats[MR_STAT_REG_MISSES], !on_demand || cannot_pin);
        ck_assert_uint_eq(mr_regs_own.cache.entries, !on_demand);
        complete(0);
        complete(1);
        ck_assert_uint_eq(mr_regs_own.cache.entries, 0);
    }
    on_demand = cannot_pin = false;
    free(buf);
}
END_TEST

/* Medium messages have links of their own, on which waiting large messages are no obstacle. */
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
    medium_room = 2; /* and after waiting themselves */
    ck_assert(mr_stripes_resume(p));
    ck_assert_uint_eq(medium_posted, 3);
    ck_assert_uint_eq(posted[0] + posted[1], 0);
    room[0] = room[1] = 100;
    put_bytes(p, buf, PART);
    ck_assert(mr_stripes_resume(p)); /* nor does a waiting medium message delay a large one */
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
    const struct mr_remote from = {.addr = 0x1000, .len = LEN, .num_keys = SUBS};
    void *buf = malloc(LEN);
    unsigned before;

    room[0] = room[1] = 1000;
    put(p, buf);
    before = posted[0];
    ck_assert_uint_eq(posted[0] + posted[1], LEN / PART);
    memset(posted, 0, sizeof posted);
    mr_pace_set(&mr_peers.pace[0], 1000000000, 0, stub_clock_ns);
    mr_peers.paced = true;
    longest = 0;
    ck_assert_int_eq(transfer_to(p, buf, LEN, &from, true), 0);
    ck_assert_uint_eq(posted[0], 1);
    ck_assert_uint_eq(posted[1], before);
    ck_assert(mr_stripes_resume(p)); /* no time has passed */
    ck_assert_uint_eq(posted[0], 1);
    ck_assert(mr_peers.pace[0].waited);
    longest = 0;
    for (unsigned i = 1; i < LEN / 2 / MR_PACE_PIECE; i++) {
        stub_clock_ns += MR_PACE_PIECE; /* a byte takes 1 ns */
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

/* ---- memory known to some devices only ---- */

/* Rails of these rates in Mb/s; unmapping is tracked, so registrations stay. */
static struct mr_peer *make_fast_peer(uint32_t first, uint32_t second)
{
    struct mr_peer *p = make_peer();

    mr_bulk.few = true;
    mr_bulk.home = SUBS - 1;
    mr_regs_own.cache.keep = true;
    mr_regs_own.cache.max_bytes = SIZE_MAX;
    for (unsigned i = 0; i < SUBS; i++) {
        mr_verbs.rail[i].rate_mbps = i ? second : first;
        ((struct mr_address *)p->address)->rail[i].rate_mbps = i ? second : first;
        room[i] = 1000;
        posted[i] = 0;
    }
    return p;
}

static int read_into(struct mr_peer *p, void *buf, uint32_t without)
{
    const struct mr_remote from = {.addr = 0x1000, .len = LEN, .num_keys = SUBS, .token = without};

    return transfer_to(p, buf, LEN, &from, true);
}

static void expect_added(unsigned first, unsigned second)
{
    ck_assert_uint_eq(added[0], first);
    ck_assert_uint_eq(added[1], second);
}

/* Each new buffer with one device, in turn; with the other as well when used again. */
START_TEST(new_memory_is_known_to_one_device)
{
    struct mr_peer *p = make_fast_peer(200000, 200000);
    char *buf = aligned_alloc(4096, 2 * LEN);

    ck_assert_int_eq(read_into(p, buf, 0), 0);
    expect_added(1, 0);
    ck_assert_uint_eq(posted[0], LEN / PART);
    complete(0);
    ck_assert_int_eq(read_into(p, buf + LEN, 0), 0);
    expect_added(1, 1);
    ck_assert_uint_eq(posted[1], LEN / PART);
    complete(1);
    ck_assert_int_eq(read_into(p, buf, 0), 0);
    expect_added(1, 2);
    ck_assert_uint_eq(posted[0] + posted[1], 3 * LEN / PART);
    ck_assert_uint_eq(posted[0], LEN / PART + LEN / PART / 2);
    complete(0);
    complete(1);
    mr_regcache_clear(&mr_regs_own.cache);
    free(buf);
}
END_TEST

/* A buffer sent again before its last transfer has ended: all devices soon know the buffer. */
START_TEST(memory_that_is_always_in_use)
{
    struct mr_peer *p = make_fast_peer(200000, 200000);
    char *buf = aligned_alloc(4096, LEN);

    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(read_into(p, buf, 0), 0);
        expect_added(1, 0);
        if (i)
            complete(0); /* but one transfer is under way */
    }
    ck_assert_int_eq(read_into(p, buf, 0), 0);
    ck_assert_int_eq(read_into(p, buf, 0), 0);
    expect_added(1, 1);
    ck_assert_uint_gt(posted[1], 0);
}
END_TEST

/* A message is read over rails of these rates: its memory is registered with these devices. */
static void read_over(unsigned rate0, unsigned rate1, unsigned added0, unsigned added1)
{
    struct mr_peer *p = make_fast_peer(rate0, rate1);
    char *buf = aligned_alloc(4096, LEN);

    ck_assert_int_eq(read_into(p, buf, 0), 0);
    expect_added(added0, added1);
    if (added0)
        complete(0);
    if (added1)
        complete(1);
    mr_regcache_clear(&mr_regs_own.cache);
    free(buf);
}

/* A peer with rails slower than a copy needs all rails. */
START_TEST(slow_rails_are_all_needed)
{
    read_over(50000, 50000, 1, 1);
}
END_TEST

START_TEST(of_unequal_rails_the_fast_one_is_enough)
{
    read_over(100000, 200000, 0, 1);
}
END_TEST

/* Memory without the sender's key is not read, now or later: if nothing else is left, this is reported. */
START_TEST(without_a_key_nothing_is_read)
{
    struct mr_peer *p = make_fast_peer(200000, 200000);
    char *buf = aligned_alloc(4096, LEN);

    ck_assert_int_eq(read_into(p, buf, 1), 0);
    expect_added(0, 1);
    ck_assert_uint_eq(posted[0], 0);
    ck_assert_uint_eq(posted[1], LEN / PART);
    ck_assert_int_eq(read_into(p, buf, 3), -ENOKEY);
    p->load[1].up = false; /* its rail breaks */
    p->sub[1].state = MR_SUB_CLOSED;
    mr_stripes_drained(&p->sub[1]);
    ck_assert_ptr_nonnull(mr_bulk_of(p)->transfers);
    read_error = -ENOKEY;
    mr_stripes_resume(p);
    ck_assert_ptr_null(mr_bulk_of(p)->transfers);
    ck_assert_uint_eq(posted[0], 0);
    mr_regcache_clear(&mr_regs_own.cache);
    free(buf);
}
END_TEST

/* Where only we have no key another device is told. */
START_TEST(another_device_takes_over)
{
    struct mr_peer *p = make_fast_peer(200000, 200000);
    char *buf = aligned_alloc(4096, LEN);

    ck_assert_int_eq(read_into(p, buf, 0), 0);
    expect_added(1, 0);
    p->load[0].up = false;
    p->sub[0].state = MR_SUB_CLOSED;
    mr_stripes_drained(&p->sub[0]);
    mr_stripes_resume(p);
    expect_added(1, 1);
    ck_assert_uint_gt(posted[1], 0);
    while (mr_bulk_of(p)->transfers)
        complete(1);
    mr_regcache_clear(&mr_regs_own.cache);
    free(buf);
}
END_TEST

static struct mr_vc_move move;
static unsigned moved;

static void count_moved(struct mr_vc_move *m, int error)
{
    ck_assert_ptr_eq(m, &move);
    ck_assert_int_eq(error, 0);
    moved++;
}

/* Of a window: all rails there have keys; where memory cannot be registered just now it waits, and does not fail. */
START_TEST(a_window_waits_for_a_key)
{
    struct mr_peer *p = make_fast_peer(200000, 200000);
    struct mr_remote window = {.addr = 0x1000, .len = LEN, .num_keys = SUBS, .token = 1};
    char *buf = aligned_alloc(4096, LEN);

    move.done = count_moved;
    moved = 0;
    ck_assert_int_eq(mr_net_move(vc_to(p), buf, LEN, &window, false, &move), -EPROTO);
    window.token = 0;
    ck_assert_int_eq(mr_net_move(vc_to(p), buf, LEN, &window, false, &move), 0);
    expect_added(1, 0);
    p->load[0].up = false;
    p->sub[0].state = MR_SUB_CLOSED;
    mr_stripes_drained(&p->sub[0]);
    cannot_pin = true;
    mr_stripes_resume(p);
    ck_assert_ptr_nonnull(mr_bulk_of(p)->unassigned);
    cannot_pin = false;
    mr_stripes_resume(p);
    expect_added(1, 1);
    while (mr_bulk_of(p)->transfers)
        complete(1);
    ck_assert_uint_eq(moved, 1);
    ck_assert_int_eq(mr_net_move(vc_to(p), buf, LEN, &window, true, &move), 0);
    while (mr_bulk_of(p)->transfers)
        complete(1);
    ck_assert_uint_eq(moved, 2);
    mr_regcache_clear(&mr_regs_own.cache);
    free(buf);
}
END_TEST

/* While no rail is up the transfer waits, and takes the first rails that come up. */
START_TEST(waits_while_none_is_up)
{
    struct mr_peer *p = make_fast_peer(200000, 200000);
    char *buf = aligned_alloc(4096, LEN);

    ck_assert_int_eq(read_into(p, buf, 2), 0);
    expect_added(1, 0);
    p->load[0].up = p->load[1].up = false;
    p->sub[0].state = p->sub[1].state = MR_SUB_CLOSED;
    mr_stripes_drained(&p->sub[0]);
    mr_stripes_resume(p);
    ck_assert_ptr_nonnull(mr_bulk_of(p)->unassigned);
    p->load[0].up = true;
    p->sub[0].state = MR_SUB_OPEN;
    mr_stripes_resume(p);
    ck_assert_ptr_null(mr_bulk_of(p)->unassigned);
    while (mr_bulk_of(p)->transfers)
        complete(0);
    mr_regcache_clear(&mr_regs_own.cache);
    free(buf);
}
END_TEST

/* Borrowed memory goes over a device that knows the memory: any one is enough. */
START_TEST(memory_is_borrowed_from_one)
{
    struct mr_peer *p = make_fast_peer(200000, 200000);
    char *buf = aligned_alloc(4096, LEN);
    const struct mr_memory *m = mr_bulk_borrow(p, buf, LEN), *again = mr_bulk_borrow(p, buf, LEN / 2);

    ck_assert_ptr_eq(m, again);
    expect_added(1, 0);
    ck_assert(mr_memory_is_on(m, &mr_verbs.rail[0]) && !mr_memory_is_on(m, &mr_verbs.rail[1]));
    mr_bulk_give_back(m);
    mr_bulk_give_back(again);
    mr_regcache_clear(&mr_regs_own.cache);
    free(buf);
}
END_TEST

/* Attached memory has registrations of its own, also beside one of the cache, which end at the withdrawal. */
START_TEST(attached_memory)
{
    struct mr_peer *p = make_fast_peer(200000, 200000);
    struct mr_region *window, *attached;
    struct mr_remote remote;
    char *buf = aligned_alloc(4096, LEN);

    ck_assert_int_eq(mr_bulk_advertise(p, buf, LEN, MR_VC_WINDOW, &window, &remote), 0);
    expect_added(1, 1);
    mr_bulk_withdraw(window);
    ck_assert_uint_eq(alone_ended, 0);
    ck_assert_int_eq(mr_bulk_advertise(p, buf + 10, LEN - 20, MR_VC_ATTACHED, &attached, &remote), 0);
    expect_added(2, 2);
    ck_assert_uint_eq(remote.addr, (uintptr_t)buf + 10);
    ck_assert_uint_eq(remote.len, LEN - 20);
    ck_assert_uint_eq(remote.num_keys, SUBS);
    ck_assert_uint_eq(remote.token, 0);
    ck_assert_uint_eq(mr_regs_own.num_alone, 1);
    mr_bulk_withdraw(attached);
    ck_assert_uint_eq(alone_ended, 1);
    ck_assert_uint_eq(mr_regs_own.num_alone, 0);
    mr_regcache_limit_entries(&mr_regs_own.cache, 0); /* no more of them than of the cache's */
    ck_assert_int_eq(mr_bulk_advertise(p, buf, LEN, MR_VC_ATTACHED, &attached, &remote), -ENOMEM);
    mr_regcache_clear(&mr_regs_own.cache);
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
    tcase_add_test(t, new_memory_is_known_to_one_device);
    tcase_add_test(t, memory_that_is_always_in_use);
    tcase_add_test(t, slow_rails_are_all_needed);
    tcase_add_test(t, of_unequal_rails_the_fast_one_is_enough);
    tcase_add_test(t, without_a_key_nothing_is_read);
    tcase_add_test(t, another_device_takes_over);
    tcase_add_test(t, a_window_waits_for_a_key);
    tcase_add_test(t, waits_while_none_is_up);
    tcase_add_test(t, memory_is_borrowed_from_one);
    tcase_add_test(t, attached_memory);
    return check_run(t, NULL);
}
