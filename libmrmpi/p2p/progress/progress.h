/* SPDX-License-Identifier: BSD-3-Clause */
/* What p2p/ itself calls of progress (p2p.h). */
#ifndef MRMPI_PROGRESS_H
#define MRMPI_PROGRESS_H

#include <stdbool.h>

/* As mr_progress_until, until *complete, which other threads may set. looked: just now, for nothing. */
void mr_progress_wait(const volatile bool *complete, bool looked);
void mr_progress_init(void); /* nothing is registered */

#endif
