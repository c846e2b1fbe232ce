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

enum mr_wc_kind { MR_WC_SENT, MR_WC_RECEIVED, MR_WC_LANDED /* write with immediate */ };

struct mr_wc {
    enum mr_wc_kind kind; /* only if error is 0 */
    int error;            /* 0 or negative errno */
    bool flushed;         /* the error is an earlier one's consequence */
    bool has_imm;
    uint32_t len;       /* received bytes (UD: with the 40 bytes of GRH) */
    uint32_t imm;       /* host order */
    const char *status; /* text of an error */
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
