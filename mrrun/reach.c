/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/reach.h"

#include <signal.h>
#include <stdlib.h>

#include "mrrun/agents.h"
#include "mrrun/link.h"
#include "mrrun/signals.h"
#include "mrrun/spawn.h"

void reach_signal(struct job *job, int sig)
{
    if (job->agents) {
        agents_signal(job->agents, -1, sig);
        return;
    }
    for (int r = 0; r < job->place.ranks; r++)
        if (job->ranks[r].running)
            spawn_signal(job->ranks[r].pid, sig);
}

void reach_signal_rank(struct job *job, int rank, int sig)
{
    if (job->agents)
        agents_signal(job->agents, rank, sig);
    else if (job->ranks[rank].running)
        spawn_signal(job->ranks[rank].pid, sig);
}

void reach_kill_strays(struct job *job)
{
    if (job->agents)
        agents_kill_all(job->agents);
    else
        processes_kill_descendants(&job->scratch.janitor, 1);
}

void reach_stop(struct job *job)
{
    if (job->agents)
        agents_pause(job->agents, true);
    if (!signals_continued())
        raise(SIGSTOP);
    if (job->agents)
        agents_pause(job->agents, false);
}

struct inquiry_rank *reach_ranks(const struct job *job)
{
    struct inquiry_rank *rank = calloc((size_t)job->place.ranks, sizeof(*rank));

    if (!rank)
        abort();
    for (int r = 0; r < job->place.ranks; r++) {
        const struct rank *at = &job->ranks[r];
        rank[r] =
            (struct inquiry_rank){at->pid, at->running, at->connected, at->finalized, job->agents != NULL, at->state};
    }
    return rank;
}

bool reach_ask(struct job *job)
{
    struct inquiry_rank *rank = reach_ranks(job);
    bool asked = inquiry_ask(&job->inquiry, rank, job->place.ranks, link_now_ms());

    if (asked && job->agents)
        agents_ask(job->agents, inquiry_number(&job->inquiry));
    free(rank);
    return asked;
}

void reach_tell_end(struct job *job, int rank)
{
    if (job->agents)
        agents_tell_end(job->agents, rank);
    else
        inquiry_tell_end(&job->inquiry, rank);
}

int reach_endings(struct job *job, enum ending *ending)
{
    pid_t *pid = calloc((size_t)job->place.ranks, sizeof(*pid));

    if (!pid)
        abort();
    if (job->agents)
        agents_look(job->agents);
    for (int r = 0; r < job->place.ranks && !job->agents; r++)
        pid[r] = job->ranks[r].running ? job->ranks[r].pid : 0;
    if (!job->agents)
        processes_ending(pid, job->place.ranks, ending);
    free(pid);
    return job->agents ? REACH_ENDING_LATER : 0;
}
