/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that was asked for and has not been unmapped since: its first pages, by number. Of the pages for the same set
 * the latest are remembered. Pure.
 */
#ifndef MRMPI_ASKED_H
#define MRMPI_ASKED_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MR_ASKED_SETS   1024u
#define MR_ASKED_PLACES 4u /* places of a set */

struct mr_asked {
    uintptr_t page[MR_ASKED_SETS][MR_ASKED_PLACES]; /* the latest of a set comes first */
};

static inline uintptr_t *mr_asked_set(struct mr_asked *a, uintptr_t page)
{
    return a->page[(page ^ page / MR_ASKED_SETS) % MR_ASKED_SETS];
}

static inline bool mr_asked_has(struct mr_asked *a, uintptr_t page)
{
    const uintptr_t *set = mr_asked_set(a, page);

    for (unsigned k = 0; k < MR_ASKED_PLACES; k++)
        if (set[k] == page)
            return true;
    return false;
}

static inline void mr_asked_add(struct mr_asked *a, uintptr_t page)
{
    uintptr_t *set = mr_asked_set(a, page);

    memmove(set + 1, set, (MR_ASKED_PLACES - 1) * sizeof *set);
    *set = page;
}

static inline void mr_asked_forget_in(uintptr_t *set, uintptr_t first, uintptr_t last)
{
    for (unsigned k = 0; k < MR_ASKED_PLACES; k++)
        if (set[k] >= first && set[k] <= last)
            set[k] = 0;
}

/* All pages from first to last. */
static inline void mr_asked_forget(struct mr_asked *a, uintptr_t first, uintptr_t last)
{
    bool few = last - first < MR_ASKED_SETS;

    for (uintptr_t page = first; few && page <= last; page++)
        mr_asked_forget_in(mr_asked_set(a, page), page, page);
    for (unsigned i = 0; !few && i < MR_ASKED_SETS; i++)
        mr_asked_forget_in(a->page[i], first, last);
}

#endif
