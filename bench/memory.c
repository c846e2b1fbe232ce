/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory: a rank's memory right after MPI_Init, as counted by the kernel (PSS: pages shared by processes are divided
 * among them). The last rank prints, in KiB: all, heap and other anonymous memory, the simulator's arena and library,
 * all other files, the stack.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum part { ANONYMOUS, SIMULATOR, FILES, STACK, PARTS };

static enum part part_of(const char *name)
{
    if (strstr(name, "simfab"))
        return SIMULATOR;
    if (strstr(name, "[stack]"))
        return STACK;
    return strchr(name, '/') ? FILES : ANONYMOUS;
}

static void read_parts(long kib[PARTS])
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[4096];
    enum part part = ANONYMOUS;

    if (!f)
        exit(1);
    while (fgets(line, sizeof line, f)) {
        unsigned long from, to;
        int at = 0;
        long n;

        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &at) == 2 && at)
            part = part_of(line + at);
        else if (sscanf(line, "Pss: %ld", &n) == 1)
            kib[part] += n;
    }
    fclose(f);
}

int main(int argc, char **argv)
{
    long kib[PARTS] = {0};
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == size - 1) {
        read_parts(kib);
        printf("%ld %ld %ld %ld %ld\n", kib[ANONYMOUS] + kib[SIMULATOR] + kib[FILES] + kib[STACK], kib[ANONYMOUS],
               kib[SIMULATOR], kib[FILES], kib[STACK]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
