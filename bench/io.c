/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file of all ranks, for bench/io.sh: io FILE MIB. Each rank has MIB MiB of the file, in one stretch or in blocks
 * interleaved with other ranks' blocks. The ranks write and read their parts alone and together, five times. Prints
 * lines of block (0: one stretch), mode (alone, all), operation (write, read), and the shortest time from barrier to
 * barrier in ms.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static const char *name;
static char *buf;

static void set_view(MPI_File f, int block, size_t each)
{
    MPI_Datatype stretch, tile;

    if (!block) {
        MPI_File_set_view(f, (MPI_Offset)rank * (MPI_Offset)each, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
        return;
    }
    MPI_Type_contiguous(block, MPI_BYTE, &stretch);
    MPI_Type_create_resized(stretch, 0, (MPI_Aint)block * size, &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(f, (MPI_Offset)rank * block, MPI_BYTE, tile, "native", MPI_INFO_NULL);
    MPI_Type_free(&stretch);
    MPI_Type_free(&tile);
}

static int wrong(size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (buf[i] != (char)(rank + 1))
            return 1;
    return 0;
}

/* Milliseconds. */
static double once(MPI_File f, int write, int all, size_t bytes)
{
    double t;

    MPI_File_seek(f, 0, MPI_SEEK_SET);
    MPI_Barrier(MPI_COMM_WORLD);
    t = MPI_Wtime();
    if (write)
        (all ? MPI_File_write_all : MPI_File_write)(f, buf, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    else
        (all ? MPI_File_read_all : MPI_File_read)(f, buf, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    return 1e3 * (MPI_Wtime() - t);
}

static void kind(int block, int all, size_t each)
{
    double least[2] = {1e9, 1e9};
    int bad = 0, any;

    for (int turn = 0; turn < 5; turn++) {
        MPI_File f;

        if (rank == 0)
            unlink(name);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
        set_view(f, block, each);
        for (int write = 1; write >= 0; write--) {
            double t;

            memset(buf, write ? rank + 1 : 0, each);
            t = once(f, write, all, each);
            least[write] = t < least[write] ? t : least[write];
        }
        bad |= wrong(each);
        MPI_File_close(&f);
    }
    MPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    for (int write = 1; write >= 0 && rank == 0; write--)
        printf("%d %s %s %.3f\n", block, all ? "all" : "alone", any ? "wrong" : write ? "write" : "read", least[write]);
}

int main(int argc, char **argv)
{
    static const int blocks[] = {0, 8, 64, 512, 4096, 65536};
    size_t each;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    name = argv[1];
    each = (size_t)atoi(argv[2]) << 20;
    buf = malloc(each);
    for (size_t b = 0; b < sizeof(blocks) / sizeof(*blocks); b++)
        for (int all = 0; all < 2; all++)
            kind(blocks[b], all, each);
    if (rank == 0)
        unlink(name);
    MPI_Finalize();
    return 0;
}
