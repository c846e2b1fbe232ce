/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams: made when the first message needs them. */
#include "libmrmpi/p2p/rndv/stream.h"

#include <stdlib.h>

struct mr_stream *mr_stream_of(struct mr_vc *vc)
{
    struct mr_flow *f = mr_flow_of(vc);

    if (f->stream || !(f->stream = calloc(1, sizeof *f->stream)))
        return f->stream;
    f->stream->next = mr_rndvs.streams;
    mr_rndvs.streams = f->stream;
    return f->stream;
}

/* The first of this list. */
static void free_stream(struct mr_stream **at)
{
    struct mr_stream *s = *at;

    *at = s->next;
    for (struct mr_rtr *r; (r = s->ready);) {
        s->ready = r->next;
        free(r);
    }
    free(s);
}

void mr_streams_free(void)
{
    while (mr_rndvs.streams)
        free_stream(&mr_rndvs.streams);
}

void mr_stream_drop(struct mr_vc *vc)
{
    struct mr_flow *f = mr_flow_of(vc);
    struct mr_stream **at = &mr_rndvs.streams;

    if (!f->stream)
        return;
    while (*at != f->stream)
        at = &(*at)->next;
    free_stream(at);
    f->stream = NULL;
}

void mr_stream_uncount(struct mr_rndv *r)
{
    if (r->offer.counted)
        mr_batch_end(&mr_flow_of(r->vc)->stream->batch);
    if (r->offer.crosses)
        mr_flow_of(r->vc)->stream->exchange.open--;
    r->offer.counted = r->offer.crosses = false;
}
