/* SPDX-License-Identifier: BSD-3-Clause */
/* Short writes to a window: collected as lists, posted, and repeated where a subchannel breaks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/net/bulk/internal.h"
#include "tests/check.h"
#include "tests/libmrmpi/fake_bulk.h"

enum { BASE = 0x100000, LEN = 1 << 20 };

static struct mr_net_writer *writer;
static struct mr_peer *peer;
static bool refused;

bool mr_budget_rdma(struct mr_peer *p)
{
    return !refused;
}

static void setup(void)
{
    const struct mr_remote there = {.addr = BASE, .len = LEN, .num_keys = 2, .rkey = {77, 78}};

    fake_setup(MR_LINK_RC);
    refused = false;
    peer = &fake.peer->base;
    for (unsigned i = 0; i < FAKE_SUBS; i++)
        peer->sub[i].link->qp.max_inline = 128;
    mr_peers.qos.level[MR_LEVEL_SMALL].max = 512;
    writer = mr_net_writer_open(vc_to(peer), &there);
    ck_assert_ptr_nonnull(writer);
    ck_assert_uint_eq(writer->most, 128);
}

static void put(uint64_t at, uint64_t value)
{
    if (!mr_net_writer_add(writer, at, &value, sizeof value))
        ck_assert_int_eq(mr_net_writer_begin(writer, at, &value, sizeof value), 0);
}

/* Numbers from this value on, each 16 bytes behind the last, so a list joins nothing. */
static void put_apart(unsigned num, uint64_t value)
{
    for (unsigned i = 0; i < num; i++)
        put(16 * i, value + i);
}

static void is_write(const struct fake_post *p, unsigned i, uint64_t at, uint32_t len, uint64_t first)
{
    uint64_t word;

    ck_assert_uint_lt(i, p->num_writes);
    ck_assert_uint_eq(p->write[i].addr, BASE + at);
    ck_assert_uint_eq(p->write[i].len, len);
    for (uint32_t k = 0; k < len / 8; k++) {
        memcpy(&word, (const char *)p->write[i].data + 8 * k, 8);
        ck_assert_uint_eq(word, first + k);
    }
}

/* The first goes at once. While that is under way the others are collected: until somebody wants them posted. */
START_TEST(what_follows_is_collected)
{
    put(0, 1);
    ck_assert_uint_eq(fake.num_posts, 1);
    is_write(&fake.post[0], 0, 0, 8, 1);
    ck_assert_uint_eq(fake.post[0].rkey, 77 + fake.post[0].sub);
    put(64, 2);
    put(32, 3);
    ck_assert_uint_eq(fake.num_posts, 1);
    ck_assert_uint_eq(fake.backlogs, 1); /* the next poll posts the list */
    ck_assert_uint_eq(writer->open, 2);
    mr_net_writer_post(writer);
    ck_assert_uint_eq(fake.num_posts, 2);
    ck_assert_uint_eq(fake.post[1].num_writes, 2);
    is_write(&fake.post[1], 0, 64, 8, 2);
    is_write(&fake.post[1], 1, 32, 8, 3);
    mr_net_writer_post(writer); /* nothing is collected */
    ck_assert_uint_eq(fake.num_posts, 2);
    fake_complete(0);
    fake_complete(1);
    ck_assert_uint_eq(writer->open, 0);
    put(0, 4);
    ck_assert_uint_eq(fake.num_posts, 3);
    mr_net_writer_close(writer);
    fake_complete(2);
    ck_assert_uint_eq(peer->num_large, 0);
}
END_TEST

START_TEST(a_look_posts_what_is_collected)
{
    put(0, 1);
    put(64, 2);
    mr_writers_post(peer);
    ck_assert_uint_eq(fake.num_posts, 2);
    is_write(&fake.post[1], 0, 64, 8, 2);
    mr_writers_post(peer);
    ck_assert_uint_eq(fake.num_posts, 2);
    put(0, 1);
    ck_assert_uint_eq(fake.num_posts, 2);
    ck_assert_uint_eq(fake.backlogs, 2);
}
END_TEST

START_TEST(a_full_list_is_posted)
{
    put(LEN - 8, 1);
    put_apart(2 * MR_WLIST_WRITES + 1, 100);
    ck_assert_uint_eq(fake.num_posts, 3);
    for (unsigned l = 0; l < 2; l++) {
        ck_assert_uint_eq(fake.post[1 + l].num_writes, MR_WLIST_WRITES);
        for (unsigned i = 0; i < MR_WLIST_WRITES; i++)
            is_write(&fake.post[1 + l], i, 16 * (l * MR_WLIST_WRITES + i), 8, 100 + l * MR_WLIST_WRITES + i);
    }
    ck_assert_uint_eq(writer->open, 4);
}
END_TEST

/* A write that begins at the end of the last is joined, as long as its request has room. */
START_TEST(neighbours_are_one_write)
{
    put(LEN - 8, 1);
    for (unsigned i = 0; i < 20; i++)
        put(8 * i, 10 + i);
    put(8 * 19, 50); /* again, and behind */
    put(8 * 20, 51);
    mr_net_writer_post(writer);
    ck_assert_uint_eq(fake.post[1].num_writes, 3);
    is_write(&fake.post[1], 0, 0, 128, 10);
    is_write(&fake.post[1], 1, 128, 32, 26);
    is_write(&fake.post[1], 2, 8 * 19, 16, 50);
}
END_TEST

/* Neither a posted list nor a list without room is lost with its subchannel; its data is the writer's own. */
START_TEST(a_list_is_written_again_when_both_ends_are_gone)
{
    unsigned from, to;

    put(0, 1);
    from = fake.post[0].sub;
    to = !from;
    fake_break(from);
    mr_stripes_drained(&peer->sub[from]);
    ck_assert_uint_eq(fake.num_posts, 1);
    ck_assert_uint_eq(fake.peer->num_unconfirmed, 1);
    ck_assert(mr_stripes_confirm(&peer->sub[from])); /* the peer's end is not gone */
    ck_assert_uint_eq(fake.num_posts, 1);
    peer->sub[from].peer_from = (uint8_t)(peer->sub[from].generation + 1);
    ck_assert(mr_stripes_confirm(&peer->sub[from]));
    ck_assert_uint_eq(fake.num_controls, 0); /* nobody need be asked: once more is as good as once */
    ck_assert_uint_eq(fake.num_posts, 2);
    ck_assert_uint_eq(fake.post[1].sub, to);
    ck_assert_uint_eq(fake.post[1].rkey, 77 + to);
    is_write(&fake.post[1], 0, 0, 8, 1);
    ck_assert_uint_eq(writer->open, 1);
    fake_complete(1);
    ck_assert_uint_eq(writer->open, 0);
    ck_assert_int_eq(writer->error, 0);
}
END_TEST

/* Unposted parts need no wait. */
START_TEST(a_list_that_waits_goes_elsewhere_at_once)
{
    unsigned from, to;

    put(0, 1);
    fake.room[0] = fake.room[1] = 0;
    put(64, 2);
    mr_net_writer_post(writer);
    ck_assert_uint_eq(fake.num_posts, 1);
    from = (unsigned)(fake.peer->transfers->stripe[0].sub - peer->sub);
    to = !from;
    fake.room[to] = 10;
    fake_break(from);
    mr_stripes_drained(&peer->sub[from]);
    ck_assert_uint_eq(fake.num_posts, 2);
    ck_assert_uint_eq(fake.post[1].sub, to);
    is_write(&fake.post[1], 0, 64, 8, 2);
}
END_TEST

/* As much of a list is posted as there is room for; the rest when that has arrived. */
START_TEST(a_list_in_parts)
{
    put(LEN - 8, 1);
    put_apart(5, 100);
    fake.room[0] = fake.room[1] = 3;
    mr_net_writer_post(writer);
    ck_assert_uint_eq(fake.num_posts, 2);
    ck_assert_uint_eq(fake.post[1].num_writes, 3);
    fake.room[0] = fake.room[1] = 10;
    fake_complete(1);
    ck_assert_uint_eq(fake.num_posts, 3);
    ck_assert_uint_eq(fake.post[2].num_writes, 2);
    is_write(&fake.post[2], 0, 48, 8, 103);
    is_write(&fake.post[2], 1, 64, 8, 104);
    ck_assert_uint_eq(writer->open, 2);
    fake_complete(2);
    ck_assert_uint_eq(writer->open, 1);
}
END_TEST

/* Of the parts that were posted the first has arrived when the subchannel breaks: only the second is repeated. */
START_TEST(a_part_that_has_arrived_is_not_repeated)
{
    unsigned from;

    put(LEN - 8, 1);
    put_apart(5, 100);
    fake.room[0] = fake.room[1] = 3;
    mr_net_writer_post(writer);
    from = fake.post[1].sub;
    fake.room[0] = fake.room[1] = 10;
    fake_complete(1);
    fake_break(from);
    mr_stripes_drained(&peer->sub[from]);
    peer->sub[from].peer_from = (uint8_t)(peer->sub[from].generation + 1);
    mr_stripes_confirm(&peer->sub[from]);
    is_write(&fake.post[fake.num_posts - 1], 0, 48, 8, 103);
    ck_assert_uint_eq(fake.post[fake.num_posts - 1].num_writes, 2);
}
END_TEST

/* The queue pair fails in the middle of a list: requests at the adapter may still be carried out. */
START_TEST(an_error_in_the_middle)
{
    unsigned from, posts;

    put(LEN - 8, 1);
    put_apart(5, 100);
    fake.list_error = -EIO;
    fake.room[0] = fake.room[1] = 2;
    mr_net_writer_post(writer);
    ck_assert_uint_eq(fake.breaks, 1);
    from = (unsigned)(fake.broken - peer->sub);
    posts = fake.num_posts;
    fake.list_error = 0;
    fake.room[0] = fake.room[1] = 10;
    peer->load[from].up = false;
    mr_stripes_drained(&peer->sub[from]);
    for (struct mr_transfer *p = fake.peer->transfers; p; p = p->next)
        if (p->stripe[0].sub == &peer->sub[from])
            ck_assert_int_eq(p->stripe[0].state, MR_STRIPE_UNCONFIRMED);
    ck_assert_uint_eq(fake.num_posts, posts);
    peer->sub[from].peer_from = (uint8_t)(peer->sub[from].generation + 1);
    mr_stripes_confirm(&peer->sub[from]);
    is_write(&fake.post[fake.num_posts - 1], 4, 64, 8, 104);
}
END_TEST

/* A lost peer: collected writes end, and the owner gets the reason. */
START_TEST(a_lost_peer_ends_what_is_collected)
{
    put(0, 1);
    put(64, 2);
    peer->error = -EHOSTUNREACH;
    mr_writers_end(peer);
    ck_assert_uint_eq(writer->open, 1);
    ck_assert_int_eq(writer->error, -EHOSTUNREACH);
    fake.peer->transfers->filter.error = peer->error;
    mr_bulk_finish(fake.peer->transfers);
    ck_assert_uint_eq(writer->open, 0);
    ck_assert_int_eq(mr_net_writer_begin(writer, 0, "12345678", 8), -EHOSTUNREACH);
    ck_assert_uint_eq(fake.num_posts, 1);
    mr_net_writer_close(writer);
}
END_TEST

/* Closed with collected writes: they go, and take the writer with them. */
START_TEST(what_is_collected_at_the_end_goes)
{
    put(0, 1);
    put(64, 2);
    mr_net_writer_close(writer);
    ck_assert_ptr_null(fake.peer->collecting);
    ck_assert_uint_eq(fake.num_posts, 2);
    fake_complete(1);
    fake_complete(0);
    ck_assert_uint_eq(peer->num_large, 0);
    mr_wlists_free();
    ck_assert_ptr_null(mr_bulk.free_lists);
}
END_TEST

/* Lists without other traffic each take the subchannel of the last list. */
START_TEST(one_after_the_other_stays)
{
    unsigned first;

    put(0, 1);
    first = fake.post[0].sub;
    for (unsigned i = 0; i < 5; i++) {
        fake_complete(i);
        put(0, 1);
        ck_assert_uint_eq(fake.post[i + 1].sub, first);
    }
    put(64, 2);
    mr_net_writer_post(writer);
    ck_assert_uint_eq(fake.post[6].sub, !first);
    peer->load[!first].up = false;
    fake_complete(5);
    fake_complete(6);
    put(0, 1);
    ck_assert_uint_eq(fake.post[7].sub, first);
}
END_TEST

/* ---- memory that may be withdrawn -------------------------------------------------------------------------------- */

static struct {
    unsigned calls, num;
    uint32_t serial;
    uint64_t at[MR_WLIST_WRITES], word[MR_WLIST_WRITES];
} given;

static void withdrawn(struct mr_net_writer *w, const struct mr_short_write *write, unsigned num, uint32_t serial)
{
    ck_assert_ptr_eq(w, writer);
    ck_assert_uint_ge(w->open, 1); /* not done yet for its owner */
    given.calls++;
    given.num = num;
    given.serial = serial;
    for (unsigned i = 0; i < num; i++) {
        given.at[i] = write[i].addr - BASE;
        memcpy(&given.word[i], write[i].data, 8);
    }
}

/* The peer's adapter refuses posts over the subchannel. */
static void refuse(unsigned sub)
{
    fake_break(sub);
    peer->sub[sub].refused = true;
    mr_stripes_drained(&peer->sub[sub]);
    peer->sub[sub].peer_from = (uint8_t)(peer->sub[sub].generation + 1);
    mr_stripes_confirm(&peer->sub[sub]);
}

START_TEST(what_is_refused_goes_back_to_the_owner)
{
    memset(&given, 0, sizeof given);
    writer->withdrawn = withdrawn;
    writer->serial = 9;
    put(LEN - 8, 1);
    put_apart(5, 100);
    fake.room[0] = fake.room[1] = 3;
    mr_net_writer_post(writer);
    ck_assert_uint_eq(fake.post[1].num_writes, 3);
    fake.room[0] = fake.room[1] = 10;
    fake_complete(0);
    fake_complete(1); /* the rest is posted */
    refuse(fake.post[2].sub);
    ck_assert_uint_eq(given.calls, 1);
    ck_assert_uint_eq(given.serial, 9);
    ck_assert_uint_eq(given.num, 2);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(given.at[i], 16 * (3 + i));
        ck_assert_uint_eq(given.word[i], 103 + i);
    }
    ck_assert_uint_eq(writer->open, 0);
    ck_assert_int_eq(writer->error, 0);
    ck_assert_uint_eq(fake.lost, 0);
}
END_TEST

/* A list waiting for room behind a refused list is not posted first. */
START_TEST(what_waits_is_not_refused_after_the_next_break)
{
    unsigned from;

    memset(&given, 0, sizeof given);
    writer->withdrawn = withdrawn;
    writer->serial = 9;
    put(0, 1);
    from = fake.post[0].sub;
    peer->load[!from].up = false;
    fake.room[from] = 0;
    put(64, 2);
    mr_net_writer_post(writer);
    fake.room[from] = 10;
    peer->load[!from].up = true;
    refuse(from);
    ck_assert_uint_eq(fake.num_posts, 1);
    ck_assert_uint_eq(given.calls, 2);
    ck_assert_uint_eq(writer->open, 0);
}
END_TEST

START_TEST(what_is_refused_is_a_fault_of_the_peer_else)
{
    put(0, 1);
    refuse(fake.post[0].sub);
    ck_assert_uint_eq(fake.lost, 1);
}
END_TEST

/*
 * A list belongs to memory that may be withdrawn for as long as it lasts; nothing is reported once its writer is
 * closed.
 */
START_TEST(what_is_refused_of_a_closed_writer_ends)
{
    memset(&given, 0, sizeof given);
    writer->withdrawn = withdrawn;
    put(0, 1);
    mr_net_writer_close(writer);
    refuse(fake.post[0].sub);
    ck_assert_uint_eq(given.calls, 0);
    ck_assert_uint_eq(fake.lost, 0);
    ck_assert_uint_eq(peer->num_large, 0);
}
END_TEST

/* Writes collected for the former memory go there. */
START_TEST(a_writer_is_aimed_at_other_memory)
{
    struct mr_remote other = {.addr = 3 * BASE, .len = LEN, .num_keys = 1, .rkey = {87, 88}};

    memset(&given, 0, sizeof given);
    writer->withdrawn = withdrawn;
    put(0, 1);
    put(64, 2);
    ck_assert(!mr_net_writer_aim(writer, &other, 5));
    ck_assert_uint_eq(fake.num_posts, 1);
    other.num_keys = 2;
    ck_assert(mr_net_writer_aim(writer, &other, 5));
    ck_assert_uint_eq(fake.num_posts, 2);
    is_write(&fake.post[1], 0, 64, 8, 2);
    ck_assert_uint_eq(fake.post[1].rkey, 77 + fake.post[1].sub);
    put(72, 3); /* no part of the write before */
    mr_net_writer_post(writer);
    ck_assert_uint_eq(fake.num_posts, 3);
    ck_assert_uint_eq(fake.post[2].rkey, 87 + fake.post[2].sub);
    ck_assert_uint_eq(fake.post[2].write[0].addr, 3 * BASE + 72);
    fake_complete(0);
    fake_complete(1);
    refuse(fake.post[2].sub);
    ck_assert_uint_eq(given.serial, 5);
}
END_TEST

/* Where connections are for some peers only, each list asks whether this is one of them. */
START_TEST(without_a_connection_it_goes_otherwise)
{
    mr_peers.rationed = 1u << MR_LINK_RC;
    refused = true;
    ck_assert_int_eq(mr_net_writer_begin(writer, 0, "12345678", 8), -EOPNOTSUPP);
    ck_assert_uint_eq(writer->open, 0);
    refused = false;
    put(0, 1);
    ck_assert_uint_eq(fake.num_posts, 1);
}
END_TEST

/* A write longer than a request is refused; a window whose keys do not fit the rails has no writer. */
START_TEST(what_is_refused)
{
    static const char much[256];
    struct mr_remote there = {.addr = BASE, .len = LEN, .num_keys = 1};

    ck_assert_int_eq(mr_net_writer_begin(writer, 0, much, 129), -EMSGSIZE);
    ck_assert_ptr_null(mr_net_writer_open(vc_to(peer), &there));
    there.num_keys = MR_RAILS_MAX + 1;
    ck_assert_ptr_null(mr_net_writer_open(vc_to(peer), &there));
    there.num_keys = 2;
    there.serial = 1;
    ck_assert_ptr_null(mr_net_writer_open(vc_to(peer), &there));
    there.serial = 0;
    there.token = 1; /* a rail without a key */
    ck_assert_ptr_null(mr_net_writer_open(vc_to(peer), &there));
    there.token = 0;
    peer->tracked = true;
    ck_assert_ptr_null(mr_net_writer_open(vc_to(peer), &there));
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("writer");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, what_follows_is_collected);
    tcase_add_test(c, a_look_posts_what_is_collected);
    tcase_add_test(c, a_full_list_is_posted);
    tcase_add_test(c, neighbours_are_one_write);
    tcase_add_test(c, a_list_is_written_again_when_both_ends_are_gone);
    tcase_add_test(c, a_list_that_waits_goes_elsewhere_at_once);
    tcase_add_test(c, a_list_in_parts);
    tcase_add_test(c, a_part_that_has_arrived_is_not_repeated);
    tcase_add_test(c, an_error_in_the_middle);
    tcase_add_test(c, a_lost_peer_ends_what_is_collected);
    tcase_add_test(c, what_is_collected_at_the_end_goes);
    tcase_add_test(c, one_after_the_other_stays);
    tcase_add_test(c, what_is_refused_goes_back_to_the_owner);
    tcase_add_test(c, what_waits_is_not_refused_after_the_next_break);
    tcase_add_test(c, what_is_refused_is_a_fault_of_the_peer_else);
    tcase_add_test(c, what_is_refused_of_a_closed_writer_ends);
    tcase_add_test(c, a_writer_is_aimed_at_other_memory);
    tcase_add_test(c, without_a_connection_it_goes_otherwise);
    tcase_add_test(c, what_is_refused);
    return check_run(c, NULL);
}
