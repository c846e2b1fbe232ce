/* SPDX-License-Identifier: BSD-3-Clause */
/* Node map: dense node numbers and the list of local ranks, from the launcher's ids or names. */
#include "libmrmpi/launch/nodemap.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * A rank's node according to the launcher: a number, or else a name. The rank itself comes last, so that ranks of a
 * node stay in order and the first of a run is the node's first rank.
 */
struct place {
    uint32_t id;
    const char *name;
    int rank;
};

static int compare_nodes(const struct place *x, const struct place *y)
{
    if (x->name)
        return strcmp(x->name, y->name);
    return x->id < y->id ? -1 : x->id > y->id;
}

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = compare_nodes(x, y);

    if (order)
        return order;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* node_of[r] holds the lowest rank on r's node; turn that into 0, 1, ... in order of appearance. */
static void number_nodes(struct mr_nodemap *map, int size)
{
    for (int r = 0; r < size; r++) {
        int first = map->node_of[r];
        map->node_of[r] = first == r ? map->num_nodes++ : map->node_of[first];
    }
}

/* Most launchers' numbers equal the result of number_nodes(): then nothing is sorted. */
static bool take_numbers(struct mr_nodemap *map, int size, const uint32_t *ids)
{
    uint32_t next = 0;

    for (int r = 0; r < size; r++) {
        if (ids[r] > next)
            return false;
        next += ids[r] == next;
        map->node_of[r] = (int)ids[r];
    }
    map->num_nodes = (int)next;
    return true;
}

static int list_local(struct mr_nodemap *map, int rank, int size)
{
    for (int r = 0; r < size; r++)
        map->local_size += map->node_of[r] == map->node_of[rank];

    map->local_ranks = calloc(map->local_size, sizeof(int));
    if (!map->local_ranks)
        return -ENOMEM;
    for (int r = 0, n = 0; r < size; r++) {
        if (map->node_of[r] != map->node_of[rank])
            continue;
        if (r == rank)
            map->local_rank = n;
        map->local_ranks[n++] = r;
    }
    return 0;
}

static int sort_ranks(struct mr_nodemap *map, int size, const uint32_t *ids, const char *const *names)
{
    struct place *places = calloc(size, sizeof(*places));

    if (!places)
        return -ENOMEM;
    for (int r = 0; r < size; r++)
        places[r] = (struct place){.id = ids ? ids[r] : 0, .name = names ? names[r] : NULL, .rank = r};
    qsort(places, size, sizeof(*places), compare_places);
    for (int i = 0, first = 0; i < size; i++) {
        if (compare_nodes(&places[i], &places[first]))
            first = i;
        map->node_of[places[i].rank] = places[first].rank;
    }
    free(places);
    number_nodes(map, size);
    return 0;
}

/* One of ids and names is NULL. */
static int group_ranks(struct mr_nodemap *map, int rank, int size, const uint32_t *ids, const char *const *names)
{
    memset(map, 0, sizeof(*map));
    if (size < 1 || rank < 0 || rank >= size)
        return -EINVAL;

    map->node_of = calloc(size, sizeof(int));
    int err = map->node_of ? 0 : -ENOMEM;
    if (!err && !(ids && take_numbers(map, size, ids)))
        err = sort_ranks(map, size, ids, names);
    if (!err)
        err = list_local(map, rank, size);
    if (err)
        mr_nodemap_clear(map);
    return err;
}

int mr_nodemap_from_ids(struct mr_nodemap *map, int rank, int size, const uint32_t *ids)
{
    return group_ranks(map, rank, size, ids, NULL);
}

int mr_nodemap_from_names(struct mr_nodemap *map, int rank, int size, const char *const *names)
{
    return group_ranks(map, rank, size, NULL, names);
}

void mr_nodemap_clear(struct mr_nodemap *map)
{
    free(map->node_of);
    free(map->local_ranks);
    memset(map, 0, sizeof(*map));
}
