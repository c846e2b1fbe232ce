/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects for api/ and coll/ only: constructors of datatypes, operations, groups, communicators, attributes, error
 * handlers, info, topologies. Objects for transports too are in core.h, with the same rules.
 *
 * Callbacks into the user's program are a function of the ABI shell (`invoke`, `call`), which makes handles, and the
 * user's function as an opaque pointer: core/ never sees a handle.
 */
#ifndef MRMPI_CORE_OBJECTS_H
#define MRMPI_CORE_OBJECTS_H

#include "libmrmpi/core/basic.h"
#include "libmrmpi/core/attr.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/core/datatype.h"

/* ---- operations (op.c) ------------------------------------------------------------------------------------------- */

enum mr_op_id {
    MR_OP_MAX,
    MR_OP_MIN,
    MR_OP_SUM,
    MR_OP_PROD,
    MR_OP_LAND,
    MR_OP_BAND,
    MR_OP_LOR,
    MR_OP_BOR,
    MR_OP_LXOR,
    MR_OP_BXOR,
    MR_OP_MINLOC,
    MR_OP_MAXLOC,
    MR_OP_REPLACE,
    MR_OP_NO_OP,
    MR_OP_COUNT,
    MR_OP_USER = MR_OP_COUNT,
};

struct mr_op {
    int refs;
    int handle;
    enum mr_op_id id;
    bool commutative;
    mr_user_fn user, through; /* the function; its caller, for other languages */
    void (*invoke)(const struct mr_op *op, const void *in, void *inout, size_t count, struct mr_type *type);
};

extern struct mr_op mr_op_builtin[MR_OP_COUNT];
struct mr_op *mr_op_new(void);
struct mr_op *mr_op_get(struct mr_op *op);
void mr_op_put(struct mr_op *op);
bool mr_op_allows(const struct mr_op *op, const struct mr_type *type);
/* Operations do the same to basic types a and b (enum mr_basic). */
bool mr_op_alike(uint8_t a, uint8_t b);
const char *mr_op_name(const struct mr_op *op);
/* inout[i] = in[i] op inout[i] */
void mr_op_apply(const struct mr_op *op, const void *in, void *inout, size_t count, struct mr_type *type);

/* ---- groups (group.c) -------------------------------------------------------------------------------------------- */

extern struct mr_group mr_group_empty;
/* Takes a copy of world[]. NULL when there is no memory. */
struct mr_group *mr_group_new(int size, const int *world);
struct mr_group *mr_group_get(struct mr_group *g);
void mr_group_put(struct mr_group *g);
struct mr_session *mr_session_new(void);   /* NULL: no memory */
void mr_session_put(struct mr_session *s); /* NULL is fine */
/* A group of the same processes that comes from s; NULL: no memory. */
struct mr_group *mr_session_group(struct mr_session *s, const struct mr_group *of);
void mr_group_derive(struct mr_group *g, struct mr_session *s); /* g, not yet known to others, gets the session s */
struct mr_group *mr_group_incl(const struct mr_group *g, int n, const int *ranks);
struct mr_group *mr_group_excl(const struct mr_group *g, int n, const int *ranks);
/* MPI range triplets (first, last, stride) to a list of ranks; the caller frees it. */
enum mr_err mr_group_range(const struct mr_group *g, int n, int (*ranges)[3], int **ranks, int *count);
struct mr_group *mr_group_union(const struct mr_group *a, const struct mr_group *b);
struct mr_group *mr_group_intersection(const struct mr_group *a, const struct mr_group *b);
struct mr_group *mr_group_difference(const struct mr_group *a, const struct mr_group *b);
int mr_group_find(const struct mr_group *g, int world_rank); /* rank or MR_UNDEFINED */
enum mr_compare { MR_IDENT, MR_CONGRUENT, MR_SIMILAR, MR_UNEQUAL };
enum mr_compare mr_group_compare(const struct mr_group *a, const struct mr_group *b);
/*
 * The members of g that have the color, in order of their keys; entries: color and key of each member. NULL: no memory.
 */
struct mr_group *mr_group_split(struct mr_group *g, const int (*entries)[2], int color);

/*
 * ---- communicators (comm.c); coll/comm/comm.h makes one out of another
 * ---------------------------------------------------
 */

enum mr_compare mr_comm_compare(const struct mr_comm *a, const struct mr_comm *b);
bool mr_comm_on_one_node(const struct mr_comm *c); /* all members */
/*
 * A communicator, and an intercommunicator, whose local group gets ids[1]. Both take over the groups (NULL: there was
 * no memory for a group) and the ids, in every case.
 */
enum mr_err mr_comm_make(uint32_t id, struct mr_group *group, const struct mr_comm *parent, struct mr_comm **out);
enum mr_err mr_inter_make(const uint32_t *ids, struct mr_group *group, struct mr_group *remote,
                          const struct mr_comm *parent, struct mr_comm **out);
/* A duplicate's parts of the original, without attributes. */
enum mr_err mr_comm_make_dup(struct mr_comm *c, const uint32_t *ids, struct mr_comm **out);
/*
 * A communicator of the members of g during the creation of another; NULL: no memory. Its messages name senders by
 * their places in the world, not in g. Two processes have their common groups, among all groups of communicators under
 * creation in this context and with this tag, in the same order, and so their messages for each other.
 */
struct mr_comm *mr_comm_passing(struct mr_group *g, uint32_t context, int tag);

/* Some members of c, for c's own collectives: its context with a bit. Takes g over; NULL: no memory. */
enum mr_comm_parts { MR_COMM_ROW = 0x01000000, MR_COMM_COLUMN = 0x02000000 };
struct mr_comm *mr_comm_part(const struct mr_comm *c, struct mr_group *g, enum mr_comm_parts which);

/* The world and self, for init.c. */
struct mr_launch;
int mr_comm_init(const struct mr_launch *launch);
void mr_comm_finalize(void);

/* ---- error handlers and texts (errhandler.c, error.c) ------------------------------------------------------------ */

enum mr_errhandler_kind { MR_ERRHANDLER_FATAL, MR_ERRHANDLER_RETURN, MR_ERRHANDLER_ABORT, MR_ERRHANDLER_USER };
enum mr_errhandler_of { MR_ERRHANDLER_COMM, MR_ERRHANDLER_SESSION, MR_ERRHANDLER_WIN, MR_ERRHANDLER_FILE };
struct mr_errhandler {
    int refs;
    int handle;
    enum mr_errhandler_kind kind;
    enum mr_errhandler_of of; /* users' handlers: the kind of object */
    mr_user_fn user, through; /* the function; its caller, for other languages */
};
extern struct mr_errhandler mr_errhandler_fatal, mr_errhandler_return, mr_errhandler_abort;
/* returns; MPICH's C++ binding then handles the error */
extern struct mr_errhandler mr_errhandler_throw;
struct mr_errhandler *mr_errhandler_new(void);
struct mr_errhandler *mr_errhandler_get(struct mr_errhandler *h);
void mr_errhandler_put(struct mr_errhandler *h);
const char *mr_err_text(enum mr_err err); /* "invalid rank" */
const char *mr_err_name(enum mr_err err); /* "MPI_ERR_RANK" */
/* Sets the detail text and returns err: return mr_fail(MR_ERR_RANK, "rank %d ...", rank); */
#define mr_fail(err, ...) (mr_error_detail(__VA_ARGS__), (err))

/* ---- info (info.c): an ordered list of pairs --------------------------------------------------------------------- */

struct mr_info_pair {
    char *key, *value;
};
struct mr_info {
    int refs;
    int handle;
    int count;
    struct mr_info_pair *pairs;
};
struct mr_info *mr_info_new(void);
struct mr_info *mr_info_dup(const struct mr_info *i);
void mr_info_put(struct mr_info *i);
bool mr_info_set(struct mr_info *i, const char *key, const char *value); /* false: no memory */
const char *mr_info_find(const struct mr_info *i, const char *key);      /* NULL: not there */
bool mr_info_delete(struct mr_info *i, const char *key);

/*
 * ---- topologies (topo.c, dims.c) ----------------------------------------------------------------------------------
 */

enum mr_topology_kind { MR_TOPO_CART, MR_TOPO_GRAPH, MR_TOPO_DIST_GRAPH };

/*
 * The neighbours of the calling process in the order of the neighbourhood collectives: sources and destinations. A rank
 * may occur more than once; in grids a neighbour may be MR_PROC_NULL, and (2 i) is the neighbour down dimension i, (2 i
 * + 1) the neighbour up.
 */
struct mr_neighbors {
    int num_in, num_out;
    const int *in, *out;
    bool weighted; /* distributed graphs only */
    const int *in_weights, *out_weights;
};

struct mr_topology {
    int refs;
    enum mr_topology_kind kind;
    struct mr_neighbors around;
    /* grid; coords of the calling process */
    int ndims;
    int *dims, *periods, *coords;
    /* graph: index[i] is the number of edges of nodes 0 to i */
    int num_nodes;
    int *index, *edges;
    int *room; /* where all the arrays are */
};

struct mr_topology *mr_topology_get(struct mr_topology *t);
void mr_topology_put(struct mr_topology *t); /* NULL is fine */
/* The constructors copy their arguments; NULL: no memory. */
struct mr_topology *mr_cart_new(int ndims, const int *dims, const int *periods, int rank);
struct mr_topology *mr_graph_new(int nodes, const int *index, const int *edges, int rank);
struct mr_topology *mr_dist_graph_new(const struct mr_neighbors *of);
/* MR_PROC_NULL: outside of a dimension that is not periodic */
int mr_cart_rank(const struct mr_topology *t, const int *coords);
int mr_cart_shifted(const struct mr_topology *t, int direction, int by);
void mr_cart_coords(const struct mr_topology *t, int rank, int maxdims, int *coords);
const int *mr_graph_neighbors(const struct mr_topology *t, int rank, int *n);
enum mr_err mr_dims_create(int nnodes, int ndims, int *dims);

#endif
