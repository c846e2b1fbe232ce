/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of the machine, as /proc shows them. The engine asks again and again whether threads run or have run, so
 * the files stay open: opening a file costs five to ten times a read. A watch belongs to its watches, and is valid
 * until watches_turn, or until watch_get finds the process dead. The watch lists exactly the threads at the time of
 * watch_get, except threads reported dead by watch_ran or watch_state.
 */
#ifndef SIMFAB_WATCH_H
#define SIMFAB_WATCH_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct watches;

struct watch_thread {
    uint32_t tid;
    int sched_fd, stat_fd, children_fd; /* -1: not open */
    uint64_t digest;                    /* changes whenever the thread runs; 0: not yet read */
    uint64_t ran_ns, queued_ns;         /* processor time, and time waiting for a processor */
    uint64_t busy_waits;                /* the caller's: watch_waits when the thread was found busy for long */
};

struct watch {
    pid_t pid, parent; /* parent 0: to be asked */
    DIR *tasks;
    struct watch_thread *threads;
    uint32_t num_threads, cap;
    bool stale; /* a thread has ended: to be listed again */
    bool zombie;
    uint64_t used;         /* turn of the last request */
    uint64_t visited;      /* the caller's */
    uint64_t children_key; /* key of the state in which `newcomers` was made */
    pid_t *newcomers;      /* the caller's: children that have not attached yet */
    uint32_t num_newcomers, newcomers_cap;
    bool grown_up;    /* has used too much processor time for a newcomer */
    uint64_t checked; /* run time of the threads at that check */
    struct watch *next;
};

struct watches *watches_new(void);
void watches_free(struct watches *ws);
/*
 * Starts a new turn. Results of watch_get stay valid for a turn, except for threads found dead. Watches without a
 * request for many turns are closed.
 */
void watches_turn(struct watches *ws);
/* Descriptors held, and their limit. */
uint32_t watches_kept(const struct watches *ws);
void watches_limit(struct watches *ws, uint32_t descriptors);

/* With its threads as they are, or were earlier in this turn. NULL: there is no such process. */
struct watch *watch_get(struct watches *ws, pid_t pid);
/* Digest and processor time of a thread are read; false if it has ended. */
bool watch_ran(struct watches *ws, struct watch *w, struct watch_thread *t);
/* The thread's state letter, as in proc(5); 0 if the thread has ended. */
char watch_state(struct watches *ws, struct watch *w, struct watch_thread *t);
/* Number of waits of the thread since its start, plus 1; 0 if unknown. */
uint64_t watch_waits(const struct watch *w, const struct watch_thread *t);
/* The parent; 0: none, or dead. Asked once, then assumed for as long as the parent lives. */
pid_t watch_parent(struct watches *ws, struct watch *w);
/* The kernel's list of a thread's children: numbers separated by spaces. The next call reuses the buffer. */
const char *watch_children(struct watches *ws, struct watch *w, struct watch_thread *t);
/* Processor time of a whole process, including ended threads, in seconds; negative if the process is dead. */
double watch_cpu_s(pid_t pid);

#endif
