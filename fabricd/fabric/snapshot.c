/* SPDX-License-Identifier: BSD-3-Clause */
/* See snapshot.h. Attributes' layouts are those of the InfiniBand specification, volume 1, 14.2.5. */
#include "fabricd/fabric/snapshot.h"
#include "fabricd/fabric/ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HIGH_LIMIT = 38 }; /* its byte in PortInfo */

struct block {
    unsigned from; /* the port of this host that the path begins at */
    struct smp_path path;
    uint16_t attribute;
    uint32_t modifier;
    uint8_t data[64];
};

struct snapshot {
    unsigned num_from;
    struct smp_port from[VERIFY_SUBNETS_MAX];
    bool high_limit, pkeys;
    struct block *block;
    size_t n, cap;
};

static void add_block(struct snapshot *s, const struct block *b)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 64;
        s->block = realloc(s->block, s->cap * sizeof(*s->block));
        if (!s->block)
            abort();
    }
    s->block[s->n++] = *b;
}

/* Asked ahead; take_answers reads the answer. */
static void take_block(struct snapshot *s, struct look *l, const struct node *n, uint16_t attribute, uint32_t modifier)
{
    smp_ahead(l->smp, &n->path, attribute, modifier, NULL);
    add_block(s, &(struct block){l->from, n->path, attribute, modifier, {0}});
}

/* From this block on: blocks without an answer are dropped. */
static void take_answers(struct snapshot *s, struct look *l, size_t i)
{
    size_t kept = i;
    for (; i < s->n; i++) {
        struct block *b = &s->block[i];
        if (!smp_get(l->smp, &b->path, b->attribute, b->modifier, b->data))
            s->block[kept++] = *b;
    }
    s->n = kept;
}

static void take_vlarb(struct snapshot *s, struct look *l, const struct node *n, uint32_t port, unsigned block,
                       unsigned entries)
{
    for (unsigned done = 0; done < entries && done < TABLE_ENTRIES_MAX; done += 32, block++)
        take_block(s, l, n, SMP_VLARB, block << 16 | port);
}

static void take_port(void *arg, struct look *l, const struct node *n, const struct port *p, const struct port *ports,
                      unsigned live)
{
    struct snapshot *s = arg;
    bool is_switch = n->type == TYPE_SWITCH;
    uint32_t port = is_switch ? p->num : 0;
    size_t first = s->n;
    take_vlarb(s, l, n, port, 1, p->low_cap);
    take_vlarb(s, l, n, port, 3, p->high_cap);
    take_block(s, l, n, SMP_SL2VL, port);
    /* From ports that are down, too: opensm may write the mapping of all at once (OptimizedSLtoVLMapping). */
    for (unsigned in = 1; is_switch && in <= n->num_ports; in++)
        take_block(s, l, n, SMP_SL2VL, in << 8 | port);
    if (s->high_limit)
        take_block(s, l, n, SMP_PORT_INFO, p->num);
    for (unsigned b = 0; s->pkeys && b < (is_switch ? 1 : (n->num_pkeys + 31u) / 32); b++)
        take_block(s, l, n, SMP_PKEYS, port << 16 | b);
    take_answers(s, l, first);
}

struct snapshot *snapshot_take(const struct verify_options *o)
{
    struct snapshot *s = calloc(1, sizeof(*s));
    struct verify_options look = *o;
    struct verify_result r;
    if (!s)
        abort();
    s->num_from = o->num_whole;
    memcpy(s->from, o->whole, sizeof(s->from));
    s->high_limit = o->high_limit;
    s->pkeys = o->policy && policy_has_members(o->policy);
    look.num_near = 0;
    look.visit = take_port;
    look.visit_arg = s;
    verify_fabric(&look, NULL, &r);
    verify_result_free(&r);
    return s;
}

void snapshot_free(struct snapshot *s)
{
    if (s)
        free(s->block);
    free(s);
}

/* ---- as text: a line for each port of this host, and one for each block ---- */

static const char first_line[] = "ports 1", last_line[] = "end";

/* A large fabric has a quarter of a million blocks: formats would take seconds. */
static void put_hex(struct text *out, const uint8_t *data, size_t n, const char *end)
{
    static const char digits[] = "0123456789abcdef";
    char hex[2 * 64];
    for (size_t i = 0; i < n; i++) {
        hex[2 * i] = digits[data[i] >> 4];
        hex[2 * i + 1] = digits[data[i] & 15];
    }
    text_put(out, hex, 2 * n);
    text_put(out, end, 1);
}

void snapshot_text(const struct snapshot *s, struct text *out)
{
    text_printf(out, "%s\nhigh_limit %d\n", first_line, s->high_limit);
    for (unsigned i = 0; i < s->num_from; i++)
        text_printf(out, "from %s %d\n", s->from[i].device[0] ? s->from[i].device : "-", s->from[i].num);
    for (size_t i = 0; i < s->n; i++) {
        const struct block *b = &s->block[i];
        text_printf(out, "block %u %u %u %u:", b->from, b->attribute, b->modifier, b->path.hops);
        put_hex(out, b->path.port + 1, b->path.hops, ":");
        put_hex(out, b->data, sizeof(b->data), "\n");
    }
    text_printf(out, "%s\n", last_line);
}

/* Exactly n bytes in hexadecimal digits, and the character at their end. NULL: missing. */
static const char *parse_hex(const char *p, uint8_t *out, size_t n, char end)
{
    for (size_t i = 0; i < n; i++, p += 2) {
        unsigned v;
        char pair[3] = {p[0], p[0] ? p[1] : 0, 0};
        if (strspn(pair, "0123456789abcdef") != 2 || sscanf(pair, "%2x", &v) != 1)
            return NULL;
        out[i] = (uint8_t)v;
    }
    return *p == end ? p + 1 : NULL;
}

static bool parse_block(const char *line, struct snapshot *s)
{
    struct block b = {0};
    unsigned attribute, hops;
    int used = 0;
    if (sscanf(line, "block %u %u %u %u:%n", &b.from, &attribute, &b.modifier, &hops, &used) != 4 || !used ||
        b.from >= s->num_from || hops > SMP_HOPS_MAX || attribute > UINT16_MAX)
        return false;
    b.attribute = (uint16_t)attribute;
    b.path.hops = (uint8_t)hops;
    const char *p = parse_hex(line + used, b.path.port + 1, hops, ':');
    if (!p || !parse_hex(p, b.data, sizeof(b.data), '\n'))
        return false;
    add_block(s, &b);
    return true;
}

static bool parse_from(const char *line, struct snapshot *s)
{
    struct smp_port p = {0};
    if (s->num_from == VERIFY_SUBNETS_MAX || sscanf(line, "from %31s %d", p.device, &p.num) != 2)
        return false;
    if (!strcmp(p.device, "-"))
        p.device[0] = 0;
    s->from[s->num_from++] = p;
    return true;
}

static bool starts_with_line(const char *p, const char *line)
{
    return !strncmp(p, line, strlen(line)) && p[strlen(line)] == '\n';
}

struct snapshot *snapshot_parse(const char *text)
{
    struct snapshot *s = calloc(1, sizeof(*s));
    if (!s)
        abort();
    bool good = starts_with_line(text, first_line), ended = false;
    for (const char *p = text + strcspn(text, "\n") + good; good && !ended; p += strcspn(p, "\n") + 1) {
        ended = starts_with_line(p, last_line);
        if (!strncmp(p, "high_limit ", 11))
            s->high_limit = p[11] == '1';
        else
            good = ended || parse_from(p, s) || parse_block(p, s);
    }
    if (good)
        return s;
    snapshot_free(s);
    return NULL;
}

/* ---- putting back ---- */

static bool block_differs(const struct block *b, const uint8_t now[64])
{
    if (b->attribute == SMP_PORT_INFO)
        return b->data[HIGH_LIMIT] != now[HIGH_LIMIT];
    return memcmp(b->data, now, sizeof(b->data)) != 0;
}

/* Clears all other changes of a Set() of PortInfo: zero means unchanged. */
static void only_high_limit(uint8_t now[64], uint8_t high_limit)
{
    now[29] = 0;     /* LinkWidthEnabled */
    now[32] &= 0xf0; /* PortState */
    now[33] = 0;     /* PortPhysicalState, LinkDownDefaultState */
    now[35] &= 0xf0; /* LinkSpeedEnabled */
    now[HIGH_LIMIT] = high_limit;
}

/* The data to write to a block; now is the port's data. False: nothing. */
static bool needs(const struct block *b, uint8_t now[64])
{
    if (!block_differs(b, now))
        return false;
    if (b->attribute == SMP_PORT_INFO)
        only_high_limit(now, b->data[HIGH_LIMIT]);
    else
        memcpy(now, b->data, sizeof(b->data));
    return true;
}

#define AT_A_TIME 256 /* blocks to read, then to write where they differ */

/* Of one port of this host: blocks from b on, at most AT_A_TIME. How many were written. */
static unsigned put_blocks_back(struct smp *smp, const struct block *b, size_t n, unsigned *failed)
{
    const struct block *write[AT_A_TIME];
    uint8_t data[AT_A_TIME][64];
    unsigned writes = 0, written = 0;
    for (size_t i = 0; i < n; i++)
        smp_ahead(smp, &b[i].path, b[i].attribute, b[i].modifier, NULL);
    for (size_t i = 0; i < n; i++) {
        if (smp_get(smp, &b[i].path, b[i].attribute, b[i].modifier, data[writes]))
            ++*failed;
        else if (needs(&b[i], data[writes]))
            write[writes++] = &b[i];
    }
    for (unsigned i = 0; i < writes; i++)
        smp_ahead(smp, &write[i]->path, write[i]->attribute, write[i]->modifier, data[i]);
    for (unsigned i = 0; i < writes; i++) {
        int rc = smp_set(smp, &write[i]->path, write[i]->attribute, write[i]->modifier, data[i]);
        written += !rc;
        *failed += rc != 0;
    }
    return written;
}

/* Blocks from i on that begin at the same port of this host, as many as go at a time. */
static size_t blocks_at_once(const struct snapshot *s, size_t i)
{
    size_t end = i;
    while (end < s->n && end - i < AT_A_TIME && s->block[end].from == s->block[i].from)
        end++;
    return end - i;
}

unsigned snapshot_blocks(const struct snapshot *s)
{
    return (unsigned)s->n;
}

unsigned snapshot_put_back(const struct snapshot *s, const struct smp_port *of, void (*count)(void *arg, unsigned done),
                           void *arg, unsigned *failed)
{
    unsigned written = 0, open = VERIFY_SUBNETS_MAX;
    struct smp *smp = NULL;
    *failed = 0;
    for (size_t i = 0, n; i < s->n; i += n) {
        const struct smp_port *from = &s->from[s->block[i].from];
        n = blocks_at_once(s, i);
        if (of && (strcmp(from->device, of->device) || from->num != of->num))
            continue;
        if (s->block[i].from != open) {
            smp_close(smp);
            smp = smp_open(from->device[0] ? from->device : NULL, from->num);
            open = s->block[i].from;
        }
        if (smp)
            written += put_blocks_back(smp, &s->block[i], n, failed);
        else
            *failed += (unsigned)n;
        if (count)
            count(arg, (unsigned)(i + n));
    }
    smp_close(smp);
    return written;
}
