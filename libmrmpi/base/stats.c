/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters and their names, and how they are printed at the end of a job. */
#include "libmrmpi/base/base.h"

#include <stdio.h>

uint64_t mr_stats[MR_STAT_COUNT];

static const char *const names[MR_STAT_COUNT] = {
    [MR_STAT_EAGER_SENT] = "eager_sent",   [MR_STAT_RNDV_SENT] = "rendezvous_sent",
    [MR_STAT_UNEXPECTED] = "unexpected",   [MR_STAT_OUT_OF_ORDER] = "out_of_order",
    [MR_STAT_SHM_SENT] = "shm_sent",       [MR_STAT_SHM_SINGLE_COPY] = "shm_single_copy_bytes",
    [MR_STAT_NET_SENT] = "net_sent",       [MR_STAT_NET_STRIPES] = "net_stripes",
    [MR_STAT_NET_REWEIGHED] = "net_reweighed",
    [MR_STAT_REG_HITS] = "reg_cache_hits", [MR_STAT_REG_MISSES] = "reg_cache_misses",
    [MR_STAT_CONNECTS] = "connects",       [MR_STAT_CONNECT_RETRIES] = "connect_retries",
};

const char *mr_stat_name(enum mr_stat s)
{
    return s < MR_STAT_COUNT ? names[s] : "";
}

void mr_stats_print(void)
{
    char line[900];
    int used = 0;

    for (int s = 0; s < MR_STAT_COUNT && used < (int)sizeof(line); s++)
        if (mr_stats[s])
            used += snprintf(line + used, sizeof(line) - used, " %s=%llu", names[s], (unsigned long long)mr_stats[s]);
    mr_log_print(MR_LOG_INFO, "counters:%s", used ? line : " all zero");
}
