/* SPDX-License-Identifier: BSD-3-Clause */
/* Policies in use: the user's, fabricd's, the standard policy; and the subchannels that a policy allows. */
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/conn/route/health.h"
#include "tests/check.h"
#include "tests/libmrmpi/fake_peer.h"

struct mr_peers mr_peers;
struct mr_peers_own mr_peers_own;
struct mr_verbs mr_verbs;
static unsigned asked;

/* The second rail is near. */
static bool apart;
bool mr_rails_are_apart(void)
{
    return apart;
}

void mr_rails_distances(unsigned out[MR_RAILS_MAX])
{
    asked++;
    out[0] = 20;
    out[1] = 10;
}

static void setup(void)
{
    make_peer();
    memset(&mr_peers_own, 0, sizeof mr_peers_own);
    memset(&mr_verbs, 0, sizeof mr_verbs);
    asked = 0;
    apart = false;
    snprintf(device.name, sizeof device.name, "mlx5_0");
    mr_verbs.num_rails = SUBS;
    for (unsigned i = 0; i < SUBS; i++) {
        mr_verbs.rail[i].dev = &device;
        mr_verbs.rail[i].port = i + 1;
    }
    mr_config.policy_small = mr_config.policy_large = "auto";
}

static void fabric_says(const char *small, const char *large)
{
    strcpy(mr_peers.qos.spread[MR_POLICY_SMALL], small);
    strcpy(mr_peers.qos.spread[MR_POLICY_LARGE], large);
}

/* No settings: the standard policies, which allow all rails. */
START_TEST(standard)
{
    ck_assert_int_eq(mr_spread_init(), 0);
    ck_assert_uint_eq(mr_peers_own.policy_rails[MR_POLICY_SMALL], 3);
    ck_assert_uint_eq(mr_peers_own.policy_rails[MR_POLICY_LARGE], 3);
    ck_assert_uint_eq(mr_spread_narrow(&peer, MR_POLICY_LARGE, 3), 3);
}
END_TEST

/* hwloc, which takes long, is asked only where adapters are at several nodes; then the far one is known. */
START_TEST(standard_prefers_near)
{
    ck_assert_int_eq(mr_spread_init(), 0);
    ck_assert_uint_eq(asked, 0);
    ck_assert(!mr_spread_is_far(0) && !mr_spread_is_far(1));
    apart = true;
    ck_assert_int_eq(mr_spread_init(), 0);
    ck_assert_uint_eq(asked, 1);
    ck_assert(mr_spread_is_far(0) && !mr_spread_is_far(1));
    ck_assert_uint_eq(mr_peers_own.policy_rails[MR_POLICY_SMALL], 3);
    mr_config.policy_small = "round-robin";
    ck_assert_int_eq(mr_spread_init(), 0);
    ck_assert(!mr_spread_is_far(0));
}
END_TEST

/* The user's policy is followed whatever fabricd says; distances are measured once. */
START_TEST(user)
{
    mr_config.policy_small = "near";
    mr_config.policy_large = "binding:near";
    fabric_says("even", "even");
    ck_assert_int_eq(mr_spread_init(), 0);
    ck_assert_uint_eq(mr_peers_own.policy_rails[MR_POLICY_SMALL], 2);
    ck_assert_uint_eq(mr_peers_own.policy_rails[MR_POLICY_LARGE], 2);
    ck_assert_uint_eq(asked, 1);
    mr_spread_news();
    ck_assert_uint_eq(mr_peers_own.policy_rails[MR_POLICY_SMALL], 2);
}
END_TEST

/* An invalid policy ends the start if the user's; fabricd's is replaced by the standard policy. */
START_TEST(bad_policies)
{
    fabric_says("bogus", "even");
    ck_assert_int_eq(mr_spread_init(), 0);
    ck_assert_uint_eq(mr_peers_own.policy_rails[MR_POLICY_SMALL], 3);
    mr_config.policy_large = "bogus";
    ck_assert_int_eq(mr_spread_init(), -EINVAL);
}
END_TEST

/* fabricd's policy is followed, and changes while the job runs; without one, the standard policy holds again. */
START_TEST(news)
{
    ck_assert_int_eq(mr_spread_init(), 0);
    fabric_says("near", "");
    mr_spread_news();
    ck_assert_uint_eq(mr_peers_own.policy_rails[MR_POLICY_SMALL], 2);
    ck_assert_uint_eq(mr_peers_own.policy_rails[MR_POLICY_LARGE], 3);
    fabric_says("", "");
    mr_spread_news();
    ck_assert_uint_eq(mr_peers_own.policy_rails[MR_POLICY_SMALL], 3);
}
END_TEST

/* The allowed part of a set; if empty, the whole set: a message prefers another rail to none. */
START_TEST(narrowed)
{
    mr_config.policy_small = "near";
    ck_assert_int_eq(mr_spread_init(), 0);
    ck_assert_uint_eq(mr_spread_narrow(&peer, MR_POLICY_SMALL, 3), 2);
    ck_assert_uint_eq(mr_spread_narrow(&peer, MR_POLICY_SMALL, 1), 1);
    ck_assert_uint_eq(mr_spread_narrow(&peer, MR_POLICY_SMALL, 0), 0);
    ck_assert_uint_eq(mr_spread_narrow(&peer, MR_POLICY_LARGE, 3), 3);
    peer.now[1].rail = &rails[0];
    ck_assert_uint_eq(mr_spread_narrow(&peer, MR_POLICY_SMALL, 3), 3);
}
END_TEST

static void fall_sick(unsigned i, uint32_t sick, uint32_t small_sick)
{
    loads[0][i].sick = sick;
    loads[0][i].small_sick = small_sick;
}

/* Small messages leave a sick rail, large messages a rail without a weight; if none is better, no rail is left. */
START_TEST(unwell)
{
    ck_assert_int_eq(mr_spread_init(), 0);
    mr_peers.unwell = true;
    fall_sick(1, 0, 100);
    ck_assert_uint_eq(mr_spread_narrow(&peer, MR_POLICY_SMALL, 3), 1);
    ck_assert_uint_eq(mr_spread_narrow(&peer, MR_POLICY_LARGE, 3), 3);
    ck_assert_uint_eq(mr_spread_narrow(&peer, MR_POLICY_SMALL, 2), 2);
    fall_sick(1, MR_WEIGHT_MAX, MR_WEIGHT_MAX);
    ck_assert_uint_eq(mr_spread_narrow(&peer, MR_POLICY_LARGE, 3), 1);
    ck_assert_uint_eq(mr_spread_narrow(&peer, MR_POLICY_LARGE, 2), 2);
    fall_sick(0, MR_WEIGHT_MAX, MR_WEIGHT_MAX);
    ck_assert_uint_eq(mr_spread_narrow(&peer, MR_POLICY_SMALL, 3), 3);
    ck_assert_uint_eq(mr_spread_narrow(&peer, MR_POLICY_LARGE, 3), 3);
    fall_sick(0, 0, 0); /* a policy that binds to the rail without a weight does not keep the messages there */
    mr_config.policy_small = "near";
    apart = true;
    ck_assert_int_eq(mr_spread_init(), 0);
    ck_assert_uint_eq(mr_spread_narrow(&peer, MR_POLICY_SMALL, 3), 1);
}
END_TEST

/* Health values sent between ranks are exact at both ends of the range, and within a fifteenth between. */
START_TEST(health_word)
{
    ck_assert_uint_eq(mr_health_put(0, 3, 0), 0);
    ck_assert_uint_eq(mr_health_of(mr_health_put(0, 7, MR_WEIGHT_MAX), 7), MR_WEIGHT_MAX);
    for (uint32_t sick = 1; sick < MR_WEIGHT_MAX; sick++) {
        uint32_t there = mr_health_of(mr_health_put(mr_health_put(0, 0, MR_WEIGHT_MAX), 2, sick), 2);

        ck_assert(there > 0 && there < MR_WEIGHT_MAX && there + 70 > sick && there < sick + 70);
    }
    ck_assert_uint_eq(mr_health_both(0, 0), 0);
    ck_assert_uint_eq(mr_health_both(512, 512), 768);
    ck_assert_uint_eq(mr_health_both(MR_WEIGHT_MAX, 0), MR_WEIGHT_MAX);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("spread");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, standard);
    tcase_add_test(c, standard_prefers_near);
    tcase_add_test(c, user);
    tcase_add_test(c, bad_policies);
    tcase_add_test(c, news);
    tcase_add_test(c, narrowed);
    tcase_add_test(c, unwell);
    tcase_add_test(c, health_word);
    return check_run(c, NULL);
}
