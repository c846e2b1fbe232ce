/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrrun's command line. Parsing is a function from words to a struct (or a message), without output or other input; the
 * caller passes the text of files named on the command line. The strings point into argv or into the struct, which owns
 * the arrays (mrrun_options_clear).
 */
#ifndef MRRUN_OPTIONS_H
#define MRRUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "mrrun/binding.h"
#include "mrrun/hostlist.h"
#include "mrrun/words.h"

/* Variables for ranks: NAME=VALUE, or NAME: as it is in the environment. */
struct mrrun_env {
    char **text;
    int count;
};

/* The words between two ':' of the command line: a program, its ranks and their options. */
struct mrrun_part {
    int ranks;              /* -n; 0: not given */
    const char *soft;       /* numbers of ranks that will do (launch/triplets.h), up to `ranks`; NULL: that one only */
    const char *wdir;       /* NULL: mrrun's */
    struct mrrun_env env;   /* in addition to the environment of the whole job */
    struct hostlist hosts;  /* empty: the job's hosts */
    const char **host_file; /* files with further hosts, whose text the caller must pass */
    int num_host_files;
    char **program; /* NULL-terminated */
};

struct mrrun_options {
    struct mrrun_part *parts; /* at least one */
    int num_parts;
    int ranks; /* of all parts; 0: the hosts decide */
    int ppn;   /* 0: spread evenly */
    bool by_node, oversubscribe;
    struct binding_wish binding;
    struct hostlist hosts;                 /* empty: the launcher decides */
    struct mrrun_env env;                  /* of all parts */
    const char *launcher;                  /* command to start agents; NULL: chosen by mrrun */
    const char *host_file, *config_file;   /* files whose text the caller must pass; NULL: none */
    const char *job_id;                    /* NULL: made up */
    int timeout_s;                         /* 0: none */
    const char *timeout_by;                /* source of the time-out: an option or a variable */
    int attach;                            /* process of a running job; 0: none */
    int grace_s;                           /* between asking ranks to end and killing them */
    const char *stats_as;                  /* "json", "json:FILE"; NULL: a table. If stats */
    const char *rail_paths;                /* a question to fabricd (rails.h), or NULL */
    const char *trace;                     /* file for the timeline of rails; NULL: none */
    const char *stdin_ranks;               /* all, none or a list; NULL: rank 0 */
    const char *out_pattern, *err_pattern; /* files for ranks' output; NULL: mrrun's own */
    bool recover;                          /* the job goes on without ranks that die */
    bool stats, check, label, verbose, explain, rails, agent, help, version;
    struct words config; /* the words of the file of command lines */
};

enum { MRRUN_RANKS_MAX = 65536 };

/* 0, or -1 with a message of one line in *why (room for cap bytes). Words of argv equal to ":" become NULL. */
int mrrun_options_parse(struct mrrun_options *opts, int argc, char **argv, char *why, size_t cap);
/* The text of config_file, then of host_file, if set. 0 or -1, as above. */
int mrrun_options_config(struct mrrun_options *opts, const char *text, char *why, size_t cap);
int mrrun_options_hosts(struct mrrun_options *opts, const char *text, char *why, size_t cap);
/* The text of the part's host_file of this number. 0 or -1, as above. */
int mrrun_options_part_hosts(struct mrrun_part *part, int number, const char *text, char *why, size_t cap);
/* When all files have been given. 0 or -1, as above. */
int mrrun_options_check(struct mrrun_options *opts, char *why, size_t cap);
/* MPIEXEC_TIMEOUT's text, NULL if unset: seconds; --timeout has priority. 0 or -1, as above. */
int mrrun_options_timeout(struct mrrun_options *opts, const char *text, char *why, size_t cap);
/* Whether a rank gets standard input. */
bool mrrun_options_reads(const struct mrrun_options *opts, int rank);
/* The value that options give a variable of a part's ranks; NULL: none. */
const char *mrrun_options_env(const struct mrrun_options *opts, const struct mrrun_part *part, const char *name);
void mrrun_options_clear(struct mrrun_options *opts);

/* The options as --help prints them, one after the other into *text; false after the last. */
bool mrrun_options_help(size_t i, char *text, size_t cap);

#endif
