/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dynamic processes (MPI-4.1 chapter 11): ports, accept, connect and join, names of services, jobs started by a
 * program.
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

/* ---- processes started by a program (section 11.8) ---- */

/* A command line for mrrun. */
struct command_line {
    char **word; /* [num], NULL behind */
    int num, room;
    bool no_memory;
};

static void free_words(struct command_line *l)
{
    for (int i = 0; i < l->num; i++)
        free(l->word[i]);
    free(l->word);
}

static void add_word(struct command_line *l, const char *text)
{
    if (l->num + 1 >= l->room) {
        int room = 2 * l->room + 16;
        char **more = realloc(l->word, (size_t)room * sizeof(*more));
        if (!more) {
            l->no_memory = true;
            return;
        }
        l->word = more;
        l->room = room;
    }
    l->word[l->num] = strdup(text);
    if (l->word[l->num])
        l->word[++l->num] = NULL;
    else
        l->no_memory = true;
}

static void add_option(struct command_line *l, const char *option, const char *value)
{
    if (!value)
        return;
    add_word(l, option);
    add_word(l, value);
}

/* The program in the first of the directories that has it, else as it is. */
static void add_program(struct command_line *l, const char *command, const char *dirs)
{
    char path[4096];
    for (const char *dir = dirs; dir && *dir && *command != '/';) {
        size_t len = strcspn(dir, ": ");
        int n = snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, command);
        if (len && n < (int)sizeof(path) && !access(path, X_OK)) {
            add_word(l, path);
            return;
        }
        dir += len + strspn(dir + len, ": ");
    }
    add_word(l, command);
}

/* One of the programs. In a word ":" alone mrrun would see the next program. */
static enum mr_err add_part(struct command_line *l, const char *command, char **argv, int maxprocs, MPI_Info info)
{
    struct mr_info *hints = NULL;
    char number[16];
    enum mr_err err = info == MPI_INFO_NULL ? MR_SUCCESS : api_info(info, &hints);
    if (err)
        return err;
    if (!command)
        return api_null("command");
    if (maxprocs < 1)
        return mr_fail(MR_ERR_ARG, "maxprocs is %d", maxprocs);
    if (!*command || *command == '-')
        return mr_fail(MR_ERR_SPAWN, "\"%s\" is no program", command);
    if (l->num > 1)
        add_word(l, ":");
    snprintf(number, sizeof(number), "%d", maxprocs);
    add_option(l, "-n", number);
    add_option(l, "-wdir", hints ? mr_info_find(hints, "wdir") : NULL);
    add_option(l, "--host", hints ? mr_info_find(hints, "host") : NULL);
    add_option(l, "--hostfile", hints ? mr_info_find(hints, "hostfile") : NULL);
    add_program(l, command, hints ? mr_info_find(hints, "path") : NULL);
    for (char **a = argv; a && *a; a++) {
        if (!strcmp(*a, ":"))
            return mr_fail(MR_ERR_SPAWN, "an argument of a program may not be \":\"");
        add_word(l, *a);
    }
    return MR_SUCCESS;
}

static enum mr_err list_words(struct command_line *l, int count, char **commands, char ***argvs, const int *maxprocs,
                              const MPI_Info *infos)
{
    enum mr_err err = MR_SUCCESS;
    if (count < 1)
        return mr_fail(MR_ERR_COUNT, "count is %d", count);
    if (!commands || !maxprocs || !infos)
        return api_null(!commands ? "array_of_commands" : !maxprocs ? "array_of_maxprocs" : "array_of_info");
    add_word(l, "mrrun");
    for (int i = 0; i < count && !err; i++)
        err = add_part(l, commands[i], argvs ? argvs[i] : NULL, maxprocs[i], infos[i]);
    if (!err && l->no_memory)
        err = mr_fail(MR_ERR_NO_MEM, "no memory for a command line");
    return err;
}

/* All or nothing: mrrun starts all processes, or none stays. */
static void tell_codes(int *codes, int n, int code)
{
    for (int i = 0; codes && i < n; i++)
        codes[i] = code;
}

static enum mr_err spawn(struct mr_comm *c, int count, char **commands, char ***argvs, const int *maxprocs,
                         const MPI_Info *infos, int root, MPI_Comm *intercomm, int *codes)
{
    struct command_line l = {0};
    enum mr_err wrong = MR_SUCCESS, err;
    struct mr_comm *made;
    int wanted = 0;

    if (root < 0 || root >= c->size)
        wrong = mr_fail(MR_ERR_ROOT, "root is %d, the communicator has ranks 0 to %d", root, c->size - 1);
    if (c->rank == root)
        ALSO(list_words(&l, count, commands, argvs, maxprocs, infos));
    ALSO_NOT_NULL(intercomm);
    err = mr_comm_spawn(c, l.word, root, wrong, &made);
    free_words(&l);
    if (intercomm)
        *intercomm = MPI_COMM_NULL;
    if (!err) {
        tell_codes(codes, made->num_peers, MPI_SUCCESS);
        return api_new_comm(made, intercomm);
    }
    for (int i = 0; c->rank == root && !wrong && i < count; i++)
        wanted += maxprocs[i];
    tell_codes(codes, wanted, MPI_ERR_SPAWN);
    return err;
}

MPI_FN(int, Comm_spawn,
       (const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *intercomm,
        int array_of_errcodes[]))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    CHECK(api_intra(c));
    err = spawn(c, 1, (char **)&command, &argv, &maxprocs, &info, root, intercomm, array_of_errcodes);
    API_LEAVE(c);
}

MPI_FN(int, Comm_spawn_multiple,
       (int count, char *array_of_commands[], char **array_of_argv[], const int array_of_maxprocs[],
        const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm *intercomm, int array_of_errcodes[]))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    CHECK(api_intra(c));
    err = spawn(c, count, array_of_commands, array_of_argv, array_of_maxprocs, array_of_info, root, intercomm,
                array_of_errcodes);
    API_LEAVE(c);
}

MPI_FN(int, Comm_get_parent, (MPI_Comm * parent))
{
    API_ENTER();
    NOT_NULL(parent);
    *parent = MPI_COMM_NULL;
    if (mr_comm_parent && !mr_comm_parent->handle)
        CHECK(api_new_comm(mr_comm_get(mr_comm_parent), parent));
    if (mr_comm_parent)
        *parent = abi_handle(MPI_Comm, mr_comm_parent->handle);
    API_LEAVE(NULL);
}

/* The program need not free it. */
void api_parent_finalize(void)
{
    if (mr_comm_parent && mr_comm_parent->handle) {
        api_handle_free(ABI_COMM, mr_comm_parent->handle);
        mr_comm_parent->handle = 0;
        mr_comm_put(mr_comm_parent);
    }
    mr_comm_forget_parent();
}
