/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way of errors out of the library: texts of checks, calls of error handlers, the handlers (MPI-4.0 section 9.3).
 */
#include "libmrmpi/api/api.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/api/language.h"
#include "libmrmpi/api/life.h"
#include "libmrmpi/launch/launch.h"

_Thread_local int api_in_callback;

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

enum mr_err api_bad_type(const struct mr_type *t, const char *name)
{
    const char *own = mr_type_name(t);
    return mr_fail(MR_ERR_TYPE, "%s 0x%08x%s%s has not been committed: call MPI_Type_commit first", name,
                   (unsigned)t->handle, *own ? ", " : "", own);
}

enum mr_err api_bad_buffer(const void *buf, int64_t count, const char *name, const char *count_name)
{
    return mr_fail(MR_ERR_BUFFER, "%s is %s, %s is %lld", name,
                   buf ? "MPI_IN_PLACE, which is not allowed here" : "a null pointer", count_name, (long long)count);
}

enum mr_err api_bad_rank(const struct mr_comm *c, int rank, bool receive, const char *name)
{
    return mr_fail(MR_ERR_RANK, "%s %d is not in %s%s, which has ranks 0 to %d%s", name, rank,
                   mr_comm_is_inter(c) ? "the remote group of " : "", c->name[0] ? c->name : "the communicator",
                   c->num_peers - 1, rank == MPI_ANY_SOURCE && !receive ? " (MPI_ANY_SOURCE is for receives)" : "");
}

enum mr_err api_bad_tag(int tag, const char *name)
{
    return mr_fail(MR_ERR_TAG, "%s %d is not in 0 to %d%s", name, tag, MR_TAG_UB,
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

void api_enter(const char *function)
{
    if (mr_state != MR_STATE_RUNNING)
        api_not_running(function);
    api_lock();
}

/* The launcher says rank and host, and ends the job. */
static _Noreturn void abort_job(int code)
{
    mr_launch_abort(code, api_last_error());
}

/*
 * A handler of the program gets the object's handle; an object without a handle is reported as the world. The handler
 * may change the code: the function returns the handler's code (MPI-4.1 section 9.3).
 */
static void call_through(struct mr_errhandler *h, MPI_Comm *comm, MPI_Win *win, MPI_File *file, int *code)
{
    abi_errhandler_proxy *proxy = (abi_errhandler_proxy *)h->through;
    if (h->of == MR_ERRHANDLER_FILE)
        proxy(ABI_PROXY_FILE, (int *)file, code, h->user);
    else if (h->of == MR_ERRHANDLER_WIN)
        proxy(ABI_PROXY_WIN, win, code, h->user);
    else
        proxy(ABI_PROXY_COMM, comm, code, h->user);
}

static int call_user(struct mr_errhandler *h, const void *object, int code)
{
    const struct mr_comm *c = h->of == MR_ERRHANDLER_COMM ? object : NULL;
    MPI_Comm comm = c && c->handle ? c->handle : MPI_COMM_WORLD;
    MPI_Session session;
    MPI_File file = h->of == MR_ERRHANDLER_FILE && object ? api_file_handle(object) : MPI_FILE_NULL;
    MPI_Win win = h->of == MR_ERRHANDLER_WIN && object ? ((const struct mr_win *)object)->handle : MPI_WIN_NULL;
    if (h->through) {
        call_through(h, &comm, &win, &file, &code);
        return code;
    }
    switch (h->of) {
    case MR_ERRHANDLER_COMM:
        ((MPI_Comm_errhandler_function *)h->user)(&comm, &code);
        break;
    case MR_ERRHANDLER_SESSION:
        session = object ? api_session_handle(object) : MPI_SESSION_NULL;
        ((MPI_Session_errhandler_function *)h->user)(&session, &code);
        break;
    case MR_ERRHANDLER_FILE:
        ((MPI_File_errhandler_function *)h->user)(&file, &code);
        break;
    case MR_ERRHANDLER_WIN:
        ((MPI_Win_errhandler_function *)h->user)(&win, &code);
        break;
    }
    return code;
}

/* Returns the code that the function is to return. The lock is held, and free on return. */
static int call_handler(struct mr_errhandler *h, const void *object, int code)
{
    mr_errhandler_get(h);
    api_unlock();
    switch (h->kind) {
    case MR_ERRHANDLER_FATAL:
    case MR_ERRHANDLER_ABORT:
        abort_job(code);
    case MR_ERRHANDLER_RETURN:
        break;
    case MR_ERRHANDLER_USER:
        code = call_user(h, object, code);
        break;
    }
    api_lock();
    mr_errhandler_put(h);
    api_unlock();
    return code;
}

int api_fail_with(struct mr_errhandler *h, const void *object, enum mr_err err, const char *function)
{
    return call_handler(h, object, api_note_error(err, function));
}

int api_fail(struct mr_comm *c, enum mr_err err, const char *function)
{
    int code = api_note_error(err, function);
    if (!c)
        c = mr_comm_world;
    if (!c) /* neither initialized nor a session: there is no handler but the first one */
        return call_handler(&mr_errhandler_fatal, NULL, code);
    mr_comm_get(c);
    code = call_handler(c->errhandler, c, code);
    api_lock();
    mr_comm_put(c);
    api_unlock();
    return code;
}

int api_fail_win(struct mr_win *w, enum mr_err err, const char *function)
{
    return w ? api_fail_with(w->errhandler, w, err, function) : api_fail(NULL, err, function);
}

int api_call_errhandler(struct mr_errhandler *h, const void *object, int code, const char *function)
{
    api_note_user_error(code, function);
    call_handler(h, object, code);
    return MPI_SUCCESS;
}

/* ---- at any time ---- */

static pthread_mutex_t any_mutex = PTHREAD_MUTEX_INITIALIZER;

bool api_enter_any(void)
{
    bool any = !(mr_state == MR_STATE_RUNNING && mr_threaded);
    if (any)
        pthread_mutex_lock(&any_mutex);
    else
        api_lock();
    return any;
}

void api_leave_any(bool any)
{
    if (any)
        pthread_mutex_unlock(&any_mutex);
    else
        api_unlock();
}

int api_null_ever(const char *name, const char *function)
{
    bool any = api_enter_any();
    return api_fail_any(any, api_null(name), function);
}

int api_fail_any(bool any, enum mr_err err, const char *function)
{
    if (any) {
        pthread_mutex_unlock(&any_mutex);
        api_lock();
    }
    return api_fail(NULL, err, function);
}

/* ---- error handlers ---- */

enum mr_err api_errhandler(MPI_Errhandler h, struct mr_errhandler **e)
{
    if (h == MPI_ERRORS_ARE_FATAL)
        *e = &mr_errhandler_fatal;
    else if (h == MPI_ERRORS_RETURN)
        *e = &mr_errhandler_return;
    else if (h == MPI_ERRORS_ABORT)
        *e = &mr_errhandler_abort;
    else if (h == MPIR_ERRORS_THROW_EXCEPTIONS)
        *e = &mr_errhandler_throw;
    else if (!(*e = api_find(ABI_ERRHANDLER, h)))
        return api_bad_handle(MR_ERR_ARG, "errhandler", "error handler", h, MPI_ERRHANDLER_NULL);
    return MR_SUCCESS;
}

enum mr_err api_errhandler_for(MPI_Errhandler h, enum mr_errhandler_of of, struct mr_errhandler **e)
{
    static const char *const what[] = {[MR_ERRHANDLER_COMM] = "communicators",
                                       [MR_ERRHANDLER_SESSION] = "sessions",
                                       [MR_ERRHANDLER_WIN] = "windows",
                                       [MR_ERRHANDLER_FILE] = "files"};
    enum mr_err err = api_errhandler(h, e);
    if (!err && (*e)->kind == MR_ERRHANDLER_USER && (*e)->of != of)
        err = mr_fail(MR_ERR_ARG, "the error handler is for %s, not for %s", what[(*e)->of], what[of]);
    return err;
}

enum mr_err api_new_user_errhandler(enum mr_errhandler_of of, mr_user_fn function, MPI_Errhandler *errhandler)
{
    if (!function)
        return api_null("function");
    if (!errhandler)
        return api_null("errhandler");
    struct mr_errhandler *h = mr_errhandler_new();
    if (h) {
        h->user = function;
        h->of = of;
    }
    return api_new_errhandler(h, errhandler);
}

void api_replace_errhandler(struct mr_errhandler **at, struct mr_errhandler *by)
{
    mr_errhandler_get(by);
    mr_errhandler_put(*at);
    *at = by;
}

#define CREATE(name, kind)                                                                                             \
    MPI_FN(int, name##_create_errhandler, (MPI_##name##_errhandler_function * function, MPI_Errhandler * errhandler))  \
    {                                                                                                                  \
        API_ENTER_ANY();                                                                                               \
        err = api_new_user_errhandler(kind, (mr_user_fn)function, errhandler);                                         \
        API_LEAVE_ANY();                                                                                               \
    }
CREATE(Comm, MR_ERRHANDLER_COMM)
CREATE(Session, MR_ERRHANDLER_SESSION)
CREATE(Win, MR_ERRHANDLER_WIN)
CREATE(File, MR_ERRHANDLER_FILE)

MPI_FN(int, Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler errhandler))
{
    struct mr_comm *c = NULL;
    struct mr_errhandler *h;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    CHECK(api_errhandler_for(errhandler, MR_ERRHANDLER_COMM, &h));
    api_replace_errhandler(&c->errhandler, h);
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
    return api_call_errhandler(c->errhandler, c, errorcode, __func__ + 1);
    API_LEAVE(c);
}

MPI_FN(int, Win_set_errhandler, (MPI_Win win, MPI_Errhandler errhandler))
{
    struct mr_win *w = NULL;
    struct mr_errhandler *h;
    API_ENTER();
    CHECK(api_win(win, &w));
    CHECK(api_errhandler_for(errhandler, MR_ERRHANDLER_WIN, &h));
    api_replace_errhandler(&w->errhandler, h);
    API_LEAVE_WIN(w);
}

MPI_FN(int, Win_get_errhandler, (MPI_Win win, MPI_Errhandler *errhandler))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    NOT_NULL(errhandler);
    err = api_new_errhandler(mr_errhandler_get(w->errhandler), errhandler);
    API_LEAVE_WIN(w);
}

MPI_FN(int, Win_call_errhandler, (MPI_Win win, int errorcode))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    return api_call_errhandler(w->errhandler, w, errorcode, __func__ + 1);
    API_LEAVE_WIN(w);
}

/* Of MPI_FILE_NULL: opened files take the handler over, and errors without a file use it. */
static struct mr_errhandler *file_null_handler = &mr_errhandler_return;

struct mr_errhandler *api_file_null_handler(void)
{
    return file_null_handler;
}

/* The handler of the file, or of none. */
static enum mr_err file_handler(MPI_File file, struct mr_file **f, struct mr_errhandler ***at)
{
    enum mr_err err = file == MPI_FILE_NULL ? MR_SUCCESS : api_file(file, f);
    *at = *f ? &(*f)->errhandler : &file_null_handler;
    return err;
}

MPI_FN(int, File_set_errhandler, (MPI_File file, MPI_Errhandler errhandler))
{
    struct mr_errhandler *h, **at;
    struct mr_file *f = NULL;
    API_ENTER();
    CHECK(file_handler(file, &f, &at));
    CHECK(api_errhandler_for(errhandler, MR_ERRHANDLER_FILE, &h));
    api_replace_errhandler(at, h);
    API_LEAVE_FILE(f);
}

MPI_FN(int, File_get_errhandler, (MPI_File file, MPI_Errhandler *errhandler))
{
    struct mr_errhandler **at;
    struct mr_file *f = NULL;
    API_ENTER();
    CHECK(file_handler(file, &f, &at));
    NOT_NULL(errhandler);
    err = api_new_errhandler(mr_errhandler_get(*at), errhandler);
    API_LEAVE_FILE(f);
}

MPI_FN(int, File_call_errhandler, (MPI_File file, int errorcode))
{
    struct mr_errhandler **at;
    struct mr_file *f = NULL;
    API_ENTER();
    CHECK(file_handler(file, &f, &at));
    return api_call_errhandler(*at, f, errorcode, __func__ + 1);
    API_LEAVE_FILE(f);
}

int api_fail_file(struct mr_file *f, enum mr_err err, const char *function)
{
    return api_fail_with(f ? f->errhandler : file_null_handler, f, err, function);
}

MPI_FN(int, Errhandler_free, (MPI_Errhandler * errhandler))
{
    struct mr_errhandler *h;
    API_ENTER_ANY();
    NOT_NULL(errhandler);
    CHECK(api_errhandler(*errhandler, &h));
    if (h->kind == MR_ERRHANDLER_USER) {
        if (api_handle_free(ABI_ERRHANDLER, *errhandler))
            h->handle = 0;
        mr_errhandler_put(h);
    }
    *errhandler = MPI_ERRHANDLER_NULL;
    API_LEAVE_ANY();
}

void api_errhandlers_finalize(void)
{
    api_replace_errhandler(&file_null_handler, &mr_errhandler_return);
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
