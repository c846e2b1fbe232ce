/* SPDX-License-Identifier: BSD-3-Clause */
/* How many queue pairs adapters serve at their full rate. */
#include "libmrmpi/verbs/contexts.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/select.h"
#include "libmrmpi/verbs/verbs.h"

/*
 * By the number of the part. Published: 16 connections for each of 8 processes on ConnectX (M. Koop, T. Jones, D.
 * Panda, "MVAPICH-Aptus", IPDPS 2008); with 5000 connections a ConnectX-5 has lost half of its rate (A. Kalia, M.
 * Kaminsky, D. Andersen, "Datacenter RPCs can be General and Fast", NSDI 2019), and a datagram still costs more there,
 * because the receiver has to acknowledge it: for current adapters, the connections of 128 ranks of a host with 128
 * others. Values between are an estimate.
 */
static const struct {
    unsigned first, last, contexts;
} parts[] = {
    {4099, 4112, 1024},  /* ConnectX-3, and its virtual functions */
    {23108, 26999, 128}, /* InfiniHost, ConnectX, ConnectX-2 */
};

unsigned mr_contexts_of(const char *type)
{
    unsigned long part = type && !strncmp(type, "MT", 2) ? strtoul(type + 2, NULL, 10) : 0;

    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        if (part >= parts[i].first && part <= parts[i].last)
            return parts[i].contexts;
    return MR_CONTEXTS_CURRENT;
}

static unsigned contexts_of_device(const struct ibv_device *dev)
{
    char path[IBV_SYSFS_PATH_MAX + sizeof "/hca_type"], type[64] = "";
    FILE *f;

    snprintf(path, sizeof path, "%s/hca_type", dev->ibdev_path);
    f = fopen(path, "re");
    if (!f)
        return MR_CONTEXTS_CURRENT;
    if (!fgets(type, sizeof type, f))
        *type = 0;
    fclose(f);
    return mr_contexts_of(type);
}

bool mr_verbs_present(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    bool present = list && *list;

    if (list)
        ibv_free_device_list(list);
    return present;
}

unsigned mr_verbs_contexts(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    unsigned least = MR_CONTEXTS_CURRENT;

    for (unsigned i = 0; list && list[i]; i++) {
        unsigned contexts;

        if (!mr_device_selected(mr_config.devices, ibv_get_device_name(list[i]), 0))
            continue;
        contexts = contexts_of_device(list[i]);
        least = contexts < least ? contexts : least;
    }
    if (list)
        ibv_free_device_list(list);
    return least;
}
