/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tsc_refuse WHAT... -- CMD...: runs CMD as on a machine that lacks a feature.
 *
 *   trap    the kernel's trap of the time stamp counter is set, and does nothing, as under some hypervisors
 *   force   nobody writes into code by way of /proc/self/mem (proc_mem.force_override=never): no pwrite does anything
 *   exec    no memory is writable and executable at once
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field)         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define ANSWER(error)       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOW               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int set(struct sock_filter *filter, size_t n)
{
    const struct sock_fprog program = {(unsigned short)n, filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static int refuse(const char *what)
{
    struct sock_filter trap[] = {LOAD(nr), UNLESS(SYS_prctl, 3), LOAD(args[0]), UNLESS(PR_SET_TSC, 1), ANSWER(0),
                                 ALLOW};
    struct sock_filter force[] = {LOAD(nr), UNLESS(SYS_pwrite64, 1), ANSWER(EIO), ALLOW};
    struct sock_filter exec[] = {LOAD(nr),
                                 UNLESS(SYS_mprotect, 4),
                                 LOAD(args[2]),
                                 BPF_STMT(BPF_ALU | BPF_AND | BPF_K, PROT_WRITE | PROT_EXEC),
                                 UNLESS(PROT_WRITE | PROT_EXEC, 1),
                                 ANSWER(EACCES),
                                 ALLOW};

    if (!strcmp(what, "trap"))
        return set(trap, sizeof trap / sizeof *trap);
    if (!strcmp(what, "force"))
        return set(force, sizeof force / sizeof *force);
    if (!strcmp(what, "exec"))
        return set(exec, sizeof exec / sizeof *exec);
    errno = EINVAL;
    return -1;
}

int main(int argc, char **argv)
{
    int i = 1;

    for (; i < argc && strcmp(argv[i], "--"); i++)
        if (refuse(argv[i])) {
            perror(argv[i]);
            return 2;
        }
    if (i + 1 >= argc)
        return 2;
    execvp(argv[i + 1], argv + i + 1);
    perror(argv[i + 1]);
    return 127;
}
