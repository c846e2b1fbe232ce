/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast: from the root directly to all, binomial tree; large contiguous messages by a binomial scatter and a ring
 * allgather. */
#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/coll/inter.h"
#include "libmrmpi/coll/node.h"
#include "libmrmpi/coll/select.h"

/* base is the first byte of a stretch of `bytes`; piece i belongs to v = i. */
static void scatter_allgather(struct mr_schedule *s, char *base, size_t bytes, int root, struct mr_comm *c)
{
    int p = c->size, v = (c->rank - root + p) % p, mask = 1;
    while (mask < p && !(v & mask))
        mask <<= 1;
    /* this rank's subtree is v .. v + mask - 1 */
    if (v) {
        int last = v + mask < p ? v + mask : p;
        size_t from = mr_part(bytes, p, v), to = mr_part(bytes, p, last);
        mr_schedule_recv(s, base + from, to - from, mr_type_byte, (v - mask + root) % p);
        mr_schedule_fence(s);
    }
    for (mask >>= 1; mask; mask >>= 1) {
        if (v + mask >= p)
            continue;
        int last = v + 2 * mask < p ? v + 2 * mask : p;
        size_t from = mr_part(bytes, p, v + mask), to = mr_part(bytes, p, last);
        mr_schedule_send(s, base + from, to - from, mr_type_byte, (v + mask + root) % p);
    }
    mr_schedule_fence(s);
    int right = (c->rank + 1) % p, left = (c->rank - 1 + p) % p;
    for (int k = 0; k < p - 1; k++) {
        int give = (v - k + p) % p, take = (v - k - 1 + p) % p;
        size_t g = mr_part(bytes, p, give), t = mr_part(bytes, p, take);
        mr_schedule_recv(s, base + t, mr_part(bytes, p, take + 1) - t, mr_type_byte, left);
        mr_schedule_send(s, base + g, mr_part(bytes, p, give + 1) - g, mr_type_byte, right);
        mr_schedule_fence(s);
    }
}

static void linear(struct mr_schedule *s, void *buf, size_t count, struct mr_type *t, int root, struct mr_comm *c)
{
    if (c->rank != root)
        mr_schedule_recv(s, buf, count, t, root);
    for (int k = 1; k < c->size && c->rank == root; k++)
        mr_schedule_send(s, buf, count, t, (root + k) % c->size);
}

static void bcast_one_piece(struct mr_schedule *s, enum mr_alg alg, char *base, size_t bytes, int root,
                            struct mr_comm *c)
{
    if (alg == MR_ALG_TWO_LEVEL)
        mr_alg_bcast_two_level(s, base, bytes, root, c, mr_comm_place(c));
    else
        scatter_allgather(s, base, bytes, root, c);
}

/* Along the root's column, then each of these ranks along its row. */
static enum mr_err hierarchical_bcast(struct mr_grid *g, void *buf, size_t count, struct mr_type *t, int root)
{
    struct mr_grid_spot at = mr_grid_find(g, root);
    struct mr_schedule *s = MR_COLL_AT_ONCE;
    enum mr_err err = MR_SUCCESS, row_err;
    if (g->place->local == at.local) {
        err = mr_coll_bcast(buf, count, t, at.node, g->column, &s);
        err = mr_coll_run(err, s);
        mr_grid_failed(g, err);
    }
    row_err = mr_node_bcast(g->row->node, buf, count, t, at.local);
    return err ? err : row_err;
}

enum mr_err mr_coll_bcast(void *buf, size_t count, struct mr_type *t, int root, struct mr_comm *c,
                          struct mr_schedule **built)
{
    size_t bytes = count * t->size;
    struct mr_coll_mode mode = mr_coll_mode_at_once(MR_COLL_BCAST, bytes, NULL, c, built);
    if (mode.grid)
        return hierarchical_bcast(mode.grid, buf, count, t, root);
    if (mode.node)
        return mr_node_bcast(mode.node, buf, count, t, root);
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_hold_type(s, t);
    /*
     * all ranks must choose alike, but their types may differ in layout: the choice uses bytes only, and ranks with
     * holes pack
     */
    enum mr_alg alg = mr_coll_select(MR_COLL_BCAST, bytes, c->size, MR_HAS_CONTIGUOUS | mr_coll_place_has(c, bytes));
    if (mr_comm_is_inter(c)) {
        mr_inter_bcast(s, buf, count, t, root, c);
    } else if (c->size == 1 || bytes == 0) {
        /* nothing to do */
    } else if (alg == MR_ALG_BINOMIAL) {
        mr_alg_bcast_binomial(s, buf, count, t, root, c);
    } else if (alg == MR_ALG_LINEAR) {
        linear(s, buf, count, t, root, c);
    } else if (t->contiguous) {
        bcast_one_piece(s, alg, (char *)buf + t->true_lb, bytes, root, c);
    } else {
        char *flat = mr_schedule_temp(s, bytes);
        if (c->rank == root)
            mr_schedule_copy(s, buf, count, t, flat, bytes, mr_type_byte);
        bcast_one_piece(s, alg, flat, bytes, root, c);
        mr_schedule_fence(s); /* all of it is there */
        if (c->rank != root)
            mr_schedule_copy(s, flat, bytes, mr_type_byte, buf, count, t);
    }
    return mr_schedule_built(s, built);
}
