/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrrun's ends of the streams of bytes from and to ranks on other hosts: output goes to the ranks' sources, input comes
 * from mrrun's own, each rank has its connection to the PMIx server in this process, and files of records come to
 * mrrun's scratch directory.
 */
#ifndef MRRUN_STREAMS_H
#define MRRUN_STREAMS_H

#include "mrrun/channel.h"
#include "mrrun/job.h"

struct streams_host; /* connections of a host's ranks */
struct streams_file; /* input or record of a rank */

struct streams {
    struct job *job;
    struct channel_base base; /* the owner sets set, window and send */
    struct streams_host *host;
    struct streams_file *files;
    uint32_t pmix_port;
};

/* When base is set. 0, or -1: no memory. */
int streams_open(struct streams *s, struct job *job);
void streams_close(struct streams *s);
/* WIRE_DATA, WIRE_TAKEN or WIRE_END, of a host of the job. False: invalid. */
bool streams_take(struct streams *s, const struct wire_frame *f);
/* Expects output of ranks, and sends them their part of mrrun's input. */
void streams_begin(struct streams *s, int rank);
/* Returns credit for written output. */
void streams_settle(struct streams *s);
/* A host is lost. */
void streams_forget(struct streams *s, unsigned host);
/* The record of a rank is to come: a file for it. False: there is none. */
bool streams_await_record(struct streams *s, int rank);
/* Are records still coming? */
bool streams_records_open(const struct streams *s);

#endif
