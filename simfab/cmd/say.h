/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages on stderr, and the clock of waits. */
#ifndef SIMFAB_CMD_SAY_H
#define SIMFAB_CMD_SAY_H

#include <stdint.h>
#include <sys/types.h>

/* "simfab: " and the message, on stderr. */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A file's last lines, from this offset on, on stderr. */
void show_tail(const char *path, off_t from);
/* "was killed by signal 9 (Killed)": a status as from waitpid. Returns buf. */
const char *how_it_ended(int status, char buf[64]);
int64_t now_ms(void); /* CLOCK_MONOTONIC */

#endif
