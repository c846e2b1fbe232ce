/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of packets and chunks: the busiest objects of the engine never go back to malloc. */
#include "simfab/engine/wire/packet.h"

#include <string.h>

#include "simfab/engine/base/util.h"

static struct packet *free_packets;
static uint64_t foreground;

static const uint32_t chunk_sizes[] = {256, 4096, CHUNK_MAX};
#define CHUNK_CLASSES (sizeof chunk_sizes / sizeof *chunk_sizes)
static struct chunk *free_chunks[CHUNK_CLASSES];

struct packet *packet_new(void)
{
    struct packet *p = free_packets;

    if (!p) {
        enum { BATCH = 256 };
        struct packet *batch = xcalloc(BATCH, sizeof *batch);

        for (int i = 0; i < BATCH; i++) {
            batch[i].next = free_packets;
            free_packets = &batch[i];
        }
        p = free_packets;
    }
    free_packets = p->next;
    foreground++;
    memset(p, 0, sizeof *p);
    return p;
}

void packet_free(struct packet *p)
{
    chunk_put(p->chunk);
    if (p->background)
        --*p->background;
    else
        foreground--;
    p->next = free_packets;
    free_packets = p;
}

void packet_is_background(struct packet *p, uint32_t *count)
{
    foreground--;
    ++*count;
    p->background = count;
}

uint64_t packets_foreground(void)
{
    return foreground;
}

static unsigned chunk_class(uint32_t len)
{
    unsigned c = 0;

    while (c + 1 < CHUNK_CLASSES && chunk_sizes[c] < len)
        c++;
    return c;
}

struct chunk *chunk_new(uint32_t len)
{
    unsigned class = chunk_class(len);
    struct chunk *c = free_chunks[class];

    if (c) {
        free_chunks[class] = c->next_free;
    } else {
        c = xcalloc(1, sizeof *c + chunk_sizes[class]);
        c->cap = chunk_sizes[class];
    }
    c->refs = 1;
    c->len = len;
    return c;
}

void chunk_put(struct chunk *c)
{
    unsigned class;

    if (!c || --c->refs)
        return;
    class = chunk_class(c->cap);
    c->next_free = free_chunks[class];
    free_chunks[class] = c;
}

struct packet *packet_copy(const struct packet *p)
{
    struct packet *c = packet_new();

    *c = *p;
    c->next = NULL;
    chunk_get(c->chunk);
    return c;
}
