/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channel shm: packets between the ranks of one node.
 *
 * One memory segment per node, a memfd of the node's first rank, which the others open through /proc/PID/fd/N: no name
 * in any file system ever exists, so nothing is left behind however the job ends. Which ranks share a node is the
 * launcher's word.
 *
 * The segment holds a line for each rank (who sends to it, whether it sleeps) and a ring for each ordered pair of
 * ranks. Rings that are never used cost addresses, not memory. A receiver polls only the rings of ranks that have ever
 * sent to it: the first packet of a pair puts the sender's bit into the receiver's line.
 *
 * A packet that finds its ring full waits in a queue in private memory; poll writes it when there is space. Long
 * payloads lie in the sender's pool (shm_pool.h), the third thing in the segment.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/channel/cma.h"
#include "libmrmpi/channel/shm.h"
#include "libmrmpi/channel/shm_copy.h"
#include "libmrmpi/channel/shm_pool.h"
#include "libmrmpi/channel/shm_ring.h"
#include "libmrmpi/launch/launch.h"

#define SHM_MAGIC    0x6d726d7073686d32u
#define SHM_CARD_KEY "mrmpi.shm"
#define RANKS_MAX    1024 /* on one node */
#define POLL_BATCH   16   /* packets taken from one ring before the next has its turn */
#define PACKET_MAX   (64u << 10)
#define POOL_MIN     4096 /* shorter payloads go into the ring's own data area */

struct header {
    uint64_t magic, bytes;
    uint32_t num_ranks;
    uint32_t sleepers; /* more ranks than cores: receivers may sleep, senders ring */
    struct mr_ring_shape shape;
    struct mr_pool_shape pool;
};

/* A rank's line: written by those who send to it. */
struct mailbox {
    _Alignas(64) uint32_t asleep; /* futex */
    _Alignas(64) uint32_t senders_version;
    uint64_t senders[RANKS_MAX / 64];
};

/* What the first rank publishes. */
struct card {
    uint64_t magic, bytes;
    int32_t pid, fd;
    uint64_t pids; /* which namespace pid is a number of */
};

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
    int fd;
    uint8_t *base;
    struct header *header;
    struct mailbox *boxes;
    struct peer *peers; /* [local_size], this rank's own entry included */
    int *senders;       /* local ranks whose rings are polled */
    int num_senders;
    struct mr_copier copier; /* into this rank's pool */
    uint32_t senders_version;
    int num_waiting; /* packets in all queues */
    size_t eager_max;
    bool sleepers;
    int num_asleep; /* threads of this process in mr_shm_sleep */
} shm = {.fd = -1};

static size_t boxes_offset(void)
{
    return (sizeof(struct header) + 63) & ~(size_t)63;
}

static size_t rings_offset(int ranks)
{
    return (boxes_offset() + (size_t)ranks * sizeof(struct mailbox) + 4095) & ~(size_t)4095;
}

static size_t ring_stride(struct mr_ring_shape shape)
{
    return (mr_ring_bytes(shape) + 4095) & ~(size_t)4095;
}

static size_t pools_offset(int ranks, struct mr_ring_shape shape)
{
    return rings_offset(ranks) + (size_t)ranks * ranks * ring_stride(shape);
}

static size_t segment_bytes(int ranks, struct mr_ring_shape shape, struct mr_pool_shape pool)
{
    return pools_offset(ranks, shape) + (size_t)ranks * mr_pool_bytes(pool);
}

static void *pool_at(int local)
{
    return shm.base + pools_offset(shm.launch->local_size, shm.header->shape) +
           (size_t)local * mr_pool_bytes(shm.header->pool);
}

static void *ring_at(int from, int to)
{
    size_t index = (size_t)to * shm.launch->local_size + from;

    return shm.base + rings_offset(shm.launch->local_size) + index * ring_stride(shm.header->shape);
}

/* Few ranks get deep rings; with many the memory of a pair matters more than the depth of its ring. */
static struct mr_ring_shape choose_shape(int ranks)
{
    if (ranks <= 4)
        return (struct mr_ring_shape){.num_slots = 256, .data_bytes = 256 << 10};
    if (ranks <= 16)
        return (struct mr_ring_shape){.num_slots = 128, .data_bytes = 128 << 10};
    return (struct mr_ring_shape){.num_slots = 64, .data_bytes = 32 << 10};
}

/* Larger than a core's own cache; where ranks are many, their pools together are that. */
static struct mr_pool_shape choose_pool(int ranks)
{
    return (struct mr_pool_shape){.num_chunks = ranks <= 16 ? 512 : 128, .chunk_bytes = 4096};
}

static bool more_ranks_than_cores(int ranks)
{
    cpu_set_t set;

    if (mr_config.oversubscribed >= 0)
        return mr_config.oversubscribed;
    if (sched_getaffinity(0, sizeof(set), &set))
        return false;
    /* A rank bound to one core says nothing of the node. */
    return ranks > (CPU_COUNT(&set) > 1 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN));
}

static uint64_t pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

static int create_segment(void)
{
    int ranks = shm.launch->local_size;
    struct header h = {
        .magic = SHM_MAGIC, .num_ranks = ranks, .shape = choose_shape(ranks), .pool = choose_pool(ranks)};

    h.bytes = segment_bytes(ranks, h.shape, h.pool);
    h.sleepers = more_ranks_than_cores(ranks);
    shm.fd = memfd_create("mrmpi", MFD_CLOEXEC);
    if (shm.fd < 0 || ftruncate(shm.fd, h.bytes) || pwrite(shm.fd, &h, sizeof(h), 0) != sizeof(h)) {
        mr_log(MR_LOG_ERROR, "no shared memory of %llu bytes for the %d ranks of this node: %m",
               (unsigned long long)h.bytes, ranks);
        return errno ? -errno : -EIO;
    }
    return mr_launch_put(
        SHM_CARD_KEY,
        &(struct card){.magic = SHM_MAGIC, .bytes = h.bytes, .pid = getpid(), .fd = shm.fd, .pids = pid_namespace()},
        sizeof(struct card));
}

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
    if (launch->local_size > RANKS_MAX) {
        mr_log(MR_LOG_ERROR, "%d ranks on this node; shared memory serves up to %d", launch->local_size, RANKS_MAX);
        return -E2BIG;
    }
    return launch->local_rank == 0 ? create_segment() : 0;
}

/* -EOWNERDEAD: the rank that made it has ended already. That is no fault of this node: whoever ended it says why. */
static int open_segment(size_t *bytes)
{
    struct card card;
    size_t len;
    char path[64];
    int err = mr_launch_get(shm.launch->local_ranks[0], SHM_CARD_KEY, &card, sizeof(card), &len);

    if (err || len != sizeof(card) || card.magic != SHM_MAGIC) {
        mr_log(MR_LOG_ERROR, "rank %d did not say where this node's shared memory is", shm.launch->local_ranks[0]);
        return err ? err : -EPROTO;
    }
    *bytes = card.bytes;
    if (shm.fd >= 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", card.pid, card.fd);
    shm.fd = open(path, O_RDWR | O_CLOEXEC);
    if (shm.fd < 0) {
        err = errno;
        if ((err == ENOENT || err == ESRCH) && card.pids == pid_namespace())
            return -EOWNERDEAD;
        errno = err;
        mr_log(MR_LOG_ERROR,
               "cannot open the shared memory of rank %d at %s: %m; ranks of one node must run as one "
               "user and see each other's processes",
               shm.launch->local_ranks[0], path);
        return -err;
    }
    return 0;
}

static int map_segment(size_t bytes)
{
    int ranks = shm.launch->local_size;
    struct stat st;

    if (fstat(shm.fd, &st) || (uint64_t)st.st_size != bytes || bytes < rings_offset(ranks))
        return -EPROTO;
    shm.base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, shm.fd, 0);
    if (shm.base == MAP_FAILED) {
        shm.base = NULL;
        return -errno;
    }
    shm.header = (struct header *)shm.base;
    if (shm.header->magic != SHM_MAGIC || shm.header->num_ranks != (uint32_t)ranks || shm.header->bytes != bytes ||
        segment_bytes(ranks, shm.header->shape, shm.header->pool) != bytes)
        return -EPROTO;
    shm.boxes = (struct mailbox *)(shm.base + boxes_offset());
    shm.sleepers = shm.header->sleepers;
    shm.eager_max = mr_ring_max_payload(shm.header->shape);
    if (shm.eager_max > mr_config.shm_eager_max)
        shm.eager_max = mr_config.shm_eager_max;
    return 0;
}

static int shm_ready(void)
{
    int ranks = shm.launch->local_size, err;
    size_t bytes;

    if (ranks == 1)
        return 0;
    err = open_segment(&bytes);
    if (!err)
        err = map_segment(bytes);
    if (err) {
        mr_log(err == -EOWNERDEAD ? MR_LOG_INFO : MR_LOG_ERROR, "this node's shared memory is not usable: %s",
               strerror(-err));
        return err;
    }
    shm.peers = calloc(ranks, sizeof(*shm.peers));
    shm.senders = calloc(ranks, sizeof(*shm.senders));
    if (!shm.peers || !shm.senders)
        return -ENOMEM;
    for (int l = 0; l < ranks; l++) {
        struct peer *p = &shm.peers[l];

        mr_ring_writer_init(&p->writer, ring_at(shm.launch->local_rank, l), shm.header->shape);
        mr_ring_reader_init(&p->reader, ring_at(l, shm.launch->local_rank), shm.header->shape);
        mr_pool_init(&p->pool, pool_at(l), shm.header->pool);
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
    if (shm.base)
        munmap(shm.base, shm.header->bytes);
    if (shm.fd >= 0)
        close(shm.fd);
    free(shm.peers);
    free(shm.senders);
    free(shm.local_of);
    mr_channel_waiting -= shm.num_waiting;
    memset(&shm, 0, sizeof(shm));
    shm.fd = -1;
}

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

/* Wake the receiver if it sleeps. The fence orders the packet before the look; the sleeper does the reverse. */
static void ring_bell(int to)
{
    struct mailbox *box = &shm.boxes[to];

    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&box->asleep, __ATOMIC_RELAXED) && __atomic_exchange_n(&box->asleep, 0, __ATOMIC_ACQ_REL))
        futex(&box->asleep, FUTEX_WAKE, INT_MAX, NULL);
}

/* The first packet to this peer: have it poll our ring. */
static void announce(struct peer *p, int to)
{
    int me = shm.launch->local_rank;

    __atomic_fetch_or(&shm.boxes[to].senders[me / 64], UINT64_C(1) << (me % 64), __ATOMIC_RELEASE);
    __atomic_fetch_add(&shm.boxes[to].senders_version, 1, __ATOMIC_RELEASE);
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
static inline void tell(struct peer *p, int to)
{
    if (__builtin_expect(!p->announced, 0))
        announce(p, to);
    if (__builtin_expect(shm.sleepers, 0))
        ring_bell(to);
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
static void *begin(struct peer *p, size_t len, uint32_t *chunk)
{
    *chunk = MR_POOL_NONE;
    if (len < POOL_MIN)
        return mr_ring_begin(&p->writer, len);
    *chunk = mr_pool_find(my_pool(), mr_pool_count(my_pool(), len));
    if (*chunk == MR_POOL_NONE)
        return mr_ring_begin(&p->writer, len);
    return mr_ring_begin(&p->writer, 0) ? mr_pool_at(my_pool(), *chunk) : NULL;
}

static void commit(struct peer *p, const struct mr_hdr *hdr, size_t len, uint32_t chunk)
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
    void *to = begin(p, len, &chunk);

    if (__builtin_expect(!to, 0))
        return false;
    if (chunk != MR_POOL_NONE)
        mr_copy_out(&shm.copier, to, payload, len);
    else if (len)
        memcpy(to, payload, len);
    commit(p, hdr, len, chunk);
    return true;
}

static int shm_send(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    int to = shm.local_of[mr_vc_world_rank(vc)];
    struct peer *p = &shm.peers[to];

    mr_stat_add(MR_STAT_SHM_SENT, 1);
    if (__builtin_expect(p->first != NULL, 0) || !write_packet(p, hdr, payload, len))
        return put_aside(p, hdr, payload, len);
    tell(p, to);
    return 0;
}

/* Straight into the ring, unless packets wait already. */
static int shm_send_made(struct mr_vc *vc, const struct mr_hdr *hdr, size_t len, void *scratch, mr_vc_make_fn *make,
                         const void *what)
{
    int local = shm.local_of[mr_vc_world_rank(vc)];
    struct peer *p = &shm.peers[local];
    uint32_t chunk;
    void *to = p->first ? NULL : begin(p, len, &chunk);

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
    commit(p, hdr, len, chunk);
    mr_stat_add(MR_STAT_SHM_SENT, 1);
    tell(p, local);
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
            ring_bell(l);
    }
    return n;
}

static unsigned shm_waiting(struct mr_vc *vc)
{
    return shm.peers[shm.local_of[mr_vc_world_rank(vc)]].num_waiting;
}

static void read_senders(void)
{
    struct mailbox *box = &shm.boxes[shm.launch->local_rank];

    shm.senders_version = __atomic_load_n(&box->senders_version, __ATOMIC_ACQUIRE);
    shm.num_senders = 0;
    for (int l = 0; l < shm.launch->local_size; l++)
        if (__atomic_load_n(&box->senders[l / 64], __ATOMIC_ACQUIRE) >> (l % 64) & 1 && !shm.peers[l].broken)
            shm.senders[shm.num_senders++] = l;
}

static bool senders_changed(void)
{
    return __atomic_load_n(&shm.boxes[shm.launch->local_rank].senders_version, __ATOMIC_RELAXED) != shm.senders_version;
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

/* The packet at the head of a ring, as mr_ring_peek; *chunk: the first in the sender's pool, to be given back, or none.
 */
static int peek(int from, struct mr_hdr *hdr, const void **payload, size_t *len, uint32_t *chunk)
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
        got = peek(from, &hdr, &payload, &len, &chunk);
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

    if (!shm.base)
        return 0;
    if (__builtin_expect(senders_changed(), 0))
        read_senders();
    for (int i = 0; i < shm.num_senders; i++)
        n += poll_sender(shm.senders[i]);
    if (__builtin_expect(shm.num_waiting, 0))
        n += send_waiting();
    return n;
}

static bool shm_drained(void)
{
    return shm.num_waiting == 0;
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
    size_t room = mr_ring_max_payload(shm.header->shape);

    return room < PACKET_MAX ? room : PACKET_MAX;
}

static unsigned shm_caps(int world_rank, size_t len)
{
    return mr_config.single_copy ? MR_VC_GET : 0;
}

static int shm_put(struct mr_vc *vc, const void *buf, size_t len, const struct mr_remote *dst, uint64_t rreq,
                   void *cookie)
{
    return -ENOTSUP;
}

bool mr_shm_oversubscribed(void)
{
    return shm.sleepers;
}

static bool anything_ready(void)
{
    if (senders_changed())
        return true;
    for (int i = 0; i < shm.num_senders; i++)
        if (mr_ring_ready(&shm.peers[shm.senders[i]].reader))
            return true;
    return false;
}

void mr_shm_sleep(uint32_t timeout_us)
{
    struct timespec timeout = {.tv_sec = timeout_us / 1000000, .tv_nsec = timeout_us % 1000000 * 1000};
    uint32_t *asleep;

    if (!shm.base || shm.num_waiting) {
        sched_yield();
        return;
    }
    asleep = &shm.boxes[shm.launch->local_rank].asleep;
    __atomic_store_n(asleep, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    shm.num_asleep++;
    if (!anything_ready()) {
        mr_unlock();
        futex(asleep, FUTEX_WAIT, 1, &timeout);
        mr_lock();
    }
    if (--shm.num_asleep == 0)
        __atomic_store_n(asleep, 0, __ATOMIC_RELAXED);
}

void mr_shm_wake(void)
{
    if (shm.num_asleep)
        futex(&shm.boxes[shm.launch->local_rank].asleep, FUTEX_WAKE, INT_MAX, NULL);
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
    .send_made = shm_send_made,
    .advertise = mr_cma_advertise,
    .withdraw = mr_cma_withdraw,
    .put = shm_put,
    .get = mr_cma_get,
};
