/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/processors.h"

#include <errno.h>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/verbs/distance.h"

enum { PROCESSORS_MOST = 8192 };

/* A unit of ranks' placement: an object of the machine, or several consecutive objects. */
struct unit {
    hwloc_bitmap_t set;
};

struct machine {
    hwloc_topology_t topology;
    hwloc_bitmap_t allowed; /* mrrun's */
    struct unit *unit;
    struct binding_place *place; /* [num_units] */
    int num_units;
    int *parent_taken;
};

static const hwloc_obj_type_t types[] = {
    [BINDING_HWTHREAD] = HWLOC_OBJ_PU,     [BINDING_CORE] = HWLOC_OBJ_CORE,     [BINDING_L2CACHE] = HWLOC_OBJ_L2CACHE,
    [BINDING_L3CACHE] = HWLOC_OBJ_L3CACHE, [BINDING_NUMA] = HWLOC_OBJ_NUMANODE, [BINDING_SOCKET] = HWLOC_OBJ_PACKAGE,
};

/* NULL after the last. */
static hwloc_obj_t nth_object(const struct machine *m, enum binding_object kind, int n)
{
    return hwloc_get_obj_by_type(m->topology, types[kind], (unsigned)n);
}

static bool read_allowed(struct machine *m)
{
    size_t bytes = CPU_ALLOC_SIZE(PROCESSORS_MOST);
    cpu_set_t *set = CPU_ALLOC(PROCESSORS_MOST);
    bool ok;

    m->allowed = hwloc_bitmap_alloc();
    if (set)
        CPU_ZERO_S(bytes, set);
    ok = set && m->allowed && !sched_getaffinity(0, bytes, set);
    for (int i = 0; ok && i < PROCESSORS_MOST; i++)
        if (CPU_ISSET_S(i, bytes, set))
            hwloc_bitmap_set(m->allowed, (unsigned)i);
    if (set)
        CPU_FREE(set);
    return ok;
}

static bool load_machine(struct machine *m)
{
    if (!read_allowed(m) || hwloc_topology_init(&m->topology))
        return false;
    return !hwloc_topology_set_io_types_filter(m->topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) &&
           !hwloc_topology_load(m->topology);
}

static void forget_machine(struct machine *m)
{
    for (int i = 0; i < m->num_units; i++)
        hwloc_bitmap_free(m->unit[i].set);
    free(m->unit);
    free(m->place);
    free(m->parent_taken);
    hwloc_bitmap_free(m->allowed);
    if (m->topology)
        hwloc_topology_destroy(m->topology);
}

/* The object of this kind with the unit's first processor. -1: none. */
static int parent_of(const struct machine *m, enum binding_object kind, hwloc_const_bitmap_t unit)
{
    hwloc_obj_t parent;
    int first = hwloc_bitmap_first(unit);

    for (int i = 0; (parent = nth_object(m, kind, i)); i++)
        if (hwloc_bitmap_isset(parent->cpuset, (unsigned)first))
            return i;
    return -1;
}

/* Objects of the unit's kind that mrrun may use, grouped into units; a rest that is too small is left over. */
static bool find_units(struct machine *m, const struct binding_wish *wish)
{
    int per_unit = wish->units ? wish->units : 1, objects = 0, num, parents = 0;
    hwloc_obj_t obj;

    num = hwloc_get_nbobjs_by_type(m->topology, types[binding_unit(wish)]);
    if (num > 0)
        m->unit = calloc((size_t)num, sizeof(*m->unit));
    if (wish->map && wish->map != BINDING_NONE)
        parents = hwloc_get_nbobjs_by_type(m->topology, types[wish->map]);
    m->place = calloc((size_t)(num > 0 ? num : 0) + 1, sizeof(*m->place));
    m->parent_taken = calloc((size_t)(parents > 0 ? parents : 0) + 1, sizeof(int));
    for (int i = 0; m->unit && m->place && m->parent_taken && (obj = nth_object(m, binding_unit(wish), i)); i++) {
        if (!hwloc_bitmap_intersects(obj->cpuset, m->allowed))
            continue;
        if (objects % per_unit == 0)
            m->unit[m->num_units++].set = hwloc_bitmap_alloc();
        struct unit *u = &m->unit[m->num_units - 1];
        if (!u->set)
            return false;
        hwloc_bitmap_or(u->set, u->set, obj->cpuset);
        hwloc_bitmap_and(u->set, u->set, m->allowed);
        objects++;
    }
    if (objects % per_unit && m->num_units > 1)
        hwloc_bitmap_free(m->unit[--m->num_units].set);
    for (int i = 0; i < m->num_units; i++)
        m->place[i].parent = parents > 0 ? parent_of(m, wish->map, m->unit[i].set) : -1;
    return m->num_units > 0;
}

/* ---- distances from adapters ------------------------------------------------------------------------------------- */

static unsigned sets_distance(hwloc_topology_t t, hwloc_const_bitmap_t processors, hwloc_const_nodeset_t nodes)
{
    hwloc_nodeset_t ours = hwloc_bitmap_alloc();
    unsigned d;

    if (!ours)
        return MR_DISTANCE_NEAR;
    hwloc_cpuset_to_nodeset(t, processors, ours);
    d = mr_distance_of_nodes(t, ours, nodes);
    hwloc_bitmap_free(ours);
    return d;
}

/* Is a device in a list of DEVICE and DEVICE:PORT? */
static bool is_listed(const char *list, const char *device)
{
    size_t len = strlen(device);

    for (const char *p = list; *p; p += *p == ',') {
        if (!strncmp(p, device, len) && (!p[len] || p[len] == ',' || p[len] == ':'))
            return true;
        p += strcspn(p, ",");
    }
    return false;
}

/* Of all units from the nearest of these adapters; all the same where there are none. */
static void set_distances(struct machine *m, const char *devices)
{
    hwloc_obj_t dev = NULL;

    for (int i = 0; i < m->num_units; i++)
        m->place[i].distance = devices && *devices ? 2 * MR_DISTANCE_FAR : MR_DISTANCE_NEAR;
    while (devices && *devices && (dev = hwloc_get_next_osdev(m->topology, dev))) {
        hwloc_obj_t at = hwloc_get_non_io_ancestor_obj(m->topology, dev);

        if (!dev->name || !is_listed(devices, dev->name) || !at || !at->nodeset)
            continue;
        for (int i = 0; i < m->num_units; i++) {
            unsigned d = sets_distance(m->topology, m->unit[i].set, at->nodeset);

            m->place[i].distance = d < m->place[i].distance ? d : m->place[i].distance;
        }
    }
}

/* ---- sets of ranks ----------------------------------------------------------------------------------------------- */

/* All processors of the objects that a unit has a part in, if ranks are bound to larger ones than units. */
static void widen(const struct machine *m, const struct binding_wish *wish, hwloc_bitmap_t set)
{
    hwloc_bitmap_t unit = hwloc_bitmap_dup(set);
    hwloc_obj_t obj;

    for (int i = 0;
         unit && binding_target(wish) != binding_unit(wish) && (obj = nth_object(m, binding_target(wish), i)); i++)
        if (hwloc_bitmap_intersects(obj->cpuset, unit))
            hwloc_bitmap_or(set, set, obj->cpuset);
    hwloc_bitmap_and(set, set, m->allowed);
    hwloc_bitmap_free(unit);
}

static bool keep_set(struct processors *p, int rank, hwloc_const_bitmap_t set)
{
    cpu_set_t *out = CPU_ALLOC(PROCESSORS_MOST);
    unsigned i;

    if (!out)
        return false;
    CPU_ZERO_S(p->bytes, out);
    hwloc_bitmap_foreach_begin(i, set) CPU_SET_S(i, p->bytes, out);
    hwloc_bitmap_foreach_end();
    p->set[rank] = out;
    return true;
}

static bool choose_sets(struct processors *p, struct machine *m, const struct binding_wish *wish,
                        const char *const *devices)
{
    for (int r = 0; r < p->ranks; r++) {
        if (r == 0 || devices[r] != devices[r - 1])
            set_distances(m, devices[r]);
        int chosen = binding_choose(m->place, m->num_units, m->parent_taken);
        hwloc_bitmap_t set = hwloc_bitmap_dup(m->unit[chosen].set);
        if (!set)
            return false;
        widen(m, wish, set);
        bool kept = keep_set(p, r, set);
        hwloc_bitmap_free(set);
        if (!kept)
            return false;
    }
    return true;
}

int processors_choose(struct processors *p, const struct binding_wish *wish, int ranks, const char *const *devices,
                      char *why, size_t cap)
{
    struct machine m = {.topology = NULL};
    bool ok = load_machine(&m);

    *p = (struct processors){
        .ranks = ranks, .bytes = CPU_ALLOC_SIZE(PROCESSORS_MOST), .set = calloc((size_t)ranks, sizeof(*p->set))};
    if (!ok || !p->set) {
        snprintf(why, cap, "--bind-to: the processors of this machine are not known: %s", strerror(errno));
        ok = false;
    } else if (!find_units(&m, wish)) {
        snprintf(why, cap, "--bind-to or --map-by: this machine has no %s that mrrun may use",
                 binding_object_name(binding_unit(wish)));
        ok = false;
    } else if (!choose_sets(p, &m, wish, devices)) {
        snprintf(why, cap, "out of memory");
        ok = false;
    }
    forget_machine(&m);
    if (!ok)
        processors_clear(p);
    return ok ? 0 : -1;
}

void processors_text(const struct processors *p, int rank, char *text, size_t cap)
{
    size_t n = 0;

    *text = '\0';
    for (int i = 0, last; i < PROCESSORS_MOST && n < cap; i = last + 1) {
        last = i;
        if (!CPU_ISSET_S(i, p->bytes, p->set[rank]))
            continue;
        while (last + 1 < PROCESSORS_MOST && CPU_ISSET_S(last + 1, p->bytes, p->set[rank]))
            last++;
        n += (size_t)snprintf(text + n, cap - n, last > i ? "%s%d-%d" : "%s%d", n ? "," : "", i, last);
    }
}

void processors_clear(struct processors *p)
{
    for (int r = 0; p->set && r < p->ranks; r++)
        if (p->set[r])
            CPU_FREE(p->set[r]);
    free(p->set);
    *p = (struct processors){0};
}

bool processors_are_fewer(int ranks)
{
    cpu_set_t set;

    return !sched_getaffinity(0, sizeof(set), &set) && ranks > CPU_COUNT(&set);
}
