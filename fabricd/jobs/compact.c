/* SPDX-License-Identifier: BSD-3-Clause */
/* jobs.yaml without the lines that do not hold: see compact.h. */
#include "fabricd/jobs/compact.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int compact_begin(const struct journal *j, struct compaction *c)
{
    struct stat st;
    *c = (struct compaction){.before = j->lines};
    if (!j->ours || stat(j->path, &st))
        return j->ours ? -errno : -ESTALE;
    c->dev = st.st_dev;
    c->ino = st.st_ino;
    c->len = st.st_size;
    memcpy(c->path, j->path, sizeof(c->path));
    snprintf(c->tmp, sizeof(c->tmp), "%s" TEXT_UNFINISHED "XXXXXX", j->path);
    c->fd = mkostemp(c->tmp, O_CLOEXEC);
    if (c->fd < 0)
        return -errno;
    /* Only root can give a file away; for anyone else the new file simply belongs to the writer. */
    if (fchmod(c->fd, st.st_mode & 07777) || (geteuid() == 0 && fchown(c->fd, st.st_uid, st.st_gid))) {
        int rc = -errno;
        close(c->fd);
        unlink(c->tmp);
        return rc;
    }
    return 0;
}

/* ---- which lines hold -------------------------------------------------------------------------------------------- */

struct line {
    const char *s;
    size_t len, id_len; /* the id as it is written, at JOURNAL_ITEM's end; 0: this line is no job's */
    bool holds;
};

/* An id always has the same notation, so ids are compared as text. */
static size_t id_length(const char *s, const char *end)
{
    const char *at = s;
    if (at == end || *at != '"') {
        while (at < end && *at != ',' && *at != '}')
            at++;
        return (size_t)(at - s);
    }
    for (at++; at < end && *at != '"'; at++)
        at += *at == '\\' && at + 1 < end;
    return (size_t)(at - s) + (at < end);
}

static bool is_end(const struct line *l)
{
    size_t n = strlen(JOURNAL_ITEM) + l->id_len, tail = strlen(JOURNAL_ENDED);
    return l->len == n + tail + 1 && !memcmp(l->s + n, JOURNAL_ENDED, tail);
}

static struct line *split_lines(const char *s, size_t len, unsigned *num)
{
    const size_t item = strlen(JOURNAL_ITEM);
    struct line *all = NULL;
    unsigned n = 0, room = 0;
    for (const char *end = s + len, *next; s < end; s = next) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        next = nl ? nl + 1 : end;
        if (n == room) {
            struct line *more = realloc(all, (room = room ? 2 * room : 1024) * sizeof(*all));
            if (!more) {
                free(all);
                return NULL;
            }
            all = more;
        }
        all[n] = (struct line){.s = s, .len = (size_t)(next - s), .holds = true};
        if (all[n].len > item && !memcmp(s, JOURNAL_ITEM, item))
            all[n].id_len = id_length(s + item, next);
        n++;
    }
    *num = n;
    return all;
}

/* From the last line to the first: the first line met of a job is valid, unless it is the job's end. */
static bool mark(struct line *all, unsigned n)
{
    const size_t item = strlen(JOURNAL_ITEM);
    unsigned size = 16;
    while (size < 2 * n)
        size *= 2;
    unsigned *met = calloc(size, sizeof(*met)); /* 1 + the line */
    if (!met)
        return false;
    while (n--) {
        struct line *l = &all[n];
        if (!l->id_len)
            continue;
        unsigned at = (unsigned)(text_hash(l->s + item, l->id_len) >> 32) & (size - 1);
        while (met[at] &&
               (all[met[at] - 1].id_len != l->id_len || memcmp(all[met[at] - 1].s + item, l->s + item, l->id_len)))
            at = (at + 1) & (size - 1);
        l->holds = !met[at] && !is_end(l);
        if (!met[at])
            met[at] = n + 1;
    }
    free(met);
    return true;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int write_those_that_hold(struct compaction *c, const char *s, size_t len)
{
    struct text out = {0};
    unsigned n = 0;
    struct line *all = split_lines(s, len, &n);
    if (!all || !mark(all, n)) {
        free(all);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < n; i++)
        if (all[i].holds) {
            text_put(&out, all[i].s, all[i].len);
            c->lines += all[i].id_len != 0;
        }
    free(all);
    int rc = text_write_fd(c->fd, text_str(&out), out.len);
    text_free(&out);
    return rc;
}

void compact_run(struct compaction *c)
{
    struct text t = {0};
    c->rc = text_read_file(&t, c->path, JOURNAL_MAX);
    if (!c->rc && (off_t)t.len < c->len)
        c->rc = -ESTALE;
    if (!c->rc)
        c->rc = write_those_that_hold(c, text_str(&t), (size_t)c->len);
    text_free(&t);
    if (!c->rc && fsync(c->fd))
        c->rc = -errno;
}

/* Lines appended since; they are few. */
static int copy_rest(const struct compaction *c)
{
    char buf[16384];
    struct stat st;
    int fd = open(c->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), rc = 0;
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) || st.st_dev != c->dev || st.st_ino != c->ino || st.st_size < c->len)
        rc = -ESTALE;
    for (off_t at = c->len; !rc && at < st.st_size;) {
        ssize_t n = pread(fd, buf, sizeof(buf), at);
        rc = n > 0 ? text_write_fd(c->fd, buf, (size_t)n) : n < 0 ? -errno : -ESTALE;
        at += n > 0 ? n : 0;
    }
    close(fd);
    return rc;
}

int compact_end(struct journal *j, struct compaction *c)
{
    int rc = c->rc ? c->rc : copy_rest(c);
    close(c->fd);
    if (!rc && rename(c->tmp, c->path))
        rc = -errno;
    if (rc)
        unlink(c->tmp);
    else
        j->lines = c->lines + (j->lines - c->before);
    return rc;
}
