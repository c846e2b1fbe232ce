/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loaded objects (the program and its libraries): the first allocator, whether an allocator unmaps memory unseen,
 * and memory that disappears with an unloaded library: the loader unmaps by itself, and only its count of objects
 * tells.
 */
#ifndef MRMPI_OBJECTS_H
#define MRMPI_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/verbs/memory/image.h"

#define MR_ALLOCATOR_NAME 64

struct mr_allocators {
    char front[MR_ALLOCATOR_NAME];  /* the object that has the first malloc in the search order */
    bool c_library;                 /* the C library */
    char unseen[MR_ALLOCATOR_NAME]; /* the first allocator with system calls of its own; empty: none */
};

/* The next object of the search order. */
void mr_allocators_add(struct mr_allocators *a, const struct mr_image *m, const char *path);

/* Of this process, in any search order: libraries that see themselves first may have an allocator for themselves. */
void mr_objects_find_allocators(struct mr_allocators *out);

struct mr_objects_count {
    unsigned long long loaded, unloaded; /* ever */
};
struct mr_objects_count mr_objects_count(void);
/* True if some of [start, end) belongs to a library, which may be unloaded. */
bool mr_objects_have(uintptr_t start, uintptr_t end);

#endif
