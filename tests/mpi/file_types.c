/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes of views: types shorter in external32 than in memory, types that show bytes twice, and invalid types. A
 * view of MPI_LONG has the same bytes in external32 as an equal one of MPI_INT, since both have 4 bytes there; likewise
 * MPI_WCHAR and MPI_SHORT with 2.
 */
#include "mt.h"

#include <stdbool.h>
#include <unistd.h>
#include <wchar.h>

static char name[2][64];

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

#define OK(call) EQ(class_of(call), MPI_SUCCESS)

/* ---- external32 ---- */

enum { KINDS = 18 };

/* unit: bytes of an element in the file, for displacements in bytes. */
static MPI_Datatype make(int kind, MPI_Datatype old, int unit)
{
    const int lengths[] = {2, 1, 3}, places[] = {0, 4, 9};
    const MPI_Aint far[] = {unit, 5 * unit, 9 * unit};
    const MPI_Count wide[] = {2, 1, 3}, wide_far[] = {unit, 5 * unit, 9 * unit};
    const MPI_Datatype olds[] = {old, old, old};
    MPI_Datatype t, inner = MPI_DATATYPE_NULL;
    switch (kind) {
    case 0:
        MPI_Type_contiguous(1, old, &t);
        break;
    case 1:
        MPI_Type_contiguous(3, old, &t);
        break;
    case 2:
        MPI_Type_vector(3, 2, 5, old, &t);
        break;
    case 3:
        MPI_Type_indexed(3, lengths, places, old, &t);
        break;
    case 4:
        MPI_Type_create_indexed_block(3, 2, places, old, &t);
        break;
    case 5:
    case 6:
        MPI_Type_create_subarray(2, (int[]){4, 6}, (int[]){2, 3}, (int[]){1, 2},
                                 kind == 5 ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old, &t);
        break;
    case 7:
        MPI_Type_create_darray(size, rank, 2, (int[]){4 * size, 5}, (int[]){MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE},
                               (int[]){MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, (int[]){size, 1},
                               MPI_ORDER_C, old, &t);
        break;
    case 8:
        MPI_Type_create_darray(size, rank, 2, (int[]){3, 5 * size + 1},
                               (int[]){MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC},
                               (int[]){MPI_DISTRIBUTE_DFLT_DARG, 2}, (int[]){1, size}, MPI_ORDER_FORTRAN, old, &t);
        break;
    case 9:
        MPI_Type_create_hvector(3, 2, 7 * unit + 1, old, &t);
        break;
    case 10:
        MPI_Type_create_hindexed(3, lengths, far, old, &t);
        break;
    case 11:
        MPI_Type_create_hindexed_block(3, 3, far, old, &t);
        break;
    case 12:
        MPI_Type_create_struct(3, lengths, far, olds, &t);
        break;
    case 13:
        inner = make(2, old, unit);
        MPI_Type_create_resized(inner, 0, 20 * unit, &t);
        break;
    case 14:
        inner = make(3, old, unit);
        MPI_Type_vector(2, 1, 2, inner, &t);
        break;
    case 15:
        inner = make(5, old, unit);
        MPI_Type_create_subarray(1, (int[]){3}, (int[]){1}, (int[]){1}, MPI_ORDER_C, inner, &t);
        break;
    case 16:
        MPI_Type_create_hindexed_c(3, wide, wide_far, old, &t);
        break;
    default:
        MPI_Type_create_struct_c(3, wide, wide_far, olds, &inner);
        MPI_Type_dup(inner, &t);
    }
    MPI_Type_commit(&t);
    if (inner != MPI_DATATYPE_NULL)
        MPI_Type_free(&inner);
    return t;
}

static const struct pair {
    MPI_Datatype in_memory, short_one;
    int bytes, unit; /* of in_memory, of both in the file */
} pairs[] = {{MPI_LONG, MPI_INT, sizeof(long), 4},
             {MPI_UNSIGNED_LONG, MPI_UNSIGNED, sizeof(long), 4},
             {MPI_WCHAR, MPI_SHORT, sizeof(wchar_t), 2},
             {MPI_LONG_INT, MPI_2INT, 0, 8}};

struct long_int {
    long value;
    int index;
};

/* n values, as elements of memory and as short ones. */
static void fill(const struct pair *p, int n, void *from, void *short_ones)
{
    for (int i = 0; i < n; i++) {
        const int v = 1 + rank * 1000 + i;
        if (p->in_memory == MPI_WCHAR) {
            ((wchar_t *)from)[i] = v;
            ((short *)short_ones)[i] = (short)v;
        } else if (p->in_memory == MPI_LONG_INT) {
            ((struct long_int *)from)[i] = (struct long_int){i % 2 ? -v : v, 7 * v};
            ((int *)short_ones)[2 * i] = i % 2 ? -v : v;
            ((int *)short_ones)[2 * i + 1] = 7 * v;
        } else {
            const bool minus = p->in_memory == MPI_LONG && i % 2;
            ((long *)from)[i] = minus ? -70000L * v : 70000L * v;
            ((int *)short_ones)[i] = minus ? -70000 * v : 70000 * v;
        }
    }
}

enum { ROOM = 400 };

static void same_files(void)
{
    static char a[1 << 16], b[1 << 16];
    MPI_File f;
    MPI_Status st;
    int na = 0, nb = 0;
    OK(MPI_File_open(MPI_COMM_SELF, name[0], MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
    OK(MPI_File_read(f, a, sizeof(a), MPI_BYTE, &st));
    MPI_Get_count(&st, MPI_BYTE, &na);
    MPI_File_close(&f);
    OK(MPI_File_open(MPI_COMM_SELF, name[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
    OK(MPI_File_read(f, b, sizeof(b), MPI_BYTE, &st));
    MPI_Get_count(&st, MPI_BYTE, &nb);
    MPI_File_close(&f);
    EQ(na, nb);
    CHECK(na > 0 && na < (int)sizeof(a) && !memcmp(a, b, (size_t)na));
}

static void external(const struct pair *p, int kind, bool together)
{
    static char from[ROOM * 16], back[ROOM * 16], short_ones[ROOM * 8];
    const MPI_Datatype t[2] = {make(kind, p->in_memory, p->unit), make(kind, p->short_one, p->unit)};
    const MPI_Offset disp = kind == 7 || kind == 8 ? 5 : 5 + 3000 * rank;
    MPI_Offset at[2], end[2];
    MPI_Aint extent[2];
    MPI_Status st;
    MPI_File f[2];
    int n, elements;
    MPI_Type_size(t[1], &elements);
    elements /= p->unit;
    n = 3 * elements + elements / 2; /* the last copy is not full */
    CHECK(n <= ROOM);
    fill(p, n, from, short_ones);
    for (int k = 0; k < 2; k++) {
        const MPI_Datatype e = k ? p->short_one : p->in_memory;
        OK(MPI_File_open(MPI_COMM_WORLD, name[k], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f[k]));
        OK(MPI_File_set_size(f[k], 0));
        OK(MPI_File_set_view(f[k], disp, e, t[k], "external32", MPI_INFO_NULL));
        OK((together ? MPI_File_write_all : MPI_File_write)(f[k], k ? short_ones : from, n, e, &st));
        int moved;
        MPI_Get_count(&st, e, &moved);
        EQ(moved, n);
        OK(MPI_File_get_type_extent(f[k], t[k], &extent[k]));
        OK(MPI_File_get_byte_offset(f[k], n - 1, &at[k]));
        OK(MPI_File_sync(f[k]));
        MPI_Barrier(MPI_COMM_WORLD);
        OK(MPI_File_seek(f[k], 0, MPI_SEEK_END));
        OK(MPI_File_get_position(f[k], &end[k]));
    }
    EQ(extent[0], extent[1]);
    EQ(at[0], at[1]);
    EQ(end[0], end[1]);
    /* one element later, and more than exist behind the last element of the last rank */
    memset(back, 0, sizeof(back));
    OK((together ? MPI_File_read_at_all : MPI_File_read_at)(f[0], 1, back, n - 1, p->in_memory, &st));
    MPI_Get_count(&st, p->in_memory, &elements);
    EQ(elements, n - 1);
    for (int i = 0; i < n - 1; i++) {
        if (p->in_memory == MPI_LONG_INT) {
            const struct long_int *x = (struct long_int *)from + i + 1, *y = (struct long_int *)back + i;
            CHECK(x->value == y->value && x->index == y->index);
        } else {
            CHECK(!memcmp(from + (i + 1) * p->bytes, back + i * p->bytes, (size_t)p->bytes));
        }
    }
    MPI_Datatype etype, filetype;
    MPI_Offset got;
    char datarep[MPI_MAX_DATAREP_STRING];
    int bytes[2];
    OK(MPI_File_get_view(f[0], &got, &etype, &filetype, datarep));
    MPI_Type_size(filetype, &bytes[0]);
    MPI_Type_size(t[0], &bytes[1]);
    CHECK(got == disp && etype == p->in_memory && bytes[0] == bytes[1] && !strcmp(datarep, "external32"));
    MPI_Type_free(&filetype);
    for (int k = 0; k < 2; k++)
        OK(MPI_File_close(&f[k]));
    MPI_Barrier(MPI_COMM_WORLD);
    same_files();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < 2; k++)
        MPI_Type_free(&(MPI_Datatype){t[k]});
}

/* ---- bytes shown twice ---- */

/* Blocks of bytes in a filetype; copies of it are `extent` apart. */
static const struct overlap {
    int n, lengths[4], places[4], extent;
} overlaps[] = {
    {2, {4, 4}, {0, 0}, 4},           {2, {4, 4}, {0, 2}, 8},
    {3, {1, 8, 2}, {3, 3, 4}, 16},    {4, {2, 2, 2, 2}, {1, 1, 1, 1}, 5},
    {3, {100, 1, 1}, {0, 1, 2}, 128}, {3, {3, 3, 3}, {0, 1, 2}, 5},
};

static MPI_Datatype shown(const struct overlap *o)
{
    MPI_Datatype blocks, t;
    MPI_Type_indexed(o->n, o->lengths, o->places, MPI_BYTE, &blocks);
    MPI_Type_create_resized(blocks, 0, o->extent, &t);
    MPI_Type_free(&blocks);
    MPI_Type_commit(&t);
    return t;
}

/* Where the ith byte of the view is. */
static int place_of(const struct overlap *o, int i)
{
    int per = 0, tile;
    for (int k = 0; k < o->n; k++)
        per += o->lengths[k];
    tile = i / per;
    i %= per;
    for (int k = 0;; i -= o->lengths[k++])
        if (i < o->lengths[k])
            return tile * o->extent + o->places[k] + i;
}

static void look(MPI_File f, const struct overlap *o, int disp, int file_bytes, bool all)
{
    static unsigned char got[2000];
    for (int from = 0; from < 40; from += 7)
        for (int n = 0; n < 1500; n += 1 + n * 2) {
            MPI_Status st;
            int moved, want = 0;
            memset(got, 0xee, sizeof(got));
            OK((all ? MPI_File_read_at_all : MPI_File_read_at)(f, from, got, n, MPI_BYTE, &st));
            MPI_Get_count(&st, MPI_BYTE, &moved);
            while (want < n && disp + place_of(o, from + want) < file_bytes)
                want++;
            EQ(moved, want);
            for (int i = 0; i < n; i++)
                EQ(got[i], i < want ? (unsigned char)(3 * (disp + place_of(o, from + i))) : 0xee);
        }
}

static void shown_twice(void)
{
    enum { BYTES = 1000 };
    unsigned char bytes[BYTES];
    MPI_File f;
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(3 * i);
    OK(MPI_File_open(MPI_COMM_WORLD, name[0], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    OK(MPI_File_set_size(f, 0));
    if (!rank)
        OK(MPI_File_write_at(f, 0, bytes, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    for (size_t k = 0; k < sizeof(overlaps) / sizeof(overlaps[0]); k++) { /* not where somebody may write */
        MPI_Datatype t = shown(&overlaps[k]);
        EQ(class_of(MPI_File_set_view(f, 0, MPI_BYTE, t, "native", MPI_INFO_NULL)), MPI_ERR_IO);
        MPI_Type_free(&t);
    }
    OK(MPI_File_close(&f));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_open(MPI_COMM_WORLD, name[0], MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
    for (size_t k = 0; k < sizeof(overlaps) / sizeof(overlaps[0]); k++) {
        static const struct overlap plain = {1, {1}, {0}, 1};
        const struct overlap *mine = rank % 3 == 1 ? &plain : &overlaps[k]; /* some see each byte once */
        const int disp = rank * 5;
        MPI_Datatype t = shown(mine);
        OK(MPI_File_set_view(f, disp, MPI_BYTE, t, k % 2 ? "external32" : "native", MPI_INFO_NULL));
        for (int atomic = 0; atomic < 2; atomic++) {
            OK(MPI_File_set_atomicity(f, atomic));
            look(f, mine, disp, BYTES, false);
            look(f, mine, disp, BYTES, true);
        }
        MPI_Type_free(&t);
    }
    OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    look(f, &(struct overlap){1, {1}, {0}, 1}, 0, BYTES, true);
    OK(MPI_File_close(&f));
}

/* ---- wrong views, and the classes that ROMIO has for them ---- */

static void wrong(int amode)
{
    MPI_File f;
    MPI_Datatype t[4], three;
    MPI_Type_indexed(2, (int[]){1, 1}, (int[]){3, 1}, MPI_INT, &t[0]);
    MPI_Type_indexed(2, (int[]){1, 1}, (int[]){-2, 1}, MPI_INT, &t[1]);
    MPI_Type_vector(2, 1, -3, MPI_INT, &t[2]);
    MPI_Type_contiguous(3, MPI_INT, &three);
    MPI_Type_contiguous(2, MPI_INT, &t[3]);
    for (int i = 0; i < 3; i++)
        MPI_Type_commit(&t[i]);
    MPI_Type_commit(&three);
    OK(MPI_File_open(MPI_COMM_WORLD, name[0], amode, MPI_INFO_NULL, &f));
    for (int i = 0; i < 3; i++)
        EQ(class_of(MPI_File_set_view(f, 0, MPI_INT, t[i], "native", MPI_INFO_NULL)), MPI_ERR_IO);
    EQ(class_of(MPI_File_set_view(f, 0, MPI_INT, t[3], "native", MPI_INFO_NULL)), MPI_ERR_TYPE); /* not committed */
    EQ(class_of(MPI_File_set_view(f, 0, MPI_DOUBLE, MPI_INT, "native", MPI_INFO_NULL)), MPI_ERR_ARG);
    EQ(class_of(MPI_File_set_view(f, 0, MPI_DOUBLE, three, "native", MPI_INFO_NULL)), MPI_ERR_ARG);
    EQ(class_of(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, NULL, MPI_INFO_NULL)), MPI_ERR_UNSUPPORTED_DATAREP);
    EQ(class_of(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "mine", MPI_INFO_NULL)), MPI_ERR_UNSUPPORTED_DATAREP);
    EQ(class_of(MPI_File_set_view(f, -1, MPI_INT, MPI_INT, "native", MPI_INFO_NULL)), MPI_ERR_ARG);
    OK(MPI_File_close(&f));
    for (int i = 0; i < 4; i++)
        MPI_Type_free(&t[i]);
    MPI_Type_free(&three);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    if (!rank)
        for (int k = 0; k < 2; k++)
            snprintf(name[k], sizeof(name[k]), "/tmp/mrmpi-file_types-%ld-%d", (long)getpid(), k);
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
    for (size_t p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++)
        for (int kind = 0; kind < KINDS; kind++)
            external(&pairs[p], kind, kind % 2 == (int)p % 2);
    shown_twice();
    wrong(MPI_MODE_RDWR);
    wrong(MPI_MODE_RDONLY);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank)
        for (int k = 0; k < 2; k++)
            unlink(name[k]);
    return mt_end();
}
