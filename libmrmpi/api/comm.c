/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators (MPI-3.1 chapter 6). */
#include "libmrmpi/api/api.h"
#include "libmrmpi/p2p/p2p.h"

#include <string.h>

#include "libmrmpi/api/life.h"
#include "libmrmpi/launch/launch.h"

MPI_FN(int, Comm_rank, (MPI_Comm comm, int *rank))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(rank);
    *rank = c->rank;
    API_LEAVE(c);
}

MPI_FN(int, Comm_size, (MPI_Comm comm, int *size))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(size);
    *size = c->size;
    API_LEAVE(c);
}

static const int abi_compare[] = {
    [MR_IDENT] = MPI_IDENT, [MR_CONGRUENT] = MPI_CONGRUENT, [MR_SIMILAR] = MPI_SIMILAR, [MR_UNEQUAL] = MPI_UNEQUAL};

MPI_FN(int, Comm_compare, (MPI_Comm comm1, MPI_Comm comm2, int *result))
{
    struct mr_comm *a = NULL, *b;
    API_ENTER();
    CHECK(api_comm(comm1, &a));
    CHECK(api_comm(comm2, &b));
    NOT_NULL(result);
    *result = abi_compare[mr_comm_compare(a, b)];
    API_LEAVE(a);
}

/* ---- making ---- */

/* The created communicator, or none for non-members. */
static enum mr_err give_comm(struct mr_comm *made, MPI_Comm *h)
{
    *h = MPI_COMM_NULL;
    return made ? api_new_comm(made, h) : MR_SUCCESS;
}

/* The handle comes first: delete functions get it if a copy function refuses. Takes made over. */
static enum mr_err give_with_attributes(struct mr_comm *c, struct mr_comm *made, MPI_Comm *newcomm)
{
    int user_error;
    enum mr_err err = api_new_comm(made, newcomm);
    if (err)
        return err;
    api_in_callback++;
    err = mr_attr_copy_all(c->attrs, c, &made->attrs, &user_error);
    if (err)
        mr_attr_delete_all(&made->attrs, made, &(int){0}); /* the first error counts */
    api_in_callback--;
    if (err) {
        api_handle_free(ABI_COMM, abi_number(*newcomm));
        made->handle = 0;
        mr_comm_put(made);
        *newcomm = MPI_COMM_NULL;
    }
    return err;
}

static enum mr_err dup_comm(struct mr_comm *c, enum mr_err wrong, MPI_Comm *newcomm)
{
    struct mr_comm *made;
    if (newcomm)
        *newcomm = MPI_COMM_NULL;
    enum mr_err err = mr_comm_dup(c, wrong, &made);
    return err ? err : give_with_attributes(c, made, newcomm);
}

MPI_FN(int, Comm_dup, (MPI_Comm comm, MPI_Comm *newcomm))
{
    struct mr_comm *c = NULL;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    ALSO_NOT_NULL(newcomm);
    err = dup_comm(c, wrong, newcomm);
    API_LEAVE(c);
}

MPI_FN(int, Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm))
{
    struct mr_comm *c = NULL, *made;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    ALSO_NOT_NULL(newcomm);
    ALSO(api_hints(info));
    CHECK(dup_comm(c, wrong, newcomm));
    CHECK(api_comm(*newcomm, &made));
    err = api_set_hints(made, info);
    API_LEAVE(c);
}

/* The others go on in any case: where attributes could not be copied the new communicator goes when they have agreed.
 */
static enum mr_err idup_comm(struct mr_comm *c, enum mr_err wrong, MPI_Comm *newcomm, MPI_Request *request,
                             struct mr_comm **made)
{
    struct mr_request *r;
    enum mr_err err = mr_comm_idup(c, wrong, made, &r);
    if (err)
        return err;
    *newcomm = MPI_COMM_NULL;
    *request = MPI_REQUEST_NULL;
    err = give_with_attributes(c, *made, newcomm);
    if (!err)
        return api_new_request(r, request);
    mr_request_put(r);
    return err;
}

MPI_FN(int, Comm_idup, (MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request))
{
    struct mr_comm *c = NULL, *made;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    ALSO_NOT_NULL(newcomm);
    ALSO_NOT_NULL(request);
    err = idup_comm(c, wrong, newcomm, request, &made);
    API_LEAVE(c);
}

MPI_FN(int, Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request))
{
    struct mr_comm *c = NULL, *made;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    ALSO_NOT_NULL(newcomm);
    ALSO_NOT_NULL(request);
    ALSO(api_hints(info));
    CHECK(idup_comm(c, wrong, newcomm, request, &made));
    err = api_set_hints(made, info);
    API_LEAVE(c);
}

MPI_FN(int, Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *newcomm))
{
    struct mr_comm *c = NULL, *made;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    ALSO_NOT_NULL(newcomm);
    if (color < 0 && color != MPI_UNDEFINED)
        ALSO(mr_fail(MR_ERR_ARG, "color is %d: it must be 0 or more, or MPI_UNDEFINED", color));
    CHECK(mr_comm_split(c, color, key, wrong, &made));
    err = give_comm(made, newcomm);
    API_LEAVE(c);
}

static enum mr_err subgroup(const struct mr_comm *c, const struct mr_group *g)
{
    for (int i = 0; i < g->size; i++)
        if (mr_group_find(c->group, g->world[i]) == MR_UNDEFINED)
            return mr_fail(MR_ERR_GROUP, "rank %d of the group is not in the communicator", i);
    return MR_SUCCESS;
}

MPI_FN(int, Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm))
{
    struct mr_comm *c = NULL, *made;
    struct mr_group *g = NULL;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    ALSO_NOT_NULL(newcomm);
    ALSO(api_group(group, &g));
    ALSO(subgroup(c, g));
    CHECK(mr_comm_create(c, g, wrong, &made));
    err = give_comm(made, newcomm);
    API_LEAVE(c);
}

MPI_FN(int, Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm))
{
    struct mr_comm *c = NULL, *made;
    struct mr_group *g;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    CHECK(api_intra(c));
    CHECK(api_group(group, &g)); /* the members meet by group and tag */
    if (tag < 0 || tag > MR_TAG_UB)
        CHECK(api_bad_tag(tag, "tag"));
    CHECK(subgroup(c, g));
    ALSO_NOT_NULL(newcomm);
    CHECK(mr_comm_create_group(c, g, tag, wrong, &made));
    err = give_comm(made, newcomm);
    API_LEAVE(c);
}

/* ---- two groups ---- */

MPI_FN(int, Intercomm_create,
       (MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag, MPI_Comm *newintercomm))
{
    struct mr_comm *c = NULL, *peer = NULL, *made;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(api_comm(local_comm, &c));
    CHECK(api_intra(c));
    if (tag < 0 || tag > MR_TAG_UB)
        ALSO(api_bad_tag(tag, "tag"));
    if (c->rank == local_leader) { /* the others need not know peer_comm and remote_leader */
        ALSO(api_comm(peer_comm, &peer));
        if (peer && (remote_leader < 0 || remote_leader >= peer->num_peers))
            ALSO(api_bad_rank(peer, remote_leader, false, "remote_leader"));
    }
    if (wrong)
        remote_leader = MR_PROC_NULL; /* unknown, or unknown by this tag */
    if (local_leader < 0 || local_leader >= c->size)
        ALSO(api_bad_rank(c, local_leader, false, "local_leader"));
    ALSO_NOT_NULL(newintercomm);
    CHECK(mr_intercomm_create(c, local_leader, peer, remote_leader, tag, wrong, &made));
    err = give_comm(made, newintercomm);
    API_LEAVE(c);
}

MPI_FN(int, Intercomm_merge, (MPI_Comm intercomm, int high, MPI_Comm *newintracomm))
{
    struct mr_comm *c = NULL, *made;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(api_comm(intercomm, &c));
    CHECK(api_inter(c));
    ALSO_NOT_NULL(newintracomm);
    CHECK(mr_intercomm_merge(c, high, wrong, &made));
    err = give_comm(made, newintracomm);
    API_LEAVE(c);
}

/* ---- freeing ---- */

static enum mr_err free_comm(MPI_Comm *comm, struct mr_comm **for_errors)
{
    struct mr_comm *c;
    int user_error;
    enum mr_err err = api_comm(*comm, &c);
    if (err)
        return err;
    if (c == mr_comm_world || c == mr_comm_self)
        return mr_fail(MR_ERR_COMM, "%s cannot be freed", c->name);
    mr_buffer_detach(&c->buffer); /* the program may use the memory again */
    api_in_callback++;
    err = mr_attr_delete_all(&c->attrs, c, &user_error);
    api_in_callback--;
    if (err) {
        *for_errors = c;
        return err;
    }
    api_handle_free(ABI_COMM, abi_number(*comm));
    c->handle = 0;
    if (c == mr_comm_parent)
        mr_comm_forget_parent();
    mr_comm_put(c);
    *comm = MPI_COMM_NULL;
    return MR_SUCCESS;
}

MPI_FN(int, Comm_free, (MPI_Comm * comm))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    NOT_NULL(comm);
    err = free_comm(comm, &c);
    API_LEAVE(c);
}

MPI_FN(int, Comm_disconnect, (MPI_Comm * comm))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    NOT_NULL(comm);
    CHECK(api_comm(*comm, &c));
    if (c != mr_comm_world && c != mr_comm_self) {
        mr_request_wait_for(c);
        mr_bsend_reap();
    }
    c = NULL;
    err = free_comm(comm, &c);
    if (!err)
        mr_guests_leave();
    if (!err)
        mr_guests_forget();
    API_LEAVE(c);
}

void api_comm_finalize(void)
{
    mr_comm_world->handle = mr_comm_self->handle = 0;
}

/* ---- asking ---- */

MPI_FN(int, Comm_group, (MPI_Comm comm, MPI_Group *group))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(group);
    err = api_new_group(mr_group_get(c->group), group);
    API_LEAVE(c);
}

MPI_FN(int, Comm_test_inter, (MPI_Comm comm, int *flag))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(flag);
    *flag = mr_comm_is_inter(c);
    API_LEAVE(c);
}

MPI_FN(int, Comm_remote_size, (MPI_Comm comm, int *size))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    CHECK(api_inter(c));
    NOT_NULL(size);
    *size = c->num_peers;
    API_LEAVE(c);
}

MPI_FN(int, Comm_remote_group, (MPI_Comm comm, MPI_Group *group))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    CHECK(api_inter(c));
    NOT_NULL(group);
    err = api_new_group(mr_group_get(mr_comm_peers(c)), group);
    API_LEAVE(c);
}

MPI_FN(int, Comm_set_name, (MPI_Comm comm, const char *comm_name))
{
    struct mr_comm *c = NULL;
    int len;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(comm_name);
    api_string(c->name, sizeof(c->name), comm_name, &len);
    API_LEAVE(c);
}

MPI_FN(int, Comm_get_name, (MPI_Comm comm, char *comm_name, int *resultlen))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(comm_name);
    NOT_NULL(resultlen);
    api_string(comm_name, MPI_MAX_OBJECT_NAME, c->name, resultlen);
    API_LEAVE(c);
}
