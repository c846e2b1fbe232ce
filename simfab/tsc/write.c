/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes into code through /proc/self/mem, as debuggers do: the page becomes this process's own copy, is never writable
 * and executable at once, and other threads run on. Kernels may forbid this (proc_mem.force_override). Then the page is
 * writable and executable for a moment, where the kernel allows that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simfab/tsc/tsc.h"
#include "simfab/tsc/write.h"

bool write_forced(void *at, uint8_t byte)
{
    int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC), e;
    ssize_t n;

    if (fd < 0)
        return false;
    n = pwrite(fd, &byte, 1, (off_t)(uintptr_t)at);
    e = errno;
    close(fd);
    errno = e;
    return n == 1;
}

/* The protection of the mapping around AT, from /proc; -1: none. */
static int protection(uintptr_t at)
{
    FILE *f = fopen("/proc/self/maps", "re");
    unsigned long from, to;
    char mode[5], line[512];
    int prot = -1;

    while (f && prot < 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) == 3 && from <= at && at < to)
            prot =
                (mode[0] == 'r' ? PROT_READ : 0) | (mode[1] == 'w' ? PROT_WRITE : 0) | (mode[2] == 'x' ? PROT_EXEC : 0);
    if (f)
        fclose(f);
    return prot;
}

bool write_unprotected(void *at, uint8_t byte)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *begin = (void *)((uintptr_t)at & ~(page - 1));
    int prot = protection((uintptr_t)at);

    if (prot < 0) {
        errno = EFAULT;
        return false;
    }
    if (mprotect(begin, page, prot | PROT_WRITE))
        return false;
    *(volatile uint8_t *)at = byte;
    mprotect(begin, page, prot);
    return true;
}

__attribute__((visibility("default"))) bool sft_write(void *at, uint8_t byte)
{
    return write_forced(at, byte) || write_unprotected(at, byte);
}
