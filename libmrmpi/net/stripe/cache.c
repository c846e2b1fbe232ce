/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory: how much of it is kept, and whether pages are pinned or paged on demand. */
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/net/stripe/keys.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"

/* The setting, or this host's share for each rank of the device with the least room for registrations. */
static void limit_registrations(void)
{
    size_t least = SIZE_MAX;

    for (unsigned i = 0; i < mr_verbs.num_devices; i++)
        if (mr_verbs.device[i].max_mr && mr_verbs.device[i].max_mr < least)
            least = mr_verbs.device[i].max_mr;
    mr_regs_limit((size_t)mr_config.reg_cache_entries, least, (size_t)mr_peers.launch->local_size);
}

/*
 * A page fault of the adapter costs far more than pinning the page, and in the middle of a transfer. So buffers whose
 * registration would stay are pinned, unless the user wants otherwise.
 */
static void choose_on_demand(void)
{
    bool yes = !strcasecmp(mr_config.odp, "yes"), no = !strcasecmp(mr_config.odp, "no");
    unsigned kinds = mr_kinds_set(&mr_peers.kinds), rdma = mr_kinds_that_are(kinds, MR_IS_RDMA);
    bool unreliable = rdma & ~mr_kinds_that_are(rdma, MR_IS_RELIABLE), first = yes || !mr_regs_stay();
    bool tell = !mr_peers.launch->rank;
    const char *without = mr_odp_missing(mr_kinds_that_are(kinds, MR_IS_DATAGRAM));

    if (!yes && !no && strcasecmp(mr_config.odp, "auto") && tell)
        mr_log(MR_LOG_WARN, "MRMPI_ODP=%s: must be auto, yes or no; auto it is", mr_config.odp);
    if (yes && (without || unreliable) && tell)
        mr_log(MR_LOG_WARN, "MRMPI_ODP=yes: %s on-demand paging; large buffers are pinned",
               unreliable ? "unreliable connections (MRMPI_LINKS) cannot use" : "an adapter of this host has no");
    mr_odp_open(no || without || unreliable ? MR_ODP_NEVER : first ? MR_ODP_FIRST : MR_ODP_LAST);
    if (mr_regs.unwatched && mr_config.reg_cache_max && tell)
        mr_log(MR_LOG_INFO, "memory is %s for each large message: %s",
               no || without || unreliable ? "registered anew" : "paged on demand", mr_regs.unwatched);
}

/* Memory to be written, or read over old adapters, has all keys: nothing could be sent in its place. */
static bool reads_all(void)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        if (!mr_verbs.rail[i].addr.reads)
            return false;
    return strcasecmp(mr_config.rndv, "write") != 0;
}

void mr_bulk_caught_up(void)
{
    mr_regs.behind = false;
}

void mr_bulk_open_memory(void)
{
    limit_registrations();
    choose_on_demand();
    mr_bulk.few = mr_verbs.num_devices > 1 && reads_all();
}
