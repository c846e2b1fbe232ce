/* SPDX-License-Identifier: BSD-3-Clause */
/* Output lanes of a link: queues for each input port, in turn. */
#ifndef SIMFAB_LANE_H
#define SIMFAB_LANE_H

#include "simfab/engine/wire/link.h"

struct packet;
struct port;

/* Put a packet at the end of its input's queue for the lane. */
void lane_push(struct vl_queue *q, struct packet *p);
/* The lane no longer waits for credits: it has credits, or no packets. */
void lane_end_wait(struct vl_queue *q);

/* Counts a packet not sent by port out. */
void link_count_discard(struct port *out, enum discard why);

/* Takes the next packet out of a non-empty lane, or the first packet of a certain input. */
struct packet *lane_pop(struct vl_queue *q);
struct packet *lane_pop_from(struct vl_queue *q, struct in_queue *in);

/* Count, release and free a packet that was in a queue of l. */
void link_drop(struct link_dir *l, struct packet *p, enum discard why);

#endif
