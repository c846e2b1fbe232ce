/* SPDX-License-Identifier: BSD-3-Clause */
/* See verdicts.h. */
#include "fabricd/fabric/verdicts.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/ydoc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX     16384u
#define KEEP_EVERY_S 3600 /* times in the file are so old at most */

const struct sm_verdict *verdicts_find(const struct sm_verdicts *v, uint64_t guid)
{
    for (unsigned i = 0; i < v->num; i++)
        if (v->of[i].guid == guid)
            return &v->of[i];
    return NULL;
}

static void put_last(struct sm_verdicts *v, const struct sm_verdict *new)
{
    unsigned at = 0, n = v->num;
    while (at < n && v->of[at].guid != new->guid)
        at++;
    if (at == n && n < SM_VERDICTS_MAX)
        v->num++;
    else if (at == n)
        at = 0;
    memmove(&v->of[at], &v->of[at + 1], (v->num - 1 - at) * sizeof(v->of[0]));
    v->of[v->num - 1] = *new;
}

void verdicts_compare_with(struct sm_verdicts *v, uint64_t generation)
{
    for (unsigned i = 0; i < v->num && generation != v->generation; i++)
        v->of[i].since_us = 0;
    v->generation = generation;
}

void verdicts_take(struct sm_verdicts *v, uint64_t guid, unsigned differences)
{
    const struct sm_verdict *had = verdicts_find(v, guid);
    struct sm_verdict now = {.guid = guid, .at = time(NULL), .differences = differences};
    if (differences)
        now.since_us = had && had->since_us ? had->since_us : clock_us();
    if (!had || had->differences != differences)
        v->changed = true;
    put_last(v, &now);
}

bool verdicts_lasts(const struct sm_verdicts *v, uint64_t guid)
{
    const struct sm_verdict *of = verdicts_find(v, guid);
    return of && of->since_us && clock_us() - of->since_us >= v->patience_us;
}

/* ---- the file ---- */

void verdicts_keep(struct sm_verdicts *v)
{
    struct text t = {0};
    time_t now = time(NULL);
    if (!v->num || (!v->changed && now - v->kept_at < KEEP_EVERY_S))
        return;
    text_printf(&t, "# written by fabricd: ports without the policy under each subnet manager\n");
    for (unsigned i = 0; i < v->num; i++)
        text_printf(&t, "- {guid: \"%016" PRIx64 "\", at: %" PRId64 ", differences: %u}\n", v->of[i].guid,
                    (int64_t)v->of[i].at, v->of[i].differences);
    int rc = text_write_file(v->path, t.s, t.len);
    text_free(&t);
    if (rc && rc != v->error)
        log_event(LOG_STATE_NOT_KEPT, SD_WARNING, "%s: %s: subnet managers are remembered until this daemon ends",
                  v->path, strerror(-rc));
    v->error = rc;
    v->changed = rc;
    v->kept_at = now;
}

static bool hex_of(const char *s, uint64_t *out)
{
    int end = 0;
    return sscanf(s, "%16" SCNx64 "%n", out, &end) == 1 && end == 16 && !s[end];
}

static void parse_verdict(struct sm_verdicts *v, struct ydoc *y, yaml_node_t *n)
{
    struct ykey k[] = {{"guid", true, NULL}, {"at", true, NULL}, {"differences", true, NULL}};
    struct sm_verdict of = {0};
    uint32_t at;
    if (!ydoc_map(y, n, "a subnet manager", k, 3))
        return;
    const char *guid = ydoc_need_scalar(y, k[0].value, "guid", "16 hexadecimal digits");
    if (!guid || !ydoc_uint(y, k[1].value, "at", 0, UINT32_MAX, &at) ||
        !ydoc_uint(y, k[2].value, "differences", 0, UINT32_MAX, &of.differences))
        return;
    of.at = at;
    if (hex_of(guid, &of.guid))
        put_last(v, &of);
    else
        diag_error(y->diag, ydoc_place(k[0].value), "guid is '%.20s'; allowed: 16 hexadecimal digits", guid);
}

static void put_aside(const struct sm_verdicts *v, const struct text *t, const struct diag *d)
{
    char aside[sizeof(v->path) + 64];
    text_corrupt_name(v->path, aside, sizeof(aside));
    int rc = text_write_file(aside, text_str(t), t->len);
    log_error("%ssubnet managers that cannot be read are forgotten; the file as it was %s %s%s%s", text_str(&d->out),
              rc ? "could not be kept as" : "is kept as", aside, rc ? ": " : "", rc ? strerror(-rc) : "");
}

void verdicts_open(struct sm_verdicts *v, const char *state_dir, unsigned patience_s)
{
    struct text t = {0};
    struct diag d = {.file = v->path};
    struct ydoc y;
    yaml_node_t *item;
    *v = (struct sm_verdicts){.patience_us = (uint64_t)patience_s * 1000000};
    snprintf(v->path, sizeof(v->path), "%s/masters.yaml", state_dir);
    int rc = text_read_file(&t, v->path, FILE_MAX);
    if (!rc && ydoc_load(&y, text_str(&t), t.len, &d)) {
        if (ydoc_list(&y, ydoc_root(&y), "the subnet managers"))
            for (size_t i = 0; i < SM_VERDICTS_MAX && (item = ydoc_item(&y, ydoc_root(&y), i)); i++)
                parse_verdict(v, &y, item);
        ydoc_free(&y);
    }
    if (rc && rc != -ENOENT)
        log_error("%s: %s: what ports had under other subnet managers is not known", v->path, text_read_error(rc));
    else if (d.errors)
        put_aside(v, &t, &d);
    v->changed = d.errors;
    text_free(&d.out);
    text_free(&t);
}
