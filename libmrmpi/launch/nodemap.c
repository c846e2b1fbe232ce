/* SPDX-License-Identifier: BSD-3-Clause */
/* Node map: dense node numbers and the list of local ranks, from the launcher's ids or names. */
#include "libmrmpi/launch/nodemap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Sort keys keep the rank, so that equal ids stay in rank order and the first of a run is the node's first rank. */
struct id_key {
    uint32_t id;
    int rank;
};

struct name_key {
    const char *name;
    int rank;
};

static int compare_ids(const void *a, const void *b)
{
    const struct id_key *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int compare_names(const void *a, const void *b)
{
    const struct name_key *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    if (order)
        return order;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* node_of[r] holds the lowest rank on r's node; turn that into 0, 1, ... in order of appearance, and list the local
 * ranks. */
static int number_nodes(struct mr_nodemap *map, int rank, int size)
{
    map->num_nodes = 0;
    for (int r = 0; r < size; r++) {
        int first = map->node_of[r];
        map->node_of[r] = first == r ? map->num_nodes++ : map->node_of[first];
    }

    map->local_size = 0;
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

static int finish(struct mr_nodemap *map, int rank, int size)
{
    int err = number_nodes(map, rank, size);

    if (err)
        mr_nodemap_clear(map);
    return err;
}

int mr_nodemap_from_ids(struct mr_nodemap *map, int rank, int size, const uint32_t *ids)
{
    memset(map, 0, sizeof(*map));
    if (size < 1 || rank < 0 || rank >= size)
        return -EINVAL;

    struct id_key *keys = calloc(size, sizeof(*keys));
    map->node_of = calloc(size, sizeof(int));
    if (!keys || !map->node_of) {
        free(keys);
        mr_nodemap_clear(map);
        return -ENOMEM;
    }
    for (int r = 0; r < size; r++)
        keys[r] = (struct id_key){ids[r], r};
    qsort(keys, size, sizeof(*keys), compare_ids);
    for (int i = 0, first = 0; i < size; i++) {
        if (keys[i].id != keys[first].id)
            first = i;
        map->node_of[keys[i].rank] = keys[first].rank;
    }
    free(keys);
    return finish(map, rank, size);
}

int mr_nodemap_from_names(struct mr_nodemap *map, int rank, int size, const char *const *names)
{
    memset(map, 0, sizeof(*map));
    if (size < 1 || rank < 0 || rank >= size)
        return -EINVAL;

    struct name_key *keys = calloc(size, sizeof(*keys));
    map->node_of = calloc(size, sizeof(int));
    if (!keys || !map->node_of) {
        free(keys);
        mr_nodemap_clear(map);
        return -ENOMEM;
    }
    for (int r = 0; r < size; r++)
        keys[r] = (struct name_key){names[r], r};
    qsort(keys, size, sizeof(*keys), compare_names);
    for (int i = 0, first = 0; i < size; i++) {
        if (strcmp(keys[i].name, keys[first].name))
            first = i;
        map->node_of[keys[i].rank] = keys[first].rank;
    }
    free(keys);
    return finish(map, rank, size);
}

void mr_nodemap_clear(struct mr_nodemap *map)
{
    free(map->node_of);
    free(map->local_ranks);
    memset(map, 0, sizeof(*map));
}
