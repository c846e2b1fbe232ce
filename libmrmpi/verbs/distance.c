/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The distance of this host's adapters from this process: between the NUMA nodes of the process's processors and that
 * of the adapter, according to hwloc.
 */
#include "libmrmpi/verbs/distance.h"

#include <hwloc.h>
#include <hwloc/openfabrics-verbs.h>
#include <stdio.h>

#include "libmrmpi/base/base.h"

/* As the firmware says; else whether they are the same. */
static unsigned node_distance(hwloc_topology_t t, unsigned from, unsigned to)
{
    struct hwloc_distances_s *matrix;
    hwloc_obj_t a = hwloc_get_numanode_obj_by_os_index(t, from), b = hwloc_get_numanode_obj_by_os_index(t, to);
    hwloc_uint64_t there = 0, back;
    unsigned n = 1;

    if (a && b && !hwloc_distances_get_by_name(t, "NUMALatency", &n, &matrix, 0) && n) {
        if (hwloc_distances_obj_pair_values(matrix, a, b, &there, &back))
            there = 0;
        hwloc_distances_release(t, matrix);
    }
    return there ? (unsigned)there : from == to ? MR_DISTANCE_NEAR : MR_DISTANCE_FAR;
}

unsigned mr_distance_of_nodes(hwloc_topology_t t, hwloc_const_nodeset_t from, hwloc_const_nodeset_t to)
{
    unsigned least = MR_DISTANCE_FAR, found = 0, a, b;

    hwloc_bitmap_foreach_begin(a, from) hwloc_bitmap_foreach_begin(b, to)
    {
        unsigned d = node_distance(t, a, b);

        least = !found++ || d < least ? d : least;
    }
    hwloc_bitmap_foreach_end();
    hwloc_bitmap_foreach_end();
    return found ? least : MR_DISTANCE_NEAR;
}

static hwloc_topology_t topology_load(void)
{
    hwloc_topology_t t;

    if (hwloc_topology_init(&t))
        return NULL;
    if (!hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) && !hwloc_topology_load(t))
        return t;
    hwloc_topology_destroy(t);
    return NULL;
}

/* The nodes of the process's processors; not those of its memory policy. */
static bool nodes_of_process(hwloc_topology_t t, hwloc_nodeset_t out)
{
    hwloc_cpuset_t cpus = hwloc_bitmap_alloc();
    bool ok = cpus && !hwloc_get_cpubind(t, cpus, HWLOC_CPUBIND_THREAD);

    if (ok)
        hwloc_cpuset_to_nodeset(t, cpus, out);
    hwloc_bitmap_free(cpus);
    return ok && !hwloc_bitmap_iszero(out);
}

static unsigned device_distance(hwloc_topology_t t, hwloc_const_nodeset_t ours, struct ibv_device *dev)
{
    hwloc_obj_t osdev = hwloc_ibv_get_device_osdev(t, dev), at;

    at = osdev ? hwloc_get_non_io_ancestor_obj(t, osdev) : NULL;
    return at && at->nodeset ? mr_distance_of_nodes(t, ours, at->nodeset) : MR_DISTANCE_NEAR;
}

/* -1: unknown. */
static int node_of_device(struct ibv_device *dev)
{
    char path[256];
    int node = -1;
    FILE *f;

    snprintf(path, sizeof path, "/sys/class/infiniband/%s/device/numa_node", ibv_get_device_name(dev));
    f = fopen(path, "re");
    if (f) {
        if (fscanf(f, "%d", &node) != 1)
            node = -1;
        fclose(f);
    }
    return node;
}

bool mr_distances_may_differ(struct ibv_device *const dev[], unsigned n)
{
    if (n > 1 && mr_config_foreign("HWLOC_XMLFILE"))
        return true; /* the kernel's value does not count */
    for (unsigned i = 1; i < n; i++)
        if (node_of_device(dev[i]) != node_of_device(dev[0]))
            return true;
    return false;
}

bool mr_distances_of(struct ibv_device *const dev[], unsigned n, unsigned out[])
{
    hwloc_nodeset_t ours = hwloc_bitmap_alloc();
    hwloc_topology_t t = topology_load();
    bool known = t && ours && nodes_of_process(t, ours);

    for (unsigned i = 0; i < n; i++)
        out[i] = known ? device_distance(t, ours, dev[i]) : MR_DISTANCE_NEAR;
    hwloc_bitmap_free(ours);
    if (t)
        hwloc_topology_destroy(t);
    return known;
}
