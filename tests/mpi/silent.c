/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * silent HOW WHAT DIRECTORY COMMAND: rank 0 only waits (HOW: recv, any, probe, coll; recv_fatal: with the default error
 * handler) while the last rank runs a command that takes the network away, and then waits as well (WHAT: waits) or
 * computes (computes). HOW may be of a window, too: win_lock, win_start, win_fence, win_put, win_get, win_add, and the
 * last three with _long. A waiting rank gets the error that its peer is lost. With "lives" the peer is not lost: rank 1
 * computes for the seconds given instead of the directory, and then sends.
 */
#include <unistd.h>

#include "mt.h"

static int x;

/* Windows, of a byte for each awaited operation: requests to the peer no longer have an answer. */
static MPI_Win window;
static char *part;

static void make_window(void)
{
    MPI_Win_allocate(1 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
}

static int use_window(const char *how, int peer)
{
    static char data[1 << 20];
    int len = strstr(how, "long") ? (int)sizeof(data) : 8, err = MPI_SUCCESS;
    MPI_Group all, other;
    if (!strcmp(how, "win_fence"))
        return MPI_Win_fence(0, window);
    if (!strcmp(how, "win_start")) {
        MPI_Win_get_group(window, &all);
        MPI_Group_incl(all, 1, &peer, &other);
        return MPI_Win_start(other, 0, window);
    }
    if (!strcmp(how, "win_lock")) {
        err = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, window);
        return err ? err : MPI_Win_unlock(peer, window);
    }
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    if (strstr(how, "put"))
        err = MPI_Put(data, len, MPI_BYTE, peer, 0, len, MPI_BYTE, window);
    else if (strstr(how, "get"))
        err = MPI_Get(data, len, MPI_BYTE, peer, 0, len, MPI_BYTE, window);
    else
        err = MPI_Accumulate(data, len, MPI_CHAR, peer, 0, len, MPI_CHAR, MPI_MAX, window);
    return err ? err : MPI_Win_flush(peer, window);
}

static int wait_for_it(const char *how, int peer)
{
    if (window != MPI_WIN_NULL)
        return use_window(how, peer);
    if (!strcmp(how, "any"))
        return MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!strcmp(how, "probe"))
        return MPI_Probe(peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!strcmp(how, "coll"))
        return MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Recv(&x, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void say_told(const char *dir)
{
    char path[512];
    FILE *f;

    printf("rank %d was told\n", rank);
    fflush(stdout);
    snprintf(path, sizeof(path), "%s/%d", dir, rank);
    CHECK((f = fopen(path, "w")) && fclose(f) == 0);
}

static void wait_for_other(const char *dir)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%d", dir, 1 - rank);
    while (access(path, F_OK))
        usleep(1000);
}

static int live(const char *how, int seconds)
{
    double begin = MPI_Wtime();

    if (rank == 1) {
        for (int i = 0; i < seconds; i++)
            sleep(1); /* no call of MPI: computing */
        x = 42;
        EQ(MPI_Send(&x, 1, MPI_INT, 0, 2, MPI_COMM_WORLD), MPI_SUCCESS);
    } else {
        EQ(wait_for_it(how, 1), MPI_SUCCESS);
        EQ(x, 42);
        printf("it came after %.0f s\n", MPI_Wtime() - begin);
    }
    return mt_end();
}

int main(int argc, char **argv)
{
    int class;

    mt_begin(&argc, &argv);
    CHECK(argc > 4 && size == 2);
    if (strcmp(argv[1], "recv_fatal"))
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EQ(MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 1, &x, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
       MPI_SUCCESS);
    EQ(x, 1 - rank);
    window = MPI_WIN_NULL;
    if (!strncmp(argv[1], "win_", 4))
        make_window();
    EQ(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
    if (rank == 1) {
        usleep(10000); /* nothing is under way any more */
        CHECK(system(argv[4]) == 0);
    }
    if (!strcmp(argv[2], "lives"))
        return live(argv[1], atoi(argv[3]));
    while (rank == 1 && !strcmp(argv[2], "computes"))
        sleep(1);
    MPI_Error_class(wait_for_it(argv[1], 1 - rank), &class);
    if (!strcmp(argv[1], "any"))
        CHECK(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_PROC_FAILED_PENDING);
    else
        EQ(class, MPIX_ERR_PROC_FAILED);
    say_told(argv[3]);
    if (!strcmp(argv[2], "waits"))
        wait_for_other(argv[3]);
    MPI_Abort(MPI_COMM_WORLD, 7);
    return 0;
}
