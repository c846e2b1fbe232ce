/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions with large counts, and windows larger than any int: most of their pages are never touched. With "huge",
 * operations of more than 2^31 bytes between mappings that show the same few pages again and again.
 */
#include "rma.h"

#include <sys/mman.h>
#include <unistd.h>

static const MPI_Aint GIB = (MPI_Aint)1 << 30;

static char *mapping(MPI_Aint bytes)
{
    char *p = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

/* Every operation in its large form. */
static void forms(void)
{
    MPI_Win w;
    MPI_Aint *bytes, unit_of, size_of;
    MPI_Request q[4];
    MPI_Comm node;
    int v[4] = {1, 2, 3, 4}, got[4] = {0}, was[4] = {0}, *base, *other, flag, *unit, me, n;
    MPI_Win_allocate_c(16 * sizeof(int), 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &w);
    MPI_Win_get_attr(w, MPI_WIN_SIZE, &bytes, &flag);
    CHECK(flag && *bytes == 16 * sizeof(int));
    MPI_Win_get_attr(w, MPI_WIN_DISP_UNIT, &unit, &flag);
    CHECK(flag && *unit == 4);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, w);
    for (int i = 0; i < 16; i++)
        base[i] = 10 * rank;
    MPI_Win_unlock(rank, w);
    MPI_Win_fence(0, w);
    for (int i = 0; i < 4; i++)
        v[i] += 100 * rank;
    MPI_Put_c(v, 4, MPI_INT, right, 0, 4, MPI_INT, w);
    MPI_Accumulate_c(v, 4, MPI_INT, right, 4, 4, MPI_INT, MPI_SUM, w);
    MPI_Get_accumulate_c(v, 4, MPI_INT, was, 4, MPI_INT, right, 8, 4, MPI_INT, MPI_REPLACE, w);
    MPI_Get_c(got, 4, MPI_INT, right, 12, 4, MPI_INT, w);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
    for (int i = 0; i < 4; i++) {
        EQ(base[i], 100 * left + i + 1);
        EQ(base[4 + i], 10 * rank + 100 * left + i + 1);
        EQ(base[8 + i], 100 * left + i + 1);
        EQ(got[i], 10 * right);
        EQ(was[i], 10 * right);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, w);
    MPI_Rput_c(v, 4, MPI_INT, right, 12, 4, MPI_INT, w, &q[0]);
    MPI_Raccumulate_c(v, 4, MPI_INT, right, 4, 4, MPI_INT, MPI_SUM, w, &q[1]);
    MPI_Rget_c(got, 4, MPI_INT, right, 0, 4, MPI_INT, w, &q[2]);
    MPI_Rget_accumulate_c(v, 4, MPI_INT, was, 4, MPI_INT, right, 8, 4, MPI_INT, MPI_SUM, w, &q[3]);
    MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
    MPI_Win_unlock_all(w);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w);
    for (int i = 0; i < 4; i++) {
        EQ(base[12 + i], 100 * left + i + 1);
        EQ(base[4 + i], 10 * rank + 2 * (100 * left + i + 1));
        EQ(base[8 + i], 2 * (100 * left + i + 1));
        EQ(got[i], v[i]);
        EQ(was[i], v[i]);
    }
    MPI_Win_unlock(rank, w);
    MPI_Win_free(&w);

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &me);
    MPI_Comm_size(node, &n);
    MPI_Win_allocate_shared_c(64, 8 << me % 3, MPI_INFO_NULL, node, &base, &w);
    MPI_Win_shared_query_c(w, (me + 1) % n, &size_of, &unit_of, &other);
    EQ(size_of, 64);
    EQ(unit_of, 8 << (me + 1) % n % 3);
    MPI_Win_lock_all(0, w);
    other[3] = me + 1;
    MPI_Win_sync(w);
    MPI_Barrier(node);
    MPI_Win_sync(w);
    EQ(base[3], (me + n - 1) % n + 1);
    MPI_Win_unlock_all(w);
    MPI_Win_free(&w);
    MPI_Comm_free(&node);
}

/* Displacements, units and extents beyond 2^32; counts beyond 2^31 of types without bytes. */
static void wide(void)
{
    MPI_Aint bytes = 6 * GIB, *got_bytes;
    char *mem = mapping(bytes);
    MPI_Win w;
    MPI_Datatype far, none;
    int flag, right = (rank + 1) % size, left = (rank + size - 1) % size, v[4], got[4] = {0};
    MPI_Aint at[4] = {0, GIB + 4, 3 * GIB - 8, 5 * GIB};
    const MPI_Count many = (MPI_Count)INT32_MAX + 17;
    MPI_Win_create_c(mem, bytes, GIB / 4, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Win_get_attr(w, MPI_WIN_SIZE, &got_bytes, &flag);
    CHECK(flag && *got_bytes == bytes);
    MPI_Type_create_hindexed_block(4, 1, at, MPI_INT, &far);
    MPI_Type_contiguous(0, MPI_INT, &none);
    MPI_Type_commit(&far);
    MPI_Type_commit(&none);
    for (int i = 0; i < 4; i++)
        v[i] = 10 * rank + i + 1;
    MPI_Win_fence(0, w);
    MPI_Put(v, 4, MPI_INT, right, 2, 1, far, w); /* from half a GiB on */
    MPI_Accumulate(v, 1, MPI_INT, right, 23, 1, MPI_INT, MPI_SUM, w);
    MPI_Put_c(v, many, none, right, 0, many, none, w);
    MPI_Win_fence(0, w);
    for (int i = 0; i < 4; i++)
        EQ(*(int *)(mem + GIB / 2 + at[i]), 10 * left + i + 1);
    EQ(*(int *)(mem + 23 * (GIB / 4)), 10 * left + 1);
    MPI_Get(got, 4, MPI_INT, right, 2, 1, far, w);
    MPI_Get_c(v, many, none, right, 0, many, none, w);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
    for (int i = 0; i < 4; i++)
        EQ(got[i], v[i]);
    MPI_Type_free(&far);
    MPI_Type_free(&none);
    MPI_Win_free(&w);
    munmap(mem, (size_t)bytes);
}

enum { PERIOD = 16 << 20, TIMES = 129 };

/* TIMES periods of the same memory. */
static char *repeated(void)
{
    char *p = mapping((MPI_Aint)PERIOD * TIMES);
    int fd = memfd_create("rma_large", MFD_CLOEXEC);
    CHECK(fd >= 0 && ftruncate(fd, PERIOD) == 0);
    for (int i = 0; i < TIMES; i++)
        CHECK(mmap(p + (size_t)i * PERIOD, PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
              MAP_FAILED);
    close(fd);
    return p;
}

static void huge(void)
{
    char *mine = repeated(), *mem = repeated();
    const MPI_Count bytes = (MPI_Count)PERIOD * TIMES;
    MPI_Win w;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Win_create(mem, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    for (size_t i = 0; i < PERIOD; i++)
        mine[i] = byte_of(rank, (int)(i >> 20), i);
    MPI_Win_fence(0, w);
    MPI_Put_c(mine, bytes, MPI_BYTE, right, 0, bytes, MPI_BYTE, w);
    MPI_Win_fence(0, w);
    for (size_t i = 0; i < PERIOD; i++)
        EQ(mem[i], byte_of(left, (int)(i >> 20), i));
    for (size_t i = 0; i < PERIOD; i++)
        mine[i] = 0;
    MPI_Get_c(mine, bytes, MPI_BYTE, right, 0, bytes, MPI_BYTE, w);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
    for (size_t i = 0; i < PERIOD; i++)
        EQ(mine[i], byte_of(rank, (int)(i >> 20), i));
    MPI_Win_free(&w);
    munmap(mine, (size_t)bytes);
    munmap(mem, (size_t)bytes);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    if (argc > 1 && !strcmp(argv[1], "huge")) {
        huge();
    } else {
        forms();
        wide();
    }
    return mt_end();
}
