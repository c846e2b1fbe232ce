/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flood: rank 0 sends COUNT messages of BYTES with MPI_Send to rank 1. Rank 1 receives SECONDS later; meanwhile rank
 * 1 is outside MPI (away) or probes for a message that never comes (probing), so that the library can take in arrivals.
 * Rank 0 prints by how many KiB the most that each process ever had in memory has grown.
 *     flood away|probing COUNT BYTES SECONDS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG = 1, OTHER_TAG, RESULT_TAG };

static long peak_kib(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

static void be_elsewhere(const char *how, double seconds)
{
    double until = MPI_Wtime() + seconds;
    int found;

    if (!strcmp(how, "away")) {
        struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

        nanosleep(&t, NULL);
        return;
    }
    while (MPI_Wtime() < until)
        MPI_Iprobe(0, OTHER_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

static void receive(int count, int bytes, char *buf)
{
    for (int i = 0; i < count; i++) {
        int number;

        MPI_Recv(buf, bytes, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memcpy(&number, buf, sizeof number);
        if (number != i) {
            fprintf(stderr, "message %d came when %d was due\n", number, i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

int main(int argc, char **argv)
{
    int rank, count = 0, bytes = 0;
    long before, grown, theirs;
    char *buf;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc == 5) {
        count = atoi(argv[2]);
        bytes = atoi(argv[3]);
    }
    buf = bytes >= (int)sizeof(int) ? calloc(1, (size_t)bytes) : NULL;
    if (!buf || count < 1) {
        fprintf(stderr, "usage: flood away|probing COUNT BYTES SECONDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Sendrecv(buf, 0, MPI_CHAR, 1 - rank, 0, buf, 0, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    before = peak_kib();
    if (rank == 0) {
        double start = MPI_Wtime();

        for (int i = 0; i < count; i++) {
            memcpy(buf, &i, sizeof i);
            MPI_Send(buf, bytes, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
        }
        grown = peak_kib() - before;
        MPI_Recv(&theirs, 1, MPI_LONG, 1, RESULT_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("%s %d %d sender %ld receiver %ld seconds %.3f\n", argv[1], count, bytes, grown, theirs,
               MPI_Wtime() - start);
    } else {
        be_elsewhere(argv[1], atof(argv[4]));
        receive(count, bytes, buf);
        grown = peak_kib() - before;
        MPI_Send(&grown, 1, MPI_LONG, 0, RESULT_TAG, MPI_COMM_WORLD);
    }
    free(buf);
    MPI_Finalize();
    return 0;
}
