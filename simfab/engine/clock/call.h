/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A control verb in progress: request in, answer out. The body has at least the size given by the table in request.c. A
 * handler returns 0 or an errno; with an errno the answer is empty.
 */
#ifndef SIMFAB_CALL_H
#define SIMFAB_CALL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "simfab/engine/clock/proc.h"

struct call {
    struct proc *p;
    const uint8_t *body;
    size_t len;
    uint8_t *out;
    size_t cap, used;
    int fd;           /* sent with the answer and closed here */
    uint64_t cost_ps; /* the call's cost on the caller's clock */
};

static inline uint32_t call_arg(const struct call *c, unsigned i)
{
    uint32_t v;

    memcpy(&v, c->body + 4 * i, sizeof v);
    return v;
}

static inline void call_put(struct call *c, const void *data, size_t len)
{
    if (c->cap - c->used < len)
        return;
    memcpy(c->out + c->used, data, len);
    c->used += len;
}

static inline void call_put32(struct call *c, uint32_t v)
{
    call_put(c, &v, sizeof v);
}

#endif
