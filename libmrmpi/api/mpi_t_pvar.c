/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Performance variables (MPI-4.0 section 15.3.7): the library's counters. Each handle counts for itself: from when it
 * is started, from 0, whatever others do with theirs; so a handle keeps what it has counted while it ran, and where the
 * counter stood when it was started last.
 */
#include "libmrmpi/api/mpi_t.h"

#include <stdlib.h>
#include <string.h>

struct MPIR_T_pvar_handle_s {
    int index;
    bool running;
    unsigned long long sum, since;
    struct MPIR_T_pvar_handle_s *next;
};
struct MPIR_T_pvar_session_s {
    struct MPIR_T_pvar_handle_s *handles;
    struct MPIR_T_pvar_session_s *next;
};
static struct MPIR_T_pvar_session_s *sessions;
static struct MPIR_T_pvar_handle_s all_handles;
struct MPIR_T_pvar_handle_s *const MPI_T_PVAR_ALL_HANDLES = &all_handles;

/* The places in the lists, of NULL if the object is not there: freed, or never one. */
static struct MPIR_T_pvar_session_s **find_session(MPI_T_pvar_session session)
{
    struct MPIR_T_pvar_session_s **at = &sessions;
    while (*at && *at != session)
        at = &(*at)->next;
    return at;
}

static struct MPIR_T_pvar_handle_s **find_handle(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    struct MPIR_T_pvar_handle_s **at = &session->handles;
    while (*at && *at != handle)
        at = &(*at)->next;
    return at;
}

static void free_session(struct MPIR_T_pvar_session_s *s)
{
    while (s->handles) {
        struct MPIR_T_pvar_handle_s *h = s->handles;
        s->handles = h->next;
        free(h);
    }
    free(s);
}

void api_t_pvar_finalize(void)
{
    while (sessions) {
        struct MPIR_T_pvar_session_s *s = sessions;
        sessions = s->next;
        free_session(s);
    }
}

/* ---- what there is ---- */

static bool counter(int index)
{
    return index >= 0 && index < MR_STAT_COUNT;
}

MPI_FN(int, T_pvar_get_num, (int *num_pvar))
{
    T_ENTER();
    T_CHECK(num_pvar, INVALID);
    *num_pvar = MR_STAT_COUNT;
    T_LEAVE();
}

MPI_FN(int, T_pvar_get_info,
       (int pvar_index, char *name, int *name_len, int *verbosity, int *var_class, MPI_Datatype *datatype,
        MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *readonly, int *continuous, int *atomic))
{
    enum mr_stat s = (enum mr_stat)pvar_index;
    T_ENTER();
    T_CHECK(counter(pvar_index), INVALID_INDEX);
    api_t_string(name, name_len, mr_stat_name(s));
    T_TELL(verbosity, mr_stat_topic(s) == MR_TOPIC_MESSAGES ? MPI_T_VERBOSITY_USER_BASIC : MPI_T_VERBOSITY_TUNER_BASIC);
    T_TELL(var_class, MPI_T_PVAR_CLASS_COUNTER);
    T_TELL(datatype, MPI_UNSIGNED_LONG_LONG);
    T_TELL(enumtype, MPI_T_ENUM_NULL);
    api_t_string(desc, desc_len, mr_stat_help(s));
    T_TELL(bind, MPI_T_BIND_NO_OBJECT);
    T_TELL(readonly, 0);
    T_TELL(continuous, 0);
    T_TELL(atomic, 1);
    T_LEAVE();
}

MPI_FN(int, T_pvar_get_index, (const char *name, int var_class, int *pvar_index))
{
    T_ENTER();
    T_CHECK(name && pvar_index, INVALID);
    int i = 0;
    while (counter(i) && strcmp(mr_stat_name((enum mr_stat)i), name))
        i++;
    T_CHECK(counter(i) && var_class == MPI_T_PVAR_CLASS_COUNTER, INVALID_NAME);
    *pvar_index = i;
    T_LEAVE();
}

/* ---- sessions and handles ---- */

MPI_FN(int, T_pvar_session_create, (MPI_T_pvar_session * session))
{
    T_ENTER();
    T_CHECK(session, INVALID);
    struct MPIR_T_pvar_session_s *s = calloc(1, sizeof(*s));
    T_CHECK(s, OUT_OF_SESSIONS);
    s->next = sessions;
    sessions = s;
    *session = s;
    T_LEAVE();
}

MPI_FN(int, T_pvar_session_free, (MPI_T_pvar_session * session))
{
    T_ENTER();
    T_CHECK(session, INVALID);
    struct MPIR_T_pvar_session_s **at = find_session(*session), *s = *at;
    T_CHECK(s, INVALID_SESSION);
    *at = s->next;
    free_session(s);
    *session = MPI_T_PVAR_SESSION_NULL;
    T_LEAVE();
}

MPI_FN(int, T_pvar_handle_alloc,
       (MPI_T_pvar_session session, int pvar_index, void *obj_handle, MPI_T_pvar_handle *handle, int *count))
{
    T_ENTER();
    T_CHECK(handle && count, INVALID);
    T_CHECK(*find_session(session), INVALID_SESSION);
    T_CHECK(counter(pvar_index), INVALID_INDEX);
    struct MPIR_T_pvar_handle_s *h = calloc(1, sizeof(*h));
    T_CHECK(h, OUT_OF_HANDLES);
    *h = (struct MPIR_T_pvar_handle_s){.index = pvar_index, .next = session->handles};
    session->handles = h;
    *handle = h;
    *count = 1;
    T_LEAVE();
}

MPI_FN(int, T_pvar_handle_free, (MPI_T_pvar_session session, MPI_T_pvar_handle *handle))
{
    T_ENTER();
    T_CHECK(handle, INVALID);
    T_CHECK(*find_session(session), INVALID_SESSION);
    struct MPIR_T_pvar_handle_s **at = find_handle(session, *handle), *h = *at;
    T_CHECK(h, INVALID_HANDLE);
    *at = h->next;
    free(h);
    *handle = MPI_T_PVAR_HANDLE_NULL;
    T_LEAVE();
}

/* ---- counting ---- */

/* The library goes on counting meanwhile: each function below looks at its counter once. */
static unsigned long long now(const struct MPIR_T_pvar_handle_s *h)
{
    return mr_stat_get((enum mr_stat)h->index);
}

static void start(struct MPIR_T_pvar_handle_s *h)
{
    if (!h->running)
        h->since = now(h);
    h->running = true;
}

static unsigned long long value(const struct MPIR_T_pvar_handle_s *h, unsigned long long at)
{
    return h->sum + (h->running ? at - h->since : 0);
}

static void set(struct MPIR_T_pvar_handle_s *h, unsigned long long to)
{
    h->sum = to;
    h->since = now(h);
}

static void stop(struct MPIR_T_pvar_handle_s *h)
{
    h->sum = value(h, now(h));
    h->running = false;
}

static void reset(struct MPIR_T_pvar_handle_s *h)
{
    set(h, 0);
}

/* To one handle of a session, or to all of them. */
#define EACH(name, act)                                                                                                \
    MPI_FN(int, name, (MPI_T_pvar_session session, MPI_T_pvar_handle handle))                                          \
    {                                                                                                                  \
        T_ENTER();                                                                                                     \
        T_CHECK(*find_session(session), INVALID_SESSION);                                                              \
        if (handle == MPI_T_PVAR_ALL_HANDLES) {                                                                        \
            for (struct MPIR_T_pvar_handle_s *h = session->handles; h; h = h->next)                                    \
                act(h);                                                                                                \
        } else {                                                                                                       \
            T_CHECK(*find_handle(session, handle), INVALID_HANDLE);                                                    \
            act(handle);                                                                                               \
        }                                                                                                              \
        T_LEAVE();                                                                                                     \
    }
EACH(T_pvar_start, start)
EACH(T_pvar_stop, stop)
EACH(T_pvar_reset, reset)

MPI_FN(int, T_pvar_read, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf))
{
    T_ENTER();
    T_CHECK(buf, INVALID);
    T_CHECK(*find_session(session), INVALID_SESSION);
    T_CHECK(*find_handle(session, handle), INVALID_HANDLE);
    *(unsigned long long *)buf = value(handle, now(handle));
    T_LEAVE();
}

MPI_FN(int, T_pvar_write, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf))
{
    T_ENTER();
    T_CHECK(buf, INVALID);
    T_CHECK(*find_session(session), INVALID_SESSION);
    T_CHECK(*find_handle(session, handle), INVALID_HANDLE);
    set(handle, *(const unsigned long long *)buf);
    T_LEAVE();
}

MPI_FN(int, T_pvar_readreset, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf))
{
    T_ENTER();
    T_CHECK(buf, INVALID);
    T_CHECK(*find_session(session), INVALID_SESSION);
    T_CHECK(*find_handle(session, handle), INVALID_HANDLE);
    unsigned long long at = now(handle);
    *(unsigned long long *)buf = value(handle, at);
    handle->sum = 0;
    handle->since = at;
    T_LEAVE();
}
