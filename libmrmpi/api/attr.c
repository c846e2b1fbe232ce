/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of communicators and datatypes (MPI-3.1 section 6.7), and the ones that MPI defines (8.1.2). */
#include "libmrmpi/api/api.h"

#include <string.h>

#include "libmrmpi/api/life.h"

int MPIR_Dup_fn(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    memcpy(out, &in, sizeof(in));
    *flag = 1;
    return MPI_SUCCESS;
}

/* ---- callbacks: core gives the object, the user wants its handle ---- */

static int handle_of(const struct mr_keyval *k, void *object)
{
    return k->kind == MR_KEYVAL_COMM ? ((struct mr_comm *)object)->handle : ((struct mr_type *)object)->handle;
}

static int call_copy(struct mr_keyval *k, void *object, void *value, void **out, int *flag)
{
    int code = ((MPI_Comm_copy_attr_function *)k->copy)(handle_of(k, object), k->handle, k->extra, value, out, flag);
    api_note_callback_code(code);
    return code;
}

static int call_delete(struct mr_keyval *k, void *object, void *value)
{
    int code = ((MPI_Comm_delete_attr_function *)k->del)(handle_of(k, object), k->handle, value, k->extra);
    api_note_callback_code(code);
    return code;
}

/* A key lives, and its number means it, as long as an attribute has it (MPI-4.0 section 7.7.2). */
static void gone(struct mr_keyval *k)
{
    if (k->handle)
        api_handle_free(ABI_KEYVAL, k->handle);
}

static enum mr_err new_keyval(enum mr_keyval_kind kind, mr_user_fn copy, mr_user_fn del, void *extra, int *h)
{
    struct mr_keyval *k = mr_keyval_new(kind);
    *h = k ? api_handle_new(ABI_KEYVAL, k) : 0;
    if (!*h) {
        if (k)
            mr_keyval_put(k);
        *h = MPI_KEYVAL_INVALID;
        return mr_fail(MR_ERR_NO_MEM, "no memory for an attribute key");
    }
    k->handle = *h;
    k->copy = copy;
    k->del = del;
    k->extra = extra;
    k->call_copy = call_copy;
    k->call_delete = call_delete;
    k->gone = gone;
    return MR_SUCCESS;
}

static enum mr_err keyval_of(int h, enum mr_keyval_kind kind, struct mr_keyval **k)
{
    *k = api_find(ABI_KEYVAL, h);
    if (!*k)
        return api_bad_handle(MR_ERR_KEYVAL, "attribute key", h, MPI_KEYVAL_INVALID);
    static const char *const what[] = {
        [MR_KEYVAL_COMM] = "communicators", [MR_KEYVAL_TYPE] = "datatypes", [MR_KEYVAL_WIN] = "windows"};
    if ((*k)->kind != kind)
        return mr_fail(MR_ERR_KEYVAL, "the attribute key is for %s, not for %s", what[(*k)->kind], what[kind]);
    return MR_SUCCESS;
}

static enum mr_err free_keyval(int *h, enum mr_keyval_kind kind)
{
    struct mr_keyval *k;
    enum mr_err err = keyval_of(*h, kind, &k);
    if (err)
        return err;
    if (!k->freed) {
        k->freed = true;
        mr_keyval_put(k);
    }
    *h = MPI_KEYVAL_INVALID;
    return MR_SUCCESS;
}

static enum mr_err set(struct mr_attr **list, void *object, int h, enum mr_keyval_kind kind, void *value)
{
    struct mr_keyval *k;
    int user_error;
    enum mr_err err = keyval_of(h, kind, &k);
    if (err)
        return err;
    if (k->freed)
        return mr_fail(MR_ERR_KEYVAL, "the attribute key %#x was freed: it takes no new values", (unsigned)h);
    api_in_callback++;
    err = mr_attr_set(list, object, k, value, &user_error);
    api_in_callback--;
    return err;
}

static enum mr_err get(struct mr_attr *list, int h, enum mr_keyval_kind kind, void *value, int *flag)
{
    struct mr_keyval *k;
    void *v = NULL;
    enum mr_err err = keyval_of(h, kind, &k);
    if (err)
        return err;
    *flag = mr_attr_get(list, k, &v);
    if (*flag)
        memcpy(value, &v, sizeof(v));
    return MR_SUCCESS;
}

static enum mr_err delete (struct mr_attr **list, void *object, int h, enum mr_keyval_kind kind) {
    struct mr_keyval *k; int user_error; enum mr_err err = keyval_of(h, kind, &k); if (err) return err;
    api_in_callback++;
    err = mr_attr_delete(list, object, k, &user_error);
    api_in_callback--;
    return err;
}

/* ---- communicators ---- */

/* The value that MPI defines for a key, on every communicator; NULL: not one of MPI's. */
static int *predefined(int keyval)
{
    static int tag_ub = MR_TAG_UB, host = MPI_PROC_NULL, io = MPI_ANY_SOURCE, global, universe, last_code, appnum;
    switch (keyval) {
    case MPI_TAG_UB:
        return &tag_ub;
    case MPI_HOST:
        return &host;
    case MPI_IO:
        return &io;
    case MPI_WTIME_IS_GLOBAL:
        return &global;
    case MPI_UNIVERSE_SIZE:
        universe = mr_comm_world->size;
        return &universe;
    case MPI_LASTUSEDCODE:
        last_code = api_last_used_code();
        return &last_code;
    case MPI_APPNUM:
        return &appnum;
    default:
        return NULL;
    }
}

MPI_FN(int, Comm_create_keyval,
       (MPI_Comm_copy_attr_function * copy_fn, MPI_Comm_delete_attr_function *delete_fn, int *keyval,
        void *extra_state))
{
    API_ENTER();
    NOT_NULL(keyval);
    err = new_keyval(MR_KEYVAL_COMM, (mr_user_fn)copy_fn, (mr_user_fn)delete_fn, extra_state, keyval);
    API_LEAVE(NULL);
}

MPI_FN(int, Comm_free_keyval, (int *keyval))
{
    API_ENTER();
    NOT_NULL(keyval);
    err = free_keyval(keyval, MR_KEYVAL_COMM);
    API_LEAVE(NULL);
}

MPI_FN(int, Comm_set_attr, (MPI_Comm comm, int keyval, void *value))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    if (predefined(keyval))
        CHECK(mr_fail(MR_ERR_KEYVAL, "the attribute belongs to MPI: it cannot be set"));
    err = set(&c->attrs, c, keyval, MR_KEYVAL_COMM, value);
    API_LEAVE(c);
}

MPI_FN(int, Comm_get_attr, (MPI_Comm comm, int keyval, void *value, int *flag))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(value);
    NOT_NULL(flag);
    int *p = predefined(keyval);
    if (p) {
        *flag = 1;
        memcpy(value, &p, sizeof(p));
    } else {
        err = get(c->attrs, keyval, MR_KEYVAL_COMM, value, flag);
    }
    API_LEAVE(c);
}

MPI_FN(int, Comm_delete_attr, (MPI_Comm comm, int keyval))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    if (predefined(keyval))
        CHECK(mr_fail(MR_ERR_KEYVAL, "the attribute belongs to MPI: it cannot be deleted"));
    err = delete (&c->attrs, c, keyval, MR_KEYVAL_COMM);
    API_LEAVE(c);
}

/* The names of MPI-1. */
MPI_FN(int, Keyval_create,
       (MPI_Copy_function * copy_fn, MPI_Delete_function *delete_fn, int *keyval, void *extra_state))
{
    return PMPI_Comm_create_keyval(copy_fn, delete_fn, keyval, extra_state);
}

MPI_FN(int, Keyval_free, (int *keyval))
{
    return PMPI_Comm_free_keyval(keyval);
}

MPI_FN(int, Attr_put, (MPI_Comm comm, int keyval, void *value))
{
    return PMPI_Comm_set_attr(comm, keyval, value);
}

MPI_FN(int, Attr_get, (MPI_Comm comm, int keyval, void *value, int *flag))
{
    return PMPI_Comm_get_attr(comm, keyval, value, flag);
}

MPI_FN(int, Attr_delete, (MPI_Comm comm, int keyval))
{
    return PMPI_Comm_delete_attr(comm, keyval);
}

/* ---- datatypes ---- */

MPI_FN(int, Type_create_keyval,
       (MPI_Type_copy_attr_function * copy_fn, MPI_Type_delete_attr_function *delete_fn, int *keyval,
        void *extra_state))
{
    API_ENTER();
    NOT_NULL(keyval);
    err = new_keyval(MR_KEYVAL_TYPE, (mr_user_fn)copy_fn, (mr_user_fn)delete_fn, extra_state, keyval);
    API_LEAVE(NULL);
}

MPI_FN(int, Type_free_keyval, (int *keyval))
{
    API_ENTER();
    NOT_NULL(keyval);
    err = free_keyval(keyval, MR_KEYVAL_TYPE);
    API_LEAVE(NULL);
}

MPI_FN(int, Type_set_attr, (MPI_Datatype type, int keyval, void *value))
{
    struct mr_type *t;
    API_ENTER();
    CHECK(api_type(type, &t));
    err = set(&t->attrs, t, keyval, MR_KEYVAL_TYPE, value);
    API_LEAVE(NULL);
}

MPI_FN(int, Type_get_attr, (MPI_Datatype type, int keyval, void *value, int *flag))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(value);
    NOT_NULL(flag);
    CHECK(api_type(type, &t));
    err = get(t->attrs, keyval, MR_KEYVAL_TYPE, value, flag);
    API_LEAVE(NULL);
}

MPI_FN(int, Type_delete_attr, (MPI_Datatype type, int keyval))
{
    struct mr_type *t;
    API_ENTER();
    CHECK(api_type(type, &t));
    err = delete (&t->attrs, t, keyval, MR_KEYVAL_TYPE);
    API_LEAVE(NULL);
}

/* ---- windows: keys only ---- */

MPI_FN(int, Win_create_keyval,
       (MPI_Win_copy_attr_function * copy_fn, MPI_Win_delete_attr_function *delete_fn, int *keyval, void *extra_state))
{
    API_ENTER();
    NOT_NULL(keyval);
    err = new_keyval(MR_KEYVAL_WIN, (mr_user_fn)copy_fn, (mr_user_fn)delete_fn, extra_state, keyval);
    API_LEAVE(NULL);
}

MPI_FN(int, Win_free_keyval, (int *keyval))
{
    API_ENTER();
    NOT_NULL(keyval);
    err = free_keyval(keyval, MR_KEYVAL_WIN);
    API_LEAVE(NULL);
}
