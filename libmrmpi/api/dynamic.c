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

#include "libmrmpi/coll/coll.h"
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

/* ---- names of services ---- */

static enum mr_err name_error(int error, enum mr_err usual, const char *name)
{
    switch (error) {
    case 0:
        return MR_SUCCESS;
    case -EOPNOTSUPP:
        return mr_fail(MR_ERR_UNSUPPORTED_OPERATION, "this launcher keeps no names; mrrun does");
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
    API_ENTER();
    NOT_NULL(service_name);
    CHECK(api_hints(info));
    NOT_NULL(port_name);
    err = name_error(mr_launch_publish_name(service_name, port_name), MR_ERR_SERVICE, service_name);
    API_LEAVE(NULL);
}

MPI_FN(int, Unpublish_name, (const char *service_name, MPI_Info info, const char *port_name))
{
    API_ENTER();
    NOT_NULL(service_name);
    CHECK(api_hints(info));
    NOT_NULL(port_name);
    err = name_error(mr_launch_unpublish_name(service_name), MR_ERR_SERVICE, service_name);
    API_LEAVE(NULL);
}

MPI_FN(int, Lookup_name, (const char *service_name, MPI_Info info, char *port_name))
{
    API_ENTER();
    NOT_NULL(service_name);
    CHECK(api_hints(info));
    NOT_NULL(port_name);
    err = name_error(mr_launch_look_up_name(service_name, port_name, MPI_MAX_PORT_NAME), MR_ERR_NAME, service_name);
    API_LEAVE(NULL);
}
