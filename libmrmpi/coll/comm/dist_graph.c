/* SPDX-License-Identifier: BSD-3-Clause */
/* Distributed graphs with edges named by any process: two exchanges bring each edge to both ends. */
#include "libmrmpi/coll/coll.h"

#include <stdlib.h>

/* An edge in the form for one of its ends. */
struct half_edge {
    int incoming, other, weight;
};

/* How many go to each rank, and where they begin. */
struct parcels {
    int *counts, *starts; /* in bytes */
    int total;            /* half edges */
    struct half_edge *edges;
};

static bool parcels_init(struct parcels *p, int ranks)
{
    *p = (struct parcels){.counts = calloc((size_t)ranks, sizeof(int)), .starts = calloc((size_t)ranks, sizeof(int))};
    return p->counts && p->starts;
}

static bool parcels_room(struct parcels *p, int ranks)
{
    int bytes = 0;
    for (int i = 0; i < ranks; i++) {
        p->starts[i] = bytes;
        bytes += p->counts[i];
    }
    p->total = bytes / (int)sizeof(struct half_edge);
    p->edges = malloc((size_t)bytes + 1);
    return p->edges != NULL;
}

static void parcels_free(struct parcels *p)
{
    free(p->counts);
    free(p->starts);
    free(p->edges);
}

static void put_edge(struct parcels *p, int *used, int to, struct half_edge e)
{
    p->edges[(size_t)p->starts[to] / sizeof(e) + (size_t)used[to]++] = e;
}

static enum mr_err pack_edges(struct parcels *out, const struct mr_edges *e, int ranks)
{
    int *used = calloc((size_t)ranks, sizeof(*used)), k = 0;
    for (int i = 0; i < e->num_sources; i++) {
        for (int j = 0; j < e->degrees[i]; j++, k++) {
            out->counts[e->sources[i]] += (int)sizeof(struct half_edge);
            out->counts[e->destinations[k]] += (int)sizeof(struct half_edge);
        }
    }
    if (!used || !parcels_room(out, ranks)) {
        free(used);
        return MR_ERR_NO_MEM;
    }
    k = 0;
    for (int i = 0; i < e->num_sources; i++) {
        for (int j = 0; j < e->degrees[i]; j++, k++) {
            int from = e->sources[i], to = e->destinations[k], w = e->weights ? e->weights[k] : 0;
            put_edge(out, used, from, (struct half_edge){0, to, w});
            put_edge(out, used, to, (struct half_edge){1, from, w});
        }
    }
    free(used);
    return MR_SUCCESS;
}

/* How many bytes come from each rank; less than 0 is its error. */
static enum mr_err tell_counts(struct mr_comm *c, struct parcels *out, struct parcels *in, enum mr_err wrong)
{
    struct mr_schedule *s = NULL;
    for (int i = 0; wrong && i < c->size; i++)
        out->counts[i] = -(int)wrong;
    enum mr_err err =
        mr_coll_alltoall(out->counts, sizeof(int), mr_type_byte, in->counts, sizeof(int), mr_type_byte, c, &s);
    err = mr_coll_run(err, s);
    for (int i = 0; i < c->size && !err && !wrong; i++)
        if (in->counts[i] < 0)
            err = mr_fail((enum mr_err) - in->counts[i], "rank %d has called with a wrong argument", i);
    return wrong ? wrong : err;
}

/* To each rank its edges. */
static enum mr_err exchange_parcels(struct mr_comm *c, struct parcels *out, struct parcels *in, enum mr_err wrong)
{
    struct mr_schedule *s = NULL;
    enum mr_err err = tell_counts(c, out, in, wrong);
    if (err)
        return err;
    if (!parcels_room(in, c->size))
        return MR_ERR_NO_MEM;
    struct mr_vec from = {.buf = out->edges, .counts = out->counts, .disps = out->starts, .type = mr_type_byte};
    struct mr_vec to = {.buf = in->edges, .counts = in->counts, .disps = in->starts, .type = mr_type_byte};
    err = mr_coll_alltoallv(&from, &to, c, &s);
    return mr_coll_run(err, s);
}

static struct mr_topology *from_half_edges(const struct half_edge *e, int n, bool weighted)
{
    struct mr_neighbors of = {.weighted = weighted};
    int *room = malloc((size_t)(4 * n + 1) * sizeof(*room));
    if (!room)
        return NULL;
    int *in = room, *out = room + n, *in_w = room + 2 * n, *out_w = room + 3 * n;
    for (int i = 0; i < n; i++) {
        int *k = e[i].incoming ? &of.num_in : &of.num_out;
        (e[i].incoming ? in : out)[*k] = e[i].other;
        (e[i].incoming ? in_w : out_w)[(*k)++] = e[i].weight;
    }
    of.in = in;
    of.out = out;
    of.in_weights = in_w;
    of.out_weights = out_w;
    struct mr_topology *t = mr_dist_graph_new(&of);
    free(room);
    return t;
}

enum mr_err mr_dist_graph_gather(struct mr_comm *c, const struct mr_edges *e, enum mr_err wrong,
                                 struct mr_topology **topology)
{
    struct parcels out = {0}, in = {0};
    *topology = NULL;
    bool room = parcels_init(&out, c->size) && parcels_init(&in, c->size);
    if (room && !wrong)
        wrong = pack_edges(&out, e, c->size);
    enum mr_err err = room ? exchange_parcels(c, &out, &in, wrong) : MR_ERR_NO_MEM;
    if (!err && !(*topology = from_half_edges(in.edges, in.total, e->weights != NULL)))
        err = MR_ERR_NO_MEM;
    parcels_free(&out);
    parcels_free(&in);
    return err;
}
