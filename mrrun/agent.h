/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrrun --agent: the process that mrrun has on another host of its job. It starts the agents of further hosts and the
 * ranks of its own, passes their bytes on, and tells how they end. Its connection is standard input and output; with
 * the connection, or when its parent has been silent for long, it ends itself, its ranks and what these have started.
 * Ranks reach the PMIx server of mrrun through a port of the loopback interface here.
 */
#ifndef MRRUN_AGENT_H
#define MRRUN_AGENT_H

/* lib_dir: where mrmpi's library is on this host, or "". The exit status. */
int agent_main(const char *lib_dir);

#endif
