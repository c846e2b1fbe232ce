/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where ranks can run: on this machine, or on the hosts of the simulated fabric whose directory is in SIMFAB_DIR (asked
 * from the simfab command, which also starts programs there), or on other machines, those that are named or those that
 * a scheduler has allocated. A plain machine can be several hosts, each with HCAs of
 * its own, where the user says which: ranks of different ones then talk through these, as they would between machines.
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
    int num_job;     /* the first ones, which parts without hosts of their own may use */
    bool *far;       /* of each: it is another machine, or to be treated as one (--launcher) */
    char **launcher; /* words that start a program there; free() each, and the list */
    bool allocated;  /* the scheduler's: slots are what it has given, not a bound */
    char *here;      /* the name of a plain machine; NULL: hosts are simulated */
    char *simfab;    /* path of the command; NULL on a plain machine */
};

/*
 * The hosts that the options name, or all that there are. bin_dir is where mrrun lives. 0, or -1 with a message in
 * *why.
 */
int hosts_find(struct hosts *h, const struct mrrun_options *opts, const char *bin_dir, char *why, size_t cap);
/* Numbers of a part's hosts into out, which has room for h->count; how many: 0 stands for all. */
int hosts_of_part(const struct hosts *h, const struct mrrun_part *part, int *out);
/* Leave out all but these, whose numbers are ascending. */
void hosts_keep(struct hosts *h, const int *used, int num_used);
void hosts_clear(struct hosts *h);
/* Has one of them to be reached by an agent? Then all have. */
bool hosts_far(const struct hosts *h);

#endif
