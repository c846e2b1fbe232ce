/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process's attachment to the engine (simfab/proto.h): made at the first use, one per process. A forked
 * child starts again with nothing.
 */
#include "simfab/preload/attach.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "simfab/preload/connect.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/upcalls.h"

struct sfp_proc sfp_proc = {.sock = -1, .bell = -1};
unsigned sfp_generation;

static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t prepare_once = PTHREAD_ONCE_INIT;

/* ---- the attachment -------------------------------------------------------------------------------------------- */

static void lock_before_fork(void)
{
    sfp_up.before_fork();
    SFP_REAL(pthread_mutex_lock)(&attach_lock);
}

static void after_fork_parent(void)
{
    SFP_REAL(pthread_mutex_unlock)(&attach_lock);
    sfp_up.after_fork_parent();
}

/*
 * The child is another process to the engine. The child must not keep the parent's socket open (the engine would not
 * see the parent die) nor touch the parent's arena. The arena becomes private zeros, so inherited verbs objects fail
 * softly.
 */
static void detach_child(void)
{
    pthread_mutex_init(&attach_lock, NULL);
    sfp_up.after_fork_child();
    sfp_generation++;
    if (sfp_proc.sock < 0)
        return;
    sfp_sys_close(sfp_proc.sock);
    sfp_sys_close(sfp_proc.bell);
    if (sfp_proc.relay)
        munmap(sfp_proc.relay, sizeof *sfp_proc.relay);
    if (mmap(sfp_proc.arena, sfp_proc.arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == MAP_FAILED)
        _exit(127); /* nothing safe can be done with a shared arena of another process */
    sfp_proc = (struct sfp_proc){.sock = -1, .bell = -1};
}

static void nothing(int sig)
{
}

/*
 * Installs a handler of SIGURG, the signal by which others bring back a thread that polls in vain. A handler of the
 * program has priority.
 */
static void handle_urgent(void)
{
    struct sigaction act = {.sa_handler = nothing, .sa_flags = SA_RESTART}, was;

    if (!sigaction(SIGURG, NULL, &was) && was.sa_handler == SIG_DFL)
        sigaction(SIGURG, &act, NULL);
}

static void prepare(void)
{
    handle_urgent();
    pthread_atfork(lock_before_fork, after_fork_parent, detach_child);
}

static bool arena_is_sound(const struct sf_arena *a, size_t bytes)
{
    return bytes >= sizeof *a && a->magic == SF_MAGIC && a->version == SF_VERSION && a->cmd_bytes >= 4096 &&
           !(a->cmd_bytes & (a->cmd_bytes - 1)) && a->cmd_offset >= sizeof *a && a->cmd_offset % 8 == 0 &&
           a->cmd_offset <= bytes && a->cmd_bytes <= bytes - a->cmd_offset;
}

/* The rank given by the launcher. */
static uint32_t rank_plus_1(void)
{
    static const char *const names[] = {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);

        if (value && *value >= '0' && *value <= '9')
            return (uint32_t)strtoul(value, NULL, 10) + 1;
    }
    return 0;
}

static int attach_locked(void)
{
    struct sf_welcome w;
    int fds[SFP_FDS], sock, err;
    void *map, *relay = NULL;

    if (sfp_proc.sock >= 0)
        return sfp_proc.dead ? EIO : 0;
    pthread_once(&prepare_once, prepare);
    sock = sfp_connect(SF_CONN_PROC, rank_plus_1(), &w, fds);
    if (sock < 0)
        return errno;
    if (fds[0] < 0 || fds[1] < 0) {
        err = EPROTO;
        goto close_all;
    }
    /* the engine reads and writes our memory, as a DMA engine would */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    map = mmap(NULL, w.arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    if (map == MAP_FAILED) {
        err = errno;
        goto close_all;
    }
    if (!arena_is_sound(map, w.arena_bytes) || (w.seat && (w.seat >= SF_SEATS || fds[2] < 0))) {
        err = EPROTO;
        goto unmap;
    }
    if (w.seat) {
        relay = mmap(NULL, sizeof *sfp_proc.relay, PROT_READ | PROT_WRITE, MAP_SHARED, fds[2], 0);
        if (relay == MAP_FAILED) {
            err = errno;
            goto unmap;
        }
        sfp_sys_close(fds[2]);
    }
    sfp_sys_close(fds[0]);
    sfp_proc =
        (struct sfp_proc){.bell = fds[1], .arena = map, .arena_bytes = w.arena_bytes, .relay = relay, .welcome = w};
    __atomic_store_n(&sfp_proc.sock, sock, __ATOMIC_RELEASE);
    return 0;

unmap:
    munmap(map, w.arena_bytes);
close_all:
    for (int i = 0; i < SFP_FDS; i++)
        if (fds[i] >= 0)
            sfp_sys_close(fds[i]);
    sfp_sys_close(sock);
    return err;
}

int sfp_attach(void)
{
    int err;

    if (__atomic_load_n(&sfp_proc.sock, __ATOMIC_ACQUIRE) >= 0)
        return sfp_proc.dead ? EIO : 0;
    SFP_REAL(pthread_mutex_lock)(&attach_lock); /* no actor exists yet to own the lock */
    err = attach_locked();
    SFP_REAL(pthread_mutex_unlock)(&attach_lock);
    return err;
}

void sfp_ring(void)
{
    uint64_t one = 1;

    /* pairs with the engine: it says "asleep", then looks at everything once more, then sleeps */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&sfp_proc.arena->engine_asleep, __ATOMIC_RELAXED)) {
        int e = errno;

        (void)!sfp_sys_write(sfp_proc.bell, &one, sizeof one);
        errno = e;
    }
}

bool sfp_alive(void)
{
    struct pollfd p = {.fd = sfp_proc.sock, .events = 0};

    if (sfp_proc.dead || sfp_proc.sock < 0)
        return false;
    if (__atomic_load_n(&sfp_proc.arena->engine_dead, __ATOMIC_RELAXED) ||
        (sfp_sys_poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR | POLLNVAL))))
        sfp_proc.dead = true;
    return !sfp_proc.dead;
}
