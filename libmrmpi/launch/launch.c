/* SPDX-License-Identifier: BSD-3-Clause */
/* The room's front: picks the launcher's client at init, and hands calls to it. */
#include "libmrmpi/launch/launch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/backend.h"
#include "libmrmpi/launch/detect.h"

/*
 * Address space given back before the launcher's client ends the job: a process without memory could not report
 * otherwise, and libpmix crashes. The space is never touched.
 */
#define ABORT_RESERVE (1u << 20)

/* A process has one launcher: the only state of the folder. Set by init, cleared by finalize. */
static struct {
    pthread_mutex_t lock;
    const struct mr_launch_backend *backend;
    struct mr_launch_world world;
    struct mr_launch view;
    void *reserve; /* NULL: none */
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The client knows the fault; the caller often knows only that no result came. */
static int logged(int err)
{
    if (err && mr_launch_fault())
        mr_log(MR_LOG_ERROR, "%s", mr_launch_fault());
    return err;
}

static void clear_world(void)
{
    mr_nodemap_clear(&self.world.map);
    free(self.world.job_id);
    free(self.world.space);
    free(self.world.node_name);
    memset(&self.world, 0, sizeof(self.world));
    memset(&self.view, 0, sizeof(self.view));
}

static void take_reserve(void)
{
    self.reserve = mmap(NULL, ABORT_RESERVE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (self.reserve == MAP_FAILED)
        self.reserve = NULL;
}

/* Threads may abort at the same time. */
static void give_reserve(void)
{
    void *reserve = __atomic_exchange_n(&self.reserve, NULL, __ATOMIC_ACQ_REL);

    if (reserve)
        munmap(reserve, ABORT_RESERVE);
}

static int init_locked(const struct mr_launch **out)
{
    if (self.backend)
        return -EALREADY;

    const struct mr_launch_backend *backend;
    int err = mr_detect(&backend);
    if (!err)
        err = backend->init(&self.world);
    if (err) {
        clear_world();
        return err;
    }
    self.backend = backend;
    take_reserve();
    self.view = (struct mr_launch){
        .rank = self.world.rank,
        .size = self.world.size,
        .appnum = self.world.appnum,
        .local_rank = self.world.map.local_rank,
        .local_size = self.world.map.local_size,
        .num_nodes = self.world.map.num_nodes,
        .node_of = self.world.map.node_of,
        .local_ranks = self.world.map.local_ranks,
        .job_id = self.world.job_id,
        .space = self.world.space,
        .node_name = self.world.node_name,
    };
    mr_guests_begin(&self.view);
    *out = &self.view;
    return 0;
}

int mr_launch_init(const struct mr_launch **out)
{
    pthread_mutex_lock(&self.lock);
    mr_launch_clear_fault();
    int err = init_locked(out);
    pthread_mutex_unlock(&self.lock);
    return err;
}

const struct mr_launch *mr_launch_info(void)
{
    return self.backend ? &self.view : NULL;
}

int mr_launch_put(const char *key, const void *data, size_t len)
{
    mr_launch_clear_fault();
    return self.backend ? logged(self.backend->put(key, data, len)) : -EINVAL;
}

int mr_launch_fence_begin(void)
{
    mr_launch_clear_fault();
    return self.backend ? logged(self.backend->fence_begin()) : -EINVAL;
}

int mr_launch_fence_done(void)
{
    mr_launch_clear_fault();
    return self.backend ? logged(self.backend->fence_end(false)) : -EINVAL;
}

int mr_launch_fence_end(void)
{
    mr_launch_clear_fault();
    return self.backend ? logged(self.backend->fence_end(true)) : -EINVAL;
}

int mr_launch_fence(void)
{
    int err = mr_launch_fence_begin();

    return err ? err : mr_launch_fence_end();
}

int mr_launch_get(int rank, const char *key, void *buf, size_t cap, size_t *len)
{
    mr_launch_clear_fault();
    if (!self.backend || rank < 0 || rank >= self.world.size)
        return -EINVAL;
    return logged(self.backend->get(rank, key, buf, cap, len));
}

int mr_launch_publish_name(const char *name, const char *value)
{
    mr_launch_clear_fault();
    if (!self.backend || !self.backend->publish_name)
        return -EOPNOTSUPP;
    return self.backend->publish_name(name, value);
}

int mr_launch_look_up_name(const char *name, char *value, size_t cap)
{
    mr_launch_clear_fault();
    if (!self.backend || !self.backend->look_up_name)
        return -EOPNOTSUPP;
    return self.backend->look_up_name(name, value, cap);
}

int mr_launch_unpublish_name(const char *name)
{
    mr_launch_clear_fault();
    if (!self.backend || !self.backend->unpublish_name)
        return -EOPNOTSUPP;
    return self.backend->unpublish_name(name);
}

int mr_launch_universe(void)
{
    mr_launch_clear_fault();
    int n = self.backend && self.backend->universe ? self.backend->universe() : 0;

    return n > 0 ? n : 0;
}

int mr_launch_parts(int **ranks)
{
    *ranks = NULL;
    return self.backend && self.backend->parts ? self.backend->parts(ranks) : 0;
}

int mr_launch_parent(char *port, size_t cap)
{
    return self.backend && self.backend->parent ? self.backend->parent(port, cap) : -ENOENT;
}

int mr_launch_start(const struct mr_launch_order *order)
{
    int err;

    mr_launch_clear_fault();
    if ((err = mr_launch_check(order)))
        return err;
    err = self.backend && self.backend->start ? self.backend->start(order) : -EOPNOTSUPP;
    if (err != -EOPNOTSUPP)
        return err;
    mr_launch_clear_fault();
    return mr_launch_start_mrrun(order);
}

const char *mr_launch_replaced(void)
{
    if (!self.backend || self.backend == &mr_launch_singleton)
        return NULL;
    if (self.backend != &mr_launch_pmix)
        return mr_detect_pmi_launcher();
    return mr_detect_one_server() ? NULL : mr_detect_pmix_launcher();
}

void mr_launch_started_end(void)
{
    mr_launch_started_leave(!self.world.space || !*self.world.space);
}

bool mr_launch_waited(struct mr_launch_wait *w)
{
    mr_launch_count_ms(&w->clock_ms, &w->waited_ms);
    return mr_launch_failed() ||
           (mr_config.launcher_timeout_s && w->waited_ms >= mr_config.launcher_timeout_s * INT64_C(1000));
}

int mr_launch_failed(void)
{
    return self.backend ? self.backend->failed() : 0;
}

_Noreturn void mr_launch_abort(int code, const char *reason)
{
    /* before init (or after finalize) there is no launcher: acts as a process without launcher */
    const struct mr_launch_backend *b = self.backend ? self.backend : &mr_launch_singleton;
    give_reserve();
    b->abort(code, reason);
}

int mr_launch_finalize(void)
{
    pthread_mutex_lock(&self.lock);
    int err = -EINVAL;
    if (self.backend) {
        err = self.backend->finalize();
        self.backend = NULL;
        mr_launch_forget_ends();
        mr_guests_end();
        give_reserve();
        clear_world();
    }
    pthread_mutex_unlock(&self.lock);
    return err;
}
