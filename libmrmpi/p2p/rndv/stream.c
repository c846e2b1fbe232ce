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

void mr_streams_free(void)
{
    struct mr_stream *s;

    while ((s = mr_rndvs.streams)) {
        mr_rndvs.streams = s->next;
        for (struct mr_rtr *r; (r = s->ready);) {
            s->ready = r->next;
            free(r);
        }
        free(s);
    }
}

void mr_stream_uncount(struct mr_rndv *r)
{
    if (r->offer.counted)
        mr_batch_end(&mr_flow_of(r->vc)->stream->batch);
    if (r->offer.crosses)
        mr_flow_of(r->vc)->stream->exchange.open--;
    r->offer.counted = r->offer.crosses = false;
}
