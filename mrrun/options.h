/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrrun's command line. Parsing is a function from words to a struct (or a message): it prints nothing and looks at
 * nothing else; the text of files that the command line names is given to it. The strings point into argv or into the
 * struct, which owns the arrays (mrrun_options_clear).
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

/* What stands between two ':' of the command line: a program, and how many ranks run it, and how. */
struct mrrun_part {
    int ranks;             /* -n; 0: not said */
    const char *wdir;      /* NULL: that of mrrun */
    struct mrrun_env env;  /* beside those of the whole job */
    struct hostlist hosts; /* empty: those of the job */
    char **program;        /* NULL-terminated */
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
    const char *launcher;                  /* command that starts agents; NULL: mrrun chooses */
    const char *host_file, *config_file;   /* whose text is to be given; NULL: none */
    const char *job_id;                    /* NULL: made up */
    int timeout_s;                         /* 0: none */
    const char *timeout_by;                /* who asked for it: an option or a variable */
    int attach;                            /* process of a running job; 0: none */
    int grace_s;                           /* between asking ranks to end and killing them */
    const char *stats_as;                  /* "json", "json:FILE"; NULL: a table. If stats */
    const char *rail_paths;                /* a question to fabricd (rails.h), or NULL */
    const char *trace;                     /* file for the timeline of rails; NULL: none */
    const char *stdin_ranks;               /* all, none or a list; NULL: rank 0 */
    const char *out_pattern, *err_pattern; /* files for ranks' output; NULL: mrrun's own */
    bool stats, check, label, verbose, explain, rails, agent, help, version;
    struct words config; /* the words of the file of command lines */
};

enum { MRRUN_RANKS_MAX = 65536 };

/* 0, or -1 with a message of one line in *why (room for cap bytes). Words of argv that are ":" become NULL. */
int mrrun_options_parse(struct mrrun_options *opts, int argc, char **argv, char *why, size_t cap);
/* The text of config_file, then that of host_file, if they are set. 0 or -1, as above. */
int mrrun_options_config(struct mrrun_options *opts, const char *text, char *why, size_t cap);
int mrrun_options_hosts(struct mrrun_options *opts, const char *text, char *why, size_t cap);
/* When all files have been given. 0 or -1, as above. */
int mrrun_options_check(struct mrrun_options *opts, char *why, size_t cap);
/* MPIEXEC_TIMEOUT's text, NULL if it is not set: seconds, which --timeout goes before. 0 or -1, as above. */
int mrrun_options_timeout(struct mrrun_options *opts, const char *text, char *why, size_t cap);
/* Whether a rank gets standard input. */
bool mrrun_options_reads(const struct mrrun_options *opts, int rank);
/* What the options set a variable of a part's ranks to; NULL: nothing. */
const char *mrrun_options_env(const struct mrrun_options *opts, const struct mrrun_part *part, const char *name);
void mrrun_options_clear(struct mrrun_options *opts);

/* The options as --help prints them, one after the other into *text; false after the last. */
bool mrrun_options_help(size_t i, char *text, size_t cap);

#endif
