/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plane is a subnet that this host has ports in, known by its master subnet manager. A port at which none answers is
 * of the plane of an opensm of ours if it is seen from there, since a subnet manager that is busy does not answer; else
 * it is a plane of its own. What jobs are promised holds on a plane only if a subnet manager gives its ports the
 * tables, so a plane without one is told by name.
 */
#ifndef FABRICD_FABRIC_PLANES_H
#define FABRICD_FABRIC_PLANES_H

#include "fabricd/fabric/sms.h"

struct plane {
    struct smp_port port; /* of this host, from which it is looked at */
    unsigned num_ports;   /* of this host, in it */
    const char *config;   /* of our opensm that serves it, or NULL */
    bool answers;         /* a master subnet manager does; then: */
    uint16_t sm_lid;
    uint64_t sm_guid;
    uint8_t sm_priority;
    bool is_ours; /* the master is at a port of this host */
    /* of the last look, if there is a policy (planes_take) */
    bool compared;
    unsigned differences;
};

/* How many. */
unsigned planes_look(const struct sms *s, struct plane plane[VERIFY_SUBNETS_MAX]);

/*
 * Planes without a subnet manager, though an opensm that is configured for this host does not run: how many, and what
 * to do, a line for each.
 */
unsigned planes_missing(const struct sms *s, const struct conf *c, struct text *why);

/*
 * The planes, without config, which is the manager's, and for the status a line of each, with what the last look found
 * of what is wanted. want NULL: no policy is in force. How many.
 */
unsigned planes_take(const struct sms *s, const struct qos_tables *want, const struct plane_tables *planes,
                     const struct verify_result *r, struct plane plane[VERIFY_SUBNETS_MAX], struct text *out);

#endif
