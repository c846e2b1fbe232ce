/* SPDX-License-Identifier: BSD-3-Clause */
/* Growing text, whole files, and diagnostics with a place. */
#include "fabricd/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void text_reserve(struct text *t, size_t more)
{
    size_t need = t->len + more + 1;
    if (need <= t->cap)
        return;
    size_t cap = t->cap ? t->cap * 2 : 256;
    while (cap < need)
        cap *= 2;
    char *s = realloc(t->s, cap);
    if (!s)
        abort();
    t->s = s;
    t->cap = cap;
}

void text_put(struct text *t, const char *s, size_t len)
{
    text_reserve(t, len);
    if (len)
        memcpy(t->s + t->len, s, len);
    t->len += len;
    t->s[t->len] = 0;
}

void text_vprintf(struct text *t, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n > 0) {
        text_reserve(t, (size_t)n);
        vsnprintf(t->s + t->len, (size_t)n + 1, fmt, again);
        t->len += (size_t)n;
    }
    va_end(again);
}

void text_printf(struct text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    text_vprintf(t, fmt, ap);
    va_end(ap);
}

void text_cut(struct text *t, size_t len)
{
    if (len < t->len)
        t->s[t->len = len] = 0;
}

void text_free(struct text *t)
{
    free(t->s);
    *t = (struct text){0};
}

static bool plain_scalar(const char *s)
{
    static const char *const words[] = {"true", "false", "null", "yes", "no", "on", "off", "~", NULL};
    if (!*s || strspn(s, "0123456789+-.eExX_:") == strlen(s))
        return false;
    for (int i = 0; words[i]; i++)
        if (!strcasecmp(s, words[i]))
            return false;
    for (const char *p = s; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || strchr("_./+", *p) ||
              (p > s && (*p == '@' || (strchr("- ", *p) && p[1])))))
            return false;
    return true;
}

/* Ends of a line in YAML, which reads JSON, beside ASCII's. 0: none begins here, else its length. */
static size_t line_end(const char *s, size_t len, unsigned *c)
{
    static const struct {
        const char *utf8;
        unsigned c;
    } ends[] = {{"\xc2\x85", 0x85}, {"\xe2\x80\xa8", 0x2028}, {"\xe2\x80\xa9", 0x2029}};
    for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        size_t n = strlen(ends[i].utf8);
        if (len >= n && !memcmp(s, ends[i].utf8, n)) {
            *c = ends[i].c;
            return n;
        }
    }
    return 0;
}

/* Length of the control character at s, with at least len bytes: 0 if none is there. Includes U+0080 to U+009F. */
static size_t control_len(const char *s, size_t len)
{
    unsigned char c = (unsigned char)s[0];
    if (c < 0x20 || c == 0x7f)
        return 1;
    return c == 0xc2 && len > 1 && (unsigned char)s[1] >= 0x80 && (unsigned char)s[1] < 0xa0 ? 2 : 0;
}

void text_put_visible(struct text *t, const char *s, size_t len)
{
    while (len) {
        size_t n = *s == '\n' ? 0 : control_len(s, len);
        if (n == 1)
            text_printf(t, "\\x%02x", (unsigned char)*s);
        else if (n == 2)
            text_printf(t, "\\u%04x", (unsigned char)s[1]);
        else
            text_put(t, s, n = 1);
        s += n;
        len -= n;
    }
}

void text_json_string(struct text *t, const char *s, size_t len)
{
    text_put(t, "\"", 1);
    for (; len--; s++) {
        unsigned c = (unsigned char)*s;
        size_t more = line_end(s, len + 1, &c);
        if (more || c < 0x20 || c == 0x7f)
            text_printf(t, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            text_printf(t, "\\%c", c);
        else
            text_put(t, s, 1);
        s += more ? more - 1 : 0;
        len -= more ? more - 1 : 0;
    }
    text_put(t, "\"", 1);
}

void text_yaml_string(struct text *t, const char *s)
{
    if (plain_scalar(s)) {
        text_put(t, s, strlen(s));
        return;
    }
    text_put(t, "\"", 1);
    for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
        if (*p == '"' || *p == '\\')
            text_printf(t, "\\%c", *p);
        else if (*p < 0x20 || *p >= 0x7f)
            text_printf(t, "\\x%02x", *p);
        else
            text_put(t, (const char *)p, 1);
    }
    text_put(t, "\"", 1);
}

int text_read_fd(struct text *t, int fd, size_t max)
{
    char buf[8192];
    size_t got = 0;
    int rc = 0;
    for (;;) {
        ssize_t n = read(fd, buf, sizeof(buf));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc = -errno;
        if (n <= 0)
            break;
        got += (size_t)n;
        if (got > max) {
            rc = -EFBIG;
            break;
        }
        text_put(t, buf, (size_t)n);
    }
    return rc;
}

/* Opening a FIFO waits for a writer and reading a device may never end: neither is tried. */
void text_corrupt_name(const char *path, char *out, size_t size)
{
    char when[32] = "";
    time_t now = time(NULL);
    struct tm tm;
    if (gmtime_r(&now, &tm))
        strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
    snprintf(out, size, "%s.corrupt-%s", path, when);
    for (unsigned i = 1; i < 100 && !access(out, F_OK); i++)
        snprintf(out, size, "%s.corrupt-%s.%u", path, when, i);
}

int text_read_file(struct text *t, const char *path, size_t max)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == ENXIO ? -EMEDIUMTYPE : -errno; /* a socket cannot be opened at all */
    struct stat st;
    int rc = 0;
    if (fstat(fd, &st))
        rc = -errno;
    else if (S_ISDIR(st.st_mode))
        rc = -EISDIR;
    else if (!S_ISREG(st.st_mode))
        rc = -EMEDIUMTYPE;
    else
        rc = text_read_fd(t, fd, max);
    close(fd);
    return rc;
}

const char *text_read_error(int rc)
{
    switch (rc) {
    case -EMEDIUMTYPE:
        return "not a regular file";
    case -EFBIG:
        return "too long";
    default:
        return strerror(-rc);
    }
}

int text_write_fd(int fd, const char *s, size_t len)
{
    while (len) {
        ssize_t n = write(fd, s, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        s += n;
        len -= (size_t)n;
    }
    return 0;
}

uint64_t text_hash(const char *s, size_t len)
{
    uint64_t h = 0xcbf29ce484222325;
    while (len--)
        h = (h ^ (unsigned char)*s++) * 0x100000001b3;
    return h;
}

/* A name that is not on disk is lost with the power: the error counts. */
static int sync_directory_of(const char *path)
{
    char *dir = strdup(path);
    if (!dir)
        abort();
    char *slash = strrchr(dir, '/');
    if (slash)
        slash[slash == dir ? 1 : 0] = 0;
    int fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) ? -errno : 0;
    if (fd >= 0)
        close(fd);
    free(dir);
    return rc;
}

int text_write_file(const char *path, const char *s, size_t len)
{
    struct text tmp = {0};
    text_printf(&tmp, "%s" TEXT_UNFINISHED "XXXXXX", path);
    int fd = mkostemp(tmp.s, O_CLOEXEC);
    if (fd < 0) {
        int rc = -errno;
        text_free(&tmp);
        return rc;
    }
    struct stat st;
    bool known = !stat(path, &st);
    int rc = text_write_fd(fd, s, len);
    if (!rc && fchmod(fd, known ? st.st_mode & 07777 : 0644))
        rc = -errno;
    /* Only a privileged user can give a file away; otherwise the new file simply belongs to the writer. */
    if (!rc && known && fchown(fd, st.st_uid, st.st_gid) && errno != EPERM)
        rc = -errno;
    if (!rc && fsync(fd))
        rc = -errno;
    close(fd);
    if (!rc && rename(tmp.s, path))
        rc = -errno;
    if (rc)
        unlink(tmp.s);
    else
        rc = sync_directory_of(path);
    text_free(&tmp);
    return rc;
}

bool text_is_unfinished(const char *name)
{
    size_t len = strlen(name), end = strlen(TEXT_UNFINISHED) + 6;
    return len > end && !strncmp(name + len - end, TEXT_UNFINISHED, end - 6);
}

void text_remove_unfinished(const char *path)
{
    char *dir_name = strdup(path);
    if (!dir_name)
        abort();
    char *slash = strrchr(dir_name, '/'), *base = slash ? slash + 1 : dir_name;
    size_t len = strlen(base);
    if (slash)
        *slash = 0;
    DIR *dir = opendir(!slash ? "." : slash == dir_name ? "/" : dir_name);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (text_is_unfinished(e->d_name) && strlen(e->d_name) == len + strlen(TEXT_UNFINISHED) + 6 &&
            !strncmp(e->d_name, base, len))
            unlinkat(dirfd(dir), e->d_name, 0);
    if (dir)
        closedir(dir);
    free(dir_name);
}

/* The same line once: the target of an alias is read at each use, and is one mistake. */
static void diag_add(struct diag *d, struct place at, const char *kind, const char *fmt, va_list ap)
{
    struct text line = {0};
    if (at.line)
        text_printf(&line, "%s:%u:%u: %s: ", d->file, at.line, at.col, kind);
    else
        text_printf(&line, "%s: %s: ", d->file, kind);
    text_vprintf(&line, fmt, ap);
    text_put(&line, "\n", 1);
    struct text shown = {0};
    text_put_visible(&shown, line.s, line.len);
    const char *told = strstr(text_str(&d->out), shown.s);
    if (!told || (told > d->out.s && told[-1] != '\n'))
        text_put(&d->out, shown.s, shown.len);
    text_free(&line);
    text_free(&shown);
}

void diag_error(struct diag *d, struct place at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (d->errors++ < DIAG_MAX)
        diag_add(d, at, "error", fmt, ap);
    va_end(ap);
}

void diag_warn(struct diag *d, struct place at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (d->warnings++ < DIAG_MAX)
        diag_add(d, at, "warning", fmt, ap);
    va_end(ap);
}

/* Bytes of the UTF-8 character at s; 0: none is there (RFC 3629: no surrogates, no longer form than needed). */
static size_t utf8_len(const unsigned char *s, size_t len)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xf5 ? 0 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    if (!n || n > len)
        return 0;
    uint32_t c = s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

/* Of a control character at s: tabs and ends of lines, U+0085 among them, belong to text. */
static bool is_text_control(const char *s)
{
    return *s == '\t' || *s == '\n' || *s == '\r' || (s[0] == '\xc2' && s[1] == '\x85');
}

bool diag_is_text(struct diag *d, const char *s, size_t len)
{
    struct place at = {1, 1};
    bool utf16 = len >= 2 && (!memcmp(s, "\xff\xfe", 2) || !memcmp(s, "\xfe\xff", 2));
    if (utf16) {
        diag_error(d, at, "the file is UTF-16; allowed: UTF-8 (iconv -f UTF-16 -t UTF-8 makes it so)");
        return false;
    }
    for (size_t i = 0, n; i < len; i += n) {
        n = utf8_len((const unsigned char *)s + i, len - i);
        size_t control = n ? control_len(s + i, len - i) : 0;
        if (!n)
            diag_error(d, at, "the byte 0x%02x is no part of a UTF-8 character; allowed: UTF-8 text", (uint8_t)s[i]);
        else if (!s[i])
            diag_error(d, at, "a zero byte; allowed: UTF-8 text");
        else if (control && !is_text_control(s + i))
            diag_error(d, at, "a control character (0x%02x); allowed: text, as \"\\x%02x\" in quotes where it must be",
                       (uint8_t)s[i + control - 1], (uint8_t)s[i + control - 1]);
        if (!n || !s[i] || (control && !is_text_control(s + i)))
            return false;
        at.line += s[i] == '\n';
        at.col = s[i] == '\n' ? 1 : at.col + 1;
    }
    return true;
}

/* Levenshtein distance of short names; longer names are never near. */
static unsigned distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n > 40 || m > 40)
        return UINT32_MAX;
    unsigned row[41];
    for (size_t j = 0; j <= m; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned above = row[j];
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);
            if (above + 1 < best)
                best = above + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = above;
            row[j] = best;
        }
    }
    return row[m];
}

/* Near is less than three letters and less than all of either: a letter in place of another means nothing. */
const char *nearest_name(const char *s, const char *const *names)
{
    const char *best = NULL;
    unsigned best_distance = 3;
    for (; *names; names++) {
        unsigned d = distance(s, *names);
        if (d < best_distance && d < strlen(*names) && d < strlen(s)) {
            best = *names;
            best_distance = d;
        }
    }
    return best;
}
