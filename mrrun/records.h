/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of ranks about their rails (libmrmpi/base/record.h), read after the ranks have ended. A record is checked
 * before use: a rank may have died while writing, or be a program with another library. Ranks without a record are left
 * out.
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
    const int *host_of; /* and the host of each rank */
    bool simulated;
    struct record *of; /* [ranks] */
};

/* Names of record files, passed to ranks as MRMPI_RECORD: directory, rank. */
#define RECORD_FILE "%s/record.%s"

/* 0, or -1: no memory. */
int records_open(struct records *r, const char *directory);
void records_close(struct records *r);

/* Device and port of a rank's rail, as mlx5_0:1; of an unknown rail "rail" and its number. The text is one of a few. */
const char *records_rail(const struct records *r, unsigned rank, unsigned rail);
/* Bytes moved by rank and rail itself, and bytes read or written there by others. */
struct record_bytes {
    uint64_t out, in;
};
/* [ranks][MR_RECORD_RAILS]; free(). NULL: no memory. */
struct record_bytes *records_bytes(const struct records *r);

/* A JSON string, in quotes. */
void json_string(FILE *out, const char *text);

#endif
