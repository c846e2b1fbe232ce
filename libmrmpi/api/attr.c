/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes of communicators, datatypes and windows (MPI-4.0 section 7.7), and the attributes defined by MPI (9.1.2).
 */
#include "libmrmpi/api/api.h"

#include <string.h>

#include "libmrmpi/api/attr.h"
#include "libmrmpi/api/errcode.h"
#include "libmrmpi/launch/launch.h"

/* ---- callbacks: core gives the object, the user wants its handle ---- */

static int handle_of(const struct mr_keyval *k, void *object)
{
    switch (k->kind) {
    case MR_KEYVAL_COMM:
        return ((struct mr_comm *)object)->handle;
    case MR_KEYVAL_WIN:
        return ((struct mr_win *)object)->handle;
    default:
        return ((struct mr_type *)object)->handle;
    }
}

/* C sees the address of a number. */
static void *for_c(struct mr_attr_value *value)
{
    return value->number ? &value->word : value->word;
}

static enum abi_attr_kind kind_of(const struct mr_attr_value *value)
{
    return value->number ? ABI_ATTR_ADDRESS_NUMBER : ABI_ATTR_POINTER;
}

static int call_copy(struct mr_keyval *k, void *object, struct mr_attr_value *value, void **out, int *flag)
{
    int h = handle_of(k, object), code;
    MPI_Comm_copy_attr_function *copy = (MPI_Comm_copy_attr_function *)k->copy;
    if (k->copy_through)
        code = ((abi_attr_copy_proxy *)k->copy_through)(copy, h, k->handle, k->extra, kind_of(value), value->word, out,
                                                        flag);
    else
        code = copy(abi_handle(MPI_Comm, h), k->handle, k->extra, for_c(value), out, flag);
    api_note_callback_code(code);
    return code;
}

static int call_user_delete(struct mr_keyval *k, void *object, struct mr_attr_value *value)
{
    int h = handle_of(k, object), code;
    MPI_Comm_delete_attr_function *del = (MPI_Comm_delete_attr_function *)k->del;
    if (k->del_through)
        code = ((abi_attr_delete_proxy *)k->del_through)(del, h, k->handle, kind_of(value), value->word, k->extra);
    else
        code = del(abi_handle(MPI_Comm, h), k->handle, for_c(value), k->extra);
    api_note_callback_code(code);
    return code;
}

/* MPI_COMM_DUP_FN and its like, where the constant is no function (MPI-5.0 section 20.3.6). */
static int copy_word(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    memcpy(out, &in, sizeof(in));
    *flag = 1;
    return MPI_SUCCESS;
}

/* A key lives, with its number, as long as an attribute uses it (MPI-4.0 section 7.7.2). */
static void free_key_handle(struct mr_keyval *k)
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
    k->copy = copy == (mr_user_fn)MPI_DUP_FN ? (mr_user_fn)copy_word : copy;
    k->del = del;
    k->extra = extra;
    k->call_copy = call_copy;
    k->call_delete = call_user_delete;
    k->gone = free_key_handle;
    return MR_SUCCESS;
}

static enum mr_err keyval_of(int h, enum mr_keyval_kind kind, struct mr_keyval **k)
{
    *k = api_find(ABI_KEYVAL, h);
    if (!*k)
        return api_bad_handle(MR_ERR_KEYVAL, "keyval", "attribute key", h, MPI_KEYVAL_INVALID);
    static const char *const what[] = {
        [MR_KEYVAL_COMM] = "communicators", [MR_KEYVAL_TYPE] = "datatypes", [MR_KEYVAL_WIN] = "windows"};
    if ((*k)->kind != kind)
        return mr_fail(MR_ERR_KEYVAL, "keyval is for %s, not for %s", what[(*k)->kind], what[kind]);
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

enum mr_err api_attr_set(struct mr_attr **list, void *object, int h, enum mr_keyval_kind kind, void *value,
                         enum abi_attr_kind as)
{
    struct mr_keyval *k;
    int user_error;
    enum mr_err err = keyval_of(h, kind, &k);
    if (err)
        return err;
    if (k->freed)
        return mr_fail(MR_ERR_KEYVAL, "the attribute key %#x was freed: it takes no new values", (unsigned)h);
    api_in_callback++;
    err = mr_attr_set(list, object, k, (struct mr_attr_value){value, as != ABI_ATTR_POINTER}, &user_error);
    api_in_callback--;
    return err;
}

/* Fortran's numbers fill an 8-byte value too, of whatever kind they are. */
enum mr_err api_attr_get(struct mr_attr *list, int h, enum mr_keyval_kind kind, void *value, int *flag,
                         enum abi_attr_kind as)
{
    struct mr_keyval *k;
    enum mr_err err = keyval_of(h, kind, &k);
    if (err)
        return err;
    struct mr_attr_value *v = mr_attr_get(list, k);
    *flag = v != NULL;
    if (v) {
        void *word = as == ABI_ATTR_POINTER ? for_c(v) : v->word;
        memcpy(value, &word, sizeof(word));
    }
    return MR_SUCCESS;
}

enum mr_err api_attr_delete(struct mr_attr **list, void *object, int h, enum mr_keyval_kind kind)
{
    struct mr_keyval *k;
    int user_error;
    enum mr_err err = keyval_of(h, kind, &k);
    if (err)
        return err;
    api_in_callback++;
    err = mr_attr_delete(list, object, k, &user_error);
    api_in_callback--;
    return err;
}

/* ---- communicators ---- */

/* MPI's value for a key, on every communicator; NULL: not a key of MPI. */
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
        universe = mr_launch_universe();
        universe = universe > mr_comm_world->size ? universe : mr_comm_world->size;
        return &universe;
    case MPI_LASTUSEDCODE:
        last_code = api_last_used_code();
        return &last_code;
    case MPI_APPNUM:
        appnum = mr_launch_info()->appnum;
        return appnum >= 0 ? &appnum : NULL;
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

/* Fortran's numbers of MPI's keys are one higher than C's. */
static int *predefined_for(int keyval, enum abi_attr_kind as)
{
    return predefined(as == ABI_ATTR_POINTER ? keyval : keyval - 1);
}

enum mr_err api_comm_attr_set(struct mr_comm *c, int keyval, void *value, enum abi_attr_kind as)
{
    if (predefined_for(keyval, as))
        return mr_fail(MR_ERR_KEYVAL, "the attribute belongs to MPI: it cannot be set");
    return api_attr_set(&c->attrs, c, keyval, MR_KEYVAL_COMM, value, as);
}

enum mr_err api_comm_attr_get(struct mr_comm *c, int keyval, void *value, int *flag, enum abi_attr_kind as)
{
    int *p = predefined_for(keyval, as);
    if (!p)
        return api_attr_get(c->attrs, keyval, MR_KEYVAL_COMM, value, flag, as);
    intptr_t word = as == ABI_ATTR_POINTER ? (intptr_t)p : *p;
    memcpy(value, &word, sizeof(word));
    *flag = 1;
    return MR_SUCCESS;
}

MPI_FN(int, Comm_set_attr, (MPI_Comm comm, int keyval, void *value))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    err = api_comm_attr_set(c, keyval, value, ABI_ATTR_POINTER);
    API_LEAVE(c);
}

MPI_FN(int, Comm_get_attr, (MPI_Comm comm, int keyval, void *value, int *flag))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(value);
    NOT_NULL(flag);
    err = api_comm_attr_get(c, keyval, value, flag, ABI_ATTR_POINTER);
    API_LEAVE(c);
}

MPI_FN(int, Comm_delete_attr, (MPI_Comm comm, int keyval))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    if (predefined(keyval))
        CHECK(mr_fail(MR_ERR_KEYVAL, "the attribute belongs to MPI: it cannot be deleted"));
    err = api_attr_delete(&c->attrs, c, keyval, MR_KEYVAL_COMM);
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

enum mr_err api_type_attr_set(MPI_Datatype type, int keyval, void *value, enum abi_attr_kind as)
{
    struct mr_type *t;
    enum mr_err err = api_type(type, &t);
    return err ? err : api_attr_set(&t->attrs, t, keyval, MR_KEYVAL_TYPE, value, as);
}

enum mr_err api_type_attr_get(MPI_Datatype type, int keyval, void *value, int *flag, enum abi_attr_kind as)
{
    struct mr_type *t = NULL;
    enum mr_err err = !value ? api_null("value") : !flag ? api_null("flag") : api_type(type, &t);
    return err ? err : api_attr_get(t->attrs, keyval, MR_KEYVAL_TYPE, value, flag, as);
}

MPI_FN(int, Type_set_attr, (MPI_Datatype type, int keyval, void *value))
{
    API_ENTER();
    err = api_type_attr_set(type, keyval, value, ABI_ATTR_POINTER);
    API_LEAVE(NULL);
}

MPI_FN(int, Type_get_attr, (MPI_Datatype type, int keyval, void *value, int *flag))
{
    API_ENTER();
    err = api_type_attr_get(type, keyval, value, flag, ABI_ATTR_POINTER);
    API_LEAVE(NULL);
}

MPI_FN(int, Type_delete_attr, (MPI_Datatype type, int keyval))
{
    struct mr_type *t;
    API_ENTER();
    CHECK(api_type(type, &t));
    err = api_attr_delete(&t->attrs, t, keyval, MR_KEYVAL_TYPE);
    API_LEAVE(NULL);
}

/* ---- windows ---- */

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
