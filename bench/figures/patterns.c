/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patterns NAME ITERATIONS: the communication patterns of the NAS Parallel Benchmarks, and their cost in connections
 * and memory of a rank.
 *
 *   ep   sums over all ranks (allreduce)                      ft   everybody to everybody (alltoall, pairwise)
 *   cg   partners in a row of a 2-D grid, and the transposed  mg   neighbours in a 3-D torus at distances 1, 2, 4, ...
 *   lu   four neighbours in a 2-D grid                        bt   neighbours in a 2-D torus, diagonals too; sp the
 * same
 *
 * An iteration sends one message of BYTES to each of them and computes for a while. Afterwards there is a sum over all,
 * as the benchmarks verify. Rank 0 prints "NAME peers P local L connections C rings R queue_pairs Q kib K": means over
 * the ranks of the pattern's peers on other hosts, of its peers on the own host, of the most connections, rings and
 * queue pairs (counters of the library), and of the growth of resident memory since MPI_Init. Then "NAME packets N shm
 * S ring R ud U rc C": the packets sent by a rank, ACKs among them, and the percentage of each channel.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = 1024, TAG = 1, PEERS = 1024, STEP_NS = 1500000 };

static int rank, size;
static struct list {
    int rank[PEERS], tag[PEERS], n;
} to, from;
static int directions;

static void list_add(struct list *list, int other)
{
    if (other < 0 || other == rank || list->n == PEERS)
        return;
    list->rank[list->n] = other;
    list->tag[list->n++] = TAG + directions;
}

/*
 * One direction of the pattern: the rank that this rank sends to, and the rank it receives from; -1: none, at an edge.
 */
static void add(int receiver, int sender)
{
    list_add(&to, receiver);
    list_add(&from, sender);
    directions++;
}

static void grid(int *rows, int *columns) /* as square as possible, columns the larger */
{
    for (*rows = 1; *rows * *rows * 4 <= size; *rows *= 2)
        ;
    while (size % *rows)
        --*rows;
    if (*rows * *rows * 4 == size)
        *rows *= 2;
    *columns = size / *rows;
}

static int torus(int row, int column, int rows, int columns)
{
    return (row + rows) % rows * columns + (column + columns) % columns;
}

static void cg(void)
{
    int rows, columns;

    grid(&rows, &columns);
    for (int d = 1; d < columns; d *= 2)
        if ((rank % columns ^ d) < columns)
            add(rank - rank % columns + (rank % columns ^ d), rank - rank % columns + (rank % columns ^ d));
    if (rows == columns)
        add(rank % columns * columns + rank / columns, rank % columns * columns + rank / columns);
}

static void lu(void)
{
    int rows, columns, row, column;

    grid(&rows, &columns);
    row = rank / columns;
    column = rank % columns;
    add(row > 0 ? rank - columns : -1, row < rows - 1 ? rank + columns : -1);
    add(row < rows - 1 ? rank + columns : -1, row > 0 ? rank - columns : -1);
    add(column > 0 ? rank - 1 : -1, column < columns - 1 ? rank + 1 : -1);
    add(column < columns - 1 ? rank + 1 : -1, column > 0 ? rank - 1 : -1);
}

static void bt(void)
{
    int rows, columns;

    grid(&rows, &columns);
    for (int dr = -1; dr <= 1; dr++)
        for (int dc = -1; dc <= 1; dc++)
            if ((dr || dc) && dr * dc >= 0)
                add(torus(rank / columns + dr, rank % columns + dc, rows, columns),
                    torus(rank / columns - dr, rank % columns - dc, rows, columns));
}

static void mg(void)
{
    int edge = 1;

    while (edge * 2 * edge * 2 * edge * 2 <= size)
        edge *= 2;
    for (int axis = 1, length = 0; axis < size; axis *= length) {
        length = axis == 1 ? edge : axis == edge ? edge : size / (edge * edge);
        if (length < 2)
            break;
        for (int d = 1; d < length; d *= 2) {
            int at = rank / axis % length, up = (at + d) % length, down = (at - d + length) % length;

            add(rank + (up - at) * axis, rank + (down - at) * axis);
            if (up != down)
                add(rank + (down - at) * axis, rank + (up - at) * axis);
        }
    }
}

static void exchange(char *out, char *in)
{
    MPI_Request req[2 * PEERS];
    int n = 0;

    for (int i = 0; i < from.n; i++)
        MPI_Irecv(in + i * BYTES, BYTES, MPI_BYTE, from.rank[i], from.tag[i], MPI_COMM_WORLD, &req[n++]);
    for (int i = 0; i < to.n; i++)
        MPI_Isend(out, BYTES, MPI_BYTE, to.rank[i], to.tag[i], MPI_COMM_WORLD, &req[n++]);
    MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
}

static long resident_kib(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[128];
    long kib = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

static MPI_T_pvar_session session;

enum counter { CONNECTIONS, RINGS, QUEUE_PAIRS, SHM, NET, ACKS, RING, UD, COUNTERS };
static const char *const counter_names[COUNTERS] = {"connections_most", "rings_most", "queue_pairs_most", "shm_sent",
                                                    "net_sent",         "acks_sent",  "ring_sent",        "ud_sent"};
static MPI_T_pvar_handle counters[COUNTERS];

/* Opened before MPI_Init, a counter that holds a largest value shows this value, starting from zero. */
static MPI_T_pvar_handle counter_open(const char *name)
{
    MPI_T_pvar_handle handle;
    int all, n;

    MPI_T_pvar_get_num(&all);
    for (int i = 0; i < all; i++) {
        char found[64];
        int length = sizeof found, verbosity, class, bind, readonly, continuous, atomic;

        MPI_T_pvar_get_info(i, found, &length, &verbosity, &class, NULL, NULL, NULL, NULL, &bind, &readonly,
                            &continuous, &atomic);
        if (!strcmp(found, name)) {
            MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &n);
            MPI_T_pvar_start(session, handle);
            return handle;
        }
    }
    fprintf(stderr, "patterns: no counter is called %s\n", name);
    exit(2);
}

static double counter_read(MPI_T_pvar_handle handle)
{
    unsigned long long value;

    MPI_T_pvar_read(session, handle, &value);
    return (double)value;
}

/* To whom the pattern sends: on other hosts, and on this one. */
static void count_peers(const char *host, const char *hosts, int length, bool everybody, double *remote, double *local)
{
    bool *seen = calloc((size_t)size, sizeof *seen);

    seen[rank] = true;
    for (int i = 0; i < (everybody ? size : to.n); i++) {
        int other = everybody ? i : to.rank[i];

        if (!seen[other])
            ++*(strcmp(host, hosts + (size_t)other * (size_t)length) ? remote : local);
        seen[other] = true;
    }
    free(seen);
}

static const struct pattern {
    const char *name;
    void (*peers)(void);
    bool everybody;
} patterns[] = {{"ep", NULL, false}, {"ft", NULL, true}, {"cg", cg, false}, {"mg", mg, false},
                {"lu", lu, false},   {"bt", bt, false},  {"sp", bt, false}};

enum figure { REMOTE, LOCAL, KIB, COUNTED, FIGURES = COUNTED + COUNTERS };

static void print_figures(const char *name, const double sum[FIGURES])
{
    const double *all = sum + COUNTED;
    double packets = all[SHM] + all[NET] + all[ACKS], percent = 100 / (packets ? packets : 1);

    printf("%s peers %.2f local %.2f connections %.2f rings %.2f queue_pairs %.2f kib %.0f\n", name, sum[REMOTE] / size,
           sum[LOCAL] / size, all[CONNECTIONS] / size, all[RINGS] / size, all[QUEUE_PAIRS] / size, sum[KIB] / size);
    printf("%s packets %.2f shm %.2f ring %.2f ud %.2f rc %.2f\n", name, packets / size, percent * all[SHM],
           percent * all[RING], percent * all[UD], percent * (all[NET] + all[ACKS] - all[RING] - all[UD]));
}

static void run(const struct pattern *p, int iterations)
{
    char *in = calloc(PEERS, BYTES), *out = calloc((size_t)(size > PEERS ? size : PEERS), BYTES), host[64],
         *hosts = malloc(64 * (size_t)size);
    char *all = calloc((size_t)size, BYTES);
    double mine[FIGURES] = {0}, sum[FIGURES], one = 1, ones;
    long before;
    int length;

    memset(host, 0, sizeof host);
    MPI_Get_processor_name(host, &length);
    before = resident_kib();
    if (p->peers)
        p->peers();
    for (int i = 0; i < iterations; i++) {
        if (p->everybody)
            MPI_Alltoall(out, BYTES, MPI_BYTE, all, BYTES, MPI_BYTE, MPI_COMM_WORLD);
        else
            exchange(out, in);
        nanosleep(&(struct timespec){0, STEP_NS}, NULL); /* computes; the library looks at its counts every 10 ms */
    }
    MPI_Allreduce(&one, &ones, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < COUNTERS; i++)
        mine[COUNTED + i] = counter_read(counters[i]);
    mine[KIB] = (double)(resident_kib() - before);
    MPI_Allgather(host, sizeof host, MPI_BYTE, hosts, sizeof host, MPI_BYTE, MPI_COMM_WORLD);
    count_peers(host, hosts, sizeof host, p->everybody, &mine[REMOTE], &mine[LOCAL]);
    MPI_Reduce(mine, sum, FIGURES, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        print_figures(p->name, sum);
    free(in);
    free(out);
    free(all);
    free(hosts);
}

int main(int argc, char **argv)
{
    const struct pattern *p = patterns;
    int provided;

    while (argc == 3 && p < patterns + sizeof patterns / sizeof *patterns && strcmp(argv[1], p->name))
        p++;
    if (argc != 3 || p == patterns + sizeof patterns / sizeof *patterns) {
        fprintf(stderr, "usage: patterns ep|ft|cg|mg|lu|bt|sp ITERATIONS\n");
        return 2;
    }
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < COUNTERS; i++)
        counters[i] = counter_open(counter_names[i]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    run(p, atoi(argv[2]));
    MPI_Finalize();
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return 0;
}
