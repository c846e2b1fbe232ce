/* SPDX-License-Identifier: BSD-3-Clause */
/* The header of packets between hosts: each form is read as written, and nothing beyond the packet is read. */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/parts.h"
#include "libmrmpi/base/wire.h"
#include "tests/check.h"

static const struct mr_hdr some = {
    .kind = 3, .flags = 9, .seq = 0xfffffffe, .src = 77, .rank = -1, .tag = 0x7fffffff, .ctx = 5};

static void same(const struct mr_hdr *a, const struct mr_hdr *b)
{
    ck_assert_uint_eq(a->kind, b->kind);
    ck_assert_uint_eq(a->flags, b->flags);
    ck_assert_uint_eq(a->form, 0);
    ck_assert_uint_eq(a->seq, b->seq);
    ck_assert_uint_eq(a->src, b->src);
    ck_assert_int_eq(a->rank, b->rank);
    ck_assert_int_eq(a->tag, b->tag);
    ck_assert_uint_eq(a->ctx, b->ctx);
    ck_assert_uint_eq(a->len, b->len);
    ck_assert_uint_eq(a->sreq, b->sreq);
    ck_assert_uint_eq(a->rreq, b->rreq);
}

/* A copy of its exact size, so the address sanitizer detects a read behind. */
static size_t get_with_tail(const void *packet, size_t size, struct mr_hdr *hdr, size_t *end)
{
    void *copy = malloc(size ? size : 1);
    size_t head;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, packet, size);
    *end = size;
    head = mr_wire_get(copy, end, hdr);
    free(copy);
    return head;
}

static size_t get(const void *packet, size_t size, struct mr_hdr *hdr)
{
    size_t end;

    return get_with_tail(packet, size, hdr, &end);
}

START_TEST(each_form)
{
    for (size_t payload = 0; payload <= 40; payload += 8) {
        struct mr_hdr hdr = some, got;
        unsigned char packet[MR_WIRE_MAX + 40] = {0};
        unsigned form;
        size_t head;

        hdr.len = _i & 1 ? 1ull << 40 : payload;
        hdr.sreq = _i & 2 ? 0xdeadbeefcafe : 0;
        hdr.rreq = _i & 4 ? ~0ull : 0;
        form = mr_wire_form(&hdr, payload);
        ck_assert_uint_eq(form, (unsigned)_i);
        head = mr_wire_put(&hdr, form, packet);
        ck_assert_uint_eq(head, mr_wire_size(form));
        memset(&got, 0xff, sizeof got);
        ck_assert_uint_eq(get(packet, head + payload, &got), head);
        same(&got, &hdr);
        for (size_t size = 0; size < head; size++) /* cut off anywhere */
            ck_assert_uint_eq(get(packet, size, &got), 0);
    }
}
END_TEST

START_TEST(short_ones_are_short)
{
    struct mr_hdr hdr = some;

    hdr.len = 8;
    ck_assert_uint_eq(mr_wire_size(mr_wire_form(&hdr, 8)), 24);
    hdr.sreq = 1;
    ck_assert_uint_eq(mr_wire_size(mr_wire_form(&hdr, 8)), 32);
    hdr.rreq = 1;
    ck_assert_uint_eq(mr_wire_size(mr_wire_form(&hdr, 0)), MR_WIRE_MAX);
    hdr.sreq = 0;
    ck_assert_uint_eq(mr_wire_size(mr_wire_form(&hdr, 0)), MR_WIRE_PART);
}
END_TEST

/* Flags and ACKs of a packet do not affect the rest, and may be changed. */
START_TEST(flags_and_acks)
{
    struct mr_hdr hdr = some, got;
    unsigned char packet[MR_WIRE_MAX + 16 + MR_ACK_WIRE_MAX];
    unsigned sizes = _i & MR_WIRE_SIZES, flags = _i & MR_WIRE_FLAGS;
    size_t head, tail = mr_wire_ack_bytes(flags), end;

    memset(packet, 0x5a, sizeof packet);
    hdr.len = sizes & 1 ? 1ull << 40 : 16;
    hdr.sreq = sizes & 2 ? 1 : 0;
    hdr.rreq = sizes & 4 ? 2 : 0;
    head = mr_wire_put(&hdr, mr_wire_form(&hdr, 16), packet);
    mr_wire_dress(packet, MR_WIRE_FLAGS);
    mr_wire_dress(packet, flags);
    ck_assert_uint_eq(get_with_tail(packet, head + 16 + tail, &got, &end), head);
    ck_assert_uint_eq(end, head + 16);
    ck_assert_uint_eq(got.form, flags);
    got.form = 0;
    same(&got, &hdr);
    for (size_t size = 0; size < head + tail; size++)
        ck_assert_uint_eq(get(packet, size, &got), 0);
}
END_TEST

START_TEST(unknown_forms)
{
    unsigned char packet[256] = {0};
    struct mr_hdr got;

    for (unsigned form = 0; form < 256; form++) {
        packet[offsetof(struct mr_hdr, form)] = (unsigned char)form;
        ck_assert_uint_eq(get(packet, sizeof packet, &got), form < MR_WIRE_FORMS ? mr_wire_size(form) : 0);
    }
}
END_TEST

/* Parts of a message: all of them fit, none is needless, and but for the last they are alike. */
START_TEST(parts)
{
    static const size_t mosts[] = {64, 100, 2000, 8192};

    for (size_t i = 0; i < sizeof mosts / sizeof *mosts; i++)
        for (size_t total = 1; total <= 5 * mosts[i]; total++) {
            size_t part = mr_part_size(total, mosts[i]);

            ck_assert_uint_le(part, mosts[i]);
            ck_assert_uint_eq((total + part - 1) / part, (total + mosts[i] - 1) / mosts[i]);
            ck_assert(part % MR_PART_UNIT == 0 || part == mosts[i]);
        }
    ck_assert_uint_eq(mr_part_size(2001, 2000), 1024);
    ck_assert_uint_eq(mr_part_size(3990, 2000), 2000);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("wire");

    tcase_add_loop_test(t, each_form, 0, MR_WIRE_SIZES + 1);
    tcase_add_loop_test(t, flags_and_acks, 0, MR_WIRE_FORMS);
    tcase_add_test(t, short_ones_are_short);
    tcase_add_test(t, unknown_forms);
    tcase_add_test(t, parts);
    return check_run(t, NULL);
}
