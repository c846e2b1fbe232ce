/* SPDX-License-Identifier: BSD-3-Clause */
/* Adapter atomics on a peer's memory: the subchannel used, and the report when the subchannel breaks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/net/bulk/internal.h"
#include "tests/check.h"
#include "tests/libmrmpi/fake_bulk.h"

static struct mr_peer *peer;
static struct mr_address *address;
static struct mr_device device[FAKE_SUBS];
static struct mr_remote there;
static uint64_t result[8];
static struct mr_vc_atomic word;
static unsigned ends;
static int end_error;
static bool by_rdma;

bool mr_steer_by_rdma(const struct mr_peer *p, size_t len)
{
    return by_rdma;
}

static void done(struct mr_vc_move *m, int error)
{
    ck_assert_ptr_eq(m, &word.move);
    ends++;
    end_error = error;
}

static void setup(void)
{
    fake_setup(MR_LINK_RC);
    peer = &fake.peer->base;
    there = (struct mr_remote){.addr = 0x1000, .len = 64, .num_keys = FAKE_SUBS, .rkey = {70, 71}};
    word = (struct mr_vc_atomic){.atomic = {.what = MR_ATOMIC_SWAP, .at = 8, .value = 5, .peek = 32, .result = result},
                                 .move.done = done};
    mr_peers.qos.level[MR_LEVEL_SMALL].max = 512;
    ends = 0;
    by_rdma = true;
    address = calloc(1, sizeof(*address) + FAKE_SUBS * sizeof(address->rail[0]));
    ck_assert_ptr_nonnull(address);
    peer->address = address;
    for (unsigned i = 0; i < FAKE_SUBS; i++) {
        device[i].atomics = true;
        peer->sub[i].rail->dev = &device[i];
        address->rail[i].reads = 4;
    }
}

static void teardown(void)
{
    free(address);
}

START_TEST(it_goes_to_the_adapter_that_has_the_key)
{
    for (unsigned only = 0; only < FAKE_SUBS; only++) {
        there.token = 3u & ~(1u << only);
        word.connection = 0;
        ck_assert_int_eq(mr_net_atomic(vc_to(peer), &there, &word), 0);
        ck_assert_uint_eq(fake.post[only].sub, only);
        ck_assert_uint_eq(fake.post[only].rkey, 70 + only);
        ck_assert_uint_eq(fake.post[only].raddr, 0x1000);
        ck_assert_uint_eq(fake.post[only].atomic.value, 5);
        ck_assert_uint_ne(word.connection, 0);
        ck_assert_uint_eq(ends, only);
        fake_complete(only);
        ck_assert_uint_eq(ends, only + 1);
        ck_assert_int_eq(end_error, 0);
    }
    ck_assert_uint_eq(peer->num_large, 0);
}
END_TEST

START_TEST(without_a_way_nothing_is_posted)
{
    const uint8_t kind = peer->sub[0].kind;

    there.token = 2; /* the second rail has no key */
    device[0].atomics = false;
    ck_assert_int_eq(mr_net_atomic(vc_to(peer), &there, &word), -EOPNOTSUPP);
    device[0].atomics = true;
    address->rail[0].reads = 0;
    ck_assert_int_eq(mr_net_atomic(vc_to(peer), &there, &word), -EOPNOTSUPP);
    address->rail[0].reads = 4;
    peer->sub[0].kind = MR_LINK_UC;
    ck_assert_int_eq(mr_net_atomic(vc_to(peer), &there, &word), -EOPNOTSUPP);
    peer->sub[0].kind = kind;
    mr_peers.rules.num = 1;
    by_rdma = false;
    ck_assert_int_eq(mr_net_atomic(vc_to(peer), &there, &word), -EOPNOTSUPP);
    mr_peers.rules.num = 0;
    fake.room[0] = 0;
    ck_assert_int_eq(mr_net_atomic(vc_to(peer), &there, &word), -EAGAIN);
    fake.room[0] = 1;
    fake_break(0);
    ck_assert_int_eq(mr_net_atomic(vc_to(peer), &there, &word), -EOPNOTSUPP);
    ck_assert_uint_eq(fake.num_posts, 0);
    ck_assert_uint_eq(ends, 0);
    ck_assert_uint_eq(peer->num_large, 0);
}
END_TEST

/* Words that have to be in order take the same connection, or none. */
START_TEST(the_way_that_is_wanted)
{
    uint32_t first;

    there.token = 1;
    ck_assert_int_eq(mr_net_atomic(vc_to(peer), &there, &word), 0);
    fake_complete(0);
    first = word.connection;
    there.token = 0; /* any would do */
    ck_assert_int_eq(mr_net_atomic(vc_to(peer), &there, &word), 0);
    ck_assert_uint_eq(word.connection, first);
    ck_assert_uint_eq(fake.post[1].sub, fake.post[0].sub);
    fake_complete(1);
    peer->sub[1].generation++; /* another connection between the same ports */
    ck_assert_int_eq(mr_net_atomic(vc_to(peer), &there, &word), -EOPNOTSUPP);
    peer->sub[1].generation--;
    fake_break(1);
    ck_assert_int_eq(mr_net_atomic(vc_to(peer), &there, &word), -EOPNOTSUPP);
}
END_TEST

static void break_after(void)
{
    fake_break(0);
    mr_stripes_drained(&peer->sub[0]);
    ck_assert_uint_eq(ends, 0);
    ck_assert_uint_eq(fake.peer->num_unconfirmed, 1);
    ck_assert(mr_stripes_confirm(&peer->sub[0])); /* the peer's end is not gone: it may still be changed */
    ck_assert_uint_eq(ends, 0);
    peer->sub[0].peer_from = (uint8_t)(peer->sub[0].generation + 1);
    ck_assert(mr_stripes_confirm(&peer->sub[0]));
    ck_assert_uint_eq(ends, 1);
    ck_assert_int_eq(end_error, -EIO);
    ck_assert_uint_eq(fake.num_posts, 1); /* not again, though another subchannel is open */
    ck_assert_uint_eq(fake.num_controls, 0);
    ck_assert_uint_eq(peer->num_large, 0);
}

START_TEST(it_is_never_done_twice)
{
    ck_assert_int_eq(mr_net_atomic(vc_to(peer), &there, &word), 0);
    break_after();
}
END_TEST

/* The change is with the adapter, the look is not: the same. */
START_TEST(an_error_between_the_two)
{
    fake.list_error = -EIO;
    ck_assert_int_eq(mr_net_atomic(vc_to(peer), &there, &word), 0);
    ck_assert_uint_eq(fake.breaks, 1);
    ck_assert_ptr_eq(fake.broken, &peer->sub[0]);
    break_after();
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("word");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, it_goes_to_the_adapter_that_has_the_key);
    tcase_add_test(c, without_a_way_nothing_is_posted);
    tcase_add_test(c, the_way_that_is_wanted);
    tcase_add_test(c, it_is_never_done_twice);
    tcase_add_test(c, an_error_between_the_two);
    return check_run(c, NULL);
}
