/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes jobs.yaml again without outdated lines, beside the file, while lines are still appended. Compaction reads only
 * the file itself, so another thread can do it, and the main thread copies only the lines appended meanwhile. Whenever
 * the daemon is killed there is one whole file: the old one until the new one has taken its place.
 */
#ifndef FABRICD_JOBS_COMPACT_H
#define FABRICD_JOBS_COMPACT_H

#include "fabricd/jobs/journal.h"

#include <sys/types.h>

struct compaction {
    char path[sizeof(((struct journal *)0)->path)], tmp[sizeof(((struct journal *)0)->path) + 16];
    dev_t dev; /* and ino: of the file */
    ino_t ino;
    off_t len;       /* bytes of the file to read */
    unsigned before; /* lines in these bytes */
    int fd;          /* of tmp */
    int rc;          /* 0 or a negative errno */
    unsigned lines;  /* valid lines */
    void *owner;     /* its caller, in the caller's terms */
};

/* Begin; 0, or a negative errno with nothing to end. The journal's file must be ours. */
int compact_begin(const struct journal *j, struct compaction *c);
/* Write tmp and wait for the disk. In any thread. */
void compact_run(struct compaction *c);
/*
 * Appends the later lines, and puts tmp in the place of the file. Or removes tmp, with a negative errno; -ESTALE: the
 * file has been written anew since the beginning.
 */
int compact_end(struct journal *j, struct compaction *c);

#endif
