/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of windows that MPI allocates: for all ranks of a node one memfd, made by the first of them and opened by
 * the others through /proc, as the channel inside a node does (channel/shm_segment.h). So they load and store in each
 * other's parts. Before the parts are their mutexes, which those take who accumulate.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libmrmpi/coll/coll.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/rma/memory.h"

struct mr_node_memory {
    char *base;
    size_t bytes;
};

/* ---- mutexes ---------------------------------------------------------------------------------------------------- */

/* Looks between two questions whether the holder lives: a mutex is held for as long as a packet takes to be added. */
#define MUTEX_PATIENCE 1000

void mr_rma_mutex_take(struct mr_rma_mutex *g)
{
    static uint32_t self;
    uint32_t holder = 0;

    if (!g)
        return;
    if (!self)
        self = (uint32_t)getpid();
    for (unsigned looks = 1;
         !__atomic_compare_exchange_n(&g->holder, &holder, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED); looks++) {
        uint32_t dead = holder;

        if (looks % MUTEX_PATIENCE == 0 && kill((pid_t)dead, 0) && errno == ESRCH &&
            __atomic_compare_exchange_n(&g->holder, &dead, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        sched_yield();
        holder = 0;
    }
}

void mr_rma_mutex_give(struct mr_rma_mutex *g)
{
    if (g)
        __atomic_store_n(&g->holder, 0, __ATOMIC_RELEASE);
}

/* ---- who is on which node ---------------------------------------------------------------------------------------- */

static int node_of(const struct mr_win *w, int rank)
{
    return mr_launch_info()->node_of[mr_comm_world_rank(w->comm, rank)];
}

static bool is_here(const struct mr_win *w, int rank)
{
    return node_of(w, rank) == node_of(w, w->comm->rank);
}

/* What lies where: the same for all ranks of the node. */
struct plan {
    int first, ranks;             /* the first of this node, and how many they are */
    size_t mutex, mutexes, bytes; /* mutex: of one part, with a slot of its lock for each rank of the window */
    size_t grain;                 /* parts begin at multiples of it */
};

static size_t round_up(size_t n, size_t grain)
{
    return (n + grain - 1) / grain * grain;
}

/* False: it is more than there are addresses. */
static bool make_plan(const struct mr_win *w, bool page_aligned, struct plan *p)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), most = SIZE_MAX / 4;

    *p = (struct plan){.first = -1, .grain = page_aligned ? page : 1};
    for (int i = 0; i < w->comm->size; i++)
        if (is_here(w, i)) {
            if (p->first < 0)
                p->first = i;
            p->ranks++;
            if (w->in->target[i].size > most - p->bytes)
                return false;
            p->bytes += round_up(w->in->target[i].size, p->grain);
        }
    p->mutex = round_up(sizeof(struct mr_rma_mutex) + (size_t)w->comm->size, _Alignof(struct mr_rma_mutex));
    p->mutexes = round_up((size_t)p->ranks * p->mutex, page);
    p->bytes += p->mutexes;
    return true;
}

static void place_parts(struct mr_win *w, const struct plan *p, char *base)
{
    char *mutex = base, *at = base + p->mutexes;

    for (int i = 0; i < w->comm->size; i++)
        if (is_here(w, i)) {
            struct mr_win_target *t = &w->in->target[i];

            t->mutex = (struct mr_rma_mutex *)mutex;
            t->local = at;
            mutex += p->mutex;
            at += round_up(t->size, p->grain);
        }
    w->base = w->in->target[w->comm->rank].local;
}

/* ---- making it --------------------------------------------------------------------------------------------------- */

/* What the first rank of a node tells the others; fd -1: it could not. */
struct place {
    int32_t pid, fd;
};

static struct place create(const struct plan *p)
{
    struct place made = {.pid = getpid(), .fd = memfd_create("mrmpi-window", MFD_CLOEXEC)};

    if (made.fd >= 0 && ftruncate(made.fd, (off_t)p->bytes)) {
        close(made.fd);
        made.fd = -1;
    }
    return made;
}

static int open_place(const struct place *at, const struct plan *p)
{
    struct stat st;
    char path[64];
    int fd;

    if (at->fd < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", at->pid, at->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) || (uint64_t)st.st_size != p->bytes)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* All know when it returns whether all have it; 1: not all. */
static enum mr_err agree(const struct mr_win *w, int failed, int *any_failed)
{
    struct mr_schedule *s = NULL;
    enum mr_err err =
        mr_coll_allreduce(&failed, any_failed, 1, &mr_type_basic[MR_BASIC_INT], &mr_op_builtin[MR_OP_MAX], w->comm, &s);

    return mr_coll_run(err, s);
}

static enum mr_err tell_places(const struct mr_win *w, struct place *mine, struct place *all)
{
    struct mr_schedule *s = NULL;
    enum mr_err err =
        mr_coll_allgather(mine, sizeof(*mine), mr_type_byte, all, sizeof(*all), mr_type_byte, w->comm, &s);

    return mr_coll_run(err, s);
}

void mr_node_memory_drop(struct mr_node_memory *m)
{
    if (!m)
        return;
    munmap(m->base, m->bytes);
    free(m);
}

static struct mr_node_memory *map_place(int fd, size_t bytes)
{
    struct mr_node_memory *m = malloc(sizeof(*m));

    if (m)
        *m = (struct mr_node_memory){
            .base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0), .bytes = bytes};
    if (m && m->base == MAP_FAILED) {
        free(m);
        m = NULL;
    }
    return m;
}

enum mr_err mr_node_memory_make(struct mr_win *w, bool page_aligned)
{
    struct place mine = {.fd = -1}, *all = calloc((size_t)w->comm->size, sizeof(*all));
    struct mr_node_memory *m = NULL;
    struct plan p;
    bool fits = make_plan(w, page_aligned, &p);
    int fd = -1, any_failed = 0;
    enum mr_err err;

    if (fits && p.first == w->comm->rank)
        mine = create(&p);
    err = all ? tell_places(w, &mine, all) : MR_ERR_NO_MEM;
    if (!err && fits)
        fd = p.first == w->comm->rank ? mine.fd : open_place(&all[p.first], &p);
    if (fd >= 0)
        m = map_place(fd, p.bytes);
    if (!err)
        err = agree(w, !m, &any_failed);
    if (fd >= 0 && fd != mine.fd)
        close(fd);
    if (mine.fd >= 0)
        close(mine.fd);
    free(all);
    if (!err && !any_failed) {
        place_parts(w, &p, m->base);
        w->in->memory = m;
        return MR_SUCCESS;
    }
    mr_node_memory_drop(m);
    return err ? err : mr_fail(MR_ERR_RMA_SHARED, "the processes of a node cannot share memory for this window");
}
