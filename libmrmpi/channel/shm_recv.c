/* SPDX-License-Identifier: BSD-3-Clause */
/* Channel shm: packets taken out of the rings. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/shm_peer.h"

struct mr_shm mr_shm = {.segment.fd = -1};

#define POLL_BATCH 16 /* packets taken from one ring before the next has its turn */

static void read_senders(void)
{
    struct mr_box *box = mr_shm.box;

    mr_shm.senders_version = mr_box_version(box);
    mr_shm.num_senders = 0;
    for (int l = 0; l < mr_shm.launch->local_size; l++)
        if (mr_box_has(box, l) && !mr_shm.peers[l].broken)
            mr_shm.senders[mr_shm.num_senders++] = l;
}

static void give_up(int from)
{
    mr_log(MR_LOG_ERROR,
           "rank %d wrote an impossible packet into shared memory (its memory may be damaged); "
           "nothing more is taken from it",
           mr_shm.launch->local_ranks[from]);
    mr_shm.peers[from].broken = true;
    read_senders();
}

/* A kernel without the request maps page by page. */
static void map_pages(void *at, size_t len)
{
    madvise(at, len, MADV_POPULATE_READ);
}

void *mr_shm_in_pool(int local, uint32_t chunk, size_t len)
{
    return mr_pool_read(&mr_shm.peers[local].pool, chunk, len, map_pages);
}

/* The packet at the front of a ring, as mr_ring_peek; *chunk: the first in the sender's pool, or none. */
static int peek_packet(int from, struct mr_hdr *hdr, const void **payload, size_t *len, uint32_t *chunk)
{
    int got;

    *chunk = MR_POOL_NONE;
    got = mr_ring_peek(&mr_shm.peers[from].reader, hdr, payload, len, chunk);
    if (got <= 0 || *payload)
        return got;
    *payload = mr_shm_in_pool(from, *chunk, *len);
    return *payload ? 1 : -1;
}

static int poll_sender(int from)
{
    struct mr_ring_reader *r = &mr_shm.peers[from].reader;
    struct mr_hdr hdr;
    const void *payload;
    uint32_t chunk;
    size_t len;
    int n, got;

    for (n = 0; n < POLL_BATCH; n++) {
        got = peek_packet(from, &hdr, &payload, &len, &chunk);
        if (got == 0) {
            mr_ring_tell(r);
            break;
        }
        if (got < 0 || hdr.src != (uint32_t)mr_shm.launch->local_ranks[from]) {
            give_up(from);
            break;
        }
        mr_vc_arrived(&hdr, payload, len);
        if (chunk != MR_POOL_NONE)
            mr_ring_release_far(r, len);
        else
            mr_ring_release(r);
    }
    return n;
}

int mr_shm_receive(void)
{
    int n = 0;

    if (!mr_shm.segment.base)
        return 0;
    if (unlikely(mr_box_changed(mr_shm.box, mr_shm.senders_version)))
        read_senders();
    for (int i = 0; i < mr_shm.num_senders; i++)
        n += poll_sender(mr_shm.senders[i]);
    return n;
}

/* From now on short messages to it go by shm_send_short. */
struct mr_shm_peer *mr_shm_meet(struct mr_vc *vc)
{
    vc->fast_below = mr_shm.eager_max < MR_SHM_FAST_BELOW ? (uint32_t)mr_shm.eager_max + 1 : MR_SHM_FAST_BELOW;
    return vc->data = &mr_shm.peers[mr_shm.local_of[mr_vc_world_rank(vc)]];
}

const void *mr_shm_peek(struct mr_vc *vc, int rank, int tag, uint32_t ctx, struct mr_hdr *hdr)
{
    struct mr_shm_peer *p = mr_shm_peer_of(vc);
    const void *payload;
    uint32_t chunk = MR_POOL_NONE;
    int got;

    if (unlikely(p->broken))
        return NULL;
    got = mr_ring_peek_wanted(&p->reader, rank, tag, ctx, hdr, &payload, &chunk);
    if (got <= 0)
        return got ? MR_PEEK_OTHER : NULL;
    if (unlikely(hdr->seq != vc->in.expected || vc->in.head))
        return MR_PEEK_OTHER;
    p->far = 0;
    if (likely(payload != NULL))
        return payload;
    p->far = hdr->len;
    payload = mr_shm_in_pool(p->local, chunk, hdr->len);
    return payload ? payload : MR_PEEK_OTHER;
}

void mr_shm_taken(struct mr_vc *vc)
{
    struct mr_shm_peer *p = mr_shm_peer_of(vc);

    mr_reorder_advance(&vc->in);
    if (p->far)
        mr_ring_release_far(&p->reader, p->far);
    else
        mr_ring_release(&p->reader);
}

bool mr_shm_is_busy(void)
{
    if (mr_shm.num_waiting || mr_box_changed(mr_shm.box, mr_shm.senders_version))
        return true;
    for (int i = 0; i < mr_shm.num_senders; i++)
        if (mr_ring_ready(&mr_shm.peers[mr_shm.senders[i]].reader))
            return true;
    return false;
}

static void drop_waiting(struct mr_shm_peer *p)
{
    while (p->first) {
        struct mr_shm_waiting *w = p->first;

        p->first = w->next;
        free(w);
        p->num_waiting--;
        mr_shm.num_waiting--;
        mr_channel_waiting--;
    }
    p->last = &p->first;
}

void mr_shm_lose(struct mr_vc *vc)
{
    struct mr_shm_peer *p = mr_shm_peer_of(vc);

    while (!p->broken && poll_sender(p->local))
        ;
    p->broken = true;
    vc->fast_below = 0;
    read_senders();
    drop_waiting(p);
    mr_pool_reclaim(&mr_shm.peers[mr_shm.launch->local_rank].pool, &p->writer.reader);
    mr_vc_failed(mr_vc_world_rank(vc), -EOWNERDEAD);
}
