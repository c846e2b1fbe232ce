/* SPDX-License-Identifier: BSD-3-Clause */
/* Going on after the failure of processes: the functions of the proposed chapter, under MPICH's names. */
#include <stdlib.h>

#include "libmrmpi/api/api.h"

#include "libmrmpi/coll/coll.h"
#include "libmrmpi/p2p/p2p.h"

/* ---- failed processes -------------------------------------------------------------------------------------------- */

/* At most so many failed members, the first known first. */
static enum mr_err failed_group(struct mr_comm *c, unsigned most, MPI_Group *failedgrp)
{
    int *world = most ? malloc(most * sizeof(*world)) : NULL;
    unsigned n = world ? mr_comm_failed(c, world, most) : 0;
    enum mr_err err;

    *failedgrp = MPI_GROUP_EMPTY;
    if (most && !world)
        return mr_fail(MR_ERR_NO_MEM, "no memory for a group");
    err = n ? api_new_group(mr_group_new((int)n, world), failedgrp) : MR_SUCCESS;
    free(world);
    return err;
}

static unsigned count_failed_members(struct mr_comm *c)
{
    mr_progress_some(); /* news of failures may wait to be taken */
    mr_comm_fault(c);
    return c->num_failed;
}

MPIX_FN(int, Comm_get_failed, (MPI_Comm comm, MPI_Group *failedgrp))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(failedgrp);
    err = failed_group(c, count_failed_members(c), failedgrp);
    API_LEAVE(c);
}

MPIX_FN(int, Comm_ack_failed, (MPI_Comm comm, int num_to_ack, int *num_acked))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(num_acked);
    if (num_to_ack < 0)
        CHECK(mr_fail(MR_ERR_ARG, "num_to_ack is %d", num_to_ack));
    count_failed_members(c);
    mr_comm_ack(c, (unsigned)num_to_ack);
    *num_acked = (int)c->num_acked;
    API_LEAVE(c);
}

MPIX_FN(int, Comm_failure_ack, (MPI_Comm comm))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    mr_comm_ack(c, count_failed_members(c));
    API_LEAVE(c);
}

MPIX_FN(int, Comm_failure_get_acked, (MPI_Comm comm, MPI_Group *failedgrp))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(failedgrp);
    err = failed_group(c, c->num_acked, failedgrp);
    API_LEAVE(c);
}

/* ---- revoking ---------------------------------------------------------------------------------------------------- */

MPIX_FN(int, Comm_revoke, (MPI_Comm comm))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    mr_comm_revoke(c);
    API_LEAVE(c);
}

MPIX_FN(int, Comm_is_revoked, (MPI_Comm comm, int *flag))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(flag);
    mr_progress_some(); /* the news may wait to be taken */
    *flag = mr_comm_fault(c) == MR_ERR_REVOKED;
    API_LEAVE(c);
}

/* ---- agreeing ---------------------------------------------------------------------------------------------------- */

struct agreeing {
    int *flag;
    struct mr_request *req;
};

static void flag_agreed(const struct mr_agreed *d, void *arg)
{
    struct agreeing *a = arg;
    struct mr_request *req = a->req;

    *a->flag = (int)d->flags;
    free(a);
    req->status.error = d->error;
    mr_request_complete(req);
    mr_request_put(req);
}

static enum mr_err start_agreement(struct mr_comm *c, int *flag, struct mr_request **req)
{
    struct agreeing *a = calloc(1, sizeof(*a));
    enum mr_err err;

    *req = a ? mr_request_new(MR_REQ_COLL, c) : NULL;
    if (!*req) {
        free(a);
        return mr_fail(MR_ERR_NO_MEM, "no memory for an agreement");
    }
    *a = (struct agreeing){flag, mr_request_get(*req)};
    err = mr_agree(c, c->context, (struct mr_vote){.flags = (uint32_t)*flag}, flag_agreed, a);
    if (err) {
        mr_request_put(*req);
        mr_request_put(*req);
        *req = NULL;
        free(a);
    }
    return err;
}

static enum mr_err unacknowledged(void)
{
    return mr_fail(MR_ERR_PROC_FAILED, "a process of the communicator has failed, and not all processes have "
                                       "acknowledged the failure (MPIX_Comm_ack_failed)");
}

MPIX_FN(int, Comm_agree, (MPI_Comm comm, int *flag))
{
    struct mr_comm *c = NULL;
    struct mr_request *r;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(flag);
    CHECK(start_agreement(c, flag, &r));
    err = mr_wait(r);
    mr_request_put(r);
    if (err)
        err = unacknowledged();
    API_LEAVE(c);
}

MPIX_FN(int, Comm_iagree, (MPI_Comm comm, int *flag, MPI_Request *request))
{
    struct mr_comm *c = NULL;
    struct mr_request *r;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(flag);
    NOT_NULL(request);
    *request = MPI_REQUEST_NULL;
    CHECK(start_agreement(c, flag, &r));
    err = api_new_request(r, request);
    API_LEAVE(c);
}

/* ---- the living members ------------------------------------------------------------------------------------------ */

/* made NULL: nobody lives in one group of an intercommunicator. */
static enum mr_err new_shrunken(struct mr_comm *made, MPI_Comm *newcomm)
{
    return made ? api_new_comm(made, newcomm) : MR_SUCCESS;
}

MPIX_FN(int, Comm_shrink, (MPI_Comm comm, MPI_Comm *newcomm))
{
    struct mr_comm *c = NULL, *made;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(newcomm);
    *newcomm = MPI_COMM_NULL;
    CHECK(mr_comm_shrink(c, &made));
    err = new_shrunken(made, newcomm);
    API_LEAVE(c);
}

/* The handle is made at the end: until then nobody knows the members. */
struct shrinking {
    MPI_Comm *newcomm;
    struct mr_comm *made;
};

static void give_shrunken(struct mr_request *req, void *arg)
{
    struct shrinking *s = arg;

    if (!req->status.error)
        req->status.error = new_shrunken(s->made, s->newcomm);
    free(s);
}

MPIX_FN(int, Comm_ishrink, (MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request))
{
    struct mr_comm *c = NULL;
    struct shrinking *s;
    struct mr_request *r;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(newcomm);
    NOT_NULL(request);
    *newcomm = MPI_COMM_NULL;
    *request = MPI_REQUEST_NULL;
    s = calloc(1, sizeof(*s));
    if (!s)
        CHECK(mr_fail(MR_ERR_NO_MEM, "no memory for a communicator"));
    s->newcomm = newcomm;
    err = mr_comm_ishrink(c, &s->made, &r);
    if (err) {
        free(s);
        goto out;
    }
    if (r->complete) {
        give_shrunken(r, s);
    } else {
        r->on_complete = give_shrunken;
        r->on_complete_arg = s;
    }
    err = api_new_request(r, request);
    API_LEAVE(c);
}
