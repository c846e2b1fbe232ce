/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that reads the counters of this host's InfiniBand rails and of the ports across their cables, because a
 * silent port has to be waited for. The thread also writes the rails' history to disk, because a disk may be slow. The
 * thread does not judge health: the main thread takes the readings and judges them.
 */
#ifndef FABRICD_WATCH_H
#define FABRICD_WATCH_H

#include "fabricd/policy/health.h"
#include "fabricd/fabric/rails.h"

#include <limits.h>

struct watch;

struct watch_reading {
    char device[FD_DEV_MAX];
    unsigned port;
    char far_name[96]; /* "": not known */
    struct health_look look;
};

/* file: where watch_keep writes. NULL and errno on failure. */
struct watch *watch_start(unsigned interval_ms, const char *file);
void watch_stop(struct watch *w);
/* Readable when there are new readings. */
int watch_fd(const struct watch *w);
/* The last readings, each once. How many. */
unsigned watch_take(struct watch *w, struct watch_reading out[FD_RAILS_MAX]);
/* Writes this text in place of the file, soon. A failure is logged, and the next text tries again. */
void watch_keep(struct watch *w, const char *text, size_t len);

#endif
