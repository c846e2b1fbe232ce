/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths WANTED [WINDOWS [COMMAND...]]: the throughput of pairs of ranks; the lower half of the ranks sends to the
 * upper. Before the clock starts, WINDOWS windows of large messages go (1500), or until each rank has opened WANTED
 * subchannels beyond those for small messages. Rank 0 prints "opened N rate MB/S latency US": the most subchannels that
 * a rank has opened beyond those, MB/s (10^6) of all pairs together by messages of 1 MiB, half a round trip of 8 bytes
 * of the slowest pair.
 *
 * Then rank 0 runs each COMMAND; $ENDED begins the names of the files that mark the end of a command. Until a COMMAND
 * ends, and for a hundred windows after the end, the ranks go on with windows and small messages, whose contents are
 * checked. "COMMAND: status S wrong W longest MS rate MB/S": the messages with wrong contents, and the longest
 * operation of a rank, in ms; a window counts as an operation.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 1 << 20, DEPTH = 8, WINDOWS = 6, TRIPS = 200, PATIENCE = 1500, AFTER = 100 };
typedef unsigned long long count;

static int rank, size, peer;
static char *buf;

static count opened(void)
{
    static MPI_T_pvar_session session;
    static MPI_T_pvar_handle handle;
    static int rails;
    count value[64] = {0}, sum = 0;
    int index;

    if (!rails) {
        MPI_T_pvar_session_create(&session);
        if (MPI_T_pvar_get_index("rail_opened", MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS ||
            MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &rails) != MPI_SUCCESS || rails < 1 || rails > 64) {
            fprintf(stderr, "paths: no counter of subchannels\n");
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        MPI_T_pvar_start(session, handle);
    }
    MPI_T_pvar_read(session, handle, value);
    for (int i = 0; i < rails; i++)
        sum += value[i];
    return sum;
}

static void windows(int n)
{
    MPI_Request req[DEPTH];

    for (int w = 0; w < n; w++) {
        for (int i = 0; i < DEPTH; i++)
            if (rank < peer)
                MPI_Isend(buf + i * LARGE, LARGE, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &req[i]);
            else
                MPI_Irecv(buf + i * LARGE, LARGE, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &req[i]);
        MPI_Waitall(DEPTH, req, MPI_STATUSES_IGNORE);
    }
}

static void trips(int n)
{
    for (int i = 0; i < n; i++) {
        if (rank < peer)
            MPI_Send(buf, 8, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
        MPI_Recv(buf, 8, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank > peer)
            MPI_Send(buf, 8, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
    }
}

static double seconds_for(void (*what)(int n), int n)
{
    double start, mine, all;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    what(n);
    mine = MPI_Wtime() - start;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

static count of_all(count mine, MPI_Op op)
{
    count all;

    MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, op, MPI_COMM_WORLD);
    return all;
}

/*
 * One window and one small message with numbers in them. Returns the number of wrong ones. *left: the number of rounds
 * that are left, by the sender's word.
 */
static count marked(int round, int *left, double *longest)
{
    count wrong = 0;
    double began = MPI_Wtime(), took;
    int small[2] = {round, *left};

    for (int i = 0; i < DEPTH; i++)
        for (size_t k = 0; k < LARGE / sizeof(int); k += 1021)
            ((int *)(buf + i * LARGE))[k] = rank < peer ? round + i : -1;
    windows(1);
    if (rank < peer)
        MPI_Send(small, 2, MPI_INT, peer, 3, MPI_COMM_WORLD);
    else
        MPI_Recv(small, 2, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    took = MPI_Wtime() - began;
    *longest = took > *longest ? took : *longest;
    wrong += small[0] != round;
    *left = small[1];
    for (int i = 0; i < DEPTH; i++)
        for (size_t k = 0; k < LARGE / sizeof(int); k += 1021)
            wrong += ((int *)(buf + i * LARGE))[k] != round + i;
    return wrong;
}

static pid_t start(const char *command)
{
    pid_t pid = fork();

    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* True once rank 0's command has ended. Senders ask the file system: messages would wait for other pairs. */
static bool has_ended(pid_t *pid, int *status, const char *file)
{
    if (rank)
        return access(file, F_OK) == 0;
    if (!*pid || waitpid(*pid, status, WNOHANG) != *pid)
        return !*pid;
    *pid = 0;
    fclose(fopen(file, "w"));
    return true;
}

/* All ranks go on until rank 0's command has ended, and a little longer. number: of the command. */
static void during(const char *command, int number)
{
    pid_t pid = rank ? 0 : start(command);
    int left = AFTER, status = 0, round = 0;
    char file[4096];
    count wrong = 0;
    double longest = 0, of_any, stream;

    snprintf(file, sizeof file, "%s.%d", getenv("ENDED") ? getenv("ENDED") : "/nowhere", number);
    while (left) {
        left -= rank < peer && has_ended(&pid, &status, file);
        wrong += marked(++round, &left, &longest);
    }
    stream = seconds_for(windows, WINDOWS);
    wrong = of_all(wrong, MPI_SUM);
    MPI_Reduce(&longest, &of_any, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (!rank) {
        printf("%s: status %d wrong %llu longest %.3f rate %.0f\n", command, status, wrong, 1e3 * of_any,
               1e-6 * LARGE * DEPTH * WINDOWS * (size / 2) / stream);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    count wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, before;
    int provided, patience = argc > 2 ? atoi(argv[2]) : PATIENCE;
    double trip, stream;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    buf = calloc(DEPTH, LARGE);
    if (size % 2 || !buf)
        MPI_Abort(MPI_COMM_WORLD, 2);
    peer = (rank + size / 2) % size;
    seconds_for(trips, 1);
    before = opened();
    for (int i = 0; i < patience && (!wanted || of_all(opened() - before, MPI_MIN) < wanted); i++)
        windows(1);
    trip = seconds_for(trips, TRIPS);
    stream = seconds_for(windows, WINDOWS);
    before = of_all(opened() - before, MPI_MAX);
    if (!rank)
        printf("opened %llu rate %.0f latency %.4f\n", before, 1e-6 * LARGE * DEPTH * WINDOWS * (size / 2) / stream,
               1e6 * trip / (2 * TRIPS));
    for (int i = 3; i < argc; i++)
        during(argv[i], i);
    free(buf);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
