/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agreement while members fail: a network in memory delivers messages, calls, deaths and their news in random order,
 * each way in order. A member may die in the middle of its messages. Whatever happens, all survivors have the same
 * decision, with the values of all of them.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/p2p/fault/era.h"
#include "tests/check.h"

enum { SIZE_MAX_ = 24, QUEUE = 64 };

struct message {
    enum mr_era_kind kind;
    struct mr_era_value *value;
};

static struct {
    int size, at_work, sends_left; /* of the member at work; it dies when it has none left */
    uint64_t seed;
    unsigned sent;
    struct mr_era e[SIZE_MAX_];
    struct message way[SIZE_MAX_][SIZE_MAX_][QUEUE];
    int num[SIZE_MAX_][SIZE_MAX_];
    bool dead[SIZE_MAX_], knows[SIZE_MAX_][SIZE_MAX_], called[SIZE_MAX_], acks[SIZE_MAX_];
    uint32_t flags[SIZE_MAX_];
} net;

static unsigned pick(unsigned below)
{
    net.seed = net.seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(net.seed >> 33) % below;
}

static void take_message(void *arg, int to, enum mr_era_kind kind, const struct mr_era_value *value)
{
    int from = (int)(intptr_t)arg;
    struct message *m;

    ck_assert_int_eq(from, net.at_work);
    net.sent++;
    if (net.dead[from] || net.sends_left == 0) {
        net.dead[from] = true;
        return;
    }
    net.sends_left--;
    ck_assert_int_lt(net.num[from][to], QUEUE);
    m = &net.way[from][to][net.num[from][to]++];
    *m = (struct message){.kind = kind};
    if (value) {
        m->value = malloc(mr_era_bytes(value->num_failed));
        memcpy(m->value, value, mr_era_bytes(value->num_failed));
        ck_assert(mr_era_is_value(m->value, mr_era_bytes(value->num_failed), net.size));
    }
}

static void drop_first(int from, int to)
{
    free(net.way[from][to][0].value);
    memmove(&net.way[from][to][0], &net.way[from][to][1], sizeof(struct message) * (size_t)--net.num[from][to]);
}

static void call(int r)
{
    struct mr_era_value *own = calloc(1, mr_era_bytes((uint32_t)net.size));

    own->flags = net.flags[r];
    own->number = (uint32_t)r;
    for (int d = 0; d < net.size; d++)
        if (net.knows[r][d])
            own->failed[own->num_failed++] = (uint32_t)d * 2 + net.acks[r];
    net.called[r] = true;
    ck_assert(mr_era_call(&net.e[r], own));
    free(own);
}

/* One event of a living member; false: there is none of this kind. */
static bool happen(int r, int other, unsigned what, bool deaths)
{
    net.at_work = r;
    net.sends_left = deaths && !pick(20) ? (int)pick(4) : 1000;
    if (what == 0 && !net.called[r]) {
        call(r);
    } else if (what == 1 && net.dead[other] && !net.knows[r][other]) {
        net.knows[r][other] = true;
        while (net.num[other][r])
            drop_first(other, r);
        ck_assert(mr_era_died(&net.e[r], other));
    } else if (what > 1 && net.num[other][r]) {
        struct message *m = &net.way[other][r][0];

        ck_assert(mr_era_message(&net.e[r], other, m->kind, m->value));
        drop_first(other, r);
    } else {
        return false;
    }
    return true;
}

static bool anything_left(void)
{
    for (int r = 0; r < net.size; r++) {
        if (net.dead[r])
            continue;
        if (!net.called[r])
            return true;
        for (int o = 0; o < net.size; o++)
            if (net.num[o][r] || (net.dead[o] && !net.knows[r][o]))
                return true;
    }
    return false;
}

static void begin_net(int size, unsigned seed)
{
    memset(&net, 0, sizeof(net));
    net.size = size;
    net.seed = seed;
    for (int r = 0; r < size; r++) {
        ck_assert(mr_era_init(&net.e[r], size, r));
        net.e[r].send = take_message;
        net.e[r].arg = (void *)(intptr_t)r;
        net.flags[r] = ~(1u << pick(32));
        net.acks[r] = pick(4) != 0;
    }
}

static void end_net(void)
{
    for (int r = 0; r < net.size; r++) {
        mr_era_free(&net.e[r]);
        for (int o = 0; o < net.size; o++)
            while (net.num[r][o])
                drop_first(r, o);
    }
}

static const struct mr_era_value *check_survivors(void)
{
    const struct mr_era_value *first = NULL;

    for (int r = 0; r < net.size; r++) {
        const struct mr_era_value *v = net.e[r].sum;

        if (net.dead[r])
            continue;
        ck_assert_msg(net.e[r].decided, "size %d: rank %d has no decision", net.size, r);
        ck_assert_uint_eq(v->flags & ~net.flags[r], 0);
        ck_assert_uint_ge(v->number, (uint32_t)r);
        ck_assert(!mr_era_has_failed(v, r));
        if (first)
            ck_assert(v->num_failed == first->num_failed && !memcmp(v, first, mr_era_bytes(v->num_failed)));
        first = v;
    }
    return first;
}

static void run(int size, unsigned seed, unsigned deaths, bool before)
{
    begin_net(size, seed);
    for (unsigned i = 0; before && i < deaths; i++) /* known to all from the beginning */
        net.dead[pick((unsigned)size)] = true;
    for (int r = 0; r < size; r++)
        for (int o = 0; o < size; o++)
            net.knows[r][o] = net.dead[o];
    while (anything_left()) {
        int r = (int)pick((unsigned)size);

        if (net.dead[r])
            continue;
        if (deaths && !before && !pick(20)) {
            net.dead[r] = true;
            deaths--;
            continue;
        }
        happen(r, (int)pick((unsigned)size), pick(6), deaths && !before);
    }
    check_survivors();
    end_net();
}

START_TEST(nobody_fails)
{
    for (int size = 1; size <= SIZE_MAX_; size++) {
        uint32_t all = ~0u;

        begin_net(size, (unsigned)size);
        while (anything_left())
            happen((int)pick((unsigned)size), (int)pick((unsigned)size), pick(6), false);
        for (int r = 0; r < size; r++)
            all &= net.flags[r];
        ck_assert_uint_eq(check_survivors()->flags, all);
        ck_assert_uint_eq(net.e[0].sum->number, (uint32_t)size - 1);
        ck_assert_uint_eq(net.e[0].sum->num_failed, 0);
        ck_assert_uint_eq(net.sent, 2 * ((unsigned)size - 1)); /* up and down the tree */
        end_net();
    }
}
END_TEST

START_TEST(some_failed_before)
{
    for (unsigned seed = 1; seed < 2000; seed++)
        run(2 + (int)(seed % (SIZE_MAX_ - 1)), seed, 1 + seed % 5, true);
}
END_TEST

START_TEST(some_fail_meanwhile)
{
    for (unsigned seed = 1; seed < 8000; seed++)
        run(2 + (int)(seed % (SIZE_MAX_ - 1)), seed, 1 + seed % 11, false);
}
END_TEST

/* Rank 1 and the old root have decided and the root is gone; the new root asks rank 2 first, which has not heard. */
START_TEST(late_member_hears_the_old_decision)
{
    begin_net(3, 1);
    for (int r = 0; r < 3; r++)
        net.flags[r] = r ? 3 : 1;
    for (int r = 2; r >= 0; r--)
        ck_assert(happen(r, r, 0, false));
    ck_assert(happen(0, 1, 2, false) && happen(0, 2, 2, false));
    ck_assert(happen(1, 0, 2, false));
    ck_assert(net.e[0].decided && net.e[1].decided && !net.e[2].decided);
    net.dead[0] = true;
    ck_assert(happen(2, 0, 1, false)); /* sends its value to rank 1 */
    ck_assert(happen(1, 2, 2, false) && happen(2, 1, 2, false));
    ck_assert_uint_eq(check_survivors()->flags, 1);
    ck_assert_uint_eq(net.e[2].sum->num_failed, 0);
    end_net();
}
END_TEST

START_TEST(failures_and_acknowledgements)
{
    for (int acked = 0; acked < 2; acked++) {
        begin_net(4, 1);
        net.dead[2] = true;
        for (int r = 0; r < 4; r++) {
            net.knows[r][2] = true;
            net.acks[r] = r != 3 || acked;
        }
        while (anything_left()) {
            int r = (int)pick(4);

            if (!net.dead[r])
                happen(r, (int)pick(4), pick(6), false);
        }
        ck_assert(mr_era_has_failed(check_survivors(), 2));
        ck_assert_int_eq(mr_era_unacknowledged(net.e[0].sum), !acked);
        end_net();
    }
}
END_TEST

START_TEST(values_are_checked)
{
    struct {
        struct mr_era_value v;
        uint32_t failed[4];
    } x = {.v.num_failed = 2, .failed = {2, 5}};
    uint8_t *bytes = (uint8_t *)&x;
    size_t len = mr_era_bytes(2);

    ck_assert(mr_era_is_value(bytes, len, 3));
    ck_assert(!mr_era_is_value(bytes, len, 2));
    ck_assert(!mr_era_is_value(bytes, len - 1, 3));
    ck_assert(!mr_era_is_value(bytes, len + 4, 3));
    ck_assert(!mr_era_is_value(bytes, 4, 3));
    x.failed[1] = 3; /* the same rank twice */
    ck_assert(!mr_era_is_value(bytes, len, 3));
    x.v.num_failed = UINT32_MAX;
    ck_assert(!mr_era_is_value(bytes, len, 3));
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("era");

    tcase_set_timeout(c, 120);
    tcase_add_test(c, nobody_fails);
    tcase_add_test(c, some_failed_before);
    tcase_add_test(c, some_fail_meanwhile);
    tcase_add_test(c, late_member_hears_the_old_decision);
    tcase_add_test(c, failures_and_acknowledgements);
    tcase_add_test(c, values_are_checked);
    return check_run(c, NULL);
}
