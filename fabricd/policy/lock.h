/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.lock: the second input of the compiler, beside the policy. The lock has the service levels assigned to each
 * class, and the abilities of the fabric. Queue pairs carry service levels for life, so an assigned level never gets
 * another meaning: a class keeps its levels when others come, go or change places, and a class that leaves the policy
 * stays as a retired line until the administrator forgets it. Lanes are not in the lock: every compilation chooses
 * lanes anew.
 *
 * Service level 0 carries traffic without a level (IPoIB, other MPI libraries). Level 0 belongs to no class, and
 * travels with the default class's bulk. Only if 15 levels do not suffice the default class gets level 0, and must then
 * stay the default.
 *
 * A lock written by a daemon also names its policy: hosts that follow files take a policy and a lock only together. A
 * policy that is being written, or that was edited and not applied, matches no lock.
 *
 * A lock with the line `none generation=N` instead says that by order no policy is in force any more.
 *
 * The text form has one line for the policy, one for the fabric, one for each plane if planes differ, and one per
 * class:
 *
 *     lock 1
 *     policy generation=7 digest=8f3ac01d92e6b754
 *     fabric vls=8 low=8 high=8 mtu=2048 rate=16000 hops=2 oversubscription=1
 *     plane 0x0253460101000101 vls=4 low=8 high=8 mtu=2048 rate=16000 hops=2 oversubscription=1
 *     class urgent small=1 medium=2,3 bulk=4,5
 *     retired batch small=6 bulk=7
 */
#ifndef FABRICD_LOCK_H
#define FABRICD_LOCK_H

#include "fabricd/policy/policy.h"

#define SLS              16
#define LOCK_CLASSES_MAX (SLS / 2) /* each has a level for small messages and one for bulk */

/* Abilities of the fabric. Zero: unknown; the compiler then assumes the minimum of all hardware. */
struct fabric_caps {
    unsigned vls;               /* data VLs supported by every port */
    unsigned low_cap, high_cap; /* entries of the arbitration tables */
    unsigned mtu;               /* the largest of any link */
    unsigned rate_mbps;         /* data rate of the slowest link: 4X DDR is 16000 */
    unsigned hops;              /* links of the longest known path */
    unsigned oversubscription;  /* adapters' ports that share a cable between switches: see cables.h */
};

/*
 * A plane (subnet) with other possible tables than the others: its abilities, and the port that names the plane, a port
 * of the managing host.
 */
#define LOCK_PLANES_MAX 8
struct lock_plane {
    uint64_t guid;
    struct fabric_caps caps;
};

struct lock_class {
    char name[FD_NAME_MAX];
    bool retired; /* no longer in the policy */
    uint8_t sl_small;
    uint8_t num_medium, num_bulk; /* may be more than the class uses now */
    uint8_t sl_medium[FD_MEDIUM_MAX], sl_bulk[FD_LANES_MAX];
};

/* Plain data: copied by assignment, owns nothing. All zero: nothing given out, fabric not known. */
struct policy_lock {
    uint64_t generation, digest; /* of the policy's text in force; 0: not told */
    bool none;                   /* no policy is in force, by order, as this generation */
    struct fabric_caps fabric;
    unsigned num_planes; /* 0: the abilities of the fabric hold for each */
    struct lock_plane planes[LOCK_PLANES_MAX];
    unsigned num_classes;
    struct lock_class classes[LOCK_CLASSES_MAX];
};

/* False with errors in d, which name the line; l is then empty. An empty text is an empty lock. */
bool lock_parse(struct policy_lock *l, const char *text, size_t len, struct diag *d);
/* The text that lock_parse turns into the same lock. */
void lock_text(struct text *out, const struct policy_lock *l);
/* The same levels and facts, with any policy. */
bool lock_equal(const struct policy_lock *a, const struct policy_lock *b);

/* Of a policy's text, never 0: FNV-1a of 64 bits. It tells texts apart, and is no protection against forgery. */
uint64_t lock_digest(const char *policy, size_t len);

/* The class's line, or NULL. */
const struct lock_class *lock_find(const struct policy_lock *l, const char *name);
/* The class's service levels, a bit each. */
uint16_t lock_levels(const struct lock_class *c);
bool lock_knows_fabric(const struct policy_lock *l);

/*
 * Turns the observed planes into the lock's facts: the common abilities; or, if the tables of one plane do not suit
 * another, the abilities of each plane, and as the fabric's those of the plane with the most lanes. Planes without an
 * active port are left out.
 */
void lock_take_planes(struct policy_lock *l, const struct fabric_caps *all, const struct lock_plane *seen, unsigned n);

/* Adds planes that the host which wrote the lock did not see, if they differ from the lock's facts. */
void lock_add_planes(struct policy_lock *l, const struct lock_plane *seen, unsigned n);

/*
 * The lock that follows old when p is put in force: all classes of p have the necessary levels, classes of old keep
 * theirs, and classes missing in p are retired. fabric NULL: as in old, with its planes; else without planes. False
 * with errors in d: levels have run out, or level 0 belongs to a class other than the default; next must not be used
 * then.
 */
bool lock_next(const struct policy *p, const struct policy_lock *old, const struct fabric_caps *fabric,
               struct policy_lock *next, struct diag *d);

/* The levels assigned by fabricd before locks existed, so that they stay. False: the policy has too many. */
bool lock_of_before(const struct policy *p, struct policy_lock *out);

/*
 * Takes from other the facts missing in l: the fabric, and classes of p; all classes if l has none. False if other
 * contradicts l: a class with other levels, or a level of another class. Then l takes precedence, and such classes are
 * not taken.
 */
bool lock_merge(struct policy_lock *l, const struct policy_lock *other, const struct policy *p);

/*
 * Sets levels free: all levels of a retired class, or the unused levels of a class of p (may be NULL). False: the class
 * does not exist or has no unused levels.
 */
bool lock_forget(struct policy_lock *l, const struct policy *p, const char *name);

/* Where the lock of a policy file is: x.yaml and x.yml have x.lock. False if it does not fit. */
bool lock_path(const char *policy_path, char *out, size_t size);

#endif
