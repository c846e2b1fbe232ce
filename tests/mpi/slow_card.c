/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A launcher that takes half a second for each question about a peer: other threads continue meanwhile, and messages to
 * the peer arrive whole and in order. For two ranks, on hosts of their own.
 *
 * slow_card away: rank 1 makes no call while the answer comes, and the peer's request to connect after it.
 */
#include "mt.h"

#include <dlfcn.h>
#include <pmix.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLOW_US = 500000, AWAY_US = 2 * SLOW_US, QUICK_US = 100000, MESSAGES = 40 };
static int lengths[] = {0, 8, 64, 65, 3000, 8192, 100000, 1000000};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static atomic_int asked, over;
static MPI_Comm quick;

/* Found before the PMIx library's. */
__attribute__((visibility("default"))) pmix_status_t
PMIx_Lookup_nb(char **keys, const pmix_info_t info[], size_t num_info, pmix_lookup_cbfunc_t done, void *arg)
{
    __typeof__(&PMIx_Lookup_nb) real = (__typeof__(real))dlsym(RTLD_NEXT, "PMIx_Lookup_nb");

    if (!strncmp(keys[0], "mrmpi.card/", strlen("mrmpi.card/"))) {
        atomic_fetch_add(&asked, 1);
        usleep(SLOW_US);
    }
    return real(keys, info, num_info, done, arg);
}

/* The launcher takes its time outside of a simulation, where a sleep of an actor's passes at once. */
static void stay_away(int us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    if (us)
        syscall(SYS_nanosleep, &t, NULL);
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Messages to itself; returns the longest time of a message. */
static void *talk_to_self(void *arg)
{
    double *worst = arg;

    for (int i = 0; !atomic_load(&over); i++) {
        double begun = now_us(), took;
        int got = -1;

        MPI_Sendrecv(&i, 1, MPI_INT, 0, 3, &got, 1, MPI_INT, 0, 3, quick, MPI_STATUS_IGNORE);
        EQ(got, i);
        took = now_us() - begun;
        *worst = took > *worst ? took : *worst;
        usleep(1000);
    }
    return NULL;
}

static unsigned char byte_of(int from, int to, int m, int at)
{
    return (unsigned char)(from * 31 + to * 7 + m * 13 + at * 5 + (at >> 8));
}

static void fill(unsigned char *buf, int from, int to, int m)
{
    for (int i = 0; i < lengths[m % LENGTHS]; i++)
        buf[i] = byte_of(from, to, m, i);
}

/* Longest first, shortest first, ...: eager messages must not overtake others. */
static void exchange(int peer, int away_us)
{
    unsigned char *out[MESSAGES], *in[MESSAGES];
    MPI_Request req[2 * MESSAGES];

    for (int m = 0; m < MESSAGES; m++) {
        out[m] = malloc(1000000);
        in[m] = malloc(1000000);
        fill(out[m], rank, peer, m);
        MPI_Irecv(in[m], 1000000, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &req[m]);
    }
    for (int m = 0; m < MESSAGES; m++)
        MPI_Isend(out[m], lengths[m % LENGTHS], MPI_BYTE, peer, 1, MPI_COMM_WORLD, &req[MESSAGES + m]);
    stay_away(away_us);
    MPI_Waitall(2 * MESSAGES, req, MPI_STATUSES_IGNORE);
    for (int m = 0; m < MESSAGES; m++) {
        for (int i = 0; i < lengths[m % LENGTHS]; i++)
            EQ(in[m][i], byte_of(peer, rank, m, i));
        free(out[m]);
        free(in[m]);
    }
}

int main(int argc, char **argv)
{
    pthread_t t;
    double worst = 0;
    int level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    EQ(level, MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && !strcmp(argv[1], "away")) {
        exchange(rank ^ 1, rank ? AWAY_US : 0);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_dup(MPI_COMM_SELF, &quick);
    pthread_create(&t, NULL, talk_to_self, &worst);
    usleep(20000);
    exchange(rank ^ 1, 0);
    atomic_store(&over, 1);
    pthread_join(t, NULL);
    EQ(atomic_load(&asked), 1);
    if (worst > QUICK_US) {
        fprintf(stderr, "rank %d: a thread that had nothing to do with it was held up for %.0f us\n", rank, worst);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Comm_free(&quick);
    MPI_Finalize();
    return 0;
}
