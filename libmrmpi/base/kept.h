/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet in a send window, until its confirmation. The caller embeds struct mr_kept in its record of a packet and
 * owns the record before mr_window_push and after it was given back (a chain by next, in the order of confirmation).
 * The window never reads the bytes. An adapter may still read the bytes of a packet that was given back (an
 * acknowledgement came before its completion): the poster knows, not the window.
 */
#ifndef MRMPI_KEPT_H
#define MRMPI_KEPT_H

#include <stdbool.h>
#include <stdint.h>

enum mr_kept_state {
    MR_KEPT_WAITING, /* not sent yet, or to be sent again */
    MR_KEPT_SENT,
    MR_KEPT_DONE, /* confirmed, and given back */
};

struct mr_kept {
    uint32_t seq;
    uint32_t len; /* bytes that it occupies, for the memory count; set by the caller before the push */
    uint8_t link; /* its last link */
    uint8_t state;
    uint8_t tries;        /* up to UINT8_MAX */
    bool blind;           /* sent again while nothing was heard of the peer */
    uint32_t turn;        /* its number among the packets posted on that link */
    uint64_t sent_ns;     /* 0: no time was given yet */
    struct mr_kept *next; /* of the packets on one link, in the order of sending; of packets to be sent again; of
                             packets given back */
    struct mr_kept *prev; /* not for packets given back */
};

#endif
