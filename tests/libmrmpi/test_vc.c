/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual channels above a fake channel: packets in order to the folder above, the channel's own kinds back to the
 * channel, and the note of either kind upwards, because the sender of a packet depends on its note.
 */
#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/launch/launch.h"
#include "tests/check.h"

enum { SELF, PEER, RANKS, GUEST };

static const int node_of[RANKS] = {0, 1};
static const int local_ranks[1] = {SELF};
static const struct mr_launch launch = {
    .rank = SELF, .size = RANKS, .local_size = 1, .num_nodes = 2, .node_of = node_of, .local_ranks = local_ranks};

/* A letter each: d deliver, n noted, c control; then a digit: the sequence number, or the note. */
static char events[64];
static struct mr_hdr sent;

static void add_event(char what, unsigned number)
{
    size_t n = strlen(events);

    events[n] = what;
    events[n + 1] = (char)('0' + number);
}

static bool reaches_self(int world_rank)
{
    return world_rank == SELF;
}

static bool reaches_all(int world_rank)
{
    return true;
}

static int send_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    sent = *hdr;
    return 0;
}

static void control(int world_rank, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    ck_assert_int_eq(world_rank, PEER);
    add_event('c', hdr->seq);
}

static int poll_nothing(void)
{
    return 0;
}

const struct mr_channel_ops mr_channel_self = {
    .name = "self", .reaches = reaches_self, .send = send_packet, .poll = poll_nothing};
const struct mr_channel_ops mr_channel_shm = {
    .name = "shm", .reaches = reaches_self, .send = send_packet, .poll = poll_nothing};
static const struct mr_channel_ops net = {
    .name = "net", .reaches = reaches_all, .send = send_packet, .poll = poll_nothing, .control = control};
static bool reaches_guest(int number)
{
    ck_assert_int_eq(number, GUEST);
    return true;
}

static const struct mr_channel_ops guests = {
    .name = "guests", .guests = true, .reaches = reaches_guest, .send = send_packet, .poll = poll_nothing};
unsigned mr_channel_waiting, mr_channel_idle;

static int num_guests;

int mr_guest_number(const struct mr_card *card)
{
    return GUEST + num_guests++;
}

int mr_guest_end(void)
{
    return GUEST + num_guests;
}

static void deliver(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    add_event('d', hdr->seq);
}

static void noted(struct mr_vc *vc, uint8_t note)
{
    ck_assert_int_eq(mr_vc_world_rank(vc), PEER);
    add_event('n', note);
}

static void setup(void)
{
    static const struct mr_vc_upcalls up = {.deliver = deliver, .noted = noted};

    memset(events, 0, sizeof events);
    num_guests = 0;
    ck_assert_int_eq(mr_vc_init(&launch, &up, &net), 0);
}

static void arrives(unsigned kind, uint32_t seq, uint8_t note)
{
    struct mr_hdr hdr = {.kind = (uint8_t)kind, .src = PEER, .seq = seq, .note = note};

    mr_vc_arrived(&hdr, NULL, 0);
}

START_TEST(packets_go_up_in_order)
{
    arrives(0, 1, 0);
    arrives(0, 2, 0);
    ck_assert_str_eq(events, "");
    arrives(0, 0, 0);
    arrives(0, 1, 0);
    ck_assert_str_eq(events, "d0d1d2");
}
END_TEST

START_TEST(the_note_of_a_control_message_goes_up)
{
    arrives(MR_VC_KIND_CHANNEL, 0, 7);
    ck_assert_str_eq(events, "n7c0");
    arrives(0, 2, 9); /* the room above takes the note itself */
    arrives(MR_VC_KIND_CHANNEL, 1, 8);
    ck_assert_str_eq(events, "n7c0n8c1d2");
}
END_TEST

START_TEST(control_messages_are_numbered_and_carry_the_note)
{
    struct mr_vc *vc = mr_vc_get_peer(PEER);
    struct mr_hdr hdr = {.kind = MR_VC_KIND_CHANNEL};

    vc->note = 5;
    ck_assert_int_eq(mr_vc_send_control(vc, &hdr, NULL, 0), 0);
    ck_assert_uint_eq(sent.note, 5);
    ck_assert_uint_eq(sent.seq, 0);
    ck_assert_uint_eq(mr_vc_packets(vc), 1);
    ck_assert_int_eq(mr_vc_send_control(vc, &hdr, NULL, 0), 0);
    ck_assert_uint_eq(sent.seq, 1);
}
END_TEST

START_TEST(nothing_goes_up_at_the_end)
{
    mr_vc_quiet();
    arrives(0, 0, 3);
    arrives(MR_VC_KIND_CHANNEL, 1, 4);
    ck_assert_str_eq(events, "c1"); /* the channel still serves its peers */
}
END_TEST

/* Channels for ranks are not asked about guests: they have tables of the job's ranks. */
START_TEST(guests_have_a_channel_of_their_own)
{
    struct mr_hdr hdr = {.src = PEER};
    struct mr_vc *vc, *peer = mr_vc_get_peer(PEER);

    ck_assert_int_eq(mr_vc_open_guests(&guests), 0);
    ck_assert_int_eq(mr_vc_open_guests(&guests), 0);
    ck_assert_int_eq(mr_vc_meet(NULL), GUEST);
    vc = mr_vc_get_peer(GUEST);
    ck_assert_ptr_eq(vc->ops, &guests);
    ck_assert_ptr_eq(mr_vc_get_peer(PEER), peer);
    ck_assert_int_eq(mr_vc_get_peer(mr_vc_nowhere(RANKS))->error, -EIDRM);
    mr_vc_arrived_from(vc, &hdr, NULL, 0);
    ck_assert_str_eq(events, "d0");
    ck_assert_uint_eq(mr_vc_received(vc), 1);
    ck_assert_uint_eq(mr_vc_received(peer), 0);
    arrives(0, 0, 0);
    ck_assert_str_eq(events, "d0d0");
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("vc");

    tcase_add_checked_fixture(c, setup, mr_vc_finalize);
    tcase_add_test(c, packets_go_up_in_order);
    tcase_add_test(c, the_note_of_a_control_message_goes_up);
    tcase_add_test(c, control_messages_are_numbered_and_carry_the_note);
    tcase_add_test(c, nothing_goes_up_at_the_end);
    tcase_add_test(c, guests_have_a_channel_of_their_own);
    return check_run(c, NULL);
}
