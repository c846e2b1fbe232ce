/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of 1 GiB + 1 bytes and of more than 2 GiB, between the first and the last rank. Memory is the limit: an
 * argument gives the megabytes of the second one. Touches every page, compares samples and both ends.
 */
#include <stdint.h>
#include <sys/mman.h>

#include "p2p.h"

static const size_t step = 4093;

/* In large pages, where the kernel has them: a first touch of a small page takes longer than all that is done there. */
static unsigned char *large_room(size_t bytes)
{
    unsigned char *buf = room(bytes);
    size_t page = 4096, skip = -(uintptr_t)buf % page;

    madvise(buf + skip, (bytes - skip) / page * page, MADV_HUGEPAGE);
    return buf;
}

static void transfer(size_t elements, MPI_Datatype type, size_t element_size)
{
    size_t bytes = elements * element_size;
    unsigned char *buf = large_room(bytes + 1);
    int last = size - 1, got;
    MPI_Status st;

    if (rank == 0) {
        for (size_t i = 0; i < bytes; i += step)
            buf[i] = pattern(i, 1);
        buf[bytes - 1] = 0xa5;
        MPI_Send(buf, (int)elements, type, last, 1, MPI_COMM_WORLD);
    } else if (rank == last) {
        buf[bytes] = 0x3c;
        MPI_Recv(buf, (int)elements, type, 0, 1, MPI_COMM_WORLD, &st);
        MPI_Get_count(&st, type, &got);
        CHECK((size_t)got == elements && buf[bytes] == 0x3c && buf[bytes - 1] == 0xa5);
        for (size_t i = 0; i < bytes - 1; i += step)
            CHECK(buf[i] == pattern(i, 1));
    }
    free(buf);
}

int main(int argc, char **argv)
{
    size_t megabytes = argc > 1 ? atoi(argv[1]) : 2304;
    MPI_Datatype block;

    begin(&argc, &argv);
    CHECK(size > 1);
    transfer(((size_t)1 << 30) + 1, MPI_CHAR, 1);
    if (megabytes) {
        MPI_Type_contiguous(1 << 20, MPI_CHAR, &block);
        MPI_Type_commit(&block);
        transfer(megabytes, block, 1 << 20);
        MPI_Type_free(&block);
    }
    MPI_Finalize();
    return 0;
}
