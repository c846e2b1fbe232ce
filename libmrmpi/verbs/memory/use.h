/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations as they are used: found in the cache, paged on demand, or made. With the library's lock.
 */
#ifndef MRMPI_MEMORY_USE_H
#define MRMPI_MEMORY_USE_H

#include "libmrmpi/verbs/memory/regcache.h"

struct mr_regs {
    struct mr_regcache cache;
    const char *unwatched; /* why nothing stays registered beyond its use; NULL: unmappings are noted (watch.h) */
    /*
     * Registering memory, and giving it back, takes microseconds without polling: the number of such times, and whether
     * completions of that time may not have been found yet: mr_regs_is_behind().
     */
    unsigned away;
    bool behind;
    unsigned emptied[MR_RAILS_MAX]; /* mr_rail.emptied at its beginning */
    size_t num_alone;               /* registrations outside of the cache */
};
extern struct mr_regs mr_regs;

void mr_regs_open(void);
void mr_regs_close(void);
/*
 * Registers memory, or finds it registered. pinned: its pages must be present, because the sender does not wait for
 * them. 0; negative errno: logged. mr_regs_release() gives it back.
 */
int mr_regs_get(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg **out);
int mr_regs_get_with(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg_wish wish,
                     struct mr_reg **out);
void mr_regs_release(struct mr_reg *r);
/*
 * The same bytes and no others, outside of the cache, pinned: after its end no key reaches the memory any more. With
 * all devices for writing (MR_ACCESS_TARGET), or with one that has atomics (MR_ACCESS_ATOMIC): -EOPNOTSUPP, if none
 * has. Errors are not logged: the caller has another way.
 */
int mr_regs_get_alone(void *buf, size_t len, enum mr_access access, struct mr_reg **out);
void mr_regs_end_alone(struct mr_reg *r);
/*
 * True if completions that arrived while memory was registered may not have been found yet (net/stripe/adapt.h). They
 * have been found when a poll has found nothing, or, on a busy network, when each rail's queue has been emptied twice:
 * the results of the first poll are handled before the second.
 */
bool mr_regs_is_behind(void);
/* True if registered with all devices, for writing. */
bool mr_regs_has(const void *buf, size_t len);
/* True if registered with some. */
bool mr_regs_has_some(const void *buf, size_t len);
uint32_t mr_regs_devices(void); /* set of working devices */

#endif
