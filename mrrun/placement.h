/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which rank goes to which host: blocks of consecutive ranks, host by host. Pure; the arrays belong to the struct.
 */
#ifndef MRRUN_PLACEMENT_H
#define MRRUN_PLACEMENT_H

#include <stddef.h>

struct placement {
    int ranks;
    int num_hosts; /* hosts that got a rank: the first of the list */
    int *host_of;  /* [ranks] */
    int *first;    /* [num_hosts + 1] first rank of each host; the last entry is ranks */
};

/* ppn 0: as even as blocks of equal size allow. 0, or -1 with a message in *why. */
int placement_make(struct placement *p, int ranks, int num_hosts, int ppn, char *why, size_t cap);
/*
 * Which ranks share a host, as PMI's process mapping says it: "(vector,(first host,hosts,ranks),...)", hosts counted
 * from 0. Malloc'd; NULL: no memory.
 */
char *placement_map(const struct placement *p);
void placement_clear(struct placement *p);

#endif
