/* SPDX-License-Identifier: BSD-3-Clause */
/* When a link looks at its lanes again: at most one look is due for a link. */
#ifndef SIMFAB_LOOK_H
#define SIMFAB_LOOK_H

#include <stdint.h>

struct link_dir;

/* Something has changed that may let the link send, or will have at t. */
void link_look_at(struct link_dir *l, uint64_t t_ps);

#endif
