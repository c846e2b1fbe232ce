/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's pipes of events. */
#ifndef SIMFAB_PRELOAD_VERBS_EVENTS_H
#define SIMFAB_PRELOAD_VERBS_EVENTS_H

#include <stdbool.h>

#include "simfab/preload/verbs.h"

uint32_t sfp_channel_handle(const struct ibv_comp_channel *chan);
/* Read one record of bytes from a pipe of the engine; 0, or -1 with errno (EAGAIN when the descriptor does not block).
 */
int sfp_read_record(int fd, void *record, size_t bytes);

/* Does a system call that a signal has interrupted go on? */
bool sfp_calls_go_on(void);

#endif
