/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plane is a subnet with ports of this host, named by its master subnet manager. A port without an answering subnet
 * manager belongs to the plane of an opensm of ours that sees the port, because a busy subnet manager does not answer;
 * otherwise the port is a plane of its own. Promises to jobs hold on a plane only if a subnet manager gives its ports
 * the tables, so a plane without a subnet manager is reported by name.
 */
#ifndef FABRICD_FABRIC_PLANES_H
#define FABRICD_FABRIC_PLANES_H

#include "fabricd/fabric/sms.h"
#include "fabricd/fabric/verdicts.h"

/* A subnet manager of a plane that is not its master. */
struct plane_standby {
    uint64_t guid;
    char node[65];           /* the description of its node */
    bool answers, is_ours;   /* the latter: at a port of this host */
    uint8_t priority, state; /* planes_sm_states */
    struct sm_verdict had;   /* as master; at 0: never seen */
};

struct plane {
    struct smp_port port; /* of this host, to ask the plane from */
    unsigned num_ports;   /* of this host, in the plane */
    const char *config;   /* of our opensm for the plane, or NULL */
    bool answers;         /* a master subnet manager does; then: */
    uint16_t sm_lid;
    uint64_t sm_guid;
    uint8_t sm_priority;
    bool is_ours; /* the master is at a port of this host */
    /* of the last look, if there is a policy (planes_take) */
    bool compared;
    unsigned differences;
    struct sm_verdict had; /* of the master */
    char sm_node[65];      /* the description of the master's node, if the whole plane was read */
    struct plane_standby standby[VERIFY_SMS_MAX];
    unsigned num_standbys;
};

extern const char *const planes_sm_states[4];

/* How many. */
unsigned planes_look(const struct sms *s, struct plane plane[VERIFY_SUBNETS_MAX]);

/*
 * Planes without a subnet manager although an opensm configured for this host does not run: their number, and the
 * remedy, a line for each.
 */
unsigned planes_missing(const struct sms *s, const struct conf *c, struct text *why);

/*
 * The planes, without config, which is the manager's, and for the status a line each, with the result of the last look
 * and the other subnet managers. want NULL: no policy is in force. A master on another host that leaves ports without
 * the policy for longer than a roll-out takes is noted in r; v gets the verdicts of this look. Returns the number of
 * planes.
 */
unsigned planes_take(const struct sms *s, const struct qos_tables *want, const struct plane_tables *planes,
                     struct verify_result *r, struct plane plane[VERIFY_SUBNETS_MAX], struct sm_verdicts *v,
                     struct text *out);

#endif
