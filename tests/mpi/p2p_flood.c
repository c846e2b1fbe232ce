/* SPDX-License-Identifier: BSD-3-Clause */
/* All ranks flood rank 0, which does not poll at first and then takes the messages in an order of its own. */
#include "p2p.h"

int main(int argc, char **argv)
{
    /* long ones: more than any queue between two ranks holds; the i-th begins i bytes into the area */
    enum { N = 3000, LONGS = 300, LONG = 12000, BIG = 40000 };
    static char big[BIG], area[LONG + LONGS], long_one[LONG];
    MPI_Request reqs[LONGS];

    begin(&argc, &argv);
    if (rank) {
        for (int i = 0; i < N; i++) {
            int value = rank * N + i;

            MPI_Send(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
        }
        fill(area, sizeof(area), rank);
        for (int i = 0; i < LONGS; i++)
            MPI_Isend(area + i, LONG, MPI_CHAR, 0, N + 1 + i, MPI_COMM_WORLD, &reqs[i]);
        fill(big, BIG, rank);
        MPI_Send(big, BIG, MPI_CHAR, 0, N, MPI_COMM_WORLD);
        MPI_Waitall(LONGS, reqs, MPI_STATUSES_IGNORE);
    } else {
        double until = MPI_Wtime() + 0.05;

        while (MPI_Wtime() < until)
            ;
        for (int from = size - 1; from > 0; from--) {
            MPI_Recv(big, BIG, MPI_CHAR, from, N, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(holds(big, BIG, from));
            fill(area, sizeof(area), from);
            for (int i = LONGS - 1; i >= 0; i--) {
                MPI_Recv(long_one, LONG, MPI_CHAR, from, N + 1 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                CHECK(memcmp(long_one, area + i, LONG) == 0);
            }
            for (int i = N - 1; i >= 0; i--) {
                int value;

                MPI_Recv(&value, 1, MPI_INT, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                CHECK(value == from * N + i);
            }
        }
    }
    MPI_Finalize();
    return 0;
}
