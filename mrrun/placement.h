/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host and the part of the command line of each rank. The ranks of a part are consecutive. Pure; the arrays belong
 * to the struct.
 */
#ifndef MRRUN_PLACEMENT_H
#define MRRUN_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Ranks of a program. */
struct placement_part {
    int ranks;
    const int *hosts; /* numbers of the hosts for this part, in this order; NULL: all */
    int num_hosts;
};

struct placement_slots {
    int slots, max; /* 0: not said */
};

struct placement_wish {
    const struct placement_part *part;
    int num_parts;
    int num_hosts;
    const struct placement_slots *slots; /* [num_hosts], or NULL: no host says how many ranks it takes */
    int ppn;                             /* ranks per host at most; 0: as slots say, or evenly */
    bool by_node;                        /* host after host in turn, not filling one after the other */
    bool oversubscribe;                  /* more ranks than slots */
};

struct placement {
    int ranks;
    int num_hosts;   /* hosts with ranks */
    int *used;       /* [num_hosts] their numbers in the wish, ascending */
    int *host_of;    /* [ranks] index in used */
    int *local_rank; /* [ranks] number among the ranks of its host */
    int *ranks_of;   /* [num_hosts] ranks of each host */
    int num_parts;
    int *part_first; /* [num_parts + 1] first rank of each part; the last entry is ranks */
};

/* 0, or -1 with a message in *why. */
int placement_make(struct placement *p, const struct placement_wish *wish, char *why, size_t cap);
int placement_part_of(const struct placement *p, int rank);
/*
 * The ranks that share a host, in the form of PMI's process mapping: "(vector,(first host,hosts,ranks),...)", hosts
 * counted from 0. Malloc'd; NULL: no memory.
 */
char *placement_map(const struct placement *p);
void placement_clear(struct placement *p);

#endif
