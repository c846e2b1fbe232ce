/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs on disk: see journal.h. */
#include "fabricd/jobs/journal.h"
#include "fabricd/proto/ratio.h"
#include "fabricd/base/ydoc.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FIRST    "# written by fabricd: the last line of a job holds\n"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Texts of a job in the file, beside its id. */
static const struct field {
    const char *key;
    size_t at, size;
} fields[] = {
    {"class", offsetof(struct job, class_name), FD_NAME_MAX},
    {"wish", offsetof(struct job, wish), FD_NAME_MAX},
    {"account", offsetof(struct job, account), FD_JOB_MAX},
    {"qos", offsetof(struct job, qos), FD_JOB_MAX},
    {"partition", offsetof(struct job, partition), FD_JOB_MAX},
    {"name", offsetof(struct job, name), FD_JOB_MAX},
    {"cgroup", offsetof(struct job, cgroup), FD_CGROUP_MAX},
    {"small_ratio", offsetof(struct job, small_ratio), FD_RATIO_MAX},
    {"seat", offsetof(struct job, seat_class), FD_NAME_MAX},
};

struct reader {
    struct ydoc y;
    journal_take *take;
    void *arg;
    unsigned lines, taken;
};

/* In the form of outside input (message.h): ASCII, which is also written. */
static bool read_ascii(struct ydoc *y, yaml_node_t *n, const char *what, char *out, size_t size)
{
    if (!ydoc_string(y, n, what, out, size))
        return false;
    for (const char *s = out; *s; s++)
        if (*s & 0x80) {
            diag_error(y->diag, ydoc_place(n), "%s has a character that is not ASCII; allowed: printable ASCII", what);
            return false;
        }
    return true;
}

/* A job with an error is left out. */
static void parse_job(struct reader *r, yaml_node_t *n)
{
    enum { ID, UID, SINCE, LEASE, RUN, END, KEYS };
    struct ydoc *y = &r->y;
    unsigned errors = y->diag->errors;
    struct ykey k[KEYS + COUNT(fields)] = {
        [ID] = {"id", true, NULL},        [UID] = {"uid", false, NULL}, [SINCE] = {"since", false, NULL},
        [LEASE] = {"lease", false, NULL}, [RUN] = {"run", false, NULL}, [END] = {"ended", false, NULL}};
    struct job job = {.uid = FD_UID_ANY};
    bool ended = false;
    for (unsigned i = 0; i < COUNT(fields); i++)
        k[KEYS + i].name = fields[i].key;
    if (!ydoc_map(y, n, "a job", k, COUNT(k)) || !read_ascii(y, k[ID].value, "id", job.id, sizeof(job.id)))
        return;
    if (k[UID].value)
        ydoc_uint(y, k[UID].value, "uid", 0, FD_UID_ANY - 1, &job.uid);
    if (k[SINCE].value)
        ydoc_uint(y, k[SINCE].value, "since", 1, UINT32_MAX, &job.since);
    if (k[LEASE].value)
        ydoc_uint(y, k[LEASE].value, "lease", 1, FD_LEASE_MAX, &job.lease_s);
    if (k[RUN].value && ydoc_uint(y, k[RUN].value, "run", 0, FD_RUN_MAX, &job.run))
        job.run++;
    if (k[END].value)
        ydoc_bool(y, k[END].value, "ended", &ended);
    for (unsigned i = 0; i < COUNT(fields); i++)
        if (k[KEYS + i].value)
            read_ascii(y, k[KEYS + i].value, fields[i].key, (char *)&job + fields[i].at, fields[i].size);
    struct ratio ratio;
    if (*job.small_ratio && !ratio_parse(job.small_ratio, &ratio))
        diag_error(y->diag, ydoc_place(n), "small_ratio is '%s'; allowed: SMALL:LARGE, as 1:99", job.small_ratio);
    if (y->diag->errors != errors)
        return;
    if (r->take(r->arg, &job, ended))
        r->taken++;
    else
        diag_error(y->diag, ydoc_place(n), "there is no room for more than these jobs");
}

static void parse_list(struct reader *r, yaml_node_t *list)
{
    yaml_node_t *item;
    for (size_t i = 0; (item = ydoc_item(&r->y, list, i)); i++, r->lines++)
        parse_job(r, item);
}

/* The contents of a file without jobs. */
static bool is_nothing(const yaml_node_t *n)
{
    const char *s = n ? ydoc_scalar(n) : NULL;
    return s && !*s;
}

static bool parse_file(struct reader *r, const struct text *t, struct diag *d)
{
    struct ykey k[] = {{"boot", false, NULL}, {"jobs", true, NULL}};
    struct ydoc *y = &r->y;
    if (!ydoc_load(y, text_str(t), t->len, d))
        return false;
    bool map = ydoc_map(y, ydoc_root(y), "the file", k, COUNT(k)), none = map && is_nothing(k[1].value);
    bool list = map && !none && ydoc_list(y, k[1].value, "jobs");
    if (list)
        parse_list(r, k[1].value);
    ydoc_free(y);
    return list || none;
}

/* Our own files have a job in each line: readable lines are read one by one. */
static void parse_lines(struct reader *r, const struct text *t, struct diag *d)
{
    struct text alone = {0}; /* as many empty lines before it as in the file: errors then name its place in the file */
    for (const char *line = text_str(t), *end; *line; line = *end ? end + 1 : end) {
        end = strchrnul(line, '\n');
        size_t before = alone.len;
        if (!strncmp(line, "  - {", 5)) {
            text_put(&alone, line, (size_t)(end - line));
            if (ydoc_load(&r->y, alone.s, alone.len, d)) {
                if (ydoc_list(&r->y, ydoc_root(&r->y), "the line"))
                    parse_list(r, ydoc_root(&r->y));
                ydoc_free(&r->y);
            } else {
                diag_error(d, (struct place){.line = (unsigned)before + 1, .col = 3}, "this job is left out");
            }
            alone.len = before;
        }
        text_put(&alone, "\n", 1);
    }
    text_free(&alone);
}

unsigned journal_parse(const struct text *t, journal_take *take, void *arg, struct diag *d)
{
    struct reader r = {.take = take, .arg = arg};
    if (!parse_file(&r, t, d))
        parse_lines(&r, t, d);
    return r.lines;
}

/* ---- the file as it is written here ------------------------------------------------------------------------------ */

static void put_header(const struct journal *j, struct text *t)
{
    text_printf(t, FIRST);
    if (*j->boot)
        text_printf(t, "boot: %s\n", j->boot);
    text_printf(t, "jobs:\n");
}

/* The text of the lines just read if they were written here. */
struct again {
    journal_take *take;
    void *arg;
    struct text lines;
};

static bool take_again(void *arg, const struct job *job, bool ended)
{
    struct again *a = arg;
    if (ended)
        journal_ended(&a->lines, job->id);
    else
        journal_job(&a->lines, job);
    return a->take(a->arg, job, ended);
}

/* To the letter: compact.h recognizes a job by the notation of its id. */
static bool is_our_content(const struct journal *j, const struct text *t, const struct text *lines)
{
    struct text all = {0};
    put_header(j, &all);
    text_put(&all, text_str(lines), lines->len);
    bool ours = t->len == all.len && !memcmp(t->s, all.s, all.len);
    text_free(&all);
    return ours;
}

/* True if the file names another boot. Its errors do not matter then. */
static bool is_of_before(const struct journal *j, const struct text *t)
{
    const char *s = text_str(t);
    if (!strncmp(s, FIRST, strlen(FIRST)))
        s += strlen(FIRST);
    size_t n = strncmp(s, "boot: ", 6) ? 0 : strcspn(s + 6, "\n");
    return n && *j->boot && (n != strlen(j->boot) || memcmp(s + 6, j->boot, n));
}

/* The next change would overwrite the file. */
static void keep_damaged(const struct journal *j, const struct text *t, struct diag *d)
{
    char path[sizeof(j->path) + 48];
    text_corrupt_name(j->path, path, sizeof(path));
    int rc = text_write_file(path, text_str(t), t->len);
    if (rc)
        diag_error(d, (struct place){0}, "could not be kept as %s: %s", path, strerror(-rc));
    else
        diag_error(d, (struct place){0}, "as it was it is kept as %s", path);
}

bool journal_open(struct journal *j, const char *state_dir, journal_take *take, void *arg, bool *before, struct diag *d)
{
    struct text t = {0};
    struct again again = {.take = take, .arg = arg};
    *j = (struct journal){0};
    *before = false;
    snprintf(j->path, sizeof(j->path), "%s/jobs.yaml", state_dir);
    cgroups_boot(j->boot);
    d->file = j->path;
    int rc = text_read_file(&t, j->path, JOURNAL_MAX);
    if (!rc && is_of_before(j, &t))
        *before = true;
    else if (!rc)
        j->lines = journal_parse(&t, take_again, &again, d);
    else if (rc != -ENOENT)
        diag_error(d, (struct place){0}, "%s", text_read_error(rc));
    if (d->errors && !rc)
        keep_damaged(j, &t, d);
    j->ours = !rc && !d->errors && is_our_content(j, &t, &again.lines);
    text_free(&again.lines);
    text_free(&t);
    return !d->errors;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

void journal_job(struct text *t, const struct job *job)
{
    text_printf(t, JOURNAL_ITEM);
    text_yaml_string(t, job->id);
    for (unsigned i = 0; i < COUNT(fields); i++) {
        const char *value = (const char *)job + fields[i].at;
        if (!*value)
            continue;
        text_printf(t, ", %s: ", fields[i].key);
        text_yaml_string(t, value);
    }
    if (job->lease_s)
        text_printf(t, ", lease: %u", job->lease_s);
    if (job->run)
        text_printf(t, ", run: %u", job->run - 1);
    if (job->uid != FD_UID_ANY)
        text_printf(t, ", uid: %u", job->uid);
    if (job->since)
        text_printf(t, ", since: %u", job->since);
    text_printf(t, "}\n");
}

void journal_ended(struct text *t, const char *id)
{
    text_printf(t, JOURNAL_ITEM);
    text_yaml_string(t, id);
    text_printf(t, JOURNAL_ENDED "\n");
}

int journal_write(struct journal *j, const struct text *lines, unsigned num)
{
    struct text t = {0};
    put_header(j, &t);
    text_put(&t, text_str(lines), lines->len);
    int rc = text_write_file(j->path, t.s, t.len);
    text_free(&t);
    if (!rc) {
        j->lines = num;
        j->ours = true;
    }
    return rc;
}

/* True for a file that ends with a complete line. */
static bool ends_well(int fd, off_t *size)
{
    struct stat st;
    char last;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size)
        return false;
    *size = st.st_size;
    return pread(fd, &last, 1, st.st_size - 1) == 1 && last == '\n';
}

int journal_append(struct journal *j, const struct text *t)
{
    int fd = j->ours ? open(j->path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1, rc;
    off_t size = 0;
    if (fd < 0)
        return j->ours && errno != ENOENT ? -errno : -ESTALE;
    rc = ends_well(fd, &size) ? 0 : -ESTALE;
    ssize_t n = rc ? 0 : write(fd, t->s, t->len);
    if (!rc && n != (ssize_t)t->len) {
        rc = n < 0 ? -errno : -ENOSPC;
        if (n > 0 && ftruncate(fd, size))
            j->ours = false; /* the line is torn */
    }
    close(fd);
    j->lines += !rc;
    return rc;
}
