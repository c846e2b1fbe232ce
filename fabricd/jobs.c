/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs and their classes: see jobs.h. */
#include "fabricd/jobs.h"
#include "fabricd/ydoc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FILE_MAX (4u << 20)

/* One with an error is left out. */
static void parse_job(struct ydoc *y, yaml_node_t *n, struct jobs *j)
{
    unsigned errors = y->diag->errors;
    struct ykey k[] = {{"id", true, NULL},
                       {"class", false, NULL},
                       {"uid", false, NULL},
                       {"account", false, NULL},
                       {"name", false, NULL}};
    struct job job = {.uid = FD_UID_ANY};
    if (!ydoc_map(y, n, "a job", k, COUNT(k)) || !ydoc_string(y, k[0].value, "id", job.id, sizeof(job.id)))
        return;
    if (k[1].value)
        ydoc_string(y, k[1].value, "class", job.class_name, sizeof(job.class_name));
    if (k[2].value)
        ydoc_uint(y, k[2].value, "uid", 0, FD_UID_ANY - 1, &job.uid);
    if (k[3].value)
        ydoc_string(y, k[3].value, "account", job.account, sizeof(job.account));
    if (k[4].value)
        ydoc_string(y, k[4].value, "name", job.name, sizeof(job.name));
    if (y->diag->errors == errors && j->n == JOBS_MAX)
        diag_error(y->diag, ydoc_place(n), "more than %d jobs", JOBS_MAX);
    if (y->diag->errors == errors)
        j->job[j->n++] = job;
}

static void parse_list(struct ydoc *y, yaml_node_t *list, struct jobs *j)
{
    yaml_node_t *item;
    for (size_t i = 0; (item = ydoc_item(y, list, i)); i++)
        parse_job(y, item, j);
}

static bool parse_file(struct jobs *j, const struct text *t, struct diag *d)
{
    struct ykey k[] = {{"jobs", true, NULL}};
    struct ydoc y;
    if (!ydoc_load(&y, text_str(t), t->len, d))
        return false;
    bool list = ydoc_map(&y, ydoc_root(&y), "the file", k, COUNT(k)) && ydoc_list(&y, k[0].value, "jobs");
    if (list)
        parse_list(&y, k[0].value, j);
    ydoc_free(&y);
    return list;
}

/* What save() has written has a job in each line: those that can be read by themselves. */
static void parse_lines(struct jobs *j, const struct text *t, struct diag *d)
{
    struct text alone = {0}; /* as many empty lines before it as in the file: errors name its place there */
    for (const char *line = text_str(t), *end; *line; line = *end ? end + 1 : end) {
        struct ydoc y;
        end = strchrnul(line, '\n');
        size_t before = alone.len;
        if (!strncmp(line, "  - {", 5)) {
            text_put(&alone, line, (size_t)(end - line));
            if (ydoc_load(&y, alone.s, alone.len, d)) {
                if (ydoc_list(&y, ydoc_root(&y), "the line"))
                    parse_list(&y, ydoc_root(&y), j);
                ydoc_free(&y);
            } else {
                diag_error(d, (struct place){.line = (unsigned)before + 1, .col = 3}, "this job is left out");
            }
            alone.len = before;
        }
        text_put(&alone, "\n", 1);
    }
    text_free(&alone);
}

/* The next change would write over it. */
static void keep_damaged(const struct jobs *j, const struct text *t)
{
    char path[sizeof(j->path) + 16];
    snprintf(path, sizeof(path), "%s.damaged", j->path);
    text_write_file(path, text_str(t), t->len);
}

bool jobs_open(struct jobs *j, const char *state_dir, struct diag *d)
{
    struct text t = {0};
    *j = (struct jobs){0};
    snprintf(j->path, sizeof(j->path), "%s/jobs.yaml", state_dir);
    j->job = calloc(JOBS_MAX, sizeof(*j->job));
    if (!j->job)
        abort();
    d->file = j->path;
    int rc = text_read_file(&t, j->path, FILE_MAX);
    if (rc == -ENOENT) {
        text_free(&t);
        return true;
    }
    if (rc)
        diag_error(d, (struct place){0}, "%s", text_read_error(rc));
    else if (!parse_file(j, &t, d))
        parse_lines(j, &t, d);
    if (d->errors && !rc)
        keep_damaged(j, &t);
    text_free(&t);
    return !d->errors;
}

void jobs_close(struct jobs *j)
{
    free(j->job);
    *j = (struct jobs){0};
}

static void put_field(struct text *t, const char *key, const char *value)
{
    if (*value) {
        text_printf(t, ", %s: ", key);
        text_yaml_string(t, value);
    }
}

static void job_text(struct text *t, const struct job *job, const struct policy *p, const char *indent)
{
    text_printf(t, "%s- {id: ", indent);
    text_yaml_string(t, job->id);
    put_field(t, "class", job->class_name);
    if (job->uid != FD_UID_ANY)
        text_printf(t, ", uid: %u", job->uid);
    put_field(t, "account", job->account);
    put_field(t, "name", job->name);
    if (p && *job->class_name && policy_class_by_name(p, job->class_name) < 0)
        text_printf(t, ", note: \"the policy in force has no such class; the rules decide\"");
    text_printf(t, "}\n");
}

static int save(const struct jobs *j)
{
    struct text t = {0};
    text_printf(&t, "# written by fabricd\njobs:%s\n", j->n ? "" : " []");
    for (unsigned i = 0; i < j->n; i++)
        job_text(&t, &j->job[i], NULL, "  ");
    int rc = text_write_file(j->path, t.s, t.len);
    text_free(&t);
    return rc;
}

const struct job *jobs_find(const struct jobs *j, const char *id)
{
    for (unsigned i = 0; i < j->n; i++)
        if (!strcmp(j->job[i].id, id))
            return &j->job[i];
    return NULL;
}

int jobs_set(struct jobs *j, const struct job *job)
{
    struct job *old = (struct job *)jobs_find(j, job->id), before;
    if (old) {
        before = *old;
        *old = *job;
    } else if (j->n == JOBS_MAX) {
        return -ENOSPC;
    } else {
        j->job[j->n++] = *job;
    }
    int rc = save(j);
    if (rc && old)
        *old = before;
    else if (rc)
        j->n--;
    return rc;
}

int jobs_delete(struct jobs *j, const char *id)
{
    struct job *old = (struct job *)jobs_find(j, id), before;
    if (!old)
        return -ENOENT;
    before = *old;
    *old = j->job[--j->n];
    int rc = save(j);
    if (rc) {
        j->job[j->n++] = *old;
        *old = before;
    }
    return rc;
}

unsigned jobs_class(const struct jobs *j, const struct policy *p, const char *id, uid_t uid, const char *user)
{
    static const struct job nobody;
    const struct job *job = *id ? jobs_find(j, id) : NULL;
    if (job && job->uid != FD_UID_ANY && job->uid != uid)
        job = NULL; /* somebody else's */
    int given = job && *job->class_name ? policy_class_by_name(p, job->class_name) : -1;
    if (given >= 0)
        return (unsigned)given;
    if (!job)
        job = &nobody;
    return policy_class_of(p, user, job->account, job->name);
}

void jobs_text(struct text *out, const struct jobs *j, const struct policy *p, const char *indent, uint32_t uid)
{
    for (unsigned i = 0; i < j->n; i++)
        if (uid == FD_UID_ANY || j->job[i].uid == uid)
            job_text(out, &j->job[i], p, indent);
}
