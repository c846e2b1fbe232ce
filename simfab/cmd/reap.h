/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a run: its processes and its directory. */
#ifndef SIMFAB_CMD_REAP_H
#define SIMFAB_CMD_REAP_H

#include <sys/types.h>

/*
 * Kills every descendant (this process is a subreaper: orphans become its children) except those in the list (0: no
 * process); sig first, SIGKILL after patience_ms.
 */
void kill_children(int sig, int patience_ms, const pid_t *spare, unsigned num_spare);
void remove_tree(const char *dir);

#endif
