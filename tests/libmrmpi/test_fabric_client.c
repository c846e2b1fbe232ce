/* SPDX-License-Identifier: BSD-3-Clause */
/* The client of fabricd against servers that answer well, wrongly, late or not at all. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "fabricd/proto/proto_state.h"
#include "libmrmpi/base/base.h"
#include "libmrmpi/conn/fabric/client.h"
#include "tests/check.h"

#define SECOND 1000000000ull
#define MS     1000000ull

struct mr_config mr_config;
static unsigned logged;

void mr_log_print(enum mr_log_level level, const char *fmt, ...)
{
    logged++;
}

static uint64_t began_ns;

/* Since the test began. */
uint64_t mr_clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec - began_ns;
}

/* This thread's waits for a processor so far; 0 if unknown to the kernel. */
static uint64_t waited_ns(void)
{
    unsigned long long ns = 0;
    FILE *f = fopen("/proc/thread-self/schedstat", "re");

    if (f) {
        if (fscanf(f, "%*u %llu", &ns) != 1)
            ns = 0;
        fclose(f);
    }
    return ns;
}

static uint64_t waited_before_ns;

/* How soon something has come since the test began: other programs on the same processors are no reason to be late. */
static uint64_t took_ns(void)
{
    return mr_clock_ns() - (waited_ns() - waited_before_ns);
}

static char dir[] = "/tmp/mrmpi-fabric-XXXXXX";
static char path[64];
static int listener = -1;

static struct fd_state good(void)
{
    struct fd_state s = {
        .h = {.magic = FD_MAGIC, .version = FD_VERSION, .type = FD_STATE, .length = FD_STATE_LENGTH(2)},
        .generation = 4,
        .small_max = 4096,
        .verified = 1,
        .sl_small = 1,
        .num_lanes = 2,
        .num_rails = 2,
        .sl_bulk = {2, 3},
        .class_name = "urgent"};

    for (unsigned i = 0; i < 2; i++) {
        snprintf(s.rails[i].device, sizeof s.rails[i].device, "mlx5_%u", i);
        s.rails[i].port = 1;
        s.rails[i].usable = i == 0;
    }
    return s;
}

/* The server's message to its one client, byte for byte; length 0: nothing, the server stays silent. */
static struct fd_state_long reply;
#define answer reply.s
static size_t answer_length;
static bool hang_up;
static struct fd_hello heard;
static int conversation = -1;

static void *serve(void *arg)
{
    conversation = accept(listener, NULL, NULL);
    if (conversation < 0 || recv(conversation, &heard, sizeof heard, 0) != sizeof heard)
        return NULL;
    answer.h.seq = heard.h.seq;
    if (answer_length)
        send(conversation, &answer, answer_length, MSG_NOSIGNAL);
    if (hang_up) {
        close(conversation);
        conversation = -1;
    }
    return NULL;
}

static void listen_here(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    unlink(path);
    listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(listener, 4), 0);
}

static void set_up(void)
{
    began_ns = 0;
    began_ns = mr_clock_ns();
    waited_before_ns = waited_ns();
    mr_config.log_level = MR_LOG_INFO;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/s", dir);
    listen_here();
    answer = good();
    answer_length = answer.h.length;
    hang_up = false;
}

static void tear_down(void)
{
    mr_fabric_close();
    close(listener);
    if (conversation >= 0)
        close(conversation);
    unlink(path);
    rmdir(dir);
}

static int ask(unsigned timeout_ms, struct mr_fabric_qos *q)
{
    pthread_t t;
    int err;

    pthread_create(&t, NULL, serve, NULL);
    err = mr_fabric_open(path, "42", timeout_ms, q);
    pthread_join(t, NULL);
    return err;
}

static void expect_defaults(const struct mr_fabric_qos *q)
{
    ck_assert_uint_eq(q->level[MR_LEVEL_SMALL].sl[0], 0);
    ck_assert_uint_eq(q->level[MR_LEVEL_BULK].num_lanes, 1);
    ck_assert_uint_eq(q->level[MR_LEVEL_BULK].sl[0], 0);
    ck_assert_uint_eq(q->generation, 0);
    ck_assert_str_eq(q->class_name, "");
}

START_TEST(a_good_answer)
{
    struct mr_fabric_qos q;

    ck_assert_int_eq(ask(2000, &q), 0);
    ck_assert_str_eq(heard.job, "42");
    ck_assert_uint_eq(heard.flags, FD_HELLO_SUBSCRIBE | FD_HELLO_LEVELS | FD_HELLO_PLACES | FD_HELLO_SPREAD |
                                       FD_HELLO_PACE | FD_HELLO_HEALTH | FD_HELLO_PATHS);
    ck_assert_uint_eq(q.level[MR_LEVEL_SMALL].sl[0], 1);
    ck_assert_uint_eq(q.level[MR_LEVEL_BULK].num_lanes, 2);
    ck_assert_uint_eq(q.level[MR_LEVEL_BULK].sl[0], 2);
    ck_assert_uint_eq(q.level[MR_LEVEL_BULK].sl[1], 3);
    ck_assert_uint_eq(q.level[MR_LEVEL_SMALL].max, 4096);
    ck_assert(q.verified);
    ck_assert_str_eq(q.class_name, "urgent");
    ck_assert(!mr_fabric_rejects("mlx5_0", 1, NULL));
    ck_assert(mr_fabric_rejects("mlx5_1", 1, NULL));
    ck_assert(!mr_fabric_rejects("mlx5_1", 2, NULL)); /* never heard of */
}
END_TEST

static void tell_pace(uint32_t first, uint32_t second, size_t len)
{
    struct fd_pace m = {.h = {FD_MAGIC, FD_VERSION, FD_PACE, (uint32_t)len, 0}, .rate_kb = {first, second}};

    ck_assert_int_eq(send(conversation, &m, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* How fast each rail may be read over; the other way, how much is. It holds as long as the daemon is there. */
START_TEST(pace)
{
    struct mr_fabric_qos q;
    struct fd_reads m;

    ck_assert(!mr_fabric_tell_reads(1));
    ck_assert_int_eq(ask(2000, &q), 0);
    ck_assert(!mr_fabric_pace_news());
    ck_assert_uint_eq(mr_fabric_pace("mlx5_0", 1), 0);
    tell_pace(1500, 7, sizeof(struct fd_pace));
    ck_assert(!mr_fabric_news(&q, SECOND)); /* unchanged levels */
    ck_assert(mr_fabric_pace_news());
    ck_assert(!mr_fabric_pace_news());
    ck_assert_uint_eq(mr_fabric_pace("mlx5_0", 1), 1500);
    ck_assert_uint_eq(mr_fabric_pace("mlx5_1", 1), 7);
    ck_assert_uint_eq(mr_fabric_pace("mlx5_1", 2), 0); /* never heard of */
    tell_pace(1500, 7, sizeof(struct fd_pace));
    ck_assert(!mr_fabric_news(&q, SECOND));
    ck_assert(!mr_fabric_pace_news());
    ck_assert(mr_fabric_tell_reads(MR_FABRIC_READS_ALL));
    ck_assert_int_eq(recv(conversation, &m, sizeof m, 0), sizeof m);
    ck_assert_uint_eq(m.h.type, FD_READS);
    ck_assert_uint_eq(m.h.length, sizeof m);
    ck_assert_uint_eq(m.want_kb, FD_READS_ALL);
    if (_i)
        tell_pace(1, 1, sizeof(struct fd_pace) - 4); /* invalid pace */
    else
        close(conversation);
    ck_assert(!mr_fabric_news(&q, SECOND));
    ck_assert(mr_fabric_pace_news());
    ck_assert_uint_eq(mr_fabric_pace("mlx5_0", 1), 0);
    ck_assert(!mr_fabric_tell_reads(1));
    ck_assert_str_eq(q.class_name, "urgent");
    if (!_i)
        conversation = -1;
}
END_TEST

static void add_levels(unsigned n)
{
    static const struct fd_level level[] = {{.max = 16384, .num_lanes = 1, .sl = {4}},
                                            {.max = 65536, .num_lanes = 2, .sl = {5, 6}},
                                            {.max = 131072, .num_lanes = 1, .sl = {7}}};

    memcpy(fd_state_levels(&answer), level, n * sizeof *level);
    answer.h.length = (uint32_t)(answer_length += n * sizeof *level);
}

static unsigned level_of(const struct mr_fabric_qos *q, uint32_t payload)
{
    return mr_fabric_level_of(q, payload);
}

static void add_spread(const char *small, const char *large)
{
    struct fd_spread s = {.small = ""};

    snprintf(s.small, sizeof s.small, "%s", small);
    snprintf(s.large, sizeof s.large, "%s", large);
    memcpy((char *)&answer + answer_length, &s, sizeof s);
    answer.h.length = (uint32_t)(answer_length += sizeof s);
}

/* With any number of levels before. */
START_TEST(spread_over_rails)
{
    struct mr_fabric_qos q;

    add_levels((unsigned)_i);
    add_spread("near", "");
    ck_assert_int_eq(ask(2000, &q), 0);
    ck_assert_str_eq(q.spread[0], "near");
    ck_assert_str_eq(q.spread[1], "");
    ck_assert_uint_eq(level_of(&q, 4097), _i ? 1 : MR_LEVEL_PACKETS);
}
END_TEST

START_TEST(lies_of_spread)
{
    struct mr_fabric_qos q;

    add_spread("near", "even");
    memset((char *)&answer + answer_length - (_i ? sizeof(struct fd_spread) : FD_SPREAD_MAX), 'x', FD_SPREAD_MAX);
    ck_assert_int_eq(ask(2000, &q), -EPROTO);
    expect_defaults(&q);
    ck_assert_str_eq(q.spread[0], "");
}
END_TEST

static void add_health(unsigned weight)
{
    struct fd_health h = {.rail[0] = {.weight = FD_HEALTHY},
                          .rail[1] = {.weight = (uint16_t)weight, .state = FD_RAIL_BAD}};

    memcpy((char *)&answer + answer_length, &h, sizeof h);
    answer.h.length = (uint32_t)(answer_length += sizeof h);
}

/* With any number of levels and a spread before, or without; a rail not in the answer counts as healthy. */
START_TEST(health_of_rails)
{
    struct mr_fabric_qos q;
    struct fd_seen m;
    const char *state, *device;
    unsigned weight;
    int port;

    add_levels((unsigned)_i / 2);
    if (_i % 2)
        add_spread("near", "");
    ck_assert(!mr_fabric_tell_seen("mlx5_1", 1, 2, 3));
    add_health(100);
    ck_assert_int_eq(ask(2000, &q), 0);
    ck_assert_str_eq(q.spread[0], _i % 2 ? "near" : "");
    ck_assert_uint_eq(mr_fabric_health("mlx5_0", 1, &state), MR_FABRIC_HEALTHY);
    ck_assert_str_eq(state, "healthy");
    ck_assert_uint_eq(mr_fabric_health("mlx5_1", 1, &state), 100);
    ck_assert_str_eq(state, "bad");
    ck_assert_uint_eq(mr_fabric_health("mlx5_1", 2, &state), MR_FABRIC_HEALTHY);
    ck_assert(mr_fabric_rail(1, &device, &port, &weight, &state) && weight == 100);
    ck_assert(!mr_fabric_rail(2, &device, &port, &weight, &state));
    ck_assert(mr_fabric_tell_seen("mlx5_1", 1, 2, 3));
    ck_assert_int_eq(recv(conversation, &m, sizeof m, 0), sizeof m);
    ck_assert(m.h.type == FD_SEEN && m.h.length == sizeof m && m.port == 1 && m.broken == 2 && m.resent == 3);
    ck_assert_str_eq(m.device, "mlx5_1");
}
END_TEST

/* A daemon without health; a daemon with wrong data. */
START_TEST(no_health)
{
    struct mr_fabric_qos q;
    const char *state;

    if (_i)
        add_health(FD_HEALTHY + 1);
    ck_assert_int_eq(ask(2000, &q), _i ? -EPROTO : 0);
    ck_assert_uint_eq(mr_fabric_health("mlx5_1", 1, &state), MR_FABRIC_HEALTHY);
    ck_assert(!mr_fabric_tell_seen("mlx5_1", 1, 2, 3)); /* whom nobody asked to know */
}
END_TEST

/* From a daemon without such levels, or a class without. */
START_TEST(no_levels_between)
{
    struct mr_fabric_qos q;

    ck_assert_int_eq(ask(2000, &q), 0);
    ck_assert_uint_eq(level_of(&q, 4096), MR_LEVEL_SMALL);
    ck_assert_uint_eq(level_of(&q, 4097), MR_LEVEL_PACKETS);
    for (unsigned l = 1; l <= MR_LEVEL_BULK; l++) {
        ck_assert_uint_eq(q.level[l].num_lanes, 2); /* of large messages */
        ck_assert_uint_eq(q.level[l].sl[1], 3);
    }
}
END_TEST

START_TEST(one_level_between)
{
    struct mr_fabric_qos q;

    add_levels(1);
    ck_assert_int_eq(ask(2000, &q), 0);
    ck_assert_uint_eq(level_of(&q, 0), MR_LEVEL_SMALL);
    ck_assert_uint_eq(level_of(&q, 4097), 1);
    ck_assert_uint_eq(level_of(&q, 16384), 1);
    ck_assert_uint_eq(level_of(&q, 16385), MR_LEVEL_PACKETS);
    ck_assert_uint_eq(level_of(&q, UINT32_MAX), MR_LEVEL_PACKETS);
    ck_assert_uint_eq(q.level[MR_LEVEL_SMALL].sl[0], 1);
    ck_assert_uint_eq(q.level[1].sl[0], 4);
    ck_assert_uint_eq(q.level[2].sl[0], 2);
    ck_assert_uint_eq(q.level[MR_LEVEL_PACKETS].sl[0], 2);
    ck_assert_uint_eq(q.level[MR_LEVEL_BULK].sl[0], 2);
    ck_assert(mr_fabric_rejects("mlx5_1", 1, NULL)); /* rails are still read */
}
END_TEST

START_TEST(two_levels_between)
{
    struct mr_fabric_qos q;

    add_levels(2);
    ck_assert_int_eq(ask(2000, &q), 0);
    ck_assert_uint_eq(level_of(&q, 16385), 2);
    ck_assert_uint_eq(level_of(&q, 65537), MR_LEVEL_PACKETS);
    ck_assert_uint_eq(q.level[2].num_lanes, 2);
    ck_assert_uint_eq(q.level[2].sl[1], 6);
}
END_TEST

START_TEST(lies_of_levels)
{
    struct mr_fabric_qos q;
    struct fd_level *level = fd_state_levels(&answer);

    add_levels(_i == 0 ? 3 : 2);
    switch (_i) {
    case 1:
        level[0].max = answer.small_max;
        break;
    case 2:
        level[1].max = level[0].max;
        break;
    case 3:
        level[1].sl[1] = 16;
        break;
    case 4:
        level[0].num_lanes = 0;
        break;
    case 5:
        level[0].num_lanes = 9;
        break;
    case 6:
        answer.h.length = (uint32_t)--answer_length;
        break;
    case 7:
        answer_length -= sizeof *level;
        break;
    }
    ck_assert_int_eq(ask(2000, &q), -EPROTO);
    expect_defaults(&q);
}
END_TEST

START_TEST(no_policy)
{
    struct mr_fabric_qos q;

    answer.status = -ENOENT;
    ck_assert_int_eq(ask(2000, &q), 0);
    expect_defaults(&q);
}
END_TEST

START_TEST(no_daemon)
{
    struct mr_fabric_qos q;

    ck_assert_int_eq(mr_fabric_open("/nonexistent/%h", "1", 2000, &q), -ENOENT);
    expect_defaults(&q);
    ck_assert_int_eq(mr_fabric_open("", "1", 2000, &q), -ENOENT);
    ck_assert(!mr_fabric_news(&q, 100 * SECOND)); /* none is wanted */
    close(listener);
    ck_assert_int_eq(mr_fabric_open(path, "1", 2000, &q), -ECONNREFUSED);
    ck_assert(!mr_fabric_news(&q, 100 * SECOND));
    ck_assert_uint_eq(logged, 0); /* the caller reports the error */
}
END_TEST

/* ---- late answers ------------------------------------------------------------------------------------------------ */

static bool somebody_waits(void)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static void expect_found(struct mr_fabric_qos *q, uint64_t now)
{
    bool news;

    ck_assert(somebody_waits());
    serve(NULL);
    ck_assert_str_eq(heard.job, "42");
    news = mr_fabric_news(q, now);
    ck_assert_int_eq(news, answer_length > 0);
    if (news)
        ck_assert_uint_eq(q->level[MR_LEVEL_SMALL].sl[0], answer.sl_small);
}

/* The hello is not repeated: a late message is its answer. */
START_TEST(a_late_answer)
{
    struct mr_fabric_qos q;
    struct fd_state s = good();

    answer_length = 0;
    ck_assert_int_eq(ask(100, &q), -ETIMEDOUT);
    ck_assert_uint_lt(took_ns(), SECOND);
    expect_defaults(&q);
    for (unsigned i = 0; i < 100; i++)
        ck_assert(!mr_fabric_news(&q, i * SECOND));
    ck_assert(!somebody_waits());
    ck_assert(!mr_fabric_rejects("mlx5_1", 1, NULL));
    ck_assert_int_eq(mr_fabric_ask_place("mlx5_1", 2, 5), -EOPNOTSUPP);
    ck_assert_uint_eq(mr_fabric_messages(), 0);
    s.h.seq = heard.h.seq;
    s.changed = FD_CAN_PLACES;
    s.messages = 6553;
    send(conversation, &s, s.h.length, 0);
    ck_assert(mr_fabric_news(&q, 100 * SECOND));
    ck_assert_str_eq(q.class_name, "urgent");
    ck_assert_uint_eq(q.level[MR_LEVEL_BULK].sl[1], 3);
    ck_assert_uint_eq(mr_fabric_messages(), 6553);
    ck_assert(mr_fabric_rejects("mlx5_1", 1, NULL));
    ck_assert_int_eq(mr_fabric_ask_place("mlx5_1", 2, 5), 0);
    s.h.seq = 0;
    s.sl_small = 9;
    s.messages = 0;
    send(conversation, &s, s.h.length, 0); /* as to any subscriber */
    ck_assert(mr_fabric_news(&q, 100 * SECOND));
    ck_assert_uint_eq(q.level[MR_LEVEL_SMALL].sl[0], 9);
    ck_assert_uint_eq(q.level[MR_LEVEL_SMALL].num_lanes, 1);
    s.sl_small = s.sl_bulk[0]; /* without a level of their own they have all of bulk's */
    send(conversation, &s, s.h.length, 0);
    ck_assert(mr_fabric_news(&q, 100 * SECOND));
    ck_assert_uint_eq(q.level[MR_LEVEL_SMALL].num_lanes, s.num_lanes);
    ck_assert_mem_eq(q.level[MR_LEVEL_SMALL].sl, s.sl_bulk, s.num_lanes);
    ck_assert_uint_eq(mr_fabric_messages(), 0);
    ck_assert_uint_eq(logged, 1);
}
END_TEST

/* Or no answer comes. */
START_TEST(a_late_lie)
{
    struct mr_fabric_qos q;
    struct fd_state s = good();

    answer_length = 0;
    ck_assert_int_eq(ask(100, &q), -ETIMEDOUT);
    s.num_lanes = 0;
    if (_i)
        send(conversation, &s, s.h.length, 0);
    else
        close(conversation);
    ck_assert(!mr_fabric_news(&q, 10 * SECOND));
    ck_assert(!mr_fabric_news(&q, 10 * SECOND + 40 * MS));
    ck_assert(!somebody_waits());
    ck_assert(!mr_fabric_news(&q, 10 * SECOND + 60 * MS));
    ck_assert_int_eq(somebody_waits(), !_i); /* a daemon that sends nonsense will do so for a while */
    ck_assert(!mr_fabric_news(&q, 16 * SECOND));
    ck_assert_uint_eq(logged, 0);
    answer_length = answer.h.length;
    if (_i)
        close(conversation);
    expect_found(&q, 16 * SECOND);
    ck_assert_uint_eq(logged, 1);
}
END_TEST

START_TEST(started_later)
{
    struct mr_fabric_qos q;

    close(listener);
    unlink(path);
    ck_assert_int_eq(mr_fabric_open(path, "42", 2000, &q), -ENOENT);
    listen_here();
    for (uint64_t now = SECOND; now < 5 * SECOND; now += MS)
        ck_assert(!mr_fabric_news(&q, now));
    ck_assert(!somebody_waits());
    mr_fabric_news(&q, 7 * SECOND);
    expect_found(&q, 7 * SECOND);
    ck_assert_uint_eq(logged, 1);
}
END_TEST

/* Nobody listens, but somebody has: it is being started again. */
START_TEST(started_again)
{
    struct mr_fabric_qos q;

    close(listener);
    ck_assert_int_eq(mr_fabric_open(path, "42", 2000, &q), -ECONNREFUSED);
    listen_here();
    ck_assert(!mr_fabric_news(&q, 2 * SECOND));
    expect_found(&q, 2 * SECOND);
}
END_TEST

START_TEST(a_full_queue)
{
    struct mr_fabric_qos q;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int before[16], n = 0, fd;

    ck_assert_int_eq(listen(listener, 0), 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    do
        before[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
    while (!connect(before[n++], (struct sockaddr *)&a, sizeof a) && n < 16);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(mr_fabric_open(path, "42", 200, &q), -ETIMEDOUT);
    ck_assert_uint_lt(took_ns(), SECOND);
    ck_assert(!mr_fabric_news(&q, 2 * SECOND)); /* does not wait */
    ck_assert_uint_lt(took_ns(), SECOND);
    while (n > 0)
        close(before[--n]);
    while (somebody_waits() && (fd = accept(listener, NULL, NULL)) >= 0)
        close(fd);
    ck_assert(!mr_fabric_news(&q, 2 * SECOND + 90 * MS));
    ck_assert(!somebody_waits());
    ck_assert(!mr_fabric_news(&q, 2 * SECOND + 110 * MS));
    expect_found(&q, 2 * SECOND + 110 * MS);
}
END_TEST

/* 0.05, 0.1, 0.2 ... 3.2 seconds after the last time, and then every five. */
START_TEST(hangs_up_always)
{
    static const uint64_t pause[] = {50, 100, 200, 400, 800, 1600, 3200, 5000, 5000};
    struct mr_fabric_qos q;
    uint64_t now = 10 * SECOND;

    answer_length = 0;
    hang_up = true;
    ck_assert_int_eq(ask(2000, &q), -ECONNRESET);
    for (unsigned i = 1; i < sizeof pause / sizeof *pause; i++) {
        ck_assert(!mr_fabric_news(&q, now));
        expect_found(&q, now);
        ck_assert(!mr_fabric_news(&q, now + (pause[i] - 1) * MS));
        ck_assert(!somebody_waits());
        now += pause[i] * MS;
    }
    expect_defaults(&q);
    ck_assert_uint_eq(logged, 0);
}
END_TEST

static void on_alarm(int sig)
{
}

/* Not even where a profiler's signal comes more often than the wait is long. */
START_TEST(a_silent_daemon_and_signals)
{
    struct itimerval often = {{.tv_usec = 10000}, {.tv_usec = 10000}};
    struct sigaction act = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct mr_fabric_qos q;
    sigset_t set;

    answer_length = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    ck_assert_int_eq(mr_fabric_open(path, "42", 200, &q), -ETIMEDOUT);
    ck_assert_uint_lt(took_ns(), SECOND);
    sigprocmask(SIG_BLOCK, &set, NULL);
    answer_length = answer.h.length;
    expect_found(&q, SECOND);
}
END_TEST

START_TEST(a_daemon_that_hangs_up)
{
    struct mr_fabric_qos q;

    answer_length = 0;
    hang_up = true;
    ck_assert_int_eq(ask(2000, &q), -ECONNRESET);
}
END_TEST

/* Each lie by itself. */
START_TEST(lies)
{
    struct mr_fabric_qos q;

    switch (_i) {
    case 0:
        answer.h.magic ^= 1;
        break;
    case 1:
        answer.h.version++;
        break;
    case 2:
        answer.h.type = FD_DONE;
        break;
    case 3:
        answer.h.length--;
        break;
    case 4:
        answer_length--;
        break;
    case 5:
        answer_length = sizeof(struct fd_header);
        break;
    case 6:
        answer.num_rails = 200;
        break;
    case 7:
        answer.num_rails = 1;
        break;
    case 8:
        answer.sl_small = 16;
        break;
    case 9:
        answer.num_lanes = 0;
        break;
    case 10:
        answer.num_lanes = 9;
        break;
    case 11:
        answer.sl_bulk[1] = 99;
        break;
    case 12:
        memset(answer.class_name, 'x', sizeof answer.class_name);
        break;
    case 13:
        memset(answer.rails[1].device, 'x', sizeof answer.rails[1].device);
        break;
    case 14:
        answer_length = 1;
        break;
    }
    ck_assert_int_eq(ask(2000, &q), -EPROTO);
    expect_defaults(&q);
    ck_assert(!mr_fabric_rejects("mlx5_1", 1, NULL));
}
END_TEST

START_TEST(news)
{
    struct mr_fabric_qos q;
    struct fd_state s = good();

    ck_assert_int_eq(ask(2000, &q), 0);
    ck_assert(!mr_fabric_news(&q, SECOND));
    s.sl_small = 5;
    send(conversation, &s, s.h.length, 0);
    s.sl_small = 6;
    send(conversation, &s, s.h.length, 0);
    ck_assert(mr_fabric_news(&q, SECOND));
    ck_assert_uint_eq(q.level[MR_LEVEL_SMALL].sl[0], 6); /* the last word counts */
    s.num_lanes = 0;
    send(conversation, &s, s.h.length, 0);
    ck_assert(!mr_fabric_news(&q, SECOND)); /* nonsense: not listened to any more */
    ck_assert_uint_eq(q.level[MR_LEVEL_SMALL].sl[0], 6);
}
END_TEST

static struct fd_place place(uint64_t guid, uint16_t lid)
{
    return (struct fd_place){
        .h = {.magic = FD_MAGIC, .version = FD_VERSION, .type = FD_PLACE, .length = sizeof(struct fd_place)},
        .guid = guid,
        .lid = lid,
        .lmc = 2};
}

static void tell(struct fd_place p)
{
    ck_assert_int_eq(send(conversation, &p, sizeof p, 0), sizeof p);
}

START_TEST(places)
{
    struct mr_fabric_qos q;
    struct mr_fabric_place got;
    struct fd_where asked;
    struct fd_place unknown = place(7, 0);

    answer.changed = FD_CAN_PLACES;
    ck_assert_int_eq(ask(2000, &q), 0);
    ck_assert_int_eq(mr_fabric_ask_place("mlx5_1", 2, 0x123456789abcdef0), 0);
    ck_assert_int_eq(recv(conversation, &asked, sizeof asked, 0), sizeof asked);
    ck_assert_int_eq(asked.h.type, FD_WHERE);
    ck_assert_uint_eq(asked.h.length, sizeof asked);
    ck_assert_str_eq(asked.device, "mlx5_1");
    ck_assert_uint_eq(asked.port, 2);
    ck_assert_uint_eq(asked.guid, 0x123456789abcdef0);
    ck_assert(!mr_fabric_place(&got));
    unknown.status = -ENOENT;
    tell(unknown);
    tell(place(5, 0xbfff));
    tell(place(6, 1));
    ck_assert(!mr_fabric_news(&q, SECOND)); /* no service level is another one */
    ck_assert(mr_fabric_place(&got) && got.guid == 5 && got.lid == 0xbfff && got.lmc == 2);
    ck_assert(mr_fabric_place(&got) && got.guid == 6 && got.lid == 1);
    ck_assert(!mr_fabric_place(&got));
    for (unsigned i = 0; i < 100; i++) /* more than anybody takes */
        tell(place(i, 1));
    mr_fabric_news(&q, SECOND);
    for (unsigned i = 0; mr_fabric_place(&got); i++)
        ck_assert(got.guid == i && i < 100);
    ck_assert_uint_ge(got.guid, 16);
    ck_assert_int_eq(mr_fabric_ask_place("mlx5_1", 2, 1), 0); /* the connection lives */
}
END_TEST

/* Such a place is invalid, and so is a place from a daemon that did not announce places. */
START_TEST(lies_of_places)
{
    struct mr_fabric_qos q;
    struct mr_fabric_place got;
    struct fd_place p = place(5, 9);

    answer.changed = _i ? FD_CAN_PLACES : 0;
    ck_assert_int_eq(ask(2000, &q), 0);
    switch (_i) {
    case 1:
        p.lid = 0;
        break;
    case 2:
        p.lid = 0xc000;
        break;
    case 3:
        p.lmc = 8;
        break;
    case 4:
        p.h.length++;
        break;
    }
    ck_assert_int_eq(mr_fabric_ask_place("mlx5_1", 2, 5), _i ? 0 : -EOPNOTSUPP);
    tell(p);
    ck_assert(!mr_fabric_news(&q, SECOND));
    ck_assert(!mr_fabric_place(&got));
    ck_assert_int_eq(mr_fabric_ask_place("mlx5_1", 2, 5), -EOPNOTSUPP); /* not listened to any more */
}
END_TEST

static struct fd_disjoint disjoint(uint16_t lid)
{
    return (struct fd_disjoint){
        .h = {.magic = FD_MAGIC, .version = FD_VERSION, .type = FD_DISJOINT, .length = sizeof(struct fd_disjoint)},
        .device = "mlx5_1",
        .port = 2,
        .num = 2,
        .lid = lid,
        .path = {0, 3}};
}

static void tell_paths(struct fd_disjoint d)
{
    ck_assert_int_eq(send(conversation, &d, sizeof d, 0), sizeof d);
}

START_TEST(paths)
{
    struct mr_fabric_qos q;
    struct mr_fabric_paths got;
    struct fd_paths asked;
    struct fd_disjoint unknown = disjoint(7);
    unsigned n = 0;

    answer.changed = FD_CAN_PATHS;
    ck_assert_int_eq(ask(2000, &q), 0);
    ck_assert(heard.flags & FD_HELLO_PATHS);
    ck_assert_int_eq(mr_fabric_ask_paths("mlx5_1", 2, 8, 3), 0);
    ck_assert_int_eq(recv(conversation, &asked, sizeof asked, 0), sizeof asked);
    ck_assert_int_eq(asked.h.type, FD_PATHS);
    ck_assert_uint_eq(asked.h.length, sizeof asked);
    ck_assert_str_eq(asked.device, "mlx5_1");
    ck_assert(asked.port == 2 && asked.lid == 8 && asked.lmc == 3);
    ck_assert(!mr_fabric_paths(&got));
    unknown.status = -EBUSY;
    tell_paths(unknown);
    tell_paths(disjoint(8));
    ck_assert(!mr_fabric_news(&q, SECOND)); /* no service level is another one */
    ck_assert(mr_fabric_paths(&got) && got.lid == 7 && got.status == -EBUSY && !got.set);
    ck_assert(mr_fabric_paths(&got) && got.lid == 8 && !got.status && got.port == 2 && got.set == 9);
    ck_assert_str_eq(got.device, "mlx5_1");
    ck_assert(!mr_fabric_paths(&got));
    for (unsigned i = 0; i < 100; i++) /* none is lost, however many come at a time */
        tell_paths(disjoint((uint16_t)(8 + i)));
    for (unsigned looks = 0; looks < 8; looks++) {
        mr_fabric_news(&q, SECOND);
        for (; mr_fabric_paths(&got); n++)
            ck_assert_uint_eq(got.lid, 8 + n);
    }
    ck_assert_uint_eq(n, 100);
}
END_TEST

/* Such an answer is invalid, and so is one from a daemon that did not announce paths. */
START_TEST(lies_of_paths)
{
    struct mr_fabric_qos q;
    struct mr_fabric_paths got;
    struct fd_disjoint d = disjoint(8);

    answer.changed = _i ? FD_CAN_PATHS : 0;
    ck_assert_int_eq(ask(2000, &q), 0);
    switch (_i) {
    case 1:
        d.num = 0;
        break;
    case 2:
        d.num = FD_PATHS_MAX + 1;
        break;
    case 3:
        d.path[0] = 1;
        break;
    case 4:
        d.path[1] = FD_PATHS_MAX;
        break;
    case 5:
        d.h.length++;
        break;
    case 6:
        memset(d.device, 'x', sizeof d.device);
        break;
    }
    ck_assert_int_eq(mr_fabric_ask_paths("mlx5_1", 2, 8, 1), _i ? 0 : -EOPNOTSUPP);
    tell_paths(d);
    ck_assert(!mr_fabric_news(&q, SECOND));
    ck_assert(!mr_fabric_paths(&got));
    ck_assert_int_eq(mr_fabric_ask_paths("mlx5_1", 2, 8, 1), -EOPNOTSUPP); /* not listened to any more */
}
END_TEST

START_TEST(comes_back)
{
    struct mr_fabric_qos q;
    pthread_t t;

    hang_up = true;
    ck_assert_int_eq(ask(2000, &q), 0);
    ck_assert(!mr_fabric_news(&q, SECOND)); /* detects the end of the connection */
    ck_assert_uint_eq(q.level[MR_LEVEL_SMALL].sl[0], 1);
    answer.sl_small = 7;
    hang_up = false;
    ck_assert(!mr_fabric_news(&q, 2 * SECOND)); /* not yet */
    pthread_create(&t, NULL, serve, NULL);
    mr_fabric_news(&q, 10 * SECOND);
    pthread_join(t, NULL);
    mr_fabric_news(&q, 10 * SECOND);
    ck_assert_uint_eq(q.level[MR_LEVEL_SMALL].sl[0], 7);
    ck_assert_uint_eq(logged, 2);
}
END_TEST

START_TEST(path_too_long)
{
    struct mr_fabric_qos q;
    char longer[300];

    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    ck_assert_int_eq(mr_fabric_open(longer, "1", 100, &q), -ENAMETOOLONG);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("fabric_client");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_good_answer);
    tcase_add_loop_test(t, pace, 0, 2);
    tcase_add_test(t, no_levels_between);
    tcase_add_test(t, one_level_between);
    tcase_add_test(t, two_levels_between);
    tcase_add_loop_test(t, lies_of_levels, 0, 8);
    tcase_add_loop_test(t, spread_over_rails, 0, 3);
    tcase_add_loop_test(t, lies_of_spread, 0, 2);
    tcase_add_loop_test(t, health_of_rails, 0, 6);
    tcase_add_loop_test(t, no_health, 0, 2);
    tcase_add_test(t, no_policy);
    tcase_add_test(t, no_daemon);
    tcase_add_test(t, a_late_answer);
    tcase_add_loop_test(t, a_late_lie, 0, 2);
    tcase_add_test(t, started_later);
    tcase_add_test(t, started_again);
    tcase_add_test(t, a_full_queue);
    tcase_add_test(t, hangs_up_always);
    tcase_add_test(t, a_silent_daemon_and_signals);
    tcase_add_test(t, a_daemon_that_hangs_up);
    tcase_add_loop_test(t, lies, 0, 15);
    tcase_add_test(t, news);
    tcase_add_test(t, places);
    tcase_add_loop_test(t, lies_of_places, 0, 5);
    tcase_add_test(t, paths);
    tcase_add_loop_test(t, lies_of_paths, 0, 7);
    tcase_add_test(t, comes_back);
    tcase_add_test(t, path_too_long);
    return check_run(t, NULL);
}
