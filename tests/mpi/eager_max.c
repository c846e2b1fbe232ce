/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of all sizes around those in the arguments, which are limits on which ranks disagree, between all pairs, in
 * both directions at once, contiguous and strided, standard and synchronous, with a posted receive and without. AROUND
 * in the environment: the number of sizes on each side (20).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 300000 };
enum { STRIDED = 1, SYNCHRONOUS = 2, UNEXPECTED = 4, HOWS = 8 };

static unsigned char out[2 * LONGEST], in[2 * LONGEST];
static int rank, size, errors;

static unsigned char byte_of(int from, int n, int at)
{
    return (unsigned char)(from * 31 + n * 7 + at * 5 + (at >> 8));
}

static void exchange(int peer, int n, int how)
{
    int step = how & STRIDED ? 2 : 1, count = how & STRIDED ? 1 : n, got;
    MPI_Datatype type = MPI_BYTE;
    MPI_Request req[2];
    MPI_Status st[2];

    if (how & STRIDED) {
        MPI_Type_vector(n, 1, step, MPI_BYTE, &type);
        MPI_Type_commit(&type);
    }
    for (int i = 0; i < n; i++)
        out[step * i] = byte_of(rank, n, i);
    memset(in, 0, step * (size_t)n + 1);
    if (!(how & UNEXPECTED))
        MPI_Irecv(in, count, type, peer, n, MPI_COMM_WORLD, &req[0]);
    if (how & SYNCHRONOUS)
        MPI_Issend(out, count, type, peer, n, MPI_COMM_WORLD, &req[1]);
    else
        MPI_Isend(out, count, type, peer, n, MPI_COMM_WORLD, &req[1]);
    if (how & UNEXPECTED) {
        MPI_Probe(peer, n, MPI_COMM_WORLD, &st[0]);
        MPI_Irecv(in, count, type, peer, n, MPI_COMM_WORLD, &req[0]);
    }
    MPI_Waitall(2, req, st);
    MPI_Get_count(&st[0], MPI_BYTE, &got);
    if (got != n)
        errors++;
    for (int i = 0; i < n; i++)
        if (in[step * i] != byte_of(peer, n, i) || (step == 2 && in[step * i + 1])) {
            errors++;
            break;
        }
    if (how & STRIDED)
        MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    const char *said = getenv("AROUND");
    int all = 0, around = said ? atoi(said) : 20;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int shift = 1; shift < size; shift++)
        for (int a = 1; a < argc; a++)
            for (int n = atoi(argv[a]) - around; n <= atoi(argv[a]) + around; n++)
                for (int how = 0; how < HOWS; how++)
                    if (n >= 0 && n < LONGEST && size % 2 == 0)
                        exchange(rank ^ shift, n, how);
    MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!rank)
        printf("%d errors\n", all);
    MPI_Finalize();
    return all != 0;
}
