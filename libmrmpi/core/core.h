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
 */
#ifndef MRMPI_CORE_H
#define MRMPI_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"

/* Special ranks and tags inside the library. */
#define MR_PROC_NULL  (-1)
#define MR_ANY_SOURCE (-2)
#define MR_ANY_TAG    (-1)
#define MR_UNDEFINED  (-32766)
#define MR_TAG_UB     0x3fffffff

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
};

/* Text for the error that this thread is about to return: function, argument, value, host, rail. Bounded, never fails.
 */
void mr_error_detail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *mr_error_take_detail(void); /* "" without detail; clears the detail */

struct mr_recipe;
struct mr_layout;
struct mr_bsend;

/* The common part of groups and communicators from one session. */
struct mr_session {
    int refs;
    struct mr_bsend *buffer; /* attached to the session (p2p/derived/bsend.c), NULL: none */
};

struct mr_group {
    int refs;
    int handle;
    int size;
    int rank;                   /* of the calling process, MR_UNDEFINED if not a member */
    int *world;                 /* [size] world ranks */
    struct mr_session *session; /* its session, NULL: none */
};

struct mr_errhandler;
struct mr_place;
struct mr_node;
struct mr_grid;
struct mr_attr;
struct mr_info;
struct mr_topology;

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
    uint32_t coll_seq;            /* counts collectives: their tag */
    bool passing;                 /* lives while another is made only: mr_comm_passing */
    int passing_tag;              /* of all its messages */
    bool part;                    /* some ranks of another communicator, with its context: mr_comm_part, */
    const struct mr_comm *whole;  /* the other communicator */
    unsigned losses;              /* of processes when its members were last looked at (mr_comm_lacks), */
    bool lacks;                   /* and a lost process was a member */
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
struct mr_comm *mr_comm_get(struct mr_comm *c);
void mr_comm_put(struct mr_comm *c);
extern void (*mr_comm_node_end)(struct mr_comm *c); /* gives back c->node and c->grid; set by coll/ */

extern struct mr_comm *mr_comm_world, *mr_comm_self; /* set by mr_comm_init */
extern struct mr_type *const mr_type_byte;           /* for transport and collectives' own messages */

#endif
