/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Derived datatypes on both sides of an operation, every layout with every other. The expected result comes from
 * MPI_Pack and MPI_Unpack, byte by byte, gaps too.
 */
#include "rma.h"

enum { REGION = 32768, START = 1024, REGIONS = 4, INTS = 24, MORE = 40, LAYOUTS = 12 };

/* All describe INTS integers, or a multiple. */
static struct layout {
    MPI_Datatype t;
    int count;
} layouts[LAYOUTS];

static void replace(int i, MPI_Datatype t, int count)
{
    layouts[i] = (struct layout){t, count};
    MPI_Type_commit(&layouts[i].t);
}

static void make_layouts(void)
{
    const int lengths[] = {1, 5, 3, 7, 8}, at[] = {20, 0, -9, 30, 8}, blocks[] = {40, 0, 9, -12, 18, 4, 30, -6};
    const int sizes[] = {4, 5, 6}, subsizes[] = {2, 3, 4}, starts[] = {1, 2, 1};
    const int fsizes[] = {6, 5, 4}, fsubsizes[] = {4, 3, 2}, fstarts[] = {2, 0, 1};
    MPI_Aint bytes[] = {160, 0, 32}, apart[8];
    MPI_Datatype t, u, parts[3] = {MPI_INT, MPI_INT, MPI_INT};
    int counts[] = {10, 4, 1};
    MPI_Type_dup(MPI_INT, &t);
    replace(0, t, INTS);
    MPI_Type_vector(6, 4, 7, MPI_INT, &t);
    replace(1, t, 1);
    MPI_Type_create_hvector(12, 2, -12, MPI_INT, &t); /* begins below its address */
    replace(2, t, 1);
    MPI_Type_indexed(5, lengths, at, MPI_INT, &t);
    replace(3, t, 1);
    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &t);
    replace(4, t, 1);
    MPI_Type_create_subarray(3, fsizes, fsubsizes, fstarts, MPI_ORDER_FORTRAN, MPI_INT, &t);
    replace(5, t, 1);
    MPI_Type_create_resized(MPI_INT, -8, 12, &t); /* each element stands in the middle of a gap */
    replace(6, t, INTS);
    MPI_Type_vector(5, 2, 3, MPI_INT, &parts[2]);
    MPI_Type_create_struct(3, counts, bytes, parts, &t);
    MPI_Type_free(&parts[2]);
    replace(7, t, 1);
    MPI_Type_create_indexed_block(8, 3, blocks, MPI_INT, &t);
    replace(8, t, 1);
    MPI_Type_contiguous(3, MPI_INT, &t);
    MPI_Type_contiguous(2, t, &u);
    MPI_Type_free(&t);
    replace(9, u, 4);
    for (int i = 0; i < 8; i++)
        apart[i] = 100 + (7 - i) * 16;
    MPI_Type_create_hindexed_block(8, 1, apart, MPI_INT, &t);
    MPI_Type_dup(t, &u);
    MPI_Type_free(&t);
    replace(10, u, 3);
    MPI_Type_vector(2, 1, 3, MPI_INT, &t); /* closer together than their length */
    MPI_Type_create_resized(t, 0, 4, &u);
    MPI_Type_free(&t);
    MPI_Type_contiguous(3, u, &t);
    MPI_Type_free(&u);
    MPI_Type_create_resized(t, 4, 32, &u);
    MPI_Type_free(&t);
    replace(11, u, 4);
}

static void fill(char *buf, int salt, int bytes)
{
    for (int i = 0; i < bytes / 4; i++)
        ((int *)buf)[i] = (salt * 7919 + i * 31) % 1000;
}

/* The integers of a buffer in the order of its layout, and back. */
static void take(const char *buf, const struct layout *l, int times, int *ints)
{
    int at = 0;
    MPI_Pack(buf + START, l->count * times, l->t, ints, INTS * times * 4, &at, MPI_COMM_SELF);
    EQ(at, INTS * times * 4);
}

static void give(const int *ints, const struct layout *l, int times, char *buf)
{
    int at = 0;
    MPI_Unpack(ints, INTS * times * 4, &at, buf + START, l->count * times, l->t, MPI_COMM_SELF);
}

static void combine(const int *in, int *inout, int n, MPI_Op op)
{
    for (int i = 0; i < n; i++)
        inout[i] = op == MPI_SUM ? in[i] + inout[i] : op == MPI_MAX ? (in[i] > inout[i] ? in[i] : inout[i]) : in[i];
}

#define OP(r) ((r) % 3 == 0 ? MPI_SUM : (r) % 3 == 1 ? MPI_MAX : MPI_REPLACE)

/*
 * Each rank with its right neighbour, four operations on four regions: a put, a get, an accumulate, and a fetching
 * accumulate, with layout o of its own and layout t there.
 */
static void pair(const struct win *w, enum way way, int o, int t, int times, int salt)
{
    static _Alignas(16) char mine[REGIONS][REGION], result[REGION], want[REGIONS * REGION];
    static int a[INTS * MORE], b[INTS * MORE];
    const struct layout *lo = &layouts[o], *lt = &layouts[t], *lr = &layouts[(o + t + 1) % LAYOUTS];
    int right = (w->me + 1) % w->n, left = (w->me + w->n - 1) % w->n, n = INTS * times;
    int oc = lo->count * times, tc = lt->count * times, rc = lr->count * times;
    own_open(w);
    fill(w->mem, 50 + w->me + salt, REGIONS * REGION);
    own_close(w);
    for (int i = 0; i < REGIONS; i++)
        fill(mine[i], w->me * REGIONS + i + salt, REGION);
    fill(result, 3, REGION);
    way_open(way, w);
#define AT(region) at_of(w, right, (MPI_Aint)(region)*REGION + START)
    MPI_Put(mine[0] + START, oc, lo->t, right, AT(0), tc, lt->t, w->w);
    MPI_Get(mine[1] + START, oc, lo->t, right, AT(1), tc, lt->t, w->w);
    MPI_Accumulate(mine[2] + START, oc, lo->t, right, AT(2), tc, lt->t, OP(salt), w->w);
    MPI_Get_accumulate(mine[3] + START, oc, lo->t, result + START, rc, lr->t, right, AT(3), tc, lt->t, OP(salt + 1),
                       w->w);
#undef AT
    way_close(way, w);

    /* from the right */
    fill(want, 50 + right + salt, REGIONS * REGION);
    take(want + REGION, lt, times, a);
    take(want + 3 * REGION, lt, times, b);
    fill(want, w->me * REGIONS + 1 + salt, REGION);
    give(a, lo, times, want);
    CHECK(!memcmp(mine[1], want, REGION));
    fill(want, 3, REGION);
    give(b, lr, times, want);
    CHECK(!memcmp(result, want, REGION));
    /* from the left to the own part */
    fill(want, 50 + w->me + salt, REGIONS * REGION);
    for (int i = 0; i < REGIONS; i++) {
        MPI_Op op = i == 0 ? MPI_REPLACE : OP(salt + (i == 3));
        if (i == 1)
            continue;
        fill(mine[i], left * REGIONS + i + salt, REGION);
        take(mine[i], lo, times, a);
        take(want + i * REGION, lt, times, b);
        combine(a, b, n, op);
        give(b, lt, times, want + i * REGION);
    }
    own_open(w);
    CHECK(!memcmp(w->mem, want, REGIONS * REGION));
    own_close(w);
    MPI_Barrier(w->comm);
}

/* Several predefined types in one: the same ones in the same order, at other places. */
static void structures(void)
{
    struct here {
        double d;
        char c[3];
        short s;
        int i;
    } * out, *in;
    struct there {
        char c[3];
        int i;
        short s;
        long gap;
        double d;
    } * at;
    enum { N = 300 };
    MPI_Datatype parts[] = {MPI_DOUBLE, MPI_CHAR, MPI_SHORT, MPI_INT}, t, here, there;
    int counts[] = {1, 3, 1, 1};
    MPI_Aint h[] = {offsetof(struct here, d), offsetof(struct here, c), offsetof(struct here, s),
                    offsetof(struct here, i)};
    MPI_Aint e[] = {offsetof(struct there, d), offsetof(struct there, c), offsetof(struct there, s),
                    offsetof(struct there, i)};
    struct win w;
    MPI_Type_create_struct(4, counts, h, parts, &t);
    MPI_Type_create_resized(t, 0, sizeof(struct here), &here);
    MPI_Type_free(&t);
    MPI_Type_create_struct(4, counts, e, parts, &t);
    MPI_Type_create_resized(t, 0, sizeof(struct there), &there);
    MPI_Type_free(&t);
    MPI_Type_commit(&here);
    MPI_Type_commit(&there);
    win_make(&w, CREATE, N * sizeof(struct there));
    out = calloc(N, sizeof(*out));
    in = calloc(N, sizeof(*in));
    CHECK(out && in);
    int right = (w.me + 1) % w.n, left = (w.me + w.n - 1) % w.n;
    for (int i = 0; i < N; i++)
        out[i] = (struct here){i + w.me, {(char)i, 2, 3}, (short)-i, w.me};
    MPI_Win_fence(0, w.w);
    MPI_Put(out, N, here, right, at_of(&w, right, 0), N, there, w.w);
    MPI_Win_fence(0, w.w);
    MPI_Get(in, N, here, right, at_of(&w, right, 0), N, there, w.w);
    MPI_Win_fence(0, w.w);
    at = (struct there *)w.mem;
    for (int i = 0; i < N; i++) {
        CHECK(at[i].d == i + left && at[i].c[0] == (char)i && at[i].c[2] == 3 && at[i].s == -i && at[i].i == left);
        EQ(at[i].gap, 0);
        CHECK(in[i].d == out[i].d && !memcmp(in[i].c, out[i].c, 3) && in[i].s == out[i].s && in[i].i == w.me);
    }
    free(out);
    free(in);
    win_free(&w);
    MPI_Type_free(&here);
    MPI_Type_free(&there);
}

/*
 * Long pieces, posted one by one: with the same pieces on both sides, with others, with short ones, or with none on one
 * side. Several times, because reused memory is sent differently.
 */
enum { DATA = 45000, SPACE = 3 * DATA, FORMS = 4 };

static void forms(MPI_Datatype t[FORMS])
{
    const int lengths[] = {4096, 9000, 12000, 4904, 15000}, at[] = {60000, 0, 20000, 100001, 70007};
    MPI_Type_contiguous(DATA, MPI_BYTE, &t[0]);
    MPI_Type_vector(9, DATA / 9, DATA / 9 + 4001, MPI_BYTE, &t[1]);
    MPI_Type_indexed(5, lengths, at, MPI_BYTE, &t[2]);
    MPI_Type_vector(DATA / 100, 100, 190, MPI_BYTE, &t[3]);
    for (int i = 0; i < FORMS; i++)
        MPI_Type_commit(&t[i]);
}

static void data_of(int r, int salt, char *out)
{
    for (int i = 0; i < DATA; i++)
        out[i] = (char)(r * 31 + salt * 7 + i + (i >> 8));
}

/* The contents of a buffer of SPACE bytes with the data of rank r in this form. */
static void shape(int r, int salt, MPI_Datatype t, char *out)
{
    static char data[DATA];
    int at = 0;
    data_of(r, salt, data);
    memset(out, 0x5a, SPACE);
    MPI_Unpack(data, DATA, &at, out, 1, t, MPI_COMM_SELF);
}

static void long_pieces(enum flavor f, enum way way)
{
    MPI_Datatype t[FORMS];
    struct win w;
    char *out = room(SPACE), *in = room(SPACE), *want = room(SPACE);
    forms(t);
    win_make(&w, f, SPACE);
    int right = (w.me + 1) % w.n, left = (w.me + w.n - 1) % w.n;
    for (int k = 0; k < 2 * FORMS * FORMS; k++) {
        MPI_Datatype here = t[k % FORMS], there = t[k / FORMS % FORMS];
        shape(w.me, k, here, out);
        memset(in, 0x5a, SPACE);
        own_open(&w);
        memset(w.mem, 0x5a, SPACE);
        own_close(&w);
        way_open(way, &w);
        MPI_Put(out, 1, here, right, at_of(&w, right, 0), 1, there, w.w);
        way_close(way, &w);
        way_open(way, &w);
        MPI_Get(in, 1, here, right, at_of(&w, right, 0), 1, there, w.w);
        way_close(way, &w);
        CHECK(!memcmp(in, out, SPACE));
        shape(left, k, there, want);
        own_open(&w);
        CHECK(!memcmp(w.mem, want, SPACE));
        own_close(&w);
        MPI_Barrier(w.comm);
    }
    win_free(&w);
    for (int i = 0; i < FORMS; i++)
        MPI_Type_free(&t[i]);
    free(out);
    free(in);
    free(want);
}

/* Columns of a large matrix there, a contiguous piece here, and the types are freed before the operation is complete.
 */
static void large(enum flavor f, enum way way)
{
    enum { ROWS = 3000, COLUMNS = 40 };
    struct win w;
    MPI_Datatype column, row;
    int *v = room(ROWS * sizeof(int)), *u = room(ROWS * sizeof(int));
    win_make(&w, f, (MPI_Aint)ROWS * COLUMNS * sizeof(int));
    int right = (w.me + 1) % w.n, left = (w.me + w.n - 1) % w.n;
    for (int i = 0; i < ROWS; i++)
        v[i] = w.me + i;
    way_open(way, &w);
    MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &column);
    MPI_Type_contiguous(ROWS, MPI_INT, &row);
    MPI_Type_commit(&column);
    MPI_Type_commit(&row);
    MPI_Put(v, 1, row, right, at_of(&w, right, 4 * 7), 1, column, w.w);
    MPI_Accumulate(v, 1, row, right, at_of(&w, right, 4 * 9), 1, column, MPI_SUM, w.w);
    MPI_Type_free(&column);
    MPI_Type_free(&row);
    way_close(way, &w);
    MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &column);
    MPI_Type_commit(&column);
    way_open(way, &w);
    MPI_Get(u, ROWS, MPI_INT, left, at_of(&w, left, 4 * 9), 1, column, w.w);
    MPI_Type_free(&column);
    way_close(way, &w);
    own_open(&w);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        EQ(((int *)w.mem)[i], i % COLUMNS == 7 || i % COLUMNS == 9 ? left + i / COLUMNS : 0);
    own_close(&w);
    for (int i = 0; i < ROWS; i++)
        EQ(u[i], (left + w.n - 1) % w.n + i);
    win_free(&w);
    free(v);
    free(u);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    make_layouts();
    for (enum flavor f = 0; f < FLAVORS; f++) {
        struct win w;
        win_make(&w, f, REGIONS * REGION);
        for (int o = 0; o < LAYOUTS; o++)
            for (int t = 0; t < LAYOUTS; t++)
                if (f == CREATE || (o + 2 * t) % FLAVORS == (int)f)
                    pair(&w, (enum way)((unsigned)(o + t / 2) % WAYS), o, t, (o + t) % 2 ? MORE : 1, o * LAYOUTS + t);
        win_free(&w);
        large(f, (enum way)(((unsigned)f + 1) % WAYS));
        long_pieces(f, (enum way)(((unsigned)f + 2) % WAYS));
    }
    structures();
    for (int i = 0; i < LAYOUTS; i++)
        MPI_Type_free(&layouts[i].t);
    return mt_end();
}
