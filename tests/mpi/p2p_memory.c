/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All ranks flood rank 0, which does not poll, or is in the library without receives. Neither side's memory grows
 * beyond the settings, for any messages; all messages come, in order; and credit comes back: the flood is repeated.
 */
#include "p2p.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define KIB  1024
#define LEN  8000        /* sent eagerly, just */
#define ALL  (16 << 20)  /* all senders' messages together */
#define KEPT (512 << 10) /* of each sender's, by rank 0 (MRMPI_UNEXPECTED_MAX) */
#define USED (64 << 10)  /* of a pool, since the warm-up */
#define POOL (2 << 20)   /* of each rank: memory for messages inside the node, shared, made as far as it is used */
#define MORE (4 << 20)   /* allowed beyond that: receive queues, rings, pools of malloc */
enum { WARM, FLOOD, NEVER, END };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MEASURED = 0 }; /* their allocators keep freed memory */
#else
enum { MEASURED = 1 };
#endif

/* The most memory that the process has had since peak_reset(). */
static long peak(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;

    CHECK(f);
    while (fgets(line, sizeof(line), f) && sscanf(line, "VmHWM: %ld", &kib) != 1)
        ;
    fclose(f);
    CHECK(kib > 0);
    return kib * KIB;
}

static void peak_reset(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY);

    if (fd < 0)
        return; /* then the peak counts from the beginning: less can be seen, nothing wrong */
    if (write(fd, "5", 1) != 1)
        perror("/proc/self/clear_refs");
    close(fd);
}

static void check_growth(long before, long allowed)
{
    long grown = peak() - before;

    if (!MEASURED || grown <= allowed)
        return;
    fprintf(stderr, "rank %d: memory has grown by %ld KiB; %ld are allowed\n", rank, grown / KIB, allowed / KIB);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/*
 * A file in which each sender leaves a byte when it has begun all its sends, readable for rank 0 outside the library.
 * Ranks of other machines have no such file; for them rank 0 waits a short time in vain.
 */
static char begun[PATH_MAX];

static void begun_create(void)
{
    if (!rank) {
        const char *dir = getenv("TMPDIR");
        int fd;

        snprintf(begun, sizeof(begun), "%s/p2p_memory.XXXXXX", dir ? dir : "/tmp");
        fd = mkstemp(begun);
        CHECK(fd >= 0);
        close(fd);
    }
    MPI_Bcast(begun, sizeof(begun), MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void begun_tell(void)
{
    int fd = open(begun, O_WRONLY | O_APPEND);

    if (fd < 0)
        return;
    CHECK(write(fd, "b", 1) == 1);
    close(fd);
}

static void begun_await(void)
{
    struct timespec nap = {.tv_nsec = 1000000};
    struct stat st;

    for (int naps = 0; naps < 2000 && !stat(begun, &st) && st.st_size < size - 1; naps++)
        nanosleep(&nap, NULL);
}

static void send_flood(int count, int nonblocking, char *area, MPI_Request *reqs)
{
    for (int i = 0; i < count; i++) {
        char *buf = nonblocking ? area + (size_t)i * LEN : area;

        fill(buf, LEN, rank + i);
        if (nonblocking)
            MPI_Isend(buf, LEN, MPI_CHAR, 0, FLOOD, MPI_COMM_WORLD, &reqs[i]);
        else
            MPI_Send(buf, LEN, MPI_CHAR, 0, FLOOD, MPI_COMM_WORLD);
    }
    if (nonblocking) {
        begun_tell();
        MPI_Waitall(count, reqs, MPI_STATUSES_IGNORE);
    }
}

/* Not in the library for a while, then in it for a while. */
static void be_late(void)
{
    struct timespec nap = {.tv_nsec = 1000000};
    double until;
    int flag;

    nanosleep(&nap, NULL);
    until = MPI_Wtime() + 0.002;
    while (MPI_Wtime() < until) {
        MPI_Iprobe(MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag);
    }
}

static void receive_flood(int count, int any, char *buf)
{
    int *next = calloc((size_t)size, sizeof(*next));
    MPI_Status st;

    CHECK(next);
    for (int i = 0; i < count * (size - 1); i++) {
        MPI_Recv(buf, LEN, MPI_CHAR, any ? MPI_ANY_SOURCE : size - 1 - i / count, FLOOD, MPI_COMM_WORLD, &st);
        CHECK(holds(buf, LEN, (unsigned)(st.MPI_SOURCE + next[st.MPI_SOURCE]++)));
    }
    for (int r = 1; r < size; r++)
        CHECK(next[r] == count);
    free(next);
}

/* Those on this node whose pools this rank reads, or its own. */
static int count_pools(void)
{
    MPI_Comm node;
    int here;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_Comm_free(&node);
    return rank ? here > 1 : here - 1;
}

/* Connections are made, rings and pools are in use. */
static void warm_up(char *buf)
{
    for (int r = 1; r < size; r++)
        for (int i = 0; i < 4; i++)
            if (rank == r)
                MPI_Send(buf, LEN, MPI_CHAR, 0, WARM, MPI_COMM_WORLD);
            else if (!rank)
                MPI_Recv(buf, LEN, MPI_CHAR, r, WARM, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    peak_reset();
}

int main(int argc, char **argv)
{
    char kept[16];
    MPI_Request *reqs;
    char *area;
    long before, more;
    int count;

    snprintf(kept, sizeof(kept), "%d", KEPT);
    setenv("MRMPI_UNEXPECTED_MAX", kept, 1);
    setenv("MRMPI_SRQ_DEPTH", "64", 1);
    begin(&argc, &argv);
    CHECK(size > 1);
    count = ALL / LEN / (size - 1);
    area = room((size_t)count * LEN);
    reqs = room((size_t)count * sizeof(*reqs));
    memset(area, 0, (size_t)count * LEN);
    memset(reqs, 0, (size_t)count * sizeof(*reqs));
    begun_create();
    more = MORE + (long)count_pools() * (POOL - USED);
    warm_up(area);
    before = peak();
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        if (rank) {
            send_flood(count, nonblocking, area, reqs);
            check_growth(before, more);
        } else {
            if (nonblocking)
                begun_await();
            be_late();
            receive_flood(count, nonblocking, area);
            check_growth(before, (size - 1) * (KEPT + KEPT / 8L) + more);
        }
    }
    if (!rank)
        unlink(begun);
    free(area);
    free(reqs);
    MPI_Finalize();
    return 0;
}
