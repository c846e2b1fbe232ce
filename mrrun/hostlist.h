/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts as users name them: in a list (--hosts a,b:2,c=DEVICE+DEVICE) or in a file with a host in each line. Pure: a
 * function from text to an array, which belongs to the struct.
 */
#ifndef MRRUN_HOSTLIST_H
#define MRRUN_HOSTLIST_H

#include <stddef.h>

struct mrrun_host {
    char *name;
    char *devices;        /* which HCAs its ranks may use, as MRMPI_DEVICES says it; NULL: not said */
    int slots, max_slots; /* ranks that it takes; 0: not said */
};

struct hostlist {
    struct mrrun_host *host;
    int count;
};

/*
 * "A,B:SLOTS,C=DEVICE+DEVICE,...", added to the list. A name that is there already adds its slots, one where none are
 * said. 0, or -1 with a message in *why that names the option.
 */
int hostlist_add(struct hostlist *list, const char *text, const char *option, char *why, size_t cap);
/* The text of a host file: "HOST[:SLOTS][=DEVICES] [slots=N] [max_slots=N]  # comment" in each line. */
int hostlist_read(struct hostlist *list, const char *text, const char *file, char *why, size_t cap);
void hostlist_clear(struct hostlist *list);

#endif
