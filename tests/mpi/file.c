/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files (MPI-4.1 chapter 14): modes and errors, sizes, pointers (individual, shared, in the order of ranks), split and
 * nonblocking accesses, atomicity, data representations, hints, error handlers. Views are in file_views.c.
 * file threads: several threads at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAIL(...)                                                                                                      \
    do {                                                                                                               \
        printf("rank %d, line %d: ", rank, __LINE__);                                                                  \
        printf(__VA_ARGS__);                                                                                           \
        printf("\n");                                                                                                  \
        fflush(stdout);                                                                                                \
        MPI_Abort(MPI_COMM_WORLD, 1);                                                                                  \
    } while (0)
#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what))                                                                                                   \
            FAIL("not so: %s", #what);                                                                                 \
    } while (0)
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_)                                                                                                     \
            FAIL("%s: %s", #call, text_of(code_));                                                                     \
    } while (0)
#define GIVES(class, call)                                                                                             \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (class_of(code_) != (class))                                                                                \
            FAIL("%s gives class %d (%s), not %s", #call, class_of(code_), text_of(code_), #class);                    \
    } while (0)

static int rank, size;
static char name[256], other[300];

static const char *text_of(int code)
{
    static char text[MPI_MAX_ERROR_STRING];
    int len;

    MPI_Error_string(code, text, &len);
    return text;
}

static int class_of(int code)
{
    int class;

    MPI_Error_class(code, &class);
    return class;
}

static MPI_File open_new(int more)
{
    MPI_File f;

    if (rank == 0)
        unlink(name);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | more, MPI_INFO_NULL, &f));
    return f;
}

static int count_of(const MPI_Status *st, MPI_Datatype t)
{
    int n;

    MPI_Get_count(st, t, &n);
    return n;
}

static void modes(void)
{
    MPI_File f = open_new(MPI_MODE_EXCL), g;
    MPI_Offset bytes;
    MPI_Group group;
    int amode, members;

    OK(MPI_File_get_amode(f, &amode));
    CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_EXCL));
    OK(MPI_File_get_group(f, &group));
    MPI_Group_size(group, &members);
    CHECK(members == size);
    MPI_Group_free(&group);
    OK(MPI_File_set_size(f, 1000));
    OK(MPI_File_get_size(f, &bytes));
    CHECK(bytes == 1000);
    OK(MPI_File_preallocate(f, 5000));
    OK(MPI_File_get_size(f, &bytes));
    CHECK(bytes == 5000);
    OK(MPI_File_preallocate(f, 10));
    OK(MPI_File_get_size(f, &bytes));
    CHECK(bytes == 5000);
    OK(MPI_File_sync(f));
    GIVES(MPI_ERR_ARG, MPI_File_set_size(f, -1));
    OK(MPI_File_close(&f));
    CHECK(f == MPI_FILE_NULL);

    GIVES(MPI_ERR_FILE_EXISTS,
          MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_EXCL, MPI_INFO_NULL, &f));
    CHECK(f == MPI_FILE_NULL);
    GIVES(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_WORLD, other, MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
    GIVES(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, name, 0, MPI_INFO_NULL, &f));
    GIVES(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    GIVES(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &f));
    if (size > 1)
        GIVES(MPI_ERR_AMODE,
              MPI_File_open(MPI_COMM_WORLD, name, rank ? MPI_MODE_RDONLY : MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    GIVES(MPI_ERR_FILE, MPI_File_get_size(MPI_FILE_NULL, &bytes));

    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
    GIVES(MPI_ERR_READ_ONLY, MPI_File_write(f, "x", 1, MPI_CHAR, MPI_STATUS_IGNORE));
    GIVES(MPI_ERR_READ_ONLY, MPI_File_set_size(f, 1));
    OK(MPI_File_close(&f));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL, &f));
    GIVES(MPI_ERR_ACCESS, MPI_File_read(f, &amode, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_get_position(f, &bytes));
    CHECK(bytes == 5000);
    OK(MPI_File_get_position_shared(f, &bytes));
    CHECK(bytes == 5000);
    OK(MPI_File_close(&f));

    /* each process a file of its own */
    snprintf(other, sizeof(other), "%s.%d", name, rank);
    OK(MPI_File_open(MPI_COMM_SELF, other, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &g));
    OK(MPI_File_write_shared(g, other, 10, MPI_CHAR, MPI_STATUS_IGNORE));
    CHECK(!access(other, F_OK));
    OK(MPI_File_close(&g));
    CHECK(access(other, F_OK) && errno == ENOENT);
    GIVES(MPI_ERR_NO_SUCH_FILE, MPI_File_delete(other, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        OK(MPI_File_delete(name, MPI_INFO_NULL));
}

static void pointers(void)
{
    enum { N = 1000 };
    MPI_File f = open_new(0);
    MPI_Status st;
    MPI_Offset at;
    int out[N], in[N + 10];

    for (int i = 0; i < N; i++)
        out[i] = rank * N + i;
    OK(MPI_File_set_view(f, 100, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at(f, (MPI_Offset)rank * N, out, N, MPI_INT, &st));
    CHECK(count_of(&st, MPI_INT) == N);
    OK(MPI_File_get_position(f, &at));
    CHECK(at == 0);
    OK(MPI_File_sync(f));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_seek(f, (MPI_Offset)((rank + 1) % size) * N, MPI_SEEK_SET));
    OK(MPI_File_read(f, in, N, MPI_INT, &st));
    CHECK(count_of(&st, MPI_INT) == N);
    for (int i = 0; i < N; i++)
        CHECK(in[i] == (rank + 1) % size * N + i);
    OK(MPI_File_get_position(f, &at));
    CHECK(at == (MPI_Offset)((rank + 1) % size + 1) * N);
    OK(MPI_File_seek(f, -5, MPI_SEEK_CUR));
    OK(MPI_File_read(f, in, 1, MPI_INT, &st));
    CHECK(in[0] == ((rank + 1) % size + 1) * N - 5);
    OK(MPI_File_seek(f, -3, MPI_SEEK_END));
    OK(MPI_File_read(f, in, 10, MPI_INT, &st)); /* the file ends */
    CHECK(count_of(&st, MPI_INT) == 3 && in[2] == size * N - 1);
    OK(MPI_File_read(f, in, 10, MPI_INT, &st));
    CHECK(count_of(&st, MPI_INT) == 0);
    GIVES(MPI_ERR_ARG, MPI_File_seek(f, -1, MPI_SEEK_SET));
    GIVES(MPI_ERR_ARG, MPI_File_seek(f, 0, 12345));
    GIVES(MPI_ERR_ARG, MPI_File_read_at(f, -1, in, 1, MPI_INT, &st));
    GIVES(MPI_ERR_COUNT, MPI_File_read_at(f, 0, in, -1, MPI_INT, &st));
    GIVES(MPI_ERR_ARG, MPI_File_read_at(f, 0, in, 3, MPI_CHAR, &st)); /* no whole etypes */
    OK(MPI_File_get_byte_offset(f, 7, &at));
    CHECK(at == 128);
    /* beyond any possible file */
    GIVES(MPI_ERR_ARG, MPI_File_read_at(f, INT64_MAX / 2, in, 1, MPI_INT, &st));
    GIVES(MPI_ERR_ARG, MPI_File_write_at_all(f, INT64_MAX / 4, in, 1, MPI_INT, &st));
    GIVES(MPI_ERR_ARG, MPI_File_get_byte_offset(f, INT64_MAX - 1, &at));
    OK(MPI_File_seek(f, INT64_MAX, MPI_SEEK_SET));
    GIVES(MPI_ERR_ARG, MPI_File_seek(f, 1, MPI_SEEK_CUR));
    GIVES(MPI_ERR_ARG, MPI_File_read(f, in, 1, MPI_INT, &st));
    OK(MPI_File_close(&f));
}

static void shared_pointers(void)
{
    enum { TURNS = 20, N = 30 };
    MPI_File f = open_new(0);
    MPI_Status st;
    MPI_Offset at;
    int record[N], *all, seen = 0, mine = 100 + rank;

    OK(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int t = 0; t < TURNS; t++) {
        for (int i = 0; i < N; i++)
            record[i] = rank * TURNS + t;
        OK(MPI_File_write_shared(f, record, N, MPI_INT, &st));
        CHECK(count_of(&st, MPI_INT) == N);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_get_position_shared(f, &at));
    CHECK(at == size * TURNS * N);
    all = calloc((size_t)(size * TURNS), sizeof(*all));
    for (int t = 0; t < size * TURNS; t++) {
        OK(MPI_File_read_at(f, (MPI_Offset)t * N, record, N, MPI_INT, &st));
        for (int i = 1; i < N; i++)
            CHECK(record[i] == record[0]);
        CHECK(record[0] >= 0 && record[0] < size * TURNS);
        seen += !all[record[0]]++;
    }
    CHECK(seen == size * TURNS);
    free(all);

    /* in the order of ranks, of different lengths */
    OK(MPI_File_seek_shared(f, 10, MPI_SEEK_SET));
    for (int i = 0; i < N; i++)
        record[i] = rank;
    OK(MPI_File_write_ordered(f, record, rank % 3 + 1, MPI_INT, &st));
    CHECK(count_of(&st, MPI_INT) == rank % 3 + 1);
    at = 10;
    for (int r = 0; r < size; r++)
        for (int i = 0; i < r % 3 + 1; i++, at++) {
            OK(MPI_File_read_at(f, at, record, 1, MPI_INT, &st));
            CHECK(record[0] == r);
        }
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_seek_shared(f, 10, MPI_SEEK_SET));
    OK(MPI_File_read_ordered(f, record, rank % 3 + 1, MPI_INT, &st));
    for (int i = 0; i < rank % 3 + 1; i++)
        CHECK(record[i] == rank);
    OK(MPI_File_seek_shared(f, -5, MPI_SEEK_CUR));
    OK(MPI_File_get_position_shared(f, &at));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_write_ordered_begin(f, &mine, 1, MPI_INT));
    OK(MPI_File_write_ordered_end(f, &mine, &st));
    CHECK(count_of(&st, MPI_INT) == 1);
    OK(MPI_File_read_at(f, at + rank, record, 1, MPI_INT, &st));
    CHECK(record[0] == mine);
    if (size > 1)
        GIVES(MPI_ERR_NOT_SAME, MPI_File_seek_shared(f, rank, MPI_SEEK_SET));
    OK(MPI_File_close(&f));

    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &f));
    GIVES(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_read(f, record, 1, MPI_INT, &st));
    GIVES(MPI_ERR_UNSUPPORTED_OPERATION, MPI_File_seek(f, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered(f, record, 4, MPI_BYTE, &st));
    OK(MPI_File_set_view(f, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_get_position_shared(f, &at));
    CHECK(at == 0);
    GIVES(MPI_ERR_ARG, MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_close(&f));
}

/* Collective accesses in two calls, and with requests. */
static void later(void)
{
    enum { N = 5000 };
    MPI_File f = open_new(0);
    MPI_Status st;
    MPI_Request req[2];
    double *out = malloc(N * sizeof(*out)), *in = malloc(N * sizeof(*in));
    MPI_Offset base = (MPI_Offset)rank * N;

    for (int i = 0; i < N; i++)
        out[i] = rank + i / 10000.;
    OK(MPI_File_set_view(f, 8, MPI_DOUBLE, MPI_DOUBLE, "internal", MPI_INFO_NULL));
    OK(MPI_File_write_at_all_begin(f, base, out, N, MPI_DOUBLE));
    GIVES(MPI_ERR_OTHER, MPI_File_read_at_all(f, base, in, N, MPI_DOUBLE, &st));
    GIVES(MPI_ERR_OTHER, MPI_File_write_all_end(f, out, &st));
    GIVES(MPI_ERR_OTHER, MPI_File_close(&f));
    OK(MPI_File_write_at_all_end(f, out, &st));
    CHECK(count_of(&st, MPI_DOUBLE) == N);
    OK(MPI_File_read_at_all_begin(f, base, in, N, MPI_DOUBLE));
    OK(MPI_File_read_at_all_end(f, in, &st));
    CHECK(count_of(&st, MPI_DOUBLE) == N && !memcmp(in, out, N * sizeof(*in)));
    OK(MPI_File_seek(f, base, MPI_SEEK_SET));
    memset(in, 0, N * sizeof(*in));
    OK(MPI_File_read_all_begin(f, in, N, MPI_DOUBLE));
    OK(MPI_File_read_all_end(f, in, &st));
    CHECK(!memcmp(in, out, N * sizeof(*in)));

    /* rank 0 waits for a message that the others send after their part: no collective with a request waits for all */
    for (int i = 0; i < N; i++)
        out[i] += 100;
    if (rank == 0)
        for (int r = 1; r < size; r++)
            MPI_Recv(&base, 0, MPI_BYTE, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    base = (MPI_Offset)rank * N;
    OK(MPI_File_iwrite_at_all(f, base, out, N / 2, MPI_DOUBLE, &req[0]));
    OK(MPI_File_iwrite_at(f, base + N / 2, out + N / 2, N - N / 2, MPI_DOUBLE, &req[1]));
    OK(MPI_Wait(&req[0], &st));
    CHECK(count_of(&st, MPI_DOUBLE) == N / 2);
    OK(MPI_Wait(&req[1], &st));
    if (rank)
        MPI_Send(&base, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_seek(f, base, MPI_SEEK_SET));
    OK(MPI_File_iread_all(f, in, N / 2, MPI_DOUBLE, &req[0]));
    OK(MPI_File_iread(f, in + N / 2, N - N / 2, MPI_DOUBLE, &req[1]));
    OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
    CHECK(!memcmp(in, out, N * sizeof(*in)));
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_File_iwrite_shared(f, out, 1, MPI_DOUBLE, &req[0]));
    OK(MPI_Wait(&req[0], &st));
    OK(MPI_File_close(&f));
    free(out);
    free(in);
}

/* Each adds one to a number in the file, in atomic mode, many times. */
static void atomicity(void)
{
    MPI_File f = open_new(0);
    int flag, block[4096], mine[4096];
    MPI_Status st;

    OK(MPI_File_get_atomicity(f, &flag));
    CHECK(!flag);
    OK(MPI_File_set_atomicity(f, 1));
    OK(MPI_File_get_atomicity(f, &flag));
    CHECK(flag);
    for (int i = 0; i < 4096; i++)
        mine[i] = rank;
    OK(MPI_File_write_at(f, 0, mine, 4096, MPI_INT, &st));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int t = 0; t < 50; t++) {
        OK(MPI_File_write_at(f, 0, mine, 4096, MPI_INT, &st));
        OK(MPI_File_read_at(f, 0, block, 4096, MPI_INT, &st));
        for (int i = 1; i < 4096; i++)
            CHECK(block[i] == block[0]); /* all of one rank */
    }
    OK(MPI_File_write_at_all(f, 0, mine, 4096, MPI_INT, &st));
    OK(MPI_File_read_at_all(f, 0, block, 4096, MPI_INT, &st));
    for (int i = 1; i < 4096; i++)
        CHECK(block[i] == block[0]);
    OK(MPI_File_set_atomicity(f, 0));
    OK(MPI_File_close(&f));
}

static void representations(void)
{
    MPI_File f = open_new(0);
    MPI_Datatype etype, filetype;
    MPI_Offset disp;
    MPI_Aint extent;
    MPI_Status st;
    char datarep[MPI_MAX_DATAREP_STRING];
    unsigned char bytes[8];
    int number = 0x01020304 + rank, back = 0;

    OK(MPI_File_set_view(f, 16, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(f, rank, &number, 1, MPI_INT, &st));
    CHECK(count_of(&st, MPI_INT) == 1);
    OK(MPI_File_read_at_all(f, (rank + 1) % size, &back, 1, MPI_INT, &st));
    CHECK(back == 0x01020304 + (rank + 1) % size && count_of(&st, MPI_INT) == 1);
    OK(MPI_File_get_view(f, &disp, &etype, &filetype, datarep));
    CHECK(disp == 16 && etype == MPI_INT && filetype == MPI_INT && !strcmp(datarep, "external32"));
    OK(MPI_File_get_type_extent(f, MPI_LONG, &extent));
    CHECK(extent == 4 || extent == 8);
    GIVES(MPI_ERR_UNSUPPORTED_DATAREP, MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "mine", MPI_INFO_NULL));
    GIVES(MPI_ERR_ARG, MPI_File_set_view(f, -1, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    if (size > 1)
        GIVES(MPI_ERR_NOT_SAME,
              MPI_File_set_view(f, 0, rank ? MPI_INT : MPI_SHORT, rank ? MPI_INT : MPI_SHORT, "native", MPI_INFO_NULL));
    OK(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at(f, 16 + 4 * rank, bytes, 4, MPI_BYTE, &st));
    CHECK(bytes[0] == 1 && bytes[1] == 2 && bytes[2] == 3 && bytes[3] == 4 + rank); /* big endian */
    OK(MPI_File_close(&f));
}

static void hints(void)
{
    MPI_File f;
    MPI_Info info, used;
    char value[64];
    int flag;

    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "65536");
    MPI_Info_set(info, "cb_nodes", "1");
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "romio_ds_read", "no such value");
    MPI_Info_set(info, "no_such_key", "1");
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f));
    OK(MPI_File_get_info(f, &used));
    MPI_Info_get(used, "cb_buffer_size", 63, value, &flag);
    CHECK(flag && !strcmp(value, "65536"));
    MPI_Info_get(used, "cb_nodes", 63, value, &flag);
    CHECK(flag && !strcmp(value, "1"));
    MPI_Info_get(used, "romio_cb_write", 63, value, &flag);
    CHECK(flag && !strcmp(value, "enable"));
    MPI_Info_get(used, "romio_ds_read", 63, value, &flag);
    CHECK(flag && !strcmp(value, "automatic"));
    MPI_Info_get(used, "no_such_key", 63, value, &flag);
    CHECK(!flag);
    MPI_Info_free(&used);
    MPI_Info_set(info, "cb_buffer_size", "8192");
    OK(MPI_File_set_info(f, info));
    OK(MPI_File_get_info(f, &used));
    MPI_Info_get(used, "cb_buffer_size", 63, value, &flag);
    CHECK(flag && !strcmp(value, "8192"));
    MPI_Info_free(&used);
    MPI_Info_free(&info);
    OK(MPI_File_close(&f));
}

static MPI_File heard_of;
static int heard;

static void handler(MPI_File *f, int *code, ...)
{
    heard_of = *f;
    heard = class_of(*code);
}

static void handlers(void)
{
    MPI_Errhandler mine, had;
    MPI_File f, g;

    MPI_File_create_errhandler(handler, &mine);
    MPI_File_set_errhandler(MPI_FILE_NULL, mine);
    GIVES(MPI_ERR_NO_SUCH_FILE, MPI_File_open(MPI_COMM_SELF, "/no/such/directory", MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
    CHECK(heard == MPI_ERR_NO_SUCH_FILE && heard_of == MPI_FILE_NULL);
    f = open_new(0);
    MPI_File_get_errhandler(f, &had);
    CHECK(had == mine);
    MPI_Errhandler_free(&had);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    GIVES(MPI_ERR_ARG, MPI_File_seek(f, -1, MPI_SEEK_SET));
    CHECK(heard == MPI_ERR_ARG && heard_of == f);
    MPI_File_call_errhandler(f, MPI_ERR_IO);
    CHECK(heard == MPI_ERR_IO);
    MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
    GIVES(MPI_ERR_ARG, MPI_File_seek(f, -2, MPI_SEEK_SET));
    CHECK(heard == MPI_ERR_IO);
    CHECK(MPI_File_f2c(MPI_File_c2f(f)) == f && MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
    g = f;
    OK(MPI_File_close(&f));
    GIVES(MPI_ERR_FILE, MPI_File_sync(g));
    MPI_Errhandler_free(&mine);
}

/* Data that is far apart, with another rank's between: not every stretch of the file is looked at. */
static void far_apart(void)
{
    const MPI_Aint far = (MPI_Aint)1 << 36;
    MPI_File f = open_new(0);
    MPI_Datatype two;
    MPI_Status st;
    MPI_Info info;
    double t;
    int out[2] = {rank, rank + 1000}, in[2] = {0, 0}, ones[2] = {1, 1};
    MPI_Aint at[2] = {4 * (size - rank), far + 4 * rank};

    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "romio_cb_read", "enable");
    MPI_Info_set(info, "cb_buffer_size", "4096");
    MPI_Type_create_hindexed(2, ones, at, MPI_INT, &two);
    MPI_Type_commit(&two);
    OK(MPI_File_set_view(f, 0, MPI_INT, two, "native", info));
    t = MPI_Wtime();
    OK(MPI_File_write_all(f, out, 2, MPI_INT, &st));
    OK(MPI_File_read_at_all(f, 0, in, 2, MPI_INT, &st));
    t = MPI_Wtime() - t;
    CHECK(in[0] == out[0] && in[1] == out[1]);
    CHECK(t < 30); /* 2^24 stretches take minutes */
    OK(MPI_File_close(&f));
    MPI_Type_free(&two);
    MPI_Info_free(&info);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(name);
}

/* One rank cannot write: all get the error, and no rank waits for ever. */
static void failures(void)
{
    MPI_File f;
    MPI_Status st;
    char block[4096] = {0};
    int code;

    if (access("/dev/full", W_OK))
        return;
    OK(MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &f));
    GIVES(MPI_ERR_NO_SPACE, MPI_File_write_at(f, 0, block, sizeof(block), MPI_BYTE, &st));
    code = MPI_File_write_at_all(f, (MPI_Offset)rank * 4096, block, rank == size - 1 ? 4096 : 0, MPI_BYTE, &st);
    CHECK(class_of(code) == MPI_ERR_NO_SPACE);
    OK(MPI_File_close(&f));
}

/* ---- threads: each has bytes of its own, in turn with all others', in a file of all ----------------------------- */

enum { THREADS = 4, TURNS = 30, BYTES = 3000 };

static void *thread(void *arg)
{
    const int me = *(int *)arg, place = rank * THREADS + me, all = size * THREADS;
    unsigned char out[BYTES], in[BYTES];
    MPI_Datatype holes;
    MPI_File f;

    MPI_Type_create_resized(MPI_BYTE, 0, all, &holes);
    MPI_Type_commit(&holes);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    OK(MPI_File_set_view(f, place, MPI_BYTE, holes, "native", MPI_INFO_NULL));
    for (int t = 0; t < TURNS; t++) {
        memset(out, 1 + place * 7 + t, sizeof(out));
        OK(MPI_File_write_at(f, (MPI_Offset)t * BYTES, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        MPI_Sendrecv(out, 1, MPI_BYTE, (rank + 1) % size, me, in, 1, MPI_BYTE, (rank + size - 1) % size, me,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        OK(MPI_File_read_at(f, (MPI_Offset)t * BYTES, in, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(!memcmp(in, out, sizeof(in)));
    }
    OK(MPI_File_close(&f));
    MPI_Type_free(&holes);
    return NULL;
}

static void threads(void)
{
    const int row = size * THREADS;
    unsigned char *all = malloc((size_t)row * BYTES);
    MPI_File f = open_new(0);
    pthread_t id[THREADS];
    int me[THREADS];

    for (int i = 0; i < THREADS; i++) {
        me[i] = i;
        pthread_create(&id[i], NULL, thread, &me[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(id[i], NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int t = 0; t < TURNS; t++) {
        OK(MPI_File_read_at(f, (MPI_Offset)t * row * BYTES, all, row * BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        for (int i = 0; i < row * BYTES; i++)
            CHECK(all[i] == (unsigned char)(1 + i % row * 7 + t));
    }
    OK(MPI_File_close(&f));
    free(all);
}

static void one_thread(void)
{
    modes();
    pointers();
    shared_pointers();
    later();
    atomicity();
    representations();
    hints();
    handlers();
    far_apart();
    failures();
}

int main(int argc, char **argv)
{
    const char *dir = getenv("TMPDIR");
    int several = argc > 1 && !strcmp(argv[1], "threads"), level;

    MPI_Init_thread(&argc, &argv, several ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(name, sizeof(name), "%s/mrmpi-file-%d", dir ? dir : "/tmp", (int)getpid());
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
    snprintf(other, sizeof(other), "%s.absent", name);
    (several ? threads : one_thread)();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(name);
    MPI_Finalize();
    return 0;
}
