/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair over which a peer's adapter is asked, however long its process computes. Its owner embeds it. */
#ifndef MRMPI_PEER_PROBE_H
#define MRMPI_PEER_PROBE_H

#include "libmrmpi/verbs/verbs.h"

struct mr_probe {
    struct mr_qp qp; /* events: mr_probe_events; owner: this */
    struct mr_tx tx;
    uint32_t psn;     /* the peer expects this one, or one a little before or behind */
    uint32_t then;    /* it does after the run that is under way */
    uint32_t receive; /* what the peer would send next */
    unsigned run;     /* writes of the next question, half of them before psn; 0: one */
    bool answers;     /* and is that taken, once it has been brought up again? */
    bool asking;
    bool repeats; /* the question, once it has drained */
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
/* Once it has drained: bring it up again, against where the peer's rail is now (NULL: where it was). */
void mr_probe_again(struct mr_probe *l, const struct mr_rail_addr *to);

#endif
