/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects that only api/ and coll/ deal with: constructors of datatypes, operations, groups, communicators,
 * attributes, error handlers, info, topologies. What transports need too is in core.h; the rules there hold here.
 *
 * Callbacks into the user's program are given as a function of the ABI shell (`invoke`, `call`) that knows how to make
 * handles, plus the user's function as an opaque pointer: core/ never sees a handle.
 */
#ifndef MRMPI_CORE_OBJECTS_H
#define MRMPI_CORE_OBJECTS_H

#include "libmrmpi/core/basic.h"
#include "libmrmpi/core/core.h"

typedef void (*mr_user_fn)(void); /* cast back by the shell that stored it */

/* ---- datatypes (type.c, type_make.c) ----------------------------------------------------------------------------- */

extern struct mr_type mr_type_basic[MR_NUM_BASICS];

enum mr_combiner {
    MR_COMBINER_NAMED,
    MR_COMBINER_DUP,
    MR_COMBINER_CONTIGUOUS,
    MR_COMBINER_VECTOR,
    MR_COMBINER_HVECTOR,
    MR_COMBINER_INDEXED,
    MR_COMBINER_HINDEXED,
    MR_COMBINER_INDEXED_BLOCK,
    MR_COMBINER_HINDEXED_BLOCK,
    MR_COMBINER_STRUCT,
    MR_COMBINER_SUBARRAY,
    MR_COMBINER_RESIZED,
    MR_COMBINER_DARRAY,
    MR_COMBINER_F90_REAL,
    MR_COMBINER_F90_COMPLEX,
    MR_COMBINER_F90_INTEGER,
};

/*
 * The arguments of the constructor, in the order of MPI_Type_get_contents. What a constructor of large counts was given
 * as counts and displacements is in `counts`; otherwise counts are in `ints` and displacements in bytes in `aints`.
 */
struct mr_recipe {
    enum mr_combiner combiner;
    bool large;
    int64_t num_ints, num_aints, num_counts;
    int num_types, num_hidden; /* the last num_hidden types are our own intermediate steps */
    int *ints;
    ptrdiff_t *aints;
    int64_t *counts;
    struct mr_type **types;
};

/*
 * All return a new type with one reference, NULL when there is no memory. Arguments have been checked. large: made by a
 * constructor of large counts; only what MPI_Type_get_contents tells depends on it. The old type comes before it.
 */
struct mr_type *mr_type_dup(struct mr_type *t);
struct mr_type *mr_type_contiguous(int64_t count, struct mr_type *t, bool large);
struct mr_type *mr_type_vector(int64_t count, int64_t length, int64_t stride, struct mr_type *t, bool large);
struct mr_type *mr_type_hvector(int64_t count, int64_t length, int64_t stride, struct mr_type *t, bool large);
struct mr_type *mr_type_indexed(int64_t count, const int64_t *lengths, const int64_t *disps, struct mr_type *t,
                                bool large);
struct mr_type *mr_type_hindexed(int64_t count, const int64_t *lengths, const int64_t *disps, struct mr_type *t,
                                 bool large);
struct mr_type *mr_type_indexed_block(int64_t count, int64_t length, const int64_t *disps, struct mr_type *t,
                                      bool large);
struct mr_type *mr_type_hindexed_block(int64_t count, int64_t length, const int64_t *disps, struct mr_type *t,
                                       bool large);
struct mr_type *mr_type_struct(int64_t count, const int64_t *lengths, const int64_t *disps,
                               struct mr_type *const *types, bool large);
struct mr_type *mr_type_resized(struct mr_type *t, ptrdiff_t lb, ptrdiff_t extent, bool large);

/* Arrays (type_array.c). order is kept for MPI_Type_get_contents; fortran: the first dimension is the fastest. */
struct mr_order {
    bool fortran;
    int constant;
};
struct mr_type *mr_type_subarray(int ndims, const int64_t *sizes, const int64_t *subsizes, const int64_t *starts,
                                 struct mr_order order, struct mr_type *t, bool large);
enum mr_distribution { MR_DISTRIBUTE_NONE, MR_DISTRIBUTE_BLOCK, MR_DISTRIBUTE_CYCLIC };
struct mr_darray {
    int size, rank, ndims;
    const int64_t *gsizes;
    /* As the user gave them, with the ABI's constants: for MPI_Type_get_contents. */
    const int *distribs, *dargs, *psizes;
    /* The same decoded: which distribution, the block length that it has. */
    const enum mr_distribution *kinds;
    const int64_t *blocks;
};
struct mr_type *mr_type_darray(const struct mr_darray *a, struct mr_order order, struct mr_type *t, bool large);

/*
 * The types of Fortran 90's selected kinds (type_f90.c). The same arguments give the same type, which is built in: it
 * is committed, cannot be freed and lives until mr_type_f90_finalize. MR_UNDEFINED: any precision or range will do.
 * *out is NULL when there is no memory; MR_ERR_ARG: no such kind.
 */
enum mr_err mr_type_f90(enum mr_combiner combiner, int precision, int range, struct mr_type **out);
void mr_type_f90_finalize(void);

/* Basic elements in the first `bytes` bytes of data of a sequence of t. */
size_t mr_type_elements(const struct mr_type *t, size_t bytes);
/* The other way round: bytes of data that the first n basic elements of a sequence of t have. */
size_t mr_type_element_bytes(const struct mr_type *t, size_t n);
const char *mr_type_name(const struct mr_type *t);
/* Bytes of each basic element, if all have the same size; 0 if not, or if they are pairs. */
size_t mr_type_grain(const struct mr_type *t);
static inline ptrdiff_t mr_type_ub(const struct mr_type *t)
{
    return t->lb + t->extent;
}
/* Copy between two buffers of equal size in bytes and any types (local copies of collectives); surplus is left out. */
void mr_type_copy(const void *in, size_t in_count, const struct mr_type *in_type, void *out, size_t out_count,
                  const struct mr_type *out_type);
/* Bytes that count elements span in memory, from lb_bytes(...) on: for temporary buffers. */
struct mr_span {
    ptrdiff_t lo;
    size_t len;
};
struct mr_span mr_type_span(const struct mr_type *t, size_t count);

/* The data representation "external32" (external.c; MPI-3.1 section 13.5.2): bytes of one element of t. */
size_t mr_external_size(const struct mr_type *t);
/* Convert count elements to or from it; flat has count * mr_external_size(t) bytes. */
void mr_external_pack(const void *buf, size_t count, const struct mr_type *t, void *flat);
void mr_external_unpack(void *buf, size_t count, const struct mr_type *t, const void *flat);

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
    mr_user_fn user, through; /* the function; what calls it, if it is of another language */
    void (*invoke)(const struct mr_op *op, const void *in, void *inout, size_t count, struct mr_type *type);
};

extern struct mr_op mr_op_builtin[MR_OP_COUNT];
struct mr_op *mr_op_new(void);
struct mr_op *mr_op_get(struct mr_op *op);
void mr_op_put(struct mr_op *op);
bool mr_op_allows(const struct mr_op *op, const struct mr_type *type);
const char *mr_op_name(const struct mr_op *op);
/* inout[i] = in[i] op inout[i] */
void mr_op_apply(const struct mr_op *op, const void *in, void *inout, size_t count, struct mr_type *type);

/* ---- groups (group.c) -------------------------------------------------------------------------------------------- */

extern struct mr_group mr_group_empty;
/* Takes a copy of world[]. NULL when there is no memory. */
struct mr_group *mr_group_new(int size, const int *world);
struct mr_group *mr_group_get(struct mr_group *g);
void mr_group_put(struct mr_group *g);
struct mr_session *mr_session_new(void); /* NULL: no memory */
void mr_session_put(struct mr_session *s); /* NULL is fine */
/* A group of the same processes that comes from s; NULL: no memory. */
struct mr_group *mr_session_group(struct mr_session *s, const struct mr_group *of);
void mr_group_derive(struct mr_group *g, struct mr_session *s); /* g, of which nobody else knows yet, comes from s */
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
/* The members of g that have the color, in order of their keys; entries: color and key of each member. NULL: no memory. */
struct mr_group *mr_group_split(const struct mr_group *g, const int (*entries)[2], int color);

/* ---- communicators (comm.c); comm/comm.h makes one out of another --------------------------------------------------- */

enum mr_compare mr_comm_compare(const struct mr_comm *a, const struct mr_comm *b);
bool mr_comm_on_one_node(const struct mr_comm *c); /* all members */
/*
 * A communicator, and an intercommunicator, whose local group gets ids[1]. They take over the groups (NULL: there was no
 * memory for one) and the ids, whatever happens.
 */
enum mr_err mr_comm_make(uint32_t id, struct mr_group *group, const struct mr_comm *parent, struct mr_comm **out);
enum mr_err mr_inter_make(const uint32_t *ids, struct mr_group *group, struct mr_group *remote,
                          const struct mr_comm *parent, struct mr_comm **out);
/* What a duplicate has of the original, attributes apart. */
enum mr_err mr_comm_make_dup(struct mr_comm *c, const uint32_t *ids, struct mr_comm **out);
/*
 * A communicator of the members of g that lives while another is made; NULL: no memory. Its messages say who sent them by
 * places in the world, not in g: of all the groups with which a process makes communicators in this context and with this
 * tag, one after the other, two processes have the common ones in the same order, and so their messages for each other.
 */
struct mr_comm *mr_comm_passing(struct mr_group *g, uint32_t context, int tag);

/* The world and self, for init.c. */
struct mr_launch;
int mr_comm_init(const struct mr_launch *launch);
void mr_comm_finalize(void);

/* ---- attributes (attr.c) ----------------------------------------------------------------------------------------- */

enum mr_keyval_kind { MR_KEYVAL_COMM, MR_KEYVAL_TYPE, MR_KEYVAL_WIN };
/* C programs store pointers, Fortran programs numbers, and each sees the other's in its own way (MPI-4.0 section 19.3.7). */
struct mr_attr_value {
    void *word;
    bool number;
};
struct mr_keyval {
    int refs;
    int handle;
    enum mr_keyval_kind kind;
    bool freed;           /* by the program: what is left are references of attributes */
    mr_user_fn copy, del; /* NULL: not copied, nothing to do */
    mr_user_fn copy_through, del_through; /* what calls them, for functions of other languages; NULL: C */
    void *extra;
    /* Provided by the shell; return an error code of the user (0: fine). */
    int (*call_copy)(struct mr_keyval *k, void *object, struct mr_attr_value *value, void **out, int *flag);
    int (*call_delete)(struct mr_keyval *k, void *object, struct mr_attr_value *value);
    void (*gone)(struct mr_keyval *k); /* the last attribute that used it went after the program freed it */
};
struct mr_keyval *mr_keyval_new(enum mr_keyval_kind kind);
void mr_keyval_put(struct mr_keyval *k);
enum mr_err mr_attr_set(struct mr_attr **list, void *object, struct mr_keyval *k, struct mr_attr_value value,
                        int *user_error);
/* The place of the value, which lasts as long as the attribute; NULL: the object has none. */
struct mr_attr_value *mr_attr_get(struct mr_attr *list, const struct mr_keyval *k);
enum mr_err mr_attr_delete(struct mr_attr **list, void *object, struct mr_keyval *k, int *user_error);
enum mr_err mr_attr_delete_all(struct mr_attr **list, void *object, int *user_error); /* last set, first deleted */
enum mr_err mr_attr_copy_all(struct mr_attr *from, void *from_object, struct mr_attr **to, int *user_error);

/* ---- error handlers and texts (errhandler.c, error.c) ------------------------------------------------------------ */

enum mr_errhandler_kind { MR_ERRHANDLER_FATAL, MR_ERRHANDLER_RETURN, MR_ERRHANDLER_ABORT, MR_ERRHANDLER_USER };
enum mr_errhandler_of { MR_ERRHANDLER_COMM, MR_ERRHANDLER_SESSION, MR_ERRHANDLER_WIN, MR_ERRHANDLER_FILE };
struct mr_errhandler {
    int refs;
    int handle;
    enum mr_errhandler_kind kind;
    enum mr_errhandler_of of; /* users' ones: for which objects */
    mr_user_fn user, through; /* the function; what calls it, if it is of another language */
};
extern struct mr_errhandler mr_errhandler_fatal, mr_errhandler_return, mr_errhandler_abort;
extern struct mr_errhandler mr_errhandler_throw; /* returns; what MPICH's C++ binding then does about it is its business */
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

/* ---- topologies (topo.c, dims.c) ---------------------------------------------------------------------------------- */

enum mr_topology_kind { MR_TOPO_CART, MR_TOPO_GRAPH, MR_TOPO_DIST_GRAPH };

/*
 * The neighbours of the calling process in the order of the neighbourhood collectives: those it hears from and those it
 * speaks to. A rank may be there more than once; in grids it may be MR_PROC_NULL, and there (2 i) is the neighbour down
 * dimension i, (2 i + 1) the one up.
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
/* The makers copy what they are given; NULL: no memory. */
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
