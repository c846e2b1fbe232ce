/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction operations: made, freed, applied to local buffers (MPI-3.1 sections 5.9.2, 5.9.5 and 5.9.7). */
#include "libmrmpi/api/api.h"

enum mr_err api_op_on(MPI_Op op, struct mr_op **o, const struct mr_type *t)
{
    enum mr_err err = api_op(op, o);
    if (unlikely(!err && !mr_op_allows(*o, t)))
        return mr_fail(MR_ERR_OP, "%s is not defined on %s", mr_op_name(*o),
                       t->builtin ? mr_type_name(t) : "a derived datatype");
    return err;
}

MPI_FN(int, Reduce_local, (const void *inbuf, void *inoutbuf, int count, MPI_Datatype datatype, MPI_Op op))
{
    struct mr_type *t;
    struct mr_op *o;
    API_ENTER();
    CHECK(api_type(datatype, &t));
    CHECK(api_buffer(inbuf, count, t));
    CHECK(api_buffer(inoutbuf, count, t));
    CHECK(api_op_on(op, &o, t));
    mr_op_apply(o, inbuf, inoutbuf, (size_t)count, t);
    API_LEAVE(NULL);
}

/* The user's function takes an int count: longer vectors go in pieces. */
static void invoke(const struct mr_op *op, const void *in, void *inout, size_t count, struct mr_type *type)
{
    enum { PIECE = 1 << 30 };
    MPI_Datatype h = type->handle;
    bool passing = !h && !api_new_type(mr_type_get(type), &h); /* the program freed it while the operation goes on */
    api_in_callback++;
    for (size_t done = 0; done < count;) {
        int n = count - done < PIECE ? (int)(count - done) : PIECE;
        ptrdiff_t at = (ptrdiff_t)done * type->extent;
        ((MPI_User_function *)op->user)((char *)(uintptr_t)in + at, (char *)inout + at, &n, &h);
        done += (size_t)n;
    }
    api_in_callback--;
    if (passing) {
        api_handle_free(ABI_TYPE, h);
        type->handle = 0;
        mr_type_put(type);
    }
}

MPI_FN(int, Op_create, (MPI_User_function * function, int commute, MPI_Op *op))
{
    API_ENTER();
    NOT_NULL(function);
    NOT_NULL(op);
    struct mr_op *o = mr_op_new();
    if (o) {
        o->commutative = commute != 0;
        o->user = (mr_user_fn)function;
        o->invoke = invoke;
    }
    err = api_new_op(o, op);
    API_LEAVE(NULL);
}

MPI_FN(int, Op_free, (MPI_Op * op))
{
    struct mr_op *o;
    API_ENTER();
    NOT_NULL(op);
    CHECK(api_op(*op, &o));
    if (o->id != MR_OP_USER)
        CHECK(mr_fail(MR_ERR_OP, "%s is built in and cannot be freed", mr_op_name(o)));
    api_handle_free(ABI_OP, *op);
    o->handle = 0;
    mr_op_put(o);
    *op = MPI_OP_NULL;
    API_LEAVE(NULL);
}

MPI_FN(int, Op_commutative, (MPI_Op op, int *commute))
{
    struct mr_op *o;
    API_ENTER();
    NOT_NULL(commute);
    CHECK(api_op(op, &o));
    *commute = o->commutative;
    API_LEAVE(NULL);
}
