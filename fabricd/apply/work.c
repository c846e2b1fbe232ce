/* SPDX-License-Identifier: BSD-3-Clause */
/* The tasks: see work.h. How a policy comes into force is in apply.c. */
#include "fabricd/apply/work.h"
#include "fabricd/apply/apply.h"
#include "fabricd/fabric/planes.h"
#include "fabricd/apply/history.h"
#include "fabricd/apply/keep.h"
#include "fabricd/base/log.h"
#include "fabricd/apply/mend.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define say(a, t, ...) manager_say((a)->m, t, __VA_ARGS__)

/*
 * Keeps the policy in force with another lock and the resulting tables. 0; -EINVAL: they do not fit; or the result
 * cannot be kept.
 */
static int keep_new_lock(struct applier *a, struct task *t, const struct policy_lock *lock, struct manager_event *out)
{
    struct diag diag = {.file = "policy"};
    struct in_force *next = &out->next_in_force;
    in_force_copy(next, &t->current);
    next->lock = *lock;
    bool fits = !next->valid || in_force_compile(next, &diag);
    if (!fits)
        say(a, t, "the policy in force does not fit: %s", text_str(&diag.out));
    text_free(&diag.out);
    if (!next->lock.generation) /* a lock without a policy */
        store_stamp(next, store_next_number(a->conf, 0));
    int rc = fits ? keep_save(a, t, next) : -EINVAL;
    if (rc) {
        in_force_free(next);
        return rc;
    }
    out->changed = true;
    out->generation = next->lock.generation;
    keep_publish(a, t, next);
    return 0;
}

/* ---- tasks ---- */

static void verify_and_mend(struct applier *a, struct task *t, const struct in_force *f, struct manager_event *out)
{
    struct verify_result r;
    settle_look(a, f, f->valid, &r);
    mend_note(a, f, &r);
    text_free(&out->planes);
    verdicts_compare_with(a->verdicts, f->lock.generation);
    if (a->sms.n || r.differences) /* other hosts ask the master only in trouble: there are many */
        out->num_planes =
            planes_take(&a->sms, f->valid ? &f->tables : NULL, &f->planes, &r, out->plane, a->verdicts, &out->planes);
    if (a->sms.n)
        verdicts_keep(a->verdicts);
    bool ok = !r.error && !r.differences;
    if (r.error)
        say(a, t, "the fabric cannot be looked at: %s", smp_open_error(r.error));
    else if (!f->valid)
        say(a, t, "%u ports of %u nodes are up; no policy is in force", r.ports, r.nodes);
    else if (ok)
        say(a, t, "verified: %u ports of %u nodes have the policy's tables", r.ports, r.nodes);
    else
        say(a, t, "not verified: %u differences on %u ports of %u nodes", r.differences, r.ports, r.nodes);
    out->status = r.error;
    settle_take_result(out, &r, ok && f->valid);
    verify_result_free(&r);
}

/*
 * A lock without facts of the fabric was made without seeing the fabric: by hand, on a node that got a policy alone, or
 * before locks existed. Now the fabric has been seen. A fact that older locks lack is taken alone: the ports' tables
 * were made with the other facts.
 */
static bool learn_fabric(struct applier *a, struct task *t, struct manager_event *out)
{
    struct policy_lock lock = t->current.lock;
    if (!t->current.valid || !out->looked || !out->caps.low_cap || !out->caps.mtu)
        return false;
    if (!lock_knows_fabric(&lock))
        lock_take_planes(&lock, &out->caps, out->seen, out->num_seen);
    else if (!lock.fabric.oversubscription)
        lock.fabric.oversubscription = out->caps.oversubscription;
    else
        return false;
    return !keep_new_lock(a, t, &lock, out);
}

static void run_verify(struct applier *a, struct task *t, struct manager_event *out)
{
    struct store_intent i;
    if (store_intent(a->conf, &i) != -ENOENT)
        mend_interrupted(a, t, &i, out);
    else
        keep_publish(a, t, &t->current);
    if (t->patient && t->current.valid) {
        out->status = settle_ports(a, t, &t->current, false, out);
        return;
    }
    verify_and_mend(a, t, &t->current, out);
    if (t->may_repair && a->sms.n && out->looked && !out->verified) {
        mend_lost(a, t, out);
        if (out->repaired)
            verify_and_mend(a, t, &t->current, out);
    }
    if (learn_fabric(a, t, out))
        verify_and_mend(a, t, &out->next_in_force, out);
}

/* The files of the subnet's manager: they are in force, whatever the ports have. */
static void follow(struct applier *a, struct task *t, const struct policy_lock *given, struct manager_event *out)
{
    struct in_force *next = &out->next_in_force;
    struct policy_lock had = t->current.lock;
    struct diag d = {.file = t->name};
    bool good = policy_parse(&next->policy, text_str(&t->text), t->text.len, &d) &&
                lock_next(&next->policy, given->num_classes ? given : &had, NULL, &next->lock, &d) &&
                in_force_compile(next, &d);
    if (!good) {
        say(a, t, "%.*s", (int)(d.out.len ? d.out.len - 1 : 0), text_str(&d.out));
        text_free(&d.out);
        out->status = -EINVAL;
        return;
    }
    text_free(&d.out);
    if (!lock_merge(&had, given, &next->policy))
        say(a, t, "warning: %s has other service levels than this host had: its jobs move to them", t->name);
    next->valid = true;
    next->text = t->text;
    t->text = (struct text){0};
    out->changed = true;
    keep_number(a, t, next);
    out->generation = next->lock.generation;
    int rc = keep_save(a, t, next);
    if (rc)
        say(a, t, "%s: %s: the policy is in force, but could not be kept", a->conf->state, strerror(-rc));
    verify_and_mend(a, t, next, out);
    out->status = 0;
}

/* Nothing is in force here by order, and the files are of before that: also while opensm is away. */
static bool is_taken_back(const struct applier *a, const struct task *t, const struct policy_lock *given)
{
    char current[GENERATION_NAME_MAX];
    store_current(a->conf, current);
    return !t->current.valid && given->generation <= t->generation && store_is_rollback(a->conf, current);
}

/* By order nothing is in force where the subnet is managed; jobs here are told so, too. */
static void follow_nothing(struct applier *a, struct task *t, const struct policy_lock *given,
                           struct manager_event *out)
{
    if (!t->current.valid || given->generation < t->generation)
        return;
    if (a->sms.n && given->generation > t->generation)
        apply_nothing(a, t, given->generation, out);
    if (a->sms.n)
        return;
    out->next_in_force = (struct in_force){.lock = *given};
    out->changed = true;
    out->generation = given->generation;
    int rc = keep_save(a, t, &out->next_in_force);
    if (rc)
        say(a, t, "%s: %s: no policy is in force by order, which could not be kept", a->conf->state, strerror(-rc));
}

static void run_follow(struct applier *a, struct task *t, struct manager_event *out)
{
    struct policy_lock given;
    struct diag d = {.file = t->name};
    bool known = t->current.valid && t->text.len == t->current.text.len &&
                 !memcmp(text_str(&t->text), text_str(&t->current.text), t->text.len);
    lock_parse(&given, text_str(&t->lock_text), t->lock_text.len, &d); /* parsed before without errors */
    text_free(&d.out);
    if (given.none) {
        follow_nothing(a, t, &given, out);
        return;
    }
    if (known && (!given.num_classes || lock_equal(&given, &t->current.lock)) &&
        (!given.generation || given.generation == t->generation))
        return;
    if (is_taken_back(a, t, &given))
        return;
    if (!a->sms.n && a->conf->num_opensm && !given.digest)
        say(a, t, "%s has no lock that says it is in force: waiting for it, or for opensm", t->name);
    else if (!a->sms.n)
        follow(a, t, &given, out);
    else if (given.generation > t->generation)
        apply_policy(a, t,
                     out); /* on another host, which manages other subnets, or whose opensm may take over from ours */
    else if (t->current.valid && !known)
        say(a, t, "%s differs from the policy in force; fabricctl policy apply (or SIGHUP) puts it in force", t->name);
}

static void run_forget(struct applier *a, struct task *t, struct manager_event *out)
{
    struct policy_lock lock = t->current.lock;
    if (!lock_forget(&lock, t->current.valid ? &t->current.policy : NULL, t->name)) {
        say(a, t, "class '%s' is in the policy in force and uses all its service levels", t->name);
        out->status = -EPERM;
        return;
    }
    out->status = keep_new_lock(a, t, &lock, out);
    if (out->status)
        say(a, t, "%s: %s: the service levels stay as they are", a->conf->state, strerror(-out->status));
    else if (t->current.valid && !in_force_same_tables(&t->current, &out->next_in_force))
        say(a, t, "the ports still have them with the class's bulk: fabricctl policy apply changes that");
}

/* The policy of a generation becomes the task's. False: none, which was reported. */
static bool take_generation(struct applier *a, struct task *t)
{
    char name[GENERATION_NAME_MAX];
    struct text why = {0};
    if (t->rollback == FD_PREVIOUS)
        t->rollback = history_previous(a->conf, t->generation);
    snprintf(t->name, sizeof(t->name), "generation %" PRIu64, t->rollback);
    if (!t->rollback)
        return true;
    int rc = generation_find(a->conf->state, t->rollback, name);
    if (!rc)
        rc = generation_read(a->conf->state, name, "policy.yaml", FD_POLICY_MAX, &t->text, &why);
    if (!rc)
        rc = generation_read(a->conf->state, name, "policy.lock", FD_LOCK_MAX, &t->lock_text, &why);
    if (rc || !t->text.len)
        say(a, t, "%s %s: fabricctl policy history lists those that are kept", t->name,
            why.len ? why.s
            : rc    ? "is not kept"
                    : "is none with a policy");
    text_free(&why);
    return !rc && t->text.len;
}

static void run_apply(struct applier *a, struct task *t, struct manager_event *out)
{
    bool rollback = t->flags & FD_CHANGE_ROLLBACK;
    if (rollback && !take_generation(a, t))
        out->status = -EINVAL;
    else if (rollback && !t->rollback)
        apply_nothing(a, t, 0, out);
    else
        apply_policy(a, t, out);
}

void work_run(struct manager *m, const struct conf *conf, struct task *t, struct manager_event *out)
{
    struct applier a = {.m = m, .conf = conf, .jobs = &t->jobs, .verdicts = manager_verdicts(m)};
    struct counter counter = {.m = m, .task = t, .ports = t->ports};
    struct store_intent intent;
    if (t->client && t->flags & FD_CHANGE_COUNT)
        a.counter = &counter;
    settle_count(&a, FD_PORTS_READ, 0);
    sms_find(&a.sms, conf);
    out->manages = a.sms.n;
    switch (t->kind) {
    case TASK_APPLY:
        run_apply(&a, t, out);
        break;
    case TASK_DIFF:
        if (t->flags & FD_CHANGE_DRY)
            apply_dry(&a, t, out);
        else
            apply_diff(&a, t, out);
        break;
    case TASK_VERIFY:
        run_verify(&a, t, out);
        break;
    case TASK_FOLLOW:
        run_follow(&a, t, out);
        break;
    case TASK_FORGET:
        run_forget(&a, t, out);
        break;
    case TASK_MEMBERS:
        out->status = mend_members(&a, t, out);
        break;
    }
    sms_free(&a.sms);
    out->unfinished = store_intent(conf, &intent) != -ENOENT;
}
