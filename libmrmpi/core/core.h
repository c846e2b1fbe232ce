/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects of MPI inside the library: pointers, not handles; constants of our own. api/ turns handles into objects
 * and back; coll/, p2p/ and below never see a handle.
 *
 * Objects are counted (mr_*_get, mr_*_put); built-in objects are never freed. Callers hold the library's lock
 * (base/lock.h) at the thread level MPI_THREAD_MULTIPLE.
 *
 * Functions that can fail return enum mr_err: the error class, which api/ maps to the ABI's number and hands to the
 * error handler. Details for the message go through mr_error_detail().
 *
 * Callbacks into the user's program are a function of the ABI shell (`invoke`, `call`), which makes handles, and the
 * user's function as an opaque pointer.
 */
#ifndef MRMPI_CORE_H
#define MRMPI_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/core/basic.h"

/* Special ranks and tags inside the library. */
#define MR_PROC_NULL  (-1)
#define MR_ANY_SOURCE (-2)
#define MR_ANY_TAG    (-1)
#define MR_UNDEFINED  (-32766)
#define MR_TAG_UB     0x3fffffff

struct mr_recipe;
struct mr_layout;
struct mr_bsend;
struct mr_launch;
struct mr_errhandler;
struct mr_attr;
struct mr_info;
struct mr_topology;

typedef void (*mr_user_fn)(void); /* cast back by the shell that stored it */

/* ---- errors (error.c) -------------------------------------------------------------------------------------------- */

/* MPI-3.1 section 8.4, error classes. */
enum mr_err {
    MR_SUCCESS = 0,
    MR_ERR_BUFFER,
    MR_ERR_COUNT,
    MR_ERR_TYPE,
    MR_ERR_TAG,
    MR_ERR_COMM,
    MR_ERR_RANK,
    MR_ERR_ROOT,
    MR_ERR_GROUP,
    MR_ERR_OP,
    MR_ERR_TOPOLOGY,
    MR_ERR_DIMS,
    MR_ERR_ARG,
    MR_ERR_UNKNOWN,
    MR_ERR_TRUNCATE,
    MR_ERR_OTHER,
    MR_ERR_INTERN,
    MR_ERR_IN_STATUS,
    MR_ERR_PENDING,
    MR_ERR_REQUEST,
    MR_ERR_NO_MEM,
    MR_ERR_KEYVAL,
    MR_ERR_INFO,
    MR_ERR_INFO_KEY,
    MR_ERR_INFO_VALUE,
    MR_ERR_INFO_NOKEY,
    MR_ERR_NAME,
    MR_ERR_UNSUPPORTED_OPERATION,
    MR_ERR_FILE,
    MR_ERR_WIN,
    MR_ERR_SESSION,
    MR_ERR_BASE,
    MR_ERR_ABI,
    MR_ERR_SIZE,
    MR_ERR_DISP,
    MR_ERR_ASSERT,
    MR_ERR_LOCKTYPE,
    MR_ERR_RMA_CONFLICT,
    MR_ERR_RMA_SYNC,
    MR_ERR_RMA_RANGE,
    MR_ERR_RMA_ATTACH,
    MR_ERR_RMA_SHARED,
    MR_ERR_RMA_FLAVOR,
    MR_ERR_ACCESS,
    MR_ERR_AMODE,
    MR_ERR_BAD_FILE,
    MR_ERR_CONVERSION,
    MR_ERR_DUP_DATAREP,
    MR_ERR_FILE_EXISTS,
    MR_ERR_FILE_IN_USE,
    MR_ERR_IO,
    MR_ERR_NOT_SAME,
    MR_ERR_NO_SPACE,
    MR_ERR_NO_SUCH_FILE,
    MR_ERR_QUOTA,
    MR_ERR_READ_ONLY,
    MR_ERR_UNSUPPORTED_DATAREP,
    MR_ERR_PROC_FAILED,
    MR_ERR_PROC_FAILED_PENDING,
    MR_ERR_REVOKED,
    MR_ERR_PORT,
    MR_ERR_SERVICE,
    MR_ERR_SPAWN,
    MR_ERR_LAST = MR_ERR_SPAWN
};

/* Text for the error that this thread is about to return: function, argument, value, host, rail. Bounded, never fails.
 */
void mr_error_detail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *mr_error_take_detail(void); /* "" without detail; clears the detail */

const char *mr_err_text(enum mr_err err); /* "invalid rank" */
const char *mr_err_name(enum mr_err err); /* "MPI_ERR_RANK" */
/* Sets the detail text and returns err: return mr_fail(MR_ERR_RANK, "rank %d ...", rank); */
#define mr_fail(err, ...) (mr_error_detail(__VA_ARGS__), (err))

/* ---- error handlers (errhandler.c) ------------------------------------------------------------------------------- */

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

/* ---- groups (group.c) -------------------------------------------------------------------------------------------- */

/* A session. Groups and communicators from it share it, and may outlive its end. */
struct mr_session {
    int refs;
    int handle; /* 0: ended */
    int thread_level;
    struct mr_errhandler *errhandler;
    struct mr_bsend *buffer; /* attached to the session (p2p/derived/bsend.c), NULL: none */
};

struct mr_group {
    int refs;
    int handle;
    int size;
    int rank;                   /* of the calling process, MR_UNDEFINED if not a member */
    bool mixed;                 /* of processes of this job and guests, or of guests alone (launch.h) */
    int *world;                 /* [size] world ranks, or numbers of guests */
    struct mr_session *session; /* its session, NULL: none */
    struct mr_group *next_mixed, *prev_mixed;
};

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
bool mr_groups_name(int guest, const struct mr_group *but);  /* some other group has that member */
enum mr_compare { MR_IDENT, MR_CONGRUENT, MR_SIMILAR, MR_UNEQUAL };
enum mr_compare mr_group_compare(const struct mr_group *a, const struct mr_group *b);
/*
 * The members of g that have the color, in order of their keys; entries: color and key of each member. NULL: no memory.
 */
struct mr_group *mr_group_split(struct mr_group *g, const int (*entries)[2], int color);

/* ---- communicators (comm.c, context.c); coll/ makes one out of another ------------------------------------------- */

struct mr_place;
struct mr_node;
struct mr_grid;

struct mr_comm {
    int refs;
    int handle;       /* index for the api's table */
    uint32_t context; /* even; point-to-point uses the context itself, collectives use context | 1 */
    int rank, size;   /* in the local group */
    struct mr_group *group;
    /* the group named by ranks of messages: the group itself; of an intercommunicator, the remote group */
    struct mr_group *peers;
    int num_peers;
    /* intercommunicators: its local group as an intracommunicator of its own; NULL: no intercommunicator */
    struct mr_comm *local;
    struct mr_errhandler *errhandler;
    uint32_t coll_seq;             /* counts collectives: their tag */
    bool passing;                  /* lives while another is made only: mr_comm_passing */
    int passing_tag;               /* of all its messages */
    bool part;                     /* some ranks of another communicator, with its context: mr_comm_part, */
    const struct mr_comm *whole;   /* the other communicator */
    unsigned losses;               /* of processes when its members were last checked (mr_comm_fault), */
    unsigned num_failed;           /* members among them, */
    unsigned num_acked;            /* those whose failure the program has acknowledged, */
    enum mr_err fault;             /* and the error of collective operations because of that */
    struct mr_group *peers_before; /* revoked: its peers, in place of whom nobody is there now; else NULL */
    struct mr_comm *next_live, *prev_live;
    uint64_t born;                /* its number among all communicators made here, from 1 on: never used again */
    uint64_t made_from;           /* of a window's own, or a file's: born of the one given by the program; else 0 */
    bool source_revoked;          /* the latter has been revoked: nothing in the object waits for others any more */
    bool of_window;               /* its messages carry data of a window */
    struct mr_place *place;       /* coll/place.h, NULL until the first use */
    struct mr_node *node;         /* coll/node/area.h, NULL: none */
    struct mr_grid *grid;         /* coll/grid.h, NULL: none */
    unsigned node_calls;          /* collectives that could have used the node area (coll/node.c) */
    bool node_settled;            /* decided whether there is an area */
    struct mr_attr *attrs;        /* core/attr.c */
    struct mr_info *info;         /* hints, NULL if none */
    struct mr_topology *topology; /* core/topo.c, NULL if none */
    struct mr_bsend *buffer;      /* attached to it (p2p/derived/bsend.c), NULL if none */
    char name[128];
};

static inline bool mr_comm_is_inter(const struct mr_comm *c)
{
    return c->local != NULL;
}

/* Of a rank that messages can be sent to or received from. */
static inline int mr_comm_world_rank(const struct mr_comm *c, int rank)
{
    return c->peers->world[rank];
}

/* The group that messages name, whether revoked or not. */
static inline struct mr_group *mr_comm_peers(const struct mr_comm *c)
{
    return unlikely(c->peers_before != NULL) ? c->peers_before : c->peers;
}

/* Has members of several jobs. */
static inline bool mr_comm_is_mixed(const struct mr_comm *c)
{
    return c->group->mixed || mr_comm_peers(c)->mixed;
}

struct mr_comm *mr_comm_get(struct mr_comm *c);
extern struct mr_comm *mr_comms; /* all there are: by next_live */
void mr_comm_put(struct mr_comm *c);
/* What core/ calls above it. */
struct mr_core_upcalls {
    void (*node_end)(struct mr_comm *c);  /* gives back c->node and c->grid; set by coll/ before the first of them */
    void (*comm_made)(struct mr_comm *c); /* NULL: nobody wants to know */
};
extern struct mr_core_upcalls mr_core_up;

extern struct mr_comm *mr_comm_world, *mr_comm_self; /* set by mr_comm_init */

enum mr_compare mr_comm_compare(const struct mr_comm *a, const struct mr_comm *b);
bool mr_comm_on_one_node(const struct mr_comm *c); /* all members */
/*
 * The node of a rank. Jobs number nodes differently: if members belong to several jobs, each counts as a node of its
 * own.
 */
int mr_comm_node_of(const struct mr_comm *c, int rank);
/*
 * For messages by the number of their receiver or sender, in place of a rank: the world for processes of this job, else
 * a communicator whose messages have the receiver's number of the sender. NULL: no memory.
 */
struct mr_comm *mr_comm_for(int number);
bool mr_guest_is_named(int number); /* by a group, of a communicator or not, but for the one that names all */
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
int mr_comm_init(const struct mr_launch *launch);
void mr_comm_finalize(void);

/*
 * Context ids of this process: even numbers, each free or taken. The ids of a new communicator must be free at all of
 * its members; coll/comm/agree.c finds such ids.
 */
enum { MR_CONTEXT_WORDS = 64, MR_CONTEXT_MAX = MR_CONTEXT_WORDS * 64, MR_CONTEXT_NONE = 1 };

/*
 * Further ids, each used once: communicators made of the living members of others (coll/comm/shrink.c). They need no
 * mask: members agree on the largest number that one of them has not used.
 */
enum { MR_CONTEXT_ONCE = 2 * MR_CONTEXT_MAX, MR_CONTEXT_ONCE_NUM = (MR_COMM_ROW - MR_CONTEXT_ONCE) / 2 };

/* The mask of free ids: bit i of word w stands for 2 * (64 * w + i). */
const uint64_t *mr_context_ids(void);
void mr_context_take(uint32_t id);

/* ---- datatypes: packing (type.c, pack.c) ------------------------------------------------------------------------- */

/* A datatype with its layout flattened at commit time (core/type.c, core/pack.c). */
struct mr_type {
    int refs;
    int handle;
    size_t size; /* bytes of data in one element */
    ptrdiff_t lb, extent;
    ptrdiff_t true_lb, true_extent;
    bool contiguous; /* any count is one run of bytes starting at true_lb */
    bool committed;
    bool builtin;
    bool sticky_lb, sticky_ub; /* set by MPI_LB, MPI_UB, resized: they outlast constructors */
    uint8_t align;             /* largest alignment of its basic types */
    size_t elements;           /* basic elements in one element of the type */
    uint8_t basic;             /* built-in: enum mr_basic; else the one basic type inside, or MR_BASIC_MIXED */
    struct mr_layout *layout;
    struct mr_recipe *recipe; /* its construction (NULL: built-in); keeps the old types */
    struct mr_attr *attrs;
    char *name; /* MPI_Type_set_name, NULL: none */
};

/*
 * Copy bytes [offset, offset + len) of the packed form of (buf, count, type) to or from a contiguous buffer.
 * offset + len <= count * type->size. Contiguous types cost one memcpy. Any offset is allowed: protocols resume.
 */
void mr_type_pack(const void *buf, size_t count, const struct mr_type *type, size_t offset, void *out, size_t len);
void mr_type_unpack(void *buf, size_t count, const struct mr_type *type, size_t offset, const void *in, size_t len);
static inline struct mr_type *mr_type_get(struct mr_type *t)
{
    if (unlikely(!t->builtin))
        t->refs++;
    return t;
}
void mr_type_put(struct mr_type *t);
extern struct mr_type *const mr_type_byte; /* for transport and collectives' own messages */

/*
 * The flattened layout of a datatype: a list of runs. A run is `count` pieces, `stride` bytes apart; a piece is `elem`
 * bytes of memory in one stretch (child == NULL) or another layout. Irregular blocks are one run too, with a list of
 * the places of its pieces. A layout belongs to its type (layout.h).
 */
struct mr_run {
    ptrdiff_t disp;
    size_t offset; /* bytes of data in the runs before this run */
    size_t count, elem;
    ptrdiff_t stride;
    const struct mr_layout *child;
    const ptrdiff_t *at;  /* [count] where the pieces are, counted from disp; NULL: they are stride apart */
    const size_t *before; /* with at, [count + 1]: bytes of data in the pieces before each; NULL: each is elem bytes */
};

struct mr_layout {
    size_t size;      /* bytes of data */
    ptrdiff_t lo, hi; /* memory touched: [lo, hi) */
    size_t num, cap;
    struct mr_run *runs;
    ptrdiff_t *at; /* memory of the lists of its own runs */
    size_t *before;
};

static inline size_t mr_run_size(const struct mr_run *r)
{
    return r->before ? r->before[r->count] : r->count * r->elem;
}

/* ---- datatypes: construction and queries (type_make.c, type_array.c; MPI-4.0 chapter 5) -------------------------- */

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
 * The arguments of the constructor, in the order of MPI_Type_get_contents. Counts and displacements of a constructor of
 * large counts are in `counts`; otherwise counts are in `ints` and displacements in bytes in `aints`.
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
 * All return a new type with one reference, NULL without memory. Arguments have been checked. large: a constructor of
 * large counts, which affects only MPI_Type_get_contents. The old type comes before large.
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
    /* The same decoded: the distribution, and its block length. */
    const enum mr_distribution *kinds;
    const int64_t *blocks;
};
struct mr_type *mr_type_darray(const struct mr_darray *a, struct mr_order order, struct mr_type *t, bool large);

/*
 * The types of Fortran 90's selected kinds (type_f90.c). The same arguments give the same type, which is built in:
 * committed, never freed by the program, alive until mr_type_f90_finalize. MR_UNDEFINED: any precision or range. *out
 * is NULL without memory; MR_ERR_ARG: no such kind.
 */
enum mr_err mr_type_f90(enum mr_combiner combiner, int precision, int range, struct mr_type **out);
void mr_type_f90_finalize(void);

/* Basic elements in the first `bytes` bytes of data of a sequence of t. */
size_t mr_type_elements(const struct mr_type *t, size_t bytes);
/* The other way round: bytes of data that the first n basic elements of a sequence of t have. */
size_t mr_type_element_bytes(const struct mr_type *t, size_t n);
/* The built-in type to which that byte of data belongs; offset < t->size. */
struct mr_type *mr_type_builtin_at(const struct mr_type *t, size_t offset);
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

/*
 * Types in files of other data representations (external.c; MPI-4.1 sections 14.5.1 and 14.5.2): the bytes of each
 * basic type. size: of one element of a basic type (enum mr_basic).
 */
struct mr_file_form {
    size_t (*size)(const struct mr_file_form *form, int basic);
};
extern const struct mr_file_form mr_external32;
/* Bytes of one element of t. */
size_t mr_file_form_size(const struct mr_file_form *form, const struct mr_type *t);
/*
 * The type of the same data in a file: displacements in multiples of a type's extent follow the type, displacements in
 * bytes are unchanged. A reference for the caller, perhaps t itself. NULL: no memory.
 */
struct mr_type *mr_file_form_type(const struct mr_file_form *form, struct mr_type *t);
bool mr_file_form_keeps(const struct mr_file_form *form,
                        const struct mr_type *t); /* all basic types have their sizes */
/* True if visit() returns true for each basic type inside t. */
bool mr_type_all_basics(const struct mr_type *t, bool (*visit)(void *arg, int basic), void *arg);

/* The data representation "external32" (external.c; MPI-4.1 section 14.5.2): bytes of one element of t. */
static inline size_t mr_external_size(const struct mr_type *t)
{
    return mr_file_form_size(&mr_external32, t);
}
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

/* ---- attributes (attr.c) ----------------------------------------------------------------------------------------- */

/*
 * Attributes: values that a program caches with a communicator, datatype or window under keys of its own (MPI-4.0
 * chapter 7.7).
 */
enum mr_keyval_kind { MR_KEYVAL_COMM, MR_KEYVAL_TYPE, MR_KEYVAL_WIN };
/*
 * C programs store pointers, Fortran programs numbers, and each sees the other's in its own way (MPI-4.0
 * section 19.3.7).
 */
struct mr_attr_value {
    void *word;
    bool number;
};
struct mr_keyval {
    int refs;
    int handle;
    enum mr_keyval_kind kind;
    bool freed;                           /* by the program: only references of attributes are left */
    mr_user_fn copy, del;                 /* NULL: not copied, nothing to do */
    mr_user_fn copy_through, del_through; /* the callers for functions of other languages; NULL: C */
    void *extra;
    /* Provided by the shell; return an error code of the user (0: fine). */
    int (*call_copy)(struct mr_keyval *k, void *object, struct mr_attr_value *value, void **out, int *flag);
    int (*call_delete)(struct mr_keyval *k, void *object, struct mr_attr_value *value);
    void (*gone)(struct mr_keyval *k); /* called when the last attribute of a freed key is gone */
};
struct mr_keyval *mr_keyval_new(enum mr_keyval_kind kind);
void mr_keyval_put(struct mr_keyval *k);
enum mr_err mr_attr_set(struct mr_attr **list, void *object, struct mr_keyval *k, struct mr_attr_value value,
                        int *user_error);
/* The place of the value, valid as long as the attribute; NULL: the object has none. */
struct mr_attr_value *mr_attr_get(struct mr_attr *list, const struct mr_keyval *k);
enum mr_err mr_attr_delete(struct mr_attr **list, void *object, struct mr_keyval *k, int *user_error);
enum mr_err mr_attr_delete_all(struct mr_attr **list, void *object, int *user_error); /* last set, first deleted */
enum mr_err mr_attr_copy_all(struct mr_attr *from, void *from_object, struct mr_attr **to, int *user_error);

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

/* ---- topologies (topo.c, dims.c) --------------------------------------------------------------------------------- */

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

/* ---- pieces (pieces/pieces.c) ------------------------------------------------------------------------------------ */

/*
 * Data with holes in a window: a datatype is cut into lists of pieces, one for each packet, and an operation is applied
 * to the memory that such a list describes. Pure.
 *
 * Data is packed: the bytes of the pieces, one after the other. A type is cut into whole numbers of basic elements.
 */
/* count stretches of elem bytes, stride bytes apart, the first `at` bytes from the operation's addr. */
struct mr_rma_piece {
    int64_t at, stride;
    uint32_t count, elem;
};
_Static_assert(sizeof(struct mr_rma_piece) == 24, "on the wire");

#define MR_PIECES_MAX 64

/* A list: pieces of memory relative to an address, and their number of bytes. num 0: one piece of `bytes`. */
struct mr_pieces {
    size_t bytes;
    unsigned num;
    struct mr_rma_piece piece[MR_PIECES_MAX];
};

/* A function of a list: offset is the place of its data in the packed form of all. An error ends the cutting. */
typedef enum mr_err mr_pieces_fn(const struct mr_pieces *p, size_t offset, void *arg);

/* The number of pieces in a packet of `room` bytes: in half of it. At least 2. */
static inline unsigned mr_pieces_most(size_t room)
{
    size_t n = room / 2 / sizeof(struct mr_rma_piece);

    return n < 2 ? 2 : n < MR_PIECES_MAX ? (unsigned)n : MR_PIECES_MAX;
}
/*
 * Cuts count elements of t into lists of at most `most` bytes (a multiple of unit, the size of a basic element) in at
 * most `pieces` pieces.
 */
enum mr_err mr_pieces_cut(const struct mr_type *t, size_t count, size_t most, size_t unit, unsigned pieces,
                          mr_pieces_fn *each, void *arg);

/*
 * A section of an array: elements at equal distances in each dimension, the first dimension the fastest. Part of the
 * binary interface (MPII_Type_create_section).
 */
struct mr_section {
    size_t elem, total; /* bytes of an element, elements */
    int dims;           /* at least 1 */
    struct {
        ptrdiff_t extent, stride; /* elements, bytes */
    } dim[15];
};

/*
 * A new type for data that lies in the section as count elements of t would lie in a buffer without holes (section.c).
 * Displacement 0 is the section's first element. MR_ERR_BUFFER: the section is too short.
 */
enum mr_err mr_type_on_section(struct mr_type *t, size_t count, const struct mr_section *s, struct mr_type **made);

/* From the first byte to behind the last; false: the list makes no sense. */
bool mr_pieces_span(const struct mr_rma_piece *piece, unsigned num, size_t bytes, int64_t *lo, int64_t *hi);
void mr_pieces_gather(const char *mem, const struct mr_rma_piece *piece, unsigned num, size_t bytes, void *out);
void mr_pieces_scatter(char *mem, const struct mr_rma_piece *piece, unsigned num, size_t bytes, const void *in);

/* Elements as they lie in memory are at most 1.6 times as long as packed (MPI_LONG_DOUBLE_INT). */
#define MR_PIECES_SCRATCH(bytes) (5 * (bytes) + 96)
#define MR_PIECES_SWAP           MR_OP_COUNT /* on one element: in has the new value and the value to replace */

/*
 * mem = mem op in, for the pieces; the former values go to old (NULL: nowhere). scratch: MR_PIECES_SCRATCH(bytes),
 * aligned like malloc's memory. bytes is a multiple of the basic type's size.
 */
void mr_pieces_apply(char *mem, const struct mr_rma_piece *piece, unsigned num, size_t bytes, unsigned op,
                     struct mr_type *basic, const void *in, void *old, void *scratch);

#endif
