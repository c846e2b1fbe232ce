/* SPDX-License-Identifier: BSD-3-Clause */
/* This thread's time. */
#ifndef SIMFAB_PRELOAD_CLOCK_H
#define SIMFAB_PRELOAD_CLOCK_H

#include <stdint.h>

/* Another process is about to learn something through this descriptor. */
void sfp_clock_settle(int fd);
/* This thread's time in ps, without the cost of a reading. */
uint64_t sfp_clock_peek(void);
/* A sleep or a time-out of this thread ended at ps: its clock is not earlier than that. */
void sfp_clock_advance_to(uint64_t ps);

#endif
