/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rail_load BYTES WINDOW FILE: rank 0 sends windows of messages to rank 1, which answers each window with 8 bytes, in
 * phases named in FILE: a number, or "end". When the file has another number, rank 0 prints the windows of the ended
 * phase, their rate in MB/s, and the mean and longest time of a window, in microseconds of the fabric; and then the
 * beginning of the next phase. Received data is checked. The first window of a phase counts to the phase before,
 * because news may be on their way. Before a phase from 1000 on nothing is sent for 15 s of the fabric.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WINDOW_MAX = 64, LOOK = 32, LATE = 1000, LATE_S = 15 };

static int rank, bytes, window, errors;
static unsigned char *buffer[WINDOW_MAX];

struct figures {
    int phase;
    unsigned long windows;
    double sum, longest;
};

static int read_phase(const char *file, int before)
{
    char s[32] = "";
    FILE *f = fopen(file, "r");
    size_t n = f ? fread(s, 1, sizeof s - 1, f) : 0;

    if (f)
        fclose(f);
    return !n || s[n - 1] != '\n' ? before : !strncmp(s, "end", 3) ? -1 : atoi(s);
}

/* The first and the last byte mark the window, those between stay. */
static void mark(unsigned char *b, int n, unsigned char value)
{
    b[0] = b[n - 1] = value;
}

static int send_window(unsigned long number, int phase)
{
    MPI_Request req[WINDOW_MAX + 1];
    long long told[2] = {phase, 0}, back;

    MPI_Irecv(&back, 1, MPI_LONG_LONG, 1, 1, MPI_COMM_WORLD, &req[window]);
    for (int m = 0; m < window; m++) {
        mark(buffer[m], bytes, (unsigned char)(number + (unsigned long)m));
        MPI_Isend(buffer[m], bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &req[m]);
    }
    MPI_Waitall(window + 1, req, MPI_STATUSES_IGNORE);
    MPI_Send(told, 2, MPI_LONG_LONG, 1, 2, MPI_COMM_WORLD);
    return back != (long long)number;
}

static int receive_window(unsigned long number)
{
    MPI_Request req[WINDOW_MAX];
    long long told[2], back = (long long)number;

    for (int m = 0; m < window; m++)
        MPI_Irecv(buffer[m], bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &req[m]);
    MPI_Waitall(window, req, MPI_STATUSES_IGNORE);
    for (int m = 0; m < window; m++) {
        unsigned char want = (unsigned char)(number + (unsigned long)m);

        errors += buffer[m][0] != want || buffer[m][bytes - 1] != want;
    }
    MPI_Send(&back, 1, MPI_LONG_LONG, 0, 1, MPI_COMM_WORLD);
    MPI_Recv(told, 2, MPI_LONG_LONG, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return (int)told[0];
}

static void print(struct figures *f)
{
    if (f->windows)
        printf("phase %d windows %lu rate %.1f mean %.2f longest %.2f\n", f->phase, f->windows,
               (double)f->windows * window * bytes / f->sum / 1e6, f->sum / (double)f->windows * 1e6, f->longest * 1e6);
    fflush(stdout);
}

static void lead(const char *file)
{
    struct figures f = {.phase = 0}; /* FILE may name the next phase already: it begins after a window */

    for (unsigned long number = 0;; number++) {
        int phase = number % (bytes < 4096 ? LOOK : 1) ? f.phase : read_phase(file, f.phase);
        double begun = MPI_Wtime(), took;

        errors += send_window(number, phase);
        took = MPI_Wtime() - begun;
        f.windows++;
        f.sum += took;
        f.longest = took > f.longest ? took : f.longest;
        if (phase == f.phase)
            continue;
        print(&f);
        f = (struct figures){.phase = phase};
        if (phase < 0)
            return;
        if (phase >= LATE)
            nanosleep(&(struct timespec){.tv_sec = LATE_S}, NULL);
        printf("phase %d begins\n", phase);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    int all;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    bytes = argc == 4 ? atoi(argv[1]) : 0;
    window = argc == 4 ? atoi(argv[2]) : 0;
    if (bytes < 1 || window < 1 || window > WINDOW_MAX)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int m = 0; m < window; m++)
        buffer[m] = calloc(1, (size_t)bytes);
    if (rank == 0)
        lead(argv[3]);
    else
        for (unsigned long number = 0; receive_window(number) >= 0; number++)
            ;
    MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!rank)
        printf("%d errors\n", all);
    MPI_Finalize();
    return all != 0;
}
