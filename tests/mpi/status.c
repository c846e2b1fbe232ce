/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A status in C, in Fortran and in Fortran 2008, each way: MPICH's header has all these functions, its library in C has
 * not. The standard's binary interface has statuses of C only.
 */
#include "mt.h"

#ifdef MPI_F_STATUS_SIZE
static void in_other_languages(MPI_Status received)
{
    MPI_Fint f[MPI_F_STATUS_SIZE];
    MPI_F08_status f08;
    MPI_Status st = received;
    int n, flag;
    MPI_Status_set_cancelled(&st, 1);
    MPI_Status_c2f08(&st, &f08);
    CHECK(f08.MPI_TAG == 10 && f08.MPI_SOURCE == rank);
    f08.MPI_TAG = 11;
    MPI_Status_f082f(&f08, f);
    EQ(f[MPI_F_TAG], 11);
    f[MPI_F_TAG] = 12;
    MPI_Status_f2f08(f, &f08);
    EQ(f08.MPI_TAG, 12);
    f08.MPI_SOURCE = 6;
    MPI_Status_f082c(&f08, &st);
    MPI_Get_count(&st, MPI_INT, &n);
    MPI_Test_cancelled(&st, &flag);
    CHECK(n == 1 && flag && st.MPI_SOURCE == 6 && st.MPI_TAG == 12);
    st.MPI_TAG = 13;
    MPI_Status_c2f(&st, f);
    EQ(f[MPI_F_TAG], 13);
    f[MPI_F_SOURCE] = 5;
    MPI_Status_f2c(f, &st);
    MPI_Get_count(&st, MPI_INT, &n);
    CHECK(n == 1 && st.MPI_SOURCE == 5 && st.MPI_TAG == 13);
}
#else
static void in_other_languages(MPI_Status received)
{
}
#endif

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    MPI_Status st;
    int x = 7, y[5], n;
    MPI_Sendrecv(&x, 1, MPI_INT, rank, 10, y, 5, MPI_INT, rank, 10, MPI_COMM_WORLD, &st);
    in_other_languages(st);
    /* its fields by functions, and a count that is no int */
    MPI_Status_get_source(&st, &n);
    EQ(n, rank);
    MPI_Status_get_tag(&st, &n);
    EQ(n, 10);
    st.MPI_ERROR = MPI_ERR_ROOT;
    MPI_Status_get_error(&st, &n);
    EQ(n, MPI_ERR_ROOT);
    MPI_Status_set_source(&st, 21);
    MPI_Status_set_tag(&st, 22);
    MPI_Status_set_error(&st, MPI_ERR_TAG);
    CHECK(st.MPI_SOURCE == 21 && st.MPI_TAG == 22 && st.MPI_ERROR == MPI_ERR_TAG);
    MPI_Count many = 0;
    MPI_Status_set_elements_c(&st, MPI_INT, 3000000000);
    MPI_Get_elements_c(&st, MPI_INT, &many);
    EQ(many, 3000000000);
    MPI_Get_elements(&st, MPI_INT, &n);
    EQ(n, MPI_UNDEFINED);
    CHECK(st.MPI_SOURCE == 21 && st.MPI_TAG == 22);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Status_get_tag(MPI_STATUS_IGNORE, &n), &x);
    EQ(x, MPI_ERR_ARG);
    MPI_Error_class(MPI_Status_set_error(MPI_STATUS_IGNORE, 0), &x);
    EQ(x, MPI_ERR_ARG);
    MPI_Finalize();
    return 0;
}
