/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that come as several datagrams: whatever comes, in whatever order, a packet is given out whole or not at all.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/verbs/link/assembly.h"
#include "libmrmpi/channel/channel.h"
#include "tests/check.h"

enum { PACKET_MAX = 5000 };

static struct mr_assemblies as;
static unsigned char packet[PACKET_MAX + 1];

static void setup(void)
{
    mr_assemblies_init(&as, PACKET_MAX);
}

static void teardown(void)
{
    mr_assemblies_free(&as);
    ck_assert_ptr_null(as.recent);
    ck_assert_ptr_null(as.whole);
    ck_assert_uint_eq(as.num, 0);
}

/* A sender's packet of this number: every byte behind the header shows the sending. */
static void fill(uint32_t src, uint32_t seq, unsigned sending, uint32_t size)
{
    struct mr_hdr hdr = {.kind = 1, .src = src, .seq = seq};
    unsigned char all[PACKET_MAX + 64];

    memcpy(all, &hdr, sizeof hdr);
    for (uint32_t i = sizeof hdr; i < PACKET_MAX + 1; i++)
        all[i] = (unsigned char)(src * 31 + seq * 7 + sending * 101 + i * 5 + (i >> 8));
    memcpy(packet, all, size);
}

static unsigned parts_of(uint32_t size, uint32_t chunk)
{
    return (size + chunk - 1) / chunk;
}

/* Memory of exactly this length, so the address sanitizer detects a read behind. */
static const void *add(const void *header, const void *data, size_t len, uint32_t imm, size_t *size)
{
    unsigned char *datagram = malloc(MR_PART_HEADER + len);
    const void *whole;

    ck_assert_ptr_nonnull(datagram);
    memcpy(datagram, header, MR_PART_HEADER);
    memcpy(datagram + MR_PART_HEADER, data, len);
    whole = mr_assemblies_add(&as, datagram, MR_PART_HEADER + len, imm, size);
    free(datagram);
    return whole;
}

static const void *add_part(uint32_t src, uint32_t seq, unsigned sending, uint32_t size, uint32_t chunk, unsigned part)
{
    unsigned char header[MR_PART_HEADER];
    uint32_t at = part * chunk, len = part + 1 < parts_of(size, chunk) ? chunk : size - at;
    const unsigned char *whole;
    size_t got = 0;

    fill(src, seq, sending, size);
    mr_part_header(packet, size, header);
    whole = add(header, packet + at, len, mr_part_imm(part, chunk), &got);
    if (!whole)
        return NULL;
    ck_assert_uint_eq(got, size);
    return whole;
}

/* All parts but one, then the last: whole only then. */
static void comes_with_last(uint32_t src, uint32_t seq, uint32_t size, uint32_t chunk, unsigned last)
{
    const void *whole;

    for (unsigned i = 0; i < parts_of(size, chunk); i++)
        if (i != last)
            ck_assert_ptr_null(add_part(src, seq, 0, size, chunk, i));
    whole = add_part(src, seq, 0, size, chunk, last);
    ck_assert_ptr_nonnull(whole);
    ck_assert_mem_eq(whole, packet, size);
}

START_TEST(any_part_may_be_last)
{
    static const struct {
        uint32_t size, chunk;
    } cases[] = {{PACKET_MAX, 2032},       {4064, 2032}, {4065, 2032}, {PACKET_MAX, 240},
                 {64 * 78, 78 /* most */}, {100, 50},    {101, 100},   {60, 1}};

    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++)
        for (unsigned last = 0; last < parts_of(cases[c].size, cases[c].chunk); last++)
            comes_with_last(3, c * 100 + last, cases[c].size, cases[c].chunk, last);
    ck_assert_uint_eq(as.num, 0);
    ck_assert_uint_eq(as.dropped, 0);
}
END_TEST

/* A sender may cut into one part: whole at once. */
START_TEST(one_part)
{
    ck_assert_ptr_nonnull(add_part(1, 1, 0, 48, 2032, 0));
    ck_assert_ptr_nonnull(add_part(1, 2, 0, 2032, 2032, 0));
    ck_assert_uint_eq(as.num, 0);
}
END_TEST

START_TEST(doubled_parts)
{
    for (unsigned i = 0; i < 3; i++)
        for (unsigned again = 0; again < 3; again++)
            ck_assert_ptr_null(add_part(1, 1, 0, 400, 100, i));
    ck_assert_ptr_nonnull(add_part(1, 1, 0, 400, 100, 3));
    /* of a packet already delivered: nothing of the old packet is left to complete the new */
    for (unsigned i = 0; i < 3; i++)
        ck_assert_ptr_null(add_part(1, 1, 0, 400, 100, i));
    ck_assert_ptr_nonnull(add_part(1, 1, 0, 400, 100, 3));
    ck_assert_uint_eq(as.dropped, 0);
}
END_TEST

/* Packets with the same number of several senders, and several of the same sender, part by part in turn. */
START_TEST(mixed_senders)
{
    enum { SENDERS = 8, PACKETS = 8, PARTS = 5, SIZE = 1000 };
    unsigned whole = 0;

    for (unsigned part = 0; part < PARTS; part++)
        for (uint32_t src = 0; src < SENDERS; src++)
            for (uint32_t seq = 0; seq < PACKETS; seq++) {
                uint32_t size = SIZE - src * 7 - seq;
                const void *p = add_part(src, seq, 0, size, 200, (part + src + seq) % PARTS);

                ck_assert_int_eq(p != NULL, part == PARTS - 1);
                if (p)
                    ck_assert_mem_eq(p, packet, size);
                whole += p != NULL;
            }
    ck_assert_uint_eq(whole, SENDERS * PACKETS);
    ck_assert_uint_eq(as.num, 0);
}
END_TEST

/* With an ACK of another length behind it: parts of the first sending do not count. */
START_TEST(sent_again_with_another_length)
{
    const void *whole;

    for (unsigned i = 0; i < 3; i++)
        ck_assert_ptr_null(add_part(1, 9, 0, 390, 100, i));
    for (unsigned i = 3; i < 4; i--)
        if (i)
            ck_assert_ptr_null(add_part(1, 9, 1, 394, 100, i));
        else
            ck_assert_ptr_nonnull(whole = add_part(1, 9, 1, 394, 100, i));
    ck_assert_mem_eq(whole, packet, 394);
}
END_TEST

/* Over a path with another MTU. */
START_TEST(sent_again_with_another_chunk)
{
    const void *whole;

    for (unsigned i = 0; i < 3; i++)
        ck_assert_ptr_null(add_part(1, 9, 0, 390, 100, i));
    ck_assert_ptr_null(add_part(1, 9, 1, 390, 200, 1));
    ck_assert_ptr_null(add_part(1, 9, 0, 390, 100, 3)); /* a late one of the first sending begins anew, too */
    ck_assert_ptr_null(add_part(1, 9, 1, 390, 200, 1));
    whole = add_part(1, 9, 1, 390, 200, 0);
    ck_assert_ptr_nonnull(whole);
    ck_assert_mem_eq(whole, packet, 390);
}
END_TEST

/* Sent again unchanged: only the lost parts must come. */
START_TEST(sent_again_fills_the_gaps)
{
    for (unsigned i = 0; i < 10; i++)
        if (i != 2 && i != 7)
            ck_assert_ptr_null(add_part(1, 9, 0, 1000, 100, i));
    ck_assert_ptr_null(add_part(1, 9, 0, 1000, 100, 2));
    ck_assert_ptr_nonnull(add_part(1, 9, 0, 1000, 100, 7));
}
END_TEST

/*
 * The ACK behind a packet differs in each sending. Some parts of each of two sendings make one packet: its ACK is that
 * of one sending.
 */
START_TEST(acks_are_not_mixed)
{
    static const uint32_t tails[] = {4, 12}, most[] = {240, 496, 1008, 2032, 4080};
    uint32_t tail = tails[_i & 1], seq = 0;

    for (unsigned m = 0; m < sizeof most / sizeof *most; m++)
        for (uint32_t size = most[m] + 17; size <= PACKET_MAX && size <= 64 * most[m]; size++) {
            uint32_t chunk = mr_part_chunk(size, tail, most[m]);
            unsigned parts = parts_of(size, chunk);
            const void *whole;

            ck_assert_uint_le(chunk, most[m]);
            ck_assert_uint_eq(parts, parts_of(size, most[m]));
            ck_assert_uint_eq(mr_part_chunk(size, 0, most[m]), most[m]);
            if (size - tail >= (parts - 1) * most[m])
                ck_assert_uint_eq(chunk, most[m]);
            for (unsigned i = 0; i + 1 < parts; i++)
                ck_assert_ptr_null(add_part(1, seq, 0, size, chunk, i));
            whole = add_part(1, seq++, 1, size, chunk, parts - 1);
            ck_assert_ptr_nonnull(whole);
            ck_assert_mem_eq((const char *)whole + size - tail, packet + size - tail, tail);
        }
}
END_TEST

START_TEST(the_one_that_was_touched_least_recently_goes)
{
    for (uint32_t seq = 0; seq < MR_ASSEMBLIES_MAX; seq++)
        ck_assert_ptr_null(add_part(1, seq, 0, 300, 100, 0));
    ck_assert_uint_eq(as.num, MR_ASSEMBLIES_MAX);
    ck_assert_ptr_null(add_part(1, 0, 0, 300, 100, 1)); /* so 1 is the oldest */
    ck_assert_uint_eq(as.dropped, 0);
    ck_assert_ptr_null(add_part(2, 0, 0, 300, 100, 0));
    ck_assert_uint_eq(as.num, MR_ASSEMBLIES_MAX);
    ck_assert_uint_eq(as.dropped, 1);
    ck_assert_ptr_nonnull(add_part(1, 0, 0, 300, 100, 2));
    for (uint32_t seq = 2; seq < MR_ASSEMBLIES_MAX; seq++) {
        ck_assert_ptr_null(add_part(1, seq, 0, 300, 100, 1));
        ck_assert_ptr_nonnull(add_part(1, seq, 0, 300, 100, 2));
    }
    ck_assert_ptr_null(add_part(1, 1, 0, 300, 100, 1)); /* the sender gave up on it: begins anew */
    ck_assert_ptr_null(add_part(1, 1, 0, 300, 100, 2));
    ck_assert_ptr_nonnull(add_part(1, 1, 0, 300, 100, 0));
    ck_assert_ptr_null(add_part(2, 0, 0, 300, 100, 1));
    ck_assert_ptr_nonnull(add_part(2, 0, 0, 300, 100, 2));
    ck_assert_uint_eq(as.num, 0);
    ck_assert_uint_eq(as.dropped, 1);
}
END_TEST

/* ---- nonsense ---------------------------------------------------------------------------------------------------- */

static void nonsense(const unsigned char *header, size_t len, uint32_t imm)
{
    uint64_t dropped = as.dropped;
    unsigned num = as.num;
    size_t size;

    ck_assert_ptr_null(add(header, packet, len, imm, &size));
    ck_assert_uint_eq(as.dropped, dropped + 1);
    ck_assert_uint_eq(as.num, num);
}

/* A part's header as written by mr_part_header, with another length. */
static void sized_header(uint32_t size, unsigned char *header)
{
    fill(1, 5, 0, 100);
    mr_part_header(packet, size, header);
}

START_TEST(what_does_not_fit_is_dropped)
{
    unsigned char header[MR_PART_HEADER];
    size_t size;

    ck_assert_ptr_null(add_part(1, 5, 0, 390, 100, 0)); /* which must survive everything */
    sized_header(390, header);
    nonsense(header, 99, mr_part_imm(1, 100));
    nonsense(header, 101, mr_part_imm(1, 100));
    nonsense(header, 0, mr_part_imm(1, 100));
    nonsense(header, 100, mr_part_imm(3, 100)); /* the last part is shorter */
    nonsense(header, 90, mr_part_imm(4, 100));
    nonsense(header, 100, mr_part_imm(63, 100));
    nonsense(header, 100, mr_part_imm(64, 100));
    nonsense(header, 100, mr_part_imm(0xffff, 100));
    nonsense(header, 0, mr_part_imm(0, 0)); /* no chunk */
    nonsense(header, 6, mr_part_imm(0, 6)); /* 65 parts */
    nonsense(header, 1, mr_part_imm(0, 1));
    for (unsigned byte = 0; byte < 4; byte++) { /* not ours */
        header[byte] ^= 0x10;
        nonsense(header, 100, mr_part_imm(1, 100));
        header[byte] ^= 0x10;
    }
    sized_header(0, header);
    nonsense(header, 0, mr_part_imm(0, 100));
    sized_header(PACKET_MAX + 1, header);
    nonsense(header, 2500, mr_part_imm(0, 2500));
    nonsense(header, 2501, mr_part_imm(1, 2500));
    sized_header(UINT32_MAX, header);
    nonsense(header, 4000, mr_part_imm(0, 4000));
    nonsense(header, 4000, mr_part_imm(0, 0xffff));
    for (size_t len = 0; len < MR_PART_HEADER; len++) { /* shorter than a head */
        unsigned char *shorter = malloc(len ? len : 1);

        memcpy(shorter, header, len);
        ck_assert_ptr_null(mr_assemblies_add(&as, shorter, len, mr_part_imm(0, 100), &size));
        free(shorter);
    }
    ck_assert_uint_eq(as.num, 1);
    ck_assert_ptr_null(add_part(1, 5, 0, 390, 100, 3));
    ck_assert_ptr_null(add_part(1, 5, 0, 390, 100, 1));
    ck_assert_ptr_nonnull(add_part(1, 5, 0, 390, 100, 2));
}
END_TEST

/*
 * Parts of many packets at random, sent again in other lengths and chunks, mixed with noise. Each sending has bytes of
 * its own, the same for the same length and chunk; each delivered packet must be one of the sendings.
 */
START_TEST(by_chance)
{
    static const uint32_t chunks[] = {90, 100, 240, 2032};
    unsigned whole = 0;

    srand((unsigned)_i);
    for (unsigned n = 0; n < 20000; n++) {
        uint32_t src = (uint32_t)rand() % 3, seq = (uint32_t)rand() % 30;
        unsigned sending = (unsigned)rand() % 3;
        uint32_t size = (seq % 7 + 1) * 100 + 4 * sending, chunk = chunks[(seq + sending) % 4];
        unsigned char header[MR_PART_HEADER];
        const void *p;
        size_t got;

        if (rand() % 8) {
            p = add_part(src, seq, sending, size, chunk, (unsigned)rand() % parts_of(size, chunk));
            if (p)
                ck_assert_mem_eq(p, packet, size);
            whole += p != NULL;
            continue;
        }
        fill(src + 100, seq, sending, size);
        mr_part_header(packet, rand() % 2 ? (uint32_t)rand() % (PACKET_MAX + 100) : (uint32_t)rand(), header);
        header[rand() % (rand() % 4 ? MR_PART_HEADER : 4)] ^= (unsigned char)rand();
        size = (uint32_t)rand() % 300;
        add(header, packet, size, rand() % 2 ? mr_part_imm((unsigned)rand() % 8, size) : (uint32_t)rand(), &got);
        ck_assert_uint_le(as.num, MR_ASSEMBLIES_MAX);
    }
    ck_assert_uint_gt(whole, 100);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("assembly");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, any_part_may_be_last);
    tcase_add_test(t, one_part);
    tcase_add_test(t, doubled_parts);
    tcase_add_test(t, mixed_senders);
    tcase_add_test(t, sent_again_with_another_length);
    tcase_add_test(t, sent_again_with_another_chunk);
    tcase_add_test(t, sent_again_fills_the_gaps);
    tcase_add_loop_test(t, acks_are_not_mixed, 0, 2);
    tcase_add_test(t, the_one_that_was_touched_least_recently_goes);
    tcase_add_test(t, what_does_not_fit_is_dropped);
    tcase_add_loop_test(t, by_chance, 1, 6);
    return check_run(t, NULL);
}
