/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrrun --agent: the process of mrrun on another host of its job. An agent starts the agents of further hosts and its
 * own ranks, passes their bytes on, and reports their ends. Its connection is standard input and output. With the end
 * of the connection, or long silence of its parent, the agent ends itself, its ranks and their descendants. Ranks reach
 * the PMIx server of mrrun through a port of the loopback interface here.
 */
#ifndef MRRUN_AGENT_H
#define MRRUN_AGENT_H

/* lib_dir: where mrmpi's library is on this host, or "". The exit status. */
int agent_main(const char *lib_dir);

#endif
