/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the program: their numbers, beginnings and ends. */
#ifndef SIMFAB_PRELOAD_THREAD_H
#define SIMFAB_PRELOAD_THREAD_H

#include <stdbool.h>
#include <stdint.h>

uint32_t sfp_thread_number(void);
void sfp_thread_acts(bool acts); /* this thread is an actor from now on, or no longer is one */
void sfp_thread_ends(void);
void sfp_thread_after_fork(void);

#endif
