/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory is attached to a window and detached while it lives: absolute addresses, thousands of regions, absolute types.
 */
#include "rma.h"

#include <sys/mman.h>

static MPI_Aint address(const void *p)
{
    MPI_Aint a;
    MPI_Get_address(p, &a);
    return a;
}

/* Static, automatic and allocated memory are attached in turn; one rank attaches nothing. */
static void life(void)
{
    static int fixed[8];
    int here[8], *heap, got;
    MPI_Win w;
    MPI_Aint mine[3], *all = room(sizeof(MPI_Aint) * 3 * (size_t)size);
    int right = (rank + 1) % size, none = size > 2 ? 1 : -1; /* the rank without memory */
    heap = room(8 * sizeof(int));
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    for (int k = 0; k < 5; k++) {
        int *parts[3] = {fixed, here, heap};
        for (int i = 0; i < 3; i++) {
            mine[i] = address(parts[i]);
            for (int j = 0; j < 8; j++)
                parts[i][j] = -1;
            if (rank != none)
                MPI_Win_attach(w, parts[i], 8 * sizeof(int));
        }
        MPI_Allgather(mine, 3, MPI_AINT, all, 3, MPI_AINT, MPI_COMM_WORLD);
        MPI_Win_lock_all(0, w);
        if (right != none)
            for (int i = 0; i < 3; i++) {
                int x[2] = {100 * rank + i, k};
                MPI_Aint to = MPI_Aint_add(all[3 * right + i], 3 * sizeof(int));
                EQ(MPI_Aint_diff(to, all[3 * right + i]), 3 * sizeof(int));
                MPI_Put(x, 2, MPI_INT, right, to, 2, MPI_INT, w);
                MPI_Win_flush(right, w);
                MPI_Fetch_and_op(&k, &got, MPI_INT, right, MPI_Aint_add(to, sizeof(int)), MPI_SUM, w);
                MPI_Win_flush_local(right, w);
                EQ(got, k);
            }
        MPI_Win_unlock_all(w);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 2; i >= 0 && rank != none; i--) {
            MPI_Win_detach(w, parts[i]);
            for (int j = 0; j < 8; j++)
                EQ(parts[i][j], j == 3 ? 100 * ((rank + size - 1) % size) + i : j == 4 ? 2 * k : -1);
        }
        MPI_Barrier(MPI_COMM_WORLD); /* nobody attaches again before all have detached */
    }
    MPI_Win_free(&w);
    free(heap);
    free(all);
}

/* Adjacent regions, attached in any order, each with its own ends; they go while others are in use. */
static void many(int regions)
{
    enum { BYTES = 48, APART = 64, TRIES = 400 };
    char *mem = room((size_t)regions * APART);
    MPI_Win w;
    MPI_Aint base = address(mem), *all = room(sizeof(MPI_Aint) * (size_t)size);
    uint64_t seed = 11;
    int64_t x, y, *sum = calloc((size_t)regions, sizeof(*sum));
    CHECK(sum);
    memset(mem, 0, (size_t)regions * APART);
    MPI_Allgather(&base, 1, MPI_AINT, all, 1, MPI_AINT, MPI_COMM_WORLD);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    int step = 7919 % regions ? 7919 : 1, at = 0;
    for (int i = 0; i < regions; i++, at = (at + step) % regions)
        MPI_Win_attach(w, mem + (size_t)at * APART, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, w);
    for (int i = 0; i < TRIES; i++) {
        int r = (int)(next_of(&seed) % (unsigned)regions), t = (rank + i) % size;
        MPI_Aint to = MPI_Aint_add(all[t], (MPI_Aint)r * APART + 8);
        for (int o = 0; o < size; o++)
            sum[r] += (o + i) % size == rank ? o + 1 : 0; /* all know the actions of all others */
        x = rank + 1;
        MPI_Accumulate(&x, 1, MPI_INT64_T, t, to, 1, MPI_INT64_T, MPI_SUM, w);
        MPI_Get(&y, 1, MPI_INT64_T, t, MPI_Aint_add(to, 32), 1, MPI_INT64_T, w);
        MPI_Win_flush_local(t, w);
        EQ(y, 0);
    }
    MPI_Win_unlock_all(w);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < regions; i += 2)
        MPI_Win_detach(w, mem + (size_t)i * APART);
    for (int i = 0; i < regions; i++)
        for (int j = 0; j < APART; j += 8)
            EQ(*(int64_t *)(mem + (size_t)i * APART + j), j == 8 ? sum[i] : 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, w); /* the odd ones are still there */
    for (int r = 1; r < regions; r += regions / 20 + 1 + (regions / 20 + 1) % 2) {
        int t = (rank + r) % size;
        x = 5;
        MPI_Accumulate(&x, 1, MPI_INT64_T, t, MPI_Aint_add(all[t], (MPI_Aint)r * APART + 16), 1, MPI_INT64_T, MPI_MAX,
                       w);
    }
    MPI_Win_unlock_all(w);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int r = 1; r < regions; r += regions / 20 + 1 + (regions / 20 + 1) % 2)
        EQ(*(int64_t *)(mem + (size_t)r * APART + 16), 5);
    for (int i = 1; i < regions; i += 2)
        MPI_Win_detach(w, mem + (size_t)i * APART);
    MPI_Win_free(&w);
    free(mem);
    free(all);
    free(sum);
}

/* Datatypes of absolute addresses at the origin (MPI_BOTTOM), and displacement 0 with them at the target. */
static void absolute(void)
{
    int a = rank, c = -1;
    double b = rank + 0.5, d = -1;
    int32_t i32 = -1;
    double f64 = -1;
    struct {
        MPI_Aint i, f;
    } mine, *all = room(sizeof(*all) * (size_t)size);
    int one[2] = {1, 1}, right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Aint at[2];
    MPI_Datatype parts[2] = {MPI_INT, MPI_DOUBLE}, out, in, there;
    MPI_Win w;
    at[0] = address(&a);
    at[1] = address(&b);
    MPI_Type_create_struct(2, one, at, parts, &out);
    at[0] = address(&c);
    at[1] = address(&d);
    MPI_Type_create_struct(2, one, at, parts, &in);
    mine.i = address(&i32);
    mine.f = address(&f64);
    MPI_Allgather(&mine, 2, MPI_AINT, all, 2, MPI_AINT, MPI_COMM_WORLD);
    at[0] = all[right].i;
    at[1] = all[right].f;
    MPI_Type_create_struct(2, one, at, parts, &there);
    MPI_Type_commit(&out);
    MPI_Type_commit(&in);
    MPI_Type_commit(&there);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Win_attach(w, &i32, sizeof(i32));
    MPI_Win_attach(w, &f64, sizeof(f64));
    MPI_Win_fence(0, w);
    MPI_Put(MPI_BOTTOM, 1, out, right, 0, 1, there, w);
    MPI_Win_fence(0, w);
    CHECK(i32 == left && f64 == left + 0.5);
    MPI_Get(MPI_BOTTOM, 1, in, right, 0, 1, there, w);
    MPI_Win_fence(0, w);
    CHECK(c == rank && d == rank + 0.5);
    MPI_Win_detach(w, &f64);
    MPI_Win_detach(w, &i32);
    MPI_Win_free(&w);
    MPI_Type_free(&out);
    MPI_Type_free(&in);
    MPI_Type_free(&there);
    free(all);
}

/* Memory that is unmapped and mapped anew, at the same address, while peers may know the old registration. */
static void again(void)
{
    enum { LEN = 1 << 20 };
    MPI_Win w;
    MPI_Aint mine, to;
    char *p, *out = room(LEN);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    for (int k = 0; k < 12; k++) {
        p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED);
        MPI_Win_attach(w, p, LEN);
        mine = address(p);
        MPI_Sendrecv(&mine, 1, MPI_AINT, left, 0, &to, 1, MPI_AINT, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < LEN; i += 1024)
            out[i] = byte_of(rank, k, (size_t)i);
        MPI_Win_lock(MPI_LOCK_SHARED, right, 0, w);
        MPI_Put(out, LEN, MPI_BYTE, right, to, LEN, MPI_BYTE, w);
        MPI_Win_unlock(right, w);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < LEN; i += 1024)
            EQ(p[i], byte_of(left, k, (size_t)i));
        MPI_Win_detach(w, p);
        munmap(p, LEN);
    }
    MPI_Win_free(&w);
    free(out);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    life();
    absolute();
    again();
    many(30);
    many(10000);
    return mt_end();
}
