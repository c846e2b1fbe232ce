/* SPDX-License-Identifier: BSD-3-Clause */
/* How processes catch their readings of the time stamp counter (simfab/preload/tsc.c): counted, and said aloud where
 * one cannot. */
#include "simfab/engine/clock/tsc.h"

#include <signal.h>
#include <sys/prctl.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/text.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/proto.h"

/* Reason and remedy. */
static const char *const troubles[SF_TSC_WAYS] = {
    [SF_TSC_NO_TRAP] =
        "the kernel's trap does not work on this machine (hypervisors may ignore it), and SIMFAB_TSC=trap "
        "forbids anything else: unset it, and code is patched instead",
    [SF_TSC_NO_LIBRARY] =
        "the kernel's trap does not work on this machine, and libsimfab-tsc.so, which patches code instead, "
        "cannot be loaded: it belongs beside libsimfab.so, and needs libZydis",
    [SF_TSC_NO_WRITING] =
        "the kernel's trap does not work on this machine, and the kernel lets nobody write into code: allow that "
        "for /proc/self/mem (proc_mem.force_override) or mprotect (SELinux: execmod)",
};

/*
 * The kernel switches the trap on and off between threads with and without a trap. The switch writes a control
 * register, which takes microseconds under hypervisors. If actors have the trap, the engine sets the trap for itself,
 * too. The engine reads clocks by system calls; a reading elsewhere (by a sanitizer) ends the engine's trap.
 */
static struct sigaction before_trap;

static void give_up_trap(int sig)
{
    static volatile sig_atomic_t given_up;

    if (given_up)
        sigaction(sig, &before_trap, NULL); /* another fault: repeats at once */
    given_up = 1;
    prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
}

static void take_trap(void)
{
    static bool taken;
    struct sigaction act = {.sa_handler = give_up_trap};

    if (taken)
        return;
    taken = true;
    if (!sigaction(SIGSEGV, &act, &before_trap))
        prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
}

void tsc_note(struct proc *p)
{
    uint32_t way = __atomic_load_n(&p->arena->tsc, __ATOMIC_RELAXED);
    struct sim *s = p->sim;

    if (way == p->tsc || way >= SF_TSC_WAYS)
        return;
    if (troubles[way] && !s->tsc_count[way])
        engine_notice(
            "the time stamp counter stays real in programs that read it (pid %d on host %s is the first), and so do "
            "figures that they make of it: %s",
            (int)p->pid, p->host->name, troubles[way]);
    if (p->tsc)
        s->tsc_count[p->tsc]--;
    s->tsc_count[way] += way != SF_TSC_UNKNOWN;
    p->tsc = way;
    if (way == SF_TSC_TRAP)
        take_trap();
}

void tsc_status(struct sim *s, struct text *t)
{
    const uint32_t *count = s->tsc_count;

    for (uint32_t i = 0; i < s->num_procs; i++)
        tsc_note(s->procs[i]);
    text_say(t,
             "time stamp counter: trapped in %u processes so far, patched in %u, left real in %u, not caught in %u\n",
             count[SF_TSC_TRAP], count[SF_TSC_PATCHED], count[SF_TSC_REAL],
             count[SF_TSC_NO_TRAP] + count[SF_TSC_NO_LIBRARY] + count[SF_TSC_NO_WRITING]);
}
