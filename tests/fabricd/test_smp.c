/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Management datagrams, several under way at a time, over a network made here: answers come late, in another order,
 * twice, or not at all, and packets beyond its capacity are lost. Time is this network's.
 */
#include "fabricd/fabric/smp.h"
#include "tests/check.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/umad.h>

enum { PACKET = 256, METHOD = 3, STATUS = 4, TID = 8, ATTRIBUTE = 16, MODIFIER = 20, HOPS = 7, DATA = 64, HOP = 128 };
enum { FLIGHTS = 4096, ROUND_TRIP_US = 100, KERNEL_US = 200000 };

struct flight {
    bool used, answered;
    uint64_t at_us;
    int status;
    uint8_t mad[PACKET];
};

static struct net {
    uint64_t now_us;
    unsigned loss_percent, twice_percent, jitter_us;
    unsigned room;      /* packets under way that the network can hold; the rest is lost */
    uint8_t dead;       /* the node behind this port never answers; 0: none */
    bool silent_kernel; /* nobody tells time-outs */
    unsigned sent, under_way, most_under_way, held, sets; /* under_way: including lost packets; held: without */
    struct flight flight[FLIGHTS];
} net;

int clock_gettime(clockid_t id, struct timespec *t)
{
    *t = (struct timespec){(time_t)(net.now_us / 1000000), (long)(net.now_us % 1000000) * 1000};
    return 0;
}

/* ---- libibumad ---- */

struct umad_buffer {
    int status;
    uint8_t mad[PACKET];
};

int umad_init(void)
{
    return 0;
}
int umad_get_cas_names(char names[][UMAD_CA_NAME_LEN], int max)
{
    return 0;
}
int umad_get_ca(const char *name, umad_ca_t *ca)
{
    return -1;
}
int umad_release_ca(umad_ca_t *ca)
{
    return 0;
}
int umad_open_port(const char *name, int port)
{
    return 3;
}
int umad_close_port(int fd)
{
    return 0;
}
int umad_register(int fd, int class, int version, uint8_t rmpp, long mask[16 / sizeof(long)])
{
    return class;
}
int umad_unregister(int fd, int agent)
{
    return 0;
}
size_t umad_size(void)
{
    return sizeof(int);
}
void *umad_get_mad(void *umad)
{
    return ((struct umad_buffer *)umad)->mad;
}
int umad_set_addr(void *umad, int lid, int qp, int sl, int qkey)
{
    return 0;
}
int umad_status(void *umad)
{
    return ((struct umad_buffer *)umad)->status;
}

static bool chance(unsigned percent)
{
    return (unsigned)(rand() % 100) < percent;
}

/* The attribute at the node at the end of the path. */
static void fill(uint8_t data[64], const uint8_t *mad)
{
    for (int i = 0; i < 64; i++)
        data[i] = (uint8_t)(mad[HOP + 1] + 3 * mad[ATTRIBUTE + 1] + 7 * mad[MODIFIER + 3] + 11 * mad[MODIFIER + 2] + i);
}

static void fly(const uint8_t *mad, uint64_t at_us, int status)
{
    for (int i = 0; i < FLIGHTS; i++)
        if (!net.flight[i].used) {
            net.flight[i] = (struct flight){.used = true, .at_us = at_us, .status = status};
            memcpy(net.flight[i].mad, mad, PACKET);
            return;
        }
    abort();
}

int umad_send(int fd, int agent, void *umad, int length, int timeout_ms, int retries)
{
    uint8_t mad[PACKET];
    memcpy(mad, umad_get_mad(umad), PACKET);
    net.sent++;
    net.sets += mad[METHOD] == 2;
    bool lost = (net.dead && mad[HOP + 1] == net.dead) || chance(net.loss_percent) || net.held >= net.room;
    if (++net.under_way > net.most_under_way)
        net.most_under_way = net.under_way;
    if (lost) {
        fly(mad, net.now_us + KERNEL_US, ETIMEDOUT);
        return 0;
    }
    net.held++;
    uint64_t at_us = net.now_us + ROUND_TRIP_US + (net.jitter_us ? (unsigned)rand() % net.jitter_us : 0);
    mad[METHOD] = 0x81;
    fill(mad + DATA, mad);
    fly(mad, at_us, 0);
    if (chance(net.twice_percent)) {
        net.under_way++;
        net.held++;
        fly(mad, at_us + 50, 0);
    }
    return 0;
}

int umad_recv(int fd, void *umad, int *length, int timeout_ms)
{
    uint64_t until_us = net.now_us + (uint64_t)timeout_ms * 1000;
    for (;;) {
        struct flight *first = NULL;
        for (int i = 0; i < FLIGHTS; i++)
            if (net.flight[i].used && (!first || net.flight[i].at_us < first->at_us))
                first = &net.flight[i];
        if (!first || first->at_us > until_us) {
            net.now_us = until_us;
            return timeout_ms ? -ETIMEDOUT : -EWOULDBLOCK;
        }
        if (first->at_us > net.now_us)
            net.now_us = first->at_us;
        struct umad_buffer *b = umad;
        b->status = first->status;
        memcpy(b->mad, first->mad, PACKET);
        first->used = false;
        net.under_way--;
        net.held -= !first->status;
        *length = PACKET;
        if (!first->status || !net.silent_kernel)
            return 1;
    }
}

/* ---- tests ---- */

static struct smp *begin(struct net n)
{
    net = n;
    net.now_us = 10000000;
    if (!net.room)
        net.room = FLIGHTS;
    srand(1);
    return smp_open("dev", 1);
}

static struct smp_path path_to(unsigned port)
{
    return (struct smp_path){.hops = 1, .port = {0, (uint8_t)port}};
}

static bool is_right(const uint8_t data[64], unsigned port, unsigned attribute, unsigned modifier)
{
    uint8_t mad[PACKET] = {0}, want[64];
    mad[HOP + 1] = (uint8_t)port;
    mad[ATTRIBUTE + 1] = (uint8_t)attribute;
    mad[MODIFIER + 2] = (uint8_t)(modifier >> 8);
    mad[MODIFIER + 3] = (uint8_t)modifier;
    fill(want, mad);
    return !memcmp(data, want, 64);
}

/* n questions to nodes 1 to 10; ahead: of so many at a time. How many had no answer; all others are right. */
static unsigned ask_all(struct smp *s, unsigned n, unsigned ahead)
{
    unsigned none = 0;
    for (unsigned i = 0; i < n; i++) {
        uint8_t data[64];
        struct smp_path path = path_to(1 + i / 100 % 10);
        for (unsigned k = i; ahead && i % ahead == 0 && k < n && k < i + ahead; k++) {
            struct smp_path to = path_to(1 + k / 100 % 10);
            smp_ahead(s, &to, SMP_SL2VL, k, NULL);
        }
        int rc = smp_get(s, &path, SMP_SL2VL, i, data);
        ck_assert(rc == 0 || rc == -ETIMEDOUT);
        if (rc)
            none++;
        else
            ck_assert(is_right(data, path.port[1], SMP_SL2VL, i));
    }
    return none;
}

/* The time of one question at a time is a round trip each; ahead, of a window each. */
START_TEST(ahead_is_sooner)
{
    struct smp *s = begin((struct net){0});
    uint64_t t0 = net.now_us;
    ck_assert_uint_eq(ask_all(s, 4000, 0), 0);
    ck_assert_uint_eq(net.most_under_way, 1);
    uint64_t alone_us = net.now_us - t0;
    ck_assert_uint_eq(alone_us, 4000 * ROUND_TRIP_US);
    t0 = net.now_us;
    ck_assert_uint_eq(ask_all(s, 4000, 500), 0);
    ck_assert_uint_eq(net.sent, 8000);
    ck_assert_uint_le(net.most_under_way, 64);
    ck_assert_msg(net.now_us - t0 <= alone_us / 20, "%lu us instead of %lu", net.now_us - t0, alone_us);
    smp_close(s);
}
END_TEST

/* Whatever the network does, each answer belongs to its question. */
static const struct net bad_days[] = {
    {.jitter_us = 5000},
    {.twice_percent = 30, .jitter_us = 1000},
    {.loss_percent = 1},
    {.loss_percent = 20, .twice_percent = 20, .jitter_us = 300},
    {.loss_percent = 1, .silent_kernel = true},
    {.room = 16},
    {.room = 2},
    {.room = 1},
};

START_TEST(answers_belong_to_questions)
{
    struct smp *s = begin(bad_days[_i]);
    unsigned none = ask_all(s, 3000, 300);
    /* four tries each; after four losses of one question, a node is not asked the rest of the prefetched questions */
    ck_assert_msg(none <= (bad_days[_i].loss_percent == 20 ? 1500 : 0), "%u without answer", none);
    smp_close(s);
}
END_TEST

/* A network of small capacity is not flooded: at most 6 in 100 packets are lost. */
START_TEST(window_fits)
{
    struct smp *s = begin((struct net){.room = 12});
    ask_all(s, 5000, 1000);
    ck_assert_uint_eq(ask_all(s, 20000, 1000), 0);
    ck_assert_msg(net.sent <= 25000 + 1500, "%u sent", net.sent);
    smp_close(s);
}
END_TEST

/* A dead node costs its time-outs once, however many questions were prefetched, and others answer. */
START_TEST(dead_node)
{
    for (int silent = 0; silent < 2; silent++) {
        struct smp *s = begin((struct net){.dead = 3, .silent_kernel = silent});
        uint64_t t0 = net.now_us;
        ck_assert_uint_eq(ask_all(s, 1000, 1000), 100);
        ck_assert_msg(net.now_us - t0 <= 4 * 300000 + 50000, "%lu us", net.now_us - t0);
        smp_close(s);
    }
}
END_TEST

/* Unread answers are dropped, and questions that were not prefetched are asked. */
START_TEST(other_questions)
{
    struct smp *s = begin((struct net){.jitter_us = 300});
    struct smp_path a = path_to(1), b = path_to(2), by_lid = {.lid = 7};
    uint8_t data[64];
    for (unsigned i = 0; i < 100; i++)
        smp_ahead(s, &a, SMP_VLARB, i, NULL);
    ck_assert_int_eq(smp_get(s, &a, SMP_VLARB, 0, data), 0);
    ck_assert(is_right(data, 1, SMP_VLARB, 0));
    ck_assert_int_eq(smp_get(s, &a, SMP_VLARB, 60, data), 0); /* 1 to 59 are dropped */
    ck_assert(is_right(data, 1, SMP_VLARB, 60));
    ck_assert_int_eq(smp_get(s, &b, SMP_VLARB, 61, data), 0); /* the rest, too */
    ck_assert(is_right(data, 2, SMP_VLARB, 61));
    ck_assert_int_eq(smp_get(s, &a, SMP_VLARB, 61, data), 0);
    ck_assert(is_right(data, 1, SMP_VLARB, 61));
    ck_assert_int_eq(smp_get(s, &by_lid, SMP_NODE_INFO, 0, data), 0);
    ck_assert_uint_eq(ask_all(s, 500, 100), 0);
    smp_close(s);
}
END_TEST

START_TEST(writes)
{
    struct smp *s = begin((struct net){.loss_percent = 5, .jitter_us = 200});
    struct smp_path a = path_to(4);
    uint8_t data[64] = {0};
    for (unsigned i = 0; i < 50; i++)
        smp_ahead(s, &a, SMP_VLARB, i, data);
    ck_assert_uint_eq(net.sets, 0); /* nothing is sent before the wait */
    for (unsigned i = 0; i < 50; i++)
        ck_assert_int_eq(smp_set(s, &a, SMP_VLARB, i, data), 0);
    ck_assert_uint_ge(net.sets, 50);
    ck_assert_int_eq(smp_get(s, &a, SMP_VLARB, 3, data), 0); /* a question is not the same as an order */
    ck_assert(is_right(data, 4, SMP_VLARB, 3));
    smp_close(s);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("smp");
    tcase_add_test(c, ahead_is_sooner);
    tcase_add_loop_test(c, answers_belong_to_questions, 0, (int)(sizeof(bad_days) / sizeof(bad_days[0])));
    tcase_add_test(c, window_fits);
    tcase_add_test(c, dead_node);
    tcase_add_test(c, other_questions);
    tcase_add_test(c, writes);
    return check_run(c, NULL);
}
