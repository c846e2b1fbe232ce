/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives: one message along each edge of the topology, all at once.
 *
 * Two processes may be neighbours more than once. Messages between them are sent in the order of the destinations and
 * received in the order of the sources, except in grids: a message down dimension i (destination 2 i) arrives from
 * above (source 2 i + 1), so the receives of a dimension are posted in the opposite order. The order matters if a
 * dimension is periodic and has one or two processes.
 */
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/coll/schedule/sched.h"

static void post_recvs(struct mr_schedule *s, const struct mr_vec *out, const struct mr_topology *t)
{
    unsigned swap = t->kind == MR_TOPO_CART;
    for (int k = 0; k < t->around.num_in; k++) {
        int i = k ^ (int)swap;
        if (t->around.in[i] != MR_PROC_NULL)
            mr_schedule_recv(s, mr_vec_part(out, i), mr_vec_count(out, i), mr_vec_type(out, i), t->around.in[i]);
    }
}

enum mr_err mr_coll_neighbor_allgather(const void *in, size_t icount, struct mr_type *it, const struct mr_vec *out,
                                       struct mr_comm *c, struct mr_schedule **built)
{
    const struct mr_neighbors *around = &c->topology->around;
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_hold_type(s, it);
    mr_schedule_hold_type(s, out->type);
    if (out->counts)
        mr_schedule_allow_less(s);
    post_recvs(s, out, c->topology);
    for (int i = 0; i < around->num_out; i++)
        if (around->out[i] != MR_PROC_NULL)
            mr_schedule_send(s, in, icount, it, around->out[i]);
    return mr_schedule_built(s, built);
}

static void hold_neighbor_types(struct mr_schedule *s, const struct mr_vec *v, int n)
{
    if (!v->types)
        mr_schedule_hold_type(s, v->type);
    for (int i = 0; v->types && i < n; i++)
        mr_schedule_hold_type(s, v->types[i]);
}

enum mr_err mr_coll_neighbor_alltoall(const struct mr_vec *in, const struct mr_vec *out, struct mr_comm *c,
                                      struct mr_schedule **built)
{
    const struct mr_neighbors *around = &c->topology->around;
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    hold_neighbor_types(s, in, around->num_out);
    hold_neighbor_types(s, out, around->num_in);
    if (out->counts)
        mr_schedule_allow_less(s);
    post_recvs(s, out, c->topology);
    for (int i = 0; i < around->num_out; i++)
        if (around->out[i] != MR_PROC_NULL)
            mr_schedule_send(s, mr_vec_part(in, i), mr_vec_count(in, i), mr_vec_type(in, i), around->out[i]);
    return mr_schedule_built(s, built);
}
