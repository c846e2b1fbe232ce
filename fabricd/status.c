/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's state as text: see status.h. */
#include "fabricd/status.h"
#include "fabricd/base/clock.h"
#include "fabricd/jobs/jobs_text.h"
#include "fabricd/jobs/orders.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define JOBS_SHOWN 16384 /* bytes */

static uint64_t whole_seconds_since(uint64_t us)
{
    return (clock_us() - us) / 1000000;
}

enum { STATE_NONE, STATE_UNSEEN, STATE_NOT_LOOKED, STATE_VERIFIED, STATE_DIFFERS };
const char *const status_policy_states[] = {[STATE_NONE] = "none",
                                            [STATE_UNSEEN] = "the fabric cannot be looked at",
                                            [STATE_NOT_LOOKED] = "not looked yet",
                                            [STATE_VERIFIED] = "verified",
                                            [STATE_DIFFERS] = "differs",
                                            NULL};

const char *status_policy_state(const struct daemon *d)
{
    return status_policy_states[!d->current.valid ? STATE_NONE
                                : d->look_error   ? STATE_UNSEEN
                                : !d->looked      ? STATE_NOT_LOOKED
                                : d->verified     ? STATE_VERIFIED
                                                  : STATE_DIFFERS];
}

const char *status_role(const struct daemon *d)
{
    return d->manages ? "manager" : "server";
}

/* Classes that have left the policy and keep service levels. */
static void retired_text(const struct daemon *d, struct text *out)
{
    unsigned n = 0;
    for (unsigned i = 0; i < d->current.lock.num_classes; i++)
        if (d->current.lock.classes[i].retired) {
            text_printf(out, n++ ? ", " : "retired: [");
            text_yaml_string(out, d->current.lock.classes[i].name);
        }
    text_printf(out, n ? "]\n" : "");
}

/* Of all visible jobs, including jobs without room in the answer. */
static void counts_text(const struct daemon *d, uint32_t uid, struct text *out)
{
    const struct policy *p = &d->current.policy;
    for (unsigned i = 0; i < p->num_classes; i++) {
        text_printf(out, i ? ", " : "jobs_by_class: {");
        text_yaml_string(out, p->classes[i].name);
        text_printf(out, ": %u", orders_jobs_of_class(d, uid, i));
    }
    text_printf(out, "}\n");
}

void status_text(const struct daemon *d, const struct status_view *v, struct text *out)
{
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    text_printf(out, "fabricd: {version: %s, pid: %d, host: ", MRMPI_VERSION, getpid());
    text_yaml_string(out, host);
    text_printf(out, ", role: %s, uptime_s: %" PRIu64 ", clients: %u}\n", status_role(d),
                whole_seconds_since(d->started_us), v->clients);
    text_printf(out,
                "policy: {generation: %" PRIu64 ", state: %s, nodes: %u, ports: %u, differences: %u, looked_s_ago: ",
                d->generation, status_policy_state(d), d->nodes, d->ports, d->differences);
    if (d->looked_us)
        text_printf(out, "%" PRIu64, whole_seconds_since(d->looked_us));
    else
        text_printf(out, "never");
    if (d->current.valid)
        text_printf(out, ", digest: \"%016" PRIx64 "\"", d->current.lock.digest);
    if (d->repairs)
        text_printf(out, ", repairs: %u, repaired_s_ago: %" PRIu64, d->repairs, whole_seconds_since(d->repaired_us));
    if (d->look_error) {
        text_printf(out, ", why: ");
        text_yaml_string(out, smp_open_error(d->look_error));
    }
    if (d->unfinished)
        text_printf(out, ", change: unfinished");
    if (d->applying[0]) {
        text_printf(out, ", applying: ");
        text_yaml_string(out, d->applying);
    }
    text_printf(out, "}\n");
    if (d->follow && !d->manages) {
        text_printf(out, "follows: {file: ");
        text_yaml_string(out, d->conf.policy);
        text_printf(out, ", waiting: ");
        text_yaml_string(out, d->follow_problem.len ? d->follow_problem.s : "no");
        text_printf(out, "}\n");
    }
    if (v->on_paths || d->reroutes) {
        text_printf(out, "lid_paths: {processes: %u, reroutes: %u", v->on_paths, d->reroutes);
        if (d->reroutes)
            text_printf(out, ", rerouted_s_ago: %" PRIu64, whole_seconds_since(d->rerouted_us));
        text_printf(out, "}\n");
    }
    if (d->failure.len)
        text_printf(out, "failed: {%s, s_ago: %" PRIu64 "}\n", d->failure.s, whole_seconds_since(d->failed_us));
    if (d->difference_text.len) {
        text_printf(out, "differences:\n");
        for (const char *p = d->difference_text.s; *p; p += strcspn(p, "\n") + 1) {
            char line[1024];
            snprintf(line, sizeof(line), "%.*s", (int)strcspn(p, "\n"), p);
            text_printf(out, "  - ");
            text_yaml_string(out, line);
            text_printf(out, "\n");
        }
    }
    if (d->manages && d->planes.len)
        text_printf(out, "planes:\n%s", d->planes.s);
    if (d->current.valid)
        tables_plan_text(out, &d->current.policy, &d->current.tables);
    if (d->current.valid && d->current.planes.n) {
        text_printf(out, "plane_tables:\n");
        tables_planes_text(out, &d->current.planes, "  ");
    }
    retired_text(d, out);
    text_printf(out, "rails:%s\n", d->rails.n ? "" : " []");
    rails_text(out, &d->rails, "  ");
    text_put(out, text_str(v->reading), v->reading->len);
    if (d->current.valid)
        counts_text(d, v->jobs_of, out);
    struct text jobs = {0};
    bool more = jobs_text(&jobs, d, "  ", v->jobs_of, "", JOBS_SHOWN);
    text_printf(out, "jobs:%s\n", jobs.len ? "" : " []");
    text_put(out, text_str(&jobs), jobs.len);
    if (more)
        text_printf(out, "more_jobs: fabricctl job list\n");
    text_free(&jobs);
}
