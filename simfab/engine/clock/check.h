/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds running actors that do not call. */
#ifndef SIMFAB_CLOCK_CHECK_H
#define SIMFAB_CLOCK_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct sim;

/* How long to wait for running actors before asking the kernel about them, for the first time or again. */
int64_t threads_patience_us(struct sim *s, bool again);
/* Exclude the running actors that will not call soon. */
void threads_check(struct sim *s);

#endif
