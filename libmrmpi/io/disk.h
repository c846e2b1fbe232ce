/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file system. Errors name the file, the attempted operation and the system's reason. With `freely`, reading and
 * writing give the library's lock away meanwhile.
 */
#ifndef MRMPI_IO_DISK_H
#define MRMPI_IO_DISK_H

#include "libmrmpi/core/core.h"

/* The error class of a system error. */
enum mr_err mr_disk_class(int system_error);
/* mr_fail with the class of it: `doing` "open" gives 'cannot open "NAME": REASON'. */
enum mr_err mr_disk_fail(int system_error, const char *doing, const char *name);

struct mr_disk {
    int fd;
    const char *name;
    bool freely;
};
/* The target of reads where the processor copies slowly: determined at the first read. */
extern enum mr_disk_mode { MR_DISK_UNTRIED, MR_DISK_DIRECT, MR_DISK_BUFFERED } mr_disk_mode;
/* *done is less than len at the end of the file only, or after an error. */
enum mr_err mr_disk_read(const struct mr_disk *d, void *buf, size_t len, int64_t at, size_t *done);
enum mr_err mr_disk_write(const struct mr_disk *d, const void *buf, size_t len, int64_t at, size_t *done);
/* The file system is not on another machine, as far as its kind tells. */
bool mr_disk_is_local(const struct mr_disk *d);
enum mr_err mr_disk_size(const struct mr_disk *d, int64_t *size);
/* Bytes [at, at + len) for this file handle of this process alone (fcntl, advisory); len 0: to the end of all files. */
enum mr_err mr_disk_lock(const struct mr_disk *d, bool exclusive, int64_t at, int64_t len);
bool mr_disk_can_lock(const struct mr_disk *d); /* the file may be written; nothing is locked then */
void mr_disk_unlock(const struct mr_disk *d, int64_t at, int64_t len);

#endif
