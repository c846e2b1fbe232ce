/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: the only subsystem that calls ibv_*. Here: the devices and rails of this process, opened and closed together,
 * polled together, and their upcalls. Callers hold the library's lock.
 */
#ifndef MRMPI_VERBS_H
#define MRMPI_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/verbs/completion.h"
#include "libmrmpi/verbs/rail.h"

/* Receive buffers to be posted again. */
struct mr_rx_back {
    unsigned num; /* of several queues together */
    bool due;     /* one of their queues is in the list of queues due for a batch */
};

struct mr_verbs {
    unsigned num_devices, num_rails;
    struct mr_device device[MR_DEVICES_MAX];
    struct mr_rail rail[MR_RAILS_MAX];
    unsigned num_memories; /* registered at present */
    size_t packet_max;
    bool datagrams;         /* packets may come as such */
    struct mr_rail *polled; /* the next rail to poll; NULL: no device works */
    unsigned streak_left;   /* so many more times, if it is busy */
    bool alone;             /* when it was found to have something all others had nothing */
    struct mr_rail *beside; /* the last of the rails polled since it is alone; NULL: none yet */
    unsigned turns;         /* polls in a row with work at another rail: up to MR_POLL_TURNS */
    struct mr_later *later;
    struct mr_rx_back rx_back; /* of several rails' connections */
    struct mr_rx *rx_due;      /* receive queues that buffers are to be posted to, when there is time */
    bool moved;                /* data has, by RDMA, since the last of them were posted */
    bool answered;             /* something has been sent since the first of them came into this list */
    uint16_t moves;            /* how often a rail had another address or life; wraps */
    uint32_t lives;            /* of all rails, each in its bits; 0: no device was opened anew */
};
extern MR_OWN struct mr_verbs mr_verbs;
/* The same for callers outside the library: the number of open rails, and rail i. */
unsigned mr_verbs_num_rails(void);
struct mr_rail *mr_verbs_rail(unsigned i);

struct mr_verbs_handlers {
    /* A packet came in over a connection; data is valid during the call. */
    void (*packet)(struct mr_rail *rail, const void *data, size_t len);
    /* A datagram that is a packet (imm NULL), or a part of a packet. */
    void (*segment)(struct mr_rail *rail, const void *data, size_t len, const uint32_t *imm);
    /* The peer's write with this immediate value has landed. */
    void (*landed)(struct mr_rail *rail, uint32_t imm);
    /* A datagram for connecting. */
    void (*datagram)(struct mr_rail *rail, const void *data, size_t len);
    /* The port went up or down, or the device is gone (rail->down, rail->dev->fatal). */
    void (*rail_changed)(struct mr_rail *rail);
    /* The device was opened anew; its rails are still down. A negative errno: not usable yet. */
    int (*device_renewed)(struct mr_device *dev);
    /* The subnet manager has given the port another LID, or another number of them (rail->addr). */
    void (*rail_moved)(struct mr_rail *rail);
    /* The port's P_Keys have changed (rail->partition). moved: set of partitions with another index. */
    void (*rail_keys)(struct mr_rail *rail, uint32_t moved);
    /* NULL, or: the port's first partition, without a setting; 0: any. */
    uint16_t (*pkey)(const char *device, int port);
};

/* rejects: may be NULL; says that somebody (fabricd) does not want this port used. */
typedef bool mr_rail_reject(const char *device, int port, void *arg);

/*
 * Open every device and every active port that the settings name. packet_max: bytes of the longest packet; datagrams:
 * packets may come as datagrams. -ENODEV (logged) when there is no port.
 */
int mr_verbs_open(const struct mr_verbs_handlers *handlers, size_t packet_max, bool datagrams, mr_rail_reject *reject,
                  void *arg);
void mr_verbs_close(void);
/* Handles completions, on the first rail that has some. Returns their number; 0: idle. */
int mr_verbs_poll(void);
/* The same, with another look after each idle rail: a successful look ends it. */
int mr_verbs_poll_between(int (*look)(void));
/* The next poll begins at this rail, unless it is another's turn. */
static inline void mr_verbs_poll_first(struct mr_rail *rail)
{
    if (rail->next_polled)
        mr_verbs.polled = rail;
}
/* Read asynchronous events of all devices; costs system calls. */
void mr_verbs_check_events(void);

#endif
