/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kinds of hardware that processes can be restricted to (MPI-4.1 section 9.1.4), from the processor affinity and the
 * kernel's data about processors. The names have the provider "mrmpi"; MPI_Comm_split_type knows the standard's own
 * name for a node, mpi_shared_memory.
 */
#include "libmrmpi/api/hardware.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "libmrmpi/api/api.h"

/* A processor's resource is the first number in this file: its id, or the first of the processors that share it. */
static const struct {
    const char *name, *file;
} kinds[] = {
    {"mrmpi://node", NULL},
    {"mrmpi://package", "topology/physical_package_id"},
    {"mrmpi://l3cache", "cache/index3/shared_cpu_list"},
    {"mrmpi://core", "topology/thread_siblings_list"},
    {"mrmpi://hwthread", ""},
};
enum { NUM_KINDS = sizeof(kinds) / sizeof(kinds[0]), CPUS_MOST = 1 << 16 };

/* Of a processor; -1: not known. */
static int resource_of(int cpu, const char *file)
{
    char path[128];
    int id = -1;
    if (!*file)
        return cpu;
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    if (fscanf(f, "%d", &id) != 1 || id < 0)
        id = -1;
    fclose(f);
    return id;
}

static bool one_resource(const cpu_set_t *set, size_t bytes, int cpus, const char *file, int *instance)
{
    *instance = -1;
    for (int cpu = 0; cpu < cpus; cpu++) {
        if (!CPU_ISSET_S((size_t)cpu, bytes, set))
            continue;
        int id = resource_of(cpu, file);
        if (id < 0 || (*instance >= 0 && id != *instance))
            return false;
        *instance = id;
    }
    return *instance >= 0;
}

/* The kernel wants room for as many processors as it was built for. */
static bool by_affinity(const char *file, int *instance)
{
    for (int cpus = 1024; cpus <= CPUS_MOST; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        bool known = set && sched_getaffinity(0, bytes, set) == 0;
        bool one = known && one_resource(set, bytes, cpus, file, instance);
        if (set)
            CPU_FREE(set);
        if (known || !set)
            return one;
    }
    return false;
}

bool api_hardware_instance(const char *kind, int *instance)
{
    *instance = 0;
    for (int k = 0; k < NUM_KINDS; k++)
        if (strcmp(kind, kinds[k].name) == 0)
            return !kinds[k].file || by_affinity(kinds[k].file, instance);
    return false;
}

MPI_FN(int, Get_hw_resource_info, (MPI_Info * hw_info))
{
    int instance;
    API_ENTER_ANY();
    NOT_NULL(hw_info);
    struct mr_info *i = mr_info_new();
    for (int k = 0; i && k < NUM_KINDS; k++) {
        if (!mr_info_set(i, kinds[k].name, api_hardware_instance(kinds[k].name, &instance) ? "true" : "false")) {
            mr_info_put(i);
            i = NULL;
        }
    }
    err = api_new_info(i, hw_info);
    API_LEAVE_ANY();
}
