/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where ranks can run: on this machine, or on the hosts of the simulated fabric whose directory is in SIMFAB_DIR (asked
 * from the simfab command, which also starts programs there).
 */
#ifndef MRRUN_HOSTS_H
#define MRRUN_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

struct hosts {
    char **name;
    int count;
    char *simfab; /* path of the command; NULL on a plain machine */
};

/* wanted (may be NULL) picks hosts by name. bin_dir is where mrrun lives. 0, or -1 with a message in *why. */
int hosts_find(struct hosts *h, char *const *wanted, int num_wanted, const char *bin_dir, char *why, size_t cap);
void hosts_clear(struct hosts *h);

#endif
