/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets written to memory together. */
#include "simfab/engine/hca/landing.h"

#include "simfab/engine/wire/packet.h"

bool landing_add(struct landing *l, struct packet *p, uint32_t at)
{
    if (!l->chunk) {
        *l = (struct landing){chunk_get(p->chunk), p->chunk_off, p->payload, at};
        return true;
    }
    if (l->chunk != p->chunk || l->off + l->len != p->chunk_off || l->at + l->len != at)
        return false;
    l->len += p->payload;
    return true;
}

void landing_clear(struct landing *l)
{
    chunk_put(l->chunk);
    *l = (struct landing){0};
}
