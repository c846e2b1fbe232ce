/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrrun's command line. Parsing is a function from words to a struct (or a message): it prints nothing and looks at
 * nothing else. The strings point into argv; the arrays belong to the struct (mrrun_options_clear).
 */
#ifndef MRRUN_OPTIONS_H
#define MRRUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct mrrun_host {
    char *name;
    char *devices; /* which HCAs its ranks may use, as MRMPI_DEVICES says it; NULL: not said */
};

struct mrrun_options {
    int ranks; /* -n */
    int ppn;   /* 0: spread evenly */
    struct mrrun_host *hosts; /* NULL: the launcher decides */
    int num_hosts;
    char **env; /* NAME=VALUE, or NAME: as it is in the environment */
    int num_env;
    const char *job_id; /* NULL: made up */
    int timeout_s;      /* 0: none */
    const char *timeout_by; /* who asked for it: an option or a variable */
    int grace_s;        /* between asking ranks to end and killing them */
    const char *stats_as; /* "json", "json:FILE"; NULL: a table. If stats */
    const char *trace;    /* file for the timeline of rails; NULL: none */
    bool stats, label, verbose, explain, rails, help, version;
    char **program; /* the rest of argv, NULL-terminated */
};

enum { MRRUN_RANKS_MAX = 65536 };

/* 0, or -1 with a message of one line in *why (room for cap bytes). */
int mrrun_options_parse(struct mrrun_options *opts, int argc, char **argv, char *why, size_t cap);
/* MPIEXEC_TIMEOUT's text, NULL if it is not set: seconds, which --timeout goes before. 0 or -1, as above. */
int mrrun_options_timeout(struct mrrun_options *opts, const char *text, char *why, size_t cap);
void mrrun_options_clear(struct mrrun_options *opts);

/* One line per option, as --help prints it; NULL after the last. */
const char *mrrun_options_help(size_t i);

#endif
