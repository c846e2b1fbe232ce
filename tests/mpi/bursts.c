/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows of messages from rank 0 to rank 1, and the time of a message in the last of many windows, when the library
 * knows the sender's buffers if they can be known: "KIND BYTES WINDOW NANOSECONDS". bursts KIND:BYTES:WINDOW...; KIND:
 * again (always the same buffers), new (never the same), new-here and new-there (of the sender alone, of the receiver
 * alone), apart (each is waited for before the next). Each window is answered: a receiver that falls behind copies
 * twice, which depends on a few ns.
 */
#include <stdbool.h>

#include "tests/mpi/p2p.h"

enum { ROUNDS = 40, WARM = 60, LEARNT = 5 << 20, MOST = 64, TAG = 1 };

struct how {
    char kind[16];
    int len, window;
    bool fresh, apart;
    char *memory;
    size_t room;
};

static char *buffer(const struct how *h, int round, int i)
{
    return h->memory + h->room * (size_t)(i + (h->fresh ? round * h->window : 0));
}

static void one_window(const struct how *h, int round)
{
    MPI_Request req[MOST];

    for (int i = 0; i < h->window; i++) {
        char *at = buffer(h, round, i);

        if (rank)
            MPI_Irecv(at, h->len, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &req[i]);
        else
            MPI_Isend(at, h->len, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &req[i]);
        if (h->apart)
            MPI_Wait(&req[i], MPI_STATUS_IGNORE);
    }
    MPI_Waitall(h->window, req, MPI_STATUSES_IGNORE);
    if (rank)
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD);
    else
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void measure(struct how *h)
{
    int warm = strcmp(h->kind, "new") && strcmp(h->kind, "new-here") ? LEARNT / h->len : WARM;
    size_t all = h->room * (size_t)h->window * (h->fresh ? (size_t)warm + ROUNDS : 1);
    double began = 0;

    h->memory = room(all);
    memset(h->memory, 0, all);
    for (int round = 0; round < warm + ROUNDS; round++) {
        if (round == warm) {
            MPI_Barrier(MPI_COMM_WORLD);
            began = MPI_Wtime();
        }
        for (int i = 0; !rank && i < h->window; i++)
            fill(buffer(h, round, i), (size_t)h->len, (unsigned)(round + i));
        one_window(h, round);
        for (int i = 0; rank && i < h->window; i++)
            CHECK(holds(buffer(h, round, i), (size_t)h->len, (unsigned)(round + i)));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank)
        printf("%s %d %d %.0f\n", h->kind, h->len, h->window, (MPI_Wtime() - began) * 1e9 / (ROUNDS * h->window));
    free(h->memory);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size == 2);
    for (int i = 1; i < argc; i++) {
        struct how h = {.kind = ""};

        CHECK(sscanf(argv[i], "%15[^:]:%d:%d", h.kind, &h.len, &h.window) == 3 && h.window <= MOST);
        h.fresh = !strcmp(h.kind, "new") || !strcmp(h.kind, rank ? "new-there" : "new-here");
        h.apart = !strcmp(h.kind, "apart");
        h.room = ((size_t)h.len + 4095) & ~(size_t)4095;
        measure(&h);
    }
    MPI_Finalize();
    return 0;
}
