/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channel shm: packets between the ranks of one node.
 *
 * The node's memory (shm_segment.h) has a ring for each ordered pair of ranks. Which ranks share a node is the
 * launcher's word. A packet that finds its ring full waits in a queue in private memory; poll writes it when there is
 * space. Long payloads lie in the sender's pool (shm_pool.h).
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/channel/cma.h"
#include "libmrmpi/channel/shm.h"
#include "libmrmpi/channel/shm_copy.h"
#include "libmrmpi/channel/shm_ring_writer.h"
#include "libmrmpi/channel/shm_segment.h"
#include "libmrmpi/launch/launch.h"

#define POLL_BATCH 16 /* packets taken from one ring before the next has its turn */
#define PACKET_MAX (64u << 10)
#define POOL_MIN   4096 /* shorter payloads go into the ring's own data area */

struct waiting { /* a packet that found its ring full */
    struct waiting *next;
    struct mr_hdr hdr;
    size_t len;
    uint8_t payload[];
};

struct peer {
    struct mr_ring_writer writer;
    struct waiting *first, **last;
    unsigned num_waiting;
    bool announced;
    struct mr_ring_reader reader;
    struct mr_pool pool; /* the peer's: where its long payloads are */
    bool pool_mapped;
    bool broken; /* its ring held nonsense */
};

static struct {
    const struct mr_launch *launch;
    int *local_of; /* [size] local rank of a world rank, -1: on another node */
    struct mr_segment segment;
    struct mr_box *box; /* this rank's */
    struct peer *peers; /* [local_size], this rank's own entry included */
    int *senders;       /* local ranks whose rings are polled */
    int num_senders;
    struct mr_copier copier; /* into this rank's pool */
    uint32_t senders_version;
    int num_waiting; /* packets in all queues */
    size_t eager_max;
    bool sleepers;
    int num_asleep; /* threads of this process in mr_shm_sleep */
} shm = {.segment.fd = -1};

static int shm_init(const struct mr_launch *launch)
{
    shm.launch = launch;
    shm.local_of = malloc(launch->size * sizeof(*shm.local_of));
    if (!shm.local_of)
        return -ENOMEM;
    for (int r = 0; r < launch->size; r++)
        shm.local_of[r] = -1;
    for (int l = 0; l < launch->local_size; l++)
        shm.local_of[launch->local_ranks[l]] = l;
    if (launch->local_size == 1)
        return 0;
    if (launch->local_size > MR_BOX_RANKS) {
        mr_log(MR_LOG_ERROR, "%d ranks on this node; shared memory serves up to %d", launch->local_size, MR_BOX_RANKS);
        return -E2BIG;
    }
    return launch->local_rank == 0 ? mr_segment_create(&shm.segment, launch) : 0;
}

static int shm_ready(void)
{
    int ranks = shm.launch->local_size, me = shm.launch->local_rank, err;

    if (ranks == 1)
        return 0;
    err = mr_segment_open(&shm.segment, shm.launch);
    if (err) {
        mr_log(err == -EOWNERDEAD ? MR_LOG_INFO : MR_LOG_ERROR, "this node's shared memory is not usable: %s",
               strerror(-err));
        return err;
    }
    shm.box = &shm.segment.boxes[me];
    shm.sleepers = shm.segment.header->sleepers;
    shm.eager_max = mr_ring_max_payload(shm.segment.header->shape);
    if (shm.eager_max > mr_config.shm_eager_max)
        shm.eager_max = mr_config.shm_eager_max;
    shm.peers = calloc(ranks, sizeof(*shm.peers));
    shm.senders = calloc(ranks, sizeof(*shm.senders));
    if (!shm.peers || !shm.senders)
        return -ENOMEM;
    for (int l = 0; l < ranks; l++) {
        struct peer *p = &shm.peers[l];

        mr_ring_writer_init(&p->writer, mr_segment_ring(&shm.segment, me, l), shm.segment.header->shape);
        mr_ring_reader_init(&p->reader, mr_segment_ring(&shm.segment, l, me), shm.segment.header->shape,
                            (uint32_t)shm.launch->local_ranks[l]);
        mr_pool_init(&p->pool, mr_segment_pool(&shm.segment, l), shm.segment.header->pool);
        p->last = &p->first;
    }
    return 0;
}

static void shm_finalize(void)
{
    if (shm.peers)
        for (int l = 0; l < shm.launch->local_size; l++)
            while (shm.peers[l].first) {
                struct waiting *w = shm.peers[l].first;

                shm.peers[l].first = w->next;
                free(w);
            }
    mr_segment_close(&shm.segment);
    free(shm.peers);
    free(shm.senders);
    free(shm.local_of);
    mr_channel_waiting -= shm.num_waiting;
    memset(&shm, 0, sizeof(shm));
    shm.segment.fd = -1;
}

/* The first packet to this peer: have it poll our ring. */
static __attribute__((noinline)) void announce_sender(struct peer *p, int to)
{
    mr_box_announce(&shm.segment.boxes[to], shm.launch->local_rank);
    p->announced = true;
}

static int put_aside(struct peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct waiting *w = malloc(sizeof(*w) + len);

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
    shm.num_waiting++;
    mr_channel_waiting++;
    return 0;
}

/* There is something new in the ring. */
static inline void tell_receiver(struct peer *p, int to)
{
    if (__builtin_expect(!p->announced, 0))
        announce_sender(p, to);
    if (__builtin_expect(shm.sleepers, 0))
        mr_box_ring(&shm.segment.boxes[to]);
}

/*
 * All pages of a pool at once, when it is used for the first time: all will be used, and one by one that takes longer.
 * A kernel that does not know the request maps them one by one.
 */
static struct mr_pool *pool_of(int local, int how)
{
    struct peer *p = &shm.peers[local];

    if (__builtin_expect(!p->pool_mapped, 0)) {
        madvise(p->pool.lent, mr_pool_bytes(p->pool.shape), how);
        p->pool_mapped = true;
    }
    return &p->pool;
}

static struct mr_pool *my_pool(void)
{
    return pool_of(shm.launch->local_rank, MADV_POPULATE_WRITE);
}

/*
 * Where the payload of the next packet to this peer goes; NULL: there is no room. A long one goes into chunks of our
 * pool if some are free (*chunk: the first), else, as the short ones do, into the ring.
 */
static void *begin_packet(struct peer *p, size_t len, uint32_t *chunk)
{
    *chunk = MR_POOL_NONE;
    if (len < POOL_MIN)
        return mr_ring_begin(&p->writer, len);
    *chunk = mr_pool_find(my_pool(), mr_pool_count(my_pool(), len));
    if (*chunk == MR_POOL_NONE)
        return mr_ring_begin(&p->writer, len);
    return mr_ring_begin(&p->writer, 0) ? mr_pool_at(my_pool(), *chunk) : NULL;
}

static void commit_packet(struct peer *p, const struct mr_hdr *hdr, size_t len, uint32_t chunk)
{
    if (__builtin_expect(chunk == MR_POOL_NONE, 1)) {
        mr_ring_commit(&p->writer, hdr, len);
        return;
    }
    mr_stat_add(MR_STAT_SHM_POOLED, 1);
    mr_pool_lend(my_pool(), chunk, mr_pool_count(my_pool(), len));
    mr_ring_commit_far(&p->writer, hdr, chunk, len);
}

static bool write_packet(struct peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    uint32_t chunk;
    void *to = begin_packet(p, len, &chunk);

    if (__builtin_expect(!to, 0))
        return false;
    if (chunk != MR_POOL_NONE)
        mr_copy_out(&shm.copier, to, payload, len);
    else if (len)
        memcpy(to, payload, len);
    commit_packet(p, hdr, len, chunk);
    return true;
}

static int shm_send(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    int to = shm.local_of[mr_vc_world_rank(vc)];
    struct peer *p = &shm.peers[to];

    mr_stat_add(MR_STAT_SHM_SENT, 1);
    if (__builtin_expect(!vc->data, 0)) { /* from now on short messages come by shm_send_short */
        vc->data = p;
        mr_vc_set_short_below(vc, shm.eager_max < POOL_MIN ? shm.eager_max + 1 : POOL_MIN);
    }
    if (__builtin_expect(p->first != NULL, 0) || !write_packet(p, hdr, payload, len))
        return put_aside(p, hdr, payload, len);
    tell_receiver(p, to);
    return 0;
}

static bool shm_send_short(struct mr_vc *vc, const void *payload, size_t len, int rank, int tag, uint32_t ctx)
{
    struct peer *p = vc->data;
    struct mr_hdr hdr = {.note = vc->front.note, .seq = vc->next_seq, .rank = rank, .tag = tag, .ctx = ctx};

    if (__builtin_expect(!mr_ring_write_brief(&p->writer, &hdr, payload, len), 0))
        return false;
    mr_stat_add(MR_STAT_SHM_SENT, 1);
    tell_receiver(p, (int)(p - shm.peers));
    return true;
}

/* Straight into the ring, unless packets wait already. */
static int shm_send_made(struct mr_vc *vc, const struct mr_hdr *hdr, size_t len, void *scratch, mr_vc_make_fn *make,
                         const void *what)
{
    int local = shm.local_of[mr_vc_world_rank(vc)];
    struct peer *p = &shm.peers[local];
    uint32_t chunk;
    void *to = p->first ? NULL : begin_packet(p, len, &chunk);

    if (!to) {
        make(scratch, len, what);
        return shm_send(vc, hdr, scratch, len);
    }
    if (chunk != MR_POOL_NONE && mr_copy_streams(&shm.copier)) {
        make(scratch, len, what);
        mr_copy_out(&shm.copier, to, scratch, len);
    } else {
        make(to, len, what);
    }
    commit_packet(p, hdr, len, chunk);
    mr_stat_add(MR_STAT_SHM_SENT, 1);
    tell_receiver(p, local);
    return 0;
}

static int send_waiting(void)
{
    int n = 0;

    for (int l = 0; l < shm.launch->local_size && shm.num_waiting; l++) {
        struct peer *p = &shm.peers[l];
        int before = n;

        while (p->first && write_packet(p, &p->first->hdr, p->first->payload, p->first->len)) {
            struct waiting *w = p->first;

            p->first = w->next;
            if (!p->first)
                p->last = &p->first;
            free(w);
            p->num_waiting--;
            shm.num_waiting--;
            mr_channel_waiting--;
            n++;
        }
        if (n != before && shm.sleepers)
            mr_box_ring(&shm.segment.boxes[l]);
    }
    return n;
}

static unsigned shm_waiting(struct mr_vc *vc)
{
    return shm.peers[shm.local_of[mr_vc_world_rank(vc)]].num_waiting;
}

static void read_senders(void)
{
    struct mr_box *box = shm.box;

    shm.senders_version = mr_box_version(box);
    shm.num_senders = 0;
    for (int l = 0; l < shm.launch->local_size; l++)
        if (mr_box_has(box, l) && !shm.peers[l].broken)
            shm.senders[shm.num_senders++] = l;
}

static void give_up(int from)
{
    mr_log(MR_LOG_ERROR,
           "rank %d wrote an impossible packet into shared memory (its memory may be damaged); "
           "nothing more is taken from it",
           shm.launch->local_ranks[from]);
    shm.peers[from].broken = true;
    read_senders();
}

/*
 * The packet at the head of a ring, as mr_ring_peek; *chunk: the first in the sender's pool, to be given back, or none.
 */
static int peek_packet(int from, struct mr_hdr *hdr, const void **payload, size_t *len, uint32_t *chunk)
{
    struct mr_pool *pool;
    int got;

    *chunk = MR_POOL_NONE;
    got = mr_ring_peek(&shm.peers[from].reader, hdr, payload, len, chunk);
    if (got <= 0 || *payload)
        return got;
    pool = pool_of(from, MADV_POPULATE_READ);
    if (*chunk >= pool->shape.num_chunks || mr_pool_count(pool, *len) > pool->shape.num_chunks - *chunk)
        return -1;
    *payload = mr_pool_at(pool, *chunk);
    return 1;
}

static int poll_sender(int from)
{
    struct mr_ring_reader *r = &shm.peers[from].reader;
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
        if (got < 0 || hdr.src != (uint32_t)shm.launch->local_ranks[from]) {
            give_up(from);
            break;
        }
        mr_channel_up.arrived(&hdr, payload, len);
        if (chunk != MR_POOL_NONE)
            mr_pool_give_back(&shm.peers[from].pool, chunk, mr_pool_count(&shm.peers[from].pool, len));
        mr_ring_release(r);
    }
    return n;
}

static int shm_poll(void)
{
    int n = 0;

    if (!shm.segment.base)
        return 0;
    if (__builtin_expect(mr_box_changed(shm.box, shm.senders_version), 0))
        read_senders();
    for (int i = 0; i < shm.num_senders; i++)
        n += poll_sender(shm.senders[i]);
    if (__builtin_expect(shm.num_waiting, 0))
        n += send_waiting();
    return n;
}

static bool shm_drained(void)
{
    return !shm.num_waiting;
}

static bool shm_reaches(int world_rank)
{
    return shm.local_of[world_rank] >= 0 && world_rank != shm.launch->rank;
}

static size_t shm_eager_max(int world_rank)
{
    return shm.eager_max;
}

/* What fits into a ring in any case: the pool may be lent out. */
static size_t shm_packet_max(int world_rank)
{
    size_t room = mr_ring_max_payload(shm.segment.header->shape);

    return room < PACKET_MAX ? room : PACKET_MAX;
}

static unsigned shm_caps(int world_rank, size_t len)
{
    if (!mr_config.single_copy)
        return 0;
    /* for what fits a packet a system call takes longer */
    return len > (size_t)mr_config.shm_eager_max && !mr_cma_refused ? MR_VC_GET | MR_VC_WINDOW : MR_VC_GET;
}

bool mr_shm_oversubscribed(void)
{
    return shm.sleepers;
}

static bool anything_ready(void)
{
    if (mr_box_changed(shm.box, shm.senders_version))
        return true;
    for (int i = 0; i < shm.num_senders; i++)
        if (mr_ring_ready(&shm.peers[shm.senders[i]].reader))
            return true;
    return false;
}

void mr_shm_sleep(uint32_t timeout_us, bool (*done)(void *arg), void *arg)
{
    struct mr_box *box;

    if (!shm.segment.base || shm.num_waiting) {
        sched_yield();
        return;
    }
    box = shm.box;
    mr_box_doze(box);
    shm.num_asleep++;
    if (!anything_ready() && !(done && done(arg))) {
        mr_unlock();
        mr_box_sleep(box, timeout_us);
        mr_lock();
    }
    if (--shm.num_asleep == 0)
        mr_box_rise(box);
}

void mr_shm_ring(const int *world, int n)
{
    mr_box_order();
    for (int i = 0; i < n; i++)
        if (world[i] != shm.launch->rank)
            mr_box_rouse(&shm.segment.boxes[shm.local_of[world[i]]]);
}

void mr_shm_wake(void)
{
    if (shm.num_asleep)
        mr_box_wake(shm.box);
}

static struct mr_claims *shm_claims(struct mr_vc *vc, bool ours)
{
    return ours ? &shm.box->claims : &shm.segment.boxes[shm.local_of[mr_vc_world_rank(vc)]].claims;
}

const struct mr_channel_ops mr_channel_shm = {
    .name = "shm",
    .init = shm_init,
    .ready = shm_ready,
    .finalize = shm_finalize,
    .poll = shm_poll,
    .drained = shm_drained,
    .waiting = shm_waiting,
    .reaches = shm_reaches,
    .eager_max = shm_eager_max,
    .packet_max = shm_packet_max,
    .caps = shm_caps,
    .send = shm_send,
    .send_short = shm_send_short,
    .send_made = shm_send_made,
    .advertise = mr_cma_advertise,
    .withdraw = mr_cma_withdraw,
    .get = mr_cma_get,
    .move = mr_cma_move,
    .claims = shm_claims,
};
