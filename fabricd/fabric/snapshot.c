/* SPDX-License-Identifier: BSD-3-Clause */
/* See snapshot.h. Attributes' layouts are those of the InfiniBand specification, volume 1, 14.2.5. */
#include "fabricd/fabric/snapshot.h"
#include "fabricd/fabric/ports.h"

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
    bool high_limit;
    struct block *block;
    size_t n, cap;
};

static void take_block(struct snapshot *s, struct look *l, const struct node *n, uint16_t attribute, uint32_t modifier)
{
    struct block b = {l->from, n->path, attribute, modifier, {0}};
    if (smp_get(l->smp, &n->path, attribute, modifier, b.data))
        return;
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 64;
        s->block = realloc(s->block, s->cap * sizeof(*s->block));
        if (!s->block)
            abort();
    }
    s->block[s->n++] = b;
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
    take_vlarb(s, l, n, port, 1, p->low_cap);
    take_vlarb(s, l, n, port, 3, p->high_cap);
    take_block(s, l, n, SMP_SL2VL, port);
    for (unsigned k = 0; is_switch && k < live; k++)
        take_block(s, l, n, SMP_SL2VL, (uint32_t)ports[k].num << 8 | port);
    if (s->high_limit)
        take_block(s, l, n, SMP_PORT_INFO, p->num);
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

static bool differs(const struct block *b, const uint8_t now[64])
{
    if (b->attribute == SMP_PORT_INFO)
        return b->data[HIGH_LIMIT] != now[HIGH_LIMIT];
    return memcmp(b->data, now, sizeof(b->data)) != 0;
}

/* All that a Set() of PortInfo would change besides: zero means as it is. */
static void only_high_limit(uint8_t now[64], uint8_t high_limit)
{
    now[29] = 0;     /* LinkWidthEnabled */
    now[32] &= 0xf0; /* PortState */
    now[33] = 0;     /* PortPhysicalState, LinkDownDefaultState */
    now[35] &= 0xf0; /* LinkSpeedEnabled */
    now[HIGH_LIMIT] = high_limit;
}

/* 0: it is there already; 1: it has been put back; -1: that failed. */
static int put_block_back(struct smp *smp, const struct block *b)
{
    uint8_t data[64];
    if (smp_get(smp, &b->path, b->attribute, b->modifier, data))
        return -1;
    if (!differs(b, data))
        return 0;
    if (b->attribute == SMP_PORT_INFO)
        only_high_limit(data, b->data[HIGH_LIMIT]);
    else
        memcpy(data, b->data, sizeof(data));
    return smp_set(smp, &b->path, b->attribute, b->modifier, data) ? -1 : 1;
}

unsigned snapshot_put_back(const struct snapshot *s, unsigned *failed)
{
    unsigned written = 0;
    *failed = 0;
    for (unsigned f = 0; f < s->num_from; f++) {
        struct smp *smp = smp_open(s->from[f].device[0] ? s->from[f].device : NULL, s->from[f].num);
        for (size_t i = 0; i < s->n; i++) {
            if (s->block[i].from != f)
                continue;
            int rc = smp ? put_block_back(smp, &s->block[i]) : -1;
            written += rc > 0;
            *failed += rc < 0;
        }
        smp_close(smp);
    }
    return written;
}
