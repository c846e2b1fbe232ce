/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The failure chapter without a failure, and without mrrun --recover: agreements, shrinks, acknowledgements and
 * revocations of MPI_COMM_SELF, of all, and of two groups.
 */
#include "mt.h"

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

#define FINE(call)    EQ(call, MPI_SUCCESS)
#define REVOKED(call) EQ(class_of(call), MPIX_ERR_REVOKED)

/* An operation in the background may tell the error at its start or at its end. */
static int ended(int err, MPI_Request *q)
{
    return err ? err : MPI_Wait(q, MPI_STATUS_IGNORE);
}

static void nobody_failed(MPI_Comm c)
{
    MPI_Group g;
    int n = -1, all;
    FINE(MPIX_Comm_get_failed(c, &g));
    MPI_Group_compare(g, MPI_GROUP_EMPTY, &n);
    EQ(n, MPI_IDENT);
    if (g != MPI_GROUP_EMPTY)
        MPI_Group_free(&g);
    FINE(MPIX_Comm_failure_ack(c));
    FINE(MPIX_Comm_failure_get_acked(c, &g));
    MPI_Group_size(g, &n);
    EQ(n, 0);
    if (g != MPI_GROUP_EMPTY)
        MPI_Group_free(&g);
    MPI_Comm_size(c, &all);
    for (int ask = 0; ask <= all; ask += all) {
        n = -1;
        FINE(MPIX_Comm_ack_failed(c, ask, &n));
        EQ(n, 0);
    }
}

/* The result is of all votes, and is there when all have voted, not before. */
static void agree(MPI_Comm c, int inter)
{
    int flag, done, me, n;
    MPI_Request q;
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    for (int i = 0; i < 5; i++) {
        flag = i;
        FINE(MPIX_Comm_agree(c, &flag));
        EQ(flag, i);
        flag = i;
        FINE(MPIX_Comm_iagree(c, &flag, &q));
        FINE(MPI_Wait(&q, MPI_STATUS_IGNORE));
        EQ(flag, i);
    }
    for (int first = 0; first < n && n > 1 && !inter; first++) {
        flag = me == first ? 11 : 13;
        if (me == first) {
            FINE(MPIX_Comm_iagree(c, &flag, &q));
            FINE(MPI_Test(&q, &done, MPI_STATUS_IGNORE));
            EQ(done, 0);
            EQ(flag, 11);
        }
        FINE(MPI_Barrier(c));
        if (me != first)
            FINE(MPIX_Comm_iagree(c, &flag, &q));
        FINE(MPI_Wait(&q, MPI_STATUS_IGNORE));
        EQ(flag, 9);
        FINE(MPI_Barrier(c));
    }
}

static void is_as(MPI_Comm got, MPI_Comm c, int inter)
{
    int a, b;
    MPI_Comm_compare(got, c, &a);
    EQ(a, MPI_CONGRUENT);
    MPI_Comm_test_inter(got, &a);
    EQ(a, inter);
    MPI_Comm_rank(got, &a);
    MPI_Comm_rank(c, &b);
    EQ(a, b);
    FINE(MPI_Barrier(got));
    MPI_Comm_free(&got);
}

static void shrink(MPI_Comm c, int inter)
{
    MPI_Comm got = MPI_COMM_NULL;
    MPI_Request q;
    FINE(MPIX_Comm_shrink(c, &got));
    is_as(got, c, inter);
    FINE(MPIX_Comm_ishrink(c, &got, &q));
    FINE(MPI_Wait(&q, MPI_STATUS_IGNORE));
    EQ(q, MPI_REQUEST_NULL);
    is_as(got, c, inter);
}

/*
 * Nothing goes on in a revoked communicator, not even with MPI_PROC_NULL, but for agreements and shrinks. The barrier
 * is of another: whoever is first revokes.
 */
static void revoke(MPI_Comm c)
{
    int flag = -1, is = -1;
    MPI_Request q = MPI_REQUEST_NULL;
    MPI_Message m;
    MPI_Comm got;
    FINE(MPIX_Comm_is_revoked(c, &is));
    EQ(is, 0);
    FINE(MPI_Barrier(MPI_COMM_WORLD));
    FINE(MPIX_Comm_revoke(c));
    FINE(MPIX_Comm_is_revoked(c, &is));
    EQ(is, 1);
    FINE(MPIX_Comm_revoke(c));
    REVOKED(MPI_Barrier(c));
    REVOKED(ended(MPI_Ibarrier(c, &q), &q));
    REVOKED(MPI_Send(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, c));
    REVOKED(MPI_Recv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, c, MPI_STATUS_IGNORE));
    REVOKED(ended(MPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, c, &q), &q));
    REVOKED(ended(MPI_Irecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, c, &q), &q));
    REVOKED(
        MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, c, MPI_STATUS_IGNORE));
    REVOKED(MPI_Probe(MPI_PROC_NULL, 0, c, MPI_STATUS_IGNORE));
    REVOKED(MPI_Iprobe(MPI_PROC_NULL, 0, c, &flag, MPI_STATUS_IGNORE));
    REVOKED(MPI_Mprobe(MPI_PROC_NULL, 0, c, &m, MPI_STATUS_IGNORE));
    REVOKED(MPI_Improbe(MPI_PROC_NULL, 0, c, &flag, &m, MPI_STATUS_IGNORE));
    REVOKED(MPI_Bsend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, c));
    REVOKED(ended(MPI_Ibsend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, c, &q), &q));
    REVOKED(MPI_Ssend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, c));
    FINE(MPI_Send_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, c, &q));
    REVOKED(ended(MPI_Start(&q), &q));
    REVOKED(MPI_Startall(1, &q));
    MPI_Request_free(&q);
    FINE(MPI_Psend_init(NULL, 1, 0, MPI_BYTE, MPI_PROC_NULL, 0, c, MPI_INFO_NULL, &q));
    REVOKED(MPI_Start(&q));
    MPI_Request_free(&q);
    FINE(MPI_Precv_init(NULL, 1, 0, MPI_BYTE, MPI_PROC_NULL, 0, c, MPI_INFO_NULL, &q));
    REVOKED(MPI_Start(&q));
    MPI_Request_free(&q);
    REVOKED(MPI_Comm_dup(c, &got));
    flag = 6;
    FINE(MPIX_Comm_agree(c, &flag));
    EQ(flag, 6);
    FINE(MPIX_Comm_shrink(c, &got));
    FINE(MPIX_Comm_is_revoked(got, &is));
    EQ(is, 0);
    FINE(MPI_Barrier(got));
    MPI_Comm_free(&got);
}

static void all_of(MPI_Comm of)
{
    int inter;
    MPI_Comm c;
    MPI_Comm_test_inter(of, &inter);
    MPI_Comm_dup(of, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    nobody_failed(c);
    agree(c, inter);
    shrink(c, inter);
    revoke(c);
    MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
    MPI_Comm half, inter;
    mt_begin(&argc, &argv);
    all_of(MPI_COMM_SELF);
    all_of(MPI_COMM_WORLD);
    if (size > 1) {
        MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, 0, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < size / 2 ? size / 2 : 0, 3, &inter);
        MPI_Comm_free(&half);
        all_of(inter);
        MPI_Comm_free(&inter);
    }
    return mt_end();
}
