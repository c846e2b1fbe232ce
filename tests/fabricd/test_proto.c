/* SPDX-License-Identifier: BSD-3-Clause */
/* Invalid messages from the socket, and jobs that survive the daemon. */
#include "fabricd/jobs/claims.h"
#include "fabricd/jobs/jobs_text.h"
#include "fabricd/ctl/json.h"
#include "fabricd/names.h"
#include "fabricd/proto/message.h"
#include "tests/check.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

START_TEST(hello)
{
    struct fd_hello m = {.h = message_header(FD_HELLO, sizeof(m), 7), .job = "42"};
    ck_assert_int_eq(message_check(&m, sizeof(m)), 0);
    ck_assert_int_eq(message_check(&m, sizeof(m) - 1), -EPROTO);
    ck_assert_int_eq(message_check(&m, 4), -EPROTO);
    m.h.magic++;
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EPROTO);
    m.h.magic--;
    m.h.version = 2;
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EPROTO);
    m.h.version = 1;
    m.h.length = 16;
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EPROTO);
    m.h.length = sizeof(m);
    memset(m.job, 'x', sizeof(m.job));
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL); /* not terminated */
    strcpy(m.job, "a\033[2J");
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL); /* would go to a terminal */
    m.job[0] = 0;
    ck_assert_int_eq(message_check(&m, sizeof(m)), 0);
}
END_TEST

/* Levels between small and large follow a state, and its length says how many. */
START_TEST(levels)
{
    struct fd_state_long m = {.s.num_rails = 3};
    size_t none = FD_STATE_LENGTH(3), one = sizeof(struct fd_level);
    ck_assert_int_eq(fd_state_num_levels(&m.s, none), 0);
    ck_assert_int_eq(fd_state_num_levels(&m.s, none - 1), -1);
    ck_assert_int_eq(fd_state_num_levels(&m.s, none + 1), -1);
    ck_assert_int_eq(fd_state_num_levels(&m.s, none + one), 1);
    ck_assert_int_eq(fd_state_num_levels(&m.s, none + FD_MEDIUM_MAX * one), FD_MEDIUM_MAX);
    ck_assert_int_eq(fd_state_num_levels(&m.s, none + (FD_MEDIUM_MAX + 1) * one), -1);
    ck_assert_int_eq(fd_state_num_levels(&m.s, 0), -1);
    ck_assert_ptr_eq(fd_state_levels(&m.s), &m.s.rails[3]);
    m.s.num_rails = FD_RAILS_MAX;
    ck_assert_ptr_eq(fd_state_levels(&m.s), &m.more[0]);
    ck_assert_int_eq(fd_state_num_levels(&m.s, sizeof(m)), FD_MEDIUM_MAX);
    ck_assert_ptr_eq(fd_state_spread(&m.s, sizeof(m), FD_MEDIUM_MAX), &m.spread);
    ck_assert_ptr_eq(fd_state_health(&m.s, sizeof(m), FD_MEDIUM_MAX), &m.health);
    for (unsigned n = 0; n <= FD_MEDIUM_MAX; n++) { /* and possible further fields */
        size_t len = FD_STATE_LENGTH(FD_RAILS_MAX) + n * one;
        ck_assert_ptr_null(fd_state_spread(&m.s, len, fd_state_num_levels(&m.s, len)));
        len += sizeof(struct fd_spread);
        ck_assert_int_eq(fd_state_num_levels(&m.s, len), (int)n);
        ck_assert_ptr_eq(fd_state_spread(&m.s, len, (int)n), &m.more[n]);
        ck_assert_int_eq(fd_state_num_levels(&m.s, len - 1), -1);
        ck_assert_int_eq(fd_state_num_levels(&m.s, len + 1), -1);
        ck_assert_ptr_null(fd_state_health(&m.s, len, (int)n));
        for (unsigned spread = 0; spread < 2; spread++) {
            len = FD_STATE_LENGTH(FD_RAILS_MAX) + n * one + spread * sizeof(struct fd_spread);
            len += sizeof(struct fd_health);
            ck_assert_int_eq(fd_state_num_levels(&m.s, len), (int)n);
            ck_assert(!fd_state_spread(&m.s, len, (int)n) == !spread);
            ck_assert_ptr_eq((char *)fd_state_health(&m.s, len, (int)n) + sizeof(struct fd_health), (char *)&m + len);
        }
    }
    m.s.num_rails = FD_RAILS_MAX + 1;
    ck_assert_int_eq(fd_state_num_levels(&m.s, sizeof(m)), -1);
    struct fd_level l = {.max = 100, .num_lanes = 2, .sl = {15, 3}};
    ck_assert(fd_level_is_sane(&l, 99));
    ck_assert(!fd_level_is_sane(&l, 100));
    l.sl[1] = 16;
    ck_assert(!fd_level_is_sane(&l, 99));
    l = (struct fd_level){.max = 100};
    ck_assert(!fd_level_is_sane(&l, 99));
    l.num_lanes = FD_LANES_MAX + 1;
    ck_assert(!fd_level_is_sane(&l, 99));
}
END_TEST

START_TEST(where)
{
    struct fd_where m = {.h = message_header(FD_WHERE, sizeof(m), 1), .device = "mlx5_0", .port = 1, .guid = 1};
    ck_assert_int_eq(message_check(&m, sizeof(m)), 0);
    m.port = 0;
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL);
    m.port = 255;
    m.guid = 0;
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL);
    m.guid = UINT64_MAX;
    ck_assert_int_eq(message_check(&m, sizeof(m)), 0);
    strcpy(m.device, "../x");
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL);
    memset(m.device, 'x', sizeof(m.device));
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL);
    m.h.length = sizeof(m) - 8;
    ck_assert_int_eq(message_check(&m, sizeof(m) - 8), -EPROTO);
}
END_TEST

START_TEST(joins)
{
    static const struct {
        const char *hosts;
        int rc;
    } all[] = {{"h1", 0},           {"h1 h2", 0},        {"", -EINVAL},      {" h1", -EINVAL},      {"h1 ", -EINVAL},
               {"h1  h2", -EINVAL}, {"h1\nh2", -EINVAL}, {"h\x80", -EINVAL}, {"h1 h2\x7f", -EINVAL}};
    struct {
        struct fd_join m;
        char hosts[FD_HOSTS_MAX + 1];
    } j = {.m.job = {.job = "7"}};
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        size_t len = sizeof(j.m) + strlen(all[i].hosts);
        memcpy(j.hosts, all[i].hosts, strlen(all[i].hosts));
        j.m.job.h = message_header(FD_JOIN, len, 1);
        ck_assert_msg(message_check(&j, len) == all[i].rc, "'%s'", all[i].hosts);
    }
    memset(j.hosts, 'x', sizeof(j.hosts));
    for (size_t len = 64; len < 66; len++) { /* of a name */
        j.m.job.h = message_header(FD_JOIN, sizeof(j.m) + len, 1);
        ck_assert_int_eq(message_check(&j, sizeof(j.m) + len), len == 64 ? 0 : -EINVAL);
    }
    for (size_t i = 1; i < sizeof(j.hosts); i += 2)
        j.hosts[i] = ' ';
    size_t most = sizeof(j.m) + FD_HOSTS_MAX;
    j.m.job.h = message_header(FD_JOIN, most + 1, 1);
    ck_assert_int_eq(message_check(&j, most + 1), -EPROTO); /* too long */
    j.m.job.h = message_header(FD_JOIN, most - 1, 1);
    ck_assert_int_eq(message_check(&j, most - 1), 0);
    j.m.job.job[0] = 0;
    ck_assert_int_eq(message_check(&j, most - 1), -EINVAL);
    j.m.job.h = message_header(FD_JOIN, sizeof(j.m) - 8, 1);
    ck_assert_int_eq(message_check(&j, sizeof(j.m) - 8), -EPROTO);
}
END_TEST

START_TEST(service_names)
{
    struct fd_name m = {
        .h = message_header(FD_NAME, sizeof(m), 1), .what = FD_NAME_PUBLISH, .name = "ocean", .value = "mrmpi-port-1"};
    ck_assert_int_eq(message_check(&m, sizeof(m)), 0);
    m.value[0] = 0; /* nothing to publish */
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL);
    m.what = FD_NAME_FIND;
    ck_assert_int_eq(message_check(&m, sizeof(m)), 0);
    m.what = FD_NAME_WITHDRAW + 1;
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL);
    m.what = FD_NAME_WITHDRAW;
    memset(m.name, 'x', sizeof(m.name));
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL);
    strcpy(m.name, "two\nlines");
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL);
    m.h.length = sizeof(m) - 8;
    ck_assert_int_eq(message_check(&m, sizeof(m) - 8), -EPROTO);
}
END_TEST

/* A user's names: of any job, bounded, until their client leaves or their job withdraws them. */
START_TEST(kept_names)
{
    struct names all = {0};
    struct fd_name m = {.what = FD_NAME_PUBLISH, .job = 7, .name = "ocean", .value = "port"};
    names_answer(&all, 1, 1000, &m);
    ck_assert_int_eq(m.status, 0);
    m.job = 8;
    names_answer(&all, 2, 1000, &m);
    ck_assert_int_eq(m.status, -EEXIST);
    m = (struct fd_name){.what = FD_NAME_FIND, .job = 8, .name = "ocean"};
    names_answer(&all, 2, 1000, &m);
    ck_assert_int_eq(m.status, 0);
    ck_assert_str_eq(m.value, "port");
    names_answer(&all, 3, 1001, &m); /* another user */
    ck_assert_int_eq(m.status, -ENOENT);
    m.what = FD_NAME_WITHDRAW;
    names_answer(&all, 2, 1000, &m); /* of another job */
    ck_assert_int_eq(m.status, -ENOENT);
    m.job = 7;
    names_answer(&all, 2, 1000, &m);
    ck_assert_int_eq(m.status, 0);
    names_answer(&all, 2, 1000, &m);
    ck_assert_int_eq(m.status, -ENOENT);
    m.what = FD_NAME_PUBLISH;
    for (int i = 0; i < NAMES_PER_UID; i++) {
        snprintf(m.name, sizeof(m.name), "name %d", i);
        names_answer(&all, (uint64_t)(i % 2), 1000, &m);
        ck_assert_int_eq(m.status, 0);
    }
    strcpy(m.name, "one more");
    names_answer(&all, 3, 1000, &m);
    ck_assert_int_eq(m.status, -ENOSPC);
    names_answer(&all, 3, 1001, &m);
    ck_assert_int_eq(m.status, 0);
    names_left(&all, 1);
    names_answer(&all, 3, 1000, &m);
    ck_assert_int_eq(m.status, 0);
    m = (struct fd_name){.what = FD_NAME_FIND, .name = "name 0"};
    names_answer(&all, 3, 1000, &m);
    ck_assert_int_eq(m.status, 0);
    strcpy(m.name, "name 1");
    names_answer(&all, 3, 1000, &m);
    ck_assert_int_eq(m.status, -ENOENT);
    names_free(&all);
}
END_TEST

START_TEST(paths)
{
    struct fd_paths m = {
        .h = message_header(FD_PATHS, sizeof(m), 1), .device = "mlx5_0", .port = 1, .lid = 0xbffe, .lmc = 1};
    ck_assert_int_eq(message_check(&m, sizeof(m)), 0);
    m.lid = 0xbfff; /* no base LID */
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL);
    m.lmc = 0;
    ck_assert_int_eq(message_check(&m, sizeof(m)), 0);
    m.lid = 0xc000;
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL);
    m.lid = 0;
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL);
    m.lid = 0x100;
    m.lmc = 8;
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL);
    m.lmc = 7;
    ck_assert_int_eq(message_check(&m, sizeof(m)), 0);
    m.port = 0;
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL);
    m.port = 1;
    strcpy(m.device, "a/b");
    ck_assert_int_eq(message_check(&m, sizeof(m)), -EINVAL);
    m.h.length = sizeof(m) - 8;
    ck_assert_int_eq(message_check(&m, sizeof(m) - 8), -EPROTO);
    struct fd_ends e = {.h = message_header(FD_PATHS_SHOW, sizeof(e), 1), .from = "h1", .to = "h2 mlx5_0"};
    ck_assert_int_eq(message_check(&e, sizeof(e)), 0);
    e.to[0] = 0;
    ck_assert_int_eq(message_check(&e, sizeof(e)), -EINVAL);
    memset(e.to, 'x', sizeof(e.to));
    ck_assert_int_eq(message_check(&e, sizeof(e)), -EINVAL);
    struct fd_disjoint d = {.h = message_header(FD_DISJOINT, sizeof(d), 1)};
    ck_assert_int_eq(message_check(&d, sizeof(d)), -EPROTO); /* the daemon's to say */
}
END_TEST

START_TEST(reads)
{
    struct fd_reads m = {.h = message_header(FD_READS, sizeof(m), 1), .want_kb = FD_READS_ALL};
    ck_assert_int_eq(message_check(&m, sizeof(m)), 0);
    m.h.length = sizeof(m) - 4;
    ck_assert_int_eq(message_check(&m, sizeof(m) - 4), -EPROTO);
    struct fd_pace p = {.h = message_header(FD_PACE, sizeof(p), 1)};
    ck_assert_int_eq(message_check(&p, sizeof(p)), -EPROTO); /* the daemon's to say */
}
END_TEST

START_TEST(other_types)
{
    struct fd_header h;
    for (unsigned type = 0; type < 70; type++) {
        bool bare = type == FD_STATUS || type == FD_VERIFY || type == FD_RAIL_LIST || type == FD_LOCK ||
                    type == FD_HISTORY || type == FD_METRICS;
        h = message_header((enum fd_type)type, sizeof(h), 1);
        ck_assert_int_eq(message_check(&h, sizeof(h)), bare ? 0 : -EPROTO);
    }
    struct fd_job j = {.h = message_header(FD_JOB_SET, sizeof(j), 1), .job = "1", .class_name = "a"};
    ck_assert_int_eq(message_check(&j, sizeof(j)), 0);
    j.job[0] = 0;
    ck_assert_int_eq(message_check(&j, sizeof(j)), -EINVAL);
    j.job[0] = '1';
    memset(j.name, 'n', sizeof(j.name));
    ck_assert_int_eq(message_check(&j, sizeof(j)), -EINVAL);
    memset(j.name, 0, sizeof(j.name));
    memset(j.wish, 'w', sizeof(j.wish));
    ck_assert_int_eq(message_check(&j, sizeof(j)), -EINVAL);
    j.wish[FD_NAME_MAX - 1] = 0;
    static const struct {
        uint16_t small, large;
        int rc;
    } ratios[] = {{0, 0, 0}, {0, 1, 0}, {1000, 1000, 0}, {1, 0, -EINVAL}, {1001, 1, -EINVAL}, {1, 1001, -EINVAL}};
    for (unsigned i = 0; i < sizeof(ratios) / sizeof(ratios[0]); i++) {
        j.ratio_small = ratios[i].small;
        j.ratio_large = ratios[i].large;
        j.flags = FD_JOB_RATIO;
        ck_assert_int_eq(message_check(&j, sizeof(j)), ratios[i].rc);
        j.flags = 0; /* as they were before there were ratios, and of whatever value */
        ck_assert_int_eq(message_check(&j, sizeof(j)), 0);
    }
    j.run = FD_RUN_MAX;
    ck_assert_int_eq(message_check(&j, sizeof(j)), 0);
    j.run = FD_RUN_MAX + 1;
    ck_assert_int_eq(message_check(&j, sizeof(j)), -EINVAL);
    j.run = 0;
    j.h.type = FD_JOB_CHOOSE;
    ck_assert_int_eq(message_check(&j, sizeof(j)), 0);
    j.job[0] = 0;
    ck_assert_int_eq(message_check(&j, sizeof(j)), -EINVAL);
    j.h.type = FD_JOB_LIST; /* from the first on */
    ck_assert_int_eq(message_check(&j, sizeof(j)), 0);
    memset(j.job, 'j', sizeof(j.job));
    ck_assert_int_eq(message_check(&j, sizeof(j)), -EINVAL);
    struct fd_class c = {.h = message_header(FD_FORGET, sizeof(c), 1), .class_name = "a"};
    ck_assert_int_eq(message_check(&c, sizeof(c)), 0);
    memset(c.class_name, 'n', sizeof(c.class_name));
    ck_assert_int_eq(message_check(&c, sizeof(c)), -EINVAL);
    c.class_name[0] = 0;
    ck_assert_int_eq(message_check(&c, sizeof(c)), -EINVAL);
}
END_TEST

START_TEST(apply)
{
    size_t most = sizeof(struct fd_apply) + FD_POLICY_MAX;
    struct fd_apply *m = calloc(1, FD_MSG_MAX + 100);
    strcpy(m->name, "p.yaml");
    m->h = message_header(FD_APPLY, most, 1);
    ck_assert_int_eq(message_check(m, most), 0);
    m->h.length = (uint32_t)most + 1;
    ck_assert_int_eq(message_check(m, most + 1), -EPROTO);
    m->h.length = FD_MSG_MAX + 1;
    ck_assert_int_eq(message_check(m, FD_MSG_MAX + 1), -EPROTO);
    m->lock_length = FD_LOCK_MAX; /* the longest policy, followed by the longest lock */
    m->h.length = (uint32_t)most + FD_LOCK_MAX;
    ck_assert_int_eq(message_check(m, most + FD_LOCK_MAX), 0);
    m->lock_length = FD_LOCK_MAX + 1;
    m->h.length = (uint32_t)most + FD_LOCK_MAX + 1;
    ck_assert_int_eq(message_check(m, most + FD_LOCK_MAX + 1), -EPROTO);
    m->h.length = sizeof(*m) + 3;
    m->lock_length = 3;
    ck_assert_int_eq(message_check(m, sizeof(*m) + 3), 0);
    m->lock_length = 4;
    ck_assert_int_eq(message_check(m, sizeof(*m) + 3), -EPROTO);
    free(m);
}
END_TEST

START_TEST(change)
{
    size_t most = sizeof(struct fd_change) + FD_POLICY_MAX;
    struct fd_change *m = calloc(1, FD_MSG_MAX + 100);
    struct fd_show show = {.h = message_header(FD_SHOW, sizeof(show), 1)};
    strcpy(m->name, "p.yaml");
    m->h = message_header(FD_CHANGE, most + FD_LOCK_MAX, 1);
    m->lock_length = FD_LOCK_MAX; /* the longest policy, followed by the longest lock */
    ck_assert_int_eq(message_check(m, most + FD_LOCK_MAX), 0);
    m->h.length = (uint32_t)most + 1;
    m->lock_length = 0;
    ck_assert_int_eq(message_check(m, most + 1), -EPROTO);
    m->h.length = sizeof(*m) + 3;
    m->lock_length = 4;
    ck_assert_int_eq(message_check(m, sizeof(*m) + 3), -EPROTO);
    m->lock_length = 3;
    ck_assert_int_eq(message_check(m, sizeof(*m) + 3), 0);
    m->flags = FD_CHANGE_ROLLBACK; /* without texts */
    ck_assert_int_eq(message_check(m, sizeof(*m) + 3), -EPROTO);
    m->lock_length = 0;
    m->h.length = sizeof(*m);
    ck_assert_int_eq(message_check(m, sizeof(*m)), 0);
    m->h.length = sizeof(*m) - 1;
    ck_assert_int_eq(message_check(m, sizeof(*m) - 1), -EPROTO);
    m->h.length = sizeof(*m);
    memset(m->name, 'n', sizeof(m->name));
    ck_assert_int_eq(message_check(m, sizeof(*m)), -EINVAL);
    ck_assert_int_eq(message_check(&show, sizeof(show)), 0);
    show.h.length = sizeof(show) - 1;
    ck_assert_int_eq(message_check(&show, sizeof(show) - 1), -EPROTO);
    free(m);
}
END_TEST

/* The only file put aside, or "". */
static void kept_as(const char *path, char out[128])
{
    char pattern[96];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s.corrupt-20*Z", path);
    *out = 0;
    if (glob(pattern, 0, NULL, &found))
        return;
    ck_assert_uint_eq(found.gl_pathc, 1);
    snprintf(out, 128, "%s", found.gl_pathv[0]);
    globfree(&found);
}

START_TEST(jobs_survive)
{
    char dir[] = "/tmp/fabricd-jobs.XXXXXX", path[64];
    char damaged[128];
    struct jobs j;
    struct diag d = {0};
    struct job a = {.id = "4711",
                    .class_name = "urgent",
                    .uid = 1000,
                    .account = "true",
                    .name = "a: \"b\" # c",
                    .qos = "high",
                    .partition = "p-1",
                    .wish = "gold",
                    .run = FD_RUN_MAX + 1,
                    .since = 1795717304};
    struct job b = {.id = "b", .uid = FD_UID_ANY, .run = 1, .at = 1};
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert(jobs_open(&j, dir, &d));
    ck_assert_int_eq(jobs_set(&j, &a), 0);
    ck_assert_int_eq(jobs_set(&j, &b), 0);
    jobs_close(&j);
    ck_assert(jobs_open(&j, dir, &d));
    ck_assert_uint_eq(j.n, 2);
    ck_assert(!memcmp(jobs_find(&j, "4711"), &a, sizeof(a)));
    ck_assert(!memcmp(jobs_find(&j, "b"), &b, sizeof(b)));
    ck_assert_int_eq(jobs_delete(&j, "4711"), 0);
    ck_assert_int_eq(jobs_delete(&j, "4711"), -ENOENT);
    jobs_close(&j);
    ck_assert(jobs_open(&j, dir, &d));
    ck_assert_uint_eq(j.n, 1);
    jobs_close(&j);
    snprintf(path, sizeof(path), "%s/jobs.yaml", dir);
    ck_assert_int_eq(text_write_file(path, "jobs:\n  - {id: a, uid: -1}\n", 27), 0);
    ck_assert(!jobs_open(&j, dir, &d));
    ck_assert_uint_eq(j.n, 0);
    ck_assert_ptr_nonnull(strstr(text_str(&d.out), "jobs.yaml:2:18: error: uid is '-1'"));
    text_free(&d.out);
    jobs_close(&j);
    unlink(path);
    kept_as(path, damaged);
    unlink(damaged);
    rmdir(dir);
}
END_TEST

/* An unreadable line loses its job, whatever the error, and no other. */
START_TEST(one_bad_line)
{
    static const struct {
        const char *line, *error;
    } bad[] = {
        {"  - {id: b, uid: -1}", "jobs.yaml:4:18: error: uid is '-1'"},
        {"  - {id: b, clas: x}", "jobs.yaml:4:13: error: "},
        {"  - {id: b, class: [x}", "jobs.yaml:4:"},
        {"  - {id: b, cla", "jobs.yaml:4:"},
        {"  - {id: \"b}", "jobs.yaml:4:"},
        {"  - {}", "jobs.yaml:4:5: error: "},
        {"  - {id: b, name: \303\251}", "jobs.yaml:4:19: error: name has a character that is not ASCII"},
        {"  %$\t@", "jobs.yaml:4:"},
        {"  - {id: b, small_ratio: \"1:0\"}", "jobs.yaml:4:5: error: small_ratio is '1:0'; allowed: SMALL:LARGE"},
    };
    char dir[] = "/tmp/fabricd-jobs.XXXXXX", path[64], damaged[128], file[256];
    struct text kept = {0};
    struct jobs j;
    struct diag d = {0};
    struct job c = {.id = "c", .class_name = "y", .uid = FD_UID_ANY, .at = 1};
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/jobs.yaml", dir);
    snprintf(file, sizeof(file), "# written by fabricd\njobs:\n  - {id: a, class: x}\n%s\n  - {id: c, class: y}\n",
             bad[_i].line);
    ck_assert_int_eq(text_write_file(path, file, strlen(file)), 0);
    ck_assert(!jobs_open(&j, dir, &d));
    ck_assert_msg(j.n == 2 && jobs_find(&j, "a"), "%u jobs: %s", j.n, text_str(&d.out));
    ck_assert(!memcmp(jobs_find(&j, "c"), &c, sizeof(c)));
    ck_assert_msg(strstr(text_str(&d.out), bad[_i].error), "%s", text_str(&d.out));
    kept_as(path, damaged);
    ck_assert_int_eq(text_read_file(&kept, damaged, sizeof(file)), 0);
    ck_assert_str_eq(text_str(&kept), file);
    text_free(&kept);
    text_free(&d.out);
    jobs_close(&j);
    unlink(path);
    unlink(damaged);
    rmdir(dir);
}
END_TEST

START_TEST(whose_job)
{
    char dir[] = "/tmp/fabricd-jobs.XXXXXX", path[64];
    struct claim none = {0}, slurm = {.where = strdup("0::/x\n"), .by = {.scheduler = "Slurm", .id = "7"}};
    struct diag d = {0};
    struct jobs j;
    struct job list[] = {{.id = "mine", .uid = 4242},
                         {.id = "7", .uid = 4242},
                         {.id = "old", .uid = FD_UID_ANY},
                         {.id = "group", .cgroup = "/sys/fs/cgroup/pids/x", .uid = 4242}};
    static const struct {
        const char *id;
        uid_t uid;
        bool slurm;
        const char *why; /* NULL: the job's own process */
    } is[] = {
        {"mine", 4242, false, NULL},
        {"mine", 4243, false, "that job is uid 4242's"}, /* another process claiming to be the job's */
        {"mine", 0, false, "that job is uid 4242's"},
        {"mine", 4242, true, "Slurm has it in the cgroup of job 7"},
        {"7", 4242, true, NULL},
        {"7", 4242, false, NULL},
        {"old", 4242, false, "that job has no owner; set it again, with --user"},
        {"old", FD_UID_ANY, false, "that job has no owner; set it again, with --user"},
        {"group", 4242, false, "its cgroup cannot be read, and that job's processes are in /sys/fs/cgroup/pids/x"},
        {"", 4242, false, ""},
        {"unknown", 4242, false, ""}};
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert(jobs_open(&j, dir, &d));
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(jobs_set(&j, &list[i]), 0);
    for (unsigned i = 0; i < sizeof(is) / sizeof(is[0]); i++) {
        struct text why = {0};
        const struct job *job = claim_job(is[i].slurm ? &slurm : &none, &j, is[i].id, is[i].uid, &why);
        ck_assert_ptr_eq(job, is[i].why ? NULL : jobs_find(&j, is[i].id));
        ck_assert_str_eq(text_str(&why), is[i].why ? is[i].why : "");
        text_free(&why);
    }
    claim_free(&slurm);
    snprintf(path, sizeof(path), "%s/jobs.yaml", dir);
    jobs_close(&j);
    unlink(path);
    rmdir(dir);
}
END_TEST

/* The part of a daemon needed to list jobs. */
static struct daemon host;

/* All of them in the order of their ids, each once, though jobs come and go between the pages. */
START_TEST(pages)
{
    enum { JOBS = 3000, PAGE = 4096 };
    char dir[] = "/tmp/fabricd-jobs.XXXXXX", path[64], after[FD_JOB_MAX] = "";
    struct text json = {0};
    struct diag d = {0};
    unsigned parts = 0, lines = 0;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert(jobs_open(&host.jobs, dir, &d));
    for (unsigned i = 0; i < JOBS; i++) {
        struct job job = {.uid = i % 2 ? 7 : 8, .class_name = "a", .since = 1795717304};
        snprintf(job.id, sizeof(job.id), "%04u", i * 7919 % JOBS);
        ck_assert_int_eq(jobs_set(&host.jobs, &job), 0);
    }
    for (const char *last = ""; last; parts++) {
        struct text t = {0};
        last = jobs_text(&t, &host, "", 7, after, PAGE);
        ck_assert_uint_le(t.len, PAGE + 200);
        for (const char *s = t.s; s && *s; s = strchr(s, '\n') + 1, lines++) {
            ck_assert(!strncmp(s, "- {id: \"", 8) && strncmp(s + 8, after, 4) > 0);
            ck_assert(strstr(s, ", class: a, since: \"2026-11-26T18:21:44Z\", uid: 7"));
            snprintf(after, sizeof(after), "%.4s", s + 8);
        }
        ck_assert(!last || !strcmp(last, after));
        ck_assert(json_of_yaml(&json, t.s, t.len));
        text_free(&t);
        if (parts == 2) {
            jobs_delete(&host.jobs, "0000");
            jobs_delete(&host.jobs, after);
        }
    }
    ck_assert_uint_eq(lines, JOBS / 2);
    ck_assert_uint_gt(parts, 10);
    text_free(&json);
    snprintf(path, sizeof(path), "%s/jobs.yaml", dir);
    jobs_close(&host.jobs);
    unlink(path);
    rmdir(dir);
}
END_TEST

/* Any text about a job stays within its quotes. */
START_TEST(names_with_quotes)
{
    char dir[] = "/tmp/fabricd-jobs.XXXXXX", path[64];
    struct text t = {0}, json = {0};
    struct diag d = {0};
    struct job job = {.id = "1\"}, {id: 2", .wish = "x'\"}, class: gold, y: {\"", .uid = 7, .name = "\\\": #"};
    host.current.valid = true;
    host.generation = 1;
    host.current.policy = (struct policy){.num_classes = 1, .classes = {{.name = "normal"}}};
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert(jobs_open(&host.jobs, dir, &d));
    ck_assert_int_eq(jobs_set(&host.jobs, &job), 0);
    jobs_text(&t, &host, "", FD_UID_ANY, "", 1000);
    ck_assert(json_of_yaml(&json, t.s, t.len));
    ck_assert(strstr(json.s, "[{\"id\": \"1\\\"}, {id: 2\", \"class\": \"normal\", \"source\": \"rule\"") == json.s);
    ck_assert(strstr(json.s, "\"note\": \"the policy does not let it choose 'x'\\\"}, class: gold, y: {\\\"'\"}]"));
    text_free(&t);
    text_free(&json);
    snprintf(path, sizeof(path), "%s/jobs.yaml", dir);
    jobs_close(&host.jobs);
    unlink(path);
    rmdir(dir);
}
END_TEST

/* Ten thousand jobs that come, change and go: reading again gives the same jobs, and the file stays short. */
START_TEST(many_jobs)
{
    enum { JOBS = 10000 };
    char dir[] = "/tmp/fabricd-jobs.XXXXXX", path[64];
    struct jobs j;
    struct diag d = {0};
    struct job job = {.uid = 7};
    struct text t = {0};
    unsigned lines = 0;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert(jobs_open(&j, dir, &d));
    for (unsigned round = 0; round < 5; round++)
        for (unsigned i = 0; i < JOBS; i++) {
            snprintf(job.id, sizeof(job.id), "job %u", i);
            snprintf(job.class_name, sizeof(job.class_name), "c%u", round);
            ck_assert_int_eq(round == 3 && i % 2 ? jobs_delete(&j, job.id) : jobs_set(&j, &job), 0);
        }
    for (unsigned i = 0; i < JOBS; i += 4) {
        snprintf(job.id, sizeof(job.id), "job %u", i);
        ck_assert_int_eq(jobs_delete(&j, job.id), 0);
    }
    jobs_close(&j);
    ck_assert_msg(jobs_open(&j, dir, &d), "%s", text_str(&d.out));
    ck_assert_uint_eq(j.n, JOBS - JOBS / 4);
    for (unsigned i = 0; i < JOBS; i++) {
        snprintf(job.id, sizeof(job.id), "job %u", i);
        ck_assert_int_eq(!jobs_find(&j, job.id), i % 4 == 0);
        ck_assert(i % 4 == 0 || !strcmp(jobs_find(&j, job.id)->class_name, "c4"));
    }
    snprintf(path, sizeof(path), "%s/jobs.yaml", dir);
    ck_assert_int_eq(text_read_file(&t, path, 64u << 20), 0);
    for (const char *s = text_str(&t); (s = strchr(s, '\n')); s++)
        lines++;
    ck_assert_uint_le(lines, 3 * JOBS);
    text_free(&t);
    jobs_close(&j);
    unlink(path);
    rmdir(dir);
}
END_TEST

#define OURS "# written by fabricd: the last line of a job holds\njobs:\n"

/* A line cut off by the daemon's death, a file changed by another program, a file without jobs. */
START_TEST(files_of_others)
{
    static const struct {
        const char *file;
        unsigned jobs;
    } is[] = {{OURS "  - {id: a}\n  - {id: b, cl", 1},
              {"# written by fabricd\njobs:\n  - {id: a}\n  - {id: a, class: x}\n", 1},
              {"jobs:\n- {id: a}\n- id: c\n", 2},
              {"jobs: [{id: a}]", 1},
              {"jobs: []\n", 0},
              {"jobs:\n", 0},
              {OURS, 0},
              {OURS "  - {id: a}\n  - {id: a, ended: true}\n", 0},
              {OURS "  - {id: a}\n  - {id: \"a\", ended: true}\n", 0}, /* by hand: ids are written otherwise */
              {OURS "  - {id: a, ended: true}\n  - {id: a}\n", 1}};
    char dir[] = "/tmp/fabricd-jobs.XXXXXX", path[64], damaged[128];
    struct job b = {.id = "b", .class_name = "new", .uid = FD_UID_ANY};
    struct diag d = {0};
    struct jobs j;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/jobs.yaml", dir);
    ck_assert_int_eq(text_write_file(path, is[_i].file, strlen(is[_i].file)), 0);
    jobs_open(&j, dir, &d);
    ck_assert_uint_eq(j.n, is[_i].jobs);
    ck_assert_int_eq(jobs_set(&j, &b), 0);
    jobs_close(&j);
    text_free(&d.out);
    d = (struct diag){0};
    ck_assert_msg(jobs_open(&j, dir, &d), "%s", text_str(&d.out));
    ck_assert_uint_eq(j.n, is[_i].jobs + 1);
    ck_assert_str_eq(jobs_find(&j, "b")->class_name, "new");
    jobs_close(&j);
    unlink(path);
    kept_as(path, damaged);
    unlink(damaged);
    rmdir(dir);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("proto");
    tcase_set_timeout(t, 120); /* real seconds: the disk may be slow */
    tcase_add_test(t, hello);
    tcase_add_test(t, levels);
    tcase_add_test(t, where);
    tcase_add_test(t, paths);
    tcase_add_test(t, service_names);
    tcase_add_test(t, kept_names);
    tcase_add_test(t, joins);
    tcase_add_test(t, reads);
    tcase_add_test(t, other_types);
    tcase_add_test(t, apply);
    tcase_add_test(t, change);
    tcase_add_test(t, jobs_survive);
    tcase_add_loop_test(t, one_bad_line, 0, 9);
    tcase_add_test(t, whose_job);
    tcase_add_test(t, pages);
    tcase_add_test(t, names_with_quotes);
    tcase_add_test(t, many_jobs);
    tcase_add_loop_test(t, files_of_others, 0, 10);
    return check_run(t, NULL);
}
