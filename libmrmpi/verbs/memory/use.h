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
    /* To register memory, and to give it back, takes microseconds in which completions are not found: how often that
     * was, and whether those that came meanwhile may not have been found yet: mr_regs_is_behind(). */
    unsigned away;
    bool behind;
    unsigned emptied[MR_RAILS_MAX]; /* mr_rail.emptied when it began */
    size_t num_alone; /* registrations outside of the cache */
};
extern struct mr_regs mr_regs;

void mr_regs_open(void);
void mr_regs_close(void);
/*
 * Registers memory, or finds it registered. pinned: its pages must be present, since the sender does not wait for them.
 * 0; negative errno: that was logged. mr_regs_release() gives it back.
 */
int mr_regs_get(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg **out);
int mr_regs_get_with(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg_wish wish,
                     struct mr_reg **out);
void mr_regs_release(struct mr_reg *r);
/*
 * The same bytes and no others, outside of the cache, pinned: when it has ended no key reaches them any more. With all
 * devices to be written (MR_ACCESS_TARGET), or with one that has atomics (MR_ACCESS_ATOMIC): -EOPNOTSUPP, if none has.
 * Of errors nothing is said: it goes without.
 */
int mr_regs_get_alone(void *buf, size_t len, enum mr_access access, struct mr_reg **out);
void mr_regs_end_alone(struct mr_reg *r);
/*
 * Completions that came while memory was registered may not have been found yet (conn/route/adapt.h). They have when a
 * look at the network has found nothing, or, where there always is something, when each rail's queue has been emptied
 * twice: what the first look took is handled before the second one.
 */
bool mr_regs_is_behind(void);
/* It is registered with all devices, to be written. */
bool mr_regs_has(const void *buf, size_t len);
/* It is registered with some. */
bool mr_regs_has_some(const void *buf, size_t len);
uint32_t mr_regs_devices(void); /* set of those that work */

#endif
