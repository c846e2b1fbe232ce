/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions. Whoever posts work embeds a struct mr_wr; mr_verbs_poll() calls its done(). On an error the work of the
 * queue pair that is flushed comes back the same way, so that every struct mr_wr that was posted signaled is given back
 * exactly once.
 */
#ifndef MRMPI_VERBS_COMPLETION_H
#define MRMPI_VERBS_COMPLETION_H

#include <stdbool.h>
#include <stdint.h>

struct ibv_wc;

struct mr_wc {
    int error;                /* 0 or negative errno */
    bool flushed;             /* the error is an earlier one's consequence */
    const char *status;       /* text of an error */
    const struct ibv_wc *raw; /* for the files of this room */
};

struct mr_wr {
    void (*done)(struct mr_wr *wr, const struct mr_wc *wc);
};

/* Something that has an end which is looked for from mr_verbs_poll(), until done says that it has come. */
struct mr_later {
    bool (*done)(struct mr_later *later);
    struct mr_later *next;
};
void mr_verbs_later(struct mr_later *later);
void mr_verbs_forget(struct mr_later *later);

#endif
