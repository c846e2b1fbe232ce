/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions to the subnet administration (IBTA volume 1, chapter 15): the present places of other hosts' ports, and all
 * matching records of a kind. A newly started subnet manager may give every port another LID; ports can then no longer
 * ask each other.
 *
 * Many clients may ask for the same port at once, and again until it is back: the port is asked for once, and an answer
 * is good for a second. The main thread owns everything; nothing here waits.
 */
#ifndef FABRICD_SA_H
#define FABRICD_SA_H

#include <stdint.h>

#include <systemd/sd-event.h>

/* The source of a question: the client's number, and the number of its message. */
struct sa_asker {
    uint64_t client;
    uint32_t seq;
};

/*
 * status 0: the port has the 2^lmc LIDs from lid on. -ENOENT: its subnet knows no such port; -ETIMEDOUT: the subnet
 * administration does not answer; -EAGAIN: the administration is busy; other negative errno.
 */
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

/* The wanted records: those with data where the bits of mask are set. */
struct sa_match {
    uint16_t attribute;
    uint64_t mask;
    uint8_t data[64]; /* the first bytes of a record */
};

/* Attributes (15.2.5). */
#define SA_NODE_RECORD  0x11
#define SA_PORT_RECORD  0x12
#define SA_TABLE_RECORD 0x15
#define SA_SM_RECORD    0x18
#define SA_LINK_RECORD  0x20
/* The first LID and the LMC in a port's record: LID, port, options, then PortInfo. */
#define SA_PORT_LID_AT 20
#define SA_PORT_LMC_AT 38

/* num records of size bytes each, the caller's until the function returns. status: 0 or a negative errno. */
typedef void (*sa_records)(void *arg, int status, const uint8_t *record, size_t num, size_t size);

/*
 * Asks the administration of this port's subnet for all matching records. 0: done is called later, once, but not after
 * sa_stop. Negative errno: done is not called; -EBUSY: too many questions at a time.
 */
int sa_list(struct sa *s, const char *device, uint8_t port, const struct sa_match *match, sa_records done, void *arg);

#endif
