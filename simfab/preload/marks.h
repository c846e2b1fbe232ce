/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's pipes among descriptors. */
#ifndef SIMFAB_PRELOAD_MARKS_H
#define SIMFAB_PRELOAD_MARKS_H

#include <stdbool.h>

/* Marks fd as one of the engine's event pipes, or an epoll set that contains a pipe, or removes the mark. */
void sfp_mark_fd(int fd, bool on);
bool sfp_fd_is_marked(int fd);

#endif
