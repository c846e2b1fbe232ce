/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbered directories and the link to the current one: see generations.h. */
#include "fabricd/apply/generations.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUMS     "sums"
#define SUMS_MAX 8192
#define NEW      ".new"

/* ---- names ---- */

struct name {
    uint64_t number;
    unsigned copy;
};

/* N or N.K, without leading zeros. */
static bool parse_name(const char *s, struct name *n)
{
    char again[GENERATION_NAME_MAX], *end;
    if (*s < '0' || *s > '9' || strlen(s) >= sizeof(again))
        return false;
    *n = (struct name){.number = strtoull(s, &end, 10)};
    if (*end == '.')
        n->copy = (unsigned)strtoul(end + 1, NULL, 10);
    snprintf(again, sizeof(again), n->copy ? "%" PRIu64 ".%u" : "%" PRIu64, n->number, n->copy);
    return !strcmp(s, again);
}

uint64_t generation_number(const char *name)
{
    struct name n;
    return parse_name(name, &n) ? n.number : 0;
}

static int compare_names(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->copy < y->copy ? -1 : x->copy > y->copy;
}

/* All that are there, in order. The array is the caller's to free. */
static size_t list_names(const char *state, struct name **out)
{
    char path[PATH_MAX + 32];
    size_t n = 0, cap = 0;
    *out = NULL;
    snprintf(path, sizeof(path), "%s/generations", state);
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    for (struct dirent *e; (e = readdir(dir));) {
        struct name name;
        if (!parse_name(e->d_name, &name))
            continue;
        if (n == cap) {
            cap = cap ? 2 * cap : 64;
            *out = realloc(*out, cap * sizeof(**out));
            if (!*out)
                abort();
        }
        (*out)[n++] = name;
    }
    closedir(dir);
    if (n)
        qsort(*out, n, sizeof(**out), compare_names);
    return n;
}

static void format_name(const struct name *n, char out[GENERATION_NAME_MAX])
{
    snprintf(out, GENERATION_NAME_MAX, n->copy ? "%" PRIu64 ".%u" : "%" PRIu64, n->number, n->copy);
}

uint64_t generation_last(const char *state)
{
    struct name *names;
    size_t n = list_names(state, &names);
    uint64_t last = n ? names[n - 1].number : 0;
    free(names);
    return last;
}

static struct name next_of(const char *state, uint64_t number)
{
    struct name *names, next = {.number = number};
    size_t n = list_names(state, &names);
    for (size_t i = 0; i < n; i++)
        if (names[i].number == number)
            next.copy = names[i].copy + 1;
    free(names);
    return next;
}

int generation_find(const char *state, uint64_t number, char name[GENERATION_NAME_MAX])
{
    struct name next = next_of(state, number);
    if (!next.copy)
        return -ENOENT;
    next.copy--;
    format_name(&next, name);
    return 0;
}

void generation_each(const char *state, generation_visit *visit, void *arg)
{
    struct name *names;
    size_t n = list_names(state, &names);
    for (size_t i = 0; i < n; i++) {
        char name[GENERATION_NAME_MAX];
        if (i + 1 < n && names[i + 1].number == names[i].number)
            continue;
        format_name(&names[i], name);
        visit(arg, name, names[i].number);
    }
    free(names);
}

/* ---- directories ---- */

static int open_directory(int at, const char *path)
{
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int sync_and_close(int fd, int rc)
{
    if (!rc && fsync(fd))
        rc = -errno;
    close(fd);
    return rc;
}

/* STATE/generations, made if need be. */
static int open_all(const char *state)
{
    int top = open_directory(AT_FDCWD, state), rc = 0;
    if (top < 0)
        return top;
    int fd = open_directory(top, "generations");
    if (fd == -ENOENT) {
        rc = mkdirat(top, "generations", 0700) || fsync(top) ? -errno : 0;
        fd = rc ? rc : open_directory(top, "generations");
    }
    close(top);
    return fd;
}

/* A flat directory and its files. */
static void remove_directory(int at, const char *name)
{
    int fd = open_directory(at, name);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            unlinkat(fd, e->d_name, 0);
    closedir(dir);
    unlinkat(at, name, AT_REMOVEDIR);
}

static int write_one(int dir, const char *name, const char *s, size_t len)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int rc = text_write_fd(fd, s, len);
    return sync_and_close(fd, rc);
}

static int write_new(int all, const struct generation_file *file, unsigned n)
{
    struct text sums = {0};
    remove_directory(all, NEW);
    if (mkdirat(all, NEW, 0700))
        return -errno;
    int dir = open_directory(all, NEW), rc = 0;
    if (dir < 0)
        return dir;
    for (unsigned i = 0; i < n && !rc; i++) {
        rc = write_one(dir, file[i].name, file[i].text, file[i].len);
        text_printf(&sums, "%016" PRIx64 " %zu %s\n", text_hash(file[i].text, file[i].len), file[i].len, file[i].name);
    }
    if (!rc)
        rc = write_one(dir, SUMS, text_str(&sums), sums.len);
    text_free(&sums);
    return sync_and_close(dir, rc);
}

int generation_write(const char *state, uint64_t number, const struct generation_file *file, unsigned n,
                     char name[GENERATION_NAME_MAX])
{
    struct name next = next_of(state, number);
    int all = open_all(state);
    if (all < 0)
        return all;
    format_name(&next, name);
    int rc = write_new(all, file, n);
    if (!rc && renameat(all, NEW, all, name))
        rc = -errno;
    if (rc)
        remove_directory(all, NEW);
    return sync_and_close(all, rc);
}

int generation_add(const char *state, const char *name, const char *file, const struct text *text)
{
    char path[PATH_MAX + 128];
    snprintf(path, sizeof(path), "%s/generations/%s/%s", state, name, file);
    return text_write_file(path, text_str(text), text->len);
}

/* ---- reading ---- */

int generation_read_fact(const char *state, const char *name, const char *file, size_t max, struct text *out)
{
    char path[PATH_MAX + 128];
    snprintf(path, sizeof(path), "%s/generations/%s/%s", state, name, file);
    return text_read_file(out, path, max);
}

/* The line of a file in the sums. */
static bool find_sum(const struct text *sums, const char *file, uint64_t *digest, size_t *len)
{
    char name[128];
    for (const char *p = text_str(sums); *p; p += strcspn(p, "\n"), p += *p == '\n')
        if (sscanf(p, "%" SCNx64 " %zu %127s", digest, len, name) == 3 && !strcmp(name, file))
            return true;
    return false;
}

int generation_read(const char *state, const char *name, const char *file, size_t max, struct text *out,
                    struct text *why)
{
    struct text sums = {0};
    uint64_t digest = 0;
    size_t len = 0;
    int rc = generation_read_fact(state, name, SUMS, SUMS_MAX, &sums);
    if (rc)
        text_printf(why, "generations/%s/" SUMS ": %s", name, text_read_error(rc));
    else if (!find_sum(&sums, file, &digest, &len))
        rc = -ENOENT;
    text_free(&sums);
    if (rc)
        return rc == -ENOENT && !why->len ? rc : -EUCLEAN;
    rc = generation_read_fact(state, name, file, max, out);
    if (rc)
        text_printf(why, "generations/%s/%s: %s", name, file, text_read_error(rc));
    else if (out->len != len)
        text_printf(why, "generations/%s/%s has %zu bytes, and %zu were written", name, file, out->len, len);
    else if (text_hash(text_str(out), out->len) != digest)
        text_printf(why, "generations/%s/%s is not what was written", name, file);
    return why->len ? -EUCLEAN : 0;
}

/* ---- the current one ---- */

int generation_set_current(const char *state, const char *name)
{
    char to[GENERATION_NAME_MAX + 32];
    int top = open_directory(AT_FDCWD, state), rc = 0;
    if (top < 0)
        return top;
    snprintf(to, sizeof(to), "generations/%s", name ? name : "");
    unlinkat(top, ".current", 0);
    if (!name)
        rc = unlinkat(top, "current", 0) && errno != ENOENT ? -errno : 0;
    else if (symlinkat(to, top, ".current") || renameat(top, ".current", top, "current"))
        rc = -errno;
    return sync_and_close(top, rc);
}

int generation_current(const char *state, char name[GENERATION_NAME_MAX], struct text *why)
{
    static const char below[] = "generations/";
    char path[PATH_MAX + 32], to[PATH_MAX];
    struct name n;
    snprintf(path, sizeof(path), "%s/current", state);
    ssize_t len = readlink(path, to, sizeof(to) - 1);
    if (len < 0 && errno == ENOENT)
        return -ENOENT;
    to[len < 0 ? 0 : len] = 0;
    if (len < 0)
        text_printf(why, "%s: %s", path, errno == EINVAL ? "not a symbolic link" : strerror(errno));
    else if (strncmp(to, below, sizeof(below) - 1) || !parse_name(to + sizeof(below) - 1, &n))
        text_printf(why,
                    "%s leads to '%.100s'; allowed: "
                    "generations/N",
                    path, to);
    if (why->len)
        return -EUCLEAN;
    format_name(&n, name);
    return 0;
}

/* ---- the old ones ---- */

static bool is_whole(const char *state, const char *name)
{
    struct text sums = {0};
    bool whole = !generation_read_fact(state, name, SUMS, SUMS_MAX, &sums);
    for (const char *p = text_str(&sums); whole && *p; p += strcspn(p, "\n"), p += *p == '\n') {
        char file[128] = "";
        struct text text = {0}, why = {0};
        whole = sscanf(p, "%*x %*u %127s", file) == 1 && !generation_read(state, name, file, SIZE_MAX / 2, &text, &why);
        text_free(&text);
        text_free(&why);
    }
    text_free(&sums);
    return whole;
}

void generation_prune(const char *state)
{
    char current[GENERATION_NAME_MAX] = "", name[GENERATION_NAME_MAX];
    struct name *names;
    struct text why = {0};
    generation_current(state, current, &why);
    text_free(&why);
    size_t n = list_names(state, &names);
    int all = n > GENERATIONS_KEPT ? open_all(state) : -1;
    for (size_t i = 0; all >= 0 && i + GENERATIONS_KEPT < n; i++) {
        format_name(&names[i], name);
        if (names[i].number && strcmp(name, current) && is_whole(state, name))
            remove_directory(all, name);
    }
    if (all >= 0)
        close(all);
    free(names);
}
