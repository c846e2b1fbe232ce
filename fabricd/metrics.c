/* SPDX-License-Identifier: BSD-3-Clause */
/* OpenMetrics text: see metrics.h. */
#include "fabricd/metrics.h"
#include "fabricd/base/clock.h"
#include "fabricd/jobs/orders.h"
#include "fabricd/server.h"
#include "fabricd/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LAST_BYTES 1024u /* room for the last family and the end mark */

struct sink;

/* unit "": none. A counter's samples have the suffix _total. */
struct family {
    const char *name, *unit, *help;
    bool counter;
    void (*put)(struct sink *s);
};

struct sink {
    const struct daemon *d;
    bool all_jobs, complete, is_last;
    struct text *out;
    const struct family *family;
    const char *device; /* of the port of the samples, or NULL */
    char port[12];
};

/* ---- samples ---------------------------------------------------------------------------------------------------- */

/* Writes the value of a label; bytes beyond ASCII might not be UTF-8. */
static void put_escaped(struct text *t, const char *s)
{
    for (; *s; s++) {
        if (*s == '\\' || *s == '"')
            text_printf(t, "\\%c", *s);
        else if (*s == '\n')
            text_put(t, "\\n", 2);
        else
            text_put(t, *s >= 0x20 && *s < 0x7f ? s : "?", 1);
    }
}

static void put_label(struct text *t, const char *before, const char *name, const char *value)
{
    text_printf(t, "%s%s=\"", before, name);
    put_escaped(t, value);
    text_put(t, "\"", 1);
}

/* The labels of the port, if there is one, then pairs of name and value, the last pair followed by NULL. */
static void put_labels(struct text *t, const struct sink *s, va_list labels)
{
    const char *name, *before = "{";
    if (s->device) {
        put_label(t, before, "device", s->device);
        put_label(t, ",", "port", s->port);
        before = ",";
    }
    for (; (name = va_arg(labels, const char *)); before = ",")
        put_label(t, before, name, va_arg(labels, const char *));
    if (*before == ',')
        text_put(t, "}", 1);
}

/* One sample of the sink's family. */
static void put_sample(struct sink *s, double value, ...)
{
    struct text line = {0};
    va_list labels;
    va_start(labels, value);
    text_printf(&line, "%s%s", s->family->name, s->family->counter ? "_total" : "");
    put_labels(&line, s, labels);
    text_printf(&line, " %.15g\n", value);
    va_end(labels);
    if (s->out->len + line.len + LAST_BYTES <= METRICS_MAX || s->is_last)
        text_put(s->out, text_str(&line), line.len);
    else
        s->complete = false;
    text_free(&line);
}

/* Samples that follow are of this port. */
static void of_port(struct sink *s, const char *device, unsigned port)
{
    s->device = device;
    snprintf(s->port, sizeof(s->port), "%u", port);
}

/* Next rail of this host, from i = 0 on, for samples of its ports; its ward, or NULL, in *w. False: there is none. */
static bool next_rail(struct sink *s, unsigned i, const struct ward **w)
{
    const struct fd_rail *r = &s->d->rails.rail[i];
    if (i >= s->d->rails.n)
        return false;
    of_port(s, r->device, r->port);
    *w = rail_health_ward(&s->d->health, r->device, r->port);
    return true;
}

static double elapsed_seconds(uint64_t us)
{
    return (double)(clock_us() - us) / 1e6;
}

/* ---- the daemon and its policy ----------------------------------------------------------------------------------- */

static void put_up(struct sink *s)
{
    put_sample(s, 1, "version", MRMPI_VERSION, "role", status_role(s->d), NULL);
}

static void put_uptime(struct sink *s)
{
    put_sample(s, elapsed_seconds(s->d->started_us), NULL);
}

static void put_clients(struct sink *s)
{
    put_sample(s, server_num_clients(s->d->server), NULL);
}

static void put_generation(struct sink *s)
{
    put_sample(s, (double)s->d->generation, NULL);
}

static void put_state(struct sink *s)
{
    const char *now = status_policy_state(s->d), *name;
    for (unsigned i = 0; (name = status_policy_states[i]); i++)
        put_sample(s, !strcmp(name, now), "state", name, NULL);
}

static void put_differences(struct sink *s)
{
    if (s->d->looked)
        put_sample(s, s->d->differences, NULL);
}

static void put_applying(struct sink *s)
{
    put_sample(s, s->d->applying[0] != 0, NULL);
}

static void put_failed(struct sink *s)
{
    put_sample(s, s->d->failure.len != 0, NULL);
}

static void put_unfinished(struct sink *s)
{
    put_sample(s, s->d->unfinished, NULL);
}

static void put_waiting(struct sink *s)
{
    if (s->d->follow && !s->d->manages)
        put_sample(s, s->d->follow_problem.len != 0, NULL);
}

static void put_repairs(struct sink *s)
{
    put_sample(s, s->d->repairs, NULL);
}

/* ---- the fabric ------------------------------------------------------------------------------------------------- */

static void put_duration(struct sink *s)
{
    if (s->d->look_took_us)
        put_sample(s, (double)s->d->look_took_us / 1e6, NULL);
}

static void put_age(struct sink *s)
{
    if (s->d->looked_us)
        put_sample(s, elapsed_seconds(s->d->looked_us), NULL);
}

static void put_reroutes(struct sink *s)
{
    put_sample(s, s->d->reroutes, NULL);
}

static void put_nodes(struct sink *s)
{
    if (s->d->looked)
        put_sample(s, s->d->nodes, NULL);
}

static void put_ports(struct sink *s)
{
    if (s->d->looked)
        put_sample(s, s->d->ports, NULL);
}

/* Plane i, from 0 on, for the next samples. NULL: there is none. */
static const struct plane *next_plane(struct sink *s, unsigned i)
{
    const struct plane *p = &s->d->plane[i];
    if (!s->d->manages || i >= s->d->num_planes)
        return NULL;
    of_port(s, p->port.device, (unsigned)p->port.num);
    return p;
}

static void put_plane_ports(struct sink *s)
{
    const struct plane *p;
    for (unsigned i = 0; (p = next_plane(s, i)); i++)
        put_sample(s, p->num_ports, NULL);
}

static void put_plane_master(struct sink *s)
{
    const struct plane *p;
    for (unsigned i = 0; (p = next_plane(s, i)); i++)
        put_sample(s, p->answers, NULL);
}

static void put_plane_differences(struct sink *s)
{
    const struct plane *p;
    for (unsigned i = 0; (p = next_plane(s, i)); i++)
        if (p->compared)
            put_sample(s, p->differences, NULL);
}

/* ---- rails ------------------------------------------------------------------------------------------------------ */

static void put_rail_state(struct sink *s)
{
    const struct ward *w;
    for (unsigned i = 0; next_rail(s, i, &w); i++)
        put_sample(s, 1, "state", rails_state_name(s->d->rails.rail[i].state), NULL);
}

static void put_rail_health(struct sink *s)
{
    const struct ward *w;
    for (unsigned i = 0; next_rail(s, i, &w); i++)
        if (w)
            put_sample(s, 1, "state", rails_health_name(w->health.state), NULL);
}

static void put_rail_weight(struct sink *s)
{
    const struct ward *w;
    for (unsigned i = 0; next_rail(s, i, &w); i++)
        if (w)
            put_sample(s, (double)w->health.weight / FD_HEALTHY, NULL);
}

static void put_rail_rate(struct sink *s)
{
    const struct ward *w;
    for (unsigned i = 0; next_rail(s, i, &w); i++)
        if (s->d->rails.data_mbps[i])
            put_sample(s, s->d->rails.data_mbps[i] * 125000.0, NULL);
}

static void put_rail_flaps(struct sink *s)
{
    const struct ward *w;
    for (unsigned i = 0; next_rail(s, i, &w); i++)
        if (w)
            put_sample(s, w->health.flaps, NULL);
}

static void put_rail_counters(struct sink *s)
{
    static const char *const ends[] = {[HEALTH_HERE] = "here", [HEALTH_FAR] = "far"};
    const struct ward *w;
    for (unsigned i = 0; next_rail(s, i, &w); i++)
        for (unsigned e = 0; w && e < HEALTH_ENDS; e++)
            for (unsigned c = 0; w->health.end[e].seen && c < HEALTH_COUNTERS; c++)
                put_sample(s, (double)w->health.end[e].total[c], "end", ends[e], "counter", health_counter_name(c),
                           NULL);
}

static void put_rail_complaints(struct sink *s)
{
    uint64_t now_us = clock_us();
    const struct ward *w;
    for (unsigned i = 0; next_rail(s, i, &w); i++) {
        unsigned users = 0;
        for (unsigned k = 0; w && k < RAIL_HINTS; k++)
            users += w->hint[k].until_us > now_us;
        if (w)
            put_sample(s, users, NULL);
    }
}

static void put_rail_breaks(struct sink *s)
{
    const struct ward *w;
    for (unsigned i = 0; next_rail(s, i, &w); i++)
        if (w)
            put_sample(s, (double)w->told_broken, NULL);
}

static void put_rail_resent(struct sink *s)
{
    const struct ward *w;
    for (unsigned i = 0; next_rail(s, i, &w); i++)
        if (w)
            put_sample(s, (double)w->told_resent, NULL);
}

/* ---- classes ---------------------------------------------------------------------------------------------------- */

static void put_class_jobs(struct sink *s)
{
    const struct policy *p = &s->d->current.policy;
    for (unsigned i = 0; s->all_jobs && s->d->current.valid && i < p->num_classes; i++)
        put_sample(s, orders_jobs_of_class(s->d, FD_UID_ANY, i), "class", p->classes[i].name, NULL);
}

static void put_class_share(struct sink *s)
{
    const struct in_force *f = &s->d->current;
    for (unsigned i = 0; f->valid && i < f->policy.num_classes; i++)
        put_sample(s, f->tables.classes[i].share / 100, "class", f->policy.classes[i].name, NULL);
}

static void put_lane(struct sink *s, const char *class, const char *kind, unsigned sl, unsigned vl)
{
    char sl_text[12], vl_text[12];
    snprintf(sl_text, sizeof(sl_text), "%u", sl);
    snprintf(vl_text, sizeof(vl_text), "%u", vl);
    put_sample(s, 1, "class", class, "kind", kind, "sl", sl_text, "vl", vl_text, NULL);
}

static void put_class_lanes(struct sink *s)
{
    const struct in_force *f = &s->d->current;
    for (unsigned i = 0; f->valid && i < f->policy.num_classes; i++) {
        const struct class_levels *l = &f->tables.classes[i];
        const char *class = f->policy.classes[i].name;
        put_lane(s, class, "small", l->sl_small, l->vl_small);
        for (unsigned k = 0; k < l->num_medium; k++)
            put_lane(s, class, "medium", l->sl_medium[k], l->vl_medium[k]);
        for (unsigned k = 0; k < l->num_lanes; k++)
            put_lane(s, class, "bulk", l->sl_bulk[k], l->vl_bulk[k]);
    }
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static void put_complete(struct sink *s)
{
    put_sample(s, s->complete, NULL);
}

/* Each family is in METRICS of fabricctl(1). The last is written whatever was left out before. */
static const struct family families[] = {
    {"fabricd_up", "", "1: the daemon answers. Labels: its version, and whether it manages a subnet.", false, put_up},
    {"fabricd_uptime_seconds", "seconds", "Since the daemon was started.", false, put_uptime},
    {"fabricd_clients", "", "Connections to the daemon's socket.", false, put_clients},
    {"fabricd_policy_generation", "", "Number of the policy in force on this host.", false, put_generation},
    {"fabricd_policy_state", "", "1 for the state that the policy in force has.", false, put_state},
    {"fabricd_policy_differences", "", "Differences between the policy and the ports.", false, put_differences},
    {"fabricd_policy_applying", "", "1: a policy is being put in force.", false, put_applying},
    {"fabricd_policy_failed", "", "1: the last attempt to put a policy in force failed.", false, put_failed},
    {"fabricd_policy_unfinished", "", "1: an interrupted change is still to be finished.", false, put_unfinished},
    {"fabricd_policy_waiting", "", "1: this host cannot follow the policy file.", false, put_waiting},
    {"fabricd_policy_repairs", "", "Times that ports had lost the policy and got it again.", true, put_repairs},
    {"fabricd_verify_duration_seconds", "seconds", "What the last look at all ports took.", false, put_duration},
    {"fabricd_verify_age_seconds", "seconds", "Since the last look at all ports.", false, put_age},
    {"fabricd_fabric_reroutes", "", "Changes of forwarding seen while processes depended on paths.", true,
     put_reroutes},
    {"fabricd_fabric_nodes", "", "Nodes that the last look saw.", false, put_nodes},
    {"fabricd_fabric_ports", "", "Ports that are up, of the last look.", false, put_ports},
    {"fabricd_plane_ports", "", "Ports of this host in the plane.", false, put_plane_ports},
    {"fabricd_plane_master", "", "1: the plane's master subnet manager answers.", false, put_plane_master},
    {"fabricd_plane_differences", "", "Differences of the plane's ports.", false, put_plane_differences},
    {"fabricd_rail_state", "", "1 for the state of the port.", false, put_rail_state},
    {"fabricd_rail_health", "", "1 for the health of the rail.", false, put_rail_health},
    {"fabricd_rail_weight_ratio", "ratio", "Part of its traffic that the rail is given.", false, put_rail_weight},
    {"fabricd_rail_rate_bytes_per_second", "bytes_per_second", "Data rate of the port.", false, put_rail_rate},
    {"fabricd_rail_flaps", "", "Times that the health got worse.", true, put_rail_flaps},
    {"fabricd_rail_counter", "", "Counters of the ports at both ends, since the daemon looks.", true,
     put_rail_counters},
    {"fabricd_rail_complaints", "", "Users whose processes complain of the rail.", false, put_rail_complaints},
    {"fabricd_rail_reported_breaks", "", "Connections that processes saw breaking.", true, put_rail_breaks},
    {"fabricd_rail_reported_resent", "", "Packets that processes sent again.", true, put_rail_resent},
    {"fabricd_class_jobs", "", "Jobs of the class on this host.", false, put_class_jobs},
    {"fabricd_class_share_ratio", "ratio", "Part of a busy link that the class gets.", false, put_class_share},
    {"fabricd_class_lane", "", "1 for each service level of the class and its lane.", false, put_class_lanes},
    {"fabricd_metrics_complete", "", "0: there was no room for all samples.", false, put_complete},
};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

void metrics_text(const struct daemon *d, bool all_jobs, struct text *out)
{
    struct sink s = {.d = d, .all_jobs = all_jobs, .complete = true, .out = out};
    for (unsigned i = 0; i < FAMILIES; i++) {
        const struct family *f = s.family = &families[i];
        s.device = NULL;
        s.is_last = i + 1 == FAMILIES;
        text_printf(out, "# TYPE %s %s\n", f->name, f->counter ? "counter" : "gauge");
        if (*f->unit)
            text_printf(out, "# UNIT %s %s\n", f->name, f->unit);
        text_printf(out, "# HELP %s %s\n", f->name, f->help);
        f->put(&s);
    }
    text_printf(out, "# EOF\n");
}
