/* SPDX-License-Identifier: BSD-3-Clause */
/* Run by fatal.sh: ends the job in the way that its argument names. Rank 1 errs, the others wait. */
#include "mt.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Limits memory to the present use plus a little. */
static void limit_memory(void)
{
    enum { MORE = 2 << 20 };
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu", &pages) != 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    fclose(f);
    rlim_t most = pages * (rlim_t)sysconf(_SC_PAGESIZE) + MORE;
    setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int x = 0;
    if (!strcmp(way, "early"))
        MPI_Comm_rank(MPI_COMM_WORLD, &x);
    if (!strcmp(way, "early_info"))
        MPI_Info_get_nkeys(MPI_INFO_NULL, &x);
    if (!strcmp(way, "session")) {
        MPI_Session s;
        MPI_Group g;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
        MPI_Group_from_session_pset(s, "mpi://MOON", &g);
    }
    mt_begin(&argc, &argv);
    if (rank == 0 && !strcmp(way, "start"))
        MPI_Abort(MPI_COMM_WORLD, 8);
    if (rank == 1 && !strcmp(way, "errors_abort")) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT);
        MPI_Send(&x, 1, MPI_INT, 0, -4, MPI_COMM_WORLD);
    }
    if (rank == 1 && !strcmp(way, "called"))
        MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_IO);
    if (!strcmp(way, "alone")) {
        MPI_Session s;
        MPI_Finalize();
        if (rank == 1)
            MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
        return 0;
    }
    if (!strcmp(way, "late")) {
        MPI_Finalize();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 1 && !strcmp(way, "rank"))
        MPI_Send(&x, 1, MPI_INT, 77, 0, MPI_COMM_WORLD);
    if (rank == 1 && !strcmp(way, "abort"))
        MPI_Abort(MPI_COMM_WORLD, 9);
    if (!strcmp(way, "truncate")) {
        int y[2] = {0};
        if (rank == 0)
            MPI_Send(y, 2, MPI_INT, 1, 0, MPI_COMM_WORLD);
        if (rank == 1)
            MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (!strcmp(way, "memory")) {
        enum { N = 1000000 }; /* malloc may have arenas of 64 MiB that count as used */
        MPI_Request q;
        if (rank == 0)
            limit_memory();
        for (int i = 0; i < N && rank == 1; i++) {
            MPI_Isend(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &q);
            MPI_Request_free(&q);
        }
        if (rank == 0)
            MPI_Recv(&x, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (!strcmp(way, "unmapped")) {
        enum { N = 4000000 };
        char *buf = mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (rank == 1) {
            munmap(buf, N);
            MPI_Send(buf, N, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(buf, N, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return mt_end();
}
