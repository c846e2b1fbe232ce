/* SPDX-License-Identifier: BSD-3-Clause */
/* Predictions for people and for programs, and warnings: see plan.h. */
#include "fabricd/policy/plan.h"

#include <string.h>

static const char *const limit_names[] = {
    [PLAN_NOTHING] = "nothing: the hosts that send cannot fill it",
    [PLAN_SENDER] = "sender's bus",
    [PLAN_CABLE] = "cable",
    [PLAN_RECEIVER] = "receiver's bus",
};

static const char *const limit_words[] = {
    [PLAN_NOTHING] = "nothing", [PLAN_SENDER] = "sender", [PLAN_CABLE] = "cable", [PLAN_RECEIVER] = "receiver"};

/* ---- YAML ---- */

static void wait_text(struct text *out, const struct plan_class *c)
{
    if (c->wait_ns == WAIT_UNBOUNDED)
        text_printf(out, ", wait: unbounded");
    else if (c->wait_ns)
        text_printf(out, ", wait_us: %.1f", (double)c->wait_ns / 1000);
}

void plan_text(struct text *out, const struct policy *p, const struct plan_load *load, const struct plan_result *r)
{
    text_printf(out, "  - load: ");
    text_yaml_string(out, load->name);
    text_printf(out, "\n    limit: ");
    text_yaml_string(out, limit_names[r->limit]);
    if (r->mbytes > 0)
        text_printf(out, "\n    mbytes_per_s: %.0f", r->mbytes);
    if (r->paced)
        text_printf(out, "\n    note: the library divides the bus, not the tables");
    else if (r->limit == PLAN_RECEIVER)
        text_printf(out, "\n    note: every lane gets the same, and packets wait for what the receiver's buffers hold");
    text_printf(out, "\n    classes:\n");
    for (unsigned i = 0; i < p->num_classes; i++) {
        const struct plan_class *c = &r->classes[i];
        text_printf(out, "      - {name: ");
        text_yaml_string(out, p->classes[i].name);
        if (c->sends)
            text_printf(out, ", gets: %.1f", c->share);
        if (c->sends && c->mbytes > 0)
            text_printf(out, ", mbytes_per_s: %.0f", c->mbytes);
        wait_text(out, c);
        if (c->ahead_per_s > 0)
            text_printf(out, ", ahead_per_s: %.0f", c->ahead_per_s);
        text_printf(out, "}\n");
    }
}

/* ---- JSON ---- */

static void json_class(struct text *out, const char *name, const struct plan_class *c)
{
    text_printf(out, "{\"name\":");
    text_json_string(out, name, strlen(name));
    text_printf(out, ",\"sends\":%s,\"share\":%.2f,\"mbytes_per_s\":", c->sends ? "true" : "false", c->share);
    if (c->mbytes > 0)
        text_printf(out, "%.1f", c->mbytes);
    else
        text_printf(out, "null");
    text_printf(out, ",\"ahead\":%s,\"ahead_per_s\":", c->ahead ? "true" : "false");
    if (c->ahead_per_s > 0)
        text_printf(out, "%.0f", c->ahead_per_s);
    else
        text_printf(out, "null");
    text_printf(out, ",\"wait_us\":");
    if (c->wait_ns == WAIT_UNBOUNDED)
        text_printf(out, "\"unbounded\"}");
    else if (c->wait_ns)
        text_printf(out, "%.3f}", (double)c->wait_ns / 1000);
    else
        text_printf(out, "null}");
}

void plan_json(struct text *out, const struct policy *p, const struct plan_load *load, const struct plan_result *r)
{
    text_printf(out, "{\"load\":");
    text_json_string(out, load->name, strlen(load->name));
    text_printf(out, ",\"limit\":\"%s\",\"paced\":%s,\"mbytes_per_s\":", limit_words[r->limit],
                r->paced ? "true" : "false");
    if (r->mbytes > 0)
        text_printf(out, "%.1f", r->mbytes);
    else
        text_printf(out, "null");
    text_printf(out, ",\"classes\":[");
    for (unsigned i = 0; i < p->num_classes; i++) {
        text_printf(out, "%s", i ? "," : "");
        json_class(out, p->classes[i].name, &r->classes[i]);
    }
    text_printf(out, "]}");
}

/* ---- warnings ---- */

static bool in_high_table(const struct qos_tables *t, unsigned vl)
{
    for (unsigned i = 0; i < t->num_high; i++)
        if (t->high[i].vl == vl && t->high[i].weight)
            return true;
    return false;
}

static void warn_receiver(const struct policy *p, const struct qos_tables *t, const struct plan_fabric *f,
                          struct diag *d)
{
    struct plan_load load;
    struct plan_result r;
    struct text said = {0};
    if (!plan_load_named(&load, p, "many-to-one", d))
        return;
    plan_predict(p, t, f, &load, &r);
    if (r.limit == PLAN_RECEIVER && !r.paced) {
        for (unsigned i = 0; i < p->num_classes; i++)
            text_printf(&said, "%s%s %.0f", i ? ", " : "", p->classes[i].name, r.classes[i].share);
        diag_warn(d, (struct place){0},
                  "adapters take in %u MB/s and their cables carry %u: where several hosts send to one, its bus is the "
                  "narrow "
                  "place and every lane gets the same, whatever the shares (percent: %s)",
                  f->bus_write_mbytes, f->rate_mbps / 8, text_str(&said));
    }
    text_free(&said);
}

void plan_warn(const struct policy *p, const struct qos_tables *t, const struct plan_fabric *f, struct diag *d)
{
    if (f->bus_write_mbytes && f->rate_mbps && p->num_classes > 1)
        warn_receiver(p, t, f, d);
    if (f->mtu && p->mtu && f->mtu < p->mtu)
        diag_warn(d, p->vls_at,
                  "weights are made for packets of %u bytes and the fabric's have %u: shares will be inexact", p->mtu,
                  f->mtu);
    for (unsigned i = 0; i < t->num_classes && t->high_limit == 255; i++)
        if (in_high_table(t, t->classes[i].vl_small))
            diag_warn(
                d, p->limits_at,
                "high_limit is 255, no limit: small messages of class '%s' that do not come from this library can "
                "keep all bulk from the link",
                p->classes[i].name);
    for (unsigned i = 0; i < t->num_classes && t->high_limit > 1 && t->high_limit < 255; i++)
        if (in_high_table(t, t->classes[i].vl_small)) {
            unsigned mtu = f->mtu ? f->mtu : 4096, high = t->high_limit * 4096u;
            diag_warn(
                d, p->limits_at,
                "high_limit is %u: small messages of class '%s' that do not come from this library can take %u percent "
                "of a link, whatever its share",
                t->high_limit, p->classes[i].name, 100 * high / (high + mtu));
        }
}
