/* SPDX-License-Identifier: BSD-3-Clause */
/* Launchers, first lines, routes, signs of life. */
#include "mrrun/tree.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libmrmpi/base/idioms.h"

struct branch {
    struct tree *tree;
    struct link link;
    struct watch noise;   /* the launcher's standard error, and the agent's */
    struct watch hearing; /* the launcher's standard output before the agent's first line */
    char line[512];       /* the received part of a line */
    size_t line_len;
    char tail[TREE_TAIL]; /* the end of the launcher's output */
    size_t tail_len;
    pid_t pid; /* of the launcher; 0: reaped */
    int status;
    unsigned first;   /* its host */
    unsigned *number; /* of all hosts of the run */
    size_t num_hosts;
    bool here; /* this machine: without launcher */
    bool up, lost, reaped;
    uint64_t begun_ms, ended_ms; /* ended_ms: output has ended before the first line */
};

/* ---- the launcher ---- */

static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("_/.+-=:,@%", *text))
            return false;
    return true;
}

/* A shell reads the words given to ssh. */
static char *quote_word(const char *text)
{
    char *out = malloc(4 * strlen(text) + 3), *at = out;

    if (!out || is_plain(text))
        return out ? strcpy(out, text) : NULL;
    *at++ = '\'';
    for (; *text; text++) {
        if (*text == '\'')
            at = stpcpy(at, "'\\'");
        *at++ = *text;
    }
    strcpy(at, "'");
    return out;
}

static bool read_by_shell(char *const *launcher)
{
    const char *base = strrchr(launcher[0], '/');

    return strcmp(base ? base + 1 : launcher[0], "srun") != 0;
}

void tree_free_command(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

static size_t count_words(char *const *words)
{
    size_t n = 0;

    while (words[n])
        n++;
    return n;
}

char **tree_command(char *const *launcher, const char *host, char *const *program)
{
    size_t words = count_words(launcher), args = count_words(program), n = 0;
    char **out = calloc(words + args + 2, sizeof(*out));
    bool ok = out;

    for (size_t i = 0; ok && i < words; i++)
        ok &= (out[n++] = strdup(launcher[i])) != NULL;
    if (ok)
        ok &= (out[n++] = strdup(host)) != NULL;
    for (size_t i = 0; ok && i < args; i++)
        ok &= (out[n++] = read_by_shell(launcher) ? quote_word(program[i]) : strdup(program[i])) != NULL;
    if (ok)
        return out;
    tree_free_command(out);
    return NULL;
}

/* Without a terminal: input typed there is not the launcher's, nor is Ctrl-C. */
static _Noreturn void exec_launcher(char *const *words, const int fds[3], const struct rlimit *files, pid_t parent)
{
    sigset_t none;

    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    for (int i = 0; i < 3; i++)
        dup2(fds[i], i);
    setrlimit(RLIMIT_NOFILE, files);
    for (int s = 1; s < NSIG; s++)
        signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(words[0], words);
    dprintf(2, "cannot run %s: %s\n", words[0], strerror(errno));
    _exit(127);
}

static void close_both(const int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

static char **words_for(const struct tree *t, const char *host, bool here)
{
    char *program[] = {(char *)t->start.mrrun, (char *)"--agent", NULL};
    char **words;

    if (!here)
        return tree_command(t->start.launcher, host, program);
    words = calloc(3, sizeof(*words));
    for (int i = 0; words && i < 2; i++) {
        words[i] = strdup(program[i]);
        if (!words[i]) {
            tree_free_command(words);
            return NULL;
        }
    }
    return words;
}

/* Our ends of the launcher's input, output and errors. */
static pid_t start_launcher(char **words, const struct rlimit *files, int ours[3])
{
    int in[2], out[2], err[2];
    sigset_t all, before;
    pid_t pid, parent = getpid();

    if (!words || pipe2(in, O_CLOEXEC))
        goto free_words;
    if (pipe2(out, O_CLOEXEC))
        goto close_in;
    if (pipe2(err, O_CLOEXEC))
        goto close_out;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid = fork();
    if (!pid)
        exec_launcher(words, (int[]){in[0], out[1], err[1]}, files, parent);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        goto close_err;
    close(in[0]);
    close(out[1]);
    close(err[1]);
    ours[0] = in[1];
    ours[1] = out[0];
    ours[2] = err[0];
    tree_free_command(words);
    return pid;

close_err:
    close_both(err);
close_out:
    close_both(out);
close_in:
    close_both(in);
free_words:
    tree_free_command(words);
    return -1;
}

/* ---- losing ---- */

static void hang_up_branch(struct branch *b)
{
    int set = b->tree->set;

    watch_close(set, &b->hearing);
    watch_close(set, &b->noise);
    link_close(&b->link);
}

static void lose_branch(struct branch *b, const char *why)
{
    if (b->lost)
        return;
    b->lost = true;
    hang_up_branch(b);
    if (b->pid)
        kill(b->pid, SIGTERM);
    b->tree->lost(b->tree->arg, b->first, why);
    for (size_t i = 1; i < b->num_hosts; i++)
        b->tree->lost(b->tree->arg, b->number[i], NULL);
}

/* The last line with any text, of either output. */
static const char *last_line_of(struct branch *b)
{
    char *end = b->tail + b->tail_len, *line;

    while (end > b->tail && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    line = strrchr(b->tail, '\n');
    for (char *c = b->tail; *c; c++)
        if (iscntrl((unsigned char)*c) && *c != '\n')
            *c = ' ';
    return line ? line + 1 : b->tail;
}

static void tell_ended(struct branch *b)
{
    const char *launcher = b->here ? b->tree->start.mrrun : b->tree->start.launcher[0];
    const char *last = last_line_of(b);
    char how[64] = "ended", why[TREE_TAIL + 512];

    if (b->reaped && WIFSIGNALED(b->status))
        snprintf(how, sizeof(how), "was killed by signal %d", WTERMSIG(b->status));
    else if (b->reaped)
        snprintf(how, sizeof(how), "ended with status %d", WEXITSTATUS(b->status));
    snprintf(why, sizeof(why), "its agent did not start: '%s' %s%s%s%s", launcher, how, *last ? ": " : "", last,
             b->reaped && WIFEXITED(b->status) && (WEXITSTATUS(b->status) == 127 || WEXITSTATUS(b->status) == 126)
                 ? " (mrmpi must be there, under the same path as here)"
                 : "");
    lose_branch(b, why);
}

static void branch_broken(struct link *l, const char *why)
{
    struct branch *b = container_of(l, struct branch, link);
    const char *last = last_line_of(b);
    char text[TREE_TAIL + 256];

    snprintf(text, sizeof(text), "its agent is lost: %s%s%s", why, *last ? ": " : "", last);
    lose_branch(b, text);
}

/* ---- hearing ---- */

static void remember_noise(struct branch *b, const char *bytes, size_t len)
{
    size_t most = sizeof(b->tail) - 1, keep;

    if (len > most) {
        bytes += len - most;
        len = most;
    }
    keep = b->tail_len + len > most ? most - len : b->tail_len;
    memmove(b->tail, b->tail + b->tail_len - keep, keep);
    memcpy(b->tail + keep, bytes, len);
    b->tail_len = keep + len;
}

static bool take_from_below(struct link *l, const struct wire_frame *f)
{
    struct branch *b = container_of(l, struct branch, link);
    bool mine = false;

    if (f->kind == WIRE_PING)
        return true;
    for (size_t i = 0; i < b->num_hosts; i++)
        mine |= b->number[i] == f->host;
    return mine && b->tree->frame(b->tree->arg, f);
}

/* The rest after the agent's first line is frames. */
static void begin_frames(struct branch *b, const char *rest, size_t len)
{
    int fd = dup(b->hearing.fd);

    b->up = true;
    b->tail_len = 0;
    watch_close(b->tree->set, &b->hearing);
    if (fd < 0) {
        lose_branch(b, "its agent cannot be heard: too many open files");
        return;
    }
    b->link.in.fd = watch_ready_fd(fd);
    b->link.heard_ms = link_now_ms();
    watch_want(b->tree->set, &b->link.in, EPOLLIN);
    link_feed(&b->link, rest, len);
}

/* A whole line, NUL-terminated. True: it is the agent's. */
static bool hear_line(struct branch *b)
{
    const char *mark = strstr(b->line, WIRE_MARK);
    unsigned version;
    char why[200];

    if (!mark || strncmp(mark + strlen(WIRE_MARK), b->tree->start.secret, WIRE_SECRET))
        return false;
    if (sscanf(mark + strlen(WIRE_MARK) + WIRE_SECRET, "%u", &version) == 1 && version == WIRE_VERSION)
        return true;
    snprintf(why, sizeof(why),
             "its mrrun has another version: its agent speaks version %u, this one version %d; install the same mrmpi "
             "on all hosts",
             version, WIRE_VERSION);
    lose_branch(b, why);
    return false;
}

static void hear_launcher(struct watch *w, uint32_t events)
{
    struct branch *b = container_of(w, struct branch, hearing);
    char bytes[4096];
    ssize_t n = read(w->fd, bytes, sizeof(bytes));

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        watch_close(b->tree->set, w);
        b->ended_ms = link_now_ms();
    }
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') {
            if (b->line_len < sizeof(b->line) - 1)
                b->line[b->line_len++] = bytes[i];
            continue;
        }
        b->line[b->line_len] = '\0';
        if (hear_line(b)) {
            begin_frames(b, bytes + i + 1, (size_t)(n - i - 1));
            return;
        }
        if (b->lost)
            return;
        remember_noise(b, b->line, b->line_len);
        remember_noise(b, "\n", 1);
        b->line_len = 0;
    }
}

/* Errors of the launcher before the agent's start are kept for a failure of the start; later errors are printed. */
static void hear_noise(struct watch *w, uint32_t events)
{
    struct branch *b = container_of(w, struct branch, noise);
    char bytes[4096];
    ssize_t n = read(w->fd, bytes, sizeof(bytes));

    if (n > 0)
        remember_noise(b, bytes, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        watch_close(b->tree->set, w);
}

/* ---- life ---- */

static int open_branch(struct tree *t, struct branch *b, size_t first, size_t count, bool here)
{
    struct wire_start start = t->start;
    struct wire_text body = {0};
    int fds[3];

    *b = (struct branch){
        .tree = t,
        .first = start.number[first],
        .num_hosts = count,
        .begun_ms = link_now_ms(),
        .link = {.set = t->set, .in = {.fd = -1}, .out = {.fd = -1}, .frame = take_from_below, .broken = branch_broken},
        .noise = {.fd = -1},
        .hearing = {.fd = -1}};
    b->number = t->start.number + first;
    b->here = here;
    b->pid = start_launcher(words_for(t, start.host[first], here), &t->files, fds);
    if (b->pid < 0) {
        b->pid = 0;
        return -1;
    }
    link_open(&b->link, t->set, -1, watch_ready_fd(fds[0]));
    b->hearing = (struct watch){.fd = watch_ready_fd(fds[1]), .ready = hear_launcher};
    b->noise = (struct watch){.fd = watch_ready_fd(fds[2]), .ready = hear_noise};
    watch_want(t->set, &b->hearing, EPOLLIN);
    watch_want(t->set, &b->noise, EPOLLIN);
    start.host += first;
    start.number += first;
    start.num_hosts = count;
    wire_put_start(&body, &start);
    link_send(&b->link,
              &(struct wire_frame){.kind = WIRE_START, .host = b->first, .body = body.bytes, .len = body.len});
    free(body.bytes);
    return 0;
}

int tree_open(struct tree *t, int set, const struct wire_start *start, bool here)
{
    size_t num = start->num_hosts, width = num < TREE_WIDTH ? num : TREE_WIDTH;

    t->set = set;
    t->start = *start;
    t->looked_ms = link_now_ms();
    t->branch = calloc(width + 1, sizeof(*t->branch));
    for (int i = 0; i < WIRE_HOSTS_MAX; i++)
        t->route[i] = -1;
    for (size_t i = 0; t->branch && i < width; i++) {
        size_t first = num * i / width, end = num * (i + 1) / width;

        for (size_t h = first; h < end; h++)
            t->route[start->number[h]] = (short)i;
        t->count++;
        if (open_branch(t, &t->branch[i], first, end - first, here && !i))
            lose_branch(&t->branch[i], "its launcher cannot be started: no processes, memory or open files are left");
    }
    return t->branch ? 0 : -1;
}

bool tree_send(struct tree *t, const struct wire_frame *f)
{
    bool way = false;

    for (int i = 0; i < t->count; i++) {
        if ((f->host != WIRE_ALL && t->route[f->host] != i) || t->branch[i].lost)
            continue;
        link_send(&t->branch[i].link, f);
        way = true;
    }
    return way;
}

static void look_at_branch(struct branch *b, uint64_t now)
{
    char why[TREE_TAIL + 128];

    if (b->lost)
        return;
    if (!b->up) {
        if (b->ended_ms && (b->reaped || now >= b->ended_ms + 2000) && (b->noise.fd < 0 || now >= b->ended_ms + 200))
            tell_ended(b);
        else if (now >= b->begun_ms + TREE_START_MS) {
            const char *last = last_line_of(b);

            snprintf(why, sizeof(why), "its agent did not start within %d s%s%s", TREE_START_MS / 1000,
                     *last ? ": " : "", last);
            lose_branch(b, why);
        }
        return;
    }
    if (b->tree->paused)
        return;
    link_ping(&b->link, now);
    if (now >= b->link.heard_ms + TREE_SILENCE_MS) {
        snprintf(why, sizeof(why), "its agent is lost: silent for %.1f s", (double)(now - b->link.heard_ms) / 1000);
        lose_branch(b, why);
    }
}

void tree_look(struct tree *t)
{
    uint64_t now = link_now_ms(), away = now - t->looked_ms;

    t->looked_ms = now;
    for (int i = 0; i < t->count; i++) {
        struct branch *b = &t->branch[i];

        if (away > 4 * TREE_LOOK_MS) /* nothing could be heard */
            b->link.heard_ms = b->link.heard_ms + away < now ? b->link.heard_ms + away : now;
        look_at_branch(b, now);
    }
}

bool tree_reaped(struct tree *t, pid_t pid, int status)
{
    for (int i = 0; i < t->count; i++) {
        struct branch *b = &t->branch[i];

        if (!b->pid || b->pid != pid)
            continue;
        b->pid = 0;
        b->reaped = true;
        b->status = status;
        return true;
    }
    return false;
}

void tree_hang_up(struct tree *t)
{
    for (int i = 0; i < t->count; i++) {
        t->branch[i].lost = true;
        hang_up_branch(&t->branch[i]);
    }
}

int tree_pids(const struct tree *t, pid_t *out)
{
    int n = 0;

    for (int i = 0; i < t->count; i++)
        if (t->branch[i].pid)
            out[n++] = t->branch[i].pid;
    return n;
}

int tree_launchers(const struct tree *t)
{
    int n = 0;

    for (int i = 0; i < t->count; i++)
        n += t->branch[i].pid != 0;
    return n;
}

void tree_kill_launchers(struct tree *t, bool all)
{
    for (int i = 0; i < t->count; i++)
        if (t->branch[i].pid && (all || t->branch[i].lost))
            kill(-t->branch[i].pid, SIGKILL);
}

void tree_close(struct tree *t)
{
    tree_hang_up(t);
    free(t->branch);
    t->branch = NULL;
    t->count = 0;
}
