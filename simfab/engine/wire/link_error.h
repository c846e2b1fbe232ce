/* SPDX-License-Identifier: BSD-3-Clause */
/* Bad packets, overruns and lost flow control, as ports count them. */
#ifndef SIMFAB_LINK_ERROR_H
#define SIMFAB_LINK_ERROR_H

#include <stdbool.h>

struct link_dir;

/* A packet has come to l->to with a wrong checksum; one finds no room there. */
void link_bad_packet(struct link_dir *l);
void link_no_room(struct link_dir *l);
/* Flow control packets for the sender of l do not come through any more, or again. */
void link_flow_control(struct link_dir *l, bool off);

#endif
