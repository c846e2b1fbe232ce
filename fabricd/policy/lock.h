/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.lock: what a policy is compiled with besides itself. It says which service levels each class has been given,
 * and what the fabric can do. Queue pairs carry service levels for as long as they live, so a level that a class has
 * had is given to no other meaning: a class keeps its levels when others come, go or change places, and a class that
 * leaves the policy stays as a retired line until the administrator forgets it. Lanes are not in the lock: they are
 * chosen anew by every compilation.
 *
 * Service level 0 is what traffic without a level has (IPoIB, other MPI libraries). It belongs to no class, and travels
 * with the default class's bulk. Only if 15 levels do not suffice the default class gets it, and must then stay the
 * default.
 *
 * A lock that a daemon wrote also says of which policy it is: hosts that follow files take a policy and a lock only
 * together, and a policy that is being written, or that was edited and not applied, goes with no lock.
 *
 * One that says `none generation=N` in its place tells them that by order no policy is in force any more.
 *
 * The text form has one line for the policy, one for the fabric, one for each plane where planes differ, and one a
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

/* What the fabric can do. Zero: not known; the compiler then assumes what all hardware has. */
struct fabric_caps {
    unsigned vls;               /* data VLs that every port can have */
    unsigned low_cap, high_cap; /* entries of the arbitration tables */
    unsigned mtu;               /* the largest of any link */
    unsigned rate_mbps;         /* data rate of the slowest link: 4X DDR is 16000 */
    unsigned hops;              /* links of the longest path that was seen */
    unsigned oversubscription;  /* adapters' ports that share a cable between switches: see cables.h */
};

/*
 * A plane (subnet) whose links can have other tables than those of the others: what it can do, and by which port it is
 * known, that of the host which manages it.
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
    uint64_t generation, digest; /* of the policy's text that it was put in force with; 0: not told */
    bool none;                   /* no policy is in force, by order, as this generation */
    struct fabric_caps fabric;
    unsigned num_planes; /* 0: what the fabric can do holds for each */
    struct lock_plane planes[LOCK_PLANES_MAX];
    unsigned num_classes;
    struct lock_class classes[LOCK_CLASSES_MAX];
};

/* False with errors in d, which name the line; l is then empty. An empty text is an empty lock. */
bool lock_parse(struct policy_lock *l, const char *text, size_t len, struct diag *d);
/* What lock_parse makes the same lock of. */
void lock_text(struct text *out, const struct policy_lock *l);
/* The same levels and facts, of whatever policy they are. */
bool lock_equal(const struct policy_lock *a, const struct policy_lock *b);

/* Of a policy's text, never 0: FNV-1a of 64 bits. It tells texts apart, and is no protection against forgery. */
uint64_t lock_digest(const char *policy, size_t len);

/* The class's line, or NULL. */
const struct lock_class *lock_find(const struct policy_lock *l, const char *name);
/* The class's service levels, a bit each. */
uint16_t lock_levels(const struct lock_class *c);
bool lock_knows_fabric(const struct policy_lock *l);

/*
 * What was seen of planes becomes the lock's facts: what holds for all; or, where tables of one do not suit another,
 * each one's, and as the fabric's those of the plane with the most lanes. Planes without a port that is up are left
 * out.
 */
void lock_take_planes(struct policy_lock *l, const struct fabric_caps *all, const struct lock_plane *seen, unsigned n);

/* Planes that another host did not see which wrote the lock: added, if they differ from what it tells. */
void lock_add_planes(struct policy_lock *l, const struct lock_plane *seen, unsigned n);

/*
 * The lock that follows old when p is put in force: all classes of p have the levels that they need, those of old keep
 * theirs, and classes that p does not have are retired. fabric NULL: as in old, with its planes; else there are none.
 * False with errors in d: levels have run out, or level 0 belongs to a class that is not the default; next is then not
 * to be used.
 */
bool lock_next(const struct policy *p, const struct policy_lock *old, const struct fabric_caps *fabric,
               struct policy_lock *next, struct diag *d);

/* The levels that fabricd gave out before there was a lock, so that they stay. False: the policy has too many. */
bool lock_of_before(const struct policy *p, struct policy_lock *out);

/*
 * Take from other what l does not know: the fabric, and classes of p; all classes if l has none. False if other
 * contradicts l: a class with other levels, or a level of another class. Then l's word counts, and such classes are not
 * taken.
 */
bool lock_merge(struct policy_lock *l, const struct policy_lock *other, const struct policy *p);

/*
 * Set levels free: all of a retired class, or those that a class of p (may be NULL) has and does not use. False: the
 * class is not there or has none to spare.
 */
bool lock_forget(struct policy_lock *l, const struct policy *p, const char *name);

/* Where the lock of a policy file is: x.yaml and x.yml have x.lock. False if it does not fit. */
bool lock_path(const char *policy_path, char *out, size_t size);

#endif
