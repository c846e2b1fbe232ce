/* SPDX-License-Identifier: BSD-3-Clause */
/* A policy is put in force: prepare, write, push, settle, else roll back. See apply.h. */
#include "fabricd/apply.h"
#include "fabricd/clock.h"
#include "fabricd/fabric/opensm.h"
#include "fabricd/fabric/snapshot.h"
#include "fabricd/fabric/verify.h"
#include "fabricd/keep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tables still wrong: opensm wrote them before OperVLs was settled, and a second sweep mends that. */
#define RELOAD_AGAIN_MS 1500
/* Still wrong: opensm believes that they are right and must be made to write them. Both come sooner if time is short.
 */
#define REWRITE_AFTER_MS  4000
#define PUT_BACK_EVERY_MS 500
#define PUT_BACK_LOOKS    10
/* An opensm that is started anew by its command may be away for so long. */
#define OPENSM_AWAY_MS 5000

#define say(a, t, ...) manager_say((a)->m, t, __VA_ARGS__)

/* The last line of what went wrong, if anything did. */
static int said(struct applier *a, struct task *t, int rc, struct text *why)
{
    if (why->len)
        say(a, t, "%s", why->s);
    text_free(why);
    return rc;
}

static struct smp_port configured_port(const struct conf *c)
{
    struct smp_port p = {.num = (int)c->port};
    snprintf(p.device, sizeof(p.device), "%.*s", (int)sizeof(p.device) - 1, c->device);
    return p;
}

struct verify_options apply_look_options(const struct applier *a, const struct policy_lock *lock, bool others)
{
    struct verify_options o = {.high_limit = a->conf->verify_high_limit};
    bool manages = a->sms.n, told = lock_knows_fabric(lock) && lock->fabric.oversubscription;
    if (manages) {
        memcpy(o.whole, a->sms.port, sizeof(o.whole));
        o.num_whole = a->sms.num_ports;
    } else if (!told) {
        o.whole[0] = configured_port(a->conf);
        o.num_whole = 1;
    } else if (a->conf->device[0]) {
        o.near[0] = configured_port(a->conf);
        o.num_near = 1;
    }
    if (!a->conf->device[0] && told && (!manages || others))
        o.num_near = smp_active_ports(o.near);
    return o;
}

/* For programs: fabricctl's --json. */
static void tell_found(struct manager_event *e, const struct verify_result *r)
{
    text_free(&e->found);
    if (r->error)
        return;
    text_printf(&e->found, "nodes: %u\nports: %u\ndifferences: %u\ndiffer:%s\n%s", r->nodes, r->ports, r->differences,
                r->list.len ? "" : " []", text_str(&r->list));
}

void apply_take_result(struct manager_event *e, struct verify_result *r, bool verified)
{
    tell_found(e, r);
    e->looked = !r->error;
    e->verified = verified;
    e->nodes = r->nodes;
    e->ports = r->ports;
    e->differences = r->differences;
    e->caps = r->caps;
    text_free(&e->text);
    e->text = r->text;
    r->text = (struct text){0};
}

struct change {
    struct qos_tables tables;
    struct policy policy;
    struct policy_lock lock;
    bool new_lmc;            /* a port has another than the policy wants */
    unsigned ca_ports;       /* that each need their LIDs */
    struct snapshot *before; /* what ports had, if no policy was in force; or NULL */
    struct in_force next;
    struct store_intent intent;
    bool unsure; /* it is in force, and perhaps would not be after a loss of power */
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

/* What is not ours in opensm's file, and has to do with service levels and LIDs. */
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
        fits = policy_check_subnet(&c->policy, &subnet, d) && fits;
    }
    return fits;
}

/* Another host has put the policy in force. */
static bool is_told(const struct applier *a, const struct task *t)
{
    return !a->sms.n || t->kind == TASK_FOLLOW;
}

/*
 * What service levels have been given out. Where this node manages the subnet that is what is in force; elsewhere the
 * manager's lock has come with the policy.
 */
static bool read_lock(struct applier *a, struct task *t, const struct policy *p, struct policy_lock *out)
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

static int look(struct applier *a, struct task *t, struct change *c, const struct policy_lock *given,
                struct fabric_caps *caps)
{
    struct verify_options o = apply_look_options(a, given, false);
    struct verify_result r;
    verify_fabric(&o, NULL, &r);
    int rc = r.error;
    if (rc) {
        say(a, t, "the fabric cannot be looked at: %s", strerror(-rc));
    } else {
        *caps = r.caps;
        c->ca_ports = r.ca_ports;
        c->new_lmc = r.lmc != c->policy.lmc || r.lmc_most != c->policy.lmc;
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

/* Everything that can be known to be wrong before anything is changed. */
static int prepare(struct applier *a, struct task *t, struct change *c)
{
    struct diag d = {.file = t->name};
    bool parsed = policy_parse(&c->policy, text_str(&t->text), t->text.len, &d);
    if (refuse(a, t, &d) || !parsed)
        return -EINVAL;
    struct text why = {0};
    int rc = said(a, t, sms_read(&a->sms, &why), &why);
    if (rc)
        return rc;
    struct fabric_caps caps = {0};
    struct policy_lock given;
    if (!read_lock(a, t, &c->policy, &given))
        return -EINVAL;
    rc = look(a, t, c, &given, &caps);
    if (rc)
        return rc;
    /* Every node is to compile with the same facts, and paths look different from here. */
    bool told = is_told(a, t) && lock_knows_fabric(&given);
    bool fits = lock_next(&c->policy, &given, told ? NULL : &caps, &c->lock, &d) &&
                policy_compile(&c->policy, &c->lock, &c->tables, &d) && fits_subnets(a, t, c, &d);
    return refuse(a, t, &d) || !fits ? -EINVAL : 0;
}

/* Have opensm take what is in its file. */
static int push(struct applier *a, struct task *t, bool restart)
{
    struct text why = {0};
    if (restart)
        say(a, t, "restarting opensm, because lmc changes");
    int rc = restart ? sms_restart(&a->sms, &why) : sms_reload(&a->sms, &why);
    return said(a, t, rc, &why);
}

/* Never 0, which takes the lane out of the table. */
static uint8_t other_weight(uint8_t w)
{
    return w == 255 ? 254 : (uint8_t)(w + 1);
}

/*
 * opensm writes a table only when the configuration differs from what it wrote last, so a table that was changed behind
 * its back stays wrong. Let it write a harmless variant first, then the real thing.
 */
static int rewrite(struct applier *a, struct task *t, struct change *c)
{
    struct qos_tables variant = c->tables;
    struct text why = {0};
    say(a, t, "the ports do not change: having opensm write all tables again");
    for (unsigned i = 0; i < variant.num_low; i++)
        variant.low[i].weight = other_weight(variant.low[i].weight);
    for (unsigned i = 0; i < variant.num_high; i++)
        variant.high[i].weight = other_weight(variant.high[i].weight);
    variant.high_limit ^= 1;
    variant.sl2vl[SLS - 1] = variant.sl2vl[SLS - 1] ? 0 : variant.low[variant.num_low - 1].vl;
    int rc = said(a, t, sms_write_tables(&a->sms, &variant, &why), &why);
    if (rc)
        return rc;
    rc = push(a, t, false);
    struct verify_options o = apply_look_options(a, &c->lock, false);
    for (unsigned tries = 0; !rc && tries < 20; tries++) {
        struct verify_result r;
        bool taken = verify_fabric(&o, &variant, &r);
        verify_result_free(&r);
        if (taken)
            break;
        if (!manager_pause(a->m, 100))
            rc = -ECANCELED;
    }
    int again = said(a, t, sms_write(&a->sms, &why), &why);
    if (!again)
        again = push(a, t, false);
    return rc ? rc : again;
}

/* The likely causes of ports that do not change. */
static void say_why_not(struct applier *a, struct task *t, unsigned other_sm_lid)
{
    struct text who = {0};
    sms_name(&a->sms, &who);
    if (other_sm_lid)
        say(a, t, "the subnet has another master, at LID %u: %s only stands by; apply on the host of the master",
            other_sm_lid, who.s);
    else
        say(a, t, "%s was told by SIGHUP, and has not given the ports the tables within %u s: see its log", who.s,
            a->conf->verify_timeout_s);
    text_free(&who);
}

/*
 * How long the ports have had, in ms. What opensm waits for a processor, on a host that has other work, is not their
 * time: if it is ready to run at a look, what it has computed since the last one counts. At most nine tenths of what
 * goes by are such waits.
 */
struct stopwatch {
    uint64_t start, last, cpu, had;
};

static uint64_t stopwatch_read(struct stopwatch *w, const struct sms *sms)
{
    uint64_t cpu, now = clock_us() / 1000;
    bool ready = sms_ready(sms, &cpu);
    uint64_t computed = cpu > w->cpu ? cpu - w->cpu : 0, passed = now - w->last; /* a new process begins anew */
    w->had += ready && computed < passed ? computed : passed;
    w->last = now;
    w->cpu = cpu;
    return w->had > (now - w->start) / 10 ? w->had : (now - w->start) / 10;
}

static struct stopwatch stopwatch_start(const struct sms *sms)
{
    struct stopwatch w = {.start = clock_us() / 1000};
    sms_ready(sms, &w.cpu);
    w.last = w.start;
    return w;
}

/* Look until all is as wanted or time is up; help opensm along where it is known to fall short. */
static int settle(struct applier *a, struct task *t, struct change *c, const struct qos_tables *want, bool may_push,
                  struct manager_event *out)
{
    struct verify_options o = apply_look_options(a, &c->lock, false);
    struct stopwatch watch = stopwatch_start(&a->sms);
    uint64_t limit = (uint64_t)a->conf->verify_timeout_s * 1000;
    uint64_t reload_at = limit / 6 < RELOAD_AGAIN_MS ? limit / 6 : RELOAD_AGAIN_MS;
    uint64_t rewrite_at = limit / 3 < REWRITE_AFTER_MS ? limit / 3 : REWRITE_AFTER_MS;
    bool reloaded = !may_push, rewritten = !may_push;
    for (unsigned wait = 20;; wait = wait < 200 ? wait * 2 : 250) {
        struct verify_result r;
        struct text why = {0};
        bool ok = verify_fabric(&o, want, &r);
        uint64_t took = stopwatch_read(&watch, &a->sms);
        unsigned ports = r.ports, nodes = r.nodes, differences = r.differences;
        unsigned other_sm_lid = r.other_sm_lid;
        bool lag = r.vls_lag, unsettled = r.unsettled || r.error;
        apply_take_result(out, &r, ok);
        verify_result_free(&r);
        if (ok) {
            say(a, t, "verified: %u ports of %u nodes have the policy's tables, after %llu ms", ports, nodes,
                (unsigned long long)took);
            return 0;
        }
        if (took > limit) {
            say(a, t, "not verified within %u s: %u differences on %u ports of %u nodes%s%.*s",
                a->conf->verify_timeout_s, differences, ports, nodes, out->text.len ? "\n" : "",
                (int)(out->text.len ? out->text.len - 1 : 0), text_str(&out->text));
            if (may_push)
                say_why_not(a, t, other_sm_lid);
            return -ETIMEDOUT;
        }
        int rc = 0;
        if (!reloaded && !unsettled && (took > reload_at || (lag && took > reload_at / 3))) {
            say(a, t, "%u differences after the first sweep: asking opensm for another", differences);
            reloaded = true;
            rc = push(a, t, false);
        } else if (!rewritten && !unsettled && !lag && took > rewrite_at) {
            rewritten = true;
            rc = rewrite(a, t, c);
        } else if (may_push && clock_us() / 1000 - watch.start > OPENSM_AWAY_MS) {
            rc = said(a, t, sms_all_run(&a->sms, &why), &why);
        }
        if (rc)
            return rc;
        if (!manager_pause(a->m, wait))
            return -ECANCELED;
    }
}

/*
 * The ports' tables of before the first policy. opensm may be at work still, by its file of before; when a look finds
 * nothing to do, it has come to rest. 0; -EIO: some could not be written; -ECANCELED.
 */
static int put_back(struct applier *a, struct task *t, const struct snapshot *before)
{
    unsigned written = 0, failed = 0;
    for (unsigned i = 0; i < PUT_BACK_LOOKS; i++) {
        unsigned now = snapshot_put_back(before, &failed);
        written += now;
        if (i && !now)
            break;
        if (!manager_pause(a->m, PUT_BACK_EVERY_MS))
            return -ECANCELED;
    }
    if (failed)
        say(a, t, "%u blocks of the ports' tables are not what they were before: they could not be written back",
            failed);
    else if (written)
        say(a, t, "the ports have the tables of before again: %u blocks written back", written);
    return failed ? -EIO : 0;
}

/* ---- back to what is in force ---- */

/* The files and the ports, by opensm that run. They agree with what is in force, and nothing remains to be done: 0. */
static int bring_back(struct applier *a, struct task *t, struct change *c, bool restart, struct manager_event *out)
{
    int rc = push(a, t, restart);
    if (rc)
        return rc;
    if (t->current.valid)
        return settle(a, t, c, &t->current.tables, true, out);
    return c->before ? put_back(a, t, c->before) : 0;
}

/* How it ended, beside the generation that was tried. */
static void tell_end(struct applier *a, const struct change *c, const char *what)
{
    struct text t = {0};
    text_printf(&t, "result: %s\n", what);
    store_tell(a->conf, c->intent.generation, "result", &t);
    text_free(&t);
}

static void roll_back(struct applier *a, struct task *t, struct change *c, bool restarted, struct manager_event *out)
{
    struct text why = {0};
    struct change back = {.lock = t->current.lock, .tables = t->current.tables, .before = c->before};
    char current[GENERATION_NAME_MAX];
    say(a, t, "rolling back to the configuration from before");
    if (t->current.valid)
        sms_merge(&a->sms, &t->current.tables);
    else
        sms_keep(&a->sms);
    int rc = said(a, t, sms_write_all(&a->sms, &why), &why);
    if (!rc)
        rc = bring_back(a, t, &back, restarted, out);
    if (!rc)
        store_intent_done(a->conf);
    out->ended = rc ? FD_ROLLBACK_FAILED : FD_ROLLED_BACK;
    if (rc)
        say(a, t, "what was there before is not in force again yet (%s): this is tried again until it is",
            strerror(-rc));
    store_current(a->conf, current);
    if (strcmp(current, c->intent.generation))
        tell_end(a, c, rc ? "rollback failed" : "rolled back");
}

/* One of opensm's files of an interrupted change. -ENOENT: it is not known what it had. */
static int mend_file(struct applier *a, struct task *t, const char *before, const char *config)
{
    struct text conf = {0}, next = {0}, why = {0};
    int rc = text_read_file(&conf, config, OPENSM_CONF_MAX);
    if (rc == -ENOENT)
        rc = 0;
    sms_clean(config);
    if (!rc && t->current.valid)
        opensm_conf_merge(text_str(&conf), &t->current.tables, &next);
    else if (!rc)
        rc = keep_load_config(a, before, config, &next);
    if (!rc && (next.len != conf.len || memcmp(text_str(&next), text_str(&conf), next.len))) {
        rc = said(a, t, sms_write_file(config, &next, &why), &why);
        if (!rc)
            say(a, t, "wrote %s", config);
    } else if (rc) {
        say(a, t, "%s: %s", config, strerror(-rc));
    }
    text_free(&conf);
    text_free(&next);
    return rc;
}

static bool is_ours(const struct applier *a, const char *config)
{
    for (unsigned i = 0; i < a->conf->num_opensm; i++)
        if (!strcmp(a->conf->opensm[i].config, config))
            return true;
    return false;
}

/* The interrupted change says which files; without its word all of opensm that run. */
static int mend_files(struct applier *a, struct task *t, struct store_intent *i, const char *before)
{
    int rc = 0;
    for (unsigned k = 0; !i->n && k < a->sms.n; k++)
        snprintf(i->config[k], sizeof(i->config[k]), "%s", a->sms.sm[k].opensm.config);
    i->n = i->n ? i->n : a->sms.n;
    for (unsigned k = 0; k < i->n; k++) {
        int one = is_ours(a, i->config[k]) ? mend_file(a, t, before, i->config[k]) : 0;
        rc = rc ? rc : one;
    }
    return rc;
}

/* Its opensm, of all that run. -ESRCH: one does not. */
static int all_run(struct applier *a, struct task *t, const struct store_intent *i)
{
    for (unsigned k = 0; k < i->n; k++) {
        bool runs = !is_ours(a, i->config[k]);
        for (unsigned m = 0; m < a->sms.n; m++)
            runs = runs || !strcmp(a->sms.sm[m].opensm.config, i->config[k]);
        if (runs)
            continue;
        say(a, t, "no opensm that reads %s runs here: the interrupted change is finished when it does", i->config[k]);
        return -ESRCH;
    }
    return 0;
}

/* LMC changes only when opensm restarts. */
static bool lmc_differs(struct applier *a, const struct in_force *f)
{
    struct verify_options o = apply_look_options(a, &f->lock, false);
    struct verify_result r;
    verify_fabric(&o, NULL, &r);
    bool differs = f->valid && !r.error && (r.lmc != f->policy.lmc || r.lmc_most != f->policy.lmc);
    verify_result_free(&r);
    return differs;
}

int apply_finish(struct applier *a, struct task *t, struct store_intent *i, struct manager_event *out)
{
    struct change c = {.lock = t->current.lock, .tables = t->current.tables, .intent = *i};
    struct text why = {0};
    char before[GENERATION_NAME_MAX] = "", current[GENERATION_NAME_MAX];
    store_current(a->conf, current);
    bool forward = !strcmp(current, i->generation);
    say(a, t, "a change was interrupted: bringing opensm and the ports to %s",
        t->current.valid ? "the policy in force" : "what was there before the first policy");
    if (!t->current.valid)
        c.before = keep_load_before(a, before);
    store_clean_published(a->conf);
    int rc = mend_files(a, t, i, before);
    if (!rc)
        rc = all_run(a, t, i);
    if (!rc && i->n) {
        out->disturbed = true;
        rc = said(a, t, sms_read(&a->sms, &why), &why);
        if (t->current.valid)
            sms_merge(&a->sms, &c.tables);
        if (!rc)
            rc = bring_back(a, t, &c, lmc_differs(a, &t->current) && sms_can_restart(&a->sms, &why), out);
        text_free(&why);
    }
    if (!rc) {
        if (!forward && *i->generation)
            tell_end(a, &c, "interrupted, and undone at the next start");
        rc = *current ? store_commit(a->conf, current) : 0; /* perhaps its sync had failed */
        if (!rc)
            rc = store_intent_done(a->conf);
        keep_publish(a, t, &t->current);
    }
    snapshot_free(c.before);
    return rc;
}

/* The files say it and the ports have it: opensm need not be disturbed. */
static bool already_there(struct applier *a, struct task *t, struct change *c, struct manager_event *out)
{
    struct verify_options o = apply_look_options(a, &c->lock, false);
    struct verify_result r;
    bool there = verify_fabric(&o, &c->tables, &r);
    if (there)
        say(a, t, "verified: %u ports of %u nodes had the policy's tables already", r.ports, r.nodes);
    apply_take_result(out, &r, there);
    verify_result_free(&r);
    return there;
}

/* What is to be put back if ports do not take a first policy. Another change that was interrupted has taken it. */
static int take_before(struct applier *a, struct task *t, struct change *c, bool interrupted)
{
    struct verify_options o = apply_look_options(a, &c->lock, false);
    char name[GENERATION_NAME_MAX];
    if (t->current.valid)
        return 0;
    if (interrupted && (c->before = keep_load_before(a, name)))
        return 0;
    c->before = snapshot_take(&o);
    return keep_before(a, c->before);
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
    for (unsigned i = 0; i < a->sms.n; i++)
        snprintf(c->intent.config[i], sizeof(c->intent.config[i]), "%s", a->sms.sm[i].opensm.config);
    c->intent.n = a->sms.n;
    if (!rc)
        rc = store_intend(a->conf, &c->intent);
    if (rc)
        say(a, t, "%s: %s: the policy could not be kept, so that nothing is changed", a->conf->state, strerror(-rc));
    return rc;
}

/* Ports have it. It is in force when it would be at the next start. */
static int commit(struct applier *a, struct task *t, struct change *c, const struct manager_event *out)
{
    char current[GENERATION_NAME_MAX];
    struct text found = {0};
    text_put(&found, text_str(&out->found), out->found.len);
    store_tell(a->conf, c->intent.generation, "found", &found);
    text_free(&found);
    tell_end(a, c, "in force");
    store_current(a->conf, current);
    int rc = strcmp(current, c->intent.generation) ? store_commit(a->conf, c->intent.generation) : 0;
    if (rc)
        say(a, t, "%s/current: %s: the policy could not be kept", a->conf->state, strerror(-rc));
    store_current(a->conf, current);
    c->unsure = rc && !strcmp(current, c->intent.generation);
    return c->unsure ? 0 : rc;
}

static int write_and_push(struct applier *a, struct task *t, struct change *c)
{
    struct text why = {0};
    int rc = said(a, t, sms_write(&a->sms, &why), &why);
    for (unsigned i = 0; !rc && i < a->sms.n; i++)
        say(a, t, "wrote %s", a->sms.sm[i].opensm.config);
    return rc ? rc : push(a, t, c->new_lmc);
}

static int change_fabric(struct applier *a, struct task *t, struct change *c, struct manager_event *out)
{
    struct text why = {0};
    if (!sms_merge(&a->sms, &c->tables) && already_there(a, t, c, out)) {
        int kept = keep_save(a, t, &c->next);
        if (!kept)
            keep_publish(a, t, &c->next);
        return kept;
    }
    int rc = c->new_lmc && !sms_can_restart(&a->sms, &why) ? said(a, t, -ENOTSUP, &why) : begin(a, t, c);
    if (rc)
        return rc;
    rc = write_and_push(a, t, c);
    if (!rc)
        rc = settle(a, t, c, &c->tables, true, out);
    if (!rc)
        rc = commit(a, t, c, out);
    if (rc) {
        roll_back(a, t, c, c->new_lmc, out);
        return rc;
    }
    keep_publish(a, t, &c->next);
    if (!c->unsure)
        store_intent_done(a->conf);
    return 0;
}

/* opensm is elsewhere: the ports must have it, or get it within the time allowed. */
static int wait_and_keep(struct applier *a, struct task *t, struct change *c, struct manager_event *out)
{
    int rc = settle(a, t, c, &c->tables, false, out);
    return rc ? rc : keep_save(a, t, &c->next);
}

void apply_policy(struct applier *a, struct task *t, struct manager_event *out)
{
    struct change c = {0};
    struct text why = {0};
    out->status = prepare(a, t, &c);
    if (!out->status) {
        c.next = (struct in_force){.valid = true, .policy = c.policy, .lock = c.lock, .tables = c.tables};
        c.next.text = t->text;
        t->text = (struct text){0};
        keep_number(a, t, &c.next);
        if (a->sms.n)
            out->status = change_fabric(a, t, &c, out);
        else if (a->conf->num_opensm)
            out->status = said(a, t, sms_none(a->conf, &why), &why);
        else
            out->status = wait_and_keep(a, t, &c, out);
    }
    if (!out->status) {
        out->changed = true;
        out->generation = c.next.lock.generation;
        out->next_in_force = c.next;
        out->status = c.unsure ? -EIO : 0;
        c.next = (struct in_force){0};
    }
    in_force_free(&c.next);
    snapshot_free(c.before);
}

void apply_diff(struct applier *a, struct task *t, struct manager_event *out)
{
    struct change c = {0};
    struct verify_result r;
    out->status = prepare(a, t, &c);
    if (out->status)
        return;
    struct verify_options o = apply_look_options(a, &c.lock, true);
    bool same = verify_fabric(&o, &c.tables, &r);
    if (r.error)
        say(a, t, "the fabric cannot be looked at: %s", strerror(-r.error));
    else if (same)
        say(a, t, "all %u ports have what this policy wants", r.ports);
    else
        say(a, t, "%s%u differences on %u ports of %u nodes", text_str(&r.text), r.differences, r.ports, r.nodes);
    out->status = r.error ? r.error : same ? 0 : -EILSEQ;
    tell_found(out, &r);
    verify_result_free(&r);
}

int apply_wait(struct applier *a, struct task *t, const struct in_force *f, struct manager_event *out)
{
    struct change c = {.lock = f->lock};
    return settle(a, t, &c, &f->tables, false, out);
}
