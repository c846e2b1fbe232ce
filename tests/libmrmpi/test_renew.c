/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of adapters opened anew. Rank 0 advertises memory to rank 1; this process also hears rank 0's messages as rank
 * 1. A rail is a device of its own.
 */
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/memory/odp.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/net/stripe/renew.h"
#include "tests/check.h"

enum { RAILS = 2 };

struct mr_verbs mr_verbs;
struct mr_peers mr_peers;
struct mr_bulk mr_bulk;
struct mr_regs mr_regs;

static struct mr_bulk_peer there;
static struct mr_address address;
static struct mr_peer *peers[2] = {NULL, &there.base};
static struct mr_launch launch = {.rank = 0, .size = 2};
static struct mr_reg reg[3];
static struct mr_bulk_region region[3];
static struct mr_remote told[3];
static uint32_t key[3][RAILS]; /* of each region; 0: not registered there */
static unsigned next_key, num_messages;
static int no_room;

static unsigned number(const struct mr_memory *m)
{
    return (unsigned)(container_of(m, struct mr_reg, memory) - reg);
}

bool mr_memory_is_on(const struct mr_memory *m, const struct mr_rail *rail)
{
    return key[number(m)][rail->index];
}

uint32_t mr_memory_rkey(const struct mr_memory *m, const struct mr_rail *rail)
{
    return key[number(m)][rail->index];
}

static int registers(const struct mr_memory *m, uint32_t devices)
{
    for (unsigned i = 0; i < RAILS && !no_room; i++)
        if (devices >> i & 1)
            key[number(m)][i] = ++next_key;
    return no_room;
}

int mr_memory_add(void *addr, size_t len, enum mr_access access, uint32_t devices, struct mr_memory *m)
{
    return registers(m, devices);
}

int mr_regs_extend(struct mr_reg *r, struct mr_reg_wish wish)
{
    return registers(&r->memory, wish.devices);
}

void mr_bulk_send_control(struct mr_peer *p, struct mr_hdr *hdr, const void *payload, size_t len)
{
    num_messages++;
    ck_assert(mr_renew_control(p, hdr, payload, len));
}

static void setup(void)
{
    mr_verbs = (struct mr_verbs){.num_devices = RAILS, .num_rails = RAILS};
    memset(&mr_bulk, 0, sizeof mr_bulk);
    memset(&there, 0, sizeof there);
    memset(region, 0, sizeof region);
    memset(told, 0, sizeof told);
    memset(key, 0, sizeof key);
    next_key = num_messages = 0;
    no_room = 0;
    mr_config.log_level = -1;
    mr_config.eager_max = 24; /* two keys in a message */
    mr_peers.launch = &launch;
    mr_peers.peer = peers;
    for (unsigned i = 0; i < RAILS; i++) {
        mr_verbs.device[i].index = i;
        mr_verbs.rail[i] = (struct mr_rail){.index = i, .dev = &mr_verbs.device[i]};
    }
    address.num_rails = RAILS;
    there.base = (struct mr_peer){.rank = 1, .up = true, .address = &address};
}

static void teardown(void)
{
    mr_renew_free(&there.base);
}

/* devices: set of present devices. */
static void advertise(unsigned r, uint32_t devices, bool partial)
{
    region[r].reg = &reg[r];
    region[r].rank = 1;
    registers(&reg[r].memory, devices);
    told[r].lives = mr_verbs.lives;
    memcpy(told[r].rkey, key[r], sizeof key[r]);
    mr_renew_add(&region[r], &told[r], MR_ACCESS_TARGET, partial);
}

/* Keys of before are none any more; the numbers of new ones begin at first. */
static int open_anew(unsigned rail, unsigned first)
{
    unsigned shift = rail * MR_RAIL_LIFE_BITS;

    for (unsigned r = 0; r < 3; r++)
        key[r][rail] = 0;
    mr_verbs.rail[rail].life++;
    mr_verbs.lives = (mr_verbs.lives & ~((MR_RAIL_LIVES - 1) << shift)) | (uint32_t)mr_verbs.rail[rail].life << shift;
    next_key = first - 1;
    there.base.lives = mr_verbs.lives; /* connection messages carry them */
    return mr_renew_device(&mr_verbs.device[rail]);
}

static void knows(unsigned r, unsigned rail)
{
    ck_assert_uint_ne(key[r][rail], 0);
    ck_assert_uint_eq(mr_renewed_key(&there.base, &told[r], rail), key[r][rail]);
}

/* Three regions -> the device comes back -> the peer has the new key of each. */
START_TEST(device_comes_back)
{
    for (unsigned r = 0; r < 3; r++)
        advertise(r, 3, false);
    ck_assert_int_eq(open_anew(1, 100), 0);
    ck_assert_uint_eq(num_messages, 2);
    for (unsigned r = 0; r < 3; r++) {
        knows(r, 0);
        knows(r, 1);
    }
    ck_assert_uint_eq(mr_renew_lacking(&there.base, &told[0]), 0);
}
END_TEST

/* Advertised while the device is away, without a key for its rail -> the device comes back -> the peer has a key. */
START_TEST(advertised_while_it_was_away)
{
    advertise(0, 1, false);
    there.base.up = _i; /* or the packet that tells of the memory waits for the first connection */
    ck_assert_int_eq(open_anew(1, 100), 0);
    knows(0, 0);
    knows(0, 1);
    ck_assert_uint_eq(mr_renew_lacking(&there.base, &told[0]), 0);
    ck_assert(!mr_renew_is_withdrawn(&there.base, &told[0]));
}
END_TEST

/* Memory registered with chosen devices is not registered with others when they come back. */
START_TEST(partial)
{
    advertise(0, 1, true);
    ck_assert_int_eq(open_anew(1, 100), 0);
    ck_assert_uint_eq(key[0][1], 0);
    ck_assert_uint_eq(mr_renew_lacking(&there.base, &told[0]), 2);
}
END_TEST

/* The device gives the same numbers in each of its lives: keys of one life are not taken for those of another. */
START_TEST(same_numbers_again)
{
    advertise(0, 2, false); /* key 1 in life 0 */
    ck_assert_int_eq(open_anew(1, 2), 0);
    next_key = 0;
    advertise(1, 2, false); /* key 1 in life 1 */
    ck_assert_uint_eq(told[0].rkey[1], told[1].rkey[1]);
    ck_assert_int_eq(open_anew(1, 50), 0);
    knows(0, 1);
    knows(1, 1);
    ck_assert_uint_ne(key[0][1], key[1][1]);
}
END_TEST

/* Withdrawn before the device comes back -> the peer is told no key, and knows why when all are told. */
START_TEST(withdrawn)
{
    advertise(0, 3, false);
    advertise(1, 3, false);
    mr_renew_remove(&region[0]);
    ck_assert(!mr_renew_is_withdrawn(&there.base, &told[0]));
    ck_assert_int_eq(open_anew(1, 100), 0);
    ck_assert(mr_renew_is_withdrawn(&there.base, &told[0]));
    ck_assert(!mr_renew_is_withdrawn(&there.base, &told[1]));
}
END_TEST

/* Memory that cannot be registered: the device is not back, and nothing is told. */
START_TEST(no_memory)
{
    advertise(0, 3, false);
    no_room = -12;
    ck_assert_int_eq(open_anew(1, 100), -12);
    ck_assert_uint_eq(num_messages, 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("renew");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, device_comes_back);
    tcase_add_loop_test(c, advertised_while_it_was_away, 0, 2);
    tcase_add_test(c, partial);
    tcase_add_test(c, same_numbers_again);
    tcase_add_test(c, withdrawn);
    tcase_add_test(c, no_memory);
    return check_run(c, NULL);
}
