/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places opensm. A fabric with parts not joined by cables is several subnets, each with its own opensm. The engine
 * lists the adapter ports in the order of hosts, a line each: SUBNET HOST DEVICE PORT GUID.
 */
#include "simfab/cmd/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/cmd/environ.h"
#include "simfab/cmd/query.h"
#include "simfab/cmd/say.h"

struct place {
    unsigned subnet;
    char host[64], guid[24];
};

/* The next line of *list; false at its end. */
static bool next_place(const char **list, struct place *p)
{
    int n = 0;

    if (sscanf(*list, "%u %63s %*s %*u %23s\n%n", &p->subnet, p->host, p->guid, &n) != 3 || !n)
        return false;
    *list += n;
    return true;
}

static unsigned count_subnets(const char *list)
{
    struct place p;
    unsigned most = 0;

    while (next_place(&list, &p))
        most = p.subnet > most ? p.subnet : most;
    return most;
}

/* The first port of host (NULL: of any) in the subnet. */
static bool find_place(const char *list, unsigned subnet, const char *host, struct place *p)
{
    while (next_place(&list, p))
        if (p->subnet == subnet && (!host || !strcmp(p->host, host)))
            return true;
    return false;
}

/* The host given for the subnet; else the first given host, if in the subnet; else the subnet's first host. */
static bool place_one(const struct options *o, const char *list, unsigned subnet, struct place *p)
{
    const char *host = subnet <= o->num_sm_hosts ? o->sm_hosts[subnet - 1] : NULL;

    if (host && !find_place(list, subnet, host, p)) {
        complain("--sm %s: the host has no cable into subnet %u", host, subnet);
        return false;
    }
    return host || (o->num_sm_hosts && find_place(list, subnet, o->sm_hosts[0], p)) ||
           find_place(list, subnet, NULL, p);
}

static bool place_all(struct run *r, const char *list, unsigned subnets)
{
    for (unsigned i = 0; i < subnets; i++) {
        struct sm *sm = &r->sm[i];
        struct place p;

        if (!place_one(r->opt, list, i + 1, &p))
            return false;
        *sm = (struct sm){.subnet = i + 1};
        snprintf(sm->name, sizeof sm->name, i ? "opensm-%u" : "opensm", i + 1);
        strcpy(sm->host, p.host);
        if (subnets > 1)
            strcpy(sm->port_guid, p.guid);
        r->num_sms++;
    }
    return true;
}

/* The i-th that was given stands by for the i-th subnet. */
static bool place_standbys(struct run *r, const char *list, unsigned subnets)
{
    const struct options *o = r->opt;

    for (unsigned i = 0; i < o->num_standby_hosts; i++) {
        struct sm *sm = &r->sm[r->num_sms];
        struct place p;

        if (i >= subnets || !find_place(list, i + 1, o->standby_hosts[i], &p)) {
            complain("--standby-sm %s: the host has no cable into subnet %u", o->standby_hosts[i], i + 1);
            return false;
        }
        if (!strcmp(p.host, r->sm[i].host)) {
            complain("--standby-sm %s: the subnet manager runs on that host already", p.host);
            return false;
        }
        *sm = (struct sm){.subnet = i + 1, .standby = true};
        snprintf(sm->name, sizeof sm->name, i ? "opensm-standby-%u" : "opensm-standby", i + 1);
        strcpy(sm->host, p.host);
        if (subnets > 1)
            strcpy(sm->port_guid, p.guid);
        r->num_sms++;
    }
    return true;
}

/* Without any cable, opensm runs on the first host nevertheless, and reports the state itself. */
static bool place_alone(struct run *r)
{
    char *hosts = query_text(r->dir, "", SF_OP_STATUS, "hosts");

    if (!hosts)
        return false;
    r->sm[0] = (struct sm){.name = "opensm", .subnet = 1};
    snprintf(r->sm[0].host, sizeof r->sm[0].host, "%.*s", (int)strcspn(hosts, "\n"), hosts);
    r->num_sms = 1;
    free(hosts);
    return true;
}

bool sms_place(struct run *r)
{
    const struct options *o = r->opt;
    unsigned subnets;
    char *list;
    bool ok;

    for (unsigned i = 0; i < o->num_sm_hosts; i++)
        if (!check_host(r->dir, o->sm_hosts[i]))
            return false;
    for (unsigned i = 0; i < o->num_standby_hosts; i++)
        if (!check_host(r->dir, o->standby_hosts[i]))
            return false;
    if (o->num_standby_hosts > SMS_MAX) {
        complain("--standby-sm: at most %d", SMS_MAX);
        return false;
    }
    list = query_text(r->dir, "", SF_OP_STATUS, "subnets");
    if (!list) {
        complain("the engine does not tell its subnets: %s", strerror(errno));
        return false;
    }
    subnets = count_subnets(list);
    if (subnets > SMS_MAX && o->opensm) {
        complain("%s has %u subnets without a cable between them: at most %d get an opensm; use --no-opensm",
                 o->topology, subnets, SMS_MAX);
        ok = false;
    } else if (subnets && o->num_sm_hosts > subnets) {
        complain("--sm was given %u times, but %s has %u subnet%s", o->num_sm_hosts, o->topology, subnets,
                 subnets == 1 ? "" : "s");
        ok = false;
    } else {
        subnets = subnets > SMS_MAX ? SMS_MAX : subnets;
        ok = (subnets ? place_all(r, list, subnets) : place_alone(r)) && place_standbys(r, list, subnets);
    }
    free(list);
    return ok;
}
