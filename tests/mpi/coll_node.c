/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking collectives between the ranks of a node, through shared memory: all sizes around the limits of this memory,
 * changing roots, types with holes on either side, operations that do not commute, amounts that do not match,
 * communicators by the hundred. On several nodes the program runs on each, or ("world") over all of them.
 */
#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "mt.h"

static MPI_Comm comm;
static int r, p;
static bool areas; /* some ranks share memory */

/* Sizes around those of a line, a slot of either ring, and several of them; of blocks for each other rank, too. */
static const int sizes[] = {1,    7,    47,   48,    49,    500,   2047,  2048,  2049,
                            8191, 8192, 8193, 16385, 32768, 40000, 65537, 300001};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), LONGEST = 300001 };

static unsigned char byte_of(int from, int to, int at, int round)
{
    return (unsigned char)(from * 31 + to * 7 + at * 13 + at / 251 + round);
}

static unsigned char *room(size_t bytes)
{
    unsigned char *b = malloc(bytes + 1);
    CHECK(b);
    memset(b, 0xa5, bytes);
    return b;
}

/* Bytes with a hole after each run of three: the same data as n plain ones, when n is a multiple of three. */
static MPI_Datatype holey;
enum { RUN = 3, STEP = 5 };

static void make_type(void)
{
    MPI_Datatype run;
    MPI_Type_contiguous(RUN, MPI_BYTE, &run);
    MPI_Type_create_resized(run, 0, STEP, &holey);
    MPI_Type_commit(&holey);
    MPI_Type_free(&run);
}

/* Where byte i of n is in a buffer: plain, or with holes. */
static size_t place(int i, int holes)
{
    return holes ? (size_t)(i / RUN * STEP + i % RUN) : (size_t)i;
}

static void bcasts(void)
{
    unsigned char *b = room((size_t)LONGEST * STEP / RUN + STEP);
    for (int k = 0; k < SIZES; k++)
        for (int root = 0; root < p; root++) {
            int n = (sizes[k] + RUN - 1) / RUN * RUN, holes = (r + k) % 2;
            for (int i = 0; i < n; i++)
                b[place(i, holes)] = r == root ? byte_of(root, 0, i, k) : 0;
            MPI_Bcast(b, holes ? n / RUN : n, holes ? holey : MPI_BYTE, root, comm);
            for (int i = 0; i < n; i++)
                EQ(b[place(i, holes)], byte_of(root, 0, i, k));
        }
    free(b);
}

static void gathers_and_scatters(void)
{
    unsigned char *one = room((size_t)LONGEST * STEP / RUN + STEP),
                  *all = room((size_t)LONGEST * (size_t)p + (size_t)p * RUN);
    for (int k = 0; k < SIZES; k++) {
        int n = (sizes[k] + RUN - 1) / RUN * RUN, root = k % p, holes = (r + k) % 2, in_place = k % 3 == 0 && r == root;
        int count = holes ? n / RUN : n;
        MPI_Datatype t = holes ? holey : MPI_BYTE;
        for (int i = 0; i < n; i++) {
            one[place(i, holes)] = byte_of(r, root, i, k);
            all[(size_t)r * (size_t)n + (size_t)i] = byte_of(r, root, i, k);
        }
        MPI_Gather(in_place ? MPI_IN_PLACE : one, count, t, all, n, MPI_BYTE, root, comm);
        for (int j = 0; j < p && r == root; j++)
            for (int i = 0; i < n; i++)
                EQ(all[(size_t)j * (size_t)n + (size_t)i], byte_of(j, root, i, k));
        for (int j = 0; j < p; j++)
            for (int i = 0; i < n; i++)
                all[(size_t)j * (size_t)n + (size_t)i] = byte_of(root, j, i, k);
        memset(one, 0, (size_t)n * STEP / RUN);
        MPI_Scatter(all, n, MPI_BYTE, in_place ? MPI_IN_PLACE : one, count, t, root, comm);
        for (int i = 0; i < n && !in_place; i++)
            EQ(one[place(i, holes)], byte_of(root, r, i, k));
    }
    free(one);
    free(all);
}

static void all_to_all(void)
{
    size_t most = ((size_t)LONGEST + RUN) * (size_t)p;
    unsigned char *in = room(most * STEP / RUN), *out = room(most);
    for (int k = 0; k < SIZES; k++) {
        int n = (sizes[k] + RUN - 1) / RUN * RUN, holes = (r + k) % 2, in_place = k % 2, count = holes ? n / RUN : n;
        MPI_Datatype t = holes ? holey : MPI_BYTE;
        for (int j = 0; j < p; j++)
            for (int i = 0; i < n; i++) {
                in[(size_t)j * place(n, holes) + place(i, holes)] = byte_of(r, j, i, k);
                out[(size_t)j * (size_t)n + (size_t)i] = byte_of(r, j, i, k);
            }
        MPI_Alltoall(in_place ? MPI_IN_PLACE : in, count, t, out, n, MPI_BYTE, comm);
        for (int j = 0; j < p; j++)
            for (int i = 0; i < n; i++)
                EQ(out[(size_t)j * (size_t)n + (size_t)i], byte_of(j, r, i, k));
        for (int i = 0; i < n; i++)
            in[place(i, holes)] = out[(size_t)r * (size_t)n + (size_t)i] = byte_of(r, 0, i, k);
        MPI_Allgather(in_place ? MPI_IN_PLACE : in, count, t, out, n, MPI_BYTE, comm);
        for (int j = 0; j < p; j++)
            for (int i = 0; i < n; i++)
                EQ(out[(size_t)j * (size_t)n + (size_t)i], byte_of(j, 0, i, k));
    }
    free(in);
    free(out);
}

/* x -> a x + b modulo 2^32: composition does not commute. */
static void compose(void *in, void *inout, int *len, MPI_Datatype *t)
{
    const uint32_t *f = in;
    uint32_t *g = inout;
    for (int i = 0; i < *len; i++, f += 2, g += 2) {
        uint32_t a = f[0] * g[0], b = f[1] * g[0] + g[1];
        g[0] = a;
        g[1] = b;
    }
}

static void map_of(int from, int i, uint32_t *f)
{
    f[0] = (uint32_t)(2 * (from + i) + 3);
    f[1] = (uint32_t)(from * 5 + i);
}

static void ordered(void)
{
    MPI_Op op;
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_UINT32_T, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &op);
    for (int k = 0; k < SIZES; k++) {
        int n = sizes[k] / 8 + 1, root = k % p;
        uint32_t *in = (uint32_t *)room((size_t)n * 8), *out = (uint32_t *)room((size_t)n * 8), want[2], next[2];
        for (int form = 0; form < 4; form++) {
            bool reduce = form % 2, in_place = form / 2 && (!reduce || r == root);
            for (int i = 0; i < n; i++) {
                map_of(r, i, in + 2 * i);
                map_of(r, i, out + 2 * i);
            }
            if (reduce)
                MPI_Reduce(in_place ? MPI_IN_PLACE : in, out, n, pair, op, root, comm);
            else
                MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, n, pair, op, comm);
            for (int i = 0; i < n && (!reduce || r == root); i++) {
                int one = 1;
                map_of(p - 1, i, want);
                for (int j = p - 2; j >= 0; j--) {
                    map_of(j, i, next);
                    compose(next, want, &one, &pair);
                }
                EQ(out[2 * i], want[0]);
                EQ(out[2 * i + 1], want[1]);
            }
        }
        free(in);
        free(out);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
}

/* Sums of numbers that do not add exactly: the same bits on all ranks and every time. */
static void same_bits(void)
{
    for (int k = 0; k < SIZES; k++) {
        int n = sizes[k] / 8 + 1;
        double *in = (double *)room((size_t)n * 8), *out = (double *)room((size_t)n * 8),
               *first = (double *)room((size_t)n * 8);
        for (int i = 0; i < n; i++)
            in[i] = 1.0 / (3 + r + i) * (i % 2 ? 1e9 : 1e-9);
        for (int again = 0; again < 3; again++) {
            MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, comm);
            if (again == 0) {
                memcpy(first, out, (size_t)n * 8);
                MPI_Bcast(first, n, MPI_DOUBLE, 0, comm);
            }
            EQ(memcmp(first, out, (size_t)n * 8), 0);
        }
        for (int i = 0; i < n; i++) {
            double want = 0;
            for (int j = 0; j < p; j++)
                want += 1.0 / (3 + j + i) * (i % 2 ? 1e9 : 1e-9);
            CHECK(fabs(out[i] - want) < 1e-12 * want);
        }
        free(in);
        free(out);
        free(first);
    }
}

/* A user's operation on a type with holes, whose elements are laid out as in the program's memory. */
static void add_holey(void *in, void *inout, int *len, MPI_Datatype *t)
{
    const unsigned char *a = in;
    unsigned char *b = inout;
    for (int i = 0; i < *len; i++)
        for (int j = 0; j < RUN; j++)
            b[i * STEP + j] = (unsigned char)(a[i * STEP + j] + b[i * STEP + j]);
}

static void reduce_holes(void)
{
    MPI_Op op;
    MPI_Op_create(add_holey, 1, &op);
    for (int k = 0; k < SIZES; k++) {
        int n = sizes[k] / RUN + 1, root = k % p;
        unsigned char *in = room((size_t)n * STEP), *out = room((size_t)n * STEP);
        for (int form = 0; form < 2; form++) {
            memset(out, 0x77, (size_t)n * STEP);
            for (int i = 0; i < n * RUN; i++)
                in[place(i, 1)] = byte_of(r, 0, i, k);
            if (form)
                MPI_Reduce(in, out, n, holey, op, root, comm);
            else
                MPI_Allreduce(in, out, n, holey, op, comm);
            for (int i = 0; i < n * RUN && (!form || r == root); i++) {
                unsigned char want = 0;
                for (int j = 0; j < p; j++)
                    want = (unsigned char)(want + byte_of(j, 0, i, k));
                EQ(out[place(i, 1)], want);
            }
            for (int i = 0; i < n; i++) /* holes are unchanged */
                CHECK(out[i * STEP + RUN] == 0x77 && out[i * STEP + RUN + 1] == 0x77);
        }
        free(in);
        free(out);
    }
    MPI_Op_free(&op);
}

/* Messages and nonblocking collectives go on while blocking ones are under way, on the same communicator. */
static void mixed(void)
{
    static int big[2][100000];
    for (int k = 0; k < 20; k++) {
        MPI_Request q[4];
        int x = r, sum = -1, all = -1, to = (r + 1) % p, from = (r - 1 + p) % p;
        for (int i = 0; i < 100000; i++)
            big[0][i] = r * 100000 + i + k;
        MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, comm, &q[0]);
        MPI_Irecv(big[1], 100000, MPI_INT, from, k, comm, &q[1]);
        MPI_Isend(big[0], 100000, MPI_INT, to, k, comm, &q[2]);
        MPI_Barrier(comm);
        MPI_Allreduce(&x, &all, 1, MPI_INT, MPI_MAX, comm);
        EQ(all, p - 1);
        MPI_Ibarrier(comm, &q[3]);
        MPI_Bcast(&x, 1, MPI_INT, k % p, comm);
        EQ(x, k % p);
        x = r;
        MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
        EQ(sum, p * (p - 1) / 2);
        for (int i = 0; i < 100000; i++)
            EQ(big[1][i], from * 100000 + i + k);
    }
}

/* One rank is late, again and again: others wait, and sleep if necessary. */
static void late(void)
{
    for (int k = 0; k < 3 * p; k++) {
        int x = k, all[64];
        if (k % p == r)
            for (double t = MPI_Wtime(); MPI_Wtime() - t < 2e-3;)
                ;
        MPI_Bcast(&x, 1, MPI_INT, (k + 1) % p, comm);
        EQ(x, k);
        x = r * k;
        if (p <= 64) {
            MPI_Allgather(&x, 1, MPI_INT, all, 1, MPI_INT, comm);
            for (int j = 0; j < p; j++)
                EQ(all[j], j * k);
        }
        MPI_Barrier(comm);
    }
}

static int lines_with(const char *path, const char *word)
{
    char line[512];
    int n = 0;
    FILE *f = fopen(path, "r");
    CHECK(f);
    while (fgets(line, sizeof(line), f))
        n += strstr(line, word) != NULL;
    fclose(f);
    return n;
}

static int descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    CHECK(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Communicators come and go: no memory and no file is left of them. */
static void many(void)
{
    int maps = lines_with("/proc/self/maps", "mrmpi-node"), files = descriptors(), x = 1, sum;
    for (int k = 0; k < 300; k++) {
        MPI_Comm c;
        MPI_Comm_dup(comm, &c);
        for (int i = 0; i < 7; i++)
            MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c);
        EQ(sum, p);
        if (k == 0 && areas)
            EQ(lines_with("/proc/self/maps", "mrmpi-node"), maps + 1);
        MPI_Comm_free(&c);
    }
    EQ(lines_with("/proc/self/maps", "mrmpi-node"), maps);
    EQ(descriptors(), files);
}

/* KiB of the areas' pages that this process has used. */
static long area_kib(void)
{
    char line[512];
    bool inside = false;
    long sum = 0, kib;
    FILE *f = fopen("/proc/self/smaps", "r");
    CHECK(f);
    while (fgets(line, sizeof(line), f)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = strstr(line, "mrmpi-node") != NULL;
        else if (inside && sscanf(line, "Rss: %ld kB", &kib) == 1)
            sum += kib;
    }
    fclose(f);
    return sum;
}

/* Many communicators that are all used much have all their data right, and no more than a few have large rings. */
static void many_used(void)
{
    enum { COMMS = 24, ELEMENTS = 1024, LONG = 40000 };
    static const int full = 2200, compact = 350; /* KiB for each member: long pieces lie in the pools */
    static long in[LONG], sum[LONG];
    MPI_Comm c[COMMS];
    long before = area_kib();
    if (p > 4) /* it takes long with many ranks, and says the same */
        return;
    for (int k = 0; k < COMMS; k++)
        MPI_Comm_dup(comm, &c[k]);
    for (int k = 0; k < COMMS; k++)
        for (int i = 0; i < 400; i++) {
            int n = i % 40 ? ELEMENTS : LONG;
            for (int e = 0; e < n; e += 97)
                in[e] = (long)r * e + i + k;
            MPI_Allreduce(in, sum, n, MPI_LONG, MPI_SUM, c[k]);
            for (int e = 0; e < n; e += 97)
                EQ(sum[e], (long)p * (p - 1) / 2 * e + (long)p * (i + k));
        }
    if (areas)
        CHECK(area_kib() - before <= (long)p * (8 * full + (COMMS - 8) * compact));
    for (int k = 0; k < COMMS; k++)
        MPI_Comm_free(&c[k]);
}

static void fill(unsigned char *b, int n, int from, int round)
{
    for (int i = 0; i < n; i++)
        b[i] = byte_of(from, 0, i, round);
}

static void check(const unsigned char *b, int n, int from, int round)
{
    for (int i = 0; i < n; i++)
        EQ(b[i], byte_of(from, 0, i, round));
}

/*
 * A root gives its communicator back, and sends much else, before the others have read its broadcast: they find the
 * bytes of the broadcast nevertheless.
 */
static void freed_early(void)
{
    enum { LONG = 1 << 20, ROUNDS = 8 };
    unsigned char *b = room(LONG);
    for (int k = 0; k < ROUNDS; k++) {
        MPI_Comm c;
        MPI_Comm_dup(comm, &c);
        for (int i = 0; i < 6; i++)
            MPI_Barrier(c);
        if (r != k % p)
            for (double t = MPI_Wtime(); MPI_Wtime() - t < 5e-3;)
                ;
        if (r == k % p)
            fill(b, LONG, r, k);
        MPI_Bcast(b, LONG, MPI_BYTE, k % p, c);
        MPI_Comm_free(&c);
        if (r != k % p)
            check(b, LONG, k % p, k);
        for (int again = 0; again < 3; again++) {
            if (r == k % p)
                fill(b, LONG, r, again + 100);
            MPI_Bcast(b, LONG, MPI_BYTE, k % p, comm);
            check(b, LONG, k % p, again + 100);
        }
    }
    free(b);
}

/*
 * The last rank makes no call until others have finished collectives of many bytes, while messages to the last rank
 * fill the pool of rank 0.
 */
static void pool_is_full(void)
{
    enum { LONG = 1 << 20, EACH = 16000, MESSAGES = 160 };
    MPI_Comm some;
    MPI_Win win;
    MPI_Aint bytes;
    MPI_Request q[MESSAGES];
    unsigned char *b = room(LONG);
    int unit, *flag, last = p - 1;
    if (p < 3 || !areas) {
        free(b);
        return;
    }
    MPI_Comm_split(comm, r == last, 0, &some);
    MPI_Win_allocate_shared(r ? 0 : (MPI_Aint)sizeof(int), 1, MPI_INFO_NULL, comm, &flag, &win);
    MPI_Win_shared_query(win, 0, &bytes, &unit, &flag);
    MPI_Win_lock_all(0, win);
    __atomic_store_n(flag, 0, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 6 && r != last; i++)
        MPI_Barrier(some);
    MPI_Barrier(comm);
    if (r == last)
        while (!__atomic_load_n(flag, __ATOMIC_SEQ_CST))
            sched_yield();
    if (r == 0) {
        fill(b, LONG, 0, 1);
        for (int i = 0; i < MESSAGES; i++)
            MPI_Isend(b + i, EACH, MPI_BYTE, last, i, comm, &q[i]);
    }
    for (int i = 0; i < 3 && r != last; i++) {
        MPI_Bcast(b, LONG, MPI_BYTE, 0, some);
        check(b, LONG, 0, 1);
    }
    if (r != last)
        MPI_Barrier(some);
    if (r == 0)
        __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    fill(b, LONG, 0, 1);
    for (int i = 0; i < MESSAGES && r == last; i++) {
        unsigned char *got = room(EACH);
        MPI_Recv(got, EACH, MPI_BYTE, 0, i, comm, MPI_STATUS_IGNORE);
        EQ(memcmp(got, b + i, EACH), 0);
        free(got);
    }
    if (r == 0)
        MPI_Waitall(MESSAGES, q, MPI_STATUSES_IGNORE);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&some);
    free(b);
}

/* An area that others may still read is given back with a later one. */
static void give_back(void)
{
    MPI_Comm c;
    MPI_Comm_dup(comm, &c);
    for (int i = 0; i < 6; i++)
        MPI_Barrier(c);
    MPI_Comm_free(&c);
}

/* A rank without a free file descriptor cannot have the memory: then no rank has, and messages are used. */
static void without(void)
{
    int maps = lines_with("/proc/self/maps", "mrmpi-node");
    for (int poor = 0; poor < p && poor < 4; poor++) {
        struct rlimit before, none;
        MPI_Comm c;
        MPI_Comm_dup(comm, &c);
        CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
        none = before;
        none.rlim_cur = 1;
        if (r == poor)
            CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
        for (int k = 0; k < 20; k++) {
            int x = r + k, sum;
            MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c);
            EQ(sum, p * (p - 1) / 2 + p * k);
            MPI_Bcast(&x, 1, MPI_INT, k % p, c);
            EQ(x, k % p + k);
        }
        CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
        EQ(lines_with("/proc/self/maps", "mrmpi-node"), maps);
        MPI_Comm_free(&c);
    }
}

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

/*
 * Ranks that disagree on operations of many pieces: ranks that notice get an error, and then all do; no rank waits for
 * ever.
 */
static void disagree(void)
{
    static char b[120000];
    unsigned char *all = room(120000 * (size_t)p);
    MPI_Comm c;
    MPI_Comm_dup(comm, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    for (int i = 0; i < 10; i++)
        EQ(MPI_Barrier(c), MPI_SUCCESS);
    int code = MPI_Allgather(b, 120000, MPI_BYTE, all, r == p - 1 && p > 1 ? 90000 : 120000, MPI_BYTE, c);
    if (r == p - 1 && p > 1)
        EQ(class_of(code), MPI_ERR_TRUNCATE);
    int again = MPI_Barrier(c), last = MPI_Barrier(c);
    CHECK(!areas || again != MPI_SUCCESS || last != MPI_SUCCESS);
    MPI_Comm_free(&c);
    free(all);
    EQ(MPI_Barrier(comm), MPI_SUCCESS);
}

/*
 * coll_node mad: rank 0 fills the shared memory of a communicator with nonsense while the others wait. They are told,
 * and other communicators are well.
 */
static void mad(void)
{
    MPI_Comm c;
    char line[512];
    unsigned long from, to;
    int x = 1, sum = 0;
    bool found = false;
    FILE *maps;
    MPI_Comm_dup(comm, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    for (int k = 0; k < 6; k++)
        EQ(MPI_Barrier(c), MPI_SUCCESS);
    CHECK((maps = fopen("/proc/self/maps", "r")));
    while (!found && fgets(line, sizeof(line), maps))
        found = strstr(line, "mrmpi-node") && sscanf(line, "%lx-%lx", &from, &to) == 2;
    fclose(maps);
    CHECK(found);
    MPI_Barrier(comm);
    if (r == 0)
        memset((char *)from + 64, 0xee, to - from - 64);
    MPI_Barrier(comm);
    /* rank 0's real writes would overwrite the nonsense */
    for (int j = 1; j < p && r == 0; j++)
        MPI_Recv(&sum, 0, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE);
    CHECK(MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c) != MPI_SUCCESS);
    if (r > 0)
        MPI_Send(&x, 0, MPI_INT, 0, 0, comm);
    CHECK(MPI_Barrier(c) != MPI_SUCCESS);
    MPI_Comm_free(&c);
    EQ(MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    EQ(sum, p);
}

/* A counter shows that the operations used the shared memory. */
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handle;

static void count_from_now(void)
{
    int provided, index, count, continuous, readonly, atomic, class, verbosity, bind, len = 0;
    MPI_Datatype t;
    MPI_T_enum e;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    EQ(MPI_T_pvar_get_index("coll_node", MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    MPI_T_pvar_get_info(index, NULL, &len, &verbosity, &class, &t, &e, NULL, &len, &bind, &readonly, &continuous,
                        &atomic);
    MPI_T_pvar_session_create(&session);
    EQ(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count), MPI_SUCCESS);
    if (!continuous)
        EQ(MPI_T_pvar_start(session, handle), MPI_SUCCESS);
}

static unsigned long long counted(void)
{
    unsigned long long value = 0;
    EQ(MPI_T_pvar_read(session, handle, &value), MPI_SUCCESS);
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return value;
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    bool world = argc > 1 && !strcmp(argv[1], "world");
    if (world)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    MPI_Comm_rank(comm, &r);
    MPI_Comm_size(comm, &p);
    MPI_Comm node;
    int here;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_Comm_free(&node);
    areas = here > 1 && here <= 128;
    if (argc > 1 && !world) {
        mad();
        MPI_Comm_free(&comm);
        return mt_end();
    }
    count_from_now();
    make_type();
    bcasts();
    gathers_and_scatters();
    all_to_all();
    ordered();
    same_bits();
    reduce_holes();
    mixed();
    late();
    many();
    many_used();
    freed_early();
    pool_is_full();
    give_back();
    without();
    disagree();
    CHECK(!areas || counted() > 500);
    MPI_Type_free(&holey);
    MPI_Comm_free(&comm);
    return mt_end();
}
