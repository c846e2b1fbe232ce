/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings the policy in force to opensm and the ports again: see mend.h. */
#include "fabricd/apply/mend.h"
#include "fabricd/fabric/planes.h"
#include "fabricd/fabric/snapshot.h"
#include "fabricd/apply/keep.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define say(a, t, ...) manager_say((a)->m, t, __VA_ARGS__)

/* ---- back to what is in force ---- */

/* Files and ports, by running opensm. 0: all agree with the policy in force, and nothing remains to be done. */
int mend_ports(struct applier *a, struct task *t, const struct snapshot *before, bool restart,
               struct manager_event *out)
{
    int rc = settle_push(a, t, restart);
    if (rc)
        return rc;
    if (t->current.valid)
        return settle_ports(a, t, &t->current, true, out);
    return before ? settle_put_back(a, t, before, NULL) : 0;
}

/* One of opensm's files of an interrupted change. -ENOENT: its former contents are unknown. */
static int mend_file(struct applier *a, struct task *t, const char *before, const char *config)
{
    struct text conf = {0}, next = {0}, why = {0};
    int rc = text_read_file(&conf, config, OPENSM_CONF_MAX);
    if (rc == -ENOENT)
        rc = 0;
    sms_clean(config);
    if (!rc && t->current.valid)
        opensm_conf_merge(text_str(&conf),
                          sms_tables(&a->sms, config, text_str(&conf), &t->current.tables, &t->current.planes), &next);
    else if (!rc)
        rc = keep_load_config(a, before, config, OPENSM_CONF_MAX, &next);
    if (!rc && (next.len != conf.len || memcmp(text_str(&next), text_str(&conf), next.len))) {
        rc = settle_said(a, t, sms_write_file(config, &next, &why), &why);
        if (!rc)
            say(a, t, "wrote %s", config);
    } else if (rc) {
        say(a, t, "%s: %s", config, strerror(-rc));
    }
    text_free(&conf);
    text_free(&next);
    return rc;
}

/* From the known ports of both files: the next look finds others. */
static void add_jobs(const struct applier *a, const struct task *t, const struct partition_file *now,
                     struct partition_file *next)
{
    struct partition_file with = {0};
    partitions_merge(next, &t->current.policy, a->jobs, text_str(&now->text), &with);
    partition_file_copy(next, &with);
    partition_file_free(&with);
}

/* Its partition file: the section of the current generation, or none. */
static int mend_partitions(struct applier *a, struct task *t, const char *path)
{
    char current[GENERATION_NAME_MAX];
    struct partition_file now = {0}, kept = {0}, next = {0};
    struct text why = {0};
    store_current(a->conf, current);
    int rc = sms_read_partitions(path, &now);
    if (rc)
        text_printf(&why, "%s: %s", path, strerror(-rc));
    sms_clean(path);
    bool members = t->current.valid && policy_has_members(&t->current.policy);
    bool known = !members || (!rc && !keep_load_config(a, current, path, PARTITIONS_MAX, &kept.text));
    if (!rc && known)
        partitions_take_section(&now, &kept, &next);
    else if (!rc) /* a lock kept without files: the next look finds missing members */
        partition_file_copy(&next, &now);
    if (!rc && members && a->jobs->n) /* hosts of jobs that came or went since */
        add_jobs(a, t, &now, &next);
    if (!rc && !partition_file_equal(&now, &next)) {
        rc = sms_write_partitions(path, &next, &why);
        if (!rc)
            say(a, t, next.there ? "wrote %s" : "removed %s", path);
    }
    partition_file_free(&now);
    partition_file_free(&kept);
    partition_file_free(&next);
    return settle_said(a, t, rc, &why);
}

static bool is_our_opensm(const struct applier *a, const char *config)
{
    for (unsigned i = 0; i < a->conf->num_opensm; i++)
        if (!strcmp(a->conf->opensm[i].config, config))
            return true;
    return false;
}

/* The interrupted change names the files; without names all files of running opensm. */
static int mend_files(struct applier *a, struct task *t, struct store_intent *i, const char *before)
{
    int rc = 0;
    for (unsigned k = 0; !i->n && k < a->sms.n; k++)
        snprintf(i->config[k], sizeof(i->config[k]), "%s", a->sms.sm[k].opensm.config);
    for (unsigned k = 0; !i->n && k < a->sms.n; k++)
        opensm_partitions(&a->sms.sm[k].opensm, "", i->partitions[k]);
    i->n = i->n ? i->n : a->sms.n;
    for (unsigned k = 0; k < i->n; k++) {
        int one = is_our_opensm(a, i->config[k]) ? mend_file(a, t, before, i->config[k]) : 0;
        if (!one && i->partitions[k][0] && is_our_opensm(a, i->config[k]))
            one = mend_partitions(a, t, i->partitions[k]);
        rc = rc ? rc : one;
    }
    return rc;
}

/* All opensm of the change run. -ESRCH: one does not. */
static int all_run(struct applier *a, struct task *t, const struct store_intent *i)
{
    for (unsigned k = 0; k < i->n; k++) {
        bool runs = !is_our_opensm(a, i->config[k]);
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
    struct verify_options o = settle_options(a, &f->lock, false);
    struct verify_result r;
    verify_fabric(&o, NULL, &r);
    bool differs = f->valid && !r.error && (r.lmc != f->policy.lmc || r.lmc_most != f->policy.lmc);
    verify_result_free(&r);
    return differs;
}

/* Planes with a running opensm need no more, while another's opensm is waited for. */
static bool has_it(const struct applier *a, const struct in_force *f)
{
    struct verify_result r;
    bool has = f->valid && settle_look(a, f, false, &r);
    if (f->valid)
        verify_result_free(&r);
    return has;
}

int mend_interrupted(struct applier *a, struct task *t, struct store_intent *i, struct manager_event *out)
{
    struct snapshot *ports = NULL;
    struct text why = {0};
    char before[GENERATION_NAME_MAX] = "", current[GENERATION_NAME_MAX];
    t->logged = true;
    store_current(a->conf, current);
    bool forward = !strcmp(current, i->generation);
    say(a, t, "a change was interrupted: bringing opensm and the ports to %s",
        t->current.valid ? "the policy in force" : "what was there before the first policy");
    if (!t->current.valid)
        ports = keep_load_before(a, before);
    store_clean_published(a->conf);
    int rc = mend_files(a, t, i, before);
    int waits = rc ? 0 : all_run(a, t, i);
    if (!rc && i->n && a->sms.n && !(waits && has_it(a, &t->current))) {
        out->disturbed = true;
        rc = settle_said(a, t, sms_read(&a->sms, &why), &why);
        if (t->current.valid)
            sms_merge(&a->sms, &t->current.tables, &t->current.planes);
        if (!rc)
            rc = mend_ports(a, t, ports, lmc_differs(a, &t->current) && sms_can_restart(&a->sms, &why), out);
        text_free(&why);
    }
    rc = rc ? rc : waits;
    if (!rc) {
        if (!forward && generation_number(i->generation))
            keep_result(a, i->generation, "interrupted, and undone at the next start", NULL);
        if (forward && store_is_rollback(a->conf, current))
            rc = keep_publish_rollback(a, t, &t->current);
        keep_publish(a, t, &t->current);
        if (!rc && *current)
            rc = store_commit(a->conf, current); /* perhaps its sync had failed */
        if (!rc)
            rc = store_intent_done(a->conf);
    }
    snapshot_free(ports);
    return rc;
}

/* ---- what has been lost ---- */

void mend_note(struct applier *a, const struct in_force *f, struct verify_result *r)
{
    struct text why = {0}, how = {0};
    if (!a->conf->num_opensm || !f->valid || r->error)
        return;
    if (sms_read(&a->sms, &why))
        verify_note(r, "opensm", why.s);
    else if (sms_merge(&a->sms, &f->tables, &f->planes))
        for (unsigned i = 0; i < a->sms.n; i++) {
            const struct sm *m = &a->sms.sm[i];
            text_free(&how);
            text_printf(&how, "%s is not what the policy makes of it", m->opensm.config);
            if (strcmp(text_str(&m->old_conf), text_str(&m->new_conf)))
                verify_note(r, "opensm", how.s);
        }
    if (!why.len && sms_merge_partitions(&a->sms, &f->policy, a->jobs, text_str(&r->adapters)))
        for (unsigned i = 0; i < a->sms.n; i++) {
            const struct sm *m = &a->sms.sm[i];
            text_free(&how);
            text_printf(&how, "%s is not what the policy makes of it", m->partitions);
            if (!partition_file_equal(&m->old_part, &m->new_part))
                verify_note(r, "opensm", how.s);
        }
    text_free(&why);
    planes_missing(&a->sms, a->conf, &why);
    for (char *line, *rest = why.s; (line = strsep(&rest, "\n"));)
        verify_note(r, "plane", line);
    text_free(&why);
    text_free(&how);
}

/* Makes opensm write the tables again. files: its own file is wrong. */
static int write_again(struct applier *a, struct task *t, bool files, bool ports, bool lmc, struct manager_event *out)
{
    struct text why = {0};
    bool obeys;
    int rc = 0;
    if (files)
        rc = settle_said(a, t, sms_write(&a->sms, &why), &why);
    if (files && !rc)
        rc = settle_push(a, t, lmc && sms_can_restart(&a->sms, &why));
    text_free(&why);
    if (!files)
        rc = settle_rewrite(a, t, &t->current, &obeys);
    return rc || !ports ? rc : settle_ports(a, t, &t->current, true, out);
}

static bool merge(struct applier *a, const struct in_force *f, const char *adapters)
{
    bool conf = sms_merge(&a->sms, &f->tables, &f->planes);
    return sms_merge_partitions(&a->sms, &f->policy, a->jobs, adapters) || conf;
}

int mend_lost(struct applier *a, struct task *t, struct manager_event *out)
{
    const struct in_force *want = &t->current;
    struct store_intent intent = {.n = a->sms.n};
    struct verify_result r;
    struct text why = {0};
    settle_look(a, want, false, &r);
    unsigned of_ports = r.differences, pkeys = r.pkeys;
    bool files = !sms_read(&a->sms, &why) && merge(a, want, text_str(&r.adapters));
    bool ours = !r.other_sm_lid, lmc = r.lmc != want->tables.lmc || r.lmc_most != want->tables.lmc;
    if (files)
        mend_note(a, &t->current, &r);
    struct text found = r.text;
    r.text = (struct text){0};
    bool can = !r.error && !r.unsettled && (files || (of_ports && ours));
    struct text adapters = r.adapters;
    r.adapters = (struct text){0};
    verify_result_free(&r);
    text_free(&why);
    store_current(a->conf, intent.generation);
    keep_intend(a, &intent);
    if (can && !files && pkeys) {
        settle_pkeys(a, want);
        out->repaired = true;
        log_event(LOG_FABRIC_MENDED, SD_WARNING, "had lost the policy in force:\n%swrote %u memberships in partitions",
                  text_str(&found), pkeys);
        can = pkeys < of_ports;
    }
    int rc = can ? store_intend(a->conf, &intent) : 0;
    if (can && !rc) {
        t->logged = true;
        rc = write_again(a, t, files, ours, lmc, out);
        if (!sms_read(&a->sms, &why) && !merge(a, want, text_str(&adapters)))
            store_intent_done(a->conf); /* else its file is wrong, and mend_interrupted mends the file */
        out->repaired = true;
        log_event(LOG_FABRIC_MENDED, SD_WARNING, "had lost the policy in force:\n%s%s%s", text_str(&found),
                  files ? "wrote opensm's file and had opensm read it" : "had opensm write all tables again",
                  rc ? ": the ports do not have it yet" : ": the ports have it");
    }
    text_free(&adapters);
    text_free(&found);
    text_free(&why);
    return rc;
}

/* ---- hosts of jobs ---- */

#define MEMBERS_EVERY_MS 200
#define MEMBERS_BY_US_MS 2000 /* opensm has read its file by then, and trusts its own writes */

/* The hosts of jobs without a port in the subnets that were looked at. adapters: as of verify_result. */
static void note_unknown(const struct host_keys *jobs, const char *adapters, struct text *unknown)
{
    struct host_keys seen = {0};
    for (const char *line = adapters; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL)) {
        const char *host = line + strcspn(line, " \n");
        host += *host == ' ';
        host_keys_add(&seen, 0, host, strcspn(host, " \n"));
    }
    host_keys_sort(&seen);
    text_printf(unknown, " ");
    for (size_t i = 0; i < jobs->n; i++)
        if (!host_keys_have(&seen, 0, jobs->key[i].host))
            text_printf(unknown, "%s ", jobs->key[i].host);
    host_keys_free(&seen);
}

/* Looks until no port lacks a membership, and none has one too many, or time is up. */
static int await_members(struct applier *a, struct task *t, struct text *what)
{
    uint64_t limit = (uint64_t)a->conf->verify_timeout_s * 1000000, began = clock_us(), by_us = began;
    for (;;) {
        struct verify_result r;
        settle_look(a, &t->current, false, &r);
        unsigned pkeys = r.error ? 1 : r.pkeys, lacking = r.error ? 1 : r.pkeys_lacking;
        int error = r.error;
        text_free(what);
        text_put(what, text_str(&r.text), r.text.len);
        verify_result_free(&r);
        if (!pkeys)
            return 0;
        if (clock_us() - began > limit)
            return error ? error : lacking || !t->join ? -ETIMEDOUT : 0;
        if (clock_us() - by_us > MEMBERS_BY_US_MS * 1000 && !sms_stopped(&a->sms, false)) {
            settle_pkeys(a, &t->current);
            by_us = clock_us();
        }
        if (!manager_pause(a->m, MEMBERS_EVERY_MS))
            return -ECANCELED;
    }
}

/* opensm's partition files have the jobs' hosts, and opensm reads them. On failure the former files are back. */
static int write_members(struct applier *a, struct task *t)
{
    struct store_intent intent = {0};
    struct text why = {0}, what = {0};
    store_current(a->conf, intent.generation);
    keep_intend(a, &intent);
    int rc = store_intend(a->conf, &intent);
    if (rc)
        say(a, t, "%s: %s: nothing is changed", a->conf->state, strerror(-rc));
    if (rc)
        return rc;
    sms_note_stopped(&a->sms);
    rc = settle_said(a, t, sms_write(&a->sms, &why), &why);
    if (!rc)
        rc = settle_push(a, t, false);
    if (!rc)
        rc = await_members(a, t, &what);
    if (rc && what.len)
        say(a, t, "%.*s", (int)what.len - 1, what.s);
    text_free(&what);
    int back = 0;
    if (rc && t->join) {
        sms_keep(&a->sms);
        back = settle_said(a, t, sms_write_all(&a->sms, &why), &why);
        settle_said(a, t, sms_reload(&a->sms, &why), &why);
    }
    if (!back && (!rc || t->join)) /* else mend_interrupted goes on */
        store_intent_done(a->conf);
    return rc;
}

int mend_members(struct applier *a, struct task *t, struct manager_event *out)
{
    struct verify_result r;
    struct text why = {0};
    if (!t->current.valid || !policy_has_members(&t->current.policy))
        return 0;
    if (!a->sms.n)
        return settle_said(a, t, sms_none(a->conf, &why), &why);
    settle_look(a, &t->current, false, &r);
    int rc = r.error;
    if (rc)
        say(a, t, "the fabric cannot be looked at: %s", smp_open_error(rc));
    else
        rc = settle_said(a, t, sms_read(&a->sms, &why), &why);
    if (!rc)
        rc = settle_said(a, t, sms_partitions_free(&a->sms, &t->current.policy, &why) ? 0 : -EINVAL, &why);
    if (!rc) {
        note_unknown(a->jobs, text_str(&r.adapters), &out->unknown);
        sms_keep(&a->sms);
        if (sms_merge_partitions(&a->sms, &t->current.policy, a->jobs, text_str(&r.adapters)) || r.pkeys)
            rc = write_members(a, t);
    }
    verify_result_free(&r);
    return rc;
}
