/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints the metrics of a host beyond other tests: metrics_worst NUM gives the host NUM rails, each with a name that
 * must be escaped. The rest of the daemon is made here.
 */
#include "fabricd/metrics.h"
#include "fabricd/server.h"
#include "fabricd/jobs/orders.h"
#include "fabricd/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ward ward;

unsigned server_num_clients(const struct server *s)
{
    return 3;
}

unsigned orders_jobs_of_class(const struct daemon *d, uint32_t uid, unsigned class_index)
{
    return class_index;
}

const struct ward *rail_health_ward(const struct rail_health *r, const char *device, unsigned port)
{
    return &ward;
}

const char *rails_state_name(unsigned state)
{
    return "Active";
}

const char *rails_health_name(unsigned state)
{
    return "healthy";
}

const char *status_role(const struct daemon *d)
{
    return "manager";
}

const char *const status_policy_states[] = {"none", NULL};

const char *status_policy_state(const struct daemon *d)
{
    return "none";
}

int main(int argc, char **argv)
{
    static struct daemon d;
    struct text out = {0};
    d.rails.n = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    if (d.rails.n > FD_RAILS_MAX)
        return 2;
    for (unsigned i = 0; i < d.rails.n; i++) {
        struct fd_rail *r = &d.rails.rail[i];
        snprintf(r->device, sizeof(r->device), "%u\"\\\n\t\xc3\xff{},= ", i);
        r->port = 254;
        d.rails.data_mbps[i] = 4000000;
        if (d.rails.n == FD_RAILS_MAX) /* as long as a name can be */
            memset(r->device + strlen(r->device), '"', sizeof(r->device) - 1 - strlen(r->device));
    }
    for (unsigned e = 0; e < HEALTH_ENDS; e++) {
        ward.health.end[e].seen = true;
        for (unsigned c = 0; c < HEALTH_COUNTERS; c++)
            ward.health.end[e].total[c] = 1ull << 53;
    }
    ward.told_broken = 7;
    metrics_text(&d, true, &out);
    fwrite(text_str(&out), 1, out.len, stdout);
    text_free(&out);
    return 0;
}
