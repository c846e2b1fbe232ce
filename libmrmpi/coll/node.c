/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of communicators with a node area, or with a grid of rows with areas. A communicator used for few
 * collectives would not earn the cost back, so areas are made at the first blocking collective after MAKE_AFTER others:
 * a broadcast, by messages, announces the area's place, and a reduction finds out whether all have it. All ranks count
 * the same.
 */
#include "libmrmpi/coll/node.h"

#include "libmrmpi/base/base.h"
#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/core/core.h"

enum { MAKE_AFTER = 4 };

static enum mr_err say_where(struct mr_comm *c, struct mr_node_site *site)
{
    struct mr_schedule *s = mr_schedule_new(c);
    enum mr_err err;

    if (!s)
        return MR_ERR_NO_MEM;
    mr_alg_bcast_binomial(s, site, sizeof(*site), mr_type_byte, 0, c);
    err = mr_schedule_built(s, &s);
    return mr_coll_run(err, s);
}

/* The least of all members' numbers; 0 if it cannot be known. */
static int least_of_all(struct mr_comm *c, int mine)
{
    struct mr_schedule *s = mr_schedule_new(c);
    enum mr_err err;
    struct mr_type *t = &mr_type_basic[MR_BASIC_INT];
    int all = 0;

    if (!s)
        return 0;
    mr_alg_reduce_binomial(s, &mine, &all, 1, t, &mr_op_builtin[MR_OP_MIN], 0, c);
    mr_schedule_fence(s);
    mr_alg_bcast_binomial(s, &all, 1, t, 0, c);
    mr_schedule_hold_op(s, &mr_op_builtin[MR_OP_MIN]);
    err = mr_schedule_built(s, &s);
    return mr_coll_run(err, s) == MR_SUCCESS ? all : 0;
}

static void end_areas(struct mr_comm *c)
{
    mr_node_close(c->node);
    mr_grid_free(c->grid);
}

static struct mr_node *make_area(struct mr_comm *c)
{
    struct mr_node_site site = {.fd = -1};
    struct mr_node *n = NULL;
    int all;

    if (c->rank == 0)
        site = mr_node_create(c->size);
    if (say_where(c, &site) == MR_SUCCESS)
        n = mr_node_open(site, c);
    all = least_of_all(c, mr_node_vote(n));
    if (c->rank == 0)
        mr_node_created(site);
    if (all) {
        mr_node_agreed(n, all);
        n->whole = c;
        return n;
    }
    if (c->rank == 0)
        mr_log(MR_LOG_INFO, "no shared memory for a communicator of %d ranks: its collectives go by messages", c->size);
    mr_node_close(n);
    return NULL;
}

/* A row and its columns are of use if all rows have their areas. */
static struct mr_grid *make_grid(struct mr_comm *c)
{
    struct mr_grid *g = mr_grid_new(c);

    g->row->node = make_area(g->row);
    if (g->row->node)
        g->row->node->whole = c;
    g->row->node_settled = g->column->node_settled = true;
    if (least_of_all(c, g->row->node != NULL))
        return g;
    mr_grid_free(g);
    return NULL;
}

static bool may_have_area(const struct mr_comm *c)
{
    return c->size > 1 && c->size <= MR_NODE_RANKS_MAX && !c->passing && !mr_comm_is_inter(c) && mr_comm_on_one_node(c);
}

static __attribute__((noinline)) void settle_areas(enum mr_coll coll, struct mr_comm *c)
{
    if (c->node_calls == 0 && !may_have_area(c) && !mr_grid_suits(c)) {
        c->node_settled = true;
        return;
    }
    if (c->node_calls++ < MAKE_AFTER && !mr_coll_wants_node(coll))
        return;
    c->node_settled = true;
    mr_core_up.node_end = end_areas;
    if (may_have_area(c))
        c->node = make_area(c);
    else
        c->grid = make_grid(c);
}

/*
 * Features for rows of other algorithms: a named algorithm is not overruled here. Layouts are ignored: a broadcast
 * might be contiguous.
 */
static unsigned has_beside(const struct mr_op *op, const struct mr_comm *c)
{
    return MR_HAS_CONTIGUOUS | (!op || op->commutative ? MR_HAS_COMMUTATIVE : 0) |
           (c->size & (c->size - 1) ? 0 : MR_HAS_POWER_OF_TWO);
}

struct mr_coll_mode mr_coll_mode_at_once(enum mr_coll coll, size_t bytes, const struct mr_op *op, struct mr_comm *c,
                                         struct mr_schedule **built)
{
    struct mr_coll_mode mode = {0};
    unsigned beside;

    if (*built != MR_COLL_AT_ONCE)
        return mode;
    *built = NULL;
    if (!bytes && coll != MR_COLL_BARRIER)
        return mode;
    if (unlikely(!c->node_settled))
        settle_areas(coll, c);
    beside = has_beside(op, c);
    if (c->node && mr_coll_select(coll, bytes, c->size, MR_HAS_NODE | beside) == MR_ALG_NODE)
        mode.node = c->node;
    if (!c->grid)
        return mode;
    beside |= MR_HAS_GRID | MR_HAS_ROWS | (c->grid->in_order ? MR_HAS_COMMUTATIVE : 0); /* both levels keep the order */
    if (mr_coll_select(coll, bytes, c->size, MR_HAS_GRID_AREAS | beside) == MR_ALG_HIERARCHICAL)
        mode.grid = c->grid;
    return mode;
}

unsigned mr_coll_begun(const struct mr_comm *c)
{
    return c->coll_seq + (c->node ? c->node->calls : 0);
}
