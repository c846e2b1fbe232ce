/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simfab command. One function per subcommand; each gets the arguments after its own name and returns the exit
 * status. Exit 2: wrong usage or a wrong file, nothing was started; 1: something failed; 127: CMD was not found.
 */
#ifndef SIMFAB_CMD_H
#define SIMFAB_CMD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "simfab/proto.h"

enum { EXIT_USAGE = 2, EXIT_NOT_FOUND = 127 };

int cmd_run(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_opensm(int argc, char **argv);
int cmd_fault(int argc, char **argv);
int cmd_flow(int argc, char **argv);
int cmd_topology(int argc, char **argv);
int cmd_trace(int argc, char **argv);

/* The text of `simfab SUBCOMMAND --help`: in main.c, or beside the subcommand. */
extern const char usage_run[], usage_exec[], usage_status[], usage_opensm[], usage_topology[], usage_fault[],
    usage_flow[];
extern const char usage_trace[];

/* main.c */
/* "simfab: " and the message, on stderr. */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* paths.c: where things are. Results are in static memory of the callers' buffers; false: not found (and complained) */
bool find_own_dir(char dir[PATH_MAX]); /* the directory of this program */
bool find_engine(char path[PATH_MAX]);
bool find_preload(char path[PATH_MAX]);
bool find_opensm(char path[PATH_MAX]);
/* kind is "topologies" or "models", suffix ".net" or ".yaml"; name a path or the bare name of an installed file. */
bool find_data(const char *kind, const char *suffix, const char *name, char path[PATH_MAX]);
/* $SIMFAB_DIR, or NULL and a complaint that tells how to get inside a fabric. */
const char *fabric_dir(void);

/* query.c: ask the engine of the fabric at dir. The text belongs to the caller; NULL and errno on failure. */
char *query_text(const char *dir, const char *host, enum sf_op op, const char *body);
/* The same, passing a descriptor. */
char *query_with_fd(const char *dir, const char *host, enum sf_op op, const char *body, int pass);

#define TRACE_LIMIT_DEFAULT ((uint64_t)1 << 30)

/* trace.c: a new file for a trace (-1: complained), and the order to begin it */
int trace_open(const char *path);
bool trace_begin(const char *dir, const char *path, int fd, uint64_t limit, const char *links);

/* fault.c: prints the engine's answer to a command on stdout, errors on stderr. Returns the exit status. */
int ask_engine(enum sf_op op, int argc, char **argv);

/* control.c: VERB [standby] [N] about opensm, for the supervisor. help: printed for wrong words. */
int control_command(const char *verb, int argc, char **argv, const char *help);

/* environ.c: false, with a complaint: the environment has unknown settings for libsimfab.so. */
bool check_settings(void);
/* environ.c: turn this process's environment into that of a simulated host */
bool enter_host(const char *dir, const char *host, bool real_clock);
/* True if host exists; else complains, naming the hosts there are. */
bool check_host(const char *dir, const char *host);

#endif
