/* SPDX-License-Identifier: BSD-3-Clause */
/* Interface of progress for p2p/ itself, beyond p2p.h. */
#ifndef MRMPI_PROGRESS_H
#define MRMPI_PROGRESS_H

#include <stdbool.h>

struct mr_request;

/* As mr_progress_until, until complete, perhaps by another thread. polled: the caller has just polled in vain. */
void mr_progress_wait(struct mr_request *req, bool polled);
extern struct mr_request *mr_progress_awaited; /* by mr_progress_wait; valid without threads only; NULL: none */
void mr_progress_init(void);                   /* nothing is registered */

#endif
