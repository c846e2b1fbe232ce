/* SPDX-License-Identifier: BSD-3-Clause */
/* Mutexes and spin locks. */
#ifndef SIMFAB_PRELOAD_LOCK_H
#define SIMFAB_PRELOAD_LOCK_H

#include <pthread.h>
#include <stdbool.h>

bool sfp_lock_is_shared(const pthread_mutex_t *mutex); /* with other processes */

#endif
