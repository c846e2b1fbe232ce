/* SPDX-License-Identifier: BSD-3-Clause */
/* A policy is put in force: prepare, write, push, settle, else roll back. See apply.h. */
#include "fabricd/apply.h"
#include "fabricd/opensm.h"
#include "fabricd/verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Tables still wrong: opensm wrote them before OperVLs was settled, and a second sweep mends that. */
#define RELOAD_AGAIN_MS 1500
/* Still wrong: opensm believes that they are right and must be made to write them. Both come sooner if time is short.
 */
#define REWRITE_AFTER_MS   4000
#define RESTART_TIMEOUT_MS 60000

#define say(a, t, ...) manager_say((a)->m, t, __VA_ARGS__)

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static struct opensm opensm_of(const struct conf *c)
{
    return (struct opensm){
        .config = c->opensm_config,
        .pid_file = c->opensm_pid_file[0] ? c->opensm_pid_file : NULL,
        .restart = c->opensm_restart[0] ? c->opensm_restart : NULL,
    };
}

bool apply_manages(const struct conf *conf)
{
    struct opensm o = opensm_of(conf);
    return conf->manage && opensm_running(&o) > 0;
}

struct verify_options apply_look_options(const struct applier *a, const struct policy_lock *lock)
{
    return (struct verify_options){
        .high_limit = a->conf->verify_high_limit,
        .near = !a->manages && lock_knows_fabric(lock) && lock->fabric.oversubscription,
        .device = a->conf->device[0] ? a->conf->device : NULL,
        .port = (int)a->conf->port,
    };
}

void apply_take_result(struct manager_event *e, struct verify_result *r, bool verified)
{
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
    struct opensm opensm;
    struct text old_conf, new_conf;
    struct qos_tables tables;
    struct policy policy;
    struct policy_lock lock;
    unsigned old_lmc;
    char engine[64]; /* opensm's routing_engine */
    struct subnet subnet;
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

static int read_conf(struct applier *a, struct task *t, struct change *c)
{
    char value[PATH_MAX];
    int rc = a->conf->manage ? text_read_file(&c->old_conf, a->conf->opensm_config, OPENSM_CONF_MAX) : 0;
    if (!rc && strlen(text_str(&c->old_conf)) != c->old_conf.len)
        rc = -EILSEQ; /* a zero byte: not a text file, and what follows it would be lost */
    if (rc && rc != -ENOENT) {
        say(a, t, "%s: %s", a->conf->opensm_config, strerror(-rc));
        return rc;
    }
    if (opensm_conf_get(text_str(&c->old_conf), "routing_engine", c->engine, sizeof(c->engine)))
        c->subnet.routing_engine = c->engine;
    if (opensm_conf_get(text_str(&c->old_conf), "qos_policy_file", value, sizeof(value)) && strcmp(value, "(null)") &&
        !access(value, F_OK))
        say(a, t, "warning: opensm also has %s: the service levels that it gives out ride on this policy's lanes",
            value);
    if (opensm_conf_get(text_str(&c->old_conf), "sm_sl", value, sizeof(value)))
        c->subnet.sm_sl = (unsigned)strtoul(value, NULL, 0);
    if (opensm_conf_get(text_str(&c->old_conf), "lmc", value, sizeof(value)))
        c->old_lmc = (unsigned)strtoul(value, NULL, 0);
    return 0;
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
    if (!a->conf->manage && beside.num_classes)
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
    struct verify_options o = apply_look_options(a, given);
    struct verify_result r;
    verify_fabric(&o, NULL, &r);
    int rc = r.error;
    if (rc) {
        say(a, t, "the fabric cannot be looked at: %s", strerror(-rc));
    } else {
        *caps = r.caps;
        c->subnet.ca_ports = r.ca_ports;
        c->old_lmc = r.lmc;
        say(a, t, "%u ports of %u nodes are up; links can have %u data VLs, tables %u low and %u high entries", r.ports,
            r.nodes, r.caps.vls, r.caps.low_cap, r.caps.high_cap);
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
    int rc = read_conf(a, t, c);
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
    bool told = !a->conf->manage && lock_knows_fabric(&given);
    bool fits = lock_next(&c->policy, &given, told ? NULL : &caps, &c->lock, &d) &&
                policy_compile(&c->policy, &c->lock, &c->tables, &d) && policy_check_subnet(&c->policy, &c->subnet, &d);
    return refuse(a, t, &d) || !fits ? -EINVAL : 0;
}

static int write_conf(struct applier *a, struct task *t, const struct text *conf)
{
    char *path = realpath(a->conf->opensm_config, NULL); /* the file that a link leads to is what opensm reads */
    int rc = text_write_file(path ? path : a->conf->opensm_config, text_str(conf), conf->len);
    if (rc)
        say(a, t, "%s: %s", a->conf->opensm_config, strerror(-rc));
    free(path);
    return rc;
}

static int no_opensm(struct applier *a, struct task *t, const struct change *c, int rc)
{
    if (c->opensm.pid_file)
        say(a, t, "opensm does not run here (pid file %s): %s; start it and apply again", c->opensm.pid_file,
            strerror(-rc));
    else
        say(a, t, "no opensm that reads %s runs here: start it and apply again, or apply on the host where it runs",
            c->opensm.config);
    return rc;
}

/* Make opensm take what is in its file. */
static int push(struct applier *a, struct task *t, const struct change *c, bool restart)
{
    int rc;
    if (restart) {
        if (!c->opensm.restart) {
            say(a, t, "lmc changes only when opensm restarts, and fabricd.yaml has no opensm: restart: command");
            return -ENOTSUP;
        }
        say(a, t, "restarting opensm, because lmc changes (%s)", c->opensm.restart);
        rc = opensm_restart(&c->opensm, RESTART_TIMEOUT_MS);
        if (rc > 0) {
            say(a, t, "the restart command failed with status %d", rc);
            rc = -EIO;
        } else if (rc < 0)
            say(a, t, "the restart command: %s", strerror(-rc));
        return rc;
    }
    rc = opensm_reload(&c->opensm);
    return rc ? no_opensm(a, t, c, rc) : 0;
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
    struct text conf = {0};
    say(a, t, "opensm believes that the tables are right: making it write them again");
    for (unsigned i = 0; i < variant.num_low; i++)
        variant.low[i].weight = other_weight(variant.low[i].weight);
    for (unsigned i = 0; i < variant.num_high; i++)
        variant.high[i].weight = other_weight(variant.high[i].weight);
    variant.high_limit ^= 1;
    variant.sl2vl[SLS - 1] = variant.sl2vl[SLS - 1] ? 0 : variant.low[variant.num_low - 1].vl;
    opensm_conf_merge(text_str(&c->old_conf), &variant, &conf);
    int rc = write_conf(a, t, &conf);
    text_free(&conf);
    if (rc)
        return rc;
    rc = push(a, t, c, false);
    struct verify_options o = apply_look_options(a, &c->lock);
    for (unsigned tries = 0; !rc && tries < 20; tries++) {
        struct verify_result r;
        bool taken = verify_fabric(&o, &variant, &r);
        verify_result_free(&r);
        if (taken)
            break;
        if (!manager_pause(a->m, 100))
            rc = -ECANCELED;
    }
    int again = write_conf(a, t, &c->new_conf);
    if (!again)
        again = push(a, t, c, false);
    return rc ? rc : again;
}

/* Look until all is as wanted or time is up; help opensm along where it is known to fall short. */
static int settle(struct applier *a, struct task *t, struct change *c, const struct qos_tables *want, bool may_push,
                  struct manager_event *out)
{
    struct verify_options o = apply_look_options(a, &c->lock);
    uint64_t start = now_ms(), limit = (uint64_t)a->conf->verify_timeout_s * 1000;
    uint64_t reload_at = limit / 6 < RELOAD_AGAIN_MS ? limit / 6 : RELOAD_AGAIN_MS;
    uint64_t rewrite_at = limit / 3 < REWRITE_AFTER_MS ? limit / 3 : REWRITE_AFTER_MS;
    bool reloaded = !may_push, rewritten = !may_push;
    for (unsigned wait = 20;; wait = wait < 200 ? wait * 2 : 250) {
        struct verify_result r;
        bool ok = verify_fabric(&o, want, &r);
        uint64_t took = now_ms() - start;
        unsigned ports = r.ports, nodes = r.nodes, differences = r.differences;
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
            return -ETIMEDOUT;
        }
        int rc = 0;
        if (!reloaded && !unsettled && (took > reload_at || (lag && took > reload_at / 3))) {
            say(a, t, "%u differences after the first sweep: asking opensm for another", differences);
            reloaded = true;
            rc = push(a, t, c, false);
        } else if (!rewritten && !unsettled && !lag && took > rewrite_at) {
            rewritten = true;
            rc = rewrite(a, t, c);
        }
        if (rc)
            return rc;
        if (!manager_pause(a->m, wait))
            return -ECANCELED;
    }
}

static void roll_back(struct applier *a, struct task *t, struct change *c, bool restarted, struct manager_event *out)
{
    say(a, t, "rolling back to the configuration from before");
    if (write_conf(a, t, &c->old_conf) || push(a, t, c, restarted))
        return;
    if (t->current.valid)
        settle(a, t, c, &t->current.tables, false, out);
}

/* The file says it and the ports have it: opensm need not be disturbed. */
static bool already_there(struct applier *a, struct task *t, struct change *c, struct manager_event *out)
{
    if (strcmp(text_str(&c->old_conf), text_str(&c->new_conf)))
        return false;
    struct verify_options o = apply_look_options(a, &c->lock);
    struct verify_result r;
    bool there = verify_fabric(&o, &c->tables, &r);
    if (there)
        say(a, t, "verified: %u ports of %u nodes had the policy's tables already", r.ports, r.nodes);
    apply_take_result(out, &r, there);
    verify_result_free(&r);
    return there;
}

static int change_fabric(struct applier *a, struct task *t, struct change *c, struct manager_event *out)
{
    bool restart = c->tables.lmc != c->old_lmc;
    opensm_conf_merge(text_str(&c->old_conf), &c->tables, &c->new_conf);
    if (already_there(a, t, c, out))
        return 0;
    int rc = restart && !c->opensm.restart ? push(a, t, c, true) : 0; /* says why, before anything is written */
    if (!rc)
        rc = write_conf(a, t, &c->new_conf);
    if (rc)
        return rc;
    say(a, t, "wrote %s", a->conf->opensm_config);
    rc = push(a, t, c, restart);
    if (!rc)
        rc = settle(a, t, c, &c->tables, true, out);
    if (rc)
        roll_back(a, t, c, restart, out);
    return rc;
}

void apply_policy(struct applier *a, struct task *t, struct manager_event *out)
{
    struct change c = {.opensm = opensm_of(a->conf)};
    out->status = prepare(a, t, &c);
    if (!out->status && a->conf->manage && !a->manages)
        out->status = no_opensm(a, t, &c, opensm_running(&c.opensm));
    else if (!out->status && a->conf->manage)
        out->status = change_fabric(a, t, &c, out);
    else if (!out->status)
        out->status = settle(a, t, &c, &c.tables, false, out);
    if (!out->status) {
        out->next_in_force = (struct in_force){.valid = true, .policy = c.policy, .lock = c.lock, .tables = c.tables};
        out->next_in_force.text = t->text;
        t->text = (struct text){0};
    }
    text_free(&c.old_conf);
    text_free(&c.new_conf);
}

void apply_diff(struct applier *a, struct task *t, struct manager_event *out)
{
    struct change c = {.opensm = opensm_of(a->conf)};
    struct verify_result r;
    out->status = prepare(a, t, &c);
    text_free(&c.old_conf);
    if (out->status)
        return;
    struct verify_options o = apply_look_options(a, &c.lock);
    bool same = verify_fabric(&o, &c.tables, &r);
    if (r.error)
        say(a, t, "the fabric cannot be looked at: %s", strerror(-r.error));
    else if (same)
        say(a, t, "all %u ports have what this policy wants", r.ports);
    else
        say(a, t, "%s%u differences on %u ports of %u nodes", text_str(&r.text), r.differences, r.ports, r.nodes);
    out->status = r.error ? r.error : same ? 0 : -EILSEQ;
    verify_result_free(&r);
}

int apply_wait(struct applier *a, struct task *t, const struct in_force *f, struct manager_event *out)
{
    struct change c = {.lock = f->lock};
    return settle(a, t, &c, &f->tables, false, out);
}
