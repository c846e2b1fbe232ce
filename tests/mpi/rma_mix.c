/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All operations at random, in all synchronizations, over windows of every flavor: rma_mix [SEED [ROUNDS]]. All ranks
 * draw the same plan from the seed and keep a model of every rank's window; after each epoch, the contents and fetched
 * values must equal the model. Within an epoch, no two operations touch the same place, except sums.
 */
#include "rma.h"

#include <stdbool.h>

enum { HOT = 16, INTS = HOT + 40000, ARENA = 1 << 21, CHECKS = 512, LIFE = 12 };
enum kind { PUT, GET, ACCUMULATE, GET_ACCUMULATE, FETCH, SWAP, SUM, KINDS };

/* Ways: the four of rma.h, and an exclusive lock for each operation. */
enum { ALONE = WAYS, ALL_WAYS };

static struct world {
    struct win w;
    int *model; /* INTS for each rank */
    int *used;  /* how much of each rank's part this epoch has given out */
    uint64_t plan;
} worlds[FLAVORS];

/* Buffers that live as long as the epoch, and results checked afterwards. */
static _Alignas(16) char arena[ARENA];
static size_t arena_used;
static struct result {
    const int *got, *want;
    int n, stride;
} results[CHECKS];
static int result_count;
static MPI_Request requests[CHECKS];
static int request_count;
static MPI_Datatype second; /* every second integer */

static int *ints(int n)
{
    int *p = (int *)(arena + arena_used);
    arena_used += ((size_t)n * sizeof(int) + 15) / 16 * 16;
    CHECK(arena_used <= ARENA);
    return p;
}

static void expect(const int *got, const int *at, int n, int stride)
{
    int *want = ints(n);
    for (int i = 0; i < n; i++)
        want[i] = at[i * stride];
    CHECK(result_count < CHECKS);
    results[result_count++] = (struct result){got, want, n, stride};
}

static void apply(MPI_Op op, const int *in, int *at, int n, int stride)
{
    for (int i = 0; i < n; i++, at += stride)
        *at = op == MPI_SUM       ? *at + in[i]
              : op == MPI_MIN     ? (in[i] < *at ? in[i] : *at)
              : op == MPI_BXOR    ? *at ^ in[i]
              : op == MPI_REPLACE ? in[i]
                                  : *at;
}

/* An operation as drawn. */
struct step {
    enum kind kind;
    int t, at, n, stride; /* stride at the target; a result's is 3 - stride */
    bool request, again;  /* with a request; got again after a flush */
    MPI_Op op;
    const int *data;
};

static MPI_Request *request(void)
{
    CHECK(request_count < CHECKS);
    return &requests[request_count++];
}

static void perform(const struct win *w, const struct step *s, const int *before)
{
    MPI_Aint at = at_of(w, s->t, (MPI_Aint)sizeof(int) * s->at);
    MPI_Datatype there = s->stride == 2 ? second : MPI_INT, here = s->stride == 2 ? MPI_INT : second;
    int *got = ints(2 * s->n + 2), stride = 3 - s->stride, n = s->n;
    switch (s->kind) {
    case PUT:
        if (s->request)
            MPI_Rput(s->data, n, MPI_INT, s->t, at, n, there, w->w, request());
        else
            MPI_Put(s->data, n, MPI_INT, s->t, at, n, there, w->w);
        break;
    case GET:
        if (s->request)
            MPI_Rget(got, n, here, s->t, at, n, there, w->w, request());
        else
            MPI_Get(got, n, here, s->t, at, n, there, w->w);
        expect(got, before, n, s->stride);
        results[result_count - 1].stride = stride;
        break;
    case ACCUMULATE:
        if (s->request)
            MPI_Raccumulate(s->data, n, MPI_INT, s->t, at, n, there, s->op, w->w, request());
        else
            MPI_Accumulate(s->data, n, MPI_INT, s->t, at, n, there, s->op, w->w);
        break;
    case GET_ACCUMULATE:
        if (s->request)
            MPI_Rget_accumulate(s->data, n, MPI_INT, got, n, here, s->t, at, n, there, s->op, w->w, request());
        else
            MPI_Get_accumulate(s->data, n, MPI_INT, got, n, here, s->t, at, n, there, s->op, w->w);
        expect(got, before, n, s->stride);
        results[result_count - 1].stride = stride;
        break;
    case FETCH:
        MPI_Fetch_and_op(s->data, got, MPI_INT, s->t, at, s->op, w->w);
        expect(got, before, 1, 1);
        break;
    case SWAP:
        MPI_Compare_and_swap(s->data, s->data + 1, got, MPI_INT, s->t, at, w->w);
        expect(got, before, 1, 1);
        break;
    default:
        MPI_Accumulate(s->data, n, MPI_INT, s->t, at, n, MPI_INT, MPI_SUM, w->w);
    }
}

/* Draws a step, the same on all ranks. */
static struct step draw(struct world *v, int o, bool passive)
{
    static const MPI_Op some[] = {MPI_SUM, MPI_MIN, MPI_BXOR, MPI_REPLACE};
    uint64_t *plan = &v->plan;
    struct step s = {.kind = (enum kind)(next_of(plan) % KINDS), .t = (int)(next_of(plan) % (unsigned)v->w.n)};
    uint32_t dice = next_of(plan), salt = next_of(plan);
    s.n = 1 + (int)(next_of(plan) % (dice % 16 == 0 ? 8000 : dice % 4 == 0 ? 700 : 9));
    s.stride = 1 + (dice >> 8) % 2;
    s.op = some[(dice >> 10) % 4];
    s.request = passive && (dice >> 14) % 2;
    s.again = passive && (dice >> 16) % 3 == 0;
    if (s.kind == FETCH || s.kind == SWAP)
        s.n = s.stride = 1;
    if (v->used[s.t] + s.n * s.stride > INTS) /* the part is full */
        s.kind = SUM;
    if (s.kind == SUM) {
        s.at = (int)(dice >> 20) % HOT;
        s.n = 1 + (int)(dice >> 24) % (HOT - s.at);
        s.stride = 1;
        s.request = s.again = false;
    } else {
        s.at = v->used[s.t];
        v->used[s.t] += s.n * s.stride;
    }
    if (o == v->w.me || s.kind != GET) {
        size_t was = arena_used;
        int *data = ints(s.n + 1);
        for (int i = 0; i <= s.n; i++)
            data[i] = (int)(salt % 100000) + i * 7;
        if (s.kind == SWAP && (dice >> 12) % 2) /* the value to compare with */
            data[1] = v->model[(size_t)s.t * INTS + (size_t)s.at];
        s.data = data;
        if (o != v->w.me) /* needed for the model only, and at once */
            arena_used = was;
    }
    return s;
}

static void step(struct world *v, int o, int way)
{
    bool passive = way == LOCK || way == LOCK_ALL || way == ALONE, mine = o == v->w.me;
    struct step s = draw(v, o, passive);
    int *at = v->model + (size_t)s.t * INTS + s.at;
    if (mine && way == ALONE)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, s.t, 0, v->w.w);
    if (mine)
        perform(&v->w, &s, at);
    if (s.kind == SWAP)
        *at = *at == s.data[1] ? s.data[0] : *at;
    else if (s.kind != GET)
        apply(s.kind == PUT ? MPI_REPLACE : s.kind == SUM ? MPI_SUM : s.op, s.data, at, s.n, s.stride);
    if (mine && s.again) {
        int *got = ints(s.n);
        MPI_Win_flush(s.t, v->w.w);
        MPI_Get(got, s.n, MPI_INT, s.t, at_of(&v->w, s.t, (MPI_Aint)sizeof(int) * s.at), s.n,
                s.stride == 2 ? second : MPI_INT, v->w.w);
        expect(got, at, s.n, s.stride);
        results[result_count - 1].stride = 1;
    }
    if (mine && way == ALONE) {
        MPI_Waitall(request_count, requests, MPI_STATUSES_IGNORE);
        request_count = 0;
        MPI_Win_unlock(s.t, v->w.w);
    }
}

static void epoch(struct world *v)
{
    int way = (int)(next_of(&v->plan) % ALL_WAYS), each = 1 + (int)(next_of(&v->plan) % 8);
    arena_used = 0;
    result_count = request_count = 0;
    for (int t = 0; t < v->w.n; t++)
        v->used[t] = HOT + (int)(next_of(&v->plan) % 50);
    if (way != ALONE)
        way_open((enum way)way, &v->w);
    else
        MPI_Barrier(v->w.comm);
    for (int i = 0; i < each; i++)
        for (int o = 0; o < v->w.n; o++)
            step(v, o, way);
    MPI_Waitall(request_count, requests, MPI_STATUSES_IGNORE);
    if (way != ALONE)
        way_close((enum way)way, &v->w);
    else
        MPI_Barrier(v->w.comm);
    for (int i = 0; i < result_count; i++)
        for (int k = 0; k < results[i].n; k++)
            EQ(results[i].got[k * results[i].stride], results[i].want[k]);
    own_open(&v->w);
    for (int i = 0; i < INTS; i++)
        EQ(((int *)v->w.mem)[i], v->model[(size_t)v->w.me * INTS + (size_t)i]);
    own_close(&v->w);
    MPI_Barrier(v->w.comm);
}

static void begin(struct world *v, enum flavor f, uint64_t seed)
{
    win_make(&v->w, f, INTS * sizeof(int));
    v->model = calloc((size_t)v->w.n * INTS, sizeof(int));
    v->used = calloc((size_t)v->w.n, sizeof(int));
    CHECK(v->model && v->used);
    v->plan = seed + (unsigned)f;
}

static void end(struct world *v)
{
    win_free(&v->w);
    free(v->model);
    free(v->used);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, which = seed;
    int rounds = argc > 2 ? atoi(argv[2]) : size > 4 ? 60 : 200;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &second);
    MPI_Type_commit(&second);
    for (int k = 0; k < rounds; k++) {
        if (k % LIFE == 0)
            for (enum flavor f = 0; f < FLAVORS; f++) {
                if (k)
                    end(&worlds[f]);
                begin(&worlds[f], f, seed * 1000 + (unsigned)k);
            }
        epoch(&worlds[next_of(&which) % FLAVORS]);
    }
    for (enum flavor f = 0; f < FLAVORS && rounds > 0; f++)
        end(&worlds[f]);
    MPI_Type_free(&second);
    return mt_end();
}
