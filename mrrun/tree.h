/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agents below this process: mrrun's, or those of an agent. Hosts are cut into TREE_WIDTH runs. The first host of
 * each run is started from here, by the launcher (LAUNCHER HOST MRRUN --agent), and starts the others of its run
 * likewise. The launcher's standard input and output are the connection. The secret goes over the connection, and must
 * be in the agent's first line: earlier lines of a login shell are ignored, and no other user sees the secret.
 *
 * Each side watches its neighbours: an agent is lost when its connection ends or when silent for TREE_SILENCE_MS. Time
 * in which this process itself did not run does not count.
 */
#ifndef MRRUN_TREE_H
#define MRRUN_TREE_H

#include <sys/resource.h>

#include "mrrun/link.h"

enum { TREE_WIDTH = 16, TREE_SILENCE_MS = 3500, TREE_START_MS = 60000, TREE_LOOK_MS = 250, TREE_TAIL = 1024 };

struct branch;

struct tree {
    int set;
    struct wire_start start; /* for all; each has its own hosts */
    struct branch *branch;
    int count;
    short route[WIRE_HOSTS_MAX]; /* of a host; -1: none */
    bool paused;
    struct rlimit files; /* of launchers: RLIMIT_NOFILE */
    uint64_t looked_ms;
    void *arg;
    bool (*frame)(void *arg, const struct wire_frame *f); /* from below; false: invalid */
    /* Once for each host. why: words, of the neighbour; NULL: of a host reached through the neighbour. */
    void (*lost)(void *arg, unsigned host, const char *why);
};

/* Words that have the launcher run a program on a host; tree_free_command(). NULL: no memory. */
char **tree_command(char *const *launcher, const char *host, char *const *program);
void tree_free_command(char **words);

/* Starts the launchers for these hosts. here: the first host is this machine, and needs none. 0 or -1: no memory. */
int tree_open(struct tree *t, int set, const struct wire_start *start, bool here);
/* To the host, or to all. False: there is no way to it. */
bool tree_send(struct tree *t, const struct wire_frame *f);
/* From time to time, at least every TREE_LOOK_MS. */
void tree_look(struct tree *t);
/* A child of this process has been reaped. True: it was a launcher. */
bool tree_reaped(struct tree *t, pid_t pid, int status);
/* No more connections: agents end. */
void tree_hang_up(struct tree *t);
/* Launchers still running; their processes go into out, with room for TREE_WIDTH. */
int tree_pids(const struct tree *t, pid_t *out);
int tree_launchers(const struct tree *t);
/* Of lost agents, which nothing else ends; or all. */
void tree_kill_launchers(struct tree *t, bool all);
void tree_close(struct tree *t);

#endif
