/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For all ranks of a node one file in memory (base/memfile.h), made by the first of them, as in the channel inside a
 * node (channel/shm_segment.h). So they load and store in each other's parts. Before the parts are their headers.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/memfile.h"
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/rma/winmem/winmem.h"

#define LINE 64

struct mr_winmem {
    char *base;
    size_t bytes;
};

/* ---- one process at a time --------------------------------------------------------------------------------------- */

/* Between two checks whether the holder lives: it holds the lock for as long as a packet takes to be added. */
#define PATIENCE_NS 1000000

void mr_winmem_take(uint32_t *word)
{
    static uint32_t self;
    uint64_t asked_ns = 0;
    uint32_t holder = 0;

    if (!self)
        self = (uint32_t)getpid();
    while (!__atomic_compare_exchange_n(word, &holder, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        uint64_t now = mr_clock_ns();
        uint32_t dead = holder;

        if (!asked_ns)
            asked_ns = now;
        if (now - asked_ns >= PATIENCE_NS) {
            asked_ns = now;
            if (kill((pid_t)dead, 0) && errno == ESRCH &&
                __atomic_compare_exchange_n(word, &dead, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return;
        }
        sched_yield();
        holder = 0;
    }
}

void mr_winmem_give(uint32_t *word)
{
    __atomic_store_n(word, 0, __ATOMIC_RELEASE);
}

/* ---- ranks by node ----------------------------------------------------------------------------------------------- */

static bool is_here(const struct mr_comm *c, int rank)
{
    return mr_comm_node_of(c, rank) == mr_comm_node_of(c, c->rank);
}

/*
 * The first part begins this far behind a page, since a program's memory begins at a page or a few bytes behind, and
 * source and target of a copy shall not lie alike in their pages: processors take a load for one of a recent store if
 * the lower 12 bits of the addresses are the same (AMD: gets to 16 to 48 bytes behind take 1.3 times as long).
 */
#define INTO_PAGE 512

/* The layout: the same for all ranks of the node. */
struct plan {
    int first;                     /* of this node */
    size_t header, headers, bytes; /* header: of one part */
    size_t grain;                  /* distance of parts in bytes, or a divisor of it */
};

static size_t round_up_size(size_t n, size_t grain)
{
    return (n + grain - 1) / grain * grain;
}

/* False: more than the address space. */
static bool plan_segment(const struct mr_comm *c, const struct mr_winmem_part *part, size_t header, bool page_aligned,
                         struct plan *p)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), most = SIZE_MAX / 4;
    size_t ranks = 0;

    *p = (struct plan){.first = -1, .header = round_up_size(header, LINE), .grain = page_aligned ? page : 1};
    for (int i = 0; i < c->size; i++)
        if (is_here(c, i)) {
            if (p->first < 0)
                p->first = i;
            ranks++;
            if (part[i].size > most - p->bytes)
                return false;
            p->bytes += round_up_size(part[i].size, p->grain);
        }
    p->headers = round_up_size(ranks * p->header, page) + INTO_PAGE;
    p->bytes += p->headers;
    return true;
}

static void place_parts(const struct mr_comm *c, struct mr_winmem_part *part, const struct plan *p, char *base)
{
    char *header = base, *at = base + p->headers;

    for (int i = 0; i < c->size; i++)
        if (is_here(c, i)) {
            part[i].header = header;
            part[i].at = at;
            header += p->header;
            at += round_up_size(part[i].size, p->grain);
        }
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

/* The message of a node's first rank to the others; fd -1: failed. */
struct place {
    int32_t pid, fd;
};

static struct place create_segment(const struct plan *p)
{
    return (struct place){.pid = getpid(), .fd = mr_memfile_make("mrmpi-window", p->bytes)};
}

static int open_place(const struct place *at, const struct plan *p)
{
    return at->fd < 0 ? -1 : mr_memfile_open(at->pid, at->fd, p->bytes);
}

/* After the return all ranks know whether all have it; 1: not all. */
static enum mr_err any_has_failed(struct mr_comm *c, int failed, int *any_failed)
{
    struct mr_schedule *s = NULL;
    enum mr_err err =
        mr_coll_allreduce(&failed, any_failed, 1, &mr_type_basic[MR_BASIC_INT], &mr_op_builtin[MR_OP_MAX], c, &s);

    return mr_coll_run(err, s);
}

static enum mr_err tell_places(struct mr_comm *c, struct place *mine, struct place *all)
{
    struct mr_schedule *s = NULL;
    enum mr_err err = mr_coll_allgather(mine, sizeof(*mine), mr_type_byte, all, sizeof(*all), mr_type_byte, c, &s);

    return mr_coll_run(err, s);
}

void mr_winmem_drop(struct mr_winmem *m)
{
    if (!m)
        return;
    munmap(m->base, m->bytes);
    free(m);
}

static struct mr_winmem *map_place(int fd, size_t bytes)
{
    struct mr_winmem *m = malloc(sizeof(*m));

    if (m)
        *m = (struct mr_winmem){.base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0),
                                .bytes = bytes};
    if (m && m->base == MAP_FAILED) {
        free(m);
        m = NULL;
    }
    return m;
}

enum mr_err mr_winmem_make(struct mr_comm *c, size_t header_bytes, bool page_aligned, struct mr_winmem_part *part,
                           struct mr_winmem **out)
{
    struct place mine = {.fd = -1}, *all = calloc((size_t)c->size, sizeof(*all));
    struct mr_winmem *m = NULL;
    struct plan p;
    bool fits = plan_segment(c, part, header_bytes, page_aligned, &p);
    int fd = -1, any_failed = 0;
    enum mr_err err;

    if (fits && p.first == c->rank)
        mine = create_segment(&p);
    err = all ? tell_places(c, &mine, all) : MR_ERR_NO_MEM;
    if (!err && fits)
        fd = p.first == c->rank ? mine.fd : open_place(&all[p.first], &p);
    if (fd >= 0)
        m = map_place(fd, p.bytes);
    if (!err)
        err = any_has_failed(c, !m, &any_failed);
    if (fd >= 0 && fd != mine.fd)
        close(fd);
    if (mine.fd >= 0)
        close(mine.fd);
    free(all);
    if (!err && !any_failed) {
        place_parts(c, part, &p, m->base);
        *out = m;
        return MR_SUCCESS;
    }
    mr_winmem_drop(m);
    return err ? err : mr_fail(MR_ERR_RMA_SHARED, "the processes of a node cannot share memory for this window");
}
