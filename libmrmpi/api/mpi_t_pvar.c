/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Performance variables (MPI-4.0 section 15.3.7): the library's counters, and those of its rails, which have an element
 * for each rail. Each handle counts alone: from its start, from 0, independent of other handles; a handle therefore
 * keeps its count while it ran, and the counter's value at its last start. The rails' parts of large messages are no
 * counters, nor are present amounts: these variables run all the time.
 */
#include "libmrmpi/api/mpi_t.h"

#include <stdlib.h>
#include <string.h>

#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/net/net.h"

/* Their indices: counters of the library, of rails, the share of rails. */
enum { FIRST_RAIL = MR_STAT_COUNT, SHARE = FIRST_RAIL + MR_RAIL_STAT_COUNT, PVARS };

struct abi_t_pvar_handle {
    int index;
    bool running;
    unsigned count; /* elements */
    unsigned long long sum[MR_RAILS_MAX], since[MR_RAILS_MAX];
    struct abi_t_pvar_handle *next;
};
struct abi_t_pvar_session {
    struct abi_t_pvar_handle *handles;
    struct abi_t_pvar_session *next;
};
static struct abi_t_pvar_session *sessions;

/* The places in the lists, of NULL if the object is not there: freed, or never one. */
static struct abi_t_pvar_session **find_session(MPI_T_pvar_session session)
{
    struct abi_t_pvar_session **at = &sessions;
    while (*at && *at != session)
        at = &(*at)->next;
    return at;
}

static struct abi_t_pvar_handle **find_handle(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    struct abi_t_pvar_handle **at = &session->handles;
    while (*at && *at != handle)
        at = &(*at)->next;
    return at;
}

static void free_session(struct abi_t_pvar_session *s)
{
    while (s->handles) {
        struct abi_t_pvar_handle *h = s->handles;
        s->handles = h->next;
        free(h);
    }
    free(s);
}

void api_t_pvar_finalize(void)
{
    while (sessions) {
        struct abi_t_pvar_session *s = sessions;
        sessions = s->next;
        free_session(s);
    }
}

/* ---- what there is ---- */

static bool exists(int index)
{
    return index >= 0 && index < PVARS;
}

static const char *pvar_name(int i)
{
    return i < FIRST_RAIL ? mr_stat_name((enum mr_stat)i)
           : i < SHARE    ? mr_rail_stat_name((enum mr_rail_stat)(i - FIRST_RAIL))
                          : MR_RAIL_SHARE_NAME;
}

static const char *help_of(int i)
{
    return i < FIRST_RAIL ? mr_stat_help((enum mr_stat)i)
           : i < SHARE    ? mr_rail_stat_help((enum mr_rail_stat)(i - FIRST_RAIL))
                          : mr_rail_share_help;
}

static enum mr_topic topic_of(int i)
{
    return i < FIRST_RAIL ? mr_stat_topic((enum mr_stat)i) : MR_TOPIC_RAILS;
}

static bool is_level(int i)
{
    return i < FIRST_RAIL && mr_stat_is_level((enum mr_stat)i);
}

static bool is_continuous(int i)
{
    return i == SHARE || is_level(i);
}

static int pvar_class(int i)
{
    return i == SHARE ? MPI_T_PVAR_CLASS_PERCENTAGE : is_level(i) ? MPI_T_PVAR_CLASS_LEVEL : MPI_T_PVAR_CLASS_COUNTER;
}

int api_t_pvars_of(enum mr_topic topic, int len, int *indices)
{
    int found = 0;
    for (int i = 0; i < PVARS; i++)
        if (topic_of(i) == topic && found++ < len)
            indices[found - 1] = i;
    return found;
}

MPI_FN(int, T_pvar_get_num, (int *num_pvar))
{
    T_ENTER();
    T_CHECK(num_pvar, INVALID);
    *num_pvar = PVARS;
    T_LEAVE();
}

MPI_FN(int, T_pvar_get_info,
       (int pvar_index, char *name, int *name_len, int *verbosity, int *var_class, MPI_Datatype *datatype,
        MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *readonly, int *continuous, int *atomic))
{
    T_ENTER();
    T_CHECK(exists(pvar_index), INVALID_INDEX);
    api_t_string(name, name_len, pvar_name(pvar_index));
    T_TELL(verbosity,
           topic_of(pvar_index) == MR_TOPIC_MESSAGES ? MPI_T_VERBOSITY_USER_BASIC : MPI_T_VERBOSITY_TUNER_BASIC);
    T_TELL(var_class, pvar_class(pvar_index));
    T_TELL(datatype, pvar_index == SHARE ? MPI_DOUBLE : MPI_UNSIGNED_LONG_LONG);
    T_TELL(enumtype, MPI_T_ENUM_NULL);
    api_t_string(desc, desc_len, help_of(pvar_index));
    T_TELL(bind, MPI_T_BIND_NO_OBJECT);
    T_TELL(readonly, is_continuous(pvar_index));
    T_TELL(continuous, is_continuous(pvar_index));
    T_TELL(atomic, 1);
    T_LEAVE();
}

MPI_FN(int, T_pvar_get_index, (const char *name, int var_class, int *pvar_index))
{
    T_ENTER();
    T_CHECK(name && pvar_index, INVALID);
    int i = 0;
    while (exists(i) && strcmp(pvar_name(i), name))
        i++;
    T_CHECK(exists(i) && var_class == pvar_class(i), INVALID_NAME);
    *pvar_index = i;
    T_LEAVE();
}

/* ---- sessions and handles ---- */

MPI_FN(int, T_pvar_session_create, (MPI_T_pvar_session * session))
{
    T_ENTER();
    T_CHECK(session, INVALID);
    struct abi_t_pvar_session *s = calloc(1, sizeof(*s));
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
    struct abi_t_pvar_session **at = find_session(*session), *s = *at;
    T_CHECK(s, INVALID_SESSION);
    *at = s->next;
    free_session(s);
    *session = MPI_T_PVAR_SESSION_NULL;
    T_LEAVE();
}

/* Before MPI_Init, and without a way to other hosts: the maximum, with zero counts. */
static unsigned pvar_elements(int index)
{
    if (index < FIRST_RAIL)
        return 1;
    unsigned n = mr_verbs_num_rails();
    return n ? n : MR_RAILS_MAX;
}

MPI_FN(int, T_pvar_handle_alloc,
       (MPI_T_pvar_session session, int pvar_index, void *obj_handle, MPI_T_pvar_handle *handle, int *count))
{
    T_ENTER();
    T_CHECK(handle && count, INVALID);
    T_CHECK(*find_session(session), INVALID_SESSION);
    T_CHECK(exists(pvar_index), INVALID_INDEX);
    struct abi_t_pvar_handle *h = calloc(1, sizeof(*h));
    T_CHECK(h, OUT_OF_HANDLES);
    *h = (struct abi_t_pvar_handle){.index = pvar_index,
                                    .running = is_continuous(pvar_index),
                                    .count = pvar_elements(pvar_index),
                                    .next = session->handles};
    session->handles = h;
    *handle = h;
    *count = (int)h->count;
    T_LEAVE();
}

MPI_FN(int, T_pvar_handle_free, (MPI_T_pvar_session session, MPI_T_pvar_handle *handle))
{
    T_ENTER();
    T_CHECK(handle, INVALID);
    T_CHECK(*find_session(session), INVALID_SESSION);
    struct abi_t_pvar_handle **at = find_handle(session, *handle), *h = *at;
    T_CHECK(h, INVALID_HANDLE);
    *at = h->next;
    free(h);
    *handle = MPI_T_PVAR_HANDLE_NULL;
    T_LEAVE();
}

/* ---- counting ---- */

/* The library goes on counting meanwhile: each function below reads each counter once. */
static unsigned long long now(const struct abi_t_pvar_handle *h, unsigned i)
{
    return h->index < FIRST_RAIL ? mr_stat_get((enum mr_stat)h->index)
                                 : mr_rail_counted(i, (enum mr_rail_stat)(h->index - FIRST_RAIL));
}

static void start_pvar(struct abi_t_pvar_handle *h)
{
    for (unsigned i = 0; i < h->count && !h->running; i++)
        h->since[i] = now(h, i);
    h->running = true;
}

static unsigned long long value(const struct abi_t_pvar_handle *h, unsigned i, unsigned long long at)
{
    return h->sum[i] + (h->running ? at - h->since[i] : 0);
}

static void set(struct abi_t_pvar_handle *h, const unsigned long long *to)
{
    for (unsigned i = 0; i < h->count; i++) {
        h->sum[i] = to ? to[i] : 0;
        h->since[i] = now(h, i);
    }
}

static void stop(struct abi_t_pvar_handle *h)
{
    for (unsigned i = 0; i < h->count; i++)
        h->sum[i] = value(h, i, now(h, i));
    h->running = false;
}

static void reset(struct abi_t_pvar_handle *h)
{
    set(h, NULL);
}

static void read_values(struct abi_t_pvar_handle *h, unsigned long long *out, bool restart)
{
    for (unsigned i = 0; i < h->count; i++) {
        unsigned long long at = now(h, i);
        out[i] = value(h, i, at);
        if (restart) {
            h->sum[i] = 0;
            h->since[i] = at;
        }
    }
}

static void read_shares(const struct abi_t_pvar_handle *h, double *out)
{
    for (unsigned i = 0; i < h->count; i++) {
        double share = mr_view_share(i);
        out[i] = share < 0 ? 0 : share;
    }
}

/* For one handle of a session, or for all suitable handles. */
#define EACH(name, act, error)                                                                                         \
    MPI_FN(int, name, (MPI_T_pvar_session session, MPI_T_pvar_handle handle))                                          \
    {                                                                                                                  \
        T_ENTER();                                                                                                     \
        T_CHECK(*find_session(session), INVALID_SESSION);                                                              \
        if (handle == MPI_T_PVAR_ALL_HANDLES) {                                                                        \
            for (struct abi_t_pvar_handle *h = session->handles; h; h = h->next)                                       \
                if (!is_continuous(h->index))                                                                          \
                    act(h);                                                                                            \
        } else {                                                                                                       \
            T_CHECK(*find_handle(session, handle), INVALID_HANDLE);                                                    \
            T_CHECK(!is_continuous(handle->index), error);                                                             \
            act(handle);                                                                                               \
        }                                                                                                              \
        T_LEAVE();                                                                                                     \
    }
EACH(T_pvar_start, start_pvar, PVAR_NO_STARTSTOP)
EACH(T_pvar_stop, stop, PVAR_NO_STARTSTOP)
EACH(T_pvar_reset, reset, PVAR_NO_WRITE)

MPI_FN(int, T_pvar_read, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf))
{
    T_ENTER();
    T_CHECK(buf, INVALID);
    T_CHECK(*find_session(session), INVALID_SESSION);
    T_CHECK(*find_handle(session, handle), INVALID_HANDLE);
    if (handle->index == SHARE)
        read_shares(handle, buf);
    else
        read_values(handle, buf, false);
    T_LEAVE();
}

MPI_FN(int, T_pvar_write, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf))
{
    T_ENTER();
    T_CHECK(buf, INVALID);
    T_CHECK(*find_session(session), INVALID_SESSION);
    T_CHECK(*find_handle(session, handle), INVALID_HANDLE);
    T_CHECK(!is_continuous(handle->index), PVAR_NO_WRITE);
    set(handle, buf);
    T_LEAVE();
}

MPI_FN(int, T_pvar_readreset, (MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf))
{
    T_ENTER();
    T_CHECK(buf, INVALID);
    T_CHECK(*find_session(session), INVALID_SESSION);
    T_CHECK(*find_handle(session, handle), INVALID_HANDLE);
    T_CHECK(!is_continuous(handle->index), PVAR_NO_WRITE);
    read_values(handle, buf, true);
    T_LEAVE();
}
