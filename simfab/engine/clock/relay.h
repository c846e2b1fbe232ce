/* SPDX-License-Identifier: BSD-3-Clause */
/* The relay of a host: seats, and the order in which actors pass turns on. */
#ifndef SIMFAB_CLOCK_RELAY_H
#define SIMFAB_CLOCK_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/clock/internal.h"
#include "simfab/proto.h"

struct relay {
    struct sf_relay *page;
    int fd;
    bool taken[SF_SEATS];
    uint32_t number; /* of the last order */
    struct actor *member[SF_RELAY_MOST];
};

/* A seat for a process, and the page's descriptor; 0: there is none. */
uint32_t relay_sit(struct host_time *h, int *fd);
void relay_leave(struct host_time *h, uint32_t seat);
void relay_offer(struct host_time *h, struct actor *first); /* `first` is about to start; the waiting actors follow */
void relay_call(const struct actor *a);                     /* wakes the actor if the actor waits at its seat */
void relay_free(struct host_time *h);

#endif
