/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share_load [-b|-s] [-f] [-p US] HOSTS TIME_US SETTLE_US STREAM...: traffic of several jobs over the same cable at the
 * same time.
 *
 *   STREAM  JOB,SIZE[+SIZE...],WINDOW  a pair of ranks of this job; the first sends messages of these sizes in turn to
 *           the second, WINDOW messages under way. WINDOW 0: a ping-pong of 8 bytes with pauses, which begins a little
 *           before the others
 *   HOSTS   senders are on so many hosts, in turn, receivers on the host after these; N:M: on the M hosts after these
 *   -b      windows are waited for and begun anew; otherwise a completed message makes room for the next
 *   -s      the same at the sender alone
 *   -f      each message leaves and enters memory that was not used before
 *   -p US   longest pause of a ping-pong (40), which decides the amount sent ahead of bulk within the class's budget
 *
 * There are as many ranks on each host as there are streams, in blocks, as mrrun --ppn places them; ranks without a
 * stream wait, and are not counted by fabricd. All streams are ranks of one MPI world, to begin together, but each rank
 * tells fabricd its stream's JOB. All send from one moment of virtual time on, common to the hosts, for TIME_US. FIRST
 * in the environment is a command that rank 0 runs before announcing that moment. Rank 0 prints
 *
 *   window BEGIN END         between these times, in seconds as MPI_Wtime has them, all streams send
 *   stream JOB SIZES BYTES   of payload that arrived between the two
 *   ping JOB QUIET WORST N   of N ways to the second rank of a ping-pong: microseconds of the shortest before the
 *                            others send, and of the longest between the two times
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SIZES_MAX = 16, WINDOW_MAX = 1024, TAG = 1, ANSWER };

#define WARM_UP_S   2e-3        /* links of all rails and levels are opened while messages go */
#define AHEAD_S     3e-4        /* time between the announcement and the start */
#define FRESH_BYTES (1ul << 30) /* of address space at a time; pages that are not used take no memory */

struct stream {
    char job[64];
    int sizes[SIZES_MAX], num_sizes, largest, window;
};

static int rank, num_streams, senders, receivers = 1; /* hosts */
static bool batches, sent_batches;                    /* at both, at the sender */
static bool fresh;
static struct stream stream;
static double pause_most_s = 4e-5; /* between a pong and the next ping */

static void fail(const char *why)
{
    fprintf(stderr, "share_load: rank %d: %s\n", rank, why);
    exit(2);
}

static int bytes_of(char **text)
{
    long n = strtol(*text, text, 10);
    long unit = **text == 'K' ? 1024 : **text == 'M' ? 1024 * 1024 : 1;

    *text += unit > 1;
    if (n < 0 || n > 1024 * 1024 * 1024 / unit)
        fail("a size is out of range");
    return (int)(n * unit);
}

static void read_stream(const char *text)
{
    char *at = strchr(text, ',');

    if (!at || (size_t)(at - text) >= sizeof stream.job)
        fail("cannot read a stream");
    snprintf(stream.job, sizeof stream.job, "%.*s", (int)(at - text), text);
    do {
        at++;
        if (stream.num_sizes == SIZES_MAX)
            fail("too many sizes");
        stream.sizes[stream.num_sizes] = bytes_of(&at);
        if (stream.sizes[stream.num_sizes] > stream.largest)
            stream.largest = stream.sizes[stream.num_sizes];
        stream.num_sizes++;
    } while (*at == '+');
    if (*at != ',' || sscanf(at + 1, "%d", &stream.window) != 1 || stream.window < 0 || stream.window > WINDOW_MAX)
        fail("cannot read a stream's window");
}

static int sender_of(int stream_number)
{
    return stream_number % senders * num_streams + stream_number;
}

static int receiver_of(int stream_number)
{
    return (senders + stream_number % receivers) * num_streams + stream_number;
}

/* ---- one direction of a stream ----------------------------------------------------------------------------------- */

static MPI_Request req[WINDOW_MAX];
static int which[WINDOW_MAX];
static MPI_Status status[WINDOW_MAX];
static char *room; /* a place for each message to receive, or the data to send */

/* For one message: fresh memory, or the place of the slot. */
static void *place(char *usual)
{
    static char *next, *end;
    size_t bytes = ((size_t)stream.largest | 4095) + 1;

    if (!fresh)
        return usual;
    if ((size_t)(end - next) < bytes) {
        next = mmap(NULL, FRESH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (next == MAP_FAILED || bytes > FRESH_BYTES)
            fail("no memory");
        end = next + FRESH_BYTES;
    }
    next += bytes;
    return next - bytes;
}

static void begin_send(int slot, int peer, unsigned long *turn)
{
    MPI_Isend(place(room), stream.sizes[(*turn)++ % (unsigned)stream.num_sizes], MPI_BYTE, peer, TAG, MPI_COMM_WORLD,
              &req[slot]);
}

/* Keeps the window full until then. */
static void send_until(double then, int peer)
{
    unsigned long turn = 0;
    int done = stream.window;

    for (int i = 0; i < stream.window; i++)
        which[i] = i;
    while (MPI_Wtime() < then) {
        for (int k = 0; k < done; k++)
            begin_send(which[k], peer, &turn);
        if (sent_batches)
            MPI_Waitall(stream.window, req, MPI_STATUSES_IGNORE);
        else
            MPI_Waitsome(stream.window, req, &done, which, MPI_STATUSES_IGNORE);
    }
    MPI_Waitall(stream.window, req, MPI_STATUSES_IGNORE);
    for (int i = 0; i < stream.window; i++) /* none is left of these: each meets one of the peer's receives */
        MPI_Send(NULL, 0, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
}

static void begin_receive(int slot, int peer)
{
    MPI_Irecv(place(room + (size_t)slot * (size_t)stream.largest), stream.largest, MPI_BYTE, peer, TAG, MPI_COMM_WORLD,
              &req[slot]);
}

/* Or for all of them, in batches. */
static void wait_for_some(int *done)
{
    if (!batches) {
        MPI_Waitsome(stream.window, req, done, which, status);
        return;
    }
    MPI_Waitall(stream.window, req, status);
    *done = stream.window;
    for (int i = 0; i < stream.window; i++)
        which[i] = i;
}

/* Until as many empty messages have come as are waited for; the bytes that came between the two times. */
static double receive(double begin, double end, int peer)
{
    int left = stream.window, done;
    double bytes = 0;

    for (int i = 0; i < stream.window; i++)
        begin_receive(i, peer);
    while (left) {
        wait_for_some(&done);
        double now = MPI_Wtime();
        for (int k = 0; k < done; k++) {
            int n;

            MPI_Get_count(&status[k], MPI_BYTE, &n);
            bytes += now >= begin && now < end ? n : 0;
            if (n)
                begin_receive(which[k], peer);
            else
                left--;
        }
    }
    return bytes;
}

static void sleep_until(double then)
{
    double left = then - MPI_Wtime();

    if (left > 0)
        nanosleep(&(struct timespec){(time_t)left, (long)((left - (double)(time_t)left) * 1e9)}, NULL);
}

/* ---- a ping-pong ------------------------------------------------------------------------------------------------- */

/* One-way times: the shortest in quiet, the longest beside the others. */
struct ways {
    double quiet, worst, n;
};

static bool is_ping(void)
{
    return !stream.window;
}

/* Each message is its time of sending, on the common clock; the last message is 0. */
static void ping_until(double then, int peer)
{
    unsigned seed = 1;
    double now;

    do {
        double back;

        sleep_until(MPI_Wtime() + pause_most_s * rand_r(&seed) / RAND_MAX); /* out of step with other traffic */
        now = MPI_Wtime();
        now = now < then ? now : 0;
        MPI_Send(&now, 1, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD);
        MPI_Recv(&back, 1, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } while (now > 0);
}

/* Messages under way when the others begin, and until the buffers are full, are not counted. */
static struct ways pong(double start, double begin, double end, int peer)
{
    struct ways w = {0};
    double sent;

    do {
        MPI_Recv(&sent, 1, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double now = MPI_Wtime(), way = now - sent;
        if (sent > 0 && now < start) {
            w.quiet = !w.quiet || way < w.quiet ? way : w.quiet;
        } else if (sent >= begin && now < end) {
            w.worst = way > w.worst ? way : w.worst;
            w.n++;
        }
        MPI_Send(&sent, 1, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD);
    } while (sent > 0);
    return w;
}

/* A few messages of each size at a time, so that all connections are open before the measurement. */
static void warm_up(int peer, bool sends)
{
    double until = MPI_Wtime() + WARM_UP_S;
    char more = 1;

    while (more) {
        for (int i = 0; i < stream.num_sizes; i++)
            if (sends)
                MPI_Send(room, stream.sizes[i], MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
            else
                MPI_Recv(room, stream.largest, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (sends) {
            MPI_Recv(&more, 1, MPI_CHAR, peer, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            more = MPI_Wtime() < until;
            MPI_Send(&more, 1, MPI_CHAR, peer, ANSWER, MPI_COMM_WORLD);
        }
    }
}

static void print_streams(char *const *streams, const double *bytes, const struct ways *ways)
{
    for (int i = 0; i < num_streams; i++) {
        const char *sizes = strchr(streams[i], ',') + 1;
        const struct ways *w = &ways[receiver_of(i)];

        if (w->n > 0)
            printf("ping %.*s %.4f %.4f %.0f\n", (int)(sizes - 1 - streams[i]), streams[i], 1e6 * w->quiet,
                   1e6 * w->worst, w->n);
        printf("stream %.*s %.*s %.0f\n", (int)(sizes - 1 - streams[i]), streams[i], (int)strcspn(sizes, ","), sizes,
               bytes[receiver_of(i)]);
    }
}

int main(int argc, char **argv)
{
    const char *number = getenv("PMIX_RANK");
    int first, size, opt;
    double start = 0, settle, length, mine = 0, *bytes;
    struct ways my_ways = {0}, *ways;

    while ((opt = getopt(argc, argv, "+bsfp:")) != -1) {
        if (opt == '?')
            fail("knows -b, -s, -f and -p");
        fresh |= opt == 'f';
        batches |= opt == 'b';
        sent_batches |= opt == 'b' || opt == 's';
        if (opt == 'p')
            pause_most_s = 1e-6 * atof(optarg);
    }
    first = optind;
    if (!number || argc < first + 4)
        fail("wants its arguments, and mrrun");
    rank = atoi(number);
    if (sscanf(argv[first], "%d:%d", &senders, &receivers) < 1 || senders < 1 || receivers < 1)
        fail("cannot read the number of hosts");
    length = 1e-6 * atof(argv[first + 1]);
    settle = 1e-6 * atof(argv[first + 2]);
    num_streams = argc - first - 3;
    int mine_is = rank % num_streams;
    read_stream(argv[first + 3 + mine_is]);
    bool receives = rank == receiver_of(mine_is), sends = rank == sender_of(mine_is);
    int peer = receives ? sender_of(mine_is) : receiver_of(mine_is);
    setenv("MRMPI_JOBID", stream.job, 1);
    if (!sends && !receives)
        setenv("MRMPI_FABRICD_SOCKET", "/nonexistent", 1);
    room = calloc((size_t)stream.window + 1, (size_t)stream.largest + 1);

    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != (senders + receivers) * num_streams || !room)
        fail("there must be as many ranks on each host as streams");
    bytes = calloc((size_t)size, sizeof *bytes);
    ways = calloc((size_t)size, sizeof *ways);
    if (sends || receives)
        warm_up(peer, sends);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank && getenv("FIRST") && system(getenv("FIRST")))
        fail("the command FIRST failed");
    start = MPI_Wtime() + AHEAD_S;
    MPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (!is_ping())
        sleep_until(start);
    if (sends && is_ping())
        ping_until(start + length, peer);
    else if (receives && is_ping())
        my_ways = pong(start, start + settle, start + length, peer);
    else if (sends)
        send_until(start + length, peer);
    else if (receives)
        mine = receive(start + settle, start + length, peer);
    MPI_Gather(&mine, 1, MPI_DOUBLE, bytes, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Gather(&my_ways, 3, MPI_DOUBLE, ways, 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("window %.9f %.9f\n", start + settle, start + length);
        print_streams(argv + first + 3, bytes, ways);
    }
    MPI_Finalize();
    return 0;
}
