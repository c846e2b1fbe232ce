/* SPDX-License-Identifier: BSD-3-Clause */
/* A policy is put in force: prepare, write, push, settle, else roll back. See apply.h. */
#include "fabricd/apply/apply.h"
#include "fabricd/fabric/opensm.h"
#include "fabricd/fabric/planes.h"
#include "fabricd/fabric/snapshot.h"
#include "fabricd/fabric/verify.h"
#include "fabricd/apply/keep.h"
#include "fabricd/apply/mend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define say(a, t, ...) manager_say((a)->m, t, __VA_ARGS__)

/* A plane in a change: the reason why it has not taken the policy. */
struct part {
    struct smp_port port;
    const char *config; /* of its opensm */
    char why[256];      /* "": the plane had the tables, or nothing is known so far */
};

struct change {
    bool new_lmc;            /* a port has another than the policy wants */
    unsigned ca_ports;       /* ports that each need their LIDs */
    struct snapshot *before; /* tables of ports before; or NULL */
    struct snapshot *first;  /* tables before the first policy, if wanted; or NULL */
    struct text adapters;    /* that were seen, if the policy has partitions with members: sms_merge_partitions */
    struct in_force next;    /* valid from take_policy on */
    unsigned num_parts;
    struct part part[VERIFY_SUBNETS_MAX];
    struct store_intent intent;
    bool partial; /* a plane has no subnet manager, and is passed over */
    bool unsure;  /* it is in force, and perhaps would not be after a loss of power */
};

static bool refuse(struct applier *a, struct task *t, struct diag *d)
{
    if (d->errors || d->warnings)
        say(a, t, "%.*s", (int)(d->out.len ? d->out.len - 1 : 0), text_str(&d->out));
    bool refused = d->errors > 0;
    text_free(&d->out);
    *d = (struct diag){.file = d->file};
    return refused;
}

/* Lines of opensm's file that are not ours and concern service levels and LIDs. */
static void read_others(struct applier *a, struct task *t, const struct sm *m, struct subnet *subnet, char engine[64])
{
    const char *conf = text_str(&m->old_conf);
    char value[PATH_MAX];
    if (opensm_conf_get(conf, "routing_engine", engine, 64))
        subnet->routing_engine = engine;
    if (opensm_conf_get(conf, "qos_policy_file", value, sizeof(value)) && strcmp(value, "(null)") &&
        !access(value, F_OK))
        say(a, t, "warning: opensm also has %s: the service levels that it gives out ride on this policy's lanes",
            value);
    if (opensm_conf_get(conf, "sm_sl", value, sizeof(value)))
        subnet->sm_sl = (unsigned)strtoul(value, NULL, 0);
}

static bool fits_subnets(struct applier *a, struct task *t, const struct change *c, struct diag *d)
{
    bool fits = true;
    for (unsigned i = 0; i < a->sms.n || !i; i++) {
        struct subnet subnet = {.ca_ports = c->ca_ports};
        char engine[64];
        if (i < a->sms.n)
            read_others(a, t, &a->sms.sm[i], &subnet, engine);
        fits = policy_check_subnet(&c->next.policy, &subnet, d) && fits;
    }
    return fits;
}

/* Another host has put the policy in force. */
static bool is_told(const struct applier *a, const struct task *t)
{
    return !a->sms.n || t->kind == TASK_FOLLOW;
}

/*
 * The assigned service levels. If this node manages the subnet, they are in the lock in force; elsewhere the manager's
 * lock has come with the policy.
 */
static bool read_current_lock(struct applier *a, struct task *t, const struct policy *p, struct policy_lock *out)
{
    char path[sizeof(t->name) + 8];
    struct policy_lock beside;
    struct diag d = {.file = path};
    lock_path(t->name, path, sizeof(path));
    bool good = lock_parse(&beside, text_str(&t->lock_text), t->lock_text.len, &d);
    if (refuse(a, t, &d) || !good)
        return false;
    if (is_told(a, t) && beside.num_classes)
        *out = beside;
    else
        *out = t->current.lock;
    if (!lock_merge(out, &beside, p))
        say(a, t, "warning: %s gives out other service levels than those in force, which stay", path);
    return true;
}

/* Puts the facts of the fabric into the given lock; told: the lock has them, except planes that only this host sees. */
static int add_facts(struct applier *a, struct task *t, struct change *c, struct policy_lock *given)
{
    struct lock_plane seen[LOCK_PLANES_MAX];
    struct verify_options o = settle_options(a, given, false);
    o.policy = &c->next.policy;
    struct verify_result r;
    settle_count(a, FD_PORTS_READ, 0);
    verify_fabric(&o, NULL, &r);
    int rc = r.error;
    if (!rc && a->counter)
        a->counter->ports = r.ports;
    for (unsigned i = 0; i < r.num_planes; i++)
        a->ports_up[i] = r.plane[i].ports;
    if (rc) {
        say(a, t, "the fabric cannot be looked at: %s", smp_open_error(rc));
    } else {
        unsigned n = settle_seen(&r, seen);
        c->ca_ports = r.ca_ports;
        text_put(&c->adapters, text_str(&r.adapters), r.adapters.len);
        c->new_lmc = r.lmc != c->next.policy.lmc || r.lmc_most != c->next.policy.lmc;
        /* Every node is to compile with the same facts, and paths look different from here. */
        if (is_told(a, t) && lock_knows_fabric(given))
            lock_add_planes(given, seen, n);
        else
            lock_take_planes(given, &r.caps, seen, n);
        say(a, t, "%u ports of %u nodes are up; links can have %u data VLs, tables %u low and %u high entries", r.ports,
            r.nodes, r.caps.vls, r.caps.low_cap, r.caps.high_cap);
    }
    if (!rc && r.without_table[0]) {
        say(a, t, "%s has no arbitration table: no share can be kept where its packets wait", r.without_table);
        rc = -EINVAL;
    }
    verify_result_free(&r);
    return rc;
}

/* Hosts that follow the configured file would not hear of another policy. */
static int is_followed(struct applier *a, struct task *t)
{
    struct text file = {0};
    bool free_choice = !t->client || !a->sms.n || !a->conf->policy[0] ||
                       (t->kind != TASK_APPLY && !(t->flags & FD_CHANGE_DRY)) ||
                       t->flags & (FD_CHANGE_FORCE | FD_CHANGE_ROLLBACK);
    int rc = free_choice ? 0 : text_read_file(&file, a->conf->policy, FD_POLICY_MAX);
    bool same =
        free_choice || (!rc && file.len == t->text.len && !memcmp(text_str(&file), text_str(&t->text), file.len));
    text_free(&file);
    if (same)
        return 0;
    say(a, t,
        "%s is not %s%s%s, which this cluster's hosts follow: put it there and apply that, or --force has it in "
        "force on this host and its subnets alone",
        t->name, a->conf->policy, rc ? ": " : "", rc ? text_read_error(rc) : "");
    return -EINVAL;
}

/* Everything that can be known to be wrong before anything is changed. */
static int prepare(struct applier *a, struct task *t, struct change *c)
{
    struct diag d = {.file = t->name};
    if (is_followed(a, t))
        return -EINVAL;
    bool parsed = policy_parse(&c->next.policy, text_str(&t->text), t->text.len, &d);
    if (refuse(a, t, &d) || !parsed)
        return -EINVAL;
    struct text why = {0};
    int rc = settle_said(a, t, sms_read(&a->sms, &why), &why);
    if (rc)
        return rc;
    struct policy_lock given;
    if (!read_current_lock(a, t, &c->next.policy, &given))
        return -EINVAL;
    rc = add_facts(a, t, c, &given);
    if (rc)
        return rc;
    bool fits = lock_next(&c->next.policy, &given, NULL, &c->next.lock, &d) && in_force_compile(&c->next, &d) &&
                fits_subnets(a, t, c, &d);
    if (refuse(a, t, &d) || !fits)
        return -EINVAL;
    fits = sms_fit_planes(&a->sms, &c->next.tables, &c->next.planes, &why) &&
           sms_partitions_free(&a->sms, &c->next.policy, &why);
    return settle_said(a, t, fits ? 0 : -EINVAL, &why);
}

/* ---- the planes of a change ---- */

static void note_parts(const struct applier *a, struct change *c)
{
    const struct sms *s = &a->sms;
    c->num_parts = s->num_ports;
    for (unsigned i = 0; i < s->num_ports; i++)
        c->part[i] = (struct part){.port = s->port[i], .config = s->sm[s->sm_of_port[i]].opensm.config};
}

/* The last look of settle_ports has seen the planes of this change. */
static bool is_settled(const struct applier *a, const struct change *c)
{
    bool same = a->num_settled && a->num_settled == c->num_parts;
    for (unsigned i = 0; same && i < c->num_parts; i++)
        same =
            !strcmp(a->settled[i].from.device, c->part[i].port.device) && a->settled[i].from.num == c->part[i].port.num;
    return same;
}

/* Each plane against f, whether its opensm runs still or not: as the ports settled on f, or by a look. */
static void look_at_parts(const struct applier *a, const struct change *c, const struct in_force *f,
                          struct verify_result *r)
{
    if (is_settled(a, c)) {
        *r = (struct verify_result){.num_planes = a->num_settled};
        memcpy(r->plane, a->settled, sizeof(r->plane));
        return;
    }
    struct verify_options o = settle_options(a, &f->lock, false);
    o.planes = &f->planes;
    o.policy = f->valid ? &f->policy : NULL;
    o.num_whole = c->num_parts;
    o.num_near = 0;
    for (unsigned i = 0; i < c->num_parts; i++)
        o.whole[i] = c->part[i].port;
    verify_fabric(&o, f->valid ? &f->tables : NULL, r);
}

static const struct verify_plane *plane_of(const struct verify_result *r, unsigned i)
{
    return i < r->num_planes ? &r->plane[r->plane[i].seen_from] : NULL;
}

/* The reason of the failure, by the tables on each plane. */
static void note_failure(struct applier *a, struct change *c)
{
    struct verify_result r;
    look_at_parts(a, c, &c->next, &r);
    for (unsigned i = 0; i < c->num_parts; i++) {
        struct part *p = &c->part[i];
        const struct verify_plane *v = plane_of(&r, i);
        if (!sms_runs(&a->sms, p->config))
            snprintf(p->why, sizeof(p->why), "its opensm does not run any more");
        else if (v && v->error)
            snprintf(p->why, sizeof(p->why), "cannot be looked at: %s", smp_open_error(v->error));
        else if (v && v->differences)
            snprintf(p->why, sizeof(p->why), "%u differences at %u ports", v->differences, v->ports);
    }
    verify_result_free(&r);
}

/* The result on each plane, for `result`: the ports' tables of f. */
static void parts_text(const struct change *c, const struct in_force *f, const struct verify_result *r,
                       const char *good, const char *bad, struct text *out)
{
    for (unsigned i = 0; i < c->num_parts; i++) {
        const struct part *p = &c->part[i];
        const struct verify_plane *v = plane_of(r, i);
        const struct qos_tables *t = tables_of_plane(&f->planes, &f->tables, p->port.guid);
        struct smp_port from = p->port;
        smp_name_port(&from);
        text_printf(out, "%s{port: \"%s/%d\", opensm: ", i ? ", " : "[", from.device, from.num);
        text_yaml_string(out, p->config);
        if (f->valid)
            text_printf(out, ", vls: %u", t->vls);
        if (v)
            text_printf(out, ", ports: %u, differences: %u", v->ports, v->differences);
        text_printf(out, ", result: %s", v && !v->error && !v->differences ? good : bad);
        if (*p->why) {
            text_printf(out, ", why: ");
            text_yaml_string(out, p->why);
        }
        text_put(out, "}", 1);
    }
    text_printf(out, c->num_parts ? "]" : "[]");
}

/* Of the generation that was tried, and for the status: f is in force now. */
static int tell_result(struct applier *a, struct change *c, const struct in_force *f, const char *good, const char *bad,
                       struct manager_event *out)
{
    struct verify_result r;
    struct text parts = {0};
    look_at_parts(a, c, f, &r);
    parts_text(c, f, &r, good, bad, &parts);
    int rc = keep_result(a, c->intent.generation, good, &parts);
    text_free(&out->planes);
    verdicts_compare_with(a->verdicts, f->lock.generation);
    out->num_planes =
        planes_take(&a->sms, f->valid ? &f->tables : NULL, &f->planes, &r, out->plane, a->verdicts, &out->planes);
    verify_result_free(&r);
    text_free(&parts);
    return rc;
}

/* ---- a new policy ---- */

/*
 * A running opensm brings its plane back; ports of other planes get their former tables by datagrams, and their opensm
 * finds the former file at its next start.
 */
static int undo_ports(struct applier *a, struct task *t, struct change *c, bool restarted, struct manager_event *out)
{
    struct smp_port dead[VERIFY_SUBNETS_MAX];
    unsigned num_dead = restarted ? 0 : sms_leave_dead(&a->sms, dead);
    int rc = a->sms.n || restarted ? mend_ports(a, t, c->before, restarted, out) : 0;
    for (unsigned i = 0; i < num_dead; i++) {
        say(a, t,
            "the opensm of the plane at %s port %d does not run any more: its ports get the tables of before from here",
            dead[i].device, dead[i].num);
        int one = c->before ? settle_put_back(a, t, c->before, &dead[i]) : -ESRCH;
        rc = rc ? rc : one;
    }
    return rc;
}

static void roll_back(struct applier *a, struct task *t, struct change *c, bool restarted, struct manager_event *out)
{
    struct text why = {0};
    char current[GENERATION_NAME_MAX];
    note_failure(a, c);
    a->num_settled = 0;
    a->undoes = true;
    say(a, t, ROLLING_BACK " to the configuration from before");
    sms_keep(&a->sms);
    if (t->current.valid)
        sms_merge(&a->sms, &t->current.tables, &t->current.planes);
    int rc = settle_said(a, t, sms_write_all(&a->sms, &why), &why);
    if (!rc)
        rc = undo_ports(a, t, c, restarted, out);
    if (!rc)
        store_intent_done(a->conf);
    out->ended = rc ? FD_ROLLBACK_FAILED : FD_ROLLED_BACK;
    if (rc)
        say(a, t, "what was there before is not in force again yet (%s): this is tried again until it is",
            strerror(-rc));
    store_current(a->conf, current);
    if (strcmp(current, c->intent.generation))
        tell_result(a, c, &t->current, rc ? "rollback failed" : "rolled back", "rollback failed", out);
}

/* False: the files are right already. */
static bool merge_files(struct applier *a, struct change *c)
{
    bool conf = sms_merge(&a->sms, &c->next.tables, &c->next.planes);
    return sms_merge_partitions(&a->sms, &c->next.policy, a->jobs, text_str(&c->adapters)) || conf;
}

/* Files and ports have the policy: opensm need not be disturbed. */
static bool already_there(struct applier *a, struct task *t, struct change *c, struct manager_event *out)
{
    struct verify_result r;
    settle_count(a, FD_PORTS_READ, 0);
    bool there = settle_look(a, &c->next, false, &r);
    if (there)
        say(a, t, "verified: %u ports of %u nodes had the policy's tables already", r.ports, r.nodes);
    settle_take_result(out, &r, there);
    verify_result_free(&r);
    return there;
}

/*
 * Saves the tables to put back if ports do not take a first policy, or if an opensm is gone. An interrupted change of a
 * first policy has saved them already.
 */
static int take_before(struct applier *a, struct task *t, struct change *c, bool interrupted)
{
    struct verify_options o = settle_options(a, &c->next.lock, false);
    char name[GENERATION_NAME_MAX];
    if (!t->current.valid && interrupted && (c->before = keep_load_before(a, name)))
        return 0;
    o.policy = &c->next.policy;
    settle_count(a, FD_PORTS_READ, 0);
    c->before = snapshot_take(&o);
    return t->current.valid ? 0 : keep_before(a, c->before);
}

/* All that a restart needs is on disk before the first change. */
static int begin(struct applier *a, struct task *t, struct change *c)
{
    struct store_intent pending;
    bool interrupted = store_intent(a->conf, &pending) != -ENOENT;
    int rc = take_before(a, t, c, interrupted);
    if (!rc && keep_is_same(&t->current, &c->next) && lock_equal(&t->current.lock, &c->next.lock))
        store_current(a->conf, c->intent.generation); /* the ports have lost it */
    if (!rc && !c->intent.generation[0])
        rc = keep_write(a, t, &c->next, c->intent.generation);
    keep_intend(a, &c->intent);
    if (!rc)
        rc = store_intend(a->conf, &c->intent);
    if (rc)
        say(a, t, "%s: %s: the policy could not be kept, so that nothing is changed", a->conf->state, strerror(-rc));
    return rc;
}

/* Ports have the policy. The policy is in force once the next start would use it. */
static int commit(struct applier *a, struct task *t, struct change *c, struct manager_event *out)
{
    char current[GENERATION_NAME_MAX];
    struct text found = {0};
    text_put(&found, text_str(&out->found), out->found.len);
    int rc = store_tell(a->conf, c->intent.generation, "found", &found);
    text_free(&found);
    if (!rc)
        rc = tell_result(a, c, &c->next, "in force", "differs", out);
    store_current(a->conf, current);
    if (!rc && strcmp(current, c->intent.generation))
        rc = store_commit(a->conf, c->intent.generation);
    if (rc)
        say(a, t, "%s: %s: the policy could not be kept", a->conf->state, strerror(-rc));
    store_current(a->conf, current);
    c->unsure = rc && !strcmp(current, c->intent.generation);
    return c->unsure ? 0 : rc;
}

static int write_and_push(struct applier *a, struct task *t, struct change *c)
{
    struct text why = {0};
    int rc = settle_said(a, t, sms_write(&a->sms, &why), &why);
    for (unsigned i = 0; !rc && i < a->sms.n; i++) {
        const struct sm *m = &a->sms.sm[i];
        say(a, t, "wrote %s", m->opensm.config);
        if (!partition_file_equal(&m->old_part, &m->new_part))
            say(a, t, m->new_part.there ? "wrote %s" : "removed %s", m->partitions);
    }
    return rc ? rc : settle_push(a, t, c->new_lmc);
}

/* Planes without a subnet manager: an error, unless they are to be passed over. */
static int check_planes(struct applier *a, struct task *t, struct change *c)
{
    struct text why = {0};
    if (!planes_missing(&a->sms, a->conf, &why))
        return 0;
    bool partial = t->flags & FD_CHANGE_PARTIAL;
    say(a, t, "%s%s", why.s, partial ? "" : "\nstart it and apply again; --partial passes over such planes");
    text_free(&why);
    c->partial = true;
    return partial ? 0 : -EHOSTDOWN;
}

static int check_restart(struct applier *a, struct task *t, struct change *c)
{
    struct text why = {0};
    bool can = !c->new_lmc || sms_can_restart(&a->sms, &why);
    return settle_said(a, t, can ? 0 : -ENOTSUP, &why);
}

/* The files of sms are merged, and all is known to be right that can be before anything is changed. */
static int change(struct applier *a, struct task *t, struct change *c, struct manager_event *out)
{
    struct text why = {0};
    note_parts(a, c);
    sms_note_stopped(&a->sms);
    int rc = begin(a, t, c);
    if (rc)
        return rc;
    rc = write_and_push(a, t, c);
    if (!rc && c->next.valid)
        rc = settle_ports(a, t, &c->next, true, out);
    else if (!rc)
        rc = settle_put_back(a, t, c->first, NULL);
    if (!rc) /* ports of a plane whose opensm is gone lose the tables at their next set-up */
        rc = settle_said(a, t, sms_all_run(&a->sms, &why), &why);
    if (!rc)
        rc = commit(a, t, c, out);
    if (rc) {
        roll_back(a, t, c, c->new_lmc, out);
        return rc;
    }
    int noted = t->flags & FD_CHANGE_ROLLBACK ? keep_publish_rollback(a, t, &c->next) : 0;
    keep_publish(a, t, &c->next);
    if (!c->unsure && !noted)
        store_intent_done(a->conf);
    return 0;
}

static int change_fabric(struct applier *a, struct task *t, struct change *c, struct manager_event *out)
{
    int rc = check_planes(a, t, c);
    if (rc)
        return rc;
    if (merge_files(a, c) || !already_there(a, t, c, out)) {
        rc = check_restart(a, t, c);
        return rc ? rc : change(a, t, c, out);
    }
    rc = keep_save(a, t, &c->next);
    if (rc)
        say(a, t, "%s: %s: the policy could not be kept", a->conf->state, strerror(-rc));
    if (!rc && t->flags & FD_CHANGE_ROLLBACK)
        keep_publish_rollback(a, t, &c->next);
    if (!rc)
        keep_publish(a, t, &c->next);
    return rc;
}

/* opensm is elsewhere: the ports must have the policy, or get it within the allowed time. */
static int wait_and_keep(struct applier *a, struct task *t, struct change *c, struct manager_event *out)
{
    int rc = settle_ports(a, t, &c->next, false, out);
    if (rc)
        return rc;
    rc = keep_save(a, t, &c->next);
    if (rc)
        say(a, t, "%s: %s: the policy could not be kept", a->conf->state, strerror(-rc));
    return rc;
}

/* In force, if all went well. */
static void finish_change(struct change *c, struct manager_event *out)
{
    if (!out->status) {
        out->changed = true;
        out->generation = c->next.lock.generation;
        out->next_in_force = c->next;
        out->status = c->unsure ? -EIO : 0;
        out->ended = c->partial ? FD_PLANE_MISSING : 0;
        c->next = (struct in_force){0};
    }
    in_force_free(&c->next);
    text_free(&c->adapters);
    snapshot_free(c->before);
    snapshot_free(c->first);
}

/* Its policy is the next one. */
static void take_policy(const struct applier *a, struct task *t, struct change *c)
{
    c->next.valid = true;
    c->next.text = t->text;
    t->text = (struct text){0};
    keep_number(a, t, &c->next);
}

void apply_policy(struct applier *a, struct task *t, struct manager_event *out)
{
    struct change c = {0};
    struct text why = {0};
    out->status = prepare(a, t, &c);
    if (!out->status)
        take_policy(a, t, &c);
    if (!out->status && a->sms.n)
        out->status = change_fabric(a, t, &c, out);
    else if (!out->status && a->conf->num_opensm)
        out->status = settle_said(a, t, sms_none(a->conf, &why), &why);
    else if (!out->status)
        out->status = wait_and_keep(a, t, &c, out);
    finish_change(&c, out);
}

/* ---- back to what was there before the first policy ---- */

/* From opensm's new files, which have lmc. */
static int take_first(struct applier *a, struct task *t, struct change *c)
{
    char name[GENERATION_NAME_MAX], value[16];
    struct text why = {0};
    int rc = settle_said(a, t, sms_read(&a->sms, &why), &why);
    c->first = keep_load_before(a, name);
    if (!rc && !c->first)
        rc = -ENOENT;
    for (unsigned i = 0; i < a->sms.n && !rc; i++) {
        struct sm *m = &a->sms.sm[i];
        text_free(&m->new_conf);
        rc = keep_load_config(a, name, m->opensm.config, OPENSM_CONF_MAX, &m->new_conf);
        unsigned lmc = opensm_conf_get(text_str(&m->new_conf), "lmc", value, sizeof(value)) ? (unsigned)atoi(value) : 0;
        c->new_lmc = c->new_lmc || lmc != t->current.tables.lmc;
    }
    sms_merge_partitions(&a->sms, NULL, NULL, NULL);
    if (rc == -ENOENT)
        say(a, t, "what was there before the first policy is not known, or not of all planes");
    return rc;
}

void apply_nothing(struct applier *a, struct task *t, uint64_t as, struct manager_event *out)
{
    struct change c = {.next.lock = t->current.lock};
    struct text why = {0};
    if (!a->sms.n && !a->conf->num_opensm)
        text_printf(&why, "fabricd.yaml names no opensm: roll back on the host that manages the subnet");
    if (!a->sms.n) {
        out->status = settle_said(a, t, a->conf->num_opensm ? sms_none(a->conf, &why) : -EPERM, &why);
        return;
    }
    for (unsigned i = 0; i < c.next.lock.num_classes; i++)
        c.next.lock.classes[i].retired = true;
    c.next.lock.none = true;
    store_stamp(&c.next, as ? as : store_next_number(a->conf, t->generation));
    out->status = t->current.valid ? take_first(a, t, &c) : -ENODATA;
    if (!t->current.valid)
        say(a, t, "no policy is in force");
    if (!out->status)
        out->status = check_planes(a, t, &c);
    if (!out->status)
        out->status = check_restart(a, t, &c);
    if (!out->status)
        out->status = change(a, t, &c, out);
    finish_change(&c, out);
}

/* ---- what would be changed ---- */

static void tell_would_write(struct applier *a, struct task *t, const struct sm *m)
{
    if (strcmp(text_str(&m->old_conf), text_str(&m->new_conf)))
        say(a, t, "would write %s", m->opensm.config);
    if (!partition_file_equal(&m->old_part, &m->new_part))
        say(a, t, "would write %s", m->partitions);
}

void apply_dry(struct applier *a, struct task *t, struct manager_event *out)
{
    struct change c = {0};
    struct text why = {0};
    out->status = prepare(a, t, &c);
    if (out->status)
        return;
    take_policy(a, t, &c);
    if (!a->sms.n && a->conf->num_opensm)
        out->status = settle_said(a, t, sms_none(a->conf, &why), &why);
    if (!out->status && a->sms.n)
        out->status = check_planes(a, t, &c);
    if (!out->status)
        out->status = check_restart(a, t, &c);
    bool files = merge_files(a, &c);
    for (unsigned i = 0; files && !out->status && i < a->sms.n; i++)
        tell_would_write(a, t, &a->sms.sm[i]);
    struct verify_result r;
    bool there = settle_look(a, &c.next, false, &r);
    if (!out->status && !there)
        say(a, t, "%s%u differences on %u ports of %u nodes would be mended by opensm%s", text_str(&r.text),
            r.differences, r.ports, r.nodes, c.new_lmc ? ", which would be restarted" : "");
    if (!out->status && there && !files)
        say(a, t, "opensm and the ports have what this policy wants");
    if (!out->status)
        say(a, t, "would be generation %llu%s", (unsigned long long)c.next.lock.generation,
            keep_is_same(&t->current, &c.next) ? ", as before" : "");
    settle_tell_found(out, &r);
    text_free(&c.adapters);
    verify_result_free(&r);
    in_force_free(&c.next);
}

void apply_diff(struct applier *a, struct task *t, struct manager_event *out)
{
    struct change c = {0};
    struct verify_result r;
    out->status = prepare(a, t, &c);
    if (out->status)
        return;
    c.next.valid = true;
    bool same = settle_look(a, &c.next, true, &r);
    if (r.error)
        say(a, t, "the fabric cannot be looked at: %s", smp_open_error(r.error));
    else if (same)
        say(a, t, "all %u ports have what this policy wants", r.ports);
    else
        say(a, t, "%s%u differences on %u ports of %u nodes", text_str(&r.text), r.differences, r.ports, r.nodes);
    out->status = r.error ? r.error : same ? 0 : -EILSEQ;
    settle_tell_found(out, &r);
    text_free(&c.adapters);
    verify_result_free(&r);
}
