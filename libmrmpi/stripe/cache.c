/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache of registrations: how much it keeps, and whether pages are pinned or paged on demand. */
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/stripe/keys.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/memory/odp.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/memory/watch.h"

/* Both take microseconds, in which completions are not found. */
static void go_away(void)
{
    mr_bulk.away++;
    mr_bulk.behind = true;
}

void mr_bulk_caught_up(void)
{
    mr_bulk.behind = false;
}

static int register_memory(void *addr, size_t len, enum mr_access access, uint32_t devices, struct mr_memory *m)
{
    go_away();
    return mr_memory_add(addr, len, access, devices, m);
}

static void deregister_memory(struct mr_memory *m)
{
    go_away();
    mr_memory_deregister(m);
}

static const struct mr_regcache_backend reg_backend = {.add = register_memory, .remove = deregister_memory};

/* The setting, or this host's share for each rank of the device with the least room for registrations. */
static void limit_registrations(void)
{
    size_t least = SIZE_MAX;

    for (unsigned i = 0; i < mr_verbs.num_devices; i++)
        if (mr_verbs.device[i].max_mr && mr_verbs.device[i].max_mr < least)
            least = mr_verbs.device[i].max_mr;
    mr_regcache_limit_entries(&mr_bulk.regs,
                              mr_config.reg_cache_entries
                                  ? (size_t)mr_config.reg_cache_entries
                                  : mr_regcache_fair_entries(least, (size_t)mr_peers.launch->local_size));
}

/*
 * A page fault of the adapter costs far more than pinning the page does, and in the middle of a transfer. So buffers
 * that would stay registered are pinned, unless the user wants it otherwise.
 */
static void choose_on_demand(void)
{
    bool yes = !strcasecmp(mr_config.odp, "yes"), no = !strcasecmp(mr_config.odp, "no");
    unsigned kinds = mr_kinds_set(&mr_peers.kinds), rdma = mr_kinds_that_are(kinds, MR_IS_RDMA);
    bool unreliable = rdma & ~mr_kinds_that_are(rdma, MR_IS_RELIABLE), first = yes || !mr_bulk.regs.keep;
    bool tell = !mr_peers.launch->rank;
    const char *without = mr_odp_missing(mr_kinds_that_are(kinds, MR_IS_DATAGRAM));

    if (!yes && !no && strcasecmp(mr_config.odp, "auto") && tell)
        mr_log(MR_LOG_WARN, "MRMPI_ODP=%s: must be auto, yes or no; auto it is", mr_config.odp);
    if (yes && (without || unreliable) && tell)
        mr_log(MR_LOG_WARN, "MRMPI_ODP=yes: %s on-demand paging; large buffers are pinned",
               unreliable ? "unreliable connections (MRMPI_LINKS) cannot use" : "an adapter of this host has no");
    mr_odp_open(no || without || unreliable ? MR_ODP_NEVER : first ? MR_ODP_FIRST : MR_ODP_LAST);
    if (!mr_bulk.regs.keep && mr_config.reg_cache_max && tell && (no || without || unreliable))
        mr_log(MR_LOG_INFO,
               "memory is registered anew for each large message: its unmapping cannot be watched here (the "
               "program has an allocator of its own)");
}

void mr_bulk_open_cache(void)
{
    mr_regcache_init(&mr_bulk.regs, &reg_backend, mr_config.reg_cache_max, mr_memory_watched());
    mr_memory_watch_for(&mr_bulk.regs);
}

/* What is written, or may be read over old adapters, has all keys: nothing could be sent in its place. */
static bool reads_all(void)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        if (!mr_verbs.rail[i].addr.reads)
            return false;
    return strcasecmp(mr_config.rndv, "write") != 0;
}

void mr_bulk_open_memory(void)
{
    limit_registrations();
    choose_on_demand();
    mr_bulk.few = mr_verbs.num_devices > 1 && reads_all();
}

void mr_bulk_close_cache(void)
{
    mr_memory_watch_for(NULL);
    mr_odp_close();
    mr_regcache_clear(&mr_bulk.regs);
    if (mr_config.leaks && mr_bulk.regs.bytes)
        mr_log_print(MR_LOG_WARN, "leak: %zu bytes of memory are still registered", mr_bulk.regs.bytes);
}
