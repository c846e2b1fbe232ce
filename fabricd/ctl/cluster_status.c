/* SPDX-License-Identifier: BSD-3-Clause */
/* See cluster_status.h. */
#include "fabricd/ctl/cluster_status.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/ydoc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX    64
#define SAID_MAX     (16u << 20) /* of the list of hosts; the status of a host is read as far as HEAD_MAX */
#define HEAD_MAX     16384u
#define ERROR_MAX    4096u
#define HOST_MAX     255u
#define PARALLEL_MAX 256u /* a host costs two descriptors */

/* ---- programs that are run, and what they say ------------------------------------------------------------------- */

struct run {
    pid_t pid;           /* 0: not begun, or ended */
    int fd[2];           /* the program's output and errors; -1: closed */
    struct text said[2]; /* the same, cut at max */
    size_t max;
    uint64_t until_us;
    bool late;
    int status; /* from waitpid; -1: the program could not be started */
};

static void child(const char *const words[], const int out[2])
{
    sigset_t none;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0); /* to end all its processes together */
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    dup2(out[0], STDOUT_FILENO);
    dup2(out[1], STDERR_FILENO);
    execvp(words[0], (char *const *)words);
    fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
    _exit(127);
}

static void run_begin(struct run *r, const char *const words[], size_t max, uint32_t timeout_s)
{
    int out[2], err[2];
    *r = (struct run){.fd = {-1, -1}, .max = max, .status = -1, .until_us = clock_us() + timeout_s * 1000000ull};
    if (pipe2(out, O_CLOEXEC))
        return;
    if (pipe2(err, O_CLOEXEC)) {
        close(out[0]);
        close(out[1]);
        return;
    }
    pid_t pid = fork();
    if (!pid)
        child(words, (int[]){out[1], err[1]});
    close(out[1]);
    close(err[1]);
    r->fd[0] = out[0];
    r->fd[1] = err[0];
    for (int i = 0; i < 2; i++)
        fcntl(r->fd[i], F_SETFL, O_NONBLOCK);
    r->pid = pid > 0 ? pid : 0;
}

/* Reads available output, up to a limit at a time; bytes beyond max are dropped. */
static void run_read(struct run *r)
{
    char buf[8192];
    for (int i = 0; i < 2; i++) {
        ssize_t n = 0;
        for (int k = 0; k < 16 && r->fd[i] >= 0 && (n = read(r->fd[i], buf, sizeof(buf))) > 0; k++) {
            size_t max = i ? ERROR_MAX : r->max, room = max - r->said[i].len;
            text_put(&r->said[i], buf, (size_t)n < room ? (size_t)n : room);
        }
        if (r->fd[i] >= 0 && (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))) {
            close(r->fd[i]);
            r->fd[i] = -1;
        }
    }
}

/* True if the program has ended or is late. Then all its processes are gone. */
static bool run_over(struct run *r)
{
    run_read(r);
    if (r->pid && !waitpid(r->pid, &r->status, WNOHANG)) {
        if (clock_us() < r->until_us)
            return false;
        r->late = true;
        kill(-r->pid, SIGKILL);
        kill(r->pid, SIGKILL); /* the process may have no group of its own yet */
        while (waitpid(r->pid, &r->status, 0) < 0 && errno == EINTR)
            ;
    } else if (r->pid) {
        kill(-r->pid, SIGKILL); /* processes left behind */
    }
    run_read(r);
    for (int i = 0; i < 2; i++)
        if (r->fd[i] >= 0)
            close(r->fd[i]);
    r->fd[0] = r->fd[1] = -1;
    r->pid = 0;
    return true;
}

static void run_free(struct run *r)
{
    text_free(&r->said[0]);
    text_free(&r->said[1]);
}

/* Waits until one of them writes, has ended or is late. */
static void await(int children, struct run *const runs[], size_t n)
{
    struct pollfd *p = calloc(2 * n + 1, sizeof(*p));
    uint64_t now_us = clock_us(), until_us = UINT64_MAX;
    size_t k = 0;
    if (!p)
        abort();
    p[k++] = (struct pollfd){.fd = children, .events = POLLIN};
    for (size_t i = 0; i < n; i++) {
        until_us = runs[i]->until_us < until_us ? runs[i]->until_us : until_us;
        for (int f = 0; f < 2; f++)
            if (runs[i]->fd[f] >= 0)
                p[k++] = (struct pollfd){.fd = runs[i]->fd[f], .events = POLLIN};
    }
    poll(p, k, until_us > now_us ? (int)((until_us - now_us) / 1000) + 1 : 0);
    struct signalfd_siginfo info[16];
    (void)!read(children, info, sizeof(info));
    free(p);
}

/* A descriptor that can be read when a child has ended. */
static int watch_children(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- hosts ------------------------------------------------------------------------------------------------------ */

enum verdict { SAME, BEHIND, AHEAD, OTHER, NOT_VERIFIED, UNREACHABLE, VERDICTS };

struct host {
    char name[HOST_MAX + 1];
    struct run run;
    bool answered, manages;
    uint64_t generation;
    char digest[20], state[48]; /* of the policy in force */
    char why[256];
    enum verdict verdict;
};

struct hosts {
    struct host *host;
    size_t n, room;
};

/* Such a name is no option of the launcher, and nothing to a shell. */
static bool good_name(const char *s, size_t len)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@-";
    return len && len <= HOST_MAX && *s != '-' && strspn(s, good) >= len;
}

static bool add_host(struct hosts *h, const char *name, size_t len)
{
    if (!good_name(name, len) || h->n == CLUSTER_HOSTS_MAX) {
        fprintf(stderr,
                "fabricctl: '%.*s' is no name of a host; allowed: letters, digits and ._:@-, at most %u hosts\n",
                (int)(len < HOST_MAX ? len : HOST_MAX), name, CLUSTER_HOSTS_MAX);
        return false;
    }
    if (h->n == h->room) {
        h->room = h->room ? 2 * h->room : 64;
        h->host = realloc(h->host, h->room * sizeof(*h->host));
        if (!h->host)
            abort();
    }
    h->host[h->n] = (struct host){.run = {.fd = {-1, -1}}};
    memcpy(h->host[h->n++].name, name, len);
    return true;
}

/* A command of Slurm that prints names, a line each. */
static bool ask_slurm(struct hosts *h, int children, const struct cluster_options *o, const char *const words[])
{
    struct run r, *const one[] = {&r};
    run_begin(&r, words, SAID_MAX, o->timeout_s);
    while (!run_over(&r))
        await(children, one, 1);
    bool good = !r.late && !r.status && r.said[0].len;
    if (!good)
        fprintf(stderr, "fabricctl: %s of Slurm does not tell the hosts: %s%s", words[0],
                r.late ? "no answer" : text_str(&r.said[1]),
                r.said[1].len && r.said[1].s[r.said[1].len - 1] == '\n' ? "" : "\n");
    for (const char *p = text_str(&r.said[0]); good && *p; p += strcspn(p, "\n") + 1)
        good = add_host(h, p, strcspn(p, "\n"));
    run_free(&r);
    return good;
}

static int by_host_name(const void *a, const void *b)
{
    return strverscmp(((const struct host *)a)->name, ((const struct host *)b)->name);
}

/* Slurm lists a host once for each partition. */
static void sort_hosts(struct hosts *h)
{
    size_t kept = 0;
    qsort(h->host, h->n, sizeof(*h->host), by_host_name);
    for (size_t i = 0; i < h->n; i++)
        if (!kept || strcmp(h->host[kept - 1].name, h->host[i].name))
            h->host[kept++] = h->host[i];
    h->n = kept;
}

static bool list_hosts(struct hosts *h, int children, const struct cluster_options *o, unsigned num,
                       char *const names[])
{
    bool good = true;
    if (!num) {
        good = ask_slurm(h, children, o, (const char *const[]){"sinfo", "-h", "-N", "-o", "%N", NULL});
        sort_hosts(h);
    }
    for (unsigned i = 0; good && i < num; i++)
        good = strpbrk(names[i], "[,")
                   ? ask_slurm(h, children, o, (const char *const[]){"scontrol", "show", "hostnames", names[i], NULL})
                   : add_host(h, names[i], strlen(names[i]));
    return good;
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

/* The last line of its output. */
static void take_why(struct host *h, const char *said)
{
    size_t len = strlen(said);
    while (len && said[len - 1] == '\n')
        len--;
    size_t from = len;
    while (from && said[from - 1] != '\n')
        from--;
    snprintf(h->why, sizeof(h->why), "%.*s", (int)(len - from < sizeof(h->why) ? len - from : sizeof(h->why) - 1),
             said + from);
}

/* The relevant lines of a status. */
static void head_of(const char *status, struct text *out)
{
    static const char *const keys[] = {"fabricd: ", "policy: ", "follows: "};
    for (const char *p = status; *p;) {
        size_t n = strcspn(p, "\n");
        for (unsigned i = 0; i < 3; i++)
            if (!strncmp(p, keys[i], strlen(keys[i])) && p[n])
                text_put(out, p, n + 1);
        p += n + (p[n] != 0);
    }
}

static const char *scalar(struct ydoc *y, const char *map, const char *key)
{
    yaml_node_t *of = ydoc_get(y, ydoc_root(y), map), *n = of ? ydoc_get(y, of, key) : NULL;
    const char *s = n ? ydoc_scalar(n) : NULL;
    return s ? s : "";
}

static bool parse_status(struct host *h, const char *status)
{
    struct text head = {0};
    struct diag d = {.file = h->name};
    struct ydoc y;
    head_of(status, &head);
    bool good = ydoc_load(&y, text_str(&head), head.len, &d);
    if (good) {
        h->manages = !strcmp(scalar(&y, "fabricd", "role"), "manager");
        good = ydoc_uint_of(scalar(&y, "policy", "generation"), &h->generation);
        snprintf(h->digest, sizeof(h->digest), "%s", scalar(&y, "policy", "digest"));
        snprintf(h->state, sizeof(h->state), "%s", scalar(&y, "policy", "state"));
        if (good && strcmp(scalar(&y, "follows", "waiting"), "no"))
            snprintf(h->why, sizeof(h->why), "%s", scalar(&y, "follows", "waiting"));
        ydoc_free(&y);
    }
    text_free(&d.out);
    text_free(&head);
    return good;
}

static void take_answer(struct host *h, const struct cluster_options *o)
{
    const struct run *r = &h->run;
    if (r->late)
        snprintf(h->why, sizeof(h->why), "no answer within %u s", o->timeout_s);
    else if (r->status == -1)
        snprintf(h->why, sizeof(h->why), "the launcher could not be begun");
    else if (r->status)
        take_why(h, text_str(&r->said[1]));
    else
        h->answered = parse_status(h, text_str(&r->said[0]));
    if (!h->answered && !h->why[0])
        snprintf(h->why, sizeof(h->why), r->status ? "the launcher failed" : "not an answer of fabricctl status");
    run_free(&h->run);
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

/* The launcher's words. False: there are none, or too many. */
static bool launcher_words(char *launcher, const char *words[WORDS_MAX])
{
    unsigned n = 0;
    for (char *word, *rest = launcher; (word = strsep(&rest, " \t")) && n < WORDS_MAX;)
        if (*word)
            words[n++] = word;
    return n && n < WORDS_MAX;
}

static void ask_host(struct host *h, const char *const launcher[], const struct cluster_options *o)
{
    const char *words[WORDS_MAX + 4];
    unsigned n = 0;
    for (; launcher[n]; n++)
        words[n] = launcher[n];
    words[n++] = h->name;
    words[n++] = "fabricctl";
    words[n++] = "status";
    words[n] = NULL;
    run_begin(&h->run, words, HEAD_MAX, o->timeout_s);
}

static void ask_all(struct hosts *h, int children, const char *const launcher[], const struct cluster_options *o)
{
    size_t parallel = o->parallel < PARALLEL_MAX ? o->parallel : PARALLEL_MAX, next = 0, n = 0;
    struct run **running = calloc(parallel, sizeof(struct run *));
    struct host **of = calloc(parallel, sizeof(struct host *));
    if (!running || !of)
        abort();
    while (next < h->n || n) {
        for (; next < h->n && n < parallel; n++, next++) {
            ask_host(&h->host[next], launcher, o);
            of[n] = &h->host[next];
            running[n] = &of[n]->run;
        }
        for (size_t i = 0; i < n;) {
            if (run_over(running[i])) {
                take_answer(of[i], o);
                of[i] = of[--n];
                running[i] = running[n];
            } else {
                i++;
            }
        }
        if (n && (n == parallel || next == h->n))
            await(children, running, n);
    }
    free(running);
    free(of);
}

/* A manager decides; without an answer of a manager, the newest policy does. NULL: no policy is in force. */
static const struct host *reference(const struct hosts *h)
{
    const struct host *best = NULL;
    for (size_t i = 0; i < h->n; i++) {
        const struct host *one = &h->host[i];
        if (!one->answered || !one->generation)
            continue;
        if (!best || one->manages > best->manages ||
            (one->manages == best->manages && one->generation > best->generation))
            best = one;
    }
    return best;
}

static enum verdict judge_host(const struct host *h, const struct host *ref)
{
    if (!h->answered)
        return UNREACHABLE;
    if (!ref || h->generation < ref->generation)
        return ref ? BEHIND : NOT_VERIFIED;
    if (h->generation > ref->generation)
        return AHEAD;
    if (*h->digest && *ref->digest && strcmp(h->digest, ref->digest))
        return OTHER;
    return strcmp(h->state, "verified") ? NOT_VERIFIED : SAME;
}

static const char *const verdicts[] = {[SAME] = "same",
                                       [BEHIND] = "behind",
                                       [AHEAD] = "ahead",
                                       [OTHER] = "other policy",
                                       [NOT_VERIFIED] = "not verified",
                                       [UNREACHABLE] = "unreachable"};

static void host_text(const struct host *h, struct text *out)
{
    text_printf(out, "  - {host: ");
    text_yaml_string(out, h->name);
    text_printf(out, ", policy: %s", verdicts[h->verdict]);
    if (h->answered) {
        text_printf(out, ", role: %s, generation: %" PRIu64 ", state: ", h->manages ? "manager" : "server",
                    h->generation);
        text_yaml_string(out, h->state);
    }
    if (h->why[0]) {
        text_printf(out, ", why: ");
        text_yaml_string(out, h->why);
    }
    text_printf(out, "}\n");
}

/* Hosts with differences come first. */
static int print_hosts(const struct answer_to *to, struct hosts *h)
{
    static const char *const keys[] = {"same", "behind", "ahead", "other", "not_verified", "unreachable"};
    const struct host *ref = reference(h);
    size_t count[VERDICTS] = {0};
    struct text out = {0};
    for (size_t i = 0; i < h->n; i++)
        count[h->host[i].verdict = judge_host(&h->host[i], ref)]++;
    text_printf(&out, "generation: %" PRIu64 "\n", ref ? ref->generation : 0);
    if (ref && *ref->digest) {
        text_printf(&out, "digest: \"");
        text_printf(&out, "%s\"\n", good_name(ref->digest, strlen(ref->digest)) ? ref->digest : "?");
    }
    text_printf(&out, "asked: %zu\n", h->n);
    for (unsigned v = 0; v < VERDICTS; v++)
        text_printf(&out, "%s: %zu\n", keys[v], count[v]);
    text_printf(&out, "hosts:\n");
    for (int right = 0; right < 2; right++)
        for (size_t i = 0; i < h->n; i++)
            if ((h->host[i].verdict == SAME) == right)
                host_text(&h->host[i], &out);
    if (!answer_document(to, out.s, out.len))
        return 1;
    if (count[SAME] == h->n)
        return 0;
    return count[SAME] && count[SAME] + count[UNREACHABLE] == h->n ? CLUSTER_EXIT_AWAY : 1;
}

int cluster_status(const struct answer_to *to, const struct cluster_options *o, unsigned num, char *const names[])
{
    const char *words[WORDS_MAX] = {0};
    char *launcher = strdup(o->launcher);
    struct hosts h = {0};
    int children = watch_children(), rc = 2;
    if (!launcher || children < 0)
        abort();
    if (!launcher_words(launcher, words)) {
        fprintf(stderr, "fabricctl: the launcher is '%s'; allowed: 1 to %d words\n", o->launcher, WORDS_MAX - 1);
    } else if (list_hosts(&h, children, o, num, names)) {
        ask_all(&h, children, words, o);
        rc = print_hosts(to, &h);
    }
    free(h.host);
    free(launcher);
    close(children);
    return rc;
}
