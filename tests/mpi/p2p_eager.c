/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A property that programs depend on although MPI does not promise it: every rank first sends some hundred short
 * messages to all others, and only then receives. With blocking sends, then with nonblocking sends and waits.
 */
#include "p2p.h"

enum { SMALL = 400, PAGES = 60, PAGE = 4096, ALL = SMALL + PAGES };

static int length(int i)
{
    return i < SMALL ? i * 7 % 300 : PAGE;
}

/* A message's place in a buffer for all of them to one rank. */
static size_t place(int i)
{
    return i < SMALL ? (size_t)i * 300 : (size_t)SMALL * 300 + (size_t)(i - SMALL) * PAGE;
}

static unsigned seed(int from, int to, int i)
{
    return (unsigned)(from * 31 + to * 17 + i);
}

static void send_all(int to, char *area, MPI_Request *reqs)
{
    for (int i = 0; i < ALL; i++) {
        char *buf = area + place(i);

        fill(buf, length(i), seed(rank, to, i));
        if (reqs)
            MPI_Isend(buf, length(i), MPI_CHAR, to, i % 3, MPI_COMM_WORLD, &reqs[i]);
        else
            MPI_Send(buf, length(i), MPI_CHAR, to, i % 3, MPI_COMM_WORLD);
    }
    if (reqs)
        MPI_Waitall(ALL, reqs, MPI_STATUSES_IGNORE);
}

static void receive_all(int from, char *buf)
{
    MPI_Status st;
    int n;

    for (int tag = 0; tag < 3; tag++)
        for (int i = tag; i < ALL; i += 3) {
            MPI_Recv(buf, PAGE, MPI_CHAR, from, tag, MPI_COMM_WORLD, &st);
            MPI_Get_count(&st, MPI_CHAR, &n);
            CHECK(n == length(i) && holds(buf, n, seed(from, rank, i)));
        }
}

int main(int argc, char **argv)
{
    static MPI_Request reqs[ALL];
    char *area;

    begin(&argc, &argv);
    area = room(place(ALL));
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        for (int step = 1; step < size; step++)
            send_all((rank + step) % size, area, nonblocking ? reqs : NULL);
        for (int step = 1; step < size; step++)
            receive_all((rank + step) % size, area);
    }
    free(area);
    MPI_Finalize();
    return 0;
}
