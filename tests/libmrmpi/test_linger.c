/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a job: a rank whose channel reports that peers may still need it polls while waiting for the others at the
 * launcher's fence; any other rank blocks there. The other ranks come after a number of polls of this rank.
 */
#include <errno.h>
#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/p2p/p2p.h"
#include "libmrmpi/api/init/helper.h"
#include "libmrmpi/api/init/init.h"
#include "libmrmpi/conn/fabric/names.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/io/io.h"
#include "libmrmpi/rma/rma.h"
#include "libmrmpi/net/net.h"
#include "libmrmpi/net/view/view.h"
#include "tests/check.h"

/* ---- stubs of the folders above and below ---- */

static int polls;
static int polls_needed;     /* before the last rank has come */
static int polls_lingering;  /* number of polls */
static bool in_fence, asked; /* a fence was begun; and asked about */
static int waits;            /* fences waited for */
static int peers_lost;       /* as reported to p2p/ */
static bool parted;          /* pt2pt/ is gone */
static int begin_error;

static int net_poll(void)
{
    polls++;
    if (parted)
        mr_vc_failed(1, -EIO);
    return 0;
}

bool mr_net_lingers(void)
{
    ck_assert(parted);
    return polls < polls_lingering;
}

static bool reaches(int rank)
{
    return rank == 1;
}

static int self_work; /* polls at which channel self has work */

static int self_poll(void)
{
    return self_work && self_work--;
}

static bool reaches_self(int rank)
{
    return rank == 0;
}

const struct mr_channel_ops mr_channel_net = {.name = "net", .poll = net_poll, .reaches = reaches};
const struct mr_channel_ops mr_channel_self = {.name = "self", .poll = self_poll, .reaches = reaches_self};
const struct mr_channel_ops mr_channel_shm = {.name = "shm"};

static int nodes[] = {0, 1}, locals[] = {0};
static const struct mr_launch launch = {.rank = 0,
                                        .size = 2,
                                        .local_size = 1,
                                        .num_nodes = 2,
                                        .node_of = nodes,
                                        .local_ranks = locals,
                                        .job_id = "",
                                        .node_name = "n"};

int mr_launch_init(const struct mr_launch **out)
{
    *out = &launch;
    return 0;
}

enum mr_err mr_comm_meet_parent(void)
{
    return MR_SUCCESS;
}

void mr_launch_started_end(void)
{
}

void mr_fabric_names_close(void)
{
}

int mr_guest_number(const struct mr_card *card)
{
    return -EPROTO;
}

int mr_guest_end(void)
{
    return 3;
}

int mr_launch_put(const char *key, const void *data, size_t len)
{
    return 0;
}

int mr_launch_fence_begin(void)
{
    in_fence = !begin_error;
    return begin_error;
}

int mr_launch_fence_done(void)
{
    ck_assert(in_fence);
    asked = true;
    if (polls < polls_needed)
        return -EAGAIN;
    in_fence = false;
    return 0;
}

int mr_launch_fence_end(void)
{
    ck_assert(in_fence);
    in_fence = false;
    waits++;
    return 0;
}

const char *mr_launch_why(int err)
{
    return "";
}

int mr_launch_finalize(void)
{
    ck_assert(!in_fence);
    return 0;
}

static void failed(struct mr_vc *vc, int error)
{
    peers_lost++;
}

int mr_shm_ready(void)
{
    return 0;
}

int mr_pt2pt_init(void)
{
    return mr_vc_init(&launch, &(struct mr_vc_upcalls){.failed = failed}, &mr_channel_net);
}

void mr_pt2pt_finalize(void)
{
    mr_vc_quiet();
    parted = true;
}

void mr_progress_until(bool (*done)(void *arg), void *arg)
{
    while (!done(arg))
        mr_vc_poll();
}

/* ---- the tests: each in a process of its own ---- */

static void live(int needed, int lingering)
{
    polls_needed = needed;
    polls_lingering = lingering;
    ck_assert_int_eq(mr_init(0), 0);
    mr_finalize();
}

START_TEST(nobody_needs_it)
{
    live(5, 0);
    ck_assert(polls == 0 && waits == 1 && !asked);
}
END_TEST

START_TEST(peers_need_it_to_the_end)
{
    live(5, 1000);
    ck_assert(polls == 5 && waits == 0 && asked);
}
END_TEST

START_TEST(peers_need_it_for_a_while)
{
    live(1000, 3);
    ck_assert(polls == 3 && waits == 1 && asked);
}
END_TEST

START_TEST(all_are_there)
{
    live(0, 1000);
    ck_assert(polls == 0 && waits == 0 && asked);
}
END_TEST

START_TEST(nothing_is_said_to_what_is_gone)
{
    live(5, 1000);
    ck_assert_int_eq(polls, 5);
    ck_assert_int_eq(peers_lost, 0);
}
END_TEST

/* A look counts as idle only if no channel had anything: else a channel that sleeps in between would delay the others.
 */
START_TEST(idle_looks_are_those_of_all_channels)
{
    ck_assert_int_eq(mr_init(0), 0);
    for (unsigned i = 1; i <= 5; i++) {
        mr_vc_poll();
        ck_assert_uint_eq(mr_channel_idle, i);
    }
    self_work = 1;
    mr_vc_poll();
    ck_assert_uint_eq(mr_channel_idle, 0);
    mr_vc_poll();
    ck_assert_uint_eq(mr_channel_idle, 1);
    mr_finalize();
}
END_TEST

START_TEST(launcher_is_gone)
{
    begin_error = -ECONNRESET;
    live(5, 1000);
    ck_assert(polls == 0 && waits == 0 && !asked);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");

    tcase_add_test(t, nobody_needs_it);
    tcase_add_test(t, peers_need_it_to_the_end);
    tcase_add_test(t, peers_need_it_for_a_while);
    tcase_add_test(t, all_are_there);
    tcase_add_test(t, nothing_is_said_to_what_is_gone);
    tcase_add_test(t, idle_looks_are_those_of_all_channels);
    tcase_add_test(t, launcher_is_gone);
    return check_run(t, NULL);
}
