/* SPDX-License-Identifier: BSD-3-Clause */
/* How errors leave the library: error handlers, classes, codes and strings (MPI-3.1 chapter 8.3-8.5), and what checks
 * say. */
#include "libmrmpi/api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/api/life.h"
#include "libmrmpi/launch/launch.h"

_Thread_local int api_in_callback;

/* The last error that a function of this thread returned: MPI_Error_string tells it in full. */
static _Thread_local struct {
    int code;
    char text[MPI_MAX_ERROR_STRING];
} last;

/* Classes and codes that the program added: number ABI_USER_CLASS + i is item i. */
static struct {
    int count;
    struct user_code {
        int class;
        char text[MPI_MAX_ERROR_STRING];
    } * *items;
} added;

int api_last_used_code(void)
{
    return added.count ? ABI_USER_CLASS + added.count - 1 : MPI_ERR_LASTCODE;
}

void api_string(char *to, size_t cap, const char *src, int *len)
{
    size_t n = strlen(src);
    if (n >= cap)
        n = cap - 1;
    memcpy(to, src, n);
    to[n] = '\0';
    *len = (int)n;
}

/* ---- what checks say ---- */

enum mr_err api_bad_count(long count, const char *name)
{
    return mr_fail(MR_ERR_COUNT, "%s is %ld", name, count);
}

enum mr_err api_bad_type(const struct mr_type *t)
{
    return mr_fail(MR_ERR_TYPE, "the datatype %s has not been committed: call MPI_Type_commit first", mr_type_name(t));
}

enum mr_err api_bad_rank(const struct mr_comm *c, int rank, bool receive)
{
    return mr_fail(MR_ERR_RANK, "rank %d is not in %s%s, which has ranks 0 to %d%s", rank,
                   mr_comm_is_inter(c) ? "the remote group of " : "", c->name[0] ? c->name : "the communicator",
                   c->num_peers - 1,
                   rank == MPI_ANY_SOURCE && !receive ? " (MPI_ANY_SOURCE is for receives)" : "");
}

enum mr_err api_bad_tag(int tag)
{
    return mr_fail(MR_ERR_TAG, "tag %d is not in 0 to %d%s", tag, MR_TAG_UB,
                   tag == MPI_ANY_TAG ? " (MPI_ANY_TAG is for receives)" : "");
}

enum mr_err api_null(const char *name)
{
    return mr_fail(MR_ERR_ARG, "%s is a null pointer", name);
}

/* ---- the way out ---- */

_Noreturn void api_not_running(const char *function)
{
    char why[256];
    snprintf(why, sizeof(why), "%s was called %s", function,
             mr_state == MR_STATE_FINALIZED ? "after MPI_Finalize" : "before MPI_Init");
    mr_launch_abort(1, why);
}

/* The launcher says rank and host, and ends the job. */
static _Noreturn void abort_job(int code, const char *function)
{
    char why[MPI_MAX_ERROR_STRING + 256];
    snprintf(why, sizeof(why), "%s: %s", function, last.text);
    mr_launch_abort(code, why);
}

static int call_handler(struct mr_comm *c, struct mr_errhandler *h, int code, const char *function)
{
    switch (h->kind) {
    case MR_ERRHANDLER_FATAL:
    case MR_ERRHANDLER_ABORT:
        abort_job(code, function);
    case MR_ERRHANDLER_RETURN:
        break;
    case MR_ERRHANDLER_USER:
        h->call(h, c, code);
        break;
    }
    return code;
}

int api_fail(struct mr_comm *c, enum mr_err err, const char *function)
{
    const char *detail = mr_error_take_detail();
    last.code = abi_error_of[err];
    if (detail[0])
        snprintf(last.text, sizeof(last.text), "%s: %s (%s)", mr_err_text(err), detail, mr_err_name(err));
    else
        snprintf(last.text, sizeof(last.text), "%s (%s)", mr_err_text(err), mr_err_name(err));
    if (!c)
        c = mr_comm_world;
    struct mr_errhandler *h = mr_errhandler_get(c->errhandler);
    mr_comm_get(c);
    api_unlock();
    int code = call_handler(c, h, last.code, function);
    api_lock();
    mr_comm_put(c);
    mr_errhandler_put(h);
    api_unlock();
    return code;
}

/* ---- classes, codes, strings: allowed at any time ---- */

static struct user_code *user_code(int code)
{
    long i = (long)code - ABI_USER_CLASS;
    return i >= 0 && i < added.count ? added.items[i] : NULL;
}

static enum mr_err add_code(int class, int *code)
{
    struct user_code **items = realloc(added.items, ((size_t)added.count + 1) * sizeof(*items));
    struct user_code *u = calloc(1, sizeof(*u));
    if (items)
        added.items = items;
    if (!items || !u) {
        free(u);
        return MR_ERR_NO_MEM;
    }
    *code = ABI_USER_CLASS + added.count;
    u->class = class ? class : *code;
    added.items[added.count++] = u;
    return MR_SUCCESS;
}

void api_errors_finalize(void)
{
    while (added.count)
        free(added.items[--added.count]);
    free(added.items);
    added.items = NULL;
}

static enum mr_err core_class(int class)
{
    for (int e = 1; e <= MR_ERR_PROC_FAILED; e++)
        if (abi_error_of[e] == class)
            return (enum mr_err)e;
    return class == MPI_SUCCESS ? MR_SUCCESS : MR_ERR_UNKNOWN;
}

/* The codes of the tool information interface are classes of their own; nothing below api/ returns them. */
static const struct {
    int class;
    const char *name, *text;
} tool_classes[] = {
#define T(name, text) {MPI_T_ERR_##name, "MPI_T_ERR_" #name, text}
    T(MEMORY, "out of memory"),
    T(NOT_INITIALIZED, "the tool interface is not initialized"),
    T(CANNOT_INIT, "the tool interface cannot be initialized now"),
    T(INVALID_INDEX, "invalid index"),
    T(INVALID_ITEM, "invalid item of an enumeration"),
    T(INVALID_HANDLE, "invalid handle of the tool interface"),
    T(OUT_OF_HANDLES, "no more handles"),
    T(OUT_OF_SESSIONS, "no more sessions"),
    T(INVALID_SESSION, "invalid session of the tool interface"),
    T(CVAR_SET_NOT_NOW, "the control variable cannot be set at this moment"),
    T(CVAR_SET_NEVER, "the control variable cannot be set any more"),
    T(PVAR_NO_STARTSTOP, "the performance variable cannot be started or stopped"),
    T(PVAR_NO_WRITE, "the performance variable cannot be written"),
    T(PVAR_NO_ATOMIC, "the performance variable cannot be read and reset in one"),
    T(INVALID_NAME, "there is no variable of this name"),
    T(INVALID, "invalid use of the tool interface"),
    T(NOT_SUPPORTED, "not supported by the tool interface"),
#undef T
};

static void class_text(int code, char *text, size_t cap)
{
    for (size_t i = 0; i < sizeof(tool_classes) / sizeof(tool_classes[0]); i++) {
        if (tool_classes[i].class != code)
            continue;
        snprintf(text, cap, "%s (%s)", tool_classes[i].text, tool_classes[i].name);
        return;
    }
    enum mr_err e = core_class(code);
    snprintf(text, cap, "%s (%s)", mr_err_text(e), mr_err_name(e));
}

MPI_FN(int, Error_class, (int errorcode, int *errorclass))
{
    const struct user_code *u = user_code(errorcode);
    *errorclass = u ? u->class : errorcode;
    return MPI_SUCCESS;
}

MPI_FN(int, Error_string, (int errorcode, char *string, int *resultlen))
{
    const struct user_code *u = user_code(errorcode);
    if (u) {
        api_string(string, MPI_MAX_ERROR_STRING, u->text, resultlen);
    } else if (errorcode && errorcode == last.code) {
        api_string(string, MPI_MAX_ERROR_STRING, last.text, resultlen);
    } else {
        char text[128];
        class_text(errorcode, text, sizeof(text));
        api_string(string, MPI_MAX_ERROR_STRING, text, resultlen);
    }
    return MPI_SUCCESS;
}

MPI_FN(int, Add_error_class, (int *errorclass))
{
    API_ENTER();
    NOT_NULL(errorclass);
    err = add_code(0, errorclass);
    API_LEAVE(NULL);
}

MPI_FN(int, Add_error_code, (int errorclass, int *errorcode))
{
    API_ENTER();
    NOT_NULL(errorcode);
    err = add_code(errorclass, errorcode);
    API_LEAVE(NULL);
}

MPI_FN(int, Add_error_string, (int errorcode, const char *string))
{
    API_ENTER();
    NOT_NULL(string);
    struct user_code *u = user_code(errorcode);
    if (!u)
        CHECK(mr_fail(MR_ERR_ARG, "%d is not an error class or code that the program added", errorcode));
    snprintf(u->text, sizeof(u->text), "%s", string);
    API_LEAVE(NULL);
}

/* ---- error handlers ---- */

enum mr_err api_errhandler(MPI_Errhandler h, struct mr_errhandler **e)
{
    if (h == MPI_ERRORS_ARE_FATAL)
        *e = &mr_errhandler_fatal;
    else if (h == MPI_ERRORS_RETURN)
        *e = &mr_errhandler_return;
    else if (!(*e = api_find(ABI_ERRHANDLER, h)))
        return api_bad_handle(MR_ERR_ARG, "error handler", h, MPI_ERRHANDLER_NULL);
    return MR_SUCCESS;
}

static void call_user(struct mr_errhandler *h, struct mr_comm *comm, int code)
{
    MPI_Comm c = comm->handle ? comm->handle : MPI_COMM_WORLD;
    ((MPI_Comm_errhandler_function *)h->user)(&c, &code);
}

MPI_FN(int, Comm_create_errhandler, (MPI_Comm_errhandler_function * function, MPI_Errhandler *errhandler))
{
    API_ENTER();
    NOT_NULL(function);
    NOT_NULL(errhandler);
    struct mr_errhandler *h = mr_errhandler_new();
    if (h) {
        h->user = (mr_user_fn)function;
        h->call = call_user;
    }
    err = api_new_errhandler(h, errhandler);
    API_LEAVE(NULL);
}

MPI_FN(int, Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler errhandler))
{
    struct mr_comm *c = NULL;
    struct mr_errhandler *h;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    CHECK(api_errhandler(errhandler, &h));
    mr_errhandler_get(h);
    mr_errhandler_put(c->errhandler);
    c->errhandler = h;
    API_LEAVE(c);
}

MPI_FN(int, Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler *errhandler))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(errhandler);
    err = api_new_errhandler(mr_errhandler_get(c->errhandler), errhandler);
    API_LEAVE(c);
}

MPI_FN(int, Comm_call_errhandler, (MPI_Comm comm, int errorcode))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    struct mr_errhandler *h = mr_errhandler_get(c->errhandler);
    snprintf(last.text, sizeof(last.text), "the program reported error %d", errorcode);
    last.code = 0;
    api_unlock();
    call_handler(c, h, errorcode, __func__ + 1);
    api_lock();
    mr_errhandler_put(h);
    API_LEAVE(c);
}

MPI_FN(int, Errhandler_free, (MPI_Errhandler * errhandler))
{
    struct mr_errhandler *h;
    API_ENTER();
    NOT_NULL(errhandler);
    CHECK(api_errhandler(*errhandler, &h));
    if (h->kind == MR_ERRHANDLER_USER) {
        if (api_handle_free(ABI_ERRHANDLER, *errhandler))
            h->handle = 0;
        mr_errhandler_put(h);
    }
    *errhandler = MPI_ERRHANDLER_NULL;
    API_LEAVE(NULL);
}

/* The names of MPI-1. */
MPI_FN(int, Errhandler_create, (MPI_Handler_function * function, MPI_Errhandler *errhandler))
{
    return PMPI_Comm_create_errhandler(function, errhandler);
}

MPI_FN(int, Errhandler_set, (MPI_Comm comm, MPI_Errhandler errhandler))
{
    return PMPI_Comm_set_errhandler(comm, errhandler);
}

MPI_FN(int, Errhandler_get, (MPI_Comm comm, MPI_Errhandler *errhandler))
{
    return PMPI_Comm_get_errhandler(comm, errhandler);
}
