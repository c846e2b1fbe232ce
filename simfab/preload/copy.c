/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of SFP_COPY_MIN bytes and more by a program or its libraries. If the model has a rate for copies, they take
 * virtual time, independent of the machine, so a message copied on its way is slower than a message without copies.
 * Copies that compilers inline, and loops, stay free.
 */
#include "simfab/preload/preload.h"

#include <sys/uio.h>

#include "simfab/preload/actor.h"

#define SFP_COPY_MIN 1024u

/* The C library's own, by names that are not taken here. */
void *plain_copy(void *to, const void *from, size_t n) __asm__("mempcpy");
void plain_move(const void *from, void *to, size_t n) __asm__("bcopy");

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *__memcpy_chk(void *to, const void *from, size_t n, size_t room);
void *__memmove_chk(void *to, const void *from, size_t n, size_t room);
void __chk_fail(void) __attribute__((noreturn));

static inline void take_time(size_t n)
{
    if (__builtin_expect(n >= SFP_COPY_MIN, 0))
        sfp_actor_copied(n);
}

/* A sanitizer has checking functions of these names: copies are free there. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
SFP_EXPORT void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    take_time(n);
    plain_copy(to, from, n);
    return to;
}

SFP_EXPORT void *memmove(void *to, const void *from, size_t n)
{
    take_time(n);
    plain_move(from, to, n);
    return to;
}

SFP_EXPORT void *__memcpy_chk(void *to, const void *from, size_t n, size_t room)
{
    if (n > room)
        __chk_fail();
    return memcpy(to, from, n);
}

SFP_EXPORT void *__memmove_chk(void *to, const void *from, size_t n, size_t room)
{
    if (n > room)
        __chk_fail();
    return memmove(to, from, n);
}
#endif

/* From another process's memory, and into it: the kernel copies, in the caller's time. */
SFP_EXPORT ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long num_to, const struct iovec *from,
                                    unsigned long num_from, unsigned long flags)
{
    ssize_t n = SFP_REAL(process_vm_readv)(pid, to, num_to, from, num_from, flags);

    if (n > 0)
        take_time((size_t)n);
    return n;
}

SFP_EXPORT ssize_t process_vm_writev(pid_t pid, const struct iovec *from, unsigned long num_from,
                                     const struct iovec *to, unsigned long num_to, unsigned long flags)
{
    ssize_t n = SFP_REAL(process_vm_writev)(pid, from, num_from, to, num_to, flags);

    if (n > 0)
        take_time((size_t)n);
    return n;
}
