/* SPDX-License-Identifier: BSD-3-Clause */
/* The pools of packets: slabs that every device knows, and a list of free packets for each size. */
#include "libmrmpi/verbs/link/packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/wire.h"
#include "libmrmpi/verbs/memory/memory.h"
#include "libmrmpi/verbs/up.h"
#include "libmrmpi/verbs/qp.h"

#define SLAB_PACKETS                                                                                                   \
    64 /* of the first slab of a pool, for each rail if they are short: many are under way over each,                  \
          since not all are signaled; another slab is as long as all before, */
/* Up to this number of bytes; registering them takes three times as long as registering a page. */
#define SLAB_BYTES (1024u << 10)

struct mr_packet_slab {
    struct mr_packet_slab *next;
    struct mr_packet_pool *pool;
    struct mr_memory memory;
    unsigned char *data;
    size_t bytes;
    unsigned num;
    struct mr_packet packet[];
};

struct mr_packet_pool mr_packets_short;
static struct mr_packet_pool long_packets;
static struct mr_packet_slab *packet_slabs;
static struct mr_packet_pool *const packet_pools[] = {&mr_packets_short, &long_packets};
#define POOLS (sizeof packet_pools / sizeof *packet_pools)

static unsigned slab_packets(const struct mr_packet_pool *pool)
{
    unsigned most = (unsigned)(SLAB_BYTES / pool->stride), num = pool->num < most ? pool->num : most;

    return num > pool->first ? num : pool->first;
}

static int add_slab(struct mr_packet_pool *pool)
{
    unsigned num = slab_packets(pool);
    size_t bytes = (num * pool->stride + 4095) & ~(size_t)4095;
    struct mr_packet_slab *s = calloc(1, sizeof *s + num * sizeof s->packet[0]);
    int err;

    if (!s)
        return -ENOMEM;
    s->data = aligned_alloc(4096, bytes);
    err = s->data ? mr_memory_register(s->data, bytes, MR_ACCESS_SOURCE, &s->memory) : -ENOMEM;
    if (err) {
        mr_log(MR_LOG_ERROR, "no memory for packets: %zu bytes cannot be registered: %s%s", bytes, strerror(-err),
               mr_log_memory_advice(err));
        free(s->data);
        free(s);
        return err;
    }
    s->pool = pool;
    s->bytes = bytes;
    s->next = packet_slabs;
    packet_slabs = s;
    s->num = num;
    pool->num += num;
    for (unsigned i = 0; i < num; i++) {
        struct mr_packet *p = &s->packet[i];

        p->slab = s;
        p->data = s->data + i * pool->stride;
        p->kept.next = (struct mr_kept *)pool->free;
        pool->free = p;
    }
    return 0;
}

static size_t packet_stride(size_t longest)
{
    return (longest + MR_PACKET_SPARE + 63) & ~(size_t)63;
}

int mr_packets_open(size_t packet_max, unsigned rails)
{
    mr_packets_short = (struct mr_packet_pool){.stride = packet_stride(MR_PACKET_SHORT), .first = SLAB_PACKETS * rails};
    long_packets = (struct mr_packet_pool){.stride = packet_stride(packet_max), .first = SLAB_PACKETS};
    return add_slab(&mr_packets_short);
}

int mr_packets_renew(void)
{
    for (struct mr_packet_slab *s = packet_slabs; s; s = s->next) {
        int err = mr_memory_add(s->data, s->bytes, MR_ACCESS_SOURCE, UINT32_MAX, &s->memory);

        if (err)
            return err;
    }
    return 0;
}

/* Packets not given back. Some of the others may not have come back from the adapter at the end. */
static unsigned count_leaked(void)
{
    unsigned n = 0;

    for (const struct mr_packet_slab *s = packet_slabs; s; s = s->next)
        for (unsigned i = 0; i < s->num; i++)
            n += !s->packet[i].dropped;
    for (unsigned i = 0; i < POOLS; i++)
        for (const struct mr_packet *p = packet_pools[i]->free; p; p = (const struct mr_packet *)p->kept.next)
            n--;
    return n;
}

void mr_packets_close(void)
{
    struct mr_packet_slab *s;
    unsigned leaked = mr_config.leaks ? count_leaked() : 0;

    if (leaked)
        mr_log_print(MR_LOG_WARN, "leak: %u packets were not given back", leaked);
    while ((s = packet_slabs)) {
        packet_slabs = s->next;
        mr_memory_deregister(&s->memory);
        free(s->data);
        free(s);
    }
    for (unsigned i = 0; i < POOLS; i++) {
        packet_pools[i]->free = NULL;
        packet_pools[i]->num = 0;
    }
}

static struct mr_packet *packet_pool_take(struct mr_packet_pool *pool)
{
    struct mr_packet *p = pool->free;

    if (unlikely(!p)) {
        if (add_slab(pool))
            return NULL;
        p = pool->free;
    }
    pool->free = (struct mr_packet *)p->kept.next;
    p->ack_len = 0;
    return p;
}

static bool packet_pool_has(const struct mr_packet_pool *pool, unsigned num)
{
    const struct mr_packet *p = pool->free;

    for (; num && p; num--)
        p = (const struct mr_packet *)p->kept.next;
    return !num;
}

int mr_packets_reserve(unsigned num)
{
    for (unsigned i = 0; i < POOLS; i++)
        while (!packet_pool_has(packet_pools[i], num))
            if (add_slab(packet_pools[i]))
                return -ENOMEM;
    return 0;
}

struct mr_packet *mr_packet_blank(void)
{
    return packet_pool_take(&mr_packets_short);
}

struct mr_packet *mr_packet_copy(struct mr_packet *p)
{
    struct mr_packet *copy = packet_pool_take(p->slab->pool);

    if (!copy)
        return NULL;
    mr_packet_settle(p);
    memcpy(copy->data, p->data, p->size);
    copy->size = p->size;
    copy->payload = p->payload;
    return copy;
}

void *mr_packet_part_header(const struct mr_packet *p)
{
    return p->data + p->slab->pool->stride - 16;
}

struct mr_packet *mr_packet_make(const struct mr_hdr *hdr, const void *payload, size_t len)
{
    unsigned form = mr_wire_form(hdr, len);
    size_t header = mr_wire_size(form);
    struct mr_packet *p = packet_pool_take(header + len <= MR_PACKET_SHORT ? &mr_packets_short : &long_packets);

    if (unlikely(!p))
        return NULL;
    mr_wire_put(hdr, form, p->data);
    if (len && payload)
        memcpy(p->data + header, payload, len);
    p->size = (uint32_t)(header + len);
    p->payload = (uint32_t)len;
    p->kept.len = p->size;
    return p;
}

void mr_packet_settle(struct mr_packet *p)
{
    if (p->zsend.from)
        memcpy(p->data + p->size - p->payload, p->zsend.from, p->payload);
    p->zsend.from = NULL;
}

struct mr_zsend_from mr_packet_take_zsend(struct mr_packet *p, bool kept)
{
    struct mr_zsend_from zsend;

    if (kept)
        mr_packet_settle(p);
    zsend = p->zsend;
    p->zsend = (struct mr_zsend_from){0};
    return zsend;
}

static void put_packet_back(struct mr_packet *p)
{
    struct mr_packet_pool *pool = p->slab->pool;

    p->kept.next = (struct mr_kept *)pool->free;
    pool->free = p;
}

static __attribute__((noinline)) void free_zsend(struct mr_packet *p)
{
    struct mr_zsend_from zsend = mr_packet_take_zsend(p, false);

    put_packet_back(p);
    mr_verbs_up.zsend_done(&zsend);
}

void mr_packet_free(struct mr_packet *p)
{
    p->dropped = p->posted;
    if (unlikely(p->posted))
        return;
    if (unlikely(p->zsend.memory != NULL))
        free_zsend(p);
    else
        put_packet_back(p);
}

void mr_packets_gone(const struct mr_qp *qp, const struct mr_link *link)
{
    for (struct mr_packet_slab *s = packet_slabs; s; s = s->next)
        for (unsigned i = 0; i < s->num; i++) {
            struct mr_packet *p = &s->packet[i];
            struct mr_zsend_from zsend;

            if (!p->posted || p->tx.qp != qp || (link && p->link != link))
                continue;
            p->posted = false;
            zsend = mr_packet_take_zsend(p, !p->dropped);
            if (p->dropped)
                mr_packet_free(p);
            if (zsend.memory)
                mr_verbs_up.zsend_done(&zsend);
        }
}

void mr_packets_free(struct mr_kept *chain)
{
    while (chain) {
        struct mr_packet *p = (struct mr_packet *)chain;

        chain = chain->next;
        mr_packet_free(p);
    }
}

uint32_t mr_packet_lkey(const struct mr_packet *p, const struct mr_rail *rail)
{
    return mr_memory_lkey(&p->slab->memory, rail);
}
