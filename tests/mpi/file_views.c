/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Views of all kinds against a model: a pattern of pieces, each of a rank or of none, repeats in a file full of other
 * bytes. The ranks write their pieces, alone or together, from memory with and without holes, with hints of all kinds;
 * then the file equals the model, byte for byte, and reading gives the written data. All ranks draw the same random
 * numbers, so each knows the actions of all. file_views [ROUNDS [FIRST ROUND [no-locks | small-buffers]]]: the file
 * system has no locks then; or collective accesses have buffers of a few bytes on long files, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MAX_PIECES = 40, /* limit per rank */
    MAX_RANKS = 64,
    ROOM = 1 << 20,
    BUFFERS = 20
};

static int rank, size, round_;
static unsigned long long state;

#define FAIL(...)                                                                                                      \
    do {                                                                                                               \
        printf("rank %d of %d, round %d, line %d: ", rank, size, round_, __LINE__);                                    \
        printf(__VA_ARGS__);                                                                                           \
        printf("\n");                                                                                                  \
        fflush(stdout);                                                                                                \
        MPI_Abort(MPI_COMM_WORLD, 1);                                                                                  \
    } while (0)
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_) {                                                                                                   \
            char text_[MPI_MAX_ERROR_STRING];                                                                          \
            int len_;                                                                                                  \
            MPI_Error_string(code_, text_, &len_);                                                                     \
            FAIL("%s: %s", #call, text_);                                                                              \
        }                                                                                                              \
    } while (0)

static int no_locks, small_buffers;

/* In place of the C library's. */
__attribute__((visibility("default"))) int fcntl(int fd, int cmd, ...)
{
    va_list ap;
    void *arg;

    va_start(ap, cmd);
    arg = va_arg(ap, void *);
    va_end(ap);
    if (no_locks && (cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW)) {
        errno = ENOSYS;
        return -1;
    }
    return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

static unsigned below(unsigned n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(state >> 33) % n;
}

/* ---- the pattern ------------------------------------------------------------------------------------------------- */

/* In etypes, within a tile: a rank's part. */
struct owned {
    int num, at[MAX_PIECES], len[MAX_PIECES], etypes;
};
static struct owned owned[MAX_RANKS];
static int etype_size, tile;                   /* bytes; etypes */
static long disp;                              /* bytes */
static int start[MAX_RANKS], count[MAX_RANKS]; /* etypes of the view: each rank's write */

static void draw_pattern(void)
{
    int pieces = 1 + (int)below(MAX_PIECES), regular = below(3) == 0, each = 1 + (int)below(9), at = 0;

    memset(owned, 0, sizeof(owned));
    etype_size = 1 << below(4);
    if (regular) /* block-cyclic: all ranks in turn */
        pieces = size * (1 + (int)below(MAX_PIECES / 4));
    for (int p = 0; p < pieces; p++) {
        int len = regular ? each : 1 + (int)below(below(4) ? 6 : 200);
        int who = regular ? p % size : (int)below((unsigned)size + 1); /* size: nobody */
        struct owned *o = &owned[who < MAX_RANKS ? who : 0];

        if (who < size) {
            o->at[o->num] = at;
            o->len[o->num++] = len;
            o->etypes += len;
        }
        at += len + (regular ? 0 : (int)below(3) * (int)below(20));
    }
    tile = at + (regular ? 0 : (int)below(10));
    disp = below(3) ? (long)below(5000) : 0;
    for (int r = 0; r < size; r++) {
        start[r] = owned[r].etypes ? (int)below(3u * (unsigned)owned[r].etypes) : 0;
        count[r] = owned[r].etypes && below(8) ? (int)below(1 + 10u * (unsigned)owned[r].etypes) : 0;
        if (below(3) == 0 && owned[r].etypes) /* as most programs: from the beginning */
            start[r] = 0;
    }
}

/* Where in the file the nth etype is that a rank sees. */
static long place(int r, int nth)
{
    const struct owned *o = &owned[r];
    int turn = nth / o->etypes, rest = nth % o->etypes, p = 0;

    while (rest >= o->len[p])
        rest -= o->len[p++];
    return disp + ((long)turn * tile + o->at[p] + rest) * etype_size;
}

static unsigned char byte_of(int r, int nth, int i)
{
    return (unsigned char)(r * 37 + nth * 11 + i * 101 + round_ * 7 + 1);
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

static MPI_Datatype etype_of(void)
{
    static const MPI_Datatype types[] = {MPI_BYTE, MPI_SHORT, MPI_INT, MPI_DOUBLE};
    MPI_Datatype t;

    for (int i = 0; i < 4; i++)
        if (etype_size == 1 << i && i < 3)
            return types[i];
    MPI_Type_contiguous(2, MPI_INT, &t);
    MPI_Type_commit(&t);
    return t;
}

static MPI_Datatype filetype_of(MPI_Datatype etype, unsigned kind)
{
    const struct owned *o = &owned[rank];
    MPI_Aint at[MAX_PIECES];
    MPI_Datatype t, types[MAX_PIECES], full;
    int same = o->num > 0;

    for (int i = 0; i < o->num; i++) {
        at[i] = (MPI_Aint)o->at[i] * etype_size;
        types[i] = etype;
        same &= o->len[i] == o->len[0];
    }
    if (o->num == 1 && kind == 0) {
        int sizes[1] = {tile}, sub[1] = {o->len[0]}, from[1] = {o->at[0]};

        MPI_Type_create_subarray(1, sizes, sub, from, MPI_ORDER_C, etype, &t);
    } else if (kind < 2) {
        MPI_Type_create_hindexed(o->num, o->len, at, etype, &t);
    } else if (same && kind == 2) {
        MPI_Type_create_hindexed_block(o->num, o->len[0], at, etype, &t);
    } else if (kind == 3) {
        MPI_Type_create_struct(o->num, o->len, at, types, &t);
    } else {
        MPI_Type_indexed(o->num, o->len, o->at, etype, &t);
    }
    MPI_Type_create_resized(t, 0, (MPI_Aint)tile * etype_size, &full);
    MPI_Type_commit(&full);
    MPI_Type_free(&t);
    return full;
}

/* Memory: etypes in a row, or with a gap of one behind each `block`. */
static MPI_Datatype memory_type(MPI_Datatype etype, int etypes, int block)
{
    MPI_Datatype t;

    if (!block || etypes < block) {
        MPI_Type_contiguous(etypes, etype, &t);
    } else {
        int lens[2] = {etypes / block * block, etypes % block};
        MPI_Aint at[2] = {0, (MPI_Aint)(etypes / block) * (block + 1) * etype_size};
        MPI_Datatype parts[2];

        MPI_Type_vector(etypes / block, block, block + 1, etype, &parts[0]);
        parts[1] = etype;
        lens[0] = 1;
        MPI_Type_create_struct(lens[1] ? 2 : 1, lens, at, parts, &t);
        MPI_Type_free(&parts[0]);
    }
    MPI_Type_commit(&t);
    return t;
}

static long in_memory(int nth, int block)
{
    return (long)(block ? nth + nth / block : nth) * etype_size;
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

/* The end of what all write. */
static long extent(void)
{
    long end = 0;

    for (int r = 0; r < size; r++)
        if (count[r] && place(r, start[r] + count[r] - 1) + etype_size > end)
            end = place(r, start[r] + count[r] - 1) + etype_size;
    return end;
}

/* A buffer of collective access has at least a part of the file: each time it is full all ranks exchange messages. */
static MPI_Info draw_hints(void)
{
    unsigned least = small_buffers ? 0 : (unsigned)(extent() / BUFFERS);

    static const char *const when[] = {"automatic", "enable", "disable"};
    MPI_Info info;
    char text[16];

    MPI_Info_create(&info);
    snprintf(text, sizeof(text), "%u", 1 + below(4));
    if (below(2))
        MPI_Info_set(info, "cb_nodes", text);
    snprintf(text, sizeof(text), "%u", least + 1 + below(below(2) ? 200 : 100000));
    if (below(2))
        MPI_Info_set(info, "cb_buffer_size", text);
    snprintf(text, sizeof(text), "%u", 1 + below(below(2) ? 100 : 10000));
    if (below(2)) {
        MPI_Info_set(info, "ind_wr_buffer_size", text);
        MPI_Info_set(info, "ind_rd_buffer_size", text);
    }
    MPI_Info_set(info, "romio_cb_write", when[below(3)]);
    MPI_Info_set(info, "romio_cb_read", when[below(3)]);
    MPI_Info_set(info, "romio_ds_write", when[below(3)]);
    MPI_Info_set(info, "romio_ds_read", when[below(3)]);
    if (below(4) == 0)
        MPI_Info_set(info, "striping_unit", "512");
    return info;
}

static void access_file(MPI_File f, int write, unsigned way, void *buf, MPI_Datatype t, int etypes)
{
    MPI_Status st;
    MPI_Request req;
    MPI_Count moved;
    int n = etypes > 0;

    if (way % 2 == 0)
        OK(MPI_File_seek(f, start[rank], MPI_SEEK_SET));
    switch (way) {
    case 0:
        OK(write ? MPI_File_write_all(f, buf, n, t, &st) : MPI_File_read_all(f, buf, n, t, &st));
        break;
    case 1:
        OK(write ? MPI_File_write_at_all(f, start[rank], buf, n, t, &st)
                 : MPI_File_read_at_all(f, start[rank], buf, n, t, &st));
        break;
    case 2:
        OK(write ? MPI_File_write(f, buf, n, t, &st) : MPI_File_read(f, buf, n, t, &st));
        break;
    case 3:
        OK(write ? MPI_File_iwrite_at(f, start[rank], buf, n, t, &req)
                 : MPI_File_iread_at(f, start[rank], buf, n, t, &req));
        MPI_Wait(&req, &st);
        break;
    default:
        if (write) {
            OK(MPI_File_write_all_begin(f, buf, n, t));
            OK(MPI_File_write_all_end(f, buf, &st));
        } else {
            OK(MPI_File_read_all_begin(f, buf, n, t));
            OK(MPI_File_read_all_end(f, buf, &st));
        }
    }
    MPI_Get_elements_x(&st, MPI_BYTE, &moved);
    if (moved != (MPI_Count)etypes * etype_size)
        FAIL("way %u: %lld bytes of %d", way, (long long)moved, etypes * etype_size);
}

static void check_file(const char *name, const unsigned char *model, long bytes)
{
    static unsigned char had[ROOM];
    int fd = open(name, O_RDONLY);
    long n = pread(fd, had, sizeof(had), 0);

    close(fd);
    if (n != bytes)
        FAIL("the file has %ld bytes, not %ld", n, bytes);
    for (long i = 0; i < n; i++)
        if (had[i] != model[i])
            FAIL("byte %ld is %d, not %d (disp %ld, tile %d etypes of %d)", i, had[i], model[i], disp, tile,
                 etype_size);
}

/* The former contents of the file, and the gap left by a write beyond its end. */
static long make_model(unsigned char *model, long had)
{
    long bytes = had;

    memset(model, 0, ROOM);
    for (long i = 0; i < had; i++)
        model[i] = (unsigned char)(200 + i * 3);
    for (int r = 0; r < size; r++)
        for (int k = 0; k < count[r]; k++) {
            long at = place(r, start[r] + k);

            for (int i = 0; i < etype_size; i++)
                model[at + i] = byte_of(r, k, i);
            bytes = at + etype_size > bytes ? at + etype_size : bytes;
        }
    return bytes;
}

static void one_round(const char *name)
{
    static unsigned char model[ROOM], out[ROOM], in[ROOM];
    unsigned way, kind, back;
    int block;
    long had, bytes;
    MPI_Info info;
    MPI_File f;
    MPI_Datatype etype, filetype, memory;

    draw_pattern();
    info = draw_hints();
    way = below(5);
    back = below(5);
    kind = below(5);
    block = (int)below(2) * (1 + (int)below(7));
    had = below(3) ? (long)below(40000) : 0;
    bytes = make_model(model, had);
    if (rank == 0) {
        int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0600);
        static unsigned char before[ROOM];

        for (long i = 0; i < had; i++)
            before[i] = (unsigned char)(200 + i * 3);
        if (write(fd, before, (size_t)had) != had)
            FAIL("cannot write the file");
        close(fd);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    etype = etype_of();
    filetype = filetype_of(etype, kind);
    memory = memory_type(etype, count[rank], block);
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, info, &f));
    OK(MPI_File_set_view(f, disp, etype, filetype, "native", MPI_INFO_NULL));
    if (no_locks && !MPI_File_set_atomicity(f, 1))
        FAIL("there is an atomic mode without locks");
    memset(out, 0xee, sizeof(out));
    for (int k = 0; k < count[rank]; k++)
        for (int i = 0; i < etype_size; i++)
            out[in_memory(k, block) + i] = byte_of(rank, k, i);
    access_file(f, 1, way, out, memory, count[rank]);
    MPI_Barrier(MPI_COMM_WORLD);
    check_file(name, model, bytes);
    memset(in, 0xee, sizeof(in));
    access_file(f, 0, back, in, memory, count[rank]);
    if (memcmp(in, out, sizeof(in)))
        for (long i = 0; i < ROOM; i++)
            if (in[i] != out[i])
                FAIL("ways %u and %u: what is read differs from byte %ld on: %d, not %d", way, back, i, in[i], out[i]);
    OK(MPI_File_close(&f));
    MPI_Type_free(&memory);
    MPI_Type_free(&filetype);
    if (etype_size == 8)
        MPI_Type_free(&etype);
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100, first = argc > 2 ? atoi(argv[2]) : 0;
    const char *dir = getenv("TMPDIR");
    char name[256];

    no_locks = argc > 3 && !strcmp(argv[3], "no-locks");
    small_buffers = argc > 3 && !strcmp(argv[3], "small-buffers");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(name, sizeof(name), "%s/mrmpi-views-%d", dir ? dir : "/tmp", (int)getpid());
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
    for (round_ = first; round_ < first + rounds; round_++) {
        state = (unsigned long long)round_ * 977 + 12345;
        one_round(name);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(name);
    MPI_Finalize();
    return 0;
}
