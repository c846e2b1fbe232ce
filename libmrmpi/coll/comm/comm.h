/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creation of communicators, and other facts that members learn by messages. All functions are collective over the
 * communicator or the named group, and blocking except mr_comm_idup(). *out is a reference for the caller, NULL after
 * an error. Callers hold the library's lock.
 *
 * `wrong` is an error found by the caller in its arguments: the caller takes part, so that the others do not wait, and
 * all fail, the others with the class of the error. Other arguments need not make sense then, except the communicator,
 * the group, the name or the tag by which the members meet.
 */
#ifndef MRMPI_COMM_H
#define MRMPI_COMM_H

#include "libmrmpi/core/objects.h"

enum mr_err mr_comm_dup(struct mr_comm *c, enum mr_err wrong, struct mr_comm **out);
struct mr_request;
/* *out must not be used before the request is complete; with the error of another it ends, and then *out is none. */
enum mr_err mr_comm_idup(struct mr_comm *c, enum mr_err wrong, struct mr_comm **out, struct mr_request **req);
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

#endif
