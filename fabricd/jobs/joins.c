/* SPDX-License-Identifier: BSD-3-Clause */
/* See joins.h. */
#include "fabricd/jobs/joins.h"
#include "fabricd/base/ydoc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_LINE "# written by fabricd: hosts of jobs in partitions\n"

const char *joins_next_host(const char **p, size_t *len)
{
    const char *host = *p + strspn(*p, " ");
    *len = strcspn(host, " ");
    *p = host + *len;
    return *len ? host : NULL;
}

/* ---- the table, in the order of ids ---- */

static unsigned join_place(const struct joins *j, const char *job)
{
    unsigned from = 0, to = j->n;
    while (from < to) {
        unsigned middle = (from + to) / 2;
        if (strcmp(j->join[middle].job, job) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

const struct join *joins_find(const struct joins *j, const char *job)
{
    unsigned at = join_place(j, job);
    return at < j->n && !strcmp(j->join[at].job, job) ? &j->join[at] : NULL;
}

const struct join *joins_due(const struct joins *j, uint64_t now_s)
{
    for (unsigned i = 0; i < j->n; i++)
        if (j->join[i].until_s && j->join[i].until_s <= now_s)
            return &j->join[i];
    return NULL;
}

/* Its hosts belong to the table now. */
static void insert_join(struct joins *j, const struct join *join)
{
    unsigned at = join_place(j, join->job);
    if (joins_find(j, join->job)) {
        free(j->join[at].hosts);
    } else {
        j->join = realloc(j->join, (j->n + 1) * sizeof(*j->join));
        if (!j->join)
            abort();
        memmove(j->join + at + 1, j->join + at, (j->n - at) * sizeof(*j->join));
        j->n++;
    }
    j->join[at] = *join;
}

static void remove_join(struct joins *j, unsigned at)
{
    free(j->join[at].hosts);
    memmove(j->join + at, j->join + at + 1, (j->n - at - 1) * sizeof(*j->join));
    j->n--;
}

void joins_keys(const struct joins *j, struct host_keys *out)
{
    size_t len;
    *out = (struct host_keys){0};
    for (unsigned i = 0; i < j->n; i++)
        for (const char *host, *p = j->join[i].hosts; (host = joins_next_host(&p, &len));)
            host_keys_add(out, j->join[i].pkey, host, len);
    host_keys_sort(out);
}

static void put_join(const struct join *join, struct text *out)
{
    text_printf(out, "- {job: ");
    text_yaml_string(out, join->job);
    if (join->run)
        text_printf(out, ", run: %u", join->run - 1);
    text_printf(out, ", pkey: \"0x%04x\"", join->pkey);
    if (join->until_s)
        text_printf(out, ", until: %" PRIu64, join->until_s);
    text_printf(out, ", hosts: ");
    text_yaml_string(out, join->hosts);
    text_printf(out, "}\n");
}

const char *joins_text(const struct joins *j, const char *after, size_t max, struct text *out)
{
    for (unsigned i = join_place(j, after); i < j->n; i++) {
        if (!strcmp(j->join[i].job, after))
            continue;
        put_join(&j->join[i], out);
        if (out->len >= max && i + 1 < j->n)
            return j->join[i].job;
    }
    return NULL;
}

/* ---- the file ---- */

/* The table with a change: join replaces or adds a job, without names a job that goes. */
static int write_joins(const struct joins *j, const struct join *join, const char *without)
{
    struct text t = {0};
    unsigned at = join ? join_place(j, join->job) : j->n + 1;
    text_printf(&t, FIRST_LINE "jobs:%s\n", j->n + (join != NULL) > (without != NULL) ? "" : " []");
    for (unsigned i = 0; i <= j->n; i++) {
        if (i == at) {
            text_printf(&t, "  ");
            put_join(join, &t);
        }
        if (i == j->n || (join && !strcmp(j->join[i].job, join->job)) || (without && !strcmp(j->join[i].job, without)))
            continue;
        text_printf(&t, "  ");
        put_join(&j->join[i], &t);
    }
    int rc = t.len > JOINS_FILE_MAX ? -ENOSPC : text_write_file(j->path, t.s, t.len);
    text_free(&t);
    return rc;
}

int joins_set(struct joins *j, const struct join *join)
{
    if (j->n == JOINS_MAX && !joins_find(j, join->job))
        return -ENOSPC;
    int rc = write_joins(j, join, NULL);
    if (rc)
        return rc;
    struct join own = *join;
    own.serial = ++j->serial;
    own.hosts = strdup(join->hosts);
    if (!own.hosts)
        abort();
    insert_join(j, &own);
    return 0;
}

int joins_delete(struct joins *j, const char *job)
{
    if (!joins_find(j, job))
        return -ENOENT;
    int rc = write_joins(j, NULL, job);
    if (rc)
        return rc;
    j->serial++;
    remove_join(j, join_place(j, job));
    return 0;
}

static bool are_hosts(const char *s)
{
    size_t len;
    unsigned n = 0;
    for (const char *p = s; *p; p++)
        if (*p < ' ' || *p > '~')
            return false;
    for (const char *p = s; joins_next_host(&p, &len); n++)
        if (len >= HOST_MAX)
            return false;
    return n > 0;
}

/* A job with an error is left out. */
static void parse_join(struct joins *j, struct ydoc *y, yaml_node_t *n)
{
    enum { JOB, PKEY, HOSTS, RUN, UNTIL, KEYS };
    struct ykey k[KEYS] = {[JOB] = {"job", true, NULL},
                           [PKEY] = {"pkey", true, NULL},
                           [HOSTS] = {"hosts", true, NULL},
                           [RUN] = {"run", false, NULL},
                           [UNTIL] = {"until", false, NULL}};
    unsigned errors = y->diag->errors;
    struct join join = {0};
    if (!ydoc_map(y, n, "a job", k, KEYS) || !ydoc_string(y, k[JOB].value, "job", join.job, sizeof(join.job)))
        return;
    const char *pkey = ydoc_need_scalar(y, k[PKEY].value, "pkey", "a P_Key"),
               *hosts = ydoc_need_scalar(y, k[HOSTS].value, "hosts", "names");
    const char *until = k[UNTIL].value ? ydoc_need_scalar(y, k[UNTIL].value, "until", "seconds") : NULL;
    join.pkey = pkey ? (uint32_t)strtoul(pkey, NULL, 16) : 0;
    if (k[RUN].value && ydoc_uint(y, k[RUN].value, "run", 0, FD_RUN_MAX, &join.run))
        join.run++;
    if ((pkey && (!join.pkey || join.pkey >= 0x7fff)) || (hosts && !are_hosts(hosts)) || !*join.job ||
        (until && !ydoc_uint_of(until, &join.until_s)))
        diag_error(y->diag, ydoc_place(n), "a value is none of ours");
    if (y->diag->errors != errors || j->n == JOINS_MAX)
        return;
    join.hosts = strdup(hosts);
    if (!join.hosts)
        abort();
    insert_join(j, &join);
}

static void parse_joins(struct joins *j, const struct text *t, struct diag *d)
{
    struct ykey k[] = {{"jobs", true, NULL}};
    struct ydoc y;
    yaml_node_t *item;
    if (!ydoc_load(&y, text_str(t), t->len, d))
        return;
    if (ydoc_map(&y, ydoc_root(&y), "the file", k, 1) && ydoc_list(&y, k[0].value, "jobs"))
        for (size_t i = 0; (item = ydoc_item(&y, k[0].value, i)); i++)
            parse_join(j, &y, item);
    ydoc_free(&y);
}

bool joins_open(struct joins *j, const char *state_dir, struct diag *d)
{
    struct text t = {0};
    *j = (struct joins){0};
    snprintf(j->path, sizeof(j->path), "%s/joins.yaml", state_dir);
    d->file = j->path;
    int rc = text_read_file(&t, j->path, JOINS_FILE_MAX);
    if (!rc)
        parse_joins(j, &t, d);
    else if (rc != -ENOENT)
        diag_error(d, (struct place){0}, "%s", text_read_error(rc));
    if (d->errors && !rc) {
        char aside[sizeof(j->path) + 48];
        text_corrupt_name(j->path, aside, sizeof(aside));
        rc = text_write_file(aside, text_str(&t), t.len);
        if (rc)
            diag_error(d, (struct place){0}, "could not be kept as %s: %s", aside, strerror(-rc));
        else
            diag_error(d, (struct place){0}, "as it was it is kept as %s", aside);
    }
    text_free(&t);
    return !d->errors;
}

void joins_close(struct joins *j)
{
    while (j->n)
        remove_join(j, j->n - 1);
    free(j->join);
    j->join = NULL;
}
