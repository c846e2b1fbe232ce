/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/binding.h"

#include <string.h>

/* Messages show the first name of an object; further names are those of Hydra and Open MPI. */
static const struct {
    const char *name;
    enum binding_object object;
} names[] = {
    {"none", BINDING_NONE}, {"hwthread", BINDING_HWTHREAD}, {"pu", BINDING_HWTHREAD},
    {"core", BINDING_CORE}, {"l2cache", BINDING_L2CACHE},   {"l3cache", BINDING_L3CACHE},
    {"numa", BINDING_NUMA}, {"socket", BINDING_SOCKET},     {"package", BINDING_SOCKET},
};

enum binding_object binding_object_named(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i].name) == len && !memcmp(names[i].name, name, len))
            return names[i].object;
    return BINDING_NOT_SAID;
}

const char *binding_object_name(enum binding_object object)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].object == object)
            return names[i].name;
    return "nothing";
}

bool binding_wanted(const struct binding_wish *wish)
{
    enum binding_object target = binding_target(wish);

    return target != BINDING_NOT_SAID && target != BINDING_NONE;
}

enum binding_object binding_target(const struct binding_wish *wish)
{
    return wish->to ? wish->to : wish->map;
}

enum binding_object binding_unit(const struct binding_wish *wish)
{
    enum binding_object target = binding_target(wish);

    return wish->map && wish->map < target ? wish->map : target;
}

static bool is_better(const struct binding_place *a, const struct binding_place *b, const int *parent_taken)
{
    int here = a->parent < 0 ? 0 : parent_taken[a->parent], there = b->parent < 0 ? 0 : parent_taken[b->parent];

    if (a->taken != b->taken)
        return a->taken < b->taken;
    return here != there ? here < there : a->distance < b->distance;
}

int binding_choose(struct binding_place *place, int num, int *parent_taken)
{
    int best = -1;

    for (int i = 0; i < num; i++)
        if (best < 0 || is_better(&place[i], &place[best], parent_taken))
            best = i;
    if (best < 0)
        return -1;
    place[best].taken++;
    if (place[best].parent >= 0)
        parent_taken[place[best].parent]++;
    return best;
}
