/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher and the world communicator of tests (fake_world.h). Cards and fences live in memory shared by fork. */
#include "tests/libmrmpi/fake_world.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/model.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/p2p/p2p.h"
#include "libmrmpi/launch/backend.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/net/net.h"
#include "libmrmpi/net/view/view.h"

#define RANKS 128

static struct shared {
    pthread_barrier_t fence;
    size_t len[RANKS];
    char address[RANKS][128];
} * shared;

static int zeros[RANKS], identity[RANKS];
static struct mr_launch launch = {
    .num_nodes = 1, .node_of = zeros, .local_ranks = identity, .job_id = "", .node_name = ""};
static struct mr_group group = {.refs = 1, .world = identity};
static struct mr_comm world = {.refs = 1, .group = &group, .peers = &group};
struct mr_comm *mr_comm_world = &world, *mr_comms;
struct mr_core_upcalls mr_core_up;

/* Functions of other folders called by the code under test. */
static struct mr_type byte = {.refs = 1, .size = 1, .extent = 1, .true_extent = 1, .contiguous = true, .builtin = true};
struct mr_type *const mr_type_byte = &byte;
/* Replaced by a test that defines its own. */
#define WEAK __attribute__((weak))
WEAK const struct mr_channel_ops mr_channel_net = {.name = "none"};

void mr_net_lose(struct mr_vc *vc)
{
}

unsigned mr_net_devices(void)
{
    return 1;
}

bool mr_net_is_registered(const void *buf, size_t len)
{
    return false;
}

WEAK int mr_net_reserve(struct mr_vc *vc, unsigned packets)
{
    return 0;
}

WEAK unsigned mr_net_rate(const struct mr_vc *vc, size_t len, uint32_t without, size_t *whole)
{
    return 0;
}

bool mr_net_copies(const struct mr_vc *vc, const void *buf, size_t len)
{
    return false;
}

int mr_net_zsend(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len,
                 const struct mr_vc_zsender *zsender)
{
    return mr_vc_send(vc, hdr, payload, len);
}

int mr_net_begin_transfer(struct mr_vc *vc, const struct mr_net_transfer *t)
{
    return -EOPNOTSUPP;
}

static bool apart;

const struct mr_launch *mr_launch_info(void)
{
    return &launch;
}

int mr_launch_put(const char *key, const void *data, size_t len)
{
    memcpy(shared->address[launch.rank], data, len);
    shared->len[launch.rank] = len;
    return 0;
}

int mr_launch_get(int rank, const char *key, void *buf, size_t cap, size_t *len)
{
    *len = shared->len[rank];
    if (!*len || *len > cap)
        return -ENOENT;
    memcpy(buf, shared->address[rank], *len);
    return 0;
}

int mr_launch_fence(void)
{
    pthread_barrier_wait(&shared->fence);
    return 0;
}

_Noreturn void mr_launch_abort(int code, const char *why)
{
    fprintf(stderr, "abort: %s\n", why);
    _exit(code ? code : 1);
}

void mr_type_pack(const void *buf, size_t count, const struct mr_type *type, size_t offset, void *out, size_t len)
{
    memcpy(out, (const char *)buf + offset, len);
}

void mr_type_unpack(void *buf, size_t count, const struct mr_type *type, size_t offset, const void *in, size_t len)
{
    memcpy((char *)buf + offset, in, len);
}

size_t mr_type_grain(const struct mr_type *t)
{
    return t->size;
}

void mr_type_put(struct mr_type *t)
{
    t->refs--;
}

static int live(int rank, int size, int (*body)(int rank, int size))
{
    int result;

    launch.rank = launch.local_rank = rank;
    launch.size = launch.local_size = size;
    mr_guests_begin(&launch);
    if (apart) {
        launch.local_rank = 0;
        launch.local_size = 1;
        launch.num_nodes = size;
        launch.node_of = identity;
    }
    group.size = world.size = size;
    group.rank = world.rank = rank;
    if (mr_config_init() || mr_model_init(NULL, 0) || mr_pt2pt_init())
        return 1;
    mr_log_identity(rank, rank, "");
    mr_launch_fence();
    if (mr_shm_ready())
        return 1;
    result = body(rank, size);
    mr_pt2pt_end_together();
    mr_derived_finalize();
    mr_pt2pt_finalize();
    mr_launch_fence();
    mr_vc_finalize();
    mr_config_finalize();
    return result;
}

void fake_world_apart(void)
{
    apart = true;
}

int fake_world_run(int ranks, int (*body)(int rank, int size))
{
    pthread_barrierattr_t attr;
    int failed = 0, status;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->fence, &attr, ranks);
    for (int r = 0; r < RANKS; r++)
        identity[r] = r;
    fflush(NULL);
    for (int r = 0; r < ranks; r++)
        if (fork() == 0)
            exit(live(r, ranks, body));
    while (wait(&status) > 0)
        failed |= status != 0;
    munmap(shared, sizeof(*shared));
    return failed;
}
