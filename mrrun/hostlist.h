/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts as named by users: in a list (--hosts a,b:2,c=DEVICE+DEVICE) or in a file with a host in each line. Pure: a
 * function from text to an array, owned by the struct.
 */
#ifndef MRRUN_HOSTLIST_H
#define MRRUN_HOSTLIST_H

#include <stddef.h>

struct mrrun_host {
    char *name;
    char *devices;        /* the HCAs of its ranks, in the form of MRMPI_DEVICES; NULL: not given */
    int slots, max_slots; /* room for ranks; 0: not given */
};

struct hostlist {
    struct mrrun_host *host;
    int count;
};

/*
 * "A,B:SLOTS,C=DEVICE+DEVICE,...", added to the list. A repeated name adds its slots, by default one. 0, or -1 with a
 * message in *why that names the option.
 */
int hostlist_add(struct hostlist *list, const char *text, const char *option, char *why, size_t cap);
/* The text of a host file: "HOST[:SLOTS][=DEVICES] [slots=N] [max_slots=N]  # comment" in each line. */
int hostlist_read(struct hostlist *list, const char *text, const char *file, char *why, size_t cap);
void hostlist_clear(struct hostlist *list);

#endif
