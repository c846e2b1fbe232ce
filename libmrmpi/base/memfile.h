/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that processes of a node share: a file without a name, made by one of them, which says its pid and the
 * descriptor, and opened by the others through /proc. Nothing is left behind, however they end.
 */
#ifndef MRMPI_MEMFILE_H
#define MRMPI_MEMFILE_H

#include <stddef.h>

/*
 * A descriptor of so many bytes, all 0, which is closed on exec; -1: errno says why there is none. name is for people
 * who look into /proc. A memfd, or, where those are not to be had (a kernel before 3.17, a container that forbids
 * them), a file in /dev/shm if that has room for all of it now.
 */
int mr_memfile_make(const char *name, size_t bytes);
/* That of another process of the same user, if it has so many bytes; -1 and errno, EPROTO: it has not. */
int mr_memfile_open(int pid, int fd, size_t bytes);

#endif
