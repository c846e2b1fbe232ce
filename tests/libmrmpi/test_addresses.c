/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses by the launcher: published values, accepted values of a peer, and the thread that asks meanwhile. */
#include "tests/check.h"
#include "tests/libmrmpi/fake_peer.h"

#include <pthread.h>
#include <unistd.h>

#include "libmrmpi/base/lock.h"
#include "libmrmpi/verbs/verbs.h"

struct mr_peers mr_peers;
struct mr_peers_own mr_peers_own;
struct mr_verbs mr_verbs;
bool mr_threaded;

static struct mr_address published, theirs;
static size_t published_len;
static unsigned resumed, asked;
static int get_error;
static pthread_t asker;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* the launcher answers while the gate is open */

int mr_launch_put(const char *key, const void *data, size_t len)
{
    memcpy(&published, data, len);
    published_len = len;
    return 0;
}

int mr_launch_get(int rank, const char *key, void *buf, size_t cap, size_t *len)
{
    ck_assert_int_eq(rank, 1);
    pthread_mutex_lock(&gate);
    asked++;
    asker = pthread_self();
    *len = mr_address_length(theirs.num_rails, theirs.num_partitions);
    memcpy(buf, &theirs, *len);
    pthread_mutex_unlock(&gate);
    return get_error;
}

void mr_cm_resume(struct mr_cm_conn *c, uint64_t now_ns)
{
    ck_assert_ptr_eq(c, &peer.cm);
    resumed++;
}

static void setup(void)
{
    make_peer();
    memset(&mr_peers_own, 0, sizeof mr_peers_own);
    memset(&theirs, 0, sizeof theirs);
    theirs = (struct mr_address){.magic = MR_ADDRESS_MAGIC,
                                 .version = MR_ADDRESS_VERSION,
                                 .num_rails = 1,
                                 .paths = 1,
                                 .eager_max = 8192,
                                 .host = "h2",
                                 .rail[0] = {.lid = 7, .mtu = 5}};
    peer.address = &mr_address_none;
    mr_threaded = false;
    resumed = asked = 0;
    get_error = 0;
    mr_config.pairs = "matched";
    mr_config.paths = 2;
    mr_config.eager_max = 4096;
    launch.node_name = "";
}

static void teardown(void)
{
    mr_addresses_close();
    mr_address_drop(&peer);
}

START_TEST(ours)
{
    mr_verbs.num_rails = 2;
    mr_verbs.rail[1].addr.lid = 42;
    for (unsigned i = 0; i < 2; i++) {
        mr_verbs.rail[i].num_partitions = i + 1;
        mr_verbs.rail[i].partition[i] =
            (struct mr_rail_partition){.number = 0x11, .now = {.key = 0x8011}, .ud_qpn = 7 + i};
    }
    mr_verbs.rail[1].partition[0] = (struct mr_rail_partition){.number = 0x22}; /* the port has just gone down */
    mr_config.pairs = _i ? "all" : "matched";
    launch.node_name = "part-3";
    ck_assert_int_eq(mr_address_publish(), 0);
    ck_assert_uint_eq(published_len, mr_address_length(2, 3));
    ck_assert_int_eq(mr_address_check(&published, published_len), -EPROTO); /* its rails are none */
    ck_assert_uint_eq(mr_address_partition(&published, 0, 0x8011)->ud_qpn, 7);
    ck_assert_uint_eq(mr_address_partition(&published, 1, 0x0011)->ud_qpn, 8);
    ck_assert_uint_eq(mr_address_partition(&published, 1, 0x0022)->key, 0x0022);
    ck_assert_ptr_null(mr_address_partition(&published, 0, 0x0022));
    ck_assert_uint_eq(published.rail[1].lid, 42);
    ck_assert_uint_eq(published.all_pairs, _i);
    ck_assert_uint_eq(published.kinds, 1u << MR_LINK_RC);
    ck_assert_uint_eq(published.eager_max, 4096);
    ck_assert_str_eq(published.host, "part-3");
    published.rail[0].mtu = published.rail[1].mtu = 5;
    ck_assert_int_eq(mr_address_check(&published, published_len), 0);
}
END_TEST

/* Without threads the launcher is waited for, and asked once. */
START_TEST(taken)
{
    ck_assert_int_eq(mr_peer_fetch_address(&peer), 0);
    ck_assert_uint_eq(peer.address->rail[0].lid, 7);
    ck_assert_str_eq(peer.address->host, "h2");
    ck_assert_int_eq(mr_peer_fetch_address(&peer), 0);
    ck_assert_uint_eq(asked, 1);
    mr_address_drop(&peer);
    ck_assert_ptr_eq(peer.address, &mr_address_none);
}
END_TEST

/* An invalid address stays an error, and is not requested again; except while the ranks meet. */
START_TEST(not_taken)
{
    static const int errors[] = {-ENOENT, -EPROTONOSUPPORT, -EPROTO, -EBUSY};

    if (_i == 1)
        theirs.version++;
    else if (_i == 2)
        theirs.eager_max = 0;
    else
        get_error = errors[_i];
    ck_assert_int_eq(mr_peer_fetch_address(&peer), errors[_i]);
    ck_assert_int_eq(mr_peer_fetch_address(&peer), errors[_i]);
    ck_assert_uint_eq(asked, _i == 3 ? 2 : 1);
    ck_assert_ptr_eq(peer.address, &mr_address_none);
    get_error = 0;
    ck_assert_int_eq(mr_peer_fetch_address(&peer), _i == 3 ? 0 : errors[_i]);
}
END_TEST

/* With threads, another thread asks: -EAGAIN until the answer, then connecting goes on, once. */
START_TEST(taken_meanwhile)
{
    mr_threaded = true;
    get_error = _i ? -ENOENT : 0;
    pthread_mutex_lock(&gate);
    ck_assert_int_eq(mr_peer_fetch_address(&peer), -EAGAIN);
    ck_assert_int_eq(mr_peer_fetch_address(&peer), -EAGAIN);
    mr_addresses_poll();
    ck_assert_uint_eq(resumed, 0);
    ck_assert_uint_eq(mr_peers_own.num_fetching, 1);
    pthread_mutex_unlock(&gate);
    for (unsigned i = 0; i < 5000 && mr_peers_own.num_fetching; i++) {
        mr_addresses_poll();
        usleep(1000);
    }
    ck_assert_uint_eq(mr_peers_own.num_fetching, 0);
    ck_assert_uint_eq(resumed, 1);
    ck_assert_uint_eq(asked, 1);
    ck_assert(!pthread_equal(asker, pthread_self()));
    ck_assert_int_eq(mr_peer_fetch_address(&peer), get_error);
    ck_assert_uint_eq(peer.address->magic, _i ? 0 : MR_ADDRESS_MAGIC);
}
END_TEST

/* The end does not wait for an answer to be taken. */
START_TEST(closed_meanwhile)
{
    mr_threaded = true;
    ck_assert_int_eq(mr_peer_fetch_address(&peer), -EAGAIN);
    mr_addresses_close();
    mr_addresses_close();
    ck_assert_uint_eq(resumed, 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("addresses");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, ours, 0, 2);
    tcase_add_test(c, taken);
    tcase_add_loop_test(c, not_taken, 0, 4);
    tcase_add_loop_test(c, taken_meanwhile, 0, 2);
    tcase_add_test(c, closed_meanwhile);
    return check_run(c, NULL);
}
