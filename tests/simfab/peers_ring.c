/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compiled by peers_mpi.sh with the compilers of other MPIs: every pair of ranks exchanges messages of many sizes,
 * followed by collectives over all ranks. Prints the number of wrong bytes.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES_MAX = 1 << 20 };

static unsigned char byte_of(int from, int to, int size, int at)
{
    return (unsigned char)(from * 31 + to * 17 + size + at * 7);
}

static long exchange(int me, int peer, int size, unsigned char *out, unsigned char *in)
{
    long wrong = 0;

    for (int i = 0; i < size; i++)
        out[i] = byte_of(me, peer, size, i);
    MPI_Sendrecv(out, size, MPI_BYTE, peer, size % 1000, in, size, MPI_BYTE, peer, size % 1000, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < size; i++)
        wrong += in[i] != byte_of(peer, me, size, i);
    return wrong;
}

int main(int argc, char **argv)
{
    unsigned char *out = malloc(BYTES_MAX), *in = malloc(BYTES_MAX);
    long wrong = 0, all = 0, sum = 0;
    int me, n;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int size = 1; size <= BYTES_MAX; size *= 8)
        for (int step = 1; step < n; step++)
            if ((me ^ step) < n)
                wrong += exchange(me, me ^ step, size, out, in);
    MPI_Allreduce(&(long){me + 1}, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    wrong += sum != (long)n * (n + 1) / 2;
    MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (me == 0)
        printf("%d ranks, %ld wrong\n", n, all);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
