/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pipe of events to a program: whole records of one size, in order. The program has the read end; the engine never
 * waits for the program. The engine can also take back unread records, as an HCA's driver does when an object is
 * destroyed.
 */
#ifndef SIMFAB_ENGINE_EVENT_PIPE_H
#define SIMFAB_ENGINE_EVENT_PIPE_H

#include <stddef.h>
#include <stdint.h>

struct event_pipe {
    int in, back; /* for writing; for taking back */
};

/* *read_end is the program's, to be handed over. 0 or errno. */
int event_pipe_make(struct event_pipe *p, int *read_end);
void event_pipe_close(struct event_pipe *p);
void event_pipe_put(const struct event_pipe *p, const void *record, size_t bytes);
/* Takes out the records with this cookie, a uint64_t at the offset. */
void event_pipe_forget(const struct event_pipe *p, uint64_t cookie, size_t bytes, size_t offset);

#endif
