/* SPDX-License-Identifier: BSD-3-Clause */
/* Forwarding in a switch. */
#ifndef SIMFAB_SWITCH_H
#define SIMFAB_SWITCH_H

#include <stdint.h>

struct link_dir;
struct packet;
struct port;

/* A packet has come by l and was looked at. */
void switch_arrive(struct link_dir *l, struct packet *p);
/* The packet at the head of a receive buffer of a switch has left it. */
void switch_head_left(struct link_dir *l, unsigned vl);

/* On to an output port of the same switch, or away if its service level has no lane there. */
void switch_output(struct port *in, uint8_t out_num, struct packet *p);

#endif
