/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the ports of other hosts are at present: their LIDs, asked of the subnet administration (IBTA volume 1, chapter
 * 15). A subnet manager that starts anew may give every port another LID; then nobody can be asked who has moved, too.
 *
 * Many clients may ask for the same port at once, and again while it has not come back: it is asked for once, and an
 * answer is good for a second. All of it belongs to the main thread; nothing here waits.
 */
#ifndef FABRICD_SA_H
#define FABRICD_SA_H

#include <stdint.h>

#include <systemd/sd-event.h>

/* Who has asked: the client's number, and the number of its message. */
struct sa_asker {
    uint64_t client;
    uint32_t seq;
};

/* status 0: the port has the 2^lmc LIDs from lid on. -ENOENT: its subnet knows no such port; -ETIMEDOUT: the subnet
 * administration does not answer; -EAGAIN: it is busy; other negative errno. */
struct sa_place {
    uint64_t guid;
    int status;
    uint16_t lid;
    uint8_t lmc;
};

typedef void (*sa_answer)(void *arg, struct sa_asker who, const struct sa_place *place);

struct sa;

/* NULL: no memory. */
struct sa *sa_start(sd_event *event, sa_answer answer, void *arg);
void sa_stop(struct sa *s);

/*
 * Where is the port with this GUID, in the subnet of this host's port? 0: the answer follows, or has been given
 * already. Negative errno: there will be none; -EBUSY: too much is asked at a time.
 */
int sa_ask(struct sa *s, const char *device, uint8_t port, uint64_t guid, struct sa_asker who);

#endif
