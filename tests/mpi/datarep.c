/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data representations of the program (MPI-4.1 section 14.5.3). In "wide" each basic type has a size of its own in the
 * file, and other bytes than in memory; its functions walk any typemap. What the file holds is compared with a model.
 */
#include "mt.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static char name[64];

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

#define OK(call)           EQ(class_of(call), MPI_SUCCESS)
#define GIVES(class, call) EQ(class_of(call), class)

/* ---- the representation ------------------------------------------------------------------------------------------ */

struct basic {
    MPI_Datatype type;
    int size, in_file; /* bytes */
};
static struct basic basics[4];
enum { INT, SHORT, DOUBLE, CHAR };

static void name_basics(void)
{
    basics[INT] = (struct basic){MPI_INT, sizeof(int), 8};
    basics[SHORT] = (struct basic){MPI_SHORT, sizeof(short), 3};
    basics[DOUBLE] = (struct basic){MPI_DOUBLE, sizeof(double), 8};
    basics[CHAR] = (struct basic){MPI_CHAR, 1, 1};
}

static const struct basic *basic_of(MPI_Datatype type)
{
    for (int i = 0; i < 4; i++)
        if (basics[i].type == type)
            return &basics[i];
    return NULL;
}

/* The bytes in the opposite order, complemented, behind zeros. */
static void put(const struct basic *b, const unsigned char *memory, unsigned char *file)
{
    memset(file, 0, (size_t)b->in_file);
    for (int i = 0; i < b->size; i++)
        file[b->in_file - 1 - i] = (unsigned char)~memory[i];
}

static void get(const struct basic *b, unsigned char *memory, const unsigned char *file)
{
    for (int i = 0; i < b->size; i++)
        memory[i] = (unsigned char)~file[b->in_file - 1 - i];
}

/* The typemap of a datatype, by its construction. */
enum { ENTRIES = 256 };
struct map {
    int num;
    MPI_Aint at[ENTRIES];
    const struct basic *basic[ENTRIES];
};

static void add_map(struct map *m, MPI_Datatype type, MPI_Aint at)
{
    int ni, na, nt, combiner, ints[64];
    MPI_Aint aints[64], lb, extent;
    MPI_Datatype types[8];

    if (basic_of(type)) {
        m->at[m->num] = at;
        m->basic[m->num++] = basic_of(type);
        return;
    }
    MPI_Type_get_envelope(type, &ni, &na, &nt, &combiner);
    MPI_Type_get_contents(type, ni, na, nt, ints, aints, types);
    MPI_Type_get_extent(types[0], &lb, &extent);
    switch (combiner) {
    case MPI_COMBINER_CONTIGUOUS:
        for (int i = 0; i < ints[0]; i++)
            add_map(m, types[0], at + i * extent);
        break;
    case MPI_COMBINER_VECTOR:
        for (int i = 0; i < ints[0]; i++)
            for (int j = 0; j < ints[1]; j++)
                add_map(m, types[0], at + (i * ints[2] + j) * extent);
        break;
    case MPI_COMBINER_STRUCT:
        for (int i = 0; i < ints[0]; i++) {
            MPI_Type_get_extent(types[i], &lb, &extent);
            for (int j = 0; j < ints[1 + i]; j++)
                add_map(m, types[i], at + aints[i] + j * extent);
        }
        break;
    default: /* MPI_COMBINER_RESIZED */
        add_map(m, types[0], at);
    }
    for (int i = 0; i < nt; i++)
        if (!basic_of(types[i]))
            MPI_Type_free(&types[i]);
}

/* extra_state */
struct wide {
    int fails;      /* code that the functions return */
    long converted; /* entries */
};

static int extent_of(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
    const struct basic *b = basic_of(type);
    struct wide *w = extra;

    CHECK(b != NULL);
    *extent = b ? b->in_file : -1;
    return w->fails;
}

static int convert(bool write, void *buf, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset position,
                   struct wide *w)
{
    struct map m = {0};
    unsigned char *at = file;
    MPI_Aint lb, extent;

    if (w->fails)
        return w->fails;
    add_map(&m, type, 0);
    MPI_Type_get_extent(type, &lb, &extent);
    for (MPI_Count i = position; i < position + count; i++) {
        const struct basic *b = m.basic[i % m.num];
        unsigned char *memory = (unsigned char *)buf + i / m.num * extent + m.at[i % m.num];

        if (write)
            put(b, memory, at);
        else
            get(b, memory, at);
        at += b->in_file;
    }
    w->converted += count;
    return MPI_SUCCESS;
}

static int read_wide(void *buf, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra)
{
    return convert(false, buf, type, count, file, position, extra);
}

static int write_wide(void *buf, MPI_Datatype type, int count, void *file, MPI_Offset position, void *extra)
{
    return convert(true, buf, type, count, file, position, extra);
}

static int read_wide_c(void *buf, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset position, void *extra)
{
    return convert(false, buf, type, count, file, position, extra);
}

static int write_wide_c(void *buf, MPI_Datatype type, MPI_Count count, void *file, MPI_Offset position, void *extra)
{
    return convert(true, buf, type, count, file, position, extra);
}

static struct wide wide, wide_c, breaks, one_way;

static void registering(void)
{
    char longest[MPI_MAX_DATAREP_STRING + 1];

    memset(longest, 'x', sizeof(longest));
    longest[MPI_MAX_DATAREP_STRING] = '\0';
    OK(MPI_Register_datarep("wide", read_wide, write_wide, extent_of, &wide));
    OK(MPI_Register_datarep_c("wide, large", read_wide_c, write_wide_c, extent_of, &wide_c));
    OK(MPI_Register_datarep("breaks", read_wide, write_wide, extent_of, &breaks));
    OK(MPI_Register_datarep("one way", read_wide, MPI_CONVERSION_FN_NULL, extent_of, &one_way));
    OK(MPI_Register_datarep("as in memory", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, &wide));
    GIVES(MPI_ERR_DUP_DATAREP, MPI_Register_datarep("wide", read_wide, write_wide, extent_of, &wide));
    GIVES(MPI_ERR_DUP_DATAREP, MPI_Register_datarep_c("native", read_wide_c, write_wide_c, extent_of, &wide));
    GIVES(MPI_ERR_ARG, MPI_Register_datarep(longest, read_wide, write_wide, extent_of, &wide));
    longest[MPI_MAX_DATAREP_STRING - 1] = '\0';
    OK(MPI_Register_datarep(longest, read_wide, write_wide, extent_of, &wide));
    GIVES(MPI_ERR_ARG, MPI_Register_datarep("no extents", read_wide, write_wide, NULL, &wide));
    GIVES(MPI_ERR_ARG, MPI_Register_datarep(NULL, read_wide, write_wide, extent_of, &wide));
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

struct record {
    char tag;
    double x;
    short n[2];
    int id;
};

static MPI_Datatype record_in_memory(void)
{
    const MPI_Aint at[] = {offsetof(struct record, tag), offsetof(struct record, x), offsetof(struct record, n),
                           offsetof(struct record, id)};
    MPI_Datatype t, whole;

    MPI_Type_create_struct(4, (int[]){1, 1, 2, 1}, at, (MPI_Datatype[]){MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_INT}, &t);
    MPI_Type_create_resized(t, 0, sizeof(struct record), &whole);
    MPI_Type_free(&t);
    MPI_Type_commit(&whole);
    return whole;
}

/* Displacements in bytes are the file's, so they come from the representation's extents. */
static MPI_Datatype record_in_file(MPI_File f, MPI_Aint *bytes)
{
    const int lengths[] = {1, 1, 2, 1};
    const MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_INT};
    MPI_Aint at[4], extent;
    MPI_Datatype t;

    *bytes = 0;
    for (int i = 0; i < 4; i++) {
        at[i] = *bytes;
        OK(MPI_File_get_type_extent(f, types[i], &extent));
        *bytes += lengths[i] * extent;
    }
    MPI_Type_create_struct(4, lengths, at, types, &t);
    MPI_Type_commit(&t);
    return t;
}

static struct record record(int owner, int i)
{
    struct record r;

    memset(&r, 0x77, sizeof(r));
    r.tag = (char)('a' + owner);
    r.x = 1.5 * owner - i;
    r.n[0] = (short)i;
    r.n[1] = (short)(-owner);
    r.id = 1000 * owner + i;
    return r;
}

static bool is_same(const struct record *a, const struct record *b)
{
    return a->tag == b->tag && a->x == b->x && a->n[0] == b->n[0] && a->n[1] == b->n[1] && a->id == b->id;
}

enum { RECORDS = 50, RECORD_BYTES = 1 + 8 + 6 + 8 };

static void put_record(const struct record *r, unsigned char *file)
{
    put(&basics[CHAR], (const unsigned char *)&r->tag, file);
    put(&basics[DOUBLE], (const unsigned char *)&r->x, file + 1);
    put(&basics[SHORT], (const unsigned char *)&r->n[0], file + 9);
    put(&basics[SHORT], (const unsigned char *)&r->n[1], file + 12);
    put(&basics[INT], (const unsigned char *)&r->id, file + 15);
}

static MPI_File open_file(const char *together)
{
    MPI_Info info;
    MPI_File f;

    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", together);
    MPI_Info_set(info, "romio_cb_read", together);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f));
    MPI_Info_free(&info);
    OK(MPI_File_set_size(f, 0));
    return f;
}

/* Records of all ranks in turn, from a memory type with padding. */
static void records(const char *datarep, struct wide *w, const char *together)
{
    MPI_File f = open_file(together);
    MPI_Datatype memory = record_in_memory(), etype, place, filetype;
    MPI_Aint bytes;
    MPI_Status st;
    struct record mine[RECORDS], back[RECORDS];
    unsigned char raw[RECORD_BYTES], model[RECORD_BYTES];
    const long before = w->converted;
    int count;

    OK(MPI_File_set_view(f, 0, MPI_CHAR, MPI_CHAR, datarep, MPI_INFO_NULL));
    etype = record_in_file(f, &bytes);
    EQ(bytes, RECORD_BYTES);
    MPI_Type_dup(etype, &place);
    MPI_Type_create_resized(etype, 0, size * bytes, &filetype);
    MPI_Type_commit(&filetype);
    OK(MPI_File_set_view(f, rank * bytes, etype, filetype, datarep, MPI_INFO_NULL));
    for (int i = 0; i < RECORDS; i++)
        mine[i] = record(rank, i);
    OK(MPI_File_write_all(f, mine, RECORDS, memory, &st));
    MPI_Get_count(&st, memory, &count);
    EQ(count, RECORDS);
    EQ(w->converted - before, 5 * RECORDS);
    OK(MPI_File_sync(f));
    MPI_Barrier(MPI_COMM_WORLD);
    memset(back, 0, sizeof(back));
    OK(MPI_File_read_at_all(f, 0, back, RECORDS, memory, &st));
    for (int i = 0; i < RECORDS; i++)
        CHECK(is_same(&back[i], &mine[i]));
    EQ(w->converted - before, 10 * RECORDS);
    OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    for (int i = 0; i < RECORDS; i++) {
        const struct record r = record((rank + 1) % size, i);

        put_record(&r, model);
        OK(MPI_File_read_at(f, (i * size + (rank + 1) % size) * RECORD_BYTES, raw, RECORD_BYTES, MPI_BYTE, &st));
        CHECK(!memcmp(raw, model, RECORD_BYTES));
    }
    OK(MPI_File_close(&f));
    MPI_Type_free(&memory);
    MPI_Type_free(&etype);
    MPI_Type_free(&place);
    MPI_Type_free(&filetype);
}

/* Holes in memory; reading behind the end of the file; questions about the view. */
static void vectors(void)
{
    MPI_File f = open_file("automatic");
    MPI_Datatype memory, etype, filetype;
    MPI_Offset disp, end;
    MPI_Aint extent;
    MPI_Status st;
    char datarep[MPI_MAX_DATAREP_STRING];
    const int last[] = {9, 11, 12, 14, 15};
    int numbers[20], back[20], count;

    MPI_Type_vector(3, 2, 3, MPI_INT, &memory);
    MPI_Type_commit(&memory);
    for (int i = 0; i < 20; i++)
        numbers[i] = 100 * rank + i;
    OK(MPI_File_set_view(f, 4, MPI_INT, MPI_INT, "wide", MPI_INFO_NULL));
    OK(MPI_File_get_view(f, &disp, &etype, &filetype, datarep));
    CHECK(disp == 4 && etype == MPI_INT && filetype == MPI_INT && !strcmp(datarep, "wide"));
    OK(MPI_File_get_type_extent(f, MPI_SHORT, &extent));
    EQ(extent, 3);
    OK(MPI_File_get_byte_offset(f, 5, &disp));
    EQ(disp, 4 + 5 * 8);
    OK(MPI_File_write_at_all(f, 12 * rank, numbers, 2, memory, &st));
    MPI_Get_count(&st, memory, &count);
    EQ(count, 2);
    OK(MPI_File_sync(f));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_seek(f, 0, MPI_SEEK_END));
    OK(MPI_File_get_position(f, &end));
    EQ(end, 12 * size);
    memset(back, -1, sizeof(back));
    OK(MPI_File_read_at(f, 12 * size - 5, back, 8, MPI_INT, &st));
    MPI_Get_count(&st, MPI_INT, &count);
    EQ(count, 5);
    for (int i = 0; i < 5; i++)
        EQ(back[i], 100 * (size - 1) + last[i]);
    EQ(back[5], -1);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_close(&f));
    MPI_Type_free(&memory);
}

/* One rank's function fails: its access does, and a collective one of all. */
static void failures(const char *together)
{
    MPI_File f = open_file(together);
    int numbers[4] = {1, 2, 3, 4}, code;

    OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "breaks", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(f, 4 * rank, numbers, 4, MPI_INT, MPI_STATUS_IGNORE));
    breaks.fails = rank == 0 ? 77 : 0;
    code = MPI_File_read_at_all(f, 4 * rank, numbers, 4, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(class_of(code) == MPI_ERR_CONVERSION);
    code = MPI_File_write_at_all(f, 4 * rank, numbers, 4, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(class_of(code) == MPI_ERR_CONVERSION);
    GIVES(rank ? MPI_SUCCESS : MPI_ERR_CONVERSION, MPI_File_read_at(f, 0, numbers, 1, MPI_INT, MPI_STATUS_IGNORE));
    /* a type that has not been measured before: the extent function fails */
    code = MPI_File_set_view(f, 0, MPI_DOUBLE, MPI_DOUBLE, "breaks", MPI_INFO_NULL);
    if (!strcmp(together, "enable"))
        CHECK(class_of(code) == MPI_ERR_CONVERSION);
    breaks.fails = 0;
    OK(MPI_File_set_view(f, 0, MPI_DOUBLE, MPI_DOUBLE, "breaks", MPI_INFO_NULL));
    OK(MPI_File_close(&f));
}

/* No function: bytes as in memory, which needs the sizes of memory. */
static void one_direction(void)
{
    MPI_File f = open_file("automatic");
    char letters[4] = "abc", back[4] = "";
    int number = 1;

    OK(MPI_File_set_view(f, 0, MPI_CHAR, MPI_CHAR, "one way", MPI_INFO_NULL));
    OK(MPI_File_write_at(f, 4 * rank, letters, 4, MPI_CHAR, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(f, 4 * rank, back, 4, MPI_CHAR, MPI_STATUS_IGNORE));
    for (int i = 0; i < 4; i++)
        EQ(back[i], (char)~letters[i]);
    OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "one way", MPI_INFO_NULL));
    GIVES(MPI_ERR_CONVERSION, MPI_File_write_at(f, rank, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "as in memory", MPI_INFO_NULL));
    OK(MPI_File_write_at(f, rank, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    number = 0;
    OK(MPI_File_read_at(f, rank, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQ(number, 1);
    if (size > 1)
        GIVES(MPI_ERR_NOT_SAME,
              MPI_File_set_view(f, 0, MPI_INT, MPI_INT, rank ? "wide" : "wide, large", MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_close(&f));
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    name_basics();
    snprintf(name, sizeof(name), "/tmp/mrmpi-datarep.%d", (int)getpid());
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
    registering();
    records("wide", &wide, "enable");
    records("wide", &wide, "disable");
    records("wide, large", &wide_c, "enable");
    vectors();
    failures("enable");
    failures("disable");
    one_direction();
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank)
        unlink(name);
    return mt_end();
}
