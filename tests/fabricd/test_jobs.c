/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's view of processes, on hosts of directories; the classes of jobs; and the file of jobs, rewritten while
 * growing.
 */
#include "fabricd/jobs/jobs.h"
#include "tests/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64];

static void setup(void)
{
    strcpy(dir, "/tmp/fabricd-jobs.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    setenv("FABRICD_ROOT", dir, 1);
}

static void teardown(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

/* A file of the host, with the directories above it. */
static void put_file(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof(full), "%s%s", dir, path);
    for (char *s = full + strlen(dir) + 1; (s = strchr(s, '/')); s++) {
        *s = 0;
        mkdir(full, 0755);
        *s = '/';
    }
    ck_assert_int_eq(text_write_file(full, text, strlen(text)), 0);
}

static void unified(void)
{
    put_file("/sys/fs/cgroup/cgroup.controllers", "");
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

#define V2 "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n"
#define V1                                                                                                             \
    "11:cpu,cpuacct:/slurm/uid_1000/job_7/step_0\n4:memory:/slurm/uid_1000/job_7\n1:name=systemd:/a.slice/b\n"         \
    "0::/\n"

START_TEST(inside)
{
    static const struct {
        bool unified;
        const char *where, *path;
        bool is;
    } cases[] = {
        {true, V2, "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7", true},
        {true, V2, "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", true},
        {true, V2, "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/user/task_0/x", false},
        {true, V2, "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_", false},
        {true, V2, "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_77", false},
        {true, "0::/job_77\n", "/sys/fs/cgroup/job_7", false},
        {true, "0::/job_7 (deleted)\n", "/sys/fs/cgroup/job_7", false},
        {true, "0::/x\n1:pids:/job_7\n", "/sys/fs/cgroup/job_7", false},
        {true, "", "/sys/fs/cgroup/job_7", false},
        {true, "nonsense\n0:/job_7\n:::\n0::job_7", "/sys/fs/cgroup/job_7", false},
        {true, "0::/job_7", "/sys/fs/cgroup/job_7", true},
        {false, V1, "/sys/fs/cgroup/memory/slurm/uid_1000/job_7", true},
        {false, V1, "/sys/fs/cgroup/cpu,cpuacct/slurm/uid_1000/job_7", true},
        {false, V1, "/sys/fs/cgroup/cpu/slurm/uid_1000/job_7", true},
        {false, V1, "/sys/fs/cgroup/cpuacct/slurm/uid_1000/job_7", true},
        {false, V1, "/sys/fs/cgroup/cp/slurm/uid_1000/job_7", false},
        {false, V1, "/sys/fs/cgroup/cpuset/slurm/uid_1000/job_7", false},
        {false, V1, "/sys/fs/cgroup/systemd/a.slice", true},
        {false, V1, "/sys/fs/cgroup/systemd/slurm/uid_1000/job_7", false},
        {false, V1, "/sys/fs/cgroup/memory/slurm/uid_1000/job_8", false},
        {false, V1, "/sys/fs/cgroup/memory", false},
        {false, V2, "/sys/fs/cgroup/unified/system.slice/slurmstepd.scope/job_7", true},
        {false, V2, "/sys/fs/cgroup/memory/system.slice/slurmstepd.scope/job_7", false},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/sys/fs/cgroup/cgroup.controllers", dir);
        if (cases[i].unified)
            unified();
        else
            unlink(path);
        ck_assert_msg(cgroups_inside(cases[i].where, cases[i].path) == cases[i].is, "%s in %s", cases[i].where,
                      cases[i].path);
    }
}
END_TEST

START_TEST(schedulers)
{
    static const struct {
        const char *where, *scheduler, *id;
    } cases[] = {
        {V2, "Slurm", "7"},
        {V1, "Slurm", "7"},
        {"0::/system.slice/n1_slurmstepd.scope/job_4711/step_batch\n", "Slurm", "4711"},
        {"4:memory:/slurm_n1/uid_0/job_3/step_0\n", "Slurm", "3"},
        {"0::/pbs_jobs.service/jobid/12.server\n", "PBS", "12.server"},
        {"5:cpuset:/propbs/12[3].server/x\n", "PBS", "12[3].server"},
        {"5:cpuset:/lsf/cluster1/job.99.1234.567\n", "LSF", "99"},
        {"0::/system.slice/slurmstepd.scope/job_\n", NULL, NULL},
        {"0::/system.slice/slurmstepd.scope/system\n", NULL, NULL},
        {"0::/system.slice/slurmstepd.scope\n", NULL, NULL},
        {"0::/user.slice/user-1000.slice/user@1000.service/system.slice/slurmstepd.scope/job_7\n", NULL, NULL},
        {"0::/user.slice/user-1000.slice/session-1.scope\n", NULL, NULL},
        {"5:cpuset:/lsf/cluster1/job.99\n", NULL, NULL},
        {"0::/pbs_jobs.service/jobid/0123456789012345678901234567890123456789012345678901234567890123\n", NULL, NULL},
        {"", NULL, NULL},
    };
    struct cgroup_job job;
    unified();
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_msg(cgroups_job_of(cases[i].where, &job) == !!cases[i].id, "%s", cases[i].where);
        ck_assert(!cases[i].id || (!strcmp(job.id, cases[i].id) && !strcmp(job.scheduler, cases[i].scheduler)));
        ck_assert_str_eq(job.path, ""); /* no sign of a lasting group */
    }
    put_file("/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_extern/cgroup.procs", "");
    ck_assert(cgroups_job_of(V2, &job));
    ck_assert_str_eq(job.path, "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7");
    put_file("/sys/fs/cgroup/memory/slurm/uid_1000/job_7/step_extern/cgroup.procs", "");
    ck_assert(cgroups_job_of(V1, &job)); /* in one of the process's hierarchies */
    ck_assert_str_eq(job.path, "/sys/fs/cgroup/memory/slurm/uid_1000/job_7");
}
END_TEST

START_TEST(looks)
{
    char path[256];
    unified();
    ck_assert_int_eq(cgroups_look("/sys/fs/cgroup/j"), CGROUP_GONE);
    put_file("/sys/fs/cgroup/j/tasks", "");
    ck_assert_int_eq(cgroups_look("/sys/fs/cgroup/j"), CGROUP_THERE);
    put_file("/sys/fs/cgroup/j/cgroup.procs", "");
    ck_assert_int_eq(cgroups_look("/sys/fs/cgroup/j"), CGROUP_EMPTY);
    put_file("/sys/fs/cgroup/j/step_0/cgroup.procs", "");
    put_file("/sys/fs/cgroup/j/step_0/task_0/cgroup.procs", "77\n");
    ck_assert_int_eq(cgroups_look("/sys/fs/cgroup/j"), CGROUP_IN_USE);
    put_file("/sys/fs/cgroup/j/step_0/task_0/cgroup.procs", "");
    ck_assert_int_eq(cgroups_look("/sys/fs/cgroup/j"), CGROUP_EMPTY);
    cgroups_watch_path("/sys/fs/cgroup/j", path, sizeof(path));
    ck_assert_str_eq(path + strlen(dir), "/sys/fs/cgroup/j");
    put_file("/sys/fs/cgroup/j/cgroup.events", "populated 0\nfrozen 0\n");
    ck_assert_int_eq(cgroups_look("/sys/fs/cgroup/j"), CGROUP_EMPTY);
    put_file("/sys/fs/cgroup/j/cgroup.events", "populated 1\nfrozen 0\n");
    ck_assert_int_eq(cgroups_look("/sys/fs/cgroup/j"), CGROUP_IN_USE);
    cgroups_watch_path("/sys/fs/cgroup/j", path, sizeof(path));
    ck_assert_str_eq(path + strlen(dir), "/sys/fs/cgroup/j/cgroup.events");
    cgroups_boot(path);
    ck_assert_str_eq(path, "");
    put_file("/proc/sys/kernel/random/boot_id", "01234567-89ab-cdef-0123-456789abcdef\n");
    cgroups_boot(path);
    ck_assert_str_eq(path, "01234567-89ab-cdef-0123-456789abcdef");
}
END_TEST

static bool old_kernel; /* a kernel without references to processes */

int getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
    if (old_kernel) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return (int)syscall(SYS_getsockopt, fd, level, option, value, len);
}

/* The process at the other end of a socket: this process, and an ended process whose number was reused. */
START_TEST(peer)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char path[64], *where;
    int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0), ends[2];
    old_kernel = _i;
    snprintf(path, sizeof(path), "/proc/%d/cgroup", getpid());
    put_file(path, V2);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    ck_assert_int_eq(cgroups_of_peer(ends[0], getpid(), getuid(), &where), 0);
    ck_assert_str_eq(where, V2);
    free(where);
    ck_assert_int_lt(cgroups_of_peer(ends[0], 999999999, getuid(), &where), 0);
    ck_assert_ptr_null(where);
    snprintf(a.sun_path, sizeof(a.sun_path), "%s/socket", dir);
    ck_assert(!bind(listener, (struct sockaddr *)&a, sizeof(a)) && !listen(listener, 1));
    pid_t child = fork();
    if (!child)
        _exit(connect(ends[0] = socket(AF_UNIX, SOCK_SEQPACKET, 0), (struct sockaddr *)&a, sizeof(a)) != 0);
    int fd = accept(listener, NULL, NULL), status;
    ck_assert(fd >= 0 && waitpid(child, &status, 0) == child && !status);
    snprintf(path, sizeof(path), "/proc/%d/cgroup", child);
    put_file(path, V2);
    ck_assert_int_eq(cgroups_of_peer(fd, child, getuid(), &where), -ESRCH);
    ck_assert_ptr_null(where);
    close(fd);
    close(listener);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* ---- seats ------------------------------------------------------------------------------------------------------- */

static const struct user bob = {.uid = 4242, .known = true, .name = "bob", .groups = "users\0video\0"};
static const struct user alice = {.uid = 4243, .known = true, .name = "alice", .groups = "physics\0"};
static const struct user nobody = {.uid = FD_UID_ANY, .groups = ""};
static struct policy rules = {.num_classes = 3, .classes = {{.name = "normal"}, {.name = "urgent"}, {.name = "batch"}}};

/* The class of a job in an empty table. */
static const char *decided(const struct job *job, const struct user *user, enum job_source source)
{
    struct job now = *job;
    struct seats none = {0};
    seats_decide(&none, &rules, user, NULL, &now);
    ck_assert_int_eq(now.source, source);
    ck_assert(!memcmp(&none, &(struct seats){0}, sizeof(none)));
    return rules.classes[now.seat - 1].name;
}

/* A wish holds if the policy allows the class, and the scheduler's choice has priority. */
START_TEST(who_decides)
{
    struct job job = {.id = "1", .uid = 4242, .account = "vip", .wish = "urgent"};
    ck_assert_str_eq(decided(&job, &bob, SOURCE_RULE), "normal");
    rules.num_rules = 1; /* of no job: the user alone counts */
    rules.rules[0] = (struct policy_rule){.of.user = "al*", .class_index = 2};
    ck_assert_uint_eq(seats_class_of_user(&rules, &alice), 2);
    ck_assert_uint_eq(seats_class_of_user(&rules, &bob), 0);
    rules.classes[2].jobs_max = 5; /* nor does he count */
    ck_assert_uint_eq(seats_class_of_user(&rules, &alice), 0);
    rules.classes[2].jobs_max = 0;
    rules.rules[0] = (struct policy_rule){.of.group = "vi*", .class_index = 2};
    ck_assert_str_eq(decided(&job, &bob, SOURCE_RULE), "batch"); /* any of his groups */
    ck_assert_str_eq(decided(&job, &alice, SOURCE_RULE), "normal");
    strcpy(rules.rules[0].of.group, "*"); /* a user not known yet gets nothing */
    ck_assert_str_eq(decided(&job, &nobody, SOURCE_RULE), "normal");
    rules.num_rules = 0;
    rules.classes[1].num_choose = 1;
    strcpy(rules.classes[1].choose[0].account, "vip");
    ck_assert_str_eq(decided(&job, &bob, SOURCE_USER), "urgent");
    strcpy(job.account, "other");
    ck_assert_str_eq(decided(&job, &bob, SOURCE_RULE), "normal");
    strcpy(job.class_name, "batch");
    ck_assert_str_eq(decided(&job, &bob, SOURCE_SCHEDULER), "batch");
    strcpy(job.class_name, "gone"); /* no longer in the policy */
    strcpy(job.account, "vip");
    ck_assert_str_eq(decided(&job, &bob, SOURCE_USER), "urgent");
    strcpy(job.wish, "nonsense");
    ck_assert_str_eq(decided(&job, &bob, SOURCE_RULE), "normal");
    rules.classes[1].num_choose = 0;
}
END_TEST

/* A host with jobs decided as orders do. */
static const char *set(struct jobs *j, const char *id, uint32_t since, const struct user *user, const char *account,
                       const char *class_name)
{
    const struct job *old = jobs_find(j, id);
    struct job now = {.uid = user->uid, .since = since};
    strcpy(now.id, id);
    strcpy(now.account, account);
    strcpy(now.class_name, class_name);
    seats_decide(&j->seats, &rules, user, old, &now);
    ck_assert_int_eq(jobs_set(j, &now), 0);
    return rules.classes[now.seat - 1].name;
}

static const char *class_of(const struct jobs *j, const char *id)
{
    return rules.classes[jobs_find(j, id)->seat - 1].name;
}

/* A full class is passed over; the holder of a seat keeps the seat, whatever others do, and through a restart. */
START_TEST(limits)
{
    struct jobs j;
    struct diag d = {0};
    struct text why = {0};
    rules.num_rules = 2;
    rules.rules[0] = (struct policy_rule){.of.account = "vip", .class_index = 1};
    rules.rules[1] = (struct policy_rule){.of.account = "vip", .class_index = 2};
    rules.classes[1].jobs_max = 3;
    rules.classes[1].user_jobs_max = 2;
    rules.classes[2].jobs_max = 1;
    ck_assert(jobs_open(&j, dir, &d));
    ck_assert_str_eq(set(&j, "1", 10, &bob, "vip", ""), "urgent");
    ck_assert_str_eq(set(&j, "2", 20, &bob, "vip", ""), "urgent");
    ck_assert_str_eq(set(&j, "3", 5, &bob, "vip", ""), "batch"); /* his third */
    ck_assert_uint_eq(jobs_find(&j, "3")->full, 2);
    ck_assert(!seats_have_room(&j.seats, &rules, 1, jobs_find(&j, "3"), &why));
    ck_assert_ptr_nonnull(strstr(text_str(&why), "class 'urgent' is full for uid 4242: max jobs per user is 2, "));
    ck_assert_str_eq(set(&j, "4", 40, &bob, "vip", ""), "normal");
    ck_assert_str_eq(set(&j, "5", 50, &alice, "vip", ""), "urgent");
    ck_assert_str_eq(set(&j, "6", 60, &alice, "vip", ""), "normal"); /* the fourth of all */
    why.len = 0;
    ck_assert(!seats_have_room(&j.seats, &rules, 1, jobs_find(&j, "6"), &why));
    ck_assert_ptr_nonnull(strstr(text_str(&why), "class 'urgent' is full: max jobs is 3, "));
    ck_assert(seats_have_room(&j.seats, &rules, 1, jobs_find(&j, "5"), &why)); /* already in the class */
    ck_assert_str_eq(set(&j, "1", 10, &bob, "vip", ""), "urgent");             /* its own seat counts as free */
    ck_assert_str_eq(set(&j, "7", 70, &alice, "", "urgent"), "urgent");        /* assigned classes have no limit, */
    ck_assert_uint_eq(j.seats.held[1], 4);
    ck_assert_int_eq(jobs_delete(&j, "2"), 0);
    ck_assert_uint_eq(j.seats.held[1], 3);
    ck_assert_str_eq(set(&j, "8", 80, &bob, "vip", ""), "normal"); /* but counts */
    ck_assert_int_eq(jobs_delete(&j, "7"), 0);
    ck_assert_str_eq(class_of(&j, "4"), "normal"); /* no job is moved by that */
    ck_assert_str_eq(set(&j, "4", 40, &bob, "vip", ""), "urgent");
    jobs_close(&j);
    ck_assert_ptr_null(j.seats.by_uid);

    ck_assert(jobs_open(&j, dir, &d));
    ck_assert_uint_eq(j.seats.held[1], 0);
    seats_decide_all(&j.seats, &rules, NULL, j.job, j.n);
    ck_assert_str_eq(class_of(&j, "1"), "urgent");
    ck_assert_str_eq(class_of(&j, "3"), "batch"); /* though the oldest */
    ck_assert_str_eq(class_of(&j, "4"), "urgent");
    ck_assert_str_eq(class_of(&j, "5"), "urgent");
    ck_assert_str_eq(class_of(&j, "6"), "normal");
    ck_assert_uint_eq(j.seats.held[1], 3);
    rules.classes[1].jobs_max = 1; /* another policy: the longest holder stays */
    seats_decide_all(&j.seats, &rules, NULL, j.job, j.n);
    ck_assert_str_eq(class_of(&j, "1"), "urgent");
    ck_assert_uint_eq(j.seats.held[1], 1);
    ck_assert_uint_eq(j.seats.held[2], 1);
    rules.classes[1].jobs_max = rules.classes[1].user_jobs_max = rules.classes[2].jobs_max = 0;
    seats_decide_all(&j.seats, &rules, NULL, j.job, j.n);
    ck_assert_uint_eq(j.seats.held[1], j.n);
    rules.num_rules = 0;
    jobs_close(&j);
    text_free(&why);
}
END_TEST

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void job_named(struct job *job, unsigned i, const char *class_name)
{
    *job = (struct job){.uid = 7};
    snprintf(job->id, sizeof(job->id), i % 3 ? "job %u" : "\"%u\", {\\", i);
    snprintf(job->class_name, sizeof(job->class_name), "%s", class_name);
}

static struct compaction *handed_over;
static void hand_over(void *arg, struct compaction *c)
{
    (*(unsigned *)arg)++;
    handed_over = c;
}

/* Sixty thousand jobs, and the file is rewritten while they change; the file is whole at each step. */
START_TEST(compacted)
{
    enum { JOBS = 60000, CHANGES = 1000 };
    struct jobs j, before;
    struct diag d = {0};
    struct job job;
    struct stat st;
    char path[128];
    unsigned asked = 0, i;
    ck_assert(jobs_open(&j, dir, &d));
    j.compact = hand_over;
    j.compact_arg = &asked;
    for (i = 0; i < JOBS; i++) {
        job_named(&job, i, "first");
        ck_assert_int_eq(jobs_set(&j, &job), 0);
    }
    i = 0;
    while (!asked) {
        job_named(&job, i++ % JOBS, "second");
        ck_assert_int_eq(jobs_set(&j, &job), 0);
    }
    ck_assert_uint_gt(i, JOBS);
    compact_run(handed_over);
    ck_assert_int_eq(handed_over->rc, 0);
    for (unsigned k = 0; k < CHANGES; k++) { /* meanwhile */
        job_named(&job, k, "third");
        ck_assert_int_eq(k % 2 ? jobs_delete(&j, job.id) : jobs_set(&j, &job), 0);
    }
    ck_assert_uint_eq(asked, 1);
    ck_assert(jobs_open(&before, dir, &d)); /* the view of a daemon after a kill now */
    ck_assert_uint_eq(before.n, JOBS - CHANGES / 2);
    jobs_close(&before);
    ck_assert_int_eq(jobs_compacted(&j), 0);
    ck_assert_uint_lt(j.journal.lines, JOBS + CHANGES + 1);
    jobs_close(&j);
    snprintf(path, sizeof(path), "%s/jobs.yaml", dir);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_lt(st.st_size, 60 * (JOBS + CHANGES));
    ck_assert_msg(jobs_open(&j, dir, &d), "%s", text_str(&d.out));
    ck_assert_uint_eq(j.n, JOBS - CHANGES / 2);
    for (i = 0; i < JOBS; i++) {
        job_named(&job, i, "");
        const struct job *is = jobs_find(&j, job.id);
        ck_assert(i < CHANGES && i % 2 ? !is : !strcmp(is->class_name, i < CHANGES ? "third" : "second"));
    }
    jobs_close(&j);
}
END_TEST

/*
 * If the rewriting fails, or the file has been replaced meanwhile, the file stays unchanged, and nothing is left
 * beside.
 */
START_TEST(not_compacted)
{
    struct journal *const journal = &(struct journal){0};
    struct compaction c;
    struct jobs j;
    struct diag d = {0};
    struct job job;
    char path[sizeof(c.tmp)];
    struct text t = {0};
    ck_assert(jobs_open(&j, dir, &d));
    for (unsigned i = 0; i < 10; i++) {
        job_named(&job, i % 5, "a");
        ck_assert_int_eq(jobs_set(&j, &job), 0);
    }
    ck_assert_int_eq(compact_begin(&j.journal, &c), 0);
    compact_run(&c);
    strcpy(path, c.tmp);
    if (_i == 0)
        c.rc = -EIO;
    else if (_i == 1)
        ck_assert_int_eq(journal_write(&j.journal, &t, 0), 0); /* anew: without any job */
    else
        ck_assert_int_eq(unlink(j.journal.path), 0);
    ck_assert_int_lt(compact_end(&j.journal, &c), 0);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(jobs_set(&j, &job), 0);
    unsigned jobs = _i == 1 ? 1 : 5;
    jobs_close(&j);
    ck_assert(jobs_open(&j, dir, &d));
    ck_assert_uint_eq(j.n, jobs);
    jobs_close(&j);
    ck_assert_int_eq(compact_begin(journal, &c), -ESTALE);
}
END_TEST

/* To set a job is a line at the end of the file, however many there are: work that does not grow with them. */
START_TEST(work_of_one)
{
    enum { JOBS = 10000 };
    struct jobs j;
    struct diag d = {0};
    struct job job;
    struct stat a, b;
    char path[128];
    ck_assert(jobs_open(&j, dir, &d));
    for (unsigned i = 0; i < JOBS; i++) {
        job_named(&job, i, "a");
        ck_assert_int_eq(jobs_set(&j, &job), 0);
    }
    snprintf(path, sizeof(path), "%s/jobs.yaml", dir);
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_int_eq(stat(path, &a), 0);
        job_named(&job, 7 * i, "b");
        ck_assert_int_eq(jobs_set(&j, &job), 0);
        ck_assert_int_eq(stat(path, &b), 0);
        ck_assert_uint_eq(a.st_ino, b.st_ino);
        ck_assert_int_lt(b.st_size - a.st_size, 100);
    }
    jobs_close(&j);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("jobs");
    tcase_set_timeout(t, 120); /* real seconds: the disk may be slow */
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, inside);
    tcase_add_test(t, schedulers);
    tcase_add_test(t, looks);
    tcase_add_loop_test(t, peer, 0, 2);
    tcase_add_test(t, who_decides);
    tcase_add_test(t, limits);
    tcase_add_test(t, compacted);
    tcase_add_loop_test(t, not_compacted, 0, 3);
    tcase_add_test(t, work_of_one);
    return check_run(t, NULL);
}
