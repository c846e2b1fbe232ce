/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Redirecting calls between libraries that are loaded already. A call from one to another goes through a slot that the
 * loader fills with the address of the first definition in its search order; where ours is not the first, the slots are
 * filled anew.
 */
#ifndef MRMPI_API_REBIND_H
#define MRMPI_API_REBIND_H

#include <stdbool.h>
#include <stddef.h>

struct rebinding {
    const char *name;
    void *to;
};

/*
 * In every object that is loaded, all slots of these names lead to the functions given, except in those objects where
 * the functions themselves are. False: not all could be changed, or this machine's relocations are not known.
 */
bool rebind_all(const struct rebinding *list, size_t n);
/* A number that grows whenever an object is loaded. */
unsigned long long rebind_objects_loaded(void);

#endif
