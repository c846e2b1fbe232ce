/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How large messages between two ranks of a node travel, by counters and by the order of events (near.sh):
 *
 *   near exchanges   long blocks of two ranks are messages, shorter ones go through the node's area
 *   near meets       a receive that meets an offered message copies nothing before the program waits
 *   near cold        the first operations of a process copy once, and touch no new page; "pushes": but for pushes,
 * which cost nothing by the setting of the model
 */
#include <sys/resource.h>

#include "mt.h"

enum { FIRST = 60, MOST = 1 << 20 };
static char *in, *out;

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static const char *const names[] = {"coll_node",     "by_single_copy", "by_shared_copy",
                                    "by_split_copy", "by_packets",     "shm_pooled"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[NAMES];

static void begin_counting(void)
{
    int index, count, provided;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < NAMES; i++) {
        EQ(MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
        EQ(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &count), MPI_SUCCESS);
    }
    MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES);
}

static void end_counting(void)
{
    for (int i = 0; i < NAMES; i++)
        MPI_T_pvar_handle_free(session, &handles[i]);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

/* Since begin_counting. */
static long counter(const char *name)
{
    unsigned long value = 0;
    int i = 0;

    while (strcmp(names[i], name))
        i++;
    EQ(MPI_T_pvar_read(session, handles[i], &value), MPI_SUCCESS);
    return (long)value;
}

/* Large messages received. */
static long messages(void)
{
    return counter("by_single_copy") + counter("by_shared_copy") + counter("by_split_copy") + counter("by_packets");
}

static long page_faults(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_minflt;
}

/* ---- loads ------------------------------------------------------------------------------------------------------- */

static void allgather(int bytes)
{
    MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(int bytes)
{
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void (*const exchange[])(int bytes) = {allgather, alltoall};

static void fill(void)
{
    for (int i = 0; i < 2 * MOST; i++) {
        out[i] = (char)(i * 7 + i / 251 + rank);
        in[i] = 0;
    }
}

static void exchanges(void)
{
    enum { TIMES = 10 };
    static const int bytes[] = {64 << 10, 256 << 10, MOST};

    for (int i = 0; i < 8; i++) /* a few make the area */
        MPI_Barrier(MPI_COMM_WORLD);
    CHECK(counter("coll_node") > 0);
    for (int k = 0; k < 2; k++)
        for (int b = 0; b < 3; b++) {
            long area = counter("coll_node"), large = messages();

            fill();
            for (int i = 0; i < TIMES; i++)
                exchange[k](bytes[b]);
            EQ(counter("coll_node") - area, b ? 0 : TIMES);
            EQ(messages() - large, b ? TIMES : 0);
            for (int i = 0; i < bytes[b]; i++) {
                int at = i + (k ? rank * bytes[b] : 0);

                EQ(in[!rank * bytes[b] + i], (char)(at * 7 + at / 251 + !rank));
            }
        }
}

/* The copy begins when the program waits, so a send behind the receive would leave before. */
static void meets(void)
{
    enum { TIMES = 20 };
    static const int bytes[] = {64 << 10, 300000, MOST};
    MPI_Request q[2];

    for (int b = 0; b < 3; b++)
        for (int i = 0; i < TIMES; i++) {
            long large;

            fill();
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Isend(out, bytes[b], MPI_BYTE, !rank, 1, MPI_COMM_WORLD, &q[0]);
            MPI_Probe(!rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* the offer is here */
            large = messages();
            MPI_Irecv(in, bytes[b], MPI_BYTE, !rank, 1, MPI_COMM_WORLD, &q[1]);
            EQ(messages(), large);
            for (int at = 0; at < bytes[b]; at++)
                EQ(in[at], 0);
            MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
            EQ(messages(), large + 1);
            for (int at = 0; at < bytes[b]; at++)
                EQ(in[at], (char)(at * 7 + at / 251 + !rank));
        }
}

static void cold(int pushes)
{
    for (int k = 0; k < 2; k++)
        for (int bytes = 256 << 10; bytes <= MOST; bytes *= 2) {
            long shared, pooled, once, faults;

            fill();
            exchange[k](bytes); /* opens the node's memory */
            exchange[k](bytes);
            once = counter("by_single_copy") + counter("by_split_copy");
            shared = counter("by_shared_copy");
            pooled = counter("shm_pooled");
            faults = page_faults();
            for (int i = 0; i < FIRST; i++)
                exchange[k](bytes);
            faults = page_faults() - faults;
            if (!pushes) {
                EQ(counter("by_single_copy") + counter("by_split_copy") - once, FIRST);
                EQ(counter("by_shared_copy"), shared);
                EQ(counter("shm_pooled"), pooled);
                CHECK(faults < 128); /* a quarter of a pool */
            }
        }
    if (pushes)
        CHECK(counter("by_shared_copy") > 0 && counter("shm_pooled") > 0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    mt_begin(&argc, &argv);
    begin_counting();
    EQ(size, 2);
    in = malloc(2 * MOST);
    out = malloc(2 * MOST);
    fill();
    if (!strcmp(what, "exchanges"))
        exchanges();
    else if (!strcmp(what, "meets"))
        meets();
    else if (!strcmp(what, "cold"))
        cold(argc > 2);
    else
        CHECK(!"what");
    free(in);
    free(out);
    end_counting();
    return mt_end();
}
