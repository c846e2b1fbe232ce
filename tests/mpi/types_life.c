/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes as objects: attributes and their callbacks on dup and free, references that outlive MPI_Type_free, markers,
 * bounds, absolute addresses with large counts, and messages with data spread over more memory than 32 bits count.
 */
#include "mt.h"

#include <sys/mman.h>

static int left, right;
static int copies, deletes, refuse_copy, refuse_delete, dont;
static char extra;

static int on_copy(MPI_Datatype t, int key, void *state, void *in, void *out, int *flag)
{
    CHECK(state == &extra);
    copies++;
    *flag = !dont;
    *(void **)out = (char *)in + 1;
    return refuse_copy;
}

static int on_delete(MPI_Datatype t, int key, void *value, void *state)
{
    CHECK(state == &extra);
    deletes++;
    return refuse_delete;
}

static void attributes(void)
{
    int key, plain, none, flag;
    static char place[10];
    void *value;
    MPI_Datatype t, u, v;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EQ(MPI_Type_create_keyval(on_copy, on_delete, &key, &extra), MPI_SUCCESS);
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &plain, NULL);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &none, NULL);
    MPI_Type_contiguous(2, MPI_INT, &t);
    MPI_Type_set_attr(t, key, place);
    MPI_Type_set_attr(t, plain, place + 5);
    MPI_Type_set_attr(t, none, place + 6);
    EQ(MPI_Type_dup(t, &u), MPI_SUCCESS);
    EQ(copies, 1);
    MPI_Type_get_attr(u, key, &value, &flag);
    CHECK(flag && value == place + 1);
    MPI_Type_get_attr(u, plain, &value, &flag);
    CHECK(flag && value == place + 5);
    MPI_Type_get_attr(u, none, &value, &flag);
    CHECK(!flag);
    MPI_Type_get_attr(t, key, &value, &flag);
    CHECK(flag && value == place);
    MPI_Type_set_attr(t, key, place + 3); /* the old value goes */
    EQ(deletes, 1);
    dont = 1;
    MPI_Type_dup(t, &v);
    MPI_Type_get_attr(v, key, &value, &flag);
    CHECK(!flag && copies == 2);
    MPI_Type_free(&v);
    EQ(deletes, 1);
    dont = 0;
    refuse_copy = MPI_ERR_OTHER;
    v = MPI_INT;
    CHECK(MPI_Type_dup(t, &v) != MPI_SUCCESS);
    refuse_copy = 0;
    deletes = 0;
    MPI_Type_free(&u);
    EQ(deletes, 1);
    refuse_delete = MPI_ERR_OTHER;
    CHECK(MPI_Type_delete_attr(t, key) != MPI_SUCCESS);
    MPI_Type_get_attr(t, key, &value, &flag);
    refuse_delete = 0;
    deletes = 0;
    if (flag)
        EQ(MPI_Type_delete_attr(t, key), MPI_SUCCESS);
    MPI_Type_get_attr(t, key, &value, &flag);
    CHECK(!flag);
    MPI_Type_free(&t);
    MPI_Type_set_attr(MPI_INT, plain, place); /* built-in types have them too */
    MPI_Type_get_attr(MPI_INT, plain, &value, &flag);
    CHECK(flag && value == place);
    MPI_Type_delete_attr(MPI_INT, plain);
    MPI_Type_free_keyval(&key);
    EQ(key, MPI_KEYVAL_INVALID);
    MPI_Type_free_keyval(&plain);
    MPI_Type_free_keyval(&none);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* A type is freed while a message of it is on its way, and while another type is made of it. */
static void references(void)
{
    int a[200], b[200];
    MPI_Datatype t, u;
    MPI_Request r[2];
    for (int i = 0; i < 200; i++) {
        a[i] = rank * 1000 + i;
        b[i] = -1;
    }
    MPI_Type_vector(50, 1, 2, MPI_INT, &t);
    MPI_Type_create_hvector(2, 1, 100 * sizeof(int), t, &u);
    MPI_Type_free(&t);
    MPI_Type_commit(&u);
    MPI_Type_commit(&u); /* again: no harm */
    MPI_Irecv(b, 1, u, left, 0, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(a, 1, u, right, 0, MPI_COMM_WORLD, &r[1]);
    MPI_Type_free(&u);
    EQ(u, MPI_DATATYPE_NULL);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 200; i++)
        EQ(b[i], i % 2 ? -1 : left * 1000 + i);
}

/* Bounds: markers, resized inside out, empty blocks, negative displacements. */
static void bounds(void)
{
    MPI_Datatype t, u;
    int lens[2] = {0, 2};
    MPI_Aint lb, extent, far[2] = {-1000, 40};
#ifdef MPI_LB
    MPI_Aint at[3] = {-3, 0, 6};
    MPI_Type_create_struct(3, (int[]){1, 1, 1}, at, (MPI_Datatype[]){MPI_LB, MPI_INT, MPI_UB}, &t);
#else
    MPI_Type_create_resized(MPI_INT, -3, 9, &t);
#endif
    MPI_Type_get_extent(t, &lb, &extent);
    CHECK(lb == -3 && extent == 9);
    MPI_Type_contiguous(2, t, &u); /* at 0 and 9 */
    MPI_Type_get_extent(u, &lb, &extent);
    CHECK(lb == -3 && extent == 18);
    MPI_Type_get_true_extent(u, &lb, &extent);
    CHECK(lb == 0 && extent == 13);
    MPI_Type_free(&u);
    MPI_Type_create_resized(t, 2, 100, &u);
    MPI_Type_get_extent(u, &lb, &extent);
    CHECK(lb == 2 && extent == 100);
    MPI_Type_free(&u);
    MPI_Type_free(&t);
    MPI_Type_create_hindexed(2, lens, far, MPI_SHORT, &t); /* an empty type has no place */
    MPI_Type_get_extent(t, &lb, &extent);
    CHECK(lb == 40 && extent == 4);
    MPI_Type_free(&t);
    MPI_Type_vector(3, 2, -4, MPI_DOUBLE, &t);
    MPI_Type_get_extent(t, &lb, &extent);
    CHECK(lb == -64 && extent == 80);
    MPI_Type_get_true_extent(t, &lb, &extent);
    CHECK(lb == -64 && extent == 80);
    MPI_Type_free(&t);
    MPI_Type_contiguous(0, MPI_INT, &t);
    MPI_Type_get_extent(t, &lb, &extent);
    CHECK(lb == 0 && extent == 0);
    MPI_Type_free(&t);
}

static void absolute(void)
{
    double x = rank + 0.5, y = -1;
    int k[3] = {rank, rank + 1, rank + 2}, m[3] = {0};
    MPI_Count lens[2] = {1, 3}, from[2], to[2];
    MPI_Aint a;
    MPI_Datatype types[2] = {MPI_DOUBLE, MPI_INT}, s, r;
    MPI_Get_address(&x, &a);
    from[0] = a;
    MPI_Get_address(k, &a);
    from[1] = a;
    MPI_Get_address(&y, &a);
    to[0] = a;
    MPI_Get_address(m, &a);
    to[1] = a;
    MPI_Type_create_struct_c(2, lens, from, types, &s);
    MPI_Type_create_struct_c(2, lens, to, types, &r);
    MPI_Type_commit(&s);
    MPI_Type_commit(&r);
    MPI_Sendrecv(MPI_BOTTOM, 1, s, right, 0, MPI_BOTTOM, 1, r, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(y == left + 0.5 && m[0] == left && m[1] == left + 1 && m[2] == left + 2);
    MPI_Type_free(&s);
    MPI_Type_free(&r);
}

/* Pieces of a megabyte, 3 GiB apart: memory that is not touched costs nothing. */
static void far_apart(void)
{
    const size_t gib = 1ul << 30, piece = 1 << 20;
    char *mem = mmap(NULL, 7 * gib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mem == MAP_FAILED) /* forbidden on this machine */
        return;
    MPI_Datatype t, bytes;
    MPI_Status st;
    MPI_Count n;
    int small;
    MPI_Type_contiguous((int)piece, MPI_BYTE, &bytes);
    MPI_Type_create_hvector(3, 1, (MPI_Aint)(3 * gib), bytes, &t);
    MPI_Type_commit(&t);
    for (size_t i = 0; i < 3; i++)
        memset(mem + i * 3 * gib, (int)(rank * 3 + i + 1), piece);
    MPI_Sendrecv_replace(mem, 1, t, right, 0, left, 0, MPI_COMM_WORLD, &st);
    for (size_t i = 0; i < 3; i++)
        CHECK(mem[i * 3 * gib] == (char)(left * 3 + (int)i + 1) &&
              mem[i * 3 * gib + piece - 1] == (char)(left * 3 + (int)i + 1) && mem[i * 3 * gib + piece] == 0);
    MPI_Get_count(&st, t, &small);
    EQ(small, 1);
    MPI_Type_get_extent_x(t, &n, &n);
    EQ(n, (MPI_Count)(6 * gib + piece));
    MPI_Type_free(&t);
    MPI_Type_free(&bytes);
    munmap(mem, 7 * gib);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    attributes();
    references();
    bounds();
    absolute();
    far_apart();
    return mt_end();
}
