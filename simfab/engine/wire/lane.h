/* SPDX-License-Identifier: BSD-3-Clause */
/* Output lanes of a link: queues for each input port, which take turns. */
#ifndef SIMFAB_LANE_H
#define SIMFAB_LANE_H

#include "simfab/engine/wire/link.h"

struct packet;
struct port;

/* Put a packet at the end of its input's queue for the lane. */
void lane_push(struct vl_queue *q, struct packet *p);
/* The lane no longer waits for credits: it has them, or nothing that would need them. */
void lane_end_wait(struct vl_queue *q);

/* Count a packet that port out does not send. */
void link_count_discard(struct port *out, enum discard why);

/* Take the packet whose turn it is out of a lane that has some, or the first one of a certain input. */
struct packet *lane_pop(struct vl_queue *q);
struct packet *lane_pop_from(struct vl_queue *q, struct in_queue *in);

/* Count, release and free a packet that was in a queue of l. */
void link_drop(struct link_dir *l, struct packet *p, enum discard why);

#endif
