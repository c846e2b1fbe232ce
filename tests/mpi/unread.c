/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unread N COMMAND: rank 1 is away when N short messages come, and when COMMAND, run by rank 0 once all messages are at
 * rank 1's adapter, breaks their connection. Then rank 1 receives all of them, and answers. Both directions in turn.
 */
#include <stdlib.h>
#include <unistd.h>

#include "p2p.h"

enum { AWAY_US = 300000, SENT_US = 1000 };

/* Confirmations are taken in by looking at the network. */
static void look(int from)
{
    int flag;

    usleep(SENT_US);
    MPI_Iprobe(from, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static void go(int sender, int n, const char *command)
{
    int receiver = !sender, got;

    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == sender) {
        for (int i = 0; i < n; i++)
            MPI_Send(&i, 1, MPI_INT, receiver, 1, MPI_COMM_WORLD);
        look(receiver);
        if (command)
            CHECK(!system(command));
    } else {
        usleep(AWAY_US);
        for (int i = 0; i < n; i++) {
            MPI_Recv(&got, 1, MPI_INT, sender, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(got == i);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int i = 0; i < 200; i++) /* both know each other well */
        MPI_Barrier(MPI_COMM_WORLD);
    go(0, atoi(argv[1]), argc > 2 ? argv[2] : NULL);
    go(1, atoi(argv[1]), argc > 2 ? argv[2] : NULL);
    MPI_Finalize();
    return 0;
}
