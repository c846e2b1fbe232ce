/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Futexes used by the program itself, by the C library's syscall() or, as in OpenMP's runtime (libgomp), by entering
 * the kernel directly. The kernel then returns entries from libgomp here as a fault (syscall user dispatch, Linux
 * 5.11), in every thread, because wake-ups must be seen as well. On older kernels the engine has to notice such waits.
 *
 * An actor that takes turns waits for a thread of its process until woken (await.c); for other processes, in the
 * kernel.
 */
#include "simfab/preload/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/await.h"
#include "simfab/preload/callers.h"
#include "simfab/preload/clock.h"
#include "simfab/preload/clock_base.h"
#include "simfab/preload/connect.h"
#include "simfab/preload/cpu.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/slots.h"
#include "simfab/preload/trap.h"

/*
 * A guest with this number of waits and no call of verbs computes for others: the guest becomes a helper, and takes no
 * turns from actors.
 */
#define GUEST_WAITS 64

enum { IN_KERNEL = -1 };

static __thread unsigned waits;

/* 0, an errno, or IN_KERNEL. Until until_ps, 0 for ever. */
static int await_word(const uint32_t *word, uint32_t value, uint64_t until_ps)
{
    enum sfp_awaited how = SFP_NOT_CALLED;
    bool is_other;

    sfp_guest_waits();
    if (waits++ == GUEST_WAITS)
        sfp_guest_computes();
    if (!sfp_is_actor() || !sfp_has_siblings() || !sfp_await_begin(word))
        return IN_KERNEL;
    is_other = __atomic_load_n(word, __ATOMIC_SEQ_CST) != value;
    while (!is_other && how == SFP_NOT_CALLED) {
        how = sfp_await(sfp_helpers_call(word), until_ps);
        if (how == SFP_NOT_CALLED && __atomic_load_n(word, __ATOMIC_SEQ_CST) != value)
            how = SFP_CALLED; /* a spurious wake-up, allowed for all futexes */
    }
    sfp_await_end(false);
    if (is_other)
        return EAGAIN;
    return how == SFP_ALONE ? IN_KERNEL : how == SFP_INTERRUPTED ? EINTR : how == SFP_LATE ? ETIMEDOUT : 0;
}

/* Another process may wake it; a time-out moves the clock by its length. */
static long kernel_futex_wait(const long arg[6], uint64_t until_ps)
{
    long st;

    sfp_block_begin();
    st = sfp_syscall(SYS_futex, arg[0], arg[1], arg[2], arg[3]);
    sfp_block_end();
    if (st < 0 && errno == ETIMEDOUT && until_ps)
        sfp_clock_advance_to(until_ps);
    return st;
}

static long futex_wait(const long arg[6])
{
    const struct timespec *timeout = (const struct timespec *)arg[3];
    uint64_t until_ps = 0;
    int err = IN_KERNEL;

    if (timeout)
        until_ps =
            sfp_clock_peek() + ((uint64_t)timeout->tv_sec * SFP_NS_PER_S + (uint64_t)timeout->tv_nsec) * SFP_PS_PER_NS;
    if (arg[1] & FUTEX_PRIVATE_FLAG)
        err = await_word((const uint32_t *)arg[0], (uint32_t)arg[2], until_ps);
    if (err == IN_KERNEL)
        return kernel_futex_wait(arg, until_ps);
    errno = err;
    return err ? -1 : 0;
}

/* Wakes the waiters here first, then the waiters in the kernel. */
static long futex_wake(const long arg[6])
{
    long called = 0, more;

    sfp_callers_note((const void *)arg[0]);
    while (called < (int)arg[2] && sfp_await_call((const void *)arg[0], false))
        called++;
    if (called && called == (int)arg[2])
        return called;
    more = sfp_syscall(SYS_futex, arg[0], arg[1], arg[2] - called);
    return more < 0 ? more : called + more;
}

static long futex(const long arg[6])
{
    if (!sfp_proc.arena || sfp_proc.dead || !sfp_clock_is_virtual())
        return sfp_syscall(SYS_futex, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
    if ((arg[1] & ~FUTEX_PRIVATE_FLAG) == FUTEX_WAIT && sfp_is_actor())
        return futex_wait(arg);
    if (arg[1] == FUTEX_WAKE_PRIVATE)
        return futex_wake(arg);
    return sfp_syscall(SYS_futex, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

SFP_EXPORT long syscall(long number, ...)
{
    long arg[6];
    va_list ap;

    va_start(ap, number);
    sfp_syscall_arguments(arg, ap);
    va_end(ap);
    if (number == SYS_futex)
        return futex(arg);
    sfp_cpu_asked(number);
    return sfp_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

/* ---- entries from libgomp's own code --------------------------------------------------------------------------- */

#if defined(__x86_64__)

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF          0
#define PR_SYS_DISPATCH_ON           1
#endif
#ifndef SYS_USER_DISPATCH
#define SYS_USER_DISPATCH 2
#endif

enum { SYSCALL_BYTES = 2 };

static struct code {
    uintptr_t from, to;
} gomp, libc;
static bool catching;
static __thread bool trapped;

static int find_code(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *name = info->dlpi_name;
    struct code *of = strstr(name, "/libgomp.so") ? &gomp : strstr(name, "/libc.so.6") ? &libc : NULL;

    for (int i = 0; of && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        if (p->p_type == PT_LOAD && p->p_flags & PF_X)
            *of = (struct code){info->dlpi_addr + p->p_vaddr, info->dlpi_addr + p->p_vaddr + p->p_memsz};
    }
    return 0;
}

static bool is_from(const struct code *c, const void *ip)
{
    return (uintptr_t)ip >= c->from && (uintptr_t)ip <= c->to;
}

static int dispatch(bool on)
{
    uintptr_t from = libc.from > gomp.from ? gomp.to : 0; /* not looked at: all on the C library's side of libgomp */
    uintptr_t bytes = libc.from > gomp.from ? (uintptr_t)LONG_MAX - from : gomp.from;

    return on ? prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, from, bytes, 0)
              : prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0);
}

/* A new thread or process would return into this handler: such a call is made where it stands. */
static void make_it_there(ucontext_t *uc, long number)
{
    trapped = dispatch(false) != 0;
    uc->uc_mcontext.gregs[REG_RAX] = number;
    uc->uc_mcontext.gregs[REG_RIP] -= SYSCALL_BYTES;
}

static void on_call(int sig, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const long arg[6] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]};
    long number = info->si_syscall, st;
    int e = errno;

    if (info->si_code != SYS_USER_DISPATCH) {
        sfp_trap_pass_on(sig, info, context);
        return;
    }
    if (number == SYS_clone || number == SYS_clone3 || number == SYS_fork || number == SYS_vfork ||
        number == SYS_rt_sigreturn) {
        make_it_there(context, number);
        return;
    }
    if (number == SYS_futex && is_from(&gomp, info->si_call_addr))
        st = futex(arg);
    else
        st = sfp_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
    r[REG_RAX] = st < 0 ? -errno : st;
    errno = e;
}

/* Its parent's setting is not the child's. */
static void renew_futex_trap(void)
{
    bool was = trapped;

    trapped = false;
    if (was)
        sfp_futex_trap();
}

static void install(void)
{
    pthread_atfork(NULL, NULL, renew_futex_trap);
    catching = sfp_trap_take(SIGSYS, on_call, 0);
}

void sfp_futex_trap(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (trapped || !gomp.to || !libc.to || !sfp_clock_is_virtual())
        return;
    pthread_once(&once, install);
    trapped = catching && dispatch(true) == 0;
}

void sfp_futex_look(void)
{
    if (!gomp.to)
        dl_iterate_phdr(find_code, NULL);
    sfp_futex_trap();
}

/* The first thread of a program linked with libgomp; other threads at their start, or when creating a thread. */
__attribute__((constructor)) static void trap_first_thread(void)
{
    if (sfp_enabled())
        sfp_futex_look();
}

#else

void sfp_futex_trap(void)
{
}

void sfp_futex_look(void)
{
}

#endif
