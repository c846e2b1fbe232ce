/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a simulated host's sysfs. */
#ifndef SIMFAB_SYSFS_H
#define SIMFAB_SYSFS_H

#include <stddef.h>

struct host;

/*
 * The answer for path on host (below /sys/class/infiniband, infiniband_mad, infiniband_verbs, or in /dev/infiniband): a
 * struct sf_sysfs and its data into body. Returns the bytes written, 0 if cap is too small.
 */
size_t sysfs_answer(const struct host *host, const char *path, void *body, size_t cap);

#endif
