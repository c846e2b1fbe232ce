/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/hostlist.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_MAX = 65536 };

/* A piece of text without a terminating null character. */
struct piece {
    const char *at;
    size_t len;
};

/* Where the text is from: an option, or a line of a file. */
struct origin {
    const char *option, *file;
    int line;
};

static int refuse_hosts(const struct origin *from, struct piece text, const char *fault, char *why, size_t cap)
{
    if (from->file)
        snprintf(why, cap, "%s:%d: %s in '%.*s' (wanted: HOST[:SLOTS][=DEVICE+...] [slots=N] [max_slots=N])",
                 from->file, from->line, fault, (int)text.len, text.at);
    else
        snprintf(why, cap, "option %s: %s in '%.*s'", from->option ? from->option : "", fault, (int)text.len, text.at);
    return -1;
}

static bool parse_slots(struct piece text, int *out)
{
    long n = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (!isdigit((unsigned char)text.at[i]) || n > SLOTS_MAX)
            return false;
        n = 10 * n + text.at[i] - '0';
    }
    *out = (int)n;
    return n >= 1 && n <= SLOTS_MAX;
}

/* DEVICE+DEVICE as the ranks' MRMPI_DEVICES wants it. NULL: out of memory. */
static char *copy_devices(struct piece text)
{
    char *devices = strndup(text.at, text.len);

    for (char *p = devices; p && (p = strchr(p, '+'));)
        *p = ',';
    return devices;
}

static struct mrrun_host *find_named_host(struct hostlist *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (!strcmp(list->host[i].name, name))
            return &list->host[i];
    return NULL;
}

static bool append_host(struct hostlist *list, const struct mrrun_host *host)
{
    struct mrrun_host *grown = realloc(list->host, (list->count + 1) * sizeof(*grown));

    if (!grown)
        return false;
    list->host = grown;
    grown[list->count++] = *host;
    return true;
}

static int count_or_one(int slots)
{
    return slots ? slots : 1;
}

/* Takes over the memory of the host's pointers. */
static int add_named_host(struct hostlist *list, struct mrrun_host *host, const struct origin *from, struct piece text,
                          char *why, size_t cap)
{
    struct mrrun_host *known = find_named_host(list, host->name);
    const char *fault = NULL;

    if (known && (known->devices || host->devices)) {
        fault = "a host with devices is named twice";
    } else if (known) {
        known->slots = count_or_one(known->slots) + count_or_one(host->slots);
        known->max_slots += host->max_slots;
    } else if (append_host(list, host)) {
        return 0;
    } else {
        fault = "out of memory";
    }
    free(host->name);
    free(host->devices);
    return fault ? refuse_hosts(from, text, fault, why, cap) : 0;
}

/* NAME, NAME:SLOTS, each perhaps with =DEVICE+DEVICE. */
static int parse_host(struct mrrun_host *host, struct piece word, const struct origin *from, struct piece text,
                      char *why, size_t cap)
{
    const char *equals = memchr(word.at, '=', word.len);
    struct piece name = {word.at, equals ? (size_t)(equals - word.at) : word.len};
    const char *colon = memchr(name.at, ':', name.len);

    *host = (struct mrrun_host){0};
    if (colon) {
        struct piece slots = {colon + 1, name.len - (size_t)(colon + 1 - name.at)};

        name.len = (size_t)(colon - name.at);
        if (!parse_slots(slots, &host->slots))
            return refuse_hosts(from, text, "what follows ':' is no number of slots", why, cap);
    }
    if (!name.len || (equals && equals + 1 == word.at + word.len))
        return refuse_hosts(from, text, "an empty name", why, cap);
    host->name = strndup(name.at, name.len);
    if (equals)
        host->devices = copy_devices((struct piece){equals + 1, word.len - (size_t)(equals + 1 - word.at)});
    if (host->name && (!equals || host->devices))
        return 0;
    free(host->name);
    free(host->devices);
    return refuse_hosts(from, text, "out of memory", why, cap);
}

int hostlist_add(struct hostlist *list, const char *text, const char *option, char *why, size_t cap)
{
    const struct origin from = {.option = option};
    const struct piece all = {text, strlen(text)};

    for (const char *p = text;; p++) {
        struct piece word = {p, strcspn(p, ",")};
        struct mrrun_host host;

        if (!word.len)
            return refuse_hosts(&from, all, "an empty name", why, cap);
        if (parse_host(&host, word, &from, all, why, cap) || add_named_host(list, &host, &from, all, why, cap))
            return -1;
        p += word.len;
        if (!*p)
            return 0;
    }
}

/* The next word of a line, or one of no length at its end. */
static struct piece next_word(const char **at, const char *end)
{
    struct piece word;

    while (*at < end && isspace((unsigned char)**at))
        ++*at;
    word.at = *at;
    while (*at < end && !isspace((unsigned char)**at))
        ++*at;
    word.len = (size_t)(*at - word.at);
    return word;
}

static bool starts_with(struct piece word, const char *start)
{
    return word.len >= strlen(start) && !memcmp(word.at, start, strlen(start));
}

static bool parse_setting(struct mrrun_host *host, struct piece word)
{
    static const struct {
        const char *name;
        bool max;
    } settings[] = {{"slots=", false}, {"max_slots=", true}, {"max-slots=", true}};

    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        size_t len = strlen(settings[i].name);

        if (starts_with(word, settings[i].name))
            return parse_slots((struct piece){word.at + len, word.len - len},
                               settings[i].max ? &host->max_slots : &host->slots);
    }
    return false;
}

static int read_host_line(struct hostlist *list, struct piece line, const struct origin *from, char *why, size_t cap)
{
    const char *at = line.at, *comment = memchr(line.at, '#', line.len);
    const char *end = comment ? comment : line.at + line.len;
    struct piece word = next_word(&at, end);
    struct mrrun_host host;

    if (!word.len)
        return 0;
    if (parse_host(&host, word, from, line, why, cap))
        return -1;
    while ((word = next_word(&at, end)).len) {
        if (parse_setting(&host, word))
            continue;
        free(host.name);
        free(host.devices);
        return refuse_hosts(from, word, "no setting of a host", why, cap);
    }
    return add_named_host(list, &host, from, line, why, cap);
}

int hostlist_read(struct hostlist *list, const char *text, const char *file, char *why, size_t cap)
{
    struct origin from = {.file = file};

    while (*text) {
        struct piece line = {text, strcspn(text, "\r\n")};

        from.line++;
        if (read_host_line(list, line, &from, why, cap))
            return -1;
        text += line.len;
        text += text[0] == '\r' && text[1] == '\n' ? 2 : *text ? 1 : 0;
    }
    if (list->count)
        return 0;
    snprintf(why, cap, "%s: the file names no host", file);
    return -1;
}

void hostlist_clear(struct hostlist *list)
{
    for (int i = 0; i < list->count; i++) {
        free(list->host[i].name);
        free(list->host[i].devices);
    }
    free(list->host);
    *list = (struct hostlist){0};
}
