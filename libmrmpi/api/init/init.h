/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's life: the rooms in order, up and down. Up: settings, the launcher's client, the world, the channels,
 * the launcher's fence, the peers of this node, collectives. Down the other way round; at the last fence a rank polls
 * while peers may still need it (mr_net_lingers). May be repeated. Called by api/ with the library's lock held.
 */
#ifndef MRMPI_INIT_H
#define MRMPI_INIT_H

enum mr_state { MR_STATE_BEFORE, MR_STATE_RUNNING, MR_STATE_FINALIZED };
extern _Atomic enum mr_state mr_state; /* data guarded by the state is written before it */
int mr_init(int thread_level);         /* 0 or negative errno, with a detail text */
void mr_finalize(void);

/*
 * A shell with a binary interface has been loaded: a process has one only, because functions of the same names take
 * other arguments there. A second one ends the process.
 */
void mr_shell_loaded(const char *library);

#endif
