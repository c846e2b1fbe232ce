/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timeout [-k SECONDS] [-t FILE] SECONDS COMMAND...: as in coreutils, COMMAND gets SIGTERM when its time is up, and
 * SIGKILL SECONDS later; the exit status is then 124, or 137. Waits of the command for a processor do not count: a
 * limit means the same on a busy machine. FILE gets the time taken, in seconds, and the longest time between two looks.
 * Tests have this program before the system's in their PATH.
 *
 * Every TICK_MS, or less often where looks would take more than 1/LOOKS_TAKE of a processor, a look at /proc finds
 * whether a thread of the test is ready to run, and the processor time of all threads. If no thread is ready, the whole
 * tick counts; else only the part that was computed, so on an idle machine the time is a clock's. The test is the
 * descendants of the outermost of these programs, or of the process in TEST_ROOT: a command may wait for other
 * processes of its test that wait for a processor, such as the engine of its fabric. TEST_CLOCK is a file with the time
 * in ms, for a machine that waits for processors itself.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 200, LOOKS_TAKE = 100, TIMED_OUT = 124, USAGE = 125, CANNOT_RUN = 126, NOT_FOUND = 127 };

static pid_t child, root;
static double had_s;     /* time of the command until now */
static double longest_s; /* between two looks */

/* Asks the kernel: on a simulated host, the C library's call returns virtual time, which may stand still. */
static double now_s(clockid_t clock)
{
    struct timespec t = {0};

    syscall(SYS_clock_gettime, clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The clock that commands are measured by. An unreadable file, being replaced, leaves the time unchanged. */
static double clock_s(void)
{
    static double told_ms;
    const char *path = getenv("TEST_CLOCK");
    FILE *f;

    if (!path || !*path)
        return now_s(CLOCK_MONOTONIC);
    f = fopen(path, "re");
    if (f) {
        double ms;

        if (fscanf(f, "%lf", &ms) == 1)
            told_ms = ms;
        fclose(f);
    }
    return told_ms / 1e3;
}

/* ---- activity of the command ---- */

struct work {
    double cpu_s; /* of all live processes and their reaped children */
    bool ready;   /* somebody runs or waits for a processor */
    double look_s;
};

/*
 * Reads the file's first line: the state and the processor ticks; false: no such task. Other instances of this program,
 * busy with their own looks, have the state '-'.
 */
static bool read_stat(const char *path, char *state, unsigned long ticks[4])
{
    char line[1024], *p;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);

    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    line[n] = 0;
    p = strrchr(line, ')');
    if (!p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", state, &ticks[0], &ticks[1],
                     &ticks[2], &ticks[3]) != 5)
        return false;
    if (strstr(line, " (timeout) "))
        *state = '-';
    return true;
}

static void add_process(pid_t pid, struct work *w);

static void add_children(const char *path, struct work *w)
{
    FILE *f = fopen(path, "re");
    int pid;

    if (!f)
        return;
    while (fscanf(f, "%d", &pid) == 1)
        add_process(pid, w);
    fclose(f);
}

/* Its threads and children; that the caller runs counts for nothing. */
static void add_threads(pid_t pid, struct work *w)
{
    char path[sizeof "/proc/2147483648/task/2147483648/children"];
    unsigned long ticks[4];
    struct dirent *e;
    char state;
    DIR *d;

    snprintf(path, sizeof path, "/proc/%d/task", pid);
    d = opendir(path);
    while (d && (e = readdir(d))) {
        int tid = atoi(e->d_name);

        if (tid <= 0)
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
        if (pid != getpid() && read_stat(path, &state, ticks) && state == 'R')
            w->ready = true;
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, tid);
        add_children(path, w);
    }
    if (d)
        closedir(d);
}

static void add_process(pid_t pid, struct work *w)
{
    char path[sizeof "/proc/2147483648/stat"], state;
    unsigned long ticks[4];

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (read_stat(path, &state, ticks))
        w->cpu_s += (double)(ticks[0] + ticks[1] + ticks[2] + ticks[3]) / (double)sysconf(_SC_CLK_TCK);
    add_threads(pid, w);
}

static struct work look(void)
{
    struct work w = {.look_s = -now_s(CLOCK_PROCESS_CPUTIME_ID)};

    add_process(root, &w);
    w.look_s += now_s(CLOCK_PROCESS_CPUTIME_ID);
    return w;
}

/* The process that began the test, an ancestor of this one; this process if that is gone. */
static void find_root(void)
{
    const char *given = getenv("TEST_ROOT");
    char text[16], path[sizeof "/proc/2147483648/stat"];
    pid_t pid = getpid();

    root = given ? atoi(given) : 0;
    while (pid > 1 && pid != root) {
        FILE *f;

        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        f = fopen(path, "re");
        if (!f || fscanf(f, "%*d (%*[^)]) %*c %d", &pid) != 1)
            pid = 1;
        if (f)
            fclose(f);
    }
    if (pid > 1)
        return;
    root = getpid();
    snprintf(text, sizeof text, "%d", root);
    setenv("TEST_ROOT", text, 1);
}

/* ---- its end ---- */

/* Sends to the command and its whole process group, which is ours: SIGKILL ends the caller, too. */
static void tell(int sig)
{
    signal(sig, SIG_IGN);
    kill(child, sig);
    kill(0, sig);
    kill(child, SIGCONT);
    kill(0, SIGCONT);
}

static void pass_on(int sig)
{
    int err = errno;

    tell(sig);
    errno = err;
}

/* Has the command ended? Takes the status of whatever else has been left to us, too. */
static bool ended(int *status)
{
    int s;
    pid_t pid;

    while ((pid = waitpid(-1, &s, WNOHANG)) > 0)
        if (pid == child) {
            *status = s;
            return true;
        }
    return false;
}

static struct timespec timespec_of(double s)
{
    s = s > 1e-3 ? s : 1e-3;
    return (struct timespec){.tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)};
}

/* Waits for the end of the command, returning true, or for s. */
static bool ends_in_real(double s, int *status)
{
    double until_s = now_s(CLOCK_MONOTONIC) + s, left_s;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    while (!ended(status)) {
        left_s = until_s - now_s(CLOCK_MONOTONIC);
        if (left_s <= 0)
            return false;
        sigtimedwait(&set, NULL, (struct timespec[]){timespec_of(left_s)});
    }
    return true;
}

/* False: the time is up. A limit of 0 is none. */
static bool ends_within(double limit_s, int *status)
{
    double last_s = clock_s(), until_s = limit_s > 0 ? had_s + limit_s : 1e9;
    struct work before = look();
    bool over = false;

    while (!over && had_s < until_s) {
        double tick_s = LOOKS_TAKE * before.look_s > 1e-3 * TICK_MS ? LOOKS_TAKE * before.look_s : 1e-3 * TICK_MS;
        double now, took_s, cpu_s;
        struct work w;

        over = ends_in_real(tick_s < until_s - had_s ? tick_s : until_s - had_s, status);
        w = look();
        now = clock_s();
        took_s = now - last_s;
        longest_s = took_s > longest_s ? took_s : longest_s;
        cpu_s = w.cpu_s > before.cpu_s ? w.cpu_s - before.cpu_s : 0;
        /* an ended process is no longer ready, but may have been ready all along */
        had_s += (over ? before.ready : w.ready) && cpu_s < took_s ? cpu_s : took_s;
        before = w;
        last_s = now;
    }
    return over;
}

/* The command gets these signals with default actions: shells ignore them for background processes. */
static void start(char **argv)
{
    static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    const unsigned n = sizeof passed_on / sizeof *passed_on;
    sigset_t set, before;

    setpgid(0, 0);
    signal(SIGTTIN, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, &before);
    child = fork();
    for (unsigned i = 0; i < n; i++)
        sigaction(passed_on[i], &(struct sigaction){.sa_handler = child ? pass_on : SIG_DFL, .sa_flags = SA_RESTART},
                  NULL);
    if (child == 0) {
        signal(SIGTTIN, SIG_DFL);
        signal(SIGTTOU, SIG_DFL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        execvp(argv[0], argv);
        fprintf(stderr, "timeout: cannot run '%s': %s\n", argv[0], strerror(errno));
        _exit(errno == ENOENT ? NOT_FOUND : CANNOT_RUN);
    }
    sigaddset(&before, SIGCHLD);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* kill_s: 0 for never. */
static int run(double limit_s, double kill_s)
{
    int status = 0;

    if (ends_within(limit_s, &status))
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    tell(SIGTERM);
    if (!ends_within(kill_s, &status))
        tell(SIGKILL);
    return TIMED_OUT;
}

static bool is_time(const char *text, double *s)
{
    char *end;

    *s = strtod(text, &end);
    return end != text && !*end && *s >= 0;
}

int main(int argc, char **argv)
{
    double kill_s = 0, limit_s;
    FILE *took = NULL;
    bool good = true;
    int opt, rc;

    while ((opt = getopt(argc, argv, "+k:t:")) != -1)
        if (opt == 'k')
            good = good && is_time(optarg, &kill_s);
        else
            good = good && opt == 't' && (took = fopen(optarg, "we"));
    if (!good || optind + 1 >= argc || !is_time(argv[optind], &limit_s)) {
        fprintf(stderr, "usage: timeout [-k SECONDS] [-t FILE] SECONDS COMMAND...\n");
        return USAGE;
    }
    find_root();
    start(argv + optind + 1);
    if (child < 0)
        return USAGE;
    rc = run(limit_s, kill_s);
    if (took)
        fprintf(took, "%.3f %.3f\n", had_s, longest_s);
    return took && fclose(took) ? USAGE : rc;
}
