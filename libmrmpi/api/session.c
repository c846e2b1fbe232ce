/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions (MPI-4.0 section 11.3), their process sets, and communicators made from groups. A session keeps the library
 * running; all sessions and the world share its one instance.
 */
#include "libmrmpi/api/api.h"
#include "libmrmpi/p2p/p2p.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "libmrmpi/api/life.h"
#include "libmrmpi/api/session.h"

/* ---- beginning and end ---- */

static const char *const level_names[] = {[ABI_SINGLE] = "MPI_THREAD_SINGLE",
                                          [ABI_FUNNELED] = "MPI_THREAD_FUNNELED",
                                          [ABI_SERIALIZED] = "MPI_THREAD_SERIALIZED",
                                          [ABI_MULTIPLE] = "MPI_THREAD_MULTIPLE"};

/* The level in the hint; without a hint all threads may call. */
static enum mr_err wanted_level(MPI_Info info, enum abi_thread_level *level)
{
    struct mr_info *i = NULL;
    enum mr_err err = info == MPI_INFO_NULL ? MR_SUCCESS : api_info(info, &i);
    const char *name = i ? mr_info_find(i, "thread_level") : NULL;
    *level = ABI_MULTIPLE;
    for (int l = 0; name && l < ABI_THREAD_LEVELS; l++)
        if (strcmp(name, level_names[l]) == 0)
            *level = (enum abi_thread_level)l;
    return err;
}

/* The handler is called for errors of the other arguments. */
static enum mr_err init_args(MPI_Info info, MPI_Errhandler errhandler, const MPI_Session *session,
                             enum abi_thread_level *level, struct mr_errhandler **h)
{
    bool any = api_enter_any();
    enum mr_err err = api_errhandler_for(errhandler, MR_ERRHANDLER_SESSION, h);
    if (err)
        *h = NULL;
    else
        mr_errhandler_get(*h);
    if (!err)
        err = session ? wanted_level(info, level) : api_null("session");
    api_leave_any(any);
    return err;
}

static enum mr_err new_session(enum abi_thread_level level, struct mr_errhandler *h, MPI_Session *handle)
{
    struct mr_session *s = mr_session_new();
    const int n = s ? api_handle_new(ABI_SESSION, s) : 0;
    if (!n) {
        mr_session_put(s);
        *handle = MPI_SESSION_NULL;
        return mr_fail(MR_ERR_NO_MEM, "no memory for a session");
    }
    *handle = abi_handle(MPI_Session, n);
    s->handle = n;
    s->thread_level = (int)level;
    s->errhandler = mr_errhandler_get(h);
    return MR_SUCCESS;
}

MPI_FN(int, Session_init, (MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session))
{
    struct mr_errhandler *h = NULL;
    enum abi_thread_level level = ABI_MULTIPLE;
    if (session)
        *session = MPI_SESSION_NULL;
    enum mr_err err = init_args(info, errhandler, session, &level, &h);
    if (!err && !(err = api_library_use(level))) {
        api_lock();
        err = new_session(level, h, session);
        api_unlock();
        if (err)
            api_library_leave(false);
    }
    int code = MPI_SUCCESS;
    if (err) {
        api_lock();
        code = h ? api_fail_with(h, NULL, err, __func__ + 1) : api_fail(NULL, err, __func__ + 1);
    }
    bool any = api_enter_any();
    if (h)
        mr_errhandler_put(h);
    api_leave_any(any);
    return code;
}

MPI_FN(int, Session_finalize, (MPI_Session * session))
{
    struct mr_session *s = NULL;
    API_ENTER();
    NOT_NULL(session);
    CHECK(api_session(*session, &s));
    mr_buffer_detach(&s->buffer);
    api_handle_free(ABI_SESSION, abi_number(*session));
    *session = MPI_SESSION_NULL;
    s->handle = 0;
    mr_errhandler_put(s->errhandler);
    s->errhandler = NULL;
    mr_session_put(s); /* its groups and communicators stay */
    api_unlock();
    api_library_leave(false);
    return MPI_SUCCESS;
    API_LEAVE_SESSION(s);
}

MPI_FN(int, Session_get_info, (MPI_Session session, MPI_Info *info_used))
{
    struct mr_session *s = NULL;
    API_ENTER();
    CHECK(api_session(session, &s));
    NOT_NULL(info_used);
    struct mr_info *i = mr_info_new();
    if (i && !mr_info_set(i, "thread_level", level_names[s->thread_level])) {
        mr_info_put(i);
        i = NULL;
    }
    err = api_new_info(i, info_used);
    API_LEAVE_SESSION(s);
}

/* ---- process sets ---- */

static const char *const psets[] = {"mpi://WORLD", "mpi://SELF"};
enum { NUM_PSETS = sizeof(psets) / sizeof(psets[0]) };

struct mr_group *api_pset(const char *name)
{
    if (strcasecmp(name, psets[0]) == 0)
        return mr_comm_world->group;
    return strcasecmp(name, psets[1]) == 0 ? mr_comm_self->group : NULL;
}

static enum mr_err pset_group(const char *name, struct mr_group **g)
{
    if (!name)
        return api_null("pset_name");
    *g = api_pset(name);
    return *g ? MR_SUCCESS : mr_fail(MR_ERR_ARG, "there is no process set \"%s\"", name);
}

MPI_FN(int, Session_get_num_psets, (MPI_Session session, MPI_Info info, int *npset_names))
{
    struct mr_session *s = NULL;
    API_ENTER();
    CHECK(api_session(session, &s));
    CHECK(api_hints(info));
    NOT_NULL(npset_names);
    *npset_names = NUM_PSETS;
    API_LEAVE_SESSION(s);
}

MPI_FN(int, Session_get_nth_pset, (MPI_Session session, MPI_Info info, int n, int *pset_len, char *pset_name))
{
    struct mr_session *s = NULL;
    int len;
    API_ENTER();
    CHECK(api_session(session, &s));
    CHECK(api_hints(info));
    NOT_NULL(pset_len);
    if (n < 0 || n >= NUM_PSETS)
        CHECK(mr_fail(MR_ERR_ARG, "n is %d, there are %d process sets", n, NUM_PSETS));
    if (*pset_len > 0) {
        NOT_NULL(pset_name);
        api_string(pset_name, (size_t)*pset_len, psets[n], &len);
    }
    *pset_len = (int)strlen(psets[n]) + 1;
    API_LEAVE_SESSION(s);
}

MPI_FN(int, Session_get_pset_info, (MPI_Session session, const char *pset_name, MPI_Info *info))
{
    struct mr_session *s = NULL;
    struct mr_group *g = NULL;
    char size[16];
    API_ENTER();
    CHECK(api_session(session, &s));
    NOT_NULL(info);
    CHECK(pset_group(pset_name, &g));
    snprintf(size, sizeof(size), "%d", g->size);
    struct mr_info *i = mr_info_new();
    if (i && !mr_info_set(i, "mpi_size", size)) {
        mr_info_put(i);
        i = NULL;
    }
    err = api_new_info(i, info);
    API_LEAVE_SESSION(s);
}

MPI_FN(int, Group_from_session_pset, (MPI_Session session, const char *pset_name, MPI_Group *newgroup))
{
    struct mr_session *s = NULL;
    struct mr_group *g = NULL;
    API_ENTER();
    NOT_NULL(newgroup);
    *newgroup = MPI_GROUP_NULL;
    CHECK(api_session(session, &s));
    CHECK(pset_group(pset_name, &g));
    err = api_new_group(mr_session_group(s, g), newgroup);
    API_LEAVE_SESSION(s);
}

/* ---- communicators from groups ---- */

/* The name by which the members meet: without it no member can hear of another. */
static enum mr_err check_stringtag(const char *stringtag)
{
    if (!stringtag)
        return api_null("stringtag");
    if (strlen(stringtag) > ABI_STRINGTAG_MOST)
        return mr_fail(MR_ERR_ARG, "stringtag has %zu characters: at most %d are allowed", strlen(stringtag),
                       ABI_STRINGTAG_MOST);
    return MR_SUCCESS;
}

/* Checked first: the handler is called for errors of the other arguments. */
static enum mr_err creation_handler(MPI_Errhandler errhandler, struct mr_errhandler **h)
{
    enum mr_err err = api_errhandler_for(errhandler, MR_ERRHANDLER_COMM, h);
    if (err)
        *h = NULL;
    return err;
}

static enum mr_err is_member(const struct mr_group *g, const char *name)
{
    return g->rank != MR_UNDEFINED ? MR_SUCCESS : mr_fail(MR_ERR_GROUP, "the calling process is not in %s", name);
}

static enum mr_err give_session_comm(struct mr_comm *made, MPI_Info info, struct mr_errhandler *h, MPI_Comm *newcomm)
{
    api_replace_errhandler(&made->errhandler, h);
    enum mr_err err = api_set_hints(made, info);
    if (!err)
        return api_new_comm(made, newcomm);
    mr_comm_put(made);
    return err;
}

/* The handler for the new communicator is called for errors too. Returns the function's result. */
static int end_creation(struct mr_errhandler *h, enum mr_err err, const char *function)
{
    if (err)
        return h ? api_fail_with(h, NULL, err, function) : api_fail(NULL, err, function);
    api_unlock();
    return MPI_SUCCESS;
}

MPI_FN(int, Comm_create_from_group,
       (MPI_Group group, const char *stringtag, MPI_Info info, MPI_Errhandler errhandler, MPI_Comm *newcomm))
{
    struct mr_group *g;
    struct mr_comm *made;
    struct mr_errhandler *h = NULL;
    API_ENTER();
    enum mr_err wrong = creation_handler(errhandler, &h);
    ALSO_NOT_NULL(newcomm);
    if (newcomm)
        *newcomm = MPI_COMM_NULL;
    ALSO(api_hints(info));
    CHECK(api_group(group, &g));
    if (!g->size) {
        err = wrong;
        goto out;
    }
    CHECK(is_member(g, "group"));
    CHECK(check_stringtag(stringtag));
    CHECK(mr_comm_create_from_group(g, stringtag, wrong, &made));
    CHECK(give_session_comm(made, info, h, newcomm));
out:
    return end_creation(h, err, __func__ + 1);
}

/* Only the leader must know the other group. *remote is NULL after an error. */
static enum mr_err remote_args(MPI_Group remote_group, int remote_leader, struct mr_group **remote)
{
    enum mr_err err = api_group(remote_group, remote);
    if (!err && (remote_leader < 0 || remote_leader >= (*remote)->size))
        err = mr_fail(MR_ERR_RANK, "remote_leader is %d, the remote group has ranks 0 to %d", remote_leader,
                      (*remote)->size - 1);
    if (err)
        *remote = NULL;
    return err;
}

/* Other members than the leader may give anything. */
static bool is_empty(MPI_Group h)
{
    const struct mr_group *g = h == MPI_GROUP_EMPTY ? &mr_group_empty : api_find(ABI_GROUP, abi_number(h));
    return g && !g->size;
}

MPI_FN(int, Intercomm_create_from_groups,
       (MPI_Group local_group, int local_leader, MPI_Group remote_group, int remote_leader, const char *stringtag,
        MPI_Info info, MPI_Errhandler errhandler, MPI_Comm *newintercomm))
{
    struct mr_group *local, *remote = NULL;
    struct mr_comm *made;
    struct mr_errhandler *h = NULL;
    API_ENTER();
    enum mr_err wrong = creation_handler(errhandler, &h);
    ALSO_NOT_NULL(newintercomm);
    if (newintercomm)
        *newintercomm = MPI_COMM_NULL;
    ALSO(api_hints(info));
    CHECK(api_group(local_group, &local));
    if (!local->size || is_empty(remote_group)) { /* a local operation (MPI-4.1 section 7.6.2) */
        err = wrong;
        goto out;
    }
    CHECK(is_member(local, "local_group"));
    CHECK(check_stringtag(stringtag));
    if (local->rank == local_leader) { /* the leader may have errors of its own, and tells the other group */
        enum mr_err unknown = remote_args(remote_group, remote_leader, &remote);
        ALSO(unknown);
    }
    if (local_leader < 0 || local_leader >= local->size)
        ALSO(mr_fail(MR_ERR_RANK, "local_leader is %d, the local group has ranks 0 to %d", local_leader,
                     local->size - 1));
    CHECK(mr_intercomm_create_from_groups(local, local_leader, remote, remote_leader, stringtag, wrong, &made));
    err = give_session_comm(made, info, h, newintercomm);
out:
    return end_creation(h, err, __func__ + 1);
}

/* ---- error handlers ---- */

MPI_FN(int, Session_set_errhandler, (MPI_Session session, MPI_Errhandler errhandler))
{
    struct mr_session *s = NULL;
    struct mr_errhandler *h;
    API_ENTER();
    CHECK(api_session(session, &s));
    CHECK(api_errhandler_for(errhandler, MR_ERRHANDLER_SESSION, &h));
    api_replace_errhandler(&s->errhandler, h);
    API_LEAVE_SESSION(s);
}

MPI_FN(int, Session_get_errhandler, (MPI_Session session, MPI_Errhandler *errhandler))
{
    struct mr_session *s = NULL;
    API_ENTER();
    CHECK(api_session(session, &s));
    NOT_NULL(errhandler);
    err = api_new_errhandler(mr_errhandler_get(s->errhandler), errhandler);
    API_LEAVE_SESSION(s);
}

MPI_FN(int, Session_call_errhandler, (MPI_Session session, int errorcode))
{
    struct mr_session *s = NULL;
    API_ENTER();
    CHECK(api_session(session, &s));
    return api_call_errhandler(s->errhandler, s, errorcode, __func__ + 1);
    API_LEAVE_SESSION(s);
}
