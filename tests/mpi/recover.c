/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recover CASE [SEED [ROUNDS [LONGEST_US [STOPPED]]]]: programs that go on after the failure of ranks, under mrrun
 * --recover.
 *
 * - failure: rank 1 dies; what the others see, acknowledge, agree on, and make of the rest.
 * - root: rank 0 dies; agreements and a shrink without the root of the tree.
 * - revoke: nobody dies; ranks that wait in different ways for others hear of a revocation.
 * - revoked: nobody dies; ranks that wait in a window hear of the revocation of the communicator that it was made from.
 * - revoked-files: the same in files.
 * - background: agreements and shrinks in the background, several at a time.
 * - groups: agreements of two groups; then a rank dies.
 * - all: all ranks but the last die.
 * - windows DEAD: that rank dies with locks of the last rank's part of windows, for which others wait.
 * - files DEAD: that rank dies with files open.
 * - abandoned: the last rank has no window, which the others have got; after a revocation, and after rank 0's death.
 * - early DEAD: that rank dies, and one of the others frees its windows and closes its file while others still need it.
 * - abort: rank 1 dies; an operation with it, under MPI_ERRORS_ABORT, ends the job.
 * - told: ranks die one after the other; how soon the others know.
 * - host: the agent of the second host dies, with the upper half of the ranks.
 * - cut: something outside cuts the second host off, and the upper half of the ranks dies of that.
 * - calm: nobody dies, although it may look so for a while: ROUNDS, with a pause of LONGEST_US between them. In the
 *   middle rank 1 is stopped for STOPPED seconds.
 * - chaos: ranks die at random moments up to LONGEST_US, of SIGKILL; survivors repair their communicator and continue.
 */
#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mt.h"

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

#define FAILED(call)  EQ(class_of(call), MPIX_ERR_PROC_FAILED)
#define REVOKED(call) EQ(class_of(call), MPIX_ERR_REVOKED)
#define FINE(call)    EQ(call, MPI_SUCCESS)

static int group_size(MPI_Group g)
{
    int n;
    MPI_Group_size(g, &n);
    if (g != MPI_GROUP_EMPTY)
        MPI_Group_free(&g);
    return n;
}

static int num_failed(MPI_Comm c)
{
    MPI_Group g;
    FINE(MPIX_Comm_get_failed(c, &g));
    return group_size(g);
}

static int num_acked(MPI_Comm c)
{
    MPI_Group g;
    FINE(MPIX_Comm_failure_get_acked(c, &g));
    return group_size(g);
}

static void await_failures(MPI_Comm c, int n)
{
    while (num_failed(c) < n)
        usleep(1000);
}

/* A communicator of the survivors does everything. */
static void use_comm(MPI_Comm c)
{
    int r, n, sum, in = -1, out, all[64], one = 1;
    MPI_Comm dup, half;
    MPI_Win win;
    int *mem;
    MPI_Comm_rank(c, &r);
    MPI_Comm_size(c, &n);
    for (int i = 0; i < 8; i++) {
        FINE(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
        EQ(sum, n);
    }
    out = r * 7;
    FINE(MPI_Sendrecv(&out, 1, MPI_INT, (r + 1) % n, 3, &in, 1, MPI_INT, (r + n - 1) % n, 3, c, MPI_STATUS_IGNORE));
    EQ(in, (r + n - 1) % n * 7);
    FINE(MPI_Comm_dup(c, &dup));
    FINE(MPI_Comm_split(dup, r % 2, -r, &half));
    FINE(MPI_Allgather(&r, 1, MPI_INT, all, 1, MPI_INT, half));
    MPI_Comm_size(half, &sum);
    EQ(sum, r % 2 ? n / 2 : (n + 1) / 2);
    FINE(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, dup, &mem, &win));
    *mem = -1;
    FINE(MPI_Win_fence(0, win));
    FINE(MPI_Put(&r, 1, MPI_INT, (r + 1) % n, 0, 1, MPI_INT, win));
    FINE(MPI_Win_fence(0, win));
    EQ(*mem, (r + n - 1) % n);
    FINE(MPI_Win_free(&win));
    FINE(MPI_Comm_free(&half));
    FINE(MPI_Comm_free(&dup));
}

static void use_file(MPI_Comm c)
{
    char name[64];
    int r, x = 0;
    MPI_File f;
    MPI_Comm_rank(c, &r);
    snprintf(name, sizeof(name), "/tmp/mrmpi-recover.%d", (int)getpid());
    FINE(MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, c));
    FINE(MPI_File_open(c, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f));
    FINE(MPI_File_write_at_all(f, r * 4, &r, 1, MPI_INT, MPI_STATUS_IGNORE));
    FINE(MPI_File_read_at_all(f, r * 4, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQ(x, r);
    FINE(MPI_File_close(&f));
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    pause();
}

/* ---- one death --------------------------------------------------------------------------------------------------- */

/* Receives from any source stop until the failure is acknowledged; then they go on. */
static void any_source(MPI_Comm c)
{
    int x = 0, y = 5, flag;
    MPI_Request q;
    MPI_Message m;
    MPI_Status st;
    if (rank == 0) {
        FAILED(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 9, c, MPI_STATUS_IGNORE));
        FINE(MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 4, c, &q));
        EQ(class_of(MPI_Wait(&q, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED_PENDING);
        EQ(class_of(MPI_Test(&q, &flag, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED_PENDING);
        CHECK(q != MPI_REQUEST_NULL);
        EQ(class_of(MPI_Iprobe(MPI_ANY_SOURCE, 9, c, &flag, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED_PENDING);
        EQ(class_of(MPI_Improbe(MPI_ANY_SOURCE, 9, c, &flag, &m, MPI_STATUS_IGNORE)), MPIX_ERR_PROC_FAILED_PENDING);
        EQ(num_acked(c), 0);
        FINE(MPIX_Comm_failure_ack(c));
        EQ(num_acked(c), 1);
        FINE(MPI_Iprobe(MPI_ANY_SOURCE, 9, c, &flag, MPI_STATUS_IGNORE));
        EQ(flag, 0);
        FINE(MPI_Improbe(MPI_ANY_SOURCE, 9, c, &flag, &m, MPI_STATUS_IGNORE));
        EQ(flag, 0);
        FINE(MPI_Iprobe(2, 9, c, &flag, MPI_STATUS_IGNORE));
        EQ(flag, 0);
        FINE(MPI_Send(&x, 1, MPI_INT, 2, 5, c));
        FINE(MPI_Wait(&q, &st));
        EQ(st.MPI_SOURCE, 2);
        EQ(x, 5);
    } else if (rank == 2) {
        FINE(MPI_Recv(&x, 1, MPI_INT, 0, 5, c, MPI_STATUS_IGNORE));
        FINE(MPI_Send(&y, 1, MPI_INT, 0, 4, c));
    }
}

static void after_death(MPI_Comm c, int dead)
{
    static char big[1 << 20];
    int x = 0, sum, flag, got;
    MPI_Request q;
    MPI_Message m;
    MPI_Comm rest;
    MPI_Group g;
    FAILED(MPI_Recv(&x, 1, MPI_INT, dead, 1, c, MPI_STATUS_IGNORE));
    FAILED(MPI_Iprobe(dead, 1, c, &flag, MPI_STATUS_IGNORE));
    FAILED(MPI_Improbe(dead, 1, c, &flag, &m, MPI_STATUS_IGNORE));
    FAILED(MPI_Ssend(big, sizeof(big), MPI_CHAR, dead, 1, c));
    FAILED(MPI_Send(&x, 1, MPI_INT, dead, 1, c));
    FINE(MPI_Irecv(big, sizeof(big), MPI_CHAR, dead, 2, c, &q));
    FAILED(MPI_Wait(&q, MPI_STATUS_IGNORE));
    FAILED(MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c));
    FAILED(MPI_Barrier(c));
    EQ(num_failed(c), 1);
    FINE(MPIX_Comm_get_failed(c, &g));
    MPI_Group_rank(g, &got);
    EQ(got, MPI_UNDEFINED);
    MPI_Group_free(&g);
    EQ(num_failed(MPI_COMM_SELF), 0);
    if (dead)
        any_source(c);
    flag = ~(1 << rank);
    FAILED(MPIX_Comm_agree(c, &flag)); /* some have not acknowledged */
    for (int r = 0; r < size; r++)
        EQ(!(flag >> r & 1), r != dead);
    FINE(MPIX_Comm_ack_failed(c, 5, &got));
    EQ(got, 1);
    flag = ~(1 << rank);
    FINE(MPIX_Comm_agree(c, &flag));
    for (int r = 0; r < size; r++)
        EQ(!(flag >> r & 1), r != dead);
    FINE(MPIX_Comm_shrink(c, &rest));
    MPI_Comm_size(rest, &got);
    EQ(got, size - 1);
    MPI_Comm_rank(rest, &got);
    EQ(got, rank - (rank > dead));
    use_comm(rest);
    use_file(rest);
    FINE(MPI_Comm_free(&rest));
}

static void one_dies(int dead)
{
    int x = 1, sum;
    MPI_Comm c;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    for (int i = 0; i < 8; i++)
        FINE(MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c));
    if (rank == dead) { /* once all have the results */
        for (int i = 1; i < size; i++)
            FINE(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, c, MPI_STATUS_IGNORE));
        die();
    }
    FINE(MPI_Send(&x, 1, MPI_INT, dead, 0, c));
    after_death(c, dead);
    MPI_Comm_free(&c);
}

static void all_die(void)
{
    MPI_Comm rest;
    int n, flag = 3;
    if (rank < size - 1)
        die();
    await_failures(MPI_COMM_WORLD, size - 1);
    FAILED(MPI_Recv(&n, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    FAILED(MPIX_Comm_agree(MPI_COMM_WORLD, &flag));
    EQ(flag, 3);
    FINE(MPIX_Comm_shrink(MPI_COMM_WORLD, &rest));
    MPI_Comm_size(rest, &n);
    EQ(n, 1);
    MPI_Comm_free(&rest);
}

/* ---- windows and files of a rank that dies ----------------------------------------------------------------------- */

/* Of an operation that a rank can do without the dead one, or not: whichever, it ends. */
#define ENDS(call)                                                                                                     \
    do {                                                                                                               \
        int e_ = (call);                                                                                               \
        CHECK(!e_ || class_of(e_) == MPIX_ERR_PROC_FAILED);                                                            \
    } while (0)

enum { HELD, SHARED, LATE, ALL, FENCED, GROUPS, WINDOWS };
static int memory[WINDOWS][64];

static void make_windows(MPI_Comm c, int allocated, MPI_Win *w)
{
    for (int i = 0; i < WINDOWS; i++) {
        int *mine;
        if (allocated)
            FINE(MPI_Win_allocate(sizeof(memory[i]), sizeof(int), MPI_INFO_NULL, c, &mine, &w[i]));
        else
            FINE(MPI_Win_create(memory[i], sizeof(memory[i]), sizeof(int), MPI_INFO_NULL, c, &w[i]));
        MPI_Win_set_errhandler(w[i], MPI_ERRORS_RETURN);
    }
    FINE(MPI_Win_fence(0, w[FENCED]));
}

/* Takes the lock, and has it. */
static void hold(MPI_Win w, int kind, int owner)
{
    int got;
    FINE(MPI_Win_lock(kind, owner, 0, w));
    FINE(MPI_Get(&got, 1, MPI_INT, owner, 0, 1, MPI_INT, w));
    FINE(MPI_Win_flush(owner, w));
}

/* A lock of the dead is given back, or never comes. */
static void take(MPI_Win w, int owner)
{
    int err = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, owner, 0, w);
    if (!err) {
        ENDS(MPI_Put(&rank, 1, MPI_INT, owner, rank, 1, MPI_INT, w));
        ENDS(MPI_Win_unlock(owner, w));
    } else {
        EQ(class_of(err), MPIX_ERR_PROC_FAILED);
    }
}

static void use_windows(MPI_Win *w, int dead)
{
    int other = (rank + 1) % size == dead ? (rank + 2) % size : (rank + 1) % size, err;
    MPI_Group all, of_dead;
    FAILED(MPI_Win_lock(MPI_LOCK_SHARED, dead, 0, w[HELD]));
    FINE(MPI_Win_lock_all(0, w[ALL]));
    err = MPI_Put(&rank, 1, MPI_INT, dead, rank, 1, MPI_INT, w[ALL]);
    CHECK(class_of(err) == MPIX_ERR_PROC_FAILED);
    FINE(MPI_Put(&rank, 1, MPI_INT, other, rank, 1, MPI_INT, w[ALL]));
    FINE(MPI_Win_flush(other, w[ALL]));
    ENDS(MPI_Win_unlock_all(w[ALL]));
    FAILED(MPI_Win_fence(0, w[FENCED]));
    MPI_Win_get_group(w[GROUPS], &all);
    MPI_Group_incl(all, 1, &dead, &of_dead);
    FAILED(MPI_Win_start(of_dead, 0, w[GROUPS]));
    ENDS(MPI_Win_complete(w[GROUPS]));
    ENDS(MPI_Win_post(of_dead, 0, w[GROUPS]));
    FAILED(MPI_Win_wait(w[GROUPS]));
    MPI_Group_free(&all);
    MPI_Group_free(&of_dead);
}

/* When all have used them: nothing else holds up who comes first. */
static void free_windows(MPI_Win *w)
{
    for (int i = 0; i < WINDOWS; i++) {
        ENDS(MPI_Win_free(&w[i]));
        EQ(w[i], MPI_WIN_NULL);
    }
}

static int on_one_node(MPI_Comm c)
{
    MPI_Comm node;
    int n;
    FINE(MPI_Comm_split_type(c, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    MPI_Comm_size(node, &n);
    FINE(MPI_Comm_free(&node));
    return n == size;
}

/*
 * The dead one has the owner's lock. An MPI_Win_lock_all that fails begins no epoch, and gives back what it got: the
 * heir then gets the locks of all others alone. fails: it does.
 */
static void lock_all_in_vain(MPI_Win w, MPI_Comm c, int dead, int owner, int fails)
{
    int err = MPI_Win_lock_all(0, w), heir = dead == 0, x = 1;
    if (err || fails) {
        FAILED(err);
        EQ(class_of(MPI_Win_unlock_all(w)), MPI_ERR_RMA_SYNC);
        EQ(class_of(MPI_Win_flush_all(w)), MPI_ERR_RMA_SYNC);
    } else {
        ENDS(MPI_Win_unlock_all(w));
    }
    FAILED(MPIX_Comm_agree(c, &x)); /* all have tried */
    for (int target = 0; rank == heir && target < size; target++)
        if (target != dead && target != owner) {
            FINE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w));
            FINE(MPI_Put(&rank, 1, MPI_INT, target, rank, 1, MPI_INT, w));
            FINE(MPI_Win_unlock(target, w));
        }
}

static void windows(int dead)
{
    MPI_Win w[2][WINDOWS];
    MPI_Comm c, rest;
    int owner = size - 1, x = 0, near = on_one_node(MPI_COMM_WORLD);
    FINE(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    for (int allocated = 0; allocated < 2; allocated++)
        make_windows(c, allocated, w[allocated]);
    if (rank == dead) {
        for (int allocated = 0; allocated < 2; allocated++) {
            hold(w[allocated][HELD], MPI_LOCK_EXCLUSIVE, owner);
            hold(w[allocated][SHARED], MPI_LOCK_SHARED, owner);
            hold(w[allocated][LATE], MPI_LOCK_EXCLUSIVE, owner);
        }
        for (int to = 0; to < size; to++)
            if (to != dead)
                FINE(MPI_Send(&x, 1, MPI_INT, to, 0, c));
        usleep(20000); /* others wait for the locks */
        die();
    }
    FINE(MPI_Recv(&x, 1, MPI_INT, dead, 0, c, MPI_STATUS_IGNORE));
    for (int allocated = 1; allocated >= 0; allocated--) {
        take(w[allocated][HELD], owner);
        take(w[allocated][SHARED], owner);
    }
    FAILED(MPI_Recv(&x, 1, MPI_INT, dead, 0, c, MPI_STATUS_IGNORE));
    for (int allocated = 0; allocated < 2; allocated++)
        use_windows(w[allocated], dead);
    for (int n = 0; n < 6; n++) /* survivors that first ask for a lock after the news of the failure */
        take(w[n % 2][LATE], owner);
    for (int allocated = 0; allocated < 2; allocated++)
        lock_all_in_vain(w[allocated][HELD], c, dead, owner, allocated && near);
    FAILED(MPIX_Comm_agree(c, &x));
    for (int allocated = 0; allocated < 2; allocated++)
        free_windows(w[allocated]);
    FINE(MPIX_Comm_shrink(c, &rest));
    use_comm(rest);
    MPI_Comm_free(&rest);
    MPI_Comm_free(&c);
}

static void files(int dead)
{
    char name[64];
    int x = rank, y = -1;
    MPI_Comm c, rest;
    MPI_Request q;
    MPI_Offset at;
    MPI_File f;
    FINE(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    snprintf(name, sizeof(name), "/tmp/mrmpi-files.%d", (int)getpid());
    FINE(MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, c));
    FINE(MPI_File_open(c, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    FINE(MPI_File_write_at_all(f, 100 + rank * 4, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
    if (rank == dead) { /* once all have written */
        for (int i = 1; i < size; i++)
            FINE(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, c, MPI_STATUS_IGNORE));
        die();
    }
    FINE(MPI_Send(&x, 1, MPI_INT, dead, 0, c));
    FAILED(MPI_File_write_at_all(f, 1000, &x, 1, MPI_INT, MPI_STATUS_IGNORE)); /* some wait for the dead */
    FAILED(MPI_File_read_at_all(f, 0, &y, 1, MPI_INT, MPI_STATUS_IGNORE));
    FAILED(MPI_File_write_ordered(f, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
    FAILED(MPI_File_set_size(f, 4096));
    FAILED(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    FAILED(MPI_File_sync(f));
    FINE(MPI_File_read_at(f, 100 + dead * 4, &y, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQ(y, dead);
    FINE(MPI_File_iwrite_at(f, 2000 + rank * 4, &x, 1, MPI_INT, &q));
    FINE(MPI_Wait(&q, MPI_STATUS_IGNORE));
    FINE(MPI_File_read_at(f, 2000 + rank * 4, &y, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQ(y, rank);
    if (dead) { /* the shared pointer is rank 0's */
        FINE(MPI_File_write_shared(f, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
        FINE(MPI_File_get_position_shared(f, &at));
        CHECK(at > 0);
    } else {
        FAILED(MPI_File_write_shared(f, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
    }
    FAILED(MPIX_Comm_agree(c, &x)); /* all have used the file */
    ENDS(MPI_File_close(&f));
    EQ(f, MPI_FILE_NULL);
    FINE(MPIX_Comm_shrink(c, &rest));
    use_file(rest);
    MPI_Comm_rank(rest, &y);
    if (y == 0)
        EQ(unlink(name), 0);
    MPI_Comm_free(&rest);
    MPI_Comm_free(&c);
}

/* A survivor frees the window and closes the file while the others still use its part, and its shared pointer. */
static void early(int dead)
{
    char name[64];
    int first = dead == 0, x = rank, got = -1;
    MPI_Win w[2][WINDOWS];
    MPI_File f;
    MPI_Comm c, rest;
    FINE(MPI_Comm_split(MPI_COMM_WORLD, 0, (rank + size - first) % size, &c)); /* the first lives */
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    for (int allocated = 0; allocated < 2; allocated++)
        make_windows(c, allocated, w[allocated]);
    snprintf(name, sizeof(name), "/tmp/mrmpi-early.%d", (int)getpid());
    FINE(MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, c));
    FINE(MPI_File_open(c, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    FINE(MPI_File_write_shared(f, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
    FINE(MPI_Barrier(c));
    if (rank == dead) {
        usleep(20000);
        die();
    }
    FAILED(MPI_Recv(&x, 1, MPI_INT, (dead + size - first) % size, 0, c, MPI_STATUS_IGNORE));
    for (int i = 0; rank != first && i < WINDOWS; i++)
        for (int allocated = 0; allocated < 2; allocated++) {
            MPI_Win one = w[allocated][i];
            usleep(5000);
            if (i == FENCED)
                continue;
            take(one, 0);
            FINE(MPI_Win_lock_all(0, one));
            ENDS(MPI_Accumulate(&rank, 1, MPI_INT, 0, 60, 1, MPI_INT, MPI_MAX, one)); /* needs a mutex */
            ENDS(MPI_Win_flush(0, one));
            FINE(MPI_Put(&rank, 1, MPI_INT, 0, rank, 1, MPI_INT, one));
            FINE(MPI_Win_flush(0, one));
            FINE(MPI_Get(&got, 1, MPI_INT, 0, rank, 1, MPI_INT, one));
            FINE(MPI_Win_flush(0, one));
            ENDS(MPI_Win_unlock_all(one));
            EQ(got, rank);
        }
    for (int allocated = 0; allocated < 2; allocated++)
        for (int i = 0; i < WINDOWS; i++) {
            FAILED(MPI_Win_free(&w[allocated][i]));
            EQ(w[allocated][i], MPI_WIN_NULL);
        }
    for (int i = 0; rank != first && i < 4; i++) {
        usleep(5000);
        FINE(MPI_File_write_shared(f, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    }
    FAILED(MPI_File_close(&f));
    EQ(f, MPI_FILE_NULL);
    if (rank == first)
        EQ(unlink(name), 0);
    FINE(MPIX_Comm_shrink(c, &rest));
    use_comm(rest);
    use_file(rest);
    MPI_Comm_free(&rest);
    MPI_Comm_free(&c);
}

static void abort_by_handler(void)
{
    int x;
    MPI_Comm c;
    FINE(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    if (rank == 1)
        die();
    FAILED(MPI_Recv(&x, 1, MPI_INT, 1, 0, c, MPI_STATUS_IGNORE));
    if (rank == 0) {
        MPI_Comm_set_errhandler(c, MPI_ERRORS_ABORT);
        MPI_Recv(&x, 1, MPI_INT, 1, 0, c, MPI_STATUS_IGNORE);
        puts("it goes on");
    }
    MPI_Recv(&x, 1, MPI_INT, 0, 0, c, MPI_STATUS_IGNORE); /* until the end */
}

/* ---- how soon ---------------------------------------------------------------------------------------------------- */

static long long real_ns(void)
{
    struct timespec t;
    CHECK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t) == 0);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* All but rank 0, the last first. Prints the least, and the most, of what rank 0 saw. */
static void told(void)
{
    double least = 1e9, most = 0;
    for (int victim = size - 1; victim > 0 && rank <= victim; victim--) {
        long long died;
        int go = 0;
        if (rank == victim) {
            FINE(MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            usleep(20000); /* rank 0 waits */
            died = real_ns();
            FINE(MPI_Send(&died, 1, MPI_LONG_LONG, 0, 1, MPI_COMM_WORLD));
            FINE(MPI_Recv(&go, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); /* has come */
            die();
        }
        if (rank == 0) {
            double ms;
            FINE(MPI_Send(&go, 1, MPI_INT, victim, 0, MPI_COMM_WORLD));
            FINE(MPI_Recv(&died, 1, MPI_LONG_LONG, victim, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            FINE(MPI_Send(&go, 1, MPI_INT, victim, 1, MPI_COMM_WORLD));
            FAILED(MPI_Recv(&go, 1, MPI_INT, victim, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            ms = (double)(real_ns() - died) / 1e6;
            least = ms < least ? ms : least;
            most = ms > most ? ms : most;
        }
    }
    if (rank == 0)
        printf("told after %.2f to %.2f ms\n", least, most);
}

/* ---- revocation -------------------------------------------------------------------------------------------------- */

/* For a rank that does not come: the last. Ranks in collective operations are all in the same. */
static void wait_somehow(MPI_Comm c, int turn)
{
    static char big[1 << 20];
    int x = 0, sum;
    MPI_Request q[2];
    MPI_Message m;
    switch ((turn + rank) % 3 ? 4 + turn % 3 : (turn + rank) / 3 % 4) {
    case 0:
        REVOKED(MPI_Recv(&x, 1, MPI_INT, 0, 77, c, MPI_STATUS_IGNORE));
        break;
    case 1:
        REVOKED(MPI_Ssend(big, sizeof(big), MPI_CHAR, (rank + 1) % size, 78, c));
        break;
    case 2:
        REVOKED(MPI_Mprobe(MPI_ANY_SOURCE, 79, c, &m, MPI_STATUS_IGNORE));
        break;
    case 3:
        FINE(MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 80, c, &q[0]));
        FINE(MPI_Irecv(&x, 1, MPI_INT, 0, 80, c, &q[1]));
        EQ(class_of(MPI_Waitall(2, q, MPI_STATUSES_IGNORE)), MPI_ERR_IN_STATUS);
        break;
    case 4:
        REVOKED(MPI_Barrier(c));
        break;
    case 5:
        FINE(MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c, &q[0]));
        REVOKED(MPI_Wait(&q[0], MPI_STATUS_IGNORE));
        break;
    case 6:
        REVOKED(MPI_Bcast(big, sizeof(big), MPI_CHAR, size - 1, c));
        break;
    }
}

static void later_operations(MPI_Comm c)
{
    static char big[1 << 20];
    int x = 0, flag = 0, peer = (rank + 1) % size;
    MPI_Request q;
    MPI_Comm d;
    FINE(MPIX_Comm_is_revoked(c, &flag));
    EQ(flag, 1);
    FINE(MPIX_Comm_is_revoked(MPI_COMM_WORLD, &flag));
    EQ(flag, 0);
    REVOKED(MPI_Send(&x, 1, MPI_INT, peer, 1, c));
    REVOKED(MPI_Send(big, sizeof(big), MPI_CHAR, peer, 1, c));
    FINE(MPI_Irecv(&x, 1, MPI_INT, peer, 1, c, &q));
    REVOKED(MPI_Wait(&q, MPI_STATUS_IGNORE));
    REVOKED(MPI_Recv(&x, 1, MPI_INT, peer, 1, c, MPI_STATUS_IGNORE));
    REVOKED(MPI_Probe(peer, 1, c, MPI_STATUS_IGNORE));
    REVOKED(MPI_Iprobe(peer, 1, c, &flag, MPI_STATUS_IGNORE));
    REVOKED(MPI_Bcast(&x, 1, MPI_INT, 0, c));
    REVOKED(MPI_Comm_dup(c, &d));
    REVOKED(MPI_Comm_split(c, 0, 0, &d));
    FINE(MPIX_Comm_revoke(c));
    flag = ~(1 << rank);
    FINE(MPIX_Comm_agree(c, &flag));
    for (int r = 0; r < size; r++)
        EQ(flag >> r & 1, 0);
}

static void revoke_some(void)
{
    MPI_Comm c, d, late;
    int n;
    for (int i = 0; i < 12; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &c);
        for (int k = 0; k < (i % 2 ? 8 : 0); k++) /* with a node area, too */
            FINE(MPI_Barrier(c));
        if (rank == size - 1) {
            usleep(2000);
            FINE(MPIX_Comm_revoke(c));
        } else {
            wait_somehow(c, i);
        }
        while (!MPIX_Comm_is_revoked(c, &n) && !n)
            ;
        later_operations(c);
        FINE(MPIX_Comm_shrink(c, &d));
        MPI_Comm_size(d, &n);
        EQ(n, size);
        use_comm(d);
        /* a communicator that others may not have made yet */
        FINE(MPI_Comm_dup(d, &late));
        if (rank == i % size)
            FINE(MPIX_Comm_revoke(late));
        REVOKED(MPI_Recv(&n, 1, MPI_INT, (rank + 1) % size, 0, late, MPI_STATUS_IGNORE));
        MPI_Comm_free(&late);
        MPI_Comm_free(&d);
        MPI_Comm_free(&c);
    }
}

enum { BIG_WORDS = 1 << 17, WINDOW_WORDS = 2 * BIG_WORDS };
enum { IN_FENCE, IN_START, IN_WAIT, IN_TEST, IN_LOCK, IN_SHARED, IN_ALL, WAYS };

static MPI_Win make_window(MPI_Comm c, int **mem, int allocate)
{
    MPI_Win w;
    MPI_Aint bytes = WINDOW_WORDS * (MPI_Aint)sizeof(int);
    if (allocate) {
        FINE(MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, c, mem, &w));
    } else {
        *mem = calloc(WINDOW_WORDS, sizeof(int));
        FINE(MPI_Win_create(*mem, bytes, sizeof(int), MPI_INFO_NULL, c, &w));
    }
    FINE(MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN));
    return w;
}

/* The last rank takes a lock for which all others wait. */
static void take_lock(MPI_Win w, int target)
{
    int x = 1;
    FINE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w));
    FINE(MPI_Put(&x, 1, MPI_INT, target, 0, 1, MPI_INT, w));
    FINE(MPI_Win_flush(target, w));
}

/* A lock at another host is asked for in MPI_Win_lock and waited for later: one of the calls waits, and ends. */
static void wait_for_lock(MPI_Win w, int target, int how)
{
    int x = 1, exclusive = how == IN_LOCK, err, last;
    if (how == IN_ALL)
        err = MPI_Win_lock_all(0, w);
    else
        err = MPI_Win_lock(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, w);
    if (err) { /* no epoch has begun */
        REVOKED(err);
        return;
    }
    if (rank % 2 == 0)
        err = MPI_Put(&x, 1, MPI_INT, target, 1, 1, MPI_INT, w);
    last = how == IN_ALL ? MPI_Win_unlock_all(w) : MPI_Win_unlock(target, w);
    if (how == IN_ALL && !err && !last) /* no lock was needed */
        last = MPI_Win_fence(0, w);
    REVOKED(err ? err : last);
    if (err)
        REVOKED(last);
}

/* For the last rank, which does not come, or has the lock of target. */
static void wait_in_window(MPI_Win w, int how, int target)
{
    static int big[BIG_WORDS];
    int flag = 0, err = 0, last = size - 1;
    MPI_Group all, group;
    FINE(MPI_Win_get_group(w, &all));
    FINE(MPI_Group_incl(all, 1, &last, &group));
    switch (how) {
    case IN_FENCE:
        FINE(MPI_Put(big, BIG_WORDS, MPI_INT, (rank + 1) % size, 0, BIG_WORDS, MPI_INT, w));
        REVOKED(MPI_Win_fence(0, w));
        break;
    case IN_START:
        REVOKED(MPI_Win_start(group, 0, w));
        break;
    case IN_WAIT:
        FINE(MPI_Win_post(group, 0, w));
        REVOKED(MPI_Win_wait(w));
        break;
    case IN_TEST:
        FINE(MPI_Win_post(group, 0, w));
        while (!flag && !err)
            err = MPI_Win_test(w, &flag);
        REVOKED(err);
        break;
    default:
        wait_for_lock(w, target, how);
    }
    FINE(MPI_Group_free(&group));
    FINE(MPI_Group_free(&all));
}

/* No epoch begins any more. */
static void use_revoked(MPI_Win w)
{
    MPI_Group all;
    FINE(MPI_Win_get_group(w, &all));
    REVOKED(MPI_Win_fence(0, w));
    REVOKED(MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, w));
    REVOKED(MPI_Win_post(all, 0, w));
    REVOKED(MPI_Win_start(all, 0, w));
    REVOKED(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (rank + 1) % size, 0, w));
    REVOKED(MPI_Win_lock_all(0, w));
    FINE(MPI_Win_sync(w));
    FINE(MPI_Group_free(&all));
}

/* closes: the program ends its epoch, else MPI_Win_free does. */
static void revoke_window(int how, int closes, int allocate, int target)
{
    int *mem, last = rank == size - 1;
    MPI_Comm c;
    MPI_Win w;
    FINE(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    w = make_window(c, &mem, allocate);
    FINE(MPI_Win_fence(0, w));
    if (how >= IN_LOCK)
        FINE(MPI_Win_fence(MPI_MODE_NOSUCCEED, w));
    if (how >= IN_LOCK && last)
        take_lock(w, target);
    FINE(MPI_Barrier(MPI_COMM_WORLD));
    if (last) {
        usleep(3000);
        FINE(MPIX_Comm_revoke(c));
    } else {
        wait_in_window(w, how, target);
    }
    FINE(MPI_Barrier(MPI_COMM_WORLD)); /* the lock is given back later */
    if (closes && how == IN_START && !last)
        REVOKED(MPI_Win_complete(w));
    if (closes && how >= IN_LOCK && last) {
        REVOKED(MPI_Win_flush(target, w));
        REVOKED(MPI_Win_unlock(target, w));
    }
    if (closes || (last ? how < IN_LOCK : how != IN_START))
        use_revoked(w);
    FINE(MPI_Win_free(&w));
    if (!allocate)
        free(mem);
    FINE(MPI_Comm_free(&c));
}

/* Windows of other communicators go on, also of one whose number the revoked one has got. */
static void keep_windows(void)
{
    int *mem[2], flag;
    MPI_Comm c, d;
    MPI_Win w[2];
    FINE(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    w[0] = make_window(c, &mem[0], 1);
    FINE(MPI_Comm_free(&c));
    FINE(MPI_Comm_dup(MPI_COMM_WORLD, &d));
    w[1] = make_window(MPI_COMM_WORLD, &mem[1], 0);
    if (rank == 0)
        FINE(MPIX_Comm_revoke(d));
    do
        FINE(MPIX_Comm_is_revoked(d, &flag));
    while (!flag);
    for (int i = 0; i < 2; i++) {
        mem[i][0] = -1;
        FINE(MPI_Win_fence(0, w[i]));
        FINE(MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, w[i]));
        FINE(MPI_Win_fence(0, w[i]));
        EQ(mem[i][0], (rank + size - 1) % size);
        FINE(MPI_Win_free(&w[i]));
    }
    free(mem[1]);
    FINE(MPI_Comm_free(&d));
}

static void revoked_windows(void)
{
    keep_windows();
    for (int how = 0; how < WAYS; how++)
        for (int i = 0; i < 4; i++) {
            revoke_window(how, i % 2, i / 2, 0);
            if (how >= IN_LOCK)
                revoke_window(how, i % 2, i / 2, size - 1);
        }
    keep_windows();
}

/* ---- a window that one rank has not got ------------------------------------------------------------------------- */

/* What the library does where MPI_Win_create has failed, after the others have got the window (mr_win_make). */
static void abandon_window(void *w, void *arg)
{
    union {
        void *at;
        void (*call)(void *w);
    } f = {dlsym(RTLD_DEFAULT, "mr_win_abandon")};
    CHECK(f.at);
    CHECK((*(int *)arg)++ == 0);
    f.call(w);
}

static void abandon_the_window(void)
{
    union {
        void *at;
        void (*call)(void (*f)(void *w, void *arg), void *arg);
    } each = {dlsym(RTLD_DEFAULT, "mr_win_each")};
    int n = 0;
    CHECK(each.at);
    each.call(abandon_window, &n);
    EQ(n, 1);
}

/* Each operation on the part of the rank without the window is refused, with the error of the failure. */
static void use_abandoned(MPI_Win w, int target, int class)
{
    static int big[BIG_WORDS], got[BIG_WORDS];
    enum { SHORT_PUT, LONG_PUT, SHORT_GET, LONG_GET, UPDATE, FETCH, OPERATIONS };
    for (int op = 0; op < OPERATIONS; op++) {
        int n = op == LONG_PUT || op == LONG_GET ? BIG_WORDS : 8, err;
        if (op == SHORT_PUT || op == LONG_PUT)
            err = MPI_Put(big, n, MPI_INT, target, 0, n, MPI_INT, w);
        else if (op == SHORT_GET || op == LONG_GET)
            err = MPI_Get(got, n, MPI_INT, target, 0, n, MPI_INT, w);
        else if (op == UPDATE)
            err = MPI_Accumulate(big, n, MPI_INT, target, 0, n, MPI_INT, MPI_SUM, w);
        else
            err = MPI_Fetch_and_op(big, got, MPI_INT, target, 0, MPI_SUM, w);
        EQ(class_of(err ? err : MPI_Win_flush(target, w)), class);
    }
}

/* c is revoked, or rank 0 dies. */
static void abandon(int dies)
{
    int *mem, last = size - 1, flag = 0, x = 0;
    MPI_Comm c;
    MPI_Win w;
    FINE(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    w = make_window(c, &mem, 0);
    if (!dies && rank != last) /* no epoch begins after the revocation */
        hold(w, MPI_LOCK_SHARED, last);
    for (int from = 1; rank == 0 && from < size; from++)
        FINE(MPI_Recv(&x, 1, MPI_INT, from, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (rank == 0 && dies)
        die();
    else if (rank == 0)
        FINE(MPIX_Comm_revoke(c));
    else
        FINE(MPI_Send(&x, 1, MPI_INT, 0, 4, MPI_COMM_WORLD));
    while (!dies && !flag)
        FINE(MPIX_Comm_is_revoked(c, &flag));
    if (dies)
        FAILED(MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (rank == last) {
        abandon_the_window();
        for (int to = dies; to < last; to++)
            FINE(MPI_Send(&x, 1, MPI_INT, to, 3, MPI_COMM_WORLD));
        for (int from = dies; from < last; from++)
            FINE(MPI_Recv(&x, 1, MPI_INT, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else {
        FINE(MPI_Recv(&x, 1, MPI_INT, last, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (dies)
            FINE(MPI_Win_lock(MPI_LOCK_SHARED, last, 0, w));
        use_abandoned(w, last, dies ? MPIX_ERR_PROC_FAILED : MPIX_ERR_REVOKED);
        flag = class_of(MPI_Win_unlock(last, w));
        CHECK(flag == (dies ? MPI_SUCCESS : MPIX_ERR_REVOKED));
        FINE(MPI_Send(&x, 1, MPI_INT, last, 3, MPI_COMM_WORLD));
        ENDS(MPI_Win_free(&w));
    }
    free(mem);
    FINE(MPI_Comm_free(&c));
}

static void abandoned(void)
{
    abandon(0);
    abandon(1);
}

/* ---- files of a revoked communicator ----------------------------------------------------------------------------- */

enum { CALL_WRITE, CALL_READ, CALL_ORDERED, CALL_READ_ORDERED, CALL_SEEK, CALL_VIEW, CALL_SIZE, CALL_ALLOCATE };
enum { CALL_ATOMICITY = CALL_ALLOCATE + 1, CALL_SYNC, CALL_SPLIT, CALL_CLOSE, FILE_CALLS };

/* together: through aggregators */
static MPI_File open_scratch(MPI_Comm c, int together)
{
    char name[64];
    MPI_File f;
    MPI_Info info;
    snprintf(name, sizeof(name), "/tmp/mrmpi-revoked.%d.%d", (int)getpid(), together);
    FINE(MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD));
    FINE(MPI_Info_create(&info));
    FINE(MPI_Info_set(info, "romio_cb_write", together ? "enable" : "disable"));
    FINE(MPI_Info_set(info, "romio_cb_read", together ? "enable" : "disable"));
    FINE(MPI_File_open(c, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &f));
    FINE(MPI_Info_free(&info));
    return f;
}

/* A collective call, which some rank makes late or never. */
static int call_file(MPI_File *f, int call)
{
    static int words[256];
    int err;
    switch (call) {
    case CALL_WRITE:
        return MPI_File_write_at_all(*f, rank * 1024, words, 256, MPI_INT, MPI_STATUS_IGNORE);
    case CALL_READ:
        return MPI_File_read_at_all(*f, rank * 1024, words, 256, MPI_INT, MPI_STATUS_IGNORE);
    case CALL_ORDERED:
        return MPI_File_write_ordered(*f, words, 256, MPI_INT, MPI_STATUS_IGNORE);
    case CALL_READ_ORDERED:
        return MPI_File_read_ordered(*f, words, 256, MPI_INT, MPI_STATUS_IGNORE);
    case CALL_SEEK:
        return MPI_File_seek_shared(*f, 0, MPI_SEEK_SET);
    case CALL_VIEW:
        return MPI_File_set_view(*f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    case CALL_SIZE:
        return MPI_File_set_size(*f, 1 << 16);
    case CALL_ALLOCATE:
        return MPI_File_preallocate(*f, 1 << 16);
    case CALL_ATOMICITY:
        return MPI_File_set_atomicity(*f, 0);
    case CALL_SYNC:
        return MPI_File_sync(*f);
    case CALL_SPLIT:
        err = MPI_File_write_at_all_begin(*f, rank * 1024, words, 256, MPI_INT);
        return err ? err : MPI_File_write_at_all_end(*f, words, MPI_STATUS_IGNORE);
    default:
        return MPI_File_close(f);
    }
}

/* No call waits for others any more. A rank alone goes on. */
static void use_revoked_file(MPI_File f, const MPI_Comm c)
{
    int x = rank, y = -1;
    MPI_File g;
    for (int call = 0; call < CALL_CLOSE; call++)
        REVOKED(call_file(&f, call));
    REVOKED(MPI_File_write_shared(f, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
    FINE(MPI_File_write_at(f, rank * 4, &x, 1, MPI_INT, MPI_STATUS_IGNORE));
    FINE(MPI_File_read_at(f, rank * 4, &y, 1, MPI_INT, MPI_STATUS_IGNORE));
    EQ(y, rank);
    REVOKED(MPI_File_open(c, "/tmp/mrmpi-revoked", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &g));
    EQ(g, MPI_FILE_NULL);
}

/* The last rank does not make the call for which the others wait. */
static void revoke_file(int call, int together)
{
    MPI_Comm c;
    MPI_File f;
    FINE(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    f = open_scratch(c, together);
    FINE(call_file(&f, CALL_WRITE));
    FINE(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == size - 1) {
        usleep(3000);
        FINE(MPIX_Comm_revoke(c));
    } else {
        REVOKED(call_file(&f, call));
    }
    if (f != MPI_FILE_NULL) {
        use_revoked_file(f, c);
        REVOKED(MPI_File_close(&f));
    }
    EQ(f, MPI_FILE_NULL);
    FINE(MPI_Comm_free(&c));
}

/* Files of other communicators go on. */
static void keep_files(void)
{
    MPI_Comm c, d;
    MPI_File f[2];
    int flag;
    FINE(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    f[0] = open_scratch(c, 0);
    FINE(MPI_Comm_free(&c));
    FINE(MPI_Comm_dup(MPI_COMM_WORLD, &d));
    f[1] = open_scratch(MPI_COMM_WORLD, 1);
    if (rank == 0)
        FINE(MPIX_Comm_revoke(d));
    do
        FINE(MPIX_Comm_is_revoked(d, &flag));
    while (!flag);
    for (int i = 0; i < 2; i++)
        for (int call = 0; call < FILE_CALLS; call++)
            FINE(call_file(&f[i], call));
    FINE(MPI_Comm_free(&d));
}

static void revoked_files(void)
{
    keep_files();
    for (int call = 0; call < FILE_CALLS; call++)
        for (int together = 0; together < 2; together++)
            revoke_file(call, together);
    keep_files();
}

/* ---- in the background ------------------------------------------------------------------------------------------- */

static void background(void)
{
    enum { NUM = 5 };
    MPI_Comm c[2], rest[2 * NUM];
    MPI_Request q[2 * NUM];
    int flag[NUM], n, x = rank, y = -1, other = rank ^ 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &c[0]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &c[1]);
    for (int i = 0; i < NUM; i++) {
        flag[i] = ~(1 << ((rank + i) % 16));
        FINE(MPIX_Comm_iagree(c[0], &flag[i], &q[i]));
    }
    if (other < size) /* messages go on meanwhile */
        FINE(MPI_Sendrecv(&x, 1, MPI_INT, other, 0, &y, 1, MPI_INT, other, 0, c[0], MPI_STATUS_IGNORE));
    FINE(MPI_Waitall(NUM, q, MPI_STATUSES_IGNORE));
    for (int i = 0; i < NUM; i++)
        for (int r = 0; r < size; r++)
            EQ(flag[i] >> ((r + i) % 16) & 1, 0);
    for (int i = 0; i < 2 * NUM; i++) /* of two communicators, in different orders */
        FINE(MPIX_Comm_ishrink(c[(i + rank) % 2], &rest[i], &q[i]));
    FINE(MPI_Waitall(2 * NUM, q, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2 * NUM; i += 2)
        for (int k = 0; k < 2; k++) {
            MPI_Comm *d = &rest[i + (k + rank) % 2];
            MPI_Comm_rank(*d, &n);
            EQ(n, k ? size - 1 - rank : rank);
            FINE(MPI_Allreduce(&rank, &n, 1, MPI_INT, MPI_SUM, *d));
            EQ(n, size * (size - 1) / 2);
            FINE(MPI_Comm_free(d));
        }
    MPI_Comm_free(&c[0]);
    MPI_Comm_free(&c[1]);
}

/* ---- chaos ------------------------------------------------------------------------------------------------------- */

static unsigned long long seed;

static unsigned pick(unsigned below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

static void die_later(unsigned us)
{
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec at = {.it_value = {.tv_nsec = (long)(us + 1) * 1000}};
    timer_t t;
    CHECK(timer_create(CLOCK_MONOTONIC, &ev, &t) == 0);
    CHECK(timer_settime(t, 0, &at, NULL) == 0);
}

enum { LONGEST = 40000 };

/* Between neighbours: a message is exact, or there is an error. */
static int exchange(MPI_Comm c, int round, int len)
{
    static int out[LONGEST], in[LONGEST];
    int r, n, got, err;
    MPI_Status st;
    MPI_Comm_rank(c, &r);
    MPI_Comm_size(c, &n);
    for (int i = 0; i < len; i++) {
        out[i] = rank * 1000003 + round * 101 + i;
        in[i] = -1;
    }
    err = MPI_Sendrecv(out, len, MPI_INT, (r + 1) % n, round, in, len, MPI_INT, (r + n - 1) % n, round, c, &st);
    if (err)
        return err;
    MPI_Get_count(&st, MPI_INT, &got);
    EQ(got, len);
    for (int i = 1; i < len; i++)
        EQ(in[i], in[0] + i);
    return MPI_SUCCESS;
}

/* The survivors of c, all of whom see the same; the lowest of their rounds. */
static void repair(MPI_Comm *c, int *round)
{
    MPI_Comm rest;
    int flag, n, lowest;
    do {
        int all[128], err;
        FINE(MPIX_Comm_revoke(*c));
        FINE(MPIX_Comm_shrink(*c, &rest));
        MPI_Comm_set_errhandler(rest, MPI_ERRORS_RETURN);
        MPI_Comm_size(rest, &n);
        CHECK(n < 128);
        err = MPI_Allgather(&n, 1, MPI_INT, all, 1, MPI_INT, rest);
        for (int i = 0; !err && i < n; i++)
            EQ(all[i], n);
        if (!err)
            err = MPI_Allreduce(round, &lowest, 1, MPI_INT, MPI_MIN, rest);
        flag = !err;
        err = MPIX_Comm_agree(rest, &flag); /* the same at all, whatever the error */
        CHECK(!err || class_of(err) == MPIX_ERR_PROC_FAILED);
        if (*c != MPI_COMM_WORLD)
            MPI_Comm_free(c);
        *c = rest;
    } while (!flag);
    *round = lowest;
}

/* Whoever dies has died. Ranks begin at different times, hence twice. */
static void outlast(double began, unsigned longest_us)
{
    while (MPI_Wtime() < began + 2e-6 * longest_us)
        usleep(100);
}

static void chaos(int rounds, unsigned longest_us)
{
    MPI_Comm c = MPI_COMM_WORLD;
    double began = MPI_Wtime();
    int repairs = 0, victims = 0;
    unsigned long long common;
    pick(2); /* small seeds are alike */
    common = seed;
    for (int r = 0; r < size - 1 && victims < (size + 1) / 2; r++) { /* all ranks draw the same */
        int victim = pick(2) == 0;
        unsigned us = pick(longest_us + 1);
        victims += victim;
        if (victim && r == rank && longest_us)
            die_later(us);
    }
    seed = common + (unsigned)rank;
    for (int round = 0; round < rounds; round++) {
        if (round == rounds - 1)
            outlast(began, longest_us);
        int sum = 0, one = 1, n, len = round % 3 ? 10 : round % 2 ? LONGEST : 3000, err = exchange(c, round, len);
        MPI_Comm_size(c, &n);
        if (!err)
            err = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c);
        if (!err) {
            EQ(sum, n);
            continue;
        }
        CHECK(class_of(err) == MPIX_ERR_PROC_FAILED || class_of(err) == MPIX_ERR_REVOKED);
        repair(&c, &round);
        repairs++;
        round--;
    }
    use_comm(c);
    if (c != MPI_COMM_WORLD)
        MPI_Comm_free(&c);
}

/* In real time. */
static void stop_for(int seconds)
{
    char command[64];
    long long begun = real_ns();
    snprintf(command, sizeof(command), "(sleep %d; kill -CONT %d) >/dev/null 2>&1 &", seconds, (int)getpid());
    CHECK(!system(command));
    raise(SIGSTOP);
    CHECK(real_ns() - begun > seconds * 900000000ll);
}

static void calm(int rounds, unsigned pause_us, int stopped)
{
    MPI_Comm c;
    FINE(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    for (int round = 0; round < rounds; round++) {
        int sum, one = 1, flag = 1;
        if (stopped && rank == 1 && round == rounds / 2)
            stop_for(stopped);
        FINE(exchange(c, round, round % 2 ? LONGEST : 3000));
        FINE(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
        EQ(sum, size);
        FINE(MPIX_Comm_agree(c, &flag));
        usleep(pause_us);
    }
    EQ(num_failed(c), 0);
    FINE(MPI_Comm_free(&c));
}

/* ---- a host ------------------------------------------------------------------------------------------------------ */

static void host_goes(int agent)
{
    int x = 1, sum, err = 0, n, round = 0;
    MPI_Comm c;
    FINE(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    for (int i = 0; i < 8; i++)
        FINE(MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c));
    if (rank != size / 2) {
        FINE(MPI_Send(&x, 1, MPI_INT, size / 2, 0, c));
    } else { /* once all have the results */
        for (int i = 1; i < size; i++)
            FINE(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, c, MPI_STATUS_IGNORE));
        if (agent)
            kill(getppid(), SIGKILL);
    }
    while (!err)
        err = MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c);
    CHECK(class_of(err) == MPIX_ERR_PROC_FAILED || class_of(err) == MPIX_ERR_REVOKED);
    do {
        repair(&c, &round);
        MPI_Comm_size(c, &n);
        usleep(1000);
    } while (n > size / 2);
    EQ(n, size / 2);
    CHECK(rank < size / 2);
    use_comm(c);
    MPI_Comm_free(&c);
}

/* ---- what an agreement costs ------------------------------------------------------------------------------------- */

static double time_of(void (*f)(MPI_Comm c), MPI_Comm c)
{
    enum { CALLS = 20 };
    double best = 1e9;
    for (int turn = 0; turn < 2; turn++) {
        double t = MPI_Wtime();
        for (int i = 0; i < CALLS; i++)
            f(c);
        t = (MPI_Wtime() - t) / CALLS;
        MPI_Allreduce(MPI_IN_PLACE, &t, 1, MPI_DOUBLE, MPI_MAX, c);
        best = t < best ? t : best;
    }
    return best;
}

static void agree(MPI_Comm c)
{
    int flag = 1;
    MPIX_Comm_agree(c, &flag);
}

static void reduce(MPI_Comm c)
{
    int in = 1, out;
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_BAND, c);
}

static void shrink(MPI_Comm c)
{
    MPI_Comm d;
    MPIX_Comm_shrink(c, &d);
    MPI_Comm_free(&d);
}

static void costs(void)
{
    double a = time_of(agree, MPI_COMM_WORLD), r = time_of(reduce, MPI_COMM_WORLD), s = time_of(shrink, MPI_COMM_WORLD);
    if (rank == 0)
        printf("agree %.1f allreduce %.1f shrink %.1f us\n", a * 1e6, r * 1e6, s * 1e6);
}

/* ---- two groups -------------------------------------------------------------------------------------------------- */

/* Of the even ranks, and of the odd ones but rank 1. */
static void use_inter(MPI_Comm c, int even)
{
    int here, there, sum, one = 1, from = -1, r;
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Comm_size(c, &here);
    MPI_Comm_remote_size(c, &there);
    MPI_Comm_rank(c, &r);
    EQ(here, even ? (size + 1) / 2 : size / 2 - 1);
    EQ(there, even ? size / 2 - 1 : (size + 1) / 2);
    FINE(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
    EQ(sum, there);
    if (r == 0) {
        FINE(MPI_Sendrecv(&rank, 1, MPI_INT, 0, 6, &from, 1, MPI_INT, 0, 6, c, MPI_STATUS_IGNORE));
        EQ(from, even ? 3 : 0);
    }
    FINE(MPI_Barrier(c));
}

/* Each group gets the flags of the other. Even ranks are one group, rank 1 dies; then all odd ones. */
static void between_groups(void)
{
    int even = rank % 2 == 0, mine = even ? ~1 : ~2, others = even ? ~2 : ~1, flag, acked;
    MPI_Comm half, inter, rest, none;
    MPI_Request q;
    FINE(MPI_Comm_split(MPI_COMM_WORLD, even, 0, &half));
    FINE(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, even ? 1 : 0, 8, &inter));
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    flag = mine;
    FINE(MPIX_Comm_agree(inter, &flag));
    EQ(flag, others);
    flag = mine & ~(rank == 2 || rank == 3 ? 8 : 0);
    FINE(MPIX_Comm_iagree(inter, &flag, &q));
    FINE(MPI_Wait(&q, MPI_STATUS_IGNORE));
    EQ(flag, others & ~8);
    if (rank == 1)
        die();
    flag = mine;
    FAILED(MPIX_Comm_agree(inter, &flag));
    EQ(flag, others);
    EQ(num_failed(inter), 1); /* whoever has not heard of it from the launcher knows it from the agreement */
    FINE(MPIX_Comm_ack_failed(inter, size, &acked));
    EQ(acked, 1);
    flag = mine;
    FINE(MPIX_Comm_agree(inter, &flag));
    EQ(flag, others);
    if (rank == 0)
        MPIX_Comm_revoke(inter);
    FINE(MPIX_Comm_shrink(inter, &rest));
    use_inter(rest, even);
    if (!even) { /* all of the group, once everybody has the results */
        FINE(MPI_Send(NULL, 0, MPI_INT, 0, 7, rest));
        FINE(MPI_Recv(NULL, 0, MPI_INT, 0, 7, rest, MPI_STATUS_IGNORE));
        die();
    }
    for (int r = 3; rank == 0 && r < size; r += 2)
        FINE(MPI_Recv(NULL, 0, MPI_INT, r / 2 - 1, 7, rest, MPI_STATUS_IGNORE));
    FINE(MPI_Barrier(half));
    for (int r = 3; rank == 0 && r < size; r += 2)
        FINE(MPI_Send(NULL, 0, MPI_INT, r / 2 - 1, 7, rest));
    FINE(MPIX_Comm_ishrink(rest, &none, &q));
    FINE(MPI_Wait(&q, MPI_STATUS_IGNORE));
    while (none != MPI_COMM_NULL) { /* not all had died */
        MPI_Comm_free(&none);
        FINE(MPIX_Comm_shrink(rest, &none));
    }
    MPI_Comm_free(&rest);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "failure";
    mt_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1; /* or a rank */
    if (!strcmp(what, "failure"))
        one_dies(1);
    else if (!strcmp(what, "root"))
        one_dies(0);
    else if (!strcmp(what, "revoke"))
        revoke_some();
    else if (!strcmp(what, "revoked"))
        revoked_windows();
    else if (!strcmp(what, "revoked-files"))
        revoked_files();
    else if (!strcmp(what, "background"))
        background();
    else if (!strcmp(what, "groups"))
        between_groups();
    else if (!strcmp(what, "all"))
        all_die();
    else if (!strcmp(what, "windows"))
        windows((int)seed);
    else if (!strcmp(what, "files"))
        files((int)seed);
    else if (!strcmp(what, "abandoned"))
        abandoned();
    else if (!strcmp(what, "early"))
        early((int)seed);
    else if (!strcmp(what, "abort"))
        abort_by_handler();
    else if (!strcmp(what, "told"))
        told();
    else if (!strcmp(what, "chaos"))
        chaos(argc > 3 ? atoi(argv[3]) : 200, argc > 4 ? (unsigned)atoi(argv[4]) : 60000);
    else if (!strcmp(what, "calm"))
        calm(argc > 3 ? atoi(argv[3]) : 200, argc > 4 ? (unsigned)atoi(argv[4]) : 0, argc > 5 ? atoi(argv[5]) : 0);
    else if (!strcmp(what, "host") || !strcmp(what, "cut"))
        host_goes(!strcmp(what, "host"));
    else if (!strcmp(what, "costs"))
        costs();
    else
        CHECK(!"a case");
    return mt_end();
}
