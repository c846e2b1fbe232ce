/* SPDX-License-Identifier: BSD-3-Clause */
/* What is not there: no file, no parent, no memory of GPUs; the first has its error handler. */
#include "mt.h"

static int told_file;

static void file_handler(MPI_File *f, int *code, ...)
{
    CHECK(*f == MPI_FILE_NULL);
    EQ(*code, MPI_ERR_UNSUPPORTED_OPERATION);
    told_file++;
}

int main(int argc, char **argv)
{
    MPI_Errhandler on_file, got;
    MPI_Comm d;
    mt_begin(&argc, &argv);
    MPI_File_create_errhandler(file_handler, &on_file);
    MPI_File_get_errhandler(MPI_FILE_NULL, &got);
    EQ(got, MPI_ERRORS_RETURN);
    MPI_File_set_errhandler(MPI_FILE_NULL, on_file);
    MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_UNSUPPORTED_OPERATION);
    EQ(told_file, 1);
    CHECK(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
    d = MPI_COMM_WORLD;
    MPI_Comm_get_parent(&d);
    EQ(d, MPI_COMM_NULL);
#ifdef MPIX_GPU_SUPPORT_CUDA /* not in the standard's binary interface */
    int yes = 1;
    EQ(MPI_File_c2f(MPI_FILE_NULL), 0);
    MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &yes);
    EQ(yes, 0);
    EQ(MPIX_Query_cuda_support() + MPIX_Query_hip_support() + MPIX_Query_ze_support(), 0);
#endif
    MPI_Errhandler_free(&on_file);
    return mt_end();
}
