/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definition of an MPI function with its PMPI twin, entry and exit: part of api.h. enter.c, handle.c and arguments.c
 * are below all MPI functions and call none of them.
 */
#ifndef MRMPI_API_ENTER_H
#define MRMPI_API_ENTER_H

#include "libmrmpi/api/interface.h"
#include "libmrmpi/base/base.h"
#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/lock.h"

#include <limits.h>

#define MPI_FN(type, name, args)                                                                                       \
    type MPI_##name args __attribute__((weak, alias("PMPI_" #name)));                                                  \
    type PMPI_##name args

#define MPIX_FN(type, name, args)                                                                                      \
    type MPIX_##name args __attribute__((weak, alias("PMPIX_" #name)));                                                \
    type PMPIX_##name args

/*
 * Functions with counts exist twice since MPI-4 (section 2.5.8): MPI_Name, and MPI_Name_c with wider counts. They live
 * in files of their own that are compiled twice: X.c unchanged and X_large.c, which defines API_LARGE and includes X.c.
 * There api_count stands for the standard's int and MPI_Count, api_displ for int and MPI_Aint. Functions without counts
 * do not belong into such a file.
 */
#ifdef API_LARGE
typedef MPI_Count api_count;
typedef MPI_Aint api_displ;
#define API_COUNT_MAX                  ((uint64_t)INT64_MAX)
#define API_WIDE                       true /* for struct mr_vec */
#define MPI_COUNT_FN(type, name, args) MPI_FN(type, name##_c, args)
#define API_NAME(name)                 "MPI_" #name "_c"
#else
typedef int api_count;
typedef int api_displ;
#define API_COUNT_MAX                  ((uint64_t)INT_MAX)
#define API_WIDE                       false
#define MPI_COUNT_FN(type, name, args) MPI_FN(type, name, args)
#define API_NAME(name)                 "MPI_" #name
#endif

/* A count for the user; MPI_UNDEFINED if it does not fit. */
static inline api_count api_count_of(uint64_t n)
{
    return n > API_COUNT_MAX ? MPI_UNDEFINED : (api_count)n;
}

/* ---- entering and leaving ---- */

/* In a callback of the user's (operation, attribute function) the lock is already held: MPI calls from there do not
 * take it. */
extern _Thread_local int api_in_callback;

static inline void api_lock(void)
{
    if (unlikely(mr_threaded) && !api_in_callback)
        mr_lock();
}

static inline void api_unlock(void)
{
    if (unlikely(mr_threaded) && !api_in_callback)
        mr_unlock();
}

/* The library runs, and only one thread calls it: nothing is to be done before a function's work, or after. */
extern bool api_fast __attribute__((visibility("hidden")));
void api_renew_fast(void);                     /* the library has started, has ended, or has got threads */
extern enum abi_thread_level api_thread_level; /* the highest level requested so far */
_Noreturn void api_not_running(const char *function);
void api_enter(const char *function); /* otherwise: takes the lock, or ends the program */
/* Unlocks, calls the error handler of c, returns the result of the MPI function. */
int api_fail(struct mr_comm *c, enum mr_err err, const char *function);
/* The same for an object with a handler of its own, which is called with the object; `h` is kept meanwhile. */
int api_fail_with(struct mr_errhandler *h, const void *object, enum mr_err err, const char *function);
/* The program reports an error of its own to a handler. */
int api_call_errhandler(struct mr_errhandler *h, const void *object, int code, const char *function);
/* The text of this thread's last error, if it had this code; else NULL. */
const char *api_last_error(int code);
/* A callback of the program has failed with a code of the program: the failing MPI function returns this code. */
void api_callback_failed(int code);
void api_forget_callback(void); /* a later callback decides which code is returned */
/* The code of an error for a status: the code of a failed callback, which is forgotten, or that of err. */
int api_take_code(enum mr_err err);
int api_code_of(enum mr_err err); /* the same for a function that fails with err afterwards */

#define API_ENTER()                                                                                                    \
    enum mr_err err = MR_SUCCESS;                                                                                      \
    if (unlikely(!api_fast))                                                                                           \
    api_enter(__func__ + 1)

#define API_LEAVE(comm)                                                                                                \
    goto out;                                                                                                          \
    out:                                                                                                               \
    if (unlikely(err))                                                                                                 \
        return api_fail(comm, err, __func__ + 1);                                                                      \
    if (unlikely(!api_fast))                                                                                           \
        api_unlock();                                                                                                  \
    return MPI_SUCCESS

/* The same for a session, and for a window; NULL: none, and the world's handler is called. */
int api_fail_session(struct mr_session *s, enum mr_err err, const char *function);
#define API_LEAVE_SESSION(s)                                                                                           \
    goto out;                                                                                                          \
    out:                                                                                                               \
    if (unlikely(err))                                                                                                 \
        return api_fail_session(s, err, __func__ + 1);                                                                 \
    api_unlock();                                                                                                      \
    return MPI_SUCCESS

struct mr_win;
int api_fail_win(struct mr_win *w, enum mr_err err, const char *function);
#define API_LEAVE_WIN(win)                                                                                             \
    goto out;                                                                                                          \
    out:                                                                                                               \
    if (unlikely(err))                                                                                                 \
        return api_fail_win(win, err, __func__ + 1);                                                                   \
    if (unlikely(!api_fast))                                                                                           \
        api_unlock();                                                                                                  \
    return MPI_SUCCESS

/* And for a file (errhandler.c); NULL: no file, and the handler of MPI_FILE_NULL is called. */
struct mr_file;
int api_fail_file(struct mr_file *f, enum mr_err err, const char *function);
#define API_LEAVE_FILE(file)                                                                                           \
    goto out;                                                                                                          \
    out:                                                                                                               \
    if (unlikely(err))                                                                                                 \
        return api_fail_file(file, err, __func__ + 1);                                                                 \
    if (unlikely(!api_fast))                                                                                           \
        api_unlock();                                                                                                  \
    return MPI_SUCCESS

/*
 * A short, frequent function of a communicator (its parameter comm). The code behind this macro is its work and returns
 * an error. Locking is in a function of its own: if nothing is to be done before the work, no argument is kept for the
 * time after.
 */
#define MPI_SHORT_FN(name, params, args)                                                                               \
    static inline __attribute__((always_inline)) enum mr_err name##_work params;                                       \
    static __attribute__((noinline)) int name##_guarded params                                                         \
    {                                                                                                                  \
        enum mr_err err;                                                                                               \
        api_enter(API_NAME(name));                                                                                     \
        err = name##_work args;                                                                                        \
        if (unlikely(err))                                                                                             \
            return api_fail(api_known_comm(comm), err, API_NAME(name));                                                \
        api_unlock();                                                                                                  \
        return MPI_SUCCESS;                                                                                            \
    }                                                                                                                  \
    MPI_COUNT_FN(int, name, params)                                                                                    \
    {                                                                                                                  \
        enum mr_err err;                                                                                               \
        if (unlikely(!api_fast))                                                                                       \
            return name##_guarded args;                                                                                \
        err = name##_work args;                                                                                        \
        return likely(!err) ? MPI_SUCCESS : api_fail(api_known_comm(comm), err, API_NAME(name));                       \
    }                                                                                                                  \
    static inline enum mr_err name##_work params

/*
 * Functions that are allowed at any time, before initialization and after finalization too, and in several threads then
 * (MPI-4.0 section 11.4.1): info objects, error handlers, classes and codes, sessions.
 */
bool api_enter_any(void); /* true: it was the lock for the time without the library's own */
int api_fail_any(bool any, enum mr_err err, const char *function);
void api_leave_any(bool any);

#define API_ENTER_ANY()                                                                                                \
    enum mr_err err = MR_SUCCESS;                                                                                      \
    bool any_ = api_enter_any()

#define API_LEAVE_ANY()                                                                                                \
    goto out;                                                                                                          \
    out:                                                                                                               \
    if (unlikely(err))                                                                                                 \
        return api_fail_any(any_, err, __func__ + 1);                                                                  \
    api_leave_any(any_);                                                                                               \
    return MPI_SUCCESS

#define CHECK(expr)                                                                                                    \
    do {                                                                                                               \
        err = (expr);                                                                                                  \
        if (unlikely(err))                                                                                             \
            goto out;                                                                                                  \
    } while (0)

/* The result of a failed check: an error. At its place nothing is kept for the time after. */
static inline enum mr_err api_sure(enum mr_err err)
{
    if (!err)
        __builtin_unreachable();
    return err;
}

#endif
