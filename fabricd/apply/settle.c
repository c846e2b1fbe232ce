/* SPDX-License-Identifier: BSD-3-Clause */
/* opensm and the ports are brought to tables: see settle.h. */
#include "fabricd/apply/settle.h"
#include "fabricd/base/clock.h"
#include "fabricd/fabric/opensm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Tables still wrong: opensm wrote them before OperVLs was settled; a second sweep helps. */
#define RELOAD_AGAIN_MS 1500
/*
 * Still wrong: opensm believes that the tables are right and must be made to write them. Both come sooner if time is
 * short.
 */
#define REWRITE_AFTER_MS  4000
#define VARIANT_MS        2000 /* time for a variant of the tables */
#define PUT_BACK_EVERY_MS 500
#define PUT_BACK_LOOKS    10 /* at least, as long as opensm is not at rest */
#define AT_REST_TURNS     16 /* context switches of an opensm at rest between two looks: its timers */
/* An opensm restarted by its command may be away for so long. */
#define OPENSM_AWAY_MS 5000
#define COUNT_EVERY_US 200000

#define say(a, t, ...) manager_say((a)->m, t, __VA_ARGS__)

/* The last line of what went wrong, if anything did. */
int settle_said(struct applier *a, struct task *t, int rc, struct text *why)
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

static void count(void *arg, unsigned done)
{
    struct counter *c = arg;
    uint64_t now = clock_us();
    if (done <= c->most || now < c->next_us)
        return;
    c->most = done;
    c->next_us = now + COUNT_EVERY_US;
    manager_count(c->m, c->task, c->what, done, done <= c->of ? c->of : 0);
}

void settle_count(struct applier *a, enum fd_counted what, unsigned of)
{
    struct counter *c = a->counter;
    if (!c)
        return;
    c->what = what;
    c->most = 0;
    c->of = of ? of : c->ports;
    c->next_us = clock_us() + COUNT_EVERY_US; /* short work needs no count */
}

struct verify_options settle_options(const struct applier *a, const struct policy_lock *lock, bool others)
{
    struct verify_options o = {.high_limit = a->conf->verify_high_limit, .jobs = a->sms.n ? a->jobs : NULL};
    if (a->counter) {
        o.count = count;
        o.count_arg = a->counter;
    }
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

bool settle_look(const struct applier *a, const struct in_force *f, bool others, struct verify_result *r)
{
    struct verify_options o = settle_options(a, &f->lock, others);
    o.planes = &f->planes;
    o.policy = f->valid ? &f->policy : NULL;
    return verify_fabric(&o, f->valid ? &f->tables : NULL, r);
}

void settle_pkeys(const struct applier *a, const struct in_force *want)
{
    struct verify_options o = settle_options(a, &want->lock, false);
    struct verify_result r;
    o.num_near = 0;
    o.planes = &want->planes;
    o.policy = &want->policy;
    o.mend_pkeys = true;
    verify_fabric(&o, &want->tables, &r);
    verify_result_free(&r);
}

/* For programs: fabricctl's --json. */
void settle_tell_found(struct manager_event *e, const struct verify_result *r)
{
    text_free(&e->found);
    if (r->error)
        return;
    text_printf(&e->found, "nodes: %u\nports: %u\ndifferences: %u\ndiffer:%s\n%s", r->nodes, r->ports, r->differences,
                r->list.len ? "" : " []", text_str(&r->list));
}

unsigned settle_seen(const struct verify_result *r, struct lock_plane seen[LOCK_PLANES_MAX])
{
    unsigned n = 0;
    for (; n < r->num_planes && n < LOCK_PLANES_MAX; n++)
        seen[n] = (struct lock_plane){r->plane[n].from.guid, r->plane[r->plane[n].seen_from].caps};
    return n;
}

void settle_take_result(struct manager_event *e, struct verify_result *r, bool verified)
{
    settle_tell_found(e, r);
    e->looked = !r->error;
    e->verified = verified;
    e->nodes = r->nodes;
    e->ports = r->ports;
    e->differences = r->differences;
    e->caps = r->caps;
    e->num_seen = settle_seen(r, e->seen);
    text_free(&e->text);
    e->text = r->text;
    r->text = (struct text){0};
}

/* Have opensm take what is in its file. */
int settle_push(struct applier *a, struct task *t, bool restart)
{
    struct text why = {0};
    if (restart)
        say(a, t, "restarting opensm, because lmc changes");
    int rc = restart ? sms_restart(&a->sms, &why) : sms_reload(&a->sms, &why);
    return settle_said(a, t, rc, &why);
}

/*
 * The time that the ports have had, in ms. Opensm's waits for a processor, on a busy host, do not count: if opensm is
 * ready to run at a look, its processor time since the last look counts. At most nine tenths of the time are such
 * waits.
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

/*
 * Looks that end at the first difference, in the same order each time: the number of ports before the end shows
 * opensm's progress. Limits apply to the time without progress.
 */
struct progress {
    uint64_t start_ms;
    struct stopwatch watch; /* since the last progress */
    unsigned ports;
    uint64_t idle_ms;
    bool lag, unsettled; /* the port at which the last look ended */
};

static struct progress progress_start(const struct sms *sms)
{
    return (struct progress){.start_ms = clock_us() / 1000, .watch = stopwatch_start(sms)};
}

/* True: all ports have these tables, and whole is the result of the look. whole NULL: partitions are not compared. */
static bool progress_look(struct applier *a, struct progress *p, const struct in_force *want,
                          struct verify_result *whole)
{
    struct verify_options o = settle_options(a, &want->lock, false);
    struct verify_result r;
    o.planes = &want->planes;
    o.policy = whole ? &want->policy : NULL;
    o.stop_at = 1;
    bool ok = verify_fabric(&o, &want->tables, &r);
    if (r.ports > p->ports)
        p->watch = stopwatch_start(&a->sms);
    p->ports = r.ports > p->ports ? r.ports : p->ports;
    p->idle_ms = stopwatch_read(&p->watch, &a->sms);
    p->lag = r.vls_lag;
    p->unsettled = r.unsettled || r.error;
    if (ok && whole)
        *whole = r;
    else
        verify_result_free(&r);
    return ok;
}

/* Never 0, which takes the lane out of the table. */
static uint8_t other_weight(uint8_t w)
{
    return w == 255 ? 254 : (uint8_t)(w + 1);
}

/*
 * opensm writes a table only when the configuration differs from its last write, so a table changed by others stays
 * wrong. A harmless variant is written first, then the real table.
 */
static void vary(struct qos_tables *t)
{
    for (unsigned i = 0; i < t->num_low; i++)
        t->low[i].weight = other_weight(t->low[i].weight);
    for (unsigned i = 0; i < t->num_high; i++)
        t->high[i].weight = other_weight(t->high[i].weight);
    t->high_limit ^= 1;
    t->sl2vl[SLS - 1] = t->sl2vl[SLS - 1] ? 0 : t->low[t->num_low - 1].vl;
}

int settle_rewrite(struct applier *a, struct task *t, const struct in_force *want, bool *obeys)
{
    struct in_force variant = *want; /* its text still belongs to the other */
    struct text why = {0};
    say(a, t, "the ports do not change: having opensm write all tables again");
    vary(&variant.tables);
    for (unsigned i = 0; i < variant.planes.n; i++)
        vary(&variant.planes.of[i]);
    int rc = settle_said(a, t, sms_write_tables(&a->sms, &variant.tables, &variant.planes, &why), &why);
    if (rc)
        return rc;
    rc = settle_push(a, t, false);
    struct progress p = progress_start(&a->sms);
    bool taken = false;
    while (!rc && !(taken = progress_look(a, &p, &variant, NULL)) && p.idle_ms < VARIANT_MS)
        if (!manager_pause(a->m, 100))
            rc = -ECANCELED;
    *obeys = taken;
    int again = settle_said(a, t, sms_write(&a->sms, &why), &why);
    if (!again)
        again = settle_push(a, t, false);
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

static void note_settled(struct applier *a, const struct verify_result *r)
{
    a->num_settled = r->num_planes;
    memcpy(a->settled, r->plane, sizeof(a->settled));
}

static int tell_not_settled(struct applier *a, struct task *t, const struct in_force *want, bool may_push,
                            struct manager_event *out)
{
    struct verify_result r;
    bool ok = settle_look(a, want, false, &r);
    unsigned other_sm_lid = r.other_sm_lid;
    if (ok)
        note_settled(a, &r);
    settle_take_result(out, &r, ok);
    if (ok)
        say(a, t, "verified: %u ports of %u nodes have the policy's tables, at the last moment", r.ports, r.nodes);
    else
        say(a, t, "not verified within %u s: %u differences on %u ports of %u nodes%s%.*s", a->conf->verify_timeout_s,
            r.differences, r.ports, r.nodes, out->text.len ? "\n" : "", (int)(out->text.len ? out->text.len - 1 : 0),
            text_str(&out->text));
    if (!ok && may_push)
        say_why_not(a, t, other_sm_lid);
    verify_result_free(&r);
    return ok ? 0 : -ETIMEDOUT;
}

/* opensm lets ports begin anew, with other LIDs: for a moment they are Down, and in no look. */
static unsigned ports_away(const struct applier *a, const struct verify_result *r)
{
    unsigned away = 0;
    for (unsigned i = 0; i < r->num_planes; i++)
        away += a->ports_up[i] > r->plane[i].ports ? a->ports_up[i] - r->plane[i].ports : 0;
    return away;
}

/* Look until all is as wanted or nothing changes any more; help opensm along where it is known to fall short. */
int settle_ports(struct applier *a, struct task *t, const struct in_force *want, bool may_push,
                 struct manager_event *out)
{
    struct progress p = progress_start(&a->sms);
    uint64_t limit = (uint64_t)a->conf->verify_timeout_s * 1000;
    uint64_t reload_at = limit / 6 < RELOAD_AGAIN_MS ? limit / 6 : RELOAD_AGAIN_MS;
    uint64_t rewrite_at = limit / 3 < REWRITE_AFTER_MS ? limit / 3 : REWRITE_AFTER_MS;
    uint64_t right_ms = 0; /* since then all ports that are up have the tables */
    bool reloaded = !may_push, rewritten = !may_push;
    a->num_settled = 0;
    settle_count(a, FD_PORTS_RIGHT, 0);
    for (unsigned wait = 20;; wait = wait < 200 ? wait * 2 : 250) {
        struct verify_result r;
        struct text why = {0};
        bool right = progress_look(a, &p, want, &r);
        unsigned away = right ? ports_away(a, &r) : 0;
        if (right && !right_ms)
            right_ms = clock_us() / 1000;
        if (away && clock_us() / 1000 - right_ms <= limit) {
            verify_result_free(&r);
            if (!manager_pause(a->m, wait))
                return -ECANCELED;
            continue;
        }
        if (right) {
            if (away)
                say(a, t, "%u ports that were up before are not up: the policy is not on them", away);
            note_settled(a, &r);
            settle_take_result(out, &r, true);
            say(a, t, "verified: %u ports of %u nodes have the policy's tables, after %llu ms", r.ports, r.nodes,
                (unsigned long long)(clock_us() / 1000 - p.start_ms));
            verify_result_free(&r);
            return 0;
        }
        uint64_t idle = p.idle_ms;
        if (idle > limit)
            return tell_not_settled(a, t, want, may_push, out);
        int rc = 0;
        if (!reloaded && !p.unsettled && (idle > reload_at || (p.lag && idle > reload_at / 3))) {
            say(a, t, "ports still differ after the first sweep: asking opensm for another");
            reloaded = true;
            rc = settle_push(a, t, false);
        } else if (!rewritten && !p.unsettled && !p.lag && idle > rewrite_at) {
            bool obeys = false;
            rewritten = true;
            rc = settle_rewrite(a, t, want, &obeys);
            if (obeys) /* opensm removes only memberships that it knows, also in a rollback */
                settle_pkeys(a, want);
            p = progress_start(&a->sms);
        } else if (may_push && clock_us() / 1000 - p.start_ms > OPENSM_AWAY_MS) {
            rc = settle_said(a, t, sms_all_run(&a->sms, &why), &why);
        }
        if (rc)
            return rc;
        if (!manager_pause(a->m, wait))
            return -ECANCELED;
    }
}

/* 0: all opensm run; -ETIMEDOUT: one is stopped; -ECANCELED. */
static int await_opensm(struct applier *a, struct task *t)
{
    uint64_t limit = (uint64_t)a->conf->verify_timeout_s * 1000000, began = clock_us();
    const struct opensm *stopped;
    while ((stopped = sms_stopped(&a->sms, a->undoes))) {
        if (!manager_pause(a->m, PUT_BACK_EVERY_MS))
            return -ECANCELED;
        if (clock_us() - began < limit)
            continue;
        say(a, t, "the opensm that reads %s is stopped (kill -CONT has it go on): it would write its own tables later",
            stopped->config);
        return -ETIMEDOUT;
    }
    return 0;
}

/* True: opensm has hardly run since the last call, and does not wait for a processor. *turns: its turns so far. */
static bool is_at_rest(const struct sms *sms, uint64_t *turns)
{
    uint64_t cpu_ms, now = sms_turns(sms), before = *turns;
    *turns = now;
    return now >= before && now - before < AT_REST_TURNS && !sms_ready(sms, &cpu_ms);
}

/*
 * Writes the ports' tables from before the first policy. opensm may still be at work, by its former file, or have no
 * processor to begin with: looks go on until one has nothing to write and finds opensm at rest. A stopped opensm is not
 * at rest. 0; -EIO: some could not be written; -ETIMEDOUT; -ECANCELED.
 */
int settle_put_back(struct applier *a, struct task *t, const struct snapshot *before, const struct smp_port *of)
{
    uint64_t limit = (uint64_t)a->conf->verify_timeout_s * 1000, turns = sms_turns(&a->sms);
    struct stopwatch watch = stopwatch_start(&a->sms);
    unsigned written = 0, failed = 0;
    bool rested = false;
    settle_count(a, FD_BLOCKS_BACK, snapshot_blocks(before));
    for (unsigned i = 0; !rested && (i < PUT_BACK_LOOKS || stopwatch_read(&watch, &a->sms) < limit); i++) {
        if (sms_stopped(&a->sms, a->undoes)) {
            int rc = await_opensm(a, t);
            if (rc)
                return rc;
            i = 0; /* a stopped opensm now executes its earlier orders */
            watch = stopwatch_start(&a->sms);
        }
        unsigned now = snapshot_put_back(before, of, a->counter ? count : NULL, a->counter, &failed);
        written += now;
        rested = is_at_rest(&a->sms, &turns) && i && !now;
        if (!rested && !manager_pause(a->m, PUT_BACK_EVERY_MS))
            return -ECANCELED;
    }
    if (sms_stopped(&a->sms, a->undoes))
        return -ETIMEDOUT;
    if (failed)
        say(a, t, "%u blocks of the ports' tables are not what they were before: they could not be written back",
            failed);
    else if (written)
        say(a, t, "the ports have the tables of before again: %u blocks written back", written);
    return failed ? -EIO : 0;
}
