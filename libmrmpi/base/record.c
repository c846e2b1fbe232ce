/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of a rank: making the file, and adding to its ring. */
#include "libmrmpi/base/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct mr_record *mr_record;
bool mr_record_events;

#define ALIGN         64
#define TALLIES_TAKEN (128u << 10) /* bytes: of 1024 ranks */

/* The setting with the rank for each %r; false: it is too long. */
static bool make_name(const char *setting, unsigned rank, char *out, size_t cap)
{
    size_t used = 0;

    for (const char *c = setting; *c; c++) {
        int n;

        if (c[0] == '%' && c[1] == 'r') {
            n = snprintf(out + used, cap - used, "%u", rank);
            c++;
        } else {
            n = snprintf(out + used, cap - used, "%c", *c);
        }
        used += (size_t)n;
        if (used >= cap)
            return false;
    }
    return true;
}

static uint64_t aligned(uint64_t at)
{
    return (at + ALIGN - 1) / ALIGN * ALIGN;
}

/*
 * Room on the device is taken now: a later store without room would kill the process. With thousands of ranks, most
 * bytes of the tables for each rank are never written, and take room only when written.
 */
static int reserve_record(int fd, const struct mr_record *header)
{
    uint64_t tallies = header->events_at - header->tally_at, size = mr_record_size(header);
    int err = ftruncate(fd, (off_t)size) ? errno : 0;

    if (!err)
        err = posix_fallocate(fd, 0, (off_t)(header->tally_at + (tallies < TALLIES_TAKEN ? tallies : TALLIES_TAKEN)));
    if (!err && size > header->events_at)
        err = posix_fallocate(fd, (off_t)header->events_at, (off_t)(size - header->events_at));
    return -err;
}

static int map_record(const char *name, const struct mr_record *header)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), err;
    void *at;

    if (fd < 0)
        return -errno;
    err = reserve_record(fd, header);
    at = err ? MAP_FAILED : mmap(NULL, mr_record_size(header), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!err && at == MAP_FAILED)
        err = -errno;
    if (err)
        unlink(name);
    else
        mr_record = at;
    close(fd);
    return err;
}

void mr_record_open(unsigned rank, unsigned num_ranks, const char *host)
{
    struct mr_record header = {.version = MR_RECORD_VERSION,
                               .size = sizeof header,
                               .rank = rank,
                               .num_ranks = num_ranks,
                               .num_events = (uint64_t)mr_config.record_events};
    char name[4096];
    int err;

    if (!mr_config.record || !*mr_config.record)
        return;
    header.tally_at = aligned(sizeof header);
    header.events_at =
        aligned(header.tally_at + (uint64_t)num_ranks * MR_RECORD_RAILS * sizeof(struct mr_record_tally));
    err = make_name(mr_config.record, rank, name, sizeof name) ? map_record(name, &header) : -ENAMETOOLONG;
    if (err) {
        mr_log(MR_LOG_WARN, "MRMPI_RECORD=%s cannot be written: %s", mr_config.record, strerror(-err));
        return;
    }
    header.began_ns = header.updated_ns = mr_clock_ns();
    snprintf(header.host, sizeof header.host, "%s", host ? host : "");
    *mr_record = header;
    __atomic_store_n(&mr_record->magic, MR_RECORD_MAGIC, __ATOMIC_RELEASE);
    mr_record_events = header.num_events > 0;
}

void mr_record_close(void)
{
    if (mr_record)
        munmap(mr_record, mr_record_size(mr_record));
    mr_record = NULL;
    mr_record_events = false;
}

void mr_record_put(const struct mr_record_event *event)
{
    struct mr_record_event *ring = (struct mr_record_event *)((char *)mr_record + mr_record->events_at);

    ring[mr_record->written % mr_record->num_events] = *event;
    __atomic_store_n(&mr_record->written, mr_record->written + 1, __ATOMIC_RELEASE);
}

struct mr_record_tally *mr_record_tally(unsigned rank, unsigned rail)
{
    return (struct mr_record_tally *)((char *)mr_record + mr_record->tally_at) + (size_t)rank * MR_RECORD_RAILS + rail;
}
