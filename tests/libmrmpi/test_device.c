/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lost device: all its rails go down and are reported, once, whether by polling or by an asynchronous event. Two
 * devices: the first with two ports, so with two rails. The device's library is the test's own.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/internal.h"
#include "tests/check.h"

#define RAILS 3u

static struct ibv_context context[2];
static struct ibv_cq cq[RAILS];
static unsigned polled[RAILS];
static int broken; /* this rail's queue cannot be polled any more; -1: all can */

static unsigned told[RAILS];
static bool told_fatal[RAILS];

static enum ibv_event_type events[4];
static unsigned num_events, next_event;
static int wake[2]; /* makes the descriptor of events readable */

/* ---- stubs of other folders: nothing is tested there ------------------------------------------------------------- */

static unsigned told_moved; /* set of partitions */

void mr_udp_moved(struct mr_rail *rail, unsigned i)
{
    told_moved |= 1u << i << 8;
}

void mr_ud_moved(struct mr_rail *rail, unsigned i)
{
    told_moved |= 1u << i;
}

/* ---- the device ------------------------------------------------------------------------------------------------ */

static int poll_cq(struct ibv_cq *q, int num, struct ibv_wc *wc)
{
    unsigned rail = (unsigned)(q - cq);

    polled[rail]++;
    return (int)rail == broken ? -1 : 0;
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *e)
{
    char byte;

    if (ctx != &context[0] || next_event == num_events || read(wake[0], &byte, 1) != 1)
        return -1;
    memset(e, 0, sizeof *e);
    e->event_type = events[next_event++];
    e->element.port_num = 2;
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *e)
{
}

#define KEYS 4
static uint16_t table[KEYS]; /* of the port */

int(ibv_query_port)(struct ibv_context *ctx, uint8_t num, struct _compat_ibv_port_attr *out)
{
    *(struct ibv_port_attr *)out = (struct ibv_port_attr){.state = IBV_PORT_ACTIVE, .pkey_tbl_len = KEYS};
    return 0;
}

int ibv_query_pkey(struct ibv_context *ctx, uint8_t num, int index, __be16 *out)
{
    ck_assert_uint_eq(num, 2);
    *out = htobe16(table[index]);
    return 0;
}

static uint32_t moved;
static unsigned told_keys;

static void rail_keys(struct mr_rail *rail, uint32_t set)
{
    ck_assert_uint_eq(rail->index, 1);
    moved = set;
    told_keys++;
}

static void happens(enum ibv_event_type type)
{
    events[num_events++] = type;
    ck_assert_int_eq(write(wake[1], "", 1), 1);
}

static void rail_changed(struct mr_rail *rail)
{
    told[rail->index]++;
    told_fatal[rail->index] = rail->dev->fatal && rail->down && rail->down_ns;
}

static void setup(void)
{
    static const unsigned device_of[RAILS] = {0, 0, 1};

    mr_config.log_level = -1;
    broken = -1;
    ck_assert_int_eq(pipe(wake), 0);
    memset(&mr_verbs, 0, sizeof mr_verbs);
    mr_verbs_up = (struct mr_verbs_handlers){.rail_changed = rail_changed};
    mr_verbs.num_devices = 2;
    mr_verbs.num_rails = RAILS;
    for (unsigned i = 0; i < 2; i++) {
        context[i].ops.poll_cq = poll_cq;
        context[i].async_fd = i ? -1 : wake[0];
        mr_verbs.device[i] = (struct mr_device){.ctx = &context[i], .index = i, .name = "test"};
    }
    for (unsigned i = 0; i < RAILS; i++) {
        cq[i].context = &context[device_of[i]];
        mr_verbs.rail[i] =
            (struct mr_rail){.index = i, .dev = &mr_verbs.device[device_of[i]], .port = i == 1 ? 2 : 1, .cq = &cq[i]};
        mr_verbs.rail[i].next_polled = &mr_verbs.rail[(i + 1) % RAILS];
    }
    mr_verbs.polled = &mr_verbs.rail[0];
}

static void poll_all(void)
{
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(mr_verbs_poll(), 0);
}

/* The first device is lost, both of its rails were reported as that once, and the second goes on. */
static void check_lost(void)
{
    unsigned before = polled[2];

    ck_assert(mr_verbs.device[0].fatal);
    ck_assert(!mr_verbs.device[1].fatal);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(mr_verbs.rail[i].down);
        ck_assert(told_fatal[i]);
        ck_assert_uint_eq(told[i], 1);
    }
    ck_assert(!mr_verbs.rail[2].down);
    ck_assert_uint_eq(told[2], 0);
    poll_all();
    ck_assert_uint_gt(polled[2], before);
}

START_TEST(poll_fails)
{
    unsigned before;

    broken = _i; /* for any rail that finds the error */
    poll_all();
    check_lost();
    before = polled[0] + polled[1];
    happens(IBV_EVENT_DEVICE_FATAL); /* already known */
    mr_verbs_check_events();
    check_lost();
    ck_assert_uint_eq(polled[0] + polled[1], before);
}
END_TEST

START_TEST(device_fatal_event)
{
    happens(IBV_EVENT_DEVICE_FATAL);
    happens(IBV_EVENT_PORT_ACTIVE); /* of a device already lost */
    mr_verbs_check_events();
    check_lost();
    broken = 0;
    poll_all();
    mr_verbs_check_events();
    check_lost();
}
END_TEST

/* A port that was down already was reported as down; the loss of its device is news. */
START_TEST(port_down_before)
{
    happens(IBV_EVENT_PORT_ERR);
    mr_verbs_check_events();
    ck_assert_uint_eq(told[0], 0);
    ck_assert_uint_eq(told[1], 1);
    ck_assert(!told_fatal[1]);
    told[1] = 0;
    broken = 0;
    poll_all();
    check_lost();
}
END_TEST

/* The first entry is the second partition's, and the other way round; returns how often the change was told. */
static unsigned change_table(uint16_t first, uint16_t second)
{
    memset(table, 0, sizeof table);
    table[1] = first;
    table[3] = second;
    told_keys = told_moved = moved = 0;
    num_events = next_event = 0;
    happens(IBV_EVENT_PKEY_CHANGE);
    mr_verbs_check_events();
    return told_keys;
}

START_TEST(keys_change)
{
    struct mr_rail *rail = &mr_verbs.rail[1];

    mr_verbs_up.rail_keys = rail_keys;
    rail->num_partitions = 2;
    rail->partition[0] = (struct mr_rail_partition){.number = 0x7fff, .now = {.key = 0x7fff, .index = 1}};
    rail->partition[1] = (struct mr_rail_partition){.number = 0x0011, .now = {.key = 0x8011, .index = 3}};
    ck_assert_uint_eq(change_table(0x7fff, 0x8011), 0); /* the same again */
    ck_assert_uint_eq(change_table(0x8011, 0x7fff), 1);
    ck_assert_uint_eq(moved, 3);
    ck_assert_uint_eq(told_moved, 0x303);
    ck_assert_uint_eq(rail->partition[1].now.index, 1);
    ck_assert_uint_eq(change_table(0x0011, 0x7fff), 1); /* its membership */
    ck_assert_uint_eq(moved | told_moved, 0);
    ck_assert_uint_eq(rail->partition[1].now.key, 0x0011);
    ck_assert_uint_eq(change_table(0x8022, 0x7fff), 1); /* it is gone, and comes back to the same place, or another */
    ck_assert_uint_eq(moved | told_moved | rail->partition[1].now.key, 0);
    ck_assert_uint_eq(rail->num_partitions, 2);
    ck_assert_uint_eq(change_table(0x8011, 0x7fff), 1);
    ck_assert_uint_eq(moved | told_moved, 0);
    ck_assert_uint_eq(rail->partition[1].now.key, 0x8011);
    ck_assert_uint_eq(change_table(0, 0x7fff), 1);
    ck_assert_uint_eq(change_table(0, 0x8011), 1);
    ck_assert_uint_eq(moved, 2);
    ck_assert_uint_eq(told_moved, 0x202);
    ck_assert_uint_eq(rail->partition[0].now.key, 0);
    rail->num_partitions = 3; /* the last one in reserve */
    ck_assert_uint_eq(change_table(0x8033, 0x8044), 1);
    ck_assert_uint_eq(moved, 4);
    ck_assert_uint_eq(told_moved, 0x404);
    ck_assert(rail->partition[2].number == 0x33 && rail->partition[2].now.key == 0x8033 && rail->partition[2].late);
    ck_assert_uint_eq(change_table(0x8044, 0x8033), 1); /* there is only one */
    ck_assert(rail->partition[2].now.key == 0x8033 && rail->partition[2].now.index == 3);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("device");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_loop_test(t, poll_fails, 0, 2);
    tcase_add_test(t, device_fatal_event);
    tcase_add_test(t, port_down_before);
    tcase_add_test(t, keys_change);
    return check_run(t, NULL);
}
