/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/verbs/memory/use.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/memory/odp.h"
#include "libmrmpi/verbs/memory/watch.h"
#include "libmrmpi/verbs/memory/memory.h"

struct mr_regs mr_regs;
struct mr_regs_own mr_regs_own;

/* Both take microseconds, without polls for completions. */
static void go_away(void)
{
    mr_regs.away++;
    mr_regs.behind = true;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        mr_regs_own.emptied[i] = mr_verbs.rail[i].emptied;
}

bool mr_regs_is_behind(void)
{
    for (unsigned i = 0; mr_regs.behind && i < mr_verbs.num_rails; i++)
        if (mr_verbs.rail[i].next_polled && mr_verbs.rail[i].emptied - mr_regs_own.emptied[i] < 2)
            return true;
    mr_regs.behind = false;
    return false;
}

static int register_uncached(void *addr, size_t len, enum mr_access access, uint32_t devices, struct mr_memory *m)
{
    go_away();
    return mr_memory_add(addr, len, access, devices, m);
}

static void deregister_memory(struct mr_memory *m)
{
    go_away();
    mr_memory_deregister(m);
}

static const struct mr_regcache_backend reg_backend = {.add = register_uncached, .remove = deregister_memory};

void mr_regs_open(void)
{
    memset(&mr_regs, 0, sizeof mr_regs);
    memset(&mr_regs_own, 0, sizeof mr_regs_own);
    mr_regs.unwatched = mr_config.reg_cache_max ? mr_memory_watch_begin() : NULL;
    mr_regcache_init(&mr_regs_own.cache, &reg_backend, mr_config.reg_cache_max, !mr_regs.unwatched);
    mr_stat_set(MR_STAT_REG_KEPT, mr_regs_own.cache.keep);
    mr_memory_watch_for(&mr_regs_own.cache);
}

void mr_regs_close(void)
{
    mr_memory_watch_for(NULL);
    mr_odp_close();
    mr_regcache_clear(&mr_regs_own.cache);
    if (mr_config.leaks && mr_regs_own.cache.bytes)
        mr_log_print(MR_LOG_WARN, "leak: %zu bytes of memory are still registered", mr_regs_own.cache.bytes);
}

void mr_regs_limit(size_t registrations, size_t max_regions, size_t ranks)
{
    mr_regcache_limit_entries(&mr_regs_own.cache,
                              registrations ? registrations : mr_regcache_fair_entries(max_regions, ranks));
}

bool mr_regs_stay(void)
{
    return mr_regs_own.cache.keep;
}

uint32_t mr_regs_devices(void)
{
    uint32_t set = 0;

    for (unsigned i = 0; i < mr_verbs.num_devices; i++)
        set |= (uint32_t)!mr_verbs.device[i].fatal << i;
    return set;
}

bool mr_regs_has(const void *buf, size_t len)
{
    const struct mr_reg *r;

    if (mr_odp_comes_first())
        return true;
    r = mr_regcache_refresh(&mr_regs_own.cache, buf, len, MR_ACCESS_TARGET);
    return r && !(mr_regs_devices() & ~mr_memory_devices(&r->memory));
}

const struct mr_reg *mr_regs_find(const void *buf, size_t len)
{
    return mr_regcache_refresh(&mr_regs_own.cache, buf, len, MR_ACCESS_SOURCE);
}

bool mr_regs_has_some(const void *buf, size_t len)
{
    return mr_odp_comes_first() || mr_regs_find(buf, len);
}

bool mr_regs_know(const void *buf, size_t len)
{
    return mr_regcache_knows(&mr_regs_own.cache, buf, len);
}

int mr_regs_extend(struct mr_reg *r, struct mr_reg_wish wish)
{
    return mr_regcache_extend(&mr_regs_own.cache, r, wish);
}

int mr_regs_get_with(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg_wish wish,
                     struct mr_reg **out)
{
    int err;

    *out = pinned ? NULL : mr_odp_get(buf, len, access, false);
    if (*out)
        return 0;
    err = mr_regcache_get(&mr_regs_own.cache, buf, len, access, wish, out);
    if (err == -ENOMEM && !pinned && (*out = mr_odp_get(buf, len, access, true)))
        return 0;
    if (err)
        mr_log(MR_LOG_ERROR, "%zu bytes at %p cannot be registered for %s: %s%s", len, buf,
               access == MR_ACCESS_TARGET ? "receiving" : "sending", strerror(-err), mr_log_memory_advice(err));
    return err;
}

int mr_regs_get(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg **out)
{
    return mr_regs_get_with(buf, len, access, pinned, (struct mr_reg_wish){.devices = mr_regs_devices()}, out);
}

void mr_regs_release(struct mr_reg *r)
{
    if (!mr_odp_owns(r))
        mr_regcache_put(&mr_regs_own.cache, r);
}

/* The first device that works and has atomics, as a set. */
static uint32_t atomic_device(void)
{
    uint32_t set = mr_regs_devices();

    for (unsigned i = 0; i < mr_verbs.num_devices; i++)
        if (set >> i & 1 && mr_verbs.device[i].atomics)
            return 1u << i;
    return 0;
}

/* No more of them than the cache may have: there are other ranks' registrations, and the cache's own. */
int mr_regs_get_alone(void *buf, size_t len, enum mr_access access, struct mr_reg **out)
{
    uint32_t devices = access == MR_ACCESS_ATOMIC ? atomic_device() : mr_regs_devices();
    struct mr_reg *r = mr_regs_own.num_alone < mr_regs_own.cache.max_entries ? calloc(1, sizeof *r) : NULL;
    int err;

    if (!r || !devices) {
        free(r);
        return r ? -EOPNOTSUPP : -ENOMEM;
    }
    go_away();
    err = mr_memory_add(buf, len, access, devices, &r->memory);
    if (err) {
        mr_log(MR_LOG_DEBUG, "%zu bytes at %p cannot be registered alone: %s", len, buf, strerror(-err));
        free(r);
        return err;
    }
    mr_regs_own.num_alone++;
    *out = r;
    return 0;
}

void mr_regs_end_alone(struct mr_reg *r)
{
    go_away();
    mr_memory_deregister(&r->memory);
    mr_regs_own.num_alone--;
    free(r);
}
