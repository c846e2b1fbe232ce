/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows are made, have attributes, names, groups, hints and error handlers, and are freed. */
#include "rma.h"

enum { UNITS = 8 };

static const int flavor_is[FLAVORS] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED,
                                       MPI_WIN_FLAVOR_DYNAMIC};

/* The first rank and every third rank have nothing. */
static MPI_Aint bytes_of(int r)
{
    return r % 3 * 32;
}

static void *made(enum flavor f, MPI_Info info, MPI_Comm c, MPI_Win *w)
{
    static _Alignas(16) char own[64];
    void *base = MPI_BOTTOM;
    int me;
    MPI_Comm_rank(c, &me);
    *w = MPI_WIN_NULL;
    switch (f) {
    case CREATE:
        base = bytes_of(me) ? own : NULL;
        MPI_Win_create(base, bytes_of(me), 1 + me % UNITS, info, c, w);
        break;
    case ALLOCATE:
        MPI_Win_allocate(bytes_of(me), 1 + me % UNITS, info, c, &base, w);
        break;
    case SHARED:
        MPI_Win_allocate_shared(bytes_of(me), 1 + me % UNITS, info, c, &base, w);
        break;
    default:
        MPI_Win_create_dynamic(info, c, w);
    }
    CHECK(*w != MPI_WIN_NULL);
    return base;
}

static void attributes(enum flavor f, MPI_Comm c)
{
    MPI_Win w;
    MPI_Group g, h;
    void *base = made(f, MPI_INFO_NULL, c, &w), *got;
    MPI_Aint *bytes, want = bytes_of(0);
    int flag, me, *number;
    MPI_Comm_rank(c, &me);
    want = f == DYNAMIC ? 0 : bytes_of(me);
    MPI_Win_get_attr(w, MPI_WIN_BASE, &got, &flag);
    CHECK(flag && (!want || got == base));
    CHECK(f != DYNAMIC || got == MPI_BOTTOM);
    MPI_Win_get_attr(w, MPI_WIN_SIZE, &bytes, &flag);
    CHECK(flag);
    EQ(*bytes, want);
    MPI_Win_get_attr(w, MPI_WIN_DISP_UNIT, &number, &flag);
    CHECK(flag);
    EQ(*number, f == DYNAMIC ? 1 : 1 + me % UNITS);
    MPI_Win_get_attr(w, MPI_WIN_CREATE_FLAVOR, &number, &flag);
    CHECK(flag);
    EQ(*number, flavor_is[f]);
    MPI_Win_get_attr(w, MPI_WIN_MODEL, &number, &flag);
    CHECK(flag && (*number == MPI_WIN_UNIFIED || *number == MPI_WIN_SEPARATE));
    CHECK(f != SHARED || *number == MPI_WIN_UNIFIED); /* loads and stores of others are seen */
    MPI_Win_get_group(w, &g);
    MPI_Comm_group(c, &h);
    MPI_Group_compare(g, h, &flag);
    EQ(flag, MPI_IDENT);
    MPI_Group_free(&g);
    MPI_Group_free(&h);
    CHECK(MPI_Win_f2c(MPI_Win_c2f(w)) == w);
    CHECK(MPI_Win_toint(w) != 0 && MPI_Win_fromint(MPI_Win_toint(w)) == w);
    MPI_Win_free(&w);
    EQ(w, MPI_WIN_NULL);
}

static void names(MPI_Comm c)
{
    MPI_Win w, v;
    char name[MPI_MAX_OBJECT_NAME];
    int len;
    made(CREATE, MPI_INFO_NULL, c, &w);
    made(DYNAMIC, MPI_INFO_NULL, c, &v);
    MPI_Win_get_name(w, name, &len);
    CHECK(len == 0 && name[0] == '\0');
    MPI_Win_set_name(w, "halo");
    MPI_Win_set_name(v, "heap");
    MPI_Win_get_name(w, name, &len);
    CHECK(!strcmp(name, "halo") && len == 4);
    MPI_Win_set_name(w, "");
    MPI_Win_get_name(w, name, &len);
    CHECK(len == 0 && name[0] == '\0');
    MPI_Win_get_name(v, name, &len);
    CHECK(!strcmp(name, "heap") && len == 4);
    MPI_Win_free(&w);
    MPI_Win_free(&v);
}

/* ---- own attributes ---- */

static char gone[16];
static char refused;
static MPI_Win seen_win;

static int copy_fn(MPI_Win w, int key, void *extra, void *in, void *out, int *flag)
{
    CHECK(!"windows cannot be duplicated");
    return MPI_SUCCESS;
}

static int delete_fn(MPI_Win w, int key, void *value, void *extra)
{
    seen_win = w;
    CHECK(extra == gone);
    if (*(char *)value == refused)
        return MPI_ERR_OTHER;
    strncat(gone, value, 1);
    return MPI_SUCCESS;
}

static void keyvals(MPI_Comm c)
{
    MPI_Win w, v, was;
    char values[] = "abc", *got;
    int key[3], other, flag;
    made(ALLOCATE, MPI_INFO_NULL, c, &w);
    made(CREATE, MPI_INFO_NULL, c, &v);
    MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
    for (int i = 0; i < 3; i++) {
        MPI_Win_create_keyval(copy_fn, delete_fn, &key[i], gone);
        MPI_Win_get_attr(w, key[i], &got, &flag);
        EQ(flag, 0);
        MPI_Win_set_attr(w, key[i], &values[i]);
    }
    MPI_Win_get_attr(w, key[1], &got, &flag);
    CHECK(flag && got == &values[1]);
    MPI_Win_get_attr(v, key[1], &got, &flag); /* the other window has none */
    EQ(flag, 0);
    gone[0] = '\0';
    MPI_Win_set_attr(w, key[1], &values[0]); /* the old value is deleted */
    CHECK(!strcmp(gone, "b") && seen_win == w);
    MPI_Win_delete_attr(w, key[1]);
    CHECK(!strcmp(gone, "ba"));
    MPI_Win_get_attr(w, key[1], &got, &flag);
    EQ(flag, 0);
    refused = 'c';
    CHECK(MPI_Win_delete_attr(w, key[2]) != MPI_SUCCESS);
    MPI_Win_get_attr(w, key[2], &got, &flag);
    CHECK(flag && got == &values[2]);
    refused = '\0';

    EQ(class_of(MPI_Win_set_attr(w, MPI_WIN_BASE, values)), MPI_ERR_KEYVAL);
    EQ(class_of(MPI_Win_delete_attr(w, MPI_WIN_SIZE)), MPI_ERR_KEYVAL);
    EQ(class_of(MPI_Win_set_attr(w, MPI_KEYVAL_INVALID, values)), MPI_ERR_KEYVAL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &other, NULL);
    EQ(class_of(MPI_Win_set_attr(w, other, values)), MPI_ERR_KEYVAL);
    MPI_Comm_free_keyval(&other);
    MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, &other, NULL);
    MPI_Win_set_attr(v, other, values);
    MPI_Win_get_attr(v, other, &got, &flag);
    CHECK(flag && got == values);
    MPI_Win_free_keyval(&other);
    EQ(other, MPI_KEYVAL_INVALID);

    for (int i = 0; i < 3; i++) { /* freed in use: the attribute stays */
        MPI_Win_free_keyval(&key[i]);
        EQ(key[i], MPI_KEYVAL_INVALID);
    }
    gone[0] = '\0';
    was = w;
    MPI_Win_free(&w);
    CHECK(!strcmp(gone, "ca") || !strcmp(gone, "ac"));
    EQ(seen_win, was);
    MPI_Win_free(&v);
}

/* ---- error handlers ---- */

static int calls, seen_class;

static void handler(MPI_Win *w, int *code, ...)
{
    calls++;
    seen_class = class_of(*code);
    seen_win = *w;
}

static void handlers(MPI_Comm c)
{
    MPI_Win w, v;
    MPI_Errhandler h, got;
    int x = 0;
    made(CREATE, MPI_INFO_NULL, c, &w);
    made(ALLOCATE, MPI_INFO_NULL, c, &v);
    MPI_Win_get_errhandler(w, &got); /* not the communicator's */
    EQ(got, MPI_ERRORS_ARE_FATAL);
    MPI_Win_create_errhandler(handler, &h);
    MPI_Win_set_errhandler(w, h);
    MPI_Win_get_errhandler(w, &got);
    EQ(got, h);
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&h);
    EQ(h, MPI_ERRHANDLER_NULL);
    calls = 0;
    MPI_Win_call_errhandler(w, MPI_ERR_DISP);
    EQ(calls, 1);
    EQ(seen_class, MPI_ERR_DISP);
    EQ(seen_win, w);
    MPI_Win_fence(0, w);
    EQ(class_of(MPI_Put(&x, 1, MPI_INT, size + 3, 0, 1, MPI_INT, w)), MPI_ERR_RANK);
    MPI_Win_fence(0, w);
    EQ(calls, 2);
    EQ(seen_class, MPI_ERR_RANK);
    MPI_Win_set_errhandler(v, MPI_ERRORS_RETURN);
    EQ(class_of(MPI_Win_call_errhandler(v, MPI_ERR_DISP)), MPI_SUCCESS);
    EQ(calls, 2);
    MPI_Win_free(&w);
    MPI_Win_free(&v);
}

/* ---- hints ---- */

static int hint_is(MPI_Win w, const char *key, const char *want)
{
    MPI_Info got;
    char value[MPI_MAX_INFO_VAL + 1];
    int flag, len = sizeof(value);
    MPI_Win_get_info(w, &got);
    CHECK(got != MPI_INFO_NULL);
    MPI_Info_get_string(got, key, &len, value, &flag);
    MPI_Info_free(&got);
    return flag && !strcmp(value, want);
}

/* Hints with a default are reported from the beginning, given hints as given. */
static void hints(enum flavor f, MPI_Comm c)
{
    static const char *const about[][3] = {{"no_locks", "false", "true"},
                                           {"accumulate_ordering", "rar,raw,war,waw", "none"},
                                           {"accumulate_ops", "same_op_no_op", "same_op"},
                                           {"same_size", "false", "true"},
                                           {"same_disp_unit", "false", "true"}};
    MPI_Win w;
    MPI_Info info, got;
    int n = (int)(sizeof(about) / sizeof(about[0])), one = 1, sum = 0, all;
    for (int i = 0; i < n; i++) {
        MPI_Info_create(&info);
        MPI_Info_set(info, about[i][0], i < 3 ? about[i][2] : about[i][1]);
        MPI_Info_set(info, "a hint that nobody knows", "whatever it is");
        made(f, MPI_INFO_NULL, c, &w);
        for (int k = 0; k < n; k++)
            CHECK(hint_is(w, about[k][0], about[k][1]));
        MPI_Win_free(&w);
        made(f, info, c, &w);
        MPI_Info_free(&info); /* the window keeps its own copy */
        for (int k = 0; k < n; k++)
            CHECK(hint_is(w, about[k][0], about[k][k == i && k < 3 ? 2 : 1]));
        MPI_Win_free(&w);
    }
    made(f, MPI_INFO_NULL, c, &w);
    MPI_Info_create(&info);
    MPI_Info_set(info, "a hint that nobody knows", "");
    MPI_Win_set_info(w, info);
    MPI_Info_free(&info);
    MPI_Win_get_info(w, &got); /* can be given back */
    MPI_Win_set_info(w, got);
    MPI_Info_free(&got);
    MPI_Win_fence(0, w);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c);
    MPI_Comm_size(c, &all);
    EQ(sum, all);
    MPI_Win_free(&w);
}

/* ---- several, and many ---- */

/* Each rank puts its number into the window of the next one. */
static void ring(MPI_Win w, int *mem, MPI_Comm c)
{
    int me, n;
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, w);
    MPI_Put(&me, 1, MPI_INT, (me + 1) % n, 0, 1, MPI_INT, w);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
    EQ(*mem, (me + n - 1) % n);
}

/* Windows of parts of the ranks live at the same time as one of all, and outlive their communicators. */
static void parts(void)
{
    MPI_Comm half, dup;
    MPI_Win all, some, own;
    _Alignas(16) int a = -1;
    _Alignas(16) int b = -1;
    int *mem;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Win_create(&a, sizeof(a), 4, MPI_INFO_NULL, dup, &all);
    MPI_Win_create(&b, sizeof(b), 4, MPI_INFO_NULL, half, &some);
    MPI_Win_allocate(sizeof(int), 4, MPI_INFO_NULL, MPI_COMM_SELF, &mem, &own);
    ring(own, mem, MPI_COMM_SELF);
    ring(some, &b, half);
    ring(all, &a, dup);
    a = b = -1;
    MPI_Comm_free(&dup);
    MPI_Win_fence(0, all);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, all);
    MPI_Win_fence(0, all);
    EQ(a, (rank + size - 1) % size);
    MPI_Win_free(&all);
    ring(some, &b, half);
    MPI_Win_free(&some);
    MPI_Comm_free(&half);
    MPI_Win_free(&own);
}

static void many(MPI_Comm node)
{
    enum { ALIVE = 20 };
    MPI_Win w[ALIVE];
    static _Alignas(16) int mem[ALIVE][4];
    int rounds = size > 4 ? 10 : 60, *at;
    for (int k = 0; k < rounds; k++) {
        for (int i = 0; i < ALIVE; i++) {
            if ((i + k) % 10 == 0)
                MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w[i]);
            else
                MPI_Win_create(mem[i], sizeof(int), 4, MPI_INFO_NULL, MPI_COMM_WORLD, &w[i]);
        }
        for (int i = 0; i < ALIVE; i++)
            for (int j = 0; j < i; j++)
                CHECK(w[i] != w[j]);
        for (int i = k % ALIVE; i < ALIVE; i += 7)
            if ((i + k) % 10)
                ring(w[i], mem[i], MPI_COMM_WORLD);
        for (int i = 0; i < ALIVE; i++)
            MPI_Win_free(&w[(i + k) % ALIVE]);
        MPI_Win_allocate(16 * (k + 1), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &at, &w[0]);
        ring(w[0], at, MPI_COMM_WORLD);
        MPI_Win_allocate_shared(1024, 1, MPI_INFO_NULL, node, &at, &w[1]);
        ring(w[1], at, node);
        MPI_Win_free(&w[0]);
        MPI_Win_free(&w[1]);
    }
}

/* A window begins at any byte, and parts of any length lie behind each other. */
static void unaligned(MPI_Comm node)
{
    static _Alignas(16) char mem[48];
    char *at, *base, v = (char)(rank + 1);
    MPI_Aint *bytes;
    MPI_Win w;
    int flag, n, me;
    for (int i = 1; i < 17; i++) {
        memset(mem, 0, sizeof(mem));
        MPI_Win_create(mem + i, 5, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
        MPI_Win_get_attr(w, MPI_WIN_BASE, &base, &flag);
        CHECK(flag && base == mem + i);
        MPI_Win_fence(0, w);
        MPI_Put(&v, 1, MPI_CHAR, (rank + 1) % size, i % 5, 1, MPI_CHAR, w);
        MPI_Win_fence(0, w);
        for (int k = 0; k < 48; k++)
            EQ(mem[k], k == i + i % 5 ? (rank + size - 1) % size + 1 : 0);
        MPI_Win_free(&w);
    }
    for (int shared = 0; shared < 2; shared++) {
        MPI_Comm c = shared ? node : MPI_COMM_WORLD;
        MPI_Comm_rank(c, &me);
        MPI_Comm_size(c, &n);
        if (shared)
            MPI_Win_allocate_shared(2 * me + 5, 1, MPI_INFO_NULL, c, &at, &w);
        else
            MPI_Win_allocate(2 * me + 5, 1, MPI_INFO_NULL, c, &at, &w);
        MPI_Win_get_attr(w, MPI_WIN_BASE, &base, &flag);
        CHECK(flag && base == at);
        MPI_Win_get_attr(w, MPI_WIN_SIZE, &bytes, &flag);
        EQ(*bytes, 2 * me + 5);
        MPI_Win_fence(0, w);
        for (int i = 0; i < *bytes; i++)
            at[i] = (char)-1;
        MPI_Win_fence(0, w);
        v = (char)(me + 1);
        MPI_Put(&v, 1, MPI_CHAR, (me + 1) % n, 4, 1, MPI_CHAR, w);
        MPI_Win_fence(0, w);
        for (int i = 0; i < *bytes; i++)
            EQ(at[i], i == 4 ? (me + n - 1) % n + 1 : -1);
        MPI_Win_free(&w);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm node;
    mt_begin(&argc, &argv);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    for (enum flavor f = 0; f < FLAVORS; f++) {
        attributes(f, f == SHARED ? node : MPI_COMM_WORLD);
        attributes(f, MPI_COMM_SELF);
        hints(f, f == SHARED ? node : MPI_COMM_WORLD);
    }
    names(MPI_COMM_WORLD);
    keyvals(MPI_COMM_WORLD);
    handlers(MPI_COMM_WORLD);
    parts();
    many(node);
    unaligned(node);
    MPI_Comm_free(&node);
    return mt_end();
}
