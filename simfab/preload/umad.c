/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * umad and issm descriptors: a connected socket that the program polls, duplicates and closes freely. Only read, write
 * and ioctl need help. The socket's own address identifies the socket, however it came into this process.
 *
 * A write does not wait for the engine if the open file's page says that the engine will take the datagram. Pages are
 * found by the socket's address, too, and belong to the process that opened the file, and to its children.
 */
#include "simfab/preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/clock.h"
#include "simfab/preload/connect.h"
#include "simfab/preload/devices.h"
#include "simfab/preload/slots.h"
#include "simfab/umad_proto.h"

ssize_t __read_chk(int fd, void *buf, size_t n, size_t size);

#define PAGES_KEPT 64 /* open files beyond are slower */
#define KEY_BUSY   1u

/* Entries are found by key. An entry is used again when its file has been closed everywhere. */
struct kept_page {
    uint64_t key; /* 0: none; KEY_BUSY: the entry is being changed */
    struct umad_page *page;
};

static struct kept_page kept[PAGES_KEPT];
static bool seen; /* this process has, or was started with, a umad descriptor */
static pthread_mutex_t read_lock = PTHREAD_MUTEX_INITIALIZER; /* a look at the queue and the taking go together */

/* ---- opening -------------------------------------------------------------------------------------------------- */

/* Gives the socket its recognizable name. */
static int name_socket(int fd)
{
    static unsigned count;
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int n;

    do {
        n = snprintf(addr.sun_path + 1, sizeof addr.sun_path - 1, UMAD_NAME "%d.%u", (int)getpid(),
                     __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
        n = (int)syscall(SYS_bind, fd, &addr, offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    } while (n && errno == EADDRINUSE);
    return n;
}

static uint64_t key_of_name(const char *name, size_t len)
{
    uint64_t key = 14695981039346656037u; /* FNV-1a */

    for (size_t i = 0; i < len; i++)
        key = (key ^ (uint8_t)name[i]) * 1099511628211u;
    return key > KEY_BUSY ? key : KEY_BUSY + 1;
}

/* The key of a umad's page; 0: the descriptor is no umad. */
static uint64_t umad_key(int fd)
{
    struct sockaddr_un addr;
    socklen_t len = sizeof addr;
    size_t at = offsetof(struct sockaddr_un, sun_path) + 1;
    int e = errno;
    bool is;

    if (!__atomic_load_n(&seen, __ATOMIC_RELAXED))
        return 0;
    is = !syscall(SYS_getsockname, fd, &addr, &len) && addr.sun_family == AF_UNIX && len > at + sizeof UMAD_NAME - 1 &&
         len <= sizeof addr && !addr.sun_path[0] && !memcmp(addr.sun_path + 1, UMAD_NAME, sizeof UMAD_NAME - 1);
    errno = e;
    return is ? key_of_name(addr.sun_path + 1, len - at) : 0;
}

/* False: the entry belongs to an open file, or to a thread about to use the entry. */
static bool take_entry(struct kept_page *k)
{
    uint64_t old = __atomic_load_n(&k->key, __ATOMIC_ACQUIRE);

    return old != KEY_BUSY && (!old || __atomic_load_n(&k->page->closed, __ATOMIC_ACQUIRE)) &&
           __atomic_compare_exchange_n(&k->key, &old, KEY_BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void fill_entry(struct kept_page *k, uint64_t key, int memfd)
{
    /*
     * In the place of the old page: a thread about to count there counts in the new page instead. At worst a count
     * stays, and a write waits for its answer.
     */
    void *page =
        mmap(k->page, sizeof *k->page, PROT_READ | PROT_WRITE, MAP_SHARED | (k->page ? MAP_FIXED : 0), memfd, 0);

    k->page = page == MAP_FAILED ? NULL : page;
    __atomic_store_n(&k->key, k->page ? key : 0, __ATOMIC_RELEASE);
}

/* The first free entry from the key's own on. */
static void keep_page(uint64_t key, int memfd)
{
    for (unsigned i = 0; i < PAGES_KEPT; i++)
        if (take_entry(&kept[(key + i) % PAGES_KEPT])) {
            fill_entry(&kept[(key + i) % PAGES_KEPT], key, memfd);
            return;
        }
}

static struct umad_page *page_of(uint64_t key)
{
    for (unsigned i = 0; i < PAGES_KEPT; i++) {
        struct kept_page *k = &kept[(key + i) % PAGES_KEPT];

        if (__atomic_load_n(&k->key, __ATOMIC_ACQUIRE) == key)
            return k->page;
    }
    return NULL;
}

static int set_flags(int fd, int flags)
{
    if (!(flags & O_CLOEXEC))
        syscall(SYS_fcntl, fd, F_SETFD, 0);
    if (flags & O_NONBLOCK)
        syscall(SYS_fcntl, fd, F_SETFL, O_NONBLOCK);
    return fd;
}

int sfp_umad_open(unsigned n, int flags)
{
    int fds[SFP_FDS], fd = sfp_connect(SF_CONN_UMAD, n, NULL, fds), e;

    if (fd < 0)
        return -1;
    e = name_socket(fd) ? errno : 0;
    __atomic_store_n(&seen, true, __ATOMIC_RELAXED);
    if (!e && fds[0] >= 0)
        keep_page(umad_key(fd), fds[0]);
    for (int i = 0; i < SFP_FDS; i++)
        if (fds[i] >= 0)
            sfp_sys_close(fds[i]);
    if (!e)
        return set_flags(fd, flags);
    sfp_sys_close(fd);
    errno = e;
    return -1;
}

int sfp_issm_open(unsigned n, int flags)
{
    int fd = sfp_connect(SF_CONN_ISSM, flags & O_NONBLOCK ? n | SF_UMAD_NONBLOCK : n, NULL, NULL);

    return fd < 0 ? -1 : set_flags(fd, flags);
}

/*
 * For a program executed with an open umad descriptor. Such programs are few, so one check at the start replaces a
 * check at every read.
 */
__attribute__((constructor)) static void look_for_inherited(void)
{
    struct pollfd fds[64];

    if (!sfp_enabled())
        return;
    for (int i = 0; i < 64; i++)
        fds[i] = (struct pollfd){.fd = i};
    if (sfp_sys_poll(fds, 64, 0) < 0)
        return;
    __atomic_store_n(&seen, true, __ATOMIC_RELAXED);
    for (int i = 3; i < 64; i++)
        if (!(fds[i].revents & POLLNVAL) && umad_key(i))
            return;
    __atomic_store_n(&seen, false, __ATOMIC_RELAXED);
}

/* ---- requests to the engine ----------------------------------------------------------------------------------- */

static int payload_memfd(const void *body, size_t bytes)
{
    int fd = memfd_create("umad", MFD_CLOEXEC);
    size_t at = 0;

    while (fd >= 0 && at < bytes) {
        ssize_t n = sfp_sys_write(fd, (const char *)body + at, bytes - at);

        if (n <= 0) {
            sfp_sys_close(fd);
            return -1;
        }
        at += (size_t)n;
    }
    return fd;
}

static int send_request(int fd, struct umad_req *req, const void *body, const int *fds, unsigned num_fds)
{
    struct iovec iov[2] = {{req, sizeof *req}, {(void *)body, req->flags & UMAD_REQ_MEMFD ? 0 : req->bytes}};
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
    struct cmsghdr *c;

    if (num_fds) {
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
        c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(num_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, num_fds * sizeof(int));
    }
    while (sfp_sys_sendmsg(fd, &msg, MSG_NOSIGNAL) < 0) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};

        if (errno == EAGAIN)
            sfp_sys_poll(&p, 1, -1);
        else if (errno != EINTR)
            return EIO;
    }
    return 0;
}

static int receive_answer(int fd, int umad, struct umad_rep *rep)
{
    for (;;) {
        struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = umad}};

        if (sfp_sys_poll(p, 2, -1) < 0 && errno != EINTR)
            return EIO;
        if (p[0].revents & POLLIN)
            return sfp_sys_read(fd, rep, sizeof *rep) == sizeof *rep ? rep->error : EIO;
        if (p[0].revents || p[1].revents)
            return EIO; /* the engine went away */
    }
}

/* A request and its answer: 0 or an errno. */
static int request(int fd, enum umad_op op, const void *body, size_t bytes, struct umad_rep *rep)
{
    struct umad_req req = {.op = op, .bytes = bytes};
    int pair[2], fds[2], n = 1, err;

    if (bytes > UMAD_DATA_MAX)
        return EINVAL;
    if (syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return errno;
    fds[0] = pair[1];
    if (bytes > UMAD_INLINE) {
        req.flags = UMAD_REQ_MEMFD;
        fds[n++] = payload_memfd(body, bytes);
    }
    err = n == 2 && fds[1] < 0 ? ENOMEM : send_request(fd, &req, body, fds, (unsigned)n);
    if (n == 2 && fds[1] >= 0)
        sfp_sys_close(fds[1]);
    sfp_sys_close(pair[1]);
    if (!err)
        err = receive_answer(pair[0], fd, rep);
    sfp_sys_close(pair[0]);
    return err;
}

/*
 * True for a directed-route request that begins at the port, of an agent that does not leave segmentation to the
 * engine.
 */
static bool engine_takes(const struct umad_page *page, const struct ib_user_mad_hdr *hdr, const uint8_t *mad)
{
    uint8_t class = mad[1], method = mad[3], pointer = mad[6], hops = mad[7];

    if (hdr->id >= UMAD_AGENTS || hdr->pkey_index || page->agent[hdr->id] != UMAD_AGENT_PLAIN)
        return false;
    if (method & 0x80 || method == 7 || class == 5) /* TrapRepress, baseboard management: may be responses */
        return false;
    if (class != 0x81)
        return true;
    /* directed from this port on, and on the way out */
    return !(mad[4] & 0x80) && !pointer && hops < 64 && mad[32] == 0xff && mad[33] == 0xff &&
           (!hops || mad[128 + 1] == page->port);
}

/*
 * Send a datagram without waiting for an answer. False: the engine may have an error to report. An actor always waits:
 * virtual time must not go on while its datagram is under way.
 */
static bool write_unasked(int fd, struct umad_page *page, const uint8_t *buf, size_t n)
{
    size_t head = __atomic_load_n(&page->hdr_bytes, __ATOMIC_RELAXED);
    struct umad_req req = {.op = UMAD_OP_WRITE, .bytes = n};
    struct ib_user_mad_hdr hdr = {0};
    uint32_t *count;

    if (head > sizeof hdr || n < head + 36 || n > head + 256 || sfp_is_actor())
        return false;
    memcpy(&hdr, buf, head);
    if (!engine_takes(page, &hdr, buf + head))
        return false;
    count = &page->under_way[umad_under_way(hdr.id, buf + head)];
    req.flags = hdr.timeout_ms ? UMAD_REQ_COUNTED : 0;
    if (hdr.timeout_ms ? !__atomic_fetch_add(count, 1, __ATOMIC_RELAXED) : !__atomic_load_n(count, __ATOMIC_RELAXED)) {
        if (!send_request(fd, &req, buf, NULL, 0))
            return true;
    }
    if (hdr.timeout_ms)
        __atomic_fetch_sub(count, 1, __ATOMIC_RELAXED);
    return false;
}

static ssize_t umad_write(int fd, uint64_t key, const void *buf, size_t n)
{
    struct umad_page *page = page_of(key);
    struct umad_rep rep;
    int err;

    if (page && write_unasked(fd, page, buf, n))
        return (ssize_t)n;
    err = request(fd, UMAD_OP_WRITE, buf, n, &rep);
    if (err) {
        errno = err;
        return -1;
    }
    return (ssize_t)n;
}

static int umad_ioctl(int fd, unsigned long cmd, void *arg)
{
    struct umad_rep rep = {0};
    uint32_t id;
    int err;

    switch (cmd) {
    case IB_USER_MAD_REGISTER_AGENT:
        err = request(fd, UMAD_OP_REGISTER, arg, sizeof(struct ib_user_mad_reg_req), &rep);
        if (!err)
            memcpy(arg, &rep.id, sizeof rep.id); /* id is the first member of both structures */
        break;
    case IB_USER_MAD_REGISTER_AGENT2:
        err = request(fd, UMAD_OP_REGISTER2, arg, sizeof(struct ib_user_mad_reg_req2), &rep);
        if (!err)
            memcpy(arg, &rep.id, sizeof rep.id);
        else if (rep.flags)
            ((struct ib_user_mad_reg_req2 *)arg)->flags = rep.flags;
        break;
    case IB_USER_MAD_UNREGISTER_AGENT:
        memcpy(&id, arg, sizeof id);
        err = request(fd, UMAD_OP_UNREGISTER, &id, sizeof id, &rep);
        break;
    case IB_USER_MAD_ENABLE_PKEY:
        err = request(fd, UMAD_OP_ENABLE_PKEY, NULL, 0, &rep);
        break;
    default:
        err = ENOTTY;
    }
    if (err) {
        errno = err;
        return -1;
    }
    return 0;
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

/* Take the first message: it has been looked at, and fits. */
static ssize_t take(int fd, void *buf, const struct umad_rx *rx)
{
    struct umad_rx again;
    struct iovec iov[2] = {{&again, sizeof again}, {buf, rx->bytes}};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n = sfp_sys_recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *c;
    size_t at = 0;
    int memfd;

    if (n < (ssize_t)sizeof again)
        return n < 0 ? -1 : (errno = EIO, -1);
    if (!(rx->flags & UMAD_RX_MEMFD))
        return n - (ssize_t)sizeof again;
    c = CMSG_FIRSTHDR(&msg);
    if (!c || c->cmsg_type != SCM_RIGHTS) {
        errno = EIO;
        return -1;
    }
    memcpy(&memfd, CMSG_DATA(c), sizeof memfd);
    while (at < rx->bytes) {
        n = syscall(SYS_pread64, memfd, (char *)buf + at, rx->bytes - at, (off_t)at);
        if (n <= 0)
            break;
        at += (size_t)n;
    }
    sfp_sys_close(memfd);
    if (at == rx->bytes)
        return (ssize_t)at;
    errno = EIO;
    return -1;
}

/*
 * Like the kernel: a message that does not fit stays. If a message of several segments does not fit, header and first
 * segment are returned, with the length.
 */
static ssize_t read_one(int fd, void *buf, size_t size)
{
    struct umad_rx rx;
    struct iovec iov[2] = {{&rx, sizeof rx}, {buf, 0}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 1};
    ssize_t n = sfp_sys_recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT);

    if (n < (ssize_t)sizeof rx) {
        if (n >= 0)
            errno = EIO;
        return -1;
    }
    if (size < rx.hdr_bytes) {
        errno = EINVAL;
        return -1;
    }
    if (size >= rx.bytes)
        return take(fd, buf, &rx);
    if (rx.bytes <= rx.hdr_bytes + 256u || size < rx.hdr_bytes + 256u) {
        errno = EINVAL;
        return -1;
    }
    iov[1].iov_len = rx.hdr_bytes + 256u;
    msg = (struct msghdr){.msg_iov = iov, .msg_iovlen = 2};
    sfp_sys_recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT);
    errno = ENOSPC;
    return -1;
}

static ssize_t umad_read(int fd, void *buf, size_t size)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n;

        pthread_mutex_lock(&read_lock);
        n = read_one(fd, buf, size);
        pthread_mutex_unlock(&read_lock);
        if (n >= 0 || errno != EAGAIN || (syscall(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK))
            return n;
        sfp_block_begin();
        n = sfp_sys_poll(&p, 1, -1);
        sfp_block_end();
        if (n < 0)
            return -1;
    }
}

/* ---- functions called by programs -------------------------------------------------------------------------------- */

#define ON(fd, events, expr)                                                                                           \
    ({                                                                                                                 \
        bool waits_ = sfp_block_begin_on((fd), (events));                                                              \
        __typeof__(expr) result_ = (expr);                                                                             \
        if (waits_)                                                                                                    \
            sfp_block_end();                                                                                           \
        result_;                                                                                                       \
    })

SFP_EXPORT ssize_t read(int fd, void *buf, size_t n)
{
    if (umad_key(fd))
        return umad_read(fd, buf, n);
    return ON(fd, POLLIN, SFP_REAL(read)(fd, buf, n));
}

SFP_EXPORT ssize_t __read_chk(int fd, void *buf, size_t n, size_t size)
{
    if (n <= size && umad_key(fd))
        return umad_read(fd, buf, n);
    return ON(fd, POLLIN, SFP_REAL(__read_chk)(fd, buf, n, size));
}

SFP_EXPORT ssize_t write(int fd, const void *buf, size_t n)
{
    uint64_t key = umad_key(fd);

    if (key)
        return umad_write(fd, key, buf, n);
    sfp_clock_settle(fd);
    return ON(fd, POLLOUT, SFP_REAL(write)(fd, buf, n));
}

SFP_EXPORT int ioctl(int fd, unsigned long cmd, ...)
{
    va_list ap;
    void *arg;

    va_start(ap, cmd);
    arg = va_arg(ap, void *);
    va_end(ap);
    if (_IOC_TYPE(cmd) == IB_IOCTL_MAGIC && umad_key(fd))
        return umad_ioctl(fd, cmd, arg);
    return SFP_REAL(ioctl)(fd, cmd, arg);
}
