/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time stamp counter where the kernel's trap does not work: instructions that read the counter are replaced by
 * instructions that trap. libsimfab-tsc.so finds them (simfab/tsc), and is loaded only here, so that other programs do
 * not pay for its disassembler.
 *
 * Objects loaded later are patched before any of their code runs, constructors included. After loading or unloading,
 * the loader calls an empty function, a stop for debuggers (r_brk). This function traps, too, and the loader calls us
 * instead. Interposing dlopen would not do: the loader searches according to its caller, and the C library does not go
 * through dlopen.
 */
#include "simfab/preload/tsc_patch.h"

#include <errno.h>
#include <pthread.h>

#include "simfab/preload/attach.h"
#include "simfab/preload/connect.h"
#include "simfab/preload/preload.h"

#if defined(__x86_64__)

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "simfab/tsc/tsc.h"

#define LIBRARY "libsimfab-tsc.so"

static sft_patch_loaded_fn *patch_loaded;
static sft_write_fn *write_byte;
static const uint8_t *loader; /* the loader's debugger stop */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Called by the loader instead of its empty function. The loader may assume that an empty function changes no register.
 */
__asm__(".pushsection .text\n"
        ".hidden sfp_patch_at_loader\n"
        ".globl sfp_patch_at_loader\n"
        ".type sfp_patch_at_loader, @function\n"
        "sfp_patch_at_loader:\n"
        "    .cfi_startproc\n"
        "    push %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    mov %rsp, %rbp\n"
        "    .cfi_def_cfa_register %rbp\n"
        "    push %rax\n"
        "    push %rcx\n"
        "    push %rdx\n"
        "    push %rsi\n"
        "    push %rdi\n"
        "    push %r8\n"
        "    push %r9\n"
        "    push %r10\n"
        "    push %r11\n"
        "    sub $520, %rsp\n"
        "    and $-16, %rsp\n"
        "    fxsave64 (%rsp)\n"
        "    call sfp_patch_loader_stopped\n"
        "    fxrstor64 (%rsp)\n"
        "    lea -72(%rbp), %rsp\n"
        "    pop %r11\n"
        "    pop %r10\n"
        "    pop %r9\n"
        "    pop %r8\n"
        "    pop %rdi\n"
        "    pop %rsi\n"
        "    pop %rdx\n"
        "    pop %rcx\n"
        "    pop %rax\n"
        "    pop %rbp\n"
        "    .cfi_def_cfa %rsp, 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size sfp_patch_at_loader, . - sfp_patch_at_loader\n"
        ".popsection\n");

__attribute__((used)) void sfp_patch_loader_stopped(void); /* from there */

/* Beside this library. */
static bool find_library(char path[PATH_MAX])
{
    const char *slash;
    Dl_info own;

    if (!dladdr(&lock, &own) || !own.dli_fname || !(slash = strrchr(own.dli_fname, '/')))
        return false;
    return snprintf(path, PATH_MAX, "%.*s/" LIBRARY, (int)(slash - own.dli_fname), own.dli_fname) < PATH_MAX;
}

/* Keeps a child from starting with half a list of patches. */
static void lock_patch_list(void)
{
    sfp_lock_awake(&lock);
}

static void after_fork(void)
{
    SFP_REAL(pthread_mutex_unlock)(&lock);
}

bool sfp_patch_load(void)
{
    static bool watches_forks; /* a child forked meanwhile begins again */
    char path[PATH_MAX];
    void *library;

    if (!watches_forks)
        watches_forks = pthread_atfork(lock_patch_list, after_fork, after_fork) == 0;
    library = find_library(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        return false;
    patch_loaded = (sft_patch_loaded_fn *)dlsym(library, "sft_patch_loaded");
    write_byte = (sft_write_fn *)dlsym(library, "sft_write");
    return patch_loaded && write_byte;
}

bool sfp_patch_byte(void *at)
{
    return write_byte(at, SFT_TRAP);
}

static bool patch_newly_loaded(void)
{
    struct sft_report report = {0};

    sfp_lock_awake(&lock);
    patch_loaded((const void *)sfp_patch_at_loader, &report); /* counter readings left unpatched */
    SFP_REAL(pthread_mutex_unlock)(&lock);
    return !report.refused;
}

bool sfp_patch_all(void)
{
    const uint8_t *stop = (const uint8_t *)_r_debug.r_brk;

    __atomic_store_n(&loader, stop, __ATOMIC_RELEASE); /* first: another thread may be there */
    return stop && write_byte((void *)stop, SFT_TRAP) && patch_newly_loaded();
}

bool sfp_patch_is_loader(const uint8_t *ip)
{
    const uint8_t *stop = __atomic_load_n(&loader, __ATOMIC_ACQUIRE);

    return stop && ip == stop;
}

/* Code loaded later could not be patched. */
static void tell_incomplete(void)
{
    if (sfp_proc.arena)
        __atomic_store_n(&sfp_proc.arena->tsc, SF_TSC_NO_WRITING, __ATOMIC_RELAXED);
}

void sfp_patch_loader_stopped(void)
{
    int e = errno;

    if (_r_debug.r_state == RT_CONSISTENT && !patch_newly_loaded())
        tell_incomplete();
    errno = e;
}

#endif
