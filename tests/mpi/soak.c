/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Very many messages of random sizes, tags and modes between all ranks, both ways at once, and collective operations
 * now and then: nothing is lost, doubled, reordered or changed. soak MESSAGES SEED.
 *
 * Everything follows from the seed: a message is identified by its sender, its receiver and its number, and both ends
 * compute its size, its tag and its bytes. The program runs in rounds, in each of which a rank sends the same number of
 * messages to every other one. The kind of receive changes with the round: in order, by tag in another order, by
 * probing, from any source.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 32, /* messages from each rank to each other one in a round */
    GUARD = 8,  /* guard bytes after each receive */
    SMALL = 256,
    COLL_BYTES = 20000,
};

enum mode { IN_ORDER, BY_TAG, PROBED, FROM_ANY, MODES };

struct message {
    unsigned char *buf;
    int from, to, bytes, tag;
    uint64_t key;
};

struct arena {
    unsigned char *base;
    size_t used, size;
};

static int rank, size, errors;
static uint64_t seed, bytes_sent;
static MPI_Comm comm[2]; /* in turn: a rank in the next round already sends on the other one */
static struct message *out, *in;
static MPI_Request *req;
static MPI_Status *status;
static struct arena memory[2];

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static uint64_t key_of(uint64_t from, uint64_t to, uint64_t number)
{
    return mix(mix(seed + from * 1000003 + to * 7919) + number * 0x9e3779b97f4a7c15ull);
}

static int bytes_of(uint64_t key, enum mode mode)
{
    uint64_t kind = key % 1000, at = key >> 16;

    if (mode == FROM_ANY)
        return (int)(at % SMALL);
    if (kind < 750)
        return (int)(at % 65);
    if (kind < 930)
        return (int)(at % 1025);
    if (kind < 985)
        return (int)(at % 8300); /* up to where eager messages end, and beyond */
    if (kind < 998)
        return (int)(at % 70000);
    return (int)(at % 600000);
}

static struct message describe(int from, int to, uint64_t number, enum mode mode)
{
    struct message m = {.from = from, .to = to, .key = key_of((uint64_t)from, (uint64_t)to, number)};

    m.bytes = bytes_of(m.key, mode);
    m.tag = mode == BY_TAG ? (int)(number % BATCH) : (int)(m.key >> 40 & 0xff);
    return m;
}

static enum mode mode_of(uint64_t round)
{
    uint64_t k = mix(seed ^ round * 77) % 16;

    return k < 7 ? IN_ORDER : k < 11 ? BY_TAG : k < 13 ? PROBED : FROM_ANY;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------ */

static void fill(const struct message *m)
{
    uint64_t word = m->key;
    int i = 0;

    for (; i + 8 <= m->bytes; i += 8, word += 0x9e3779b97f4a7c15ull)
        memcpy(m->buf + i, &word, 8);
    memcpy(m->buf + i, &word, (size_t)(m->bytes - i));
}

static void complain(const struct message *m, uint64_t number, const char *what, long got, long wanted)
{
    if (errors++ < 20)
        printf("rank %d, message %llu from rank %d: %s %ld, not %ld\n", rank, (unsigned long long)number, m->from, what,
               got, wanted);
}

static void check_bytes(const struct message *m, uint64_t number)
{
    uint64_t word = m->key;
    int i = 0;

    for (; i + 8 <= m->bytes; i += 8, word += 0x9e3779b97f4a7c15ull)
        if (memcmp(m->buf + i, &word, 8)) {
            complain(m, number, "bytes are wrong from", i, m->bytes);
            return;
        }
    if (memcmp(m->buf + i, &word, (size_t)(m->bytes - i)))
        complain(m, number, "the last bytes are wrong from", i, m->bytes);
    for (int g = 0; g < GUARD; g++)
        if (m->buf[m->bytes + g] != 0xee)
            complain(m, number, "something was written behind its end:", m->bytes + g, m->bytes);
}

static void check(const struct message *m, uint64_t number, const MPI_Status *st)
{
    int n;

    MPI_Get_count(st, MPI_BYTE, &n);
    if (n != m->bytes)
        complain(m, number, "its length is", n, m->bytes);
    else if (st->MPI_TAG != m->tag)
        complain(m, number, "its tag is", st->MPI_TAG, m->tag);
    else if (st->MPI_SOURCE != m->from)
        complain(m, number, "its source is", st->MPI_SOURCE, m->from);
    else
        check_bytes(m, number);
}

/* Room for the messages, by their sizes. */
static void give_room(struct arena *a, struct message *m, int n, int at_least)
{
    size_t need = 0, at = 0;

    for (int i = 0; i < n; i++)
        need += (size_t)(m[i].bytes > at_least ? m[i].bytes : at_least) + GUARD;
    if (need > a->size) {
        free(a->base);
        a->size = need * 2;
        a->base = malloc(a->size);
        if (!a->base) {
            fprintf(stderr, "soak: no memory for %zu bytes\n", a->size);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    for (int i = 0; i < n; i++) {
        m[i].buf = a->base + at;
        at += (size_t)(m[i].bytes > at_least ? m[i].bytes : at_least) + GUARD;
    }
}

/* ---- a round ---------------------------------------------------------------------------------------------------- */

/* The i-th message of the round to or from others: peers take turns. */
static int peer_of(int i)
{
    return (rank + 1 + i % (size - 1)) % size;
}

static void describe_round(uint64_t round, enum mode mode, int n)
{
    for (int i = 0; i < n; i++) {
        uint64_t number = round * BATCH + (uint64_t)(i / (size - 1));

        out[i] = describe(rank, peer_of(i), number, mode);
        in[i] = describe(peer_of(i), rank, number, mode);
        bytes_sent += (uint64_t)out[i].bytes;
    }
    give_room(&memory[0], out, n, 0);
    give_room(&memory[1], in, n, mode == FROM_ANY ? SMALL : 0);
    for (int i = 0; i < n; i++) {
        fill(&out[i]);
        memset(in[i].buf, 0xee, (size_t)(mode == FROM_ANY ? SMALL : in[i].bytes) + GUARD);
    }
}

/* blocking: receives are posted everywhere, so that blocking sends end. */
static void send_round(MPI_Comm c, int n, int blocking)
{
    for (int i = 0; i < n; i++) {
        struct message *m = &out[i];
        unsigned how = (unsigned)(m->key >> 52) % 16;

        req[n + i] = MPI_REQUEST_NULL;
        if (how == 0)
            MPI_Issend(m->buf, m->bytes, MPI_BYTE, m->to, m->tag, c, &req[n + i]);
        else if (how == 1 && blocking)
            MPI_Send(m->buf, m->bytes, MPI_BYTE, m->to, m->tag, c);
        else
            MPI_Isend(m->buf, m->bytes, MPI_BYTE, m->to, m->tag, c, &req[n + i]);
    }
}

/* The i-th posted receive: by tag, in another order than that of the sends. */
static int turn_of(int i, int n, enum mode mode)
{
    return mode == BY_TAG ? (int)((unsigned)i * 5u % (unsigned)n) : i;
}

static void post_receives(MPI_Comm c, int n, enum mode mode)
{
    for (int i = 0; i < n; i++) {
        struct message *m = &in[n % 5 ? turn_of(i, n, mode) : i];

        MPI_Irecv(m->buf, mode == FROM_ANY ? SMALL : m->bytes, MPI_BYTE, mode == FROM_ANY ? MPI_ANY_SOURCE : m->from,
                  mode == BY_TAG ? m->tag : MPI_ANY_TAG, c, &req[m - in]);
    }
}

static void receive_probed(MPI_Comm c, int n)
{
    for (int i = 0; i < n; i++) {
        struct message *m = &in[i];
        MPI_Message matched;
        MPI_Status st;
        int bytes;

        req[i] = MPI_REQUEST_NULL;
        if (i % 2)
            MPI_Mprobe(m->from, MPI_ANY_TAG, c, &matched, &st);
        else
            MPI_Probe(m->from, MPI_ANY_TAG, c, &st);
        MPI_Get_count(&st, MPI_BYTE, &bytes);
        if (bytes > m->bytes) {
            complain(m, 0, "what is probed has the length", bytes, m->bytes);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (i % 2)
            MPI_Mrecv(m->buf, m->bytes, MPI_BYTE, &matched, &status[i]);
        else
            MPI_Recv(m->buf, m->bytes, MPI_BYTE, m->from, st.MPI_TAG, c, &status[i]);
    }
}

/* Receives from any source were taken in the order of posting by the messages of each source. */
static void check_any(uint64_t round, int n)
{
    int seen[size];

    memset(seen, 0, sizeof seen);
    for (int i = 0; i < n; i++) {
        int from = status[i].MPI_SOURCE;
        uint64_t number = round * BATCH + (uint64_t)seen[from]++;
        struct message m = describe(from, rank, number, FROM_ANY);

        m.buf = in[i].buf;
        check(&m, number, &status[i]);
    }
}

static void run_round(uint64_t round, int n)
{
    enum mode mode = mode_of(round);
    MPI_Comm c = comm[round & 1];
    int sends_first = mode == PROBED || round % 3 == 0;
    MPI_Status probed[mode == PROBED ? n : 1];

    describe_round(round, mode, n);
    if (sends_first)
        send_round(c, n, 0);
    if (mode == PROBED)
        receive_probed(c, n);
    else
        post_receives(c, n, mode);
    if (!sends_first)
        send_round(c, n, 1);
    if (mode == PROBED)
        memcpy(probed, status, sizeof probed);
    MPI_Waitall(2 * n, req, status);
    if (mode == PROBED)
        memcpy(status, probed, sizeof probed);
    if (mode == FROM_ANY)
        check_any(round, n);
    for (int i = 0; i < n && mode != FROM_ANY; i++)
        check(&in[i], round * BATCH + (uint64_t)(i / (size - 1)), &status[i]);
    for (int i = 0; i < n; i++) /* data to be sent again is not taken from here */
        memset(out[i].buf, 0xdd, (size_t)out[i].bytes);
}

static void collective(uint64_t round)
{
    static unsigned char buf[COLL_BYTES + GUARD];
    struct message m = {.buf = buf, .from = (int)(round % (uint64_t)size), .key = key_of(999, 999, round)};
    uint64_t sum = (uint64_t)rank + round;

    m.bytes = (int)(m.key % COLL_BYTES);
    memset(buf, 0xee, sizeof buf);
    if (rank == m.from)
        fill(&m);
    MPI_Bcast(buf, m.bytes, MPI_BYTE, m.from, MPI_COMM_WORLD);
    check_bytes(&m, round);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (sum != (uint64_t)size * (uint64_t)(size - 1) / 2 + (uint64_t)size * round)
        complain(&m, round, "MPI_Allreduce gives", (long)sum, (long)round);
}

int main(int argc, char **argv)
{
    uint64_t rounds, all_bytes = 0;
    int n, all = 0, stray;
    double begin;
    MPI_Status st;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3 || size < 2) {
        fputs("usage: soak MESSAGES SEED, with two ranks at least\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    n = BATCH * (size - 1);
    rounds = (strtoull(argv[1], NULL, 0) + (uint64_t)(n * size) - 1) / (uint64_t)(n * size);
    seed = mix(strtoull(argv[2], NULL, 0));
    out = calloc((size_t)n, sizeof *out);
    in = calloc((size_t)n, sizeof *in);
    req = calloc(2 * (size_t)n, sizeof(MPI_Request));
    status = calloc(2 * (size_t)n, sizeof *status);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm[1]);

    begin = MPI_Wtime();
    for (uint64_t r = 0; r < rounds; r++) {
        run_round(r, n);
        if (r % 16 == 7)
            collective(r);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm[i], &stray, &st);
        errors += stray;
        if (stray)
            printf("rank %d: one more message came from rank %d, tag %d\n", rank, st.MPI_SOURCE, st.MPI_TAG);
        MPI_Comm_free(&comm[i]);
    }
    MPI_Reduce(&errors, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&bytes_sent, &all_bytes, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank)
        printf("soak: %llu messages of %.1f MB, %d errors, %.3f s\n", (unsigned long long)rounds * (unsigned)(n * size),
               (double)all_bytes / 1e6, all, MPI_Wtime() - begin);
    MPI_Finalize();
    for (int i = 0; i < 2; i++)
        free(memory[i].base);
    free(out);
    free(in);
    free(req);
    free(status);
    return all != 0;
}
