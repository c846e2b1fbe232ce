/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the records of ranks. */
#include "mrrun/records.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_sound(const struct mr_record *m, size_t size, int rank, int ranks)
{
    uint64_t tallies = (uint64_t)ranks * MR_RECORD_RAILS * sizeof(struct mr_record_tally);

    return size >= sizeof *m && m->magic == MR_RECORD_MAGIC && m->version == MR_RECORD_VERSION &&
           m->size == sizeof *m && m->rank == (unsigned)rank && m->num_ranks == (unsigned)ranks &&
           m->num_rails <= MR_RECORD_RAILS && m->tally_at >= sizeof *m && m->tally_at <= size &&
           m->events_at >= m->tally_at + tallies && m->events_at <= size &&
           m->num_events <= (size - m->events_at) / sizeof(struct mr_record_event) && m->tally_at % 8 == 0 &&
           m->events_at % 8 == 0;
}

static void read_one(struct record *rec, const char *name, int rank, int ranks)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    struct stat st;
    struct mr_record *m;

    if (fd < 0)
        return;
    m = fstat(fd, &st) || st.st_size < (off_t)sizeof *m
            ? MAP_FAILED
            : mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
    if (m == MAP_FAILED)
        return;
    if (!is_sound(m, (size_t)st.st_size, rank, ranks)) {
        munmap(m, (size_t)st.st_size);
        return;
    }
    m->host[sizeof m->host - 1] = 0;
    for (unsigned i = 0; i < MR_RECORD_RAILS; i++)
        m->rail[i].device[sizeof m->rail[i].device - 1] = 0;
    *rec = (struct record){.at = m, .size = (size_t)st.st_size};
}

int records_open(struct records *r, const char *directory)
{
    char name[PATH_MAX], number[16];

    r->of = calloc((size_t)r->ranks, sizeof *r->of);
    if (!r->of)
        return -1;
    for (int i = 0; i < r->ranks; i++) {
        snprintf(number, sizeof number, "%d", i);
        snprintf(name, sizeof name, RECORD_FILE, directory, number);
        read_one(&r->of[i], name, i, r->ranks);
    }
    return 0;
}

void records_close(struct records *r)
{
    for (int i = 0; r->of && i < r->ranks; i++)
        if (r->of[i].at)
            munmap(r->of[i].at, r->of[i].size);
    free(r->of);
    r->of = NULL;
}

const char *records_rail(const struct records *r, unsigned rank, unsigned rail)
{
    static char text[4][96];
    static unsigned next;
    const struct mr_record *m = rank < (unsigned)r->ranks ? r->of[rank].at : NULL;
    char *out = text[next++ % 4];

    if (m && rail < m->num_rails)
        snprintf(out, sizeof text[0], "%s:%u", m->rail[rail].device, m->rail[rail].port);
    else
        snprintf(out, sizeof text[0], "rail %u", rail);
    return out;
}

static void add_own(const struct mr_record *m, struct record_bytes *b)
{
    for (unsigned i = 0; i < m->num_rails; i++) {
        const uint64_t *c = m->rail[i].count;

        b[i].out += c[MR_RAIL_BYTES_SENT] + c[MR_RAIL_BYTES_WRITTEN];
        b[i].in += c[MR_RAIL_BYTES_RECEIVED] + c[MR_RAIL_BYTES_READ];
    }
}

struct record_bytes *records_bytes(const struct records *r)
{
    struct record_bytes *b = calloc((size_t)r->ranks * MR_RECORD_RAILS, sizeof *b);

    for (int i = 0; b && i < r->ranks; i++) {
        const struct mr_record *m = r->of[i].at;
        const struct mr_record_tally *t;

        if (!m)
            continue;
        add_own(m, b + (size_t)i * MR_RECORD_RAILS);
        t = (const struct mr_record_tally *)((const char *)m + m->tally_at);
        for (size_t k = 0; k < (size_t)r->ranks * MR_RECORD_RAILS; k++) {
            b[k].out += t[k].read;
            b[k].in += t[k].written;
        }
    }
    return b;
}

void json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20 || *c >= 0x7f) /* bytes beyond ASCII: as Latin-1, so the result is always UTF-8 */
            fprintf(out, "\\u%04x", *c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}
