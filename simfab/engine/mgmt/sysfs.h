/* SPDX-License-Identifier: BSD-3-Clause */
/* The files that programs of simulated hosts read. */
#ifndef SIMFAB_SYSFS_H
#define SIMFAB_SYSFS_H

#include <stddef.h>

struct host;

/*
 * What host sees at path (below /sys/class/infiniband, infiniband_mad, infiniband_verbs, or in /dev/infiniband):
 * a struct sf_sysfs and its data into body. Returns the bytes written, 0 when cap is too small.
 */
size_t sysfs_answer(const struct host *host, const char *path, void *body, size_t cap);

#endif
