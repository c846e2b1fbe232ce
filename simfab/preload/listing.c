/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Directories of the shadow are listed in the order of their names. A program that takes "the first device" takes the
 * first entry of readdir(), and file systems differ: the same device must be first wherever $SIMFAB_DIR is.
 *
 * An open directory of the shadow has a struct listing; all others go straight on. The list is short (a program has few
 * of them open) and guarded by a lock; without any, the cost is one look at a counter.
 */
#include "simfab/preload/preload.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/preload/devices.h"

struct listing {
    struct listing *next;
    DIR *dir;
    struct dirent **entries;
    size_t num, at;
};

static pthread_mutex_t listings_lock = PTHREAD_MUTEX_INITIALIZER;
static struct listing *listings;
static unsigned num_listings;

static void listing_free(struct listing *l)
{
    for (size_t i = 0; i < l->num; i++)
        free(l->entries[i]);
    free(l->entries);
    free(l);
}

static int by_name(const void *a, const void *b)
{
    return strverscmp((*(struct dirent *const *)a)->d_name, (*(struct dirent *const *)b)->d_name);
}

static bool listing_read(struct listing *l)
{
    struct dirent *e;

    while ((e = SFP_REAL(readdir)(l->dir))) {
        struct dirent **more = reallocarray(l->entries, l->num + 1, sizeof(struct dirent *));
        struct dirent *copy = calloc(1, sizeof(*copy));

        if (more)
            l->entries = more;
        if (!more || !copy) {
            free(copy);
            return false;
        }
        memcpy(copy, e, e->d_reclen < sizeof(*copy) ? e->d_reclen : sizeof(*copy));
        l->entries[l->num++] = copy;
    }
    if (l->num)
        qsort(l->entries, l->num, sizeof(struct dirent *), by_name);
    return true;
}

DIR *sfp_dir_sorted(DIR *dir)
{
    struct listing *l = dir ? calloc(1, sizeof(*l)) : NULL;

    if (!l)
        return dir;
    l->dir = dir;
    if (!listing_read(l)) { /* no memory: unsorted is better than nothing */
        listing_free(l);
        SFP_REAL(rewinddir)(dir);
        return dir;
    }
    pthread_mutex_lock(&listings_lock);
    l->next = listings;
    listings = l;
    __atomic_store_n(&num_listings, num_listings + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&listings_lock);
    return dir;
}

/* The link that points at the directory's listing, or NULL. Lock held. */
static struct listing **find_listing(DIR *dir)
{
    for (struct listing **at = &listings; *at; at = &(*at)->next)
        if ((*at)->dir == dir)
            return at;
    return NULL;
}

static bool any_listing(void)
{
    return __atomic_load_n(&num_listings, __ATOMIC_ACQUIRE) != 0;
}

/* True if the directory is one of ours; *entry is then its next entry, NULL at the end. */
static bool next_entry(DIR *dir, struct dirent **entry)
{
    struct listing **at;

    if (!any_listing())
        return false;
    pthread_mutex_lock(&listings_lock);
    at = find_listing(dir);
    if (at)
        *entry = (*at)->at < (*at)->num ? (*at)->entries[(*at)->at++] : NULL;
    pthread_mutex_unlock(&listings_lock);
    return at != NULL;
}

SFP_EXPORT struct dirent *readdir(DIR *dir)
{
    struct dirent *entry;

    return next_entry(dir, &entry) ? entry : SFP_REAL(readdir)(dir);
}

SFP_EXPORT struct dirent64 *readdir64(DIR *dir)
{
    struct dirent *entry;

    _Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "one layout on 64-bit systems");
    return next_entry(dir, &entry) ? (struct dirent64 *)entry : SFP_REAL(readdir64)(dir);
}

SFP_EXPORT void rewinddir(DIR *dir)
{
    struct listing **at;

    if (any_listing()) {
        pthread_mutex_lock(&listings_lock);
        at = find_listing(dir);
        if (at)
            (*at)->at = 0;
        pthread_mutex_unlock(&listings_lock);
    }
    SFP_REAL(rewinddir)(dir);
}

SFP_EXPORT int closedir(DIR *dir)
{
    if (any_listing()) {
        struct listing **at, *l = NULL;

        pthread_mutex_lock(&listings_lock);
        at = find_listing(dir);
        if (at) {
            l = *at;
            *at = l->next;
            __atomic_store_n(&num_listings, num_listings - 1, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&listings_lock);
        if (l)
            listing_free(l);
    }
    return SFP_REAL(closedir)(dir);
}
