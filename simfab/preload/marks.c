/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of the engine's event pipes. */
#include "simfab/preload/marks.h"

#include "simfab/preload/preload.h"

#define MARKS 65536

static uint8_t marks[MARKS / 8]; /* bit per descriptor: a pipe of the engine, or an epoll set that contains a pipe */

void sfp_mark_fd(int fd, bool on)
{
    if (fd < 0 || fd >= MARKS)
        return;
    if (on)
        __atomic_or_fetch(&marks[fd / 8], (uint8_t)(1u << fd % 8), __ATOMIC_RELAXED);
    else
        __atomic_and_fetch(&marks[fd / 8], (uint8_t) ~(1u << fd % 8), __ATOMIC_RELAXED);
}

bool sfp_fd_is_marked(int fd)
{
    return fd >= 0 && fd < MARKS && __atomic_load_n(&marks[fd / 8], __ATOMIC_RELAXED) >> fd % 8 & 1;
}
