/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unheard lock|request: an operation tells the program of a failure before any other news, under mrrun --recover, with
 * four ranks on two hosts of agents. Rank 1 holds the lock of rank 0, its neighbour, and dies. The agent of the second
 * host is stopped meanwhile, and so its ranks hear nothing of that: rank 2, which waits for this lock, or for an
 * operation that needs it, gets an error of rank 0. Then rank 2 frees its windows, whose epochs are open.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "mt.h"

enum { OWNER, HOLDER, WAITER, OTHER, NUM, STOPPED_S = 30 };

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static void send_to(int to)
{
    EQ(MPI_Send(NULL, 0, MPI_INT, to, 0, MPI_COMM_WORLD), MPI_SUCCESS);
}

static void hear_of(int from)
{
    EQ(MPI_Recv(NULL, 0, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
}

static int num_known(void)
{
    MPI_Group g;
    int n;
    EQ(MPIX_Comm_get_failed(MPI_COMM_WORLD, &g), MPI_SUCCESS);
    MPI_Group_size(g, &n);
    if (g != MPI_GROUP_EMPTY)
        MPI_Group_free(&g);
    return n;
}

/* Stops the agent. Another process lets it go on after STOPPED_S, whatever this one does. Returns that process. */
static pid_t stop_agent(pid_t agent)
{
    pid_t saver = fork();
    CHECK(saver >= 0);
    if (saver == 0) {
        sleep(STOPPED_S);
        kill(agent, SIGCONT);
        _exit(0);
    }
    EQ(kill(agent, SIGSTOP), 0);
    return saver;
}

/* The lock is asked for in MPI_Win_lock, and waited for there or at the next operation with the target. */
static int lock_in_vain(MPI_Win w, int by_request)
{
    int x = 7, err = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, OWNER, 0, w);
    MPI_Request q;
    if (!err && by_request) {
        err = MPI_Rput(&x, 1, MPI_INT, OWNER, 0, 1, MPI_INT, w, &q);
        return err ? err : MPI_Wait(&q, MPI_STATUS_IGNORE);
    }
    if (!err)
        err = MPI_Put(&x, 1, MPI_INT, OWNER, 0, 1, MPI_INT, w);
    return err ? err : MPI_Win_flush(OWNER, w);
}

/* Nothing is checked while the agent is stopped: nobody would hear of it. */
static void waits(MPI_Win w, int by_request)
{
    pid_t agent = getppid(), saver;
    int failed, known, freed;
    hear_of(HOLDER);
    EQ(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, WAITER, 0, w), MPI_SUCCESS);
    saver = stop_agent(agent);
    send_to(HOLDER);
    failed = class_of(lock_in_vain(w, by_request));
    send_to(OWNER);
    known = num_known();
    freed = class_of(MPI_Win_free(&w));
    kill(agent, SIGCONT);
    kill(saver, SIGKILL);
    EQ(failed, MPIX_ERR_PROC_FAILED);
    EQ(known, 0);
    CHECK(freed == MPI_SUCCESS || freed == MPIX_ERR_PROC_FAILED);
    EQ(w, MPI_WIN_NULL);
}

int main(int argc, char **argv)
{
    int *mem;
    MPI_Win w;
    mt_begin(&argc, &argv);
    EQ(size, NUM);
    CHECK(argc == 2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EQ(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &w), MPI_SUCCESS);
    MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
    *mem = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == HOLDER) {
        EQ(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, OWNER, 0, w), MPI_SUCCESS);
        EQ(MPI_Win_flush(OWNER, w), MPI_SUCCESS);
        send_to(WAITER);
        hear_of(WAITER);
        kill(getpid(), SIGKILL);
        pause();
    }
    if (rank == WAITER) {
        waits(w, !strcmp(argv[1], "request"));
        return mt_end();
    }
    if (rank == OWNER) {
        hear_of(WAITER);
        EQ(num_known(), 1);
    }
    EQ(class_of(MPI_Win_free(&w)) % MPIX_ERR_PROC_FAILED, 0);
    return mt_end();
}
