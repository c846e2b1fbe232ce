/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces of the links. */
#ifndef SIMFAB_CMD_TRACE_H
#define SIMFAB_CMD_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#define TRACE_LIMIT_DEFAULT ((uint64_t)1 << 30)

int trace_open(const char *path); /* a new file for a trace; -1: complained */
/* The order to begin the trace; false: complained. */
bool trace_begin(const char *dir, const char *path, int fd, uint64_t limit, const char *links);

#endif
