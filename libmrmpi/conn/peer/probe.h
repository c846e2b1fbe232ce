/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair to ask a peer's adapter, however long its process computes. Its owner embeds the struct. */
#ifndef MRMPI_PEER_PROBE_H
#define MRMPI_PEER_PROBE_H

#include "libmrmpi/verbs/verbs.h"

struct mr_probe {
    struct mr_qp qp; /* events: mr_probe_events; owner: this */
    struct mr_tx tx;
    uint32_t psn;     /* the peer expects this number, or one a little before or behind */
    uint32_t then;    /* the expected number after the present run */
    uint32_t receive; /* the peer's next number */
    unsigned run;     /* writes of the next question, half of them before psn; 0: one */
    bool answers;     /* once brought up again, the queue pair takes this in, and answers */
    bool asking;
    bool repeats; /* the question, after draining */
    uint64_t asked_ns;
    void (*answered)(struct mr_probe *l);
    void (*drained)(struct mr_probe *l);
};

extern const struct mr_qp_events mr_probe_events;

/*
 * Ask, once a second at most, if no question is under way; one without a time-out is asked again then.
 * answered() is called for a refusal, too.
 */
void mr_probe_post(struct mr_probe *l, uint64_t now_ns);
/* After draining: brings the queue pair up again, to the peer's present rail (NULL: unchanged). */
void mr_probe_again(struct mr_probe *l, const struct mr_rail_addr *to);

#endif
