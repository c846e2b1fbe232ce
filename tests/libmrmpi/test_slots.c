/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring of slots: layout, counters that wrap, credit, and a writer, an adapter and a reader in random turns. The
 * adapter stores a write byte by byte in the order of addresses, as the ring requires, and the reader may look between
 * any two bytes; feedback arrives late.
 */
#include <stdlib.h>

#include "libmrmpi/verbs/link/slots.h"
#include "tests/check.h"

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % below);
}

START_TEST(sizes)
{
    ck_assert_uint_eq(mr_slots_size(56), 64);
    ck_assert_uint_eq(mr_slots_size(57), 128);
    ck_assert(mr_slots_sane(1, 64) && mr_slots_sane(MR_SLOTS_MOST, 1 << 20));
    ck_assert(!mr_slots_sane(0, 64) && !mr_slots_sane(3, 64) && !mr_slots_sane(2 * MR_SLOTS_MOST, 64));
    ck_assert(!mr_slots_sane(4, 0) && !mr_slots_sane(4, 32) && !mr_slots_sane(4, 96) && !mr_slots_sane(4, 2 << 20));
}
END_TEST

/* Slots in sequence, each packet at the bottom of its slot, with its tail behind. */
/* A ring has a power of two of them. */
START_TEST(numbers)
{
    for (unsigned num = 1; num <= 2 * MR_SLOTS_MOST; num++) {
        unsigned n = mr_slots_num(num);

        ck_assert(mr_slots_sane(n, 64) && n <= num && (2 * n > num || n == MR_SLOTS_MOST));
    }
}
END_TEST

START_TEST(layout)
{
    struct mr_slots_out o = {.num = 4, .size = 128, .sent = 6, .freed = 6};
    struct mr_slot_trailer t;

    struct mr_slots_out long_ones = {.num = 4, .size = 1 << 20};

    ck_assert(mr_slots_fits(&o, 120) && !mr_slots_fits(&o, 121));
    ck_assert(mr_slots_fits(&long_ones, 65535) && !mr_slots_fits(&long_ones, 65536)); /* as long as a tail can tell */
    ck_assert_uint_eq(mr_slots_place(&o, 120), 2 * 128);
    ck_assert_uint_eq(mr_slots_place(&o, 24), 3 * 128 - 8 - 24);
    mr_slots_trailer(&o, 24, 0x12345, &t);
    ck_assert_uint_eq(t.len, 24);
    ck_assert_uint_eq(t.freed, 0x2345);
    ck_assert_uint_eq(t.number, 7);
}
END_TEST

START_TEST(credit)
{
    struct mr_slots_out o = {.num = 4, .size = 64, .sent = 0xfffffffe, .freed = 0xfffffffe};

    for (int i = 0; i < 4; i++) {
        ck_assert(!mr_slots_full(&o));
        o.sent++;
    }
    ck_assert(mr_slots_full(&o));
    mr_slots_freed(&o, 0xfffffffd); /* older */
    ck_assert(mr_slots_full(&o));
    mr_slots_freed(&o, 3); /* more than were sent */
    ck_assert(mr_slots_full(&o));
    mr_slots_freed(&o, 0);
    ck_assert_uint_eq(o.freed, 0);
    mr_slots_freed16(&o, 0xffff); /* came late */
    ck_assert_uint_eq(o.freed, 0);
    mr_slots_freed16(&o, 2);
    ck_assert_uint_eq(o.freed, 2);
    mr_slots_freed16(&o, 3);
    ck_assert_uint_eq(o.freed, 2);
    o = (struct mr_slots_out){.num = 4, .size = 64, .sent = 0x30001, .freed = 0x2ffff};
    mr_slots_freed16(&o, 1);
    ck_assert_uint_eq(o.freed, 0x30001);
}
END_TEST

START_TEST(owing)
{
    static _Alignas(64) unsigned char memory[8 * 64];
    struct mr_slots_in in = {.read = 0xfffffffe};

    mr_slots_begin(&in, 8, 64, false, memory);
    for (int i = 0; i < 4; i++, mr_slots_next(&in))
        ck_assert(!mr_slots_owes(&in));
    ck_assert(mr_slots_owes(&in));
    in.told = in.read;
    ck_assert(!mr_slots_owes(&in));
    for (unsigned num = 1; num <= 8; num *= 8) { /* of one slot, or reported for each */
        mr_slots_begin(&in, num, 64, num > 1, memory);
        ck_assert(!mr_slots_owes(&in));
        mr_slots_next(&in);
        ck_assert(mr_slots_owes(&in));
    }
}
END_TEST

/* Memory with arbitrary former contents, including the expected tail. */
START_TEST(begins_empty)
{
    _Alignas(64) unsigned char memory[4 * 64];
    struct mr_slot_trailer t, found;

    for (uint32_t first = 0xfffffff8; first != 9; first++) {
        struct mr_slots_in in = {.read = first};

        for (unsigned i = 0; i < 4; i++) {
            t = (struct mr_slot_trailer){.number = first + 1};
            memcpy(memory + 64 * (i + 1) - 8, &t, 8);
        }
        mr_slots_begin(&in, 4, 64, false, memory);
        for (unsigned i = 0; i < 4; i++, mr_slots_next(&in))
            ck_assert(!mr_slots_poll(&in, NULL, &found));
    }
}
END_TEST

START_TEST(impossible_length)
{
    _Alignas(64) unsigned char memory[2 * 64] = {0};
    struct mr_slots_in in = {0};
    struct mr_slot_trailer t = {.len = 57, .number = 1};

    mr_slots_begin(&in, 2, 64, false, memory);
    memcpy(memory + 56, &t, 8);
    ck_assert(mr_slots_poll(&in, NULL, &t));
    ck_assert_ptr_null(mr_slots_packet(&in, &t));
    t.len = 56;
    ck_assert_ptr_eq(mr_slots_packet(&in, &t), memory);
    t.len = 0;
    ck_assert_ptr_eq(mr_slots_packet(&in, &t), memory + 56);
}
END_TEST

/* ---- two ends and an adapter ----------------------------------------------------------------------------------------
 */

#define WRITES 64
struct wire { /* writes under way, in order; done: bytes of the first that are stored */
    struct write {
        unsigned char *to, data[256];
        size_t len;
    } write[WRITES];
    unsigned first, num;
    size_t done;
};

static void post(struct wire *w, void *to, const void *data, size_t len)
{
    struct write *x = &w->write[(w->first + w->num++) % WRITES];

    ck_assert_uint_le(w->num, WRITES);
    x->to = to;
    x->len = len;
    memcpy(x->data, data, len);
}

/* An aligned word is stored at once, as by a bus: in the order of addresses, or in the opposite order. */
static void store(struct wire *w, size_t bytes, bool backwards)
{
    while (w->num && bytes) {
        struct write *x = &w->write[w->first % WRITES];
        size_t n = 8 - (uintptr_t)(x->to + w->done) % 8, at = w->done;

        if (backwards && x->len > 8)
            n = 1;
        if (n > x->len - w->done)
            n = x->len - w->done;
        if (backwards)
            at = x->len - w->done - n;
        memcpy(x->to + at, x->data + at, n);
        w->done += n;
        bytes -= n < bytes ? n : bytes;
        if (w->done == x->len) {
            w->done = 0;
            w->first++;
            w->num--;
        }
    }
}

/* The packet of this number: its contents follow from the number, with tails of earlier rounds among them. */
static size_t make(uint32_t number, size_t longest, unsigned char *out)
{
    size_t len = 1 + number * 2654435761u % longest;

    for (size_t i = 0; i < len; i++)
        out[i] = (unsigned char)(number * 31 + i * 7 + 1);
    for (size_t i = 0; i + 8 <= len; i += 16) {
        struct mr_slot_trailer t = {.len = (uint16_t)len, .number = number + 1 + (uint32_t)(i / 16)};

        memcpy(out + i, &t, 8);
    }
    return len;
}

struct world {
    struct mr_slots_out o;
    struct mr_slots_in in;
    struct wire there, back;
    uint32_t head, freed; /* words written by the other end */
    bool heads;           /* with a counter of its own; then the order of the bytes of a packet does not matter */
    uint32_t first;
};

static void step_writer(struct world *w)
{
    unsigned char packet[256];
    uint32_t number = w->o.sent;
    size_t len = make(number, w->o.size - MR_SLOT_TRAILER, packet);

    if (mr_slots_full(&w->o))
        mr_slots_freed(&w->o, w->freed);
    if (mr_slots_full(&w->o) || w->there.num + 2 > WRITES)
        return;
    ck_assert(mr_slots_fits(&w->o, len));
    mr_slots_trailer(&w->o, len, 0, packet + len);
    post(&w->there, w->in.at + mr_slots_place(&w->o, len), packet, len + MR_SLOT_TRAILER);
    w->o.sent++;
    if (w->heads)
        post(&w->there, &w->head, &w->o.sent, sizeof w->head);
}

static void step_reader(struct world *w)
{
    unsigned char expected[256];
    struct mr_slot_trailer t;
    const void *packet;
    size_t len;

    if (!mr_slots_poll(&w->in, w->heads ? &w->head : NULL, &t))
        return;
    ck_assert_uint_ne(w->in.read, w->o.sent); /* never before sending */
    packet = mr_slots_packet(&w->in, &t);
    len = make(w->in.read, w->o.size - MR_SLOT_TRAILER, expected);
    ck_assert_uint_eq(t.len, len);
    ck_assert_uint_eq(t.number, w->in.read + 1);
    ck_assert_mem_eq(packet, expected, len);
    mr_slots_next(&w->in);
    if (mr_slots_owes(&w->in) && w->back.num < WRITES) {
        post(&w->back, &w->freed, &w->in.read, sizeof w->freed);
        w->in.told = w->in.read;
    }
}

static void run(uint64_t number, bool heads)
{
    static _Alignas(64) unsigned char memory[16 * 256];
    struct world w = {.heads = heads};
    uint32_t size, num;

    seed = number;
    num = 1u << draw(5);
    size = 64 * (1 + draw(4));
    w.first = draw(4) ? draw(1000) : 0u - draw(200); /* counts that wrap, now and then */
    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = (unsigned char)draw(256);
    w.o = (struct mr_slots_out){.num = num, .size = size, .sent = w.first, .freed = w.first};
    w.in.read = w.freed = w.head = w.first;
    mr_slots_begin(&w.in, num, size, heads, memory);
    for (unsigned i = 0; i < 3000; i++)
        switch (draw(4)) {
        case 0:
            step_writer(&w);
            break;
        case 1:
            store(&w.there, 1 + draw(draw(2) ? 8 : 400), heads);
            break;
        case 2:
            step_reader(&w);
            break;
        default:
            store(&w.back, draw(3) ? 4 : 0, false);
        }
    while (w.there.num || w.in.read != w.o.sent) { /* all of them, at the end, and no more */
        store(&w.there, 1000, heads);
        step_reader(&w);
    }
    store(&w.back, 1000, false);
    step_reader(&w);
    ck_assert_uint_eq(w.in.read, w.o.sent);
    ck_assert_uint_ge(w.o.sent - w.first, 100);
}

START_TEST(any_order_by_tails)
{
    run((uint64_t)_i + 1, false);
}
END_TEST

START_TEST(any_order_by_heads)
{
    run((uint64_t)_i + 1, true);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("slots");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, sizes);
    tcase_add_test(t, numbers);
    tcase_add_test(t, layout);
    tcase_add_test(t, credit);
    tcase_add_test(t, owing);
    tcase_add_test(t, begins_empty);
    tcase_add_test(t, impossible_length);
    tcase_add_loop_test(t, any_order_by_tails, 0, 100);
    tcase_add_loop_test(t, any_order_by_heads, 0, 100);
    return check_run(t, NULL);
}
