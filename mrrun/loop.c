/* SPDX-License-Identifier: BSD-3-Clause */
/* The event loop: waits for ranks, output, signals, PMIx and time, and hands each to job.c. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrrun/agents.h"
#include "mrrun/job.h"
#include "mrrun/offspring.h"
#include "mrrun/server.h"
#include "mrrun/spawn.h"

/* Fixed places at the head of the poll set; two per rank follow, one for each reader of input and each output file. */
enum { AT_SIGNAL, AT_END, AT_SERVER, AT_EXEC, AT_AGENTS, AT_ATTACH, AT_STDIN, AT_OUT, AT_ERR, AT_HEAD };

static struct pollfd want(int fd, short events, bool wanted)
{
    return (struct pollfd){.fd = wanted ? fd : -1, .events = events};
}

static bool source_wanted(const struct source *src)
{
    return src->fd >= 0 && !sink_full(src->sink);
}

static size_t fill(const struct job *job, struct pollfd *set)
{
    set[AT_SIGNAL] = want(job->signals.fd, POLLIN, true);
    set[AT_END] = want(job->signals.end_fd, POLLIN, true);
    set[AT_SERVER] = want(server_event_fd(), POLLIN, true);
    set[AT_EXEC] = want(job->exec_fd, POLLIN, job->exec_fd >= 0);
    set[AT_AGENTS] = want(job->agents ? agents_fd(job->agents) : -1, POLLIN, job->agents);
    set[AT_ATTACH] = want(job->attach.fd, POLLIN, job->attach.num_askers < ATTACH_ASKERS);
    set[AT_STDIN] = want(0, POLLIN, input_wanted(&job->input));
    set[AT_OUT] = want(job->out.fd, POLLOUT, job->out.len);
    set[AT_ERR] = want(job->err.fd, POLLOUT, job->err.len);

    size_t n = AT_HEAD;
    for (int r = 0; r < job->place.ranks; r++) {
        set[n++] = want(job->ranks[r].out.fd, POLLIN, source_wanted(&job->ranks[r].out));
        set[n++] = want(job->ranks[r].err.fd, POLLIN, source_wanted(&job->ranks[r].err));
    }
    for (int i = 0; i < job->input.count; i++)
        set[n++] = want(job->input.reader[i].fd, POLLOUT, job->input.reader[i].len);
    for (int i = 0; i < job->outfiles.count; i++)
        set[n++] = want(job->outfiles.file[i]->sink.fd, POLLOUT, job->outfiles.file[i]->sink.len);
    return n;
}

/* With a terminal, a reading rank may be asking a question: a line without end is shown after this rest. */
enum { PROMPT_MS = 50 };

static bool prompt_waits(const struct job *job)
{
    for (int i = 0; i < job->input.count && job->input.terminal; i++) {
        const struct rank *r = &job->ranks[job->input.rank[i]];

        if (job->input.reader[i].fd >= 0 && (r->out.len || r->err.len))
            return true;
    }
    return false;
}

static void show_prompts(struct job *job)
{
    for (int i = 0; i < job->input.count; i++) {
        source_pass_piece(&job->ranks[job->input.rank[i]].out);
        source_pass_piece(&job->ranks[job->input.rank[i]].err);
    }
}

static int wait_ms(const struct job *job)
{
    uint64_t due[] = {
        job->kill_at_ms,
        job->gone_at_ms,
        job->timeout_at_ms,
        job->look_at_ms,
        job->absent_at_ms,
        job->doubts_until_ms,
        inquiry_due_ms(&job->inquiry, job_now_ms()),
        job->suspect.set ? job->suspect.tell_at_ms : 0,
        job->unheard >= 0 ? job->unheard_until_ms : 0,
        job_output_until_ms(job),
        job->agents ? agents_due_ms(job->agents) : 0,
        job->offspring || job_output_is_far(job) ? job->offspring_kill_at_ms : 0,
    };
    uint64_t next = 0, now = job_now_ms();

    if (prompt_waits(job))
        return PROMPT_MS;
    for (size_t i = 0; i < sizeof(due) / sizeof(due[0]); i++)
        if (due[i] && (!next || due[i] < next))
            next = due[i];
    if (!next)
        return -1;
    return next > now ? (int)(next - now) : 0;
}

/* The first abort is held until agents have reported the ends under way; aborts meanwhile follow from the first. */
static void take_abort(struct job *job, struct server_event *event)
{
    if (!job->agents) {
        job_on_abort(job, event->rank, event->code, event->why, event->ending);
    } else if (event->answer) {
        job->abort = *event;
        job->abort_held = true;
        agents_look(job->agents);
    } else if (!job->abort_held) {
        job_on_abort(job, event->rank, event->code, event->why, NULL);
    }
}

static void drain_server(struct job *job)
{
    struct server_event event;

    while (server_next_event(&event)) {
        if (event.kind == SERVER_CONNECTED)
            job_on_connected(job, event.rank);
        else if (event.kind == SERVER_FINALIZED)
            job_on_finalized(job, event.rank);
        else if (event.kind == SERVER_MET)
            job->met = true;
        else if (event.kind == SERVER_DOUBT)
            job_on_doubt(job, &event);
        else
            take_abort(job, &event);
        free(event.ending);
    }
}

static void read_local_exec_failure(struct job *job)
{
    struct spawn_failure failure;
    ssize_t n = read(job->exec_fd, &failure, sizeof(failure));

    if (n == sizeof(failure)) {
        job_on_exec_failure(job, failure.rank, failure.error, NULL);
    } else if (n == 0 || errno != EINTR) {
        close(job->exec_fd);
        job->exec_fd = -1;
    }
}

/*
 * A rank that is gone can write no more: its pipe is done when empty, even if another process still holds the other
 * end. Only the jobs that it has started still write there (offspring).
 */
static void serve_source(struct source *src, short revents, bool offspring)
{
    if (src->fd < 0 || sink_full(src->sink))
        return;
    if (revents || src->sink->broken) {
        source_read(src);
        return;
    }
    struct pollfd p = {.fd = src->fd, .events = POLLIN};
    if (src->owner_gone && !offspring && poll(&p, 1, 0) == 0)
        source_close(src);
}

/* A rank's output before its death should stand before the message about its death. */
static void read_last_words(struct rank *r)
{
    struct source *sources[] = {&r->out, &r->err};

    for (int i = 0; i < 2; i++) {
        struct pollfd p = {.fd = sources[i]->fd, .events = POLLIN};
        while (sources[i]->fd >= 0 && !sink_full(sources[i]->sink) && poll(&p, 1, 0) > 0)
            source_read(sources[i]);
    }
}

/*
 * Looks at an ended rank before reaping: until then its process group cannot be reused, so its descendants can be
 * killed. The rank's PMIx messages are in the queue before its end, and are taken first.
 */
static void reap_local_rank(struct job *job, int r)
{
    pid_t pid = job->ranks[r].pid;
    siginfo_t info = {0};
    int status;

    if (!job->ranks[r].running || waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
        return;
    job_on_end(job, r);
    kill(-pid, SIGKILL);
    scratch_forget_group(&job->scratch, pid);
    server_forget_process(r);
    spawn_unwatch(job->ranks[r].pidfd);
    job->ranks[r].pidfd = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (job->exec_fd >= 0) {
        struct pollfd p = {.fd = job->exec_fd, .events = POLLIN};
        if (poll(&p, 1, 0) > 0)
            read_local_exec_failure(job);
    }
    drain_server(job);
    read_last_words(&job->ranks[r]);
    job_on_exit(job, r, status);
}

/*
 * Descendants of ranks whose parents have ended become children of mrrun (a subreaper), so that mrrun finds them when
 * killing all. A rank ending just now is left for the next signal.
 */
static void reap_orphans(struct job *job)
{
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
            return;
        for (int r = 0; r < job->place.ranks && !job->agents; r++)
            if (job->ranks[r].running && job->ranks[r].pid == info.si_pid)
                return;
        int status;
        pid_t pid = waitpid(info.si_pid, &status, 0);
        if (pid == job->scratch.janitor)
            job->scratch.janitor = -1;
        else if (job->agents)
            agents_reaped(job->agents, pid, status);
    }
}

/* First the ranks in the kernel's order of ends, then all other processes. */
static void reap(struct job *job)
{
    struct epoll_event dead;

    while (job->deaths_fd >= 0 && epoll_wait(job->deaths_fd, &dead, 1, 0) == 1)
        reap_local_rank(job, dead.data.u32);
    for (int r = 0; r < job->place.ranks && !job->agents; r++)
        reap_local_rank(job, r);
    reap_orphans(job);
    job->offspring = !job->agents && offspring_any(job->scratch.path);
}

static void read_job_signals(struct job *job)
{
    struct signalfd_siginfo info;
    unsigned char sig;

    while (read(job->signals.fd, &info, sizeof(info)) == sizeof(info))
        if (info.ssi_signo == SIGCHLD)
            reap(job);
        else
            job_on_signal(job, info.ssi_signo);
    while (read(job->signals.end_fd, &sig, 1) == 1)
        job_on_signal(job, sig);
}

/* News of a rank's end comes behind its PMIx messages, which libpmix's thread takes in by itself. */
static void take_exit(struct job *job, int rank, int wait_status)
{
    if (!job->ranks[rank].running)
        return;
    job_on_end(job, rank);
    drain_server(job);
    job_on_exit(job, rank, wait_status);
}

static void take_agent_event(struct job *job, const struct agents_event *e)
{
    switch (e->kind) {
    case AGENTS_UP:
        if (!job->failed)
            agents_run(job->agents);
        break;
    case AGENTS_LOST:
        job_on_lost_host(job, e->host, e->text);
        break;
    case AGENTS_STARTED:
        job_on_started(job, e->rank, e->pid, e->text);
        break;
    case AGENTS_UNABLE:
        job_on_exec_failure(job, e->rank, e->code, e->text);
        break;
    case AGENTS_EXIT:
        take_exit(job, e->rank, e->code);
        break;
    case AGENTS_LOOKED:
        job_on_endings(job, e->ending);
        break;
    case AGENTS_STRANGER:
        job_on_stranger(job, &e->stranger);
        break;
    case AGENTS_SAY:
        job_say(job, "host %s: %s", job->hosts.name[e->host], e->text);
        break;
    }
}

static void serve_agents(struct job *job)
{
    struct agents_event event;

    agents_serve(job->agents);
    while (agents_next_event(job->agents, &event)) {
        take_agent_event(job, &event);
        free(event.text);
        free(event.ending);
    }
}

/* Before the first rank there is nothing to wait for but agents. */
static bool starting(const struct job *job)
{
    return job->agents && agents_starting(job->agents) && !job->failed;
}

static bool output_pending(const struct job *job)
{
    for (int r = 0; r < job->place.ranks; r++)
        if (job->ranks[r].out.fd >= 0 || job->ranks[r].err.fd >= 0 || job->ranks[r].out.far || job->ranks[r].err.far)
            return true;
    for (int i = 0; i < job->outfiles.count; i++)
        if (job->outfiles.file[i]->sink.len)
            return true;
    return job->out.len || job->err.len;
}

static void turn(struct job *job, struct pollfd *set)
{
    size_t n = fill(job, set);

    /* With all ranks gone, only a late word of one of them or a slow reader of our output is waited for. */
    int timeout = job->running || starting(job) || job->suspect.set || job->unheard >= 0 || job->out.len ||
                          job->err.len || job->offspring || job_output_is_far(job)
                      ? wait_ms(job)
                      : 0;
    int ready = poll(set, n, timeout);
    if (ready < 0 && errno != EINTR) {
        perror("mrrun: poll"); /* a bug or no memory; the janitor ends the rest */
        abort();
    }
    if (ready < 0)
        return;
    if (!ready && prompt_waits(job))
        show_prompts(job);
    if (set[AT_EXEC].revents)
        read_local_exec_failure(job);
    if (set[AT_SERVER].revents)
        drain_server(job);
    for (size_t i = AT_HEAD; i < AT_HEAD + 2 * (size_t)job->place.ranks; i += 2) {
        struct rank *r = &job->ranks[(i - AT_HEAD) / 2];
        serve_source(&r->out, set[i].revents, job->offspring);
        serve_source(&r->err, set[i + 1].revents, job->offspring);
    }
    if (job->agents)
        serve_agents(job);
    if (set[AT_SIGNAL].revents || set[AT_END].revents)
        read_job_signals(job);
    if (set[AT_ATTACH].revents)
        job_on_attach(job);
    job_on_time(job);
    if (job->input.open)
        input_forward(&job->input, set[AT_STDIN].revents);
    for (int i = 0; i < job->outfiles.count; i++)
        sink_flush(&job->outfiles.file[i]->sink);
    sink_flush(&job->err);
    sink_flush(&job->out);
}

/* Output that was lost, since a disk is full, say, is a failure. Where a reader has gone the ranks were told. */
static void judge_output(struct job *job, const struct sink *s, const char *name)
{
    if (!s->broken || s->error == EPIPE || s->error == EBADF)
        return;
    job_say(job, "cannot write to %s: %s; output is lost", name, strerror(s->error));
    job->status = job->status ? job->status : 1;
}

int job_loop(struct job *job)
{
    size_t readers = job->agents ? (size_t)job->place.ranks : (size_t)job->input.count; /* agents' come later */
    size_t room = AT_HEAD + 2 * (size_t)job->place.ranks + readers + (size_t)job->outfiles.count;
    struct pollfd *set = calloc(room, sizeof(*set));

    if (!set)
        abort();
    while (job->running || starting(job) || job->suspect.set || job->offspring || job->unheard >= 0 ||
           (output_pending(job) && !job->hurry))
        turn(job, set);
    for (int i = 0; i < job->outfiles.count; i++)
        judge_output(job, &job->outfiles.file[i]->sink, job->outfiles.file[i]->name);
    judge_output(job, &job->out, "standard output");
    judge_output(job, &job->err, "standard error");
    sink_flush(&job->err);
    free(set);
    input_clear(&job->input);
    return job->status;
}
