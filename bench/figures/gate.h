/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs measured beside others (bench/figures/inside.py) begin together and end with the measured job.
 *
 * FIGURES_GATE names a directory. Each rank of every job, once connected and without pending messages, adds its clock
 * to the file `ready` and reads from the fifo `go`, outside virtual time. When the last rank has come, the common
 * moment of the beginning is written to `at`, and the fifo's end closed, which releases all at once. The measured job's
 * rank 0 sets the byte in `stop`. Without FIGURES_GATE the gate is a barrier, and gate_stopped() is true.
 */
#ifndef FIGURES_GATE_H
#define FIGURES_GATE_H

#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile char *gate_stop_byte;

/* By the clock of MPI_Wtime, to the nanosecond. */
static inline void sleep_until(double then)
{
    struct timespec at = {(time_t)then, (long)((then - (double)(time_t)then) * 1e9 + 0.5)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

static inline int gate_open(const char *name, int flags)
{
    char path[4096];
    int fd;

    snprintf(path, sizeof path, "%s/%s", getenv("FIGURES_GATE"), name);
    fd = open(path, flags);
    if (fd < 0) {
        perror(path);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return fd;
}

/* Opens the connections of the barrier, and sends waiting packets: a rank at the gate does neither for others. */
static inline void gate_approach(void)
{
    double until;
    int flag;

    MPI_Barrier(MPI_COMM_WORLD);
    until = MPI_Wtime() + 2e-3;
    while (MPI_Wtime() < until)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

/* Returns the moment at which all jobs begin, which is now. */
static inline double gate_wait(void)
{
    char text[64];
    double at = 0;
    int fd, n;

    if (!getenv("FIGURES_GATE")) {
        MPI_Barrier(MPI_COMM_WORLD);
        return MPI_Wtime();
    }
    gate_approach();
    fd = gate_open("stop", O_RDWR);
    gate_stop_byte = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (gate_stop_byte == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 3);
    fd = gate_open("ready", O_WRONLY | O_APPEND);
    n = snprintf(text, sizeof text, "%.9f\n", MPI_Wtime());
    if (write(fd, text, (size_t)n) != n)
        MPI_Abort(MPI_COMM_WORLD, 3);
    close(fd);
    fd = gate_open("go", O_RDONLY);
    while (read(fd, text, sizeof text) > 0)
        ;
    close(fd);
    fd = gate_open("at", O_RDONLY);
    n = (int)read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "%lf", &at) != 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    sleep_until(at);
    return at;
}

static inline void gate_stop(void)
{
    if (gate_stop_byte)
        *gate_stop_byte = 1;
}

static inline bool gate_stopped(void)
{
    return !gate_stop_byte || *gate_stop_byte;
}

#endif
