/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking collectives in which each rank has a part of its own size, or a result of its own: allgatherv, gatherv,
 * scatterv, alltoallv, alltoallw, reduce_scatter, scan and exscan. All sizes around the piece size of a node's shared
 * memory; types with holes, operations that do not commute, empty parts, MPI_IN_PLACE; and all of them in turn with
 * others, small and large.
 */
#include <stdbool.h>
#include <stdint.h>

#include "mt.h"

static MPI_Comm comm;
static int r, p;

static const int sizes[] = {0, 1, 5, 6, 7, 100, 255, 256, 257, 1023, 1024, 1025, 5000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), LONGEST = 5000 };

/* x -> a x + b, applied in sequence, which does not commute. Elements have a hole behind. */
struct map {
    uint32_t a, b;
};
struct holey {
    struct map map;
    uint32_t hole;
};
static MPI_Datatype holey;
static MPI_Op op;

static void compose(void *in, void *inout, int *len, MPI_Datatype *t)
{
    const struct holey *f = in;
    struct holey *g = inout;
    for (int i = 0; i < *len; i++) {
        uint32_t a = f[i].map.a * g[i].map.a;
        g[i].map.b = f[i].map.b * g[i].map.a + g[i].map.b;
        g[i].map.a = a;
    }
}

static struct map map_of(int who, int i)
{
    return (struct map){(uint32_t)(2 * (who + i) + 3), (uint32_t)(who * 5 + i)};
}

/* Of ranks 0 to last. */
static struct map all_of(int last, int i)
{
    struct holey all = {.map = map_of(last, i)};
    int one = 1;
    for (int j = last - 1; j >= 0; j--) {
        struct holey next = {.map = map_of(j, i)};
        compose(&next, &all, &one, &holey);
    }
    return all.map;
}

static void fill(struct holey *b, int n)
{
    for (int i = 0; i < n; i++)
        b[i] = (struct holey){map_of(r, i), (uint32_t)i};
}

static void is_map(struct holey got, struct map want)
{
    EQ(got.map.a, want.a);
    EQ(got.map.b, want.b);
}

static void scans(int n)
{
    static struct holey in[LONGEST], out[LONGEST];
    for (int form = 0; form < 4; form++) {
        int exclusive = form % 2;
        bool in_place = form / 2;
        fill(in, n);
        fill(out, n);
        (exclusive ? MPI_Exscan : MPI_Scan)(in_place ? MPI_IN_PLACE : in, out, n, holey, op, comm);
        for (int i = 0; i < n && r >= exclusive; i++) {
            is_map(out[i], all_of(r - exclusive, i));
            EQ(out[i].hole, i);
        }
    }
}

/* Part j of n elements and a few more; some have none. */
static int part(int n, int j)
{
    return j % 3 == 2 ? 0 : n / p + (j + n) % 3;
}

static int parts(int n, int *counts, int *displs)
{
    int total = 0;
    for (int j = 0; j < p; j++) {
        counts[j] = part(n, j);
        displs[j] = total;
        total += counts[j];
    }
    return total;
}

static void reduce_scatters(int n)
{
    int *counts = calloc(2 * (size_t)p, sizeof(int)), *at = counts + p, total = parts(n, counts, at);
    struct holey *in = calloc((size_t)total + 1, sizeof(*in)), *out = calloc((size_t)total + 1, sizeof(*out));
    for (int in_place = 0; in_place < 2; in_place++) {
        fill(in, total);
        fill(out, total);
        MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : in, out, counts, holey, op, comm);
        for (int i = 0; i < counts[r]; i++)
            is_map(out[i], all_of(p - 1, at[r] + i));
    }
    int block = n / p;
    for (int in_place = 0; in_place < 2; in_place++) {
        int *x = calloc((size_t)(block * p) + 1, sizeof(int)), *y = calloc((size_t)(block * p) + 1, sizeof(int));
        for (int i = 0; i < block * p; i++)
            x[i] = y[i] = r * 1000 + i;
        MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : x, y, block, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < block; i++)
            EQ(y[i], p * (r * block + i) + 1000 * (p * (p - 1) / 2));
        free(x);
        free(y);
    }
    free(counts);
    free(in);
    free(out);
}

/* Each rank's part lies a gap behind the one before; the gap is unchanged. */
static void allgathervs(int n)
{
    enum { GAP = 2 };
    int *counts = calloc(2 * (size_t)p, sizeof(int)), *at = counts + p, total = parts(n, counts, at);
    size_t room = (size_t)(total + GAP * p) + 1;
    struct holey *out = calloc(room, sizeof(*out)), *in = calloc(room, sizeof(*in));
    uint32_t *plain = calloc(2 * room, sizeof(*plain));
    for (int j = 0; j < p; j++)
        at[j] += GAP * j;
    for (int form = 0; form < 3; form++) { /* in place, holes on both sides, plain data into holes */
        memset(out, 0x5a, room * sizeof(*out));
        fill(in, counts[r]);
        for (int i = 0; i < counts[r]; i++) {
            plain[2 * i] = in[i].map.a;
            plain[2 * i + 1] = in[i].map.b;
            out[at[r] + i].map = form ? out[at[r] + i].map : in[i].map;
        }
        if (form == 2)
            MPI_Allgatherv(plain, 2 * counts[r], MPI_UINT32_T, out, counts, at, holey, comm);
        else
            MPI_Allgatherv(form ? in : MPI_IN_PLACE, counts[r], holey, out, counts, at, holey, comm);
        for (int j = 0; j < p; j++) {
            for (int i = 0; i < counts[j]; i++) {
                is_map(out[at[j] + i], map_of(j, i));
                EQ(out[at[j] + i].hole, 0x5a5a5a5a);
            }
            EQ(out[at[j] + counts[j]].map.a, 0x5a5a5a5a);
        }
    }
    free(counts);
    free(in);
    free(out);
    free(plain);
}

/* Elements from one rank to another: few or none for most, n for some, so that ranks have pieces of all sizes. */
static int len_of(int from, int to, int n)
{
    int which = (3 * from + 5 * to + n) % 4;
    return which == 0 ? n : which == 1 ? 0 : which + from % 3;
}

enum { EACH = LONGEST + 2 }; /* room for a block, and a gap that stays unchanged */

static void look_at(const struct holey *b, int from, int to, int len)
{
    for (int i = 0; i < len; i++)
        is_map(b[i], map_of(from + to, i));
    EQ(b[len].map.a, 0x5a5a5a5a);
}

/*
 * Blocks whose length two ranks know. A rank's protocol is its own choice, so ranks with short and long blocks meet in
 * an operation. wide: of alltoallw, with a type for each.
 */
static void blocks(int n, bool wide, struct holey *in, struct holey *out)
{
    int *give = calloc(5 * (size_t)p, sizeof(int)), *get = give + p, *at = get + p, *bytes = at + p, root = n % p;
    MPI_Datatype *types = calloc((size_t)p, sizeof(*types));
    for (int j = 0; j < p; j++) {
        give[j] = len_of(r, j, n);
        get[j] = len_of(j, r, n);
        at[j] = EACH * j;
        bytes[j] = EACH * j * (int)sizeof(struct holey);
        types[j] = holey;
        fill(in + at[j], 0);
        for (int i = 0; i < give[j]; i++)
            in[at[j] + i].map = map_of(r + j, i);
    }
    memset(out, 0x5a, (size_t)p * EACH * sizeof(*out));
    if (wide)
        MPI_Alltoallw(in, give, bytes, types, out, get, bytes, types, comm);
    else
        MPI_Alltoallv(in, give, at, holey, out, get, at, holey, comm);
    for (int j = 0; j < p; j++)
        look_at(out + at[j], j, r, get[j]);

    memset(out, 0x5a, (size_t)p * EACH * sizeof(*out));
    for (int j = 0; j < p; j++)
        get[j] = len_of(j, root, n);
    if (r == root && wide)
        memcpy(out + at[r], in + at[r], (size_t)give[r] * sizeof(*out));
    MPI_Gatherv(r == root && wide ? MPI_IN_PLACE : in + at[root], give[root], holey, out, get, at, holey, root, comm);
    for (int j = 0; j < p && r == root; j++)
        look_at(out + at[j], j, root, get[j]);

    memset(out, 0x5a, (size_t)p * EACH * sizeof(*out));
    MPI_Scatterv(in, give, at, holey, r == root && wide ? MPI_IN_PLACE : out, len_of(root, r, n), holey, root, comm);
    if (r != root || !wide)
        look_at(out, root, r, len_of(root, r, n));
    free(give);
    free(types);
}

/* Others go before, between and behind: pieces are counted alike, whatever way an operation takes. */
static void others(int k)
{
    static int big[2][40000];
    int x = r + k, sum = -1;
    MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, comm);
    EQ(sum, p * (p - 1) / 2 + p * k);
    big[0][39999] = k;
    MPI_Bcast(big[0], k % 2 ? 40000 : 1, MPI_INT, k % p, comm);
    EQ(big[0][39999], k);
    MPI_Allreduce(big[0], big[1], 40000, MPI_INT, MPI_SUM, comm);
    EQ(big[1][39999], p * k);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &r);
    MPI_Comm_size(comm, &p);
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_UINT32_T, &pair);
    MPI_Type_create_resized(pair, 0, sizeof(struct holey), &holey);
    MPI_Type_commit(&holey);
    MPI_Type_free(&pair);
    MPI_Op_create(compose, 0, &op);
    struct holey *in = calloc((size_t)p * EACH, sizeof(*in)), *out = calloc((size_t)p * EACH, sizeof(*out));
    for (int k = 0; k < 4 * SIZES; k++) {
        blocks(sizes[k % SIZES], k % 2, in, out);
        scans(sizes[k % SIZES]);
        allgathervs(sizes[k % SIZES]);
        if (k % 3 == 0)
            others(k);
        reduce_scatters(sizes[k % SIZES]);
    }
    free(in);
    free(out);
    MPI_Op_free(&op);
    MPI_Type_free(&holey);
    MPI_Comm_free(&comm);
    return mt_end();
}
