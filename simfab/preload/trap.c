/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals for faults that the kernel raises on request: readings of the time stamp counter (tsc.c), and entries into
 * the kernel without the C library (futex.c). The program's own handlers of these signals come after ours, and do not
 * displace ours. No thread can block these signals, because the kernel would then kill the process.
 */
#include "simfab/preload/trap.h"

#include <pthread.h>
#include <signal.h>

#include "simfab/preload/connect.h"
#include "simfab/preload/preload.h"

static struct trap {
    int sig;
    bool taken;
    struct sigaction theirs; /* the program's handler */
} traps[] = {{.sig = SIGSEGV}, {.sig = SIGSYS}};

enum { TRAPS = sizeof traps / sizeof *traps };

static struct trap *trap_of(int sig)
{
    for (int i = 0; i < TRAPS; i++)
        if (traps[i].sig == sig)
            return &traps[i];
    return NULL;
}

static struct trap *taken(int sig)
{
    struct trap *t = trap_of(sig);

    return t && t->taken ? t : NULL;
}

bool sfp_trap_take(int sig, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction ours = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART | flags};
    struct trap *t = trap_of(sig);

    t->taken = SFP_REAL(sigaction)(sig, &ours, &t->theirs) == 0;
    return t->taken;
}

/*
 * True if the signal must not be blocked. SIGSEGV from the beginning: a thread that blocks all signals, and never calls
 * verbs, may execute an instruction patched meanwhile (tsc_patch.c).
 */
static bool is_kept(const struct trap *t)
{
    return t->taken || (t->sig == SIGSEGV && sfp_enabled());
}

const sigset_t *sfp_trap_unblocked(const sigset_t *set, sigset_t *copy)
{
    const sigset_t *wanted = set;

    for (int i = 0; set && i < TRAPS; i++)
        if (sigismember(wanted, traps[i].sig) == 1 && is_kept(&traps[i])) {
            if (wanted == set)
                *copy = *set;
            wanted = copy;
            sigdelset(copy, traps[i].sig);
        }
    return wanted;
}

/* With the default action the instruction faults again, fatally; a refused call is not repeated. */
void sfp_trap_pass_on(int sig, siginfo_t *info, void *context)
{
    const struct sigaction *theirs = &trap_of(sig)->theirs;

    if (theirs->sa_flags & SA_SIGINFO) {
        theirs->sa_sigaction(sig, info, context);
    } else if (theirs->sa_handler != SIG_DFL && theirs->sa_handler != SIG_IGN) {
        theirs->sa_handler(sig);
    } else {
        struct sigaction dfl = {.sa_handler = SIG_DFL};

        SFP_REAL(sigaction)(sig, &dfl, NULL);
        if (sig == SIGSYS)
            raise(sig);
    }
}

/* ---- the program's own signal handling ------------------------------------------------------------------------- */

/* A handler of another signal may read the counter, too. */
static int set_action(int sig, const struct sigaction *act, struct sigaction *old)
{
    struct sigaction copy;

    if (act) {
        copy = *act;
        copy.sa_mask = *sfp_trap_unblocked(&act->sa_mask, &copy.sa_mask);
    }
    return SFP_REAL(sigaction)(sig, act ? &copy : NULL, old);
}

SFP_EXPORT int sigaction(int sig, const struct sigaction *restrict act, struct sigaction *restrict old)
{
    struct trap *t = taken(sig);
    struct sigaction was;

    if (!t)
        return set_action(sig, act, old);
    was = t->theirs;
    if (act)
        t->theirs = *act;
    if (old)
        *old = was;
    return 0;
}

SFP_EXPORT __sighandler_t signal(int sig, __sighandler_t handler)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;

    if (!taken(sig))
        return SFP_REAL(signal)(sig, handler);
    sigaction(sig, &act, &old);
    return old.sa_handler;
}

SFP_EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    sigset_t copy;

    return SFP_REAL(pthread_sigmask)(how, how == SIG_UNBLOCK ? set : sfp_trap_unblocked(set, &copy), old);
}

SFP_EXPORT int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    sigset_t copy;

    return SFP_REAL(sigprocmask)(how, how == SIG_UNBLOCK ? set : sfp_trap_unblocked(set, &copy), old);
}
