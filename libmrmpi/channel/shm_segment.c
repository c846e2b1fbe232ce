/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's shared memory: its layout, its creation, and its discovery by the other ranks. */
#include "libmrmpi/channel/shm_segment.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/memfile.h"
#include "libmrmpi/launch/launch.h"

#define SHM_MAGIC 0x6d726d7073686d34u
#define SHM_KEY   "mrmpi.shm"

/* The first rank's publication. */
struct segment_place {
    uint64_t magic, bytes;
    int32_t pid, fd;
    uint64_t pids; /* the namespace of pid */
};

/* ---- layout ------------------------------------------------------------------------------------------------------ */

static size_t boxes_offset(void)
{
    return (sizeof(struct mr_segment_header) + 63) & ~(size_t)63;
}

static size_t rings_offset(int ranks)
{
    return (boxes_offset() + (size_t)ranks * sizeof(struct mr_box) + 4095) & ~(size_t)4095;
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

void *mr_segment_pool(const struct mr_segment *s, int local)
{
    return s->base + pools_offset(s->ranks, s->header->shape) + (size_t)local * mr_pool_bytes(s->header->pool);
}

void *mr_segment_ring(const struct mr_segment *s, int from, int to)
{
    size_t index = (size_t)to * s->ranks + from;

    return s->base + rings_offset(s->ranks) + index * ring_stride(s->header->shape);
}

/* ---- creation by the first rank of the node ---------------------------------------------------------------------- */

/* Few ranks get deep rings; with many the memory of a pair matters more than the depth of its ring. */
static struct mr_ring_shape choose_shape(int ranks)
{
    if (ranks <= 4)
        return (struct mr_ring_shape){.num_slots = 128, .data_bytes = 256 << 10};
    if (ranks <= 16)
        return (struct mr_ring_shape){.num_slots = 64, .data_bytes = 128 << 10};
    return (struct mr_ring_shape){.num_slots = 32, .data_bytes = 32 << 10};
}

/* Larger than a core's own cache; where ranks are many, their pools together are that. */
static struct mr_pool_shape choose_pool(int ranks)
{
    return (struct mr_pool_shape){.num_chunks = ranks <= 16 ? 512 : 128, .chunk_bytes = 4096};
}

static uint64_t pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

int mr_segment_create(struct mr_segment *s, const struct mr_launch *launch)
{
    int ranks = launch->local_size;
    struct mr_segment_header h = {
        .magic = SHM_MAGIC, .num_ranks = ranks, .shape = choose_shape(ranks), .pool = choose_pool(ranks)};

    h.bytes = segment_bytes(ranks, h.shape, h.pool);
    s->fd = mr_memfile_make("mrmpi", h.bytes);
    if (s->fd < 0 || pwrite(s->fd, &h, sizeof(h), 0) != sizeof(h)) {
        mr_log(MR_LOG_ERROR, "no shared memory of %llu bytes for the %d ranks of this node: %m",
               (unsigned long long)h.bytes, ranks);
        return errno ? -errno : -EIO;
    }
    return mr_launch_put(
        SHM_KEY,
        &(struct segment_place){
            .magic = SHM_MAGIC, .bytes = h.bytes, .pid = getpid(), .fd = s->fd, .pids = pid_namespace()},
        sizeof(struct segment_place));
}

/* ---- mapping by all ---------------------------------------------------------------------------------------------- */

/* The size published by its maker goes to *bytes. */
static int open_segment(struct mr_segment *s, const struct mr_launch *launch, size_t *bytes)
{
    struct segment_place place;
    size_t len;
    int err = mr_launch_get(launch->local_ranks[0], SHM_KEY, &place, sizeof(place), &len);

    if (err || len != sizeof(place) || place.magic != SHM_MAGIC) {
        mr_log(MR_LOG_ERROR, "rank %d did not say where this node's shared memory is", launch->local_ranks[0]);
        return err ? err : -EPROTO;
    }
    *bytes = place.bytes;
    if (s->fd >= 0)
        return 0;
    s->fd = mr_memfile_open(place.pid, place.fd, place.bytes);
    if (s->fd < 0) {
        err = errno;
        if ((err == ENOENT || err == ESRCH) && place.pids == pid_namespace())
            return -EOWNERDEAD;
        errno = err;
        mr_log(MR_LOG_ERROR,
               "cannot open the shared memory of rank %d at /proc/%d/fd/%d: %m; ranks of one node must run as one "
               "user and see each other's processes",
               launch->local_ranks[0], place.pid, place.fd);
        return -err;
    }
    return 0;
}

static int map_segment(struct mr_segment *s, int ranks, size_t bytes)
{
    if (bytes < rings_offset(ranks))
        return -EPROTO;
    s->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd, 0);
    if (s->base == MAP_FAILED) {
        s->base = NULL;
        return -errno;
    }
    s->ranks = ranks;
    s->header = (struct mr_segment_header *)s->base;
    if (s->header->magic != SHM_MAGIC || s->header->num_ranks != (uint32_t)ranks || s->header->bytes != bytes ||
        segment_bytes(ranks, s->header->shape, s->header->pool) != bytes)
        return -EPROTO;
    s->boxes = (struct mr_box *)(s->base + boxes_offset());
    return 0;
}

/* The last rank of the node to come finds out whether there are more ranks than cores, unless a setting decides. */
static void join(struct mr_segment *s)
{
    struct mr_cores mine;
    bool crowded;

    mr_cores_mine(&mine);
    crowded = mr_cores_join(&s->header->cores, &mine, s->ranks);
    if (mr_config.oversubscribed >= 0)
        crowded = mr_config.oversubscribed;
    if (crowded && !(__atomic_fetch_or(&s->header->bell, MR_BELL_ALWAYS, __ATOMIC_SEQ_CST) & MR_BELL_ALWAYS))
        mr_log(MR_LOG_INFO, "the %d ranks of this host have fewer cores: those that wait soon sleep", s->ranks);
}

static bool job_is_whole(void)
{
    return !mr_launch_failed();
}

/*
 * The memory can be opened only while its maker lives. So the maker stays in MPI_Init until all have opened it: if its
 * process ends right after MPI_Init, its peers are in MPI_COMM_WORLD nevertheless, and the maker alone is to blame.
 */
int mr_segment_open(struct mr_segment *s, const struct mr_launch *launch)
{
    size_t bytes;
    int err = open_segment(s, launch, &bytes);

    if (!err)
        err = map_segment(s, launch->local_size, bytes);
    if (err)
        return err;
    join(s);
    if (launch->local_rank == 0)
        mr_cores_await(&s->header->cores, s->ranks, job_is_whole);
    return 0;
}

void mr_segment_close(struct mr_segment *s)
{
    if (s->base)
        munmap(s->base, s->header->bytes);
    if (s->fd >= 0)
        close(s->fd);
    *s = (struct mr_segment){.fd = -1};
}
