/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dynamic processes (MPI-4.1 chapter 11): ports, accept, connect and join, names of services. spawn.c starts processes.
 */
#include "libmrmpi/api/life.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/conn/conn.h"
#include "libmrmpi/launch/launch.h"

/* ---- ports ---- */

MPI_FN(int, Open_port, (MPI_Info info, char *port_name))
{
    API_ENTER();
    CHECK(api_hints(info));
    NOT_NULL(port_name);
    err = mr_port_open(port_name, MPI_MAX_PORT_NAME);
    API_LEAVE(NULL);
}

MPI_FN(int, Close_port, (const char *port_name))
{
    API_ENTER();
    NOT_NULL(port_name);
    err = mr_port_close(port_name);
    API_LEAVE(NULL);
}

/* ---- two groups find each other ---- */

typedef enum mr_err meet_fn(struct mr_comm *c, const char *port, int root, enum mr_err wrong, struct mr_comm **out);

/* port_name and info matter at the root only. */
static enum mr_err meet(meet_fn *how, struct mr_comm *c, const char *port_name, MPI_Info info, int root,
                        MPI_Comm *newcomm)
{
    enum mr_err wrong = MR_SUCCESS, err;
    struct mr_comm *made;

    if (root < 0 || root >= c->size)
        wrong = mr_fail(MR_ERR_ROOT, "root is %d, the communicator has ranks 0 to %d", root, c->size - 1);
    if (c->rank == root) {
        ALSO_NOT_NULL(port_name);
        ALSO(api_hints(info));
    }
    ALSO_NOT_NULL(newcomm);
    err = how(c, port_name, root, wrong, &made);
    return err ? err : api_new_comm(made, newcomm);
}

MPI_FN(int, Comm_accept, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    CHECK(api_intra(c));
    err = meet(mr_comm_accept, c, port_name, info, root, newcomm);
    API_LEAVE(c);
}

MPI_FN(int, Comm_connect, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    CHECK(api_intra(c));
    err = meet(mr_comm_connect, c, port_name, info, root, newcomm);
    API_LEAVE(c);
}

MPI_FN(int, Comm_join, (int fd, MPI_Comm *intercomm))
{
    struct mr_comm *made;
    API_ENTER();
    NOT_NULL(intercomm);
    *intercomm = MPI_COMM_NULL;
    CHECK(mr_comm_join(fd, &made));
    err = api_new_comm(made, intercomm);
    API_LEAVE(mr_comm_self);
}

/*
 * ---- names of services ----
 *
 * The launcher keeps names for the processes under it, fabricd for all processes of the user on the host. Info key
 * scope: "job" or "user", one of them only. Without the key a name is published at the launcher, if it keeps names, and
 * at fabricd, if it is there and has no such name of another job yet; a look-up asks the launcher first.
 */

enum scope { SCOPE_ANY, SCOPE_JOB, SCOPE_USER };

static enum mr_err read_scope(MPI_Info info, enum scope *out)
{
    struct mr_info *hints = NULL;
    const char *value = NULL;
    enum mr_err err = info == MPI_INFO_NULL ? MR_SUCCESS : api_info(info, &hints);
    if (!err && hints)
        value = mr_info_find(hints, "scope");
    *out = value && !strcmp(value, "job") ? SCOPE_JOB : value && !strcmp(value, "user") ? SCOPE_USER : SCOPE_ANY;
    if (!err && value && *out == SCOPE_ANY)
        err = mr_fail(MR_ERR_INFO_VALUE, "scope is \"%.60s\": it must be job or user", value);
    return err;
}

static int publish_name(const char *name, const char *port, enum scope scope)
{
    int err = scope == SCOPE_USER ? -EOPNOTSUPP : mr_launch_publish_name(name, port);
    if (scope == SCOPE_JOB || (err && err != -EOPNOTSUPP))
        return err;
    int user = mr_fabric_publish_name(name, port);
    return err ? user : 0;
}

static int withdraw_name(const char *name, enum scope scope)
{
    int job = scope == SCOPE_USER ? -ENOENT : mr_launch_unpublish_name(name);
    if (scope == SCOPE_JOB || (job && job != -ENOENT && job != -EOPNOTSUPP))
        return job;
    int user = mr_fabric_withdraw_name(name);
    return scope == SCOPE_ANY && (!job || (job == -ENOENT && user == -ENOTCONN)) ? job : user;
}

static int find_name(const char *name, char *port, enum scope scope)
{
    int job = scope == SCOPE_USER ? -ENOENT : mr_launch_look_up_name(name, port, MPI_MAX_PORT_NAME);
    if (scope == SCOPE_JOB || (job != -ENOENT && job != -EOPNOTSUPP))
        return job;
    return mr_fabric_find_name(name, port, MPI_MAX_PORT_NAME);
}

static enum mr_err name_error(int error, enum mr_err usual, const char *name)
{
    switch (error) {
    case 0:
        return MR_SUCCESS;
    case -EOPNOTSUPP:
        return mr_fail(MR_ERR_UNSUPPORTED_OPERATION, "this launcher keeps no names; mrrun does");
    case -ENOTCONN:
        return mr_fail(usual, "\"%s\": the launcher keeps no such name, and no fabricd answers at %s", name,
                       mr_config.fabricd_socket);
    case -ENOSPC:
        return mr_fail(usual, "\"%s\": fabricd keeps as many names of this user as it may", name);
    case -EINVAL:
        return mr_fail(usual, "\"%s\" has characters that fabricd does not take", name);
    case -ENOMEM:
        return mr_fail(MR_ERR_NO_MEM, "no memory for a name");
    case -ENOENT:
        return mr_fail(usual, "\"%s\" is not published", name);
    case -EEXIST:
        return mr_fail(usual, "\"%s\" is published already", name);
    case -ENAMETOOLONG:
        return mr_fail(usual, "the name is too long: \"%.60s...\"", name);
    default:
        return mr_fail(MR_ERR_OTHER, "\"%s\": %s", name, mr_launch_why(error));
    }
}

MPI_FN(int, Publish_name, (const char *service_name, MPI_Info info, const char *port_name))
{
    enum scope scope;
    API_ENTER();
    NOT_NULL(service_name);
    CHECK(api_hints(info));
    NOT_NULL(port_name);
    CHECK(read_scope(info, &scope));
    err = name_error(publish_name(service_name, port_name, scope), MR_ERR_SERVICE, service_name);
    API_LEAVE(NULL);
}

MPI_FN(int, Unpublish_name, (const char *service_name, MPI_Info info, const char *port_name))
{
    enum scope scope;
    API_ENTER();
    NOT_NULL(service_name);
    CHECK(api_hints(info));
    NOT_NULL(port_name);
    CHECK(read_scope(info, &scope));
    err = name_error(withdraw_name(service_name, scope), MR_ERR_SERVICE, service_name);
    API_LEAVE(NULL);
}

MPI_FN(int, Lookup_name, (const char *service_name, MPI_Info info, char *port_name))
{
    enum scope scope;
    API_ENTER();
    NOT_NULL(service_name);
    CHECK(api_hints(info));
    NOT_NULL(port_name);
    CHECK(read_scope(info, &scope));
    err = name_error(find_name(service_name, port_name, scope), MR_ERR_NAME, service_name);
    API_LEAVE(NULL);
}
