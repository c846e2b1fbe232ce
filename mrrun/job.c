/* SPDX-License-Identifier: BSD-3-Clause */
/* What is decided about a job, and why; what is said about it. */
#include "mrrun/job.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mrrun/spawn.h"
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
static const char *name_rank(const struct job *job, int rank, char *buf, size_t cap)
{
    snprintf(buf, cap, "rank %d (host %s, pid %d)", rank, job->hosts.name[job->place.host_of[rank]],
             (int)job->ranks[rank].pid);
    return buf;
}

static void signal_ranks(struct job *job, int sig)
{
    for (int r = 0; r < job->opts->ranks; r++)
        if (job->ranks[r].running)
            spawn_signal(job->ranks[r].pid, sig);
}

static void kill_ranks(struct job *job)
{
    job->phase = JOB_KILLED;
    job->kill_at_ms = 0;
    signal_ranks(job, SIGKILL);
}

/* Ask all ranks to end; job_on_time() kills those that have not after the grace. A stopped rank must run to hear. */
static void end_ranks(struct job *job, int sig)
{
    if (job->phase != JOB_RUNNING)
        return;
    job->phase = JOB_ENDING;
    job->kill_at_ms = job_now_ms() + job->opts->grace_s * 1000ull;
    signal_ranks(job, sig);
    signal_ranks(job, SIGCONT);
}

enum { LAST_WORDS_RANKS = 64 };

/* Of a job that did not end by itself: what each rank said last, so that it can be seen who hangs where. */
static void tell_last_words(struct job *job)
{
    int told = 0, left = 0;

    for (int r = 0; r < job->opts->ranks; r++) {
        const struct rank *rank = &job->ranks[r];
        const struct source *last = rank->err.last_ms > rank->out.last_ms ? &rank->err : &rank->out;
        const char *line = last->len ? last->line : last->last;
        size_t len = last->len ? last->len : strlen(last->last);
        char name[160];

        if (!rank->running)
            continue;
        if (told++ >= LAST_WORDS_RANKS) {
            left++;
            continue;
        }
        name_rank(job, r, name, sizeof(name));
        if (last->last_ms)
            job_say(job, "%s: last output %.1f s ago: %.*s", name, (double)(job_now_ms() - last->last_ms) / 1000,
                    (int)(len < OUTPUT_LAST_MAX ? len : OUTPUT_LAST_MAX), line);
        else
            job_say(job, "%s: no output", name);
    }
    if (left)
        job_say(job, "and %d more ranks", left);
}

/* The first failure is the one that is told; what follows from it is noise. */
static void fail(struct job *job, int status)
{
    job->failed = true;
    if (!job->status_fixed)
        job->status = status;
    if (job->running)
        end_ranks(job, SIGTERM);
}

/*
 * All ranks of an MPI job must call MPI_Init: if some wait there and one is gone, they would wait for ever. The same
 * when they start again with a session, after MPI_Finalize.
 */
static void check_all_join(struct job *job)
{
    char name[160];
    int r = job->ended_well;

    if (job->failed || job->phase != JOB_RUNNING || r < 0 || job->ranks[r].starts >= job->most_starts)
        return;
    name_rank(job, r, name, sizeof(name));
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

/* PMIx_Finalize() returns after a few seconds without an answer; its word is taken in by another thread of ours. */
enum { SUSPECT_MS = 60, UNHEARD_MS = 2000 };

enum cause { EXITED, ABORTED, UNHEARD };

static void tell_suspect(struct job *job)
{
    struct suspect *s = &job->suspect;

    if (!s->set)
        return;
    s->set = false;
    if (job->failed)
        return;
    job_say(job, "%s%s", s->text, !s->aborted && job->running ? "; ending the job" : "");
    fail(job, s->status);
    job->status_fixed |= s->aborted;
}

static void suspect(struct job *job, int rank, int status, enum cause cause)
{
    struct suspect *s = &job->suspect;

    s->set = true;
    s->rank = rank;
    s->status = status;
    s->aborted = cause == ABORTED;
    s->unheard = cause == UNHEARD;
    s->tell_at_ms = job_now_ms() + (s->unheard ? UNHEARD_MS : SUSPECT_MS);
    if (!s->unheard && job->running == job->ranks[rank].running) /* nobody else is left who could have been the cause */
        tell_suspect(job);
}

void job_on_abort(struct job *job, int rank, int code, const char *why)
{
    char name[160];

    if (job->failed || (job->suspect.set && !job->suspect.unheard))
        return;
    snprintf(job->suspect.text, sizeof(job->suspect.text), "%s aborted the job with code %d%s%s",
             name_rank(job, rank, name, sizeof(name)), code, *why ? ": " : "", why);
    suspect(job, rank, code && !(code & 0xff) ? 1 : code & 0xff, ABORTED); /* a status has 8 bits */
}

void job_on_start_failure(struct job *job)
{
    fail(job, 1);
    job->status_fixed = true;
}

void job_on_exec_failure(struct job *job, int rank, int error)
{
    if (job->failed)
        return;
    job_say(job, "cannot run '%s' as rank %d: %s", job->program, rank, strerror(error));
    fail(job, error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE);
    job->status_fixed = true;
}

/* After ranks were asked to end, death by a signal is obedience; an exit code of their own still counts. */
static void count_status(struct job *job, int wait_status)
{
    int status = verdict_exit_status(wait_status);

    if (job->status_fixed || (job->failed && WIFSIGNALED(wait_status)))
        return;
    if (status > job->status)
        job->status = status;
}

static void blame(struct job *job, int rank, enum verdict v, int wait_status)
{
    int status = verdict_exit_status(wait_status);
    char name[160], what[80];

    name_rank(job, rank, name, sizeof(name));
    verdict_describe(v, wait_status, what, sizeof(what));
    snprintf(job->suspect.text, sizeof(job->suspect.text), "%s %s", name, what);
    suspect(job, rank, status ? status : 1, v == VERDICT_NO_FINALIZE ? UNHEARD : EXITED);
    if (v == VERDICT_SIGNAL)
        tell_suspect(job);
}

static void end_well(struct job *job, int rank)
{
    if (job->ended_well < 0 || job->ranks[rank].starts < job->ranks[job->ended_well].starts)
        job->ended_well = rank;
    check_all_join(job);
}

void job_on_exit(struct job *job, int rank, int wait_status)
{
    struct rank *r = &job->ranks[rank];
    enum verdict v = verdict_of(r->connected, r->finalized, wait_status);
    bool worse = v != VERDICT_FINE && v != VERDICT_NO_FINALIZE;
    char name[160], what[80];

    name_rank(job, rank, name, sizeof(name));
    verdict_describe(v, wait_status, what, sizeof(what));
    r->running = false;
    r->unheard = v == VERDICT_NO_FINALIZE;
    r->out.owner_gone = r->err.owner_gone = true;
    job->running--;
    if (job->suspect.set && (v == VERDICT_SIGNAL || (worse && job->suspect.unheard)))
        job->suspect.set = false; /* this is what the other one ran into */
    if (job->suspect.set) {
        if (!job->suspect.aborted && verdict_exit_status(wait_status) > job->suspect.status)
            job->suspect.status = verdict_exit_status(wait_status);
        if (!job->running && !job->suspect.unheard)
            tell_suspect(job);
        return;
    }
    count_status(job, wait_status);

    if (job->phase == JOB_RUNNING && v != VERDICT_FINE) {
        blame(job, rank, v, wait_status);
        return;
    }
    if (job->opts->verbose)
        job_say(job, "%s %s", name, what);
    end_well(job, rank);
}

/* One that has ended: the word that it would was late. It is not blamed, but there may be others like it. */
static void clear_unheard(struct job *job, int rank)
{
    struct suspect *s = &job->suspect;

    if (!s->set || !s->unheard || s->rank != rank)
        return;
    s->set = false;
    end_well(job, rank);
    for (int r = 0; r < job->opts->ranks && !s->set; r++)
        if (job->ranks[r].unheard && !job->ranks[r].finalized)
            blame(job, r, VERDICT_NO_FINALIZE, 0);
}

void job_on_finalized(struct job *job, int rank)
{
    job->ranks[rank].finalized = true;
    clear_unheard(job, rank);
}

/* One Ctrl-C may come from the terminal and from a parent that passes it on: requests so close together are one. */
enum { SAME_REQUEST_MS = 100 };

/* A first request to end is passed on, a second one kills. */
static void on_end_signal(struct job *job, int sig)
{
    char name[VERDICT_SIGNAL_NAME_MAX];
    uint64_t now = job_now_ms();
    bool same = job->end_signal_ms && now - job->end_signal_ms < SAME_REQUEST_MS;

    if (same)
        return;
    job->end_signal_ms = now;
    if (job->phase != JOB_RUNNING) {
        job_say(job, "%s again: killing the job", verdict_signal_name(sig, name));
        kill_ranks(job);
        job->hurry = true;
        if (!job->status)
            job->status = 128 + sig;
        return;
    }
    if (!job->running) {
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
    case SIGQUIT:
        on_end_signal(job, sig);
        break;
    case SIGTSTP: /* ranks have process groups of their own: stop and continue them with mrrun */
        signal_ranks(job, SIGSTOP);
        raise(SIGSTOP);
        signal_ranks(job, SIGCONT);
        break;
    default:
        signal_ranks(job, sig);
    }
}

void job_on_time(struct job *job)
{
    uint64_t now = job_now_ms();

    if (job->suspect.set && now >= job->suspect.tell_at_ms)
        tell_suspect(job);
    if (job->timeout_at_ms && now >= job->timeout_at_ms) {
        job->timeout_at_ms = 0;
        if (job->phase == JOB_RUNNING) {
            job_say(job, "the job is not done after %d s (%s); ending it", job->opts->timeout_s, job->opts->timeout_by);
            tell_last_words(job);
            fail(job, STATUS_TIMEOUT);
            job->status_fixed = true;
        }
    }
    if (job->kill_at_ms && now >= job->kill_at_ms) {
        job_say(job, "%d rank%s not gone after %d s; killing", job->running, job->running == 1 ? " is" : "s are",
                job->opts->grace_s);
        kill_ranks(job);
    }
}
