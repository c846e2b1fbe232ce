/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement of ranks on hosts: in blocks or in turn, within the capacity of each host. */
#include "mrrun/placement.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* While ranks are placed: hosts by their numbers in the wish. */
struct placing {
    const struct placement_wish *wish;
    int *load;    /* [num_hosts] ranks placed so far */
    int *before;  /* [num_hosts] ranks among these that do not count against the share */
    int *share;   /* [num_hosts] ranks that a host takes in each round */
    int rounds;   /* how often all hosts were full */
    bool bounded; /* shares are given bounds: another round is oversubscription */
};

static int max_of(const struct placing *p, int host)
{
    return p->wish->slots && p->wish->slots[host].max ? p->wish->slots[host].max : INT_MAX;
}

static bool has_room(const struct placing *p, int host)
{
    return p->load[host] - p->before[host] < (1 + p->rounds) * (long long)p->share[host] &&
           p->load[host] < max_of(p, host);
}

static bool slots_are_said(const struct placement_wish *w)
{
    for (int h = 0; w->slots && h < w->num_hosts; h++)
        if (w->slots[h].slots)
            return true;
    return false;
}

/* As --ppn says, or the slots of hosts (one where only others say how many); else as even as equal blocks allow. */
static void set_shares(struct placing *p, int ranks, int num_hosts)
{
    const struct placement_wish *w = p->wish;
    bool slots = slots_are_said(w);

    p->bounded = w->ppn || slots;
    p->rounds = 0;
    for (int h = 0; h < w->num_hosts; h++) {
        int share = !slots ? (ranks + num_hosts - 1) / num_hosts : w->slots[h].slots ? w->slots[h].slots : 1;

        p->share[h] = w->ppn ? w->ppn : share;
        p->before[h] = p->bounded ? 0 : p->load[h];
    }
}

/* From this place in the list on, the next host with room; wraps around. -1: all are full. */
static int find_room(const struct placing *p, const int *hosts, int num_hosts, int at)
{
    for (int i = 0; i < num_hosts; i++) {
        int k = (at + i) % num_hosts;

        if (has_room(p, hosts ? hosts[k] : k))
            return k;
    }
    return -1;
}

/* Whether another round would find room. */
static bool may_go_round(const struct placing *p, const int *hosts, int num_hosts)
{
    for (int k = 0; k < num_hosts; k++)
        if (p->load[hosts ? hosts[k] : k] < max_of(p, hosts ? hosts[k] : k))
            return p->wish->oversubscribe || !p->bounded;
    return false;
}

static int refuse_wish(const struct placing *p, int ranks, const int *hosts, int num_hosts, char *why, size_t cap)
{
    const struct placement_wish *w = p->wish;
    long long slots = 0;
    bool all_max = true;

    for (int k = 0; k < num_hosts; k++) {
        int h = hosts ? hosts[k] : k;

        slots += w->oversubscribe ? max_of(p, h) : p->share[h];
        all_max &= p->load[h] >= max_of(p, h);
    }
    if (w->ppn && !all_max)
        snprintf(why, cap, "%d ranks at %d per host need %d hosts, and there %s %d (more --hosts or a larger --ppn)",
                 ranks, w->ppn, (ranks + w->ppn - 1) / w->ppn, num_hosts == 1 ? "is" : "are", num_hosts);
    else
        snprintf(why, cap, "%d ranks need as many slots, and the hosts have %lld%s", ranks, slots,
                 all_max ? " (max_slots)" : " (--oversubscribe takes more)");
    return -1;
}

/* Ranks [first, first + ranks) on these hosts. */
static int place_group(struct placing *p, struct placement *out, int first, int ranks, const int *hosts, int num_hosts,
                       char *why, size_t cap)
{
    int at = 0;

    set_shares(p, ranks, num_hosts);
    for (int r = first; r < first + ranks; r++) {
        int k = find_room(p, hosts, num_hosts, at);

        while (k < 0 && may_go_round(p, hosts, num_hosts)) {
            p->rounds++;
            k = find_room(p, hosts, num_hosts, at = 0);
        }
        if (k < 0)
            return refuse_wish(p, ranks, hosts, num_hosts, why, cap);
        out->host_of[r] = hosts ? hosts[k] : k;
        p->load[out->host_of[r]]++;
        at = p->wish->by_node ? k + 1 : k;
    }
    return 0;
}

/* Consecutive parts that may use all hosts are placed as one. */
static int place_all(struct placing *p, struct placement *out, char *why, size_t cap)
{
    const struct placement_wish *w = p->wish;

    for (int i = 0, next; i < w->num_parts; i = next) {
        const struct placement_part *part = &w->part[i];
        int first = out->part_first[i];

        for (next = i + 1; next < w->num_parts && !part->hosts && !w->part[next].hosts;)
            next++;
        if (place_group(p, out, first, out->part_first[next] - first, part->hosts,
                        part->hosts ? part->num_hosts : w->num_hosts, why, cap))
            return -1;
    }
    return 0;
}

/* Hosts without a rank are left out; the others keep their order. */
static void number_hosts(struct placement *p, struct placing *placing, int num_hosts)
{
    int *index = placing->share; /* not needed any more */

    for (int h = 0; h < num_hosts; h++) {
        if (!placing->load[h])
            continue;
        index[h] = p->num_hosts;
        p->used[p->num_hosts++] = h;
    }
    for (int r = 0; r < p->ranks; r++) {
        p->host_of[r] = index[p->host_of[r]];
        p->local_rank[r] = p->ranks_of[p->host_of[r]]++;
    }
}

static bool allocate_placement(struct placement *p, struct placing *placing, const struct placement_wish *w)
{
    p->part_first = calloc(w->num_parts + 1, sizeof(int));
    if (!p->part_first)
        return false;
    p->num_parts = w->num_parts;
    for (int i = 0; i < w->num_parts; i++)
        p->part_first[i + 1] = p->part_first[i] + w->part[i].ranks;
    p->ranks = p->part_first[w->num_parts];
    p->host_of = calloc(p->ranks, sizeof(int));
    p->local_rank = calloc(p->ranks, sizeof(int));
    p->used = calloc(w->num_hosts, sizeof(int));
    p->ranks_of = calloc(w->num_hosts, sizeof(int));
    placing->load = calloc(w->num_hosts, sizeof(int));
    placing->before = calloc(w->num_hosts, sizeof(int));
    placing->share = calloc(w->num_hosts, sizeof(int));
    return p->host_of && p->local_rank && p->used && p->ranks_of && placing->load && placing->before && placing->share;
}

int placement_make(struct placement *p, const struct placement_wish *wish, char *why, size_t cap)
{
    struct placing placing = {.wish = wish};
    int err = 0;

    memset(p, 0, sizeof(*p));
    if (wish->num_hosts < 1) {
        snprintf(why, cap, "there is no host to run on");
        return -1;
    }
    if (!allocate_placement(p, &placing, wish)) {
        snprintf(why, cap, "out of memory");
        err = -1;
    }
    if (!err)
        err = place_all(&placing, p, why, cap);
    if (!err)
        number_hosts(p, &placing, wish->num_hosts);
    free(placing.load);
    free(placing.before);
    free(placing.share);
    if (err)
        placement_clear(p);
    return err;
}

int placement_part_of(const struct placement *p, int rank)
{
    int part = 0;

    while (part + 1 < p->num_parts && rank >= p->part_first[part + 1])
        part++;
    return part;
}

/* Number of ranks on the same host from this rank on. */
static int block_at(const struct placement *p, int rank)
{
    int next = rank + 1;

    while (next < p->ranks && p->host_of[next] == p->host_of[rank])
        next++;
    return next - rank;
}

char *placement_map(const struct placement *p)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return NULL;
    fputs("(vector", out);
    for (int r = 0, next; r < p->ranks; r = next) {
        int ranks = block_at(p, r), hosts = 1;

        next = r + ranks;
        while (next < p->ranks && p->host_of[next] == p->host_of[r] + hosts && block_at(p, next) == ranks) {
            hosts++;
            next += ranks;
        }
        fprintf(out, ",(%d,%d,%d)", p->host_of[r], hosts, ranks);
    }
    fputs(")", out);
    return fclose(out) ? NULL : text;
}

void placement_clear(struct placement *p)
{
    free(p->used);
    free(p->host_of);
    free(p->local_rank);
    free(p->ranks_of);
    free(p->part_first);
    memset(p, 0, sizeof(*p));
}
