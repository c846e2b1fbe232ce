/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines from several ranks into one output (mrrun/output), and the meaning of a rank's end (mrrun/verdict). */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mrrun/output.h"
#include "mrrun/verdict.h"
#include "tests/check.h"

static struct sink sink;

static void feed(struct source *src, const char *text)
{
    source_feed(src, text, strlen(text));
}

static void holds(const char *want)
{
    ck_assert_uint_eq(sink.len, strlen(want));
    if (sink.len)
        ck_assert_mem_eq(sink.bytes + sink.start, want, sink.len);
}

/* In place of the C library's poll: says once that a descriptor is writable, in any case. */
static bool lie;

__attribute__((visibility("default"))) int poll(struct pollfd *set, nfds_t count, int timeout_ms)
{
    const struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000};

    if (!lie)
        return ppoll(set, count, timeout_ms < 0 ? NULL : &timeout, NULL);
    lie = false;
    set->revents = POLLOUT;
    return 1;
}

/* Between poll() and write() somebody else takes the space. */
START_TEST(full_pipe)
{
    char bytes[4096] = {0};
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    while (write(fds[1], bytes, sizeof(bytes)) > 0)
        continue;
    fcntl(fds[1], F_SETFL, 0);
    sink_init(&sink, fds[1]);
    sink_put(&sink, "late\n", 5);
    lie = true;
    alarm(10); /* a write that blocks ends the test */
    sink_flush(&sink);
    alarm(0);
    holds("late\n");
    ck_assert_int_eq(fcntl(fds[1], F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(read(fds[0], bytes, sizeof(bytes)), sizeof(bytes));
    sink_flush(&sink);
    ck_assert_uint_eq(sink.len, 0);
    ck_assert(!sink.broken);
    sink_clear(&sink);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

START_TEST(lines_stay_whole)
{
    struct source a = {.fd = -1, .sink = &sink}, b = {.fd = -1, .sink = &sink};

    sink_init(&sink, -1);
    feed(&a, "al");
    feed(&b, "be");
    feed(&a, "pha\nbet");
    feed(&b, "ta\n");
    holds("alpha\nbeta\n");
    feed(&a, "a\n\n");
    source_finish(&a);
    source_finish(&b);
    holds("alpha\nbeta\nbeta\n\n");
    sink_clear(&sink);
}
END_TEST

START_TEST(last_line_without_newline)
{
    struct source a = {.fd = -1, .sink = &sink};

    sink_init(&sink, -1);
    feed(&a, "no newline");
    holds("");
    source_finish(&a);
    holds("no newline");
    sink_clear(&sink);
}
END_TEST

START_TEST(labels)
{
    struct source a = {.fd = -1, .sink = &sink, .label = "[0] "}, b = {.fd = -1, .sink = &sink, .label = "[12] "};

    sink_init(&sink, -1);
    feed(&a, "x\ny");
    feed(&b, "z");
    source_finish(&b);
    source_finish(&a);
    holds("[0] x\n[12] z\n[0] y\n");
    sink_clear(&sink);
}
END_TEST

START_TEST(long_lines_lose_nothing)
{
    struct source a = {.fd = -1, .sink = &sink};
    size_t len = 3 * OUTPUT_LINE_MAX + 17;
    char *line = malloc(len + 1);

    for (size_t i = 0; i < len; i++)
        line[i] = 'a' + i % 26;
    line[len] = '\n';
    sink_init(&sink, -1);
    for (size_t done = 0; done <= len; done += 1000)
        source_feed(&a, line + done, len + 1 - done < 1000 ? len + 1 - done : 1000);
    ck_assert_uint_eq(sink.len, len + 1);
    ck_assert_mem_eq(sink.bytes + sink.start, line, len + 1);
    ck_assert(sink_full(&sink) == (sink.len >= OUTPUT_SINK_HIGH));
    source_finish(&a);
    sink_clear(&sink);
    free(line);
}
END_TEST

/* A pipe of 64 KiB takes its capacity, flush does not block, and the rest comes after the reader has read. */
START_TEST(slow_reader)
{
    int fds[2];
    char chunk[8192];
    size_t total = 200000, got = 0;

    ck_assert_int_eq(pipe(fds), 0);
    sink_init(&sink, fds[1]);
    for (size_t i = 0; i < total; i++)
        sink_put(&sink, &"0123456789"[i % 10], 1);
    sink_flush(&sink);
    ck_assert_uint_gt(sink.len, 0);
    while (got < total) {
        ssize_t n = read(fds[0], chunk, sizeof(chunk));
        ck_assert_int_gt(n, 0);
        for (ssize_t i = 0; i < n; i++)
            ck_assert_int_eq(chunk[i], '0' + (got + i) % 10);
        got += n;
        sink_flush(&sink);
    }
    ck_assert_uint_eq(sink.len, 0);
    close(fds[0]);
    signal(SIGPIPE, SIG_IGN);
    sink_put(&sink, "x", 1);
    sink_flush(&sink);
    ck_assert(sink.broken);
    close(fds[1]);
    sink_clear(&sink);
}
END_TEST

START_TEST(verdicts)
{
    int killed = SIGSEGV, code = W_EXITCODE(3, 0), fine = W_EXITCODE(0, 0);
    char text[80];

    ck_assert_int_eq(verdict_of(true, true, killed), VERDICT_SIGNAL);
    ck_assert_int_eq(verdict_of(false, false, killed), VERDICT_SIGNAL);
    ck_assert_int_eq(verdict_of(true, true, code), VERDICT_FINE);
    ck_assert_int_eq(verdict_of(true, false, code), VERDICT_CODE);
    ck_assert_int_eq(verdict_of(false, false, code), VERDICT_PLAIN_CODE);
    ck_assert_int_eq(verdict_of(true, false, fine), VERDICT_NO_FINALIZE);
    ck_assert_int_eq(verdict_of(false, false, fine), VERDICT_FINE);
    ck_assert_int_eq(verdict_exit_status(killed), 139);
    ck_assert_int_eq(verdict_exit_status(code), 3);
    verdict_describe(VERDICT_SIGNAL, killed, text, sizeof(text));
    ck_assert_str_eq(text, "was killed by signal 11 (SIGSEGV)");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("output");

    tcase_add_test(tc, lines_stay_whole);
    tcase_add_test(tc, last_line_without_newline);
    tcase_add_test(tc, labels);
    tcase_add_test(tc, long_lines_lose_nothing);
    tcase_add_test(tc, slow_reader);
    tcase_add_test(tc, full_pipe);
    tcase_add_test(tc, verdicts);
    return check_run(tc, NULL);
}
