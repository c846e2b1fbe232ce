/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs and their classes: see jobs.h. */
#include "fabricd/jobs/jobs.h"
#include "fabricd/ydoc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define FILE_MAX   (64u << 20)
#define LINES_MORE 1024 /* than twice as many as there are jobs: then the file is written anew */
#define HEADER     "# written by fabricd: the last line of a job holds\njobs:\n"

/* ---- the table --------------------------------------------------------------------------------------------------- */

_Static_assert(offsetof(struct job, id) == 0, "the tree compares ids");

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

const struct job *jobs_find(const struct jobs *j, const char *id)
{
    const struct job *const *found = tfind(id, (void *const *)&j->by_id, compare_ids);
    return found ? *found : NULL;
}

static int make_room(struct jobs *j)
{
    unsigned room = j->room ? 2 * j->room : 64;
    struct job **all;
    if (j->n < j->room)
        return 0;
    if (j->n == JOBS_MAX)
        return -ENOSPC;
    all = realloc(j->job, room * sizeof(struct job *));
    if (!all)
        return -ENOMEM;
    j->job = all;
    j->room = room;
    return 0;
}

/* In the place of the one with this id, if there is one. 0, -ENOSPC, -ENOMEM. */
static int put(struct jobs *j, const struct job *job)
{
    struct job *own = (struct job *)jobs_find(j, job->id);
    int rc = own ? 0 : make_room(j);
    if (rc)
        return rc;
    if (!own) {
        own = malloc(sizeof(*own));
        if (!own)
            return -ENOMEM;
        strcpy(own->id, job->id);
        if (!tsearch(own, &j->by_id, compare_ids)) {
            free(own);
            return -ENOMEM;
        }
        j->job[own->at = j->n++] = own;
    }
    unsigned at = own->at;
    *own = *job;
    own->at = at;
    return 0;
}

/* If it is there. */
static void take_out(struct jobs *j, const char *id)
{
    struct job *old = (struct job *)jobs_find(j, id);
    if (!old)
        return;
    tdelete(id, &j->by_id, compare_ids);
    j->job[old->at] = j->job[--j->n];
    j->job[old->at]->at = old->at;
    free(old);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Texts of a job, as the file has them beside its id. */
static const struct field {
    const char *key;
    size_t at, size;
} fields[] = {
    {"class", offsetof(struct job, class_name), FD_NAME_MAX}, {"wish", offsetof(struct job, wish), FD_NAME_MAX},
    {"account", offsetof(struct job, account), FD_JOB_MAX},   {"qos", offsetof(struct job, qos), FD_JOB_MAX},
    {"partition", offsetof(struct job, partition), FD_JOB_MAX}, {"name", offsetof(struct job, name), FD_JOB_MAX},
};

/* One with an error is left out. */
static void parse_job(struct ydoc *y, yaml_node_t *n, struct jobs *j)
{
    unsigned errors = y->diag->errors;
    struct ykey k[4 + COUNT(fields)] = {
        {"id", true, NULL}, {"uid", false, NULL}, {"since", false, NULL}, {"ended", false, NULL}};
    struct job job = {.uid = FD_UID_ANY};
    bool ended = false;
    for (unsigned i = 0; i < COUNT(fields); i++)
        k[4 + i].name = fields[i].key;
    if (!ydoc_map(y, n, "a job", k, COUNT(k)) || !ydoc_string(y, k[0].value, "id", job.id, sizeof(job.id)))
        return;
    if (k[1].value)
        ydoc_uint(y, k[1].value, "uid", 0, FD_UID_ANY - 1, &job.uid);
    if (k[2].value)
        ydoc_uint(y, k[2].value, "since", 1, UINT32_MAX, &job.since);
    if (k[3].value)
        ydoc_bool(y, k[3].value, "ended", &ended);
    for (unsigned i = 0; i < COUNT(fields); i++)
        if (k[4 + i].value)
            ydoc_string(y, k[4 + i].value, fields[i].key, (char *)&job + fields[i].at, fields[i].size);
    if (y->diag->errors != errors)
        return;
    if (ended)
        take_out(j, job.id);
    else if (put(j, &job))
        diag_error(y->diag, ydoc_place(n), "there is no room for more than these %u jobs", j->n);
}

static void parse_list(struct ydoc *y, yaml_node_t *list, struct jobs *j)
{
    yaml_node_t *item;
    for (size_t i = 0; (item = ydoc_item(y, list, i)); i++, j->lines++)
        parse_job(y, item, j);
}

/* What a file without jobs says of them. */
static bool is_nothing(const yaml_node_t *n)
{
    const char *s = n ? ydoc_scalar(n) : NULL;
    return s && !*s;
}

static bool parse_file(struct jobs *j, const struct text *t, struct diag *d)
{
    struct ykey k[] = {{"jobs", true, NULL}};
    struct ydoc y;
    if (!ydoc_load(&y, text_str(t), t->len, d))
        return false;
    bool map = ydoc_map(&y, ydoc_root(&y), "the file", k, COUNT(k)), none = map && is_nothing(k[0].value);
    bool list = map && !none && ydoc_list(&y, k[0].value, "jobs");
    if (list)
        parse_list(&y, k[0].value, j);
    ydoc_free(&y);
    return list || none;
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

/* As written here, and so a line may follow. */
static bool is_ours(const struct text *t)
{
    const char *line = text_str(t);
    if (strncmp(line, HEADER, strlen(HEADER)))
        return false;
    for (line += strlen(HEADER); *line; line = strchr(line, '\n') + 1)
        if (strncmp(line, "  - {", 5) || !strchr(line, '\n'))
            return false;
    return true;
}

bool jobs_open(struct jobs *j, const char *state_dir, struct diag *d)
{
    struct text t = {0};
    *j = (struct jobs){.lines = UINT_MAX / 2};
    snprintf(j->path, sizeof(j->path), "%s/jobs.yaml", state_dir);
    d->file = j->path;
    int rc = text_read_file(&t, j->path, FILE_MAX);
    if (rc == -ENOENT) {
        text_free(&t);
        return true;
    }
    j->lines = 0;
    if (rc)
        diag_error(d, (struct place){0}, "%s", text_read_error(rc));
    else if (!parse_file(j, &t, d))
        parse_lines(j, &t, d);
    if (d->errors && !rc)
        keep_damaged(j, &t);
    if (d->errors || !is_ours(&t))
        j->lines = UINT_MAX / 2; /* the next change writes it anew */
    text_free(&t);
    return !d->errors;
}

void jobs_close(struct jobs *j)
{
    while (j->n)
        take_out(j, j->job[j->n - 1]->id);
    free(j->job);
    *j = (struct jobs){0};
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* As the file has it. */
static void job_text(struct text *t, const struct job *job)
{
    text_printf(t, "  - {id: ");
    text_yaml_string(t, job->id);
    for (unsigned i = 0; i < COUNT(fields); i++) {
        const char *value = (const char *)job + fields[i].at;
        if (!*value)
            continue;
        text_printf(t, ", %s: ", fields[i].key);
        text_yaml_string(t, value);
    }
    if (job->uid != FD_UID_ANY)
        text_printf(t, ", uid: %u", job->uid);
    if (job->since)
        text_printf(t, ", since: %u", job->since);
    text_printf(t, "}\n");
}

/* All of it, in place of the file. */
static int write_anew(struct jobs *j)
{
    struct text t = {0};
    text_printf(&t, "%s", HEADER);
    for (unsigned i = 0; i < j->n; i++)
        job_text(&t, j->job[i]);
    int rc = text_write_file(j->path, t.s, t.len);
    text_free(&t);
    if (!rc)
        j->lines = j->n;
    return rc;
}

/* It is a file that ends with a line. */
static bool ends_well(int fd, off_t *size)
{
    struct stat st;
    char last;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size)
        return false;
    *size = st.st_size;
    return pread(fd, &last, 1, st.st_size - 1) == 1 && last == '\n';
}

/* What comes after the file's end. On an error the file is as it was. */
static int append(const struct jobs *j, const struct text *t)
{
    int fd = open(j->path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), rc;
    off_t size = 0;
    if (fd < 0)
        return -errno;
    rc = ends_well(fd, &size) ? 0 : -ESTALE;
    ssize_t n = rc ? 0 : write(fd, t->s, t->len);
    if (!rc && n != (ssize_t)t->len) {
        rc = n < 0 ? -errno : -ENOSPC;
        if (n > 0 && ftruncate(fd, size))
            rc = -EIO;
    }
    close(fd);
    return rc;
}

/*
 * A change that is made already, in a line of its own: a file of thousands of jobs is not written anew for each. It
 * need not outlive the host, whose jobs do not either, so nothing waits for the disk.
 */
static int save(struct jobs *j, const struct text *line)
{
    int rc = j->lines >= 2 * j->n + LINES_MORE ? -ESTALE : append(j, line);
    if (!rc)
        j->lines++;
    return rc ? write_anew(j) : 0;
}

int jobs_set(struct jobs *j, const struct job *job)
{
    const struct job *old = jobs_find(j, job->id);
    struct job before = old ? *old : (struct job){0};
    struct text line = {0};
    int rc = put(j, job);
    if (rc)
        return rc;
    job_text(&line, job);
    rc = save(j, &line);
    text_free(&line);
    if (rc && old)
        put(j, &before);
    else if (rc)
        take_out(j, job->id);
    return rc;
}

int jobs_delete(struct jobs *j, const char *id)
{
    const struct job *old = jobs_find(j, id);
    struct text line = {0};
    if (!old)
        return -ENOENT;
    struct job before = *old;
    text_printf(&line, "  - {id: ");
    text_yaml_string(&line, before.id);
    text_printf(&line, ", ended: true}\n");
    take_out(j, before.id);
    int rc = save(j, &line);
    text_free(&line);
    if (rc)
        put(j, &before); /* there was room for it */
    return rc;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static struct pattern_job known_of(const struct job *job, const char *user)
{
    return (struct pattern_job){
        .user = user, .account = job->account, .qos = job->qos, .partition = job->partition, .name = job->name};
}

bool jobs_may_choose(const struct job *job, const struct policy *p, const char *user, const char *class_name)
{
    struct pattern_job known = known_of(job, user);
    int i = policy_class_by_name(p, class_name);
    return i >= 0 && policy_may_choose(&p->classes[i], &known);
}

unsigned jobs_class_of(const struct job *job, const struct policy *p, const char *user, const char **source)
{
    struct pattern_job known = known_of(job, user);
    int given = *job->class_name ? policy_class_by_name(p, job->class_name) : -1;
    bool wish = given < 0 && *job->wish && jobs_may_choose(job, p, user, job->wish);
    if (source)
        *source = given >= 0 ? "scheduler" : wish ? "user" : "rule";
    if (wish)
        given = policy_class_by_name(p, job->wish);
    return given >= 0 ? (unsigned)given : policy_class_of(p, &known);
}

unsigned jobs_class(const struct jobs *j, const struct policy *p, const char *id, uid_t uid, const char *user)
{
    static const struct job nobody;
    const struct job *job = *id ? jobs_find(j, id) : NULL;
    if (job && (job->uid == FD_UID_ANY || job->uid != uid))
        job = NULL; /* somebody else's */
    return jobs_class_of(job ? job : &nobody, p, user, NULL);
}
