/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way into the library and the way of errors out of it: enter.h. Every MPI function stands above this file, which
 * calls none of them.
 */
#include "libmrmpi/api/api.h"

#include <pthread.h>
#include <stdio.h>

#include "libmrmpi/api/language.h"
#include "libmrmpi/launch/launch.h"

_Thread_local int api_in_callback;
bool api_fast;
enum abi_thread_level api_thread_level;

void api_renew_fast(void)
{
    api_fast = mr_state == MR_STATE_RUNNING && !mr_threaded;
}

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

/* ---- the last error ---- */

/* The last error returned in this thread: MPI_Error_string has its full text. */
static _Thread_local struct {
    int code;
    int callback; /* the program's error that made a callback fail, until the MPI function has failed; 0: none */
    char text[MPI_MAX_ERROR_STRING];
} last;

const char *api_last_error(int code)
{
    return code && code == last.code ? last.text : NULL;
}

void api_callback_failed(int code)
{
    if (!last.callback)
        last.callback = code;
}

void api_forget_callback(void)
{
    last.callback = 0;
}

int api_code_of(enum mr_err err)
{
    return err && last.callback ? last.callback : abi_error_of[err];
}

int api_take_code(enum mr_err err)
{
    int code = api_code_of(err);
    if (err)
        last.callback = 0;
    return code;
}

/* Takes the detail. Returns the code to return. */
static int note_last_error(enum mr_err err, const char *function)
{
    const char *detail = mr_error_take_detail(), *text = mr_err_text(err), *name = abi_error_name(err);
    bool pending = err == MR_ERR_PROC_FAILED_PENDING;
    last.code = last.callback ? 0 : abi_error_of[err];
    if (pending)
        snprintf(last.text, sizeof(last.text), "%s: %s: %s (%s)", function, text, abi_pending_hint, name);
    else if (detail[0])
        snprintf(last.text, sizeof(last.text), "%s: %s: %s (%s)", function, text, detail, name);
    else
        snprintf(last.text, sizeof(last.text), "%s: %s (%s)", function, text, name);
    int code = last.callback ? last.callback : last.code;
    last.callback = 0;
    return code;
}

static void note_user_error(int code, const char *function)
{
    last.code = 0;
    snprintf(last.text, sizeof(last.text), "%s: the program reported error %d", function, code);
}

/* ---- the way out ---- */

/* The launcher says rank and host, and ends the job. */
static _Noreturn void abort_job(int code)
{
    mr_launch_abort(code, last.text);
}

/*
 * A handler of the program gets the object's handle; an object without a handle is reported as the world. The handler
 * may change the code: the function returns the handler's code (MPI-4.1 section 9.3).
 */
static void call_through(struct mr_errhandler *h, MPI_Comm *comm, MPI_Win *win, MPI_File *file, int *code)
{
    abi_errhandler_proxy *proxy = (abi_errhandler_proxy *)h->through;
    if (h->of == MR_ERRHANDLER_FILE)
        proxy(ABI_PROXY_FILE, (int *)(void *)file, code, h->user);
    else if (h->of == MR_ERRHANDLER_WIN)
        proxy(ABI_PROXY_WIN, (int *)(void *)win, code, h->user);
    else
        proxy(ABI_PROXY_COMM, (int *)(void *)comm, code, h->user);
}

static int call_user(struct mr_errhandler *h, const void *object, int code)
{
    const struct mr_comm *c = h->of == MR_ERRHANDLER_COMM ? object : NULL;
    MPI_Comm comm = c && c->handle ? abi_handle(MPI_Comm, c->handle) : MPI_COMM_WORLD;
    MPI_Session session = h->of == MR_ERRHANDLER_SESSION && object
                              ? abi_handle(MPI_Session, ((const struct mr_session *)object)->handle)
                              : MPI_SESSION_NULL;
    MPI_File file = h->of == MR_ERRHANDLER_FILE && object ? api_file_handle(object) : MPI_FILE_NULL;
    MPI_Win win = h->of == MR_ERRHANDLER_WIN && object ? abi_handle(MPI_Win, ((const struct mr_win *)object)->handle)
                                                       : MPI_WIN_NULL;
    if (h->through) {
        call_through(h, &comm, &win, &file, &code);
        return code;
    }
    switch (h->of) {
    case MR_ERRHANDLER_COMM:
        ((MPI_Comm_errhandler_function *)h->user)(&comm, &code);
        break;
    case MR_ERRHANDLER_SESSION:
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
    return call_handler(h, object, note_last_error(err, function));
}

int api_fail(struct mr_comm *c, enum mr_err err, const char *function)
{
    int code = note_last_error(err, function);
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

int api_fail_session(struct mr_session *s, enum mr_err err, const char *function)
{
    return s ? api_fail_with(s->errhandler, s, err, function) : api_fail(NULL, err, function);
}

int api_fail_win(struct mr_win *w, enum mr_err err, const char *function)
{
    if (!w)
        return api_fail(NULL, err, function);
    mr_win_note(w, err);
    return api_fail_with(w->errhandler, w, err, function);
}

int api_call_errhandler(struct mr_errhandler *h, const void *object, int code, const char *function)
{
    note_user_error(code, function);
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

int api_fail_any(bool any, enum mr_err err, const char *function)
{
    if (any) {
        pthread_mutex_unlock(&any_mutex);
        api_lock();
    }
    return api_fail(NULL, err, function);
}
