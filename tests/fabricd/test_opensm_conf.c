/* SPDX-License-Identifier: BSD-3-Clause */
/* opensm's file: our options replaced, everything else kept; written at once or not at all. */
#include "fabricd/fabric/opensm.h"
#include "tests/check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
                              "use_optimized_slvl FALSE\n"
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
    ck_assert_ptr_nonnull(strstr(
        out.s, "\nqos TRUE\nuse_optimized_slvl TRUE\nlmc 1\nmax_op_vls 4\nqos_high_limit 4\nqos_vlarb_high 2:64\n"
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
    uint64_t guid[OPENSM_PORTS_MAX];
    struct opensm o = {.config = "/nonexistent", .pid_file = "/nonexistent"};
    ck_assert_int_eq(opensm_running(&o, guid), -ENOENT);
    char path[] = "/tmp/fabricd-pid.XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(dprintf(fd, "%d\n", getpid()), 0);
    close(fd);
    o.pid_file = path;
    ck_assert_int_eq(opensm_reload(&o), -ESRCH); /* a stale file names another process: it must not get a signal */
    ck_assert_int_eq(prctl(PR_SET_NAME, "opensm"), 0); /* nor under that name */
    ck_assert_int_eq(opensm_reload(&o), -ESRCH);
    unlink(path);
    o.restart = "exit 3";
    ck_assert_int_eq(opensm_restart(&o, 10000), 3);
    o.restart = "sleep 30";
    ck_assert_int_eq(opensm_restart(&o, 50), -ETIMEDOUT);
}
END_TEST

/* The words are NULL-terminated; as a user without rights if uid is not 0. Returns when it has the new name. */
static pid_t run_as(uid_t uid, const char *program, const char *const *argv)
{
    char path[64], comm[32] = "";
    pid_t pid = fork();
    if (!pid) {
        if (uid && setuid(uid))
            _exit(1);
        execv(program, (char *const *)argv);
        _exit(1);
    }
    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    for (int i = 0; i < 1000 && strcmp(comm, "opensm\n"); i++) {
        FILE *f = fopen(path, "r");
        usleep(5000);
        if (!f || !fgets(comm, sizeof(comm), f))
            comm[0] = 0;
        if (f)
            fclose(f);
    }
    ck_assert_str_eq(comm, "opensm\n");
    return pid;
}

/* True if the signal has ended the process; ends the process now otherwise. */
static bool was_hung_up(pid_t pid)
{
    int status;
    for (int i = 0; i < 20; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP;
        usleep(5000);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return false;
}

/* tail has an option -F, too, and waits. */
START_TEST(opensm_by_its_configuration)
{
    char dir[] = "/tmp/fabricd-opensm.XXXXXX", program[64], conf[64], other[64], link[64], command[512];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chmod(dir, 0755), 0);
    snprintf(program, sizeof(program), "%s/opensm", dir);
    snprintf(conf, sizeof(conf), "%s/a.conf", dir);
    snprintf(other, sizeof(other), "%s/b.conf", dir);
    snprintf(link, sizeof(link), "%s/c.conf", dir);
    snprintf(command, sizeof(command), "cp \"$(command -v tail)\" %s; touch %s %s; ln -s a.conf %s", program, conf,
             other, link);
    ck_assert_int_eq(system(command), 0);
    struct opensm o = {.config = conf};
    uint64_t guid[OPENSM_PORTS_MAX];
    ck_assert_int_eq(opensm_running(&o, guid), -ESRCH);
    ck_assert_int_eq(opensm_reload(&o), -ESRCH);
    pid_t ours = run_as(0, program, (const char *const[]){"opensm", "-F", conf, NULL});
    pid_t through_link = run_as(0, program, (const char *const[]){"opensm", "-F", link, NULL});
    pid_t others = run_as(0, program, (const char *const[]){"opensm", "-F", other, NULL});
    pid_t users = geteuid() ? 0 : run_as(65534, program, (const char *const[]){"opensm", "-F", conf, NULL});
    ck_assert_int_eq(opensm_running(&o, guid), 2);
    ck_assert_int_eq(opensm_reload(&o), 0);
    ck_assert(was_hung_up(ours));
    ck_assert(was_hung_up(through_link));
    ck_assert(!was_hung_up(others));
    ck_assert(!users || !was_hung_up(users)); /* any user may give a process this name */
    ck_assert_int_eq(opensm_running(&o, guid), -ESRCH);

    /* without the option it reads its own; another may run on this host, and is left alone */
    o.config = OPENSM_DEFAULT_CONF;
    int before = opensm_running(&o, guid);
    pid_t by_default = run_as(0, program, (const char *const[]){"opensm", "-f", other, NULL});
    ck_assert_int_eq(opensm_running(&o, guid), (before < 0 ? 0 : before) + 1);
    ck_assert(!was_hung_up(by_default));
    snprintf(command, sizeof(command), "rm -r %s", dir);
    ck_assert_int_eq(system(command), 0);
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
    tcase_add_test(t, opensm_by_its_configuration);
    return check_run(t, NULL);
}
