/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jobs.yaml without the lines that do not hold, written beside it while lines go on being appended. Only the file
 * itself is read for that, so that it can be done in another thread and the main one copies nothing but what came
 * meanwhile. Whenever the daemon is killed there is one whole file: the old one until the new one has taken its place.
 */
#ifndef FABRICD_JOBS_COMPACT_H
#define FABRICD_JOBS_COMPACT_H

#include "fabricd/jobs/journal.h"

#include <sys/types.h>

struct compaction {
    char path[sizeof(((struct journal *)0)->path)], tmp[sizeof(((struct journal *)0)->path) + 16];
    dev_t dev; /* and ino: of the file */
    ino_t ino;
    off_t len;       /* bytes of it that are looked at */
    unsigned before; /* lines that these are */
    int fd;          /* of tmp */
    int rc;          /* 0 or a negative errno */
    unsigned lines;  /* that hold */
    void *owner;     /* who has it run, for himself */
};

/* Begin; 0, or a negative errno with nothing to end. The journal's file must be ours. */
int compact_begin(const struct journal *j, struct compaction *c);
/* Write tmp and wait for the disk. In any thread. */
void compact_run(struct compaction *c);
/*
 * What was appended meanwhile follows, and tmp takes the place of the file. Or it is removed, with a negative errno;
 * -ESTALE: the file has been written anew since the beginning.
 */
int compact_end(struct journal *j, struct compaction *c);

#endif
