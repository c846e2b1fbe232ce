/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process's side of the attach protocol (simfab/proto.h): connecting, one attachment per process, one actor slot
 * per thread. Everything is made at its first use; a forked child starts again with nothing.
 */
#include "simfab/preload/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#define SIBLING_WAKES 8u /* of one idle actor, for the sake of others, until time has moved */

struct sfp_proc sfp_proc = { .sock = -1, .bell = -1 };
unsigned sfp_generation;

static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t call_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t actor_key;
static uint32_t call_seq;

static __thread struct sf_actor *self;
static __thread uint64_t cpu_ns;   /* processor time of this thread already charged */
static __thread uint64_t shown_ps; /* the latest time that the program has seen; the engine may take back what looks cost */
static __thread unsigned blocked;  /* depth of sfp_block_begin */

/* ---- where we are ---------------------------------------------------------------------------------------------- */

static char sim_host[SF_HOST_MAX];
static char sim_dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
static pthread_once_t env_once = PTHREAD_ONCE_INIT;

__thread bool sfp_starting;

static void read_environment(void)
{
    const char *host = getenv("SIM_HOST"), *dir = getenv("SIMFAB_DIR");

    if (!host || !dir || strlen(host) >= sizeof sim_host || strlen(dir) + sizeof "/engine.sock" > sizeof sim_dir)
        return;
    strcpy(sim_host, host);
    strcpy(sim_dir, dir);
}

static void where_are_we(void)
{
    if (sfp_starting)
        return;
    sfp_starting = true;
    pthread_once(&env_once, read_environment);
    sfp_starting = false;
}

bool sfp_enabled(void)
{
    where_are_we();
    return sim_host[0] && sim_dir[0];
}

const char *sfp_host(void)
{
    where_are_we();
    return sim_host;
}

const char *sfp_dir(void)
{
    where_are_we();
    return sim_dir;
}

/* Like the C library's own, it reads six arguments however many were passed; the kernel ignores the rest. */
__attribute__((no_sanitize_address)) long sfp_syscall(long number, ...)
{
    long arg[6];
    va_list ap;

    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        arg[i] = va_arg(ap, long);
    va_end(ap);
    return SFP_REAL(syscall)(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

void *sfp_real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

void *sfp_real_version(const char *name, const char *version)
{
    void *f = dlvsym(RTLD_NEXT, name, version);

    return f ? f : dlsym(RTLD_NEXT, name);
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

static void close_keep_errno(int fd)
{
    int e = errno;

    sfp_sys_close(fd);
    errno = e;
}

static int send_parts(int fd, const void *a, size_t a_len, const void *b, size_t b_len)
{
    struct iovec iov[2] = { { (void *)a, a_len }, { (void *)b, b_len } };
    struct msghdr msg = { .msg_iov = iov, .msg_iovlen = b_len ? 2 : 1 };
    ssize_t n;

    do
        n = sfp_sys_sendmsg(fd, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -1;
    if ((size_t)n != a_len + b_len) {
        errno = EPROTO;
        return -1;
    }
    return 0;
}

/* Receive one message in two parts with up to two descriptors; the number of bytes, or -1 (EPIPE at the end). */
static ssize_t recv_parts(int fd, void *a, size_t a_len, void *b, size_t b_len, int fds[2])
{
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov[2] = { { a, a_len }, { b, b_len } };
    struct msghdr msg = { .msg_iov = iov, .msg_iovlen = b_len ? 2 : 1, .msg_control = &control, .msg_controllen = sizeof control };
    int got[2] = { -1, -1 };
    ssize_t n;

    do
        n = sfp_sys_recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
            if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
                size_t bytes = c->cmsg_len - CMSG_LEN(0);
                memcpy(got, CMSG_DATA(c), bytes < sizeof got ? bytes : sizeof got);
            }
        if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
            n = -1;
            errno = EPROTO;
        }
    } else if (n == 0) {
        n = -1;
        errno = EPIPE;
    }
    for (int i = 0; i < 2; i++) {
        if (n > 0 && fds)
            fds[i] = got[i];
        else if (got[i] >= 0)
            close_keep_errno(got[i]);
    }
    return n;
}

int sfp_connect(enum sf_conn_kind kind, uint32_t arg, struct sf_welcome *welcome, int fds[2])
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    struct sf_hello hello = { .magic = SF_MAGIC, .version = SF_VERSION, .kind = kind, .arg = arg };
    struct sf_welcome w = { 0 };
    int got[2] = { -1, -1 };
    int fd, err;

    if (!sfp_enabled()) {
        errno = ENOENT;
        return -1;
    }
    snprintf(addr.sun_path, sizeof addr.sun_path, "%.90s/engine.sock", sfp_dir());
    snprintf(hello.host, sizeof hello.host, "%s", sfp_host());

    fd = (int)sfp_syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    do
        err = (int)sfp_syscall(SYS_connect, fd, &addr, sizeof addr);
    while (err && errno == EINTR);
    if (err || send_parts(fd, &hello, sizeof hello, NULL, 0))
        goto fail;
    if (recv_parts(fd, &w, sizeof w, NULL, 0, got) != sizeof w) {
        errno = errno ? errno : EPROTO;
        goto fail;
    }
    if (w.magic != SF_MAGIC || w.version != SF_VERSION || w.error) {
        errno = w.magic == SF_MAGIC && w.version == SF_VERSION ? w.error : EPROTO;
        goto fail;
    }
    if (welcome)
        *welcome = w;
    for (int i = 0; i < 2; i++) {
        if (fds)
            fds[i] = got[i];
        else if (got[i] >= 0)
            sfp_sys_close(got[i]);
    }
    return fd;

fail:
    for (int i = 0; i < 2; i++)
        if (got[i] >= 0)
            close_keep_errno(got[i]);
    close_keep_errno(fd);
    return -1;
}

/* One request and its answer on fd. 0 or an errno: the engine's, or ours when the conversation failed. */
static int converse(int fd, struct sf_req *req, const void *body, void *rep, size_t rep_size, size_t *rep_len, int *out_fd)
{
    struct sf_rep head;
    int fds[2] = { -1, -1 };
    ssize_t n;

    if (send_parts(fd, req, sizeof *req, body, req->body_bytes))
        return errno;
    n = recv_parts(fd, &head, sizeof head, rep, rep_size, fds);
    if (n < 0)
        return errno;
    if (fds[1] >= 0)
        sfp_sys_close(fds[1]);
    if ((size_t)n < sizeof head || head.op != req->op || head.seq != req->seq ||
        head.body_bytes != (size_t)n - sizeof head) {
        head.error = EPROTO;
    } else if (!head.error) {
        if (rep_len)
            *rep_len = head.body_bytes;
        else if (head.body_bytes != rep_size)
            head.error = EPROTO;
    }
    if (out_fd && !head.error)
        *out_fd = fds[0];
    else if (fds[0] >= 0)
        sfp_sys_close(fds[0]);
    return head.error;
}

int sfp_query(enum sf_op op, const void *body, size_t body_len, void **rep, size_t *rep_len)
{
    struct sf_req req = { .op = op, .seq = 1, .body_bytes = (uint32_t)body_len };
    char *buf;
    int fd, err;

    if (body_len > SF_MSG_MAX - sizeof req)
        return EMSGSIZE;
    fd = sfp_connect(SF_CONN_QUERY, 0, NULL, NULL);
    if (fd < 0)
        return errno;
    buf = malloc(SF_MSG_MAX + 1);
    err = buf ? converse(fd, &req, body, buf, SF_MSG_MAX, rep_len, NULL) : ENOMEM;
    sfp_sys_close(fd);
    if (err) {
        free(buf);
        return err;
    }
    buf[*rep_len] = 0;
    *rep = buf;
    return 0;
}

/* ---- the attachment -------------------------------------------------------------------------------------------- */

static void forget_actor(void *arg);

static void before_fork(void)
{
    pthread_mutex_lock(&attach_lock);
    pthread_mutex_lock(&call_lock);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&call_lock);
    pthread_mutex_unlock(&attach_lock);
}

/*
 * The child is another process to the engine: it must not keep the parent's socket open (the engine would not see the
 * parent die) nor touch the parent's arena, which becomes private zeros: verbs objects it inherited fail softly.
 */
static void after_fork_child(void)
{
    pthread_mutex_init(&call_lock, NULL);
    pthread_mutex_init(&attach_lock, NULL);
    if (self)
        sfp_clock_raise_local(sfp_now(self)); /* time goes on from the parent's */
    self = NULL;
    blocked = 0;
    sfp_generation++;
    if (sfp_proc.sock < 0)
        return;
    pthread_setspecific(actor_key, NULL);
    sfp_sys_close(sfp_proc.sock);
    sfp_sys_close(sfp_proc.bell);
    if (mmap(sfp_proc.arena, sfp_proc.arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == MAP_FAILED)
        _exit(127); /* nothing safe can be done with a shared arena of another process */
    sfp_proc = (struct sfp_proc){ .sock = -1, .bell = -1 };
}

static void make_key(void)
{
    pthread_key_create(&actor_key, forget_actor);
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static bool arena_is_sound(const struct sf_arena *a, size_t bytes)
{
    return bytes >= sizeof *a && a->magic == SF_MAGIC && a->version == SF_VERSION && a->cmd_bytes >= 4096 &&
           !(a->cmd_bytes & (a->cmd_bytes - 1)) && a->cmd_offset >= sizeof *a && a->cmd_offset % 8 == 0 &&
           a->cmd_offset <= bytes && a->cmd_bytes <= bytes - a->cmd_offset;
}

static int attach_locked(void)
{
    struct sf_welcome w;
    int fds[2], sock, err;
    void *map;

    if (sfp_proc.sock >= 0)
        return sfp_proc.dead ? EIO : 0;
    pthread_once(&key_once, make_key);
    sock = sfp_connect(SF_CONN_PROC, 0, &w, fds);
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
    if (!arena_is_sound(map, w.arena_bytes)) {
        munmap(map, w.arena_bytes);
        err = EPROTO;
        goto close_all;
    }
    sfp_sys_close(fds[0]);
    sfp_proc = (struct sfp_proc){ .bell = fds[1], .arena = map, .arena_bytes = w.arena_bytes, .welcome = w };
    __atomic_store_n(&sfp_proc.sock, sock, __ATOMIC_RELEASE);
    return 0;

close_all:
    for (int i = 0; i < 2; i++)
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
    pthread_mutex_lock(&attach_lock);
    err = attach_locked();
    pthread_mutex_unlock(&attach_lock);
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
    struct pollfd p = { .fd = sfp_proc.sock, .events = 0 };

    if (sfp_proc.dead || sfp_proc.sock < 0)
        return false;
    if (__atomic_load_n(&sfp_proc.arena->engine_dead, __ATOMIC_RELAXED) ||
        (sfp_sys_poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR | POLLNVAL))))
        sfp_proc.dead = true;
    return !sfp_proc.dead;
}

int sfp_call(enum sf_op op, const void *body, size_t body_len, void *rep, size_t rep_size, size_t *rep_len, int *fd)
{
    struct sf_actor *a = sfp_enter();
    struct sf_req req = { .op = op, .body_bytes = (uint32_t)body_len };
    int err;

    if (!a)
        return errno;
    if (body_len > SF_MSG_MAX - sizeof req)
        return EMSGSIZE;
    req.actor = (uint32_t)(a - sfp_proc.arena->actor);
    req.stamp_ps = sfp_now(a);
    pthread_mutex_lock(&call_lock);
    req.seq = ++call_seq;
    err = sfp_proc.dead ? EIO : converse(sfp_proc.sock, &req, body, rep, rep_size, rep_len, fd);
    pthread_mutex_unlock(&call_lock);
    if (err == EPIPE || err == ECONNRESET) {
        sfp_proc.dead = true;
        err = EIO;
    }
    return err;
}

/* ---- actors ---------------------------------------------------------------------------------------------------- */

static uint64_t thread_cpu_ns(void)
{
    struct timespec ts;

    sfp_syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void forget_actor(void *arg)
{
    struct sf_actor *a = arg;

    sfp_clock_raise_local(sfp_now(a)); /* what still runs in this thread reads the process's clock */
    self = NULL;
    __atomic_store_n(&a->state, SF_ACTOR_FREE, __ATOMIC_SEQ_CST);
    sfp_ring();
}

/*
 * A thread begins at a whole microsecond, and epochs are whole seconds (clock.c): clocks of that resolution then round
 * the same times to the same digits whenever a program is run.
 */
static uint64_t first_clock(void)
{
    uint64_t now = __atomic_load_n(&sfp_proc.arena->now_ps, __ATOMIC_ACQUIRE), local = sfp_clock_local();

    return ((now > local ? now : local) + 999999) / 1000000 * 1000000;
}

static struct sf_actor *new_actor(void)
{
    int err = sfp_attach();

    if (err) {
        errno = err;
        return NULL;
    }
    for (uint32_t i = 0; i < SF_ACTORS_MAX; i++) {
        struct sf_actor *a = &sfp_proc.arena->actor[i];
        uint32_t was = SF_ACTOR_FREE;

        if (!__atomic_compare_exchange_n(&a->state, &was, SF_ACTOR_RUNNING, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            continue;
        a->tid = (uint32_t)sfp_syscall(SYS_gettid);
        a->wake_ps = 0;
        a->clock_ps = first_clock();
        cpu_ns = thread_cpu_ns();
        self = a;
        pthread_setspecific(actor_key, a);
        sfp_ring();
        sfp_tsc_trap();
        return a;
    }
    errno = EAGAIN;
    return NULL;
}

static struct sf_actor *enter(struct sf_actor *a)
{
    uint64_t now = __atomic_load_n(&sfp_proc.arena->now_ps, __ATOMIC_ACQUIRE), clock = sfp_now(a);

    __atomic_store_n(&a->calls, a->calls + 1, __ATOMIC_RELEASE);
    if (sfp_proc.welcome.cpu_factor_milli) {
        uint64_t used = thread_cpu_ns();

        clock += (used - cpu_ns) * sfp_proc.welcome.cpu_factor_milli; /* ns * 1/1000 = ps * 1 */
        cpu_ns = used;
    }
    __atomic_store_n(&a->clock_ps, clock > now ? clock : now, __ATOMIC_RELAXED);
    return a;
}

struct sf_actor *sfp_enter(void)
{
    struct sf_actor *a = self ? self : new_actor();

    if (a && sfp_proc.dead) {
        errno = EIO;
        return NULL;
    }
    return a ? enter(a) : NULL;
}

bool sfp_is_actor(void)
{
    return self;
}

struct sf_actor *sfp_enter_if_actor(void)
{
    return self ? enter(self) : NULL;
}

uint64_t sfp_show(struct sf_actor *a, uint64_t cost_ps)
{
    sfp_spend(a, cost_ps);
    return shown_ps = sfp_now(a);
}

int sfp_wait(struct sf_actor *a, enum sf_actor_state state, uint64_t wake_ps)
{
    const struct timespec patience = { .tv_nsec = 200000000 };
    uint32_t now;

    __atomic_store_n(&a->wake_ps, wake_ps, __ATOMIC_RELAXED);
    __atomic_store_n(&a->state, (uint32_t)state, __ATOMIC_SEQ_CST);
    sfp_ring();
    while ((now = __atomic_load_n(&a->state, __ATOMIC_ACQUIRE)) != SF_ACTOR_RUNNING) {
        if (sfp_syscall(SYS_futex, &a->state, FUTEX_WAIT, now, &patience, NULL, 0) && errno == ETIMEDOUT && !sfp_alive()) {
            __atomic_store_n(&a->state, SF_ACTOR_RUNNING, __ATOMIC_SEQ_CST);
            return -1;
        }
    }
    if (sfp_now(a) < shown_ps)
        __atomic_store_n(&a->clock_ps, shown_ps, __ATOMIC_RELAXED);
    if (sfp_proc.welcome.cpu_factor_milli)
        cpu_ns = thread_cpu_ns(); /* going to sleep and waking is not the program's work */
    return (int)a->wake_reason;
}

/*
 * A thread is about to wait for another. Whom it waits for may be an idle poller of this process, which on real hardware
 * would have returned at once: let the idle ones look and go on. Not for ever, though: threads that take turns in polling
 * and waiting would keep each other from being idle at the same time, which is when time moves.
 */
bool sfp_wake_siblings(void)
{
    static struct {
        uint64_t at_ps;
        uint32_t times;
    } woken[SF_ACTORS_MAX];
    uint64_t now = __atomic_load_n(&sfp_proc.arena->now_ps, __ATOMIC_ACQUIRE);
    bool any = false, all = true;

    for (uint32_t i = 0; i < SF_ACTORS_MAX; i++) {
        struct sf_actor *a = &sfp_proc.arena->actor[i];
        uint32_t was = SF_ACTOR_IDLE;

        if (__atomic_load_n(&a->state, __ATOMIC_RELAXED) != SF_ACTOR_IDLE)
            continue;
        if (__atomic_exchange_n(&woken[i].at_ps, now, __ATOMIC_RELAXED) != now)
            __atomic_store_n(&woken[i].times, 0, __ATOMIC_RELAXED);
        if (__atomic_fetch_add(&woken[i].times, 1, __ATOMIC_RELAXED) >= SIBLING_WAKES) {
            all = false;
            continue;
        }
        if (__atomic_compare_exchange_n(&a->state, &was, SF_ACTOR_RUNNING, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
            sfp_syscall(SYS_futex, &a->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
            any = true;
        }
    }
    if (any)
        sfp_ring();
    return all;
}

void sfp_block_begin(void)
{
    struct sf_actor *a = self;

    if (!a || blocked++)
        return;
    enter(a);
    __atomic_store_n(&a->state, SF_ACTOR_BLOCKED, __ATOMIC_SEQ_CST);
    sfp_ring();
}

void sfp_block_end(void)
{
    struct sf_actor *a = self;
    int e = errno;

    if (!a || --blocked)
        return;
    __atomic_store_n(&a->state, SF_ACTOR_RUNNING, __ATOMIC_SEQ_CST);
    sfp_ring();
    enter(a);
    errno = e;
}

bool sfp_block_begin_on(int fd, short events)
{
    struct pollfd p = { .fd = fd, .events = events };
    int e = errno, flags;

    if (!self || blocked)
        return false;
    flags = (int)sfp_syscall(SYS_fcntl, fd, F_GETFL);
    if (flags < 0 || flags & O_NONBLOCK || sfp_sys_poll(&p, 1, 0) != 0) {
        errno = e;
        return false;
    }
    errno = e;
    sfp_block_begin();
    return true;
}
