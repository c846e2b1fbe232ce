/* SPDX-License-Identifier: BSD-3-Clause */
/* Block placement of ranks on hosts. */
#include "mrrun/placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int placement_make(struct placement *p, int ranks, int num_hosts, int ppn, char *why, size_t cap)
{
    memset(p, 0, sizeof(*p));
    if (num_hosts < 1) {
        snprintf(why, cap, "there is no host to run on");
        return -1;
    }
    if (!ppn)
        ppn = (ranks + num_hosts - 1) / num_hosts;
    int used = (ranks + ppn - 1) / ppn;
    if (used > num_hosts) {
        snprintf(why, cap, "%d ranks at %d per host need %d hosts, and there %s %d (more --hosts or a larger --ppn)",
                 ranks, ppn, used, num_hosts == 1 ? "is" : "are", num_hosts);
        return -1;
    }

    p->ranks = ranks;
    p->num_hosts = used;
    p->host_of = calloc(ranks, sizeof(int));
    p->first = calloc(used + 1, sizeof(int));
    if (!p->host_of || !p->first) {
        placement_clear(p);
        snprintf(why, cap, "out of memory");
        return -1;
    }
    for (int r = 0; r < ranks; r++)
        p->host_of[r] = r / ppn;
    for (int h = 0; h < used; h++)
        p->first[h] = h * ppn;
    p->first[used] = ranks;
    return 0;
}

static int ranks_of(const struct placement *p, int host)
{
    return p->first[host + 1] - p->first[host];
}

char *placement_map(const struct placement *p)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return NULL;
    fputs("(vector", out);
    for (int h = 0, next; h < p->num_hosts; h = next) {
        for (next = h + 1; next < p->num_hosts && ranks_of(p, next) == ranks_of(p, h);)
            next++;
        fprintf(out, ",(%d,%d,%d)", h, next - h, ranks_of(p, h));
    }
    fputs(")", out);
    return fclose(out) ? NULL : text;
}

void placement_clear(struct placement *p)
{
    free(p->host_of);
    free(p->first);
    memset(p, 0, sizeof(*p));
}
