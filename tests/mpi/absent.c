/* SPDX-License-Identifier: BSD-3-Clause */
/* Unsupported functions report an error, through the right error handler, and leave nothing undefined behind. */
#include "mt.h"

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

#define REFUSED(call) EQ(class_of(call), MPI_ERR_UNSUPPORTED_OPERATION)

static int told_comm, told_file;

static void comm_handler(MPI_Comm *c, int *code, ...)
{
    EQ(class_of(*code), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(*c != MPI_COMM_WORLD);
    told_comm++;
}

static void file_handler(MPI_File *f, int *code, ...)
{
    CHECK(*f == MPI_FILE_NULL);
    EQ(class_of(*code), MPI_ERR_UNSUPPORTED_OPERATION);
    told_file++;
}

static void processes(MPI_Comm c)
{
    MPI_Comm d = 0;
    REFUSED(MPI_Comm_spawn("program", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, c, &d, MPI_ERRCODES_IGNORE));
    EQ(d, MPI_COMM_NULL);
}

int main(int argc, char **argv)
{
    MPI_Errhandler on_comm, on_file, got;
    MPI_Comm c, d;
    int yes = 1;
    mt_begin(&argc, &argv);
    MPI_Comm_create_errhandler(comm_handler, &on_comm);
    MPI_File_create_errhandler(file_handler, &on_file);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, on_comm);
    MPI_Comm_set_errhandler(c, on_comm);
    MPI_File_get_errhandler(MPI_FILE_NULL, &got);
    EQ(got, MPI_ERRORS_RETURN);
    MPI_File_set_errhandler(MPI_FILE_NULL, on_file);
    processes(c);
    EQ(told_comm, 1);
    MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_UNSUPPORTED_OPERATION);
    EQ(told_file, 1);
    EQ(told_comm, 1);
    EQ(MPI_File_c2f(MPI_FILE_NULL), 0);
    CHECK(MPI_File_f2c(0) == MPI_FILE_NULL);
    d = MPI_COMM_WORLD;
    MPI_Comm_get_parent(&d);
    EQ(d, MPI_COMM_NULL);
    MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &yes);
    EQ(yes, 0);
    EQ(MPIX_Query_cuda_support() + MPIX_Query_hip_support() + MPIX_Query_ze_support(), 0);
    MPI_Errhandler_free(&on_comm);
    MPI_Errhandler_free(&on_file);
    MPI_Comm_free(&c);
    return mt_end();
}
