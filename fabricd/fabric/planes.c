/* SPDX-License-Identifier: BSD-3-Clause */
/* See planes.h. Attributes' layouts are those of the InfiniBand specification, volume 1, 14.2.5. */
#include "fabricd/fabric/planes.h"
#include "fabricd/fabric/ports.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { SM_STATE_MASTER = 3 };

static uint64_t get64(const uint8_t *p)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < 8; i++)
        v = v << 8 | p[i];
    return v;
}

/* PortInfo says where the master is; whether a master is there, only its answer says. */
static void ask_plane(struct plane *p)
{
    struct smp_path here = {0}, there = {0};
    uint8_t d[64];
    struct smp *smp = smp_open(p->port.device, p->port.num);
    if (!smp)
        return;
    if (!smp_get(smp, &here, SMP_PORT_INFO, (uint32_t)p->port.num, d)) {
        uint16_t lid = (uint16_t)(d[16] << 8 | d[17]), lmc = d[34] & 7;
        p->sm_lid = there.lid = (uint16_t)(d[18] << 8 | d[19]);
        p->is_ours = lid && p->sm_lid >= lid && p->sm_lid < lid + (1u << lmc);
    }
    if (there.lid && !smp_get(smp, &there, SMP_SM_INFO, 0, d)) {
        p->sm_guid = get64(d);
        p->sm_priority = d[20] >> 4;
        p->answers = (d[20] & 15) == SM_STATE_MASTER;
    }
    smp_close(smp);
}

static bool same_port(const struct smp_port *a, const struct smp_port *b)
{
    return !strcmp(a->device, b->device) && a->num == b->num;
}

/* Our opensm for this port. An opensm that names no port serves the first. */
static const char *config_of(const struct sms *s, const struct smp_port *p, bool first)
{
    for (unsigned i = 0; i < s->num_ports; i++)
        if (same_port(&s->port[i], p) || (first && !s->port[i].device[0]))
            return s->sm[s->sm_of_port[i]].opensm.config;
    return NULL;
}

/* ---- ports whose subnet manager does not answer: it may be busy ---- */

/* A port of this host as the fabric knows it. */
struct own {
    uint64_t guid; /* of the node */
    uint8_t num;
    bool seen; /* from a port of one of our opensm */
};

static void see(void *arg, struct look *l, const struct node *n, const struct port *p, const struct port *ports,
                unsigned live)
{
    struct own *own = arg;
    if (n->type != TYPE_SWITCH && n->guid == own->guid && p->num == own->num)
        own->seen = true;
}

/* True if one of our opensm serves the port's subnet. */
static bool is_served(const struct sms *s, const struct smp_port *p)
{
    struct verify_options o = {.num_whole = s->num_ports, .visit = see};
    struct smp *smp = s->num_ports ? smp_open(p->device, p->num) : NULL;
    struct look l = {.smp = smp};
    struct node self = {0};
    struct verify_result r;
    int rc = smp ? node_read(&l, &self) : -ENODEV;
    struct own own = {.guid = self.guid, .num = self.entry};
    smp_close(smp);
    if (rc)
        return false;
    memcpy(o.whole, s->port, sizeof(o.whole));
    o.visit_arg = &own;
    verify_fabric(&o, NULL, &r);
    verify_result_free(&r);
    return own.seen;
}

unsigned planes_look(const struct sms *s, struct plane plane[VERIFY_SUBNETS_MAX])
{
    struct smp_port up[SMP_PORTS_MAX];
    unsigned n = 0, ports = smp_active_ports(up);
    for (unsigned i = 0; i < ports && n < VERIFY_SUBNETS_MAX; i++) {
        struct plane p = {.port = up[i], .num_ports = 1, .config = config_of(s, &up[i], !i)};
        unsigned k = 0;
        ask_plane(&p);
        if (!p.answers && !p.config && is_served(s, &up[i]))
            continue;
        while (k < n && !(p.answers && plane[k].answers && plane[k].sm_guid == p.sm_guid))
            k++;
        if (k == n) {
            plane[n++] = p;
            continue;
        }
        plane[k].num_ports++;
        plane[k].is_ours = plane[k].is_ours || p.is_ours;
        if (!plane[k].config && p.config) { /* the plane is read from the port that its opensm serves */
            plane[k].port = p.port;
            plane[k].config = p.config;
        }
    }
    return n;
}

unsigned planes_missing(const struct sms *s, const struct conf *c, struct text *why)
{
    struct plane plane[VERIFY_SUBNETS_MAX];
    unsigned n = s->n < c->num_opensm ? planes_look(s, plane) : 0, missing = 0;
    for (unsigned i = 0; i < n; i++) {
        if (plane[i].answers || plane[i].config)
            continue;
        text_printf(why, "%sthe plane at %s port %d has no subnet manager: of the configured opensm",
                    why->len ? "\n" : "", plane[i].port.device, plane[i].port.num);
        for (unsigned k = 0; k < c->num_opensm; k++) {
            bool runs = false;
            for (unsigned m = 0; m < s->n; m++)
                runs = runs || !strcmp(s->sm[m].opensm.config, c->opensm[k].config);
            if (!runs)
                text_printf(why, " the one that reads %s does not run", c->opensm[k].config);
        }
        missing++;
    }
    return missing;
}

/* The plane of a look that p is; NULL: it was not read. */
static const struct verify_plane *seen_plane(const struct verify_result *r, const struct plane *p, bool first)
{
    for (unsigned i = 0; i < r->num_planes; i++)
        if (same_port(&r->plane[i].from, &p->port) || (first && !r->plane[i].from.device[0]))
            return &r->plane[i];
    return NULL;
}

/* The result of a look at the plane, and whether its ports have the wanted tables. */
static void look_text(struct plane *p, const struct verify_plane *of, const struct verify_plane *v,
                      const struct qos_tables *want, const struct plane_tables *planes, struct text *out)
{
    text_printf(out, ", nodes: %u, ports: %u, can_vls: %u", v->nodes, v->ports, v->caps.vls);
    p->compared = want && !v->error;
    p->differences = v->differences;
    if (want)
        text_printf(out, ", vls: %u, differences: %u, state: %s", tables_of_plane(planes, want, of->from.guid)->vls,
                    v->differences,
                    v->error         ? "not seen"
                    : v->differences ? "differs"
                                     : "verified");
}

/* ---- subnet managers ---- */

const char *const planes_sm_states[] = {"not active", "discovering", "standby", "master"};

/* A port of this host. */
static bool is_here(uint64_t guid)
{
    struct smp_port up[SMP_PORTS_MAX];
    unsigned n = smp_active_ports(up);
    while (n && up[n - 1].guid != guid)
        n--;
    return n;
}

/* The subnet managers beside the master, and the ports as each left them when it was master. */
static void ask_standbys(struct plane *p, const struct verify_plane *v, const struct sm_verdicts *verdicts)
{
    const struct smp_port *from = v->from.device[0] ? &v->from : &p->port;
    struct smp *smp = v->num_sms ? smp_open(from->device, from->num) : NULL;
    for (unsigned i = 0; smp && i < v->num_sms; i++) {
        const struct verify_sm *sm = &v->sm[i];
        const struct sm_verdict *had = verdicts_find(verdicts, sm->guid);
        uint8_t d[64];
        if (sm->guid == p->sm_guid) {
            memcpy(p->sm_node, sm->node, sizeof(p->sm_node));
            continue;
        }
        struct plane_standby *s = &p->standby[p->num_standbys++];
        *s = (struct plane_standby){.guid = sm->guid, .answers = !smp_get(smp, &sm->path, SMP_SM_INFO, 0, d)};
        memcpy(s->node, sm->node, sizeof(s->node));
        if (s->answers) {
            s->priority = d[20] >> 4;
            s->state = d[20] & 3;
        }
        s->is_ours = is_here(sm->guid);
        if (had)
            s->had = *had;
    }
    smp_close(smp);
}

static void standbys_text(const struct plane *p, struct text *out)
{
    for (unsigned i = 0; i < p->num_standbys; i++) {
        const struct plane_standby *s = &p->standby[i];
        char when[32] = "";
        struct tm tm;
        text_printf(out, "%s{guid: \"0x%016" PRIx64 "\", node: ", i ? ", " : ", others: [", s->guid);
        text_yaml_string(out, s->node);
        if (s->answers)
            text_printf(out, ", priority: %u, state: %s, ", s->priority, planes_sm_states[s->state]);
        else
            text_printf(out, ", state: no answer, ");
        if (s->had.at && gmtime_r(&s->had.at, &tm) && strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm))
            text_printf(out, "as_master: {at: \"%s\", differences: %u}}", when, s->had.differences);
        else
            text_printf(out, "as_master: never seen}");
    }
    text_printf(out, p->num_standbys ? "]" : "");
}

/* The master is on another host, and ports lack the policy: nobody here can write its configuration. */
static void note_foreign(const struct plane *p, struct verify_result *r)
{
    struct text how = {0};
    const char *node = p->sm_node;
    text_printf(&how,
                "its master is the subnet manager at LID %u, port 0x%016" PRIx64 "%s%s, which does not give ports the "
                "policy: give its opensm the policy (fabricd there), or make an opensm with the policy master "
                "(priority above %u)",
                p->sm_lid, p->sm_guid, *node ? " of node " : "", node, p->sm_priority);
    verify_note(r, "plane", text_str(&how));
    text_free(&how);
}

unsigned planes_take(const struct sms *s, const struct qos_tables *want, const struct plane_tables *planes,
                     struct verify_result *r, struct plane plane[VERIFY_SUBNETS_MAX], struct sm_verdicts *verdicts,
                     struct text *out)
{
    unsigned n = planes_look(s, plane);
    for (unsigned i = 0; i < n; i++) {
        struct plane *p = &plane[i];
        const struct verify_plane *of = seen_plane(r, p, !i), *v = of ? &r->plane[of->seen_from] : NULL;
        text_printf(out, "  - {device: %s, port: %d, ports_here: %u, opensm: ", p->port.device, p->port.num,
                    p->num_ports);
        text_yaml_string(out, p->config ? p->config : "elsewhere");
        if (p->answers)
            text_printf(out, ", master: \"0x%016" PRIx64 "\", master_lid: %u, priority: %u, here: %s", p->sm_guid,
                        p->sm_lid, p->sm_priority, p->is_ours ? "true" : "false");
        else
            text_printf(out, ", master: none");
        if (v)
            look_text(p, of, v, want, planes, out);
        else if (n == 1 && !r->num_planes && want && !r->error) { /* only ports nearby were read, all of this plane */
            p->compared = true;
            p->differences = r->differences;
        }
        if (p->answers && p->compared)
            verdicts_take(verdicts, p->sm_guid, p->differences);
        const struct sm_verdict *had = verdicts_find(verdicts, p->sm_guid);
        p->had = had ? *had : (struct sm_verdict){0};
        if (v)
            ask_standbys(p, v, verdicts);
        standbys_text(p, out);
        if (p->answers && !p->is_ours && p->compared && p->differences && verdicts_lasts(verdicts, p->sm_guid))
            note_foreign(p, r);
        text_printf(out, "}\n");
        p->config = NULL;
    }
    return n;
}
