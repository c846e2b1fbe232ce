/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stack of a rank that dies of a signal, on standard error. Only the default action is replaced: a handler of the
 * program, a language's runtime or a sanitizer stays. The process dies of the same signal as before, and a faulting
 * instruction faults again, so a core file and a debugger see the original place.
 *
 * The handler runs anywhere, for example within malloc() or the loader. The handler takes no memory; an earlier call of
 * backtrace() has loaded the unwinder. dladdr() may meet a lock of the loader: a timer ends the process in that case.
 */
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "libmrmpi/api/life.h"
#include "libmrmpi/base/base.h"

enum { FRAMES = 48, STACK_BYTES = 128 * 1024, PATIENCE_S = 3 };

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { NUM_FATAL = sizeof(fatal) / sizeof(fatal[0]) };

static struct {
    pid_t pid; /* the reporting process: not its children */
    bool taken[NUM_FATAL];
    void *stack;       /* for the thread that starts MPI, whose own may be full; NULL: the thread has one */
    atomic_int teller; /* the reporting thread; 0: none */
} crash;

/* Of a sanitizer's runtime: its reports have more details. */
void __sanitizer_set_report_path(const char *path) __attribute__((weak));

/* ---- in the handler ---------------------------------------------------------------------------------------------- */

static void die(int sig, const siginfo_t *info)
{
    struct sigaction default_action = {.sa_handler = SIG_DFL};

    sigaction(sig, &default_action, NULL);
    if (info->si_code <= 0) /* sent: no instruction faults again */
        raise(sig);
}

/*
 * The timer's first signal reaches this handler, or its second the default action. Not with the C library's timers,
 * which a simulated host replaces.
 */
static void limit_time(int sig)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig};
    struct itimerspec when = {.it_value.tv_sec = PATIENCE_S, .it_interval.tv_sec = 1};
    int id;

    if (!syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id))
        syscall(SYS_timer_settime, id, 0, &when, NULL);
}

/* The instruction interrupted by the signal. */
static void *faulting_instruction(const void *context)
{
#if defined(__x86_64__)
    return (void *)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (void *)((const ucontext_t *)context)->uc_mcontext.pc;
#else
    return NULL;
#endif
}

/* After a call to an invalid address, which the unwinder cannot pass. NULL: unknown. */
static void *caller_of(const void *context)
{
    void *caller = NULL;
#if defined(__x86_64__)
    struct iovec here = {&caller, sizeof(caller)},
                 there = {(void *)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RSP], sizeof(caller)};

    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != sizeof(caller)) /* the stack may be lost, too */
        caller = NULL;
#elif defined(__aarch64__)
    caller = (void *)((const ucontext_t *)context)->uc_mcontext.regs[30];
#endif
    return caller;
}

static void tell_cause(int sig, const siginfo_t *info)
{
    const char *name = sigabbrev_np(sig);

    if (info->si_code <= 0 && info->si_pid != getpid())
        mr_log_print(MR_LOG_ERROR, "SIG%s, sent by process %d, ends this rank at", name, (int)info->si_pid);
    else if (sig == SIGABRT)
        mr_log_print(MR_LOG_ERROR, "SIGABRT ends this rank at");
    else
        mr_log_print(MR_LOG_ERROR, "SIG%s (address %p) ends this rank at", name, info->si_addr);
}

/* The address for addr2line: from the beginning of the file, but in a program with a fixed place unchanged. */
static size_t offset_of(const char *pc, const Dl_info *in)
{
    const ElfW(Ehdr) *file = in->dli_fbase;

    return (size_t)pc - (file->e_type == ET_EXEC ? 0 : (size_t)in->dli_fbase);
}

static bool find_file(const void *pc, Dl_info *in)
{
    return dladdr(pc, in) && in->dli_fname && in->dli_fbase;
}

/* A return address: its call may be a function's last instruction. */
static void tell_frame(int number, void *at, bool is_return)
{
    char *pc = (char *)at - is_return;
    Dl_info in;

    if (!find_file(pc, &in))
        mr_log_print(MR_LOG_ERROR, "  #%d %p", number, at);
    else if (in.dli_sname)
        mr_log_print(MR_LOG_ERROR, "  #%d %s + 0x%zx (%s +0x%zx)", number, in.dli_sname,
                     (size_t)((char *)at - (char *)in.dli_saddr), in.dli_fname, offset_of(pc, &in));
    else
        mr_log_print(MR_LOG_ERROR, "  #%d %s +0x%zx", number, in.dli_fname, offset_of(pc, &in));
}

/* A command that names the lines of the program's own frames. */
static void tell_command(void *const *frame, int n)
{
    char text[512];
    size_t len = 0;
    Dl_info in, program;

    if (!find_file((void *)getauxval(AT_ENTRY), &program))
        return;
    for (int i = 0; i < n; i++) {
        char *pc = (char *)frame[i] - (i > 0);

        if ((i && frame[i] == frame[i - 1]) || !find_file(pc, &in) || in.dli_fbase != program.dli_fbase)
            continue;
        int more = snprintf(text + len, sizeof(text) - len, " 0x%zx", offset_of(pc, &in));
        if (more < 0 || (size_t)more >= sizeof(text) - len)
            break;
        len += (size_t)more;
    }
    text[len] = '\0';
    if (len)
        mr_log_print(MR_LOG_ERROR, "  source lines: addr2line -Cfpe %s%s", program.dli_fname, text);
}

static void tell_stack(const void *context)
{
    void *frame[FRAMES], *place = faulting_instruction(context);
    int n = backtrace(frame, FRAMES), first = 0;

    while (first < n && frame[first] != place)
        first++;
    if (first == n) {
        first = 0;
        n = 2;
        frame[0] = place;
        frame[1] = caller_of(context);
    }
    for (int i = first, last; i < n; i = last + 1) {
        for (last = i; i > first && last + 1 < n && frame[last + 1] == frame[i]; last++)
            ;
        tell_frame(i - first, frame[i], i > first);
        if (last > i)
            mr_log_print(MR_LOG_ERROR, "  and %d times more", last - i);
    }
    if (n == FRAMES)
        mr_log_print(MR_LOG_ERROR, "  ...");
    tell_command(frame + first, n - first);
}

static void on_fatal(int sig, siginfo_t *info, void *context)
{
    int own = (int)syscall(SYS_gettid), none = 0;

    if (getpid() == crash.pid && atomic_compare_exchange_strong(&crash.teller, &none, own)) {
        limit_time(sig);
        tell_cause(sig, info);
        tell_stack(context);
    } else if (getpid() == crash.pid && none != own && info->si_code != SI_TIMER) {
        for (;;) /* the process ends when the other thread has told its stack */
            pause();
    }
    die(sig, info);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void take_signal(int i)
{
    struct sigaction old, ours = {.sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};

    sigemptyset(&ours.sa_mask);
    if (sigaction(fatal[i], NULL, &old) || (old.sa_flags & SA_SIGINFO) || old.sa_handler != SIG_DFL)
        return;
    crash.taken[i] = !sigaction(fatal[i], &ours, NULL);
}

static void give_stack(void)
{
    stack_t old, ours = {.ss_size = STACK_BYTES};

    if (sigaltstack(NULL, &old) || !(old.ss_flags & SS_DISABLE))
        return;
    ours.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ours.ss_sp == MAP_FAILED)
        return;
    crash.stack = ours.ss_sp;
    sigaltstack(&ours, NULL);
}

static void take_stack(void)
{
    stack_t now, none = {.ss_flags = SS_DISABLE};

    if (!crash.stack || sigaltstack(NULL, &now) || now.ss_sp != crash.stack) /* another thread's stack stays */
        return;
    sigaltstack(&none, NULL);
    munmap(crash.stack, STACK_BYTES);
    crash.stack = NULL;
}

void api_crash_open(void)
{
    void *first;

    if (__sanitizer_set_report_path)
        return;
    backtrace(&first, 1);
    crash.pid = getpid();
    give_stack();
    for (int i = 0; i < NUM_FATAL; i++)
        take_signal(i);
}

/* Handlers that the program has installed meanwhile stay. */
void api_crash_close(void)
{
    struct sigaction now, default_action = {.sa_handler = SIG_DFL};

    for (int i = 0; i < NUM_FATAL; i++) {
        if (crash.taken[i] && !sigaction(fatal[i], NULL, &now) && (now.sa_flags & SA_SIGINFO) &&
            now.sa_sigaction == on_fatal)
            sigaction(fatal[i], &default_action, NULL);
        crash.taken[i] = false;
    }
    take_stack();
}
