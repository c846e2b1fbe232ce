/* SPDX-License-Identifier: BSD-3-Clause */
/* An agent's loop: its neighbours, its ranks. Ranks are started in ranks.c. */
#include "mrrun/agent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libmrmpi/base/idioms.h"
#include "mrrun/inquiry.h"
#include "mrrun/offspring.h"
#include "mrrun/peer.h"
#include "mrrun/processes.h"
#include "mrrun/ranks.h"
#include "mrrun/records.h"
#include "mrrun/strangers.h"
#include "mrrun/tree.h"

/* Longest silence of a parent: longer than a stop for a look, shorter than a user's patience. */
enum { PARENT_SILENCE_MS = 30000, LEAVE_MS = 3000, ANSWERS_MS = 1900, ANSWERS_LOOK_MS = 20 };

struct agent {
    struct link up;
    bool started, leaving, over, paused;
    int status;
    char *start_body;
    struct wire_start start; /* host[0] and number[0] are its own */
    struct tree tree;
    struct ranks ranks;
    struct watch signals, listener;
    struct channel **pmix;
    uint32_t pmix_room, pmix_next;
    struct inquiry inquiry;
    uint64_t answers_until_ms; /* 0: no inquiry */
    uint64_t looked_ms, leave_until_ms;
    const char *lib_dir;
};

static void send_up(struct agent *a, const struct wire_frame *f)
{
    link_send(&a->up, f);
}

static void say_up(struct agent *a, enum wire_kind kind, unsigned host, uint32_t arg, struct wire_text *body)
{
    send_up(a, &(struct wire_frame){.kind = kind, .host = host, .arg = arg, .body = body->bytes, .len = body->len});
    free(body->bytes);
    *body = (struct wire_text){0};
}

/* Ends all ranks started here, and their descendants. */
static void end_agent(struct agent *a, int status)
{
    if (a->over)
        return;
    a->over = true;
    a->status = status;
    tree_hang_up(&a->tree);
    ranks_kill_all(&a->ranks, NULL, 0);
}

static void up_broken(struct link *l, const char *why)
{
    end_agent(container_of(l, struct agent, up), 1);
}

/* ---- below ---- */

static bool forward_up(void *arg, const struct wire_frame *f)
{
    send_up(arg, f);
    return true;
}

static void report_lost_host(void *arg, unsigned host, const char *why)
{
    struct agent *a = arg;
    struct wire_text body = {0};

    if (a->leaving || a->over)
        return;
    wire_put_string(&body, why ? why : "");
    say_up(a, WIRE_LOST, host, 0, &body);
}

/* ---- connections of ranks to the PMIx server ---- */

static void channel_send(const struct channel_base *b, const struct wire_frame *f)
{
    send_up(container_of(b, struct agent, ranks.base), f);
}

static void channel_gone(const struct channel_base *b, struct channel *c)
{
    struct agent *a = container_of(b, struct agent, ranks.base);

    if (!(c->id & WIRE_PMIX))
        return;
    a->pmix[c->id & ~WIRE_PMIX] = NULL;
    free(c);
}

/* Numbers are not used again soon: the end of a connection may still be on the way. */
static bool free_number(struct agent *a, uint32_t *out)
{
    if (!a->pmix)
        a->pmix = calloc(WIRE_PMIX_MAX, sizeof(struct channel *));
    for (uint32_t i = 0; a->pmix && i < WIRE_PMIX_MAX; i++) {
        *out = a->pmix_next++ % WIRE_PMIX_MAX;
        if (!a->pmix[*out])
            return true;
    }
    return false;
}

static void accept_rank(struct watch *w, uint32_t events)
{
    struct agent *a = container_of(w, struct agent, listener);
    int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct channel *c = fd >= 0 && peer_is_ours(fd) ? calloc(1, sizeof(*c)) : NULL; /* others can reach the port, too */
    uint32_t number;

    if (!c || !free_number(a, &number)) {
        if (fd >= 0)
            close(fd);
        free(c);
        return;
    }
    a->pmix[number] = c;
    channel_open(c, &a->ranks.base, a->start.number[0], WIRE_PMIX | number, fd, dup(fd));
}

/* The port, or 0. */
static unsigned open_listener(struct agent *a)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 1024) ||
        getsockname(fd, (struct sockaddr *)&at, &len)) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    a->listener = (struct watch){.fd = fd, .ready = accept_rank};
    watch_want(a->ranks.base.set, &a->listener, EPOLLIN);
    return ntohs(at.sin_port);
}

/* A rank's messages to the server go before the news of its end. */
static void drain_connections(void *arg)
{
    struct agent *a = arg;

    for (uint32_t i = 0; a->pmix && i < WIRE_PMIX_MAX && i < a->pmix_next; i++)
        if (a->pmix[i])
            channel_drain(a->pmix[i]);
}

/* ---- from mrrun ---- */

/* A start of another version is answered, too, with this agent's version. */
static bool take_start(struct agent *a, const struct wire_frame *f)
{
    struct wire_frame copy = *f;
    char line[128];

    a->start_body = malloc(f->len + 1);
    if (a->started || !a->start_body)
        return false;
    memcpy(a->start_body, f->body, f->len);
    copy.body = a->start_body;
    if (!wire_get_start(&copy, &a->start))
        return false;
    a->started = true;
    link_send_bytes(
        &a->up, line,
        (size_t)snprintf(line, sizeof(line), "\n" WIRE_MARK "%.*s %d\n", WIRE_SECRET, a->start.secret, WIRE_VERSION));
    if (a->start.version != WIRE_VERSION) {
        end_agent(a, 1);
        return true;
    }
    struct wire_start below = a->start;
    below.host++;
    below.number++;
    below.num_hosts--;
    a->ranks.host = a->start.number[0];
    a->ranks.start = &a->start;
    a->ranks.base.window = a->start.window;
    a->tree.arg = a;
    a->tree.files = a->ranks.files;
    a->tree.frame = forward_up;
    a->tree.lost = report_lost_host;
    if (tree_open(&a->tree, a->ranks.base.set, &below, false))
        return false;
    send_up(a, &(struct wire_frame){.kind = WIRE_READY, .host = a->ranks.host});
    return true;
}

static bool take_run(struct agent *a, const struct wire_frame *f)
{
    struct wire_run run;

    if (!wire_get_run(f, &run) || a->ranks.started || run.ranks > WIRE_PMIX / 4 ||
        (a->ranks.count && (uint32_t)a->ranks.rank[a->ranks.count - 1].rank >= run.ranks))
        return false;
    a->ranks.simfab = *run.simfab ? strdup(run.simfab) : NULL;
    inquiry_open(&a->inquiry, a->ranks.scratch.path, a->ranks.simfab, (int)run.ranks);
    ranks_start(&a->ranks, &run, open_listener(a), a->lib_dir);
    return true;
}

static bool take_signal(struct agent *a, const struct wire_frame *f)
{
    struct wire_reader r = wire_read(f);
    int rank = f->len ? (int)wire_get_number(&r) : -1;

    if (f->arg < 1 || f->arg >= NSIG || !wire_whole(&r))
        return false;
    ranks_signal(&a->ranks, rank, (int)f->arg);
    return true;
}

static void pause_links(struct agent *a, bool pause)
{
    a->paused = a->tree.paused = pause;
    a->up.heard_ms = link_now_ms();
    tree_look(&a->tree);
}

static void tell_states(struct agent *a)
{
    for (int i = 0; i < a->ranks.count; i++) {
        const struct agent_rank *r = &a->ranks.rank[i];
        struct wire_text body = {0};
        char state = inquiry_state(r->pid);

        if (!r->running)
            continue;
        wire_put(&body, &state, 1);
        say_up(a, WIRE_STATE, a->ranks.host, (uint32_t)r->rank, &body);
    }
}

static void take_ask(struct agent *a, uint32_t number)
{
    if (!inquiry_pass(&a->inquiry, number))
        return;
    a->answers_until_ms = link_now_ms() + ANSWERS_MS;
    for (int i = 0; i < a->ranks.count; i++) {
        struct agent_rank *r = &a->ranks.rank[i];

        r->asked = r->running;
        if (r->running && a->ranks.simfab)
            inquiry_wake(r->pid);
    }
    tell_states(a);
}

static bool take_ended(struct agent *a, uint32_t rank)
{
    if (rank >= a->inquiry.ranks)
        return false;
    inquiry_tell_end(&a->inquiry, (int)rank);
    return true;
}

/* Answers go up as they come; at the end, the states of the other ranks follow. */
static void collect_answers(struct agent *a)
{
    bool missing = false;

    for (int i = 0; i < a->ranks.count; i++) {
        struct agent_rank *r = &a->ranks.rank[i];
        size_t len;
        char *text = r->asked ? inquiry_read(&a->inquiry, r->rank, &len) : NULL;

        if (text)
            send_up(
                a, &(struct wire_frame){
                       .kind = WIRE_ANSWER, .host = a->ranks.host, .arg = (uint32_t)r->rank, .body = text, .len = len});
        r->asked &= !text;
        missing |= r->asked;
        free(text);
    }
    if (missing && link_now_ms() < a->answers_until_ms)
        return;
    a->answers_until_ms = 0;
    tell_states(a);
}

static void take_look(struct agent *a, uint32_t number)
{
    struct wire_text body = {0};

    ranks_reap(&a->ranks);
    ranks_endings(&a->ranks, &body);
    say_up(a, WIRE_ENDINGS, a->ranks.host, number, &body);
}

static bool take_strange(struct agent *a, const struct wire_frame *f)
{
    pid_t *leader = calloc((size_t)a->ranks.count + 1, sizeof(*leader));
    struct wire_reader r = wire_read(f);
    struct wire_text body = {0};
    struct stranger s;

    while (r.left && !r.bad) {
        int i = ranks_index(&a->ranks, (int)wire_get_number(&r));

        if (leader && i >= 0 && a->ranks.rank[i].running)
            leader[i] = a->ranks.rank[i].pid;
    }
    if (leader && !r.bad && strangers_find(leader, a->ranks.count, a->start.nspace, a->lib_dir, &s)) {
        wire_put_number(&body, (uint32_t)s.pid);
        wire_put_string(&body, s.program);
        wire_put_string(&body, s.library);
        wire_put_string(&body, s.whose ? s.whose : "");
        say_up(a, WIRE_FOUND, a->ranks.host, (uint32_t)a->ranks.rank[s.index].rank, &body);
    }
    free(leader);
    return wire_whole(&r);
}

static void kill_ranks_and_strays(struct agent *a)
{
    pid_t but[TREE_WIDTH];

    ranks_kill_all(&a->ranks, but, tree_pids(&a->tree, but));
}

/* The launchers of further agents end with these: that is awaited. */
static void leave_job(struct agent *a)
{
    a->leaving = true;
    tree_kill_launchers(&a->tree, false);
    a->leave_until_ms = link_now_ms() + LEAVE_MS;
}

static bool take_channel(struct agent *a, const struct wire_frame *f)
{
    uint32_t number = f->arg & ~WIRE_PMIX;

    if (!(f->arg & WIRE_PMIX))
        return ranks_take(&a->ranks, f);
    return number < WIRE_PMIX_MAX && (!a->pmix || !a->pmix[number] || channel_take(a->pmix[number], f));
}

static bool take_mine(struct agent *a, const struct wire_frame *f)
{
    switch (f->kind) {
    case WIRE_PART:
        return ranks_add_part(&a->ranks, f);
    case WIRE_RANK:
        return ranks_add(&a->ranks, f);
    case WIRE_RUN:
        return take_run(a, f);
    case WIRE_SIGNAL:
        return take_signal(a, f);
    case WIRE_KILL_ALL:
        kill_ranks_and_strays(a);
        return true;
    case WIRE_PAUSE:
        pause_links(a, f->arg);
        return true;
    case WIRE_ASK:
        take_ask(a, f->arg);
        return true;
    case WIRE_ENDED:
        return take_ended(a, f->arg);
    case WIRE_LOOK:
        take_look(a, f->arg);
        return true;
    case WIRE_STRANGE:
        return take_strange(a, f);
    case WIRE_FETCH:
        return ranks_fetch(&a->ranks, f->arg);
    case WIRE_LEAVE:
        leave_job(a);
        return true;
    case WIRE_DATA:
    case WIRE_TAKEN:
    case WIRE_END:
        return take_channel(a, f);
    default:
        return false;
    }
}

static bool from_above(struct link *l, const struct wire_frame *f)
{
    struct agent *a = container_of(l, struct agent, up);

    if (a->over)
        return true;
    if (!a->started || f->kind == WIRE_START)
        return take_start(a, f);
    if (f->kind == WIRE_PING)
        return true;
    if (f->host == WIRE_ALL || f->host != a->ranks.host)
        tree_send(&a->tree, f);
    return f->host != WIRE_ALL && f->host != a->ranks.host ? true : take_mine(a, f);
}

/* ---- the loop ---- */

static void reap_others(struct agent *a)
{
    for (;;) {
        siginfo_t info = {0};
        int status;

        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid || ranks_have(&a->ranks, info.si_pid))
            return;
        if (waitpid(info.si_pid, &status, 0) != info.si_pid)
            continue;
        if (!tree_reaped(&a->tree, info.si_pid, status) && info.si_pid == a->ranks.scratch.janitor)
            a->ranks.scratch.janitor = -1;
    }
}

static void end_by_signal(struct agent *a, int sig)
{
    struct wire_text body = {0};
    char why[64];

    snprintf(why, sizeof(why), "its agent was ended by signal %d (SIG%s)", sig, sigabbrev_np(sig));
    wire_put_string(&body, why);
    say_up(a, WIRE_LOST, a->ranks.host, 0, &body);
    end_agent(a, 128 + sig);
}

static void read_agent_signals(struct watch *w, uint32_t events)
{
    struct agent *a = container_of(w, struct agent, signals);
    struct signalfd_siginfo info;

    while (!a->over && read(w->fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGCHLD) {
            ranks_reap(&a->ranks);
            reap_others(a);
            a->ranks.offspring = offspring_any(a->ranks.scratch.path);
        } else {
            end_by_signal(a, (int)info.ssi_signo);
        }
    }
}

static void take_signals(struct agent *a)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        signal(ends[i], SIG_DFL);
        sigaddset(&set, ends[i]);
    }
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigemptyset(&a->ranks.mask);
    a->signals = (struct watch){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .ready = read_agent_signals};
    watch_want(a->ranks.base.set, &a->signals, EPOLLIN);
}

static void look_around(struct agent *a)
{
    uint64_t now = link_now_ms(), away = now - a->looked_ms;

    a->looked_ms = now;
    scratch_beat(&a->ranks.scratch);
    if (away > 4 * TREE_LOOK_MS)
        a->up.heard_ms = a->up.heard_ms + away < now ? a->up.heard_ms + away : now;
    tree_look(&a->tree);
    if (!a->paused)
        link_ping(&a->up, now);
    if (!a->paused && now >= a->up.heard_ms + PARENT_SILENCE_MS)
        end_agent(a, 1);
    if (a->leaving && (!tree_launchers(&a->tree) || now >= a->leave_until_ms))
        end_agent(a, 0);
}

static void turn_agent(struct agent *a)
{
    bool busy = a->answers_until_ms || a->leaving;

    watch_serve(a->ranks.base.set, busy ? ANSWERS_LOOK_MS : TREE_LOOK_MS);
    ranks_serve(&a->ranks);
    if (link_now_ms() >= a->looked_ms + TREE_LOOK_MS || a->leaving)
        look_around(a);
    if (a->answers_until_ms)
        collect_answers(a);
}

static void close_agent(struct agent *a)
{
    link_close(&a->up);
    tree_close(&a->tree);
    for (uint32_t i = 0; a->pmix && i < WIRE_PMIX_MAX; i++)
        if (a->pmix[i])
            channel_end(a->pmix[i]);
    free(a->pmix);
    inquiry_close(&a->inquiry);
    ranks_close(&a->ranks);
    wire_clear_start(&a->start);
    free(a->start_body);
    free(a);
}

int agent_main(const char *lib_dir)
{
    if (isatty(0)) {
        fprintf(stderr, "mrrun --agent: mrrun itself starts this on the hosts of a job\n");
        return 2;
    }
    struct agent *a = calloc(1, sizeof(*a));
    int set = epoll_create1(EPOLL_CLOEXEC), in = dup(0), out = dup(1), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int err, status;

    if (!a || set < 0 || in < 0 || out < 0 || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0) {
        fprintf(stderr, "mrrun --agent: cannot start: %s\n", strerror(errno));
        return 1;
    }
    prctl(PR_SET_NAME, "mr-agent");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    a->lib_dir = lib_dir;
    a->listener.fd = -1;
    a->ranks.base = (struct channel_base){.set = set, .send = channel_send, .gone = channel_gone};
    a->ranks.drain = drain_connections;
    a->ranks.drain_arg = a;
    take_signals(a);
    err = ranks_open(&a->ranks);
    if (err) {
        fprintf(stderr, "cannot make a scratch directory in %s: %s\n", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
                strerror(-err));
        return 1;
    }
    a->up = (struct link){.frame = from_above, .broken = up_broken};
    link_open(&a->up, set, watch_ready_fd(in), watch_ready_fd(out));
    a->looked_ms = link_now_ms();
    while (!a->over)
        turn_agent(a);
    status = a->status;
    close_agent(a);
    return status;
}
