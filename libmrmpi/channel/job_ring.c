/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a ring between jobs: see job_ring.h. */
#include "libmrmpi/channel/job_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE          ((size_t)4096)
#define SEALS_OF_SIZE (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static size_t file_bytes(struct mr_ring_shape shape)
{
    return (sizeof(struct mr_job_ring_head) + mr_ring_bytes(shape) + PAGE - 1) & ~(PAGE - 1);
}

static bool is_power(uint32_t n, uint32_t least, uint32_t most)
{
    return n >= least && n <= most && !(n & (n - 1));
}

bool mr_job_ring_is_possible(struct mr_ring_shape shape)
{
    return is_power(shape.num_slots, MR_JOB_RING_SLOTS_LEAST, MR_JOB_RING_SLOTS_MOST) &&
           is_power(shape.data_bytes, MR_JOB_RING_DATA_LEAST, MR_JOB_RING_DATA_MOST);
}

static int map_file(struct mr_job_ring *r, size_t bytes, int fd)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

    if (at == MAP_FAILED)
        return -errno;
    *r = (struct mr_job_ring){.head = at, .bytes = bytes};
    return 0;
}

int mr_job_ring_make(struct mr_job_ring *r, struct mr_ring_shape shape)
{
    int fd = memfd_create("mrmpi-jobs", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

    if (fd < 0)
        return -errno;
    err = ftruncate(fd, (off_t)file_bytes(shape)) || fcntl(fd, F_ADD_SEALS, SEALS_OF_SIZE)
              ? -errno
              : map_file(r, file_bytes(shape), fd);
    if (!err)
        return fd;
    close(fd);
    return err;
}

int mr_job_ring_join(struct mr_job_ring *r, struct mr_ring_shape shape, int fd)
{
    struct stat st;
    int seals;

    if (!mr_job_ring_is_possible(shape))
        return -EPROTO;
    seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) || (uint64_t)st.st_size != file_bytes(shape))
        return -EPROTO;
    return map_file(r, (size_t)st.st_size, fd);
}

void mr_job_ring_leave(struct mr_job_ring *r)
{
    if (r->head)
        munmap(r->head, r->bytes);
    *r = (struct mr_job_ring){0};
}
