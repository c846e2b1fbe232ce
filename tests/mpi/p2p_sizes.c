/* SPDX-License-Identifier: BSD-3-Clause */
/* All send modes and many sizes, zero among them, between neighbours; also from and to memory with holes. */
#include "p2p.h"

static const int sizes[] = {0,     1,     7,     8,      64,     72,     73,      255,          1024,
                            2047,  4096,  8191,  8192,   8193,   16383,  16384,   16385,        32768,
                            65535, 65536, 65537, 131072, 262143, 500001, 1 << 20, (1 << 22) + 3};
enum { N = sizeof(sizes) / sizeof(sizes[0]) };

static void exchange(int n, int mode, MPI_Datatype out_type, MPI_Datatype in_type)
{
    static int (*const isend[])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
                                MPI_Request *) = {MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend};
    int right = (rank + 1) % size, left = (rank - 1 + size) % size, got;
    size_t step_out = out_type == MPI_CHAR ? 1 : 3, step_in = in_type == MPI_CHAR ? 1 : 3;
    size_t out_bytes = step_out * (size_t)n + 64, in_bytes = step_in * (size_t)n + 64;
    char *out = room(out_bytes), *in = room(in_bytes);
    MPI_Request reqs[2];
    MPI_Status st[2];

    memset(out, 0, out_bytes);
    memset(in, 0x5a, in_bytes);
    if (step_out == 1)
        fill(out, (size_t)n, (unsigned)rank);
    for (int i = 0; step_out > 1 && i < n; i++)
        out[i * step_out] = pattern(i, rank);
    MPI_Irecv(in, n, in_type, left, mode, MPI_COMM_WORLD, &reqs[0]);
    MPI_Barrier(MPI_COMM_WORLD); /* a ready send needs its receive */
    isend[mode](out, n, out_type, right, mode, MPI_COMM_WORLD, &reqs[1]);
    MPI_Waitall(2, reqs, st);
    MPI_Get_count(&st[0], in_type, &got);
    CHECK(got == n && st[0].MPI_SOURCE == left && st[0].MPI_TAG == mode);
    CHECK(step_in > 1 || holds(in, (size_t)n, (unsigned)left));
    for (int i = 0; step_in > 1 && i < n; i++) {
        CHECK(in[i * step_in] == (char)pattern(i, left));
        CHECK(in[i * 3 + 1] == 0x5a && in[i * 3 + 2] == 0x5a);
    }
    for (size_t i = step_in * (size_t)n; i < in_bytes; i++)
        CHECK(in[i] == 0x5a);
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    size_t space = 2 * (sizes[N - 1] + MPI_BSEND_OVERHEAD);
    MPI_Datatype sparse;
    void *buffer;
    int bytes;

    begin(&argc, &argv);
    buffer = room(space);
    MPI_Type_create_resized(MPI_CHAR, 0, 3, &sparse);
    MPI_Type_commit(&sparse);
    MPI_Buffer_attach(buffer, space);
    for (int i = 0; i < N; i++) {
        for (int mode = 0; mode < 4; mode++)
            exchange(sizes[i], mode, MPI_CHAR, MPI_CHAR);
        exchange(sizes[i], 0, sparse, MPI_CHAR);
        exchange(sizes[i], 1, MPI_CHAR, sparse);
        exchange(sizes[i], 2, sparse, sparse);
    }
    MPI_Buffer_detach(&buffer, &bytes);
    CHECK((size_t)bytes == space);
    MPI_Type_free(&sparse);
    free(buffer);
    MPI_Finalize();
    return 0;
}
