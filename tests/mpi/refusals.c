/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process calls a collective function with a wrong argument, the others with right arguments. All calls fail, with
 * the class of this error, and their objects stay usable: no process waits for a process that has left.
 */
#include "mt.h"

#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

static MPI_Comm comm, inter, cart, node;
static MPI_Group world;
static MPI_File file;
static int leader[2], side; /* of the two halves: their leaders in comm, and our side */
static MPI_Comm half;
static char name[64];

static int class_of(int code)
{
    int c;
    MPI_Error_class(code, &c);
    return c;
}

/* A result of the right call shows that a rank did not hear of the wrong call. */
static MPI_Comm made;
static MPI_Win win;
static MPI_File opened;
static char *base;

#define CASE(name_, call)                                                                                              \
    static int name_(bool bad)                                                                                         \
    {                                                                                                                  \
        return call;                                                                                                   \
    }
#define NOT_INFO ((MPI_Info)0x1234)

CASE(dup_null, MPI_Comm_dup(comm, bad ? NULL : &made))
CASE(dup_info, MPI_Comm_dup_with_info(comm, bad ? NOT_INFO : MPI_INFO_NULL, &made))
CASE(dup_inter, MPI_Comm_dup(inter, bad ? NULL : &made))
CASE(split_color, MPI_Comm_split(comm, bad ? -5 : rank % 2, 0, &made))
CASE(split_null, MPI_Comm_split(comm, 0, 0, bad ? NULL : &made))
CASE(split_inter, MPI_Comm_split(inter, bad ? -5 : 0, 0, &made))
CASE(split_type, MPI_Comm_split_type(comm, bad ? 77777 : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made))
CASE(split_type_info, MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_UNGUIDED, 0, bad ? NOT_INFO : MPI_INFO_NULL, &made))
CASE(split_type_null, MPI_Comm_split_type(comm, MPI_UNDEFINED, 0, MPI_INFO_NULL, bad ? NULL : &made))
CASE(create_group_null, MPI_Comm_create(comm, bad ? MPI_GROUP_NULL : world, &made))
CASE(create_null, MPI_Comm_create(comm, world, bad ? NULL : &made))
CASE(create_inter, MPI_Comm_create(inter, bad ? MPI_GROUP_NULL : MPI_GROUP_EMPTY, &made))
CASE(of_group_null, MPI_Comm_create_group(comm, world, 4, bad ? NULL : &made))
CASE(inter_null, MPI_Intercomm_create(half, 0, comm, leader[!side], 3, bad ? NULL : &made))
CASE(inter_leader, MPI_Intercomm_create(half, bad &&rank != leader[side] ? 99 : 0, comm, leader[!side], 3,
                                        bad &&rank == leader[side] ? NULL : &made))
CASE(inter_tag, MPI_Intercomm_create(half, 0, comm, leader[!side], bad &&rank != leader[side] ? -3 : 3,
                                     bad &&rank == leader[side] ? NULL : &made))
CASE(merge_null, MPI_Intercomm_merge(inter, side, bad ? NULL : &made))
CASE(cart_dims, MPI_Cart_create(comm, 1, (int[]){bad ? -1 : size}, (int[]){0}, 0, &made))
CASE(cart_many, MPI_Cart_create(comm, 1, (int[]){bad ? size + 1 : size}, (int[]){0}, 0, &made))
CASE(cart_periods, MPI_Cart_create(comm, 1, &size, bad ? NULL : (int[]){0}, 0, &made))
CASE(cart_sub, MPI_Cart_sub(cart, bad ? NULL : (int[]){1}, &made))
CASE(graph_edges, MPI_Graph_create(comm, 1, (int[]){1}, (int[]){bad ? 7 : 0}, 0, &made))
CASE(dist_adjacent, MPI_Dist_graph_create_adjacent(comm, 1, (int[]){bad ? -2 : 0}, MPI_UNWEIGHTED, 0, NULL,
                                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made))
CASE(dist_edges, MPI_Dist_graph_create(comm, 1, &rank, (int[]){1}, (int[]){bad ? size : 0}, MPI_UNWEIGHTED,
                                       MPI_INFO_NULL, 0, &made))
CASE(dist_info, MPI_Dist_graph_create(comm, 1, &rank, (int[]){1}, (int[]){0}, MPI_UNWEIGHTED,
                                      bad ? NOT_INFO : MPI_INFO_NULL, 0, &made))
CASE(from_null, MPI_Comm_create_from_group(world, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, bad ? NULL : &made))
CASE(from_info, MPI_Comm_create_from_group(world, "all", bad ? NOT_INFO : MPI_INFO_NULL, MPI_ERRORS_RETURN, &made))
CASE(from_handler,
     MPI_Comm_create_from_group(world, "all", MPI_INFO_NULL, bad ? MPI_ERRHANDLER_NULL : MPI_ERRORS_RETURN, &made))
static int from_groups(bool bad)
{
    MPI_Group ours, theirs;
    MPI_Comm_group(inter, &ours);
    MPI_Comm_remote_group(inter, &theirs);
    const int code = MPI_Intercomm_create_from_groups(ours, 0, theirs, 0, "both", bad ? NOT_INFO : MPI_INFO_NULL,
                                                      MPI_ERRORS_RETURN, &made);
    MPI_Group_free(&ours);
    MPI_Group_free(&theirs);
    return code;
}

CASE(win_size, MPI_Win_create(name, bad ? -1 : 4, 1, MPI_INFO_NULL, comm, &win))
CASE(win_unit, MPI_Win_create(name, 4, bad ? 0 : 1, MPI_INFO_NULL, comm, &win))
CASE(win_base, MPI_Win_create(bad ? NULL : name, 4, 1, MPI_INFO_NULL, comm, &win))
CASE(win_null, MPI_Win_create(name, 4, 1, MPI_INFO_NULL, comm, bad ? NULL : &win))
CASE(win_large, MPI_Win_create_c(name, 4, bad ? -2 : 1, MPI_INFO_NULL, comm, &win))
CASE(allocate_size, MPI_Win_allocate(bad ? -1 : 4, 1, MPI_INFO_NULL, comm, &base, &win))
CASE(allocate_info, MPI_Win_allocate(4, 1, bad ? NOT_INFO : MPI_INFO_NULL, comm, &base, &win))
CASE(allocate_base, MPI_Win_allocate(4, 1, MPI_INFO_NULL, comm, bad ? NULL : (void *)&base, &win))
CASE(shared_unit, MPI_Win_allocate_shared(4, bad ? -1 : 1, MPI_INFO_NULL, node, &base, &win))
CASE(dynamic_info, MPI_Win_create_dynamic(bad ? NOT_INFO : MPI_INFO_NULL, comm, &win))
CASE(dynamic_null, MPI_Win_create_dynamic(MPI_INFO_NULL, comm, bad ? NULL : &win))

#define MODE (MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE)
CASE(open_amode, MPI_File_open(comm, name, bad ? 0 : MODE, MPI_INFO_NULL, &opened))
CASE(open_name, MPI_File_open(comm, bad ? NULL : name, MODE, MPI_INFO_NULL, &opened))
CASE(open_info, MPI_File_open(comm, name, MODE, bad ? NOT_INFO : MPI_INFO_NULL, &opened))
CASE(open_null, MPI_File_open(comm, name, MODE, MPI_INFO_NULL, bad ? NULL : &opened))
CASE(view_disp, MPI_File_set_view(file, bad ? -1 : 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL))
CASE(view_etype, MPI_File_set_view(file, 0, bad ? MPI_DATATYPE_NULL : MPI_INT, MPI_INT, "native", MPI_INFO_NULL))
CASE(view_datarep, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, bad ? "no such" : "native", MPI_INFO_NULL))
CASE(view_null, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, bad ? NULL : "native", MPI_INFO_NULL))
CASE(view_info, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", bad ? NOT_INFO : MPI_INFO_NULL))
CASE(hints, MPI_File_set_info(file, bad ? NOT_INFO : MPI_INFO_NULL))
CASE(set_size, MPI_File_set_size(file, bad ? -1 : 0))
CASE(preallocate, MPI_File_preallocate(file, bad ? -1 : 0))
CASE(seek_shared, MPI_File_seek_shared(file, 0, bad ? 99 : MPI_SEEK_SET))
CASE(read_offset, MPI_File_read_at_all(file, bad ? -1 : 0, &(int){0}, 1, MPI_INT, MPI_STATUS_IGNORE))
CASE(read_type, MPI_File_read_all(file, &(int){0}, 1, bad ? MPI_DATATYPE_NULL : MPI_INT, MPI_STATUS_IGNORE))
CASE(write_buffer, MPI_File_write_all(file, bad ? NULL : &(int){0}, 1, MPI_INT, MPI_STATUS_IGNORE))
CASE(ordered_count, MPI_File_write_ordered(file, &(int){0}, bad ? -1 : 0, MPI_INT, MPI_STATUS_IGNORE))
CASE(begin_count, MPI_File_read_all_begin(file, &(int){0}, bad ? -1 : 0, MPI_INT))

/* Ranks with right arguments have a request, which fails. */
static int idup(bool bad, MPI_Info info)
{
    MPI_Request q = MPI_REQUEST_NULL;
    MPI_Comm c = MPI_COMM_NULL;
    int code = info == MPI_INFO_NULL ? MPI_Comm_idup(comm, bad ? NULL : &c, &q)
                                     : MPI_Comm_idup_with_info(comm, bad ? NOT_INFO : MPI_INFO_NULL, &c, &q);
    EQ(code != MPI_SUCCESS, bad);
    if (bad)
        return code;
    code = MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Comm_free(&c);
    return code;
}
static int idup_null(bool bad)
{
    return idup(bad, MPI_INFO_NULL);
}
static int idup_info(bool bad)
{
    return idup(bad, NOT_INFO);
}

#define ROW(function, class_, ...)                                                                                     \
    {                                                                                                                  \
        .name = #function, .call = function, .class = class_, __VA_ARGS__                                              \
    }
/* two: there must be two groups; of: the communicator with a wrong argument at a member, if not comm. */
static const struct {
    const char *name;
    int (*call)(bool bad);
    int class;
    bool two;
    MPI_Comm *of;
} cases[] = {
    ROW(dup_null, MPI_ERR_ARG),
    ROW(dup_info, MPI_ERR_INFO),
    ROW(dup_inter, MPI_ERR_ARG, .two = true),
    ROW(idup_null, MPI_ERR_ARG),
    ROW(idup_info, MPI_ERR_INFO),
    ROW(split_color, MPI_ERR_ARG),
    ROW(split_null, MPI_ERR_ARG),
    ROW(split_inter, MPI_ERR_ARG, .two = true),
    ROW(split_type, MPI_ERR_ARG),
    ROW(split_type_info, MPI_ERR_INFO),
    ROW(split_type_null, MPI_ERR_ARG),
    ROW(create_group_null, MPI_ERR_GROUP),
    ROW(create_null, MPI_ERR_ARG),
    ROW(create_inter, MPI_ERR_GROUP, .two = true),
    ROW(of_group_null, MPI_ERR_ARG),
    ROW(inter_null, MPI_ERR_ARG, .two = true),
    ROW(inter_leader, 0, .two = true),
    ROW(inter_tag, 0, .two = true),
    ROW(merge_null, MPI_ERR_ARG, .two = true),
    ROW(cart_dims, MPI_ERR_DIMS),
    ROW(cart_many, MPI_ERR_DIMS),
    ROW(cart_periods, MPI_ERR_ARG),
    ROW(cart_sub, MPI_ERR_ARG),
    ROW(graph_edges, MPI_ERR_ARG),
    ROW(dist_adjacent, MPI_ERR_RANK),
    ROW(dist_edges, MPI_ERR_RANK),
    ROW(dist_info, MPI_ERR_INFO),
    ROW(from_null, MPI_ERR_ARG),
    ROW(from_info, MPI_ERR_INFO),
    ROW(from_handler, MPI_ERR_ARG),
    ROW(from_groups, MPI_ERR_INFO, .two = true),
    ROW(win_size, MPI_ERR_SIZE),
    ROW(win_unit, MPI_ERR_DISP),
    ROW(win_base, MPI_ERR_BASE),
    ROW(win_null, MPI_ERR_ARG),
    ROW(win_large, MPI_ERR_DISP),
    ROW(allocate_size, MPI_ERR_SIZE),
    ROW(allocate_info, MPI_ERR_INFO),
    ROW(allocate_base, MPI_ERR_ARG),
    ROW(shared_unit, MPI_ERR_DISP, .of = &node),
    ROW(dynamic_info, MPI_ERR_INFO),
    ROW(dynamic_null, MPI_ERR_ARG),
    ROW(open_amode, MPI_ERR_AMODE),
    ROW(open_name, MPI_ERR_ARG),
    ROW(open_info, MPI_ERR_INFO),
    ROW(open_null, MPI_ERR_ARG),
    ROW(view_disp, MPI_ERR_ARG),
    ROW(view_etype, MPI_ERR_TYPE),
    ROW(view_datarep, MPI_ERR_UNSUPPORTED_DATAREP),
    ROW(view_null, MPI_ERR_UNSUPPORTED_DATAREP),
    ROW(view_info, MPI_ERR_INFO),
    ROW(hints, MPI_ERR_INFO),
    ROW(set_size, MPI_ERR_ARG),
    ROW(preallocate, MPI_ERR_ARG),
    ROW(seek_shared, MPI_ERR_ARG),
    ROW(read_offset, MPI_ERR_ARG),
    ROW(read_type, MPI_ERR_TYPE),
    ROW(write_buffer, MPI_ERR_BUFFER),
    ROW(ordered_count, MPI_ERR_COUNT),
    ROW(begin_count, MPI_ERR_COUNT),
};

static const char *now = "";

static void too_long(int signal)
{
    (void)signal;
    fprintf(stderr, "rank %d of %d: still waiting: %s\n", rank, size, now);
    _exit(1);
}

static int total(MPI_Comm c)
{
    int one = 1, all = 0;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, c);
    return all;
}

/* Rank `who` of the communicator is wrong. */
static void run(size_t k, int who)
{
    int me = rank, n;
    if (cases[k].two && size < 2)
        return;
    if (cases[k].of) {
        MPI_Comm_rank(*cases[k].of, &me);
        MPI_Comm_size(*cases[k].of, &n);
        who = who ? n - 1 : 0;
    }
    now = cases[k].name;
    made = MPI_COMM_NULL;
    alarm(60);
    const int code = cases[k].call(me == who), class = class_of(code);
    if (cases[k].class ? class != cases[k].class : code == MPI_SUCCESS) {
        fprintf(stderr, "rank %d of %d: %s, wrong at rank %d: class %d\n", rank, size, now, who, class);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    EQ(made, MPI_COMM_NULL);
    EQ(total(comm), size); /* the communicator is unchanged, and so are communicators made from it */
    EQ(total(node) > 0, 1);
    if (inter != MPI_COMM_NULL)
        EQ(total(inter), side ? size / 2 : size - size / 2);
    alarm(0);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    signal(SIGALRM, too_long);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_group(comm, &world);
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Cart_create(comm, 1, &size, (int[]){0}, 0, &cart);
    side = rank >= size / 2;
    leader[1] = size / 2;
    MPI_Comm_split(comm, side, 0, &half);
    inter = MPI_COMM_NULL;
    if (size > 1)
        MPI_Intercomm_create(half, 0, comm, leader[!side], 1, &inter);
    if (!rank)
        snprintf(name, sizeof(name), "/tmp/mrmpi-refusals-%ld", (long)getpid());
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, comm);
    MPI_File_open(comm, name, MODE, MPI_INFO_NULL, &file);
    strcat(name, "-2");
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        if (argc > 1 && strcmp(argv[1], cases[k].name))
            continue;
        run(k, 0);
        if (size > 1)
            run(k, size - 1);
        if (size > 2)
            run(k, 1);
    }
    EQ(access(name, F_OK), -1);
    MPI_File_close(&file);
    if (inter != MPI_COMM_NULL)
        MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    MPI_Comm_free(&cart);
    MPI_Comm_free(&node);
    MPI_Group_free(&world);
    MPI_Comm_free(&comm);
    return mt_end();
}
