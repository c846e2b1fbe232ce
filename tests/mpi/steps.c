/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One exchange between hosts, for faults by steps.py at each of its packets: nothing is lost, doubled, reordered or
 * changed, and messages go on afterwards. steps KIND BYTES [MS]; KIND is
 *
 *   connect  the first messages
 *   send     messages of one piece
 *   ssend    synchronous ones
 *   holes    messages not in one piece
 *   coll     collective operations
 *   ready    blocks of MPI_Alltoall, whose receives are announced
 *   put      writes to a window, and a flush
 *   get      reads from one
 *
 * With MS the program polls the network for MS milliseconds before messages are exchanged once more. Rank 0 prints the
 * beginning of the exchange, its duration until both sides had all data, and the duration of the rest, in milliseconds.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 3, STRANGE = 0xa5 };

static int rank, size, peer, errors;
static int bytes, step = 1; /* of a message; from one byte of it to the next */
static unsigned char *out[MESSAGES], *in[MESSAGES];
static MPI_Datatype type;
static unsigned char *part; /* of the window, room for a message twice as long each */
static MPI_Win win;

static unsigned char byte_of(int from, int number, int at)
{
    return (unsigned char)(from * 31 + number * 13 + at * 5 + (at >> 8) * 3 + 1);
}

static void complain(int number, const char *what, int got)
{
    printf("rank %d, message %d: %s %d\n", rank, number, what, got);
    errors++;
}

static void fill(int m, int number)
{
    memset(in[m], STRANGE, (size_t)bytes * 2);
    memset(out[m], STRANGE, (size_t)bytes * 2);
    for (int i = 0; step == 1 && i < bytes; i++)
        out[m][i] = byte_of(rank, number, i);
    for (int i = 0; step != 1 && i < bytes; i++)
        out[m][i * step] = byte_of(rank, number, i);
}

/* A message in one piece as it should be. Without an early end, so the compiler compares many bytes at a time. */
static int is_message(const unsigned char *p, int number)
{
    unsigned char differ = 0;

    for (int i = 0; i < bytes; i++)
        differ |= p[i] ^ byte_of(peer, number, i);
    for (int i = bytes; i < 2 * bytes; i++)
        differ |= p[i] ^ STRANGE;
    return !differ;
}

/*
 * Exactly the bytes of this number. A megabyte is checked in a few milliseconds, without a division for each byte:
 * simfab takes a thread that computes for 50 ms for a spinner, and time passes (TIME.md).
 */
static void check_bytes(int m, int number)
{
    if (step == 1 && is_message(in[m], number))
        return;
    for (int i = 0, next = 0, k = 0; i < 2 * bytes; i++) {
        int want = STRANGE;

        if (i == next && k < bytes) {
            want = byte_of(peer, number, k++);
            next += step;
        }
        if (in[m][i] != want) {
            complain(number, "the first wrong byte is", i);
            return;
        }
    }
}

static void check(int m, int number, const MPI_Status *st)
{
    int n;

    MPI_Get_count(st, type, &n);
    if (n != 1 || st->MPI_TAG != number)
        complain(number, "it has another tag or length:", st->MPI_TAG);
    check_bytes(m, number);
}

static void send_all(int first, int sync, MPI_Request *req)
{
    for (int m = 0; m < MESSAGES; m++)
        (sync ? MPI_Issend : MPI_Isend)(out[m], 1, type, peer, first + m, MPI_COMM_WORLD, &req[m]);
}

static void receive_all(MPI_Request *req)
{
    for (int m = 0; m < MESSAGES; m++)
        MPI_Irecv(in[m], 1, type, peer, MPI_ANY_TAG, MPI_COMM_WORLD, &req[m]);
}

static void check_all(int first, const MPI_Status *st)
{
    for (int m = 0; m < MESSAGES; m++)
        check(m, first + m, &st[m]);
}

/* From the first half of the ranks to the second, which answer after all data has come. */
static void one_way(int first, int sync)
{
    MPI_Request req[MESSAGES];
    MPI_Status st[MESSAGES];
    int word = -1;

    for (int m = 0; m < MESSAGES; m++)
        fill(m, first + m);
    if (rank < peer) {
        send_all(first, sync, req);
        MPI_Waitall(MESSAGES, req, MPI_STATUSES_IGNORE);
        for (int m = 0; m < MESSAGES; m++)
            memset(out[m], 0xee, (size_t)bytes * 2); /* data to be sent again is not taken from here */
        MPI_Recv(&word, 1, MPI_INT, peer, first, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (word != first)
            complain(first, "the answer is", word);
    } else {
        receive_all(req);
        MPI_Waitall(MESSAGES, req, st);
        MPI_Send(&first, 1, MPI_INT, peer, first, MPI_COMM_WORLD);
        check_all(first, st);
    }
}

static void both_ways(int first)
{
    MPI_Request req[2 * MESSAGES];
    MPI_Status st[2 * MESSAGES];

    for (int m = 0; m < MESSAGES; m++)
        fill(m, first + m);
    receive_all(req);
    send_all(first, 0, req + MESSAGES);
    MPI_Waitall(2 * MESSAGES, req, st);
    check_all(first, st);
}

/*
 * Into the window of the second half of the ranks, which check after the end is announced. The first time, the window's
 * keys are learnt.
 */
static void put_all(int first)
{
    int word = -1;

    for (int m = 0; m < MESSAGES; m++)
        fill(m, first + m);
    memset(part, STRANGE, (size_t)MESSAGES * 2 * (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank < peer) {
        for (int m = 0; m < MESSAGES; m++)
            MPI_Put(out[m], bytes, MPI_BYTE, peer, (MPI_Aint)m * 2 * bytes, bytes, MPI_BYTE, win);
        MPI_Win_flush(peer, win);
        for (int m = 0; m < MESSAGES; m++)
            memset(out[m], 0xee, (size_t)bytes * 2);
        MPI_Send(&first, 1, MPI_INT, peer, first, MPI_COMM_WORLD);
        MPI_Recv(&word, 1, MPI_INT, peer, first, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Recv(&word, 1, MPI_INT, peer, first, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_sync(win);
    for (int m = 0; m < MESSAGES; m++) {
        memcpy(in[m], part + (size_t)m * 2 * (size_t)bytes, 2 * (size_t)bytes);
        check_bytes(m, first + m);
    }
    MPI_Send(&first, 1, MPI_INT, peer, first, MPI_COMM_WORLD);
}

static void get_all(int first)
{
    int word = -1;

    for (int m = 0; m < MESSAGES; m++) {
        fill(m, first + m);
        memcpy(part + (size_t)m * 2 * (size_t)bytes, out[m], 2 * (size_t)bytes);
    }
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank > peer) {
        MPI_Recv(&word, 1, MPI_INT, peer, first, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    for (int m = 0; m < MESSAGES; m++)
        MPI_Get(in[m], bytes, MPI_BYTE, peer, (MPI_Aint)m * 2 * bytes, bytes, MPI_BYTE, win);
    MPI_Win_flush(peer, win);
    for (int m = 0; m < MESSAGES; m++)
        check_bytes(m, first + m);
    MPI_Send(&first, 1, MPI_INT, peer, first, MPI_COMM_WORLD);
}

static void open_window(void (*use)(int first))
{
    MPI_Win_allocate((MPI_Aint)MESSAGES * 2 * bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 2; i++)
        use(10 * i + 10);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void close_window(void)
{
    put_all(220);
    get_all(240);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static void collectives(int first)
{
    int sum = rank + first, *all = malloc(sizeof *all * (size_t)size * 2);
    unsigned char *buf = malloc((size_t)bytes + 1);

    for (int i = 0; i < bytes; i++)
        buf[i] = rank ? STRANGE : byte_of(0, first, i);
    MPI_Bcast(buf, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int i = 0; i < bytes; i++)
        if (buf[i] != byte_of(0, first, i)) {
            complain(first, "MPI_Bcast: the first wrong byte is", i);
            break;
        }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size * (size - 1) / 2 + size * first)
        complain(first, "MPI_Allreduce gives", sum);
    for (int r = 0; r < size; r++)
        all[r] = rank * 1000 + r + first;
    MPI_Alltoall(all, 1, MPI_INT, all + size, 1, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        if (all[size + r] != r * 1000 + rank + first)
            complain(first, "MPI_Alltoall gives", all[size + r]);
    free(all);
    free(buf);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Of two ranks. */
static void blocks(int first)
{
    MPI_Barrier(MPI_COMM_WORLD);
    memset(in[0], STRANGE, (size_t)bytes * 2);
    for (int i = 0; i < 2 * bytes; i++)
        out[0][i] = byte_of(rank, first + i / bytes, i % bytes);
    MPI_Alltoall(out[0], bytes, MPI_BYTE, in[0], bytes, MPI_BYTE, MPI_COMM_WORLD);
    memset(out[0], 0xee, (size_t)bytes * 2); /* data to be sent again is not taken from here */
    for (int i = 0; i < 2 * bytes; i++)
        if (in[0][i] != byte_of(i / bytes, first + rank, i % bytes)) {
            complain(first, "MPI_Alltoall: the first wrong byte is", i);
            return;
        }
}

static void look_for(double ms)
{
    double end = MPI_Wtime() + ms / 1e3;
    int flag;

    while (MPI_Wtime() < end)
        MPI_Iprobe(MPI_ANY_SOURCE, 77777, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static void make_buffers(int holes)
{
    if (holes)
        MPI_Type_vector(bytes, 1, step = 2, MPI_BYTE, &type);
    else
        MPI_Type_contiguous(bytes, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    for (int m = 0; m < MESSAGES; m++) {
        out[m] = malloc((size_t)bytes * 2);
        in[m] = malloc((size_t)bytes * 2);
    }
}

static void exchange(const char *kind)
{
    if (!strcmp(kind, "coll"))
        collectives(100);
    else if (!strcmp(kind, "ready"))
        blocks(100);
    else if (!strcmp(kind, "put"))
        put_all(100);
    else if (!strcmp(kind, "get"))
        get_all(100);
    else
        one_way(100, !strcmp(kind, "ssend"));
}

int main(int argc, char **argv)
{
    const char *kind = argc > 2 ? argv[1] : "";
    double begin, end;
    MPI_Status st;
    int all = 0, stray, window;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3 || size % 2) {
        fputs("usage: steps connect|send|ssend|holes|coll|ready|put|get BYTES [MS], with an even number of ranks\n",
              stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    bytes = atoi(argv[2]);
    peer = (rank + size / 2) % size;
    make_buffers(!strcmp(kind, "holes"));
    if (strcmp(kind, "connect"))
        collectives(7);
    for (int i = 0; i < 3 && !strcmp(kind, "ready"); i++)
        blocks(10 * i + 10); /* announced memory is registered already */
    window = !strcmp(kind, "put") || !strcmp(kind, "get");
    if (window)
        open_window(!strcmp(kind, "put") ? put_all : get_all);

    begin = MPI_Wtime();
    exchange(kind);
    end = MPI_Wtime();
    if (argc > 3)
        look_for(atof(argv[3]));
    both_ways(200);
    if (window)
        close_window();
    collectives(300);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &stray, &st);
    if (stray)
        complain(st.MPI_TAG, "one more of them came from rank", st.MPI_SOURCE);
    MPI_Reduce(&errors, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank)
        printf("began %.6f took %.6f after %.6f errors %d\n", begin * 1e3, (end - begin) * 1e3,
               (MPI_Wtime() - end) * 1e3, all);
    MPI_Type_free(&type);
    MPI_Finalize();
    for (int m = 0; m < MESSAGES; m++) {
        free(out[m]);
        free(in[m]);
    }
    return all != 0;
}
