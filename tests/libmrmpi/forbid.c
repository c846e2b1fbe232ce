/* SPDX-License-Identifier: BSD-3-Clause */
/* forbid CALL... -- CMD...: runs CMD as in a container whose seccomp filter answers these system calls with EPERM. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL(name)                                                                                                     \
    {                                                                                                                  \
#name, SYS_##name                                                                                              \
    }

static const struct {
    const char *name;
    unsigned number;
} calls[] = {CALL(bpf),
             CALL(get_mempolicy),
             CALL(kcmp),
             CALL(keyctl),
             CALL(mbind),
             CALL(memfd_create),
             CALL(move_pages),
             CALL(perf_event_open),
             CALL(pidfd_getfd),
             CALL(pidfd_open),
             CALL(process_vm_readv),
             CALL(process_vm_writev),
             CALL(ptrace),
             CALL(set_mempolicy),
             CALL(userfaultfd)};

static int forbid(unsigned number)
{
    struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

int main(int argc, char **argv)
{
    int i = 1;

    for (; i < argc && strcmp(argv[i], "--"); i++) {
        size_t c = 0;

        while (c < sizeof calls / sizeof *calls && strcmp(argv[i], calls[c].name))
            c++;
        if (c == sizeof calls / sizeof *calls) {
            fprintf(stderr, "forbid: %s is not known\n", argv[i]);
            return 2;
        }
        if (forbid(calls[c].number)) {
            fprintf(stderr, "forbid: %s: %s\n", argv[i], strerror(errno));
            return 2;
        }
    }
    if (i + 1 >= argc) {
        fprintf(stderr, "usage: forbid CALL... -- CMD...\n");
        return 2;
    }
    execvp(argv[i + 1], argv + i + 1);
    perror(argv[i + 1]);
    return 2;
}
