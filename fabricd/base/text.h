/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text that grows, and the list of errors in a file.
 *
 * A struct text owns its bytes; zero-initialised is empty. Out of memory ends the process: all growth in the daemon has
 * a bound, checked before.
 */
#ifndef FABRICD_TEXT_H
#define FABRICD_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *s; /* zero-terminated, or NULL when nothing was ever put */
    size_t len, cap;
};

void text_put(struct text *t, const char *s, size_t len);
void text_printf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_vprintf(struct text *t, const char *fmt, va_list ap);
void text_cut(struct text *t, size_t len); /* to at most its first len bytes */
void text_free(struct text *t);
static inline const char *text_str(const struct text *t)
{
    return t->s ? t->s : "";
}

/* Append s as a YAML scalar: plain if it can be, else in double quotes. */
void text_yaml_string(struct text *t, const char *s);
/* Append len bytes; control characters but the end of a line become visible (\x1b): a terminal does not obey them. */
void text_put_visible(struct text *t, const char *s, size_t len);
/* Append len bytes as a string of JSON; control characters go as escapes. */
void text_json_string(struct text *t, const char *s, size_t len);

/*
 * Reads the whole file, at most max bytes. 0, or a negative errno: -EFBIG: longer; -EMEDIUMTYPE: not a regular file,
 * where reading could wait for ever. text_read_fd reads any descriptor to its end. text_read_error explains such an
 * errno for a file.
 */
/* The name for a damaged file of state that is put aside: PATH.corrupt-TIME, which does not exist yet. */
void text_corrupt_name(const char *path, char *out, size_t size);
int text_read_file(struct text *t, const char *path, size_t max);
int text_read_fd(struct text *t, int fd, size_t max);
const char *text_read_error(int rc);

/*
 * Replaces the file as a whole or not at all: a temporary file in the same directory is written, synced and renamed,
 * and the directory synced. The mode and owner of an existing file are kept. 0 or a negative errno; after an error of
 * the directory's sync the new file has taken the place of the old file, and may be lost with the power.
 */
int text_write_fd(int fd, const char *s, size_t len); /* all bytes to a descriptor */
int text_write_file(const char *path, const char *s, size_t len);
#define TEXT_UNFINISHED ".tmp-" /* and six letters or digits end the name of an incomplete file */

/* True for a file left incomplete by a killed process. */
bool text_is_unfinished(const char *name);
void text_remove_unfinished(const char *path);

/* FNV-1a of 64 bits: tells texts apart, and is no protection against forgery. */
uint64_t text_hash(const char *s, size_t len);

/* ---- what is wrong with a file ---- */
struct place {
    unsigned line, col; /* from 1; 0: the file as a whole */
};

#define DIAG_MAX 50 /* errors told; the rest are only counted */

struct diag {
    const char *file; /* its name in messages */
    unsigned errors, warnings;
    struct text out; /* lines "FILE:LINE:COL: error: ..." */
};

void diag_error(struct diag *d, struct place at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void diag_warn(struct diag *d, struct place at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Is the file's content UTF-8 without zero bytes and control characters but tabs and line ends? Else one error. */
bool diag_is_text(struct diag *d, const char *s, size_t len);

/* Of the names (NULL-terminated), the nearest to s, or NULL if none is near. */
const char *nearest_name(const char *s, const char *const *names);

#endif
