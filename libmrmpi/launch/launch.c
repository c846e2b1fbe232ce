/* SPDX-License-Identifier: BSD-3-Clause */
/* The room's front: picks the launcher's client at init, and hands calls to it. */
#include "libmrmpi/launch/launch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/launch/backend.h"

/* In this order; the last is always present. */
static const struct mr_launch_backend *const backends[] = {
    &mr_launch_pmix,
    &mr_launch_singleton,
};

/* One process has one launcher: the only state of the room. Set by init, cleared by finalize. */
static struct {
    pthread_mutex_t lock;
    const struct mr_launch_backend *backend;
    struct mr_launch_world world;
    struct mr_launch view;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void clear_world(void)
{
    mr_nodemap_clear(&self.world.map);
    free(self.world.job_id);
    free(self.world.node_name);
    memset(&self.world, 0, sizeof(self.world));
    memset(&self.view, 0, sizeof(self.view));
}

static int init_locked(const struct mr_launch **out)
{
    if (self.backend)
        return -EALREADY;

    const struct mr_launch_backend *const *b = backends;
    while (!(*b)->present())
        b++;

    int err = (*b)->init(&self.world);
    if (err) {
        clear_world();
        return err;
    }
    self.backend = *b;
    self.view = (struct mr_launch){
        .rank = self.world.rank,
        .size = self.world.size,
        .local_rank = self.world.map.local_rank,
        .local_size = self.world.map.local_size,
        .num_nodes = self.world.map.num_nodes,
        .node_of = self.world.map.node_of,
        .local_ranks = self.world.map.local_ranks,
        .job_id = self.world.job_id,
        .node_name = self.world.node_name,
    };
    *out = &self.view;
    return 0;
}

int mr_launch_init(const struct mr_launch **out)
{
    pthread_mutex_lock(&self.lock);
    int err = init_locked(out);
    pthread_mutex_unlock(&self.lock);
    return err;
}

int mr_launch_put(const char *key, const void *data, size_t len)
{
    return self.backend ? self.backend->put(key, data, len) : -EINVAL;
}

int mr_launch_fence(void)
{
    return self.backend ? self.backend->fence() : -EINVAL;
}

int mr_launch_get(int rank, const char *key, void *buf, size_t cap, size_t *len)
{
    if (!self.backend || rank < 0 || rank >= self.world.size)
        return -EINVAL;
    return self.backend->get(rank, key, buf, cap, len);
}

int mr_launch_failed(void)
{
    return self.backend ? self.backend->failed() : 0;
}

_Noreturn void mr_launch_abort(int code, const char *why)
{
    /* Before init (or after finalize) there is nobody to tell: what a process without launcher does is right then. */
    const struct mr_launch_backend *b = self.backend ? self.backend : &mr_launch_singleton;
    b->abort(code, why);
}

int mr_launch_finalize(void)
{
    pthread_mutex_lock(&self.lock);
    int err = -EINVAL;
    if (self.backend) {
        err = self.backend->finalize();
        self.backend = NULL;
        clear_world();
    }
    pthread_mutex_unlock(&self.lock);
    return err;
}
