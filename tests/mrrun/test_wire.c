/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between mrrun and agents (mrrun/wire), their streams (mrrun/channel), schedulers' lists (mrrun/allocation).
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrrun/allocation.h"
#include "mrrun/channel.h"
#include "mrrun/tree.h"
#include "mrrun/wire.h"
#include "tests/check.h"

/* ---- frames ---- */

START_TEST(frames_are_whole_or_not_yet)
{
    unsigned char bytes[WIRE_HEADER + 5];
    struct wire_frame f = {.kind = WIRE_DATA, .host = 513, .arg = 0x80000007u, .body = "hello", .len = 5}, got;
    size_t need;

    wire_header(&f, bytes);
    memcpy(bytes + WIRE_HEADER, f.body, f.len);
    for (size_t n = 0; n < sizeof(bytes); n++) {
        ck_assert_int_eq(wire_decode(bytes, n, &got, &need), 0);
        ck_assert_uint_eq(need, n < WIRE_HEADER ? WIRE_HEADER : sizeof(bytes));
    }
    ck_assert_int_eq(wire_decode(bytes, sizeof(bytes), &got, &need), sizeof(bytes));
    ck_assert_int_eq(got.kind, f.kind);
    ck_assert_uint_eq(got.host, f.host);
    ck_assert_uint_eq(got.arg, f.arg);
    ck_assert_uint_eq(got.len, f.len);
    ck_assert_mem_eq(got.body, f.body, f.len);
}
END_TEST

static bool refused(const struct wire_frame *f, int flag)
{
    unsigned char bytes[WIRE_HEADER];
    struct wire_frame got;
    size_t need;

    wire_header(f, bytes);
    bytes[7] = (unsigned char)flag;
    return wire_decode(bytes, sizeof(bytes), &got, &need) < 0;
}

START_TEST(frames_out_of_bounds_are_refused)
{
    ck_assert(!refused(&(struct wire_frame){.kind = WIRE_PING, .host = WIRE_ALL}, 0));
    ck_assert(refused(&(struct wire_frame){.kind = WIRE_PING, .host = WIRE_ALL}, 1));
    ck_assert(refused(&(struct wire_frame){.kind = 0}, 0));
    ck_assert(refused(&(struct wire_frame){.kind = WIRE_KINDS}, 0));
    ck_assert(refused(&(struct wire_frame){.kind = WIRE_PING, .host = WIRE_HOSTS_MAX}, 0));
    ck_assert(!refused(&(struct wire_frame){.kind = WIRE_PART, .len = WIRE_BODY_MAX}, 0));
    ck_assert(refused(&(struct wire_frame){.kind = WIRE_PART, .len = WIRE_BODY_MAX + 1}, 0));
    ck_assert(!refused(&(struct wire_frame){.kind = WIRE_DATA, .len = WIRE_DATA_MAX}, 0));
    ck_assert(refused(&(struct wire_frame){.kind = WIRE_DATA, .len = WIRE_DATA_MAX + 1}, 0));
}
END_TEST

/* ---- bodies ---- */

#define SECRET "0123456789abcdef0123456789abcdef"
static char *words[] = {(char *)"ssh", (char *)"-x", NULL};
static char *hosts[] = {(char *)"n1", (char *)"n2", NULL};
static uint32_t numbers[] = {7, 4095};

static struct wire_start start_of(uint32_t version)
{
    return (struct wire_start){.version = version,
                               .secret = SECRET,
                               .scratch = "/tmp/x",
                               .job_id = "j",
                               .nspace = "mrrun-1",
                               .window = 4096,
                               .launcher = words,
                               .mrrun = "/usr/bin/mrrun",
                               .host = hosts,
                               .number = numbers,
                               .num_hosts = 2};
}

static struct wire_frame frame_of(enum wire_kind kind, const struct wire_text *t, size_t len)
{
    return (struct wire_frame){.kind = kind, .body = t->bytes, .len = len};
}

/* As if the body ended at each byte, with the rest out of reach: the copy is no longer. */
#define REFUSED_IF_CUT(of, type, get)                                                                                  \
    for (size_t n = 0; n < t.len; n++) {                                                                               \
        char *cut = malloc(n ? n : 1);                                                                                 \
        struct wire_frame short_f = {.kind = (of), .body = cut, .len = n};                                             \
        struct type short_got;                                                                                         \
                                                                                                                       \
        memcpy(cut, t.bytes, n);                                                                                       \
        ck_assert_msg(!get(&short_f, &short_got), "taken with %zu of %zu bytes", n, t.len);                            \
        free(cut);                                                                                                     \
    }

START_TEST(an_agent_learns_what_to_be)
{
    struct wire_start put = start_of(WIRE_VERSION), got;
    struct wire_text t = {0};

    wire_put_start(&t, &put);
    struct wire_frame f = frame_of(WIRE_START, &t, t.len);
    ck_assert(wire_get_start(&f, &got));
    ck_assert_str_eq(got.secret, SECRET);
    ck_assert_str_eq(got.launcher[1], "-x");
    ck_assert_ptr_null(got.launcher[2]);
    ck_assert_str_eq(got.host[1], "n2");
    ck_assert_uint_eq(got.number[1], 4095);
    ck_assert_uint_eq(got.num_hosts, 2);
    ck_assert_uint_eq(got.window, 4096);
    wire_clear_start(&got);
    REFUSED_IF_CUT(WIRE_START, wire_start, wire_get_start)
    free(t.bytes);
}
END_TEST

START_TEST(a_start_out_of_bounds_is_refused)
{
    struct wire_start bad[5], got;

    for (int i = 0; i < 5; i++)
        bad[i] = start_of(WIRE_VERSION);
    bad[0].secret = "short";
    bad[1].window = 0;
    bad[2].num_hosts = 0;
    bad[3].number = (uint32_t[]){1, WIRE_HOSTS_MAX};
    bad[4].mrrun = "";
    for (int i = 0; i < 5; i++) {
        struct wire_text t = {0};

        wire_put_start(&t, &bad[i]);
        struct wire_frame f = frame_of(WIRE_START, &t, t.len);
        ck_assert_msg(!wire_get_start(&f, &got), "%d", i);
        free(t.bytes);
    }
}
END_TEST

/* An agent of another version must be able to say so. */
START_TEST(another_version_has_its_secret)
{
    struct wire_start put = start_of(WIRE_VERSION + 1), got;
    struct wire_text t = {0};

    wire_put_start(&t, &put);
    wire_put_string(&t, "what this version does not know");
    struct wire_frame f = frame_of(WIRE_START, &t, t.len);
    ck_assert(wire_get_start(&f, &got));
    ck_assert_uint_eq(got.version, WIRE_VERSION + 1);
    ck_assert_str_eq(got.secret, SECRET);
    wire_clear_start(&got);
    free(t.bytes);
}
END_TEST

START_TEST(parts_ranks_and_orders)
{
    char *args[] = {(char *)"a.out", (char *)"", (char *)"x y", NULL}, *env[] = {(char *)"A=1", NULL};
    struct wire_part part = {.dir = "/d", .program = "a.out", .mpi = 2, .args = args, .env = env}, got_part;
    struct wire_rank rank = {.part = 3, .reads = 1, .env = env}, got_rank;
    struct wire_run run = {.ranks = 5, .pmix_port = 4711, .bind_to = 2, .bind_units = 1, .simfab = "/s"}, got_run;
    struct wire_text t = {0};
    struct wire_frame f;

    wire_put_part(&t, &part);
    f = frame_of(WIRE_PART, &t, t.len);
    ck_assert(wire_get_part(&f, &got_part));
    ck_assert_str_eq(got_part.args[1], "");
    ck_assert_str_eq(got_part.args[2], "x y");
    ck_assert_str_eq(got_part.env[0], "A=1");
    wire_clear_part(&got_part);
    REFUSED_IF_CUT(WIRE_PART, wire_part, wire_get_part)
    t.len = 0;
    wire_put_rank(&t, &rank);
    f = frame_of(WIRE_RANK, &t, t.len);
    ck_assert(wire_get_rank(&f, &got_rank));
    ck_assert_uint_eq(got_rank.part, 3);
    wire_clear_rank(&got_rank);
    REFUSED_IF_CUT(WIRE_RANK, wire_rank, wire_get_rank)
    t.len = 0;
    wire_put_run(&t, &run);
    f = frame_of(WIRE_RUN, &t, t.len);
    ck_assert(wire_get_run(&f, &got_run));
    ck_assert_uint_eq(got_run.ranks, 5);
    ck_assert_uint_eq(got_run.pmix_port, 4711);
    ck_assert_str_eq(got_run.simfab, "/s");
    REFUSED_IF_CUT(WIRE_RUN, wire_run, wire_get_run)
    free(t.bytes);
}
END_TEST

/* A count that is larger than the body could hold asks for no memory. */
START_TEST(counts_are_not_believed)
{
    struct wire_text t = {0};
    struct wire_reader r;
    size_t count;

    wire_put_number(&t, 0xffffffffu);
    wire_put_string(&t, "one");
    struct wire_frame f = frame_of(WIRE_PART, &t, t.len);
    r = wire_read(&f);
    ck_assert_ptr_null(wire_get_strings(&r, SIZE_MAX, &count));
    ck_assert(r.bad && count == 0);
    free(t.bytes);
}
END_TEST

/* ---- channels: one end reads a pipe, the other one writes to another pipe ---- */

enum { WINDOW = 1000 };

static struct {
    struct channel_base near_base, far_base;
    struct channel near, far;
    uint32_t under_way, most;
    int gone;
} line;

static void to_far(const struct channel_base *b, const struct wire_frame *f)
{
    line.under_way += (uint32_t)f->len;
    if (line.under_way > line.most)
        line.most = line.under_way;
    ck_assert(channel_take(&line.far, f));
}

static void to_near(const struct channel_base *b, const struct wire_frame *f)
{
    struct wire_reader r = wire_read(f);

    if (f->kind == WIRE_TAKEN)
        line.under_way -= wire_get_number(&r);
    ck_assert(channel_take(&line.near, f));
}

static void gone(const struct channel_base *b, struct channel *c)
{
    line.gone++;
}

static void open_bases(void)
{
    int set = epoll_create1(0);

    memset(&line, 0, sizeof(line));
    line.near_base = (struct channel_base){.set = set, .window = WINDOW, .send = to_far, .gone = gone};
    line.far_base = (struct channel_base){.set = set, .window = WINDOW, .send = to_near, .gone = gone};
}

START_TEST(a_slow_reader_holds_up_its_writer_only)
{
    int in[2], out[2];
    char bytes[4096], got[4096];
    ssize_t written = 0, taken = 0;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7);
    open_bases();
    ck_assert(!pipe2(in, O_NONBLOCK) && !pipe2(out, O_NONBLOCK));
    fcntl(out[1], F_SETPIPE_SZ, 4096);
    channel_open(&line.far, &line.far_base, 0, 5, -1, out[1]);
    channel_open(&line.near, &line.near_base, 0, 5, in[0], -1);
    for (int turn = 0; turn < 200 && taken < 20 * 4096; turn++) {
        ssize_t n = written < 20 * 4096 ? write(in[1], bytes + written % 4096, 4096 - (size_t)written % 4096) : -1;

        written += n > 0 ? n : 0;
        while (watch_serve(line.near_base.set, 0))
            continue;
        ck_assert_uint_le(line.most, WINDOW);
        n = turn % 2 ? read(out[0], got, 1 + (size_t)turn * 13 % sizeof(got)) : -1; /* every second time */
        for (ssize_t i = 0; i < n; i++)
            ck_assert_int_eq(got[i], bytes[(taken + i) % 4096]);
        taken += n > 0 ? n : 0;
    }
    ck_assert_int_gt(taken, 4 * 4096);
    close(out[0]); /* no reader left: the writer is told */
    signal(SIGPIPE, SIG_IGN);
    while (write(in[1], bytes, sizeof(bytes)) > 0 && watch_serve(line.near_base.set, 0))
        continue;
    while (watch_serve(line.near_base.set, 0))
        continue;
    ck_assert_int_eq(write(in[1], bytes, 1), -1);
    ck_assert_int_eq(line.gone, 2);
}
END_TEST

START_TEST(more_than_the_window_is_refused)
{
    int out[2];
    char bytes[WINDOW + 1] = "";
    struct wire_frame f = {.kind = WIRE_DATA, .arg = 5, .body = bytes, .len = WINDOW + 1};

    open_bases();
    ck_assert(!pipe2(out, O_NONBLOCK));
    channel_open(&line.far, &line.far_base, 0, 5, -1, out[1]);
    ck_assert(!channel_take(&line.far, &f));
    struct wire_text credit = {0};
    wire_put_number(&credit, 1);
    f = (struct wire_frame){.kind = WIRE_TAKEN, .arg = 5, .body = credit.bytes, .len = credit.len};
    ck_assert(!channel_take(&line.far, &f)); /* of nothing that was sent */
    free(credit.bytes);
}
END_TEST

/* ---- lists of hosts ---- */

static char listed[4096];

static int note(void *arg, const char *host, int slots)
{
    char *end = listed + strlen(listed);

    snprintf(end, sizeof(listed) - (size_t)(end - listed), "%s:%d ", host, slots);
    return 0;
}

static const char *slurm(const char *nodes, const char *tasks)
{
    char why[512];

    *listed = '\0';
    return allocation_of_slurm(nodes, tasks, note, NULL, why, sizeof(why)) < 0 ? "refused" : listed;
}

START_TEST(lists_of_slurm)
{
    ck_assert_str_eq(slurm("n1", NULL), "n1:1 ");
    ck_assert_str_eq(slurm("n1,n2", "4,2"), "n1:4 n2:2 ");
    ck_assert_str_eq(slurm("n[1-3,7],m", "2(x3),1,5"), "n1:2 n2:2 n3:2 n7:1 m:5 ");
    ck_assert_str_eq(slurm("rack[08-10]-a[1,2]b", NULL),
                     "rack08-a1b:1 rack08-a2b:1 rack09-a1b:1 rack09-a2b:1 rack10-a1b:1 rack10-a2b:1 ");
    ck_assert_str_eq(slurm("n[1-2", NULL), "refused");
    ck_assert_str_eq(slurm("n[]", NULL), "refused");
    ck_assert_str_eq(slurm("n[2-1]", NULL), "refused");
    ck_assert_str_eq(slurm("n[1-9999999]", NULL), "refused");
    ck_assert_str_eq(slurm("n[1-4096][1-4096]", NULL), "refused");
    ck_assert_str_eq(slurm("n[a]", NULL), "refused");
    ck_assert_str_eq(slurm("", NULL), "refused");
    ck_assert_str_eq(slurm("n1,n2", "x"), "refused");
    ck_assert_str_eq(slurm("n1,n2", "2"), "refused");
    ck_assert_str_eq(slurm("n1,n2", "2(x2"), "refused");
}
END_TEST

/* ---- the launcher's command ---- */

static char *joined(char *const *launcher, const char *program)
{
    char *const words_of[] = {(char *)program, (char *)"--agent", NULL};
    char **command = tree_command(launcher, "h", words_of);
    static char text[256];

    *text = '\0';
    for (int i = 0; command[i]; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "<%s>", command[i]);
    tree_free_command(command);
    return text;
}

START_TEST(a_shell_reads_what_ssh_is_given)
{
    char *srun[] = {(char *)"/opt/bin/srun", (char *)"-w", NULL};

    ck_assert_str_eq(joined(words, "/usr/bin/mrrun"), "<ssh><-x><h></usr/bin/mrrun><--agent>");
    ck_assert_str_eq(joined(words, "/my dir/it's"), "<ssh><-x><h><'/my dir/it'\\''s'><--agent>");
    ck_assert_str_eq(joined(srun, "/my dir/mrrun"), "</opt/bin/srun><-w><h></my dir/mrrun><--agent>");
}
END_TEST

int main(void)
{
    TCase *wire = tcase_create("wire"), *channels = tcase_create("channels"), *lists = tcase_create("lists");

    tcase_add_test(wire, frames_are_whole_or_not_yet);
    tcase_add_test(wire, frames_out_of_bounds_are_refused);
    tcase_add_test(wire, an_agent_learns_what_to_be);
    tcase_add_test(wire, a_start_out_of_bounds_is_refused);
    tcase_add_test(wire, another_version_has_its_secret);
    tcase_add_test(wire, parts_ranks_and_orders);
    tcase_add_test(wire, counts_are_not_believed);
    tcase_add_test(channels, a_slow_reader_holds_up_its_writer_only);
    tcase_add_test(channels, more_than_the_window_is_refused);
    tcase_add_test(lists, lists_of_slurm);
    tcase_add_test(lists, a_shell_reads_what_ssh_is_given);
    return check_run(wire, channels, lists, NULL);
}
