/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes started by a program (MPI-4.1 section 11.8). */
#include "libmrmpi/api/life.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/coll/coll.h"
#include "libmrmpi/launch/launch.h"

/* ---- what is to be started ---- */

struct request {
    struct mr_launch_part *part; /* [count] */
    char **text;                 /* [count] of the file that the part's info names; parts point into it. NULL: none */
    int count;
    enum mr_err cannot; /* a file cannot be read */
};

static void free_request(struct request *r)
{
    for (int i = 0; r->text && i < r->count; i++)
        free(r->text[i]);
    free(r->text);
    free(r->part);
}

/* Keys of the standard, and of Open MPI and MPICH. Others are ignored. */
static const struct {
    const char *key;
    size_t offset;
} keys[] = {
#define KEY(key, field)                                                                                                \
    {                                                                                                                  \
        key, offsetof(struct mr_launch_part, field)                                                                    \
    }
    KEY("wdir", wdir),  KEY("path", path),         KEY("host", host),
    KEY("hosts", host), KEY("hostfile", hostfile), KEY("add-host", add_host),
    KEY("env", env),    KEY("soft", soft),         KEY("add-hostfile", add_hostfile),
    KEY("arch", arch),
#undef KEY
};
enum { NUM_KEYS = sizeof(keys) / sizeof(keys[0]) };

static const char **field_of_key(struct mr_launch_part *p, int i)
{
    return (const char **)((char *)p + keys[i].offset);
}

static void cut_blanks(char **text)
{
    char *end;

    *text += strspn(*text, " \t\r");
    end = *text + strlen(*text);
    while (end > *text && strchr(" \t\r", end[-1]))
        *--end = '\0';
}

/* KEY = VALUE; "#" begins a comment line. What the info itself says goes first. */
static void take_line(struct mr_launch_part *p, char *line)
{
    char *value = strchr(line, '=');

    if (!value)
        return;
    *value++ = '\0';
    cut_blanks(&line);
    cut_blanks(&value);
    for (int i = 0; i < NUM_KEYS && *line != '#'; i++)
        if (!strcmp(line, keys[i].key) && !*field_of_key(p, i))
            *field_of_key(p, i) = value;
}

static enum mr_err take_file(struct mr_launch_part *p, const char *name, char **text)
{
    FILE *in = fopen(name, "re");
    size_t size = 0;
    ssize_t len = in ? getdelim(text, &size, '\0', in) : -1;
    bool failed = !in || (len < 0 && !feof(in));
    char *rest, *line = len > 0 ? strtok_r(*text, "\n", &rest) : NULL;

    if (failed)
        return mr_fail(MR_ERR_SPAWN, "the info key file: cannot read \"%.100s\": %s", name, strerror(errno));
    fclose(in);
    for (; line; line = strtok_r(NULL, "\n", &rest))
        take_line(p, line);
    return MR_SUCCESS;
}

static enum mr_err take_info(struct mr_launch_part *p, const struct mr_info *info, char **text)
{
    const char *file = mr_info_find(info, "file");

    for (int i = 0; i < NUM_KEYS; i++)
        if (!*field_of_key(p, i))
            *field_of_key(p, i) = mr_info_find(info, keys[i].key);
    return file ? take_file(p, file, text) : MR_SUCCESS;
}

static enum mr_err take_spawn_part(struct request *r, int i, const char *command, char **argv, int maxprocs,
                                   MPI_Info info)
{
    struct mr_info *hints = NULL;
    enum mr_err err = info == MPI_INFO_NULL ? MR_SUCCESS : api_info(info, &hints);

    if (err)
        return err;
    if (!command)
        return api_null("command");
    if (maxprocs < 1)
        return mr_fail(MR_ERR_ARG, "maxprocs is %d", maxprocs);
    r->part[i] = (struct mr_launch_part){.program = command, .argv = argv, .ranks = maxprocs};
    if (hints && !r->cannot)
        r->cannot = take_info(&r->part[i], hints, &r->text[i]);
    return MR_SUCCESS;
}

static enum mr_err take_request(struct request *r, int count, char **commands, char ***argvs, const int *maxprocs,
                                const MPI_Info *infos)
{
    enum mr_err err = MR_SUCCESS;

    if (count < 1)
        return mr_fail(MR_ERR_COUNT, "count is %d", count);
    if (!commands || !maxprocs || !infos)
        return api_null(!commands ? "array_of_commands" : !maxprocs ? "array_of_maxprocs" : "array_of_info");
    r->part = calloc((size_t)count, sizeof(*r->part));
    r->text = calloc((size_t)count, sizeof(*r->text));
    if (!r->part || !r->text)
        return mr_fail(MR_ERR_NO_MEM, "no memory for the processes to be started");
    r->count = count;
    for (int i = 0; i < count && !err; i++)
        err = take_spawn_part(r, i, commands[i], argvs ? argvs[i] : NULL, maxprocs[i], infos[i]);
    return err;
}

/* A code for each process that was wanted, part by part, at every process of the communicator. */
static void tell_codes(int *codes, const struct mr_spawned *s)
{
    for (int i = 0; codes && i < s->parts; i++)
        for (int k = 0; k < s->part[i].wanted; k++)
            *codes++ = k < s->part[i].started ? MPI_SUCCESS : MPI_ERR_SPAWN;
}

static enum mr_err spawn(struct mr_comm *c, int count, char **commands, char ***argvs, const int *maxprocs,
                         const MPI_Info *infos, int root, MPI_Comm *intercomm, int *codes)
{
    struct request r = {0};
    enum mr_err wrong = MR_SUCCESS, err;
    struct mr_spawned spawned;
    struct mr_comm *made;

    if (root < 0 || root >= c->size)
        wrong = mr_fail(MR_ERR_ROOT, "root is %d, the communicator has ranks 0 to %d", root, c->size - 1);
    if (c->rank == root)
        ALSO(take_request(&r, count, commands, argvs, maxprocs, infos));
    ALSO_NOT_NULL(intercomm);
    err = mr_comm_spawn(c, &(struct mr_spawn){r.part, r.count, r.cannot}, root, wrong, &spawned, &made);
    free_request(&r);
    tell_codes(codes, &spawned);
    free(spawned.part);
    if (intercomm)
        *intercomm = MPI_COMM_NULL;
    return err ? err : api_new_comm(made, intercomm);
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
