/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduction operations: made, freed, applied to local buffers (MPI-3.1 sections 5.9.2, 5.9.5 and 5.9.7). */
#include "libmrmpi/api/language.h"

enum mr_err api_op_on(MPI_Op op, struct mr_op **o, const struct mr_type *t)
{
    enum mr_err err = api_op(op, o);
    if (unlikely(!err && !mr_op_allows(*o, t)))
        return mr_fail(MR_ERR_OP, "%s is not defined on %s", mr_op_name(*o),
                       t->builtin ? mr_type_name(t) : "a derived datatype");
    return err;
}

static enum mr_err reduce_local(const void *inbuf, void *inoutbuf, int64_t count, MPI_Datatype datatype, MPI_Op op)
{
    struct mr_type *t;
    struct mr_op *o;
    enum mr_err err = api_type(datatype, &t);
    if (err || (err = api_buffer(inbuf, count, t)) || (err = api_buffer(inoutbuf, count, t)) ||
        (err = api_op_on(op, &o, t)))
        return err;
    if (unlikely(api_overlap(inbuf, (size_t)count, t, inoutbuf, (size_t)count, t)))
        return mr_fail(MR_ERR_BUFFER, "inbuf and inoutbuf overlap: %lld elements at %p and at %p", (long long)count,
                       inbuf, inoutbuf);
    mr_op_apply(o, inbuf, inoutbuf, (size_t)count, t);
    return MR_SUCCESS;
}

MPI_FN(int, Reduce_local, (const void *inbuf, void *inoutbuf, int count, MPI_Datatype datatype, MPI_Op op))
{
    API_ENTER();
    err = reduce_local(inbuf, inoutbuf, count, datatype, op);
    API_LEAVE(NULL);
}

MPI_FN(int, Reduce_local_c, (const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op))
{
    API_ENTER();
    err = reduce_local(inbuf, inoutbuf, count, datatype, op);
    API_LEAVE(NULL);
}

/*
 * Calls of the user's function: it needs a handle of the type, which the program may have freed during the operation.
 */
struct passing {
    MPI_Datatype h;
    bool made;
};

static struct passing pass_type(struct mr_type *type)
{
    struct passing p = {.h = abi_handle(MPI_Datatype, type->handle)};
    p.made = !type->handle && !api_new_type(mr_type_get(type), &p.h);
    api_in_callback++;
    return p;
}

static void pass_end(struct passing p, struct mr_type *type)
{
    api_in_callback--;
    if (p.made) {
        api_handle_free(ABI_TYPE, type->handle);
        type->handle = 0;
        mr_type_put(type);
    }
}

static void call(const struct mr_op *op, void *in, void *inout, int *n, MPI_Datatype *type)
{
    if (op->through)
        ((abi_op_proxy *)op->through)(in, inout, *n, *type, op->user);
    else
        ((MPI_User_function *)op->user)(in, inout, n, type);
}

/* A function of MPI_Op_create takes an int count: longer vectors go in pieces. */
static void invoke(const struct mr_op *op, const void *in, void *inout, size_t count, struct mr_type *type)
{
    enum { PIECE = 1 << 30 };
    struct passing p = pass_type(type);
    for (size_t done = 0; done < count;) {
        int n = count - done < PIECE ? (int)(count - done) : PIECE;
        ptrdiff_t at = (ptrdiff_t)done * type->extent;
        call(op, (char *)(uintptr_t)in + at, (char *)inout + at, &n, &p.h);
        done += (size_t)n;
    }
    pass_end(p, type);
}

static void invoke_large(const struct mr_op *op, const void *in, void *inout, size_t count, struct mr_type *type)
{
    MPI_Count n = (MPI_Count)count;
    struct passing p = pass_type(type);
    ((MPI_User_function_c *)op->user)((void *)(uintptr_t)in, inout, &n, &p.h);
    pass_end(p, type);
}

#define OP_CREATE(name, fn, how)                                                                                       \
    MPI_FN(int, name, (fn * function, int commute, MPI_Op *op))                                                        \
    {                                                                                                                  \
        API_ENTER();                                                                                                   \
        NOT_NULL(function);                                                                                            \
        NOT_NULL(op);                                                                                                  \
        struct mr_op *o = mr_op_new();                                                                                 \
        if (o) {                                                                                                       \
            o->commutative = commute != 0;                                                                             \
            o->user = (mr_user_fn)function;                                                                            \
            o->invoke = how;                                                                                           \
        }                                                                                                              \
        err = api_new_op(o, op);                                                                                       \
        API_LEAVE(NULL);                                                                                               \
    }
OP_CREATE(Op_create, MPI_User_function, invoke)
OP_CREATE(Op_create_c, MPI_User_function_c, invoke_large)

MPI_FN(int, Op_free, (MPI_Op * op))
{
    struct mr_op *o;
    API_ENTER();
    NOT_NULL(op);
    CHECK(api_op(*op, &o));
    if (o->id != MR_OP_USER)
        CHECK(mr_fail(MR_ERR_OP, "%s is built in and cannot be freed", mr_op_name(o)));
    api_handle_free(ABI_OP, abi_number(*op));
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
