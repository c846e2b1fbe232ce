/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors of windows: each has its class, calls the handler of its window, and nothing happens to the target. Operations
 * without a required epoch, lock, or room at the target are refused, and windows work afterwards.
 */
#include "rma.h"

enum { INTS = 16, NONE = 0x12345 };

static int calls, seen_class;
static MPI_Win seen_win;

static void handler(MPI_Win *w, int *code, ...)
{
    calls++;
    seen_win = *w;
    seen_class = class_of(*code);
}

/* The call fails with this class, and its window's handler has been called once. */
#define FAILS(call, class, w)                                                                                          \
    do {                                                                                                               \
        calls = 0;                                                                                                     \
        EQ(class_of(call), class);                                                                                     \
        EQ(calls, 1);                                                                                                  \
        EQ(seen_class, class);                                                                                         \
        EQ(seen_win, w);                                                                                               \
    } while (0)

/* Errors without a class of their own in the standard: the call fails. */
#define REFUSED(call)                                                                                                  \
    do {                                                                                                               \
        calls = 0;                                                                                                     \
        CHECK((call) != MPI_SUCCESS);                                                                                  \
        EQ(calls, 1);                                                                                                  \
    } while (0)

static MPI_Errhandler ours;
static int x[INTS], y[INTS];

static void untouched(const struct win *w)
{
    MPI_Barrier(w->comm);
    own_open(w);
    for (int i = 0; i < INTS; i++)
        EQ(((int *)w->mem)[i], 0);
    own_close(w);
    for (int i = 0; i < INTS; i++)
        CHECK(x[i] == i + 1 && y[i] == -1);
    MPI_Barrier(w->comm);
}

static void works(const struct win *w)
{
    int right = (w->me + 1) % w->n, left = (w->me + w->n - 1) % w->n, v = w->me + 1, got = 0;
    for (enum way way = 0; way < WAYS; way++) {
        way_open(way, w);
        MPI_Put(&v, 1, MPI_INT, right, at_of(w, right, 4), 1, MPI_INT, w->w);
        way_close(way, w);
        way_open(way, w);
        MPI_Get(&got, 1, MPI_INT, left, at_of(w, left, 4), 1, MPI_INT, w->w);
        way_close(way, w);
        EQ(got, (left + w->n - 1) % w->n + 1);
        own_set(w, 0);
    }
    MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, w->w);
}

/* ---- arguments of operations, in an epoch ---- */

static void nothing_op(void *in, void *inout, int *n, MPI_Datatype *t)
{
}

static void arguments(const struct win *w, int t)
{
    MPI_Win v = w->w;
    MPI_Aint at = at_of(w, t, 0);
    MPI_Datatype fresh, pair, mixed;
    MPI_Op mine;
    int one[2] = {1, 1};
    MPI_Aint disp[2] = {0, 8};
    MPI_Datatype parts[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Type_contiguous(2, MPI_INT, &fresh);
    MPI_Type_dup(fresh, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_create_struct(2, one, disp, parts, &mixed);
    MPI_Type_commit(&mixed);
    MPI_Op_create(nothing_op, 1, &mine);

    FAILS(MPI_Put(x, 1, MPI_INT, w->n, at, 1, MPI_INT, v), MPI_ERR_RANK, v);
    FAILS(MPI_Get(y, 1, MPI_INT, -7, at, 1, MPI_INT, v), MPI_ERR_RANK, v);
    FAILS(MPI_Accumulate(x, 1, MPI_INT, w->n, at, 1, MPI_INT, MPI_SUM, v), MPI_ERR_RANK, v);
    FAILS(MPI_Fetch_and_op(x, y, MPI_INT, w->n, at, MPI_SUM, v), MPI_ERR_RANK, v);
    FAILS(MPI_Compare_and_swap(x, x, y, MPI_INT, w->n, at, v), MPI_ERR_RANK, v);
    FAILS(MPI_Put(x, -1, MPI_INT, t, at, 1, MPI_INT, v), MPI_ERR_COUNT, v);
    FAILS(MPI_Get(y, 1, MPI_INT, t, at, -1, MPI_INT, v), MPI_ERR_COUNT, v);
    FAILS(MPI_Get_accumulate(x, 1, MPI_INT, y, -1, MPI_INT, t, at, 1, MPI_INT, MPI_SUM, v), MPI_ERR_COUNT, v);
    FAILS(MPI_Put(x, 1, MPI_DATATYPE_NULL, t, at, 1, MPI_INT, v), MPI_ERR_TYPE, v);
    FAILS(MPI_Put(x, 1, MPI_INT, t, at, 1, NONE, v), MPI_ERR_TYPE, v);
    FAILS(MPI_Put(x, 2, MPI_INT, t, at, 1, fresh, v), MPI_ERR_TYPE, v); /* not committed */
    FAILS(MPI_Accumulate(x, 1, MPI_INT, t, at, 1, MPI_INT, MPI_OP_NULL, v), MPI_ERR_OP, v);
    FAILS(MPI_Accumulate(x, 1, MPI_INT, t, at, 1, MPI_INT, mine, v), MPI_ERR_OP, v); /* predefined ones only */
    FAILS(MPI_Fetch_and_op(x, y, MPI_INT, t, at, mine, v), MPI_ERR_OP, v);
    FAILS(MPI_Accumulate(x, 1, MPI_INT, t, at, 1, MPI_INT, MPI_NO_OP, v), MPI_ERR_OP, v);
    FAILS(MPI_Accumulate(x, 1, MPI_C_BOOL, t, at, 1, MPI_C_BOOL, MPI_SUM, v), MPI_ERR_OP, v);
    FAILS(MPI_Fetch_and_op(x, y, MPI_DOUBLE, t, at, MPI_BAND, v), MPI_ERR_OP, v);
    FAILS(MPI_Compare_and_swap(x, x, y, MPI_DOUBLE, t, at, v), MPI_ERR_TYPE, v);
    FAILS(MPI_Compare_and_swap(x, x, y, pair, t, at, v), MPI_ERR_TYPE, v);
    FAILS(MPI_Fetch_and_op(x, y, pair, t, at, MPI_SUM, v), MPI_ERR_TYPE, v);
    REFUSED(MPI_Accumulate(x, 1, mixed, t, at, 1, mixed, MPI_REPLACE, v)); /* of one predefined type only */
    REFUSED(MPI_Accumulate(x, 1, MPI_INT, t, at, 1, MPI_FLOAT, MPI_SUM, v));
    REFUSED(MPI_Put(x, 3, MPI_INT, t, at, 1, pair, v)); /* more than there is room for */
    REFUSED(MPI_Get(y, 1, MPI_INT, t, at, 1, pair, v));
    MPI_Op_free(&mine);
    MPI_Type_free(&fresh);
    MPI_Type_free(&pair);
    MPI_Type_free(&mixed);
}

/* Before the window, over its end, far behind it; of as many bytes as there are none fails. */
static void ranges(const struct win *w, int t)
{
    MPI_Win v = w->w;
    MPI_Datatype wide;
    MPI_Type_vector(2, 1, INTS, MPI_INT, &wide);
    MPI_Type_commit(&wide);
    FAILS(MPI_Put(x, 1, MPI_INT, t, -1, 1, MPI_INT, v), MPI_ERR_DISP, v);
    FAILS(MPI_Put(x, 1, MPI_INT, t, INTS * 4, 1, MPI_INT, v), MPI_ERR_RMA_RANGE, v);
    FAILS(MPI_Put(x, 1, MPI_INT, t, INTS * 4 - 3, 1, MPI_INT, v), MPI_ERR_RMA_RANGE, v);
    FAILS(MPI_Get(y, 2, MPI_INT, t, INTS * 4 - 4, 2, MPI_INT, v), MPI_ERR_RMA_RANGE, v);
    FAILS(MPI_Get(y, 1, MPI_INT, t, PTRDIFF_MAX, 1, MPI_INT, v), MPI_ERR_RMA_RANGE, v);
    FAILS(MPI_Put(x, 2, MPI_INT, t, 0, 1, wide, v), MPI_ERR_RMA_RANGE, v); /* its second element is outside */
    FAILS(MPI_Accumulate(x, 1, MPI_INT, t, INTS * 4, 1, MPI_INT, MPI_SUM, v), MPI_ERR_RMA_RANGE, v);
    FAILS(MPI_Get_accumulate(x, 1, MPI_INT, y, 1, MPI_INT, t, INTS * 4, 1, MPI_INT, MPI_SUM, v), MPI_ERR_RMA_RANGE, v);
    FAILS(MPI_Fetch_and_op(x, y, MPI_INT, t, INTS * 4 - 2, MPI_SUM, v), MPI_ERR_RMA_RANGE, v);
    FAILS(MPI_Compare_and_swap(x, x, y, MPI_INT, t, INTS * 4, v), MPI_ERR_RMA_RANGE, v);
    MPI_Type_free(&wide);
    EQ(MPI_Put(x, 0, MPI_INT, t, INTS * 4, 0, MPI_INT, v), MPI_SUCCESS);
    EQ(MPI_Get(y, 0, MPI_INT, t, INTS * 4, 0, MPI_INT, v), MPI_SUCCESS);
}

/* ---- synchronization ---- */

static void outside(const struct win *w, int t)
{
    MPI_Win v = w->w;
    MPI_Aint at = at_of(w, t, 0);
    MPI_Request q = MPI_REQUEST_NULL;
    FAILS(MPI_Put(x, 1, MPI_INT, t, at, 1, MPI_INT, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Get(y, 1, MPI_INT, t, at, 1, MPI_INT, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Accumulate(x, 1, MPI_INT, t, at, 1, MPI_INT, MPI_SUM, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Get_accumulate(x, 1, MPI_INT, y, 1, MPI_INT, t, at, 1, MPI_INT, MPI_SUM, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Fetch_and_op(x, y, MPI_INT, t, at, MPI_SUM, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Compare_and_swap(x, x, y, MPI_INT, t, at, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Rput(x, 1, MPI_INT, t, at, 1, MPI_INT, v, &q), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Rget(y, 1, MPI_INT, t, at, 1, MPI_INT, v, &q), MPI_ERR_RMA_SYNC, v);
    EQ(q, MPI_REQUEST_NULL);
}

static void epochs(const struct win *w, int t)
{
    MPI_Win v = w->w;
    MPI_Aint at = at_of(w, t, 0);
    MPI_Group all, self, none = MPI_GROUP_EMPTY;
    MPI_Request q = MPI_REQUEST_NULL;
    int flag, other = (t + 1) % w->n;
    MPI_Win_get_group(v, &all);
    MPI_Group_incl(all, 1, &w->me, &self);
    outside(w, t);
    FAILS(MPI_Win_unlock(t, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_unlock_all(v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_flush(t, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_flush_local(t, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_flush_all(v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_flush_local_all(v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_complete(v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_wait(v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_test(v, &flag), MPI_ERR_RMA_SYNC, v);

    MPI_Win_lock(MPI_LOCK_SHARED, t, 0, v);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, t, 0, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_lock_all(0, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_unlock_all(v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_start(self, 0, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_fence(0, v), MPI_ERR_RMA_SYNC, v);
    if (other != t) {
        FAILS(MPI_Put(x, 1, MPI_INT, other, at_of(w, other, 0), 1, MPI_INT, v), MPI_ERR_RMA_SYNC, v);
        FAILS(MPI_Win_flush(other, v), MPI_ERR_RMA_SYNC, v);
        FAILS(MPI_Win_unlock(other, v), MPI_ERR_RMA_SYNC, v);
    }
    MPI_Win_unlock(t, v);
    outside(w, t);

    MPI_Win_lock_all(0, v);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, t, 0, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_lock_all(0, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_unlock(t, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_start(none, 0, v), MPI_ERR_RMA_SYNC, v);
    MPI_Win_unlock_all(v);
    outside(w, t);

    MPI_Win_post(self, 0, v);
    FAILS(MPI_Win_post(self, 0, v), MPI_ERR_RMA_SYNC, v);
    outside(w, t); /* exposes, and does not access */
    MPI_Win_start(self, 0, v);
    FAILS(MPI_Win_start(self, 0, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, t, 0, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_lock_all(0, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Win_flush(t, v), MPI_ERR_RMA_SYNC, v);
    FAILS(MPI_Rput(x, 1, MPI_INT, w->me, at_of(w, w->me, 0), 1, MPI_INT, v, &q), MPI_ERR_RMA_SYNC, v);
    if (t != w->me) /* not a target of the epoch */
        FAILS(MPI_Put(x, 1, MPI_INT, t, at, 1, MPI_INT, v), MPI_ERR_RMA_SYNC, v);
    MPI_Win_complete(v);
    MPI_Win_wait(v);
    outside(w, t);

    MPI_Barrier(w->comm);
    MPI_Win_fence(0, v);
    FAILS(MPI_Rget(y, 1, MPI_INT, t, at, 1, MPI_INT, v, &q), MPI_ERR_RMA_SYNC, v); /* for passive targets only */
    FAILS(MPI_Win_flush(t, v), MPI_ERR_RMA_SYNC, v);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, v);
    outside(w, t);
    MPI_Group_free(&all);
    MPI_Group_free(&self);
}

static void synchronizations(const struct win *w, int t)
{
    MPI_Win v = w->w;
    FAILS(MPI_Win_lock(5, t, 0, v), MPI_ERR_LOCKTYPE, v);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, w->n, 0, v), MPI_ERR_RANK, v);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, -7, 0, v), MPI_ERR_RANK, v);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, t, 1, v), MPI_ERR_ASSERT, v);
    FAILS(MPI_Win_lock_all(1, v), MPI_ERR_ASSERT, v);
    FAILS(MPI_Win_fence(1, v), MPI_ERR_ASSERT, v);
    FAILS(MPI_Win_post(MPI_GROUP_EMPTY, 1, v), MPI_ERR_ASSERT, v);
    FAILS(MPI_Win_start(MPI_GROUP_EMPTY, 1, v), MPI_ERR_ASSERT, v);
    FAILS(MPI_Win_post(MPI_GROUP_NULL, 0, v), MPI_ERR_GROUP, v);
    FAILS(MPI_Win_start(MPI_GROUP_NULL, 0, v), MPI_ERR_GROUP, v);
    MPI_Win_lock_all(0, v);
    FAILS(MPI_Win_flush(w->n, v), MPI_ERR_RANK, v);
    FAILS(MPI_Win_flush_local(-7, v), MPI_ERR_RANK, v);
    MPI_Win_unlock_all(v);
    FAILS(MPI_Win_unlock(w->n, v), MPI_ERR_RANK, v);
}

/* ---- creation, and functions of some flavors ---- */

#define COMM_FAILS(call, class) EQ(class_of(call), class)

static void making(MPI_Comm node)
{
    MPI_Win v = MPI_WIN_NULL;
    MPI_Comm inter, half;
    void *p = NULL;
    int n;
    COMM_FAILS(MPI_Win_create(x, -1, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &v), MPI_ERR_SIZE);
    COMM_FAILS(MPI_Win_create(x, 4, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &v), MPI_ERR_DISP);
    COMM_FAILS(MPI_Win_create(x, 4, -4, MPI_INFO_NULL, MPI_COMM_WORLD, &v), MPI_ERR_DISP);
    CHECK(MPI_Win_create(NULL, 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &v) != MPI_SUCCESS);
    COMM_FAILS(MPI_Win_create(x, 4, 4, MPI_INFO_NULL, MPI_COMM_NULL, &v), MPI_ERR_COMM);
    COMM_FAILS(MPI_Win_create(x, 4, 4, NONE, MPI_COMM_WORLD, &v), MPI_ERR_INFO);
    COMM_FAILS(MPI_Win_create(x, 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    COMM_FAILS(MPI_Win_allocate(-1, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &p, &v), MPI_ERR_SIZE);
    COMM_FAILS(MPI_Win_allocate(4, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &p, &v), MPI_ERR_DISP);
    COMM_FAILS(MPI_Win_allocate_shared(-1, 4, MPI_INFO_NULL, node, &p, &v), MPI_ERR_SIZE);
    COMM_FAILS(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_NULL, &v), MPI_ERR_COMM);
    CHECK(v == MPI_WIN_NULL);
    MPI_Comm_size(node, &n);
    if (n < size) /* not all of them share memory */
        COMM_FAILS(MPI_Win_allocate_shared(4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &p, &v), MPI_ERR_RMA_SHARED);
    if (size > 1) {
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 0, &inter);
        MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
        COMM_FAILS(MPI_Win_create(x, 4, 4, MPI_INFO_NULL, inter, &v), MPI_ERR_COMM);
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
    /* no window: an error of the process */
    MPI_Win_create(x, 4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &v);
    MPI_Win gone = v;
    MPI_Win_free(&v);
    MPI_Win none[] = {MPI_WIN_NULL, NONE, gone};
    for (int i = 0; i < 3; i++) {
        COMM_FAILS(MPI_Put(x, 1, MPI_INT, 0, 0, 1, MPI_INT, none[i]), MPI_ERR_WIN);
        COMM_FAILS(MPI_Win_fence(0, none[i]), MPI_ERR_WIN);
        COMM_FAILS(MPI_Win_lock_all(0, none[i]), MPI_ERR_WIN);
        v = none[i];
        COMM_FAILS(MPI_Win_free(&v), MPI_ERR_WIN);
    }
}

static void flavors(MPI_Comm node)
{
    struct win w, d, s;
    MPI_Aint bytes;
    int unit, t = (rank + 1) % size;
    char *p;
    win_make(&w, CREATE, 64);
    win_make(&d, DYNAMIC, 64);
    win_make(&s, SHARED, 64);
    MPI_Win_set_errhandler(w.w, ours);
    MPI_Win_set_errhandler(d.w, ours);
    MPI_Win_set_errhandler(s.w, ours);
    FAILS(MPI_Win_attach(w.w, x, sizeof(x)), MPI_ERR_RMA_FLAVOR, w.w);
    FAILS(MPI_Win_detach(s.w, x), MPI_ERR_RMA_FLAVOR, s.w);
    FAILS(MPI_Win_shared_query(d.w, 0, &bytes, &unit, &p), MPI_ERR_RMA_FLAVOR, d.w);
    FAILS(MPI_Win_shared_query(s.w, s.n, &bytes, &unit, &p), MPI_ERR_RANK, s.w);
    FAILS(MPI_Win_attach(d.w, y, -1), MPI_ERR_SIZE, d.w);
    FAILS(MPI_Win_attach(d.w, d.mem + 32, 64), MPI_ERR_RMA_ATTACH, d.w); /* half of it is attached */
    FAILS(MPI_Win_detach(d.w, y), MPI_ERR_RMA_ATTACH, d.w);
    /* memory that is not attached, or no longer: told at the latest when the operation is completed */
    static int apart[INTS];
    MPI_Aint at, *all = room(sizeof(at) * (size_t)size);
    MPI_Get_address(apart, &at);
    MPI_Allgather(&at, 1, MPI_AINT, all, 1, MPI_AINT, MPI_COMM_WORLD);
    for (int k = 0; k < 2; k++) {
        if (k) {
            MPI_Win_attach(d.w, apart, sizeof(apart));
            MPI_Win_detach(d.w, apart);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, t, 0, d.w);
        calls = 0;
        int code = MPI_Put(x, 1, MPI_INT, t, all[t], 1, MPI_INT, d.w), later = MPI_Win_flush(t, d.w);
        EQ(class_of(code != MPI_SUCCESS ? code : later), MPI_ERR_RMA_RANGE);
        EQ(calls, 1);
        MPI_Win_unlock(t, d.w);
        MPI_Barrier(MPI_COMM_WORLD);
        EQ(apart[0], 0);
    }
    free(all);
    works(&d);
    win_free(&s);
    win_free(&d);
    win_free(&w);
}

/* An epoch that is open keeps its window from being freed; a request of an operation cannot be given up. */
static void frees(void)
{
    struct win w;
    MPI_Win v;
    MPI_Request q, was;
    win_make(&w, ALLOCATE, 64);
    MPI_Win_set_errhandler(w.w, ours);
    MPI_Win_lock_all(0, w.w);
    v = w.w;
    FAILS(MPI_Win_free(&v), MPI_ERR_RMA_SYNC, w.w);
    EQ(v, w.w);
    MPI_Rput(x, 1, MPI_INT, w.me, at_of(&w, w.me, 0), 1, MPI_INT, w.w, &q);
    was = q;
    CHECK(MPI_Request_free(&q) != MPI_SUCCESS);
    EQ(q, was);
    CHECK(MPI_Cancel(&q) != MPI_SUCCESS);
    EQ(MPI_Wait(&q, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_Win_unlock_all(w.w);
    win_free(&w);
}

int main(int argc, char **argv)
{
    MPI_Comm node;
    mt_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Win_create_errhandler(handler, &ours);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN);
    for (int i = 0; i < INTS; i++) {
        x[i] = i + 1;
        y[i] = -1;
    }
    for (enum flavor f = 0; f < FLAVORS; f++) {
        struct win w;
        win_make(&w, f, sizeof(x));
        MPI_Win_set_errhandler(w.w, ours);
        for (int near = 0; near < 2; near++) {
            int t = near ? w.me : (w.me + 1) % w.n;
            epochs(&w, t);
            synchronizations(&w, t);
            MPI_Barrier(w.comm);
            for (enum way way = 0; way < WAYS; way++) {
                way_open(way, &w);
                arguments(&w, t);
                if (f != DYNAMIC)
                    ranges(&w, t);
                way_close(way, &w);
            }
            MPI_Win_fence(MPI_MODE_NOSUCCEED, w.w);
            untouched(&w);
        }
        works(&w);
        win_free(&w);
    }
    making(node);
    flavors(node);
    frees();
    MPI_Comm_free(&node);
    MPI_Errhandler_free(&ours);
    return mt_end();
}
