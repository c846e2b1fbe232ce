/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simfab command. One function per subcommand; each gets the arguments after its own name and returns the exit
 * status. Exit 2: wrong usage or a wrong file, nothing was started; 1: something failed; 127: CMD was not found.
 */
#ifndef SIMFAB_CMD_H
#define SIMFAB_CMD_H

enum { EXIT_USAGE = 2, EXIT_NOT_FOUND = 127 };

int cmd_run(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_opensm(int argc, char **argv);
int cmd_fault(int argc, char **argv);
int cmd_flow(int argc, char **argv);
int cmd_topology(int argc, char **argv);
int cmd_trace(int argc, char **argv);

/* The text of `simfab SUBCOMMAND --help`, beside the subcommand. */
extern const char usage_run[], usage_exec[], usage_status[], usage_opensm[], usage_fault[], usage_flow[], usage_trace[],
    usage_topology[];

#endif
