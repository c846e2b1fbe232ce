/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns records into the output requested by the user. */
#include "mrrun/report.h"

#include <errno.h>
#include <string.h>

#include "mrrun/stats.h"
#include "mrrun/timeline.h"

bool job_wants_records(const struct mrrun_options *opts)
{
    return opts->stats || opts->trace;
}

static FILE *open_report(const char *name, char *why, size_t cap)
{
    FILE *f = fopen(name, "we");

    if (!f)
        snprintf(why, cap, "cannot write '%s': %s", name, strerror(errno));
    return f;
}

int report_open(struct report *rep, const struct mrrun_options *opts, char *why, size_t cap)
{
    *rep = (struct report){.stats = NULL};
    if (opts->stats && opts->stats_as)
        rep->stats = opts->stats_as[strlen("json")] ? open_report(opts->stats_as + strlen("json:"), why, cap) : stderr;
    if (opts->stats && opts->stats_as && !rep->stats)
        return -1;
    if (opts->trace)
        rep->trace = open_report(opts->trace, why, cap);
    return opts->trace && !rep->trace ? -1 : 0;
}

static int finish(FILE **file, const char *what)
{
    FILE *f = *file;
    int err = ferror(f);

    *file = NULL;
    err |= f == stderr ? fflush(f) : fclose(f);
    if (err)
        fprintf(stderr, "mrrun: %s could not be written: %s\n", what, strerror(errno));
    return err ? -1 : 0;
}

int report_write(struct report *rep, const struct job *job)
{
    struct records r = {.job_id = job->job_id,
                        .ranks = job->place.ranks,
                        .host = job->hosts.name,
                        .host_of = job->place.host_of,
                        .simulated = job->hosts.simfab};
    int err;

    if (!job_wants_records(job->opts))
        return 0;
    err = records_open(&r, job->scratch.path);
    if (err)
        fprintf(stderr, "mrrun: out of memory for the ranks' records\n");
    if (!err && job->opts->stats && !rep->stats)
        stats_print_table(stderr, &r);
    if (!err && rep->stats)
        stats_print_json(rep->stats, &r);
    if (!err && rep->trace)
        err = timeline_print(rep->trace, &r);
    records_close(&r);
    if (rep->stats)
        err |= finish(&rep->stats, "the figures of --stats");
    if (rep->trace)
        err |= finish(&rep->trace, "the timeline of --rails-trace");
    return err;
}

void report_close(struct report *rep)
{
    if (rep->stats && rep->stats != stderr)
        fclose(rep->stats);
    if (rep->trace)
        fclose(rep->trace);
    *rep = (struct report){.stats = NULL};
}
