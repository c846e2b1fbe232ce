/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions for the bindings of other languages: attributes as such a language has them, and proxies for its callbacks,
 * which the bindings set right after the creation of an object.
 */
#include "libmrmpi/api/attr.h"
#include "libmrmpi/api/grequest.h"
#include "libmrmpi/api/request.h"

LANGUAGE_FN(int, Comm_set_attr, (MPI_Comm comm, int keyval, void *value, enum abi_attr_kind kind))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    err = api_comm_attr_set(c, keyval, value, kind);
    API_LEAVE(c);
}

LANGUAGE_FN(int, Comm_get_attr, (MPI_Comm comm, int keyval, void *value, int *flag, enum abi_attr_kind kind))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(value);
    NOT_NULL(flag);
    err = api_comm_attr_get(c, keyval, value, flag, kind);
    API_LEAVE(c);
}

LANGUAGE_FN(int, Type_set_attr, (MPI_Datatype type, int keyval, void *value, enum abi_attr_kind kind))
{
    API_ENTER();
    err = api_type_attr_set(type, keyval, value, kind);
    API_LEAVE(NULL);
}

LANGUAGE_FN(int, Type_get_attr, (MPI_Datatype type, int keyval, void *value, int *flag, enum abi_attr_kind kind))
{
    API_ENTER();
    err = api_type_attr_get(type, keyval, value, flag, kind);
    API_LEAVE(NULL);
}

LANGUAGE_FN(int, Win_set_attr, (MPI_Win win, int keyval, void *value, enum abi_attr_kind kind))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    err = api_win_attr_set(w, keyval, value, kind);
    API_LEAVE_WIN(w);
}

LANGUAGE_FN(int, Win_get_attr, (MPI_Win win, int keyval, void *value, int *flag, enum abi_attr_kind kind))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    NOT_NULL(value);
    NOT_NULL(flag);
    err = api_win_attr_get(w, keyval, value, flag, kind);
    API_LEAVE_WIN(w);
}

/* ---- proxies ---- */

LANGUAGE_FN(void, Keyval_set_proxy, (int keyval, abi_attr_copy_proxy *copy, abi_attr_delete_proxy *del))
{
    api_lock();
    struct mr_keyval *k = api_find(ABI_KEYVAL, keyval);
    if (k) {
        k->copy_through = (mr_user_fn)copy;
        k->del_through = (mr_user_fn)del;
    }
    api_unlock();
}

LANGUAGE_FN(void, Op_set_cxx, (MPI_Op op, mr_user_fn proxy))
{
    api_lock();
    struct mr_op *o = api_find(ABI_OP, abi_number(op));
    if (o && o->id == MR_OP_USER)
        o->through = proxy;
    api_unlock();
}

LANGUAGE_FN(void, Errhandler_set_cxx, (MPI_Errhandler errhandler, mr_user_fn proxy))
{
    api_lock();
    struct mr_errhandler *h = api_find(ABI_ERRHANDLER, abi_number(errhandler));
    if (h && h->kind == MR_ERRHANDLER_USER)
        h->through = proxy;
    api_unlock();
}

LANGUAGE_FN(void, Grequest_set_lang_f77, (MPI_Request request))
{
    api_lock();
    struct mr_request *r = api_find(ABI_REQUEST, abi_number(request));
    if (r && r->kind == MR_REQ_GENERALIZED)
        api_grequest_is_fortran(r);
    api_unlock();
}

static void end_copy(struct mr_request *live, void *arg)
{
    struct api_copy *copy = arg;
    (void)live;
    copy->event(copy, API_COPY_OUT);
    copy->event(copy, API_COPY_FREE);
}

/* Ours alone: MPICH's library has no such function. */
LANGUAGE_FN(void, Request_set_copy, (MPI_Request request, struct api_copy *copy))
{
    api_lock();
    struct mr_request *r = api_find_request(request);
    if (r && (r->kind == MR_REQ_PERSISTENT_COLL || r->kind == MR_REQ_PERSISTENT_PART)) {
        r->copy = copy;
    } else if (r && !r->complete) {
        r->on_complete = end_copy;
        r->on_complete_arg = copy;
    } else {
        end_copy(r, copy);
    }
    api_unlock();
}

/* The same: count elements of a datatype, laid over an array section; a class of error, which is not raised. */
LANGUAGE_FN(int, Type_create_section,
            (MPI_Count count, MPI_Datatype type, const struct mr_section *section, MPI_Datatype *newtype))
{
    struct mr_type *t, *made;
    api_lock();
    enum mr_err err = api_type(type, &t);
    if (!err)
        err = mr_type_on_section(t, (size_t)count, section, &made);
    if (!err)
        err = api_new_type(made, newtype);
    api_unlock();
    return !err                   ? MPI_SUCCESS
           : err == MR_ERR_BUFFER ? MPI_ERR_BUFFER
           : err == MR_ERR_NO_MEM ? MPI_ERR_NO_MEM
                                  : MPI_ERR_TYPE;
}

/*
 * The Fortran 2008 binding defines these variables too, and comes before us in a program's search order: its
 * definitions count, and have no value until we store one. They are therefore defined in another file, so the compiler
 * does not take our definitions for the only ones, and written when all libraries are loaded.
 */
static void __attribute__((constructor)) name_weights(void)
{
    MPIR_C_MPI_UNWEIGHTED = MPI_UNWEIGHTED;
    MPIR_C_MPI_WEIGHTS_EMPTY = MPI_WEIGHTS_EMPTY;
}
