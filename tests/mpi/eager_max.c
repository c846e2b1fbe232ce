/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of all sizes around MRMPI_EAGER_MAX of ranks that do not agree on it, between all pairs, in both directions
 * at once, contiguous and strided, standard and synchronous. Arguments: the limits.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AROUND = 70, LONGEST = 300000 };

static unsigned char out[2 * LONGEST], in[LONGEST];
static int rank, size, errors;

static unsigned char byte_of(int from, int n, int at)
{
    return (unsigned char)(from * 31 + n * 7 + at * 5 + (at >> 8));
}

static void exchange(int peer, int n, int strided, int synchronous)
{
    MPI_Datatype type = MPI_BYTE;
    MPI_Request req[2];
    MPI_Status st[2];
    int got;

    if (strided) {
        MPI_Type_vector(n, 1, 2, MPI_BYTE, &type);
        MPI_Type_commit(&type);
    }
    for (int i = 0; i < n; i++)
        out[strided ? 2 * i : i] = byte_of(rank, n, i);
    memset(in, 0, (size_t)n + 1);
    MPI_Irecv(in, n + 1, MPI_BYTE, peer, n, MPI_COMM_WORLD, &req[0]);
    if (synchronous)
        MPI_Issend(out, strided ? 1 : n, type, peer, n, MPI_COMM_WORLD, &req[1]);
    else
        MPI_Isend(out, strided ? 1 : n, type, peer, n, MPI_COMM_WORLD, &req[1]);
    MPI_Waitall(2, req, st);
    MPI_Get_count(&st[0], MPI_BYTE, &got);
    if (got != n)
        errors++;
    for (int i = 0; i < n; i++)
        if (in[i] != byte_of(peer, n, i)) {
            errors++;
            break;
        }
    if (strided)
        MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    int all = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int shift = 1; shift < size; shift++)
        for (int a = 1; a < argc; a++)
            for (int n = atoi(argv[a]) - AROUND; n <= atoi(argv[a]) + AROUND; n++)
                for (int how = 0; how < 4; how++)
                    if (n >= 0 && n < LONGEST && size % 2 == 0)
                        exchange(rank ^ shift, n, how & 1, how >> 1);
    MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!rank)
        printf("%d errors\n", all);
    MPI_Finalize();
    return all != 0;
}
