/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files for output of ranks (-outfile-pattern, -errfile-pattern): each is a sink, which several ranks may share. The
 * files are opened before the first rank is started, and emptied.
 */
#ifndef MRRUN_OUTFILES_H
#define MRRUN_OUTFILES_H

#include "mrrun/output.h"

struct outfile {
    char *name;
    struct sink sink;
};

struct outfiles {
    struct outfile **file;
    int count;
};

/* A rank as patterns see it: %r, %h and %p. */
struct outfile_rank {
    int rank;
    const char *host;
    int host_number;
};

/*
 * NULL, or the error in the pattern: %r rank, %h host, %p number of the host, %g number of the job (0), %% a percent.
 */
const char *outfiles_check(const char *pattern);
/* The sink of a rank's output by this pattern; NULL with a message in *why. */
struct sink *outfiles_sink(struct outfiles *f, const char *pattern, const struct outfile_rank *rank, char *why,
                           size_t cap);
void outfiles_close(struct outfiles *f);

#endif
