/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pool of queue pairs for large messages, on a simulated host, for pool.sh: a rail sends datagrams to itself.
 * Datagrams fill the places in order; late, foreign or long datagrams change no other memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/memory/memory.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/verbs/post.h"
#include "libmrmpi/verbs/datagram.h"

enum { SIZE = 2048, PLACES = 6, MOST = 64, GUARD = 4096 };

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                                         \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static struct {
    unsigned place;
    uint32_t imm, len;
} came[MOST];
static unsigned num_came, num_stopped, num_sent;
static unsigned char *memory, *data;
static struct mr_memory memory_keys, data_keys;
static struct mr_rail *rail;
static uint16_t pkey; /* its partition */
static struct mr_ud_to to;

static void arrived(struct mr_ud_pool_qp *q, unsigned place, uint32_t imm, uint32_t len)
{
    CHECK(num_came < MOST && q->owner == &num_came);
    came[num_came].place = place;
    came[num_came].imm = imm;
    came[num_came++].len = len;
}

static void stopped(struct mr_ud_pool_qp *q)
{
    CHECK(q->back == q->posted);
    num_stopped++;
}

static const struct mr_ud_pool_events events = {.arrived = arrived, .stopped = stopped};

static void sent(struct mr_wr *wr, const struct mr_wc *wc)
{
    mr_tx_done((struct mr_tx *)wr, wc);
    num_sent++;
}

/* Sends n datagrams, numbered from imm, to this queue pair under this key; waits for their arrival or loss. */
static void send_to(uint32_t qpn, uint32_t qkey, uint32_t imm, unsigned n)
{
    static struct mr_tx tx = {.wr = {.done = sent}};
    struct mr_piece all = {.data = data + imm * SIZE, .len = n * SIZE, .lkey = mr_memory_lkey(&data_keys, rail)};
    uint64_t begin;

    to.qpn = qpn;
    to.qkey = qkey;
    num_sent = 0;
    CHECK(!mr_qp_send_run(mr_udp_qp(rail, pkey, 1), &to, &all, SIZE, imm, &tx));
    while (!num_sent)
        mr_verbs_poll();
    begin = mr_clock_ns();
    while (mr_clock_ns() - begin < 100000)
        mr_verbs_poll();
}

static int is_all(const unsigned char *p, size_t n, unsigned char c)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != c)
            return 0;
    return 1;
}

static void clear(void)
{
    memset(memory, 0xa5, GUARD + PLACES * SIZE + GUARD);
    num_came = 0;
}

static void open_all(void)
{
    static const struct mr_verbs_handlers handlers = {0};
    size_t bytes = GUARD + PLACES * SIZE + GUARD;

    setenv("MRMPI_UD_POOL", "3", 1);
    setenv("MRMPI_UD_POOL_DEPTH", "8", 1);
    setenv("MRMPI_LEAKS", "yes", 1);
    CHECK(!mr_config_init());
    CHECK(!mr_verbs_open(&handlers, 8192, true, NULL, NULL));
    rail = mr_verbs_rail(0);
    pkey = rail->partition[0].number;
    memory = aligned_alloc(4096, bytes);
    data = aligned_alloc(4096, MOST * SIZE);
    for (unsigned i = 0; i < MOST; i++)
        memset(data + i * SIZE, (int)i + 1, SIZE);
    CHECK(!mr_memory_register(memory, bytes, MR_ACCESS_TARGET, &memory_keys));
    CHECK(!mr_memory_register(data, MOST * SIZE, MR_ACCESS_SOURCE, &data_keys));
    CHECK(!mr_udp_address(rail, &rail->addr, 0, 0, 0, &to));
}

static void post(struct mr_ud_pool_qp *q, unsigned char *at, size_t len)
{
    CHECK(!mr_ud_pool_post(q, at, len, SIZE, mr_memory_lkey(&memory_keys, rail)));
}

/* In the order of arrival: a place for each, and the excess of a long datagram is nowhere. */
static void fill_places(struct mr_ud_pool_qp *q)
{
    unsigned char *at = memory + GUARD;

    clear();
    post(q, at, 2 * SIZE + 100);
    send_to(q->qpn, q->qkey, 7, 3);
    CHECK(num_came == 3 && q->posted == 3 && q->back == 3);
    for (unsigned i = 0; i < 3; i++)
        CHECK(came[i].place == i && came[i].imm == 7 + i && came[i].len == SIZE);
    CHECK(is_all(at, SIZE, 8) && is_all(at + SIZE, SIZE, 9) && is_all(at + 2 * SIZE, 100, 10));
    CHECK(is_all(memory, GUARD, 0xa5) && is_all(at + 2 * SIZE + 100, GUARD, 0xa5));
    send_to(q->qpn, q->qkey, 20, 2); /* no place is left */
    CHECK(num_came == 3 && is_all(at, SIZE, 8));
}

/* Used again unchanged: places count from 0. */
static void use_again(struct mr_ud_pool_qp *q)
{
    uint32_t key = q->qkey;

    clear();
    CHECK(!mr_ud_pool_again(q, true) && q->qkey == key);
    post(q, memory + GUARD, SIZE);
    send_to(q->qpn, q->qkey, 30, 1);
    CHECK(num_came == 1 && came[0].place == 0 && is_all(memory + GUARD, SIZE, 31));
}

/*
 * A message ends early: its places are given back, and later datagrams for them change neither these places nor the
 * next.
 */
static void stop_and_go_on(struct mr_ud_pool_qp *q)
{
    uint32_t key = q->qkey;

    clear();
    CHECK(!mr_ud_pool_again(q, true));
    post(q, memory + GUARD, PLACES * SIZE);
    send_to(q->qpn, q->qkey, 40, 2);
    CHECK(num_came == 2);
    mr_ud_pool_stop(q);
    for (unsigned i = 0; i < 1000 && !num_stopped; i++)
        mr_verbs_poll();
    CHECK(num_stopped == 1 && num_came == 2 && q->posted == PLACES);
    clear();
    send_to(q->qpn, key, 42, 4);
    CHECK(num_came == 0 && is_all(memory, GUARD + PLACES * SIZE + GUARD, 0xa5));
    CHECK(!mr_ud_pool_again(q, false) && q->qkey != key && !q->posted);
    post(q, memory + GUARD, PLACES * SIZE);
    send_to(q->qpn, key, 42, 4);
    CHECK(num_came == 0 && is_all(memory, GUARD + PLACES * SIZE + GUARD, 0xa5));
    send_to(q->qpn, q->qkey, 50, PLACES);
    CHECK(num_came == PLACES && came[0].place == 0 && is_all(memory + GUARD, SIZE, 51));
}

static void use_all(struct mr_ud_pool_qp *first)
{
    struct mr_ud_pool_qp *q[3] = {first};

    CHECK(!mr_ud_pool_take(rail, pkey, &events, &num_came) && mr_ud_pool_prepare(rail, 9) == 2 &&
          mr_ud_pool_num(rail) == 3);
    q[1] = mr_ud_pool_take(rail, pkey, &events, &num_came);
    q[2] = mr_ud_pool_take(rail, pkey, &events, &num_came);
    CHECK(q[1] && q[2] && !mr_ud_pool_take(rail, pkey, &events, &num_came) && !mr_ud_pool_prepare(rail, 1));
    CHECK(mr_ud_pool_post(q[1], memory, 9 * SIZE / 2, SIZE / 2, mr_memory_lkey(&memory_keys, rail)) == -ENOSPC);
    mr_ud_pool_give(q[1], true);
    CHECK(mr_ud_pool_prepare(rail, 3) == 1);
    CHECK(mr_ud_pool_take(rail, pkey, &events, &num_came) == q[1]);
    for (unsigned i = 0; i < 3; i++)
        mr_ud_pool_give(q[i], i % 2);
    CHECK(mr_ud_pool_prepare(rail, 1) == 3);
}

int main(void)
{
    struct mr_ud_pool_qp *q;

    open_all();
    CHECK(!mr_ud_pool_num(rail) && mr_ud_pool_prepare(rail, 1) == 1);
    q = mr_ud_pool_take(rail, pkey, &events, &num_came);
    CHECK(q);
    fill_places(q);
    use_again(q);
    stop_and_go_on(q);
    use_all(q);
    mr_udp_forget(&to);
    mr_memory_deregister(&memory_keys);
    mr_memory_deregister(&data_keys);
    mr_verbs_close();
    free(memory);
    free(data);
    puts("all is right");
    return 0;
}
