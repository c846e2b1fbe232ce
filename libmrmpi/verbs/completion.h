/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions. A poster of work embeds a struct mr_wr; mr_verbs_poll() calls its done(). After an error the flushed
 * work of the queue pair comes back the same way, so every struct mr_wr that was posted signaled is given back exactly
 * once.
 */
#ifndef MRMPI_VERBS_COMPLETION_H
#define MRMPI_VERBS_COMPLETION_H

#include <stdbool.h>
#include <stdint.h>

struct ibv_wc;

struct mr_wc {
    int error;                /* 0 or negative errno */
    bool flushed;             /* the error follows from an earlier error */
    const char *status;       /* text of an error */
    const struct ibv_wc *raw; /* for the files of this room */
};

struct mr_wr {
    void (*done)(struct mr_wr *wr, const struct mr_wc *wc);
};

/* Something with an end that mr_verbs_poll() looks for, until done returns that the end has come. */
struct mr_later {
    bool (*done)(struct mr_later *later);
    struct mr_later *next;
};
void mr_verbs_later(struct mr_later *later);
void mr_verbs_forget(struct mr_later *later);

#endif
