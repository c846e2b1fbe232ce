/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Duplication while the program continues. The new communicator exists at once and gets its context ids when the
 * members have agreed, driven by the progress engine. Because rounds of the agreement begin at unknown times, they
 * travel in a context of their own.
 */
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/coll/comm/internal.h"

#include <stdlib.h>

struct idup {
    struct idup *next;
    struct mr_agreement agreement;
    struct mr_comm *parent, *made;
    struct mr_request *req;
};

static struct idup *under_way;
static bool registered;

static void finish_idup(struct idup *d)
{
    enum mr_err err = d->agreement.error;
    if (!err) {
        d->made->context = d->agreement.ids[0];
        if (d->made->local)
            d->made->local->context = d->agreement.ids[1];
    }
    d->req->status.error = err;
    mr_request_complete(d->req);
    mr_request_put(d->req);
    mr_comm_put(d->agreement.local); /* the temporary communicator */
    mr_comm_put(d->made);
    mr_comm_put(d->parent);
    free(d);
}

static int poll_idups(void)
{
    int n = 0;
    for (struct idup **at = &under_way; *at;) {
        struct idup *d = *at;
        if (!mr_agreement_step(&d->agreement)) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        finish_idup(d);
        n++;
    }
    return n;
}

void mr_making_finalize(void)
{
    mr_ports_finalize();
    registered = false;
    mr_agreements_finalize();
    mr_shrinks_finalize();
}

static enum mr_err no_memory_for_comm(void)
{
    return mr_fail(MR_ERR_NO_MEM, "no memory for a communicator");
}

/* The agreement, over members of c that may have other messages under way. */
static bool prepare_idup(struct idup *d, struct mr_comm *c)
{
    uint32_t seq = c->coll_seq;
    struct mr_agreement *a = &d->agreement;
    *a = mr_agreement_of(c);
    if (!mr_comm_is_inter(c))
        c->coll_seq++; /* for an intercommunicator mr_agreement_of has counted */
    a->want = mr_comm_is_inter(c) ? 2 : 1;
    a->nonblocking = true;
    a->local = mr_comm_passing(c->group, MR_CONTEXT_NONBLOCKING | a->local->context, (int)(seq & 0x3fffffff));
    return a->local != NULL;
}

enum mr_err mr_comm_idup(struct mr_comm *c, enum mr_err wrong, struct mr_comm **out, struct mr_request **req)
{
    const uint32_t none[2] = {MR_CONTEXT_NONE, MR_CONTEXT_NONE};
    struct idup *d = calloc(1, sizeof(*d));
    *out = NULL;
    if (!d)
        return no_memory_for_comm();
    enum mr_err err = mr_comm_make_dup(c, none, &d->made);
    if (!err && (!(d->req = mr_request_new(MR_REQ_COLL, c)) || !prepare_idup(d, c)))
        err = no_memory_for_comm();
    if (err) {
        if (d->req)
            mr_request_put(d->req);
        if (d->made)
            mr_comm_put(d->made);
        free(d);
        return err;
    }
    if (!registered)
        mr_progress_register(MR_PROGRESS_IN_MPI, (void *const *)&under_way, poll_idups);
    registered = true;
    d->agreement.wrong = wrong;
    d->parent = mr_comm_get(c);
    if (!wrong) {
        *out = mr_comm_get(d->made);
        *req = mr_request_get(d->req);
    }
    d->next = under_way;
    under_way = d;
    mr_agreement_start(&d->agreement);
    return wrong;
}
