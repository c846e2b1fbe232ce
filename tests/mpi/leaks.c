/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leaves one object of every kind behind on rank 1 ("leaks"), or makes the same and frees them ("frees"): leaks.sh
 * reads the library's report.
 */
#include "mt.h"

static MPI_Comm comm, grid;
static MPI_Datatype type;
static MPI_Op op;
static MPI_Group group;
static MPI_Info info;
static MPI_Errhandler handler;
static MPI_Request persistent;
static MPI_Message message;
static MPI_Session session;
static MPI_File file;
static void *memory;
static int key;

static void add(void *in, void *inout, int *n, MPI_Datatype *t)
{
    for (int i = 0; i < *n && *t == MPI_INT; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void ignore(MPI_Comm *c, int *code, ...)
{
    CHECK(c && *code);
}

static void make(void)
{
    int one = 1, zero = 0;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_name(comm, "mine");
    MPI_Cart_create(MPI_COMM_SELF, 1, &one, &zero, 0, &grid);
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_set_name(type, "triple");
    MPI_Op_create(add, 1, &op);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Info_create(&info);
    MPI_Comm_create_errhandler(ignore, &handler);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Recv_init(&one, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &persistent);
    MPI_Alloc_mem(100, MPI_INFO_NULL, &memory);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    MPI_Send(&one, 1, MPI_INT, 0, 5, MPI_COMM_SELF); /* small enough not to wait */
    MPI_Mprobe(0, 5, MPI_COMM_SELF, &message, MPI_STATUS_IGNORE);
}

/* The session goes in both cases: without that MPI does not end. */
static void unmake(void)
{
    int x;
    MPI_Comm_free(&comm);
    MPI_Comm_free(&grid);
    MPI_Type_free(&type);
    MPI_Op_free(&op);
    MPI_Group_free(&group);
    MPI_Info_free(&info);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free_keyval(&key);
    MPI_Request_free(&persistent);
    MPI_Free_mem(memory);
    MPI_File_close(&file);
    MPI_Mrecv(&x, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    EQ(x, 1);
}

int main(int argc, char **argv)
{
    int unheard = 3;
    mt_begin(&argc, &argv);
    CHECK(argc == 2);
    if (rank == 1) {
        make();
        if (!strcmp(argv[1], "leaks"))
            MPI_Send(&unheard, 1, MPI_INT, 0, 44, MPI_COMM_WORLD);
        else
            unmake();
        if (strcmp(argv[1], "session"))
            MPI_Session_finalize(&session);
    }
    return mt_end();
}
