/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports from the records of a job's ranks: figures (--stats), a timeline (--rails-trace). Files are opened before the
 * job starts, so an unwritable file is reported before a long job.
 */
#ifndef MRRUN_REPORT_H
#define MRRUN_REPORT_H

#include <stdio.h>

#include "mrrun/job.h"
#include "mrrun/records.h"

struct report {
    FILE *stats; /* of --stats=json: its file, or standard error; NULL: not asked for */
    FILE *trace;
};

bool job_wants_records(const struct mrrun_options *opts);

/* 0, or -1 with a message in *why. */
int report_open(struct report *rep, const struct mrrun_options *opts, char *why, size_t cap);
/* When all ranks have ended and their output is out, before the scratch directory goes. 0, or -1 after saying why. */
int report_write(struct report *rep, const struct job *job);
void report_close(struct report *rep);

#endif
