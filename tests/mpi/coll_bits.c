/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions of floating point: coll_bits SEED [REPETITIONS [NUMBERS]], of at most so many numbers. Ranks are late at
 * random, by SEED. All ranks of an allreduce have the same bits; an operation that is repeated on one communicator has
 * the same bits each time, once the communicator has been used a little. Rank 0 prints a digest of each kind of
 * operation: of every result of every rank, so other runs, with other seeds, shall print the same. The last kind adds
 * in the order of arrival, and does not.
 *
 * Some operations have other results with exchanged operands, though the program declares that they commute, or the
 * standard says so: the larger absolute value of 1 and -1, the maximum of a NaN and a number, of 0 and -0.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "mt.h"

/* Of doubles: around the limits between algorithms, with and without a remainder. */
static const int sizes[] = {1, 7, 256, 257, 512, 1000, 1024, 1025, 4096, 8193, 32768, 65539, 524288};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), LONGEST = 524288, SETTLED = 6 };

static uint64_t random_state;

static unsigned draw(unsigned below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % below;
}

static void be_late(void)
{
    if (draw(3) == 0)
        usleep(1 + draw(150));
}

static uint64_t digest_of(uint64_t digest, const void *buf, size_t bytes)
{
    const unsigned char *b = buf;
    uint64_t word;
    for (size_t i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
        memcpy(&word, b + i, sizeof(word));
        digest = (digest ^ word) * 0x100000001b3u;
        digest ^= digest >> 29;
    }
    return digest;
}

/* ---- kinds of operations: out has room for n, and gets `*got` results ---- */

static const double *in, *peculiar; /* peculiar: NaNs, zeros and ones of both signs, by rank and place */
static double *out;
static MPI_Request persistent = MPI_REQUEST_NULL;
static MPI_Datatype pair; /* of doubles */
static MPI_Op larger, composed;

/* Of pairs, by the first number. */
static void larger_fn(void *in_pairs, void *inout_pairs, int *n, MPI_Datatype *type)
{
    const double *x = in_pairs;
    double *y = inout_pairs;
    (void)type;
    for (int i = 0; i < 2 * *n; i += 2)
        if (!(fabs(x[i]) < fabs(y[i])))
            memcpy(y + i, x + i, 2 * sizeof(*y));
}

/* Pairs (a, b) are functions, z -> a * z + b, of which the first rank's is applied last. */
static void composed_fn(void *in_pairs, void *inout_pairs, int *n, MPI_Datatype *type)
{
    const double *x = in_pairs;
    double *y = inout_pairs;
    (void)type;
    for (int i = 0; i < 2 * *n; i += 2) {
        y[i + 1] = x[i] * y[i + 1] + x[i + 1];
        y[i] *= x[i];
    }
}

static int allreduce(int n, MPI_Comm c)
{
    MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, c);
    return n;
}

static int allreduce_in_place(int n, MPI_Comm c)
{
    memcpy(out, in, (size_t)n * sizeof(*out));
    MPI_Allreduce(MPI_IN_PLACE, out, n, MPI_DOUBLE, MPI_SUM, c);
    return n;
}

static int iallreduce(int n, MPI_Comm c)
{
    MPI_Request q;
    MPI_Iallreduce(in, out, n, MPI_DOUBLE, MPI_SUM, c, &q);
    be_late();
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    return n;
}

static int allreduce_init(int n, MPI_Comm c)
{
    if (persistent == MPI_REQUEST_NULL)
        MPI_Allreduce_init(in, out, n, MPI_DOUBLE, MPI_SUM, c, MPI_INFO_NULL, &persistent);
    MPI_Start(&persistent);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    return n;
}

static int reduce(int n, MPI_Comm c)
{
    int root = n % size;
    MPI_Reduce(in, out, n, MPI_DOUBLE, MPI_SUM, root, c);
    return rank == root ? n : 0;
}

static int scan(int n, MPI_Comm c)
{
    MPI_Scan(in, out, n, MPI_DOUBLE, MPI_SUM, c);
    return n;
}

static int exscan(int n, MPI_Comm c)
{
    MPI_Exscan(in, out, n, MPI_DOUBLE, MPI_SUM, c);
    return rank ? n : 0;
}

static int reduce_scatter(int n, MPI_Comm c)
{
    MPI_Reduce_scatter_block(in, out, n / size, MPI_DOUBLE, MPI_SUM, c);
    return n / size;
}

static int allreduce_max(int n, MPI_Comm c)
{
    MPI_Allreduce(peculiar, out, n, MPI_DOUBLE, MPI_MAX, c);
    return n;
}

static int allreduce_pairs(const double *pairs, int n, MPI_Op op, MPI_Comm c)
{
    MPI_Allreduce(pairs, out, (n + 1) / 2, pair, op, c);
    return (n + 1) / 2 * 2;
}

static int allreduce_larger(int n, MPI_Comm c)
{
    return allreduce_pairs(peculiar, n, larger, c);
}

static int iallreduce_larger(int n, MPI_Comm c)
{
    MPI_Request q;
    MPI_Iallreduce(peculiar, out, (n + 1) / 2, pair, larger, c, &q);
    be_late();
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    return (n + 1) / 2 * 2;
}

static int allreduce_composed(int n, MPI_Comm c)
{
    return allreduce_pairs(in, n, composed, c);
}

static int reduce_composed(int n, MPI_Comm c)
{
    int root = n % size;
    MPI_Reduce(in, out, (n + 1) / 2, pair, composed, root, c);
    return rank == root ? (n + 1) / 2 * 2 : 0;
}

/* Not an operation of MPI: shows that ranks are late enough to change an order. */
static int by_arrival(int n, MPI_Comm c)
{
    if (rank)
        MPI_Send(in, n, MPI_DOUBLE, 0, 1, c);
    else
        memcpy(out, in, (size_t)n * sizeof(*out));
    for (int i = 1; i < size && !rank; i++) {
        double *theirs = malloc((size_t)n * sizeof(*theirs));
        CHECK(theirs);
        MPI_Recv(theirs, n, MPI_DOUBLE, MPI_ANY_SOURCE, 1, c, MPI_STATUS_IGNORE);
        for (int k = 0; k < n; k++)
            out[k] += theirs[k];
        free(theirs);
    }
    MPI_Barrier(c);
    return rank ? 0 : n;
}

static const struct kind {
    const char *name;
    int (*run)(int n, MPI_Comm c);
    bool same_everywhere, by_arrival;
} kinds[] = {
    {"allreduce", allreduce, true, false},
    {"in_place", allreduce_in_place, true, false},
    {"iallreduce", iallreduce, true, false},
    {"allreduce_init", allreduce_init, true, false},
    {"reduce", reduce, false, false},
    {"scan", scan, false, false},
    {"exscan", exscan, false, false},
    {"reduce_scatter", reduce_scatter, false, false},
    {"max", allreduce_max, true, false},
    {"larger", allreduce_larger, true, false},
    {"ilarger", iallreduce_larger, true, false},
    {"composed", allreduce_composed, true, false},
    {"reduce_composed", reduce_composed, false, false},
    {"by_arrival", by_arrival, false, true},
};

static void try(const struct kind *k, int repetitions, int most, uint64_t *all)
{
    uint64_t digest = 0;
    for (int s = 0; s < SIZES; s++) {
        int n = sizes[s], times = n > 8193 ? (repetitions + 1) / 2 : repetitions;
        uint64_t settled = 0;
        MPI_Comm c;
        if (n > most || (k->by_arrival && n > 4096))
            continue;
        MPI_Comm_dup(MPI_COMM_WORLD, &c);
        for (int i = 0; i < times; i++) {
            be_late();
            int got = k->run(n, c);
            uint64_t mine = digest_of(1, out, (size_t)got * sizeof(*out));
            MPI_Allgather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, MPI_COMM_WORLD);
            for (int j = 0; j < size; j++)
                CHECK(!k->same_everywhere || all[j] == mine);
            if (i == SETTLED)
                settled = mine;
            CHECK(k->by_arrival || i <= SETTLED || mine == settled);
            digest = digest_of(digest, all, (size_t)size * sizeof(*all));
        }
        if (persistent != MPI_REQUEST_NULL)
            MPI_Request_free(&persistent);
        MPI_Comm_free(&c);
    }
    if (rank == 0)
        printf("%s %016llx\n", k->name, (unsigned long long)digest);
}

int main(int argc, char **argv)
{
    int repetitions = argc > 2 ? atoi(argv[2]) : 20, most = argc > 3 ? atoi(argv[3]) : LONGEST;
    mt_begin(&argc, &argv);
    random_state = (uint64_t)atoi(argv[1]) * 1000003 + (uint64_t)rank;
    draw(1);
    double *numbers = malloc(LONGEST * sizeof(*numbers)), *strange = malloc(LONGEST * sizeof(*strange));
    uint64_t *all = malloc((size_t)size * sizeof(*all));
    out = malloc(LONGEST * sizeof(*out));
    CHECK(numbers && strange && out && all);
    for (int i = 0; i < LONGEST; i++) /* sums depend on the order: of different size, and of both signs */
        numbers[i] = (i % 3 ? 1 : -1) / (3.0 + rank + i % 1009) * (rank % 2 ? 1e6 : 1) + 1.0 / (7 + rank);
    for (int i = 0; i < LONGEST; i++) {
        static const double values[] = {1, -1, 0, 0, NAN};
        int k = (i / 2 + rank * (i % 7 + 1)) % 5;
        strange[i] = k == 3 ? -0.0 : values[k];
    }
    in = numbers;
    peculiar = strange;
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(larger_fn, 1, &larger);
    MPI_Op_create(composed_fn, 0, &composed);
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        try(&kinds[k], repetitions, most, all);
    MPI_Op_free(&larger);
    MPI_Op_free(&composed);
    MPI_Type_free(&pair);
    free(numbers);
    free(strange);
    free(out);
    free(all);
    return mt_end();
}
