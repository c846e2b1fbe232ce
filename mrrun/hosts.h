/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where ranks can run: on this machine, or on the hosts of the simulated fabric whose directory is in SIMFAB_DIR (asked
 * from the simfab command, which also starts programs there). A plain machine can be several hosts, each with HCAs of
 * its own, where the user says which: ranks of different ones then talk through these, as they would between machines.
 */
#ifndef MRRUN_HOSTS_H
#define MRRUN_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "mrrun/options.h"

struct hosts {
    char **name;
    char **devices; /* of each: MRMPI_DEVICES for its ranks, or NULL */
    int count;
    char *simfab; /* path of the command; NULL on a plain machine */
};

/*
 * wanted (may be NULL) picks hosts by name, and says which HCAs to use there. bin_dir is where mrrun lives. 0, or -1
 * with a message in *why.
 */
int hosts_find(struct hosts *h, const struct mrrun_host *wanted, int num_wanted, const char *bin_dir, char *why,
               size_t cap);
void hosts_clear(struct hosts *h);

#endif
