/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time stamp counter. Some programs (perftest) read it directly; in threads that use verbs the kernel is asked to
 * make that a fault, whose handler here answers with virtual time. SIMFAB_TSC=real leaves the counter alone.
 *
 * The price is care: the program's own SIGSEGV handler must not displace ours (trap.c), the C
 * library's clocks read the counter too (in the vDSO; there it stays real), and the setting survives exec, where it
 * would kill the next program before anybody could help it: spawn.c takes it back.
 */
#include "simfab/preload/clock.h"

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

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool catching; /* our handler is installed */
static uint64_t khz = 2000000;
static uintptr_t vdso;
static __thread bool trapped; /* this thread's counter faults */

enum { VDSO_BYTES = 16384 };

static uint64_t real_tsc(void)
{
    uint32_t lo, hi;

    prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    return (uint64_t)hi << 32 | lo;
}

static uint64_t virtual_tsc(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ((uint64_t)ts.tv_sec * SFP_NS_PER_S + (uint64_t)ts.tv_nsec) * (khz / 1000) / 1000;
}

/* Bytes of the instruction at ip if it reads the counter, else 0. */
static int counter_instruction(const uint8_t *ip, const siginfo_t *info)
{
    if (info->si_code != SI_KERNEL) /* a bad address: its instruction may not even be readable */
        return 0;
    if (ip[0] == 0x0f && ip[1] == 0x31)
        return 2;                                                   /* rdtsc */
    return ip[0] == 0x0f && ip[1] == 0x01 && ip[2] == 0xf9 ? 3 : 0; /* rdtscp */
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t ip = (uintptr_t)r[REG_RIP];
    int bytes = counter_instruction((const uint8_t *)ip, info);
    int e = errno;
    uint64_t t;

    if (!bytes) {
        sfp_trap_pass_on(sig, info, context);
        return;
    }
    t = ip - vdso < VDSO_BYTES ? real_tsc() : virtual_tsc();
    r[REG_RAX] = (greg_t)(t & 0xffffffff);
    r[REG_RDX] = (greg_t)(t >> 32);
    if (bytes == 3)
        r[REG_RCX] = 0;
    r[REG_RIP] += bytes;
    errno = e;
}

/* The counter runs at the nominal frequency, which some programs compare with what they measure. */
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

static void install(void)
{
    const char *tsc = getenv("SIMFAB_TSC");

    if (!sfp_clock_is_virtual() || (tsc && !strcmp(tsc, "real")))
        return;
    read_frequency();
    vdso = getauxval(AT_SYSINFO_EHDR);
    catching = sfp_trap_take(SIGSEGV, on_fault, SA_ONSTACK);
}

void sfp_tsc_trap(void)
{
    pthread_once(&once, install);
    if (catching && !trapped)
        trapped = prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0;
}

bool sfp_tsc_release(void)
{
    int state = PR_TSC_ENABLE;

    /* asked from the kernel: a thread inherits the setting without having made it */
    if (!catching || prctl(PR_GET_TSC, &state, 0, 0, 0) || state != PR_TSC_SIGSEGV)
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

void sfp_tsc_trap(void)
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
