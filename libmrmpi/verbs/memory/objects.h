/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loaded objects (the program and its libraries): which allocator is in front, whether one unmaps memory unseen,
 * and which memory goes when a library is unloaded: the loader does that by itself, only its count of objects tells.
 */
#ifndef MRMPI_OBJECTS_H
#define MRMPI_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/verbs/memory/image.h"

#define MR_ALLOCATOR_NAME 64

struct mr_allocators {
    char front[MR_ALLOCATOR_NAME];  /* the object that has the first malloc in the search order */
    bool c_library;                 /* it is the C library */
    char unseen[MR_ALLOCATOR_NAME]; /* the first allocator that makes system calls of its own; empty: none */
};

/* The next object of the search order. */
void mr_allocators_add(struct mr_allocators *a, const struct mr_image *m, const char *path);

/* Of this process, in any search order: libraries that see themselves first may have an allocator for themselves. */
void mr_objects_find_allocators(struct mr_allocators *out);

struct mr_objects_count {
    unsigned long long loaded, unloaded; /* ever */
};
struct mr_objects_count mr_objects_count(void);
/* Some of [start, end) belongs to a library, which may be unloaded. */
bool mr_objects_have(uintptr_t start, uintptr_t end);

#endif
