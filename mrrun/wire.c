/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames and bodies, to bytes and back. */
#include "mrrun/wire.h"

#include <stdlib.h>
#include <string.h>

enum { STRINGS_MAX = 262144 };

static void put_le(unsigned char *out, uint32_t n, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (unsigned char)(n >> 8 * i);
}

static uint32_t get_le(const unsigned char *in, int bytes)
{
    uint32_t n = 0;

    for (int i = 0; i < bytes; i++)
        n |= (uint32_t)in[i] << 8 * i;
    return n;
}

/* ---- frames ---- */

void wire_header(const struct wire_frame *f, unsigned char out[WIRE_HEADER])
{
    put_le(out, (uint32_t)f->len, 4);
    put_le(out + 4, f->host, 2);
    out[6] = (unsigned char)f->kind;
    out[7] = 0;
    put_le(out + 8, f->arg, 4);
}

ssize_t wire_decode(const void *bytes, size_t len, struct wire_frame *f, size_t *need)
{
    const unsigned char *at = bytes;
    size_t body;

    *need = WIRE_HEADER;
    if (len < WIRE_HEADER)
        return 0;
    body = get_le(at, 4);
    *f = (struct wire_frame){.kind = at[6],
                             .host = get_le(at + 4, 2),
                             .arg = get_le(at + 8, 4),
                             .body = (const char *)at + WIRE_HEADER,
                             .len = body};
    if (!at[6] || at[6] >= WIRE_KINDS || at[7] || body > WIRE_BODY_MAX ||
        (at[6] == WIRE_DATA && body > WIRE_DATA_MAX) || (f->host >= WIRE_HOSTS_MAX && f->host != WIRE_ALL))
        return -1;
    *need = WIRE_HEADER + body;
    return len < *need ? 0 : (ssize_t)*need;
}

/* ---- bodies ---- */

void wire_put(struct wire_text *t, const void *bytes, size_t len)
{
    if (t->len + len > t->room) {
        size_t room = t->room ? t->room : 256;

        while (room < t->len + len)
            room *= 2;
        t->bytes = realloc(t->bytes, room);
        if (!t->bytes)
            abort();
        t->room = room;
    }
    if (len)
        memcpy(t->bytes + t->len, bytes, len);
    t->len += len;
}

void wire_put_number(struct wire_text *t, uint32_t number)
{
    unsigned char bytes[4];

    put_le(bytes, number, 4);
    wire_put(t, bytes, 4);
}

void wire_put_string(struct wire_text *t, const char *text)
{
    wire_put(t, text, strlen(text) + 1);
}

void wire_put_strings(struct wire_text *t, char *const *list, size_t count)
{
    wire_put_number(t, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        wire_put_string(t, list[i]);
}

struct wire_reader wire_read(const struct wire_frame *f)
{
    return (struct wire_reader){.at = f->body, .left = f->len};
}

static bool take(struct wire_reader *r, size_t len)
{
    r->bad |= len > r->left;
    if (r->bad)
        return false;
    r->at += len;
    r->left -= len;
    return true;
}

uint32_t wire_get_number(struct wire_reader *r)
{
    const char *at = r->at;

    return take(r, 4) ? get_le((const unsigned char *)at, 4) : 0;
}

const char *wire_get_string(struct wire_reader *r)
{
    const char *at = r->at, *end = r->left && !r->bad ? memchr(at, '\0', r->left) : NULL;

    r->bad |= !end;
    return end && take(r, (size_t)(end - at) + 1) ? at : "";
}

char **wire_get_strings(struct wire_reader *r, size_t most, size_t *count)
{
    size_t n = wire_get_number(r);
    char **list;

    *count = 0;
    r->bad |= n > most || n > r->left;
    list = r->bad ? NULL : calloc(n + 1, sizeof(*list));
    r->bad |= !list;
    for (size_t i = 0; i < n && !r->bad; i++)
        list[i] = (char *)wire_get_string(r);
    if (r->bad) {
        free(list);
        return NULL;
    }
    *count = n;
    return list;
}

bool wire_whole(const struct wire_reader *r)
{
    return !r->bad && !r->left;
}

static size_t length_of(char *const *list)
{
    size_t n = 0;

    while (list[n])
        n++;
    return n;
}

/* ---- contents ---- */

void wire_put_start(struct wire_text *t, const struct wire_start *s)
{
    wire_put_number(t, s->version);
    wire_put_string(t, s->secret);
    wire_put_string(t, s->scratch);
    wire_put_string(t, s->job_id);
    wire_put_string(t, s->nspace);
    wire_put_number(t, s->window);
    wire_put_strings(t, s->launcher, length_of(s->launcher));
    wire_put_string(t, s->mrrun);
    wire_put_strings(t, s->host, s->num_hosts);
    for (size_t i = 0; i < s->num_hosts; i++)
        wire_put_number(t, s->number[i]);
}

/* Duplicate hosts are not checked here: routes are by number, and the last route counts. */
static bool get_hosts(struct wire_reader *r, struct wire_start *s)
{
    s->host = wire_get_strings(r, WIRE_HOSTS_MAX, &s->num_hosts);
    s->number = s->host && s->num_hosts ? calloc(s->num_hosts, sizeof(*s->number)) : NULL;
    for (size_t i = 0; s->number && i < s->num_hosts; i++) {
        s->number[i] = wire_get_number(r);
        r->bad |= s->number[i] >= WIRE_HOSTS_MAX || !*s->host[i];
    }
    return s->number;
}

bool wire_get_start(const struct wire_frame *f, struct wire_start *s)
{
    struct wire_reader r = wire_read(f);
    size_t words;

    *s = (struct wire_start){.version = wire_get_number(&r)};
    if (f->kind != WIRE_START || r.bad)
        return false;
    if (s->version != WIRE_VERSION) { /* the rest may be anything, except for the secret, needed for the answer */
        s->secret = wire_get_string(&r);
        return strlen(s->secret) == WIRE_SECRET;
    }
    s->secret = wire_get_string(&r);
    s->scratch = wire_get_string(&r);
    s->job_id = wire_get_string(&r);
    s->nspace = wire_get_string(&r);
    s->window = wire_get_number(&r);
    s->launcher = wire_get_strings(&r, STRINGS_MAX, &words);
    s->mrrun = wire_get_string(&r);
    if (s->launcher && words && get_hosts(&r, s) && wire_whole(&r) && strlen(s->secret) == WIRE_SECRET && s->window &&
        *s->mrrun)
        return true;
    wire_clear_start(s);
    return false;
}

void wire_clear_start(struct wire_start *s)
{
    free(s->launcher);
    free(s->host);
    free(s->number);
    *s = (struct wire_start){0};
}

void wire_put_part(struct wire_text *t, const struct wire_part *p)
{
    wire_put_string(t, p->dir);
    wire_put_string(t, p->program);
    wire_put_number(t, p->mpi);
    wire_put_strings(t, p->args, length_of(p->args));
    wire_put_strings(t, p->env, length_of(p->env));
}

bool wire_get_part(const struct wire_frame *f, struct wire_part *p)
{
    struct wire_reader r = wire_read(f);
    size_t n;

    *p = (struct wire_part){.dir = wire_get_string(&r)};
    p->program = wire_get_string(&r);
    p->mpi = wire_get_number(&r);
    p->args = wire_get_strings(&r, STRINGS_MAX, &n);
    p->env = wire_get_strings(&r, STRINGS_MAX, &n);
    if (wire_whole(&r) && *p->program)
        return true;
    wire_clear_part(p);
    return false;
}

void wire_clear_part(struct wire_part *p)
{
    free(p->args);
    free(p->env);
    *p = (struct wire_part){0};
}

void wire_put_rank(struct wire_text *t, const struct wire_rank *k)
{
    wire_put_number(t, k->part);
    wire_put_number(t, k->reads);
    wire_put_strings(t, k->env, length_of(k->env));
}

bool wire_get_rank(const struct wire_frame *f, struct wire_rank *k)
{
    struct wire_reader r = wire_read(f);
    size_t n;

    *k = (struct wire_rank){.part = wire_get_number(&r)};
    k->reads = wire_get_number(&r);
    k->env = wire_get_strings(&r, STRINGS_MAX, &n);
    if (wire_whole(&r))
        return true;
    wire_clear_rank(k);
    return false;
}

void wire_clear_rank(struct wire_rank *k)
{
    free(k->env);
    *k = (struct wire_rank){0};
}

void wire_put_run(struct wire_text *t, const struct wire_run *r)
{
    wire_put_number(t, r->ranks);
    wire_put_number(t, r->pmix_port);
    wire_put_number(t, r->bind_to);
    wire_put_number(t, r->bind_units);
    wire_put_number(t, r->bind_map);
    wire_put_string(t, r->simfab);
}

bool wire_get_run(const struct wire_frame *f, struct wire_run *run)
{
    struct wire_reader r = wire_read(f);

    run->ranks = wire_get_number(&r);
    run->pmix_port = wire_get_number(&r);
    run->bind_to = wire_get_number(&r);
    run->bind_units = wire_get_number(&r);
    run->bind_map = wire_get_number(&r);
    run->simfab = wire_get_string(&r);
    return wire_whole(&r);
}
