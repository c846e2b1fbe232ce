/* SPDX-License-Identifier: BSD-3-Clause */
/* Interface of progress for p2p/ itself, beyond p2p.h. */
#ifndef MRMPI_PROGRESS_H
#define MRMPI_PROGRESS_H

#include <stdbool.h>

/* As mr_progress_until, until *complete, set perhaps by another thread. polled: the caller has just polled in vain. */
void mr_progress_wait(const volatile bool *complete, bool polled);
void mr_progress_init(void); /* nothing is registered */

#endif
