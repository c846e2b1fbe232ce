/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ranks of a job have recorded of their rails (libmrmpi/base/record.h), read when they have ended. A record is
 * checked before it is believed: a rank may have died while it wrote, or be a program with another library. Ranks
 * without a record are left out.
 */
#ifndef MRRUN_RECORDS_H
#define MRRUN_RECORDS_H

#include <stddef.h>
#include <stdio.h>

#include "libmrmpi/base/record.h"

struct record {
    struct mr_record *at; /* a private copy of the file; NULL: there is none */
    size_t size;
};

struct records {
    const char *job_id;
    int ranks;
    char *const *host;  /* names of the hosts, */
    const int *host_of; /* and which is a rank's */
    bool simulated;
    struct record *of; /* [ranks] */
};

/* The names of files are those that ranks get as MRMPI_RECORD: directory, rank. */
#define RECORD_FILE "%s/record.%s"

/* 0, or -1: no memory. */
int records_open(struct records *r, const char *directory);
void records_close(struct records *r);

/* Device and port of a rank's rail, as mlx5_0:1; of one that is not known "rail" and its number. The text is one of a
 * few. */
const char *records_rail(const struct records *r, unsigned rank, unsigned rail);
/* What rank and rail moved by itself, and what others read there, or wrote. */
struct record_bytes {
    uint64_t out, in;
};
/* [ranks][MR_RECORD_RAILS]; free(). NULL: no memory. */
struct record_bytes *records_bytes(const struct records *r);

/* A string as JSON has it, in quotes. */
void json_string(FILE *out, const char *text);

#endif
