/* SPDX-License-Identifier: BSD-3-Clause */
/* See hosts.h. */
#include "fabricd/policy/hosts.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS       "0123456789"
#define DIGITS_MOST  9
#define BRACKETS_MAX 8 /* of a name: racks, nodes */

/* ---- ranges ---- */

struct range {
    unsigned long first, last;
    size_t width; /* digits at least */
};

/* Moves *p behind a range "7" or "001-128" and a comma behind it. */
static bool next_range(const char **p, struct range *r)
{
    const char *s = *p;
    r->width = strspn(s, DIGITS);
    if (!r->width || r->width > DIGITS_MOST)
        return false;
    r->first = r->last = strtoul(s, NULL, 10);
    s += r->width;
    if (*s == '-') {
        size_t n = strspn(++s, DIGITS);
        if (!n || n > DIGITS_MOST)
            return false;
        r->last = strtoul(s, NULL, 10);
        s += n;
    }
    if (*s == ',' && s[1] == ']')
        return false;
    *p = s + (*s == ',');
    return r->last >= r->first && (*s == ',' || *s == ']');
}

/* Numbers, commas and dashes: not the shell's set of characters. at is behind the bracket. */
static bool are_ranges(const char *at)
{
    size_t n = strspn(at, DIGITS "-,");
    if (!n || at[n] != ']')
        return false;
    if (memchr(at, ',', n))
        return true;
    const char *dash = memchr(at, '-', n);
    return dash && (dash > at + 1 || at + n > dash + 2);
}

/* The first bracket with ranges, or NULL. */
static const char *find_ranges(const char *pattern)
{
    const char *b = strchr(pattern, '[');
    while (b && !are_ranges(b + 1))
        b = strchr(b + 1, '[');
    return b;
}

static size_t digits_of(unsigned long n, size_t least)
{
    size_t digits = 1;
    for (; n >= 10; n /= 10)
        digits++;
    return digits > least ? digits : least;
}

static bool ranges_have(const char *ranges, const char *number, size_t digits)
{
    char copy[DIGITS_MOST + 1];
    struct range r;
    bool have = false;
    snprintf(copy, sizeof(copy), "%.*s", (int)digits, number);
    unsigned long n = strtoul(copy, NULL, 10);
    while (!have && *ranges != ']' && next_range(&ranges, &r))
        have = n >= r.first && n <= r.last && digits == digits_of(n, r.width);
    return have;
}

/* ---- patterns ---- */

bool hosts_match(const char *pattern, const char *host)
{
    const char *b = find_ranges(pattern);
    char before[HOST_MAX], start[HOST_MAX];
    if (!b)
        return !fnmatch(pattern, host, 0);
    snprintf(before, sizeof(before), "%.*s", (int)(b - pattern), pattern);
    const char *rest = strchr(b, ']') + 1;
    for (size_t at = 0; host[at] && at < sizeof(start) - 1; at++) {
        size_t digits = strspn(host + at, DIGITS);
        snprintf(start, sizeof(start), "%.*s", (int)at, host);
        if (!digits || fnmatch(before, start, 0))
            continue;
        for (size_t n = 1; n <= digits && n <= DIGITS_MOST; n++)
            if (ranges_have(b + 1, host + at, n) && hosts_match(rest, host + at + n))
                return true;
    }
    return false;
}

bool hosts_good(const char *pattern)
{
    struct range r;
    for (const char *b = find_ranges(pattern); b; b = find_ranges(b + 1))
        for (const char *p = b + 1; *p != ']';)
            if (!next_range(&p, &r))
                return false;
    return true;
}

/* ---- lists ---- */

struct list {
    struct text *out;
    unsigned n, most;
};

static bool put_host(struct list *l, const char *name, size_t len)
{
    if (!len || len >= HOST_MAX || l->n == l->most)
        return false;
    l->n++;
    text_put(l->out, " ", 1);
    text_put(l->out, name, len);
    return true;
}

/* The names of a word, of which the first len characters of name are decided. brackets bounds the recursion. */
static bool expand_word(struct list *l, char name[HOST_MAX], size_t len, const char *word, size_t rest,
                        unsigned brackets)
{
    const char *b = memchr(word, '[', rest), *end = b ? memchr(b, ']', rest - (size_t)(b - word)) : NULL;
    size_t plain = b ? (size_t)(b - word) : rest;
    struct range r;
    if (len + plain >= HOST_MAX || (b && (!end || b + 1 == end)) || !brackets || memchr(word, ']', plain))
        return false;
    memcpy(name + len, word, plain);
    if (!b)
        return put_host(l, name, len + plain);
    for (const char *p = b + 1; p < end;) {
        if (!next_range(&p, &r))
            return false;
        for (unsigned long n = r.first; n <= r.last; n++) {
            char number[HOST_MAX];
            size_t digits = (size_t)snprintf(number, sizeof(number), "%0*lu", (int)r.width, n);
            if (len + plain + digits >= HOST_MAX)
                return false;
            memcpy(name + len + plain, number, digits);
            if (!expand_word(l, name, len + plain + digits, end + 1, rest - (size_t)(end + 1 - word), brackets - 1))
                return false;
        }
    }
    return true;
}

bool hosts_expand(const char *list, unsigned most, struct text *out)
{
    struct list l = {.out = out, .most = most};
    char name[HOST_MAX];
    for (const char *p = list;; p++) {
        const char *word = p;
        for (bool inside = false; *p && (inside || *p != ','); p++)
            inside = *p == '[' || (inside && *p != ']');
        if (!expand_word(&l, name, 0, word, (size_t)(p - word), BRACKETS_MAX + 1))
            return false;
        if (!*p)
            return true;
    }
}

/* ---- keys of hosts ---- */

static int compare_host_keys(const void *a, const void *b)
{
    const struct host_key *x = a, *y = b;
    return x->pkey != y->pkey ? (x->pkey < y->pkey ? -1 : 1) : strcmp(x->host, y->host);
}

void host_keys_add(struct host_keys *k, unsigned pkey, const char *host, size_t len)
{
    if (k->n == k->cap) {
        k->cap = k->cap ? 2 * k->cap : 64;
        k->key = realloc(k->key, k->cap * sizeof(*k->key));
        if (!k->key)
            abort();
    }
    struct host_key *to = &k->key[k->n++];
    *to = (struct host_key){.pkey = (uint16_t)pkey};
    snprintf(to->host, sizeof(to->host), "%.*s", (int)len, host);
}

void host_keys_sort(struct host_keys *k)
{
    size_t kept = 0;
    if (k->n)
        qsort(k->key, k->n, sizeof(*k->key), compare_host_keys);
    for (size_t i = 0; i < k->n; i++)
        if (!kept || compare_host_keys(&k->key[kept - 1], &k->key[i]))
            k->key[kept++] = k->key[i];
    k->n = kept;
}

bool host_keys_have(const struct host_keys *k, unsigned pkey, const char *host)
{
    struct host_key want = {.pkey = (uint16_t)pkey};
    snprintf(want.host, sizeof(want.host), "%s", host);
    return k && k->n && bsearch(&want, k->key, k->n, sizeof(*k->key), compare_host_keys);
}

void host_keys_copy(struct host_keys *to, const struct host_keys *from)
{
    *to = (struct host_keys){.n = from->n, .cap = from->n};
    if (!from->n)
        return;
    to->key = malloc(from->n * sizeof(*from->key));
    if (!to->key)
        abort();
    memcpy(to->key, from->key, from->n * sizeof(*from->key));
}

void host_keys_free(struct host_keys *k)
{
    free(k->key);
    *k = (struct host_keys){0};
}
