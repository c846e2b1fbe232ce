/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ends of other processes, as the launcher tells them: a client's thread notes each, the program's thread takes them.
 * The newest is first in the list; the taker turns the list round.
 */
#include <stdlib.h>

#include "libmrmpi/launch/backend.h"
#include "libmrmpi/launch/launch.h"

struct end {
    struct end *next;
    int rank;
};

static struct end *noted; /* exchanged as a whole: no thread waits for another */
static struct end *taken; /* in the order of the notes */
static void *pending;

void *const *mr_launch_ends(void)
{
    return &pending;
}

void mr_launch_note_end(int rank)
{
    struct end *e = malloc(sizeof(*e));

    if (!e)
        return;
    e->rank = rank;
    e->next = __atomic_load_n(&noted, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&noted, &e->next, e, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    __atomic_store_n(&pending, &pending, __ATOMIC_RELEASE);
}

static void take_noted(void)
{
    struct end *list = __atomic_exchange_n(&noted, NULL, __ATOMIC_ACQUIRE), *next;

    for (; list; list = next) {
        next = list->next;
        list->next = taken;
        taken = list;
    }
}

int mr_launch_next_end(void)
{
    struct end *e;
    int rank;

    if (!taken) {
        __atomic_store_n(&pending, NULL, __ATOMIC_RELAXED); /* before: an end noted now sets it again */
        take_noted();
    }
    e = taken;
    if (!e)
        return -1;
    taken = e->next;
    rank = e->rank;
    free(e);
    return rank;
}

void mr_launch_forget_ends(void)
{
    while (mr_launch_next_end() >= 0)
        ;
}
