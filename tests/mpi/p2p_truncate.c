/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message longer than its receive: MPI_ERR_TRUNCATE, the part that fits has arrived, nothing is overwritten, later
 * messages work. A message that ends within an element of the receive's type: MPI_ERR_TYPE; a shorter message is no
 * error at the receiver.
 */
#include "p2p.h"

static const int lengths[][2] = {{10, 9},         {100, 0},           {20000, 19999}, {8193, 8192},
                                 {1 << 20, 1000}, {3 << 20, 2 << 20}, {1 << 20, 0}};

static void torn(int bytes, int want)
{
    MPI_Datatype triple;
    int in[12], class;

    MPI_Type_vector(3, 1, 2, MPI_INT, &triple);
    MPI_Type_commit(&triple);
    for (int k = 0; k < 3; k++) {
        if (rank == 1)
            MPI_Send("0123456789ab", bytes, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
        if (rank)
            continue;
        if (k == 2)
            MPI_Recv(in, 1, MPI_2INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* a half pair is a type's beginning */
        else {
            MPI_Error_class(MPI_Recv(in, k ? 1 : 3, k ? triple : MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                            &class);
            CHECK(class == want);
        }
    }
    MPI_Type_free(&triple);
}

int main(int argc, char **argv)
{
    enum { MAX = 3 << 20 };
    static char out[MAX], in[MAX + 1];

    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
        int sent = lengths[i / 2][0], fits = lengths[i / 2][1], err, class, got;
        MPI_Request req;
        MPI_Status st;

        fill(out, sent > 50 ? sent : 50, i);
        memset(in, 0x77, sizeof(in));
        if (rank == 0) {
            MPI_Irecv(in, fits, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &req);
            if (i & 1) /* the receive is there before the message */
                MPI_Send(NULL, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
            err = MPI_Wait(&req, &st);
            CHECK(err != MPI_SUCCESS);
            MPI_Error_class(err, &class);
            CHECK(class == MPI_ERR_TRUNCATE);
            CHECK(holds(in, fits, i) && in[fits] == 0x77);
            CHECK(MPI_Recv(in, 100, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &st) == MPI_SUCCESS);
            MPI_Get_count(&st, MPI_CHAR, &got);
            CHECK(got == 50 && holds(in, 50, i));
            if (!(i & 1))
                MPI_Send(NULL, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
        } else if (rank == 1) {
            if (i & 1)
                MPI_Recv(NULL, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Isend(out, sent, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &req);
            CHECK(MPI_Send(out, 50, MPI_CHAR, 0, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
            CHECK(MPI_Wait(&req, MPI_STATUS_IGNORE) == MPI_SUCCESS);
            if (!(i & 1))
                MPI_Recv(NULL, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    torn(3, MPI_ERR_TYPE);
    torn(6, MPI_ERR_TYPE);
    torn(4, MPI_SUCCESS);
    torn(8, MPI_SUCCESS);
    torn(0, MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
