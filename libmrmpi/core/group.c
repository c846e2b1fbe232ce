/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: ordered sets of processes by number: world ranks, and guests. */
#include "libmrmpi/core/core.h"

#include <stdlib.h>
#include <string.h>

struct mr_group mr_group_empty = {.refs = 1, .rank = MR_UNDEFINED};

int mr_group_find(const struct mr_group *g, int world_rank)
{
    /* most groups are the world or a piece of it: check the place of the rank then */
    if (world_rank >= 0 && world_rank < g->size && g->world[world_rank] == world_rank)
        return world_rank;
    for (int i = 0; i < g->size; i++)
        if (g->world[i] == world_rank)
            return i;
    return MR_UNDEFINED;
}

static struct mr_group *mixed_groups; /* by next_mixed */

static void list_mixed(struct mr_group *g)
{
    g->next_mixed = mixed_groups;
    if (mixed_groups)
        mixed_groups->prev_mixed = g;
    mixed_groups = g;
}

static void unlist_mixed(struct mr_group *g)
{
    if (g->next_mixed)
        g->next_mixed->prev_mixed = g->prev_mixed;
    *(g->prev_mixed ? &g->prev_mixed->next_mixed : &mixed_groups) = g->next_mixed;
}

bool mr_groups_name(int guest, const struct mr_group *but)
{
    for (const struct mr_group *g = mixed_groups; g; g = g->next_mixed)
        if (g != but && mr_group_find(g, guest) != MR_UNDEFINED)
            return true;
    return false;
}

struct mr_group *mr_group_new(int size, const int *world)
{
    if (size == 0)
        return &mr_group_empty;
    struct mr_group *g = calloc(1, sizeof(*g));
    if (!g)
        return NULL;
    g->world = malloc((size_t)size * sizeof(*g->world));
    if (!g->world) {
        free(g);
        return NULL;
    }
    g->refs = 1;
    g->size = size;
    memcpy(g->world, world, (size_t)size * sizeof(*g->world));
    g->rank = mr_comm_world ? mr_group_find(g, mr_comm_world->rank) : MR_UNDEFINED;
    for (int i = 0; mr_comm_world && i < size && !g->mixed; i++)
        g->mixed = world[i] > mr_comm_world->size; /* the size itself: nobody (mr_vc_nowhere) */
    if (g->mixed)
        list_mixed(g);
    return g;
}

struct mr_group *mr_group_get(struct mr_group *g)
{
    if (g != &mr_group_empty)
        g->refs++;
    return g;
}

void mr_group_put(struct mr_group *g)
{
    if (g == &mr_group_empty || --g->refs > 0)
        return;
    if (g->mixed)
        unlist_mixed(g);
    mr_session_put(g->session);
    free(g->world);
    free(g);
}

struct mr_session *mr_session_new(void)
{
    struct mr_session *s = calloc(1, sizeof(*s));
    if (s)
        s->refs = 1;
    return s;
}

void mr_session_put(struct mr_session *s)
{
    if (s && --s->refs == 0)
        free(s);
}

void mr_group_derive(struct mr_group *g, struct mr_session *s)
{
    if (!s || !g || g == &mr_group_empty || g->session)
        return;
    g->session = s;
    s->refs++;
}

struct mr_group *mr_session_group(struct mr_session *s, const struct mr_group *of)
{
    struct mr_group *g = mr_group_new(of->size, of->world);
    mr_group_derive(g, s);
    return g;
}

/* Takes list over. The new group comes from the session of the old one. */
static struct mr_group *from_list(const struct mr_group *old, int n, int *list)
{
    struct mr_group *g = list ? mr_group_new(n, list) : NULL;
    free(list);
    mr_group_derive(g, old->session);
    return g;
}

static int *new_rank_list(int n)
{
    return malloc((size_t)(n ? n : 1) * sizeof(int));
}

struct mr_group *mr_group_incl(const struct mr_group *g, int n, const int *ranks)
{
    int *list = new_rank_list(n);
    for (int i = 0; list && i < n; i++)
        list[i] = g->world[ranks[i]];
    return from_list(g, n, list);
}

struct mr_group *mr_group_excl(const struct mr_group *g, int n, const int *ranks)
{
    bool *out = calloc((size_t)g->size + 1, sizeof(*out));
    int *list = new_rank_list(g->size), k = 0;
    if (out && list) {
        for (int i = 0; i < n; i++)
            out[ranks[i]] = true;
        for (int i = 0; i < g->size; i++)
            if (!out[i])
                list[k++] = g->world[i];
    } else {
        free(list);
        list = NULL;
    }
    free(out);
    return from_list(g, k, list);
}

enum mr_err mr_group_range(const struct mr_group *g, int n, int (*ranges)[3], int **ranks, int *count)
{
    bool *seen = calloc((size_t)g->size + 1, sizeof(*seen));
    int *list = new_rank_list(g->size), k = 0;
    enum mr_err err = seen && list ? MR_SUCCESS : MR_ERR_NO_MEM;
    for (int i = 0; i < n && !err; i++) {
        int first = ranges[i][0], last = ranges[i][1], step = ranges[i][2];
        if (step == 0) {
            err = mr_fail(MR_ERR_ARG, "range %d has stride 0", i);
            break;
        }
        for (long r = first; step > 0 ? r <= last : r >= last; r += step) {
            if (r < 0 || r >= g->size || seen[r]) {
                err = mr_fail(MR_ERR_RANK, "range %d (%d, %d, %d): rank %ld is %s", i, first, last, step, r,
                              r < 0 || r >= g->size ? "not in the group" : "there twice");
                break;
            }
            seen[r] = true;
            list[k++] = (int)r;
        }
    }
    free(seen);
    if (err) {
        free(list);
        return err;
    }
    *ranks = list;
    *count = k;
    return MR_SUCCESS;
}

/* Members of a that are (or are not) in b, in the order of a, appended at list[k...]. */
static int filter(const struct mr_group *a, const struct mr_group *b, bool in, int *list, int k)
{
    for (int i = 0; i < a->size; i++)
        if ((mr_group_find(b, a->world[i]) != MR_UNDEFINED) == in)
            list[k++] = a->world[i];
    return k;
}

struct mr_group *mr_group_union(const struct mr_group *a, const struct mr_group *b)
{
    int *list = new_rank_list(a->size + b->size), k = a->size;
    if (list) {
        if (a->size)
            memcpy(list, a->world, (size_t)a->size * sizeof(*list));
        k = filter(b, a, false, list, k);
    }
    return from_list(a->size ? a : b, k, list);
}

struct mr_group *mr_group_intersection(const struct mr_group *a, const struct mr_group *b)
{
    int *list = new_rank_list(a->size), k = list ? filter(a, b, true, list, 0) : 0;
    return from_list(a, k, list);
}

struct mr_group *mr_group_difference(const struct mr_group *a, const struct mr_group *b)
{
    int *list = new_rank_list(a->size), k = list ? filter(a, b, false, list, 0) : 0;
    return from_list(a, k, list);
}

enum mr_compare mr_group_compare(const struct mr_group *a, const struct mr_group *b)
{
    if (a->size != b->size)
        return MR_UNEQUAL;
    if (a == b || a->size == 0 || memcmp(a->world, b->world, (size_t)a->size * sizeof(*a->world)) == 0)
        return MR_IDENT;
    for (int i = 0; i < a->size; i++)
        if (mr_group_find(b, a->world[i]) == MR_UNDEFINED)
            return MR_UNEQUAL;
    return MR_SIMILAR;
}

/* ---- parts ---- */

struct split_entry {
    int key, rank;
};

static int by_key(const void *a, const void *b)
{
    const struct split_entry *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank - y->rank;
}

/* All of the group in its order is the group itself. */
struct mr_group *mr_group_split(struct mr_group *g, const int (*entries)[2], int color)
{
    int n = 0, *world = malloc((size_t)g->size * sizeof(*world));
    struct split_entry *members = malloc((size_t)g->size * sizeof(*members));
    struct mr_group *made = NULL;
    if (world && members) {
        for (int i = 0; i < g->size; i++)
            if (entries[i][0] == color)
                members[n++] = (struct split_entry){entries[i][1], i};
        qsort(members, (size_t)n, sizeof(*members), by_key);
        bool all = n == g->size;
        for (int i = 0; i < n; i++) {
            world[i] = g->world[members[i].rank];
            all &= members[i].rank == i;
        }
        made = all ? mr_group_get(g) : mr_group_new(n, world);
    }
    free(world);
    free(members);
    return made;
}
