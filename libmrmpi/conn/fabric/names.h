/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of services that the processes of a user on this host tell each other through fabricd, whatever jobs these
 * belong to. The names that this process has published end with its connection to the daemon, at the end of the process
 * or of the daemon. The connection is one of its own, opened when needed. Answers are waited for, but not for long.
 */
#ifndef MRMPI_FABRIC_NAMES_H
#define MRMPI_FABRIC_NAMES_H

#include <stddef.h>

/*
 * 0; -EEXIST: published already; -ENOENT: not published; -ENOSPC: the user has too many; -EINVAL: characters that are
 * not printable; -ENAMETOOLONG; -ENOTCONN: no daemon answers; -EMSGSIZE: the value is longer than cap.
 */
int mr_fabric_publish_name(const char *name, const char *value);
int mr_fabric_find_name(const char *name, char *value, size_t cap);
int mr_fabric_withdraw_name(const char *name);
void mr_fabric_names_close(void);

#endif
