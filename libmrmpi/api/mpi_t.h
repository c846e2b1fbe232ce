/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations shared by the files of the tool information interface (MPI-4.0 chapter 15). Its functions return error
 * codes of their own and call no error handler; they work before MPI_Init and after MPI_Finalize, between T_init_thread
 * and the last T_finalize. The shape of a function:
 *
 *     MPI_FN(int, T_thing, (int index))
 *     {
 *         T_ENTER();
 *         T_CHECK(index < 5, INVALID_INDEX);
 *         ...
 *         T_LEAVE();
 *     }
 */
#ifndef MRMPI_API_MPI_T_H
#define MRMPI_API_MPI_T_H

#include "libmrmpi/api/api.h"

/*
 * The interface's own lock, at any thread level of MPI: a tool may have threads of its own, also before MPI_Init. The
 * lock is taken last and held for a short time. Counters and settings that change at any time are atomic.
 */
void api_t_lock(void);
void api_t_unlock(void);
extern int api_t_users; /* inits without their finalize */

#define T_ENTER()                                                                                                      \
    int code = MPI_SUCCESS;                                                                                            \
    api_t_lock();                                                                                                      \
    T_CHECK(api_t_users > 0, NOT_INITIALIZED)

#define T_LEAVE()                                                                                                      \
    goto out;                                                                                                          \
    out:                                                                                                               \
    api_t_unlock();                                                                                                    \
    return code

#define T_CHECK(good, error)                                                                                           \
    do {                                                                                                               \
        if (!(good)) {                                                                                                 \
            code = MPI_T_ERR_##error;                                                                                  \
            goto out;                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Optional results. */
#define T_TELL(pointer, value)                                                                                         \
    do {                                                                                                               \
        if (pointer)                                                                                                   \
            *(pointer) = (value);                                                                                      \
    } while (0)

/* A string for the caller: cut to the *len bytes of his buffer; *len becomes the bytes used, or needed if there is no
 * buffer. */
void api_t_string(char *to, int *len, const char *text);

/* The performance variables of a topic: the first len go to indices, how many there are is returned. */
int api_t_pvars_of(enum mr_topic topic, int len, int *indices);
void api_t_pvar_finalize(void); /* frees handles that the program has not freed */

#endif
