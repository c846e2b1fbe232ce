/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows: traffic without a process, from the model's list or live (`simfab flow`). To the adapter a flow is another
 * queue pair: it waits for its turn in its lane and reads memory over the bus, and its packets obey arbitration,
 * credits and forwarding tables like any other. The destination's adapter takes the packets in over its bus. Nothing is
 * acknowledged or repeated.
 *
 * A flow does not move time: its events happen while a program waits for something else, or for `simfab flow run`.
 */
#ifndef SIMFAB_FLOW_H
#define SIMFAB_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/text.h"
#include "simfab/engine/base/words.h"
#include "simfab/engine/fabric/fabric.h"

struct packet;
struct port;

enum flow_verb { FLOW_ADD, FLOW_DEL, FLOW_LIST, FLOW_RUN, FLOW_REACHED };

#define FLOW_SIZE_MAX (1ull << 31) /* bytes of a message */

struct flow_cmd {
    enum flow_verb verb;
    char from[WORD_MAX], to[WORD_MAX]; /* nodes */
    uint32_t from_port, to_port;       /* 0: the first with a cable */
    uint8_t sl;
    uint32_t mtu;             /* 0: the common MTU of both ends */
    uint32_t path;            /* added to the destination's base LID */
    uint64_t size;            /* bytes of a message */
    double rate_mbps;         /* 10^6 bytes per second; 0: as much as goes */
    bool relative;            /* when_ps counts from now */
    uint64_t when_ps, for_ps; /* for: 0: without end */
    uint64_t id;              /* DEL; 0: all */
    uint64_t time_ps;         /* RUN: how long; REACHED: has this time come? */
};

/* flow_parse.c: pure. False: not a valid command; t has the error. */
bool flow_parse(const char *line, struct flow_cmd *cmd, struct text *t);
/* Time from the first message to message number n, for a flow of this size and rate. */
uint64_t flow_due_ps(uint64_t n, uint64_t size, double rate_mbps);

struct flows;

/* The model's list. -1 with err filled when an item makes no sense in this fabric. */
int flows_init(struct sim *s, struct parse_error *err);
void flows_fini(struct sim *s);
/* At the end of the fabric: notices of flows whose start was not reached. */
void flows_tell_missed(const struct sim *s);

/* Does the command in the line. The answer is in t; false: refused, with the reason in t. */
bool flow_command(struct sim *s, const char *line, struct text *t);

/* A flow's packet has crossed the bus of its destination. */
void flow_landed(struct sim *s, const struct packet *p);
/* A port's state, LID or tables changed: flows from or to it may go on. */
void flows_port_changed(struct sim *s, const struct port *p);

#endif
