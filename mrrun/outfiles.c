/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/outfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *outfiles_check(const char *pattern)
{
    for (const char *p = pattern; (p = strchr(p, '%')); p += 2)
        if (!p[1] || !strchr("rhpg%", p[1]))
            return "a % is followed by none of r, h, p, g and %";
    return *pattern ? NULL : "the pattern is empty";
}

/* The pattern has passed outfiles_check(). Malloc'd; NULL: no memory. */
static char *expand_pattern(const char *pattern, const struct outfile_rank *rank)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return NULL;
    for (const char *p = pattern; *p; p++) {
        if (*p != '%')
            fputc(*p, out);
        else if (*++p == 'r')
            fprintf(out, "%d", rank->rank);
        else if (*p == 'h')
            fputs(rank->host, out);
        else if (*p == 'p')
            fprintf(out, "%d", rank->host_number);
        else
            fputc(*p == 'g' ? '0' : '%', out);
    }
    return fclose(out) ? NULL : text;
}

/* Takes the name over. */
static struct sink *open_outfile(struct outfiles *f, char *name, char *why, size_t cap)
{
    struct outfile **grown = realloc(f->file, (size_t)(f->count + 1) * sizeof(struct outfile *));
    struct outfile *file = calloc(1, sizeof(*file));
    int fd = grown && file ? open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;

    f->file = grown ? grown : f->file;
    if (fd < 0) {
        snprintf(why, cap, "cannot write ranks' output to '%s': %s", name, strerror(grown && file ? errno : ENOMEM));
        free(file);
        free(name);
        return NULL;
    }
    file->name = name;
    sink_init(&file->sink, fd);
    f->file[f->count++] = file;
    return &file->sink;
}

/* Names with the rank are all different, and not compared. */
struct sink *outfiles_sink(struct outfiles *f, const char *pattern, const struct outfile_rank *rank, char *why,
                           size_t cap)
{
    char *name = expand_pattern(pattern, rank);

    if (!name) {
        snprintf(why, cap, "out of memory");
        return NULL;
    }
    for (int i = 0; i < f->count && !strstr(pattern, "%r"); i++) {
        if (strcmp(f->file[i]->name, name))
            continue;
        free(name);
        return &f->file[i]->sink;
    }
    return open_outfile(f, name, why, cap);
}

void outfiles_close(struct outfiles *f)
{
    for (int i = 0; i < f->count; i++) {
        close(f->file[i]->sink.fd);
        sink_clear(&f->file[i]->sink);
        free(f->file[i]->name);
        free(f->file[i]);
    }
    free(f->file);
    *f = (struct outfiles){0};
}
