/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channel shm: packets between the ranks of one node.
 *
 * The node's memory (shm_segment.h) has a ring for each ordered pair of ranks. The launcher decides which ranks share a
 * node. A packet that finds its ring full waits in a queue in private memory; poll writes it when there is space. Long
 * payloads lie in the sender's pool (shm_pool.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/least.h"
#include "libmrmpi/base/model.h"
#include "libmrmpi/channel/cma.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/channel/shm_peer.h"
#include "libmrmpi/channel/shm_sleep.h"

#define PACKET_MAX (64u << 10)

static int shm_init(const struct mr_launch *launch)
{
    mr_shm.launch = launch;
    mr_shm.copier = mr_copier_begin();
    mr_shm.local_of = malloc(launch->size * sizeof(*mr_shm.local_of));
    if (!mr_shm.local_of)
        return -ENOMEM;
    for (int r = 0; r < launch->size; r++)
        mr_shm.local_of[r] = -1;
    for (int l = 0; l < launch->local_size; l++)
        mr_shm.local_of[launch->local_ranks[l]] = l;
    if (launch->local_size == 1)
        return 0;
    if (launch->local_size > MR_BOX_RANKS) {
        mr_log(MR_LOG_ERROR, "%d ranks on this node; shared memory serves up to %d", launch->local_size, MR_BOX_RANKS);
        return -E2BIG;
    }
    return launch->local_rank == 0 ? mr_segment_create(&mr_shm.segment, launch) : 0;
}

int mr_shm_ready(void)
{
    int ranks, me, err;

    if (!mr_shm.launch || mr_shm.launch->local_size == 1) /* not open, or alone */
        return 0;
    ranks = mr_shm.launch->local_size;
    me = mr_shm.launch->local_rank;
    err = mr_segment_open(&mr_shm.segment, mr_shm.launch);
    if (err) {
        mr_log(err == -EOWNERDEAD ? MR_LOG_INFO : MR_LOG_ERROR, "this node's shared memory is not usable: %s",
               strerror(-err));
        return err;
    }
    mr_shm.box = &mr_shm.segment.boxes[me];
    mr_shm.eager_max = mr_ring_max_payload(mr_shm.segment.header->shape);
    if (mr_shm.eager_max > mr_config.shm_eager_max)
        mr_shm.eager_max = mr_config.shm_eager_max;
    mr_shm.peers = calloc(ranks, sizeof(*mr_shm.peers));
    mr_shm.senders = calloc(ranks, sizeof(*mr_shm.senders));
    mr_shm.users = calloc(mr_shm.segment.header->pool.num_chunks, sizeof(*mr_shm.users));
    if (!mr_shm.peers || !mr_shm.senders || !mr_shm.users)
        return -ENOMEM;
    for (int l = 0; l < ranks; l++) {
        struct mr_shm_peer *p = &mr_shm.peers[l];

        mr_ring_writer_init(&p->writer, mr_segment_ring(&mr_shm.segment, me, l), mr_shm.segment.header->shape);
        mr_ring_reader_init(&p->reader, mr_segment_ring(&mr_shm.segment, l, me), mr_shm.segment.header->shape,
                            (uint32_t)mr_shm.launch->local_ranks[l]);
        mr_pool_init(&p->pool, mr_segment_pool(&mr_shm.segment, l), mr_shm.segment.header->pool,
                     l == me ? mr_shm.users : NULL);
        p->last = &p->first;
        p->local = l;
    }
    mr_shm_sleep_begin(&mr_shm.segment, mr_shm.local_of, me, mr_shm_is_busy);
    return 0;
}

static void shm_finalize(void)
{
    if (mr_shm.peers)
        for (int l = 0; l < mr_shm.launch->local_size; l++)
            while (mr_shm.peers[l].first) {
                struct mr_shm_waiting *w = mr_shm.peers[l].first;

                mr_shm.peers[l].first = w->next;
                free(w);
            }
    mr_shm_sleep_end();
    mr_segment_close(&mr_shm.segment);
    free(mr_shm.users);
    free(mr_shm.peers);
    free(mr_shm.senders);
    free(mr_shm.local_of);
    mr_channel_waiting -= mr_shm.num_waiting;
    memset(&mr_shm, 0, sizeof(mr_shm));
    mr_shm.segment.fd = -1;
}

/* The first packet to this peer: have it poll our ring. */
static __attribute__((noinline)) void announce_sender(struct mr_shm_peer *p)
{
    mr_box_announce(&mr_shm.segment.boxes[p->local], mr_shm.launch->local_rank);
    p->announced = true;
}

static int put_aside(struct mr_shm_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_shm_waiting *w = malloc(sizeof(*w) + len);

    if (!w)
        return -ENOMEM;
    w->next = NULL;
    w->hdr = *hdr;
    w->len = len;
    if (len)
        memcpy(w->payload, payload, len);
    *p->last = w;
    p->last = &w->next;
    p->num_waiting++;
    mr_shm.num_waiting++;
    mr_channel_waiting++;
    return 0;
}

/* There is something new in the ring. */
static inline void tell_receiver(struct mr_shm_peer *p)
{
    if (unlikely(!p->announced))
        announce_sender(p);
    if (unlikely(mr_shm_bell_rings()))
        mr_shm_ring_local(p->local);
}

static struct mr_pool *my_pool(void)
{
    return &mr_shm.peers[mr_shm.launch->local_rank].pool;
}

/*
 * One by one pages take a tenth longer. A kernel without the request makes them so. On some virtual machines the first
 * write takes longer than all else: 10 us, which would look like copies to far memory (base/copier.h).
 */
static void make_pages(void *at, size_t len)
{
    madvise(at, len, MADV_POPULATE_WRITE);
    for (size_t page = 0; page < len; page += MR_MODEL_PAGE)
        *(volatile uint8_t *)((uint8_t *)at + page) = 0;
}

/* Makes the first pages of the pool, in four parts: the time of a page for the model, and so for the pool's growth. */
static void measure_pages(struct mr_pool *pool)
{
    enum { PARTS = 4 };
    size_t len = MR_POOL_GROWS / PARTS * (size_t)pool->shape.chunk_bytes;
    struct mr_least least = {0};
    uint64_t ns;

    for (int part = 0; part < PARTS; part++) {
        uint64_t begun = mr_clock_ns();

        make_pages(pool->chunks + part * len, len);
        mr_least_add(&least, mr_clock_ns() - begun);
    }
    pool->fresh = MR_POOL_GROWS;
    ns = mr_least_ns(&least);
    if (ns)
        mr_model_measured(MR_MODEL_PAGE_NS, ns * MR_MODEL_PAGE / len);
    /* a reader maps the pages in about the same time */
    pool->price = 2 * MR_POOL_GROWS * mr_model.page_ns / mr_model_copy_ns(&mr_model, pool->shape.chunk_bytes);
    pool->unpaid = pool->price;
}

/* begin_chunks, in a pool that has chunks never written. */
static __attribute__((noinline)) bool begin_growing(struct mr_pool *pool, uint32_t chunk, uint32_t n)
{
    if (!pool->fresh)
        measure_pages(pool);
    mr_pool_pay(pool, n);
    return mr_pool_begin(pool, chunk, n, make_pages);
}

/* These chunks are about to be written. True if all of these chunks of our pool have been written before. */
static bool begin_chunks(uint32_t chunk, size_t len)
{
    struct mr_pool *pool = my_pool();

    return likely(pool->fresh == pool->shape.num_chunks) || begin_growing(pool, chunk, mr_pool_count(pool, len));
}

/*
 * Where the payload of the next packet to this peer goes; NULL: there is no room. A long one goes into chunks of our
 * pool if some are free (*chunk: the first), else, as the short ones do, into the ring.
 */
static void *begin_packet(struct mr_shm_peer *p, size_t len, uint32_t *chunk)
{
    *chunk = MR_POOL_NONE;
    if (len < MR_SHM_POOL_MIN)
        return mr_ring_begin(&p->writer, len);
    *chunk = mr_pool_find(my_pool(), mr_pool_count(my_pool(), len));
    if (*chunk == MR_POOL_NONE)
        return mr_ring_begin(&p->writer, len);
    return mr_ring_begin(&p->writer, 0) ? mr_pool_at(my_pool(), *chunk) : NULL;
}

/* With the next packet to this peer. */
static void assign_chunks(struct mr_shm_peer *p, uint32_t chunk, size_t len)
{
    mr_stat_add(MR_STAT_SHM_POOLED, 1);
    mr_pool_assign(my_pool(), chunk, mr_pool_count(my_pool(), len), &p->writer.reader, p->writer.slot);
}

static void commit_packet(struct mr_shm_peer *p, const struct mr_hdr *hdr, size_t len, uint32_t chunk)
{
    if (likely(chunk == MR_POOL_NONE)) {
        mr_ring_commit(&p->writer, hdr, len);
        return;
    }
    assign_chunks(p, chunk, len);
    mr_ring_commit_far(&p->writer, hdr, chunk, len);
}

/* The payload goes into the pool. */
static void copy_out(struct mr_shm_peer *p, void *to, const void *from, size_t len)
{
    struct mr_answer_copies *a = &p->answers[len >= MR_ANSWER_BELOW / 2];
    uint64_t heard = p->heard;

    if (len >= MR_ANSWER_BELOW || mr_config.shm_stream >= 0) {
        mr_copy_out(&mr_shm.copier, to, from, len);
        return;
    }
    p->heard = p->reader.slot;
    if (p->heard == heard) {
        mr_answer_copies_break(a);
        mr_copy_out(&mr_shm.copier, to, from, len);
    } else if (mr_answer_copies_stream(a, mr_clock_ns)) {
        mr_copy_stream(to, from, len);
    } else {
        memcpy(to, from, len);
    }
}

/* Into chunks of the pool. */
static void write_chunks(struct mr_shm_peer *p, uint32_t chunk, const void *from, size_t len)
{
    if (likely(begin_chunks(chunk, len)))
        copy_out(p, mr_pool_at(my_pool(), chunk), from, len);
    else
        memcpy(mr_pool_at(my_pool(), chunk), from, len);
}

static bool write_packet(struct mr_shm_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    uint32_t chunk;
    void *to = begin_packet(p, len, &chunk);

    if (unlikely(!to))
        return false;
    if (chunk != MR_POOL_NONE)
        write_chunks(p, chunk, payload, len);
    else if (len)
        memcpy(to, payload, len);
    commit_packet(p, hdr, len, chunk);
    return true;
}

static int shm_send(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_shm_peer *p = mr_shm_peer_of(vc);

    mr_stat_add(MR_STAT_SHM_SENT, 1);
    if (unlikely(p->first != NULL) || !write_packet(p, hdr, payload, len))
        return put_aside(p, hdr, payload, len);
    tell_receiver(p);
    return 0;
}

/* Of MR_SHM_POOL_MIN bytes and more. False: there is no room in the pool, or none in the ring. */
static bool write_pooled(struct mr_shm_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    uint32_t chunk = mr_pool_find(my_pool(), mr_pool_count(my_pool(), len));

    if (chunk == MR_POOL_NONE || !mr_ring_has_room(&p->writer, 0, 0))
        return false;
    write_chunks(p, chunk, payload, len);
    assign_chunks(p, chunk, len);
    mr_ring_commit_brief_far(&p->writer, hdr, chunk, len);
    mr_stat_add(MR_STAT_SHM_SENT, 1);
    tell_receiver(p);
    return true;
}

/* A waiter for the answer waits longer if lines of later packets are prefetched. */
static inline __attribute__((always_inline)) bool write_in_row(struct mr_shm_peer *p, const struct mr_hdr *hdr,
                                                               const void *payload, size_t len)
{
    if (likely(p->heard_short == p->reader.slot))
        mr_ring_ask_ahead(&p->writer, len);
    else
        p->heard_short = p->reader.slot;
    if (unlikely(!mr_ring_write_brief(&p->writer, hdr, payload, len)))
        return false;
    mr_stat_add(MR_STAT_SHM_SENT, 1);
    tell_receiver(p);
    return true;
}

/* Of more than a line. */
static __attribute__((noinline)) bool send_lines(struct mr_vc *vc, const void *payload, size_t len, int rank, int tag,
                                                 uint32_t ctx)
{
    struct mr_hdr hdr = {.note = vc->note, .seq = vc->next_seq, .rank = rank, .tag = tag, .ctx = ctx};

    return len < MR_SHM_POOL_MIN ? write_in_row(vc->data, &hdr, payload, len)
                                 : write_pooled(vc->data, &hdr, payload, len);
}

static bool shm_send_short(struct mr_vc *vc, const void *payload, size_t len, int rank, int tag, uint32_t ctx)
{
    struct mr_hdr hdr = {.note = vc->note, .seq = vc->next_seq, .rank = rank, .tag = tag, .ctx = ctx};

    if (len > MR_RING_FIRST_LINE)
        return send_lines(vc, payload, len, rank, tag, ctx);
    return write_in_row(vc->data, &hdr, payload, len);
}

/* Directly into the ring, unless packets wait already. */
static int shm_send_made(struct mr_vc *vc, const struct mr_hdr *hdr, size_t len, void *scratch, mr_vc_make_fn *make,
                         const void *what)
{
    struct mr_shm_peer *p = mr_shm_peer_of(vc);
    uint32_t chunk;
    void *to = p->first ? NULL : begin_packet(p, len, &chunk);

    if (!to) {
        make(scratch, len, what);
        return shm_send(vc, hdr, scratch, len);
    }
    if (chunk != MR_POOL_NONE && begin_chunks(chunk, len) && mr_copy_streams(&mr_shm.copier)) {
        make(scratch, len, what);
        mr_copy_out(&mr_shm.copier, to, scratch, len);
    } else {
        make(to, len, what);
    }
    commit_packet(p, hdr, len, chunk);
    mr_stat_add(MR_STAT_SHM_SENT, 1);
    tell_receiver(p);
    return 0;
}

static int send_waiting(void)
{
    int n = 0;

    for (int l = 0; l < mr_shm.launch->local_size && mr_shm.num_waiting; l++) {
        struct mr_shm_peer *p = &mr_shm.peers[l];
        int before = n;

        while (p->first && write_packet(p, &p->first->hdr, p->first->payload, p->first->len)) {
            struct mr_shm_waiting *w = p->first;

            p->first = w->next;
            if (!p->first)
                p->last = &p->first;
            free(w);
            p->num_waiting--;
            mr_shm.num_waiting--;
            mr_channel_waiting--;
            n++;
        }
        if (n != before && mr_shm_bell_rings())
            mr_shm_ring_local(l);
    }
    return n;
}

static unsigned shm_waiting(struct mr_vc *vc)
{
    return mr_shm.peers[mr_shm.local_of[mr_vc_world_rank(vc)]].num_waiting;
}

static int shm_poll(void)
{
    int n = mr_shm_receive();

    return unlikely(mr_shm.num_waiting) ? n + send_waiting() : n;
}

static bool shm_drained(void)
{
    return !mr_shm.num_waiting;
}

static bool shm_reaches(int world_rank)
{
    return mr_shm.local_of[world_rank] >= 0 && world_rank != mr_shm.launch->rank;
}

/* packet_max fits into a ring in any case: all of the pool may be in use. */
static void shm_sizes(struct mr_vc *vc)
{
    size_t room = mr_ring_max_payload(mr_shm.segment.header->shape);

    vc->eager_max = vc->eager_most = (uint32_t)mr_shm.eager_max;
    vc->packet_max = room < PACKET_MAX ? room : PACKET_MAX;
}

static unsigned shm_caps(int world_rank, size_t len)
{
    if (!mr_config.single_copy)
        return 0;
    /* for a payload of packet size a system call takes longer */
    return len > (size_t)mr_config.shm_eager_max && !mr_cma_refused ? MR_VC_GET | MR_VC_WINDOW : MR_VC_GET;
}

bool mr_shm_oversubscribed(void)
{
    return mr_segment_is_crowded(&mr_shm.segment);
}

struct mr_claims *mr_shm_claims(struct mr_vc *vc, bool ours)
{
    return ours ? &mr_shm.box->claims : &mr_shm.segment.boxes[mr_shm.local_of[mr_vc_world_rank(vc)]].claims;
}

bool mr_shm_chunks_take(struct mr_shm_chunks *c, size_t len, struct mr_reader *by, uint64_t number)
{
    uint32_t n, most;

    if (!mr_shm.users)
        return false;
    n = mr_pool_count(my_pool(), len);
    most = mr_pool_count(my_pool(), c->most);
    c->first = mr_pool_find_below(my_pool(), n, most < my_pool()->shape.num_chunks ? most : my_pool()->shape.num_chunks,
                                  &c->next);
    if (c->first == MR_POOL_NONE)
        return false;
    mr_pool_use(my_pool(), c->first, n, by, number);
    c->next = c->first + n;
    c->fresh = !begin_chunks(c->first, len);
    c->at = mr_pool_at(my_pool(), c->first);
    return true;
}

uint64_t mr_shm_pool_ns(void)
{
    struct mr_pool *pool = my_pool();

    if (!pool->fresh)
        measure_pages(pool);
    return (uint64_t)(pool->shape.num_chunks - pool->fresh) * pool->shape.chunk_bytes / MR_MODEL_PAGE *
           mr_model.page_ns;
}

void *mr_shm_chunks_at(int world_rank, uint32_t first, size_t len)
{
    return mr_shm_in_pool(mr_shm.local_of[world_rank], first, len);
}

void mr_shm_chunks_reclaim(const struct mr_reader *by)
{
    if (mr_shm.users)
        mr_pool_reclaim(my_pool(), by);
}

const struct mr_channel_ops mr_channel_shm = {
    .name = "shm",
    .init = shm_init,
    .finalize = shm_finalize,
    .poll = shm_poll,
    .drained = shm_drained,
    .waiting = shm_waiting,
    .reaches = shm_reaches,
    .sizes = shm_sizes,
    .caps = shm_caps,
    .send = shm_send,
    .send_short = shm_send_short,
    .send_made = shm_send_made,
    .advertise = mr_cma_advertise,
    .withdraw = mr_cma_withdraw,
    .get = mr_cma_get,
    .move = mr_cma_move,
};
