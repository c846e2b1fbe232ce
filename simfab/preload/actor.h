/* SPDX-License-Identifier: BSD-3-Clause */
/* Actors: entering, waiting for the engine, announcing calls that block, and guests. */
#ifndef SIMFAB_PRELOAD_ACTOR_H
#define SIMFAB_PRELOAD_ACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simfab/proto.h"

/*
 * Every interposed call that may block in the kernel puts these around the real call: the engine then lets time move
 * without the actor. Cheap and harmless in other threads; errno is kept.
 */
void sfp_block_begin(void);
void sfp_block_end(void);
/*
 * For an actor's wait that ends at a virtual time: the actor waits in the kernel for a few milliseconds at once, and
 * asks after each slice whether to go on.
 */
void sfp_block_begin_until(uint64_t until_ps);
bool sfp_wait_goes_on(uint64_t until_ps);
#define SFP_SLICE_MS_MAX 5
/*
 * The same for a call on fd that waits for events (POLLIN, ...). Does nothing, and returns false, unless the thread is
 * an actor and fd is in blocking mode and not ready. After true, call sfp_block_end.
 */
bool sfp_block_begin_on(int fd, short events);
/* Do actors of this host run one after the other? */
bool sfp_in_turns(void);
/* And has this process had several of them? */
bool sfp_has_siblings(void);
/*
 * Call before waiting for another thread: idle actors of this process, which may hold the lock in question, return from
 * their polls (tid not 0: only that thread). False: actors have returned often enough at this time. *nudged (may be
 * NULL): actors will return when this thread waits, because the actors of this host take turns.
 */
bool sfp_wake_siblings(uint32_t tid, bool *nudged);

/* For a forked child, which has no actors. */
void sfp_actor_after_fork(void);
/* For thread.c: sfp_thread_ends will be called at the end of this thread. */
void sfp_actor_watch_end(void);
/*
 * A thread created by an actor takes turns from its beginning, as a guest: the order of the threads' first locks must
 * not depend on the machine. A guest that waits for something outside before calling verbs becomes a helper, and is no
 * actor.
 */
void sfp_guest_begins(void);
void sfp_guest_leaves(void);
void sfp_guest_waits(void); /* at a futex: after many such waits without a call of verbs the guest becomes a helper */
void sfp_guest_computes(void);             /* the guest leaves, and still works for actors */
void sfp_guest_stays(void);                /* the guest takes part like threads that call verbs */
struct sf_actor *sfp_actor_awaiting(void); /* this thread, if it may wait as await.c does */
void sfp_actor_copied(size_t n);           /* this thread has copied n bytes, which takes time */
void sfp_actor_tell(void);                 /* the engine hears of nudges by this thread, at once or when it stops */

/*
 * Enter simfab as an actor: counts the call, catches up with the engine's time and charges the processor time used
 * since the last call where the model asks for it. NULL (errno set) without an engine or when no slot is free.
 */
struct sf_actor *sfp_enter(void);
/* The same for a thread that is an actor; NULL for other threads; never attaches. */
struct sf_actor *sfp_enter_if_actor(void);

/* Leave RUNNING for state and wait until the engine says RUNNING. Returns the wake reason, or -1 if the engine died. */
int sfp_wait(struct sf_actor *a, enum sf_actor_state state, uint64_t wake_ps);
#define SFP_AFTER_OTHERS 1 /* READY's wake_ps: waiting actors come first */
#define SFP_WAKE_LOOK    3 /* at memory that another actor of the host may have written; */
#define SFP_WAKE_WORLD   5 /* at the world */
#define SFP_WAKE_SIGNAL  6 /* a signal was handled in this thread */

void sfp_actor_lends_cpu(void); /* sfp_cpu_lend for this thread, if an actor */

/* The actor's clock plus cost_ps, as shown to the program; never earlier than a time shown before. */
uint64_t sfp_show(struct sf_actor *a, uint64_t cost_ps);

#endif
