/* SPDX-License-Identifier: BSD-3-Clause */
/* opensm's file: our options replaced, everything else kept; written at once or not at all. */
#include "fabricd/opensm.h"
#include "tests/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct qos_tables tables = {
    .sl2vl = {0, 1, 2, 3},
    .num_low = 2,
    .low = {{0, 64}, {1, 192}},
    .num_high = 1,
    .high = {{2, 64}},
    .high_limit = 4,
    .lmc = 1,
    .vls = 8,
    .op_vls_code = 4,
};

START_TEST(merge)
{
    static const char old[] = "# comment\n"
                              "qos FALSE\n"
                              "sweep_interval 10\n"
                              "  qos_ca_vlarb_low 0:1\n"
                              "qos_policy_file /etc/opensm/qos.conf\n"
                              "qos_swe_sl2vl\t(null)\n"
                              "lmc_esp0 FALSE\n"
                              "lmc 2\n"
                              "max_op_vls 5\n"
                              "qosx 1\n"
                              "guid 0x10 # the port";
    struct text out = {0};
    opensm_conf_merge(old, &tables, &out);
    ck_assert_msg(
        !strncmp(out.s,
                 "# comment\nsweep_interval 10\nqos_policy_file /etc/opensm/qos.conf\nlmc_esp0 FALSE\nqosx 1\n"
                 "guid 0x10 # the port\n# ---- written by fabricd",
                 120),
        "%s", out.s);
    ck_assert_ptr_nonnull(strstr(out.s,
                                 "\nqos TRUE\nlmc 1\nmax_op_vls 4\nqos_high_limit 4\nqos_vlarb_high 2:64\n"
                                 "qos_vlarb_low 0:64,1:192\nqos_sl2vl 0,1,2,3,0,0,0,0,0,0,0,0,0,0,0,0\n# ---- end"));
    ck_assert_ptr_null(strstr(out.s, "FALSE\nqos "));
    ck_assert_ptr_null(strstr(out.s, "qos_ca_"));
    ck_assert_ptr_null(strstr(out.s, "qos_swe_"));
    struct text again = {0};
    opensm_conf_merge(out.s, &tables, &again);
    ck_assert_str_eq(out.s, again.s);
    text_free(&out);
    text_free(&again);
}
END_TEST

START_TEST(no_high_table)
{
    struct qos_tables t = tables;
    struct text out = {0};
    t.num_high = 0;
    opensm_conf_merge("", &t, &out);
    ck_assert_ptr_nonnull(strstr(out.s, "\nqos_vlarb_high 0:0\n")); /* empty would be opensm's default */
    text_free(&out);
}
END_TEST

START_TEST(get)
{
    static const char text[] = "#lmc 7\n lmc  1 \nlmc 2 # now\nrouting_engine ftree,minhop\nlmc_esp0 TRUE\n";
    char v[32] = "";
    ck_assert(opensm_conf_get(text, "lmc", v, sizeof(v)));
    ck_assert_str_eq(v, "2");
    ck_assert(opensm_conf_get(text, "routing_engine", v, sizeof(v)));
    ck_assert_str_eq(v, "ftree,minhop");
    ck_assert(!opensm_conf_get(text, "sm_sl", v, sizeof(v)));
    ck_assert(opensm_conf_get(text, "routing_engine", v, 4));
    ck_assert_str_eq(v, "ftr");
}
END_TEST

START_TEST(atomic_write)
{
    char dir[] = "/tmp/fabricd-conf.XXXXXX", path[64];
    struct text t = {0};
    struct stat st;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/f", dir);
    ck_assert_int_eq(text_write_file(path, "one\n", 4), 0);
    ck_assert_int_eq(chmod(path, 0640), 0);
    ck_assert_int_eq(text_write_file(path, "two\n", 4), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0640); /* the administrator's choice is kept */
    ck_assert_int_eq(text_read_file(&t, path, 100), 0);
    ck_assert_str_eq(t.s, "two\n");
    text_free(&t);
    ck_assert_int_eq(text_read_file(&t, path, 3), -EFBIG);
    text_free(&t);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(dir), 0); /* nothing else was left there */
    ck_assert_int_eq(text_write_file(path, "x", 1), -ENOENT);
}
END_TEST

START_TEST(no_opensm)
{
    struct opensm o = {.config = "/nonexistent", .pid_file = "/nonexistent"};
    ck_assert_int_eq(opensm_pid(&o), -ENOENT);
    char path[] = "/tmp/fabricd-pid.XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(dprintf(fd, "%d\n", getpid()), 0);
    close(fd);
    o.pid_file = path;
    ck_assert_int_eq(opensm_reload(&o), -ESRCH); /* a stale file names another process: it must not get a signal */
    ck_assert_int_eq(prctl(PR_SET_NAME, "opensm"), 0); /* nor if it calls itself so */
    ck_assert_int_eq(opensm_reload(&o), -ESRCH);
    unlink(path);
    o.restart = "exit 3";
    ck_assert_int_eq(opensm_restart(&o, 10000), 3);
    o.restart = "sleep 30";
    ck_assert_int_eq(opensm_restart(&o, 50), -ETIMEDOUT);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("opensm_conf");
    tcase_add_test(t, merge);
    tcase_add_test(t, no_high_table);
    tcase_add_test(t, get);
    tcase_add_test(t, atomic_write);
    tcase_add_test(t, no_opensm);
    return check_run(t, NULL);
}
