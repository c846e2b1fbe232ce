/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all files of libsimfab.so use; each file has a header of its name for the others. The library is preloaded into
 * unmodified programs, and keeps out of their way: every non-static name begins with sfp_ and is hidden, and only the
 * interposed functions are exported (SFP_EXPORT). Nothing happens before the program's first use of InfiniBand. Outside
 * a simulated host (SIM_HOST or SIMFAB_DIR unset) there are no devices, and every other interposed function goes
 * straight to the real function.
 *
 * Inside the library, system calls on our own descriptors use the sfp_sys_* wrappers below, because the C library's
 * names (read, poll, close, ...) may be interposed by this library.
 */
#ifndef SIMFAB_PRELOAD_H
#define SIMFAB_PRELOAD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simfab/proto.h"

#define SFP_EXPORT __attribute__((visibility("default")))

#define SFP_PS_PER_NS 1000ull
#define SFP_PS_PER_MS 1000000000ull
#define SFP_NS_PER_S  1000000000ull

/* The next definition of an interposed function; NULL: none. Use SFP_REAL, which caches the result. */
void *sfp_real(const char *name);
void *sfp_real_version(const char *name, const char *version);

#define SFP_REAL(name)                                                                                                 \
    ({                                                                                                                 \
        static __typeof__(&name) real_;                                                                                \
        __typeof__(&name) r_ = __atomic_load_n(&real_, __ATOMIC_RELAXED);                                              \
        if (!r_) {                                                                                                     \
            r_ = (__typeof__(&name))sfp_real(#name);                                                                   \
            __atomic_store_n(&real_, r_, __ATOMIC_RELAXED);                                                            \
        }                                                                                                              \
        r_;                                                                                                            \
    })

/* System calls that bypass interposition; they set errno as usual. */
/* The kernel's own entry: the C library's syscall() is interposed too. Sets errno. */
long sfp_syscall(long number, ...);
/*
 * The arguments of syscall(). Like the C library's own function, reads six, however many were passed: the kernel
 * ignores the rest.
 */
void sfp_syscall_arguments(long arg[6], va_list ap);

static inline int sfp_sys_close(int fd)
{
    return (int)sfp_syscall(SYS_close, fd);
}

static inline ssize_t sfp_sys_read(int fd, void *buf, size_t n)
{
    return sfp_syscall(SYS_read, fd, buf, n);
}

static inline ssize_t sfp_sys_write(int fd, const void *buf, size_t n)
{
    return sfp_syscall(SYS_write, fd, buf, n);
}

struct pollfd;
struct msghdr;

static inline int sfp_sys_poll(struct pollfd *fds, unsigned n, int ms)
{
    return (int)sfp_syscall(SYS_poll, fds, n, ms);
}

static inline ssize_t sfp_sys_sendmsg(int fd, const struct msghdr *m, int flags)
{
    return sfp_syscall(SYS_sendmsg, fd, m, flags);
}

static inline ssize_t sfp_sys_recvmsg(int fd, struct msghdr *m, int flags)
{
    return sfp_syscall(SYS_recvmsg, fd, m, flags);
}

static inline uint64_t sfp_now(const struct sf_actor *a)
{
    return __atomic_load_n(&a->clock_ps, __ATOMIC_RELAXED);
}

static inline void sfp_spend(struct sf_actor *a, uint64_t ps)
{
    __atomic_store_n(&a->clock_ps, sfp_now(a) + ps, __ATOMIC_RELAXED);
}

#endif
