/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point over shared memory and self, without a launcher: protocols, sizes around their limits, errors. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libmrmpi/base/retained.h"
#include "libmrmpi/base/base.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/p2p/p2p.h"
#include "libmrmpi/p2p/internal.h"
#include "libmrmpi/p2p/rndv/protocols.h"
#include "tests/check.h"
#include "tests/libmrmpi/fake_world.h"

#define EXPECT(what)                                                                                                   \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            mr_log_print(MR_LOG_ERROR, "%s:%d: not so: %s", __FILE__, __LINE__, #what);                                \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Stand before libc's: a kernel that lets no process read, or write, another one's memory, from the given call on. */
static long refuse_after = -1, refuse_writes_after = -1;
/* Shared by the ranks: lets the test hold a reader up until the sender has done all it can. */
static volatile struct {
    int wanted, reading, refused, sender_done;
} * hold;

ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long num_here, const struct iovec *there,
                         unsigned long num_there, unsigned long flags)
{
    if (refuse_after == 0) {
        if (hold)
            hold->refused = 1;
        errno = EPERM;
        return -1;
    }
    if (refuse_after > 0)
        refuse_after--;
    if (hold && hold->wanted) {
        hold->wanted = 0;
        hold->reading = 1;
        for (int ms = 0; ms < 50 && !hold->sender_done; ms++)
            usleep(1000);
    }
    return syscall(SYS_process_vm_readv, pid, here, num_here, there, num_there, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *here, unsigned long num_here, const struct iovec *there,
                          unsigned long num_there, unsigned long flags)
{
    if (refuse_writes_after == 0) {
        errno = EPERM;
        return -1;
    }
    if (refuse_writes_after > 0)
        refuse_writes_after--;
    return syscall(SYS_process_vm_writev, pid, here, num_here, there, num_there, flags);
}

static void fill(uint8_t *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(seed + i * 131 + (i >> 8) * 17);
}

static bool holds(const uint8_t *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != (uint8_t)(seed + i * 131 + (i >> 8) * 17))
            return false;
    return true;
}

static const size_t sizes[] = {0,     1,     72,     73,     256,     257,     8191,        16384,   16385,
                               32768, 65537, 262144, 300001, 1 << 20, 4194301, 4194304 + 9, 20000003};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Every size both ways, once with the receive first and once with the message first. */
static int exchange(int rank, int size)
{
    uint8_t *out = malloc(sizes[SIZES - 1]), *in = malloc(sizes[SIZES - 1]);
    struct mr_request *req;
    struct mr_status st;

    for (size_t i = 0; i < SIZES; i++) {
        size_t n = sizes[i];

        fill(out, n, rank + i);
        memset(in, 0xee, n);
        EXPECT(mr_irecv(in, n, mr_type_byte, 1 - rank, 5, mr_comm_world, 0, &req) == MR_SUCCESS);
        EXPECT(mr_send(out, n, mr_type_byte, 1 - rank, 5, mr_comm_world, 0, MR_SEND_STANDARD) == MR_SUCCESS);
        EXPECT(mr_wait(req) == MR_SUCCESS);
        EXPECT(req->status.bytes == n && req->status.source == 1 - rank && req->status.tag == 5);
        mr_request_put(req);
        EXPECT(holds(in, n, 1 - rank + i));

        memset(in, 0xee, n);
        EXPECT(mr_isend(out, n, mr_type_byte, 1 - rank, 6, mr_comm_world, 0, i & 1, &req) == MR_SUCCESS);
        EXPECT(mr_probe(MR_ANY_SOURCE, 6, mr_comm_world, 0, &st) == MR_SUCCESS);
        EXPECT(st.bytes == n && st.source == 1 - rank);
        EXPECT(mr_recv(in, n, mr_type_byte, MR_ANY_SOURCE, MR_ANY_TAG, mr_comm_world, 0, &st) == MR_SUCCESS);
        EXPECT(mr_wait(req) == MR_SUCCESS);
        mr_request_put(req);
        EXPECT(holds(in, n, 1 - rank + i));
    }
    free(out);
    free(in);
    return 0;
}

START_TEST(exchange_all_sizes)
{
    static const char *const settings[][2] = {{"MRMPI_LOG_LEVEL", "1"},      {"MRMPI_SINGLE_COPY", "0"},
                                              {"MRMPI_OVERSUBSCRIBED", "1"}, {"MRMPI_SHM_EAGER_MAX", "64"},
                                              {"MRMPI_UNEXPECTED_MAX", "0"}, {"MRMPI_UNEXPECTED_MAX", "20000"},
                                              {"MRMPI_UNSENT_MAX", "1"},     {"MRMPI_SHM_COPY", "push"},
                                              {"MRMPI_SHM_COPY", "read"},    {"MRMPI_SHM_COPY", "split"}};

    setenv(settings[_i][0], settings[_i][1], 1);
    ck_assert_int_eq(fake_world_run(2, exchange), 0);
}
END_TEST

/* Single copy refused at once, or in the middle of a message. */
START_TEST(refused_single_copy)
{
    setenv("MRMPI_OVERSUBSCRIBED", "1", 1);
    refuse_after = _i * 3;
    ck_assert_int_eq(fake_world_run(2, exchange), 0);
}
END_TEST

/* The same for the split copy: refused at one of the ranks, at both, or one after the other. */
START_TEST(refused_split)
{
    static const long refused[][2] = {{0, -1}, {-1, 0}, {0, 0}, {5, -1}, {-1, 5},
                                      {3, 8},  {8, 3},  {7, 7}, {2, 0},  {4, 1}};

    setenv("MRMPI_SHM_COPY", "split", 1);
    refuse_after = refused[_i][0];
    refuse_writes_after = refused[_i][1];
    ck_assert_int_eq(fake_world_run(2, exchange), 0);
}
END_TEST

/* Every mode has been tried. */
static bool has_settled(int rank)
{
    for (int load = 0; load < MR_LOADS; load++) {
        const struct mr_learn *cell = &mr_rndvs.near.modes.cell[load][2];

        if ((!cell->begun || cell->due || cell->left) && (load != MR_LOAD_BOTH || rank == 0)) /* the follower */
            return false;
    }
    return true;
}

/* Both have. */
static bool have_settled(int rank)
{
    uint8_t mine = has_settled(rank), other = 0;
    struct mr_request *req[2];

    if (mr_irecv(&other, 1, mr_type_byte, !rank, 2, mr_comm_world, 0, &req[0]) ||
        mr_isend(&mine, 1, mr_type_byte, !rank, 2, mr_comm_world, 0, MR_SEND_STANDARD, &req[1]))
        return false;
    for (unsigned i = 0; i < 2; i++) {
        mr_wait(req[i]);
        mr_request_put(req[i]);
    }
    return mine && other;
}

/*
 * Until every copy mode has been used, and one is chosen: one at a time, several, and both directions at once. On a
 * crowded machine each round takes long, since neither rank yields.
 */
static int learn(int rank, int size)
{
    enum { N = 70000, AT_A_TIME = 8 };
    static uint8_t out[AT_A_TIME][N], in[AT_A_TIME][N];
    struct mr_request *req[2 * AT_A_TIME];
    char why[200];

    EXPECT(mr_model_parse(&mr_model, "page_ns=0", why, sizeof why)); /* pushes are tried at once */
    for (unsigned round = 0; round < 600 && (round % 30 || !have_settled(rank)); round++) {
        unsigned many = round % 3 ? AT_A_TIME : 1, num = 0;
        bool sends = round % 3 == 2 || rank == (int)(round / 3 % 2), receives = round % 3 == 2 || !sends;

        for (unsigned i = 0; i < many; i++) {
            memset(in[i], 0, N);
            fill(out[i], N, round + i);
            if (receives)
                EXPECT(mr_irecv(in[i], N, mr_type_byte, !rank, 1, mr_comm_world, 0, &req[num++]) == MR_SUCCESS);
        }
        for (unsigned i = 0; i < many && sends; i++)
            EXPECT(mr_isend(out[i], N, mr_type_byte, !rank, 1, mr_comm_world, 0, MR_SEND_STANDARD, &req[num++]) ==
                   MR_SUCCESS);
        for (unsigned i = 0; i < num; i++) {
            EXPECT(mr_wait(req[i]) == MR_SUCCESS);
            mr_request_put(req[i]);
        }
        for (unsigned i = 0; i < many && receives; i++)
            EXPECT(holds(in[i], N, round + i));
    }
    EXPECT(has_settled(rank));
    return 0;
}

START_TEST(ways_are_learnt)
{
    setenv("MRMPI_OVERSUBSCRIBED", "0", 1);
    ck_assert_int_eq(fake_world_run(2, learn), 0);
}
END_TEST

/* A sender that sleeps outside the library: the receiver reads all by itself, whatever the policy is. */
static int silent(int rank, int size)
{
    uint8_t *buf = malloc(5000000);
    struct mr_request *req;

    if (rank == 0) {
        fill(buf, 5000000, 9);
        EXPECT(mr_isend(buf, 5000000, mr_type_byte, 1, 1, mr_comm_world, 0, MR_SEND_STANDARD, &req) == MR_SUCCESS);
        mr_launch_fence(); /* does not look at packets: comes back only when the receiver has everything */
        EXPECT(mr_wait(req) == MR_SUCCESS);
        mr_request_put(req);
    } else {
        memset(buf, 0, 5000000);
        EXPECT(mr_recv(buf, 5000000, mr_type_byte, 0, 1, mr_comm_world, 0, NULL) == MR_SUCCESS);
        EXPECT(holds(buf, 5000000, 9));
        mr_launch_fence();
    }
    free(buf);
    return 0;
}

static const char *const ways[] = {"auto", "push", "read", "split"};

START_TEST(silent_sender)
{
    setenv("MRMPI_SHM_COPY", ways[_i], 1);
    ck_assert_int_eq(fake_world_run(2, silent), 0);
}
END_TEST

/*
 * A program that has freed its request, and knows otherwise of the message's arrival, may unmap the buffer before the
 * library knows.
 */
static int unmapped(int rank, int size)
{
    enum { N = 5000000 };
    uint8_t *buf = mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct mr_request *req;

    if (rank == 0) {
        fill(buf, N, 9);
        EXPECT(mr_isend(buf, N, mr_type_byte, 1, 1, mr_comm_world, 0, MR_SEND_STANDARD, &req) == MR_SUCCESS);
        mr_request_put(req);
        mr_launch_fence();
    } else {
        EXPECT(mr_recv(buf, N, mr_type_byte, 0, 1, mr_comm_world, 0, NULL) == MR_SUCCESS);
        EXPECT(holds(buf, N, 9));
        mr_launch_fence();
    }
    munmap(buf, N);
    mr_pt2pt_quiesce();
    return 0;
}

START_TEST(buffer_unmapped_after_free)
{
    setenv("MRMPI_SHM_COPY", ways[_i], 1);
    ck_assert_int_eq(fake_world_run(2, unmapped), 0);
}
END_TEST

/* The same where the kernel refuses to read, at once or later: the sender has to push all, or the rest. */
static int unread(int rank, int size)
{
    enum { N = 5000000 };
    uint8_t *buf = malloc(N), ok;
    struct mr_request *req;

    if (rank == 0) {
        fill(buf, N, 9);
        EXPECT(mr_isend(buf, N, mr_type_byte, 1, 1, mr_comm_world, 0, MR_SEND_STANDARD, &req) == MR_SUCCESS);
        mr_request_put(req);
        EXPECT(mr_recv(&ok, 1, mr_type_byte, 1, 1, mr_comm_world, 0, NULL) == MR_SUCCESS);
    } else {
        EXPECT(mr_recv(buf, N, mr_type_byte, 0, 1, mr_comm_world, 0, NULL) == MR_SUCCESS);
        EXPECT(holds(buf, N, 9));
        EXPECT(mr_send(&ok, 1, mr_type_byte, 0, 1, mr_comm_world, 0, MR_SEND_STANDARD) == MR_SUCCESS);
    }
    mr_pt2pt_quiesce();
    free(buf);
    return 0;
}

START_TEST(freed_and_not_to_be_read)
{
    setenv("MRMPI_SHM_COPY", ways[1 + _i % 3], 1);
    refuse_after = _i / 3;
    ck_assert_int_eq(fake_world_run(2, unread), 0);
}
END_TEST

/* A sender that has begun to push computes, and its request is freed when the receiver has tried to read in vain. */
static int freed_late(int rank, int size)
{
    enum { N = 20000000 };
    uint8_t *buf = malloc(N), ok;
    struct mr_request *req;

    if (rank == 0) {
        fill(buf, N, 9);
        EXPECT(mr_isend(buf, N, mr_type_byte, 1, 1, mr_comm_world, 0, MR_SEND_STANDARD, &req) == MR_SUCCESS);
        while (!req->proto->done)
            mr_progress();
        while (!hold->refused)
            sched_yield();
        EXPECT(!req->complete && req->proto->done < N);
        mr_request_put(req);
        EXPECT(mr_recv(&ok, 1, mr_type_byte, 1, 1, mr_comm_world, 0, NULL) == MR_SUCCESS);
    } else {
        EXPECT(mr_recv(buf, N, mr_type_byte, 0, 1, mr_comm_world, 0, NULL) == MR_SUCCESS);
        EXPECT(holds(buf, N, 9));
        EXPECT(mr_send(&ok, 1, mr_type_byte, 0, 1, mr_comm_world, 0, MR_SEND_STANDARD) == MR_SUCCESS);
    }
    mr_pt2pt_quiesce();
    free(buf);
    return 0;
}

START_TEST(freed_while_refused)
{
    hold = mmap(NULL, sizeof(*hold), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne((void *)hold, MAP_FAILED);
    setenv("MRMPI_SHM_COPY", "push", 1);
    refuse_after = 0;
    ck_assert_int_eq(fake_world_run(2, freed_late), 0);
}
END_TEST

/* A sender told "done" may write its buffer at once, so not while the receiver still reads. */
static int reuse(int rank, int size)
{
    enum { N = 70000 };
    static uint8_t buf[N];
    struct mr_request *req;

    if (rank == 1) {
        EXPECT(mr_recv(buf, N, mr_type_byte, 0, 1, mr_comm_world, 0, NULL) == MR_SUCCESS);
        EXPECT(holds(buf, N, 4));
        return 0;
    }
    fill(buf, N, 4);
    EXPECT(mr_isend(buf, N, mr_type_byte, 1, 1, mr_comm_world, 0, MR_SEND_STANDARD, &req) == MR_SUCCESS);
    while (!hold->reading)
        sched_yield();
    EXPECT(mr_wait(req) == MR_SUCCESS);
    memset(buf, 0, N);
    hold->sender_done = 1;
    mr_request_put(req);
    return 0;
}

START_TEST(buffer_reused_after_send)
{
    hold = mmap(NULL, sizeof(*hold), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    hold->wanted = 1;
    ck_assert_int_eq(fake_world_run(2, reuse), 0);
}
END_TEST

/* ---- flow ---- */

enum { SHORT = 1000, WINDOW = 20000, IN_WINDOW = WINDOW / (SHORT + 512) };

/* The receiver is in the library without receives: the setting's amount is kept, and the rest is offered. */
static int overdraw(int rank, int size)
{
    enum { N = 100 }; /* not more than a ring has slots: none is held */
    static uint8_t out[N][SHORT], in[SHORT];
    struct mr_request *reqs[N];
    struct mr_status st;

    if (rank == 0) {
        for (int i = 0; i < N; i++) {
            fill(out[i], SHORT, i);
            EXPECT(mr_isend(out[i], SHORT, mr_type_byte, 1, 1, mr_comm_world, 0, i % 2, &reqs[i]) == MR_SUCCESS);
            EXPECT(reqs[i]->complete == (i < IN_WINDOW && i % 2 == MR_SEND_STANDARD));
        }
        EXPECT(mr_stats[MR_STAT_EAGER_SENT] == IN_WINDOW && mr_stats[MR_STAT_NO_CREDIT] == N - IN_WINDOW);
        for (int i = 0; i < N; i++) {
            EXPECT(mr_wait(reqs[i]) == MR_SUCCESS);
            mr_request_put(reqs[i]);
        }
        return 0;
    }
    while (mr_stats[MR_STAT_UNEXPECTED] < N) /* offers are among the unexpected */
        EXPECT(!mr_iprobe(0, 2, mr_comm_world, 0, &st));
    for (int i = 0; i < N; i++) {
        EXPECT(mr_recv(in, SHORT, mr_type_byte, 0, 1, mr_comm_world, 0, &st) == MR_SUCCESS);
        EXPECT(st.bytes == SHORT && holds(in, SHORT, i));
    }
    EXPECT(mr_stats[MR_STAT_CREDITS_SENT] <= 2); /* its answers take the notes along */
    return 0;
}

START_TEST(credit_runs_out)
{
    setenv("MRMPI_UNEXPECTED_MAX", "20000", 1);
    ck_assert_int_eq(fake_world_run(2, overdraw), 0);
}
END_TEST

/* Received bytes are free again, although the receiver never sends data of its own; at least half a window. */
static int refund(int rank, int size)
{
    enum { ROUNDS_OF = 50, FEW = IN_WINDOW / 2 - 1 };
    static uint8_t buf[SHORT];

    for (int i = 0; i < ROUNDS_OF; i++) {
        for (int k = 0; k < FEW; k++)
            if (rank == 0)
                EXPECT(mr_send(buf, SHORT, mr_type_byte, 1, 1, mr_comm_world, 0, MR_SEND_STANDARD) == MR_SUCCESS);
            else
                EXPECT(mr_recv(buf, SHORT, mr_type_byte, 0, 1, mr_comm_world, 0, NULL) == MR_SUCCESS);
        mr_launch_fence();
        mr_progress(); /* a grant has come, if any */
        mr_launch_fence();
    }
    EXPECT(mr_stats[MR_STAT_NO_CREDIT] == 0);
    EXPECT(rank == 0 || mr_stats[MR_STAT_CREDITS_SENT] >= ROUNDS_OF * FEW * (SHORT + 512) / WINDOW);
    EXPECT(rank == 0 || mr_stats[MR_STAT_CREDITS_SENT] <= 2 * ROUNDS_OF * FEW * (SHORT + 512) / WINDOW + 1);
    return 0;
}

START_TEST(credit_comes_back)
{
    setenv("MRMPI_UNEXPECTED_MAX", "20000", 1);
    ck_assert_int_eq(fake_world_run(2, refund), 0);
}
END_TEST

/* The receiver does not look: few packets are copied, the rest waits in its buffers, in order, and can be cancelled. */
static int hold_back(int rank, int size)
{
    enum { N = 3000, LEN = 200, LARGE = 100000, UNSENT = 4 };
    static uint8_t out[N][LEN], large[LARGE];
    static struct mr_request *reqs[N + 1];
    struct mr_vc *vc;

    if (rank == 1) {
        mr_launch_fence();
        for (int i = 0; i < N - 1; i++) {
            EXPECT(mr_recv(out[0], LEN, mr_type_byte, 0, 1, mr_comm_world, 0, NULL) == MR_SUCCESS);
            EXPECT(holds(out[0], LEN, i < N / 2 ? i : i + 1));
        }
        EXPECT(mr_recv(large, LARGE, mr_type_byte, 0, 1, mr_comm_world, 0, NULL) == MR_SUCCESS);
        EXPECT(holds(large, LARGE, 7));
        EXPECT(mr_recv(out[0], 1, mr_type_byte, 0, 1, mr_comm_world, 0, NULL) == MR_SUCCESS);
        EXPECT(mr_recv(out[0], 1, mr_type_byte, 0, 1, mr_comm_world, 0, NULL) == MR_ERR_TYPE);
        return 0;
    }
    for (int i = 0; i < N; i++) {
        fill(out[i], LEN, i);
        EXPECT(mr_isend(out[i], LEN, mr_type_byte, 1, 1, mr_comm_world, 0, MR_SEND_STANDARD, &reqs[i]) == MR_SUCCESS);
    }
    vc = mr_vc_get_peer(1);
    EXPECT(mr_vc_waiting(vc) == UNSENT + 1);
    EXPECT(mr_stats[MR_STAT_SENDS_HELD] > N - 1000 && !reqs[N - 1]->complete);
    EXPECT(mr_cancel(reqs[N / 2]) == MR_SUCCESS && reqs[N / 2]->complete && reqs[N / 2]->status.cancelled);
    fill(large, LARGE, 7);
    EXPECT(mr_isend(large, LARGE, mr_type_byte, 1, 1, mr_comm_world, 0, MR_SEND_STANDARD, &reqs[N]) == MR_SUCCESS);
    mr_launch_fence();
    EXPECT(mr_send(out[0], 1, mr_type_byte, 1, 1, mr_comm_world, 0, MR_SEND_STANDARD) == MR_SUCCESS);
    EXPECT(mr_vc_waiting(vc) <= UNSENT + 1);
    for (int i = 0; i <= N; i++) {
        EXPECT(mr_wait(reqs[i]) == MR_SUCCESS && reqs[i]->status.cancelled == (i == N / 2));
        mr_request_put(reqs[i]);
    }
    EXPECT(mr_isend_poison(MR_ERR_TYPE, 1, 1, mr_comm_world, 0, &reqs[0]) == MR_SUCCESS);
    EXPECT(mr_wait(reqs[0]) == MR_SUCCESS);
    mr_request_put(reqs[0]);
    EXPECT(mr_channel_waiting == 0);
    return 0;
}

START_TEST(sends_held)
{
    setenv("MRMPI_UNSENT_MAX", "4", 1);
    ck_assert_int_eq(fake_world_run(2, hold_back), 0);
}
END_TEST

static int lose_peer(int rank, int size)
{
    enum { N = 1000 };
    static uint8_t out[200];
    static struct mr_request *reqs[N];
    int failed = 0;

    if (rank == 0) {
        for (int i = 0; i < N; i++)
            EXPECT(mr_isend(out, sizeof(out), mr_type_byte, 1, 1, mr_comm_world, 0, MR_SEND_STANDARD, &reqs[i]) ==
                   MR_SUCCESS);
        mr_vc_failed(1, -EIO);
        for (int i = 0; i < N; i++)
            failed += mr_wait(reqs[i]) == MR_ERR_PROC_FAILED;
        EXPECT(failed > N / 2 && (uint64_t)failed == mr_stats[MR_STAT_SENDS_HELD]);
    }
    mr_launch_fence();
    _exit(0); /* after losing a rank, no meeting at the end */
}

START_TEST(held_for_a_lost_peer)
{
    ck_assert_int_eq(fake_world_run(2, lose_peer), 0);
}
END_TEST

/* Whoever sends to itself has nobody to wait for. */
static int to_self(int rank, int size)
{
    enum { N = 20000 };
    static uint8_t buf[SHORT];

    for (int i = 0; i < N; i++) {
        fill(buf, SHORT, i);
        EXPECT(mr_send(buf, SHORT, mr_type_byte, rank, 1, mr_comm_world, 0, MR_SEND_STANDARD) == MR_SUCCESS);
    }
    for (int i = 0; i < N; i++) {
        EXPECT(mr_recv(buf, SHORT, mr_type_byte, rank, 1, mr_comm_world, 0, NULL) == MR_SUCCESS);
        EXPECT(holds(buf, SHORT, i));
    }
    return 0;
}

START_TEST(self_flood)
{
    ck_assert_int_eq(fake_world_run(1, to_self), 0);
}
END_TEST

static int buffered(int rank, int size)
{
    enum { N = 100000 };
    static char space[2 * (N + MR_BSEND_OVERHEAD)], in[N];
    static uint8_t out[N];
    struct mr_request *flush, *later;
    struct mr_buffer was;

    if (rank == 1) {
        EXPECT(mr_recv(NULL, 0, mr_type_byte, 0, 3, mr_comm_world, 0, NULL) == MR_SUCCESS);
        for (int i = 0; i < 2; i++) {
            EXPECT(mr_recv(in, N, mr_type_byte, 0, i, mr_comm_world, 0, NULL) == MR_SUCCESS);
            EXPECT(holds((uint8_t *)in, N, i));
        }
        EXPECT(mr_recv(NULL, 0, mr_type_byte, 0, 3, mr_comm_world, 0, NULL) == MR_SUCCESS);
        EXPECT(mr_recv(in, N, mr_type_byte, 0, 5, mr_comm_world, 0, NULL) == MR_SUCCESS);
        EXPECT(mr_recv(NULL, 0, mr_type_byte, 0, 3, mr_comm_world, 0, NULL) == MR_SUCCESS);
        EXPECT(mr_recv(in, N, mr_type_byte, 0, 4, mr_comm_world, 0, NULL) == MR_SUCCESS);
        EXPECT(holds((uint8_t *)in, N, 4));
        return 0;
    }
    EXPECT(mr_bsend(out, 1, mr_type_byte, 1, 0, mr_comm_world, 0) == MR_ERR_BUFFER);
    EXPECT(mr_buffer_attach(&mr_bsend_process, (struct mr_buffer){space + 1, sizeof(space) - 1, false}) == MR_SUCCESS);
    EXPECT(mr_buffer_attach(&mr_bsend_process, (struct mr_buffer){space, 10, false}) == MR_ERR_BUFFER);
    for (int i = 0; i < 2; i++) {
        fill(out, N, i);
        EXPECT(mr_bsend(out, N, mr_type_byte, 1, i, mr_comm_world, 0) == MR_SUCCESS);
    }
    memset(out, 0, N);
    EXPECT(mr_bsend(out, N, mr_type_byte, 1, 2, mr_comm_world, 0) == MR_ERR_BUFFER);
    EXPECT(mr_send(NULL, 0, mr_type_byte, 1, 3, mr_comm_world, 0, MR_SEND_STANDARD) == MR_SUCCESS);
    was = mr_buffer_detach(&mr_bsend_process);
    EXPECT(was.at == space + 1 && was.bytes == sizeof(space) - 1 && !was.automatic && !mr_bsend_process);

    /*
     * the communicator's own buffer is automatic; a flush covers messages in the buffer, not later messages that leave
     * earlier
     */
    EXPECT(mr_buffer_attach(&mr_comm_world->buffer, (struct mr_buffer){.automatic = true}) == MR_SUCCESS);
    fill(out, N, 4);
    EXPECT(mr_bsend(out, N, mr_type_byte, 1, 4, mr_comm_world, 0) == MR_SUCCESS);
    EXPECT(mr_buffer_iflush(&mr_comm_world->buffer, &flush) == MR_SUCCESS);
    EXPECT(mr_bsend(out, N, mr_type_byte, 1, 5, mr_comm_world, 0) == MR_SUCCESS);
    EXPECT(mr_buffer_iflush(&mr_comm_world->buffer, &later) == MR_SUCCESS);
    EXPECT(mr_send(NULL, 0, mr_type_byte, 1, 3, mr_comm_world, 0, MR_SEND_STANDARD) == MR_SUCCESS);
    for (int i = 0; i < 1000; i++)
        EXPECT(!mr_test(flush) && !mr_test(later));
    EXPECT(mr_send(NULL, 0, mr_type_byte, 1, 3, mr_comm_world, 0, MR_SEND_STANDARD) == MR_SUCCESS);
    EXPECT(mr_wait(flush) == MR_SUCCESS && mr_wait(later) == MR_SUCCESS);
    mr_request_put(flush);
    mr_request_put(later);
    mr_buffer_flush(&mr_comm_world->buffer);
    was = mr_buffer_detach(&mr_comm_world->buffer);
    EXPECT(was.automatic && !was.bytes && !mr_comm_world->buffer);
    EXPECT(mr_bsend(out, 1, mr_type_byte, 1, 0, mr_comm_world, 0) == MR_ERR_BUFFER);
    return 0;
}

START_TEST(buffered_sends)
{
    ck_assert_int_eq(fake_world_run(2, buffered), 0);
}
END_TEST

/* A buffered send does not wait for the receiver, but sends before must leave the buffer. */
static int buffered_flood(int rank, int size)
{
    enum { N = 2000, LEN = 300, SLOTS = 100, UNSEEN = 128 + 60 }; /* a ring full of messages, and some */
    static uint8_t space[SLOTS * (LEN + MR_BSEND_OVERHEAD)], out[LEN];

    if (rank == 1) {
        mr_launch_fence();
        for (int i = 0; i < N; i++) {
            EXPECT(mr_recv(out, LEN, mr_type_byte, 0, 1, mr_comm_world, 0, NULL) == MR_SUCCESS);
            EXPECT(holds(out, LEN, i));
        }
        return 0;
    }
    EXPECT(mr_buffer_attach(&mr_bsend_process, (struct mr_buffer){space, sizeof(space), false}) == MR_SUCCESS);
    for (int i = 0; i < N; i++) {
        fill(out, LEN, i);
        EXPECT(mr_bsend(out, LEN, mr_type_byte, 1, 1, mr_comm_world, 0) == MR_SUCCESS);
        if (i == UNSEEN) {
            EXPECT(mr_stats[MR_STAT_SENDS_HELD] > 10);
            mr_launch_fence();
        }
    }
    mr_buffer_detach(&mr_bsend_process);
    EXPECT(mr_channel_waiting == 0);
    return 0;
}

START_TEST(buffered_sends_held)
{
    setenv("MRMPI_UNSENT_MAX", "1", 1);
    ck_assert_int_eq(fake_world_run(2, buffered_flood), 0);
}
END_TEST

/* ---- eager messages of several packets ---- */

enum { WHOLE = 7350, PART = 2100 };
static uint32_t part_seq;

/* From rank 1 arrives the data for an offset of message tag; the first part with flags. */
static void part_arrives(int tag, size_t at, uint8_t flags)
{
    static uint8_t data[WHOLE];
    size_t len = WHOLE - at < PART ? WHOLE - at : PART;
    struct mr_hdr h = {
        .kind = 1, .flags = flags | 64, .seq = part_seq++, .src = 1, .rank = 1, .tag = tag, .len = WHOLE, .rreq = at};

    fill(data, WHOLE, (unsigned)tag);
    mr_vc_arrived(&h, data + at, len);
}

static bool is_there(int tag)
{
    struct mr_status st;

    return mr_iprobe(1, tag, mr_comm_world, 0, &st) && st.bytes == WHOLE;
}

static int receive_parts(void)
{
    static uint8_t in[WHOLE + 1];
    struct mr_request *req;

    memset(in, 0xee, sizeof in);
    EXPECT(mr_irecv(in, WHOLE, mr_type_byte, 1, 1, mr_comm_world, 0, &req) == MR_SUCCESS);
    for (size_t at = 0; at < WHOLE; at += PART) {
        EXPECT(!req->complete);
        part_arrives(1, at, 0);
    }
    EXPECT(mr_wait(req) == MR_SUCCESS && req->status.bytes == WHOLE && holds(in, WHOLE, 1) && in[WHOLE] == 0xee);
    mr_request_put(req);

    memset(in, 0xee, sizeof in); /* less room than the message has */
    EXPECT(mr_irecv(in, 700, mr_type_byte, MR_ANY_SOURCE, MR_ANY_TAG, mr_comm_world, 0, &req) == MR_SUCCESS);
    for (size_t at = 0; at < WHOLE; at += PART)
        part_arrives(2, at, 0);
    EXPECT(mr_wait(req) == MR_ERR_TRUNCATE && req->status.bytes == 700 && holds(in, 700, 2) && in[700] == 0xee);
    mr_request_put(req);
    return 0;
}

/* Without a receive: the message is there when whole, not before. */
static int gather_parts(void)
{
    static uint8_t in[WHOLE];
    struct mr_request *req;

    for (size_t at = 0; at < WHOLE; at += PART) {
        EXPECT(!is_there(3));
        part_arrives(3, at, 0);
    }
    EXPECT(is_there(3));
    EXPECT(mr_recv(in, WHOLE, mr_type_byte, 1, 3, mr_comm_world, 0, NULL) == MR_SUCCESS && holds(in, WHOLE, 3));

    part_arrives(4, 0, 0); /* the receive is posted after the first part */
    EXPECT(mr_irecv(in, WHOLE, mr_type_byte, 1, 4, mr_comm_world, 0, &req) == MR_SUCCESS);
    for (size_t at = PART; at < WHOLE; at += PART)
        part_arrives(4, at, 0);
    EXPECT(mr_wait(req) == MR_SUCCESS && holds(in, WHOLE, 4));
    mr_request_put(req);
    return 0;
}

/* Parts that do not follow are dropped, and cost the message nothing. */
static int wrong_parts(void)
{
    static uint8_t in[WHOLE];

    EXPECT(freopen("/dev/null", "w", stderr));
    part_arrives(5, PART, 0);
    part_arrives(5, 0, 8); /* an error has no parts */
    part_arrives(5, 0, 0);
    part_arrives(5, 0, 0);
    part_arrives(5, 2 * PART, 0);
    part_arrives(5, PART, 0);
    part_arrives(5, PART, 0);
    part_arrives(5, 2 * PART, 0);
    EXPECT(!is_there(5));
    part_arrives(5, 3 * PART, 0);
    part_arrives(5, 3 * PART, 0);
    EXPECT(is_there(5));
    EXPECT(mr_recv(in, WHOLE, mr_type_byte, 1, 5, mr_comm_world, 0, NULL) == MR_SUCCESS && holds(in, WHOLE, 5));
    EXPECT(!is_there(5));
    return 0;
}

/* ---- kept in retained buffers ---- */

static unsigned may_retain, num_retained;

static void retained_back(struct mr_retained *retained)
{
    num_retained--;
    free(retained);
}

static struct mr_retained *zsend(const void *payload, enum mr_retained_term term)
{
    struct mr_retained *retained = may_retain ? calloc(1, sizeof *retained) : NULL;

    if (!retained)
        return NULL;
    retained->give_back = retained_back;
    may_retain--;
    num_retained++;
    return retained;
}

/* Without a receive: this number of buffers is sent zero-copy, and in the end none. */
static int keep_lent(unsigned zsends)
{
    static uint8_t in[WHOLE + 1];
    struct mr_hdr h = {.kind = 1, .src = 1, .rank = 1, .tag = 8, .len = PART};
    static uint8_t whole[PART];
    struct mr_status st;

    may_retain = zsends;
    for (size_t at = 0; at < WHOLE; at += PART)
        part_arrives(3, at, 0);
    EXPECT(num_retained == (zsends < 3 ? zsends : 3)); /* the last part is short */
    EXPECT(is_there(3) && num_retained == (zsends < 3 ? zsends : 3));
    EXPECT(mr_recv(in, WHOLE, mr_type_byte, 1, 3, mr_comm_world, 0, NULL) == MR_SUCCESS && holds(in, WHOLE, 3));
    EXPECT(!num_retained);

    memset(in, 0xee, sizeof in); /* less room than the message has */
    may_retain = zsends;
    for (size_t at = 0; at < WHOLE; at += PART)
        part_arrives(4, at, 0);
    EXPECT(mr_recv(in, 700, mr_type_byte, 1, 4, mr_comm_world, 0, NULL) == MR_ERR_TRUNCATE);
    EXPECT(holds(in, 700, 4) && in[700] == 0xee && !num_retained);

    may_retain = zsends; /* of one packet */
    fill(whole, PART, 8);
    h.seq = part_seq++;
    mr_vc_arrived(&h, whole, PART);
    EXPECT(num_retained == (zsends ? 1 : 0));
    EXPECT(mr_recv(in, PART, mr_type_byte, 1, 8, mr_comm_world, 0, &st) == MR_SUCCESS && st.bytes == PART);
    EXPECT(holds(in, PART, 8) && !num_retained);
    may_retain = 0;
    return 0;
}

static int parts(int rank, int size)
{
    static uint8_t in[WHOLE];
    struct mr_request *req;

    if (rank == 0) {
        EXPECT(!receive_parts() && !gather_parts() && !wrong_parts());
        mr_retained_find = zsend;
        for (unsigned zsends = 0; zsends <= 4; zsends++)
            EXPECT(!keep_lent(zsends));
        if (size == 2) { /* the sender is lost in the middle */
            EXPECT(mr_irecv(in, WHOLE, mr_type_byte, 1, 6, mr_comm_world, 0, &req) == MR_SUCCESS);
            part_arrives(6, 0, 0);
        } else {
            part_arrives(7, 0, 0);
        }
        mr_vc_failed(1, -EIO);
        EXPECT(size != 2 || mr_wait(req) == MR_ERR_PROC_FAILED);
        EXPECT(!is_there(7));
    }
    mr_launch_fence();
    _exit(0); /* after losing a rank, no meeting at the end */
}

START_TEST(messages_in_parts)
{
    ck_assert_int_eq(fake_world_run(2 + _i, parts), 0);
}
END_TEST

/*
 * An offer whose eager prefix has come, or a part of it, before its sender is lost; the receive is posted afterwards.
 */
static int orphan(int rank, int size)
{
    static uint8_t data[WHOLE], in[WHOLE];
    struct mr_remote remote = {.len = WHOLE};
    struct mr_hdr h = {.kind = 2, .flags = 16, .src = 1, .rank = 1, .tag = 1, .len = WHOLE, .rreq = 2 * PART};
    struct mr_request *req;

    if (rank == 0) {
        fill(data, WHOLE, 1);
        mr_vc_arrived(&h, &remote, sizeof remote);
        for (int part = 0; part < (size == 2 ? 2 : 1); part++) {
            h = (struct mr_hdr){.kind = 14, .flags = 192, .seq = h.seq + 1, .src = 1, .len = (uint64_t)part * PART};
            mr_vc_arrived(&h, data + h.len, PART);
        }
        EXPECT(is_there(1));
        mr_vc_failed(1, -EIO);
        EXPECT(mr_irecv(in, WHOLE, mr_type_byte, 1, 1, mr_comm_world, 0, &req) == MR_SUCCESS);
        EXPECT(mr_wait(req) == MR_ERR_PROC_FAILED);
        for (size_t i = 0; i < WHOLE; i++)
            EXPECT(!in[i]);
        mr_request_put(req);
    }
    mr_launch_fence();
    _exit(0);
}

START_TEST(head_of_a_lost_peer)
{
    ck_assert_int_eq(fake_world_run(2 + _i, orphan), 0);
}
END_TEST

/* Arbitrary packets of a peer: any kind, ids, lengths and payload. No foreign memory may be touched. */
static int nonsense(int rank, int size)
{
    static uint8_t out[100000], guarded[3][4096];
    struct mr_request *reqs[6];
    uint8_t *payload = malloc(512);

    EXPECT(freopen("/dev/null", "w", stderr)); /* the log has thousands of complaints to make */
    if (rank == 0)
        for (unsigned seq = 0; seq < 300000; seq++) {
            struct mr_hdr h = {.kind = rand() % 16,
                               .flags = rand() % 8 | (rand() % 4 ? 0 : 64) | (rand() % 2 ? 16 : 0),
                               .note = rand() % 4 ? 0 : rand(),
                               .seq = seq,
                               .src = 1,
                               .rank = rand() % 3,
                               .tag = rand() % 3,
                               .len = rand() % 4 ? (uint64_t)rand() % 100 : (uint64_t)rand() << (rand() % 34),
                               .sreq = rand() % 4 | (uint64_t)(rand() % 5) << 32,
                               .rreq = rand() % 4 | (uint64_t)(rand() % 5) << 32};
            size_t len = rand() % 3 ? h.len % 512 : (size_t)rand() % 512;

            if (seq % 16 == 0) {
                mr_irecv(guarded[1], 4096, mr_type_byte, 1, seq / 16 % 3, mr_comm_world, 0, &reqs[0]);
                mr_request_put(reqs[0]);
                mr_isend(out, sizeof(out), mr_type_byte, 1, 1, mr_comm_world, 0, MR_SEND_STANDARD, &reqs[1]);
                mr_request_put(reqs[1]);
            }
            if (h.kind == 2 && rand() % 2)
                len = sizeof(struct mr_remote) * (1 + rand() % 2);
            if (h.kind == 2 && rand() % 2) /* with an eager prefix, part of which comes */
                h.len = (h.rreq = (uint64_t)rand() % 600) + (uint64_t)rand() % 8000;
            if (h.kind == 14 && rand() % 2)
                h.len = rand() % 2 ? 0 : len;
            if (h.kind == 1 && rand() % 2)
                h.len = h.flags & 64 ? len * (rand() % 4) : len; /* 64: the rest of a message, here the offset */
            for (size_t i = 0; i < len; i++)
                payload[i] = rand();
            mr_vc_arrived(&h, payload, len);
            if (seq % 64 == 0)
                mr_progress();
        }
    for (int i = 0; i < 4096; i++)
        EXPECT(!guarded[0][i] && !guarded[2][i]);
    free(payload);
    _exit(0); /* nobody is in a state to finalize */
}

START_TEST(mad_peer)
{
    ck_assert_int_eq(fake_world_run(2, nonsense), 0);
}
END_TEST

/* More ranks than cores: everyone to everyone, through small rings. */
static int crowd(int rank, int size)
{
    static uint8_t out[40000], in[40000];
    struct mr_request *r;

    fill(out, sizeof(out), rank);
    for (int step = 0; step < size; step++) {
        int to = (rank + step) % size, from = (rank - step + size) % size;

        EXPECT(mr_irecv(in, sizeof(in), mr_type_byte, from, 1, mr_comm_world, 0, &r) == MR_SUCCESS);
        if (to == rank) {
            struct mr_request *s;

            EXPECT(mr_isend(out, sizeof(out), mr_type_byte, to, 1, mr_comm_world, 0, MR_SEND_STANDARD, &s) ==
                   MR_SUCCESS);
            EXPECT(mr_wait(r) == MR_SUCCESS && mr_wait(s) == MR_SUCCESS);
            mr_request_put(s);
        } else {
            EXPECT(mr_send(out, sizeof(out), mr_type_byte, to, 1, mr_comm_world, 0, MR_SEND_STANDARD) == MR_SUCCESS);
            EXPECT(mr_wait(r) == MR_SUCCESS);
        }
        mr_request_put(r);
        EXPECT(holds(in, sizeof(in), from));
    }
    return 0;
}

START_TEST(many_ranks)
{
    ck_assert_int_eq(fake_world_run(24, crowd), 0);
}
END_TEST

/* ---- tests without waits ---- */

static int busy_looks;
static void *something = &busy_looks, *nothing;

static int never_called(void)
{
    busy_looks = -1000;
    return 1;
}

static int always_busy(void)
{
    busy_looks++;
    return 1;
}

static bool looked_three_times(void *arg)
{
    return busy_looks >= 3;
}

static int busy(int rank, int size)
{
    struct mr_request *r;
    int x;

    EXPECT(mr_irecv(&x, sizeof(x), mr_type_byte, 0, 1, mr_comm_world, 0, &r) == MR_SUCCESS);
    EXPECT(!mr_test(r));
    mr_progress_register(MR_PROGRESS_IN_MPI, &something, always_busy);
    mr_progress_register(MR_PROGRESS_IN_MPI, &nothing, never_called);
    EXPECT(mr_progress_try(looked_three_times, NULL) && busy_looks == 3);
    EXPECT(!mr_test(r)); /* returns */
    EXPECT(busy_looks > 4 && busy_looks < 100);
    mr_cancel(r);
    EXPECT(mr_wait(r) == MR_SUCCESS && r->status.cancelled);
    mr_request_put(r);
    return 0;
}

START_TEST(busy_network)
{
    ck_assert_int_eq(fake_world_run(1, busy), 0);
}
END_TEST

/* ---- many transfers that wait for credit ---- */

enum { CROWD = 100 };
static struct mr_rndv pushes[CROWD];

/* The active transfers from the first on: all of them, each behind its predecessor. */
static bool in_turn(const struct mr_rndv *first, int count)
{
    const struct mr_rndv *r = mr_rndvs.active;
    int n = 0;

    for (; r && r == &pushes[(first - pushes + n) % CROWD]; r = r->next)
        n++;
    return !r && n == count && mr_rndvs.active_last == &pushes[(first - pushes + n - 1) % CROWD];
}

static int polled_in_turn(int rank, int size)
{
    const struct mr_rndv *first;
    int polls = 0, passed = 0;

    for (int i = 0; i < CROWD; i++) {
        pushes[i] = (struct mr_rndv){.vc = mr_vc_get_peer(0),
                                     .state = MR_RNDV_MOVING,
                                     .by = &mr_packets_protocol,
                                     .total = (size_t)1 << 30,
                                     .done = (size_t)1 << 29};
        mr_rndv_activate(&pushes[i]);
    }
    for (; passed < CROWD && polls < CROWD; polls++) {
        first = mr_rndvs.active;
        EXPECT(mr_rndv_progress() == 0);
        EXPECT(in_turn(mr_rndvs.active, CROWD));
        passed += (int)((mr_rndvs.active - first + CROWD) % CROWD);
    }
    EXPECT(polls > 1 && passed >= CROWD); /* not all in one poll, and none is left out */
    first = mr_rndvs.active;
    for (int i = 10; i < CROWD; i++)
        mr_rndv_deactivate(&pushes[(first - pushes + i) % CROWD]);
    mr_rndv_progress();
    EXPECT(in_turn(first, 10)); /* a few keep their order */
    for (int i = 0; i < 10; i++)
        mr_rndv_deactivate(&pushes[(first - pushes + i) % CROWD]);
    EXPECT(!mr_rndvs.active);
    return 0;
}

START_TEST(a_crowd_is_polled_in_turn)
{
    ck_assert_int_eq(fake_world_run(1, polled_in_turn), 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("pt2pt");

    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, exchange_all_sizes, 0, 10);
    tcase_add_loop_test(c, refused_single_copy, 0, 2);
    tcase_add_loop_test(c, refused_split, 0, 10);
    tcase_add_test(c, ways_are_learnt);
    tcase_add_loop_test(c, silent_sender, 0, 4);
    tcase_add_loop_test(c, buffer_unmapped_after_free, 0, 4);
    tcase_add_loop_test(c, freed_and_not_to_be_read, 0, 12);
    tcase_add_test(c, freed_while_refused);
    tcase_add_test(c, buffer_reused_after_send);
    tcase_add_test(c, credit_runs_out);
    tcase_add_test(c, credit_comes_back);
    tcase_add_test(c, sends_held);
    tcase_add_test(c, held_for_a_lost_peer);
    tcase_add_test(c, self_flood);
    tcase_add_test(c, buffered_sends);
    tcase_add_test(c, buffered_sends_held);
    tcase_add_loop_test(c, messages_in_parts, 0, 2);
    tcase_add_loop_test(c, head_of_a_lost_peer, 0, 2);
    tcase_add_test(c, mad_peer);
    tcase_add_test(c, many_ranks);
    tcase_add_test(c, busy_network);
    tcase_add_test(c, a_crowd_is_polled_in_turn);
    return check_run(c, NULL);
}
