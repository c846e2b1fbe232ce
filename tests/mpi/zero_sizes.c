/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Empty messages in every form: counts of 0, datatypes without elements, null pointers, MPI_BOTTOM, different types on
 * the two sides. Each function that moves data takes each pair of shapes, succeeds, and moves nothing.
 */
#include "mt.h"

#include <stdbool.h>
#include <unistd.h>

static void *room(size_t bytes)
{
    void *p = calloc(1, bytes + 1);
    CHECK(p);
    return p;
}

#define WORKS(call)                                                                                                    \
    do {                                                                                                               \
        const int code_ = (call);                                                                                      \
        if (code_ != MPI_SUCCESS) {                                                                                    \
            char text_[MPI_MAX_ERROR_STRING];                                                                          \
            int len_;                                                                                                  \
            MPI_Error_string(code_, text_, &len_);                                                                     \
            fprintf(stderr, "rank %d of %d: %s:%d: from %s to %s: %s\n", rank, size, __FILE__, __LINE__, from_name,    \
                    to_name, text_);                                                                                   \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

/* A way to say nothing. */
struct shape {
    const char *name;
    void *buf;
    int count;
    MPI_Datatype type;
};
#define OUT(s) (s)->buf, (s)->count, (s)->type
#define IN(s)  (s)->buf, (s)->count, (s)->type

static const char *from_name = "", *to_name = "";
static char memory[2][64];
static MPI_Comm comm, ring, lonely;
static MPI_Op own_op;
enum { NUM_WINDOWS = 4, NUM_FILES = 2 };
static MPI_Win window[NUM_WINDOWS];
static MPI_File file[NUM_FILES];

static void none_of(const MPI_Status *st, const struct shape *s)
{
    int n = -1, bytes = -1, elements = -1;
    MPI_Get_count(st, s->type, &n);
    MPI_Get_count(st, MPI_BYTE, &bytes);
    MPI_Get_elements(st, s->type, &elements);
    EQ(n, 0);
    EQ(bytes, 0);
    EQ(elements, 0);
}

static void nothing(const MPI_Status *st, int source, int tag, const struct shape *s)
{
    EQ(st->MPI_SOURCE, source);
    EQ(st->MPI_TAG, tag);
    none_of(st, s);
}

#define F(name) name
#define C(name) name##_small
#define cnt     int
#define dsp     int
#define wide    MPI_Aint
#include "zero_forms.h"
#undef cnt
#undef dsp
#undef wide
#define F(name) name##_c
#define C(name) name##_large
#define cnt     MPI_Count
#define dsp     MPI_Aint
#define wide    MPI_Count
#include "zero_forms.h"

/* Partitions without elements, and no partitions. */
static void partitions(const struct shape *a, const struct shape *b)
{
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int n = 0; n < 3; n++) {
        MPI_Request q[2];
        MPI_Status st[2];
        int flag;
        WORKS(MPI_Precv_init(b->buf, n ? 3 - n : 0, b->count, b->type, left, 4, comm, MPI_INFO_NULL, &q[0]));
        WORKS(MPI_Psend_init(a->buf, n, a->count, a->type, right, 4, comm, MPI_INFO_NULL, &q[1]));
        for (int again = 0; again < 2; again++) {
            WORKS(MPI_Startall(2, q));
            for (int i = 0; i < n; i++)
                WORKS(MPI_Pready(i, q[1]));
            WORKS(MPI_Pready_list(0, NULL, q[1]));
            do {
                if (n)
                    WORKS(MPI_Parrived(q[0], 0, &flag));
                else
                    flag = 1;
            } while (!flag);
            WORKS(MPI_Waitall(2, q, st));
            nothing(&st[0], left, 4, b);
        }
        WORKS(MPI_Request_free(&q[0]));
        WORKS(MPI_Request_free(&q[1]));
    }
}

static const struct {
    const char *name;
    void (*run)(const struct shape *a, const struct shape *b);
} cases[] = {
    {"p2p", p2p_small},
    {"p2p_c", p2p_large},
    {"collectives", collectives_small},
    {"collectives_c", collectives_large},
    {"reductions", reductions_small},
    {"reductions_c", reductions_large},
    {"neighbours", neighbours_small},
    {"neighbours_c", neighbours_large},
    {"windows", windows_small},
    {"windows_c", windows_large},
    {"packing", packing_small},
    {"packing_c", packing_large},
    {"files", files_small},
    {"files_c", files_large},
    {"partitions", partitions},
};
enum { NUM_CASES = sizeof(cases) / sizeof(cases[0]) };

/* ---- the shapes ---- */

enum { NUM_SHAPES = 18 };
static struct shape shapes[NUM_SHAPES];

static void make_shapes(void)
{
    const int zeros[3] = {0, 0, 0}, places[3] = {7, 1, 4};
    const MPI_Aint far[3] = {70, 0, 33};
    const MPI_Datatype kinds[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
    MPI_Datatype t[12], empty;
    MPI_Type_contiguous(0, MPI_INT, &t[0]);
    MPI_Type_vector(0, 3, 5, MPI_DOUBLE, &t[1]);
    MPI_Type_vector(4, 0, 5, MPI_INT, &t[2]);
    MPI_Type_indexed(0, NULL, NULL, MPI_INT, &t[3]);
    MPI_Type_indexed(3, zeros, places, MPI_INT, &t[4]);
    MPI_Type_create_struct(0, NULL, NULL, NULL, &t[5]);
    MPI_Type_create_struct(3, zeros, far, kinds, &t[6]);
    MPI_Type_create_resized(t[0], -8, 24, &t[7]);
    MPI_Type_contiguous(5, t[0], &t[8]);
    MPI_Type_create_hindexed_block(0, 2, NULL, MPI_FLOAT, &t[9]);
    MPI_Type_dup(t[5], &t[10]);
    empty = t[8];
    MPI_Type_create_struct(1, (int[]){2}, (MPI_Aint[]){16}, &empty, &t[11]);
    for (int i = 0; i < 12; i++)
        MPI_Type_commit(&t[i]);
    shapes[0] = (struct shape){"0 MPI_INT", memory[0], 0, MPI_INT};
    shapes[1] = (struct shape){"0 MPI_INT at NULL", NULL, 0, MPI_INT};
    shapes[2] = (struct shape){"0 MPI_DOUBLE_INT", memory[1], 0, MPI_DOUBLE_INT};
    shapes[3] = (struct shape){"2 contiguous(0) at MPI_BOTTOM", MPI_BOTTOM, 2, t[0]};
    shapes[4] = (struct shape){"1 contiguous(0)", memory[1], 1, t[0]};
    static const char *const names[] = {
        "vector(0)",         "vector of blocks of 0", "indexed(0)",       "indexed, blocks of 0",
        "struct(0)",         "struct, blocks of 0",   "resized",          "contiguous(5) of nothing",
        "hindexed_block(0)", "dup of struct(0)",      "struct of nothing"};
    for (int i = 1; i < 12; i++)
        shapes[4 + i] = (struct shape){names[i - 1], i % 3 ? memory[i % 2] : NULL, 1 + i % 3, t[i]};
    MPI_Datatype gap;
    MPI_Type_vector(2, 1, 2, MPI_INT, &gap);
    MPI_Type_commit(&gap);
    shapes[16] = (struct shape){"0 of a vector at NULL", NULL, 0, gap};
    shapes[17] = (struct shape){"0 MPI_BYTE at MPI_BOTTOM", MPI_BOTTOM, 0, MPI_BYTE};
}

static void free_shapes(void)
{
    MPI_Datatype done[NUM_SHAPES];
    int n = 0;
    for (int i = 3; i < NUM_SHAPES; i++) {
        bool seen = shapes[i].type == MPI_BYTE;
        for (int k = 0; k < n; k++)
            seen |= done[k] == shapes[i].type;
        if (!seen)
            MPI_Type_free(&(MPI_Datatype){done[n++] = shapes[i].type});
    }
}

/* ---- objects of no size ---- */

static void add_nothing(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)in;
    (void)inout;
    (void)len;
    (void)type;
}

static void lists_of_nothing(void)
{
    MPI_Group world, g;
    MPI_Comm c;
    MPI_Datatype t;
    MPI_Win w;
    int n = -1, flag = 0;
    void *p;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    WORKS(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    WORKS(MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE));
    EQ(flag, 1);
    WORKS(MPI_Waitany(0, NULL, &n, MPI_STATUS_IGNORE));
    EQ(n, MPI_UNDEFINED);
    WORKS(MPI_Testany(0, NULL, &n, &flag, MPI_STATUS_IGNORE));
    EQ(n, MPI_UNDEFINED);
    WORKS(MPI_Waitsome(0, NULL, &n, NULL, MPI_STATUSES_IGNORE));
    EQ(n, MPI_UNDEFINED);
    WORKS(MPI_Testsome(0, NULL, &n, NULL, MPI_STATUSES_IGNORE));
    WORKS(MPI_Startall(0, NULL));
    WORKS(MPI_Group_incl(world, 0, NULL, &g));
    EQ(g, MPI_GROUP_EMPTY);
    WORKS(MPI_Group_range_incl(world, 0, NULL, &g));
    EQ(g, MPI_GROUP_EMPTY);
    WORKS(MPI_Group_excl(world, 0, NULL, &g));
    MPI_Group_free(&g);
    WORKS(MPI_Group_translate_ranks(world, 0, NULL, world, NULL));
    WORKS(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &c));
    EQ(c, MPI_COMM_NULL);
    WORKS(MPI_Comm_create_group(MPI_COMM_WORLD, MPI_GROUP_EMPTY, 0, &c));
    EQ(c, MPI_COMM_NULL);
    WORKS(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "nobody", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    EQ(c, MPI_COMM_NULL);
    WORKS(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &c));
    CHECK((c == MPI_COMM_NULL) == (rank != 0));
    if (c != MPI_COMM_NULL)
        MPI_Comm_free(&c);
    WORKS(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &c));
    EQ(c, MPI_COMM_NULL);
    WORKS(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c));
    MPI_Comm_free(&c);
    WORKS(MPI_Dims_create(1, 0, NULL));
    WORKS(MPI_Type_create_hindexed(0, NULL, NULL, MPI_INT, &t));
    MPI_Type_free(&t);
    WORKS(MPI_Type_create_indexed_block(0, 1, NULL, MPI_INT, &t));
    MPI_Type_free(&t);
    WORKS(MPI_Alloc_mem(0, MPI_INFO_NULL, &p));
    WORKS(MPI_Free_mem(p));
    WORKS(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w));
    WORKS(MPI_Win_attach(w, NULL, 0));
    WORKS(MPI_Win_free(&w));
    WORKS(MPI_Fetch_and_op(memory[0], memory[1], MPI_INT, MPI_PROC_NULL, -1, MPI_SUM, window[0]));
    MPI_Group_free(&world);
}

/* Some ranks give nothing, of a type of their own, where others give something. */
static void some_give_nothing(void)
{
    int *n = room(sizeof(int) * (size_t)size), *at = room(sizeof(int) * (size_t)size), sum = 0;
    int *all = room(sizeof(int) * (size_t)size * 4), mine[2] = {rank, -rank};
    MPI_Datatype *types = room(sizeof(MPI_Datatype) * (size_t)size), nil = shapes[4].type;
    const bool gives = rank % 2;
    for (int r = 0; r < size; r++) {
        n[r] = r % 2 ? 2 : 0;
        at[r] = sum;
        sum += n[r];
    }
    WORKS(MPI_Allgatherv(gives ? mine : NULL, gives ? 2 : 5, gives ? MPI_INT : nil, all, n, at, MPI_INT, comm));
    for (int r = 1; r < size; r += 2)
        CHECK(all[at[r]] == r && all[at[r] + 1] == -r);
    memset(all, -1, sizeof(int) * (size_t)size * 4);
    for (int r = 0; r < size; r++) {
        const bool pair = r % 2 && rank % 2;
        n[r] = pair ? 1 : 4;
        types[r] = pair ? MPI_INT : r % 3 ? nil : MPI_DATATYPE_NULL;
        n[r] = types[r] == MPI_DATATYPE_NULL ? 0 : n[r];
        at[r] = 16 * r;
    }
    int *zeros = room(sizeof(int) * (size_t)(size + 2));
    WORKS(MPI_Alltoallw(mine, n, zeros, types, all, n, at, types, comm));
    for (int r = 0; r < size; r++)
        EQ(all[4 * r], r % 2 && rank % 2 ? r : -1);
    /* parts without elements need no type */
    const MPI_Datatype none[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    const MPI_Aint far[2] = {0, 0};
    WORKS(MPI_Neighbor_alltoallw(NULL, zeros, far, none, NULL, zeros, far, none, ring));
    EQ(MPI_Neighbor_alltoallw(mine, (int[]){1, 1}, far, none, all, (int[]){1, 1}, far, none, ring) == MPI_SUCCESS, 0);
    free(n);
    free(at);
    free(all);
    free(types);
    free(zeros);
}

int main(int argc, char **argv)
{
    char name[64] = "", *base;
    mt_begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Cart_create(comm, 1, &size, (int[]){1}, 0, &ring);
    MPI_Dist_graph_create_adjacent(comm, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &lonely);
    MPI_Op_create(add_nothing, 1, &own_op);
    static char bsend[4 * MPI_BSEND_OVERHEAD];
    MPI_Buffer_attach(bsend, sizeof(bsend));
    make_shapes();
    WORKS(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, comm, &window[0]));
    WORKS(MPI_Win_create(memory[0], sizeof(memory[0]), 4, MPI_INFO_NULL, comm, &window[1]));
    WORKS(MPI_Win_allocate(0, 8, MPI_INFO_NULL, comm, &base, &window[2]));
    WORKS(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &window[3]));
    for (int k = 0; k < NUM_WINDOWS; k++)
        MPI_Win_set_errhandler(window[k], MPI_ERRORS_RETURN);
    for (int k = 0; k < NUM_FILES; k++) {
        if (!rank)
            snprintf(name, sizeof(name), "/tmp/mrmpi-zero-%ld-%d", (long)getpid(), k);
        MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, comm);
        WORKS(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                            &file[k]));
    }
    WORKS(MPI_File_set_view(file[1], 3, MPI_BYTE, shapes[4].type, "native", MPI_INFO_NULL)); /* a view of nothing */
    for (int c = 0; c < NUM_CASES; c++) {
        if (argc > 1 && strcmp(argv[1], cases[c].name))
            continue;
        for (int i = 0; i < NUM_SHAPES; i++)
            for (int k = 0; k < 2; k++) {
                const struct shape *a = &shapes[i], *b = &shapes[(i + 5 * k) % NUM_SHAPES];
                from_name = a->name;
                to_name = b->name;
                cases[c].run(a, b);
            }
    }
    from_name = to_name = "nothing";
    lists_of_nothing();
    some_give_nothing();
    for (size_t i = 0; i < sizeof(memory); i++)
        EQ(((const char *)memory)[i], 0);
    for (int k = 0; k < NUM_WINDOWS; k++)
        MPI_Win_free(&window[k]);
    for (int k = 0; k < NUM_FILES; k++)
        MPI_File_close(&file[k]);
    free_shapes();
    MPI_Op_free(&own_op);
    MPI_Buffer_detach(&base, &(int){0});
    MPI_Comm_free(&ring);
    MPI_Comm_free(&lonely);
    MPI_Comm_free(&comm);
    return mt_end();
}
