/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets over RC: small ones inline, without a copy of ours and with one signaled in so many; longer ones through a
 * bounce buffer that is registered once, each signaled, so that no idle connection keeps buffers.
 */
#include "libmrmpi/channel/rc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/wire.h"

#define SLAB_BUFFERS 64
#define SLABS_MAX    16

/* What a signaled packet holds until its completion. */
struct rc_packet {
    struct mr_tx tx;
    struct rc_packet *next;
    unsigned char *data; /* NULL: only counts an inline packet */
    struct slab *slab;
};

struct slab {
    struct mr_memory memory;
    unsigned char *data;
    struct rc_packet packet[SLAB_BUFFERS];
};

static struct {
    size_t stride;
    unsigned num_slabs;
    struct slab *slab[SLABS_MAX];
    struct rc_packet *free_bounce;
    struct rc_packet *free_inline, *inline_chunks; /* chunks are chained by their first element */
} rc;

static void bounce_done(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct rc_packet *p = (struct rc_packet *)wr;

    mr_tx_done(&p->tx, wc);
    p->next = rc.free_bounce;
    rc.free_bounce = p;
}

static void inline_done(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct rc_packet *p = (struct rc_packet *)wr;

    mr_tx_done(&p->tx, wc);
    p->next = rc.free_inline;
    rc.free_inline = p;
}

/* ---- pools ----------------------------------------------------------------------------------------------------- */

static int add_slab(void)
{
    size_t bytes = (SLAB_BUFFERS * rc.stride + 4095) & ~(size_t)4095;
    struct slab *s;
    int err;

    if (rc.num_slabs == SLABS_MAX)
        return -EAGAIN;
    s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->data = aligned_alloc(4096, bytes);
    err = s->data ? mr_memory_register(s->data, bytes, MR_ACCESS_TARGET, &s->memory) : -ENOMEM;
    if (err) {
        free(s->data);
        free(s);
        return err;
    }
    for (unsigned i = 0; i < SLAB_BUFFERS; i++) {
        s->packet[i] = (struct rc_packet){
            .tx.wr.done = bounce_done, .data = s->data + i * rc.stride, .slab = s, .next = rc.free_bounce};
        rc.free_bounce = &s->packet[i];
    }
    rc.slab[rc.num_slabs++] = s;
    return 0;
}

static int add_inline_chunk(void)
{
    struct rc_packet *chunk = calloc(SLAB_BUFFERS, sizeof *chunk);

    if (!chunk)
        return -ENOMEM;
    chunk[0].next = rc.inline_chunks;
    rc.inline_chunks = chunk;
    for (unsigned i = 1; i < SLAB_BUFFERS; i++) {
        chunk[i].tx.wr.done = inline_done;
        chunk[i].next = rc.free_inline;
        rc.free_inline = &chunk[i];
    }
    return 0;
}

int mr_rc_send_open(size_t packet_max)
{
    int err;

    memset(&rc, 0, sizeof rc);
    rc.stride = (packet_max + 63) & ~(size_t)63;
    err = add_slab();
    return err ? err : add_inline_chunk();
}

void mr_rc_send_close(void)
{
    struct rc_packet *chunk;

    while (rc.num_slabs) {
        struct slab *s = rc.slab[--rc.num_slabs];

        mr_memory_deregister(&s->memory);
        free(s->data);
        free(s);
    }
    while ((chunk = rc.inline_chunks)) {
        rc.inline_chunks = chunk[0].next;
        free(chunk);
    }
    memset(&rc, 0, sizeof rc);
}

/* ---- sending --------------------------------------------------------------------------------------------------- */

struct mr_tx *mr_rc_counter(const struct mr_qp *qp)
{
    struct rc_packet *p = rc.free_inline;

    if (!mr_qp_must_signal(qp) || (!p && add_inline_chunk()))
        return NULL;
    p = rc.free_inline;
    rc.free_inline = p->next;
    return &p->tx;
}

void mr_rc_counter_unused(struct mr_tx *tx)
{
    struct rc_packet *p = (struct rc_packet *)tx;

    if (!p)
        return;
    p->next = rc.free_inline;
    rc.free_inline = p;
}

static int send_inline(struct mr_qp *qp, const void *head, size_t head_len, const void *payload, size_t len)
{
    struct mr_tx *tx = mr_rc_counter(qp);
    int err = mr_qp_send_inline(qp, head, head_len, payload, len, tx);

    if (__builtin_expect(err, 0))
        mr_rc_counter_unused(tx);
    return err;
}

static int send_bounce(struct mr_qp *qp, const struct mr_hdr *hdr, unsigned form, const void *payload, size_t len)
{
    struct rc_packet *p = rc.free_bounce;
    size_t head;
    int err;

    if (!p) {
        if (add_slab())
            return -EAGAIN;
        p = rc.free_bounce;
    }
    head = mr_wire_put(hdr, form, p->data);
    memcpy(p->data + head, payload, len);
    err = mr_qp_send(qp, p->data, head + len, mr_memory_lkey(&p->slab->memory, qp->rail), &p->tx);
    if (!err)
        rc.free_bounce = p->next;
    return err;
}

int mr_rc_send(struct mr_qp *qp, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    unsigned form = mr_wire_form(hdr, len);
    unsigned char head[MR_WIRE_MAX];

    if (!mr_qp_has_room(qp, 1))
        return -EAGAIN;
    if (mr_wire_size(form) + len > qp->max_inline)
        return send_bounce(qp, hdr, form, payload, len);
    if (__builtin_expect(!form, 1)) /* which is what hdr->form says */
        return send_inline(qp, hdr, MR_WIRE_MIN, payload, len);
    return send_inline(qp, head, mr_wire_put(hdr, form, head), payload, len);
}
