/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory shared by processes of a node: a file without a name, made by one process, which publishes its pid and the
 * descriptor; the others open the file through /proc. Nothing is left behind, however the processes end.
 */
#ifndef MRMPI_MEMFILE_H
#define MRMPI_MEMFILE_H

#include <stddef.h>

/*
 * A descriptor of a file of `bytes` zero bytes, closed on exec; -1 and errno. name appears in /proc for people. The
 * file is a memfd, or, where there are none (a kernel before 3.17, a container that forbids them), a file in /dev/shm
 * if there is room for all of it now.
 */
int mr_memfile_make(const char *name, size_t bytes);
/*
 * Opens the file of another process of the same user, if the file has so many bytes; -1 and errno, EPROTO: it has not.
 */
int mr_memfile_open(int pid, int fd, size_t bytes);

#endif
