/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of several packets to another host when memory runs out: a begun message is sent to its end. The network is
 * a channel of the test, with memory for a limited number of packets, which keeps their contents.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "libmrmpi/channel/channel.h"
#include "libmrmpi/p2p/internal.h"
#include "tests/check.h"
#include "tests/libmrmpi/fake_world.h"

#define PACKET 4096u
#define ROOM   64
#define EXPECT(what)                                                                                                   \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            mr_log_print(MR_LOG_ERROR, "%s:%d: not so: %s", __FILE__, __LINE__, #what);                                \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

static struct {
    unsigned left, num, answered;
    struct mr_hdr hdr[ROOM];
    size_t len[ROOM];
    uint32_t answers;
} wire;

static int wire_poll(void)
{
    const struct mr_hdr *offer = &wire.hdr[wire.answered];
    struct mr_hdr fin = {.kind = MR_PKT_FIN, .seq = wire.answers, .src = 1, .sreq = offer->sreq};

    if (wire.answered == wire.num)
        return 0;
    wire.answered++;
    if (offer->kind != MR_PKT_RTS)
        return 1;
    wire.answers++;
    mr_vc_arrived(&fin, NULL, 0);
    return 1;
}

static bool wire_reaches(int rank)
{
    return rank == 1;
}

static void wire_sizes(struct mr_vc *vc)
{
    vc->eager_max = PACKET;
    vc->eager_most = 3 * PACKET;
    vc->packet_max = PACKET;
}

unsigned mr_net_rate(const struct mr_vc *vc, size_t len, uint32_t without, size_t *whole)
{
    *whole = 0;
    return 24000;
}

static unsigned wire_caps(int rank, size_t len)
{
    return MR_VC_READ | MR_VC_READ_FIRST;
}

int mr_net_reserve(struct mr_vc *vc, unsigned packets)
{
    return packets <= wire.left ? 0 : -ENOMEM;
}

static int wire_send(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (!wire.left || wire.num == ROOM)
        return -ENOMEM;
    wire.left--;
    wire.hdr[wire.num] = *hdr;
    wire.len[wire.num++] = len;
    return 0;
}

static int wire_advertise(struct mr_vc *vc, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                          struct mr_remote *out)
{
    static struct mr_region any;

    *region = &any;
    *out = (struct mr_remote){.len = len};
    return 0;
}

static void wire_withdraw(struct mr_region *region)
{
}

const struct mr_channel_ops mr_channel_net = {
    .name = "wire",
    .poll = wire_poll,
    .reaches = wire_reaches,
    .sizes = wire_sizes,
    .caps = wire_caps,
    .send = wire_send,
    .advertise = wire_advertise,
    .withdraw = wire_withdraw,
};

static uint8_t out[16 * PACKET];

static enum mr_err send_with(unsigned packets, size_t len)
{
    wire.left = packets;
    wire.num = wire.answered = 0;
    return mr_send(out, len, mr_type_byte, 1, 1, mr_comm_world, 0, MR_SEND_STANDARD);
}

static size_t payload_of(enum mr_packet kind)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < wire.num; i++)
        bytes += wire.hdr[i].kind == kind ? wire.len[i] : 0;
    return bytes;
}

/* The announced eager prefix comes, whole. */
static int heads(void)
{
    unsigned with_head = 0;

    EXPECT(send_with(0, sizeof out) != MR_SUCCESS && !wire.num);
    for (unsigned packets = 1; packets < 8; packets++) {
        EXPECT(send_with(packets, sizeof out) == MR_SUCCESS);
        EXPECT(wire.hdr[0].kind == MR_PKT_RTS && wire.hdr[0].rreq == payload_of(MR_PKT_PREFIX));
        with_head += wire.hdr[0].rreq != 0;
    }
    EXPECT(with_head == 3); /* of four packets, behind the offer */
    return 0;
}

/* All parts of a message come, or none. */
static int parts(void)
{
    for (unsigned packets = 0; packets < 3; packets++)
        EXPECT(send_with(packets, 3 * PACKET) == MR_ERR_NO_MEM && !wire.num);
    EXPECT(send_with(3, 3 * PACKET) == MR_SUCCESS && payload_of(MR_PKT_EAGER) == 3 * PACKET);
    EXPECT(send_with(2, 2 * PACKET - 5) == MR_SUCCESS && payload_of(MR_PKT_EAGER) == 2 * PACKET - 5);
    return 0;
}

/* At a peer's pace packets are shorter, and messages are the same. */
static int short_parts(void)
{
    struct mr_vc *vc = mr_vc_get_peer(1);

    vc->part = PACKET / 4;
    EXPECT(send_with(3, PACKET) == MR_ERR_NO_MEM && !wire.num);
    EXPECT(send_with(4, PACKET) == MR_SUCCESS && wire.num == 4 && payload_of(MR_PKT_EAGER) == PACKET);
    EXPECT(send_with(1, PACKET / 4) == MR_SUCCESS && wire.num == 1 && !(wire.hdr[0].flags & MR_FLAG_PART));
    EXPECT(send_with(12, 3 * PACKET) == MR_SUCCESS && wire.num == 12 && payload_of(MR_PKT_EAGER) == 3 * PACKET);
    for (unsigned packets = 1; packets < 24; packets++) {
        EXPECT(send_with(packets, sizeof out) == MR_SUCCESS);
        EXPECT(wire.hdr[0].kind == MR_PKT_RTS && wire.hdr[0].rreq == payload_of(MR_PKT_PREFIX));
    }
    vc->part = 2 * PACKET; /* never longer than the peer takes */
    EXPECT(send_with(1, PACKET) == MR_SUCCESS && wire.num == 1);
    EXPECT(send_with(2, 2 * PACKET) == MR_SUCCESS && wire.num == 2);
    vc->part = 0;
    EXPECT(send_with(1, PACKET) == MR_SUCCESS && wire.num == 1);
    return 0;
}

static int both(int rank, int size)
{
    if (rank == 1)
        _exit(0);
    mr_vc_eager_max(mr_vc_get_peer(1));
    _exit(heads() || parts() || short_parts()); /* there is nobody to meet at the end */
}

START_TEST(memory_for_whole_messages)
{
    fake_world_apart();
    ck_assert_int_eq(fake_world_run(2, both), 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("all");

    setenv("MRMPI_LOG_LEVEL", "1", 1);
    tcase_add_test(c, memory_for_whole_messages);
    return check_run(c, NULL);
}
