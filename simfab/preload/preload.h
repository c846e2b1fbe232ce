/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations shared by the files of libsimfab.so. The library is preloaded into unmodified programs, and keeps out of
 * their way: every non-static name begins with sfp_ and is hidden, and only the interposed functions are exported
 * (SFP_EXPORT). Nothing happens before the program's first use of InfiniBand. Outside a simulated host (SIM_HOST or
 * SIMFAB_DIR unset) there are no devices, and every other interposed function goes straight to the real function.
 *
 * Inside the library, system calls on our own descriptors use the sfp_sys_* wrappers below, because the C library's
 * names (read, poll, close, ...) may be interposed by this library.
 */
#ifndef SIMFAB_PRELOAD_H
#define SIMFAB_PRELOAD_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simfab/preload/slots.h"
#include "simfab/proto.h"

#define SFP_EXPORT __attribute__((visibility("default")))

/* ---- connect.c: where we are, and talking to the engine -------------------------------------------------------- */

/*
 * True while this thread reads the library's settings: an allocator or a sanitizer that reads the clock meanwhile must
 * not start again, and gets the real clock.
 */
extern __thread bool sfp_starting;

/* True inside a simulated host. */
bool sfp_enabled(void);
const char *sfp_host(void); /* SIM_HOST, "" outside */
const char *sfp_dir(void);  /* SIMFAB_DIR, "" outside */

/*
 * Opens a connection of the given kind (enum sf_conn_kind) and exchanges hello and welcome. Returns a close-on-exec
 * descriptor owned by the caller, or -1 with errno (ECONNREFUSED, ENOENT: no engine; else the engine's answer). welcome
 * and fds (the descriptors of the welcome, -1 where none) may be NULL.
 */
#define SFP_FDS 3
int sfp_connect(enum sf_conn_kind kind, uint32_t arg, struct sf_welcome *welcome, int fds[SFP_FDS]);

/*
 * Ask a stateless question (SF_OP_SYSFS, ...) on a connection of its own. Returns 0 and the answer's body in memory
 * that the caller frees (never NULL, a zero byte follows the body), or an errno.
 */
int sfp_query(enum sf_op op, const void *req, size_t req_len, void **rep, size_t *rep_len);

/* One request and its answer on a connection; see sfp_call. rep_len or fd may be NULL. 0 or an errno. */
int sfp_converse(int fd, struct sf_req *req, const void *body, void *rep, size_t rep_size, size_t *rep_len,
                 int *out_fd);

/* The next definition of an interposed function; NULL: none. Use SFP_REAL, which caches the result. */
void *sfp_real(const char *name);
void *sfp_real_version(const char *name, const char *version);

#define SFP_REAL(name)                                                                                                 \
    ({                                                                                                                 \
        static __typeof__(&name) real_;                                                                                \
        __typeof__(&name) r_ = __atomic_load_n(&real_, __ATOMIC_RELAXED);                                              \
        if (!r_) {                                                                                                     \
            r_ = (__typeof__(&name))sfp_real(#name);                                                                   \
            __atomic_store_n(&real_, r_, __ATOMIC_RELAXED);                                                            \
        }                                                                                                              \
        r_;                                                                                                            \
    })

/* Lock a mutex of libsimfab's own, held for a moment: not asleep, as an actor that sleeps without a word loses its
 * turn. */
void sfp_lock_awake(pthread_mutex_t *mutex);

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

/* System calls that bypass interposition; they set errno as usual. */
/* The kernel's own entry: the C library's syscall() is interposed too. Sets errno. */
long sfp_syscall(long number, ...);
/*
 * The arguments of syscall(). Like the C library's own function, reads six, however many were passed: the kernel
 * ignores the rest.
 */
void sfp_syscall_arguments(long arg[6], va_list ap);

static inline int sfp_sys_close(int fd)
{
    return (int)sfp_syscall(SYS_close, fd);
}

static inline ssize_t sfp_sys_read(int fd, void *buf, size_t n)
{
    return sfp_syscall(SYS_read, fd, buf, n);
}

static inline ssize_t sfp_sys_write(int fd, const void *buf, size_t n)
{
    return sfp_syscall(SYS_write, fd, buf, n);
}

struct pollfd;
struct msghdr;

static inline int sfp_sys_poll(struct pollfd *fds, unsigned n, int ms)
{
    return (int)sfp_syscall(SYS_poll, fds, n, ms);
}

static inline ssize_t sfp_sys_sendmsg(int fd, const struct msghdr *m, int flags)
{
    return sfp_syscall(SYS_sendmsg, fd, m, flags);
}

static inline ssize_t sfp_sys_recvmsg(int fd, struct msghdr *m, int flags)
{
    return sfp_syscall(SYS_recvmsg, fd, m, flags);
}

/* ---- attach.c, actor.c: the attachment and its actors (verbs_*.c, clock.c) ------------------------------------ */

struct sfp_proc {
    int sock; /* SF_CONN_PROC, -1 when not attached */
    int bell; /* eventfd: wakes a sleeping engine */
    struct sf_arena *arena;
    size_t arena_bytes;
    struct sf_relay *relay; /* NULL: this process has no seat */
    struct sf_welcome welcome;
    bool dead;        /* the engine went away: every verb fails from now on */
    uint32_t waiters; /* threads that have found a lock taken, or no descriptor ready */
};

extern struct sfp_proc sfp_proc;

/*
 * This thread has found the awaited event ready. Whether a wait is needed may be luck: the thread goes on as after a
 * wait.
 */
void sfp_need_not_wait(void);

/*
 * Helper threads that call no verbs do not count, because they may wait all the time. Pass the result of the first
 * function to the second.
 */
static inline bool sfp_waiter_begins(void)
{
    bool counts = sfp_is_actor();

    if (counts)
        __atomic_fetch_add(&sfp_proc.waiters, 1, __ATOMIC_RELAXED);
    return counts;
}

static inline void sfp_waiter_ends(bool counted)
{
    if (counted)
        __atomic_fetch_sub(&sfp_proc.waiters, 1, __ATOMIC_RELAXED);
}

extern unsigned sfp_generation; /* incremented in a forked child, which starts without an attachment */

/* Attach this process to the engine if it is not yet. 0 or an errno. */
int sfp_attach(void);

/* actor.c, for attach.c: for a forked child, which has no actors. */
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

/* thread.c */
uint32_t sfp_thread_number(void);
void sfp_thread_acts(bool acts); /* this thread is an actor from now on, or no longer is one */
void sfp_thread_ends(void);
void sfp_thread_after_fork(void);

/*
 * await.c: waits for a call by another thread of this process. An actor leaves RUNNING until called for WHAT (any
 * address known to both threads), and continues in its turn, not before the caller's time. Between begin and end, check
 * before each sfp_await whether the wait is over. False from begin: wait in the kernel.
 */
bool sfp_await_begin(const void *what);
/* LATE: the time is until_ps; ALONE: there is no thread left to wait for. */
enum sfp_awaited { SFP_CALLED, SFP_NOT_CALLED, SFP_INTERRUPTED, SFP_LATE, SFP_ALONE };
/* helpers: threads that are no actors may call. until_ps: in virtual time, 0 without limit. */
enum sfp_awaited sfp_await(bool helpers, uint64_t until_ps);
void sfp_await_end(bool pass_on);                /* pass_on: a call of this thread goes to the next waiter */
bool sfp_await_call(const void *what, bool all); /* false: no thread waits for `what` */
/* In calls that are cancellation points, before asking whether the wait is over; not while holding anything. */
/*
 * callers.c: kinds of threads that have posted or signalled an object so far, by its address. While only actors do so,
 * the engine need not ask the kernel about the helper threads during a wait for the object.
 */
enum sfp_callers { SFP_CALLERS_UNKNOWN = 0, SFP_CALLERS_ACTORS = 1, SFP_CALLERS_HELPERS = 2 };
void sfp_callers_note(const void *what);           /* this thread posts or signals */
enum sfp_callers sfp_callers_of(const void *what); /* HELPERS: a helper has called at least once */
void sfp_callers_doubt(bool begins);               /* a guest may become a helper that works with actors; no more */
void sfp_callers_after_fork(void);
void sfp_callers_mix(void);                /* an actor becomes a helper that works with other actors */
bool sfp_helpers_call(const void *what);   /* true: a helper may call, as not only actors have called so far */
void sfp_callers_forget(const void *what); /* a new object begins there */
void sfp_await_lets_cancel(void);
uint32_t sfp_await_cancels(void); /* threads of this process cancelled so far */
void sfp_await_after_fork(void);
/* lock.c */
bool sfp_lock_is_shared(const pthread_mutex_t *mutex); /* with other processes */
/* verbs_events.c: does a system call that a signal has interrupted go on? */
bool sfp_calls_go_on(void);
/* True if a thread was called for WHAT but has not arrived yet. That thread comes first. */
bool sfp_await_is_due(const void *what);
/*
 * Call before taking a lock, even a free lock. A thread that takes locks again and again, without a call of verbs or a
 * wait, may be checking for the work of others: the others get their turns.
 */
void sfp_await_ask(void);

/*
 * Enter simfab as an actor: counts the call, catches up with the engine's time and charges the processor time used
 * since the last call where the model asks for it. NULL (errno set) without an engine or when no slot is free.
 */
struct sf_actor *sfp_enter(void);
/* The same for a thread that is an actor; NULL for other threads; never attaches. */
struct sf_actor *sfp_enter_if_actor(void);

/*
 * A control request. The answer's body goes to rep (at most rep_size bytes; *rep_len: actual length), the answer's
 * descriptor to *fd (-1: none). rep_len and fd may be NULL: then the body must be exactly rep_size.
 */
int sfp_call(enum sf_op op, const void *req, size_t req_len, void *rep, size_t rep_size, size_t *rep_len, int *fd);

/* Leave RUNNING for state and wait until the engine says RUNNING. Returns the wake reason, or -1 if the engine died. */
int sfp_wait(struct sf_actor *a, enum sf_actor_state state, uint64_t wake_ps);
#define SFP_AFTER_OTHERS 1 /* READY's wake_ps: waiting actors come first */
#define SFP_WAKE_LOOK    3 /* at memory that another actor of the host may have written; */
#define SFP_WAKE_WORLD   5 /* at the world */
#define SFP_WAKE_SIGNAL  6 /* a signal was handled in this thread */

/*
 * relay.c: an actor about to sleep in sfp_wait passes its turn on; false: tell the engine. The next two: the actor has
 * begun with a turn passed on by the relay, or by the engine or by itself.
 */
bool sfp_relay_pass(const struct sf_actor *a, enum sf_actor_state state);
bool sfp_relay_begin(struct sf_actor *a);
void sfp_relay_begun(struct sf_actor *a);
void sfp_relay_forget(struct sf_actor *a);
/* The actor's state was made RUNNING; and sleeping until then, or until something else (as a futex does). */
void sfp_actor_call(struct sf_actor *a);
struct timespec;
long sfp_actor_sleep(struct sf_actor *a, uint32_t state, const struct timespec *patience);

/*
 * cpu.c: this thread gets its former affinity back, before a thread or a child inherits the affinity (lend), or for
 * good (leave). The last function: call before a system call of this number.
 */
void sfp_cpu_lend(const struct sf_actor *a);
void sfp_cpu_leave(struct sf_actor *a);
void sfp_cpu_asked(long number);
void sfp_actor_lends_cpu(void); /* actor.c: sfp_cpu_lend for this thread, if an actor */

/* The actor's clock plus cost_ps, as shown to the program; never earlier than a time shown before. */
uint64_t sfp_show(struct sf_actor *a, uint64_t cost_ps);

/* Wakes a sleeping engine, after a change that the engine must see. */
void sfp_ring(void);
/* Look whether the engine is still there; false marks the attachment dead. */
bool sfp_alive(void);

/* marks.c: marks fd as one of the engine's event pipes, or an epoll set that contains a pipe, or removes the mark. */
void sfp_mark_fd(int fd, bool on);
bool sfp_fd_is_marked(int fd);

static inline uint64_t sfp_now(const struct sf_actor *a)
{
    return __atomic_load_n(&a->clock_ps, __ATOMIC_RELAXED);
}

static inline void sfp_spend(struct sf_actor *a, uint64_t ps)
{
    __atomic_store_n(&a->clock_ps, sfp_now(a) + ps, __ATOMIC_RELAXED);
}

#endif
