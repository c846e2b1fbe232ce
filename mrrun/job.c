/* SPDX-License-Identifier: BSD-3-Clause */
/* Decisions about a job, with reasons, and messages. */
#include "mrrun/job.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mrrun/agents.h"
#include "mrrun/offspring.h"
#include "mrrun/processes.h"
#include "mrrun/reach.h"
#include "mrrun/server.h"
#include "mrrun/strangers.h"
#include "mrrun/tree.h"
#include "mrrun/verdict.h"

enum { STATUS_TIMEOUT = 124, STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127 };

uint64_t job_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

void job_say(struct job *job, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    int n = snprintf(text, sizeof(text), "mrrun: ");
    va_start(args, fmt);
    n += vsnprintf(text + n, sizeof(text) - n, fmt, args);
    va_end(args);
    if ((size_t)n > sizeof(text) - 2)
        n = sizeof(text) - 2;
    text[n++] = '\n';
    sink_put(&job->err, text, n);
}

/* "rank 3 (host h2, pid 4711)" */
static const char *describe_rank(const struct job *job, int rank, char *buf, size_t cap)
{
    snprintf(buf, cap, "rank %d (host %s, pid %d)", rank, job->hosts.name[job->place.host_of[rank]],
             (int)job->ranks[rank].pid);
    return buf;
}

/* For steps that should take no time. */
static uint64_t patience_ms(const struct job *job)
{
    return (job->opts->grace_s + 1) * 1000ull;
}

static void kill_ranks(struct job *job)
{
    job->phase = JOB_KILLED;
    job->kill_at_ms = 0;
    job->gone_at_ms = job_now_ms() + patience_ms(job);
    reach_signal(job, SIGKILL);
}

/* Asks all ranks to end; job_on_time() kills those left after the grace. A stopped rank must run to get the signal. */
static void end_ranks(struct job *job, int sig)
{
    if (job->phase != JOB_RUNNING)
        return;
    job->phase = JOB_ENDING;
    job->kill_at_ms = job_now_ms() + job->opts->grace_s * 1000ull;
    reach_signal(job, sig);
    reach_signal(job, SIGCONT);
}

enum { LAST_WORDS_RANKS = 64 };

static void write_last_words(const struct job *job, int rank, FILE *out)
{
    const struct rank *r = &job->ranks[rank];
    const struct source *last = r->err.last_ms > r->out.last_ms ? &r->err : &r->out;
    const char *line = last->len ? last->line : last->last;
    size_t len = last->len ? last->len : strlen(last->last);
    char name[160];

    describe_rank(job, rank, name, sizeof(name));
    if (last->last_ms)
        fprintf(out, "mrrun: %s: last output %.1f s ago: %.*s\n", name, (double)(job_now_ms() - last->last_ms) / 1000,
                (int)(len < OUTPUT_LAST_MAX ? len : OUTPUT_LAST_MAX), line);
    else
        fprintf(out, "mrrun: %s: no output\n", name);
}

/* For a job that did not end by itself: the last output of each rank, which shows where ranks hang; free(). */
static char *last_words_of_ranks(const struct job *job)
{
    int told = 0;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        abort();
    if (job->agents && agents_starting(job->agents)) {
        char *missing = agents_missing(job->agents);

        fprintf(out, "mrrun: no rank has been started: the agents of these hosts have not answered yet: %s\n", missing);
        free(missing);
    }
    for (int r = 0; r < job->place.ranks; r++)
        if (job->ranks[r].running && told++ < LAST_WORDS_RANKS)
            write_last_words(job, r, out);
    if (told > LAST_WORDS_RANKS)
        fprintf(out, "mrrun: and %d more ranks\n", told - LAST_WORDS_RANKS);
    if (fclose(out))
        abort();
    return text;
}

static void tell_last_words(struct job *job)
{
    char *text = last_words_of_ranks(job);

    sink_put(&job->err, text, strlen(text));
    free(text);
}

/* Reports the first failure; later failures follow from the first. */
static void fail(struct job *job, int status)
{
    job->failed = true;
    job->status = status;
    if (job->running)
        end_ranks(job, SIGTERM);
}

/*
 * All ranks of an MPI job must call MPI_Init: if some wait there and another is gone, they would wait without end.
 * Likewise when ranks start MPI again with a session, after MPI_Finalize.
 */
static void check_all_join(struct job *job)
{
    char name[160];
    int r = job->ended_well;

    if (job->failed || job->phase != JOB_RUNNING || r < 0 || job->ranks[r].starts >= job->most_starts)
        return;
    describe_rank(job, r, name, sizeof(name));
    if (job->ranks[r].starts)
        job_say(job, "%s exited with code 0, while others started MPI again after MPI_Finalize; ending the job", name);
    else
        job_say(job, "%s exited with code 0 without MPI_Init, while others called it; ending the job", name);
    fail(job, 1);
}

void job_on_connected(struct job *job, int rank)
{
    struct rank *r = &job->ranks[rank];

    if (!r->connected || r->finalized)
        r->starts++;
    r->connected = true;
    r->finalized = false;
    if (r->starts > job->most_starts)
        job->most_starts = r->starts;
    check_all_join(job);
}

/*
 * PMIx_Finalize() returns after a few seconds without an answer; another thread of ours handles its message. A wrapper
 * ends soon after its program; on a busy machine both may wait for a processor, and get more time, in steps.
 */
enum { UNHEARD_MS = 2000, WRAPPER_MS = 1000, WRAPPER_MORE_MS = 100 };

/* With --recover, once all have met: a rank that dies ends no job. */
static bool goes_on(const struct job *job)
{
    return job->opts->recover && job->met && job->phase == JOB_RUNNING && !job->failed;
}

static void count_lost(struct job *job, int status)
{
    if (!job->lost_status)
        job->lost_status = status ? status : 1;
    if (!job->running && job->ended_well < 0)
        job->status = job->lost_status;
}

/* The job goes on without this rank. The others were told of its end. */
static void leave_behind(struct job *job, int rank, enum verdict v, int wait_status)
{
    int status = verdict_exit_status(wait_status);
    char name[160], what[80];

    describe_rank(job, rank, name, sizeof(name));
    verdict_describe(v, wait_status, what, sizeof(what));
    job_say(job, "%s %s%s", name, what, job->running ? "; the job goes on without this rank (--recover)" : "");
    count_lost(job, status);
}

/* Is the end of a rank that may have been the cause not judged yet? */
static bool cause_is_open(const struct job *job)
{
    for (int r = 0; r < job->place.ranks; r++)
        if (job->ranks[r].running && job->ranks[r].ending != ENDING_NOT)
            return true;
    return job->suspect.asked || job->unheard >= 0;
}

/*
 * A rank may be the cause, as its program has ended: is its wrapper about to end, too? One look at all processes is no
 * snapshot: between the looks at both, the program may have ended and the wrapper begun to run. A wrapper that computes
 * goes on without its program.
 */
static bool wrapper_waits(struct job *job)
{
    struct suspect *s = &job->suspect;
    pid_t *leader = calloc((size_t)job->place.ranks, sizeof(*leader));
    struct aftermath a = {0};
    bool any = false, waits = false;

    if (!leader)
        abort();
    for (int r = 0; r < job->place.ranks && !job->agents; r++) {
        leader[r] = job->ranks[r].running && job->ranks[r].ending == ENDING_PART ? job->ranks[r].pid : 0;
        any |= leader[r];
    }
    for (int look = 0; look < 2 && any && !waits; look++) {
        a = processes_aftermath(leader, job->place.ranks);
        waits = a.ending || (a.ready && a.cpu_ms < s->wrappers_cpu_ms + WRAPPER_MORE_MS / 2);
    }
    s->wrappers_cpu_ms = a.cpu_ms;
    free(leader);
    return waits;
}

/* True: a cause that is not known by now is not waited for any more. */
static bool waited_enough(struct job *job, uint64_t now)
{
    struct suspect *s = &job->suspect;

    if (now >= s->tell_at_ms && now < s->latest_ms && wrapper_waits(job))
        s->tell_at_ms = now + WRAPPER_MORE_MS;
    return now >= s->tell_at_ms;
}

static void tell_suspect(struct job *job)
{
    struct suspect *s = &job->suspect;

    s->set = false;
    job->unheard = -1;
    job_say(job, "%s%s", s->text, !s->aborts && job->running ? "; ending the job" : "");
    fail(job, s->status);
}

static void word_end(struct job *job, int rank, enum verdict v, int wait_status)
{
    struct suspect *s = &job->suspect;
    int status = verdict_exit_status(wait_status);
    char name[160], what[80];

    s->rank = rank;

    describe_rank(job, rank, name, sizeof(name));
    verdict_describe(v, wait_status, what, sizeof(what));
    snprintf(s->text, sizeof(s->text), "%s %s", name, what);
    s->status = status ? status : 1;
    s->aborts = false;
    s->killed = v == VERDICT_SIGNAL && WTERMSIG(wait_status) != SIGABRT; /* programs call abort() like exit() */
    s->set = true;
}

static void await_last_words(struct job *job, int rank)
{
    job->unheard = rank;
    job->unheard_until_ms = job_now_ms() + UNHEARD_MS;
    if (job->suspect.set && job->suspect.tell_at_ms < job->unheard_until_ms)
        job->suspect.tell_at_ms = job->unheard_until_ms;
}

/* This rank's end is judged; others may have ended in the same way. */
static void await_next_unheard(struct job *job, int rank)
{
    job->ranks[rank].unheard = false;
    job->unheard = -1;
    for (int r = 0; r < job->place.ranks && job->unheard < 0; r++)
        if (job->ranks[r].unheard && !job->ranks[r].finalized)
            await_last_words(job, r);
}

/* Something has become known, or time has passed. */
static void settle(struct job *job)
{
    struct suspect *s = &job->suspect;
    uint64_t now = job_now_ms();

    if (job->failed) {
        s->set = false;
        job->unheard = -1;
    } else if (job->unheard >= 0 && now >= job->unheard_until_ms && goes_on(job)) {
        leave_behind(job, job->unheard, VERDICT_NO_FINALIZE, 0);
        await_next_unheard(job, job->unheard);
    } else if (job->unheard >= 0 && now >= job->unheard_until_ms) {
        word_end(job, job->unheard, VERDICT_NO_FINALIZE, 0);
        tell_suspect(job);
    } else if (s->set && (s->killed || !cause_is_open(job) || waited_enough(job, now))) {
        tell_suspect(job);
    }
}

/* The possible causes, and the time to wait for them. */
static void suspect_waits(struct job *job, int rank, const enum ending *ending)
{
    struct suspect *s = &job->suspect;
    uint64_t longest_ms = 0, now = job_now_ms();

    for (int r = 0; r < job->place.ranks; r++) {
        struct rank *other = &job->ranks[r];
        if (r == rank || !other->running)
            continue;
        if (other->ending != ENDING_SELF)
            other->ending = ending[r];
        uint64_t ms = other->ending == ENDING_SELF ? patience_ms(job) : other->ending == ENDING_PART ? WRAPPER_MS : 0;
        if (ms > longest_ms)
            longest_ms = ms;
    }
    s->tell_at_ms = now + longest_ms;
    s->latest_ms = now + patience_ms(job);
    wrapper_waits(job); /* the processor time so far */
    if (job->unheard >= 0 && job->unheard_until_ms > s->tell_at_ms)
        s->tell_at_ms = job->unheard_until_ms;
}

void job_on_endings(struct job *job, const enum ending *ending)
{
    struct suspect *s = &job->suspect;

    if (job->abort_held) {
        job->abort_held = false;
        job_on_abort(job, job->abort.rank, job->abort.code, job->abort.why, ending);
        server_answer(&job->abort);
        return;
    }
    if (!s->set || !s->asked)
        return;
    s->asked = false;
    suspect_waits(job, s->rank, ending);
    settle(job);
}

static void note_who_ends(struct job *job, int rank)
{
    struct suspect *s = &job->suspect;
    enum ending *ending = calloc((size_t)job->place.ranks, sizeof(*ending));

    if (!ending)
        abort();
    s->asked = reach_endings(job, ending) == REACH_ENDING_LATER;
    if (s->asked) /* job_on_endings() */
        s->tell_at_ms = job_now_ms() + patience_ms(job);
    else
        suspect_waits(job, rank, ending);
    free(ending);
}

void job_on_abort(struct job *job, int rank, int code, const char *why, const enum ending *ending)
{
    struct suspect *s = &job->suspect;
    char name[160];

    if (job->failed || s->set)
        return;
    snprintf(s->text, sizeof(s->text), "%s aborted the job with code %d%s%s",
             describe_rank(job, rank, name, sizeof(name)), code, *why ? ": " : "", why);
    s->set = true;
    s->aborts = true;
    s->killed = false;
    s->rank = rank;
    s->status = code && !(code & 0xff) ? 1 : code & 0xff; /* a status has 8 bits */
    if (ending)
        suspect_waits(job, rank, ending);
    else
        note_who_ends(job, rank);
    settle(job);
}

void job_on_start_failure(struct job *job)
{
    fail(job, signals_end_asked() ? signals_end_status() : 1);
}

void job_on_exec_failure(struct job *job, int rank, int error, const char *why)
{
    const char *host = job->hosts.name[job->place.host_of[rank]];

    if (job->failed)
        return;
    if (why)
        job_say(job, "host %s, rank %d: %s", host, rank, why);
    else
        job_say(job, "cannot run '%s' as rank %d: %s", job->program[job->ranks[rank].part], rank, strerror(error));
    fail(job, error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE);
}

/*
 * Ranks that lose each other do so at about the same time, after MRMPI_PATIENCE: the time in which the others of a host
 * that was cut off may say so, too.
 */
enum { DOUBTS_MS = 1000 };

void job_on_doubt(struct job *job, const struct server_event *event)
{
    int by = event->rank, of = event->code;
    struct server_event *more, answered = *event;

    if (!goes_on(job) || of < 0 || of >= job->place.ranks || of == by || !job->ranks[of].running ||
        job->ranks[of].finalized) {
        server_answer(&answered);
        return;
    }
    more = realloc(job->doubters, (size_t)(job->num_doubters + 1) * sizeof(*more));
    if (!more || !doubts_add(&job->doubts, by, of))
        abort();
    job->doubters = more;
    more[job->num_doubters++] = *event;
    if (!job->doubts_until_ms)
        job->doubts_until_ms = job_now_ms() + DOUBTS_MS;
}

/* Whoever waits for the end of a rank that runs goes on waiting. A killed rank needs no answer. */
static void answer_doubts(struct job *job)
{
    int kept = 0;

    for (int i = 0; i < job->num_doubters; i++) {
        struct server_event *e = &job->doubters[i];
        const struct rank *by = &job->ranks[e->rank], *of = &job->ranks[e->code];

        if (of->running && !of->finalized && goes_on(job))
            job->doubters[kept++] = *e;
        else if (by->running && !by->expelled)
            server_answer(e);
    }
    job->num_doubters = kept;
}

static void judge_doubts(struct job *job)
{
    bool *lives = calloc((size_t)job->place.ranks, sizeof(*lives));
    char name[160];
    int r, by;

    if (!lives)
        abort();
    for (r = 0; r < job->place.ranks; r++)
        lives[r] = job->ranks[r].running && !job->ranks[r].finalized;
    while (goes_on(job) && (r = doubts_end_one(&job->doubts, lives, job->place.ranks, &by)) >= 0) {
        job_say(job, "%s and rank %d cannot reach each other: ending rank %d",
                describe_rank(job, r, name, sizeof(name)), by, r);
        job->ranks[r].expelled = true;
        reach_signal_rank(job, r, SIGKILL);
    }
    free(lives);
    answer_doubts(job);
    doubts_free(&job->doubts);
    job->doubts_until_ms = 0;
}

/* By memory shared with the ranks of each host, and by PMIx, whose events need a thread of each rank. */
static void tell_end(struct job *job, int rank)
{
    reach_tell_end(job, rank);
    server_tell_end(rank);
}

/* Processes started on that host can no longer be seen. on: the job goes on without them. Returns their number. */
static int forget_host(struct job *job, int host, bool on)
{
    int ranks = 0;

    for (int r = 0; r < job->place.ranks; r++) {
        struct rank *rank = &job->ranks[r];

        if (job->place.host_of[r] != host)
            continue;
        source_close(&rank->out);
        source_close(&rank->err);
        if (!rank->running)
            continue;
        rank->running = false;
        ranks++;
        if (!--job->running)
            job->ended_ms = job_now_ms();
        if (on)
            tell_end(job, r);
    }
    answer_doubts(job);
    return ranks;
}

/* The hosts behind it, which are reported next, may be lost as well. */
static void leave_host_behind(struct job *job, int host, const char *why, int ranks)
{
    if (why)
        job_say(job, "host %s: %s%s", job->hosts.name[host], why,
                job->running ? "; the job goes on without its ranks (--recover)" : "");
    if (ranks)
        count_lost(job, 1);
    settle(job);
}

void job_on_lost_host(struct job *job, int host, const char *why)
{
    bool on = goes_on(job);
    int ranks = forget_host(job, host, on);

    if (on) {
        leave_host_behind(job, host, why, ranks);
        return;
    }
    if (!why || job->phase == JOB_KILLED || (job->failed && job->suspect.set))
        return;
    if (job->failed || job->phase != JOB_RUNNING) {
        job_say(job, "host %s: %s", job->hosts.name[host], why);
        return;
    }
    job->suspect.set = false;
    job->unheard = -1;
    job_say(job, "host %s: %s%s", job->hosts.name[host], why, job->running ? "; ending the job" : "");
    fail(job, 1);
}

void job_on_started(struct job *job, int rank, pid_t pid, const char *bound)
{
    const struct binding_wish *wish = &job->opts->binding;

    job->ranks[rank].pid = pid;
    if (job->opts->verbose)
        job_say(job, "rank %d started on host %s, pid %d", rank, job->hosts.name[job->place.host_of[rank]], (int)pid);
    if (*bound && (wish->report || job->opts->verbose))
        job_say(job, "rank %d is bound to %s: processors %s", rank, binding_object_name(binding_target(wish)), bound);
    else if (!*bound && wish->report)
        job_say(job, "rank %d is not bound", rank);
}

/* Of ranks that end well, or at the user's request, the largest code counts. */
static void count_status(struct job *job, int wait_status)
{
    int status = verdict_exit_status(wait_status);

    if (!job->failed && status > job->status)
        job->status = status;
}

/*
 * A rank has failed. If another failure was reported before, the new failure is the cause if its end was already under
 * way: always against an abort, because the aborting rank was alive then. Two ends come in the kernel's order; but a
 * death by a signal is no reaction to a failure, and takes longer with much memory to release.
 */
static void accuse(struct job *job, int rank, enum verdict v, int wait_status)
{
    struct suspect *s = &job->suspect;
    bool killed = v == VERDICT_SIGNAL && WTERMSIG(wait_status) != SIGABRT;

    if (!s->set) {
        word_end(job, rank, v, wait_status);
        if (!killed)
            note_who_ends(job, rank);
    } else if (job->ranks[rank].ending != ENDING_NOT && (s->aborts || (killed && !s->killed))) {
        word_end(job, rank, v, wait_status);
    }
}

static void end_well(struct job *job, int rank)
{
    if (job->ended_well < 0 || job->ranks[rank].starts < job->ranks[job->ended_well].starts)
        job->ended_well = rank;
    check_all_join(job);
}

/* Later failures may follow from this end, even if the process can no longer be examined. */
void job_on_end(struct job *job, int rank)
{
    if (!job->suspect.set || job->suspect.asked)
        job->ranks[rank].ending = ENDING_SELF;
}

void job_on_exit(struct job *job, int rank, int wait_status)
{
    struct rank *r = &job->ranks[rank];
    enum verdict v = verdict_of(r->connected, r->finalized, wait_status);
    char name[160], what[80];

    describe_rank(job, rank, name, sizeof(name));
    verdict_describe(v, wait_status, what, sizeof(what));
    r->running = false;
    r->out.owner_gone = r->err.owner_gone = true;
    if (!--job->running)
        job->ended_ms = job_now_ms();
    if (job->opts->verbose)
        job_say(job, "%s %s", name, what);
    if (goes_on(job))
        tell_end(job, rank);
    answer_doubts(job);
    if (v == VERDICT_FINE || job->phase != JOB_RUNNING) {
        count_status(job, wait_status);
        end_well(job, rank);
    } else if (v == VERDICT_NO_FINALIZE) {
        r->unheard = true;
        if (job->unheard < 0 && (!job->suspect.set || r->ending != ENDING_NOT))
            await_last_words(job, rank);
    } else if (goes_on(job)) {
        leave_behind(job, rank, v, wait_status);
    } else if (!job->failed) {
        accuse(job, rank, v, wait_status);
    }
    settle(job);
}

/* The rank has ended, and its report was late. The rank is not blamed, but others may be like it. */
static void clear_unheard(struct job *job, int rank)
{
    if (job->unheard != rank)
        return;
    end_well(job, rank);
    await_next_unheard(job, rank);
    settle(job);
}

void job_on_finalized(struct job *job, int rank)
{
    job->ranks[rank].finalized = true;
    clear_unheard(job, rank);
}

/* Nothing has been started but agents. */
static void end_before_start(struct job *job, int sig)
{
    char name[VERDICT_SIGNAL_NAME_MAX];

    job_say(job, "%s", verdict_signal_name(sig, name));
    tell_last_words(job);
    job->failed = true;
    job->status = 128 + sig;
}

bool job_output_is_far(const struct job *job)
{
    for (int r = 0; r < job->place.ranks; r++)
        if (job->ranks[r].out.far || job->ranks[r].err.far)
            return true;
    return false;
}

/* A first request to end is passed on, a second one kills. */
static void on_end_signal(struct job *job, int sig)
{
    char name[VERDICT_SIGNAL_NAME_MAX];

    job->asked_ms = job_now_ms();
    if (job->agents && agents_starting(job->agents)) {
        end_before_start(job, sig);
        return;
    }
    if (job->phase != JOB_RUNNING) {
        job_say(job, "%s again: killing the job", verdict_signal_name(sig, name));
        kill_ranks(job);
        reach_kill_strays(job);
        job->hurry = true;
        if (!job->status)
            job->status = 128 + sig;
        return;
    }
    if (!job->running) {
        if (job->offspring) {
            job_say(job, "%s: asking the jobs to end that ranks have started (again: kills at once)",
                    verdict_signal_name(sig, name));
            job->phase = JOB_ENDING;
            job->status = job->status ? job->status : 128 + sig;
        }
        if (job_output_is_far(job)) /* cut off; the agents end what their ranks have started */
            job->status = job->status ? job->status : 128 + sig;
        job->hurry = true;
        return;
    }
    job_say(job, "%s: asking %d rank%s to end (again: kills at once)", verdict_signal_name(sig, name), job->running,
            job->running == 1 ? "" : "s");
    if (sig == SIGTERM) /* somebody's patience is at its end, not a user at a keyboard */
        tell_last_words(job);
    end_ranks(job, sig);
}

void job_on_signal(struct job *job, int sig)
{
    switch (sig) {
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
        on_end_signal(job, sig);
        break;
    case SIGQUIT:
        job->inquiry.said = reach_ask(job);
        if (!job->inquiry.said)
            tell_last_words(job);
        break;
    case SIGTSTP: /* ranks have process groups of their own: stop and continue them with mrrun */
        reach_signal(job, SIGSTOP);
        reach_stop(job);
        reach_signal(job, SIGCONT);
        break;
    default:
        reach_signal(job, sig);
    }
}

/* SIGKILL does not reach a process that waits in the kernel for a device or a file system. */
static void leave_ranks(struct job *job)
{
    char name[160];

    job->gone_at_ms = 0;
    for (int r = 0; r < job->place.ranks; r++) {
        struct rank *rank = &job->ranks[r];
        if (!rank->running)
            continue;
        job_say(job, "%s does not end, though it was killed: it waits in the kernel; it is left",
                describe_rank(job, r, name, sizeof(name)));
        rank->running = false;
        rank->out.owner_gone = rank->err.owner_gone = true;
    }
    job->running = 0;
    job->ended_ms = job_now_ms();
    if (!job->status)
        job->status = 128 + SIGKILL;
}

/* 0: output is waited for as long as there may be a reader. */
uint64_t job_output_until_ms(const struct job *job)
{
    uint64_t since = job->ended_ms > job->asked_ms ? job->ended_ms : job->asked_ms;

    if (job->running || !job->asked_ms)
        return 0;
    since = job->out.moved_ms > since ? job->out.moved_ms : since;
    since = job->err.moved_ms > since ? job->err.moved_ms : since;
    return since + patience_ms(job);
}

/* The first look, soon, since such a program may be short; and the longest time between two. */
enum { LOOK_FIRST_MS = 50, LOOK_LAST_MS = 30000, LOOK_RANKS = 32 };

/*
 * A rank that has not started MPI may be a script that runs a program of another MPI; but not if the rank's own program
 * is linked with ours. Only some of many ranks are checked, because ranks are alike. False: no such ranks.
 */
static bool look_for_strangers(struct job *job)
{
    pid_t *leader = calloc((size_t)job->place.ranks, sizeof(*leader));
    int silent[LOOK_RANKS], waiting = 0;
    struct stranger s;

    for (int r = 0; leader && !job->stranger_told && r < job->place.ranks && waiting < LOOK_RANKS; r++) {
        const struct rank *rank = &job->ranks[r];

        if (!rank->running || rank->starts || job->mpi[rank->part] == PROGRAM_WITH_OURS)
            continue;
        leader[r] = rank->pid;
        silent[waiting++] = r;
    }
    if (waiting && job->agents) {
        agents_look_for_strangers(job->agents, silent, waiting);
    } else if (waiting && strangers_find(leader, job->place.ranks, server_namespace(), job->lib_dir, &s)) {
        job_on_stranger(job, &s);
        waiting = 0;
    }
    free(leader);
    return waiting;
}

void job_on_stranger(struct job *job, const struct stranger *s)
{
    char name[160];

    if (job->stranger_told)
        return;
    job->stranger_told = true;
    job_say(job,
            "warning: %s runs '%s' (pid %d) with %s, which is %s: such a program is a job of its own here, not a rank; "
            "compile it with mrcc, or use the launcher of its own MPI",
            describe_rank(job, s->index, name, sizeof(name)), s->program, (int)s->pid, s->library,
            s->whose ? s->whose : "not mrmpi's");
}

static void look_in_time(struct job *job, uint64_t now)
{
    if (!job->look_every_ms)
        job->look_every_ms = LOOK_FIRST_MS;
    else if (!look_for_strangers(job) || job->look_every_ms >= LOOK_LAST_MS)
        job->look_every_ms = 0;
    else
        job->look_every_ms *= 2;
    job->look_at_ms = job->look_every_ms ? now + job->look_every_ms : 0;
}

static void end_late_job(struct job *job)
{
    if (job->phase != JOB_RUNNING || job->failed)
        return;
    job_say(job, "the job is not done after %d s (%s); ending it", job->opts->timeout_s, job->opts->timeout_by);
    tell_last_words(job);
    fail(job, STATUS_TIMEOUT);
}

/* Login shells and file systems may be slow; the user is told the host. */
static void tell_absent(struct job *job)
{
    char *missing;

    job->absent_at_ms = 0;
    if (!job->agents || !agents_starting(job->agents) || job->failed)
        return;
    missing = agents_missing(job->agents);
    job_say(job, "still waiting for the agents of these hosts, for %d s at most: %s", TREE_START_MS / 1000, missing);
    free(missing);
}

static void answer_attached(struct job *job, const char *report)
{
    char *text;

    if (!job->attach.num_askers)
        return;
    if (asprintf(&text, "mrrun: job %s: %d of %d ranks are running\n%s", job->job_id, job->running, job->place.ranks,
                 report) < 0)
        abort();
    attach_answer(&job->attach, text);
    free(text);
}

/* Without MPI in the ranks there are only the last lines of their output to tell. */
void job_on_attach(struct job *job)
{
    char *text;

    if (!attach_take(&job->attach) || reach_ask(job))
        return;
    text = last_words_of_ranks(job);
    answer_attached(job, text);
    free(text);
}

static void tell_answers(struct job *job)
{
    struct inquiry_rank *rank = reach_ranks(job);
    char *report = inquiry_report(&job->inquiry, rank, job->place.ranks, job_now_ms());

    free(rank);
    if (!report)
        return;
    if (job->inquiry.said)
        sink_put(&job->err, report, strlen(report));
    job->inquiry.said = false;
    answer_attached(job, report);
    free(report);
    if (job->inquiry.ends)
        end_late_job(job);
}

/* When the ranks have been ended, or have ended before the request. */
static void end_offspring(struct job *job)
{
    uint64_t now = job_now_ms();
    bool far = job->agents && job_output_is_far(job);

    if (!(job->offspring || far) || job->running || (job->phase == JOB_RUNNING && !job->failed))
        return;
    if (far) {
        if (now >= job->offspring_kill_at_ms) {
            reach_kill_strays(job);
            job->offspring_kill_at_ms = now + patience_ms(job);
        }
    } else if (!job->offspring_kill_at_ms) {
        offspring_signal(job->scratch.path, SIGTERM);
        job->offspring_kill_at_ms = now + patience_ms(job) + job->opts->grace_s * 1000ull;
    } else if (now >= job->offspring_kill_at_ms) {
        offspring_signal(job->scratch.path, SIGKILL);
        job->offspring_kill_at_ms = now + patience_ms(job);
    }
}

void job_on_time(struct job *job)
{
    uint64_t until = job_output_until_ms(job);
    uint64_t now = job_now_ms();

    if (job->absent_at_ms && now >= job->absent_at_ms)
        tell_absent(job);
    if (job->look_at_ms && now >= job->look_at_ms)
        look_in_time(job, now);
    if (job->doubts_until_ms && now >= job->doubts_until_ms)
        judge_doubts(job);
    settle(job);
    if (job->timeout_at_ms && now >= job->timeout_at_ms) {
        job->timeout_at_ms = 0;
        job->asked_ms = now;
        job->inquiry.ends = job->inquiry.said = job->phase == JOB_RUNNING && reach_ask(job);
        if (!job->inquiry.ends)
            end_late_job(job);
    }
    if (job->inquiry.until_ms)
        tell_answers(job);
    end_offspring(job);
    if (job->kill_at_ms && now >= job->kill_at_ms) {
        job_say(job, "%d rank%s not gone after %d s; killing", job->running, job->running == 1 ? " is" : "s are",
                job->opts->grace_s);
        kill_ranks(job);
    }
    if (job->gone_at_ms && now >= job->gone_at_ms && job->running)
        leave_ranks(job);
    if (until && now >= until && (job->out.len || job->err.len))
        job->hurry = true;
}
