/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of the machine as /proc shows them. The engine asks again and again whether their threads run or have run,
 * so the files are kept open: to open one costs five to ten times what reading it does. A watch is owned by its
 * watches, and valid until watches_turn, or until watch_get finds that the process is gone. Its threads are exactly
 * those that the process had when watch_get looked, unless watch_ran or watch_state says of one of them that it has
 * ended.
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
    uint64_t digest;                    /* changes whenever it runs; 0: not yet read */
    uint64_t ran_ns, queued_ns;         /* its processor time, and how long it has waited for a processor */
    uint64_t busy_waits;                /* the caller's: what watch_waits said when it had been busy for long */
};

struct watch {
    pid_t pid, parent; /* parent 0: to be asked */
    DIR *tasks;
    struct watch_thread *threads;
    uint32_t num_threads, cap;
    bool stale; /* a thread has ended: to be listed again */
    bool zombie;
    uint64_t used;         /* the turn when somebody last asked for it */
    uint64_t visited;      /* the caller's */
    uint64_t children_key; /* of what `newcomers` was made from */
    pid_t *newcomers;      /* the caller's: children that are yet to attach */
    uint32_t num_newcomers, newcomers_cap;
    bool grown_up;    /* it has used so much processor time that it is no newcomer any more; */
    uint64_t checked; /* what its threads had run when that was last asked */
    struct watch *next;
};

struct watches *watches_new(void);
void watches_free(struct watches *ws);
/* From now on processes are looked at anew: what watch_get has found is taken for right until then, but for threads
   that are seen to have ended. Those that nobody has asked for during many turns are closed. */
void watches_turn(struct watches *ws);
/* Descriptors held, and the most that may be. */
uint32_t watches_kept(const struct watches *ws);
void watches_limit(struct watches *ws, uint32_t descriptors);

/* With its threads as they are, or were earlier in this turn. NULL: there is no such process. */
struct watch *watch_get(struct watches *ws, pid_t pid);
/* Digest and processor time of a thread are read; false if it has ended. */
bool watch_ran(struct watches *ws, struct watch *w, struct watch_thread *t);
/* The letter of its state, as in proc(5); 0 if it has ended. */
char watch_state(struct watches *ws, struct watch *w, struct watch_thread *t);
/* How often it has waited for something since it began, and one more; 0 if that is not known. */
uint64_t watch_waits(const struct watch *w, const struct watch_thread *t);
/* 0: it has none, or is gone. Asked once, and then as long as the parent lives taken for granted. */
pid_t watch_parent(struct watches *ws, struct watch *w);
/* What the kernel says of the children of a thread: numbers with spaces between them. The buffer is reused by the next
 * call. */
const char *watch_children(struct watches *ws, struct watch *w, struct watch_thread *t);
/* Processor time of a whole process, threads that have ended included, in seconds; negative if it is gone. */
double watch_cpu_s(pid_t pid);

#endif
