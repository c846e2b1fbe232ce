/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time stamp counter. Some programs (perftest) read the counter directly. In threads that use verbs, the reading
 * becomes a fault, whose handler here gives virtual time. There are two methods: the kernel makes the reading fault, or
 * the instructions are replaced (tsc_patch.c). The kernel's method comes first, but some hypervisors accept the setting
 * without effect, so a trial decides. Both methods give a thread the same time for the same readings.
 *
 * SIMFAB_TSC=trap or patch allows only this method, SIMFAB_TSC=real leaves the counter alone. The process reports the
 * method to the engine.
 *
 * The fault needs care. The program's own SIGSEGV handler must not displace ours, nor may a thread block the signal
 * (trap.c). The C library's clocks read the counter in the vDSO, and stay real. The kernel's setting survives exec, and
 * would kill the next program before the library is loaded there: spawn.c takes the setting back.
 */
#include "simfab/preload/tsc.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "simfab/preload/attach.h"
#include "simfab/preload/clock_base.h"
#include "simfab/preload/connect.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/trap.h"
#include "simfab/preload/tsc_patch.h"

#if defined(__x86_64__)

#include <elf.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "simfab/tsc/tsc.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum sf_tsc way;
static uint64_t khz = 2000000;
static uintptr_t vdso;
static __thread bool trapped; /* this thread's counter is virtual */
static __thread volatile bool seen;

enum { VDSO_BYTES = 16384, LONGEST_INSTRUCTION = 15 };

/* An instruction of our own, to see whether it traps. */
__asm__(".pushsection .text\n"
        ".hidden sfp_tsc_probe\n"
        ".globl sfp_tsc_probe\n"
        ".type sfp_tsc_probe, @function\n"
        "sfp_tsc_probe:\n"
        "    rdtsc\n"
        "    ret\n"
        ".size sfp_tsc_probe, . - sfp_tsc_probe\n"
        ".popsection\n");
void sfp_tsc_probe(void);

/* aux: the second result of rdtscp; NULL: rdtsc. */
static uint64_t real_tsc(uint32_t *aux)
{
    bool on = way == SF_TSC_TRAP;
    uint32_t lo, hi;

    if (on)
        prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
    if (aux)
        __asm__ volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(*aux));
    else
        __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
    if (on)
        prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    return (uint64_t)hi << 32 | lo;
}

static uint64_t virtual_tsc(uint32_t *aux)
{
    struct timespec ts;

    if (aux)
        *aux = 0;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ((uint64_t)ts.tv_sec * SFP_NS_PER_S + (uint64_t)ts.tv_nsec) * (khz / 1000) / 1000;
}

/*
 * Readings in the vDSO are the C library's, for a clock that stays real. Threads without virtual time meet patched
 * code, too.
 */
static uint64_t read_tsc(const uint8_t *ip, uint32_t *aux)
{
    return !trapped || (uintptr_t)ip - vdso < VDSO_BYTES ? real_tsc(aux) : virtual_tsc(aux);
}

static bool is_prefix(uint8_t byte)
{
    static const uint8_t legacy[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf2, 0xf3};

    return memchr(legacy, byte, sizeof legacy) || (byte & 0xf0) == 0x40;
}

/*
 * Decodes the faulting instruction: returns its length, and whether it is rdtscp. 0: the instruction does not read the
 * counter.
 */
static int counter_instruction(const uint8_t *ip, bool *with_aux)
{
    const uint8_t *at = ip;
    bool escape = *at == SFT_TRAP; /* patched: without prefixes the 0f is gone */

    at += escape;
    if (!escape || (*at != 0x31 && *at != 0x01)) {
        while (at - ip < LONGEST_INSTRUCTION && is_prefix(*at))
            at++;
        if (*at++ != 0x0f)
            return 0;
    }
    *with_aux = at[0] == 0x01 && at[1] == 0xf9;
    return *with_aux ? (int)(at - ip) + 2 : at[0] == 0x31 ? (int)(at - ip) + 1 : 0;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *ip = (const uint8_t *)r[REG_RIP];
    bool with_aux = false;
    int e = errno, bytes;
    uint64_t now = 0;
    uint32_t aux = 0;

    if (info->si_code == SI_KERNEL && sfp_patch_is_loader(ip)) {
        r[REG_RIP] = (greg_t)sfp_patch_at_loader;
        return;
    }
    /* of a bad address the instruction may not even be readable */
    bytes = info->si_code == SI_KERNEL ? counter_instruction(ip, &with_aux) : 0;
    if (!bytes) {
        sfp_trap_pass_on(sig, info, context);
        return;
    }
    if (ip == (const uint8_t *)sfp_tsc_probe)
        seen = true;
    else
        now = read_tsc(ip, with_aux ? &aux : NULL);
    r[REG_RAX] = (greg_t)(now & 0xffffffff);
    r[REG_RDX] = (greg_t)(now >> 32);
    if (with_aux)
        r[REG_RCX] = aux;
    r[REG_RIP] += bytes;
    errno = e;
}

/* The counter runs at the nominal frequency, because some programs compare the counter with measurements. */
static void read_frequency(void)
{
    FILE *f = SFP_REAL(fopen)("/proc/cpuinfo", "re");
    char line[256];
    double mhz;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "cpu MHz : %lf", &mhz) == 1 && mhz > 100 && mhz < 100000) {
            khz = (uint64_t)(mhz + 0.5) * 1000;
            break;
        }
    if (f)
        fclose(f);
}

/* ---- choosing the method ----------------------------------------------------------------------------------------- */

static bool probe(void)
{
    seen = false;
    sfp_tsc_probe();
    return seen;
}

static bool kernel_traps(void)
{
    bool works = prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0 && probe();

    prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
    return works;
}

static enum sf_tsc patch_all_code(void)
{
    if (!sfp_patch_load())
        return SF_TSC_NO_LIBRARY;
    return sfp_patch_byte((void *)sfp_tsc_probe) && probe() && sfp_patch_all() ? SF_TSC_PATCHED : SF_TSC_NO_WRITING;
}

/* If a thread blocks the signal of a fault, the kernel kills the process. */
static void unblock(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    SFP_REAL(pthread_sigmask)(SIG_UNBLOCK, &set, NULL);
}

/* Before other threads exist, which would inherit the mask. */
__attribute__((constructor)) static void unblock_first_thread(void)
{
    if (sfp_enabled())
        unblock();
}

static enum sf_tsc choose(const char *wanted)
{
    if (!sfp_clock_is_virtual() || !strcmp(wanted, "real"))
        return SF_TSC_REAL;
    read_frequency();
    vdso = getauxval(AT_SYSINFO_EHDR);
    unblock();
    if (!sfp_trap_take(SIGSEGV, on_fault, SA_ONSTACK))
        return SF_TSC_NO_TRAP;
    if (strcmp(wanted, "patch") && kernel_traps())
        return SF_TSC_TRAP;
    return strcmp(wanted, "trap") ? patch_all_code() : SF_TSC_NO_TRAP;
}

static void choose_once(void)
{
    const char *wanted = getenv("SIMFAB_TSC"); /* `simfab exec` has looked whether there is such a way */

    way = choose(wanted ? wanted : "");
}

void sfp_tsc_prepare(void)
{
    pthread_once(&once, choose_once);
}

/* ---- threads and programs -------------------------------------------------------------------------------------- */

void sfp_tsc_trap(void)
{
    sfp_tsc_prepare();
    __atomic_store_n(&sfp_proc.arena->tsc, way, __ATOMIC_RELAXED);
    if (trapped || (way != SF_TSC_TRAP && way != SF_TSC_PATCHED))
        return;
    unblock();
    trapped = way == SF_TSC_PATCHED || prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0;
}

bool sfp_tsc_is_trapped(void)
{
    return trapped;
}

void sfp_tsc_inherit(bool creators)
{
    trapped = creators;
}

bool sfp_tsc_release(void)
{
    int state = PR_TSC_ENABLE;

    /* ask the kernel: a thread started by the C library inherits the setting */
    if (way != SF_TSC_TRAP || prctl(PR_GET_TSC, &state, 0, 0, 0) || state != PR_TSC_SIGSEGV)
        return false;
    prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
    return true;
}

void sfp_tsc_restore(bool released)
{
    int e = errno;

    if (released)
        prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    errno = e;
}

#else

void sfp_tsc_prepare(void)
{
}

void sfp_tsc_trap(void)
{
}

bool sfp_tsc_is_trapped(void)
{
    return false;
}

void sfp_tsc_inherit(bool creators)
{
}

bool sfp_tsc_release(void)
{
    return false;
}

void sfp_tsc_restore(bool released)
{
}

#endif
