/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of one sender do not overtake each other, whatever protocol each takes, and wildcards see them in order:
 * every rank sends to its right neighbour a stream of sizes around the protocol limits.
 */
#include "p2p.h"

static const int sizes[] = {4, 100000, 0, 16384, 8, 70000, 16385, 73, 1 << 20, 12, 8192, 8193, 300000, 1};
enum { N = sizeof(sizes) / sizeof(sizes[0]), MAX = 1 << 20, ROUNDS = 10 };

static void stream(int in_tag, int in_source, int post_first)
{
    int right = (rank + 1) % size, left = (rank - 1 + size) % size;
    char *out = room((size_t)N * MAX), *in = room((size_t)N * MAX);
    MPI_Request sends[N], recvs[N];
    MPI_Status st;

    for (int i = 0; i < N; i++)
        fill(out + (size_t)i * MAX, sizes[i], rank + i);
    if (!post_first)
        for (int i = 0; i < N; i++)
            MPI_Isend(out + (size_t)i * MAX, sizes[i], MPI_CHAR, right, 5, MPI_COMM_WORLD, &sends[i]);
    for (int i = 0; i < N; i++)
        MPI_Irecv(in + (size_t)i * MAX, MAX, MPI_CHAR, in_source == MPI_ANY_SOURCE ? MPI_ANY_SOURCE : left,
                  i % 2 ? in_tag : 5, MPI_COMM_WORLD, &recvs[i]);
    if (post_first)
        for (int i = 0; i < N; i++)
            MPI_Isend(out + (size_t)i * MAX, sizes[i], MPI_CHAR, right, 5, MPI_COMM_WORLD, &sends[i]);
    for (int i = 0; i < N; i++) {
        int got;

        MPI_Wait(&recvs[i], &st);
        MPI_Get_count(&st, MPI_CHAR, &got);
        CHECK(got == sizes[i] && st.MPI_SOURCE == left && st.MPI_TAG == 5);
        CHECK(holds(in + (size_t)i * MAX, got, left + i));
    }
    MPI_Waitall(N, sends, MPI_STATUSES_IGNORE);
    free(out);
    free(in);
}

/* Short messages come while receives with other tags are posted. */
static void while_posted(void)
{
    enum { BATCH = 60, BATCHES = 200, WORDS = 10 };
    static const int tags[] = {0, 1, 2, 0, 1, 2}, asked[] = {2, 0, MPI_ANY_TAG, 0, MPI_ANY_TAG, MPI_ANY_TAG},
                     given[] = {2, 0, 1, 3, 4, 5};
    int right = (rank + 1) % size, left = (rank - 1 + size) % size;
    int out[BATCH][WORDS], in[BATCH][WORDS];
    MPI_Request sends[BATCH], recvs[BATCH];
    MPI_Status st;

    for (int b = 0; b < BATCHES; b++) {
        int ahead = b % 4 == 0 ? BATCH : b % 7; /* so many are on their way before the first receive */

        for (int i = 0; i < 2 * BATCH; i++) {
            int s = i - (BATCH - ahead), r = i - ahead;

            if (i < ahead || (s >= ahead && s < BATCH)) {
                s = i < ahead ? i : s;
                for (int k = 0; k < WORDS; k++)
                    out[s][k] = b * BATCH + s;
                MPI_Isend(out[s], 1 + s % WORDS, MPI_INT, right, tags[s % 6], MPI_COMM_WORLD, &sends[s]);
            }
            if (r >= 0 && r < BATCH)
                MPI_Irecv(in[r], WORDS, MPI_INT, left, asked[r % 6], MPI_COMM_WORLD, &recvs[r]);
        }
        for (int r = 0; r < BATCH; r++) {
            int from = r / 6 * 6 + given[r % 6], got;

            MPI_Wait(&recvs[r], &st);
            MPI_Get_count(&st, MPI_INT, &got);
            CHECK(got == 1 + from % WORDS && st.MPI_TAG == tags[from % 6] && st.MPI_SOURCE == left);
            for (int k = 0; k < got; k++)
                CHECK(in[r][k] == b * BATCH + from);
        }
        MPI_Waitall(BATCH, sends, MPI_STATUSES_IGNORE);
    }
}

/* All ranks send numbered messages with several tags to rank 0, which takes them by different wildcards. */
static void gather_numbers(void)
{
    enum { EACH = 300 };
    int *next;

    if (rank) {
        for (int i = 0; i < EACH; i++)
            MPI_Send(&i, 1, MPI_INT, 0, i % 3, MPI_COMM_WORLD);
        return;
    }
    next = room(sizeof(int) * size * 3);
    for (int i = 0; i < size * 3; i++)
        next[i] = i % 3;
    for (int k = 0; k < EACH * (size - 1); k++) {
        MPI_Status st;
        int value, flag;

        if (k % 3 == 0) {
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
            MPI_Iprobe(st.MPI_SOURCE, st.MPI_TAG, MPI_COMM_WORLD, &flag, &st);
            CHECK(flag);
            MPI_Recv(&value, 1, MPI_INT, st.MPI_SOURCE, st.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
        }
        CHECK(value == next[st.MPI_SOURCE * 3 + st.MPI_TAG]);
        next[st.MPI_SOURCE * 3 + st.MPI_TAG] += 3;
    }
    free(next);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int i = 0; i < ROUNDS; i++) {
        stream(5, 0, i & 1);
        stream(MPI_ANY_TAG, 0, i & 1);
        MPI_Barrier(MPI_COMM_WORLD);
        stream(MPI_ANY_TAG, MPI_ANY_SOURCE, i & 1);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    while_posted();
    gather_numbers();
    MPI_Finalize();
    return 0;
}
