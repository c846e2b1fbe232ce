/* SPDX-License-Identifier: BSD-3-Clause */
/* Promises of the send modes: a synchronous send ends only when matched, a buffered send at once. */
#include <fcntl.h>
#include <unistd.h>

#include "p2p.h"

static void synchronous(int n)
{
    char *buf = room(n);
    MPI_Request req;
    int flag, go = 1;

    fill(buf, n, 3);
    if (rank == 0) {
        MPI_Issend(buf, n, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &req);
        for (int i = 0; i < 20; i++) {
            MPI_Test(&req, &flag, MPI_STATUS_IGNORE);
            CHECK(!flag);
        }
        MPI_Send(&go, 1, MPI_INT, 1, 2, MPI_COMM_WORLD); /* only now may the other receive */
        MPI_Wait(&req, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(&go, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memset(buf, 0, n);
        MPI_Recv(buf, n, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(holds(buf, n, 3));
    }
    free(buf);
}

/* Two ranks that both send first: only buffering lets them through. */
static void buffered(int n)
{
    size_t space = 4 * (n + MPI_BSEND_OVERHEAD);
    char *space_at = room(space), *buf = room(n);
    void *addr;
    int bytes, class;

    if (rank < 2) {
        MPI_Buffer_attach(space_at, (int)space);
        for (int i = 0; i < 4; i++) {
            fill(buf, n, rank + i);
            MPI_Bsend(buf, n, MPI_CHAR, 1 - rank, i, MPI_COMM_WORLD);
        }
        memset(buf, 0, n);
        for (int i = 3; i >= 0; i--) {
            MPI_Recv(buf, n, MPI_CHAR, 1 - rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(holds(buf, n, 1 - rank + i));
        }
        MPI_Buffer_detach(&addr, &bytes);
        CHECK(addr == space_at && (size_t)bytes == space);
        if (n > 1000) {
            MPI_Buffer_attach(space_at, n / 2 + MPI_BSEND_OVERHEAD);
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
            bytes = MPI_Bsend(buf, n, MPI_CHAR, 1 - rank, 9, MPI_COMM_WORLD);
            CHECK(bytes != MPI_SUCCESS);
            MPI_Error_class(bytes, &class);
            CHECK(class == MPI_ERR_BUFFER);
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
            MPI_Buffer_detach(&addr, &bytes);
        }
    }
    free(buf);
    free(space_at);
}

/*
 * Room for one message. The sender learns of the receive from a file, not from MPI: there is room again at the next
 * call of MPI, although no call has polled for the receiver's confirmation.
 */
static void room_again(void)
{
    enum { N = 200000, PATIENCE = 200 };
    static char space[N + MPI_BSEND_OVERHEAD], buf[N], sign[64];
    int bytes, flag;
    void *addr;

    snprintf(sign, sizeof(sign), "/tmp/mrmpi-received-%d", (int)getpid());
    MPI_Bcast(sign, sizeof(sign), MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Buffer_attach(space, sizeof(space));
        for (int i = 0; i < 2; i++) {
            fill(buf, N, i);
            MPI_Bsend(buf, N, MPI_CHAR, 1, 51, MPI_COMM_WORLD);
            for (int k = 0; access(sign, F_OK) && i == 0; k++) {
                usleep(1000);
                if (k > PATIENCE) /* this transfer needs the sender */
                    MPI_Iprobe(1, 53, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            }
        }
        MPI_Buffer_detach(&addr, &bytes);
        unlink(sign);
    } else if (rank == 1) {
        for (int i = 0; i < 2; i++) {
            MPI_Recv(buf, N, MPI_CHAR, 0, 51, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(holds(buf, N, i));
            if (i == 0)
                close(open(sign, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0600));
        }
    }
}

/* A buffered message that nobody has received yet when its sender finalizes still arrives. */
static void late(void)
{
    enum { N = 200000 };
    static char space[N + MPI_BSEND_OVERHEAD], buf[N];

    if (rank == 0) {
        fill(buf, N, 77);
        MPI_Buffer_attach(space, sizeof(space));
        MPI_Bsend(buf, N, MPI_CHAR, 1, 50, MPI_COMM_WORLD);
        memset(buf, 0, N);
    } else if (rank == 1) {
        MPI_Recv(buf, N, MPI_CHAR, 0, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(holds(buf, N, 77));
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int n = 1; n < 2000000; n *= 37) {
        synchronous(n);
        buffered(n * 4);
    }
    if (size > 1)
        room_again();
    late();
    MPI_Finalize();
    return 0;
}
