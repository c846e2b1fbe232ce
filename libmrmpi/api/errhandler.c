/* SPDX-License-Identifier: BSD-3-Clause */
/* Error handlers (MPI-4.0 section 9.3): their objects, and those of communicators, windows and files. */
#include "libmrmpi/api/api.h"
#include "libmrmpi/api/life.h"

enum mr_err api_errhandler(MPI_Errhandler h, struct mr_errhandler **e)
{
    if (!(*e = abi_builtin_errhandler(h)) && !(*e = api_find(ABI_ERRHANDLER, abi_number(h))))
        return api_bad_handle(MR_ERR_ARG, "errhandler", "error handler", abi_number(h),
                              abi_number(MPI_ERRHANDLER_NULL));
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
        if (api_handle_free(ABI_ERRHANDLER, abi_number(*errhandler)))
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
