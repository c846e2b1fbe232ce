/* SPDX-License-Identifier: BSD-3-Clause */
/* A status in C, in Fortran and in Fortran 2008, each way: MPICH's header has all these functions, its library in C has not. */
#include "mt.h"

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    MPI_Fint f[MPI_F_STATUS_SIZE];
    MPI_F08_status f08;
    MPI_Status st;
    int x = 7, n, flag;
    MPI_Sendrecv(&x, 1, MPI_INT, rank, 10, f, 5, MPI_INT, rank, 10, MPI_COMM_WORLD, &st);
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
    MPI_Finalize();
    return 0;
}
