/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processors of each rank on this machine, according to --bind-to and --map-by, and the choice among units (the
 * smallest objects of the machine that take ranks). Pure.
 */
#ifndef MRRUN_BINDING_H
#define MRRUN_BINDING_H

#include <stdbool.h>
#include <stddef.h>

/* From small to large. */
enum binding_object {
    BINDING_NOT_SAID,
    BINDING_HWTHREAD,
    BINDING_CORE,
    BINDING_L2CACHE,
    BINDING_L3CACHE,
    BINDING_NUMA,
    BINDING_SOCKET,
    BINDING_NONE, /* anywhere */
};

struct binding_wish {
    enum binding_object to;  /* object that a rank may use ... */
    int units;               /* ... and their number; 0: one */
    enum binding_object map; /* one rank after the other goes to the next of these */
    bool report;
};

/* Of a part of a word, up to len; BINDING_NOT_SAID: none of them. */
enum binding_object binding_object_named(const char *name, size_t len);
const char *binding_object_name(enum binding_object object);
/* Whether ranks are bound at all. */
bool binding_wanted(const struct binding_wish *wish);
/* The object that ranks are bound to, and the unit of placement: the smaller of the bound and the mapped object. */
enum binding_object binding_target(const struct binding_wish *wish);
enum binding_object binding_unit(const struct binding_wish *wish);

struct binding_place {
    unsigned distance; /* of the unit from the rank's adapters */
    int parent;        /* its mapped-by object; -1: none */
    int taken;         /* ranks placed on the unit */
};

/*
 * For the next rank: the unit with the fewest ranks; of these, a unit of the mapped-by object with the fewest ranks
 * (parent_taken, counted up with the unit); of these the nearest; of these the first. -1: no unit.
 */
int binding_choose(struct binding_place *place, int num, int *parent_taken);

#endif
