/* SPDX-License-Identifier: BSD-3-Clause */
/* Where this process is, and talking to the engine: connections, requests and answers. No state but the environment's.
 */
#include "simfab/preload/connect.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "simfab/preload/preload.h"

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

__attribute__((no_sanitize_address)) void sfp_syscall_arguments(long arg[6], va_list ap)
{
    for (int i = 0; i < 6; i++)
        arg[i] = va_arg(ap, long);
}

long sfp_syscall(long number, ...)
{
    long arg[6];
    va_list ap;

    va_start(ap, number);
    sfp_syscall_arguments(arg, ap);
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
    struct iovec iov[2] = {{(void *)a, a_len}, {(void *)b, b_len}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = b_len ? 2 : 1};
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

/* Receive one message in two parts with up to SFP_FDS descriptors; the number of bytes, or -1 (EPIPE at the end). */
static ssize_t recv_parts(int fd, void *a, size_t a_len, void *b, size_t b_len, int fds[SFP_FDS])
{
    union {
        char bytes[CMSG_SPACE(SFP_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov[2] = {{a, a_len}, {b, b_len}};
    struct msghdr msg = {
        .msg_iov = iov, .msg_iovlen = b_len ? 2 : 1, .msg_control = &control, .msg_controllen = sizeof control};
    int got[SFP_FDS] = {-1, -1, -1};
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
    for (int i = 0; i < SFP_FDS; i++) {
        if (n > 0 && fds)
            fds[i] = got[i];
        else if (got[i] >= 0)
            close_keep_errno(got[i]);
    }
    return n;
}

/* A connection with a hello on its way; the welcome comes. -1 with errno. */
static int call_engine(enum sf_conn_kind kind, uint32_t arg)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct sf_hello hello = {.magic = SF_MAGIC, .version = SF_VERSION, .kind = kind, .arg = arg};
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
    if (!err && !send_parts(fd, &hello, sizeof hello, NULL, 0))
        return fd;
    close_keep_errno(fd);
    return -1;
}

/* 0; or -1 with errno, and no descriptor is left open but fd. */
static int receive_welcome(int fd, struct sf_welcome *w, int got[SFP_FDS])
{
    ssize_t n = recv_parts(fd, w, sizeof *w, NULL, 0, got);

    if (n == sizeof *w && w->magic == SF_MAGIC && w->version == SF_VERSION) {
        if (!w->error)
            return 0;
        errno = w->error;
    } else if (n >= 0) {
        errno = EPROTO;
    }
    for (int i = 0; i < SFP_FDS; i++)
        if (got[i] >= 0)
            close_keep_errno(got[i]);
    return -1;
}

int sfp_connect(enum sf_conn_kind kind, uint32_t arg, struct sf_welcome *welcome, int fds[SFP_FDS])
{
    int got[SFP_FDS] = {-1, -1, -1}, fd = call_engine(kind, arg);
    struct sf_welcome w = {0};

    if (fd < 0)
        return -1;
    if (receive_welcome(fd, &w, got)) {
        close_keep_errno(fd);
        return -1;
    }
    if (welcome)
        *welcome = w;
    for (int i = 0; i < SFP_FDS; i++) {
        if (fds)
            fds[i] = got[i];
        else if (got[i] >= 0)
            sfp_sys_close(got[i]);
    }
    return fd;
}

/* The answer to a request. 0 or an errno: the engine's, or ours when the conversation failed. */
static int receive_reply(int fd, const struct sf_req *req, void *rep, size_t rep_size, size_t *rep_len, int *out_fd)
{
    struct sf_rep head;
    int fds[SFP_FDS] = {-1, -1, -1};
    ssize_t n = recv_parts(fd, &head, sizeof head, rep, rep_size, fds);

    if (n < 0)
        return errno;
    for (int i = 1; i < SFP_FDS; i++)
        if (fds[i] >= 0)
            sfp_sys_close(fds[i]);
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

int sfp_converse(int fd, struct sf_req *req, const void *body, void *rep, size_t rep_size, size_t *rep_len, int *out_fd)
{
    if (send_parts(fd, req, sizeof *req, body, req->body_bytes))
        return errno;
    return receive_reply(fd, req, rep, rep_size, rep_len, out_fd);
}

/* Hello and question go out together: the engine wakes up once for both. */
static int greet_and_ask(int fd, const struct sf_req *req, const void *body, void *rep, size_t *rep_len)
{
    int got[SFP_FDS] = {-1, -1, -1};
    struct sf_welcome w;

    if (send_parts(fd, req, sizeof *req, body, req->body_bytes) || receive_welcome(fd, &w, got))
        return errno;
    for (int i = 0; i < SFP_FDS; i++)
        if (got[i] >= 0)
            sfp_sys_close(got[i]);
    return receive_reply(fd, req, rep, SF_MSG_MAX, rep_len, NULL);
}

int sfp_query(enum sf_op op, const void *body, size_t body_len, void **rep, size_t *rep_len)
{
    struct sf_req req = {.op = op, .seq = 1, .body_bytes = (uint32_t)body_len};
    char *buf;
    int fd, err;

    if (body_len > SF_MSG_MAX - sizeof req)
        return EMSGSIZE;
    fd = call_engine(SF_CONN_QUERY, 0);
    if (fd < 0)
        return errno;
    buf = malloc(SF_MSG_MAX + 1);
    err = buf ? greet_and_ask(fd, &req, body, buf, rep_len) : ENOMEM;
    sfp_sys_close(fd);
    if (err) {
        free(buf);
        return err;
    }
    buf[*rep_len] = 0;
    *rep = buf;
    return 0;
}

void sfp_lock_awake(pthread_mutex_t *mutex)
{
    while (pthread_mutex_trylock(mutex))
        SFP_REAL(sched_yield)();
}
