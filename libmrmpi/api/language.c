/* SPDX-License-Identifier: BSD-3-Clause */
/* Proxies for callbacks of other languages. The bindings set them right after the creation of an object. */
#include "libmrmpi/api/language.h"

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
    struct mr_op *o = api_find(ABI_OP, op);
    if (o && o->id == MR_OP_USER)
        o->through = proxy;
    api_unlock();
}

LANGUAGE_FN(void, Errhandler_set_cxx, (MPI_Errhandler errhandler, mr_user_fn proxy))
{
    api_lock();
    struct mr_errhandler *h = api_find(ABI_ERRHANDLER, errhandler);
    if (h && h->kind == MR_ERRHANDLER_USER)
        h->through = proxy;
    api_unlock();
}

LANGUAGE_FN(void, Grequest_set_lang_f77, (MPI_Request request))
{
    api_lock();
    struct mr_request *r = api_find(ABI_REQUEST, request);
    if (r && r->kind == MR_REQ_GENERALIZED)
        api_grequest_is_fortran(r);
    api_unlock();
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
