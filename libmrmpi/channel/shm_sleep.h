/* SPDX-License-Identifier: BSD-3-Clause */
/* For shm.c, which has the rings: set-up of the functions in shm.h. */
#ifndef MRMPI_SHM_SLEEP_H
#define MRMPI_SHM_SLEEP_H

#include <stdbool.h>

struct mr_segment;

/*
 * s and local_of ([world ranks], local rank) stay the caller's, until mr_shm_sleep_end. busy: something has arrived, or
 * packets of ours wait for space.
 */
void mr_shm_sleep_begin(struct mr_segment *s, const int *local_of, int me, bool (*busy)(void));
void mr_shm_sleep_end(void);

#endif
