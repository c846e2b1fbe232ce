/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations and the creation of communicators: what api/, rma/ and io/ use of coll/.
 *
 * An operation is built, then run. A function that builds makes a schedule, *out, NULL on error. The schedule is run to
 * its end (blocking), started (nonblocking, continues in the progress engine) or kept to be started many times
 * (persistent); all three take the schedule over. All ranks must build in the same order, as the standard requires.
 *
 * Arguments have been checked; MR_IN_PLACE stands for MPI_IN_PLACE. Arrays of counts are read only while building.
 * Callers hold the library's lock.
 */
#ifndef MRMPI_COLL_H
#define MRMPI_COLL_H

#include "libmrmpi/core/core.h"
#include "libmrmpi/p2p/p2p.h"

struct mr_schedule;

#define MR_IN_PLACE ((void *)-1)
#define MR_ROOT     (-3) /* of an operation on an intercommunicator */

int mr_coll_init(void); /* reads MRMPI_COLL and MRMPI_COLL_TABLE, hooks into progress; 0 or -errno */
void mr_coll_finalize(void);

/* ---- operations: building ----------------------------------------------------------------------------- */

/*
 * The number of operations that this rank has begun on c, including the library's own. All members with the same
 * operations have the same number.
 */
unsigned mr_coll_begun(const struct mr_comm *c);

/*
 * One side of a collective: for each rank (neighbour) a count of elements and a displacement, in arrays of int, or of
 * int64_t and ptrdiff_t if wide; without an array of counts `each` for all ranks, one behind the other.
 */
struct mr_vec {
    const void *buf;
    const void *counts, *disps; /* disps in extents; with types in bytes */
    bool wide, wide_disps;
    size_t each;
    struct mr_type *type; /* NULL: per rank in types */
    struct mr_type *const *types;
};

static inline size_t mr_vec_count(const struct mr_vec *v, int i)
{
    if (!v->counts)
        return v->each;
    return v->wide ? (size_t)((const int64_t *)v->counts)[i] : (size_t)((const int *)v->counts)[i];
}

static inline struct mr_type *mr_vec_type(const struct mr_vec *v, int i)
{
    return v->types ? v->types[i] : v->type;
}

/* Where the part of rank i begins. */
static inline void *mr_vec_part(const struct mr_vec *v, int i)
{
    ptrdiff_t d = v->disps ? v->wide_disps ? ((const ptrdiff_t *)v->disps)[i] : ((const int *)v->disps)[i]
                           : (ptrdiff_t)v->each * i;
    return (char *)(uintptr_t)v->buf + (v->types ? d : d * v->type->extent);
}

static inline size_t mr_vec_bytes(const struct mr_vec *v, int i)
{
    return mr_vec_count(v, i) * mr_vec_type(v, i)->size;
}

enum mr_err mr_coll_barrier(struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_bcast(void *buf, size_t count, struct mr_type *t, int root, struct mr_comm *c,
                          struct mr_schedule **built);
enum mr_err mr_coll_reduce(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op, int root,
                           struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_allreduce(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op,
                              struct mr_comm *c, struct mr_schedule **built);
/* v: counts and type; the result is at out */
enum mr_err mr_coll_reduce_scatter(const void *in, void *out, const struct mr_vec *v, struct mr_op *op,
                                   struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_scan(const void *in, void *out, size_t count, struct mr_type *t, struct mr_op *op, bool exclusive,
                         struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_gather(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount,
                           struct mr_type *ot, int root, struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_gatherv(const void *in, size_t icount, struct mr_type *it, const struct mr_vec *out, int root,
                            struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_scatter(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount,
                            struct mr_type *ot, int root, struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_scatterv(const struct mr_vec *in, void *out, size_t ocount, struct mr_type *ot, int root,
                             struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_allgather(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount,
                              struct mr_type *ot, struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_allgatherv(const void *in, size_t icount, struct mr_type *it, const struct mr_vec *out,
                               struct mr_comm *c, struct mr_schedule **built);
enum mr_err mr_coll_alltoall(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount,
                             struct mr_type *ot, struct mr_comm *c, struct mr_schedule **built);
/* v and w alike; in->buf may be MR_IN_PLACE */
enum mr_err mr_coll_alltoallv(const struct mr_vec *in, const struct mr_vec *out, struct mr_comm *c,
                              struct mr_schedule **built);

/* On a communicator with a topology; the vectors are over the sources and destinations of its neighbours. */
enum mr_err mr_coll_neighbor_allgather(const void *in, size_t icount, struct mr_type *it, const struct mr_vec *out,
                                       struct mr_comm *c, struct mr_schedule **built);
/* v and w alike */
enum mr_err mr_coll_neighbor_alltoall(const struct mr_vec *in, const struct mr_vec *out, struct mr_comm *c,
                                      struct mr_schedule **built);

/* ---- operations: running what was built (schedule/sched.c) ------------------------------------------------------- */

/*
 * In *out of a function that builds: the caller is blocking. Then the operation may be done when the function returns;
 * *out is NULL and the result its error, for mr_coll_run to pass on. *out is NULL or this value before.
 */
#define MR_COLL_AT_ONCE ((struct mr_schedule *)-1)

/* To the end; the operation's error. If building failed (s NULL), that error: mr_coll_run(mr_coll_x(..., &s), s) must
 * be two statements. */
enum mr_err mr_coll_run(enum mr_err built, struct mr_schedule *s);
/* The same after an error `before` of an earlier part of the operation: the others get notices of it instead of data.
 */
enum mr_err mr_coll_run_after(enum mr_err before, enum mr_err built, struct mr_schedule *s);
enum mr_err mr_coll_start(struct mr_schedule *s, struct mr_request **req);
/*
 * A persistent request. mr_coll_restart starts its schedule (not while it runs), mr_coll_drop frees the schedule (after
 * a run under way).
 */
enum mr_err mr_coll_keep(struct mr_schedule *s, struct mr_request **req);
enum mr_err mr_coll_restart(struct mr_schedule *s, struct mr_request **req);
void mr_coll_drop(struct mr_schedule *s);

/* ---- communicators (comm/) --------------------------------------------------------------------------------------- */

/*
 * Communicators, and other facts that members learn by messages. All functions are collective over the
 * communicator or the named group, and blocking except mr_comm_idup(). *out is a reference for the caller, NULL after
 * an error. Callers hold the library's lock.
 *
 * `wrong` is an error found by the caller in its arguments: the caller takes part, so that the others do not wait, and
 * all fail, the others with the class of the error. Other arguments need not make sense then, except the communicator,
 * the group, the name or the tag by which the members meet.
 */
enum mr_err mr_comm_dup(struct mr_comm *c, enum mr_err wrong, struct mr_comm **out);
/* *out must not be used before the request is complete; with the error of another it ends, and then *out is none. */
enum mr_err mr_comm_idup(struct mr_comm *c, enum mr_err wrong, struct mr_comm **out, struct mr_request **req);
/*
 * The members of c that live, as all of them agree; works on a revoked communicator, too. *out: once complete. NULL:
 * nobody lives in one group of an intercommunicator.
 */
enum mr_err mr_comm_shrink(struct mr_comm *c, struct mr_comm **out);
enum mr_err mr_comm_ishrink(struct mr_comm *c, struct mr_comm **out, struct mr_request **req);
/*
 * Intercommunicators of two jobs (comm/connect.c): the group of c, by its root, with a group of another job, at a port
 * or over a socket. Names of ports have less than 256 characters.
 */
enum mr_err mr_port_open(char *name, size_t cap);
enum mr_err mr_port_close(const char *name);
enum mr_err mr_comm_accept(struct mr_comm *c, const char *port, int root, enum mr_err wrong, struct mr_comm **out);
enum mr_err mr_comm_connect(struct mr_comm *c, const char *port, int root, enum mr_err wrong, struct mr_comm **out);
enum mr_err mr_comm_join(int fd, struct mr_comm **out);
/*
 * Starts a job of these parts (launch.h), known to the root only. cannot: a reason of the root why the job cannot
 * start. The processes connect to the root's group in MPI_Init. *spawned, also after an error: as all processes of c
 * know it. The caller frees the array.
 */
enum { MR_PORT_MAX = 256 };
struct mr_launch_part;
struct mr_spawn {
    const struct mr_launch_part *part;
    int parts;
    enum mr_err cannot;
};
struct mr_spawned {
    int parts; /* 0: wrong arguments, or the communicator has failed */
    struct mr_spawned_part {
        int wanted, started;
    } * part;
};
enum mr_err mr_comm_spawn(struct mr_comm *c, const struct mr_spawn *job, int root, enum mr_err wrong,
                          struct mr_spawned *spawned, struct mr_comm **out);
extern struct mr_comm *mr_comm_parent; /* NULL: no program started this process, or the program has freed it */
enum mr_err mr_comm_meet_parent(void); /* in MPI_Init */
void mr_comm_forget_parent(void);
/* *out NULL: color is MR_UNDEFINED */
enum mr_err mr_comm_split(struct mr_comm *c, int color, int key, enum mr_err wrong, struct mr_comm **out);
enum mr_err mr_comm_split_node(struct mr_comm *c, bool in, int key, struct mr_comm **out); /* by shared memory */
enum mr_err mr_comm_create(struct mr_comm *c, struct mr_group *g, enum mr_err wrong, struct mr_comm **out);
enum mr_err mr_comm_create_group(struct mr_comm *c, struct mr_group *g, int tag, enum mr_err wrong,
                                 struct mr_comm **out);
/*
 * Of local's members and the members of the group whose leader is remote_leader in peer (needed by the leader only;
 * MR_PROC_NULL there: unknown, and `wrong` is set).
 */
enum mr_err mr_intercomm_create(struct mr_comm *local, int leader, struct mr_comm *peer, int remote_leader, int tag,
                                enum mr_err wrong, struct mr_comm **out);
/* Without a parent (from_group.c): all members give the same name. The error handler is MPI_ERRORS_ARE_FATAL. */
enum mr_err mr_comm_create_from_group(struct mr_group *g, const char *name, enum mr_err wrong, struct mr_comm **out);
/* remote and remote_leader: at the leader of `local` only; NULL there: it is not known, and `wrong` is set. */
enum mr_err mr_intercomm_create_from_groups(struct mr_group *local, int leader, struct mr_group *remote,
                                            int remote_leader, const char *name, enum mr_err wrong,
                                            struct mr_comm **out);
enum mr_err mr_intercomm_merge(struct mr_comm *c, bool high, enum mr_err wrong, struct mr_comm **out);

/* Edges that any process may name: source i has degrees[i] of the destinations. */
struct mr_edges {
    int num_sources;
    const int *sources, *degrees, *destinations;
    const int *weights; /* NULL: none */
};
/* Collective over c: each process gets the edges that end at it, whichever process named them. */
enum mr_err mr_dist_graph_gather(struct mr_comm *c, const struct mr_edges *e, enum mr_err wrong,
                                 struct mr_topology **topology);

void mr_making_finalize(void); /* when no communicator is left */

/* ---- places of ranks --------------------------------------------------------------------------------------------- */

/*
 * The places of the ranks of a communicator: rows are nodes, in the order of their first ranks, columns the ranks of a
 * node in order. The places are a grid only if all nodes have equally many ranks. All ranks have the same places, from
 * the launcher's map, so all choose alike.
 */
struct mr_place {
    int nodes, each; /* each: ranks of every node; 0: they differ, and the rest is not set */
    int node, local; /* this rank's */
    int rank[];      /* [nodes * each]: the ranks of node 0, then those of node 1 */
};

static inline int mr_place_rank(const struct mr_place *w, int node, int local)
{
    return w->rank[node * w->each + local];
}

/* The places of c, made at the first call, owned by c. Without memory the job ends. (select.c) */
const struct mr_place *mr_comm_place(struct mr_comm *c);

#endif
