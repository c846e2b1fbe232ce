/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hosts of a job: this machine; the hosts of the simulated fabric in SIMFAB_DIR, as the simfab command lists them;
 * or other machines, named by the user or allocated by a scheduler. The user can divide this machine into several hosts
 * with HCAs of their own (A=DEVICE): ranks of different hosts then talk through the HCAs, as between machines.
 */
#ifndef MRRUN_HOSTS_H
#define MRRUN_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "mrrun/options.h"
#include "mrrun/placement.h"

struct hosts {
    char **name;
    char **devices; /* of each: MRMPI_DEVICES for its ranks, or NULL */
    struct placement_slots *slots;
    int count;
    int num_job;     /* the first hosts, for parts without hosts of their own */
    bool *far;       /* of each: another machine, or treated as one (--launcher) */
    char **launcher; /* words that start a program there; free() each, and the list */
    bool allocated;  /* by a scheduler: slots are its ranks per host, not a limit */
    char *here;      /* the name of a plain machine; NULL: hosts are simulated */
    char *simfab;    /* path of the command; NULL on a plain machine */
};

/*
 * Finds the hosts that the options name, or all hosts. bin_dir: the directory of mrrun. 0, or -1 with a message in
 * *why.
 */
int hosts_find(struct hosts *h, const struct mrrun_options *opts, const char *bin_dir, char *why, size_t cap);
/* Writes the numbers of a part's hosts to out, room for h->count. Returns how many; 0: all hosts. */
int hosts_of_part(const struct hosts *h, const struct mrrun_part *part, int *out);
/* Removes all other hosts. used: ascending numbers. */
void hosts_keep(struct hosts *h, const int *used, int num_used);
void hosts_clear(struct hosts *h);
/* Does the job need agents? If one host does, all do. */
bool hosts_far(const struct hosts *h);

#endif
